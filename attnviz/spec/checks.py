"""The error of a wrong request, and the checks that raise it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

MAX_TYPED_TOKENS: Final = 32
MAX_TYPED_DIMS: Final = 1024
"""Columns of typed values: as many as a frozen head may have dimensions."""

Matrix = tuple[tuple[float, ...], ...]


class SpecError(ValueError):
    """A request that cannot be computed. The sentence names the field, the value and what would do.

    ``field`` is the name of the spec or view field at fault, so that a window can put the words beside its control.
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def one_line(sentence: str, most: int = 400) -> str:
    """A sentence about any value, in one line that can be read: of over ``most`` letters without the middle."""
    said = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in sentence)
    return said if len(said) <= most else f"{said[: most // 2]} … {said[-(most // 2 - 20) :]}"


def convert(kind: Any, fields: Any, choices_of: Mapping[str, tuple[str, ...]]) -> Any:
    """``fields`` as ``kind``; msgspec's complaints become `SpecError` with the field's name and its choices."""
    try:
        return msgspec.convert(fields, kind)
    except UnicodeEncodeError as error:
        raise SpecError("file", f"{error.object!a} is no text: it holds half of a letter") from None
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SpecError):
            raise error.__cause__ from None
        path = re.search(r"`\$\.?([^`]*)`", str(error))
        field = (path.group(1) if path else "") or "source"
        value = fields.get(field) if isinstance(fields, dict) else None
        said = "" if value is None else f" is {value!r}"
        choices = choices_of.get(field)
        words = f"give {', '.join(choices)}" if choices else str(error).split(" - at ")[0]
        raise SpecError(field.split(".")[0].split("[")[0], f"{field}{said}: {words}") from None


def check_range(field: str, value: int, low: int, high: int) -> None:
    """`SpecError` unless ``value`` lies between ``low`` and ``high``, both included."""
    if not low <= value <= high:
        raise SpecError(field, f"{field} is {value}: give a whole number from {low} to {high:,}")


def check_matrix(field: str, matrix: Matrix, *, allow_neg_inf: bool = False, of_tokens: bool = True) -> int:
    """Number of columns of a small finite rectangle of numbers, or `SpecError`.

    ``of_tokens`` says that the columns are tokens as the rows are; else dimensions, of which there may be more.
    """
    width = len(matrix[0]) if matrix else 0
    if width == 0:
        raise SpecError(field, f"{field} is empty: give rows of numbers, such as 1 0; 0 1")
    for row, numbers in enumerate(matrix):
        if len(numbers) != width:
            raise SpecError(
                field, f"{field} has {len(numbers)} numbers in row {row} but {width} in row 0: give as many in each"
            )
        for number in numbers:
            if not (math.isfinite(number) or (allow_neg_inf and number == -math.inf)):
                also = " or -inf" if allow_neg_inf else ""
                raise SpecError(field, f"{field} has {number} in row {row}: give finite numbers{also}")
    if not of_tokens and width > MAX_TYPED_DIMS:
        raise SpecError(
            field, f"{field} has {width:,} columns: a typed matrix has at most {MAX_TYPED_DIMS:,} dimensions"
        )
    if max(len(matrix), width if of_tokens else 0) > MAX_TYPED_TOKENS:
        raise SpecError(
            field, f"{field} is {len(matrix)} x {width}: a typed matrix has at most {MAX_TYPED_TOKENS} tokens"
        )
    return width


def check_token_names(tokens: tuple[str, ...], keys: int) -> None:
    """`SpecError` unless there are no names or one for each of ``keys``."""
    if tokens and len(tokens) != keys:
        raise SpecError("tokens", f"tokens has {len(tokens)} names, but there are {keys} keys: one name a key")
