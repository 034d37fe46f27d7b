"""Classes, factories and functions to modules: constructor arguments are filled in by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import nn

from attnviz.subjects.calling import Subject, file_of, is_function_of_inputs
from attnviz.subjects.errors import SubjectError, raised

WIDTHS: Final = ("d_model", "d_in", "embed_dim", "n_embd", "hidden_size", "dim", "d_embed", "emb_dim", "embed_size")
OUTS: Final = ("d_out", "out_dim")
HEADS: Final = ("num_heads", "n_heads", "n_head", "nhead", "heads", "num_attention_heads")
LENGTHS: Final = ("context_length", "block_size", "max_len", "max_length", "max_seq_len", "seq_len", "n_ctx")
_ALWAYS: Final[Mapping[str, Any]] = MappingProxyType({"dropout": 0.0, "batch_first": True})
_IF_WANTED: Final[Mapping[str, Any]] = MappingProxyType({"bias": True, "qkv_bias": False})
_SELF: Final = ("self", "cls")
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a module is built with: its width d, heads, the most tokens, a seed, and ``arguments`` by name.

    ``call`` "x" calls it with one tensor, "self" with the same three times; None looks at its signature.
    """

    d_model: int = 64
    num_heads: int = 4
    length: int = 32
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    call: str | None = None


def build(found: object, name: str, wishes: Wishes) -> Subject:
    """The subject that ``found`` is or makes. Raises `SubjectError`, with the ``--arg`` that would help."""
    if isinstance(found, nn.Module):
        return Subject(name, found, width_of(found) or wishes.d_model, wishes.call)
    if inspect.isclass(found):
        if not issubclass(found, nn.Module):
            raise SubjectError(f"{name} is a class, but no nn.Module: name one, or a function", "asked")
        return _built(found, name, wishes)
    if not callable(found):
        raise SubjectError(f"{name} is {type(found).__name__}: name an nn.Module class or a function", "asked")
    if not wishes.arguments and is_function_of_inputs(found, known_names()):
        return Subject(name, found, wishes.d_model, wishes.call)
    return _built(found, name, wishes)


def known_names() -> frozenset[str]:
    """Parameters that are filled in."""
    return frozenset((*WIDTHS, *OUTS, *HEADS, *LENGTHS, *_ALWAYS, *_IF_WANTED))


def _built(make: Callable[..., object], name: str, wishes: Wishes) -> Subject:
    given = arguments_for(make, name, wishes)
    torch.manual_seed(wishes.seed)
    try:
        made = make(**given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit too
        shown = ", ".join(f"{key}={value!r}" for key, value in given.items())
        raise SubjectError(
            f"{name}({shown}) raised {raised(error, file_of(make))}: --arg NAME=VALUE gives another value"
        ) from error
    if not isinstance(made, nn.Module):
        if callable(made):
            return Subject(name, made, _given_width(given) or wishes.d_model, wishes.call)
        raise SubjectError(
            f"{name} returns {type(made).__name__}: return an nn.Module, or take x and return y", "asked"
        )
    return Subject(name, made, _given_width(given) or width_of(made) or wishes.d_model, wishes.call)


def arguments_for(make: Callable[..., object], name: str, wishes: Wishes) -> dict[str, Any]:
    """Arguments of ``make`` by name. Raises `SubjectError` that lists in one line what is missing, or unknown."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        parameters = MappingProxyType({})
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    unknown = [key for key in wishes.arguments if key not in parameters and not open_ended]
    if unknown:
        there = ", ".join(key for key in parameters if key not in _SELF) or "none"
        raise SubjectError(f"{name} takes no {', '.join(unknown)}: its arguments are {there}", "asked")
    given: dict[str, Any] = dict(wishes.arguments)
    missing = []
    for key, parameter in parameters.items():
        if key in given or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        wanted = parameter.default is inspect.Parameter.empty
        known = _value_for(key, wishes, wanted=wanted)
        if known is not None:
            given[key] = known[0]
        elif wanted:
            missing.append(key)
    if missing:
        words = " ".join(f"--arg {key}=…" for key in missing)
        help_ = f"def make(): return {name.rsplit(':', 1)[-1]}(…)"
        raise SubjectError(
            f"{name} wants {', '.join(missing)}: give {words}, or name a function that builds it, such as {help_}",
            "asked",
        )
    for key, parameter in parameters.items():  # what has no name of its own cannot be given by it
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and key in given:
            raise SubjectError(f"{name} takes {key} by its place alone: name a function that builds it", "asked")
    return given


def _value_for(key: str, wishes: Wishes, *, wanted: bool) -> tuple[Any] | None:
    if key in _ALWAYS:
        return (_ALWAYS[key],)
    if not wanted:
        return None  # its own default stands
    if key in WIDTHS or key in OUTS:
        return (wishes.d_model,)
    if key in HEADS:
        return (wishes.num_heads,)
    if key in LENGTHS:
        return (wishes.length,)
    return (_IF_WANTED[key],) if key in _IF_WANTED else None


def _given_width(given: Mapping[str, Any]) -> int | None:
    """What it was built with; its own attributes of these names may be a head's width or an MLP's."""
    return next((int(given[key]) for key in WIDTHS if isinstance(given.get(key), int)), None)


def width_of(module: nn.Module) -> int | None:
    """Features of an input token, by the module's own attribute or its first layer; None where neither tells."""
    for key in WIDTHS:
        value = getattr(module, key, None)
        if isinstance(value, int) and value > 0:
            return value
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            return layer.in_features
        if isinstance(layer, nn.RNNBase):
            return int(layer.input_size)
        if isinstance(layer, nn.Conv1d):
            return layer.in_channels
        if isinstance(layer, nn.LayerNorm) and len(layer.normalized_shape) == 1:
            return int(layer.normalized_shape[0])
    return None
