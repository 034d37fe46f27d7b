"""The panel of controls: mask, dropout, heads, compute, and the rest under More."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import get_args

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
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
    AttentionSpec,
    DropoutGenerator,
    DropoutSite,
    DType,
    Projection,
    fixed_by,
    lesson_draws,
)
from attnviz.spec.fills import number_text
from attnviz.views.fields import DivisorSpin, Fields, being_typed, muted_label
from attnviz.views.look_controls import LookControls
from attnviz.views.mask_controls import MaskControls, without_effect
from attnviz.views.probability import Probability
from attnviz.views.segments import Segments
from attnviz.views.typed_values import read_scale, read_soft_cap, read_whole


class Controls(QFrame):
    """Every control emits a whole spec or view, for a person's edit alone.

    A value that cannot be is refused beside its control; what was typed stays until the next edit.
    """

    spec_edited = Signal(object)
    view_edited = Signal(object)
    budget_edited = Signal(float)
    """Gigabytes that computations may take; 0 is a quarter of the free memory."""
    draw_mask_asked = Signal()
    """A person wants to draw the mask's shape on the map."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._spec: AttentionSpec | None = None
        self._devices: tuple[tuple[str, str], ...] = ()
        self._fields = Fields(self, without_effect)
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
        self.mask_controls = MaskControls(self._fields)
        self.mask_controls.draw_asked.connect(self.draw_mask_asked)
        self._column.addWidget(self.mask_controls)

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
        self._fields.add_spin("num_heads", self.tr("&Heads"), form, 1, 1024,
                              self.tr("how many maps are made side by side, each with its own questions"))  # fmt: skip
        self._fields.add_spin("d_out", self.tr("d_out, &all heads"), form, 0, 1 << 20,
                              self.tr("how many numbers a token gets in the end, from all heads together"))  # fmt: skip
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
        self._fields.add_combo("dtype", self.tr("d&type"), form, get_args(DType),
                               self.tr("how many digits numbers keep while they are computed"), {
            "float64": self.tr("16 digits"), "float32": self.tr("7 digits, the usual one"),
            "float16": self.tr("3 digits, up to 65,504"), "bfloat16": self.tr("2 digits, as large as float32's"),
        })  # fmt: skip

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
        fields.add_line("seed", self.tr("&Seed"), form, partial(read_whole, "seed"),
                        self.tr("which random weights are drawn: the same seed, the same numbers"))  # fmt: skip
        fields.add_line("dropout_seed", self.tr("D&ropout seed"), form, partial(read_whole, "dropout_seed"),
                        self.tr("which cells dropout takes; Re-roll raises it by one"))  # fmt: skip
        self._kv_heads = DivisorSpin()
        fields.add_spin("num_kv_heads", self.tr("&Key/value heads"), form, 1, MAX_HEADS,
                        self.tr("heads of keys and values; so many query heads share each"),
                        self._kv_heads)  # fmt: skip
        fields.add_spin("d_model", self.tr("&d_model"), form, 0, 1 << 20,
                        self.tr("how many numbers a token has as input"))  # fmt: skip
        fields.add_combo("projection", self.tr("Projection"), form, get_args(Projection),
                         self.tr("what makes queries, keys and values of the inputs"), {
            "linear": self.tr("nn.Linear: weights as a module has them"),
            "rand": self.tr("torch.rand: a matrix of random numbers, multiplied from the right"),
            "none": self.tr("nothing: they are the inputs themselves, with one head"),
        })  # fmt: skip
        fields.add_spin("batch", self.tr("&Batch"), form, 1, 4096,
                        self.tr("how many copies of the input go through at once; the first is shown"))  # fmt: skip
        fields.add_combo("dropout_site", self.tr("Dropout o&n"), form, get_args(DropoutSite),
                         self.tr("what dropout thins out: the weights, or what they mixed"))  # fmt: skip
        fields.add_combo("dropout_generator", self.tr("Dra&wn by"), form, get_args(DropoutGenerator),
                         self.tr("who draws the cells that dropout takes"), {
            "portable": self.tr("the same cells on every machine and device"),
            "torch": self.tr("torch's own generator, whose draws differ between systems"),
        })  # fmt: skip
        fields.add_line("scale", self.tr("S&cale"), form, read_scale,
                        self.tr("auto is 1/√d_head; none; or a factor"))  # fmt: skip
        fields.add_line("soft_cap", self.tr("Soft cap"), form, read_soft_cap,
                        self.tr("none, or c: scaled scores become c · tanh(s / c)"), write=number_text)  # fmt: skip
        for field, words, tip in [
            ("scale_after_mask", self.tr("mask be&fore scaling, as the book"),
             self.tr("hide first, then divide by √d; with −∞ the weights are the same")),
            ("out_proj", self.tr("output &projection"),
             self.tr("one more matrix after the heads are joined, as in most models")),
            ("qkv_bias", self.tr("b&iases of query, key, value"),
             self.tr("a number added to each query, key and value dimension")),
        ]:  # fmt: skip
            box = QCheckBox(words)
            box.setToolTip(tip)
            fields.add(field, box, box.clicked, box.setChecked, words=words, into=inner)
        self.looks = LookControls()
        self.looks.view_edited.connect(self.view_edited)
        self.looks.budget_edited.connect(self.budget_edited)
        inner.addWidget(self.looks)
        self._column.addWidget(page)
        self._more.toggled.connect(self._show_more)
        self._show_more(False)

    def show_budget(self, gigabytes: float) -> None:
        """Show the memory that is allowed; emits nothing."""
        self.looks.show_budget(gigabytes)

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
        """Set every control; emits nothing. A field that is being typed in keeps what is typed.

        While the state before is held, they show that, greyed.
        """
        shown = snapshot.shown
        held = snapshot.show_before and snapshot.before is not None
        if held and shown is not None:
            snapshot = dataclasses.replace(snapshot, spec=shown.spec, view=shown.view, problem=None)
        self.setEnabled(not held)
        spec = snapshot.spec
        self._show_devices(snapshot)
        changed = spec != self._spec
        self._kv_heads.of = spec.num_heads
        self._spec = spec
        self._fields.present(snapshot)
        self.mask_controls.present(snapshot, spec)
        self.looks.present(snapshot.view)
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
        reasons = [fixed[name].reason for name in ("num_heads", "implementation") if name in fixed]
        self._reason.setText(next(iter(reasons), ""))
        self._reason.setVisible(bool(reasons))

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
        words = self.tr("what stays is × 1/(1 − p) = {factor}").format(factor=f"{1 / (1 - spec.dropout):.2f}")
        return f"{words} · {self.tr('the lesson draws')}" if lesson_draws(spec) else words

    def _heads_words(self, spec: AttentionSpec) -> str:
        return self.tr(
            "{form}: {each} each × {heads} heads = {total} · the book's wrapper calls this d_out = {each}"
        ).format(form=spec.implementation, each=spec.d_head, heads=spec.num_heads, total=spec.d_out)

    # -------------------------------------------------------------------------------------------------------- edits

    @Slot(int)
    def _on_book_d_out(self, each: int) -> None:
        if self._spec is not None:
            self._fields.edit("d_out", each * self._spec.num_heads)

    @Slot()
    def _on_reroll(self) -> None:
        if self._spec is not None:
            self._fields.edit("dropout_seed", self._spec.dropout_seed + 1)


def _device_words(device: DeviceInfo) -> str:
    memory = f", {device.total_bytes / 1e9:.0f} GB" if device.total_bytes else ""
    return f"{device.name} — {device.title}{memory}"
