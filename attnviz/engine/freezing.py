"""Scores frozen: what any source computes before the mask, as a matrix that can be edited by hand."""

from __future__ import annotations

import torch

from attnviz import inputs
from attnviz.attention.devices import Backend, TorchBackend
from attnviz.attention.stages import head_stages
from attnviz.engine.opened import Opener
from attnviz.spec import (
    MAX_TYPED_DIMS,
    MAX_TYPED_TOKENS,
    AttentionSpec,
    Matrix,
    SpecError,
    TypedScores,
    TypedWeights,
    edited,
    has_values,
)


def freeze(spec: AttentionSpec, head: int, backend: Backend | None = None) -> TypedScores:
    """The scaled scores of one head before any mask (after a soft cap), with its values and tokens, as a typed source.

    The numbers are those of the spec's dtype, so that the same mask and dtype over the frozen scores give the same
    weights, up to float32's rounding. Dropout draws for each head anew, and a typed source has head 0 alone: the same
    dropout drops the same cells where ``head`` is 0, other ones for any other head. Values of more than
    `MAX_TYPED_DIMS` dimensions are left out. A fill that was scaled (``scale_after_mask``) is not frozen with them.

    Thread: any. Raises `SpecError` for more than `MAX_TYPED_TOKENS` tokens, for typed weights, which have no scores,
    for a head that there is not, and where a score is no number (NaN, +∞); `DeviceError` where the device is missing.
    """
    n_keys = inputs.count_tokens(spec.source)[1]
    if n_keys > MAX_TYPED_TOKENS:
        raise SpecError(
            "source", f"there are {n_keys:,} tokens: at most {MAX_TYPED_TOKENS} tokens can be typed, so take fewer"
        )
    if isinstance(spec.source, TypedWeights):
        raise SpecError("source", "the weights are typed: there are no scores to freeze")
    if not 0 <= head < spec.num_heads:
        raise SpecError("head", f"head is {head}: heads count from 0, so give 0 to {spec.num_heads - 1}")
    if isinstance(spec.source, TypedScores):
        return spec.source
    plain = edited(spec, mask="none", top_k=None, scale_after_mask=False, batch=1, training=False)
    opener = Opener(TorchBackend() if backend is None else backend)
    with torch.inference_mode():
        opened = opener.open(plain)
        given = opener.head_inputs(plain, head, opened)
        stages = head_stages(
            plain, head=head, keep={"scaled_scores"}, q=given.get("q"), k=given.get("k"),
            scaled_scores=given.get("scaled_scores"),
        ).stages  # fmt: skip
    values = given.get("v") if has_values(spec.source) else None
    values = None if values is not None and values.shape[-1] > MAX_TYPED_DIMS else values
    return TypedScores(
        scores=_matrix(stages["scaled_scores"]),
        values=None if values is None else _matrix(values),
        dims=() if values is None else opened.inputs.dims,
        tokens=opened.inputs.tokens,
    )


def _matrix(cells: torch.Tensor) -> Matrix:
    """The numbers of a tensor (1, R, C), each exactly."""
    return tuple(tuple(row) for row in cells[0].double().tolist())
