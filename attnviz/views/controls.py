"""The panel of controls: mask, dropout, heads, compute, and the rest under More."""

from __future__ import annotations

from typing import get_args

import msgspec
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from attnviz.frames import DeviceInfo
from attnviz.session import Snapshot
from attnviz.spec import (
    MAX_HEADS,
    SHAPE_FORMS,
    AnyShape,
    AttentionSpec,
    Colours,
    DropoutGenerator,
    DropoutSite,
    DType,
    Norm,
    Pooling,
    SpecError,
    TypedWeights,
    View,
    fixed_by,
    parse_shape,
    shape_text,
)
from attnviz.views.fields import DivisorSpin, Fields, being_typed, muted_label
from attnviz.views.probability import Probability
from attnviz.views.segments import Segments


class Controls(QFrame):
    """Every control emits a whole spec or view, for a person's edit alone.

    A value that cannot be is refused beside its control; what was typed stays until the next edit.
    """

    spec_edited = Signal(object)
    view_edited = Signal(object)
    budget_edited = Signal(float)
    """Gigabytes that computations may take; 0 is a quarter of the free memory."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._spec: AttentionSpec | None = None
        self._view: View | None = None
        self._devices: tuple[tuple[str, str], ...] = ()
        self._fields = Fields(self, self._without_effect)
        self._fields.spec_edited.connect(self.spec_edited)
        self._fields.problem_said.connect(self._on_problem_said)
        self._editors, self._problems = self._fields.editors, self._fields.problems
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 14, 16, 14)
        self._column.setSpacing(7)
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

    def _muted(self) -> QLabel:
        label = muted_label()
        self._column.addWidget(label)
        return label

    def _make_mask(self) -> None:
        self._heading(self.tr("MASK"))
        mask = Segments([("none", self.tr("none")), ("three-step", self.tr("three-step")), ("neg-inf", "−∞")])
        mask.setToolTip(self.tr("none: every word sees all · three-step: softmax, × triangle, ÷ row sum · −∞: before "
                                "the softmax (Shift+M)"))  # fmt: skip
        self._fields.add("mask", mask, mask.chosen, mask.set_value, words=self.tr("mask"), into=self._column)
        tip = self.tr("which keys a query may see: {forms}").format(forms=SHAPE_FORMS)
        self._fields.add_line("mask_shape", self.tr("Sha&pe"), self._form(self._column), self._read_shape, tip,
                              write=shape_text, longest=1000)  # fmt: skip
        self._mask_reason = self._muted()

    def _make_dropout(self) -> None:
        self._heading(self.tr("DROPOUT"))
        slider = Probability(0.95, 0.05)
        slider.setToolTip(self.tr("Probability that a cell is dropped in training"))
        self._fields.add("dropout", slider, slider.value_changed, slider.set_value, lambda p: round(p, 2),
                         words=self.tr("dropout"), into=self._column)  # fmt: skip
        row = QHBoxLayout()
        training = Segments([("True", self.tr("training")), ("False", self.tr("inference"))])
        training.setToolTip(self.tr("Dropout acts in training alone (T)"))
        self._fields.add("training", training, training.chosen, lambda v: training.set_value(str(v)),
                         lambda v: v == "True", words=self.tr("training or inference"), into=self._column,
                         beside=row)  # fmt: skip
        self._reroll = QPushButton(self.tr("Re-roll"))
        self._reroll.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._reroll.clicked.connect(self._on_reroll)
        row.addWidget(self._reroll)
        self._dropout_line = self._muted()

    def _make_heads(self) -> None:
        self._heading(self.tr("HEADS"))
        form = self._form(self._column)
        self._fields.add_spin("num_heads", self.tr("&Heads"), form, 1, 1024)
        self._fields.add_spin("d_out", self.tr("d_out, &all heads"), form, 0, 1 << 20)
        self._book_d_out = QSpinBox()
        self._book_d_out.setRange(0, 1 << 20)
        self._book_d_out.setSpecialValueText("—")
        self._book_d_out.setKeyboardTracking(False)
        self._book_d_out.setAccessibleName(self.tr("d_out, each head"))
        self._book_d_out.valueChanged.connect(self._on_book_d_out)
        form.addRow(self.tr("d_out, &each head"), self._book_d_out)
        implementation = Segments([("stacked", self.tr("stacked")), ("split", self.tr("split"))])
        implementation.setToolTip(
            self.tr("stacked: single heads side by side · split: one large product, cut into heads")
        )
        self._fields.add("implementation", implementation, implementation.chosen, implementation.set_value,
                         words=self.tr("implementation"), into=self._column)  # fmt: skip
        self._heads_line = self._muted()
        self._reason = self._muted()

    def _make_compute(self) -> None:
        self._heading(self.tr("COMPUTE"))
        form = self._form(self._column)
        device = self._device = QComboBox()
        device.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        device.activated.connect(lambda _: self._fields.edit("device", device.currentData()))
        self._fields.add_row("device", self.tr("De&vice"), form, device, self._show_device)
        self._fields.add_combo("dtype", self.tr("d&type"), form, get_args(DType))

    def _make_more(self) -> None:
        self._more = QPushButton()
        self._more.setCheckable(True)
        self._more.setProperty("link", True)
        self._more.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        page = self._page = QWidget()
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 0, 0, 0)
        form, fields = self._form(inner), self._fields
        fields.add_line("seed", self.tr("&Seed"), form, self._read_seed)
        fields.add_line("dropout_seed", self.tr("D&ropout seed"), form, self._read_dropout_seed)
        fields.add_line("fill", self.tr("Mask &fill"), form, self._read_fill,
                        self.tr("what is written over hidden scores: -inf, or a number such as -1e9"),
                        write=_number_text)  # fmt: skip
        self._kv_heads = DivisorSpin()
        self._kv_heads.setToolTip(self.tr("key and value heads; so many query heads share each"))
        fields.add_spin("num_kv_heads", self.tr("&Key/value heads"), form, 1, MAX_HEADS, self._kv_heads)
        fields.add_spin("d_model", self.tr("&d_model"), form, 0, 1 << 20)
        fields.add_spin("batch", self.tr("&Batch"), form, 1, 4096)
        fields.add_combo("dropout_site", self.tr("Dropout o&n"), form, get_args(DropoutSite))
        fields.add_combo("dropout_generator", self.tr("Dra&wn by"), form, get_args(DropoutGenerator))
        fields.add_line("scale", self.tr("S&cale"), form, self._read_scale,
                        self.tr("auto is 1/√d_head; none; or a factor"))  # fmt: skip
        fields.add_line("soft_cap", self.tr("Soft cap"), form, self._read_soft_cap,
                        self.tr("none, or c: scaled scores become c · tanh(s / c)"), write=_number_text)  # fmt: skip
        for field, words in [
            ("scale_after_mask", self.tr("mask be&fore scaling, as the book")),
            ("out_proj", self.tr("output &projection")),
            ("qkv_bias", self.tr("b&iases of query, key, value")),
        ]:
            box = QCheckBox(words)
            fields.add(field, box, box.clicked, box.setChecked, words=words, into=inner)
        looks = self._form(inner)
        self._norm, self._pooling, self._colours = QComboBox(), QComboBox(), QComboBox()
        self._pooling.setToolTip(self.tr("what a pixel shows that covers several cells"))
        pooled = {
            "max": self.tr("brightest"), "mean": self.tr("mean"), "share": self.tr("share of the row's mass"),
        }  # fmt: skip
        for words, combo, values, field in [
            (self.tr("Ran&ge"), self._norm, {value: value for value in get_args(Norm)}, "norm"),
            (self.tr("A pi&xel is"), self._pooling, {value: pooled[value] for value in get_args(Pooling)}, "pooling"),
            (self.tr("Co&lours"), self._colours, {value: value for value in get_args(Colours)}, "colours"),
        ]:
            for value, name in values.items():
                combo.addItem(name, value)
            combo.activated.connect(lambda _, field=field, combo=combo: self._edit_view(field, combo.currentData()))
            combo.setAccessibleName(words.replace("&", ""))
            looks.addRow(words, combo)
        self._budget = QDoubleSpinBox()
        self._budget.setRange(0, 100_000)
        self._budget.setDecimals(1)
        self._budget.setSuffix(" GB")
        self._budget.setSpecialValueText(self.tr("a quarter of what is free"))
        self._budget.setKeyboardTracking(False)
        self._budget.setToolTip(self.tr("Memory that one picture may take; a longer map is computed in tiles"))
        self._budget.setAccessibleName(self.tr("memory"))
        self._budget.valueChanged.connect(self.budget_edited)
        looks.addRow(self.tr("Me&mory"), self._budget)
        self._column.addWidget(page)
        self._more.toggled.connect(self._show_more)
        self._show_more(False)

    def show_budget(self, gigabytes: float) -> None:
        """Show the memory budget; emits nothing."""
        blocker = QSignalBlocker(self._budget)
        self._budget.setValue(gigabytes)
        del blocker

    @Slot(bool)
    def _show_more(self, shown: bool) -> None:
        self._page.setVisible(shown)
        self._more.setText(self.tr("Less ▾") if shown else self.tr("More ▸"))

    @Slot(str)
    def _on_problem_said(self, field: str) -> None:
        if self._page.isAncestorOf(self._problems[field]):
            self._more.setChecked(True)

    @staticmethod
    def _form(into: QVBoxLayout) -> QFormLayout:
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(6)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        into.addLayout(form)
        return form

    # ------------------------------------------------------------------------------------------------------ present

    def present(self, snapshot: Snapshot) -> None:
        """Set every control; emits nothing. A field that is being typed in keeps what is typed."""
        spec = snapshot.spec
        self._show_devices(snapshot)
        changed = spec != self._spec
        self._kv_heads.of = spec.num_heads
        self._spec = spec
        self._fields.present(snapshot)
        if snapshot.view != self._view:
            self._view = snapshot.view
            for combo, value in (
                (self._norm, self._view.norm), (self._pooling, self._view.pooling), (self._colours, self._view.colours),
            ):  # fmt: skip
                combo.setCurrentIndex(combo.findData(value))
        if changed:
            self._present_words(spec)

    def _present_words(self, spec: AttentionSpec) -> None:
        fixed = fixed_by(spec.source)
        if "d_out" in fixed or not being_typed(self._book_d_out):
            blocker = QSignalBlocker(self._book_d_out)
            self._book_d_out.setValue(spec.d_head or 0)
            del blocker
        self._book_d_out.setEnabled("d_out" not in fixed)
        self._book_d_out.setToolTip(
            fixed["d_out"].reason if "d_out" in fixed
            else self.tr("What the book's wrapper of single heads calls d_out: per head")
        )  # fmt: skip
        self._reroll.setEnabled(spec.drops)
        self._reroll.setToolTip(self.tr("Draw other cells (R)") if spec.drops else self._dropout_words(spec))
        self._dropout_line.setText(self._dropout_words(spec))
        self._heads_line.setText(self._heads_words(spec))
        self._heads_line.setVisible(spec.d_head is not None)
        for label, names in (self._mask_reason, ("mask",)), (self._reason, ("num_heads", "implementation")):
            reasons = [fixed[name].reason for name in names if name in fixed]
            label.setText(next(iter(reasons), ""))
            label.setVisible(bool(reasons))

    def _show_devices(self, snapshot: Snapshot) -> None:
        known = {device.name: _device_words(device) for device in snapshot.devices}
        wanted = tuple(({snapshot.spec.device: snapshot.spec.device} | known).items())
        if self._devices == wanted:
            return
        self._devices = wanted
        blocker = QSignalBlocker(self._device)
        self._device.clear()
        for name, words in sorted(wanted, key=lambda item: [*known, item[0]].index(item[0])):
            self._device.addItem(name, name)
            self._device.setItemData(self._device.count() - 1, words, Qt.ItemDataRole.ToolTipRole)
        self._show_device(snapshot.spec.device)
        self._fields.tips["device"] = "\n".join(known.values())
        self._device.setToolTip(self._fields.tips["device"])
        del blocker

    def _show_device(self, name: str) -> None:
        self._device.setCurrentIndex(self._device.findData(name))

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

    def _edit_view(self, field: str, value: str) -> None:
        if self._view is not None:
            self.view_edited.emit(msgspec.structs.replace(self._view, **{field: value}))

    @Slot(int)
    def _on_book_d_out(self, each: int) -> None:
        if self._spec is not None:
            self._fields.edit("d_out", each * self._spec.num_heads)

    @Slot()
    def _on_reroll(self) -> None:
        if self._spec is not None:
            self._fields.edit("dropout_seed", self._spec.dropout_seed + 1)

    def _read_seed(self, text: str) -> int:
        return self._whole("seed", text)

    def _read_dropout_seed(self, text: str) -> int:
        return self._whole("dropout_seed", text)

    def _whole(self, field: str, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise SpecError(
                field, self.tr("{field} is “{text}”: give a whole number").format(field=field, text=text)
            ) from None

    def _without_effect(self, spec: AttentionSpec) -> dict[str, str]:
        """Fields that act on nothing in ``spec``, and why."""
        reasons = {}
        if spec.mask != "neg-inf":
            reasons["fill"] = self.tr("only the −∞ mask writes over scores")
        if isinstance(spec.source, TypedWeights):
            reasons["mask_shape"] = reasons["fill"] = fixed_by(spec.source)["mask"].reason
        return reasons

    def _read_shape(self, text: str) -> AnyShape:
        shape = parse_shape(text)
        if shape is None:
            forms = SHAPE_FORMS.removesuffix(" or FILE.npy")
            raise SpecError(
                "mask_shape",
                self.tr("mask_shape is “{text}”: give {forms}; a file is given on the command line").format(
                    text=text, forms=forms
                ),
            )
        return shape

    def _read_fill(self, text: str) -> float:
        return self._number("fill", text, self.tr("give -inf or a number, such as -1e9"))

    def _read_soft_cap(self, text: str) -> float | None:
        if text.lower() in ("", "none", "—"):
            return None
        return self._number("soft_cap", text, self.tr("give none or a number above 0, such as 50"))

    def _number(self, field: str, text: str, would_do: str) -> float:
        try:
            return float(text.replace("−", "-").replace("∞", "inf"))
        except ValueError:
            said = self.tr("{field} is “{text}”: {would_do}")
            raise SpecError(field, said.format(field=field, text=text, would_do=would_do)) from None

    def _read_scale(self, text: str) -> str | float:
        if text in ("auto", "none"):
            return text
        try:
            return float(text)
        except ValueError:
            raise SpecError(
                "scale", self.tr("scale is “{text}”: give auto, none or a number").format(text=text)
            ) from None


def _number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _device_words(device: DeviceInfo) -> str:
    memory = f", {device.total_bytes / 1e9:.0f} GB" if device.total_bytes else ""
    return f"{device.name} — {device.title}{memory}"
