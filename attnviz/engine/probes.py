"""Exact numbers: one cell in every head, a row of the shown stage, or every stage of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz.attention.longmaps import HeadMap
from attnviz.attention.pooling import Panel
from attnviz.engine.dense import Dense
from attnviz.engine.long import LongMaps
from attnviz.engine.memory import names_by_rows
from attnviz.engine.opened import Opener
from attnviz.frames import CellClass, Probe, ProbeAnswer, RowAnswer, RowStages, Values
from attnviz.spec import (
    JOINT_STAGES,
    MAX_DRAWN,
    QUERY_KEY_STAGES,
    WEIGHT_STAGES,
    AttentionSpec,
    Drawn,
    edited,
    padded_keys,
    stages_of,
)

_READABLE: Final = 1 << 16
"""Values of so many numbers are told with a row's story."""

T = TypeVar("T", bound=np.generic)


def dense_answers(
    spec: AttentionSpec, stage: str, held: Mapping[str, Panel], probe: Probe
) -> Iterator[ProbeAnswer | RowAnswer]:
    """Answers to ``probe`` from panels that stand whole."""
    names = ["all"] if stage in JOINT_STAGES else [f"head:{head}" for head in range(spec.num_heads)]
    panels = [held.get(name) for name in names]
    some = next((panel for panel in panels if panel is not None), None)
    if some is None or not (0 <= probe.row < some.cells.shape[0] and 0 <= probe.col < some.cells.shape[1]):
        return
    weights = stage in WEIGHT_STAGES
    sums = None
    if weights and all(panel is not None for panel in panels):
        sums = tuple(float(panel.cells[probe.row].double().sum()) for panel in panels if panel is not None)
    values = tuple(None if p is None else float(p.cells[probe.row, probe.col]) for p in panels)
    classes = tuple(None if p is None else cell_class(p, probe.row, probe.col, weights) for p in panels)
    yield ProbeAnswer(probe.generation, probe.row, probe.col, values, classes, sums)
    panel = panels[min(probe.head, len(panels) - 1)]
    if probe.whole_row and panel is not None and stage in QUERY_KEY_STAGES:
        row = slice(probe.row, probe.row + 1)
        masked, dropped = (None if plane is None else plane[row] for plane in (panel.masked, panel.dropped))
        one = Panel(panel.name, panel.head, panel.cells[row], masked, dropped, padded=panel.padded)
        yield RowAnswer(probe.generation, probe.row, probe.head, *row_of(one, weights))


def long_answers(long: LongMaps, heads: Sequence[HeadMap], probe: Probe) -> Iterator[ProbeAnswer | RowAnswer]:
    """Answers to ``probe`` from maps in tiles; a row that no pass has reached is computed for it."""
    rows, cols = heads[0].shape
    if not (0 <= probe.row < rows and 0 <= probe.col < cols):
        return
    values: list[float | None] = [None] * len(heads)
    classes: list[CellClass | None] = [None] * len(heads)
    first = min(probe.head, len(heads) - 1)
    row = range(probe.row, probe.row + 1)
    for head in (first, *(head for head in range(len(heads)) if head != first)):
        one = heads[head]
        slow = one.route == "rows" or not one.known.has(row)
        values[head], classes[head] = long.cell(one, probe.row, probe.col)
        if slow or head == first:
            yield ProbeAnswer(probe.generation, probe.row, probe.col, tuple(values), tuple(classes))
        if head == first and probe.whole_row:
            cells, kinds = long.row(one, probe.row)
            yield RowAnswer(probe.generation, probe.row, head, frozen(file_array(cells)), frozen(kinds.numpy()))
    yield ProbeAnswer(probe.generation, probe.row, probe.col, tuple(values), tuple(classes))


def row_stages(
    dense: Dense, opener: Opener, spec: AttentionSpec, row: int, head: int, *, fits: bool
) -> RowStages | None:
    """Every stage of one row of ``head``, by the dense pass's own arithmetic; None where ``spec`` has no such row.

    Memory: some rows of keys, whatever the length. Only where the whole map ``fits`` are there stages after a drop-out
    that torch's generator draws.
    """
    opened = opener.open(spec)
    n_queries, n_keys = opened.inputs.n_queries, len(opened.inputs.tokens)
    if not (0 <= row < n_queries and 0 <= head < spec.num_heads):
        return None
    names = {name for name in (stages_of(spec) if fits else names_by_rows(spec)) if name not in JOINT_STAGES}
    names -= {"keys", "values"}
    only = range(row, row + 1)
    result = dense.head(spec, head, names, opened, rows=only)
    stages = {name: frozen(file_array(stage[0, 0])) for name, stage in result.stages.items()}
    weights = torch.from_numpy(np.array(stages["weights"]))
    hidden = torch.zeros(n_keys, dtype=torch.bool)
    drawn_elsewhere = spec.mask == "none" and isinstance(spec.mask_shape, Drawn) and n_keys > MAX_DRAWN
    if "scaled_scores" in names and not drawn_elsewhere:  # typed weights have no mask
        shaped = opener.mask(spec if spec.mask != "none" else edited(spec, mask="neg-inf"), opened)
        hidden = hidden if shaped is None else shaped.hidden(only)[0].cpu()
    masked = torch.zeros_like(hidden) if result.masked is None else result.masked[0].cpu() & (weights == 0)
    dropped = None
    if result.kept is not None and "dropped_weights" in stages:
        dropped = frozen((~result.kept[0, 0]).cpu().numpy())
    values = opener.head_inputs(spec, head, opened).get("v") if "context" in names else None
    if values is not None and values[0].numel() > _READABLE:
        values = None
    padded = (0, 0) if spec.mask == "none" else padded_keys(spec.mask_shape, n_keys)
    return RowStages(
        spec, row, head, stages, frozen(hidden.numpy()), frozen(masked.numpy()), padded, dropped,
        None if values is None else frozen(file_array(values[0])),
    )  # fmt: skip


def row_of(one: Panel, weights: bool) -> tuple[Values, npt.NDArray[np.uint8]]:
    """Values and classes uint8 (n_keys,) of a panel of one row, as `cell_class` gives them cell by cell."""
    values = file_array(one.cells[0])
    kinds = np.full(values.shape, int(CellClass.ORDINARY), np.uint8)
    if weights:
        kinds[values == 0] = int(CellClass.ZERO)
    if one.dropped is not None:
        kinds[one.dropped[0].cpu().numpy()] = int(CellClass.DROPPED)
    if one.masked is not None:
        masked = one.masked[0].cpu().numpy()
        kinds[masked] = int(CellClass.MASKED)
        stuffed = slice(*one.padded)
        kinds[stuffed][masked[stuffed]] = int(CellClass.PADDED)
    kinds[np.isnan(values)] = int(CellClass.NAN)
    return frozen(values), frozen(kinds)


def cell_class(panel: Panel, row: int, col: int, weights: bool) -> CellClass:
    """What kind of cell stands there; ``weights`` says that 0 is a kind of its own."""
    value = panel.cells[row, col]
    if torch.isnan(value):
        return CellClass.NAN
    if panel.masked is not None and panel.masked[row, col]:
        return CellClass.PADDED if panel.padded[0] <= col < panel.padded[1] else CellClass.MASKED
    if panel.dropped is not None and panel.dropped[row, col]:
        return CellClass.DROPPED
    return CellClass.ZERO if weights and value == 0 else CellClass.ORDINARY


def file_array(stage: Tensor) -> Values:
    """As NumPy for a file: bfloat16, which NumPy lacks, as float32."""
    wide = stage.float() if stage.dtype == torch.bfloat16 else stage
    array: Values = wide.detach().cpu().numpy()
    return array


def frozen(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """A read-only copy."""
    array = np.array(array)
    array.flags.writeable = False
    return array
