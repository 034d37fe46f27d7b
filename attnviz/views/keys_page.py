"""All keys on one page."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget


class KeysPage(QDialog):
    """A window of its own, not modal; Esc closes it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("All keys"))
        self.resize(860, 760)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        column = QVBoxLayout(self)
        column.addWidget(self._area)

    def set_rows(self, rows: list[tuple[str, str, str]]) -> None:
        """(group, text, keys) of every action, the groups in two columns of about the same length."""
        groups = list(dict.fromkeys(group for group, _, _ in rows))
        lengths = [1 + sum(other == group for other, _, _ in rows) for group in groups]
        cut = min(range(1, len(groups) + 1), key=lambda n: max(sum(lengths[:n]), sum(lengths[n:])), default=0)
        page = QWidget()
        columns = QHBoxLayout(page)
        columns.setSpacing(36)
        for part in groups[:cut], groups[cut:]:
            column = QVBoxLayout()
            column.setSpacing(14)
            for group in part:
                column.addLayout(self._table(group, [row[1:] for row in rows if row[0] == group]))
            column.addStretch(1)
            columns.addLayout(column, 1)
        self._area.setWidget(page)

    @staticmethod
    def _table(group: str, rows: list[tuple[str, ...]]) -> QGridLayout:
        """A group's heading, and below it what its actions do and their keys."""
        grid = QGridLayout()
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(4)
        heading = QLabel(group.upper())
        heading.setProperty("role", "heading")
        grid.addWidget(heading, 0, 0, 1, 2)
        for line, (text, keys) in enumerate(rows, start=1):
            grid.addWidget(QLabel(text), line, 0)
            label = QLabel(keys)
            label.setAlignment(Qt.AlignmentFlag.AlignRight)
            label.setProperty("role", "muted")
            grid.addWidget(label, line, 1)
        return grid
