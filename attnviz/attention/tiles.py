"""Attention in tiles: each row's denominator, and bins of keys of any window at any zoom, without the map.

Scores are taken as S · log₂e (so that exp2 serves), in tiles of keys × queries: reductions over keys then run along the
outer dimension with queries contiguous, which vectorises. One sweep over the keys of a block of rows gives each row's
log-sum-exp, and from the same numbers the exact maximum and the exact sum of every bin of keys: exp is monotone, so
the maximum needs exp only once a bin, and the sums of the bins are the parts of the denominator itself.

Weights are 2^(s − highest) / mass, as a softmax has them, rounded to the spec's dtype. They differ from its by rounding
alone: a few ulp of the dtype, plus eps · |s| from the factor log₂e, whatever the tiles are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnviz.attention.dropout import keep_portable
from attnviz.attention.masks import Mask
from attnviz.frames import CellClass

LOG2E: Final = math.log2(math.e)
CPU_TILE: Final = (256, 1024)
"""Rows and keys of a tile on a CPU: 1 MB of float32, which stays in its second-level cache."""
DEVICE_TILE: Final = (1024, 8192)

_MOST_HALVINGS: Final = 6
_LOWEST: Final = -1e30  # below any score, and finite: −∞ − −∞ would be NaN
_FAINTEST: Final = {torch.float64: 1021, torch.float32: 125, torch.bfloat16: 125, torch.float16: 23}
"""A weight of 2^−n is still far from rounding to 0 in each dtype."""

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """One head's scores as a recipe: queries (Q, D), keys (K, D), and what happens before the softmax.

    ``scale`` is a factor, ``soft_cap`` c bends to c · tanh(s / c). Hidden cells of ``mask`` take ``fill`` (−∞, or a
    number in units of the scaled score). ``mask`` None hides nothing.
    """

    queries: Tensor
    keys: Tensor
    scale: float
    soft_cap: float | None = None
    mask: Mask | None = None
    fill: float = -math.inf

    @property
    def dtype(self) -> torch.dtype:
        """What tiles are computed in: float32 for the half dtypes, whose products are rounded first."""
        return torch.float64 if self.queries.dtype == torch.float64 else torch.float32

    @property
    def half(self) -> bool:
        return self.queries.dtype in (torch.float16, torch.bfloat16)

    @property
    def hides(self) -> bool:
        """Whether hidden cells weigh exactly nothing, so that they need not be computed."""
        return self.mask is not None and self.fill == -math.inf

    def span(self, rows: range) -> tuple[int, int]:
        """Keys outside of which the rows weigh exactly 0."""
        return self.mask.span(rows) if self.hides and self.mask is not None else (0, len(self.keys))

    def is_plain(self) -> bool:
        """Whether every visible cell is sure to hold a number above 0 and every hidden one 0.

        By |q · k| ≤ |q| |k| over all rows and keys, read once: a visible weight then cannot round to 0.
        """
        if self.mask is not None and not self.hides:
            return False
        longest = [float(_longest(t)) for t in (self.queries, self.keys)]
        bound = longest[0] * longest[1] * abs(self.scale) * LOG2E
        if self.soft_cap is not None:
            bound = min(bound, self.soft_cap * LOG2E)
        return 2 * bound + math.log2(len(self.keys)) < _FAINTEST[self.queries.dtype]


def _longest(vectors: Tensor) -> Tensor:
    step = 1 << 16  # in blocks: a float copy of all would double the memory of half-precision keys
    parts = (vectors[first : first + step].float() for first in range(0, len(vectors), step))
    return torch.stack([part.square().sum(1).amax() for part in parts]).amax().sqrt()


@dataclass(slots=True, eq=False)
class Workspace:
    """Buffers of one thread, made once and written again by every tile.

    ``halvings`` is how often a device ran out of memory: tiles have so many times fewer keys.
    """

    buffers: dict[str, Tensor] = field(default_factory=dict)
    halvings: int = 0

    def shrink(self) -> bool:
        """Take smaller tiles from now on; False where they are as small as they get."""
        if self.halvings >= _MOST_HALVINGS:
            return False
        self.halvings += 1
        self.buffers.clear()
        return True

    def get(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A buffer of ``shape``, with anything in it."""
        numel = math.prod(shape)
        kept = self.buffers.get(name)
        if kept is None or kept.numel() < numel or kept.dtype != dtype or kept.device != device:
            self.buffers[name] = kept = torch.empty(numel, dtype=dtype, device=device)
        return kept[:numel].view(shape)


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """Rows' softmax denominators: ``highest`` (rows,) score, base 2, and ``mass`` (rows,), Σ 2^(s − highest).

    The log-sum-exp is highest + log₂ mass; apart they lose nothing where scores are far from 0.
    """

    highest: Tensor
    mass: Tensor

    @property
    def lse(self) -> Tensor:
        """Log-sum-exp (rows,), base 2; −∞ where a row sees nothing."""
        return self.highest + torch.log2(self.mass)

    @property
    def sound(self) -> Tensor | None:
        """Rows whose weights are numbers, bool (rows,); None where all are."""
        finite = torch.isfinite(self.highest) & torch.isfinite(self.mass) & (self.mass > 0)
        return None if bool(finite.all()) else finite

    def joined(self, other: Norm) -> Norm:
        """The denominator over the keys of both."""
        highest = torch.maximum(self.highest, other.highest)
        masses = (one.mass * torch.exp2(one.highest - highest) for one in (self, other))
        return Norm(highest, sum(masses, torch.zeros_like(highest)))


@dataclass(slots=True, eq=False)
class Bins:
    """What bins of ``level`` keys hold for each of ``rows``: keys from ``left`` on, the last bin perhaps partial.

    ``top`` (bins, rows) is the largest ordinary cell, −∞ where there is none; ``total`` the sum of the ordinary ones;
    ``sets`` uint8 the classes. Outside of the bins every cell is hidden. ``norm`` is the rows' denominator, where a
    sweep over all keys found it. A row that is not in ``sound``
    (rows,) is NaN throughout, whatever its bins say; None means that all are sound. ``low`` is the lowest finite
    ordinary cell (nan if none, or if nobody asked), ``zeros`` and ``dropped`` count cells.
    """

    rows: range
    left: int
    level: int
    top: Tensor
    total: Tensor
    sets: Tensor
    norm: Norm | None = None
    sound: Tensor | None = None
    low: float = math.nan
    zeros: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Draw:
    """One head's dropout by the portable generator."""

    seed: int
    head: int
    p: float

    def kept(self, rows: range, cols: tuple[int, int], shape: tuple[int, int], device: torch.device) -> Tensor:
        """Cells that are kept, bool (rows, columns), of a map of ``shape``."""
        return keep_portable(
            seed=self.seed, site="weights", batch_item=0, head=self.head, n_queries=shape[0], n_columns=shape[1],
            p=self.p, rows=rows, cols=cols, device=device,
        )  # fmt: skip


def binned(
    cells: Tensor, rows: range, left: int, level: int, *, weights: bool, masked: Tensor | None = None,
    padded: tuple[int, int] = (0, 0), dropped: Tensor | None = None,
) -> Bins:  # fmt: skip
    """Bins of any ``cells`` (keys from ``left`` on, rows), which are not written to.

    ``masked`` and ``dropped`` are bool planes like them; of masked cells those in the ``padded`` run of keys are
    padding. ``weights`` says that 0 is a class of its own. A NaN makes the bin's top and total NaN.
    """
    short = -len(cells) % level
    shape = ((len(cells) + short) // level, level, cells.shape[1])

    def grouped(plane: Tensor, value: float) -> Tensor:
        return (pad(plane, (0, 0, 0, short), value=value) if short else plane).reshape(shape)

    def some(plane: Tensor) -> Tensor:
        return grouped(plane, value=False).any(1).to(torch.uint8)

    nan = torch.isnan(cells)
    other = nan
    sets = some(nan) * int(CellClass.NAN)
    if masked is not None:
        blind = masked & ~other
        pad_first, pad_end = (min(max(edge - left, 0), len(cells)) for edge in padded)
        if pad_first < pad_end:
            stuffed = blind.clone()
            stuffed[:pad_first] = stuffed[pad_end:] = False
            sets |= some(stuffed) * int(CellClass.PADDED)
            blind[pad_first:pad_end] = False
        sets |= some(blind) * int(CellClass.MASKED)
        other = other | masked
    n_zeros = n_dropped = 0
    if dropped is not None:
        lost = dropped & ~other
        sets |= some(lost) * int(CellClass.DROPPED)
        n_dropped = int(lost.sum())
        other = other | lost
    if weights:
        zero = (cells == 0) & ~other
        n_zeros = int(zero.sum())
        if n_zeros:
            sets |= some(zero) * int(CellClass.ZERO)
            other = other | zero
    ordinary = ~other
    sets |= some(ordinary) * int(CellClass.ORDINARY)
    spoilt = some(nan).bool()
    top = grouped(cells.masked_fill(other, -math.inf), -math.inf).amax(1).masked_fill_(spoilt, math.nan)
    total = grouped(cells.masked_fill(other, 0), 0).sum(1).masked_fill_(spoilt, math.nan)
    low = math.nan
    if not weights:
        finite = cells.masked_fill(other | ~torch.isfinite(cells), math.inf)
        low = float(finite.amin()) if finite.numel() else math.inf
        low = low if math.isfinite(low) else math.nan
    return Bins(rows, left, level, top, total, sets, low=low, zeros=n_zeros, dropped=n_dropped)


class Sweep:
    """Sweeps blocks of rows of one head. Thread: any, with a workspace of its own.

    ``plain`` is `Scores.is_plain`, asked once for a head.
    """

    def __init__(
        self, scores: Scores, *, plain: bool, workspace: Workspace | None = None,
        cancelled: Cancelled = lambda: False, tile: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self._scores, self._plain, self._cancelled = scores, plain, cancelled
        self._space = workspace or Workspace()
        self._device = scores.queries.device
        standard = CPU_TILE if self._device.type == "cpu" else DEVICE_TILE
        self._tile_keys = (tile or standard)[1] >> self._space.halvings

    # ----------------------------------------------------------------------------------------------------- log-sum-exp

    def normalise(self, rows: range, level: int) -> Bins | None:
        """The denominator of ``rows``, and their weights in bins of ``level`` keys over all that they see.

        The bins' classes are those of a plain head; for another, ask `window` once the denominator is known. None once
        cancelled. The bins are views of the workspace: fold them before the next sweep.
        """
        scores, dtype, n = self._scores, self._scores.dtype, len(rows)
        lo, hi = scores.span(rows)
        left = lo // level * level
        n_bins = -(-(hi - left) // level) if hi > lo else 0
        tops, sums = (self._space.get(name, (n_bins, n), dtype, self._device) for name in ("tops", "sums"))
        if n_bins == 0:
            norm = Norm(*(torch.zeros(n, dtype=dtype, device=self._device) for _ in range(2)))
            return Bins(rows, left, level, tops, sums, tops.to(torch.uint8), norm, norm.sound)
        width = max(self._tile_keys // level, 1)  # in bins
        n_tiles = -(-n_bins // width)
        peaks = self._space.get("peaks", (n_tiles, n), dtype, self._device)
        block = self._block(rows)
        for tile in range(n_tiles):
            if self._cancelled():
                return None
            bins = slice(tile * width, min((tile + 1) * width, n_bins))
            first = left + bins.start * level
            cells = self._tile(block, rows, (first, min(left + bins.stop * level, hi)), level)
            grouped = cells.view(-1, level, n)
            peak = torch.amax(torch.amax(grouped, 1, out=tops[bins]), 0, out=peaks[tile]).clamp_min_(_LOWEST)
            torch.exp2(cells.sub_(peak), out=cells)
            torch.sum(grouped, 1, out=sums[bins])
        highest = peaks.amax(0)
        shares = torch.exp2(peaks - highest)
        for tile in range(n_tiles):
            sums[tile * width : (tile + 1) * width].mul_(shares[tile])
        mass = sums.sum(0)
        norm = Norm(highest, mass)
        sums.div_(mass)
        top = self._rounded(torch.exp2(tops.sub_(highest), out=tops).div_(mass))
        sets = self._sets(rows, left, level, n_bins)
        return Bins(rows, left, level, top, sums, sets, norm, norm.sound)

    def hidden_norm(self, rows: range) -> Norm | None:
        """The denominator over the keys that the mask hides alone, as if nothing hid them; None once cancelled."""
        scores, mask, dtype, n = self._scores, self._scores.mask, self._scores.dtype, len(rows)
        assert mask is not None  # noqa: S101 (asked for three-step alone)
        block = self._block(rows)
        peak = torch.full((n,), _LOWEST, dtype=dtype, device=self._device)
        mass = torch.zeros(n, dtype=dtype, device=self._device)
        open_lo, open_hi = mask.open_span(rows)
        for first in range(0, len(scores.keys), self._tile_keys):
            end = min(first + self._tile_keys, len(scores.keys))
            if open_lo <= first and end <= open_hi:
                continue
            if self._cancelled():
                return None
            cells = self._product(block, (first, end), 1)
            cells.masked_fill_(~mask.hidden(rows, (first, end), self._device).t(), -math.inf)
            higher = torch.maximum(peak, cells.amax(0))
            mass.mul_(torch.exp2(peak - higher)).add_(torch.exp2(cells.sub_(higher)).sum(0))
            peak = higher
        return Norm(peak, mass)

    # ------------------------------------------------------------------------------------------------------- windows

    def window(
        self, rows: range, cols: tuple[int, int], level: int, norm: Norm, *, draw: Draw | None = None,
        sums: bool = True,
    ) -> Bins | None:  # fmt: skip
        """Weights of ``rows`` over ``norm`` in bins of ``level`` keys over ``cols``, which start at a bin.

        With ``draw`` they are dropped weights. Without ``sums``, ``total`` may be the top.
        None once cancelled.
        """
        n, left = len(rows), cols[0]
        lo, hi = self._scores.span(rows)
        lo, hi = max(lo // level * level, left), min(hi, cols[1])
        n_bins = -(-(hi - lo) // level) if hi > lo else 0
        dtype = self._scores.dtype
        top, total = (torch.empty((n_bins, n), dtype=dtype, device=self._device) for _ in range(2))
        plain = self._plain and draw is None
        sets = self._sets(rows, lo, level, n_bins) if plain else torch.empty_like(top, dtype=torch.uint8)
        bins = Bins(rows, lo, level, top, total, sets, norm, norm.sound)
        width = max(self._tile_keys // level, 1)
        block = self._block(rows)
        for first_bin in range(0, n_bins, width):
            if self._cancelled():
                return None
            part = slice(first_bin, min(first_bin + width, n_bins))
            first, end = lo + part.start * level, min(lo + part.stop * level, hi)
            cells = self._tile(block, rows, (first, end), level).sub_(norm.highest)
            grouped = cells.view(-1, level, n)
            if plain:
                peak = torch.amax(grouped, 1, out=top[part]) if level > 1 else grouped[:, 0]
                self._rounded(torch.exp2(peak, out=top[part]).div_(norm.mass))
                if sums and level > 1:
                    torch.sum(torch.exp2(grouped, out=grouped), 1, out=total[part]).div_(norm.mass)
                continue
            weights = self._rounded(torch.exp2(cells[: end - first], out=cells[: end - first]).div_(norm.mass))
            some = self._general(weights, rows, (first, end), level, draw)
            top[part], total[part], sets[part] = some.top, some.total, some.sets
            bins.zeros += some.zeros
            bins.dropped += some.dropped
        return bins if (sums and level > 1) or not plain else replace(bins, total=top)

    def _general(self, weights: Tensor, rows: range, cols: tuple[int, int], level: int, draw: Draw | None) -> Bins:
        """Bins of a tile whose cells must be looked at one by one; ``weights`` are written over."""
        scores, mask = self._scores, self._scores.mask
        masked = None if mask is None else mask.hidden(rows, cols, self._device).t()
        if masked is not None and not scores.hides:
            masked = masked & (weights == 0)  # a finite fill lets hidden cells weigh something
        dropped = None
        if draw is not None:
            shape = (mask.n_queries if mask is not None else len(scores.queries)), len(scores.keys)
            dropped = ~draw.kept(rows, cols, shape, self._device).t()
            narrow = scores.queries.dtype
            factor = torch.ones((), dtype=narrow).div_(1 - draw.p).item()  # as nn.Dropout rounds it
            weights = self._rounded(weights.masked_fill_(dropped & ~torch.isnan(weights), 0).mul_(factor))
        padded = (0, 0) if mask is None else mask.padded
        return binned(weights, rows, cols[0], level, weights=True, masked=masked, padded=padded, dropped=dropped)

    # --------------------------------------------------------------------------------------------------------- a tile

    def _block(self, rows: range) -> Tensor:
        """Queries of ``rows`` (D, rows), with scale and log₂e in them where that is one rounding."""
        scores = self._scores
        queries = scores.queries[rows.start : rows.stop : rows.step]
        if scores.half:
            return queries.t()
        factor = scores.scale if scores.soft_cap is not None else scores.scale * LOG2E
        return (queries * factor).t()

    def _product(self, block: Tensor, cols: tuple[int, int], level: int) -> Tensor:
        """S · log₂e of a tile (keys, rows) before the mask; what fills up the last bin is −∞."""
        scores, n = self._scores, block.shape[1]
        first, end = cols
        whole = -(-(end - first) // level) * level
        cells = self._space.get("cells", (whole, n), scores.dtype, self._device)
        seen, keys = cells[: end - first], scores.keys[first:end]
        if scores.half:
            # as the dense pass rounds: the product, the scaled score, each step of the cap
            narrow = self._space.get("narrow", (end - first, n), scores.queries.dtype, self._device)
            torch.mm(keys, block, out=narrow).mul_(scores.scale)
            if scores.soft_cap is not None:
                narrow.div_(scores.soft_cap).tanh_().mul_(scores.soft_cap)
            seen.copy_(narrow).mul_(LOG2E)
        else:
            torch.mm(keys, block, out=seen)
            if scores.soft_cap is not None:
                seen.div_(scores.soft_cap).tanh_().mul_(scores.soft_cap * LOG2E)
        if whole > end - first:
            cells[end - first :] = -math.inf
        return cells

    def _tile(self, block: Tensor, rows: range, cols: tuple[int, int], level: int) -> Tensor:
        """S · log₂e of a tile after the mask."""
        cells = self._product(block, cols, level)
        mask = self._scores.mask
        if mask is not None:
            (first, end), (lo, hi) = cols, mask.open_span(rows)
            for a, b in ((first, min(end, lo)), (max(first, hi), end)) if lo < hi else (cols,):
                if a < b:
                    hidden = mask.hidden(rows, (a, b), self._device).t()
                    cells[a - first : b - first].masked_fill_(hidden, self._scores.fill * LOG2E)
        return cells

    def _rounded(self, weights: Tensor) -> Tensor:
        """``weights`` as the spec's dtype holds them; in place."""
        return weights.copy_(weights.to(self._scores.queries.dtype)) if self._scores.half else weights

    def _sets(self, rows: range, left: int, level: int, n_bins: int) -> Tensor:
        """Classes (bins, rows) of a plain head: ordinary where a key is visible, masked and padded where one is not."""
        mask, n_keys = self._scores.mask, len(self._scores.keys)
        if mask is None:
            return torch.full((n_bins, len(rows)), int(CellClass.ORDINARY), dtype=torch.uint8, device=self._device)
        return mask_sets(mask, rows, range(left, left + n_bins * level, level), n_keys, self._device)


def mask_sets(mask: Mask, rows: range, starts: range, n_keys: int, device: torch.device | str | None = None) -> Tensor:
    """Classes (bins, rows) that follow from a mask alone, of the bins that begin at ``starts``."""
    if mask.plane is not None:
        hidden = mask.hidden(rows, (starts.start, min(starts.stop, n_keys)), device).t()
        return binned(
            torch.ones_like(hidden, dtype=torch.float32), rows, starts.start, starts.step, weights=True, masked=hidden
        ).sets
    runs = slice(rows.start, rows.stop, rows.step)
    first, end = (run[runs].to(device, torch.int32) for run in (mask.first, mask.end))
    bin_first = torch.arange(starts.start, starts.stop, starts.step, dtype=torch.int32, device=device)[:, None]
    bin_end = (bin_first + starts.step).clamp_max(n_keys)
    seen = (torch.minimum(bin_end, end) - torch.maximum(bin_first, first)).clamp_min_(0)
    sets = (seen > 0).to(torch.uint8)  # CellClass.ORDINARY is 1
    blind = (bin_end - bin_first) - seen
    pad_first, pad_end = mask.padded
    if pad_end > pad_first:
        stuffed = (bin_end.clamp_max(pad_end) - bin_first.clamp_min(pad_first)).clamp_min_(0)
        sets += (stuffed > 0).to(torch.uint8) * int(CellClass.PADDED)
        blind = blind - stuffed
    return sets.add_((blind > 0).to(torch.uint8), alpha=int(CellClass.MASKED))
