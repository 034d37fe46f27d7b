"""A row of buttons of which one is down."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QFrame, QHBoxLayout, QPushButton, QWidget


class Segments(QFrame):
    """Choices (value, words) side by side. ``chosen(value)`` is emitted for a person's choice alone."""

    chosen = Signal(str)

    def __init__(
        self, choices: Sequence[tuple[str, str]], parent: QWidget | None = None, *, large: bool = False
    ) -> None:
        super().__init__(parent)
        self.setProperty("segments", True)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QPushButton] = {}
        for value, words in choices:
            button = QPushButton(words)
            button.setProperty("segment", True)
            button.setCheckable(True)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
            if large:
                button.setMinimumSize(128, 36)
            self._group.addButton(button)
            row.addWidget(button, 1)
            self.buttons[value] = button
        self._group.buttonClicked.connect(self._on_clicked)

    def set_value(self, value: str) -> None:
        self.buttons[value].setChecked(True)

    @Slot(QAbstractButton)
    def _on_clicked(self, button: QAbstractButton) -> None:
        self.chosen.emit(next(value for value, known in self.buttons.items() if known is button))
