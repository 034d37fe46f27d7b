"""`python -m tests.benchmarks GOAL|all|growth|gestures|soak [--json] [--repeats N] [--count N]`.

A goal prints a line for each of its figures: ours, the peer's, their ratio, the limit, and whether it holds. Nothing
is asserted, and the exit status is 0 however fast or slow the machine is.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from tests.benchmarks import arms

GOALS = {
    "dense": "dense.dense",
    "dense-memory": "dense.dense_memory",
    "painted": "painting.painted",
    "edit": "window.edit",
    "exact-16k": "tiles.exact_16k",
    "exact-32k": "tiles.exact_32k",
    "exact-memory": "tiles.exact_memory",
    "first-picture": "tiles.first_picture",
    "tile": "tiles.tile",
    "accuracy": "accuracy.accuracy",
    "strong-cell": "accuracy.strong_cell",
    "update": "painting.update",
    "timer": "latency.timer",
    "first-tile": "answers.first_tile",
    "probe": "answers.probe",
    "age": "pace.age",
    "overview": "painting.overview",
    "start": "starting.start",
    "dropout": "dense.dropout",
    "export": "exporting.export",
    "export-png": "exporting.export_png",
    "render": "rendering.render",
    "hammer": "latency.hammer",
    "timer-studies": "latency.studies",
}
STUDIES = {"growth": "growth.growth", "gestures": "gestures.gestures", "soak": "soak.soak"}
"""Figures without a limit, or too long for ``all``."""


def _run(name, given):
    """The lines of a goal or study."""
    module, function = {**GOALS, **STUDIES}[name].split(".")
    part = importlib.import_module(f"tests.benchmarks.{module}")
    run = getattr(part, function)
    if name == "export":
        part.REPEATS = given.repeats
        return [_as_line(run())]
    return run(given.count if name == "soak" else given.repeats)


def _as_line(figures):
    """The sheet's own figures as a line like the others'."""
    ours, peer = figures.pop("ours_ms"), figures.pop("peer_ms")
    kept = figures["ratio"] <= figures["limit"]
    return {
        "goal": "export", "ours": ours, "peer": peer, "unit": "ms", "peer_is": "pyqtgraph ImageExporter",
        "verdict": "holds" if kept else "misses", **figures,
    }  # fmt: skip


def _run_all(given):
    """Every goal in a process of its own, so that one's threads and memory do not disturb the next; then a table."""
    lines = []
    for name in GOALS:
        words = [sys.executable, "-m", "tests.benchmarks", name, "--json", "--repeats", str(given.repeats)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        found = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
        if done.returncode or not found:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            found.append({"goal": name, "verdict": "failed", "why": f"status {done.returncode}: {last}"})
        for line in found:
            _say(line, as_json=given.json)
        lines += found
    if not given.json:
        _put("\n" + _table(lines))


def _say(line, *, as_json):
    _put(json.dumps(line) if as_json else _sentence(line))


def _put(text):
    print(text, flush=True)  # noqa: T201


_NAMED = ("goal", "ours", "peer", "unit", "peer_is", "ratio", "limit", "verdict")


def _sentence(line):
    """A line in words: "dense: ours 13.7 ms, scaled_dot_product_attention 15.8 ms, ratio 0.87, limit 1.0: holds"."""
    unit, said = line.get("unit", ""), []
    if "ours" in line:
        said.append(f"ours {line['ours']} {unit}".rstrip())
    if "peer" in line:
        said.append(f"{line['peer_is']} {line['peer']} {unit}".rstrip())
    said += [f"{name} {line[name]}" for name in ("ratio", "limit") if line.get(name) is not None]
    words = ", ".join(said)
    if "verdict" in line:
        words += f": {line['verdict']}"
    more = ", ".join(f"{key} {value}" for key, value in line.items() if key not in _NAMED)
    if words and more:
        more = f" ({more})"
    return f"{line['goal']}: {words.removeprefix(': ')}{more}"


def _table(lines):
    """Every line's figures under one another."""
    head = ("goal", "ours", "peer", "unit", "ratio", "limit", "verdict")
    rows = [head, *(tuple(str(line.get(name, "")) for name in head) for line in lines)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("goal", choices=[*GOALS, "all", *STUDIES])
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--repeats", type=int, default=arms.REPEATS, help="medians of so many (default %(default)s)")
    parser.add_argument("--count", type=int, default=10_000, help="soak: so many gestures (default %(default)s)")
    given = parser.parse_args()
    if given.goal == "all":
        _run_all(given)
        return
    for line in _run(given.goal, given):
        _say(line, as_json=given.json)


main()
