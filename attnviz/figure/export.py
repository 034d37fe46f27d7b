"""Pictures as files: rendered at any size, on any thread, with the spec in their metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImage, QImageWriter, QPainter

from attnviz import colour
from attnviz.figure import layout
from attnviz.figure.fonts import load_fonts
from attnviz.figure.paint import LIGHT, Style, paint_figure
from attnviz.files import FileProblem, write_whole
from attnviz.frames import CellClass, Frame
from attnviz.session import Cell, Picture
from attnviz.spec import SpecError

METADATA_KEY: Final = "attnviz"
MIN_SIDE: Final = 16
MAX_SIDE: Final = 32_767  # QPainter's coordinates on an image
MAX_PIXELS: Final = 400_000_000


def check_size(size: tuple[int, int]) -> None:
    """Raise `SpecError` where no picture of ``size`` (width, height) can be made."""
    width, height = size
    said = f"size is {width}x{height}"
    if min(size) < MIN_SIDE:
        raise SpecError("size", f"{said}: give a width and a height of at least {MIN_SIDE} pixels, such as 1920x1080")
    if max(size) > MAX_SIDE:
        raise SpecError("size", f"{said}: a side has at most {MAX_SIDE:,} pixels, so give less, such as 3840x2160")
    if width * height > MAX_PIXELS:
        millions = f"{width * height / 1e6:,.0f} million pixels"
        raise SpecError(
            "size", f"{said}, {millions}: give at most {MAX_PIXELS // 1_000_000} million, such as 3840x2160"
        )


def render_picture(
    picture: Picture, size: tuple[int, int], style: Style = LIGHT, scale: float = 1.0, head: int | None = None, *,
    show_numbers: bool = True, decimals: int | None = None, selected: Cell | None = None,
) -> QImage:  # fmt: skip
    """``picture`` drawn at ``size`` (width, height) pixels; type grows with the sheet and with ``scale``.

    ``head`` alone, else the head of the picture's view, else all. Needs a QGuiApplication; any thread. Raises
    `SpecError` for a size that cannot be.
    """
    check_size(size)
    load_fonts()
    image = QImage(*size, QImage.Format.Format_RGB32)
    if image.isNull():
        raise SpecError("size", f"size is {size[0]}x{size[1]}, for which there is not enough memory: give less")
    image.fill(style.card)
    if picture.outline is None:
        return image
    head = picture.view.head if head is None else head
    panels = picture.outline.panels
    if head is not None and f"head:{head}" in panels:
        panels = (f"head:{head}",)
    unit = max(min(size[0] / 1600, size[1] / 1000), 0.5) * scale
    plan = layout.paper_layout(picture.outline, len(panels), size, unit)
    frames = {
        name: fitted(picture.frames[name], picture.view.colours, place.map_rect)
        for name, place in zip(panels, plan.panels, strict=True)
        if name in picture.frames
    }
    shown = replace(picture, frames=MappingProxyType(frames))
    painter = QPainter(image)
    paint_figure(painter, plan, shown, style, numbers=show_numbers, decimals=decimals, selected=selected)
    painter.end()
    return image


def fitted(frame: Frame, colours: str, room: layout.Box) -> Frame:
    """``frame`` with no more pixels than ``room`` has: the brightest of each square of them, a power of two a side."""
    height, width = frame.rgb.shape
    factor = 1
    while -(-height // factor) > max(room.height, 1) or -(-width // factor) > max(room.width, 1):
        factor *= 2
    if factor == 1:
        return frame
    rows, cols = np.arange(0, height, factor), np.arange(0, width, factor)
    ordinary = frame.classes & CellClass.ORDINARY != 0
    values = np.where(ordinary, frame.values, -np.inf)
    values = np.maximum.reduceat(np.maximum.reduceat(values, rows, axis=0), cols, axis=1)
    classes = np.bitwise_or.reduceat(np.bitwise_or.reduceat(frame.classes, rows, axis=0), cols, axis=1)
    rgb = colour.pool_pixels(frame.rgb, frame.scale, colours, factor)
    return replace(frame, level=frame.level * factor, values=values, classes=classes, rgb=rgb)


def export_png(
    path: Path, picture: Picture, size: tuple[int, int], spec_json: str, style: Style = LIGHT, *,
    head: int | None = None, show_numbers: bool = True, decimals: int | None = None, selected: Cell | None = None,
) -> None:  # fmt: skip
    """Write ``picture`` as a PNG of ``size`` with ``spec_json`` as its text "attnviz". Any thread.

    A failure leaves an older file. Raises `FileProblem`, or `SpecError` for the size.
    """
    image = render_picture(
        picture, size, style, head=head, show_numbers=show_numbers, decimals=decimals, selected=selected
    )
    image.setText(METADATA_KEY, spec_json)
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    if not writer.write(image):
        raise FileProblem(path, f"it could not be encoded ({writer.errorString()}); give a smaller size")
    png = bytes(content.data())
    write_whole(path, lambda file: file.write(png))
