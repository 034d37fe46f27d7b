"""Painting a map and what lies around it, for the screen and for paper alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen, QPolygonF

from attnviz import colour
from attnviz.figure.fonts import draw_text, text_width
from attnviz.figure.layout import SLANT_DEGREES, PanelLayout, label_stride
from attnviz.frames import CellClass, Frame, Outline, shown_class
from attnviz.session import Cell
from attnviz.spec import WEIGHT_STAGES

Seen = tuple[float, float, float, float]
"""The cells in sight: top, bottom, left, right."""

_MARKED_CELL = 12.0  # from this size on a cell has marks of its own
_MAX_MARKED = 6000  # cells drawn one by one; more are drawn as an image
_CENTRE = Qt.AlignmentFlag.AlignCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class Style:
    """The colours of everything but the cells."""

    ground: QColor
    card: QColor
    hairline: QColor
    ink: QColor
    muted: QColor
    accent: QColor
    leak: QColor
    hatch: QColor
    mark: QColor


LIGHT = Style(
    ground=QColor("#f6f6f4"), card=QColor("#ffffff"), hairline=QColor("#dcdde0"), ink=QColor("#1c1d22"),
    muted=QColor("#6b6e7b"), accent=QColor("#3556d8"), leak=QColor("#d6302b"), hatch=QColor("#8b8e9b"),
    mark=QColor("#5b5e6b"),
)  # fmt: skip
DARK = Style(
    ground=QColor("#17181c"), card=QColor("#202127"), hairline=QColor("#34363d"), ink=QColor("#ececf0"),
    muted=QColor("#9a9dab"), accent=QColor("#6d8bff"), leak=QColor("#ff5c57"), hatch=QColor("#7d808d"),
    mark=QColor("#a9acb8"),
)  # fmt: skip


def paint_cells(
    painter: QPainter, target: QRectF, seen: Seen, frame: Frame, style: Style, *, numbers: bool,
    decimals: int | None = None, future: bool = False, strong_row: int | None = None,
) -> None:  # fmt: skip
    """The cells ``seen`` of a frame, filling ``target``; large cells get marks and numbers, small ones are an image.

    ``future`` says that future cells are visible and take a red frame, a thick one in ``strong_row``.
    """
    top, bottom, left, right = seen
    if bottom <= top or right <= left or target.isEmpty():
        return
    place = _Places(target, seen)
    painter.save()
    painter.setClipRect(target, Qt.ClipOperation.IntersectClip)
    visible = (math.ceil(bottom) - math.floor(top)) * (math.ceil(right) - math.floor(left))
    marked = frame.level == 1 and min(place.width, place.height) >= _MARKED_CELL and visible <= _MAX_MARKED
    if marked:
        _paint_marked(painter, place, seen, frame, style, numbers=numbers, decimals=decimals)
    else:
        _paint_image(painter, place, frame)
    if future:
        _paint_future(painter, place, seen, frame, style, each=marked, strong_row=strong_row)
    painter.restore()


class _Places:
    """Where cells lie in pixels."""

    def __init__(self, target: QRectF, seen: Seen) -> None:
        top, bottom, left, right = seen
        self._target, self._top, self._left = target, top, left
        self.width = target.width() / (right - left)
        self.height = target.height() / (bottom - top)

    def rect(self, row: float, col: float, rows: float = 1, cols: float = 1) -> QRectF:
        x = self._target.left() + (col - self._left) * self.width
        y = self._target.top() + (row - self._top) * self.height
        return QRectF(x, y, cols * self.width, rows * self.height)


def image_of(frame: Frame) -> QImage:
    """The frame's pixels as an image of its own."""
    height, width = frame.rgb.shape
    pixels = np.ascontiguousarray(frame.rgb)
    return QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32).copy()


def _paint_image(painter: QPainter, place: _Places, frame: Frame) -> None:
    height, width = frame.rgb.shape
    whole = place.rect(frame.rows[0], frame.cols[0], frame.rows[1] - frame.rows[0], frame.cols[1] - frame.cols[0])
    bins = place.rect(frame.rows[0], frame.cols[0], height * frame.level, width * frame.level)
    painter.setClipRect(whole, Qt.ClipOperation.IntersectClip)  # the last bin may reach beyond the map
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(bins, image_of(frame))


def _paint_marked(
    painter: QPainter, place: _Places, seen: Seen, frame: Frame, style: Style, *, numbers: bool, decimals: int | None
) -> None:
    gap = 1.0 if min(place.width, place.height) >= 28 else 0.5
    shown = shown_class(frame.classes)
    form = number_form(frame, min(place.width, place.height), decimals)
    size = min(place.width, place.height)
    rows = range(max(math.floor(seen[0]), frame.rows[0]), min(math.ceil(seen[1]), frame.rows[1]))
    cols = range(max(math.floor(seen[2]), frame.cols[0]), min(math.ceil(seen[3]), frame.cols[1]))
    texts = {}
    if numbers and size >= 22:
        texts = {
            (r, c): form(float(frame.values[r - frame.rows[0], c - frame.cols[0]])) for r in rows for c in cols
            if shown[r - frame.rows[0], c - frame.cols[0]] == CellClass.ORDINARY
        }  # fmt: skip
    longest = max(texts.values(), key=len, default="0.00")
    pixels = _fitting(longest, place.width * 0.86, int(min(size * 0.24, 30)))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    for row in rows:
        for col in cols:
            kind = CellClass(int(shown[row - frame.rows[0], col - frame.cols[0]]))
            cell = place.rect(row, col).adjusted(gap, gap, -gap, -gap)
            rgb = int(frame.rgb[row - frame.rows[0], col - frame.cols[0]])
            _paint_cell(painter, cell, kind, rgb, style)
            text = texts.get((row, col))
            if text is not None and pixels >= 8:
                painter.setPen(QColor(colour.contrast_text(rgb)))
                draw_text(painter, cell, _CENTRE, text, pixels)


def _paint_cell(painter: QPainter, cell: QRectF, kind: CellClass, rgb: int, style: Style) -> None:
    """One large cell: an ordinary one by its colour, every other class with its own ground and mark."""
    size = min(cell.width(), cell.height())
    painter.setPen(Qt.PenStyle.NoPen)
    if kind in (CellClass.MASKED, CellClass.PADDED):
        painter.fillRect(cell, style.card)
        _hatch(painter, cell, style.hatch, cross=kind == CellClass.PADDED)
        if size >= 28:
            _mark(painter, cell, "×" if kind == CellClass.MASKED else "–", style.mark, style.card, size)
        return
    ground = QColor(rgb)
    if size >= 40:
        painter.setBrush(ground)
        painter.drawRoundedRect(cell, 2, 2)
    else:
        painter.fillRect(cell, ground)
    ink = QColor(colour.contrast_text(rgb))
    if kind == CellClass.ZERO:
        painter.setPen(QPen(ink, 1, Qt.PenStyle.DotLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(cell.adjusted(2, 2, -2, -2))
        if size >= 16:
            painter.setPen(ink)
            draw_text(painter, cell, _CENTRE, "0", int(min(size * 0.3, 26)))
    elif kind == CellClass.DROPPED:
        painter.fillRect(cell, QBrush(ink, Qt.BrushStyle.Dense6Pattern))
        if size >= 22:
            radius = min(size * 0.16, 15.0)
            painter.setPen(QPen(ink, max(size * 0.025, 1.4)))
            painter.setBrush(ground)
            painter.drawEllipse(cell.center(), radius, radius)
            offset = QPointF(radius * 0.72, -radius * 0.72)
            painter.drawLine(QLineF(cell.center() - offset, cell.center() + offset))
    elif kind == CellClass.NAN and size >= 16:
        painter.setPen(ink)
        draw_text(painter, cell, _CENTRE, "NaN", _fitting("NaN", cell.width() * 0.9, int(min(size * 0.3, 26))))


def paint_cell_sample(painter: QPainter, box: QRectF, kind: str, style: Style) -> None:
    """A small cell as the legend shows it: masked, zero, nan, dropped, padded, or future's red frame."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    if kind == "future":
        painter.setPen(QPen(style.leak, 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box.adjusted(1, 1, -1, -1))
    else:
        cell_class = CellClass[kind.upper()]
        _paint_cell(painter, box, cell_class, colour.GROUNDS[cell_class], style)
        painter.setPen(QPen(style.hairline, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box)
    painter.restore()


def _hatch(painter: QPainter, cell: QRectF, ink: QColor, *, cross: bool) -> None:
    """Diagonal lines; their distance follows the cell so that a small one is hatched too."""
    step = max(min(cell.width(), cell.height()) / 9, 4.5)
    painter.save()
    painter.setClipRect(cell, Qt.ClipOperation.IntersectClip)
    painter.setPen(QPen(ink, 0.9))
    reach = cell.width() + cell.height()
    lines = []
    offset = step / 2
    while offset < reach:
        lines.append(QLineF(cell.left() + offset, cell.top(), cell.left() + offset - cell.height(), cell.bottom()))
        if cross:
            lines.append(QLineF(cell.right() - offset, cell.top(), cell.right() - offset + cell.height(), cell.bottom()))
        offset += step
    painter.drawLines(lines)
    painter.restore()


def _mark(painter: QPainter, cell: QRectF, text: str, ink: QColor, ground: QColor, size: float) -> None:
    box = min(size * 0.28, 40.0)
    place = QRectF(cell.center().x() - box / 2, cell.center().y() - box / 2, box, box)
    painter.fillRect(place, ground)
    painter.setPen(ink)
    draw_text(painter, place.adjusted(-4, -4, 4, 4), _CENTRE, text, int(min(size * 0.26, 34)))


def _fitting(text: str, width: float, pixels: int) -> int:
    """The largest text height up to ``pixels`` at which ``text`` fits ``width``."""
    while pixels > 6 and text_width(text, pixels) > width:
        pixels -= 1
    return pixels


class number_form:  # noqa: N801 (called like a function, and it is one with its choice made)
    """How a cell's number is written: percent in large cells of small weight maps, else decimals.

    ``decimals`` None chooses by size; 2, 4 or 6 are a person's choice.
    """

    def __init__(self, frame: Frame, size: float, decimals: int | None) -> None:
        weights = frame.stage in WEIGHT_STAGES
        self._percent = decimals is None and weights and size >= 56 and frame.cols[1] - frame.cols[0] <= 12
        self._decimals = 2 if decimals is None else decimals
        self._short = decimals is None

    def __call__(self, value: float) -> str:
        if math.isinf(value):
            return "−∞" if value < 0 else "∞"
        if self._percent:
            return f"{100 * value:.0f} %" if value >= 0.005 or value == 0 else "<1 %"
        text = f"{value:.{self._decimals}f}".replace("-", "−")
        if self._short and text.removeprefix("−").startswith("0."):
            return text.replace("0.", ".", 1)
        return text


def _paint_future(
    painter: QPainter, place: _Places, seen: Seen, frame: Frame, style: Style, *, each: bool, strong_row: int | None
) -> None:
    n_rows, n_cols = frame.rows[1], frame.cols[1]
    ahead = n_cols - n_rows  # a whole map: rows are queries
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if not each:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(style.leak, 1.6))
        corner = place.rect(0, ahead + 1).topLeft()
        end = place.rect(n_rows - 1, n_cols).topLeft()
        painter.drawPolyline(QPolygonF([corner, end]))
        return
    for row in range(max(math.floor(seen[0]), frame.rows[0]), min(math.ceil(seen[1]), n_rows)):
        thick = max(min(place.width, place.height) * (0.036 if row == strong_row else 0.018), 1.0)
        painter.setPen(QPen(style.leak, thick, join=Qt.PenJoinStyle.MiterJoin))
        for col in range(max(row + ahead + 1, math.floor(seen[2])), min(math.ceil(seen[3]), n_cols)):
            inside = 1.0 + thick / 2
            painter.drawRect(place.rect(row, col).adjusted(inside, inside, -inside, -inside))


# ----------------------------------------------------------------------------------------------------- around a map


def paint_surroundings(
    painter: QPainter, place: PanelLayout, seen: Seen, frame: Frame | None, outline: Outline, style: Style, *,
    row_names: tuple[str, ...], column_names: tuple[str, ...], selected: Cell | None = None, cross: Cell | None = None,
    title: str = "", chosen: bool = False,
) -> None:  # fmt: skip
    """Title, token labels, row sums, the selected row's frame and the cross-hair of one map."""
    cells = _Places(QRectF(*place.map_rect), seen)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    if title:
        painter.setPen(style.accent if chosen else style.ink)
        draw_text(painter, QRectF(*place.title), _LEFT, title, place.label_px)
    if place.row_labels is not None:
        _row_labels(painter, place, cells, seen, row_names, style, selected)
    if place.column_labels is not None:
        _column_labels(painter, place, cells, seen, column_names, style, cross)
    if place.sums is not None and frame is not None and frame.row_sums is not None:
        _sums(painter, place, cells, seen, frame, style)
    area = QRectF(*place.map_rect)
    if cross is not None:
        _cross_hair(painter, area, cells, cross, style)
    if selected is not None and seen[0] - 0.5 < selected.row < seen[1]:
        _row_frame(painter, area, cells.rect(selected.row, seen[2], 1, seen[3] - seen[2]), style)
    painter.restore()


def _row_labels(
    painter: QPainter, place: PanelLayout, cells: _Places, seen: Seen, names: tuple[str, ...], style: Style,
    selected: Cell | None,
) -> None:  # fmt: skip
    strip = QRectF(*(place.row_labels or (0, 0, 0, 0)))
    stride = label_stride(cells.height, place.label_px)
    for row in range(math.floor(seen[0]), min(math.ceil(seen[1]), len(names))):
        cell = cells.rect(row, 0)
        if row % stride or not _inside(cell.center().y(), place.map_rect[1], place.map_rect[3]):
            continue
        here = QRectF(strip.left(), cell.center().y() - place.label_px, strip.width() - place.label_px * 0.7,
                      2.0 * place.label_px)  # fmt: skip
        painter.setPen(style.accent if selected is not None and selected.row == row else style.ink)
        draw_text(painter, here, _RIGHT, names[row], place.label_px)


def _column_labels(
    painter: QPainter, place: PanelLayout, cells: _Places, seen: Seen, names: tuple[str, ...], style: Style,
    cross: Cell | None,
) -> None:  # fmt: skip
    strip = QRectF(*(place.column_labels or (0, 0, 0, 0)))
    stride = label_stride(cells.width, place.label_px * (1.1 if place.slanted else 1.6))
    for col in range(math.floor(seen[2]), min(math.ceil(seen[3]), len(names))):
        cell = cells.rect(0, col)
        if col % stride or not _inside(cell.center().x(), place.map_rect[0], place.map_rect[2]):
            continue
        painter.setPen(style.accent if cross is not None and cross.col == col else style.ink)
        if not place.slanted:
            here = QRectF(cell.left() - cell.width(), strip.top(), 3 * cell.width(), strip.height())
            draw_text(painter, here, _CENTRE, names[col], place.label_px)
            continue
        room = (strip.height() - place.label_px * 0.6) / math.sin(math.radians(SLANT_DEGREES))
        painter.save()
        painter.translate(cell.center().x(), strip.bottom() - place.label_px * 0.35)
        painter.rotate(-SLANT_DEGREES)
        draw_text(painter, QRectF(0, -place.label_px, room, 1.5 * place.label_px), _LEFT, names[col], place.label_px)
        painter.restore()


def _sums(
    painter: QPainter, place: PanelLayout, cells: _Places, seen: Seen, frame: Frame, style: Style
) -> None:
    strip = QRectF(*(place.sums or (0, 0, 0, 0)))
    sums = frame.row_sums
    assert sums is not None  # noqa: S101 (the caller looked)
    indent = place.label_px * 0.8
    if place.column_labels is not None and not place.slanted:
        head = QRectF(strip.left() + indent, place.column_labels[1], strip.width(), place.column_labels[3])
        painter.setPen(style.muted)
        draw_text(painter, head, _LEFT, "Σ", place.label_px)
    stride = label_stride(cells.height, place.label_px)
    small = int(place.label_px * 0.85)
    for row in range(max(math.floor(seen[0]), frame.rows[0]), min(math.ceil(seen[1]), frame.rows[1])):
        cell = cells.rect(row, 0)
        if row % stride or not _inside(cell.center().y(), place.map_rect[1], place.map_rect[3]):
            continue
        total = float(sums[row - frame.rows[0]])
        painter.setPen(style.ink if abs(total - 1) < 0.005 else style.leak)
        here = QRectF(strip.left() + indent, cell.center().y() - place.label_px, strip.width() - indent,
                      2.0 * place.label_px)  # fmt: skip
        draw_text(painter, here, _LEFT, "NaN" if math.isnan(total) else f"{total:.2f}", small)


def _cross_hair(painter: QPainter, area: QRectF, cells: _Places, cross: Cell, style: Style) -> None:
    cell = cells.rect(cross.row, cross.col)
    if not area.adjusted(-1, -1, 1, 1).contains(cell.center()):
        return
    line = QColor(style.accent)
    line.setAlpha(190)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(line, 1.2))
    if min(cells.width, cells.height) >= _MARKED_CELL:
        painter.drawRect(cell.adjusted(0.5, 0.5, -0.5, -0.5))
        return
    x, y = cell.center().x(), cell.center().y()
    painter.drawLines([QLineF(area.left(), y, x - 4, y), QLineF(x + 4, y, area.right(), y),
                       QLineF(x, area.top(), x, y - 4), QLineF(x, y + 4, x, area.bottom())])  # fmt: skip


def _row_frame(painter: QPainter, area: QRectF, row: QRectF, style: Style) -> None:
    """The selected row: a frame around large rows, a tick beside small ones."""
    row = row.intersected(area.adjusted(0, -1, 0, 1))
    if row.height() >= _MARKED_CELL:
        painter.setPen(QPen(style.accent, 3))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(row.adjusted(-2, -1.5, 2, 1.5), 4, 4)
    else:
        painter.fillRect(QRectF(area.left() - 6, row.center().y() - 1.5, 5, 3), style.accent)


def _inside(at: float, start: float, length: float) -> bool:
    return start - 0.5 <= at <= start + length + 0.5


