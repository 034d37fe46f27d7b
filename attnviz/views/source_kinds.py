"""The entries of the list of sources, an example of each, and what is remembered on the way between them. Pure."""

from __future__ import annotations

from typing import Any

from attnviz.matrices import parse_matrix
from attnviz.spec import (
    FIELDS,
    AnySource,
    AttentionSpec,
    Lesson,
    Pattern,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    default_fill,
    fixed_by,
    make_spec,
)

KINDS = (
    "cat-eats-fish", "journey", "one-class", "text", "scores", "weights", "random", "random-qk", "pattern",
    "gpt2-small", "gpt2-xl",
)  # fmt: skip
FILE_KIND = "qk"
"""The entry of a file's queries and keys, there once one has been opened."""

PRESET_HEADS = {"gpt2-small": 12, "gpt2-xl": 25}
_PRESET_SOURCE = Pattern(length=1024, pattern="mixed")
_PRESET_FIELDS = frozenset({"num_heads", "num_kv_heads", "d_out"})


class Remembered:
    """What a person had chosen before a source fixed it, for the way back. Pure.

    A real model's size sets heads and dimensions as a source does, so those are not remembered from it either.
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._sources: dict[str, AnySource] = {}

    def note(self, spec: AttentionSpec) -> None:
        """Keep the fields of ``spec`` that its source leaves free, and the source itself by its kind."""
        kind = kind_of(spec)
        fixed = set(fixed_by(spec.source)) | (_PRESET_FIELDS if kind in PRESET_HEADS else set())
        self._fields |= {f: getattr(spec, f) for f in FIELDS if f != "source" and f not in fixed}
        for field, default in ("fill", default_fill(spec.source)), ("dropout_seed", spec.seed):
            if getattr(spec, field) == default:  # it follows the source, which another sets otherwise
                del self._fields[field]
        self._sources[kind] = spec.source

    def source(self, kind: str) -> AnySource | None:
        return self._sources.get(kind)

    def spec_of(self, kind: str) -> AttentionSpec:
        """A spec with a source of ``kind``: the one last used, else an example; with everything remembered."""
        if kind in PRESET_HEADS:
            unfit = set(fixed_by(_PRESET_SOURCE)) | _PRESET_FIELDS
            kept = {f: v for f, v in self._fields.items() if f not in unfit}
            return make_spec(_PRESET_SOURCE, **kept, num_heads=PRESET_HEADS[kind])
        return self.spec_with(self.source(kind) or _example(kind))

    def spec_with(self, source: AnySource) -> AttentionSpec:
        """``source`` with everything remembered that it leaves free; sizes that cannot be take their defaults."""
        fixed = fixed_by(source)
        kept = {f: v for f, v in self._fields.items() if f not in fixed and v is not None}
        try:
            return make_spec(source, **kept)
        except SpecError:
            for field in ("d_out", "d_model"):
                kept.pop(field, None)
            return make_spec(source, **kept)


def kind_of(spec: AttentionSpec) -> str:
    """The entry of the list that ``spec``'s source belongs to."""
    match spec.source:
        case Lesson(name=name):
            return name
        case TypedScores():
            return "scores"
        case TypedWeights():
            return "weights"
        case Text():
            return "text"
        case RandomQK():
            return "random-qk"
        case QKFile():
            return FILE_KIND
        case Pattern() as source:
            if source == _PRESET_SOURCE and spec.d_head == 64 and spec.num_kv_heads == spec.num_heads:
                for kind, heads in PRESET_HEADS.items():
                    if spec.num_heads == heads:
                        return kind
            return "pattern"
    return "random"


def _example(kind: str) -> AnySource:
    match kind:
        case "cat-eats-fish" | "journey" | "one-class":
            return Lesson(name=kind)
        case "scores":
            return TypedScores(
                scores=parse_matrix("0.5 0.5 1; 0 2 1; 0.5 0.5 0"), values=parse_matrix("1 0; .1 .1; 0 1"),
                dims=("猫味", "鱼味"), tokens=("猫", "吃", "鱼"),
            )  # fmt: skip
        case "weights":
            return TypedWeights(weights=parse_matrix("0.4 0.3 0.2 0.1"))
        case "random":
            return RandomEmbeddings(length=64)
        case "random-qk":
            return RandomQK(length=256)
        case "pattern":
            return Pattern(length=4096)
    return Text(text="The cat sat on the mat because it was warm")
