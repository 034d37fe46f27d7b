"""Where things go on a sheet of paper: headings above the maps, names of the axes beside them, words below. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from attnviz.figure.layout import maps_and_bar
from attnviz.figure.places import Box, FigureLayout, Subject

LINE: Final = 22.0
"""Height of a line of words on a screen's sheet, × unit."""

_DENSE_LINE: Final = 17.0  # on paper, as in a book
_AXIS: Final = 17.0
_AXIS_GAP: Final = 5.0  # between the rows' labels and what they are
_BELOW_LABELS: Final = 4.0  # the columns' name stands so much lower where a map's lowest row label may end above it
_LEGEND_FROM: Final = (640.0, 400.0)  # widths from which a legend needs one line, or two


@dataclass(frozen=True, slots=True)
class SheetWords:
    """How many lines there are of each kind, and what stands beside the maps.

    ``legend_lines`` None is as many as a legend may need. Where ``aside`` is not 0 there is one line of words, so many
    pixels wide, on the legend's right.
    """

    title: bool = True
    headings: int = 1
    captions: int = 1
    legend: bool = True
    axes: bool = True
    colour_bar: bool = True
    labels: bool = True
    legend_lines: int | None = None
    aside: float = 0.0


def margin_of(unit: float, *, printed: bool) -> float:
    """White around a sheet: wide on a slide, next to none where a page has its own."""
    return (8.0 if printed else 32.0) * unit


def line_of(unit: float, *, printed: bool) -> float:
    """The height of a line of words."""
    return (_DENSE_LINE if printed else LINE) * unit


def paper_layout(
    subject: Subject, n_panels: int, size: tuple[float, float], unit: float, words: SheetWords, *, printed: bool = False
) -> FigureLayout:
    """A picture that stands alone: maps as large as there is room for beside ``words``."""
    width, height = size
    margin, line = margin_of(unit, printed=printed), line_of(unit, printed=printed)
    inner_w = max(width - 2 * margin, 1)
    heads, y = [], margin
    for line_h in [*([line * 1.5] if words.title else []), *[line] * words.headings]:
        heads.append(Box(margin, y, inner_w, line_h))
        y += line_h
    y += 6 * unit if heads else 0
    legend_lines = words.legend_lines if words.legend else 0
    if legend_lines is None:
        legend_lines = 1 + sum(inner_w < least * unit for least in _LEGEND_FROM)
    own_lines = 0 if words.aside else words.captions
    bottom = max(height - margin * 0.6 - line * (own_lines + legend_lines), y + 1)
    captions = tuple(Box(margin, bottom + line * n, inner_w, line) for n in range(own_lines))
    legend = Box(margin, bottom + line * own_lines, inner_w - words.aside, line * legend_lines)
    if words.aside:
        captions = (Box(legend.right, legend.y, words.aside, line),)
    strip = _AXIS * unit if words.axes else 0.0
    beside = strip + (_AXIS_GAP * unit if strip else 0)
    area = Box(
        margin + beside, y, max(inner_w - beside, 1), max(bottom - y - strip - (8 * unit if bottom < height else 0), 1)
    )
    panels, bar, column = maps_and_bar(
        area, subject, n_panels, unit, with_bar=words.colour_bar, labelled=words.labels, on_paper=True
    )  # fmt: skip
    axes: tuple[Box, ...] = ()
    if words.axes:
        maps = [panel.map_rect for panel in panels]
        left = min(min(box.x for box in panel.boxes) for panel in panels)
        top, low = min(place.y for place in maps), max(place.bottom for place in maps)
        first, last = min(place.x for place in maps), max(place.right for place in maps)
        between = any(panel.row_labels is not None and panel.map_rect.x > first for panel in panels)
        below = low + (_BELOW_LABELS * unit if between else 0)
        axes = Box(max(left - beside, 0), top, strip, low - top), Box(first, below, last - first, strip)
    return FigureLayout(size, panels, bar, column, legend, captions, tuple(heads), unit, axes, line)
