"""A small table of words and numbers, painted whole: it never scrolls, and any script can stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.views import theme

_LINE, _GAP, _SIZE, _LEAST = 25.0, 12.0, 13, 10
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in a cell: its words, the role of its ink (ink, muted, leak, accent), and what is said on hover."""

    text: str
    role: str = "ink"
    tip: str = ""


class NumberTable(QWidget):
    """A header above lines; the first column is words, the others numbers, set right. Ctrl+C copies it as text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._header: tuple[str, ...] = ()
        self._lines: tuple[tuple[Entry, ...], ...] = ()
        self._lit: int | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMinimumWidth(200)

    def show_lines(
        self, header: Sequence[str], lines: Sequence[Sequence[Entry | str]], *, lit: int | None = None
    ) -> None:  # fmt: skip
        """Show ``lines``, each as long as ``header``; column ``lit`` stands on a tinted ground."""
        made = tuple(tuple(Entry(cell) if isinstance(cell, str) else cell for cell in line) for line in lines)
        if (self._header, self._lines, self._lit) == (tuple(header), made, lit):
            return
        self._header, self._lines, self._lit = tuple(header), made, lit
        self.setFixedHeight(self.sizeHint().height())
        self.setAccessibleDescription(self.as_text())
        self.update()

    def lines(self) -> list[tuple[str, ...]]:
        """The words below the header."""
        return [tuple(cell.text for cell in line) for line in self._lines]

    def as_text(self) -> str:
        """The table as lines of tab-separated words."""
        lines = [self._header, *self.lines()]
        return "\n".join("\t".join(line) for line in lines)

    def sizeHint(self) -> QSize:
        return QSize(320, round(_LINE * (len(self._lines) + 1)) + 4)

    def _widths(self, size: int) -> list[float]:
        font = sized(size)
        columns = zip(*([*self._header], *([cell.text for cell in line] for line in self._lines)), strict=True)
        return [max(text_width(font, text) for text in column) + _GAP for column in columns]

    def _layout(self) -> tuple[int, list[float]]:
        """The size of the type and each column's width; the words give way where even small type has no room."""
        room = float(self.width())
        for size in range(_SIZE, _LEAST - 1, -1):
            widths = self._widths(size)
            if sum(widths) <= room:
                break
        spare = room - sum(widths)
        if spare < 0:
            widths[0] = max(widths[0] + spare, 40.0)
        else:  # numbers stay near their words
            each = min(spare / max(len(widths), 1), 26.0)
            widths = [width + each for width in widths]
        return size, widths

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self._header:
            return
        load_fonts()
        colours = theme.current()
        size, widths = self._layout()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(sized(size))
        if self._lit is not None:
            left = sum(widths[: self._lit])
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.accent_soft))
            painter.drawRoundedRect(QRectF(left + 2, 0, widths[self._lit] + 2, self.height()), 6, 6)
        header = [Entry(text, "muted") for text in self._header]
        for place, line in enumerate([header, *self._lines]):
            x, y = 0.0, place * _LINE
            for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
                painter.setPen(QColor(getattr(colours, cell.role)))
                draw_text(painter, QRectF(x + 2, y, width - 4, _LINE), _RIGHT if column else _LEFT, cell.text)
                x += width
            if place == 0:
                painter.setPen(QPen(QColor(colours.hairline), 1))
                painter.drawLine(0, round(_LINE), round(sum(widths)) + 4, round(_LINE))
        if self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self._tip_at(event.pos().x(), event.pos().y()), self)
            return True
        return super().event(event)

    def _tip_at(self, x: float, y: float) -> str:
        line = int(y // _LINE) - 1
        if not self._header or not 0 <= line < len(self._lines):
            return ""
        edge = 0.0
        for cell, width in zip(self._lines[line], self._layout()[1], strict=True):
            edge += width
            if x < edge:
                return cell.tip
        return ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
        else:
            super().keyPressEvent(event)
