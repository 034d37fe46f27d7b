"""The A | B page: the pinned state beside the present one, in maps and in numbers."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QWidget

from attnviz.figure.studies import compare as told
from attnviz.questions import Answer, Question
from attnviz.questions.compare import CompareAnswer, CompareQuestion
from attnviz.session import Snapshot
from attnviz.session_files import Comparing
from attnviz.spec import AttentionSpec, SpecError
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.pages.peek_map import PeekMap
from attnviz.views.pages.reflow import Reflow
from attnviz.views.segments import Segments

_PIXELS = 256  # of a map: as many as it has here, and coloured within a frame


class ComparePage(Page):
    """``pin_toggled`` asks to pin what stands as A, or to let A go."""

    pin_toggled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answer: CompareAnswer | None = None
        self._swapped = False
        self._head = 0
        self.way = Segments([("side", self.tr("side by side")), ("difference", self.tr("difference B − A"))])
        self.way.set_value("side")
        self.way.chosen.connect(self._on_way)
        self.head = QComboBox()
        self.head.setAccessibleName(self.tr("head"))
        self.head.setToolTip(self.tr("whose maps stand below"))
        self.head.activated.connect(self._on_head)
        line = QHBoxLayout()
        line.addWidget(self.way)
        line.addStretch(1)
        line.addWidget(self.head)
        self._choices = QWidget()
        self._choices.setLayout(line)
        line.setContentsMargins(0, 0, 0, 0)
        self.body.addWidget(self._choices)
        self.a, self.b, self.difference = PeekMap(), PeekMap(), PeekMap()
        self._maps = Reflow(170, (2, 1))
        self._maps.set_widgets([self.a, self.b])
        self.body.addWidget(self._maps)
        self.numbers, self.apart, self.heads = NumberTable(), NumberTable(), NumberTable()
        self.numbers.setAccessibleName(self.tr("A and B in numbers"))
        self.heads.setAccessibleName(self.tr("heads by difference"))
        self.apart.setAccessibleName(self.tr("how far A and B are apart"))
        self.body.addWidget(self.numbers)
        self.body.addWidget(self.apart)
        self.body.addWidget(self.heads)
        self._left_out = QLabel()
        self._left_out.setProperty("role", "muted")
        self._left_out.setWordWrap(True)
        self.body.addWidget(self._left_out)
        buttons = QHBoxLayout()
        self.swap = QPushButton(self.tr("swap A and B"))
        self.pin = QPushButton(self.tr("pin A"))
        self.swap.clicked.connect(self._on_swap)
        self.pin.clicked.connect(self.pin_toggled)
        for button in (self.pin, self.swap):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            buttons.addWidget(button)
        buttons.addStretch(1)
        self.body.addLayout(buttons)
        self.body.addStretch(1)
        self.name_part("maps", self._maps)
        self.name_part("numbers", self.numbers, self.heads)
        self._show_parts()

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        heads = self._n_heads(snapshot)
        if self.head.count() != heads:
            self.head.clear()
            self.head.addItems([self.tr("head {n}").format(n=n) for n in range(heads)])
        if heads:  # before A has come the head waits for it
            self._head = min(self._head, heads - 1)
        self.head.setCurrentIndex(self._head)
        self.head.setEnabled(heads > 1)
        self.head.setToolTip(self.tr("the head whose maps are shown") if heads > 1 else self.tr("there is one head"))
        self.pin.setText(self.tr("pin A") if snapshot.pinned is None else self.tr("unpin A"))
        question = self.question()
        if question is None:
            self._answer = None
        if self.is_new(question):
            if question is not None:
                self.ask()
            elif self.running:
                self.call_off()
        if question is None:
            self._say_why_nothing(snapshot)
        self._show_parts()

    @staticmethod
    def _n_heads(snapshot: Snapshot) -> int:
        return 0 if snapshot.pinned is None else min(snapshot.pinned.spec.num_heads, snapshot.spec.num_heads)

    def question(self) -> Question | None:
        pair = self._pair()
        if pair is None or self.snapshot is None:
            return None
        try:
            return CompareQuestion.of(*pair, self.snapshot.view.stage, self._head, _PIXELS)
        except SpecError:
            return None

    def own_fields(self) -> dict[str, Any]:
        return {"head": self._head}

    def set_controls(self, question: Question) -> None:
        if isinstance(question, CompareQuestion):
            self._head, self._swapped = question.head, False

    def _pair(self) -> tuple[AttentionSpec, AttentionSpec] | None:
        """A and B, or None where nothing is pinned."""
        if self.snapshot is None or self.snapshot.pinned is None:
            return None
        pair = self.snapshot.pinned.spec, self.snapshot.spec
        return (pair[1], pair[0]) if self._swapped else pair

    def _say_why_nothing(self, snapshot: Snapshot) -> None:
        if snapshot.pinned is None:
            self.say(self.tr("Press P to pin what stands as A, then change something."))

    def _show_parts(self) -> None:
        there = self._answer is not None
        for part in (self._choices, self._maps, self.numbers, self.apart):
            part.setVisible(there)
        self.heads.setVisible(there and self._answer is not None and len(self._answer.heads) > 1)
        self._left_out.setVisible(there and bool(self._left_out.text()))
        self.swap.setVisible(self._pair() is not None)

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if not isinstance(answer, CompareAnswer) or answer.question != self._asked:
            return
        self._answer = answer
        self._show_maps(answer)
        self.numbers.show_table(told.numbers_table(answer))
        self.apart.show_table(told.apart_table(answer))
        self.heads.show_table(told.heads_table(answer))
        differing = told.differing_words(answer.question.a, answer.question.b)
        self.say(f"{differing}. {told.verdict_words(answer)}")
        self._left_out.setText(told.left_out_words(answer.left_out))
        self._show_parts()

    def take_failure(self, sentence: str) -> None:
        super().take_failure(sentence)
        self._answer = None
        self._show_parts()

    def _names(self) -> tuple[str, str]:
        names = self.tr("A · pinned"), self.tr("B · now")
        return (self.tr("A · now"), self.tr("B · pinned")) if self._swapped else names

    def _show_maps(self, answer: CompareAnswer) -> None:
        assert self.snapshot is not None  # noqa: S101 (asked for one)
        maps = told.maps_of(answer, self.snapshot.view, self._names(), most=512)
        for shown, matrix in zip((self.a, self.b, self.difference), maps, strict=True):
            shown.show_map(matrix)

    def show_look(self) -> None:
        if self._answer is not None and self._answer.question == self.question():
            self._show_maps(self._answer)

    # ----------------------------------------------------------------------------------------------------------- edits

    def show_way(self, way: Comparing) -> None:
        """Show A and B side by side, or their difference."""
        self.way.set_value(way)
        self._on_way(way)

    @Slot(str)
    def _on_way(self, way: str) -> None:
        self._maps.set_widgets([self.difference] if way == "difference" else [self.a, self.b])

    @Slot(int)
    def _on_head(self, head: int) -> None:
        self._head = head
        if self.snapshot is not None:
            self.present(self.snapshot)

    @Slot()
    def _on_swap(self) -> None:
        self._swapped = not self._swapped
        if self.snapshot is not None:
            self.present(self.snapshot)
