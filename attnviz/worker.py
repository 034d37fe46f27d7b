"""One scheduling thread, a mailbox and generations: what connects the window to the engine.

The thread is an ordinary `threading.Thread` that emits signals. It builds the engine inside itself, so that importing
this module loads no torch. Priorities: a new request first, then the newest probe, then jobs such as an export.
"""

from __future__ import annotations

import gc
import logging
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from attnviz.frames import (
    DeviceInfo,
    Failure,
    Finished,
    Frame,
    Message,
    Outline,
    Probe,
    ProbeAnswer,
    RowAnswer,
    RowQuestion,
    RowStory,
)
from attnviz.spec import Request

log = logging.getLogger(__name__)

Pause = Callable[[], bool]
"""Called by a job now and then: lets a request or a probe that waits go first; whether the job should end."""


class EngineLike(Protocol):
    """What the worker drives; `attnviz.engine.Engine`, or a fake in tests."""

    budget_bytes: int | None

    def devices(self) -> tuple[DeviceInfo, ...]: ...

    def stream(self, request: Request, cancelled: Callable[[], bool]) -> Generator[Message | None, None, None]: ...

    def probe(self, probe: Probe) -> Iterator[ProbeAnswer | RowAnswer]: ...

    def row_story(self, question: RowQuestion) -> RowStory | None: ...

    def close(self) -> None: ...


Job = Callable[[EngineLike, Pause], None]
"""Work such as an export: takes the engine and a pause, and reports by its own means."""


class Worker(QObject):
    """Runs requests on its own thread; the newest wins. Public methods are for the GUI thread and never block.

    ``messages_pending`` is emitted when the mailbox was empty and no longer is, and when a picture is finished: `take`
    empties it. ``devices_known``
    carries a tuple of `DeviceInfo`, once, when the engine stands.
    """

    messages_pending = Signal()
    devices_known = Signal(object)

    def __init__(self, make_engine: Callable[[], EngineLike], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._make_engine = make_engine
        self._condition = threading.Condition()
        self._request: Request | None = None
        self._probe: Probe | None = None
        self._row_question: RowQuestion | None = None
        self._jobs: deque[Job] = deque()
        self._box: OrderedDict[str, Message] = OrderedDict()
        self._wanted = 0  # the generation that may run; any other is cancelled
        self._closing = False
        self._computing = self._idle = False
        self._budget_bytes: int | None = None
        self._thread = threading.Thread(target=self._run, name="attnviz-worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Cancel what runs and compute this instead; what the mailbox still held is dropped."""
        with self._condition:
            self._request = request
            self._probe = self._row_question = None
            self._wanted = request.generation
            self._box.clear()
            self._condition.notify()

    def cancel(self) -> None:
        """Stop what runs at its next cancellation point and start nothing else."""
        with self._condition:
            self._request = None
            self._wanted = -1

    def set_budget(self, budget_bytes: int | None) -> None:
        """Bytes that computations may take from the next request on; None is a quarter of what is free."""
        with self._condition:
            self._budget_bytes = budget_bytes

    def probe(self, probe: Probe) -> None:
        """Ask for exact numbers; only the newest question is answered, between two panels at the latest."""
        with self._condition:
            self._probe = probe
            self._condition.notify()

    def ask_row(self, question: RowQuestion) -> None:
        """Ask for every stage of a row; only the newest question is answered, after a probe."""
        with self._condition:
            self._row_question = question
            self._condition.notify()

    def is_busy(self) -> bool:
        """Whether a picture is being computed or waits to be. Thread: any."""
        return self._computing or self._request is not None

    def is_idle(self) -> bool:
        """Whether nothing is under way, nothing waits, and all that was sent has been taken. Thread: any."""
        with self._condition:
            waits = self._request or self._probe or self._row_question or self._jobs or self._box
            return not waits and (self._idle or not self._thread.is_alive())

    def run_job(self, job: Job) -> None:
        """Run ``job(engine, pause)`` on the worker's thread when nothing is being computed."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify()

    def drop_job(self, job: Job) -> bool:
        """Take back a job that waits; whether it had not begun, and now never will."""
        with self._condition:
            waited = job in self._jobs
            if waited:
                self._jobs.remove(job)
        return waited

    def is_finished_pending(self) -> bool:
        """Whether the end of a picture waits in the mailbox."""
        with self._condition:
            return "Finished" in self._box

    def take(self) -> list[Message]:
        """Empty the mailbox: messages in order, of each panel the newest frame only."""
        with self._condition:
            messages = list(self._box.values())
            self._box.clear()
        return messages

    def close(self, timeout: float = 30.0) -> bool:
        """Cancel everything and join the thread. Returns whether it ended in time."""
        with self._condition:
            self._closing = True
            self._request = self._probe = self._row_question = None
            self._wanted = -1
            self._jobs.clear()
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    # ------------------------------------------------------------------------------------------ on the worker thread

    def _run(self) -> None:
        try:
            engine = self._make_engine()
            gc.freeze()  # torch's modules are for ever: a full collection would go through them, a tenth of a second
            self.devices_known.emit(engine.devices())
        except Exception as error:
            self._post_failure(self._next_generation(), error)
            return
        try:
            self._serve(engine)
        finally:
            engine.close()

    def _serve(self, engine: EngineLike) -> None:
        while True:
            with self._condition:
                while not (self._closing or self._request or self._probe or self._row_question or self._jobs):
                    self._idle = True
                    self._condition.wait()
                self._idle = False
                if self._closing:
                    return
                request, self._request = self._request, None
                job = self._jobs.popleft() if self._jobs and request is None and self._probe is None else None
            if request is not None:
                self._compute(engine, request)
            self._answer_probe(engine)
            self._answer_row(engine)
            if job is not None:
                self._run_job(engine, job)

    def _compute(self, engine: EngineLike, request: Request) -> None:
        def cancelled() -> bool:
            return self._wanted != request.generation

        self._computing = True
        try:
            engine.budget_bytes = self._budget_bytes
            stream = engine.stream(request, cancelled)
            with closing(stream):
                finished = False
                for message in stream:
                    if cancelled():
                        return
                    if message is not None:
                        self._post(message)
                        finished = finished or isinstance(message, Finished)
                    self._answer_probe(engine)
                    if finished:  # what goes on behind an exact picture keeps nobody waiting
                        self._computing = False
                        self._answer_row(engine)
                        self._run_waiting_job(engine)
        except Exception as error:
            self._post_failure(request.generation, error)
        finally:
            self._computing = False

    def _answer_probe(self, engine: EngineLike) -> None:
        with self._condition:
            probe = self._probe
        if probe is None:
            return
        answered = False
        try:
            for answer in engine.probe(probe):
                answered = True
                self._post(answer)
                if self._wanted != probe.generation or self._probe is not probe:
                    break  # a newer question, or a newer picture
        except Exception as error:
            log.exception("probe failed")
            self._post_failure(probe.generation, error, ends_picture=False)
        with self._condition:
            if self._probe is probe and (answered or self._request is None):
                self._probe = None

    def _answer_row(self, engine: EngineLike) -> None:
        with self._condition:
            question, self._row_question = self._row_question, None
        if question is None:
            return
        try:
            story = engine.row_story(question)
        except Exception as error:
            log.exception("a row's story failed")
            self._post_failure(question.generation, error, ends_picture=False)
        else:
            if story is not None:
                self._post(story)

    def _run_waiting_job(self, engine: EngineLike) -> None:
        with self._condition:
            job = self._jobs.popleft() if self._jobs else None
        if job is not None:
            self._run_job(engine, job)

    def _run_job(self, engine: EngineLike, job: Job) -> None:
        def pause() -> bool:
            if threading.current_thread() is self._thread:  # it may be asked on an engine's threads too
                with self._condition:
                    request, self._request = self._request, None
                if request is not None:
                    self._compute(engine, request)
                self._answer_probe(engine)
            return self._closing

        try:
            job(engine, pause)
        except Exception as error:
            log.exception("a job failed")
            self._post_failure(self._wanted, error, ends_picture=False)

    def _next_generation(self) -> int:
        with self._condition:
            return self._wanted

    def _post(self, message: Message) -> None:
        key = f"frame:{message.panel}" if isinstance(message, Frame) else type(message).__name__
        if isinstance(message, Failure) and not message.ends_picture:
            key = "Failure beside"  # which must not take the place of one that ends the picture
        with self._condition:
            if message.generation != self._wanted:
                return
            was_empty = not self._box
            if isinstance(message, Outline):
                self._box.clear()
            self._box[key] = message
        if was_empty or isinstance(message, Finished):
            self.messages_pending.emit()

    def _post_failure(self, generation: int, error: Exception, *, ends_picture: bool = True) -> None:
        sentence = getattr(error, "sentence", None)
        details = "".join(traceback.format_exception(error))
        if sentence is None:
            log.error("the worker met a bug\n%s", details)
            sentence = f"Something went wrong inside attnviz: {type(error).__name__}: {error}"
        advice = getattr(error, "advice", "The program goes on; change something and it computes again.")
        device_failed = bool(getattr(error, "device_failed", False))
        details = getattr(error, "details", "") or details
        self._post(Failure(generation, sentence, advice, details, device_failed, ends_picture=ends_picture))
