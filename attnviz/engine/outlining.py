"""What a picture is about, before any of it is computed: tokens, stages with their shapes, parameters, panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnviz.attention.stages import lets_through
from attnviz.frames import Outline, ParameterRow, StageShape
from attnviz.inputs import Inputs
from attnviz.spec import (
    JOINT_STAGES,
    MAX_DRAWN,
    QUERY_KEY_STAGES,
    AttentionSpec,
    Drawn,
    Request,
    TypedWeights,
    stages_of,
)

if TYPE_CHECKING:
    from torch import Tensor, nn


def outline_of(request: Request, given: Inputs, module: nn.Module | None) -> Outline:
    """The outline of a request whose inputs are open."""
    spec = request.spec
    stage = request.view.stage
    panels = ("all",) if stage in JOINT_STAGES else tuple(f"head:{head}" for head in range(spec.num_heads))
    drawable = not isinstance(spec.mask_shape, Drawn) or len(given.tokens) <= MAX_DRAWN
    typed_weights = isinstance(spec.source, TypedWeights)
    return Outline(
        generation=request.generation,
        stage=stage,
        tokens=given.tokens,
        n_queries=given.n_queries,
        n_keys=len(given.tokens),
        dims=given.dims,
        origin=given.origin,
        stages=tuple(StageShape(name, _stage_shape(spec, name, given)) for name in stages_of(spec)),
        parameters=_parameter_rows(module if spec.projection != "none" else None),
        panels=panels,
        has_future=given.n_queries > 1 and not typed_weights and drawable and stage in ("weights", "dropped_weights"),
        future_hidden=spec.mask != "none" and not lets_through(spec),
        device=spec.device,
        glosses=given.glosses,
        dim_glosses=given.dim_glosses,
        mask_shape=spec.mask_shape,
    )


def _stage_shape(spec: AttentionSpec, stage: str, given: Inputs) -> tuple[int, ...]:
    heads, n_queries, n_keys = spec.num_heads, given.n_queries, len(given.tokens)
    if stage in QUERY_KEY_STAGES:
        return (heads, n_queries, n_keys)
    if stage == "inputs":
        return (n_keys, spec.d_model or 0)
    if stage in ("joined", "output"):
        return (n_queries, spec.d_out or 0)
    if stage == "row_sums":
        return (heads, n_queries, 1)
    if given.queries is not None:
        return (heads, n_queries, given.queries.shape[-1])
    width = given.values.shape[-1] if given.values is not None else spec.d_head or 0
    return (heads, n_queries, width)


def _parameter_rows(module: nn.Module | None) -> tuple[ParameterRow, ...]:
    if module is None:
        return ()
    named: list[tuple[str, str, Tensor]] = [(name, "parameter", tensor) for name, tensor in module.named_parameters()]
    named += [(name, "buffer", tensor) for name, tensor in module.named_buffers()]
    return tuple(
        ParameterRow(name, kind, tuple(t.shape), t.numel(), str(t.dtype).removeprefix("torch."), str(t.device))
        for name, kind, t in named
    )
