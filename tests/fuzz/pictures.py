"""Pictures damaged by chance: the files, and in whole files what they remember. Each is recalled, or says why not."""

import re
import struct
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from random import Random

from attnviz.figures import Figure
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.leak import LeakQuestion
from attnviz.remembered import PICTURES, recall, remember
from attnviz.spec import Paper, SpecError, Text, View, make_spec

from .damage import JSON_TOKENS, damaged_bytes, damaged_json, is_sentence

_SPEC = make_spec(Text(text="猫 eats <fish> ]]> &"), num_heads=3, dropout=0.5, training=True)
_SMALL = Paper(width=160, height=120, title="猫 <吃> 鱼", theme="dark")
FIGURES = (
    Figure(spec=_SPEC, view=View(norm="log", rows=(0, 2)), paper=_SMALL, heads=(2, 0), row=1, animates="re-rolls"),
    Figure(spec=_SPEC, paper=_SMALL, shows="a-b", beside=make_spec(mask="three-step")),
    Figure(paper=_SMALL, shows="exam", question=ExamQuestion(masks=("none",))),
    Figure(spec=_SPEC, paper=_SMALL, shows="leaks", question=LeakQuestion.of(_SPEC)),
)


@cache
def bases() -> dict[str, bytes]:
    """A picture of each format that remembers the first of `FIGURES`, as the program itself writes it."""
    from PySide6.QtGui import QGuiApplication

    from attnviz import rendering
    from attnviz.application import borrowed_application

    borrowed_application()
    assert QGuiApplication.instance() is not None
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in PICTURES:
            path = Path(folder, f"a{suffix}")
            rendering.write_figure(path, FIGURES[0])
            found[suffix] = path.read_bytes()
    return found


def _png(text: bytes, random: Random) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    kind, body = random.choice(
        [
            (b"iTXt", b"\0\0\0\0" + text),
            (b"iTXt", b"\1\0\0\0" + zlib.compress(text)),
            (b"zTXt", b"\0" + zlib.compress(text)),
            (b"tEXt", text),
        ]
    )
    return b"\x89PNG\r\n\x1a\n" + chunk(kind, b"attnviz\0" + body) + chunk(b"IEND", b"")


def _svg(text: bytes, _random: Random) -> bytes:
    words = escape(text.decode("utf-8", "replace"), quote=False)
    return re.sub(rb"(<remembered [^>]*>)[^<]*", lambda found: found[1] + words.encode(), bases()[".svg"])


def _pdf(text: bytes, _random: Random) -> bytes:
    """With the attached file in the place of the one that the program wrote: the reader takes no table of places."""
    data = bases()[".pdf"]
    number = re.search(rb"/EF <</F (\d+) 0 R", data)
    assert number is not None
    at = data.index(b"stream\n", data.index(b"\n%b 0 obj" % number[1])) + len(b"stream\n")
    return data[:at] + zlib.compress(text) + data[data.index(b"\nendstream", at) :]


def _gif(text: bytes, _random: Random) -> bytes:
    parts = [text[at : at + 255] for at in range(0, len(text), 255)]
    comment = b"".join(bytes([len(part)]) + part for part in parts)
    return b"GIF89a" + bytes(7) + b"\x21\xfe" + comment + b"\0;"


_HOLDERS: tuple[Callable[[bytes, Random], bytes], ...] = (_png, _svg, _pdf, _gif)


def case(random: Random, _folder: Path) -> None:
    """One damaged picture. Raises AssertionError, or whatever a reader must not."""
    whole, holder = remember(random.choice(FIGURES)), random.choice(_HOLDERS)
    match random.randrange(3):
        case 0:
            data = damaged_bytes(random, random.choice([*bases().values()]), JSON_TOKENS)
        case 1:
            data = holder(damaged_bytes(random, whole.encode(), JSON_TOKENS), random)
        case _:
            data = holder(damaged_json(random, whole), random)
    try:
        found = recall(data)
    except SpecError as error:
        said = str(error)
        assert said.startswith("this picture "), said
        assert is_sentence(said, 600), said
        return
    assert recall(_png(remember(found).encode(), random)) == found
