"""A long row in few columns: the largest and smallest number of each, and the classes that it holds. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnviz import colour
from attnviz.frames import CellClass, RowAnswer, Scale, Values


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """``n`` columns: ``high`` and ``low`` of their ordinary numbers (−∞ and ∞ where there are none), ``classes`` sets.

    ``edges`` are the keys where the columns begin.
    """

    edges: npt.NDArray[np.int64]
    high: Values
    low: Values
    classes: npt.NDArray[np.uint8]


class RowPool:
    """One row, prepared so that any part of it is pooled in a few milliseconds, with a million keys as well."""

    def __init__(self, answer: RowAnswer, stage: str) -> None:
        self.values, self.classes = answer.values, answer.classes
        ordinary = (answer.classes & CellClass.ORDINARY) != 0
        ordinary &= np.isfinite(answer.values)
        all_there = bool(ordinary.all())
        self._for_high: Values = answer.values if all_there else np.where(ordinary, answer.values, -np.inf)
        self._for_low: Values = answer.values if all_there else np.where(ordinary, answer.values, np.inf)
        high, low = float(self._for_high.max(initial=-np.inf)), float(self._for_low.min(initial=np.inf))
        there = (low, high) if low <= high else (0.0, 0.0)
        self.scale: Scale = colour.choose_scale(stage, "auto", len(answer.values), *there)

    def __len__(self) -> int:
        return len(self.values)

    def pooled(self, first: float, last: float, columns: int) -> Pooled:
        """Keys from ``first`` to ``last`` in ``columns`` of equal width.

        Each column shows the keys that begin in it, or the one under its middle where there are more columns than keys.
        """
        middle = 0.5 if last - first <= columns else 0.0
        places = first + (last - first) * (np.arange(columns + 1) + middle) / columns
        edges = np.clip(np.floor(places).astype(np.int64), 0, len(self) - 1)
        starts = edges[:-1]
        end = 0 if middle else min(int(np.ceil(last)), len(self))
        held = slice(int(starts[0]), max(end, int(starts[-1]) + 1))
        inside = starts - held.start  # of two equal starts the first takes that one key, as `reduceat` has it
        return Pooled(
            edges,
            np.maximum.reduceat(self._for_high[held], inside),
            np.minimum.reduceat(self._for_low[held], inside),
            np.bitwise_or.reduceat(self.classes[held], inside),
        )
