"""Generating token by token: each round's last row over the same row of one masked pass, and what each way costs."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSlider, QWidget

from attnviz.figure.studies import rounds as told
from attnviz.questions import Answer, Question
from attnviz.questions.rounds import RoundsAnswer, RoundsQuestion
from attnviz.session import Snapshot
from attnviz.spec import MAX_TOKENS, AttentionSpec
from attnviz.views.count_bars import CountBars
from attnviz.views.pages.page import Page
from attnviz.views.plot import PlotView
from attnviz.views.small_map import SmallMap

_PLAY_MS = 1000


class RoundsPage(Page):
    """A slider over the rounds and Play, the map of the round, its last row against the one pass, and three counts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.answer: RoundsAnswer | None = None
        self._wanted = 1  # the round that a person looks at, whatever is asked anew
        self.timer = QTimer(self, interval=_PLAY_MS)
        self.timer.timeout.connect(self._on_tick)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(1, 1)
        self.slider.setPageStep(1)
        self.slider.setAccessibleName(self.tr("round"))
        self.play = QPushButton(self.tr("Play"))
        self.play.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.play.setToolTip(self.tr("one round a second"))
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.words.setMinimumHeight(2 * self.words.fontMetrics().lineSpacing())  # a longer text moves nothing below
        self.map = SmallMap()
        self.map.setFixedHeight(280)
        self.no_map = QLabel(self.tr("Each round's map is shown up to 64 tokens."))
        self.no_map.setProperty("role", "muted")
        self.row = PlotView()
        self.row.setFixedHeight(190)
        self.row.setAccessibleName(self.tr("the round's last row over the same row of the one pass"))
        self.difference = QLabel()
        self.difference.setWordWrap(True)
        self.counts = CountBars()
        line = QHBoxLayout()
        line.addWidget(self.play)
        line.addWidget(self.slider, 1)
        self.body.addLayout(line)
        for widget in (self.words, self.map, self.no_map, self.row, self.difference, self.counts):
            self.body.addWidget(widget)
        self.body.addStretch(1)
        self.name_part("map", self.words, self.map)
        self.name_part("row", self.row, self.difference)
        self.name_part("counts", self.counts)
        self.slider.valueChanged.connect(self._on_round)
        self.play.clicked.connect(self._on_play)
        self._forget()

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        question = self._question(snapshot)
        if self.is_new(question):
            self._forget()
            self.say(self.tr("A model writes one token a round. Does it see in each round what training showed it?"))
            self.ask()

    def question(self) -> Question | None:
        return None if self.snapshot is None else self._question(self.snapshot)

    @staticmethod
    def _question(snapshot: Snapshot) -> RoundsQuestion:
        return RoundsQuestion.of(snapshot.spec, min(snapshot.view.head or 0, snapshot.spec.num_heads - 1))

    def set_up(self) -> None:
        """Follow the rounds to the last one, where all is counted; asks nothing."""
        self._wanted = MAX_TOKENS
        self.slider.setValue(self.slider.maximum())

    def set_active(self, active: bool) -> None:
        if not active:
            self._halt()
        super().set_active(active)

    def _forget(self) -> None:
        self._halt()
        self.answer = None
        blocker = QSignalBlocker(self.slider)
        self.slider.setRange(1, 1)
        del blocker
        for widget in (self.map, self.no_map, self.row, self.difference, self.counts, self.words):
            widget.setVisible(False)
        self.play.setEnabled(False)
        self.slider.setEnabled(False)

    def take_failure(self, sentence: str) -> None:
        self._forget()
        super().take_failure(sentence)

    # ---------------------------------------------------------------------------------------------------------- play

    @property
    def round(self) -> int:
        """The round in sight, from 1."""
        return self.slider.value()

    @Slot()
    def _on_play(self) -> None:
        if self.timer.isActive():
            self._halt()
            return
        if self.round >= self.slider.maximum():
            self.slider.setValue(1)
        self.play.setText(self.tr("Stop"))
        self.timer.start()

    @Slot()
    def _on_tick(self) -> None:
        self.slider.setValue(self.round + 1)
        if self.answer is None or self.round >= self.answer.total:
            self._halt()

    def _halt(self) -> None:
        self.timer.stop()
        self.play.setText(self.tr("Play"))

    @Slot(int)
    def _on_round(self, number: int) -> None:
        self._wanted = number
        self._show_round()

    # -------------------------------------------------------------------------------------------------------- answers

    def show_answer(self, answer: Answer) -> None:
        assert isinstance(answer, RoundsAnswer)  # noqa: S101 (this page's study)
        first = self.answer is None
        self.answer = answer
        self._wanted = min(self._wanted, answer.total)
        blocker = QSignalBlocker(self.slider)
        self.slider.setRange(1, answer.done)
        self.slider.setValue(min(self._wanted, answer.done))
        del blocker
        if first:
            shown_map = bool(answer.maps)
            for widget in (self.row, self.difference, self.counts, self.words):
                widget.setVisible(True)
            self.map.setVisible(shown_map)
            self.no_map.setVisible(not shown_map)
            self.play.setEnabled(True)
            self.slider.setEnabled(True)
        self._show_round()
        if answer.finished:
            self.say(told.told(answer, self._spec_asked()))

    def _spec_asked(self) -> AttentionSpec | None:
        return self._asked.spec if isinstance(self._asked, RoundsQuestion) else None

    def show_look(self) -> None:
        self._show_round()

    def _show_round(self) -> None:
        answer = self.answer
        if answer is None or not answer.done:
            return
        n, total = min(self.round, answer.done), answer.total
        self.words.setText(told.round_words(answer, n))
        if answer.maps:
            self.map.show_map(told.round_map(answer, n, self.colours))
        self.row.show_plot(told.row_plot(answer, n))
        self.difference.setText(told.gap_words(answer, n))
        self.counts.show_counts(told.counts_of(n, total, self._spec_asked()))
