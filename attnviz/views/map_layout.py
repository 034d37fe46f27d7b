"""What the places of the heads depend on, and the corner beside them that is kept for the small map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from attnviz.figure.layout import Box, FigureLayout, map_shape
from attnviz.session import Picture
from attnviz.spec import AnySource
from attnviz.views.navigation import Shape

GRID_MAX: Final = 6
"""More heads than these stand beside the one that is chosen; fewer give way to it."""

MINIMAP_FROM: Final = 12
"""A map of fewer rows and columns is surveyed at a glance."""

_GAP = 16.0
_LEAST_BAR = 90.0
_LEAST_SIDE = 56.0


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What the panels' places depend on. The source stands for its tokens: a million names are not compared.

    ``names`` are the panels in sight, with the large one first if one is ``large``.
    """

    source: AnySource
    panels: tuple[str, ...]
    shape: Shape
    stage: str
    names: tuple[str, ...]
    large: bool


def arrangement_of(picture: Picture, *, one_large: bool, alone: bool = False) -> Arrangement:
    """The arrangement of a picture that has an outline; with ``one_large`` one head always is, ``alone`` in sight."""
    outline = picture.outline
    assert outline is not None  # noqa: S101 (only pictures with an outline are shown)
    head, panels = picture.view.head, outline.panels
    if head is None and (one_large or alone) and len(panels) > 1:
        head = 0
    large, names = f"head:{head}", panels
    if large in panels:
        beside = (len(panels) > GRID_MAX or one_large) and not alone
        names = (large, *(name for name in panels if name != large)) if beside else (large,)
    return Arrangement(picture.spec.source, panels, map_shape(outline), outline.stage, names, large in panels)


def with_minimap(plan: FigureLayout, arrangement: Arrangement) -> tuple[FigureLayout, Box | None]:
    """The plan with its colour bar shorter by the small map below it, and the place of that; None for small maps.

    The room is kept whether the window is the whole map or not, so that nothing moves when one zooms in.
    """
    shape = arrangement.shape
    if max(shape) < MINIMAP_FROM:
        return plan, None
    spans = plan.panels[:1] if arrangement.large else plan.panels
    column = plan.bar_column
    top = min(column.y, *(panel.map_rect.y for panel in spans))
    maps_end = max(column.bottom, *(panel.map_rect.bottom for panel in spans))
    below = [panel.outer.y for panel in plan.panels if panel.outer.y >= maps_end]  # others may stand below a large one
    end = max(maps_end, min(below + [box.y for box in (plan.legend, *plan.captions)]) - _GAP / 2)
    for side, low in product((column.width - 4, _LEAST_SIDE), (maps_end, end)):  # as large, as near the maps as it fits
        height = min(max(side * shape[0] / shape[1], side / 3), side)
        width = min(max(side * shape[1] / shape[0], side / 3), side)
        corner = Box(column.x, math.floor(low - height), round(width), math.floor(height))
        room = corner.y - _GAP - top
        if room >= _LEAST_BAR:
            break
    else:
        return plan, None
    bar_h = min(column.height, room)
    y = min(column.y, corner.y - _GAP - bar_h)
    inset = (column.height - plan.bar.height) / 2
    shorter = Box(column.x, y, column.width, bar_h)
    bar = Box(plan.bar.x, y + inset, plan.bar.width, bar_h - 2 * inset)
    return replace(plan, bar=bar, bar_column=shorter), corner
