"""The whole map in small, with the window as a rectangle that a hand can move."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from attnviz.figure import paint
from attnviz.figure.fitting import fitted
from attnviz.figure.layout import Box
from attnviz.frames import Frame
from attnviz.session import Window
from attnviz.views import navigation

_LEAST = 7.0  # pixels of the rectangle's side: a window of ten cells in a million is still to be found


class Minimap(QWidget):
    """``centre_asked(row, column)``: a click or a drag wants the window's middle there."""

    centre_asked = Signal(float, float)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._frame: Frame | None = None
        self._small: Frame | None = None
        self._shown: tuple[Window, navigation.Shape, paint.Style, str] | None = None
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setToolTip(self.tr("the whole map: click or drag to move the window"))
        self.setAccessibleName(self.tr("the whole map"))
        self.hide()

    def present(
        self, frame: Frame | None, window: Window, shape: navigation.Shape, style: paint.Style, colours: str
    ) -> None:
        """Show ``frame``, of the whole map, with ``window`` marked; hidden while the window is the whole map."""
        self.setVisible(not navigation.is_whole(window, shape) and self.width() > 0)
        state = window, shape, style, colours
        if frame is self._frame and state == self._shown:
            return
        if frame is not self._frame or self._shown is None or colours != self._shown[3]:
            self._frame, self._small = frame, None
        self._shown = state
        self.update()

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._small = None

    def _map(self) -> Box:
        """Where the map is drawn: inside of a hairline."""
        return Box(1.0, 1.0, max(self.width() - 2.0, 1.0), max(self.height() - 2.0, 1.0))

    def mark(self) -> QRectF:
        """The window's rectangle, large enough to be seen."""
        if self._shown is None:
            return QRectF()
        window, shape, _, _ = self._shown
        whole, rect = navigation.whole(shape), self._map()
        x, y = navigation.point_at(whole, rect, window.top, window.left)
        right, bottom = navigation.point_at(whole, rect, window.bottom, window.right)
        width, height = max(right - x, _LEAST), max(bottom - y, _LEAST)
        middle = QPointF((x + right) / 2, (y + bottom) / 2)
        left = min(max(middle.x() - width / 2, rect.x), rect.right - width)
        top = min(max(middle.y() - height / 2, rect.y), rect.bottom - height)
        return QRectF(left, top, width, height)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._shown is None:
            return
        _, shape, style, colours = self._shown
        painter = QPainter(self)
        painter.fillRect(self.rect(), style.hairline)
        rect = self._map()
        painter.fillRect(QRectF(*rect), style.card)
        if self._frame is not None:
            if self._small is None:  # few pixels: the brightest of each square of them, made once for each frame
                ratio = self.devicePixelRatioF()
                room = Box(0, 0, rect.width * ratio, rect.height * ratio)
                self._small = fitted(self._frame, colours, room)
            whole = (0.0, float(shape[0]), 0.0, float(shape[1]))
            paint.paint_cells(painter, QRectF(*rect), whole, self._small, style, numbers=False)
        for pen in (QPen(style.card, 4), QPen(style.accent, 2)):  # an edge keeps it in sight on any colour
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(self.mark())
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._ask(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._ask(event)

    def _ask(self, event: QMouseEvent) -> None:
        if self._shown is not None:
            shape = self._shown[1]
            point = event.position()
            self.centre_asked.emit(*navigation.cell_at(navigation.whole(shape), self._map(), point.x(), point.y()))
        event.accept()
