"""The state of a window, kept: written soon after each change, so that nothing is lost and nothing is ever asked."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, QStandardPaths, QTimer, Signal, Slot

from attnviz import files
from attnviz.opening import read
from attnviz.session import Snapshot
from attnviz.session_files import SUFFIX, SavedSession, to_text
from attnviz.spec import SpecError

if TYPE_CHECKING:  # the last session can be had without widgets
    from attnviz.controller import Controller
    from attnviz.views.main_window import MainWindow
    from attnviz.window.sessions import Sessions

log = logging.getLogger(__name__)

_SOON_MS = 3_000
"""From a change until what stands is written: a kill loses no more than this and the writing."""


def state_file(settings: QSettings) -> Path:
    """Where the last session of the program with these ``settings`` is kept: beside them, where they are a file."""
    own = Path(settings.fileName())
    if settings.format() == QSettings.Format.NativeFormat and sys.platform in ("win32", "darwin"):
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)
        own = Path(folder) / "attnviz" / "attnviz"  # settings are the registry's or the system's own there
    return own.with_name(f"{own.stem}-last{SUFFIX}")


def last_session(settings: QSettings) -> tuple[SavedSession | None, str | None]:
    """The session that was kept last, None for none; and a sentence if its file was damaged and put aside."""
    path = state_file(settings)
    try:
        return read(path), None
    except FileNotFoundError:
        return None, None
    except (SpecError, OSError) as error:
        why = str(error)
    try:
        aside = _put_aside(path)
    except OSError as error:
        return None, f"The last session could not be read ({why}), nor be put aside: {error.strerror or error}."
    return None, f"The last session could not be read ({why}). It lies in {aside} now, and this is a fresh start."


def _put_aside(path: Path) -> Path:
    """Give a damaged file another name, one that no file has; returns it."""
    number = 1
    while True:
        aside = path.with_name(f"{path.stem}-damaged{f'-{number}' if number > 1 else ''}{path.suffix}")
        if not aside.exists():
            return path.rename(aside)
        number += 1


class Keeping(QObject):
    """Writes one window's state soon after a change, and when it closes. Thread: the GUI's; files are another's.

    While nothing changes nothing is written. Of two programs the last that wrote wins.
    """

    written = Signal(object)
    """The state is in its file; else the sentence why not."""

    def __init__(
        self, sessions: Sessions, controller: Controller, window: MainWindow, settings: QSettings, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._sessions, self._window = sessions, window
        self.path = state_file(settings)
        self._last: SavedSession | None = None
        self._parts: tuple[object, ...] = (None, None, None)
        self._rest: tuple[object, ...] = ()
        self._to_write: SimpleQueue[SavedSession | None] = SimpleQueue()
        self._thread: threading.Thread | None = None  # since the first change: to start one takes milliseconds
        self._writing = False
        self._said = False
        self._timer = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._timer.timeout.connect(self._on_time)
        self.written.connect(self._on_written)
        controller.snapshot_changed.connect(self._on_snapshot)
        window.side.page_chosen.connect(self._on_changed)
        for name, action in window.actions_by_name.items():
            if name.startswith(("layout_", "page_", "dark")):
                action.triggered.connect(self._on_changed)

    @Slot(object)
    def _on_snapshot(self, now: Snapshot) -> None:
        parts, rest = (now.spec, now.view, now.pinned), (now.selected, now.window, now.show_numbers, now.decimals)
        if rest != self._rest or any(new is not old for new, old in zip(parts, self._parts, strict=True)):
            self._parts, self._rest = parts, rest  # at paint rate, so a spec is not gone through: an edit is a new one
            self._on_changed()

    @Slot()
    def _on_changed(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _on_time(self) -> None:
        if self._writing:
            self._timer.start()  # a slow disk: once more, when it is done
            return
        now = self._sessions.now()
        if now != self._last:
            self._last, self._writing = now, True
            self._to_write.put(now)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="attnviz-keeping")
                self._thread.start()

    def _serve(self) -> None:
        """Write what comes, until None does. Thread: its own."""
        while (state := self._to_write.get()) is not None:
            self._write(state)

    def _write(self, state: SavedSession) -> None:
        """Thread: any."""
        try:
            with contextlib.suppress(OSError):  # the sentence about the file says it
                self.path.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole(self.path, lambda file: file.write(to_text(state).encode()))
        except files.FileProblem as problem:
            self.written.emit(str(problem))
        else:
            self.written.emit(None)

    @Slot(object)
    def _on_written(self, failed: str | None) -> None:
        self._writing = False
        if failed is None:
            self._said = False
            return
        self._last = None
        self._timer.start()  # once more: the disk may have room by then
        if not self._said:
            self._said = True
            log.warning("the state is not kept: %s", failed)
            self._window.status_line.say(self.tr("the state is not kept: {why}").format(why=failed))

    def close(self) -> None:
        """Write what stands, now."""
        self._timer.stop()
        if self._thread is not None:
            self._to_write.put(None)
            self._thread.join()
        now = self._sessions.now()
        if now != self._last:  # a window that nobody touched leaves what another has written since
            self._write(now)
