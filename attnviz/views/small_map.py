"""One small matrix with what stands around it: for pages that explain, beside the large maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.layout import Box
from attnviz.figure.matrix_map import CAPTION_LINE, TITLE_LINE, Matrix, matrix_of, outer_of, paint_alone, place_of
from attnviz.frames import Frame, Scale, Values
from attnviz.views.plot import style_of

_WORDS = round(TITLE_LINE + CAPTION_LINE)


class SmallMap(QWidget):
    """A matrix (queries, keys) with a title above and a caption below; nothing until there is one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.matrix: Matrix | None = None
        """What is painted."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(120, 120 + _WORDS)

    def sizeHint(self) -> QSize:
        return QSize(260, 260 + _WORDS)

    @property
    def frame(self) -> Frame | None:
        """The numbers and pixels that are painted."""
        return self.matrix.frame if self.matrix is not None else None

    def show_map(self, matrix: Matrix) -> None:
        """Show ``matrix``."""
        self.matrix = matrix
        self.setAccessibleName(matrix.title)
        self.setAccessibleDescription(matrix.caption)
        self.update()

    def show_matrix(self, values: Values, classes: npt.NDArray[np.uint8], *, scale: Scale, **words: Any) -> None:
        """Show ``values`` float (Q, K) with ``classes`` uint8 (Q, K) on ``scale``; ``words`` are `matrix_of`'s own."""
        self.show_map(matrix_of(values, classes, scale=scale, **words))

    def clear(self) -> None:
        """Show nothing."""
        self.matrix = None
        self.update()

    def map_box(self) -> Box | None:
        """Where the cells lie, None where nothing is shown."""
        shown = self.matrix
        return None if shown is None else place_of(outer_of(self.width(), self.height(), shown), shown).map_rect

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.matrix is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_alone(painter, self.width(), self.height(), self.matrix, style_of(self))
        painter.end()
