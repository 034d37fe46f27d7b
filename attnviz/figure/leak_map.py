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
from PySide6.QtCore import QCoreApplication, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width
from attnviz.figure.formats.png import KEYWORD, write_png
from attnviz.figure.labels import Labels
from attnviz.figure.panels import COS, SIN
from attnviz.figure.places import Box, PanelLayout
from attnviz.figure.sides import paint_column_labels
from attnviz.figure.styles import LIGHT, Style
from attnviz.figure.vectors import VectorPainter, clip_to_cells, draw_lines, paint_colours
from attnviz.figure.words import wrapped
from attnviz.files import write_whole
from attnviz.questions.leak import ROUNDING_EPS, Reading
from attnviz.remembered import remember_given

_CENTRE, _RIGHT = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight
_LINES_FROM: Final = 5.0  # pixels a cell from which cells have edges
_NAMES_FROM: Final = 15.0
_LEGEND: Final = 20.0
_NAME_PX: Final = 12
_SLANTED_PX: Final = 11  # lines that lie as close as may be
_WIDEST_NAME: Final = 90.0
_PLAIN: Final = 0.93
"""How much of the card's own colour is in what does not move."""
_TOP, _LEAST_LEFT = 44.0, 64.0
_ABOVE_NAMES = 19.0  # of what is above the cells, for the axis' name
_FEET: Final = 0.2  # of its height hangs below a slanted line
_SLANT_WORTH: Final = 0.6
"""Slanted names leave at least this share of a cell's side."""
_BESIDE = 26.0  # of what is left of the cells, for the axis' name


class WhoSeesWhom(Protocol):
    """A map (L, L) at [output, token]: ``moved`` in eps of the largest, and the cells that must not move."""

    @property
    def moved(self) -> npt.NDArray[np.float64] | None: ...
    @property
    def hidden(self) -> npt.NDArray[np.bool_] | None: ...


@dataclass(frozen=True, slots=True)
class LeakPlan:
    """Where things lie in a rectangle: the square of the cells, a cell's side, and the names of outputs and tokens.

    ``legend`` are the lines of what the colours mean. ``unit`` scales type and gaps.
    """

    rect: QRectF
    cells: QRectF
    side: float
    left: float
    names: tuple[str, ...]
    legend: tuple[tuple[_Look, ...], ...] = ()
    unit: float = 1.0
    top: float = _TOP
    slanted: bool = False

    @classmethod
    def of(
        cls, rect: QRectF, reading: WhoSeesWhom, tokens: Sequence[str] = (), unit: float = 1.0
    ) -> LeakPlan | None:  # fmt: skip
        """The largest square that leaves room for names above and on the left, and for the legend below.

        None for a reading without a map. ``tokens`` name outputs and tokens where there are as many.
        """
        moved, hidden = reading.moved, reading.hidden
        if moved is None or hidden is None:
            return None
        length = len(moved)
        names = tuple(tokens) if len(tokens) == length else tuple(map(str, range(length)))
        font = sized(_NAME_PX * unit)
        widest = max((text_width(font, name) for name in names), default=0.0)
        left = max(_LEAST_LEFT * unit, _BESIDE * unit + min(widest + 1, _WIDEST_NAME * unit))
        legend = _legend_lines(_looks(moved, hidden), rect.width(), unit)
        below = len(legend) * _LEGEND * unit + 6 * unit

        def placed(top: float, lean: float) -> LeakPlan:
            room = min(rect.width() - left - lean, rect.height() - top - below)
            side = max(room, 1.0) / max(length, 1)
            side = math.floor(side) if side >= 1 else side
            cells = QRectF(rect.left() + left, rect.top() + top, side * length, side * length)
            return cls(rect, cells, side, left, names, legend, unit, top, slanted=top != _TOP * unit)

        level = placed(_TOP * unit, 4 * unit)
        if widest <= level.side - 3 * unit or all(name.isdigit() for name in names):
            return level
        px = _SLANTED_PX * unit
        long = min(max(text_width(sized(px), name) for name in names) + 2, _WIDEST_NAME * unit)
        above = SIN * long + (COS + _FEET) * px
        slanted = placed(_ABOVE_NAMES * unit + above, max(COS * long - level.side / 2, 4 * unit))
        return slanted if slanted.side >= _SLANT_WORTH * level.side else level

    def cell_at(self, point: QPointF) -> tuple[int, int] | None:
        """Output and token under ``point``."""
        if not self.cells.contains(point):
            return None
        return int((point.y() - self.cells.top()) / self.side), int((point.x() - self.cells.left()) / self.side)


@dataclass(frozen=True, slots=True)
class _Look:
    """A line of the legend: what a colour means."""

    kind: str
    text: str
    strong: bool = False


def paint_leak_map(
    painter: QPainter, rect: QRectF, reading: WhoSeesWhom, style: Style, tokens: Sequence[str] = (),
    unit: float = 1.0,
) -> None:  # fmt: skip
    """The map of ``reading`` in ``rect``: a row an output, a column a changed token, named where there is room."""
    load_fonts()
    plan = LeakPlan.of(rect, reading, tokens, unit)
    moved, hidden = reading.moved, reading.hidden
    if plan is None or moved is None or hidden is None:
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    lined = plan.side >= _LINES_FROM * unit
    painter.save()
    if lined and style.clear:
        _leave_lines_out(painter, plan, len(moved))
    _paint_cells(painter, plan, cell_colours(moved, hidden, style))
    painter.restore()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if style.grey:
        _hatch_leaks(painter, plan, (moved > ROUNDING_EPS) & hidden, style)
    if lined and not style.clear:
        painter.setPen(QPen(style.card, max(1.0, unit)))
        lines = []
        for n in range(1, len(moved)):
            x, y = plan.cells.left() + n * plan.side, plan.cells.top() + n * plan.side
            lines += [QLineF(x, plan.cells.top(), x, plan.cells.bottom())]
            lines += [QLineF(plan.cells.left(), y, plan.cells.right(), y)]
        draw_lines(painter, lines)
    _paint_border(painter, plan, hidden, style)
    _paint_names(painter, plan, style)
    _paint_legend(painter, plan, style)
    painter.restore()


def _leave_lines_out(painter: QPainter, plan: LeakPlan, length: int) -> None:
    """Nothing is painted where the lines between cells are."""
    half, (left, top), side = max(1.0, plan.unit) / 2, (plan.cells.left(), plan.cells.top()), plan.side
    ends = [(n * side + half * (n > 0), (n + 1) * side - half * (n < length - 1)) for n in range(length)]
    clip_to_cells(painter, [(left + a, left + b) for a, b in ends], [(top + a, top + b) for a, b in ends])


def _paint_cells(painter: QPainter, plan: LeakPlan, pixels: npt.NDArray[np.uint32]) -> None:
    length = len(pixels)
    if isinstance(painter, VectorPainter):
        steps = plan.side * np.arange(length + 1)
        paint_colours(painter, plan.cells.left() + steps, plan.cells.top() + steps, pixels)
        return
    image = QImage(pixels.data, length, length, 4 * length, QImage.Format.Format_RGB32)
    painter.drawImage(plan.cells, image)


def _hatch_leaks(painter: QPainter, plan: LeakPlan, leaking: npt.NDArray[np.bool_], style: Style) -> None:
    """Light lines over what leaks, which red alone would not tell in grey."""
    side = plan.side
    area = QPainterPath()
    for row, col in np.argwhere(leaking).tolist():
        area.addRect(QRectF(plan.cells.left() + col * side, plan.cells.top() + row * side, side, side))
    if not area.isEmpty():
        painter.save()
        painter.setClipPath(area, Qt.ClipOperation.IntersectClip)
        _hatch(painter, area.boundingRect(), style, plan.unit)
        painter.restore()


def _hatch(painter: QPainter, area: QRectF, style: Style, unit: float) -> None:
    step, reach = 5 * unit, area.height()
    count = math.ceil((area.width() + reach) / step)
    painter.setPen(QPen(style.card, 1.1 * unit))
    draw_lines(painter, [
        QLineF(area.left() + n * step - reach, area.bottom(), area.left() + n * step, area.top()) for n in range(count)
    ])  # fmt: skip


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


def _still(style: Style) -> QColor:
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
    painter.setPen(QPen(style.ink, 2 * plan.unit))
    painter.drawPath(path)
    painter.setPen(QPen(style.hairline, max(1.0, plan.unit)))
    painter.drawRect(plan.cells)


def _paint_names(painter: QPainter, plan: LeakPlan, style: Style) -> None:
    cells, side, unit, names = plan.cells, plan.side, plan.unit, plan.names
    painter.setFont(sized(_NAME_PX * unit))
    painter.setPen(style.muted)
    words = QCoreApplication.translate("LeakMap", "token that is changed")
    line, high = 18 * unit, 16 * unit
    width = max(cells.width(), plan.rect.right() - cells.left())
    draw_text(painter, QRectF(cells.left(), cells.top() - plan.top, width, line), Qt.AlignmentFlag.AlignLeft, words)
    words = QCoreApplication.translate("LeakMap", "output that moves")
    span = max(cells.height(), text_width(painter.font(), words) + 2)
    middle = max(cells.center().y(), plan.rect.top() + span / 2)
    painter.save()
    painter.translate(cells.left() - plan.left + line / 2, middle)
    painter.rotate(-90)
    draw_text(painter, QRectF(-span / 2, -line / 2, span, line), _CENTRE, words)
    painter.restore()
    painter.setPen(style.ink)
    font = painter.font()
    step = max(1, math.ceil(_NAMES_FROM * unit / side))
    beside = plan.left - _BESIDE * unit
    for n in range(0, len(names), step):
        box = QRectF(cells.left() - beside - 6 * unit, cells.top() + (n + 0.5) * side - high / 2, beside, high)
        draw_text(painter, box, _RIGHT, elided(font, names[n], beside))
    if plan.slanted:
        _slant_names(painter, plan, style)
        return
    widest = min(max(text_width(font, name) for name in names), _WIDEST_NAME * unit)
    across = step if widest <= side * step - 3 * unit else max(step, math.ceil((widest + 6 * unit) / side))
    for n in range(0, len(names), across):
        name = elided(font, names[n], _WIDEST_NAME * unit)
        width = text_width(font, name) + 1
        x = cells.left() + (n + 0.5) * side - width / 2
        if n and x + width > max(cells.right(), plan.rect.right()):
            continue  # it would be cut at the edge
        x = max(x, cells.left() - _BESIDE * unit)
        draw_text(painter, QRectF(x, cells.top() - 20 * unit, width, high), _CENTRE, name)


def _slant_names(painter: QPainter, plan: LeakPlan, style: Style) -> None:
    """The tokens' names above the cells as they stand above every other map."""
    cells, unit, length, px = plan.cells, plan.unit, len(plan.names), _SLANTED_PX * plan.unit
    above, font = plan.top - _ABOVE_NAMES * unit, sized(px)
    painter.setFont(font)
    box = Box(*cells.getRect())  # type: ignore[misc]
    place = PanelLayout(
        outer=box, map_rect=box, title=None, row_labels=None,
        column_labels=Box(box.x, box.y - above, box.width, above - _FEET * px), overhang=None, sums=None,
        sums_header=None, label_px=px, slanted=True, unit=unit,
    )  # fmt: skip
    names = [elided(font, name, _WIDEST_NAME * unit) for name in plan.names]
    paint_column_labels(painter, place, (0.0, length, 0.0, length), Labels(names, 0, length), style, None)


def _looks(moved: npt.NDArray[np.float64], hidden: npt.NDArray[np.bool_]) -> tuple[_Look, ...]:
    """What the colours mean, those that are there; red always, since its absence says something."""
    over = moved > ROUNDING_EPS
    leaking = int((over & hidden).sum())
    told = [_Look("leak", QCoreApplication.translate("LeakMap", "moves, and must not: {n}").format(n=f"{leaking:,}"),
                  strong=leaking > 0)]  # fmt: skip
    if (over & ~hidden).any():
        told.append(_Look("accent", QCoreApplication.translate("LeakMap", "moves")))
    if (moved <= ROUNDING_EPS).any():
        told.append(_Look("still", QCoreApplication.translate("LeakMap", "does not move")))
    if np.isnan(moved).any():
        told.append(_Look("masked", QCoreApplication.translate("LeakMap", "not tested")))
    return tuple(told)


def _legend_lines(looks: Sequence[_Look], width: float, unit: float) -> tuple[tuple[_Look, ...], ...]:
    font, lines, x = sized(_NAME_PX * unit), [], math.inf
    for look in looks:
        wide = _LEGEND * unit + text_width(font, look.text)
        if x + wide > width:
            lines.append([look])
            x = 0.0
        else:
            lines[-1].append(look)
        x += wide + 14 * unit
    return tuple(map(tuple, lines))


def _paint_legend(painter: QPainter, plan: LeakPlan, style: Style) -> None:
    unit = plan.unit
    painter.setFont(sized(_NAME_PX * unit))
    y = plan.cells.bottom() + 6 * unit
    for line in plan.legend:
        x = plan.rect.left()
        for look in line:
            colour: QColor = _still(style) if look.kind == "still" else getattr(style, look.kind)
            box = QRectF(x + 0.5, y + 4.5 * unit, 11 * unit, 11 * unit)
            painter.setPen(QPen(style.hairline, max(1.0, unit)))
            painter.setBrush(colour)
            painter.drawRect(box)
            if style.grey and look.kind == "leak":
                painter.save()
                painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
                _hatch(painter, box, style, unit)
                painter.restore()
            painter.setPen(style.leak if look.strong else style.muted)
            room = QRectF(x + 18 * unit, y, plan.rect.right() - x - 18 * unit, _LEGEND * unit)
            draw_text(painter, room, Qt.AlignmentFlag.AlignLeft, look.text)
            x += _LEGEND * unit + text_width(painter.font(), look.text) + 14 * unit
        y += _LEGEND * unit


def write_leak_image(
    path: Path, reading: Reading, heads: Sequence[str], notes: Sequence[str], style: Style = LIGHT
) -> None:  # fmt: skip
    """A PNG of 1,200 × 1,300 pixels: ``heads`` and, quieter, ``notes`` above the map.

    Raises `files.FileProblem` where it cannot be written.
    """
    load_fonts()
    image = QImage(1200, 1300, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    painter.scale(2, 2)
    top = 20.0
    said = [(head, 15, style.ink) for head in heads] + [(note, 13, style.muted) for note in notes]
    for words, pixels, ink in said:
        painter.setFont(sized(pixels))
        painter.setPen(ink)
        for line in wrapped(painter.font(), words, 560):
            draw_text(painter, QRectF(20, top, 560, 22), Qt.AlignmentFlag.AlignLeft, line)
            top += 24
    paint_leak_map(painter, QRectF(20, top + 8, 560, 650 - top - 20), reading, style)
    painter.end()
    kept = {KEYWORD: remember_given("module")}
    write_whole(path, partial(write_png, image=image, texts=kept, large_cells=True))
