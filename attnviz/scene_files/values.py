"""What a deck says of an option: TOML's value → the value that the option would have on the command line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import click

from attnviz.matrices import matrix_text
from attnviz.scene_files.keys import KEY_OF, Key, known, nearest
from attnviz.spec import SpecError, parse_shape

_LARGEST: Final = 1 << 63
_MOST_SAID: Final = 60
_SPANS: Final = frozenset({"rows", "cols"})
_MATRICES: Final = frozenset({"scores", "values", "weights"})
_NAMES: Final = frozenset({"tokens", "dims"})
_WHOLE: Final = frozenset({"head", "top_k"})
_FILES: Final = frozenset({"qk", "spec_file"})
_WORDS: Final = (click.Choice, click.Path, click.types.StringParamType)


def option_value(key: Key, value: Any, folder: Path) -> Any:
    """``value`` as ``key``'s option takes it; files are those beside ``folder``. Raises `SpecError`."""
    field = str(key.option.name)
    name = KEY_OF[field]
    _check(name, field, value)
    if key.option.is_flag:
        if not isinstance(value, bool):
            raise _wrong(field, name, value, "give true or false")
        return value is not key.inverts
    if isinstance(value, bool):
        raise _wrong(field, name, value, "it is no switch; give a value")
    if field in ("beside", "question"):
        return _pairs(field, name, value, folder)
    if isinstance(value, list):
        value = _listed(field, name, value)
        if field in _NAMES or field in _SPANS or field in ("heads", "parts"):
            return value
    if not isinstance(value, str | int | float):
        raise _wrong(field, name, value, "give a number or words in quotes")
    kind = key.option.type
    if isinstance(value, int | float) and (isinstance(kind, _WORDS) or field in ("lesson", "size")):
        raise _wrong(field, name, value, f'put it in quotes: "{value}"')
    if isinstance(value, float) and (kind is click.INT or field in _WHOLE):
        if not (math.isfinite(value) and value == int(value)):
            raise _wrong(field, name, value, "give a whole number")
        value = int(value)
    if field in _FILES:
        return _beside(folder, name, value)
    return _converted(key.option, name, value, folder)


def _converted(option: click.Option, name: str, value: str | float, folder: Path) -> Any:
    field = str(option.name)
    try:
        converted = option.type.convert(value, option, None)
    except click.BadParameter as error:
        said = _short(value)
        why = _short_words(error.message.rstrip(".").replace(repr(value), said))
        whole = why.startswith(f"{name} is ")
        why = why.removeprefix(f"{said} ").removeprefix("is ").removeprefix("are ").removeprefix(f"{said}: ")
        raise SpecError(field, why if whole else f"{name} is {said}, which is {why}") from None
    if field == "lesson" and str(converted).lower().endswith(".toml"):
        return _beside(folder, name, converted)
    if field == "mask_shape" and parse_shape(converted) is None:
        return _beside(folder, name, converted)
    return converted


def _beside(folder: Path, name: str, path: Any) -> str:
    """The path of a file that a deck in ``folder`` names."""
    if not str(path) or "\0" in str(path):
        raise _wrong(name, name, path, "that cannot be a file's name; give one")
    return str(folder / str(path))


def _pairs(field: str, name: str, value: Any, folder: Path) -> dict[str, Any]:
    """What ``beside`` and ``ask`` hold, by their own names."""
    if not isinstance(value, dict):
        raise _wrong(field, name, value, f"give a table, such as {name} = {{ {_EXAMPLES[name]} }}")
    if field == "question":
        return {key.replace("-", "_"): item for key, item in value.items()}
    found: dict[str, Any] = {}
    for key, item in value.items():
        meant = known(key)
        if meant is None:
            raise SpecError(field, f"{name} has an unknown key {_short(key)}: {nearest(key)}")
        of = KEY_OF[str(meant.option.name)]
        if of in found:
            raise SpecError(field, f"{name} says {of} twice: say it once")
        found[of] = option_value(meant, item, folder)
    return found


_EXAMPLES: Final = {"beside": 'mask = "none"', "ask": "draws = 100"}


def _listed(field: str, name: str, value: list[Any]) -> Any:
    """A list of TOML's as the option has it: a span, heads, names, or a matrix as text."""
    if field in _NAMES or field == "parts":
        if not all(isinstance(item, str) for item in value):
            example = '["maps"]' if field == "parts" else '["A", "B"]'
            raise _wrong(field, name, value, f"give names in quotes, such as {example}")
        return tuple(value)
    if field in _SPANS:
        if len(value) != 2 or not all(map(_is_whole, value)):
            raise _wrong(field, name, value, "give the first one and the end, such as [0, 64]")
        return tuple(value)
    if field == "heads":
        if not value or not all(map(_is_whole, value)):
            raise _wrong(field, name, value, "give heads' numbers from 0, such as [0, 3]")
        return tuple(value)
    if field in _MATRICES:
        rows = value if value and all(isinstance(row, list) for row in value) else [value]
        if not all(row and all(map(_is_number, row)) for row in rows):
            raise _wrong(field, name, value, "give rows of numbers, such as [[1, 0], [0, 1]]")
        return matrix_text(tuple(map(tuple, rows)))
    raise _wrong(field, name, value, "give one value, not a list")


def _is_whole(item: Any) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool)


def _check(name: str, field: str, value: Any) -> None:
    """Raise `SpecError` for numbers that nothing in a figure can be."""
    match value:
        case dict():
            for key, item in value.items():
                _check(f"{name}.{key}" if len(key) <= _MOST_SAID else name, field, item)
        case list():
            for item in value:
                _check(name, field, item)
        case int() if not -_LARGEST <= value < _LARGEST:
            raise SpecError(field, f"{name} is a number of {len(str(abs(value)))} digits: give a smaller one")


def _wrong(field: str, name: str, value: Any, would_do: str) -> SpecError:
    return SpecError(field, f"{name} is {_short(value)}: {would_do}")


def _short(value: Any) -> str:
    """A value as TOML has it, or its beginning."""
    said = str(value).lower() if isinstance(value, bool) else _told(value)
    return said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}…"


def _told(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | list | dict) else str(value)


def _short_words(words: str) -> str:
    return words if len(words) <= 300 else f"{words[:300]}…"
