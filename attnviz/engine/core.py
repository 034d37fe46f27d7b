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
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
import torch
from torch import Tensor

from attnviz.attention.devices import Backend, DeviceError, TorchBackend
from attnviz.attention.pooling import Panel, Pooled
from attnviz.attention.remarks import blind_remarks, rounding_remarks
from attnviz.attention.tiles import Cancelled
from attnviz.engine import probes
from attnviz.engine.crew import Crew, CrewClosed
from attnviz.engine.dense import Dense
from attnviz.engine.errors import ComputationError, explained, out_of_memory
from attnviz.engine.framing import Framer
from attnviz.engine.long import LongMaps
from attnviz.engine.long_pictures import LongPicture, heads_in_order
from attnviz.engine.memory import DENSE_BYTES, Budget
from attnviz.engine.opened import Opened, Opener
from attnviz.engine.outlining import outline_of
from attnviz.engine.thumbnails import long_thumbnails
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
    RowStages,
    RowStory,
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
        self._long = LongMaps(self._backend, self._opener)
        weakref.finalize(self._long, self._crew.close)  # for those who let go of an engine and of all beside it
        self._shown: _Shown | None = None

    def beside(self) -> Engine:
        """An engine that shares what this one keeps, but has a picture of its own, as for an export.

        The two take turns on one thread, between two messages of a stream at the earliest; the crew's threads end when
        either is closed, or when nobody holds either.
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

    def stream(
        self, request: Request, cancelled: Cancelled = lambda: False, *, unfinished: bool = True
    ) -> Generator[Message | None, None, None]:
        """Outline, frames, `Finished`, then what else is wanted: thumbnails, the rest of a map.

        Ends early once ``cancelled()``. None is a point at which nothing has come, but others may have their turn:
        another stream of this engine or of one beside it too. Without ``unfinished`` the frames before `Finished` are
        exact ones alone, of what was asked for. Raises `ComputationError` where a device fails, the picture cannot fit
        (before allocating anything large) or the engine is closed.
        """
        started = time.perf_counter()
        steps = self._steps(request, cancelled, started, unfinished=unfinished)
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
                    except CrewClosed as error:
                        raise ComputationError("The engine was closed.", "Make another one.") from error
                    except RuntimeError as error:
                        raise explained(request.spec, error) from error
                yield message
        finally:
            steps.close()

    def _steps(
        self, request: Request, cancelled: Cancelled, started: float, *, unfinished: bool
    ) -> Generator[Message | None, None, None]:
        spec, view = request.spec, request.view
        self._backend.torch_device(spec.device)
        budget = self._budget(spec)
        long = view.stage in QUERY_KEY_STAGES and not budget.fits
        held = budget.check((view.stage,), long=long)
        if self._shown is not None and self._shown.key != (spec, view.stage):
            self._shown = None  # it holds on to what was open
        if long:
            self._dense.forget()
            self._long.forget_but(spec)
        opened = self._opener.open(spec, in_memory=not budget.maps_queries, room=budget.beside(held))
        if cancelled():
            return
        outline = outline_of(request, opened.inputs, opened.module)
        yield outline
        shown = self._shown_for(request, opened)
        framer = Framer(view, request.viewport, request.generation, n_keys=outline.n_keys, n_future=self._n_future(
            spec, outline, opened))  # fmt: skip
        picture = self._long_picture(request, shown, framer, budget) if long else None
        if picture is None:
            yield from self._dense_frames(request, outline, shown, framer, cancelled)
        else:
            yield from picture.frames(cancelled, unfinished=unfinished)
            shown.remarks = picture.remarks()
        if cancelled():
            return
        memory = self._opener.storages | self._dense.storages | self._long.storages
        held = sum(memory.values()) + self._long.nbytes
        notes = blind_remarks(spec, view.stage, self._opener.mask(spec, opened))
        seconds = time.perf_counter() - started
        yield Finished(request.generation, seconds, held, budget.budget, shown.remarks, notes)
        if request.viewport.thumbnail:
            yield from self._thumbnails(request, opened, cancelled, long=not budget.fits)
        if picture is not None and picture.is_window:
            yield from picture.rest_of_map(cancelled)

    def _long_picture(self, request: Request, shown: _Shown, framer: Framer, budget: Budget) -> LongPicture:
        view = request.view
        shown.tiling = self._long.tiling(
            request.spec, view.stage, shown.opened, per_row=view.norm == "per-row",
            means=view.pooling != "max" and view.norm in ("per-row", "uniform"), budget_bytes=budget.tile_bytes,
        )  # fmt: skip
        return LongPicture(request, framer, shown.tiling, self._crew, len(shown.opened.inputs.tokens))

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
        order = heads_in_order(spec, request.viewport)
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
        """Cells that the mask would hide and that stay visible; -1 where nobody counts them."""
        if outline.future_hidden or not outline.has_future:
            return 0
        if spec.top_k is not None:  # some of them are cut with the smallest scores
            return -1
        mask = self._opener.mask(msgspec.structs.replace(spec, mask="neg-inf"), opened)
        return mask.count_hidden() if mask is not None else 0

    # ------------------------------------------------------------------------------------------------------ thumbnails

    def _thumbnails(
        self, request: Request, opened: Opened, cancelled: Cancelled, *, long: bool
    ) -> Iterator[Frame | None]:
        """A small frame of each stage of one head (the first wanted one), last of all; of a long map some rows."""
        spec, viewport, side = request.spec, request.viewport, request.viewport.thumbnail
        head = request.view.head if request.view.head is not None else heads_in_order(spec, viewport)[0]
        panels: Iterator[Panel | None]
        if long:
            panels = long_thumbnails(self._dense, spec, head, opened, side)
        else:
            panels = self._dense.thumbnails(spec, head, stages_of(spec), opened, cancelled)
        for panel in panels:
            if cancelled():
                return
            if panel is None:
                yield None
                continue
            view = msgspec.structs.replace(request.view, stage=panel.name.removeprefix("thumbnail:"), pooling="max")
            small = Viewport(pixels=(side, side))
            framer = Framer(view, small, request.generation, n_keys=len(opened.inputs.tokens), n_future=0)
            for frame in framer.frames(panel.name, panel.head, framer.pool(panel)):
                yield replace(frame, exact=not long)

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
            answers = probes.long_answers(self._long, shown.tiling.heads, probe)  # whatever is computed meanwhile
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
                now, before = (
                    None if spec is None else self._row_stages(spec, question.row, question.head)
                    for spec in (question.spec, question.before)
                )
            except DeviceError as problem:
                raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
        if now is None:
            return None
        alike = before is not None and len(before.hidden) == len(now.hidden)
        return RowStory(question.generation, now, before if alike else None)

    def _row_stages(self, spec: AttentionSpec, row: int, head: int) -> RowStages | None:
        return probes.row_stages(self._rows, self._opener, spec, row, head, fits=self._budget(spec).fits)

    # ---------------------------------------------------------------------------------------------------------- arrays

    def arrays(
        self, spec: AttentionSpec, cancelled: Cancelled = lambda: False,
        progress: Callable[[float], object] = lambda _share: None,
    ) -> Arrays:  # fmt: skip
        """Every stage whole: (heads, queries, keys) and so on, a leading batch axis where the spec asks for one.

        float16 and float64 stay, bfloat16 becomes float32. Raises `ComputationError` if they cannot fit, before
        computing, and returns no stages once cancelled, which is asked, and ``progress`` told, between heads.
        """
        with torch.inference_mode():
            try:
                return self._arrays(spec, cancelled, progress)
            except DeviceError as problem:
                raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
            except (torch.OutOfMemoryError, MemoryError) as error:
                self.forget()
                raise out_of_memory(spec, error) from error
            except (ComputationError, FileProblem):
                raise
            except RuntimeError as error:
                raise explained(spec, error) from error

    def _arrays(self, spec: AttentionSpec, cancelled: Cancelled, progress: Callable[[float], object]) -> Arrays:
        self._backend.torch_device(spec.device)
        names = stages_of(spec)
        self._budget(spec).check(names, long=False)
        opened = self._opener.open(spec)
        per_head = {name for name in names if name not in JOINT_STAGES}
        results: list[dict[str, Tensor]] = []
        for head in range(spec.num_heads):
            if cancelled():
                return Arrays(opened.inputs.tokens)
            progress(head / spec.num_heads)
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
