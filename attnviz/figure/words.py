"""Words on several lines: where a line may break, and how many lines a text takes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from PySide6.QtGui import QFont

from attnviz.figure.fonts import text_width

SEPARATOR: Final = " · "
_NOT_FIRST: Final = frozenset("，。、；：！？）」』】》”’…,.;:!?)]}%")
_NOT_LAST: Final = frozenset("（「『【《“‘([{")


def wrapped(font: QFont, text: str, width: float) -> tuple[str, ...]:
    """``text`` in lines of at most ``width`` pixels in ``font``; () for "".

    A line breaks at " · " (which then goes) where the next part has room on a line of its own, else at a space, and
    around a Chinese character anywhere but before a closing mark or after an opening one. A word that is longer than a
    whole line is cut after a hyphen, or between its characters.
    """
    lines: list[str] = []
    line = ""
    for paragraph in text.split("\n"):
        if line:
            lines.append(line)
            line = ""
        for part in filter(None, (words.strip(" ") for words in paragraph.split(SEPARATOR))):
            joined = f"{line}{SEPARATOR}{part}" if line else part
            if _fits(font, joined, width):
                line = joined
            elif line and _fits(font, part, width):
                lines.append(line)
                line = part
            else:
                *full, line = _filled(font, line, part, width)
                lines += full
    return (*lines, line) if line else tuple(lines)


def _fits(font: QFont, text: str, width: float) -> bool:
    return text_width(font, text) <= width + 1e-6


def _filled(font: QFont, line: str, part: str, width: float) -> list[str]:
    """``line`` and ``part``, which is broken at words, in lines."""
    lines = [line]
    glue = SEPARATOR if line else ""
    for gap, word in _words(part):
        glue = (glue or gap) if lines[-1] else ""
        if _fits(font, lines[-1] + glue + word, width):
            lines[-1] += glue + word
        else:
            pieces = _cut(font, word, width)
            if lines[-1]:
                lines += pieces
            else:
                lines[-1:] = pieces
        glue = ""
    return lines


def _words(part: str) -> Iterator[tuple[str, str]]:
    """What may begin a line, each with what stands before it where it does not: a space or nothing."""
    for word in filter(None, part.split(" ")):
        gap, start = " ", 0
        for place in range(1, len(word)):
            if _breaks(word[place - 1], word[place]):
                yield gap, word[start:place]
                gap, start = "", place
        yield gap, word[start:]


def _breaks(before: str, after: str) -> bool:
    """Whether a line may end between two characters that no space parts."""
    if after in _NOT_FIRST or before in _NOT_LAST:
        return False
    return _is_wide(before) or _is_wide(after)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _cut(font: QFont, word: str, width: float) -> list[str]:
    """``word`` in pieces that fit, a character at least; an accent stays with its letter."""
    pieces = [""]
    for char in word:
        if pieces[-1] and not unicodedata.combining(char) and not _fits(font, pieces[-1] + char, width):
            head, hyphen, tail = pieces[-1].rpartition("-")
            if head:
                pieces[-1] = head + hyphen
            pieces.append(tail if head else "")
        pieces[-1] += char
    return pieces
