"""Who sees whom in a module: what a changed token moves, and what that says of its mask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from attnviz.questions.base import Answer, Question
from attnviz.spec import AttentionSpec, SpecError, edited

ROUNDING_EPS: Final = 8.0
"""So many eps of the largest output, and no more, are rounding."""

Verdict = Literal[
    "exactly zero", "rounding", "leak in the code", "leak in the arithmetic", "cannot tell", "leaks", "untested"
]  # fmt: skip
"""*Cannot tell*: it moves, and there is no float64 beside it. *Leaks*: at a scale of which no more is asked.
*Untested*: nothing could be run, no output is a number, or none depends on the input."""


Pattern = Literal[
    "", "no mask", "mask inverted", "one token too many", "softmax over the wrong axis", "not divided again",
    "fill too shallow", "other item of the batch", "a token blind to itself",
]  # fmt: skip
"""What a map of who sees whom looks like, where that is known."""

LOOKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "no mask": "no mask: tokens in another order give the same outputs in that order",
        "mask inverted": "a mask that is inverted: outputs see what comes later, and nothing that came before",
        "one token too many": "one token too many: each output sees the next token, as with triu(diagonal=2)",
        "softmax over the wrong axis": "a softmax over the wrong axis: later tokens scale each column by itself",
        "not divided again": "weights masked after the softmax and not divided again: an output is scaled",
        "fill too shallow": "a fill that is too shallow: later tokens keep a fixed weight",
        "other item of the batch": "items of a batch that see each other: it is flattened, or taken as (L, B, d)",
        "a token blind to itself": "tokens that are blind to themselves, as with triu(diagonal=0): no leak",
    }
)
"""What each pattern is, in words for "It looks like …"."""


class LeakQuestion(Question, frozen=True, tag="leak"):
    """Who sees whom in ``spec``'s attention, over inputs drawn with its seed and multiplied by ``scale``."""

    spec: AttentionSpec
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scale < float("inf"):
            raise SpecError("scale", f"scale is {self.scale:g}: give a number above 0")

    @classmethod
    def of(cls, spec: AttentionSpec, scale: float = 1.0) -> LeakQuestion:
        """What is asked of ``spec``, of one function in all dtypes: what does not change it asks nothing new."""
        plain = edited(spec, dtype="float32", device="cpu", training=False, dropout=0.0, dropout_seed=spec.seed)
        return cls(spec=plain, scale=scale)


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
class GradientReading:
    """Who sees whom by derivatives |∂ output / ∂ token|, in one dtype.

    ``hidden_slope`` is the largest where a token must not move an output, ``at`` (output, token), and ``largest`` that
    of all pairs. ``moved`` float64 (L, L) at [output, token] are all of them in eps × the largest, ``hidden`` bool
    (L, L) the cells that must be 0. ``remark`` says why there is none.
    """

    device: str
    dtype: str
    hidden_slope: float = 0.0
    largest: float = 0.0
    at: tuple[int, int] | None = None
    moved: npt.NDArray[np.float64] | None = None
    hidden: npt.NDArray[np.bool_] | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LeakAnswer(Answer):
    """The readings so far; ``pattern`` is what they look like, ``blind`` says that no token moves its own output.

    ``gradient`` comes last, where it was asked for.
    """

    readings: tuple[Reading, ...]
    pattern: Pattern = ""
    blind: bool = False
    gradient: GradientReading | None = None


def hides_the_future(hidden: npt.NDArray[np.bool_] | None) -> bool:
    """Whether what must not move an output is what comes later, and nothing else."""
    return hidden is None or bool(np.array_equal(hidden, np.triu(np.ones(hidden.shape, bool), 1)))


def least_changed(readings: Iterable[Reading]) -> tuple[int, int] | None:
    """(changed, all) tokens of the reading that changed the fewest; None where each of them changed all."""
    least = min((reading for reading in readings if reading.positions), key=lambda r: r.positions, default=None)
    return None if least is None or least.positions == least.length else (least.positions, least.length)


Outcome = Literal["leaks", "nan", "unclear", "arithmetic", "untested", "clean"]


def outcome(answer: LeakAnswer, scale: float) -> Outcome:
    """What the readings at ``scale`` come to, the worst first; a NaN that an overflow of products explains is clean."""
    own = [reading for reading in answer.readings if reading.scale == scale]
    if any(reading.verdict == "leak in the code" or reading.mixes_batch for reading in own):
        return "leaks"
    if any(reading.nan_rows and not reading.overflows for reading in own):
        return "nan"
    if any(reading.verdict == "cannot tell" for reading in own):
        return "unclear"
    if any(reading.verdict == "leak in the arithmetic" for reading in own):
        return "arithmetic"
    return "untested" if all(reading.verdict == "untested" for reading in own) else "clean"


Sameness = Literal["bit for bit", "rounding", "differ", "untested"]


@dataclass(frozen=True, slots=True, eq=False)
class Equality:
    """Two modules on one device and in one dtype: how far outputs and gradients of the inputs are apart.

    ``outputs`` and ``gradients`` in eps × the largest of the first module's; ``token`` is where they differ most.
    """

    device: str
    dtype: str
    same: Sameness
    outputs: float = 0.0
    gradients: float = 0.0
    token: int | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class EqualAnswer(Answer):
    """The comparisons so far; ``shared`` says in words which weights they have."""

    found: tuple[Equality, ...]
    shared: str


def text_map(reading: Reading) -> str:
    """Who sees whom in characters, a line an output: X leaks, o moves and may, . does not move, ? is not known."""
    if reading.moved is None or reading.hidden is None:
        return ""
    rows = []
    for figures, hidden in zip(reading.moved, reading.hidden, strict=True):
        cells = (
            "?" if np.isnan(f) else "." if f <= ROUNDING_EPS else "X" if h else "o"
            for f, h in zip(figures, hidden, strict=True)
        )
        rows.append("".join(cells))
    return "\n".join(rows)
