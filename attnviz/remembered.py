"""What a picture remembers: the figure that it shows, as JSON text in the file, and how it is had back; arrays too.

Files are data: nothing in them is run, what is packed in them is unpacked to a few megabytes at most, and XML is read
without its entities.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from xml.parsers import expat

import msgspec

from attnviz import __version__
from attnviz.figures import PICTURES, Figure
from attnviz.files import read_problem
from attnviz.input_paths import found_from, own_folder, told_from
from attnviz.questions import Question
from attnviz.questions.compare import CompareQuestion
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.questions.heads import HeadsQuestion
from attnviz.questions.leak import LeakQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.spec import AttentionSpec, QKFile, SpecError, View, was_given
from attnviz.spec.checks import one_line
from attnviz.spec.text import from_fields, to_fields

MOST_BYTES: Final = 8 << 20
"""Of the text in a picture: a mask drawn cell by cell takes a hundredth."""

MOST_OF_A_FILE: Final = 1 << 30
"""Bytes of a picture that is read."""

_FORMAT: Final = 1
_RETIRED: Final[Mapping[str, frozenset[str]]] = MappingProxyType({"paper": frozenset({"tables"})})
"""Fields that a figure had once, by what had them: older pictures say them, and are drawn without."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_KEYWORD: Final = b"attnviz"
_ELEMENT: Final = "urn:attnviz:remembered remembered"
_ATTACHED: Final = re.compile(re.escape(b"(" + "\ufeffattnviz.json".encode("utf-16-be") + b")") + rb"\s*(\d{1,9}) 0 R")
_FILE: Final = re.compile(rb"/EF\s*<<\s*/F (\d{1,9}) 0 R")
_MOST_SAID: Final = 300
_NOTHING: Final = (
    "has no attention in it (it is a picture of the window, was not made by attnviz, or another program has saved it "
    "since)"
)
_NOT_IN_IT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "weights": "it shows weights that were given to attnviz.show, which are not in the picture",
        "q and k": "it shows q and k that were given to attnviz.show, which are not in the picture",
        "module": "it shows what attnviz check found in a module, which is not in the picture; check it again",
    }
)
_AnyQuestion = (
    CompareQuestion | DropoutQuestion | ExamQuestion | FormsQuestion | FutureShareQuestion | GalleryQuestion
    | HeadsQuestion | LeakQuestion | RoundsQuestion
)  # fmt: skip


class _Damaged(ValueError):  # noqa: N818 (the file is)
    """The file is not whole, or not what it seems to be."""


# ------------------------------------------------------------------------------------------------------------ to text


def remember(figure: Figure, folder: Path | None = None) -> str:
    """``figure`` as JSON text in ASCII, with the versions of attnviz and of torch (null where there is none).

    Files that it is made of are told as they lie from ``folder``, whole paths where that is None. Of queries and keys
    that were given in Python it is said that there is nothing in it to compute again.
    """
    if isinstance(figure.spec.source, QKFile) and was_given(figure.spec.source.path):
        return remember_given("q and k")
    fields = figure_fields(figure) if folder is None else told_from(folder, figure_fields(figure))
    return json.dumps({"attnviz": __version__, "torch": _torch(), "format": _FORMAT, **fields})


def remember_given(what: str = "weights") -> str:
    """What a picture of ``what`` somebody had, of `_NOT_IN_IT`, remembers: that nothing in it can be computed again."""
    return json.dumps({"attnviz": __version__, "format": _FORMAT, "given": True, "what": what})


@cache
def _torch() -> str | None:
    """Torch's version, without loading it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def figure_fields(figure: Figure) -> dict[str, Any]:
    """``figure`` as JSON has it: its spec with the view as "scene", the other fields under their names."""
    return {"scene": to_fields(figure.spec, figure.view), **_plain(figure, but=("spec", "view"))}


def _plain(struct: msgspec.Struct, but: tuple[str, ...] = ()) -> dict[str, Any]:
    def plain(value: object) -> Any:
        if isinstance(value, AttentionSpec):
            return to_fields(value)
        if isinstance(value, Question):
            return {"kind": value.name, **_plain(value)}
        return msgspec.to_builtins(value)

    return {name: plain(getattr(struct, name)) for name in struct.__struct_fields__ if name not in but}


# ---------------------------------------------------------------------------------------------------------- from text


def figure_of(fields: dict[str, Any]) -> Figure:
    """The figure of `figure_fields`; what is missing is as by default. Raises `SpecError` for anything else."""
    types = {field.name: field.type for field in msgspec.structs.fields(Figure)}
    unknown = sorted(set(fields) - set(types) - {"scene"} | set(fields) & {"spec", "view"})
    if unknown:
        raise SpecError("file", f"unknown field {', '.join(map(repr, unknown))}")
    spec, view = _spec_of(fields.get("scene"))
    given: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "question" and isinstance(value, dict):
            asked = {key: _spec_of(part)[0] if isinstance(part, dict) else part for key, part in value.items()}
            given[name] = _converted(asked, _AnyQuestion, name)
        elif name == "beside" and value is not None:
            given[name] = _spec_of(value)[0]
        elif name != "scene":
            given[name] = _converted(value, types[name], name)
    return Figure(spec=spec, view=view, **given)


def _spec_of(fields: object) -> tuple[AttentionSpec, View]:
    if not isinstance(fields, dict):
        raise SpecError("file", "there is no spec in it")
    return from_fields(fields)


def _converted(value: object, kind: Any, name: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SpecError):
            raise error.__cause__ from None
        raise SpecError(name, f"{name}: {error}") from None


def recall(picture: Path | bytes, path: Path | None = None) -> Figure:
    """The figure that a PNG, SVG, PDF or GIF remembers; ``picture`` is the file or what is in it. Or an NPZ's, a file.

    Files that it was made of are looked for from the folder of its ``path`` on, as `input_paths.found_from` says; of
    what is in a file alone, without a path, they have the paths that are remembered.
    Raises `SpecError` with one sentence where there is none, where it is damaged or was made by a newer version, and
    `files.FileProblem` where the file cannot be read.
    """
    if isinstance(picture, bytes):
        return _recalled(_text_of(picture, "this picture"), "this picture", path)
    name = picture.name if picture.name.isprintable() else ascii(picture.name)
    if picture.suffix.lower() == ".npz":
        from attnviz import tensor_files  # noqa: PLC0415 (few are asked)

        text = tensor_files.text_in(picture, ("figure", "spec"), MOST_BYTES)
        return _recalled(text, name, path or picture)
    try:
        with picture.open("rb") as file:
            # no more than there is: as much memory is taken as is asked for
            data = file.read(min(os.fstat(file.fileno()).st_size, MOST_OF_A_FILE) + 1)
    except OSError as error:
        raise read_problem(picture, error) from error
    return _recalled(_text_of(data, name), name, path or picture)


def _text_of(data: bytes, name: str) -> str | None:
    if len(data) > MOST_OF_A_FILE:
        raise SpecError("file", f"{name} is larger than any picture that attnviz makes")
    try:
        return _text_in(data)
    except _Damaged as error:
        raise SpecError("file", f"{name} is damaged: {error}") from None


def _recalled(text: str | None, name: str, path: Path | None) -> Figure:
    if text is None:
        raise SpecError("file", f"{name} {_NOTHING}")
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise SpecError("file", "what it remembers is no JSON object")  # noqa: TRY301 (it takes the picture's name)
        if fields.get("given") is True:
            raise _not_in_it(str(fields.get("what")))
        if path is not None:
            fields = found_from((path.parent, own_folder(path)), fields)
        if _lost(fields.get("scene", fields)):  # of an .npz, which remembers a spec all the same
            raise _not_in_it("q and k")
        layout = fields.get("format")
        if "scene" not in fields and not (
            isinstance(layout, int) and layout > _FORMAT
        ):  # the first pictures held spec and view alone
            spec, view = from_fields(fields)
            return Figure(spec=spec, view=view)
        return _of_version(fields)
    except SpecError as error:
        raise SpecError(error.field, f"{name} cannot be opened: {one_line(str(error), _MOST_SAID)}") from None
    except (ValueError, OverflowError, RecursionError):
        raise SpecError("file", f"{name} is damaged: what it remembers is no JSON") from None


def _not_in_it(what: str) -> SpecError:
    return SpecError("file", _NOT_IN_IT.get(what, _NOT_IN_IT["weights"]))


def _lost(scene: Any) -> bool:
    """Whether queries and keys were given in Python, by a program that has ended."""
    source = scene.get("source") if isinstance(scene, dict) else None
    path = source.get("path") if isinstance(source, dict) else None
    return isinstance(path, str) and was_given(path) and not os.path.isfile(path)  # noqa: PTH113 (a NUL is no file)


def _of_version(fields: dict[str, Any]) -> Figure:
    made_by, layout = str(fields.pop("attnviz", "?"))[:40], fields.pop("format", _FORMAT)
    fields.pop("torch", None)
    if isinstance(layout, int) and layout > _FORMAT:
        raise SpecError("version", f"it was made by a newer version, attnviz {made_by}; this is {__version__}")
    try:
        return figure_of({name: _without_retired(name, value) for name, value in fields.items()})
    except SpecError as error:
        if made_by == __version__:
            raise
        raise SpecError(error.field, f"{error} (it was made by attnviz {made_by!a}; this is {__version__})") from None


def _without_retired(name: str, value: Any) -> Any:
    """The field ``name`` of a figure without what it has no longer."""
    gone = _RETIRED.get(name, frozenset())
    return {key: part for key, part in value.items() if key not in gone} if isinstance(value, dict) and gone else value


# -------------------------------------------------------------------------------------------------------------- files


def _text_in(data: bytes) -> str | None:
    """What a picture remembers as text, None where there is nothing. Raises `_Damaged`."""
    if data.startswith(_PNG):
        found = _in_png(data)
    elif data.startswith(b"%PDF-"):
        found = _in_pdf(data)
    elif data.startswith((b"GIF87a", b"GIF89a")):
        found = _in_gif(data)
    elif data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        found = _in_svg(data)
    else:
        raise _Damaged(f"it is none of {', '.join(PICTURES)}")
    if found is None:
        return None
    if len(found) > MOST_BYTES:
        raise _Damaged("it remembers more than any picture has to")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise _Damaged("what it remembers is no text") from None


def _inflated(data: bytes) -> bytes:
    """What ``data`` was before it was compressed, up to a byte more than `MOST_BYTES`. Raises `_Damaged`."""
    unpack = zlib.decompressobj()
    try:
        found = unpack.decompress(data, MOST_BYTES + 1)
    except zlib.error:
        raise _Damaged("what it remembers cannot be unpacked") from None
    if not unpack.eof and len(found) <= MOST_BYTES:
        raise _Damaged("what it remembers ends too early")
    return found


def _in_png(data: bytes) -> bytes | None:
    place, end = len(_PNG), b""
    while end != b"IEND":
        if place + 12 > len(data):
            raise _Damaged("it ends too early")
        (length,) = struct.unpack_from(">I", data, place)
        end, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        if end in (b"iTXt", b"tEXt", b"zTXt") and content.startswith(_KEYWORD + b"\0"):
            if data[place + 8 + length : place + 12 + length] != struct.pack(">I", zlib.crc32(end + content)):
                raise _Damaged("what it remembers has been changed")
            return _png_text(end, content[len(_KEYWORD) + 1 :])
        place += 12 + length
    return None


def _png_text(kind: bytes, content: bytes) -> bytes:
    """The text of a chunk behind its keyword: plain, compressed, or either with a language."""
    if kind == b"tEXt":
        return content
    if kind == b"zTXt":
        return _inflated(content[1:])
    parts = content[2:].split(b"\0", 2)
    if len(parts) < 3:
        raise _Damaged("what it remembers ends too early")
    return _inflated(parts[2]) if content[0] else parts[2]


def _in_svg(data: bytes) -> bytes | None:
    parser = expat.ParserCreate("utf-8", " ")
    parts: list[str] = []
    inside = found = False

    def begin(name: str, _attributes: object) -> None:
        nonlocal inside, found
        inside = name == _ELEMENT and not found
        found = found or inside

    def end(_name: str) -> None:
        nonlocal inside
        inside = False

    def text(words: str) -> None:
        if inside:
            parts.append(words)

    def refuse(*_declared: object) -> None:
        raise _Damaged("it declares a document type, which no picture of attnviz does")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    parser.StartDoctypeDeclHandler = refuse  # entities, which could grow without end, stand in there
    parser.buffer_text = True
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _Damaged(f"it is no XML in line {error.lineno}") from None
    return "".join(parts).encode() if found else None


def _in_pdf(data: bytes) -> bytes | None:
    named = _ATTACHED.search(data)
    if named is None:
        return None
    described = _FILE.search(data, *_object(data, int(named[1]), 1000))
    if described is None:
        raise _Damaged("what it remembers is not where it should be")
    start, _ = _object(data, int(described[1]), 0)
    stream = data.find(b"stream\n", start, start + 1000)
    if stream < 0:
        raise _Damaged("what it remembers is not where it should be")
    return _inflated(data[stream + len(b"stream\n") :])


def _object(data: bytes, number: int, length: int) -> tuple[int, int]:
    """Where an object begins, and the place ``length`` after it."""
    place = data.rfind(b"\n%d 0 obj" % number)
    if place < 0:
        raise _Damaged("what it remembers is not where it should be")
    return place, place + length


def _in_gif(data: bytes) -> bytes | None:
    """The first comment that holds JSON."""
    try:
        return next((comment for comment in _gif_comments(data) if comment.startswith(b"{")), None)
    except IndexError:
        raise _Damaged("it ends too early") from None


def _gif_comments(data: bytes) -> Iterator[bytes]:
    def table(flags: int) -> int:
        return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    place = 13 + table(data[10])
    while data[place] != 0x3B:
        kind, wanted = data[place], False
        if kind == 0x21:  # an extension
            wanted, place = data[place + 1] == 0xFE, place + 2
        elif kind == 0x2C:  # a picture: its place, its colours, the width of its codes
            place += 11 + table(data[place + 9])
        else:
            raise _Damaged("it is no GIF further on")
        parts = []
        while data[place]:
            parts.append(data[place + 1 : place + 1 + data[place]] if wanted else b"")
            place += 1 + data[place]
        place += 1
        yield b"".join(parts)
