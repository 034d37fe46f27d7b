"""The A | B page: the pinned state beside the present one, in maps and in numbers."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QWidget

from attnviz.frames import Scale
from attnviz.questions import Answer, Question
from attnviz.questions.compare import CompareAnswer, CompareQuestion, HeadDifference
from attnviz.session import Snapshot
from attnviz.spec import QUERY_KEY_STAGES, WEIGHT_STAGES, AttentionSpec, SpecError, shape_text, stages_of
from attnviz.views.pages.names import row_name
from attnviz.views.pages.number_table import Entry, NumberTable
from attnviz.views.pages.page import Page
from attnviz.views.pages.peek_map import PeekMap
from attnviz.views.pages.reflow import Reflow
from attnviz.views.segments import Segments
from attnviz.views.typed_values import fill_text

_PIXELS = 256  # of a map: as many as it has here, and coloured within a frame
_LABELLED_UP_TO = 24  # keys
_MOST_LINES = 12  # heads in the table


def short_number(value: float) -> str:
    """A number of any size in few characters: 0, 0.36, 6e−8, ∞, NaN."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.2g}".replace("e-0", "e−").replace("e+0", "e").replace("e-", "e−").replace("-", "−")


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
        self._head = min(self._head, max(heads - 1, 0))
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
        a, b = pair
        both = [name for name in stages_of(a) if name in stages_of(b) and name in QUERY_KEY_STAGES]
        stage = self.snapshot.view.stage
        if stage not in both:
            stage = "weights"
        try:
            return CompareQuestion(a=a, b=b, stage=stage, head=self._head, pixels=_PIXELS)
        except SpecError:
            return None

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
        self._show_numbers(answer)
        self.say(self._sentence_of(answer))
        self._left_out.setText(self._left_out_words(answer.left_out))
        self._show_parts()

    def _left_out_words(self, heads: int) -> str:
        if heads == 1:
            return self.tr("1 head stands in one of the two alone and is left out.")
        return self.tr("{n} heads stand in one of the two alone and are left out.").format(n=heads) if heads else ""

    def take_failure(self, sentence: str) -> None:
        super().take_failure(sentence)
        self._answer = None
        self._show_parts()

    def _names(self) -> tuple[str, str]:
        names = self.tr("A · pinned"), self.tr("B · now")
        return (self.tr("A · now"), self.tr("B · pinned")) if self._swapped else names

    def _show_maps(self, answer: CompareAnswer) -> None:
        assert self.snapshot is not None  # noqa: S101 (asked for one)
        maps, tokens = answer.maps, answer.tokens
        n_queries = maps.a.shape[0]
        whole = maps.level == 1 and len(tokens) <= _LABELLED_UP_TO
        shown = {"tokens": tokens if whole else (), "colours": self.colours}
        sums = whole and answer.question.stage.endswith("weights")
        scale = self.scale_of(maps.scale, len(tokens)) if answer.question.stage in WEIGHT_STAGES else maps.scale
        colours = "" if scale == Scale(0.0, 1.0) else self._scale_words(scale)
        for view, spec, name, values, classes in (
            (self.a, answer.question.a, self._names()[0], maps.a, maps.a_classes),
            (self.b, answer.question.b, self._names()[1], maps.b, maps.b_classes),
        ):
            view.set_shape(spec.mask_shape if maps.level == 1 and sums else None, n_queries, len(tokens))
            view.show_matrix(
                values,
                classes,
                scale=scale,
                title=name,
                caption=colours,
                sums=sums,
                **shown,  # type: ignore[arg-type]
            )
        bound = short_number(maps.difference_scale.high)
        largest = float(np.abs(maps.difference).max()) if maps.difference.size else 0.0
        caption = self.tr("blue −{n} · pale 0 · brown {n}").format(n=bound) if largest else self.tr("0 everywhere")
        self.difference.show_matrix(
            maps.difference, maps.difference_classes, scale=maps.difference_scale, title=self.tr("B − A"),
            caption=caption, **shown,  # type: ignore[arg-type]
        )  # fmt: skip

    def show_look(self) -> None:
        if self._answer is not None and self._answer.question == self.question():
            self._show_maps(self._answer)

    def _scale_words(self, scale: Scale) -> str:
        words = self.tr("colours {low} to {high}, log") if scale.curve == "log" else self.tr("colours {low} to {high}")
        return words.format(low=short_number(scale.low), high=short_number(scale.high))

    def _show_numbers(self, answer: CompareAnswer) -> None:
        head = next(one for one in answer.heads if one.head == answer.maps.head)
        lines: list[list[Entry | str]] = []
        if not math.isnan(head.sum_error[0]) or not math.isnan(head.future[0]):
            lines.append([self.tr("row sums off 1 by"), *map(short_number, head.sum_error)])
            ahead = [Entry(short_number(share), "leak" if share > 0 else "ink") for share in head.future]
            lines.append([self.tr("most weight on the future"), *ahead])
        nan_rows = [Entry(f"{n:,}", "leak" if n else "ink") for n in head.nan_rows]
        lines.append([self.tr("rows with NaN"), *nan_rows])
        dtypes = [answer.question.a.dtype, answer.question.b.dtype]
        lines.append([self.tr("dtype"), *dtypes])
        self.numbers.show_lines([self.tr("head {n}").format(n=head.head), "A", "B"], lines)
        steps = self.tr("largest, in steps (ULP) of {dtype}").format(dtype=answer.dtype)
        apart: list[list[Entry | str]] = [
            [self.tr("largest"), short_number(head.largest)],
            [self.tr("mean"), short_number(head.mean)],
            [steps, f"{head.ulps:,.1f}" if head.ulps < 1e4 else short_number(head.ulps)],
            [self.tr("equal bit for bit"), self.tr("yes") if head.identical else self.tr("no")],
        ]
        place = self._place(answer, head)
        if place:
            apart.insert(1, [self.tr("where it is largest"), place])
        self.apart.show_lines([self.tr("A and B together"), "|B − A|"], apart)
        ordered = sorted(answer.heads, key=lambda one: (-sum(one.nan_rows), -np.nan_to_num(one.largest)))
        self.heads.show_lines(
            [self.tr("heads by difference"), self.tr("largest"), "ULP", self.tr("NaN rows A | B")],
            [
                [self.tr("head {n}").format(n=one.head), short_number(one.largest), short_number(one.ulps),
                 " | ".join(f"{rows:,}" for rows in one.nan_rows)]
                for one in ordered[:_MOST_LINES]
            ],
        )  # fmt: skip

    def _place(self, answer: CompareAnswer, head: HeadDifference) -> str:
        if not head.largest:
            return ""
        row, col = head.at
        tokens, whole = answer.tokens, answer.maps.level == 1
        row_words = row_name(row, tokens, answer.maps.a.shape[0]) if whole else f"{row:,}"
        return self.tr("row {row}, key {col}").format(row=row_words, col=row_name(col, tokens, len(tokens)))

    def _sentence_of(self, answer: CompareAnswer) -> str:
        differing = self._differing(answer.question.a, answer.question.b)
        worst = answer.worst
        a, b = worst.nan_rows
        if all(one.identical for one in answer.heads):
            words = self.tr("Every number is equal, bit for bit.")
        elif a or b:
            words = self.tr("Rows that hold NaN: {a} of A, {b} of B. There no number can be compared.")
            if len(answer.heads) > 1:
                words = self.tr("Rows of head {n} that hold NaN: {a} of A, {b} of B. There no number can be compared.")
            words = words.format(a=f"{a:,}", b=f"{b:,}", n=worst.head)
        elif worst.largest <= 0:
            words = self.tr("Every number is equal.")
        else:
            words = self.tr("They differ by at most {n}, in head {head}.").format(
                n=short_number(worst.largest), head=worst.head
            )
            if worst.ulps <= 16:
                words += " " + self.tr("That is rounding: {n} steps of {dtype}.").format(
                    n=f"{worst.ulps:.1f}", dtype=answer.dtype
                )
        return f"{differing} {words}"

    def _differing(self, a: AttentionSpec, b: AttentionSpec) -> str:
        """Which fields of the two are not the same, and what they are."""
        parts = []
        for field in a.__struct_fields__:
            one, other = getattr(a, field), getattr(b, field)
            if one != other:
                words = [field.replace("_", " ")]
                if field == "mask_shape":
                    words.append(f"{shape_text(one)[:20]} | {shape_text(other)[:20]}")
                elif not isinstance(one, msgspec.Struct):
                    words.append(f"{self._value_words(one)} | {self._value_words(other)}")
                parts.append(": ".join(words))
        if not parts:
            return self.tr("A and B are the same.")
        return self.tr("A | B: {parts}.").format(parts=" · ".join(parts[:4]) + (" …" if len(parts) > 4 else ""))

    def _value_words(self, value: object) -> str:
        """A field's value by the name that the window gives it."""
        if isinstance(value, bool):
            return self.tr("yes") if value else self.tr("no")
        if isinstance(value, float):
            return fill_text(value)
        return {"neg-inf": "−∞"}.get(str(value), str(value))

    # ----------------------------------------------------------------------------------------------------------- edits

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
