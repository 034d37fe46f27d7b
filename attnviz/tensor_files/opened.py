"""A user's file that is open for reading: its hash, its mapping, and where arrays lie in it."""

from __future__ import annotations

import hashlib
import io
import math
import mmap
import os
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import psutil

from attnviz.files import FileProblem, read_problem

LONGEST_DIRECTORY: Final = 1 << 20
"""Bytes of the longest directory or header that is read."""
BLOCK: Final = 1 << 20
"""Bytes that are read, unpacked or checked at a time."""
_NO_RESERVE: Final = 0x4000  # MAP_NORESERVE: private pages that nobody writes need no memory set aside


@dataclass(frozen=True, slots=True)
class StoredArray:
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
        most = LONGEST_DIRECTORY
        found = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(found) > most:
            raise zipfile.BadZipFile("a directory that is too long to be one")
        return found


Identity = tuple[str, int, int, int, int]
"""What an open file is known again by: path, size, time of writing, inode, and time of any change at all."""

MOST_KEPT: Final = 256
"""So many files are known again."""
_shas: dict[Identity, str] = {}


class OpenFile:
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

    def key(self) -> Identity:
        """What tells this file from another, and from itself after a change that kept its size and its time."""
        now = os.fstat(self.reader.fileno())
        path = os.path.abspath(self.path)  # noqa: PTH100
        return path, now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns

    def sha256(self) -> str:
        key = self.key()
        if key not in _shas:
            self.reader.seek(0)
            digest = hashlib.file_digest(self.reader, "sha256").hexdigest()
            if self.key() != key:
                raise self.problem("it is being written to; wait until it is complete")
            if len(_shas) >= MOST_KEPT:
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

    def load(self, array: StoredArray) -> npt.NDArray[Any]:
        """The array in its shape: mapped, or unpacked where it is compressed."""
        if array.offset is None:
            flat = self._unpacked(array)
        else:
            flat = np.frombuffer(self.mapped(), array.dtype, math.prod(array.stored), array.offset)
        whole = flat.reshape(array.stored, order="F" if array.fortran else "C")
        return whole if array.part is None else whole[array.part]

    def _unpacked(self, array: StoredArray) -> npt.NDArray[Any]:
        assert array.member is not None  # noqa: S101 (what has no offset is a compressed member)
        free = psutil.virtual_memory().available
        if array.nbytes > free:
            raise self.problem(
                f"{array.name} takes {array.nbytes / 1e9:,.1f} GB unpacked, but {free / 1e9:,.1f} GB are free; "
                "save it with numpy.savez, which does not compress"
            )
        flat = np.empty(math.prod(array.stored), array.dtype)
        into, done = flat.view(np.uint8), 0
        with archive(self) as members, members.open(array.member) as stream:
            stream.read(array.header)
            while chunk := stream.read(min(BLOCK, len(into) - done)):
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
def reading(path: Path | str) -> Iterator[OpenFile]:
    """The file at ``path``; whatever goes wrong with it becomes a `FileProblem`."""
    path = Path(path)
    try:
        with _reader(path) as reader:
            if not os.fstat(reader.fileno()).st_size:
                raise FileProblem(path, "it is empty; save it again", "read")
            yield OpenFile(path, reader)
    except OSError as error:
        raise read_problem(path, error) from error
    except MemoryError as error:
        raise FileProblem(path, "there is no room left for it in memory; choose a smaller file", "read") from error


@contextmanager
def archive(file: OpenFile) -> Iterator[zipfile.ZipFile]:
    """The members of an ``.npz``; what is wrong with one becomes a `FileProblem`."""
    try:
        with zipfile.ZipFile(file.reader) as members:
            yield members
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, LookupError,
        OverflowError, RuntimeError,
    ) as error:  # fmt: skip
        if isinstance(error, FileProblem):
            raise
        encrypted = isinstance(error, RuntimeError) and "encrypted" in str(error)
        why = "it is encrypted; save it without a password" if encrypted else "it is cut short or broken; save it again"
        raise file.problem(why) from error
