"""Answers about leaks as lines of JSON: what a checking process says to the one that began it. Pure."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from typing import Any

import numpy as np

from attnviz.questions.leak import LeakAnswer, Reading


def to_line(answer: LeakAnswer) -> str:
    """The answer with its newest reading alone, in one line."""
    reading = answer.readings[-1]
    plain = {field.name: getattr(reading, field.name) for field in dataclasses.fields(reading)}
    length = 0 if reading.moved is None else len(reading.moved)
    plain["figure"] = reading.figure if math.isfinite(reading.figure) else "inf"
    plain["moved"] = None if reading.moved is None else _packed(reading.moved.astype(np.float32))
    plain["hidden"] = None if reading.hidden is None else _packed(np.packbits(reading.hidden))
    head = {
        "done": answer.done,
        "total": answer.total,
        "pattern": answer.pattern,
        "blind": answer.blind,
        "cells": length,
    }
    return json.dumps({**head, "reading": plain}, allow_nan=False)


def from_line(line: str, before: LeakAnswer | None) -> LeakAnswer:
    """The answer that ``line`` tells, after ``before``. Raises ValueError for any other line."""
    try:
        told = json.loads(line)
        plain: dict[str, Any] = told["reading"]
        length = int(told["cells"])
        if plain["moved"] is not None:
            moved = np.frombuffer(base64.b64decode(plain["moved"]), np.float32).astype(np.float64)
            plain["moved"] = _frozen(moved.reshape(length, length))
            bits = np.frombuffer(base64.b64decode(plain["hidden"]), np.uint8)
            plain["hidden"] = _frozen(np.unpackbits(bits, count=length * length).astype(bool).reshape(length, length))
        plain["figure"] = float(plain["figure"])
        plain["pair"] = None if plain["pair"] is None else (int(plain["pair"][0]), int(plain["pair"][1]))
        readings = (*(before.readings if before is not None else ()), Reading(**plain))
        return LeakAnswer(int(told["done"]), int(told["total"]), readings, told["pattern"], bool(told["blind"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"no line of a check: {line[:80]}") from error


def _packed(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
