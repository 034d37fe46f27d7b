"""What a dtype makes of the number that hidden scores are filled with, and in words. Plain Python, without torch."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from attnviz.spec.attention import AttentionSpec

LARGEST: Final = {"float64": 1.79e308, "float32": 3.4e38, "bfloat16": 3.38e38, "float16": 65504.0}
"""The largest fill of each dtype; the largest bfloat16 is 3.3895e38."""

_LOWEST: Final = {
    "float64": -math.inf, "float32": -3.4028234663852886e38, "bfloat16": -3.3895313892515355e38, "float16": -65504.0,
}  # fmt: skip
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

FILLS: Final[Mapping[str, float]] = MappingProxyType(
    {"−∞": -math.inf, "−10⁹": -1e9, "−10⁶": -1e6, "−10⁴": -1e4, "0": 0.0}
)
"""Fills to choose from, as they are written."""


def held(number: float, dtype: str) -> float:
    """``number`` as ``dtype`` holds it, cast as torch casts a double: through float32, to the nearest, ties to even.

    Numbers beyond the largest become infinite.
    """
    if dtype == "float64" or not math.isfinite(number):
        return number
    single = _packed(number, "f")
    if dtype == "float32" or not math.isfinite(single):
        return single
    if dtype == "float16":
        return _packed(single, "e")
    bits = int.from_bytes(struct.pack(">f", single), "big")
    bits += 0x7FFF + (bits >> 16 & 1)  # to the nearest upper half, ties to even
    return float(struct.unpack(">f", (bits >> 16 << 16).to_bytes(4, "big"))[0])


def fill_words(spec: AttentionSpec) -> str | None:
    """One sentence on what the spec's dtype makes of its fill; None where it holds it exactly or nothing is filled."""
    if not spec.fills:
        return None
    dtype, made = spec.dtype, held(spec.fill, spec.dtype)
    if made == spec.fill:
        return None
    if made == -math.inf:
        said = f"{dtype} has no {number_words(spec.fill)}: it becomes −∞"
    else:
        said = f"{dtype} makes {number_words(spec.fill)} into {number_words(made)}"
    beyond = spec.mask == "neg-inf" and spec.fill < _LOWEST[dtype]
    return f"{said} (torch's masked_fill would refuse it)" if beyond else said


def fill_text(fill: float) -> str:
    """A fill as it stands in the list of `FILLS`, or as it was typed."""
    listed = next((text for text, value in FILLS.items() if value == fill), None)
    return listed or number_text(fill).replace("e+", "e").replace("e-0", "e-").replace("e0", "e").replace("-", "−")


def number_text(value: float | None) -> str:
    """A number with as many digits as it needs; "none" where there is none."""
    return "none" if value is None else f"{value:g}" if float(f"{value:g}") == value else repr(value)


def number_words(number: float) -> str:
    """``number`` for a sentence: −10⁹ for a power of ten from 10⁴ up, −9,984 for an integer, else nine digits."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    sign, size = "−" if number < 0 else "", abs(number)
    if size == 0:
        return "0"
    power = round(math.log10(size))
    if abs(power) >= 4 and size == float(f"1e{power}"):
        return f"{sign}10{raised(power)}"
    if size < 1e15 and size == int(size):
        return f"{sign}{int(size):,}"
    mantissa, _, exponent = f"{size:.9g}".partition("e")
    return f"{sign}{mantissa} · 10{raised(int(exponent))}" if exponent else sign + mantissa


def raised(power: int) -> str:
    """A whole number in small digits above the line: ⁻⁹."""
    return str(power).translate(_SUPERSCRIPTS)


def _packed(number: float, form: str) -> float:
    """``number`` in a format of `struct`, rounded to the nearest; infinite where it is too large for it."""
    try:
        return float(struct.unpack(form, struct.pack(form, number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
