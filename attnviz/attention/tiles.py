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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from attnviz.attention.bins import Bins, Draw, Norm, binned, grouped_sets, visible_counts
from attnviz.attention.masks import Mask
from attnviz.frames import CellClass

LOG2E: Final = math.log2(math.e)
CPU_TILE: Final = (512, 1024)
"""Rows and keys of a tile on a CPU: 2 MB of float32, near enough for its caches, and a millisecond of work."""
DEVICE_TILE: Final = (1024, 8192)

_MOST_HALVINGS: Final = 6
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

    dtype: torch.dtype = field(init=False)
    """What tiles are computed in: float32 for the half dtypes, whose products are rounded first."""
    half: bool = field(init=False)

    def __post_init__(self) -> None:
        own = self.queries.dtype
        object.__setattr__(self, "dtype", torch.float64 if own == torch.float64 else torch.float32)
        object.__setattr__(self, "half", own in (torch.float16, torch.bfloat16))

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
        bound = self.largest()[1] * LOG2E
        return 2 * bound + math.log2(len(self.keys)) < _FAINTEST[self.queries.dtype]

    def largest(self) -> tuple[float, float]:
        """What no product q · k and no scaled score exceeds in absolute value: |q| |k| over all rows and keys."""
        product = float(_longest(self.queries)) * float(_longest(self.keys))
        scaled = product * abs(self.scale)
        return product, scaled if self.soft_cap is None else min(scaled, self.soft_cap)


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
    _last: dict[str, tuple[object, Tensor]] = field(default_factory=dict)

    def shrink(self) -> bool:
        """Take smaller tiles from now on; False where they are as small as they get."""
        if self.halvings >= _MOST_HALVINGS:
            return False
        self.halvings += 1
        self.buffers.clear()
        self._last.clear()
        return True

    def recall(self, name: str, key: object, make: Callable[[], Tensor]) -> Tensor:
        """What ``make`` gave for the same ``key`` last time, not to be written to: the next head asks the same."""
        known = self._last.get(name)
        if known is None or known[0] != key:
            self._last[name] = known = key, make()
        return known[1]

    def get(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A buffer of ``shape``, with anything in it."""
        numel = math.prod(shape)
        kept = self.buffers.get(name)
        if kept is None or kept.numel() < numel or kept.dtype != dtype or kept.device != device:
            self.buffers[name] = kept = torch.empty(numel, dtype=dtype, device=device)
        return kept[:numel].view(shape)


class Sweep:
    """Sweeps blocks of rows of one head. Thread: any, with a workspace of its own.

    ``plain`` is `Scores.is_plain`, asked once for a head. ``group_sets`` leaves it to us whether classes are given for
    each row or for each group of rows that become one pixel.
    """

    def __init__(
        self, scores: Scores, *, plain: bool, workspace: Workspace | None = None,
        cancelled: Cancelled = lambda: False, group_sets: bool = False,
    ) -> None:  # fmt: skip
        self._scores, self._plain, self._cancelled, self._group_sets = scores, plain, cancelled, group_sets
        self._space = workspace or Workspace()
        self._device = scores.queries.device
        self._lowest = torch.finfo(scores.dtype).min  # finite: −∞ − −∞ would be NaN
        standard = CPU_TILE if self._device.type == "cpu" else DEVICE_TILE
        self._tile_keys = standard[1] >> self._space.halvings

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
            values = (torch.full((n,), value, dtype=dtype, device=self._device) for value in (self._lowest, 0.0))
            nothing = Norm(*values)
            return Bins(rows, left, level, tops, sums, tops.to(torch.uint8), nothing, nothing.sound)
        summed = self._summed if self._plain else self._summed_from_peaks
        norm = summed(rows, (left, hi), level, tops, sums)
        if norm is None:
            return None
        top = self._rounded(tops)
        sets = self._sets(rows, left, level, n_bins)
        return Bins(rows, left, level, top, sums, sets, norm, self._sound(norm))

    def _summed(self, rows: range, cols: tuple[int, int], level: int, tops: Tensor, sums: Tensor) -> Norm | None:
        """The denominator of a plain head's ``rows``, and their bins in ``tops`` and ``sums``.

        Its scores lie so near 0 that 2^s and all sums of them are numbers as they stand: nothing is subtracted first.
        """
        block = self._block(rows)
        for bins, part in self._tiles(cols, level, len(rows)):
            if self._cancelled():
                return None
            cells = self._tile(block, rows, part, level)
            grouped = cells.view(-1, level, len(rows))
            torch.amax(grouped, 1, out=tops[bins])
            torch.exp2(cells, out=cells)
            torch.sum(grouped, 1, out=sums[bins])
        highest = tops.amax(0).clamp_min_(self._lowest)
        raw = sums.sum(0)
        sums.div_(raw)
        torch.exp2(tops, out=tops).div_(raw)
        return Norm(highest, torch.where(raw > 0, raw * torch.exp2(-highest), 0.0))

    def _summed_from_peaks(
        self, rows: range, cols: tuple[int, int], level: int, tops: Tensor, sums: Tensor
    ) -> Norm | None:  # fmt: skip
        """`_summed` for scores of any size: each tile's largest is subtracted, and the tiles' sums are put together."""
        n = len(rows)
        tiles = list(self._tiles(cols, level, n))
        peaks = self._space.get("peaks", (len(tiles), n), self._scores.dtype, self._device)
        block = self._block(rows)
        for tile, (bins, part) in enumerate(tiles):
            if self._cancelled():
                return None
            cells = self._tile(block, rows, part, level)
            grouped = cells.view(-1, level, n)
            peak = torch.amax(torch.amax(grouped, 1, out=tops[bins]), 0, out=peaks[tile]).clamp_min_(self._lowest)
            torch.exp2(cells.sub_(peak), out=cells)
            torch.sum(grouped, 1, out=sums[bins])
        highest = peaks.amax(0)
        shares = torch.exp2(peaks - highest)
        for tile, (bins, _) in enumerate(tiles):
            sums[bins].mul_(shares[tile])
        mass = sums.sum(0)
        sums.div_(mass)
        torch.exp2(tops.sub_(highest), out=tops).div_(mass)
        return Norm(highest, mass)

    def _tiles(self, cols: tuple[int, int], level: int, n_rows: int) -> Iterator[tuple[slice, tuple[int, int]]]:
        """The bins and the keys of each tile of ``cols``, which start at a bin."""
        (left, hi), width = cols, max(self._keys_for(n_rows) // level, 1)
        n_bins = -(-(hi - left) // level)
        for first in range(0, n_bins, width):
            end = min(first + width, n_bins)
            yield slice(first, end), (left + first * level, min(left + end * level, hi))

    def hidden_norm(self, rows: range) -> Norm | None:
        """The denominator over the keys that the mask hides alone, as if nothing hid them; None once cancelled."""
        scores, mask, dtype, n = self._scores, self._scores.mask, self._scores.dtype, len(rows)
        assert mask is not None  # noqa: S101 (asked for three-step alone)
        block = self._block(rows)
        peak = torch.full((n,), self._lowest, dtype=dtype, device=self._device)
        mass = torch.zeros(n, dtype=dtype, device=self._device)
        open_lo, open_hi = mask.open_span(rows)
        width = self._keys_for(n)
        for first in range(0, len(scores.keys), width):
            end = min(first + width, len(scores.keys))
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
    ) -> Bins | None:  # fmt: skip
        """Weights of ``rows`` over ``norm`` in bins of ``level`` keys over ``cols``, which start at a bin.

        With ``draw`` they are dropped weights.
        None once cancelled.
        """
        n, left = len(rows), cols[0]
        lo, hi = self._scores.span(rows)
        lo, hi = max(lo // level * level, left), min(-(-hi // level) * level, cols[1])  # whole bins
        n_bins = -(-(hi - lo) // level) if hi > lo else 0
        dtype = self._scores.dtype
        top, total = (self._space.get(name, (n_bins, n), dtype, self._device) for name in ("tops", "sums"))
        plain = self._plain and draw is None
        sets = self._sets(rows, lo, level, n_bins) if plain else torch.empty_like(top, dtype=torch.uint8)
        if plain and level == 1:
            total = top  # a cell is the sum of itself
        bins = Bins(rows, lo, level, top, total, sets, norm, self._sound(norm))
        width = max(self._keys_for(n) // level, 1)
        block = self._block(rows)
        lse = norm.lse if plain else norm.highest
        for first_bin in range(0, n_bins, width):
            if self._cancelled():
                return None
            part = slice(first_bin, min(first_bin + width, n_bins))
            first, end = lo + part.start * level, min(lo + part.stop * level, hi)
            if plain and level == 1:
                self._tile(block, rows, (first, end), 1, out=top[part])
                self._rounded(torch.exp2(top[part].sub_(lse), out=top[part]))  # of a plain head no sum loses its mass
                continue
            cells = self._tile(block, rows, (first, end), level).sub_(norm.highest)
            grouped = cells.view(-1, level, n)
            if plain:
                self._rounded(torch.exp2(torch.amax(grouped, 1, out=top[part]), out=top[part]).div_(norm.mass))
                torch.sum(torch.exp2(grouped, out=grouped), 1, out=total[part]).div_(norm.mass)
                continue
            weights = self._rounded(torch.exp2(cells, out=cells).div_(norm.mass))
            if self._by_counts:
                some = self._counted(weights, rows, (first, end), level, draw)
            else:
                some = self._general(weights[: end - first], rows, (first, end), level, draw)
            top[part], total[part], sets[part] = some.top, some.total, some.sets
            bins.zeros += some.zeros
            bins.dropped += some.dropped
        return bins

    @property
    def _by_counts(self) -> bool:
        """Whether visible cells need only be counted: hidden ones weigh 0, and runs tell how many are visible."""
        mask = self._scores.mask
        return mask is None or (self._scores.hides and mask.plane is None)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self._scores.queries), len(self._scores.keys)

    def _counted(self, weights: Tensor, rows: range, cols: tuple[int, int], level: int, draw: Draw | None) -> Bins:
        """Bins of a tile in which hidden cells and what fills up the last bin weigh 0; ``weights`` are written over."""
        (first, end), n = cols, len(rows)
        seen, sets = self._visible(rows, first, level, len(weights) // level)
        kept_cells = seen
        if draw is not None:
            kept = self._space.get("kept", (len(weights), n), weights.dtype, self._device)
            kept[: end - first] = draw.kept(rows, cols, self._shape, self._device)
            kept[end - first :] = 0
            narrow = self._scores.queries.dtype
            factor = torch.ones((), dtype=narrow).div_(1 - draw.p).item()  # as nn.Dropout rounds it
            self._rounded(weights.mul_(kept).mul_(factor))
            self._hide(kept[: end - first], rows, cols, 0.0)
            kept_cells = kept.view(-1, level, n).sum(1).to(torch.int32)
        grouped = weights.view(-1, level, n)
        top, total = grouped.amax(1), grouped.sum(1)
        ordinary = kept_cells
        if not self._plain:
            ordinary = (weights != 0).to(weights.dtype).view(-1, level, n).sum(1).to(torch.int32)
        zero, dropped = kept_cells - ordinary, seen - kept_cells
        for kind, count in (CellClass.ORDINARY, ordinary), (CellClass.ZERO, zero), (CellClass.DROPPED, dropped):
            sets = sets | (count > 0).to(torch.uint8) * int(kind)
        top.masked_fill_(ordinary == 0, -math.inf)
        return Bins(rows, first, level, top, total, sets, zeros=int(zero.sum()), dropped=int(dropped.sum()))

    def _general(self, weights: Tensor, rows: range, cols: tuple[int, int], level: int, draw: Draw | None) -> Bins:
        """Bins of a tile whose cells must be looked at one by one; ``weights`` are written over."""
        scores, mask = self._scores, self._scores.mask
        masked = None if mask is None else mask.hidden(rows, cols, self._device).t()
        if masked is not None and not scores.hides:
            masked = masked & (weights == 0)  # a finite fill lets hidden cells weigh something
        dropped = None
        if draw is not None:
            dropped = ~draw.kept(rows, cols, self._shape, self._device)
            narrow = scores.queries.dtype
            factor = torch.ones((), dtype=narrow).div_(1 - draw.p).item()  # as nn.Dropout rounds it
            weights = self._rounded(weights.masked_fill_(dropped & ~torch.isnan(weights), 0).mul_(factor))
        padded = (0, 0) if mask is None else mask.padded
        return binned(weights, rows, cols[0], level, weights=True, masked=masked, padded=padded, dropped=dropped)

    # --------------------------------------------------------------------------------------------------------- a tile

    def _keys_for(self, n_rows: int) -> int:
        """Keys of a tile of so many rows: as many cells as in a full one, so that a probed row takes few steps."""
        return max(self._tile_keys, min(self._tile_keys * CPU_TILE[0] // max(n_rows, 1), 1 << 15))

    def _block(self, rows: range) -> Tensor:
        """Queries of ``rows`` (D, rows), with scale and log₂e in them where that is one rounding."""
        scores = self._scores
        queries = scores.queries[rows.start : rows.stop : rows.step]
        if scores.half:
            return queries.t()
        factor = scores.scale if scores.soft_cap is not None else scores.scale * LOG2E
        return (queries * factor).t()

    def _product(self, block: Tensor, cols: tuple[int, int], level: int, out: Tensor | None = None) -> Tensor:
        """S · log₂e of a tile (keys, rows) before the mask; what fills up the last bin is −∞."""
        scores, n = self._scores, block.shape[1]
        first, end = cols
        whole = -(-(end - first) // level) * level
        cells = self._space.get("cells", (whole, n), scores.dtype, self._device) if out is None else out
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
                seen.div_(scores.soft_cap).tanh_().mul_(scores.soft_cap).mul_(LOG2E)
        if whole > end - first:
            cells[end - first :] = -math.inf
        return cells

    def _tile(
        self, block: Tensor, rows: range, cols: tuple[int, int], level: int, out: Tensor | None = None
    ) -> Tensor:  # fmt: skip
        """S · log₂e of a tile after the mask, in ``out`` (keys, rows) if it is given."""
        cells = self._product(block, cols, level, out)
        fill = self._scores.fill
        self._hide(cells, rows, cols, fill if math.isinf(fill) else max(fill * LOG2E, self._lowest))
        return cells

    def _hide(self, cells: Tensor, rows: range, cols: tuple[int, int], value: float) -> None:
        """Write ``value`` over the hidden cells of a tile."""
        mask = self._scores.mask
        if mask is None:
            return
        (first, end), (lo, hi) = cols, mask.open_span(rows)
        for a, b in ((first, min(end, lo)), (max(first, hi), end)) if lo < hi else (cols,):
            if a < b:
                cells[a - first : b - first].masked_fill_(self._hidden(mask, rows, (a, b)), value)

    def _hidden(self, mask: Mask, rows: range, cols: tuple[int, int]) -> Tensor:
        """Hidden cells, bool (columns, rows)."""
        key = mask, rows, cols, self._device
        return self._space.recall("hidden", key, lambda: mask.hidden(rows, cols, self._device).t().contiguous())

    def _sound(self, norm: Norm) -> Tensor | None:
        """Rows whose weights are numbers; None where all are, which is known of a plain head that sees something."""
        mask = self._scores.mask
        return None if self._plain and (mask is None or mask.steady) else norm.sound

    def _rounded(self, weights: Tensor) -> Tensor:
        """``weights`` as the spec's dtype holds them; in place."""
        return weights.copy_(weights.to(self._scores.queries.dtype)) if self._scores.half else weights

    def _sets(self, rows: range, left: int, level: int, n_bins: int) -> Tensor:
        """Classes (bins, rows) of a plain head: ordinary where a key is visible, masked and padded where one is not."""
        mask, n_keys = self._scores.mask, len(self._scores.keys)
        if mask is not None and mask.plane is not None:
            cols = left, min(left + n_bins * level, n_keys)
            hidden = mask.hidden(rows, cols, self._device).t()
            ones = torch.ones_like(hidden, dtype=torch.float32)
            return binned(ones, rows, left, level, weights=True, masked=hidden).sets
        lo, hi = (0, n_keys) if mask is None else mask.open_span(rows)
        if lo <= left and min(left + n_bins * level, n_keys) <= hi:  # nothing is hidden here
            return torch.full((n_bins, len(rows)), int(CellClass.ORDINARY), dtype=torch.uint8, device=self._device)
        if self._group_sets and level > 1 and rows.step == 1 and mask is not None and mask.steady:
            starts, group = range(left, left + n_bins * level, level), min(level, len(rows))
            return self._space.recall(
                "sets", (mask, rows, level, starts, n_keys, self._device),
                lambda: grouped_sets(mask, rows, group, starts, n_keys, self._device),
            )  # fmt: skip
        seen, sets = self._visible(rows, left, level, n_bins)
        return sets + (seen > 0).to(torch.uint8)  # CellClass.ORDINARY is 1

    def _visible(self, rows: range, left: int, level: int, n_bins: int) -> tuple[Tensor, Tensor]:
        """Visible keys int32 (bins, rows), and the classes uint8 of those that are not."""
        mask, n_keys = self._scores.mask, len(self._scores.keys)
        if mask is not None:
            return visible_counts(mask, rows, range(left, left + n_bins * level, level), n_keys, self._device)
        starts = torch.arange(left, left + n_bins * level, level, dtype=torch.int32, device=self._device)[:, None]
        seen = (starts + level).clamp_max_(n_keys).sub(starts).expand(-1, len(rows))
        return seen, torch.zeros(seen.shape, dtype=torch.uint8, device=self._device)
