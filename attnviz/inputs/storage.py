"""Room for large tensors: in memory, or in a temporary file that is mapped and has no name."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from attnviz.files import FileProblem

_ON_DISK: Final = Path("/var/tmp")  # noqa: S108 (/tmp is often kept in memory, which would be of no use here)


def empty(shape: tuple[int, ...], *, in_memory: bool = True, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor to fill, on the CPU; with ``in_memory`` False its numbers lie in a temporary file, which goes with it.

    The file stands in ``TMPDIR``, else in /var/tmp. Raises `files.FileProblem` where the disk has no room for it; once
    it is there it has all its room, so that filling it cannot fail.
    """
    if in_memory or not math.prod(shape):
        return torch.empty(shape, dtype=dtype)
    folder = _folder()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            size = math.prod(shape) * dtype.itemsize
            _reserve(file.fileno(), size)
            mapped = mmap.mmap(file.fileno(), size)  # keeps the file, and the tensor keeps the mapping
    except OSError as error:
        said = "there is no room for a temporary file; make some, or set TMPDIR to a folder on another disk"
        raise FileProblem(folder, said) from error
    return torch.frombuffer(mapped, dtype=dtype).view(shape)


def _folder() -> Path:
    if not os.environ.get("TMPDIR") and os.access(_ON_DISK, os.W_OK):
        return _ON_DISK
    return Path(tempfile.gettempdir())


def _reserve(file: int, size: int) -> None:
    """Take ``size`` bytes of the disk now: a write through a mapping has no way to say that the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    zeros = bytes(1 << 20)
    for done in range(0, size, len(zeros)):
        os.write(file, zeros[: size - done])
