"""One head's query × key stage at any length: which arithmetic gives its rows, and what is known of them so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz.attention.bins import Bins, Draw, Norm, binned
from attnviz.attention.masks import Mask
from attnviz.attention.planes import outside_sets
from attnviz.attention.pooling import Region
from attnviz.attention.stages import acting_fill, fill_value, head_stages, may_weigh_hidden, turns_fill
from attnviz.attention.tiles import CPU_TILE, LOG2E, Cancelled, Scores, Sweep, Workspace
from attnviz.frames import CellClass
from attnviz.spec import WEIGHT_STAGES, AttentionSpec, edited, masked_at, stages_of

_SAFE_LEAD: Final = {torch.float32: 80.0, torch.float64: 700.0}
"""How far a row's largest visible score may lie under its log-sum-exp before three-step loses digits."""

_NOTHING_FROM: Final = {"float64": -746.0, "float32": -105.0, "bfloat16": -94.0, "float16": -18.5}
"""So far under the largest score of its row a cell weighs exactly 0 in each dtype."""

_NORMALISED_AT: Final = 64
"""Bins of fewer keys only cost time where a row's denominator alone is wanted."""

_EXACT_CELLS: Final = 1 << 21  # of rows that are computed whole: 8 MB of float32


@dataclass(slots=True, eq=False)
class Known:
    """What is known of one head's rows; it outlives changes of dropout, stage and colours.

    ``visible`` is the denominator over the visible keys, ``everything`` over all of them, where a softmax comes
    before the mask; ``have`` (Q,) says of which rows. ``plain`` is `Scores.is_plain`, ``largest``
    `Scores.largest`, each once somebody asked.
    """

    visible: Norm
    everything: Norm | None
    have: npt.NDArray[np.bool_]
    plain: bool | None = None
    largest: tuple[float, float] | None = None

    @classmethod
    def nothing(cls, n_queries: int, dtype: torch.dtype, device: torch.device, *, softmax_first: bool) -> Known:
        """Of a map of which no row is known; ``softmax_first`` says that the mask comes after a softmax."""

        def empty() -> Norm:
            return Norm(*(torch.full((n_queries,), math.nan, dtype=dtype, device=device) for _ in range(2)))

        have = np.zeros(n_queries, np.bool_)
        return cls(empty(), empty() if softmax_first else None, have)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        norms = [norm for norm in (self.visible, self.everything) if norm is not None]
        return self.have.nbytes + sum(t.nbytes for norm in norms for t in (norm.highest, norm.mass))

    def has(self, rows: range) -> bool:
        return bool(self.have[rows.start : rows.stop : rows.step].all())


@dataclass(frozen=True, slots=True, eq=False)
class HeadMap:
    """One head's ``stage``: queries (Q, D) and keys (K, D) in the spec's dtype, and the spec's mask (None: none)."""

    spec: AttentionSpec
    stage: str
    head: int
    queries: Tensor
    keys: Tensor
    mask: Mask | None
    known: Known
    route: Literal["sweep", "rows", "scores"] = field(init=False)
    """*sweep*: by denominators. *rows*: whole rows in the dtype's own arithmetic. *scores*: nothing but a product."""

    acting_mask: Mask | None = field(init=False)
    """The mask, where it already acts on the stage."""
    _recipes: dict[bool, Scores] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "route", self._route())
        object.__setattr__(self, "acting_mask", self.mask if masked_at(self.spec, self.stage) else None)

    def _route(self) -> Literal["sweep", "rows", "scores"]:
        spec = self.spec
        if self.stage not in WEIGHT_STAGES:
            cut = spec.top_k is not None and masked_at(spec, self.stage)
            summed = spec.mask == "add" and self.stage == "scaled_scores" and spec.scale_after_mask
            return "rows" if cut or summed else "scores"
        if spec.top_k is not None or (spec.mask == "add" and self._adds_in_rows()):
            return "rows"
        half = self.queries.dtype in (torch.float16, torch.bfloat16)
        if turns_fill(self.spec):
            return "rows"
        if self.spec.mask == "three-step" and self.stage != "unmasked_weights" and half:
            return "rows"  # each weight is rounded before the triangle and the sum
        return "sweep"

    def _adds_in_rows(self) -> bool:
        """Whether an added mask may be something else than −∞ written over hidden scores.

        It is that where no score can be infinite (+∞ − ∞ is NaN), every row sees something, and hidden cells lie so
        deep that they weigh exactly 0.
        """
        (product, score), spec = self._largest, self.spec
        scale = self.scores(None).scale
        if not product * max(abs(scale), 1) < torch.finfo(self.queries.dtype).max:
            return True
        if not may_weigh_hidden(spec):
            return False
        sighted = self.mask is not None and int(self.mask.n_visible().min()) > 0
        fill = fill_value(spec) * (scale if spec.scale_after_mask else 1)  # not rounded: it is scaled with its score
        return not (sighted and 0.9 * fill + 2 * score < _NOTHING_FROM[spec.dtype])  # 0.9: for the sum's own rounding

    @property
    def _largest(self) -> tuple[float, float]:
        """`Scores.largest`, asked once for a head."""
        if self.known.largest is None:
            self.known.largest = self.scores(None).largest()
        return self.known.largest

    @property
    def _may_be_nan(self) -> bool:
        """Whether some score may be NaN: of numbers that are none or overflow, or of a fill of −∞ times 0."""
        if self.stage == "scaled_scores" and self.acting_mask is not None and math.isnan(acting_fill(self.spec)):
            return True
        return not self._largest[0] < torch.finfo(self.queries.dtype).max

    @property
    def holds_weights(self) -> bool:
        """Whether the stage's cells are weights: a zero is then a class of its own, and rows have factors."""
        return self.stage in WEIGHT_STAGES

    @property
    def told_by_mask(self) -> bool:
        """Whether the mask alone tells how many cells there are of each class."""
        if self.spec.mask in ("three-step", "multiply") or self.route == "rows":
            return False
        if self.route == "scores":
            return not self._may_be_nan
        return not self.draw() and self.is_plain

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.queries), len(self.keys)

    @property
    def is_plain(self) -> bool:
        if self.known.plain is None:
            self.known.plain = self.scores(self.mask).is_plain()
        return self.known.plain

    def scores(self, mask: Mask | None) -> Scores:
        """The head's scores with ``mask``, which is the spec's or none."""
        masked = mask is not None
        if masked not in self._recipes:
            self._recipes[masked] = self._recipe(mask)
        return self._recipes[masked]

    def _recipe(self, mask: Mask | None) -> Scores:
        spec, d_head = self.spec, self.queries.shape[-1]
        scale = 1 / math.sqrt(d_head) if spec.scale == "auto" else 1.0 if spec.scale == "none" else float(spec.scale)
        fill = acting_fill(spec) if spec.mask == "neg-inf" else -math.inf
        return Scores(self.queries, self.keys, scale, spec.soft_cap, mask, fill)

    @property
    def lets_hidden_weigh(self) -> bool:
        """Whether nobody knows how many cells are masked: a finite fill leaves them a weight, or top-k takes some."""
        cut = self.spec.top_k is not None and masked_at(self.spec, self.stage)
        buried = self.spec.mask == "add" and self.route == "sweep"
        return cut or (self.holds_weights and may_weigh_hidden(self.spec) and not buried)

    def draw(self) -> Draw | None:
        """The dropout of the stage, if it has one."""
        if self.stage != "dropped_weights":
            return None
        return Draw(self.spec.dropout_seed, self.head, self.spec.dropout)

    def outside(self, region: Region) -> Tensor | None:
        return outside_sets(self.acting_mask, region)

    # ----------------------------------------------------------------------------------------------------------- rows

    def bins(
        self, rows: range, cols: tuple[int, int], level: int, space: Workspace, cancelled: Cancelled, *,
        whole_rows: bool = False,
    ) -> tuple[Bins, list[Tensor]] | None:  # fmt: skip
        """Bins of ``rows`` over ``cols``, and the rows' factors; None once cancelled.

        The factors are `pixel_rows.FACTORS` but the first. ``whole_rows`` takes all columns, so that the largest
        of each row of dropped weights is known.
        """
        if whole_rows:
            cols = 0, len(self.keys)
        if self.route == "scores":
            scored = self._score_bins(rows, cols, level, cancelled)
            return None if scored is None else (scored, [])
        if self.route == "rows":
            whole = self._whole_row_bins(rows, cols, level, cancelled)
            if whole is None or not self.holds_weights:
                return None if whole is None else (whole[0], [])
            found, visible = whole
            return found, self._factors(rows, found.top.amax(0), visible)
        got = self._swept(rows, cols, level, space, cancelled)
        if got is None:
            return None
        norm = self._norm(rows, "visible")
        peak = norm.mass.reciprocal()
        if self.stage == "dropped_weights":
            peak = got.top.amax(0) if len(got.top) else torch.zeros_like(peak)
        elif self.stage == "unmasked_weights":
            peak = 1 / self._norm(rows, "all").mass
        elif self.stage == "unnormalised_weights" or self.spec.mask == "multiply":
            every = self._norm(rows, "all")
            peak = torch.exp2(norm.highest - every.highest) / every.mass
        return got, self._factors(rows, peak)

    def _factors(self, rows: range, peak: Tensor, visible: Tensor | None = None) -> list[Tensor]:
        mask, device = self.acting_mask, self.queries.device
        if visible is None:
            visible = torch.full((len(rows),), len(self.keys)) if mask is None else mask.n_visible(rows)
        lift = torch.where(peak > 0, peak, 1.0).reciprocal_()  # NaN and nothing both leave the row as it is
        return [visible.to(device, peak.dtype), lift]

    def _norm(self, rows: range, which: Literal["visible", "all"]) -> Norm:
        norm = self.known.everything if which == "all" else self.known.visible
        assert norm is not None  # noqa: S101 (a softmax before the mask alone asks for all)
        return Norm(norm.highest[_slice(rows)], norm.mass[_slice(rows)])

    def row_sums(self) -> Tensor | None:
        """Three-step's row sums (Q, 1) before its division, as the dtype holds them; 1 where a row is not known yet.

        None where rows are computed whole, so that nobody keeps their denominators.
        """
        every, seen = self.known.everything, self.known.visible
        if every is None or self.spec.mask != "three-step" or not bool(self.known.have.any()):
            return None
        largest = (torch.exp2(seen.highest - every.highest) / every.mass).to(self.queries.dtype)
        sums = torch.where(largest == 0, 0.0, torch.exp2(seen.lse - every.lse))
        sums = torch.where(seen.mass == 0, 1.0, sums)  # sees nothing: no fault of rounding
        return torch.where(torch.from_numpy(self.known.have).to(sums.device), sums, 1.0)[:, None]

    def know(self, rows: range, level: int, space: Workspace, cancelled: Cancelled) -> Bins | None:
        """Find the rows' denominators and keep them; their bins over all visible keys, or None once cancelled."""
        sweep = self._sweep(self.mask, space, cancelled)
        bins = sweep.normalise(rows, level)
        if bins is None or bins.norm is None:
            return None
        where = _slice(rows)
        if self.known.everything is not None:
            hidden = sweep.hidden_norm(rows)
            if hidden is None:
                return None
            every = bins.norm.joined(hidden)
            self.known.everything.highest[where], self.known.everything.mass[where] = every.highest, every.mass
        self.known.visible.highest[where], self.known.visible.mass[where] = bins.norm.highest, bins.norm.mass
        self.known.have[where] = True
        return bins

    def _sweep(self, mask: Mask | None, space: Workspace, cancelled: Cancelled) -> Sweep:
        by_rows = self.spec.mask == "three-step"  # whose lossy rows are put in one by one
        return Sweep(
            self.scores(mask), plain=self.is_plain, workspace=space, cancelled=cancelled, group_sets=not by_rows
        )

    def _swept(
        self, rows: range, cols: tuple[int, int], level: int, space: Workspace, cancelled: Cancelled
    ) -> Bins | None:
        final = self.stage in ("weights", "dropped_weights")
        bins = None
        if not self.known.has(rows):
            coarse = max(level, _NORMALISED_AT) if cols != (0, len(self.keys)) else level
            bins = self.know(rows, coarse, space, cancelled)
            if bins is None:
                return None
            bins = bins if coarse == level else None
        if bins is None or self.stage != "weights" or not self.is_plain or self.spec.mask == "multiply":
            # three-step divides what the first softmax left, so what rounded to 0 there stays 0
            divides = final and self.spec.mask == "three-step" and not self.is_plain
            whole = not final or divides or self.spec.mask == "multiply"
            norm = self._norm(rows, "all" if whole else "visible")
            sweep = self._sweep(self.acting_mask, space, cancelled)
            bins = sweep.window(rows, cols, level, norm, draw=self.draw())
            if bins is None:
                return None
            if divides:
                seen = self._norm(rows, "visible")
                left = torch.exp2(seen.lse - norm.lse)
                bins = replace(bins, top=bins.top / left, total=bins.total / left, sound=seen.sound)
        return self._with_lossy_rows(bins, cols, cancelled) if final and self.spec.mask == "three-step" else bins

    def _with_lossy_rows(self, bins: Bins, cols: tuple[int, int], cancelled: Cancelled) -> Bins | None:
        """Three-step rows whose visible weights lie too low under the first softmax: by the dtype's own arithmetic."""
        rows = bins.rows
        safe = _SAFE_LEAD[self.queries.dtype] * LOG2E
        lead = self._norm(rows, "all").lse - self._norm(rows, "visible").highest
        lossy = ~(lead < safe) & (self._norm(rows, "visible").mass > 0)  # a row that sees nothing is NaN as it is
        if not bool(lossy.any()):
            return bins
        # all columns: the bins of a sweep end where the rows' visible keys end, and a NaN does not
        left, n_bins = cols[0], -(-(cols[1] - cols[0]) // bins.level)
        whole = _widened(bins, left, n_bins, self.acting_mask, len(self.keys))
        sound = torch.ones_like(lossy) if bins.sound is None else bins.sound.clone()
        for place in lossy.nonzero().squeeze(1).tolist():
            if cancelled():
                return None
            found = self._whole_row_bins(rows[place : place + 1], cols, bins.level, cancelled)
            if found is None:
                return None
            row = found[0]
            for plane, new in (whole.top, row.top), (whole.total, row.total), (whole.sets, row.sets):
                plane[:, place] = new[:, 0]
            sound[place] = not bool(torch.isnan(row.top).all())
        uncounted = -1 if self.draw() is not None else 0
        return replace(whole, sound=None if bool(sound.all()) else sound, zeros=-1, dropped=uncounted)

    def _whole_row_bins(
        self, rows: range, cols: tuple[int, int], level: int, cancelled: Cancelled
    ) -> tuple[Bins, Tensor | None] | None:
        """Rows computed whole as the dense pass does, a few at a time, and with top-k the keys that each one sees."""
        parts = []
        visible = []
        step = max(1, _EXACT_CELLS // len(self.keys))
        for first in range(0, len(rows), step):
            if cancelled():
                return None
            some = rows[first : first + step]
            cells, masked, dropped, seen = self.row_cells(some)
            visible += [] if seen is None else [seen]
            mask = self.acting_mask
            planes = [None if plane is None else plane[:, cols[0] : cols[1]].t() for plane in (masked, dropped)]
            parts.append(
                binned(
                    cells[:, cols[0] : cols[1]].t(), some, cols[0], level, weights=self.holds_weights, masked=planes[0],
                    padded=(0, 0) if mask is None else mask.padded, dropped=planes[1],
                )
            )  # fmt: skip
        top, total, sets = (torch.cat([getattr(p, name) for p in parts], 1) for name in ("top", "total", "sets"))
        nan = torch.isnan(top).all(0)
        wide = torch.promote_types(top.dtype, torch.float32)
        bins = Bins(
            rows, cols[0], level, top.to(wide), total.to(wide), sets, sound=~nan if bool(nan.any()) else None,
            low=_lowest(parts), zeros=sum(p.zeros for p in parts), dropped=sum(p.dropped for p in parts),
            nans=_nans(parts),
        )  # fmt: skip
        return bins, torch.cat(visible) if visible and self.spec.top_k is not None else None

    def row_cells(self, rows: range) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """The stage's cells (rows, K) as the dense pass computes them, those masked, those dropped, visible keys."""
        finite_fill = self.holds_weights and may_weigh_hidden(self.spec)
        keep = {self.stage, "weights"} if finite_fill else {self.stage}
        result = head_stages(
            self.spec, head=self.head, keep=keep, q=self.queries[None], k=self.keys[None], mask=self.mask,
            rows=rows,
        )  # fmt: skip
        cells = result.stages[self.stage][0]
        masked = result.masked if masked_at(self.spec, self.stage) else None
        if masked is not None and finite_fill:
            masked = masked & (result.stages["weights"][0] == 0)
        dropped = None if self.stage != "dropped_weights" or result.kept is None else ~result.kept[0]
        return cells, masked, dropped, result.visible

    # --------------------------------------------------------------------------------------------------------- scores

    def score_cells(self, rows: range, cols: tuple[int, int]) -> tuple[Tensor, Tensor | None]:
        """The stage's scores (rows, columns), and which of them are masked."""
        plain = edited(self.spec, mask="none", top_k=None)
        name = self.stage if self.stage != "masked_scores" else _before_mask(self.spec)
        cells = head_stages(
            plain, head=self.head, keep={name}, q=self.queries[None], k=self.keys[None, cols[0] : cols[1]], rows=rows
        ).stages[name][0]
        mask = self.acting_mask
        if mask is None:
            return cells, None
        fill = acting_fill(self.spec) if self.stage == "scaled_scores" else fill_value(self.spec)
        (mask.add if self.spec.mask == "add" else mask.fill)(cells, fill, rows, left=cols[0])
        return cells, mask.hidden(rows, cols, cells.device)

    def exact_scores(self, row: int, cols: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Values (columns,) and classes uint8 (columns,) of one row of a stage before the softmax, on the CPU."""
        rows = range(row, row + 1)
        if self.route == "scores":
            cells, masked = self.score_cells(rows, cols)
        else:
            cells, masked, _, _ = self.row_cells(rows)
            cells = cells[:, cols[0] : cols[1]]
            masked = None if masked is None else masked[:, cols[0] : cols[1]]
        classes = torch.full((cols[1] - cols[0],), int(CellClass.ORDINARY), dtype=torch.uint8)
        if masked is not None:
            classes[masked[0].cpu()] = int(CellClass.MASKED)
            padded = (0, 0) if self.acting_mask is None else self.acting_mask.padded
            first, end = (min(max(edge, cols[0]), cols[1]) - cols[0] for edge in padded)
            stuffed = classes[first:end]
            stuffed[stuffed == int(CellClass.MASKED)] = int(CellClass.PADDED)
        values = cells[0].cpu()
        classes[torch.isnan(values)] = int(CellClass.NAN)
        return values.to(torch.promote_types(values.dtype, torch.float32)), classes

    def _score_bins(self, rows: range, cols: tuple[int, int], level: int, cancelled: Cancelled) -> Bins | None:
        mask, end = self.acting_mask, min(cols[1], len(self.keys))
        padded = (0, 0) if mask is None else mask.padded
        width = max(CPU_TILE[1] // level, 1) * level
        parts = []
        for first in range(cols[0], end, width):
            if cancelled():
                return None
            cells, masked = self.score_cells(rows, (first, min(first + width, end)))
            hidden = None if masked is None else masked.t()
            parts.append(binned(cells.t(), rows, first, level, weights=False, masked=hidden, padded=padded))
        top, total, sets = (torch.cat([getattr(part, name) for part in parts]) for name in ("top", "total", "sets"))
        return Bins(rows, cols[0], level, top, total, sets, low=_lowest(parts), nans=_nans(parts))

    @property
    def blank(self) -> float:
        """What stands in a pixel that holds no ordinary cell: what was computed there.

        Of scores to which a mask was added, and of those that top-k took away, it is the fill alone.
        """
        if self.holds_weights:
            return 0.0
        if self.stage == "scaled_scores":
            return acting_fill(self.spec)
        return fill_value(self.spec) if self.spec.fills else -math.inf


def _before_mask(spec: AttentionSpec) -> str:
    names = stages_of(spec)
    return names[names.index("masked_scores") - 1]


def _lowest(parts: list[Bins]) -> float:
    return min((part.low for part in parts if not math.isnan(part.low)), default=math.nan)


def _nans(parts: list[Bins]) -> tuple[int, int, int]:
    every, masked, stuffed = (sum(counts) for counts in zip(*(part.nans for part in parts), strict=True))
    return every, masked, stuffed


def _slice(rows: range) -> slice:
    return slice(rows.start, rows.stop, rows.step)


def _widened(bins: Bins, left: int, n_bins: int, mask: Mask | None, n_keys: int) -> Bins:
    """``bins`` over ``n_bins`` columns from ``left`` on; what they did not reach is hidden."""
    n = bins.top.shape[1]
    top = bins.top.new_full((n_bins, n), -math.inf)
    total = bins.total.new_zeros((n_bins, n))
    sets = bins.sets.new_full((n_bins, n), int(CellClass.MASKED))
    if mask is not None:
        region = Region((0, 1), (left, min(left + n_bins * bins.level, n_keys)), bins.level)
        classes = outside_sets(mask, region)
        if classes is not None:
            sets[:] = classes.to(sets.device)[:, None]
    shift = (bins.left - left) // bins.level
    a, b = max(shift, 0), min(shift + len(bins.top), n_bins)
    if a < b:
        for plane, found in (top, bins.top), (total, bins.total), (sets, bins.sets):
            plane[a:b] = found[a - shift : b - shift]
    return replace(bins, left=left, top=top, total=total, sets=sets)
