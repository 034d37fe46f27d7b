"""Which question a figure asks of its study, where it does not bring one. Without Qt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from attnviz.figures import Figure, Shows, whole
from attnviz.questions import Question
from attnviz.questions.compare import CompareQuestion
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.exam import EXAM_MASKS, ExamQuestion, exam_mask_of
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.questions.heads import HeadsQuestion
from attnviz.questions.leak import LeakQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.spec import Paper, SpecError

_MOST_PIXELS: Final = 2048  # of a map of several
_LEAST_PIXELS: Final = 64


def question_of(figure: Figure) -> Question:
    """What the study of ``figure`` is asked: its own question, else the one that its spec and view make.

    Which part of its maps is the view's to say. Raises `SpecError` for a figure that is of no study, and where the spec
    cannot be asked.
    """
    make = _MAKERS.get(figure.shows)
    if make is None:
        raise SpecError("shows", f"shows is {figure.shows}, which asks no study: give one of {', '.join(_MAKERS)}")
    usual = STUDY_OF[figure.shows]
    question = make(figure) if figure.question is None else figure.question
    if question.name != usual:
        raise SpecError("question", f"{figure.shows} asks the study {usual}, but here is a question of {question.name}")
    if isinstance(question, CompareQuestion | GalleryQuestion):
        return replace(question, rows=figure.view.rows, cols=figure.view.cols)
    return question


def studied(figure: Figure) -> Figure:
    """The figure whose study is asked: of *rounds* or an *exam* that move, that study; else ``figure`` itself."""
    if figure.animates not in ("rounds", "exam"):
        return figure
    asked = figure.question
    own = asked if asked is not None and asked.name == STUDY_OF[figure.animates] else None
    return replace(figure, shows=figure.animates, question=own)


def asking(figure: Figure) -> Figure:
    """The figure whose study a question of ``figure`` is for: itself where it shows a study, else what moves in it."""
    return figure if figure.shows in STUDY_OF else studied(figure)


def usual_question(figure: Figure) -> Question:
    """What the study of ``figure`` is asked where it brings no question, about all cells of its maps.

    Raises as `question_of`.
    """
    return question_of(whole(replace(asking(figure), question=None)))


STUDY_OF: Final[Mapping[Shows, str]] = MappingProxyType(
    {
        "a-b": "compare", "difference": "compare", "gallery": "gallery", "dropout": "dropout", "heads-study": "heads",
        "rounds": "rounds", "exam": "exam", "future-share": "future-share", "forms": "forms", "leaks": "leak",
    }
)  # fmt: skip
"""The name of the study that a figure asks."""


def _compare(figure: Figure) -> Question:
    if figure.beside is None:
        raise SpecError("beside", f"{figure.shows} compares two states: say what differs in the other one")
    head = min(figure.head, figure.beside.num_heads - 1)
    return CompareQuestion.of(figure.spec, figure.beside, figure.view.stage, head, pixels_of(figure.paper))


def _gallery(figure: Figure) -> Question:
    return GalleryQuestion.of(figure.spec, figure.head, _row(figure), pixels_of(figure.paper))


def _dropout(figure: Figure) -> Question:
    return DropoutQuestion.of(figure.spec, figure.head, _row(figure))


def _exam(figure: Figure) -> Question:
    own = exam_mask_of(figure.spec)
    return ExamQuestion(masks=EXAM_MASKS if own in EXAM_MASKS else (*EXAM_MASKS, own))


def _forms(figure: Figure) -> Question:
    return FormsQuestion(device=figure.spec.device)


_MAKERS: Final[Mapping[Shows, Callable[[Figure], Question]]] = MappingProxyType(
    {
        "a-b": _compare,
        "difference": _compare,
        "gallery": _gallery,
        "dropout": _dropout,
        "heads-study": lambda figure: HeadsQuestion.of(figure.spec),
        "rounds": lambda figure: RoundsQuestion.of(figure.spec, figure.head),
        "exam": _exam,
        "future-share": lambda _figure: FutureShareQuestion(),
        "forms": _forms,
        "leaks": lambda figure: LeakQuestion.of(figure.spec),
    }
)


def _row(figure: Figure) -> int:
    """The figure's row, else the last one."""
    from attnviz.inputs import count_tokens  # noqa: PLC0415 (torch: a figure can be described without it)

    n_queries = count_tokens(figure.spec.source)[0]
    if figure.row is not None and figure.row >= n_queries:
        raise SpecError("row", f"row is {figure.row}: rows count from 0 to {n_queries - 1}")
    return n_queries - 1 if figure.row is None else figure.row


def pixels_of(paper: Paper) -> int:
    """As many pixels a side as a map of several may get on the paper."""
    return max(min(max(paper.size) // 2, _MOST_PIXELS), _LEAST_PIXELS)
