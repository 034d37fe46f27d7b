"""Where the cells in sight lie on a picture: the arithmetic from cells to pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF

from attnviz.frames import Frame

Window = tuple[float, float, float, float]
"""The cells in sight as (top, bottom, left, right), in cells from the map's corner; fractional while panning."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of ``window`` in ``rect``, whose edges are the window's; ``rows`` and ``cols`` are those in sight."""

    rect: QRectF
    window: Window
    rows: range
    cols: range

    @property
    def cell_w(self) -> float:
        return self.rect.width() / (self.window[3] - self.window[2])

    @property
    def cell_h(self) -> float:
        return self.rect.height() / (self.window[1] - self.window[0])

    @property
    def side(self) -> float:
        return min(self.cell_w, self.cell_h)

    def x(self, col: float) -> float:
        return self.rect.left() + (col - self.window[2]) * self.cell_w

    def y(self, row: float) -> float:
        return self.rect.top() + (row - self.window[0]) * self.cell_h

    def span(self, row: float, first: float, last: float) -> QRectF:
        """Cells ``first`` to ``last`` (half-open) of one row."""
        return QRectF(self.x(first), self.y(row), (last - first) * self.cell_w, self.cell_h)

    def cell(self, row: int, col: int) -> QRectF:
        return self.span(row, col, col + 1)

    def in_sight(self, row: int, col: int) -> QRectF:
        """The part of a cell that the rectangle holds."""
        return self.cell(row, col).intersected(self.rect)

    def seen(self, plane: npt.NDArray[np.uint8], frame: Frame) -> npt.NDArray[np.uint8]:
        """The part of a level-1 plane of ``frame`` that is in sight."""
        (top, _), (left, _) = frame.rows, frame.cols
        return plane[self.rows.start - top : self.rows.stop - top, self.cols.start - left : self.cols.stop - left]


def grid_of(rect: QRectF, window: Window, frame: Frame) -> Grid:
    """The cells of ``frame`` that lie in ``window``, shown in ``rect``."""
    rows = range(max(math.floor(window[0]), frame.rows[0]), min(math.ceil(window[1]), frame.rows[1]))
    cols = range(max(math.floor(window[2]), frame.cols[0]), min(math.ceil(window[3]), frame.cols[1]))
    return Grid(rect, window, rows, cols)
