"""Thumbnails of a long map's stages: one head's, from rows that lie evenly, its keys pooled as far apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnviz.attention.pooling import Panel
from attnviz.engine.crew import one_torch_thread
from attnviz.engine.dense import Dense
from attnviz.engine.memory import names_by_rows
from attnviz.engine.opened import Opened
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, stages_of

_BLOCK_CELLS: Final = 1 << 18
"""Cells of the rows that are computed at a time: some milliseconds, after which others have their turn."""
_MOST_CELLS: Final = 1 << 23
"""Cells of all rows that are computed."""
_MOST_DIMS: Final = 16
"""Dimensions of a vector that are shown: tokens are many more, so that their vectors stand upright."""


def long_thumbnails(dense: Dense, spec: AttentionSpec, head: int, opened: Opened, side: int) -> Iterator[Panel | None]:
    """A panel of each stage that rows alone can give, named ``thumbnail:STAGE``; None between two blocks of rows.

    At most ``side`` rows and as many bins of keys, of the map's own proportions: a query × key bin holds the largest
    cell of one row and ``step`` keys, and rows end where bins do, so that a triangle is one. Of other stages the same
    rows are taken, and some of the dimensions. What torch's generator draws whole is left out, and what follows it.
    """
    n_queries, n_keys = opened.inputs.n_queries, len(opened.inputs.tokens)
    step = -(-n_keys // max(8, min(side, _MOST_CELLS // n_keys)))
    rows = range((step - 1 - (n_keys - n_queries)) % step, n_queries, step) or range(n_queries - 1, n_queries)
    names = names_by_rows(spec)
    parts: dict[str, list[Panel]] = {name: [] for name in names}
    block = max(1, _BLOCK_CELLS // n_keys)
    for first in range(0, len(rows), block):
        some = rows[first : first + block]
        some = range(some.start, min(some.stop, n_queries), step)  # a slice's stop may lie past the last query
        with one_torch_thread():
            result = dense.head(spec, head, set(names), opened, rows=some)
            for name in names:
                if name in ("keys", "values") and first:
                    continue  # of which a block of rows gives all
                parts[name].append(_thinned(dense.panel_of(spec, name, head, result), name, step))
        yield None
    for name in stages_of(spec):
        if name == "inputs":
            cells = dense.joint_stage(spec, name, opened, lambda: False)
            if cells is not None:
                yield Panel(f"thumbnail:{name}", None, _some_dims(cells[step - 1 :: step]))
        elif name in parts:
            yield _joined(f"thumbnail:{name}", head, parts[name])


def _thinned(panel: Panel, name: str, step: int) -> Panel:
    if name in QUERY_KEY_STAGES:
        return _pooled(panel, step)
    if name in ("keys", "values"):
        panel.cells = panel.cells[step - 1 :: step]
    panel.cells = _some_dims(panel.cells)
    panel.dropped = None if panel.dropped is None else _some_dims(panel.dropped)
    return panel


def _some_dims(plane: Tensor) -> Tensor:
    """Up to `_MOST_DIMS` columns of a plane (rows, D), evenly."""
    return plane[:, :: -(-plane.shape[1] // _MOST_DIMS)]


def _pooled(panel: Panel, step: int) -> Panel:
    """The panel with bins of ``step`` keys in place of keys: the largest cell that is neither masked nor dropped.

    A bin is masked where all of its cells are, dropped where none is left; there it holds what was computed.
    """
    rows, n_keys = panel.cells.shape

    def grouped(plane: Tensor, value: float) -> Tensor:
        return pad(plane, (0, -n_keys % step), value=value).view(rows, -1, step)

    cells = grouped(panel.cells, float("-inf")).amax(2)
    planes = [plane for plane in (panel.masked, panel.dropped) if plane is not None]
    masked = dropped = None
    if planes:
        hidden = planes[0] | planes[-1]
        left = ~grouped(hidden, value=True).all(2)
        cells = torch.where(left, grouped(panel.cells.masked_fill(hidden, float("-inf")), float("-inf")).amax(2), cells)
        masked = None if panel.masked is None else grouped(panel.masked, value=True).all(2)
        if panel.dropped is not None:
            dropped = ~left if masked is None else ~(left | masked)
    padded = -(-panel.padded[0] // step), -(-panel.padded[1] // step)
    return Panel(panel.name, panel.head, cells, masked, dropped, panel.row_sums, padded, panel.visible)


def _joined(name: str, head: int, parts: list[Panel]) -> Panel:
    """Blocks of rows as one panel."""
    planes = ([getattr(part, plane) for part in parts] for plane in ("cells", "masked", "dropped", "visible"))
    cells, masked, dropped, visible = (None if found[0] is None else torch.cat(found) for found in planes)
    assert cells is not None  # noqa: S101 (every panel has them)
    return Panel(name, head, cells, masked, dropped, None, parts[0].padded, visible)
