"""Generating token by token: each round's last row over the same row of one masked pass, and what each way costs."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSlider, QWidget

from attnviz.figure.axes import number_words
from attnviz.figure.plots import Bars, Curve, Plot, apart
from attnviz.frames import CellClass, Scale
from attnviz.questions import Answer, Question
from attnviz.questions.rounds import (
    RoundsAnswer,
    RoundsQuestion,
    cells_cached,
    cells_in_one_pass,
    cells_recomputed,
)
from attnviz.session import Snapshot
from attnviz.spec import MAX_TOKENS, AttentionSpec, edited
from attnviz.views.count_bars import Count, CountBars
from attnviz.views.pages.names import row_name
from attnviz.views.pages.page import Page
from attnviz.views.plot import PlotView
from attnviz.views.small_map import SmallMap

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_ROUNDING = 16
"""Differences of so many steps of the dtype are rounding: the products are cut in another way."""

_PLAY_MS = 1000
_NAMED = 32  # so many tokens are named


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
        """Of weights before dropout: what does not change them asks nothing new."""
        spec = edited(snapshot.spec, training=False, dropout=0.0, dropout_seed=snapshot.spec.seed)
        return RoundsQuestion(spec=spec, head=min(snapshot.view.head or 0, spec.num_heads - 1))

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
            self.say(self._told(answer))

    def _told(self, answer: RoundsAnswer) -> str:
        spec = self._spec_asked()
        whole = self._pass_words()
        if answer.exact:
            return self.tr(
                "Every round's last row is the same row of {whole}, to the last digit: one pass over {n} "
                "tokens practises {n} questions exactly as they are asked when it writes."
            ).format(n=answer.total, whole=whole)
        if spec is not None and answer.worst <= _rounding(spec):
            return self.tr(
                "Every round's last row is the same row of {whole}, up to rounding ({worst}): one pass over "
                "{n} tokens practises {n} questions as they are asked when it writes."
            ).format(n=answer.total, worst=number_words(answer.worst), whole=whole)
        if math.isnan(answer.worst):
            return self.tr("A row is NaN in one of the two alone: training would not practise what generation does.")
        place = int(np.argmax(answer.differences))
        told = self.tr(
            "The last row of round {n} and row {row} of the one pass differ by {worst}, those of the last round by "
            "{last}: training would not practise what generation does."
        ).format(
            worst=_short(answer.worst), n=f"{place + 1:,}", row=row_name(place, answer.tokens, answer.total),
            last=_short(float(answer.differences[-1])),
        )  # fmt: skip
        unmasked = spec is not None and spec.mask == "none"
        why = (
            self.tr("A mask makes them the same.") if unmasked else self.tr("With this mask what comes later matters.")
        )
        return f"{told} {why}"

    def _spec_asked(self) -> AttentionSpec | None:
        return self._asked.spec if isinstance(self._asked, RoundsQuestion) else None

    def _pass_words(self) -> str:
        """What the one pass is called: masked, where there is a mask."""
        spec = self._spec_asked()
        unmasked = spec is not None and spec.mask == "none"
        return self.tr("one pass") if unmasked else self.tr("one masked pass")

    def show_look(self) -> None:
        self._show_round()

    def _show_round(self) -> None:
        answer = self.answer
        if answer is None or not answer.done:
            return
        n, total = min(self.round, answer.done), answer.total
        words = self.tr("round {n} of {total}").format(n=f"{n:,}", total=f"{total:,}")
        if total <= _NAMED:
            read = " ".join(answer.tokens[:n])
            words += self.tr(": it has read “{read}”").format(read=read if len(read) <= 48 else "… " + read[-46:])
        self.words.setText(words)
        if answer.maps:
            self._show_map(answer, n)
        self._show_row(answer, n)
        gap = float(answer.differences[n - 1])
        said = self.tr("0, to the last digit") if gap == 0 else _short(gap)
        self.difference.setText(self.tr("largest difference of the two rows: {said}").format(said=said))
        self.counts.show_counts(self._counts(n, total))

    def _show_map(self, answer: RoundsAnswer, n: int) -> None:
        total = answer.total
        values, kinds = np.zeros((total, total)), np.full((total, total), int(CellClass.ORDINARY), np.uint8)
        grown = answer.maps[n - 1]
        values[:n, :n] = grown
        kinds[:n, :n][np.isnan(grown)] = int(CellClass.NAN)
        kinds[:n, :n][answer.hidden_maps[n - 1] & (grown == 0)] = int(CellClass.MASKED)
        pale = self.tr("pale: computed before, and thrown away") if n > 1 else " "  # its line stays free
        thrown = self.tr("1 row is thrown away") if n == 2 else self.tr("{n} rows are thrown away").format(n=n - 1)
        self.map.show_matrix(
            values, kinds, scale=Scale(0.0, 1.0), colours=self.colours, tokens=answer.tokens,
            title=self.tr("round {n}").format(n=n) + (f": {thrown}" if n > 1 else ""),
            caption=pale, faded=n - 1, row=n - 1, grown=n,
        )  # fmt: skip

    def _show_row(self, answer: RoundsAnswer, n: int) -> None:
        total, row = answer.total, answer.whole[n - 1]
        grown = np.zeros(total)
        grown[:n] = answer.last_rows[n - 1]
        named = total <= _NAMED
        both = np.concatenate([grown, row])
        both = both[np.isfinite(both)]
        most = 1.0 if total <= _NAMED else 1.1 * float(both.max() if both.size else 1.0)
        ours, whole = self.tr("round {n}, last row").format(n=n), self.tr("one pass, row {n}").format(n=n - 1)
        bars: tuple[Bars, ...] = (apart(grown, label=ours), apart(row, label=whole, role="ink", outline=True))
        curves: tuple[Curve, ...] = ()
        if not named:  # a thousand bars would take the screen's thread longer than a frame
            keys = np.arange(total)
            bars, curves = (), (Curve(keys, grown, ours), Curve(keys, row, whole, "amber", dashed=True))
        self.row.show_plot(
            Plot(
                bars=bars,
                curves=curves,
                y_label=self.tr("weight"),
                y_range=(0.0, most or 1.0),
                x_range=(-0.6, total - 0.4),
                x_names=tuple((float(place), token) for place, token in enumerate(answer.tokens)) if named else (),
                x_label="" if named else self.tr("key"),
            )
        )

    def _counts(self, n: int, total: int) -> tuple[Count, ...]:
        squares = " + ".join(f"{k}²" for k in range(1, n + 1)) if n <= 3 else f"1² + 2² + … + {n}²"
        singles = " + ".join(map(str, range(1, n + 1))) if n <= 3 else f"1 + 2 + … + {n}"
        told = (
            (self.tr("computing all again"), squares, cells_recomputed),
            (self.tr("with a key/value cache"), singles, cells_cached),
            (self._pass_words(), f"{n}²", cells_in_one_pass),
        )
        return tuple(
            Count(words, formula if n == 1 and formula == "1" else f"{formula} = {count(n):,}", count(n), count(total))
            for words, formula, count in told
        )


def _rounding(spec: AttentionSpec) -> float:
    return _ROUNDING * _EPS[spec.dtype]


def _short(value: float) -> str:
    """.81, 0, or a power of ten for what is small."""
    if value == 0 or not abs(value) >= 0.005:
        return number_words(value)
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.2f}"
