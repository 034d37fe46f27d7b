"""Brings the part of a page that a lesson speaks of into sight, and keeps it there until a person scrolls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEasingCurve, QObject, QPoint, QPropertyAnimation, QTimer, Slot
from PySide6.QtWidgets import QScrollArea, QWidget

from attnviz.views.row_card.bars import motion_wanted

_ABOVE: Final = 6  # pixels that stay above the part
_MS: Final = 250


class PartInSight(QObject):
    """Scrolls one area: when a step opens at once, when its study's answer moves the part gently; a hand ends that."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._part: Sequence[QWidget] = ()
        self._holds = False
        bar = area.verticalScrollBar()
        bar.actionTriggered.connect(self.let_go)  # wheel, handle and keys, none of which is `setValue`
        bar.rangeChanged.connect(self._on_range)
        self._moving = QPropertyAnimation(bar, b"value", self)
        self._moving.setDuration(_MS)
        self._moving.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._soon = QTimer(self, singleShot=True, interval=0)  # once what has come has its place
        self._soon.timeout.connect(self._go)

    def show(self, part: Sequence[QWidget]) -> None:
        """Bring what lies in these widgets, from the first to the last, into sight; the page's beginning for none."""
        self._part, self._holds = tuple(part), True
        self._go(gently=False)
        self._soon.start()

    @Slot()
    def let_go(self) -> None:
        """Leave the area where it is, whatever comes."""
        self._holds = False
        self._moving.stop()

    @Slot()
    def _on_range(self) -> None:
        if self._holds:
            self._soon.start()

    @Slot()
    def _go(self, *, gently: bool = True) -> None:
        if not self._holds:
            return
        bar, value = self._area.verticalScrollBar(), self._value()
        self._moving.stop()
        if gently and motion_wanted(self._area) and self._area.isVisible():
            self._moving.setEndValue(value)
            self._moving.start()
        else:
            bar.setValue(value)

    def _value(self) -> int:
        page: QWidget | None = self._area.widget()
        bar = self._area.verticalScrollBar()
        shown = [widget for widget in self._part if page is not None and widget.isVisibleTo(page)]
        if page is None or not shown:
            return 0
        top = shown[0].mapTo(page, QPoint(0, 0)).y()
        return min(max(top - _ABOVE, 0), bar.maximum())
