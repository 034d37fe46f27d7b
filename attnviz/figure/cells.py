"""The cells of one map: pixels, and over them the marks that tell masked, zero, dropped, padded and NaN apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from attnviz.colour import GROUNDS
from attnviz.figure.fonts import draw_text, load_fonts, sized
from attnviz.figure.grid import Grid, Window, grid_of
from attnviz.figure.numbers import paint_numbers
from attnviz.figure.peeking import Peeking, frame_hidden_cells, outline_hidden, peeking_of, runs_of
from attnviz.figure.styles import DARK, LIGHT, Style
from attnviz.figure.vectors import VectorPainter, clip_to_cells, draw_lines, fill_rects, paint_colours
from attnviz.frames import CellClass, Frame, shown_class

__all__ = [
    "CROSSED_FROM", "DARK", "GAPS_FROM", "HATCHED_FROM", "LIGHT", "Peeking", "Style", "Window", "hatch",
    "hatched_from", "paint_cells", "paint_ground", "paint_swatch", "peeking_of", "with_grounds",
]  # fmt: skip

HATCHED_FROM: Final = 12.0
CROSSED_FROM: Final = 28.0
GAPS_FROM: Final = 28.0
_GREY_FROM: Final = 3.0
_LEAST_SIGN: Final = 7.0  # pixels a side, × unit
_WORD_FROM: Final = 24.0  # pixels a side from which a cell says "NaN"
_INFINITE: Final = "−∞"
_STRIP: Final = 1 << 22  # pixels of a sheet that are copied at a time


def paint_cells(
    painter: QPainter, rect: QRectF, window: Window, frame: Frame, style: Style, *, numbers: bool = True,
    decimals: int | None = None, peeking: Peeking | None = None, before: Frame | None = None, unit: float = 1.0,
    on_paper: bool = False,
) -> None:  # fmt: skip
    """Paint the part of ``frame`` in ``window`` into ``rect``, whose edges are the window's.

    Pixels are never smoothed. Marks, numbers and gaps come with cells that are large enough; ``peeking`` says which
    visible cells are framed in red. Where a number differs from that of ``before``, a level-1 frame of the same
    cells, that one stands below it in small. ``on_paper`` a masked score of −∞ is written, not crossed
    out, and numbers are as large as there is room.
    """
    grid = grid_of(rect, window, frame)
    if not grid.rows or not grid.cols or rect.isEmpty():
        return
    painter.save()
    painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
    if style.clear and frame.level == 1 and grid.side >= GAPS_FROM:  # gaps are what lies behind, not a colour
        gap = _gap(grid)
        clip_to_cells(painter, _between(gap, grid.cols, grid.x), _between(gap, grid.rows, grid.y))
    _paint_pixels(painter, grid, frame, style)
    if frame.level == 1 and grid.side >= HATCHED_FROM:
        load_fonts()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = shown_class(grid.seen(frame.classes, frame))
        _paint_hatching(painter, grid, shown == CellClass.MASKED, style)
        _paint_gaps(painter, grid, style)
        _paint_marks(painter, grid, shown, style, word=_INFINITE if on_paper and _is_infinite(frame) else "")
        if numbers:
            paint_numbers(
                painter, grid, frame, shown, style, decimals=decimals, before=before, unit=unit, large=on_paper
            )
        if peeking is not None:
            frame_hidden_cells(painter, grid, shown, peeking, style)
    else:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if _hatched(grid, frame, style):
            _paint_hatching(painter, grid, shown_class(grid.seen(frame.classes, frame)) == CellClass.MASKED, style)
        if peeking is not None:
            outline_hidden(painter, grid, peeking, style, unit)
    painter.restore()


def _hatched(grid: Grid, frame: Frame, style: Style) -> bool:
    return frame.level == 1 and grid.side >= hatched_from(style)


def hatched_from(style: Style) -> float:
    """Pixels a side from which masked cells are hatched; in grey a plain ground may be taken for a weight."""
    return _GREY_FROM if style.grey else HATCHED_FROM


def _paint_pixels(painter: QPainter, grid: Grid, frame: Frame, style: Style) -> None:
    """Each pixel of the device takes the colour of the cell under its middle.

    Qt's own scaling counts in 1/65536 of a pixel from the image's corner: with large cells, or a coarse frame of a
    million columns under a window of ten, its edges would leave the cells.
    """
    if isinstance(painter, VectorPainter):
        _paint_rects(painter, grid, frame, style)
        return
    device = painter.device()
    ratio = device.devicePixelRatioF() if device is not None else 1.0
    down = _places(grid.rect.top(), grid.rect.bottom(), grid.window[:2], frame.rows, frame.level, ratio)
    across = _places(grid.rect.left(), grid.rect.right(), grid.window[2:], frame.cols, frame.level, ratio)
    if down is None or across is None:
        return
    (y, rows), (x, cols) = down, across
    strip = max(1, _STRIP // len(cols))
    for start in range(0, len(rows), strip):
        part = _part(frame, rows[start : start + strip], cols, style, marked=_hatched(grid, frame, style))
        height, width = part.shape
        image = QImage(part.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(ratio)
        painter.drawImage(QPointF(x / ratio, (y + start) / ratio), image)


def _paint_rects(painter: VectorPainter, grid: Grid, frame: Frame, style: Style) -> None:
    """Each pixel of the frame that is in sight as a rectangle."""
    down = _edges(grid.window[:2], frame.rows, frame.level)
    across = _edges(grid.window[2:], frame.cols, frame.level)
    if down is None or across is None:
        return
    (top, ys), (left, xs) = down, across
    part = frame.rgb[top : top + len(ys) - 1, left : left + len(xs) - 1]
    xs = grid.rect.left() + (xs - grid.window[2]) * grid.cell_w
    ys = grid.rect.top() + (ys - grid.window[0]) * grid.cell_h
    paint_colours(painter, xs, ys, with_grounds(part, style, marked=_hatched(grid, frame, style)))


def _edges(window: tuple[float, ...], span: tuple[int, int], level: int) -> tuple[int, npt.NDArray[np.float64]] | None:
    """The frame's first pixel in sight, and where it and each that follows begin and the last ends, in cells."""
    low, high = max(window[0], span[0]), min(window[1], span[1])
    if low >= high:
        return None
    first, last = int((low - span[0]) // level), math.ceil((high - span[0]) / level)
    edges = span[0] + np.arange(first, last + 1, dtype=np.float64) * level
    return first, np.clip(edges, low, high)


def _part(
    frame: Frame, rows: npt.NDArray[np.intp], cols: npt.NDArray[np.intp], style: Style, *, marked: bool
) -> npt.NDArray[np.uint32]:  # fmt: skip
    """The frame's pixels at ``rows`` × ``cols``, both rising, in the style's own grounds."""
    part = frame.rgb[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    if part.shape[0] > len(rows):
        part, rows = part.take(rows - rows[0], axis=0), np.arange(len(rows))
    part = with_grounds(part, style, marked=marked)
    if part.shape[1] != len(cols):
        part = part.take(cols - cols[0], axis=1)
    if part.shape[0] != len(rows):
        part = part.take(rows - rows[0], axis=0)
    return np.ascontiguousarray(part)


def with_grounds(rgb: npt.NDArray[np.uint32], style: Style, *, marked: bool = True) -> npt.NDArray[np.uint32]:
    """``rgb`` (r, c) uint32 0xffRRGGBB with masked and padded pixels in the style's own grounds, same shape.

    Those of masked cells that are not ``marked`` alone tell them from others.
    """
    for kind, ground in (
        (CellClass.MASKED, style.masked if marked else style.unmarked),
        (CellClass.PADDED, style.padded),
    ):
        if ground.rgb() != GROUNDS[kind]:
            rgb = np.where(rgb == GROUNDS[kind], np.uint32(ground.rgb()), rgb)
    return rgb


@lru_cache(maxsize=32)  # the maps of one picture lie alike
def _places(
    low: float, high: float, window: tuple[float, ...], span: tuple[int, int], level: int, ratio: float
) -> tuple[int, npt.NDArray[np.intp]] | None:
    """The first pixel of the device in a rectangle's side, and the frame's pixel under it and each that follows."""
    first, last = math.floor(low * ratio), math.ceil(high * ratio)
    middles = (np.arange(first, last) + 0.5) / ratio - low
    cells = window[0] + middles * ((window[1] - window[0]) / (high - low))
    inside = np.flatnonzero((cells >= span[0]) & (cells < span[1]) & (middles >= 0) & (middles < high - low))
    if not inside.size:
        return None
    places = np.floor((cells[inside[0] : inside[-1] + 1] - span[0]) / level).astype(np.intp)
    return first + int(inside[0]), places


# ------------------------------------------------------------------------------------------------------------ marks


def _paint_hatching(painter: QPainter, grid: Grid, masked: npt.NDArray[np.bool_], style: Style) -> None:
    area = QPainterPath()
    for row, first, last in runs_of(masked):
        area.addRect(grid.span(grid.rows.start + row, grid.cols.start + first, grid.cols.start + last))
    if not area.isEmpty():
        painter.save()
        painter.setClipPath(area, Qt.ClipOperation.IntersectClip)
        hatch(painter, area.boundingRect(), grid.rect.topLeft(), grid.side, style)
        painter.restore()


def hatch(painter: QPainter, area: QRectF, origin: QPointF, side: float, style: Style) -> None:
    """Rising lines over ``area``, counted from ``origin`` so that neighbouring areas agree."""
    # where a cross stands in the cell the lines can be faint; alone they have to be the mark
    crossed = side >= CROSSED_FROM
    step = min(max(side / 8, 9.0), 14.0) if crossed else 8.0
    painter.setPen(QPen(style.hatch, 0.9 if crossed else 1.3))
    height = area.height()
    start = area.left() - origin.x() + area.top() - origin.y()
    first = math.floor(start / step) * step - start
    count = math.ceil((area.width() + height - first) / step) + 1
    left, top = area.left(), area.top()
    lines = [QLineF(left + first + n * step - height, top + height, left + first + n * step, top) for n in range(count)]
    draw_lines(painter, lines)


def _paint_gaps(painter: QPainter, grid: Grid, style: Style) -> None:
    """Thin lines of ground between large cells."""
    if grid.side < GAPS_FROM or style.clear:
        return
    gap = _gap(grid)
    area = QRectF(
        QPointF(grid.x(grid.cols.start), grid.y(grid.rows.start)),
        QPointF(grid.x(grid.cols.stop), grid.y(grid.rows.stop)),
    )
    upright = [QRectF(round(grid.x(col)) - gap // 2, area.top(), gap, area.height()) for col in grid.cols[1:]]
    level = [QRectF(area.left(), round(grid.y(row)) - gap // 2, area.width(), gap) for row in grid.rows[1:]]
    fill_rects(painter, upright, style.card)
    fill_rects(painter, level, style.card)


def _gap(grid: Grid) -> int:
    """Pixels between large cells."""
    return max(1, round(grid.side / 70))


def _between(gap: int, cells: range, place: Callable[[float], float]) -> list[tuple[float, float]]:
    """Where each of ``cells`` begins and ends, without the gaps between them."""
    lines = [round(place(cell)) - gap // 2 for cell in cells[1:]]
    return [*zip([place(cells.start), *(x + gap for x in lines)], [*map(float, lines), place(cells.stop)], strict=True)]


def _is_infinite(frame: Frame) -> bool:
    """Whether the masked cells of a map are scores of −∞."""
    masked = frame.classes == CellClass.MASKED
    return frame.stage == "masked_scores" and bool(np.isneginf(frame.values[masked]).all())


def _paint_marks(painter: QPainter, grid: Grid, shown: npt.NDArray[np.uint8], style: Style, *, word: str) -> None:
    """The sign of each cell that holds no ordinary number."""
    _paint_crosses(painter, grid, shown == CellClass.MASKED, style, word)
    for row, col in np.argwhere((shown != CellClass.ORDINARY) & (shown != CellClass.MASKED)).tolist():
        cell = grid.in_sight(grid.rows.start + row, grid.cols.start + col)
        _paint_mark(painter, cell, CellClass(int(shown[row, col])), style, grid.side)


def _paint_crosses(painter: QPainter, grid: Grid, masked: npt.NDArray[np.bool_], style: Style, word: str) -> None:
    """A × or ``word`` on a clear patch in every large masked cell; drawn together, since half a map can be."""
    if grid.side < CROSSED_FROM:
        return
    patch = max(grid.side * 0.28, 17.0)
    patch = patch if word else min(patch, 44.0)
    arm = patch * 0.24
    parts = [grid.in_sight(grid.rows.start + row, grid.cols.start + col) for row, col in np.argwhere(masked).tolist()]
    middles = [part.center() for part in parts if min(part.width(), part.height()) >= patch]  # a half would be no cross
    wide = 1.5 * patch if word else patch
    fill_rects(painter, [QRectF(at.x() - wide / 2, at.y() - patch / 2, wide, patch) for at in middles], style.masked)
    if word:
        painter.setFont(sized(0.72 * patch))
        painter.setPen(style.muted)
        for at in middles:
            place = QRectF(at.x() - patch, at.y() - patch / 2, 2 * patch, patch)
            draw_text(painter, place, Qt.AlignmentFlag.AlignHCenter, word)
        return
    lines = []
    for x, y in ((at.x(), at.y()) for at in middles):
        lines += [QLineF(x - arm, y - arm, x + arm, y + arm), QLineF(x - arm, y + arm, x + arm, y - arm)]
    painter.setPen(QPen(style.muted, min(max(grid.side / 45, 1.5), 2.6)))
    draw_lines(painter, lines)


def _paint_mark(painter: QPainter, cell: QRectF, kind: CellClass, style: Style, side: float) -> None:
    """The sign of ``kind`` as it is in whole cells of ``side``; ``cell`` is the part of this one that is in sight."""
    if min(cell.width(), cell.height()) < 0.45 * side:
        return
    middle = cell.center()
    pen = QPen(style.on_ground, min(max(side / 45, 1.0), 2.6))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if kind == CellClass.ZERO:
        painter.setPen(pen)
        inset = max(2.0, side * 0.06)
        painter.drawRect(cell.adjusted(inset, inset, -inset, -inset))
        if side >= 20:
            _paint_word(painter, cell, "0", style, side)
    elif kind == CellClass.DROPPED:
        painter.setPen(pen)
        radius = min(side * 0.13, 15.0)
        painter.drawEllipse(middle, radius, radius)
        slash = QPointF(radius * 1.15, -radius * 1.15)
        painter.drawLine(middle - slash, middle + slash)
    elif kind == CellClass.PADDED:
        pen.setColor(style.ink)
        painter.setPen(pen)
        dash = QPointF(side * 0.16, 0)
        painter.drawLine(middle - dash, middle + dash)
    elif kind == CellClass.NAN:
        if side >= _WORD_FROM:
            _paint_word(painter, cell, "NaN", style, side)
        else:
            pen.setWidthF(2.0)
            painter.setPen(pen)
            reach = QPointF(side * 0.3, side * 0.3)
            painter.drawLine(middle - reach, middle + reach)


def _paint_word(painter: QPainter, cell: QRectF, word: str, style: Style, side: float) -> None:
    painter.setFont(sized(max(0.19 * side, min(12.0, 0.36 * side))))
    painter.setPen(style.on_ground)
    draw_text(painter, cell, Qt.AlignmentFlag.AlignHCenter, word)


def _ground(kind: CellClass, style: Style) -> QColor:
    own = {CellClass.MASKED: style.masked, CellClass.PADDED: style.padded}
    return own.get(kind) or QColor.fromRgb(GROUNDS[kind])


def paint_ground(painter: QPainter, area: QRectF, kind: CellClass, style: Style, unit: float = 1.0) -> None:
    """``area`` as a cell of ``kind``, with its sign in the middle where that has room."""
    painter.save()
    painter.fillRect(area, _ground(kind, style))
    side = min(area.width(), area.height(), 13 * unit)
    if kind == CellClass.MASKED:
        painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
        hatch(painter, area, area.topLeft(), HATCHED_FROM, style)
    elif side >= _LEAST_SIGN * unit:
        middle = area.center()
        square = QRectF(middle.x() - side / 2, middle.y() - side / 2, side, side)
        _paint_mark(painter, square, kind, style, side)
    painter.restore()


def paint_swatch(
    painter: QPainter, square: QRectF, kind: CellClass | None, style: Style, *, marked: bool = True,
    cell: float = 0.0,
) -> None:  # fmt: skip
    """A small cell of one look for the legend; None is the red frame of a visible future cell.

    Without ``marked`` it is plain, as the cells of a map are that are too small for marks. Where a ``cell`` of so many
    pixels says "NaN", the legend's, which has no room for the word, shows its ground alone.
    """
    painter.save()
    if kind is None:
        painter.setPen(QPen(style.leak, max(square.width() / 6, 1.5)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(square.adjusted(1, 1, -1, -1))
    else:
        plain = kind == CellClass.MASKED and not marked
        painter.fillRect(square, style.unmarked if plain else _ground(kind, style))
        if not marked:
            painter.setPen(QPen(style.hairline, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(square.adjusted(0.5, 0.5, -0.5, -0.5))
        elif kind == CellClass.MASKED:
            painter.setClipRect(square, Qt.ClipOperation.IntersectClip)
            hatch(painter, square, square.topLeft(), HATCHED_FROM, style)
        elif kind != CellClass.NAN or cell < _WORD_FROM or square.width() >= _WORD_FROM:
            _paint_mark(painter, square, kind, style, square.width())
    painter.restore()
