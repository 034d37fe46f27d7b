"""Arms of a comparison, run in turn in one process, and the line that a goal prints."""

import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 7
REST = 0.3
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def interleaved(arms, repeats, *, rest=time.sleep, warm=True):
    """Seconds of each arm: name → list of ``repeats`` numbers.

    A round calls every arm once, each after a rest, because a thread pool goes on spinning for a while and would
    disturb the next; every other round goes the other way round. An arm that returns a number has timed itself. The
    first round warms up and is not counted, unless ``warm`` is False.
    """
    taken = {name: [] for name in arms}
    for number in range(-1 if warm else 0, repeats):
        for name in reversed(arms) if number % 2 else arms:
            rest(REST)
            start = time.perf_counter()
            own = arms[name]()
            seconds = time.perf_counter() - start if own is None else own
            if number >= 0:
                taken[name].append(seconds)
    return taken


def percentile(numbers, percent):
    """The nearest-rank percentile: of 100 numbers and 99 per cent the 99th."""
    ranked = sorted(numbers)
    return ranked[max(math.ceil(len(ranked) * percent / 100), 1) - 1]


def compared(goal, ours, peer, limit, name, **more):
    """A line for a ratio of times: the medians of both lists of seconds, in milliseconds; ``name`` is the peer's."""
    one, other = (statistics.median(seconds) if isinstance(seconds, list) else seconds for seconds in (ours, peer))
    return ratio_line(goal, (one * 1000, other * 1000), limit, name, unit="ms", **more)


def ratio_line(goal, pair, limit, name, *, unit, **more):
    """A line for ours / peer."""
    ratio = pair[0] / pair[1]
    return {
        "goal": goal, "ours": short(pair[0]), "peer": short(pair[1]), "unit": unit, "peer_is": name,
        "ratio": short(ratio), "limit": limit, "verdict": "holds" if ratio <= limit else "misses", **more,
    }  # fmt: skip


def bound_line(goal, ours, limit, *, unit, holds=None, **more):
    """A line for a figure with a limit of its own; ``holds`` where that is not simply at most the limit."""
    kept = ours <= limit if holds is None else holds
    return {
        "goal": goal, "ours": short(ours), "unit": unit, "limit": limit, "verdict": "holds" if kept else "misses",
        **more,
    }  # fmt: skip


def short(number):
    """Three digits, more before the point."""
    return number if isinstance(number, int) else float(f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}")


# ------------------------------------------------------------------------------------------------------------- memory


class Peak:
    """Bytes that the process took at most inside a ``with``, beyond what it held before.

    Linux: writing 5 to /proc/self/clear_refs sets the high-water mark VmHWM back to what is resident now.
    """

    extra = 0

    def __enter__(self):
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._before = resident("VmRSS")
        return self

    def __exit__(self, *_):
        self.extra = resident("VmHWM") - self._before


def resident(line):
    """Bytes of a line of /proc/self/status: VmRSS, what is resident; VmHWM, the most that was."""
    for text in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if text.startswith(line):
            return int(text.split()[1]) * 1024
    raise ValueError(line)


def in_own_process(function, *arguments):
    """What ``function``, of a module of this package, returns in a fresh process: numbers, lists, or dicts of them."""
    code = (
        f"import json, sys\nfrom {function.__module__} import {function.__name__} as run\n"
        "print('\\n' + json.dumps(run(*json.loads(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{function.__name__} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
