"""One head under every order of mask and softmax, the answers of a row that sees nothing, and how deep a fill must lie.

Everything is computed as it is asked, with torch and in the dtype that is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from attnviz import colour, inputs
from attnviz.attention.pooling import Panel, PanelPooler, Region, sums_of, to_numpy
from attnviz.frames import Crop, level_for
from attnviz.questions.gallery import (
    DTYPES,
    FILLS,
    MOST_TOKENS,
    ORDERS,
    Exhibit,
    FillDepth,
    GalleryAnswer,
    GalleryQuestion,
    MaskedRow,
)
from attnviz.spec import SpecError, edited
from attnviz.studies.opened_spec import OpenedSpec

_LESSON_SCORES = (1.0, 2.0, 3.0)
_MOST_SCORES = 6
"""Scores of a row that are asked what they become when none is visible; of a longer row the first ones."""


def answers(question: GalleryQuestion, cancelled: Callable[[], bool] = lambda: False) -> Iterator[GalleryAnswer]:
    """An answer for each order that has been computed, −∞ first.

    Raises `SpecError` where no order can be, and for a part that lies beyond the map.
    """
    spec = question.spec
    crop = _checked(question)
    maps = OpenedSpec(edited(spec, top_k=None) if spec.top_k is not None else spec)
    hidden = maps.hidden()
    largest, scores = _scores_of(question, maps, hidden)
    around = {
        "scores": scores, "masked_row": masked_row(scores, spec.dtype), "largest": largest,
        "depths": tuple(fill_depth(largest, fill, dtype) for fill in fills_for(largest) for dtype in DTYPES),
        "thresholds": MappingProxyType({dtype: threshold(dtype) for dtype in DTYPES}),
    }  # fmt: skip
    region = Region(crop.rows, crop.cols, level_for(max(crop.size), question.pixels))
    pooler = PanelPooler(region, nonnegative=True)
    exact: Tensor | None = None
    found: dict[str, Exhibit] = {}
    high = 0.0
    for name in ("neg-inf", *(name for name in ORDERS if name != "neg-inf")):
        if cancelled():
            return
        panel = maps.panel("weights", question.head, edited(maps.spec, **ORDERS[name]))
        cells = panel.cells.to("cpu", torch.float64)
        exact = cells if exact is None else exact
        exhibit, peak = _exhibit(name, panel, cells, exact, hidden, pooler)
        found[name] = exhibit
        high = max(high, peak)
        scale = colour.choose_scale("weights", "auto", maps.n_keys, 0.0, high)
        shown = tuple(found[order] for order in ORDERS if order in found)
        known = len(found), len(ORDERS), question, maps.tokens, crop
        yield GalleryAnswer(*known, shown, scale, **around)  # type: ignore[arg-type]


def _checked(question: GalleryQuestion) -> Crop:
    """What the maps show."""
    spec = question.spec
    shape = inputs.count_tokens(spec.source)
    n_keys = shape[1]
    if n_keys > MOST_TOKENS:
        raise SpecError(
            "source",
            f"all orders side by side are whole maps: they go up to {MOST_TOKENS:,} tokens, here are {n_keys:,}",
        )
    return Crop.of(question.rows, question.cols, shape)


def _exhibit(
    name: str, panel: Panel, cells: Tensor, exact: Tensor, hidden: Tensor, pooler: PanelPooler
) -> tuple[Exhibit, float]:
    """One order's exhibit, and its largest ordinary weight."""
    with torch.inference_mode():
        pooled = pooler.pool(panel)
        gap = (cells - exact).abs()
        compared = ~torch.isnan(gap)
        place = int(torch.where(compared, gap, -1.0).argmax())
        difference = float(gap.flatten()[place]) if bool(compared.any()) else math.nan
        leaked = torch.nan_to_num(cells)[hidden]
        nan_rows = int(torch.isnan(cells).any(1).sum())
        sums = np.asarray(to_numpy(sums_of(panel.cells).to("cpu", torch.float64)), np.float64)
    exhibit = Exhibit(
        name, pooled.values, pooled.classes, pooled.region.level, sums, difference,
        divmod(place, cells.shape[1]), nan_rows, float(leaked.max()) if leaked.numel() else 0.0,
    )  # fmt: skip
    return exhibit, 0.0 if math.isnan(pooled.high) else pooled.high


def _scores_of(question: GalleryQuestion, maps: OpenedSpec, hidden: Tensor) -> tuple[float, tuple[float, ...]]:
    """The largest visible scaled score of the question's row, and its first scores; without a row the lesson's."""
    row = question.row
    if row is None or row >= maps.n_queries:
        return 0.0, _LESSON_SCORES
    plain = edited(maps.spec, mask="none", scale_after_mask=False)
    scores = maps.panel("scaled_scores", question.head, plain).cells[row].to("cpu", torch.float64)
    seen = scores[~hidden[row]]
    return float(seen.max()) if seen.numel() else 0.0, tuple(scores[:_MOST_SCORES].tolist())


# --------------------------------------------------------------------------------------------- a row that sees nothing


def masked_row(scores: tuple[float, ...], dtype: str) -> tuple[MaskedRow, ...]:
    """What each way of masking makes of ``scores`` when all of them are hidden, in ``dtype``.

    By name: "fill -inf", "fill -1e9", "add -1e9" (and once more in float64, where the score survives beside it) and
    "sdpa", torch's own with a boolean mask.
    """
    kind = getattr(torch, dtype)
    given = torch.tensor(scores, dtype=torch.float64)
    everything = torch.ones(len(scores), dtype=torch.bool)

    def softmax(cells: Tensor) -> Tensor:
        return torch.softmax(cells, -1)

    def row(how: str, dtype: str, weights: Tensor, *, refused: bool = False) -> MaskedRow:
        array = weights.to(torch.float64).numpy().copy()
        array.flags.writeable = False
        return MaskedRow(how, dtype, array, refused)

    with torch.inference_mode():
        cells = given.to(kind)
        depth = torch.full_like(given, -1e9).to(kind)  # float16 casts it to −∞ and would not take it otherwise
        rows = [
            row("fill -inf", dtype, softmax(cells.masked_fill(everything, -math.inf))),
            row("fill -1e9", dtype, softmax(depth), refused=_refuses(-1e9, kind)),
            row("add -1e9", dtype, softmax(cells + depth)),
        ]
        if dtype != "float64":
            rows.append(row("add -1e9", "float64", softmax(given - 1e9)))
        ones, values = torch.ones(1, 1, dtype=kind), torch.eye(len(scores), dtype=kind)
        own = functional.scaled_dot_product_attention(
            ones, cells[:, None], values, attn_mask=~everything[None], scale=1.0
        )
        return (*rows, row("sdpa", dtype, own[0]))


# ------------------------------------------------------------------------------------------------------ depth of a fill


def fills_for(largest: float) -> tuple[float, ...]:
    """`FILLS`, and of each dtype the first tenth below its limit under a visible score of ``largest``; falling."""
    limits = (largest - threshold(dtype) for dtype in DTYPES)
    own = {math.floor(10 * limit) / 10 for limit in limits if math.isfinite(10 * limit)}
    return tuple(sorted({*FILLS, *own}, reverse=True))


def fill_depth(largest: float, fill: float, dtype: str) -> FillDepth:
    """What ``fill`` over a hidden score lets it weigh beside one visible score of ``largest``, in ``dtype``."""
    kind = getattr(torch, dtype)
    with torch.inference_mode():
        cells = torch.tensor([largest, fill], dtype=torch.float64).to(kind)
        weight = float(torch.softmax(cells, -1)[1])
        return FillDepth(fill, largest - fill, dtype, float(cells[1]), weight, _refuses(fill, kind))


def threshold(dtype: str) -> float:
    """How deep below the largest score a fill must lie to weigh exactly 0: −ln of half the smallest number."""
    limits = torch.finfo(getattr(torch, dtype))
    return -(math.log(limits.smallest_normal) + math.log(limits.eps / 2))


def _refuses(number: float, kind: torch.dtype) -> bool:
    """Whether torch's masked_fill takes ``number`` for no value of the dtype."""
    try:
        torch.zeros(1, dtype=kind).masked_fill(torch.ones(1, dtype=torch.bool), number)
    except RuntimeError:
        return True
    return False


__all__ = ["answers", "fill_depth", "fills_for", "masked_row", "threshold"]
