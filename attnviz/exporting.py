"""Pictures of one window as files: what the export dialog asks becomes a job of the worker's."""

from __future__ import annotations

from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QSettings, Slot

from attnviz.file_jobs import FileJobs
from attnviz.session import Session
from attnviz.views.main_window import MainWindow


class Exporting(QObject):
    """Exports for one window. Thread: the GUI's. ``dark`` says which colours an export takes."""

    def __init__(
        self, window: MainWindow, session: Session, settings: QSettings, jobs: FileJobs, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window, self._session, self._settings, self._jobs = window, session, settings, jobs
        self.dark = False

    @Slot()
    def ask(self) -> None:
        """Open the dialog."""
        from attnviz.views.export_dialog import ExportDialog  # noqa: PLC0415 (not before it is needed)

        part = self._session.snapshot().window is not None
        dialog = ExportDialog(self._settings, self._window, part=part)
        dialog.export_asked.connect(
            lambda path, size: self.export(path, size, whole_map=dialog.whole_map)  # the GUI's thread emits it
        )
        dialog.open()

    def export(self, path: Path, size: tuple[int, int], *, whole_map: bool = False) -> None:
        """Write the picture as a PNG of ``size`` (width, height) pixels, on the worker's thread.

        The cells that are on the screen, or the ``whole_map``.
        """
        now = self._session.snapshot()
        view = now.looked_at
        if whole_map:
            view = msgspec.structs.replace(view, rows=None, cols=None)
        self._jobs.run(
            "write_image", path, now.spec, view, size, computes=True, dark=self.dark, show_numbers=now.show_numbers,
            decimals=now.decimals, progress=lambda share: self._jobs.progressed.emit(path, share),
        )  # fmt: skip
