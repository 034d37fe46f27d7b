"""A probability, by a slider or as a number."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QDoubleSpinBox, QHBoxLayout, QSlider, QWidget

_STEPS = 100


class Probability(QWidget):
    """``value_changed`` carries the new probability, for a person's edit and for `set_value` alike."""

    value_changed = Signal(float)

    def __init__(self, most: float, step: float, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, round(most * _STEPS))
        self.slider.setSingleStep(round(step * _STEPS))
        self.slider.setPageStep(round(4 * step * _STEPS))
        self.number = QDoubleSpinBox()
        self.number.setRange(0, most)
        self.number.setDecimals(2)
        self.number.setSingleStep(step)
        self.number.setKeyboardTracking(False)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.slider, 1)
        row.addWidget(self.number)
        self.setFocusProxy(self.slider)
        self.slider.valueChanged.connect(self._on_slider)
        self.number.valueChanged.connect(self.set_value)

    def value(self) -> float:
        return self.number.value()

    def is_held(self) -> bool:
        """Whether a hand is on it, or half a number is typed."""
        text = self.number.text()
        return self.slider.isSliderDown() or text != self.number.textFromValue(self.number.value())

    @Slot(float)
    def set_value(self, probability: float) -> None:
        """Show ``probability``, and say so if it is another."""
        blockers = QSignalBlocker(self.slider), QSignalBlocker(self.number)
        before = self._shown
        self.slider.setValue(round(probability * _STEPS))
        self.number.setValue(probability)
        self._shown = self.number.value()
        del blockers
        if self._shown != before:
            self.value_changed.emit(self._shown)

    _shown = 0.0

    @Slot(int)
    def _on_slider(self, place: int) -> None:
        self.set_value(place / _STEPS)

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        for part in (self.slider, self.number):
            part.setAccessibleName(name)

    def setToolTip(self, words: str) -> None:
        super().setToolTip(words)
        for part in (self.slider, self.number):
            part.setToolTip(words)
