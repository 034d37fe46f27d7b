"""A small map in a column of a page: as high as it is wide."""

from __future__ import annotations

from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.views.small_map import SmallMap


class PeekMap(SmallMap):
    """As high as it is wide, up to ``most`` pixels."""

    def __init__(self, parent: QWidget | None = None, *, most: int = 340) -> None:
        super().__init__(parent)
        self._most = most
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setMinimumSize(96, 96)

    def heightForWidth(self, width: int) -> int:
        return min(width, self._most)
