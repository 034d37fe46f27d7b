"""Where the maps' window goes when keys and buttons ask for it: zoom, pan, a cell, and along with the current cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from attnviz.session import Cell, Window
from attnviz.views import navigation

ZOOM_STEP: Final = 1.5


class Sight(NamedTuple):
    """What is in sight: the window of a map of ``shape``, the pixels (height, width) that show it, the current cell."""

    window: Window
    shape: navigation.Shape
    pixels: tuple[float, float]
    selected: Cell | None


class Travel(QObject):
    """Moves the window that ``sight`` tells, None while there is no map.

    ``moved`` carries a `Window`, None for the whole map.
    """

    moved = Signal(object)

    def __init__(self, parent: QObject, sight: Callable[[], Sight | None]) -> None:
        super().__init__(parent)
        self._sight = sight
        self._following = QTimer(self, singleShot=True, interval=0)
        self._following.timeout.connect(self._follow)

    @Slot(object)
    def move(self, window: Window) -> None:
        """Say that ``window`` is wanted, unless it is there."""
        sight = self._sight()
        if sight is not None and window != sight.window:
            self.moved.emit(None if navigation.is_whole(window, sight.shape) else window)

    def show_all(self) -> None:
        """The whole map."""
        sight = self._sight()
        if sight is not None:
            self.move(navigation.whole(sight.shape))

    def pan(self, right: int, down: int) -> None:
        """Move the window by a quarter of itself."""
        sight = self._sight()
        if sight is not None:
            seen = sight.window
            rows, cols = down * (seen.bottom - seen.top) / 4, right * (seen.right - seen.left) / 4
            self.move(navigation.panned(seen, sight.shape, rows, cols))

    def go_to(self, cell: Cell) -> None:
        """Centre the window on ``cell``, a cell a pixel or as near as it is."""
        sight = self._sight()
        if sight is not None:
            place = cell.row + 0.5, cell.col + 0.5
            self.move(navigation.close_to(sight.window, sight.shape, place, sight.pixels))

    def zoom(self, factor: float, about: Cell | None = None) -> None:
        """Zoom about ``about``, else the current cell where it is in sight, else the middle."""
        sight = self._sight()
        if sight is None:
            return
        seen, cell = sight.window, about or sight.selected
        place = (seen.top + seen.bottom) / 2, (seen.left + seen.right) / 2
        if cell is not None and seen.top <= cell.row + 0.5 <= seen.bottom and seen.left <= cell.col + 0.5 <= seen.right:
            place = cell.row + 0.5, cell.col + 0.5
        self.move(navigation.zoomed(seen, sight.shape, factor, place))

    @Slot(float, float)
    def centre(self, row: float, col: float) -> None:
        """Bring a place of the map to the window's middle."""
        sight = self._sight()
        if sight is not None:
            self.move(navigation.centred(sight.window, sight.shape, (row, col)))

    def follow_soon(self) -> None:
        """Once the present call is over, bring the current cell into sight if keys have led it out."""
        self._following.start()

    @Slot()
    def _follow(self) -> None:
        sight = self._sight()
        if sight is not None and sight.selected is not None:
            cell = sight.selected.row, sight.selected.col
            self.move(navigation.following(sight.window, sight.shape, cell))
