"""The arithmetic of a plot's axes: from numbers to places, and ticks with their words. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of numbers, ``low`` < ``high``, and whether their logarithms are what is spread out evenly."""

    extent: tuple[float, float]
    log: bool = False

    @property
    def low(self) -> float:
        return self.extent[0]

    @property
    def high(self) -> float:
        return self.extent[1]

    def place(self, value: float) -> float:
        """Where ``value`` lies: 0 at the low end, 1 at the high one; NaN where it has no place."""
        return float(self.places(np.array([value], np.float64))[0])

    def places(self, values: Floats) -> Floats:
        """`place` of each of ``values``."""
        low, high = self.extent
        with np.errstate(all="ignore"):
            if self.log:
                found: Floats = np.where(values > 0, np.log(values), np.nan)
                low, high = math.log(low), math.log(high)
            else:
                found = np.asarray(values, np.float64)
            placed: Floats = (found - low) / (high - low)
        return placed


def tick_places(axis: Axis, most: int) -> list[tuple[float, str]]:
    """At most ``most`` (and at least two, if it can be) round numbers on ``axis``, rising, with their words."""
    if axis.log:
        return _log_ticks(axis, most)
    step = _round_step((axis.high - axis.low) / max(most, 1))
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(n * step, _fixed(n * step, decimals, step)) for n in range(first, last + 1)]


def _log_ticks(axis: Axis, most: int) -> list[tuple[float, str]]:
    low, high = math.log10(axis.low), math.log10(axis.high)
    first, last = math.floor(low - 1e-9), math.ceil(high + 1e-9)
    found: list[list[float]] = []
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [n * 10.0**decade for decade in range(first, last + 1) for n in factors]
        found.append([value for value in values if axis.low * (1 - 1e-12) <= value <= axis.high * (1 + 1e-12)])
        if 2 <= len(found[-1]) <= most:
            return [(value, number_words(value)) for value in found[-1]]
    if len(found[0]) < 2:  # so short a range is ticked as a linear one
        return tick_places(Axis(axis.extent), most)
    values = found[-1] if len(found[-1]) >= 2 else found[0]
    return [(value, number_words(value)) for value in values[:: math.ceil(len(values) / max(most, 1)) or 1]]


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((n * power for n in (1, 2, 5) if n * power >= least * (1 - 1e-9)), 10 * power)


def _fixed(value: float, decimals: int, step: float) -> str:
    if abs(value) < step / 1e6:
        return "0"
    if decimals > 4 or abs(value) >= 1e6:
        return number_words(value)
    return f"{value:,.{decimals}f}".replace("-", "−")


def number_words(value: float) -> str:
    """A number for an axis or a table: up to three digits, thousands apart, a true minus, 1e−5 for what is small."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value).replace("nan", "NaN").replace("inf", "∞").replace("-", "−")
    if 1e-3 <= abs(value) < 1e6:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return text.replace("-", "−")
