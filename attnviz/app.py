"""The application: QApplication, fonts, icon, hooks, and `build_window`, with which everything begins."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType

import click
from PySide6.QtCore import (
    QObject,
    QSettings,
    QTimer,
    Slot,
)
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication

from attnviz import screens
from attnviz.application import Interrupts, make_application
from attnviz.figures import Figure
from attnviz.files import FileProblem, write_whole
from attnviz.frames import Failure
from attnviz.history import Scene
from attnviz.remembered import remember
from attnviz.session_files import SavedSession
from attnviz.spec import Lesson, View, make_spec
from attnviz.window.keeping import last_session
from attnviz.window.program import Program
from attnviz.worker import EngineLike

log = logging.getLogger(__name__)

_LOOK_MS = 40
_CALM_LOOKS = 4  # in a row without any work: views may ask for other pixels, a picture for its thumbnails
FIRST_SPEC = make_spec(Lesson(name="cat-eats-fish"), mask="none")
FIRST_VIEW = View(norm="unit")  # so that a cell that stays as it is keeps its colour when the mask comes


def make_engine() -> EngineLike:
    """The torch engine. Called on the worker's thread, where torch is then imported."""
    from attnviz.engine import Engine  # noqa: PLC0415

    return Engine(spare_cores=1)


def build_window(
    asked: SavedSession | Scene | None, settings: QSettings, engine_factory: Callable[[], EngineLike] = make_engine
) -> Program:
    """The program's window, connected and computing, not shown yet. ``asked`` None is the last session, or the first.

    A last session that is damaged is kept aside, and the window says so.
    """
    said = None
    if asked is None:
        asked, said = last_session(settings)
    if not isinstance(asked, SavedSession):
        spec, view = asked or (FIRST_SPEC, FIRST_VIEW)
        asked = SavedSession(spec=spec, view=view)
    program = Program(asked, settings, engine_factory)
    if said is not None:
        program.controller.say(Failure(program.session.generation, said, ""))
    return program


# ------------------------------------------------------------------------------------------------------- running


def run_window(
    asked: SavedSession | Scene | None, *, platform_was_ours: bool, lesson: tuple[str, str | None] | None = None,
    settings: QSettings | None = None,
) -> int:  # fmt: skip
    """Open the window and run until it closes. Returns the exit status.

    ``lesson`` is a lesson's name or file and perhaps a step, to be played from there. ``settings`` are the person's own
    unless others are given.
    Off screen without being asked for, it writes the window to attnviz.png after the first exact picture and ends.
    """
    application = make_application()
    program = build_window(asked, settings or QSettings("attnviz", "attnviz"))
    hook_before, sys.excepthook = sys.excepthook, partial(_on_bug, program)
    interrupts = Interrupts(program)
    status = [0]

    def interrupted() -> None:
        status[0] = 130
        program.window.close()

    interrupts.interrupted.connect(interrupted)
    if platform_was_ours and QGuiApplication.platformName() == "offscreen":
        program.window.resize(1280, 800)  # a picture for a person, whatever the screen that is not there measures
        unattended = _Unattended(program, status)
        unattended.start()
    program.window.show()
    if lesson is not None:
        program.teaching.play(*lesson)
    application.exec()
    interrupts.stop()
    sys.excepthook = hook_before
    return status[0]


class _Unattended(QObject):
    """Nobody sees the window: once all of it stands it is written and closed, or what went wrong is said."""

    def __init__(self, program: Program, status: list[int]) -> None:
        super().__init__(program)
        self._program, self._status, self._calm = program, status, 0
        self._timer = QTimer(self, interval=_LOOK_MS)
        self._timer.timeout.connect(self._look)

    def start(self) -> None:
        self._timer.start()

    @Slot()
    def _look(self) -> None:
        program, now = self._program, self._program.session.snapshot()
        if not program.worker.is_running() and now.failure is None:
            return  # it has not begun
        idle = program.worker.is_idle() and not now.running and (now.failure is not None or now.picture is not None)
        self._calm = self._calm + 1 if idle else 0
        if self._calm < _CALM_LOOKS:
            return
        self._timer.stop()
        if now.failure is not None:
            click.echo(f"attnviz: {now.failure.sentence} {now.failure.advice}".rstrip(), err=True)
            self._status[0] = 1
            program.window.close()
        else:
            _write_window(program, self._status)


def _write_window(program: Program, status: list[int]) -> None:
    """Off screen: the window as a picture in the current folder (or a temporary one), one line that says so."""
    from attnviz.figure.formats.png import KEYWORD, write_png  # noqa: PLC0415 (it is seldom)

    QApplication.processEvents()
    image, shown = program.window.grab().toImage(), program.session.snapshot().picture
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    why = screens.why_no_window()
    for folder in (Path.cwd, partial(tempfile.mkdtemp, prefix="attnviz-")):
        path = Path(folder()) / "attnviz.png"
        kept = {} if shown is None else {KEYWORD: remember(Figure(spec=shown.spec, view=shown.view), path.parent)}
        with suppress(FileProblem):
            write_whole(path, partial(write_png, image=image, texts=kept, large_cells=True))
            click.echo(f"attnviz: no window can be shown ({why}); it was written to {path}", err=True)
            break
    else:
        click.echo("attnviz: no window can be shown, and attnviz.png could not be written", err=True)
        status[0] = 1
    program.window.close()


def _on_bug(program: Program, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A bug: into the log and the banner, and the program goes on."""
    log.error("unexpected", exc_info=(kind, error, trace))
    sentence = f"Something went wrong inside attnviz: {kind.__name__}: {error}"
    program.controller.say(Failure(program.session.generation, sentence, "The program goes on.", sentence))
