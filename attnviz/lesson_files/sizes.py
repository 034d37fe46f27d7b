"""How large a step's map is, as far as that is known before anything is computed, and what of it a measure may name."""

from __future__ import annotations

from attnviz.lesson_files.script import OF_KEYS, Measure, Place
from attnviz.spec import (
    QUERY_KEY_STAGES,
    AttentionSpec,
    Lesson,
    Pattern,
    RandomEmbeddings,
    RandomQK,
    TypedScores,
    TypedWeights,
    View,
    has_module,
    stages_of,
)

_LESSONS = {"journey": 6, "cat-eats-fish": 3, "one-class": 4}
_CAT_DIMS = 2
_BY_KEY = frozenset({"keys", "values"})


def map_size(spec: AttentionSpec) -> Place | None:
    """Numbers of queries and keys, None where a text has yet to be split."""
    match spec.source:
        case TypedScores(scores=matrix) | TypedWeights(weights=matrix):
            return len(matrix), len(matrix[0])
        case RandomEmbeddings(length=length) | RandomQK(length=length) | Pattern(length=length):
            return length, length
        case Lesson(name=name):
            return (_LESSONS[name],) * 2
    return None


def stage_size(spec: AttentionSpec, stage: str) -> tuple[int | None, int | None]:
    """Rows and columns of a stage's array, None for what is not known."""
    queries, keys = map_size(spec) or (None, None)
    if stage in QUERY_KEY_STAGES:
        return queries, keys
    rows = keys if stage in _BY_KEY else queries
    if stage == "row_sums":
        return rows, 1
    if stage == "inputs":
        return rows, spec.d_model
    if stage in ("joined", "output"):
        return rows, spec.d_out
    if has_module(spec.source):
        return rows, spec.d_head
    match spec.source:
        case TypedScores(values=values) if values is not None:
            return rows, len(values[0])
        case Lesson(name="cat-eats-fish"):
            return rows, _CAT_DIMS
    return rows, None


def complaint(measure: Measure, takes: frozenset[str], spec: AttentionSpec, view: View) -> tuple[str, str] | None:
    """The field of ``measure`` that names what the step's screen cannot have, and why; None where all is well."""
    stage = "context" if measure.name == "context" else measure.stage or view.stage
    if stage not in stages_of(spec):
        return "name", f"measure {measure.name} reads the {stage}, which this step lacks: it has {_listed(spec)}"
    if measure.name in OF_KEYS and stage not in QUERY_KEY_STAGES:
        of = ", ".join(name for name in stages_of(spec) if name in QUERY_KEY_STAGES)
        return "stage", f"measure {measure.name} reads keys, but the stage is {stage}: give one of {of}"
    if "head" in takes and measure.head >= spec.num_heads:
        have = "1 head" if spec.num_heads == 1 else f"{spec.num_heads} heads"
        return "head", f"head is {measure.head}, but this step has {have}; 0 is the first"
    if "head" in takes and view.head is not None and measure.head != view.head:
        return "head", f"head is {measure.head}, but this step shows head {view.head} alone: give that"
    rows, cols = stage_size(spec, stage)
    if "row" in takes and rows is not None and measure.row >= rows:
        return "row", f"row is {measure.row}, but the {stage} of this step have {_count(rows, 'row')}; 0 is the first"
    for field, at in ("col", measure.col), ("dim", measure.dim):
        if field in takes and cols is not None and at >= cols:
            have = _count(cols, "column")
            return field, f"{field} is {at}, but the {stage} of this step have {have}; 0 is the first"
    return None


def _listed(spec: AttentionSpec) -> str:
    return ", ".join(stages_of(spec))


def _count(number: int, of: str) -> str:
    return f"{number:,} {of}" if number == 1 else f"{number:,} {of}s"
