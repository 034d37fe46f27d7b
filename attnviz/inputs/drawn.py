"""Random numbers in place of what a model would have learnt: embeddings by position, or queries and keys."""

from __future__ import annotations

import hashlib
from typing import Final

import torch
from torch import Tensor

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


def queries_and_keys(num_heads: int, length: int, d_head: int, qk_scale: float, seed: int) -> tuple[Tensor, Tensor]:
    """Queries and keys (H, L, d_head), float32: per head Q, then K, standard normal × ``qk_scale``."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.stack([torch.randn(length, d_head, generator=generator) for _ in range(2 * num_heads)])
    drawn = drawn.mul_(qk_scale).view(num_heads, 2, length, d_head)
    return drawn[:, 0].contiguous(), drawn[:, 1].contiguous()
