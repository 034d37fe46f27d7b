"""A hand on what shows a window of cells: wheel and pinch zoom about the pointer, a drag pans, a click is a click.

It knows neither what is drawn nor who keeps the window: it asks what lies under the pointer and says what was meant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QCursor, QGuiApplication, QMouseEvent, QNativeGestureEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QGestureEvent, QPinchGesture, QWidget

from attnviz.figure.layout import Box
from attnviz.session import Window
from attnviz.views import navigation

_NOTCH: Final = 1.25  # a notch of a wheel, 120 eighths of a degree, shows so many times fewer cells
_PIXELS: Final = 300.0  # so many pixels of a touchpad zoom e times
_SIDEWAYS: Final = 1 / 8  # of the window, for a notch
_LEFT: Final = Qt.MouseButton.LeftButton


class Chart(NamedTuple):
    """What lies under the pointer: the rectangle that shows ``window`` of a map of ``shape``."""

    rect: Box
    window: Window
    shape: navigation.Shape


class Hand(QObject):
    """Filters the events of ``widget``; ``under`` tells what chart lies at a point of it, None for none."""

    moved = Signal(object)
    """A `Window`: the hand zoomed or panned."""

    hovered = Signal(object)
    """A QPointF, or None once the pointer has left."""

    clicked = Signal(QPointF)
    doubled = Signal(QPointF)

    def __init__(self, widget: QWidget, under: Callable[[QPointF], Chart | None]) -> None:
        super().__init__(widget)
        self._widget, self._under = widget, under
        self._pressed: QPointF | None = None
        self._held: tuple[float, float] | None = None  # the place of the map that a drag holds
        self._chart: Chart | None = None
        widget.setMouseTracking(True)
        if sys.platform != "darwin":  # there a pinch comes as a native gesture, and would come twice
            widget.grabGesture(Qt.GestureType.PinchGesture)
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Take what the hand does; everything else goes on to the widget."""
        match event.type():
            case QEvent.Type.MouseButtonPress | QEvent.Type.MouseButtonRelease | QEvent.Type.MouseButtonDblClick:
                return isinstance(event, QMouseEvent) and self._on_button(event)
            case QEvent.Type.MouseMove:
                return isinstance(event, QMouseEvent) and self._on_move(event)
            case QEvent.Type.Leave:
                self.hovered.emit(None)
            case QEvent.Type.Wheel:
                return isinstance(event, QWheelEvent) and self._on_wheel(event)
            case QEvent.Type.NativeGesture:
                return isinstance(event, QNativeGestureEvent) and self._on_native(event)
            case QEvent.Type.Gesture:
                return isinstance(event, QGestureEvent) and self._on_gesture(event)
        return False

    # ---------------------------------------------------------------------------------------------------- buttons

    def _on_button(self, event: QMouseEvent) -> bool:
        if event.button() != _LEFT:
            return False
        point = event.position()
        if event.type() == QEvent.Type.MouseButtonDblClick:
            self._pressed = None
            self.doubled.emit(point)
        elif event.type() == QEvent.Type.MouseButtonPress:
            self._pressed, self._chart = point, self._under(point)
        else:
            pressed, dragged = self._pressed, self._held is not None
            self._pressed = self._held = self._chart = None
            if dragged:
                self._widget.unsetCursor()
            elif pressed is not None:
                self.clicked.emit(point)
        event.accept()
        return True

    def _on_move(self, event: QMouseEvent) -> bool:
        point = event.position()
        if self._pressed is None or self._chart is None or not event.buttons() & _LEFT:
            self.hovered.emit(point)
            return True
        rect, window, shape = self._chart
        if self._held is None:
            if (point - self._pressed).manhattanLength() < QApplication.startDragDistance():
                return True
            self._held = navigation.cell_at(window, rect, self._pressed.x(), self._pressed.y())
            self._widget.setCursor(QCursor(Qt.CursorShape.ClosedHandCursor))
        # from the window as it was when the button went down: sums of steps would drift away from the pointer
        row, col = navigation.cell_at(window, rect, point.x(), point.y())
        self.moved.emit(navigation.panned(window, shape, self._held[0] - row, self._held[1] - col))
        return True

    # --------------------------------------------------------------------------------------------- wheel and pinch

    def _on_wheel(self, event: QWheelEvent) -> bool:
        chart = self._under(event.position())
        if chart is None:
            return False
        fine = event.pixelDelta() if QGuiApplication.platformName() != "xcb" else QPoint()  # Qt: unreliable on X11
        delta = event.angleDelta() if fine.isNull() else fine
        across, down = float(delta.x()), float(delta.y())
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and not across:
            across, down = down, 0.0
        if abs(across) > abs(down):
            width = chart.window.right - chart.window.left
            cells = across / chart.rect.width if not fine.isNull() else across / 120 * _SIDEWAYS
            self.moved.emit(navigation.panned(chart.window, chart.shape, 0, -cells * width))
        elif down:
            steps = _NOTCH ** (-down / 120) if fine.isNull() else 2.718281828 ** (-down / _PIXELS)
            self._zoom(chart, steps, event.position())
        event.accept()
        return True

    def _on_native(self, event: QNativeGestureEvent) -> bool:
        chart = self._under(event.position())
        if chart is None or event.gestureType() != Qt.NativeGestureType.ZoomNativeGesture:
            return False
        self._zoom(chart, 1 / max(1 + event.value(), 0.1), event.position())
        return True

    def _on_gesture(self, event: QGestureEvent) -> bool:
        pinch = event.gesture(Qt.GestureType.PinchGesture)
        if not isinstance(pinch, QPinchGesture):
            return False
        point = self._widget.mapFromGlobal(pinch.centerPoint())
        chart = self._under(point)
        if chart is not None:
            self._zoom(chart, 1 / max(pinch.scaleFactor(), 0.1), point)
        event.accept(pinch)
        return True

    def _zoom(self, chart: Chart, factor: float, point: QPointF) -> None:
        about = navigation.cell_at(chart.window, chart.rect, point.x(), point.y())
        self.moved.emit(navigation.zoomed(chart.window, chart.shape, factor, about))
