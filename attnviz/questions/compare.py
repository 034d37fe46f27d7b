"""A | B: two states of equal numbers of queries and keys, number by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from attnviz.frames import Crop, Scale, Values
from attnviz.questions.base import Answer, Question
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, SpecError, check_span, stages_of

MOST_TOKENS: Final = 1024
MOST_CELLS: Final = 25 * MOST_TOKENS * MOST_TOKENS
"""Cells over all heads that are compared: 25 heads of 1,024 tokens."""


class CompareQuestion(Question, frozen=True, tag="compare"):
    """The query × key ``stage`` of ``a`` and ``b``, every head that both have; the maps are those of ``head``.

    ``head`` comes first. The maps show half-open ``rows`` × ``cols``, None for all of them; numbers are of whole maps.
    Raises `SpecError` for a stage that one of them lacks, or a head.
    """

    a: AttentionSpec
    b: AttentionSpec
    stage: str = "weights"
    head: int = 0
    pixels: int = 512
    rows: tuple[int, int] | None = None
    cols: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.stage not in QUERY_KEY_STAGES:
            raise SpecError("stage", f"stage is {self.stage!r}: A and B are compared where rows are queries, "
                                     "columns keys, such as weights")  # fmt: skip
        for name, spec in ("A", self.a), ("B", self.b):
            if self.stage not in stages_of(spec):
                raise SpecError("stage", f"{name} has no stage {self.stage}: take one that both have, such as weights")
        heads = min(self.a.num_heads, self.b.num_heads)
        if not 0 <= self.head < heads:
            raise SpecError("head", f"head is {self.head}: A and B both have heads 0 to {heads - 1}")
        if not 1 <= self.pixels <= 4096:
            raise SpecError("pixels", f"pixels is {self.pixels}: give a whole number from 1 to 4,096")
        check_span("rows", self.rows)
        check_span("cols", self.cols)

    @classmethod
    def of(cls, a: AttentionSpec, b: AttentionSpec, stage: str, head: int, pixels: int) -> CompareQuestion:
        """What is asked while ``stage`` is looked at: that stage where both have it and it can be compared."""
        both = stage in QUERY_KEY_STAGES and all(stage in stages_of(spec) for spec in (a, b))
        return cls(a=a, b=b, stage=stage if both else "weights", head=head, pixels=pixels)


@dataclass(frozen=True, slots=True)
class HeadDifference:
    """One head of A beside the same of B.

    ``largest`` |B − A| is found ``at`` (row, column), NaN where no cell is a number in both; ``mean`` is over those
    cells; ``ulps`` is the largest difference in steps of the coarser dtype at that size. ``sum_error`` is the largest
    |Σ − 1| of a row, ``future`` the most that a row gives to keys after its query (both NaN where cells are scores),
    ``nan_rows`` counts rows that hold a NaN: each of A, then of B. ``identical`` says that all numbers are equal, NaN
    beside NaN.
    """

    head: int
    largest: float
    at: tuple[int, int]
    ulps: float
    mean: float
    sum_error: tuple[float, float]
    future: tuple[float, float]
    nan_rows: tuple[int, int]
    identical: bool


@dataclass(frozen=True, slots=True, eq=False)
class CompareMaps:
    """``crop`` of one head's maps, pooled at ``level`` from its first cell on: values float, classes uint8 (r, c).

    ``scale`` is A's and B's, of the whole maps. ``difference`` is B − A, of each pixel's cells the one of the largest
    size; its scale is symmetric about 0 and of the whole map too. ``sums`` float64 are over all keys, of A's and of
    B's rows that are shown; None where cells are scores.
    """

    head: int
    crop: Crop
    level: int
    a: Values
    a_classes: npt.NDArray[np.uint8]
    b: Values
    b_classes: npt.NDArray[np.uint8]
    scale: Scale
    difference: Values
    difference_classes: npt.NDArray[np.uint8]
    difference_scale: Scale
    sums: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None


@dataclass(frozen=True, slots=True, eq=False)
class CompareAnswer(Answer):
    """The heads compared so far, the one with maps first. ``dtype`` is the coarser one, in whose steps ulps count.

    ``left_out`` heads stand in one of the two alone.
    """

    question: CompareQuestion
    tokens: tuple[str, ...]
    heads: tuple[HeadDifference, ...]
    maps: CompareMaps
    dtype: str
    left_out: int

    @property
    def worst(self) -> HeadDifference:
        """The head that differs most; NaN rows count for more than any number."""
        return max(self.heads, key=lambda head: (sum(head.nan_rows), np.nan_to_num(head.largest, nan=0.0)))
