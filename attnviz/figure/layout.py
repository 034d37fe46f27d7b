"""Where things go: maps, labels, sums, colour bar, legend and captions, as pure arithmetic in pixels. No Qt.

A ``unit`` scales type and gaps: 1 on screen, larger on a large sheet. Nothing that is laid out overlaps. A sheet may
show a window of the map alone; then the window's shape and labels count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from attnviz.figure.labels import are_numbers, axis_labels, label_step, map_shape, widest_ems
from attnviz.frames import Outline, level_for
from attnviz.spec import WEIGHT_STAGES

__all__ = [
    "Box", "FigureLayout", "PanelLayout", "Span", "Subject", "clipped", "figure_layout", "map_shape", "map_size",
    "panel_layout", "paper_layout", "screen_layout", "subject_of",
]  # fmt: skip

Span = tuple[int, int]
"""Rows or columns of a map, half-open."""

LABELLED_UP_TO: Final = 6
"""A grid of more panels has no token labels at each map."""

ROTATION: Final = 35.0
"""Degrees by which column labels rise where they are wider than their column."""

SUMS_FROM: Final = 12.0
"""Rows lower than this have no room for their sum."""

LEAST_LABEL_STEP: Final = 14.0
_SLANTED_EMS = 6.5
_SHORT_EMS = 2.8  # labels as short as numbers are thinned out rather than slanted
_LABELS_WORTH = 0.18  # labels that leave less than this share of the maps' area are left out
_CELL_CAP = 200.0
_STRETCH = 3.0
_SIN, _COS = math.sin(math.radians(ROTATION)), math.cos(math.radians(ROTATION))


class Box(NamedTuple):
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def moved(self, dx: float, dy: float) -> Box:
        return Box(self.x + dx, self.y + dy, self.width, self.height)

    def overlaps(self, other: Box) -> bool:
        """Whether the two share more than an edge."""
        return (
            min(self.right, other.right) - max(self.x, other.x) > 1e-6
            and min(self.bottom, other.bottom) - max(self.y, other.y) > 1e-6
        )

    def holds(self, other: Box) -> bool:
        """Whether ``other`` lies within, edges included."""
        return (
            self.x <= other.x + 1e-6
            and self.y <= other.y + 1e-6
            and other.right <= self.right + 1e-6
            and other.bottom <= self.bottom + 1e-6
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """What a layout depends on: the map's shape, the widest labels in ems of their font, whether rows have sums.

    ``square`` cells stay so whatever the shape; otherwise those of a long map may be longer than wide. Columns that
    are ``numbered`` count, so some of their labels tell the others.
    """

    rows: int
    cols: int
    row_ems: float = 0.0
    column_ems: float = 0.0
    sums: bool = False
    titled: bool = True
    square: bool = False
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """One map with what stands around it. ``label_px`` is the height of the token labels' font, ``unit`` the scale.

    ``column_labels`` is as wide as the map, whether the labels are slanted or not; slanted ones lean out over
    ``overhang`` to its right.
    """

    outer: Box
    map_rect: Box
    title: Box | None = None
    row_labels: Box | None = None
    column_labels: Box | None = None
    overhang: Box | None = None
    sums: Box | None = None
    sums_header: Box | None = None
    label_px: float = 12.0
    slanted: bool = False
    unit: float = 1.0

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Everything that is drawn, none of it over another."""
        boxes = (
            self.map_rect, self.title, self.row_labels, self.column_labels, self.overhang, self.sums,
            self.sums_header,
        )  # fmt: skip
        return tuple(box for box in boxes if box is not None)


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """A whole picture: panels, the colour bar (ticks and name to its right within ``bar_column``), and the words."""

    size: tuple[float, float]
    panels: tuple[PanelLayout, ...]
    bar: Box
    bar_column: Box
    legend: Box
    captions: tuple[Box, ...]
    headings: tuple[Box, ...] = ()
    unit: float = 1.0

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Everything that is drawn, none of it over another."""
        around = (self.bar_column, self.legend, *self.captions, *self.headings)
        return (*around, *(box for panel in self.panels for box in panel.boxes))


def clipped(outline: Outline, rows: Span | None, cols: Span | None) -> tuple[Span, Span]:
    """The part of ``rows`` and ``cols`` (None for all) that the shown stage's map has, a cell of it at least."""
    n_rows, n_cols = map_shape(outline)

    def clip(span: Span | None, end: int) -> Span:
        first, last = span or (0, end)
        first = min(max(first, 0), end - 1)
        return first, min(max(last, first + 1), end)

    return clip(rows, n_rows), clip(cols, n_cols)


def subject_of(outline: Outline, window: tuple[Span, Span] | None = None) -> Subject:
    """What the layout of the shown stage depends on; of a part of its map where there is a ``window`` (rows, cols)."""
    rows, columns = axis_labels(outline)
    whole = (0, len(rows)), (0, len(columns))
    row_span, column_span = window or whole
    return Subject(
        row_span[1] - row_span[0],
        column_span[1] - column_span[0],
        widest_ems(rows, row_span),
        widest_ems(columns, column_span),
        sums=outline.stage in WEIGHT_STAGES,
        titled=len(outline.panels) > 1,
        square=(row_span, column_span) != whole,
        numbered=are_numbers(columns, column_span),
    )


# ------------------------------------------------------------------------------------------------------------ cells


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
    stretch = 1.0 if square or 2 / 3 <= n_cols / n_rows <= 3 / 2 else _STRETCH
    cell_w, cell_h = min(cell_w, side * stretch), min(cell_h, side * stretch)
    if side >= 1:
        return min(_whole_cells(cell_w, n_cols), int(width)), min(_whole_cells(cell_h, n_rows), int(height))
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
    for label_px in (size * unit for size in (22, 20, 18, 16, 14, 13, 12)):
        for slanted in (False, True):
            panel = _arranged(outer, subject, unit, label_px, slanted=slanted, sums=subject.sums)
            cell_w, cell_h = panel.map_rect.width / subject.cols, panel.map_rect.height / subject.rows
            if subject.sums and cell_h < SUMS_FROM * unit:
                panel = _arranged(outer, subject, unit, label_px, slanted=slanted, sums=False)
            step = label_step(cell_w, LEAST_LABEL_STEP * unit)
            fits = subject.column_ems * label_px * 1.1 <= cell_w * step
            if fits or slanted or subject.numbered or subject.column_ems <= _SHORT_EMS:
                break
        if label_px <= max(least, 0.2 * min(cell_w, cell_h) + 1e-6):
            break
    return panel


def _arranged(
    outer: Box, subject: Subject, unit: float, label_px: float | None, *, slanted: bool, sums: bool
) -> PanelLayout:
    """The panel for one choice of label size (None for no labels) and slant."""
    gap = 6 * unit
    worth_from = (66 if outer.width < 3 * outer.height else 36) * unit  # of a low, wide map it costs less of the whole
    title_h = 22 * unit if subject.titled and outer.height > worth_from else 0.0
    left = top = right = overhang = 0.0
    if label_px is not None:
        left = min(subject.row_ems * label_px, outer.width * 0.3) + gap
        top = label_px * 1.6
        if slanted:
            length = min(subject.column_ems, _SLANTED_EMS) * label_px
            top = min(_SIN * length + _COS * label_px + gap, outer.height * 0.3)
            overhang = _COS * length * top / (_SIN * length + _COS * label_px + gap)
    sums_px = min(label_px or 0.0, 15 * unit)
    if sums:
        right = sums_px * 2.6 + 2 * gap
    bottom = sums_px * 1.5 if sums and slanted else 0.0  # slanted labels lean over the sums' own header
    room = outer.width - left - max(right, overhang), outer.height - title_h - top - bottom
    width, height = map_size(room, (subject.rows, subject.cols), unit, square=subject.square)
    across, down = left + width + max(right, overhang), title_h + top + height + bottom
    x = outer.x + math.floor(max(outer.width - across, 0) / 2 + left)
    y = outer.y + math.floor(max(outer.height - down, 0) / 2 + title_h + top)
    map_rect = Box(x, y, max(min(width, outer.right - x), 1), max(min(height, outer.bottom - y), 1))
    labels = label_px is not None
    feet = 0.2 * (label_px or 0.0) if slanted else 0.0  # room for what hangs below a slanted line, as in g and ,
    sums_box = Box(map_rect.right + gap, y, right - gap, map_rect.height) if sums else None
    header = None
    if sums_box is not None:
        header_y = map_rect.bottom if slanted else y - top
        header = Box(sums_box.x, header_y, sums_box.width, bottom if slanted else top)
    return PanelLayout(
        outer=outer,
        map_rect=map_rect,
        title=Box(x, y - top - title_h, map_rect.width + max(right, overhang), title_h) if title_h else None,
        row_labels=Box(x - left, y, left - gap, map_rect.height) if labels else None,
        column_labels=Box(x, y - top, map_rect.width, top - feet) if labels else None,
        overhang=Box(map_rect.right, y - top, overhang, top) if slanted else None,
        sums=sums_box,
        sums_header=header,
        label_px=label_px or 12 * unit,
        slanted=slanted,
        unit=unit,
    )


# ---------------------------------------------------------------------------------------------------------- figures


def screen_layout(
    outline: Outline, n_panels: int, size: tuple[float, float], *, large_first: bool = False
) -> FigureLayout:
    """The heads in the window: maps, colour bar, a caption and the legend below.

    With ``large_first`` the first panel is large and labelled, the others stand beside it as thumbnails.
    """
    return figure_layout(subject_of(outline), n_panels, size, large_first=large_first, margin=12.0)


def paper_layout(
    outline: Outline, n_panels: int, size: tuple[float, float], unit: float, window: tuple[Span, Span] | None = None
) -> FigureLayout:
    """A picture that stands alone: headings above, legend and two captions below.

    The maps are of ``window`` (rows, cols) alone where there is one, with its shape and its labels.
    """
    subject = subject_of(outline, window)
    return figure_layout(subject, n_panels, size, unit=unit, margin=32 * unit, headings=2, captions=2)


def figure_layout(
    subject: Subject, n_panels: int, size: tuple[float, float], *, unit: float = 1.0, margin: float = 12.0,
    headings: int = 0, captions: int = 1, large_first: bool = False,
) -> FigureLayout:  # fmt: skip
    """Panels of one ``subject`` in the grid that makes their maps largest, and the words around them."""
    width, height = size
    line = 22 * unit
    inner_w = max(width - 2 * margin, 1)
    legend_lines = 1 if inner_w >= 640 * unit else 2
    tops = [line * 1.5, line][:headings]
    head_boxes, y = [], margin
    for line_h in tops:
        head_boxes.append(Box(margin, y, inner_w, line_h))
        y += line_h
    y += 6 * unit if headings else 0
    words_h = line * (captions + legend_lines)
    bottom = max(height - margin * 0.6 - words_h, y + 1)
    caption_boxes = tuple(Box(margin, bottom + line * n, inner_w, line) for n in range(captions))
    legend = Box(margin, bottom + line * captions, inner_w, line * legend_lines)
    area = Box(margin, y, inner_w, max(bottom - y - 8 * unit, 1))
    bar_w = 104 * unit
    if large_first and n_panels > 1:
        large_w = area.width * (0.8 if n_panels <= 4 else 0.7)
        main = Box(area.x, area.y, large_w - bar_w, area.height)
        panels = [panel_layout(main, subject, unit=unit)]
        beside = Box(area.x + large_w + 12 * unit, area.y, area.width - large_w - 12 * unit, area.height)
        panels += _grid(beside, subject, n_panels - 1, unit, labelled=False)
        group_right, spans = panels[0].outer.right, panels[:1]
    else:
        main = Box(area.x, area.y, max(area.width - bar_w, 1), area.height)
        panels = _grid(main, subject, n_panels, unit, labelled=False)
        if n_panels <= LABELLED_UP_TO:
            labelled = _grid(main, subject, n_panels, unit, labelled=True)
            fit = max(_used(panel).right for panel in labelled) <= main.right + 1e-6
            panels = labelled if fit and _area(labelled[0]) >= _LABELS_WORTH * _area(panels[0]) else panels
        shift = math.floor(max(main.right - max(_used(panel).right for panel in panels), 0) / 2)
        panels = [_shifted(panel, shift) for panel in panels]
        group_right, spans = max(_used(panel).right for panel in panels), panels
    top = min(panel.map_rect.y for panel in spans)
    low = max(panel.map_rect.bottom for panel in spans)
    column_h = max(min(low - top, 420 * unit), min(120 * unit, area.height))
    middle = min(max((top + low) / 2, area.y + column_h / 2), area.bottom - column_h / 2)
    column = Box(group_right + 18 * unit, middle - column_h / 2, bar_w - 18 * unit, column_h)
    bar = Box(column.x, column.y + 6 * unit, 14 * unit, column_h - 12 * unit)
    return FigureLayout(
        size, tuple(panels), bar, column, legend, caption_boxes, tuple(head_boxes), unit
    )  # fmt: skip


def _grid(area: Box, subject: Subject, count: int, unit: float, *, labelled: bool) -> list[PanelLayout]:
    """``count`` panels in the grid with the largest maps, drawn together and put at the left of ``area``."""
    lay_out = partial(panel_layout, subject=subject, unit=unit, labelled=labelled)
    gap = (20 if labelled else 10) * unit

    def outer(n_across: int) -> Box:
        n_down = -(-count // n_across)
        return Box(0, 0, (area.width - gap * (n_across - 1)) / n_across, (area.height - gap * (n_down - 1)) / n_down)

    def merit(n_across: int) -> tuple[float, int, int]:
        room = outer(n_across)
        if room.width < 4 or room.height < 4:
            return 0.0, 0, 0
        return _area(lay_out(room)), -(-count % n_across), -abs(n_across + count // -n_across)

    n_across = max(range(1, count + 1), key=merit)
    room = outer(n_across)
    room = Box(0, 0, max(room.width, 1), max(room.height, 1))
    model = lay_out(room)
    used = _used(model)
    n_down = -(-count // n_across)
    pitch_x = min(room.width, used.width) + gap
    pitch_y = min(room.height, used.height) + gap
    down = area.y + math.floor(max(area.height - (pitch_y * n_down - gap), 0) / 2)
    panels = []
    for place in range(count):
        row, col = divmod(place, n_across)
        x, y = area.x + math.floor(col * pitch_x), down + math.floor(row * pitch_y)
        panels.append(_shifted(model, math.floor(x - used.x), math.floor(y - used.y)))
    return panels


def _area(panel: PanelLayout) -> float:
    return panel.map_rect.width * panel.map_rect.height


def _used(panel: PanelLayout) -> Box:
    """The smallest box around everything that the panel draws."""
    boxes = panel.boxes
    x, y = min(box.x for box in boxes), min(box.y for box in boxes)
    return Box(x, y, max(box.right for box in boxes) - x, max(box.bottom for box in boxes) - y)


def _shifted(panel: PanelLayout, dx: float, dy: float = 0.0) -> PanelLayout:
    """The panel at another place; its outer box shrinks to what it draws."""

    def move(box: Box | None) -> Box | None:
        return None if box is None else box.moved(dx, dy)

    return PanelLayout(
        outer=_used(panel).moved(dx, dy),
        map_rect=panel.map_rect.moved(dx, dy),
        title=move(panel.title),
        row_labels=move(panel.row_labels),
        column_labels=move(panel.column_labels),
        overhang=move(panel.overhang),
        sums=move(panel.sums),
        sums_header=move(panel.sums_header),
        label_px=panel.label_px,
        slanted=panel.slanted,
        unit=panel.unit,
    )
