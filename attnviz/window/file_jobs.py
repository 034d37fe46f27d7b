"""Files that one window writes: each a job of the worker's, with its progress and its end told in the status line."""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Signal, Slot

from attnviz.controller import Controller
from attnviz.frames import Failure
from attnviz.session import Session
from attnviz.spec import SpecError
from attnviz.views.main_window import MainWindow
from attnviz.worker import EngineLike, Pause

log = logging.getLogger(__name__)


class FileJobs(QObject):
    """Runs functions of `attnviz.rendering`. Thread: the GUI's; signals come from the worker's, to its own slots."""

    ended = Signal(object, object)  # what was written: a path; a sentence if it failed, else None
    progressed = Signal(object, float)  # what is being written: a path; the share that is done

    def __init__(self, window: MainWindow, controller: Controller, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._window, self._controller, self._session = window, controller, session
        self._under_way: list[Path] = []
        self.ended.connect(self._on_ended)
        self.progressed.connect(self._on_progressed)

    def run(self, function: str, path: Path, *arguments: object, computes: bool = False, **settings: object) -> None:
        """Run ``function(path, *arguments, **settings)``; it imports torch, so it is imported in the job.

        One that ``computes`` gets an engine beside the window's, and is told of a wish to stop.
        """

        def job(engine: EngineLike, pause: Pause) -> None:
            from attnviz import rendering  # noqa: PLC0415

            sentence = None
            if computes:
                settings.update(cancelled=pause, engine=rendering.beside(engine))
            try:
                getattr(rendering, function)(path, *arguments, **settings)
            except (RuntimeError, OSError, SpecError) as error:
                sentence = str(error)
            self.ended.emit(path, sentence)

        self._under_way.append(path)
        self._window.status_line.say(self.tr("writing {name} …").format(name=path.name))
        self._controller.run_job(job)

    def close(self) -> None:
        """Say what the window's closing leaves unwritten. After the worker has ended."""
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall)  # what it had still finished is told first
        for path in self._under_way:
            log.warning("%s was not written: the window was closed before", path)

    @Slot(object, float)
    def _on_progressed(self, path: Path, share: float) -> None:
        words = self.tr("writing {name} … {percent} %").format(name=path.name, percent=int(100 * share))
        self._window.status_line.say(words)

    @Slot(object, object)
    def _on_ended(self, path: Path, failed: str | None) -> None:
        if path in self._under_way:
            self._under_way.remove(path)
        if failed is None:
            self._window.status_line.say(self.tr("written: {path}").format(path=path))
        else:
            self._window.status_line.say("")
            sentence = self.tr("{name} was not written: {why}").format(name=path.name, why=failed)
            self._controller.say(Failure(self._session.generation, sentence, ""))
