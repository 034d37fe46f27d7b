"""A computation that cannot give its picture, in sentences."""

from __future__ import annotations

from attnviz import inputs
from attnviz.spec import AttentionSpec


class ComputationError(RuntimeError):
    """A computation that cannot give its picture: what happened, what to do, and details for who asks."""

    def __init__(self, sentence: str, advice: str, *, details: str = "", device_failed: bool = False) -> None:
        super().__init__(f"{sentence} {advice}".strip())
        self.sentence = sentence
        self.advice = advice
        self.details = details
        self.device_failed = device_failed


def out_of_memory(spec: AttentionSpec, error: BaseException) -> ComputationError:
    """A device had not enough of it; the words of torch go into the details."""
    n_keys = inputs.count_tokens(spec.source)[1]
    return ComputationError(
        f"{spec.device} ran out of memory at {spec.num_heads} heads × {n_keys:,} tokens.",
        "Take fewer tokens or heads, a smaller dtype, or another device.",
        details=str(error),
        device_failed=True,
    )


def explained(spec: AttentionSpec, error: RuntimeError) -> ComputationError:
    """Torch's complaint in a sentence; the words of torch go into the details."""
    if "alloc_cpu" in str(error) or "not enough memory" in str(error):
        return out_of_memory(spec, error)
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ComputationError(
        f"{spec.device} could not compute this in {spec.dtype}: {first}",
        "Choose another device or dtype.",
        details=str(error),
        device_failed=spec.device != "cpu",
    )
