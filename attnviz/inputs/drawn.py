"""Random numbers in place of what a model would have learnt: embeddings by position, or queries and keys."""

from __future__ import annotations

import hashlib
from typing import Final

import torch
from torch import Tensor

from attnviz.inputs import storage

_BLOCK: Final = 256


def keyed_generator(*key: int | str) -> torch.Generator:
    """A CPU generator of its own for ``key``: its seed is 63 bits of the key's SHA-256."""
    spoken = "\0".join(map(str, key)).encode("utf-8", "surrogatepass")
    seed = int.from_bytes(hashlib.sha256(spoken).digest()[:8], "big") >> 1
    return torch.Generator().manual_seed(seed)


def embed_positions(length: int, d_model: int, seed: int) -> Tensor:
    """Standard normal embeddings (length, d_model), float32: row p depends on (seed, p) alone, never on the length.

    Whole blocks of positions are drawn, each from its own generator, and the last one is cut.
    """
    embeddings = torch.empty(length, d_model)
    for first in range(0, length, _BLOCK):
        block = torch.randn(_BLOCK, d_model, generator=keyed_generator(seed, "positions", first))
        embeddings[first : first + _BLOCK] = block[: length - first]
    return embeddings


def queries_and_keys(
    num_heads: int, length: int, d_head: int, qk_scale: float, seed: int, *, num_kv_heads: int | None = None,
    in_memory: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Queries (H, L, d_head) and keys (KV, L, d_head), float32: standard normal × ``qk_scale``.

    One generator draws per head Q, then K where the head is the first of those that share a key/value head. Memory:
    the result alone, in a temporary file unless ``in_memory`` (see `storage.empty`).
    """
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    queries, keys = (storage.empty((heads, length, d_head), in_memory=in_memory) for heads in (num_heads, kv_heads))
    generator = torch.Generator().manual_seed(seed)
    shared_by = num_heads // kv_heads
    for head in range(num_heads):
        torch.randn(length, d_head, generator=generator, out=queries[head])
        if head % shared_by == 0:
            torch.randn(length, d_head, generator=generator, out=keys[head // shared_by])
    return queries.mul_(qk_scale), keys.mul_(qk_scale)
