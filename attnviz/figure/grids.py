"""Several maps of one kind in a grid: each with its labels, or with labels along the grid's edges, or with none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from attnviz.figure.labels import label_step
from attnviz.figure.panels import (
    COS,
    LABEL_SIZES,
    LARGE_SHARE,
    LARGE_SIZES,
    LEAST_LABEL_STEP,
    SHORT_EMS,
    SIN,
    SLANTED_EMS,
    UPRIGHT_STEP,
    below_slanted,
    inner_panel,
    panel_layout,
    sums_px,
)
from attnviz.figure.places import Box, PanelLayout, Subject

Arrange = Callable[[Box], PanelLayout]
"""Lays one map out in a box."""

LABELLED_UP_TO: Final = 6
"""A grid of more panels has no token labels and sums at each map."""

_LABELS_WORTH = 0.18  # labels that leave less than this share of the maps' area are left out
_EDGES_WORTH = 0.6  # the same for labels along the grid's edges
_SHARED_WORTH = 1.3  # labels along the edges alone, where that makes the maps so much larger
_PAPER_WORTHS = (0.4, 0.3, 1.1)
_LARGE_WORTH = 0.85  # larger labels along the edges may cost so much of the maps
_UPRIGHT_PX = 11.0  # × unit: of names that stand on end where each is to be told
_LEAST_LABELLED = 48.0  # pixels of a map's shorter side from which labels are of use


def labelled_grid(
    area: Box, subject: Subject, count: int, unit: float, *, on_paper: bool = False
) -> list[PanelLayout]:  # fmt: skip
    """``count`` panels, each with its labels, or with labels along the grid's edges, or with none, as there is room.

    ``on_paper`` maps are worth more beside their labels: nobody can look for a token there by hovering.
    """
    labels_worth, edges_worth, shared_worth = (
        (_LABELS_WORTH, _EDGES_WORTH, _SHARED_WORTH) if not on_paper else _PAPER_WORTHS
    )
    plain = in_a_grid(area, count, plain_panels(subject, unit), 10 * unit)
    shared = _edged_grid(area, subject, count, unit) if count > 1 else None
    if count <= LABELLED_UP_TO:
        each = in_a_grid(area, count, partial(panel_layout, subject=subject, unit=unit), 20 * unit)
        worth = _fits(each, area) and area_of(each[0]) >= labels_worth * area_of(plain[0])
        if worth and (count == 1 or not _is_small(each[0])):
            return shared if shared and area_of(shared[0]) >= shared_worth * area_of(each[0]) else each
    return shared if shared and area_of(shared[0]) >= edges_worth * area_of(plain[0]) else plain


def plain_panels(subject: Subject, unit: float) -> Arrange:
    """Maps without labels and sums."""
    return partial(panel_layout, subject=subject, unit=unit, labelled=False)


def _edged_grid(area: Box, subject: Subject, count: int, unit: float) -> list[PanelLayout] | None:
    """Panels whose rows are named at the left of the grid and whose columns above it; None where they do not fit."""
    subject = subject if count <= LABELLED_UP_TO else replace(subject, sums=False)
    smallest = _edged(area, subject, count, unit, LABEL_SIZES[-1] * unit)
    if smallest is not None and subject.upright and not _tells_all(smallest[0], subject):
        upright = _edged(area, subject, count, unit, _UPRIGHT_PX * unit)
        return upright if upright is not None and upright[0].upright else smallest
    if smallest is None or not subject.large:
        return smallest
    cell = smallest[0].map_rect.width / subject.cols
    for px in (size * unit for size in LARGE_SIZES if size * unit <= LARGE_SHARE * cell):
        panels = _edged(area, subject, count, unit, px)
        if panels is not None and area_of(panels[0]) >= _LARGE_WORTH * area_of(smallest[0]):
            return panels
    return smallest


def _edged(area: Box, subject: Subject, count: int, unit: float, px: float) -> list[PanelLayout] | None:
    """`_edged_grid` with labels ``px`` pixels high."""
    found: list[PanelLayout] | None = None
    ways = [(subject, False, False), (subject, True, False)]
    if subject.upright:  # where names have so little room, cells are worth more than sums
        ways.append((replace(subject, sums=False), True, True))
    for subject, slanted, upright in ways:  # noqa: PLR1704
        inner = partial(inner_panel, subject=subject, unit=unit, label_px=px)
        left, top, lean = sizes = edges_of(subject, area.width, px, unit, slanted=slanted, upright=upright)
        room = Box(area.x + left, area.y + top, area.width - left - lean, area.height - top)
        if room.width < area.width / 2 or room.height < area.height / 2:
            return found
        panels = in_a_grid(room, count, inner, 10 * unit)
        place = panels[0].map_rect
        cell = place.width / subject.cols
        if upright and (cell < UPRIGHT_STEP * px or (subject.titled and panels[0].title is None)):
            continue  # others are as many, or the heads' own names would go for them
        fits = subject.column_ems * px * 1.1 <= cell * label_step(cell, LEAST_LABEL_STEP * unit)
        level = fits or subject.numbered or subject.column_ems <= SHORT_EMS
        if not (level or slanted) or (found and slanted and not upright):
            continue
        if not _fits(panels, area) or _is_small(panels[0]):
            return found
        columns = sum(panel.map_rect.y == place.y for panel in panels)
        found = [
            with_edges(panel, subject, (n // columns, n % columns), columns, sizes, slanted=slanted, upright=upright)
            for n, panel in enumerate(panels)
        ]
        if upright or _tells_all(found[0], subject) or (level and not subject.upright):
            return found
    return found


def _tells_all(panel: PanelLayout, subject: Subject) -> bool:
    """Whether there is room for the name of each column, or they count."""
    cell, px = panel.map_rect.width / subject.cols, panel.label_px
    needed = max(LEAST_LABEL_STEP * panel.unit, 1.1 * px / SIN) if panel.slanted else subject.column_ems * px * 1.1
    return panel.upright or subject.numbered or needed <= cell


def edges_of(
    subject: Subject, width: float, px: float, unit: float, *, slanted: bool, upright: bool = False, most: float = 0.2
) -> tuple[float, float, float]:  # fmt: skip
    """What names along a grid's edges take at the left and above, and how far slanted ones lean beyond the last map.

    They are ``px`` pixels high, the grid with them ``width`` pixels wide; rows' names take a share of ``most`` of it.
    ``upright`` ones lean nowhere.
    """
    gap = 6 * unit
    left = min(subject.row_ems * px, width * most) + gap
    length = min(subject.column_ems, SLANTED_EMS) * px if slanted else 0.0
    if upright:
        return left, length + gap, 0.0
    return left, SIN * length + COS * px + gap if slanted else px * 1.6, COS * length


def with_edges(
    panel: PanelLayout, subject: Subject, cell: tuple[int, int], columns: int, sizes: tuple[float, float, float], *,
    slanted: bool, upright: bool = False,
) -> PanelLayout:  # fmt: skip
    """The panel of ``subject`` with the labels that it bears at the grid's left and upper edge, its title above them.

    ``cell`` is its row and column of ``columns``, the ``sizes`` are those of `edges_of`, 0 above for columns without
    labels.
    """
    place, (left, top, lean), gap = panel.map_rect, sizes, 6 * panel.unit
    feet = 0.2 * panel.label_px if slanted else 0.0
    if cell[1] == 0:
        panel = replace(panel, row_labels=Box(place.x - left, place.y, left - gap, place.height), upright=upright)
    last = cell[1] == columns - 1
    if cell[0] == 0 and top > 0:
        header = panel.sums_header
        if header is not None and panel.sums is not None:  # beside the last name, or in the corner below a slanted one
            dx, high = gap, top
            if upright:
                high = 1.15 * sums_px(subject, panel.label_px, panel.unit)
            elif slanted:
                px = sums_px(subject, panel.label_px, panel.unit)
                dx, high = below_slanted(place.width / subject.cols, panel.label_px, px, gap)
            high = min(high, top)
            header = Box(place.right + dx, place.y - high, max(panel.sums.right - place.right - dx, 1), high)
        panel = replace(
            panel,
            title=panel.title and panel.title.moved(0, -top),
            sums_header=header,
            column_labels=Box(place.x, place.y - top, place.width, top - feet),
            overhang=Box(place.right, place.y - top, lean, top - (header.height if header else 0))
            if slanted and last and lean > 0
            else None,
            neighboured=not last,
            slanted=slanted,
            upright=upright,
        )
    return replace(panel, outer=used_by(panel))


def _is_small(panel: PanelLayout) -> bool:
    return min(panel.map_rect.width, panel.map_rect.height) < _LEAST_LABELLED * panel.unit


def _fits(panels: list[PanelLayout], area: Box) -> bool:
    return max(used_by(panel).right for panel in panels) <= area.right + 1e-6


def in_a_grid(area: Box, count: int, lay_out: Arrange, gap: float) -> list[PanelLayout]:
    """``count`` panels in the grid with the largest maps, drawn together and put at the left of ``area``."""

    def outer(n_across: int) -> Box:
        n_down = -(-count // n_across)
        return Box(0, 0, (area.width - gap * (n_across - 1)) / n_across, (area.height - gap * (n_down - 1)) / n_down)

    def merit(n_across: int) -> tuple[float, int, int]:
        room = outer(n_across)
        if room.width < 4 or room.height < 4:
            return 0.0, 0, 0
        return area_of(lay_out(room)), -(-count % n_across), -abs(n_across + count // -n_across)

    n_across = max(range(1, count + 1), key=merit)
    room = outer(n_across)
    room = Box(0, 0, max(room.width, 1), max(room.height, 1))
    model = lay_out(room)
    used = used_by(model)
    n_down = -(-count // n_across)
    pitch_x = min(room.width, used.width) + gap
    pitch_y = min(room.height, used.height) + gap
    down = area.y + math.floor(max(area.height - (pitch_y * n_down - gap), 0) / 2)
    panels = []
    for place in range(count):
        row, col = divmod(place, n_across)
        x, y = area.x + math.floor(col * pitch_x), down + math.floor(row * pitch_y)
        panels.append(shifted(model, math.floor(x - used.x), math.floor(y - used.y)))
    return panels


def area_of(panel: PanelLayout) -> float:
    """The pixels of the panel's map."""
    return panel.map_rect.width * panel.map_rect.height


def used_by(panel: PanelLayout) -> Box:
    """The smallest box around everything that the panel draws."""
    boxes = panel.boxes
    x, y = min(box.x for box in boxes), min(box.y for box in boxes)
    return Box(x, y, max(box.right for box in boxes) - x, max(box.bottom for box in boxes) - y)


def shifted(panel: PanelLayout, dx: float, dy: float = 0.0) -> PanelLayout:
    """The panel at another place; its outer box shrinks to what it draws."""

    def move(box: Box | None) -> Box | None:
        return None if box is None else box.moved(dx, dy)

    return replace(
        panel,
        outer=used_by(panel).moved(dx, dy),
        map_rect=panel.map_rect.moved(dx, dy),
        title=move(panel.title),
        row_labels=move(panel.row_labels),
        column_labels=move(panel.column_labels),
        overhang=move(panel.overhang),
        sums=move(panel.sums),
        sums_header=move(panel.sums_header),
    )
