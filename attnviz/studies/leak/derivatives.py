"""Who sees whom by derivatives: what an output's gradient says of each token."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnviz.questions.leak import GradientReading
from attnviz.studies.leak import movement
from attnviz.studies.leak.movement import Call, Testable


def by_gradient(
    subject: Testable, device: str, dtype: str, length: int, scale: float, seed: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> GradientReading | None:  # fmt: skip
    """The derivatives of ``subject`` over the inputs that a reading starts from; None once ``cancelled``."""
    kind = getattr(torch, dtype)
    try:
        call = subject.on(torch.device(device), kind)
        start, _ = movement.inputs_of(length, subject.d, scale, seed)
        slopes = gradients(call, start.to(device, kind), cancelled)
    except Exception as error:  # a module need not have one
        words = getattr(error, "sentence", None) or f"{type(error).__name__}: {' '.join(str(error).split())}"
        return GradientReading(device, dtype, remark=words)
    if slopes is None:
        return None
    hidden = subject.hidden(length) & ~torch.eye(length, dtype=torch.bool)
    if bool(torch.isnan(slopes[hidden]).any()):
        return GradientReading(device, dtype, remark="some derivatives are NaN")
    largest = float(torch.nan_to_num(slopes).amax())
    unit = torch.finfo(kind).eps * largest
    moved = slopes / unit if unit > 0 else torch.zeros_like(slopes)
    pair, most = None, 0.0
    over = hidden & (slopes > 0)
    if bool(over.any()):
        place = int(torch.where(over, slopes, 0.0).argmax())
        pair = place // length, place % length
        most = float(slopes[pair])
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
