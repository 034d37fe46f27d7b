"""Names along the sides of a map, and how wide they are."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from attnviz.figure.fonts import boxed
from attnviz.frames import Outline
from attnviz.spec import QUERY_KEY_STAGES

_LABEL_EMS = 7.0

PERCENT_UP_TO_KEYS: Final = 12
"""Weights of so few keys are shown as percentages."""


class Labels(Sequence[str]):
    """Names along one side of a map: ``names`` from ``first`` on, or numbers where there are none."""

    def __init__(self, names: Sequence[str], first: int, length: int) -> None:
        self._names, self._first, self._length = names, first, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 (Sequence's own overloads)
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(self._length))]
        if not -self._length <= place < self._length:
            raise IndexError(place)
        place %= self._length
        return self._names[self._first + place] if self._names else str(place)


def map_shape(outline: Outline) -> tuple[int, int]:
    """Rows and columns of the shown stage's maps."""
    shape = next((stage.shape for stage in outline.stages if stage.name == outline.stage), None)
    return (shape[-2], shape[-1]) if shape else (outline.n_queries, outline.n_keys)


def axis_labels(outline: Outline) -> tuple[Labels, Labels]:
    """Names of the rows and of the columns of the shown stage's maps."""
    n_rows, n_cols = map_shape(outline)
    names = outline.query_names or outline.tokens
    rows = Labels(names, len(names) - n_rows, n_rows)
    if outline.stage in QUERY_KEY_STAGES:
        return rows, Labels(outline.tokens, 0, n_cols)
    if outline.stage == "row_sums":
        return rows, Labels(("Σ",), 0, 1)
    named = outline.stage in ("values", "context", "dropped_context") and len(outline.dims) == n_cols
    return rows, Labels(outline.dims if named else (), 0, n_cols)


def text_ems(text: str) -> float:
    """Width of ``text`` in ems, estimated from above without a font: wide characters 1 em, others by kind.

    Where there is a font it says which of them are boxes.
    """
    return _ems(text, boxed(text))


@lru_cache(maxsize=4096)  # the same few names are measured for each of many layouts
def _ems(text: str, boxes: str) -> float:
    return sum(_box_ems(char) if char in boxes else _char_ems(char) for char in text)


def _box_ems(char: str) -> float:
    return 0.4 + 0.38 * len(f"{ord(char):04X}")


def _char_ems(char: str) -> float:
    if unicodedata.category(char) in ("Mn", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF" and ord(char) < 0x10000:
        return 1.0
    if char in "MWmw@%∞—…ÆæŒœ©¼½¾" or ord(char) >= 0x2190:
        return 1.0 if ord(char) < 0x10000 else 1.9  # perhaps a box with its code point
    for letters, ems in _SLIM:
        if char in letters:
            return ems
    return 0.79 if char.isupper() or char == "&" else 0.64


_SLIM: Final = (("ijlI.,:;'|! ", 0.33), ("frt()[]{}-/", 0.4), ("sczvxykJ?0123456789", 0.56))
"""Letters that take less than others, by what the widest of them takes: names of tokens are mostly made of these."""


def label_step(cell: float, least: float) -> int:
    """Cells from one label to the next, 1, 2, 5, 10 …: the smallest step at least ``least`` pixels wide."""
    step, factors = 1, 0
    while step * cell < least:
        factors += 1
        step = (1, 2, 5)[factors % 3] * 10 ** (factors // 3)
    return step


def widest_ems(labels: Labels, span: tuple[int, int] | None = None) -> float:
    """Width in ems of the widest label (of a half-open ``span`` of them), at most seven; of a long one a sample's."""
    return min(max(map(text_ems, _sample(labels, span))), _LABEL_EMS)


def are_numbers(labels: Labels, span: tuple[int, int] | None = None) -> bool:
    """Whether the labels (of a half-open ``span`` of them) count; of a long one a sample is looked at."""
    return all(label.isdigit() for label in _sample(labels, span))


def _sample(labels: Labels, span: tuple[int, int] | None) -> list[str]:
    """At most some 256 labels, the last one among them."""
    first, end = span or (0, len(labels))
    return [*(labels[place] for place in range(first, end, max(1, (end - first) // 256))), labels[end - 1]]
