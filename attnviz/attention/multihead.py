"""Both forms of a multi-head attention module: single heads side by side, and one product cut into heads.

They are the same function once they have the same weights (`copy_weights`). Initial values are uniform ± 1/√fan_in,
what ``nn.Linear`` draws, or with the projection *rand* uniform from 0 to 1, what ``torch.rand`` draws; from a generator
of their own on the CPU in float32: the global one is never touched.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, Literal

import torch
from torch import Tensor, nn

from attnviz.attention import masks

MAX_MASK_LENGTH: Final = 4096
"""Longest context whose mask is a buffer (16 MiB of bool); a longer one would take L² bytes nobody looks at."""


Projection = Literal["linear", "rand"]


class RightProduct(nn.Module):
    """``x @ weight`` with a matrix (d_in, d_out) that stands on the right, without a bias, as `torch.rand` gives it."""

    bias: None = None

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` (…, d_in) times the matrix: (…, d_out)."""
        return x @ self.weight


Layer = nn.Linear | RightProduct


class MultiHead(nn.Module, ABC):
    """What both forms share: sizes, the mask as a buffer, and one plain pass. Batches are (B, L, d_in).

    ``d_out`` is the total over all heads. ``num_kv_heads`` keys and values are shared by as many query heads each (all
    heads have their own where it equals ``num_heads``). Up to `MAX_MASK_LENGTH` tokens the causal mask (L, L) stands
    among the buffers as ``mask``; beyond, the buffer is None (and is not listed) and `hidden` computes what it is asked
    for.
    """

    mask: Tensor | None
    out_proj: nn.Linear | None

    def __init__(self, d_in: int, d_out: int, num_heads: int, num_kv_heads: int | None, context_length: int) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if d_out % num_heads:
            raise ValueError(f"d_out is {d_out}, which {num_heads} heads cannot share evenly")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_kv_heads is {num_kv_heads}, which {num_heads} heads cannot share evenly")
        self.d_in, self.d_out, self.num_heads, self.num_kv_heads = d_in, d_out, num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        short = context_length <= MAX_MASK_LENGTH
        self.register_buffer("mask", masks.hidden(context_length, context_length) if short else None)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, L, d_head), keys and values (B, num_kv_heads, L, d_head) of ``x`` (B, L, d_in)."""
        q, k, v = (self.project_with(layers, x) for layers in self.projections())
        return q, k, v

    @abstractmethod
    def project_with(self, layers: list[Layer], x: Tensor) -> Tensor:
        """``x`` (B, L, d_in) through one of the three lists of `projections`: (B, heads of its own, L, d_head)."""

    @abstractmethod
    def projections(self) -> tuple[list[Layer], list[Layer], list[Layer]]:
        """The query, the key and the value layers, each in the order in which they are cut into heads."""

    @abstractmethod
    def drawing_order(self) -> Iterable[Layer]:
        """The projections in the order in which their initial values are drawn."""

    def join(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Joined heads and output, each (B, L, d_out), of ``context`` (B, H, L, d_head); equal without out_proj."""
        batch, _, length, _ = context.shape
        joined = context.transpose(1, 2).reshape(batch, length, self.d_out)  # (B, L, H · D)
        return joined, joined if self.out_proj is None else self.out_proj(joined)

    def hidden(self, length: int) -> Tensor:
        """The causal mask (length, length) where the module is, bool, True = hidden."""
        if self.mask is not None and length <= len(self.mask):
            return self.mask[:length, :length]
        return masks.hidden(length, length, next((p.device for p in self.parameters()), None))

    def forward(self, x: Tensor) -> Tensor:
        """Causal attention over ``x`` (B, L, d_in) with the −∞ mask, without dropout: (B, L, d_out)."""
        q, k, v = self.project(x)
        k, v = (t.repeat_interleave(self.num_heads // self.num_kv_heads, 1) for t in (k, v))
        scores = (q @ k.transpose(2, 3)) / math.sqrt(self.d_head)  # (B, H, Q, K)
        weights = torch.softmax(scores.masked_fill(self.hidden(x.shape[1]), -math.inf), dim=-1)
        return self.join(weights @ v)[1]

    def _draw(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        layers = [*self.drawing_order()]
        for layer in layers if self.out_proj is None else [*layers, self.out_proj]:
            if isinstance(layer, RightProduct):
                with torch.no_grad():
                    layer.weight.copy_(torch.rand(layer.weight.shape, generator=generator))
                continue
            bound = 1 / math.sqrt(layer.in_features)
            with torch.no_grad():
                for parameter in layer.parameters():  # the weight, then the bias
                    parameter.uniform_(-bound, bound, generator=generator)


class Head(nn.Module):
    """The projections of a single head; without key and value where another head of its group has them."""

    def __init__(self, d_in: int, d_head: int, *, qkv_bias: bool, own_keys: bool, projection: Projection) -> None:
        super().__init__()
        self.query = _layer(projection, d_in, d_head, bias=qkv_bias)
        if not own_keys:
            return
        self.key = _layer(projection, d_in, d_head, bias=qkv_bias)
        self.value = _layer(projection, d_in, d_head, bias=qkv_bias)


class StackedHeads(MultiHead):
    """Single heads side by side, each with its own small query, key and value matrices, then concatenated."""

    def __init__(
        self, d_in: int, d_out: int, num_heads: int, *, num_kv_heads: int | None = None, context_length: int,
        qkv_bias: bool, out_proj: bool, seed: int, projection: Projection = "linear",
    ) -> None:  # fmt: skip
        super().__init__(d_in, d_out, num_heads, num_kv_heads, context_length)
        group = num_heads // self.num_kv_heads
        self.heads = nn.ModuleList(
            Head(d_in, self.d_head, qkv_bias=qkv_bias, own_keys=head % group == 0, projection=projection)
            for head in range(num_heads)
        )
        self.out_proj = _undrawn(d_out, d_out, bias=True) if out_proj else None
        self._draw(seed)

    def projections(self) -> tuple[list[Layer], list[Layer], list[Layer]]:
        found: tuple[list[Layer], ...] = tuple(
            [layer for head in self.heads for layer in [getattr(head, name, None)] if isinstance(layer, Layer)]
            for name in ("query", "key", "value")
        )
        return found[0], found[1], found[2]

    def drawing_order(self) -> Iterable[Layer]:
        for head in self.heads:
            yield from (layer for layer in head.children() if isinstance(layer, Layer))

    def project_with(self, layers: list[Layer], x: Tensor) -> Tensor:
        return torch.stack([layer(x) for layer in layers], 1)  # (B, heads of its own, L, D)


class SplitHeads(MultiHead):
    """One large query, key and value matrix each; the last dimension of the product is cut into the heads."""

    def __init__(
        self, d_in: int, d_out: int, num_heads: int, *, num_kv_heads: int | None = None, context_length: int,
        qkv_bias: bool, out_proj: bool, seed: int, projection: Projection = "linear",
    ) -> None:  # fmt: skip
        super().__init__(d_in, d_out, num_heads, num_kv_heads, context_length)
        shared = self.num_kv_heads * self.d_head
        self.query = _layer(projection, d_in, d_out, bias=qkv_bias)
        self.key = _layer(projection, d_in, shared, bias=qkv_bias)
        self.value = _layer(projection, d_in, shared, bias=qkv_bias)
        self.out_proj = _undrawn(d_out, d_out, bias=True) if out_proj else None
        self._draw(seed)

    def projections(self) -> tuple[list[Layer], list[Layer], list[Layer]]:
        return [self.query], [self.key], [self.value]

    def drawing_order(self) -> Iterable[Layer]:
        return self.query, self.key, self.value

    def project_with(self, layers: list[Layer], x: Tensor) -> Tensor:
        (layer,) = layers
        batch, length, _ = x.shape
        one: Tensor = layer(x)
        return one.view(batch, length, -1, self.d_head).transpose(1, 2)  # (B, heads of its own, L, D)


class Unprojected(MultiHead):
    """No projections at all: one head whose queries, keys and values are the inputs. It has no parameters."""

    def __init__(self, d_model: int, context_length: int) -> None:
        super().__init__(d_model, d_model, 1, 1, context_length)
        self.out_proj = None

    def projections(self) -> tuple[list[Layer], list[Layer], list[Layer]]:
        return [], [], []

    def drawing_order(self) -> Iterable[Layer]:
        return ()

    def project_with(self, layers: list[Layer], x: Tensor) -> Tensor:
        return x[:, None]  # (B, 1, L, D)


def copy_weights(source: MultiHead, target: MultiHead) -> None:
    """Write ``source``'s parameters into ``target``, whichever forms the two have, on whichever side matrices stand.

    An output projection is copied where both have one, else left alone. Raises ValueError where sizes or biases of
    queries, keys and values differ.
    """
    sizes = [(m.d_in, m.d_out, m.num_heads, m.num_kv_heads, _has_bias(m)) for m in (source, target)]
    if sizes[0] != sizes[1]:
        names = "(d_in, d_out, num_heads, num_kv_heads, qkv_bias)"
        raise ValueError(f"{names} is {sizes[0]} in the source but {sizes[1]} in the target")
    with torch.no_grad():
        for given, taking in zip(source.projections(), target.projections(), strict=True):
            _write_rows([_rows(layer) for layer in given], [_rows(layer) for layer in taking])
            if _has_bias(source):
                _write_rows([_bias(layer) for layer in given], [_bias(layer) for layer in taking])
        if source.out_proj is not None and target.out_proj is not None:
            target.out_proj.load_state_dict(source.out_proj.state_dict())


def _write_rows(given: list[Tensor], taking: list[Tensor]) -> None:
    rows = torch.cat(given)
    first = 0
    for parameter in taking:
        parameter.copy_(rows[first : first + len(parameter)])
        first += len(parameter)


def _rows(layer: Layer) -> Tensor:
    """A view of the weights (d_out, d_in), one row a dimension that comes out."""
    return layer.weight.t() if isinstance(layer, RightProduct) else layer.weight


def _bias(layer: Layer) -> Tensor:
    assert layer.bias is not None  # noqa: S101 (the caller asked)
    return layer.bias


def _has_bias(module: MultiHead) -> bool:
    return any(layer.bias is not None for three in module.projections() for layer in three)


def _layer(projection: Projection, d_in: int, d_out: int, *, bias: bool) -> Layer:
    if projection == "linear":
        return _undrawn(d_in, d_out, bias=bias)
    if bias:
        raise ValueError("a product with torch.rand has no bias")
    return RightProduct(d_in, d_out)


def _undrawn(d_in: int, d_out: int, *, bias: bool) -> nn.Linear:
    """A float32 layer on the CPU whose values nobody has drawn: nn.Linear's own would move the global generator."""
    return nn.Linear(d_in, d_out, bias=bias, device="meta", dtype=torch.float32).to_empty(device="cpu")
