"""Mask shapes: which keys a query may see, as data. The arithmetic on tensors is `attnviz.attention.masks`.

Queries are the last of the tokens: query i of Q stands at position p = i + K − Q among K keys. Every shape but a
file's shows a query one run of keys, `visible_run`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

import msgspec

from attnviz.spec.checks import SpecError, check_range, convert

_MOST: Final = 1 << 40


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
        check_range("mask_shape", self.width, 1, _MOST)


class Prefix(Shape, frozen=True, tag="prefix"):
    """Keys up to p, and the first ``length`` keys always (a prompt that sees itself both ways)."""

    length: int

    def __post_init__(self) -> None:
        check_range("mask_shape", self.length, 0, _MOST)


class PadLeft(Shape, frozen=True, tag="pad-left"):
    """Keys up to p without the first ``count``, which are padding."""

    count: int

    def __post_init__(self) -> None:
        check_range("mask_shape", self.count, 0, _MOST)


class PadRight(Shape, frozen=True, tag="pad-right"):
    """Keys up to p without the last ``count``, which are padding."""

    count: int

    def __post_init__(self) -> None:
        check_range("mask_shape", self.count, 0, _MOST)


class Blocks(Shape, frozen=True, tag="blocks"):
    """Documents packed one behind the other: keys up to p of p's own document. What remains is one document more."""

    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.lengths:
            raise SpecError("mask_shape", "blocks has no lengths: give blocks:A,B,… such as blocks:128,64")
        for length in self.lengths:
            check_range("mask_shape", length, 1, _MOST)


class MaskFile(Shape, frozen=True, tag="file"):
    """A NumPy file with a bool array (queries, keys), True where a query may look (as in SDPA)."""

    path: str
    sha256: str


AnyShape = Causal | Full | SlidingWindow | Prefix | PadLeft | PadRight | Blocks | MaskFile

SHAPE_FORMS: Final = "causal, full, window:W, prefix:P, pad-left:N, pad-right:N, blocks:A,B,… or FILE.npy"
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
    if name not in _NUMBERED and name != "blocks":
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
        case Causal() | Full():
            return shape.__struct_config__.tag  # type: ignore[return-value]
        case SlidingWindow(width=number) | Prefix(length=number) | PadLeft(count=number) | PadRight(count=number):
            return f"{shape.__struct_config__.tag}:{number}"


def visible_run(shape: AnyShape, position: int, n_keys: int) -> tuple[int, int]:
    """Half-open run of the keys that a query at ``position`` may see; empty runs are (n, n). Not for files."""
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


def padded_keys(shape: AnyShape, n_keys: int) -> tuple[int, int]:
    """Half-open run of the keys that are padding, (0, 0) where none is."""
    match shape:
        case PadLeft(count=count):
            return 0, min(count, n_keys)
        case PadRight(count=count):
            return max(n_keys - count, 0), n_keys
    return 0, 0
