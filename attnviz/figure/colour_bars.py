"""The colour bar: which colour stands for which number, upright beside the maps or level below them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QFont, QImage, QPainter, QPainterPath

from attnviz import colour
from attnviz.figure import marks
from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width
from attnviz.figure.places import Box, FigureLayout
from attnviz.figure.styles import Style
from attnviz.figure.vectors import VectorPainter, paint_colours
from attnviz.frames import CellClass, Frame
from attnviz.spec import View

LEVEL_HEIGHT: Final = 30.0
"""What a level bar takes with its ticks, in pixels at a unit of 1."""

_PX: Final = 12.0
_LEAST_WORDS: Final = 8
"""Letters from which words that are cut still say what the colours are."""
_STRIP: Final = 12.0  # how thick a level bar is
_BEYOND: Final = 1e-3  # a number further beyond an end than so much of it (of the scale, if linear) is seen to be
_LEFT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter

Tick = tuple[float, str]
"""Where a number stands on the bar, 0 to 1, and how it is written."""


def bar_words(frame: Frame, view: View) -> str:
    """What the bar of ``frame`` measures."""
    return marks.scale_caption(frame.stage, frame.scale, view)


def paint_colour_bar(
    painter: QPainter, plan: FigureLayout, frames: Sequence[Frame], view: View, style: Style, words: str = ""
) -> None:
    """The colours from lowest to highest, their values, and what they measure, which ``words`` may say.

    ``frames``, one at least, are the maps that the bar stands for; the first has its scale.
    """
    load_fonts()
    unit, frame = plan.unit, frames[0]
    bar = QRectF(*plan.bar)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_strip(painter, bar, frame, view, unit, upright=True)
    painter.setFont(sized(_PX * unit))
    painter.setPen(style.muted)
    words_w = 18 * unit
    ticks_w = plan.bar_column.right - bar.right() - words_w - 6 * unit
    last = -math.inf
    drawn = []
    ticks = _short_enough(painter.font(), bar_ticks(frames, view), ticks_w)
    longest = max((text_width(painter.font(), label) for _, label in ticks), default=0.0)
    if longest > ticks_w:  # a number without its end would be another one
        painter.setFont(sized(_PX * unit * ticks_w / longest))
    for tick, label in [*ticks[-1:], *ticks[:-1]]:  # the highest always, the others as they have room
        y = bar.bottom() - tick * bar.height()
        if tick < 1 and (y - bar.top() < 14 * unit or bar.bottom() - y < last + 14 * unit):
            continue
        last = bar.bottom() - y if tick < 1 else last
        draw_text(painter, QRectF(bar.right() + 6 * unit, y - 8 * unit, ticks_w, 16 * unit), _LEFT, label)
        drawn.append(label)
    widest = max((text_width(painter.font(), label) for label in drawn), default=0.0)
    beside = min(bar.right() + 12 * unit + min(widest, ticks_w), plan.bar_column.right - words_w)
    painter.translate(beside + words_w / 2, plan.bar_column.y + plan.bar_column.height / 2)
    painter.rotate(-90)
    length = plan.bar_column.height
    said = elided(painter.font(), words or bar_words(frame, view), length)
    if said[-1:] != "…" or len(said) > _LEAST_WORDS:
        draw_text(painter, QRectF(-length / 2, -words_w / 2, length, words_w), _CENTRE, said)
    painter.restore()


def level_words_width(words: str, unit: float) -> float:
    """What the words at the left of a level bar take."""
    return text_width(sized(_PX * unit), words) + 8 * unit if words else 0.0


def level_strip(box: Box, words: str, unit: float) -> Box:
    """Where the colours of a level bar lie in ``box``: right of its words, above its numbers."""
    left = level_words_width(words, unit)
    return Box(box.x + left, box.y, max(box.width - left, 1.0), _STRIP * unit)


def paint_level_bar(
    painter: QPainter, box: Box, frames: Sequence[Frame], view: View, style: Style, unit: float, words: str
) -> None:  # fmt: skip
    """The colours from left to right in ``box`` after the ``words`` that say what they measure; numbers below.

    ``frames`` are as in `paint_colour_bar`.
    """
    load_fonts()
    frame = frames[0]
    strip = QRectF(*level_strip(box, words, unit))
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_strip(painter, strip, frame, view, unit, upright=False)
    font = sized(_PX * unit)
    painter.setFont(font)
    painter.setPen(style.muted)
    draw_text(painter, QRectF(box.x, strip.center().y() - 9 * unit, box.width, 18 * unit), _LEFT, words)
    ticks = bar_ticks(frames, view)
    written: list[tuple[float, float]] = []  # left and right edges
    for place, label in [*ticks[-1:], *ticks[:-1]]:
        half = text_width(font, label) / 2 + 1
        middle = min(max(strip.left() + place * strip.width(), box.x + half), box.right - half)
        if any(middle - half < right + 6 * unit and middle + half > left - 6 * unit for left, right in written):
            continue
        written.append((middle - half, middle + half))
        draw_text(painter, QRectF(middle - half, strip.bottom() + 2 * unit, 2 * half, 16 * unit), _CENTRE, label)
    painter.restore()


def _paint_strip(painter: QPainter, bar: QRectF, frame: Frame, view: View, unit: float, *, upright: bool) -> None:
    """The colours themselves, the lowest at the foot or at the left."""
    table = colour.table(colour.DIVERGING_TABLE if frame.scale.diverging else view.colours)
    colours = np.ascontiguousarray(table[::-1, None] if upright else table[None])
    painter.save()
    outline = QPainterPath()
    outline.addRoundedRect(bar, 4 * unit, 4 * unit)
    painter.setClipPath(outline)
    if isinstance(painter, VectorPainter):
        rows, columns = colours.shape
        xs = np.linspace(bar.left(), bar.right(), columns + 1)
        paint_colours(painter, xs, np.linspace(bar.top(), bar.bottom(), rows + 1), colours)
    else:
        height, width = colours.shape
        painter.drawImage(bar, QImage(colours.data, width, height, 4 * width, QImage.Format.Format_RGB32))
    painter.restore()


def bar_ticks(frames: Sequence[Frame], view: View) -> list[Tick]:
    """The numbers along the bar of ``frames``, rising; "≤" or "≥" at an end beyond which one of their numbers lies."""
    scale = frames[0].scale
    ticks = colour.quantity_ticks(scale)
    if view.norm == "per-head":
        return [(0.0, ticks[0][1]), (1.0, QCoreApplication.translate("Figure", "max"))]
    if scale.quantity != "value":  # numbers of another quantity than the frames'
        below, above = scale.curve == "log", False
    else:
        logarithmic = scale.curve == "log"
        near = (scale.high - scale.low) * _BEYOND
        low = scale.low * (1 - _BEYOND) if logarithmic else scale.low - near
        high = scale.high * (1 + _BEYOND) if logarithmic else scale.high + near
        ordinary = [(frame.values, frame.classes & CellClass.ORDINARY != 0) for frame in frames]
        below = any(bool(((values < low) & shown).any()) for values, shown in ordinary)
        above = any(bool(((values > high) & shown).any()) for values, shown in ordinary)
    (first, lowest), (last, highest) = ticks[0], ticks[-1]
    ticks[0] = first, f"≤ {lowest}" if below else lowest
    ticks[-1] = last, f"≥ {highest}" if above else highest
    return ticks


def _short_enough(font: QFont, ticks: list[Tick], width: float) -> list[Tick]:
    """``ticks`` whose words have ``width`` pixels: without a 0 before the point, or of one digit, if one is longer."""
    for write in (str, _without_zero, _one_digit):
        written = [(place, sign + write(number)) for place, (sign, number) in ((p, _parted(w)) for p, w in ticks)]
        if all(text_width(font, words) <= width + 0.5 for _, words in written):
            return written
    return written


def _parted(words: str) -> tuple[str, str]:
    """The "≤ " or "≥ " before a number, "" where there is none, and the number."""
    return (words[:2], words[2:]) if words[:1] in ("≤", "≥") else ("", words)


def _without_zero(number: str) -> str:
    return re.sub(r"^(−?)0\.", r"\1.", number)


def _one_digit(number: str) -> str:
    try:
        value = float(number.replace("−", "-"))
    except ValueError:  # a word
        return number
    return colour.tidy_number(f"{value:.0e}") if value else "0"
