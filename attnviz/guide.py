"""Pure state of a lesson that is being played: which step, what was answered, and whether it was right. No Qt."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from attnviz.lesson_files import (
    HALF_A_DIGIT,
    Found,
    Language,
    LessonQuestion,
    LessonScript,
    LessonStep,
    Place,
    Sum,
)
from attnviz.session import Cell

Given = float | int | Place | Cell
"""An answer: a number as typed (88 for 88 %), a choice by its place, or a cell."""


class Typed(float):
    """A number as it was typed: with its ``percent`` sign (88 for "88 %"), or as a ``whole`` one without a point."""

    percent: bool
    whole: bool

    def __new__(cls, number: float, *, percent: bool = False, whole: bool | None = None) -> Typed:
        made = super().__new__(cls, number)
        made.percent = percent
        made.whole = made.is_integer() if whole is None else whole
        return made


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
                in_row = asked.other_row is None or _row_of(self.given) == asked.measure.row
                return (asked.wrong if in_row or asked.other_row is None else asked.other_row).said(self.language)
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


def _row_of(given: Given | None) -> int | None:
    if isinstance(given, Cell):
        return given.row
    return given[0] if isinstance(given, tuple) else None


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
    printed = found.printed if isinstance(found, Sum) else found
    meant = _meant(asked, given if isinstance(given, Typed) else Typed(given))
    return any(_near(number, found, asked.tolerance) or _near(number, printed, 0) for number in meant)


def _meant(asked: LessonQuestion, typed: Typed) -> Sequence[float]:
    """What ``typed`` can mean, in the measure's units.

    37 % is always 0.37. Where a share was asked for, 37 and 0.37 both are, but a whole number beside the field's own
    % is nothing else than percents: 1 there is 1 %, and 1.00 all of it.
    """
    as_percents, as_it_is = typed / 100, float(typed)
    if typed.percent or (asked.percent and typed.whole):
        return (as_percents,)
    return (as_it_is, as_percents) if asked.share else (as_it_is,)


def answer_words(asked: LessonQuestion, found: Found, language: Language = "en") -> str:
    """What was measured, as a person would type it: "88 %", "0.36", "21", "6e−8"; a cell as "row 1, column 2"."""
    if isinstance(found, frozenset):
        words = "行 {}，列 {}" if language == "zh" else "row {}, column {}"
        return words.format(*min(found)) if found else "–"
    if asked.percent:
        digits = 1 if asked.measure.path else 0  # a study's page prints one
        return f"{100 * found:.{digits}f} %".replace("-", "−")
    digits = 4 if asked.tolerance < HALF_A_DIGIT else 2
    if digits > 2 and 0 < abs(found) < 10**-digits:  # rounding, and said as such
        return f"{found:.2g}".replace("e-0", "e-").replace("-", "−")
    whole = math.isfinite(found) and abs(found - round(found)) < 10**-digits / 2
    return (f"{found:.0f}" if whole else f"{found:.{digits}f}").replace("-", "−")


def number_of(text: str) -> Typed | None:
    """The number that was typed, None for all else.

    "88", "0,88", ".88", "−0.07", "8/9", "88 %", and powers of ten: "6e-8", "6·10⁻⁸", "6 x 10^-8".
    """
    plain = _RAISED.sub(lambda raised: "^" + raised.group().translate(_LOWERED), text.lower())
    plain = re.sub(r"[\s%％]", "", plain).translate(_PLAIN)
    read = _NUMBER.fullmatch(plain)
    if read is None:
        return None
    below = float(read["below"] or 1)
    number = float(read["number"] or 1) * 10.0 ** int(read["power"] or read["bare"] or 0)
    if not below or not math.isfinite(number):
        return None
    signed = -number if plain.startswith("-") else number
    return Typed(signed / below, percent=bool(re.search(r"[%％]", text)), whole=plain.lstrip("+-").isdigit())


_RAISED: Final = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_LOWERED: Final = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_PLAIN: Final = str.maketrans("−–，,。．×*⋅∙x", "--....·····")
_NUMBER: Final = re.compile(
    r"[-+]?(?:10\^(?P<bare>[-+]?\d{1,2})|(?P<number>\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})"
    r"(?:(?:e|·10\^)(?P<power>[-+]?\d{1,2}))?)(?:/(?P<below>\d{1,6}))?"
)


def _near(given: float, found: float, tolerance: float) -> bool:
    return abs(given - found) <= tolerance + 1e-9 or given == found
