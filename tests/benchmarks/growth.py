"""How time and memory of long maps grow with their length: the exact pass against L², memory and first picture by L."""

import statistics
import time

import torch

from attnviz.engine import Engine
from attnviz.engine.crew import Crew
from attnviz.spec import edited
from tests.benchmarks.arms import CORES, bound_line, in_own_process, short
from tests.benchmarks.tiles import Maps, first_and_last, open_vectors, pass_peak, spec_of

_LENGTHS = (4096, 8192, 16_384, 32_768, 65_536)
_STEADY_FROM = 16_384
_HEADS = 2


def growth(repeats):
    """Two causal heads of 4k to 64k tokens: the exact pass as in `exact-16k`, and what a constant it has against L².

    A line a length: seconds of the pass, nanoseconds for each of the heads' L² / 2 visible cells, peak memory of the
    pass beyond queries and keys and by token (a process of its own), and the first picture as in `first-picture`.
    Lengths in turn, of each the same queries and keys, of which a pass knows nothing; the median of at most five
    rounds after one that warms up. Then the spread of the constant over 16k to 64k: the largest over the smallest,
    less one.
    """
    rounds = min(repeats, 5)
    passes = {length: [] for length in _LENGTHS}
    with torch.inference_mode():
        crew = Crew(CORES)
        maps = {length: Maps(length, _HEADS) for length in _LENGTHS}
        for number in range(-1, rounds):
            for length in _LENGTHS:
                time.sleep(0.3)
                start = time.perf_counter()
                maps[length].exact_pass(crew)
                if number >= 0:
                    passes[length].append(time.perf_counter() - start)
        crew.close()
    lines, constants = [], {}
    for length in _LENGTHS:
        seconds = statistics.median(passes[length])
        constants[length] = seconds / (_HEADS * length**2 / 2) * 1e9
        peak = in_own_process(pass_peak, length, _HEADS)
        lines.append({
            "goal": f"growth-{length}", "pass_s": short(seconds), "ns_per_cell": short(constants[length]),
            "peak_mb": short(peak / 1e6), "peak_bytes_per_token": round(peak / length),
            "first_picture_ms": short(_first(length, rounds) * 1000),
        })  # fmt: skip
    steady = [constant for length, constant in constants.items() if length >= _STEADY_FROM]
    spread = 100 * (max(steady) / min(steady) - 1)
    return [*lines, bound_line("growth-constant", spread, 30, unit="% of spread from 16k to 64k")]


def _first(length, rounds):
    """Seconds to the first frame of both heads, queries and keys open and nothing else known."""
    engine, spec = Engine(dense_bytes=0), spec_of(length, _HEADS)
    open_vectors(engine, spec)
    taken = []
    for number in range(rounds):
        time.sleep(0.3)
        taken.append(first_and_last(engine, edited(spec, scale=0.1 + number / 100), to_the_end=False)[0])
    engine.close()
    return statistics.median(taken)
