"""A spec and its view as JSON text, for files, settings and the metadata of pictures."""

from __future__ import annotations

import json
import math
from typing import Any, Final, cast

import msgspec

from attnviz.spec.attention import CHOICES, FIELDS, AttentionSpec, make_spec
from attnviz.spec.checks import SpecError, convert
from attnviz.spec.looks import CHOICES as LOOKS
from attnviz.spec.looks import View
from attnviz.spec.sources import AnySource

SPEC_VERSION: Final = 2

_NUMBERS: Final = frozenset({"scores", "values", "weights"})
_INFINITE_FIELDS: Final = frozenset({"fill"})
_INFINITIES: Final = {"-inf": -math.inf}


def to_json(spec: AttentionSpec, view: View | None = None, *, indent: int = 2) -> str:
    """JSON text with every field of ``spec``, and ``view`` beside them; −∞ is the string "-inf"."""
    return as_text(to_fields(spec, view), indent)


def to_fields(spec: AttentionSpec, view: View | None = None) -> dict[str, Any]:
    """What `to_json` writes, as JSON's own types."""
    builtins = {"version": SPEC_VERSION} | cast(dict[str, Any], msgspec.to_builtins(spec))
    if view is not None:
        builtins["view"] = msgspec.to_builtins(view)
    return cast(dict[str, Any], _outward(builtins))


def as_text(fields: dict[str, Any], indent: int | None = 2) -> str:
    """JSON text that can always be written as UTF-8: half a character, as in a file's odd name, is escaped."""
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.encode("utf-8", "backslashreplace").decode()


def from_json(text: str | bytes) -> tuple[AttentionSpec, View]:
    """Spec and view from `to_json`'s text. Raises `SpecError` for anything else, unknown fields by name."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = {UnicodeDecodeError: "it is no text", RecursionError: "it is nested too deeply"}.get(type(error), error)
        raise SpecError("file", f"this is not a spec file (no JSON): {why}") from None
    if not isinstance(fields, dict):
        raise SpecError("file", "this is not a spec file: it holds no JSON object")
    return from_fields(fields)


def from_fields(fields: dict[str, Any]) -> tuple[AttentionSpec, View]:
    """Spec and view from what `to_fields` gives. Raises `SpecError`."""
    fields = dict(fields)
    version = fields.pop("version", SPEC_VERSION)
    if not isinstance(version, int):
        raise SpecError("version", f"version is {version!r}: give a whole number")
    view_fields = fields.pop("view", {})
    if not isinstance(view_fields, dict):
        raise SpecError("view", "view is not a JSON object")
    known = (fields, FIELDS), (view_fields, View.__struct_fields__)
    unknown = [name for given, names in known for name in given if name not in names]
    if unknown:
        newer = f"; the file was made by a newer version ({version})" if version > SPEC_VERSION else ""
        raise SpecError(unknown[0], f"unknown field {', '.join(map(repr, unknown))}{newer}")
    if version > SPEC_VERSION:
        raise SpecError(
            "version", f"this file was made by a newer version ({version}); this program reads up to {SPEC_VERSION}"
        )
    for field in _INFINITE_FIELDS & set(fields):
        fields[field] = (
            _INFINITIES.get(fields[field], fields[field]) if isinstance(fields[field], str) else fields[field]
        )
    source = convert(AnySource, _inward(fields.pop("source", {"kind": "lesson"})), CHOICES)
    spec = make_spec(source, **fields)
    view = convert(View, view_fields, LOOKS)
    view.check(spec)
    return spec, view


def _outward(value: Any) -> Any:
    if isinstance(value, float) and value == -math.inf:
        return "-inf"
    if isinstance(value, dict):
        return {key: _outward(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_outward(item) for item in value]
    return value


def _inward(source: Any) -> Any:
    """Put −∞ back where a source holds numbers; a token or a text "-inf" stays as it is."""

    def numbers(value: Any) -> Any:
        if isinstance(value, list):
            return [numbers(item) for item in value]
        return _INFINITIES.get(value, value) if isinstance(value, str) else value

    if not isinstance(source, dict):
        return source
    return {key: numbers(item) if key in _NUMBERS else item for key, item in source.items()}
