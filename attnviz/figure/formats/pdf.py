"""Pictures to PDF: lossless, text that can be selected and found, and the same bytes whenever they are written."""

from __future__ import annotations

import math
import os
import re
import time
import uuid
from html import escape
from typing import BinaryIO, Final

from PySide6.QtCore import QBuffer, QByteArray, QHashSeed, QMarginsF, QRectF, QSizeF, QUuid
from PySide6.QtGui import QPageSize, QPainter, QPdfWriter

from attnviz import __version__
from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.vectors import SCREEN_DPI, VectorPainter, fill_rects
from attnviz.spec import Paper

ATTACHMENT: Final = "attnviz.json"
"""The name of the attached file that holds what a picture remembers."""

_POINTS_PER_INCH: Final = 72
_BEGINNING: Final = 946_684_800  # 2000-01-01, seconds
_DATE: Final = re.compile(rb"\(D:\d{14}[^)]*\)")
_BOX: Final = re.compile(rb"(/(?:Media|Trim)Box \[0 0) (\d+\.\d+) (\d+\.\d+)\]")
_LONGEST: Final = 14_400  # points: readers open no longer page
_XREF: Final = re.compile(rb"(?m)^(\d{10})(?= 00000 n )")
_XMP: Final = """<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmp:CreatorTool="{creator}" xmp:CreateDate="{date}" xmp:ModifyDate="{date}">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">{title}</rdf:li></rdf:Alt></dc:title>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end='r'?>"""


def write_pdf(file: BinaryIO, drawing: Drawing, paper: Paper, remembered: str, step: Step) -> None:
    """Write ``drawing`` as a PDF of one page, see `formats.write_drawing`."""
    QHashSeed.setDeterministicGlobalSeed()  # fonts are written in the order of a table, else one of chance
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    dpi = max(paper.dpi or SCREEN_DPI, max(drawing.size) * _POINTS_PER_INCH / _LONGEST)
    wanted = [side / dpi * _POINTS_PER_INCH for side in drawing.size]
    page = [float(math.ceil(side)) for side in wanted]  # whole points, of which the rest is cut off in the end
    writer = _writer(buffer, paper, remembered, QSizeF(*page), round(dpi))
    painter = VectorPainter(writer, outlined=False)
    try:
        painter.setRenderHint(QPainter.RenderHint.LosslessImageRendering)
        scale = writer.resolution() / dpi
        painter.translate(0, (page[1] - wanted[1]) / _POINTS_PER_INCH * writer.resolution())
        painter.scale(scale, scale)
        if paper.theme != "transparent":
            fill_rects(painter, [QRectF(0, 0, *drawing.size)], drawing.style.card)
        drawing.paint(painter, lambda done: step(0.9 * done))
    finally:
        painter.end()
    file.write(_finished(bytes(buffer.data().data()), wanted))
    step(1.0)


def _writer(buffer: QBuffer, paper: Paper, remembered: str, page: QSizeF, resolution: int) -> QPdfWriter:
    writer = QPdfWriter(buffer)
    writer.setResolution(resolution)
    writer.setPageSize(QPageSize(page, QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch))
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    title = "".join(letter if letter.isprintable() else " " for letter in paper.title or "")
    creator = f"attnviz {__version__}"
    writer.setTitle(title)
    writer.setCreator(creator)
    writer.setDocumentId(QUuid(str(uuid.uuid5(uuid.NAMESPACE_OID, remembered))))
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_moment()))
    xmp = _XMP.format(creator=creator, title=escape(title, quote=False), date=date)
    writer.setDocumentXmpMetadata(QByteArray(xmp.encode()))
    writer.addFileAttachment(ATTACHMENT, QByteArray(remembered.encode()), "application/json")
    return writer


def _moment() -> int:
    """The time that is written into a file, in seconds: the one that SOURCE_DATE_EPOCH gives, else always the same."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return min(int(given), 253_402_300_799) if given.isascii() and given.isdigit() else _BEGINNING


def _finished(data: bytes, wanted: list[float]) -> bytes:
    """Qt's file with dates that do not move, and pages as large as ``wanted`` (points) rather than whole points.

    A date's length depends on the time zone: what comes after it moves, and the table of places with it.
    """
    date = time.strftime("(D:%Y%m%d%H%M%SZ)", time.gmtime(_moment())).encode()
    body, table, tail = _cut(data)
    moved = [(found.end(), len(date) - len(found[0])) for found in _DATE.finditer(body, 0, body.index(b"endobj"))]

    def place(at: int) -> int:
        return at + sum(by for end, by in moved if at >= end)

    first = body.index(b"endobj")
    body = _DATE.sub(date, body[:first]) + body[first:]
    table = _XREF.sub(lambda found: b"%010d" % place(int(found[1])), table)
    start, rest = tail.split(b"\n", 1)
    tail = b"%d\n%b" % (place(int(start)), rest)

    def box(found: re.Match[bytes]) -> bytes:
        return b"%b %b %b]" % (found[1], *map(_same_length, wanted, found.groups()[1:]))

    return _BOX.sub(box, body) + table + tail


def _cut(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Everything up to the table of places, the table, and what follows from its own place on."""
    at = data.rindex(b"startxref\n") + len(b"startxref\n")
    start = int(data[at : data.index(b"\n", at)])
    return data[:start], data[start:at], data[at:]


def _same_length(points: float, written: bytes) -> bytes:
    return f"{points:.{len(written)}f}"[: len(written)].encode()
