"""The border from torch to NumPy: a request goes in, a stream of frozen frames comes out.

`Engine.stream` is a generator; each yield is a result and a point at which it can be abandoned. A map that fits is
computed whole into one kept buffer; a longer one in tiles, first coarse, then exact. An engine keeps what the next
request is likely to need again: the module, queries and keys, log-sum-exps, pixels. Thread: one at a time.
"""

from __future__ import annotations

import copy
import os
import time
import weakref
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
import numpy as np
import torch
from torch import Tensor

from attnviz.attention.devices import Backend, DeviceError, TorchBackend
from attnviz.attention.pooling import Panel, Pooled, Region
from attnviz.attention.remarks import rounding_remarks
from attnviz.attention.tiles import Cancelled
from attnviz.engine import probes
from attnviz.engine.crew import Crew
from attnviz.engine.dense import Dense
from attnviz.engine.errors import ComputationError, explained, out_of_memory
from attnviz.engine.framing import Framer
from attnviz.engine.long import WHOLE_MAP_PIXELS, LongMaps
from attnviz.engine.memory import DENSE_BYTES, Budget
from attnviz.engine.opened import Opened, Opener
from attnviz.engine.outlining import outline_of
from attnviz.engine.tiling import Tiling
from attnviz.files import FileProblem
from attnviz.frames import (
    Arrays,
    DeviceInfo,
    Finished,
    Frame,
    Message,
    Outline,
    Probe,
    ProbeAnswer,
    Progress,
    RowAnswer,
    RowQuestion,
    RowStory,
    level_for,
)
from attnviz.spec import (
    JOINT_STAGES,
    QUERY_KEY_STAGES,
    AttentionSpec,
    Request,
    Viewport,
    stages_of,
)


@dataclass(slots=True, eq=False)
class _Shown:
    """The stage on the screen: its panels so far and their pixels, or its tiles."""

    key: tuple[AttentionSpec, str]
    generation: int
    opened: Opened
    tiling: Tiling | None = None
    panels: dict[str, Panel] = field(default_factory=dict)
    complete: bool = False
    pooled: dict[str, Pooled] = field(default_factory=dict)
    pooled_for: object = None
    remarks: tuple[str, ...] = ()


class Engine:
    """Computes what is looked at. ``budget_bytes`` None is a quarter of the device's free memory at each request.

    ``spare_cores`` are left to others, such as the thread that paints, while requests come; torch counts threads per
    thread, so it holds for the thread that makes the engine. ``dense_bytes`` is the size from which maps are computed
    in tiles.
    """

    def __init__(
        self, backend: Backend | None = None, budget_bytes: int | None = None, *, spare_cores: int = 0,
        dense_bytes: int = DENSE_BYTES,
    ) -> None:  # fmt: skip
        if spare_cores:
            torch.set_num_threads(max(1, torch.get_num_threads() - spare_cores))
        self._backend: Backend = backend or TorchBackend()
        self.budget_bytes: int | None = budget_bytes
        self._dense_bytes = dense_bytes
        self._opener = Opener(self._backend)
        self._crew = Crew(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
                          spare_cores)  # fmt: skip
        self._dense = Dense(self._backend, self._opener)
        self._rows = Dense(self._backend, self._opener)  # keeps no map: answers about rows do not write over a picture
        weakref.finalize(self, self._crew.close)  # for those who just let go of an engine
        self._long = LongMaps(self._backend, self._opener, self._crew)
        self._shown: _Shown | None = None

    def beside(self) -> Engine:
        """An engine that shares what this one keeps, but has a picture of its own, as for an export.

        The two take turns on one thread.
        """
        other = copy.copy(self)
        other._shown, other._dense = None, Dense(self._backend, self._opener)  # noqa: SLF001
        return other

    def close(self) -> None:
        """Stop the crew's threads, those of engines beside this one too."""
        self._crew.close()

    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices there are, the CPU first, with names and memory."""
        return self._backend.devices()

    # ---------------------------------------------------------------------------------------------------- pictures

    def stream(self, request: Request, cancelled: Cancelled = lambda: False) -> Generator[Message | None, None, None]:
        """Outline, frames, `Finished`, then what else is wanted: thumbnails, the rest of a map.

        Ends early once ``cancelled()``. None is a point at which nothing has come, but others may have their turn.
        Raises `ComputationError` where a device fails or the picture cannot fit, before allocating anything large.
        """
        started = time.perf_counter()
        steps = self._steps(request, cancelled, started)
        try:
            while True:
                with torch.inference_mode():  # per step: a generator must not hold a mode of the thread that drives it
                    try:
                        message = next(steps)
                    except StopIteration:
                        return
                    except DeviceError as problem:
                        raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
                    except (torch.OutOfMemoryError, MemoryError) as error:
                        self.forget()
                        raise out_of_memory(request.spec, error) from error
                    except (ComputationError, FileProblem):
                        raise
                    except RuntimeError as error:
                        raise explained(request.spec, error) from error
                yield message
        finally:
            steps.close()

    def _steps(self, request: Request, cancelled: Cancelled, started: float) -> Generator[Message | None, None, None]:
        spec, view = request.spec, request.view
        self._backend.torch_device(spec.device)
        budget = self._budget(spec)
        long = view.stage in QUERY_KEY_STAGES and not budget.fits
        held = budget.check((view.stage,), long=long)
        opened = self._opener.open(spec, in_memory=not budget.maps_queries)
        if cancelled():
            return
        outline = outline_of(request, opened.inputs, opened.module)
        yield outline
        shown = self._shown_for(request, opened)
        framer = Framer(view, request.viewport, request.generation, n_keys=outline.n_keys, n_future=self._n_future(
            spec, outline, opened))  # fmt: skip
        if long:
            yield from self._long_frames(request, shown, framer, budget, cancelled)
        else:
            yield from self._dense_frames(request, outline, shown, framer, cancelled)
        if cancelled():
            return
        shown.complete = True
        if long:
            held += self._long.nbytes
        yield Finished(request.generation, time.perf_counter() - started, held, budget.budget, shown.remarks)
        if request.viewport.thumbnail:
            yield from self._thumbnails(request, opened, cancelled)
        if shown.tiling is not None and not framer.region(shown.tiling.shape).covers(shown.tiling.shape):
            yield from self._rest_of_map(request, shown, framer, cancelled)

    def _dense_frames(
        self, request: Request, outline: Outline, shown: _Shown, framer: Framer, cancelled: Cancelled
    ) -> Iterator[Message | None]:
        spec = request.spec
        if framer.pooled_for != shown.pooled_for:
            shown.pooled, shown.pooled_for = {}, framer.pooled_for
        for done, panel in enumerate(self._panels(shown, request, cancelled), 1):
            pooled = shown.pooled.get(panel.name)
            if pooled is None:
                pooled = self._backend.run(request.spec.device, partial(framer.pool, panel))
                shown.pooled[panel.name] = pooled
            yield from framer.frames(panel.name, panel.head, pooled)
            yield Progress(request.generation, done, len(outline.panels))
            if cancelled():
                return
        yield from framer.recoloured()
        if request.view.stage in QUERY_KEY_STAGES:
            self._dense.complete = shown.key
        if not shown.remarks:
            panels = [panel for panel in shown.panels.values() if panel.row_sums is not None]
            shown.remarks = rounding_remarks(spec, [_sums_of_sighted(panel) for panel in panels])

    def _shown_for(self, request: Request, opened: Opened) -> _Shown:
        key = (request.spec, request.view.stage)
        if self._shown is None or self._shown.key != key:
            self._shown = _Shown(key, request.generation, opened)
        self._shown.generation = request.generation
        return self._shown

    def _panels(self, shown: _Shown, request: Request, cancelled: Cancelled) -> Iterator[Panel]:
        """The stage's panels, wanted heads first; those that stand in the kept buffer are not computed again."""
        spec, stage, opened = request.spec, request.view.stage, shown.opened
        if stage in JOINT_STAGES:
            if "all" not in shown.panels:
                cells = self._dense.joint_stage(spec, stage, opened, cancelled)
                if cells is None:
                    return
                shown.panels["all"] = Panel("all", None, cells)
            yield shown.panels["all"]
            return
        order = _order(spec, request.viewport)
        missing = []
        for head in order:
            panel = shown.panels.get(f"head:{head}")
            if panel is None:
                missing.append(head)
            else:
                yield panel
        for panel in self._dense.panels(spec, stage, missing, opened, cancelled):
            shown.panels[panel.name] = panel
            yield panel

    def _n_future(self, spec: AttentionSpec, outline: Outline, opened: Opened) -> int:
        """Cells that the mask would hide and that stay visible."""
        if outline.future_hidden or not outline.has_future:
            return 0
        mask = self._opener.mask(msgspec.structs.replace(spec, mask="neg-inf"), opened)
        return mask.count_hidden() if mask is not None else 0

    # -------------------------------------------------------------------------------------------------------- long maps

    def _long_frames(
        self, request: Request, shown: _Shown, framer: Framer, budget: Budget, cancelled: Cancelled
    ) -> Iterator[Message | None]:
        spec, view, viewport = request.spec, request.view, request.viewport
        per_row = view.norm == "per-row"
        means = view.pooling != "max" and view.norm in ("per-row", "uniform")
        shown.tiling = tiling = self._long.tiling(
            spec, view.stage, shown.opened, per_row=per_row, means=means, budget_bytes=budget.tile_bytes
        )
        region, finer = _regions(framer, tiling)
        order = _order(spec, viewport)
        sent: set[int] = set()
        preview = 0
        for advance in self._long.compute(tiling, finer, order, cancelled):
            if advance is None:
                yield None
                continue
            for head in advance.heads:
                yield from self._long_frame(tiling, head, finer, region, request, framer)
                sent.add(head)
            if advance.preview != preview:
                preview = advance.preview
                yield from framer.recoloured()
            yield Progress(request.generation, advance.done, advance.total, advance.preview, advance.previews)
            if cancelled():
                return
        for head in order:
            if head not in sent:
                yield from self._long_frame(tiling, head, finer, region, request, framer)
        yield from framer.recoloured()
        if view.stage in ("weights", "dropped_weights") and spec.mask == "three-step":
            sums = [one.row_sums() for one in self._long.heads(spec, view.stage, shown.opened)]
            shown.remarks = rounding_remarks(spec, [found for found in sums if found is not None])

    def _long_frame(
        self, tiling: Tiling, head: int, computed: Region, region: Region, request: Request, framer: Framer
    ) -> Iterator[Message]:
        factor = request.view.norm if request.view.norm in ("uniform", "per-row") else "plain"
        shown = replace(computed, level=region.level) if computed.level != region.level else computed
        pooled = tiling.picture(head, computed, shown, request.view.pooling, factor)
        if pooled is None:
            return
        if request.view.pooling == "max":  # the range is the whole map's, as far as it is known
            low, high = tiling.extent(head, factor)
            pooled = replace(pooled, low=np.fmin(pooled.low, low), high=np.fmax(pooled.high, high))
        yield from framer.frames(f"head:{head}", head, pooled)

    def _rest_of_map(
        self, request: Request, shown: _Shown, framer: Framer, cancelled: Cancelled
    ) -> Iterator[Message | None]:
        """Go on with the whole map behind a window that stands, so that zooming out finds it."""
        tiling = shown.tiling
        assert tiling is not None  # noqa: S101 (long maps have one)
        rows, cols = tiling.shape
        region = Region((0, rows), (0, cols), _whole_map_level(tiling.shape, 1 << 30))
        order = _order(request.spec, request.viewport)
        whole = msgspec.structs.replace(request.viewport, rows=None, cols=None)
        n_keys = len(shown.opened.inputs.tokens)
        behind = Framer(request.view, whole, request.generation, n_keys=n_keys, n_future=0)
        coarse = behind.region(tiling.shape)
        coarse = replace(coarse, level=max(coarse.level, region.level))
        window = framer.region(tiling.shape)
        for advance in self._long.compute(tiling, region, order, cancelled, window):
            if cancelled():
                return
            if advance is None or not advance.total:
                yield None
                continue
            if order[0] in advance.heads:  # the overview that a small map shows
                yield from self._long_frame(tiling, order[0], region, coarse, request, behind)
            yield Progress(request.generation, advance.done, advance.total, background=True)
        for head in order:
            yield from self._long_frame(tiling, head, region, coarse, request, behind)
        for head in _order(request.spec, request.viewport):
            yield from self._long_frame(tiling, head, window, window, request, framer)
        yield from framer.recoloured()

    # ------------------------------------------------------------------------------------------------------ thumbnails

    def _thumbnails(self, request: Request, opened: Opened, cancelled: Cancelled) -> Iterator[Frame]:
        """A small frame of each stage of one head (the first wanted one), last of all; of a long map some rows."""
        spec, viewport, side = request.spec, request.viewport, request.viewport.thumbnail
        n_queries, n_keys = opened.inputs.n_queries, len(opened.inputs.tokens)
        head = request.view.head if request.view.head is not None else _order(spec, viewport)[0]
        rows = None
        if not self._budget(spec).fits:
            step = max(1, n_queries // max(8, min(side, (1 << 20) // n_keys)))
            rows = range(step - 1, n_queries, step)
        for panel in self._dense.thumbnails(spec, head, stages_of(spec), opened, cancelled, rows=rows):
            view = msgspec.structs.replace(request.view, stage=panel.name.removeprefix("thumbnail:"), pooling="max")
            framer = Framer(view, Viewport(pixels=(side, side)), request.generation, n_keys=n_keys, n_future=0)
            for frame in framer.frames(panel.name, panel.head, framer.pool(panel)):
                yield replace(frame, exact=rows is None)

    # ------------------------------------------------------------------------------------------------ exact numbers

    def probe(self, probe: Probe) -> Iterator[ProbeAnswer | RowAnswer]:
        """Exact numbers of one cell, the head asked for first: an answer as soon as one head is known, then of all.

        With ``whole_row`` that head's row follows. Nothing where the picture is another's.
        """
        shown = self._shown
        if shown is None or shown.generation != probe.generation:
            return
        spec, stage = shown.key
        if shown.tiling is None:
            answers = probes.dense_answers(spec, stage, shown.panels, probe)
        else:
            answers = probes.long_answers(self._long, self._long.heads(spec, stage, shown.opened), probe)
        while True:
            with torch.inference_mode():
                answer = next(answers, None)
            if answer is None:
                return
            yield answer

    def row_story(self, question: RowQuestion) -> RowStory | None:
        """Every stage of a row, now and in the state before; None where the spec has no such row.

        Raises `ComputationError` where a device fails.
        """
        with torch.inference_mode():
            try:
                place = question.row, question.head
                now, before = (
                    None if spec is None else probes.row_stages(self._rows, self._opener, spec, *place)
                    for spec in (question.spec, question.before)
                )
            except DeviceError as problem:
                raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
        if now is None:
            return None
        alike = before is not None and len(before.hidden) == len(now.hidden)
        return RowStory(question.generation, now, before if alike else None)

    # ---------------------------------------------------------------------------------------------------------- arrays

    def arrays(self, spec: AttentionSpec, cancelled: Cancelled = lambda: False) -> Arrays:
        """Every stage whole: (heads, queries, keys) and so on, a leading batch axis where the spec asks for one.

        float16 and float64 stay, bfloat16 becomes float32. Raises `ComputationError` if they cannot fit, before
        computing, and returns no stages once cancelled.
        """
        with torch.inference_mode():
            try:
                return self._arrays(spec, cancelled)
            except DeviceError as problem:
                raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
            except (torch.OutOfMemoryError, MemoryError) as error:
                self.forget()
                raise out_of_memory(spec, error) from error
            except (ComputationError, FileProblem):
                raise
            except RuntimeError as error:
                raise explained(spec, error) from error

    def _arrays(self, spec: AttentionSpec, cancelled: Cancelled) -> Arrays:
        self._backend.torch_device(spec.device)
        names = stages_of(spec)
        self._budget(spec).check(names, long=False)
        opened = self._opener.open(spec)
        per_head = {name for name in names if name not in JOINT_STAGES}
        results: list[dict[str, Tensor]] = []
        for head in range(spec.num_heads):
            if cancelled():
                return Arrays(opened.inputs.tokens)
            results.append(self._dense.head(spec, head, per_head, opened).stages)
        stages = {name: torch.stack([result[name] for result in results], 1) for name in names if name in per_head}
        if opened.module is not None:
            assert opened.embedded is not None  # noqa: S101
            last = "dropped_context" if "dropped_context" in stages else "context"
            joined, output = self._dense.join(spec, stages[last], opened)
            stages |= {"inputs": opened.embedded, "joined": joined, "output": output}
        arrays = {name: probes.file_array(stages[name] if spec.batch > 1 else stages[name][0]) for name in names}
        return Arrays(opened.inputs.tokens, arrays)

    # ------------------------------------------------------------------------------------------------------- keeping

    def forget(self) -> None:
        """Let go of everything kept, after a device ran out of memory."""
        self._opener.forget()
        self._dense.forget()
        self._long.forget()
        self._shown = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _budget(self, spec: AttentionSpec) -> Budget:
        was_set = bool(self.budget_bytes)
        free = self.budget_bytes or self._backend.free_bytes(spec.device) // 4
        return Budget(spec, free, was_set, self._dense_bytes)


def _sums_of_sighted(panel: Panel) -> Tensor:
    """Three-step's row sums (Q, 1); 1 for rows that see nothing, whose 0 is no fault of rounding."""
    assert panel.row_sums is not None  # noqa: S101 (the caller looked)
    sums = panel.row_sums[0]
    return sums if panel.visible is None else torch.where(panel.visible[:, None].to(sums.device) > 0, sums, 1.0)


def _order(spec: AttentionSpec, viewport: Viewport) -> list[int]:
    """All heads, those that the screen wants first; it may still show more of them than the spec has."""
    wanted = [head for head in viewport.heads or () if head < spec.num_heads]
    return wanted + [head for head in range(spec.num_heads) if head not in wanted]


def _regions(framer: Framer, tiling: Tiling) -> tuple[Region, Region]:
    """The cells that are shown at the screen's level, and the same at the level at which they are computed."""
    region = framer.region(tiling.shape)
    if not region.covers(tiling.shape):
        return region, region
    return region, Region(region.rows, region.cols, _whole_map_level(tiling.shape, region.level))


def _whole_map_level(shape: tuple[int, int], level: int) -> int:
    """The level at which a whole map is computed where ``level`` is shown."""
    return min(level, level_for(max(shape), WHOLE_MAP_PIXELS))
