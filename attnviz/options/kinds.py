"""Types of options that click lacks: numbers beside words, ranges, lessons."""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

import click

from attnviz.spec import LESSONS, LINES, MAX_TOKENS

T = TypeVar("T")


class Spoken(click.ParamType[T]):
    """A type whose values stand in the help as they are typed, not in capitals."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        del param, ctx
        return self.name


class Scale(Spoken[Any]):
    """A factor on the scores."""

    name = "auto|none|number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("auto", "none"):
            return value
        try:
            return float(value)
        except (TypeError, ValueError):
            return self.fail(f"{value!r} is neither auto, none nor a number", param, ctx)


class Head(Spoken[Any]):
    """A head's number, or all of them."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "all" or isinstance(value, int):
            return value
        try:
            return int(value)
        except ValueError:
            return self.fail(f"{value!r} is neither a head's number (from 0) nor all", param, ctx)


class Number(Spoken[Any]):
    """A number, or the one word that stands beside it."""

    def __init__(self, word: str) -> None:
        self.name = f"{word}|number"
        self._word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == self._word:
            return value
        try:
            return float(value)
        except (TypeError, ValueError):
            return self.fail(f"{value!r} is neither {self._word} nor a number", param, ctx)


class Count(Spoken[Any]):
    """A whole number, or the one word that stands beside it."""

    def __init__(self, word: str) -> None:
        self.name = f"{word}|K"
        self._word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == self._word or isinstance(value, int):
            return value
        try:
            return int(value)
        except (TypeError, ValueError):
            return self.fail(f"{value!r} is neither {self._word} nor a whole number", param, ctx)


class Range(Spoken[Any]):
    """Rows or columns, half open, or all of them."""

    name = "A:B|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "all" or isinstance(value, tuple):
            return value
        first, colon, end = str(value).partition(":")
        with contextlib.suppress(ValueError):
            if colon:
                span = int(first or 0), int(end or MAX_TOKENS)
                field = param.name if param is not None and param.name in LINES else "rows"
                if min(span) < 0:
                    return self.fail(f"{value!r}: {LINES[field]} count from 0, so give first:end such as 0:64",
                                     param, ctx)  # fmt: skip
                return span
        return self.fail(f"{value!r} is no range: give first:end such as 0:64, 64: or :64, or all", param, ctx)


class LessonWord(Spoken[str]):
    """A lesson that comes along, in capitals too, or a file."""

    name = f"{'|'.join(LESSONS)}|FILE.toml"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        named = str(value).lower()
        if named in LESSONS or named.endswith(".toml"):
            return named if named in LESSONS else str(value)
        return self.fail(f"{value!r} is no lesson: give {', '.join(LESSONS)} or a .toml file", param, ctx)
