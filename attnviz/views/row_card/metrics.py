"""Sizes that the parts of the row card share, and where its columns stand."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from attnviz.figure.fonts import sized, text_width
from attnviz.views.row_card.lines import RowLines

TOKEN: Final = 20
NUMBER: Final = 15
SIGN: Final = 19
HEAD: Final = 13
SMALL: Final = 14
_GAP = 14.0
_LEAST_BAR = 44.0
_TOKEN_PART = 0.3
_SOME_NAMES: Final = 16
"""The names' column is as wide as the widest of so many first ones, and of as many longest ones."""

_TEMPLATES: Final = {
    "raw": "−88.88", "score": "−88.88", "added": "−88.88", "exponential": "888.88", "first": "> 99 %",
    "share": "> 99 %", "dropped": "> 99 %", "before": "> 99 %",
}  # fmt: skip
_WANTED_FIRST: Final = ("share", "before", "dropped", "first", "exponential", "score")


@dataclass(frozen=True, slots=True)
class Columns:
    """Where things stand across: the names' right edge, the bars' edges, and the columns' from left to right."""

    names: float
    bar_left: float
    bar_right: float
    spans: Mapping[str, tuple[float, float]]


def columns_of(lines: RowLines, width: float, scale: float, *, keep_before: bool = True) -> Columns:
    """The columns that fit beside a bar of some length.

    The room of *before* is kept where there is none yet, unless ``keep_before`` is False.
    """
    font, small = sized(NUMBER * scale), sized(HEAD * scale)
    tokens = (*lines.tokens[:_SOME_NAMES], *heapq.nlargest(_SOME_NAMES, lines.tokens, len))
    widest = max((text_width(sized(TOKEN * scale), token) for token in tokens), default=0.0)
    names = min(widest + 12 * scale, _TOKEN_PART * width)
    room = width - names - (_LEAST_BAR + _GAP) * scale
    there = {*lines.columns, *("before",) * keep_before}
    widths: dict[str, float] = {}
    for name in (*_WANTED_FIRST, *_wanted_last(lines)):
        if name not in there:
            continue
        template = f"8.{'8' * max(lines.decimals or 0, 2)}" if lines.decimals is not None else ""
        needed = max(text_width(font, _TEMPLATES[name]), text_width(font, template))
        needed = max(needed, text_width(small, lines.title(name))) + _GAP * scale
        if needed > room:
            break
        widths[name], room = needed, room - needed
    spread = min(room * 0.5 / max(len(widths), 1), 18 * scale)  # a wide card has air between its columns
    right = width
    spans: dict[str, tuple[float, float]] = {}
    for name in (*("before",) * ("before" not in lines.columns), *reversed(lines.columns)):
        if name in widths:
            spans[name] = right - widths[name] - spread, right
            right -= widths[name] + spread
    return Columns(names, names + 8 * scale, right - 4 * scale, dict(reversed(spans.items())))


def _wanted_last(lines: RowLines) -> tuple[str, ...]:
    """What is added says nothing without the score that it is added to, so that this comes first."""
    return ("raw", "added") if lines.spec.scale_after_mask else ("added", "raw")
