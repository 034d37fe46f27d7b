import threading

import pytest
from fakes import GatedEngine

from attnviz.controller import Controller
from attnviz.frames import Failure, Finished, Frame, Outline, Probe, ProbeAnswer
from attnviz.session import Session
from attnviz.spec import Request, View, Viewport, edited, make_spec
from attnviz.worker import Worker

SPEC = make_spec()


def request(generation, spec=SPEC):
    return Request(spec=spec, view=View(), viewport=Viewport(), generation=generation)


@pytest.fixture
def engine():
    return GatedEngine()


@pytest.fixture
def worker(engine, qapp):
    worker = Worker(lambda: engine)
    worker.start()
    yield worker
    engine.gate.set()
    assert worker.close()


def until_finished(qtbot, worker, generation, seen):
    def finished():
        seen.extend(worker.take())
        assert any(isinstance(m, Finished) and m.generation == generation for m in seen)

    qtbot.waitUntil(finished)


def test_messages_come_in_order_from_a_thread_of_its_own(qtbot, worker, engine):
    seen = []
    worker.submit(request(1))
    until_finished(qtbot, worker, 1, seen)
    assert isinstance(seen[0], Outline)
    assert [m.panel for m in seen if isinstance(m, Frame)] == ["head:0", "head:1"]
    assert engine.threads.isdisjoint({threading.main_thread()})


def test_the_newest_request_wins_and_the_mailbox_holds_no_other(qtbot, worker, engine):
    engine.gate.clear()
    worker.submit(request(1))
    assert engine.reached.wait(20)
    for generation in range(2, 50):
        worker.submit(request(generation))
    engine.gate.set()
    seen = []
    until_finished(qtbot, worker, 49, seen)
    assert {m.generation for m in seen} <= {1, 49}
    assert [r.generation for r in engine.started] == [1, 49]
    assert not [m for m in seen if isinstance(m, Frame) and m.generation != 49]


def test_the_mailbox_keeps_the_newest_frame_of_a_panel_and_signals_its_first_message_and_the_end(qtbot, worker):
    signals = []
    worker.messages_pending.connect(lambda: signals.append(1))
    worker.submit(request(1))
    done = threading.Event()
    worker.run_job(lambda *_: done.set())  # runs after the request
    assert done.wait(20)
    messages = worker.take()
    assert len([m for m in messages if isinstance(m, Frame)]) == 2
    qtbot.waitUntil(lambda: len(signals) == 2)


def test_cancel_stops_and_the_next_request_runs(qtbot, worker, engine):
    engine.gate.clear()
    worker.submit(request(1))
    assert engine.reached.wait(20)
    worker.cancel()
    engine.gate.set()
    seen = []
    worker.submit(request(2))
    until_finished(qtbot, worker, 2, seen)
    assert not [m for m in seen if m.generation == 1 and isinstance(m, Frame | Finished)]


def test_an_error_becomes_a_failure_and_the_thread_goes_on(qtbot, worker, engine):
    engine.fail_with = KeyError("bug")
    worker.submit(request(1))
    seen = []

    def failed():
        seen.extend(worker.take())
        assert any(isinstance(m, Failure) for m in seen)

    qtbot.waitUntil(failed)
    assert "KeyError" in next(m for m in seen if isinstance(m, Failure)).details
    engine.fail_with = None
    worker.submit(request(2))
    until_finished(qtbot, worker, 2, seen)


def test_a_probe_is_answered_while_idle(qtbot, worker):
    seen = []
    worker.submit(request(1))
    until_finished(qtbot, worker, 1, seen)
    worker.probe(Probe(1, 2, 1))

    def answered():
        seen.extend(worker.take())
        assert any(isinstance(m, ProbeAnswer) and (m.row, m.col) == (2, 1) for m in seen)

    qtbot.waitUntil(answered)


def test_an_engine_that_cannot_be_made_is_told(qtbot, qapp):
    def broken():
        raise ImportError("no torch here")

    worker = Worker(broken)
    worker.submit(request(1))
    worker.start()
    seen = []

    def failed():
        seen.extend(worker.take())
        assert any(isinstance(m, Failure) and "no torch here" in m.sentence for m in seen)

    qtbot.waitUntil(failed)
    assert worker.close()


def test_closing_while_computing_leaves_no_thread(qapp):
    engine = GatedEngine(open_gate=False)
    worker = Worker(lambda: engine)
    worker.start()
    worker.submit(request(1))
    assert engine.reached.wait(20)
    engine.gate.set()
    assert worker.close()
    assert not [t for t in threading.enumerate() if t.name == "attnviz-worker"]


# -------------------------------------------------------------------------------------------------------- controller


@pytest.fixture
def controller(worker):
    return Controller(Session(SPEC, View()), worker)


def snapshots(controller):
    taken = []
    controller.snapshot_changed.connect(taken.append)
    return taken


def test_the_controller_shows_what_was_asked_for_last(qtbot, controller, engine):
    taken = snapshots(controller)
    with qtbot.waitSignal(controller.settled):
        controller.start()
    for heads in (1, 2, 3, 4, 5):
        controller.edit_spec(edited(SPEC, num_heads=heads))
    qtbot.waitUntil(lambda: taken[-1].spec.num_heads == 5 and not taken[-1].running)
    last = engine.started[-1]
    assert last.spec.num_heads == 5
    assert {f.generation for f in taken[-1].picture.heads} == {last.generation}
    assert len(engine.started) < 6  # the throttle let the newest through


def test_an_equal_edit_asks_for_nothing(qtbot, controller, engine):
    with qtbot.waitSignal(controller.settled):
        controller.start()
    controller.edit_spec(make_spec())
    controller.edit_view(View())
    assert len(engine.started) == 1
    assert controller.wanted() == (SPEC, View())


def test_a_stage_that_the_new_spec_lacks_falls_back_to_weights(qtbot, controller):
    with qtbot.waitSignal(controller.settled):
        controller.start()
    controller.edit_view(View(stage="masked_scores", head=1))
    controller.edit_spec(edited(SPEC, mask="none", num_heads=1))
    assert controller.wanted()[1] == View()


def test_a_view_that_cannot_be_is_refused_beside_its_control(qtbot, controller):
    taken = snapshots(controller)
    controller.edit_view(View(stage="row_sums"))
    assert taken[-1].problem.field == "stage"
    assert not taken[-1].running


def test_a_job_lets_a_request_go_first_and_then_goes_on(qtbot, worker, engine):
    steps, asked = [], threading.Event()

    def job(given, pause):
        steps.append(given is engine)
        assert asked.wait(20)
        steps.append(pause())  # computes the request in here
        steps.append(len(engine.started))

    worker.run_job(job)
    qtbot.waitUntil(lambda: bool(steps))
    worker.submit(request(1))
    asked.set()
    seen = []
    until_finished(qtbot, worker, 1, seen)
    qtbot.waitUntil(lambda: len(steps) == 3)
    assert steps == [True, False, 1]


def test_a_job_is_told_to_end_when_the_worker_closes(qtbot, engine, qapp):
    worker = Worker(lambda: engine)
    worker.start()
    began, ended = threading.Event(), []

    def job(_engine, pause):
        began.set()
        while not pause():
            pass
        ended.append(True)

    worker.run_job(job)
    assert began.wait(20)
    assert worker.close()
    assert ended == [True]
    assert engine.closed


def test_a_budget_holds_from_the_next_request_on(qtbot, worker, engine):
    worker.set_budget(123)
    seen = []
    worker.submit(request(1))
    until_finished(qtbot, worker, 1, seen)
    assert engine.budget_bytes == 123
    worker.set_budget(None)
    worker.submit(request(2))
    until_finished(qtbot, worker, 2, seen)
    assert engine.budget_bytes is None
