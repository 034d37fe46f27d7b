"""What a leak looks like: the map of who sees whom, and a few more questions in float64, give the mistake its name.

The names come from what each mistake does to an output that must not move, when a later token changes:

- without a mask, tokens in another order give the same outputs in that order;
- a fill that is too shallow gives the token a weight that does not move with it: a change linear in the token;
- weights that are not divided again change by one factor a head: the changes of an output point along one direction
  a head, of every output;
- a softmax over the wrong axis changes each column by a factor of its own: as many directions as columns are visible.

What comes after attention must be linear for the last three; of other modules they are not said.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor

from attnviz.questions.leak import ROUNDING_EPS, Pattern
from attnviz.studies.leak.movement import Call, Movement

_SAMPLES: Final = 64
_FIRST_ROWS: Final = 3
_SHORTEST: Final = 4
_TURNS: Final = 16
_MOST_HEADS: Final = 24
_MOST_OF: Final = 0.8
"""A region moves where so much of it does: an unlucky number may fail to move a cell."""

_SMALL: Final = 1e-6
"""Of the largest singular value, or of the change itself: smaller is taken for rounding in float64."""


def pattern_of(call: Call, start: Tensor, movement: Movement) -> Pattern:
    """The name of what ``movement`` shows, a float64 module's under a causal mask; "" where it has none."""
    moved = movement.figures() > ROUNDING_EPS
    known = movement.changed[None].expand_as(moved) & ~torch.isnan(movement.moved)
    length = len(moved)
    future = torch.ones(length, length).triu(1).bool() & known
    past = torch.ones(length, length).tril(-1).bool() & known
    past[-1] = False  # with an inverted mask the last output sees nothing, and all alike where a fill is finite
    if not (moved & future).any():
        return "a token blind to itself" if is_blind(movement) else ""
    if length < _SHORTEST:
        return ""  # two tokens can be mixed up in any of these ways
    if _is_equivariant(call, start, movement.largest):
        return "no mask"
    beside = torch.zeros_like(future)
    beside.diagonal(1)[:] = True
    if not (moved & future & ~beside).any():
        return "one token too many" if _mostly(moved, future & beside) else ""
    if not _mostly(moved, future):
        return ""
    if not (moved & past).any():
        return "mask inverted"
    return _by_directions(call, start, movement.largest, movement.eps)


def is_blind(movement: Movement) -> bool:
    """Whether token 1 moves no output 1 that token 0 moves: its one visible key takes all, whatever it asks for."""
    figures = movement.figures()
    if not bool(movement.changed[:2].all()):
        return False
    return bool(figures[1, 1] <= ROUNDING_EPS and figures[1, 0] > ROUNDING_EPS)


def _is_equivariant(call: Call, start: Tensor, largest: float) -> bool:
    """Whether tokens in another order give the same outputs in that order, which under no mask of time they can."""
    length = len(start)
    before, places = call(start[None])[0], torch.arange(length)
    turns = range(1, length, math.ceil(length / _TURNS))  # another token is last in each
    for order in (places.flip(0), *(places.roll(turn) for turn in turns)):
        gap = (call(start[order.to(start.device)][None])[0] - before[order.to(before.device)]).abs()
        if not (bool(torch.isfinite(gap).all()) and float(gap.amax()) <= _SMALL * largest):
            return False
    return True


def _mostly(moved: Tensor, region: Tensor) -> bool:
    return bool(region.any()) and float(moved[region].double().mean()) >= _MOST_OF


def _by_directions(call: Call, start: Tensor, largest: float, eps: float) -> Pattern:
    length, d = start.shape
    row = max(length // 2, _FIRST_ROWS - 1)
    if row >= length - 1:
        return ""
    generator = torch.Generator().manual_seed(length)
    later = [row + 1 + n % (length - row - 1) for n in range(_SAMPLES)]
    tokens = torch.randn(_SAMPLES, d, generator=generator, dtype=torch.float64).to(start) * start.std()
    before = call(start[None])[0]
    full, half = (_changed(call, start, later, tokens, share) - before for share in (1.0, 0.5))
    change = full[:, : row + 1]
    size = float(change.abs().amax())
    noise = max(_SMALL * size, 1e3 * eps * largest)
    if float((half[:, : row + 1] - change / 2).abs().amax()) <= noise:
        return "fill too shallow"
    whole = min(_SAMPLES, before.shape[-1])
    ranks = [_rank(change[:, at], noise) for at in range(_FIRST_ROWS)]  # of outputs that see 1, 2, 3 keys
    if ranks[0] > min(_MOST_HEADS, whole - 1):
        return ""
    if ranks == [ranks[0]] * _FIRST_ROWS:
        # one head without a mask moves all outputs in the same directions, a factor moves each along its own
        together = _rank(change[:, :_FIRST_ROWS].flatten(0, 1), noise)
        return "not divided again" if together >= min(2 * ranks[0], whole) else ""
    more = [min(ranks[0] * (at + 1), whole) for at in range(_FIRST_ROWS)]
    return "softmax over the wrong axis" if ranks == more else ""


def _changed(call: Call, start: Tensor, positions: list[int], tokens: Tensor, share: float) -> Tensor:
    """Outputs (samples, L, o) with one token of each moved by ``share`` of the way to ``tokens`` (samples, d)."""
    batch = start.expand(len(positions), *start.shape).clone()
    for slot, position in enumerate(positions):
        batch[slot, position] += (tokens[slot] - batch[slot, position]) * share
    return call(batch)


def _rank(changes: Tensor, noise: float) -> int:
    """Directions that ``changes`` (samples, o) point to, up to ``noise``."""
    values = torch.linalg.svdvals(changes.double())
    return int((values > max(noise * len(changes) ** 0.5, _SMALL * float(values[0]))).sum())
