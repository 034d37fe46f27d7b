"""What a figure says: rounding, a leak in the code, or one of the arithmetic alone."""

from __future__ import annotations

from attnviz.questions.leak import ROUNDING_EPS, Verdict


def verdict_of(figure: float, in_float64: float | None) -> Verdict:
    """Of the largest movement of an output that must not move, in eps × the largest output, here and in float64.

    None where float64 cannot be run. What moves by not one bit is clean whatever float64 does: there the fill is deep
    enough.
    """
    if figure == 0:
        return "exactly zero"
    if in_float64 is None:
        return "rounding" if figure <= ROUNDING_EPS else "cannot tell"
    if in_float64 > ROUNDING_EPS:
        return "leak in the code"
    return "rounding" if figure <= ROUNDING_EPS else "leak in the arithmetic"
