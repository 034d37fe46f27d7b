"""Generating token by token: the input grows by one a round, and only the last row of each round is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from attnviz.questions.base import Answer, Question
from attnviz.spec import AttentionSpec, edited
from attnviz.spec.checks import check_range

MOST_TOKENS: Final = 1024
SHOWN_TOKENS: Final = 64
"""Sources of up to so many tokens have the map of each round told whole."""

Floats = npt.NDArray[np.floating[Any]]


class RoundsQuestion(Question, frozen=True, tag="rounds"):
    """How the last row of each round compares with the same row of one pass over everything, in one ``head``."""

    spec: AttentionSpec
    head: int = 0

    def __post_init__(self) -> None:
        check_range("head", self.head, 0, self.spec.num_heads - 1)

    @classmethod
    def of(cls, spec: AttentionSpec, head: int) -> RoundsQuestion:
        """What is asked of ``spec``, of weights before dropout: what does not change them asks nothing new."""
        return cls(spec=edited(spec, training=False, dropout=0.0, dropout_seed=spec.seed), head=head)


@dataclass(frozen=True, slots=True, eq=False)
class RoundsAnswer(Answer):
    """The first ``done`` of as many rounds as there are tokens; round n sees n tokens.

    ``last_rows`` holds (n,) for each round, its last row; ``maps`` (n, n) with ``hidden_maps`` bool (n, n) for up to
    `SHOWN_TOKENS` tokens. ``whole`` (L, L) is the one pass, ``hidden`` bool (L, L) what the mask hides in it.
    ``differences`` (done,) are the largest absolute ones between a round's last row and the whole pass's row, what that
    gives to tokens which the round has not got included; NaN where one alone is NaN. ``exact`` says that all are 0.
    """

    tokens: tuple[str, ...]
    last_rows: tuple[Floats, ...]
    maps: tuple[Floats, ...]
    hidden_maps: tuple[npt.NDArray[np.bool_], ...]
    whole: Floats
    hidden: npt.NDArray[np.bool_]
    differences: npt.NDArray[np.float64]

    @property
    def exact(self) -> bool:
        return bool((self.differences == 0).all())

    @property
    def worst(self) -> float:
        """The largest difference so far; NaN where a row is NaN in one of the two alone."""
        return float(self.differences.max()) if len(self.differences) else 0.0

    def table(self) -> list[tuple[str, ...]]:
        """Lines for a terminal."""
        lines: list[tuple[str, ...]] = [
            (f"round {n}", f"difference {difference:.4g}") for n, difference in enumerate(self.differences, 1)
        ]
        lines.append(("score cells, recomputing", f"{cells_recomputed(self.done):,}"))
        lines.append(("score cells, key/value cache", f"{cells_cached(self.done):,}"))
        lines.append(("score cells, one pass", f"{cells_in_one_pass(self.done):,}"))
        return lines


def cells_recomputed(n: int) -> int:
    """Score cells of n rounds which compute everything again: 1² + 2² + … + n²."""
    return n * (n + 1) * (2 * n + 1) // 6


def cells_cached(n: int) -> int:
    """Score cells of n rounds with a key/value cache, one row a round: 1 + 2 + … + n."""
    return n * (n + 1) // 2


def cells_in_one_pass(n: int) -> int:
    """Score cells of one pass over n tokens: n²."""
    return n * n
