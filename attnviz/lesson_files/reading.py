"""Lessons from files: those that come with the program, and a teacher's own."""

from __future__ import annotations

import re
import stat
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from attnviz.lesson_files.checking import WrongLesson, checked_script
from attnviz.lesson_files.lines import line_of
from attnviz.lesson_files.script import LessonScript
from attnviz.spec import AttentionSpec, SpecError, View

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
        if not stat.S_ISREG(path.stat().st_mode):
            raise LessonProblem(place, None, "this is no file: give a lesson's TOML file")
        with path.open("rb") as file:
            held = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, LessonProblem):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LessonProblem(place, None, f"cannot be read: {why}") from None
    if len(held) > MAX_BYTES:
        raise LessonProblem(place, None, f"is larger than {MAX_BYTES // 1_000_000} MB: a lesson is a small text file")
    try:
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = held.count(b"\n", 0, error.start) + 1
        raise LessonProblem(place, line, "this is not UTF-8 text: save the file as UTF-8") from None
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
        top = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        line = int(said.group(2) or text.count("\n") + 1) if said else None
        raise LessonProblem(place, line, f"this is not TOML: {said.group(1) if said else error}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise LessonProblem(place, None, "this is not TOML: it is nested too deeply") from None
        endless = re.search(r"[\d_]{4300}", text)  # Python reads no longer number
        if endless is None:
            raise LessonProblem(place, None, f"this is not TOML: {error}") from None
        line = text.count("\n", 0, endless.start()) + 1
        raise LessonProblem(place, line, "this is not TOML that can be read: a number has too many digits") from None
    try:
        return checked_script(top)
    except WrongLesson as wrong:
        raise LessonProblem(place, line_of(text, wrong.keys), wrong.why) from None


def _shelf() -> Traversable:
    return resources.files("attnviz.resources").joinpath("lessons")
