"""Numbers of a stage as a table: a line for each query of each head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attnviz.frames import Arrays, Values
from attnviz.spec import JOINT_STAGES, QUERY_KEY_STAGES, SpecError, View
from attnviz.tables.lines import Csv


def stage_csv(arrays: Arrays, view: View, dims: Sequence[str] = (), heads: Sequence[int] = ()) -> Csv:
    """The view's stage, ``heads`` in their order (or its head, or all), its rows and columns: every digit, under names.

    Columns: item (of a batch), head, query, token, then a key or a dimension each. Raises `SpecError` for a
    stage that is not there.
    """
    if view.stage not in arrays.stages:
        raise SpecError("stage", f"stage is {view.stage}: give one of {', '.join(arrays.stages)}")
    values = arrays.stages[view.stage]
    joint = view.stage in JOINT_STAGES
    batched = values.ndim == (3 if joint else 4)
    wanted = () if joint else tuple(heads) or (() if view.head is None else (view.head,))
    n_rows, n_cols = values.shape[-2:]
    rows, cols = (range(end)[slice(*(span or (end,)))] for span, end in ((view.rows, n_rows), (view.cols, n_cols)))
    matrices = [*_matrices(values, wanted, joint=joint, batched=batched)]
    names = arrays.tokens if view.stage in QUERY_KEY_STAGES else dims if len(dims) == n_cols else ()
    before = [*(["item"] if batched else []), *([] if joint else ["head"]), "query", "token"]

    def lines() -> Iterator[list[object]]:
        for item, head, matrix in matrices:
            for row in rows:
                place = row + len(arrays.tokens) - n_rows
                told = [*([item] if batched else []), *([] if joint else [head]), row]
                token = arrays.tokens[place] if 0 <= place < len(arrays.tokens) else ""
                yield [*told, token, *matrix[row, cols.start : cols.stop]]

    return Csv([*before, *(names[col] if names else col for col in cols)], lines(), len(matrices) * len(rows))


def _matrices(
    values: Values, wanted: tuple[int, ...], *, joint: bool, batched: bool
) -> Iterator[tuple[int, int, Values]]:
    """Each matrix of a stage, with its item and head: of the heads ``wanted``, all where there is none."""
    whole = values if batched else values[None]
    for item, of_item in enumerate(whole):
        heads = of_item[None] if joint else of_item
        for head in wanted or range(len(heads)):
            yield item, head, heads[head]
