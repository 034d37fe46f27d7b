"""The row's sum and how many keys it sees."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure import marks
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.views import theme
from attnviz.views.row_card import metrics, numbers
from attnviz.views.row_card.lines import RowLines

_GAP = 7.0
_LEFT = Qt.AlignmentFlag.AlignLeft


class Foot(QWidget):
    """Σ of the row, in red where a mask leaves it away from 1. ``sum_chosen`` is emitted for a click.

    `n_lines` is two where the width asks for it; ``fitted`` says that this changed.
    """

    sum_chosen = Signal()
    fitted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale = 1.0
        self._lines: RowLines | None = None
        self._show_numbers = True
        self.n_lines = 1
        self.setToolTip(self.tr("the sum of the row's weights; click to see the row mixed"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_scale(1.0)

    def show_lines(self, lines: RowLines, *, show_numbers: bool) -> None:
        self._lines, self._show_numbers = lines, show_numbers
        self.setAccessibleName(" ".join(text for text, _ in self.words()))
        self._fit()

    def set_scale(self, scale: float) -> None:
        self.scale = scale
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def words(self) -> tuple[tuple[str, str], ...]:
        """Pieces of text, each with its role: ink, muted, leak or accent."""
        lines = self._lines
        if lines is None:
            return ()
        text, is_one = marks.row_sum(lines.total)
        odd = "accent" if lines.dropped is not None else "leak"  # dropout's sum need not be 1: red is for leaks
        role = "ink" if is_one else odd
        said = [("Σ", "muted"), (text, role) if self._show_numbers else ("·", "muted")]
        before = lines.sum_before_dividing
        if before is not None and self._show_numbers:
            told = self.tr("({sum} before ÷)").format(sum=numbers.score(before, 4))
            said.append((told, "muted"))
        said.append(("· " + lines.sees(), "muted"))
        return tuple(said)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def _fit(self) -> None:
        font = sized(metrics.NUMBER * self.scale)
        needed = sum(text_width(font, text) + _GAP * self.scale for text, _ in self.words())
        before, self.n_lines = self.n_lines, 2 if needed > max(self.width() - 5 * self.scale, 60.0) else 1
        self.update()
        if self.n_lines != before:
            self.fitted.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._lines is not None:
            self.sum_chosen.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        load_fonts()
        c, scale = theme.current(), self.scale
        colours = {"ink": c.ink, "muted": c.muted, "leak": c.leak, "accent": c.accent}
        painter = QPainter(self)
        painter.setFont(sized(metrics.NUMBER * scale))
        words = self.words()
        lines = [words[:-1], ((words[-1][0].removeprefix("· "), "muted"),)] if self.n_lines == 2 and words else [words]
        height = self.height() / len(lines)
        for place, line in enumerate(lines):
            x = 5.0 * scale
            for text, role in line:
                painter.setPen(QColor(colours[role]))
                width = text_width(painter.font(), text)
                room = max(self.width() - x, 12.0)
                draw_text(painter, QRectF(x, place * height, min(width + 1, room), height), _LEFT, text)
                x += width + _GAP * scale
        painter.end()
