"""One head's numbers for a study: its source opened, its pass run, results as NumPy."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz.attention.devices import DeviceError, TorchBackend
from attnviz.attention.stages import HeadStages
from attnviz.engine.dense import Dense
from attnviz.engine.errors import ComputationError
from attnviz.engine.opened import Opened, Opener
from attnviz.spec import AttentionSpec

T = TypeVar("T", bound=np.generic)


class OneHead:
    """A spec's head, opened once. Thread: the study's. Raises `ComputationError` where the device fails."""

    def __init__(self, spec: AttentionSpec, head: int) -> None:
        self.spec, self.number = spec, head
        self.backend = TorchBackend()
        self.opener = Opener(self.backend)
        self.dense = Dense(self.backend, self.opener)
        with torch.inference_mode():
            try:
                self.opened: Opened = self.opener.open(spec)
            except DeviceError as problem:
                raise ComputationError(problem.sentence, problem.advice, device_failed=True) from problem

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.opened.inputs.tokens

    def stages(self, keep: set[str], spec: AttentionSpec | None = None) -> HeadStages:
        """The stages ``keep`` of the head as ``spec`` (by default the head's own) computes them."""
        with torch.inference_mode():
            return self.dense.head(spec or self.spec, self.number, keep, self.opened)

    def given(self) -> dict[str, Tensor | None]:
        """What the head's pass starts from."""
        with torch.inference_mode():
            return self.opener.head_inputs(self.spec, self.number, self.opened, values=False)


def as_floats(tensor: Tensor) -> npt.NDArray[np.floating[Any]]:
    """As NumPy: bfloat16, which NumPy lacks, as float32; read-only."""
    wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return frozen(wide.detach().cpu().numpy())


def frozen(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """A read-only copy."""
    array = np.array(array)
    array.flags.writeable = False
    return array
