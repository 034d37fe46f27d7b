"""The process's QApplication: its name, font and icon, and where Qt's own complaints go."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from importlib import resources

from PySide6.QtCore import (
    QCoreApplication,
    QMessageLogContext,
    QObject,
    QSocketNotifier,
    QtMsgType,
    Signal,
    Slot,
    qInstallMessageHandler,
)
from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtWidgets import QApplication

from attnviz import screens
from attnviz.figure.fonts import load_fonts

log = logging.getLogger(__name__)


def make_application() -> QApplication:
    """The program's QApplication, or the one that is there already. Which platform it is on the environment says.

    Raises `RuntimeError` where another program has an application that can show no windows.
    """
    there = QCoreApplication.instance()
    if there is not None and not isinstance(there, QApplication):
        raise RuntimeError(
            f"this process has a {type(there).__name__}, which can show no windows: make a QApplication in its place"
        )
    if there is None:
        qInstallMessageHandler(_on_qt_message)
        there = QApplication(["attnviz"])
        there.setApplicationName("attnviz")
        there.setOrganizationName("attnviz")
        there.setWindowIcon(_icon())
    load_fonts()
    return there


def borrowed_application() -> QApplication:
    """`make_application` in somebody else's process, off screen where there is no display; the environment stays."""
    before = os.environ.get("QT_QPA_PLATFORM")
    ours = screens.choose_quietly(os.environ)
    try:
        return make_application()
    finally:
        if ours and before is None:
            del os.environ["QT_QPA_PLATFORM"]  # a program that this one starts chooses for itself


def is_unseen() -> bool:
    """Whether windows stay off screen though nobody asked for it."""
    return QGuiApplication.platformName() == "offscreen" and not os.environ.get("QT_QPA_PLATFORM")


class Interrupts(QObject):
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


def _on_qt_message(kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    """Qt's own complaints go to the log: a missing display is told in our words."""
    fatal = kind in (QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
    if "platform plugin" in text and fatal:
        sys.stderr.write(f"attnviz: {' '.join(text.split())}\n")
    log.log(logging.ERROR if fatal else logging.INFO, "Qt: %s", text)
