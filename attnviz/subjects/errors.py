"""Why a module could not be found, built or run."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Final, Literal

_LONGEST: Final = 300


class SubjectError(RuntimeError):
    """A sentence that says what happened and what would help.

    ``kind`` is "asked" where other arguments would help, "broken" where the module itself cannot be run.
    """

    def __init__(self, sentence: str, kind: Literal["asked", "broken"] = "broken") -> None:
        super().__init__(sentence)
        self.sentence, self.kind = sentence, kind


def raised(error: BaseException, file: str | None = None) -> str:
    """What was raised, in one line, with the last line of ``file`` (else the last of all) that it went through."""
    words = " ".join(str(error).split())
    words = f"{type(error).__name__}: {words}" if words else type(error).__name__
    if len(words) > _LONGEST:
        words = words[: _LONGEST - 1] + "…"
    place = _place(error.__traceback__, file)
    return f"{words} ({place})" if place else words


def _place(trace: TracebackType | None, file: str | None) -> str:
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if frame.filename == file] if file is not None else []
    last = own[-1] if own else None
    return f"{last.filename}:{last.lineno}" if last is not None else ""
