"""The cells of one map: pixels, and over them the marks that tell masked, zero, dropped, padded and NaN apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPainterPath, QPen, QPolygonF

from attnviz.colour import GROUNDS, contrast_text
from attnviz.figure import marks
from attnviz.figure.fonts import draw_text, load_fonts, sized
from attnviz.frames import CellClass, Frame, Outline, shown_class
from attnviz.spec import AnyShape, Blocks, MaskFile, visible_run

Window = tuple[float, float, float, float]
"""The cells in sight as (top, bottom, left, right), in cells from the map's corner; fractional while panning."""

HATCHED_FROM: Final = 12.0
CROSSED_FROM: Final = 28.0
GAPS_FROM: Final = 28.0
_PERCENT_FROM: Final = 40.0  # in smaller cells two short digits are read more easily
_LEAST_NUMBER = 8.0
_STAIRS_FROM = 3.0
_STRIP: Final = 1 << 22  # pixels of a sheet that are copied at a time


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of a theme. ``masked`` and ``padded`` are grounds; what lies on the fixed grounds is ``on_ground``."""

    ground: QColor
    card: QColor
    hairline: QColor
    ink: QColor
    muted: QColor
    accent: QColor
    leak: QColor
    masked: QColor
    padded: QColor
    hatch: QColor
    on_ground: QColor


LIGHT: Final = Style(
    ground=QColor("#f6f6f4"), card=QColor("#ffffff"), hairline=QColor("#dcdde0"), ink=QColor("#1c1d22"),
    muted=QColor("#6b6e7b"), accent=QColor("#3556d8"), leak=QColor("#d6302b"),
    masked=QColor.fromRgb(GROUNDS[CellClass.MASKED]), padded=QColor.fromRgb(GROUNDS[CellClass.PADDED]),
    hatch=QColor("#7d7f89"), on_ground=QColor("#1c1d22"),
)  # fmt: skip
DARK: Final = Style(
    ground=QColor("#16171b"), card=QColor("#1f2128"), hairline=QColor("#33363f"), ink=QColor("#ececf1"),
    muted=QColor("#9a9daa"), accent=QColor("#6c8aff"), leak=QColor("#ff6a62"),
    masked=QColor("#262933"), padded=QColor("#454955"), hatch=QColor("#868a98"), on_ground=QColor("#1c1d22"),
)  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where the cells in sight lie: half-open whole ranges and the arithmetic from cells to pixels."""

    rect: QRectF
    window: Window
    rows: range
    cols: range

    @property
    def cell_w(self) -> float:
        return self.rect.width() / (self.window[3] - self.window[2])

    @property
    def cell_h(self) -> float:
        return self.rect.height() / (self.window[1] - self.window[0])

    @property
    def side(self) -> float:
        return min(self.cell_w, self.cell_h)

    def x(self, col: float) -> float:
        return self.rect.left() + (col - self.window[2]) * self.cell_w

    def y(self, row: float) -> float:
        return self.rect.top() + (row - self.window[0]) * self.cell_h

    def span(self, row: float, first: float, last: float) -> QRectF:
        """Cells ``first`` to ``last`` (half-open) of one row."""
        return QRectF(self.x(first), self.y(row), (last - first) * self.cell_w, self.cell_h)

    def cell(self, row: int, col: int) -> QRectF:
        return self.span(row, col, col + 1)


def paint_cells(
    painter: QPainter, rect: QRectF, window: Window, frame: Frame, style: Style, *, numbers: bool = True,
    decimals: int | None = None, peeking: Peeking | None = None, unit: float = 1.0,
) -> None:  # fmt: skip
    """Paint the part of ``frame`` in ``window`` into ``rect``, whose edges are the window's.

    Pixels are never smoothed. Marks, numbers and gaps come with cells that are large enough; ``peeking`` says which
    visible cells are framed in red.
    """
    rows = range(max(math.floor(window[0]), frame.rows[0]), min(math.ceil(window[1]), frame.rows[1]))
    cols = range(max(math.floor(window[2]), frame.cols[0]), min(math.ceil(window[3]), frame.cols[1]))
    grid = _Grid(rect, window, rows, cols)
    if not rows or not cols or rect.isEmpty():
        return
    painter.save()
    painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
    _paint_pixels(painter, grid, frame, style)
    if frame.level == 1 and grid.side >= HATCHED_FROM:
        load_fonts()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = shown_class(_seen(frame.classes, frame, grid))
        _paint_hatching(painter, grid, shown == CellClass.MASKED, style)
        _paint_gaps(painter, grid, style)
        _paint_marks(painter, grid, shown, style)
        if numbers:
            _paint_numbers(painter, grid, frame, shown, decimals, unit)
        if peeking is not None:
            _frame_hidden_cells(painter, grid, shown, peeking, style)
    elif peeking is not None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _outline_hidden(painter, grid, peeking, style, unit)
    painter.restore()


def _seen(plane: npt.NDArray[np.uint8], frame: Frame, grid: _Grid) -> npt.NDArray[np.uint8]:
    """The part of a level-1 plane that is in sight."""
    (top, _), (left, _) = frame.rows, frame.cols
    return plane[grid.rows.start - top : grid.rows.stop - top, grid.cols.start - left : grid.cols.stop - left]


def _paint_pixels(painter: QPainter, grid: _Grid, frame: Frame, style: Style) -> None:
    """Each pixel of the device takes the colour of the cell under its middle.

    Qt's own scaling counts in 1/65536 of a pixel from the image's corner: with large cells, or a coarse frame of a
    million columns under a window of ten, its edges would leave the cells.
    """
    device = painter.device()
    ratio = device.devicePixelRatioF() if device is not None else 1.0
    down = _places(grid.rect.top(), grid.rect.bottom(), grid.window[:2], frame.rows, frame.level, ratio)
    across = _places(grid.rect.left(), grid.rect.right(), grid.window[2:], frame.cols, frame.level, ratio)
    if down is None or across is None:
        return
    (y, rows), (x, cols) = down, across
    strip = max(1, _STRIP // len(cols))
    for start in range(0, len(rows), strip):
        part = _part(frame, rows[start : start + strip], cols, style)
        height, width = part.shape
        image = QImage(part.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(ratio)
        painter.drawImage(QPointF(x / ratio, (y + start) / ratio), image)


def _part(frame: Frame, rows: npt.NDArray[np.intp], cols: npt.NDArray[np.intp], style: Style) -> npt.NDArray[np.uint32]:
    """The frame's pixels at ``rows`` × ``cols``, both rising, in the style's own grounds."""
    part = frame.rgb[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    if part.shape[0] > len(rows):
        part, rows = part.take(rows - rows[0], axis=0), np.arange(len(rows))
    for kind, ground in (CellClass.MASKED, style.masked), (CellClass.PADDED, style.padded):
        if ground.rgb() != GROUNDS[kind]:
            part = np.where(part == GROUNDS[kind], np.uint32(ground.rgb()), part)
    if part.shape[1] != len(cols):
        part = part.take(cols - cols[0], axis=1)
    if part.shape[0] != len(rows):
        part = part.take(rows - rows[0], axis=0)
    return np.ascontiguousarray(part)


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


def _runs(plane: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """(row, first, last) of each stretch of true cells in a row, half-open."""
    edges = np.diff(np.pad(plane.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    for (row, first), (_, last) in zip(starts.tolist(), ends.tolist(), strict=True):
        yield row, first, last


def _paint_hatching(painter: QPainter, grid: _Grid, masked: npt.NDArray[np.bool_], style: Style) -> None:
    area = QPainterPath()
    for row, first, last in _runs(masked):
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
    painter.drawLines([
        QLineF(left + first + n * step - height, top + height, left + first + n * step, top) for n in range(count)
    ])  # fmt: skip


def _paint_gaps(painter: QPainter, grid: _Grid, style: Style) -> None:
    """Thin lines of ground between large cells."""
    if grid.side < GAPS_FROM:
        return
    gap = max(1, round(grid.side / 70))
    area = QRectF(
        QPointF(grid.x(grid.cols.start), grid.y(grid.rows.start)),
        QPointF(grid.x(grid.cols.stop), grid.y(grid.rows.stop)),
    )
    for col in grid.cols[1:]:
        painter.fillRect(QRectF(round(grid.x(col)) - gap // 2, area.top(), gap, area.height()), style.card)
    for row in grid.rows[1:]:
        painter.fillRect(QRectF(area.left(), round(grid.y(row)) - gap // 2, area.width(), gap), style.card)


def _paint_marks(painter: QPainter, grid: _Grid, shown: npt.NDArray[np.uint8], style: Style) -> None:
    """The sign of each cell that holds no ordinary number."""
    _paint_crosses(painter, grid, shown == CellClass.MASKED, style)
    for row, col in np.argwhere((shown != CellClass.ORDINARY) & (shown != CellClass.MASKED)).tolist():
        cell = grid.cell(grid.rows.start + row, grid.cols.start + col)
        _paint_mark(painter, cell, CellClass(int(shown[row, col])), style)


def _paint_crosses(painter: QPainter, grid: _Grid, masked: npt.NDArray[np.bool_], style: Style) -> None:
    """A × on a clear patch in every large masked cell; drawn together, since half a map can be masked."""
    if grid.side < CROSSED_FROM:
        return
    patch = min(max(grid.side * 0.28, 17.0), 44.0)
    arm = patch * 0.24
    lines = []
    for row, col in np.argwhere(masked).tolist():
        x, y = grid.x(grid.cols.start + col + 0.5), grid.y(grid.rows.start + row + 0.5)
        painter.fillRect(QRectF(x - patch / 2, y - patch / 2, patch, patch), style.masked)
        lines += [QLineF(x - arm, y - arm, x + arm, y + arm), QLineF(x - arm, y + arm, x + arm, y - arm)]
    painter.setPen(QPen(style.muted, min(max(grid.side / 45, 1.5), 2.6)))
    painter.drawLines(lines)


def _paint_mark(painter: QPainter, cell: QRectF, kind: CellClass, style: Style) -> None:
    side = min(cell.width(), cell.height())
    middle = cell.center()
    pen = QPen(style.on_ground, min(max(side / 45, 1.0), 2.6))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if kind == CellClass.ZERO:
        painter.setPen(pen)
        inset = max(2.0, side * 0.06)
        painter.drawRect(cell.adjusted(inset, inset, -inset, -inset))
        if side >= 20:
            _paint_word(painter, cell, "0", style)
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
        if side >= 24:
            _paint_word(painter, cell, "NaN", style)
        else:
            pen.setWidthF(2.0)
            painter.setPen(pen)
            reach = QPointF(side * 0.3, side * 0.3)
            painter.drawLine(middle - reach, middle + reach)


def _paint_word(painter: QPainter, cell: QRectF, word: str, style: Style) -> None:
    side = min(cell.width(), cell.height())
    painter.setFont(sized(max(0.19 * side, min(12.0, 0.36 * side))))
    painter.setPen(style.on_ground)
    draw_text(painter, cell, Qt.AlignmentFlag.AlignHCenter, word)


def paint_swatch(painter: QPainter, square: QRectF, kind: CellClass | None, style: Style) -> None:
    """A small cell of one look for the legend; None is the red frame of a visible future cell."""
    painter.save()
    if kind is None:
        painter.setPen(QPen(style.leak, max(square.width() / 6, 1.5)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(square.adjusted(1, 1, -1, -1))
    else:
        own = {CellClass.MASKED: style.masked, CellClass.PADDED: style.padded}
        painter.fillRect(square, own.get(kind) or QColor.fromRgb(GROUNDS[kind]))
        if kind == CellClass.MASKED:
            painter.setClipRect(square, Qt.ClipOperation.IntersectClip)
            hatch(painter, square, square.topLeft(), HATCHED_FROM, style)
        else:
            _paint_mark(painter, square, kind, style)
    painter.restore()


# ---------------------------------------------------------------------------------------------------------- numbers


def _paint_numbers(
    painter: QPainter, grid: _Grid, frame: Frame, shown: npt.NDArray[np.uint8], decimals: int | None, unit: float
) -> None:
    """The values of ordinary cells, in the first way of writing that fits into every cell."""
    if grid.side < 1.6 * _LEAST_NUMBER:
        return
    (top, _), (left, _) = frame.rows, frame.cols
    places = [(grid.rows.start + r, grid.cols.start + c) for r, c in np.argwhere(shown == CellClass.ORDINARY).tolist()]
    values = [float(frame.values[row - top, col - left]) for row, col in places]
    for way in marks.formats(frame, decimals, len(grid.cols)):
        if way == "%" and grid.side < _PERCENT_FROM * unit:
            continue
        texts = [marks.formatted(value, way) for value in values]
        wanted = max(0.19 * grid.side, min(12.0 * unit, 0.28 * grid.side))
        ruler = QFontMetricsF(sized(100))  # widths grow with the font, so measure once
        widths = {text: ruler.horizontalAdvance(text) / 100 for text in set(texts)}
        widest = max(widths.values(), default=0.0)
        size = min(wanted, 0.86 * grid.cell_w / max(widest, 0.1))
        if size < (_LEAST_NUMBER if way != "%" else 0.8 * min(12.0 * unit, wanted)):
            continue
        font = sized(size)
        painter.setFont(font)
        raised = QFontMetricsF(font).capHeight() / 2
        pens = {"black": QColor("#111216"), "white": QColor("#ffffff")}
        for (row, col), text in zip(places, texts, strict=True):
            middle = grid.cell(row, col).center()
            rgb = int(frame.rgb[row - top, col - left])
            painter.setPen(pens[contrast_text(rgb)])
            painter.drawText(QPointF(middle.x() - widths[text] * font.pixelSize() / 2, middle.y() + raised), text)
        return


# ---------------------------------------------------------------------------------------------------------- peeking


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


def _frame_hidden_cells(
    painter: QPainter, grid: _Grid, shown: npt.NDArray[np.uint8], peeking: Peeking, style: Style
) -> None:
    firsts, ends = _visible_runs(peeking, grid.rows)
    cols = np.arange(grid.cols.start, grid.cols.stop)
    behind = (cols < firsts[:, None]) | (cols >= ends[:, None])
    unseen = (shown == CellClass.MASKED) | (shown == CellClass.DROPPED)
    width = min(max(grid.side / 40, 1.4), 5.0)
    pen = QPen(style.leak, width)
    pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    inset = width / 2 + (3.6 if grid.side >= 60 else 1)  # the cross-hair's own frame stays outside of it
    for row, col in np.argwhere(behind & ~unseen).tolist():
        cell = grid.cell(grid.rows.start + row, grid.cols.start + col)
        painter.drawRect(cell.adjusted(inset, inset, -inset, -inset))


def _outline_hidden(painter: QPainter, grid: _Grid, peeking: Peeking, style: Style, unit: float) -> None:
    """Red lines around the visible cells that the shape hides, at each side of what it shows."""
    step = max(1, int(0.5 / grid.cell_h))  # two rows a pixel are enough
    rows = range(grid.rows.start, grid.rows.stop, step)
    firsts, ends = _visible_runs(peeking, rows)
    beyond = math.ceil(8 * unit / grid.cell_w)  # coordinates stay near the sheet, a million columns out as well
    low, high = math.floor(grid.window[2]) - beyond, math.ceil(grid.window[3]) + beyond
    area = QPainterPath()
    for edges, border in (ends, peeking.n_keys), (firsts, 0):
        outer = grid.x(min(max(border, low), high))
        for _, start, stop in _runs((edges != border)[None]):
            tops = np.append(np.array(rows)[start:stop], min(rows[stop - 1] + step, grid.rows.stop))
            corners = _corners(grid, tops, np.clip(edges[start:stop], low, high))
            closed = [QPointF(outer, corners[0].y()), *corners, QPointF(outer, corners[-1].y())]
            area.addPolygon(QPolygonF([*closed, closed[0]]))
    if (firsts >= ends).any():  # rows that see nothing join what lies left of the others to what lies right
        area = area.simplified()
    painter.setPen(QPen(style.leak, 2.0 * max(1.0, unit)))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(area)


def _corners(grid: _Grid, tops: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> list[QPointF]:
    """The line along ``edges``, one for each row from ``tops`` to the next: in steps where a step can be seen."""
    if grid.side >= _STAIRS_FROM:
        rows, cols = np.repeat(tops, 2)[1:-1], np.repeat(edges, 2)
    else:
        rows, cols = tops, np.append(edges, edges[-1])
        turns = (np.diff(cols, 2) != 0) | (np.diff(rows, 2) != 0)
        kept = np.concatenate([[True], turns, [True]])
        rows, cols = rows[kept], cols[kept]
    return [QPointF(grid.x(col), grid.y(row)) for row, col in zip(rows.tolist(), cols.tolist(), strict=True)]
