"""The controls of the mask: its mode, its shape, its fill, and how many scores a row keeps."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from PySide6.QtCore import QCoreApplication, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QFormLayout,
    QFrame,
    QGridLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from attnviz.session import Snapshot
from attnviz.spec import MAX_DRAWN, MAX_TOKENS, AttentionSpec, MaskFile, TypedWeights, fill_words, fixed_by
from attnviz.spec.fills import FILLS, fill_text
from attnviz.views.fields import Fields, muted_label
from attnviz.views.typed_values import SHAPES, read_fill, read_shape, shape_words

translate = QCoreApplication.translate
_AFTER_SOFTMAX = ("three-step", "multiply")


class MaskModes(QFrame):
    """The mask modes as buttons in two lines. ``chosen(mode)`` is emitted for a person's choice alone."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("segments", True)
        grid = QGridLayout(self)
        grid.setContentsMargins(2, 2, 2, 2)
        grid.setSpacing(2)
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QPushButton] = {}
        self._tips: dict[str, str] = {}
        choices = [
            ("none", self.tr("none"), (0, 0, 2), self.tr("every word sees all")),
            ("three-step", self.tr("three-step"), (0, 2, 2), self.tr("softmax over everything, × triangle, ÷ row sum")),
            ("neg-inf", "−∞", (0, 4, 2), self.tr("hidden scores become −∞ before the softmax; any other fill below")),
            ("multiply", self.tr("multiply only"), (1, 0, 3), self.tr("softmax, × triangle, not divided: a mistake")),
            ("add", self.tr("add: S + M"), (1, 3, 3), self.tr("scores plus a mask of 0 and −∞, as libraries do it")),
        ]
        for value, words, (line, first, width), tip in choices:
            button = QPushButton(words)
            button.setProperty("segment", True)
            button.setCheckable(True)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
            button.setToolTip(tip)
            self._tips[value] = tip
            self._group.addButton(button)
            grid.addWidget(button, line, first, 1, width)
            self.buttons[value] = button
        for column in range(6):
            grid.setColumnStretch(column, 1)
        self._group.buttonClicked.connect(self._on_clicked)

    def set_value(self, value: str) -> None:
        self.buttons[value].setChecked(True)

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Grey the modes in ``reasons``, each with its reason."""
        for value, button in self.buttons.items():
            button.setEnabled(value not in reasons)
            button.setToolTip(reasons.get(value, self._tips[value]))

    @Slot(QAbstractButton)
    def _on_clicked(self, button: QAbstractButton) -> None:
        self.chosen.emit(next(value for value, known in self.buttons.items() if known is button))


class MaskControls(QWidget):
    """What is masked, and how. The editors belong to ``fields``, which emits their edits.

    ``draw_asked`` says that a person wants to draw the mask on the map.
    """

    draw_asked = Signal()

    def __init__(self, fields: Fields, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(7)
        self.modes = MaskModes()
        self.modes.setToolTip(self.tr("How hidden keys are kept from being seen (M, Shift+M)"))
        fields.add("mask", self.modes, self.modes.chosen, self.modes.set_value, words=self.tr("mask"), into=column)
        self._mode_line = muted_label()
        column.addWidget(self._mode_line)
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(6)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        column.addLayout(form)
        tip = self.tr("which keys a query may see: {forms}, or drawn on the map").format(forms=SHAPES)
        shape, problem = fields.line("mask_shape", self.tr("Shape"), read_shape, tip, write=shape_words, longest=1000)
        self._draw = QPushButton(self.tr("draw on the map"))
        self._draw.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._draw.clicked.connect(self.draw_asked)
        form.addRow(self.tr("Sha&pe"), shape)
        form.addRow(problem)
        form.addRow("", self._draw)
        fields.add_choice_line(
            "fill", self.tr("&Fill"), form, read_fill, tuple(FILLS), write=fill_text,
            tip=self.tr("what hidden scores become: −∞, or any number such as −1e9. 0 is no mask"),
        )  # fmt: skip
        self._fill_line = muted_label()
        form.addRow(self._fill_line)
        self._top_k = fields.add_optional_spin(
            "top_k", self.tr("&Top-k"), form, MAX_TOKENS,
            self.tr("keep the k largest scores of each row and hide the rest; — keeps all"),
        )  # fmt: skip
        self._true_line = muted_label()
        column.addWidget(self._true_line)
        self._reason = muted_label()
        column.addWidget(self._reason)

    def present(self, snapshot: Snapshot, spec: AttentionSpec) -> None:
        """Say what the mask of ``spec`` does; the editors are set by their `Fields`."""
        picture = snapshot.shown
        n_keys = picture.outline.n_keys if picture is not None and picture.outline is not None else 0
        most = max(n_keys or MAX_TOKENS, spec.top_k or 1)
        if self._top_k.maximum() != most:
            blocked = self._top_k.blockSignals(True)
            self._top_k.setMaximum(most)
            self._top_k.blockSignals(blocked)
        after = self.tr("top-k acts before the softmax, this mask behind it: set top-k to — first")
        self.modes.refuse(MappingProxyType(dict.fromkeys(_AFTER_SOFTMAX, after) if spec.top_k is not None else {}))
        fixed = fixed_by(spec.source).get("mask")
        self._mode_line.setText(self._mode_words(spec) if fixed is None else "")
        self._mode_line.setVisible(fixed is None)
        words = fill_words(spec) or ""
        self._fill_line.setText(words)
        self._fill_line.setVisible(bool(words))
        self._true_line.setText(self._true_words(spec))
        self._true_line.setVisible(spec.mask != "none" and fixed is None)
        self._reason.setText(fixed.reason if fixed is not None else "")
        self._reason.setVisible(fixed is not None)
        self._draw.setEnabled(not isinstance(spec.source, TypedWeights) and n_keys <= MAX_DRAWN)
        self._draw.setToolTip(
            self.tr("a mask is drawn for at most {n} tokens").format(n=f"{MAX_DRAWN:,}") if n_keys > MAX_DRAWN
            else self.tr("drag over cells of the map to hide them, or to show them again (D; Esc leaves)")
        )  # fmt: skip

    def _mode_words(self, spec: AttentionSpec) -> str:
        return {
            "none": self.tr("every query sees every key"),
            "three-step": self.tr("softmax, × triangle, ÷ row sum"),
            "neg-inf": self.tr("hidden scores are overwritten before the softmax"),
            "multiply": self.tr("softmax, × triangle, not divided: a mistake"),
            "add": self.tr("a mask of 0 and the fill is added to the scores"),
        }[spec.mask]

    def _true_words(self, spec: AttentionSpec) -> str:
        if isinstance(spec.mask_shape, MaskFile):
            return self.tr("True in the file = may be seen, as in SDPA")
        return self.tr("as a bool mask: True keeps in SDPA, True hides in masked_fill")


def without_effect(spec: AttentionSpec) -> dict[str, str]:
    """Fields of the mask that act on nothing in ``spec``, and why."""
    reasons = {}
    if not spec.fills:
        reasons["fill"] = translate("MaskControls", "only the −∞ mask and the added one use a fill")
    if spec.mask in _AFTER_SOFTMAX and spec.top_k is None:
        reasons["top_k"] = translate("MaskControls", "top-k acts before the softmax: take the mask none, −∞ or S + M")
    if isinstance(spec.source, TypedWeights):
        reasons["mask_shape"] = reasons["fill"] = fixed_by(spec.source)["mask"].reason
    return reasons
