"""Red frames around what lies open though the mask's shape hides it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from attnviz.figure.grid import Grid, Window
from attnviz.figure.styles import Style
from attnviz.figure.vectors import draw_lines, draw_rects
from attnviz.frames import CellClass, Outline
from attnviz.spec import AnyShape, Blocks, Drawn, MaskFile, visible_run, visible_runs

_STAIRS_FROM = 3.0


@dataclass(frozen=True, slots=True)
class Peeking:
    """Which cells take a red frame where they are shown: those that ``shape`` hides.

    Query i stands at position i + ``shift`` among ``n_keys`` keys.
    """

    shape: AnyShape
    shift: int
    n_keys: int


def peeking_of(outline: Outline) -> Peeking | None:
    """What of the shown stage is to be framed in red; None where nothing is, or where a file alone could tell."""
    if not outline.has_future or outline.future_hidden or isinstance(outline.mask_shape, MaskFile):
        return None
    return Peeking(outline.mask_shape, outline.n_keys - outline.n_queries, outline.n_keys)


def hides(outline: Outline, row: int, col: int) -> bool | None:
    """Whether the mask's shape keeps key ``col`` from query ``row``; None where a file alone could tell."""
    if isinstance(outline.mask_shape, MaskFile):
        return None
    runs = visible_runs(outline.mask_shape, row, outline.n_queries, outline.n_keys)
    return not any(first <= col < end for first, end in runs)


@lru_cache(maxsize=8)
def _visible_runs(peeking: Peeking, rows: range) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First key and the end of the keys that each query of ``rows`` may see; kept, since all heads ask the same."""
    positions = np.arange(rows.start, rows.stop, rows.step) + peeking.shift
    if isinstance(peeking.shape, Blocks):  # `visible_run` walks through all documents for each row
        starts = np.array([0, *accumulate(peeking.shape.lengths)])
        ends = np.minimum(positions + 1, peeking.n_keys)
        return np.minimum(starts[np.searchsorted(starts, positions, side="right") - 1], ends), ends
    runs = [visible_run(peeking.shape, position, peeking.n_keys) for position in positions.tolist()]
    firsts, ends = np.array(runs, np.int64).reshape(-1, 2).T
    return firsts, ends


@lru_cache(maxsize=8)
def hidden_cells(peeking: Peeking, rows: range, cols: range) -> npt.NDArray[np.bool_]:
    """Which cells of ``rows`` × ``cols`` the shape hides; kept, since all heads ask the same."""
    if isinstance(peeking.shape, Drawn):
        n_queries = peeking.n_keys - peeking.shift
        hidden = np.ones((len(rows), len(cols)), bool)
        for place, row in enumerate(rows):
            for first, end in visible_runs(peeking.shape, row, n_queries, peeking.n_keys):
                hidden[place, max(first - cols.start, 0) : max(end - cols.start, 0)] = False
        return hidden
    firsts, ends = _visible_runs(peeking, rows)
    places = np.arange(cols.start, cols.stop)
    return (places < firsts[:, None]) | (places >= ends[:, None])


def frame_hidden_cells(
    painter: QPainter, grid: Grid, shown: npt.NDArray[np.uint8], peeking: Peeking, style: Style, unit: float = 1.0
) -> None:
    """A red frame in each cell of ``grid`` that ``peeking`` hides and that is ``shown`` with a number all the same."""
    behind = hidden_cells(peeking, grid.rows, grid.cols)
    width = min(max(grid.side / 40, 1.4 * min(max(unit, 1.0), max(grid.side / 14, 1.0))), 5.0)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    inset = width / 2 + (3.6 if grid.side >= 60 else 1)  # the cross-hair's own frame stays outside of it
    cells = [
        grid.cell(grid.rows.start + row, grid.cols.start + col).adjusted(inset, inset, -inset, -inset)
        for row, col in np.argwhere(behind & (shown == CellClass.ORDINARY)).tolist()
    ]
    for colour, wide in _strokes(style, width):
        pen = QPen(colour, wide)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        painter.setPen(pen)
        draw_rects(painter, cells)


def _strokes(style: Style, width: float) -> tuple[tuple[QColor, float], ...]:
    """Colours and widths of a red line, the lowest first: in grey it needs a light casing on dark cells."""
    own = (style.leak, width)
    return ((style.card, width * 2.4), own) if style.grey else (own,)


def outline_hidden(painter: QPainter, grid: Grid, peeking: Peeking, style: Style, unit: float) -> None:
    """Red lines around the visible cells that the shape hides, at each side of what it shows."""
    if isinstance(peeking.shape, Drawn):
        _outline_drawn(painter, grid, peeking, style, unit)
        return
    rect = grid.rect
    path = _hidden_path(peeking, rect.width(), rect.height(), grid.window, grid.rows, unit)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.translate(rect.topLeft())
    for colour, wide in _strokes(style, 2.0 * max(1.0, unit)):
        painter.setPen(QPen(colour, wide))
        painter.drawPath(path)
    painter.translate(-rect.topLeft())


@lru_cache(maxsize=8)  # the maps of one picture lie alike
def _hidden_path(
    peeking: Peeking, width: float, height: float, window: Window, rows_in_sight: range, unit: float
) -> QPainterPath:
    """The lines around what the shape hides, in a map at (0, 0)."""
    grid = Grid(QRectF(0, 0, width, height), window, rows_in_sight, range(0))
    step = max(1, int(0.5 / grid.cell_h))  # two rows a pixel are enough
    rows = range(grid.rows.start, grid.rows.stop, step)
    firsts, ends = _visible_runs(peeking, rows)
    beyond = math.ceil(8 * unit / grid.cell_w)  # coordinates stay near the sheet, a million columns out as well
    low, high = math.floor(grid.window[2]) - beyond, math.ceil(grid.window[3]) + beyond
    over = 8 * unit if rows.start > 0 else 0.0  # what goes on beyond the rows in sight has no edge there
    under = 8 * unit if rows_in_sight.stop < peeking.n_keys - peeking.shift else 0.0
    area = QPainterPath()
    for edges, border in (ends, peeking.n_keys), (firsts, 0):
        outer = grid.x(min(max(border, low), high))
        for _, start, stop in runs_of((edges != border)[None]):
            tops = np.append(np.array(rows)[start:stop], min(rows[stop - 1] + step, grid.rows.stop))
            corners = _corners(grid, tops, np.clip(edges[start:stop], low, high))
            if start == 0 and over:
                corners.insert(0, corners[0] - QPointF(0, over))
            if stop == len(rows) and under:
                corners.append(corners[-1] + QPointF(0, under))
            closed = [QPointF(outer, corners[0].y()), *corners, QPointF(outer, corners[-1].y())]
            area.addPolygon(QPolygonF([*closed, closed[0]]))
    if (firsts >= ends).any():  # rows that see nothing join what lies left of the others to what lies right
        area = area.simplified()
    return area


def _outline_drawn(painter: QPainter, grid: Grid, peeking: Peeking, style: Style, unit: float) -> None:
    """The edges between what was drawn to be seen and what was drawn to be hidden."""
    hidden = hidden_cells(peeking, grid.rows, grid.cols)
    upright = np.diff(hidden.astype(np.int8), axis=1).T  # a line left of column c + 1 is a stretch of rows
    level = np.diff(hidden.astype(np.int8), axis=0)
    lines = []
    for col, first, last in runs_of(upright != 0):
        x = grid.x(grid.cols.start + col + 1)
        lines.append(QLineF(x, grid.y(grid.rows.start + first), x, grid.y(grid.rows.start + last)))
    for row, first, last in runs_of(level != 0):
        y = grid.y(grid.rows.start + row + 1)
        lines.append(QLineF(grid.x(grid.cols.start + first), y, grid.x(grid.cols.start + last), y))
    for colour, wide in _strokes(style, min(2.0, max(grid.side / 2, 1.0)) * max(1.0, unit)):
        painter.setPen(QPen(colour, wide))
        draw_lines(painter, lines)


def _corners(grid: Grid, tops: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> list[QPointF]:
    """The line along ``edges``, one for each row from ``tops`` to the next: in steps where a step can be seen."""
    if grid.side >= _STAIRS_FROM:
        rows, cols = np.repeat(tops, 2)[1:-1], np.repeat(edges, 2)
    else:
        rows, cols = tops, np.append(edges, edges[-1])
        turns = (np.diff(cols, 2) != 0) | (np.diff(rows, 2) != 0)
        kept = np.concatenate([[True], turns, [True]])
        rows, cols = rows[kept], cols[kept]
    return [QPointF(grid.x(col), grid.y(row)) for row, col in zip(rows.tolist(), cols.tolist(), strict=True)]


def runs_of(plane: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """(row, first, last) of each stretch of true cells in a row, half-open."""
    edges = np.diff(np.pad(plane.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    for (row, first), (_, last) in zip(starts.tolist(), ends.tolist(), strict=True):
        yield row, first, last
