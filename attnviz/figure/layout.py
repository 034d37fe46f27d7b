"""Where things go: a grid of maps, their labels, the colour bar and the lines below. Pure arithmetic, in pixels."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass

Rect = tuple[float, float, float, float]
"""x, y, width, height."""

LABELLED_PANELS = 6
"""Up to this many maps each has token labels; more have none."""

_MAX_CELL = 150.0
_MAX_ASPECT = 3.0
SLANT_DEGREES = 35.0


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """One map: ``outer`` is all that belongs to it; a strip is None where it has no room or no meaning.

    ``cell`` is a cell's (width, height) with the whole map in sight. ``label_px`` is the height of the labels' text;
    ``slanted`` says that column labels stand at an angle.
    """

    outer: Rect
    map_rect: Rect
    title: Rect
    row_labels: Rect | None
    column_labels: Rect | None
    sums: Rect | None
    cell: tuple[float, float]
    label_px: int
    slanted: bool


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """Every panel, the shared colour bar, and the legend's and caption's lines."""

    size: tuple[float, float]
    panels: tuple[PanelLayout, ...]
    colour_bar: Rect
    legend: Rect
    caption: Rect | None
    text_px: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a figure holds: ``rows`` × ``cols`` cells a map, labels by name, whether rows have sums and maps titles."""

    rows: int
    cols: int
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    sums: bool
    n_panels: int
    large_first: bool = False


def rough_width(text: str, pixels: float) -> float:
    """About the width of ``text``: one em a wide character, a little over half an em any other."""
    ems = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text)
    return ems * pixels


def figure_layout(contents: Contents, size: tuple[float, float], text_px: int, caption_lines: int = 0) -> FigureLayout:
    """Lay ``contents`` out in ``size`` (width, height): maps as large as they can be, nothing overlapping."""
    width, height = size
    margin = text_px * 0.75
    line = text_px * 1.5
    legend_height = 2 * line
    caption_height = caption_lines * line
    bar_width = 5.2 * text_px
    maps = (margin, margin, width - 2 * margin - bar_width, height - 2 * margin - legend_height - caption_height)
    maps = (maps[0], maps[1], max(maps[2], 20.0), max(maps[3], 20.0))
    panels = _panels(contents, maps, text_px)
    first, last = panels[0].map_rect, panels[-1].map_rect
    if contents.large_first:
        last = first
    top, bottom = min(p.map_rect[1] for p in panels), max(p.map_rect[1] + p.map_rect[3] for p in panels)
    if contents.large_first:
        top, bottom = first[1], first[1] + first[3]
    right = max(p.outer[0] + p.outer[2] for p in panels)
    bar_left = min(right + text_px * 0.75, width - margin - bar_width + text_px * 0.5)
    bar_top, bar_height = _bar_span(top, bottom, text_px)
    below = maps[1] + maps[3] + margin * 0.5
    caption = (margin * 1.5, below + legend_height, width - 3 * margin, caption_height) if caption_lines else None
    return FigureLayout(
        size, panels, (bar_left, bar_top, text_px * 0.9, bar_height),
        (margin * 1.5, below, width - 3 * margin, legend_height), caption, text_px,
    )  # fmt: skip


def _bar_span(top: float, bottom: float, text_px: int) -> tuple[float, float]:
    """Top and height of a colour bar beside maps from ``top`` to ``bottom``: readable, but no longer than it need be."""
    height = min(max(bottom - top, 6.0 * text_px), 24.0 * text_px)
    return top + max((bottom - top - height) / 2, 0.0), height


def _panels(contents: Contents, area: Rect, text_px: int) -> tuple[PanelLayout, ...]:
    if contents.large_first and contents.n_panels > 1:
        return _large_and_strip(contents, area, text_px)
    x, y, width, height = area
    labelled = contents.n_panels <= LABELLED_PANELS
    best: list[PanelLayout] | None = None
    for n_columns in range(1, contents.n_panels + 1):
        n_rows = math.ceil(contents.n_panels / n_columns)
        gap = text_px * 0.75
        panel_width = (width - gap * (n_columns - 1)) / n_columns
        panel_height = (height - gap * (n_rows - 1)) / n_rows
        if panel_width < 8 or panel_height < 8:
            continue
        placed = [
            _panel(
                contents,
                (x + index % n_columns * (panel_width + gap), y + index // n_columns * (panel_height + gap),
                 panel_width, panel_height),
                text_px, labelled, titled=contents.n_panels > 1,
            )
            for index in range(contents.n_panels)
        ]  # fmt: skip
        area_of = placed[0].map_rect[2] * placed[0].map_rect[3]
        if best is None or area_of > best[0].map_rect[2] * best[0].map_rect[3] * 1.001:
            best = placed
    assert best is not None  # noqa: S101 (one column always fits: the area is at least 20 pixels)
    return _packed(best, area)


def _packed(placed: list[PanelLayout], area: Rect) -> tuple[PanelLayout, ...]:
    """Close the gaps that whole-pixel cells left between columns and rows, and centre what remains."""
    used = [_used(panel) for panel in placed]
    lefts, tops = sorted({p.outer[0] for p in placed}), sorted({p.outer[1] for p in placed})
    width, height = max(u[2] for u in used), max(u[3] for u in used)
    spread_x = min(placed[0].outer[2] - width, placed[0].outer[2] * 0.12)
    spread_y = min(placed[0].outer[3] - height, placed[0].outer[3] * 0.12)
    total_w = len(lefts) * width + (len(lefts) - 1) * (spread_x + 8)
    total_h = len(tops) * height + (len(tops) - 1) * (spread_y + 8)
    start_x = area[0] + max((area[2] - total_w) / 2, 0)
    start_y = area[1] + max((area[3] - total_h) / 2, 0)
    moved = []
    for panel, box in zip(placed, used, strict=True):
        column, row = lefts.index(panel.outer[0]), tops.index(panel.outer[1])
        dx = round(start_x + column * (width + spread_x + 8) - box[0])
        dy = round(start_y + row * (height + spread_y + 8) - box[1])
        moved.append(_shifted(panel, dx, dy))
    return tuple(moved)


def _used(panel: PanelLayout) -> Rect:
    """The part of a panel that holds something."""
    parts = [r for r in (panel.map_rect, panel.row_labels, panel.column_labels, panel.sums) if r is not None]
    parts.append((panel.map_rect[0], panel.title[1], 1, panel.title[3]))
    left, top = min(r[0] for r in parts), min(r[1] for r in parts)
    return left, top, max(r[0] + r[2] for r in parts) - left, max(r[1] + r[3] for r in parts) - top


def _shifted(panel: PanelLayout, dx: float, dy: float) -> PanelLayout:
    def shift(rect: Rect | None) -> Rect | None:
        return None if rect is None else (rect[0] + dx, rect[1] + dy, rect[2], rect[3])

    used = _used(panel)
    outer = (used[0] + dx, used[1] + dy, used[2], used[3])
    return PanelLayout(
        outer, shift(panel.map_rect) or panel.map_rect, shift(panel.title) or panel.title, shift(panel.row_labels),
        shift(panel.column_labels), shift(panel.sums), panel.cell, panel.label_px, panel.slanted,
    )  # fmt: skip


def _large_and_strip(contents: Contents, area: Rect, text_px: int) -> tuple[PanelLayout, ...]:
    """The first map large, the others as a strip of thumbnails at its right."""
    x, y, width, height = area
    others = contents.n_panels - 1
    title = text_px * 1.3
    best_side, columns = 0.0, 1
    for n_columns in range(1, others + 1):
        side = min(width * 0.34 / n_columns - 8, height / math.ceil(others / n_columns) - title - 6)
        if side > best_side:
            best_side, columns = side, n_columns
    side = max(8.0, min(best_side, 150.0))
    strip = columns * (side + 8)
    large = _panel(contents, (x, y, max(width - strip - text_px, 40.0), height), text_px, True, titled=True)
    small_contents = Contents(contents.rows, contents.cols, (), (), False, 1)
    thumbnails = []
    left = x + width - strip
    for index in range(others):
        column, row = index % columns, index // columns
        place = (left + column * (side + 8), y + row * (side + title + 6), side, side + title)
        thumbnails.append(_panel(small_contents, place, max(text_px * 8 // 10, 8), False, titled=True))
    return (large, *thumbnails)


def _panel(contents: Contents, outer: Rect, text_px: int, labelled: bool, *, titled: bool) -> PanelLayout:
    x, y, width, height = outer
    title_height = text_px * 1.6 if titled else 0.0
    rows, cols = contents.rows, contents.cols
    label_px = text_px
    row_width = column_height = sums_width = 0.0
    slanted = False
    cell = _cell(width, height - title_height, rows, cols)
    if labelled:
        for _ in range(3):  # labels take room from the cells, and the cells say how large labels may be
            label_px = int(min(max(cell[1] * 0.17, text_px * 0.85), text_px * 1.7))
            longest = max((rough_width(name, label_px) for name in contents.row_names), default=0.0)
            row_width = min(longest + label_px * 0.9, width * 0.3)
            widest = max((rough_width(name, label_px) for name in contents.column_names), default=0.0)
            slanted = widest > cell[0] * 0.96
            slant = math.sin(math.radians(SLANT_DEGREES))
            column_height = min(widest * slant + label_px, height * 0.25) if slanted else label_px * 1.7
            if not contents.column_names:
                column_height = 0.0
            sums_width = label_px * 3.4 if contents.sums else 0.0
            overhang = column_height * 1.2 if slanted else 0.0
            cell = _cell(
                width - row_width - max(sums_width, overhang), height - title_height - column_height, rows, cols
            )
    map_width, map_height = cell[0] * cols, cell[1] * rows
    used_width = row_width + map_width + sums_width
    left = round(x + max((width - used_width) / 2, 0) + row_width)
    top = round(y + title_height + column_height + max((height - title_height - column_height - map_height) / 2, 0))
    return PanelLayout(
        outer=outer,
        map_rect=(left, top, map_width, map_height),
        title=(left, top - column_height - title_height, max(map_width, min(8.0 * text_px, width)), title_height),
        row_labels=(left - row_width, top, row_width, map_height) if row_width else None,
        column_labels=(left, top - column_height, map_width, column_height) if column_height else None,
        sums=(left + map_width, top, sums_width, map_height) if sums_width else None,
        cell=cell,
        label_px=label_px,
        slanted=slanted,
    )


def _cell(width: float, height: float, rows: int, cols: int) -> tuple[float, float]:
    """The largest cell that fits, whole pixels where it is one at least, never stretched beyond 1 : 3."""
    wide, high = max(width, 4.0) / cols, max(height, 4.0) / rows
    if rows == cols:
        wide = high = min(wide, high)
    wide, high = min(wide, high * _MAX_ASPECT, _MAX_CELL), min(high, wide * _MAX_ASPECT, _MAX_CELL)
    return (math.floor(wide) if wide >= 1 else wide, math.floor(high) if high >= 1 else high)


def label_stride(cell: float, label_px: float) -> int:
    """Every how manieth label is shown so that no two overlap."""
    return max(1, math.ceil(label_px * 1.25 / max(cell, 1e-9)))
