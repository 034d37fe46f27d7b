"""Whether two modules are the same function: outputs and gradients beside each other, in eps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor, nn

from attnviz.questions.leak import ROUNDING_EPS, EqualAnswer, Equality, Sameness
from attnviz.studies.leak import movement
from attnviz.studies.leak.movement import Call, Testable
from attnviz.studies.leak.readings import FINEST_FIRST, Plan

SAME_EPS: Final = 256.0
"""So many eps of the largest number apart, two orders of the same sums are still the same function; in short dtypes
fewer: a fiftieth of the largest number, and 8 at least."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What two modules' weights are, in ``words``; whether they are the ``same``, or there are none."""

    words: str
    same: bool = True


def share_weights(one: object, other: object) -> Shared:
    """Copy ``one``'s weights into ``other`` where names and shapes agree."""
    if not isinstance(one, nn.Module) or not isinstance(other, nn.Module):
        if not (callable(one) and callable(other)):
            return Shared("each with weights of its own: those of a spec cannot be copied", same=False)
        return Shared("each as it was built: functions have no weights to copy")
    given, taking = dict(one.named_parameters()), dict(other.named_parameters())
    if {k: v.shape for k, v in given.items()} == {k: v.shape for k, v in taking.items()}:
        with torch.no_grad():
            for name, weight in taking.items():
                weight.copy_(given[name])
        own = dict(other.named_buffers())  # a mask among them is a module's own, and is not copied
        odd = [name for name, buffer in one.named_buffers() if name not in own or not _same(buffer, own[name])]
        return Shared(
            f"with the same weights; buffers that differ: {', '.join(odd)}" if odd else "with the same weights"
        )
    odd = sorted(set(given) ^ set(taking)) or sorted(k for k in given if given[k].shape != taking[k].shape)
    names = ", ".join(odd[:4]) + (" …" if len(odd) > 4 else "")
    return Shared(f"each with the weights of the seed: {names} are not in both alike", same=False)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


def compare(
    one: Testable, other: Testable, plan: Plan, shared: Shared, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[EqualAnswer]:
    """An answer after each device and dtype, the finest dtype first. Ends early once ``cancelled``."""
    dtypes = sorted(plan.dtypes, key=FINEST_FIRST.index)
    wanted = [(device, dtype) for device in plan.devices for dtype in dtypes]
    found: list[Equality] = []
    for done, (device, dtype) in enumerate(wanted, 1):
        if cancelled():
            return
        with torch.inference_mode(mode=False):  # in a caller's own there are no gradients
            equality = _compared(one, other, plan, device, dtype)
        if equality.same == "differ" and not shared.same:  # as other weights must
            words = "; ".join(filter(None, (equality.remark, "their weights are not the same")))
            equality = replace(equality, same="untested", remark=words)
        found.append(equality)
        yield EqualAnswer(done, len(wanted), tuple(found), shared.words)


def _compared(one: Testable, other: Testable, plan: Plan, device: str, dtype: str) -> Equality:
    kind = getattr(torch, dtype)
    try:
        calls = [subject.on(torch.device(device), kind) for subject in (one, other)]
        start, _ = movement.inputs_of(plan.length, one.d, plan.scale, plan.seed)
        given = start.to(device, kind)[None]
        with torch.inference_mode():
            for subject, call in zip((one, other), calls, strict=True):
                if not movement.repeats_itself(call, given[0]):
                    return Equality(device, dtype, "untested", remark=f"{subject.name} differs from itself")
            outputs = [call(given) for call in calls]
    except Exception as error:  # whatever a person's module raises is an answer
        words = getattr(error, "sentence", None) or f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Equality(device, dtype, "untested", remark=words)
    if outputs[0].shape != outputs[1].shape:
        shapes = " and ".join(str(tuple(out.shape[1:])) for out in outputs)
        return Equality(device, dtype, "differ", remark=f"outputs of shapes {shapes}")
    if not any(bool(torch.isfinite(out).any()) for out in outputs):
        return Equality(device, dtype, "untested", remark="no output is a number")
    by_output, place = _apart(*outputs)
    by_gradient, remark = 0.0, ""
    try:
        by_gradient, _ = _apart(*(_gradient(call, given) for call in calls))
    except Exception as error:  # a module need not have one: outputs say what they say
        remark = f"outputs alone: {type(error).__name__}: {' '.join(str(error).split())}"
    same: Sameness = "differ"
    if by_output == by_gradient == 0:
        same = "bit for bit"
    elif max(by_output, by_gradient) <= max(ROUNDING_EPS, min(SAME_EPS, 0.02 / torch.finfo(kind).eps)):
        same = "rounding"
    return Equality(device, dtype, same, by_output, by_gradient, place if same == "differ" else None, remark)


def _gradient(call: Call, given: Tensor) -> Tensor:
    """∂ (a fixed weighing of the outputs) / ∂ inputs (1, L, d)."""
    own = given.detach().clone().requires_grad_()
    with torch.enable_grad():
        out = call(own)
        weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64, device=out.device).reshape(out.shape)
        (slope,) = torch.autograd.grad((out * weights.to(out.dtype)).sum(), own, allow_unused=True)
    return torch.zeros_like(own) if slope is None else slope


def _apart(one: Tensor, other: Tensor) -> tuple[float, int]:
    """The largest difference in eps of the largest number, and the token (row) of it; inf where one is no number."""
    a, b = (t.to("cpu", torch.float64) for t in (one, other))
    gap = movement.distance(a[0], b[0])
    gap = torch.where(torch.isnan(gap), 0.0, gap)  # in neither a number
    finite = a[torch.isfinite(a)]
    unit = torch.finfo(one.dtype).eps * (float(finite.abs().amax()) if finite.numel() else 0.0)
    worst = int(gap.argmax())
    most = float(gap[worst])
    return (0.0 if most == 0 else most / unit if unit > 0 else float("inf")), worst
