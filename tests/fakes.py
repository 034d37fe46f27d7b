"""Fakes gated by events: an engine that waits where it is told to, a backend with devices this machine lacks."""

import threading

import numpy as np
import torch

from attnviz.attention.devices import TorchBackend
from attnviz.frames import (
    Counts,
    DeviceInfo,
    Finished,
    Frame,
    Outline,
    ProbeAnswer,
    Progress,
    Scale,
    StageShape,
)


class GatedEngine:
    """Streams one frame a head; before each it waits for `gate` unless that is open. Records what it started."""

    budget_bytes = None

    def __init__(self, *, open_gate=True):
        self.gate = threading.Event()
        if open_gate:
            self.gate.set()
        self.reached = threading.Event()
        self.started = []
        self.threads = set()
        self.fail_with = None

    def devices(self):
        return (DeviceInfo("cpu", "CPU"),)

    def stream(self, request, cancelled):
        self.threads.add(threading.current_thread())
        self.started.append(request)
        n, heads = 3, request.spec.num_heads
        panels = tuple(f"head:{head}" for head in range(heads))
        yield Outline(
            request.generation, "weights", tuple("abc"), n, n, (), "fake", (StageShape("weights", (heads, n, n)),), (),
            panels, True, True, "cpu",
        )  # fmt: skip
        for head, panel in enumerate(panels):
            self.reached.set()
            assert self.gate.wait(20)
            if cancelled():
                return
            if self.fail_with is not None:
                raise self.fail_with
            values = np.full((n, n), request.generation, np.float32)
            yield Frame(
                request.generation, panel, "weights", head, (0, n), (0, n), 1, values, np.ones((n, n), np.uint8),
                np.zeros((n, n), np.uint32), Scale(0, 1), Counts(cells=9), np.ones(n),
            )  # fmt: skip
            yield Progress(request.generation, head + 1, heads)
        yield Finished(request.generation, 0.001, 100, 1000)

    def probe(self, probe):
        yield ProbeAnswer(probe.generation, probe.row, probe.col, (0.5,), ())

    def row_story(self, question):
        return None

    def close(self):
        self.closed = True


class TwoCudaDevices(TorchBackend):
    """Says that there are two CUDA devices, computes on the CPU, and runs out of memory at their n-th block."""

    def __init__(self, fails_at=None):
        self.fails_at = fails_at
        self.blocks = 0

    def devices(self):
        free = 4_000_000_000
        cuda = [DeviceInfo(f"cuda:{index}", f"Fake GPU {index}", 8_000_000_000, free) for index in range(2)]
        return (DeviceInfo("cpu", "CPU", free, free), *cuda)

    def torch_device(self, name):
        super().torch_device(name)
        return torch.device("cpu")

    def run(self, name, block):
        if name.startswith("cuda"):
            self.blocks += 1
            if self.blocks == self.fails_at:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return block()
