"""Where a window of cells goes: zoom about a point, pan, stay inside the map, fit a range. Pure float64 arithmetic.

A window is `session.Window` in cells; a shape is (rows, columns) of the map; a rectangle is `Box` in pixels. Every
place is counted from the window's corner, never from the map's, so that cell 1,048,575 is as exact as cell 0.
"""

from __future__ import annotations

import math
from typing import Final

from attnviz.figure.layout import Box
from attnviz.frames import level_for
from attnviz.session import Window

Shape = tuple[int, int]
Span = tuple[int, int]

LEAST_CELLS: Final = 2.0
"""A window holds at least so many rows and columns, as far as the map has them."""

PIXEL_STEP: Final = 64
"""A panel's pixels are asked for in these steps, so that resizing recomputes little."""

_AS_GOOD_AS = 1 - 1e-9  # rounding must not leave a map that is shown whole with a window
_MARGIN = 1 / 8  # of the window on each side, for the next pan
_WORN = 1 / 4  # of the margin: when so little is left of it, the next is asked for


def whole(shape: Shape) -> Window:
    """The window that shows all of the map."""
    return Window(0.0, float(shape[0]), 0.0, float(shape[1]))


def is_whole(window: Window, shape: Shape) -> bool:
    """Whether ``window`` shows all of the map."""
    return window == whole(shape)


def clamped(window: Window, shape: Shape) -> Window:
    """``window`` moved, and only where it must be cut or stretched, so that it lies in the map."""
    top, bottom = _clamped(window.top, window.bottom, shape[0])
    left, right = _clamped(window.left, window.right, shape[1])
    return Window(top, bottom, left, right)


def _clamped(first: float, last: float, count: int) -> tuple[float, float]:
    length, least = last - first, min(LEAST_CELLS, count)
    if length >= count * _AS_GOOD_AS:
        return 0.0, float(count)
    if length < least * _AS_GOOD_AS:
        first, length = (first + last - least) / 2, least
        last = first + least
    if first < 0:
        return 0.0, length
    return (count - length, float(count)) if last > count else (first, last)  # what fits stays as it is, to the bit


def zoomed(window: Window, shape: Shape, factor: float, about: tuple[float, float]) -> Window:
    """``factor`` times as many cells a side; the place ``about`` (row, column) stays put if the edges let it."""
    top, bottom = _zoomed(window.top, window.bottom, shape[0], factor, about[0])
    left, right = _zoomed(window.left, window.right, shape[1], factor, about[1])
    return clamped(Window(top, bottom, left, right), shape)


def _zoomed(first: float, last: float, count: int, factor: float, about: float) -> tuple[float, float]:
    length = min(max((last - first) * factor, min(LEAST_CELLS, count)), float(count))
    start = about - (about - first) * (length / (last - first))
    return start, start + length


def panned(window: Window, shape: Shape, rows: float, cols: float) -> Window:
    """Moved by so many cells down and to the right, no further than the map's edges."""
    moved = Window(window.top + rows, window.bottom + rows, window.left + cols, window.right + cols)
    return clamped(moved, shape)


def centred(window: Window, shape: Shape, place: tuple[float, float]) -> Window:
    """The window as large as it is, its middle at ``place`` (row, column) or as near as the edges let it."""
    rows, cols = place[0] - (window.top + window.bottom) / 2, place[1] - (window.left + window.right) / 2
    return panned(window, shape, rows, cols)


def following(window: Window, shape: Shape, cell: tuple[int, int]) -> Window:
    """The window, moved no further than it must be so that ``cell`` (row, column) is whole in it, with a margin."""
    rows = _to_follow(window.top, window.bottom, cell[0])
    cols = _to_follow(window.left, window.right, cell[1])
    return window if rows == cols == 0 else panned(window, shape, rows, cols)


def _to_follow(first: float, last: float, place: int) -> float:
    """How far a range must move for cell ``place`` to lie in it; then an eighth of the range lies beyond the cell."""
    length = last - first
    margin = min(length * _MARGIN, max((length - 1) / 2, 0.0))
    if length <= 1:
        return place + 0.5 - (first + last) / 2
    if place < first:
        return place - margin - first
    return place + 1 + margin - last if place + 1 > last else 0.0


def close_to(window: Window, shape: Shape, place: tuple[float, float], pixels: tuple[float, float]) -> Window:
    """Centred at ``place`` with a cell a pixel of a panel of ``pixels`` (height, width); nearer stays nearer."""
    length = min(window.bottom - window.top, pixels[0]), min(window.right - window.left, pixels[1])
    near = Window(window.top, window.top + length[0], window.left, window.left + length[1])
    return centred(clamped(near, shape), shape, place)


def fitted(rows: Span | None, cols: Span | None, shape: Shape) -> Window:
    """The window of whole cells ``rows`` × ``cols``, None for all of them."""
    (top, bottom), (left, right) = rows or (0, shape[0]), cols or (0, shape[1])
    return clamped(Window(float(top), float(bottom), float(left), float(right)), shape)


# ------------------------------------------------------------------------------------------------------------- pixels


def cell_at(window: Window, rect: Box, x: float, y: float) -> tuple[float, float]:
    """The place (row, column) under a point of the rectangle that shows ``window``; it may lie outside."""
    row = window.top + (y - rect.y) * ((window.bottom - window.top) / rect.height)
    col = window.left + (x - rect.x) * ((window.right - window.left) / rect.width)
    return row, col


def point_at(window: Window, rect: Box, row: float, col: float) -> tuple[float, float]:
    """Where a place of the map lies in pixels (x, y)."""
    x = rect.x + (col - window.left) * (rect.width / (window.right - window.left))
    y = rect.y + (row - window.top) * (rect.height / (window.bottom - window.top))
    return x, y


def cell_under(window: Window, rect: Box, shape: Shape, x: float, y: float) -> tuple[int, int] | None:
    """The cell (row, column) under a point, None beside the map."""
    row, col = (math.floor(place) for place in cell_at(window, rect, x, y))
    return (row, col) if 0 <= row < shape[0] and 0 <= col < shape[1] else None


# ------------------------------------------------------------------------------------------------- what is asked for


def level_of(window: Window, pixels: tuple[float, float]) -> int:
    """Cells a pixel side, a power of two, with which ``window`` fills a panel of ``pixels`` (height, width)."""
    rows, cols = math.ceil(window.bottom - window.top), math.ceil(window.right - window.left)
    return max(level_for(rows, int(pixels[0])), level_for(cols, int(pixels[1])))


def asked(window: Window, shape: Shape, pixels: tuple[float, float]) -> tuple[Span | None, Span | None, Shape]:
    """Rows, columns and pixels to ask for, so that ``window`` is sharp in a panel of ``pixels`` (height, width).

    Rows and columns are None for the whole map; else they reach a little beyond the window, in whole bins of its
    level. The pixels are the panel's in steps, or as many more as the margin takes at the window's level.
    """
    level = level_of(window, pixels)
    rows = cols = None
    if not is_whole(window, shape) and max(shape[0] / pixels[0], shape[1] / pixels[1]) > 1:
        rows = _span(window.top, window.bottom, shape[0], level)
        cols = _span(window.left, window.right, shape[1], level)
    wanted = tuple(
        max(_stepped(side), -(-(last - first) // level))
        for side, (first, last) in zip(pixels, (rows or (0, shape[0]), cols or (0, shape[1])), strict=True)
    )
    return rows, cols, (wanted[0], wanted[1])


def serves(rows: Span | None, cols: Span | None, window: Window, shape: Shape) -> bool:
    """Whether what was asked for covers ``window`` with some margin left, so that nothing new need be asked for."""
    covers = zip((rows, cols), ((window.top, window.bottom), (window.left, window.right)), shape, strict=True)
    for span, (first, last), count in covers:
        spare = (last - first) * _MARGIN * _WORN
        if span is not None and (span[0] > max(first - spare, 0) or span[1] < min(last + spare, count)):
            return False
    return True


def _stepped(pixels: float) -> int:
    return max(PIXEL_STEP, int(pixels) // PIXEL_STEP * PIXEL_STEP)


def _span(first: float, last: float, count: int, level: int) -> Span:
    margin = (last - first) * _MARGIN
    start = max(math.floor((first - margin) / level), 0) * level
    end = min(math.ceil((last + margin) / level) * level, count)
    return start, end
