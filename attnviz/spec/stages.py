"""The named stages of a spec, in the order in which they are computed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attnviz.spec.attention import AttentionSpec
from attnviz.spec.sources import TypedWeights, has_bare_qk, has_module, has_values, is_typed

_MASK_STAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "none": ("weights",),
        "neg-inf": ("masked_scores", "weights"),
        "three-step": ("unmasked_weights", "unnormalised_weights", "row_sums", "weights"),
    }
)
QUERY_KEY_STAGES: Final = frozenset({
    "scores", "scaled_scores", "masked_scores", "weights", "unmasked_weights", "unnormalised_weights",
    "dropped_weights",
})  # fmt: skip
WEIGHT_STAGES: Final = frozenset({"weights", "unmasked_weights", "unnormalised_weights", "dropped_weights"})
JOINT_STAGES: Final = frozenset({"inputs", "joined", "output"})


def stages_of(spec: AttentionSpec) -> tuple[str, ...]:
    """The named stages that ``spec`` has, in the order in which they are computed."""
    source = spec.source
    names: list[str] = []
    if has_module(source):
        names += ["inputs", "queries", "keys", "values"]
    elif has_bare_qk(source):
        names += ["queries", "keys"]
    if not is_typed(source):
        names += ["scores"]
    if isinstance(source, TypedWeights):
        names += ["weights"]
    elif spec.scale_after_mask and spec.mask == "neg-inf":
        names += ["masked_scores", "scaled_scores", "weights"]
    else:
        names += ["scaled_scores", *_MASK_STAGES[spec.mask]]
    if spec.drops and spec.dropout_site == "weights":
        names += ["dropped_weights"]
    if has_values(source):
        names += ["context"]
        if spec.drops and spec.dropout_site == "context":
            names += ["dropped_context"]
    if has_module(source):
        names += ["joined", "output"]
    return tuple(names)


def masked_at(spec: AttentionSpec, stage: str) -> bool:
    """Whether the mask has already acted on ``stage`` (a cell is masked only from there on)."""
    if spec.mask == "none" or stage not in QUERY_KEY_STAGES:
        return False
    first = "masked_scores" if spec.mask == "neg-inf" else "unnormalised_weights"
    names = stages_of(spec)
    return stage in names and names.index(stage) >= names.index(first)
