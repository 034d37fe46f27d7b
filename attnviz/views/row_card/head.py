"""Whose row it is, what it asks, and the answer that should not lie open."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width
from attnviz.spec import TypedWeights
from attnviz.views import theme
from attnviz.views.row_card import metrics
from attnviz.views.row_card.fitting import ROOMY
from attnviz.views.row_card.lines import RowLines

_ASKS = 15
_LEFT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter


class HeadLine(QWidget):
    """The asking token at the left, the answer at the right: in a red frame where it lies open."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scale = 1.0
        self._lines: RowLines | None = None
        self.setFixedHeight(ROOMY.head)

    def show_lines(self, lines: RowLines) -> None:
        self._lines = lines
        self.setAccessibleName(" ".join(word for word in (lines.tokens[lines.place], *self.words()) if word))
        self.setToolTip(self._tip())
        self.update()

    def set_scale(self, scale: float) -> None:
        self.scale = scale
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(300, self.height())

    def words(self) -> tuple[str, str]:
        """What is said behind the asking token, and before the answer (or instead of it)."""
        lines = self._lines
        if lines is None:
            return "", ""
        typed = isinstance(lines.spec.source, TypedWeights)
        asks = "" if typed else self.tr("asks: what comes next?")
        if lines.head is not None:
            asks = " · ".join(filter(None, [asks, self.tr("head {n}").format(n=lines.head)]))
        if lines.answer is not None:
            return asks, self.tr("the answer:")
        last = lines.is_last_word and not typed
        return asks, self.tr("the last word: nothing is written behind it") if last else ""

    def _shorter(self) -> tuple[str, ...]:
        """Shorter words for what is said behind the asking token."""
        head = self._lines.head if self._lines is not None else None
        if head is None:
            return (self.tr("what comes next?"), self.tr("asks"))
        return (self.tr("asks · head {n}").format(n=head), self.tr("head {n}").format(n=head), str(head))

    def _tip(self) -> str:
        answer = self._lines.answer if self._lines is not None else None
        if answer is None:
            return ""
        if answer.open:
            return self.tr("The answer lies open: the row may look at the word that it is to guess.")
        return self.tr("The answer is covered: the row cannot look at the word that it is to guess.")

    def paintEvent(self, _event: QPaintEvent) -> None:
        lines = self._lines
        if lines is None:
            return
        load_fonts()
        c, scale = theme.current(), self.scale
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        large, small = sized(min((metrics.TOKEN + 2) * scale, 0.7 * self.height())), sized(_ASKS * scale)
        height, (asks, before_answer) = float(self.height()), self.words()
        right = float(self.width())
        if lines.answer is not None:
            right = self._paint_answer(painter, lines.answer.token, before_answer, open_=lines.answer.open)
        elif before_answer:
            width = text_width(small, before_answer)
            if width > right - 60 * scale:
                before_answer = self.tr("the last word")
                width = text_width(small, before_answer)
            painter.setFont(small)
            painter.setPen(QColor(c.muted))
            right -= width + 12 * scale
            draw_text(painter, QRectF(right + 12 * scale, 0, width + 1, height), _LEFT, before_answer)
        token = elided(large, lines.tokens[lines.place], max(right - 10 * scale, 40.0))
        x = 5.0 * scale
        painter.setFont(large)
        painter.setPen(QColor(c.ink))
        width = text_width(large, token)
        draw_text(painter, QRectF(x, 0, width + 1, height), _LEFT, token)
        x += width + 12 * scale
        painter.setFont(small)
        for said in (asks, *self._shorter()):  # the longest that fits
            if text_width(small, said) <= right - x:
                draw_text(painter, QRectF(x, 0, right - x, height), _LEFT, said)
                break
        painter.end()

    def _paint_answer(self, painter: QPainter, token: str, words: str, *, open_: bool) -> float:
        """The answer in its frame; returns where it begins."""
        c, scale, height = theme.current(), self.scale, float(self.height())
        large, small = sized(min(metrics.TOKEN * scale, 0.62 * height)), sized(_ASKS * scale)
        text = elided(large, token, self.width() * 0.25)
        width = text_width(large, text) + 22 * scale
        edge = min(3 * scale, 0.05 * height)
        box = QRectF(self.width() - width - 1.5, edge, width, height - 2 * edge)
        painter.setPen(QPen(QColor(c.leak if open_ else c.hairline), 2 if open_ else 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, 8, 8)
        painter.setFont(large)
        painter.setPen(QColor(c.ink if open_ else c.muted))
        draw_text(painter, box, _CENTRE, text)
        painter.setFont(small)
        painter.setPen(QColor(c.ink))
        said = text_width(small, words)
        left = box.left() - said - 10 * scale
        draw_text(painter, QRectF(left, 0, said + 1, height), _LEFT, words)
        return left - 8 * scale
