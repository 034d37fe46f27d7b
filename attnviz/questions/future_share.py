"""How much of each row's weight looks ahead where nothing is masked: drawn queries and keys beside a uniform theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnviz.questions.base import Answer, Question
from attnviz.spec import SpecError
from attnviz.spec.checks import check_range

_LARGEST_SCALE = 1e100


class FutureShareQuestion(Question, frozen=True, tag="future-share"):
    """The share of each of ``length`` rows that falls on later keys, over ``draws`` draws of Q and K.

    For each draw NumPy's RandomState(``seed``) gives Q, then K, (length, d) standard normal × ``qk_scale``; scores are
    divided by √d.
    """

    length: int = 8
    d: int = 16
    draws: int = 30
    seed: int = 7
    qk_scale: float = 0.8

    def __post_init__(self) -> None:
        check_range("length", self.length, 1, 1024)
        check_range("d", self.d, 1, 4096)
        check_range("draws", self.draws, 1, 10_000)
        check_range("seed", self.seed, 0, (1 << 32) - 1)
        if not abs(self.qk_scale) <= _LARGEST_SCALE:  # beyond, products of Q and K are no numbers
            raise SpecError("qk_scale", f"qk_scale is {self.qk_scale:g}: give a number up to 1e100, such as 0.8")


@dataclass(frozen=True, slots=True, eq=False)
class FutureShareAnswer(Answer):
    """Percent of each row's weight on the future, (length,) each: the means so far, and the newest draw's own.

    ``unmasked`` is without a mask, ``masked`` with −∞ in place of what is ahead, ``theory`` what equal weights give,
    (L − 1 − t) / L.
    """

    unmasked: npt.NDArray[np.float64]
    masked: npt.NDArray[np.float64]
    theory: npt.NDArray[np.float64]
    newest: npt.NDArray[np.float64]

    def table(self) -> list[tuple[str, ...]]:
        """Lines for a terminal."""
        lines: list[tuple[str, ...]] = [("row", "unmasked %", "theory %", "masked %")]
        for row in range(len(self.unmasked)):
            numbers = self.unmasked[row], self.theory[row], self.masked[row]
            lines.append((str(row), *(f"{number:.1f}" for number in numbers)))
        return lines
