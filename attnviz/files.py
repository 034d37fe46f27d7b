"""Files are written whole or not at all: beside the old one under a short temporary name, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from attnviz.frames import Arrays

_REMEDIES = {
    errno.ENOENT: "the folder does not exist; create it or choose another",
    errno.ENOTDIR: "a part of the path is not a folder; choose another path",
    errno.EACCES: "the folder may not be written to; choose another",
    errno.EPERM: "the folder may not be written to; choose another",
    errno.EROFS: "the disk is read-only; choose another",
    errno.ENOSPC: "the disk is full; make room or choose another",
    errno.EDQUOT: "the disk quota is used up; make room or choose another",
    errno.EFBIG: "the file would be larger than this system allows; choose a smaller size",
    errno.EISDIR: "that is a folder; give a file name",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


class FileProblem(RuntimeError):
    """A file that could not be written: which, why, and what would do. An older file is left as it was."""

    def __init__(self, path: Path, why: str) -> None:
        self.sentence = f"cannot write {path}: {why}"
        super().__init__(self.sentence)


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then rename it. Raises `FileProblem`; nothing is left behind then."""
    path = Path(path)
    if path.is_dir():
        raise FileProblem(path, _REMEDIES[errno.EISDIR])
    temporary: str | None = None
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(prefix=".av", dir=path.parent)  # short: a long name must still fit
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        why = _REMEDIES.get(error.errno or 0, error.strerror or str(error))
        raise FileProblem(path, why) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def write_npz(path: Path, arrays: Arrays, spec_json: str) -> None:
    """Write ``tokens`` (<U array), ``spec`` (JSON text) and every stage; loads with ``allow_pickle=False``."""
    tokens = np.array(arrays.tokens, dtype=np.str_)
    write_whole(
        path, lambda file: np.savez(file, tokens=tokens, spec=np.array(spec_json), **dict(arrays.stages))
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
