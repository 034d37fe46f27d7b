"""Lessons from files: those that come with the program, and a teacher's own."""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from attnviz.lesson_files.checking import WrongLesson, checked_script
from attnviz.lesson_files.script import LessonScript
from attnviz.spec import AttentionSpec, SpecError, View
from attnviz.toml_files import TomlProblem, line_of, read_text, tables_of

MAX_BYTES: Final = 1_000_000


class LessonProblem(ValueError):  # noqa: N818 (a problem, as in spec and session, not a crash)
    """A file that is no lesson: ``sentence`` names the file, the line and what would do. ``line`` counts from 1."""

    def __init__(self, place: str, line: int | None, why: str) -> None:
        name = place if place.isprintable() else ascii(place)
        self.line = line
        self.sentence = f"{name}, line {line}: {why}" if line else f"{name}: {why}"
        super().__init__(self.sentence)


def names() -> tuple[str, ...]:
    """Names of the lessons that come with the program."""
    found = (entry.name for entry in _shelf().iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in found))


@cache
def built_in(name: str) -> LessonScript:
    """A lesson that comes with the program. Raises `SpecError` with the names there are."""
    if name not in names():
        raise SpecError("lesson", f"lesson is {name!r}: give {', '.join(names())}, or a lesson's file")
    entry = _shelf().joinpath(f"{name}.toml")
    return parse(entry.read_text(encoding="utf-8"), entry.name)


def read(path: Path) -> LessonScript:
    """The lesson in a file. Raises `LessonProblem` for anything else; nothing but this file is opened."""
    place = path.name
    try:
        text = read_text(path, "lesson", MAX_BYTES)
    except TomlProblem as problem:
        raise LessonProblem(place, problem.line, problem.why) from None
    return parse(text, place)


def scene(lesson: str, step: str) -> tuple[AttentionSpec, View]:
    """The spec and view of a step, of a lesson that is named or whose file is given.

    Raises `SpecError` or `LessonProblem`.
    """
    script = built_in(lesson) if lesson in names() else read(Path(lesson))
    return script.step(step).scene()


def parse(text: str, place: str) -> LessonScript:
    """The lesson in ``text``; ``place`` is what a complaint calls the file. Raises `LessonProblem`."""
    try:
        top = tables_of(text)
    except TomlProblem as problem:
        raise LessonProblem(place, problem.line, problem.why) from None
    try:
        return checked_script(top)
    except WrongLesson as wrong:
        raise LessonProblem(place, line_of(text, wrong.keys), wrong.why) from None


def _shelf() -> Traversable:
    return resources.files("attnviz.resources").joinpath("lessons")
