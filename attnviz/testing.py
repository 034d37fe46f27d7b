"""For your own tests: attention that does not leak, two implementations that are the same, and scripted screenshots.

`assert_causal` and `assert_equivalent` load torch when they are first used. As a pytest plugin (``-p attnviz.testing``,
or ``pytest_plugins = ["attnviz.testing"]`` in your conftest.py) this gives the fixture ``attnviz_window``, which loads
Qt when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

try:
    import pytest
except ImportError:  # the assertions are of use without it
    pytest = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from attnviz.assertions import assert_causal, assert_equivalent
    from attnviz.scripted import ScriptedWindow
    from attnviz.spec import AttentionSpec

__all__ = ["assert_causal", "assert_equivalent"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("attnviz.assertions"), name)


class OpensWindows(Protocol):
    """What the fixture ``attnviz_window`` gives."""

    def __call__(
        self, spec: AttentionSpec | Mapping[str, Any] | None = None, *, size: tuple[int, int] = (1280, 800),
        theme: str = "light", timeout: float = 60.0, **options: Any,
    ) -> ScriptedWindow:  # fmt: skip
        """Open the window off screen and wait until it is painted; see `scripted.open_window`."""


if pytest is not None:

    @pytest.fixture
    def attnviz_window() -> Iterator[OpensWindows]:
        """Opens windows off screen, which the end of the test closes; see `OpensWindows`."""
        from attnviz.scripted import open_window  # noqa: PLC0415 (Qt is loaded by who uses it)

        with ExitStack() as opened:

            def opens(*given: Any, **options: Any) -> ScriptedWindow:
                return opened.enter_context(open_window(*given, **options))

            yield opens
