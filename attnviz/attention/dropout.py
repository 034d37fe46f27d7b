"""Which cells dropout keeps: a portable generator without state, and torch's own.

The portable one is a function of the cell: ``absorb`` nests six times, over (dropout seed, site, batch item, head,
query, column), and the upper 32 bits of the result are compared as integers with round(p · 2³²):

    absorb(key, n) = mix(key ^ mix(n + GOLDEN))        all modulo 2⁶⁴
    mix(x): x ^= x >>> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >>> 27; x *= 0x94D049BB133111EB; x ^= x >>> 31

`mix` is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). A cell therefore has the same bit on every device and
in every tile. Row and column are each mixed before they meet, so that no shift of the map repeats it, which a mix
of a linear combination of row and column would.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor

SITES: Final = {"weights": 0, "context": 1}

_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST_FACTOR: Final = 0xBF58476D1CE4E5B9
_LAST_FACTOR: Final = 0x94D049BB133111EB
_ALL_64: Final = (1 << 64) - 1
_BLOCK_CELLS: Final = 1 << 15  # 256 kB of int64 stay in cache, and below this torch does not wake other threads


def keep_portable(
    *,
    seed: int,
    site: str,
    batch_item: int,
    head: int,
    n_queries: int,
    n_columns: int,
    p: float,
    rows: range | tuple[int, int] | None = None,
    cols: tuple[int, int] | None = None,
    device: torch.device | str | None = None,
    columns_first: bool = False,
) -> Tensor:
    """Cells that are kept, bool (rows, cols), or (cols, rows) with ``columns_first``; True with probability 1 − p.

    ``site`` is weights (columns are keys) or context (columns are dimensions). ``rows`` and ``cols`` are half-open
    ranges of the map (n_queries, n_columns), None for all of it: any tile has the bits of the whole. ``rows`` may be
    a range with a step.
    """
    rows = range(n_queries) if rows is None else rows if isinstance(rows, range) else range(*rows)
    top, bottom = rows.start, rows.stop
    left, right = cols or (0, n_columns)
    if not (0 <= top <= bottom <= n_queries and 0 <= left <= right <= n_columns):
        raise ValueError(f"rows {rows}, cols {cols} do not lie in a map of {n_queries} × {n_columns} cells")
    key = 0
    for part in (seed, SITES[site], batch_item, head):
        key = _mix_number(key ^ _mix_number(part + _GOLDEN))
    row_keys = _mixed(_mixed(_indices(top, bottom, device, rows.step)).bitwise_xor_(_signed(key)))
    col_keys = _mixed(_indices(left, right, device))
    threshold = round(p * 2**32)
    outer, inner = (col_keys, row_keys) if columns_first else (row_keys, col_keys)
    kept = torch.empty(len(outer), len(inner), dtype=torch.bool, device=device)
    step = max(1, _BLOCK_CELLS // max(len(inner), 1))
    cells, shifted = (torch.empty(step, len(inner), dtype=torch.int64, device=device) for _ in range(2))
    for first in range(0, len(outer), step):
        block = outer[first : first + step, None]
        bits, spare = cells[: len(block)], shifted[: len(block)]
        _mixed(torch.bitwise_xor(block, inner, out=bits), spare)
        torch.ge(_logical_shift(bits, 32, out=bits), threshold, out=kept[first : first + step])
    return kept


def keep_torch(shape: Sequence[int], *, p: float, generator: torch.Generator) -> Tensor:
    """Cells that ``nn.Dropout`` keeps on the CPU, bool of ``shape``: the next draw of ``generator``.

    The stream differs between systems.
    """
    return torch.empty(tuple(shape), dtype=torch.float32).bernoulli_(1 - p, generator=generator).bool()


class TorchDraws:
    """One draw of ``shape`` a head, in head order, from one torch generator; any head can be asked for.

    Only the generator's state before each head is kept (5 kB), so a later head costs the draws before it once.
    """

    def __init__(self, seed: int, shape: Sequence[int], p: float) -> None:
        self._shape, self._p = tuple(shape), p
        self._states = [torch.Generator().manual_seed(seed).get_state()]

    def keep(self, head: int) -> Tensor:
        """Cells that are kept in one head, bool of the shape."""
        generator = torch.Generator()
        while True:
            known = min(head, len(self._states) - 1)
            generator.set_state(self._states[known])
            kept = keep_torch(self._shape, p=self._p, generator=generator)
            if known + 1 == len(self._states):
                self._states.append(generator.get_state())
            if known == head:
                return kept


@lru_cache(maxsize=4)
def torch_draws(seed: int, shape: tuple[int, ...], p: float) -> TorchDraws:
    """The draws of one computation; asked for again by its next head, they go on where they stood."""
    return TorchDraws(seed, shape, p)


def _indices(first: int, end: int, device: torch.device | str | None, step: int = 1) -> Tensor:
    return torch.arange(first, end, step, dtype=torch.int64, device=device).add_(_signed(_GOLDEN))


def _mixed(bits: Tensor, spare: Tensor | None = None) -> Tensor:
    """`mix` of each element of an int64 tensor, in place; ``spare`` is a tensor of its shape to work in."""
    spare = torch.empty_like(bits) if spare is None else spare
    for shift, factor in (30, _FIRST_FACTOR), (27, _LAST_FACTOR):
        bits.bitwise_xor_(_logical_shift(bits, shift, out=spare)).mul_(_signed(factor))
    return bits.bitwise_xor_(_logical_shift(bits, 31, out=spare))


def _logical_shift(bits: Tensor, shift: int, *, out: Tensor) -> Tensor:
    # torch's >> copies the sign down, which would leave the upper bits of half of all cells at 1
    return torch.bitwise_right_shift(bits, shift, out=out).bitwise_and_((1 << (64 - shift)) - 1)


def _mix_number(number: int) -> int:
    number &= _ALL_64
    number = (number ^ (number >> 30)) * _FIRST_FACTOR & _ALL_64
    number = (number ^ (number >> 27)) * _LAST_FACTOR & _ALL_64
    return number ^ (number >> 31)


def _signed(number: int) -> int:
    """The int64 with the bits of a number from 0 up to 2⁶⁴."""
    return number - (1 << 64) if number >> 63 else number
