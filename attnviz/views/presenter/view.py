"""The presenter view: tokens, one head, its row, the mask switch and a sentence, to be read from the back of a room.

In a lesson the whole step stands below with its question, and what its page shows beside the map. What is at its foot
is for who presents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QBoxLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attnviz.figure.fonts import sized, text_width
from attnviz.guide import GuideState, Verdict
from attnviz.lesson_files import LessonStep
from attnviz.session import Snapshot
from attnviz.spec import JOINT_STAGES
from attnviz.views import theme
from attnviz.views.heatmaps import Heatmaps
from attnviz.views.pages.page import Page
from attnviz.views.presenter.lens import Lens, leaves_the_map, sight_of
from attnviz.views.presenter.ring import Ring
from attnviz.views.presenter.room_step import RoomStep
from attnviz.views.row_card.room_card import RoomCard

_TYPE: Final = 28.0  # pixels of the smallest type in a window of 1280 × 800
_LARGE: Final = 1.15  # times that, for the sentence
_FIGURE_TYPE: Final = 12.0  # pixels of the figure's smallest type at a scale of 1
_HEADS_TYPE: Final = 20.0  # of several heads with their colour bar and legend
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

    ``token_strip``, ``row_card`` and ``mask_switch`` are what the factories made, to be connected as the window's own,
    like ``step``, a lesson's step. ``left()`` says that it was left, by Esc as well.
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
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._heatmaps = heatmaps
        self._home: tuple[QBoxLayout, int, int, bool] | None = None
        self._disabled: list[QAction] = []
        self._scale = 0.0
        self._state: GuideState | None = None
        self._page: Page | None = None
        self.token_strip, self.row_card = token_strip_factory(), row_card_factory()
        self.mask_switch, self.lens, self.step = mask_switch_factory(), Lens(), RoomStep()
        self._large, self._small, self._way_out = QLabel(), QLabel(), QLabel(self.tr("F5 or Esc leaves"))
        for label in (self._large, self._small):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._lay_out()
        self._ring = Ring(self)
        self.hide()

    def _lay_out(self) -> None:
        self._top = QWidget()
        top = QHBoxLayout(self._top)
        top.setContentsMargins(0, 0, 0, 0)
        top.setSpacing(24)
        top.addWidget(self.token_strip, 1)
        top.addWidget(self.mask_switch, 0, Qt.AlignmentFlag.AlignVCenter)
        self._map_card = QFrame()
        self._map_card.setProperty("card", True)
        self._map_box = QVBoxLayout(self._map_card)
        self._map_box.setContentsMargins(8, 8, 8, 8)
        self._middle = QHBoxLayout()
        self._middle.setSpacing(16)
        for widget in (self._map_card, self.row_card, self.lens):
            self._middle.addWidget(widget, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 8, 24, 6)
        column.setSpacing(8)
        column.addWidget(self._top)
        column.addLayout(self._middle, 1)
        for words in (self._large, self._small, self.step):
            column.addWidget(words)
        foot = QHBoxLayout()
        foot.setSpacing(24)
        foot.addWidget(self.step.head, 1)
        foot.addStretch()
        foot.addWidget(self._way_out, 0, Qt.AlignmentFlag.AlignVCenter)
        column.addLayout(foot)
        self._arrange()

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
        self._home = layout, place, layout.stretch(place), self._heatmaps.one_large
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
        """Put the maps and the page back where they were."""
        if self._home is None:
            return
        layout, place, stretch, one_large = self._home
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
        self.lens.give_back()
        self._state = self._page = None
        layout.insertWidget(place, self._heatmaps, stretch)
        self._heatmaps.show()
        self._heatmaps.show_alone(False)
        self._heatmaps.show_one_large(one_large)
        self._heatmaps.setFocus()
        self.left.emit()

    # ----------------------------------------------------------------------------------------------------- showing

    def present(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` in the strip, the row and the switch; the maps are the window's, which presents them."""
        if self.is_on:
            views: tuple[_Shown, ...] = (self.token_strip, self.row_card, self.mask_switch)  # type: ignore[assignment]
            for view in views:
                view.present(snapshot)

    def show_sentence(self, large: str, small: str = "") -> None:
        """What to notice, and a second sentence below it."""
        self._large.setText(large)
        self._small.setText(small)
        if self._state is not None:
            self._state = self._page = None
            self._arrange()
        self._small.setVisible(bool(small))

    def show_step(self, state: GuideState, page: Page | None, *, elsewhere: bool = False) -> None:
        """A lesson's step with its question; ``page`` is the window's own of that step, if it has one.

        ``elsewhere`` says that the map shows another picture than the step's.
        """
        before, self._state = self._state, state
        had, self._page = self._page, page
        self.step.present(state, elsewhere=elsewhere)
        if before is None or (before.step, before.language, had) != (state.step, state.language, page):
            self._fit_step()
            self._arrange()
        new = before is None or before.step is not state.step
        typed = self.step.isAncestorOf(QApplication.focusWidget() or self)
        if self.is_on and (new or (typed and state.verdict in (Verdict.RIGHT, Verdict.SHOWN))):
            self._focus_map()

    def sentence(self) -> str:
        """Both sentences, or the words of a lesson's step."""
        if self._state is not None:
            return self.step.text()
        return f"{self._large.text()} {self._small.text()}".strip()

    def _focus_map(self) -> None:
        """The keys are the map's again, whatever was typed."""
        (self if self._map_card.isHidden() else self._heatmaps).setFocus()

    # --------------------------------------------------------------------------------------------------- arrangement

    def _arrange(self) -> None:
        """Let the step, if there is one, say what stands in the middle: map, row, page, or all heads."""
        step = None if self._state is None else self._state.step
        for words in (self.step, self.step.head):
            words.setVisible(step is not None)
        self._large.setVisible(step is None)
        if step is not None:
            self._small.hide()
        heads, paged = _shows_heads(step), _shows_page(step) and self._page is not None
        whole = paged and step is not None and leaves_the_map(step)
        self.row_card.setVisible(not (heads or paged))
        self.lens.setVisible(paged)
        self._map_card.setVisible(not whole)
        self._top.setVisible(not (whole or heads))
        self._middle.setStretch(0, 5 if step is not None else 7)
        for place in (1, 2):
            self._middle.setStretch(place, 7)
        asked = None if step is None else step.question
        if isinstance(self.row_card, RoomCard):
            mixed = asked is not None and asked.measure.name == "context"
            self.row_card.speak_of(before=step is None or _speaks_of_before(step), formula=not mixed)
        self._show_maps()
        if paged and step is not None and self._page is not None:
            self.lens.show_page(self._page, sight_of(step), max(self._scale, 0.5))
        else:
            self.lens.give_back()

    def _show_maps(self) -> None:
        """One head alone, or in a step about heads all of them with their colour bar and legend."""
        if self.is_on:
            heads = _shows_heads(None if self._state is None else self._state.step)
            self._heatmaps.show_one_large(not heads)
            self._heatmaps.show_alone(not heads, (_HEADS_TYPE if heads else _TYPE) * self._scale / _FIGURE_TYPE)

    def _fit_step(self) -> None:
        """Give the step the height that it needs, until the next one comes."""
        if self.is_on and self._state is not None:
            self.step.fit_room(self.width() - 48, self.height())

    def _enlarge(self) -> None:
        """Type of 28 pixels at least at 1280 × 800, and larger with the window."""
        factor = max(min(self.width() / 1280, self.height() / 800), 0.5)
        if abs(factor - self._scale) < 0.02:
            self._fit_step()
            return
        self._scale = factor
        small, c = round(_TYPE * factor), theme.current()
        for view, at_one in ((self.token_strip, _TOKEN_TYPE), (self.row_card, _CARD_TYPE)):
            if hasattr(view, "scale"):
                view.scale = _TYPE * factor / at_one
        self._ring.resize_to(_RING * factor)
        self.mask_switch.setStyleSheet(f"QPushButton, QLabel {{ font-size: {small}px; }}")
        for button in self.mask_switch.findChildren(QPushButton):
            button.setMinimumSize(round(text_width(sized(small), button.text()) + 1.4 * small), round(1.9 * small))
        self._large.setStyleSheet(f"font-size: {round(small * _LARGE)}px; color: {c.ink};")
        self._small.setStyleSheet(f"font-size: {small}px; color: {c.muted};")
        self._way_out.setStyleSheet(f"font-size: {round(_FOOT * factor)}px; color: {c.muted};")
        self.step.set_scale(factor)
        self._arrange()
        self._fit_step()

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


def _shows_heads(step: LessonStep | None) -> bool:
    """Whether a step is about several heads at once."""
    several = step is not None and step.spec.num_heads > 1 and step.view.stage not in JOINT_STAGES
    return several and step is not None and step.page == "heads" and step.look != "page"


def _shows_page(step: LessonStep | None) -> bool:
    """Whether a step's page takes the place of the row; where it looks at heads, their maps do."""
    return step is not None and step.page != "row" and (step.page != "heads" or step.look == "page")


def _speaks_of_before(step: LessonStep) -> bool:
    """Whether a step has a state before that can be compared with its own, number by number."""
    before = step.scene_before()
    return before is not None and before[1].stage == step.view.stage
