"""A module under test as one function of a tensor, on any device and in any dtype."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor, nn

from attnviz.subjects.errors import SubjectError, raised

_QUERIES: Final = frozenset({"q", "k", "v", "query", "key", "value", "queries", "keys", "values"})
_REQUIRED: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_CASTS: Final[Mapping[torch.dtype, Callable[[nn.Module], nn.Module]]] = MappingProxyType(
    {
        torch.float64: nn.Module.double, torch.float32: nn.Module.float, torch.float16: nn.Module.half,
        torch.bfloat16: nn.Module.bfloat16,
    }
)  # fmt: skip
"""Of floating-point numbers alone: `nn.Module.to` would make complex ones real."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A module, or a function of a tensor (B, L, ``d``), under the ``name`` by which it was asked for.

    ``call`` as in `Wishes`.
    """

    name: str
    run: Callable[..., Any]
    d: int
    call: str | None = None

    @property
    def is_module(self) -> bool:
        """Whether it can be moved to a device and a dtype; a function computes in whatever it is given."""
        return isinstance(self.run, nn.Module)

    def parameters(self) -> int:
        """Numbers of its weights; 0 of a function."""
        return sum(p.numel() for p in self.run.parameters()) if isinstance(self.run, nn.Module) else 0

    def hidden(self, length: int) -> Tensor:
        """Tokens after an output's own, bool (L, L): what is tested is causal attention."""
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def on(self, device: torch.device, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
        """A copy in eval mode: (B, L, d) to (B, L, o). It raises `SubjectError` where the module does not do that."""
        run = self.run
        if isinstance(run, nn.Module):
            try:
                run = _CASTS[dtype](copy.deepcopy(run).to(device)).eval()
            except Exception as error:
                raise SubjectError(
                    f"{self.name} cannot be moved to {device} {_short(dtype)}: {raised(error)}"
                ) from error
        times = 3 if self._takes_three() else 1
        file = file_of(self.run)

        def called(x: Tensor) -> Tensor:
            """Outputs of their own: a module may write into its inputs, or into what it gave before."""
            given = x.clone()
            try:
                out = run(*([given] * times))
            except (KeyboardInterrupt, torch.OutOfMemoryError):
                raise
            except BaseException as error:  # sys.exit too
                raise SubjectError(f"{self.name} raised {raised(error, file)}") from error
            return self._output(out, x).clone()

        return called

    def _takes_three(self) -> bool:
        if self.call is not None:
            return self.call == "self"
        names = required(self.run.forward if isinstance(self.run, nn.Module) else self.run)
        if len(names) <= 1:
            return False
        if len(names) == 3 and all(name.lower() in _QUERIES for name in names):
            return True
        raise SubjectError(
            f"{self.name} wants {', '.join(names)}: --call self passes the same input three times, "
            "or name a function x → y that calls it", "asked",
        )  # fmt: skip

    def _output(self, out: object, x: Tensor) -> Tensor:
        tensors = [one for one in _tensors(out) if one.dim() == 3 and one.shape[:2] == x.shape[:2]]
        if not tensors:
            shapes = ", ".join(str(tuple(one.shape)) for one in _tensors(out)) or type(out).__name__
            raise SubjectError(
                f"{self.name} returns {shapes} for inputs {tuple(x.shape)}: the first two sizes must stay (B, L)"
            )
        first = tensors[0]
        if first.device != x.device:
            raise SubjectError(f"{self.name} returns a tensor on {first.device} for inputs on {x.device}")
        if not first.is_floating_point():
            raise SubjectError(f"{self.name} returns {_short(first.dtype)}: only floating point can be compared")
        return first


def required(function: Callable[..., object]) -> list[str]:
    """Names of the positional parameters without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    return [p.name for p in parameters if p.kind in _REQUIRED and p.default is inspect.Parameter.empty]


def is_function_of_inputs(function: Callable[..., object], known: Iterable[str]) -> bool:
    """Whether it wants tensors: one parameter, or queries, keys and values, that no constructor has."""
    names = required(function)
    if not names or set(names) & set(known):
        return False
    return len(names) == 1 or (len(names) == 3 and all(name.lower() in _QUERIES for name in names))


def _tensors(out: object) -> list[Tensor]:
    if isinstance(out, Tensor):
        return [out]
    if isinstance(out, Mapping):
        out = tuple(out.values())
    return [one for one in out if isinstance(one, Tensor)] if isinstance(out, tuple | list) else []


def file_of(run: Callable[..., Any]) -> str | None:
    """The file in which ``run`` or its class is written; None where there is none."""
    kind = type(run) if isinstance(run, nn.Module) else run
    try:
        return inspect.getsourcefile(kind)
    except (TypeError, OSError):  # built in; or typed where there is no file, as in python -c
        return None


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
