"""Go to a token: by its number, its text, or a cell's row and column."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QVBoxLayout, QWidget

from attnviz.figure.labels import map_shape
from attnviz.frames import Outline
from attnviz.session import Cell, Snapshot
from attnviz.spec import QUERY_KEY_STAGES


class NoSuchToken(ValueError):  # noqa: N818 (what was typed is wrong, not the program)
    """What was typed names no cell; the sentence says why."""


def target(text: str, outline: Outline, now: Cell | None) -> Cell:
    """The cell that ``text`` means: "row,col", a token's number, or its text, searched from the one after ``now``.

    Where tokens are counted in thousands, "131,071" is one number, and "131, 071" or "131;71" a row and a column.
    A token is its own query's cell on the diagonal; one without a query is a key of the present row. Text in quotes
    is text also where it looks like a number. Raises `NoSuchToken`.
    """
    text = text.strip()
    n_rows, n_cols = map_shape(outline)
    count = len(outline.tokens)
    grouped = count > 1000 and re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", text)
    pair = re.fullmatch(r"(\d+)\s*[,;x×]\s*(\d+)", text)
    if pair and not grouped:
        row, col = int(pair[1]), int(pair[2])
        if row >= n_rows or col >= n_cols:
            said = QCoreApplication.translate("GoTo", "rows are 0 to {rows}, columns 0 to {cols}")
            raise NoSuchToken(said.format(rows=f"{n_rows - 1:,}", cols=f"{n_cols - 1:,}"))
        return Cell(row, col)
    number = re.fullmatch(r"[\d, _]*\d", text)
    if number:
        place = int(re.sub(r"\D", "", text))
        if place >= count:
            said = QCoreApplication.translate("GoTo", "tokens are 0 to {last}").format(last=f"{count - 1:,}")
            raise NoSuchToken(said)
        return _cell_of(place, outline, now)
    wanted = text[1:-1] if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'“”" else text
    if not wanted:
        raise NoSuchToken(QCoreApplication.translate("GoTo", "give a number, a token or row,column"))
    start = 0
    if now is not None:
        square = outline.stage in QUERY_KEY_STAGES
        place = now.row + outline.n_keys - outline.n_queries
        start = (place if not square or _cell_of(place, outline, now) == now else now.col) + 1
    found = _next(outline.tokens, wanted, start % count)
    if found is None:
        raise NoSuchToken(QCoreApplication.translate("GoTo", "no token is “{text}”").format(text=wanted))
    return _cell_of(found, outline, now)


def _cell_of(place: int, outline: Outline, now: Cell | None) -> Cell:
    """The cell of the token at ``place``."""
    row = place - (outline.n_keys - outline.n_queries)
    if outline.stage not in QUERY_KEY_STAGES:
        n_rows, n_cols = map_shape(outline)
        row = place - (len(outline.tokens) - n_rows)
        return Cell(max(row, 0), min(now.col if now is not None else 0, n_cols - 1))
    return Cell(row, place) if row >= 0 else Cell(now.row if now is not None else 0, place)


def _next(tokens: Sequence[str], wanted: str, start: int) -> int | None:
    """The first place from ``start`` on, and round again, of the very token, else of one alike but for its case."""
    for first, last in (start, len(tokens)), (0, start):
        try:
            return tokens.index(wanted, first, last)
        except ValueError:
            continue
    alike = wanted.strip().casefold()
    places = (*range(start, len(tokens)), *range(start))
    return next((place for place in places if tokens[place].strip().casefold() == alike), None)


class GoTo(QFrame):
    """One line over the window; Enter goes there and stays open, so that Enter again goes on. Esc closes."""

    asked = Signal(object)
    """A `Cell`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._over = parent
        self._snapshot: Snapshot | None = None
        self.line = QLineEdit()
        self.line.setPlaceholderText(self.tr("a number, a token, or row,column"))
        self.line.setAccessibleName(self.tr("token to go to"))
        self.line.returnPressed.connect(self._on_enter)
        self.line.textEdited.connect(self._on_typed)
        self.said = QLabel(self._hint())
        self.said.setTextFormat(Qt.TextFormat.PlainText)
        self.said.setWordWrap(True)
        column = QVBoxLayout(self)
        column.addWidget(self.line)
        column.addWidget(self.said)
        self.setFixedWidth(360)

    def _hint(self) -> str:
        return self.tr("Enter goes there, Enter again to the next. Numbers count from 0.")

    def present(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @Slot()
    def popup(self) -> None:
        """Open over the middle of the window, what was typed last marked."""
        self._say("")
        self.line.selectAll()
        self.adjustSize()
        over = self._over
        self.move(over.mapToGlobal(QPoint((over.width() - self.width()) // 2, 90)))
        self.show()
        self.line.setFocus()

    @Slot()
    def _on_typed(self) -> None:
        self._say("")

    def _say(self, problem: str) -> None:
        """The problem beside the field, or what the field takes."""
        self.said.setText(problem or self._hint())
        role = "problem" if problem else "muted"
        if self.said.property("role") != role:
            self.said.setProperty("role", role)
            self.said.style().unpolish(self.said)
            self.said.style().polish(self.said)
        self.setFixedHeight(self.sizeHint().height())

    @Slot()
    def _on_enter(self) -> None:
        snapshot = self._snapshot
        picture = snapshot.shown if snapshot is not None else None
        if snapshot is None or picture is None or picture.outline is None:
            return
        try:
            cell = target(self.line.text(), picture.outline, snapshot.selected)
        except NoSuchToken as error:
            self._say(str(error))
            return
        self._say("")
        self.asked.emit(cell)
