"""How high the parts of the row card are: roomy where there is room, then lower, then fewer whole lines. Pure.

Keys come first, then what is written out, then what the row mixes: the last of them gives way first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, Literal

KEYS_FIRST: Final = 8
"""So many keys stand before all else; a longer row scrolls in any case, so that nothing gives way to more of it."""

_PARTS: Final = 6  # that stand below each other at most


@dataclass(frozen=True, slots=True)
class Heights:
    """Of one line each, in pixels; ``edge`` is above the card's first and below its last."""

    head: int
    titles: int
    key: int
    formula: int
    around_formula: int
    context: int
    more: int
    foot: int
    gap: int
    edge: int


ROOMY: Final = Heights(42, 22, 32, 26, 14, 30, 20, 30, 6, 11)
TIGHT: Final = Heights(28, 17, 21, 20, 6, 20, 17, 22, 2, 4)
HIGHEST_KEY: Final = 56


Part = Literal["keys", "formula", "context", "foot"]
AT_A_DESK: Final[tuple[Part, ...]] = ("context", "formula", "keys")
"""What gives way, a line at a time, where all lines are as low as they go."""


@dataclass(frozen=True, slots=True)
class Held:
    """Lines that a card is to hold: of keys, formula, context and foot; whether a line counts more of the context."""

    keys: int
    formula: int
    context: int
    more: bool = False
    foot: int = 1


@dataclass(frozen=True, slots=True)
class Fitting:
    """How high a line of each part is, in pixels, and how many lines of each are in sight."""

    heights: Heights
    keys: int
    formula: int
    context: int
    foot: int
    more: bool


def fitting(room: int, held: Held, scale: float = 1.0, gives_way: Sequence[Part] = AT_A_DESK) -> Fitting:
    """What a card of ``room`` pixels shows of what is ``held``, in lines that stand whole; a part goes line by line.

    The last part that ``gives_way`` is the last to go; a foot goes as a whole, and of the keys one line stays.
    """
    seen = {"keys": min(held.keys, KEYS_FIRST), "formula": held.formula, "context": held.context, "foot": held.foot}
    more = held.more

    def needed(h: Heights) -> int:
        written = seen["formula"] * h.formula + h.around_formula if seen["formula"] else 0
        mixed = seen["context"] * h.context + more * h.more
        around = h.head + h.titles + seen["foot"] * h.foot + _PARTS * h.gap + 2 * h.edge
        return seen["keys"] * h.key + written + mixed + around

    tight = _between(1.0, scale)
    more = more and needed(tight) <= room
    for part in gives_way:
        while seen[part] > (part == "keys") and needed(tight) > room:
            seen[part] = 0 if part == "foot" else seen[part] - 1
    squeeze = (scale * needed(ROOMY) - room) / (scale * (needed(ROOMY) - needed(TIGHT)))
    heights = _between(min(max(squeeze, 0.0), 1.0), scale)
    left = max(room - needed(heights), 0)
    if seen["keys"] < held.keys:  # of a long row more is in sight
        seen["keys"] = min(seen["keys"] + left // heights.key, held.keys)
    else:
        heights = replace(heights, key=min(heights.key + left // held.keys, round(HIGHEST_KEY * scale)))
    return Fitting(heights, **seen, more=more)


def _between(squeeze: float, scale: float) -> Heights:
    """From roomy, 0, to tight, 1. In whole pixels, rounded down: what was made to fit must fit."""
    pairs = ((getattr(ROOMY, one.name), getattr(TIGHT, one.name)) for one in fields(Heights))
    return Heights(*(int((roomy + (tight - roomy) * squeeze) * scale + 1e-6) for roomy, tight in pairs))
