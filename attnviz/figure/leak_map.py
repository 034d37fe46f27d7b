"""Who sees whom, painted: which outputs moved when a token changed, and which of them must not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width
from attnviz.figure.png import write_png
from attnviz.figure.styles import LIGHT, Style
from attnviz.files import write_whole
from attnviz.questions.leak import ROUNDING_EPS, Reading

_CENTRE, _RIGHT = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight
_LINES_FROM: Final = 5.0  # pixels a cell from which cells have edges
_NAMES_FROM: Final = 13.0
_LEGEND: Final = 20
_PLAIN: Final = 0.93
"""How much of the card's own colour is in what does not move."""
_TOP, _LEFT = 44.0, 64.0


class WhoSeesWhom(Protocol):
    """A map (L, L) at [output, token]: ``moved`` in eps of the largest, and the cells that must not move."""

    @property
    def moved(self) -> npt.NDArray[np.float64] | None: ...
    @property
    def hidden(self) -> npt.NDArray[np.bool_] | None: ...


@dataclass(frozen=True, slots=True)
class LeakPlan:
    """Where things lie in a rectangle: the square of the cells, and a cell's side."""

    cells: QRectF
    side: float

    @classmethod
    def of(cls, rect: QRectF, length: int) -> LeakPlan:
        """The largest square that leaves room for names above and on the left, and for the legend below."""
        room = min(rect.width() - _LEFT - 4, rect.height() - _TOP - 2 * _LEGEND - 6)
        side = max(room, 1.0) / max(length, 1)
        side = math.floor(side) if side >= 1 else side
        return cls(QRectF(rect.left() + _LEFT, rect.top() + _TOP, side * length, side * length), side)

    def cell_at(self, point: QPointF) -> tuple[int, int] | None:
        """Output and token under ``point``."""
        if not self.cells.contains(point):
            return None
        return int((point.y() - self.cells.top()) / self.side), int((point.x() - self.cells.left()) / self.side)


def paint_leak_map(
    painter: QPainter, rect: QRectF, reading: WhoSeesWhom, style: Style, tokens: tuple[str, ...] = ()
) -> None:
    """The map of ``reading`` in ``rect``: a row an output, a column a changed token, named where there is room."""
    moved, hidden = reading.moved, reading.hidden
    if moved is None or hidden is None:
        return
    length = len(moved)
    plan = LeakPlan.of(rect, length)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    pixels = cell_colours(moved, hidden, style)
    image = QImage(pixels.data, length, length, 4 * length, QImage.Format.Format_RGB32)
    painter.drawImage(plan.cells, image)
    if plan.side >= _LINES_FROM:
        painter.setPen(QPen(style.card, 1))
        for n in range(1, length):
            x, y = plan.cells.left() + n * plan.side, plan.cells.top() + n * plan.side
            painter.drawLine(QPointF(x, plan.cells.top()), QPointF(x, plan.cells.bottom()))
            painter.drawLine(QPointF(plan.cells.left(), y), QPointF(plan.cells.right(), y))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_border(painter, plan, hidden, style)
    _paint_names(painter, plan, length, tokens, style)
    _paint_legend(
        painter, QRectF(rect.left(), plan.cells.bottom() + 6, rect.width(), 2 * _LEGEND), moved, hidden, style
    )


def cell_colours(moved: npt.NDArray[np.float64], hidden: npt.NDArray[np.bool_], style: Style) -> npt.NDArray[np.uint32]:
    """0xffRRGGBB (L, L): red what leaks, the accent what may move, deeper by magnitudes; what is not known is grey."""
    over = moved > ROUNDING_EPS
    most = float(np.log10(moved[np.isfinite(moved) & over].max(initial=10 * ROUNDING_EPS) / ROUNDING_EPS))
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.clip(np.log10(moved / ROUNDING_EPS) / most, 0.0, 1.0)
    depth = np.where(np.isinf(moved), 1.0, depth)
    planes = []
    colours = (_channels(one) for one in (style.card, style.leak, style.accent, style.masked))
    for card, leak, accent, unknown in zip(*colours, strict=True):
        plain = np.full(moved.shape, card * _PLAIN + style.muted.lightness() * (1 - _PLAIN))
        allowed = card + (accent - card) * (0.3 + 0.6 * depth)
        leaking = card + (leak - card) * (0.65 + 0.35 * depth)
        plane = np.where(over, np.where(hidden, leaking, allowed), plain)
        planes.append(np.where(np.isnan(moved), unknown, plane).round().astype(np.uint32))
    return np.ascontiguousarray(
        np.uint32(0xFF000000) | planes[0] << np.uint32(16) | planes[1] << np.uint32(8) | planes[2]
    )


def mixed(style: Style) -> QColor:
    """The ground of what does not move."""
    grey = style.muted.lightness() * (1 - _PLAIN)
    return QColor(*(round(one * _PLAIN + grey) for one in _channels(style.card)))


def _channels(colour: QColor) -> tuple[int, int, int]:
    return colour.red(), colour.green(), colour.blue()


def _paint_border(painter: QPainter, plan: LeakPlan, hidden: npt.NDArray[np.bool_], style: Style) -> None:
    """A line between what may move and what must not."""
    path = QPainterPath()
    left, top, side = plan.cells.left(), plan.cells.top(), plan.side
    for row, col in np.argwhere(hidden[:, 1:] != hidden[:, :-1]).tolist():
        path.moveTo(left + (col + 1) * side, top + row * side)
        path.lineTo(left + (col + 1) * side, top + (row + 1) * side)
    for row, col in np.argwhere(hidden[1:] != hidden[:-1]).tolist():
        path.moveTo(left + col * side, top + (row + 1) * side)
        path.lineTo(left + (col + 1) * side, top + (row + 1) * side)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(style.ink, 2))
    painter.drawPath(path)
    painter.setPen(QPen(style.hairline, 1))
    painter.drawRect(plan.cells)


def _paint_names(painter: QPainter, plan: LeakPlan, length: int, tokens: tuple[str, ...], style: Style) -> None:
    cells, side = plan.cells, plan.side
    painter.setFont(sized(12))
    painter.setPen(style.muted)
    words = QCoreApplication.translate("LeakMap", "token that is changed")
    draw_text(
        painter,
        QRectF(cells.left(), cells.top() - _TOP, max(cells.width(), 140.0), 18),
        Qt.AlignmentFlag.AlignLeft,
        words,
    )
    painter.save()
    painter.translate(cells.left() - _LEFT + 9, cells.center().y())
    painter.rotate(-90)
    span = max(cells.height(), 120.0)
    draw_text(
        painter, QRectF(-span / 2, -9, span, 18), _CENTRE, QCoreApplication.translate("LeakMap", "output that moves")
    )
    painter.restore()
    painter.setPen(style.ink)
    named = tokens if len(tokens) == length else tuple(map(str, range(length)))
    step = max(1, math.ceil(_NAMES_FROM / side))
    widest = max(text_width(painter.font(), name) for name in named)
    across = step if widest <= side * step - 3 else max(step, math.ceil((min(widest, 40.0) + 6) / side))
    for n in range(0, length, step):
        beside = QRectF(cells.left() - _LEFT + 20, cells.top() + (n + 0.5) * side - 8, _LEFT - 26, 16)
        draw_text(painter, beside, _RIGHT, elided(painter.font(), named[n], _LEFT - 26))
    for n in range(0, length, across):
        width = side * across
        x = cells.left() + (n + 0.5) * side - width / 2
        draw_text(painter, QRectF(x, cells.top() - 20, width, 16), _CENTRE, elided(painter.font(), named[n], width))


def _paint_legend(
    painter: QPainter, rect: QRectF, moved: npt.NDArray[np.float64], hidden: npt.NDArray[np.bool_], style: Style
) -> None:
    """What the colours mean, those that are there; red always, since its absence says something."""
    over = moved > ROUNDING_EPS
    told = [
        (
            style.leak,
            QCoreApplication.translate("LeakMap", "moves, and must not: {n}"),
            int((over & hidden).sum()),
            True,
        ),
        (style.accent, QCoreApplication.translate("LeakMap", "moves"), int((over & ~hidden).sum()), False),
        (
            mixed(style),
            QCoreApplication.translate("LeakMap", "does not move"),
            int((moved <= ROUNDING_EPS).sum()),
            False,
        ),
        (style.masked, QCoreApplication.translate("LeakMap", "not tested"), int(np.isnan(moved).sum()), False),
    ]
    painter.setFont(sized(12))
    x, y = rect.left(), rect.top()
    for colour, words, count, always in told:
        if not count and not always:
            continue
        text = words.format(n=f"{count:,}")
        width = 20 + text_width(painter.font(), text)
        if x > rect.left() and x + width > rect.right():
            x, y = rect.left(), y + _LEGEND
        painter.setPen(QPen(style.hairline, 1))
        painter.setBrush(colour)
        painter.drawRect(QRectF(x + 0.5, y + 4.5, 11, 11))
        painter.setPen(style.leak if always and count else style.muted)
        draw_text(painter, QRectF(x + 18, y, rect.right() - x - 18, _LEGEND), Qt.AlignmentFlag.AlignLeft, text)
        x += width + 14


def write_leak_image(path: Path, reading: Reading, lines: Sequence[str], style: Style = LIGHT) -> None:
    """A PNG of 1,200 × 1,300 pixels: ``lines`` above the map. Raises `files.FileProblem` where it cannot be written."""
    load_fonts()
    image = QImage(1200, 1300, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    painter.scale(2, 2)
    top = 20.0
    for place, line in enumerate(lines):
        painter.setFont(sized(15 if place == 0 else 13))
        painter.setPen(style.ink if place == 0 else style.muted)
        draw_text(painter, QRectF(20, top, 560, 22), Qt.AlignmentFlag.AlignLeft, elided(painter.font(), line, 560))
        top += 24
    paint_leak_map(painter, QRectF(20, top + 8, 560, 650 - top - 20), reading, style)
    painter.end()
    write_whole(path, partial(write_png, image=image, texts={}, large_cells=True))
