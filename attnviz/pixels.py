"""Cells to pixels with NumPy: the brightest of level × level cells, and the set of classes that a pixel covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from attnviz.frames import CellClass, Values

Classes = npt.NDArray[np.uint8]
Span = tuple[int, int]


def pooled_max(values: Values, classes: Classes, level: int) -> tuple[Values, Classes]:
    """The largest ordinary value and the union of classes of each level × level cells, the last ones partial.

    ``values`` float (R, C), ``classes`` uint8 (R, C) of `CellClass` sets; ``level`` is a power of two. A pixel without
    an ordinary cell is 0.
    """
    ordinary = (classes & int(CellClass.ORDINARY)) != 0
    lowest = values.dtype.type(-np.inf)
    pooled = binned(np.where(ordinary & ~np.isnan(values), values, lowest), level, np.maximum)
    kinds = binned(classes, level, np.bitwise_or)
    return np.where(kinds & int(CellClass.ORDINARY) != 0, pooled, values.dtype.type(0)), kinds


def pooled_furthest(values: Values, classes: Classes, level: int) -> tuple[Values, Classes]:
    """As `pooled_max`, but the ordinary value furthest from 0, with its sign; −∞ hides a score and is none."""
    largest, kinds = pooled_max(values, classes, level)
    least = -pooled_max(-np.where(np.isneginf(values), 0, values), classes, level)[0]
    return np.where(np.abs(least) > np.abs(largest), least, largest), kinds


def binned(cells: npt.NDArray[Any], level: int, joined: np.ufunc) -> npt.NDArray[Any]:
    """``joined`` (maximum, bitwise_or …) over level × level bins aligned to the first cell, the last ones partial.

    ``level`` is a power of two: halving again and again is several times as fast as `numpy.ufunc.reduceat`.
    """
    while level > 1:
        cells = _halved(_halved(cells, joined).T, joined).T
        level //= 2
    return cells


def _halved(cells: npt.NDArray[Any], joined: np.ufunc) -> npt.NDArray[Any]:
    """Each two rows joined; the last one of an odd number stays."""
    half = cells[::2].copy(order="K")
    pairs = len(cells) // 2
    joined(half[:pairs], cells[1::2], out=half[:pairs])
    return half


def aligned(span: Span, end: int, level: int) -> Span:
    """The whole bins of ``level`` that cover ``span`` of ``end`` cells, the last one partial; one at least."""
    first = min(max(span[0], 0), end - 1) // level * level
    return first, min(max(-(-span[1] // level) * level, first + 1), end)
