"""Where the files lie that a figure is made of, as a picture tells it: from a folder, and how they are found again.

From the root a path would say whose machine it is, and equal pictures made in two places would be two files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import Any

from attnviz.files import FileProblem


def told_from(folder: Path, fields: Any) -> Any:
    """``fields`` of a spec or figure, as JSON has them, with each file's path as it is from ``folder``, parted by /.

    A path that shares nothing with ``folder`` but the root stays whole.
    """
    start = os.path.abspath(folder)  # noqa: PTH100 (resolve would follow the links that a user chose)

    def told(path: str, _sha256: str) -> str:
        try:
            shared = os.path.commonpath([start, path])
        except ValueError:  # two drives, or it is told from a folder already
            return path
        return path if shared == Path(shared).anchor else Path(os.path.relpath(path, start)).as_posix()

    return _with_paths(fields, told)


def found_from(folder: Path, fields: Any) -> Any:
    """The same with whole paths, ``folder`` being that of the picture.

    A file is looked for where its path leads to from ``folder``, from each folder above it and from the one in which
    the program runs; then by its name alone in these. It is the one that has the SHA-256 that is remembered. Where
    there is none, the path is the first of these: whoever opens it says that there is no such file, or another.
    """

    def found(path: str, sha256: str) -> str:
        start = Path(os.path.abspath(folder))  # noqa: PTH100
        folders = [start, *start.parents]
        with contextlib.suppress(OSError):  # it may have been removed
            folders.append(Path.cwd())
        names = path, PureWindowsPath(path).name  # parted by / or by \
        places = [os.path.abspath(one / name) for name in names for one in folders]  # noqa: PTH100
        return next((place for place in dict.fromkeys(places) if _is(place, sha256)), places[0])

    return _with_paths(fields, found)


def _is(place: str, sha256: str) -> bool:
    from attnviz import tensor_files  # noqa: PLC0415 (few pictures are made of files)

    try:
        return os.path.isfile(place) and tensor_files.sha256_of(place) == sha256  # noqa: PTH113 (a NUL is no file)
    except FileProblem:
        return False


def _with_paths(fields: Any, change: Callable[[str, str], str]) -> Any:
    """``fields`` with the path of each file, which alone has a SHA-256, changed."""
    if isinstance(fields, list | tuple):
        return [_with_paths(item, change) for item in fields]
    if not isinstance(fields, dict):
        return fields
    changed = {name: _with_paths(item, change) for name, item in fields.items()}
    path, sha256 = changed.get("path"), changed.get("sha256")
    if isinstance(path, str) and isinstance(sha256, str):
        changed["path"] = change(path, sha256)
    return changed
