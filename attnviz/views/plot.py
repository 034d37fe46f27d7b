"""A plot in the window."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure import paint
from attnviz.figure.plots import Plot, paint_plot


def style_of(widget: QWidget) -> paint.Style:
    """Light or dark, as the widget's palette is."""
    return paint.DARK if widget.palette().color(QPalette.ColorRole.Window).lightness() < 128 else paint.LIGHT


class PlotView(QWidget):
    """Shows a `Plot`; nothing until there is one. ``unit`` scales its type."""

    def __init__(self, parent: QWidget | None = None, *, unit: float = 1.0) -> None:
        super().__init__(parent)
        self.plot: Plot | None = None
        self._unit = unit
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(round(220 * unit), round(170 * unit))

    @property
    def unit(self) -> float:
        """How large the type is: 12 pixels × this."""
        return self._unit

    @unit.setter
    def unit(self, unit: float) -> None:
        if unit != self._unit:
            self._unit = unit
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(420 * self._unit), round(230 * self._unit))

    def show_plot(self, plot: Plot | None) -> None:
        if plot is not self.plot:
            self.plot = plot
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.plot is None:
            return
        painter = QPainter(self)
        rect = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        paint_plot(painter, rect, self.plot, style_of(self), self._unit)
        painter.end()
