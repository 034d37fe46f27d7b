"""Pictures that one window writes: each a job of the worker's, told in the status line, where it can be stopped."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Signal, Slot

from attnviz.controller import Controller
from attnviz.figures import Figure
from attnviz.frames import Failure
from attnviz.session import Session
from attnviz.spec import SpecError
from attnviz.views.main_window import MainWindow
from attnviz.worker import EngineLike, Job, Pause

if TYPE_CHECKING:
    from attnviz.rendering import Shelf

log = logging.getLogger(__name__)

_NAME: Final = 130  # pixels of a file's name: how far it is must have room beside it
STOPPED: Final = ""
"""In place of a sentence that says why a file was not written: a person stopped it."""


def why(error: Exception, name: str) -> str:
    """A sentence that says why there is no picture called ``name``; a bug must leave nobody waiting, and is logged."""
    if isinstance(error, RuntimeError | OSError | SpecError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    log.error("unexpected, in %s", name, exc_info=error)
    return f"something went wrong inside attnviz: {type(error).__name__}: {error}"


@dataclass(eq=False)
class _Writing:
    """A picture that waits to be written, or is being."""

    path: Path
    job: Job | None = None
    share: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)


class FileJobs(QObject):
    """Writes pictures one after the other. Thread: the GUI's; signals come from others, to slots of this one."""

    ended = Signal(object, object)  # what was written: a path; a sentence if it failed, `STOPPED`, or None
    _progressed = Signal(object, float)  # a `_Writing`; the share that is done
    _over = Signal(object, object)  # a `_Writing`; what `ended` says of it

    def __init__(self, window: MainWindow, controller: Controller, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._line, self._controller, self._session = window.status_line, controller, session
        self._under_way: list[_Writing] = []
        self._newest: _Writing | None = None  # the one that was heard of last: one may begin within another's pause
        self.ended.connect(self._on_ended)
        self._progressed.connect(self._on_progressed)
        self._over.connect(self._on_over)
        self._line.stop_asked.connect(self.stop)

    def write_figure(self, path: Path, figure: Figure, shelf: Shelf) -> None:
        """Write ``figure`` as `number_files.write_file` does, with an engine beside the window's."""
        writing = _Writing(path)

        def job(engine: EngineLike, pause: Pause) -> None:
            from attnviz import number_files, rendering  # noqa: PLC0415 (torch)

            sentence = None
            try:
                number_files.write_file(
                    path, figure, rendering.beside(engine), shelf=shelf,
                    cancelled=lambda: writing.stopped.is_set() or pause(),
                    progress=lambda share: self._progressed.emit(writing, share),
                )  # fmt: skip
            except rendering.Cancelled:
                if not writing.stopped.is_set():
                    return  # the window is closing, which says what it leaves unwritten
                sentence = STOPPED
            except Exception as error:
                sentence = why(error, path.name)
            self._over.emit(writing, sentence)

        writing.job = job
        self._under_way.append(writing)
        self._line.say("")
        self._tell()
        self._controller.run_job(job)

    @Slot()
    def stop(self) -> None:
        """Stop what is being written, as the status line says; what waits is written next."""
        writing = self._now()
        if writing is None or writing.job is None:
            return
        writing.stopped.set()
        if self._controller.drop_job(writing.job):
            self._on_over(writing, STOPPED)
        else:
            self._tell()  # it ends where it next asks

    def close(self) -> None:
        """Say what the window's closing leaves unwritten. After the worker has ended."""
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall)  # what it had still finished is told first
        for writing in self._under_way:
            log.warning("%s was not written: the window was closed before", writing.path)

    def _now(self) -> _Writing | None:
        """What is being written, or will be next."""
        if self._newest in self._under_way:
            return self._newest
        return self._under_way[0] if self._under_way else None

    def _tell(self) -> None:
        writing = self._now()
        if writing is None:
            self._line.show_writing()
            return
        name, stopping = writing.path.name, writing.stopped.is_set()
        words = self.tr("stopping {name} …") if stopping else self.tr("writing {name} · {percent} %")
        short = self._line.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, _NAME)
        # a figure space: nothing beside it moves as the number grows
        parts = [words.format(name=short, percent=f"{int(100 * writing.share):\u2007>2}")]
        if len(self._under_way) > 1:
            parts.append(self.tr("{n} more to write").format(n=len(self._under_way) - 1))
        self._line.show_writing(*parts, stops="" if stopping else name)

    @Slot(object, float)
    def _on_progressed(self, writing: _Writing, share: float) -> None:
        writing.share, self._newest = share, writing
        self._tell()

    @Slot(object, object)
    def _on_over(self, writing: _Writing, failed: str | None) -> None:
        self._under_way.remove(writing)
        self._tell()
        self.ended.emit(writing.path, failed)

    @Slot(object, object)
    def _on_ended(self, path: Path, failed: str | None) -> None:
        if failed is None:
            self._line.say(self.tr("written: {path}").format(path=path))
        elif failed == STOPPED:
            self._line.say(self.tr("stopped: {name} was not written").format(name=path.name))
        else:
            self._line.say("")
            sentence = self.tr("{name} was not written: {why}").format(name=path.name, why=failed)
            self._controller.say(Failure(self._session.generation, sentence, ""))
