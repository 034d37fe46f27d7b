"""Blocks in rows or in columns: the arrangement that shows them best in the room there is. Pure arithmetic. No Qt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from attnviz.figure.places import Box

Range = tuple[float, float]


class Arranged(Protocol):
    """What is asked of a block; `figure.blocks.Block` says what each answer means."""

    @property
    def weight(self) -> float: ...
    def widths(self, unit: float) -> Range: ...
    def heights(self, width: float, unit: float) -> Range: ...
    def worth(self, size: tuple[float, float], unit: float) -> float: ...


class Measured:
    """A block that remembers what it has said: an arrangement asks the same again and again."""

    def __init__(self, block: Arranged) -> None:
        self._block, self.weight = block, block.weight
        self._widths: dict[float, Range] = {}
        self._heights: dict[tuple[float, float], Range] = {}
        self._worth: dict[tuple[tuple[float, float], float], float] = {}

    def widths(self, unit: float) -> Range:
        if unit not in self._widths:
            self._widths[unit] = self._block.widths(unit)
        return self._widths[unit]

    def heights(self, width: float, unit: float) -> Range:
        if (width, unit) not in self._heights:
            self._heights[width, unit] = self._block.heights(width, unit)
        return self._heights[width, unit]

    def worth(self, size: tuple[float, float], unit: float) -> float:
        if (size, unit) not in self._worth:
            self._worth[size, unit] = self._block.worth(size, unit)
        return self._worth[size, unit]


def shared(total: float, ranges: Sequence[Range], weights: Sequence[float]) -> list[float] | None:
    """``total`` shared out by ``weights``, each part within its (least, most); None where the least are too much."""
    parts = [least for least, _ in ranges]
    spare = total - sum(parts)
    if spare < -1e-6:
        return None
    while spare > 1e-6:
        growing = [n for n, (_, most) in enumerate(ranges) if parts[n] < most - 1e-9]
        if not growing:
            break
        each = spare / sum(weights[n] for n in growing)
        for n in growing:
            more = min(each * weights[n], ranges[n][1] - parts[n])
            parts[n] += more
            spare -= more
    return parts


def arranged(blocks: Sequence[Arranged], area: Box, unit: float, gap: float) -> list[Box] | None:
    """A box in ``area`` for each of ``blocks``, in their order; None where they do not all have room.

    They stand in rows, or in columns, whichever shows them best.
    """
    best: tuple[float, list[Box]] | None = None
    for groups in _partitions(len(blocks)):
        for lay_out in (_in_rows, _in_columns):
            boxes = lay_out(blocks, groups, area, unit, gap)
            if boxes is None:
                continue
            score = sum(
                block.weight * math.log(block.worth((box.width, box.height), unit))
                for block, box in zip(blocks, boxes, strict=True)
            )
            if best is None or score > best[0] + 1e-9:
                best = score, boxes
    return None if best is None else best[1]


def _partitions(count: int) -> Iterator[list[range]]:
    """Every way to cut 0 … count − 1 into runs."""
    for cuts in range(1 << max(count - 1, 0)):
        edges = [0, *(n + 1 for n in range(count - 1) if cuts >> n & 1), count]
        yield [range(first, end) for first, end in pairwise(edges)]


def _in_rows(
    blocks: Sequence[Arranged], groups: list[range], area: Box, unit: float, gap: float
) -> list[Box] | None:  # fmt: skip
    """Each group a row, its blocks side by side."""
    widths: list[float] = []
    ranges: list[Range] = []
    for group in groups:
        row = shared(
            area.width - gap * (len(group) - 1), [blocks[n].widths(unit) for n in group],
            [blocks[n].weight for n in group],
        )  # fmt: skip
        if row is None:
            return None
        found = [blocks[n].heights(width, unit) for n, width in zip(group, row, strict=True)]
        ranges.append((max(least for least, _ in found), max(most for _, most in found)))
        widths += row
    heights = shared(area.height - gap * (len(groups) - 1), ranges, [_weight(blocks, group) for group in groups])
    if heights is None:
        return None
    boxes, y = [], area.y
    for group, height in zip(groups, heights, strict=True):
        used = sum(widths[n] for n in group) + gap * (len(group) - 1)
        x = area.x + max(area.width - used, 0) / 2
        for n in group:
            boxes.append(Box(x, y, widths[n], min(height, blocks[n].heights(widths[n], unit)[1])))
            x += widths[n] + gap
        y += height + gap
    return boxes


def _in_columns(
    blocks: Sequence[Arranged], groups: list[range], area: Box, unit: float, gap: float
) -> list[Box] | None:  # fmt: skip
    """Each group a column, its blocks one below the other."""
    ranges = []
    for group in groups:
        found = [blocks[n].widths(unit) for n in group]
        ranges.append((max(least for least, _ in found), max(most for _, most in found)))
    widths = shared(area.width - gap * (len(groups) - 1), ranges, [_weight(blocks, group) for group in groups])
    if widths is None:
        return None
    boxes = []
    x = area.x + max(area.width - sum(widths) - gap * (len(groups) - 1), 0) / 2
    for group, width in zip(groups, widths, strict=True):
        own = [min(width, blocks[n].widths(unit)[1]) for n in group]
        heights = shared(
            area.height - gap * (len(group) - 1),
            [blocks[n].heights(wide, unit) for n, wide in zip(group, own, strict=True)],
            [blocks[n].weight for n in group],
        )
        if heights is None:
            return None
        y = area.y
        for wide, height in zip(own, heights, strict=True):
            boxes.append(Box(x, y, wide, height))
            y += height + gap
        x += width + gap
    return boxes


def _weight(blocks: Sequence[Arranged], group: range) -> float:
    return max(blocks[n].weight for n in group)
