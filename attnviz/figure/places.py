"""Rectangles of a picture: a box, one map with what stands around it, a whole figure. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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
    are ``numbered`` count, so some of their labels tell the others. ``large`` labels are read from afar; those that
    may be ``upright`` are, where slanted ones would be thinned out.
    """

    rows: int
    cols: int
    row_ems: float = 0.0
    column_ems: float = 0.0
    sums: bool = False
    titled: bool = True
    square: bool = False
    numbered: bool = False
    large: bool = False
    upright: bool = False


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """One map with what stands around it. ``label_px`` is the height of the token labels' font, ``unit`` the scale.

    ``column_labels`` is as wide as the map, whether the labels are slanted or not; slanted ones lean out over
    ``overhang`` to its right, or where the map is ``neighboured`` by another with labels, over these, between which
    there is room. ``upright`` ones stand on end, and lean over nothing.
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
    upright: bool = False
    unit: float = 1.0
    neighboured: bool = False

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
    """A whole picture: panels, the colour bar (ticks and name to its right within ``bar_column``), and the words.

    ``axes`` are where the names of rows (turned) and of columns stand, on paper alone. ``line`` is the height of a line
    of the legend.
    """

    size: tuple[float, float]
    panels: tuple[PanelLayout, ...]
    bar: Box
    bar_column: Box
    legend: Box
    captions: tuple[Box, ...]
    headings: tuple[Box, ...] = ()
    unit: float = 1.0
    axes: tuple[Box, ...] = ()
    line: float = 22.0

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Everything that is drawn, none of it over another."""
        around = (self.bar_column, self.legend, *self.captions, *self.headings, *self.axes)
        return (*around, *(box for panel in self.panels for box in panel.boxes))
