"""The step of a lesson that is being played: what to notice, one question, and the way on."""

from __future__ import annotations

import re

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
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
from attnviz.lesson_files import LessonQuestion
from attnviz.views import theme
from attnviz.views.segments import Segments

_SIDE = 18
_WIDE = 560
"""From this width on the question stands beside the sentences, else below them."""


class LessonCard(QFrame):
    """A step in words, its question beside or below them. The card keeps its size whatever it says: long texts scroll.

    ``step_asked`` carries a step's place from 0 (also this one's: its picture is wanted back), ``answered`` a float as
    typed, or an int, a choice's place; clicks on the map are the map's to tell. ``shown_asked`` is "show me".
    """

    step_asked = Signal(int)
    answered = Signal(object)
    shown_asked = Signal()
    own_text_asked = Signal()
    next_lesson_asked = Signal()
    check_code_asked = Signal()
    language_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "soft")
        self._state: GuideState | None = None
        self._no_number = False
        self._title, self._say, self._ask = _text(15), _text(18), _text(17)
        self._prompt, self._mark, self._feedback = _text(15), _text(17), _text(16)
        self._title.setProperty("role", "muted")
        self._prompt.setProperty("role", "muted")
        self._mark.setWordWrap(False)
        self.languages = Segments([("en", "en"), ("zh", "中文")])
        self.languages.chosen.connect(self.language_chosen)
        self.field, self._unit, self._submit = QLineEdit(), QLabel("%"), QPushButton()
        self.field.setFixedWidth(110)
        self.field.returnPressed.connect(self._on_submitted)
        self._submit.clicked.connect(self._on_submitted)
        self.choices: list[_Choice] = []
        self.show_me, self.again = _link(), _link()
        self.show_me.clicked.connect(self.shown_asked)
        self.again.clicked.connect(self._on_again)
        self.next_lesson, self.own_text, self.check_code = _link(), _link(), _link()
        self.next_lesson.clicked.connect(self.next_lesson_asked)
        self.own_text.clicked.connect(self.own_text_asked)
        self.check_code.clicked.connect(self.check_code_asked)
        self.back, self.next, self._place = QPushButton(), QPushButton(), QLabel()
        self.back.clicked.connect(self._on_back)
        self.next.clicked.connect(self._on_next)
        self._place.setProperty("role", "muted")
        for button in (self.back, self.next, self._submit):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
        self._lay_out()
        self.setMinimumSize(300, 220)

    def sizeHint(self) -> QSize:
        return QSize(420, 320)

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, state: GuideState, *, has_next_lesson: bool = True) -> None:
        """Show ``state``; emits nothing. What is being typed stays while the step does."""
        before, self._state = self._state, state
        new = before is None or before.script is not state.script or before.index != state.index
        if new or before is None or (state.verdict, state.misses) != (before.verdict, before.misses):
            self._no_number = False
        if new:
            self.field.clear()
        self._say_words(state)
        asked = state.step.question
        if new or (before is not None and before.language != state.language):
            self._set_choices(asked)
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
        self.again.setVisible(state.verdict is Verdict.UNKNOWN)
        self.back.setEnabled(state.index > 0)
        self.next.setEnabled(not state.is_last)
        self._links.setVisible(state.is_last)
        self._question.setVisible(asked is not None or state.is_last)
        self.next_lesson.setVisible(has_next_lesson)
        self._place.setText(f"{state.index + 1} / {state.total}")
        self.languages.set_value(state.language)
        if new:
            self._scroll.verticalScrollBar().setValue(0)
        elif before is not None and state.verdict is not before.verdict:
            self._reveal()

    def text(self) -> str:
        """The step's sentences, its question and what was said to the answer."""
        shown = (self._title, self._say, self._ask, self._feedback)
        return "\n".join(label.text().replace(_BREAK, "") for label in shown if label.text())

    def _say_words(self, state: GuideState) -> None:
        step, language = state.step, state.language
        asked = step.question
        self._title.setText(_breakable(step.title.said(language)))
        self._say.setText(_breakable(step.say.said(language)))
        self._ask.setText(_breakable(asked.ask.said(language)) if asked is not None else "")
        chinese = language == "zh"
        words = (
            (self._prompt, self.tr("click the cell in the map"), "请在图上点那一格"),
            (self._submit, self.tr("answer"), "回答"),
            (self.show_me, self.tr("show me"), "告诉我"),
            (self.again, self.tr("back to this step's picture"), "回到这一步的图"),
            (self.back, self.tr("◂ back"), "◂ 上一步"),
            (self.next, self.tr("next ▸"), "下一步 ▸"),
            (self.next_lesson, self.tr("next lesson ▸"), "下一课 ▸"),
            (self.own_text, self.tr("your own sentence ▸"), "你自己的句子 ▸"),
            (self.check_code, self.tr("check my code ▸"), "检查我的代码 ▸"),
        )
        for widget, english, other in words:
            widget.setText(other if chinese else english)
        self.field.setPlaceholderText("数" if chinese else self.tr("a number"))
        self.field.setAccessibleName(self._ask.text())

    def _set_feedback(self, state: GuideState) -> None:
        chinese = state.language == "zh"
        words, mark = state.feedback, ""
        if self._no_number:
            words = "请输入一个数，比如 24。" if chinese else self.tr("Type a number, such as 24.")
        elif state.verdict is Verdict.UNKNOWN:
            words = self._words_elsewhere(state, chinese)
        elif state.verdict is Verdict.RUNNING:
            words = self._words_running(state, chinese)
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
        self._feedback.setText(_breakable(words))

    def _words_elsewhere(self, state: GuideState, chinese: bool) -> str:
        if _asks_a_study(state):
            other = self.tr("The picture shows something else now, or the study was stopped.")
            return "现在图上是别的内容，或者计算被停下了。" if chinese else other
        return "现在图上是别的内容。" if chinese else self.tr("The picture shows something else now.")

    def _words_running(self, state: GuideState, chinese: bool) -> str:
        if _asks_a_study(state):
            other = self.tr("The study is still running; your answer is judged when it ends.")
            return "这项计算还在进行，算完就判断你的回答。" if chinese else other
        other = self.tr("The picture is still being computed; your answer is judged when it is there.")
        return "图还在计算，算完就判断你的回答。" if chinese else other

    def _set_choices(self, asked: LessonQuestion | None) -> None:
        for choice in self.choices:
            self._choice_column.removeWidget(choice)
            choice.deleteLater()
        self.choices = []
        language = self._state.language if self._state is not None else "en"
        for place, given in enumerate(asked.choices if asked is not None else ()):
            choice = _Choice(_breakable(given.words.said(language)), place)
            choice.clicked.connect(self._on_chosen)
            self._choice_column.addWidget(choice)
            self.choices.append(choice)

    def _reveal(self) -> None:
        """Scroll down to what was said to the answer, once that has its place."""
        QTimer.singleShot(0, self._on_placed)

    @Slot()
    def _on_placed(self) -> None:
        last = next((link for link in (self.again, self.show_me) if link.isVisibleTo(self)), self._feedback)
        self._scroll.ensureWidgetVisible(last, 0, 12)

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
        if isinstance(sender, _Choice):
            self.answered.emit(sender.place)

    @Slot()
    def _on_again(self) -> None:
        self._ask_step(0)

    @Slot()
    def _on_back(self) -> None:
        self._ask_step(-1)

    @Slot()
    def _on_next(self) -> None:
        self._ask_step(1)

    def _ask_step(self, on: int) -> None:
        if self._state is not None:
            self.step_asked.emit(self._state.index + on)

    # --------------------------------------------------------------------------------------------------------- layout

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= _WIDE
        self._columns.setDirection(
            QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom,
        )
        self._columns.setStretch(0, 4 if wide else 0)
        self._columns.setStretch(1, 3 if wide else 0)
        self._columns.setStretch(2, 0 if wide else 1)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._title, 1)
        head.addWidget(self.languages, 0, Qt.AlignmentFlag.AlignTop)
        self._number_row = QWidget()
        number = QHBoxLayout(self._number_row)
        number.setContentsMargins(0, 0, 0, 0)
        for widget in (self.field, self._unit, self._submit):
            number.addWidget(widget)
        number.addStretch(1)
        self._choice_column = QVBoxLayout()
        self._choice_column.setSpacing(6)
        told = QHBoxLayout()
        told.setSpacing(8)
        told.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        told.addWidget(self._feedback, 1)
        self._links = QWidget()
        links = QVBoxLayout(self._links)
        links.setContentsMargins(0, 0, 0, 0)
        links.setSpacing(2)
        for link in (self.next_lesson, self.own_text, self.check_code):
            links.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)
        self._question = QFrame()
        self._question.setProperty("card", True)
        asked = QVBoxLayout(self._question)
        asked.setContentsMargins(14, 8, 14, 8)
        asked.setSpacing(6)
        asked.addWidget(self._ask)
        asked.addWidget(self._number_row)
        asked.addWidget(self._prompt)
        asked.addLayout(self._choice_column)
        asked.addLayout(told)
        for link in (self.show_me, self.again):
            asked.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)
        asked.addWidget(self._links)
        self._body = QWidget()
        self._columns = QBoxLayout(QBoxLayout.Direction.TopToBottom, self._body)
        self._columns.setContentsMargins(0, 0, 6, 0)
        self._columns.setSpacing(14)
        self._columns.addWidget(self._say, 0, Qt.AlignmentFlag.AlignTop)
        self._columns.addWidget(self._question, 0, Qt.AlignmentFlag.AlignTop)
        self._columns.addStretch(0)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._scroll.setWidget(self._body)
        foot = QHBoxLayout()
        foot.addWidget(self.back)
        foot.addStretch(1)
        foot.addWidget(self._place)
        foot.addStretch(1)
        foot.addWidget(self.next)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(_SIDE, 14, _SIDE - 6, 12)
        outer.setSpacing(8)
        outer.addLayout(head)
        outer.addWidget(self._scroll, 1)
        outer.addLayout(foot)


class _Choice(QPushButton):
    """A button whose words are wrapped."""

    def __init__(self, words: str, place: int) -> None:
        super().__init__()
        self.place = place
        self._label = _text(15)
        self._label.setText(words)
        self._label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(words.replace(_BREAK, ""))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCheckable(True)
        self.setStyleSheet("QPushButton:checked { border: 2px solid palette(highlight); }")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 7, 12, 7)
        row.addWidget(self._label)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def mark(self, *, chosen: bool) -> None:
        """Show that it is the one that was chosen."""
        self.setChecked(chosen)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        inside = self._label.heightForWidth(max(width - 24, 1))
        return max(inside, 18) + 16

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(self.width(), 200)))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.heightForWidth(max(self.width(), 60)))


def _asks_a_study(state: GuideState) -> bool:
    return state.step.question is not None and bool(state.step.question.measure.path)


_BREAK = "\u200b"


def _breakable(words: str) -> str:
    """``words`` with places at which a run of characters without a space may be broken, so that nothing is cut."""
    return re.sub(r"[!-~]{24}(?=[!-~])", lambda run: run.group() + _BREAK, words)


def _text(pixels: int) -> QLabel:
    """A label of plain text that is wrapped."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    font = label.font()
    font.setPixelSize(pixels)
    label.setFont(font)
    return label


def _link() -> QPushButton:
    link = QPushButton()
    link.setProperty("link", True)
    link.setCursor(Qt.CursorShape.PointingHandCursor)
    link.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return link
