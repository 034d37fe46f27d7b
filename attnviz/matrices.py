"""Matrices typed by hand: text → rows of numbers."""

from __future__ import annotations

import re

from attnviz.spec import MAX_TYPED_TOKENS, Matrix, SpecError

_MINUS_INFINITY = frozenset({"-inf", "−inf", "-∞", "−∞"})


def parse_matrix(text: str, field: str = "scores") -> Matrix:
    """Rows of numbers from text: rows parted by ; or lines, numbers by spaces or commas; −∞ as -inf; ``ones:6``.

    Raises `SpecError` for ``field`` with the word that is no number.
    """
    shorthand = re.fullmatch(r"\s*ones:(\d+)\s*", text)
    if shorthand:
        side = int(shorthand.group(1))
        if not 1 <= side <= MAX_TYPED_TOKENS:
            raise SpecError(field, f"{field} is ones:{side}: give ones:1 to ones:{MAX_TYPED_TOKENS}")
        return ((1.0,) * side,) * side
    rows = [row for row in re.split(r"[;\n]", text) if row.strip()]
    return tuple(tuple(_number(word, field) for word in re.split(r"[\s,]+", row.strip())) for row in rows)


def _number(word: str, field: str) -> float:
    if word.lower() in _MINUS_INFINITY:
        return float("-inf")
    try:
        return float(word.replace("−", "-"))
    except ValueError:
        raise SpecError(field, f"{field} has {word!r}, which is no number: give numbers such as 0.5 1; 0 2") from None


def matrix_text(matrix: Matrix) -> str:
    """``matrix`` as `parse_matrix` reads it."""
    return "; ".join(" ".join(f"{number:g}" for number in row) for row in matrix)
