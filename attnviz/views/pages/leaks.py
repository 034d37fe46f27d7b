"""The Leaks page: who sees whom, in the window's own attention or in a module of a person's own, and what that says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QHBoxLayout, QLabel, QLineEdit, QPushButton, QSpinBox, QWidget

from attnviz.figure.studies import leaks as told
from attnviz.module_names import names_in
from attnviz.questions import Answer, Question
from attnviz.questions.leak import GradientReading, LeakAnswer, LeakQuestion, Reading, outcome
from attnviz.session import Snapshot
from attnviz.spec import SpecError
from attnviz.views.fields import muted_label
from attnviz.views.leak_view import LeakView
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.segments import Segments


@dataclass(frozen=True, slots=True)
class ModuleWish:
    """A module of a person's own, to be checked in a process of its own."""

    file: Path
    name: str
    arguments: tuple[str, ...]
    scale: float
    tokens: int


class LeaksPage(Page):
    """The window's attention is tested when the page is looked at; a file's module when *test* is pressed.

    ``module_asked`` carries a `ModuleWish`, ``module_stopped`` says that it is to end; ``file_wanted`` that a person
    wants to choose a file, which comes by `open_file`. What the process says comes by `take_module_answer` and
    `take_module_end`.
    """

    module_asked = Signal(object)
    module_stopped = Signal()
    file_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answer: LeakAnswer | None = None
        self._file: Path | None = None
        self._own = False
        self._checking = False
        self._tested = 1.0
        """The scale that the answer in sight is of."""
        self._make_subject()
        self.verdict = QLabel()
        self.verdict.setProperty("role", "sentence")
        self.verdict.setWordWrap(True)
        self.verdict.setTextFormat(Qt.TextFormat.PlainText)
        self.body.addWidget(self.verdict)
        self._looks = QLabel()
        self._looks.setProperty("role", "second")
        self._looks.setWordWrap(True)
        self.body.addWidget(self._looks)
        self._beside = muted_label()
        self._beside.setText(self.tr("The maps beside are the window's own attention, not this module."))
        self.body.addWidget(self._beside)
        self.map = LeakView()
        self.body.addWidget(self.map)
        self._which = QComboBox()
        self._which.setToolTip(self.tr("which reading the map shows"))
        self._which.setAccessibleName(self.tr("reading of the map"))
        self._which.currentIndexChanged.connect(self._show_map)
        self.body.addWidget(self._which)
        self._slopes = muted_label()
        self.body.addWidget(self._slopes)
        self.table = NumberTable()
        self.table.setAccessibleName(self.tr("verdicts by device, dtype and scale"))
        self.body.addWidget(self.table)
        self._words = muted_label()
        self._words.setText(told.method_words())
        self.body.addWidget(self._words)
        self.body.addStretch(1)
        self.say(self.tr("Does it leak? A clean triangle of weights proves nothing: this map is made without them."))
        self._show()

    # --------------------------------------------------------------------------------------------------------- making

    def _make_subject(self) -> None:
        line = QHBoxLayout()
        self.subject = Segments([("window", self.tr("this attention")), ("module", self.tr("a module of mine"))])
        self.subject.set_value("window")
        self.subject.chosen.connect(self._on_subject)
        line.addWidget(self.subject, 1)
        self.scale = QDoubleSpinBox()
        self.scale.setRange(0.01, 1e6)
        self.scale.setValue(1.0)
        self.scale.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.scale.setPrefix(self.tr("inputs × "))
        self.scale.setDecimals(2)
        self.scale.setKeyboardTracking(False)
        self.scale.setToolTip(self.tr("the inputs are normal numbers times this; it is the scale of the verdict"))
        self.scale.setAccessibleName(self.tr("scale of the inputs"))
        self.scale.valueChanged.connect(self._on_scale)
        line.addWidget(self.scale)
        self.body.addLayout(line)
        self._module_line = QWidget()
        row = QHBoxLayout(self._module_line)
        row.setContentsMargins(0, 0, 0, 0)
        self.open = QPushButton(self.tr("Open module…"))
        self.open.setToolTip(
            self.tr("a Python file with an nn.Module class or a function; it is run in a process of its own")
        )
        self.open.clicked.connect(self.file_wanted)
        self.names = QComboBox()
        self.names.setAccessibleName(self.tr("class or function"))
        self.arguments = QLineEdit()
        self.arguments.setPlaceholderText(self.tr("arguments: n_layers=2 bias=False"))
        self.arguments.setToolTip(
            self.tr("arguments of the constructor that its names do not tell, NAME=VALUE by spaces")
        )
        self.tokens = QSpinBox()
        self.tokens.setRange(2, 256)
        self.tokens.setValue(32)
        self.tokens.setSuffix(self.tr(" tokens"))
        self.test = QPushButton(self.tr("test"))
        self.test.clicked.connect(self._on_test)
        row.addWidget(self.open)
        row.addWidget(self.names, 1)
        self.body.addWidget(self._module_line)
        self._given_line = QWidget()
        row = QHBoxLayout(self._given_line)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.arguments, 1)
        row.addWidget(self.tokens)
        row.addWidget(self.test)
        self.body.addWidget(self._given_line)

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        if self._own or not self.active:
            return
        question = self.question()
        if question is not None and self.is_new(question):
            self._answer, self._tested = None, self.scale.value()
            self._show()
            self.ask()
            if self.running:
                self._set_verdict(self.tr("Testing …"), "muted")

    def set_active(self, active: bool) -> None:
        if not active and self._answer is None:
            self._asked = None  # what was stopped before it said anything is asked again when the page comes back
        super().set_active(active)

    def question(self) -> Question | None:
        if self.snapshot is None or self._own:
            return None
        spec = self.snapshot.spec
        try:
            return LeakQuestion.of(spec, self.scale.value())
        except SpecError as error:
            self._tell_nothing(str(error))
            return None

    def own_fields(self) -> dict[str, Any]:
        return {"scale": self.scale.value()}

    def set_controls(self, question: Question) -> None:
        if not isinstance(question, LeakQuestion):
            return
        blocker = QSignalBlocker(self.scale)
        self.scale.setValue(question.scale)
        del blocker
        if self._own:
            self.subject.set_value("window")
            self._on_subject("window")

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if isinstance(answer, LeakAnswer) and not self._own:
            self._take(answer)

    def take_failure(self, sentence: str) -> None:
        if not self._own:
            self._tell_nothing(sentence)

    def _tell_nothing(self, sentence: str) -> None:
        self._answer = None
        self._show()
        self.verdict.setText(sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith(".") else "."))

    def take_module_answer(self, answer: LeakAnswer) -> None:
        """A reading of a person's own module."""
        if self._own and self._checking:
            self._progress.setRange(0, max(answer.total, 1))
            self._progress.setValue(answer.done)
            self._take(answer)

    def take_module_end(self, sentence: str) -> None:
        """The process has ended; ``sentence`` is what it says, "" where all is told."""
        self._checking = False
        self._line.hide()
        self.test.setEnabled(self._file is not None)
        answer = self._answer
        if not self._own:
            return
        if answer is None:
            self._tell_nothing(sentence or self.tr("the module said nothing that could be read"))
            return
        self._show()
        if not answer.finished and outcome(answer, self._tested) in ("clean", "untested"):
            why = sentence or self.tr("it said no more")
            self._set_verdict(self.tr("It ended half-way: {why}.").format(why=why.rstrip(".")), "muted")

    def _take(self, answer: LeakAnswer) -> None:
        self._answer = answer
        self._show()

    def _show(self) -> None:
        answer = self._answer
        self._module_line.setVisible(self._own)
        self._given_line.setVisible(self._own)
        self._beside.setVisible(self._own and answer is not None)
        for widget in (self.map, self.table, self._words):
            widget.setVisible(answer is not None)
        self._which.setVisible(len(self._maps()) > 1)
        self._slopes.setText("" if answer is None or answer.gradient is None else told.gradient_words(answer.gradient))
        self._slopes.setVisible(bool(self._slopes.text()))
        if answer is None:
            waiting = self.tr("Testing …") if self._checking else ""
            nothing = self.tr("Open a Python file with an attention of your own.") if self._own and not waiting else ""
            self._set_verdict(waiting or nothing, "muted")
            self._looks.setText("")
            return
        self._set_verdict(*told.verdict_words(answer, self._tested, self._tokens()))
        self._looks.setText(told.looks_words(answer))
        self._looks.setVisible(bool(answer.pattern))
        self._show_readings()
        self._show_map()
        self.table.show_table(told.readings_table(answer))

    def _set_verdict(self, words: str, role: str) -> None:
        self.verdict.setText(words)
        if self.verdict.property("verdict") != role:
            self.verdict.setProperty("verdict", role)
            self.verdict.style().unpolish(self.verdict)
            self.verdict.style().polish(self.verdict)

    def _maps(self) -> list[Reading | GradientReading]:
        return [] if self._answer is None else told.maps_of(self._answer)

    def _show_readings(self) -> None:
        names = [
            self.tr("by gradient · {dtype}").format(dtype=r.dtype)
            if isinstance(r, GradientReading)
            else f"{r.device} · {r.dtype} · × {r.scale:g}"
            for r in self._maps()
        ]
        if [self._which.itemText(n) for n in range(self._which.count())] == names:
            return
        chosen = max(self._which.currentIndex(), 0)
        blocked = self._which.blockSignals(True)
        self._which.clear()
        self._which.addItems(names)
        self._which.setCurrentIndex(min(chosen, len(names) - 1))
        self._which.blockSignals(blocked)

    @Slot()
    def _show_map(self) -> None:
        shown = self._maps()
        place = self._which.currentIndex()
        reading = shown[place] if 0 <= place < len(shown) else None
        self.map.show_reading(reading, self._tokens())

    def _tokens(self) -> tuple[str, ...]:
        """Names of the tokens that are tested: the window's own."""
        picture = self.snapshot.picture if self.snapshot is not None and not self._own else None
        outline = picture.outline if picture is not None else None
        return tuple(outline.tokens) if outline is not None else ()

    # ----------------------------------------------------------------------------------------------------------- hands

    @Slot(str)
    def _on_subject(self, subject: str) -> None:
        self._own = subject == "module"
        self.call_off()
        self._answer, self._asked = None, None
        self._show()
        if not self._own and self.snapshot is not None:
            self.present(self.snapshot)

    @Slot()
    def _on_scale(self) -> None:
        if not self._own and self.snapshot is not None:
            self.present(self.snapshot)

    def show_module(self) -> None:
        """Turn to a module of a person's own."""
        self.subject.set_value("module")
        if not self._own:
            self._on_subject("module")

    def open_file(self, path: Path) -> None:
        """Offer what ``path`` holds, without running it."""
        self.show_module()
        try:
            names = names_in(path)
        except ValueError as error:
            self._tell_nothing(str(error))
            return
        self._file = path
        self.open.setText(path.name)
        self.names.clear()
        self.names.addItems(names)
        self.test.setEnabled(bool(names))
        self._answer = None
        self._show()
        if not names:
            self._tell_nothing(self.tr("{name} has no class and no function to test").format(name=path.name))
        else:
            self.verdict.setText(self.tr("Choose what to test. Testing runs the file.").format(name=path.name))

    @Slot()
    def _on_test(self) -> None:
        if self._file is None or not self.names.currentText():
            return
        self.call_off()
        self._answer, self._tested = None, self.scale.value()
        self._checking = True
        self._progress.setRange(0, 0)
        self._line.show()
        self.test.setEnabled(False)
        self._show()
        given = tuple(self.arguments.text().split())
        self.module_asked.emit(
            ModuleWish(self._file, self.names.currentText(), given, self.scale.value(), self.tokens.value())
        )

    @Slot()
    def call_off(self) -> None:
        if self.running and self._answer is None and not self._own:
            super().call_off()
            self._tell_nothing(self.tr("stopped: come back to this page, or change something, to test again"))
            return
        super().call_off()
        if self._checking:
            self._checking = False
            self._line.hide()
            self.test.setEnabled(True)
            self.module_stopped.emit()
            if self._answer is None:
                self._tell_nothing(self.tr("stopped"))
