"""The crew: results, ticks, exceptions, stopping, and a map that overtakes another."""

import threading

import pytest

from attnviz.engine.crew import Crew


@pytest.fixture(params=[1, 2, 3])
def crew(request):
    crew = Crew(request.param)
    yield crew
    crew.close()


def counted(jobs):
    return sorted(result for result in jobs if result is not None)


def test_every_result_comes_once(crew):
    for _ in range(20):
        assert counted(crew.map([lambda _space, _stopped, n=n: n for n in range(1, 40)])) == [*range(1, 40)]
    assert counted(crew.map([])) == []


def test_the_driver_is_woken_while_nothing_comes(crew):
    gate = threading.Event()
    results = crew.map([lambda *_: gate.wait(20) and "done"])
    assert next(results) is None
    assert next(results) is None
    gate.set()
    assert [result for result in results if result is not None] == ["done"]


def test_an_exception_reaches_the_driver_and_the_crew_goes_on(crew):
    def broken(*_):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(crew.map([broken]))
    assert counted(crew.map([lambda *_: 1])) == [1]


def test_abandoned_jobs_are_told_to_stop_and_waited_for(crew):
    began, ended = threading.Event(), []

    def patient(_space, stopped):
        began.set()
        while not stopped():
            pass
        ended.append(True)

    results = crew.map([patient] * 50)
    next(results)
    assert began.wait(20)
    results.close()
    assert 1 <= len(ended) <= 3  # those under way; the others never began


def test_a_map_begun_later_overtakes_and_the_older_goes_on(crew):
    order = []
    gate, busy = threading.Event(), threading.Semaphore(0)

    def first(_space, _stopped):
        busy.release()
        assert gate.wait(20)
        order.append("old")
        return "old"

    old = crew.map([first] * 12)
    next(old)
    for _ in range(crew._size):  # a thread that is only now begun would take a new job at once
        assert busy.acquire(timeout=20)
    new = crew.map([lambda *_: order.append("new") or "new" for _ in range(3)])
    assert next(new, "ended") is None  # its turn comes with the jobs under way
    gate.set()
    assert counted(new) == ["new"] * 3
    assert order.index("new") <= 3
    assert counted(old) == ["old"] * 12


def test_threads_keep_one_torch_thread_and_end_with_the_crew():
    import torch

    crew = Crew(2)
    assert counted(crew.map([lambda *_: torch.get_num_threads()] * 8)) == [1] * 8
    crew.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("attnviz-crew")]


def test_spare_threads_rest_while_someone_interacts(monkeypatch):
    monkeypatch.setattr("attnviz.engine.crew._CALM", 3600)
    crew = Crew(4, spare=3)
    names = set(crew.map([lambda *_: threading.current_thread().name for _ in range(40)])) - {None}
    crew.close()
    assert names == {"attnviz-crew-0"}
