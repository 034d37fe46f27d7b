"""Widgets side by side, in as many columns as the width holds."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget


class Reflow(QWidget):
    """A grid whose number of columns is one of ``columns``, the first with which each has ``least`` pixels."""

    def __init__(self, least: int, columns: Sequence[int], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._least, self._choices = least, tuple(columns)
        self._widgets: tuple[QWidget, ...] = ()
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_widgets(self, widgets: Sequence[QWidget]) -> None:
        """Show these, in this order; others are hidden and stay the caller's."""
        for widget in self._widgets:
            self._grid.removeWidget(widget)
            widget.setVisible(widget in widgets)
        self._widgets, self._columns = tuple(widgets), 0
        self._place()
        for widget in self._widgets:
            widget.show()

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self._least, 120), self._grid.minimumSize().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        gap, most = self._grid.spacing(), max(len(self._widgets), 1)
        fits = (n for n in self._choices if n <= most and n * (self._least + gap) - gap <= self.width())
        columns = next(fits, 1)
        if columns == self._columns:
            return
        self._columns = columns
        for place, widget in enumerate(self._widgets):
            self._grid.addWidget(widget, *divmod(place, columns))
        for column in range(max(self._choices)):
            self._grid.setColumnStretch(column, int(column < columns))
