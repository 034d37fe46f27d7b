"""A whole picture: the grid of maps, the colour bar, the legend and the caption."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPen

from attnviz import colour
from attnviz.figure import words
from attnviz.figure.fonts import draw_text, text_width
from attnviz.figure.layout import Contents, FigureLayout, figure_layout
from attnviz.figure.paint import Style, paint_cell_sample, paint_cells, paint_surroundings
from attnviz.frames import Frame, Outline
from attnviz.session import Cell, Picture
from attnviz.spec import QUERY_KEY_STAGES, WEIGHT_STAGES

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def map_shape(outline: Outline) -> tuple[int, int]:
    """Rows and columns of the shown stage's maps."""
    shape = next((stage.shape for stage in outline.stages if stage.name == outline.stage), None)
    return (shape[-2], shape[-1]) if shape else (outline.n_queries, outline.n_keys)


def names_of(outline: Outline) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Row and column names of the shown stage's maps."""
    rows, cols = map_shape(outline)
    row_names = outline.tokens[-rows:]
    if outline.stage in QUERY_KEY_STAGES:
        return row_names, outline.tokens
    if outline.stage == "row_sums":
        return row_names, ("Σ",)
    if outline.dims and len(outline.dims) == cols:
        return row_names, outline.dims
    return row_names, tuple(str(col) for col in range(cols))


def contents_of(outline: Outline, n_panels: int, *, large_first: bool = False) -> Contents:
    rows, cols = map_shape(outline)
    row_names, column_names = names_of(outline)
    return Contents(
        rows, cols, row_names, column_names, outline.stage in WEIGHT_STAGES, n_panels, large_first=large_first
    )


def paint_page(
    painter: QPainter, size: tuple[float, float], picture: Picture, style: Style, *, numbers: bool = True,
    decimals: int | None = None, selected: Cell | None = None,
) -> None:  # fmt: skip
    """The picture on a page of ``size``: one head if the view names one, else the grid."""
    outline = picture.outline
    assert outline is not None  # noqa: S101
    painter.fillRect(QRectF(0, 0, *size), style.card)
    frames = picture.heads
    if picture.view.head is not None and len(frames) > 1:
        frames = (frames[picture.view.head],)
    text_px = max(int(min(size[1] / 46, size[0] / 70)), 8)
    plan = figure_layout(contents_of(outline, len(frames)), size, text_px, caption_lines=2)
    row_names, column_names = names_of(outline)
    future = outline.has_future and not outline.future_hidden
    for place, frame in zip(plan.panels, frames, strict=True):
        seen = (float(frame.rows[0]), float(frame.rows[1]), float(frame.cols[0]), float(frame.cols[1]))
        paint_cells(
            painter, QRectF(*place.map_rect), seen, frame, style, numbers=numbers, decimals=decimals, future=future,
            strong_row=selected.row if selected else None,
        )  # fmt: skip
        title = words.head_title(frame.panel, frame.stage) if len(picture.heads) > 1 else ""
        paint_surroundings(
            painter, place, seen, frame, outline, style, row_names=row_names, column_names=column_names,
            selected=selected, title=title,
        )  # fmt: skip
    if frames:
        paint_colour_bar(painter, plan, frames[0], picture.view.colours, style)
        paint_legend(painter, plan, outline, frames, style)
    if plan.caption is not None:
        x, y, width, height = plan.caption
        for index, line in enumerate(words.caption_lines(picture)):
            painter.setPen(style.ink if index == 0 else style.muted)
            draw_text(painter, QRectF(x, y + index * height / 2, width, height / 2), _LEFT, line, plan.text_px)


def paint_colour_bar(painter: QPainter, plan: FigureLayout, frame: Frame, colours: str, style: Style) -> None:
    """The shared colour bar with its ticks and its name."""
    x, y, width, height = plan.colour_bar
    table = colour.table(colour.DIVERGING_TABLE if frame.scale.diverging else colours)[::-1].copy()
    image = QImage(table.data, 1, 256, 4, QImage.Format.Format_RGB32).copy()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, True)
    painter.drawImage(QRectF(x, y, width, height), image)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(style.hairline, 1))
    painter.drawRect(QRectF(x, y, width, height))
    small = max(plan.text_px * 8 // 10, 7)
    last = float("inf")
    for place, label in colour.quantity_ticks(frame.scale):
        at = y + (1 - place) * height
        if last - at < small * 1.3:
            continue
        last = at
        painter.setPen(style.muted)
        draw_text(painter, QRectF(x + width + small * 0.5, at - small, small * 5.5, 2 * small), _LEFT, label, small)
    name = words.scale_words(frame.scale)
    if name:
        painter.setPen(style.muted)
        painter.translate(x - small * 0.4, y + height)
        painter.rotate(-90)
        draw_text(painter, QRectF(0, -1.5 * small, height, 1.5 * small), _LEFT, name, small)
    painter.restore()


def paint_legend(
    painter: QPainter, plan: FigureLayout, outline: Outline, frames: tuple[Frame, ...], style: Style
) -> None:
    """What rows and columns are, then each kind of cell with its look and its number."""
    x, y, width, height = plan.legend
    line = height / 2
    px = max(int(plan.text_px * 0.92), 7)
    painter.save()
    painter.setPen(style.muted)
    draw_text(painter, QRectF(x, y, width, line), _LEFT, words.axes_words(outline, frames[0]), px)
    swatch = px * 1.15
    left = x
    for kind, text in words.count_items(words.counts_of(frames), outline.stage):
        box = QRectF(left, y + line + (line - swatch) / 2, swatch, swatch)
        advance = swatch + px * 0.5 + text_width(text, px) + px * 1.4
        if left + advance > x + width + px:
            break
        paint_cell_sample(painter, box, kind, style)
        painter.setPen(style.leak if kind in ("future", "nan") and not text.endswith(" 0") else style.muted)
        draw_text(painter, QRectF(box.right() + px * 0.5, y + line, width, line), _LEFT, text, px)
        left += advance
    painter.restore()
