"""The window's arrangements: what stands beside the maps in each, and how wide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from attnviz.views.side import PAGES

_TESTS: Final = ("leaks", "forms")
_ALWAYS: Final = ("row", "compare", "module", "controls")


@dataclass(frozen=True, slots=True)
class Layout:
    """``pages`` have a tab (others come by keys and the menu), ``first`` is in sight at first.

    ``sentence`` says whether a picture's sentence stands beside the row, ``one_large`` that one head is large.
    """

    pages: tuple[str, ...]
    first: str
    sentence: bool = False
    one_large: bool = True
    column_first: bool = False
    share: float | None = None
    """Of the window's width that the column beside the maps takes; None: as little as it needs."""

    def sizes(self, width: int) -> list[int]:
        """Pixels from left to right of what stands in ``width``."""
        column = _LEAST if self.share is None else int(width * self.share)
        sizes = [width - column, column]
        return sizes[::-1] if self.column_first else sizes


_LEAST: Final = 330

LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {
        "learn": Layout(
            tuple(page for page in PAGES if page not in _TESTS), "row", sentence=True, share=0.42,
        ),
        "test": Layout((*_TESTS, *_ALWAYS), "leaks", share=0.48),
        "explore": Layout(_ALWAYS, "controls", one_large=False, column_first=True),
    }
)  # fmt: skip
"""*learn*: one head large, the row beside it; *test*: leaks beside it; *explore*: all heads, the controls left."""
