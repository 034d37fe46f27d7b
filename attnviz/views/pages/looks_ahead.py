"""How much of each row looks ahead without a mask: thirty draws beside what equal weights would give."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSpinBox, QWidget

from attnviz.figure.studies import future_share as told
from attnviz.questions import Answer, Question
from attnviz.questions.future_share import FutureShareAnswer, FutureShareQuestion
from attnviz.session import Snapshot
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.plot import PlotView

_LESSON_SEED = 7


class LooksAheadPage(Page):
    """A curve and a table of percent by row. It starts by itself; another seed draws other queries and keys."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.answer: FutureShareAnswer | None = None
        self.seed = QSpinBox()
        self.seed.setRange(0, 99_999)
        self.seed.setValue(_LESSON_SEED)
        self.seed.setKeyboardTracking(False)
        self.seed.setToolTip(self.tr("seed of the draws; 7 is the lesson's"))
        self.seed.setAccessibleName(self.tr("seed"))
        self.again = QPushButton(self.tr("draw 30 others"))
        self.again.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.about = QLabel(self.tr("8 tokens, 16 dimensions, Q and K drawn at random: not the window's"))
        self.about.setProperty("role", "muted")
        self.about.setWordWrap(True)
        line = QHBoxLayout()
        line.addStretch(1)
        line.addWidget(QLabel(self.tr("seed")))
        line.addWidget(self.seed)
        line.addWidget(self.again)
        self.plot = PlotView()
        self.plot.setFixedHeight(260)
        self.plot.setAccessibleName(self.tr("share of each row's weight on the future"))
        self.table = NumberTable()
        self.table.setAccessibleName(self.tr("share of each row's weight on the future"))
        self.body.addWidget(self.about)
        self.body.addLayout(line)
        self.body.addWidget(self.plot)
        self.body.addWidget(self.table)
        self.body.addStretch(1)
        self.name_part("plot", self.plot)
        self.name_part("table", self.table)
        self.seed.valueChanged.connect(self._on_seed)
        self.again.clicked.connect(self._on_again)
        self.say(self.tr("Without a mask, how much of each row looks at words that are not written yet?"))

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        if self.active and self.question() != self._asked:  # what a person has stopped stays so
            self.ask()

    def set_up(self) -> None:
        """Take the lesson's own seed; asks nothing."""
        self._set_seed(_LESSON_SEED)

    def ask(self) -> None:
        if self.active:
            self._asked = self.question()
        super().ask()

    def question(self) -> Question | None:
        return FutureShareQuestion(**self.own_fields())

    def own_fields(self) -> dict[str, Any]:
        return {"seed": self.seed.value()}

    def set_controls(self, question: Question) -> None:
        if isinstance(question, FutureShareQuestion):
            self._set_seed(question.seed)

    def _set_seed(self, seed: int) -> None:
        blocker = QSignalBlocker(self.seed)
        self.seed.setValue(min(seed, self.seed.maximum()))  # Qt's numbers end at 2³¹
        del blocker

    @Slot(int)
    def _on_seed(self, _seed: int) -> None:
        self.ask()

    @Slot()
    def _on_again(self) -> None:
        self._set_seed((self.seed.value() + 1) % (self.seed.maximum() + 1))
        self.ask()

    def show_answer(self, answer: Answer) -> None:
        assert isinstance(answer, FutureShareAnswer)  # noqa: S101 (this page's study)
        self.answer = answer
        self.plot.show_plot(told.share_plot(answer))
        self.table.show_table(told.share_table(answer))
        self.say(told.share_words(answer))
