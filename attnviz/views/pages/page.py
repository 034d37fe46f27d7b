"""What every page has: words above it, a study's progress with a button that stops it, and signals."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from attnviz.colour import LINEAR_UP_TO_KEYS, choose_scale
from attnviz.frames import Scale
from attnviz.questions import Answer, Question
from attnviz.session import Snapshot
from attnviz.spec import Colours, View

_THE_WINDOWS: Final = frozenset({"spec", "a", "b", "stage", "head", "row", "rows", "cols", "pixels"})
"""Fields of questions that a page takes from the window's state, or from its own size."""


class Page(QFrame):
    """A card beside the maps. ``body`` takes what a page shows; `say` its sentence, `parts` are those of its names.

    Signals: ``asked`` a `Question` for the studies' lane, ``called_off`` the name of a study to stop, ``spec_edited``,
    ``view_edited`` and ``cell_selected`` as other views have them. A page that is not in sight asks nothing: it gets
    `present` all the same, and `set_active` when it comes into sight or goes.
    """

    asked = Signal(object)
    called_off = Signal(str)
    spec_edited = Signal(object)
    view_edited = Signal(object)
    cell_selected = Signal(object)
    asks_by_hand: ClassVar[bool] = False
    """Whether a button of the page begins its study, which else begins by itself."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self.active = False
        self.snapshot: Snapshot | None = None
        self.latest: Answer | None = None
        """What the study of this page has answered last."""
        self.answered: Question | None = None
        """What that was an answer to."""
        self.parts: dict[str, tuple[QWidget, ...]] = {}
        self._asked: Question | None = None
        self._running: str | None = None
        self._under_way: Question | None = None
        self._sentence = QLabel()
        self._sentence.setProperty("role", "second")
        self._sentence.setWordWrap(True)
        self._sentence.setTextFormat(Qt.TextFormat.PlainText)
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._progress.setMaximumHeight(6)
        self._stop = QPushButton(self.tr("stop"))
        self._stop.setToolTip(self.tr("stop this study; what it has found stays"))
        self._stop.clicked.connect(self.call_off)
        self._line = QWidget()
        kept = self._line.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # a study that begins must not move what is below
        self._line.setSizePolicy(kept)
        line = QHBoxLayout(self._line)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._progress, 1)
        line.addWidget(self._stop)
        self._line.hide()
        self.body = QVBoxLayout()
        self.body.setSpacing(10)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 18, 14)
        column.setSpacing(8)
        column.addWidget(self._sentence)
        column.addLayout(self.body, 1)
        column.addWidget(self._line)

    # What a page writes for itself ---------------------------------------------------------------------------------

    def present(self, snapshot: Snapshot) -> None:
        """Show what belongs to ``snapshot``; emits nothing but ``asked``, and that only while active."""
        before, self.snapshot = self.snapshot, snapshot
        if before is not None and _look(before) != _look(snapshot):
            self.show_look()

    def show_look(self) -> None:
        """The window's colours or their scale are others: show what stands there in them."""

    def show_answer(self, answer: Answer) -> None:
        """Show a partial or whole answer of this page's study."""

    def question(self) -> Question | None:
        """What this page would ask of its study now, None for nothing."""
        return None

    def own_fields(self) -> dict[str, Any]:
        """What the page's own controls say, by the fields of its question; what has no control is as by default."""
        return {}

    def set_controls(self, question: Question) -> None:
        """Set the page's own controls to what ``question`` asks, as near as they come to it; asks nothing."""

    # What a page takes from the window -----------------------------------------------------------------------------

    @property
    def colours(self) -> Colours:
        """The window's colour map."""
        return self.snapshot.view.colours if self.snapshot is not None else View().colours

    def scale_of(self, own: Scale, n_keys: int) -> Scale:
        """The window's scale of short weights, where it is one for all maps; else ``own``: one number, one colour."""
        norm = self.snapshot.view.norm if self.snapshot is not None else View().norm
        if n_keys <= LINEAR_UP_TO_KEYS and norm in ("unit", "log"):
            return choose_scale("weights", norm, n_keys, 0.0, own.high)
        return own

    # What all pages share ------------------------------------------------------------------------------------------

    def say(self, sentence: str) -> None:
        self._sentence.setText(sentence)

    def name_part(self, name: str, *widgets: QWidget) -> None:
        """Give what lies in ``widgets``, from the first to the last, a name by which a lesson asks for it."""
        self.parts[name] = widgets

    def heading(self, text: str) -> QLabel:
        """Begin another part of the page."""
        label = QLabel(text)
        label.setProperty("role", "heading")
        label.setContentsMargins(0, 8, 0, 0)
        label.setWordWrap(True)
        self.body.addWidget(label)
        return label

    def set_active(self, active: bool) -> None:
        """The page came into sight, or went out of it: its study is then called off."""
        self.active = active
        if not active:
            if self.running:
                self._asked = None  # what was called off is asked again when the page comes back
            self.call_off()
        elif self.snapshot is not None:
            self.present(self.snapshot)

    def is_new(self, question: Question | None) -> bool:
        """Whether the page is in sight and ``question`` is another than it asked last; it then counts as asked."""
        if not self.active or question == self._asked:
            return False
        self._asked = question
        return True

    def take_question(self, question: Question) -> tuple[str, ...]:
        """Ask what ``question`` asks: the page is in sight, and has the window's state that goes with it.

        Gives what it asks otherwise, in words, since it has no control that could say it.
        """
        self.set_controls(question)
        if self.snapshot is not None:
            self.present(self.snapshot)
        known = self.latest is not None and self.latest.finished and self.answered == self.question()
        if self.asks_by_hand and not known:
            self.ask()
        here = {field.name: field.default for field in msgspec.structs.fields(type(question))} | self.own_fields()
        others = [
            (name, getattr(question, name), here[name])
            for name in question.__struct_fields__
            if name not in _THE_WINDOWS or name in self.own_fields()
        ]
        words = self.tr("{name} {asked} (here {here})")
        return tuple(
            words.format(name=name.replace("_", " "), asked=_told(asked), here=_told(own))
            for name, asked, own in others
            if asked != own and not (isinstance(asked, tuple) and sorted(asked) == sorted(own))
        )

    def ask(self) -> None:
        """Begin the study that `question` describes, if the page is in sight."""
        question = self.question() if self.active else None
        if question is None:
            return
        self._running = question.name
        self._under_way = question
        self._progress.setRange(0, 0)
        self._line.show()
        self.asked.emit(question)

    @Slot()
    def call_off(self) -> None:
        """Stop the study that runs; what it has found stays."""
        if self._running is not None:
            name, self._running = self._running, None
            self._line.hide()
            self.called_off.emit(name)

    @property
    def study(self) -> str | None:
        """The name of the study that is under way, None where none is."""
        return self._running

    @property
    def running(self) -> bool:
        """Whether the page's study is under way."""
        return self._running is not None

    def take_answer(self, answer: Answer) -> None:
        """An answer from the lane."""
        if self._running is None:
            return
        self._progress.setRange(0, max(answer.total, 1))
        self._progress.setValue(answer.done)
        self.latest, self.answered = answer, self._under_way
        self.show_answer(answer)

    def take_failure(self, sentence: str) -> None:
        """The study could not answer: its words, as a sentence."""
        self.say(sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith((".", "!", "?")) else "."))

    def take_end(self) -> None:
        self._running = None
        self._line.hide()


def _told(value: object) -> str:
    """A field of a question, as ``--ask`` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _look(snapshot: Snapshot) -> tuple[str, str]:
    return snapshot.view.norm, snapshot.view.colours
