"""Names of the files that a deck writes: none leads out of the folder that was chosen, on any system."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any, Final

from attnviz.figures import NUMBERS, PICTURES
from attnviz.files import FileProblem
from attnviz.spec import SpecError

MOST_CHARACTERS: Final = 1_000
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)
_EXAMPLE: Final = 'such as "01-no-mask.png"'


def check_name(name: Any) -> str:
    """``name`` if it is one of a file in the folder or in a folder of it, in a format there is. Raises `SpecError`."""
    if not isinstance(name, str) or not name.strip():
        raise SpecError("file", f"file is no name: give one, {_EXAMPLE}")
    said = name if name.isprintable() and len(name) <= 80 else ascii(name)[:80]
    if len(name) > MOST_CHARACTERS:
        raise SpecError("file", f"file is {said}…, {len(name):,} characters: give a shorter one, {_EXAMPLE}")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise SpecError("file", f"file is {said}, with a control character: leave that out")
    if "\\" in name or ":" in name:
        raise SpecError("file", f"file is {said}: a name has no \\ and no :, and folders are parted by /, {_EXAMPLE}")
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        where = "the folder that --out names"
        raise SpecError("file", f"file is {said}: give a name in {where}, without .. and without / before it")
    for part in parts:
        if part[-1] in " ." or _RESERVED.fullmatch(part.split(".")[0].strip()):
            raise SpecError("file", f"file is {said}: some systems keep {part!r} for themselves; give another name")
    if not parts[-1].lower().endswith((*PICTURES, *NUMBERS)) or parts[-1].startswith("."):
        raise SpecError("file", f"file is {said}: give a name that ends in {', '.join((*PICTURES, *NUMBERS))}")
    return name


def same_file(name: str) -> str:
    """What two names of one file have in common, on systems that tell no capitals apart too."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def place_in(folder: Path, name: str) -> Path:
    """The path of ``name`` in ``folder``, which is there; folders within it are made. Raises `files.FileProblem`.

    A link that leads out of ``folder`` is refused.
    """
    try:
        root = folder.resolve(strict=True)
        path = root
        *between, last = check_name(name).split("/")
        for part in between:
            path /= part
            if not path.is_symlink():
                path.mkdir(exist_ok=True)
            _check_inside(path, root)
        path /= last
        _check_inside(path, root)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        if isinstance(error, FileProblem):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else "links run in a circle"
        raise FileProblem(folder / name, f"{why}; give another name, or another folder with --out") from error
    return path


def _check_inside(path: Path, root: Path) -> None:
    if not path.resolve().is_relative_to(root):
        raise FileProblem(path, f"it is a link that leads out of {root}; remove it, or give another name")
