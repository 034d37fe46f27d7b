"""The Masks page: every order side by side, the mask's own controls, and what becomes of a row that sees nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import QCoreApplication, Signal, Slot
from PySide6.QtWidgets import QLabel, QWidget

from attnviz.figure.marks import cell_number, percentage, row_sum
from attnviz.questions import Answer, Question
from attnviz.questions.gallery import DTYPES, ORDERS, FillDepth, GalleryAnswer, GalleryQuestion, MaskedRow
from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, SpecError, edited
from attnviz.spec.fills import number_words
from attnviz.views.fields import Fields, muted_label
from attnviz.views.mask_controls import MaskControls, without_effect
from attnviz.views.pages.exhibits import Exhibits
from attnviz.views.pages.names import row_name
from attnviz.views.pages.number_table import Entry, NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.typed_values import fill_text

_PERCENT_FROM = 0.005  # smaller shares are written as powers of ten


def _tr(text: str) -> str:
    return QCoreApplication.translate("MasksPage", text)


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
    """A click on a map of the gallery makes it the window's mask. ``draw_mask_asked``: it is to be drawn on the map."""

    draw_mask_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answer: GalleryAnswer | None = None
        self.exhibits = Exhibits()
        self.exhibits.chosen.connect(self._on_chosen)
        self.body.addWidget(self.exhibits)
        self.name_part("exhibits", self.exhibits)
        self.name_part("neg-inf", self.exhibits.cards["neg-inf"])
        self._in_use = QLabel()
        self._in_use.setWordWrap(True)
        self.body.addWidget(self._in_use)
        self._make_limits()
        self._fields = Fields(self, without_effect)
        self._fields.spec_edited.connect(self.spec_edited)
        self._make_controls()
        self._make_tables()
        self.body.addStretch(1)
        self._say_question()

    # --------------------------------------------------------------------------------------------------------- making

    def _make_limits(self) -> None:
        heading = self.heading(self.tr("HOW DEEP MUST A FILL LIE?"))
        self._depth_words = muted_label()
        self.body.addWidget(self._depth_words)
        self.limits = NumberTable()
        self.limits.setAccessibleName(self.tr("how deep a fill must lie, by dtype"))
        self.body.addWidget(self.limits)
        self.name_part("depths", heading, self.limits)

    def _make_controls(self) -> None:
        heading = self.heading(self.tr("THE WINDOW'S MASK"))
        self.controls = MaskControls(self._fields)
        self.controls.draw_asked.connect(self.draw_mask_asked)
        self.body.addWidget(self.controls)
        self.name_part("controls", heading, self.controls)

    def _make_tables(self) -> None:
        heading = self.heading(self.tr("A ROW THAT SEES NOTHING: ITS ANSWERS"))
        self._row_words = muted_label()
        self.body.addWidget(self._row_words)
        self.masked_row = NumberTable()
        self.masked_row.setAccessibleName(self.tr("a fully masked row"))
        self.body.addWidget(self.masked_row)
        self.name_part("row", heading, self.masked_row)
        heading = self.heading(self.tr("WHAT A HIDDEN CELL STILL WEIGHS, FILL BY FILL"))
        self._fill_words = muted_label()
        self.body.addWidget(self._fill_words)
        self.depths = NumberTable()
        self.depths.setAccessibleName(self.tr("weight of a hidden cell by fill and dtype"))
        self.body.addWidget(self.depths)
        self.name_part("fills", heading, self.depths)

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        self._fields.present(snapshot)
        spec = snapshot.spec
        self.exhibits.set_present(order_of(spec))
        self.controls.present(snapshot, spec)
        self._in_use.setText(in_use_words(snapshot))
        self._in_use.setVisible(bool(self._in_use.text()))
        question = self.question()
        if self.is_new(question):
            if question is None:
                self._answer = None
                self.exhibits.clear()
            self._say_question()
            self.ask()

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
                "Two orders: one masks before the softmax, the other after it. Who is right? Look at Σ, and at how "
                "far each map is from the −∞ one."
            )
        )

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if not isinstance(answer, GalleryAnswer) or self.snapshot is None:
            return
        known, self._answer = self._answer, answer
        self.show_look()
        if known is None or known.depths is not answer.depths:  # a question's answers differ in their exhibits alone
            self._show_masked_row(answer)
            self._show_depths(answer)

    def show_look(self) -> None:
        answer = self._answer
        if answer is not None:
            scale = self.scale_of(answer.scale, len(answer.tokens))
            self.exhibits.show_answer(answer, answer.question.spec.mask_shape, scale, self.colours)

    def take_failure(self, sentence: str) -> None:
        super().take_failure(sentence)
        self._answer = None
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
        lit = 1 + DTYPES.index(answer.question.spec.dtype)
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


def _weight(weight: float) -> str:
    if np.isnan(weight):
        return "NaN"
    return cell_number(weight, 4)


def _short(weight: float) -> str:
    if weight == 0:
        return "0"
    return cell_number(weight, 2) if weight >= 0.005 else f"{weight:.0e}".replace("e-0", "e−").replace("e-", "e−")


def _number(number: float) -> str:
    """A depth or a limit to a hundredth: 17.33, −101.97, 10⁹, ∞."""
    if abs(number) >= 1e4:
        return number_words(float(f"{number:.1g}"))
    return fill_text(round(number, 2) + 0.0)
