"""A window's state as a value, and back: what is computed and looked at, A, and how the window stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET
from PySide6.QtCore import QObject, Signal, Slot

from attnviz.controller import Controller
from attnviz.frames import Failure
from attnviz.history import Scene
from attnviz.questions import Question
from attnviz.session import Cell, Picture, Session
from attnviz.session_files import LayoutName, Page, SavedSession
from attnviz.spec import SpecError, Viewport
from attnviz.views.main_window import MainWindow
from attnviz.worker import EngineLike, Pause

if TYPE_CHECKING:
    from attnviz.views.pages.compare import ComparePage  # pages are loaded when they are first looked at


class Sessions(QObject):
    """Takes the state of one window, and brings one back. Thread: the GUI's; A comes from the worker's, to a slot."""

    a_computed = Signal(object, object, object)  # the spec and view; its `Picture`, or None and a sentence

    def __init__(self, window: MainWindow, controller: Controller, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._window, self._controller, self._session = window, controller, session
        self._awaited: Scene | None = None  # A, until its picture has come
        self.a_computed.connect(self._on_a_computed)

    def now(self) -> SavedSession:
        """The state, every field of it."""
        shown = self._session.snapshot()
        spec, view = self._controller.wanted()
        looked_at, a, cell = shown.looked_at, shown.pinned, self._controller.wanted_cell()
        return SavedSession(
            spec=spec, view=msgspec.structs.replace(view, rows=looked_at.rows, cols=looked_at.cols),
            pinned=self._awaited if a is None else (a.spec, a.view),
            selected=None if cell is None else (cell.row, cell.col), show_numbers=shown.show_numbers,
            decimals=shown.decimals, layout=cast(LayoutName, self._window.layout_name),
            page=cast(Page, self._window.side.current),
            dark=self._window.actions_by_name["dark"].isChecked(),
        )  # fmt: skip

    def show(self, saved: SavedSession) -> None:
        """Bring a state back; what it does not say stays as it is."""
        selected: Cell | None = None
        if isinstance(saved.selected, tuple):
            selected = Cell(*saved.selected)
        self._controller.open(saved.spec, saved.view, selected=selected)
        shown = self._session.snapshot()
        if saved.show_numbers is not UNSET and saved.show_numbers != shown.show_numbers:
            self._controller.toggle_numbers()
        if saved.decimals is not UNSET:
            self._controller.set_decimals(saved.decimals)
        dark = self._window.actions_by_name["dark"]
        if saved.dark is not UNSET and saved.dark != dark.isChecked():
            dark.trigger()
        layout, page = (None if said is UNSET else said for said in (saved.layout, saved.page))
        self._window.arrange(layout, page)
        if saved.pinned is not UNSET:
            self._pin(saved.pinned)
        if saved.question is not UNSET:
            self._ask(saved.question)
        if saved.comparing is not UNSET and (compare := self._window.side.pages.get("compare")):
            cast("ComparePage", compare).show_way(saved.comparing)

    def _ask(self, question: Question) -> None:
        """Have the page in sight ask what a picture's study was asked; what it cannot ask is said."""
        side = self._window.side
        self._window.show_page(side.current)  # in a column that may be hidden
        side.present(self._session.snapshot())
        left_out = side.pages[side.current].take_question(question)
        if left_out:
            words = self.tr("left out of what the picture asked: {what}")
            self._window.status_line.say(words.format(what=" · ".join(left_out)))

    def _pin(self, scene: Scene | None) -> None:
        """Pin A once the worker's thread has computed it, behind what is in sight."""
        self._awaited = scene
        self._controller.pin(None)
        if scene is None:
            return
        spec, view = scene
        pixels = self._controller.viewport.pixels

        def job(engine: EngineLike, pause: Pause) -> None:
            from attnviz import rendering  # noqa: PLC0415 (torch stands by then)

            beside = rendering.beside(engine)
            if beside is None:
                return
            try:
                picture = rendering.collect(beside, spec, view, Viewport(pixels=pixels), pause)
            except (SpecError, RuntimeError) as error:
                self.a_computed.emit(scene, None, str(error))
            else:
                if picture.complete:
                    self.a_computed.emit(scene, picture, None)

        self._controller.run_job(job)

    @Slot(object, object, object)
    def _on_a_computed(self, scene: Scene, picture: Picture | None, failed: str | None) -> None:
        if self._awaited is not scene:
            return  # another one is awaited meanwhile
        self._awaited = None
        if failed is not None:
            sentence = self.tr("A could not be computed again: {why}").format(why=failed)
            self._controller.say(Failure(self._session.generation, sentence, ""))
        elif self._session.snapshot().pinned is None:  # else a hand was quicker
            self._controller.pin(picture)
