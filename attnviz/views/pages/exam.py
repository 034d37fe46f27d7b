"""The Exam page: layers trained on random tokens under several masks, and what they know without the answer."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from attnviz.figure.studies import exam as told
from attnviz.questions import Answer, Question
from attnviz.questions.exam import EXAM_MASKS, ExamAnswer, ExamQuestion, exam_mask_of
from attnviz.session import Snapshot
from attnviz.views.fields import muted_label
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.pages.peek_map import PeekMap
from attnviz.views.pages.reflow import Reflow
from attnviz.views.plot import PlotView

_LESSON_SEED = 123


class ExamPage(Page):
    """Run trains; the slider, or Replay, goes through what was streamed."""

    asks_by_hand = True

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answer: ExamAnswer | None = None
        self._spec_mask = "neg-inf"
        self._touched = False
        self._following = True
        self.boxes: dict[str, QCheckBox] = {}
        self._make_choices()
        self._make_buttons()
        self.table = NumberTable()
        self.table.setAccessibleName(self.tr("loss in training and in the exam, by mask"))
        self.table.hide()
        self.body.addWidget(self.table)
        self._verdict = QLabel()
        self._verdict.setProperty("role", "second")
        self._verdict.setWordWrap(True)
        self._verdict.hide()
        self.body.addWidget(self._verdict)
        self.plot = PlotView()
        self.plot.setMinimumHeight(260)
        self.plot.setAccessibleName(self.tr("loss in training and in the exam"))
        self.body.addWidget(self.plot, 1)
        self._make_replay()
        self._make_maps()
        self.name_part("table", self.table, self._verdict)
        self.name_part("plot", self.plot, self._steps)
        self.name_part("maps", self._maps_row, self._maps_words)
        self._say_task()
        self._timer_id = 0

    # --------------------------------------------------------------------------------------------------------- making

    def _make_choices(self) -> None:
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(14)
        for name in EXAM_MASKS:
            self._add_box(name)
        self.body.addLayout(self._grid)

    def _add_box(self, name: str) -> QCheckBox:
        box = QCheckBox(told.mask_name(name))
        box.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        box.clicked.connect(self._on_box)
        place = len(self.boxes)
        self.boxes[name] = box
        self._grid.addWidget(box, *divmod(place, 3))
        return box

    def _make_buttons(self) -> None:
        line = QHBoxLayout()
        self.run = QPushButton(self.tr("Run"))
        self.run.setToolTip(self.tr("train a layer under each mask, 200 steps: some tenths of a second each"))
        self.run.clicked.connect(self._on_run)
        self.replay = QPushButton(self.tr("Replay"))
        self.replay.setToolTip(self.tr("go through the steps once more"))
        self.replay.clicked.connect(self._on_replay)
        self.seed = QSpinBox()
        self.seed.setRange(0, 999_999)
        self.seed.setValue(_LESSON_SEED)
        self.seed.setToolTip(self.tr("other numbers to begin with, and other sheets"))
        words = QLabel(self.tr("seed"))
        words.setBuddy(self.seed)
        for button in (self.run, self.replay):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(words)
        line.addWidget(self.seed)
        self.body.addLayout(line)

    def _make_replay(self) -> None:
        self._steps = QWidget()  # nothing to go through before a run
        self._steps.hide()
        line = QHBoxLayout(self._steps)
        line.setContentsMargins(0, 0, 0, 0)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(self.tr("training step"))
        self.slider.setToolTip(self.tr("go back to an earlier step"))
        self.slider.setRange(0, 0)
        self.slider.valueChanged.connect(self._on_slid)
        self._step = QLabel(self.tr("step 200 of 200"))
        self._step.setFixedWidth(self._step.sizeHint().width() + 8)
        self._step.setText("")
        self._step.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.slider, 1)
        line.addWidget(self._step)
        self.body.addWidget(self._steps)

    def _make_maps(self) -> None:
        self._maps_row = Reflow(104, (5, 3, 2, 1))
        self.maps: dict[str, tuple[QWidget, PeekMap, QLabel]] = {}
        self.body.addWidget(self._maps_row)
        self._maps_words = muted_label()
        self.body.addWidget(self._maps_words)

    def _map_for(self, name: str) -> tuple[QWidget, PeekMap, QLabel]:
        if name not in self.maps:
            holder, shown, words = QWidget(), PeekMap(), QLabel(told.mask_name(name))
            words.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            column = QVBoxLayout(holder)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(2)
            column.addWidget(shown)
            column.addWidget(words)
            self.maps[name] = holder, shown, words
        return self.maps[name]

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        mask = exam_mask_of(snapshot.spec)
        if mask not in self.boxes:
            self._add_box(mask)
        if not self._touched and (mask != self._spec_mask or not any(box.isChecked() for box in self.boxes.values())):
            for name, box in self.boxes.items():
                box.setChecked(name in ("none", mask))
        self._spec_mask = mask
        self._refresh_buttons()

    def set_up(self) -> None:
        """Choose what a lesson speaks of, every mask from the open book to the closed one; asks nothing."""
        for name, box in self.boxes.items():
            box.setChecked(name in EXAM_MASKS)
        self.seed.setValue(_LESSON_SEED)
        self._touched = False
        self._refresh_buttons()

    def question(self) -> Question | None:
        asked = self.own_fields()
        return ExamQuestion(**asked) if asked["masks"] else None

    def own_fields(self) -> dict[str, Any]:
        chosen = (name for name, box in self.boxes.items() if box.isChecked())
        return {"masks": tuple(chosen), "seed": self.seed.value()}

    def set_controls(self, question: Question) -> None:
        if not isinstance(question, ExamQuestion):
            return
        for name in question.masks:
            if name not in self.boxes:
                self._add_box(name)
        for name, box in self.boxes.items():
            box.setChecked(name in question.masks)
        self.seed.setValue(min(question.seed, self.seed.maximum()))  # Qt's numbers end at 2³¹
        self._touched = True
        self._refresh_buttons()

    def _say_task(self) -> None:
        self.say(
            self.tr(
                "One attention layer learns to guess the next of six random letters. Nobody can know it, so nobody "
                "honest gets below ln 6 = 1.79. Who does?"
            )
        )

    def _refresh_buttons(self) -> None:
        self.run.setEnabled(any(box.isChecked() for box in self.boxes.values()))
        self.replay.setEnabled(self._answer is not None and not self.running)

    @Slot()
    def _on_box(self) -> None:
        self._touched = True
        self._refresh_buttons()

    @Slot()
    def _on_run(self) -> None:
        self.ask()

    def ask(self) -> None:
        self._stop_replay()
        self._following = True
        super().ask()
        self._refresh_buttons()

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if not isinstance(answer, ExamAnswer):
            return
        fresh = self._answer is None or answer.question != self._answer.question
        self._answer = answer
        self._steps.show()
        self.table.show()
        if fresh:
            self._following = True
            self._verdict.hide()
            self._place_maps(answer)
        last = len(answer.curves[0].steps) - 1
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, last)
        if self._following:
            self.slider.setValue(last)
        self.slider.blockSignals(blocked)
        self._show_step()

    def show_look(self) -> None:
        self._show_step()

    def take_end(self) -> None:
        super().take_end()
        self._refresh_buttons()

    @Slot()
    def call_off(self) -> None:
        super().call_off()
        self._refresh_buttons()

    def _place_maps(self, answer: ExamAnswer) -> None:
        self._maps_row.set_widgets([self._map_for(curve.mask)[0] for curve in answer.curves])

    def _show_step(self) -> None:
        answer = self._answer
        if answer is None:
            return
        at = self.slider.value()
        step, steps = int(answer.curves[0].steps[at]), answer.question.steps
        self._step.setText(self.tr("step {n} of {steps}").format(n=step, steps=steps))
        self.plot.show_plot(told.loss_plot(answer, at))
        for curve in answer.curves:
            self._map_for(curve.mask)[1].show_map(told.paper_map(curve, answer, at, self.colours))
        self._maps_words.setText(told.maps_words(answer, at))
        self.table.show_table(told.losses_table(answer, at))
        if step == steps:
            self._verdict.setText(told.told(answer))
            self._verdict.show()

    # ---------------------------------------------------------------------------------------------------------- replay

    @Slot(int)
    def _on_slid(self, value: int) -> None:
        self._following = value == self.slider.maximum()
        self._show_step()

    @Slot()
    def _on_replay(self) -> None:
        self._stop_replay()
        self.slider.setValue(0)
        self._timer_id = self.startTimer(60)

    def _stop_replay(self) -> None:
        if self._timer_id:
            self.killTimer(self._timer_id)
            self._timer_id = 0

    def timerEvent(self, event: object) -> None:
        """One step of the replay."""
        del event
        if self.slider.value() >= self.slider.maximum():
            self._stop_replay()
        else:
            self.slider.setValue(self.slider.value() + 1)

    def set_active(self, active: bool) -> None:
        if not active:
            self._stop_replay()
        super().set_active(active)
