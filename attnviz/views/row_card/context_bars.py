"""The context vector as bars, with the lesson's names, now and before."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.views import theme
from attnviz.views.row_card import metrics
from attnviz.views.row_card.fitting import ROOMY
from attnviz.views.row_card.lines import ContextLine

_NAME = 15
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


class ContextBars(QWidget):
    """One line a dimension. ``dim_chosen(dim)`` is emitted for a click on one."""

    dim_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale = 1.0
        self.line = ROOMY.context
        self._lines: tuple[ContextLine, ...] = ()
        self._chosen: int | None = None
        self._show_numbers = True
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("the row's context vector"))
        self.setToolTip(self.tr("what the row mixes of the values; click for the sum"))

    def show_lines(self, lines: tuple[ContextLine, ...], chosen: int | None, *, show_numbers: bool) -> None:
        """Show a vector; ``chosen`` is the dimension whose sum is written out."""
        self._lines, self._chosen, self._show_numbers = lines, chosen, show_numbers
        self._fit()
        self.update()

    def set_line(self, height: int) -> None:
        """Make each line so many pixels high."""
        self.line = height
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(len(self._lines) * self.line)

    def sizeHint(self) -> QSize:
        return QSize(300, self.height())

    def line_rect(self, dim: int) -> QRectF:
        """Where a dimension's line stands."""
        return QRectF(0, dim * self.line, self.width(), self.line)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        dim = int(event.position().y() // self.line)
        if 0 <= dim < len(self._lines) and event.button() == Qt.MouseButton.LeftButton:
            self.dim_chosen.emit(dim)

    # ----------------------------------------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        load_fonts()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        numbers = [n for line in self._lines for n in (line.value, line.before) if n is not None and math.isfinite(n)]
        reach = max((abs(n) for n in numbers), default=0.0) or 1.0
        signed = any(n < 0 for n in numbers)
        names = max((text_width(sized(_NAME * self.scale), line.name) for line in self._lines[:64]), default=0.0)
        names = min(names + 16 * self.scale, 0.34 * self.width())
        for dim in range(len(self._lines)):
            rect = self.line_rect(dim)
            if rect.bottom() >= event.rect().top() and rect.top() <= event.rect().bottom():
                self._paint_line(painter, dim, rect, names, reach, signed=signed)
        painter.end()

    def _paint_line(
        self, painter: QPainter, dim: int, rect: QRectF, names: float, reach: float, *, signed: bool
    ) -> None:
        c, scale, line = theme.current(), self.scale, self._lines[dim]
        if dim == self._chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(c.accent_soft))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 6, 6)
        painter.setPen(QColor(c.ink))
        painter.setFont(sized(_NAME * scale))
        draw_text(painter, rect.adjusted(5 * scale, 0, names - 8 * scale - rect.width(), 0), _LEFT, line.name)
        painter.setFont(sized(metrics.NUMBER * scale))
        column = text_width(painter.font(), "−88.88") + 14 * scale
        now = QRectF(rect.right() - 2 * column, rect.top(), column - 4 * scale, rect.height())
        before = now.translated(column, 0)
        draw_text(painter, now, _RIGHT, line.text if self._show_numbers else "·")
        painter.setPen(QColor(c.muted))
        draw_text(painter, before, _RIGHT, line.before_text if self._show_numbers or not line.before_text else "·")
        if self._show_numbers:
            height = min(17 * scale, rect.height() * 0.55)
            room = QRectF(names, rect.center().y() - height / 2, now.left() - names - 6 * scale, height)
            self._paint_bar(painter, room, line, reach, signed=signed)

    def _paint_bar(self, painter: QPainter, room: QRectF, line: ContextLine, reach: float, *, signed: bool) -> None:
        """A bar from 0, which stands in the middle where a number of the vector is negative."""
        c = theme.current()
        zero = room.center().x() if signed else room.left()
        unit = (room.width() / 2 if signed else room.width()) / reach

        def bar(value: float) -> QRectF:
            ends = sorted((zero, zero + value * unit))
            return QRectF(ends[0], room.top(), max(ends[1] - ends[0], 1.5), room.height())

        if math.isfinite(line.value) and line.value != 0:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(c.accent))
            painter.drawRoundedRect(bar(line.value), 2.5, 2.5)
        if line.before is not None and math.isfinite(line.before) and line.before != 0:
            pen = QPen(QColor(c.muted), 1.3)
            pen.setDashPattern([3.0, 2.5])
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(bar(line.before).adjusted(0.5, 0.5, -0.5, -0.5), 2.5, 2.5)
        if signed:
            painter.setPen(QPen(QColor(c.hairline), 1))
            painter.drawLine(room.topLeft() + (room.topRight() - room.topLeft()) / 2, room.bottomLeft()
                             + (room.bottomRight() - room.bottomLeft()) / 2)  # fmt: skip
