"""A deck's TOML → figures, everything checked; what is wrong is said with its line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from attnviz.figures import Figure
from attnviz.files import FileProblem
from attnviz.options.figure import figure_for
from attnviz.options.spec import DROPPING, OTHER_STATE, FileError, is_script, with_options
from attnviz.options.used import check_used
from attnviz.scene_files.keys import KEY_OF, KEYS, KINDS, SOURCES, known, nearest
from attnviz.scene_files.names import check_name, same_file
from attnviz.scene_files.values import option_value
from attnviz.spec import SpecError
from attnviz.toml_files import Keys, TomlProblem, heads_of, line_of, read_text, tables_of

MAX_BYTES: Final = 2_000_000
MAX_FIGURES: Final = 10_000
MAX_WHY: Final = 600
"""Characters of a complaint."""

MOST_TOLD: Final = 20
"""Mistakes of one deck."""

_TABLE: Final = "figure"
_DASHES: Final = re.compile(r"(?<![^\s(\[\"'])--(?=[a-z])")
_EXAMPLES: Final = {OTHER_STATE: 'beside = { mask = "none" }', DROPPING: "train = true and dropout = 0.5"}
_NOTHING: Final[dict[str, Any]] = {
    str(key.option.name): () if key.option.multiple else None for key in KEYS.values()
}  # fmt: skip


class SceneProblem(FileError):  # noqa: N818 (a problem, as in spec and session, not a crash)
    """A file that is no deck: the sentence names the file, the line and what would do. ``line`` counts from 1.

    ``others`` are what else is wrong in it, in the order of its lines.
    """

    def __init__(self, place: str, line: int | None, why: str, others: tuple[SceneProblem, ...] = ()) -> None:
        name = place if place.isprintable() else ascii(place)
        why = " ".join(why.split()) if len(why) <= MAX_WHY else f"{why[:MAX_WHY]}…"
        self.line, self.others = line, others
        super().__init__("deck", f"{name}, line {line}: {why}" if line else f"{name}: {why}")


@dataclass(frozen=True, slots=True)
class DeckFigure:
    """One picture of a deck: its file in the folder that is chosen, and the line where it stands.

    ``figure`` is None where a file that it is made from cannot be used: ``problem`` says why.
    """

    file: str
    line: int
    figure: Figure | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Deck:
    """All pictures of a deck's file, in its order."""

    place: str
    figures: tuple[DeckFigure, ...]


class _Wrong(Exception):  # noqa: N818 (a problem without its line)
    """What is wrong at ``keys`` of the file."""

    def __init__(self, keys: Keys, why: str) -> None:
        self.keys, self.why = keys, why
        super().__init__(why)


class _Mistakes:
    """What is wrong in a deck, each place once: what holds for all is wrong in every figure."""

    def __init__(self) -> None:
        self.found: dict[Keys, str] = {}

    def add(self, wrong: _Wrong) -> None:
        """Note a mistake. Raises `_Enough` after the last that is told."""
        self.found.setdefault(wrong.keys, wrong.why)
        if len(self.found) == MOST_TOLD:
            raise _Enough


class _Enough(Exception):  # noqa: N818 (of mistakes)
    """As many mistakes as are told at once."""


def read(path: Path) -> Deck:
    """The deck in a file; its figures' own files are those beside it. Raises `SceneProblem`."""
    try:
        text = read_text(path, "deck", MAX_BYTES)
    except TomlProblem as problem:
        raise SceneProblem(path.name, problem.line, problem.why) from None
    return parse(text, path.name, path.parent)


def parse(text: str, place: str, folder: Path) -> Deck:
    """The deck in ``text``; ``place`` is what a complaint calls the file, ``folder`` where other files lie.

    Raises `SceneProblem`.
    """
    try:
        top = tables_of(text)
    except TomlProblem as problem:
        raise SceneProblem(place, problem.line, problem.why) from None
    mistakes, figures = _Mistakes(), []
    with contextlib.suppress(_Enough):
        try:
            figures = list(_figures(top, text, folder, mistakes))
        except _Wrong as wrong:
            mistakes.add(wrong)
    if mistakes.found:
        told = sorted((line_of(text, keys, _TABLE), why) for keys, why in mistakes.found.items())
        raise SceneProblem(place, *told[0], tuple(SceneProblem(place, line, why) for line, why in told[1:]))
    return Deck(place, tuple(figures))


def _figures(top: dict[str, Any], text: str, folder: Path, mistakes: _Mistakes) -> Iterator[DeckFigure]:
    """The figures without mistakes; a `_Wrong` that is raised leaves no others to look at."""
    for key in top:
        if key not in ("all", _TABLE):
            said = f"unknown key {_short(key)}: a deck has [all] and one [[figure]] for each picture"
            raise _Wrong((key,), said)
    common, tables = top.get("all", {}), top.get(_TABLE, [])
    if not isinstance(common, dict):
        raise _Wrong(("all",), "all is no table: write [all], and below it what holds for every figure")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _Wrong((_TABLE,), "figure is no list of tables: write [[figure]] for each picture")
    if not tables:
        raise _Wrong((), "there is no [[figure]]: write one for each picture, with its file and what it shows")
    if len(tables) > MAX_FIGURES:
        raise _Wrong((_TABLE, MAX_FIGURES), f"there are {len(tables):,} figures: a deck has at most {MAX_FIGURES:,}")
    lines = heads_of(text, _TABLE)
    if len(lines) != len(tables):  # they are written as one array
        lines = [line_of(text, (_TABLE,), _TABLE)] * len(tables)
    shared = _options(common, ("all",), folder, mistakes)
    in_all = len(mistakes.found)
    names: dict[str, int] = {}
    for place, table in enumerate(tables):
        name = ""
        try:
            name = _name(table, place, lines, names)
        except _Wrong as wrong:
            mistakes.add(wrong)
        before = len(mistakes.found)
        own = _options({key: value for key, value in table.items() if key != "file"}, (_TABLE, place), folder, mistakes)
        if in_all or len(mistakes.found) > before:
            continue  # the rest may seem wrong for want of what was left out
        try:
            yield _figure(table, place, name, lines[place], shared, own)
        except _Wrong as wrong:
            mistakes.add(wrong)


def _name(table: dict[str, Any], place: int, lines: list[int], names: dict[str, int]) -> str:
    """The name of a figure's file, put among those of the others."""
    here: Keys = (_TABLE, place)
    if "file" not in table:
        raise _Wrong(here, 'the figure has no file: give a name, such as file = "01-no-mask.png"')
    try:
        name = check_name(table["file"])
    except SpecError as error:
        raise _Wrong((*here, "file"), str(error)) from None
    same = names.setdefault(same_file(name), place)
    if same != place:
        taken = f"the figure of line {lines[same]} has this name too"
        raise _Wrong((*here, "file"), f"file is {_short(name)}, but {taken}: give each a name of its own")
    return name


def _figure(
    table: dict[str, Any], place: int, name: str, line: int, shared: Mapping[str, Any], own: Mapping[str, Any]
) -> DeckFigure:
    here: Keys = (_TABLE, place)
    if "animates" in own and not name.lower().endswith(".gif"):
        raise _Wrong((*here, "animate"), f"animate is for a GIF, but file is {_short(name)}: give a name in .gif")
    try:
        figure = figure_for({**_NOTHING, **_without(shared, own), **own}, idle_fill=True)
        check_used(figure, own)  # what holds for all is for those that can have it
    except (SpecError, FileProblem) as error:
        if isinstance(error, FileProblem | FileError) or isinstance(error.__cause__, FileProblem):
            return DeckFigure(name, line, None, str(error))
        raise _Wrong(_place_of(error, table, shared, here), _said(error)) from None
    return DeckFigure(name, line, figure)


def _options(table: dict[str, Any], here: Keys, folder: Path, mistakes: _Mistakes) -> dict[str, Any]:
    """Fields of the options that a table names, less those with a mistake."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        try:
            field, converted = _option(name, value, found, folder, of_figure=here[0] == _TABLE)
            found[field] = converted
        except SpecError as error:
            mistakes.add(_Wrong((*here, name), _said(error)))
    return found


def _option(
    name: str, value: Any, found: Mapping[str, Any], folder: Path, *, of_figure: bool
) -> tuple[str, Any]:  # fmt: skip
    """The field that a key sets, and its value. Raises `SpecError`."""
    key = known(name)
    if key is None and name == "file":  # of a figure's own table it has been taken
        raise SpecError(name, "file is of one figure: write it below [[figure]], a name of its own for each")
    if key is None:
        raise SpecError(name, f"unknown key {_short(name)}: {nearest(name, *(['file'] if of_figure else []))}")
    field = str(key.option.name)
    if field in found:
        raise SpecError(field, f"{name} says again what another key of this table says: leave one out")
    return field, option_value(key, value, folder)


def _without(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What holds of every figure, less what the source of this one takes the place of."""
    dropped: frozenset[str] = frozenset()
    if KINDS & own.keys():
        dropped |= SOURCES | {"step"}
    if "spec_file" in own:
        dropped |= SOURCES | {"step"}
    if "step" in own or is_script(own.get("lesson")):
        dropped |= {"spec_file"}
    return {field: value for field, value in shared.items() if field not in dropped}


def _place_of(error: SpecError, table: dict[str, Any], shared: Mapping[str, Any], here: Keys) -> Keys:
    """Where the field stands that ``error`` is about: in the figure, in what holds for all, or nowhere."""
    for field in dict.fromkeys((error.field, *_ALSO.get(error.field, ()))):
        for name in table:
            key = known(name)
            if key is not None and field in (key.option.name, name):
                return (*here, name)
        for nested in ("beside", "ask"):
            for name in _inside(table, nested):
                key = known(name)
                if field == name.replace("-", "_") or (key is not None and field == key.option.name):
                    return (*here, nested, name)
        if field in shared:
            return "all", KEY_OF[field]
    return here


_ALSO: Final = {
    "source": tuple(sorted(KINDS)), "ask": ("question",), "width": ("size",), "dpi": ("size",), "file": ("spec_file",),
}  # fmt: skip
"""Fields whose key may have another name."""


def _inside(table: dict[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _said(error: SpecError) -> str:
    """The sentence of ``error`` in a deck's words."""
    sentence = with_options(error)
    for typed, written in _EXAMPLES.items():
        sentence = sentence.replace(typed, written)
    return _DASHES.sub("", sentence)


def _short(word: Any) -> str:
    said = repr(word)
    return said if len(said) <= 60 else f"{said[:60]}…"
