"""A question or a job that fails beside a picture: it is said, and the picture goes on."""

import pytest
from fakes import GatedEngine

from attnviz.frames import Failure, Finished, Frame, Probe, RowQuestion
from attnviz.session import Session
from attnviz.spec import Request, View, Viewport, make_spec
from attnviz.worker import Worker

SPEC = make_spec()


class Asked(GatedEngine):
    """Answers no question, but with an error."""

    def probe(self, probe):
        raise ValueError("no such number")

    def row_story(self, question):
        raise ValueError("no such row")


@pytest.fixture
def engine():
    return Asked(open_gate=False)


@pytest.fixture
def worker(engine, qapp):
    worker = Worker(lambda: engine)
    worker.start()
    yield worker
    engine.gate.set()
    assert worker.close()


def ask_for_number(worker):
    worker.probe(Probe(1, 0, 0))


def ask_for_row(worker):
    worker.ask_row(RowQuestion(1, SPEC, 0, 0))


def run_job(worker):
    def job(_engine, _pause):
        raise ValueError("no such file")

    worker.run_job(job)


@pytest.mark.parametrize("ask", [ask_for_number, ask_for_row, run_job])
def test_what_fails_beside_a_picture_does_not_end_it(qtbot, worker, engine, ask):
    session = Session(SPEC, View())
    generation = session.begin(SPEC, View())
    worker.submit(Request(spec=SPEC, view=View(), viewport=Viewport(), generation=generation))
    assert engine.reached.wait(20)
    ask(worker)
    engine.gate.set()
    seen = []

    def told():
        seen.extend(message for message in worker.take() if session.accept(message))
        kinds = {type(message) for message in seen}
        assert {Failure, Finished} <= kinds

    qtbot.waitUntil(told)
    assert not next(message for message in seen if isinstance(message, Failure)).ends_picture
    assert len({message.panel for message in seen if isinstance(message, Frame)}) == SPEC.num_heads
    assert session.snapshot().picture.complete
    assert not session.snapshot().running
    assert session.snapshot().failure.sentence.endswith(("no such number", "no such row", "no such file"))


def test_a_failed_question_leaves_the_picture_running_until_it_ends():
    session = Session(SPEC, View())
    generation = session.begin(SPEC, View())
    session.accept(Failure(generation, "No number.", "", ends_picture=False))
    assert session.snapshot().running
    assert session.snapshot().failure.sentence == "No number."
    session.accept(Failure(generation, "No picture.", ""))
    assert not session.snapshot().running


def test_a_failed_question_takes_no_place_from_a_failed_picture(worker):
    worker._wanted = 3
    worker._post_failure(3, ValueError("the picture"))
    worker._post_failure(3, ValueError("a question"), ends_picture=False)
    assert [(message.ends_picture, message.sentence[-8:]) for message in worker.take()] == [
        (True, " picture"), (False, "question"),
    ]  # fmt: skip
