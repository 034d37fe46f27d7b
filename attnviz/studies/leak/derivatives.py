"""Who sees whom by derivatives: what an output's gradient says of each token."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from attnviz.questions.leak import ROUNDING_EPS, GradientReading
from attnviz.studies.leak.movement import Call, Testable


def by_gradient(
    subject: Testable, device: str, dtype: str, start: Tensor, *, seconds: float = math.inf, eps: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> GradientReading | None:  # fmt: skip
    """The derivatives of ``subject`` at ``start`` (L, d); None once ``cancelled``, a remark after so many ``seconds``.

    ``eps`` is that in which it really computes, None for the dtype's own.
    """
    kind, length, end = getattr(torch, dtype), len(start), time.monotonic() + seconds
    late = False

    def ended() -> bool:
        nonlocal late
        late = time.monotonic() > end
        return late or cancelled()

    try:
        call = subject.on(torch.device(device), kind)
        slopes = gradients(call, start.to(device, kind), ended)
    except Exception as error:  # a module need not have one
        words = getattr(error, "sentence", None) or f"{type(error).__name__}: {' '.join(str(error).split())}"
        return GradientReading(device, dtype, remark=words)
    if slopes is None:
        return GradientReading(device, dtype, remark=f"it takes longer than {seconds:g} s") if late else None
    hidden = subject.hidden(length)
    sees = ~hidden.all(1, keepdim=True)  # what sees nothing may well be NaN
    hidden = hidden & ~torch.eye(length, dtype=torch.bool)
    if bool(torch.isnan(slopes[hidden & sees]).any()):
        return GradientReading(device, dtype, remark="some derivatives are NaN")
    largest = float(torch.nan_to_num(slopes).amax())
    unit = (eps or torch.finfo(kind).eps) * largest
    moved = slopes / unit if unit > 0 else torch.zeros_like(slopes)
    known = torch.where(hidden & ~torch.isnan(slopes), slopes, 0.0)
    place = int(known.argmax())
    most = float(known.flatten()[place])
    pair = (place // length, place % length) if most > ROUNDING_EPS * unit else None
    planes = moved.numpy(), hidden.numpy()
    for plane in planes:
        plane.flags.writeable = False
    return GradientReading(device, dtype, most, largest, pair, *planes)


def gradients(call: Call, start: Tensor, cancelled: Callable[[], bool] = lambda: False) -> Tensor | None:
    """The largest |∂ output t / ∂ input s| at [t, s], float64 (L, L), of a fixed random weighing of t's features.

    A plain sum would not do: it is constant behind a LayerNorm or a softmax. NaN where a derivative is. None once
    ``cancelled``. Raises what the module raises where it has no gradient.
    """
    given = start.detach().clone().requires_grad_()
    rows = []
    with torch.enable_grad():
        out = call(given[None])[0]
        generator = torch.Generator().manual_seed(out.shape[-1])
        weights = torch.randn(out.shape[-1], generator=generator, dtype=torch.float64).to(out)
        for row in out:
            if cancelled():
                return None
            rows.append(torch.autograd.grad((row * weights).sum(), given, retain_graph=True)[0].abs().amax(-1))
    return torch.stack(rows).to("cpu", torch.float64)
