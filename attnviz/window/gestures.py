"""What each action does to the spec, the view or the current cell. Knows the controller and no widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec

from attnviz.controller import Controller
from attnviz.session import Cell
from attnviz.spec import AttentionSpec, MaskMode, SpecError, edited, stages_of

MASK_ORDER: Final[tuple[MaskMode, ...]] = ("none", "three-step", "neg-inf")
"""The modes of the two lessons; the others are chosen by name."""
_FAR: Final = 1 << 30


class Gestures:
    """The actions of one window, by name (`by_name`). ``refused`` is called with a sentence when one cannot act."""

    def __init__(self, controller: Controller, refused: Callable[[SpecError], None]) -> None:
        self._controller = controller
        self._refused = refused
        self._last_mask: MaskMode = "neg-inf"

    def by_name(self) -> Mapping[str, Callable[[], None]]:
        moves = {
            "up": (-1, 0),
            "down": (1, 0),
            "left": (0, -1),
            "right": (0, 1),
            "first": (-_FAR, 0),
            "last": (_FAR, 0),
        }
        return MappingProxyType({
            "mask_toggle": self.toggle_mask,
            "mask_next": self.next_mask,
            "training": lambda: self._edit(training=not self._spec.training),
            "reroll": lambda: self._edit(dropout_seed=self._spec.dropout_seed + 1),
            "stage_back": partial(self._step_stage, -1),
            "stage_on": partial(self._step_stage, 1),
            "head_next": partial(self._step_head, 1),
            "head_previous": partial(self._step_head, -1),
            "head_grid": partial(self.edit_view, head=None),
            "numbers": self._controller.toggle_numbers,
            "cancel": self._controller.cancel,
            **{f"cell_{name}": partial(self._step_cell, *step) for name, step in moves.items()},
        })  # fmt: skip

    @property
    def _spec(self) -> AttentionSpec:
        return self._controller.wanted()[0]

    def toggle_mask(self) -> None:
        """Between *none* and the mask mode last used."""
        mask = self._spec.mask
        if mask != "none":
            self._last_mask = mask
        self._edit(mask=self._last_mask if mask == "none" else "none")

    def next_mask(self) -> None:
        """The mode behind the present one in `MASK_ORDER`; from one that is not there, its first."""
        mask = self._spec.mask
        at = MASK_ORDER.index(mask) + 1 if mask in MASK_ORDER else 0
        self._edit(mask=MASK_ORDER[at % len(MASK_ORDER)])

    def go_to_stage(self, number: int) -> None:
        """Show the stage of this number, counted from 1 as in the strip."""
        names = stages_of(self._spec)
        if number <= len(names):
            self.edit_view(stage=names[number - 1])

    def edit_view(self, **changes: object) -> None:
        self._controller.edit_view(msgspec.structs.replace(self._controller.wanted()[1], **changes))

    def _edit(self, **changes: object) -> None:
        try:
            spec = edited(self._spec, **changes)
        except SpecError as error:
            self._refused(error)
            return
        self._controller.edit_spec(spec)

    def _step_stage(self, step: int) -> None:
        spec, view = self._controller.wanted()
        names = stages_of(spec)
        at = names.index(view.stage) + step
        if 0 <= at < len(names):
            self.edit_view(stage=names[at])

    def _step_head(self, step: int) -> None:
        spec, view = self._controller.wanted()
        first = 0 if step > 0 else spec.num_heads - 1
        self.edit_view(head=first if view.head is None else (view.head + step) % spec.num_heads)

    def _step_cell(self, rows: int, cols: int) -> None:
        outline = self._controller.outline()
        if outline is not None:
            cell = self._controller.selected() or Cell(0, 0)
            row = min(max(cell.row + rows, 0), outline.n_queries - 1)
            self._controller.select(Cell(row, min(max(cell.col + cols, 0), outline.n_keys - 1)))
