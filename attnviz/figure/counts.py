"""A few counts as bars with their formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.styles import Style

WORDS: Final = 19.0
BAR: Final = 12.0
GAP: Final = 8.0
HEIGHT: Final = WORDS + BAR + GAP
"""Pixels of a count, × unit."""

_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class Count:
    """A number of things: what they are, how the number comes about, and the longest that its bar will be."""

    words: str
    formula: str
    value: int
    most: int


def counts_width(counts: Sequence[Count], unit: float = 1.0) -> float:
    """What the longest line of words and formula needs."""
    font = sized(13 * unit)
    return max((text_width(font, count.words) + text_width(font, count.formula) for count in counts), default=0.0) + (
        16 * unit
    )  # fmt: skip


def paint_counts(painter: QPainter, rect: QRectF, counts: Sequence[Count], style: Style, unit: float = 1.0) -> None:
    """Counts one below the other: words and formula, and a bar as long as its share of the largest ``most``."""
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(sized(13 * unit))
    most = max((count.most for count in counts), default=0) or 1
    words_h, bar_h, radius, least = WORDS * unit, BAR * unit, 3 * unit, 3 * unit
    for place, count in enumerate(counts):
        x, y = rect.left(), rect.top() + place * HEIGHT * unit
        room = text_width(painter.font(), count.formula) + 12 * unit
        painter.setPen(style.muted)
        draw_text(painter, QRectF(x, y, rect.width(), words_h), _RIGHT, count.formula)
        painter.setPen(style.ink)
        draw_text(painter, QRectF(x, y, max(rect.width() - room, 60.0 * unit), words_h), _LEFT, count.words)
        painter.setPen(QPen(style.hairline, unit) if style.grey else Qt.PenStyle.NoPen)
        painter.setBrush(style.card if style.grey else style.hairline)
        painter.drawRoundedRect(
            QRectF(x, y + words_h, max(rect.width() * count.most / most, least), bar_h), radius, radius
        )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(style.accent)
        if count.value:
            painter.drawRoundedRect(
                QRectF(x, y + words_h, max(rect.width() * count.value / most, least), bar_h), radius, radius
            )
    painter.restore()
