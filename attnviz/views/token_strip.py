"""The tokens as pills; the selected query is lit."""

from __future__ import annotations

import html

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from attnviz.figure.fonts import draw_text, elided, sized, text_width
from attnviz.session import Snapshot
from attnviz.views import theme
from attnviz.views.story import is_last_good
from attnviz.views.token_names import token_name

_GAP = 8.0
_MOST = 24
_TYPE = 18  # pixels


class TokenStrip(QWidget):
    """One line of pills, as many as fit, around the selected one; then where the numbers come from.

    Grey and said so while they are those of the last good picture, since what was asked for did not come.
    """

    row_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tokens: tuple[str, ...] = ()
        self._n_queries = 0
        self._origin = ""
        self._selected: int | None = None
        self._last_good = False
        self._scale = 1.0
        self._pills: list[tuple[int, QRectF]] = []
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
        same = outline.tokens is self._tokens or (len(outline.tokens) <= _MOST and outline.tokens == self._tokens)
        if same and state == (self._n_queries, self._origin, self._selected, self._last_good):
            return  # a million names are not compared
        self._tokens = outline.tokens
        self._n_queries, self._origin, self._selected, self._last_good = state
        self.update()

    def _place(self) -> None:
        """Pills from the first token on, or from a little before the selected one."""
        self._pills = []
        font = sized(_TYPE * self.scale)
        chip = self._chip_width()
        room = self.width() - chip - 130 * min(self.scale, 1.5)
        first = 0
        if self._selected is not None and len(self._tokens) > _MOST:
            first = max(0, self._selected - 4)
        x = 0.5
        for place in range(first, min(len(self._tokens), first + _MOST)):
            shown = elided(font, token_name(self._tokens, place), 150 * self.scale)
            width = max(text_width(font, shown) + 32 * self.scale, 46 * self.scale)
            if x + width > room and self._pills:
                break
            self._pills.append((place, QRectF(x, 3.5, width, 37 * self.scale)))
            x += width + _GAP

    def _chip_width(self) -> float:
        return min(text_width(sized(13), self._short_origin()) + 24, self.width() * 0.35) if self._origin else 0

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
        painter.setFont(sized(13))
        painter.setPen(QColor(c.muted))
        if len(self._pills) < len(self._tokens):
            words = self.tr("… {n} tokens").format(n=f"{len(self._tokens):,}")
            draw_text(painter, QRectF(end, 0, 130, self.height()), Qt.AlignmentFlag.AlignLeft, words)
            end += text_width(sized(13), words) + 14
        if self._origin:
            chip = QRectF(end, 11.5, self._chip_width(), 21)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(c.hairline), 1))
            painter.drawRoundedRect(chip, 10, 10)
            painter.setPen(QColor(c.muted))
            draw_text(painter, chip.adjusted(8, 0, -8, 0), centre, self._short_origin())
        painter.end()

    def _token_at(self, point: QPoint) -> int | None:
        return next((place for place, pill in self._pills if pill.contains(point.toPointF())), None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._token_at(event.position().toPoint())
        first = len(self._tokens) - self._n_queries
        if place is not None and place >= first:
            self.row_selected.emit(place - first)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = self._token_at(event.pos())
            words = html.escape(self._origin if place is None else self._tokens[place])
            QToolTip.showText(event.globalPos(), f"<span>{words}</span>" if words else "", self)
            return True
        return super().event(event)
