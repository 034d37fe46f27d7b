"""A spec as a module under test: its projections, its masked heads, its output."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor

from attnviz.attention.stages import head_stages
from attnviz.spec import AttentionSpec, SpecError, edited, has_module
from attnviz.studies.leak.movement import Call
from attnviz.studies.opened_spec import OpenedSpec


class SpecSubject:
    """Attention as ``spec`` has it, in inference, over any inputs (B, L, d_model).

    Raises `SpecError` where the source gives numbers that stand behind the inputs.
    """

    is_module = True

    def __init__(self, spec: AttentionSpec) -> None:
        if not has_module(spec.source):
            raise SpecError(
                "source",
                "who sees whom is asked of attention with projections: take a text, random embeddings or journey",
            )
        self.spec = edited(spec, training=False, dropout=0.0, dropout_seed=spec.seed)
        self.name = "the current attention"
        assert spec.d_model is not None  # noqa: S101 (there is a module)
        self.d = spec.d_model

    def parameters(self) -> int:
        """Numbers of its weights."""
        spec = self.spec
        return self.d * (spec.d_out or self.d) * 4

    def hidden(self, length: int) -> Tensor:
        """Cells that the mask's shape hides."""
        del length  # the source has its own
        return OpenedSpec(self.spec).hidden()

    def on(self, device: torch.device, dtype: torch.dtype) -> Call:
        """Outputs (B, L, d_out) in ``dtype``."""
        name = str(dtype).removeprefix("torch.")
        spec = edited(self.spec, dtype=name, device=str(device))
        opened = OpenedSpec(spec)
        module = opened.module()
        mask = opened.mask()

        def called(x: Tensor) -> Tensor:
            own = msgspec.structs.replace(spec, batch=len(x))
            q, k, v = module.project(x)
            share = spec.num_heads // module.num_kv_heads
            heads = [
                head_stages(
                    own,
                    head=head,
                    keep={"context"},
                    q=q[:, head],
                    k=k[:, head // share],
                    v=v[:, head // share],
                    mask=mask,
                ).stages["context"]
                for head in range(spec.num_heads)
            ]
            return module.join(torch.stack(heads, 1))[1]

        return called
