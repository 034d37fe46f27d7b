"""Pure state of a lesson that is being played: which step, what was answered, and whether it was right. No Qt."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnviz.lesson_files import Found, Language, LessonQuestion, LessonScript, LessonStep, Place
from attnviz.session import Cell

Given = float | int | Place | Cell
"""An answer: a number as typed (88 for 88 %), a choice by its place, or a cell."""


class Percentage(float):
    """A number that was typed with its % sign: 88 for "88 %"."""


class Verdict(enum.Enum):
    """What is known of an answer.

    `UNKNOWN`: the screen shows something else than the step. `RUNNING`: what answers it is still being computed.
    """

    NONE = "none"
    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    RUNNING = "running"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class GuideState:
    """Everything that a lesson's card shows, frozen.

    ``index`` counts from 0. ``found`` is what was measured, once the answer was asked for. ``pointed`` is the cell to
    look at then, where the answer is one.
    """

    script: LessonScript
    index: int = 0
    language: Language = "en"
    verdict: Verdict = Verdict.NONE
    given: Given | None = None
    misses: int = 0
    found: Found | None = None
    pointed: Place | None = None

    @property
    def step(self) -> LessonStep:
        return self.script.steps[self.index]

    @property
    def total(self) -> int:
        return len(self.script.steps)

    @property
    def is_last(self) -> bool:
        return self.index == self.total - 1

    @property
    def awaits_cell(self) -> bool:
        """Whether a click on the map is an answer now."""
        asked = self.step.question
        open_still = self.verdict not in (Verdict.RIGHT, Verdict.SHOWN)
        return asked is not None and asked.kind == "cell" and open_still

    @property
    def can_show(self) -> bool:
        """Whether "show me" is offered: after a miss, until it was shown."""
        return self.misses > 0 and self.verdict not in (Verdict.RIGHT, Verdict.SHOWN)

    @property
    def feedback(self) -> str:
        """The line under the question; empty before an answer. Words for what is not judged are the card's."""
        asked = self.step.question
        if asked is None:
            return ""
        match self.verdict:
            case Verdict.RIGHT:
                return asked.right.said(self.language)
            case Verdict.WRONG:
                return asked.wrong.said(self.language)
            case Verdict.SHOWN if self.found is not None:
                value = answer_words(asked, self.found, self.language)
                return asked.show.said(self.language).replace("{value}", value)
        return ""


class Guide:
    """Plays one lesson: `next`, `back`, `jump`, `answer`, `show_me`. Thread: the caller's own."""

    def __init__(self, script: LessonScript, index: int = 0, language: Language = "en") -> None:
        self._state = GuideState(script, language=language)
        self.jump(index)

    @property
    def state(self) -> GuideState:
        return self._state

    @property
    def step(self) -> LessonStep:
        return self._state.step

    def next(self) -> bool:
        """Go a step on. Returns whether there was one."""
        return self.jump(self._state.index + 1)

    def back(self) -> bool:
        """Go a step back. Returns whether there was one."""
        return self.jump(self._state.index - 1)

    def jump(self, to: int | str) -> bool:
        """Go to a step, by place or id; its question is open again. Returns whether there is one of that place.

        Raises `spec.SpecError` for an unknown id.
        """
        script = self._state.script
        index = script.index(to) if isinstance(to, str) else to
        if not 0 <= index < len(script.steps):
            return False
        self._state = GuideState(script, index, self._state.language)
        return True

    def set_language(self, language: Language) -> None:
        """Say it in another language; what was answered stays."""
        self._state = replace(self._state, language=language)

    def answer(self, given: Given, found: Found | None, *, running: bool = False) -> Verdict:
        """Judge ``given`` by what the measure has ``found``.

        None says that the screen shows something else, or with ``running`` that it is still being computed.
        """
        asked = self._state.step.question
        if asked is None or self._state.verdict in (Verdict.RIGHT, Verdict.SHOWN):
            return self._state.verdict
        if found is None:
            verdict = Verdict.RUNNING if running else Verdict.UNKNOWN
        else:
            verdict = Verdict.RIGHT if is_right(asked, given, found) else Verdict.WRONG
        misses = self._state.misses + (verdict is Verdict.WRONG)
        self._state = replace(self._state, verdict=verdict, given=given, misses=misses)
        return verdict

    def show_me(self, found: Found | None, *, running: bool = False) -> None:
        """Say the answer, which counts after a miss alone; None and ``running`` as in `answer`."""
        asked = self._state.step.question
        if asked is None or not self._state.can_show:
            return
        if found is None:
            self._state = replace(self._state, verdict=Verdict.RUNNING if running else Verdict.UNKNOWN)
            return
        pointed = min(found) if isinstance(found, frozenset) and found else None
        self._state = replace(self._state, verdict=Verdict.SHOWN, found=found, pointed=pointed)


def is_right(asked: LessonQuestion, given: Given, found: Found) -> bool:
    """Whether ``given`` answers the question for which ``found`` was measured."""
    if isinstance(given, Cell):
        given = given.row, given.col
    if isinstance(found, frozenset):
        return given in found
    if isinstance(given, tuple) or math.isnan(found):
        return False
    if asked.kind == "choice":
        chosen = int(given)
        return 0 <= chosen < len(asked.choices) and _near(asked.choices[chosen].value, found, asked.tolerance)
    if asked.percent:
        as_share = not isinstance(given, Percentage) and abs(given) <= 1
        return _near(given / 100, found, asked.tolerance) or (as_share and _near(given, found, asked.tolerance))
    return _near(given, found, asked.tolerance)


def answer_words(asked: LessonQuestion, found: Found, language: Language = "en") -> str:
    """What was measured, as a person would type it: "88 %", "0.36", "21"; a cell as "row 1, column 2"."""
    if isinstance(found, frozenset):
        words = "行 {}，列 {}" if language == "zh" else "row {}, column {}"
        return words.format(*min(found)) if found else "–"
    if asked.percent:
        return f"{100 * found:.0f} %".replace("-", "−")
    digits = 4 if asked.tolerance < 0.005 else 2
    whole = math.isfinite(found) and abs(found - round(found)) < 10**-digits / 2
    return (f"{found:.0f}" if whole else f"{found:.{digits}f}").replace("-", "−")


def number_of(text: str) -> float | None:
    """The number that was typed: "88", "0,88", ".88", "−0.07", "8/9"; "88 %" is a `Percentage`; None for all else."""
    cleaned = re.sub(r"[\s%％]", "", text).replace("−", "-").replace("，", ",").replace("。", ".").replace(",", ".")
    parts: Sequence[str] = cleaned.split("/")
    if not re.fullmatch(r"[-+]?(\d{1,12}(\.\d{0,12})?|\.\d{1,12})(/\d{1,6})?", cleaned):
        return None
    bottom = float(parts[1]) if len(parts) > 1 else 1.0
    if not bottom:
        return None
    number = float(parts[0]) / bottom
    return Percentage(number) if re.search(r"[%％]", text) else number


def _near(given: float, found: float, tolerance: float) -> bool:
    return abs(given - found) <= tolerance + 1e-9 or given == found
