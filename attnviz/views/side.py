"""The column beside the maps: one page at a time, chosen by a tab; pages are made when they are first looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, Qt, Signal, Slot
from PySide6.QtWidgets import QScrollArea, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from attnviz.session import Snapshot
from attnviz.views.pages.page import Page
from attnviz.views.part_in_sight import PartInSight
from attnviz.views.scrolled import scrolled


@dataclass(frozen=True, slots=True)
class Tab:
    """A page's name in the code, its word, what it is for, and where its class stands (none: the window's own)."""

    name: str
    word: object
    tip: object
    module: str = ""
    kind: str = ""


TABS: Final[tuple[Tab, ...]] = (
    Tab("row", QT_TRANSLATE_NOOP("Side", "Row"), QT_TRANSLATE_NOOP("Side", "one query, key by key")),
    Tab("masks", QT_TRANSLATE_NOOP("Side", "Masks"), QT_TRANSLATE_NOOP("Side", "every way to hide the future"),
        "masks", "MasksPage"),
    Tab("dropout", QT_TRANSLATE_NOOP("Side", "Dropout"), QT_TRANSLATE_NOOP("Side", "one draw, and a thousand"),
        "dropout", "DropoutPage"),
    Tab("heads", QT_TRANSLATE_NOOP("Side", "Heads"), QT_TRANSLATE_NOOP("Side", "stacked and split: the same function"),
        "heads", "HeadsPage"),
    Tab("rounds", QT_TRANSLATE_NOOP("Side", "Rounds"), QT_TRANSLATE_NOOP("Side", "generating token by token"),
        "rounds", "RoundsPage"),
    Tab("exam", QT_TRANSLATE_NOOP("Side", "Exam"), QT_TRANSLATE_NOOP("Side", "train without a mask, then test"),
        "exam", "ExamPage"),
    Tab("ahead", QT_TRANSLATE_NOOP("Side", "Ahead"), QT_TRANSLATE_NOOP("Side", "how much of each row looks ahead"),
        "looks_ahead", "LooksAheadPage"),
    Tab("compare", QT_TRANSLATE_NOOP("Side", "A | B"), QT_TRANSLATE_NOOP("Side", "two states side by side"),
        "compare", "ComparePage"),
    Tab("leaks", QT_TRANSLATE_NOOP("Side", "Leaks"), QT_TRANSLATE_NOOP("Side", "does it leak? who sees whom"),
        "leaks", "LeaksPage"),
    Tab("forms", QT_TRANSLATE_NOOP("Side", "Forms"), QT_TRANSLATE_NOOP("Side", "one attention, six ways to write it"),
        "forms_page", "FormsPage"),
    Tab("module", QT_TRANSLATE_NOOP("Side", "Module"), QT_TRANSLATE_NOOP("Side", "parameters and buffers")),
    Tab("controls", QT_TRANSLATE_NOOP("Side", "Set up"), QT_TRANSLATE_NOOP("Side", "tokens, mask, heads, device")),
)  # fmt: skip
PAGES: Final = tuple(tab.name for tab in TABS)


class Side(QWidget):
    """Pages by name, one in sight. ``page_made`` carries a study's page when it is first looked at.

    ``present`` reaches the page in sight; another gets the newest snapshot when it comes.
    """

    page_made = Signal(object)
    page_chosen = Signal(str)

    def __init__(
        self, own: Mapping[str, QWidget], make_late: Callable[[], object] = lambda: None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._make_late = make_late  # has the window `add` its other pages, when one is looked at before they are there
        self._snapshot: Snapshot | None = None
        self._pages: dict[str, Page] = {}
        self._in_sight: dict[str, PartInSight] = {}
        self._places: dict[str, QWidget] = {}
        self._tabs = QTabBar()
        self._tabs.setDrawBase(False)
        self._tabs.setExpanding(False)
        self._tabs.setUsesScrollButtons(True)
        self._tabs.setElideMode(Qt.TextElideMode.ElideNone)
        self._tabs.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
        self._tabs.setAccessibleName(self.tr("pages"))
        for tab in TABS:
            place = self._tabs.addTab(said(tab.word))
            self._tabs.setTabToolTip(place, said(tab.tip))
        self._stack = QStackedWidget()
        self.add(own)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self._tabs)
        column.addWidget(self._stack, 1)
        self._current, self._offered = TABS[0].name, frozenset(PAGES)
        self._tabs.currentChanged.connect(self._on_tab)
        self._stack.setCurrentWidget(self._places[self._current])

    @property
    def current(self) -> str:
        """The name of the page in sight."""
        return self._current

    @property
    def pages(self) -> Mapping[str, Page]:
        """The studies' pages that there are so far."""
        return MappingProxyType(self._pages)

    def card(self) -> QWidget:
        """The card of the page in sight."""
        return _card(self._places[self._current])

    def cards(self) -> tuple[QWidget, ...]:
        """The cards of all pages that there are so far."""
        return tuple(map(_card, self._places.values()))

    def add(self, own: Mapping[str, QWidget]) -> None:
        """Take more of the window's own pages."""
        for name, widget in own.items():
            self._place(name, widget)

    def offer(self, names: Collection[str]) -> None:
        """Show the tabs of these pages, and of the one in sight: more of them have no room beside the maps."""
        self._offered = frozenset(names)
        self._show_tabs()

    def _show_tabs(self) -> None:
        blocked = self._tabs.blockSignals(True)
        for place, tab in enumerate(TABS):
            self._tabs.setTabVisible(place, tab.name in self._offered or tab.name == self._current)
        self._tabs.setCurrentIndex(PAGES.index(self._current))
        self._tabs.blockSignals(blocked)

    def show_page(self, name: str) -> None:
        """Bring a page into sight; emits nothing but ``page_made`` the first time."""
        if name == self._current:
            return
        there = self._pages.get(self._current)
        if there is not None:
            there.set_active(False)
        self._current = name
        tab = next(tab for tab in TABS if tab.name == name)
        if name not in self._places:
            self._make(tab)
        self._stack.setCurrentWidget(self._places[name])
        self._show_tabs()
        page = self._pages.get(name)
        if page is not None:
            if self._snapshot is not None:
                page.present(self._snapshot)
            page.set_active(True)

    def show_part(self, name: str) -> None:
        """Bring a part of the page in sight into sight by its name, its beginning for ""; see `PartInSight`."""
        area, page = self._places[self._current], self._pages.get(self._current)
        if isinstance(area, QScrollArea):
            if self._current not in self._in_sight:
                self._in_sight[self._current] = PartInSight(area)
            self._in_sight[self._current].show(page.parts.get(name, ()) if page is not None else ())

    def present(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        page = self._pages.get(self._current)
        if page is not None:
            page.present(snapshot)

    def _make(self, tab: Tab) -> None:
        if not tab.module:
            self._make_late()
            return
        kind: Callable[[], Page] = getattr(import_module(f"attnviz.views.pages.{tab.module}"), tab.kind)
        page = self._pages[tab.name] = kind()
        self._place(tab.name, scrolled(page))
        self.page_made.emit(page)

    def _place(self, name: str, widget: QWidget) -> None:
        self._places[name] = widget
        self._stack.addWidget(widget)

    @Slot(int)
    def _on_tab(self, place: int) -> None:
        name = TABS[place].name
        self.show_page(name)
        self.page_chosen.emit(name)


def _card(place: QWidget) -> QWidget:
    return (place.widget() or place) if isinstance(place, QScrollArea) else place


def said(words: object) -> str:
    """A tab's word or tip in the interface's language."""
    return QCoreApplication.translate("Side", str(words))
