"""A few counts as bars with their formulas."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.views.plot import style_of

_WORDS, _BAR, _GAP = 19, 12, 8
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class Count:
    """A number of things: what they are, how the number comes about, and the longest that its bar will be."""

    words: str
    formula: str
    value: int
    most: int


class CountBars(QWidget):
    """Counts one below the other: words and formula, and a bar as long as its share of the largest ``most``."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.counts: tuple[Count, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(200)

    def sizeHint(self) -> QSize:
        return QSize(360, max(len(self.counts), 1) * (_WORDS + _BAR + _GAP))

    def show_counts(self, counts: tuple[Count, ...]) -> None:
        if len(counts) != len(self.counts):
            self.setFixedHeight(len(counts) * (_WORDS + _BAR + _GAP))
        self.counts = counts
        self.setAccessibleDescription(" · ".join(f"{count.words}: {count.value:,}" for count in counts))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.counts:
            return
        load_fonts()
        style, painter = style_of(self), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(sized(13))
        most = max(count.most for count in self.counts) or 1
        for place, count in enumerate(self.counts):
            y = float(place * (_WORDS + _BAR + _GAP))
            room = text_width(painter.font(), count.formula) + 12
            painter.setPen(style.muted)
            draw_text(painter, QRectF(0, y, self.width(), _WORDS), _RIGHT, count.formula)
            painter.setPen(style.ink)
            draw_text(painter, QRectF(0, y, max(self.width() - room, 60.0), _WORDS), _LEFT, count.words)
            bar = QRectF(0, y + _WORDS, self.width(), _BAR)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.hairline)
            painter.drawRoundedRect(QRectF(0, bar.top(), max(bar.width() * count.most / most, 3), _BAR), 3, 3)
            painter.setBrush(style.accent)
            if count.value:
                painter.drawRoundedRect(QRectF(0, bar.top(), max(bar.width() * count.value / most, 3), _BAR), 3, 3)
        painter.end()
