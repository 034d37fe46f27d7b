"""The one painter: cells, panels and whole figures with QPainter, for the window, for paper and off the GUI thread."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPainterPath, QPen

from attnviz import colour
from attnviz.figure import cells, layout, marks
from attnviz.figure.cells import DARK, LIGHT, Peeking, Style, Window, paint_cells, peeking_of
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.labels import Labels, axis_labels, label_step, map_shape
from attnviz.frames import Frame, Outline
from attnviz.session import Cell, Picture
from attnviz.spec import View

__all__ = [
    "DARK", "LIGHT", "Peeking", "Style", "Window", "paint_cells", "paint_colour_bar", "paint_legend", "paint_panel",
    "paint_surroundings", "peeking_of",
]  # fmt: skip

_LEFT, _RIGHT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignHCenter


# ----------------------------------------------------------------------------------------------------------- panels


def paint_panel(
    painter: QPainter, place: layout.PanelLayout, frame: Frame, outline: Outline, style: Style, *,
    window: Window | None = None, numbers: bool = True, decimals: int | None = None, selected: Cell | None = None,
) -> None:  # fmt: skip
    """One head: its cells and everything around them. ``window`` None shows the whole map."""
    n_rows, n_cols = map_shape(outline)
    window = window or (0.0, float(n_rows), 0.0, float(n_cols))
    paint_cells(
        painter, QRectF(*place.map_rect), window, frame, style, numbers=numbers, decimals=decimals,
        peeking=peeking_of(outline), unit=place.unit,
    )  # fmt: skip
    paint_surroundings(painter, place, window, frame, outline, style, selected=selected)


def paint_surroundings(
    painter: QPainter, place: layout.PanelLayout, window: Window, frame: Frame | None, outline: Outline,
    style: Style, *, selected: Cell | None = None, cross: Cell | None = None, panel: str = "",
) -> None:  # fmt: skip
    """Title, token labels and row sums of one panel, the selected row's frame and the cross-hair.

    ``selected`` and ``cross`` are drawn over the map, so this comes after its cells.
    """
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if place.title is not None:
        painter.setFont(sized(14 * place.unit))
        painter.setPen(style.ink)
        title = marks.panel_title(frame, frame.panel if frame is not None else panel)
        draw_text(painter, QRectF(*place.title), _LEFT, title)
    current = cross or selected
    if place.row_labels is not None or place.column_labels is not None:
        rows, columns = axis_labels(outline)
        painter.setFont(sized(place.label_px))
    if place.row_labels is not None:
        _paint_row_labels(painter, place, window, rows, style, current.row if current else None)
    if place.column_labels is not None:
        _paint_column_labels(painter, place, window, columns, style, cross.col if cross else None)
    if place.sums is not None and frame is not None and frame.row_sums is not None:
        _paint_sums(painter, place, window, frame, style)
    if selected is not None:
        _paint_selected_row(painter, QRectF(*place.map_rect), window, selected.row, style, place.unit)
    if cross is not None:
        _paint_cross(painter, QRectF(*place.map_rect), window, cross, style)
    painter.restore()


def _steps(first: float, last: float, count: int, step: int) -> range:
    """Every ``step``-th cell whose middle is in sight."""
    start = max(math.ceil(first - 0.5), 0)
    return range(-(-start // step) * step, min(math.floor(last - 0.5) + 1, count), step)


def _paint_row_labels(
    painter: QPainter, place: layout.PanelLayout, window: Window, labels: Labels, style: Style,
    current: int | None,
) -> None:  # fmt: skip
    top, bottom = window[:2]
    strip = place.row_labels
    assert strip is not None  # noqa: S101 (the caller looked)
    cell = place.map_rect.height / (bottom - top)
    step = label_step(cell, max(layout.LEAST_LABEL_STEP * place.unit, place.label_px * 1.1))
    shown = [*_steps(top, bottom, len(labels), step)]
    if current is not None and top <= current + 0.5 <= bottom:  # the current one is named, its neighbours give way
        shown = [row for row in shown if row == current or abs(row - current) * cell >= place.label_px * 1.1]
        shown += [current] if current not in shown else []
    for row in shown:
        middle = strip.y + (row + 0.5 - top) * cell
        painter.setPen(style.accent if row == current else style.ink)
        rect = QRectF(strip.x, middle - place.label_px, strip.width, 2 * place.label_px)
        draw_text(painter, rect, _RIGHT, labels[row])


def _paint_column_labels(
    painter: QPainter, place: layout.PanelLayout, window: Window, labels: Labels, style: Style,
    current: int | None,
) -> None:  # fmt: skip
    left, right = window[2:]
    strip = place.column_labels
    assert strip is not None  # noqa: S101 (the caller looked)
    px, font = place.label_px, painter.font()
    cell = place.map_rect.width / (right - left)
    least = max(layout.LEAST_LABEL_STEP * place.unit, px * 1.1)
    step = label_step(cell, least)
    shown = _steps(left, right, len(labels), step)
    widest = max((text_width(font, labels[col]) for col in shown), default=0.0)
    level = widest <= cell * step - px * 0.3
    if not level and not place.slanted:
        step = label_step(cell, max(least, min(widest + px * 0.5, strip.width)))
        shown = _steps(left, right, len(labels), step)
    if place.slanted and not level:  # two slanted lines are as far apart as their cells, times the sine
        step = label_step(cell, max(least, px * 1.1 / math.sin(math.radians(layout.ROTATION))))
        shown = _steps(left, right, len(labels), step)
    reach = strip.width + (place.overhang.width if place.overhang else 0.0)
    for col in shown:
        middle = strip.x + (col + 0.5 - left) * cell
        painter.setPen(style.accent if col == current else style.ink)
        if level or not place.slanted:
            width = min(cell * step, 2 * (strip.x + reach - middle)) if step > 1 else cell
            half = text_width(font, labels[col]) / 2
            if step > 1 and (middle - half < strip.x - 4 * place.unit or half > width / 2 + 1):
                continue  # it would run into the rows' own labels, or be cut at the right edge
            rect = QRectF(middle - width / 2, strip.bottom - px * 1.6, width, px * 1.6)
            draw_text(painter, rect, _CENTRE, labels[col])
            continue
        length = (strip.height - px * math.cos(math.radians(layout.ROTATION))) / math.sin(math.radians(layout.ROTATION))
        painter.save()
        painter.translate(middle + px * 0.1, strip.bottom - px * 0.2)
        painter.rotate(-layout.ROTATION)
        draw_text(painter, QRectF(0, -px * 0.75, max(length, px), px), _LEFT, labels[col])
        painter.restore()


def _paint_sums(painter: QPainter, place: layout.PanelLayout, window: Window, frame: Frame, style: Style) -> None:
    """Σ and each row's sum; one that is not 1 stands out."""
    top, bottom = window[:2]
    strip, header, sums = place.sums, place.sums_header, frame.row_sums
    assert strip is not None and header is not None and sums is not None  # noqa: S101, PT018 (the caller looked)
    cell = strip.height / (bottom - top)
    if cell < layout.SUMS_FROM:
        return
    font = sized(min(place.label_px, 15 * place.unit))
    odd = style.leak if frame.stage == "weights" else style.accent  # elsewhere a sum need not be 1: red is for leaks
    painter.setFont(font)
    painter.setPen(style.muted)
    draw_text(painter, QRectF(*header), _LEFT, "Σ")
    for row in _steps(top, bottom, frame.rows[1], label_step(cell, font.pixelSize())):
        if row < frame.rows[0]:
            continue
        text, is_one = marks.row_sum(float(sums[row - frame.rows[0]]))
        painter.setPen(style.ink if is_one else odd)
        middle = strip.y + (row + 0.5 - top) * cell
        draw_text(painter, QRectF(strip.x, middle - cell / 2, strip.width, cell), _LEFT, text)


def _paint_selected_row(painter: QPainter, rect: QRectF, window: Window, row: int, style: Style, unit: float) -> None:
    """A frame around a high row, a tick at both ends of a low one."""
    top, bottom = window[:2]
    cell = rect.height() / (bottom - top)
    first, last = max(row, top), min(row + 1, bottom)
    if last <= first:
        return
    frame = QRectF(rect.left(), rect.top() + (first - top) * cell, rect.width(), (last - first) * cell)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if cell >= cells.HATCHED_FROM:
        width = min(max(cell / 40, 1.6), 4.0) * max(1.0, unit)
        painter.setPen(QPen(style.accent, width))
        painter.drawRoundedRect(frame.adjusted(-width, -width / 2, width, width / 2), width, width)
        return
    painter.setPen(QPen(style.accent, 2.0 * unit))
    middle, tick = frame.center().y(), 5 * unit
    painter.drawLine(QPointF(rect.left() - tick, middle), QPointF(rect.left(), middle))
    painter.drawLine(QPointF(rect.right(), middle), QPointF(rect.right() + tick, middle))


def _paint_cross(painter: QPainter, rect: QRectF, window: Window, cell: Cell, style: Style) -> None:
    """A frame around a large cell; to a small one lines from the map's left and upper edge."""
    top, bottom, left, right = window
    cell_w, cell_h = rect.width() / (right - left), rect.height() / (bottom - top)
    corner = QPointF(rect.left() + (cell.col - left) * cell_w, rect.top() + (cell.row - top) * cell_h)
    here = QRectF(corner.x(), corner.y(), cell_w, cell_h).intersected(rect)
    if here.isEmpty():
        return
    middle, large = here.center(), min(cell_w, cell_h) >= cells.HATCHED_FROM
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(style.card, 3), QPen(style.accent, 1.4)):  # an edge keeps the line in sight on any colour
        painter.setPen(pen)
        if large:
            painter.drawRect(here.adjusted(1.5, 1.5, -1.5, -1.5))
            continue
        painter.drawLine(QPointF(rect.left(), middle.y()), QPointF(here.left(), middle.y()))
        painter.drawLine(QPointF(middle.x(), rect.top()), QPointF(middle.x(), here.top()))


# ---------------------------------------------------------------------------------------------------------- figures


def paint_colour_bar(painter: QPainter, plan: layout.FigureLayout, frame: Frame, view: View, style: Style) -> None:
    """The colours from lowest to highest, their values, and what they measure."""
    load_fonts()
    unit, scale = plan.unit, frame.scale
    bar = QRectF(*plan.bar)
    table = colour.table(colour.DIVERGING_TABLE if scale.diverging else view.colours)
    column = np.ascontiguousarray(table[::-1, None])
    strip = QImage(column.data, 1, len(table), 4, QImage.Format.Format_RGB32)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    outline = QPainterPath()
    outline.addRoundedRect(bar, 4 * unit, 4 * unit)
    painter.setClipPath(outline)
    painter.drawImage(bar, strip)
    painter.setClipping(False)
    painter.setFont(sized(12 * unit))
    painter.setPen(style.muted)
    ticks = colour.quantity_ticks(scale)
    if view.norm == "per-head":
        ticks = [(0.0, ticks[0][1]), (1.0, QCoreApplication.translate("Figure", "max"))]
    words_w = 18 * unit
    ticks_w = plan.bar_column.right - bar.right() - words_w - 6 * unit
    last = -math.inf
    for tick, label in [*ticks[-1:], *ticks[:-1]]:  # the highest always, the others as they have room
        y = bar.bottom() - tick * bar.height()
        if tick < 1 and (y - bar.top() < 14 * unit or bar.bottom() - y < last + 14 * unit):
            continue
        last = bar.bottom() - y if tick < 1 else last
        draw_text(painter, QRectF(bar.right() + 6 * unit, y - 8 * unit, ticks_w, 16 * unit), _LEFT, label)
    painter.translate(plan.bar_column.right - words_w / 2, plan.bar_column.y + plan.bar_column.height / 2)
    painter.rotate(-90)
    length = plan.bar_column.height
    words = marks.scale_caption(frame.stage, scale, view)
    draw_text(painter, QRectF(-length / 2, -words_w / 2, length, words_w), _CENTRE, words)
    painter.restore()


def paint_legend(painter: QPainter, plan: layout.FigureLayout, picture: Picture, style: Style) -> None:
    """The captions, and under them the looks of cells that are no ordinary numbers with their counts."""
    outline, frames = picture.outline, picture.heads
    if outline is None or not frames:
        return
    load_fonts()
    unit = plan.unit
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(sized(13 * unit))
    painter.setPen(style.muted)
    coarsest = max(frames, key=lambda frame: frame.level)
    said = (marks.axes_caption(outline.stage, coarsest.level, coarsest.pooling), outline.origin)
    for box, text in zip(plan.captions, said, strict=False):
        draw_text(painter, QRectF(*box), _LEFT, text)
    x, y, line, side = plan.legend.x, plan.legend.y, 22 * unit, 13 * unit
    for entry in marks.legend_entries(picture):
        width = side + 6 * unit + text_width(painter.font(), entry.text)
        if x > plan.legend.x and x + width > plan.legend.right:
            x, y = plan.legend.x, y + line
            if y + line > plan.legend.bottom + 1:
                break
        swatch = QRectF(x, y + (line - side) / 2, side, side)
        cells.paint_swatch(painter, swatch, entry.kind, style)
        painter.setPen(style.muted)
        text_rect = QRectF(x + side + 6 * unit, y, plan.legend.right - x - side - 6 * unit, line)
        draw_text(painter, text_rect, _LEFT, entry.text)
        x += width + 20 * unit
    painter.restore()
