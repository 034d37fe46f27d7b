"""How soon the worker turns to something else while a long map is computed: another spec, or exact numbers."""

import functools
import queue
import random
import time

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.engine import Engine, tiling
from attnviz.frames import Probe, ProbeAnswer, Progress
from attnviz.spec import Request, View, Viewport, edited
from attnviz.worker import Worker
from tests.benchmarks.arms import bound_line, percentile
from tests.benchmarks.tiles import spec_of

_EDITS = 120
_PROBES = 120
_PATIENCE = 60.0
_LIMIT = 20.0


class _Post(Worker):
    """A worker whose messages are also put, with the time, where this thread can wait for them."""

    def __init__(self):
        self.engines = []
        self.came = queue.SimpleQueue()
        super().__init__(self._engine)

    def _engine(self):
        self.engines.append(Engine(spare_cores=1))  # the program's
        return self.engines[-1]

    def _post(self, message):
        super()._post(message)
        self.came.put((time.perf_counter(), message))

    def wait(self, wanted):
        """The time of the next message that is ``wanted``."""
        end = time.perf_counter() + _PATIENCE
        while True:
            when, message = self.came.get(timeout=max(end - time.perf_counter(), 0.001))
            if wanted(message):
                return when


def _request(spec, generation):
    return Request(spec=spec, view=View(), viewport=Viewport(), generation=generation)


def first_tile(_repeats):
    """An edit while 12 × 32,768 is computed, to the start of the first tile of the new spec: p99 of 120 edits.

    From `Worker.submit` to the first job of a crew's thread for the new spec, through the program's worker and engine
    (one core spared). Edits change the scale, dropout's seed and the mask mode in turn, 40 to 160 ms apart.
    """
    application = QCoreApplication.instance() or QCoreApplication([])
    begun = queue.SimpleQueue()

    def marking(run):
        @functools.wraps(run)
        def marked(self, *given):
            if not vars(self).setdefault("_marked", False):
                self._marked = True
                begun.put((time.perf_counter(), self))
            return run(self, *given)

        return marked

    run, tiling.Tiling._run = tiling.Tiling._run, marking(tiling.Tiling._run)
    worker = _Post()
    worker.start()
    spec = spec_of(32_768)
    worker.submit(_request(spec, 1))
    _begin_of(begun, spec)
    pauses = random.Random(0)  # noqa: S311 (pauses, not secrets)
    taken = {}
    masks = ("none", "neg-inf")
    for number in range(_EDITS):
        time.sleep(pauses.uniform(0.04, 0.16))
        kind, changes = (
            ("scale", {"scale": (number + 1) / 512}),
            ("dropout", {"dropout": 0.1, "dropout_seed": number}),
            ("mask", {"mask": masks[number // 3 % 2], "dropout": 0.0}),
        )[number % 3]
        spec = edited(spec, **changes)
        start = time.perf_counter()
        worker.submit(_request(spec, number + 2))
        taken.setdefault(kind, []).append((_begin_of(begun, spec) - start) * 1000)
    worker.close()
    tiling.Tiling._run = run
    del application
    every = [late for kind in taken.values() for late in kind]
    by_kind = {f"p99_{kind}_ms": round(percentile(late, 99), 1) for kind, late in taken.items()}
    return [
        bound_line(
            "first-tile", percentile(every, 99), _LIMIT, unit="ms (p99)", **by_kind,
            p50_ms=round(percentile(every, 50), 1), max_ms=round(max(every), 1), edits=len(every),
        )
    ]  # fmt: skip


def _begin_of(begun, spec):
    """The time of the first job for ``spec``."""
    while True:
        when, maps = begun.get(timeout=_PATIENCE)
        if maps._heads[0].spec == spec:
            return when


def probe(_repeats):
    """Exact numbers of a random cell while 12 × 131,072 is computed: p99 of 120 probes of either kind.

    From `Worker.probe` to the answer in the mailbox, 40 to 160 ms apart. Known: the row's denominators stand in every
    head; the answer has all heads. Unknown: they do not in the head that is asked for, the one in which fewest rows
    are known; the answer has that head.
    """
    application = QCoreApplication.instance() or QCoreApplication([])
    worker, spec = _Post(), spec_of(131_072)
    worker.start()
    worker.submit(_request(spec, 1))
    worker.wait(lambda message: isinstance(message, Progress) and message.preview > 0)
    engine = worker.engines[0]
    chosen = random.Random(0)  # noqa: S311 (places, not secrets)
    taken = {"known": [], "unknown": []}
    for number in range(2 * _PROBES):
        time.sleep(chosen.uniform(0.04, 0.16))
        known = number % 2 == 0
        have = np.stack([np.asarray(one.have) for one in engine._long._known])
        head = int(have.sum(1).argmin())
        rows = np.flatnonzero(have.all(0) if known else ~have[head])
        row = int(rows[chosen.randrange(len(rows))])
        asked = Probe(1, row, chosen.randrange(row + 1), head)
        start = time.perf_counter()
        worker.probe(asked)
        first = worker.wait(functools.partial(_answers, asked, whole=False))
        last = worker.wait(functools.partial(_answers, asked, whole=True))  # repeats the first where that had all
        taken["known" if known else "unknown"].append(((last if known else first) - start) * 1000)
    worker.cancel()
    worker.close()
    del application
    return [
        bound_line(
            f"probe-{name}", percentile(late, 99), _LIMIT, unit="ms (p99)", p50_ms=round(percentile(late, 50), 1),
            max_ms=round(max(late), 1), probes=len(late),
        )
        for name, late in (("known", taken["known"]), ("unknown-first-head", taken["unknown"]))
    ]  # fmt: skip


def _answers(asked, message, *, whole):
    return (
        isinstance(message, ProbeAnswer) and (message.row, message.col) == (asked.row, asked.col)
        and message.values[asked.head] is not None and not (whole and None in message.values)
    )  # fmt: skip
