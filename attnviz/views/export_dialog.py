"""Where to export the current picture, at how many pixels, and which part of it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings, QStandardPaths, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

SIZES = ((1280, 800), (1920, 1080), (2560, 1440), (3840, 2160))
MAX_SIDE = 16384


class ExportDialog(QDialog):
    """Asks for a file and a size in pixels; emits ``export_asked(path, (width, height))`` and remembers both.

    With ``part`` a part of the map is on the screen, and ``whole_map`` says whether all of it is wanted instead;
    without it nothing is asked.
    """

    export_asked = Signal(object, object)

    def __init__(self, settings: QSettings, parent: QWidget | None = None, *, part: bool = False) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setWindowTitle(self.tr("Export picture"))
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.PicturesLocation) or str(Path.home())
        self.path_edit = QLineEdit(str(settings.value("export/path", str(Path(folder, "attention.png")), type=str)))
        self.path_edit.setMinimumWidth(360)
        browse = QPushButton(self.tr("Choose…"))
        browse.clicked.connect(self._on_browse)
        file_row = QHBoxLayout()
        file_row.addWidget(self.path_edit, 1)
        file_row.addWidget(browse)

        self.preset = QComboBox()
        for width, height in SIZES:
            self.preset.addItem(f"{width} × {height}", (width, height))
        self.preset.addItem(self.tr("other"), None)
        self.preset.activated.connect(self._on_preset)
        self.width_spin, self.height_spin = QSpinBox(), QSpinBox()
        size_row = QHBoxLayout()
        size_row.addWidget(self.preset)
        for name, spin, default in ("width", self.width_spin, 1920), ("height", self.height_spin, 1080):
            spin.setRange(64, MAX_SIDE)
            spin.setSuffix(self.tr(" px"))
            spin.setValue(int(settings.value(f"export/{name}", default, type=int)))  # type: ignore[call-overload]
            spin.valueChanged.connect(self._match_preset)
            size_row.addWidget(spin)
        self._match_preset()

        self.on_screen = QRadioButton(self.tr("what is on the screen"))
        self.whole = QRadioButton(self.tr("the whole map"))
        part_row = QHBoxLayout()
        for button in (self.on_screen, self.whole):
            button.setEnabled(part)
            part_row.addWidget(button)
        part_row.addStretch(1)
        (self.on_screen if part else self.whole).setChecked(True)

        form = QFormLayout()
        form.addRow(self.tr("File"), file_row)
        form.addRow(self.tr("Size"), size_row)
        form.addRow(self.tr("Cells"), part_row)
        form.setRowVisible(part_row, part)  # with the whole map on the screen there is nothing to choose
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._on_accepted)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.addLayout(form)
        column.addWidget(buttons)

    @property
    def whole_map(self) -> bool:
        """Whether the whole map is wanted rather than what is on the screen."""
        return self.whole.isChecked()

    @Slot()
    def _on_browse(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Export picture"), self.path_edit.text(), self.tr("PNG pictures (*.png)")
        )
        if path:
            self.path_edit.setText(path)

    @Slot()
    def _on_preset(self) -> None:
        size = self.preset.currentData()
        if size is not None:
            self.width_spin.setValue(size[0])
            self.height_spin.setValue(size[1])

    @Slot()
    def _match_preset(self) -> None:
        size = self.width_spin.value(), self.height_spin.value()
        self.preset.setCurrentIndex(SIZES.index(size) if size in SIZES else self.preset.count() - 1)

    @Slot()
    def _on_accepted(self) -> None:
        text = self.path_edit.text().strip()
        if not text:
            self.path_edit.setFocus()
            return
        path = Path(text).expanduser()
        if path.suffix.lower() != ".png":
            path = path.with_name(path.name + ".png")
        size = self.width_spin.value(), self.height_spin.value()
        self._settings.setValue("export/path", str(path))
        self._settings.setValue("export/width", size[0])
        self._settings.setValue("export/height", size[1])
        self.accept()
        self.export_asked.emit(path, size)
