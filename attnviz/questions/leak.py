"""Who sees whom in a module: what a changed token moves, and what that says of its mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from attnviz.questions.base import Answer

Verdict = Literal[
    "exactly zero", "rounding", "leak in the code", "leak in the arithmetic", "cannot tell", "leaks", "untested"
]  # fmt: skip
"""*Cannot tell*: it moves, and there is no float64 beside it. *Leaks*: at a scale of which no more is asked.
*Untested*: nothing could be run, or no output is a number."""


Pattern = Literal[
    "", "no mask", "mask inverted", "one token too many", "softmax over the wrong axis", "not divided again",
    "fill too shallow", "other item of the batch", "a token blind to itself",
]  # fmt: skip
"""What a map of who sees whom looks like, where that is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What was measured on one device, in one dtype, at one scale of the inputs.

    ``figure`` is the largest movement of an output that must not move, in eps × the largest output, and ``pair``
    (output, token) the first that moved by more than rounding. ``positions`` of ``length`` tokens were changed.
    ``moved`` float64 (L, L) at [output, token] is in the same unit, NaN where nothing is known; ``hidden`` bool (L, L)
    are the cells that must not move. ``nan_rows`` outputs are no numbers, before a change or after one,
    ``lost_rows`` differ from float64's by more
    than half of their digits (−1: nobody can tell), ``overflows`` says that a product of finite numbers was none.
    ``remark`` is what went wrong, in words.
    """

    device: str
    dtype: str
    scale: float
    verdict: Verdict
    figure: float = 0.0
    pair: tuple[int, int] | None = None
    length: int = 0
    positions: int = 0
    nan_rows: int = 0
    lost_rows: int = -1
    overflows: bool = False
    mixes_batch: bool = False
    moved: npt.NDArray[np.float64] | None = None
    hidden: npt.NDArray[np.bool_] | None = None
    remark: str = ""
    seconds: float = 0.0

    @property
    def leaks(self) -> bool:
        return self.verdict in ("leak in the code", "leak in the arithmetic", "leaks")


@dataclass(frozen=True, slots=True, eq=False)
class LeakAnswer(Answer):
    """The readings so far; ``pattern`` is what they look like, ``blind`` says that no token moves its own output."""

    readings: tuple[Reading, ...]
    pattern: Pattern = ""
    blind: bool = False
