"""How far a module's outputs move when one token of its input changes: a map of who sees whom, without any weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import torch
from torch import Tensor

Call = Callable[[Tensor], Tensor]
"""A module under test: inputs (B, L, d) to outputs (B, L, o)."""

_MOST_NUMBERS: Final = 1 << 26  # of a batch with its maps, so that one of all positions of a long input is cut
_HEADS_MEANT: Final = 16
_ROUGH: Final = 1e-10


class Testable(Protocol):
    """A module under test, of inputs (B, L, ``d``)."""

    @property
    def name(self) -> str: ...
    @property
    def d(self) -> int: ...
    def parameters(self) -> int:
        """Numbers of its weights."""

    def on(self, device: torch.device, dtype: torch.dtype) -> Call:
        """A copy on ``device`` in ``dtype``, in eval mode."""

    def hidden(self, length: int) -> Tensor:
        """Which token must not move which output: bool (L, L) at [output, token]."""


@dataclass(slots=True, eq=False)
class Movement:
    """``moved`` float64 (L, L): the largest change of output t's features when token s changes, at [t, s].

    0 is *not one bit*; inf where only one of the two outputs is a number; NaN where neither is, and in the columns of
    tokens that were not changed. ``changed`` bool (L,) says which were. ``largest`` is the largest finite |output|,
    ``eps`` that of the outputs' dtype, ``nan_rows`` bool (L,) the outputs that are no numbers before anything changes.
    """

    moved: Tensor
    changed: Tensor
    largest: float
    eps: float
    nan_rows: Tensor
    outputs: Tensor = field(repr=False)
    """Those before a change, float64 (L, o)."""

    def figures(self) -> Tensor:
        """``moved`` in eps × the largest output; 0 where nothing moved."""
        unit = self.eps * self.largest
        return self.moved / unit if unit > 0 else torch.where(self.moved > 0, math.inf, self.moved)

    def anything(self) -> bool:
        """Whether any token moved any output: where none did, there was nothing to see."""
        return bool((self.moved > 0).any())

    def lost(self) -> Tensor:
        """Outputs bool (L,) that are no numbers, before a change or after one."""
        return self.nan_rows | torch.isinf(self.moved).any(1)

    def largest_over(self, cells: Tensor) -> float:
        """The largest figure over ``cells`` bool (L, L) that moved by a number; 0 where none did."""
        figures = self.figures()[cells & self.changed[None]]
        figures = figures[torch.isfinite(figures)]
        return float(figures.amax()) if figures.numel() else 0.0


def inputs_of(length: int, d: int, scale: float, seed: int, count: int = 2) -> tuple[Tensor, ...]:
    """Inputs (L, d) of independent normal numbers × ``scale``, float64: one to start from, the others to change to."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, length, d, generator=generator, dtype=torch.float64) * scale).unbind()


def measure(
    call: Call, start: Tensor, others: Sequence[Tensor], positions: Sequence[int],
    cancelled: Callable[[], bool] = lambda: False, *, alone: bool = False,
) -> Movement:  # fmt: skip
    """Change token after token of ``start`` (L, d) to each of ``others``; as far as it came, once ``cancelled``.

    Every position has its slot in a batch, and is compared with the unchanged input in the same slot of a batch of the
    same size, since kernels may round otherwise elsewhere. ``alone`` takes batches of one. Features that never move,
    whatever changes, are left out of the largest output: a constant there would hide what moves beside it.
    """
    length, n = len(start), len(positions)
    numbers = start.numel() + _HEADS_MEANT * length**2  # of an item, with the maps that it may take
    size = 1 if alone else max(1, min(n, _MOST_NUMBERS // numbers))
    base = start.expand(size, *start.shape).clone()
    before = call(base)
    eps = torch.finfo(before.dtype).eps
    calm = before.to("cpu", torch.float64)
    moved = torch.full((length, length), math.nan, dtype=torch.float64)
    known = torch.zeros(length, dtype=torch.bool)
    moving = torch.zeros(calm.shape[-1], dtype=torch.bool)
    for other in others:
        for first in range(0, n, size):
            if cancelled():
                break
            some = positions[first : first + size]
            changed = base.clone()
            for slot, position in enumerate(some):
                changed[slot, position] = other[position]
            after = call(changed).to("cpu", torch.float64)
            moving |= (calm != after)[: len(some)].flatten(0, 1).any(0)
            for slot, position in enumerate(some):
                moved[:, position] = torch.fmax(moved[:, position], distance(calm[slot], after[slot]))
                known[position] = True
    finite = calm[..., moving] if bool(moving.any()) else calm
    finite = finite[torch.isfinite(finite)]
    largest = float(finite.abs().amax()) if finite.numel() else 0.0
    return Movement(moved, known, largest, eps, (~torch.isfinite(calm[0])).any(-1), calm[0])


def distance(one: Tensor, other: Tensor) -> Tensor:
    """The largest change (L,) of each row's features; inf where one alone is a number, NaN where neither ever is."""
    gap = (one - other).abs()
    gap = torch.where(one == other, 0.0, gap)  # ∞ − ∞
    lost = ~torch.isfinite(one), ~torch.isfinite(other)
    gap = torch.where(lost[0] ^ lost[1], math.inf, gap)
    gap = torch.where(lost[0] & lost[1] & (one != other), math.nan, gap)
    known = torch.where(torch.isnan(gap), -1.0, gap).amax(-1)
    return torch.where(known < 0, math.nan, known)


def repeats_itself(call: Call, start: Tensor) -> bool:
    """Whether the same input gives the same bits twice."""
    batch = start.expand(2, *start.shape).clone()
    return bool(torch.equal(*(torch.nan_to_num(call(batch), nan=0.5) for _ in range(2))))


def mixes_batch(call: Call, start: Tensor, other: Tensor) -> float:
    """How far one item's outputs move when another item of the batch changes, in eps of the largest output."""
    before = call(torch.stack((start, start))).to("cpu")
    after = call(torch.stack((other, start))).to("cpu")
    gap = distance(before[1].double(), after[1].double())
    gap = gap[~torch.isnan(gap)]
    finite = before[torch.isfinite(before)]
    unit = torch.finfo(before.dtype).eps * (float(finite.abs().amax()) if finite.numel() else 0.0)
    most = float(gap.amax()) if gap.numel() else 0.0
    return most / unit if unit > 0 else math.inf if most > 0 else 0.0


def inner_eps(call: Call, start: Tensor, largest: float) -> float:
    """The eps in which a float64 module really computes: float32's where it does so inside.

    By second differences: of a smooth function they shrink with the square of a step, of rounding they do not.
    """
    generator = torch.Generator().manual_seed(len(start))
    signs = torch.randn(start.shape, generator=generator, dtype=torch.float64).sign().to(start)
    bends = []
    for power in (-16, -20):
        step = start * signs * 2.0**power
        ahead, here, behind = (call((start + way * step)[None])[0].double() for way in (1, 0, -1))
        bend = (ahead - 2 * here + behind).abs()
        bends.append(float(bend[torch.isfinite(bend)].amax()) if bool(torch.isfinite(bend).any()) else 0.0)
    single = bends[1] > _ROUGH * largest and bends[1] > bends[0] / 16
    return torch.finfo(torch.float32 if single else torch.float64).eps
