import threading
from dataclasses import dataclass

import pytest

from attnviz.questions import Answer, Question
from attnviz.spec import SpecError
from attnviz.study_lane import StudyLane


class Count(Question, frozen=True, tag="count"):
    upto: int = 3


class Other(Question, frozen=True, tag="other"):
    upto: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Counted(Answer):
    upto: int


class Gated:
    """A study that waits before each answer until it is let on."""

    def __init__(self):
        self.let_on, self.reached, self.threads, self.ended = threading.Semaphore(0), threading.Event(), set(), 0

    def __call__(self, question, cancelled):
        self.threads.add(threading.current_thread())
        try:
            for done in range(1, question.upto + 1):
                self.reached.set()
                assert self.let_on.acquire(timeout=20)
                if cancelled():
                    return
                yield Counted(done, question.upto, question.upto)
        finally:
            self.ended += 1


class Heard:
    def __init__(self, lane):
        self.answers, self.failures, self.ends = [], [], []
        lane.answered.connect(lambda name, answer: self.answers.append((name, answer.done, answer.upto)))
        lane.failed.connect(lambda name, sentence: self.failures.append((name, sentence)))
        lane.ended.connect(self.ends.append)


@pytest.fixture
def lane(qtbot):
    lanes = []

    def make(study, is_drawing=lambda: False):
        lanes.append(StudyLane(is_drawing, lambda: study))
        return lanes[-1], Heard(lanes[-1])

    yield make
    for one in lanes:
        assert one.close()


def test_answers_come_one_by_one_on_the_guis_thread(qtbot, lane):
    study = Gated()
    one, heard = lane(study)
    one.ask(Count())
    for done in (1, 2, 3):
        study.let_on.release()
        qtbot.waitUntil(lambda done=done: heard.answers[-1:] == [("count", done, 3)])
    qtbot.waitUntil(lambda: heard.ends == ["count"])
    assert not one.is_running("count")
    assert threading.main_thread() not in study.threads


def test_a_new_question_of_the_same_study_replaces_the_old_one(qtbot, lane):
    study = Gated()
    one, heard = lane(study)
    one.ask(Count(upto=5))
    assert study.reached.wait(20)
    one.ask(Count(upto=2))
    study.let_on.release(5)
    qtbot.waitUntil(lambda: heard.ends == ["count"])
    assert {upto for _, _, upto in heard.answers} == {2}  # nothing of the first is heard once the second was asked


def test_studies_of_other_names_wait_their_turn(qtbot, lane):
    study = Gated()
    one, heard = lane(study)
    one.ask(Count(upto=2))
    one.ask(Other())
    assert one.is_running("other")
    study.let_on.release(3)
    qtbot.waitUntil(lambda: heard.ends == ["count", "other"])


def test_a_cancelled_study_ends_and_says_nothing_more(qtbot, lane):
    study = Gated()
    one, heard = lane(study)
    one.ask(Count())
    assert study.reached.wait(20)
    one.cancel("count")
    assert not one.is_running("count")
    study.let_on.release(3)
    qtbot.waitUntil(lambda: study.ended == 1)
    one.ask(Other())
    study.let_on.release(1)
    qtbot.waitUntil(lambda: "other" in heard.ends)
    assert [name for name, *_ in heard.answers] == ["other"]


def test_words_for_a_wrong_question_and_for_a_bug(qtbot, lane, caplog):
    def study(question, cancelled):
        if question.name == "count":
            raise SpecError("upto", "upto is 3: give less")
        raise ZeroDivisionError("oh")
        yield

    one, heard = lane(study)
    one.ask(Count())
    one.ask(Other())
    qtbot.waitUntil(lambda: heard.ends == ["count", "other"])
    assert heard.failures[0] == ("count", "upto is 3: give less")
    assert "ZeroDivisionError: oh" in heard.failures[1][1]
    assert "a study failed" in caplog.text


def test_it_gives_way_to_drawing(qtbot, lane):
    drawing, study = threading.Event(), Gated()
    drawing.set()
    one, heard = lane(study, drawing.is_set)
    one.ask(Count(upto=2))
    study.let_on.release(2)
    qtbot.waitUntil(lambda: heard.answers == [("count", 1, 2)])
    assert study.let_on.acquire(blocking=False)  # the second has not begun
    study.let_on.release()
    drawing.clear()
    qtbot.waitUntil(lambda: heard.ends == ["count"])


def test_closing_ends_a_study_under_way(qtbot, lane):
    study = Gated()
    one, heard = lane(study)
    one.ask(Count(upto=1000))
    study.let_on.release(2000)
    qtbot.waitUntil(lambda: bool(heard.answers))
    assert one.close()
    assert study.ended == 1


def test_a_question_can_be_asked_again_after_it_was_called_off(qtbot, lane):
    study, question = Gated(), Count(upto=1)
    one, heard = lane(study)
    one.ask(question)
    assert study.reached.wait(20)
    one.cancel("count")
    one.ask(question)
    study.let_on.release(2)
    qtbot.waitUntil(lambda: heard.ends == ["count"])
    assert heard.answers == [("count", 1, 1)]
