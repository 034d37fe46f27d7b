"""Panels to frames: pools them, keeps one colour range for all heads, and colours the pixels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnviz import colour
from attnviz.attention.pooling import Panel, PanelPooler, Pooled, Region
from attnviz.frames import CellClass, Counts, Frame, Scale, level_for
from attnviz.spec import WEIGHT_STAGES, View, Viewport

_WHOLE = float("inf"), float("-inf")  # a range that any value widens


class Framer:
    """Frames of one stage for one request. The range only widens within one generation.

    When it does, the heads already sent are coloured again and sent again. ``n_future`` is the number of future
    cells of a map that stay visible in the end.
    """

    def __init__(self, view: View, viewport: Viewport, generation: int, *, n_keys: int, n_future: int) -> None:
        self._view, self._viewport, self._generation = view, viewport, generation
        self._n_keys, self._n_future = n_keys, n_future
        self._pooler: PanelPooler | None = None
        self._low, self._high = _WHOLE
        self._percentiles: tuple[float, float] | None = None
        self._scale: Scale | None = None
        self._sent: dict[str, tuple[Panel, Pooled]] = {}
        self._row_norm = view.norm if view.norm in ("uniform", "per-row") else "plain"
        self.pooled_for = (view.stage, viewport.rows, viewport.cols, viewport.pixels, self._row_norm)
        """Equal for two framers whose `pool` gives the same pixels."""

    def pool(self, panel: Panel) -> Pooled:
        """The panel's pixels before colouring."""
        if self._pooler is None:
            nonnegative = self._view.stage in WEIGHT_STAGES
            self._pooler = PanelPooler(self._region(panel), nonnegative=nonnegative, row_norm=self._row_norm)
        return self._pooler.pool(panel)

    def frames(self, panel: Panel, pooled: Pooled) -> Iterator[Frame]:
        """The panel's frame, after those of earlier panels if the range has widened."""
        self._sent[panel.name] = panel, pooled
        scale = self._widened(pooled)
        widened = scale != self._scale and self._view.norm != "per-head"
        self._scale = scale
        again = list(self._sent.values())[:-1] if widened else []
        for sent, pixels in [*again, (panel, pooled)]:
            yield self._frame(sent, pixels, scale)

    def _widened(self, pooled: Pooled) -> Scale:
        if self._view.norm == "per-head":
            self._low, self._high = _WHOLE
        if not np.isnan(pooled.low):
            self._low, self._high = min(self._low, pooled.low), max(self._high, pooled.high)
        ordinary = pooled.shades[(pooled.classes & CellClass.ORDINARY != 0) & np.isfinite(pooled.shades)]
        if self._view.norm == "percentile" and ordinary.size:
            first, last = (float(edge) for edge in np.percentile(ordinary, (1, 99)))
            known = self._percentiles or (first, last)
            self._percentiles = min(known[0], first), max(known[1], last)
        low, high = (self._low, self._high) if self._low <= self._high else (0.0, 0.0)
        return colour.choose_scale(self._view.stage, self._view.norm, self._n_keys, low, high, self._percentiles)

    def _region(self, panel: Panel) -> Region:
        shape = (panel.cells.shape[0], panel.cells.shape[1])
        rows, cols = self._viewport.rows or (0, shape[0]), self._viewport.cols or (0, shape[1])
        height, width = self._viewport.pixels
        level = max(level_for(rows[1] - rows[0], height), level_for(cols[1] - cols[0], width))
        return Region.aligned(rows, cols, shape, level)

    def _frame(self, panel: Panel, pooled: Pooled, scale: Scale) -> Frame:
        region = self._region(panel)
        rgb = colour.paint_values(pooled.shades, pooled.classes, scale, self._view.colours)
        rgb.flags.writeable = False
        return Frame(
            self._generation, panel.name, self._view.stage, panel.head, region.rows, region.cols, region.level,
            pooled.values, pooled.classes, rgb, scale, pooled.counts + Counts(future=self._n_future), pooled.row_sums,
        )  # fmt: skip
