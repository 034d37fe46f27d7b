"""A painter whose strokes stay vectors, and strokes that suit vectors and pixels alike.

On pixels each helper is what QPainter has of itself. On vectors many equal strokes become one path, and cells become
rectangles: an image is smoothed into blobs by many viewers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QImage, QPaintDevice, QPainter, QPainterPath, QTransform

SCREEN_DPI: Final = 96.0
"""Pixels an inch of a sheet that is made for a screen."""

MOST_RECTS: Final = 128 * 128
"""A map of more pixels becomes an image, in which each of them has several of its own."""

Edges = npt.NDArray[np.floating[Any]]

_MOST_PIXELS: Final = 1_500_000
_ENOUGH: Final = 4
_DOTS: Final = 3780
_OUTLINED_AT: Final = 1000
_CACHED_BELOW: Final = 64
"""Larger letters Qt itself paints from outlines, which come out otherwise the second time: ours are always the same."""


class VectorPainter(QPainter):
    """Paints on a device of vectors, an SVG's or a PDF's. ``outlined``: text becomes outlines, and needs no font."""

    def __init__(self, device: QPaintDevice, *, outlined: bool) -> None:
        super().__init__(device)
        self.outlined = outlined

    def restore(self) -> None:
        """As of any painter; Qt's SVGs would keep the inner of two clips."""
        super().restore()
        if self.hasClipping():
            self.setClipPath(self.clipPath())


def draw_lines(painter: QPainter, lines: Sequence[QLineF]) -> None:
    """``lines`` with the painter's pen."""
    if not isinstance(painter, VectorPainter):
        painter.drawLines(lines)
        return
    path = QPainterPath()
    for line in lines:
        path.moveTo(line.p1())
        path.lineTo(line.p2())
    painter.strokePath(path, painter.pen())


def draw_rects(painter: QPainter, rects: Sequence[QRectF]) -> None:
    """The edges of ``rects`` with the painter's pen."""
    if not isinstance(painter, VectorPainter):
        painter.drawRects(rects)
        return
    path = QPainterPath()
    for rect in rects:
        path.addRect(rect)
    painter.strokePath(path, painter.pen())


def fill_rects(painter: QPainter, rects: Iterable[QRectF], colour: QColor) -> None:
    """``rects``, which do not overlap, in one colour."""
    if not isinstance(painter, VectorPainter):
        for rect in rects:
            painter.fillRect(rect, colour)
        return
    path = QPainterPath()
    for rect in rects:
        path.addRect(rect)
    if not path.isEmpty():
        painter.fillPath(path, QBrush(colour))


def clip_to_cells(
    painter: QPainter, across: Sequence[tuple[float, float]], down: Sequence[tuple[float, float]]
) -> None:
    """Let only cells be painted: those that reach from one number to the next ``across`` and ``down``, none beside."""
    path = QPainterPath()
    for top, bottom in down:
        for left, right in across:
            path.addRect(QRectF(left, top, right - left, bottom - top))
    painter.setClipPath(path, Qt.ClipOperation.IntersectClip)


def write_text(painter: QPainter, start: QPointF, text: str) -> None:
    """``text`` from ``start`` on its baseline, with the painter's font and pen."""
    if isinstance(painter, VectorPainter):
        outlined = painter.outlined
    else:
        outlined = painter.font().pixelSize() * sqrt(abs(painter.deviceTransform().determinant())) >= _CACHED_BELOW
    if not outlined:
        painter.drawText(start, text)
        return
    font = QFont(painter.font())
    scale = font.pixelSize() / _OUTLINED_AT
    font.setPixelSize(_OUTLINED_AT)  # outlines of a size that was painted as pixels before come out a little otherwise
    path = QPainterPath()
    path.addText(QPointF(), font, text)
    path.setFillRule(Qt.FillRule.WindingFill)  # outlines of one letter may overlap
    painter.fillPath(QTransform(scale, 0, 0, scale, start.x(), start.y()).map(path), QBrush(painter.pen().color()))


def paint_colours(
    painter: VectorPainter, xs: Edges, ys: Edges, rgb: npt.NDArray[np.uint32]
) -> None:  # fmt: skip
    """Rectangles of ``rgb`` (r, c) uint32 0xffRRGGBB between the edges ``xs`` (c + 1,) and ``ys`` (r + 1,), rising.

    Cells keep sharp edges however a viewer treats images, and no ground shows between them.
    """
    height, width = rgb.shape
    xs, ys = xs.round(2), ys.round(2)  # more digits would only be written and read
    area = QRectF(QPointF(xs[0], ys[0]), QPointF(xs[-1], ys[-1]))
    if height * width > MOST_RECTS:
        several = max(2, min(_ENOUGH, isqrt(_MOST_PIXELS // (height * width))))
        painter.drawImage(area, _image(rgb.repeat(several, axis=0).repeat(several, axis=1)))
        return
    # where a viewer blends the edges of neighbours with what lies below them, this has their colours too
    painter.drawImage(area, _image(rgb))
    starts = np.ones(rgb.shape, bool)
    starts[:, 1:] = rgb[:, 1:] != rgb[:, :-1]
    rows, firsts = np.nonzero(starts)
    ends = np.append(firsts[1:], 0)
    ends[ends == 0] = width
    colours = rgb[rows, firsts]
    order = np.argsort(colours, kind="stable")
    lefts, tops = xs[firsts], ys[rows]
    widths, heights = xs[ends] - lefts, ys[rows + 1] - tops
    breaks = np.flatnonzero(np.diff(colours[order])) + 1
    for alike in np.split(order, breaks):
        path = QPainterPath()
        for x, y, w, h in zip(*(one[alike].tolist() for one in (lefts, tops, widths, heights)), strict=True):
            path.addRect(x, y, w, h)
        painter.fillPath(path, QBrush(QColor.fromRgb(int(colours[alike[0]]))))


def _image(rgb: npt.NDArray[np.uint32]) -> QImage:
    pixels = np.ascontiguousarray(rgb)
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32).copy()
    image.setDotsPerMeterX(_DOTS)  # Qt's own are those of the screen at hand, and are written into files
    image.setDotsPerMeterY(_DOTS)
    return image
