"""Matrices typed by hand: text → rows of numbers."""

from __future__ import annotations

import re

from attnviz.spec import MAX_TYPED_TOKENS, Matrix, SpecError

_MINUS_INFINITY = frozenset({"-inf", "−inf", "-∞", "−∞"})
_LONGEST_WORD_SAID = 40


def parse_matrix(text: str, field: str = "scores") -> Matrix:
    """Rows of numbers from text: rows parted by ; or lines, numbers by spaces or commas; −∞ as -inf; ``ones:6``.

    Raises `SpecError` for ``field`` with the word that is no number. Sizes are the spec's to judge.
    """
    shorthand = re.fullmatch(r"\s*ones:([0-9]{1,9})\s*", text)
    if shorthand:
        side = int(shorthand.group(1))
        if not 1 <= side <= MAX_TYPED_TOKENS:
            raise SpecError(field, f"{field} is ones:{side}: give ones:1 to ones:{MAX_TYPED_TOKENS}")
        return ((1.0,) * side,) * side
    rows = [row for row in re.split(r"[;\n]", text) if row.strip()]
    return tuple(tuple(_number(word, field) for word in re.split(r"\s*,\s*|\s+", row.strip())) for row in rows)


def _number(word: str, field: str) -> float:
    if not word:
        raise SpecError(field, f"{field} has a comma with no number before or after it: give one number between commas")
    if word.lower() in _MINUS_INFINITY:
        return float("-inf")
    try:
        return float(word.replace("−", "-"))
    except ValueError:
        said = word if len(word) <= _LONGEST_WORD_SAID else f"{word[:_LONGEST_WORD_SAID]}…"
        raise SpecError(
            field, f"{field} has {said!r}, which is no number: give numbers such as 0.5 1; 0 2, or ones:6"
        ) from None


def matrix_text(matrix: Matrix) -> str:
    """``matrix`` as `parse_matrix` reads it, every number whole and as short as that allows."""
    return "; ".join(" ".join(repr(float(number)).removesuffix(".0") for number in row) for row in matrix)
