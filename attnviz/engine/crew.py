"""A crew of compute threads for one engine: many short jobs, results as they come, and a stop within a tile."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

import torch

from attnviz.attention.tiles import Workspace

Job = Callable[[Workspace, Callable[[], bool]], object]
"""Work of a few milliseconds: takes its thread's buffers and a question whether to stop."""

TICK: Final = 0.004
"""Seconds after which the driver is woken though nothing has come, so that it can answer a probe."""
_SWITCH: Final = 0.0005
"""Seconds after which a thread hands Python on to one that waits: it needs less than that between two tiles."""
_CALM: Final = 0.4
"""Seconds without a new request after which nobody is thought to be interacting."""

T = TypeVar("T")


class CrewClosed(RuntimeError):  # noqa: N818 (the state it is in)
    """Jobs were given to a crew that was closed, or it was closed while they were under way."""


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keep the calling thread to one torch thread while a crew computes.

    Several would wait for each other behind the crew's: a picture that takes a millisecond then takes a second.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Run(Generic[T]):
    """One list of jobs under way."""

    def __init__(self, jobs: Iterable[T]) -> None:
        self.jobs = iter(jobs)
        self.lock = threading.Lock()
        self.results: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.stopped = False
        self.spent = False
        self.began = time.monotonic()
        self.active = 0

    def next(self) -> T | None:
        with self.lock:
            job = None if self.stopped else next(self.jobs, None)
            self.active += job is not None
            self.spent = job is None
        return job


class Crew:
    """Threads with one torch thread each; ``spare`` of them rest while someone interacts.

    Two threads with a torch thread each do more tiles a second than one thread with two.
    """

    def __init__(self, size: int, spare: int = 0) -> None:
        self._size, self._spare = max(1, size), min(spare, max(size - 1, 0))
        self._condition = threading.Condition()
        self._runs: list[_Run[Job]] = []  # the newest last; older ones go on when it is done
        self._closing = False
        self._threads: list[threading.Thread] = []

    def map(self, jobs: Iterable[Job]) -> Generator[object, None, None]:
        """Results of ``jobs`` in the order in which they end; None every `TICK` seconds without one.

        An exception in a job is raised here, `CrewClosed` once the crew is closed. Abandoned, it stops the jobs and
        waits for those under way. A map that is begun while another is under way overtakes it.
        """
        run: _Run[Job] = _Run(jobs)
        with self._condition:
            if self._closing:
                raise CrewClosed
            self._runs.append(run)
            self._start()
            self._condition.notify_all()
        usual = sys.getswitchinterval()
        sys.setswitchinterval(min(usual, _SWITCH))
        try:
            while True:
                try:
                    result = run.results.get(timeout=TICK)
                except queue.Empty:
                    if self._closing:
                        raise CrewClosed from None
                    yield None
                    continue
                if result is _ENDED:
                    if run.stopped:  # its last jobs were not done
                        raise CrewClosed
                    return
                if isinstance(result, BaseException):
                    raise result
                yield result
        finally:
            sys.setswitchinterval(usual)
            self._stop(run)

    def close(self) -> None:
        """Stop and join every thread, for good; maps under way raise `CrewClosed` where they are taken on."""
        with self._condition:
            self._closing = True
            for run in self._runs:
                run.stopped = True
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _start(self) -> None:
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._work, args=(place,), name=f"attnviz-crew-{place}", daemon=True)
                for place in range(self._size)
            ]
            for thread in self._threads:
                thread.start()

    def _stop(self, run: _Run[Job]) -> None:
        with run.lock:
            run.stopped = True
        with self._condition:
            if run in self._runs:
                self._runs.remove(run)
            while run.active:
                self._condition.wait()

    # -------------------------------------------------------------------------------------------- on a crew's thread

    def _work(self, place: int) -> None:
        torch.set_num_threads(1)
        space = Workspace()
        with torch.inference_mode():
            while True:
                run = self._next_run(place)
                if run is None:
                    return
                self._do(run, space)

    def _next_run(self, place: int) -> _Run[Job] | None:
        """The present run, once this thread may take part in it; None when the crew closes."""
        with self._condition:
            while not self._closing:
                run = self._newest()
                if run is not None:
                    rest = run.began + _CALM - time.monotonic() if place >= self._size - self._spare else 0.0
                    if rest <= 0:
                        return run
                    self._condition.wait(rest)
                else:
                    self._condition.wait()
        return None

    def _do(self, run: _Run[Job], space: Workspace) -> None:
        while run is self._newest() and (job := run.next()) is not None:
            try:
                result: object = job(space, lambda: run.stopped)
            except BaseException as error:
                result = error
            run.results.put(result)
            with run.lock:
                run.active -= 1
        with self._condition:
            if run in self._runs and run.spent and not run.active:
                self._runs.remove(run)
                run.results.put(_ENDED)
            self._condition.notify_all()

    def _newest(self) -> _Run[Job] | None:
        """The map begun last of which jobs are left; one whose last jobs are under way has none to give."""
        return next((run for run in reversed(self._runs) if not (run.stopped or run.spent)), None)


_ENDED: Final = object()
