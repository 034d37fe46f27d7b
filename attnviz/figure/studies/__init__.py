"""Every study on paper, one file a study: what its page in the window says and shows, from the same functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attnviz.figure.block_sheet import BlocksDrawing, Contents
from attnviz.figure.glosses import with_glosses
from attnviz.figure.studies import compare, dropout, exam, forms, future_share, gallery, heads, leaks, rounds
from attnviz.figures import Figure, Shows
from attnviz.frames import Outline
from attnviz.questions import Answer
from attnviz.questions.compare import CompareAnswer
from attnviz.questions.dropout import DropoutAnswer
from attnviz.questions.exam import ExamAnswer
from attnviz.questions.forms import FormsAnswer
from attnviz.questions.future_share import FutureShareAnswer
from attnviz.questions.gallery import GalleryAnswer
from attnviz.questions.heads import HeadsAnswer
from attnviz.questions.leak import LeakAnswer
from attnviz.questions.rounds import RoundsAnswer
from attnviz.spec import SpecError

_STUDIES: dict[Shows, tuple[type[Answer], Callable[[Figure, Any], Contents]]] = {
    "a-b": (CompareAnswer, compare.contents_of),
    "difference": (CompareAnswer, compare.contents_of),
    "gallery": (GalleryAnswer, gallery.contents_of),
    "dropout": (DropoutAnswer, dropout.contents_of),
    "heads-study": (HeadsAnswer, heads.contents_of),
    "rounds": (RoundsAnswer, rounds.contents_of),
    "exam": (ExamAnswer, exam.contents_of),
    "future-share": (FutureShareAnswer, future_share.contents_of),
    "forms": (FormsAnswer, forms.contents_of),
    "leaks": (LeakAnswer, leaks.contents_of),
}
_OWN_NUMBERS = ("exam", "future-share", "forms", "leaks")
"""Studies that draw numbers of their own: where the spec's come from says nothing of them."""


def drawing_of(figure: Figure, answer: Answer, outline: Outline | None = None) -> BlocksDrawing:
    """``figure`` of a study's ``answer``, laid out on its paper. Needs a QGuiApplication; any thread.

    ``outline`` is that of the figure's spec, where it is known: it says where the numbers come from, and names tokens
    that an answer does not. Raises TypeError for another study's answer, and `SpecError`
    where the answer has none of the figure's parts.
    """
    kind, contents_of = _STUDIES[figure.shows]
    if not isinstance(answer, kind):
        raise TypeError(f"a figure of {figure.shows} needs a {kind.__name__}, here is a {type(answer).__name__}")
    wide = figure.paper.dpi is None  # in a column meanings would only be cut
    if outline is not None and wide and isinstance(answer, CompareAnswer | GalleryAnswer | RoundsAnswer):
        answer = replace(answer, tokens=tuple(with_glosses(answer.tokens, outline)))
    if isinstance(answer, LeakAnswer):
        contents = leaks.contents_of(figure, answer, () if outline is None else outline.tokens)
    else:
        contents = contents_of(figure, answer)
    if outline is not None and outline.origin and figure.shows not in _OWN_NUMBERS:
        contents = replace(contents, captions=(*contents.captions, outline.origin))
    if figure.parts:
        kept = tuple(block for block in contents.blocks if block.part in figure.parts)
        if not kept:
            there = ", ".join(block.part for block in contents.blocks)
            raise SpecError("parts", f"parts is {','.join(figure.parts)}, but this {figure.shows} has {there} alone")
        contents = replace(contents, blocks=kept)
    return BlocksDrawing(contents, figure.paper)


__all__ = ["drawing_of"]
