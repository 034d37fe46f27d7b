"""A ring around the pointer."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from attnviz.views import theme


class Ring(QWidget):
    """A ring around the pointer. Filters the application's events while the view is on; the mouse passes through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._room = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.resize_to(40.0)
        self.hide()

    def resize_to(self, radius: float) -> None:
        """A ring of so many pixels around the pointer."""
        self._radius = radius
        self.resize(round(2 * radius + 6), round(2 * radius + 6))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the pointer over widgets of the view itself: those in the lens hear of it in pixels of their own."""
        if event.type() != QEvent.Type.MouseMove or not isinstance(event, QMouseEvent):
            return False
        if isinstance(watched, QWidget) and watched.window() is self._room.window():
            self.follow(event.globalPosition())
        return False

    def follow(self, place: QPointF) -> None:
        """Stand around ``place`` of the screen; out of sight beside the view."""
        point = self._room.mapFromGlobal(place)
        self.setVisible(self._room.rect().contains(point.toPoint()))
        self.move(point.toPoint() - self.rect().center())
        self.raise_()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QRectF(self.rect()).center()
        for colour, width in ((theme.current().card, 6.0), (theme.current().accent, 3.0)):
            painter.setPen(QPen(QColor(colour), width))
            painter.drawEllipse(middle, self._radius - 2, self._radius - 2)
        painter.end()
