"""Where in a TOML text a key stands: TOML's reader tells lines of syntax errors alone."""

from __future__ import annotations

import re
from typing import Final

Keys = tuple[str | int, ...]
"""Names of tables and keys from the outside in; the place of a step among the steps is a number."""

_APART: Final = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL)


def line_of(text: str, keys: Keys) -> int:
    """The line, from 1, at which ``keys`` stand, or as much of their beginning as can be found."""
    bare = _APART.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    lines = bare.split("\n")
    heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*step\s*\]\]", line)]
    line, end = 0, heads[0] if heads else len(lines)
    if len(keys) > 1 and isinstance(keys[1], int) and keys[1] < len(heads):
        line, end = heads[keys[1]], (*heads, len(lines))[keys[1] + 1]
        keys = keys[2:]
    for key in keys:
        at = re.compile(rf"(?:^|[\s\[{{.,]){re.escape(str(key))}\s*[\]=.]")
        line = next((n for n in range(line, end) if at.search(lines[n])), line)
    return line + 1
