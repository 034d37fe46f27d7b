"""Files written whole or not at all, and the problems of files, written or read, in sentences."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import numpy.typing as npt

_unfinished: set[Path] = set()
_LEFT_OVER: Final = re.compile(r"\.attnviz-([0-9a-f]{6})-([0-9]{1,10})-[0-9a-f]{8}")
_OLD_S: Final = 86_400
"""Nothing is written for a day: a file that has been unfinished for so long was left by a program that is gone."""


def abandon() -> None:
    """Remove what is half written: the program is about to be ended from outside."""
    for path in tuple(_unfinished):
        with contextlib.suppress(OSError):
            path.unlink()


class FileProblem(RuntimeError):  # noqa: N818 (a problem, as in spec and session, not a crash)
    """A file that could not be written or, with ``doing`` "read", used: ``sentence`` says why and what would do."""

    def __init__(self, path: Path, why: str, doing: Literal["write", "read"] = "write") -> None:
        name = str(path)
        self.sentence = f"cannot {doing} {name if name.isprintable() else ascii(name)}: {why}"
        super().__init__(self.sentence)


def read_problem(path: Path, error: OSError) -> FileProblem:
    """The problem of a file that could not be read."""
    known = {
        errno.ENOENT: "there is no such file; put it back, or choose another",
        errno.ENOTDIR: "there is no such file; put it back, or choose another",
        errno.EISDIR: "that is a folder; give a file's name in it",
        errno.EACCES: "you may not read it; choose another, or allow reading it",
        errno.EPERM: "you may not read it; choose another, or allow reading it",
        errno.ENAMETOOLONG: "the name is too long for a file; choose another",
        errno.ELOOP: "it is a link that runs in a circle; choose another",
        errno.ENOMEM: "there is no room left for it in memory; close other programs, or choose a smaller file",
    }
    why = known.get(error.errno or 0) or f"{error.strerror or error}; choose another file"
    return FileProblem(path, why, "read")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a new file beside ``path``, then put it in its place in one step.

    On any failure the new file is removed and an older ``path`` is left as it was. What a program that was killed left
    unfinished in that folder is removed too. A link is followed. Raises `FileProblem`; what ``write`` itself raises,
    other than OSError, goes through.
    """
    path = Path(path)
    try:
        target = path.resolve()
        mode = _replaceable(target)
    except FileProblem:
        raise
    except (ValueError, RuntimeError):  # a NUL or half a character in the name; links that run in a circle
        raise FileProblem(path, "that cannot be a file's name; choose another") from None
    except OSError as error:
        raise FileProblem(path, _why(path, error)) from error
    # short, so that beside a name of the greatest length it can still be made
    beside = target.with_name(f".attnviz-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}")
    _unfinished.add(beside)
    _sweep(target.parent)
    try:
        try:
            with os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b") as file:
                if mode is not None:
                    beside.chmod(mode)
                write(file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise FileProblem(path, _why(path, error)) from error
    finally:
        _unfinished.discard(beside)


@cache
def _machine() -> str:
    """Six letters that tell this machine from others that see the same folder."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def _sweep(folder: Path) -> None:
    """Remove from ``folder`` what was never finished: its program has ended, or it is older than a day."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = entry.name.startswith(".attnviz-") and _LEFT_OVER.fullmatch(entry.name)
            if named and Path(entry.path) not in _unfinished:
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) and _is_left(named[1], int(named[2]), found.st_mtime):
                        Path(entry.path).unlink()


def _is_left(machine: str, process: int, written: float) -> bool:
    """Whether nobody goes on with a file that ``process`` of a ``machine`` began and last wrote to then."""
    if time.time() - written > _OLD_S:
        return True
    import psutil  # noqa: PLC0415 (there is hardly ever a file to ask about)

    return machine == _machine() and not psutil.pid_exists(process)


def write_npz(
    path: Path, named: Mapping[str, npt.NDArray[Any]], step: Callable[[float], object] = lambda _share: None
) -> None:  # fmt: skip
    """Write arrays of numbers and of text under their names, dtypes as they are.

    The file loads with ``allow_pickle=False``. ``step`` is told the share of it that is written, some megabytes at a
    time; what it raises ends that. Raises `FileProblem`.
    """
    total = max(sum(array.nbytes for array in named.values()), 1)
    write_whole(path, lambda file: np.savez(_Told(file, lambda done: step(min(done / total, 1.0))), **named))  # type: ignore[arg-type]


class _Told:
    """A file whose ``step`` is told how many bytes have been written into it, each time that some are."""

    def __init__(self, file: BinaryIO, step: Callable[[int], object]) -> None:
        self._file, self._step, self._written = file, step, 0

    def write(self, data: bytes) -> int:
        count = self._file.write(data)
        self._written += count
        self._step(self._written)
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _why(path: Path, error: OSError) -> str:
    """What is wrong and what would do."""
    folder = path.parent
    known = {
        errno.ENOENT: f"the folder {folder} does not exist; make it, or choose another",
        errno.ENOTDIR: f"{folder} is not a folder; choose another",
        errno.EISDIR: "that is a folder; give a file's name in it",
        errno.EACCES: f"you may not write in {folder}; choose a folder of your own",
        errno.EPERM: f"you may not write in {folder}; choose a folder of your own",
        errno.EROFS: f"{folder} is on a read-only disk; choose another folder",
        errno.ENOSPC: "the disk is full; make room, or choose another disk",
        errno.EDQUOT: "your share of the disk is used up; make room, or choose another disk",
        errno.EFBIG: "it would be larger than files may be here; choose a smaller size or another disk",
        errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
        errno.ELOOP: "it is a link that runs in a circle; choose another name",
    }
    return known.get(error.errno or 0) or f"{error.strerror or error}; choose another place"


def _replaceable(target: Path) -> int | None:
    """Permissions of the ordinary file at ``target``, None if there is none yet; refuses anything else there."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise FileProblem(target, "that is a device or a pipe; give a file's name")
    if not os.access(target, os.W_OK):
        raise FileProblem(target, "it is write-protected; choose another name, or allow writing to it")
    return stat.S_IMODE(found.st_mode)
