"""What a window is left as, as a file: the computation, the look at it, the pinned A, and how the window stands."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from attnviz.questions import Question
from attnviz.spec import AttentionSpec, SpecError, View
from attnviz.spec.checks import convert, one_line
from attnviz.spec.text import as_text, from_fields, to_fields

SUFFIX: Final = ".attnviz"
SESSION_VERSION: Final = 1
MAX_BYTES: Final = 64_000_000
"""A file that is larger holds no session and no spec."""

LayoutName = Literal["learn", "test", "explore"]
Page = Literal[
    "row", "masks", "dropout", "heads", "rounds", "exam", "ahead", "compare", "leaks", "forms", "module", "controls",
]  # fmt: skip
Comparing = Literal["side", "difference"]
CHOICES: Final = {"layout": get_args(LayoutName), "page": get_args(Page)}

_MARK: Final = "session"
_KEY_OR_BRACE: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]')


class SavedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One window's state. A field that is UNSET is not said, and stays in a window as it is there.

    ``view`` has the rows and columns in sight. ``pinned`` is A, None for none; ``selected`` a cell (query, key);
    ``decimals`` None for percent or short. ``question`` is what a study's ``page`` is to ask, ``comparing`` how A and B
    are shown there; pictures alone say these, which are no part of a session's file. Raises `SpecError` for what cannot
    be.
    """

    spec: AttentionSpec
    view: View
    pinned: tuple[AttentionSpec, View] | UnsetType | None = UNSET
    selected: tuple[int, int] | UnsetType | None = UNSET
    show_numbers: bool | UnsetType = UNSET
    decimals: int | UnsetType | None = UNSET
    layout: LayoutName | UnsetType = UNSET
    page: Page | UnsetType = UNSET
    dark: bool | UnsetType = UNSET
    question: Question | UnsetType = UNSET
    comparing: Comparing | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.view.check(self.spec)
        if isinstance(self.pinned, tuple):
            spec, view = self.pinned
            view.check(spec)
        if isinstance(self.selected, tuple) and min(self.selected) < 0:
            cell = ", ".join(map(str, self.selected))
            raise SpecError("selected", f"selected is {cell}: rows and columns count from 0")
        if isinstance(self.decimals, int) and not 0 <= self.decimals <= 9:
            raise SpecError("decimals", f"decimals is {self.decimals}: give 0 to 9, or null")


_SCENES: Final = ("spec", "pinned")
_A_PICTURES: Final = ("question", "comparing")
_PLAIN: Final = tuple(name for name in SavedSession.__struct_fields__ if name not in (*_SCENES, "view", *_A_PICTURES))


def is_session(text: bytes | str) -> bool:
    """Whether a file says of itself that it is a session, rather than a spec."""
    if isinstance(text, bytes):
        text = text[:200].decode("utf-8", "replace")
    return re.match(r'\ufeff?\s*\{\s*"attnviz"\s*:', text) is not None


def to_text(session: SavedSession) -> str:
    """JSON text with every field that is said; spec and view as `spec.to_json` writes them, −∞ as "-inf"."""
    fields: dict[str, Any] = {"attnviz": _MARK, "version": SESSION_VERSION}
    fields["spec"] = to_fields(session.spec, session.view)
    if session.pinned is not UNSET:
        fields["pinned"] = None if session.pinned is None else to_fields(*session.pinned)
    said = ((name, getattr(session, name)) for name in _PLAIN)
    fields |= {name: value for name, value in said if value is not UNSET}
    return as_text(fields) + "\n"


def from_text(text: bytes | str) -> SavedSession:
    """The session of `to_text`'s text. Raises `SpecError` for anything else, with its line: "line 7: …"."""
    text = _decoded(text)
    fields = _parsed(text)
    if not isinstance(fields, dict) or fields.get("attnviz") != _MARK:
        raise SpecError("file", 'line 1: this is not a session of attnviz, which begins with "attnviz": "session"')
    version = fields.get("version", SESSION_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _at(text, ("version",), SpecError("version", f"version is {_short(version)}: give a whole number from 1"))
    newer = version > SESSION_VERSION
    by_newer = f"made by a newer version ({version}); this program reads up to {SESSION_VERSION}"
    unknown = [name for name in fields if name not in ("attnviz", "version", *_SCENES, *_PLAIN)]
    if unknown:
        names = ", ".join(map(_short, unknown[:5]))
        ending = f"; the file was {by_newer}" if newer else ""
        raise _at(text, (unknown[0],), SpecError(unknown[0], f"unknown field {names}{ending}"))
    if newer:
        raise _at(text, ("version",), SpecError("version", f"the file was {by_newer}"))
    if "spec" not in fields:
        raise SpecError("spec", "line 1: the session holds no spec")
    spec, view = _scene(text, fields, "spec")
    said: dict[str, Any] = {name: fields[name] for name in _PLAIN if name in fields}
    if "pinned" in fields:
        said["pinned"] = None if fields["pinned"] is None else _scene(text, fields, "pinned")
    try:
        session: SavedSession = convert(SavedSession, {"spec": spec, "view": view, **said}, CHOICES)
    except SpecError as error:
        raise _at(text, (error.field,), error) from None
    return session


def _scene(text: str, fields: dict[str, Any], name: str) -> tuple[AttentionSpec, View]:
    """The spec and view that stand under ``name``."""
    scene = fields[name]
    if not isinstance(scene, dict):
        raise _at(text, (name,), SpecError(name, f"{name} is {_short(scene)}: give a spec"))
    try:
        return from_fields(scene)
    except SpecError as error:
        raise _at(text, (name, error.field), error) from None


def _decoded(text: bytes | str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise SpecError("file", f"line {line}: this is not text (byte {text[error.start]:#04x})") from None


def _parsed(text: str) -> Any:
    """What JSON text holds, without NaN and without a key that stands twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        name, times = Counter(name for name, _ in pairs).most_common(1)[0] if pairs else ("", 0)
        if times > 1:
            raise SpecError(name, f"{_short(name)} stands twice")
        return dict(pairs)

    def no_number(name: str) -> Any:
        raise SpecError("file", f'{name} is no number of JSON: write "-inf" for -∞')

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise SpecError("file", "line 1: the file is empty") from None
        why = (error.msg[:1].lower() + error.msg[1:]).removesuffix(" at")
        raise SpecError("file", f"line {error.lineno}: the file is damaged ({why})") from None
    except SpecError as error:
        found = [line for path, line in _keys(text) if path[-1] == error.field]
        wrong = re.search(r"NaN|Infinity", text)
        line = found[-1] if found else text.count("\n", 0, wrong.start() if wrong else 0) + 1
        raise SpecError(error.field, f"line {line}: {error}") from None
    except RecursionError:
        raise SpecError("file", "line 1: lists in lists are too deep for a session") from None
    except ValueError:
        long = re.search(r"\d{4301,}", text)
        line = text.count("\n", 0, long.start() if long else 0) + 1
        raise SpecError("file", f"line {line}: the file is damaged (a number of thousands of digits)") from None


def _keys(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """The path of every key of JSON text, and its line."""
    path: list[str] = []
    line, at = 1, 0
    for found in _KEY_OR_BRACE.finditer(text):
        if found[0] == "{":
            path.append("")
        elif found[0] == "}":
            path = path[:-1]
        elif found[2] and path:
            line, at = line + text.count("\n", at, found.start()), found.start()
            try:
                path[-1] = json.loads(found[1], strict=False)
            except ValueError:  # a wrong escape, behind what was found wrong first
                path[-1] = found[1][1:-1]
            yield tuple(path), line


def _at(text: str, path: tuple[str, ...], error: SpecError) -> SpecError:
    """``error`` with the line of the key that ``path`` ends with, in what it begins with; else of what it begins with.

    A spec's field may stand in a room of its own there: its source, its view.
    """
    found = {key: line for key, line in _keys(text) if key[0] == path[0]}
    inside = (line for key, line in found.items() if key[-1] == path[-1])
    return SpecError(error.field, f"line {next(inside, found.get(path[:1], 1))}: {one_line(str(error))}")


def _short(value: object) -> str:
    """A value as it was given, or its beginning."""
    said = repr(value)
    return said if len(said) <= 40 else said[:39] + "…"
