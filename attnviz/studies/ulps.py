"""Steps of a dtype (ULP): the distance from a number to the next one that it holds."""

from __future__ import annotations

import torch
from torch import Tensor


def step_at(sizes: Tensor, dtype: str) -> Tensor:
    """The distance to the next number of ``dtype`` at ``sizes`` float64 ≥ 0, same shape."""
    limits = torch.finfo(getattr(torch, dtype))
    _, exponents = torch.frexp(sizes.clamp(limits.smallest_normal, limits.max))
    return torch.ldexp(torch.full_like(sizes, limits.eps), exponents - 1)
