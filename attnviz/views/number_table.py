"""A small table of words and numbers that is read, not edited; Ctrl+C copies it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

_LINE = 26
_ALIGNED = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class NumberTable(QTableWidget):
    """Lines under ``headings``, words first, then numbers at the right. As high as its lines."""

    def __init__(self, headings: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(0, len(headings), parent)
        self.setHorizontalHeaderLabels([*headings])
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_LINE)
        self.setShowGrid(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(40)
        header.setSectionsClickable(False)
        for column in range(len(headings)):
            item = self.horizontalHeaderItem(column)
            if item is not None:
                item.setTextAlignment(
                    _ALIGNED if column else Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
                )
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self._copy)

    def show_lines(self, lines: Sequence[Sequence[str]]) -> None:
        if self.rowCount() != len(lines):
            self.setRowCount(len(lines))
            self.setFixedHeight(self.horizontalHeader().sizeHint().height() + _LINE * len(lines) + 4)
        for row, line in enumerate(lines):
            for column, words in enumerate(line):
                item = self.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    if column:
                        item.setTextAlignment(_ALIGNED)
                    self.setItem(row, column, item)
                item.setText(words)

    def lines(self) -> list[tuple[str, ...]]:
        """What is shown."""
        found = []
        for row in range(self.rowCount()):
            items = (self.item(row, column) for column in range(self.columnCount()))
            found.append(tuple(item.text() if item is not None else "" for item in items))
        return found

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in self.lines()))
