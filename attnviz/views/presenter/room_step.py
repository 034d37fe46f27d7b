"""A lesson's step for a room: all of its words and its question, in type for the last row."""

from __future__ import annotations

import html
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from attnviz.views.lesson_card import LEAST_HEIGHT, LessonCard
from attnviz.views.lesson_parts import write_in

_TYPE: Final = 28.0
_FOOT: Final = 15.0
_MOST: Final = 0.4
"""Of the view's height: a longer step scrolls."""
_SHARES: Final = ((4, 3), (1, 1), (5, 3), (2, 1))
"""How the words and the question may divide the width."""
_LINE: Final = 84
"""Percent of the font's own line, which is made for characters with marks above and below."""


class DenseLabel(QLabel):
    """A label of plain text that is wrapped, its lines close to each other."""

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.RichText)

    def setText(self, words: str) -> None:
        """Show ``words`` as they are; a low line below the last one keeps what hangs below it."""
        self._words = words
        dense = f'<div style="line-height: {_LINE}%">{html.escape(words)}</div><div style="font-size: 6px">&nbsp;</div>'
        super().setText(dense if words else "")

    def text(self) -> str:
        """The words, without how they are set."""
        return self._words


class RoomStep(LessonCard):
    """A `LessonCard` in one large type. Its ``head`` is for who presents: it stands elsewhere, in small type."""

    _scale = 1.0

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.head.setParent(None)
        for widget in (self.head.leave, self.own_text, self.check_code):
            widget.hide()  # they lead to what this view covers
        self.set_scale(1.0)

    def set_scale(self, scale: float) -> None:
        """How large the type is: 1 is for a view of 1280 × 800."""
        self._scale = scale
        large = round(_TYPE * scale)
        self.sizes = ((large,) * 5,)
        self._use_level(0)
        self.setStyleSheet(f"QPushButton, QLineEdit {{ font-size: {large}px; }}")
        write_in(self._unit, large)
        self.field.setFixedWidth(round(6.5 * large))
        self.head.setStyleSheet(f"QPushButton {{ font-size: {round(_FOOT * scale)}px; }}")

    def fit_room(self, width: int, height: int) -> None:
        """Take the height that the step needs in a view of this size, whatever is answered: as little as it can."""
        heights = {}
        for self.shares in _SHARES:
            self.fit(width, round(_MOST * height))
            heights[self.shares] = self.sizeHint().height()
        self.shares = min(heights, key=lambda shares: heights[shares])
        self.fit(width, round(_MOST * height))
        self.setFixedHeight(heights[self.shares])

    def _text_label(self) -> QLabel:
        return DenseLabel()

    def _use_level(self, level: int) -> None:
        super()._use_level(level)
        write_in(self.head.title, round(_FOOT * self._scale))

    def _needed(self, width: int) -> int:
        head = min(self.head.sizeHint().height(), self.head.maximumHeight())
        return max(super()._needed(width) - head, LEAST_HEIGHT)
