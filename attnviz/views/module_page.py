"""The module's parameters and buffers: the mask stands among the buffers."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from attnviz.frames import ParameterRow
from attnviz.session import Snapshot
from attnviz.views import theme

_NUMBERS = 3  # the column of counts


class ModulePage(QFrame):
    """One line a parameter or buffer, with totals; Ctrl+C copies the table."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._rows: tuple[ParameterRow, ...] | None = None
        title = QLabel(self.tr("MODULE"))
        title.setProperty("role", "heading")
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setProperty("role", "muted")
        self.table = QTableWidget(0, 5)
        self.table.setHorizontalHeaderLabels(
            [self.tr("name"), self.tr("kind"), self.tr("shape"), self.tr("numbers"), self.tr("dtype, device")]
        )
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.table.setMinimumHeight(120)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self.table)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self._copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.addWidget(title)
        column.addWidget(self.table, 1)
        column.addWidget(self._note)

    def present(self, snapshot: Snapshot) -> None:
        outline = snapshot.shown.outline if snapshot.shown else None
        rows = outline.parameters if outline else ()
        if rows == self._rows:
            return
        self._rows = rows
        self.table.setVisible(bool(rows))
        if not rows:
            self._note.setText(self.tr("There is no module here: the numbers were worked by hand or drawn directly."))
            return
        self.table.setRowCount(len(rows))
        for place, row in enumerate(rows):
            shape = " × ".join(map(str, row.shape))
            for col, text in enumerate((row.name, row.kind, shape, f"{row.numel:,}", f"{row.dtype}, {row.device}")):
                item = QTableWidgetItem(text)
                if col == _NUMBERS:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.table.setItem(place, col, item)
        self._tint_buffers()
        learnt = sum(row.numel for row in rows if row.kind == "parameter")
        kept = sum(row.numel for row in rows if row.kind == "buffer")
        self._note.setText(
            self.tr(
                "{learnt} numbers are learnt. The mask is a buffer ({kept} cells): it moves with the module to another "
                "device, and nothing learns it."
            ).format(learnt=f"{learnt:,}", kept=f"{kept:,}")
        )

    def _tint_buffers(self) -> None:
        soft = QColor(theme.current().accent_soft)
        for place, row in enumerate(self._rows or ()):
            if row.kind == "buffer":
                for item in (self.table.item(place, col) for col in range(self.table.columnCount())):
                    if item is not None:
                        item.setBackground(soft)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._tint_buffers()
        super().changeEvent(event)

    def _copy(self) -> None:
        lines = ["\t".join((r.name, r.kind, str(r.shape), str(r.numel), r.dtype, r.device)) for r in self._rows or ()]
        QGuiApplication.clipboard().setText("\n".join(lines))
