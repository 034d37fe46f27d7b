"""Frames of a map in tiles for one request: what is asked for, and then the whole map behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from attnviz.attention.pooling import Region
from attnviz.attention.remarks import rounding_remarks
from attnviz.attention.tiles import Cancelled
from attnviz.engine.crew import Crew, one_torch_thread
from attnviz.engine.framing import Framer
from attnviz.engine.tiling import Advance, Tiling
from attnviz.frames import Frame, Message, Progress, level_for
from attnviz.spec import AttentionSpec, Request, Viewport

WHOLE_MAP_PIXELS: Final = 512
"""A whole map is computed at least this finely, so that a larger panel or a first zoom finds more than it shows."""


class LongPicture:
    """The frames of one request. ``tiling`` belongs to nobody: other pictures compute it too, by turns.

    At each yield another may have its turn; what this one shows is held until its last frame has been taken. Thread:
    the engine's.
    """

    def __init__(self, request: Request, framer: Framer, tiling: Tiling, crew: Crew, n_keys: int) -> None:
        self._request, self._framer, self._tiling, self._crew = request, framer, tiling, crew
        self._order = heads_in_order(request.spec, request.viewport)
        self._region = framer.region(tiling.shape)
        """The cells that are shown, at the screen's level."""
        self._coarsest = _whole_map_level(tiling.shape, 1 << 30)
        whole = msgspec.structs.replace(request.viewport, rows=None, cols=None)
        self._behind = Framer(request.view, whole, request.generation, n_keys=n_keys, n_future=0)
        coarse = self._behind.region(tiling.shape)
        self._overview = replace(coarse, level=max(coarse.level, self._coarsest))
        """The whole map as it is shown behind a window."""

    @property
    def is_window(self) -> bool:
        """Whether a part of the map is asked for."""
        return not self._region.covers(self._tiling.shape)

    def frames(self, cancelled: Cancelled, *, unfinished: bool) -> Iterator[Message | None]:
        """What is asked for, up to the exact picture; without ``unfinished`` that alone. Ends early if cancelled."""
        region, tiling, framer = self._region, self._tiling, self._framer
        finer = region
        if not self.is_window:
            finer = replace(region, level=_whole_map_level(tiling.shape, region.level))
        sent: set[int] = set()
        preview = 0
        with tiling.held(finer):
            if unfinished and self.is_window:
                yield from self._known_overview()
            for advance in self._advances(finer, self._order, cancelled, unfinished=unfinished):
                if advance is None:
                    yield None
                    continue
                for head in advance.heads:
                    yield from self._frame(head, finer, region, framer)
                    sent.add(head)
                if advance.preview != preview:
                    preview = advance.preview
                    yield from framer.recoloured()
                generation = self._request.generation
                yield Progress(generation, advance.done, advance.total, advance.preview, advance.previews)
                if cancelled():
                    return
            for head in self._order:
                if head not in sent:
                    yield from self._frame(head, finer, region, framer)
            yield from framer.recoloured()

    def remarks(self) -> tuple[str, ...]:
        """What is to be said of the numbers that were computed."""
        spec = self._request.spec
        if spec.mask != "three-step" or self._request.view.stage not in ("weights", "dropped_weights"):
            return ()
        sums = [one.row_sums() for one in self._tiling.heads]
        return rounding_remarks(spec, [found for found in sums if found is not None])

    def rest_of_map(self, cancelled: Cancelled) -> Iterator[Message | None]:
        """Go on with the whole map behind a window that stands, so that zooming out finds it."""
        tiling, order = self._tiling, self._order
        rows, cols = tiling.shape
        region = Region((0, rows), (0, cols), self._coarsest)
        standing = {head: tiling.standing(head, self._coarsest) for head in order}
        missing = [head for head in order if standing[head] is None]
        with tiling.held(self._region):  # the whole map of many heads may be more than is kept
            for advance in self._advances(region, missing, cancelled) if missing else ():
                if cancelled():
                    return
                if advance is None or not advance.total:
                    yield None
                    continue
                if missing[0] in advance.heads:  # the overview that a small map shows
                    yield from self._frame(missing[0], region, self._overview, self._behind)
                yield Progress(self._request.generation, advance.done, advance.total, background=True)
            for head in order:
                yield from self._frame(head, standing[head] or region, self._overview, self._behind)
            yield from self._behind.recoloured()
            for head in order:
                yield from self._frame(head, self._region, self._region, self._framer)
            yield from self._framer.recoloured()

    def _known_overview(self) -> Iterator[Frame]:
        """The whole map of each head of which every tile stands, for what a window does not cover."""
        for head in self._order:
            known = self._tiling.standing(head, self._coarsest)
            if known is not None:
                yield from self._frame(head, known, self._overview, self._behind)
        yield from self._behind.recoloured()

    def _advances(
        self, region: Region, order: list[int], cancelled: Cancelled, *, unfinished: bool = True
    ) -> Iterator[Advance | None]:
        """`Tiling.compute` by the crew."""
        with one_torch_thread():
            yield from self._tiling.compute(region, order, self._crew, cancelled, unfinished=unfinished)

    def _frame(self, head: int, computed: Region, region: Region, framer: Framer) -> Iterator[Frame]:
        """A head's frame of ``region`` from the tiles of ``computed``: the same cells, as fine or finer."""
        view, tiling = self._request.view, self._tiling
        factor = view.norm if view.norm in ("uniform", "per-row") else "plain"
        shown = replace(computed, level=region.level) if computed.level != region.level else computed
        pooled = tiling.picture(head, computed, shown, view.pooling, factor)
        if pooled is None:
            return
        if view.pooling == "max" or shown.level == 1:  # the range is the whole map's, as far as it is known
            low, high = tiling.extent(head, factor)
            pooled = replace(pooled, low=float(np.fmin(pooled.low, low)), high=float(np.fmax(pooled.high, high)))
        yield from framer.frames(f"head:{head}", head, pooled)


def heads_in_order(spec: AttentionSpec, viewport: Viewport) -> list[int]:
    """All heads, those that the screen wants first; it may still show more of them than the spec has."""
    wanted = [head for head in viewport.heads or () if head < spec.num_heads]
    return wanted + [head for head in range(spec.num_heads) if head not in wanted]


def _whole_map_level(shape: tuple[int, int], level: int) -> int:
    """The level at which a whole map is computed where ``level`` is shown."""
    return min(level, level_for(max(shape), WHOLE_MAP_PIXELS))
