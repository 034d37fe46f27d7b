"""The map of who sees whom, as a widget that tells each cell."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QRectF, QSize
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from attnviz.figure.leak_map import LeakPlan, WhoSeesWhom, paint_leak_map
from attnviz.questions.leak import ROUNDING_EPS, GradientReading
from attnviz.views.plot import style_of


class LeakView(QWidget):
    """Nothing until there is a reading; hovering says how far an output moved."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reading: WhoSeesWhom | None = None
        self._tokens: tuple[str, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setMinimumSize(200, 200)
        self.setAccessibleName(self.tr("who sees whom"))

    def sizeHint(self) -> QSize:
        return QSize(420, 400)

    def heightForWidth(self, width: int) -> int:
        """As high as the square of the cells with its names and legend needs."""
        return min(width, 460)

    def show_reading(self, reading: WhoSeesWhom | None, tokens: tuple[str, ...]) -> None:
        """Show ``reading``; ``tokens`` name outputs and tokens where there are as many."""
        if reading is not self.reading or tokens != self._tokens:
            self.reading, self._tokens = reading, tokens
            self.update()

    def words_at(self, row: int, col: int) -> str:
        """How far an output moved when a token changed, or depends on it."""
        reading = self.reading
        if reading is None or reading.moved is None or reading.hidden is None:
            return ""
        figure, hidden = float(reading.moved[row, col]), bool(reading.hidden[row, col])
        named = len(self._tokens) == len(reading.moved)
        names = [f"{n} “{self._tokens[n]}”" if named else str(n) for n in (row, col)]
        if math.isnan(figure):
            words = self.tr("output {row} ← token {col}: not tested, or no number")
        elif isinstance(reading, GradientReading):
            words = self.tr("output {row} ← token {col}: its derivative is {figure} eps of the largest one")
            if figure == 0:
                words = self.tr("output {row} ← token {col}: its derivative is 0")
        elif math.isinf(figure):
            words = self.tr("output {row} ← token {col}: turns to NaN")
        elif figure == 0:
            words = self.tr("output {row} ← token {col}: moves by not one bit")
        elif figure <= ROUNDING_EPS:
            words = self.tr("output {row} ← token {col}: {figure} eps, rounding")
        elif hidden:
            words = self.tr("output {row} ← token {col}: {figure} eps, and must not move")
        else:
            words = self.tr("output {row} ← token {col}: {figure} eps")
        return words.format(row=names[0], col=names[1], figure=f"{figure:.3g}")

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self.reading is not None:
            plan = LeakPlan.of(QRectF(self.rect()), self.reading, self._tokens)
            cell = None if plan is None else plan.cell_at(event.pos().toPointF())
            if cell is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.words_at(*cell), self)
            return True
        return super().event(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.reading is None:
            return
        painter = QPainter(self)
        paint_leak_map(painter, QRectF(self.rect()), self.reading, style_of(self), self._tokens)
        painter.end()
