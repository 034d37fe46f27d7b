"""How late the GUI thread is while the worker is busy: a timer of 5 ms in the real window."""

import itertools
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer

from attnviz.spec import RandomEmbeddings, RandomQK, edited, make_spec
from tests.benchmarks.arms import bound_line, percentile
from tests.benchmarks.window import frames_there, rest, settle, wait_until, window_on

_SECONDS = 6
_FRAME = 16.7
_PAINT_MS = 33


class Ticks:
    """A precise timer of 5 ms on the GUI thread: by how many ms each tick comes late after the one before."""

    def __init__(self):
        self.late = []
        self._last = None
        self._timer = QTimer(interval=5)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)

    def _tick(self):
        now = time.perf_counter()
        if self._last is not None:
            self.late.append((now - self._last) * 1000 - 5)
        self._last = now

    def run(self, seconds):
        self._timer.start()
        rest(seconds)
        self._timer.stop()


def timer(_repeats):
    """A 5 ms timer on the GUI thread while the worker is busy with dense edits, tiles or export, 6 s each.

    Dense: 12 × 1,024, another seed as soon as a picture is exact. Tiles: 12 × 32,768 from its first preview on,
    another scale as soon as it is exact. Export: sheets of 3840 × 2160 of 12 × 1,024, one after the other. The panels
    paint what comes, and with the export, where nothing comes, all of them 30 times a second. Without painting: the
    same with the window hidden.
    """
    lines = []
    for name, busy in (("dense", _dense), ("tiles", _tiles), ("export", _export)):
        for painting in (True, False):
            with busy(painting=painting) as program:
                ticks = Ticks()
                ticks.run(_SECONDS)
            share = 100 * sum(late > _FRAME for late in ticks.late) / len(ticks.late)
            more = {
                "p50_ms": round(percentile(ticks.late, 50), 2), "max_ms": round(max(ticks.late), 1),
                "ticks": len(ticks.late), "pictures": program.pictures,
            }  # fmt: skip
            if painting:
                lines.append(bound_line(f"timer-{name}-share", share, 0.5, unit="% late by over 16.7 ms"))
            limit, how = (_FRAME, "painting") if painting else (8.0, "hidden")
            lines.append(
                bound_line(f"timer-{name}-{how}", percentile(ticks.late, 99), limit, unit="ms late (p99)", **more)
            )
    return lines


@contextmanager
def _dense(*, painting):
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12)
    seeds = itertools.count(200)
    with window_on(spec) as program:
        settle(program)
        _prepare(program, painting=painting)
        _again(program, program.controller.settled, lambda: edited(spec, seed=next(seeds)))
        yield program
        program.controller.settled.disconnect()


@contextmanager
def _tiles(*, painting):
    spec = make_spec(RandomQK(length=32_768), num_heads=12, d_out=768)
    scales = itertools.count(1)
    with window_on(spec) as program:
        wait_until(lambda: frames_there(program) == 12, program)
        _prepare(program, painting=painting)
        _again(program, program.controller.settled, lambda: edited(spec, scale=next(scales) / 64))
        yield program
        program.controller.settled.disconnect()


def _again(program, ended, another):
    """Edit as soon as a picture is exact, now for the first time."""

    def change(*_):
        program.pictures += 1
        QTimer.singleShot(0, lambda: program.controller.edit_spec(another()))

    ended.connect(change)
    program.controller.edit_spec(another())


@contextmanager
def _export(*, painting):
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12)
    with window_on(spec) as program, tempfile.TemporaryDirectory() as folder:
        settle(program)
        _prepare(program, painting=painting)
        write = partial(program.exporting.export, Path(folder, "sheet.png"), (3840, 2160))
        going = [True]

        def again(_path, failed):
            program.pictures += failed is None
            if going[0] and failed is None:
                write()

        program.jobs.ended.connect(again)
        write()
        paint = QTimer(interval=_PAINT_MS)
        paint.timeout.connect(program.window.heatmaps.update)
        paint.start()
        yield program
        paint.stop()
        going[0] = False


def _prepare(program, *, painting):
    program.pictures = 0
    if not painting:
        program.window.hide()
    rest(0.2)


def hammer(_repeats):
    """200 edits a second (mask mode, dropout) for 5 s on 12 × 1,024: lateness of the 5 ms timer, and what is left."""
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12)
    masks = ("none", "three-step", "neg-inf")
    edits = 0
    with window_on(spec) as program:
        settle(program)
        began = time.perf_counter()

        def change():
            nonlocal edits
            while edits < 200 * (time.perf_counter() - began):  # a late timer catches up: 200 a second it is
                edits += 1
                wanted = program.controller.wanted()[0]
                program.controller.edit_spec(edited(wanted, mask=masks[edits % 3], dropout=edits % 7 / 10))

        editing = QTimer(interval=5)
        editing.setTimerType(Qt.TimerType.PreciseTimer)
        editing.timeout.connect(change)
        editing.start()
        ticks = Ticks()
        ticks.run(5)
        editing.stop()
        settle(program)
        shown = {frame.generation for frame in program.session.snapshot().picture.heads}
        last = program.session.generation
    behind = [thread.name for thread in threading.enumerate() if thread.name.startswith("attnviz")]
    return [
        bound_line(
            "hammer", percentile(ticks.late, 99), 50, unit="ms late (p99)", p50_ms=round(percentile(ticks.late, 50), 2),
            max_ms=round(max(ticks.late), 1), edits=edits, only_the_last_request_on_screen=shown == {last},
            threads_behind=len(behind),
        )
    ]  # fmt: skip


def studies(_repeats):
    """The 5 ms timer while each study runs in its page, 4 s each, begun again when it ends.

    12 × 1,024 tokens in training with dropout; the exam and what looks ahead bring their own numbers.
    """
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=12, dropout=0.1)
    lines = []
    for page_name in ("masks", "dropout", "heads", "rounds", "exam", "ahead", "compare", "leaks", "forms"):
        with window_on(spec, view=None) as program:
            settle(program)
            if page_name == "compare":
                program.controller.toggle_pin()
                program.controller.edit_spec(edited(spec, mask="none"))
                settle(program)
            program.window.show_page(page_name)
            page = program.window.side.pages[page_name]
            runs = [0]

            def again(_name, page=page, runs=runs):
                runs[0] += 1
                QTimer.singleShot(0, page.ask)

            program.studies.ended.connect(again)
            page.ask()
            ticks = Ticks()
            ticks.run(4)
            program.studies.ended.disconnect(again)
        share = 100 * sum(late > _FRAME for late in ticks.late) / len(ticks.late)
        lines.append(
            bound_line(
                f"timer-study-{page_name}", percentile(ticks.late, 99), _FRAME, unit="ms late (p99)",
                p50_ms=round(percentile(ticks.late, 50), 2), max_ms=round(max(ticks.late), 1),
                share=round(share, 2), runs=runs[0],
            )
        )  # fmt: skip
    return lines
