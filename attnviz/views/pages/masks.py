"""The Masks page: every order side by side, the mask's own controls, and what becomes of a row that sees nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import QCoreApplication, Qt, Slot
from PySide6.QtWidgets import QComboBox, QFormLayout, QLabel, QVBoxLayout, QWidget

from attnviz.figure.marks import cell_number, percentage, row_sum
from attnviz.questions import Answer, Question
from attnviz.questions.gallery import DTYPES, ORDERS, FillDepth, GalleryAnswer, GalleryQuestion, MaskedRow
from attnviz.session import Snapshot
from attnviz.spec import (
    SHAPE_FORMS,
    AnyShape,
    AttentionSpec,
    SpecError,
    edited,
    fill_words,
    parse_shape,
    shape_text,
)
from attnviz.spec.fills import number_words
from attnviz.views.fields import Fields, muted_label
from attnviz.views.pages.exhibits import Exhibits
from attnviz.views.pages.names import row_name
from attnviz.views.pages.number_table import Entry, NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.segments import Segments

_FILLS = (-math.inf, -1e9, -1e6, -1e4, 0.0)
_PERCENT_FROM = 0.005  # smaller shares are written as powers of ten
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_NAMED = {-math.inf: "−∞", -1e9: "−10⁹", -1e6: "−10⁶", -1e4: "−10⁴", 0.0: "0"}


def _tr(text: str) -> str:
    return QCoreApplication.translate("MasksPage", text)


def fill_text(fill: float) -> str:
    """A fill as it is written here: −∞, −10⁹, −17.3."""
    return _NAMED.get(fill) or f"{fill:,.10g}".replace("-", "−")


def read_fill(text: str) -> float:
    """The number that ``text`` names: −∞, -inf, −10⁹, -1e9, −17.3. Raises `SpecError` for anything else."""
    plain = text.strip().replace("−", "-").replace(",", "").replace("∞", "inf")
    base, raised = plain.rstrip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻"), ""
    if base != plain and base in ("10", "-10"):
        raised = plain[len(base) :].translate(_RAISED)
        plain = f"{base[:-2]}1e{raised}"
    try:
        fill = float(plain)
    except ValueError:
        raise SpecError("fill", f"fill is {text!r}: give −∞ or a number, such as −10⁹ or -17.3") from None
    return fill


def order_of(spec: AttentionSpec) -> str | None:
    """Which of the gallery's orders is the spec's own mask; None for another fill or an added mask."""
    if spec.mask in ("none", "multiply", "three-step"):
        return spec.mask
    if spec.mask == "neg-inf":
        return {-math.inf: "neg-inf", 0.0: "fill-0"}.get(spec.fill)
    return None


def in_use_words(snapshot: Snapshot) -> str:
    """What the window's own mask leaves the hidden keys of the selected row; "" while that is not known."""
    spec, row = snapshot.spec, snapshot.story.now if snapshot.story is not None else None
    outline = snapshot.picture.outline if snapshot.picture is not None else None
    if row is None or row.spec != spec or outline is None or "weights" not in row.stages:
        return ""
    weights, hidden = row.stages["weights"], row.hidden
    name = row_name(row.row, outline.tokens, outline.n_queries)
    if not hidden.any():
        return _tr("In use now: row {row} sees every key, so no mask can change it.").format(row=name)
    if np.isnan(weights).any():
        return _tr("In use now: row {row} is NaN.").format(row=name)
    share, total = float(weights[hidden].sum()), float(weights.sum())
    key = int(hidden.argmax())
    one = outline.tokens[key] if hidden.sum() == 1 and outline.tokens else ""
    one = _tr("key {n}").format(n=one) if one == str(key) else one
    said = percentage(share) if share >= _PERCENT_FROM else _short(share)
    words = {"fill": fill_text(spec.fill), "share": said, "row": name, "n": f"{hidden.sum():,}", "word": one}
    if share > 0:
        if spec.mask == "add":
            sentence = _tr("With {fill} added, the {n} hidden keys still take {share} of row {row}.")
            if one:
                sentence = _tr("With {fill} added, the hidden {word} still takes {share} of row {row}.")
        elif spec.fills:
            sentence = _tr("Filled with {fill}, the {n} hidden keys still take {share} of row {row}.")
            if one:
                sentence = _tr("Filled with {fill}, the hidden {word} still takes {share} of row {row}.")
        else:
            sentence = _tr("Without a mask row {row} gives {share} to {n} keys that it must not see.")
            if one:
                sentence = _tr("Without a mask row {row} gives {share} to {word}, which it must not see.")
    else:
        sentence = _tr("In use now: what is hidden weighs exactly 0 in row {row}, whose Σ is {total}.")
        if not row_sum(total)[1]:
            sentence = _tr("In use now: what is hidden weighs 0 in row {row}, but Σ is {total}: it is not divided.")
    return sentence.format(**words, total=row_sum(total)[0])


class MasksPage(Page):
    """A click on a map of the gallery makes it the window's mask."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._asked: Question | None = None
        self._answer: GalleryAnswer | None = None
        self.exhibits = Exhibits()
        self.exhibits.chosen.connect(self._on_chosen)
        self.body.addWidget(self.exhibits)
        self._in_use = QLabel()
        self._in_use.setWordWrap(True)
        self.body.addWidget(self._in_use)
        self._make_limits()
        self._fields = Fields(self, _without_effect)
        self._fields.spec_edited.connect(self.spec_edited)
        self._make_controls()
        self._make_tables()
        self.body.addStretch(1)
        self._say_question()

    # --------------------------------------------------------------------------------------------------------- making

    def _heading(self, text: str) -> None:
        label = QLabel(text)
        label.setProperty("role", "heading")
        label.setContentsMargins(0, 8, 0, 0)
        label.setWordWrap(True)
        self.body.addWidget(label)

    def _make_limits(self) -> None:
        self._heading(self.tr("HOW DEEP MUST A FILL LIE?"))
        self._depth_words = muted_label()
        self.body.addWidget(self._depth_words)
        self.limits = NumberTable()
        self.limits.setAccessibleName(self.tr("how deep a fill must lie, by dtype"))
        self.body.addWidget(self.limits)

    def _make_controls(self) -> None:
        self._heading(self.tr("THE WINDOW'S MASK"))
        choices = [
            ("none", self.tr("none")), ("three-step", self.tr("three-step")), ("neg-inf", "−∞"),
            ("multiply", self.tr("multiply")), ("add", self.tr("add")),
        ]  # fmt: skip
        self.mode = Segments(choices)
        tips = {
            "none": self.tr("every word sees all"),
            "three-step": self.tr("softmax, × triangle, ÷ row sum"),
            "neg-inf": self.tr("the fill over hidden scores, then the softmax"),
            "multiply": self.tr("the mistake: softmax, × triangle, and no division"),
            "add": self.tr("scores + M, where M is 0 or the fill, then the softmax"),
        }
        for value, tip in tips.items():
            self.mode.buttons[value].setToolTip(tip)
        row = QVBoxLayout()
        self._fields.add("mask", self.mode, self.mode.chosen, self.mode.set_value, words=self.tr("mask"), into=row)
        self.body.addLayout(row)
        form = QFormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.DontWrapRows)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self.fill = QComboBox()
        self.fill.setEditable(True)
        self.fill.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.fill.addItems([fill_text(fill) for fill in _FILLS])
        self.fill.setToolTip(self.tr("what hidden scores are filled with: choose one, or type any number"))
        line = self.fill.lineEdit()
        assert line is not None  # noqa: S101 (it is editable)
        line.setMaxLength(24)
        line.editingFinished.connect(self._on_fill_typed)
        self.fill.textActivated.connect(self._on_fill)
        self._fields.add_row("fill", self.tr("fill"), form, self.fill, self._show_fill)
        self._held = muted_label()
        form.addRow(self._held)
        tip = self.tr("which keys a query may see: {forms}").format(forms=SHAPE_FORMS)
        self._fields.add_line(
            "mask_shape", self.tr("shape"), form, _read_shape, tip, write=shape_text, longest=1000
        )  # fmt: skip
        self.body.addLayout(form)
        boolean = muted_label()
        boolean.setText(
            self.tr(
                "A boolean mask: in scaled_dot_product_attention, and in a mask's file here, True keeps a cell; "
                "in nn.MultiheadAttention True drops it."
            )
        )
        self.body.addWidget(boolean)

    def _make_tables(self) -> None:
        self._heading(self.tr("A ROW THAT SEES NOTHING: ITS ANSWERS"))
        self._row_words = muted_label()
        self.body.addWidget(self._row_words)
        self.masked_row = NumberTable()
        self.masked_row.setAccessibleName(self.tr("a fully masked row"))
        self.body.addWidget(self.masked_row)
        self._heading(self.tr("WHAT A HIDDEN CELL STILL WEIGHS, FILL BY FILL"))
        self._fill_words = muted_label()
        self.body.addWidget(self._fill_words)
        self.depths = NumberTable()
        self.depths.setAccessibleName(self.tr("weight of a hidden cell by fill and dtype"))
        self.body.addWidget(self.depths)

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        self._fields.present(snapshot)
        spec = snapshot.spec
        self.exhibits.set_present(order_of(spec))
        self._held.setText(fill_words(spec) or "")
        self._held.setVisible(bool(self._held.text()))
        self._in_use.setText(in_use_words(snapshot))
        self._in_use.setVisible(bool(self._in_use.text()))
        if self._answer is not None:
            self._show_depths(self._answer)
        question = self.question()
        if self.active and question != self._asked:
            self._asked = question
            if question is None:
                self.exhibits.clear()
            self._say_question()
            self.ask()

    def set_active(self, active: bool) -> None:
        if not active and self.running:
            self._asked = None  # what was called off is asked again
        super().set_active(active)

    def question(self) -> Question | None:
        if self.snapshot is None:
            return None
        spec, head = self.snapshot.spec, self.snapshot.view.head or 0
        selected = self.snapshot.selected
        try:  # what the gallery sets itself, and what comes after the weights, asks nothing new
            plain = edited(
                spec, mask="neg-inf", fill=-math.inf, top_k=None, dropout=0.0, dropout_seed=spec.seed, training=False
            )
            return GalleryQuestion(
                spec=plain, head=min(head, spec.num_heads - 1), row=None if selected is None else selected.row
            )
        except SpecError as error:
            self.say(str(error))
            return None

    def _say_question(self) -> None:
        self.say(
            self.tr(
                "Two lessons, two orders: one masks before the softmax, the other after it. Who is right? Both, "
                "if the second divides again. Look at Σ."
            )
        )

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if not isinstance(answer, GalleryAnswer) or self.snapshot is None:
            return
        self._answer = answer
        self.exhibits.show_answer(answer, answer.question.spec.mask_shape, self.snapshot.view.colours)
        self._show_masked_row(answer)
        self._show_depths(answer)

    def take_failure(self, sentence: str) -> None:
        super().take_failure(sentence)
        self.exhibits.clear()

    def _show_masked_row(self, answer: GalleryAnswer) -> None:
        scores = [f"{score:.2f}".rstrip("0").rstrip(".").replace("-", "−") for score in answer.scores]
        self._row_words.setText(
            self.tr("Scores {scores}, all of them hidden, in {dtype}:").format(
                scores="  ".join(scores), dtype=answer.question.spec.dtype
            )
        )
        names = {
            "fill -inf": self.tr("fill −∞"), "fill -1e9": self.tr("fill −10⁹"), "add -1e9": self.tr("add −10⁹"),
            "sdpa": self.tr("SDPA, boolean"),
        }  # fmt: skip
        lines: list[list[Entry | str]] = [
            [self._named(row, names, answer), *map(_weight, row.weights.tolist())] for row in answer.masked_row
        ]
        self.masked_row.show_lines(["", *scores], lines)

    def _named(self, row: MaskedRow, names: Mapping[str, str], answer: GalleryAnswer) -> Entry:
        dtype = "" if row.dtype == answer.question.spec.dtype else f" · {row.dtype}"
        if row.refused:
            tip = self.tr("torch's masked_fill refuses this number in {dtype}; cast, it is −∞").format(dtype=row.dtype)
            return Entry(f"{names[row.how]} = −∞{dtype}", "ink", tip)
        return Entry(names[row.how] + dtype)

    def _show_depths(self, answer: GalleryAnswer) -> None:
        assert self.snapshot is not None  # noqa: S101 (asked for one)
        lit = 1 + DTYPES.index(self.snapshot.spec.dtype)
        largest = _number(answer.largest)
        self._depth_words.setText(
            self.tr(
                "A hidden cell weighs exactly 0 where its fill lies further below the row's largest visible score "
                "(here {largest}) than this:"
            ).format(largest=largest)
        )
        depths = [_number(answer.thresholds[dtype]) for dtype in DTYPES]
        limits = [_number(answer.limits[dtype]) for dtype in DTYPES]
        self.limits.show_lines(
            ["", *DTYPES],
            [[self.tr("how far below"), *depths], [self.tr("so a fill here below"), *limits]],
            lit=lit,
        )
        self._fill_words.setText(
            self.tr("Beside a visible score of {largest}. Red still weighs something, blue is each dtype's first 0.")
            .format(largest=largest)
        )  # fmt: skip
        firsts, lines = answer.first_zeros, []
        for depth in answer.depths:
            if depth.dtype == DTYPES[0]:
                lines.append([Entry(fill_text(depth.fill)), Entry(_number(depth.below), "muted")])
            lines[-1].append(self._depth(depth, first=firsts.get(depth.dtype) == depth.fill))
        self.depths.show_lines([self.tr("fill"), self.tr("lies below"), *DTYPES], lines, lit=lit + 1)

    def _depth(self, depth: FillDepth, *, first: bool) -> Entry:
        held = "" if depth.held == depth.fill else self.tr("held as {number}").format(number=fill_text(depth.held))
        if depth.refused:
            held = self.tr("masked_fill refuses it; cast, it is {number}").format(number=fill_text(depth.held))
        if first:
            return Entry(self.tr("first 0"), "accent", held)
        return Entry(_short(depth.weight), "leak" if depth.weight > 0 else "muted", held)

    # ----------------------------------------------------------------------------------------------------------- edits

    @Slot(str)
    def _on_chosen(self, order: str) -> None:
        if self.snapshot is None:
            return
        changes: dict[str, Any] = dict(ORDERS[order])
        try:
            self.spec_edited.emit(edited(self.snapshot.spec, **changes))
        except SpecError as error:
            self.say(str(error))

    def _show_fill(self, fill: float) -> None:
        if self.fill.currentText() != fill_text(fill):
            self.fill.setEditText(fill_text(fill))

    @Slot(str)
    def _on_fill(self, text: str) -> None:
        try:
            self._fields.edit("fill", read_fill(text))
        except SpecError as error:
            self._fields.say("fill", str(error))

    @Slot()
    def _on_fill_typed(self) -> None:
        line = self.fill.lineEdit()
        if line is not None and line.isModified():
            line.setModified(False)
            self._on_fill(line.text())


def _without_effect(spec: AttentionSpec) -> dict[str, str]:
    reasons = {}
    if not spec.fills:
        reasons["fill"] = "only the masks −∞ and add fill"
    if spec.mask == "none":
        reasons["mask_shape"] = "nothing is masked"
    return reasons


def _read_shape(text: str) -> AnyShape:
    shape = parse_shape(text)
    if shape is None:
        forms = SHAPE_FORMS.removesuffix(" or FILE.npy")
        raise SpecError("mask_shape", f"mask_shape is {text!r}: give {forms}; a file is given on the command line")
    return shape


def _weight(weight: float) -> str:
    if np.isnan(weight):
        return "NaN"
    return cell_number(weight, 4)


def _short(weight: float) -> str:
    if weight == 0:
        return "0"
    return cell_number(weight, 2) if weight >= 0.005 else f"{weight:.0e}".replace("e-0", "e−").replace("e-", "e−")


def _number(number: float) -> str:
    """A depth or a limit in three digits: 17.3, −102, 10⁹, ∞."""
    if abs(number) >= 1e4:
        return number_words(float(f"{number:.1g}"))
    return fill_text(round(number, 1 if abs(number) < 100 else 0) + 0.0)
