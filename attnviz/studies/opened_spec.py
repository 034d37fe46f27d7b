"""A spec's heads for a study: its source opened, its passes run, its maps one at a time; nothing else is kept."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention import masks
from attnviz.attention.devices import Backend, DeviceError, TorchBackend
from attnviz.attention.multihead import MultiHead
from attnviz.attention.pooling import Panel
from attnviz.attention.stages import HeadStages
from attnviz.engine.dense import Dense
from attnviz.engine.errors import ComputationError
from attnviz.engine.memory import Budget
from attnviz.engine.opened import Opener
from attnviz.spec import AttentionSpec


class OpenedSpec:
    """Heads of ``spec``, on its device and in its dtype; one item of a batch, since all begin as equals.

    Thread: one at a time. Raises `ComputationError` where the device is missing, or where not even what stands before
    the scores fits into a quarter of its free memory.
    """

    def __init__(self, spec: AttentionSpec, backend: Backend | None = None) -> None:
        self.spec = spec = msgspec.structs.replace(spec, batch=1)
        self.backend = backend or TorchBackend()
        self._opener = Opener(self.backend)
        self._dense = Dense(self.backend, self._opener)
        with torch.inference_mode():
            try:
                self.backend.torch_device(spec.device)
                Budget(spec, self.backend.free_bytes(spec.device) // 4, was_set=False).check((), long=False)
                self._opened = self._opener.open(spec)
            except DeviceError as problem:
                raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem
        self.tokens = self._opened.inputs.tokens
        self.n_queries, self.n_keys = inputs.count_tokens(spec.source)

    def stages(self, head: int, keep: set[str], spec: AttentionSpec | None = None) -> HeadStages:
        """The stages ``keep`` of one head, (1, Q, K) and so on.

        ``spec`` differs from the one that was opened in what comes after the scores alone.
        """
        spec = self.spec if spec is None else msgspec.structs.replace(spec, batch=1)
        with torch.inference_mode():
            return self._dense.head(spec, head, keep, self._opened)

    def panel(self, stage: str, head: int, spec: AttentionSpec | None = None) -> Panel:
        """One head's query × key stage with the planes that classify its cells, as the picture shows it."""
        keep = {stage, "weights"} if stage == "dropped_weights" else {stage}
        with torch.inference_mode():
            return self._dense.panel_of(spec or self.spec, stage, head, self.stages(head, keep, spec))

    def given(self, head: int) -> dict[str, Tensor | None]:
        """What the head's pass starts from, without values."""
        with torch.inference_mode():
            return self._opener.head_inputs(self.spec, head, self._opened, values=False)

    def mask(self) -> masks.Mask | None:
        """The spec's mask over all queries and keys; None where nothing is masked."""
        with torch.inference_mode():
            return self._opener.mask(self.spec, self._opened)

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

    def module(self) -> MultiHead:
        """The module, on the spec's device and in its dtype. Only where the source has one."""
        module = self._opened.module
        assert module is not None  # noqa: S101 (asked of such a source alone)
        return module
