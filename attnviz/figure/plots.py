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
from attnviz.figure.plot_parts import Bars, Cells, Curve, Mark, Numbers, Plot, Role, apart, extent_of
from attnviz.figure.plot_places import SAMPLE, Drawn, Legend, Points, first_free, legend_of

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
_DOT, _THICK, _THIN = 3.0, 2.0, 1.3  # pixels: a point's radius, and how wide curves and marks are
_PLATE: Final = 2.0  # pixels of ground beside a mark's words


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
    legend = [one.label for one in plot.bars] + [one.label for one in plot.curves]
    legend += [one.brief or one.label for one in plot.marks]
    words = [text_width(font, label) + SAMPLE * unit for label in legend]
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
        self.x_axis = Axis(extent_of(plot, 0), log=plot.x_log)
        self.y_axis = Axis(extent_of(plot, 1), log=plot.y_log)
        self.area = QRectF()

    def paint(self) -> None:
        entries = [
            *(_Entry(b.label, self._colour(b.role), bar=b) for b in self.plot.bars if b.label),
            *(_Entry(c.label, self._colour(c.role), c.dashed, role=c.role) for c in self.plot.curves if c.label),
        ]
        legend = self._lay_out(entries)
        placed, left_over = self._place_marks()
        if left_over:  # what has no room at its line stands in the legend, which may take room from the plot
            entries += [_Entry(m.brief or m.label, self._colour(m.role), dashed=True, thin=True) for m in left_over]
            legend = self._lay_out(entries)
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
            for box in self._bar_boxes(bars):
                self._paint_bar(box, bars)
        for mark in self.plot.marks:
            self._paint_mark(mark)
        for curve in self.plot.curves:
            self._paint_curve(curve)
        self.painter.restore()
        for mark, box in placed:
            self._paint_words(mark, box)
        self._paint_legend(entries, legend)

    def _colour(self, role: Role) -> QColor:
        return role_colour(role, self.style)

    def _width(self, text: str) -> float:
        return text_width(self.painter.font(), text)

    # --------------------------------------------------------------------------------------------------------- layout

    def _lay_out(self, entries: list[_Entry]) -> Legend:
        """The plot's area, and where the legend's entries lie."""
        unit, rect = self.unit, self.rect
        name = self._width(self.plot.y_label) if self.plot.y_label else 0.0
        legend = legend_of([self._width(entry.label) for entry in entries], name, rect.width(), unit)
        own = bool(self.plot.y_label) and not legend.beside
        top = rect.top() + (own + len(legend.lines)) * self.line + 6 * unit
        bottom = rect.bottom() - self.line - self.strip - (self.line if self.plot.x_label else 0)
        n_ticks = max(2, int((bottom - top) / (30 * unit)))
        labels = [words for _, words in tick_places(self.y_axis, n_ticks)]
        gutter = max([self._width(words) for words in labels] + [24 * unit]) + 8 * unit
        self.area = QRectF(rect.left() + gutter, top, rect.width() - gutter - 10 * unit, bottom - top)
        return legend

    def _place_marks(self) -> tuple[list[tuple[Mark, QRectF]], list[Mark]]:
        """A box for each mark's words that lies in the plot and over nothing; and those for which there is none."""
        placed: list[tuple[Mark, QRectF]] = []
        left_over: list[Mark] = []
        shown = [mark for mark in self.plot.marks if mark.label and self._is_in_sight(mark)]
        lines, bars = self._data() if shown else ([], ())
        for mark in shown:
            others = [(self._line_of(one), _THIN * self.unit) for one in self.plot.marks if one is not mark]
            taken = [other for _, other in placed]
            box = first_free(self._boxes_for(mark), self.area, Drawn((*lines, *others), bars), taken)
            if box is None:
                left_over.append(mark)
            else:
                placed.append((mark, box))
        return placed, left_over

    def _data(self) -> tuple[list[tuple[Points, float]], tuple[QRectF, ...]]:
        """The curves' points with how thick they are, and the bars: what words would hide."""
        lines = []
        for curve in (*self.plot.curves, *self.plot.to_come):
            thick = 2 * _DOT if curve.dots or self.style.grey else _THICK
            lines.append((self._points(curve), (thick + 2 * _PLATE) * self.unit))
        return lines, tuple(box for bars in self.plot.bars for box in self._bar_boxes(bars))

    def _line_of(self, mark: Mark) -> Points:
        """Both ends of a mark (2, 2)."""
        area = self.area
        if mark.upright:
            x = self._x(mark.at)
            return np.array([[x, area.top()], [x, area.bottom()]])
        y = self._y(mark.at)
        return np.array([[area.left(), y], [area.right(), y]])

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
        rights, off = (area.right() - 2 - width, area.left() + 2), 4 * self.unit
        return [QRectF(left, top, width, height) for left in rights for top in (y - height - off, y + off)]

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

    def _bar_boxes(self, bars: Bars) -> list[QRectF]:
        """Where the bars stand that are not 0."""
        foot = self._y(self.y_axis.low if self.y_axis.log else min(max(0.0, self.y_axis.low), self.y_axis.high))
        edges, heights = np.asarray(bars.edges, np.float64), np.asarray(bars.heights, np.float64)
        boxes = []
        for first, last, height in zip(edges[:-1].tolist(), edges[1:].tolist(), heights.tolist(), strict=True):
            if not height or math.isnan(height):
                continue
            left, right, y = self._x(first), self._x(last), self._y(height)
            gap = min(1.0 * self.unit, (right - left) * 0.15)
            boxes.append(QRectF(left + gap / 2, min(y, foot), right - left - gap, abs(foot - y)))
        return boxes

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
        pen = QPen(self._colour(mark.role), _THIN * self.unit)
        pen.setDashPattern([2, 3])
        self.painter.setPen(pen)
        start, end = self._line_of(mark).tolist()
        self.painter.drawLine(QPointF(*start), QPointF(*end))

    def _paint_words(self, mark: Mark, box: QRectF) -> None:
        if not self.style.clear:
            ground = QColor(self.style.card)
            ground.setAlphaF(0.85)
            self.painter.fillRect(box.adjusted(-_PLATE, 0, _PLATE, 0), ground)
        self.painter.setPen(self._colour(mark.role))
        draw_text(self.painter, box, _LEFT, mark.label)

    def _paint_curve(self, curve: Curve) -> None:
        colour = self._colour(curve.role)
        pen = QPen(colour, _THICK * self.unit)
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
        radius = _DOT * self.unit
        corners = _SHAPES.get(role) if self.style.grey else None
        if corners is None:
            self.painter.drawEllipse(middle, radius, radius)
        else:
            places = [middle + QPointF(x * radius, y * radius) for x, y in corners]
            self.painter.drawPolygon(QPolygonF(places))

    def _points(self, curve: Curve) -> Points:
        """The curve's points on the paper (n, 2), NaN where it is broken; those far outside lie at some distance."""
        x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
        across, up = self.x_axis.places(x), self.y_axis.places(y)
        broken = ~(np.isfinite(across) & np.isfinite(up))
        across, up = np.clip(across, -9.0, 10.0), np.clip(up, -9.0, 10.0)
        across[broken] = np.nan
        left, bottom, wide, high = self.area.left(), self.area.bottom(), self.area.width(), self.area.height()
        return np.column_stack([left + across * wide, bottom - up * high])

    def _stretches(self, curve: Curve) -> list[list[QPointF]]:
        """The curve's points in unbroken stretches."""
        stretches: list[list[QPointF]] = []
        before = False
        for x, y in self._points(curve).tolist():
            here = not math.isnan(x)
            if here:
                if not before:
                    stretches.append([])
                stretches[-1].append(QPointF(x, y))
            before = here
        return stretches

    def _paint_legend(self, entries: list[_Entry], legend: Legend) -> None:
        painter, unit = self.painter, self.unit
        y = self.rect.top() + (self.line if self.plot.y_label and not legend.beside else 0)
        for line in legend.lines:
            for number, x in line:
                entry = entries[number]
                left, middle = self.rect.left() + x, y + self.line / 2
                if entry.bar:
                    box = QRectF(left + 4 * unit, middle - 5 * unit, 12 * unit, 10 * unit)
                    self._paint_bar(box, entry.bar)
                else:
                    pen = QPen(entry.colour, (_THIN if entry.thin else _THICK) * unit)
                    if entry.dashed:
                        pen.setDashPattern([2, 3] if entry.thin else [3, 2.2])
                    painter.setPen(pen)
                    painter.drawLine(QPointF(left, middle), QPointF(left + 20 * unit, middle))
                    if self.style.grey and (entry.role in _SHAPES or entry.role == "accent"):
                        self._paint_point(QPointF(left + 10 * unit, middle), entry.role)
                painter.setPen(self.style.ink)
                box = QRectF(left + SAMPLE * unit, y, self.rect.right() - left - SAMPLE * unit, self.line)
                draw_text(painter, box, _LEFT, entry.label)
            y += self.line


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
