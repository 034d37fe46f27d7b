"""One row on paper: its keys one below the other, the scores, a bar for each weight, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
import numpy as np
from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from attnviz.figure import marks
from attnviz.figure.cells import paint_swatch
from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.glosses import glossed
from attnviz.figure.labels import PERCENT_UP_TO_KEYS
from attnviz.figure.paper_layout import line_of, margin_of
from attnviz.figure.plots import paint_plot
from attnviz.figure.row_plot import kinds_of, peeking_of, row_plot
from attnviz.figure.studies.compare import value_words
from attnviz.figure.styles import Style, style_of_theme
from attnviz.figure.units import unit_of
from attnviz.figure.words import wrapped
from attnviz.frames import CellClass, Outline, RowStages, RowStory, Values
from attnviz.spec import AttentionSpec, Paper

_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
_LEAST_LINE: Final = 17.0  # × unit: rows of keys lower than this become a plot
_MOST_LINE: Final = 110.0
_TITLE, _PRINTED_TITLE, _SECOND, _SMALL = 25, 16, 14, 13
_NAME_EMS: Final = 9.0
_GAP: Final = 12.0
_HEAD_SHARE: Final = 0.55
"""A column's head is so large beside the numbers below it, but never smaller than other small words."""

_NUMBER_SHARE: Final = 0.36  # of a key's line is what its numbers are high
_MOST_FIELDS: Final = 3
_HEAD_LINE, _SCALE_LINE = 1.5, 1.35  # heights of the heads' line and of that below the bars, in ems
_SIGNS: Final = {
    CellClass.MASKED: "×", CellClass.ZERO: "0", CellClass.DROPPED: "∅", CellClass.PADDED: "–", CellClass.NAN: "NaN"
}  # fmt: skip
"""What stands in place of a number, in the order of the legend."""

_Look = CellClass | Literal["peeking", "before"]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of numbers: its heading, its words key by key, and its width in pixels."""

    heading: str
    words: tuple[str, ...]
    width: float


class RowDrawing(Drawing):
    """``story``'s row in ``outline``'s names. Where keys are too many for a line each, their weights are a plot.

    Bars with a dashed edge are the weights of the state before, where the story has one.
    """

    has_large_cells = True

    def __init__(self, story: RowStory, outline: Outline, paper: Paper) -> None:
        load_fonts()
        self.paper, self._story, self._outline = paper, story, glossed(outline)
        self.unit = unit_of(paper)
        self._kinds, self._peeking = kinds_of(story.now), peeking_of(story.now)

    @property
    def size(self) -> tuple[int, int]:
        return self.paper.size

    @property
    def style(self) -> Style:
        return style_of_theme(self.paper.theme)

    @property
    def title(self) -> str:
        """What stands above, in the largest type."""
        if self.paper.title is not None:
            return self.paper.title
        row = self._story.now
        place = row.row + len(self._outline.tokens) - self._outline.n_queries
        token = self._outline.tokens[place] if 0 <= place < len(self._outline.tokens) else ""
        named = f"{row.row} · {token}" if token and token != str(row.row) else str(row.row)
        return QCoreApplication.translate("Figure", "query {0}, head {1}").format(named, row.head)

    def paint(self, painter: QPainter, step: Step) -> None:
        paper, unit, style, row = self.paper, self.unit, self.style, self._story.now
        printed = paper.dpi is not None
        margin, line = margin_of(unit, printed=printed), line_of(unit, printed=printed)
        width, y = paper.width - 2 * margin, margin
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.title:
            painter.setFont(sized((_PRINTED_TITLE if printed else _TITLE) * unit))
            painter.setPen(style.ink)
            draw_text(painter, QRectF(margin, y, width, line * 1.5), _LEFT, self.title)
            y += line * 1.5
        painter.setPen(style.muted)
        if paper.caption:
            painter.setFont(sized(_SECOND * unit))
            y = _write(painter, marks.circumstances(row.spec), QRectF(margin, y, width, line)) + 6 * unit
        feet = self._feet() if paper.caption else []
        painter.setFont(sized(_SMALL * unit))
        lines = [part for words in feet for part in wrapped(painter.font(), words, width)]
        low = paper.height - margin * 0.6 - line * len(lines)
        for n, words in enumerate(lines):
            draw_text(painter, QRectF(margin, low + n * line, width, line), _LEFT, words)
        legend = self._legend(width) if paper.legend else []
        low -= line * len(legend)
        plotted = self._paint_keys(painter, QRectF(margin, y, width, max(low - y - 8 * unit, 1)))
        for n, entries in enumerate(legend):
            for look, text, x in entries:
                self._paint_entry(painter, look, text, QRectF(margin + x, low + n * line, width - x, line), plotted)
        painter.restore()
        step(1.0)

    def _feet(self) -> list[str]:
        """What the row adds up to, what it mixes, and where the numbers come from."""
        row = self._story.now
        total, _ = marks.row_sum(float(row.stages[row.last].sum()))
        said = [f"Σ = {total}"]
        context = row.stages.get("dropped_context", row.stages.get("context"))
        if context is not None and len(context) <= 8:
            dims = self._outline.dims if len(self._outline.dims) == len(context) else ()
            named = [f"{dims[n]} " if dims else "" for n in range(len(context))]
            parts = [f"{name}{marks.cell_number(float(x), 2)}" for name, x in zip(named, context, strict=True)]
            said.append(QCoreApplication.translate("Figure", "context ({0})").format(", ".join(parts)))
        return [" · ".join(said), self._outline.origin]

    # ---------------------------------------------------------------------------------------------------------- legend

    def _legend(self, width: float) -> list[list[tuple[_Look, str, float]]]:
        """The looks that are there with their words, and where each begins, in lines of ``width``."""
        looks: list[tuple[_Look, str]] = [(k, marks.look_words(k)) for k in _SIGNS if (self._kinds == k).any()]
        if self._peeking.any():
            looks.append(("peeking", marks.look_words(None)))
        if self._story.before is not None:
            looks.append(("before", _before_words(self._story.now.spec, self._story.before.spec)))
        font, x = sized(_SMALL * self.unit), math.inf
        found: list[list[tuple[_Look, str, float]]] = []
        for look, words in looks:
            wide = (_SMALL + 6) * self.unit + text_width(font, words)
            if x + wide > width:
                found.append([])
                x = 0.0
            found[-1].append((look, words, x))
            x += wide + 18 * self.unit
        return found

    def _paint_entry(self, painter: QPainter, look: _Look, words: str, room: QRectF, plotted: bool) -> None:
        """A line of the legend: as it is in the plot, or the sign beside a key."""
        unit, style = self.unit, self.style
        side = _SMALL * unit
        square = QRectF(room.left(), room.center().y() - side / 2, side, side)
        painter.setFont(sized(side))
        painter.setPen(style.muted)
        if look == "peeking":
            painter.fillRect(square, style.leak)
        elif look == "before":
            painter.setPen(QPen(style.muted if plotted else style.ink, max(unit, 1), Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(square)
        elif plotted:
            paint_swatch(painter, square, look, style)
        elif look != CellClass.NAN:  # which is its own word
            draw_text(painter, square, Qt.AlignmentFlag.AlignHCenter, _SIGNS[look])
        painter.setPen(style.muted)
        draw_text(painter, room.adjusted(side + 6 * unit, 0, 0, 0), _LEFT, words)

    # ------------------------------------------------------------------------------------------------------------ keys

    def _names(self) -> tuple[str, ...]:
        n_keys = len(self._story.now.hidden)
        tokens = self._outline.tokens
        return tokens if len(tokens) == n_keys else tuple(map(str, range(n_keys)))

    def _paint_keys(self, painter: QPainter, area: QRectF) -> bool:
        """Paint them in lines, or as a plot, and say whether they are that."""
        names, unit = self._names(), self.unit
        if area.height() / (len(names) + 1) < _LEAST_LINE * unit:
            plot = row_plot(self._story, int(area.width()), labels=self.paper.labels)
            paint_plot(painter, area, plot, self.style, unit)
            return True
        foot = _SCALE_LINE * _SMALL * unit if self._has_scale() else 0.0
        ems = _HEAD_LINE * _HEAD_SHARE * _NUMBER_SHARE  # of the heads' line, in lines of keys
        line = min((area.height() - foot) / (len(names) + ems), _MOST_LINE * unit)
        head = _HEAD_LINE * _head_px(_number_px(line, unit), unit)
        line = min(line, (area.height() - foot - head) / len(names))  # where the heads are as small as words may be
        spare = area.height() - foot - head - line * len(names)
        self._paint_lines(painter, area.adjusted(0, spare / 3, 0, 0), names, line, head)
        return False

    def _has_scale(self) -> bool:
        """Whether the ends of the bars' track are told."""
        return self.paper.labels and self.paper.numbers

    def _paint_lines(self, painter: QPainter, area: QRectF, names: Sequence[str], line: float, head: float) -> None:
        """The heads of the columns in a line ``head`` pixels high, and below it a ``line`` for each key."""
        unit, style, row = self.unit, self.style, self._story.now
        px = _number_px(line, unit)
        font = sized(px)
        painter.setFont(font)
        labels, gap = self.paper.labels, _GAP * unit
        name_w = min(max(text_width(font, name) for name in names), _NAME_EMS * px, area.width() * 0.3) if labels else 0
        columns = self._columns(px)
        x = area.left() + (name_w + gap if labels else 0)
        for column in columns:
            self._write_column(painter, column, QRectF(x, area.top(), column.width, head), line, px)
            x += column.width + gap
        weights = self._weight_words(px)
        top = area.top() + head
        bars = QRectF(x, top, max(area.right() - x - weights.width - gap, 1), line * len(names))
        heading = marks.stage_title(row.last) if labels else ""
        painter.setFont(sized(_head_px(px, unit)))
        painter.setPen(style.muted)
        draw_text(painter, QRectF(x, area.top(), bars.width() + gap + weights.width, head), _LEFT, heading)
        most = self._largest()
        painter.setFont(font)
        for n, name in enumerate(names):
            y = top + n * line
            painter.setPen(style.muted if row.masked[n] else style.ink)
            draw_text(painter, QRectF(area.left(), y, name_w, line), _RIGHT, name if labels else "")
            self._paint_bar(painter, QRectF(bars.left(), y + 0.16 * line, bars.width(), 0.68 * line), n, most)
            painter.setPen(style.leak if self._peeking[n] else style.muted if row.masked[n] else style.ink)
            draw_text(painter, QRectF(area.right() - weights.width, y, weights.width, line), _RIGHT, weights.words[n])
        if self._has_scale() and most > 0:
            self._paint_scale(painter, bars, bars.bottom() - 0.16 * line, most)

    def _paint_scale(self, painter: QPainter, bars: QRectF, low: float, most: float) -> None:
        """What the bars' track, whose last line is at ``low``, measures from end to end."""
        unit = self.unit
        tick, high = max(3 * unit, 2), _SMALL * _SCALE_LINE * unit
        few = len(self._story.now.hidden) <= PERCENT_UP_TO_KEYS
        words = (marks.percentage(0.0), f"{100 * most:.0f} %") if few else ("0", marks.formatted(most, "short"))
        for x in (bars.left(), bars.right() - max(unit, 1)):
            painter.fillRect(QRectF(x, low, max(unit, 1), tick), self.style.muted)
        painter.setFont(sized(_SMALL * unit))
        painter.setPen(self.style.muted)
        for words_there, side in zip(words, (_LEFT, _RIGHT), strict=True):
            draw_text(painter, QRectF(bars.left(), low + tick, bars.width(), high), side, words_there)

    def _largest(self) -> float:
        rows = [row for row in (self._story.now, self._story.before) if row is not None]
        found = [float(np.nanmax(np.where(np.isfinite(w), w, np.nan))) for w in map(_weights, rows) if _any_number(w)]
        most = max([*found, 0.0])
        return max(most, 1.0) if len(self._story.now.hidden) <= PERCENT_UP_TO_KEYS else most  # few share out a whole

    def _paint_bar(self, painter: QPainter, room: QRectF, key: int, most: float) -> None:
        before, style, unit = self._story.before, self.style, self.unit
        track = QColor(style.hairline)
        painter.fillRect(QRectF(room.left(), room.bottom(), room.width(), max(unit, 1)), track)
        weight = float(_weights(self._story.now)[key])
        if self._kinds[key] == CellClass.ORDINARY and most > 0:
            colour = style.leak if self._peeking[key] else style.accent
            painter.fillRect(
                QRectF(room.left(), room.top(), room.width() * max(weight, 0.0) / most, room.height()), colour
            )
        if before is None or most <= 0:
            return
        earlier = float(_weights(before)[key])
        if math.isfinite(earlier) and earlier > 0:
            painter.setPen(QPen(style.ink, max(unit, 1), Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(room.left(), room.top(), room.width() * earlier / most, room.height()))

    def _columns(self, px: float) -> list[_Column]:
        """The scores before the mask acts, where the row has them and a narrow sheet leaves room."""
        row = self._story.now
        if self.paper.width < 420 * self.unit or not self.paper.numbers or "scaled_scores" not in row.stages:
            return []
        decimals = 2 if self.paper.decimals is None else self.paper.decimals
        scores = row.stages["scaled_scores"]
        words = tuple(_fixed(float(x), decimals) for x in scores)
        return [self._column(marks.stage_title("scaled_scores") if self.paper.labels else "", words, px)]

    def _weight_words(self, px: float) -> _Column:
        """Without numbers there are signs where there would be none."""
        row, before = self._story.now, self._story.before
        words = self._written(row)
        if before is not None and self.paper.numbers:
            words = tuple(f"{then} → {now}" for then, now in zip(self._written(before), words, strict=True))
        return self._column("", words, px)

    def _written(self, row: RowStages) -> tuple[str, ...]:
        numbers, decimals = self.paper.numbers, self.paper.decimals

        def word(weight: float, kind: int) -> str:
            if kind != CellClass.ORDINARY:
                return _SIGNS[CellClass(kind)]
            if decimals is None and len(row.hidden) <= PERCENT_UP_TO_KEYS and weight <= 1:
                return marks.percentage(weight) if numbers else ""
            return marks.formatted(weight, "short" if decimals is None else str(decimals)) if numbers else ""

        return tuple(map(word, _weights(row).tolist(), kinds_of(row).tolist()))

    def _column(self, heading: str, words: tuple[str, ...], px: float) -> _Column:
        font, head = sized(px), sized(_head_px(px, self.unit))
        width = max([text_width(head, heading), *(text_width(font, word) for word in words)])
        return _Column(heading, words, width)

    def _write_column(self, painter: QPainter, column: _Column, top: QRectF, line: float, px: float) -> None:
        row = self._story.now
        painter.setFont(sized(_head_px(px, self.unit)))
        painter.setPen(self.style.muted)
        draw_text(painter, top, _RIGHT, column.heading)
        painter.setFont(sized(px))
        for n, words in enumerate(column.words):
            painter.setPen(self.style.muted if row.masked[n] else self.style.ink)
            draw_text(painter, QRectF(top.left(), top.bottom() + n * line, top.width(), line), _RIGHT, words)


def _number_px(line: float, unit: float) -> float:
    """How high names and numbers are in lines of keys of so many pixels."""
    return min(max(_NUMBER_SHARE * line, _SMALL * unit), 32 * unit)


def _head_px(px: float, unit: float) -> float:
    """How high a column's head is over numbers of ``px`` pixels."""
    return max(_HEAD_SHARE * px, _SMALL * unit)


def _before_words(now: AttentionSpec, before: AttentionSpec) -> str:
    """What the state before is: its mask where that is not the one of ``now``, else the fields that differ."""
    said = marks.mask_words(before)
    if said == marks.mask_words(now):
        fields = [name for name in now.__struct_fields__ if getattr(now, name) != getattr(before, name)]
        values = [(name.replace("_", " "), getattr(before, name)) for name in fields]
        said = [name if isinstance(value, msgspec.Struct) else f"{name} {value_words(value)}" for name, value in values]
        said = [*said[:_MOST_FIELDS], *(["…"] if len(said) > _MOST_FIELDS else [])]
    if not said:
        return QCoreApplication.translate("Figure", "the state before")
    return QCoreApplication.translate("Figure", "before: {0}").format(", ".join(said))


def _fixed(value: float, decimals: int) -> str:
    if math.isnan(value):
        return "NaN"
    if abs(value) >= marks.DIGITS_UP_TO:
        return marks.cell_number(value, decimals)
    return f"{value:.{decimals}f}".replace("inf", "∞").replace("-", "−")


def _weights(row: RowStages) -> Values:
    return row.stages[row.last]


def _any_number(weights: Values) -> bool:
    return bool(np.isfinite(weights).any())


def _write(painter: QPainter, text: str, first: QRectF) -> float:
    """Write ``text`` in lines from ``first`` on; where they end."""
    lines = wrapped(painter.font(), text, first.width())
    for n, words in enumerate(lines):
        draw_text(painter, first.translated(0, n * first.height()), _LEFT, words)
    return first.top() + len(lines) * first.height()
