"""The first line of a lesson's card: the step's title, the languages, the way through the steps, and out."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QMenu, QPushButton, QWidget

from attnviz.guide import GuideState
from attnviz.lesson_files import Language, LessonStep
from attnviz.views.lesson_parts import breakable, link_button, text_label
from attnviz.views.segments import Segments

_NO_LIMIT = 16_777_215  # Qt's own
_ROOMY = 860  # pixels across in which a title and the way back stand side by side
_LONGEST = 90
"""Characters of a step's id and title that are shown."""


class LessonHead(QWidget):
    """``step_asked`` carries a step's place from 0; ``left`` is the cross. The languages are ``languages``' to tell.

    ``again`` asks for the present step once more: it is there while the window shows another picture than the step's.
    """

    step_asked = Signal(int)
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state: GuideState | None = None
        self._wide = self._roomy = True
        self.title = text_label()
        self.title.setProperty("role", "muted")
        self.languages = Segments([("en", "en"), ("zh", "中文")])
        self.again = link_button()
        self.again.hide()
        self.back, self.next, self.place, self.leave = QPushButton(), QPushButton(), link_button(), link_button()
        self.leave.setText("✕")
        self.back.clicked.connect(self._on_back)
        self.next.clicked.connect(self._on_next)
        self.place.clicked.connect(self._on_place)
        self.leave.clicked.connect(self.left)
        self.again.clicked.connect(self._on_again)
        self.steps = QMenu(self)
        self.steps.setStyleSheet("QMenu { menu-scrollable: 1; }")
        self.steps.triggered.connect(self._on_step_chosen)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(10)
        self._line.addWidget(self.title, 1)
        self._line.addWidget(self.again, 0, Qt.AlignmentFlag.AlignLeft)
        ways = QHBoxLayout()
        ways.setSpacing(10)
        ways.addWidget(self.languages)
        self.languages.buttons["en"].setMinimumWidth(34)
        for button in (self.back, self.place, self.next, self.leave):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
            button.setMinimumWidth(26)
            ways.addWidget(button)
        ways.addStretch(0)
        self._line.addLayout(ways)

    def present(self, state: GuideState, *, elsewhere: bool = False) -> None:
        """Show ``state``, and the way back where the window is ``elsewhere``; emits nothing."""
        self._state = state
        self.again.setText("↺ 回到这一步的图" if state.language == "zh" else self.tr("↺ back to this step's picture"))
        self.again.setVisible(elsewhere)
        self._give_way()
        title = _titled(state.step, state.language)
        self.title.setText(breakable(_shortened(title)))
        self.title.setToolTip(title if len(title) > _LONGEST else "")
        self.languages.set_value(state.language)
        self.back.setEnabled(state.index > 0)
        self.next.setEnabled(not state.is_last)
        self.place.setText(f"{state.index + 1} / {state.total}")
        widest = self.place.fontMetrics().horizontalAdvance(f"{state.total} / {state.total}")
        self.place.setMinimumWidth(widest + 12)  # so that no button moves from step to step
        chinese = state.language == "zh"
        for button, english, other in (
            (self.place, self.tr("All steps of this lesson"), "这一课的所有步骤"),
            (self.leave, self.tr("Leave the lesson"), "离开这一课"),
        ):
            button.setToolTip(other if chinese else english)
            button.setAccessibleName(other if chinese else english)
        self._set_arrows()

    def arrange(self, width: int, *, wide: bool) -> None:
        """In one line, or where that is too narrow in two, with arrows for words; a title gives way to the way back."""
        self._wide, self._roomy = wide, width >= _ROOMY
        self._give_way()
        self._line.setDirection(QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom)
        self._set_arrows()

    def _give_way(self) -> None:
        self.title.setVisible(self._roomy or not self.again.isVisibleTo(self))

    def set_low(self, height: int | None) -> None:
        """In a low window every button, and the line, is no higher than ``height``."""
        most = _NO_LIMIT if height is None else height
        for widget in (self, self.languages, *self.languages.buttons.values(), self.back, self.next):
            widget.setMaximumHeight(most)

    def _set_arrows(self) -> None:
        chinese = self._state is not None and self._state.language == "zh"
        for button, arrow, english, other in (
            (self.back, "◂", self.tr("◂ back"), "◂ 上一步"),
            (self.next, "▸", self.tr("next ▸"), "下一步 ▸"),
        ):
            said = other if chinese else english
            button.setText(said if self._wide else arrow)
            button.setAccessibleName(said.strip("◂▸ "))

    def fill_steps(self) -> None:
        """All steps into the menu ``steps``, the present one checked."""
        self.steps.clear()
        state = self._state
        if state is None:
            return
        for index, step in enumerate(state.script.steps):
            action = self.steps.addAction(_shortened(_titled(step, state.language)).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(index == state.index)
            action.setData(index)

    @Slot()
    def _on_place(self) -> None:
        self.fill_steps()
        if self._state is not None:
            at = self.steps.actions()[self._state.index]
            self.steps.popup(self.place.mapToGlobal(QPoint(0, self.place.height())), at)

    @Slot(QAction)
    def _on_step_chosen(self, action: QAction) -> None:
        self.step_asked.emit(int(action.data()))

    @Slot()
    def _on_back(self) -> None:
        self._ask(-1)

    @Slot()
    def _on_next(self) -> None:
        self._ask(1)

    @Slot()
    def _on_again(self) -> None:
        self._ask(0)

    def _ask(self, on: int) -> None:
        if self._state is not None:
            self.step_asked.emit(self._state.index + on)


def _titled(step: LessonStep, language: Language) -> str:
    """A step's id and title."""
    title = step.title.said(language)
    return f"{step.id}  {title}" if step.id[:1].isdigit() else title  # a section's number; another id is the file's own


def _shortened(title: str) -> str:
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"
