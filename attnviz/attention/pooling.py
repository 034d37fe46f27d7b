"""Cells to pixels: the brightest of level × level cells, and the set of classes that a pixel covers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 (the name everyone reads it by)
from torch import Tensor

from attnviz.frames import CellClass, Counts
from attnviz.spec import Pooling


@dataclass(frozen=True, slots=True)
class Region:
    """Which cells become pixels: half-open ``rows`` and ``cols``, in bins of ``level`` from their own first cell on.

    Where a picture is put together of several of them they are aligned to ``level`` (or to the map's end).
    """

    rows: tuple[int, int]
    cols: tuple[int, int]
    level: int

    @classmethod
    def aligned(cls, rows: tuple[int, int], cols: tuple[int, int], shape: tuple[int, int], level: int) -> Region:
        """The smallest region of whole bins that covers ``rows`` × ``cols`` of a map of ``shape``."""

        def align(span: tuple[int, int], end: int) -> tuple[int, int]:
            first = min(max(span[0], 0), end - 1) // level * level
            return first, min(max(-(-span[1] // level) * level, first + 1), end)

        return cls(align(rows, shape[0]), align(cols, shape[1]), level)

    def of(self, cells: Tensor) -> Tensor:
        return cells[..., self.rows[0] : self.rows[1], self.cols[0] : self.cols[1]]

    def covers(self, shape: tuple[int, int]) -> bool:
        return self.rows == (0, shape[0]) and self.cols == (0, shape[1])


@dataclass(slots=True, eq=False)
class Panel:
    """One panel's cells (R, C) on its device, with the planes that classify them."""

    name: str
    head: int | None
    cells: Tensor
    masked: Tensor | None = None
    dropped: Tensor | None = None
    row_sums: Tensor | None = None  # three-step's, before dividing
    padded: tuple[int, int] = (0, 0)  # the run of keys whose masked cells are padding
    visible: Tensor | None = None  # keys that each row sees, int64 (R,); None: all of them


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """One panel's pixels before colouring.

    ``values`` (r, c) float, ``shades`` the same times the row factor (the same array where there is none),
    ``classes`` uint8 (r, c), ``low`` and ``high`` over the finite ordinary cells of the *whole* map (nan if none)
    after the row factor (of the pixels, where they are means), ``counts`` of the whole map.
    """

    region: Region
    values: npt.NDArray[np.floating[Any]]
    shades: npt.NDArray[np.floating[Any]]
    classes: npt.NDArray[np.uint8]
    low: float
    high: float
    counts: Counts
    row_sums: npt.NDArray[np.float64] | None = None
    exact: bool = True


RowNorm = Literal["plain", "uniform", "per-row"]


class PanelPooler:
    """Pools the panels of one stage: what all heads share (the mask's pixels) is made once.

    ``nonnegative`` says that the cells are weights: a zero is then a class of its own, and rows have sums.
    ``row_norm`` scales the shades: *uniform* by the row's visible keys, *per-row* by one over its largest weight.
    ``pooling`` is what a pixel of several cells shows; a mean counts every cell, those without an ordinary number as 0,
    and of ``signed`` numbers the maximum is the one furthest from 0.
    """

    def __init__(
        self, region: Region, *, nonnegative: bool, row_norm: RowNorm = "plain", pooling: Pooling = "max",
        signed: bool = False,
    ) -> None:  # fmt: skip
        self._region = region
        self._pooling: Pooling = pooling if region.level > 1 else "max"
        self._nonnegative, self._signed = nonnegative, signed
        self._row_norm = row_norm if nonnegative else "plain"
        self._mask: tuple[Tensor | None, int] | None = None
        self._lock = threading.Lock()

    def pool(self, panel: Panel) -> Pooled:
        """The pixels of one panel."""
        cells, masked = panel.cells, panel.masked
        with self._lock:  # several threads pool the heads of one stage
            if self._mask is None or self._mask[0] is not masked:
                self._mask = masked, 0 if masked is None else _n_hidden(masked)
            n_masked = self._mask[1]
        sums = sums_of(cells) if self._nonnegative else None
        padded = panel.padded[0] < panel.padded[1]
        plain = sums is not None and panel.dropped is None and not padded and bool(torch.isfinite(sums).all())
        if plain:
            plain = cells.numel() - n_masked == int(torch.count_nonzero(cells))
        pooled = self._pool_plain(panel) if plain else self._pool_any(panel)
        if sums is None:
            return pooled
        return replace(pooled, row_sums=_frozen(sums[slice(*self._region.rows)].to("cpu", torch.float64).numpy()))

    def _shaded(self, panel: Panel) -> Tensor:
        cells = panel.cells
        if self._row_norm == "plain":
            return cells
        if self._row_norm == "uniform":
            visible = panel.visible
            return cells * (cells.shape[1] if visible is None else visible.to(cells)[:, None])
        largest = torch.nan_to_num(cells).amax(1, keepdim=True)
        return cells / torch.where(largest > 0, largest, torch.ones_like(largest))

    def _pool_plain(self, panel: Panel) -> Pooled:
        """Weights without a visible zero, NaN or dropped cell: masked cells are exactly 0 and cannot win."""
        cells, masked = panel.cells, panel.masked
        with self._lock:
            classes = _plain_classes(masked, self._region, (cells.shape[0], cells.shape[1]))
        values = self._pool_plane(self._region.of(cells))
        shaded = self._shaded(panel)
        shades = values if shaded is cells else self._pool_plane(self._region.of(shaded))
        whole = self._region.covers((cells.shape[0], cells.shape[1])) or self._pooling != "max"
        high = float((shades if whole else shaded).amax())
        counts = Counts(cells=cells.numel(), masked=self._mask[1] if self._mask else 0)
        return self._pooled(values, shades, classes, 0.0, high, counts)

    def _pool_any(self, panel: Panel) -> Pooled:
        cells = panel.cells
        nan = torch.isnan(cells)
        planes = {CellClass.NAN: nan}
        hidden = nan
        masked, stuffed = panel.masked, None
        if masked is not None and panel.padded[0] < panel.padded[1]:
            stuffed = torch.zeros_like(masked)
            stuffed[:, slice(*panel.padded)] = masked[:, slice(*panel.padded)]
            masked = masked & ~stuffed
        classed = (CellClass.PADDED, stuffed), (CellClass.MASKED, masked), (CellClass.DROPPED, panel.dropped)
        for kind, plane in classed:
            if plane is not None:
                planes[kind] = plane & ~hidden
                hidden = hidden | plane
        if self._nonnegative:
            planes[CellClass.ZERO] = (cells == 0) & ~hidden
            hidden = hidden | planes[CellClass.ZERO]
        ordinary = planes[CellClass.ORDINARY] = ~hidden
        counted = {kind: int(plane.sum()) for kind, plane in planes.items()}
        counts = Counts(
            cells=cells.numel(), masked=counted.get(CellClass.MASKED, 0), zero=counted.get(CellClass.ZERO, 0),
            nan=counted[CellClass.NAN], dropped=counted.get(CellClass.DROPPED, 0),
            padded=counted.get(CellClass.PADDED, 0),
        )  # fmt: skip
        values = self._pool_ordinary(cells, ordinary)
        shaded = self._shaded(panel)
        shades = values if shaded is cells else self._pool_ordinary(shaded, ordinary)
        finite = shaded[ordinary & torch.isfinite(shaded)]
        if self._pooling != "max":
            covered = pooled_max(self._region.of(ordinary).to(torch.uint8), self._region.level).bool()
            finite = shades[covered & torch.isfinite(shades)]
        low, high = (float(finite.amin()), float(finite.amax())) if finite.numel() else (float("nan"), float("nan"))
        return self._pooled(values, shades, self._class_plane(planes), low, high, counts)

    def _pool_plane(self, cells: Tensor) -> Tensor:
        """Every cell's part in each bin."""
        if self._pooling == "max":
            return (pooled_furthest if self._signed else pooled_max)(cells, self._region.level)
        return pooled_mean(cells, self._region.level, share=self._pooling == "share")

    def _pool_ordinary(self, cells: Tensor, ordinary: Tensor) -> Tensor:
        """The ordinary cells' part in each bin; where there is none, what was computed there (0, −∞ or NaN)."""
        level = self._region.level
        if level == 1:
            return self._region.of(cells)
        nothing = float("-inf") if self._pooling == "max" and not self._signed else 0.0
        best = self._pool_plane(self._region.of(cells.masked_fill(~ordinary, nothing)))
        else_best = pooled_max(self._region.of(cells), level)
        covered = pooled_max(self._region.of(ordinary).to(torch.uint8), level).bool()
        return torch.where(covered & ~torch.isnan(else_best), best, else_best)

    def _pooled(
        self, values: Tensor, shades: Tensor, classes: npt.NDArray[np.uint8], low: float, high: float, counts: Counts
    ) -> Pooled:
        array = to_numpy(values)
        return Pooled(self._region, array, array if shades is values else to_numpy(shades), classes, low, high, counts)

    def _class_plane(self, planes: dict[CellClass, Tensor]) -> npt.NDArray[np.uint8]:
        return _class_plane(planes, self._region)


def sums_of(cells: Tensor) -> Tensor:
    """Each row's sum over all keys, in float32 at least; (R,)."""
    return cells.sum(-1, dtype=torch.promote_types(cells.dtype, torch.float32))


def _class_plane(planes: dict[CellClass, Tensor], region: Region) -> npt.NDArray[np.uint8]:
    sets: Tensor | None = None
    for kind, plane in planes.items():
        bits = pooled_max(region.of(plane).to(torch.uint8), region.level) * int(kind)
        sets = bits if sets is None else sets | bits
    assert sets is not None  # noqa: S101 (every stage has at least one class)
    return _frozen(sets.cpu().numpy())


@lru_cache(maxsize=1)
def _n_hidden(masked: Tensor) -> int:
    return int(masked.sum())


@lru_cache(maxsize=2)
def _plain_classes(masked: Tensor | None, region: Region, shape: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Classes of a map without a visible zero: one mask serves every edit that leaves it as it is."""
    visible = torch.ones(shape, dtype=torch.bool) if masked is None else ~masked
    return _class_plane({CellClass.MASKED: ~visible, CellClass.ORDINARY: visible}, region)


def pooled_max(cells: Tensor, level: int) -> Tensor:
    """Maximum over level × level bins aligned to the first cell, the last bins partial; NaN wins. Shape (r, c)."""
    if level == 1:
        return cells.contiguous()
    n_rows, n_cols = cells.shape
    down, across = (min(level, max(length, 1)) for length in (n_rows, n_cols))  # a short side is one bin, unpadded
    pad_rows, pad_cols = -n_rows % down, -n_cols % across
    if pad_rows or pad_cols:
        lowest = float("-inf") if cells.is_floating_point() else 0
        cells = F.pad(cells, (0, pad_cols, 0, pad_rows), value=lowest)
    rows = cells.reshape(cells.shape[0] // down, down, cells.shape[1]).amax(1)
    return rows.reshape(rows.shape[0], -1, across).amax(2)


def pooled_furthest(cells: Tensor, level: int) -> Tensor:
    """The number furthest from 0, with its sign, over bins as in `pooled_max`; NaN wins."""
    up, down = pooled_max(cells, level), -pooled_max(-cells, level)
    return torch.where(down.abs() > up.abs(), down, up)


def pooled_mean(cells: Tensor, level: int, *, share: bool = False) -> Tensor:
    """Mean over level × level bins as in `pooled_max`, or with ``share`` the mean over rows of sums over columns."""
    n_rows, n_cols = cells.shape
    wide = cells.to(torch.promote_types(cells.dtype, torch.float32))
    down, across = (min(level, max(length, 1)) for length in (n_rows, n_cols))
    wide = F.pad(wide, (0, -n_cols % across, 0, -n_rows % down))
    rows = wide.view(-1, down, wide.shape[1]).sum(1)
    sums = rows.view(rows.shape[0], -1, across).sum(2)
    heights, widths = (
        torch.clamp(end - torch.arange(0, end, level, device=cells.device), max=level) for end in (n_rows, n_cols)
    )
    return sums / (heights[:, None] * (1 if share else widths))


def to_numpy(cells: Tensor) -> npt.NDArray[np.floating[Any]]:
    """A read-only copy on the CPU: float64 stays, every other dtype becomes float32, which holds it exactly."""
    wide = cells.detach().to("cpu", torch.float64 if cells.dtype == torch.float64 else torch.float32)
    array: npt.NDArray[np.floating[Any]] = wide.numpy()
    return _frozen(np.array(array))


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
