"""Between a click and a request: checks, throttles, numbers the generations, and lets frames through the one gate.

Knows no widget. Views emit whole specs and views; the controller hands snapshots back.
"""

from __future__ import annotations

import time

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from attnviz.frames import Failure, Finished, Outline, Probe
from attnviz.session import Cell, Problem, Session, Window
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, Request, SpecError, View, Viewport, edited
from attnviz.worker import Job, Worker

FRAME_MS = 16
_DRAIN_MS = 33  # painting twelve maps takes a third of this, and computing waits for part of it


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
        self._viewport = Viewport()
        self._waiting: tuple[AttentionSpec, View] | None = None
        self._retry_device: str | None = None
        self._last_begun = 0.0
        self._last_drained = 0.0
        self._throttle = QTimer(self, singleShot=True, interval=FRAME_MS)
        self._throttle.timeout.connect(self._begin_waiting)
        self._paint = QTimer(self, singleShot=True)
        self._paint.timeout.connect(self._drain)
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

    def open(self, spec: AttentionSpec, view: View) -> None:
        """Show a spec and view that belong together, as from a file."""
        self._ask(spec, view)

    def outline(self) -> Outline | None:
        """What the picture in sight is about."""
        picture = self._session.snapshot().picture
        return picture.outline if picture else None

    def selected(self) -> Cell | None:
        return self._session.snapshot().selected

    def say(self, failure: Failure) -> None:
        """Show a sentence in the banner that did not come from a computation."""
        self._update(failure=failure)

    def refuse(self, error: SpecError) -> None:
        """Show why an edit was refused beside its control."""
        self._update(problem=Problem(error.field, str(error)))

    def run_job(self, job: Job) -> None:
        self._worker.run_job(job)

    def wanted(self) -> tuple[AttentionSpec, View]:
        """What was last asked for, waiting behind the throttle or not."""
        snapshot = self._session.snapshot()
        return self._waiting or (snapshot.spec, snapshot.view)

    def _ask(self, spec: AttentionSpec, view: View) -> None:
        if (spec, view) == self.wanted():
            return
        self._waiting = spec, view
        self._arm()

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
        if not self._same_map(spec, view):  # a window of cells means nothing on a map of another shape
            self._viewport = msgspec.structs.replace(self._viewport, rows=None, cols=None)
            self._session.update(window=None)
        generation = self._session.begin(spec, view)
        if failure is not None:
            self._session.update(failure=failure)
        request = Request(spec=spec, view=view, viewport=self._viewport, generation=generation)
        self._worker.submit(request)
        self._show()

    def _same_map(self, spec: AttentionSpec, view: View) -> bool:
        """Whether rows and columns mean what they meant in the picture asked for before."""
        before = self._session.snapshot()
        if {view.stage, before.view.stage} <= QUERY_KEY_STAGES:
            return spec.source == before.spec.source
        return (spec, view.stage) == (before.spec, before.view.stage)

    # ---------------------------------------------------------------------------------------------------- messages

    @Slot()
    def _on_messages_pending(self) -> None:
        if not self._paint.isActive():  # the first frame at once, those behind it together
            since = (time.monotonic() - self._last_drained) * 1000
            self._paint.start(max(0, int(_DRAIN_MS - since)))

    @Slot()
    def _drain(self) -> None:
        self._last_drained = time.monotonic()
        accepted = [message for message in self._worker.take() if self._session.accept(message)]
        if not accepted:
            return
        self._show()
        for message in accepted:
            if isinstance(message, Outline):
                self._keep_selection_inside(message)
            elif isinstance(message, Finished):
                self._ask_probe()
                self.settled.emit()
            elif isinstance(message, Failure):
                self._fall_back(message)

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
        self._update(selected=cell)
        self._ask_probe()

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
        snapshot = self._session.snapshot()
        cell, picture = snapshot.cell, snapshot.picture
        if cell is None or picture is None or picture.outline is None:
            return
        head = snapshot.view.head or 0
        row = snapshot.row
        whole_row = snapshot.selected is not None and (
            row is None or (row.generation, row.row, row.head) != (picture.generation, cell.row, head)
        )
        known = snapshot.probe is not None and (snapshot.probe.row, snapshot.probe.col) == (cell.row, cell.col)
        if known and not whole_row:
            return
        self._worker.probe(Probe(picture.generation, cell.row, cell.col, head, whole_row))

    def _update(self, **changes: object) -> None:
        if self._session.update(**changes):
            self._show()

    def _show(self) -> None:
        self.snapshot_changed.emit(self._session.snapshot())
