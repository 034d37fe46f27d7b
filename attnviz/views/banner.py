"""A failure in a sentence, what to do, and details for who asks."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from attnviz.frames import Failure
from attnviz.session import Snapshot


class Banner(QFrame):
    """Hidden while there is nothing to say."""

    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "alarm")
        self._failure: Failure | None = None
        self._words = QLabel()
        self._words.setWordWrap(True)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setMinimumWidth(1)  # a long path must not widen the window
        self._words.setProperty("role", "problem")
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setMaximumHeight(140)
        self._more = QPushButton(self.tr("Details"))
        self._more.setCheckable(True)
        self._more.toggled.connect(self._details.setVisible)
        close = QPushButton(self.tr("Close"))
        close.clicked.connect(self._on_close)
        row = QHBoxLayout()
        row.addWidget(self._words, 1)
        row.addWidget(self._more)
        row.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 10, 8)
        column.addLayout(row)
        column.addWidget(self._details)
        self.hide()

    def present(self, snapshot: Snapshot) -> None:
        if snapshot.failure == self._failure:
            return
        failure = self._failure = snapshot.failure
        self.setVisible(failure is not None)
        if failure is not None:
            words = f"{failure.sentence} {failure.advice}".strip()
            self._words.setText(words)
            self._words.setToolTip(f"<span>{html.escape(words)}</span>")
            self._details.setPlainText(failure.details)
            self._more.setChecked(False)
            self._more.setVisible(bool(failure.details))
            self._details.hide()

    @Slot()
    def _on_close(self) -> None:
        self.dismissed.emit()
