"""What bins of keys hold for each row: the largest cell, the sum, the classes; and rows' denominators."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnviz.attention.dropout import keep_portable
from attnviz.attention.masks import Mask
from attnviz.frames import CellClass


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

    ``top`` (bins, rows) is the largest ordinary cell, −∞ where there is none; ``total`` the sum of the ordinary
    ones; ``sets`` uint8 the classes, of each row or of each group of ``level`` rows, whichever there is. Outside of
    the bins every cell is hidden. ``norm`` is the rows' denominator, where a sweep over all keys found it. A row
    that is not in ``sound`` (rows,) is NaN throughout, whatever its bins say; None means that all are sound.
    ``low`` is the lowest finite ordinary cell (nan if none, or if nobody asked), ``zeros`` and ``dropped`` count
    cells. So does ``nans``, of scores: all of them, those that are masked, and those that are padding.
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
    nans: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Draw:
    """One head's dropout by the portable generator."""

    seed: int
    head: int
    p: float

    def kept(self, rows: range, cols: tuple[int, int], shape: tuple[int, int], device: torch.device) -> Tensor:
        """Cells that are kept, bool (columns, rows) as tiles lie, of a map of ``shape`` (queries, keys)."""
        return keep_portable(
            seed=self.seed, site="weights", batch_item=0, head=self.head, n_queries=shape[0], n_columns=shape[1],
            p=self.p, rows=rows, cols=cols, device=device, columns_first=True,
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
    cells = cells.to(torch.promote_types(cells.dtype, torch.float32))  # sums of half precision would overflow
    spoilt = some(nan).bool()
    top = grouped(cells.masked_fill(other, -math.inf), -math.inf).amax(1).masked_fill_(spoilt, math.nan)
    total = grouped(cells.masked_fill(other, 0), 0).sum(1).masked_fill_(spoilt, math.nan)
    low, nans = math.nan, (0, 0, 0)
    if not weights:
        if bool(spoilt.any()):
            nans = _nans(nan, masked, padded, left)
        finite = cells.masked_fill(other | ~torch.isfinite(cells), math.inf)
        low = float(finite.amin()) if finite.numel() else math.inf
        low = low if math.isfinite(low) else math.nan
    return Bins(rows, left, level, top, total, sets, low=low, zeros=n_zeros, dropped=n_dropped, nans=nans)


def _nans(nan: Tensor, masked: Tensor | None, padded: tuple[int, int], left: int) -> tuple[int, int, int]:
    """How many cells (keys from ``left`` on, rows) are NaN, how many of them are masked, and how many padding."""
    if masked is None:
        return int(nan.sum()), 0, 0
    blind = nan & masked
    first, end = (min(max(edge - left, 0), len(nan)) for edge in padded)
    stuffed = int(blind[first:end].sum())
    return int(nan.sum()), int(blind.sum()) - stuffed, stuffed


def visible_counts(
    mask: Mask, rows: range, starts: range, n_keys: int, device: torch.device | str | None = None
) -> tuple[Tensor, Tensor]:
    """Visible keys int32 (bins, rows) of the bins that begin at ``starts``, and the classes uint8 of the others.

    From the runs of the mask alone: not for one with a plane.
    """
    runs = slice(rows.start, rows.stop, rows.step)
    first, end = (run[runs].to(device, torch.int32) for run in (mask.first, mask.end))
    seen, size, stuffed = _overlaps(mask, first, end, starts, n_keys, device)
    return seen, _hidden_sets(size - seen, stuffed)


def grouped_sets(
    mask: Mask, rows: range, group: int, starts: range, n_keys: int, device: torch.device | str | None = None
) -> Tensor:
    """Classes uint8 (bins, groups of rows) of a plain head under a steady mask, without a look at each row.

    Some row of a group sees what lies between its first run's start and its last one's end, and all of them what lies
    between its last one's start and its first one's end.
    """
    heads = rows[::group]
    tops = torch.tensor(list(heads))
    lasts = torch.tensor([min(top + group, rows.stop) - 1 for top in heads])
    outer, size, stuffed = _overlaps(mask, mask.first[tops], mask.end[lasts], starts, n_keys, device)
    inner, _, _ = _overlaps(mask, mask.first[lasts], mask.end[tops], starts, n_keys, device)
    return _hidden_sets(size - inner, stuffed) + (outer > 0).to(torch.uint8)  # CellClass.ORDINARY is 1


def _overlaps(
    mask: Mask, first: Tensor, end: Tensor, starts: range, n_keys: int, device: torch.device | str | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Keys int32 (bins, runs) of each run in each bin, keys (bins, 1) of each bin, and those that are padding."""
    first, end = (run.to(device, torch.int32) for run in (first, end))
    bin_first = torch.arange(starts.start, starts.stop, starts.step, dtype=torch.int32, device=device)[:, None]
    bin_end = (bin_first + starts.step).clamp_max(n_keys)
    seen = (torch.minimum(bin_end, end) - torch.maximum(bin_first, first)).clamp_min_(0)
    pad_first, pad_end = mask.padded
    if pad_end <= pad_first:
        return seen, bin_end - bin_first, None
    return seen, bin_end - bin_first, (bin_end.clamp_max(pad_end) - bin_first.clamp_min(pad_first)).clamp_min(0)


def _hidden_sets(blind: Tensor, stuffed: Tensor | None) -> Tensor:
    if stuffed is None:
        return (blind > 0).to(torch.uint8).mul_(int(CellClass.MASKED))
    sets = (blind - stuffed > 0).to(torch.uint8).mul_(int(CellClass.MASKED))
    return sets + (stuffed > 0).to(torch.uint8) * int(CellClass.PADDED)
