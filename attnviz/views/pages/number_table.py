"""A small table of words and numbers, painted whole: it never scrolls, and any script can stand in it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from attnviz.figure.tables import Line, Table, column_widths, paint_table, table_of
from attnviz.views import theme
from attnviz.views.plot import style_of

_LINE = 25.0


class NumberTable(QWidget):
    """A header above lines; the first column is words, the others numbers, set right. Ctrl+C copies it as text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = Table()
        """What is painted."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMinimumWidth(200)

    def show_lines(self, header: Sequence[str], lines: Sequence[Line], *, lit: int | None = None) -> None:
        """Show ``lines``, each as long as ``header``; column ``lit`` stands on a tinted ground."""
        self.show_table(table_of(header, lines, lit=lit))

    def show_table(self, table: Table) -> None:
        """Show ``table``."""
        if table == self.table:
            return
        self.table = table
        self.setFixedHeight(self.sizeHint().height())
        self.setAccessibleDescription(self.as_text())
        self.update()

    def lines(self) -> list[tuple[str, ...]]:
        """The words below the header."""
        return self.table.words

    def as_text(self) -> str:
        """The table as lines of tab-separated words."""
        return "\n".join("\t".join(line) for line in [self.table.header, *self.table.words])

    def sizeHint(self) -> QSize:
        return QSize(320, round(_LINE * (len(self.table.lines) + 1)) + 4)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.table.header:
            return
        size, widths = column_widths(self.table, self.width())
        painter = QPainter(self)
        paint_table(painter, QPointF(0, 0), self.table, style_of(self), size, widths, _LINE)
        if self.hasFocus():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(theme.current().accent), 1))
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
        if not self.table.header or not 0 <= line < len(self.table.lines):
            return ""
        edge = 0.0
        for cell, width in zip(self.table.lines[line], column_widths(self.table, self.width())[1], strict=True):
            edge += width
            if x < edge:
                return cell.tip
        return ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
        else:
            super().keyPressEvent(event)
