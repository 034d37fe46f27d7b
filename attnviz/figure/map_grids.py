"""Maps in a grid, each with a title above and a caption below, as large as their room allows. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from attnviz.figure.blocks import GAP, LINE
from attnviz.figure.fonts import sized, text_width
from attnviz.figure.grids import edges_of, shifted, used_by, with_edges
from attnviz.figure.matrix_map import CAPTION_PX, TITLE_PX, Matrix, names_tell, place_of, subject_of_matrix
from attnviz.figure.panels import inner_panel
from attnviz.figure.places import Box, PanelLayout, Subject
from attnviz.figure.words import wrapped

LEAST: Final = 42.0
"""Pixels a side, × unit, below which a map says nothing."""

_TIGHT: Final = 84.0
"""Maps smaller than this have brief words around them."""

_APART: Final = 2.4 * GAP  # at most, between a map with its words and the next
_NAMELESS, _ROW_NAMELESS, _ROWS_ALONE = 0.4, 0.2, 0.7
"""So much of its area is a map worth whose tokens are not named, less where a row is pointed out; and one of one text
whose rows alone are."""

_OF_ONE, _OF_SEVERAL = 0.4, 0.2  # shares of a grid's width that its rows' names take at most
_LABEL_SHARE: Final = 0.3  # of a cell's side
_LABEL_PX: Final = (20.0, 16.0, 13.0, 12.0)


_Sizes = tuple[float, float, float]
"""What `grids.edges_of` gives."""


@dataclass(frozen=True, slots=True, eq=False)
class MapCell:
    """One map with its words: ``place`` is where it lies in ``box``."""

    matrix: Matrix
    box: Box
    place: PanelLayout
    title: tuple[str, ...]
    caption: tuple[str, ...]
    fits: bool = True
    title_px: float = TITLE_PX

    def words_width(self, unit: float) -> float:
        """The widest line of its words."""
        words = [text_width(sized(self.title_px * unit), line) for line in self.title]
        words += [text_width(sized(CAPTION_PX * unit), line) for line in self.caption]
        return max(words, default=0.0)

    def middle(self, unit: float) -> float:
        """Where the words have their middle: that of the map, as far as they stay in the box."""
        middle, place = self.box.x + self.box.width / 2, self.place.map_rect
        free = max(self.box.width - self.words_width(unit), 0.0) / 2
        return middle + min(max(place.x + place.width / 2 - middle, -free), free)

    def edges(self, unit: float) -> tuple[float, float]:
        """Where the map and the words around it begin and end."""
        half, middle = self.words_width(unit) / 2, self.middle(unit)
        boxes = self.place.boxes
        return min(middle - half, *(box.x for box in boxes)), max(middle + half, *(box.right for box in boxes))

    @property
    def top(self) -> float:
        """Where the title ends."""
        return min(part.y for part in self.place.boxes)

    @property
    def low(self) -> float:
        """Where the caption may begin."""
        return max(part.bottom for part in self.place.boxes)

    @property
    def area(self) -> float:
        return self.place.map_rect.width * self.place.map_rect.height

    def showing(self, matrix: Matrix, unit: float) -> MapCell:
        """Another map, with its words, in the same place."""
        title = wrapped(sized(self.title_px * unit), matrix.title, self.box.width)
        caption = wrapped(sized(CAPTION_PX * unit), matrix.caption, self.box.width)
        return replace(self, matrix=matrix, title=title, caption=caption)

    def moved(self, dx: float) -> MapCell:
        """The same at another place."""
        dx = math.floor(dx)
        return replace(self, box=self.box.moved(dx, 0), place=shifted(self.place, dx))


@dataclass(frozen=True, slots=True, eq=False)
class MapGrid:
    """The maps in reading order, ``columns`` in a row.

    ``told`` is the share of their worth that maps have as their tokens are named: 1 where all are, or there are none.
    """

    cells: tuple[MapCell, ...]
    columns: int
    told: float

    @property
    def named(self) -> bool:
        """Whether tokens are named, if but along the rows, or there are none."""
        return self.told >= _ROWS_ALONE

    @property
    def least(self) -> float:
        """The area of the smallest map; negative where words have no room."""
        return min(cell.area for cell in self.cells) if all(cell.fits for cell in self.cells) else -1.0

    @property
    def merit(self) -> float:
        """`least`, less where names are left out: two grids of the same maps are compared by it."""
        return self.least * (self.told if self.least >= 0 else 1.0)

    @property
    def worth(self) -> float:
        """The area of all maps, less where names are left out: maps are weighed against other blocks by it.

        0 where words have no room.
        """
        return sum(cell.area for cell in self.cells) * self.told if self.least >= 0 else 0.0

    def row_of(self, number: int) -> tuple[MapCell, ...]:
        """The cells beside that of ``number``, and itself."""
        first = number - number % self.columns
        return self.cells[first : first + self.columns]

    @property
    def hole(self) -> Box | None:
        """The room for maps that the last row has and does not need."""
        count = len(self.cells)
        if not count % self.columns or count < self.columns:
            return None
        above, last = self.cells[-self.columns].place.map_rect, self.cells[-1].place.map_rect
        right = max(used_by(cell.place).right for cell in self.cells)
        return Box(above.x, last.y, right - above.x, last.height)

    def moved(self, dx: float) -> MapGrid:
        """The same at another place."""
        return replace(self, cells=tuple(cell.moved(dx) for cell in self.cells))


def best_grid(maps: tuple[Matrix, ...], room: Box, unit: float) -> MapGrid:
    """The grid in which the smallest map is largest, with brief words where it is small all the same."""
    grid = _largest(maps, room, unit)
    briefs = _briefs(maps) if grid.least < (_TIGHT * unit) ** 2 else ()
    return _largest(briefs, room, unit, CAPTION_PX) if briefs else grid


def plain_grid(maps: tuple[Matrix, ...], room: Box, unit: float) -> MapGrid:
    """About what `best_grid` gives, in less time: every map has its own labels."""
    briefs = _briefs(maps)
    choices = [(maps, TITLE_PX), *([(briefs, CAPTION_PX)] if briefs else [])]
    grids = [
        MapGrid(tuple(_grid(chosen, room, unit, columns, title_px)), columns, told=1.0)
        for chosen, title_px in choices
        for columns in range(1, len(maps) + 1)
    ]
    return max(grids, key=lambda grid: grid.merit)


def _briefs(maps: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """``maps`` with brief words; () where one has none."""
    brief = tuple(
        replace(one, title=one.brief[0], caption=one.brief[1], sums_words="") for one in maps if one.brief is not None
    )
    return brief if len(brief) == len(maps) else ()


def _largest(maps: tuple[Matrix, ...], room: Box, unit: float, title_px: float = TITLE_PX) -> MapGrid:
    grids = [grid for n in range(1, len(maps) + 1) for grid in _grids(maps, room, unit, n, title_px)]
    most = max(grid.merit for grid in grids)
    near = [grid for grid in grids if grid.merit >= (0.85 * most if most > 0 else most)]
    return min(near, key=lambda grid: (-len(maps) % grid.columns, -grid.merit))  # no holes, if they cost little


def _grids(
    maps: tuple[Matrix, ...], room: Box, unit: float, columns: int, title_px: float
) -> Iterator[MapGrid]:  # fmt: skip
    """Maps that are each labelled; where all have the same tokens, also such that are labelled along the edges.

    A single one may have its rows' names alone so, where its columns' would cost too much.
    """
    each = _grid(maps, room, unit, columns, title_px)
    named = all(not cell.matrix.outline.tokens or cell.place.column_labels is not None for cell in each)
    nameless = _NAMELESS if maps[0].row is None else _ROW_NAMELESS
    yield MapGrid(_packed(each, unit, columns), columns, 1.0 if named else nameless)
    first = maps[0]
    alike = all(
        (one.outline.tokens, one.frame.rows, one.frame.cols)
        == (first.outline.tokens, first.frame.rows, first.frame.cols)
        for one in maps
    )
    if first.outline.tokens and alike and (columns > 1 or len(maps) == 1):
        edged = _edged(maps, room, unit, columns, title_px)
        if edged is not None:
            yield MapGrid(edged, columns, 1.0 if len(maps) > 1 else _ROWS_ALONE)


def _edged(
    maps: tuple[Matrix, ...], room: Box, unit: float, columns: int, title_px: float
) -> tuple[MapCell, ...] | None:  # fmt: skip
    """Maps whose rows are named at the left of the grid and whose columns above it; None where names do not fit.

    Where rows' names alone do, and columns have the same, these go without.
    """
    subject = replace(subject_of_matrix(maps[0]), sums=any(one.frame.row_sums is not None for one in maps))

    def tried(label_px: float, *, slanted: bool, above: bool) -> tuple[list[MapCell], _Sizes]:
        most = _OF_ONE if len(maps) == 1 else _OF_SEVERAL
        left, top, lean = edges_of(subject, room.width, label_px, unit, slanted=slanted, most=most)
        sizes = left, top if above else 0.0, lean
        inner = Box(room.x + left, room.y, max(room.width - left - lean, 1.0), room.height)
        return _grid(maps, inner, unit, columns, title_px, edge=_Edge(subject, label_px, sizes[1])), sizes

    def wide(grid: list[MapCell], label_px: float) -> bool:
        return subject.column_ems * label_px * 1.1 > 1.1 * grid[0].place.map_rect.width / subject.cols

    rough = tried(_LABEL_PX[-1] * unit, slanted=True, above=True)[0]
    cell = rough[0].place.map_rect.width / subject.cols
    label_px = next((px * unit for px in _LABEL_PX if px * unit <= _LABEL_SHARE * cell), _LABEL_PX[-1] * unit)
    turned = subject.column_ems * label_px * 1.1 > cell
    ways = [(turned, True)] if len(maps) > 1 else []  # a single map has both by itself
    for slanted, above in (*ways, *([(False, False)] if maps[0].is_of_one_text else [])):
        grid, sizes = tried(label_px, slanted=slanted, above=above)
        rows_tell, columns_tell = names_tell(grid[0].place, subject, slanted=slanted)
        columns_tell = not above or (columns_tell and (slanted or not wide(grid, label_px)))
        if rows_tell and columns_tell and room.width - sizes[0] - sizes[2] >= room.width / 2:
            break
    else:
        return None
    packed = _packed(grid, unit, columns, least=sizes[2])
    count = min(columns, len(maps))
    return tuple(
        replace(one, place=with_edges(one.place, subject, (n // columns, n % columns), count, sizes, slanted=slanted))
        for n, one in enumerate(packed)
    )


@dataclass(frozen=True, slots=True)
class _Edge:
    """What is labelled along the grid's edges: the maps' ``subject``, the labels' height, and what they take above."""

    subject: Subject
    label_px: float
    top: float


def _grid(
    maps: tuple[Matrix, ...], room: Box, unit: float, columns: int, title_px: float, edge: _Edge | None = None
) -> list[MapCell]:  # fmt: skip
    """Cells of one size in ``columns``: each row has as much room for words as the one that needs most.

    With an ``edge`` maps have no labels of their own; above the first row is room for them.
    """
    rows = -(-len(maps) // columns)
    gap, crown = GAP * unit * 0.8, 0.0 if edge is None else edge.top
    wide, high = (room.width - gap * (columns - 1)) / columns, (room.height - crown - gap * (rows - 1)) / rows
    wide, high = max(wide, 1.0), max(high, 1.0)
    titles = [_lines(title_px * unit, one.title, wide) for one in maps]
    cells, summed = [], any(one.frame.row_sums is not None for one in maps)
    captions = _captions(maps, wide, high - 3 * LINE * unit, unit)
    above = max(map(len, titles)) * LINE * unit + 2 * unit
    below = max(map(len, captions)) * LINE * unit + 3 * unit
    for n, one in enumerate(maps):
        row, column = divmod(n, columns)
        own = crown if row == 0 else 0.0
        box = Box(
            room.x + column * (wide + gap), room.y + row * (high + gap) + (crown - own), wide, high + own
        )  # fmt: skip
        inner = Box(box.x, box.y + above + own, wide, max(high - above - below, 1.0))
        if edge is None:
            place = place_of(inner, one, unit, beside_sums=summed)
        else:
            place = _inner(inner.width, inner.height, edge.subject, unit, edge.label_px)
            place = shifted(place, math.floor(inner.x), math.floor(inner.y))
            if one.frame.row_sums is None:
                place = replace(place, sums=None, sums_header=None)
        fits = high - above - below >= LEAST * unit / 2
        cells.append(MapCell(one, box, place, titles[n], captions[n], fits, title_px))
    return cells


@lru_cache(maxsize=4096)  # the maps of one figure are alike, and many sizes are tried
def _inner(width: float, height: float, subject: Subject, unit: float, label_px: float) -> PanelLayout:
    return inner_panel(Box(0, 0, width, height), subject, unit, label_px)


def _packed(cells: Sequence[MapCell], unit: float, columns: int, least: float = 0.0) -> tuple[MapCell, ...]:
    """``cells`` moved together to the left where there is more between them than anybody needs; ``least`` stays."""
    if columns == 1:
        return tuple(cells)
    pitch = cells[1].box.x - cells[0].box.x
    used = max(max(used_by(cell.place).width, cell.words_width(unit)) for cell in cells)
    closer = min(pitch, used + max(_APART * unit, least))
    return tuple(cell.moved((n % columns) * (closer - pitch)) for n, cell in enumerate(cells))


def _captions(maps: tuple[Matrix, ...], wide: float, high: float, unit: float) -> list[tuple[str, ...]]:
    """The lines below each map; where row sums have no room in about ``wide`` × ``high`` pixels, words say them."""
    room = Box(0, 0, wide, max(high, 1.0))
    said = [
        " · ".join(filter(None, (one.sums_words, one.caption)))
        if one.sums_words and place_of(room, one, unit).sums is None
        else one.caption
        for one in maps
    ]
    return [_lines(CAPTION_PX * unit, text, wide) for text in said]


@lru_cache(maxsize=4096)  # as above
def _lines(px: float, text: str, width: float) -> tuple[str, ...]:
    return wrapped(sized(px), text, width)
