"""A module of a person's own, checked in a process of its own: whatever it does, the window goes on."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal, Slot

from attnviz.leak_lines import from_line
from attnviz.questions.leak import LeakAnswer

TIMEOUT_S: Final = 60
"""For one line of an answer."""


class ModuleCheck(QObject):
    """Runs ``attnviz check`` on what a person named. One check at a time; a new one ends the one before.

    ``answered`` carries a `LeakAnswer` after each reading; ``ended`` the exit status and, where there is something to
    say, a sentence: after it nothing more comes of that check. Nothing is emitted of a check that was stopped.
    """

    answered = Signal(object)
    ended = Signal(int, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: QProcess | None = None
        self._last: LeakAnswer | None = None
        self._rest = b""

    def start(self, file: Path, name: str, arguments: Sequence[str], scale: float, tokens: int) -> None:
        """Check ``name`` of ``file``; ``arguments`` are NAME=VALUE."""
        self.stop()
        self._last, self._rest = None, b""
        process = self._process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONIOENCODING", "utf-8")
        process.setProcessEnvironment(environment)
        process.setWorkingDirectory(str(file.parent))
        process.readyReadStandardOutput.connect(self._on_output)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        given = [part for one in arguments for part in ("--arg", one)]
        command = [
            "-P",
            "-m",
            "attnviz",
            "check",
            f"{file}:{name}",
            "--lines",
            "--gradient",
            "--timeout",
            str(TIMEOUT_S),
            "--scale",
            repr(scale),
            "--length",
            str(tokens),
        ]
        process.start(sys.executable, [*command, *given])

    @property
    def running(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        """End what runs; it emits nothing more."""
        process, self._process = self._process, None
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(2000)
            process.deleteLater()

    @Slot()
    def _on_output(self) -> None:
        process = self._process
        if process is None:
            return
        *lines, self._rest = (self._rest + bytes(process.readAllStandardOutput().data())).split(b"\n")
        for line in lines:
            try:
                self._last = from_line(line.decode("utf-8", "replace"), self._last)
            except ValueError:
                continue  # what the module itself prints
            self.answered.emit(self._last)

    @Slot(int, QProcess.ExitStatus)
    def _on_finished(self, status: int, how: QProcess.ExitStatus) -> None:
        process = self._process
        if process is None:
            return
        self._on_output()
        said = bytes(process.readAllStandardError().data()).decode("utf-8", "replace").strip().splitlines()
        self._process = None
        process.deleteLater()
        if how is QProcess.ExitStatus.CrashExit:
            late = status == getattr(signal, "SIGALRM", None)  # as `check` ends what holds Python's lock
            crashed = self.tr("the process that ran it crashed")
            self.ended.emit(3, self.tr("it did not answer within {n} s").format(n=TIMEOUT_S) if late else crashed)
            return
        own = [line.removeprefix("attnviz: ") for line in said if line.startswith("attnviz: ")]
        self.ended.emit(status, (own or said or [""])[-1])

    @Slot(QProcess.ProcessError)
    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self.stop()
            self.ended.emit(3, self.tr("Python could not be started"))
