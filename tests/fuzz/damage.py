"""Bytes and JSON damaged by chance."""

import json
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 1 << 62, -(1 << 63), 1 << 64, 10**30, 0.5, -0.0, 1e-320, 1e308,
    float("nan"), float("inf"), float("-inf"), "", "\0", "-inf", "nan", "all", "none", "9" * 5000, "猫", "\ud800",
    "\u202e\x1b[2J\n", "x" * 9000, "cuda:0", "float16", "../x", [], [[]], [0], [0, 1 << 40], [1, "a"], [None],
    [[1], [2, 3]], [True, False], {}, {"": {}}, {"kind": "text"}, {"kind": "exam"},
    {"kind": "length", "length": 1 << 40}, {"version": 99}, [0] * 3000,
)  # fmt: skip
JSON_TOKENS = (
    b"\0 \xff \xed\xa0\x80 \xef\xbb\xbf { } [ ] , : \" \\ \n \r\n NaN -Infinity 1e999 null true -0 1__0 \\u0000 "
    b"\\ud800 \"-inf\" 0x7f /**/ <!DOCTYPE &amp; ]]> <remembered> endobj stream \x1f\x8b IEND iTXt attnviz"
).split(b" ")  # fmt: skip


def damaged_bytes(random: Random, data: bytes, tokens: Sequence[bytes]) -> bytes:
    """``data`` with one to three of its bytes, parts or lines changed, lost, doubled or put elsewhere."""
    held = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at, end = sorted((random.randint(0, len(held)), min(len(held), random.randint(0, len(held)))))
        end = min(end, at + random.choice((1, 4, 40, 400)))
        match random.randrange(6):
            case 0:
                held[at:end] = b""
            case 1:
                held[at:at] = random.choice(tokens)
            case 2:
                held[at:end] = random.choice(tokens)
            case 3:
                held[at:at] = held[at:end] * random.choice((1, 1, 2, 30))
            case 4:
                held[at : at + 1] = bytes([random.randrange(256)])
            case _:
                lines = bytes(held).split(b"\n")
                lines.insert(random.randint(0, len(lines)), lines.pop(random.randrange(len(lines))))
                held = bytearray(b"\n".join(lines))
    return bytes(held)


def damaged_json(random: Random, text: str) -> bytes:
    """The JSON in ``text`` with one or two of its values or keys lost, replaced, renamed or put elsewhere."""
    top = json.loads(text)
    for _ in range(random.randint(1, 2)):
        rooms = list(_rooms(top))
        room = random.choice(rooms)
        places = list(room) if isinstance(room, dict) else list(range(len(room)))
        if not places:
            continue
        place = random.choice(places)
        match random.randrange(5):
            case 0:
                del room[place]
            case 1 if isinstance(room, dict):
                room[random.choice(("smell", "", "\n", "x" * 999, "kind", "version", *top))] = room.pop(place)
            case 2:
                room[place] = deepcopy(random.choice(rooms))
            case _:
                room[place] = deepcopy(random.choice(NASTY))
    indent = random.choice((None, 2))
    return json.dumps(top, indent=indent, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def _rooms(value: Any) -> list[Any]:
    """Every object and list in ``value``, itself first."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [room for part in inner for room in _rooms(part)]
    return [value, *found] if isinstance(value, dict | list) else found


def is_sentence(said: str, most: int) -> bool:
    """Whether somebody can be told this: one line of letters that can be read, at most ``most`` of them."""
    return 10 < len(said) < most and said.isprintable()
