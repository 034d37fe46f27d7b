"""A lesson's file: TOML → frozen steps, every one of them complete and checked, so that any can be jumped to.

A file that is not a lesson is refused in one sentence with its line, `LessonProblem`. Texts are plain text. Reads no
file but the one it is given.
"""

from attnviz.lesson_files.reading import MAX_BYTES, LessonProblem, built_in, names, parse, read, scene
from attnviz.lesson_files.script import (
    ANYWHERE,
    HALF_A_DIGIT,
    KINDS_OF_CELLS,
    MEASURES,
    PARTS,
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
    Sum,
    Words,
)
from attnviz.lesson_files.study_numbers import IN_PERCENT

__all__ = [
    "ANYWHERE",
    "HALF_A_DIGIT",
    "IN_PERCENT",
    "KINDS_OF_CELLS",
    "MAX_BYTES",
    "MEASURES",
    "PARTS",
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
    "Sum",
    "Words",
    "built_in",
    "names",
    "parse",
    "read",
    "scene",
]
