"""The Forms page: one attention written in six ways, what their outputs differ by, and what each costs here."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QLabel, QPushButton, QSpinBox, QWidget

from attnviz.figure.studies import forms as told
from attnviz.questions import Answer, Question
from attnviz.questions.forms import MOST_TOKENS, MOST_WIDTH, FormsAnswer, FormsQuestion, said_seconds
from attnviz.session import Snapshot
from attnviz.spec import DType, SpecError
from attnviz.views.count_bars import CountBars
from attnviz.views.fields import DivisorSpin, muted_label
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.segments import Segments


class FormsPage(Page):
    """Run compares, then times. Sizes are the page's own; the device is the window's."""

    asks_by_hand = True

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.answers: dict[FormsQuestion, FormsAnswer] = {}
        """What stands on the page, and what the same sizes gave with the other memory."""
        self._shown: FormsAnswer | None = None
        self._memory = FormsQuestion().memory
        self._make_choices()
        self._sizes = muted_label()
        self._sizes.hide()
        self.body.addWidget(self._sizes)
        self.same = NumberTable()
        self.same.setAccessibleName(self.tr("what the outputs of the forms differ by"))
        self.verdict = QLabel()
        self.costs = NumberTable()
        self.costs.setAccessibleName(self.tr("time and memory of a pass of each form"))
        self.bars = CountBars()
        self.bars.setAccessibleName(self.tr("time of a pass, form by form"))
        self.winner = QLabel()
        self._pages = muted_label()
        for label in (self.verdict, self.winner):
            label.setProperty("role", "second")
            label.setWordWrap(True)
        heading = self.heading(self.tr("THE SAME NUMBERS?"))
        self.body.addWidget(self.same)
        self.body.addWidget(self.verdict)
        costs = self.heading(self.tr("WHAT A PASS COSTS HERE"))
        for widget in (self.winner, self.bars, self._pages, self.costs):
            self.body.addWidget(widget)
        self._found = (heading, self.same, self.verdict)
        self._timed = (costs, self.winner, self.bars, self._pages, self.costs)
        self.body.addStretch(1)
        for widget in (*self._found, *self._timed):
            widget.hide()
        self.say(
            self.tr(
                "One attention, six ways to write it, with the same weights copied into each. Are the numbers the "
                "same, and which is quick on this machine?"
            )
        )

    # --------------------------------------------------------------------------------------------------------- making

    def _make_choices(self) -> None:
        usual = FormsQuestion()
        self.tokens, self.heads, self.d_model = QSpinBox(), DivisorSpin(), QSpinBox()
        self.dtype = QComboBox()
        self.dtype.addItems(get_args(DType))
        self.dtype.setCurrentText(usual.dtype)
        grid = QGridLayout()
        grid.setHorizontalSpacing(10)
        spins: tuple[tuple[QSpinBox, str, int, int], ...] = (
            (self.tokens, self.tr("tokens"), usual.tokens, MOST_TOKENS),
            (self.heads, self.tr("heads"), usual.num_heads, MOST_WIDTH),
            (self.d_model, "d_model", usual.d_model, MOST_WIDTH),
        )
        for place, (spin, words, value, most) in enumerate(spins):
            spin.setRange(1, most)
            spin.setValue(value)
            spin.setGroupSeparatorShown(True)
            spin.valueChanged.connect(self._on_choice)
            self._add_choice(grid, place, words, spin)
        self.heads.of = usual.d_model
        self.d_model.setToolTip(self.tr("the dimensions of a token, which all heads share"))
        self.tokens.setSingleStep(64)
        self.d_model.setSingleStep(64)
        self.dtype.currentTextChanged.connect(self._on_choice)
        self._add_choice(grid, 3, self.tr("dtype"), self.dtype)
        self.body.addLayout(grid)
        line = QHBoxLayout()
        self.memory = Segments((("fresh", self.tr("fresh memory")), ("kept", self.tr("kept memory"))))
        self.memory.set_value(self._memory)
        self.memory.setAccessibleName(self.tr("memory"))
        self.memory.buttons["fresh"].setToolTip(
            self.tr("as the system hands it out: a large tensor is new pages of memory each time")
        )
        self.memory.buttons["kept"].setToolTip(self.tr("the allocator keeps what it once had: no new pages"))
        self.memory.chosen.connect(self._on_memory)
        self.run = QPushButton(self.tr("Run"))
        self.run.setToolTip(self.tr("compare all forms, then time each seven times, in turn"))
        self.run.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.run.clicked.connect(self._on_run)
        line.addWidget(self.run)
        line.addWidget(self.memory)
        line.addStretch(1)
        self.body.addLayout(line)
        self.problem = muted_label()
        self.problem.setProperty("role", "problem")
        self.problem.hide()
        self.body.addWidget(self.problem)

    @staticmethod
    def _add_choice(grid: QGridLayout, place: int, words: str, editor: QWidget) -> None:
        label = QLabel(words)
        label.setBuddy(editor)
        editor.setAccessibleName(words)
        row, column = divmod(place, 2)
        grid.addWidget(label, row, 2 * column)
        grid.addWidget(editor, row, 2 * column + 1)
        grid.setColumnStretch(2 * column + 1, 1)

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        self._refresh()

    def question(self) -> Question | None:
        try:
            return self._wanted()
        except SpecError:
            return None

    def _wanted(self) -> FormsQuestion:
        return FormsQuestion(**self.own_fields())

    def own_fields(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {"dtype": self.dtype.currentText(), "memory": self._memory}
        if self.snapshot is not None:
            chosen["device"] = self.snapshot.spec.device
        chosen |= {"tokens": self.tokens.value(), "num_heads": self.heads.value(), "d_model": self.d_model.value()}
        return chosen

    def set_controls(self, question: Question) -> None:
        if not isinstance(question, FormsQuestion):
            return
        for spin, value in (
            (self.tokens, question.tokens), (self.d_model, question.d_model), (self.heads, question.num_heads),
        ):  # fmt: skip
            spin.setValue(value)
        self.dtype.setCurrentText(question.dtype)
        self._memory = question.memory
        self.memory.set_value(self._memory)
        self._refresh()

    def _refresh(self) -> None:
        """Say what cannot be run, and let nobody run it."""
        self.heads.of = self.d_model.value()
        sentence = ""
        try:
            self._wanted()
        except SpecError as error:
            sentence = str(error)
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))
        self.run.setText(self.tr("Stop") if self.running else self.tr("Run"))
        self.run.setEnabled(self.running or not sentence)

    @Slot()
    def _on_choice(self) -> None:
        self._refresh()

    @Slot(str)
    def _on_memory(self, value: str) -> None:
        self._memory = "kept" if value == "kept" else "fresh"
        self._refresh()

    @Slot()
    def _on_run(self) -> None:
        if self.running:
            self.call_off()
        else:
            self.ask()

    def ask(self) -> None:
        super().ask()
        self._refresh()

    @Slot()
    def call_off(self) -> None:
        super().call_off()
        self._refresh()

    def take_end(self) -> None:
        super().take_end()
        self._refresh()

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if not isinstance(answer, FormsAnswer):
            return
        asked = answer.question
        other = msgspec.structs.replace(asked, memory="kept" if asked.memory == "fresh" else "fresh")
        self.answers = {question: one for question, one in self.answers.items() if question == other and one.rounds} | {
            asked: answer
        }
        self._shown = answer
        self._sizes.setText(told.sizes_words(answer))
        self._sizes.show()
        self.same.show_table(told.same_table(answer))
        self.verdict.setText(told.verdict_words(answer))
        measured = any(form.peak_bytes >= 0 for form in answer.forms)
        self.costs.show_table(told.costs_table(answer))
        timed = answer.rounds > 0
        if timed:
            self._show_times(answer, self.answers.get(other))
        for found in self._found:
            found.show()
        for part in self._timed:
            part.setVisible(timed or (measured and part in (self._timed[0], self.costs)))
        self._pages.setVisible(timed and bool(self._pages.text()))

    def _show_times(self, answer: FormsAnswer, other: FormsAnswer | None) -> None:
        self.bars.show_counts(told.times_of(answer, other))
        times = (f"{form.name}: {said_seconds(form.seconds)}" for form in answer.forms)
        self.bars.setAccessibleDescription(" · ".join(times))
        self.winner.setText(told.winner_words(answer))
        self._pages.setText("" if other is None else told.pages_words(answer, other))
