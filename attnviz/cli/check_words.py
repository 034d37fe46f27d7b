"""What a check says in a terminal and as JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from attnviz.questions.leak import (
    LOOKS,
    EqualAnswer,
    Equality,
    GradientReading,
    LeakAnswer,
    Reading,
    hides_the_future,
    least_changed,
    outcome,
)  # fmt: skip

CLEAN, LEAKS, ASKED, UNTESTED = 0, 1, 2, 3
"""Exit statuses."""

HEADING: Final = f"{'device':8}{'dtype':10}{'inputs':>8}  {'verdict':24}{'moved':>10}  where"
NOT_COMPARED: Final = "Whether the two are the same could not be tested."
EQUAL_HEADING: Final = f"{'device':8}{'dtype':10}{'':>8}  {'verdict':24}{'outputs':>10}{'gradients':>12}"


def line_of(reading: Reading) -> str:
    """A reading in a line of a terminal."""
    figure = "" if reading.verdict == "untested" else f"{reading.figure:.3g}"
    scale = f"× {reading.scale:g}"
    where = [] if reading.pair is None else [f"output {reading.pair[0]} ← token {reading.pair[1]}"]
    if reading.mixes_batch:
        where.append("mixes the batch")
    if reading.nan_rows:
        where.append(
            f"{_rows(reading.nan_rows)} NaN" + (": Q·Kᵀ overflows, no fault of the mask" if reading.overflows else "")
        )
    if reading.lost_rows > 0:
        where.append(f"{_rows(reading.lost_rows)} lost most of the digits")
    if 0 < reading.positions < reading.length:
        where.append(f"{reading.positions} of {reading.length} tokens changed")
    if reading.remark:
        where.append(reading.remark)
    told = f"{reading.device:8}{reading.dtype:10}{scale:>8}  {reading.verdict:24}{figure:>10}  "
    return (told + " · ".join(where)).rstrip()


def equality_line(found: Equality) -> str:
    """A comparison in a line of a terminal."""
    figures = "" if found.same == "untested" else f"{found.outputs:>10.3g}{found.gradients:>12.3g}"
    return f"{found.device:8}{found.dtype:10}{'':>8}  {found.same:24}{figures}  {found.remark}".rstrip()


def differences(equal: EqualAnswer | None) -> list[str]:
    """In which dtypes two modules differ, in a sentence; nothing where they do not."""
    differ = [] if equal is None else [found.dtype for found in equal.found if found.same == "differ"]
    return [f"They differ in {', '.join(dict.fromkeys(differ))}."] if differ else []


def status_of(answer: LeakAnswer, scale: float, *, strict: bool) -> int:
    """Exit status, by the readings at ``scale``."""
    came = outcome(answer, scale)
    if came in ("untested", "unclear"):
        return UNTESTED
    return LEAKS if came in ("leaks", "nan") or (strict and came == "arithmetic") else CLEAN


def summary(answer: LeakAnswer, scale: float, status: int) -> list[str]:
    """What it comes to, in sentences."""
    said: list[str] = []
    if answer.pattern:
        said.append(f"It looks like {LOOKS[answer.pattern]}.")
    own = [reading for reading in answer.readings if reading.scale == scale]
    for overflows, words in (False, "Some outputs are NaN in {names}."), (True, "Q·Kᵀ is too large for {names}."):
        names = [reading.dtype for reading in own if reading.nan_rows and reading.overflows is overflows]
        if names:
            said.append(words.format(names=", ".join(dict.fromkeys(names))))
    arithmetic = [reading.dtype for reading in own if reading.verdict == "leak in the arithmetic"]
    if arithmetic:
        said.append(
            f"The arithmetic of {', '.join(dict.fromkeys(arithmetic))} lets later tokens through; the code does not."
        )
    said += scale_notes(answer, scale)
    rounds = " by more than rounding" if any(reading.verdict == "rounding" for reading in own) else ""
    changed = "a later token changes"
    if not all(hides_the_future(reading.hidden) for reading in own):
        changed = "a token changes that it must not see"
    clean = f"Clean: no output moves{rounds} when {changed}{_partly(own)}."
    if any(reading.hidden is not None and not reading.hidden.any() for reading in own):
        clean = "Nothing is hidden: every token may move every output."
    said.append({
        CLEAN: clean, LEAKS: "It fails.",
        UNTESTED: "It could not be tested.",
    }[status])  # fmt: skip
    if outcome(answer, scale) == "unclear":
        said[-1] = "Cannot tell: it moves, and it does not run in float64, which would say whether it is the code."
    return said


def scale_notes(answer: LeakAnswer, scale: float) -> list[str]:
    """From which larger inputs on it leaks, loses digits or turns NaN, in sentences."""
    said: list[str] = []
    tests: tuple[tuple[str, Callable[[Reading], bool]], ...] = (
        ("leaks", lambda reading: reading.leaks), ("loses most of its digits", lambda reading: reading.lost_rows > 0),
        ("turns NaN", lambda reading: reading.nan_rows > 0),
    )  # fmt: skip
    for words, test in tests:
        first: dict[float, list[str]] = {}
        for dtype in dict.fromkeys(reading.dtype for reading in answer.readings):
            found = next((r for r in answer.readings if r.dtype == dtype and test(r)), None)
            if found is not None and found.scale > scale:
                first.setdefault(found.scale, []).append(dtype)
        for larger, dtypes in sorted(first.items()):
            factor = (larger / scale) ** 2
            said.append(f"With inputs × {larger:g}, scores × {factor:,.10g}, it {words} in {', '.join(dtypes)}.")
    return said


def _partly(own: Sequence[Reading]) -> str:
    """How many tokens were changed, where those were not all."""
    least = least_changed(own)
    return "" if least is None else f", of {least[0]} among {least[1]} tokens that were changed"


def as_object(
    target: str, tokens: int, scale: float, seed: int, answer: LeakAnswer, status: int,
    equal: EqualAnswer | None = None, slope: GradientReading | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The whole answer as JSON has it; what is no number there is null or "inf"."""
    return {
        "target": target, "tokens": tokens, "scale": scale, "seed": seed, "status": status,
        "looks_like": answer.pattern, "blind_to_itself": answer.blind,
        "readings": [
            {
                "device": r.device, "dtype": r.dtype, "scale": r.scale, "verdict": r.verdict,
                "moved_eps": _plain(r.figure), "pair": r.pair, "positions": r.positions, "nan_rows": r.nan_rows,
                "lost_rows": r.lost_rows, "overflows": r.overflows, "mixes_batch": r.mixes_batch, "remark": r.remark,
                "seconds": round(r.seconds, 3),
            }
            for r in answer.readings
        ],
        "gradient": None if slope is None else {
            "device": slope.device, "dtype": slope.dtype, "largest": _plain(slope.hidden_slope), "pair": slope.at,
            "remark": slope.remark,
        },
        "against": None if equal is None else {
            "weights": equal.shared,
            "found": [
                {
                    "device": e.device, "dtype": e.dtype, "verdict": e.same, "outputs_eps": _plain(e.outputs),
                    "gradients_eps": _plain(e.gradients), "token": e.token, "remark": e.remark,
                }
                for e in equal.found
            ],
        },
    }  # fmt: skip


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def _plain(number: float) -> float | str:
    return number if math.isfinite(number) else "inf"


def gradient_line(slope: GradientReading) -> str:
    """What the derivatives say, in a line."""
    if slope.remark:
        return f"By gradient: {slope.remark}"
    if slope.at is None:
        what = "a later token" if hides_the_future(slope.hidden) else "a token that it must not see"
        rounds = " by more than rounding" if slope.hidden_slope else ""
        return f"By gradient in {slope.dtype}: no output depends on {what}{rounds}."
    row, col = slope.at
    return f"By gradient in {slope.dtype}: output {row} depends on token {col}, by up to {slope.hidden_slope:.3g}."
