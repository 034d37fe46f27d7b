"""The exam: what a layer has learnt under a mask, on the training paper and when the answer is not in sight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from attnviz.questions.base import Answer, Question
from attnviz.spec import AttentionSpec, MaskMode, SpecError, held

EXAM_MASKS: Final = ("none", "fill-0", "multiply", "three-step", "neg-inf")
"""The masks that are asked by default, from the open book to the closed one."""

_PLAIN: Final[dict[str, tuple[MaskMode, float]]] = {
    "none": ("none", -math.inf), "multiply": ("multiply", -math.inf), "three-step": ("three-step", -math.inf),
    "neg-inf": ("neg-inf", -math.inf), "add": ("add", -math.inf), "fill-0": ("neg-inf", 0.0),
}  # fmt: skip


def exam_mask(name: str) -> tuple[MaskMode, float]:
    """The mask mode and the fill that ``name`` stands for: one of `EXAM_MASKS`, add, fill:X or add:X.

    Raises `SpecError` for another name.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    kind, colon, number = name.partition(":")
    modes: dict[str, MaskMode] = {"fill": "neg-inf", "add": "add"}
    try:
        fill = float(number)
    except ValueError:
        fill = math.nan
    if kind not in modes or not colon or not held(fill, "float32") < math.inf:
        raise SpecError("masks", f"masks has {name!r}: give {', '.join(_PLAIN)}, fill:NUMBER or add:NUMBER")
    return modes[kind], fill


def exam_mask_of(spec: AttentionSpec) -> str:
    """The name under which the mask of ``spec`` sits the exam; its shape there is always causal."""
    if not spec.fills or spec.fill == -math.inf:
        return spec.mask
    if spec.mask == "neg-inf":
        return "fill-0" if spec.fill == 0 else f"fill:{spec.fill:g}"
    return f"add:{spec.fill:g}"


class ExamQuestion(Question, frozen=True, tag="exam"):
    """One attention layer for each of ``masks``, trained for ``steps`` on random tokens drawn afresh at every step.

    ``vocabulary`` V tokens are equally likely, sequences have ``length`` of them, so that nobody who does not see the
    answer gets below ln V. Masks of one question start from the same numbers and read the same tokens.
    """

    masks: tuple[str, ...] = EXAM_MASKS
    vocabulary: int = 6
    length: int = 6
    steps: int = 200
    seed: int = 123

    def __post_init__(self) -> None:
        if not self.masks or len(set(self.masks)) < len(self.masks):
            raise SpecError("masks", f"masks is {', '.join(self.masks) or 'empty'}: give one mask or more, each once")
        for name in self.masks:
            exam_mask(name)
        for field, low, high in (("vocabulary", 2, 64), ("length", 2, 32), ("steps", 1, 5000), ("seed", 0, 2**63 - 1)):
            value = getattr(self, field)
            if not low <= value <= high:
                raise SpecError(field, f"{field} is {value}: give a whole number from {low} to {high:,}")


Verdict = Literal["copied", "honest", "between"]


@dataclass(frozen=True, slots=True, eq=False)
class ExamCurve:
    """One mask's course: at each of ``steps`` int (n,) the mean loss in nats a token.

    ``training`` float (n,) with the whole paper given, as in training; ``exam`` float (n,) where the layer gets the
    words up to here and nothing else. ``weights`` float32 (n, length, length) are the layer's for the sample.
    ``future`` float (n,) is the largest weight that lies on a key after its query.
    """

    mask: str
    steps: npt.NDArray[np.int64]
    training: npt.NDArray[np.float64]
    exam: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float32]
    future: npt.NDArray[np.float64]

    def verdict(self, floor: float, at: int = -1) -> Verdict:
        """Whether by point ``at`` it copied the answer (below ``floor`` in training, above in the exam) or guesses."""
        if self.training[at] < floor - 0.1 and self.exam[at] > floor + 0.1:
            return "copied"
        near = max(abs(float(loss) - floor) for loss in (self.training[at], self.exam[at]))
        return "honest" if near <= 0.05 else "between"


@dataclass(frozen=True, slots=True, eq=False)
class ExamAnswer(Answer):
    """Every mask's curve so far, in the order asked for. ``floor`` is ln V; ``sample`` are the tokens of the maps."""

    question: ExamQuestion
    floor: float
    sample: tuple[str, ...]
    curves: tuple[ExamCurve, ...]


def curve_of(mask: str, points: list[tuple[int, float, float, npt.NDArray[Any]]]) -> ExamCurve:
    """A curve of (step, training loss, exam loss, weights) points."""
    length = points[0][3].shape[0]
    above = np.triu(np.ones((length, length), bool), 1)
    weights = np.stack([point[3] for point in points]).astype(np.float32)
    future = weights[:, above].max(1).astype(np.float64)
    columns = (
        np.array([point[0] for point in points], np.int64),
        np.array([point[1] for point in points], np.float64),
        np.array([point[2] for point in points], np.float64),
        weights,
        future,
    )
    for column in columns:
        column.flags.writeable = False
    return ExamCurve(mask, *columns)
