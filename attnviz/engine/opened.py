"""What stands before the scores: a source opened, its module built, queries, keys and values projected and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention import masks, multihead
from attnviz.attention.devices import Backend
from attnviz.engine.errors import ComputationError
from attnviz.spec import MAX_DRAWN, AttentionSpec, Drawn, MaskFile, has_module, lesson_draws

_BEFORE_SCORES: Final = (
    "source", "num_heads", "num_kv_heads", "d_model", "d_out", "implementation", "out_proj", "qkv_bias", "projection",
    "batch", "seed", "device", "dtype",
)  # fmt: skip
_GIVEN: Final = ("embeddings", "queries", "keys", "scaled_scores", "weights", "values", "keep")  # inputs' tensors
_KEPT: Final = 2  # the present computation and the one before it
_ROOM: Final = 256 << 20
"""Bytes that the one before may take, until somebody says."""


@dataclass(slots=True, eq=False)
class Opened:
    """Inputs (B, L, d_model), the module, and what of q, k, v has been projected: (B, heads of its own, L, d_head)."""

    inputs: inputs.Inputs
    module: multihead.MultiHead | None = None
    embedded: Tensor | None = None
    projected: dict[str, Tensor] = field(default_factory=dict)
    mask: tuple[MaskFile, masks.Mask] | None = None
    in_memory: bool = True
    """Whether queries and keys lie in memory rather than in a file."""

    @property
    def storages(self) -> dict[int, int]:
        """Bytes in memory by address: tensors that share them count once."""
        names = _GIVEN if self.in_memory else tuple(name for name in _GIVEN if name not in ("queries", "keys"))
        given = [self.embedded, *(getattr(self.inputs, name) for name in names)]
        module = () if self.module is None else chain(self.module.parameters(), self.module.buffers())
        return storages_of(chain(given, module, self.projected.values()))


class Opener:
    """Opens the source of a spec on its device and keeps the last two, the one before where there is room for it.

    Thread: the engine's.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._room = _ROOM
        self._kept: OrderedDict[tuple[object, ...], Opened] = OrderedDict()

    @property
    def storages(self) -> dict[int, int]:
        """Bytes in memory of all that is kept, by address."""
        return {address: size for one in self._kept.values() for address, size in one.storages.items()}

    def open(self, spec: AttentionSpec, *, in_memory: bool = True, room: int | None = None) -> Opened:
        """What stands before ``spec``'s scores. With ``in_memory`` False drawn queries and keys go to a file.

        The source before is kept where it takes at most ``room`` bytes; without ``room``, as many as were said last.
        """
        self._room = self._room if room is None else room
        key = tuple(getattr(spec, name) for name in _BEFORE_SCORES)
        others = [other for other in self._kept if other != key]
        for other in others:
            self._kept[other].projected.clear()
        while others and (len(others) >= (_KEPT if in_memory else 1) or self._bytes_of(others) > self._room):
            del self._kept[others.pop(0)]  # before the new one asks for its own
        if key not in self._kept:
            self._kept[key] = self._backend.run(spec.device, lambda: self._opening(spec, in_memory))
        self._kept.move_to_end(key)
        return self._kept[key]

    def _bytes_of(self, keys: list[tuple[object, ...]]) -> int:
        return sum(sum(self._kept[key].storages.values()) for key in keys)

    def forget(self) -> None:
        """Let go of everything."""
        self._kept.clear()

    def _opening(self, spec: AttentionSpec, in_memory: bool) -> Opened:
        given = inputs.open_source(spec, in_memory=in_memory)
        if not has_module(spec.source):
            return Opened(given, in_memory=in_memory)
        assert given.embeddings is not None and spec.d_model is not None and spec.d_out is not None  # noqa: S101, PT018
        device, dtype = self._backend.torch_device(spec.device), getattr(torch, spec.dtype)
        with torch.inference_mode(mode=False):  # parameters made in inference mode could not be trained later
            module = _module(spec, given).to(device, dtype)
        embedded = given.embeddings.to(device, dtype).expand(spec.batch, -1, -1)
        return Opened(given, module, embedded)

    def mask(self, spec: AttentionSpec, opened: Opened) -> masks.Mask | None:
        """The spec's mask over all queries and keys; None where nothing is masked.

        Raises `ComputationError` for a drawn mask on a map that is too long for one.
        """
        if spec.mask == "none":
            return None
        n_queries, n_keys = opened.inputs.n_queries, len(opened.inputs.tokens)
        shape = spec.mask_shape
        if isinstance(shape, Drawn) and n_keys > MAX_DRAWN:
            raise ComputationError(
                f"A mask was drawn for at most {MAX_DRAWN:,} tokens, but there are {n_keys:,}.",
                "Take another mask shape, a file, or fewer tokens.",
            )
        if not isinstance(shape, MaskFile):
            return masks.shaped(shape, n_queries, n_keys)
        if opened.mask is None or opened.mask[0] != shape:
            opened.mask = shape, masks.from_plane(inputs.open_mask_plane(shape, n_queries, n_keys))
        return opened.mask[1]

    def head_inputs(
        self, spec: AttentionSpec, head: int, opened: Opened, *, values: bool = True
    ) -> dict[str, Tensor | None]:
        """What a head's pass starts from: q, k, v (B, L, d_head), or typed scores or weights (1, Q, K).

        And ``keep`` bool (B, Q, K), the cells that dropout keeps, where they are the lesson's own. Without ``values`` a
        module's values are not projected for it.
        """
        given, shared = opened.inputs, head * spec.num_kv_heads // spec.num_heads
        if opened.module is not None:
            names = ("q", "k", "v") if values else ("q", "k")
            parts = {name: self._projected(spec, opened, name) for name in names}
            own: dict[str, Tensor | None] = {
                name: part[:, head if name == "q" else shared] for name, part in parts.items()
            }
            if given.keep is not None and lesson_draws(spec):
                own["keep"] = given.keep.expand(spec.batch, -1, -1)
            return own
        like = {"device": self._backend.torch_device(spec.device), "dtype": getattr(torch, spec.dtype)}
        if given.queries is not None and given.keys is not None:
            q, k = given.queries[head].to(**like), given.keys[shared].to(**like)
            return {"q": q.expand(spec.batch, -1, -1), "k": k.expand(spec.batch, -1, -1)}
        typed = {"scaled_scores": given.scaled_scores, "weights": given.weights, "v": given.values}
        return {name: t.to(**like)[None] for name, t in typed.items() if t is not None}

    def neighbours(self, spec: AttentionSpec, heads: range, opened: Opened) -> tuple[Tensor, Tensor]:
        """Queries and keys (heads, L, d_head) of neighbouring heads of one item; views where no key is shared."""
        given = opened.inputs
        if opened.module is not None:
            q, k = (self._projected(spec, opened, name)[0] for name in "qk")
        else:
            assert given.queries is not None and given.keys is not None  # noqa: S101, PT018 (typed maps have one head)
            q, k = given.queries, given.keys
        own = slice(heads.start, heads.stop)
        shared = (
            own if spec.num_kv_heads == spec.num_heads else [h * spec.num_kv_heads // spec.num_heads for h in heads]
        )
        device, dtype = self._backend.torch_device(spec.device), getattr(torch, spec.dtype)
        return q[own].to(device, dtype), k[shared].to(device, dtype)

    def _projected(self, spec: AttentionSpec, opened: Opened, name: str) -> Tensor:
        """Queries (B, H, L, d_head), or keys or values (B, num_kv_heads, L, d_head), kept while the spec is open."""
        if name not in opened.projected:
            module, embedded = opened.module, opened.embedded
            assert module is not None and embedded is not None  # noqa: S101, PT018 (has_module said so)
            layers = module.projections()["qkv".index(name)]
            opened.projected[name] = self._backend.run(spec.device, lambda: module.project_with(layers, embedded))
        return opened.projected[name]


def storages_of(tensors: Iterable[Tensor | None]) -> dict[int, int]:
    """Bytes of the memory behind ``tensors`` by its address; those that share it count once."""
    memory = (tensor.untyped_storage() for tensor in tensors if tensor is not None)
    return {one.data_ptr(): one.nbytes() for one in memory}


def _module(spec: AttentionSpec, given: inputs.Inputs) -> multihead.MultiHead:
    """The module of a spec on the CPU, float32, or of the dtype of the matrices that its source gives."""
    assert spec.d_model is not None and spec.d_out is not None  # noqa: S101, PT018 (has_module said so)
    if spec.projection == "none":
        return multihead.Unprojected(spec.d_model, len(given.tokens))
    form = multihead.StackedHeads if spec.implementation == "stacked" else multihead.SplitHeads
    drawn = "rand" if given.matrices else spec.projection
    module = form(
        spec.d_model, spec.d_out, spec.num_heads, num_kv_heads=spec.num_kv_heads, context_length=len(given.tokens),
        qkv_bias=spec.qkv_bias, out_proj=spec.out_proj, seed=spec.seed, projection=drawn,
    )  # fmt: skip
    if given.matrices:
        module.to(given.matrices[0].dtype)
        for layers, matrix in zip(module.projections(), given.matrices, strict=True):
            layers[0].load_state_dict({"weight": matrix})
    return module
