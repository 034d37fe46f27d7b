"""One row as a table: a line for each key, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnviz.frames import RowStages, RowStory
from attnviz.spec import QUERY_KEY_STAGES
from attnviz.tables.lines import Lines


def row_table(story: RowStory, tokens: Sequence[str]) -> Lines:
    """Columns: key, token, what the mask hides, then the stages as they come; those of the state before behind them."""
    row = story.now
    before = {} if story.before is None else _stages(story.before)
    columns: dict[str, Sequence[Any] | npt.NDArray[Any]] = {
        "key": np.arange(len(row.hidden)), "token": tuple(tokens), "hidden": row.hidden, **_stages(row),
    }  # fmt: skip
    return Lines(columns | {f"before_{name}": values for name, values in before.items()})


def _stages(row: RowStages) -> dict[str, npt.NDArray[Any]]:
    return {name: values for name, values in row.stages.items() if name in QUERY_KEY_STAGES}
