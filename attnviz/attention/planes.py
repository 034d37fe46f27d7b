"""Tiles of pixels, put together from rows of pixels as they come in from sweeps in any order."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz.attention.bins import Bins
from attnviz.attention.masks import Mask
from attnviz.attention.pixel_rows import FACTORS, PixelRows
from attnviz.attention.pooling import Pooled, Region, pooled_max, to_numpy
from attnviz.frames import CellClass, Counts
from attnviz.spec import Pooling


def side_of(level: int) -> int:
    """Pixels along the side of a tile: fewer where each pixel costs many cells, and a window's edge is dear."""
    return 256 if level <= 4 else 128


@dataclass(frozen=True, slots=True)
class Place:
    """Which tile: ``level`` × ``level`` cells a pixel, and the tile's own row and column among those of that level."""

    level: int
    row: int
    col: int

    def region(self, shape: tuple[int, int]) -> Region:
        """The cells of the tile in a map of ``shape``."""
        side = side_of(self.level) * self.level
        rows, cols = ((n * side, min((n + 1) * side, end)) for n, end in zip((self.row, self.col), shape, strict=True))
        return Region(rows, cols, self.level)


class Planes:
    """One tile of one head: the largest cell, the sum, and the classes of each pixel. Threads: any.

    Previews fold in some of a pixel's rows; the first exact rows replace them. ``weights`` says that factors matter;
    where a pixel is a cell, the rows' factors are kept in place of planes of their own. Without ``means`` there are
    sums for no factor but the first.
    """

    def __init__(
        self, place: Place, shape: tuple[int, int], dtype: torch.dtype, *, weights: bool, means: bool = True
    ) -> None:  # fmt: skip
        self.region = place.region(shape)
        level = place.level
        self.n_rows, self.n_cols = (-(-(b - a) // level) for a, b in (self.region.rows, self.region.cols))
        n_factors = len(FACTORS) if weights else 1
        self.factors = torch.ones((n_factors, self.n_rows), dtype=dtype) if level == 1 else None
        self.top = torch.full((1 if level == 1 else n_factors, self.n_rows, self.n_cols), -math.inf, dtype=dtype)
        self.total = self.top if level == 1 else torch.zeros_like(self.top if means else self.top[:1])
        self.sets = torch.zeros((self.n_rows, self.n_cols), dtype=torch.uint8)
        self.folded = np.zeros(self.n_rows, np.intp)  # rows of each pixel row that have come in
        self.exact = np.zeros(self.n_rows, np.intp)  # those that came in to stay
        self._came: set[int] = set()  # first rows of the exact blocks that have come in
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        planes = (self.top, self.sets) if self.total is self.top else (self.top, self.total, self.sets)
        return sum(plane.nbytes for plane in planes)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Nothing is folded in while the block runs; keep it short."""
        with self._lock:
            yield

    def holds(self, rows: tuple[int, int]) -> bool:
        """Whether the tile's part of ``rows`` (whole rows of pixels) is exact; once it is, it stays so."""
        level, (top, bottom) = self.region.level, self.region.rows
        first, last = max(rows[0], top), min(rows[1], bottom)
        if first >= last:
            return True
        pixels = slice((first - top) // level, -(-(last - top) // level))
        return int(self.exact[pixels].sum()) >= last - first

    def fold(self, found: PixelRows, outside: Tensor | None, *, preview: bool) -> None:
        """Take in rows of pixels of the same level as the tile, where each is several cells.

        ``outside`` uint8 (columns of the tile,) are the classes where the bins do not reach.
        """
        level = self.region.level
        first = (found.rows.start - self.region.rows[0]) // level
        left = found.left - self.region.cols[0] // level
        a, b = max(left, 0), max(min(left + found.n_bins, self.n_cols), 0)
        pixels, cols = slice(first, first + len(found.heights)), slice(a, max(a, b))
        part = slice(cols.start - left, cols.stop - left)
        with self._lock:
            if found.rows.start in self._came or (preview and self.exact[pixels].any()):
                return
            if not preview:
                self._came.add(found.rows.start)
            self._make_room(pixels, found.heights, preview=preview)
            if cols.start < cols.stop:
                seen = self.top[:, pixels, cols]
                torch.maximum(seen, found.top[: len(seen), :, part], out=seen)
                if self.total is not self.top:
                    self.total[:, pixels, cols] += found.total[: len(self.total), :, part]
                self.sets[pixels, cols] |= found.sets[:, part]
            for where in self._beyond(cols):
                self._put_outside(pixels, where, found.sound, outside)

    def put(self, bins: Bins, factors: Sequence[Tensor], outside: Tensor | None) -> list[float]:
        """`fold` where a pixel is a cell: nothing to pool, and rows come once. The largest finite cell by factor.

        ``factors`` are (rows,) for all of `FACTORS` but the first.
        """
        assert self.factors is not None  # noqa: S101 (there are tiles of cells and tiles of more)
        first, left = bins.rows.start - self.region.rows[0], bins.left - self.region.cols[0]
        a, b = max(left, 0), max(min(left + len(bins.top), self.n_cols), 0)
        rows, cols = slice(first, first + len(bins.rows)), slice(a, max(a, b))
        part = slice(cols.start - left, cols.stop - left)
        top, sets = bins.top[part].t(), bins.sets[part].t()
        if bins.sound is not None:
            top = torch.where(bins.sound[:, None], top, math.nan)
            sets = torch.where(bins.sound[:, None], sets, int(CellClass.NAN)).to(torch.uint8)
        top = top.cpu()
        finite = top if bins.sound is None else torch.where(torch.isfinite(top), top, -math.inf)
        largest = finite.amax(1) if finite.shape[1] else torch.full((len(bins.rows),), -math.inf)
        with self._lock:
            self.top[0, rows, cols], self.sets[rows, cols] = top, sets.cpu()
            for place, factor in enumerate(factors, 1):
                self.factors[place, rows] = factor.to("cpu", self.factors.dtype)
            self.folded[rows] = self.exact[rows] = 1
            for where in self._beyond(cols):
                self.top[0, rows, where], self.sets[rows, where] = -math.inf, 0
                self._put_outside(rows, where, None if bins.sound is None else bins.sound.cpu()[:, None], outside)
            return [float((largest * self.factors[n, rows]).max()) for n in range(len(self.factors))]

    def _beyond(self, cols: slice) -> tuple[slice, ...]:
        """Columns of the tile that are not ``cols``."""
        return (slice(0, cols.start), slice(cols.stop, self.n_cols)) if cols.start < cols.stop else (slice(None),)

    def _make_room(self, pixels: slice, heights: npt.NDArray[np.intp], *, preview: bool) -> None:
        """Count rows that come in; the first exact ones take the place of previews."""
        replaced = (self.folded[pixels] > 0) & (self.exact[pixels] == 0)
        if not preview and replaced.any():
            clear = np.flatnonzero(replaced) + pixels.start
            self.top[:, clear] = -math.inf
            if self.total is not self.top:
                self.total[:, clear] = 0
            self.sets[clear] = 0
            self.folded[clear] = 0
        self.folded[pixels] += heights
        if not preview:
            self.exact[pixels] += heights

    def _put_outside(self, pixels: slice, where: slice, sound: Tensor | None, outside: Tensor | None) -> None:
        """Pixels that the bins do not reach: hidden throughout, or NaN with their row."""
        seen = self.sets[pixels, where]
        if not seen.numel():
            return
        classes = torch.full((self.n_cols,), int(CellClass.MASKED), dtype=torch.uint8) if outside is None else outside
        if sound is None:
            seen |= classes[where]
            return
        some = sound.any(1)
        lost = ~sound.all(1)
        seen |= torch.where(some[:, None], classes[where], 0).to(torch.uint8)
        seen |= lost.to(torch.uint8)[:, None] * int(CellClass.NAN)
        for plane in (self.top, self.total):
            plane[:, pixels, where] = torch.where(lost[:, None], math.nan, plane[:, pixels, where])


# -------------------------------------------------------------------------------------------------------- assembling


def assemble(
    tiles: Mapping[tuple[int, int], Planes], region: Region, shape: tuple[int, int], pooling: Pooling, factor: str,
    *, blank: float, counts: Counts,
) -> Pooled:  # fmt: skip
    """Pixels of ``region`` (at the tiles' level or a coarser one) from ``tiles`` by (row, column).

    ``tiles`` may be folded into meanwhile: each is copied at one moment, and exact is what all of them were then.
    ``blank`` is what stands in a pixel without an ordinary cell.
    """
    some = next(iter(tiles.values()))
    n_factors = len(some.top) if some.factors is None else len(some.factors)
    level, which = some.region.level, FACTORS.index(factor) if n_factors > 1 else 0
    first_row, first_col = region.rows[0] // level, region.cols[0] // level
    n_rows, n_cols = -(-region.rows[1] // level) - first_row, -(-region.cols[1] // level) - first_col
    top = torch.full((2, n_rows, n_cols), -math.inf, dtype=some.top.dtype)
    total = torch.zeros_like(top)
    sets = torch.zeros((n_rows, n_cols), dtype=torch.uint8)
    folded = torch.zeros(n_rows, dtype=torch.int64)
    exact = True
    for (tile_row, tile_col), tile in tiles.items():
        rows = _overlap(first_row, n_rows, tile_row * side_of(level), tile.n_rows)
        cols = _overlap(first_col, n_cols, tile_col * side_of(level), tile.n_cols)
        if rows is None or cols is None:
            continue
        (to_r, from_r), (to_c, from_c) = rows, cols
        with tile.reading():  # what is copied and whether that is exact are of one moment
            exact = exact and tile.holds(region.rows)
            for n, factor_place in enumerate((0, which)):
                if tile.factors is not None:
                    top[n, to_r, to_c] = tile.top[0, from_r, from_c] * tile.factors[factor_place, from_r, None]
                    continue
                top[n, to_r, to_c] = tile.top[factor_place, from_r, from_c]
                total[n, to_r, to_c] = tile.total[min(factor_place, len(tile.total) - 1), from_r, from_c]
            sets[to_r, to_c] = tile.sets[from_r, from_c]
            folded[to_r] = torch.from_numpy(tile.folded[from_r])
    if level == 1:
        total = torch.where(torch.isneginf(top), 0, top)
    times = region.level // level
    widths = torch.full((n_cols,), level)
    widths[-1] = min(level, shape[1] - (first_col + n_cols - 1) * level)
    if times > 1:
        top = torch.stack([pooled_max(plane, times) for plane in top])
        total, folded = _summed(total, times), _summed(folded[None, :, None], times, 1)[0, :, 0]
        widths = _summed(widths[None, None], 1, times)[0, 0]
        sets = _union(sets, times)
    empty = sets & int(CellClass.ORDINARY | CellClass.NAN) == 0
    planes = []
    for n in range(2):
        plane = top[n]
        if pooling != "max":
            plane = total[n] / (folded.clamp_min(1)[:, None] * (1 if pooling == "share" else widths))
        planes.append(plane.masked_fill(empty, blank))
    ordinary = planes[1][(sets & int(CellClass.ORDINARY) != 0) & torch.isfinite(planes[1])]
    low, high = (float(ordinary.amin()), float(ordinary.amax())) if ordinary.numel() else (math.nan, math.nan)
    values = to_numpy(planes[0])
    shades = values if which == 0 else to_numpy(planes[1])
    classes = sets.numpy()
    classes.flags.writeable = False
    return Pooled(region, values, shades, classes, low, high, counts, exact=exact)


def outside_sets(mask: Mask | None, region: Region) -> Tensor | None:
    """Classes (columns of the region,) of pixels in which nothing is visible; None where all are simply masked."""
    if mask is None or mask.padded[0] == mask.padded[1]:
        return None
    level, (first, end) = region.level, mask.padded
    starts = torch.arange(region.cols[0], region.cols[1], level)
    ends = (starts + level).clamp_max(region.cols[1])
    stuffed = (ends.clamp_max(end) - starts.clamp_min(first)).clamp_min(0)
    sets = (stuffed > 0).to(torch.uint8) * int(CellClass.PADDED)
    return sets + (ends - starts > stuffed).to(torch.uint8) * int(CellClass.MASKED)


def _overlap(first: int, count: int, tile_first: int, tile_count: int) -> tuple[slice, slice] | None:
    a, b = max(first, tile_first), min(first + count, tile_first + tile_count)
    return (slice(a - first, b - first), slice(a - tile_first, b - tile_first)) if a < b else None


def _summed(planes: Tensor, rows: int, cols: int | None = None) -> Tensor:
    """Sums over rows × cols blocks of each plane (n, r, c), the last ones partial."""
    cols = rows if cols is None else cols
    short = (0, -planes.shape[2] % cols, 0, -planes.shape[1] % rows)
    padded = torch.nn.functional.pad(planes, short)
    n, r, c = padded.shape
    return padded.view(n, r // rows, rows, c // cols, cols).sum((2, 4))


def _union(sets: Tensor, times: int) -> Tensor:
    union = torch.zeros((-(-sets.shape[0] // times), -(-sets.shape[1] // times)), dtype=torch.uint8)
    for kind in CellClass:
        union |= pooled_max(sets & int(kind), times)
    return union
