"""Whether a product of finite numbers came out as none: no fault of a mask, and to be named as what it is."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attnviz.studies.leak.movement import Call

_SUMS: Final = ("addmm", "baddbmm")
_PRODUCTS: Final = ("mm", "bmm", "matmul", "linear", *_SUMS)
_FUSED: Final = "scaled_dot_product"


def product_overflows(call: Call, start: Tensor) -> bool:
    """Whether a product of finite numbers is not finite while ``call`` takes ``start`` (L, d)."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # which is one operation, and shows no products
    try:
        with _Overflows() as watch:
            call(start[None])
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return bool(watch.seen)


class _Overflows(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """``seen`` once a product of finite factors was not finite.

    Attention that is computed in one kernel shows no scores: its queries and keys are multiplied once more in float64.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        name = func.name().rpartition("::")[2].partition(".")[0].rstrip("_")
        if name in _PRODUCTS:
            sums = name in _SUMS
            factors = args[1:3] if sums else args[:2]
            # a mask that is added brings its own −∞; it may be what the sum is written over
            added = torch.isfinite(args[0]) if sums and given.get("beta", 1) != 0 else None
            sound = all(bool(torch.isfinite(one).all()) for one in factors)
            out = func(*args, **given)
            if sound:
                lost = ~torch.isfinite(out)
                self.seen |= bool((lost if added is None else lost & added).any())
            return out
        out = func(*args, **given)
        if _FUSED in name:
            q, k = args[:2]
            if q.shape[1] == k.shape[1]:
                scores = q.double() @ k.double().transpose(-2, -1)
                self.seen |= bool(torch.isfinite(q).all()) and float(scores.abs().amax()) > torch.finfo(q.dtype).max
        return out
