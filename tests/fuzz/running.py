"""Damaged files by the million: ``python -m tests.fuzz KIND --cases 1000000 [--seed 0] [--jobs 2]``.

Each kind has a module with ``case(random, folder)``, which makes one damaged file in ``folder``, reads it, and raises
where that is not told in a sentence. A case is had again by its number: ``--first 4711 --cases 1``.
"""

import argparse
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.fuzz import pictures, scenes, sessions

KINDS: dict[str, Callable[[Random, Path], None]] = {
    "pictures": pictures.case,
    "scenes": scenes.case,
    "sessions": sessions.case,
}
_BATCH = 500


def batch(kind: str, seed: int, first: int, end: int) -> str:
    """Run cases ``first`` to ``end``; the traceback of the first that fails, "" for none."""
    with tempfile.TemporaryDirectory() as name:
        for number in range(first, end):
            try:
                KINDS[kind](Random(f"{seed}/{number}"), Path(name))  # noqa: S311
            except BaseException:
                return f"case {number} of {kind}, seed {seed}:\n{traceback.format_exc()}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    for name, default in ("cases", 1_000_000), ("seed", 0), ("first", 0), ("jobs", 2):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    end = asked.first + asked.cases
    starts = range(asked.first, end, _BATCH)
    began = time.monotonic()
    failed = 0
    with get_context("spawn").Pool(asked.jobs) as pool:
        jobs = [pool.apply_async(batch, (asked.kind, asked.seed, at, min(at + _BATCH, end))) for at in starts]
        for done, job in enumerate(jobs, 1):
            said = job.get()
            if said:
                failed += 1
                print(said, flush=True)  # noqa: T201
            if done % 20 == 0 or done == len(jobs):
                print(f"{min(done * _BATCH, asked.cases):,} cases, {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
    print(f"{failed} batches failed" if failed else "all were read or refused in a sentence")  # noqa: T201
    return 1 if failed else 0
