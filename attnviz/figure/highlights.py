"""What is laid over a map: the selected row, the answer's cell, the cross-hair, a word in the corner, a border."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from attnviz.figure.cells import HATCHED_FROM
from attnviz.figure.fonts import draw_text, sized, text_width
from attnviz.figure.grid import Window, grid_of
from attnviz.figure.peeking import hides
from attnviz.figure.styles import Style
from attnviz.frames import CellClass, Frame, Outline, shown_class
from attnviz.session import Cell
from attnviz.spec import QUERY_KEY_STAGES

_SMALL_MAP = 160.0  # lines across a smaller map would hide it
_LEAST_FRAME = 7.0


def paint_selected_row(painter: QPainter, rect: QRectF, window: Window, row: int, style: Style, unit: float) -> None:
    """A frame around a high row, a tick at both ends of a low one."""
    top, bottom = window[:2]
    cell = rect.height() / (bottom - top)
    first, last = max(row, top), min(row + 1, bottom)
    if last <= first:
        return
    frame = QRectF(rect.left(), rect.top() + (first - top) * cell, rect.width(), (last - first) * cell)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if cell >= HATCHED_FROM:
        width = min(max(cell / 40, 1.6 * max(1.0, unit)), 4.0 * max(1.0, unit))
        painter.setPen(QPen(style.accent, width))
        painter.drawRoundedRect(frame.adjusted(-width / 2, -width / 2, width / 2, width / 2), width, width)
        return
    painter.setPen(QPen(style.accent, 2.0 * unit))
    middle, tick = frame.center().y(), 5 * unit
    painter.drawLine(QPointF(rect.left() - tick, middle), QPointF(rect.left(), middle))
    painter.drawLine(QPointF(rect.right(), middle), QPointF(rect.right() + tick, middle))


def answer_of(outline: Outline, row: int) -> int | None:
    """The key that answers query ``row``, the token that comes next; None for the last one and for other stages."""
    key = row + outline.n_keys - outline.n_queries + 1
    return key if outline.stage in QUERY_KEY_STAGES and key < outline.n_keys else None


def is_open(outline: Outline, frame: Frame, row: int, col: int) -> bool:
    """Whether the query sees that key: neither masked in this stage of ``frame`` (level 1) nor in the end."""
    kind = shown_class(frame.classes[row - frame.rows[0], col - frame.cols[0]])
    if kind == CellClass.MASKED:
        return False
    return not (outline.future_hidden and hides(outline, row, col))


def paint_answer(
    painter: QPainter, rect: QRectF, window: Window, frame: Frame, outline: Outline, row: int, style: Style
) -> None:
    """The cell of the answer in the selected row: framed in red where it lies open, else a tick in its corner."""
    col = answer_of(outline, row)
    grid = grid_of(rect, window, frame)
    if col is None or row not in grid.rows or col not in grid.cols or frame.level != 1 or grid.side < HATCHED_FROM:
        return
    open_ = is_open(outline, frame, row, col)
    cell = grid.cell(row, col)
    painter.save()
    painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
    if open_:
        width = min(max(grid.side / 40, 1.4), 5.0)
        inset = width / 2 + (3.6 if grid.side >= 60 else 1)  # as the red frames of what peeks
        pen = QPen(style.leak, width)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(cell.adjusted(inset, inset, -inset, -inset))
    inset = 4.5 if grid.side >= 60 else 1.5
    leg = min(max(grid.side * 0.16, 4.0), 18.0)
    corner = cell.topRight() + QPointF(-inset, inset)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(style.leak if open_ else style.accent)
    painter.drawPolygon(QPolygonF([corner, corner - QPointF(leg, 0), corner + QPointF(0, leg)]))
    painter.restore()


def paint_cross(painter: QPainter, rect: QRectF, window: Window, cell: Cell, style: Style) -> None:
    """A frame around a large cell; to a small one lines from the map's left and upper edge, in a small map a frame."""
    top, bottom, left, right = window
    cell_w, cell_h = rect.width() / (right - left), rect.height() / (bottom - top)
    corner = QPointF(rect.left() + (cell.col - left) * cell_w, rect.top() + (cell.row - top) * cell_h)
    here = QRectF(corner.x(), corner.y(), cell_w, cell_h).intersected(rect)
    if here.isEmpty():
        return
    middle, large = here.center(), min(cell_w, cell_h) >= HATCHED_FROM
    framed = not large and min(rect.width(), rect.height()) < _SMALL_MAP
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(style.card, 3), QPen(style.accent, 1.4)):  # an edge keeps the line in sight on any colour
        painter.setPen(pen)
        if large:
            painter.drawRect(here.adjusted(1.5, 1.5, -1.5, -1.5))
        elif framed:
            reach = max(_LEAST_FRAME, cell_w, cell_h) / 2
            painter.drawRect(QRectF(middle.x() - reach, middle.y() - reach, 2 * reach, 2 * reach))
        else:
            painter.drawLine(QPointF(rect.left(), middle.y()), QPointF(here.left(), middle.y()))
            painter.drawLine(QPointF(middle.x(), rect.top()), QPointF(middle.x(), here.top()))


def paint_pill(painter: QPainter, rect: QRectF, word: str, style: Style, unit: float, *, strong: bool = False) -> None:
    """``word`` on a pill in the map's upper right corner, where a causal mask hides least; ``strong`` in the accent."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font = sized(12 * unit)
    width, height = text_width(font, word) + 16 * unit, 20 * unit
    if width + 8 * unit <= rect.width():
        pill = QRectF(rect.right() - width - 5 * unit, rect.top() + 5 * unit, width, height)
        painter.setPen(QPen(style.accent if strong else style.hairline, 1))
        painter.setBrush(style.accent if strong else style.card)
        painter.drawRoundedRect(pill, height / 2, height / 2)
        painter.setPen(style.card if strong else style.muted)
        painter.setFont(font)
        draw_text(painter, pill, Qt.AlignmentFlag.AlignHCenter, word)
    painter.restore()


def paint_border(painter: QPainter, rect: QRectF, style: Style) -> None:
    """A dashed border around a map on which a mask is being drawn."""
    painter.save()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(style.card, 2.5), QPen(style.accent, 2.5, Qt.PenStyle.DashLine)):
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        painter.setPen(pen)
        painter.drawRect(rect.adjusted(-2, -2, 2, 2))
    painter.restore()
