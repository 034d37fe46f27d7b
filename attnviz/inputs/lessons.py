"""The numbers of the worked lessons that go through a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

ONE_CLASS_TOKENS: Final = ("0", "1", "2", "3")


@dataclass(frozen=True, slots=True, eq=False)
class OneClass:
    """What the lesson *one-class* draws, float64: ``inputs`` (4, 8), ``matrices`` (8, 8) for query, key and value.

    ``keep`` bool (4, 4) are the cells that its dropout keeps in training at p = 0.5.
    """

    inputs: Tensor
    matrices: tuple[Tensor, Tensor, Tensor]
    keep: Tensor


def one_class() -> OneClass:
    """The lesson's numbers, in the order in which NumPy's RandomState(3) gives them."""
    state = np.random.RandomState(3)  # its stream alone gives the printed figures
    inputs = state.randn(4, 8)
    query, key, value = (torch.from_numpy(state.randn(8, 8) * 0.5) for _ in range(3))
    keep = state.rand(4, 4) > 0.5
    return OneClass(torch.from_numpy(inputs), (query, key, value), torch.from_numpy(keep))
