"""What a lesson's card is made of: texts that wrap, links, and choices."""

from __future__ import annotations

import re

from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy

from attnviz.lesson_files import Language, LessonQuestion

BREAK = "\u200b"


def breakable(words: str) -> str:
    """``words`` with places at which a run of characters without a space may be broken, so that nothing is cut."""
    return re.sub(r"[!-~]{24}(?=[!-~])", lambda run: run.group() + BREAK, words)


def words_unjudged(asked: LessonQuestion | None, language: Language) -> tuple[str, str, str]:
    """What is said where an answer cannot be judged: another picture, something still runs, it is no number."""
    if asked is not None and asked.measure.path:
        if language == "zh":
            return "现在是别的内容，或者计算被停下了。", "这项计算还在进行。", "请用数字回答。"
        elsewhere = _tr("Another picture is shown, or the study was stopped.")
        running = _tr("The study is still running.")
    else:
        if language == "zh":
            return "现在图上是别的内容。", "图还在计算。", "请用数字回答。"
        elsewhere = _tr("The picture shows something else now.")
        running = _tr("The picture is still being computed.")
    return elsewhere, running, _tr("Type a number, in digits.")


def _tr(text: str) -> str:
    return QCoreApplication.translate("LessonCard", text)


def text_label() -> QLabel:
    """A label of plain text that is wrapped."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label


def write_in(label: QLabel, pixels: int) -> None:
    """Write a label in letters of this size."""
    font = label.font()
    font.setPixelSize(pixels)
    label.setFont(font)


def link_button() -> QPushButton:
    """A button that looks like a link."""
    link = QPushButton()
    link.setProperty("link", True)
    link.setCursor(Qt.CursorShape.PointingHandCursor)
    link.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return link


class Choice(QPushButton):
    """A button whose words are wrapped."""

    def __init__(self, words: str, place: int) -> None:
        super().__init__()
        self.place = place
        self._label = text_label()
        self._label.setText(words)
        self._label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(words.replace(BREAK, ""))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCheckable(True)
        self.setStyleSheet("QPushButton:checked { border: 2px solid palette(highlight); }")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 12, 4)
        row.addWidget(self._label)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def use_pixels(self, pixels: int) -> None:
        """Write the words in this size."""
        write_in(self._label, pixels)
        self.updateGeometry()

    def one_line_width(self) -> int:
        """Pixels that the words take with their edges, unbroken."""
        return self._label.fontMetrics().horizontalAdvance(self._label.text()) + 28

    def mark(self, *, chosen: bool) -> None:
        """Show that it is the one that was chosen."""
        self.setChecked(chosen)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        inside = self._label.heightForWidth(max(width - 24, 1))
        return max(inside, 18) + 10

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(self.width(), 200)))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.heightForWidth(max(self.width(), 60)))
