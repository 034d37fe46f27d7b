"""What a plot is made of: curves, bars, lines to compare them with, and two axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from attnviz.frames import CellClass

Numbers = Sequence[float] | npt.NDArray[np.number[Any]]
Role = Literal["accent", "leak", "ink", "muted", "teal", "amber", "violet", "green"]
"""What a colour is for: *accent* the thing itself, *leak* (red) leaks alone, *muted* what it is compared with, the
others several things side by side."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Points joined by lines, ``x`` and ``y`` of one length; NaN breaks the line. ``dots`` marks each point."""

    x: Numbers
    y: Numbers
    label: str = ""
    role: Role = "accent"
    dashed: bool = False
    dots: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Bars from 0: ``heights`` (n,) between ``edges`` (n + 1,); with ``outline`` a dashed edge alone."""

    edges: Numbers
    heights: Numbers
    label: str = ""
    role: Role = "accent"
    outline: bool = False


def apart(heights: Numbers, *, label: str = "", role: Role = "accent", outline: bool = False) -> Bars:
    """`Bars` around 0, 1, 2 … that stand apart from each other."""
    tall = np.zeros(max(2 * len(heights) - 1, 0))
    tall[::2] = heights
    edges = (np.arange(len(heights))[:, None] + np.array([-0.4, 0.4])).ravel()
    return Bars(edges, tall, label, role, outline)


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the whole plot: at this y, or at this x where it is ``upright``.

    Its words stand where nothing is drawn; where there is no such place, in the legend, there ``brief`` if it has that.
    """

    at: float
    label: str = ""
    role: Role = "muted"
    upright: bool = False
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells below the x axis from ``first`` to ``last``, all of one ``kind`` that is no number."""

    first: float
    last: float
    kind: CellClass


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """What is drawn: bars, curves over them, marks, and two axes.

    ``x_range`` and ``y_range`` None are what the numbers take. ``x_names`` names places of the x axis in place of
    numbers. ``cells`` stand in a strip between the x axis and its numbers. On a logarithmic axis what is not above 0
    is left out. Curves ``to_come`` are those of later pictures of an animation: words stand clear of them already.
    """

    curves: tuple[Curve, ...] = ()
    bars: tuple[Bars, ...] = ()
    marks: tuple[Mark, ...] = ()
    cells: tuple[Cells, ...] = ()
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_log: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_names: tuple[tuple[float, str], ...] = field(default=())
    to_come: tuple[Curve, ...] = ()


def extent_of(plot: Plot, which: int) -> tuple[float, float]:
    """The range of an axis (0: x, 1: y): as given, else from the numbers, marks and, under bars, 0."""
    given, log = (plot.x_range, plot.x_log) if which == 0 else (plot.y_range, plot.y_log)
    if given is not None:
        return given
    parts: list[Numbers] = [curve.y if which else curve.x for curve in plot.curves]
    parts += [bars.heights if which else bars.edges for bars in plot.bars]
    parts += [[mark.at] for mark in plot.marks if mark.upright == (which == 0)]
    parts += [[0.0]] if which and plot.bars else []
    parts += [[place for place, _ in plot.x_names]] if which == 0 else []
    numbers = np.concatenate([np.asarray(part, np.float64).ravel() for part in parts] or [np.zeros(1)])
    numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
    if not numbers.size:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(numbers.min()), float(numbers.max())
    if log:
        return (low, high) if high > low else (low / 2, high * 2)
    if high <= low:
        return low - 0.5, high + 0.5
    room = 0.06 * (high - low) if which else 0.0
    return (low if low == 0 else low - room), (high if high == 0 else high + room)
