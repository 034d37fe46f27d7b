"""The border from torch to NumPy: a request goes in, a stream of frozen frames comes out.

`Engine.stream` is a generator; each yield is a result and a point at which it can be abandoned. An engine keeps what
the next request is likely to need again: the module, the projected queries, keys and values, the shown stage in one
kept buffer, and its pooled pixels, so that other colours recompute nothing else. Thread: one at a time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import msgspec
import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention import multihead
from attnviz.attention.devices import Backend, DeviceError, TorchBackend
from attnviz.attention.pooling import Panel, Pooled
from attnviz.attention.remarks import rounding_remarks
from attnviz.attention.stages import HeadStages, head_stages
from attnviz.frames import (
    Arrays,
    CellClass,
    DeviceInfo,
    Finished,
    Frame,
    Message,
    Probe,
    ProbeAnswer,
    Progress,
    Values,
)
from attnviz.framing import Framer
from attnviz.outlining import outline_of
from attnviz.spec import (
    JOINT_STAGES,
    QUERY_KEY_STAGES,
    WEIGHT_STAGES,
    AttentionSpec,
    Request,
    Viewport,
    has_module,
    masked_at,
    stages_of,
)

_BEFORE_SCORES = (
    "source", "num_heads", "d_model", "d_out", "implementation", "out_proj", "qkv_bias", "batch", "seed", "device",
    "dtype",
)  # fmt: skip
_ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
_OPENED_KEPT = 2  # the present computation and the one before it

Cancelled = Callable[[], bool]


class ComputationError(RuntimeError):
    """A computation that cannot give its picture: what happened, what to do, and details for who asks."""

    def __init__(self, sentence: str, advice: str, *, details: str = "", device_failed: bool = False) -> None:
        super().__init__(f"{sentence} {advice}".strip())
        self.sentence = sentence
        self.advice = advice
        self.details = details
        self.device_failed = device_failed


@dataclass(slots=True, eq=False)
class _Opened:
    """What stands before the scores: inputs (B, L, d_model), the module, and q, k, v once projected."""

    inputs: inputs.Inputs
    module: multihead.StackedHeads | multihead.SplitHeads | None = None
    embedded: Tensor | None = None
    projected: tuple[Tensor, Tensor, Tensor] | None = None  # (B, H, L, d_head) each


@dataclass(slots=True, eq=False)
class _Shown:
    """The stage on the screen: its panels so far, and their pixels by (region, row factor)."""

    key: tuple[AttentionSpec, str]
    generation: int
    panels: dict[str, Panel] = field(default_factory=dict)
    complete: bool = False
    pooled: dict[str, Pooled] = field(default_factory=dict)
    pooled_for: object = None
    remarks: tuple[str, ...] = ()


class Engine:
    """Computes what is looked at. ``budget_bytes`` None is a quarter of the device's free memory at each request.

    ``spare_cores`` are left to others, such as the thread that paints; torch counts threads per thread, so it holds
    for the thread that makes the engine.
    """

    def __init__(
        self, backend: Backend | None = None, budget_bytes: int | None = None, *, spare_cores: int = 0
    ) -> None:
        if spare_cores:
            torch.set_num_threads(max(1, torch.get_num_threads() - spare_cores))
        self._backend: Backend = backend or TorchBackend()
        self._budget_bytes = budget_bytes
        self._opened: OrderedDict[tuple[object, ...], _Opened] = OrderedDict()
        self._shown: _Shown | None = None
        self._mixed: tuple[AttentionSpec, Tensor] | None = None
        self._buffer: Tensor | None = None

    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices there are, the CPU first, with names and memory."""
        return self._backend.devices()

    # ---------------------------------------------------------------------------------------------------- pictures

    def stream(self, request: Request, cancelled: Cancelled = lambda: False) -> Iterator[Message]:
        """Outline, frames head by head, `Finished`, then thumbnails if asked for. Ends early once ``cancelled()``.

        Raises `ComputationError` where a device fails or the picture cannot fit, before allocating anything large.
        """
        started = time.perf_counter()
        steps = self._steps(request, cancelled, started)
        while True:
            with torch.inference_mode():  # per step: a generator must not hold a mode of the thread that drives it
                try:
                    message = next(steps, None)
                except DeviceError as problem:
                    raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
                except (torch.OutOfMemoryError, MemoryError) as error:
                    self.forget()
                    raise _out_of_memory(request.spec, error) from error
                except RuntimeError as error:
                    raise _explained(request.spec, error) from error
            if message is None:
                return
            yield message

    def _steps(self, request: Request, cancelled: Cancelled, started: float) -> Iterator[Message]:
        spec, view, viewport = request.spec, request.view, request.viewport
        self._backend.torch_device(spec.device)
        budget = self._budget(spec)
        held = self._check_memory(spec, (view.stage,), budget)
        opened = self._open(spec)
        if cancelled():
            return
        outline = outline_of(request, opened.inputs, opened.module)
        yield outline
        shown = self._shown_for(request)
        n_queries, n_keys = opened.inputs.n_queries, len(opened.inputs.tokens)
        n_future = 0 if outline.future_hidden or not outline.has_future else n_queries * (n_queries - 1) // 2
        framer = Framer(view, viewport, request.generation, n_keys=n_keys, n_future=n_future)
        for done, panel in enumerate(self._panels(shown, spec, view.stage, viewport, opened, cancelled), 1):
            if framer.pooled_for != shown.pooled_for:
                shown.pooled, shown.pooled_for = {}, framer.pooled_for
            pooled = shown.pooled.get(panel.name)
            if pooled is None:
                pooled = self._backend.run(spec.device, partial(framer.pool, panel))
                shown.pooled[panel.name] = pooled
            yield from framer.frames(panel, pooled)
            yield Progress(request.generation, done, len(outline.panels))
            if cancelled():
                return
        shown.complete = True
        if not shown.remarks:
            sums = [p.row_sums[0] for p in shown.panels.values() if p.row_sums is not None]
            shown.remarks = rounding_remarks(spec, sums)
        yield Finished(request.generation, time.perf_counter() - started, held, budget, shown.remarks)
        if viewport.thumbnail:
            yield from self._thumbnails(request, opened, cancelled)

    def _shown_for(self, request: Request) -> _Shown:
        key = (request.spec, request.view.stage)
        if self._shown is None or self._shown.key != key:
            self._shown = _Shown(key, request.generation)
        self._shown.generation = request.generation
        return self._shown

    def _panels(
        self, shown: _Shown, spec: AttentionSpec, stage: str, viewport: Viewport, opened: _Opened, cancelled: Cancelled
    ) -> Iterator[Panel]:
        """The stage's panels, wanted heads first; those that stand in the kept buffer are not computed again."""
        if stage in JOINT_STAGES:
            if "all" not in shown.panels:
                cells = self._joint_stage(spec, stage, opened, cancelled)
                if cells is None:
                    return
                shown.panels["all"] = Panel("all", None, cells)
            yield shown.panels["all"]
            return
        keep = {stage}
        if spec.mask == "three-step" and stage in ("weights", "dropped_weights"):
            keep.add("row_sums")
        order = _wanted_heads(spec, viewport)
        order += [head for head in range(spec.num_heads) if head not in order]
        for head in order:
            name = f"head:{head}"
            if name not in shown.panels:
                out = self._out(spec, opened, head) if stage in QUERY_KEY_STAGES else None
                result = self._head(spec, head, keep, opened, out)
                shown.panels[name] = _panel(spec, stage, head, result)
            yield shown.panels[name]

    def _head(
        self, spec: AttentionSpec, head: int, keep: set[str], opened: _Opened, out: Tensor | None = None
    ) -> HeadStages:
        """The stages ``keep`` of one head, (B, Q, K) and so on; ``out`` takes the last query × key stage of them."""
        given = self._head_inputs(spec, head, opened)
        return self._backend.run(spec.device, lambda: head_stages(spec, head=head, keep=keep, out=out, **given))

    def _head_inputs(self, spec: AttentionSpec, head: int, opened: _Opened) -> dict[str, Tensor | None]:
        like = {"device": self._backend.torch_device(spec.device), "dtype": getattr(torch, spec.dtype)}
        given = opened.inputs
        if opened.module is not None:
            q, k, v = self._projected(spec, opened)
            return {"q": q[:, head], "k": k[:, head], "v": v[:, head]}
        if given.queries is not None and given.keys is not None:
            q, k = (t[head].to(**like).expand(spec.batch, -1, -1) for t in (given.queries, given.keys))
            return {"q": q, "k": k}
        typed = {"scaled_scores": given.scaled_scores, "weights": given.weights, "v": given.values}
        return {name: t.to(**like)[None] for name, t in typed.items() if t is not None}

    def _projected(self, spec: AttentionSpec, opened: _Opened) -> tuple[Tensor, Tensor, Tensor]:
        if opened.projected is None:
            module, embedded = opened.module, opened.embedded
            assert module is not None and embedded is not None  # noqa: S101, PT018 (has_module said so)
            opened.projected = self._backend.run(spec.device, lambda: module.project(embedded))
        return opened.projected

    def _joint_stage(self, spec: AttentionSpec, stage: str, opened: _Opened, cancelled: Cancelled) -> Tensor | None:
        """``inputs``, ``joined`` or ``output`` (R, C) of the first batch item; None once cancelled."""
        if stage == "inputs":
            assert opened.embedded is not None  # noqa: S101
            return opened.embedded[0]
        contexts = self._contexts(spec, opened, cancelled)
        if contexts is None:
            return None
        joined, output = self._join(spec, contexts, opened)
        return (joined if stage == "joined" else output)[0]

    def _contexts(self, spec: AttentionSpec, opened: _Opened, cancelled: Cancelled) -> Tensor | None:
        """Every head's context (B, H, Q, D) after dropout, kept while the spec stays; None once cancelled.

        Weights that stand in the kept buffer are mixed from there rather than computed again.
        """
        if self._mixed is not None and self._mixed[0] == spec:
            return self._mixed[1]
        last = "dropped_context" if spec.drops and spec.dropout_site == "context" else "context"
        weights = "dropped_weights" if spec.drops and spec.dropout_site == "weights" else "weights"
        kept = self._buffer if self._shown is not None and self._shown.complete else None
        at_hand = kept is not None and self._shown is not None and self._shown.key == (spec, weights)
        contexts = []
        for head in range(spec.num_heads):
            if cancelled():
                return None
            if at_hand and kept is not None and last == "context":
                values = self._projected(spec, opened)[2][:, head]
                contexts.append(self._backend.run(spec.device, partial(torch.bmm, kept[head], values)))
            else:
                contexts.append(self._head(spec, head, {last}, opened).stages[last])
        self._mixed = spec, torch.stack(contexts, 1)
        return self._mixed[1]

    def _join(self, spec: AttentionSpec, context: Tensor, opened: _Opened) -> tuple[Tensor, Tensor]:
        module = opened.module
        assert module is not None  # noqa: S101
        return self._backend.run(spec.device, lambda: module.join(context))

    def _thumbnails(self, request: Request, opened: _Opened, cancelled: Cancelled) -> Iterator[Frame]:
        """A small frame of each stage of one head (the first wanted one), last of all."""
        spec, viewport = request.spec, request.viewport
        wanted = _wanted_heads(spec, viewport) or [0]
        head = request.view.head if request.view.head is not None else wanted[0]
        side = viewport.thumbnail
        small = Viewport(pixels=(side, side))
        names = stages_of(spec)
        per_head = {name for name in names if name not in JOINT_STAGES}
        result = self._head(spec, head, per_head, opened)
        for name in names:
            if cancelled():
                return
            if name in JOINT_STAGES:
                cells = self._joint_stage(spec, name, opened, cancelled)
                if cells is None:
                    return
                panel = Panel(f"thumbnail:{name}", None, cells)
            else:
                panel = _panel(spec, name, head, result)
                panel.name = f"thumbnail:{name}"
            view = msgspec.structs.replace(request.view, stage=name)
            framer = Framer(view, small, request.generation, n_keys=len(opened.inputs.tokens), n_future=0)
            yield from framer.frames(panel, framer.pool(panel))

    # ------------------------------------------------------------------------------------------------ exact numbers

    def probe(self, probe: Probe) -> ProbeAnswer | None:
        """Exact numbers of one cell in every panel of the shown picture; None while it is not complete."""
        shown = self._shown
        if shown is None or not shown.complete or shown.generation != probe.generation:
            return None
        with torch.inference_mode():
            panels = [shown.panels[name] for name in sorted(shown.panels, key=_panel_order)]
            n_rows, n_cols = panels[0].cells.shape
            if not (0 <= probe.row < n_rows and 0 <= probe.col < n_cols):
                return None
            weights = shown.key[1] in WEIGHT_STAGES
            sums = tuple(float(panel.cells[probe.row].double().sum()) for panel in panels) if weights else None
            values = tuple(float(panel.cells[probe.row, probe.col]) for panel in panels)
            classes = tuple(_cell_class(panel, probe.row, probe.col, weights) for panel in panels)
        return ProbeAnswer(probe.generation, probe.row, probe.col, values, classes, sums)

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
                raise _out_of_memory(spec, error) from error
            except RuntimeError as error:
                raise _explained(spec, error) from error

    def _arrays(self, spec: AttentionSpec, cancelled: Cancelled) -> Arrays:
        self._backend.torch_device(spec.device)
        names = stages_of(spec)
        self._check_memory(spec, names, self._budget(spec))
        opened = self._open(spec)
        per_head = {name for name in names if name not in JOINT_STAGES}
        results: list[dict[str, Tensor]] = []
        for head in range(spec.num_heads):
            if cancelled():
                return Arrays(opened.inputs.tokens)
            results.append(self._head(spec, head, per_head, opened).stages)
        stages = {name: torch.stack([result[name] for result in results], 1) for name in names if name in per_head}
        if opened.module is not None:
            assert opened.embedded is not None  # noqa: S101
            last = "dropped_context" if "dropped_context" in stages else "context"
            joined, output = self._join(spec, stages[last], opened)
            stages |= {"inputs": opened.embedded, "joined": joined, "output": output}
        arrays = {name: _file_array(stages[name] if spec.batch > 1 else stages[name][0]) for name in names}
        return Arrays(opened.inputs.tokens, arrays)

    # ------------------------------------------------------------------------------------------------------- keeping

    def forget(self) -> None:
        """Let go of everything kept, after a device ran out of memory."""
        self._opened.clear()
        self._shown = self._mixed = self._buffer = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _open(self, spec: AttentionSpec) -> _Opened:
        key = tuple(getattr(spec, name) for name in _BEFORE_SCORES)
        for other, opened in self._opened.items():
            if other != key:
                opened.projected = None
        if key not in self._opened:
            while len(self._opened) >= _OPENED_KEPT:
                self._opened.popitem(last=False)
            self._opened[key] = self._backend.run(spec.device, lambda: self._opening(spec))
        self._opened.move_to_end(key)
        return self._opened[key]

    def _opening(self, spec: AttentionSpec) -> _Opened:
        given = inputs.open_source(spec)
        if not has_module(spec.source):
            return _Opened(given)
        assert given.embeddings is not None and spec.d_model is not None and spec.d_out is not None  # noqa: S101, PT018
        form = multihead.StackedHeads if spec.implementation == "stacked" else multihead.SplitHeads
        with torch.inference_mode(mode=False):  # parameters made in inference mode could not be trained later
            module = form(
                spec.d_model, spec.d_out, spec.num_heads, context_length=len(given.tokens), qkv_bias=spec.qkv_bias,
                out_proj=spec.out_proj, seed=spec.seed,
            )  # fmt: skip
        device, dtype = self._backend.torch_device(spec.device), getattr(torch, spec.dtype)
        embedded = given.embeddings.to(device, dtype).expand(spec.batch, -1, -1)
        return _Opened(given, module.to(device, dtype), embedded)

    def _out(self, spec: AttentionSpec, opened: _Opened, head: int) -> Tensor:
        """Head's part of the kept buffer (B, Q, K); one buffer per shape, written again by every computation."""
        device, dtype = self._backend.torch_device(spec.device), getattr(torch, spec.dtype)
        shape = (spec.num_heads, spec.batch, opened.inputs.n_queries, len(opened.inputs.tokens))
        kept = self._buffer
        if kept is None or kept.shape != shape or kept.dtype != dtype or kept.device != device:
            self._buffer = None  # let the old one go before asking for the new one
            self._buffer = kept = torch.empty(shape, dtype=dtype, device=device)
        return kept[head]

    def _budget(self, spec: AttentionSpec) -> int:
        return self._budget_bytes or self._backend.free_bytes(spec.device) // 4

    def _check_memory(self, spec: AttentionSpec, names: tuple[str, ...], budget: int) -> int:
        """Bytes that the stages ``names`` will hold; raises `ComputationError` if they cannot fit."""
        n_queries, n_keys = inputs.count_tokens(spec.source)
        item = _ITEM_BYTES[spec.dtype]
        one_map = spec.batch * n_queries * n_keys
        kept = len([name for name in names if name in QUERY_KEY_STAGES]) * spec.num_heads * one_map * item
        working = 3 * one_map * item + one_map + (3 * n_queries * n_keys * 8 if spec.drops else 0)
        vectors = 4 * spec.batch * n_keys * ((spec.d_model or 0) + (spec.d_out or 0)) * item
        need = kept + working + vectors
        if need > budget and n_keys > 256:
            raise ComputationError(
                f"{spec.num_heads} {'head' if spec.num_heads == 1 else 'heads'} × {n_keys:,} tokens need "
                f"{said_bytes(need)}, but the budget is {said_bytes(budget)}, "
                f"a quarter of the free memory on {spec.device}.",
                "Take fewer tokens or heads, or a smaller dtype.",
            )
        return kept + vectors


def said_bytes(count: int) -> str:
    """``count`` bytes in words: "5.9 GB"; powers of 1,000."""
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"


def _panel(spec: AttentionSpec, stage: str, head: int, result: HeadStages) -> Panel:
    """The panel of one head's stage, first batch item; masked and dropped only where they already act."""
    cells = result.stages[stage][0]
    masked = result.masked if masked_at(spec, stage) else None
    dropped = None
    if stage in ("dropped_weights", "dropped_context") and result.kept is not None:
        dropped = ~result.kept[0]
    return Panel(f"head:{head}", head, cells, masked, dropped, result.stages.get("row_sums"))


def _wanted_heads(spec: AttentionSpec, viewport: Viewport) -> list[int]:
    """The heads that the screen wants first; it may still show more of them than the spec has."""
    return [head for head in viewport.heads or () if head < spec.num_heads]


def _panel_order(name: str) -> int:
    return int(name.removeprefix("head:")) if name.startswith("head:") else 0


def _cell_class(panel: Panel, row: int, col: int, weights: bool) -> CellClass:
    value = panel.cells[row, col]
    if torch.isnan(value):
        return CellClass.NAN
    if panel.masked is not None and panel.masked[row, col]:
        return CellClass.MASKED
    if panel.dropped is not None and panel.dropped[row, col]:
        return CellClass.DROPPED
    return CellClass.ZERO if weights and value == 0 else CellClass.ORDINARY


def _file_array(stage: Tensor) -> Values:
    """As NumPy for a file: bfloat16, which NumPy lacks, as float32."""
    wide = stage.float() if stage.dtype == torch.bfloat16 else stage
    array: Values = wide.detach().cpu().numpy()
    return array


def _out_of_memory(spec: AttentionSpec, error: BaseException) -> ComputationError:
    n_keys = inputs.count_tokens(spec.source)[1]
    return ComputationError(
        f"{spec.device} ran out of memory at {spec.num_heads} heads × {n_keys:,} tokens.",
        "Take fewer tokens or heads, a smaller dtype, or another device.",
        details=str(error),
        device_failed=True,
    )


def _explained(spec: AttentionSpec, error: RuntimeError) -> ComputationError:
    """Torch's complaint in a sentence; the words of torch go into the details."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ComputationError(
        f"{spec.device} could not compute this in {spec.dtype}: {first}",
        "Choose another device or dtype.",
        details=str(error),
        device_failed=spec.device != "cpu",
    )
