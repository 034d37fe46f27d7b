"""Attention that does not leak, and two implementations that are the same, as assertions.

Nothing here needs Qt. A failure is an `AssertionError` that says what moved, where, and what it looks like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from attnviz.questions.leak import Reading, text_map
from attnviz.studies.leak import DTYPES, Plan, answers
from attnviz.studies.leak.against import Shared, compare, share_weights
from attnviz.subjects import Subject, SubjectError, Wishes, build

__all__ = ["assert_causal", "assert_equivalent"]

_BY_DEFAULT = ("float64", "float32", "bfloat16")


def assert_causal(
    module: Callable[..., Any], d_model: int | None = None, *, length: int = 16, dtypes: Sequence[str] = _BY_DEFAULT,
    device: str = "cpu", scale: float = 1.0, seed: int = 0, strict: bool = False,
) -> None:  # fmt: skip
    """Fail unless changing a token moves no earlier output of ``module``: an nn.Module, or a function x → y.

    Inputs are (B, L, d), outputs (B, L, o).

    ``d_model`` is the width d of an input token (a module's own by default, else 64). The module is copied, put into
    eval mode, and tested in each of ``dtypes`` over ``length`` tokens of normal numbers × ``scale``. Rounding, up to 8
    eps of the largest output, passes where float64 shows no more; ``strict`` lets a leak of the arithmetic alone fail
    too.
    """
    __tracebackhide__ = True  # a failure is the caller's
    plan = _plan(device, dtypes, length, scale, seed)
    subject = _subject(module, d_model)
    *_, last = answers(subject, plan)
    for reading in last.readings:
        bad = (
            reading.verdict in ("leak in the code", "cannot tell")
            or reading.mixes_batch
            or (reading.nan_rows and not reading.overflows)
        )
        if bad or (strict and reading.verdict == "leak in the arithmetic"):
            raise AssertionError(_said(subject, reading, last.pattern))
    if all(reading.verdict == "untested" for reading in last.readings):
        raise AssertionError(f"{subject.name} could not be tested: {last.readings[0].remark}")


def assert_equivalent(
    one: Callable[..., Any], other: Callable[..., Any], d_model: int | None = None, *, length: int = 16,
    dtypes: Sequence[str] = _BY_DEFAULT, device: str = "cpu", scale: float = 1.0, seed: int = 0, share: bool = True,
) -> None:  # fmt: skip
    """Fail unless two modules give the same outputs and the same gradients of their inputs, up to rounding.

    Where names and shapes of their weights agree, ``other`` takes those of ``one`` first (``share``), in place.
    """
    __tracebackhide__ = True
    plan = _plan(device, dtypes, length, scale, seed)
    subjects = _subject(one, d_model), _subject(other, d_model)
    shared = share_weights(one, other) if share else Shared("each as it is")
    *_, last = compare(*subjects, plan, shared)
    for found in last.found:
        if found.same == "differ":
            where = f", most at token {found.token}" if found.token is not None else ""
            far = found.remark or f"outputs {found.outputs:.3g} eps, gradients {found.gradients:.3g} eps apart{where}"
            raise AssertionError(
                f"{subjects[0].name} and {subjects[1].name} differ in {found.dtype} ({shared.words}): {far}"
            )
    if all(found.same == "untested" for found in last.found):
        raise AssertionError(f"they could not be compared: {last.found[0].remark} ({shared.words})")


def _subject(module: Callable[..., Any], d_model: int | None) -> Subject:
    name = getattr(module, "__name__", type(module).__name__)
    try:
        subject = build(module, name, Wishes(d_model=d_model or 64))
    except SubjectError as error:
        raise AssertionError(error.sentence) from error
    return subject if d_model is None else Subject(name, subject.run, d_model, subject.call)


def _plan(device: str, dtypes: Sequence[str], length: int, scale: float, seed: int) -> Plan:
    """One scale in each of ``dtypes``. Raises ValueError for what cannot be tested."""
    if length < 2 or not 0 < scale < math.inf:
        raise ValueError(f"length is {length} and scale {scale:g}: a test needs two tokens and a scale above 0")
    odd = [name for name in dtypes if name not in DTYPES]
    if odd or not dtypes:
        raise ValueError(f"dtypes are {', '.join(DTYPES)}, not {', '.join(odd) or 'none of them'}")
    return Plan((device,), tuple(dtypes), length, scale, seed, (1.0,))


def _said(subject: Subject, reading: Reading, pattern: str) -> str:
    leaks = "moves" if reading.verdict == "cannot tell" else "leaks"
    lines = [f"{subject.name} {leaks} in {reading.dtype} on {reading.device}: {reading.verdict}"]
    if reading.nan_rows:
        lines = [f"{subject.name} gives NaN in {reading.dtype} on {reading.device}: {reading.nan_rows} outputs"]
    if reading.mixes_batch:
        lines.append("an item of the batch moves another")
    if reading.pair is not None:
        row, col = reading.pair
        lines.append(f"output {row} moves when token {col} changes; the largest movement is {reading.figure:.3g} eps")
    if pattern:
        lines.append(f"it looks like: {pattern}")
    lines += ["who sees whom (a line an output; X leaks, o may, . does not move, ? is not known):", text_map(reading)]
    return "\n".join(lines)
