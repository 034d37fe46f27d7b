"""A row of many keys as a plot: a bar for each weight, and below it what a key is that has none."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QCoreApplication

from attnviz.figure.plots import Bars, Cells, Plot
from attnviz.frames import CellClass, RowStages, RowStory, Values, shown_class


def kinds_of(row: RowStages) -> npt.NDArray[np.uint8]:
    """What each key's last weight is (n_keys,), as the maps tell it: one `CellClass` each."""
    weights = row.stages[row.last]
    kinds = np.where(weights == 0, CellClass.ZERO, CellClass.ORDINARY).astype(np.uint8)
    if row.last == "dropped_weights" and row.dropped is not None:
        kinds[row.dropped] = CellClass.DROPPED
    kinds[row.masked] = CellClass.MASKED
    first, end = row.padded
    kinds[first:end][row.masked[first:end]] = CellClass.PADDED
    kinds[np.isnan(weights)] = CellClass.NAN
    return kinds


def peeking_of(row: RowStages) -> npt.NDArray[np.bool_]:
    """The keys (n_keys,) that the mask's shape hides, and that are seen all the same."""
    seen: npt.NDArray[np.bool_] = row.hidden & ~row.masked & ~np.isnan(row.stages[row.last])
    return seen


def row_plot(story: RowStory, columns: int, *, labels: bool = True) -> Plot:
    """The weights of ``story``'s row, in red where they peek, over those of the state before in dashes.

    On no more than ``columns`` pixels each shows the largest weight of several keys, and what they are as a pixel of a
    map does. ``labels`` names the axes.
    """
    row, before = story.now, story.before
    kinds, peeking = kinds_of(row), peeking_of(row)
    starts = np.arange(0, len(kinds), -(-len(kinds) // max(columns, 1)))
    edges = np.append(starts, len(kinds)) - 0.5

    def heights(weights: Values, where: npt.NDArray[np.bool_]) -> Values:
        shown: Values = np.fmax.reduceat(np.where(where, weights, 0), starts)
        return shown

    weights, numbers = row.stages[row.last], kinds == CellClass.ORDINARY
    bars = [Bars(edges, heights(weights, numbers & ~peeking))]
    if (numbers & peeking).any():
        bars.append(Bars(edges, heights(weights, numbers & peeking), role="leak"))
    if before is not None:
        then = before.stages[before.last]
        bars.append(Bars(edges, heights(then, np.isfinite(then)), role="muted", outline=True))
    key, weight = QCoreApplication.translate("Figure", "key"), QCoreApplication.translate("Figure", "weight")
    return Plot(
        bars=tuple(bars), cells=_cells(kinds, starts), x_label=key if labels else "", y_label=weight if labels else "",
        y_range=None if any(np.max(one.heights) > 0 for one in bars) else (0.0, 1.0),
    )  # fmt: skip


def _cells(kinds: npt.NDArray[np.uint8], starts: npt.NDArray[np.intp]) -> tuple[Cells, ...]:
    """Runs of keys of one kind that is no number; what begins at each of ``starts`` has one look."""
    shown = shown_class(np.bitwise_or.reduceat(kinds, starts))
    runs = [0, *(np.flatnonzero(np.diff(shown)) + 1).tolist(), len(shown)]
    places = [*(starts - 0.5).tolist(), len(kinds) - 0.5]
    return tuple(
        Cells(places[first], places[end], CellClass(int(shown[first])))
        for first, end in itertools.pairwise(runs)
        if shown[first] != CellClass.ORDINARY
    )
