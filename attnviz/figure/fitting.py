"""Frames made as coarse as the paper they are drawn on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnviz import colour
from attnviz.figure.grid import Window
from attnviz.figure.places import Box
from attnviz.frames import CellClass, Frame
from attnviz.pixels import pooled_furthest, pooled_max


def fitted(frame: Frame, colours: str, room: Box, window: Window | None = None) -> Frame:
    """``frame`` with no more pixels than ``room`` has for ``window`` of it (None: for all of it).

    The brightest of each square of them, a power of two a side; on a diverging scale the largest by size. Means and
    shares cannot be had from pixels again: a frame of them stays as it is.
    """
    top, bottom, left, right = window or (*map(float, frame.rows), *map(float, frame.cols))
    cells = max((bottom - top) / max(room.height, 1), (right - left) / max(room.width, 1))  # for one pixel of the sheet
    factor = 1
    while frame.level * factor < cells:
        factor *= 2
    if factor == 1 or frame.pooling != "max":
        return frame
    if frame.scale.diverging:
        return pooled(frame, factor, colours)
    ordinary = frame.classes & CellClass.ORDINARY != 0
    values = np.where(ordinary, frame.values, -np.inf)
    values = colour.pooled(values, factor, np.maximum)
    classes = colour.pooled(frame.classes, factor, np.bitwise_or)
    rgb = colour.pool_pixels(frame.rgb, frame.scale, colours, factor)
    return replace(frame, level=frame.level * factor, values=values, classes=classes, rgb=rgb)


def pooled(frame: Frame, factor: int, colours: str) -> Frame:
    """``frame`` of ``factor`` × ``factor`` as many cells a pixel: the largest of them, on a diverging scale by size.

    −∞ is what hides a score there, and no large one. ``factor`` is a power of two.
    """
    if factor == 1:
        return frame
    join = pooled_furthest if frame.scale.diverging else pooled_max
    values, classes = join(frame.values, frame.classes, factor)
    rgb = colour.paint_values(values, classes, frame.scale, colours)
    return replace(frame, level=frame.level * factor, values=values, classes=classes, rgb=rgb)
