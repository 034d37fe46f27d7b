"""Dropout: one draw on one row, and what a thousand draws do to its sum, to the map and to whole rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from attnviz.figure.studies import dropout as many
from attnviz.figure.studies.names import row_name
from attnviz.frames import Outline, RowStages, Scale, Values
from attnviz.questions import Answer, Question
from attnviz.questions.dropout import DropoutAnswer, DropoutQuestion
from attnviz.session import Snapshot
from attnviz.spec import MAX_SEED, SpecError, edited, fixed_by
from attnviz.views.dropped_row import DroppedRow
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.pages.reflow import Reflow
from attnviz.views.plot import PlotView
from attnviz.views.probability import Probability
from attnviz.views.segments import Segments
from attnviz.views.small_map import SmallMap


class DropoutPage(Page):
    """Controls of dropout, one row under it, and the study of many draws, which starts by itself.

    ``redraw_toggled`` says that dropout shall draw again and again (True) or be frozen (False).
    """

    redraw_toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.answer: DropoutAnswer | None = None
        self._asked: DropoutQuestion | None = None
        self._make_controls()
        self.row = DroppedRow()
        self.row_words = QLabel()
        self.row_words.setProperty("role", "muted")
        self.row_words.setWordWrap(True)
        self.sums, self.errors = PlotView(), PlotView()
        self.sums.setAccessibleName(self.tr("sums of the row over many draws"))
        self.errors.setAccessibleName(self.tr("how far the mean map is from the undropped one"))
        for plot in (self.sums, self.errors):
            plot.setFixedHeight(210)
        self.whole_map, self.mean_map = SmallMap(), SmallMap()
        self._maps = QWidget()
        maps = QHBoxLayout(self._maps)
        maps.setContentsMargins(0, 0, 0, 0)
        for one in (self.whole_map, self.mean_map):
            one.setFixedHeight(220)
            maps.addWidget(one)
        self.table_words = self._muted()
        self.table_words.setText(many.vanished_words())
        self.table = NumberTable()
        self.table.setAccessibleName(self.table_words.text())
        self.no_curve = self._muted()
        self.verdict = QLabel()
        self.verdict.setWordWrap(True)
        for widget in (
            self.row_words, self.row, self.table_words, self.table, self.verdict, self.sums, self.no_curve, self.errors,
            self._maps,
        ):  # fmt: skip
            self.body.addWidget(widget)
        self.body.addStretch(1)
        self.name_part("row", self.row_words, self.row)
        self.name_part("table", self.table_words, self.table)
        self.name_part("plots", self.verdict, self.errors)
        self.name_part("maps", self._maps)
        self._show_results(False)

    def _make_controls(self) -> None:
        self.p = Probability(0.95, 0.05)
        self.p.setToolTip(self.tr("Probability that a cell is dropped in training"))
        self.p.slider.setAccessibleName(self.tr("dropout probability p"))
        self.p.number.setAccessibleName(self.tr("dropout probability p"))
        line = QHBoxLayout()
        line.addWidget(QLabel("p"))
        line.addWidget(self.p, 1)
        self.mode = Segments([("training", self.tr("training")), ("inference", self.tr("inference"))])
        self.mode.setToolTip(self.tr("Dropout acts in training alone (T)"))
        self.site = Segments([("weights", self.tr("on weights")), ("context", self.tr("on context"))])
        self.site_reason = self._muted()
        self.factor = self._muted()
        self.reroll = QPushButton(self.tr("re-roll"))
        self.redraw = QPushButton(self.tr("draw by itself"))
        self.redraw.setCheckable(True)
        self.again = QPushButton(self.tr("draw 1,000 times"))
        for button in (self.reroll, self.redraw, self.again):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        draws = Reflow(136, (3, 2, 1))
        draws.set_widgets([self.reroll, self.redraw, self.again])
        self.body.addLayout(line)
        self.body.addWidget(self.factor)
        choices = Reflow(210, (2, 1))
        choices.set_widgets([self.mode, self.site])
        self.body.addWidget(choices)
        self.body.addWidget(self.site_reason)
        self.body.addWidget(draws)
        self.p.value_changed.connect(self._on_p)
        self.mode.chosen.connect(self._on_mode)
        self.site.chosen.connect(self._on_site)
        self.reroll.clicked.connect(self._on_reroll)
        self.redraw.clicked.connect(self.redraw_toggled)
        self.again.clicked.connect(self._on_again)

    @staticmethod
    def _muted() -> QLabel:
        label = QLabel()
        label.setProperty("role", "muted")
        label.setWordWrap(True)
        return label

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        spec = snapshot.spec
        if not self.p.is_held():
            blocked = self.p.blockSignals(True)
            self.p.set_value(spec.dropout)
            self.p.blockSignals(blocked)
        self.mode.set_value("training" if spec.training else "inference")
        self.site.set_value(spec.dropout_site)
        fixed = fixed_by(spec.source).get("dropout_site")
        self.site.setEnabled(fixed is None)
        self.site_reason.setText(fixed.reason if fixed else "")
        self.site_reason.setVisible(fixed is not None)
        factor = self.tr("survivors × {factor} = 1/(1 − {p})")
        self.factor.setText(factor.format(factor=f"{1 / (1 - spec.dropout):.2f}", p=f"{spec.dropout:.2f}"))
        nothing = "" if spec.drops else self.tr("nothing is dropped: p is 0, or this is inference")
        again = self.tr("a new draw again and again, as in training (Shift+R)")
        for button, tip in (self.reroll, self.tr("draw other cells (R)")), (self.redraw, again):
            button.setEnabled(spec.drops)
            button.setToolTip(nothing or tip)
        self.redraw.setChecked(snapshot.redraws)
        self.redraw.setText(self.tr("freeze") if snapshot.redraws else self.tr("draw by itself"))
        self._show_row()
        question = self._question()
        for widget in (self.row_words, self.row, self.again):
            widget.setVisible(question is not None)
        if question is None:
            self._forget()
            self.say(self.tr("p is 0, so every weight stays: move the slider."))
        elif self._asked is None or not _alike(question, self._asked):
            self.say(self.tr("Dropout drops cells by chance, in training alone."))
            self.ask()  # what was found before stays in sight until its successor comes
        elif self.answer is not None and self.active:
            self._show_sums(self.answer)  # the present draw's place in it

    def question(self) -> Question | None:
        """What is asked when a person or the page itself begins the draws."""
        self._asked = self._question()
        return self._asked

    def _question(self) -> DropoutQuestion | None:
        snapshot = self.snapshot
        if snapshot is None or snapshot.spec.dropout == 0:
            return None
        row = snapshot.selected.row if snapshot.selected is not None else 0
        outline = snapshot.picture.outline if snapshot.picture is not None else None
        if outline is not None:
            row = min(row, outline.n_queries - 1)
        head = min(snapshot.view.head or 0, snapshot.spec.num_heads - 1)
        try:
            return DropoutQuestion.of(snapshot.spec, head, row)
        except SpecError:
            return None

    def _forget(self) -> None:
        self.call_off()
        self._asked = self.answer = None
        self._show_results(False)

    def take_failure(self, sentence: str) -> None:
        self.answer = None
        self._show_results(False)
        super().take_failure(sentence)

    def _show_results(self, shown: bool) -> None:
        for widget in (self.verdict, self.sums, self.no_curve, self.errors, self.table_words, self.table):
            widget.setVisible(shown)
        self._maps.setVisible(shown and self.answer is not None and self.answer.mean_map is not None)

    def set_active(self, active: bool) -> None:
        if not active and self.running:
            self._asked = None  # what was called off begins again when the page comes back
        super().set_active(active)

    # --------------------------------------------------------------------------------------------------------- edits

    def _edit(self, **changes: object) -> None:
        if self.snapshot is not None:
            spec = edited(self.snapshot.spec, **changes)
            if spec != self.snapshot.spec:
                self.spec_edited.emit(spec)

    @Slot(float)
    def _on_p(self, p: float) -> None:
        self._edit(dropout=round(p, 2))

    @Slot(str)
    def _on_mode(self, mode: str) -> None:
        self._edit(training=mode == "training")

    @Slot(str)
    def _on_site(self, site: str) -> None:
        self._edit(dropout_site=site)

    @Slot()
    def _on_reroll(self) -> None:
        if self.snapshot is not None:
            self._edit(dropout_seed=(self.snapshot.spec.dropout_seed + 1) % (MAX_SEED + 1))

    @Slot()
    def _on_again(self) -> None:
        self.ask()

    # ------------------------------------------------------------------------------------------------------- one draw

    def _drawn(self) -> RowStages | None:
        """The selected row as the present draw leaves it, if its story has come."""
        story = self.snapshot.story if self.snapshot is not None else None
        question = self._question()
        if story is None or question is None or story.now.row != question.row or story.now.head != question.head:
            return None
        return story.now

    def _show_row(self) -> None:
        drawn = self._drawn()
        if drawn is None and self.answer is None:
            self.row.clear()
            self.row_words.setText("")
            return
        if drawn is not None and drawn.dropped is not None:
            stages = drawn.stages
            self._show_weights(stages["weights"], stages["dropped_weights"], drawn.masked, drawn.dropped)
            self._say_row(drawn.row, float(np.nansum(stages["dropped_weights"])))
        elif drawn is not None and "dropped_context" in drawn.stages:
            before, after = drawn.stages["context"], drawn.stages["dropped_context"]
            outline = self._outline()
            self._show_context(before, after, outline.dims if outline is not None else ())
            self._say_row(drawn.row, float(np.nansum(after)))
        elif drawn is not None:  # inference
            weights = drawn.stages["weights"]
            self._show_weights(weights, weights, drawn.masked, np.zeros(len(weights), bool))
            self.row_words.setText(
                self.tr("inference: nothing is dropped, row {n} is what it was").format(n=self._name(drawn.row))
            )
        elif self.answer is not None:
            answer = self.answer
            if answer.site == "weights":
                self._show_weights(answer.cells, answer.dropped_row, answer.masked, ~answer.kept & ~answer.masked)
            else:
                self._show_context(answer.cells, answer.dropped_row, ())
            self._say_row(answer.row, float(np.nansum(answer.dropped_row)))

    def _show_weights(
        self, before: Values, after: Values, masked: npt.NDArray[np.bool_], dropped: npt.NDArray[np.bool_]
    ) -> None:
        n_keys = len(after)
        most = float(after[np.isfinite(after)].max(initial=1e-9))
        scale = self.scale_of(Scale(0.0, most), n_keys)
        self.row.show_row(before, after, masked, dropped, self._names(n_keys), scale=scale, colours=self.colours)

    def _show_context(self, before: Values, after: Values, dims: Sequence[str]) -> None:
        dropped = (after == 0) & (before != 0)
        self.row.show_row(before, after, np.zeros(len(before), bool), dropped, dims)

    def _say_row(self, row: int, total: float) -> None:
        words = self.tr("row {n} in this draw, Σ {total} · below each cell: before dropout")
        self.row_words.setText(words.format(n=self._name(row), total=many.two(total)))

    def _name(self, row: int) -> str:
        """A row of the picture by its number and word."""
        outline = self._outline()
        return f"{row:,}" if outline is None else row_name(row, outline.tokens, outline.n_queries)

    def _outline(self) -> Outline | None:
        picture = self.snapshot.picture if self.snapshot is not None else None
        return picture.outline if picture is not None else None

    def _names(self, n_keys: int) -> tuple[str, ...]:
        outline = self._outline()
        if outline is not None and len(outline.tokens) == n_keys:
            return tuple(outline.tokens)
        return self.answer.tokens if self.answer is not None else ()

    # ----------------------------------------------------------------------------------------------------- many draws

    def show_answer(self, answer: Answer) -> None:
        assert isinstance(answer, DropoutAnswer)  # noqa: S101 (this page's study)
        first = self.answer is None
        self.answer = answer
        self._show_results(True)
        if first:
            self._show_row()
        self._show_sums(answer)
        self.errors.show_plot(many.errors_plot(answer))
        self.table.show_table(many.vanished_table(answer))
        self.show_look()
        self.verdict.setText(self._told(answer))

    def show_look(self) -> None:
        if self.answer is None or self.snapshot is None:
            return
        maps = many.maps_of(self.answer, self.snapshot.view)
        for shown, matrix in zip((self.whole_map, self.mean_map), maps or (), strict=False):
            shown.show_map(matrix)

    def _told(self, answer: DropoutAnswer) -> str:
        if self.snapshot is not None and not self.snapshot.spec.training:
            return f"{self.tr('Inference drops nothing; this is what training would do.')} {many.told(answer)}"
        return many.told(answer)

    def _show_sums(self, answer: DropoutAnswer) -> None:
        drawn = self._drawn()
        after = None if drawn is None else drawn.stages.get("dropped_weights", drawn.stages.get("dropped_context"))
        self.sums.show_plot(many.sums_plot(answer, None if after is None else float(np.nansum(after))))
        self.no_curve.setText(many.no_curve_words(answer))
        self.no_curve.setVisible(bool(self.no_curve.text()))


def _alike(one: DropoutQuestion, other: DropoutQuestion) -> bool:
    """Whether two questions differ in their first draw alone, so that the answer to one tells about both."""
    return one.spec == edited(other.spec, dropout_seed=one.spec.dropout_seed) and (one.head, one.row) == (
        other.head,
        other.row,
    )
