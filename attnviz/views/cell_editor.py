"""A number of a typed matrix, typed where it stands: the edit, what it makes of the matrix, and the field."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import msgspec
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from attnviz.figure.fonts import sized
from attnviz.session import Cell
from attnviz.spec import SpecError, TypedScores, TypedWeights
from attnviz.views import theme

DIGITS: Final = 10
"""Decimals that sums of steps are rounded to, so that 0.1 + 0.2 reads 0.3."""


@dataclass(frozen=True, slots=True)
class CellEdit:
    """A new number for cell (``row``, ``col``) of a typed matrix: ``value``, or where that is None a ``step`` more."""

    row: int
    col: int
    value: float | None
    step: float = 0.0


def with_cell(source: TypedScores | TypedWeights, edit: CellEdit) -> TypedScores | TypedWeights:
    """``source`` with one cell changed. Weights stay at 0 or more; a step leaves −∞ as it is.

    Raises `SpecError` for a number that such a matrix cannot hold, or a cell that it does not have.
    """
    field = "scores" if isinstance(source, TypedScores) else "weights"
    matrix = source.scores if isinstance(source, TypedScores) else source.weights
    if not (0 <= edit.row < len(matrix) and 0 <= edit.col < len(matrix[0])):
        raise SpecError(field, f"{field} is {len(matrix)} x {len(matrix[0])}: it has no cell {edit.row}, {edit.col}")
    old = matrix[edit.row][edit.col]
    value = round(old + edit.step, DIGITS) if edit.value is None else edit.value
    if isinstance(source, TypedWeights) and edit.value is None:
        value = max(value, 0.0)
    row = (*matrix[edit.row][: edit.col], value + 0.0, *matrix[edit.row][edit.col + 1 :])  # −0 is 0
    changed = (*matrix[: edit.row], row, *matrix[edit.row + 1 :])
    return msgspec.structs.replace(source, **{field: changed})


def number_text(number: float | None) -> str:
    """``number`` as it is typed, up to seven digits: float32 holds no more."""
    if number is None:
        return ""
    return "−∞" if number == -math.inf else f"{number:.7g}".replace("-", "−")


def read_number(text: str, *, weights: bool) -> float | str:
    """The number that ``text`` says, or what is wrong with it in words."""
    plain = text.strip().replace("−", "-").replace(",", ".").lower()
    if plain in ("-inf", "-∞", "-infinity"):
        return _tr("a weight is 0 or more") if weights else -math.inf
    try:
        number = float(plain)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        return _tr("type a number such as 0.4") if weights else _tr("type a number such as 1.5, or −inf")
    if weights and number < 0:
        return _tr("a weight is 0 or more")
    return number


def _tr(text: str) -> str:
    return QCoreApplication.translate("CellEditor", text)


class CellEditor(QLineEdit):
    """A field over one cell. Enter takes the number, Tab takes it and goes on, Esc leaves; wrong words stand below it.

    ``taken(CellEdit)`` carries a number that was typed, ``moved(int)`` is 1 after Tab and −1 after Shift+Tab,
    ``left()`` comes when the field has closed.
    """

    taken = Signal(object)
    moved = Signal(int)
    left = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._room = parent
        self._cell = Cell(0, 0)
        self._weights = False
        self._start = self._problem = ""
        self._small = 13
        self._size = QSize(80, 30)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled, False)
        self._words = QLabel(parent)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setMargin(5)
        self._words.hide()
        self.textEdited.connect(self._check)
        self.hide()

    @property
    def cell(self) -> Cell:
        """The cell whose number is being typed."""
        return self._cell

    def open(self, cell: Cell, number: float | None, rect: QRectF, unit: float, *, weights: bool) -> None:
        """Type the number of ``cell``, now ``number`` (None: not known), over ``rect`` of the parent."""
        self._cell, self._weights = cell, weights
        self.setAccessibleName(_tr("weight") if weights else _tr("score"))
        font = sized(max(16 * unit, min(rect.height() * 0.22, 26 * unit)))
        c = theme.current()
        self.setFont(font)
        self.setStyleSheet(
            f"QLineEdit {{ font-size: {font.pixelSize()}px; background: {c.card}; color: {c.ink}; padding: 0 2px;"
            f" border: 2px solid {c.accent}; border-radius: 5px; }}"
        )
        self._small = round(13 * unit)
        size = QSize(round(max(rect.width() * 0.86, 76 * unit)), round(font.pixelSize() * 1.9))
        self._size = size
        self.put_over(rect)
        self._start = number_text(number)
        self.setText(self._start)
        self._hint()
        self.show()
        self.raise_()
        self.selectAll()
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def put_over(self, rect: QRectF) -> None:
        """Move the field to the middle of ``rect`` of the parent."""
        corner = rect.center().toPoint() - QPoint(self._size.width() // 2, self._size.height() // 2)
        self.setGeometry(_inside(QRect(corner, self._size), self._room.rect()))
        self._put_words()

    def _put_words(self) -> None:
        """The words below the field, or above it where there is no room."""
        below = QRect(self.geometry().bottomLeft() + QPoint(0, 4), self._words.size())
        room = self._room.rect()
        if below.bottom() > room.bottom():
            below.moveBottom(self.geometry().top() - 4)
        self._words.setGeometry(_inside(below, room))

    def problem(self) -> str:
        """What is wrong with what stands in the field, "" where nothing is said."""
        return self._problem if not self.isHidden() else ""

    @Slot()
    def _check(self) -> None:
        """Words below the field while no number stands there; an empty field and a lone sign are only a beginning."""
        read = read_number(self.text(), weights=self._weights)
        begun = self.text().strip() in ("", "-", "−", "+", ".", "-.", "−.") or "−inf".startswith(
            self.text().strip().lower().replace("-", "−")
        )
        if isinstance(read, str) and not begun:
            self._say(read)
        else:
            self._hint()

    def _hint(self) -> None:
        """What is being typed: beside a share of 88 % stands the score behind it."""
        what = _tr("weight") if self._weights else _tr("score")
        self._put(_tr("{0}: Enter takes it").format(what), theme.current().muted, theme.current().hairline)

    def _say(self, words: str) -> None:
        self._put(words, theme.current().leak, theme.current().leak)

    def _put(self, words: str, ink: str, border: str) -> None:
        self._problem = words if ink == theme.current().leak else ""
        ground = theme.current().card
        self._words.setStyleSheet(
            f"background: {ground}; color: {ink}; border: 1px solid {border}; border-radius: 5px;"
            f" font-size: {self._small}px;"
        )
        self._words.setText(words)
        self._words.adjustSize()
        self._put_words()
        self._words.show()
        self._words.raise_()

    def _take(self) -> bool:
        """Emit the number unless it is the one that stood there. False, with words, where there is none."""
        if self.text() == self._start:
            return True
        read = read_number(self.text(), weights=self._weights)
        if isinstance(read, str):
            self._say(read)
            return False
        self.taken.emit(CellEdit(self._cell.row, self._cell.col, read))
        return True

    def close_field(self) -> None:
        """Leave without taking anything."""
        if not self.isHidden():
            had_focus = self.window().focusWidget() is self
            self._words.hide()
            self.hide()
            if had_focus:
                self._room.setFocus()
            self.left.emit()

    def event(self, event: QEvent) -> bool:
        """Keys that are the window's elsewhere, such as Esc and Tab, are the field's here."""
        plain = isinstance(event, QKeyEvent) and not event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if plain and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            match event.key():
                case Qt.Key.Key_Tab | Qt.Key.Key_Backtab:
                    if self._take():
                        self.moved.emit(1 if event.key() == Qt.Key.Key_Tab else -1)
                    return True
                case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                    if self._take():
                        self.close_field()
                    return True
                case Qt.Key.Key_Escape:
                    self.close_field()
                    return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason and event.reason() != (
            Qt.FocusReason.ActiveWindowFocusReason
        ):
            self.close_field()


def _inside(rect: QRect, room: QRect) -> QRect:
    """``rect`` moved into ``room``."""
    moved = QRect(rect)
    moved.moveLeft(max(min(rect.left(), room.right() - rect.width()), room.left()))
    moved.moveTop(max(min(rect.top(), room.bottom() - rect.height()), room.top()))
    return moved
