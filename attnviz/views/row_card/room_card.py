"""The row card for a room: what a lesson's step speaks of has all of it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QWidget

from attnviz.frames import RowStory
from attnviz.session import Snapshot
from attnviz.views.row_card import metrics
from attnviz.views.row_card.bars import KeyBars
from attnviz.views.row_card.card import RowCard
from attnviz.views.row_card.formula import Line
from attnviz.views.row_card.lines import RowLines


class RoomBars(KeyBars):
    """Lines with more columns, where no state before needs one."""

    def columns(self) -> metrics.Columns | None:
        if self.lines is None:
            return None
        return metrics.columns_of(self.lines, float(self.width()), self.scale, keep_before=False)


class RoomCard(RowCard):
    """A `RowCard` that leaves out what is not spoken of; see `speak_of`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._with_before = self._with_formula = True
        self._without_before: tuple[RowStory, RowStory] | None = None
        super().__init__(parent)

    def speak_of(self, *, before: bool, formula: bool) -> None:
        """Whether the state before stands beside from the next `present` on, and anything is written out unasked."""
        if (before, formula) != (self._with_before, self._with_formula):
            self._with_before, self._with_formula, self._made_of = before, formula, ()
            self._show()

    def present(self, snapshot: Snapshot) -> None:
        """Show the selected row; a state before that is held down with Space is shown in any case."""
        story = snapshot.story
        if story is not None and story.before is not None and not (self._with_before or snapshot.show_before):
            if self._without_before is None or self._without_before[0] is not story:
                self._without_before = story, replace(story, before=None)
            snapshot = replace(snapshot, story=self._without_before[1])
        super().present(snapshot)

    def _make_bars(self) -> KeyBars:
        return RoomBars()

    def _formula(self, lines: RowLines) -> tuple[Line, ...]:
        return super()._formula(lines) if self._with_formula or self._written is not None else ()
