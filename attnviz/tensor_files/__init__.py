"""Users' files of queries, keys and masks: data, never code. They are mapped, never written and never unpickled.

`describe_qk` and `describe_mask` look at a file and give what a spec keeps of it; `open_qk` and `open_mask` open what a
spec names, and refuse a file that is gone or is not the same any more. Formats by content: ``.npz``, ``.npy`` and
``.safetensors`` for queries and keys, ``.npy`` for masks. Arrays of a file share its mapping: they cost no memory but
the pages that are read, and what is written into them never reaches the file. A file that another program cuts short
while it is mapped ends this program, as with every mapping.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from attnviz.files import FileProblem
from attnviz.spec import MaskFile, QKFile, SpecError
from attnviz.tensor_files.formats import BITS, FLOATS, first_array, lacking, named_arrays, npy_array, starts_as_npy
from attnviz.tensor_files.opened import BLOCK, MOST_KEPT, Identity, OpenFile, StoredArray, reading

_QUERIES: Final = ("q", "queries")
_KEYS: Final = ("k", "keys")
_masks_checked: set[Identity] = set()
_SHAPE_OF_BOTH: Final = "(2, heads, tokens, d_head), queries before keys"


@dataclass(frozen=True, slots=True, eq=False)
class MappedQK:
    """``queries`` (heads, n_queries, d_head) and ``keys`` (kv_heads, n_keys, d_head) of a file.

    ``dtype`` is float64, float32, float16 or bfloat16; the arrays are of that dtype, but of uint16, the bits, where it
    is bfloat16, which NumPy lacks. They need not be aligned in memory. ``tokens`` name the keys, () where none do.
    """

    queries: npt.NDArray[Any]
    keys: npt.NDArray[Any]
    dtype: str
    tokens: tuple[str, ...] = ()


def describe_qk(path: Path | str) -> QKFile:
    """The source that ``path`` gives, with its sizes and SHA-256. Raises `SpecError` for the field ``qk``."""
    try:
        with reading(path) as file:
            return _described(file, *_queries_and_keys(file))
    except FileProblem as problem:
        raise SpecError("qk", problem.sentence) from problem


def open_qk(source: QKFile) -> MappedQK:
    """Queries and keys of the source's file. Raises `FileProblem` where it is gone or not the same any more.

    Members of an ``.npz`` that are compressed are unpacked into memory, if they fit; all else is mapped.
    """
    with reading(source.path) as file:
        file.check_sha256(source.sha256)
        queries, keys, tokens = _queries_and_keys(file)
        if msgspec.structs.replace(_described(file, queries, keys, tokens), path=source.path) != source:
            raise file.problem("its sizes are not those that the spec says; open it anew")
        names = () if tokens is None else _names(file, tokens)
        q, k = (array if array.ndim == 3 else array[None] for array in (file.load(queries), file.load(keys)))
        return MappedQK(q, k, FLOATS[queries.descr], names)


def describe_mask(path: Path | str) -> MaskFile:
    """The mask shape that ``path`` gives, with its SHA-256. Raises `SpecError` for the field ``mask_shape``."""
    try:
        with reading(path) as file:
            _mask(file)
            return MaskFile(path=file.spoken_path(), sha256=file.sha256())
    except FileProblem as problem:
        raise SpecError("mask_shape", problem.sentence) from problem


def open_mask(shape: MaskFile, n_queries: int, n_keys: int) -> npt.NDArray[np.bool_ | np.integer[Any]]:
    """The mask's cells (n_queries, n_keys), mapped: True, or 1 in integers of over a byte, where a query may look.

    Raises `FileProblem` where the file is gone, not the same any more, or of another shape.
    """
    with reading(shape.path) as file:
        file.check_sha256(shape.sha256)
        mask = _mask(file)
        if mask.shape != (n_queries, n_keys):
            raise file.problem(
                f"its mask is {mask.shape[0]:,} × {mask.shape[1]:,}, but there are {n_queries:,} queries × "
                f"{n_keys:,} keys; give a mask of that shape"
            )
        return mask


def sha256_of(path: Path | str) -> str:
    """SHA-256 of a file in hexadecimal digits, kept while path, inode, size and times stay. Raises `FileProblem`."""
    with reading(path) as file:
        return file.sha256()


def resembles(path: Path | str, kept: Mapping[str, Any]) -> bool:
    """Whether the file at ``path`` may be the one of which a spec keeps these fields, by what its header says alone."""
    try:
        with reading(path) as file:
            if "heads" in kept:
                sizes = _sizes(file, *_queries_and_keys(file))
                return all(kept.get(name) == size for name, size in sizes.items())
            _mask_array(file)
            return True
    except FileProblem:
        return False


def text_in(path: Path | str, names: Iterable[str], most: int) -> str | None:
    """The first of ``names`` that an ``.npz`` has, a text of at most ``most`` characters; None if it has none of them.

    Raises `FileProblem`, also where that is no such text.
    """
    with reading(path) as file:
        array = first_array(file, names)
        if array is None:
            return None
        if not array.descr.startswith("<U") or array.stored != () or not 0 < array.nbytes <= 4 * most:
            raise file.problem(f"its {array.name} is no text of attnviz; give one that attnviz wrote")
        text = file.load(array)
        if text.reshape(1).view("<u4").max() > sys.maxunicode:
            raise file.problem(f"its {array.name} holds what is no character; give one that attnviz wrote")
        return str(text)


# ------------------------------------------------------------------------------------------------- what is made of them


def _queries_and_keys(file: OpenFile) -> tuple[StoredArray, StoredArray, StoredArray | None]:
    """Where queries, keys and the tokens' names lie."""
    if starts_as_npy(file):
        both = npy_array(file)
        if len(both.stored) not in (3, 4) or both.stored[0] != 2:
            raise file.problem(f"its shape is {_said(both.stored)}; give {_SHAPE_OF_BOTH}")
        return replace(both, part=0), replace(both, part=1), None
    arrays = named_arrays(file, {*_QUERIES, *_KEYS, "tokens"})
    queries, keys = _one(file, arrays, _QUERIES), _one(file, arrays, _KEYS)
    if queries is None or keys is None:
        raise file.problem(lacking(array.name for array in arrays))
    return queries, keys, _one(file, arrays, ("tokens",))


def _one(file: OpenFile, arrays: list[StoredArray], names: tuple[str, ...]) -> StoredArray | None:
    found = [array for array in arrays if array.name.lower() in names]
    if len(found) > 1:
        raise file.problem(f"it has both {found[0].name!a} and {found[1].name!a}; give one of them")
    return found[0] if found else None


def _described(file: OpenFile, queries: StoredArray, keys: StoredArray, tokens: StoredArray | None) -> QKFile:
    """The source that these arrays are, if they fit together."""
    sizes = _sizes(file, queries, keys, tokens)
    try:
        return QKFile(path=file.spoken_path(), sha256=file.sha256(), **sizes)
    except SpecError as error:
        raise file.problem(str(error)) from error


def _sizes(
    file: OpenFile, queries: StoredArray, keys: StoredArray, tokens: StoredArray | None
) -> dict[str, int]:  # fmt: skip
    """What a source keeps of these arrays' shapes, if they fit together."""
    for array in (queries, keys):
        if array.descr not in FLOATS:
            raise file.problem(f"{array.name} holds no floating-point numbers; save float64, float32 or float16")
        if len(array.shape) == 4:
            raise file.problem(
                f"{array.name} has the shape {_said(array.shape)}, a batch first; save one item of it, "
                "(heads, tokens, d_head)"
            )
        if len(array.shape) not in (2, 3):
            raise file.problem(f"{array.name} has the shape {_said(array.shape)}; give (heads, tokens, d_head)")
    if queries.descr != keys.descr:
        raise file.problem(f"queries are {FLOATS[queries.descr]} but keys {FLOATS[keys.descr]}; give both in one dtype")
    (heads, n_queries, d_head), (kv_heads, n_keys, d_keys) = ((1, *array.shape)[-3:] for array in (queries, keys))
    if d_head != d_keys:
        raise file.problem(f"a query has {d_head:,} numbers but a key {d_keys:,}; give as many in both")
    if n_queries > n_keys:
        raise file.problem(
            f"it has {n_queries:,} queries but {n_keys:,} keys a head; give at most as many queries as keys"
        )
    if tokens is not None and not tokens.descr.startswith("<U"):
        raise file.problem("its tokens are no text; save them as an array of str")
    if tokens is not None and tokens.shape != (n_keys,):
        raise file.problem(
            f"its tokens have the shape {_said(tokens.shape)}, but there are {n_keys:,} keys; name each key"
        )
    return {"heads": heads, "kv_heads": kv_heads, "queries": n_queries, "length": n_keys, "d_head": d_head}


def _names(file: OpenFile, tokens: StoredArray) -> tuple[str, ...]:
    """The tokens' names, read block by block."""
    count, width = tokens.stored[0], tokens.dtype.itemsize
    if not width:
        return ("",) * count
    names: list[str] = []
    array, step = file.load(tokens), max(1, BLOCK // width)
    for first in range(0, count, step):
        block = array[first : first + step]
        if block.view("<u4").max() > sys.maxunicode:
            raise file.problem("its tokens hold what is no character; save them again")
        names += block.tolist()
    return tuple(names)


def _mask(file: OpenFile) -> npt.NDArray[np.bool_ | np.integer[Any]]:
    """A mask's cells, as bool where they are stored in a byte each."""
    array = _mask_array(file)
    cells = file.load(array)
    _check_bits(file, cells.T if array.fortran else cells)
    return cells.view(np.bool_) if cells.itemsize == 1 else cells


def _mask_array(file: OpenFile) -> StoredArray:
    """Where a mask lies."""
    if not starts_as_npy(file):
        raise file.problem("it is no .npy file; save the mask with numpy.save")
    array = npy_array(file)
    if array.descr not in BITS:
        raise file.problem(f"its dtype is {array.dtype.name}; give a mask of bool, True where a query may look")
    if len(array.shape) != 2 or not all(array.shape):
        raise file.problem(f"its shape is {_said(array.shape)}; give a mask of the shape (queries, keys)")
    return array


def _check_bits(file: OpenFile, cells: npt.NDArray[Any]) -> None:
    """Only 0 and 1 are allowed, in bool too, whose other bytes would mean anything."""
    key = file.key()
    if key in _masks_checked:
        return
    flat = cells.reshape(-1)
    flat = flat.view(np.uint8) if flat.itemsize == 1 else flat
    for first in range(0, flat.size, BLOCK):
        block = flat[first : first + BLOCK]
        if block.max() > 1 or block.min() < 0:
            raise file.problem("its cells are not all 0 or 1; save the mask as bool")
    if len(_masks_checked) >= MOST_KEPT:
        _masks_checked.clear()
    _masks_checked.add(key)


def _said(shape: tuple[int, ...]) -> str:
    return f"({', '.join(f'{size:,}' for size in shape)}{',' if len(shape) == 1 else ''})"
