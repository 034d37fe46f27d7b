"""Files written whole or not at all, and their problems in sentences."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from attnviz.frames import Arrays


class FileProblem(OSError):  # noqa: N818 (a problem, as in spec and session, not a crash)
    """A file that cannot be written: a sentence that names it, says what is wrong and what would do."""


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a new file beside ``path``, then put it in its place in one step.

    On any failure the new file is removed and an older ``path`` is left as it was. A link is followed. Raises
    `FileProblem`; what ``write`` itself raises, other than OSError, goes through.
    """
    try:
        target = Path(path).resolve()
        mode = _replaceable(target)
    except (ValueError, RuntimeError):  # a NUL or half a character in the name; links that run in a circle
        raise FileProblem(f"{str(path)!r} cannot be a file's name: choose another name") from None
    except OSError as error:
        raise explained(path, error) from error
    # short, so that a name of the greatest length still has room for it
    beside = target.with_name(f".{secrets.token_hex(4)}.part")
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
        raise explained(path, error) from error


def write_npz(path: Path, arrays: Arrays, spec_json: str) -> None:
    """Write ``tokens`` (a ``<U`` array), ``spec`` (JSON text) and each stage under its name, dtypes as they are.

    The file loads with ``allow_pickle=False``. Raises `FileProblem`.
    """
    named = {"tokens": np.array(arrays.tokens, dtype=np.str_), "spec": np.array(spec_json), **arrays.stages}
    write_whole(path, lambda file: np.savez(file, **named))  # type: ignore[arg-type]


def explained(path: Path, error: OSError) -> FileProblem:
    """``error`` about ``path`` as a sentence that also says what to do."""
    path, folder = Path(path), Path(path).parent
    folder = folder if str(folder) else Path()
    sentences = {
        errno.ENOENT: f"the folder {folder} does not exist: make it, or choose another one",
        errno.ENOTDIR: f"{folder} is not a folder: choose another one",
        errno.EISDIR: f"{path} is a folder: give a file's name in it",
        errno.EACCES: f"{path} may not be written here: choose a folder of your own",
        errno.EPERM: f"{path} may not be written here: choose a folder of your own",
        errno.EROFS: f"{folder} is on a read-only disk: choose another folder",
        errno.ENOSPC: f"the disk of {folder} is full: make room, or choose another disk",
        errno.EDQUOT: f"your share of the disk of {folder} is used up: make room, or choose another disk",
        errno.EFBIG: f"{path} would be larger than files may be here: choose a smaller picture or another disk",
        errno.ENAMETOOLONG: f"{path.name[:20]}… is too long for a file's name: choose a shorter one",
        errno.ELOOP: f"{path} is a link that runs in a circle: choose another name",
    }
    known = sentences.get(error.errno or 0)
    return FileProblem(known or f"{path} cannot be written ({error.strerror or error}): choose another place")


def _replaceable(target: Path) -> int | None:
    """Permissions of the ordinary file at ``target``, None if there is none yet; refuses anything else there."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise FileProblem(f"{target} is a device or a pipe, not a file: give a file's name")
    if not os.access(target, os.W_OK):
        raise FileProblem(f"{target} is write-protected: choose another name, or allow writing to it")
    return stat.S_IMODE(found.st_mode)
