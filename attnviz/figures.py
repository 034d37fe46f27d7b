"""A figure as it is asked for: what it shows of which attention, and the paper it is drawn on. Frozen, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, get_args

import msgspec

from attnviz.questions import Question
from attnviz.spec import LINES, AttentionSpec, Paper, SpecError, View, make_spec, stages_of

Shows = Literal[
    "heads", "a-b", "difference", "gallery", "row", "dropout", "heads-study", "rounds", "exam", "future-share", "forms",
    "leaks",
]  # fmt: skip
"""What is on the sheet. *heads*: maps of one stage. *a-b*, *difference*: two states of one head side by side, and what
is apart. *gallery*: every mask. *row*: one row with its bars. The others are plots and tables of the study of that name
(*heads-study* that of stacked and split heads)."""

SHOWS: Final = get_args(Shows)

CROPPABLE: Final[tuple[Shows, ...]] = ("heads", "a-b", "difference", "gallery")
"""Of what maps some rows and columns can be shown alone: those of the figure's view."""

COMPARING: Final[tuple[Shows, ...]] = ("a-b", "difference", "row")
"""What shows a state beside another one."""

PARTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "a-b": ("maps",),
        "difference": ("maps", "apart", "sides", "heads"),
        "gallery": ("maps", "limits", "hidden-row"),
        "dropout": ("sums", "errors", "vanished", "maps"),
        "heads-study": ("forms", "ladder", "product"),
        "rounds": ("map", "row", "costs"),
        "exam": ("losses", "table", "maps"),
        "future-share": ("curve", "table"),
        "forms": ("same", "times", "costs"),
        "leaks": ("map", "verdicts"),
    }
)
"""What a figure of a study is made of, by what it shows. Not every answer has all of them."""

Animates = Literal["nothing", "stages", "re-rolls", "rounds", "exam"]
"""What moves from one picture of an animation to the next: the stage, the draw of dropout, the tokens that are written,
the steps of training."""

ANIMATES: Final = get_args(Animates)
MOST_FRAMES: Final = 500
PICTURES: Final = (".png", ".svg", ".pdf", ".gif")
"""Endings of the files that a figure is written to."""
NUMBERS: Final = (".npz", ".csv")
"""Endings of the files that its numbers are written to."""


def check_suffix(path: Path, offered: Sequence[str]) -> str:
    """The ending of ``path`` in small letters. Raises `SpecError` for one that is not among those ``offered``."""
    suffix = path.suffix.lower()
    if suffix not in offered:
        said = f"ends in {suffix}" if suffix else "has no ending"
        raise SpecError("path", f"{path.name or path} {said}: give a name that ends in {', '.join(offered)}")
    return suffix


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One picture.

    ``spec`` and ``view`` say what is computed and looked at, as in the window. ``heads`` are some of them, () the
    view's: one or all. ``row`` is the query that a *row*, a *gallery* and some studies look at, None for the last.
    ``beside`` is B of *a-b* and *difference*, A is ``spec``; of a *row* it is the state before. ``question`` is the
    whole question of a study, None for the one that ``spec`` and its defaults make; which cells of its maps are shown
    is the view's to say. ``parts`` are those of `PARTS` that stand on the sheet, () all that have room. ``animates``
    says what moves in a file of several pictures, of which there are at most ``frames``, each for ``seconds``.
    """

    spec: AttentionSpec = msgspec.field(default_factory=make_spec)
    view: View = msgspec.field(default_factory=View)
    paper: Paper = msgspec.field(default_factory=Paper)
    shows: Shows = "heads"
    heads: tuple[int, ...] = ()
    row: int | None = None
    beside: AttentionSpec | None = None
    question: Question | None = None
    parts: tuple[str, ...] = ()
    animates: Animates = "nothing"
    frames: int = 12
    seconds: float = 0.8

    def __post_init__(self) -> None:
        if self.shows not in SHOWS:
            raise SpecError("shows", f"shows is {self.shows!r}: give one of {', '.join(SHOWS)}")
        if self.animates not in ANIMATES:
            raise SpecError("animates", f"animates is {self.animates!r}: give one of {', '.join(ANIMATES)}")
        if not 1 <= self.frames <= MOST_FRAMES:
            raise SpecError("frames", f"frames is {self.frames}: give 1 to {MOST_FRAMES}")
        if not 0.02 <= self.seconds <= 600:
            raise SpecError("seconds", f"seconds is {self.seconds:g}: give 0.02 to 600 for each picture")
        if self.shows in ("a-b", "difference") and self.beside is None:
            raise SpecError("beside", f"{self.shows} compares two states: say what differs in the other one")
        if self.row is not None and self.row < 0:
            raise SpecError("row", f"row is {self.row}: rows count from 0")
        known = parts_of(self.shows, self.animates)
        for part in self.parts:
            if part not in known:
                which = f"give some of {', '.join(known)}" if known else f"{self.shows} is one picture; leave it out"
                raise SpecError("parts", f"parts has {part!r}: {which}")
        for head in self.heads:
            if not 0 <= head < self.spec.num_heads:
                raise SpecError("heads", f"heads has {head}: heads count from 0 to {self.spec.num_heads - 1}")
        if len(set(self.heads)) < len(self.heads):
            raise SpecError("heads", "heads has a head twice: give each once")
        for field in LINES:
            if getattr(self.question, field, None) is not None:
                raise SpecError(field, f"the question has {LINES[field]} of its own: give them to the figure's view")

    @property
    def head(self) -> int:
        """The head that a study of one looks at: its question's, else the figure's first, the view's, or the first."""
        asked: int | None = getattr(self.question, "head", None)
        if asked is not None:
            return asked
        return min(self.heads[0] if self.heads else self.view.head or 0, self.spec.num_heads - 1)

    def moments(self, count: int) -> list[int]:
        """Which of 1 to ``count`` an animation shows: at most `frames`, evenly apart, the last one among them."""
        return sorted({-(-count * n // self.frames) for n in range(1, self.frames + 1)})


def rerolled_view(figure: Figure) -> View:
    """The view of a picture in which dropout is drawn again: dropout's own stage where the figure's comes before it."""
    spec, dropped = figure.spec, f"dropped_{figure.spec.dropout_site}"
    names = stages_of(spec)
    if dropped not in names or figure.view.stage in names[names.index(dropped) :]:
        return figure.view
    return msgspec.structs.replace(figure.view, stage=dropped)


def parts_of(shows: Shows, animates: Animates) -> tuple[str, ...]:
    """What a figure is made of, and the study that moves in it; () where it is one picture."""
    return tuple(dict.fromkeys(part for one in (shows, animates) for part in PARTS.get(one, ())))


def whole(figure: Figure) -> Figure:
    """``figure`` with all cells of its maps."""
    return msgspec.structs.replace(figure, view=msgspec.structs.replace(figure.view, rows=None, cols=None))
