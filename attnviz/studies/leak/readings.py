"""The whole test: every device and dtype, then larger scales, reading after reading."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch import Tensor

from attnviz.questions.leak import ROUNDING_EPS, LeakAnswer, Pattern, Reading, Verdict
from attnviz.studies.leak import movement
from attnviz.studies.leak.derivatives import by_gradient
from attnviz.studies.leak.movement import Call, Movement, Testable
from attnviz.studies.leak.overflow import product_overflows
from attnviz.studies.leak.patterns import is_blind, pattern_of
from attnviz.studies.leak.verdicts import verdict_of

SCALES: Final = (1.0, 10.0, 100.0, 1000.0)
"""Of the inputs, in those of the verdict."""

DTYPES: Final = ("float32", "float64", "bfloat16", "float16")
MOST_TOKENS: Final = 1024
"""Of a test: its map has a cell for each pair."""

FINEST_FIRST: Final = ("float64", "float32", "bfloat16", "float16")
_REFERENCE: Final = "float64"
_BUDGET: Final = {"float64": 1e10, "float32": 1e10, "bfloat16": 1e10, "float16": 2e9}
"""Multiplications and additions that the positions of one reading may cost."""

_FURTHER: Final = 0.1  # of the budget, for scales that give no verdict
_RESTLESS: Final = (
    "differs from itself: the same input gives another output each time, as dropout does that is drawn in eval mode too"
)
_LEAST: Final = 6
_DRAWS: Final = 3  # of what a token is changed to: what rounds or counts may miss one
_SMALL: Final = 2e9
"""Multiplications and additions of a reading that one thread does as quickly as several."""


@dataclass(frozen=True, slots=True)
class Plan:
    """On which ``devices``, in which ``dtypes``, over how many tokens, drawn with ``seed`` and multiplied by ``scale``.

    ``factors`` are the further scales, in that one; the first is 1 and gives the verdict. With ``gradient`` the
    derivatives are asked too, last, and given up after ``gradient_s`` seconds.
    """

    devices: tuple[str, ...] = ("cpu",)
    dtypes: tuple[str, ...] = DTYPES
    length: int = 32
    scale: float = 1.0
    seed: int = 0
    factors: tuple[float, ...] = SCALES
    gradient: bool = False
    gradient_s: float = math.inf


def answers(subject: Testable, plan: Plan, cancelled: Callable[[], bool] = lambda: False) -> Iterator[LeakAnswer]:
    """An answer after each reading, the finest dtype of each device first. Ends early once ``cancelled``."""
    dtypes = sorted(plan.dtypes, key=FINEST_FIRST.index)
    wanted = [(device, dtype, factor) for factor in plan.factors for device in plan.devices for dtype in dtypes]
    references: dict[tuple[str, float], _Taken] = {}
    readings: list[Reading] = []
    looks: tuple[Pattern, bool] | None = None
    total = len(wanted) + plan.gradient
    for done, (device, dtype, factor) in enumerate(wanted, 1):
        if factor != plan.factors[0] and all(reading.verdict == "untested" for reading in readings):
            return  # what could not be run is asked no more
        with torch.inference_mode(), _few_threads(subject, plan.length):  # both are the thread's: no yield in it
            taken = _take(subject, plan, device, dtype, factor, references.get((device, factor)), cancelled)
            if taken is not None and taken.movement is not None and looks is None:
                looks = _looks_of(subject, taken, plan.length)
        if taken is None:
            return
        if taken.movement is not None and dtype == _REFERENCE:
            references[device, factor] = taken
        readings.append(taken.reading)
        found, blind = looks or ("", False)
        yield LeakAnswer(done, total, tuple(readings), found, blind)
    if plan.gradient and not cancelled():
        device, dtype = plan.devices[0], dtypes[0]
        with torch.inference_mode(mode=False), _few_threads(subject, plan.length):
            finest = references.get((device, plan.factors[0]))
            eps = finest.movement.eps if finest is not None and finest.movement is not None else None
            start, _ = movement.inputs_of(plan.length, subject.d, plan.scale, plan.seed)
            slopes = by_gradient(
                subject, device, dtype, start, seconds=plan.gradient_s, eps=eps if dtype == _REFERENCE else None,
                cancelled=cancelled,
            )  # fmt: skip
        if slopes is not None:
            found, blind = looks or ("", False)
            yield LeakAnswer(total, total, tuple(readings), found, blind, slopes)


def _looks_of(subject: Testable, taken: _Taken, length: int) -> tuple[Pattern, bool]:
    """The pattern of the finest reading that there is, and whether tokens are blind to themselves."""
    assert taken.movement is not None and taken.call is not None  # noqa: S101, PT018 (the caller looked)
    blind = is_blind(taken.movement)
    if taken.reading.mixes_batch:
        return "other item of the batch", blind
    if not subject.hidden(length).equal(causal(length)):
        return "", blind
    try:
        return pattern_of(taken.call, taken.start, taken.movement), blind
    except Exception:
        return "", blind


def causal(length: int) -> Tensor:
    """Tokens after an output's own, bool (L, L) at [output, token]."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """A reading, and what it was read from where there was something to read."""

    reading: Reading
    call: Call | None = None
    start: Tensor = field(default_factory=lambda: torch.empty(0))
    movement: Movement | None = None


def _take(
    subject: Testable, plan: Plan, device: str, dtype: str, factor: float, reference: _Taken | None,
    cancelled: Callable[[], bool],
) -> _Taken | None:  # fmt: skip
    """One reading; None once cancelled."""
    began = time.perf_counter()
    scale, kind = plan.scale * factor, getattr(torch, dtype)
    nothing = Reading(device, dtype, scale, "untested", length=plan.length)
    try:
        call = subject.on(torch.device(device), kind)
        drawn = movement.inputs_of(plan.length, subject.d, scale, plan.seed, 1 + _DRAWS)
        opposite = -drawn[1].abs() * drawn[0].sign()  # what looks at signs alone sees each of them change
        start, *others = (t.to(device, kind) for t in (*drawn, opposite))
        if not all(bool(torch.isfinite(t).all()) for t in (start, *others)):
            return _Taken(replace(nothing, remark=f"inputs × {scale:g} are themselves too large for {dtype}"))
        if not movement.repeats_itself(call, start):
            return _Taken(replace(nothing, remark=_RESTLESS))
        mixing = movement.mixes_batch(call, start, others[0])
        positions = _positions(subject, plan.length, _BUDGET[dtype] * (1.0 if factor == 1 else _FURTHER))
        if len(positions) < plan.length:
            others = others[:1]  # each draw costs as much again
        moved = movement.measure(call, start, others, positions, cancelled, alone=mixing > ROUNDING_EPS)
        if cancelled():
            return None
        if dtype == _REFERENCE and _may_be_single(moved, subject.hidden(plan.length)):
            moved.eps = movement.inner_eps(call, start, moved.largest)
        overflows = bool(moved.lost().any()) and product_overflows(call, start)
    except Exception as error:  # whatever a person's module raises is an answer
        words = getattr(error, "sentence", None) or f"{type(error).__name__}: {' '.join(str(error).split())}"
        return _Taken(replace(nothing, remark=words, seconds=time.perf_counter() - began))
    hidden = subject.hidden(plan.length)
    nothing_seen = hidden.all(1)
    hidden = hidden & ~torch.eye(plan.length, dtype=torch.bool)  # a token's own query moves its own output
    figure = max(moved.largest_over(hidden), mixing if mixing > ROUNDING_EPS else 0.0)
    finest = moved if reference is None or reference.movement is None else reference.movement
    readable = finest.anything() and bool((hidden & moved.changed[None] & ~torch.isnan(moved.moved)).any())
    verdict: Verdict = "untested" if bool(hidden.any()) and not readable else "exactly zero"
    if readable and factor != 1:
        verdict = "leaks" if figure > ROUNDING_EPS else "rounding" if figure else "exactly zero"
    elif readable:
        in_float64 = figure if dtype == _REFERENCE else None if reference is None else reference.reading.figure
        verdict = verdict_of(figure, in_float64)
    reading = Reading(
        device, dtype, scale, verdict, figure,
        _first_pair(moved, hidden), plan.length, int(moved.changed.sum()), int((moved.lost() & ~nothing_seen).sum()),
        _lost_rows(moved, None if reference is None else reference.movement), overflows, mixing > ROUNDING_EPS,
        _frozen(moved.figures()), _frozen(hidden),
        _remark(moved, dtype, readable=readable) if bool(hidden.any()) else "nothing is hidden",
        time.perf_counter() - began,
    )  # fmt: skip
    return _Taken(reading, call, start, moved)


def _may_be_single(moved: Movement, hidden: Tensor) -> bool:
    """Whether what moves in float64 is so little that it may be float32's rounding."""
    figure = moved.largest_over(hidden)
    return ROUNDING_EPS < figure <= ROUNDING_EPS * torch.finfo(torch.float32).eps / moved.eps


def _remark(moved: Movement, dtype: str, *, readable: bool) -> str:
    if not readable:
        still = not moved.anything() and not bool(moved.nan_rows.any())
        return "no output depends on the input" if still else "no output is a number"
    return "computes in float32 inside" if dtype == _REFERENCE and moved.eps > torch.finfo(torch.float64).eps else ""


@contextmanager
def _few_threads(subject: Testable, length: int) -> Iterator[None]:
    """One of torch's threads where the work is small: on a machine that is busy, several wait for each other."""
    threads = torch.get_num_threads()
    if length * _cost(subject, length) < _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _first_pair(moved: Movement, hidden: Tensor) -> tuple[int, int] | None:
    """The first output that moved by more than rounding, and the first token that moved it."""
    figures = moved.figures()
    over = (figures > ROUNDING_EPS) & torch.isfinite(figures) & hidden
    if not bool(over.any()):
        return None
    row, col = over.nonzero()[0].tolist()
    return row, col


def _lost_rows(moved: Movement, reference: Movement | None) -> int:
    """Outputs that are numbers, and differ from float64's by more than half of the dtype's digits."""
    if reference is None:
        return -1
    gap = (moved.outputs - reference.outputs).abs().amax(-1)
    return int((gap > math.sqrt(moved.eps) * reference.largest).sum())


def _positions(subject: Testable, length: int, budget: float) -> list[int]:
    """Tokens to change: all where that is cheap, else the first of a fixed order, so that fewer are some of more.

    The order begins with the last, the second and the first, and goes on halving what lies between.
    """
    n = min(length, max(_LEAST, int(budget / _cost(subject, length))))
    bits = max((length - 1).bit_length(), 1)
    halved = (int(f"{place:0{bits}b}"[::-1], 2) for place in range(1 << bits))
    order = dict.fromkeys((length - 1, 1, 0, *(place for place in halved if place < length)))
    return sorted([*order][:n])


def _cost(subject: Testable, length: int) -> int:
    """Multiplications and additions of one input of ``length`` tokens, about."""
    return max(length * (2 * subject.parameters() + 4 * length * subject.d), 1)


def _frozen(plane: Tensor) -> Any:
    array = plane.numpy().copy()
    array.flags.writeable = False
    return array
