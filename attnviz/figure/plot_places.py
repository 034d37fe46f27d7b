"""Where a plot's words stand: its legend in lines, and the words of its lines where nothing is drawn. No painting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF

SAMPLE: Final = 26.0
"""Pixels, × unit, before the words of an entry of the legend."""

_BETWEEN: Final = 16.0  # pixels from an entry of the legend to the next

Points = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Legend:
    """``lines`` of entries, each as its number and its left edge.

    The first line is that of the y axis' name where there is one and the entries lie ``beside`` it.
    """

    lines: tuple[tuple[tuple[int, float], ...], ...]
    beside: bool = False


def legend_of(words: Sequence[float], name: float, width: float, unit: float) -> Legend:
    """Entries whose ``words`` are so wide in ``width`` pixels, where the y axis' name takes ``name``, 0 for none.

    They begin beside the name where that saves a line.
    """
    below = _filled(words, width, unit, 0.0)
    if not name or not below:
        return Legend(below)
    beside = _filled(words, width, unit, name + _BETWEEN * unit)
    return Legend(beside, beside=True) if len(beside) == len(below) and beside[0] else Legend(below)


def _filled(
    words: Sequence[float], width: float, unit: float, start: float
) -> tuple[tuple[tuple[int, float], ...], ...]:  # fmt: skip
    """Lines of entries, the first of which begins at ``start``; it is empty where no entry has room there."""
    if not words:
        return ()
    lines: list[list[tuple[int, float]]] = [[]]
    x = start
    for number, wide in enumerate(words):
        if x > 0 and x + SAMPLE * unit + wide > width:
            lines.append([])
            x = 0.0
        lines[-1].append((number, x))
        x += (SAMPLE + _BETWEEN) * unit + wide
    return tuple(tuple(line) for line in lines)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What words must not lie over: ``lines`` of points (n, 2), broken by NaN, each so thick, and ``boxes``."""

    lines: tuple[tuple[Points, float], ...]
    boxes: tuple[QRectF, ...] = ()

    def leaves(self, box: QRectF) -> bool:
        """Whether ``box`` is free."""
        return not any(one.intersects(box) for one in self.boxes) and not any(
            _crosses(points, box.adjusted(-thick / 2, -thick / 2, thick / 2, thick / 2)) for points, thick in self.lines
        )


def _crosses(points: Points, box: QRectF) -> bool:
    """Whether a line through ``points`` (n, 2) has a part in ``box``; a single point counts too."""
    if len(points) == 1:
        points = np.concatenate([points, points])
    start, way = points[:-1], np.diff(points, axis=0)
    low, high = np.array([box.left(), box.top()]), np.array([box.right(), box.bottom()])
    with np.errstate(divide="ignore", invalid="ignore"):  # in shares of the way from each point to the next
        ends = np.sort(np.stack([(low - start) / way, (high - start) / way]), axis=0)
    still, within = way == 0, (start >= low) & (start <= high)
    first = np.where(still, np.where(within, -math.inf, math.inf), ends[0])
    last = np.where(still, np.where(within, math.inf, -math.inf), ends[1])
    return bool((np.maximum(first.max(1), 0) <= np.minimum(last.min(1), 1)).any())


def first_free(boxes: Iterable[QRectF], area: QRectF, drawn: Drawn, taken: Sequence[QRectF]) -> QRectF | None:
    """The first of ``boxes`` within ``area`` that lies over nothing ``drawn`` and none of the ``taken``."""
    return next(
        (
            box
            for box in boxes
            if area.contains(box) and not any(box.intersects(one) for one in taken) and drawn.leaves(box)
        ),
        None,
    )


__all__ = ["SAMPLE", "Drawn", "Legend", "first_free", "legend_of"]
