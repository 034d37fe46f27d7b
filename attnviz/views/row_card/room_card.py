"""The row card for a room: its keys come first, what is below them gives way."""

from __future__ import annotations

from PySide6.QtCore import Slot

from attnviz.views.row_card import metrics
from attnviz.views.row_card.card import _MOST_DIMS as MOST_DIMS
from attnviz.views.row_card.card import RowCard

_MOST_KEYS = 8  # a longer row scrolls in any case, so that nothing gives way to it


class RoomCard(RowCard):
    """A `RowCard` in which the formula, then the context, go where the keys would not all be in sight."""

    @Slot()
    def _on_fitted(self) -> None:
        """Another row, formula or size: what has room is shown."""
        lines = self.lines
        if lines is None:
            super()._on_fitted()
            return
        self._formula_scroll.show()
        self._context_scroll.setVisible(len(lines.context) > 0)
        self._more.setVisible(len(lines.context) > MOST_DIMS)
        line = metrics.LOWEST * self._scale
        self._key_scroll.setMinimumHeight(round(min(lines.n_keys, _MOST_KEYS) * line))
        super()._on_fitted()
        for given in ([self._formula_scroll], [self._context_scroll, self._more]):
            if self._page.minimumSizeHint().height() <= self._pages.height():
                return
            for widget in given:
                widget.hide()
        if self._page.minimumSizeHint().height() > self._pages.height():
            self._key_scroll.setMinimumHeight(round(2 * line))
