"""Files of one window: opens specs, queries and keys, saves specs; long work is a worker's job."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from attnviz.controller import Controller
from attnviz.file_jobs import FileJobs
from attnviz.frames import Failure
from attnviz.session import Session
from attnviz.spec import AttentionSpec, QKFile, SpecError, Text, TypedScores, edited, from_json
from attnviz.spec.worked import typed_form
from attnviz.views.main_window import MainWindow
from attnviz.worker import EngineLike, Pause

QK_SUFFIXES: Final = frozenset({".npz", ".npy", ".safetensors"})


class Filing(QObject):
    """Opens and saves for one window. Thread: the GUI's; signals come from the worker's, to slots of this one."""

    qk_described = Signal(object, object)  # a `QKFile`, or None and a sentence
    frozen = Signal(object, object, object)  # the spec; its `TypedScores`, or None and a sentence

    def __init__(
        self, window: MainWindow, controller: Controller, session: Session, jobs: FileJobs, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window, self._controller, self._session, self._jobs = window, controller, session, jobs
        self.qk_described.connect(self._on_qk_described)
        self.frozen.connect(self._on_frozen)

    @Slot()
    def ask_open(self) -> None:
        filters = self.tr("Specs, or queries and keys (*.json *.npz *.npy *.safetensors)")
        path, _ = QFileDialog.getOpenFileName(self._window, self.tr("Open"), "", filters)
        if path:
            self.open_file(Path(path))

    def open_file(self, path: Path) -> None:
        """Show what a file holds: a spec, or queries and keys, told by its name's end."""
        if path.suffix.lower() in QK_SUFFIXES:
            self.open_qk(path)
        else:
            self.open_spec(path)

    def open_qk(self, path: Path) -> None:
        """Show the queries and keys of a file, once the worker's thread has looked at it and summed it up."""

        def job(_engine: EngineLike, _pause: Pause) -> None:
            from attnviz.tensor_files import describe_qk  # noqa: PLC0415 (not before it is needed)

            try:
                self.qk_described.emit(describe_qk(path), None)
            except SpecError as error:
                self.qk_described.emit(None, str(error))

        self._window.status_line.say(self.tr("reading {name} …").format(name=path.name))
        self._controller.run_job(job)

    @Slot(object, object)
    def _on_qk_described(self, source: QKFile | None, failed: str | None) -> None:
        self._window.status_line.say("")
        spec, view = self._controller.wanted()
        try:
            if source is not None:
                view = msgspec.structs.replace(view, stage="weights", head=None)
                self._controller.open(edited(spec, source=source), view)
        except SpecError as error:
            failed = str(error)
        if failed is not None:
            self.say(failed)

    def open_spec(self, path: Path) -> None:
        """Show the spec of a file, or say in the banner why it cannot be read."""
        try:
            spec, view = from_json(path.read_bytes())
        except OSError as error:
            self.say(self.tr("Cannot read {path}: {why}.").format(path=path, why=error.strerror or error))
        except SpecError as error:
            self.say(f"{path.name}: {error}.")
        else:
            self._controller.open(spec, view)

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
        path, _ = QFileDialog.getSaveFileName(
            self._window, self.tr("Save spec"), "attention.json", self.tr("Spec files (*.json)")
        )
        if path:
            snapshot = self._session.snapshot()
            self._jobs.run("write_spec", Path(path), snapshot.spec, snapshot.looked_at)

    def say(self, sentence: str) -> None:
        self._controller.say(Failure(self._session.generation, sentence, ""))
