"""Where things go: maps, labels, sums, colour bar, legend and captions, as pure arithmetic in pixels. No Qt.

A ``unit`` scales type and gaps: 1 on screen, larger on a large sheet. Nothing that is laid out overlaps. A sheet may
show a window of the map alone; then the window's shape and labels count.
"""

from __future__ import annotations

import math
from dataclasses import replace

from attnviz.figure.grids import area_of, in_a_grid, labelled_grid, plain_panels, shifted, used_by
from attnviz.figure.labels import PERCENT_UP_TO_KEYS, are_numbers, axis_labels, map_shape, widest_ems
from attnviz.figure.panels import map_size, panel_layout
from attnviz.figure.places import Box, FigureLayout, PanelLayout, Subject
from attnviz.frames import Outline
from attnviz.spec import WEIGHT_STAGES

__all__ = [
    "Box", "FigureLayout", "PanelLayout", "Span", "Subject", "clipped", "figure_layout", "map_shape", "map_size",
    "maps_and_bar", "panel_layout", "screen_layout", "subject_of",
]  # fmt: skip

_LEAST_STRIP = 108.0  # of the others below a large map
_NARROW = 480.0  # pixels in which the others have a little less of the width
_LOW = 330.0  # pixels: in a lower figure the caption goes, and the legend has one line

Span = tuple[int, int]
"""Rows or columns of a map, half-open."""


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
        sums=outline.stage in WEIGHT_STAGES and column_span == whole[1],  # they are of whole rows
        titled=len(outline.panels) > 1,
        square=(row_span, column_span) != whole,
        numbered=are_numbers(columns, column_span),
    )


# ---------------------------------------------------------------------------------------------------------- figures


def screen_layout(
    outline: Outline, n_panels: int, size: tuple[float, float], *, large_first: bool = False, unit: float = 1.0,
    bare: bool = False,
) -> FigureLayout:  # fmt: skip
    """The heads in the window: maps, colour bar, a caption and the legend below; the legend alone where it is low.

    With ``large_first`` the first panel is large and labelled, the others stand beside it as thumbnails. ``bare`` is
    one map alone, without colour bar, caption and legend, whose boxes are empty.
    """
    if bare:
        return _bare(subject_of(outline), size, unit)
    captions = 1 if size[1] >= _LOW * unit else 0
    return figure_layout(
        subject_of(outline), n_panels, size, large_first=large_first, margin=12.0, unit=unit, captions=captions
    )  # fmt: skip


def _bare(subject: Subject, size: tuple[float, float], unit: float) -> FigureLayout:
    subject = replace(subject, titled=False)
    panel = panel_layout(Box(0, 0, *size), subject, unit=unit)
    nothing = Box(size[0], size[1], 0, 0)
    return FigureLayout(size, (panel,), nothing, nothing, nothing, (), (), unit)


def figure_layout(
    subject: Subject, n_panels: int, size: tuple[float, float], *, unit: float = 1.0, margin: float = 12.0,
    captions: int = 1, large_first: bool = False,
) -> FigureLayout:  # fmt: skip
    """Panels of one ``subject`` in the grid that makes their maps largest, and the words below them."""
    width, height = size
    line = 22 * unit
    inner_w = max(width - 2 * margin, 1)
    legend_lines = 1 if inner_w >= 640 * unit or not captions else 2
    words_h = line * (captions + legend_lines)
    bottom = max(height - margin * 0.6 - words_h, margin + 1)
    caption_boxes = tuple(Box(margin, bottom + line * n, inner_w, line) for n in range(captions))
    legend = Box(margin, bottom + line * captions, inner_w, line * legend_lines)
    area = Box(margin, margin, inner_w, max(bottom - margin - 8 * unit, 1))
    panels, bar, column = maps_and_bar(area, subject, n_panels, unit, large_first=large_first)
    return FigureLayout(size, panels, bar, column, legend, caption_boxes, (), unit, line=line)


def maps_and_bar(
    area: Box, subject: Subject, n_panels: int, unit: float, *, large_first: bool = False, with_bar: bool = True,
    labelled: bool = True, on_paper: bool = False,
) -> tuple[tuple[PanelLayout, ...], Box, Box]:  # fmt: skip
    """Panels of one ``subject`` in ``area``, the colour bar at their right and the column of its ticks and name.

    Without a bar its boxes are empty; not ``labelled`` maps have neither token labels nor sums.
    """
    bar_w = (90 if subject.cols <= PERCENT_UP_TO_KEYS else 104) * unit if with_bar else 0.0  # ticks of few are short
    if large_first and n_panels > 1:
        main, beside = _large_and_others(area, subject, n_panels, unit, bar_w)
        panels = [panel_layout(main, subject, unit=unit)]
        panels += in_a_grid(beside, n_panels - 1, plain_panels(subject, unit), 10 * unit)
        group_right, spans = panels[0].outer.right, panels[:1]
    else:
        main = Box(area.x, area.y, max(area.width - bar_w, 1), area.height)
        if labelled:
            panels = labelled_grid(main, subject, n_panels, unit, on_paper=on_paper)
        else:
            panels = in_a_grid(main, n_panels, plain_panels(subject, unit), 10 * unit)
        shift = math.floor(max(main.right - max(used_by(panel).right for panel in panels), 0) / 2)
        panels = [shifted(panel, shift) for panel in panels]
        group_right, spans = max(used_by(panel).right for panel in panels), panels
    if not with_bar:
        nothing = Box(area.right, area.bottom, 0, 0)
        return tuple(panels), nothing, nothing
    top = min(panel.map_rect.y for panel in spans)
    low = max(panel.map_rect.bottom for panel in spans)
    column_h = max(min(low - top, 420 * unit), min(120 * unit, main.height))  # others may stand below the main one
    middle = min(max((top + low) / 2, main.y + column_h / 2), main.bottom - column_h / 2)
    column = Box(group_right + 18 * unit, middle - column_h / 2, bar_w - 18 * unit, column_h)
    bar = Box(column.x, column.y + 6 * unit, 14 * unit, column_h - 12 * unit)
    return tuple(panels), bar, column


def _large_and_others(area: Box, subject: Subject, count: int, unit: float, bar_w: float) -> tuple[Box, Box]:
    """Room for the large map and for the others: beside it, or below where that makes the large one larger."""
    gap, share = 12 * unit, (0.86 if area.width < _NARROW * unit else 0.85) if count <= 4 else 0.7
    width, height = area.width * share, min(area.height * share, area.height - _LEAST_STRIP * unit)
    sides = (
        (
            Box(area.x, area.y, width - bar_w, area.height),
            Box(area.x + width + gap, area.y, area.width - width - gap, area.height),
        ),
        (
            Box(area.x, area.y, area.width - bar_w, height),
            Box(area.x, area.y + height + gap, area.width, area.height - height - gap),
        ),
    )
    beside, below = sides
    if below[0].height < area.height / 2:
        return beside
    larger = area_of(panel_layout(below[0], subject, unit=unit)) > 1.2 * area_of(
        panel_layout(beside[0], subject, unit=unit)
    )
    return below if larger else beside
