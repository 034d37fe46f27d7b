"""Pictures to files: the same painter as the screen's, at a chosen size."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImage, QImageWriter, QPainter

from attnviz import files
from attnviz.figure.fonts import load_fonts
from attnviz.figure.page import paint_page
from attnviz.figure.paint import LIGHT, Style
from attnviz.session import Picture
from attnviz.spec import SpecError

MAX_SIDE = 32_767  # QPainter's coordinates on a raster image
MAX_PIXELS = 400_000_000
METADATA_KEY = "attnviz"


def check_size(size: tuple[int, int]) -> None:
    """Raise `SpecError` for a size that no picture can have."""
    width, height = size
    if width < 16 or height < 16 or max(size) > MAX_SIDE or width * height > MAX_PIXELS:
        raise SpecError(
            "size",
            f"size is {width}x{height}: give from 16 to {MAX_SIDE:,} pixels a side and at most "
            f"{MAX_PIXELS // 1_000_000} million in all, such as 1920x1080",
        )


def render_picture(
    picture: Picture, size: tuple[int, int], style: Style = LIGHT, *, numbers: bool = True, decimals: int | None = None
) -> QImage:
    """The picture as an image of ``size`` (width, height) pixels. A QGuiApplication must stand; any thread."""
    check_size(size)
    load_fonts()
    image = QImage(*size, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.TextAntialiasing, True)
    paint_page(painter, (float(size[0]), float(size[1])), picture, style, numbers=numbers, decimals=decimals)
    painter.end()
    return image


def export_png(
    path: Path, picture: Picture, size: tuple[int, int], spec_json: str, style: Style = LIGHT, *,
    numbers: bool = True, decimals: int | None = None,
) -> None:  # fmt: skip
    """Write the picture as a PNG with its spec in the metadata; whole, or the older file stays.

    Raises `files.FileProblem`, or `SpecError` for the size.
    """
    image = render_picture(picture, size, style, numbers=numbers, decimals=decimals)
    image.setText(METADATA_KEY, spec_json)
    encoded = QByteArray()
    buffer = QBuffer(encoded)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    if not writer.write(image):
        raise files.FileProblem(path, writer.errorString())
    content = encoded.data()
    files.write_whole(path, lambda file: file.write(content))
