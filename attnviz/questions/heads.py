"""Stacked and split heads: what each multiplies, and why two printed outputs of one function differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from attnviz.frames import Values
from attnviz.questions.base import Answer, Question
from attnviz.spec import AttentionSpec, SpecError, edited

Rung = Literal["as printed", "same d_out", "without out_proj", "same draws"]


class HeadsQuestion(Question, frozen=True, tag="heads"):
    """Both forms of ``spec``'s sizes, the book's two classes made equal step by step, and its batched product."""

    spec: AttentionSpec

    @classmethod
    def of(cls, spec: AttentionSpec) -> HeadsQuestion:
        """What is asked of ``spec``: what comes after the projections, and which form is in use, asks nothing new."""
        try:
            plain = edited(
                spec, mask="none", top_k=None, dropout=0.0, dropout_seed=spec.seed, implementation="stacked",
                out_proj=False, batch=1,
            )  # fmt: skip
        except SpecError:
            plain = spec
        return cls(spec=plain)


@dataclass(frozen=True, slots=True)
class FormsCompared:
    """Both forms in the spec's sizes, dtype and device, over ``tokens`` tokens, without output projection.

    ``stacked_products`` and ``split_products`` count the matrix products that give queries, keys and values.
    ``drawn`` is the largest difference of the outputs as the seed draws them, ``copied`` with one's weights written
    into the other; ``identical`` says that not one bit differs then. The matrices are one query matrix's (d_in, d_out)
    in each form.
    """

    tokens: int
    stacked_products: int
    split_products: int
    stacked_matrix: tuple[int, int]
    split_matrix: tuple[int, int]
    drawn: float
    copied: float
    identical: bool


@dataclass(frozen=True, slots=True, eq=False)
class LadderStep:
    """The book's two classes after one more reason for their difference has been taken away.

    ``stacked`` and ``split`` are the outputs (L, d_out) of one batch item. ``difference`` is the largest between them,
    None where their shapes differ; ``identical`` says that not one bit differs.
    """

    name: Rung
    stacked: Values
    split: Values
    difference: float | None
    identical: bool


@dataclass(frozen=True, slots=True, eq=False)
class BatchedProduct:
    """A tensor (1, H, L, D) times its transpose (1, H, D, L), at once and head by head: float32 (H, L, L)."""

    tensor: npt.NDArray[np.float32]
    at_once: npt.NDArray[np.float32]
    by_head: npt.NDArray[np.float32]
    identical: bool


@dataclass(frozen=True, slots=True, eq=False)
class HeadsAnswer(Answer):
    """``forms`` is None where the source has no projections, or the sizes are too large to try both."""

    question: HeadsQuestion
    ladder: tuple[LadderStep, ...]
    product: BatchedProduct
    forms: FormsCompared | None = None
    reason: str = ""
