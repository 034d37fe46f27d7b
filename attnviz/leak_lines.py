"""Answers about leaks as lines of JSON: what a checking process says to the one that began it. Pure."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from typing import Any

import numpy as np

from attnviz.questions.leak import GradientReading, LeakAnswer, Reading


def to_line(answer: LeakAnswer) -> str:
    """What is new in the answer, its newest reading or its gradient, in one line."""
    told = {"done": answer.done, "total": answer.total, "pattern": answer.pattern, "blind": answer.blind}
    if answer.gradient is not None:
        return json.dumps({**told, "gradient": _plain(answer.gradient)}, allow_nan=False)
    reading = answer.readings[-1]
    plain = _plain(reading)
    return json.dumps({**told, "reading": plain}, allow_nan=False)


def from_line(line: str, before: LeakAnswer | None) -> LeakAnswer:
    """The answer that ``line`` tells, after ``before``. Raises ValueError for any other line."""
    try:
        told = json.loads(line)
        readings = before.readings if before is not None else ()
        slopes = None
        if "gradient" in told:
            slopes = GradientReading(**_read(told["gradient"], "at", "hidden_slope", "largest"))
        else:
            readings = (*readings, Reading(**_read(told["reading"], "pair", "figure")))
        return LeakAnswer(
            int(told["done"]), int(told["total"]), readings, told["pattern"], bool(told["blind"]), slopes
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no line of a check: {line[:80]}") from error


def _plain(reading: Reading | GradientReading) -> dict[str, Any]:
    """The fields, planes packed."""
    plain = {field.name: getattr(reading, field.name) for field in dataclasses.fields(reading)}
    plain = {name: str(value) if _is_no_number(value) else value for name, value in plain.items()}
    plain["cells"] = 0 if reading.moved is None else len(reading.moved)
    plain["moved"] = None if reading.moved is None else _packed(reading.moved.astype(np.float32))
    plain["hidden"] = None if reading.hidden is None else _packed(np.packbits(reading.hidden))
    return plain


def _is_no_number(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _read(plain: dict[str, Any], pair: str, *numbers: str) -> dict[str, Any]:
    """What `_plain` told, as fields again; ``pair`` is the one of two numbers, ``numbers`` may be infinite."""
    plain |= {name: float(plain[name]) for name in numbers}
    length = int(plain.pop("cells"))
    if plain["moved"] is not None:
        moved = np.frombuffer(base64.b64decode(plain["moved"]), np.float32).astype(np.float64)
        plain["moved"] = _frozen(moved.reshape(length, length))
        bits = np.frombuffer(base64.b64decode(plain["hidden"]), np.uint8)
        plain["hidden"] = _frozen(np.unpackbits(bits, count=length * length).astype(bool).reshape(length, length))
    plain[pair] = None if plain[pair] is None else (int(plain[pair][0]), int(plain[pair][1]))
    return plain


def _packed(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
