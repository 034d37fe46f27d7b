"""What a Python file offers to be tested, read without running it. Pure."""

from __future__ import annotations

import ast
from pathlib import Path

_LARGEST = 4 << 20


def names_in(path: Path) -> tuple[str, ...]:
    """Names of the classes with a ``forward`` or a base, then of the functions, as they stand in the file.

    Raises ValueError, in words, for what is no Python file.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"{path.name} is too large for a Python file")
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise ValueError(f"{path.name}, line {error.lineno}: {error.msg}") from error
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror or error}") from error
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and (node.bases or _has_forward(node))]
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return tuple(name for name in (*classes, *functions) if not name.startswith("_"))


def _has_forward(node: ast.ClassDef) -> bool:
    return any(isinstance(one, ast.FunctionDef) and one.name == "forward" for one in node.body)
