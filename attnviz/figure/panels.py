"""One map with what stands around it: how large it is, its labels, its sums. Pure arithmetic in pixels. No Qt."""

from __future__ import annotations

import math
from typing import Final

from attnviz.figure.labels import label_step
from attnviz.figure.places import Box, PanelLayout, Subject
from attnviz.frames import level_for

ROTATION: Final = 35.0
"""Degrees by which column labels rise where they are wider than their column."""

SUMS_EMS: Final = 2.6
"""Room for a sum."""

SUMS_FROM: Final = 12.0
"""Rows lower than this have no room for their sum."""

LABEL_SIZES: Final = (22, 20, 18, 16, 14, 13, 12)
"""Heights of labels, × unit: the largest that is a fifth of a cell at most; read from afar, `LARGE_SHARE` of it."""

LARGE_SIZES: Final = (32, 28, 25, *LABEL_SIZES)
LARGE_SHARE: Final = 0.28
_LEVEL_SHARE: Final = 0.6
"""Level labels are preferred to slanted ones that are larger than this allows."""

LEAST_LABEL_STEP: Final = 14.0
SLANTED_EMS: Final = 6.5
"""Slanted labels are at most so long."""

_LEAST_EMS: Final = 2.5
"""Slanted labels of which less can be seen are left out."""

SHORT_EMS: Final = 2.8
"""Labels as short as numbers are thinned out rather than slanted."""

UPRIGHT_STEP: Final = 1.05
"""Heights of a name from one that stands on end to the next: as close as they can be read."""

SIN: Final = math.sin(math.radians(ROTATION))
COS: Final = math.cos(math.radians(ROTATION))

_THIN = 96.0  # a map of many rows and few columns is at least so wide
_CELL_CAP = 200.0
_STRETCH = 3.0


def map_size(
    room: tuple[float, float], shape: tuple[int, int], unit: float = 1.0, *, square: bool = False
) -> tuple[int, int]:
    """Width and height in whole pixels of a map of ``shape`` (rows, columns) in ``room`` (width, height).

    Cells are square where the map nearly is, else (if not ``square``) at most three times as long as wide, and no
    larger than a hand. They are whole pixels where that costs little; of a map with several cells a pixel, pixels of
    the map are whole pixels of the sheet where that costs little.
    """
    (width, height), (n_rows, n_cols) = (max(room[0] + 1e-6, 1.0), max(room[1] + 1e-6, 1.0)), shape
    cap = _CELL_CAP * unit
    cell_w, cell_h = min(width / n_cols, cap), min(height / n_rows, cap)
    side = min(cell_w, cell_h)
    square = square or 2 / 3 <= n_cols / n_rows <= 3 / 2
    stretch = 1.0 if square else _STRETCH
    cell_w, cell_h = min(cell_w, side * stretch), min(cell_h, side * stretch)
    if side >= 1:
        return min(_whole_cells(cell_w, n_cols), int(width)), min(_whole_cells(cell_h, n_rows), int(height))
    if not square:
        least = _THIN * unit
        cell_w, cell_h = (
            max(cell_w, min(width, least, n_cols * cap) / n_cols),
            max(cell_h, min(height, least, n_rows * cap) / n_rows),
        )
    level = max(level_for(n_rows, int(cell_h * n_rows + 1e-6)), level_for(n_cols, int(cell_w * n_cols + 1e-6)))
    across, down = _whole_cells(cell_w * level, n_cols / level), _whole_cells(cell_h * level, n_rows / level)
    return min(across, int(width)), min(down, int(height))


def _whole_cells(cell: float, count: float) -> int:
    """Pixels of ``count`` cells of at most ``cell`` pixels, each of them whole if four fifths of the size remain.

    The last cell may be a part of one.
    """
    whole = math.floor(cell + 1e-6)
    return max(1, math.ceil(whole * count - 1e-6) if whole >= 0.8 * cell else math.floor(cell * count + 1e-6))


# ----------------------------------------------------------------------------------------------------------- panels


def panel_layout(outer: Box, subject: Subject, *, unit: float = 1.0, labelled: bool = True) -> PanelLayout:
    """One map in ``outer`` with its title, labels and sums; everything is centred there."""
    if not labelled:
        return _arranged(outer, subject, unit, None, slanted=False, sums=False)
    least = 12.0 * unit
    share, sizes = (LARGE_SHARE, LARGE_SIZES) if subject.large else (0.2, LABEL_SIZES)
    most = max(
        least, share * min(outer.width / subject.cols, outer.height / subject.rows) + 1e-6
    )  # of the widest cells
    for label_px in (size * unit for size in sizes if size * unit <= most or size == 12):
        for slanted in (False, True):
            panel = _arranged(outer, subject, unit, label_px, slanted=slanted, sums=subject.sums)
            cell_w, cell_h = panel.map_rect.width / subject.cols, panel.map_rect.height / subject.rows
            if subject.sums and cell_h < SUMS_FROM * unit:
                panel = _arranged(outer, subject, unit, label_px, slanted=slanted, sums=False)
            step = label_step(cell_w, LEAST_LABEL_STEP * unit)
            fits = subject.column_ems * label_px * 1.1 <= cell_w * step
            if fits or slanted or subject.numbered or subject.column_ems <= SHORT_EMS:
                break
        if label_px <= max(least, share * min(cell_w, cell_h) + 1e-6):
            break
    if subject.large and panel.slanted:  # somewhat smaller ones may be level, and leave the map more room
        for label_px in (size * unit for size in sizes if _LEVEL_SHARE * panel.label_px <= size * unit):
            level = _arranged(outer, subject, unit, label_px, slanted=False, sums=panel.sums is not None)
            if subject.column_ems * label_px * 1.1 <= level.map_rect.width / subject.cols:
                return level
    return panel


def inner_panel(outer: Box, subject: Subject, unit: float, label_px: float) -> PanelLayout:
    """A map with its sums, and its title if it has one, whose labels stand at the edge of its grid."""
    for sums in (subject.sums, False):
        panel = _arranged(outer, subject, unit, label_px, slanted=False, sums=sums, edged=False)
        if (panel.title is not None or not subject.titled) and panel.map_rect.height / subject.rows >= SUMS_FROM * unit:
            return panel
    return panel


def sums_px(subject: Subject, label_px: float, unit: float) -> float:
    """The height of the rows' sums."""
    return min(label_px, (24 if subject.large else 15) * unit)


def below_slanted(cell: float, label_px: float, px: float, gap: float) -> tuple[float, float]:
    """How far right of the map a word of ``px`` pixels has room below the last slanted label, and its height."""
    height = 1.15 * px
    # the label's feet rise from the middle of its cell; what hangs below them is a quarter of its height
    reach = (height - 0.2 * label_px + 0.25 * label_px / COS) * COS / SIN
    return max(reach + 0.1 * label_px - cell / 2, gap), height


def _arranged(
    outer: Box, subject: Subject, unit: float, label_px: float | None, *, slanted: bool, sums: bool,
    edged: bool = True,
) -> PanelLayout:  # fmt: skip
    """The panel for one choice of label size (None for no labels) and slant; not ``edged`` without the labels' room.

    Then the sums' header stands beside the title.
    """
    gap = 6 * unit
    low = outer.width >= 3 * outer.height  # of a low, wide map a title and slanted labels cost less of the whole
    worth_from = (36 if low else 66) * unit
    title_h = 22 * unit if subject.titled and outer.height > worth_from else 0.0
    left = top = right = overhang = 0.0
    named = label_px is not None and edged  # the columns are
    if label_px is not None and edged:
        left = min(subject.row_ems * label_px, outer.width * 0.3) + gap
        top = label_px * 1.6
        if slanted:
            length = min(subject.column_ems, SLANTED_EMS) * label_px
            top = min(SIN * length + COS * label_px + gap, outer.height * (0.45 if low else 0.3))
            overhang = COS * length * top / (SIN * length + COS * label_px + gap)
            if (top - gap - COS * label_px) / SIN < min(length, _LEAST_EMS * label_px):
                top, overhang, named = 0.0, 0.0, False
    sum_px = sums_px(subject, label_px or 0.0, unit)
    if sums:
        right = sum_px * SUMS_EMS + 2 * gap
    above = sums and not edged  # then the sums' header stands beside the title
    crown = title_h or (sum_px * 1.5 if above else 0.0)
    room = outer.width - left - max(right, overhang), outer.height - crown - top
    width, height = map_size(room, (subject.rows, subject.cols), unit, square=subject.square)
    across, down = left + width + max(right, overhang), crown + top + height
    x = outer.x + math.floor(max(outer.width - across, 0) / 2 + left)
    y = outer.y + math.floor(max(outer.height - down, 0) / 2 + crown + top)
    map_rect = Box(x, y, max(min(width, outer.right - x), 1), max(min(height, outer.bottom - y), 1))
    labels = label_px is not None and edged
    feet = 0.2 * (label_px or 0.0) if slanted else 0.0  # room for what hangs below a slanted line, as in g and ,
    sums_box = Box(map_rect.right + gap, y, right - gap, map_rect.height) if sums else None
    header = None
    if sums_box is not None:
        header = Box(sums_box.x, y - top - (crown if above else 0), sums_box.width, crown if above else top)
        if slanted:  # labels lean over the sums: their header stands in the corner below the last one
            dx, word_h = below_slanted(map_rect.width / subject.cols, label_px or 0.0, sum_px, gap)
            header = Box(map_rect.right + dx, y - min(word_h, top), max(right - dx, 1), min(word_h, top))
    title_w = map_rect.width + (0 if above else max(right, overhang))
    return PanelLayout(
        outer=outer,
        map_rect=map_rect,
        title=Box(x, y - top - title_h, title_w, title_h) if title_h else None,
        row_labels=Box(x - left, y, left - gap, map_rect.height) if labels else None,
        column_labels=Box(x, y - top, map_rect.width, top - feet) if named else None,
        overhang=Box(map_rect.right, y - top, overhang, top - (header.height if header else 0))
        if slanted and named
        else None,
        sums=sums_box,
        sums_header=header,
        label_px=label_px or 12 * unit,
        slanted=slanted,
        unit=unit,
    )
