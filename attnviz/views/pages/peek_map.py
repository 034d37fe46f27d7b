"""A small map in which what lies open though the mask's shape hides it wears a red frame."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.grid import grid_of
from attnviz.figure.peeking import Peeking, frame_hidden_cells
from attnviz.frames import shown_class
from attnviz.spec import AnyShape, MaskFile
from attnviz.views.plot import style_of
from attnviz.views.small_map import SmallMap

_FRAMED_FROM = 7.0  # pixels a cell


class PeekMap(SmallMap):
    """As high as it is wide, up to ``most`` pixels."""

    def __init__(self, parent: QWidget | None = None, *, most: int = 340) -> None:
        super().__init__(parent)
        self._most = most
        self._peeking: Peeking | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setMinimumSize(96, 96)

    def heightForWidth(self, width: int) -> int:
        return min(width, self._most)

    def set_shape(self, shape: AnyShape | None, n_queries: int, n_keys: int) -> None:
        """The mask's shape; None, or a file's, frames nothing."""
        known = None if shape is None or isinstance(shape, MaskFile) else Peeking(shape, n_keys - n_queries, n_keys)
        if known != self._peeking:
            self._peeking = known
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        box, frame = self.map_box(), self.frame
        if box is None or frame is None or self._peeking is None or frame.level > 1:
            return
        rect = QRectF(*box)
        grid = grid_of(rect, (0.0, float(frame.rows[1]), 0.0, float(frame.cols[1])), frame)
        if grid.side < _FRAMED_FROM:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = shown_class(grid.seen(frame.classes, frame))
        frame_hidden_cells(painter, grid, shown, self._peeking, style_of(self))
        painter.end()
