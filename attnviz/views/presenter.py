"""The presenter view: tokens, one head, its row, the mask switch and a sentence, to be read from the back of a room.

What is at its foot is for who presents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QApplication, QBoxLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attnviz.figure.fonts import sized, text_width
from attnviz.session import Snapshot
from attnviz.views import theme
from attnviz.views.heatmaps import Heatmaps

_TYPE: Final = 28.0  # pixels of the smallest type in a window of 1280 × 800
_LARGE: Final = 1.15  # times that, for the sentence
_FIGURE_TYPE: Final = 12.0  # pixels of the figure's smallest type at a scale of 1
_TOKEN_TYPE: Final = 18.0  # of the tokens
_CARD_TYPE: Final = 15.0  # of the row's numbers
_RING: Final = 40.0  # its radius
_FOOT: Final = 15.0  # of what is for who presents, not for the room
_BEHIND: Final = ("page_", "panel_", "layout_")
"""Actions whose names begin so change what this view covers."""


class _Shown(Protocol):
    """A view: it has ``present``, and type that a property ``scale`` enlarges, if it has one."""

    def present(self, snapshot: Snapshot) -> None: ...


class Presenter(QFrame):
    """Covers its window and shows one head with the window's own `Heatmaps`, whose keys go on working.

    ``token_strip``, ``row_card`` and ``mask_switch`` are what the factories made, to be connected as the window's own.
    ``left()`` says that it was left, by Esc as well.
    """

    left = Signal()

    def __init__(
        self, heatmaps: Heatmaps, token_strip_factory: Callable[[], QWidget],
        row_card_factory: Callable[[], QWidget], mask_switch_factory: Callable[[], QWidget],
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.setObjectName("presenter")
        self.setAccessibleName(self.tr("presenter view"))
        self.setAutoFillBackground(True)
        self._heatmaps = heatmaps
        self._home: tuple[QBoxLayout, int, int] | None = None
        self._disabled: list[QAction] = []
        self._scale = 0.0
        self.token_strip, self.row_card = token_strip_factory(), row_card_factory()
        self.mask_switch = mask_switch_factory()
        self._large, self._small = QLabel(), QLabel()
        for label in (self._large, self._small):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._way_out, self._step = QLabel(self.tr("F5 or Esc leaves")), QLabel()
        top = QHBoxLayout()
        top.setSpacing(24)
        top.addWidget(self.token_strip, 1)
        top.addWidget(self.mask_switch, 0, Qt.AlignmentFlag.AlignVCenter)
        self._map_card = QFrame()
        self._map_card.setProperty("card", True)
        self._map_box = QVBoxLayout(self._map_card)
        self._map_box.setContentsMargins(8, 8, 8, 8)
        middle = QHBoxLayout()
        middle.setSpacing(16)
        middle.addWidget(self._map_card, 1)
        middle.addWidget(self.row_card, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 10, 24, 10)
        column.setSpacing(10)
        column.addLayout(top)
        column.addLayout(middle, 1)
        column.addWidget(self._large)
        foot = QHBoxLayout()
        foot.setSpacing(24)
        foot.addWidget(self._small, 1)
        foot.addStretch()
        for label in (self._step, self._way_out):
            foot.addWidget(label, 0, Qt.AlignmentFlag.AlignBottom)
        column.addLayout(foot)
        self._ring = _Ring(self)
        self.hide()

    # ------------------------------------------------------------------------------------------------- in and out

    @property
    def is_on(self) -> bool:
        """Whether the view is entered."""
        return self._home is not None

    def enter(self) -> None:
        """Take the maps out of the window, cover it, and give the maps the focus."""
        window, home = self._heatmaps.window(), self._heatmaps.parentWidget()
        layout = home.layout() if home is not None and window is not self._heatmaps else None
        if self.is_on or not isinstance(layout, QBoxLayout):
            return
        place = layout.indexOf(self._heatmaps)
        self._home = layout, place, layout.stretch(place)
        self.setParent(window)
        for action in window.findChildren(QAction):
            if action.objectName().startswith(_BEHIND) and action.isEnabled():
                action.setEnabled(False)
                self._disabled.append(action)
        self._map_box.addWidget(self._heatmaps)
        self.setGeometry(window.rect())
        self._enlarge()
        self._heatmaps.show()
        self.show()
        self.raise_()
        for view in self.findChildren(QWidget):
            view.setMouseTracking(True)  # the ring follows the pointer over all of them
        window.installEventFilter(self)
        self._heatmaps.installEventFilter(self)
        application = QApplication.instance()
        if application is not None:
            application.installEventFilter(self._ring)
        self._heatmaps.setFocus()

    def leave(self) -> None:
        """Put the maps back where they were."""
        if self._home is None:
            return
        layout, place, stretch = self._home
        self._home, self._scale = None, 0.0
        for action in self._disabled:
            action.setEnabled(True)
        self._disabled = []
        application = QApplication.instance()
        if application is not None:
            application.removeEventFilter(self._ring)
        self._heatmaps.removeEventFilter(self)
        self.window().removeEventFilter(self)
        self._ring.hide()
        self.hide()
        layout.insertWidget(place, self._heatmaps, stretch)
        self._heatmaps.show()
        self._heatmaps.show_alone(False)
        self._heatmaps.setFocus()
        self.left.emit()

    # ----------------------------------------------------------------------------------------------------- showing

    def present(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` in the strip, the row and the switch; the maps are the window's, which presents them."""
        if self.is_on:
            views: tuple[_Shown, ...] = (self.token_strip, self.row_card, self.mask_switch)  # type: ignore[assignment]
            for view in views:
                view.present(snapshot)

    def show_sentence(self, large: str, small: str = "", step: str = "") -> None:
        """What to notice, and a second sentence below it; in a lesson its ``step`` at the foot, such as 4 / 22."""
        self._step.setText(step)
        self._large.setText(large)
        self._small.setText(small)
        self._small.setVisible(bool(small))

    def sentence(self) -> str:
        """Both sentences."""
        return f"{self._large.text()} {self._small.text()}".strip()

    def _enlarge(self) -> None:
        """Type of 28 pixels at least at 1280 × 800, and larger with the window."""
        factor = max(min(self.width() / 1280, self.height() / 800), 0.5)
        if abs(factor - self._scale) < 0.02:
            return
        self._scale = factor
        small, c = round(_TYPE * factor), theme.current()
        self._heatmaps.show_alone(True, _TYPE * factor / _FIGURE_TYPE)
        for view, at_one in ((self.token_strip, _TOKEN_TYPE), (self.row_card, _CARD_TYPE)):
            if hasattr(view, "scale"):
                view.scale = _TYPE * factor / at_one
        self._ring.resize_to(_RING * factor)
        self.mask_switch.setStyleSheet(f"QPushButton, QLabel {{ font-size: {small}px; }}")
        for button in self.mask_switch.findChildren(QPushButton):
            button.setMinimumSize(round(text_width(sized(small), button.text()) + 1.4 * small), round(1.9 * small))
        self._large.setStyleSheet(f"font-size: {round(small * _LARGE)}px; color: {c.ink};")
        self._small.setStyleSheet(f"font-size: {small}px; color: {c.muted};")
        for label in (self._step, self._way_out):
            label.setStyleSheet(f"font-size: {round(_FOOT * factor)}px; color: {c.muted};")

    def changeEvent(self, event: QEvent) -> None:
        """Other colours: dark or light."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.is_on:
            self._scale = 0.0
            self._enlarge()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.is_on:
            self._enlarge()

    # ------------------------------------------------------------------------------------------------- keys, pointer

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Esc on the maps leaves, unless it ends what they are at; the window's new size is this view's."""
        if event.type() == QEvent.Type.Resize and watched is self.window():
            self.setGeometry(self.window().rect())
        if watched is self._heatmaps and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if self._heatmaps.is_drawing_mask:
                return False
            event.accept()  # as an override of the action whose key it is in the window
            if event.type() == QEvent.Type.KeyPress:
                self.leave()
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes round in this view: what it covers is not to be reached."""
        start: QWidget = QApplication.focusWidget() or self
        widget = start
        while True:
            following = widget.nextInFocusChain() if forward else widget.previousInFocusChain()
            if following is None or following is start:
                return False
            widget = following
            takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible() and widget.isEnabled()
            if takes and self.isAncestorOf(widget):
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                return True


class _Ring(QWidget):
    """A ring around the pointer. Filters the application's events while the view is on; the mouse passes through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._room = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.resize_to(_RING)
        self.hide()

    def resize_to(self, radius: float) -> None:
        """A ring of so many pixels around the pointer."""
        self._radius = radius
        self.resize(round(2 * radius + 6), round(2 * radius + 6))

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Follow the pointer."""
        if event.type() == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self.follow(event.globalPosition())
        return False

    def follow(self, place: QPointF) -> None:
        """Stand around ``place`` of the screen; out of sight beside the view."""
        point = self._room.mapFromGlobal(place)
        self.setVisible(self._room.rect().contains(point.toPoint()))
        self.move(point.toPoint() - self.rect().center())
        self.raise_()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QRectF(self.rect()).center()
        for colour, width in ((theme.current().card, 6.0), (theme.current().accent, 3.0)):
            painter.setPen(QPen(QColor(colour), width))
            painter.drawEllipse(middle, self._radius - 2, self._radius - 2)
        painter.end()
