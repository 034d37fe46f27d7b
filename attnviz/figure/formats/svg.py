"""Pictures to SVG: cells that stay crisp in every viewer, and text that needs no font.

Qt writes the strokes. What it writes is made smaller and better behaved afterwards: it repeats each setting with every
stroke, has no word for edges that must not be blurred, and none for what a file remembers.
"""

from __future__ import annotations

import re
from html import escape
from typing import BinaryIO, Final

from PySide6.QtCore import QBuffer, QRect, QSize
from PySide6.QtSvg import QSvgGenerator

from attnviz.figure.drawing import Drawing, Step
from attnviz.figure.vectors import VectorPainter, fill_rects
from attnviz.spec import Paper
from attnviz.spec.paper import CM_PER_INCH

NAMESPACE: Final = "urn:attnviz:remembered"
"""Of the element in the metadata that holds what a picture remembers."""

_HEAD: Final = re.compile(r'<svg width="[^"]*" height="[^"]*"')
_FONT: Final = re.compile(r'(?m)^font-family="[^"]*" font-size="[^"]*" font-weight="[^"]*" font-style="[^"]*" \n>')
_EMPTY: Final = re.compile(r"<g [^>]*>\s*</g>\s*")
_USUAL: Final = re.compile(
    r' (?:transform="matrix\(1,0,0,1,0,0\)"|vector-effect="none"|(?:fill|stroke)-opacity="1"'
    r'|stroke-linecap="square" stroke-linejoin="bevel")(?= |>|/>|\n)'
)
_PATH: Final = re.compile(r'<path fill-rule="(\w+)" d="([^"]*)"/>')
_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}(?:e[-+]\d+)?|-?\d+(?:\.\d+)?e[-+]\d+")
_ALONE: Final = re.compile(r"<g ([^>]*?) ?\n>\n<path ([^>]*)/>\n</g>")
_OWN_WORDS: Final = re.compile(r"<title>.*?</desc>\n", re.DOTALL)
_RECT: Final = re.compile(r"M(\S+),(\S+) L(\S+),\2 L\3,(\S+) L\1,\4 L\1,\2 Z ")


def write_svg(file: BinaryIO, drawing: Drawing, paper: Paper, remembered: str, step: Step) -> None:
    """Write ``drawing`` as an SVG, see `formats.write_drawing`."""
    width, height = drawing.size
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # the smaller one cannot clip
    generator.setOutputDevice(buffer)
    generator.setSize(QSize(width, height))
    generator.setViewBox(QRect(0, 0, width, height))
    painter = VectorPainter(generator, outlined=not paper.real_text)
    try:
        if paper.theme != "transparent":
            fill_rects(painter, [QRect(0, 0, width, height).toRectF()], drawing.style.card)
        drawing.paint(painter, lambda done: step(0.9 * done))
    finally:
        painter.end()
    text = bytes(buffer.data().data()).decode()
    file.write(_tidied(text, paper, drawing.size, remembered).encode())
    step(1.0)


def _tidied(text: str, paper: Paper, size: tuple[int, int], remembered: str) -> str:
    across, down = (_length(side, paper.dpi) for side in size)
    text = _HEAD.sub(f'<svg width="{across}" height="{down}"', text, count=1)
    text = _OWN_WORDS.sub("", text, count=1)
    text = _FONT.sub(">", text)  # real text says its own
    text = _USUAL.sub("", _USUAL.sub("", text))
    text = _PATH.sub(_path, text)
    for _ in range(2):  # one in another
        text = _EMPTY.sub("", text)
    text = _ALONE.sub(r"<path \1 \2/>", text)
    text = re.sub(r"\n\n+", "\n", text)
    kept = f'<metadata><remembered xmlns="{NAMESPACE}">{escape(remembered, quote=False)}</remembered></metadata>'
    return text.replace("<defs>", f"{kept}\n<defs>", 1)


def _length(side: int, dpi: float | None) -> str:
    return f"{side}px" if dpi is None else f"{side / dpi * 10 * CM_PER_INCH:.6g}mm"


def _path(found: re.Match[str]) -> str:
    """A path in fewer letters. One of rectangles alone keeps its edges sharp: only cells and grounds are that."""
    rule, strokes = found[1], found[2]
    strokes = _NUMBER.sub(lambda number: _short(float(number[0])), strokes)
    rects, count = _RECT.subn(_rect, strokes)
    crisp = rule == "evenodd" and count and "L" not in rects and "C" not in rects
    rects = re.sub(r" (?=[A-Z])| $", "", rects)
    own = "" if rule == "evenodd" else f'fill-rule="{rule}" '  # the other is said once for all
    sharp = 'shape-rendering="crispEdges" ' if crisp else ""
    return f'<path {sharp}{own}d="{rects}"/>'


def _rect(found: re.Match[str]) -> str:
    left, top, right, bottom = found.groups()
    across, down = float(right) - float(left), float(bottom) - float(top)
    return f"M{left},{top}h{_short(across)}v{_short(down)}h{_short(-across)}z"


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
