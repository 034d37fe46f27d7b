"""A spec's heads, one whole map at a time, for studies that compare them: nothing is kept but what was opened."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention import masks
from attnviz.attention.devices import Backend, TorchBackend
from attnviz.attention.pooling import Panel
from attnviz.engine.dense import Dense
from attnviz.engine.opened import Opener
from attnviz.spec import AttentionSpec


class HeadMaps:
    """Maps (Q, K) of ``spec``, on its device and in its dtype. Thread: one at a time."""

    def __init__(self, spec: AttentionSpec, backend: Backend | None = None) -> None:
        self.spec = spec = msgspec.structs.replace(spec, batch=1)  # the items of a batch are equal but for dropout
        self._backend = backend or TorchBackend()
        self._opener = Opener(self._backend)
        self._dense = Dense(self._backend, self._opener)
        with torch.inference_mode():
            self._opened = self._opener.open(spec)
        self.tokens = self._opened.inputs.tokens
        self.n_queries, self.n_keys = inputs.count_tokens(spec.source)

    def panel(self, stage: str, head: int, spec: AttentionSpec | None = None) -> Panel:
        """One head's query × key stage with the planes that classify its cells, as the picture shows it.

        ``spec`` differs from the one that was opened in what comes after the scores alone.
        """
        spec = self.spec if spec is None else msgspec.structs.replace(spec, batch=1)
        keep = {stage, "weights"} if stage == "dropped_weights" else {stage}
        with torch.inference_mode():
            result = self._dense.head(spec, head, keep, self._opened)
            return self._dense.panel_of(spec, stage, head, result)

    def hidden(self) -> Tensor:
        """Cells (Q, K) that the spec's mask shape hides, whatever its mode, bool on the CPU."""
        with torch.inference_mode():
            some_mode = msgspec.structs.replace(self.spec, mask="three-step", top_k=None)
            mask = self._opener.mask(some_mode, self._opened)
            assert mask is not None  # noqa: S101 (there is a mode)
            return mask.hidden(device="cpu")

    def future(self) -> Tensor:
        """Cells (Q, K) whose key stands after their query, bool on the CPU."""
        return masks.hidden(self.n_queries, self.n_keys)
