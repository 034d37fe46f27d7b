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
    """A line across the whole plot: at this y, or at this x where it is ``upright``."""

    at: float
    label: str = ""
    role: Role = "muted"
    upright: bool = False


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
    is left out.
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
