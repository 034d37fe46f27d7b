"""Between a click and a request: checks, throttles, numbers the generations, and lets frames through the one gate.

Knows no widget. Views emit whole specs and views; the controller hands snapshots back.
"""

from __future__ import annotations

import time

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from attnviz.frames import (
    STORY_KEYS,
    Failure,
    Finished,
    Frame,
    Message,
    Outline,
    Probe,
    ProbeAnswer,
    Progress,
    RowAnswer,
    RowQuestion,
)
from attnviz.history import History
from attnviz.session import Cell, Picture, Problem, Session, Window, window_of
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, Request, SpecError, View, Viewport, edited
from attnviz.worker import Job, Worker

FRAME_MS = 16
_DRAIN_MS = 33  # painting twelve maps takes a third of this, and computing waits for part of it
_REDRAW_MS = 700  # between two draws of dropout, while it draws by itself
_ROW_MS = 300  # so long a question about the pointer's cell waits behind one for the selected row


class Controller(QObject):
    """Drives one window's session. Thread: the GUI's."""

    snapshot_changed = Signal(object)
    """A `Snapshot`, at paint rate."""

    settled = Signal()
    """The picture last asked for is exact and has been shown."""

    def __init__(self, session: Session, worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._worker = worker
        view = session.snapshot().looked_at
        self._viewport = Viewport(rows=view.rows, cols=view.cols)
        self._waiting: tuple[AttentionSpec, View] | None = None
        self._opened: View | None = None
        self._to_select: Cell | None = None  # of the map that was opened, once it is there
        self._showing = self._show_again = False
        self._last_begun = 0.0
        self._last_drained = 0.0
        self._throttle = QTimer(self, singleShot=True, interval=FRAME_MS)
        self._throttle.timeout.connect(self._begin_waiting)
        self._paint = QTimer(self, singleShot=True)
        self._paint.timeout.connect(self._drain)
        self._row_asked: tuple[int, int, int] | None = None
        self._row_again = False
        self._history = History((session.snapshot().spec, session.snapshot().view))
        self._same_gesture = False
        self._redraw = QTimer(self, interval=_REDRAW_MS)
        self._redraw.timeout.connect(self._on_redraw)
        self._behind_row = QTimer(self, singleShot=True, interval=_ROW_MS)
        self._behind_row.timeout.connect(self._on_row_late)
        worker.messages_pending.connect(self._on_messages_pending)
        worker.devices_known.connect(self._on_devices_known)

    # ------------------------------------------------------------------------------------------------------- edits

    @Slot(object)
    def edit_spec(self, spec: AttentionSpec) -> None:
        """A user's edit: computed at once, or when the throttle lets the newest of several through."""
        _, view = self.wanted()
        try:
            view.check(spec)
        except SpecError as error:  # the new spec lacks this stage or head: fall back to what every spec has
            changes = {"stage": "weights"} if error.field == "stage" else {"head": None}
            view = msgspec.structs.replace(view, **changes)
            if view.head is not None and view.head >= spec.num_heads:
                view = msgspec.structs.replace(view, head=None)
        self._ask(spec, view)

    @Slot(object)
    def edit_view(self, view: View) -> None:
        spec, _ = self.wanted()
        try:
            view.check(spec)
        except SpecError as error:
            self._update(problem=Problem(error.field, str(error)))
            return
        self._ask(spec, view)

    @Slot(object)
    def set_viewport(self, viewport: Viewport) -> None:
        """The screen shows another window or has other pixels."""
        if self._session.snapshot().window is None:  # a late word of a window that has gone with its map
            viewport = msgspec.structs.replace(viewport, rows=None, cols=None)
        if viewport == self._viewport:
            return
        self._viewport = viewport
        if self._session.generation:
            self._waiting = self.wanted()
            self._arm()

    def start(self) -> None:
        """Ask for the first picture."""
        snapshot = self._session.snapshot()
        self._begin(snapshot.spec, snapshot.view)

    @Slot()
    def cancel(self) -> None:
        self._throttle.stop()
        self._waiting = None
        self._worker.cancel()
        self._update(running=False, progress=None)

    def close(self) -> None:
        """Stop asking and showing: the window is going."""
        for timer in (self._throttle, self._paint, self._redraw, self._behind_row):
            timer.stop()
        self._worker.messages_pending.disconnect(self._on_messages_pending)
        self.blockSignals(True)

    def open(
        self, spec: AttentionSpec, view: View, *, recorded: bool = True, selected: Cell | None = None
    ) -> None:  # fmt: skip
        """Show a spec and view that belong together, as from a file: the view's ranges become the window.

        ``selected`` is the cell to look at, None for the one that is. Dropout that draws by itself is frozen. What is
        not ``recorded`` is no step of a person's to be undone.
        """
        self.set_redraws(False)
        self._to_select = selected
        plain = msgspec.structs.replace(view, rows=None, cols=None)
        if (spec, plain) == self.wanted():
            self._update(window=window_of(view))
            self._select_opened()
            return
        self._opened = view
        self._ask(spec, plain, recorded=recorded)

    def _select_opened(self) -> None:
        """Select the cell that came with what was opened, as soon as a picture of that stands."""
        snapshot, cell = self._session.snapshot(), self._to_select
        outline = self.outline()
        if cell is None or outline is None or snapshot.stale:
            return
        self._to_select = None
        self.select(Cell(min(cell.row, outline.n_queries - 1), min(cell.col, outline.n_keys - 1)))

    def forget_before(self) -> None:
        """Compare what stands with nothing, until it changes again."""
        if self._session.snapshot().last is not None:
            self._update(last=None)
            self._ask_story()

    @property
    def viewport(self) -> Viewport:
        """The cells and pixels that are asked for."""
        return self._viewport

    def outline(self) -> Outline | None:
        """What the picture in sight is about."""
        picture = self._session.snapshot().picture
        return picture.outline if picture else None

    def selected(self) -> Cell | None:
        return self._session.snapshot().selected

    def wanted_cell(self) -> Cell | None:
        """The cell that is selected, or that will be once its map stands."""
        return self._to_select or self.selected()

    def say(self, failure: Failure) -> None:
        """Show a sentence in the banner that did not come from a computation."""
        self._update(failure=failure)

    def refuse(self, error: SpecError) -> None:
        """Show why an edit was refused beside its control."""
        self._update(problem=Problem(error.field, str(error)))

    def set_budget(self, budget_bytes: int | None) -> None:
        """Bytes that computations may take, None for a quarter of what is free; what stands is computed again."""
        self._worker.set_budget(budget_bytes)
        if self._session.generation:
            self._waiting = self.wanted()
            self._arm()

    def run_job(self, job: Job) -> None:
        self._worker.run_job(job)

    def drop_job(self, job: Job) -> bool:
        """Take back a job that waits; whether it had not begun."""
        return self._worker.drop_job(job)

    def wanted(self) -> tuple[AttentionSpec, View]:
        """What was last asked for, waiting behind the throttle or not."""
        snapshot = self._session.snapshot()
        return self._waiting or (snapshot.spec, snapshot.view)

    def _ask(self, spec: AttentionSpec, view: View, *, recorded: bool = True) -> None:
        if (spec, view) == self.wanted():
            return
        if recorded:
            self._same_gesture = self._history.record(spec, view, time.monotonic())
        self._waiting = spec, view
        self._update(can_undo=self._history.can_undo, can_redo=self._history.can_redo)
        self._arm()

    # ------------------------------------------------------------------------------------- back, and side by side

    @Slot()
    def undo(self) -> None:
        """Back to the spec before the last change."""
        scene = self._history.undo()
        if scene is not None:
            self._ask(*scene, recorded=False)

    @Slot()
    def redo(self) -> None:
        scene = self._history.redo()
        if scene is not None:
            self._ask(*scene, recorded=False)

    @Slot()
    def toggle_pin(self) -> None:
        """Pin the picture that stands as A, or let A go."""
        snapshot = self._session.snapshot()
        complete = snapshot.picture is not None and snapshot.picture.complete
        self.pin(snapshot.picture if complete and snapshot.pinned is None else None)

    def pin(self, picture: Picture | None) -> None:
        """Make a complete picture A, which the one in sight is compared with; None lets A go."""
        self._update(pinned=picture)
        self._ask_story()

    @Slot(bool)
    def set_redraws(self, redraws: bool) -> None:
        """Let dropout draw again and again, as training does at each step, or freeze the draw."""
        if redraws:
            self._redraw.start()
        else:
            self._redraw.stop()
        self._update(redraws=redraws)

    @Slot()
    def _on_redraw(self) -> None:
        """The next draw, once the last one has been seen; no step of the history, which it would fill."""
        spec, view = self.wanted()
        if not spec.drops:
            self.set_redraws(False)
        elif not self._session.snapshot().running:
            try:
                spec = edited(spec, dropout_seed=spec.dropout_seed + 1)
            except SpecError as error:  # the last seed there is
                self.set_redraws(False)
                self.refuse(error)
                return
            self._history.replace(spec, view)
            self._ask(spec, view, recorded=False)

    def _arm(self) -> None:
        if self._throttle.isActive():
            return
        since = (time.monotonic() - self._last_begun) * 1000
        if since >= FRAME_MS:
            self._begin_waiting()
        else:
            self._throttle.start(max(1, int(FRAME_MS - since)))

    @Slot()
    def _begin_waiting(self) -> None:
        if self._waiting is not None:
            spec, view = self._waiting
            self._waiting = None
            self._begin(spec, view)

    def _begin(self, spec: AttentionSpec, view: View, failure: Failure | None = None) -> None:
        self._last_begun = time.monotonic()
        opened, self._opened = self._opened, None
        if opened is not None or not self._same_map(spec, view):  # cells of another map are other cells
            self._to_select = None if opened is None else self._to_select
            opened = opened or View()
            self._viewport = msgspec.structs.replace(self._viewport, rows=opened.rows, cols=opened.cols)
            self._session.update(window=window_of(opened))
        windowed = self._viewport.rows is not None or self._viewport.cols is not None
        generation = self._session.begin(spec, view, windowed=windowed, same_gesture=self._same_gesture)
        self._same_gesture = False
        self._row_asked = None
        if failure is not None:
            self._session.update(failure=failure)
        request = Request(spec=spec, view=view, viewport=self._viewport, generation=generation)
        self._worker.submit(request)
        self._show()

    def _same_map(self, spec: AttentionSpec, view: View) -> bool:
        """Whether rows and columns mean what they meant in the picture asked for before."""
        before = self._session.snapshot()
        if spec.source != before.spec.source:
            return False
        if {view.stage, before.view.stage} <= QUERY_KEY_STAGES:
            return True
        sizes = [(s.num_heads, s.d_model, s.d_out) for s in (spec, before.spec)]
        return view.stage == before.view.stage and sizes[0] == sizes[1]

    # ---------------------------------------------------------------------------------------------------- messages

    @Slot()
    def _on_messages_pending(self) -> None:
        if self._worker.is_finished_pending():
            self._paint.start(0)  # nothing more is to come that could be painted with it
        elif not self._paint.isActive():  # the first frame at once, those behind it together
            since = (time.monotonic() - self._last_drained) * 1000
            self._paint.start(max(0, int(_DRAIN_MS - since)))

    @Slot()
    def _drain(self) -> None:
        self._last_drained = time.monotonic()
        accepted = [message for message in self._worker.take() if self._session.accept(message)]
        if not accepted:
            return
        self._select_opened()
        self._show()
        for message in accepted:
            if isinstance(message, Outline):
                self._keep_selection_inside(message)
            elif isinstance(message, Finished):
                self._row_asked = None
                self._ask_probe()
                self._ask_story()
                if not self._session.snapshot().running:  # the views may have asked for other pixels of it
                    self.settled.emit()
            elif isinstance(message, Failure):
                self._fall_back(message)
        self._ask_what_was_open(accepted)

    def _ask_what_was_open(self, accepted: list[Message]) -> None:
        """Ask again for numbers that were not there yet, and for the pointer's cell once the row has come."""
        probe = self._session.snapshot().probe
        came = any(isinstance(message, Frame | Progress) for message in accepted)
        if self._behind_row.isActive() and any(isinstance(message, RowAnswer) for message in accepted):
            self._behind_row.stop()
            self._ask_probe()
        elif self._row_again and any(isinstance(message, ProbeAnswer) for message in accepted):
            self._row_again, self._row_asked = False, None
            self._ask_probe()
        elif came and probe is not None and None in probe.values:
            self._ask_probe()

    def _fall_back(self, failure: Failure) -> None:
        """After a device failed, go on with the last one that worked; the banner stays."""
        spec, view = self._session.snapshot().spec, self._session.snapshot().view
        good = self._session.last_good_device
        if failure.device_failed and spec.device != good:
            self._begin(edited(spec, device=good), view, failure=failure)

    def _keep_selection_inside(self, outline: Outline) -> None:
        cell = self._session.snapshot().selected
        if cell is not None and (cell.row >= outline.n_queries or cell.col >= outline.n_keys):
            self._update(selected=None, hovered=None)

    @Slot(object)
    def _on_devices_known(self, devices: object) -> None:
        self._update(devices=devices)

    # ------------------------------------------------------------------------------------------------ what is looked at

    @Slot(object)
    def select(self, cell: Cell | None) -> None:
        before = self._session.snapshot().selected
        self._update(selected=cell)
        self._ask_probe()
        if cell is not None and (before is None or before.row != cell.row):
            self._ask_story()

    @Slot(int)
    def select_row(self, row: int) -> None:
        snapshot = self._session.snapshot()
        outline = snapshot.picture.outline if snapshot.picture else None
        if outline is None:
            return
        row = min(max(row, 0), outline.n_queries - 1)
        own = row + outline.n_keys - outline.n_queries
        self.select(Cell(row, min(own + 1, outline.n_keys - 1)))

    @Slot(object)
    def hover(self, cell: Cell | None) -> None:
        self._update(hovered=cell)
        self._ask_probe()

    @Slot(bool)
    def show_before(self, held: bool) -> None:
        self._update(show_before=held)

    @Slot(object)
    def set_window(self, window: Window | None) -> None:
        self._update(window=window)

    @Slot()
    def toggle_numbers(self) -> None:
        self._update(show_numbers=not self._session.snapshot().show_numbers)

    @Slot(object)
    def set_decimals(self, decimals: int | None) -> None:
        self._update(decimals=decimals)

    @Slot()
    def dismiss_failure(self) -> None:
        self._update(failure=None)

    def _ask_probe(self) -> None:
        """Ask for the selected row, then for the cell under the cross-hair: the worker keeps the newest question."""
        snapshot = self._session.snapshot()
        selected, picture, row = snapshot.selected, snapshot.picture, snapshot.row
        if picture is None or picture.outline is None:
            return
        if selected is not None and picture.view.stage in QUERY_KEY_STAGES:
            wanted = picture.generation, selected.row, snapshot.view.head or 0
            missing = row is None or (row.generation, row.row, row.head) != wanted
            if missing and wanted != self._row_asked:
                self._row_asked = wanted
                self._worker.probe(Probe(wanted[0], selected.row, selected.col, wanted[2], whole_row=True))
                self._behind_row.start()
                return
        if not self._behind_row.isActive():
            self._ask_cell()

    def _ask_story(self) -> None:
        """Ask for the selected row stage by stage, of the picture that stands and of the state before."""
        snapshot = self._session.snapshot()
        picture, selected, before = snapshot.picture, snapshot.selected, snapshot.before
        if picture is None or not picture.complete or picture.outline is None or selected is None:
            return
        if picture.outline.n_keys > STORY_KEYS:
            return
        head = picture.view.head or 0
        other = None if before is None or before.spec == picture.spec else before.spec
        self._worker.ask_row(RowQuestion(picture.generation, picture.spec, selected.row, head, other))

    @Slot()
    def _on_row_late(self) -> None:
        """Let the pointer's cell go first; the row is asked for again behind it."""
        self._row_again = self._ask_cell()

    def _ask_cell(self) -> bool:
        """Ask for the numbers under the cross-hair, if they are not known. Returns whether they had to be asked for."""
        snapshot = self._session.snapshot()
        cell, picture, probe = snapshot.cell, snapshot.picture, snapshot.probe
        known = probe is not None and Cell(probe.row, probe.col) == cell and None not in probe.values
        if cell is None or picture is None or known:
            return False
        self._worker.probe(Probe(picture.generation, cell.row, cell.col, snapshot.view.head or 0))
        return True

    def _update(self, **changes: object) -> None:
        if self._session.update(**changes):
            self._show()

    def _show(self) -> None:
        """Hand the snapshot to the views; what they ask for meanwhile is shown when all of them have seen this one."""
        if self._showing:
            self._show_again = True
            return
        self._showing = self._show_again = True
        try:
            while self._show_again:
                self._show_again = False
                self.snapshot_changed.emit(self._session.snapshot())
        finally:
            self._showing = False
