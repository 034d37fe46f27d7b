"""The sentence beside the maps."""

from __future__ import annotations

import operator

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attnviz.session import Snapshot
from attnviz.spec import Lesson
from attnviz.views.story import awaits_row, is_last_good, story

_HEIGHT = 154
_SPACING = 4


class SentenceCard(QFrame):
    """Says what to notice; after the first mask it offers a sentence of one's own, and a test of one's own code.

    While a row's numbers are awaited, the sentence before stays if it is about the same map.
    """

    own_text_asked = Signal()
    check_code_asked = Signal()
    lesson_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "soft")
        self._about: tuple[object, ...] = ()
        self._map: object = None
        self._large, self._small = QLabel(), QLabel()
        for label, role in (self._large, "sentence"), (self._small, "second"):
            label.setProperty("role", role)
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._own = self._link(self.tr("your own sentence ▸"), self.tr("type any text and look at its attention"))
        self._own.clicked.connect(self.own_text_asked)
        self._code = self._link(self.tr("check my code ▸"), self.tr("does an attention of your own leak? (F6)"))
        self._code.clicked.connect(self.check_code_asked)
        self._lesson = self._link(self.tr("step by step ▸"), self.tr("a lesson that asks (PageDown)"))
        self._lesson.clicked.connect(self.lesson_asked)
        kept = self._own.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # its line is there from the start, so that nothing jumps
        for link in (self._own, self._code):
            link.setSizePolicy(kept)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(20, 10, 20, 8)
        column.setSpacing(_SPACING)
        column.addWidget(self._large)
        column.addWidget(self._small)
        column.addStretch(1)
        links = QHBoxLayout()
        links.setSpacing(28)
        links.addWidget(self._lesson)
        links.addWidget(self._own)
        links.addWidget(self._code)
        links.addStretch(1)
        column.addLayout(links)
        self._low = False
        self._high = 0
        self.setFixedHeight(_HEIGHT)  # the words change, the layout must not jump

    def set_low(self, low: bool) -> None:
        """Whether the window is low: then the card is as high as the most words that one map has had, and no higher."""
        self._low, self._high = low, 0
        self._fit()

    def _fit(self) -> None:
        if not self._low:
            self.setFixedHeight(_HEIGHT)
            return
        edges = self._column.contentsMargins()
        across = self.width() - edges.left() - edges.right()
        words = sum(label.heightForWidth(across) for label in (self._large, self._small) if label.text())
        needed = words + edges.top() + edges.bottom() + self._lesson.sizeHint().height() + 3 * _SPACING
        self._high = max(self._high, needed)
        self.setFixedHeight(min(self._high, _HEIGHT))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._high = 0
            self._fit()

    @staticmethod
    def _link(words: str, tip: str) -> QPushButton:
        button = QPushButton(words)
        button.setProperty("link", True)
        button.setToolTip(tip)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def present(self, snapshot: Snapshot) -> None:
        if snapshot.stale and not is_last_good(snapshot) and not snapshot.show_before:
            return  # the words follow the picture, not the request
        about = (
            snapshot.picture, snapshot.shown, snapshot.before, snapshot.row and snapshot.row.values, snapshot.failure,
            snapshot.selected, snapshot.story, snapshot.show_numbers,
        )  # fmt: skip
        if len(about) == len(self._about) and all(map(operator.is_, about, self._about)):
            return  # a pointer moves often, and a row may have a million numbers
        self._about = about
        shown = snapshot.shown
        about_map = None if shown is None else (shown.spec.source, shown.view.stage)
        if about_map is not None and about_map == self._map and awaits_row(snapshot):
            return
        if about_map != self._map:
            self._high = 0
        self._map = about_map
        large, small = story(snapshot)
        self._large.setText(large)
        self._small.setText(small)
        self._fit()
        cat = shown is not None and shown.spec.source == Lesson(name="cat-eats-fish")
        masked = bool(cat and shown and shown.spec.mask != "none")
        for link in (self._own, self._code):
            link.setVisible(masked)

    def text(self) -> str:
        """Both sentences."""
        return f"{self._large.text()} {self._small.text()}".strip()
