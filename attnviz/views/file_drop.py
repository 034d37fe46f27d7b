"""Files that are dropped on a window."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Signal, Slot
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

_DRAGS = frozenset({QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop})


class FileDrop(QObject):
    """Lets ``window`` take one file whose name ends in one of ``suffixes``, and nothing else."""

    dropped = Signal(object)  # a `Path`

    def __init__(self, window: QWidget, suffixes: Collection[str]) -> None:
        super().__init__(window)
        self._window, self._suffixes = window, frozenset(suffixes)
        window.setAcceptDrops(True)
        self.cover()

    @Slot()
    def cover(self) -> None:
        """Take files for the fields in the window too, which would write down their names; call it for new ones."""
        for widget in (self._window, *self._window.findChildren(QWidget)):
            if widget.acceptDrops():
                widget.installEventFilter(self)  # again is as once

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() not in _DRAGS or not isinstance(event, QDropEvent):
            return False
        path = self._file(event.mimeData())
        if path is None:
            if watched is not self._window:
                return False  # text, for a field
            event.ignore()
        else:
            event.acceptProposedAction()
            if event.type() == QEvent.Type.Drop:
                self.dropped.emit(path)
        return True

    def _file(self, dragged: QMimeData) -> Path | None:
        """The one file that is dragged, if it can be opened."""
        urls = dragged.urls()
        if len(urls) != 1 or not urls[0].isLocalFile():
            return None
        path = Path(urls[0].toLocalFile())
        return path if path.suffix.lower() in self._suffixes else None
