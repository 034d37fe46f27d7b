"""Which cells a mask hides, as runs of visible keys; and filling hidden cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

import torch
from torch import Tensor

from attnviz.spec import (
    AnyShape,
    Blocks,
    Causal,
    Drawn,
    Full,
    PadLeft,
    PadRight,
    Prefix,
    SlidingWindow,
    check_drawable,
    padded_keys,
    visible_runs,
)

_BLOCK = 128


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The keys that each query may see, in memory linear in their number.

    ``first`` and ``end`` int64 (Q,) on the CPU: a query sees keys first ≤ key < end, both equal where it sees none.
    ``plane`` bool (Q, K), True = visible, says more where runs cannot (a file's mask, memory-mapped, or a drawn one);
    the runs are then its outer bounds, ``padded`` is the half-open run of keys that are padding.
    """

    n_queries: int
    n_keys: int
    first: Tensor
    end: Tensor
    padded: tuple[int, int] = (0, 0)
    plane: Tensor | None = None
    seen: Tensor | None = None
    steady: bool = field(init=False)
    """Whether every query sees something and runs never go back from one query to the next, as with most shapes."""

    def __post_init__(self) -> None:
        runs = bool((self.end > self.first).all())
        forward = all(bool((run[1:] >= run[:-1]).all()) for run in (self.first, self.end))
        object.__setattr__(self, "steady", self.plane is None and runs and forward)

    def span(self, rows: range) -> tuple[int, int]:
        """Columns outside of which none of ``rows`` sees anything; equal where they see nothing."""
        if self.steady and len(rows):
            return int(self.first[rows[0]]), int(self.end[rows[-1]])
        first, end = self.first[_slice(rows)], self.end[_slice(rows)]
        some = end > first
        if not bool(some.any()):
            return 0, 0
        return int(first[some].min()), int(end[some].max())

    def open_span(self, rows: range) -> tuple[int, int]:
        """Columns that all of ``rows`` see throughout; (0, 0) where there are none."""
        if self.plane is not None or not len(rows):
            return 0, 0
        if self.steady:
            lo, hi = int(self.first[rows[-1]]), int(self.end[rows[0]])
        else:
            lo, hi = int(self.first[_slice(rows)].max()), int(self.end[_slice(rows)].min())
        return (lo, hi) if lo < hi else (0, 0)

    def n_visible(self, rows: range | None = None) -> Tensor:
        """Keys that each query sees, int64 (rows,)."""
        rows = range(self.n_queries) if rows is None else rows
        if self.seen is not None:
            return self.seen[_slice(rows)]
        return self.end[_slice(rows)] - self.first[_slice(rows)]

    def hidden(
        self, rows: range | None = None, cols: tuple[int, int] | None = None, device: torch.device | str | None = None
    ) -> Tensor:
        """Cells that are hidden, bool (rows, cols); None is all of them."""
        rows = range(self.n_queries) if rows is None else rows
        left, right = cols or (0, self.n_keys)
        if self.plane is not None:
            return ~self.plane[_slice(rows), left:right].to(device)
        keys = torch.arange(left, right, device=device)
        first, end = (run[_slice(rows), None].to(device) for run in (self.first, self.end))
        if not int(self.first[_slice(rows)].max()):
            return keys >= end
        return (keys >= end) | (keys < first)

    def fill(self, cells: Tensor, value: float, rows: range | None = None, left: int = 0) -> Tensor:
        """``cells`` (…, rows, columns from ``left`` on) with ``value`` in every hidden cell; written in place.

        Whole runs are filled beside each block of rows, and only the cells around the edge of what is visible look at
        a mask: with 1,024 keys that takes a tenth of ``masked_fill_``'s time, which reads a mask for every cell.
        """
        for part, hidden in self._hidden_parts(cells, rows, left):
            if hidden is None:
                part.fill_(value)
            else:
                part.masked_fill_(hidden, value)
        return cells

    def add(self, cells: Tensor, value: float, rows: range | None = None, left: int = 0) -> Tensor:
        """``cells`` (…, rows, columns from ``left`` on) plus ``value`` in every hidden cell; written in place.

        What S + M gives with an M of 0 and ``value``: −∞ on a score of +∞ is NaN.
        """
        for part, hidden in self._hidden_parts(cells, rows, left):
            if hidden is None:
                part.add_(value)
            else:
                part.add_(torch.zeros_like(hidden, dtype=cells.dtype).masked_fill_(hidden, value))
        return cells

    def _hidden_parts(self, cells: Tensor, rows: range | None, left: int) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Parts of ``cells``, and which of their cells are hidden: bool (rows, columns), None for all of them."""
        rows = range(self.n_queries) if rows is None else rows
        right = left + cells.shape[-1]
        for top in range(0, len(rows), _BLOCK):
            block = rows[top : top + _BLOCK]
            part = cells[..., top : top + len(block), :]
            lo, hi = (min(max(edge, left), right) for edge in self.span(block))
            yield part[..., : lo - left], None
            yield part[..., hi - left :], None
            for a, b in self.edges(block, (lo, hi)):
                yield part[..., a - left : b - left], self.hidden(block, (a, b), cells.device)

    def edges(self, rows: range, span: tuple[int, int]) -> list[tuple[int, int]]:
        """The columns within ``span`` in which some of ``rows`` may see something and others not."""
        return _outside(span, self.open_span(rows))

    def count_hidden(self) -> int:
        """Cells of the whole map that are hidden."""
        return self.n_queries * self.n_keys - int(self.n_visible().sum())


@lru_cache(maxsize=4)
def shaped(shape: AnyShape, n_queries: int, n_keys: int) -> Mask:
    """The mask of a shape; a file's shape needs its plane: `from_plane`. Query i stands at i + n_keys − n_queries.

    With fewer queries than keys the queries are the last ones. (SDPA's ``is_causal`` aligns the first query with the
    first key instead.) Raises `SpecError` for a drawn mask on a map that is too long for one.
    """
    with torch.inference_mode(mode=False):  # kept, and what differentiates may meet it later
        return _shaped(shape, n_queries, n_keys)


def _shaped(shape: AnyShape, n_queries: int, n_keys: int) -> Mask:
    if isinstance(shape, Drawn):
        return _drawn(shape, n_queries, n_keys)
    position = torch.arange(n_keys - n_queries, n_keys)
    own = position + 1
    first, end = torch.zeros_like(own), own
    match shape:
        case Full():
            end = torch.full_like(own, n_keys)
        case SlidingWindow(width=width):
            first = own - width
        case Prefix(length=length):
            end = own.clamp_min(length)
        case PadLeft(count=count):
            first = torch.full_like(own, count)
        case PadRight(count=count):
            end = own.clamp_max(n_keys - count)
        case Blocks(lengths=lengths):
            starts = torch.tensor([0, *accumulate(lengths)])
            first = starts[torch.searchsorted(starts, position, right=True) - 1]
        case Causal():
            pass
        case _:
            raise ValueError(f"{shape} is a file's shape: open its plane")
    first, end = first.clamp(0, n_keys), end.clamp(0, n_keys)
    return Mask(n_queries, n_keys, torch.minimum(first, end), end, padded_keys(shape, n_keys))


def _drawn(shape: Drawn, n_queries: int, n_keys: int) -> Mask:
    """The mask of drawn runs; with a plane where some query has several."""
    check_drawable(n_keys)
    every = [visible_runs(shape, row, n_queries, n_keys) for row in range(n_queries)]
    if all(len(runs) <= 1 for runs in every):
        bounds = torch.tensor([runs[0] if runs else (0, 0) for runs in every], dtype=torch.int64)
        return Mask(n_queries, n_keys, bounds[:, 0].clone(), bounds[:, 1].clone())
    plane = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for row, runs in enumerate(every):
        for first, end in runs:
            plane[row, first:end] = True
    return from_plane(plane)


def from_plane(plane: Tensor) -> Mask:
    """The mask of a bool (Q, K), True = visible; read once in blocks of rows, never copied whole."""
    n_queries, n_keys = plane.shape
    first, end, seen = (torch.zeros(n_queries, dtype=torch.int64) for _ in range(3))
    step = max(1, (1 << 24) // max(n_keys, 1))
    for top in range(0, n_queries, step):
        block = plane[top : top + step].to(torch.uint8)
        some = block.any(1).bool()
        first[top : top + step] = torch.where(some, block.argmax(1), 0)
        end[top : top + step] = torch.where(some, n_keys - block.flip(1).argmax(1), 0)
        seen[top : top + step] = block.sum(1)
    return Mask(n_queries, n_keys, first, end, plane=plane, seen=seen)


def hidden(n_queries: int, n_keys: int, device: torch.device | str | None = None) -> Tensor:
    """Cells (Q, K) that the causal mask hides, bool: key > query + n_keys − n_queries."""
    return shaped(Causal(), n_queries, n_keys).hidden(device=device)


def _slice(rows: range) -> slice:
    return slice(rows.start, rows.stop, rows.step)


def _outside(span: tuple[int, int], hole: tuple[int, int]) -> list[tuple[int, int]]:
    """Half-open ``span`` without ``hole``."""
    lo, hi = max(span[0], hole[0]), min(span[1], hole[1])
    parts = [(span[0], lo), (hi, span[1])] if lo < hi else [span]
    return [part for part in parts if part[0] < part[1]]
