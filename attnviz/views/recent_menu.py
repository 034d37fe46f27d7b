"""The files that were opened or saved last, as a menu."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSettings, Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

_MOST: Final = 10
_KEY: Final = "recent"
_WIDTH: Final = 320  # pixels that a name, and its folder, may take


class RecentMenu(QMenu):
    """Newest first, at most ten; kept in ``settings``, so that every window has the same ones."""

    asked = Signal(object)  # a `Path`

    def __init__(self, settings: QSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setTitle(self.tr("Open recent"))
        self.setToolTipsVisible(True)
        self._listed: tuple[Path, ...] = ()
        self.triggered.connect(self._on_triggered)
        self.aboutToShow.connect(self.refresh)
        self.refresh()

    def paths(self) -> tuple[Path, ...]:
        try:
            names = json.loads(str(self._settings.value(_KEY, "[]", type=str)))  # QSettings stores no lists
        except ValueError:
            return ()
        known = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        return tuple(map(Path, known[:_MOST]))

    def add(self, path: Path) -> None:
        """Put a file at the head."""
        path = path.absolute()
        self._keep([path, *(other for other in self.paths() if other != path)])

    def drop(self, path: Path) -> None:
        """Leave a file out, such as one that is no longer there."""
        self._keep([other for other in self.paths() if other != path.absolute()])

    @Slot()
    def refresh(self) -> None:
        """Fill the menu again: another window may have opened files."""
        self.clear()
        self._listed = self.paths()
        for path in self._listed:
            action = self.addAction(f"{self._fitted(path.name)}\t{self._fitted(_folder(path))}")
            action.setToolTip(_shown(str(path)))
        self.addSeparator()
        forget = self.addAction(self.tr("Forget these files"))
        forget.setObjectName("forget")
        self.menuAction().setEnabled(bool(self._listed))

    def _keep(self, paths: list[Path]) -> None:
        self._settings.setValue(_KEY, json.dumps([str(path) for path in paths[:_MOST]]))
        self.refresh()

    def _fitted(self, words: str) -> str:
        """``words`` with their middle left out where they are long; no letter of them is a key."""
        fitted = self.fontMetrics().elidedText(_shown(words), Qt.TextElideMode.ElideMiddle, _WIDTH)
        return fitted.replace("&", "&&").replace("\t", " ")

    @Slot(QAction)
    def _on_triggered(self, action: QAction) -> None:
        if action.objectName() == "forget":
            self._keep([])
            return
        place = self.actions().index(action)
        if place < len(self._listed):
            self.asked.emit(self._listed[place])


def _folder(path: Path) -> str:
    """The folder of a file, from the home folder where it lies in that."""
    try:
        return str(Path("~") / path.parent.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path.parent)


def _shown(name: str) -> str:
    """A file's name as text, whatever its bytes are."""
    return name.encode("utf-8", "replace").decode()
