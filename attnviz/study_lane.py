"""A second thread for studies, which gives way to drawing: one study at a time, the newest question of each kind."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from attnviz.questions import Answer, Question
from attnviz.spec import SpecError

log = logging.getLogger(__name__)

Study = Callable[[Question, Callable[[], bool]], Iterator[Answer]]
_REST_S = 0.004
_SHOWN_MS = 50
_LONGEST_REST_S = 2.0
"""A study gives way to a picture for so long at a time, so that a long pass does not stop it for ever."""


def _studies() -> Study:
    """The real studies. Called on the lane's thread, where torch is then imported."""
    import torch  # noqa: PLC0415

    from attnviz.studies import answers  # noqa: PLC0415

    torch.set_num_threads(1)  # the window's own pictures have the others; threads that begin later start with 1 too
    return answers


@dataclass(eq=False)
class _Asked:
    """One asking of a question: the same question may be asked again after it was called off."""

    question: Question

    @property
    def name(self) -> str:
        return self.question.name


class StudyLane(QObject):
    """Runs studies on a thread of its own. Public methods are for the GUI's thread and never block.

    ``answered`` carries a question's name and its newest `Answer`, ``failed`` its name and a sentence, ``ended`` the
    name of a study that runs no more: all on the GUI's thread.
    """

    answered = Signal(str, object)
    failed = Signal(str, str)
    ended = Signal(str)
    _pending = Signal()

    def __init__(
        self, is_drawing: Callable[[], bool], make_study: Callable[[], Study] = _studies, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._is_drawing, self._make_study = is_drawing, make_study
        self._condition = threading.Condition()
        self._waiting: OrderedDict[str, _Asked] = OrderedDict()
        self._running: _Asked | None = None
        self._stopped: _Asked | None = None
        self._box: OrderedDict[tuple[str, str], object] = OrderedDict()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._last_drained = 0.0
        self._paint = QTimer(self, singleShot=True)
        self._paint.timeout.connect(self._drain)
        self._pending.connect(self._on_pending, Qt.ConnectionType.QueuedConnection)

    def ask(self, question: Question) -> None:
        """Begin a study; one of the same name that runs or waits is called off."""
        with self._condition:
            self._call_off(question.name)
            self._waiting[question.name] = _Asked(question)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="attnviz-studies", daemon=True)
                self._thread.start()
            self._condition.notify()

    def cancel(self, name: str) -> None:
        """Call a study off; what it has answered stays."""
        with self._condition:
            self._call_off(name)

    def is_running(self, name: str) -> bool:
        with self._condition:
            there = self._running is not None and self._running is not self._stopped and self._running.name == name
            return there or name in self._waiting

    def close(self, timeout: float = 30.0) -> bool:
        """Call everything off and join the thread. Returns whether it ended in time."""
        with self._condition:
            self._closing = True
            self._waiting.clear()
            self._box.clear()
            self._stopped = self._running
            self._condition.notify()
        self._paint.stop()
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _call_off(self, name: str) -> None:
        self._waiting.pop(name, None)
        if self._running is not None and self._running.name == name:
            self._stopped = self._running
        for key in [key for key in self._box if key[0] == name]:
            del self._box[key]

    @Slot()
    def _on_pending(self) -> None:
        """Answers are shown at a rate that a person can follow, however fast they come."""
        since = (time.monotonic() - self._last_drained) * 1000
        self._paint.start(max(0, int(_SHOWN_MS - since)))

    @Slot()
    def _drain(self) -> None:
        self._last_drained = time.monotonic()
        with self._condition:
            box, self._box = self._box, OrderedDict()
        for (name, kind), content in box.items():
            if kind == "answer":
                self.answered.emit(name, content)
            elif kind == "failure":
                self.failed.emit(name, str(content))
            else:
                self.ended.emit(name)

    # ------------------------------------------------------------------------------------------- on the lane's thread

    def _run(self) -> None:
        study: Study | None = None
        while True:
            with self._condition:
                self._running = None
                while not (self._closing or self._waiting):
                    self._condition.wait()
                if self._closing:
                    return
                _, self._running = self._waiting.popitem(last=False)
                asked = self._running
            try:
                study = study or self._make_study()
                self._answer(study, asked)
            except SpecError as error:
                self._post(asked, "failure", str(error))
            except Exception as error:
                log.exception("a study failed")
                sentence = getattr(error, "sentence", None) or f"The study met a bug: {type(error).__name__}: {error}"
                self._post(asked, "failure", sentence)
            self._post(asked, "end", None)

    def _answer(self, study: Study, asked: _Asked) -> None:
        def called_off() -> bool:
            return self._closing or self._stopped is asked

        for answer in study(asked.question, called_off):
            if called_off():
                return
            self._post(asked, "answer", answer)
            since = time.monotonic()
            while self._is_drawing() and not called_off() and time.monotonic() - since < _LONGEST_REST_S:
                time.sleep(_REST_S)

    def _post(self, asked: _Asked, kind: str, content: object) -> None:
        with self._condition:
            if self._closing or self._stopped is asked:
                return
            was_empty = not self._box
            self._box[asked.name, kind] = content
        if was_empty:
            self._pending.emit()
