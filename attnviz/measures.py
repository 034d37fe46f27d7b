"""What a lesson's questions are answered by: named measures of the numbers that stand on the screen. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from attnviz.frames import CellClass, Frame, Outline, RowStory, Values
from attnviz.lesson_files import ANYWHERE, IN_PERCENT, Found, LessonStep, Measure, Place, Sum
from attnviz.questions import Answer, Question
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.rounds import RoundsAnswer, cells_cached, cells_in_one_pass, cells_recomputed
from attnviz.session import Picture, Snapshot
from attnviz.spec import AttentionSpec, MaskFile, masked_at, visible_runs

_DECIMALS = 2  # which the screen prints of a number; a whole percent has as many
_TIE = 1e-6  # weights closer than this are equally large
_OF_ROUNDS: Final[Mapping[str, Callable[[int], int]]] = MappingProxyType(
    {
        "cells_recomputed": cells_recomputed,
        "cells_cached": cells_cached,
        "cells_in_one_pass": cells_in_one_pass,
    }
)


@dataclass(frozen=True, slots=True)
class Screen:
    """What a measure may look at: the picture, the one before, the selected row's story.

    ``answers`` and ``asked`` are studies' answers and questions, by the study's name.
    """

    picture: Picture | None
    before: Picture | None = None
    story: RowStory | None = None
    answers: Mapping[str, Answer] = field(default_factory=lambda: MappingProxyType({}))
    asked: Mapping[str, Question] = field(default_factory=lambda: MappingProxyType({}))


def screen_of(
    snapshot: Snapshot,
    answers: Mapping[str, Answer] = MappingProxyType({}),
    asked: Mapping[str, Question] = MappingProxyType({}),
) -> Screen:
    """The screen of a window's snapshot, with studies' answers and questions about its present spec, by name."""
    return Screen(snapshot.picture, snapshot.before, snapshot.story, answers, asked)


def found(step: LessonStep, screen: Screen) -> Found | None:
    """What answers the step's question; None where the screen shows something else, or not all of it yet.

    A study's figure counts once it has finished, or where its question tells it. An answer that a study gave on
    another spec must not be among the screen's. Changes count against the step's own state before, and no other.
    """
    if step.question is None:
        return None
    measure = step.question.measure
    picture = screen.picture
    if picture is None or picture.outline is None or picture.spec != step.spec:
        return None
    if measure.path:
        return _of_study(measure, screen)
    if measure.stage is None and measure.name not in ANYWHERE and picture.view.stage != step.view.stage:
        return None
    try:
        return _Reading(measure, step.view.stage, picture, picture.outline, screen, step.before).found()
    except _NotHereError:
        return None


class _NotHereError(LookupError):
    """The screen lacks what was asked for."""


def _of_study(measure: Measure, screen: Screen) -> float | None:
    name = measure.name.removeprefix("study:")
    value: object = screen.answers.get(name)
    asked = screen.asked.get(name)
    if isinstance(asked, ExamQuestion) and measure.path == ("floor",):
        return math.log(asked.vocabulary)
    if isinstance(value, RoundsAnswer) and measure.path[0] in _OF_ROUNDS:
        return float(_OF_ROUNDS[measure.path[0]](value.total))
    if not isinstance(value, Answer) or not value.finished:
        return None
    for part in measure.path:
        if part.isdigit() and isinstance(value, Sequence | np.ndarray):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = getattr(value, part, None)
    if not isinstance(value, bool | int | float | np.number | np.bool_):
        return None
    return float(value) / 100 if name in IN_PERCENT else float(value)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One measure on one picture. ``own`` is the step's stage, ``expected`` what the state before must be."""

    measure: Measure
    own: str
    picture: Picture
    outline: Outline
    screen: Screen
    expected: AttentionSpec | None

    def found(self) -> Found:
        measure = self.measure
        match measure.name:
            case "cell":
                return self._cell(self.picture)
            case "change":
                return self._cell(self.picture) - self._cell(self._before())
            case "context":
                return self._context()
            case "columns":
                return float(_shape_of(self.outline, self._stage)[-1])
            case "projections":
                kinds = ("query", "key", "value")
                rows = self.outline.parameters
                return float(sum(r.kind == "parameter" and len(r.shape) == 2 and _is_any(r.name, kinds) for r in rows))
            case "parameters":
                return float(sum(r.numel for r in self.outline.parameters if r.kind == "parameter"))
            case "count":
                return float(getattr(self._frame(self.picture, None).counts, measure.of))
            case "row_sum" | "weight_on_future" | "visible_keys" | "largest_change":
                return self._of_row()
            case "empty_rows" | "nan_rows":
                values = self._whole(self.picture)
                return float((np.isnan(values).any(1) if measure.name == "nan_rows" else (values == 0).all(1)).sum())
        return self._places()

    # Numbers -------------------------------------------------------------------------------------------------------

    def _of_row(self) -> float:
        row = self._row(self.picture)
        match self.measure.name:
            case "row_sum":
                return _added(row)
            case "weight_on_future":
                return _added(self._of_keys(row)[self._hidden_by_shape()])
            case "visible_keys":
                return float((~self._hidden()).sum())
        return float(np.abs(row.astype(np.float64) - self._row_before(row)).max())

    def _cell(self, picture: Picture) -> float:
        row = self._row(picture)
        if self.measure.col >= len(row):
            raise _NotHereError
        return float(row[self.measure.col])

    def _context(self) -> float:
        row = self._row(self.picture, "context")
        if self.measure.dim >= len(row):
            raise _NotHereError
        return float(row[self.measure.dim])

    # Cells ---------------------------------------------------------------------------------------------------------

    def _places(self) -> frozenset[Place]:
        row = self.measure.row
        if self.measure.name == "dropped":
            return _where(self._frame(self.picture, None).classes == CellClass.DROPPED)
        if self.measure.name == "empty":
            values = self._whole(self.picture)
            return _where(np.broadcast_to((values == 0).all(1)[:, None], values.shape))
        values, hidden = self._of_keys(self._row(self.picture)).astype(np.float64), self._hidden()
        if hidden.all() and self.measure.name != "hidden_of_row":
            return frozenset()
        match self.measure.name:
            case "largest_of_row":
                chosen = values >= np.max(values[~hidden]) - _TIE
            case "smallest_of_row":
                chosen = values <= np.min(values[~hidden]) + _TIE
            case "hidden_of_row":
                return frozenset((row, int(col)) for col in np.flatnonzero(hidden))
            case "future_of_row":
                chosen = self._hidden_by_shape()
            case "grew_most":
                grown = values - self._row_before(values)
                chosen = grown >= np.max(grown[~hidden]) - _TIE
            case _:
                raise _NotHereError
        return frozenset((row, int(col)) for col in np.flatnonzero(chosen & ~hidden))

    def _hidden_by_shape(self) -> npt.NDArray[np.bool_]:
        shape, outline = self.picture.spec.mask_shape, self.outline
        if isinstance(shape, MaskFile):
            raise _NotHereError
        hidden = np.ones(outline.n_keys, np.bool_)
        for first, end in visible_runs(shape, self.measure.row, outline.n_queries, outline.n_keys):
            hidden[first:end] = False
        return hidden

    def _hidden(self) -> npt.NDArray[np.bool_]:
        """The row's keys that are masked or padded in what is shown."""
        if not masked_at(self.picture.spec, self._stage):
            return np.zeros(self.outline.n_keys, np.bool_)
        frame = self._frame(self.picture, None)
        hidden: npt.NDArray[np.bool_] = (frame.classes[self.measure.row] & (CellClass.MASKED | CellClass.PADDED)) != 0
        return hidden

    # Where numbers stand -------------------------------------------------------------------------------------------

    @property
    def _stage(self) -> str:
        return self.measure.stage or self.own

    def _of_keys(self, row: Values) -> Values:
        """``row``, if a column of it is a key."""
        if row.shape != (self.outline.n_keys,):
            raise _NotHereError
        return row

    def _before(self) -> Picture:
        before = self.screen.before
        if before is None or self.expected is None or before.spec != self.expected:
            raise _NotHereError
        return before

    def _row_before(self, row: Values) -> Values:
        """The row as it was before; of another length it is no row to compare ``row`` with."""
        before = self._row(self._before())
        if before.shape != row.shape:
            raise _NotHereError
        return before

    def _frame(self, picture: Picture, stage: str | None) -> Frame:
        """The whole map of a stage, a number a cell."""
        stage = stage or self._stage
        frame = picture.frames.get(f"head:{self.measure.head}", picture.frames.get("all"))
        if frame is None or frame.stage != stage or not (frame.exact and frame.level == 1):
            raise _NotHereError
        if frame.values.shape != _shape_of(picture.outline, stage)[-2:] or self.measure.row >= len(frame.values):
            raise _NotHereError  # a part of the map, or a row that it has not
        return frame

    def _whole(self, picture: Picture) -> Values:
        return self._frame(picture, None).values

    def _row(self, picture: Picture, stage: str | None = None) -> Values:
        """A stage's row from the map, or from the selected row's story where the map shows another stage."""
        name = stage or self._stage
        try:
            row: Values = self._frame(picture, name).values[self.measure.row]
        except _NotHereError:
            story = self.screen.story
            told = None if story is None else (story.now if picture is self.picture else story.before)
            if told is None or (told.row, told.head, told.spec) != (self.measure.row, self.measure.head, picture.spec):
                raise
            if name not in told.stages:
                raise
            row = told.stages[name]
        return row


def _shape_of(outline: Outline | None, stage: str) -> tuple[int, ...]:
    for known in () if outline is None else outline.stages:
        if known.name == stage:
            return known.shape
    raise _NotHereError


def _added(numbers: Values) -> Sum:
    exact = numbers.astype(np.float64)
    return Sum(float(exact.sum()), float(exact.round(_DECIMALS).sum()))


def _is_any(name: str, kinds: tuple[str, ...]) -> bool:
    return any(kind in name.lower() for kind in kinds)


def _where(cells: npt.NDArray[np.bool_]) -> frozenset[Place]:
    return frozenset((int(row), int(col)) for row, col in zip(*np.nonzero(cells), strict=True))
