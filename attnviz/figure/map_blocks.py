"""Several maps that belong together: one grid of them, and one colour bar where they share a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from attnviz.colour import quantity_ticks
from attnviz.figure.blocks import GAP, LINE, Headed, Range, paint_lines
from attnviz.figure.fonts import sized, text_width
from attnviz.figure.grids import shifted
from attnviz.figure.matrix_map import CAPTION_PX, TITLE_PX, Matrix, hatch_below, paint_map, place_of
from attnviz.figure.paint import paint_colour_bar
from attnviz.figure.places import Box, FigureLayout, PanelLayout
from attnviz.figure.styles import Style
from attnviz.figure.words import wrapped
from attnviz.frames import CellClass, shown_class
from attnviz.spec import Paper, View

_LEAST: Final = 42.0
"""Pixels a side, × unit, below which a map says nothing."""

_LEAST_CELL: Final = 7.0  # of a map whose rows are named
_TIGHT: Final = 84.0
"""Maps smaller than this have brief words around them."""

_AT_EASE: Final = 150.0
_BAR: Final = 60.0  # without its ticks' words
_BAR_HIGH: Final = 320.0
_CENTRE = Qt.AlignmentFlag.AlignHCenter


@dataclass(frozen=True, slots=True, eq=False)
class MapsBlock:
    """``maps`` in a grid. ``view`` says in which colours.

    ``bars`` are colour bars beside them: each the number of a map whose scale it shows, and what it measures in words,
    "" for what the map's stage says.
    """

    maps: tuple[Matrix, ...]
    name: str
    view: View = field(default_factory=View)
    bars: tuple[tuple[int, str], ...] = ((0, ""),)
    words: Headed = field(default_factory=Headed)
    weight: float = 2.0

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
            if self.worth((width, middle), unit) >= self._least_area:
                high = middle
            else:
                low = middle
        return high, math.inf

    @property
    def _least_area(self) -> float:
        """Below this the maps say nothing."""
        rows = [min(one.crop.size[0], 24) if one.outline.tokens else 0 for one in self.maps]
        return sum(max(_LEAST, _LEAST_CELL * count) ** 2 for count in rows)

    def worth(self, size: tuple[float, float], unit: float) -> float:
        room = Box(0, 0, size[0], max(size[1] - self.words.height(size[0], unit), 1.0))
        grid = _best(self.shown(None), _beside(room, self._bars_width(unit)), unit)
        if _least(grid) < 0:
            return 1.0
        return max(sum(cell.place.map_rect.width * cell.place.map_rect.height for cell in grid) / unit**2, 1.0)

    def shown(self, paper: Paper | None) -> tuple[Matrix, ...]:
        """The maps as the paper has them: without names of tokens where it has no labels."""
        if paper is None or paper.labels:
            return self.maps
        return tuple(replace(one, outline=replace(one.outline, tokens=())) for one in self.maps)

    @property
    def looks(self) -> tuple[CellClass | None, ...]:
        """The looks of cells that are no numbers in these maps; None is the red frame."""
        kinds: set[CellClass] = set()
        red = False
        for one in self.maps:
            shown = shown_class(one.frame.classes)
            kinds |= {CellClass(int(kind)) for kind in np.unique(shown) if kind}
            red |= one.shows_red
        order = (CellClass.MASKED, CellClass.ZERO, CellClass.DROPPED, CellClass.PADDED, CellClass.NAN)
        return (*(kind for kind in order if kind in kinds), *((None,) if red else ()))

    def _bar_width(self, unit: float) -> float:
        """What a colour bar needs with its widest tick and its words."""
        font = sized(12 * unit)
        ticks = [words for place, _ in self.bars for _, words in quantity_ticks(self.maps[place].frame.scale)]
        return _BAR * unit + max((text_width(font, words) for words in ticks), default=0.0)

    def _bars_width(self, unit: float) -> float:
        return self._bar_width(unit) * len(self.bars)

    def paint(self, painter: QPainter, box: Box, style: Style, unit: float, paper: Paper) -> None:
        room = self.words.paint(painter, box, style, unit)
        bars, wide = self.bars if paper.colour_bar else (), self._bar_width(unit)
        grid = self._grid_in(room, unit, paper)
        for cell in grid:
            cell.paint(painter, style, unit, paper)
        right = max(cell.right(unit) for cell in grid)
        for place, bar in enumerate(bars):
            self._paint_bar(painter, grid, right + place * wide, room, style, unit, bar)

    def places(self, box: Box, unit: float, paper: Paper) -> tuple[tuple[Matrix, Box], ...]:
        """Each map, and where its cells lie when it is painted into ``box``."""
        room = self.words.inner(box, unit)
        return tuple((cell.matrix, cell.place.map_rect) for cell in self._grid_in(room, unit, paper))

    def _grid_in(self, room: Box, unit: float, paper: Paper) -> list[_Cell]:
        """The maps in the middle of ``room``, the colour bars' columns at their right."""
        wide = self._bar_width(unit) * len(self.bars) if paper.colour_bar else 0.0
        grid = _best(self.shown(paper), _beside(room, wide), unit)
        left, right = min(cell.box.x for cell in grid), max(cell.right(unit) for cell in grid)
        spare = max(room.right - right - wide, 0) / 2 - max(left - room.x, 0) / 2
        return [cell.moved(spare) for cell in grid]

    def _paint_bar(
        self, painter: QPainter, grid: list[_Cell], right: float, room: Box, style: Style, unit: float,
        bar: tuple[int, str],
    ) -> None:  # fmt: skip
        top = min(cell.place.map_rect.y for cell in grid)
        low = max(cell.place.map_rect.bottom for cell in grid)
        high = min(max(min(low - top, _BAR_HIGH * unit), 110 * unit), room.height)
        y = min(max((top + low) / 2 - high / 2, room.y), room.bottom - high)
        column = Box(right + 14 * unit, y, self._bar_width(unit) - 14 * unit, high)
        strip = Box(column.x, y + 7 * unit, 13 * unit, high - 14 * unit)
        nothing = Box(0, 0, 0, 0)
        plan = FigureLayout((room.right, room.bottom), (), strip, column, nothing, (), (), unit)
        frame = self.maps[bar[0]].frame
        paint_colour_bar(painter, plan, frame, self.view, style, bar[1])
        if style.grey and frame.scale.diverging:
            hatch_below(painter, [QRectF(strip.x, strip.y + strip.height / 2, strip.width, strip.height / 2)], unit)


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """One map with its words in a grid."""

    matrix: Matrix
    box: Box
    place: PanelLayout
    title: tuple[str, ...]
    caption: tuple[str, ...]
    fits: bool = True
    title_px: float = TITLE_PX

    def right(self, unit: float) -> float:
        """Where the map, or the words around it, end."""
        words = [text_width(sized(self.title_px * unit), line) for line in self.title]
        words += [text_width(sized(CAPTION_PX * unit), line) for line in self.caption]
        parts = max(part.right for part in self.place.boxes)
        return max(parts, self.box.x + (self.box.width + max(words, default=0.0)) / 2)

    def moved(self, dx: float) -> _Cell:
        dx = math.floor(dx)
        return replace(self, box=self.box.moved(dx, 0), place=shifted(self.place, dx))

    def paint(self, painter: QPainter, style: Style, unit: float, paper: Paper) -> None:
        line, place = LINE * unit, self.place
        painter.setFont(sized(self.title_px * unit))
        painter.setPen(style.ink)
        high = min(part.y for part in place.boxes)
        top = max(high - len(self.title) * line - 2 * unit, self.box.y)
        paint_lines(painter, Box(self.box.x, top, self.box.width, high - top), self.title, line, _CENTRE)
        paint_map(painter, place, self.matrix, style, unit, numbers=paper.numbers, decimals=paper.decimals)
        painter.setFont(sized(CAPTION_PX * unit))
        painter.setPen(style.muted)
        low = max(part.bottom for part in place.boxes) + 3 * unit
        paint_lines(painter, Box(self.box.x, low, self.box.width, line), self.caption, line, _CENTRE)


def _beside(box: Box, width: float) -> Box:
    """What is left of ``box`` beside ``width`` pixels at its right."""
    return Box(box.x, box.y, max(box.width - width, 1.0), box.height)


def _best(maps: tuple[Matrix, ...], room: Box, unit: float) -> list[_Cell]:
    """The grid in which the smallest map is largest, with brief words where it is small all the same."""
    grid = _largest(maps, room, unit)
    if _least(grid) >= (_TIGHT * unit) ** 2 or any(one.brief is None for one in maps):
        return grid
    brief = tuple(
        replace(one, title=one.brief[0], caption=one.brief[1], sums_words="") for one in maps if one.brief is not None
    )
    return _largest(brief, room, unit, CAPTION_PX)


def _largest(maps: tuple[Matrix, ...], room: Box, unit: float, title_px: float = TITLE_PX) -> list[_Cell]:
    grids = [(_grid(maps, room, unit, columns, title_px), columns) for columns in range(1, len(maps) + 1)]
    most = max(_least(grid) for grid, _ in grids)
    near = [pair for pair in grids if _least(pair[0]) >= (0.85 * most if most > 0 else most)]
    return min(near, key=lambda pair: (-len(maps) % pair[1], -_least(pair[0])))[0]  # no holes, if they cost little


def _least(grid: list[_Cell]) -> float:
    """The area of the smallest map; negative where words have no room."""
    areas = [cell.place.map_rect.width * cell.place.map_rect.height for cell in grid]
    return min(areas) if all(cell.fits for cell in grid) else -1.0


def _captions(maps: tuple[Matrix, ...], wide: float, high: float, unit: float) -> list[tuple[str, ...]]:
    """The lines below each map; where row sums have no room in about ``wide`` × ``high`` pixels, words say them."""
    room = Box(0, 0, wide, max(high, 1.0))
    said = [
        " · ".join(filter(None, (one.sums_words, one.caption)))
        if one.sums_words and place_of(room, one, unit).sums is None
        else one.caption
        for one in maps
    ]
    return [wrapped(sized(CAPTION_PX * unit), text, wide) for text in said]


def _grid(maps: tuple[Matrix, ...], room: Box, unit: float, columns: int, title_px: float) -> list[_Cell]:
    rows = -(-len(maps) // columns)
    gap = GAP * unit * 0.8
    wide, high = (room.width - gap * (columns - 1)) / columns, (room.height - gap * (rows - 1)) / rows
    wide, high = max(wide, 1.0), max(high, 1.0)
    titles = [wrapped(sized(title_px * unit), one.title, wide) for one in maps]
    cells, summed = [], any(one.frame.row_sums is not None for one in maps)
    captions = _captions(maps, wide, high - 3 * LINE * unit, unit)
    for n, one in enumerate(maps):
        row, column = divmod(n, columns)
        beside = range(row * columns, min((row + 1) * columns, len(maps)))
        above = max(len(titles[m]) for m in beside) * LINE * unit + 2 * unit
        below = max(len(captions[m]) for m in beside) * LINE * unit + 3 * unit
        box = Box(room.x + column * (wide + gap), room.y + row * (high + gap), wide, high)
        inner = Box(box.x, box.y + above, wide, max(high - above - below, 1.0))
        fits = high - above - below >= _LEAST * unit / 2
        place = place_of(inner, one, unit, beside_sums=summed)
        cells.append(_Cell(one, box, place, titles[n], captions[n], fits, title_px))
    return cells
