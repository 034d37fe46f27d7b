"""The keys of a row as lines: token, bar and columns of numbers. A bar moves to its new length when the row changes."""

from __future__ import annotations

import html
import os

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QEasingCurve, QEvent, QLineF, QRectF, QSize, Qt, QVariantAnimation, Signal, Slot
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QToolTip, QWidget

from attnviz.colour import GROUNDS
from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width
from attnviz.frames import CellClass
from attnviz.views import theme
from attnviz.views.row_card import metrics
from attnviz.views.row_card.fitting import ROOMY
from attnviz.views.row_card.lines import SIGNS, KeyLine, RowLines

MOVING_MS = 300
_UNSEEN = "·"
_OF_LINE = 0.74  # of a low line's height are its token's letters
_NUMBERS_OF_WEIGHTS = frozenset({"exponential", "first", "share", "dropped", "before"})
_LEFT, _RIGHT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignHCenter


def motion_wanted(widget: QWidget) -> bool:
    """Whether things may move: the system's own setting, or ATTNVIZ_MOTION=0 or 1."""
    asked = os.environ.get("ATTNVIZ_MOTION")
    if asked in ("0", "1"):
        return asked == "1"
    return widget.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration, None, widget) > 0


class ColumnHeads(QWidget):
    """The words above the columns, in line with a `KeyBars` of another width at the same left edge."""

    def __init__(self, bars: KeyBars, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars = bars

    def paintEvent(self, _event: QPaintEvent) -> None:
        lines, columns = self._bars.lines, self._bars.columns()
        if lines is None or columns is None:
            return
        painter = QPainter(self)
        painter.setFont(sized(metrics.HEAD * self._bars.scale))
        painter.setPen(QColor(theme.current().muted))
        height = float(self.height())
        draw_text(painter, QRectF(0, 0, columns.bar_left, height), _LEFT, self.tr("key"))
        if lines.full != 1:
            share, room = f"{100 * lines.full:.6g} %", columns.bar_right - columns.bar_left
            words = self.tr("full bar: {share}").format(share=share)
            if text_width(painter.font(), words) <= room:
                draw_text(painter, QRectF(columns.bar_left, 0, room, height), _LEFT, words)
            else:  # at the end of the bars, as on a scale
                draw_text(painter, QRectF(columns.bar_left, 0, room, height), _RIGHT, share)
        for name, (left, right) in columns.spans.items():
            if name in lines.columns:
                draw_text(painter, QRectF(left, 0, right - left, height), _RIGHT, lines.title(name))
        painter.end()


class KeyBars(QWidget):
    """One line a key, each `line` pixels high. ``key_chosen(key)`` is emitted for a click on one."""

    key_chosen = Signal(int)
    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale = 1.0
        self.line = ROOMY.key
        self.lines: RowLines | None = None
        self._selected: int | None = None
        self._show_numbers = True
        self._shown: npt.NDArray[np.float64] = np.zeros(0)  # lengths as they stand, parts of a full bar
        self._start = self._goal = self._shown
        self._moving = QVariantAnimation(self)
        self._moving.setDuration(MOVING_MS)
        self._moving.setStartValue(0.0)
        self._moving.setEndValue(1.0)
        self._moving.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._moving.valueChanged.connect(self._on_moved)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("the row's weights, key by key"))

    # ------------------------------------------------------------------------------------------------------- present

    def show_lines(self, lines: RowLines, selected: int | None, *, show_numbers: bool) -> None:
        """Show a row; bars of the same row move to their new lengths, those of another stand there at once."""
        old = self.lines
        if lines is not old:
            goal = np.nan_to_num(lines.final / lines.full, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0)
            alike = old is not None and old.about == lines.about and old.swapped == lines.swapped
            moves = alike and show_numbers and self._show_numbers and self.isVisible() and motion_wanted(self)
            self._moving.stop()
            self._goal = goal
            self.lines = lines
            if moves and not np.array_equal(self._shown, goal):
                self._start = self._shown
                self._moving.start()
            else:
                self._shown = goal
            self._fit()
        elif (selected, show_numbers) == (self._selected, self._show_numbers):
            return
        self._selected, self._show_numbers = selected, show_numbers
        self.update()

    def set_scale(self, scale: float) -> None:
        self.scale = scale
        self.update()

    def set_line(self, height: int) -> None:
        """Make each line so many pixels high."""
        self.line = height
        self._fit()

    def lengths(self) -> npt.NDArray[np.float64]:
        """The bars as they stand now (n_keys,), 1 for a full one."""
        return self._shown

    def is_moving(self) -> bool:
        return self._moving.state() == QVariantAnimation.State.Running

    def columns(self) -> metrics.Columns | None:
        """Where the columns stand, None without a row."""
        return None if self.lines is None else metrics.columns_of(self.lines, float(self.width()), self.scale)

    def _fit(self) -> None:
        n = self.lines.n_keys if self.lines is not None else 1
        self.setFixedHeight(n * self.line)

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    @Slot(object)
    def _on_moved(self, part: float) -> None:
        self._shown = self._goal if part >= 1 else self._start + (self._goal - self._start) * part
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    # --------------------------------------------------------------------------------------------------------- mouse

    def line_rect(self, key: int) -> QRectF:
        """Where a key's line stands."""
        return QRectF(0, key * self.line, self.width(), self.line)

    def _key_at(self, y: float) -> int | None:
        if self.lines is None or not 0 <= y < self.height():
            return None
        return min(int(y / self.line), self.lines.n_keys - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position().y())
        if key is not None and event.button() == Qt.MouseButton.LeftButton:
            self.key_chosen.emit(key)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            key = self._key_at(event.pos().y())
            words = ""
            if key is not None and self.lines is not None and self._show_numbers:
                words = html.escape(self.lines.exact(key)).replace("\n", "<br>")
            QToolTip.showText(event.globalPos(), f"<span>{words}</span>" if words else "", self)
            return True
        return super().event(event)

    # ----------------------------------------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        lines, columns = self.lines, self.columns()
        if lines is None or columns is None:
            return
        load_fonts()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        first, last = self._key_at(event.rect().top()), self._key_at(min(event.rect().bottom(), self.height() - 1))
        for key in range(first or 0, (lines.n_keys - 1 if last is None else last) + 1):
            self._paint_line(painter, lines.line(key), lines, columns)
        painter.end()

    def _paint_line(self, painter: QPainter, line: KeyLine, lines: RowLines, columns: metrics.Columns) -> None:
        c, scale, rect = theme.current(), self.scale, self.line_rect(line.key)
        if line.key == self._selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(c.accent_soft))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 6, 6)
        self._paint_token(painter, line, rect, columns)
        if self._show_numbers:
            self._paint_bar(painter, line, rect, lines, columns)
        for name, (left, right) in columns.spans.items():
            if name not in line.texts:
                continue
            text, place = line.texts[name], QRectF(left, rect.top(), right - left - 4 * scale, rect.height())
            if not self._show_numbers and name in _NUMBERS_OF_WEIGHTS and text not in (*SIGNS, "–"):
                text = _UNSEEN
            elif name == "share" and line.nan:
                self._paint_nan(painter, place)
                continue
            muted = name in ("before", "raw") or text in (*SIGNS, "–", _UNSEEN) or name in line.struck
            colour = c.leak if name == "share" and line.peeking and text != _UNSEEN else c.muted if muted else c.ink
            painter.setPen(QColor(colour))
            painter.setFont(
                sized(min(metrics.SIGN * scale, 0.8 * self.line) if text in SIGNS else metrics.NUMBER * scale)
            )
            draw_text(painter, place, _RIGHT, text)
            if name in line.struck and text != _UNSEEN:
                width, y = text_width(painter.font(), text), rect.center().y()
                painter.setPen(QPen(QColor(c.ink), 1.4 * scale))
                painter.drawLine(QLineF(place.right() - width - 2, y, place.right() + 2, y))

    def _paint_token(self, painter: QPainter, line: KeyLine, rect: QRectF, columns: metrics.Columns) -> None:
        """The key's name, framed in red where it peeks; the answer is framed in any case."""
        c, scale = theme.current(), self.scale
        painter.setFont(sized(min(metrics.TOKEN * scale, _OF_LINE * self.line)))
        text = elided(painter.font(), line.token, columns.names - 10 * scale)
        left = rect.left() + 5 * scale
        if line.peeking or line.answer:
            height = min(rect.height() - 2, metrics.TOKEN * 1.45 * scale)
            width = max(text_width(painter.font(), text), 8 * scale) + 9 * scale
            box = QRectF(left - 4.5 * scale, rect.center().y() - height / 2, width, height)
            pen = QPen(QColor(c.leak if line.peeking else c.muted), 2 if line.peeking else 1)
            if not line.peeking:
                pen.setStyle(Qt.PenStyle.DotLine)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 0, -1, 0), 5, 5)
        painter.setPen(QColor(c.muted if line.masked or line.padded else c.ink))
        draw_text(painter, QRectF(left, rect.top(), columns.names, rect.height()), _LEFT, text)

    def _paint_bar(
        self, painter: QPainter, line: KeyLine, rect: QRectF, lines: RowLines, columns: metrics.Columns
    ) -> None:
        c, key = theme.current(), line.key
        height = min(max(rect.height() * 0.42, 12.0), 24 * self.scale)
        whole = columns.bar_right - columns.bar_left
        bar = QRectF(columns.bar_left, rect.center().y() - height / 2, whole, height)
        painter.setPen(Qt.PenStyle.NoPen)
        if line.dropped and lines.weights[key] > 0:  # what dropout took, in its own colour
            lost = QRectF(bar)
            lost.setWidth(max(whole * min(float(lines.weights[key]) / lines.full, 1.0), 2.0))
            painter.setPen(QPen(QColor(c.muted), 1))
            painter.setBrush(QColor.fromRgb(GROUNDS[CellClass.DROPPED]))
            painter.drawRoundedRect(lost.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
            painter.setPen(Qt.PenStyle.NoPen)
        length = whole * float(self._shown[key])
        if length > 0:
            painter.setBrush(QColor(c.leak if line.peeking else c.accent))
            filled = QRectF(bar)
            filled.setWidth(max(length, 1.5))
            painter.drawRoundedRect(filled, min(3.0, length / 2), min(3.0, length / 2))
        if lines.before is not None and np.isfinite(lines.before[key]) and lines.before[key] > 0:
            ghost = QRectF(bar)
            ghost.setWidth(max(whole * min(float(lines.before[key]) / lines.full, 1.0), 2.0))
            pen = QPen(QColor(c.muted), 1.3)
            pen.setDashPattern([3.0, 2.5])
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(ghost.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)

    def _paint_nan(self, painter: QPainter, place: QRectF) -> None:
        """NaN on the ground that it has in the map."""
        painter.setFont(sized(metrics.NUMBER * self.scale))
        width = text_width(painter.font(), "NaN") + 10 * self.scale
        height = min(place.height() - 4, 22 * self.scale)
        box = QRectF(place.right() - width + 4, place.center().y() - height / 2, width, height)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor.fromRgb(GROUNDS[CellClass.NAN]))
        painter.drawRoundedRect(box, 4, 4)
        painter.setPen(QColor("#1c1d22"))
        draw_text(painter, box, _CENTRE, "NaN")
