"""A painter whose strokes stay vectors: who draws with it knows that it may be looked at at any magnification."""

from __future__ import annotations

from PySide6.QtGui import QPaintDevice, QPainter


class VectorPainter(QPainter):
    """Paints on a device of vectors, an SVG's or a PDF's. ``outlined``: text becomes outlines, and needs no font."""

    def __init__(self, device: QPaintDevice, *, outlined: bool) -> None:
        super().__init__(device)
        self.outlined = outlined
