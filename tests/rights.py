"""What root may not do either: root may write anything, and CI runs as root."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65534
UNWRITABLE = Path("/sys")
"""A folder in which nobody makes a file, on Linux; root neither."""


@contextmanager
def folder_in_sight() -> Iterator[Path]:
    """A folder of this user's into which others may look, which they may not with pytest's own."""
    with tempfile.TemporaryDirectory(prefix="attnviz-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def as_nobody() -> Iterator[None]:
    """Where this process is root's: somebody who may write nothing of root's, until the end, in all threads.

    Files that are imported meanwhile may be root's alone too: import what is needed before.
    """
    if os.geteuid() != 0:
        yield
        return
    try:
        os.setresuid(_NOBODY, _NOBODY, 0)  # the third lets root come back
    except (AttributeError, PermissionError):
        pytest.skip("root may write anything here, and may be nobody else")
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
