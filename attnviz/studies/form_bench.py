"""A process of its own in which forms are measured, one pass at a time, and what runs in it.

How the allocator treats freed memory is settled when a process begins: most of a textbook form's time can be page
faults on maps that it gives back and takes again. The process measures when it is asked, and ends with its caller.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

import msgspec
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from attnviz.attention.devices import TorchBackend
from attnviz.engine.errors import ComputationError
from attnviz.questions.forms import FormName, FormsQuestion

Quantity = Literal["memory", "time"]
"""*memory*: bytes that a pass allocates at most. *time*: seconds of a pass."""

_KEPT: Final = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
"""What has glibc's allocator keep what it once had."""
_POLL_S: Final = 0.05
_MOST_TO_SETTLE, _FEW_PAGES = 12, 64
_SHORTEST_S: Final = 0.002
"""Passes are repeated until they take as long: a clock's tick must not be seen."""


class _Wanted(msgspec.Struct, frozen=True):
    what: Quantity
    form: FormName


class _Measured(msgspec.Struct, frozen=True):
    value: float = 0.0
    error: str = ""


def can_keep_memory() -> bool:
    """Whether this system's allocator can be asked to keep a CPU's memory."""
    return platform.libc_ver()[0] == "glibc"


# ------------------------------------------------------------------------------------------------- who asks for numbers


class FormBench:
    """Begins the process on entry and ends it on exit."""

    def __init__(self, question: FormsQuestion, threads: int, cancelled: Callable[[], bool]) -> None:
        self._question, self._threads, self._cancelled = question, threads, cancelled
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        path = os.pathsep.join([*filter(None, sys.path), os.environ.get("PYTHONPATH", "")])
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        environment |= {"PYTHONPATH": path} | (_KEPT if self._question.memory == "kept" else {})
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", __name__, str(self._threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            env=environment, creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, name="attnviz-forms", daemon=True)
        self._reader.start()
        self._say(self._question)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was said last has not been read
                    pipe.close()

    def measure(self, what: Quantity, form: FormName) -> float | None:
        """The number, None once called off. Raises `ComputationError` where the process cannot give it."""
        self._say(_Wanted(what, form))
        while not self._cancelled():
            try:
                line = self._lines.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if not line:
                raise ComputationError(
                    f"The process that measures the form {form} ended (status {self._process.wait()}).",
                    "Take fewer tokens or heads.",
                )
            measured = msgspec.json.decode(line, type=_Measured)
            if measured.error:
                raise ComputationError(f"The form {form} could not be measured: {measured.error}", "")
            return measured.value
        return None

    def _say(self, what: msgspec.Struct) -> None:
        assert self._process.stdin is not None  # noqa: S101 (a pipe was asked for)
        with contextlib.suppress(OSError):  # it has ended: the reader says so
            self._process.stdin.write(msgspec.json.encode(what).decode() + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 (a pipe was asked for)
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


# ---------------------------------------------------------------------------------------------------- who measures them


def main() -> None:
    """Measure what each line of standard input wants, until there is none."""
    from attnviz.studies.forms import made_forms  # noqa: PLC0415 (that asks for this process)

    torch.set_num_threads(int(sys.argv[1]))
    question = msgspec.json.decode(sys.stdin.readline(), type=FormsQuestion)
    if question.memory == "kept" and question.device == "cpu":
        torch.ones(2 * question.needed_bytes, dtype=torch.uint8)  # pages that are there from now on
    forms: dict[FormName, _Measurer] = {}
    makers, x = made_forms(question)
    for line in sys.stdin:
        wanted = msgspec.json.decode(line, type=_Wanted)
        try:
            if wanted.form not in forms:
                forms[wanted.form] = _Measurer(question, makers[wanted.form](), x)
            one = forms[wanted.form]
            measured = _Measured(one.peak_bytes() if wanted.what == "memory" else one.seconds())
        except (RuntimeError, MemoryError) as error:
            measured = _Measured(error=(str(error).strip().splitlines() or [type(error).__name__])[0])
        sys.stdout.write(msgspec.json.encode(measured).decode() + "\n")
        sys.stdout.flush()


class _Measurer:
    """One form with its inputs. The first pass is for its caches, and says how many are timed together."""

    def __init__(self, question: FormsQuestion, form: nn.Module, x: Tensor) -> None:
        self._device, self._fresh = question.device, question.memory == "fresh"
        self._form, self._x = form, x
        self._backend = TorchBackend()
        self._once()
        self._passes = 1 if self._device != "cpu" else max(1, math.ceil(_SHORTEST_S / self._once()))

    def _settle(self) -> None:
        """Pass until a pass takes no new pages: whatever else took memory has moved where the next blocks go."""
        import resource  # noqa: PLC0415 (where memory is kept, there is glibc, and with it this)

        for _ in range(_MOST_TO_SETTLE):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            self._once()
            if resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < _FEW_PAGES:
                return

    def _once(self) -> float:
        """Seconds of a pass, from tensors that are there to the output."""
        if self._fresh and self._device.startswith("cuda"):
            torch.cuda.empty_cache()
        elif self._fresh and self._device == "mps":
            torch.mps.empty_cache()
        begun = time.perf_counter()
        self._pass()
        return time.perf_counter() - begun

    def _pass(self) -> None:
        with torch.inference_mode():
            self._backend.run(self._device, lambda: self._form(self._x))

    def seconds(self) -> float:
        """Mean seconds of a few passes."""
        if not self._fresh and self._device == "cpu":
            self._settle()
        return sum(self._once() for _ in range(self._passes)) / self._passes

    def peak_bytes(self) -> float:
        """The most that a pass has allocated at once, in bytes, its output included; −1 where it cannot be told.

        On the CPU torch's allocator tells each block to the profiler, what its fused operations take within included.
        """
        if self._device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats(self._device)
            before = torch.cuda.memory_allocated(self._device)
            self._pass()
            return torch.cuda.max_memory_allocated(self._device) - before
        if self._device != "cpu":
            return -1
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            self._pass()
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "trace.json")
            profiler.export_chrome_trace(str(trace))
            told = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        blocks = sorted((event for event in told if event["name"] == "[memory]"), key=lambda event: event["ts"])
        held = most = 0
        for block in blocks:
            held += block["args"]["Bytes"]  # negative where one is given back
            most = max(most, held)
        return most


if __name__ == "__main__":
    main()
