"""One causal attention written in six ways over the same weights, as people's code has it.

Each form is a module from (B, L, d_model) to (B, L, d_model) with biases, an output projection and the −∞ mask. All are
made from one `SplitHeads`, whose weights are copied into them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from attnviz.attention.multihead import SplitHeads, StackedHeads, copy_weights
from attnviz.questions.forms import FormName


def attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """Context (…, L, d_head) of queries, keys and values (…, L, d_head), as a textbook writes it: three maps L × L."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (…, Q, K)
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    return weights @ v


class Stacked(nn.Module):
    """Single heads in a Python loop: each has its own small matrices, its own map, and is through before the next."""

    def __init__(self, given: SplitHeads) -> None:
        super().__init__()
        self.stacked = StackedHeads(
            given.d_in, given.d_out, given.num_heads, context_length=_length(given), qkv_bias=True, out_proj=True,
            seed=0,
        )  # fmt: skip
        copy_weights(given, self.stacked)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.stacked.hidden(x.shape[1])
        heads = zip(*self.stacked.projections(), strict=True)
        contexts = [attend(query(x), key(x), value(x), hidden) for query, key, value in heads]  # (B, L, D) each
        out: Tensor = _out(self.stacked)(torch.cat(contexts, dim=-1))  # (B, L, H · D)
        return out


class WeightSplit(nn.Module):
    """One large query, key and value matrix each, cut into heads that are multiplied as one batch."""

    def __init__(self, given: SplitHeads) -> None:
        super().__init__()
        self.split = SplitHeads(
            given.d_in, given.d_out, given.num_heads, context_length=_length(given), qkv_bias=True, out_proj=True,
            seed=0,
        )  # fmt: skip
        copy_weights(given, self.split)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split.project(x)  # (B, H, L, D)
        return self.split.join(attend(q, k, v, self.split.hidden(x.shape[1])))[1]


class FusedQKV(nn.Module):
    """One product for queries, keys and values together, as nanoGPT has it; then as `WeightSplit`."""

    hidden: Tensor

    def __init__(self, given: SplitHeads) -> None:
        super().__init__()
        self.num_heads = given.num_heads
        self.qkv = _linear(*_fused(given))
        self.out_proj = _linear(_out(given).weight, _out(given).bias)
        self.register_buffer("hidden", given.hidden(_length(given)))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, d_model = x.shape
        cut = self.qkv(x).view(batch, length, 3, self.num_heads, d_model // self.num_heads)  # (B, L, 3, H, D)
        q, k, v = cut.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, L, D)
        context = self.attend(q, k, v)
        out: Tensor = self.out_proj(context.transpose(1, 2).reshape(batch, length, d_model))  # (B, L, H · D)
        return out

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Context (B, H, L, D)."""
        length = q.shape[2]
        return attend(q, k, v, self.hidden[:length, :length])


class FusedSDPA(FusedQKV):
    """`FusedQKV` whose attention is torch's own kernel, which keeps no map."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Einsum(nn.Module):
    """Every product as an einsum over named axes, with weights of (H, D, d_model)."""

    hidden: Tensor

    def __init__(self, given: SplitHeads) -> None:
        super().__init__()
        heads, d_head = given.num_heads, given.d_head
        weight, bias = _fused(given)
        self.weight = nn.Parameter(weight.detach().clone().view(3, heads, d_head, given.d_in))
        self.bias = nn.Parameter(bias.detach().clone().view(3, heads, 1, d_head))
        self.out_weight = nn.Parameter(_out(given).weight.detach().clone().view(given.d_out, heads, d_head))
        self.out_bias = nn.Parameter(_out(given).bias.detach().clone())
        self.register_buffer("hidden", given.hidden(_length(given)))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        q, k, v = (
            torch.einsum("blm,hdm->bhld", x, weight) + bias for weight, bias in zip(self.weight, self.bias, strict=True)
        )
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores.masked_fill(self.hidden[:length, :length], -math.inf), dim=-1)
        context = torch.einsum("bhqk,bhkd->bqhd", weights, v)
        return torch.einsum("bqhd,ohd->bqo", context, self.out_weight) + self.out_bias


class TorchModule(nn.Module):
    """`nn.MultiheadAttention`, asked for no weights."""

    hidden: Tensor

    def __init__(self, given: SplitHeads) -> None:
        super().__init__()
        # made without storage, then given some: its own initial values would move the global generator
        made = nn.MultiheadAttention(given.d_out, given.num_heads, batch_first=True, device="meta")
        self.attention = made.to_empty(device="cpu")
        weight, bias = _fused(given)
        with torch.no_grad():
            self.attention.in_proj_weight.copy_(weight)
            self.attention.in_proj_bias.copy_(bias)
            self.attention.out_proj.load_state_dict(_out(given).state_dict())
        self.register_buffer("hidden", given.hidden(_length(given)))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        out: Tensor = self.attention(
            x, x, x, attn_mask=self.hidden[:length, :length], is_causal=True, need_weights=False
        )[0]
        return out


FORMS: Final[Mapping[FormName, Callable[[SplitHeads], nn.Module]]] = MappingProxyType(
    {
        "stacked": Stacked,
        "weight-split": WeightSplit,
        "fused QKV": FusedQKV,
        "einsum": Einsum,
        "SDPA": FusedSDPA,
        "nn.MultiheadAttention": TorchModule,
    }
)
"""Each form by its name: what makes it of a module that has biases and an output projection."""


def drawn(d_model: int, num_heads: int, length: int, seed: int) -> SplitHeads:
    """The module whose weights all forms get: float32 on the CPU."""
    return SplitHeads(d_model, d_model, num_heads, context_length=length, qkv_bias=True, out_proj=True, seed=seed)


def _fused(given: SplitHeads) -> tuple[Tensor, Tensor]:
    """Weights (3 · d_out, d_in) and biases (3 · d_out,) of queries, keys and values, one below the other."""
    layers = [layer for three in given.projections() for layer in three]
    weights: list[Tensor] = [layer.weight for layer in layers]
    biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
    return torch.cat(weights), torch.cat(biases)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], device="meta").to_empty(device="cpu")
    with torch.no_grad():
        made.weight.copy_(weight)
        made.bias.copy_(bias)
    return made


def _out(module: SplitHeads | StackedHeads) -> nn.Linear:
    assert module.out_proj is not None  # noqa: S101 (all forms have one)
    return module.out_proj


def _length(given: SplitHeads) -> int:
    assert given.mask is not None  # noqa: S101 (questions are short enough)
    return len(given.mask)
