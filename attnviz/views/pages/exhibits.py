"""The gallery's row of maps: one head under every order of mask and softmax, and what each row sums to."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from attnviz.figure.fonts import draw_text, load_fonts, sized
from attnviz.figure.marks import row_sum
from attnviz.figure.studies.gallery import difference_words, exhibit_map, order_name, sums_words
from attnviz.questions.gallery import ORDERS, Exhibit, GalleryAnswer
from attnviz.spec import View
from attnviz.views import theme
from attnviz.views.pages.peek_map import PeekMap
from attnviz.views.pages.reflow import Reflow

_LEAST = 132  # pixels of an exhibit
_SUMS_UP_TO = 24  # queries: of more, their sums have no room in any window
_SUMS_FROM = 12.0  # pixels a row: lower ones have no room for their sum
_LEFT = Qt.AlignmentFlag.AlignLeft


class RowSums(QWidget):
    """Σ of each row beside a map, at the rows' height; one that is not 1 is red. ``resized`` may change what fits."""

    resized = Signal()

    def __init__(self, shown: PeekMap, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._map = shown
        self.values: tuple[float, ...] = ()
        """What stands there, a number a row."""
        self.setFixedWidth(34)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)

    def show_sums(self, values: Sequence[float]) -> None:
        """Show a number a row, or nothing."""
        self.values = tuple(map(float, values))
        self.update()

    @property
    def fits(self) -> bool:
        """Whether each row is high enough for its number."""
        box = self._map.map_box()
        return bool(self.values) and box is not None and box.height / len(self.values) >= _SUMS_FROM

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        box = self._map.map_box()
        if box is None or not self.fits:
            return
        load_fonts()
        colours, painter = theme.current(), QPainter(self)
        painter.setFont(sized(12))
        height = box.height / len(self.values)
        for row, value in enumerate(self.values):
            text, is_one = row_sum(value)
            painter.setPen(QColor(colours.muted if is_one else colours.leak))
            draw_text(painter, QRectF(4, box.y + row * height, self.width() - 4, height), _LEFT, text)
        painter.end()


class ExhibitCard(QWidget):
    """One order: its map, its name and its difference from −∞. A click or Enter chooses it."""

    chosen = Signal(str)

    def __init__(self, order: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.order = order
        self.exhibit: Exhibit | None = None
        self._shown: tuple[object, ...] = ()
        self._present = False
        self.map = PeekMap()
        self.sums = RowSums(self.map)
        self.sums.resized.connect(self._show_words)
        self._sigma = QLabel("Σ")
        self._sigma.setFixedWidth(self.sums.width())
        self._sigma.setFixedHeight(14)
        self._sigma.setFont(sized(12))
        self._sigma.setContentsMargins(4, 0, 0, 0)
        self._sigma.setProperty("role", "muted")
        self._name, self._difference = QLabel(order_name(order)), QLabel()
        for label in (self._name, self._difference):
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._difference.setProperty("role", "muted")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(order_name(order))
        self._show_tip()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 4, 6, 6)
        column.setSpacing(2)
        row = QHBoxLayout()
        row.setSpacing(0)
        row.addWidget(self.map, 1)
        row.addWidget(self.sums)
        column.addWidget(self._sigma, 0, Qt.AlignmentFlag.AlignRight)
        column.addLayout(row)
        column.addWidget(self._name)
        column.addWidget(self._difference)
        column.addStretch(1)

    def sizeHint(self) -> QSize:
        return QSize(180, 250)

    def show_exhibit(self, exhibit: Exhibit | None, answer: GalleryAnswer, view: View) -> None:
        """The order's weights; None while they are computed."""
        shown = (exhibit, answer.scale, answer.question.spec.mask_shape, view.norm, view.colours)
        if shown == self._shown:
            return  # each answer brings those before it along
        self.exhibit, self._shown = exhibit, shown
        if exhibit is None:
            self.map.clear()
            self._difference.setText("…")
            return
        n_queries = len(exhibit.row_sums)
        self.map.show_map(exhibit_map(exhibit, answer, view))
        self.sums.show_sums(exhibit.row_sums.tolist())
        self.sums.setVisible(n_queries <= _SUMS_UP_TO)
        self._show_words()
        self._show_tip()

    def _show_tip(self) -> None:
        words = QCoreApplication.translate("Gallery", "click: make this the window's mask ({name})")
        words = words.format(name=order_name(self.order))
        if self.exhibit is not None and self.exhibit.difference > 0:
            row, col = self.exhibit.at
            place = QCoreApplication.translate("Gallery", "most unlike −∞ at row {row}, key {col}")
            words += "\n" + place.format(row=row, col=col)
        self.setToolTip(words)

    @Slot()
    def _show_words(self) -> None:
        if self.exhibit is None:
            return
        words = difference_words(self.exhibit)
        self._sigma.setText("Σ" if self.sums.fits else "")
        if not self.sums.fits:
            words = " · ".join(part for part in (sums_words(self.exhibit), words) if part)
        self._difference.setText(words)
        told = ", ".join(row_sum(total)[0] for total in self.sums.values) if self.sums.fits else ""
        self.setAccessibleDescription(f"{words} · Σ {told}" if told else words)

    def clear(self) -> None:
        """Show nothing but the name."""
        self.exhibit, self._shown = None, ()
        self.map.clear()
        self.sums.show_sums(())
        self._difference.setText("")

    def set_present(self, present: bool) -> None:
        """Whether this is the window's own mask."""
        if present != self._present:
            self._present = present
            self.update()

    @property
    def is_present(self) -> bool:
        return self._present

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours.accent if self._present else colours.hairline), 2 if self._present else 1))
        painter.setBrush(QColor(colours.accent_soft) if self._present else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        if self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(4, 4, -4, -4), 6, 6)
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(self.order)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self.order)
        else:
            super().keyPressEvent(event)


class Exhibits(Reflow):
    """The cards in a row, in as many columns as the width holds. ``chosen`` carries an order's name."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_LEAST, (5, 3, 2, 1), parent)
        self.cards = {order: ExhibitCard(order) for order in ORDERS}
        for card in self.cards.values():
            card.chosen.connect(self.chosen)
        self.set_widgets([*self.cards.values()])

    def show_answer(self, answer: GalleryAnswer, view: View) -> None:
        """Every exhibit that has come."""
        found = {exhibit.order: exhibit for exhibit in answer.exhibits}
        for order, card in self.cards.items():
            card.show_exhibit(found.get(order), answer, view)

    def clear(self) -> None:
        """Nothing but names."""
        for card in self.cards.values():
            card.clear()

    def set_present(self, order: str | None) -> None:
        """Which of them is the window's own mask, if one is."""
        for name, card in self.cards.items():
            card.set_present(name == order)
