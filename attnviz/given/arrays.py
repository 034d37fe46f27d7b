"""Weights that somebody has already, as arrays or tensors of any kind: checked, named, and read cell by cell.

NumPy alone: a tensor is known by what it can do, so that weights of NumPy load no torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

SHAPES: Final = (
    "give (queries, keys), (heads, queries, keys), (layers, heads, queries, keys), or a list of them, one a layer"
)
_MOST_HEADS: Final = 1024
_MOST_TOKENS: Final = 1 << 20
_ROUNDING: Final = 1e-2
"""So far above 1 a weight may lie that was computed in bfloat16."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Checked weights. ``layers`` are arrays (heads, queries, keys) of any real dtype, as they were given.

    ``tokens`` name the keys; the queries are the last of them, unless ``query_names`` name them. ``visible`` bool
    (queries, keys) says where a query may look, None where nobody said; ``causal`` that it is the usual triangle.
    """

    layers: tuple[Array, ...]
    tokens: tuple[str, ...]
    query_names: tuple[str, ...] = ()
    visible: Mask | None = None
    causal: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and keys."""
        return self.layers[0].shape[1], self.layers[0].shape[2]

    def cells(self, layer: int, head: int, rows: tuple[int, int]) -> npt.NDArray[np.floating[Any]]:
        """Numbers (rows, keys) of one head; float32 where that holds them, else float64. Not to be written to."""
        cells = self.layers[layer][head, rows[0] : rows[1]]
        narrow = cells.dtype.itemsize <= (4 if cells.dtype.kind == "f" else 2)
        return np.asarray(cells, np.float32 if narrow else np.float64)

    def are_scores(self, layer: int) -> bool:
        """Whether a number of the layer is below 0 or above 1, which no weight after a softmax is."""
        cells = self.layers[layer]
        low, high = np.fmin.reduce(cells, axis=None), np.fmax.reduce(cells, axis=None)
        return bool(low < 0 or high > 1 + _ROUNDING)


def read(weights: Any, tokens: Any = None, mask: Any = None) -> Given:
    """The weights (queries, keys), (heads, queries, keys) or (layers, heads, queries, keys), or a list of layers.

    An array of four axes is layers of heads, never a batch. In a list, each entry is one layer of heads, (heads,
    queries, keys) or (1, heads, queries, keys), as transformers' ``attentions`` are; entries of two axes are heads of
    one layer. ``tokens`` are names of the keys, or two lists, of the queries and of the keys. ``mask`` is None,
    "causal", or a bool array (queries, keys), True where a query may look, as `scaled_dot_product_attention` takes it.
    Raises `ValueError` or `TypeError` with a sentence that says what was given and what would fit.
    """
    layers = _layers(weights)
    heads, n_queries, n_keys = layers[0].shape
    if heads > _MOST_HEADS or n_keys > _MOST_TOKENS or n_queries > _MOST_TOKENS:
        raise ValueError(
            f"weights has {heads:,} heads of {n_queries:,} x {n_keys:,}: give at most {_MOST_HEADS:,} "
            f"heads of {_MOST_TOKENS:,} tokens"
        )
    keys, queries = _names(tokens, n_queries, n_keys)
    visible, causal = _visible(mask, n_queries, n_keys)
    return Given(layers, keys, queries, visible, causal)


def as_array(value: Any, name: str) -> Array:
    """``value`` as an array of real numbers: of NumPy, a tensor on any device, or nested lists of numbers."""
    if callable(getattr(value, "detach", None)) and callable(getattr(value, "cpu", None)):
        value = _of_tensor(value, name)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:  # a tensor in a list may say no as it likes
        why = "its rows differ in length" if "inhomogeneous" in str(error) else str(error)
        raise ValueError(f"{name} is no array of numbers ({why}): give a NumPy array or a tensor") from None
    if array.dtype.kind not in "fiub":
        words = "complex numbers" if array.dtype.kind == "c" else f"the dtype {array.dtype}"
        raise TypeError(f"{name} has {words}: give real numbers")
    return array


def _of_tensor(tensor: Any, name: str) -> Any:
    if str(getattr(tensor, "device", "")) == "meta":
        raise ValueError(f"{name} is on the device meta, which holds no numbers: give a tensor on another device")
    tensor = tensor.detach()
    if getattr(tensor, "is_sparse", False):
        tensor = tensor.to_dense()
    tensor = tensor.cpu()
    try:
        return tensor.resolve_conj().resolve_neg().numpy()
    except TypeError:  # NumPy has no bfloat16 and no float8
        return tensor.float().numpy()


# ------------------------------------------------------------------------------------------------------------ shapes


def _layers(weights: Any) -> tuple[Array, ...]:
    """Each layer as (heads, queries, keys), all of one shape."""
    if weights is None:
        raise TypeError(f"weights is None: {SHAPES}")
    if isinstance(weights, dict | str | bytes):
        raise TypeError(f"weights is of type {type(weights).__name__}: {SHAPES}")
    entries = list(weights) if isinstance(weights, list | tuple) else None
    if entries is not None and (not entries or any(entry is None for entry in entries)):
        empty = "is empty" if not entries else "holds None in place of layers"
        raise ValueError(
            f"weights {empty}: a model of transformers gives its attentions with output_attentions=True and "
            'attn_implementation="eager"'
        )
    if entries is None or not any(map(_holds_arrays, entries)):
        return _of_one(as_array(weights, "weights"))
    return _of_many(entries)


def _holds_arrays(entry: Any) -> bool:
    """Whether ``entry`` is an array with axes, or a list with one in it, rather than a number or a list of them."""
    if isinstance(entry, list | tuple):
        return any(map(_holds_arrays, entry))
    return bool(getattr(entry, "ndim", 0))


def _of_one(array: Array) -> tuple[Array, ...]:
    """One array's layers."""
    said = _said(array.shape)
    if array.ndim == 5 and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim == 5:
        raise ValueError(
            f"weights has shape {said}, layers of a batch of {array.shape[1]}: give one item, such as weights[:, 0]"
        )
    if array.ndim not in (2, 3, 4) or 0 in array.shape:
        why = ", which holds no numbers" if 0 in array.shape else ""
        raise ValueError(f"weights has shape {said}{why}: {SHAPES}")
    if array.ndim == 4:
        return tuple(array)
    return (array[None] if array.ndim == 2 else array,)


def _of_many(entries: list[Any]) -> tuple[Array, ...]:
    """Layers one by one, or heads of one layer."""
    arrays = [_entry(entry, f"weights[{place}]") for place, entry in enumerate(entries)]
    for place, array in enumerate(arrays):
        name, said = f"weights[{place}]", _said(array.shape)
        if array.ndim not in (2, 3, 4) or 0 in array.shape:
            raise ValueError(f"{name} has shape {said}: give (heads, queries, keys) for each layer")
        if array.ndim == 4 and array.shape[0] > 1:
            raise ValueError(
                f"{name} has shape {said}, a batch of {array.shape[0]}: give one item, such as "
                "[layer[0] for layer in weights]"
            )
        if array.shape != arrays[0].shape:
            raise ValueError(f"{name} has shape {said}, but weights[0] has {_said(arrays[0].shape)}: give one shape")
    if arrays[0].ndim == 2:
        return (np.stack(arrays),)
    return tuple(array[0] if array.ndim == 4 else array for array in arrays)


def _entry(entry: Any, name: str) -> Array:
    """One layer, which may be a list of its heads."""
    if isinstance(entry, list | tuple) and _holds_arrays(entry):
        heads = [as_array(head, f"{name}[{place}]") for place, head in enumerate(entry)]
        if len({head.shape for head in heads}) > 1:
            shapes = ", ".join(_said(head.shape) for head in heads)
            raise ValueError(f"{name} has heads of the shapes {shapes}: give one shape")
        return np.stack(heads)
    return as_array(entry, name)


def _said(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


# ------------------------------------------------------------------------------------------------------ names and mask


def _names(tokens: Any, n_queries: int, n_keys: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the keys, and of the queries where they are not the last of these."""
    if tokens is None:
        numbers = tuple(map(str, range(max(n_queries, n_keys))))
        return numbers[:n_keys], numbers if n_queries > n_keys else ()
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise TypeError(f"tokens is {str(tokens)[:40]!r}: give a list of names, one a key")
    given = list(tokens)
    if len(given) == 2 and all(isinstance(part, list | tuple) or getattr(part, "ndim", 0) for part in given):
        queries, keys = (strings(part) for part in given)
    else:
        queries, keys = (), strings(given)
    two = "two lists, of the queries and of the keys"
    if len(keys) != n_keys:
        raise ValueError(f"tokens has {len(keys)} names, but there are {n_keys} keys: give one name a key, or {two}")
    if queries and len(queries) != n_queries:
        raise ValueError(
            f"tokens has {len(queries)} names of queries, but there are {n_queries}: give one name a query"
        )
    if not queries and n_queries > n_keys:
        raise ValueError(f"tokens names {n_keys} keys, but there are {n_queries} queries, which are more: give {two}")
    return keys, queries


def strings(names: Iterable[Any]) -> tuple[str, ...]:
    """Each name as text."""
    return tuple(name if isinstance(name, str) else str(name) for name in names)


def checked_mask(mask: Any, n_queries: int, n_keys: int) -> Mask | None:
    """Where a query may look, bool (queries, keys); None for "causal", which is the usual triangle."""
    said = 'give "causal", or a bool array (queries, keys), True where a query may look'
    if isinstance(mask, str):
        if mask != "causal":
            raise ValueError(f"mask is {mask!r}: {said}")
        return None
    array = as_array(mask, "mask")
    if array.dtype != bool:
        raise TypeError(f"mask has the dtype {array.dtype}: {said}")
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.shape != (n_queries, n_keys):
        raise ValueError(f"mask has shape {_said(array.shape)}: give ({n_queries}, {n_keys}), queries by keys")
    return array


def _visible(mask: Any, n_queries: int, n_keys: int) -> tuple[Mask | None, bool]:
    """Where a query may look, None where nobody says, and whether that is the usual triangle."""
    if mask is None:
        return None, False
    triangle = np.tri(n_queries, n_keys, n_keys - n_queries, dtype=bool)
    array = checked_mask(mask, n_queries, n_keys)
    return (triangle, True) if array is None else (array, bool(np.array_equal(array, triangle)))
