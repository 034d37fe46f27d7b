"""Where arrays lie in an ``.npz``, ``.npy`` or ``.safetensors`` file: headers matched, never evaluated or unpickled."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from safetensors import SafetensorError, safe_open

from attnviz.tensor_files.opened import LONGEST_DIRECTORY, OpenFile, StoredArray, archive

FLOATS: Final = {"<f8": "float64", "<f4": "float32", "<f2": "float16", "bfloat16": "bfloat16"}
"""Dtypes of queries and keys, by NumPy's short names, and what a spec calls them."""
BITS: Final = ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8")
"""Dtypes of masks."""
_SAFE: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16"}
_NPY: Final = b"\x93NUMPY"
_LONGEST_NPY_HEADER: Final = 10_000


def starts_as_npy(file: OpenFile) -> bool:
    """Whether it is an ``.npy`` file."""
    file.reader.seek(0)
    return file.reader.read(len(_NPY)) == _NPY


def named_arrays(file: OpenFile, wanted: Iterable[str]) -> list[StoredArray]:
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


def npy_array(file: OpenFile) -> StoredArray:
    """The array of an ``.npy`` file."""
    file.reader.seek(0)
    descr, fortran, shape, header = _npy_header(file, file.reader)
    array = StoredArray("its array", descr, shape, fortran, header)
    _check_known(file, array)
    if header + array.nbytes > file.size:
        raise file.problem(f"it is cut short: {header + array.nbytes:,} bytes are named in it, {file.size:,} are there")
    return array


def _npy_header(file: OpenFile, stream: io.BufferedIOBase | Any) -> tuple[str, bool, tuple[int, ...], int]:
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


def _npz_arrays(file: OpenFile, wanted: Iterable[str]) -> list[StoredArray]:
    with archive(file) as members:
        named = [(info.filename.removesuffix(".npy"), info) for info in members.infolist()]
        found = [(name, info) for name, info in named if name.lower() in wanted]
        if not found:
            raise file.problem(lacking(name for name, _ in named))
        return [_npz_array(file, members, name, info) for name, info in found]


def first_array(file: OpenFile, names: Iterable[str]) -> StoredArray | None:
    """The first of ``names`` that an ``.npz`` file has."""
    with archive(file) as members:
        there = {info.filename: info for info in members.infolist()}
        found = next(((name, info) for name in names if (info := there.get(f"{name}.npy")) is not None), None)
        return None if found is None else _npz_array(file, members, *found)


def _npz_array(file: OpenFile, members: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> StoredArray:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise file.problem(f"{name} is compressed in a way that NumPy does not use; save it with numpy.savez")
    with members.open(info) as stream:
        descr, fortran, shape, header = _npy_header(file, stream)
    array = StoredArray(name, descr, shape, fortran, None, header, member=info)
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


def _safe_arrays(file: OpenFile, wanted: Iterable[str]) -> list[StoredArray]:
    """Arrays of a ``.safetensors`` file: the package checks the format, its header says where they lie."""
    file.reader.seek(0)
    length = int.from_bytes(file.reader.read(8), "little")
    if length > LONGEST_DIRECTORY:
        raise file.problem(
            f"its header of {length:,} bytes is too long for a file of queries and keys; save them alone"
        )
    try:
        header = json.loads(file.reader.read(length))
        with safe_open(file.path, framework="numpy") as opened:
            names = list(opened.keys())
            found = [(name, opened.get_slice(name)) for name in names if name.lower() in wanted]
            if not found:
                raise file.problem(lacking(names))
            return [
                _safe_array(file, name, part.get_dtype(), part.get_shape(), header[name], 8 + length)
                for name, part in found
            ]
    except (SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise file.problem("it is cut short or broken; save it again") from error


def _safe_array(file: OpenFile, name: str, dtype: str, shape: list[int], entry: Any, data: int) -> StoredArray:
    first, end = entry["data_offsets"]
    array = StoredArray(name, _SAFE.get(dtype, dtype), tuple(shape), offset=data + first)
    _check_known(file, array)
    if end - first != array.nbytes or first < 0 or data + end > file.size:
        raise file.problem(f"{name} is not as long as its header says; save it again")
    return array


def lacking(names: Iterable[str]) -> str:
    """Why a file with arrays of these ``names`` gives no queries and keys."""
    listed = [ascii(name if len(name) <= 40 else f"{name[:40]}...") for name in names]
    there = ", ".join(listed[:6]) + (f" and {len(listed) - 6:,} more" if len(listed) > 6 else "")
    return f"it lacks arrays named q and k (or queries and keys); it has {there or 'none'}"


def _check_known(file: OpenFile, array: StoredArray) -> None:
    """Only dtypes whose size is known go on from here."""
    if "O" in array.descr:
        raise file.problem(_PICKLED)
    if array.descr.startswith(">"):
        little = ascii(array.descr.replace(">", "<"))
        raise file.problem(f"{array.name} is big-endian; save it after .astype({little})")
    if array.descr not in FLOATS and array.descr not in BITS and not re.fullmatch(r"<U\d{1,6}", array.descr):
        raise file.problem(
            f"{array.name} is of the dtype {array.descr!a}; save float64, float32 or float16 (masks: bool)"
        )
