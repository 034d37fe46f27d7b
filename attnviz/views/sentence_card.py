"""The sentence beside the maps."""

from __future__ import annotations

import operator

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from attnviz.session import Snapshot
from attnviz.spec import Lesson
from attnviz.views.story import story


class SentenceCard(QFrame):
    """Says what to notice; after the first mask it offers a sentence of one's own."""

    own_text_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "soft")
        self._about: tuple[object, ...] = ()
        self._large, self._small = QLabel(), QLabel()
        for label, role in (self._large, "sentence"), (self._small, "second"):
            label.setProperty("role", role)
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._own = QPushButton(self.tr("your own sentence ▸"))
        self._own.setProperty("link", True)
        self._own.setCursor(Qt.CursorShape.PointingHandCursor)
        kept = self._own.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # its line is there from the start, so that nothing jumps
        self._own.setSizePolicy(kept)
        self._own.clicked.connect(self.own_text_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 18, 24, 16)
        column.setSpacing(8)
        column.addWidget(self._large)
        column.addWidget(self._small)
        column.addStretch(1)
        column.addWidget(self._own, 0, Qt.AlignmentFlag.AlignLeft)
        self.setMinimumHeight(200)  # the words change, the layout must not jump

    def present(self, snapshot: Snapshot) -> None:
        if snapshot.stale:
            return  # the words follow the picture, not the request
        about = (
            snapshot.picture, snapshot.shown, snapshot.before, snapshot.row and snapshot.row.values, snapshot.failure,
            snapshot.selected,
        )  # fmt: skip
        if len(about) == len(self._about) and all(map(operator.is_, about, self._about)):
            return  # a pointer moves often, and a row may have a million numbers
        self._about = about
        large, small = story(snapshot)
        self._large.setText(large)
        self._small.setText(small)
        shown = snapshot.shown
        cat = shown is not None and shown.spec.source == Lesson(name="cat-eats-fish")
        self._own.setVisible(bool(cat and shown and shown.spec.mask != "none"))

    def text(self) -> str:
        """Both sentences."""
        return f"{self._large.text()} {self._small.text()}".strip()
