"""The numbers of *cat-eats-fish*, which is a typed matrix under a lesson's name, and of *journey*; typed forms."""

from __future__ import annotations

from typing import Final

from attnviz.spec.checks import Matrix
from attnviz.spec.sources import AnySource, Lesson, TypedScores, TypedWeights

CAT_TOKENS: Final = ("猫", "吃", "鱼")
CAT_GLOSSES: Final = ("cat", "eats", "fish")
CAT_SCORES: Final[Matrix] = ((0.5, 0.5, 1.0), (0.0, 2.0, 1.0), (0.5, 0.5, 0.0))
"""Scaled scores (3, 3): only these are given, no queries and keys."""
CAT_DIMS: Final = ("猫味", "鱼味")
CAT_DIM_GLOSSES: Final = ("cat-ness", "fish-ness")
CAT_VALUES: Final[Matrix] = ((1.0, 0.0), (0.1, 0.1), (0.0, 1.0))
"""Values (3, 2) by key and named dimension."""

JOURNEY_TOKENS: Final = ("Your", "journey", "starts", "with", "one", "step")
JOURNEY_INPUTS: Final[Matrix] = (
    (0.43, 0.15, 0.89),
    (0.55, 0.87, 0.66),
    (0.57, 0.85, 0.64),
    (0.22, 0.58, 0.33),
    (0.77, 0.25, 0.10),
    (0.05, 0.80, 0.55),
)
"""Inputs (6, 3) of *Build a Large Language Model (From Scratch)*, chapter 3."""


def typed_form(source: AnySource) -> TypedScores | TypedWeights | None:
    """A source whose numbers were worked by hand, as the matrix that can be edited; None for any other."""
    if isinstance(source, TypedScores | TypedWeights):
        return source
    if source == Lesson(name="cat-eats-fish"):
        return TypedScores(scores=CAT_SCORES, values=CAT_VALUES, dims=CAT_DIMS, tokens=CAT_TOKENS)
    return None
