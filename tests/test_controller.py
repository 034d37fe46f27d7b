"""What the controller asks a worker for, and when: rows before pointers, windows that outlive edits, no nesting."""

import pytest
from made_pictures import frame_of, outline_of, row_of
from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from attnviz.controller import Controller
from attnviz.frames import CellClass, Finished, ProbeAnswer, Progress
from attnviz.session import Cell, Session, Window
from attnviz.spec import RandomEmbeddings, RandomQK, View, Viewport, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")
SPEC = make_spec(RandomQK(length=400), num_heads=2)
PART = Viewport(rows=(90, 210), cols=(90, 210))


class HeldWorker(QObject):
    """Takes requests and questions and answers what the test tells it to."""

    messages_pending = Signal()
    devices_known = Signal(object)

    def __init__(self):
        super().__init__()
        self.requests, self.probes, self.jobs, self.box, self.cancelled, self.rows = [], [], [], [], 0, []

    def submit(self, request):
        self.requests.append(request)

    def probe(self, probe):
        self.probes.append(probe)

    def ask_row(self, question):
        self.rows.append(question)

    def cancel(self):
        self.cancelled += 1

    def is_finished_pending(self):
        return any(isinstance(message, Finished) for message in self.box)

    def take(self):
        box, self.box = self.box, []
        return box


class Driven:
    def __init__(self, qtbot, view=None):
        self.qtbot, self.worker = qtbot, HeldWorker()
        self.session = Session(SPEC, view or View())
        self.controller = Controller(self.session, self.worker)
        self.snapshots, self.settled = [], []
        self.controller.snapshot_changed.connect(self.snapshots.append)
        self.controller.settled.connect(lambda: self.settled.append(True))
        self.controller.start()

    @property
    def snapshot(self):
        return self.session.snapshot()

    @property
    def generation(self):
        return self.session.generation

    def send(self, *messages):
        self.worker.box += messages
        self.worker.messages_pending.emit()
        self.qtbot.waitUntil(lambda: not self.worker.box)

    def finish(self, **fields):
        outline = outline_of(400, 2, generation=self.generation, **fields)
        frames = [frame_of(name, (0, 400), (0, 400), generation=self.generation) for name in outline.panels]
        self.send(outline, *frames, Finished(self.generation, 0.0, 0, 0))

    def settle(self):
        """Let what waits behind the throttle through."""
        self.qtbot.waitUntil(lambda: self.controller._waiting is None)


@pytest.fixture
def drive(qtbot):
    return lambda **fields: Driven(qtbot, **fields)


# ------------------------------------------------------------------------------------------------------------- window


@pytest.mark.parametrize("edit", [
    {"mask": "none"}, {"dropout": 0.5}, {"num_heads": 3}, {"seed": 5}, {"dtype": "float64"}, {"scale": 0.5},
])  # fmt: skip
def test_a_window_outlives_edits_of_the_same_source(drive, edit):
    driven = drive()
    driven.finish()
    driven.controller.set_window(Window(100, 200, 100, 200))
    driven.controller.set_viewport(PART)
    driven.settle()
    driven.controller.edit_spec(edited(SPEC, **edit))
    driven.settle()
    assert driven.snapshot.window == Window(100, 200, 100, 200)
    assert driven.worker.requests[-1].spec == edited(SPEC, **edit)
    assert driven.worker.requests[-1].viewport == PART


@pytest.mark.parametrize("view", [View(norm="log"), View(stage="scores"), View(head=1), View(pooling="mean")])
def test_a_window_outlives_other_looks_and_stages_of_queries_and_keys(drive, view):
    driven = drive()
    driven.finish()
    driven.controller.set_window(Window(100, 200, 100, 200))
    driven.controller.set_viewport(PART)
    driven.controller.edit_view(view)
    driven.settle()
    assert driven.snapshot.window == Window(100, 200, 100, 200)
    assert driven.worker.requests[-1].viewport == PART


def test_a_window_does_not_outlive_its_source_or_a_stage_of_other_columns(drive):
    for change in (
        lambda driven: driven.controller.edit_spec(make_spec(RandomQK(length=401), num_heads=2)),
        lambda driven: driven.controller.edit_view(View(stage="queries")),
    ):
        driven = drive()
        driven.finish()
        driven.controller.set_window(Window(100, 200, 100, 200))
        driven.controller.set_viewport(PART)
        driven.settle()
        change(driven)
        driven.settle()
        assert driven.snapshot.window is None
        assert (driven.worker.requests[-1].viewport.rows, driven.worker.requests[-1].viewport.cols) == (None, None)


def test_the_window_of_a_stage_of_values_outlives_a_mask(drive):
    spec = make_spec(RandomEmbeddings(length=400), num_heads=2)
    driven = drive()
    driven.controller.edit_spec(spec)
    driven.controller.edit_view(View(stage="values"))
    driven.settle()
    driven.controller.set_window(Window(100, 200, 0, 10))
    driven.controller.edit_spec(edited(spec, mask="none"))
    driven.settle()
    assert driven.snapshot.window == Window(100, 200, 0, 10)
    driven.controller.edit_spec(edited(spec, num_heads=4, d_out=512))
    driven.settle()
    assert driven.snapshot.window is None


def test_a_view_that_is_opened_brings_its_window(drive):
    driven = drive()
    driven.finish()
    view = View(stage="scores", rows=(10, 30), cols=(40, 80))
    driven.controller.open(SPEC, view)
    driven.settle()
    assert driven.snapshot.view == View(stage="scores")
    assert driven.snapshot.window == Window(10, 30, 40, 80)
    assert driven.snapshot.looked_at == view
    asked = driven.worker.requests[-1].viewport
    assert (asked.rows, asked.cols) == ((10, 30), (40, 80))
    driven.controller.open(SPEC, replace(view, rows=(0, 5), cols=None))  # the same picture: only the window moves
    assert driven.snapshot.window.bottom == 5
    driven.controller.open(SPEC, View(stage="scores"))
    assert driven.snapshot.window is None


def test_the_first_request_is_of_the_window_that_was_asked_for(drive):
    driven = drive(view=View(rows=(10, 30), cols=(40, 80)))
    asked = driven.worker.requests[0]
    assert (asked.viewport.rows, asked.viewport.cols) == ((10, 30), (40, 80))
    assert asked.view == View()


# ----------------------------------------------------------------------------------------------------- rows and probes


def test_the_selected_row_is_asked_for_before_the_pointers_cell(drive):
    driven = drive()
    driven.finish()
    driven.controller.select(Cell(7, 3))
    assert (driven.worker.probes[-1].row, driven.worker.probes[-1].whole_row) == (7, True)
    driven.controller.hover(Cell(9, 9))
    driven.controller.hover(Cell(9, 10))
    assert driven.worker.probes[-1].whole_row  # a pointer must not push the row out
    answer = ProbeAnswer(driven.generation, 7, 3, (0.1, 0.2), (CellClass.ORDINARY,) * 2)
    driven.send(answer)
    assert driven.worker.probes[-1].whole_row
    driven.send(row_of(7, 400, generation=driven.generation))
    assert (driven.worker.probes[-1].row, driven.worker.probes[-1].col) == (9, 10)
    driven.controller.hover(Cell(9, 11))
    assert (driven.worker.probes[-1].col, driven.worker.probes[-1].whole_row) == (11, False)
    assert driven.snapshot.row.row == 7
    count = len(driven.worker.probes)
    driven.controller.hover(None)
    driven.controller.select(Cell(7, 5))
    assert [(probe.col, probe.whole_row) for probe in driven.worker.probes[count:]] == [(3, False), (5, False)]


def test_another_head_asks_for_its_own_row(drive):
    driven = drive()
    driven.finish()
    driven.controller.select(Cell(7, 3))
    driven.send(row_of(7, 400, generation=driven.generation))
    driven.controller.edit_view(View(head=1))
    driven.settle()
    driven.finish()
    assert (driven.worker.probes[-1].head, driven.worker.probes[-1].whole_row) == (1, True)


def test_a_pointer_is_answered_while_a_row_is_late_and_the_row_is_asked_for_again(qtbot, drive):
    driven = drive()
    driven.finish()
    driven.controller.hover(Cell(9, 9))
    driven.controller.select(Cell(7, 3))
    driven.controller.hover(Cell(9, 10))
    qtbot.waitUntil(lambda: not driven.worker.probes[-1].whole_row)
    assert (driven.worker.probes[-1].row, driven.worker.probes[-1].col) == (9, 10)
    driven.send(ProbeAnswer(driven.generation, 9, 10, (0.1, 0.2), (CellClass.ORDINARY,) * 2))
    assert (driven.worker.probes[-1].row, driven.worker.probes[-1].whole_row) == (7, True)


def test_numbers_that_were_not_there_are_asked_for_again_when_more_has_come(drive):
    driven = drive()
    driven.finish()
    driven.controller.hover(Cell(9, 9))
    kinds = (CellClass.ORDINARY, None)
    driven.send(ProbeAnswer(driven.generation, 9, 9, (0.5, None), kinds))
    count = len(driven.worker.probes)
    driven.send(Progress(driven.generation, 1, 4, background=True))
    assert len(driven.worker.probes) == count + 1
    driven.send(ProbeAnswer(driven.generation, 9, 9, (0.5, 0.25), (CellClass.ORDINARY,) * 2))
    driven.send(Progress(driven.generation, 2, 4, background=True))
    assert len(driven.worker.probes) == count + 1


# ------------------------------------------------------------------------------------------------------------- showing


def test_what_a_view_asks_for_while_it_is_shown_is_shown_after(qtbot):
    worker, session = HeldWorker(), Session(SPEC, View())
    controller = Controller(session, worker)
    seen, depth = [], [0]

    def show(snapshot):
        depth[0] += 1
        assert depth[0] == 1
        seen.append(snapshot.show_numbers)
        if len(seen) == 1:
            controller.toggle_numbers()
        depth[0] -= 1

    controller.snapshot_changed.connect(show)
    controller.start()
    assert seen == [True, False]


def test_a_picture_of_which_the_views_ask_other_pixels_has_not_settled(drive):
    driven = drive()
    asked = []

    def ask_once(snapshot):
        if snapshot.picture is not None and not asked:
            asked.append(True)
            driven.controller.set_viewport(Viewport(pixels=(100, 100)))
            driven.controller._begin_waiting()

    driven.controller.snapshot_changed.connect(ask_once)
    driven.finish()
    assert driven.settled == []
    driven.finish()
    assert driven.settled == [True]


def test_work_behind_the_scenes_can_be_stopped(drive):
    driven = drive()
    driven.finish()
    driven.send(Progress(driven.generation, 1, 4, background=True))
    assert driven.snapshot.progress is not None
    assert not driven.snapshot.running
    driven.controller.cancel()
    assert driven.worker.cancelled == 1
    assert driven.snapshot.progress is None
