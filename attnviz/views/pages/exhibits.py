"""The gallery's row of maps: one head under every order of mask and softmax."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from attnviz.questions.gallery import ORDERS, Exhibit, GalleryAnswer
from attnviz.spec import AnyShape, Colours
from attnviz.views import theme
from attnviz.views.pages.peek_map import PeekMap
from attnviz.views.pages.reflow import Reflow

NAMES: Final[Mapping[str, object]] = MappingProxyType(
    {
        "none": QT_TRANSLATE_NOOP("Gallery", "no mask"),
        "multiply": QT_TRANSLATE_NOOP("Gallery", "mask last: multiply"),
        "three-step": QT_TRANSLATE_NOOP("Gallery", "mask last, then divide: three-step"),
        "neg-inf": QT_TRANSLATE_NOOP("Gallery", "−∞ before the softmax"),
        "fill-0": QT_TRANSLATE_NOOP("Gallery", "fill 0 before the softmax"),
    }
)
_LEAST = 132  # pixels of an exhibit
_SUMS_UP_TO = 24  # queries: of more, their sums would lie over each other


def order_name(order: str) -> str:
    """An order in words."""
    return QCoreApplication.translate("Gallery", str(NAMES[order]))


def difference_words(exhibit: Exhibit) -> str:
    """How far an exhibit is from −∞."""
    if exhibit.order == "neg-inf":
        return QCoreApplication.translate("Gallery", "what the others are measured by")
    nan = ""
    if exhibit.nan_rows:
        nan = QCoreApplication.translate("Gallery", "NaN rows: {n}").format(n=f"{exhibit.nan_rows:,}")
    if math.isnan(exhibit.difference):
        return nan
    if exhibit.difference == 0:
        words = QCoreApplication.translate("Gallery", "equal to −∞, bit for bit")
    else:
        row, col = exhibit.at
        number = f"{exhibit.difference:.2g}".replace("e-0", "e−").replace("e-", "e−")
        words = QCoreApplication.translate("Gallery", "up to {number} from −∞ (row {row}, key {col})")
        words = words.format(number=number, row=row, col=col)
    return f"{words} · {nan}" if nan else words


class ExhibitCard(QWidget):
    """One order: its map, its name and its difference from −∞. A click or Enter chooses it."""

    chosen = Signal(str)

    def __init__(self, order: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.order = order
        self.exhibit: Exhibit | None = None
        self._present = False
        self.map = PeekMap()
        self._name, self._difference = QLabel(order_name(order)), QLabel()
        for label in (self._name, self._difference):
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._difference.setProperty("role", "muted")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(order_name(order))
        self.setToolTip(
            QCoreApplication.translate("Gallery", "click: make this the window's mask ({name})").format(
                name=order_name(order)
            )
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(4)
        column.addWidget(self.map)
        column.addWidget(self._name)
        column.addWidget(self._difference)
        column.addStretch(1)

    def sizeHint(self) -> QSize:
        return QSize(180, 250)

    def show_exhibit(self, exhibit: Exhibit | None, answer: GalleryAnswer, shape: AnyShape, colours: Colours) -> None:
        """The order's weights; None while they are computed."""
        self.exhibit = exhibit
        if exhibit is None:
            self.map.clear()
            self._difference.setText("…")
            return
        n_queries, n_keys = len(exhibit.row_sums), len(answer.tokens)
        whole = exhibit.level == 1
        self.map.set_shape(shape if whole else None, n_queries, n_keys)
        self.map.show_matrix(
            exhibit.values, exhibit.classes, scale=answer.scale, colours=colours,
            tokens=answer.tokens if whole and n_keys <= _SUMS_UP_TO else (),
            sums=whole and n_queries <= _SUMS_UP_TO,
        )  # fmt: skip
        self._difference.setText(difference_words(exhibit))
        self.setAccessibleDescription(self._difference.text())

    def clear(self) -> None:
        """Show nothing but the name."""
        self.exhibit = None
        self.map.clear()
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

    def show_answer(self, answer: GalleryAnswer, shape: AnyShape, colours: Colours) -> None:
        """Every exhibit that has come."""
        found = {exhibit.order: exhibit for exhibit in answer.exhibits}
        for order, card in self.cards.items():
            card.show_exhibit(found.get(order), answer, shape, colours)

    def clear(self) -> None:
        """Nothing but names."""
        for card in self.cards.values():
            card.clear()

    def set_present(self, order: str | None) -> None:
        """Which of them is the window's own mask, if one is."""
        for name, card in self.cards.items():
            card.set_present(name == order)
