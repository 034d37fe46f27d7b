"""A guided lesson in a window: each step's picture, page and question, and the answers that a hand gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QLocale, QObject, QSettings, Signal, Slot
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QFileDialog, QLineEdit, QPlainTextEdit

from attnviz import lesson_files, measures
from attnviz.controller import Controller
from attnviz.frames import Failure
from attnviz.guide import Guide, GuideState, Verdict
from attnviz.questions import Answer, Question
from attnviz.session import Cell, Session
from attnviz.spec import AttentionSpec, SpecError, View
from attnviz.views.main_window import MainWindow
from attnviz.views.pages.page import Page

FIRST_LESSON: Final = "cat-eats-fish"
_LANGUAGES: Final = ("en", "zh")


@dataclass(slots=True)
class _Study:
    """What a page has asked of its study last, and what came of it so far."""

    page: Page
    question: Question
    answer: Answer | None = None

    def is_about(self, spec: AttentionSpec) -> bool:
        """Whether the page would ask just this about ``spec``, or asks about no spec at all."""
        fields = (getattr(self.question, name) for name in self.question.__struct_fields__)
        if not any(isinstance(value, AttentionSpec) for value in fields):
            return True
        seen = self.page.snapshot
        return seen is not None and seen.spec == spec and self.page.question() == self.question


class Teaching(QObject):
    """Plays a lesson in one window: the window's own controls stay as they are. Thread: the GUI's.

    ``changed`` says that a step, a verdict or the language is another, or that the lesson was left.
    """

    changed = Signal()

    def __init__(
        self, window: MainWindow, controller: Controller, session: Session, settings: QSettings, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window, self._controller, self._session, self._settings = window, controller, session, settings
        self._guide: Guide | None = None
        self._name = FIRST_LESSON
        self._studies: dict[str, _Study] = {}
        self._coming: tuple[AttentionSpec, View] | None = None
        self._first: tuple[AttentionSpec, View] | None = None  # what was asked for, that it may come behind
        self._home: tuple[AttentionSpec, View] | None = None  # what stood before the lesson began
        self._to_select: Cell | None = None
        self._to_begin = self._was_elsewhere = False
        card = window.lesson_card
        card.step_asked.connect(self.go_to)
        card.answered.connect(self._on_answered)
        card.shown_asked.connect(self._on_shown_asked)
        card.left.connect(self.leave)
        card.next_lesson_asked.connect(self._on_next_lesson)
        card.language_chosen.connect(self._on_language)
        controller.settled.connect(self._on_settled)
        controller.snapshot_changed.connect(self._on_snapshot)
        window.side.page_made.connect(self._on_page_made)
        for page in window.side.pages.values():
            self._on_page_made(page)
            question = page.question() if page.running or page.latest is not None else None
            if question is not None:
                self._studies[question.name] = _Study(page, question, page.latest)

    @property
    def state(self) -> GuideState | None:
        """The step that is being played, None outside a lesson."""
        return None if self._guide is None else self._guide.state

    @property
    def is_under_way(self) -> bool:
        """Whether the step's own picture, or its selected cell, is still to come."""
        return self._coming is not None or self._to_select is not None

    @property
    def elsewhere(self) -> bool:
        """Whether another picture than the step's stands there, as last shown."""
        return self._was_elsewhere

    # ------------------------------------------------------------------------------------------------------- playing

    def start(self, name: str = FIRST_LESSON, step: str | None = None) -> None:
        """Play a lesson of ours from its beginning, or from a step."""
        self._name = name
        self._play(lesson_files.built_in(name), step)

    def play(self, lesson: str, step: str | None = None) -> None:
        """Play a lesson by its name or its file's path, from a step."""
        if lesson in lesson_files.names():
            self.start(lesson, step)
        else:
            self.open_file(Path(lesson), step)

    def open_file(self, path: Path, step: str | None = None) -> None:
        """Play a teacher's lesson; a broken one is said in the banner with its line."""
        try:
            script = lesson_files.read(path)
        except lesson_files.LessonProblem as problem:
            self._say(problem.sentence)
        else:
            self._play(script, step)

    @Slot()
    def ask_open(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self._window, self.tr("Open a lesson"), "", self.tr("Lessons (*.toml)")
        )  # fmt: skip
        if path:
            self.open_file(Path(path))

    @Slot()
    def leave(self) -> None:
        """End the lesson. What stood before it comes back, unless a person has made the step's picture their own."""
        if self._guide is None:
            return
        step, home = self._guide.step, self._home
        self._give_way()
        untouched = self._coming is not None or self._controller.wanted()[0] == step.spec
        self._guide = self._coming = self._to_select = self._home = None
        self._to_begin = False
        if home is not None and untouched:
            self._controller.open(*home)
        self._window.show_lesson(None)
        self.changed.emit()

    @Slot()
    def next(self) -> None:
        """The next step; outside a lesson the first lesson begins."""
        if self._guide is None:
            self.start()
        elif self._guide.next():
            self._enter()

    @Slot()
    def back(self) -> None:
        if self._guide is not None and self._guide.back():
            self._enter()

    @Slot(int)
    def go_to(self, step: int) -> None:
        """A step by its place; the present one puts its own picture up again."""
        if self._guide is not None:
            self._guide.jump(step)
            self._enter()

    def _play(self, script: lesson_files.LessonScript, step: str | None) -> None:
        if self._guide is None:
            self._home = self._controller.wanted()[0], self._looked_at()
        self._guide = Guide(script, language=self._language())
        if step is not None:
            try:
                self._guide.jump(step)
            except SpecError as error:
                self._say(str(error))
        self._window.use_layout("learn")
        self._enter()

    def _looked_at(self) -> View:
        """The view that a person has chosen last, with the window of cells in sight."""
        shown = self._session.snapshot().looked_at
        return msgspec.structs.replace(self._controller.wanted()[1], rows=shown.rows, cols=shown.cols)

    def _enter(self) -> None:
        """Put the step's picture up: first the state before, if it has one, so that its outlines are there."""
        assert self._guide is not None  # noqa: S101 (whoever calls has looked)
        step = self._guide.step
        if self._session.snapshot().pinned is not None:
            self._controller.toggle_pin()  # the outlines are the step's own state before
        before, scene = step.scene_before(), step.scene()
        self._to_select = None if step.select is None else Cell(*step.select)
        self._to_begin = True
        self._coming = None
        shown = self._session.snapshot().picture
        if before is not None and (shown is None or not shown.complete or (shown.spec, shown.view) != before):
            self._controller.open(*before, recorded=False)  # one step of a lesson is one step of undo
            self._coming, self._first = scene, self._controller.wanted()
        else:
            self._controller.open(*scene)
        self._window.show_page(step.page)
        self._window.side.show_part(step.part)
        self._give_keys_back()
        self._arrive()
        self._show()

    @Slot()
    def _on_settled(self) -> None:
        """A picture stands: if it was the state before, the step's own comes now."""
        self._give_way()
        picture = self._session.snapshot().picture
        if picture is not None and (picture.spec, picture.view) == self._first:
            self._go_on()
        self._arrive()

    @Slot()
    def _on_snapshot(self) -> None:
        """The state before that cannot be computed is passed over; one that was called off takes the step with it."""
        self._give_way()
        now = self._session.snapshot()
        if self._coming is not None and not now.running and (now.spec, now.view) == self._first:
            if now.failure is not None and now.failure.generation == self._session.generation:
                self._go_on()
            elif now.picture is None or not now.picture.complete or (now.picture.spec, now.picture.view) != self._first:
                self._coming = None
        self.judge_waiting()
        if self._guide is not None and self._elsewhere() != self._was_elsewhere:
            self._show()

    def _give_way(self) -> None:
        """Where a person has asked for something else meanwhile, the step's own picture comes no more."""
        if self._controller.wanted() != self._first:
            self._coming = None

    def _go_on(self) -> None:
        scene, self._coming = self._coming, None
        if scene is not None:
            self._controller.open(*scene)

    def _arrive(self) -> None:
        """Once the step's own map is there, select its cell, and let its study begin."""
        picture = self._session.snapshot().picture
        if self._guide is None or self._computes_picture() or picture is None or picture.outline is None:
            return
        outline, cell = picture.outline, self._to_select
        begins, self._to_begin, self._to_select = self._to_begin, False, None
        if begins and self._guide.step.before is None:
            self._controller.forget_before()  # the last step's picture is nothing that this one speaks of
        if cell is not None and picture.spec == self._guide.step.spec:
            self._controller.select(Cell(min(cell.row, outline.n_queries - 1), min(cell.col, outline.n_keys - 1)))
        if begins and picture.spec == self._guide.step.spec:
            self._begin_study()

    def _begin_study(self) -> None:
        """Let the step's page answer what it has not answered to its end, set up as the lesson speaks of it."""
        assert self._guide is not None  # noqa: S101 (whoever calls has looked)
        step = self._guide.step
        page = self._window.side.pages.get(step.page)
        asks_study = step.question is not None and bool(step.question.measure.path)
        set_up = getattr(page, "set_up", None)
        if page is None or not (asks_study or set_up is not None):
            return
        if set_up is not None:
            set_up()
        question = page.question()
        known = None if question is None else self._studies.get(question.name)
        answered = known is not None and known.answer is not None and known.answer.finished
        if known is None or known.question != question or not (answered or page.running):
            page.ask()

    # ------------------------------------------------------------------------------------------------------- answers

    @Slot(object)
    def _on_page_made(self, page: Page) -> None:
        page.asked.connect(partial(self._on_study_asked, page))
        page.called_off.connect(self.judge_waiting)

    def _on_study_asked(self, page: Page, question: Question) -> None:
        """A page begins a study: what it answers from now on answers this question."""
        self._studies[question.name] = _Study(page, question)

    def take_study(self, name: str, answer: Answer) -> None:
        """What a study has found of the question that was asked last; a step may ask for it."""
        study = self._studies.get(name)
        if study is not None:
            study.answer = answer
            self.judge_waiting()

    @Slot()
    def judge_waiting(self) -> None:
        """Judge the answer that was given too early, once what answers the question is there or comes no more."""
        state = self.state
        if self._guide is None or state is None or state.verdict is not Verdict.RUNNING or state.given is None:
            return
        found = self._found()
        if found is not None or not self._computes():
            self._guide.answer(state.given, found)
            self._show()

    @Slot(object)
    def take_cell(self, cell: Cell | None) -> None:
        """A click on the map, where the step asks for one."""
        if cell is not None and self._guide is not None and self._guide.state.awaits_cell:
            self._on_answered(cell)

    @Slot(object)
    def _on_answered(self, given: object) -> None:
        if self._guide is None or not isinstance(given, float | int | Cell):
            return
        self._guide.answer(given, self._found(), running=self._computes())
        self._show()

    @Slot()
    def _on_shown_asked(self) -> None:
        if self._guide is None:
            return
        self._guide.show_me(self._found(), running=self._computes())
        pointed = self._guide.state.pointed
        if pointed is not None:
            self._controller.select(Cell(*pointed))
        self._show()

    def _found(self) -> lesson_files.Found | None:
        assert self._guide is not None  # noqa: S101 (whoever calls has looked)
        study = self._study()
        answers = {} if study is None or study.answer is None else {study.question.name: study.answer}
        asked = {} if study is None else {study.question.name: study.question}
        return measures.found(self._guide.step, measures.screen_of(self._session.snapshot(), answers, asked))

    def _study(self) -> _Study | None:
        """The study that the step's question asks for, if it was asked about the step's spec."""
        asked = None if self._guide is None else self._guide.step.question
        if self._guide is None or asked is None or not asked.measure.path:
            return None
        study = self._studies.get(asked.measure.name.removeprefix("study:"))
        return study if study is not None and study.is_about(self._guide.step.spec) else None

    def _computes(self) -> bool:
        """Whether what answers the step's question is on its way."""
        study, wanted = self._study(), self._controller.wanted()[0]
        on_its_way = self._computes_picture() and (self._coming is not None or wanted == self._step_spec())
        return on_its_way or (study is not None and study.page.study == study.question.name)

    def _computes_picture(self) -> bool:
        snapshot = self._session.snapshot()
        waits = self._controller.wanted() != (snapshot.spec, snapshot.view)
        return self._coming is not None or snapshot.running or waits

    def _step_spec(self) -> AttentionSpec | None:
        return None if self._guide is None else self._guide.step.spec

    # ------------------------------------------------------------------------------------------------------ the rest

    @Slot()
    def _on_next_lesson(self) -> None:
        names = lesson_files.names()
        self.start(names[(names.index(self._name) + 1) % len(names)] if self._name in names else FIRST_LESSON)

    @Slot(str)
    def _on_language(self, language: str) -> None:
        self._settings.setValue("language", language)
        if self._guide is not None and language in _LANGUAGES:
            self._guide.set_language("zh" if language == "zh" else "en")
            self._show()

    def _language(self) -> lesson_files.Language:
        own = "zh" if QLocale().language() == QLocale.Language.Chinese else "en"
        return "zh" if str(self._settings.value("language", own, type=str)) == "zh" else "en"

    def _show(self) -> None:
        state = self.state
        if state is not None and state.verdict in (Verdict.RIGHT, Verdict.SHOWN):
            self._give_keys_back()  # there is nothing more to type, and its field is greyed
        self._was_elsewhere = self._elsewhere()
        self._window.show_lesson(state, elsewhere=self._was_elsewhere)
        self.changed.emit()

    def _elsewhere(self) -> bool:
        """Whether a person has changed the step's picture: another spec, stage or head stands there, or is coming."""
        if self._guide is None or self._coming is not None:
            return False
        (spec, view), step = self._controller.wanted(), self._guide.step
        return (spec, view.stage, view.head) != (step.spec, step.view.stage, step.view.head)

    def _give_keys_back(self) -> None:
        """Give the map its keys again (M, R, the arrows), unless a person is typing elsewhere."""
        focus = QApplication.focusWidget()
        typing = isinstance(focus, QLineEdit | QPlainTextEdit | QAbstractSpinBox)
        if focus is None or not typing or self._window.lesson_card.isAncestorOf(focus):
            self._window.heatmaps.setFocus()

    def _say(self, sentence: str) -> None:
        self._controller.say(Failure(self._session.generation, sentence, ""))
