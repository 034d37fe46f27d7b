"""Where the files lie that a figure is made of, as a picture or an .npz tells it: from a folder; how they are found.

From the root a path would say whose machine it is, and equal pictures made in two places would be two files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from attnviz.files import FileProblem
from attnviz.spec import AttentionSpec, MaskFile, QKFile, edited


def told_from(folder: Path, fields: Any) -> Any:
    """``fields`` of a spec or figure, as JSON has them, with each file's path as it is from ``folder``, parted by /.

    A path that shares nothing with ``folder`` but the root stays whole.
    """
    start = os.path.abspath(folder)  # noqa: PTH100 (resolve would follow the links that a user chose)

    def told(kept: Mapping[str, Any]) -> str:
        path: str = kept["path"]
        return Path(os.path.relpath(path, start)).as_posix() if _share(start, path) else path

    return _with_paths(fields, told)


def own_folder(picture: Path) -> Path:
    """The folder from which ``picture`` tells paths: where it lies, also where a link leads to it."""
    try:
        return picture.resolve().parent if picture.is_symlink() else picture.parent
    except (OSError, RuntimeError):  # links in a circle: whoever writes says so
        return picture.parent


def folder_of_deck(deck: Path, picture: Path) -> Path:
    """The folder from which a ``picture`` of the deck in the folder ``deck`` tells paths.

    It is that of the deck where the picture lies below it, however deep: the files are looked for above a picture. Else
    it is the picture's own, from which alone they are found; where the two share nothing but the root, that would be
    whole paths, and it is the deck's.
    """
    if picture.resolve().is_relative_to(deck.resolve()):
        return deck
    start, other = os.path.abspath(deck), os.path.abspath(picture.parent)  # noqa: PTH100
    return picture.parent if _share(start, other) else deck


def _share(one: str, other: str) -> bool:
    """Whether two whole paths have more in common than the root."""
    try:
        shared = os.path.commonpath([one, other])
    except ValueError:  # two drives, or one is told from a folder already
        return False
    return shared != Path(shared).anchor


def found_from(folders: Sequence[Path], fields: Any) -> Any:
    """The same with whole paths, ``folders`` being that of the picture, and where a link leads to it that one too.

    A file is looked for where its path leads to from ``folders``, from each folder above them and from the one in which
    the program runs; then by its name alone in these. It is the one that has the SHA-256 that is remembered. Where
    there is none, the path is the first of these where any file lies, else the first: whoever opens it says that it is
    another, or that there is no such file.
    A file may be of many GB: one whose header says other sizes is read no further, and nor is the first of these where
    no other can be meant, since whoever opens it compares the SHA-256.
    """
    return _with_paths(fields, partial(_found, folders))


def placed(file: Path, spec: AttentionSpec) -> AttentionSpec:
    """``spec`` of ``file`` with whole paths: those that are not are found as by `found_from`."""
    changes: dict[str, Any] = {}
    for field in ("source", "mask_shape"):
        kept = getattr(spec, field)
        if isinstance(kept, QKFile | MaskFile) and not _is_whole(kept.path):
            changes[field] = replace(kept, path=_found((file.parent, own_folder(file)), to_builtins(kept)))
    return edited(spec, **changes) if changes else spec


def _is_whole(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _found(beside: Sequence[Path], kept: Mapping[str, Any]) -> str:
    """Where the file is of which ``kept`` are the fields."""
    from attnviz import tensor_files  # noqa: PLC0415 (few pictures are made of files)

    def is_it(place: str) -> bool:
        try:
            return bool(tensor_files.sha256_of(place) == kept["sha256"])
        except FileProblem:
            return False

    path, folders = kept["path"], list[Path]()
    for start in (Path(os.path.abspath(folder)) for folder in beside):  # noqa: PTH100
        folders += start, *start.parents
    with contextlib.suppress(OSError):  # it may have been removed
        folders.append(Path.cwd())
    names = path, PureWindowsPath(path).name  # parted by / or by \
    places = list(dict.fromkeys(os.path.abspath(one / name) for name in names for one in folders))  # noqa: PTH100
    there = [place for place in places if os.path.isfile(place)]  # noqa: PTH113 (a NUL is no file)
    likely = [place for place in there if tensor_files.resembles(place, kept)]
    if likely == places[:1]:
        return places[0]
    return next(filter(is_it, likely), (there or places)[0])


def _with_paths(fields: Any, change: Callable[[Mapping[str, Any]], str]) -> Any:
    """``fields`` with the path of each file, which alone has a SHA-256, changed."""
    if isinstance(fields, list | tuple):
        return [_with_paths(item, change) for item in fields]
    if not isinstance(fields, dict):
        return fields
    changed = {name: _with_paths(item, change) for name, item in fields.items()}
    if isinstance(changed.get("path"), str) and isinstance(changed.get("sha256"), str):
        changed["path"] = change(changed)
    return changed
