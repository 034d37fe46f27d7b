"""Figures → a deck: what differs from the defaults, with comments that say what else can be set."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click

from attnviz.figures import Figure
from attnviz.matrices import matrix_text
from attnviz.options.spec import changed
from attnviz.scene_files.keys import KEY_OF, KEYS
from attnviz.spec import (
    FIELDS,
    AnySource,
    AttentionSpec,
    Lesson,
    Paper,
    Pattern,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    View,
    make_spec,
    shape_text,
)

_ABSENT: Final = ("soft_cap", "top_k")
"""Fields of a spec that an option can set to nothing."""

_MATRICES: Final = frozenset({"scores", "values", "weights"})
_OWN: Final = ("shows", "heads", "row", "parts", "animates", "frames", "seconds")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def deck_text(figures: Mapping[str, Figure], opening: str = "", *, explained: bool = False) -> str:
    """TOML text with a figure for each file; `reading.parse` gives equal ones back.

    ``opening`` becomes a comment at the top. ``explained`` adds what else can be set. Raises `SpecError` for a figure
    that no options describe, such as one with half a character in its text.
    """
    parts = ["".join(f"# {line}".rstrip() + "\n" for line in opening.splitlines())] if opening else []
    for file, figure in figures.items():
        keys = {"file": file, **_keys_of(figure)}
        lines = [f"{key} = {toml(value)}" for key, value in keys.items()]
        parts.append("\n".join(["[[figure]]", *lines]) + "\n")
    if explained:
        said = {key for figure in figures.values() for key in _keys_of(figure)}
        parts.append("".join(_explanations(said)))
    return "\n".join(parts)


def _keys_of(figure: Figure) -> dict[str, Any]:
    """Keys and values of ``figure``, of TOML's types, as few as describe it."""
    fields: dict[str, Any] = {**_source_fields(figure.spec.source), **_spec_fields(figure.spec)}
    fields |= _different(figure.view, View(), View.__struct_fields__)
    fields |= _different(figure, Figure(), _OWN)
    if figure.heads and figure.view.head is not None:
        raise SpecError("head", "head and heads are two choices: give one")
    if figure.beside is not None:
        fields["beside"] = _beside_fields(figure.spec, figure.beside)
    if figure.question is not None:
        fields["question"] = _question_fields(figure)
    fields |= _paper_fields(figure.paper)
    return {KEY_OF[field]: value for field, value in fields.items()}


def _source_fields(source: AnySource) -> dict[str, Any]:
    match source:
        case Lesson(name=name):
            return {"lesson": name}
        case TypedScores(scores=scores, values=values, dims=dims, tokens=tokens):
            given = {"scores": scores, "values": values, "dims": dims, "tokens": tokens}
            return {field: value for field, value in given.items() if value not in (None, ())}
        case TypedWeights(weights=weights, tokens=tokens):
            return {"weights": weights, **({"tokens": tokens} if tokens else {})}
        case Text(text=text):
            return {"text": text}
        case RandomEmbeddings(length=length):
            return {"length": length}
        case RandomQK(length=length, qk_scale=scale):
            return {"length": length, "random_qk": True, "qk_scale": scale}
        case Pattern(length=length, pattern=pattern):
            return {"length": length, "pattern": pattern}
        case QKFile(path=path):
            return {"qk": path}


def _spec_fields(spec: AttentionSpec) -> dict[str, Any]:
    """The fewest fields with which the source makes ``spec``."""
    given = {field: getattr(spec, field) for field in FIELDS if field != "source"}
    return _as_said(_fewest(given, spec, lambda rest: make_spec(spec.source, **rest)))


def _beside_fields(spec: AttentionSpec, other: AttentionSpec) -> dict[str, Any]:
    """The fewest options with which ``spec`` becomes ``other``, by their keys."""
    source = {} if other.source == spec.source else _source_fields(other.source)
    given = {field: getattr(other, field) for field in FIELDS if field != "source"}
    given = {field: value for field, value in given.items() if value is not None or field in _ABSENT}

    given_source = {field: matrix_text(value) if field in _MATRICES else value for field, value in source.items()}

    def made(rest: Mapping[str, Any]) -> AttentionSpec:
        return changed(spec, {KEY_OF[field]: value for field, value in {**given_source, **_as_said(rest)}.items()})

    found = {**source, **_as_said(_fewest(given, other, made))}
    return {KEY_OF[field]: value for field, value in found.items()}


def _fewest(given: dict[str, Any], wanted: AttentionSpec, made: Any) -> dict[str, Any]:
    """``given`` without each field that ``made`` gives ``wanted`` without."""
    for field in tuple(given):
        rest = {name: value for name, value in given.items() if name != field}
        try:
            found = made(rest)
        except SpecError:
            continue
        if found == wanted:
            given = rest
    return given


def _as_said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a spec as options have them."""
    said: dict[str, Any] = {field: "none" if value is None else value for field, value in fields.items()}
    if "mask_shape" in said:
        said["mask_shape"] = shape_text(said["mask_shape"])
    return said


def _question_fields(figure: Figure) -> dict[str, Any]:
    """What a figure's question asks otherwise than its study would by itself."""
    from attnviz.figure_questions import usual_question  # noqa: PLC0415 (torch, for a row that is not said)

    question = figure.question
    usual = usual_question(figure)
    if question is None or type(question) is not type(usual):
        raise SpecError("question", f"{figure.shows} does not ask what its question asks: give a question of its own")
    fields = _different(question, usual, question.__struct_fields__)
    for field, value in fields.items():
        if isinstance(value, AttentionSpec):
            raise SpecError(field, "the question is about another computation than the figure: give one of its own")
    return fields


def _paper_fields(paper: Paper) -> dict[str, Any]:
    fields = _different(paper, Paper(), Paper.__struct_fields__)
    if {"width", "height", "dpi"} & fields.keys():
        dpi = "" if paper.dpi is None else f"@{_number(paper.dpi)}dpi"
        fields = {"size": f"{paper.width}x{paper.height}{dpi}"} | fields
    return {field: value for field, value in fields.items() if field not in ("width", "height", "dpi")}


def _different(struct: Any, usual: Any, fields: Iterable[str]) -> dict[str, Any]:
    found = ((field, getattr(struct, field)) for field in fields)
    return {field: value for field, value in found if value != getattr(usual, field)}


# ------------------------------------------------------------------------------------------------------- TOML's values


def toml(value: Any) -> str:
    """``value`` in TOML: words, numbers, lists, tables. Raises `SpecError` for half a character."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int() | float():
            return _number(value)
        case list() | tuple():
            apart = ",\n  " if value and isinstance(value[0], list | tuple) and len(value) > 1 else ", "
            inside = apart.join(map(toml, value))
            return f"[\n  {inside},\n]" if "\n" in apart else f"[{inside}]"
        case dict() if not value:
            return "{}"
        case dict():
            return "{ " + ", ".join(f"{key} = {_inline(item)}" for key, item in value.items()) + " }"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _inline(value: Any) -> str:
    """A value within an inline table, in one line."""
    return " ".join(toml(value).split("\n")) if isinstance(value, list | tuple) else toml(value)


def _number(value: float) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _quoted(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SpecError("text", "the text has half a character, which a deck cannot hold: take it out") from None
    return '"' + "".join(_ESCAPES.get(char) or _plain(char) for char in text) + '"'


def _plain(char: str) -> str:
    return char if char.isprintable() or char == " " else f"\\U{ord(char):08x}"


# --------------------------------------------------------------------------------------------------------- explanations


def _explanations(said: set[str]) -> Iterable[str]:
    """Comments: the keys that no figure has said."""
    yield "# What else can be set, in [[figure]] for one picture or in [all] at the top for every one\n"
    yield "# (words and sizes in quotes, numbers without):\n#\n"
    shown: set[str] = set()
    for name, key in KEYS.items():
        field = str(key.option.name)
        if KEY_OF[field] != name or name in said or field in shown:
            continue
        shown.add(field)
        yield from _explained(name, key.option)


_PAIR: Final = re.compile(r"\b(\w+)=(?:(\d+)|(\w+))")


def _explained(name: str, option: click.Option) -> Iterable[str]:
    help_ = _PAIR.sub(
        lambda pair: f"{{ {pair[1]} = {pair[2] or _quoted(pair[3])} }}", (option.help or "").replace("--", "")
    )
    kind = option.type
    if isinstance(kind, click.Choice):
        help_ += f" One of {', '.join(map(str, kind.choices))}."
    elif option.is_flag:
        help_ += " true or false."
    lines = textwrap.wrap(f"{name:<18} {help_}", 110, subsequent_indent=" " * 19, break_on_hyphens=False)
    yield from (f"# {line}\n" for line in lines)
