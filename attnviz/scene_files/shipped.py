"""The decks that come with the program, one for each lesson."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from attnviz.spec import SpecError


def names() -> tuple[str, ...]:
    """Names of the lessons that have a deck."""
    found = (entry.name for entry in _shelf().iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in found))


def built_in(name: str) -> str:
    """The text of a lesson's deck. Raises `SpecError` with the names there are."""
    if name not in names():
        raise SpecError("lesson", f"lesson is {name!r}, which has no deck: give {' or '.join(names())}")
    return _shelf().joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _shelf() -> Traversable:
    return resources.files("attnviz.resources").joinpath("scenes")
