"""Tokens' names for a line of words: cut where they are long, numbers grouped as all numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_LONGEST: Final = 24


def token_name(names: Sequence[str], place: int) -> str:
    """The name at ``place``; one that only counts the places is written as a number, such as 31,001."""
    name = names[place]
    if is_number(names, place):
        return f"{place:,}"
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def is_number(names: Sequence[str], place: int) -> bool:
    """Whether the name at ``place`` says nothing but the place."""
    return names[place] == str(place)


def numbered(names: Sequence[str], place: int) -> str:
    """The place and, where it has one, the name: 31,001 “fish”."""
    return f"{place:,}" if is_number(names, place) else f"{place:,} “{token_name(names, place)}”"
