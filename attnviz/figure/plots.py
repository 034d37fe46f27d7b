"""Plots of numbers: curves, bars and lines to compare them with, painted with QPainter on any device."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from attnviz.figure.axes import Axis, number_words, tick_places
from attnviz.figure.cells import Style, paint_ground
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.plot_parts import Bars, Cells, Curve, Mark, Numbers, Plot, Role, apart

_COLOURS: Final[dict[str, tuple[str, str]]] = {
    "teal": ("#0b7f78", "#3cc7bc"),
    "amber": ("#a35c00", "#e6a23c"),
    "violet": ("#8438bf", "#c490ff"),
    "green": ("#3a7d2c", "#7ccb5e"),
}
_SHAPES: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "leak": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "teal": ((0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    "amber": ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)),
    "violet": ((0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
    "green": (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4), (0.4, 1.2), (-0.4, 1.2),
        (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
}  # fmt: skip
"""Where colours do not tell them apart, points of a curve have a shape by its role, in radii; the others are round."""

_SHAPED: Final = 7  # points of a long curve that get a shape
_LEFT, _RIGHT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignHCenter
_JOINED: Final = 256  # points of a curve
_STRIP: Final = 16.0  # pixels of the strip below the axis
_SAMPLE: Final = 26.0  # pixels before an entry's words


def role_colour(role: Role, style: Style) -> QColor:
    """The colour of a role in ``style``; at least 3 : 1 on its card."""
    if role in _COLOURS:
        return QColor(_COLOURS[role][style.card.lightness() < 128])
    colour: QColor = getattr(style, role)
    return colour


def paint_plot(painter: QPainter, rect: QRectF, plot: Plot, style: Style, unit: float = 1.0) -> None:
    """Paint ``plot`` into ``rect``; type is 12 pixels × ``unit`` high. Nothing is drawn outside of ``rect``."""
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(sized(12 * unit))
    _Painting(painter, rect, plot, style, unit).paint()
    painter.restore()


def least_width(plot: Plot, unit: float = 1.0) -> float:
    """Pixels in which no word of the plot has to be cut."""
    font = sized(12 * unit)
    legend = [one.label for one in plot.bars] + [one.label for one in plot.curves] + [one.label for one in plot.marks]
    words = [text_width(font, label) + _SAMPLE * unit for label in legend]
    return max([text_width(font, plot.y_label), text_width(font, plot.x_label) + 60 * unit, 170 * unit, *words])


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the legend: a sample and words."""

    label: str
    colour: QColor
    dashed: bool = False
    bar: Bars | None = None
    thin: bool = False
    role: Role = "muted"


class _Painting:
    """One plot on its way to the paper: the places of everything, then the strokes."""

    def __init__(self, painter: QPainter, rect: QRectF, plot: Plot, style: Style, unit: float) -> None:
        self.painter, self.rect, self.plot, self.style, self.unit = painter, rect, plot, style, unit
        self.line, self.strip = 17 * unit, _STRIP * unit if plot.cells else 0.0
        self.x_axis = Axis(_extent(plot, 0), log=plot.x_log)
        self.y_axis = Axis(_extent(plot, 1), log=plot.y_log)
        self.area = QRectF()

    def paint(self) -> None:
        entries = [
            *(_Entry(b.label, self._colour(b.role), bar=b) for b in self.plot.bars if b.label),
            *(_Entry(c.label, self._colour(c.role), c.dashed, role=c.role) for c in self.plot.curves if c.label),
        ]
        rows = self._lay_out(entries)
        placed, left_over = self._place_marks()
        if left_over:  # what has no room at its line stands in the legend, which may take room from the plot
            entries += [_Entry(m.label, self._colour(m.role), dashed=True, thin=True) for m in left_over]
            rows = self._lay_out(entries)
            placed = [(mark, box) for mark, box in self._place_marks()[0] if mark not in left_over]
        if self.area.width() < 20 * self.unit or self.area.height() < 20 * self.unit:
            return
        self._paint_axes()
        for cells in self.plot.cells:
            left, right = self._x(cells.first), self._x(cells.last)
            strip = QRectF(left, self.area.bottom() + self.unit, right - left, self.strip - self.unit)
            paint_ground(self.painter, strip, cells.kind, self.style, self.unit)
        edge = 4 * self.unit  # a dot on an edge is whole, of whatever shape
        self.painter.save()
        self.painter.setClipRect(self.area.adjusted(-edge, -edge, edge, edge), Qt.ClipOperation.IntersectClip)
        for bars in self.plot.bars:
            self._paint_bars(bars)
        for mark in self.plot.marks:
            self._paint_mark(mark)
        for curve in self.plot.curves:
            self._paint_curve(curve)
        self.painter.restore()
        for mark, box in placed:
            self._paint_words(mark, box)
        self._paint_legend(rows)

    def _colour(self, role: Role) -> QColor:
        return role_colour(role, self.style)

    def _width(self, text: str) -> float:
        return text_width(self.painter.font(), text)

    # --------------------------------------------------------------------------------------------------------- layout

    def _lay_out(self, entries: list[_Entry]) -> list[list[tuple[_Entry, float]]]:
        """The plot's area, and the legend's lines of entries with their left edges."""
        unit, rect = self.unit, self.rect
        rows = self._legend_rows(entries)
        top = rect.top() + (self.line if self.plot.y_label else 0) + len(rows) * self.line + 6 * unit
        bottom = rect.bottom() - self.line - self.strip - (self.line if self.plot.x_label else 0)
        n_ticks = max(2, int((bottom - top) / (30 * unit)))
        labels = [words for _, words in tick_places(self.y_axis, n_ticks)]
        gutter = max([self._width(words) for words in labels] + [24 * unit]) + 8 * unit
        self.area = QRectF(rect.left() + gutter, top, rect.width() - gutter - 10 * unit, bottom - top)
        return rows

    def _legend_rows(self, entries: list[_Entry]) -> list[list[tuple[_Entry, float]]]:
        rows: list[list[tuple[_Entry, float]]] = []
        x, sample, gap = math.inf, _SAMPLE * self.unit, 16 * self.unit
        for entry in entries:
            width = sample + self._width(entry.label)
            if x + width > self.rect.width():
                rows.append([])
                x = 0.0
            rows[-1].append((entry, x))
            x += width + gap
        return rows

    def _place_marks(self) -> tuple[list[tuple[Mark, QRectF]], list[Mark]]:
        """A box for each mark's words that lies in the plot and over no other's; and those for which there is none."""
        placed: list[tuple[Mark, QRectF]] = []
        left_over: list[Mark] = []
        for mark in self.plot.marks:
            if not mark.label or not self._is_in_sight(mark):
                continue
            boxes = (box for box in self._boxes_for(mark) if self.area.contains(box))
            box = next((box for box in boxes if not any(box.intersects(other) for _, other in placed)), None)
            if box is None:
                left_over.append(mark)
            else:
                placed.append((mark, box))
        return placed, left_over

    def _boxes_for(self, mark: Mark) -> list[QRectF]:
        area, gap, height = self.area, 5 * self.unit, self.line - 2
        width = self._width(mark.label) + 1
        if mark.upright:
            x = self._x(mark.at)
            return [
                QRectF(left, area.top() + n * self.line + 1, width, height)
                for n in range(3)
                for left in (x + gap, x - gap - width)
            ]
        y = self._y(mark.at)
        rights = (area.right() - 2 - width, area.left() + 2)
        return [QRectF(left, top, width, height) for left in rights for top in (y - height - 1, y + 2)]

    def _is_in_sight(self, mark: Mark) -> bool:
        axis = self.x_axis if mark.upright else self.y_axis
        return -1e-6 <= axis.place(mark.at) <= 1 + 1e-6

    def _x(self, value: float) -> float:
        return self.area.left() + self.x_axis.place(value) * self.area.width()

    def _y(self, value: float) -> float:
        return self.area.bottom() - self.y_axis.place(value) * self.area.height()

    # -------------------------------------------------------------------------------------------------------- strokes

    def _paint_axes(self) -> None:
        painter, area, style, unit = self.painter, self.area, self.style, self.unit
        grid, half = QPen(style.hairline, max(1.0, unit * 0.8)), self.line / 2
        n_ticks = max(2, int(area.height() / (30 * unit)))
        for value, words in tick_places(self.y_axis, n_ticks):
            y = self._y(value)
            painter.setPen(grid)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(style.muted)
            box = QRectF(self.rect.left(), y - half, area.left() - self.rect.left() - 6 * unit, self.line)
            draw_text(painter, box, _RIGHT, words)
        painter.setPen(QPen(style.muted, max(1.0, unit)))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        foot = area.bottom() + self.strip
        below = foot + 4 * unit
        for value, words in self._x_ticks():
            x, width = self._x(value), self._width(words) + 1
            painter.drawLine(QPointF(x, foot), QPointF(x, below))
            left = min(max(x - width / 2, self.rect.left()), self.rect.right() - width)
            draw_text(painter, QRectF(left, below, width, self.line - 4 * unit), _LEFT, words)
        box = QRectF(self.rect.left(), self.rect.bottom() - self.line, self.area.right() - self.rect.left(), self.line)
        draw_text(painter, box, _RIGHT, self.plot.x_label)
        draw_text(
            painter, QRectF(self.rect.left(), self.rect.top(), self.rect.width(), self.line), _LEFT, self._y_words
        )

    @property
    def _y_words(self) -> str:
        return self.plot.y_label

    def _x_ticks(self) -> list[tuple[float, str]]:
        """Ticks whose words stand apart; named places thin out from the first on."""
        gap, names = 12 * self.unit, self.plot.x_names
        if names:
            pitch = min((abs(self._x(b) - self._x(a)) for (a, _), (b, _) in itertools.pairwise(names)), default=1e9)
            widest = max(self._width(words) for _, words in names) + gap
            return [*names[:: max(1, math.ceil(widest / max(pitch, 1e-6)))]]
        for count in range(max(2, int(self.area.width() / (40 * self.unit))), 1, -1):
            ticks = tick_places(self.x_axis, count)
            edges = [(self._x(value), self._width(words) / 2) for value, words in ticks]
            if all(b - a >= left + right + gap for (a, left), (b, right) in itertools.pairwise(edges)):
                return ticks
        return [*tick_places(self.x_axis, 2)[:1]]

    def _paint_bars(self, bars: Bars) -> None:
        foot = self._y(self.y_axis.low if self.y_axis.log else min(max(0.0, self.y_axis.low), self.y_axis.high))
        edges, heights = np.asarray(bars.edges, np.float64), np.asarray(bars.heights, np.float64)
        for first, last, height in zip(edges[:-1].tolist(), edges[1:].tolist(), heights.tolist(), strict=True):
            if not height or math.isnan(height):
                continue
            left, right, y = self._x(first), self._x(last), self._y(height)
            gap = min(1.0 * self.unit, (right - left) * 0.15)
            self._paint_bar(QRectF(left + gap / 2, min(y, foot), right - left - gap, abs(foot - y)), bars)

    def _paint_bar(self, box: QRectF, bars: Bars) -> None:
        colour = QColor(self._colour(bars.role))
        if not bars.outline:
            colour.setAlphaF(0.7)
            self.painter.fillRect(box, colour)
            return
        pen = QPen(colour, 1.4 * self.unit)
        pen.setDashPattern([3, 2.2])
        self.painter.setPen(pen)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.drawRect(box)

    def _paint_mark(self, mark: Mark) -> None:
        if not self._is_in_sight(mark):
            return
        pen = QPen(self._colour(mark.role), 1.3 * self.unit)
        pen.setDashPattern([2, 3])
        self.painter.setPen(pen)
        if mark.upright:
            x = self._x(mark.at)
            self.painter.drawLine(QPointF(x, self.area.top()), QPointF(x, self.area.bottom()))
        else:
            y = self._y(mark.at)
            self.painter.drawLine(QPointF(self.area.left(), y), QPointF(self.area.right(), y))

    def _paint_words(self, mark: Mark, box: QRectF) -> None:
        if not self.style.clear:
            ground = QColor(self.style.card)
            ground.setAlphaF(0.85)
            self.painter.fillRect(box.adjusted(-2, 0, 2, 0), ground)
        self.painter.setPen(self._colour(mark.role))
        draw_text(self.painter, box, _LEFT, mark.label)

    def _paint_curve(self, curve: Curve) -> None:
        colour = self._colour(curve.role)
        pen = QPen(colour, 2.0 * self.unit)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        if curve.dashed:
            pen.setDashPattern([3, 2.2])
        for points in self._stretches(curve):
            self.painter.setPen(pen)
            self.painter.setBrush(Qt.BrushStyle.NoBrush)
            if len(points) <= _JOINED:
                self.painter.drawPolyline(QPolygonF(points))
            else:  # as one line with joins it would take tens of milliseconds
                self.painter.setPen(QPen(colour, (1.0 if curve.dashed else 1.6) * self.unit))
                self.painter.drawLines([QLineF(*pair) for pair in itertools.pairwise(points)])
            shaped = points
            if not curve.dots and len(points) > 1:
                shaped = self._shaped(points) if curve.role in _SHAPES or curve.role == "accent" else []
            for point in shaped:
                self._paint_point(point, curve.role)

    def _shaped(self, points: list[QPointF]) -> list[QPointF]:
        """The points of a long curve that tell it from others in grey."""
        if not self.style.grey or len(self.plot.curves) < 2:
            return []
        return points[len(points) // (2 * _SHAPED) :: max(1, len(points) // _SHAPED)]

    def _paint_point(self, middle: QPointF, role: Role) -> None:
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(self._colour(role))
        radius = 3 * self.unit
        corners = _SHAPES.get(role) if self.style.grey else None
        if corners is None:
            self.painter.drawEllipse(middle, radius, radius)
        else:
            places = [middle + QPointF(x * radius, y * radius) for x, y in corners]
            self.painter.drawPolygon(QPolygonF(places))

    def _stretches(self, curve: Curve) -> list[list[QPointF]]:
        """The curve's points on the paper in unbroken stretches; those far outside are drawn at some distance."""
        x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
        across, up = self.x_axis.places(x), self.y_axis.places(y)
        sound = np.isfinite(across) & np.isfinite(up)
        stretches: list[list[QPointF]] = []
        before = False
        for here, a, u in zip(sound.tolist(), across.tolist(), up.tolist(), strict=True):
            if here:
                if not before:
                    stretches.append([])
                a, u = min(max(a, -9.0), 10.0), min(max(u, -9.0), 10.0)  # noqa: PLW2901 (kept near the paper)
                point = QPointF(self.area.left() + a * self.area.width(), self.area.bottom() - u * self.area.height())
                stretches[-1].append(point)
            before = here
        return stretches

    def _paint_legend(self, rows: list[list[tuple[_Entry, float]]]) -> None:
        painter, unit = self.painter, self.unit
        y = self.rect.top() + (self.line if self.plot.y_label else 0)
        for row in rows:
            for entry, x in row:
                left, middle = self.rect.left() + x, y + self.line / 2
                if entry.bar:
                    box = QRectF(left + 4 * unit, middle - 5 * unit, 12 * unit, 10 * unit)
                    self._paint_bar(box, entry.bar)
                else:
                    pen = QPen(entry.colour, (1.3 if entry.thin else 2.0) * unit)
                    if entry.dashed:
                        pen.setDashPattern([2, 3] if entry.thin else [3, 2.2])
                    painter.setPen(pen)
                    painter.drawLine(QPointF(left, middle), QPointF(left + 20 * unit, middle))
                    if self.style.grey and (entry.role in _SHAPES or entry.role == "accent"):
                        self._paint_point(QPointF(left + 10 * unit, middle), entry.role)
                painter.setPen(self.style.ink)
                box = QRectF(left + _SAMPLE * unit, y, self.rect.right() - left - _SAMPLE * unit, self.line)
                draw_text(painter, box, _LEFT, entry.label)
            y += self.line


def _extent(plot: Plot, which: int) -> tuple[float, float]:
    """The range of an axis (0: x, 1: y): as given, else from the numbers, marks and, under bars, 0."""
    given, log = (plot.x_range, plot.x_log) if which == 0 else (plot.y_range, plot.y_log)
    if given is not None:
        return given
    parts: list[Numbers] = [curve.y if which else curve.x for curve in plot.curves]
    parts += [bars.heights if which else bars.edges for bars in plot.bars]
    parts += [[mark.at] for mark in plot.marks if mark.upright == (which == 0)]
    parts += [[0.0]] if which and plot.bars else []
    parts += [[place for place, _ in plot.x_names]] if which == 0 else []
    numbers = np.concatenate([np.asarray(part, np.float64).ravel() for part in parts] or [np.zeros(1)])
    numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
    if not numbers.size:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(numbers.min()), float(numbers.max())
    if log:
        return (low, high) if high > low else (low / 2, high * 2)
    if high <= low:
        return low - 0.5, high + 0.5
    room = 0.06 * (high - low) if which else 0.0
    return (low if low == 0 else low - room), (high if high == 0 else high + room)


__all__ = [
    "Bars",
    "Cells",
    "Curve",
    "Mark",
    "Numbers",
    "Plot",
    "Role",
    "apart",
    "least_width",
    "number_words",
    "paint_plot",
    "role_colour",
]
