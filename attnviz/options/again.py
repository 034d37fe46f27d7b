"""What later options make of a figure that a picture remembers: one option changes one thing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from attnviz.figure_questions import STUDY_OF, asking, usual_question
from attnviz.figures import COMPARING, CROPPABLE, Figure, parts_of
from attnviz.questions import Question
from attnviz.spec import LINES, edited

_COMPUTED: Final = frozenset({"spec", "a", "b"})
"""Fields of a question that a figure's spec and ``beside`` make."""

_ASKED_BY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "row": frozenset({"row"}), "head": frozenset({"head", "heads"}), "stage": frozenset({"stage"}),
        "device": frozenset({"device"}),
    }
)  # fmt: skip
"""Options of a figure that say what a field of its question is, too."""


def again(base: Figure, fields: Mapping[str, Any], given: Collection[str]) -> Figure:
    """``base`` with other ``fields``, which the options ``given`` have set; what these do not name stays as it was.

    B differs from a new A as it did from the old one, and a study is still asked what it was asked otherwise than
    usual. Where something else is shown, what that cannot have is left behind, unless it is given: nobody could take
    away what nobody gave. Raises `SpecError`.
    """
    now = {**_fields_of(base), **fields, "question": None}
    if now["shows"] != base.shows:
        now |= _fitting(now, given)
    if "parts" not in given:
        has = parts_of(now["shows"], now["animates"])
        now["parts"] = tuple(part for part in base.parts if part in has)
    if "beside" not in given and now["beside"] is not None and now["spec"] != base.spec:
        now["beside"] = edited(now["spec"], **_differing(now["beside"], base.spec))
    figure = Figure(**now)
    asked: Figure = replaced(figure, {"question": _question(base, figure, given)})
    return asked


def replaced(struct: Any, fields: Mapping[str, Any]) -> Any:
    """``struct`` with other fields, checked again."""
    return type(struct)(**{**_fields_of(struct), **fields})


def _fitting(now: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """Other fields for those in ``now`` that mean nothing of what is shown and were not given."""
    shows = now["shows"]
    fields: dict[str, Any] = {}
    if "animates" not in given and now["animates"] != shows:  # the GIF would go on showing what was shown before
        fields["animates"] = "nothing"
    if "beside" not in given and shows not in COMPARING:
        fields["beside"] = None
    if shows not in CROPPABLE:
        fields["view"] = msgspec.structs.replace(now["view"], **{line: None for line in LINES if line not in given})
    return fields


def _question(base: Figure, figure: Figure, given: Collection[str]) -> Question | None:
    """What ``base`` asks otherwise than usual, asked about ``figure``; None where that is of another study, or none."""
    asked = base.question
    if asked is None or STUDY_OF.get(asking(figure).shows) != asked.name:
        return None
    same = (figure.spec, figure.beside) == (base.spec, base.beside)
    kept = {
        name: value
        for name, value in _differing(asked, usual_question(base)).items()
        if (same or name not in _COMPUTED) and _ASKED_BY.get(name, frozenset()).isdisjoint(given)
    }
    question: Question = replaced(usual_question(figure), kept)
    return question


def _fields_of(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _differing(one: Any, other: Any) -> dict[str, Any]:
    """The fields of a struct that are other than those of ``other``."""
    return {name: value for name, value in _fields_of(one).items() if value != getattr(other, name)}
