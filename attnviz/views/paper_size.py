"""The size of an exported picture: pixels for a screen, or centimetres and dots an inch for paper."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSettings, Signal, Slot
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QHBoxLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from attnviz.spec import MAX_SIDE
from attnviz.spec.paper import CM_PER_INCH

PIXELS: Final = ((1280, 800), (1920, 1080), (2560, 1440), (3840, 2160))
CENTIMETRES: Final = ((8.5, 6.0), (17.0, 9.0), (25.0, 14.0))
"""A column of a paper of two, its whole width, a page turned."""


class PaperSize(QWidget):
    """Presets, and any size in pixels or in centimetres. ``changed`` is emitted for every change."""

    changed = Signal()

    def __init__(self, settings: QSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.preset = QComboBox()
        self.preset.setAccessibleName(self.tr("size"))
        for width, height in PIXELS:
            self.preset.addItem(f"{width} × {height}", ("px", width, height))
        for across, down in CENTIMETRES:
            words = self.tr("{width} × {height} cm").format(width=f"{across:g}", height=f"{down:g}")
            self.preset.addItem(words, ("cm", across, down))
        self.preset.addItem(self.tr("other pixels"), ("px", 0, 0))
        self.preset.addItem(self.tr("other centimetres"), ("cm", 0, 0))
        self.across, self.down = QDoubleSpinBox(), QDoubleSpinBox()
        self.dpi = QSpinBox()
        self.dpi.setRange(30, 2400)
        self.dpi.setSingleStep(50)
        self.dpi.setSuffix(self.tr(" dpi"))
        self.dpi.setValue(int(str(settings.value("export/dpi", 300, type=int))))
        self._note = QLabel()
        self._note.setProperty("role", "muted")
        row = QHBoxLayout()
        row.addWidget(self.across)
        row.addWidget(QLabel("×"))
        row.addWidget(self.down)
        row.addWidget(self.dpi)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.preset)
        column.addLayout(row)
        column.addWidget(self._note)
        self._unit = "px"
        self._use_unit(str(settings.value("export/unit", "px", type=str)))
        self.across.setValue(float(str(settings.value("export/width", 1920.0, type=float))))
        self.down.setValue(float(str(settings.value("export/height", 1080.0, type=float))))
        self._match()
        self.preset.activated.connect(self._on_preset)
        for spin in (self.across, self.down, self.dpi):
            spin.valueChanged.connect(self._on_spin)

    def value(self) -> tuple[int, int, float | None]:
        """Width and height in pixels, and dots an inch where it is paper."""
        if self._unit == "px":
            return round(self.across.value()), round(self.down.value()), None
        scale = self.dpi.value() / CM_PER_INCH
        return round(self.across.value() * scale), round(self.down.value() * scale), float(self.dpi.value())

    def set_value(self, across: float, down: float, unit: str = "px") -> None:
        """Take a size in ``unit`` px or cm."""
        self._use_unit(unit)
        self.across.setValue(across)
        self.down.setValue(down)

    def remember(self) -> None:
        """Keep it for the next time."""
        for name, value in (
            ("unit", self._unit), ("width", self.across.value()), ("height", self.down.value()),
            ("dpi", self.dpi.value()),
        ):  # fmt: skip
            self._settings.setValue(f"export/{name}", value)

    def _use_unit(self, unit: str) -> None:
        self._unit = "cm" if unit == "cm" else "px"
        for spin in (self.across, self.down):
            if self._unit == "px":
                spin.setDecimals(0)
                spin.setRange(16, MAX_SIDE)
                spin.setSuffix(self.tr(" px"))
            else:
                spin.setDecimals(2)
                spin.setRange(0.5, 200)
                spin.setSuffix(self.tr(" cm"))
        self.dpi.setVisible(self._unit == "cm")
        self._note.setVisible(self._unit == "cm")

    @Slot()
    def _on_preset(self) -> None:
        unit, across, down = self.preset.currentData()
        if across:
            self.set_value(across, down, unit)
        elif unit != self._unit:
            across, down = CENTIMETRES[0] if unit == "cm" else PIXELS[1]
            self.set_value(across, down, unit)

    @Slot()
    def _on_spin(self) -> None:
        self._match()
        self.changed.emit()

    def _match(self) -> None:
        """The preset that this size is, and how many pixels it has."""
        now = (self._unit, self.across.value(), self.down.value())
        count = self.preset.count()
        places = [n for n in range(count - 2) if tuple(self.preset.itemData(n)) == now]
        other = count - 2 if self._unit == "px" else count - 1
        self.preset.setCurrentIndex(places[0] if places else other)
        width, height, _ = self.value()
        self._note.setText(self.tr("{width} × {height} pixels").format(width=f"{width:,}", height=f"{height:,}"))
