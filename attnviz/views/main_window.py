"""The window: lays the views out in the layouts Learn and Explore, and owns the menus. It computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QObject, QSettings, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QCloseEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from attnviz.figure.paint import DARK, LIGHT
from attnviz.session import Snapshot
from attnviz.views.actions import build_actions, fill_menus
from attnviz.views.banner import Banner
from attnviz.views.heatmaps import Heatmaps
from attnviz.views.layouts import LAYOUTS
from attnviz.views.mask_switch import MaskSwitch
from attnviz.views.pipeline_strip import PipelineStrip
from attnviz.views.row_card.card import RowCard
from attnviz.views.row_strip import RowStrip
from attnviz.views.sentence_card import SentenceCard
from attnviz.views.side import PAGES, Side
from attnviz.views.status_line import StatusLine
from attnviz.views.token_strip import TokenStrip

if TYPE_CHECKING:
    from attnviz.guide import GuideState
    from attnviz.views.controls import Controls
    from attnviz.views.go_to import GoTo
    from attnviz.views.keys_page import KeysPage
    from attnviz.views.late_views import LateViews
    from attnviz.views.lesson_card import LessonCard
    from attnviz.views.module_page import ModulePage
    from attnviz.views.palette import Palette
    from attnviz.views.source_editor import SourceEditor

PANELS = {"panel_side": "side", "panel_sentence": "sentence"}
_LOW = 720  # pixels: in a window that is lower all that stands around the map and the row gives way to them
_LESSON_SHARE = 0.3  # of the height, at most: a step stands below the maps and the row like a subtitle
_LESSON_HEIGHT, _LESSON_LOW = 172, 157  # pixels that most steps take, whichever they are


class MainWindow(QMainWindow):
    """Composes the views. ``present`` hands a snapshot to each of them and emits nothing."""

    closing = Signal()
    before_held = Signal(bool)
    stage_number_pressed = Signal(int)
    shown = Signal()
    """The window comes up for the first time."""
    late_made = Signal()
    """The views that are not in sight at first are there now."""

    def __init__(self, settings: QSettings) -> None:
        super().__init__()
        self._settings = settings
        self._layout_name = "learn"
        self._wants_sentence = True
        self._lesson: GuideState | None = None
        self._is_low = False
        self.setWindowTitle(self.tr("attnviz"))
        self.resize(1280, 800)

        self.heatmaps = Heatmaps()
        self.row_strip = RowStrip()
        self.banner = Banner()
        self.token_strip = TokenStrip()
        self.mask_switch = MaskSwitch()
        self.pipeline_strip = PipelineStrip()
        self.sentence_card = SentenceCard()
        self.row_card = RowCard()
        self.status_line = StatusLine()
        self.actions_by_name: Mapping[str, QAction] = build_actions(self, self.heatmaps)
        self.side = Side({"row": self.row_card}, self.make_late)
        self._late: LateViews | None = None
        self._snapshot: Snapshot | None = None
        self._views = (
            self.heatmaps, self.row_strip, self.banner, self.token_strip, self.mask_switch, self.pipeline_strip,
            self.sentence_card, self.row_card, self.side, self.status_line,
        )  # fmt: skip
        self._compose()
        fill_menus(self.menuBar(), self.actions_by_name)
        self._connect_actions()
        self.heatmaps.installEventFilter(self)
        self.heatmaps.setFocus()

    # ------------------------------------------------------------------------------------------- made when needed

    @property
    def late(self) -> LateViews:
        """The views that are not in sight at first, made when they are first asked for."""
        if self._late is None:
            from attnviz.views.late_views import LateViews  # noqa: PLC0415 (a tenth of a second, after the first painting)

            self._late = LateViews(self, self.actions_by_name)
            self._late.lesson_card.hide()
            self._late.lesson_card.set_low(self._is_low)
            self._centre.addWidget(self._late.lesson_card)
            self.side.add(self._late.pages())
            if self._snapshot is not None:
                self._late.present(self._snapshot)
            self.late_made.emit()
        return self._late

    def make_late(self) -> None:
        """Make the views that are not in sight at first, if they are not there."""
        _ = self.late

    @property
    def controls(self) -> Controls:
        return self.late.controls

    @property
    def source_editor(self) -> SourceEditor:
        return self.late.source_editor

    @property
    def module_page(self) -> ModulePage:
        return self.late.module_page

    @property
    def lesson_card(self) -> LessonCard:
        return self.late.lesson_card

    @property
    def keys_page(self) -> KeysPage:
        return self.late.keys_page

    @property
    def palette_popup(self) -> Palette:
        return self.late.palette_popup

    @property
    def go_to_popup(self) -> GoTo:
        return self.late.go_to_popup

    def put_behind(self, action: str, menu: QMenu) -> None:
        """Put a menu behind an action in the menu that it is in."""
        found = self.actions_by_name[action]
        for bar in self.menuBar().actions():
            entries = bar.menu().actions()  # type: ignore[attr-defined]
            if found in entries:
                bar.menu().insertMenu(entries[entries.index(found) + 1], menu)  # type: ignore[attr-defined]

    # ------------------------------------------------------------------------------------------------------ layout

    def _compose(self) -> None:
        heads_card = QFrame()
        heads_card.setProperty("card", True)
        heads_layout = QVBoxLayout(heads_card)
        heads_layout.setContentsMargins(6, 6, 6, 6)
        heads_layout.setSpacing(2)
        heads_layout.addWidget(self.heatmaps, 1)
        heads_layout.addWidget(self.row_strip)

        self._column = QWidget()
        stack = self._stack = QVBoxLayout(self._column)
        stack.setContentsMargins(0, 0, 0, 0)
        stack.setSpacing(12)
        stack.addWidget(self.side, 1)
        stack.addWidget(self.sentence_card)

        self._splitter = _Maps(heads_card, self._column)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(12)
        self._heads_card = heads_card

        top = QHBoxLayout()
        top.setSpacing(16)
        top.addWidget(self.token_strip, 1)
        top.addWidget(self.mask_switch)

        self._inside = centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(18, 10, 18, 10)
        column.setSpacing(10)
        column.addWidget(self.banner)
        column.addLayout(top)
        column.addWidget(self.pipeline_strip)
        column.addWidget(self._splitter, 1)
        self._centre = column
        self.setCentralWidget(centre)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addWidget(self.status_line, 1)

    def use_layout(self, name: str) -> None:
        """Arrange the window as one of `LAYOUTS`, as it was left there."""
        self._remember_layout()
        self._layout_name, layout = name, LAYOUTS[name]
        self.heatmaps.show_one_large(layout.one_large)
        self._splitter.insertWidget(0 if layout.column_first else 1, self._column)
        for panel, default in ("side", True), ("sentence", layout.sentence):
            self.show_panel(panel, bool(self._settings.value(f"layouts/{name}/{panel}", default, type=bool)))
        self.side.offer(layout.pages)
        page = str(self._settings.value(f"layouts/{name}/page", layout.first, type=str))
        self.side.show_page(page if page in PAGES else layout.first)
        sizes = self._settings.value(f"layouts/{name}/splitter", QByteArray(), type=QByteArray)
        if not (isinstance(sizes, QByteArray) and sizes.size() and self._splitter.restoreState(sizes)):
            self._splitter.setSizes(layout.sizes(max(self.width() - 36, 800)))
            self._splitter.setStretchFactor(self._splitter.indexOf(self._heads_card), 1)
        for other in LAYOUTS:
            self.actions_by_name[f"layout_{other}"].setChecked(other == name)

    @property
    def layout_name(self) -> str:
        return self._layout_name

    def arrange(self, layout: str | None, page: str | None) -> None:
        """Stand as one of `LAYOUTS`, with one of its pages in sight; None leaves that as it is."""
        if layout is not None and layout != self._layout_name:
            self.use_layout(layout)
        if page is not None and page != self.side.current:
            self.side.show_page(page)
            self._on_page_chosen(page)

    def show_panel(self, panel: str, visible: bool) -> None:
        """Show or hide the *side* column, or the *sentence* in it, whose place a lesson takes."""
        if panel == "side":
            self._column.setVisible(visible)
        else:
            self._wants_sentence = visible
            self._show_words()
        self._settings.setValue(f"layouts/{self._layout_name}/{panel}", visible)
        for action, name in PANELS.items():
            if name == panel:
                self.actions_by_name[action].setChecked(visible)

    def show_page(self, page: str) -> None:
        """Bring a page of the side column into sight."""
        self.show_panel("side", True)
        self.side.show_page(page)
        self._on_page_chosen(page)

    def show_lesson(self, state: GuideState | None, *, elsewhere: bool = False) -> None:
        """Show a lesson's step in place of the sentence, and what it asks to look at; None ends it.

        ``elsewhere`` says that the window shows another picture than the step's.
        """
        before, self._lesson = self._lesson, state
        if state is not None:
            self.lesson_card.present(state, elsewhere=elsewhere)
            if before is None or (before.step, before.language) != (state.step, state.language):
                self._fit_lesson()
        looked = None if state is None else state.step.look
        lit = {"map": self._heads_card, "row": self.row_card, "page": self.side.card()}.get(looked or "")
        for card in {self._heads_card, *self.side.cards()}:
            _set_looked_at(card, card is lit)
        self.pipeline_strip.set_looked_at(looked == "strip")
        self._show_words()

    def _fit_lesson(self) -> None:
        """Give the step as much height as it needs; it keeps that until the next one comes."""
        margins = self._centre.contentsMargins()
        across = self._inside.width() - margins.left() - margins.right()
        self.lesson_card.fit(
            across, round(self.height() * _LESSON_SHARE), _LESSON_LOW if self._is_low else _LESSON_HEIGHT
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._is_low != (self.height() < _LOW):
            self._set_low(self.height() < _LOW)
        if self._lesson is not None:
            self._fit_lesson()

    def _set_low(self, low: bool) -> None:
        """In a low window, give what stands around the map and the row less height."""
        self._is_low = low
        self._centre.setContentsMargins(18, 5 if low else 10, 18, 5 if low else 10)
        self._centre.setSpacing(6 if low else 10)
        self._stack.setSpacing(6 if low else 12)
        self.token_strip.scale = 0.82 if low else 1.0
        for view in (self.mask_switch, self.pipeline_strip, self.sentence_card):
            view.set_low(low)
        if self._late is not None:
            self._late.lesson_card.set_low(low)

    def _show_words(self) -> None:
        """The lesson's step, or the sentence beside the row; other pages speak for themselves."""
        learning = self._lesson is not None
        if learning:  # one goes before the other comes: with both, a low window would have to grow
            self.sentence_card.hide()
        if self._late is not None:
            self._late.lesson_card.setVisible(learning)
        self.sentence_card.setVisible(self._wants_sentence and not learning and self.side.current == "row")

    @Slot(str)
    def _on_page_chosen(self, page: str) -> None:
        self._show_words()
        self._settings.setValue(f"layouts/{self._layout_name}/page", page)

    def _remember_layout(self) -> None:
        if self.isVisible():
            self._settings.setValue(f"layouts/{self._layout_name}/splitter", self._splitter.saveState())

    # ---------------------------------------------------------------------------------------------- menus and keys

    def _connect_actions(self) -> None:
        act = self.actions_by_name
        act["quit"].triggered.connect(self.close)
        act["keys"].triggered.connect(self._on_keys)
        act["palette"].triggered.connect(self._on_palette)
        act["go_to"].triggered.connect(self._on_go_to)
        act["layout_learn"].triggered.connect(self._on_learn)
        act["layout_test"].triggered.connect(self._on_test)
        act["layout_explore"].triggered.connect(self._on_explore)
        for name in PANELS:
            act[name].triggered.connect(self._on_panel_toggled)
        for page in PAGES:
            act[f"page_{page}"].triggered.connect(self._on_page_asked)
        self.side.page_chosen.connect(self._on_page_chosen)

    @Slot()
    def _on_keys(self) -> None:
        self.keys_page.show()

    @Slot()
    def _on_palette(self) -> None:
        self.palette_popup.popup()

    @Slot()
    def _on_go_to(self) -> None:
        self.go_to_popup.popup()

    @Slot()
    def _on_learn(self) -> None:
        self.use_layout("learn")

    @Slot()
    def _on_test(self) -> None:
        self.use_layout("test")

    @Slot()
    def _on_explore(self) -> None:
        self.use_layout("explore")

    @Slot(bool)
    def _on_panel_toggled(self, checked: bool) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.show_panel(PANELS[action.objectName()], checked)

    @Slot()
    def _on_page_asked(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.show_page(action.objectName().removeprefix("page_"))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Space held and the digits, which no QAction can say: they belong to the map."""
        if event.type() in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease) and isinstance(event, QKeyEvent):
            pressed = event.type() == QEvent.Type.KeyPress
            if event.key() == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.NoModifier:
                if not event.isAutoRepeat():
                    self.before_held.emit(pressed)
                return True
            digit = event.key() - Qt.Key.Key_0
            if pressed and 1 <= digit <= 9 and event.modifiers() == Qt.KeyboardModifier.NoModifier:
                self.stage_number_pressed.emit(digit)
                return True
        if event.type() == QEvent.Type.FocusOut:
            self.before_held.emit(False)
        return super().eventFilter(watched, event)

    # ----------------------------------------------------------------------------------------------------- presence

    def present(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` in every view; emits nothing."""
        self._snapshot = snapshot
        for view in self._views:
            view.present(snapshot)
        if self._late is not None:
            self._late.present(snapshot)
        act = self.actions_by_name
        act["numbers"].setChecked(snapshot.show_numbers)
        act["cancel"].setEnabled(snapshot.running or snapshot.progress is not None)
        act["reroll"].setEnabled(snapshot.spec.drops)
        large = snapshot.view.head is not None
        act["head_grid"].setEnabled(large)
        act["undo"].setEnabled(snapshot.can_undo)
        act["redo"].setEnabled(snapshot.can_redo)
        act["pin"].setChecked(snapshot.pinned is not None)
        act["redraws"].setChecked(snapshot.redraws)
        act["redraws"].setEnabled(snapshot.spec.drops or snapshot.redraws)

    def use_dark(self, dark: bool) -> None:
        """Light or dark maps; the widgets follow the application's palette."""
        style = DARK if dark else LIGHT
        self.heatmaps.use_style(style)
        self.row_strip.use_style(style)

    def restore(self) -> None:
        """Geometry and layout as they were when the window was last closed."""
        geometry = self._settings.value("geometry", QByteArray(), type=QByteArray)
        if isinstance(geometry, QByteArray) and geometry.size():
            self.restoreGeometry(geometry)
        name = str(self._settings.value("layout", "learn", type=str))
        self.use_layout(name if name in LAYOUTS else "learn")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._was_shown:
            self._was_shown = True
            self.shown.emit()

    _was_shown = False

    def closeEvent(self, event: QCloseEvent) -> None:
        """State is always saved; nothing is ever asked."""
        self._remember_layout()
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("layout", self._layout_name)
        self.closing.emit()
        super().closeEvent(event)


def _set_looked_at(card: QWidget, looked_at: bool) -> None:
    """Light a card's edge, as the step of a lesson asks."""
    if bool(card.property("looked")) != looked_at:
        card.setProperty("looked", looked_at)
        card.style().unpolish(card)
        card.style().polish(card)


class _Maps(QSplitter):
    """The maps and the column beside them, whose pages scroll: they leave a lesson below them the height it needs."""

    def __init__(self, maps: QWidget, column: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._maps = maps
        self.addWidget(maps)
        self.addWidget(column)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self._maps.minimumSizeHint().height())
