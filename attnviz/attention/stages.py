"""One head's pass as the named stages: inputs are queries, keys and values, what comes out is what was asked for.

Every stage is computed in the spec's dtype and the way its name says, so that what rounding does can be seen. A
stage has the same bits whichever others are kept beside it.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor

from attnviz.attention import dropout, masks
from attnviz.attention.masks import Mask
from attnviz.spec import JOINT_STAGES, QUERY_KEY_STAGES, AttentionSpec, acts_on_scores, stages_of

_BLOCK = 128
_LEAST = 8  # rows of the last block: a product of one or two rounds otherwise than one of many

_FAINTEST: Final = {"float64": -745.0, "float32": -104.0, "bfloat16": -92.9, "float16": -17.3}
"""Below this a score beside 0 weighs exactly nothing in each dtype."""


@dataclass(frozen=True, slots=True, eq=False)
class HeadStages:
    """The stages of one head that were wanted, in the order in which they were computed.

    ``stages`` name → tensor: queries, keys, values (B, L, D), query × key stages (B, Q, K), ``row_sums`` (B, Q, 1),
    ``context`` and ``dropped_context`` (B, Q, D). ``kept`` is bool, the cells that dropout keeps at the spec's site:
    (B, Q, K) at the weights, (B, Q, D) at the context; None where no dropout was reached. ``masked`` is bool (Q, K),
    the cells that the mask hides, the same tensor for every head of a shape, and those that top-k took away, each
    head's own (of the first batch item, which the others equal); None where nothing hides any. ``visible`` int64 (Q,)
    is the number of keys that each row sees. Where only some rows were asked for, Q is their number. ``clean``
    says that hidden weights were not computed and stand as 0.
    """

    stages: dict[str, Tensor]
    kept: Tensor | None = None
    masked: Tensor | None = None
    visible: Tensor | None = None
    clean: bool = False


def head_stages(
    spec: AttentionSpec,
    *,
    head: int,
    keep: AbstractSet[str],
    q: Tensor | None = None,
    k: Tensor | None = None,
    v: Tensor | None = None,
    scaled_scores: Tensor | None = None,
    weights: Tensor | None = None,
    out: Tensor | None = None,
    drawn_keep: Tensor | None = None,
    mask: Mask | None = None,
    rows: range | None = None,
    clean: bool = False,
) -> HeadStages:
    """The stages ``keep`` of one head; nothing after the last of them is computed.

    Give ``q``, ``k`` (B, L, d_head), or what a typed source enters at: ``scaled_scores`` or ``weights`` (1, Q, K);
    and ``v`` (B, K, D) where there are values. None of them is written to. Stages that are not wanted are overwritten
    in place. ``out`` (Q, K) or (B, Q, K), in the spec's dtype, takes the last wanted query × key stage; where none is
    wanted it is worked in. ``drawn_keep`` bool (B, Q, K) or (B, Q, D) replaces the generator's draw of all queries: a
    lesson's own, or torch's if it is at hand.
    ``mask`` replaces the spec's shape, which it must where that is a file's. ``rows`` takes some of the queries alone;
    their stages are those rows of the whole, up to the rounding of a product cut in another way. ``clean`` says that
    ``out`` holds 0 where this mask hides, as a pass before has left it (`HeadStages.clean`): it is not written again.
    Where gradients are recorded, each stage is a tensor of its own, and ``out`` is not for that.

    Raises ValueError for a stage that the spec lacks for a single head.
    """
    names = [name for name in stages_of(spec) if name not in JOINT_STAGES]
    if missing := keep - set(names):
        raise ValueError(f"{', '.join(sorted(missing))}: a head of this spec has {', '.join(names)}")
    given = scaled_scores if scaled_scores is not None else weights
    n_queries, n_keys = _map_shape(q, k, given)
    wanted = [name for name in names if name in keep]
    if spec.mask == "none":
        mask = None
    elif mask is None:
        mask = masks.shaped(spec.mask_shape, n_queries, n_keys)
    every = range(n_queries)
    some = every if rows is None else rows
    if rows is not None:
        q, given = (None if t is None else t[:, rows.start : rows.stop : rows.step] for t in (q, given))
    masked = None
    if mask is not None:
        device = _device(q, given)
        masked = _shared_hidden(mask, device) if some == every else mask.hidden(some, device=device)
    setting = _Setting(spec, head, mask, masked, some, n_queries, clean)
    run = _Pass(setting, keep, given=_Given(q, k, v, given), out=out, drawn_keep=drawn_keep)
    for name in names[: names.index(wanted[-1]) + 1] if wanted else ():
        run.step(name)
    visible = None if mask is None else mask.n_visible(some)
    if run.cut is not None:
        masked = run.cut if masked is None else masked | run.cut
        visible = (~masked).sum(1).cpu()
    return HeadStages({name: run.stages[name] for name in wanted}, run.kept, masked, visible, run.clean)


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What a pass is about: ``masked`` is the mask's cells in ``rows``, which are some of ``n_queries``."""

    spec: AttentionSpec
    head: int
    mask: Mask | None
    masked: Tensor | None
    rows: range
    n_queries: int
    clean: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    q: Tensor | None
    k: Tensor | None
    v: Tensor | None
    typed: Tensor | None


class _Pass:
    """One head's pass under way: ``cells`` is the query × key stage last computed, and may be overwritten."""

    def __init__(
        self,
        setting: _Setting,
        keep: AbstractSet[str],
        *,
        given: _Given,
        out: Tensor | None,
        drawn_keep: Tensor | None,
    ) -> None:
        self.setting, self.spec, self.head, self.keep, self.given = setting, setting.spec, setting.head, keep, given
        self.stages: dict[str, Tensor] = {}
        self.kept: Tensor | None = None
        self.cut: Tensor | None = None  # visible cells (Q, K) that top-k took away
        self._drawn_keep = drawn_keep
        self._out = out[None] if out is not None and out.dim() == 2 else out
        self._maps_wanted = sum(name in QUERY_KEY_STAGES for name in keep)
        self._cells: Tensor | None = None
        self._row_sums: Tensor | None = None
        self._context: Tensor | None = None
        # what is saved for a pass back must not be overwritten
        self._recorded = given.q is not None and given.q.requires_grad and torch.is_grad_enabled()
        self._in_blocks = not self._recorded and self._skips_hidden()
        self.clean = self._in_blocks and "dropped_weights" not in keep

    def step(self, name: str) -> None:
        """Compute stage ``name``, the one after the last step's."""
        if self._in_blocks and name in ("scores", "scaled_scores", "masked_scores"):
            return  # the weights' own blocks do it
        if name in ("queries", "keys", "values") and name not in self.keep:
            return  # they are given, if they are needed at all
        if name in QUERY_KEY_STAGES:
            self._cells = self._map_stage(name, self._writable())
            if name in self.keep:
                self.stages[name] = self._cells
                self._maps_wanted -= 1
        else:
            stage = self._other_stage(name)
            if name in self.keep:
                self.stages[name] = stage

    def _writable(self) -> Tensor:
        """The last map to go on in: itself, or a copy where it is wanted as it stands."""
        cells = self._cells
        if cells is not None and self._recorded:
            return cells.clone()
        if cells is None or any(cells is stage for stage in self.stages.values()):
            fresh = self._map_buffer()
            return fresh if cells is None else fresh.copy_(cells)
        return cells

    def _map_buffer(self) -> Tensor:
        if self._out is not None and self._maps_wanted <= 1:
            buffer, self._out = self._out, None
            return buffer
        q, k, typed = self.given.q, self.given.k, self.given.typed
        if typed is not None:
            return torch.empty_like(typed)
        assert q is not None and k is not None  # noqa: S101, PT018
        return q.new_empty(q.shape[0], q.shape[1], k.shape[1])

    def _map_stage(self, name: str, cells: Tensor) -> Tensor:
        """Stage ``name``, written over ``cells``, which holds the stage before (anything at the first)."""
        typed_at = "scaled_scores" if "scaled_scores" in stages_of(self.spec) else "weights"
        if self.given.typed is not None and name == typed_at:
            return cells.copy_(self.given.typed)
        match name:
            case "scores":
                q, k = self.given.q, self.given.k
                assert q is not None and k is not None  # noqa: S101, PT018
                fused = self._fused_scale()
                if self._recorded:
                    return torch.baddbmm(cells, q, k.transpose(1, 2), beta=0, alpha=fused or 1)
                return torch.baddbmm(cells, q, k.transpose(1, 2), beta=0, alpha=fused or 1, out=cells)
            case "scaled_scores":
                return cells if self._fused_scale() else self._scaled(cells)
            case "masked_scores":
                return self._mask_scores(cells)
            case "unnormalised_weights":
                return cells.mul_(self._triangle(cells))
            case "dropped_weights":
                self.kept = self._keep_mask(cells.shape)
                return _dropped(cells, self.kept, self.spec.dropout)
            case "weights" if self.spec.mask == "three-step":
                assert self._row_sums is not None  # noqa: S101
                return cells.div_(self._row_sums)  # 0/0 is NaN across the whole row, hidden cells too
            case "weights" if self.spec.mask == "multiply":
                return cells.mul_(self._triangle(cells))
        if name == "weights" and self._in_blocks:
            return self._masked_softmax(cells)
        return _softmax(cells)  # weights, unmasked_weights

    def _mask_scores(self, cells: Tensor) -> Tensor:
        """The mask over scores, then −∞ over those that are not among the k largest visible ones of their row."""
        spec, mask, masked = self.spec, self.setting.mask, self.setting.masked
        cut = None
        if spec.top_k is not None and spec.top_k < cells.shape[-1]:
            seen = cells if masked is None else cells.masked_fill(masked, -math.inf)
            least = torch.topk(seen, spec.top_k, dim=-1, sorted=False).values.amin(-1, keepdim=True)  # (B, Q, 1)
            cut = cells < least  # what equals the k-th stays
            if masked is not None:
                cut &= ~masked
            self.cut = cut[0]
        if mask is not None:
            (mask.add if spec.mask == "add" else mask.fill)(cells, fill_value(spec), self.setting.rows)
        return cells if cut is None else cells.masked_fill_(cut, -math.inf)

    def _triangle(self, cells: Tensor) -> Tensor:
        """Ones where a cell is visible, as numbers: multiplying by a bool tensor takes thirty times as long."""
        mask, masked = self.setting.mask, self.setting.masked
        assert mask is not None and masked is not None  # noqa: S101, PT018
        if len(masked) == mask.n_queries:
            return _shared_triangle(mask, cells.device, cells.dtype)
        return (~masked).to(cells.dtype)

    # --------------------------------------------------------------------------------------------- what is not computed

    def _skips_hidden(self) -> bool:
        """Whether hidden scores need not be computed at all: filled with −∞ they weigh exactly 0."""
        maps = {name for name in self.keep if name in QUERY_KEY_STAGES}
        return (
            self.spec.mask == "neg-inf"
            and self.spec.top_k is None
            and self.given.typed is None
            and maps <= {"weights", "dropped_weights"}
            and acting_fill(self.spec) == -math.inf
        )

    def _masked_softmax(self, cells: Tensor) -> Tensor:
        """Weights over the visible keys alone, by blocks of rows; the same numbers with about half the work."""
        q, k, mask = self.given.q, self.given.k, self.setting.mask
        assert q is not None and k is not None and mask is not None  # noqa: S101, PT018
        keys = k.transpose(1, 2)
        fused = self._fused_scale()
        for top, end, lo, hi, edges in _visible_blocks(mask, self.setting.rows, q.device):
            part = cells[:, top:end]
            seen = part[..., lo:hi]
            torch.baddbmm(seen, q[:, top:end], keys[..., lo:hi], beta=0, alpha=fused or 1, out=seen)
            if not fused:
                self._scaled(seen)
            for left, right, hidden in edges:
                part[..., left:right].masked_fill_(hidden, -math.inf)
            _softmax(seen)
            beyond = (part[..., :lo], part[..., hi:])
            if bool(torch.isnan(seen[..., 0]).any()):  # a row of NaN is NaN throughout
                self.clean = False
                for outside in beyond:
                    outside.copy_((seen[..., :1] * 0).expand_as(outside))
                continue
            for outside in () if self.setting.clean else beyond:
                outside.zero_()
        return cells

    def _other_stage(self, name: str) -> Tensor:
        given, cells = self.given, self._cells
        direct = {"queries": given.q, "keys": given.k, "values": given.v}.get(name)
        if direct is not None:
            return direct
        assert cells is not None  # noqa: S101
        if name == "row_sums":
            self._row_sums = cells.sum(-1, keepdim=True)  # (B, Q, 1)
            return self._row_sums
        if name == "context":
            assert given.v is not None  # noqa: S101
            self._context = torch.bmm(cells, given.v)  # (B, Q, D)
            return self._context
        assert self._context is not None  # noqa: S101 (dropped_context)
        self.kept = self._keep_mask(self._context.shape)
        return _dropped(self._context.clone(), self.kept, self.spec.dropout)

    # ------------------------------------------------------------------------------------------------------- scaling

    def _fused_scale(self) -> float | None:
        """The scale as a factor of the matrix product, where that changes no bit; None where it would.

        A power of two is exact, and float32 and float64 products are not rounded to a narrower dtype on the way.
        """
        spec, q = self.spec, self.given.q
        if "scores" in self.keep or spec.scale_after_mask or spec.scale == "none" or q is None:
            return None
        if spec.soft_cap is not None:
            return None
        if q.dtype not in (torch.float32, torch.float64):
            return None
        factor = 1 / math.sqrt(q.shape[-1]) if spec.scale == "auto" else float(spec.scale)
        return factor if abs(math.frexp(factor)[0]) == 0.5 and 2**-24 <= abs(factor) <= 2**24 else None

    def _scaled(self, cells: Tensor) -> Tensor:
        d_head = 1 if self.given.q is None else self.given.q.shape[-1]  # typed scores have no auto
        _scale(cells, self.spec.scale, d_head)
        cap = self.spec.soft_cap
        if cap is None:
            return cells
        return (cells / cap).tanh() * cap if self._recorded else cells.div_(cap).tanh_().mul_(cap)

    # ------------------------------------------------------------------------------------------------------- dropout

    def _keep_mask(self, shape: torch.Size) -> Tensor:
        spec = self.spec
        batch, _, n_columns = shape
        rows, n_queries = self.setting.rows, self.setting.n_queries
        kept = self._drawn_keep
        if kept is None and spec.dropout_generator == "torch":
            whole = (batch, n_queries, n_columns)
            kept = dropout.torch_draws(spec.dropout_seed, whole, spec.dropout).keep(self.head)
        if kept is not None:
            kept = kept[:, rows.start : rows.stop : rows.step]
            return kept.to(_device(self.given.q, self.given.typed))
        tiles = [
            dropout.keep_portable(
                seed=spec.dropout_seed, site=spec.dropout_site, batch_item=item, head=self.head, n_queries=n_queries,
                n_columns=n_columns, p=spec.dropout, rows=rows, device=_device(self.given.q, self.given.typed),
            )
            for item in range(batch)
        ]  # fmt: skip
        return torch.stack(tiles) if batch > 1 else tiles[0][None]


def _dropped(cells: Tensor, kept: Tensor, p: float) -> Tensor:
    """``cells`` × kept ÷ (1 − p) as ``nn.Dropout`` rounds it, in place. Dropped cells are 0; a NaN stays NaN."""
    factor = torch.ones((), dtype=cells.dtype).div_(1 - p).item()
    return cells.mul_(kept.to(cells.dtype)).mul_(factor)


def _softmax(cells: Tensor) -> Tensor:
    """Softmax over the keys, in place where no gradient is recorded."""
    if cells.requires_grad:
        return torch.softmax(cells, -1)
    if cells.device.type == "cpu":
        return torch.softmax(cells, -1, out=cells)  # row by row, each element read before it is written
    return cells.copy_(torch.softmax(cells, -1))


def _map_shape(q: Tensor | None, k: Tensor | None, typed: Tensor | None) -> tuple[int, int]:
    if typed is not None:
        return typed.shape[-2], typed.shape[-1]
    if q is None or k is None:
        raise ValueError("give q and k, or scaled_scores, or weights")
    return q.shape[1], k.shape[1]


def _device(q: Tensor | None, typed: Tensor | None) -> torch.device:
    given = q if q is not None else typed
    assert given is not None  # noqa: S101
    return given.device


@lru_cache(maxsize=2)
def _visible_blocks(
    mask: Mask, rows: range, device: torch.device
) -> list[tuple[int, int, int, int, list[tuple[int, int, Tensor]]]]:
    """Blocks of ``rows``: first and end, the columns they see at all, and the cells within that are hidden.

    The planes around the diagonal take L × `_BLOCK` bytes; asked for head by head, they are made once.
    """
    blocks = []
    with torch.inference_mode(mode=False):
        tops = [top for top in range(0, len(rows), _BLOCK) if top == 0 or len(rows) - top >= _LEAST]
        for top, end in zip(tops, (*tops[1:], len(rows)), strict=True):
            block = rows[top:end]
            lo, hi = mask.span(block)
            if int(mask.n_visible(block).min()) == 0:
                lo, hi = 0, mask.n_keys  # a row that sees nothing is NaN throughout
            edges = [(a, b, mask.hidden(block, (a, b), device)) for a, b in mask.edges(block, (lo, hi))]
            blocks.append((top, top + len(block), lo, hi, edges))
    return blocks


def turns_fill(spec: AttentionSpec) -> bool:
    """Whether scaling after the mask makes something else of −∞: a factor of 0 or below."""
    return acts_on_scores(spec) and spec.scale_after_mask and isinstance(spec.scale, float | int) and spec.scale <= 0


def fill_value(spec: AttentionSpec) -> float:
    """What the spec's dtype makes of its fill: −10⁹ is −∞ in float16."""
    return _held(spec.fill, spec.dtype)


def acting_fill(spec: AttentionSpec) -> float:
    """What the softmax meets where a cell is filled: scaled with the scores where the scale comes after the mask.

    Rounded to the dtype as every score is, once held and once scaled: in float16 twice −60,000 is −∞. Zero times −∞
    is NaN. Where top-k alone hides, the fill is −∞.
    """
    fill = spec.fill if spec.fills else -math.inf
    if not spec.scale_after_mask:
        return _held(fill, spec.dtype)
    return _scaled_fill(fill, spec.dtype, spec.scale, spec.d_head or 1)


def may_weigh_hidden(spec: AttentionSpec) -> bool:
    """Whether the softmax meets a number where the mask fills, so that hidden cells may weigh something.

    A number that is *added* is scaled with its score, and may be one where alone it would be too large.
    """
    return spec.fills and math.isfinite(fill_value(spec) if spec.mask == "add" else acting_fill(spec))


def lets_through(spec: AttentionSpec) -> bool:
    """Whether what is written over hidden scores, or added to them, leaves them a weight: beside 0, in the dtype."""
    return may_weigh_hidden(spec) and acting_fill(spec) >= _FAINTEST[spec.dtype]


@lru_cache(maxsize=64)
def _held(number: float, dtype: str) -> float:
    return float(torch.tensor(number, dtype=torch.float64).to(getattr(torch, dtype)))


@lru_cache(maxsize=64)
def _scaled_fill(fill: float, dtype: str, scale: float | str, d_head: int) -> float:
    cell = torch.tensor([_held(fill, dtype)], dtype=getattr(torch, dtype))
    return float(_scale(cell, scale, d_head))


def _scale(cells: Tensor, scale: float | str, d_head: int) -> Tensor:
    """In place: ``auto`` divides by √d_head as the book does; a number is a factor, as in SDPA's ``scale``."""
    if scale == "auto":
        return cells.div_(math.sqrt(d_head))
    return cells if isinstance(scale, str) else cells.mul_(scale)


@lru_cache(maxsize=1)
def _shared_hidden(mask: Mask, device: torch.device) -> Tensor:
    with torch.inference_mode(mode=False):  # what differentiates may meet it later
        return mask.hidden(device=device)


@lru_cache(maxsize=1)
def _shared_triangle(mask: Mask, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The visible cells as ones (Q, K)."""
    with torch.inference_mode(mode=False):
        return (~mask.hidden(device=device)).to(dtype)
