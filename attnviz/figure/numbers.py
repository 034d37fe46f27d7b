"""Numbers in cells: each cell's own, and in small the one that stood there before the last change."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QCoreApplication, QPointF, QRectF
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from attnviz.colour import contrast_text
from attnviz.figure import marks
from attnviz.figure.fonts import sized
from attnviz.figure.grid import Grid
from attnviz.figure.styles import Style
from attnviz.figure.vectors import write_text
from attnviz.frames import CellClass, Frame, shown_class

BEFORE_FROM: Final = 60.0
"""Cells of so many pixels have room for the number before."""

_PERCENT_FROM: Final = 40.0  # in smaller cells two short digits are read more easily
_LEAST = 8.0
_LEAST_ON_PAPER = 10.5  # × unit: below, numbers are left to the colours
_READ_FROM_AFAR: Final = 1.5  # with type so many times as large, numbers fill their cells
_PENS: Final = {"black": "#111216", "white": "#ffffff"}


class _Written(NamedTuple):
    """Numbers in one way of writing that fits: texts by cell, their widths in ems, and the size of the type."""

    way: str
    texts: dict[tuple[int, int], str]
    widths: dict[str, float]
    size: float


def paint_numbers(
    painter: QPainter, grid: Grid, frame: Frame, shown: npt.NDArray[np.uint8], style: Style, *,
    decimals: int | None, before: Frame | None, unit: float, large: bool = False,
) -> None:  # fmt: skip
    """The values of ordinary cells, in the first way of writing that fits into every cell.

    In a cell of which a part is in sight the number stands in that part, or is left out.
    """
    if grid.side < 1.6 * _least(unit):
        return
    written = _written(grid, frame, shown, decimals, unit, large=large)
    if written is None:
        return
    font = sized(written.size)
    painter.setFont(font)
    raised, em = QFontMetricsF(font).capHeight() / 2, font.pixelSize()
    (top, _), (left, _) = frame.rows, frame.cols
    across = {col: _in_sight(grid.x(col), grid.cell_w, grid.rect.left(), grid.rect.right()) for col in grid.cols}
    down = {row: _in_sight(grid.y(row), grid.cell_h, grid.rect.top(), grid.rect.bottom()) for row in grid.rows}
    pens = {name: QColor(colour) for name, colour in _PENS.items()}
    for (row, col), text in written.texts.items():
        (x, width), (y, height) = across[col], down[row]
        half = written.widths[text] * em / 2
        if (width < grid.cell_w and width < 2 * half + 4) or (height < grid.cell_h and height < 1.4 * em):
            continue
        painter.setPen(pens[contrast_text(int(frame.rgb[row - top, col - left]))])
        write_text(painter, QPointF(x - half, y + raised), text)
    if before is not None and grid.side >= BEFORE_FROM * unit:
        _paint_before(painter, grid, frame, shown, before, written.way, style, unit)


def _in_sight(start: float, length: float, low: float, high: float) -> tuple[float, float]:
    """Middle and length of what a cell from ``start`` has between ``low`` and ``high``."""
    first, last = max(start, low), min(start + length, high)
    return (first + last) / 2, last - first if last - first < length - 0.5 else length


def _least(unit: float) -> float:
    """The smallest type of a number: on paper it must be read beside the other words."""
    return _LEAST if unit <= 1 else _LEAST_ON_PAPER * unit


def _written(
    grid: Grid, frame: Frame, shown: npt.NDArray[np.uint8], decimals: int | None, unit: float, *, large: bool
) -> _Written | None:  # fmt: skip
    """The numbers in sight in the first way of writing that fits, None where none does."""
    (top, _), (left, _) = frame.rows, frame.cols
    places = [(grid.rows.start + r, grid.cols.start + c) for r, c in np.argwhere(shown == CellClass.ORDINARY).tolist()]
    values = [float(frame.values[row - top, col - left]) for row, col in places]
    ruler = QFontMetricsF(sized(100))  # widths grow with the font, so measure once
    ways = [*marks.formats(frame, decimals, len(grid.cols))]
    if ways[0] == "%" and values and all(marks.percentage(value) == _TINY for value in values):
        ways = ["short", "2"]  # "< 1 %" in every cell would say nothing
    if ways[-1].isdigit():
        ways.append(marks.BARE + ways[-1])  # where "1.00" has no room "1" may have
    share = 0.29 if unit < _READ_FROM_AFAR else 0.52
    for way in ways:
        if way == "%" and grid.side < _PERCENT_FROM * unit:
            continue
        texts = [marks.formatted(value, way) for value in values]
        wanted = max(
            (0.3 if large else 0.19) * grid.side,
            min(12.0 * unit, share * grid.side),
            min(14.5 * unit, 0.23 * grid.side),
        )
        widths = {text: ruler.horizontalAdvance(text) / 100 for text in set(texts)}
        widest = max(widths.values(), default=0.0)
        size = min(wanted, 0.86 * grid.cell_w / max(widest, 0.1))
        if size >= (_least(unit) if way != "%" else 0.8 * min(12.0 * unit, wanted)):
            return _Written(way, dict(zip(places, texts, strict=True)), widths, size)
    return None


_TINY: Final = marks.percentage(0.001)


# ----------------------------------------------------------------------------------------------------------- before


def comparable(frame: Frame, before: Frame | None) -> Frame | None:
    """``before`` where its numbers can stand below those of ``frame``: the same cells of the same stage, one each."""
    if before is None or before is frame or before.level != 1 or frame.level != 1 or before.stage != frame.stage:
        return None
    return before if (before.rows, before.cols) == (frame.rows, frame.cols) else None


def _paint_before(
    painter: QPainter, grid: Grid, frame: Frame, shown: npt.NDArray[np.uint8], before: Frame, way: str,
    style: Style, unit: float,
) -> None:  # fmt: skip
    """What stood in each cell before, where it read otherwise: small, at the cell's foot."""
    kinds = shown_class(grid.seen(before.classes, before))
    (top, _), (left, _) = frame.rows, frame.cols
    font = sized(min(max(0.105 * grid.side, 12.0 * unit if unit > 1 else 11.0 * unit), 18.0 * unit))
    ruler, em = QFontMetricsF(font), font.pixelSize()
    was = QCoreApplication.translate("Figure", "was {0}")
    painter.setFont(font)
    for r, c in np.ndindex(shown.shape):
        row, col = grid.rows.start + r, grid.cols.start + c
        place = row - top, col - left
        old = _text(float(before.values[place]), CellClass(int(kinds[r, c])), way)
        if old == _text(float(frame.values[place]), CellClass(int(shown[r, c])), way):
            continue
        cell, part = grid.cell(row, col), grid.in_sight(row, col)
        text = was.format(old)
        width = ruler.horizontalAdvance(text)
        if width > cell.width() - 8:
            text, width = old, ruler.horizontalAdvance(old)
        if part.height() < cell.height() - 0.5 or part.width() < max(width + 4, cell.width() / 2):
            continue
        x, baseline = part.center().x() - width / 2, cell.center().y() + 0.25 * grid.side + em * 0.36
        if shown[r, c] == CellClass.MASKED:
            painter.fillRect(QRectF(x - 3, baseline - em * 0.95, width + 6, em * 1.25), style.masked)
            painter.setPen(style.muted)
        else:
            pen = QColor(_PENS[contrast_text(int(frame.rgb[place]))])
            pen.setAlphaF(0.78)
            painter.setPen(pen)
        write_text(painter, QPointF(x, baseline), text)


def _text(value: float, kind: CellClass, way: str) -> str:
    """What a cell says, a sign for what is no ordinary number."""
    if kind == CellClass.ORDINARY:
        return marks.formatted(value, way)
    if kind == CellClass.DROPPED:
        return QCoreApplication.translate("Figure", "dropped")
    return {CellClass.MASKED: "×", CellClass.ZERO: "0", CellClass.PADDED: "–", CellClass.NAN: "NaN"}.get(kind, "")
