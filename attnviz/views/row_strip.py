"""The selected query's whole row under the map: every key there is, with a zoom of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz import colour
from attnviz.figure import cells, marks, paint
from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width
from attnviz.figure.labels import label_step
from attnviz.figure.layout import Box
from attnviz.frames import CellClass, Outline, RowAnswer, Scale, Values, shown_class
from attnviz.session import Cell, Snapshot, Window
from attnviz.spec import QUERY_KEY_STAGES
from attnviz.views import navigation
from attnviz.views.map_mouse import Chart, Hand
from attnviz.views.row_pool import Pooled, RowPool
from attnviz.views.token_names import numbered, token_name

SHOWN_FROM = 33
"""A row of fewer keys stands whole in the map."""

_HEADER, _PLOT, _LANE, _AXIS = 21, 44, 8, 16
_GUTTER = 58  # beside the plot, for the ends of its scale
_BRACKET = 9.0  # pixels of the mark of the map's window at least
_GAPS_FROM = 5.0  # pixels a key from which bars stand apart
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


class RowStrip(QWidget):
    """Bars over the keys, the highest of each pixel's. Wheel and drag move its own window; double-click shows all.

    ``cell_selected`` and ``cell_hovered`` carry a `Cell` of the row, the latter None once the pointer has left.
    """

    cell_selected = Signal(object)
    cell_hovered = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._style = paint.LIGHT
        self._snapshot: Snapshot | None = None
        self._outline: Outline | None = None
        self._about: object = None
        self._answer: RowAnswer | None = None
        self._pool: RowPool | None = None
        self._window: Window | None = None
        self._hovered: int | None = None
        self._plot: tuple[object, QImage, Pooled] | None = None
        self._shown: object = None
        self.setFixedHeight(_HEADER + _PLOT + _LANE + _AXIS + 2)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("the selected row"))
        self.setToolTip(
            self.tr(
                "The selected query's whole row, every key of it. Solid line: the selected key; dashed line: the key "
                "under the pointer; bracket: what the map shows. Wheel zooms, drag pans, double-click shows all."
            )
        )
        self._hand = Hand(self, self._chart_at)
        self._hand.moved.connect(self._on_moved)
        self._hand.hovered.connect(self._on_hovered)
        self._hand.clicked.connect(self._on_clicked)
        self._hand.doubled.connect(self._on_doubled)
        self.hide()

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        """Show the row that has come. One that is awaited leaves the row before in sight."""
        self._snapshot = snapshot
        picture = snapshot.shown
        outline = picture.outline if picture is not None else None
        if picture is None or outline is None:
            return
        long = outline.stage in QUERY_KEY_STAGES and outline.n_keys >= SHOWN_FROM
        self.setVisible(long)
        about = picture.spec.source, outline.stage, outline.n_keys
        if not long or about != self._about:
            self._about, self._answer, self._pool, self._window, self._plot = about, None, None, None, None
        self._outline = outline
        answer, selected = snapshot.row, snapshot.selected
        if selected is None:
            self._answer = self._pool = self._plot = None
        elif long and answer is not None and answer.row == selected.row and len(answer.values) == outline.n_keys:
            if self._answer is None or answer.values is not self._answer.values:
                self._pool, self._plot = RowPool(answer, outline.stage), None
            self._answer = answer
        shown = self._pool, self._style, self._window, snapshot.window, selected, snapshot.hovered, self._answer
        if shown != self._shown:
            self._shown = shown
            self.update()

    def use_style(self, style: paint.Style) -> None:
        """Light or dark."""
        self._style, self._plot = style, None
        self.update()

    # --------------------------------------------------------------------------------------------------------- mouse

    def rect_of_keys(self) -> Box:
        """Where the keys lie: the plot."""
        return Box(float(_GUTTER), float(_HEADER), max(self.width() - _GUTTER - 8.0, 1.0), float(_PLOT))

    def seen(self) -> Window:
        """The keys in sight, as columns of a map of one row."""
        shape = self._shape()
        return navigation.whole(shape) if self._window is None else navigation.clamped(self._window, shape)

    def _shape(self) -> navigation.Shape:
        return 1, len(self._pool) if self._pool is not None else 1

    def _chart_at(self, point: QPointF) -> Chart | None:
        rect = self.rect_of_keys()
        if self._pool is None or point.y() < rect.y or not rect.x <= point.x() < rect.right:
            return None
        return Chart(rect, self.seen(), self._shape())

    def _key_at(self, point: QPointF | None) -> int | None:
        chart = self._chart_at(point) if point is not None else None
        if chart is None or point is None:
            return None
        col = math.floor(navigation.cell_at(chart.window, chart.rect, point.x(), point.y())[1])
        return min(max(col, 0), chart.shape[1] - 1)

    @Slot(object)
    def _on_moved(self, window: Window) -> None:
        self._window = None if navigation.is_whole(window, self._shape()) else window
        self.update()

    @Slot(object)
    def _on_hovered(self, point: QPointF | None) -> None:
        key = self._key_at(point)
        if key != self._hovered:
            self._hovered = key
            self.update()
            row = self._answer.row if self._answer is not None else 0
            self.cell_hovered.emit(None if key is None else Cell(row, key))

    @Slot(QPointF)
    def _on_clicked(self, point: QPointF) -> None:
        key = self._key_at(point)
        if key is not None and self._answer is not None:
            self.cell_selected.emit(Cell(self._answer.row, key))

    @Slot(QPointF)
    def _on_doubled(self, _point: QPointF) -> None:
        self._window = None
        self.update()

    # --------------------------------------------------------------------------------------------------------- words

    def words(self) -> str:
        """Whose row it is, or what to do for one."""
        if self._snapshot is None or self._outline is None or self._snapshot.selected is None:
            return self.tr("click a row of the map: it stands here whole")
        if self._answer is None:
            return self.tr("this row is on its way …")
        row, outline = self._answer.row, self._outline
        place = row + outline.n_keys - outline.n_queries
        said = [self.tr("query {token}").format(token=self._named(outline.tokens, row, place))]
        if len(outline.panels) > 1:
            said.append(self.tr("head {n}").format(n=self._answer.head))
        return " · ".join(said)

    def readout(self) -> str:
        """The key under the pointer and its number, in words."""
        if self._hovered is None or self._answer is None or self._outline is None:
            return ""
        key = self._hovered
        names = self.tr("key {token}").format(token=numbered(self._outline.tokens, key))
        kind = CellClass(int(self._answer.classes[key]))
        return f"{names} · {marks.exact_value(float(self._answer.values[key]), kind)}"

    @staticmethod
    def _named(tokens: Sequence[str], row: int, place: int) -> str:
        """A query's number and its name; the two differ where there are fewer queries than keys."""
        return numbered(tokens, row) if row == place else f"{row:,} “{token_name(tokens, place)}”"

    def _legend(self) -> list[tuple[str, str]]:
        """The marks over the bars, by name, and what each is; none where a key is told, or no row is there."""
        if self._pool is None or self._snapshot is None or self.readout():
            return []
        marked = [("selected", self.tr("selected key")), ("pointer", self.tr("pointer"))]
        return [*marked, ("bracket", self.tr("in the map"))] if self._snapshot.window is not None else marked

    # ----------------------------------------------------------------------------------------------------- painting

    def paintEvent(self, _event: QPaintEvent) -> None:
        load_fonts()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        style, rect = self._style, self.rect_of_keys()
        painter.setFont(sized(13))
        painter.setPen(style.muted)
        readout = self.readout()
        room = text_width(painter.font(), readout) + 16 if readout else 0.0
        header = QRectF(rect.x, 0, rect.width, _HEADER)
        draw_text(painter, header.adjusted(0, 0, -min(room, rect.width / 2), 0), _LEFT, self.words())
        painter.setPen(style.ink)
        draw_text(painter, header.adjusted(rect.width / 2 if room > rect.width / 2 else 0, 0, 0, 0), _RIGHT, readout)
        self._paint_legend(painter, rect, text_width(painter.font(), self.words()))
        if self._pool is None:
            painter.setPen(style.hairline)
            painter.drawRect(QRectF(*rect).adjusted(0.5, 0.5, -0.5, -0.5))
        else:
            self._paint_row(painter, rect, self._pool)
        painter.end()

    def _paint_row(self, painter: QPainter, rect: Box, pool: RowPool) -> None:
        style, window = self._style, self.seen()
        image, pooled = self._bars(rect, pool, window)
        painter.drawImage(QPointF(rect.x, rect.y), image)
        self._paint_hatching(painter, rect, pooled)
        painter.setPen(style.muted)
        painter.setFont(sized(11))
        ends = colour.quantity_ticks(pool.scale)
        middle = [tick for tick in ends[1:-1] if 0.32 <= tick[0] <= 0.68]
        middle = sorted(middle, key=lambda tick: abs(tick[0] - 0.5))[:1]
        for place, words in (ends[0], *middle, ends[-1]):
            y = rect.bottom - place * rect.height
            draw_text(painter, QRectF(0, min(max(y - 6, rect.y), rect.bottom - 12), _GUTTER - 6, 12), _RIGHT, words)
        if pool.scale.curve == "log":
            draw_text(painter, QRectF(0, 4, _GUTTER - 6, 12), _RIGHT, self.tr("log scale"))
        self._paint_axis(painter, rect, window)
        self._paint_marks(painter, rect, window)

    def _paint_legend(self, painter: QPainter, rect: Box, taken: float) -> None:
        """What the lines and the bracket are, at the right end of the header if it has room beside the words."""
        entries = self._legend()
        font = sized(11)
        widths = [text_width(font, words) + 16 for _, words in entries]
        x, style = rect.right - sum(widths) - 12 * (len(entries) - 1), self._style
        if not entries or x < rect.x + taken + 24:
            return
        painter.setFont(font)
        middle = _HEADER / 2 + 0.5
        for (mark, words), width in zip(entries, widths, strict=True):
            if mark == "bracket":
                painter.setPen(QPen(style.accent, 2))
                painter.drawPolyline([QPointF(x, middle - 3), QPointF(x, middle + 2), QPointF(x + 9, middle + 2),
                                      QPointF(x + 9, middle - 3)])  # fmt: skip
            else:
                painter.setPen(self._line_pen(mark))
                painter.drawLine(QPointF(x + 5, middle - 6), QPointF(x + 5, middle + 6))
            painter.setPen(style.muted)
            draw_text(painter, QRectF(x + 13, 0, width, _HEADER), _LEFT, words)
            x += width + 12

    def _line_pen(self, mark: str) -> QPen:
        """A solid line at the selected key, a dashed one at the pointer's; red is for leaks alone."""
        if mark == "selected":
            return QPen(QColor(self._style.ink), 1)
        pen = QPen(QColor(self._style.muted), 1)
        pen.setDashPattern([3.0, 2.0])
        return pen

    def _bars(self, rect: Box, pool: RowPool, window: Window) -> tuple[QImage, Pooled]:
        """The plot as an image in pixels of the device, kept until it would be another."""
        ratio = self.devicePixelRatioF()
        width, height = max(1, round(rect.width * ratio)), max(1, round(rect.height * ratio))
        key = pool, window, width, height, self._style
        if self._plot is not None and self._plot[0] == key:
            return self._plot[1], self._plot[2]
        pooled = pool.pooled(window.left, window.right, width)
        pixels = np.full((height, width), self._style.card.rgb(), np.uint32)
        shown = shown_class(pooled.classes)
        ordinary = shown == CellClass.ORDINARY
        bars = _bar_cells(pooled, pool.scale, height) & ordinary
        if width >= _GAPS_FROM * ratio * (window.right - window.left):
            bars[:, np.flatnonzero(np.diff(pooled.edges))] = False
        pixels[bars] = self._style.accent.rgb()
        grounds = {**colour.GROUNDS, CellClass.MASKED: self._style.masked.rgb()}
        grounds[CellClass.PADDED] = self._style.padded.rgb()
        for kind, ground in grounds.items():
            pixels[:, shown == kind] = np.uint32(ground)
        also = ordinary & ((pooled.classes & CellClass.DROPPED) != 0)
        pixels[-max(2, round(3 * ratio)) :, also] = np.uint32(colour.GROUNDS[CellClass.DROPPED])
        image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32).copy()
        image.setDevicePixelRatio(ratio)
        self._plot = key, image, pooled
        return image, pooled

    def _paint_hatching(self, painter: QPainter, rect: Box, pooled: Pooled) -> None:
        masked = shown_class(pooled.classes) == CellClass.MASKED
        ends = np.flatnonzero(np.diff(np.pad(masked.astype(np.int8), 1))).reshape(-1, 2)
        if not len(ends) or len(ends) > 200:  # a comb of masked and seen keys is grey enough
            return
        area, scale = QPainterPath(), rect.width / len(masked)
        for first, last in ends.tolist():
            area.addRect(QRectF(rect.x + first * scale, rect.y, (last - first) * scale, rect.height))
        painter.save()
        painter.setClipPath(area)
        cells.hatch(painter, QRectF(*rect), QPointF(rect.x, rect.y), cells.HATCHED_FROM, self._style)
        painter.restore()

    def _paint_axis(self, painter: QPainter, rect: Box, window: Window) -> None:
        """Numbers of the keys, or their names where there is room for each."""
        assert self._outline is not None  # noqa: S101 (there is a row)
        cell = rect.width / (window.right - window.left)
        named = cell >= 44
        font, widest = painter.font(), 0.0
        if not named:
            widest = text_width(font, f"{math.ceil(window.right):,}") + 14
        step = label_step(cell, max(widest, 1.0)) if not named else 1
        y = rect.bottom + _LANE
        painter.setPen(QPen(self._style.hairline, 1))
        painter.drawLine(QPointF(rect.x, rect.bottom + 0.5), QPointF(rect.right, rect.bottom + 0.5))
        painter.setPen(self._style.muted)
        for key in range(math.ceil((window.left - 0.5) / step) * step, math.ceil(window.right), step):
            x = rect.x + (key + 0.5 - window.left) * cell
            if rect.x <= x < rect.right and key >= 0:
                words = elided(font, token_name(self._outline.tokens, key), cell - 6) if named else f"{key:,}"
                width = text_width(font, words)
                left = min(max(x - width / 2, rect.x - 8), rect.right + 8 - width)
                draw_text(painter, QRectF(left, y, width + 1, _AXIS), _LEFT, words)

    def _paint_marks(self, painter: QPainter, rect: Box, window: Window) -> None:
        """The map's window as a bracket under the plot; a line at the selected key and at the pointer's."""
        snapshot, style = self._snapshot, self._style
        if snapshot is None:
            return
        cell = rect.width / (window.right - window.left)

        def x_of(col: float) -> float:
            return min(max(rect.x + (col - window.left) * cell, rect.x), rect.right)

        if snapshot.window is not None:
            left, right = x_of(snapshot.window.left), x_of(snapshot.window.right)
            middle, half = (left + right) / 2, max((right - left) / 2, _BRACKET / 2)
            left, right, y = middle - half, middle + half, rect.bottom + _LANE / 2 + 1
            painter.setPen(QPen(style.accent, 2))
            painter.drawPolyline([QPointF(left, y - 4), QPointF(left, y), QPointF(right, y), QPointF(right, y - 4)])
        for cell_at, mark in (snapshot.selected, "selected"), (snapshot.hovered, "pointer"):
            if cell_at is not None and window.left <= cell_at.col + 0.5 <= window.right:
                x = x_of(cell_at.col + 0.5)
                painter.setPen(self._line_pen(mark))
                painter.drawLine(QPointF(x, rect.y), QPointF(x, rect.bottom + 3))


def _bar_cells(pooled: Pooled, scale: Scale, height: int) -> npt.NDArray[np.bool_]:
    """The pixels (height, columns) that bars cover: from zero, or a logarithmic scale's foot, one pixel at least."""

    def heights(values: Values) -> npt.NDArray[np.int64]:
        placed = colour.positions(np.asarray(values, np.float64), scale)
        rounded: npt.NDArray[np.int64] = np.rint(placed * height).astype(np.int64)
        return rounded

    foot = heights(np.zeros(1))
    bottom = np.minimum(np.minimum(heights(pooled.low), foot), height - 1) if scale.curve != "log" else foot
    top = np.maximum(np.maximum(heights(pooled.high), foot), bottom + 1)
    levels = np.arange(height, 0, -1)[:, None]
    return (levels <= top) & (levels > bottom)
