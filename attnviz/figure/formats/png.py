"""Pictures to PNG: lossless, in strips on several threads, in a fraction of the time of a general writer.

Compressing is nearly all of an export's time, and a map is of one of two kinds. Where each pixel has a colour of its
own, PNG's row filters and thorough searching cost much and save nothing: the colours are few, and zlib's quickest
level finds what there is to find. Where cells are large, a row is nearly the one above it, so rows are kept as
differences, and zlib may take its usual care with the little that remains.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPainter

from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.vectors import SCREEN_DPI
from attnviz.spec import Paper, SpecError

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_UP: Final = 2  # the filter that takes differences to the row above; 0 is none
_ADLER_BASE: Final = 65521
_STRIP_BYTES: Final = 1 << 20
_THREADS: Final = 4
_SQUEEZED_FROM: Final = 1024  # shorter text stays legible in the file
_PAINTED: Final = 0.3  # of the time; the rest is compressing
_METRES_PER_INCH: Final = 0.0254
KEYWORD: Final = "attnviz"
"""Of the text chunk that holds what a picture remembers."""

_KINDS: Final = MappingProxyType({QImage.Format.Format_RGB32: (2, 3), QImage.Format.Format_ARGB32: (6, 4)})
"""PNG's colour type and the bytes of a pixel."""


def write_drawn_png(file: BinaryIO, drawing: Drawing, paper: Paper, remembered: str, step: Step) -> None:
    """Write ``drawing`` as a PNG, see `formats.write_drawing`."""
    image = image_of(drawing, paper, lambda done: step(_PAINTED * done))
    write_png(
        file, image, {KEYWORD: remembered}, large_cells=drawing.has_large_cells,
        each_strip=lambda done: step(_PAINTED + (1 - _PAINTED) * done),
    )  # fmt: skip


def image_of(drawing: Drawing, paper: Paper, step: Step = lambda _done: None) -> QImage:
    """``drawing`` as an image, with an alpha channel where the paper is transparent. Raises `SpecError` for the size.

    Needs a QGuiApplication with the fonts loaded.
    """
    width, height = drawing.size
    clear = paper.theme == "transparent"
    # Qt paints quickest on colours that are already multiplied by their alpha, PNG keeps them plain
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied if clear else QImage.Format.Format_RGB32)
    if image.isNull():
        raise SpecError("size", f"size is {width}x{height}, for which there is not enough memory: give less")
    image.fill(QColor(Qt.GlobalColor.transparent) if clear else drawing.style.card)
    painter = QPainter(image)
    try:
        drawing.paint(painter, step)
    finally:
        painter.end()
    if clear:
        image.convertTo(QImage.Format.Format_ARGB32)
    dots = round((paper.dpi or SCREEN_DPI) / _METRES_PER_INCH)  # Qt's own are those of the screen at hand
    image.setDotsPerMeterX(dots)
    image.setDotsPerMeterY(dots)
    return image


def write_png(
    file: BinaryIO, image: QImage, texts: dict[str, str], *, large_cells: bool,
    each_strip: Callable[[float], object] = lambda _done: None,
) -> None:  # fmt: skip
    """Write ``image`` with ``texts`` by keyword (Latin-1, 1 to 79 letters). Any thread.

    ``image`` is in Format_RGB32, or in Format_ARGB32, which keeps its alpha channel. ``large_cells`` says that most
    pixels are the one above them: it decides time and size, not what is read back. ``each_strip`` is called on the
    caller's thread with the share written, up to 1; what it raises ends the writing.
    Raises `ValueError` for another format, and what ``file`` raises.
    """
    kind = _KINDS.get(image.format())
    if kind is None:
        raise ValueError(f"image has {image.format()}: Format_RGB32 or Format_ARGB32 is wanted")
    colour_type, depth = kind
    width, height = image.width(), image.height()
    file.write(_SIGNATURE)
    file.write(_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)))  # 8 bits each
    file.write(_chunk(b"pHYs", struct.pack(">IIB", image.dotsPerMeterX(), image.dotsPerMeterY(), 1)))
    file.writelines(_chunk(b"iTXt", _international_text(keyword, text)) for keyword, text in texts.items())
    pixels = np.frombuffer(image.constBits(), "<u4").reshape(height, image.bytesPerLine() // 4)[:, :width]
    n_rows = max(1, _STRIP_BYTES // (1 + depth * width))
    strips = [pixels[first : first + n_rows] for first in range(0, height, n_rows)]
    lasts = [*[False] * (len(strips) - 1), True]
    checksum = 1  # Adler-32 of nothing
    with ThreadPoolExecutor(min(_THREADS, max(1, (os.cpu_count() or 1) - 1)), thread_name_prefix="attnviz-png") as pool:
        try:
            deflated_strips = pool.map(partial(_deflated, depth=depth, large_cells=large_cells), strips, lasts)
            for done, (deflated, length, adler) in enumerate(deflated_strips, 1):
                checksum = _joined_adler(checksum, adler, length)
                header = b"\x78\x01" if done == 1 else b""  # zlib's own: a window of 32 kB
                footer = struct.pack(">I", checksum) if done == len(strips) else b""
                file.write(_chunk(b"IDAT", header + deflated + footer))
                each_strip(done / len(strips))
        finally:
            pool.shutdown(cancel_futures=True)  # after an error the strips that wait are not begun
    file.write(_chunk(b"IEND", b""))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(content, zlib.crc32(kind)))


def _international_text(keyword: str, text: str) -> bytes:
    """The content of an iTXt chunk: UTF-8 of no stated language, compressed where it is long."""
    content = text.encode()
    squeezed = len(content) >= _SQUEEZED_FROM
    body = zlib.compress(content) if squeezed else content
    return keyword.encode("latin-1") + b"\0" + bytes((squeezed, 0)) + b"\0\0" + body


def _deflated(pixels: npt.NDArray[np.uint32], last: bool, *, depth: int, large_cells: bool) -> tuple[bytes, int, int]:
    """A strip as raw deflate, how many bytes it was, and the Adler-32 of these.

    The ``last`` one ends the stream, any other ends on a whole byte.
    """
    rows = _rows(pixels, depth, large_cells=large_cells).data
    # a small table of what was seen (7 of 9) stays in a core's nearest cache, a tenth quicker where there is little
    level, memory = (6, 8) if large_cells else (1, 7)
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, memory)  # negative: no header of its own
    deflated = deflate.compress(rows) + deflate.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return deflated, rows.nbytes, zlib.adler32(rows)


def _rows(pixels: npt.NDArray[np.uint32], depth: int, *, large_cells: bool) -> npt.NDArray[np.uint8]:
    """Pixels as PNG keeps them: a row's filter, then red, green, blue and with a ``depth`` of 4 alpha of each pixel."""
    height, width = pixels.shape
    rows = np.empty((height, 1 + depth * width), np.uint8)
    colours = rows[:, 1:].reshape(height, width, depth)
    parts = np.ascontiguousarray(pixels).view(np.uint8).reshape(height, width, 4)  # blue, green, red, alpha
    for place, part in enumerate((2, 1, 0, 3)[:depth]):  # plane by plane takes a third of the time of turned triples
        colours[..., place] = parts[..., part]
    rows[:, 0] = 0
    if large_cells:
        rows[1:, 0] = _UP  # but the strip's first row, whose predecessor is elsewhere
        colours[1:] -= colours[:-1]
    return rows


def _joined_adler(before: int, after: int, length: int) -> int:
    """Adler-32 of two stretches of bytes from those of each; ``length`` is the second one's.

    Its lower half is 1 and the sum of all bytes, its upper half the sum of the lower halves after each byte. So the
    second stretch, which began at 1, gains what the first had gathered: once below, and ``length`` times above.
    """
    gathered = (before & 0xFFFF) - 1
    low = ((after & 0xFFFF) + gathered) % _ADLER_BASE
    high = ((before >> 16) + (after >> 16) + length * gathered) % _ADLER_BASE
    return high << 16 | low
