"""The program's real window off screen, and how long an edit takes in it."""

import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from PySide6.QtCore import QEventLoop, QSettings, QTimer

from attnviz import app
from attnviz.engine import Engine
from attnviz.spec import RandomEmbeddings, View, edited, make_spec
from tests.benchmarks.arms import CORES, compared, interleaved
from tests.benchmarks.painting import application


@contextmanager
def window_on(spec, make_engine=app.make_engine, size=(1920, 1080), view=None):
    """The program's window on ``spec``, in Explore, shown and computing; closed and its worker joined in the end."""
    with tempfile.TemporaryDirectory() as folder:
        held = application()
        settings = QSettings(str(Path(folder, "benchmark.ini")), QSettings.Format.IniFormat)
        program = app.build_window((spec, view or View()), settings, make_engine)
        program.application = held  # must outlive the window
        program.window.use_layout("explore")
        program.window.resize(*size)
        program.window.show()
        try:
            yield program
        finally:
            program.window.close()
            rest(0.05)


def one_thread():
    """An engine that computes on one thread for as long as a picture of `edit` takes: the crew's others rest."""
    torch.set_num_threads(1)
    return Engine(spare_cores=CORES - 1)


def rest(seconds):
    """Run the event loop for a while."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


def wait_until(true, program, timeout=60.0):
    """Run the event loop until ``true()`` after a snapshot or a short while; returns whether it came in time."""
    loop, end = QEventLoop(), time.perf_counter() + timeout

    def look(*_):
        if true() or time.perf_counter() > end:
            loop.quit()

    poll = QTimer(interval=20)
    poll.timeout.connect(look)
    poll.start()
    program.controller.snapshot_changed.connect(look)
    if not true():
        loop.exec()
    program.controller.snapshot_changed.disconnect(look)
    poll.stop()
    return bool(true())


def stands(program):
    """Whether the picture last asked for is exact and has come whole."""
    picture = program.session.snapshot().picture
    return (
        picture is not None and picture.complete and (picture.spec, picture.view) == program.controller.wanted()
        and {frame.generation for frame in picture.heads} == {program.session.generation}
    )  # fmt: skip


def frames_there(program):
    """How many heads have a frame."""
    picture = program.session.snapshot().picture
    return 0 if picture is None else len(picture.heads)


def settle(program):
    """Run the event loop until the picture last asked for is exact, then paint it."""
    loop = QEventLoop()
    program.controller.settled.connect(loop.quit)
    while not stands(program):
        loop.exec()
    program.controller.settled.disconnect(loop.quit)
    program.window.heatmaps.repaint_now()


def edit(repeats):
    """An edit in the window to the last of 12 × 1,024 × 1,024 heatmaps painted, one torch thread in both arms.

    Ours: another seed by `Controller.edit_spec`: throttle, queue, a new module, projections of 768, weights, frames,
    painting. Peer: the textbook's three products at 768, heads split, scores / 8, masked_fill and softmax in fresh
    tensors, with no picture.
    """
    torch.set_num_threads(1)
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12, implementation="split", out_proj=False)
    other = edited(spec, seed=124)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1024, 768, generator=generator)
    parts = [torch.randn(768, 768, generator=generator) / 28 for _ in range(3)]
    triangle = torch.ones(1024, 1024, dtype=torch.bool).triu(1)
    with window_on(spec, one_thread) as program:
        settle(program)

        def ours():
            wanted = other if program.controller.wanted()[0] == spec else spec
            program.controller.edit_spec(wanted)
            settle(program)

        ours()
        taken = interleaved({"ours": ours, "textbook": partial(_textbook, x, parts, triangle)}, repeats, rest=rest)
    return [compared("edit", taken["ours"], taken["textbook"], 0.6, "textbook")]


def _textbook(x, parts, triangle):
    with torch.inference_mode():
        q, k, v = (x @ part for part in parts)
        q, k, v = (t.view(1024, 12, 64).transpose(0, 1) for t in (q, k, v))
        scores = (q @ k.transpose(1, 2)) / 8
        torch.softmax(scores.masked_fill(triangle, float("-inf")), dim=-1)
