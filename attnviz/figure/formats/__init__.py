"""The files that a drawing ends in: one module a format, all painted by the drawing itself."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Final

from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.fonts import load_fonts
from attnviz.figure.formats.pdf import write_pdf
from attnviz.figure.formats.png import write_drawn_png
from attnviz.figure.formats.svg import write_svg
from attnviz.figures import check_suffix
from attnviz.files import write_whole
from attnviz.spec import Paper

__all__ = ["SUFFIXES", "write_drawing"]

_WRITERS: Final = MappingProxyType({".png": write_drawn_png, ".svg": write_svg, ".pdf": write_pdf})
SUFFIXES: Final = tuple(_WRITERS)
"""Of the files that a drawing can be written to; any case of letters is taken."""


def write_drawing(
    path: Path, drawing: Drawing, paper: Paper, remembered: str, step: Step = lambda _done: None
) -> None:  # fmt: skip
    """Write ``drawing`` to ``path`` in the format of its suffix, with the text ``remembered`` in it.

    ``paper`` gives dots an inch, the ground (none where its theme is transparent) and what becomes of text. ``step`` is
    told the share that is done, 0 to 1; what it raises ends the writing. Whatever ends it, an older file stays as it
    was. Needs a QGuiApplication; any thread. Raises `files.FileProblem`, or `SpecError` for the suffix or the size.
    """
    writer = _WRITERS[check_suffix(path, SUFFIXES)]
    load_fonts()
    write_whole(path, lambda file: writer(file, drawing, paper, remembered, step))
