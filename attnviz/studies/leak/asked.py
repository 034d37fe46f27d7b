"""The study as the window asks it: a spec on every device of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from attnviz import inputs
from attnviz.attention.devices import TorchBackend
from attnviz.questions.leak import LeakAnswer, LeakQuestion
from attnviz.spec import SpecError
from attnviz.studies.leak import readings
from attnviz.studies.leak.readings import MOST_TOKENS, Plan
from attnviz.studies.leak.spec_subject import SpecSubject

_MOST_BY_GRADIENT: Final = 256  # tokens: each output is a pass back
_GRADIENT_S: Final = 20.0


def answers(question: LeakQuestion, cancelled: Callable[[], bool]) -> Iterator[LeakAnswer]:
    """A reading after another. Raises `SpecError` where the source has no inputs, or too many."""
    subject = SpecSubject(question.spec)
    length = inputs.count_tokens(question.spec.source)[1]
    if not 2 <= length <= MOST_TOKENS:
        raise SpecError("source", f"who sees whom is tested for 2 to {MOST_TOKENS:,} tokens, here are {length:,}")
    devices = tuple(device.name for device in TorchBackend().devices())
    plan = Plan(
        devices,
        length=length,
        scale=question.scale,
        seed=question.spec.seed,
        gradient=length <= _MOST_BY_GRADIENT,
        gradient_s=_GRADIENT_S,
    )
    yield from readings.answers(subject, plan, cancelled)
