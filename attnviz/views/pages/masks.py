"""The Masks page: every order side by side, the mask's own controls, and what becomes of a row that sees nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from PySide6.QtCore import QCoreApplication, Signal, Slot
from PySide6.QtWidgets import QLabel, QWidget

from attnviz.figure.marks import percentage, row_sum
from attnviz.figure.studies import gallery as told
from attnviz.figure.studies.names import row_name
from attnviz.questions import Answer, Question
from attnviz.questions.gallery import ORDERS, GalleryAnswer, GalleryQuestion
from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, SpecError, edited
from attnviz.spec.fills import fill_text
from attnviz.views.fields import Fields, muted_label
from attnviz.views.mask_controls import MaskControls, without_effect
from attnviz.views.pages.exhibits import Exhibits
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page

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
    said = percentage(share) if share >= _PERCENT_FROM else told.short_weight(share)
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
        try:
            return GalleryQuestion.of(spec, min(head, spec.num_heads - 1), None if selected is None else selected.row)
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
        if self._answer is not None and self.snapshot is not None:
            self.exhibits.show_answer(self._answer, self.snapshot.view)

    def take_failure(self, sentence: str) -> None:
        super().take_failure(sentence)
        self._answer = None
        self.exhibits.clear()

    def _show_masked_row(self, answer: GalleryAnswer) -> None:
        self._row_words.setText(told.masked_row_words(answer))
        self.masked_row.show_table(told.masked_row_table(answer))

    def _show_depths(self, answer: GalleryAnswer) -> None:
        self._depth_words.setText(told.limits_words(answer))
        self.limits.show_table(told.limits_table(answer))
        self._fill_words.setText(told.depths_words(answer))
        self.depths.show_table(told.depths_table(answer))

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
