"""The program behind one window: connects views, actions and studies to the controller."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, QTimer, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMessageBox

from attnviz import __version__
from attnviz.controller import Controller
from attnviz.questions import Answer
from attnviz.session import Cell, Session, Snapshot
from attnviz.session_files import SavedSession
from attnviz.spec import Drawn, SpecError, edited
from attnviz.spec.worked import typed_form
from attnviz.study_lane import StudyLane
from attnviz.views.cell_editor import CellEdit, with_cell
from attnviz.views.main_window import MainWindow
from attnviz.views.mask_switch import MaskSwitch
from attnviz.views.pages.page import Page
from attnviz.views.row_card.card import RowCard
from attnviz.views.story import story
from attnviz.views.theme import apply_theme
from attnviz.views.token_strip import TokenStrip
from attnviz.views.typed_cells import is_masked
from attnviz.window.exporting import Exporting
from attnviz.window.file_jobs import FileJobs
from attnviz.window.filing import Filing
from attnviz.window.gestures import Gestures
from attnviz.window.keeping import Keeping
from attnviz.window.sessions import Sessions
from attnviz.worker import EngineLike, Worker

if TYPE_CHECKING:
    from attnviz.views.presenter.view import Presenter
    from attnviz.window.teaching import Teaching

log = logging.getLogger(__name__)

_FIRST_PAINT_MS = 15


class Program(QObject):
    """One window with what drives it: connects views and actions to the controller. It opens on what was ``saved``."""

    def __init__(self, saved: SavedSession, settings: QSettings, engine_factory: Callable[[], EngineLike]) -> None:
        super().__init__()
        self.settings = settings
        self.worker = Worker(engine_factory, self)
        self.session = Session(saved.spec, saved.view)
        self.controller = Controller(self.session, self.worker, self)
        self._closing = False
        self._presenter: Presenter | None = None
        self._dark = bool(settings.value("dark", False, type=bool))
        apply_theme(_application(), self._dark)  # before there is a widget: style sheets resolve fonts when they polish
        self.window = MainWindow(settings)
        self.jobs = FileJobs(self.window, self.controller, self.session, self)
        self.sessions = Sessions(self.window, self.controller, self.session, self)
        self.keeping = Keeping(self.sessions, self.controller, self.window, settings, self)
        self.filing = Filing(self.window, self.controller, self.session, self.sessions, self.jobs, settings, self)
        self.exporting = Exporting(self.window, self.controller, self.session, settings, self.jobs)
        self.studies = StudyLane(self.worker.is_busy, parent=self)
        self._teaching: Teaching | None = None
        self._connect_views()
        self._connect_actions()
        self.use_dark(self._dark)
        self.window.restore()
        self.sessions.show(saved)
        self.window.present(self.session.snapshot())
        self.worker.set_budget(_budget_bytes(self._gigabytes()))
        self.controller.start()
        self.window.shown.connect(self._start_soon)
        QTimer.singleShot(200, self._start_worker)  # for a window that is never shown

    @Slot()
    def _start_soon(self) -> None:
        QTimer.singleShot(_FIRST_PAINT_MS, self._start_worker)

    @Slot()
    def _start_worker(self) -> None:
        """Begin to import torch: once the window is painted, which would otherwise wait for it again and again."""
        if not self._closing and not self.worker.is_running():
            self.window.make_late()
            self.worker.start()

    def _gigabytes(self) -> float:
        """The memory that was allowed, 0 for a quarter of what is free."""
        return float(str(self.settings.value("memory_gb", 0.0, type=float)))

    @property
    def teaching(self) -> Teaching:
        """The lessons of this window."""
        self.window.make_late()
        assert self._teaching is not None  # noqa: S101 (made with the late views)
        return self._teaching

    def _connect_views(self) -> None:
        window, controller = self.window, self.controller
        controller.snapshot_changed.connect(self._present)
        window.late_made.connect(self._connect_late_views)
        for editor in (window.mask_switch, window.row_card):
            editor.spec_edited.connect(controller.edit_spec)
        for chooser in (window.pipeline_strip, window.heatmaps):
            chooser.view_edited.connect(controller.edit_view)
        window.token_strip.row_selected.connect(controller.select_row)
        window.status_line.cancelled.connect(controller.cancel)
        window.sentence_card.own_text_asked.connect(self._on_own_text_asked)
        window.sentence_card.check_code_asked.connect(self._on_check_code_asked)
        window.sentence_card.lesson_asked.connect(self._on_lesson_asked)
        window.banner.dismissed.connect(controller.dismiss_failure)
        window.before_held.connect(controller.show_before)
        heads = window.heatmaps
        heads.viewport_changed.connect(controller.set_viewport)
        heads.window_moved.connect(controller.set_window)
        for cells in (heads, window.row_strip):
            cells.cell_hovered.connect(controller.hover)
            cells.cell_selected.connect(controller.select)
        window.row_card.cell_selected.connect(controller.select)
        heads.cell_edited.connect(self._on_cell_edited)
        heads.mask_drawn.connect(self._on_mask_drawn)
        heads.mask_drawing_ended.connect(self._on_mask_drawing_ended)
        heads.said.connect(window.status_line.say)
        window.side.page_made.connect(self._on_page_made)
        self.studies.answered.connect(self._on_study_answered)
        self.studies.failed.connect(self._on_study_failed)
        self.studies.ended.connect(self._on_study_ended)
        window.closing.connect(self.close)

    def _teach(self, what: str, *about: str) -> None:
        """Do something with the lessons, which are made when they are first needed."""
        getattr(self.teaching, what)(*about)

    @Slot()
    def _on_lesson_asked(self) -> None:
        self.teaching.start()

    @Slot()
    def _connect_late_views(self) -> None:
        """What is not in sight at first has been made, and lessons can be played."""
        from attnviz.window.teaching import Teaching  # noqa: PLC0415 (not before the window is painted)

        window, controller, late = self.window, self.controller, self.window.late
        self._teaching = Teaching(window, controller, self.session, self.settings, self)
        self._teaching.changed.connect(self._present_words)
        window.heatmaps.cell_selected.connect(self._teaching.take_cell)
        for editor in (late.controls, late.source_editor):
            editor.spec_edited.connect(controller.edit_spec)
        late.controls.view_edited.connect(controller.edit_view)
        late.controls.budget_edited.connect(self._on_budget_edited)
        late.controls.show_budget(self._gigabytes())
        late.controls.draw_mask_asked.connect(window.actions_by_name["draw_mask"].trigger)
        late.lesson_card.own_text_asked.connect(self._on_own_text_asked)
        late.lesson_card.check_code_asked.connect(self._on_check_code_asked)
        late.go_to_popup.asked.connect(controller.select)
        late.go_to_popup.asked.connect(window.heatmaps.go_to)

    def _connect_actions(self) -> None:
        act, heads = self.window.actions_by_name, self.window.heatmaps
        gestures = Gestures(self.controller, self.controller.refuse)
        self.window.stage_number_pressed.connect(gestures.go_to_stage)
        slots: dict[str, Callable[..., object]] = {
            **gestures.by_name(),
            "head_large": heads.show_current_large,
            "zoom_in": heads.zoom_in, "zoom_out": heads.zoom_out, "zoom_all": heads.zoom_all,
            "pan_up": partial(heads.pan, 0, -1), "pan_down": partial(heads.pan, 0, 1),
            "pan_left": partial(heads.pan, -1, 0), "pan_right": partial(heads.pan, 1, 0),
            "open": self.filing.ask_open, "save": self.filing.ask_save, "export": self.exporting.ask,
            "undo": self.controller.undo, "redo": self.controller.redo, "pin": self.controller.toggle_pin,
            "edit_cell": heads.edit_current_cell, "freeze_scores": self.filing.freeze_scores,
            "copy_code": self.filing.copy_code, "about": self._on_about,
            "lesson_back": partial(self._teach, "back"), "lesson_next": partial(self._teach, "next"),
            "lesson_end": partial(self._teach, "leave"), "lesson_open": partial(self._teach, "ask_open"),
            "lesson_cat": partial(self._teach, "start", "cat-eats-fish"),
            "lesson_journey": partial(self._teach, "start", "journey"),
            "decimals_auto": partial(self.controller.set_decimals, None),
            **{f"decimals_{n}": partial(self.controller.set_decimals, n) for n in (2, 4, 6)},
            "copy_picture": self.exporting.copy, "copy_numbers": self._on_copy_numbers,
        }  # fmt: skip
        for name, slot in slots.items():
            act[name].triggered.connect(partial(_without_checked, slot))
        act["dark"].triggered.connect(self.use_dark)
        act["draw_mask"].toggled.connect(heads.draw_mask)
        act["numbers"].triggered.connect(heads.tell_about_numbers)
        act["redraws"].triggered.connect(self.controller.set_redraws)
        act["presenter"].toggled.connect(self._on_presenter_toggled)

    @Slot(object)
    def _present(self, snapshot: Snapshot) -> None:
        picture = snapshot.picture
        outline = picture.outline if picture is not None and picture.complete else None
        if snapshot.selected is None and outline is not None and 1 < outline.n_queries <= 32:
            self.controller.select_row(1)  # a small map always has a row whose story is told
            return
        self.window.present(snapshot)
        self._present_words()

    # ------------------------------------------------------------------------------------------------- presenter view

    @Slot(bool)
    def _on_presenter_toggled(self, on: bool) -> None:
        if self._presenter is None:
            if not on:
                return
            self._presenter = self._make_presenter()
        if on:
            self._presenter.enter()
            self._present_words()
        else:
            self._presenter.leave()

    def _make_presenter(self) -> Presenter:
        from attnviz.views.presenter.view import Presenter  # noqa: PLC0415 (few need it)
        from attnviz.views.row_card.room_card import RoomCard  # noqa: PLC0415

        presenter = Presenter(self.window.heatmaps, TokenStrip, RoomCard, MaskSwitch)
        strip, card, switch = presenter.token_strip, presenter.row_card, presenter.mask_switch
        assert isinstance(strip, TokenStrip) and isinstance(card, RowCard) and isinstance(switch, MaskSwitch)  # noqa: S101, PT018 (just made)
        card.top_k.hide()  # a class looks, it does not set up
        strip.row_selected.connect(self.controller.select_row)
        card.cell_selected.connect(self.controller.select)
        card.spec_edited.connect(self.controller.edit_spec)
        switch.spec_edited.connect(self.controller.edit_spec)
        for asked in ("step_asked", "answered", "shown_asked", "next_lesson_asked", "language_chosen"):
            getattr(presenter.step, asked).connect(getattr(self.window.lesson_card, asked))
        presenter.left.connect(self._on_presenter_left)
        return presenter

    @Slot()
    def _on_presenter_left(self) -> None:
        self.window.actions_by_name["presenter"].setChecked(False)

    @Slot()
    def _present_words(self) -> None:
        """What the presenter view says: the lesson's step, or the sentence of the picture."""
        if self._presenter is not None and self._presenter.is_on:
            snapshot, state = self.session.snapshot(), self.teaching.state
            if state is None:
                self._presenter.show_sentence(*story(snapshot))
            else:
                page = self.window.side.pages.get(state.step.page)
                self._presenter.show_step(state, page, elsewhere=self.teaching.elsewhere)
            self._presenter.present(snapshot)

    @Slot(float)
    def _on_budget_edited(self, gigabytes: float) -> None:
        self.settings.setValue("memory_gb", gigabytes)
        self.controller.set_budget(_budget_bytes(gigabytes))

    @Slot()
    def _on_own_text_asked(self) -> None:
        self.window.show_page("controls")
        self.window.source_editor.edit_text()

    @Slot()
    def _on_check_code_asked(self) -> None:
        self.window.show_page("leaks")
        self.window.side.pages["leaks"].show_module()  # type: ignore[attr-defined]

    # ------------------------------------------------------------------------------------------- hands on the numbers

    @Slot(object)
    def _on_cell_edited(self, edit: CellEdit) -> None:
        """A typed cell has another number; a lesson becomes the typed matrix that it is."""
        spec, _ = self.controller.wanted()
        source = typed_form(spec.source)
        if source is None:
            return
        try:
            changed = edited(spec, source=with_cell(source, edit))
        except SpecError as error:
            self.controller.refuse(error)
            return
        self.controller.edit_spec(changed)
        hidden = is_masked(self.session.snapshot(), Cell(edit.row, edit.col))
        self.window.status_line.say(self.tr("the mask hides this cell: no weight follows from it") if hidden else "")

    @Slot(object)
    def _on_mask_drawn(self, shape: Drawn) -> None:
        """A mask drawn by hand takes the place of the shape; where nothing was masked, it now is."""
        spec, _ = self.controller.wanted()
        changes = {"mask": "neg-inf"} if spec.mask == "none" else {}
        try:
            self.controller.edit_spec(edited(spec, mask_shape=shape, **changes))
        except SpecError as error:
            self.controller.refuse(error)

    @Slot()
    def _on_mask_drawing_ended(self) -> None:
        self.window.actions_by_name["draw_mask"].setChecked(False)

    # --------------------------------------------------------------------------------------------------------- studies

    @Slot(object)
    def _on_page_made(self, page: Page) -> None:
        page.asked.connect(self.studies.ask)
        page.called_off.connect(self.studies.cancel)
        page.spec_edited.connect(self.controller.edit_spec)
        page.view_edited.connect(self.controller.edit_view)
        page.cell_selected.connect(self.controller.select)
        slots = {
            "redraw_toggled": self.controller.set_redraws, "pin_toggled": self.controller.toggle_pin,
            "draw_mask_asked": self.window.actions_by_name["draw_mask"].trigger,
        }  # fmt: skip
        for name, slot in slots.items():
            if hasattr(page, name):
                getattr(page, name).connect(slot)
        if hasattr(page, "module_asked"):
            from attnviz.views.pages.leaks import LeaksPage  # noqa: PLC0415
            from attnviz.window.module_testing import ModuleTesting  # noqa: PLC0415 (not before its page is there)

            assert isinstance(page, LeaksPage)  # noqa: S101 (no other page asks for modules)
            ModuleTesting(page, self.window)

    @Slot(str, object)
    def _on_study_answered(self, name: str, answer: Answer) -> None:
        for page in self.window.side.pages.values():
            if page.study == name:
                page.take_answer(answer)
        if self._teaching is not None:
            self._teaching.take_study(name, answer)

    @Slot(str, str)
    def _on_study_failed(self, name: str, sentence: str) -> None:
        for page in self.window.side.pages.values():
            if page.study == name:
                page.take_failure(sentence)
        if self._teaching is not None:
            self._teaching.judge_waiting()

    @Slot(str)
    def _on_study_ended(self, name: str) -> None:
        for page in self.window.side.pages.values():
            if page.study == name:
                page.take_end()
        if self._teaching is not None:
            self._teaching.judge_waiting()

    @Slot(bool)
    def use_dark(self, dark: bool) -> None:
        """Dark or light colours, remembered."""
        if dark != self._dark:
            self._dark = dark
            self.settings.setValue("dark", dark)
            apply_theme(_application(), dark)
        self.exporting.dark = dark
        self.window.use_dark(dark)
        self.window.actions_by_name["dark"].setChecked(dark)

    @Slot()
    def _on_copy_numbers(self) -> None:
        text = self.window.heatmaps.row_as_text()
        if text:
            QGuiApplication.clipboard().setText(text)

    @Slot()
    def _on_about(self) -> None:
        QMessageBox.about(
            self.window, self.tr("About attnviz"),
            self.tr("attnviz {version}\nWhat happens inside attention, computed live.").format(version=__version__),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------- ending

    @Slot()
    def close(self) -> None:
        """Keep the state and join the worker. Called once, when the window closes."""
        self._closing = True  # an export that is under way is called off
        self.controller.close()
        self.filing.close()
        self.keeping.close()
        self.settings.sync()
        QGuiApplication.clipboard().clear()  # a picture left there crashes Qt's offscreen platform at exit
        ended = [lane.close() for lane in (self.studies, self.worker)]
        if not all(ended):
            log.error("a thread did not end in time")
        self.jobs.close()


def _application() -> QApplication:
    application = QApplication.instance()
    assert isinstance(application, QApplication)  # noqa: S101 (a window is being built)
    return application


def _budget_bytes(gigabytes: float) -> int | None:
    return int(gigabytes * 1e9) or None


def _without_checked(slot: Callable[..., object], _checked: bool = False) -> None:
    slot()
