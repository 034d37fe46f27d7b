"""Options that a figure of another kind has: what is asked for is on the sheet, or it is said why it cannot be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click

from attnviz.figure_questions import studied, usual_question
from attnviz.figures import COMPARING, CROPPABLE, SHOWS, Figure, Shows
from attnviz.options.figure import FIGURE_OPTIONS, PAPER_OPTIONS, said
from attnviz.options.spec import SOURCE_OPTIONS, SPEC_OPTIONS, AskError, flag_of
from attnviz.questions.compare import CompareQuestion
from attnviz.spec import JOINT_STAGES, SpecError, stages_of

_PAIRS: Final[tuple[Shows, ...]] = ("a-b", "difference")
_OWN_NUMBERS: Final[tuple[Shows, ...]] = ("exam", "future-share", "forms")
"""Studies that make their own inputs: the fields of their questions are theirs alone."""

_OF_A_HEAD: Final[tuple[Shows, ...]] = ("heads", *_PAIRS, "gallery", "row", "dropout", "rounds")
TAKES: Final[Mapping[str, tuple[Shows, ...]]] = MappingProxyType(
    {
        "rows": CROPPABLE, "cols": CROPPABLE, "beside": COMPARING, "stage": ("heads", *_PAIRS),
        "head": _OF_A_HEAD, "heads": _OF_A_HEAD, "row": ("heads", "gallery", "row", "dropout", "rounds"),
        "bound": ("heads",), "pooling": ("heads",), "norm": ("heads", *_PAIRS, "gallery", "dropout"),
    }
)  # fmt: skip
"""What a figure must show for an option, by its field, to do anything."""


_OPTIONS: Final[Mapping[str, click.Option]] = MappingProxyType({**SPEC_OPTIONS, **PAPER_OPTIONS, **FIGURE_OPTIONS})
"""Options by the field that they set; those of sources have its name."""


def check_used(figure: Figure, options: Mapping[str, Any]) -> None:
    """Raise `SpecError` for one of the ``options`` that were given which ``figure`` would leave aside without a word.

    Which were is as `said` has it; "all" asks for nothing.
    """
    given = {name: value for name, value in said(options).items() if value != "all"}
    _check_moves(figure, given)
    shows = studied(figure).shows
    for name, kinds in TAKES.items():
        if name in given and shows not in kinds:
            raise SpecError(name, f"{_flag(name)} is for --shows {', '.join(kinds)}, not {shows}: leave it out")
    if shows in _OWN_NUMBERS:
        own = usual_question(figure).__struct_fields__
        for name in (*SPEC_OPTIONS, *SOURCE_OPTIONS):
            if name in given and name in own and name != "device":
                words = f"{shows} has {name} of its own: give --ask {name}={given[name]} in place of {_flag(name)}"
                raise AskError(name, words)
    heads = given.get("heads", ())
    if len(heads) > 1 and shows != "heads":
        raise SpecError("heads", f"--pick is {','.join(map(str, heads))}, but {shows} is of one head: give one")
    if shows == "heads" and figure.view.stage in JOINT_STAGES:
        for name in "heads", "head":
            if name in given:
                raise SpecError(name, f"{figure.view.stage} is of all heads together: leave {_flag(name)} out")
    if "stage" in given and shows in _PAIRS and figure.beside is not None:
        CompareQuestion(a=figure.spec, b=figure.beside, stage=figure.view.stage)  # or they cannot be compared there
    if "beside" in given and shows == "row" and figure.beside is not None:
        _check_rows(figure)


def _check_rows(figure: Figure) -> None:
    """Raise `SpecError` where a row of A has other keys than one of B."""
    if figure.beside is not None and figure.beside.source != figure.spec.source:
        from attnviz import inputs

        inputs.check_same_length(figure.spec.source, figure.beside.source)


def _check_moves(figure: Figure, given: Mapping[str, Any]) -> None:
    """Raise `SpecError` for what cannot move, and for what is said of an animation where there is none."""
    moves, shows = figure.animates, figure.shows
    if moves == "nothing":
        for name in "frames", "seconds":
            if name in given:
                raise SpecError(name, f"{_flag(name)} is for pictures that move: give --animate too")
        return
    if "animates" in given and moves in SHOWS and shows != moves and (shows != "heads" or "shows" in given):
        words = f"--animate {moves} is of {moves}, but --shows is {shows}: leave one of them out"
        raise SpecError("animates", words)
    if "stage" not in given or shows != "heads":
        return
    if moves == "stages":
        raise SpecError("stage", "--animate stages shows one stage after the other: leave --stage out")
    stages = stages_of(figure.spec)
    dropped = f"dropped_{figure.spec.dropout_site}"
    if moves == "re-rolls" and dropped in stages:
        after = stages[stages.index(dropped) :]
        if figure.view.stage not in after:
            words = f"re-rolls draw dropout again, and {figure.view.stage} comes before it: give one of"
            raise SpecError("stage", f"{words} {', '.join(after)}, or leave --stage out")


def in_fields(error: SpecError) -> SpecError:
    """The same complaint for who has written Python: names of fields in place of options."""
    named = {flag: field for field, option in _OPTIONS.items() for flag in (*option.opts, *option.secondary_opts)}

    def field_of(flag: re.Match[str]) -> str:
        return named.get(flag[0], flag[0].removeprefix("--").replace("-", "_"))

    return SpecError(error.field, re.sub(r"(?<!\S)--[a-z][a-z-]*", field_of, str(error)))


def _flag(field: str) -> str:
    """The option that sets ``field``."""
    option = _OPTIONS.get(field)
    return option.opts[0] if option is not None else flag_of(field)
