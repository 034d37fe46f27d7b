"""Maps of any size in tiles of pixels: what must be computed for a window, in which order, and what is kept.

A picture begins with previews: one row of every row of pixels, over *all* columns, so that an attention sink shows in
the first of them. Blocks of whole rows then replace them until the picture is exact. Tiles are kept; those least
recently looked at go first.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch

from attnviz.attention.bins import Bins
from attnviz.attention.devices import Backend, TorchBackend
from attnviz.attention.longmaps import HeadMap
from attnviz.attention.planes import FACTORS, Place, Planes, assemble, side_of
from attnviz.attention.pooling import Pooled, Region
from attnviz.attention.tiles import CPU_TILE, DEVICE_TILE, Cancelled, Workspace
from attnviz.engine.crew import Crew, Job
from attnviz.frames import Counts
from attnviz.spec import Pooling

_EVERY: Final = 0.12
"""Seconds between two pictures of a head on its way from the last preview to the exact one."""
_PREVIEW_FROM: Final = 30_000_000
"""A picture of fewer cells needs no preview."""


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a window is: heads whose picture changed, steps done of all, and previews that stand of those planned."""

    heads: tuple[int, ...]
    done: int
    total: int
    preview: int
    previews: int


@dataclass(frozen=True, slots=True)
class _Step:
    """One job: rows of one head into the tiles of one band. ``preview`` counts from 1; 0 is the exact pass."""

    head: int
    level: int
    band: int
    columns: range
    rows: range
    preview: int


@dataclass(slots=True)
class _Tally:
    """Cells counted so far while a head's whole map is computed at one level."""

    rows: int = 0
    zeros: int = 0
    dropped: int = 0
    nan_rows: int = 0
    masked: int = 0
    padded: int = 0


class Tiling:
    """The heads' maps of one stage.

    ``per_row`` says that each row's largest weight must be known, ``means`` that means after a row's factor are wanted.
    ``budget_bytes`` bounds the tiles that are kept, ``backend`` runs the jobs. Thread: one drives it, a crew computes.
    """

    def __init__(
        self, heads: Sequence[HeadMap], *, per_row: bool, budget_bytes: int, backend: Backend | None = None,
        means: bool = False,
    ) -> None:  # fmt: skip
        self._heads, self._budget, self._means = tuple(heads), budget_bytes, means
        self._backend: Backend = backend or TorchBackend()
        self._whole_rows = per_row and heads[0].stage == "dropped_weights"  # elsewhere the log-sum-exps tell it
        self._tiles: OrderedDict[tuple[int, Place], Planes] = OrderedDict()
        self._extents: dict[tuple[int, str], tuple[float, float]] = {}
        self._tallies: dict[tuple[int, int], _Tally] = {}
        self._lock = threading.Lock()

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and keys."""
        return self._heads[0].shape

    @property
    def nbytes(self) -> int:
        """Bytes of the tiles that are kept."""
        return sum(tile.nbytes for tile in self._tiles.values())

    # ----------------------------------------------------------------------------------------------------- computing

    def compute(
        self, region: Region, order: Sequence[int], crew: Crew, cancelled: Cancelled, seen: Region | None = None
    ) -> Iterator[Advance | None]:
        """Compute ``region`` of the heads in ``order``; None between two advances. Ends early once ``cancelled``.

        ``seen`` is what is looked at meanwhile, if it is something else.
        """
        steps = self._steps(region, order)
        previews = max((step.preview for step in steps), default=0)
        left: dict[tuple[int, int], int] = {}
        for step in steps:
            left[step.head, step.preview] = left.get((step.head, step.preview), 0) + 1
        done = shown = 0
        last = time.perf_counter()
        changed: set[int] = set()
        jobs: Iterator[Job] = (partial(self._run, step, cancelled) for step in steps)
        results = crew.map(jobs)
        for result in results:
            if cancelled():
                results.close()
                self._evict(seen or region)
                return
            if not isinstance(result, _Step):
                yield None
                continue
            step = result
            done += 1
            changed.add(step.head)
            left[step.head, step.preview] -= 1
            ended = not left[step.head, step.preview]
            if ended and step.preview and not any(n for (_, number), n in left.items() if number == step.preview):
                shown = max(shown, step.preview)
            now = time.perf_counter()
            if ended or (not step.preview and now - last > _EVERY):
                last = now
                yield Advance((step.head,) if ended else tuple(sorted(changed)), done, len(steps), shown, previews)
                changed = changed - {step.head} if ended else set()
            else:
                yield None
        if not steps:
            yield Advance(tuple(order), 0, 0, 0, 0)
        self._evict(seen or region)

    def _steps(self, region: Region, order: Sequence[int]) -> list[_Step]:
        """What is missing, in the order in which it is wanted: previews of all heads, then blocks of whole rows."""
        level, side = region.level, side_of(region.level) * region.level
        bands = range(region.rows[0] // side, -(-region.rows[1] // side))
        columns = range(region.cols[0] // side, -(-region.cols[1] // side))
        missing: list[tuple[int, int, list[Planes]]] = []
        for head in order:
            for band in bands:
                found = (self._looked_at(head, Place(level, band, column)) for column in columns)
                present = [tile for tile in found if tile is not None]
                if len(present) < len(columns) or not all(tile.holds(region.rows) for tile in present):
                    missing.append((head, band, present))
        first = self._heads[0]
        known = first.route == "scores" or all(self._heads[head].known.has(range(*region.rows)) for head in order)
        width = region.cols[1] - region.cols[0] if known and first.route != "rows" else self.shape[1]
        cells = len(missing) * min(side, region.rows[1] - region.rows[0]) * width
        steps = []
        for number, offset in enumerate(_preview_offsets(level) if cells > _PREVIEW_FROM else (), 1):
            for head, band, tiles in missing:
                rows = range(band * side + offset, min((band + 1) * side, self.shape[0]), level)
                seen = len(tiles) == len(columns) and all(
                    bool(((tile.folded >= number) | (tile.exact > 0))[: len(rows)].all()) for tile in tiles
                )
                if rows and not seen:
                    steps.append(_Step(head, level, band, columns, rows, number))
        for head, band, tiles in _longest_first(missing, order):
            for rows in self._blocks(region, band):
                held = len(tiles) == len(columns) and all(tile.holds((rows.start, rows.stop)) for tile in tiles)
                if not held:
                    steps.append(_Step(head, level, band, columns, rows, 0))
        return steps

    def _blocks(self, region: Region, band: int) -> Iterator[range]:
        """Blocks of whole rows of pixels, or of parts of one, of a band as far as the region reaches.

        They lie in the same places whatever the region is, so that none is folded in twice.
        """
        level, side = region.level, side_of(region.level) * region.level
        block = (CPU_TILE if self._heads[0].queries.device.type == "cpu" else DEVICE_TILE)[0]
        block = min(block // level * level if block >= level else block, side)
        end = min((band + 1) * side, self.shape[0])
        for start in range(band * side, end, block):
            if start < region.rows[1] and start + block > region.rows[0]:
                yield range(start, min(start + block, end))

    def _run(self, step: _Step, cancelled: Cancelled, space: Workspace, stopped: Cancelled) -> _Step | None:
        """A job of the crew: its rows into every tile of the band that the region touches; None if it was stopped."""
        one, side = self._heads[step.head], side_of(step.level) * step.level
        cols = step.columns.start * side, min(step.columns.stop * side, self.shape[1])
        block = partial(
            one.bins, step.rows, cols, step.level, space, lambda: stopped() or cancelled(), whole_rows=self._whole_rows
        )
        while True:
            try:
                found = self._backend.run(one.spec.device, block)
                break
            except torch.OutOfMemoryError:
                if not space.shrink():
                    raise
        if found is None:
            return None
        bins, factors = found
        for column in step.columns:
            tile = self._tile(step.head, Place(step.level, step.band, column))
            highs = tile.fold(bins, factors, one.outside(tile.region), preview=bool(step.preview))
            self._extend(step.head, bins.low, highs)
        if not step.preview and step.columns == range(-(-self.shape[1] // side)):
            self._count(step, bins)
        return step

    def _extend(self, head: int, low: float, highs: list[float]) -> None:
        with self._lock:
            for factor, high in zip(FACTORS, highs, strict=False):
                known = self._extents.get((head, factor), (math.inf, -math.inf))
                self._extents[head, factor] = (known[0] if math.isnan(low) else min(known[0], low)), max(known[1], high)

    def extent(self, head: int, factor: str) -> tuple[float, float]:
        """Lowest and highest finite ordinary cell met so far, after the row factor; inf and -inf where none was.

        The lowest is that of scores; of weights it stays inf.
        """
        with self._lock:
            known = factor if self._heads[head].route != "scores" else "plain"  # scores have no rows' factors
            return self._extents.get((head, known), (math.inf, -math.inf))

    def _count(self, step: _Step, bins: Bins) -> None:
        one = self._heads[step.head]
        hidden = torch.zeros(len(step.rows), dtype=torch.int64)
        stuffed = 0
        if one.acting_mask is not None:
            hidden = self.shape[1] - one.acting_mask.n_visible(step.rows)
            stuffed = one.acting_mask.padded[1] - one.acting_mask.padded[0]
        good = torch.ones(len(step.rows), dtype=torch.bool) if bins.sound is None else bins.sound.cpu()
        with self._lock:
            tally = self._tallies.setdefault((step.head, step.level), _Tally())
            tally.rows += len(step.rows)
            tally.zeros = -1 if -1 in (tally.zeros, bins.zeros) else tally.zeros + bins.zeros
            tally.dropped = -1 if -1 in (tally.dropped, bins.dropped) else tally.dropped + bins.dropped
            tally.nan_rows += int((~good).sum())
            tally.padded += stuffed * int(good.sum())
            tally.masked += int(hidden[good].sum()) - stuffed * int(good.sum())

    # ------------------------------------------------------------------------------------------------------- pictures

    def picture(self, head: int, computed: Region, shown: Region, pooling: Pooling, factor: str) -> Pooled | None:
        """Pixels of ``shown`` from the tiles of ``computed`` (the same cells, as fine or finer), as far as they came.

        None where nothing has come yet.
        """
        side = side_of(computed.level) * computed.level
        tiles = {}
        for row in range(computed.rows[0] // side, -(-computed.rows[1] // side)):
            for column in range(computed.cols[0] // side, -(-computed.cols[1] // side)):
                tile = self._tiles.get((head, Place(computed.level, row, column)))
                if tile is None:
                    return None
                tiles[row, column] = tile
        one = self._heads[head]
        return assemble(tiles, shown, self.shape, pooling, factor, blank=one.blank, counts=self.counts(head))

    def counts(self, head: int) -> Counts:
        """Cells of the whole map by kind; -1 where they are not all counted yet."""
        one, (n_queries, n_keys), mask = self._heads[head], self.shape, self._heads[head].acting_mask
        cells = n_queries * n_keys
        if mask is not None and one.lets_hidden_weigh:
            return Counts(cells, -1, -1, -1, -1 if one.draw() else 0, -1)
        known = one.route == "scores" or (one.route == "sweep" and not one.draw() and one.is_plain)
        if known and one.spec.mask != "three-step":
            if mask is None:
                return Counts(cells)
            seen = mask.n_visible()
            blind = int((seen == 0).sum()) if one.route == "sweep" else 0  # rows that see nothing are NaN throughout
            padded = (mask.padded[1] - mask.padded[0]) * (n_queries - blind)
            return Counts(cells, cells - int(seen.sum()) - blind * n_keys - padded, 0, blind * n_keys, 0, padded)
        with self._lock:
            whole = [t for (h, _), t in self._tallies.items() if h == head and t.rows == n_queries]
        if not whole:
            return Counts(cells, -1, -1, -1, -1 if one.draw() else 0, -1 if mask is not None and mask.padded[1] else 0)
        tally = whole[0]
        return Counts(cells, tally.masked, tally.zeros, tally.nan_rows * n_keys, tally.dropped, tally.padded)

    # ---------------------------------------------------------------------------------------------------------- tiles

    def _looked_at(self, head: int, place: Place) -> Planes | None:
        """A tile that there is; it goes last when room is made."""
        with self._lock:
            tile = self._tiles.get((head, place))
            if tile is not None:
                self._tiles.move_to_end((head, place))
        return tile

    def _tile(self, head: int, place: Place) -> Planes:
        """A tile, made by the first job that has something for it."""
        one, key = self._heads[head], (head, place)
        with self._lock:
            tile = self._tiles.get(key)
            if tile is None:
                dtype, weights = one.scores(None).dtype, one.route != "scores"
                tile = self._tiles[key] = Planes(place, self.shape, dtype, weights=weights, means=self._means)
        return tile

    def _evict(self, seen: Region) -> None:
        """Forget tiles beyond the budget, those least recently looked at first; never those of ``seen``."""
        with self._lock:
            self._evict_unlocked(seen)

    def _evict_unlocked(self, seen: Region) -> None:
        surplus = self.nbytes - self._budget
        for key in list(self._tiles):
            if surplus <= 0:
                return
            if key[1].level != seen.level or not _overlaps(self._tiles[key].region, seen):
                surplus -= self._tiles.pop(key).nbytes
                self._tallies.pop((key[0], key[1].level), None)  # its rows would be counted again


def _preview_offsets(level: int) -> tuple[int, ...]:
    """Which row of a pixel's rows each preview takes; each costs one part in ``level`` of the exact pass."""
    count = 4 if level >= 64 else 2 if level >= 16 else 1 if level >= 4 else 0
    return (0, level // 2, level // 4, 3 * level // 4)[:count]


def _longest_first(
    missing: list[tuple[int, int, list[Planes]]], order: Sequence[int]
) -> list[tuple[int, int, list[Planes]]]:
    """The first head whole, then the others band by band; each from its longest rows up, so that the end is short."""
    first = [entry for entry in missing if entry[0] == order[0]]
    others = [entry for entry in missing if entry[0] != order[0]]
    return [*reversed(first), *sorted(others, key=lambda entry: -entry[1])]


def _overlaps(one: Region, other: Region) -> bool:
    return (
        one.rows[0] < other.rows[1] and other.rows[0] < one.rows[1]
        and one.cols[0] < other.cols[1] and other.cols[0] < one.cols[1]
    )  # fmt: skip
