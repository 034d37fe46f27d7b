"""A spec in short forms: ``make_spec(text="the cat eats", heads=4)``.

NumPy and files are loaded where what is given needs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from attnviz import spec as specs
from attnviz.spec import AttentionSpec, SpecError
from attnviz.spec.checks import convert

S = TypeVar("S", bound=specs.Source)

_SOURCES: Final = ("text", "length", "lesson", "scores", "weights", "qk")
_BELONGS: Final = {"pattern": "length", "qk_scale": "length", "values": "scores", "dims": "scores"}
_SHORT: Final = {"heads": "num_heads", "kv_heads": "num_kv_heads"}


def make_spec(source: specs.AnySource | None = None, **given: Any) -> AttentionSpec:
    """What is to be computed: a source, and any field of `AttentionSpec`; ``heads`` is short for ``num_heads``.

    The source is one of ``text="the cat eats"``, ``length=64`` (random embeddings; with ``pattern="mixed"`` made-up
    heads, with ``qk_scale=1`` random queries and keys), ``lesson="journey"``, ``scores=[[…]]`` or ``weights=[[…]]``
    worked by hand (with ``tokens``, ``values``, ``dims``), ``qk="file.npz"``, or a source of `attnviz.spec`. Raises
    `ValueError` with a sentence.
    """
    return specs.make_spec(**spelled_out({"source": source, **given}))


def spelled_out(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a spec that are ``given`` in the short forms of `make_spec`."""
    fields = dict(given)
    for short, name in _SHORT.items():
        if short in fields:
            if name in fields:
                raise SpecError(name, f"{short} and {name} are one thing: give one of them")
            fields[name] = fields.pop(short)
    source = fields.pop("source", None)
    kinds = [name for name in _SOURCES if name in fields]
    given_kinds = [*kinds, *([] if source is None else ["source"])]
    if len(given_kinds) > 1:
        raise SpecError("source", f"{' and '.join(given_kinds)} are sources: give one")
    if source is not None and not isinstance(source, specs.Source):
        raise SpecError("source", f"source is {source!r}: give {', '.join(_SOURCES)} by name, or one of attnviz.spec")
    if kinds:
        source = _source(kinds[0], fields)
    for name, owner in (*_BELONGS.items(), ("tokens", "scores or weights")):
        if name in fields:
            raise SpecError(name, f"{name} belongs to {owner}: give that too")
    if isinstance(fields.get("mask_shape"), str):
        text = fields["mask_shape"]
        fields["mask_shape"] = specs.parse_shape(text) or _mask_file(text)
    return fields if source is None else {"source": source, **fields}


def _source(kind: str, given: dict[str, Any]) -> specs.AnySource:
    """The source of this ``kind``; what belongs to it is taken out of ``given``."""
    value = given.pop(kind)
    names = {
        name: names_of(given.pop(name), name) for name in ("tokens", "dims") if name in given and _takes(kind, name)
    }
    match kind:
        case "text":
            return _made(specs.Text, text=value)
        case "lesson":
            return specs.Lesson(name=value)
        case "length" if "pattern" in given:
            return _made(specs.Pattern, length=value, pattern=given.pop("pattern"))
        case "length" if "qk_scale" in given:
            return _made(specs.RandomQK, length=value, qk_scale=given.pop("qk_scale"))
        case "length":
            return _made(specs.RandomEmbeddings, length=value)
        case "scores":
            values = given.pop("values", None)
            values = None if values is None else _matrix(values, "values")
            return _made(specs.TypedScores, scores=_matrix(value, kind), values=values, **names)
        case "weights":
            return _made(specs.TypedWeights, weights=_matrix(value, kind), **names)
    from attnviz import tensor_files  # noqa: PLC0415

    if not isinstance(value, str | os.PathLike):
        raise SpecError("qk", f"qk is {value!r}: give the name of a .npz, .npy or .safetensors file")
    return tensor_files.describe_qk(Path(value))


def _made(kind: type[S], **fields: Any) -> S:
    """A source, whose fields have their types before it looks at them itself."""
    choices = {"pattern": get_args(specs.PatternKind)}
    source: S = convert(kind, {"kind": kind.__struct_config__.tag, **fields}, choices)
    return source


def names_of(value: Any, name: str) -> tuple[str, ...]:
    """The names that ``value`` lists, as text. Raises `SpecError` for the field ``name`` where it is no list."""
    from attnviz.given.arrays import strings  # noqa: PLC0415

    if isinstance(value, str) or not isinstance(value, Iterable):
        raise SpecError(name, f"{name} is {value!r}: give a list of names")
    return strings(value)


def _takes(kind: str, name: str) -> bool:
    return kind == "scores" or (kind == "weights" and name == "tokens")


def _matrix(value: Any, name: str) -> specs.Matrix:
    from attnviz.given.arrays import as_array  # noqa: PLC0415

    array = as_array(value, name)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} axes: give rows of numbers, such as [[1, 0], [0.5, 0.5]]")
    return tuple(tuple(map(float, row)) for row in array.tolist())


def _mask_file(path: str) -> specs.MaskFile:
    from attnviz import tensor_files  # noqa: PLC0415

    return tensor_files.describe_mask(path)
