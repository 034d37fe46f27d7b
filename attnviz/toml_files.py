"""Text files in TOML that people write: read within bounds, and what is wrong in them is told with its line.

TOML's own reader tells lines of syntax errors alone: `line_of` finds where a key stands.
"""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

Keys = tuple[str | int, ...]
"""Names of tables and keys from the outside in; the place of a table among those of its name is a number."""

_APART: Final = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:\\.|[^"\\\n])*+"?|\'[^\'\n]*+\'?|#[^\n]*+', re.DOTALL
)
"""Strings and comments; what is never closed is one too, so that no text takes longer than its length."""

_VALUE: Final = re.compile(r"(?:^|[=,\[])[ \t]*([^\s=\"'\[\]{},#]*)$")
"""The beginning of a value that is no string, up to where the reader stopped."""

_TO_ITS_END: Final = re.compile(r"[^,#\"'\]}\r\n]*")
_IN_A_VALUE: Final = ("Invalid value", "Expected newline", "Unclosed array", "Unclosed inline table")
_MOST_SAID: Final = 60
_BETWEEN: Final = re.compile(r"[^\w \t.-]+")
_MOST_DOTS: Final = 32
"""In one key: the memory of TOML's reader grows with their square."""


class TomlProblem(ValueError):  # noqa: N818 (a problem, as in spec and session, not a crash)
    """A file that is no TOML: ``why``, and the ``line`` from 1 where there is one."""

    def __init__(self, line: int | None, why: str) -> None:
        self.line, self.why = line, why
        super().__init__(why)


def read_text(path: Path, kind: str, most_bytes: int) -> str:
    """The text of a file that is to be a ``kind``, such as "lesson". Raises `TomlProblem`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TomlProblem(None, f"this is no file: give a {kind}'s TOML file")
        with path.open("rb") as file:
            held = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, TomlProblem):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TomlProblem(None, f"cannot be read: {why}") from None
    if len(held) > most_bytes:
        raise TomlProblem(None, f"is larger than {most_bytes // 1_000_000} MB: a {kind} is a small text file")
    try:
        return held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = held.count(b"\n", 0, error.start) + 1
        raise TomlProblem(line, "this is not UTF-8 text: save the file as UTF-8") from None


def tables_of(text: str) -> dict[str, Any]:
    """TOML's tables. Raises `TomlProblem`."""
    for n, bare in enumerate(_bare(text)):
        if bare.count(".") > _MOST_DOTS and any(part.count(".") > _MOST_DOTS for part in _BETWEEN.split(bare)):
            raise TomlProblem(n + 1, f"a key has more than {_MOST_DOTS} dots: tables lie in each other too deeply")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL)
        if said is None:
            raise TomlProblem(None, f"this is not TOML: {error}") from None
        why = said[1]
        if said[2] and why.startswith(_IN_A_VALUE):
            why = _unquoted(text.split("\n")[int(said[2]) - 1], int(said[3])) or why
        raise TomlProblem(int(said[2] or text.count("\n") + 1), f"this is not TOML: {why}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise TomlProblem(None, "this is not TOML: it is nested too deeply") from None
        endless = re.search(r"[\d_]{4300}", text)  # Python reads no longer number
        if endless is None:
            raise TomlProblem(None, f"this is not TOML: {error}") from None
        line = text.count("\n", 0, endless.start()) + 1
        raise TomlProblem(line, "this is not TOML that can be read: a number has too many digits") from None


def _unquoted(line: str, column: int) -> str:
    """What to say where TOML's reader stopped at ``column``, from 1, in a value that lacks its quotes; else ""."""
    begun = _VALUE.search(line[: column - 1])
    whole = _TO_ITS_END.match(line, begun.start(1)) if begun else None
    word = whole[0].strip() if whole else ""
    if word.lower() in ("true", "false"):
        return f"write {word.lower()} for {word}"
    is_word = word.isprintable() and re.search(r"[^\W\d_]|:", word)
    return f'words stand in quotes: write "{word[:_MOST_SAID]}"' if is_word else ""


def heads_of(text: str, name: str) -> list[int]:
    """The lines, from 1, at which tables ``[[name]]`` begin."""
    return [n + 1 for n, line in enumerate(_bare(text)) if _is_head(line, name)]


def line_of(text: str, keys: Keys, name: str = "step") -> int:
    """The line, from 1, at which ``keys`` stand, or as much of their beginning as can be found.

    ``name`` is that of the tables ``[[name]]``, of which a file may have many.
    """
    lines = _bare(text)
    heads = [n for n, line in enumerate(lines) if _is_head(line, name)]
    line, end = 0, heads[0] if heads else len(lines)
    if len(keys) > 1 and isinstance(keys[1], int) and keys[1] < len(heads):
        line, end = heads[keys[1]], (*heads, len(lines))[keys[1] + 1]
        keys = keys[2:]
    for place, key in enumerate(keys):
        at = re.compile(rf"(?:^|[\s\[{{.,]){re.escape(str(key))}\s*[\]=.]")
        found = next((n for n in range(line, end) if at.search(lines[n])), None)
        if found is None and place == 0:  # a table at the top may stand behind others
            found = next(
                (n for n, text_ in enumerate(lines) if re.match(rf"\s*\[+\s*{re.escape(str(key))}\b", text_)), None
            )
        line = line if found is None else found
    return line + 1


def _bare(text: str) -> list[str]:
    """The lines of ``text`` with blanks in place of strings and comments."""
    return _APART.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text).split("\n")


def _is_head(line: str, name: str) -> bool:
    return re.match(rf"\s*\[\[\s*{re.escape(name)}\s*\]\]", line) is not None
