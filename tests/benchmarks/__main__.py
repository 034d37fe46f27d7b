"""`python -m tests.benchmarks edit|hammer|start|all [--json]`: ours, the other arm, their ratio and the goal."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

REPEATS = 9
REST = 0.3


def _program(spec, folder, size=(1920, 1080)):
    """A window on ``spec`` with one torch thread, settled."""
    import torch
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QApplication

    from attnviz import app
    from attnviz.engine import Engine
    from attnviz.figure.fonts import load_fonts
    from attnviz.spec import View

    application = QApplication.instance() or QApplication(["benchmark"])
    load_fonts()

    def one_thread():
        torch.set_num_threads(1)
        return Engine()

    settings = QSettings(os.path.join(folder, "benchmark.ini"), QSettings.Format.IniFormat)  # noqa: PTH118
    program = app.build_window((spec, View()), settings, one_thread)
    program.application = application  # must outlive the window
    program.window.use_layout("explore")
    program.window.resize(*size)
    program.window.show()
    _settle(program)
    return program


def _settle(program):
    """Run the event loop until the wanted picture is exact and painted."""
    from PySide6.QtCore import QEventLoop

    def stands():
        picture = program.session.snapshot().picture
        return (
            picture is not None and picture.complete and (picture.spec, picture.view) == program.controller.wanted()
            and {frame.generation for frame in picture.heads} == {program.session.generation}
        )  # fmt: skip

    loop = QEventLoop()
    program.controller.settled.connect(loop.quit)
    while not stands():
        loop.exec()
    program.controller.settled.disconnect(loop.quit)
    program.window.heatmaps.repaint_now()


def _rest(seconds):
    """Run the event loop for a while."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


def _textbook(torch, x, parts, triangle):
    """q, k, v by three products, heads split, scores / 8, masked_fill, softmax; fresh tensors."""
    q, k, v = (x @ part for part in parts)
    q, k, v = (t.view(1024, 12, 64).transpose(0, 1) for t in (q, k, v))
    scores = (q @ k.transpose(1, 2)) / 8
    return torch.softmax(scores.masked_fill(triangle, float("-inf")), dim=-1)


def edit():
    """Edit → last of 12 × 1,024 × 1,024 heatmaps painted, projections, throttle and queue included."""
    import torch

    from attnviz.spec import RandomEmbeddings, edited, make_spec

    torch.set_num_threads(1)
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12, implementation="split", out_proj=False)
    other = edited(spec, seed=124)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1024, 768, generator=generator)
    parts = [torch.randn(768, 768, generator=generator) / 28 for _ in range(3)]
    triangle = torch.ones(1024, 1024, dtype=torch.bool).triu(1)
    ours, book = [], []
    with tempfile.TemporaryDirectory() as folder:
        program = _program(spec, folder)
        for wanted in (other, spec):
            program.controller.edit_spec(wanted)
            _settle(program)
        for repeat in range(REPEATS):
            for arm in ("ours", "book") if repeat % 2 else ("book", "ours"):
                _rest(REST)
                wanted = other if program.controller.wanted()[0] == spec else spec
                start = time.perf_counter()
                if arm == "ours":
                    program.controller.edit_spec(wanted)
                    _settle(program)
                    ours.append(time.perf_counter() - start)
                else:
                    with torch.inference_mode():
                        _textbook(torch, x, parts, triangle)
                    book.append(time.perf_counter() - start)
        program.window.close()
    return _line("edit", statistics.median(ours), statistics.median(book), 1.2, "textbook")


def hammer():
    """200 edits a second for 5 s on 12 × 1,024: lateness of a 5 ms timer on the GUI thread."""
    from PySide6.QtCore import Qt, QTimer

    from attnviz.spec import RandomEmbeddings, edited, make_spec

    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12)
    with tempfile.TemporaryDirectory() as folder:
        program = _program(spec, folder)
        late, ticks, edits = [], [time.perf_counter()], [0]

        def tick():
            now = time.perf_counter()
            late.append((now - ticks[-1]) * 1000 - 5)
            ticks.append(now)

        masks = ("none", "three-step", "neg-inf")

        def change():
            while edits[0] < 200 * (time.perf_counter() - began):  # a late timer catches up: 200 a second it is
                edits[0] += 1
                wanted = program.controller.wanted()[0]
                program.controller.edit_spec(edited(wanted, mask=masks[edits[0] % 3], dropout=edits[0] % 7 / 10))

        began = time.perf_counter()
        timers = [QTimer(interval=5), QTimer(interval=5)]
        for timer, slot in zip(timers, (tick, change), strict=True):
            timer.setTimerType(Qt.TimerType.PreciseTimer)
            timer.timeout.connect(slot)
            timer.start()
        _rest(5)
        for timer in timers:
            timer.stop()
        _settle(program)
        generations = {frame.generation for frame in program.session.snapshot().picture.heads}
        program.window.close()
        behind = [thread for thread in threading.enumerate() if thread.name.startswith("attnviz")]
    late.sort()
    return {
        "goal": "hammer", "edits": edits[0], "p50_ms": round(late[len(late) // 2], 2),
        "p99_ms": round(late[len(late) * 99 // 100], 2), "max_ms": round(late[-1], 2), "limit_p99_ms": 50,
        "only_the_last_request_on_screen": generations == {program.session.generation},
        "threads_behind": len(behind),
    }  # fmt: skip


_START = """
import sys, time
start = time.perf_counter()
if sys.argv[1] == "eager":
    import torch
from PySide6.QtCore import QEventLoop, QSettings
from PySide6.QtWidgets import QApplication
from attnviz import app
from attnviz.figure.fonts import load_fonts
application = QApplication([])
load_fonts()
program = app.build_window(None, QSettings(sys.argv[2], QSettings.Format.IniFormat))
program.window.show()
application.processEvents()
shown = time.perf_counter() - start
loop = QEventLoop()
program.controller.settled.connect(loop.quit)
loop.exec()
print(shown, time.perf_counter() - start)
program.window.close()
"""


def start():
    """Window shown, and first exact picture, beside importing torch first."""
    arms = {"ours": [], "eager": []}
    for _ in range(5):
        for arm, taken in arms.items():
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-c", _START, arm, os.path.join(folder, "x.ini")],  # noqa: PTH118
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                taken.append([float(word) for word in done.stdout.split()])
    medians = {arm: [statistics.median(column) for column in zip(*taken, strict=True)] for arm, taken in arms.items()}
    (shown, first), (eager_shown, eager_first) = medians["ours"], medians["eager"]
    return {
        "goal": "start", "window_ms": round(shown * 1000), "first_picture_ms": round(first * 1000),
        "eager_window_ms": round(eager_shown * 1000), "eager_first_picture_ms": round(eager_first * 1000),
        "window_ratio": round(shown / eager_shown, 2), "first_picture_ratio": round(first / eager_first, 2),
    }  # fmt: skip


def _line(goal, ours, peer, limit, name):
    return {
        "goal": goal, "ours_ms": round(ours * 1000, 1), f"{name}_ms": round(peer * 1000, 1),
        "ratio": round(ours / peer, 2), "limit": limit,
    }  # fmt: skip


GOALS = {"edit": edit, "hammer": hammer, "start": start}


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("goal", choices=[*GOALS, "all"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for name, goal in GOALS.items():
        if given.goal in (name, "all"):
            figures = goal()
            text = json.dumps(figures) if given.json else "  ".join(f"{key} {value}" for key, value in figures.items())
            print(text, flush=True)  # noqa: T201


main()
