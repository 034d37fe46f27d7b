"""Steps of a script as lines: short enough, wrapped, and put into one another where there are too many."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

WIDTH: Final = 100
"""Characters of the longest line."""

_IMPORTED: Final = MappingProxyType(
    {"hashlib": "hashlib.sha256(", "math": "math.sqrt(", "random": "random.setstate(", "torch": "torch."}
)
"""What of a module is used where it is imported; words of a text may look like more."""


@dataclass(frozen=True, slots=True)
class Step:
    """``name = value``, or where there is no name some lines as they are."""

    name: str
    value: str
    comment: str = ""

    def text(self) -> str:
        """Its line, or lines; a comment that has no room beside it is left out."""
        whole = f"{self.name} = {self.value}" if self.name else self.value
        said = f"{whole}  # {self.comment}"
        return said if self.comment and len(said) <= WIDTH else whole


def lines_of(steps: Iterable[Step], *, roomy: bool = False) -> list[str]:
    """The script's lines, with what it imports; ``roomy`` sets imports, functions and the print apart."""
    parts = [step.text() for step in steps]
    rest = "\n".join(parts[1:])
    modules = [name for name, used in _IMPORTED.items() if used in rest]
    lines = [parts[0], *(f"import {name}" for name in modules)]
    apart = True
    for n, part in enumerate(parts[1:], 2):
        function = part.startswith("def ")
        if roomy and (apart or function or n == len(parts)):
            lines.append("")
        lines += part.split("\n")
        apart = function
    return lines


def merged(steps: list[Step], name: str) -> list[Step]:
    """``steps`` with the value of ``name`` where it is used, if that is one place on one line with room for it."""
    made = next((step for step in steps if step.name == name), None)
    uses = [step for step in steps if re.search(rf"\b{name}\b", step.value)]
    if made is None or len(uses) != 1 or "\n" in made.value:
        return steps
    (use,) = uses
    plain = re.fullmatch(r"[\w.]+(\([^()]*(\([^()]*\)[^()]*)*\))?", made.value) is not None
    argument = re.search(rf"\({name}(\)|, )", use.value) is not None
    bare = plain or argument or use.value == name  # needs no brackets
    value = made.value if bare else f"({made.value})"
    longer = Step(use.name, re.sub(rf"\b{name}\b", lambda _: value, use.value), use.comment or made.comment)
    if len(re.findall(rf"\b{name}\b", use.value)) > 1 or len(f"{longer.name} = {longer.value}") > WIDTH:
        return steps
    return [longer if step is use else step for step in steps if step is not made]


def wrapped(items: list[str], opening: str, closing: str) -> str:
    """``items``, each with its comma, between two brackets: on one line if they fit, else packed into some."""
    flat = f"{opening}{' '.join(items).removesuffix(',')}{closing}"
    if len(flat) <= WIDTH - 20:
        return flat
    return "\n".join([opening, *packed(items), closing])


def packed(items: list[str]) -> list[str]:
    """``items`` in indented lines of `WIDTH`, broken between items where each fits on a line, else within them."""
    whole = all(len(item) <= WIDTH - 4 for item in items)
    text = " ".join(item.replace(" ", "\xa0") if whole else item for item in items)
    if "\xa0" in "".join(items):  # a token's own
        text = " ".join(items)
    parts = textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return ["    " + part.replace("\xa0", " ") for part in parts]


def quoted(text: str) -> str:
    """``text`` as a literal, in double quotes where it holds none."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def number_text(number: float) -> str:
    """A number as short as it can be said: -1e9, -12."""
    short = f"{number:g}".replace("e+0", "e").replace("e+", "e")
    return short if float(short) == number else repr(number)
