"""The panel of controls: mask, dropout, heads, compute, and the rest under More."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)
from superqt import QLabeledDoubleSlider

from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, Colours, DType, Norm, SpecError, View, edited, fixed_by
from attnviz.views.segments import Segments

_MAX_INT = (1 << 31) - 1


class Controls(QFrame):
    """Every control emits a whole spec or view, for a person's edit alone.

    A value that cannot be is refused beside its control; what was typed stays until the next edit.
    """

    spec_edited = Signal(object)
    view_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._spec: AttentionSpec | None = None
        self._view = View()
        self._devices: tuple[str, ...] = ()
        self._problems: dict[str, QLabel] = {}
        self._editors: dict[str, QWidget] = {}
        self._shown: dict[str, Callable[[Any], None]] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 14, 16, 14)
        self._column.setSpacing(7)
        self._reason = QLabel()
        self._reason.setProperty("role", "muted")
        self._reason.setWordWrap(True)
        self._make_mask()
        self._make_dropout()
        self._make_heads()
        self._make_compute()
        self._make_more()

    # ------------------------------------------------------------------------------------------------------- making

    def _heading(self, text: str) -> None:
        label = QLabel(text)
        label.setProperty("role", "heading")
        label.setContentsMargins(0, 6, 0, 0)
        self._column.addWidget(label)

    def _make_mask(self) -> None:
        self._heading(self.tr("MASK"))
        mask = Segments([("none", self.tr("none")), ("three-step", self.tr("three-step")), ("neg-inf", "−∞")])
        mask.setToolTip(self.tr("none: every word sees all · three-step: softmax, × triangle, ÷ row sum · −∞: before "
                                "the softmax (Shift+M)"))  # fmt: skip
        self._add("mask", mask, mask.chosen, mask.set_value, into=self._column)

    def _make_dropout(self) -> None:
        self._heading(self.tr("DROPOUT"))
        slider = QLabeledDoubleSlider(Qt.Orientation.Horizontal)
        slider.setRange(0, 0.95)
        slider.setSingleStep(0.05)  # type: ignore[arg-type]
        slider.setDecimals(2)
        slider.setToolTip(self.tr("Probability that a cell is dropped in training"))
        self._add("dropout", slider, slider.valueChanged, slider.setValue, lambda p: round(p, 2), into=self._column)
        row = QHBoxLayout()
        training = Segments([("True", self.tr("training")), ("False", self.tr("inference"))])
        training.setToolTip(self.tr("Dropout acts in training alone (T)"))
        self._add("training", training, training.chosen, lambda v: training.set_value(str(v)), lambda v: v == "True",
                  into=row)  # fmt: skip
        self._reroll = QPushButton(self.tr("Re-roll"))
        self._reroll.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._reroll.clicked.connect(self._on_reroll)
        row.addWidget(self._reroll)
        self._column.addLayout(row)
        self._dropout_line = QLabel()
        self._dropout_line.setProperty("role", "muted")
        self._dropout_line.setWordWrap(True)
        self._column.addWidget(self._dropout_line)

    def _make_heads(self) -> None:
        self._heading(self.tr("HEADS"))
        form = self._form()
        self._add_spin("num_heads", self.tr("Heads"), form, 1, 1024)
        self._add_spin("d_out", self.tr("d_out, all heads"), form, 0, 1 << 20)
        self._book_d_out = QSpinBox()
        self._book_d_out.setRange(0, 1 << 20)
        self._book_d_out.setSpecialValueText("—")
        self._book_d_out.setKeyboardTracking(False)
        self._book_d_out.setToolTip(self.tr("What the book's wrapper of single heads calls d_out: per head"))
        self._book_d_out.valueChanged.connect(self._on_book_d_out)
        form.addRow(self.tr("d_out, each head"), self._book_d_out)
        form_ = Segments([("stacked", self.tr("stacked")), ("split", self.tr("split"))])
        form_.setToolTip(self.tr("stacked: single heads side by side · split: one large product, cut into heads"))
        self._add("implementation", form_, form_.chosen, form_.set_value, into=self._column)
        self._heads_line = QLabel()
        self._heads_line.setProperty("role", "muted")
        self._heads_line.setWordWrap(True)
        self._column.addWidget(self._heads_line)
        self._column.addWidget(self._reason)

    def _make_compute(self) -> None:
        self._heading(self.tr("COMPUTE"))
        form = self._form()
        device = self._device = QComboBox()
        device.activated.connect(lambda _: self._edit("device", device.currentData()))
        self._register("device", device, lambda value: device.setCurrentIndex(device.findData(value)))
        form.addRow(self.tr("Device"), device)
        self._add_problem("device", self._column)
        self._add_combo("dtype", self.tr("dtype"), form, get_args(DType))

    def _make_more(self) -> None:
        self._more = QPushButton()
        self._more.setCheckable(True)
        self._more.setProperty("link", True)
        self._more.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        page = QWidget()
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 0, 0, 0)
        form = self._form(inner)
        self._add_spin("seed", self.tr("Seed"), form, 0, _MAX_INT)
        self._add_spin("dropout_seed", self.tr("Dropout seed"), form, 0, _MAX_INT)
        self._add_spin("d_model", self.tr("d_model"), form, 0, 1 << 20)
        self._add_spin("batch", self.tr("Batch"), form, 1, 4096)
        self._add_combo("dropout_site", self.tr("Dropout on"), form, ("weights", "context"))
        self._add_combo("dropout_generator", self.tr("Drawn by"), form, ("portable", "torch"))
        scale = QLineEdit()
        scale.setToolTip(self.tr("auto is 1/√d_head; none; or a factor"))
        scale.editingFinished.connect(lambda: self._edit("scale", _scale(scale.text())))
        self._register("scale", scale, lambda value: scale.setText(str(value)))
        form.addRow(self.tr("Scale"), scale)
        self._add_problem("scale", inner)
        for field, words in [
            ("scale_after_mask", self.tr("mask before scaling, as the book")),
            ("out_proj", self.tr("output projection")),
            ("qkv_bias", self.tr("biases of query, key, value")),
        ]:
            box = QCheckBox(words)
            self._add(field, box, box.clicked, box.setChecked, into=inner)
        looks = self._form(inner)
        self._norm, self._colours = QComboBox(), QComboBox()
        for words, combo, values, field in [
            (self.tr("Range"), self._norm, get_args(Norm), "norm"),
            (self.tr("Colours"), self._colours, get_args(Colours), "colours"),
        ]:
            combo.addItems(values)
            combo.textActivated.connect(lambda value, field=field: self._edit_view(field, value))
            looks.addRow(words, combo)
        self._column.addWidget(page)
        self._page = page
        self._more.toggled.connect(self._show_more)
        self._show_more(False)

    @Slot(bool)
    def _show_more(self, shown: bool) -> None:
        self._page.setVisible(shown)
        self._more.setText(self.tr("Less ▾") if shown else self.tr("More ▸"))

    def _form(self, into: QVBoxLayout | None = None) -> QFormLayout:
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(6)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        (into or self._column).addLayout(form)
        return form

    def _register(self, field: str, editor: QWidget, show: Callable[[Any], None]) -> None:
        self._editors[field], self._shown[field] = editor, show
        editor.setAccessibleName(field)

    def _add_problem(self, field: str, into: QVBoxLayout | QHBoxLayout) -> None:
        label = QLabel()
        label.setProperty("role", "problem")
        label.setWordWrap(True)
        label.hide()
        self._problems[field] = label
        into.addWidget(label)

    def _add(
        self, field: str, editor: QWidget, edited_signal: Any, show: Callable[[Any], None],
        read: Callable[[Any], Any] = lambda value: value, *, into: QVBoxLayout | QHBoxLayout,
    ) -> None:  # fmt: skip
        self._register(field, editor, show)
        edited_signal.connect(lambda value: self._edit(field, read(value)))
        into.addWidget(editor)
        self._add_problem(field, into if isinstance(into, QVBoxLayout) else self._column)

    def _add_spin(self, field: str, words: str, form: QFormLayout, low: int, high: int) -> None:
        spin = QSpinBox()
        spin.setRange(low, high)
        if field in ("d_model", "d_out"):
            spin.setSpecialValueText("—")  # a source without projections has no such number
        spin.setKeyboardTracking(False)
        spin.valueChanged.connect(lambda value: self._edit(field, value))
        self._register(field, spin, lambda value: spin.setValue(low if value is None else value))
        form.addRow(words, spin)
        problem = QLabel()
        problem.setProperty("role", "problem")
        problem.setWordWrap(True)
        problem.hide()
        self._problems[field] = problem
        form.addRow(problem)

    def _add_combo(self, field: str, words: str, form: QFormLayout, values: tuple[str, ...]) -> None:
        combo = QComboBox()
        combo.addItems(values)
        combo.textActivated.connect(lambda value: self._edit(field, value))
        self._register(field, combo, combo.setCurrentText)
        form.addRow(words, combo)

    # ------------------------------------------------------------------------------------------------------ present

    def present(self, snapshot: Snapshot) -> None:
        """Set every control; emits nothing. A field that is being typed in keeps what is typed."""
        spec, self._view = snapshot.spec, snapshot.view
        changed = spec != self._spec
        self._spec = spec
        self._show_devices(snapshot)
        fixed = fixed_by(spec.source)
        if changed:
            for label in self._problems.values():
                label.hide()
        for field, editor in self._editors.items():
            blocker = QSignalBlocker(editor)
            typing = isinstance(editor, QLineEdit) and editor.hasFocus()
            if not typing:
                self._shown[field](getattr(spec, field))
            del blocker
            editor.setEnabled(field not in fixed)
            if field in fixed:
                editor.setToolTip(fixed[field].reason)
        for combo, value in (self._norm, self._view.norm), (self._colours, self._view.colours):
            combo.setCurrentText(value)
        blocker = QSignalBlocker(self._book_d_out)
        self._book_d_out.setValue(spec.d_head or 0)
        self._book_d_out.setEnabled("d_out" not in fixed)
        del blocker
        self._reroll.setEnabled(spec.drops)
        self._reroll.setToolTip(self.tr("Draw other cells (R)") if spec.drops else self._dropout_words(spec))
        self._dropout_line.setText(self._dropout_words(spec))
        self._heads_line.setText(self._heads_words(spec))
        self._heads_line.setVisible(spec.d_head is not None)
        reasons = dict.fromkeys(f.reason for field, f in fixed.items() if field in ("num_heads", "implementation"))
        self._reason.setText(next(iter(reasons), ""))
        self._reason.setVisible(bool(reasons))
        if snapshot.problem is not None:
            self._say(snapshot.problem.field, snapshot.problem.sentence)

    def _show_devices(self, snapshot: Snapshot) -> None:
        names = tuple(device.name for device in snapshot.devices)
        wanted = names if snapshot.spec.device in names else (*names, snapshot.spec.device)
        if wanted == self._devices:
            return
        self._devices = wanted
        titles = {d.name: f"{d.name} — {d.title}, {d.total_bytes / 1e9:.0f} GB" for d in snapshot.devices}
        blocker = QSignalBlocker(self._device)
        self._device.clear()
        for name in wanted:
            self._device.addItem(name, name)
            self._device.setItemData(self._device.count() - 1, titles.get(name, name), Qt.ItemDataRole.ToolTipRole)
        self._device.setToolTip("\n".join(titles.values()))
        del blocker

    def _dropout_words(self, spec: AttentionSpec) -> str:
        if not spec.training:
            return self.tr("off in inference: every weight stays")
        if spec.dropout == 0:
            return self.tr("p = 0: every weight stays")
        return self.tr("what stays is × 1/(1 − p) = {factor}").format(factor=f"{1 / (1 - spec.dropout):.2f}")

    def _heads_words(self, spec: AttentionSpec) -> str:
        return self.tr(
            "{form}: {each} each × {heads} heads = {total} · the book's wrapper calls this d_out = {each}"
        ).format(form=spec.implementation, each=spec.d_head, heads=spec.num_heads, total=spec.d_out)

    # -------------------------------------------------------------------------------------------------------- edits

    def _edit(self, field: str, value: Any) -> None:
        if self._spec is None or value is None:
            return
        for label in self._problems.values():
            label.hide()
        try:
            spec = edited(self._spec, **{field: value})
        except SpecError as error:
            self._say(error.field if error.field in self._problems else field, str(error))
            return
        if spec != self._spec:
            self.spec_edited.emit(spec)

    def _edit_view(self, field: str, value: str) -> None:
        self.view_edited.emit(msgspec.structs.replace(self._view, **{field: value}))

    @Slot(int)
    def _on_book_d_out(self, each: int) -> None:
        if self._spec is not None:
            self._edit("d_out", each * self._spec.num_heads)

    @Slot()
    def _on_reroll(self) -> None:
        if self._spec is not None:
            self._edit("dropout_seed", self._spec.dropout_seed + 1)

    def _say(self, field: str, sentence: str) -> None:
        label = self._problems.get(field)
        if label is not None:
            label.setText(sentence)
            label.show()


def _scale(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text.strip()
