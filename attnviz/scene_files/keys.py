"""The words of a deck: the options of `attnviz render` without their dashes."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NamedTuple

import click

from attnviz.options.figure import figure_options
from attnviz.options.spec import SOURCE_OPTIONS

SOURCES: Final = frozenset(SOURCE_OPTIONS)
KINDS: Final = frozenset({"lesson", "scores", "weights", "text", "length", "qk"})
"""Fields that name a source by themselves."""


class Key(NamedTuple):
    """What a key sets: an option, or its contrary where ``inverts`` (``no-caption`` is ``caption`` the other way)."""

    option: click.Option
    inverts: bool


def _keys() -> dict[str, Key]:
    def nothing() -> None:
        """Carries the options."""

    figure_options(nothing)
    options: list[click.Option] = nothing.__click_params__  # type: ignore[attr-defined]
    keys: dict[str, Key] = {}
    for option in reversed(options):
        keys |= {name.lstrip("-"): Key(option, inverts=False) for name in option.opts if name.startswith("-")}
        keys |= {name.lstrip("-"): Key(option, inverts=True) for name in option.secondary_opts}
    return keys


KEYS: Final[dict[str, Key]] = _keys()
"""Every key of a figure but ``file``, with - between words."""

KEY_OF: Final[dict[str, str]] = {
    str(key.option.name): name for name, key in reversed(KEYS.items()) if not key.inverts
}  # fmt: skip
"""The key that sets an option's field."""


def known(name: str) -> Key | None:
    """What a key sets, - and _ alike; None for an unknown one."""
    return KEYS.get(name.replace("_", "-"))


def nearest(name: str, *others: str) -> str:
    """Words for the key that ``name`` may have meant; ``others`` are keys of its table that are no options."""
    found = get_close_matches(name.replace("_", "-")[:40], (*KEYS, *others), 1, 0.5)
    return f"did you mean {found[0]}?" if found else "its keys are the options of attnviz render, without dashes"
