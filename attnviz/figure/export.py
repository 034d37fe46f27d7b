"""Pictures as files: rendered at any size, on any thread, with the spec in their metadata.

A sheet is laid out first: only then is known how many pixels a map has, and so what is to be computed for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter

from attnviz import colour
from attnviz.figure import layout, marks, paint
from attnviz.figure.drawing import Step
from attnviz.figure.fonts import draw_text, load_fonts, sized
from attnviz.figure.paint import LIGHT, Style
from attnviz.figure.png import write_png
from attnviz.files import write_whole
from attnviz.frames import CellClass, Frame, Outline
from attnviz.session import Cell, Picture
from attnviz.spec import QUERY_KEY_STAGES, SpecError, View, Viewport, check_size

METADATA_KEY: Final = "attnviz"
_LARGE_FROM = 2.0
_PAINTED = 0.3  # of an export's time; the rest is compressing


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where everything stands on paper: the panels shown, their places, and the cells that each map shows."""

    panels: tuple[str, ...]
    plan: layout.FigureLayout
    rows: layout.Span
    cols: layout.Span
    shape: tuple[int, int]

    @property
    def is_part(self) -> bool:
        """Whether a window of the map is shown rather than all of it."""
        return (self.rows, self.cols) != ((0, self.shape[0]), (0, self.shape[1]))

    @property
    def window(self) -> paint.Window:
        """The cells shown, as the painter takes them."""
        return float(self.rows[0]), float(self.rows[1]), float(self.cols[0]), float(self.cols[1])

    @property
    def has_large_cells(self) -> bool:
        """Whether a cell is several rows of pixels high."""
        return self.plan.panels[0].map_rect.height >= _LARGE_FROM * (self.rows[1] - self.rows[0])

    @property
    def viewport(self) -> Viewport:
        """What to compute: as many pixels as a map has on the sheet, of the cells that it shows."""
        place = self.plan.panels[0].map_rect
        pixels = (max(1, int(place.height)), max(1, int(place.width)))
        return Viewport(pixels=pixels, rows=self.rows, cols=self.cols) if self.is_part else Viewport(pixels=pixels)


def lay_out(outline: Outline, view: View, size: tuple[int, int], scale: float = 1.0, head: int | None = None) -> Sheet:
    """The sheet of ``size`` (width, height) pixels on which ``view`` of ``outline`` is drawn, its window clipped.

    ``head`` alone, else the head of the view, else all. Raises `SpecError` for a size that cannot be.
    """
    check_size(size)
    head = view.head if head is None else head
    panels = outline.panels
    if head is not None and f"head:{head}" in panels:
        panels = (f"head:{head}",)
    unit = max(min(size[0] / 1344, size[1] / 840), min(min(size) / 960, 0.75), 0.5) * scale  # small type shrinks less
    rows, cols = layout.clipped(outline, view.rows, view.cols)
    plan = layout.paper_layout(outline, len(panels), size, unit, (rows, cols))
    return Sheet(panels, plan, rows, cols, layout.map_shape(outline))


def render_picture(
    picture: Picture, size: tuple[int, int], style: Style = LIGHT, scale: float = 1.0, head: int | None = None, *,
    show_numbers: bool = True, decimals: int | None = None, selected: Cell | None = None,
) -> QImage:  # fmt: skip
    """``picture`` drawn at ``size`` (width, height) pixels; type grows with the sheet and with ``scale``.

    ``head`` alone, else the head of the picture's view, else all; the cells of its view's rows and cols. Needs a
    QGuiApplication; any thread. Raises `SpecError` for a size that cannot be.
    """
    check_size(size)
    outline = picture.outline
    sheet = None if outline is None else lay_out(outline, picture.view, size, scale, head)
    return _drawn(picture, size, sheet, style, show_numbers=show_numbers, decimals=decimals, selected=selected)


def _drawn(
    picture: Picture, size: tuple[int, int], sheet: Sheet | None, style: Style, *, show_numbers: bool,
    decimals: int | None, selected: Cell | None, step: Step = lambda _done: None,
) -> QImage:  # fmt: skip
    """``picture`` on ``sheet``, blank where there is none. ``step`` is told the share of panels that are done."""
    load_fonts()
    image = QImage(*size, QImage.Format.Format_RGB32)
    if image.isNull():
        raise SpecError("size", f"size is {size[0]}x{size[1]}, for which there is not enough memory: give less")
    image.fill(style.card)
    outline = picture.outline
    if sheet is None or outline is None:
        return image
    places = dict(zip(sheet.panels, sheet.plan.panels, strict=True))
    frames = {
        name: fitted(picture.frames[name], picture.view.colours, place.map_rect, sheet.window)
        for name, place in places.items()
        if name in picture.frames
    }
    painter = QPainter(image)
    try:
        _paint_words(painter, sheet, replace(picture, frames=MappingProxyType(frames)), outline, style)
        for done, (name, frame) in enumerate(frames.items(), 1):
            paint.paint_panel(
                painter, places[name], frame, outline, style, window=sheet.window, numbers=show_numbers,
                decimals=decimals, selected=selected,
            )  # fmt: skip
            step(done / len(frames))
    finally:
        painter.end()
    return image


def _paint_words(painter: QPainter, sheet: Sheet, picture: Picture, outline: Outline, style: Style) -> None:
    """Everything on the sheet that is not a panel: headings, colour bar, captions and legend."""
    plan = sheet.plan
    title, small = sized(22 * plan.unit), sized(14 * plan.unit)
    said = (marks.stage_title(outline.stage), marks.circumstances(picture.spec))
    _write_lines(painter, plan.headings, said, ((title, style.ink), (small, style.muted)))
    if not picture.frames:
        return
    first = next(iter(picture.frames.values()))
    paint.paint_colour_bar(painter, plan, first, picture.view, style)
    caption = (sized(13 * plan.unit), style.muted)
    _write_lines(painter, plan.captions, (sheet_caption(sheet, outline, first), outline.origin), (caption, caption))
    paint.paint_legend(painter, replace(plan, captions=()), picture, style)


def _write_lines(
    painter: QPainter, boxes: tuple[layout.Box, ...], texts: tuple[str, ...], pens: tuple[tuple[QFont, QColor], ...]
) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for box, text, (font, pen) in zip(boxes, texts, pens, strict=True):
        painter.setFont(font)
        painter.setPen(pen)
        draw_text(painter, QRectF(*box), Qt.AlignmentFlag.AlignLeft, text)
    painter.restore()


# ---------------------------------------------------------------------------------------------------------- captions


def sheet_caption(sheet: Sheet, outline: Outline, frame: Frame) -> str:
    """Which cells of the map are shown, where it is a part; what rows and columns are; what a pixel is."""
    words = marks.axes_caption(outline.stage, frame.level, frame.pooling)
    if not sheet.is_part:
        return words
    counted = QCoreApplication.translate("Figure", "counts are of the whole map")
    return " · ".join((_window_words(sheet, outline.stage), words, counted))


def _window_words(sheet: Sheet, stage: str) -> str:
    """Such as "queries 1,024–2,047 × keys 0–1,023 of 131,072"; both lengths where they differ."""
    n_rows, n_cols = sheet.shape
    rows, cols = _span_words(sheet.rows), _span_words(sheet.cols)
    if stage not in QUERY_KEY_STAGES:
        words = QCoreApplication.translate("Figure", "tokens {0} of {1} × dimensions {2} of {3}")
    elif n_rows == n_cols:
        words = QCoreApplication.translate("Figure", "queries {0} × keys {2} of {3}")
    else:
        words = QCoreApplication.translate("Figure", "queries {0} of {1} × keys {2} of {3}")
    return words.format(rows, f"{n_rows:,}", cols, f"{n_cols:,}")


def _span_words(span: layout.Span) -> str:
    first, last = f"{span[0]:,}", f"{span[1] - 1:,}"
    return first if first == last else f"{first}–{last}"


# ------------------------------------------------------------------------------------------------------------ pixels


def fitted(frame: Frame, colours: str, room: layout.Box, window: paint.Window | None = None) -> Frame:
    """``frame`` with no more pixels than ``room`` has for ``window`` of it (None: for all of it).

    The brightest of each square of them, a power of two a side. Means and shares cannot be had from pixels again: a
    frame of them stays as it is.
    """
    top, bottom, left, right = window or (*map(float, frame.rows), *map(float, frame.cols))
    cells = max((bottom - top) / max(room.height, 1), (right - left) / max(room.width, 1))  # for one pixel of the sheet
    factor = 1
    while frame.level * factor < cells:
        factor *= 2
    if factor == 1 or frame.pooling != "max":
        return frame
    height, width = frame.rgb.shape
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
    step: Step = lambda _done: None,
) -> None:  # fmt: skip
    """Write ``picture`` as a PNG of ``size`` with ``spec_json`` as its text "attnviz". Any thread.

    ``step`` is told the share that is done, 0 to 1; what it raises ends the export. Whatever ends it, an older file
    stays as it was. Raises `files.FileProblem`, or `SpecError` for the size.
    """
    check_size(size)
    outline = picture.outline
    sheet = None if outline is None else lay_out(outline, picture.view, size, head=head)
    image = _drawn(
        picture, size, sheet, style, show_numbers=show_numbers, decimals=decimals, selected=selected,
        step=lambda done: step(_PAINTED * done),
    )  # fmt: skip
    write = partial(
        write_png, image=image, texts={METADATA_KEY: spec_json}, large_cells=sheet is None or sheet.has_large_cells,
        each_strip=lambda done: step(_PAINTED + (1 - _PAINTED) * done),
    )  # fmt: skip
    write_whole(path, write)
