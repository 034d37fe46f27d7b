"""What a figure of several parts is made of: maps, plots, tables, counts, drawings, and how much room each needs.

A block says what it needs in pixels, where type and gaps are scaled by ``unit``, and paints itself into the box that
it is given, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from attnviz.figure import counts, tables
from attnviz.figure.fonts import draw_text, sized, text_width
from attnviz.figure.form_diagram import LEAST_WIDTH, Sizes, form_height, paint_form
from attnviz.figure.leak_map import LeakPlan, WhoSeesWhom, paint_leak_map
from attnviz.figure.places import Box
from attnviz.figure.plot_places import legend_of
from attnviz.figure.plots import Plot, least_width, paint_plot
from attnviz.figure.styles import Style
from attnviz.figure.words import wrapped
from attnviz.spec import Paper

HEADING: Final = 13
LINE: Final = 17.0
GAP: Final = 18.0
_ROW: Final = 19.0  # of a table
_WHOLE_UP_TO: Final = 12
_FEW_ROWS: Final = 3
_HIGHER: Final = 1.9  # times the least height of stacked and split heads, where there is room
_LEFT = Qt.AlignmentFlag.AlignLeft

Range = tuple[float, float]
"""The least and the most that a block has use for, in pixels."""


class Block(Protocol):
    """A part of a figure.

    ``part`` is its name among `figures.PARTS`, ``name`` says what it is where there is no room for it; ``weight`` how
    much of the sheet it deserves.
    """

    @property
    def part(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> float: ...

    def widths(self, unit: float) -> Range:
        """The widths of use."""

    def heights(self, width: float, unit: float) -> Range:
        """The heights of use at a ``width``."""

    @property
    def comfort(self) -> float:
        """A `worth` from which it needs no more room."""

    def worth(self, size: tuple[float, float], unit: float) -> float:
        """How well it shows in ``size`` (width, height), above 0; two are compared by their ratio."""

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        """Paint into ``box``."""


def paint_lines(
    painter: QPainter, box: Box, lines: Sequence[str], line: float, flags: Qt.AlignmentFlag = _LEFT
) -> float:
    """``lines`` of words from the top of ``box`` in the painter's font and pen; where the next one would begin."""
    y = box.y
    for words in lines:
        draw_text(painter, QRectF(box.x, y, box.width, line), flags, words)
        y += line
    return y


def heading_font(unit: float) -> QFont:
    """The font of what stands above a block."""
    return sized(HEADING * unit)


@dataclass(frozen=True, slots=True)
class Headed:
    """What a block has above it and below it: a heading in words, and a note; "" for none.

    ``others`` are those of the same block in the other pictures of an animation: there is room for the longest.
    """

    heading: str = ""
    note: str = ""
    others: tuple[Headed, ...] = ()

    def height(self, width: float, unit: float) -> float:
        """What both take of a block's height."""
        return 1e6 - self.inner(Box(0, 0, width, 1e6), unit).height

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float) -> Box:
        """Paint both at the upper and the lower edge; what is left between them."""
        font, line = heading_font(unit), LINE * unit
        painter.setFont(font)
        painter.setPen(style.ink)
        paint_lines(painter, box, wrapped(font, self.heading, box.width), line)
        painter.setPen(style.muted)
        low = box.bottom - self._lines(box.width, unit)[1] * line
        paint_lines(painter, Box(box.x, low, box.width, line), wrapped(font, self.note, box.width), line)
        return self.inner(box, unit)

    def inner(self, box: Box, unit: float) -> Box:
        """What is left of ``box`` between the two."""
        gap = 4 * unit
        above, below = (count * LINE * unit for count in self._lines(box.width, unit))
        top, bottom = above + (gap if above else 0), below + (gap if below else 0)
        return Box(box.x, box.y + top, box.width, max(box.height - top - bottom, 1.0))

    def _lines(self, width: float, unit: float) -> tuple[int, int]:
        """So many lines above and below have room."""
        font, found = heading_font(unit), (self, *self.others)
        above = max(len(wrapped(font, one.heading, width)) for one in found)
        return above, max(len(wrapped(font, one.note, width)) for one in found)


# --------------------------------------------------------------------------------------------------------------- plots


@dataclass(frozen=True, slots=True, eq=False)
class PlotBlock:
    """A plot under its heading."""

    plot: Plot
    name: str
    words: Headed = Headed()
    weight: float = 1.0
    part: str = ""

    @property
    def comfort(self) -> float:
        return 380.0 * 200.0

    def widths(self, unit: float) -> Range:
        return least_width(self.plot, unit), math.inf

    def heights(self, width: float, unit: float) -> Range:
        return self.words.height(width, unit) + self._around(width, unit) + 56 * unit, math.inf

    def _around(self, width: float, unit: float) -> float:
        """What legend, axis and their words take."""
        font, name = sized(12 * unit), self.plot.y_label
        labels = [one.label for one in self.plot.bars] + [one.label for one in self.plot.curves]
        words = [text_width(font, label) for label in labels if label]
        legend = legend_of(words, text_width(font, name) if name else 0.0, width, unit)
        lines = len(legend.lines) + 1 + bool(name and not legend.beside) + bool(self.plot.x_label)
        lines += sum(not mark.upright for mark in self.plot.marks)  # they may come to stand in the legend
        return (17 * lines + 6) * unit

    def worth(self, size: tuple[float, float], unit: float) -> float:
        width, height = size
        high = max(height - self.words.height(width, unit) - self._around(width, unit), 1.0)
        wide = max(width - 40 * unit, 1.0)
        return min(wide, 3 * high) * min(high, wide) / unit**2

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        del paper
        used = self.words.height(box.width, unit) + self._around(box.width, unit) + 0.9 * box.width
        room = self.words.paint(painter, Box(*box[:3], min(used, box.height)), style, unit)
        paint_plot(painter, QRectF(*room), self.plot, style, unit)


# -------------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True, eq=False)
class TableBlock:
    """A table; where the room ends first, a line says how many rows of how many are there."""

    table: tables.Table
    name: str
    words: Headed = Headed()
    weight: float = 0.6
    part: str = ""

    @property
    def comfort(self) -> float:
        return 1.0

    def widths(self, unit: float) -> Range:
        needed = [sum(tables.natural_widths(self.table, px * unit)) for px in (tables.LEAST_TYPE + 1, tables.TYPE)]
        return needed[0], needed[1] + 20 * unit * len(self.table.header)

    def heights(self, width: float, unit: float) -> Range:
        around = self.words.height(width, unit)
        count = len(self.table.lines)
        few = count if count <= _WHOLE_UP_TO else _FEW_ROWS + 1  # of a short one a part would say another thing
        return around + (1 + few) * _ROW * unit, around + (1 + count) * _ROW * unit

    def worth(self, size: tuple[float, float], unit: float) -> float:
        shown = self._shown(size[1] - self.words.height(size[0], unit), unit)
        px = tables.column_widths(self.table, size[0], unit)[0] / unit
        return max(shown, 1) / max(len(self.table.lines), 1) * px / tables.TYPE

    def _shown(self, height: float, unit: float) -> int:
        """Rows that there is room for, beside the line that counts them."""
        room, count = int(height / (_ROW * unit) + 1e-6) - 1, len(self.table.lines)
        return count if room >= count else max(room - 1, 0)

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        del paper
        around = self.words.height(box.width, unit)
        shown, count = self._shown(box.height - around, unit), len(self.table.lines)
        used = around + (1 + shown + (shown < count)) * _ROW * unit
        room = self.words.paint(painter, Box(box.x, box.y, box.width, min(used, box.height)), style, unit)
        px, widths = tables.column_widths(self.table, room.width, unit)
        cut = replace(self.table, lines=self.table.lines[:shown])
        line = _ROW * unit
        tables.paint_table(painter, QPointF(room.x, room.y), cut, style, px, widths, line)
        if shown < count:
            painter.setFont(sized(px))
            painter.setPen(style.muted)
            place = QRectF(room.x + 2, room.y + (1 + shown) * line, room.width, line)
            draw_text(painter, place, _LEFT, tables.rows_words(shown, count))


@dataclass(frozen=True, slots=True, eq=False)
class CountsBlock:
    """Counts with their bars."""

    counts: tuple[counts.Count, ...]
    name: str
    words: Headed = Headed()
    weight: float = 0.5
    part: str = ""

    @property
    def comfort(self) -> float:
        return 16.0

    def widths(self, unit: float) -> Range:
        needed = counts.counts_width(self.counts, unit)
        return needed, max(needed, 520 * unit)

    def heights(self, width: float, unit: float) -> Range:
        height = self.words.height(width, unit) + counts.HEIGHT * len(self.counts) * unit
        return height, height

    def worth(self, size: tuple[float, float], unit: float) -> float:
        del unit
        return math.sqrt(size[0])

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        del paper
        used = min(self.heights(box.width, unit)[1], box.height)
        room = self.words.paint(painter, Box(box.x, box.y, box.width, used), style, unit)
        counts.paint_counts(painter, QRectF(*room), self.counts, style, unit)


# --------------------------------------------------------------------------------------------------- maps and drawings


@dataclass(frozen=True, slots=True, eq=False)
class LeakBlock:
    """Who sees whom."""

    reading: WhoSeesWhom
    name: str
    tokens: tuple[str, ...] = ()
    words: Headed = Headed()
    weight: float = 2.0
    part: str = ""

    @property
    def comfort(self) -> float:
        return 260.0**2

    def widths(self, unit: float) -> Range:
        return 210 * unit, math.inf

    def heights(self, width: float, unit: float) -> Range:
        return self.words.height(width, unit) + 186 * unit, math.inf

    def _cells(self, size: tuple[float, float], unit: float) -> LeakPlan | None:
        height = max(size[1] - self.words.height(size[0], unit), 1.0)
        return LeakPlan.of(QRectF(0, 0, size[0], height), self.reading, self.tokens, unit)

    def worth(self, size: tuple[float, float], unit: float) -> float:
        plan = self._cells(size, unit)
        return 1.0 if plan is None else max(plan.cells.width() / unit, 1.0) ** 2

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        room = self.words.paint(painter, box, style, unit)
        plan = self._cells((room.width, room.height), unit)
        if plan is None:
            return
        used = plan.left + plan.cells.width() + 4 * unit
        legend = [sum(text_width(sized(12 * unit), look.text) + 34 * unit for look in line) for line in plan.legend]
        wide = min(max(used, *legend), room.width)
        left = room.x + max(room.width - wide, 0) / 2
        paint_leak_map(
            painter, QRectF(left, room.y, room.x + room.width - left, room.height), self.reading, style,
            self.tokens if paper.labels else (), unit,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class FormsBlock:
    """Stacked and split heads, drawn as they are, side by side or one below the other."""

    sizes: Sizes
    name: str
    weight: float = 1.0
    part: str = ""

    @property
    def comfort(self) -> float:
        return 300.0

    def widths(self, unit: float) -> Range:
        return LEAST_WIDTH * unit, 2 * 460 * unit

    def _columns(self, width: float, unit: float) -> int:
        return 2 if width >= (2 * LEAST_WIDTH + GAP) * unit else 1

    def heights(self, width: float, unit: float) -> Range:
        rows, high = 2 // self._columns(width, unit), form_height(self.sizes)
        low, most = ((rows * each + (rows - 1) * GAP) * unit for each in (high, _HIGHER * high))
        return low, most

    def worth(self, size: tuple[float, float], unit: float) -> float:
        return size[0] / unit

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        del paper
        columns = self._columns(box.width, unit)
        rows = 2 // columns
        high = (box.height / unit - (rows - 1) * GAP) / rows
        wide = (box.width / unit - (columns - 1) * GAP) / columns
        for place, form in enumerate(("stacked", "split")):
            row, column = divmod(place, columns)
            painter.save()
            painter.translate(box.x + column * (wide + GAP) * unit, box.y + row * (high + GAP) * unit)
            painter.scale(unit, unit)
            paint_form(painter, (wide, high), form, self.sizes, style)  # type: ignore[arg-type]
            painter.restore()
