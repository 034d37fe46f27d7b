"""A lesson as frozen steps, and the measures that can answer its questions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from attnviz.spec import AttentionSpec, SpecError, View, stages_of

Language = Literal["en", "zh"]
Page = Literal["row", "masks", "dropout", "heads", "rounds", "exam", "ahead", "compare", "module"]
Look = Literal["map", "row", "strip", "page"]
Kind = Literal["number", "cell", "choice"]
Place = tuple[int, int]
"""A cell: (row, column), counted from 0."""
HALF_A_DIGIT: Final = 0.005
"""How far a number on the screen may be from what was measured: it has two decimals, or is a whole percent."""
Found = float | frozenset[Place]
"""What a measure finds on the screen: a number, or the cells of which any one is right."""


class Sum(float):
    """A number that several on the screen add up to; ``printed`` is what they add up to as they are printed."""

    printed: float

    def __new__(cls, exact: float, printed: float) -> Sum:
        made = super().__new__(cls, exact)
        made.printed = printed
        return made


@dataclass(frozen=True, slots=True)
class Words:
    """A text in both languages."""

    en: str
    zh: str

    def said(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True, slots=True)
class Measure:
    """What answers a question: a measure's ``name`` in `MEASURES`, or "study:…", and where it looks.

    ``stage`` None is the step's own stage. ``path`` names what of a study's answer is meant.
    """

    name: str
    stage: str | None = None
    head: int = 0
    row: int = 0
    col: int = 0
    dim: int = 0
    of: str = "dropped"
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several answers: right if the measure gives ``value``."""

    words: Words
    value: float


@dataclass(frozen=True, slots=True)
class LessonQuestion:
    """A step's question, answered on the screen's numbers. A number may be ``tolerance`` off, in the measure's units.

    What is measured may be a ``share``, which the screen prints as 37 % here and .37 there; with ``percent`` a % stands
    beside the field. In ``show`` {value} stands for what was measured. ``other_row`` is said to a click outside the
    measure's row, where that needs a hint of its own.
    """

    kind: Kind
    ask: Words
    measure: Measure
    right: Words
    wrong: Words
    show: Words
    percent: bool = False
    tolerance: float = HALF_A_DIGIT
    choices: tuple[Choice, ...] = ()
    share: bool = False
    other_row: Words | None = None


@dataclass(frozen=True, slots=True)
class LessonStep:
    """One step: what is computed, what is looked at, and what is said. ``before`` is the state that outlines show.

    ``part`` names the part of its page, one of `PARTS`, that is brought into sight; "" is its beginning.
    """

    id: str
    title: Words
    say: Words
    spec: AttentionSpec
    view: View
    before: AttentionSpec | None = None
    select: Place | None = None
    page: Page = "row"
    look: Look = "map"
    question: LessonQuestion | None = None
    part: str = ""

    def scene(self) -> tuple[AttentionSpec, View]:
        """The spec and view of this step's screen."""
        return self.spec, self.view

    def scene_before(self) -> tuple[AttentionSpec, View] | None:
        """The spec and view of the state before; where that lacks the shown stage, its weights."""
        if self.before is None:
            return None
        stage = self.view.stage if self.view.stage in stages_of(self.before) else "weights"
        head = self.view.head if self.view.head is None or self.view.head < self.before.num_heads else None
        return self.before, msgspec.structs.replace(self.view, stage=stage, head=head)


PARTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "masks": ("exhibits", "neg-inf", "depths", "controls", "row", "fills"),
        "dropout": ("row", "table", "plots", "maps"),
        "heads": ("forms", "ladder", "product"),
        "rounds": ("map", "row", "counts"),
        "exam": ("table", "plot", "maps"),
        "ahead": ("table", "plot"),
        "compare": ("maps", "numbers"),
    }
)
"""Parts of the pages that have several, from the top."""

_FEW: Final = 4


@dataclass(frozen=True, slots=True)
class LessonScript:
    """A whole lesson: at least one step, each with an id of its own."""

    title: Words
    steps: tuple[LessonStep, ...]

    def step(self, name: str) -> LessonStep:
        """The step of that id. Raises `SpecError` with the nearest ones there are."""
        return self.steps[self.index(name)]

    def index(self, name: str) -> int:
        """Where the step of that id stands. Raises `SpecError` with the nearest ones there are."""
        ids = [step.id for step in self.steps]
        if name not in ids:
            raise SpecError("step", f"step is {_short(name)}, which this lesson lacks: give {self.nearest(name)}")
        return ids.index(name)

    def nearest(self, name: str) -> str:
        """The ids that are most like ``name``, as words: "3.5.1, 3.5.2 or another of 31"; all where these are few."""
        ids = [step.id for step in self.steps]
        if len(ids) > _FEW:
            near = [*difflib.get_close_matches(name, ids, n=_FEW - 1, cutoff=0.4), *ids][: _FEW - 1]
            return f"{', '.join(dict.fromkeys(near))} or another of {len(ids)}"
        return " or ".join(filter(None, (", ".join(ids[:-1]), ids[-1])))


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")


_CELL_OF: Final = frozenset({"stage", "head", "row", "col"})
_ROW_OF: Final = frozenset({"stage", "head", "row"})
_ROW: Final = frozenset({"head", "row"})
MEASURES: Final[Mapping[str, tuple[Literal["number", "cell"], frozenset[str]]]] = MappingProxyType(
    {
        "cell": ("number", _CELL_OF),  # the number that stands there
        "row_sum": ("number", _ROW_OF),
        "visible_keys": ("number", _ROW),  # keys of the row that nothing hides
        "weight_on_future": ("number", _ROW_OF),  # of a row, on keys that the mask's shape hides
        "context": ("number", frozenset({"head", "row", "dim"})),
        "change": ("number", _CELL_OF),  # now less before
        "largest_change": ("number", _ROW_OF),  # of a row, in size
        "count": ("number", frozenset({"head", "of"})),  # cells of a kind in the whole map
        "empty_rows": ("number", _ROW_OF),  # rows that sum to 0
        "nan_rows": ("number", _ROW_OF),  # rows with a cell that is NaN
        "columns": ("number", frozenset({"stage"})),  # of a stage's array
        "projections": ("number", frozenset()),  # matrices that make queries, keys and values
        "parameters": ("number", frozenset()),  # numbers that are learnt
        "largest_of_row": ("cell", _ROW),
        "smallest_of_row": ("cell", _ROW),  # among those that are seen
        "hidden_of_row": ("cell", _ROW),
        "future_of_row": ("cell", _ROW),  # hidden by the shape, and seen all the same
        "dropped": ("cell", frozenset({"head"})),
        "grew_most": ("cell", _ROW),  # of a row, against the state before
        "empty": ("cell", frozenset({"head"})),  # cells of rows that sum to 0
    }
)
"""What can be measured on a screen: the kind of answer, and the fields that say where it looks."""

AGAINST_BEFORE: Final = frozenset({"change", "largest_change", "grew_most"})
"""Measures that need a step's state before."""

OF_KEYS: Final = frozenset(
    {
        "weight_on_future", "visible_keys", "largest_of_row", "smallest_of_row", "hidden_of_row", "future_of_row",
        "grew_most",
    }
)  # fmt: skip
"""Measures whose columns are keys, whichever stage they read."""

ANYWHERE: Final = frozenset({"context", "columns", "projections", "parameters"})
"""Measures that do not look at the shown map."""

OF_WEIGHTS: Final = frozenset({"weights", "unmasked_weights", "unnormalised_weights", "row_sums", "dropped_weights"})
"""Stages whose numbers are shares of a row."""

SHARES: Final = frozenset({"cell", "row_sum", "weight_on_future", "change", "largest_change"})
"""Measures that find a share where they read such a stage."""

KINDS_OF_CELLS: Final = ("masked", "zero", "nan", "dropped", "future")
STUDY: Final = re.compile(r"study:([a-z][a-z-]*)((?:\.[a-z0-9][a-z0-9_]*)+)")
