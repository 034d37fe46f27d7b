"""A lesson's file: TOML → frozen steps, every one of them complete and checked, so that any can be jumped to.

A file that is not a lesson is refused in one sentence with its line, `LessonProblem`. Texts are plain text. Reads no
file but the one it is given.
"""

from attnviz.lesson_files.reading import MAX_BYTES, LessonProblem, built_in, names, parse, read, scene
from attnviz.lesson_files.script import (
    ANYWHERE,
    KINDS_OF_CELLS,
    MEASURES,
    Choice,
    Found,
    Kind,
    Language,
    LessonQuestion,
    LessonScript,
    LessonStep,
    Look,
    Measure,
    Page,
    Place,
    Words,
)

__all__ = [
    "ANYWHERE",
    "KINDS_OF_CELLS",
    "MAX_BYTES",
    "MEASURES",
    "Choice",
    "Found",
    "Kind",
    "Language",
    "LessonProblem",
    "LessonQuestion",
    "LessonScript",
    "LessonStep",
    "Look",
    "Measure",
    "Page",
    "Place",
    "Words",
    "built_in",
    "names",
    "parse",
    "read",
    "scene",
]
