"""Dropout drawn again and again: what one row's sum does, and how the mean comes back to what was there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from attnviz.questions.base import Answer, Question
from attnviz.spec import AttentionSpec, SpecError, edited
from attnviz.spec.checks import check_range

MOST_DRAWS: Final = 100_000
MOST_CELLS: Final = 1 << 20
"""Cells of one head that are still drawn again and again."""

SHOWN_CELLS: Final = 1 << 12
"""Maps of up to so many cells are told whole."""

Floats = npt.NDArray[np.floating[Any]]


class DropoutQuestion(Question, frozen=True, tag="dropout"):
    """What ``draws`` draws of dropout do to one ``head``, and to its ``row``; training or not, dropout acts here.

    The first draw is the spec's own, each later one has a ``dropout_seed`` higher by one.
    """

    spec: AttentionSpec
    head: int = 0
    row: int = 0
    draws: int = 1000

    def __post_init__(self) -> None:
        check_range("draws", self.draws, 1, MOST_DRAWS)
        check_range("head", self.head, 0, self.spec.num_heads - 1)
        if self.spec.dropout == 0:
            raise SpecError("dropout", "dropout is 0, so nothing is ever dropped: give a probability such as 0.5")
        if self.row < 0:
            raise SpecError("row", f"row is {self.row}: rows count from 0")

    @classmethod
    def of(cls, spec: AttentionSpec, head: int, row: int) -> DropoutQuestion:
        """What training would do to ``spec``, whether it trains or not."""
        return cls(spec=spec if spec.training else edited(spec, training=True), head=head, row=row)


@dataclass(frozen=True, slots=True, eq=False)
class DropoutAnswer(Answer):
    """What ``done`` draws have shown. C are keys, or the context's dimensions where ``site`` is context.

    ``cells`` (C,) are the row before dropout, ``masked`` bool (C,) what the mask hides of it, ``kept`` bool (C,) and
    ``dropped_row`` (C,) the spec's own draw. ``sums`` (done,) are the row's sums, whose theory is ``mean`` and
    ``deviation``. ``steps`` int (n,) are numbers of draws after which the mean map was compared with the undropped one:
    ``largest`` and ``average`` (n,) absolute differences, and ``expected`` (n,), the standard deviation that theory
    gives the mean of the largest cell. ``vanished`` (Q,) is the share of draws in which a row was dropped whole,
    ``vanishing`` (Q,) its closed form p^``n_visible`` int (Q,), the number of its cells that are not 0. ``mean_map``
    and ``whole_map`` (Q, C) with ``hidden_map`` bool (Q, C) are there for up to `SHOWN_CELLS` cells.
    """

    site: str
    p: float
    row: int
    cells: Floats
    masked: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]
    dropped_row: Floats
    sums: npt.NDArray[np.float64]
    mean: float
    deviation: float
    steps: npt.NDArray[np.int64]
    largest: npt.NDArray[np.float64]
    average: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]
    vanished: npt.NDArray[np.float64]
    vanishing: npt.NDArray[np.float64]
    n_visible: npt.NDArray[np.int64]
    tokens: tuple[str, ...] = ()
    mean_map: npt.NDArray[np.float64] | None = None
    whole_map: Floats | None = None
    hidden_map: npt.NDArray[np.bool_] | None = None

    @property
    def factor(self) -> float:
        """What survivors are multiplied by: 1/(1 − p)."""
        return 1 / (1 - self.p)

    def table(self) -> list[tuple[str, ...]]:
        """Lines for a terminal."""
        lines: list[tuple[str, ...]] = [
            ("draws", f"{self.done:,}"),
            ("survivors are multiplied by", f"{self.factor:.4g}"),
            (f"row {self.row}: mean of its sums", f"{self.sums.mean():.4f}", f"theory {self.mean:.4f}"),
            (f"row {self.row}: their deviation", f"{self.sums.std():.4f}", f"theory {self.deviation:.4f}"),
        ]
        if len(self.steps):
            said = f"largest {self.largest[-1]:.4f}", f"mean {self.average[-1]:.5f}"
            lines.append(("mean map - undropped map", *said))
        for row in range(min(len(self.vanished), 16)):
            seen, closed = 100 * self.vanished[row], 100 * self.vanishing[row]
            lines.append((f"row {row} dropped whole", f"{seen:.1f} %", f"p^{self.n_visible[row]} = {closed:.4g} %"))
        return lines


def sums_deviation(cells: Floats, p: float) -> float:
    """The standard deviation of a row's sum over draws, √(p/(1−p) · Σw²)."""
    wide = np.asarray(cells, np.float64)
    return float(np.sqrt(p / (1 - p) * np.square(wide).sum()))
