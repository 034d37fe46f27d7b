"""The one painter: cells, panels and whole figures with QPainter, for the window, for paper and off the GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from attnviz.figure import cells, layout, marks
from attnviz.figure.cells import DARK, LIGHT, Peeking, Style, Window, paint_cells, peeking_of
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.highlights import paint_answer, paint_border, paint_cross, paint_pill, paint_selected_row
from attnviz.figure.labels import axis_labels, map_shape
from attnviz.figure.numbers import comparable
from attnviz.figure.sides import paint_column_labels, paint_row_labels, paint_sums, shared_step
from attnviz.frames import Frame, Outline
from attnviz.session import Cell, Picture

__all__ = [
    "DARK", "LIGHT", "Peeking", "Style", "Window", "comparable", "paint_border", "paint_cells",
    "paint_legend", "paint_panel", "paint_pill", "paint_surroundings", "peeking_of",
]  # fmt: skip

LEGEND_PX: Final = 13.0
_SWATCH_GAP: Final = 6.0
_LEFT = Qt.AlignmentFlag.AlignLeft


# ----------------------------------------------------------------------------------------------------------- panels


def paint_panel(
    painter: QPainter, place: layout.PanelLayout, frame: Frame, outline: Outline, style: Style, *,
    window: Window | None = None, numbers: bool = True, decimals: int | None = None, selected: Cell | None = None,
) -> None:  # fmt: skip
    """One head on paper: its cells and everything around them. ``window`` None shows the whole map."""
    n_rows, n_cols = map_shape(outline)
    window = window or (0.0, float(n_rows), 0.0, float(n_cols))
    paint_cells(
        painter, QRectF(*place.map_rect), window, frame, style, numbers=numbers, decimals=decimals,
        peeking=peeking_of(outline), unit=place.unit, on_paper=True,
    )  # fmt: skip
    paint_surroundings(
        painter, place, window, frame, outline, style, selected=selected, numbers=numbers, answer=False
    )  # fmt: skip


def paint_surroundings(
    painter: QPainter, place: layout.PanelLayout, window: Window, frame: Frame | None, outline: Outline,
    style: Style, *, selected: Cell | None = None, cross: Cell | None = None, panel: str = "", names: bool = True,
    numbers: bool = True, answer: bool = True,
) -> None:  # fmt: skip
    """Title, token labels and row sums of one panel, the selected row's frame, its answer, and the cross-hair.

    ``selected`` and ``cross`` are drawn over the map, so this comes after its cells. Without ``names`` the title and
    the labels are left out, as where they lie outside of what is painted; without ``answer`` the corner on the cell
    that the selected row looks for.
    """
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if names and place.title is not None:
        painter.setFont(sized(14 * place.unit))
        painter.setPen(style.ink)
        title = marks.panel_title(frame, frame.panel if frame is not None else panel)
        draw_text(painter, QRectF(*place.title), _LEFT, title)
    current = cross or selected
    painter.setFont(sized(place.label_px))
    if names and (place.row_labels is not None or place.column_labels is not None):
        rows, columns = axis_labels(outline)
    if names and place.row_labels is not None:
        step = shared_step(painter.font(), place, window, rows, columns)
        paint_row_labels(painter, place, window, rows, style, current.row if current else None, step)
    if names and place.column_labels is not None:
        paint_column_labels(painter, place, window, columns, style, cross.col if cross else None)
    if place.sums is not None and frame is not None and frame.row_sums is not None:
        paint_sums(painter, place, window, frame, style, n_cols=map_shape(outline)[1], numbers=numbers)
    rect = QRectF(*place.map_rect)
    if selected is not None:
        if frame is not None and answer:
            paint_answer(painter, rect, window, frame, outline, selected.row, style)
        paint_selected_row(painter, rect, window, selected.row, style, place.unit)
    if cross is not None:
        paint_cross(painter, rect, window, cross, style)
    painter.restore()


# ---------------------------------------------------------------------------------------------------------- figures


def paint_legend(
    painter: QPainter, plan: layout.FigureLayout, picture: Picture, style: Style, *, window: Window | None = None,
    note: str | None = None, present_only: bool = False, room: Sequence[marks.LegendEntry] = (),
) -> None:  # fmt: skip
    """The captions, and under them the looks of cells that are no ordinary numbers with their counts.

    The looks are those of the maps that show ``window`` (None: the whole map). A ``note`` stands in place of the first
    caption, or of the legend where there is none. With ``present_only`` looks that no cell has are left out;
    each of the others stands where it would if all looks of ``room`` were there.
    """
    outline, frames = picture.outline, picture.heads
    if outline is None or not frames:
        return
    load_fonts()
    unit = plan.unit
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(sized(LEGEND_PX * unit))
    painter.setPen(style.muted)
    coarsest = max(frames, key=lambda frame: frame.level)
    said = (marks.axes_caption(outline.stage, coarsest.level, coarsest.pooling), outline.origin)
    for box, text in zip(plan.captions, said, strict=False):
        own = note is not None and box is plan.captions[0]
        painter.setPen(style.accent if own else style.muted)
        draw_text(painter, QRectF(*box), _LEFT, note if own and note else text)
    if note is not None and not plan.captions:  # a low figure has the legend's line alone
        painter.setPen(style.accent)
        draw_text(painter, QRectF(*plan.legend), _LEFT, note)
        painter.restore()
        return
    n_rows, n_cols = map_shape(outline)
    top, bottom, left, right = window or (0.0, float(n_rows), 0.0, float(n_cols))
    place = plan.panels[0].map_rect
    cell = min(place.height / (bottom - top), place.width / (right - left))
    marked = coarsest.level == 1 and cell >= cells.hatched_from(style)
    side, line = LEGEND_PX * unit, plan.line
    entries = marks.legend_entries(picture, present_only=present_only)
    room = room or entries
    places = dict(zip((entry.kind for entry in room), legend_places(room, plan.legend.width, unit), strict=True))
    for entry in entries:
        row, left = places[entry.kind]
        y = plan.legend.y + row * line
        if y + line > plan.legend.bottom + 1:
            break
        swatch = QRectF(plan.legend.x + left, y + (line - side) / 2, side, side)
        cells.paint_swatch(painter, swatch, entry.kind, style, marked=marked, cell=cell)
        painter.setPen(style.muted)
        text_x = swatch.right() + _SWATCH_GAP * unit
        draw_text(painter, QRectF(text_x, y, plan.legend.right - text_x, line), _LEFT, entry.text)
    painter.restore()


def legend_places(
    entries: Sequence[marks.LegendEntry], width: float, unit: float
) -> tuple[tuple[int, float], ...]:  # fmt: skip
    """The line of each of ``entries``, from 0, and how far from its left end the entry begins, in ``width`` pixels."""
    font, places = sized(LEGEND_PX * unit), []
    row, left = 0, 0.0
    for entry in entries:
        wide = legend_width(entry.text, font, unit)
        if left > 0 and left + wide > width:
            row, left = row + 1, 0.0
        places.append((row, left))
        left += wide + 20 * unit
    return tuple(places)


def legend_width(text: str, font: QFont, unit: float) -> float:
    """What an entry with such words takes of its line."""
    return (LEGEND_PX + _SWATCH_GAP) * unit + text_width(font, text)
