"""The module's parameters and buffers: the mask stands among the buffers."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QGuiApplication, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLabel,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from attnviz.frames import ParameterRow
from attnviz.session import Snapshot
from attnviz.spec import has_module
from attnviz.views import theme

_KIND, _NUMBERS, _DTYPE = 1, 3, 4  # the columns of kinds, of counts, and of dtypes
_KIND_FROM, _DTYPE_FROM = 400, 470  # pixels of the page from which these have room; the note says them too


class ModulePage(QFrame):
    """One line a parameter or buffer, with totals; Ctrl+C copies the table.

    It never scrolls sideways: in a narrow one kinds and dtypes stand in the note alone.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._rows: tuple[ParameterRow, ...] | None = None
        self._bare = False
        title = QLabel(self.tr("MODULE"))
        title.setProperty("role", "heading")
        title.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setProperty("role", "muted")
        self._note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.table = QTableWidget(0, 5)
        self.table.setHorizontalHeaderLabels(
            [self.tr("name"), self.tr("kind"), self.tr("shape"), self.tr("numbers"), self.tr("dtype, device")]
        )
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(20)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.table.setWordWrap(False)
        self.table.setMinimumHeight(120)
        self.table.setMinimumWidth(240)
        self.table.setAccessibleName(self.tr("parameters and buffers"))
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
        spec = snapshot.shown.spec if snapshot.shown else None
        bare = spec is not None and spec.projection == "none" and has_module(spec.source)
        if (rows, bare) == (self._rows, self._bare):
            return
        self._rows, self._bare = rows, bare
        self.table.setVisible(bool(rows))
        if not rows:
            self._note.setText(
                self.tr("No projections: no parameters. Queries, keys and values are the inputs themselves.") if bare
                else self.tr("There is no module here: the numbers were worked by hand or drawn directly.")
            )  # fmt: skip
            return
        self.table.setRowCount(len(rows))
        for place, row in enumerate(rows):
            shape = " × ".join(map(str, row.shape))
            for col, text in enumerate((row.name, row.kind, shape, f"{row.numel:,}", f"{row.dtype}, {row.device}")):
                item = QTableWidgetItem(text)
                item.setToolTip(f"{row.name}: {row.kind}, {shape}, {row.dtype}, {row.device}")
                if col == _NUMBERS:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.table.setItem(place, col, item)
        self._tint_buffers()
        learnt = sum(row.numel for row in rows if row.kind == "parameter")
        kept = sum(row.numel for row in rows if row.kind == "buffer")
        words = self.tr(
            "{learnt} numbers are learnt. The mask is a buffer ({kept} cells): it moves with the module to another "
            "device, and nothing learns it. True in it hides."
        )
        kinds = ", ".join(dict.fromkeys(f"{row.kind}s {row.dtype} on {row.device}" for row in rows))
        self._note.setText(f"{words.format(learnt=f'{learnt:,}', kept=f'{kept:,}')} {kinds}.")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.table.setColumnHidden(_KIND, self.width() < _KIND_FROM)
        self.table.setColumnHidden(_DTYPE, self.width() < _DTYPE_FROM)

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
