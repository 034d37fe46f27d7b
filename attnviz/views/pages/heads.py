"""The Heads page: stacked and split drawn as they are, and why the printed outputs of one function differ."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from attnviz.figure.form_diagram import sizes_of
from attnviz.figure.studies import heads as told
from attnviz.questions import Answer, Question
from attnviz.questions.heads import HeadsAnswer, HeadsQuestion
from attnviz.session import Snapshot
from attnviz.spec import Lesson, SpecError, edited, fixed_by, make_spec
from attnviz.views.fields import muted_label
from attnviz.views.pages.forms import FormDiagram
from attnviz.views.pages.number_table import NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.pages.peek_map import PeekMap
from attnviz.views.pages.reflow import Reflow


class HeadsPage(Page):
    """Emits a whole spec where the other form is chosen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._asked: Question | None = None
        self._answer: HeadsAnswer | None = None
        self.stacked, self.split = FormDiagram("stacked"), FormDiagram("split")
        self._forms = Reflow(250, (2, 1))
        self._forms.set_widgets([self.stacked, self.split])
        self.body.addWidget(self._forms)
        self._shapes, self._book, self._reason = muted_label(), muted_label(), muted_label()
        for label in (self._shapes, self._book, self._reason):
            self.body.addWidget(label)
        line = QHBoxLayout()
        self.use = QPushButton()
        self.use.clicked.connect(self._on_use)
        self.copy = QPushButton(self.tr("Copy weights"))
        self.copy.setCheckable(True)
        self.copy.setToolTip(
            self.tr("write one form's weights into the other, in these sizes, and compare the outputs")
        )
        self.copy.toggled.connect(self._show_compared)
        self.journey = QPushButton(self.tr("take the lesson “journey”"))
        self.journey.setToolTip(self.tr("six words with two heads, whose projections are drawn"))
        self.journey.clicked.connect(self._on_journey)
        for button in (self.journey, self.use, self.copy):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            line.addWidget(button)
        line.addStretch(1)
        self.body.addLayout(line)
        self._compared = QLabel()
        self._compared.setWordWrap(True)
        self.body.addWidget(self._compared)
        heading = self.heading(self.tr("WHY TWO CLASSES OF ONE FUNCTION PRINT DIFFERENT NUMBERS"))
        self.ladder = NumberTable()
        self.ladder.setAccessibleName(self.tr("reasons taken away one by one"))
        self.body.addWidget(self.ladder)
        self._ladder_words = muted_label()
        self.body.addWidget(self._ladder_words)
        self.name_part("ladder", heading, self._ladder_words)
        heading = self.heading(self.tr("A TENSOR OF SHAPE (1, 2, 3, 4) TIMES ITS TRANSPOSE"))
        self.products = (PeekMap(most=200), PeekMap(most=200))
        self._products = Reflow(150, (2, 1))
        self._products.set_widgets(self.products)
        self.body.addWidget(self._products)
        self._product_words = muted_label()
        self.body.addWidget(self._product_words)
        self.name_part("forms", self._forms, self._book)
        self.name_part("product", heading, self._product_words)
        self.body.addStretch(1)
        self._say_question()

    def _say_question(self) -> None:
        self.say(
            self.tr(
                "Two ways to write the same function: small matrices head by head, or one large product that is cut. "
                "With the same weights they give the same numbers."
            )
        )

    # -------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        super().present(snapshot)
        spec = snapshot.spec
        outline = snapshot.picture.outline if snapshot.picture is not None else None
        sizes = sizes_of(spec, outline.n_keys if outline is not None else 0)
        fixed = fixed_by(spec.source).get("implementation")
        self.stacked.show_sizes(sizes, lit=spec.implementation == "stacked")
        self.split.show_sizes(sizes, lit=spec.implementation == "split")
        self._forms.setVisible(sizes is not None)
        self._shapes.setVisible(sizes is not None)
        self._book.setVisible(sizes is not None)
        self._reason.setText(self._reason_words(sizes is None, "" if fixed is None else fixed.reason))
        self._reason.setVisible(bool(self._reason.text()))
        self.use.setVisible(sizes is not None)
        self.journey.setVisible(sizes is None)
        self.use.setEnabled(fixed is None)
        other = "split" if spec.implementation == "stacked" else "stacked"
        self.use.setText(self.tr("use split") if other == "split" else self.tr("use stacked"))
        if sizes is not None:
            n, d = f"{sizes.length:,}", sizes.d_head
            self._shapes.setText(
                f"({n}, {sizes.d_model}) → ({n}, {sizes.d_out}) → "
                + self.tr("split ({h}, {n}, {d})").format(h=sizes.heads, n=n, d=d)
            )
            self._book.setText(
                self.tr("stacked: {d} each × {h} heads = {out} · the book's wrapper calls this d_out = {d}").format(
                    d=d, h=sizes.heads, out=sizes.d_out
                )
            )
        self._ask_anew()

    def _reason_words(self, bare: bool, reason: str) -> str:
        """Why there is no choice of forms, and for a ``bare`` source what has one."""
        if not bare:
            return reason
        what = self.tr("Choose a lesson with projections or a text under Set up.")
        why = reason or self.tr("there are no projections")
        return f"{why[:1].upper()}{why[1:]}. {what}"

    def _ask_anew(self) -> None:
        question = self.question()
        if self.active and question is not None and question != self._asked:
            self._asked = question
            self._say_question()
            self.ask()

    def set_active(self, active: bool) -> None:
        if not active and self.running:
            self._asked = None
        super().set_active(active)

    def question(self) -> Question | None:
        if self.snapshot is None:
            return None
        return HeadsQuestion.of(self.snapshot.spec)

    # ---------------------------------------------------------------------------------------------------------- answer

    def show_answer(self, answer: Answer) -> None:
        if not isinstance(answer, HeadsAnswer):
            return
        self._answer = answer
        self.ladder.show_table(told.ladder_table(answer))
        self._ladder_words.setText(told.ladder_words(answer))
        self._show_product(answer)
        self._show_compared()

    def show_look(self) -> None:
        if self._answer is not None:
            self._show_product(self._answer)

    def _show_product(self, answer: HeadsAnswer) -> None:
        for shown, matrix in zip(self.products, told.product_maps(answer, self.colours), strict=True):
            shown.show_map(matrix)
        self._product_words.setText(told.product_words(answer))

    @Slot()
    def _show_compared(self) -> None:
        answer = self._answer
        forms = answer.forms if answer is not None else None
        self.copy.setVisible(forms is not None)
        self._compared.setVisible(forms is not None)
        self._compared.setText("" if forms is None else told.compared_words(forms, copied=self.copy.isChecked()))

    @Slot()
    def _on_journey(self) -> None:
        if self.snapshot is None:
            return
        changes: dict[str, object] = {"source": Lesson(name="journey"), "projection": "linear"}
        if self.snapshot.spec.projection == "none":  # which allows one head alone
            own = make_spec(Lesson(name="journey"))
            changes |= {"num_heads": own.num_heads, "d_out": own.d_out}
        try:
            self.spec_edited.emit(edited(self.snapshot.spec, **changes))
        except SpecError as error:
            self.say(str(error))

    @Slot()
    def _on_use(self) -> None:
        if self.snapshot is None:
            return
        other = "split" if self.snapshot.spec.implementation == "stacked" else "stacked"
        try:
            self.spec_edited.emit(edited(self.snapshot.spec, implementation=other))
        except SpecError as error:
            self.say(str(error))
