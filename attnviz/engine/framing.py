"""Panels to frames: pools them, keeps one colour range for all heads, and colours the pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from attnviz import colour
from attnviz.attention.pooling import Panel, PanelPooler, Pooled, Region
from attnviz.frames import CellClass, Counts, Frame, Scale, level_for
from attnviz.spec import UNSIGNED_STAGES, WEIGHT_STAGES, View, Viewport

_WHOLE = float("inf"), float("-inf")  # a range that any value widens


class Framer:
    """Frames of one stage for one request. The range only widens within one generation.

    When it does, the heads already sent must be sent again, `recoloured`: now and then while more are to come, and at
    the end. ``n_future`` is the number of future
    cells of a map that stay visible in the end.
    """

    def __init__(self, view: View, viewport: Viewport, generation: int, *, n_keys: int, n_future: int) -> None:
        self._view, self._viewport, self._generation = view, viewport, generation
        self._n_keys, self._n_future = n_keys, n_future
        self._pooler: PanelPooler | None = None
        self._low, self._high = _WHOLE
        self._percentiles: tuple[float, float] | None = None
        self._scale: Scale | None = None
        self._sent: dict[str, tuple[int | None, Pooled]] = {}
        self._stale: set[str] = set()
        self._row_norm = view.norm if view.norm in ("uniform", "per-row") else "plain"
        self.pooled_for = (view.stage, viewport.rows, viewport.cols, viewport.pixels, self._row_norm, view.pooling)
        """Equal for two framers whose `pool` gives the same pixels."""

    def pool(self, panel: Panel) -> Pooled:
        """The panel's pixels before colouring. Thread: any."""
        if self._pooler is None:
            nonnegative = self._view.stage in WEIGHT_STAGES
            region = self.region((panel.cells.shape[0], panel.cells.shape[1]))
            self._pooler = PanelPooler(
                region, nonnegative=nonnegative, row_norm=self._row_norm, pooling=self._view.pooling,
                signed=self._view.stage not in UNSIGNED_STAGES,
            )  # fmt: skip
        return self._pooler.pool(panel)

    def frames(self, name: str, head: int | None, pooled: Pooled) -> Iterator[Frame]:
        """The panel's frame; where it widens the range, `recoloured` frames of the others are due."""
        self._sent.pop(name, None)
        scale = self._widened(pooled)
        if scale != self._scale and self._view.norm != "per-head":
            self._stale.update(self._sent)
        self._scale = scale
        self._sent[name] = head, pooled
        self._stale.discard(name)
        yield self._frame(name, head, pooled, scale)

    def recoloured(self) -> Iterator[Frame]:
        """Frames of the panels whose colours no longer say what the range says."""
        for name in [name for name in self._sent if name in self._stale]:
            assert self._scale is not None  # noqa: S101 (something was sent)
            self._stale.discard(name)
            yield self._frame(name, *self._sent[name], self._scale)

    def _widened(self, pooled: Pooled) -> Scale:
        if self._view.norm == "per-head":
            self._low, self._high = _WHOLE
        if not np.isnan(pooled.low):
            self._low, self._high = min(self._low, pooled.low), max(self._high, pooled.high)
        if self._view.norm == "percentile":
            self._widen_percentiles(pooled)
        low, high = (self._low, self._high) if self._low <= self._high else (0.0, 0.0)
        keys = self._n_keys / pooled.region.level if self._view.pooling == "share" else self._n_keys
        return colour.choose_scale(self._view.stage, self._view.norm, keys, low, high, self._percentiles)

    def _widen_percentiles(self, pooled: Pooled) -> None:
        ordinary = pooled.shades[(pooled.classes & CellClass.ORDINARY != 0) & np.isfinite(pooled.shades)]
        if ordinary.size:
            first, last = (float(edge) for edge in np.percentile(ordinary, (1, 99)))
            known = self._percentiles or (first, last)
            self._percentiles = min(known[0], first), max(known[1], last)

    def region(self, shape: tuple[int, int]) -> Region:
        """The cells of a map of ``shape`` that the viewport shows, at the level of its pixels."""
        rows, cols = self._viewport.rows or (0, shape[0]), self._viewport.cols or (0, shape[1])
        height, width = self._viewport.pixels
        level = max(level_for(rows[1] - rows[0], height), level_for(cols[1] - cols[0], width))
        return Region.aligned(rows, cols, shape, level)

    def _frame(self, name: str, head: int | None, pooled: Pooled, scale: Scale) -> Frame:
        region = pooled.region
        rgb = colour.paint_values(pooled.shades, pooled.classes, scale, self._view.colours)
        rgb.flags.writeable = False
        return Frame(
            self._generation, name, self._view.stage, head, region.rows, region.cols, region.level,
            pooled.values, pooled.classes, rgb, scale, self._counts(pooled.counts), pooled.row_sums,
            pooled.exact, self._view.pooling if region.level > 1 else "max",
        )  # fmt: skip

    def _counts(self, counts: Counts) -> Counts:
        """With the visible future cells: those that the mask hides and that weigh something all the same."""
        if not self._n_future:
            return counts
        if self._n_future < 0:
            return replace(counts, future=-1)
        blind = -1 if -1 in (counts.masked, counts.padded) else counts.masked + counts.padded
        return replace(counts, future=-1 if blind < 0 else max(self._n_future - blind, 0))
