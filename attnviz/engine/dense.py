"""Stages that fit: computed whole, head by head, the query × key ones into one kept buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import torch
from torch import Tensor

from attnviz.attention.devices import Backend
from attnviz.attention.pooling import Panel, Pooled
from attnviz.attention.stages import HeadStages, fill_value, head_stages
from attnviz.attention.tiles import Cancelled, Workspace
from attnviz.engine.crew import Crew, one_torch_thread
from attnviz.engine.opened import Opened, Opener
from attnviz.spec import JOINT_STAGES, QUERY_KEY_STAGES, AttentionSpec, masked_at, padded_keys

_BLOCK_CELLS: Final = 1 << 20
"""Cells of the rows that are computed at a time where a map would not fit: some milliseconds of work."""

_CREW_CELLS: Final = 1 << 20
"""Fewer cells are computed before a thread is awake."""


class Dense:
    """Whole stages of heads. Thread: the engine's."""

    def __init__(self, backend: Backend, opener: Opener, crew: Crew) -> None:
        self._backend, self._opener, self._crew = backend, opener, crew
        self._buffer: Tensor | None = None
        self._mixed: tuple[AttentionSpec, Tensor] | None = None
        self.complete: tuple[AttentionSpec, str] | None = None
        """The spec and stage whose maps all stand in the kept buffer."""

    def forget(self) -> None:
        """Let go of everything kept."""
        self._buffer = self._mixed = self.complete = None

    def head(
        self, spec: AttentionSpec, head: int, keep: set[str], opened: Opened, out: Tensor | None = None,
        rows: range | None = None,
    ) -> HeadStages:  # fmt: skip
        """The stages ``keep`` of one head, (B, Q, K) and so on; ``out`` takes the last query × key stage of them."""
        given = self._opener.head_inputs(spec, head, opened, values=not keep <= QUERY_KEY_STAGES)
        mask = self._opener.mask(spec, opened)
        return self._backend.run(
            spec.device, lambda: head_stages(spec, head=head, keep=keep, out=out, mask=mask, rows=rows, **given)
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
        keep = {stage}
        if spec.mask == "three-step" and stage in ("weights", "dropped_weights"):
            keep.add("row_sums")
        if stage == "dropped_weights" and spec.mask == "neg-inf" and fill_value(spec) != -math.inf:
            keep.add("weights")  # which tell what the fill let through
        if self.complete != (spec, stage):
            self.complete = None
        out = self._out(spec, opened, head) if stage in QUERY_KEY_STAGES else None
        return self.panel_of(spec, stage, head, self.head(spec, head, keep, opened, out))

    def panels(
        self, spec: AttentionSpec, stage: str, order: Sequence[int], opened: Opened, cancelled: Cancelled,
        pool: Callable[[Panel], Pooled],
    ) -> Iterator[tuple[Panel, Pooled] | None]:  # fmt: skip
        """`panel` of the heads in ``order`` and its pixels by ``pool``, as they come from the crew.

        None where nothing has come for a while.
        """
        one_by_one = spec.drops and spec.dropout_generator == "torch"  # whose draws follow each other
        cells = len(order) * opened.inputs.n_queries * len(opened.inputs.tokens)
        small = len(order) == 1 or cells < _CREW_CELLS
        if one_by_one or small or stage not in QUERY_KEY_STAGES or spec.device != "cpu":
            for head in order:
                panel = self.panel(spec, stage, head, opened, cancelled)
                if panel is None:
                    return
                yield panel, self._backend.run(spec.device, partial(pool, panel))
            return
        self._out(spec, opened, 0)  # what all heads share is made before they start
        self._opener.head_inputs(spec, 0, opened, values=False)
        with one_torch_thread():

            def job(head: int, _space: Workspace, _stopped: Cancelled) -> tuple[Panel, Pooled] | None:
                found = self.panel(spec, stage, head, opened)
                return None if found is None else (found, pool(found))

            results = self._crew.map(partial(job, head) for head in order)
            for result in results:
                if cancelled():
                    results.close()
                    return
                yield result if isinstance(result, tuple) else None

    def panel_of(self, spec: AttentionSpec, stage: str, head: int, result: HeadStages) -> Panel:
        """The panel of a stage that was computed: masked and dropped cells only where they already act."""
        cells = result.stages[stage][0]
        masked = result.masked if masked_at(spec, stage) else None
        finite_fill = spec.mask == "neg-inf" and fill_value(spec) != -math.inf
        if masked is not None and finite_fill and stage in ("weights", "dropped_weights"):
            before = result.stages.get("weights", result.stages[stage])[0]
            masked = masked & (before == 0)  # a finite fill lets hidden cells weigh something
        dropped = None
        if stage in ("dropped_weights", "dropped_context") and result.kept is not None:
            dropped = ~result.kept[0]
        padded = (0, 0) if masked is None else padded_keys(spec.mask_shape, cells.shape[-1])
        visible = result.visible if masked_at(spec, stage) else None
        return Panel(f"head:{head}", head, cells, masked, dropped, result.stages.get("row_sums"), padded, visible)

    def _out(self, spec: AttentionSpec, opened: Opened, head: int) -> Tensor:
        """Head's part of the kept buffer (B, Q, K); one buffer per shape, written again by every computation."""
        device, dtype = self._backend.torch_device(spec.device), getattr(torch, spec.dtype)
        shape = (spec.num_heads, spec.batch, opened.inputs.n_queries, len(opened.inputs.tokens))
        kept = self._buffer
        if kept is None or kept.shape != shape or kept.dtype != dtype or kept.device != device:
            self._buffer = None  # let the old one go before asking for the new one
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
        self,
        spec: AttentionSpec,
        head: int,
        names: tuple[str, ...],
        opened: Opened,
        cancelled: Cancelled,
        *,
        rows: range | None,
    ) -> Iterator[Panel]:
        """A panel of each stage of one head, named ``thumbnail:STAGE``, from some of its ``rows`` or all of them."""
        per_head = {name for name in names if name not in JOINT_STAGES}
        result = self.head(spec, head, per_head, opened, rows=rows)
        for name in names:
            if cancelled():
                return
            if name in per_head:
                panel = self.panel_of(spec, name, head, result)
                panel.name = f"thumbnail:{name}"
                yield panel
            elif name == "inputs" or rows is None:
                cells = self.joint_stage(spec, name, opened, cancelled)
                if cells is None:
                    return
                yield Panel(f"thumbnail:{name}", None, cells)
