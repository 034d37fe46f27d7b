"""The tokens as pills; the selected query is lit."""

from __future__ import annotations

import html

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from attnviz.figure.fonts import draw_text, elided, sized, text_width
from attnviz.session import Snapshot
from attnviz.views import theme
from attnviz.views.story import is_last_good
from attnviz.views.token_names import token_name

_GAP = 8.0
_MOST = 24
_TYPE = 18  # pixels
_SMALL, _LEAST = 13, 12


class TokenStrip(QWidget):
    """One line of pills, as many as fit, around the selected one; then where the numbers come from.

    Grey and said so while they are those of the last good picture, since what was asked for did not come.
    """

    row_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tokens: tuple[str, ...] = ()
        self._n_queries = 0
        self._glosses: tuple[str, ...] = ()
        self._origin = ""
        self._selected: int | None = None
        self._last_good = False
        self._scale = 1.0
        self._pills: list[tuple[int, QRectF]] = []
        self._chip = False
        self.setMinimumHeight(44)
        self.setMinimumWidth(160)
        self.setAccessibleName(self.tr("tokens"))

    def sizeHint(self) -> QSize:
        return QSize(400, round(44 * self.scale))

    @property
    def scale(self) -> float:
        """How large the type is: 1 at a desk."""
        return self._scale

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scale = scale
        self.setMinimumHeight(round(44 * scale))
        self.update()

    def present(self, snapshot: Snapshot) -> None:
        picture = snapshot.shown
        if picture is None or picture.outline is None:
            return
        outline = picture.outline
        selected = None if snapshot.selected is None else snapshot.selected.row + outline.n_keys - outline.n_queries
        last_good = is_last_good(snapshot) and picture is snapshot.picture
        origin = self.tr("the last good picture: what was asked for did not come") if last_good else outline.origin
        state = outline.n_queries, origin, selected, last_good
        same = _same(outline.tokens, self._tokens) and _same(outline.glosses, self._glosses)
        if same and state == (self._n_queries, self._origin, self._selected, self._last_good):
            return
        self._tokens, self._glosses = outline.tokens, outline.glosses
        self._n_queries, self._origin, self._selected, self._last_good = state
        self.update()

    def _place(self) -> None:
        """Pills from the first token on, or from a little before the selected one, which is among them.

        The chip goes where pills would have to give way to it; then the words count the tokens left out.
        """
        self._chip = self._origin != ""
        self._lay(0)
        if self._chip and len(self._pills) < len(self._tokens) and self.scale > 1:
            self._chip = False
            self._lay(0)
        place = self._selected
        if place is None or place >= len(self._tokens) or place in [at for at, _ in self._pills]:
            return
        for first in range(max(0, place - 4), place + 1):
            self._lay(first)
            if self._pills[-1][0] >= place:
                return

    def _lay(self, first: int) -> None:
        """Pills from token ``first`` on, as many as fit."""
        self._pills = []
        font, end = sized(_TYPE * self.scale), self.width() - (self._chip_width() + 12 if self._chip else 0)
        count = len(self._tokens)
        x = 0.5
        for place in range(first, min(count, first + _MOST)):
            shown = elided(font, token_name(self._tokens, place), 150 * self.scale)
            width = max(text_width(font, shown) + 32 * self.scale, 46 * self.scale)
            whole = first == 0 and place == count - 1
            if x + width > end - (0 if whole else self._words_width()) and self._pills:
                break
            self._pills.append((place, QRectF(x, 3.5, width, 37 * self.scale)))
            x += width + _GAP

    def _small(self) -> QFont:
        return sized(max(_SMALL * self.scale, _LEAST))

    def _left_out(self, count: int) -> str:
        return self.tr("… {n} more").format(n=f"{count:,}")

    def _words_width(self) -> float:
        """Room for the words about the tokens that are left out."""
        return text_width(self._small(), self._left_out(len(self._tokens))) + 24

    def _chip_width(self) -> float:
        return min(text_width(self._small(), self._short_origin()) + 24 * self.scale, self.width() * 0.35)

    def _short_origin(self) -> str:
        """The chip holds the words before the colon; the tooltip holds the whole sentence."""
        return self._origin.split(":")[0]

    def paintEvent(self, _event: QPaintEvent) -> None:
        self._place()
        c = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = Qt.AlignmentFlag.AlignCenter
        for place, pill in self._pills:
            lit = place == self._selected and not self._last_good
            edge = place == self._selected
            painter.setPen(QPen(QColor(c.accent if edge else c.hairline), 1))
            painter.setBrush(QColor(c.accent if lit else c.card))
            painter.drawRoundedRect(pill, 18 * self.scale, 18 * self.scale)
            painter.setPen(QColor(c.on_accent if lit else c.muted if self._last_good else c.ink))
            painter.setFont(sized(_TYPE * self.scale))
            draw_text(painter, pill.adjusted(12, 0, -12, 0), centre, token_name(self._tokens, place))
        end = self._pills[-1][1].right() + 12 if self._pills else 0.0
        middle = self._pills[0][1].center().y() if self._pills else self.height() / 2
        painter.setFont(self._small())
        painter.setPen(QColor(c.muted))
        if len(self._pills) < len(self._tokens):
            words = self._left_out(len(self._tokens) - len(self._pills))
            draw_text(painter, QRectF(end, middle - 20, self._words_width(), 40), Qt.AlignmentFlag.AlignLeft, words)
            end += text_width(self._small(), words) + 14
        if self._chip:
            height = 21 * self.scale
            chip = QRectF(end, middle - height / 2, self._chip_width(), height)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(c.hairline), 1))
            painter.drawRoundedRect(chip, height / 2, height / 2)
            painter.setPen(QColor(c.muted))
            draw_text(painter, chip.adjusted(8, 0, -8, 0), centre, self._short_origin())
        painter.end()

    def _token_at(self, point: QPoint) -> int | None:
        return next((place for place, pill in self._pills if pill.contains(point.toPointF())), None)

    def _named(self, place: int) -> str:
        """The token and, where there is one, its word in English."""
        token, gloss = self._tokens[place], self._glosses[place] if place < len(self._glosses) else ""
        return f"{token} · {gloss}" if gloss and gloss != token else token

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._token_at(event.position().toPoint())
        first = len(self._tokens) - self._n_queries
        if place is not None and place >= first:
            self.row_selected.emit(place - first)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = self._token_at(event.pos())
            words = html.escape(self._origin if place is None else self._named(place))
            QToolTip.showText(event.globalPos(), f"<span>{words}</span>" if words else "", self)
            return True
        return super().event(event)


def _same(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether the names are known to be the same; a million of them are not compared."""
    return names is others or (len(names) <= _MOST and names == others)
