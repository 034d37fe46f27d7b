"""What every figure is to the files that it ends in: a size, a style, and something that paints itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Protocol

from PySide6.QtGui import QPainter

from attnviz.figure.styles import Style

Step = Callable[[float], object]
"""Is told the share that is done, 0 to 1; what it raises ends the export."""


PAINTING: Final = threading.RLock()
"""Held while a figure is laid out or painted: PySide makes its types when they are first met, and two threads that meet
one at once have ended the process."""


class Drawing(Protocol):
    """A figure laid out on its sheet. It paints the same on an image, in an SVG and in a PDF.

    Coordinates are pixels of the sheet, from (0, 0) to ``size``; the ground is already there, in ``style.card`` or
    transparent. Any thread, one at a time.
    """

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    @property
    def style(self) -> Style:
        """Its colours."""

    @property
    def has_large_cells(self) -> bool:
        """Whether most pixels are the one above them: a PNG is then compressed in another way."""

    def paint(self, painter: QPainter, step: Step) -> None:
        """Paint everything. ``step`` is told the share that is done."""
