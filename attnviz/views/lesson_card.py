"""The step of a lesson that is being played: what to notice, one question, and the way on."""

from __future__ import annotations

from itertools import product

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from attnviz.guide import GuideState, Verdict, number_of
from attnviz.lesson_files import Language, LessonQuestion
from attnviz.views import theme
from attnviz.views.lesson_head import LessonHead
from attnviz.views.lesson_parts import BREAK, Choice, breakable, link_button, text_label, words_unjudged, write_in

_SIDE = 18
_TOP, _BOTTOM, _GAP = 8, 10, 6
_LOW_TOP, _LOW_BOTTOM, _LOW_GAP, _LOW_HEAD = 5, 6, 3, 30
_BESIDE = 16
"""Between the sentences and the question beside them."""
_INSIDE = 12, 6
"""Left and right, above and below what stands in the question's frame."""
_LINE_GAP = 5
_LEAST_TOLD = 120
"""Pixels across that what is said to an answer has beside the field at least."""
_TOO_HIGH = 10_000
_WIDE = 560
"""From this width on the question stands beside the sentences, else below them."""
_WORDS, _QUESTION = 1, 1
"""How a wide card is divided."""
_TITLE, _SAY, _ASK, _TOLD, _OTHER = range(5)
_PIXELS = ((16, 18, 17, 16, 15), (15, 16, 16, 15, 14), (14, 15, 15, 14, 13))
"""Sizes of title, sentences, question, what is said to an answer, and choices: the first with which a step fits."""
LEAST_HEIGHT = 120


class LessonCard(QFrame):
    """A step in words, its question beside or below them.

    `fit` decides once how high a step's card is, with room for what will be said to an answer; longer texts scroll.
    That stands beside the field or the prompt, or below it, whichever makes the card lower.
    ``step_asked`` carries a step's place from 0 (also this one's: its picture is wanted back), ``answered`` a float as
    typed, or an int, a choice's place; clicks on the map are the map's to tell. ``shown_asked`` is "show me",
    ``left`` the cross.
    """

    step_asked = Signal(int)
    answered = Signal(object)
    shown_asked = Signal()
    left = Signal()
    own_text_asked = Signal()
    next_lesson_asked = Signal()
    check_code_asked = Signal()
    language_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "soft")
        self._state: GuideState | None = None
        self._no_number = self._low = False
        self._level, self._fitted, self._crowded, self._beside = 0, 320, False, False
        self.sizes: tuple[tuple[int, ...], ...] = _PIXELS
        self.shares = _WORDS, _QUESTION
        self._say, self._ask = self._text_label(), self._text_label()
        self._prompt, self._mark, self._feedback = text_label(), text_label(), self._text_label()
        self._prompt.setProperty("role", "muted")
        self._mark.setWordWrap(False)
        self.head = LessonHead()
        self.head.step_asked.connect(self.step_asked)
        self.head.left.connect(self.left)
        self.head.languages.chosen.connect(self.language_chosen)
        self.field, self._unit, self._submit = QLineEdit(), QLabel("%"), QPushButton()
        self.field.setFixedWidth(84)
        self.field.returnPressed.connect(self._on_submitted)
        self._submit.clicked.connect(self._on_submitted)
        self.choices: list[Choice] = []
        self.show_me = link_button()
        self.show_me.clicked.connect(self.shown_asked)
        self.next_lesson, self.own_text, self.check_code = link_button(), link_button(), link_button()
        self.next_lesson.clicked.connect(self.next_lesson_asked)
        self.own_text.clicked.connect(self.own_text_asked)
        self.check_code.clicked.connect(self.check_code_asked)
        self._submit.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
        self._lay_out()
        self._use_level(0)
        self.setMinimumSize(300, LEAST_HEIGHT)

    def sizeHint(self) -> QSize:
        return QSize(420, self._fitted)

    def hasHeightForWidth(self) -> bool:
        """No: `fit` says how high it is, whatever its texts would take at the moment."""
        return False

    def fit(self, width: int, most: int, usual: int = LEAST_HEIGHT) -> None:
        """Take as much height as the step needs in ``width``, whatever is answered: ``usual`` up to ``most`` pixels.

        Letters get smaller before the card gets higher than ``usual``, so that it keeps its height from step to step.
        """
        usual = max(usual, LEAST_HEIGHT)
        most = max(most, usual)
        self._arrange(width)
        least = [self._lowest(level, width) for level in range(len(self.sizes))]
        level = next((place for place, high in enumerate(least) if high <= usual), least.index(min(least)))
        needed = self._lowest(level, width)
        high = min(max(needed, usual), most)
        self._enlarge_words(width, high)
        self._arrange_choices(self._columns_in(width))
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._answer_line.setDirection(across if self._beside else down)
        self._prompt.setWordWrap(not self._beside)
        self._fitted = high
        self.setMaximumHeight(self._fitted)
        self.updateGeometry()

    def set_low(self, low: bool) -> None:
        """Whether the window is low, so that the card has narrower edges and lower buttons."""
        self._low = low
        top, bottom, gap = (_LOW_TOP, _LOW_BOTTOM, _LOW_GAP) if low else (_TOP, _BOTTOM, _GAP)
        self._outer.setContentsMargins(_SIDE, top, _SIDE, bottom)
        self._outer.setSpacing(gap)
        self.head.set_low(_LOW_HEAD if low else None)

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, state: GuideState, *, has_next_lesson: bool = True, elsewhere: bool = False) -> None:
        """Show ``state``; emits nothing. What is being typed stays while the step does.

        ``elsewhere`` says that the window shows another picture than the step's: then there is a way back to it.
        """
        before, self._state = self._state, state
        new = before is None or before.script is not state.script or before.index != state.index
        if new or before is None or (state.verdict, state.misses) != (before.verdict, before.misses):
            self._no_number = False
        if new:
            self.field.clear()
        self.head.present(state, elsewhere=elsewhere or state.verdict is Verdict.UNKNOWN)
        self._say_words(state)
        asked = state.step.question
        if new or (before is not None and before.language != state.language):
            self._set_choices(asked)
            self._arrange_choices(self._columns_in(self.width()))
        open_still = state.verdict not in (Verdict.RIGHT, Verdict.SHOWN)
        numeric = asked is not None and asked.kind == "number"
        self._number_row.setVisible(numeric)
        self._unit.setVisible(asked is not None and asked.percent)
        self._ask.setVisible(asked is not None)
        self._prompt.setVisible(asked is not None and asked.kind == "cell" and open_still)
        for widget in (self.field, self._submit):
            widget.setEnabled(open_still)
        for place, choice in enumerate(self.choices):
            choice.setEnabled(open_still)
            choice.mark(chosen=state.given == place and state.verdict is not Verdict.NONE)
        self._set_feedback(state)
        self.show_me.setVisible(state.can_show)
        self._told.setVisible(asked is not None)
        self._links.setVisible(state.is_last)
        self._question.setVisible(asked is not None or state.is_last)
        self.next_lesson.setVisible(has_next_lesson)
        if new:
            self._scroll.verticalScrollBar().setValue(0)
        elif before is not None and state.verdict is not before.verdict:
            self._reveal()

    def text(self) -> str:
        """The step's sentences, its question and what was said to the answer."""
        shown = (self.head.title, self._say, self._ask, self._feedback)
        return "\n".join(label.text().replace(BREAK, "") for label in shown if label.text())

    def _say_words(self, state: GuideState) -> None:
        step, language = state.step, state.language
        asked = step.question
        self._say.setText(breakable(step.say.said(language)))
        self._ask.setText(breakable(asked.ask.said(language)) if asked is not None else "")
        chinese = language == "zh"
        words = (
            (self._prompt, self.tr("click the cell in the map"), "请在图上点那一格"),
            (self._submit, self.tr("answer"), "回答"),
            (self.show_me, self.tr("show me"), "告诉我"),
            (self.next_lesson, self.tr("next lesson ▸"), "下一课 ▸"),
            (self.own_text, self.tr("your own sentence ▸"), "你自己的句子 ▸"),
            (self.check_code, self.tr("check my code ▸"), "检查我的代码 ▸"),
        )
        for widget, english, other in words:
            widget.setText(other if chinese else english)
        self.field.setPlaceholderText("数" if chinese else self.tr("a number"))
        self.field.setAccessibleName(self._ask.text())

    def _set_feedback(self, state: GuideState) -> None:
        words, mark = state.feedback, ""
        elsewhere, running, number = words_unjudged(state.step.question, state.language)
        if self._no_number:
            words = number
        elif state.verdict is Verdict.UNKNOWN:
            words = elsewhere
        elif state.verdict is Verdict.RUNNING:
            words = running
        elif state.verdict is Verdict.RIGHT:
            mark = "✓"
        elif state.verdict is Verdict.WRONG:
            mark = "×"
        self._mark.setText(mark)
        ink = self._feedback.palette()
        if mark == "✓":
            ink.setColor(ink.ColorRole.WindowText, QColor(theme.current().good))
        self._mark.setPalette(ink)
        self._mark.setVisible(bool(mark))
        self._feedback.setText(breakable(words))

    def _set_choices(self, asked: LessonQuestion | None) -> None:
        for choice in self.choices:
            self._choice_grid.removeWidget(choice)
            choice.hide()
            choice.deleteLater()
        language = self._state.language if self._state is not None else "en"
        given = asked.choices if asked is not None else ()
        self.choices = [Choice(breakable(one.words.said(language)), place) for place, one in enumerate(given)]
        for choice in self.choices:
            choice.clicked.connect(self._on_chosen)
            choice.use_pixels(self.sizes[self._level][_OTHER])

    def _arrange_choices(self, columns: int) -> None:
        for place, choice in enumerate(self.choices):
            self._choice_grid.addWidget(choice, place // columns, place % columns)
        for column in (0, 1):
            self._choice_grid.setColumnStretch(column, int(column < columns))

    def _columns_in(self, width: int) -> int:
        """In how many columns the choices stand in a card of ``width``: two where each then takes one line."""
        half = (self._question_width(width) - _LINE_GAP) // 2
        fits = all(choice.one_line_width() <= half for choice in self.choices)
        return 2 if fits or (self._crowded and width >= _WIDE) else 1

    def _reveal(self) -> None:
        """Scroll down to what was said to the answer, once that has its place."""
        QTimer.singleShot(0, self._on_placed)

    @Slot()
    def _on_placed(self) -> None:
        self._scroll.ensureWidgetVisible(self._feedback, 0, 12)

    # ---------------------------------------------------------------------------------------------------------- slots

    @Slot()
    def _on_submitted(self) -> None:
        if self._state is None or not self.field.isEnabled():
            return
        number = number_of(self.field.text())
        self._no_number = number is None
        self._set_feedback(self._state)
        if number is not None:
            self.answered.emit(number)
        else:
            self._reveal()

    @Slot()
    def _on_chosen(self) -> None:
        sender = self.sender()
        if isinstance(sender, Choice):
            self.answered.emit(sender.place)

    # --------------------------------------------------------------------------------------------------------- layout

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width())

    def _arrange(self, width: int) -> None:
        """Stand things beside each other in a wide card, below each other in a narrow one."""
        wide = width >= _WIDE
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._columns.setDirection(across if wide else down)
        self._columns.setStretch(0, self.shares[0] if wide else 0)
        self._columns.setStretch(1, self.shares[1] if wide else 0)
        self._columns.setStretch(2, 0 if wide else 1)
        self.head.arrange(width, wide=wide)
        self._onwards.setDirection(across if wide else down)
        self._arrange_choices(self._columns_in(width))

    def _question_width(self, width: int) -> int:
        """Pixels across the inside of the question's frame in a card of ``width``."""
        inside = width - 2 * _SIDE
        if width >= _WIDE:
            inside = (inside - _BESIDE) * self.shares[1] // sum(self.shares)
        return inside - 2 * _INSIDE[0] - 2

    def _needed(self, width: int) -> int:
        """The height with which a card of ``width`` shows all of the step, whichever answer is given."""
        if self._state is None:
            return LEAST_HEIGHT
        asked, across = self._state.step.question, self._question_width(width)
        wide = width >= _WIDE
        whole = width - 2 * _SIDE
        words = self._say.heightForWidth((whole - _BESIDE) * self.shares[0] // sum(self.shares) if wide else whole)
        parts = [self._ask.heightForWidth(across)] if asked is not None else []
        if self.choices:
            columns = self._columns_in(width)
            heights = [one.heightForWidth((across - (columns - 1) * _LINE_GAP) // columns) for one in self.choices]
            rows = [max(heights[first : first + columns]) for first in range(0, len(heights), columns)]
            parts.append(sum(rows) + _LINE_GAP * (len(rows) - 1))
        if asked is not None:
            parts += self._answer_heights(asked, across)
        if self._state.is_last:
            parts.append(self._links.sizeHint().height())
        question = sum(parts) + _LINE_GAP * (len(parts) - 1) + 2 * _INSIDE[1] + 2 if parts else 0
        body = max(words, question) if wide else words + _BESIDE + question
        top, bottom, gap = (_LOW_TOP, _LOW_BOTTOM, _LOW_GAP) if self._low else (_TOP, _BOTTOM, _GAP)
        return top + min(self.head.sizeHint().height(), self.head.maximumHeight()) + gap + body + bottom + 2

    def _enlarge_words(self, width: int, high: int) -> None:
        """Write the sentences, which may have room that the question beside them does not, as large as they fit."""
        if width < _WIDE:
            return
        for sizes in self.sizes[: self._level]:
            write_in(self._say, sizes[_SAY])
            if self._needed(width) <= high:
                return
        write_in(self._say, self.sizes[self._level][_SAY])

    def _lowest(self, level: int, width: int) -> int:
        """The least height in letters of this size; leaves the choices and the feedback where they make it so."""
        self._use_level(level)
        heights = {}
        for self._beside, self._crowded in product((False, True), (False, True)):
            heights[self._beside, self._crowded] = self._needed(width)
        self._beside, self._crowded = min(heights, key=lambda ways: heights[ways])
        return heights[self._beside, self._crowded]

    def _answer_heights(self, asked: LessonQuestion, across: int) -> list[int]:
        """Of the field or the prompt and of what is said to an answer: of both in one where they stand side by side."""
        if asked.kind == "choice":
            return [self._told_height(asked, across)]
        own = self._number_row if asked.kind == "number" else self._prompt
        if self._beside:
            asks = self._prompt.fontMetrics().horizontalAdvance(self._prompt.text())
            wide = own.sizeHint().width() if own is self._number_row else asks + 1
            room = across - wide - _LINE_GAP
            told = self._told_height(asked, room) if room >= _LEAST_TOLD else _TOO_HIGH
            return [max(own.sizeHint().height(), told)]
        height = own.sizeHint().height() if own is self._number_row else self._prompt.heightForWidth(across)
        return [height, self._told_height(asked, across)]

    def _told_height(self, asked: LessonQuestion, across: int) -> int:
        """What the longest that is said to an answer takes, with what stands beside it: its mark, "show me"."""
        language: Language = self._state.language if self._state is not None else "en"
        mark = self._mark.fontMetrics().horizontalAdvance("✓") + _GAP
        link = self.show_me.sizeHint().width() + _GAP
        before = self._feedback.text()
        heights = []
        wrong = [words.said(language) for words in (asked.wrong, asked.other_row) if words is not None]
        said = [(asked.right.said(language), mark), *((words, mark + link) for words in wrong)]
        said += [(asked.show.said(language), 0)]
        said += [(words, link) for words in words_unjudged(asked, language)]
        for words, beside in said:
            self._feedback.setText(breakable(words))
            heights.append(self._feedback.heightForWidth(across - beside))
        self._feedback.setText(before)
        return max(*heights, self.show_me.sizeHint().height())

    def _use_level(self, level: int) -> None:
        """Write in sizes that are the smaller the higher ``level`` is."""
        self._level = level
        pixels = self.sizes[level]
        for label, of in (
            (self.head.title, _TITLE), (self._say, _SAY), (self._ask, _ASK), (self._feedback, _TOLD),
            (self._mark, _TOLD), (self._prompt, _OTHER),
        ):  # fmt: skip
            write_in(label, pixels[of])
        for choice in self.choices:
            choice.use_pixels(pixels[_OTHER])

    def _text_label(self) -> QLabel:
        return text_label()

    def _lay_out(self) -> None:
        self._number_row = QWidget()
        number = QHBoxLayout(self._number_row)
        number.setContentsMargins(0, 0, 0, 0)
        for widget in (self.field, self._unit, self._submit):
            number.addWidget(widget)
        self._number_row.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._choice_grid = QGridLayout()
        self._choice_grid.setSpacing(_LINE_GAP)
        self._told = QWidget()
        told = QHBoxLayout(self._told)
        told.setContentsMargins(0, 0, 0, 0)
        told.setSpacing(_GAP)
        told.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        told.addWidget(self._feedback, 1)
        told.addWidget(self.show_me, 0, Qt.AlignmentFlag.AlignTop)
        self._links = QWidget()
        self._onwards = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._links)
        self._onwards.setContentsMargins(0, 0, 0, 0)
        self._onwards.setSpacing(8)
        for link in (self.next_lesson, self.own_text, self.check_code):
            self._onwards.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)
        self._onwards.addStretch(1)
        self._question = QFrame()
        self._question.setProperty("card", True)
        asked = QVBoxLayout(self._question)
        asked.setContentsMargins(_INSIDE[0], _INSIDE[1], _INSIDE[0], _INSIDE[1])
        asked.setSpacing(_LINE_GAP)
        self._answer_line = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._answer_line.setSpacing(_LINE_GAP)
        for part in (self._number_row, self._prompt):
            self._answer_line.addWidget(part, 0, Qt.AlignmentFlag.AlignTop)
        self._answer_line.addWidget(self._told, 1)
        asked.addWidget(self._ask)
        asked.addLayout(self._choice_grid)
        asked.addLayout(self._answer_line)
        asked.addWidget(self._links)
        asked.addStretch(1)
        self._body = QWidget()
        self._columns = QBoxLayout(QBoxLayout.Direction.TopToBottom, self._body)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._columns.setSpacing(_BESIDE)
        self._columns.addWidget(self._say, 0, Qt.AlignmentFlag.AlignTop)
        self._columns.addWidget(self._question)
        self._columns.addStretch(0)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._scroll.setWidget(self._body)
        outer = self._outer = QVBoxLayout(self)
        outer.setContentsMargins(_SIDE, _TOP, _SIDE, _BOTTOM)
        outer.setSpacing(_GAP)
        outer.addWidget(self.head)
        outer.addWidget(self._scroll, 1)
