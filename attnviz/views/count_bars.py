"""A few counts as bars with their formulas."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.counts import HEIGHT, Count, paint_counts
from attnviz.views.plot import style_of


class CountBars(QWidget):
    """Counts one below the other, each with its bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.counts: tuple[Count, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(200)

    def sizeHint(self) -> QSize:
        return QSize(360, round(max(len(self.counts), 1) * HEIGHT))

    def show_counts(self, counts: tuple[Count, ...]) -> None:
        if len(counts) != len(self.counts):
            self.setFixedHeight(round(len(counts) * HEIGHT))
        self.counts = counts
        self.setAccessibleDescription(" · ".join(f"{count.words}: {count.value:,}" for count in counts))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.counts:
            return
        painter = QPainter(self)
        paint_counts(painter, QRectF(self.rect()), self.counts, style_of(self))
        painter.end()
