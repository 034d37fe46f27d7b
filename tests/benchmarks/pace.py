"""A worker that makes pictures faster than they can be painted: how old is what is painted."""

import statistics
import time
from dataclasses import replace

from PySide6.QtWidgets import QApplication

from attnviz import rendering
from attnviz.controller import Controller
from attnviz.engine import Engine
from attnviz.session import Session
from attnviz.spec import RandomQK, View, edited, make_spec
from attnviz.views.heatmaps import Heatmaps
from attnviz.worker import Worker
from tests.benchmarks.arms import percentile, ratio_line
from tests.benchmarks.painting import application, shown_heatmaps, snapshot_of, viewport_of
from tests.benchmarks.window import rest

_SECONDS = 4
_TIMES = 4


class _Hasty:
    """A fake engine: new frames of every head each ``every`` seconds until it is cancelled; ``made`` says when."""

    def __init__(self, pictures, every):
        self._pictures, self._every = pictures, every
        self.made, self.count = {}, 0

    def devices(self):
        return ()

    def stream(self, request, cancelled):
        yield replace(self._pictures[0].outline, generation=request.generation)
        due = time.perf_counter()
        while not cancelled():
            now = time.perf_counter()
            for frame in self._pictures[self.count % 2].heads:
                new = replace(frame, generation=request.generation)
                self.made[id(new)] = now, new  # kept, so that no other frame takes its name
                yield new
            self.count += 1
            due += self._every
            time.sleep(max(due - time.perf_counter(), 0))

    def row_story(self, _question):
        return None

    def probe(self, _probe):
        return iter(())

    def close(self):
        pass


class _Watched(Heatmaps):
    """Notes when a frame is painted for the first time."""

    def __init__(self):
        super().__init__()
        self.painted = {}

    def paintEvent(self, event):  # noqa: N802 (Qt's)
        super().paintEvent(event)
        now = time.perf_counter()
        for panel in self._panels:
            self.painted.setdefault(id(panel.frame), now)


def age(repeats):
    """The age of painted frames while a worker makes pictures of 12 × 1,024 four times as fast as one is painted.

    Ours: a fake engine behind the program's worker, session and controller makes twelve new frames at a time; from
    there to the end of the painting in which each is first seen, the median of all frames painted in 4 s. Peer: the
    time to present and paint one such picture while nothing else runs.
    """
    held = application()
    spec = make_spec(RandomQK(length=1024), num_heads=12, d_out=768)
    engine, heatmaps = Engine(), shown_heatmaps(_Watched)
    viewport = viewport_of(heatmaps, engine, spec)
    pictures = [rendering.collect(engine, edited(spec, seed=seed), View(), viewport) for seed in (1, 2)]
    engine.close()
    paint = statistics.median(_painting(heatmaps, pictures[number % 2]) for number in range(max(repeats, 7) * 2))
    hasty = _Hasty(pictures, paint / _TIMES)
    worker = Worker(lambda: hasty)
    controller = Controller(Session(spec, View()), worker)
    controller.snapshot_changed.connect(heatmaps.present)
    worker.start()
    heatmaps.painted.clear()
    controller.start()
    rest(_SECONDS)
    worker.close()
    held.processEvents()
    heatmaps.close()
    ages = [when - hasty.made[name][0] for name, when in heatmaps.painted.items() if name in hasty.made]
    return [
        ratio_line(
            "age", (statistics.median(ages) * 1000, paint * 1000), 2, "painting one", unit="ms",
            p99_ms=round(percentile(ages, 99) * 1000, 1), made=hasty.count, painted=len(ages) // 12,
        )
    ]  # fmt: skip


def _painting(heatmaps, picture):
    QApplication.processEvents()
    time.sleep(0.02)
    start = time.perf_counter()
    heatmaps.present(snapshot_of(picture))
    heatmaps.repaint_now()
    return time.perf_counter() - start
