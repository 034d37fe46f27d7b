"""The mask gallery: one head's weights under every order of mask and softmax, and what a hidden row may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from attnviz.frames import Crop, Scale, Values
from attnviz.questions.base import Answer, Question
from attnviz.spec import AttentionSpec, SpecError, check_span, edited, fixed_by

MOST_TOKENS: Final = 1024
"""Longest map of which all orders are computed side by side."""

ORDERS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "none": {"mask": "none"},
        "multiply": {"mask": "multiply"},
        "three-step": {"mask": "three-step"},
        "neg-inf": {"mask": "neg-inf", "fill": float("-inf")},
        "fill-0": {"mask": "neg-inf", "fill": 0.0},
    }
)
"""The orders by name, as shown from left to right, and what each changes in a spec."""

FILLS: Final = (-1.0, -5.0, -10.0, -12.0, -20.0, -50.0, -1e4, -1e6, -1e9, float("-inf"))
"""Fills whose depth is told whatever the scores are; beside them one at the limit of each dtype."""

DTYPES: Final = ("float16", "bfloat16", "float32", "float64")


class GalleryQuestion(Question, frozen=True, tag="gallery"):
    """One head of ``spec`` under all `ORDERS`, in at most ``pixels`` pixels a side.

    ``row`` is the query whose visible scores the fully masked row and the depth of a fill are asked for; None takes the
    lesson's scores 1 2 3 for the one and 0 for the other. The maps show half-open ``rows`` × ``cols``, None for all of
    them; numbers are of whole maps.
    """

    spec: AttentionSpec
    head: int = 0
    row: int | None = None
    pixels: int = 256
    rows: tuple[int, int] | None = None
    cols: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        _check_masks(self.spec)
        if not 0 <= self.head < self.spec.num_heads:
            last = self.spec.num_heads - 1
            raise SpecError("head", f"head is {self.head}: heads count from 0, so give 0 to {last}")
        if not 1 <= self.pixels <= 4096:
            raise SpecError("pixels", f"pixels is {self.pixels}: give a whole number from 1 to 4,096")
        check_span("rows", self.rows)
        check_span("cols", self.cols)

    @classmethod
    def of(cls, spec: AttentionSpec, head: int, row: int | None, pixels: int = 256) -> GalleryQuestion:
        """What is asked of ``spec``: what the gallery sets itself, and what comes after the weights, asks nothing new.

        Raises `SpecError` where no mask can be set.
        """
        _check_masks(spec)
        plain = edited(
            spec, mask="neg-inf", fill=float("-inf"), top_k=None, dropout=0.0, dropout_seed=spec.seed, training=False
        )
        return cls(spec=plain, head=head, row=row, pixels=pixels)


def _check_masks(spec: AttentionSpec) -> None:
    """Raise `SpecError` where the source leaves nothing to mask."""
    fixed = fixed_by(spec.source).get("mask")
    if fixed is not None:
        raise SpecError("source", f"there is nothing to mask here: {fixed.reason}")


@dataclass(frozen=True, slots=True, eq=False)
class Exhibit:
    """One order's weights: ``values`` float (r, c) and ``classes`` uint8 (r, c) of the part shown, pooled at ``level``.

    ``row_sums`` float64 (Q,) of all rows over all keys. ``difference`` is the largest |w − w of −∞| over all cells of
    the map that are numbers, found ``at`` (row, column); ``nan_rows`` hold no number. ``hidden`` is the largest weight
    on a cell that the mask's shape hides.
    """

    order: str
    values: Values
    classes: npt.NDArray[np.uint8]
    level: int
    row_sums: npt.NDArray[np.float64]
    difference: float
    at: tuple[int, int]
    nan_rows: int
    hidden: float


@dataclass(frozen=True, slots=True, eq=False)
class MaskedRow:
    """What a row that may see nothing becomes: ``how`` it was masked, in which dtype, and the weights it gets.

    ``refused`` says that torch's masked_fill would not take the number; it was cast first.
    """

    how: str
    dtype: str
    weights: npt.NDArray[np.float64]
    refused: bool = False


@dataclass(frozen=True, slots=True)
class FillDepth:
    """What one fill does in one dtype beside a visible score: what the dtype makes of it, and the hidden cell's weight.

    ``below`` says how far it lies below that score, ``refused`` that torch's masked_fill would not take the number.
    """

    fill: float
    below: float
    dtype: str
    held: float
    weight: float
    refused: bool


@dataclass(frozen=True, slots=True, eq=False)
class GalleryAnswer(Answer):
    """``crop`` of the exhibits so far (−∞ comes first), on one ``scale`` of the whole maps, in the order of `ORDERS`.

    ``masked_row`` are the answers of a row with ``scores`` that sees nothing. ``depths`` are for a largest visible
    score of ``largest``, the highest fill first; ``thresholds`` by dtype say how deep below it a fill must lie for the
    hidden cell to weigh exactly 0.
    """

    question: GalleryQuestion
    tokens: tuple[str, ...]
    crop: Crop
    exhibits: tuple[Exhibit, ...]
    scale: Scale
    scores: tuple[float, ...]
    masked_row: tuple[MaskedRow, ...]
    largest: float
    depths: tuple[FillDepth, ...]
    thresholds: Mapping[str, float]

    @property
    def limits(self) -> dict[str, float]:
        """By dtype: a fill must lie below this number for a hidden cell to weigh exactly 0 here."""
        return {dtype: self.largest - depth for dtype, depth in self.thresholds.items()}

    @property
    def first_zeros(self) -> dict[str, float]:
        """By dtype: the highest of the fills told that leaves a hidden cell a weight of exactly 0."""
        return {depth.dtype: depth.fill for depth in reversed(self.depths) if depth.weight == 0}
