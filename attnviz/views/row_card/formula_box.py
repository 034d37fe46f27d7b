"""A box in which a formula is written, some of it struck out; lines that are too long go on below."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QLineF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.views import theme
from attnviz.views.row_card import metrics
from attnviz.views.row_card.fitting import ROOMY
from attnviz.views.row_card.formula import Line, Run, plain

_MARGIN, _INDENT = 14.0, 24.0


@dataclass(frozen=True, slots=True)
class _Placed:
    x: float
    line: int
    run: Run


class FormulaBox(QWidget):
    """Shows lines of runs, each `line` pixels high, with `around` above the first and below the last together.

    `n_lines` is how many they are at the width it has: ``fitted`` says that this changed.
    """

    fitted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale = 1.0
        self.line, self.around = ROOMY.formula, ROOMY.around_formula
        self.n_lines = 1
        self.lines: tuple[Line, ...] = ()
        self._placed: list[_Placed] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSizePolicy(policy)
        self._place()

    def show_lines(self, lines: tuple[Line, ...]) -> None:
        if lines == self.lines:
            return
        self.lines = lines
        self.setAccessibleName("; ".join(map(plain, lines)))
        self._place()

    def set_scale(self, scale: float) -> None:
        self.scale = scale
        self._place()

    def sizeHint(self) -> QSize:
        return QSize(300, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._place()

    def _place(self) -> None:
        """Put each word where it stands, and take the height that they need."""
        load_fonts()
        font = sized(metrics.NUMBER * self.scale)
        right = max(self.width() - _MARGIN * self.scale, 120.0)
        self._placed, row = [], 0
        for line in self.lines:
            x = _MARGIN * self.scale
            for run in _words(line):
                width = text_width(font, run.text.rstrip())
                if x + width > right and x > (_MARGIN + _INDENT) * self.scale:
                    row += 1
                    x = (_MARGIN + _INDENT) * self.scale
                    run = replace(run, text=run.text.lstrip())  # noqa: PLW2901
                self._placed.append(_Placed(x, row, run))
                x += text_width(font, run.text)
            row += 1
        before, self.n_lines = self.n_lines, row
        self.set_line(self.line, self.around)
        if self.n_lines != before:
            self.fitted.emit()

    def set_line(self, height: int, around: int) -> None:
        """Make each line ``height`` pixels high, with ``around`` above and below them."""
        self.line, self.around = height, around
        self.setFixedHeight(self.n_lines * height + around)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        c, scale = theme.current(), self.scale
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(c.field))
        painter.drawRoundedRect(QRectF(self.rect()), 8, 8)
        painter.setFont(sized(metrics.NUMBER * scale))
        for placed in self._placed:
            run = placed.run
            width = text_width(painter.font(), run.text)
            rect = QRectF(placed.x, self.around / 2 + placed.line * self.line, width + 1, self.line)
            painter.setPen(QColor(c.leak if run.leak else c.muted if run.muted or run.struck else c.ink))
            draw_text(painter, rect, Qt.AlignmentFlag.AlignLeft, run.text)
            if run.struck and run.text.strip():
                painter.setPen(QPen(QColor(c.ink), 1.4 * scale))
                painter.drawLine(QLineF(placed.x, rect.center().y(), placed.x + width, rect.center().y()))
        painter.end()


def _words(line: Line) -> list[Run]:
    """A line's runs, cut behind spaces, so that it can go on below; a number stays with its unit and its sign."""
    words = []
    for run in line:
        parts = run.text.replace(" %", "\u00a0%").split(" ")
        words += [replace(run, text=part + (" " if place < len(parts) - 1 else "")) for place, part in enumerate(parts)]
    return [word for word in words if word.text]
