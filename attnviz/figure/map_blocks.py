"""Several maps that belong together: one grid of them, and their colour bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from attnviz.figure.blocks import LINE, Headed, Range, paint_lines
from attnviz.figure.colour_bars import (
    LEVEL_HEIGHT,
    bar_ticks,
    bar_words,
    level_strip,
    level_words_width,
    paint_colour_bar,
    paint_level_bar,
)
from attnviz.figure.fonts import sized, text_width
from attnviz.figure.map_grids import LEAST, MapCell, MapGrid, best_grid, plain_grid
from attnviz.figure.matrix_map import CAPTION_PX, Matrix, hatch_below, paint_map
from attnviz.figure.places import Box, FigureLayout
from attnviz.figure.styles import Style
from attnviz.frames import CellClass, Frame, shown_class
from attnviz.spec import Paper, View

_LEAST_CELL: Final = 7.0  # of a map whose rows are named
_NAMED_CELL, _FEW = 9.0, 8  # of so few rows each has its name
_AT_EASE: Final = 150.0
_BAR: Final = 60.0  # without its ticks' words
_BAR_LOW, _BAR_HIGH = 110.0, 320.0
_LEVEL_LONG, _LEVEL_SHORT = 260.0, 80.0
_ABOVE_LEVEL: Final = 12.0
_WORTH_MOVING: Final = 1.08
"""Colour bars leave the maps' right side where that makes the maps so much larger."""

_CENTRE = Qt.AlignmentFlag.AlignHCenter


@dataclass(frozen=True, slots=True, eq=False)
class MapsBlock:
    """``maps`` in a grid. ``view`` says in which colours.

    ``bars`` are their colour bars: each the number of a map whose scale it shows, and what it measures in words,
    "" for what the map's stage says. Where there is a block ``like`` this one, all lies where that one's does.
    """

    maps: tuple[Matrix, ...]
    name: str
    view: View = field(default_factory=View)
    bars: tuple[tuple[int, str], ...] = ((0, ""),)
    words: Headed = field(default_factory=Headed)
    weight: float = 2.0
    part: str = ""
    like: MapsBlock | None = None

    @property
    def comfort(self) -> float:
        return len(self.maps) * _AT_EASE**2

    def widths(self, unit: float) -> Range:
        return 100 * unit + self._bars_width(unit), math.inf

    def heights(self, width: float, unit: float) -> Range:
        least = self.words.height(width, unit) + 100 * unit
        low, high = least, 3 * least
        for _ in range(5):  # to a height at which the maps can be read
            middle = (low + high) / 2
            room = Box(0, 0, width, middle - self.words.height(width, unit))
            rooms = _resized(room, width=width - self._bars_width(unit)), _above_level(room, unit)
            if any(plain_grid(self.maps, one, unit).worth >= self._least_area * unit**2 for one in rooms):
                high = middle
            else:
                low = middle
        return high, math.inf

    @property
    def _least_area(self) -> float:
        """Below this the maps say nothing."""
        rows = [one.crop.size[0] if one.outline.tokens else 0 for one in self.maps]
        sides = [max(LEAST, _LEAST_CELL * min(count, 24), _NAMED_CELL * min(count, _FEW)) for count in rows]
        return sum(side**2 for side in sides)

    def worth(self, size: tuple[float, float], unit: float) -> float:
        room = Box(0, 0, size[0], max(size[1] - self.words.height(size[0], unit), 1.0))
        grid = self._plan(room, unit, None).grid
        return max(grid.worth / unit**2, 1.0)

    def shown(self, paper: Paper | None) -> tuple[Matrix, ...]:
        """The maps as the paper has them: without names of tokens where it has no labels."""
        if paper is None or paper.labels:
            return self.maps
        return tuple(replace(one, outline=replace(one.outline, tokens=())) for one in self.maps)

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        room = self.words.paint(painter, box, style, unit)
        plan = self._plan(room, unit, paper)
        for number, (cell, own) in enumerate(zip(plan.grid.cells, self.shown(paper), strict=True)):
            shown = cell if self.like is None else cell.showing(own, unit)
            _paint_cell(painter, shown, plan.grid.row_of(number), style, unit, paper)
        for (number, words), place in zip(self.bars, plan.bars, strict=False):
            self._paint_bar(painter, place, number, words, style, unit, level=plan.level)

    def places(self, box: Box, unit: float, paper: Paper) -> tuple[tuple[Matrix, Box], ...]:
        """Each map, and where its cells lie when it is painted into ``box``."""
        cells = self._plan(self.words.inner(box, unit), unit, paper).grid.cells
        return tuple((own, cell.place.map_rect) for own, cell in zip(self.shown(paper), cells, strict=True))

    # ----------------------------------------------------------------------------------------------------------- bars

    def _plan(self, room: Box, unit: float, paper: Paper | None) -> _Plan:
        """Where maps and colour bars lie in ``room``: the bars beside the maps, below, or where a map is missing."""
        if self.like is not None:
            return self.like._plan(room, unit, paper)  # noqa: SLF001 (its own kind)
        maps = self.shown(paper)
        if paper is not None and not paper.colour_bar:
            return _centred(best_grid(maps, room, unit), 0.0, room)
        wide = self._bars_width(unit)
        beside = best_grid(maps, _resized(room, width=room.width - wide), unit)
        whole = best_grid(maps, room, unit)
        hole = whole.hole
        roomy = hole is not None and hole.width >= wide and hole.height >= _BAR_LOW * unit
        if hole is not None and roomy and whole.merit >= beside.merit > 0:
            plan = _centred(whole, 0.0, room)
            hole = plan.grid.hole or hole
            return replace(plan, bars=self._upright(hole.x, hole, unit))
        below = best_grid(maps, _above_level(room, unit), unit)
        if below.merit >= _WORTH_MOVING * beside.merit > 0:
            plan = _centred(below, 0.0, room)
            bars = self._level(plan.grid, room, unit)
            if bars is not None:
                return replace(plan, bars=bars, level=True)
        plan = _centred(beside, wide, room)
        cells = plan.grid.cells
        right = max(cell.edges(unit)[1] for cell in cells)
        return replace(plan, bars=self._upright(right, _around(cells), unit, room))

    def _bar_width(self, unit: float) -> float:
        """What an upright bar needs with its widest tick and its words."""
        font = sized(12 * unit)
        ticks = [words for place, _ in self.bars for _, words in bar_ticks(self._of_bar(place), self.view)]
        return _BAR * unit + max((text_width(font, words) for words in ticks), default=0.0)

    def _of_bar(self, place: int) -> list[Frame]:
        """The frames that have the scale of the map at ``place``, its own first."""
        own = self.maps[place].frame
        return [own, *(one.frame for one in self.maps if one.frame.scale == own.scale)]

    def _bars_width(self, unit: float) -> float:
        return self._bar_width(unit) * len(self.bars)

    def _upright(self, left: float, beside: Box, unit: float, room: Box | None = None) -> tuple[Box, ...]:
        """Columns of upright bars from ``left`` on, as high as what they stand ``beside``."""
        room, wide, cells = room or beside, self._bar_width(unit), beside
        high = min(max(min(cells.height, _BAR_HIGH * unit), _BAR_LOW * unit), room.height)
        y = min(max(cells.y + cells.height / 2 - high / 2, room.y), room.bottom - high)
        gap = 14 * unit
        return tuple(Box(left + n * wide + gap, y, wide - gap, high) for n in range(len(self.bars)))

    def _level(self, grid: MapGrid, room: Box, unit: float) -> tuple[Box, ...] | None:
        """Level bars below the maps that they are of, in the middle; None where there is no room for one."""
        cells, found = grid.cells, []
        y = max(cell.low + len(cell.caption) * LINE * unit for cell in cells) + _ABOVE_LEVEL * unit
        if y + LEVEL_HEIGHT * unit > room.bottom + 1:
            return None
        ends = [*(place for place, _ in self.bars[1:]), len(cells)]
        one_row = len(cells) <= grid.columns
        whole = _around(cells)
        for n, ((place, words), end) in enumerate(zip(self.bars, ends, strict=True)):
            share = whole.width / len(self.bars)
            own = Box(whole.x + n * share, y, share - 10 * unit, 0)
            if one_row:
                own = _around(cells[place:end])
            wide = level_words_width(self._beside_level(place, words), unit) + _LEVEL_LONG * unit
            if own.width < wide - (_LEVEL_LONG - _LEVEL_SHORT) * unit:
                return None
            wide = min(wide, own.width)
            found.append(Box(own.x + (own.width - wide) / 2, y, wide, LEVEL_HEIGHT * unit))
        return tuple(found)

    def _beside_level(self, number: int, words: str) -> str:
        """What a level bar measures; "" where that is the title of the map above it."""
        one = self.maps[number]
        said = words or bar_words(one.frame, self.view)
        return "" if said == one.title else said

    def _paint_bar(
        self, painter: QPainter, box: Box, number: int, words: str, style: Style, unit: float, *, level: bool
    ) -> None:  # fmt: skip
        frames = self._of_bar(number)
        if level:
            words = self._beside_level(number, words)
            paint_level_bar(painter, box, frames, self.view, style, unit, words)
            strip = level_strip(box, words, unit)
            below = QRectF(strip.x, strip.y, strip.width / 2, strip.height)
        else:
            strip, nothing = Box(box.x, box.y + 7 * unit, 13 * unit, box.height - 14 * unit), Box(0, 0, 0, 0)
            plan = FigureLayout((box.right, box.bottom), (), strip, box, nothing, (), (), unit)
            paint_colour_bar(painter, plan, frames, self.view, style, words)
            below = QRectF(strip.x, strip.y + strip.height / 2, strip.width, strip.height / 2)
        if style.grey and frames[0].scale.diverging:
            hatch_below(painter, [below], unit)


def looks_of(blocks: Sequence[MapsBlock]) -> tuple[CellClass | None, ...]:
    """The looks of cells that are no numbers in the maps of ``blocks``; None is the red frame."""
    maps = [one for block in blocks for one in block.maps]
    kinds = {int(kind) for one in maps for kind in np.unique(shown_class(one.frame.classes))}
    order = (CellClass.MASKED, CellClass.ZERO, CellClass.DROPPED, CellClass.PADDED, CellClass.NAN)
    red: tuple[None, ...] = (None,) if any(one.shows_red for one in maps) else ()
    return *(kind for kind in order if kind in kinds), *red


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Where maps and colour bars lie; the bars upright, or ``level``."""

    grid: MapGrid
    bars: tuple[Box, ...] = ()
    level: bool = False


def _centred(grid: MapGrid, wide: float, room: Box) -> _Plan:
    """``grid`` and the ``wide`` pixels at its right in the middle of ``room``."""
    boxes = [part for cell in grid.cells for part in cell.place.boxes]
    left, right = min(box.x for box in boxes), max(box.right for box in boxes)
    spare = max(room.right - right - wide, 0) / 2 - max(left - room.x, 0) / 2
    return _Plan(grid.moved(spare))


def _around(cells: Sequence[MapCell]) -> Box:
    """The smallest box around the maps' own cells."""
    places = [cell.place.map_rect for cell in cells]
    x, y = min(place.x for place in places), min(place.y for place in places)
    return Box(x, y, max(place.right for place in places) - x, max(place.bottom for place in places) - y)


def _above_level(room: Box, unit: float) -> Box:
    """What level bars below leave of ``room``."""
    return _resized(room, height=room.height - (_ABOVE_LEVEL + LEVEL_HEIGHT) * unit)


def _resized(box: Box, *, width: float | None = None, height: float | None = None) -> Box:
    """``box`` with another width or height, of a pixel at least."""
    wide, high = (own if new is None else new for own, new in ((box.width, width), (box.height, height)))
    return Box(box.x, box.y, max(wide, 1.0), max(high, 1.0))


def _paint_cell(
    painter: QPainter, cell: MapCell, row: Sequence[MapCell], style: Style, unit: float, paper: Paper
) -> None:  # fmt: skip
    """A map with its title and caption, which stand level with those of the others in its ``row``."""
    line, wide = LINE * unit, cell.box.width
    left = cell.middle(unit) - wide / 2
    painter.setFont(sized(cell.title_px * unit))
    painter.setPen(style.ink)
    high = min(one.top for one in row)
    top = max(high - len(cell.title) * line - 2 * unit, cell.box.y)
    paint_lines(painter, Box(left, top, wide, high - top), cell.title, line, _CENTRE)
    paint_map(painter, cell.place, cell.matrix, style, unit, numbers=paper.numbers, decimals=paper.decimals)
    painter.setFont(sized(CAPTION_PX * unit))
    painter.setPen(style.muted)
    low = max(one.low for one in row) + 3 * unit
    paint_lines(painter, Box(left, low, wide, line), cell.caption, line, _CENTRE)
