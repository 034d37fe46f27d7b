"""The application: QApplication, fonts, icon, hooks, and `build_window`, with which everything begins."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from types import TracebackType

import click
from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    QSettings,
    QSocketNotifier,
    QTimer,
    QtMsgType,
    Signal,
    Slot,
    qInstallMessageHandler,
)
from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtWidgets import QApplication

from attnviz import screens
from attnviz.figure.fonts import load_fonts
from attnviz.frames import Failure
from attnviz.program import Program
from attnviz.spec import AttentionSpec, Lesson, SpecError, View, from_json, make_spec
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
    asked: tuple[AttentionSpec, View] | None, settings: QSettings,
    engine_factory: Callable[[], EngineLike] = make_engine,
) -> Program:  # fmt: skip
    """The program's window, connected and computing, not shown yet. ``asked`` None is the last spec, or the first."""
    spec, view = asked or _last_scene(settings) or (FIRST_SPEC, FIRST_VIEW)
    return Program(spec, view, settings, engine_factory)


def _last_scene(settings: QSettings) -> tuple[AttentionSpec, View] | None:
    text = str(settings.value("scene", "", type=str))
    if not text:
        return None
    try:
        return from_json(text)
    except SpecError:
        log.warning("the last spec could not be read; starting afresh")
        return None


# ------------------------------------------------------------------------------------------------------- running


class _Interrupts(QObject):
    """Lets Ctrl+C reach Python while Qt's event loop runs: a byte on a socket wakes it."""

    interrupted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._old_fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._old = signal.signal(signal.SIGINT, lambda *_: None)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_byte)

    @Slot()
    def _on_byte(self) -> None:
        self._read.recv(64)
        self.interrupted.emit()

    def stop(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._old_fd)
        signal.signal(signal.SIGINT, self._old)
        self._read.close()
        self._write.close()


def _icon() -> QIcon:
    picture = QPixmap()
    picture.loadFromData(resources.files("attnviz.resources").joinpath("icons", "attnviz.png").read_bytes())
    return QIcon(picture)


def run_window(
    asked: tuple[AttentionSpec, View] | None, *, platform_was_ours: bool, lesson: tuple[str, str | None] | None = None
) -> int:
    """Open the window and run until it closes. Returns the exit status.

    ``lesson`` is a lesson's name or file and perhaps a step, to be played from there.
    Off screen without being asked for, it writes the window to attnviz.png after the first exact picture and ends.
    """
    qInstallMessageHandler(_on_qt_message)
    application = QApplication(["attnviz"])
    application.setApplicationName("attnviz")
    application.setOrganizationName("attnviz")
    load_fonts()
    application.setWindowIcon(_icon())
    program = build_window(asked, QSettings("attnviz", "attnviz"))
    sys.excepthook = partial(_on_bug, program)
    interrupts = _Interrupts(program)
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
    sys.excepthook = sys.__excepthook__
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
    QApplication.processEvents()
    picture = program.window.grab()
    missing = screens.missing_library()
    why = f"{missing} is missing" if missing else "there is no display"
    for folder in (Path.cwd, partial(tempfile.mkdtemp, prefix="attnviz-")):
        path = Path(folder()) / "attnviz.png"
        if picture.save(str(path)):
            click.echo(f"attnviz: no window can be shown ({why}); it was written to {path}", err=True)
            break
    else:
        click.echo("attnviz: no window can be shown, and attnviz.png could not be written", err=True)
        status[0] = 1
    program.window.close()


def _on_qt_message(kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    """Qt's own complaints go to the log: a missing display is told in our words."""
    fatal = kind in (QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
    if "platform plugin" in text and fatal:
        click.echo(f"attnviz: {' '.join(text.split())}", err=True)
    log.log(logging.ERROR if fatal else logging.INFO, "Qt: %s", text)


def _on_bug(program: Program, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A bug: into the log and the banner, and the program goes on."""
    log.error("unexpected", exc_info=(kind, error, trace))
    sentence = f"Something went wrong inside attnviz: {kind.__name__}: {error}"
    program.controller.say(Failure(program.session.generation, sentence, "The program goes on.", sentence))
