"""How the maps are coloured and what a pixel shows; and the memory that a picture may take."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QFormLayout, QWidget

from attnviz.spec import View


class LookControls(QWidget):
    """Emits a whole view, or gigabytes (0: a quarter of the free memory), for a person's edit alone."""

    view_edited = Signal(object)
    budget_edited = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: View | None = None
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(6)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.norm = self._add(form, "norm", self.tr("Ran&ge"), self.tr("which numbers the colours run over"), {
            "auto": (self.tr("auto"), self.tr("linear up to 32 keys, logarithmic beyond")),
            "linear": (self.tr("linear"), self.tr("from 0 to the largest, in equal steps")),
            "log": (self.tr("logarithmic"), self.tr("each step is a factor: small weights can be told apart")),
            "uniform": (self.tr("against uniform"), self.tr("weight × number of keys seen: 1 is as if all were alike")),
            "per-head": (self.tr("each head its own"), self.tr("up to each head's own largest")),
            "per-row": (self.tr("each row its own"), self.tr("up to each row's own largest")),
            "percentile": (self.tr("without extremes"), self.tr("from the lowest 1 % to the highest 1 %")),
            "unit": (self.tr("0 to 1"), self.tr("the same for every picture")),
        })  # fmt: skip
        self.pooling = self._add(
            form, "pooling", self.tr("A pi&xel is"), self.tr("what a pixel shows that covers several cells"), {
                "max": (self.tr("brightest"), self.tr("the largest of its cells: a single one is not lost")),
                "mean": (self.tr("mean"), self.tr("the mean of its cells")),
                "share": (self.tr("share of the row's mass"), self.tr("how much of a row's weight its keys hold")),
            })  # fmt: skip
        tip = self.tr("the colours from low to high; each can be read in grey too")
        names = ("viridis", "cividis", "magma", "inferno", "greys")
        self.colours = self._add(form, "colours", self.tr("Co&lours"), tip, {name: (name, "") for name in names})
        self.budget = QDoubleSpinBox()
        self.budget.setRange(0, 100_000)
        self.budget.setDecimals(1)
        self.budget.setSuffix(" GB")
        self.budget.setSpecialValueText(self.tr("a quarter of what is free"))
        self.budget.setKeyboardTracking(False)
        self.budget.setToolTip(self.tr("Memory that one picture may take; a longer map is computed in tiles"))
        self.budget.setAccessibleName(self.tr("memory"))
        self.budget.valueChanged.connect(self.budget_edited)
        form.addRow(self.tr("Me&mory"), self.budget)

    def _add(
        self, form: QFormLayout, field: str, words: str, tip: str, choices: dict[str, tuple[str, str]]
    ) -> QComboBox:
        combo = QComboBox()
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for value, (name, about) in choices.items():
            combo.addItem(name, value)
            combo.setItemData(combo.count() - 1, about or name, Qt.ItemDataRole.ToolTipRole)
        combo.setToolTip(tip)
        combo.setAccessibleName(words.replace("&", ""))
        combo.activated.connect(lambda _: self._edit(field, combo.currentData()))
        form.addRow(words, combo)
        return combo

    def present(self, view: View) -> None:
        """Show ``view``; emits nothing."""
        if view == self._view:
            return
        self._view = view
        for combo, value in (self.norm, view.norm), (self.pooling, view.pooling), (self.colours, view.colours):
            combo.setCurrentIndex(combo.findData(value))

    def show_budget(self, gigabytes: float) -> None:
        """Show the memory that is allowed; emits nothing."""
        blocker = QSignalBlocker(self.budget)
        self.budget.setValue(gigabytes)
        del blocker

    def _edit(self, field: str, value: str) -> None:
        if self._view is not None:
            self.view_edited.emit(msgspec.structs.replace(self._view, **{field: value}))
