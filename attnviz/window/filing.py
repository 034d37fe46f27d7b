"""Files of one window: opens what can be opened, saves sessions and specs; long work is a worker's job."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QObject, QSettings, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from attnviz import files
from attnviz.controller import Controller
from attnviz.figures import PICTURES
from attnviz.frames import Failure
from attnviz.opening import ARRAYS, OPENABLE, read
from attnviz.session import Session
from attnviz.session_files import SUFFIX, SavedSession, to_text
from attnviz.spec import AttentionSpec, QKFile, SpecError, Text, TypedScores, edited, to_json
from attnviz.spec.worked import typed_form
from attnviz.views.file_drop import FileDrop
from attnviz.views.main_window import MainWindow
from attnviz.views.recent_menu import RecentMenu
from attnviz.window.file_jobs import FileJobs
from attnviz.window.sessions import Sessions
from attnviz.worker import EngineLike, Pause

_SPEC: Final = ".json"


class Filing(QObject):
    """Opens and saves for one window. Thread: the GUI's; signals come from other ones, to slots of this one."""

    qk_described = Signal(object, object, object)  # the path; a `QKFile`, or None and a sentence
    recalled = Signal(object, object, object)  # a picture's path; a `SavedSession`, or None and a sentence
    frozen = Signal(object, object, object)  # the spec; its `TypedScores`, or None and a sentence

    def __init__(
        self, window: MainWindow, controller: Controller, session: Session, sessions: Sessions, jobs: FileJobs,
        settings: QSettings, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._window, self._controller, self._session = window, controller, session
        self._sessions, self._jobs, self._settings = sessions, jobs, settings
        self.recent = RecentMenu(settings, window)
        window.put_behind("open", self.recent)
        self.recent.asked.connect(self._on_recent_asked)
        drop = FileDrop(window, OPENABLE)
        drop.dropped.connect(self.open_file, Qt.ConnectionType.QueuedConnection)  # whoever dragged it need not wait
        window.late_made.connect(drop.cover)
        window.side.page_made.connect(drop.cover)
        self.recalled.connect(self._on_recalled)
        self._jobs.ended.connect(self._on_written)
        self._saving: set[Path] = set()
        self._threads: list[threading.Thread] = []
        self.qk_described.connect(self._on_qk_described)
        self.frozen.connect(self._on_frozen)

    @Slot()
    def ask_open(self) -> None:
        filters = ";;".join(
            f"{said} ({' '.join('*' + suffix for suffix in sorted(suffixes))})"
            for said, suffixes in (
                (self.tr("What can be opened"), OPENABLE),
                (self.tr("Sessions and specs"), {SUFFIX, _SPEC}),
                (self.tr("Pictures that remember"), PICTURES),
                (self.tr("Queries and keys"), ARRAYS),
            )
        )
        path, _ = QFileDialog.getOpenFileName(self._window, self.tr("Open"), self._folder(), filters)
        if path:
            self.open_file(Path(path))

    @Slot(object)
    def open_file(self, path: Path) -> None:
        """Show what a file holds: a session, a spec, a picture's, or queries and keys, told by its name's end."""
        suffix = path.suffix.lower()
        if suffix in ARRAYS:
            self.open_qk(path)
        elif suffix in PICTURES:
            self.open_picture(path)
        else:
            self.open_state(path)

    @Slot(object)
    def _on_recent_asked(self, path: Path) -> None:
        if os.path.exists(path):  # noqa: PTH110 (Path's raises where a folder may not be looked into)
            self.open_file(path)
        else:
            self.recent.drop(path)
            self.say(self.tr("{path} is no longer there; it has left the list.").format(path=path))

    def open_qk(self, path: Path) -> None:
        """Show the queries and keys of a file, once the worker's thread has looked at it and summed it up."""

        def job(_engine: EngineLike, _pause: Pause) -> None:
            from attnviz.tensor_files import describe_qk  # noqa: PLC0415 (not before it is needed)

            try:
                self.qk_described.emit(path, describe_qk(path), None)
            except SpecError as error:
                self.qk_described.emit(path, None, str(error))

        self._window.status_line.say(self.tr("reading {name} …").format(name=path.name))
        self._controller.run_job(job)

    @Slot(object, object, object)
    def _on_qk_described(self, path: Path, source: QKFile | None, failed: str | None) -> None:
        self._window.status_line.say("")
        spec, view = self._controller.wanted()
        try:
            if source is not None:
                view = msgspec.structs.replace(view, stage="weights", head=None)
                self._controller.open(edited(spec, source=source), view)
                self._remember(path)
        except SpecError as error:
            failed = str(error)
        if failed is not None:
            self.say(failed)

    def open_state(self, path: Path) -> None:
        """Show the session or spec of a file, or say in the banner why it cannot be read."""
        self._take(path, *_looked_into(path))

    def open_picture(self, path: Path) -> None:
        """Show what a picture remembers, once it has been looked for."""
        self._window.status_line.say(self.tr("reading {name} …").format(name=path.name))
        self._aside(lambda: self.recalled.emit(path, *_looked_into(path)))

    def _aside(self, work: Callable[[], None]) -> None:
        """Do ``work`` with a file on a thread of its own: the worker's may be computing for minutes."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name="attnviz-files")
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Wait until what was to be saved is written."""
        for thread in self._threads:
            thread.join()

    @Slot(object, object, object)
    def _on_recalled(self, path: Path, saved: SavedSession | None, failed: str | None) -> None:
        self._window.status_line.say("")
        self._take(path, saved, failed)

    def _take(self, path: Path, saved: SavedSession | None, failed: str | None) -> None:
        if saved is None:
            self.say(f"{failed}.")
        else:
            self._sessions.show(saved)
            self._remember(path)

    def _remember(self, path: Path) -> None:
        """Put a file at the head of the recent ones; the next is looked for beside it."""
        self.recent.add(path)
        self._settings.setValue("folder", str(path.absolute().parent))

    def _folder(self) -> str:
        return str(self._settings.value("folder", "", type=str))

    @Slot()
    def freeze_scores(self) -> None:
        """Make the scores of the head in sight a typed matrix, which can be changed by hand."""
        spec, view = self._controller.wanted()
        typed = typed_form(spec.source)
        if typed is not None:
            failed = None if isinstance(typed, TypedScores) else self.tr("The weights are typed: there are no scores.")
            self._on_frozen(spec, typed if isinstance(typed, TypedScores) else None, failed)
            return

        def job(_engine: EngineLike, _pause: Pause) -> None:
            from attnviz.engine.freezing import freeze  # noqa: PLC0415 (torch stands by then)

            try:
                self.frozen.emit(spec, freeze(spec, view.head or 0), None)
            except (SpecError, RuntimeError) as error:
                self.frozen.emit(spec, None, str(error))

        self._controller.run_job(job)

    @Slot(object, object, object)
    def _on_frozen(self, spec: AttentionSpec, source: TypedScores | None, failed: str | None) -> None:
        if self._controller.wanted()[0] != spec:
            return  # something else was asked for meanwhile
        if source is not None:
            bent = {} if typed_form(spec.source) else {"soft_cap": None}  # what is frozen has been through it
            try:
                self._controller.edit_spec(edited(spec, source=source, **bent))
            except SpecError as error:
                failed = str(error)
        if failed is not None:
            self.say(failed)

    @Slot()
    def copy_code(self) -> None:
        """Put the stage that is looked at on the clipboard, as a script; or say why there is none."""
        from attnviz.scripts import script  # noqa: PLC0415 (not before it is needed)

        spec, view = self._controller.wanted()
        tokens: tuple[str, ...] = ()
        if isinstance(spec.source, Text):
            from attnviz.inputs.text import split_tokens  # noqa: PLC0415 (torch stands by then)

            tokens = split_tokens(spec.source.text)
        try:
            code = script(spec, view, tokens)
        except SpecError as error:
            self._window.status_line.say("")
            self.say(self.tr("Not copied: {why}.").format(why=error))
            return
        QGuiApplication.clipboard().setText(code)
        lines = len(code.splitlines())
        words = self.tr("copied: {stage} as {lines} lines of Python").format(stage=view.stage, lines=lines)
        self._window.status_line.say(words)

    @Slot()
    def ask_save(self) -> None:
        """Ask for a file's name; its end says whether the whole session goes in, or the spec and view alone."""
        kinds = self.tr("Session (*.attnviz)"), self.tr("Spec and view alone (*.json)")
        name, kind = QFileDialog.getSaveFileName(
            self._window, self.tr("Save"), str(Path(self._folder(), "attention.attnviz")), ";;".join(kinds)
        )
        if not name:
            return
        path = Path(name)
        if path.suffix.lower() not in (SUFFIX, _SPEC):
            path = path.with_name(path.name + (_SPEC if kind == kinds[1] else SUFFIX))
            if os.path.exists(path):  # noqa: PTH110 (as above; the dialog has asked about the other name)
                self.say(self.tr("{name} is there already; give its whole name to replace it.").format(name=path.name))
                return
        self.save(path)

    def save(self, path: Path) -> None:
        """Write the session, or the spec and view alone for ``.json``."""
        now = self._sessions.now()
        alone = path.suffix.lower() == _SPEC

        def work() -> None:
            text = to_json(now.spec, now.view) + "\n" if alone else to_text(now)
            failed = None
            try:
                files.write_whole(path, lambda file: file.write(text.encode()))
            except files.FileProblem as problem:
                failed = problem.sentence
            self._jobs.ended.emit(path, failed)

        self._saving.add(path)
        self._window.status_line.say(self.tr("writing {name} …").format(name=path.name))
        self._aside(work)

    @Slot(object, object)
    def _on_written(self, path: Path, failed: str | None) -> None:
        if path in self._saving:
            self._saving.discard(path)
            if failed is None:
                self._remember(path)

    def say(self, sentence: str) -> None:
        self._controller.say(Failure(self._session.generation, sentence, ""))


def _looked_into(path: Path) -> tuple[SavedSession | None, str | None]:
    """What a file remembers, or None and why it cannot be read. Thread: any."""
    try:
        return read(path), None
    except OSError as error:
        return None, str(files.read_problem(path, error))
    except (SpecError, ValueError, MemoryError) as error:
        return None, f"{path.name}: {error or 'there is not enough memory for it'}"
