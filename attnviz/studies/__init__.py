"""Questions put to attention, one file a study: a frozen question in, partial answers streamed out, cancellable.

The same generator serves the window, the command line and the tests. With `attnviz.engine` this is the border from
torch to NumPy. Each study's module is imported when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from attnviz.questions import Answer, Question

Cancelled = Callable[[], bool]

MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compare": "compare",
        "dropout": "dropout",
        "exam": "exam",
        "forms": "forms",
        "future-share": "future_share",
        "gallery": "gallery",
        "heads": "heads",
        "leak": "leak.asked",
        "rounds": "rounds",
    }
)
"""Where each study's ``answers(question, cancelled)`` stands, by the study's name."""


def answers(question: Question, cancelled: Cancelled = lambda: False) -> Iterator[Answer]:
    """Partial answers, each newer than the one before; ends early once ``cancelled()``.

    Between two answers a caller may rest for as long as it likes. Raises `spec.SpecError` for a question that cannot be
    answered, in words for the person who asked.
    """
    study = import_module(f"attnviz.studies.{MODULES[question.name]}")
    stream: Iterator[Answer] = study.answers(question, cancelled)
    return stream
