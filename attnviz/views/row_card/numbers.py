"""How the row card prints its numbers, and what a reader makes of the printed digits. Pure."""

from __future__ import annotations

import math
from typing import Final

from attnviz.figure import marks
from attnviz.spec.fills import number_words

_LARGE: Final = 10_000.0
_ROUNDING: Final = 0.0005
NAN: Final = "NaN"


def share(value: float, decimals: int | None, n_keys: int) -> str:
    """A weight for a column: "12 %", in a long row "0.12 %", or with ``decimals`` digits, ".1192"."""
    value += 0.0  # −0 is 0
    if math.isnan(value):
        return NAN
    if decimals is not None:
        return marks.cell_number(value, decimals)
    if 0 < value < 0.005 and n_keys > marks.PERCENT_UP_TO_KEYS:
        return f"{100 * value:.2f} %" if value >= 5e-5 else "< .01 %"
    return marks.percentage(value)


def told_share(value: float, decimals: int | None) -> str:
    """A weight in a formula: whole percent, but with the digits that tell it from 0 and from all."""
    value += 0.0
    if math.isnan(value):
        return NAN
    if decimals is not None:
        return marks.cell_number(value, decimals)
    if value in (0, 1):
        return f"{100 * value:.0f} %"
    first = 1 - math.floor(math.log10(100 * value)) if 5e-7 < value < 0.005 else 0  # two digits of a small share
    for digits in range(first, 6):
        text = f"{100 * value:.{digits}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text} %"
    return f"{_power(100 * value)} %" if abs(value) < 0.5 else "100 %"


def told_sum(value: float, decimals: int | None) -> str:
    """A sum of shares in a formula: as `told_share`, but 100 % where no more than rounding keeps it from 1."""
    return told_share(1.0 if decimals is None and 1 - _ROUNDING < value < 1.005 else value, decimals)


def score(value: float, decimals: int = 2) -> str:
    """A score in up to ``decimals`` decimals, trailing zeros cut; −10⁹ and 1.2e−5 where these say nothing."""
    value += 0.0
    if math.isnan(value):
        return NAN
    if math.isfinite(value) and abs(value) >= _LARGE:
        words = number_words(value)
        return words if len(words) <= 8 else _power(value)
    if value != 0 and abs(value) < 0.5 * 10.0**-decimals:
        return _power(value)
    return _trimmed(marks.cell_number(value, decimals))


def exponential(value: float, decimals: int | None = None) -> str:
    """An e^s in about three digits: "7.39", "1", "1.2e−5"; ``decimals`` more than two are kept."""
    digits = max(decimals or 2, 2)
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return "∞"
    if value != 0 and not 10.0**-digits <= value < 1e5:
        return _power(value, digits - 1)
    if value >= 100 and digits == 2:
        return f"{value:.0f}"
    return _trimmed(marks.cell_number(value, digits))


def component(value: float, decimals: int | None) -> str:
    """A number of a context vector: ".21", "3e−4"."""
    value += 0.0
    if math.isnan(value):
        return NAN
    return marks.formatted(value, "short") if decimals is None else marks.cell_number(value, decimals)


def read(text: str) -> float:
    """The number that printed digits stand for; NaN where they name none, as "< 1 %"."""
    plain = text.replace("−", "-").replace("∞", "inf")
    percent = plain.endswith(" %")
    try:
        number = float(plain.removesuffix(" %"))
    except ValueError:
        return math.nan
    return number / 100 if percent else number


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _power(value: float, digits: int = 1) -> str:
    """A mantissa and a power of ten: "1.2e−5"."""
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")
