"""See what happens inside attention: every head's weights, live, with the mask, dropout and heads as controls.

`render` writes a figure of a spec to a file, `show` shows weights that one already has. Importing this alone loads
neither Qt nor torch nor NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnviz.api import make_spec, render, show

__all__ = ["__version__", "make_spec", "render", "show"]

__version__ = "0.1.0"

_LAZY = frozenset({"make_spec", "render", "show"})


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("attnviz.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
