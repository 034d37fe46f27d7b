"""Which pixels are asked for while a hand moves the window: not too often, and the last ones for sure."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from attnviz.session import Window
from attnviz.spec import Viewport
from attnviz.views import navigation

_EVERY_MS: Final = 30


@dataclass(frozen=True, slots=True)
class InSight:
    """What is looked at: ``about`` is the map (equal for equal maps), ``pixels`` (height, width) a panel's."""

    about: object
    window: Window
    shape: navigation.Shape
    pixels: tuple[float, float]
    heads: tuple[int, ...] | None


class Asking(QObject):
    """Says what is in sight at once, then at most every 30 ms; nothing where what was asked for last still serves."""

    said = Signal(object)
    """A `Viewport`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted: InSight | None = None
        self._last: tuple[InSight, Viewport, int] | None = None
        self._last_time = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._say)

    def look(self, wanted: InSight) -> None:
        """Say now, or before long, that ``wanted`` is in sight."""
        self._wanted = wanted
        if self._timer.isActive():
            return
        wait = _EVERY_MS - (time.monotonic() - self._last_time) * 1000
        if wait <= 0:
            self._say()
        else:
            self._timer.start(math.ceil(wait))

    @Slot()
    def _say(self) -> None:
        wanted = self._wanted
        if wanted is None:
            return
        level = navigation.level_of(wanted.window, wanted.pixels)
        rows, cols, pixels = navigation.asked(wanted.window, wanted.shape, wanted.pixels)
        viewport = Viewport(
            pixels=pixels, rows=rows, cols=cols, heads=wanted.heads, thumbnail=navigation.PIXEL_STEP
        )  # fmt: skip
        if self._serves(wanted, viewport, level):
            return
        self._last, self._last_time = (wanted, viewport, level), time.monotonic()
        self.said.emit(viewport)

    def _serves(self, wanted: InSight, viewport: Viewport, level: int) -> bool:
        """Whether what was asked for last holds the window with a margin, as fine as it can be shown."""
        if self._last is None:
            return False
        last, asked, last_level = self._last
        if (last.about, last.shape, last.heads) != (wanted.about, wanted.shape, wanted.heads):
            return False
        if asked == viewport:
            return True
        part = asked.rows is not None and viewport.rows is not None
        alike = level == last_level and last.pixels == wanted.pixels
        return part and alike and navigation.serves(asked.rows, asked.cols, wanted.window, wanted.shape)
