"""Mask shapes: which keys a query may see, as data. The arithmetic on tensors is `attnviz.attention.masks`.

Queries are the last of the tokens: query i of Q stands at position p = i + K − Q among K keys. Every shape but a
file's and what is drawn shows a query one run of keys, `visible_run`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate
from typing import Final

import msgspec

from attnviz.spec.checks import SpecError, convert

_MOST: Final = 1 << 40
MAX_DRAWN: Final = 4096
"""Tokens of the longest map for which a mask can be drawn."""

_SAID: Final = 60  # characters of what was typed, in a complaint


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Which keys a query at position p may see."""


class Causal(Shape, frozen=True, tag="causal"):
    """Keys up to p: the past and itself."""


class Full(Shape, frozen=True, tag="full"):
    """Every key."""


class SlidingWindow(Shape, frozen=True, tag="window"):
    """The last ``width`` keys up to p, itself among them."""

    width: int

    def __post_init__(self) -> None:
        _check_number("window:W", self.width, 1)


class Prefix(Shape, frozen=True, tag="prefix"):
    """Keys up to p, and the first ``length`` keys always (a prompt that sees itself both ways)."""

    length: int

    def __post_init__(self) -> None:
        _check_number("prefix:P", self.length, 0)


class PadLeft(Shape, frozen=True, tag="pad-left"):
    """Keys up to p without the first ``count``, which are padding."""

    count: int

    def __post_init__(self) -> None:
        _check_number("pad-left:N", self.count, 0)


class PadRight(Shape, frozen=True, tag="pad-right"):
    """Keys up to p without the last ``count``, which are padding."""

    count: int

    def __post_init__(self) -> None:
        _check_number("pad-right:N", self.count, 0)


class Blocks(Shape, frozen=True, tag="blocks"):
    """Documents packed one behind the other: keys up to p of p's own document. What remains is one document more."""

    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.lengths:
            raise SpecError("mask_shape", "blocks has no lengths: give blocks:A,B,… such as blocks:128,64")
        for length in self.lengths:
            _check_number("blocks:A,B,…", length, 1)


class MaskFile(Shape, frozen=True, tag="file"):
    """A NumPy file with a bool array (queries, keys), True where a query may look (as in SDPA)."""

    path: str
    sha256: str


Run = tuple[int, int, int]
"""A query and the first and last key of a run that it sees, both included."""


class Drawn(Shape, frozen=True, tag="drawn"):
    """A mask drawn by hand: runs of *visible* keys as (row, first, last), ``last`` included.

    Rows are queries, counted from 0 whatever the number of keys; one without a run sees nothing. Runs are kept sorted,
    and those that touch are one, so that equal masks are equal specs. What lies beyond a map is cut off.
    """

    runs: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        for row, first, last in self.runs:
            if not (0 <= row < MAX_DRAWN and 0 <= first <= last < MAX_DRAWN):
                raise SpecError(
                    "mask_shape",
                    f"mask_shape has the run {row}:{first}-{last}: give row:first-last, each from 0 to "
                    f"{MAX_DRAWN - 1:,} and first not beyond last",
                )
        msgspec.structs.force_setattr(self, "runs", _merged(self.runs))


AnyShape = Causal | Full | SlidingWindow | Prefix | PadLeft | PadRight | Blocks | MaskFile | Drawn

SHAPE_FORMS: Final = (
    "causal, full, window:W, prefix:P, pad-left:N, pad-right:N, blocks:A,B,…, drawn:ROW:FIRST-LAST,… or FILE.npy"
)
_NUMBERED: Final = {
    "window": ("width", SlidingWindow),
    "prefix": ("length", Prefix),
    "pad-left": ("count", PadLeft),
    "pad-right": ("count", PadRight),
}


def parse_shape(text: str) -> AnyShape | None:
    """The shape that ``text`` names, such as window:128; None where it can only be a file's path.

    Raises `SpecError` for a shape's name without its number.
    """
    name, colon, number = text.strip().partition(":")
    if name == "causal" and not colon:
        return Causal()
    if name == "full" and not colon:
        return Full()
    if name == "drawn" and colon:
        return Drawn(runs=tuple(_read_run(text, part) for part in number.split(",") if number.strip()))
    if name not in _NUMBERED and name not in ("blocks", "drawn"):
        return None
    try:
        numbers = tuple(int(part) for part in number.split(","))
    except ValueError:
        numbers = ()
    if not numbers or (name != "blocks" and len(numbers) > 1):
        raise SpecError("mask_shape", f"mask_shape is {text!r}: give {SHAPE_FORMS}")
    if name == "blocks":
        return Blocks(lengths=numbers)
    field, kind = _NUMBERED[name]
    return convert(kind, {field: numbers[0]}, {})  # type: ignore[no-any-return]


def shape_text(shape: AnyShape) -> str:
    """The shape as `parse_shape` reads it; a file's path."""
    match shape:
        case Blocks(lengths=lengths):
            return "blocks:" + ",".join(map(str, lengths))
        case MaskFile(path=path):
            return path
        case Drawn(runs=runs):
            return "drawn:" + ",".join(f"{row}:{first}-{last}" for row, first, last in runs)
        case Causal() | Full():
            return shape.__struct_config__.tag  # type: ignore[return-value]
        case SlidingWindow(width=number) | Prefix(length=number) | PadLeft(count=number) | PadRight(count=number):
            return f"{shape.__struct_config__.tag}:{number}"


def visible_run(shape: AnyShape, position: int, n_keys: int) -> tuple[int, int]:
    """Half-open run of the keys that a query at ``position`` may see; empty runs are (n, n).

    Not for files, nor for what is drawn, where a query may see several: `visible_runs`.
    """
    if isinstance(shape, MaskFile | Drawn):
        raise TypeError(f"{type(shape).__name__} shows a query several runs of keys")
    own = min(position + 1, n_keys)
    match shape:
        case Full():
            first, end = 0, n_keys
        case SlidingWindow(width=width):
            first, end = own - width, own
        case Prefix(length=length):
            first, end = 0, max(own, length)
        case PadLeft(count=count):
            first, end = count, own
        case PadRight(count=count):
            first, end = 0, min(own, n_keys - count)
        case Blocks(lengths=lengths):
            first, end = max((start for start in (0, *accumulate(lengths)) if start <= position), default=0), own
        case _:
            first, end = 0, own
    first, end = max(first, 0), min(max(end, 0), n_keys)
    return (first, end) if first < end else (min(first, n_keys), min(first, n_keys))


def visible_runs(shape: AnyShape, row: int, n_queries: int, n_keys: int) -> tuple[tuple[int, int], ...]:
    """Half-open runs of the keys that query ``row`` of ``n_queries`` may see, in order, none empty. Not for files."""
    if isinstance(shape, Drawn):
        own = shape.runs[bisect_left(shape.runs, (row,)) : bisect_left(shape.runs, (row + 1,))]
        cut = [(first, min(last + 1, n_keys)) for _, first, last in own]
    else:
        cut = [visible_run(shape, row + n_keys - n_queries, n_keys)]
    return tuple((first, end) for first, end in cut if first < end)


def as_drawn(shape: AnyShape, n_queries: int, n_keys: int) -> Drawn:
    """``shape`` on a map of ``n_queries`` × ``n_keys`` as drawn runs, to go on drawing from. Not for a file's.

    Raises `SpecError` for a map of more than `MAX_DRAWN` tokens.
    """
    check_drawable(n_keys)
    every = ((row, visible_runs(shape, row, n_queries, n_keys)) for row in range(n_queries))
    return Drawn(runs=tuple((row, first, end - 1) for row, runs in every for first, end in runs))


def toggled(drawn: Drawn, row: int, cols: range, visible: bool) -> Drawn:
    """``drawn`` with the keys ``cols`` of query ``row`` made visible, or hidden. ``cols`` has a step of 1."""
    if not len(cols):
        return drawn
    others = [run for run in drawn.runs if run[0] != row]
    own = [run for run in drawn.runs if run[0] == row]
    if visible:
        own.append((row, cols[0], cols[-1]))
    else:
        sides = ((row, first, min(last, cols[0] - 1)) for _, first, last in own)
        beyond = ((row, max(first, cols[-1] + 1), last) for _, first, last in own)
        own = [run for run in (*sides, *beyond) if run[1] <= run[2]]
    return Drawn(runs=(*others, *own))


def check_drawable(n_keys: int) -> None:
    """`SpecError` for a map of too many tokens for a drawn mask."""
    if n_keys > MAX_DRAWN:
        raise SpecError(
            "mask_shape",
            f"a drawn mask has at most {MAX_DRAWN:,} tokens, but there are {n_keys:,}: take another shape, or a file",
        )


def _check_number(form: str, number: int, least: int) -> None:
    if number < least:
        raise SpecError("mask_shape", f"mask_shape is {number}: give {least} or more for {form}")
    if number > _MOST:
        raise SpecError("mask_shape", f"mask_shape is {number}: that is more than any map has; give less for {form}")


def _merged(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """``runs`` in order, with those of a row that overlap or touch as one."""
    merged: list[Run] = []
    for row, first, last in sorted(runs):
        if merged and merged[-1][0] == row and first <= merged[-1][2] + 1:
            merged[-1] = row, merged[-1][1], max(merged[-1][2], last)
        else:
            merged.append((row, first, last))
    return tuple(merged)


def _read_run(text: str, part: str) -> Run:
    found = re.fullmatch(r"\s*(\d{1,9}):(\d{1,9})-(\d{1,9})\s*", part)
    if found is None:
        raise SpecError("mask_shape", f"mask_shape is {_shortened(text)!r}: give {SHAPE_FORMS}")
    return int(found[1]), int(found[2]), int(found[3])


def _shortened(text: str) -> str:
    return text if len(text) <= _SAID else text[:_SAID] + "…"


def padded_keys(shape: AnyShape, n_keys: int) -> tuple[int, int]:
    """Half-open run of the keys that are padding, (0, 0) where none is."""
    match shape:
        case PadLeft(count=count):
            return 0, min(count, n_keys)
        case PadRight(count=count):
            return max(n_keys - count, 0), n_keys
    return 0, 0
