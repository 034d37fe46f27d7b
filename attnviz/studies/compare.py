"""A | B: the same stage of two specs, head by head, and by how much they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz import colour, inputs
from attnviz.attention.pooling import Panel, PanelPooler, Pooled, Region, pooled_furthest, pooled_max, to_numpy
from attnviz.frames import CellClass, Crop, Scale, level_for
from attnviz.questions.compare import (
    MOST_CELLS,
    MOST_TOKENS,
    CompareAnswer,
    CompareMaps,
    CompareQuestion,
    HeadDifference,
)
from attnviz.spec import UNSIGNED_STAGES, WEIGHT_STAGES, SpecError
from attnviz.studies.opened_spec import OpenedSpec
from attnviz.studies.ulps import step_at


def answers(question: CompareQuestion, cancelled: Callable[[], bool] = lambda: False) -> Iterator[CompareAnswer]:
    """An answer for each head compared, the question's own first.

    Raises `SpecError` for maps of different shapes, and for a part that lies beyond them.
    """
    crop = _checked(question)
    a = OpenedSpec(question.a)
    b = OpenedSpec(question.b)
    heads = min(question.a.num_heads, question.b.num_heads)
    left_out = max(question.a.num_heads, question.b.num_heads) - heads
    dtype = _coarser(question.a.dtype, question.b.dtype)
    found: list[HeadDifference] = []
    maps: CompareMaps | None = None
    for head in (question.head, *(head for head in range(heads) if head != question.head)):
        if cancelled():
            return
        panels = a.panel(question.stage, head), b.panel(question.stage, head)
        with torch.inference_mode():
            if maps is None:
                maps = _maps(question, head, crop, *panels)
            found.append(_difference(question.stage, head, panels, a.future(), dtype))
        yield CompareAnswer(len(found), heads, question, a.tokens, tuple(found), maps, dtype, left_out)


def _checked(question: CompareQuestion) -> Crop:
    """What the maps show."""
    inputs.check_same_length(question.a.source, question.b.source)
    shape = n_queries, n_keys = inputs.count_tokens(question.a.source)
    cells = n_queries * n_keys * min(question.a.num_heads, question.b.num_heads)
    if n_keys > MOST_TOKENS or cells > MOST_CELLS:
        raise SpecError(
            "source", f"A and B are compared cell by cell up to 25 heads of {MOST_TOKENS:,} tokens; here are "
                      f"{n_keys:,} tokens and {cells:,} cells: take fewer tokens or heads"
        )  # fmt: skip
    return Crop.of(question.rows, question.cols, shape)


def _coarser(one: str, other: str) -> str:
    """Of two dtypes the one with the longer step at 1."""
    return max(one, other, key=lambda dtype: torch.finfo(getattr(torch, dtype)).eps)


def _difference(
    stage: str, head: int, panels: tuple[Panel, Panel], future: Tensor, dtype: str
) -> HeadDifference:  # fmt: skip
    a, b = (panel.cells.to("cpu", torch.float64) for panel in panels)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    gap = torch.where(same & ~torch.isnan(a), 0.0, (b - a).abs())  # −∞ beside −∞ is no difference
    compared = ~torch.isnan(gap)
    place = int(torch.where(compared, gap, -1.0).argmax())
    some = bool(compared.any())
    finite = compared & torch.isfinite(gap)
    steps = torch.where(finite, gap / step_at(torch.maximum(a.abs(), b.abs()), dtype), 0.0)
    weights = stage in WEIGHT_STAGES
    errors, ahead = ([_error(weights, cells, future, which) for cells in (a, b)] for which in ("sums", "future"))
    return HeadDifference(
        head,
        float(gap.flatten()[place]) if some else math.nan,
        divmod(place, a.shape[1]),
        math.inf if some and math.isinf(float(gap.flatten()[place])) else float(steps.max()),
        float(gap[compared].mean()) if some else math.nan,
        (errors[0], errors[1]),
        (ahead[0], ahead[1]),
        (int(torch.isnan(a).any(1).sum()), int(torch.isnan(b).any(1).sum())),
        bool(same.all()),
    )


def _error(weights: bool, cells: Tensor, future: Tensor, which: str) -> float:
    """The largest |Σ − 1| of a row, or the most a row gives to the future; NaN for scores, and for NaN alone."""
    if not weights:
        return math.nan
    sums = (cells.sum(1) - 1).abs() if which == "sums" else torch.where(future, cells, 0.0).sum(1)
    sums = sums[~torch.isnan(sums)]
    return float(sums.max()) if sums.numel() else math.nan


# ------------------------------------------------------------------------------------------------------------- the maps


def _maps(question: CompareQuestion, head: int, crop: Crop, a: Panel, b: Panel) -> CompareMaps:
    region = Region(crop.rows, crop.cols, level_for(max(crop.size), question.pixels))
    weights = question.stage in WEIGHT_STAGES
    pooled = [
        PanelPooler(region, nonnegative=weights, signed=question.stage not in UNSIGNED_STAGES).pool(panel)
        for panel in (a, b)
    ]
    scale = colour.choose_scale(question.stage, "auto", crop.shape[1], *_range(pooled))
    difference, classes, bound = _difference_map(a, b, region)
    sums = (_sums(a, crop), _sums(b, crop)) if weights else None
    return CompareMaps(
        head, crop, region.level, pooled[0].values, pooled[0].classes, pooled[1].values, pooled[1].classes, scale,
        to_numpy(difference), classes.numpy(), Scale(-bound, bound, diverging=True), sums,
    )  # fmt: skip


def _sums(panel: Panel, crop: Crop) -> npt.NDArray[np.float64]:
    """Σ over all keys of the rows that are shown."""
    rows = panel.cells[slice(*crop.rows)].to("cpu", torch.float64)
    return np.asarray(to_numpy(rows.sum(1)), np.float64)


def _range(pooled: list[Pooled]) -> tuple[float, float]:
    """The lowest and the highest number of the whole maps."""
    lows, highs = ([getattr(one, name) for one in pooled if not math.isnan(one.low)] for name in ("low", "high"))
    return (min(lows), max(highs)) if lows else (0.0, 0.0)


def _difference_map(a: Panel, b: Panel, region: Region) -> tuple[Tensor, Tensor, float]:
    """B − A pooled to the cell of the largest size, its classes, and the largest finite size of the whole map, else 1.

    Masked is what both hide.
    """
    one, other = (panel.cells.to("cpu", torch.float64) for panel in (a, b))
    both = None
    if a.masked is not None and b.masked is not None:
        both = a.masked.cpu() & b.masked.cpu()
    gap = torch.where(one == other, 0.0, other - one)
    nan = torch.isnan(gap)
    if both is not None:
        gap, nan = gap.masked_fill(both, 0.0), nan & ~both
    level = region.level
    gap = torch.nan_to_num(gap, nan=0.0, posinf=math.inf, neginf=-math.inf)
    bound = float(torch.nan_to_num(gap, posinf=0.0, neginf=0.0).abs().max()) or 1.0
    gap, nan = region.of(gap), region.of(nan)
    largest = pooled_furthest(gap, level)
    masked = torch.zeros_like(nan) if both is None else region.of(both)
    classes = torch.zeros_like(largest, dtype=torch.uint8)
    planes = (CellClass.NAN, nan), (CellClass.MASKED, masked), (CellClass.ORDINARY, ~nan & ~masked)
    for kind, plane in planes:
        classes |= pooled_max(plane.to(torch.uint8), level) * int(kind)
    return largest, classes, bound
