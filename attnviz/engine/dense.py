"""Stages that fit: computed whole, head by head, the query × key ones into one kept buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import torch
from torch import Tensor

from attnviz.attention.devices import Backend
from attnviz.attention.masks import Mask
from attnviz.attention.pooling import Panel
from attnviz.attention.stages import HeadStages, head_stages, may_weigh_hidden
from attnviz.attention.tiles import Cancelled
from attnviz.engine.opened import Opened, Opener, storages_of
from attnviz.spec import JOINT_STAGES, QUERY_KEY_STAGES, AttentionSpec, is_typed, masked_at, padded_keys

_BLOCK_CELLS: Final = 1 << 20
"""Cells of the rows that are computed at a time where a map would not fit: some milliseconds of work."""

_TOGETHER_CELLS: Final = 2 << 20
"""Cells of the heads that are computed in one go: some milliseconds, after which an edit can have its turn, and little
memory beside the buffer, since torch copies what is not contiguous."""


class Dense:
    """Whole stages of heads. Thread: the engine's."""

    def __init__(self, backend: Backend, opener: Opener) -> None:
        self._backend, self._opener = backend, opener
        self._buffer: Tensor | None = None
        self._mixed: tuple[AttentionSpec, Tensor] | None = None
        self._clean: tuple[Mask | None, set[int]] = None, set()  # heads whose hidden weights stand as 0 in the buffer
        self.complete: tuple[AttentionSpec, str] | None = None
        """The spec and stage whose maps all stand in the kept buffer."""

    def forget(self) -> None:
        """Let go of everything kept."""
        self._buffer = self._mixed = self.complete = None
        self._clean = None, set()

    @property
    def storages(self) -> dict[int, int]:
        """Bytes of the kept buffer and of the contexts, by address."""
        return storages_of((self._buffer, None if self._mixed is None else self._mixed[1]))

    def head(
        self, spec: AttentionSpec, head: int, keep: set[str], opened: Opened, out: Tensor | None = None,
        rows: range | None = None,
    ) -> HeadStages:  # fmt: skip
        """The stages ``keep`` of one head, (B, Q, K) and so on; ``out`` takes the last query × key stage of them."""
        given = self._opener.head_inputs(spec, head, opened, values=not keep <= QUERY_KEY_STAGES)
        mask = self._opener.mask(spec, opened)
        return self._backend.run(
            spec.device,
            lambda: head_stages(
                spec,
                head=head,
                keep=keep,
                out=out,
                mask=mask,
                rows=rows,
                q=given.get("q"),
                k=given.get("k"),
                v=given.get("v"),
                scaled_scores=given.get("scaled_scores"),
                weights=given.get("weights"),
                drawn_keep=given.get("keep"),
            ),
        )

    def vectors(
        self, spec: AttentionSpec, head: int, name: str, opened: Opened, cancelled: Cancelled = lambda: False
    ) -> Tensor | None:
        """A stage (B, Q, D) of one head without its map in memory, a block of rows at a time; None if cancelled."""
        n_queries, n_keys = opened.inputs.n_queries, len(opened.inputs.tokens)
        step = max(1, _BLOCK_CELLS // (n_keys * spec.batch))
        draws_whole = spec.drops and spec.dropout_generator == "torch"
        if step >= n_queries or name in ("queries", "keys", "values") or draws_whole:
            return self.head(spec, head, {name}, opened).stages[name]
        parts = []
        for first in range(0, n_queries, step):
            if cancelled():
                return None
            rows = range(first, min(first + step, n_queries))
            parts.append(self.head(spec, head, {name}, opened, rows=rows).stages[name])
        return torch.cat(parts, 1)

    def panel(
        self, spec: AttentionSpec, stage: str, head: int, opened: Opened, cancelled: Cancelled = lambda: False
    ) -> Panel | None:
        """One head's stage, first batch item; a query × key stage lies in the kept buffer. None once cancelled."""
        if stage not in QUERY_KEY_STAGES and not (spec.drops and stage == "dropped_context"):
            cells = self.vectors(spec, head, stage, opened, cancelled)
            return None if cells is None else Panel(f"head:{head}", head, cells[0])
        keep = self._keep(spec, stage)
        out = self._out(spec, opened, head) if stage in QUERY_KEY_STAGES else None
        self._clean[1].discard(head)
        return self.panel_of(spec, stage, head, self.head(spec, head, keep, opened, out))

    def panels(
        self, spec: AttentionSpec, stage: str, order: Sequence[int], opened: Opened, cancelled: Cancelled
    ) -> Iterator[Panel]:
        """`panel` of the heads in ``order``, several at a time where they are computed alike; ends early if cancelled.

        A dozen heads in one product are a dozen times fewer calls, and torch's threads share them better than ours.
        """
        alike = (
            stage in QUERY_KEY_STAGES
            and not spec.drops
            and spec.batch == 1
            and spec.top_k is None  # which masks other cells in each head
            and not is_typed(spec.source)
        )
        one_map = opened.inputs.n_queries * len(opened.inputs.tokens)
        for heads in _runs(order, max(1, _TOGETHER_CELLS // one_map) if alike else 1):
            if cancelled():
                return
            if not alike:
                panel = self.panel(spec, stage, heads[0], opened, cancelled)
                if panel is None:
                    return
                yield panel
            else:
                yield from self._together(spec, stage, heads, opened)

    def _together(self, spec: AttentionSpec, stage: str, heads: range, opened: Opened) -> Iterator[Panel]:
        """Panels of neighbouring heads of one item, computed as the items of a batch."""
        keep = self._keep(spec, stage)
        q, k = self._opener.neighbours(spec, heads, opened)
        self._out(spec, opened, 0)
        buffer, mask = self._buffer, self._opener.mask(spec, opened)
        assert buffer is not None  # noqa: S101 (just made)
        out = buffer[heads.start : heads.stop, 0]
        clean = self._clean[0] is mask and keep == {"weights"} and self._clean[1].issuperset(heads)
        self._clean[1].difference_update(heads)
        result = self._backend.run(
            spec.device, lambda: head_stages(spec, head=heads[0], keep=keep, q=q, k=k, out=out, mask=mask, clean=clean)
        )
        if result.clean:
            self._clean = mask, (self._clean[1] if self._clean[0] is mask else set()) | set(heads)
        for place, head in enumerate(heads):
            own = {name: stage_of_all[place : place + 1] for name, stage_of_all in result.stages.items()}
            yield self.panel_of(spec, stage, head, replace(result, stages=own))

    @staticmethod
    def _keep(spec: AttentionSpec, stage: str) -> set[str]:
        """The stage, and what is told beside it."""
        keep = {stage}
        if spec.mask == "three-step" and stage in ("weights", "dropped_weights"):
            keep.add("row_sums")
        if stage == "dropped_weights" and may_weigh_hidden(spec):
            keep.add("weights")  # which tell what the fill let through
        return keep

    def panel_of(self, spec: AttentionSpec, stage: str, head: int, result: HeadStages) -> Panel:
        """The panel of a stage that was computed: masked and dropped cells only where they already act."""
        cells = result.stages[stage][0]
        masked = result.masked if masked_at(spec, stage) else None
        if masked is not None and may_weigh_hidden(spec) and stage in ("weights", "dropped_weights"):
            before = result.stages.get("weights", result.stages[stage])[0]
            masked = masked & (before == 0)  # a finite fill lets hidden cells weigh something
        dropped = None
        if stage in ("dropped_weights", "dropped_context") and result.kept is not None:
            dropped = ~result.kept[0]
        padded = (0, 0) if masked is None or spec.mask == "none" else padded_keys(spec.mask_shape, cells.shape[-1])
        visible = result.visible if masked_at(spec, stage) else None
        return Panel(f"head:{head}", head, cells, masked, dropped, result.stages.get("row_sums"), padded, visible)

    def _out(self, spec: AttentionSpec, opened: Opened, head: int) -> Tensor:
        """Head's part of the kept buffer (B, Q, K) to write to; one buffer per shape, whatever is computed.

        Its maps are nobody's as a whole from here on: a pass that is cancelled leaves two specs' side by side.
        """
        self.complete = None
        device, dtype = self._backend.torch_device(spec.device), getattr(torch, spec.dtype)
        shape = (spec.num_heads, spec.batch, opened.inputs.n_queries, len(opened.inputs.tokens))
        kept = self._buffer
        if kept is None or kept.shape != shape or kept.dtype != dtype or kept.device != device:
            self._buffer = None  # let the old one go before asking for the new one
            self._clean = None, set()
            self._buffer = kept = torch.empty(shape, dtype=dtype, device=device)
        return kept[head]

    # --------------------------------------------------------------------------------------------------- joint stages

    def joint_stage(self, spec: AttentionSpec, stage: str, opened: Opened, cancelled: Cancelled) -> Tensor | None:
        """``inputs``, ``joined`` or ``output`` (R, C) of the first batch item; None once cancelled."""
        if stage == "inputs":
            assert opened.embedded is not None  # noqa: S101
            return opened.embedded[0]
        contexts = self._contexts(spec, opened, cancelled)
        if contexts is None:
            return None
        joined, output = self.join(spec, contexts, opened)
        return (joined if stage == "joined" else output)[0]

    def join(self, spec: AttentionSpec, context: Tensor, opened: Opened) -> tuple[Tensor, Tensor]:
        """Joined heads and output (B, L, d_out) of contexts (B, H, L, d_head)."""
        module = opened.module
        assert module is not None  # noqa: S101
        return self._backend.run(spec.device, lambda: module.join(context))

    def _contexts(self, spec: AttentionSpec, opened: Opened, cancelled: Cancelled) -> Tensor | None:
        """Every head's context (B, H, Q, D) after dropout, kept while the spec stays; None once cancelled.

        Weights that stand in the kept buffer are mixed from there rather than computed again.
        """
        if self._mixed is not None and self._mixed[0] == spec:
            return self._mixed[1]
        last = "dropped_context" if spec.drops and spec.dropout_site == "context" else "context"
        weights = "dropped_weights" if spec.drops and spec.dropout_site == "weights" else "weights"
        kept = self._buffer if self.complete == (spec, weights) else None
        contexts = []
        for head in range(spec.num_heads):
            if cancelled():
                return None
            if kept is not None and last == "context":
                values = self._opener.head_inputs(spec, head, opened)["v"]
                assert values is not None  # noqa: S101
                contexts.append(self._backend.run(spec.device, partial(torch.bmm, kept[head], values)))
                continue
            context = self.vectors(spec, head, last, opened, cancelled)
            if context is None:
                return None
            contexts.append(context)
        self._mixed = spec, torch.stack(contexts, 1)
        return self._mixed[1]

    def thumbnails(
        self, spec: AttentionSpec, head: int, names: tuple[str, ...], opened: Opened, cancelled: Cancelled
    ) -> Iterator[Panel]:
        """A panel of each stage of one head, named ``thumbnail:STAGE``."""
        per_head = {name for name in names if name not in JOINT_STAGES}
        result = self.head(spec, head, per_head, opened)
        for name in names:
            if cancelled():
                return
            if name in per_head:
                panel = self.panel_of(spec, name, head, result)
                panel.name = f"thumbnail:{name}"
                yield panel
            else:
                cells = self.joint_stage(spec, name, opened, cancelled)
                if cells is None:
                    return
                yield Panel(f"thumbnail:{name}", None, cells)


def _runs(order: Sequence[int], most: int) -> Iterator[range]:
    """``order`` in runs of neighbouring heads, at most so many in one; a head that is wanted first comes alone."""
    first = 0
    while first < len(order):
        end = first + 1
        alone = first == 0 and order[0] != 0
        while not alone and end < len(order) and end - first < most and order[end] == order[end - 1] + 1:
            end += 1
        yield range(order[first], order[first] + end - first)
        first = end
