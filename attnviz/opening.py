"""What a file that a person gives holds, as a window's state: a session, a spec, or a picture that remembers one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from attnviz.figures import PICTURES, Figure, Shows
from attnviz.session_files import MAX_BYTES, SUFFIX, Page, SavedSession, from_text, is_session
from attnviz.spec import SpecError, View, from_json

ARRAYS: Final = frozenset({".npz", ".npy", ".safetensors"})
"""Queries and keys, which are a spec's source and no state of a window."""
OPENABLE: Final = frozenset({SUFFIX, ".json"}) | ARRAYS | set(PICTURES)

_PAGE_OF: Final[dict[Shows, Page]] = {
    "a-b": "compare", "difference": "compare", "gallery": "masks", "row": "row", "dropout": "dropout",
    "heads-study": "heads", "rounds": "rounds", "exam": "exam", "future-share": "ahead", "forms": "forms",
    "leaks": "leaks",
}  # fmt: skip


def read(path: Path) -> SavedSession:
    """What ``path`` remembers. Raises `SpecError` for what it holds, `OSError` or ValueError if it cannot be read."""
    if path.suffix.lower() in PICTURES:
        from attnviz.remembered import MOST_OF_A_FILE, recall  # noqa: PLC0415 (few files are pictures)

        return of_figure(recall(_content(path, MOST_OF_A_FILE), path.parent))
    text = _content(path, MAX_BYTES)
    if is_session(text) or path.suffix.lower() == SUFFIX:
        return from_text(text)
    spec, view = from_json(text)
    return SavedSession(spec=spec, view=view)


def of_figure(figure: Figure) -> SavedSession:
    """The window that shows what a picture shows; one of two states has A pinned."""
    head = figure.heads[0] if len(figure.heads) == 1 else figure.view.head
    view = msgspec.structs.replace(figure.view, head=head)
    saved = SavedSession(spec=figure.spec, view=view)
    if figure.beside is not None and figure.shows == "row":  # what is beside a row is the state before
        before = msgspec.structs.replace(view, rows=None, cols=None)
        with contextlib.suppress(SpecError):
            saved = SavedSession(spec=figure.spec, view=view, pinned=(figure.beside, before))
    elif figure.beside is not None:
        a = figure.spec, msgspec.structs.replace(view, rows=None, cols=None)
        try:
            saved = SavedSession(spec=figure.beside, view=view, pinned=a)
        except SpecError:  # B has other stages or fewer heads
            saved = SavedSession(spec=figure.beside, view=View(norm=view.norm, colours=view.colours), pinned=a)
    row = {} if figure.row is None else {"selected": (figure.row, figure.row)}
    page = {"page": _PAGE_OF[figure.shows]} if figure.shows in _PAGE_OF else {}
    return msgspec.structs.replace(saved, **row, **page)


def _content(path: Path, most: int) -> bytes:
    """The bytes of ``path``, an ordinary file of not more than ``most``."""
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise SpecError("file", "that is a device or a pipe; give a file")
    if found.st_size > most:
        raise SpecError("file", f"{found.st_size / 1e6:,.0f} MB are more than attnviz writes into one; choose another")
    return path.read_bytes()
