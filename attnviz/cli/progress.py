"""How far a long computation is, on stderr: in place on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

_AFTER_S: Final = 2.0
"""What takes less says nothing where lines stay."""
_AT_MOST_S: Final = 60.0
"""Between two lines, which come twice as late each time."""
_CLEAR: Final = "\x1b[K"
"""The rest of a terminal's line, however many columns its characters take."""


@contextmanager
def progress(name: str) -> Iterator[Callable[[str], None]]:
    """Gives what is told how far ``name`` is, in words such as "3 of 18"; a terminal's line is cleared at the end."""
    name = name if name.isprintable() else ascii(name)[1:-1]
    if not sys.stderr.isatty():
        yield _lines(name)
        return
    try:
        yield lambda said: click.echo(f"\r{name}: {said} {_CLEAR}", nl=False, err=True)
    finally:
        click.echo(f"\r{_CLEAR}", nl=False, err=True)


def _lines(name: str) -> Callable[[str], None]:
    began, due = time.monotonic(), _AFTER_S

    def line(said: str) -> None:
        nonlocal due
        passed = time.monotonic() - began
        if passed >= due:
            due = passed + min(passed, _AT_MOST_S)
            click.echo(f"attnviz: {name}: {said}", err=True)

    return line
