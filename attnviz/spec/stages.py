"""The named stages of a spec, in the order in which they are computed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attnviz.spec.attention import AttentionSpec
from attnviz.spec.sources import Lesson, TypedWeights, has_bare_qk, has_module, has_values, is_typed

_MASK_STAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "none": ("weights",),
        "neg-inf": ("masked_scores", "weights"),
        "add": ("masked_scores", "weights"),
        "multiply": ("unmasked_weights", "weights"),
        "three-step": ("unmasked_weights", "unnormalised_weights", "row_sums", "weights"),
    }
)
STAGES: Final = (
    "inputs", "queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "unmasked_weights",
    "unnormalised_weights", "row_sums", "weights", "dropped_weights", "context", "dropped_context", "joined", "output",
)  # fmt: skip
"""Every stage that some spec has."""
QUERY_KEY_STAGES: Final = frozenset({
    "scores", "scaled_scores", "masked_scores", "weights", "unmasked_weights", "unnormalised_weights",
    "dropped_weights",
})  # fmt: skip
WEIGHT_STAGES: Final = frozenset({"weights", "unmasked_weights", "unnormalised_weights", "dropped_weights"})
UNSIGNED_STAGES: Final = QUERY_KEY_STAGES | {"row_sums"}
"""Stages whose numbers are coloured from the least to the largest; others lie on either side of 0."""
JOINT_STAGES: Final = frozenset({"inputs", "joined", "output"})


def stages_of(spec: AttentionSpec) -> tuple[str, ...]:
    """The named stages that ``spec`` has, in the order in which they are computed."""
    source = spec.source
    names: list[str] = []
    if has_module(source):
        names += ["inputs"] if spec.projection == "none" else ["inputs", "queries", "keys", "values"]
    elif has_bare_qk(source):
        names += ["queries", "keys"]
    if not is_typed(source):
        names += ["scores"]
    if isinstance(source, TypedWeights):
        names += ["weights"]
    elif spec.scale_after_mask and acts_on_scores(spec):
        names += ["masked_scores", "scaled_scores", "weights"]
    elif spec.mask == "none" and acts_on_scores(spec):
        names += ["scaled_scores", "masked_scores", "weights"]
    else:
        names += ["scaled_scores", *_MASK_STAGES[spec.mask]]
    if spec.drops and spec.dropout_site == "weights":
        names += ["dropped_weights"]
    if has_values(source):
        names += ["context"]
        if spec.drops and spec.dropout_site == "context":
            names += ["dropped_context"]
    if has_module(source) and spec.projection != "none":
        names += ["joined", "output"]
    return tuple(names)


def acts_on_scores(spec: AttentionSpec) -> bool:
    """Whether hidden cells are filled before the softmax: by the mask or by ``top_k``."""
    return spec.fills or spec.top_k is not None


def lesson_draws(spec: AttentionSpec) -> bool:
    """Whether the cells that dropout keeps are the lesson's own, so that no generator draws: *one-class*."""
    return (
        spec.source == Lesson(name="one-class")
        and spec.drops
        and (spec.dropout, spec.dropout_site, spec.dropout_seed) == (0.5, "weights", spec.seed)
    )


def masked_at(spec: AttentionSpec, stage: str) -> bool:
    """Whether the mask or ``top_k`` has already acted on ``stage`` (a cell is masked only from there on)."""
    if stage not in QUERY_KEY_STAGES:
        return False
    names = stages_of(spec)
    if acts_on_scores(spec):
        first = "masked_scores"
    elif spec.mask == "none":
        return False
    else:
        first = "weights" if spec.mask == "multiply" else "unnormalised_weights"
    return stage in names and names.index(stage) >= names.index(first)
