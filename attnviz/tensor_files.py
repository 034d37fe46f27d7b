"""Users' files of queries, keys and masks: data, never code. They are mapped, never written and never unpickled.

`describe_qk` and `describe_mask` look at a file and give what a spec keeps of it; `open_qk` and `open_mask` open what a
spec names, and refuse a file that is gone or is not the same any more. Formats by content: ``.npz``, ``.npy`` and
``.safetensors`` for queries and keys, ``.npy`` for masks. Arrays of a file share its mapping: they cost no memory but
the pages that are read, and what is written into them never reaches the file. A file that another program cuts short
while it is mapped ends this program, as with every mapping.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import mmap
import os
import re
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import psutil
from safetensors import SafetensorError, safe_open

from attnviz.files import FileProblem, read_problem
from attnviz.spec import MaskFile, QKFile, SpecError

_FLOATS: Final = {"<f8": "float64", "<f4": "float32", "<f2": "float16", "bfloat16": "bfloat16"}
_BITS: Final = ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8")
_SAFE: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16"}
_QUERIES: Final = ("q", "queries")
_KEYS: Final = ("k", "keys")

_NPY: Final = b"\x93NUMPY"
_LONGEST_NPY_HEADER: Final = 10_000
_LONGEST_DIRECTORY: Final = 1 << 20
_BLOCK: Final = 1 << 20
_SHAPE_OF_BOTH: Final = "(2, heads, tokens, d_head), queries before keys"
_NO_RESERVE: Final = 0x4000  # MAP_NORESERVE: private pages that nobody writes need no memory set aside


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
        with _reading(path) as file:
            return _described(file, *_queries_and_keys(file))
    except FileProblem as problem:
        raise SpecError("qk", problem.sentence) from problem


def open_qk(source: QKFile) -> MappedQK:
    """Queries and keys of the source's file. Raises `FileProblem` where it is gone or not the same any more.

    Members of an ``.npz`` that are compressed are unpacked into memory, if they fit; all else is mapped.
    """
    with _reading(source.path) as file:
        file.check_sha256(source.sha256)
        queries, keys, tokens = _queries_and_keys(file)
        if msgspec.structs.replace(_described(file, queries, keys, tokens), path=source.path) != source:
            raise file.problem("its sizes are not those that the spec says; open it anew")
        names = () if tokens is None else _names(file, tokens)
        q, k = (array if array.ndim == 3 else array[None] for array in (file.load(queries), file.load(keys)))
        return MappedQK(q, k, _FLOATS[queries.descr], names)


def describe_mask(path: Path | str) -> MaskFile:
    """The mask shape that ``path`` gives, with its SHA-256. Raises `SpecError` for the field ``mask_shape``."""
    try:
        with _reading(path) as file:
            _mask(file)
            return MaskFile(path=file.spoken_path(), sha256=file.sha256())
    except FileProblem as problem:
        raise SpecError("mask_shape", problem.sentence) from problem


def open_mask(shape: MaskFile, n_queries: int, n_keys: int) -> npt.NDArray[np.bool_ | np.integer[Any]]:
    """The mask's cells (n_queries, n_keys), mapped: True, or 1 in integers of over a byte, where a query may look.

    Raises `FileProblem` where the file is gone, not the same any more, or of another shape.
    """
    with _reading(shape.path) as file:
        file.check_sha256(shape.sha256)
        mask = _mask(file)
        if mask.shape != (n_queries, n_keys):
            raise file.problem(
                f"its mask is {mask.shape[0]:,} × {mask.shape[1]:,}, but there are {n_queries:,} queries × "
                f"{n_keys:,} keys; give a mask of that shape"
            )
        return mask


def sha256_of(path: Path | str) -> str:
    """SHA-256 of a file in hexadecimal digits, kept by path, size and time of change. Raises `FileProblem`."""
    with _reading(path) as file:
        return file.sha256()


# ---------------------------------------------------------------------------------------------------------- a file open


@dataclass(frozen=True, slots=True)
class _Array:
    """Where an array lies in a file: ``offset`` in bytes, None if it is compressed (then it is ``member``).

    ``descr`` is NumPy's short name of a dtype, "bfloat16", or the format's own word for what we do not read. ``part``
    says that index of the first axis is meant alone. ``header`` is the bytes before the data inside ``member``.
    """

    name: str
    descr: str
    stored: tuple[int, ...]
    fortran: bool = False
    offset: int | None = None
    header: int = 0
    part: int | None = None
    member: zipfile.ZipInfo | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored if self.part is None else self.stored[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("<u2" if self.descr == "bfloat16" else self.descr)

    @property
    def nbytes(self) -> int:
        return math.prod(self.stored) * self.dtype.itemsize


class _Sparing(io.BufferedReader):
    """A reader that never takes much at once, whatever lengths a broken file names."""

    def read(self, size: int | None = -1, /) -> bytes:
        most = _LONGEST_DIRECTORY
        found = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(found) > most:
            raise zipfile.BadZipFile("a directory that is too long to be one")
        return found


_shas: dict[tuple[str, int, int], str] = {}
_masks_checked: set[tuple[str, int, int]] = set()
_MOST_KEPT: Final = 256


class _OpenFile:
    """A regular file that is open for reading."""

    def __init__(self, path: Path, reader: _Sparing) -> None:
        self.path = path
        self.reader = reader
        self.size = os.fstat(reader.fileno()).st_size
        self._map: mmap.mmap | None = None

    def problem(self, why: str) -> FileProblem:
        return FileProblem(self.path, why, "read")

    def spoken_path(self) -> str:
        """The absolute path, as a spec keeps it."""
        path = os.path.abspath(self.path)  # noqa: PTH100 (resolve would follow the links that a user chose)
        try:
            path.encode()
        except UnicodeEncodeError:
            raise self.problem("its name is no Unicode text, which a spec could not keep; rename it") from None
        return path

    def key(self) -> tuple[str, int, int]:
        now = os.fstat(self.reader.fileno())
        return os.path.abspath(self.path), now.st_size, now.st_mtime_ns  # noqa: PTH100

    def sha256(self) -> str:
        key = self.key()
        if key not in _shas:
            self.reader.seek(0)
            digest = hashlib.file_digest(self.reader, "sha256").hexdigest()
            if self.key() != key:
                raise self.problem("it is being written to; wait until it is complete")
            if len(_shas) >= _MOST_KEPT:
                _shas.clear()
            _shas[key] = digest
        return _shas[key]

    def check_sha256(self, expected: str) -> None:
        if self.sha256() != expected:
            raise self.problem(
                "it has changed since the spec was made (its SHA-256 is another); open it anew, or put the old one back"
            )

    def mapped(self) -> mmap.mmap:
        """The whole file, copied on write."""
        if self._map is None:
            number = self.reader.fileno()
            if sys.platform == "linux":
                both = mmap.PROT_READ | mmap.PROT_WRITE
                self._map = mmap.mmap(number, 0, flags=mmap.MAP_PRIVATE | _NO_RESERVE, prot=both)
            else:
                self._map = mmap.mmap(number, 0, access=mmap.ACCESS_COPY)
        return self._map

    def load(self, array: _Array) -> npt.NDArray[Any]:
        """The array in its shape: mapped, or unpacked where it is compressed."""
        if array.offset is None:
            flat = self._unpacked(array)
        else:
            flat = np.frombuffer(self.mapped(), array.dtype, math.prod(array.stored), array.offset)
        whole = flat.reshape(array.stored, order="F" if array.fortran else "C")
        return whole if array.part is None else whole[array.part]

    def _unpacked(self, array: _Array) -> npt.NDArray[Any]:
        assert array.member is not None  # noqa: S101 (what has no offset is a compressed member)
        free = psutil.virtual_memory().available
        if array.nbytes > free:
            raise self.problem(
                f"{array.name} takes {array.nbytes / 1e9:,.1f} GB unpacked, but {free / 1e9:,.1f} GB are free; "
                "save it with numpy.savez, which does not compress"
            )
        flat = np.empty(math.prod(array.stored), array.dtype)
        into, done = flat.view(np.uint8), 0
        with _archive(self) as archive, archive.open(array.member) as stream:
            stream.read(array.header)
            while chunk := stream.read(min(_BLOCK, len(into) - done)):
                into[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
                done += len(chunk)
            rest = stream.read(1)  # at its end the archive compares its checksum
        if done < len(into) or rest:
            raise self.problem(f"{array.name} is not as long as its header says; save it again")
        return flat


def _reader(path: Path) -> _Sparing:
    """A regular file opened, without waiting for a pipe's other end. Raises `FileProblem` or OSError."""

    def opener(name: str, flags: int) -> int:
        number = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
        kind = os.fstat(number).st_mode
        if stat.S_ISREG(kind) or stat.S_ISDIR(kind):  # of a folder FileIO says what it is
            return number
        os.close(number)
        raise FileProblem(path, "that is a device or a pipe; give a file's name", "read")

    try:
        return _Sparing(io.FileIO(path, "rb", opener=opener))
    except ValueError as error:  # a NUL or half a character in the name
        raise FileProblem(path, "that cannot be a file's name; choose another", "read") from error


@contextmanager
def _reading(path: Path | str) -> Iterator[_OpenFile]:
    """The file at ``path``; whatever goes wrong with it becomes a `FileProblem`."""
    path = Path(path)
    try:
        with _reader(path) as reader:
            if not os.fstat(reader.fileno()).st_size:
                raise FileProblem(path, "it is empty; save it again", "read")
            yield _OpenFile(path, reader)
    except OSError as error:
        raise read_problem(path, error) from error
    except MemoryError as error:
        raise FileProblem(path, "there is no room left for it in memory; choose a smaller file", "read") from error


# -------------------------------------------------------------------------------------------------------------- formats


def _starts_as_npy(file: _OpenFile) -> bool:
    file.reader.seek(0)
    return file.reader.read(len(_NPY)) == _NPY


def _named_arrays(file: _OpenFile, wanted: Iterable[str]) -> list[_Array]:
    """The arrays of an ``.npz`` or ``.safetensors`` file whose names, in any case, are ``wanted``."""
    file.reader.seek(0)
    start = file.reader.read(16)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _npz_arrays(file, wanted)
    if start[8:9] == b"{":
        return _safe_arrays(file, wanted)
    if start.startswith(b"\x80"):
        raise file.problem(_PICKLED)
    raise file.problem("it is no .npz, .npy or .safetensors file; save it as one of these")


_PICKLED: Final = "it holds Python objects, which are never opened; save plain arrays of numbers"


def _npy_array(file: _OpenFile) -> _Array:
    file.reader.seek(0)
    descr, fortran, shape, header = _npy_header(file, file.reader)
    array = _Array("its array", descr, shape, fortran, header)
    _check_known(file, array)
    if header + array.nbytes > file.size:
        raise file.problem(f"it is cut short: {header + array.nbytes:,} bytes are named in it, {file.size:,} are there")
    return array


def _npy_header(file: _OpenFile, stream: io.BufferedIOBase | Any) -> tuple[str, bool, tuple[int, ...], int]:
    """Short dtype, order, shape and the bytes of an array's header. It is matched, not evaluated."""
    start = stream.read(8)
    if not start.startswith(_NPY) or len(start) < 8 or start[6] not in (1, 2, 3):
        raise file.problem("an array's header is broken; save it again")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > _LONGEST_NPY_HEADER:
        raise file.problem(f"an array's header of {length:,} bytes is too long to be one; save it again")
    header = stream.read(length).decode("latin-1")
    descr = re.search(r"""['"]descr['"]\s*:\s*(?:['"]([^'"]{1,32})['"]|\[)""", header)
    order = re.search(r"""['"]fortran_order['"]\s*:\s*(True|False)\b""", header)
    sizes = re.search(r"""['"]shape['"]\s*:\s*\(([\d,\sL]{0,300})\)""", header)
    if len(header) < length or descr is None or order is None or sizes is None:
        raise file.problem("an array's header is broken; save it again")
    numbers = re.findall(r"\d+", sizes.group(1))
    if any(len(number) > 18 for number in numbers):
        raise file.problem("an array's header is broken; save it again")
    shape = tuple(int(number) for number in numbers)
    return descr.group(1) or "structured", order.group(1) == "True", shape, 8 + width + length


def _npz_arrays(file: _OpenFile, wanted: Iterable[str]) -> list[_Array]:
    with _archive(file) as archive:
        named = [(info.filename.removesuffix(".npy"), info) for info in archive.infolist()]
        found = [(name, info) for name, info in named if name.lower() in wanted]
        if not found:
            raise file.problem(_lacking(name for name, _ in named))
        return [_npz_array(file, archive, name, info) for name, info in found]


def _npz_array(file: _OpenFile, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> _Array:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise file.problem(f"{name} is compressed in a way that NumPy does not use; save it with numpy.savez")
    with archive.open(info) as stream:
        descr, fortran, shape, header = _npy_header(file, stream)
    array = _Array(name, descr, shape, fortran, None, header, member=info)
    _check_known(file, array)
    if header + array.nbytes != info.file_size:
        raise file.problem(f"{name} is not as long as its header says; save it again")
    if info.compress_type != zipfile.ZIP_STORED:
        return array
    file.reader.seek(info.header_offset)
    local = file.reader.read(30)
    if len(local) < 30:
        raise zipfile.BadZipFile
    of_name, of_extra = struct.unpack_from("<HH", local, 26)
    offset = info.header_offset + 30 + of_name + of_extra + header
    if offset + array.nbytes > file.size:
        raise zipfile.BadZipFile
    return replace(array, offset=offset)


@contextmanager
def _archive(file: _OpenFile) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file.reader) as archive:
            yield archive
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, LookupError,
        OverflowError, RuntimeError,
    ) as error:  # fmt: skip
        if isinstance(error, FileProblem):
            raise
        encrypted = isinstance(error, RuntimeError) and "encrypted" in str(error)
        why = "it is encrypted; save it without a password" if encrypted else "it is cut short or broken; save it again"
        raise file.problem(why) from error


def _safe_arrays(file: _OpenFile, wanted: Iterable[str]) -> list[_Array]:
    """Arrays of a ``.safetensors`` file: the package checks the format, its header says where they lie."""
    file.reader.seek(0)
    length = int.from_bytes(file.reader.read(8), "little")
    if length > _LONGEST_DIRECTORY:
        raise file.problem(
            f"its header of {length:,} bytes is too long for a file of queries and keys; save them alone"
        )
    try:
        header = json.loads(file.reader.read(length))
        with safe_open(file.path, framework="numpy") as opened:
            names = list(opened.keys())
            found = [(name, opened.get_slice(name)) for name in names if name.lower() in wanted]
            if not found:
                raise file.problem(_lacking(names))
            return [
                _safe_array(file, name, part.get_dtype(), part.get_shape(), header[name], 8 + length)
                for name, part in found
            ]
    except (SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise file.problem("it is cut short or broken; save it again") from error


def _safe_array(file: _OpenFile, name: str, dtype: str, shape: list[int], entry: Any, data: int) -> _Array:
    first, end = entry["data_offsets"]
    array = _Array(name, _SAFE.get(dtype, dtype), tuple(shape), offset=data + first)
    _check_known(file, array)
    if end - first != array.nbytes or first < 0 or data + end > file.size:
        raise file.problem(f"{name} is not as long as its header says; save it again")
    return array


def _lacking(names: Iterable[str]) -> str:
    listed = [ascii(name if len(name) <= 40 else f"{name[:40]}...") for name in names]
    there = ", ".join(listed[:6]) + (f" and {len(listed) - 6:,} more" if len(listed) > 6 else "")
    return f"it lacks arrays named q and k (or queries and keys); it has {there or 'none'}"


def _check_known(file: _OpenFile, array: _Array) -> None:
    """Only dtypes whose size is known go on from here."""
    if "O" in array.descr:
        raise file.problem(_PICKLED)
    if array.descr.startswith(">"):
        little = ascii(array.descr.replace(">", "<"))
        raise file.problem(f"{array.name} is big-endian; save it after .astype({little})")
    if array.descr not in _FLOATS and array.descr not in _BITS and not re.fullmatch(r"<U\d{1,6}", array.descr):
        raise file.problem(
            f"{array.name} is of the dtype {array.descr!a}; save float64, float32 or float16 (masks: bool)"
        )


# ------------------------------------------------------------------------------------------------- what is made of them


def _queries_and_keys(file: _OpenFile) -> tuple[_Array, _Array, _Array | None]:
    """Where queries, keys and the tokens' names lie."""
    if _starts_as_npy(file):
        both = _npy_array(file)
        if len(both.stored) not in (3, 4) or both.stored[0] != 2:
            raise file.problem(f"its shape is {_said(both.stored)}; give {_SHAPE_OF_BOTH}")
        return replace(both, part=0), replace(both, part=1), None
    arrays = _named_arrays(file, {*_QUERIES, *_KEYS, "tokens"})
    queries, keys = _one(file, arrays, _QUERIES), _one(file, arrays, _KEYS)
    if queries is None or keys is None:
        raise file.problem(_lacking(array.name for array in arrays))
    return queries, keys, _one(file, arrays, ("tokens",))


def _one(file: _OpenFile, arrays: list[_Array], names: tuple[str, ...]) -> _Array | None:
    found = [array for array in arrays if array.name.lower() in names]
    if len(found) > 1:
        raise file.problem(f"it has both {found[0].name!a} and {found[1].name!a}; give one of them")
    return found[0] if found else None


def _described(file: _OpenFile, queries: _Array, keys: _Array, tokens: _Array | None) -> QKFile:
    """The source that these arrays are, if they fit together."""
    for array in (queries, keys):
        if array.descr not in _FLOATS:
            raise file.problem(f"{array.name} holds no floating-point numbers; save float64, float32 or float16")
        if len(array.shape) not in (2, 3):
            raise file.problem(f"{array.name} has the shape {_said(array.shape)}; give (heads, tokens, d_head)")
    if queries.descr != keys.descr:
        raise file.problem(
            f"queries are {_FLOATS[queries.descr]} but keys {_FLOATS[keys.descr]}; give both in one dtype"
        )
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
    try:
        return QKFile(
            path=file.spoken_path(), sha256=file.sha256(), heads=heads, kv_heads=kv_heads, queries=n_queries,
            length=n_keys, d_head=d_head,
        )  # fmt: skip
    except SpecError as error:
        raise file.problem(str(error)) from error


def _names(file: _OpenFile, tokens: _Array) -> tuple[str, ...]:
    """The tokens' names, read block by block."""
    count, width = tokens.stored[0], tokens.dtype.itemsize
    if not width:
        return ("",) * count
    names: list[str] = []
    array, step = file.load(tokens), max(1, _BLOCK // width)
    for first in range(0, count, step):
        block = array[first : first + step]
        if block.view("<u4").max() > sys.maxunicode:
            raise file.problem("its tokens hold what is no character; save them again")
        names += block.tolist()
    return tuple(names)


def _mask(file: _OpenFile) -> npt.NDArray[np.bool_ | np.integer[Any]]:
    """A mask's cells, as bool where they are stored in a byte each."""
    if not _starts_as_npy(file):
        raise file.problem("it is no .npy file; save the mask with numpy.save")
    array = _npy_array(file)
    if array.descr not in _BITS:
        raise file.problem(f"its dtype is {array.dtype.name}; give a mask of bool, True where a query may look")
    if len(array.shape) != 2 or not all(array.shape):
        raise file.problem(f"its shape is {_said(array.shape)}; give a mask of the shape (queries, keys)")
    cells = file.load(array)
    _check_bits(file, cells.T if array.fortran else cells)
    return cells.view(np.bool_) if cells.itemsize == 1 else cells


def _check_bits(file: _OpenFile, cells: npt.NDArray[Any]) -> None:
    """Only 0 and 1 are allowed, in bool too, whose other bytes would mean anything."""
    key = file.key()
    if key in _masks_checked:
        return
    flat = cells.reshape(-1)
    flat = flat.view(np.uint8) if flat.itemsize == 1 else flat
    for first in range(0, flat.size, _BLOCK):
        block = flat[first : first + _BLOCK]
        if block.max() > 1 or block.min() < 0:
            raise file.problem("its cells are not all 0 or 1; save the mask as bool")
    if len(_masks_checked) >= _MOST_KEPT:
        _masks_checked.clear()
    _masks_checked.add(key)


def _said(shape: tuple[int, ...]) -> str:
    return f"({', '.join(f'{size:,}' for size in shape)}{',' if len(shape) == 1 else ''})"
