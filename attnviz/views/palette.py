"""Find an action by its name."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from attnviz.views.actions import GROUPS, ROWS, translated


class Palette(QFrame):
    """A list that a few letters narrow; Enter does the action, Esc closes. Not modal.

    Actions whose name holds the letters come first, then those whose group, keys or ``keywords`` (a property of the
    action, a string) do.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._window = parent
        self._actions: list[QAction] = []
        self.resize(440, 380)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("type an action"))
        self.search.textChanged.connect(self._fill)
        self.search.installEventFilter(self)
        self.found = QListWidget()
        self.found.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.found.itemClicked.connect(self._on_item)
        column = QVBoxLayout(self)
        column.addWidget(self.search)
        column.addWidget(self.found)

    def set_actions(self, actions: list[QAction]) -> None:
        self._actions = actions

    @Slot()
    def popup(self) -> None:
        """Open over the window's middle."""
        self.search.clear()
        self._fill("")
        parent = self._window
        self.move(parent.mapToGlobal(QPoint((parent.width() - self.width()) // 2, 90)))
        self.show()
        self.search.setFocus()

    @Slot(str)
    def _fill(self, text: str) -> None:
        self.found.clear()
        words = text.lower().split()
        named = [action for action in self._actions if _holds(_name(action), words)]
        others = [action for action in self._actions if action not in named and _holds(_about(action), words)]
        for action in (*named, *others):
            keys = action.shortcut().toString()
            item = QListWidgetItem(f"{_name(action)}    {keys}" if keys else _name(action))
            item.setData(Qt.ItemDataRole.UserRole, action)
            if not action.isEnabled():
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.found.addItem(item)
        if not self.found.count():
            nothing = QListWidgetItem(self.tr("nothing found: the controls are under Set up"))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self.found.addItem(nothing)
            return
        self.found.setCurrentRow(0)

    @Slot(QListWidgetItem)
    def _on_item(self, item: QListWidgetItem) -> None:
        action = item.data(Qt.ItemDataRole.UserRole)
        if action is None:  # there is nothing to do
            return
        self.hide()
        if action.isEnabled():
            action.trigger()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Up, Down and Enter go to the list while the letters go to the line."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                self.found.setCurrentRow((self.found.currentRow() + step) % max(self.found.count(), 1))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                item = self.found.currentItem()
                if item is not None:
                    self._on_item(item)
                return True
        return super().eventFilter(watched, event)


_GROUPS: Final = {row.name: row.group for row in ROWS}
_GROUP_TEXTS: Final = dict(GROUPS)


def _name(action: QAction) -> str:
    return action.text().replace("&", "")


def _about(action: QAction) -> str:
    """All that an action can be found by."""
    group = _GROUPS.get(action.objectName())
    keys = " ".join(key.toString() for key in action.shortcuts())
    keywords = action.property("keywords") or ""
    return f"{_name(action)} {translated(str(_GROUP_TEXTS[group])) if group else ''} {keys} {keywords}"


def _holds(text: str, words: list[str]) -> bool:
    return all(word in text.lower() for word in words)
