"""Maps of any size in tiles of pixels: what must be computed for a window, in which order, and what is kept.

A picture begins with previews: one row of every row of pixels, over *all* columns, so that an attention sink shows in
the first of them. Blocks of whole rows then replace them until the picture is exact. Tiles are kept; those least
recently looked at go first.

Several streams may compute one `Tiling` by turns on one thread: a window's, what goes on behind it, an export's. None
of them owns it. Each holds the region that it computes, from before its first step until it has taken its last picture
(`Tiling.held`); no other's end throws those tiles out.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import torch

from attnviz.attention.bins import Bins
from attnviz.attention.devices import Backend, TorchBackend
from attnviz.attention.longmaps import HeadMap
from attnviz.attention.pixel_rows import FACTORS, PixelRows
from attnviz.attention.planes import Place, Planes, assemble, side_of
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
    """Cells of a head's whole map counted so far at one level. They stay counted when their tiles are forgotten.

    ``blocks`` are the first rows of the blocks that are in it: each counts once, however often it is computed.
    """

    blocks: set[int] = field(default_factory=set)
    rows: int = 0
    zeros: int = 0
    dropped: int = 0
    nan: int = 0
    masked: int = 0
    padded: int = 0


class Tiling:
    """The heads' maps of one stage.

    ``per_row`` says that each row's largest weight must be known, ``means`` that means after a row's factor are wanted.
    ``budget_bytes`` bounds the tiles that nobody holds, ``backend`` runs the jobs. Thread: one drives it, for as many
    streams as take turns there; a crew computes.
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
        self._held: list[Region] = []
        self._lock = threading.Lock()

    @property
    def heads(self) -> tuple[HeadMap, ...]:
        """The maps that are computed, and with them what is known of their rows."""
        return self._heads

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and keys."""
        return self._heads[0].shape

    @property
    def nbytes(self) -> int:
        """Bytes of the tiles that are kept."""
        return sum(tile.nbytes for tile in self._tiles.values())

    # ----------------------------------------------------------------------------------------------------- computing

    @contextmanager
    def held(self, *regions: Region) -> Iterator[None]:
        """Keep the tiles of ``regions``, those to come too, until the block is left, whoever makes room meanwhile."""
        self._held.extend(regions)
        try:
            yield
        finally:
            for region in regions:
                self._held.remove(region)

    def compute(
        self, region: Region, order: Sequence[int], crew: Crew, cancelled: Cancelled, *, unfinished: bool = True
    ) -> Iterator[Advance | None]:
        """Compute ``region`` of the heads in ``order``; None between two advances. Ends early once ``cancelled``.

        Without ``unfinished`` there are no previews, and a head is told of once it is exact. The region is held while
        it is computed; who takes pictures of it afterwards, holds it until then.
        """
        with self.held(region):
            yield from self._advances(region, order, crew, cancelled, unfinished=unfinished)
        self._evict()

    def _advances(
        self, region: Region, order: Sequence[int], crew: Crew, cancelled: Cancelled, *, unfinished: bool
    ) -> Iterator[Advance | None]:
        steps = self._steps(region, order, previewed=unfinished)
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
            if ended or (not step.preview and time.perf_counter() - last > _EVERY):
                heads = (step.head,) if ended else tuple(sorted(changed)) if unfinished else ()
                yield Advance(heads, done, len(steps), shown, previews)
                changed = changed - {step.head} if ended else set()
                last = time.perf_counter()  # painting and sending the picture take no time from the next one
            else:
                yield None
        if not steps:
            yield Advance(tuple(order), 0, 0, 0, 0)

    def _steps(self, region: Region, order: Sequence[int], *, previewed: bool = True) -> list[_Step]:
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
        for number, offset in enumerate(_preview_offsets(level) if previewed and cells > _PREVIEW_FROM else (), 1):
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
        tiles = [self._tile(step.head, Place(step.level, step.band, column)) for column in step.columns]
        if step.level == 1:
            for tile in tiles:
                self._extend(step.head, bins.low, tile.put(bins, factors, one.outside(tile.region)))
        else:
            pixels = PixelRows.of(bins, factors, means=self._means)
            self._extend(step.head, bins.low, pixels.highs)
            for tile in tiles:
                tile.fold(pixels, one.outside(tile.region), preview=bool(step.preview))
        if not step.preview and step.columns == range(-(-self.shape[1] // side)):
            self._count(step, bins)
        return step

    def _extend(self, head: int, low: float, highs: list[float]) -> None:
        with self._lock:
            for factor, high in zip(FACTORS, highs, strict=False):
                known = self._extents.get((head, factor), (math.inf, -math.inf))
                self._extents[head, factor] = (known[0] if math.isnan(low) else min(known[0], low)), max(known[1], high)

    def extent(self, head: int, factor: str) -> tuple[float, float]:
        """Lowest and highest finite ordinary cell met so far, after the row factor; NaN where none was.

        The lowest is that of scores; of weights nobody asks, and it is 0.
        """
        weights = self._heads[head].holds_weights
        with self._lock:
            known = factor if weights else "plain"  # scores have no rows' factors
            low, high = self._extents.get((head, known), (math.inf, -math.inf))
        if not math.isfinite(high):
            return math.nan, math.nan
        return 0.0 if weights else low, high

    def _count(self, step: _Step, bins: Bins) -> None:
        one = self._heads[step.head]
        hidden = torch.zeros(len(step.rows), dtype=torch.int64)
        stuffed = 0
        if one.acting_mask is not None:
            hidden = self.shape[1] - one.acting_mask.n_visible(step.rows)
            stuffed = one.acting_mask.padded[1] - one.acting_mask.padded[0]
        good = torch.ones(len(step.rows), dtype=torch.bool)
        if bins.sound is not None and one.holds_weights:  # of scores it is told cell by cell
            good = bins.sound.cpu()
        nans, nan_masked, nan_padded = bins.nans
        with self._lock:
            tally = self._tallies.setdefault((step.head, step.level), _Tally())
            if step.rows.start in tally.blocks:  # another stream wanted it too, or its tiles were forgotten
                return
            tally.blocks.add(step.rows.start)
            tally.rows += len(step.rows)
            tally.zeros = -1 if -1 in (tally.zeros, bins.zeros) else tally.zeros + bins.zeros
            tally.dropped = -1 if -1 in (tally.dropped, bins.dropped) else tally.dropped + bins.dropped
            tally.nan += int((~good).sum()) * self.shape[1] + nans
            tally.padded += stuffed * int(good.sum()) - nan_padded
            tally.masked += int(hidden[good].sum()) - stuffed * int(good.sum()) - nan_masked

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

    def standing(self, head: int, coarsest: int) -> Region | None:
        """The whole map at the coarsest level up to ``coarsest`` at which all of its tiles are exact; None: at none."""
        (n_queries, n_keys), level = self.shape, coarsest
        while level:
            side = side_of(level) * level
            tiles = (
                self._looked_at(head, Place(level, row, column))
                for row in range(-(-n_queries // side))
                for column in range(-(-n_keys // side))
            )
            if all(tile is not None and tile.holds((0, n_queries)) for tile in tiles):
                return Region((0, n_queries), (0, n_keys), level)
            level //= 2
        return None

    def counts(self, head: int) -> Counts:
        """Cells of the whole map by kind; -1 where they are not all counted yet."""
        one, (n_queries, n_keys), mask = self._heads[head], self.shape, self._heads[head].acting_mask
        cells = n_queries * n_keys
        if one.lets_hidden_weigh:
            return Counts(cells, -1, -1, -1, -1 if one.draw() else 0, -1)
        if one.told_by_mask:
            if mask is None:
                return Counts(cells)
            seen = mask.n_visible()
            blind = int((seen == 0).sum()) if one.route == "sweep" else 0  # rows that see nothing are NaN throughout
            padded = (mask.padded[1] - mask.padded[0]) * (n_queries - blind)
            return Counts(cells, cells - int(seen.sum()) - blind * n_keys - padded, 0, blind * n_keys, 0, padded)
        with self._lock:
            whole = [t for (h, _), t in self._tallies.items() if h == head and t.rows == n_queries]
        if not whole:
            zeros, padded = -1 if one.holds_weights else 0, -1 if mask is not None and mask.padded[1] else 0
            return Counts(cells, -1, zeros, -1, -1 if one.draw() else 0, padded)
        tally = whole[0]
        return Counts(cells, tally.masked, tally.zeros, tally.nan, tally.dropped, tally.padded)

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
                dtype, weights = one.scores(None).dtype, one.holds_weights
                tile = self._tiles[key] = Planes(place, self.shape, dtype, weights=weights, means=self._means)
        return tile

    def _evict(self) -> None:
        """Forget tiles beyond the budget, those least recently looked at first; never those that are held."""
        with self._lock:
            surplus = self.nbytes - self._budget
            for key in list(self._tiles):
                if surplus <= 0:
                    return
                cells = self._tiles[key].region
                if not any(held.level == cells.level and _overlaps(cells, held) for held in self._held):
                    surplus -= self._tiles.pop(key).nbytes


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
