"""Given weights as the engine would send them: outline, frames, exact numbers. NumPy only; no engine, no torch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from attnviz import colour
from attnviz.frames import (
    CellClass,
    Counts,
    DeviceInfo,
    Finished,
    Frame,
    Message,
    Outline,
    Probe,
    ProbeAnswer,
    RowAnswer,
    RowQuestion,
    RowStory,
    Scale,
    StageShape,
    Values,
    level_for,
    shown_class,
)
from attnviz.given.arrays import Given
from attnviz.pixels import Classes, Span, aligned, binned, pooled_furthest
from attnviz.session import Picture
from attnviz.spec import (
    MAX_DRAWN,
    WEIGHT_STAGES,
    AnyShape,
    AttentionSpec,
    Causal,
    Drawn,
    RandomQK,
    Request,
    View,
    Viewport,
    make_spec,
)

_ORDINARY: Final = int(CellClass.ORDINARY)
_GENERATION: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """What is known of one head's whole map: its finite range, its counts, and its rows' sums where it has them."""

    low: float
    high: float
    counts: Counts
    row_sums: npt.NDArray[np.float64] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Pooled:
    rows: Span
    cols: Span
    level: int
    values: Values
    classes: Classes
    whole: _Whole


class GivenEngine:
    """Serves given weights where the engine serves computed ones. One thread at a time.

    A request's spec is a `stand_in`: its seed is the layer. ``heads`` are those that are shown, () all.
    """

    budget_bytes: int | None = None

    def __init__(self, given: Given, heads: tuple[int, ...] = ()) -> None:
        self._given = given
        self._heads = heads or tuple(range(len(given.layers[0])))
        self._wholes: dict[tuple[int, int], _Whole] = {}
        self._stages: dict[int, str] = {}
        self._layer = 0

    # ---------------------------------------------------------------------------------------------- for one picture

    def stage(self, layer: int) -> str:
        """What the layer's numbers can only be: weights or scores."""
        if layer not in self._stages:
            self._stages[layer] = "scores" if self._given.are_scores(layer) else "weights"
        return self._stages[layer]

    def outline(self, layer: int, generation: int = _GENERATION) -> Outline:
        """What the layer's picture is about."""
        given, stage = self._given, self.stage(layer)
        (n_queries, n_keys), heads = given.shape, len(given.layers[layer])
        shape = _mask_shape(given)
        peeks = shape is not None and stage == "weights" and any(
            self._whole(layer, head).counts.future for head in self._heads
        )  # fmt: skip
        return Outline(
            generation, stage, given.tokens, n_queries, n_keys, (), "",
            (StageShape(stage, (heads, n_queries, n_keys)),), (), tuple(f"head:{head}" for head in self._heads),
            peeks, not peeks, "cpu", mask_shape=shape or Causal(), query_names=given.query_names,
        )  # fmt: skip

    def picture(self, layer: int, view: View, viewport: Viewport) -> Picture:
        """The whole picture of one layer at so many pixels a head."""
        messages = self._messages(layer, view, viewport, _GENERATION)
        frames = {message.panel: message for message in messages if isinstance(message, Frame)}
        done = Finished(_GENERATION, 0.0, 0, 0)
        view = msgspec.structs.replace(view, stage=self.stage(layer))
        outline = self.outline(layer)
        return Picture(stand_in(self._given, layer), view, _GENERATION, outline, MappingProxyType(frames), done)

    # ------------------------------------------------------------------------------------------------ for the worker

    def devices(self) -> tuple[DeviceInfo, ...]:
        return ()

    def stream(self, request: Request, cancelled: Callable[[], bool]) -> Generator[Message | None, None, None]:
        """The outline, a frame a head, and the end; None now and then, so that it can be cancelled."""
        self._layer = request.spec.seed
        yield self.outline(self._layer, request.generation)
        for message in self._messages(self._layer, request.view, request.viewport, request.generation):
            if cancelled():
                return
            yield message
        yield Finished(request.generation, 0.0, 0, 0)

    def probe(self, probe: Probe) -> Iterator[ProbeAnswer | RowAnswer]:
        """The cell's number in each head, or a head's whole row and then that."""
        given, layer = self._given, self._layer
        if probe.whole_row:
            values, classes = self._row(layer, probe.head, probe.row)
            yield RowAnswer(probe.generation, probe.row, probe.head, values, classes)
        cells = []
        for head in range(len(given.layers[layer])):
            values, classes = self._row(layer, head, probe.row)
            cells.append((float(values[probe.col]), CellClass(int(classes[probe.col]))))
        yield ProbeAnswer(probe.generation, probe.row, probe.col, *(tuple(part) for part in zip(*cells, strict=True)))

    def row_story(self, _question: RowQuestion) -> RowStory | None:
        return None

    def close(self) -> None:
        self._wholes.clear()

    # ------------------------------------------------------------------------------------------------------- numbers

    def _messages(self, layer: int, view: View, viewport: Viewport, generation: int) -> Iterator[Frame | None]:
        """A frame a head, all on one scale, once every head has been read."""
        pooled: dict[int, _Pooled] = {}
        for head in self._wanted(viewport):
            pooled[head] = self._pooled(layer, head, viewport)
            yield None
        scale = self._scale(layer, view)
        for head, pixels in pooled.items():
            rgb = colour.paint_values(pixels.values, pixels.classes, scale, view.colours)
            sums, (first, end) = pixels.whole.row_sums, pixels.rows
            arrays: list[npt.NDArray[Any]] = [pixels.values, pixels.classes, rgb]
            for array in arrays:
                array.flags.writeable = False
            yield Frame(
                generation, f"head:{head}", self.stage(layer), head, pixels.rows, pixels.cols, pixels.level,
                pixels.values, pixels.classes, rgb, scale, pixels.whole.counts,
                None if sums is None else sums[first:end],
            )  # fmt: skip

    def _wanted(self, viewport: Viewport) -> tuple[int, ...]:
        first = tuple(head for head in viewport.heads or () if head in self._heads)
        return (*first, *(head for head in self._heads if head not in first))

    def _scale(self, layer: int, view: View) -> Scale:
        """One scale for all heads shown: weights' own, or symmetric about 0 for scores."""
        wholes = [self._whole(layer, head) for head in self._heads]
        low = min((whole.low for whole in wholes if whole.low == whole.low), default=0.0)
        high = max((whole.high for whole in wholes if whole.high == whole.high), default=0.0)
        if self.stage(layer) in WEIGHT_STAGES:
            return colour.choose_scale("weights", view.norm, self._given.shape[1], low, high)
        bound = max(abs(low), abs(high)) or 1.0
        return Scale(-bound, bound, diverging=True)

    def _classed(self, layer: int, head: int, rows: Span | None = None) -> tuple[Values, Classes]:
        """Numbers and classes of ``rows`` of a head."""
        rows = rows or (0, self._given.shape[0])
        return self._classes_of(layer, self._given.cells(layer, head, rows), rows)

    def _classes_of(self, layer: int, cells: Values, rows: Span) -> tuple[Values, Classes]:
        classes = np.full(cells.shape, _ORDINARY, np.uint8)
        weights, visible = self.stage(layer) == "weights", self._given.visible
        nothing = cells == 0 if weights else np.isneginf(cells)
        if weights:
            classes[nothing] = int(CellClass.ZERO)
        if visible is not None:
            classes[nothing & ~visible[rows[0] : rows[1]]] = int(CellClass.MASKED)
        nan = np.isnan(cells)
        if nan.any():
            classes[nan] = int(CellClass.NAN)
        return cells, classes

    def _row(self, layer: int, head: int, row: int) -> tuple[Values, Classes]:
        values, classes = self._classed(layer, head, (row, row + 1))
        return values[0], shown_class(classes[0])

    def _whole(self, layer: int, head: int) -> _Whole:
        if (layer, head) not in self._wholes:
            self._wholes[layer, head] = self._measured(layer, *self._classed(layer, head))
        return self._wholes[layer, head]

    def _measured(self, layer: int, cells: Values, classes: Classes) -> _Whole:
        weights = self.stage(layer) == "weights"
        sums = cells.sum(1, dtype=np.float64) if weights else None
        low, high = float(cells.min()), float(cells.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            finite = cells[(classes == _ORDINARY) & np.isfinite(cells)]
            low, high = (float(finite.min()), float(finite.max())) if finite.size else (float("nan"), float("nan"))
        tally = np.bincount(classes.ravel(), minlength=int(CellClass.MASKED) + 1)
        future = 0
        if self._given.visible is not None and weights:
            future = int(np.count_nonzero((classes == _ORDINARY) & ~self._given.visible))
        counts = Counts(
            cells=cells.size, masked=int(tally[CellClass.MASKED]), zero=int(tally[CellClass.ZERO]),
            nan=int(tally[CellClass.NAN]), future=future,
        )  # fmt: skip
        if sums is not None:
            sums.flags.writeable = False
        return _Whole(low, high, counts, sums)

    def _pooled(self, layer: int, head: int, viewport: Viewport) -> _Pooled:
        n_queries, n_keys = self._given.shape
        rows, cols = viewport.rows or (0, n_queries), viewport.cols or (0, n_keys)
        height, width = viewport.pixels
        level = max(level_for(rows[1] - rows[0], height), level_for(cols[1] - cols[0], width))
        rows, cols = aligned(rows, n_queries, level), aligned(cols, n_keys, level)
        if (layer, head) in self._wholes:
            cells, classes = self._classed(layer, head, rows)
            whole = self._wholes[layer, head]
        else:
            cells, classes = self._classed(layer, head)
            whole = self._wholes[layer, head] = self._measured(layer, cells, classes)
            cells, classes = cells[slice(*rows)], classes[slice(*rows)]
        cells, classes = cells[:, slice(*cols)], classes[:, slice(*cols)]
        if level == 1:
            return _Pooled(rows, cols, level, np.ascontiguousarray(cells), np.ascontiguousarray(classes), whole)
        if self.stage(layer) in WEIGHT_STAGES:
            values, kinds = binned(cells, level, np.maximum), binned(classes, level, np.bitwise_or)  # NaN wins
        else:
            values, kinds = pooled_furthest(cells, classes, level)
        return _Pooled(rows, cols, level, np.ascontiguousarray(values), np.ascontiguousarray(kinds), whole)


def stand_in(given: Given, layer: int) -> AttentionSpec:
    """A spec that stands where the program wants one, as large as the weights; nothing computes it.

    Its seed is the layer, so that two layers are two specs.
    """
    heads = len(given.layers[layer])
    return make_spec(
        RandomQK(length=max(given.shape)), num_heads=heads, d_out=heads, mask="none", training=False, seed=layer
    )  # fmt: skip


def _mask_shape(given: Given) -> AnyShape | None:
    """The mask as what frames its visible cells in red; None where nobody gave one, or it is too large to be drawn."""
    if given.causal:
        return Causal()
    visible = given.visible
    if visible is None or max(visible.shape) > MAX_DRAWN:
        return None
    edges = np.diff(np.pad(visible.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    return Drawn(
        runs=tuple((int(row), int(first), int(end) - 1) for (row, first), (_, end) in zip(starts, ends, strict=True))
    )
