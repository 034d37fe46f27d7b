"""Both forms of a module as they are: what they multiply, and why two printed outputs differ, reason by reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import numpy as np
import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention.devices import TorchBackend
from attnviz.attention.multihead import MultiHead, SplitHeads, StackedHeads, copy_weights
from attnviz.attention.pooling import to_numpy
from attnviz.questions.heads import BatchedProduct, FormsCompared, HeadsAnswer, HeadsQuestion, LadderStep, Rung
from attnviz.spec import AttentionSpec, fixed_by, has_module
from attnviz.spec.worked import JOURNEY_INPUTS

Form = TypeVar("Form", bound=MultiHead)

_BOOK_SEED: Final = 123
_MOST_TOKENS: Final = 256
"""Tokens over which both forms are tried; causal rows do not change with what follows them."""
_MOST_WIDTH: Final = 4096
_TENSOR: Final = (
    ((0.2745, 0.6584, 0.2775, 0.8573), (0.8993, 0.0390, 0.9268, 0.7388), (0.7179, 0.7058, 0.9156, 0.4340)),
    ((0.0772, 0.3565, 0.1479, 0.5331), (0.4066, 0.2318, 0.4545, 0.9737), (0.4606, 0.5159, 0.4220, 0.5786)),
)
"""The book's tensor of 1 × 2 × 3 × 4."""


def answers(question: HeadsQuestion, cancelled: Callable[[], bool] = lambda: False) -> Iterator[HeadsAnswer]:
    """The book's classes and product at once, then both forms in the spec's own sizes."""
    with torch.inference_mode():
        ladder, product = _ladder(), batched_product()
    yield HeadsAnswer(1, 2, question, ladder, product)
    if cancelled():
        return
    reason = _reason(question.spec)
    forms = None
    if not reason:
        forms = _forms(question.spec)
    yield HeadsAnswer(2, 2, question, ladder, product, forms, reason)


def _ladder() -> tuple[LadderStep, ...]:
    """The book's stacked wrapper and split class of seed 123, made equal step by step."""
    x = torch.tensor(JOURNEY_INPUTS)[None]
    length = x.shape[1]
    stacked = _built(StackedHeads, 3, 4, 2, length, out_proj=False)
    steps: list[tuple[Rung, MultiHead]] = [
        ("as printed", _built(SplitHeads, 3, 2, 2, length, out_proj=True)),
        ("same d_out", _built(SplitHeads, 3, 4, 2, length, out_proj=True)),
        ("without out_proj", _built(SplitHeads, 3, 4, 2, length, out_proj=False)),
    ]
    copied = _built(SplitHeads, 3, 4, 2, length, out_proj=False)
    copy_weights(stacked, copied)
    return tuple(_rung(name, stacked(x)[0], split(x)[0]) for name, split in (*steps, ("same draws", copied)))


def _rung(name: Rung, stacked: Tensor, split: Tensor) -> LadderStep:
    alike = stacked.shape == split.shape
    difference = float((stacked - split).abs().max()) if alike else None
    return LadderStep(name, to_numpy(stacked), to_numpy(split), difference, alike and torch.equal(stacked, split))


def batched_product() -> BatchedProduct:
    """The book's 1 × 2 × 3 × 4 tensor times its transpose, at once and with one product a head."""
    tensor = torch.tensor(_TENSOR)[None]
    at_once = (tensor @ tensor.transpose(2, 3))[0]  # (H, L, L)
    by_head = torch.stack([head @ head.T for head in tensor[0]])
    arrays = [np.asarray(to_numpy(one), np.float32) for one in (tensor[0], at_once, by_head)]
    for array in arrays:
        array.flags.writeable = False
    return BatchedProduct(arrays[0], arrays[1], arrays[2], torch.equal(at_once, by_head))


def _reason(spec: AttentionSpec) -> str:
    """Why the two forms cannot be tried in the spec's sizes, empty where they can."""
    if not has_module(spec.source):
        fixed = fixed_by(spec.source).get("implementation")
        return fixed.reason if fixed is not None else "there are no projections"
    if spec.projection != "linear":
        return f"projection is {spec.projection}: both forms are made of nn.Linear"
    if max(spec.d_model or 0, spec.d_out or 0) > _MOST_WIDTH:
        return f"both forms are tried up to a width of {_MOST_WIDTH:,}"
    return ""


def _forms(spec: AttentionSpec) -> FormsCompared:
    assert spec.d_model is not None and spec.d_out is not None and spec.d_head is not None  # noqa: S101, PT018
    backend = TorchBackend()
    device, dtype = backend.torch_device(spec.device), getattr(torch, spec.dtype)
    with torch.inference_mode(mode=False):  # parameters are made outside of it
        given = inputs.open_source(spec).embeddings
        assert given is not None  # noqa: S101 (the source has a module)
        x = given[:_MOST_TOKENS].to(device, dtype)[None]
        stacked, split = (
            _built(form, spec.d_model, spec.d_out, spec.num_heads, x.shape[1], num_kv_heads=spec.num_kv_heads,
                   qkv_bias=spec.qkv_bias, seed=spec.seed).to(device, dtype)
            for form in (StackedHeads, SplitHeads)
        )  # fmt: skip

    def gap(one: Tensor, other: Tensor) -> float:
        return float((one.double() - other.double()).abs().max())

    with torch.inference_mode():
        one, other = stacked(x), split(x)
        drawn = gap(one, other)
        copy_weights(stacked, split)
        other = split(x)
        counts = [sum(len(layers) for layers in form.projections()) for form in (stacked, split)]
        return FormsCompared(
            x.shape[1], counts[0], counts[1], (spec.d_model, spec.d_head), (spec.d_model, spec.d_out), drawn,
            gap(one, other), torch.equal(one, other),
        )  # fmt: skip


def _built(
    form: type[Form], d_in: int, d_out: int, heads: int, length: int, *, num_kv_heads: int | None = None,
    qkv_bias: bool = False, out_proj: bool = False, seed: int = _BOOK_SEED,
) -> Form:  # fmt: skip
    return form(
        d_in,
        d_out,
        heads,
        num_kv_heads=num_kv_heads,
        context_length=length,
        qkv_bias=qkv_bias,
        out_proj=out_proj,
        seed=seed,
    )  # type: ignore[call-arg]
