"""All keys on one page."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget


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
        """(group, text, keys) of every action, in two columns of groups."""
        page = QWidget()
        grid = QGridLayout(page)
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(5)
        groups = list(dict.fromkeys(group for group, _, _ in rows))
        half = (len(rows) + len(groups)) / 2
        line, side, filled = 0, 0, 0
        for group in groups:
            if side == 0 and filled >= half:
                line, side = 0, 3
            heading = QLabel(group.upper())
            heading.setProperty("role", "heading")
            grid.addWidget(heading, line, side, 1, 2)
            line += 1
            for other, text, keys in rows:
                if other == group:
                    grid.addWidget(QLabel(text), line, side)
                    label = QLabel(keys)
                    label.setAlignment(Qt.AlignmentFlag.AlignRight)
                    label.setProperty("role", "muted")
                    grid.addWidget(label, line, side + 1)
                    line += 1
                    filled += 1
            filled += 1
        grid.setColumnMinimumWidth(2, 30)
        grid.setRowStretch(grid.rowCount(), 1)
        self._area.setWidget(page)
