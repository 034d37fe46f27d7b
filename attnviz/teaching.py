"""A guided lesson in a window: each step's picture, page and question, and the answers that a hand gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLocale, QObject, QSettings, Signal, Slot
from PySide6.QtWidgets import QFileDialog

from attnviz import lesson_files, measures
from attnviz.controller import Controller
from attnviz.frames import Failure
from attnviz.guide import Guide, GuideState, Verdict
from attnviz.questions import Answer
from attnviz.session import Cell, Session
from attnviz.spec import AttentionSpec, SpecError, View
from attnviz.views.main_window import MainWindow

FIRST_LESSON: Final = "cat-eats-fish"
_LANGUAGES: Final = ("en", "zh")


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
        self._answers: dict[str, Answer] = {}
        self._answers_about: AttentionSpec | None = None
        self._coming: tuple[AttentionSpec, View] | None = None
        self._to_select: Cell | None = None
        card = window.lesson_card
        card.step_asked.connect(self.go_to)
        card.answered.connect(self._on_answered)
        card.shown_asked.connect(self._on_shown_asked)
        card.next_lesson_asked.connect(self._on_next_lesson)
        card.language_chosen.connect(self._on_language)
        controller.settled.connect(self._on_settled)

    @property
    def state(self) -> GuideState | None:
        """The step that is being played, None outside a lesson."""
        return None if self._guide is None else self._guide.state

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
        """End the lesson; the picture stays."""
        self._guide = self._coming = self._to_select = None
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
        self._guide = Guide(script, language=self._language())
        if step is not None:
            try:
                self._guide.jump(step)
            except SpecError as error:
                self._say(str(error))
        self._window.use_layout("learn")
        self._enter()

    def _enter(self) -> None:
        """Put the step's picture up: first the state before, if it has one, so that its outlines are there."""
        assert self._guide is not None  # noqa: S101 (whoever calls has looked)
        step = self._guide.step
        self._answers.clear()
        before, scene = step.scene_before(), step.scene()
        self._to_select = None if step.select is None else Cell(*step.select)
        self._coming = None
        shown = self._session.snapshot().picture
        if before is not None and (shown is None or not shown.complete or shown.spec != before[0]):
            self._coming = scene
            self._controller.open(*before)
        else:
            self._controller.open(*scene)
            self._select()
        self._window.show_page(step.page)
        self._show()

    @Slot()
    def _on_settled(self) -> None:
        """A picture stands: if it was the state before, the step's own comes now."""
        if self._coming is not None:
            scene, self._coming = self._coming, None
            self._controller.open(*scene)
        self._select()

    def _select(self) -> None:
        """Select the step's cell once the step's own map is there."""
        outline = self._controller.outline()
        if self._guide is None or self._to_select is None or outline is None or self._coming is not None:
            return
        if self._session.snapshot().running:
            return
        cell, self._to_select = self._to_select, None
        self._controller.select(Cell(min(cell.row, outline.n_queries - 1), min(cell.col, outline.n_keys - 1)))

    # ------------------------------------------------------------------------------------------------------- answers

    def take_study(self, name: str, answer: Answer) -> None:
        """What a study has found on the present spec; a question may ask for it."""
        spec = self._session.snapshot().spec
        if spec != self._answers_about:
            self._answers.clear()
            self._answers_about = spec
        self._answers[name] = answer

    @Slot(object)
    def take_cell(self, cell: Cell | None) -> None:
        """A click on the map, where the step asks for one."""
        if cell is not None and self._guide is not None and self._guide.state.awaits_cell:
            self._on_answered(cell)

    @Slot(object)
    def _on_answered(self, given: object) -> None:
        if self._guide is None or not isinstance(given, float | int | Cell):
            return
        self._guide.answer(given, self._found())
        self._show()

    @Slot()
    def _on_shown_asked(self) -> None:
        if self._guide is None:
            return
        self._guide.show_me(self._found())
        pointed = self._guide.state.pointed
        if pointed is not None:
            self._controller.select(Cell(*pointed))
        self._show()

    def _found(self) -> lesson_files.Found | None:
        assert self._guide is not None  # noqa: S101 (whoever calls has looked)
        snapshot = self._session.snapshot()
        current = snapshot.spec == self._answers_about
        return measures.found(self._guide.step, measures.screen_of(snapshot, self._answers if current else {}))

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
        self._window.show_lesson(self.state)
        self.changed.emit()

    def _say(self, sentence: str) -> None:
        self._controller.say(Failure(self._session.generation, sentence, ""))

    def sentences(self) -> tuple[str, str] | None:
        """The step's title and words, for the presenter view; None outside a lesson."""
        state = self.state
        if state is None:
            return None
        asked = state.step.question
        small = (
            asked.ask.said(state.language) if asked is not None and state.verdict is Verdict.NONE else state.feedback
        )
        return _first_sentence(state.step.say.said(state.language)), small


def _first_sentence(words: str) -> str:
    """What is read from the back of a room."""
    found = re.match(r".*?[.!?。！？](?=\s|[^\d\s]|$)”?", words, re.DOTALL)
    return found[0] if found else words
