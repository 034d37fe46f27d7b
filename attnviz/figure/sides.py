"""What stands along the sides of a map: names of rows and columns, and the rows' sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from attnviz.figure import marks
from attnviz.figure.fonts import draw_text, sized, text_width
from attnviz.figure.grid import Window
from attnviz.figure.labels import Labels, label_step
from attnviz.figure.panels import COS, LEAST_LABEL_STEP, ROTATION, SIN, SUMS_EMS, SUMS_FROM, UPRIGHT_STEP
from attnviz.figure.places import PanelLayout
from attnviz.figure.styles import Style
from attnviz.frames import Frame

_LEFT, _RIGHT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignHCenter
_LEFT_OUT: Final = "…"
_ASIDE: Final = 12.0
"""× unit: no map without sums has less free at its right."""

_BETWEEN: Final = 10.0
"""The same where the next map has its names as near."""


def _steps(first: float, last: float, count: int, step: int) -> range:
    """Every ``step``-th cell whose middle is in sight; with a step of one, every cell that is in sight at all."""
    if step == 1:
        return range(max(math.floor(first), 0), min(math.ceil(last), count))
    start = max(math.ceil(first - 0.5), 0)
    return range(-(-start // step) * step, min(math.floor(last - 0.5) + 1, count), step)


def _in_sight(place: int, first: float, last: float) -> tuple[float, float]:
    """The middle of what cell ``place`` has between ``first`` and ``last``, and how much that is, in cells."""
    start, end = max(float(place), first), min(place + 1.0, last)
    return (start + end) / 2, end - start


def _least_step(place: PanelLayout) -> float:
    """Pixels from one line of names to the next."""
    if place.upright:
        return UPRIGHT_STEP * place.label_px
    return max(LEAST_LABEL_STEP * place.unit, 1.1 * place.label_px)


def shared_step(font: QFont, place: PanelLayout, window: Window, rows: Labels, columns: Labels) -> int:
    """From number to number along the columns, which rows that count too keep to where two of theirs are in sight.

    1 where either has names, or the rows are too few.
    """
    if not (rows[0].isdigit() and columns[0].isdigit()):
        return 1
    step = _level_step(font, place, window, columns)[0]
    return step if len(_steps(*window[:2], len(rows), step)) > 1 else 1


def paint_row_labels(
    painter: QPainter, place: PanelLayout, window: Window, labels: Labels, style: Style,
    current: int | None, least_step: int = 1,
) -> None:  # fmt: skip
    """Names of the rows in sight, as many as have room; of the ``current`` one always, its neighbours give way.

    Every ``least_step``-th at most.
    """
    top, bottom = window[:2]
    strip, px = place.row_labels, place.label_px
    assert strip is not None  # noqa: S101 (the caller looked)
    cell = place.map_rect.height / (bottom - top)
    step = max(label_step(cell, _least_step(place)), least_step)
    shown = [*_steps(top, bottom, len(labels), step)]
    if current is not None and top < current + 1 and current < bottom:
        shown = [row for row in shown if row == current or abs(row - current) * cell >= px * 1.1]
        shown += [current] if current not in shown else []
    for row in shown:
        middle, share = _in_sight(row, top, bottom)
        if share < 1 and share * cell < px * 1.1 and row != current:
            continue  # of a row of which a sliver is in sight the name would lean over the columns' names
        painter.setPen(style.accent if row == current else style.ink)
        y = strip.y + (middle - top) * cell
        draw_text(painter, QRectF(strip.x, y - px, strip.width, 2 * px), _RIGHT, labels[row])


def paint_column_labels(
    painter: QPainter, place: PanelLayout, window: Window, labels: Labels, style: Style,
    current: int | None,
) -> None:  # fmt: skip
    """Names of the columns in sight, level or slanted, as many as have room; the ``current`` one always.

    Where a name had to give way, "…" says so, if there is room for it.
    """
    left, right = window[2:]
    strip, px, font = place.column_labels, place.label_px, painter.font()
    assert strip is not None  # noqa: S101 (the caller looked)
    if current is not None and not (left < current + 1 and current < right):
        current = None
    step, level = _level_step(font, place, window, labels)
    if place.slanted and not level:  # two slanted lines are as far apart as their cells, times the sine
        cell = place.map_rect.width / (right - left)
        least = _least_step(place)
        step = label_step(cell, least if place.upright else max(least, 1.1 * px / SIN))
        _paint_slanted(painter, place, window, labels, style, current, step)
        return
    _paint_level(painter, place, window, labels, style, current, step)


def _level_step(font: QFont, place: PanelLayout, window: Window, labels: Labels) -> tuple[int, bool]:
    """From name to name where they are level, and whether as many have room as if they were short."""
    left, right = window[2:]
    cell, px = place.map_rect.width / (right - left), place.label_px
    least = _least_step(place)
    step = label_step(cell, least)
    widest = max((text_width(font, labels[col]) for col in _steps(left, right, len(labels), step)), default=0.0)
    if widest <= cell * step - px * 0.3:
        return step, True
    apart = max(least, min(widest + px * 0.5, place.map_rect.width))
    return label_step(cell, apart) if labels[0].isdigit() else math.ceil(apart / cell), False  # names: no round steps


def _paint_level(
    painter: QPainter, place: PanelLayout, window: Window, labels: Labels, style: Style,
    current: int | None, step: int,
) -> None:  # fmt: skip
    left, right = window[2:]
    strip, px, font = place.column_labels, place.label_px, painter.font()
    assert strip is not None  # noqa: S101 (the caller looked)
    cell = place.map_rect.width / (right - left)
    reach = strip.right + _free_beside(place, text_width(font, labels[0]) - cell)
    low = strip.x - 4 * place.unit  # further left stand the rows' own names
    lines: list[tuple[int, float, float]] = []  # column, middle, width
    for col in _steps(left, right, len(labels), step):
        middle, share = _in_sight(col, left, right)
        x, needed = strip.x + (middle - left) * cell, text_width(font, labels[col])
        width = min(cell * step, 2 * (reach - x)) if step > 1 else share * cell
        if step > 1 and (x - needed / 2 < low or needed > width + 0.5):
            continue  # it would run into the rows' own names, or be cut at the right edge
        if share < 1 and needed > width and col != current:
            continue
        lines.append((col, x, width))
    if current is not None and (step > 1 or current not in [col for col, _, _ in lines]):
        width = min(text_width(font, labels[current]) + 2, strip.width)
        x = strip.x + (_in_sight(current, left, right)[0] - left) * cell
        x = min(max(x, strip.x + width / 2), reach - width / 2)
        own = width / 2 + px * 0.4
        lines = [line for line in lines if abs(line[1] - x) >= own + text_width(font, labels[line[0]]) / 2]
        lines.append((current, x, width))
    named = not labels[0].isdigit()
    if named and step > 1 and lines:  # only between names that are written: what follows the last may have no room
        first, last = min(c for c, _, _ in lines), max(c for c, _, _ in lines)
        written = [(x, text_width(font, labels[c])) for c, x, _ in lines]
        _mark_left_out(painter, place, style, cell, left, range(first + 1, last), written)
    for col, x, width in lines:
        painter.setPen(style.accent if col == current else style.ink)
        draw_text(painter, QRectF(x - width / 2, strip.bottom - px * 1.6, width, px * 1.6), _CENTRE, labels[col])


def _free_beside(place: PanelLayout, first: float) -> float:
    """How far a level name may reach beyond the map: into the gap, up to the next map's first name.

    This one is ``first`` pixels wider than its column.
    """
    if place.sums is not None:
        return 0.0
    if place.overhang is not None:
        return place.overhang.width
    if not place.neighboured:
        return _ASIDE * place.unit
    return max(_BETWEEN * place.unit - max(first, 0.0) / 2 - 0.25 * place.label_px, 0.0)


def _mark_left_out(
    painter: QPainter, place: PanelLayout, style: Style, cell: float, left: float, columns: range,
    written: Iterable[tuple[float, float]],
) -> None:  # fmt: skip
    """Say "…" over each of ``columns`` whose name was left out, where it has room.

    ``written`` are the middles and widths of the names that are there.
    """
    strip, px = place.column_labels, place.label_px
    assert strip is not None  # noqa: S101 (the caller looked)
    width = text_width(painter.font(), _LEFT_OUT)
    if cell < width:
        return
    taken = [*written]
    painter.setPen(style.muted)
    for col in columns:
        x = strip.x + (col + 0.5 - left) * cell
        if all(abs(x - middle) >= (width + wide) / 2 + 2 for middle, wide in taken):
            draw_text(painter, QRectF(x - cell, strip.bottom - px * 1.6, 2 * cell, px * 1.6), _CENTRE, _LEFT_OUT)


def _paint_slanted(
    painter: QPainter, place: PanelLayout, window: Window, labels: Labels, style: Style,
    current: int | None, step: int,
) -> None:  # fmt: skip
    left, right = window[2:]
    strip, px = place.column_labels, place.label_px
    assert strip is not None  # noqa: S101 (the caller looked)
    cell = place.map_rect.width / (right - left)
    shown = [*_steps(left, right, len(labels), step)]
    if (
        place.neighboured and step > 1 and not place.upright
    ):  # the next map's first name stands where the last ones lean
        shown = [col for col in shown if right - col >= step]
    if current is not None:
        shown = [col for col in shown if col == current or abs(col - current) * cell >= px * 1.1 / SIN]
        shown += [current] if current not in shown else []
    length = strip.height if place.upright else (strip.height - px * COS) / SIN
    for col in shown:
        middle, share = _in_sight(col, left, right)
        if share < 1 and share * cell < px and col != current:
            continue
        painter.setPen(style.accent if col == current else style.ink)
        painter.save()
        if place.upright:
            painter.translate(strip.x + (middle - left) * cell, strip.bottom)
            painter.rotate(-90)
            draw_text(painter, QRectF(0, -px / 2, max(length, px), px), _LEFT, labels[col])
        else:
            painter.translate(strip.x + (middle - left) * cell + px * 0.1, strip.bottom - px * 0.2)
            painter.rotate(-ROTATION)
            draw_text(painter, QRectF(0, -px * 0.75, max(length, px), px), _LEFT, labels[col])
        painter.restore()


def paint_sums(
    painter: QPainter, place: PanelLayout, window: Window, frame: Frame, style: Style, *, n_cols: int, numbers: bool
) -> None:
    """Σ and each row's sum; one that is not 1 stands out. Sums are of whole rows, whatever part is in sight.

    Without ``numbers`` a dot stands in their places.
    """
    top, bottom, left, right = window
    strip, header, sums = place.sums, place.sums_header, frame.row_sums
    assert strip is not None and header is not None and sums is not None  # noqa: S101, PT018 (the caller looked)
    cell = strip.height / (bottom - top)
    if cell < SUMS_FROM:
        return
    font = sized(min(place.label_px, (strip.width - 6 * place.unit) / SUMS_EMS))
    odd = style.leak if frame.stage == "weights" else style.accent  # elsewhere a sum need not be 1: red is for leaks
    painter.setFont(font)
    painter.setPen(style.muted)
    whole = left <= 0 and right >= n_cols
    heading = "Σ" if whole else QCoreApplication.translate("Figure", "Σ all")
    if text_width(font, heading) > header.width + 0.5:
        heading = "Σ"
    draw_text(painter, QRectF(*header), _LEFT, heading)
    for row in _steps(top, bottom, frame.rows[1], label_step(cell, font.pixelSize())):
        middle, share = _in_sight(row, top, bottom)
        if row < frame.rows[0] or share * cell < font.pixelSize():
            continue
        text, is_one = marks.row_sum(float(sums[row - frame.rows[0]])) if numbers else ("·", True)
        painter.setPen(style.ink if is_one else odd)
        y, height = strip.y + (middle - top) * cell, font.pixelSize() * 1.4
        draw_text(painter, QRectF(strip.x, y - height / 2, strip.width, height), _LEFT, text)
