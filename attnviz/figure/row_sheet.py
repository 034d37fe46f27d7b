"""One row on paper: its keys one below the other, the scores, a bar for each weight, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

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
from attnviz.figure.styles import Style, style_of_theme
from attnviz.figure.units import unit_of
from attnviz.figure.words import wrapped
from attnviz.frames import CellClass, Outline, RowStages, RowStory, Values
from attnviz.spec import Paper

_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
_LEAST_LINE: Final = 17.0  # × unit: rows of keys lower than this become a plot
_MOST_LINE: Final = 110.0
_TITLE, _PRINTED_TITLE, _SECOND, _SMALL = 22, 16, 14, 13
_NAME_EMS: Final = 9.0
_GAP: Final = 12.0
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
            said.append(QCoreApplication.translate("Figure", "context: {0}").format(" · ".join(parts)))
        return [" · ".join(said), self._outline.origin]

    # ---------------------------------------------------------------------------------------------------------- legend

    def _legend(self, width: float) -> list[list[tuple[_Look, str, float]]]:
        """The looks that are there with their words, and where each begins, in lines of ``width``."""
        looks: list[tuple[_Look, str]] = [(k, marks.look_words(k)) for k in _SIGNS if (self._kinds == k).any()]
        if self._peeking.any():
            looks.append(("peeking", marks.look_words(None)))
        if self._story.before is not None:
            looks.append(("before", QCoreApplication.translate("Figure", "the state before")))
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
        names = self._names()
        line = area.height() / (len(names) + 1)
        if line < _LEAST_LINE * self.unit:
            plot = row_plot(self._story, int(area.width()), labels=self.paper.labels)
            paint_plot(painter, area, plot, self.style, self.unit)
            return True
        line = min(line, _MOST_LINE * self.unit)
        self._paint_lines(painter, QRectF(area.left(), area.top(), area.width(), line * (len(names) + 1)), names, line)
        return False

    def _paint_lines(self, painter: QPainter, area: QRectF, names: Sequence[str], line: float) -> None:
        unit, style, row = self.unit, self.style, self._story.now
        px = min(max(0.36 * line, 13 * unit), 32 * unit)
        font = sized(px)
        painter.setFont(font)
        labels, gap = self.paper.labels, _GAP * unit
        name_w = min(max(text_width(font, name) for name in names), _NAME_EMS * px, area.width() * 0.3) if labels else 0
        columns = self._columns(px)
        x = area.left() + (name_w + gap if labels else 0)
        for column in columns:
            self._write_column(painter, column, QRectF(x, area.top(), column.width, line), line, px)
            x += column.width + gap
        weights = self._weight_words(px)
        bars = QRectF(x, area.top() + line, max(area.right() - x - weights.width - gap, 1), area.height() - line)
        heading = marks.stage_title(row.last) if labels else ""
        painter.setFont(sized(_SMALL * unit))
        painter.setPen(style.muted)
        draw_text(painter, QRectF(x, area.top(), bars.width() + gap + weights.width, line), _LEFT, heading)
        most = self._largest()
        painter.setFont(font)
        for n, name in enumerate(names):
            y = area.top() + (n + 1) * line
            painter.setPen(style.muted if row.masked[n] else style.ink)
            draw_text(painter, QRectF(area.left(), y, name_w, line), _RIGHT, name if labels else "")
            self._paint_bar(painter, QRectF(bars.left(), y + 0.16 * line, bars.width(), 0.68 * line), n, most)
            painter.setPen(style.leak if self._peeking[n] else style.muted if row.masked[n] else style.ink)
            draw_text(painter, QRectF(area.right() - weights.width, y, weights.width, line), _RIGHT, weights.words[n])

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
        font, small = sized(px), sized(_SMALL * self.unit)
        width = max([text_width(small, heading), *(text_width(font, word) for word in words)])
        return _Column(heading, words, width)

    def _write_column(self, painter: QPainter, column: _Column, top: QRectF, line: float, px: float) -> None:
        row = self._story.now
        painter.setFont(sized(_SMALL * self.unit))
        painter.setPen(self.style.muted)
        draw_text(painter, top, _RIGHT, column.heading)
        painter.setFont(sized(px))
        for n, words in enumerate(column.words):
            painter.setPen(self.style.muted if row.masked[n] else self.style.ink)
            draw_text(painter, QRectF(top.left(), top.top() + (n + 1) * line, top.width(), line), _RIGHT, words)


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
