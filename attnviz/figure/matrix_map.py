"""One small matrix with what stands around it: for pages that explain, and for figures of several blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from attnviz import colour
from attnviz.figure.cells import paint_cells
from attnviz.figure.fitting import pooled
from attnviz.figure.fonts import draw_text, load_fonts, sized
from attnviz.figure.grid import Window, grid_of
from attnviz.figure.grids import shifted
from attnviz.figure.labels import label_step
from attnviz.figure.layout import Box, PanelLayout, Subject, map_shape, panel_layout, subject_of
from attnviz.figure.paint import paint_surroundings
from attnviz.figure.panels import LEAST_LABEL_STEP, SIN
from attnviz.figure.peeking import Peeking, frame_hidden_cells, hidden_cells, outline_hidden
from attnviz.figure.styles import Style
from attnviz.figure.vectors import draw_lines
from attnviz.frames import CellClass, Counts, Crop, Frame, Outline, Scale, StageShape, Values, level_for, shown_class
from attnviz.session import Cell
from attnviz.spec import AnyShape, MaskFile

TITLE_PX, CAPTION_PX = 14, 12
TITLE_LINE, CAPTION_LINE = 22.0, 20.0
_LABELS_WORTH = 0.3  # labels that leave less than this share of the map's area are left out
_FRAMED_FROM = 7.0  # pixels a cell
_MOST_PIXELS = 512  # a larger matrix is pooled to so many pixels a side
_SQUARE_UP_TO = 8.0  # times as long as wide: of a longer part of a map square cells would be a thread
_PALE = 0.2, 0.18  # of ink in what is pale, at least and more by brightness: no ground of a mask is so dark
_CENTRE = Qt.AlignmentFlag.AlignHCenter


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """What is painted: one frame, and the words around it.

    The first ``faded`` rows are pale; ``row`` wears a frame. With ``grown`` n nothing stands yet beyond the first n
    tokens. ``peeking`` says which visible cells wear a red frame.
    """

    frame: Frame
    outline: Outline
    colours: str
    title: str = ""
    caption: str = ""
    faded: int = 0
    row: int | None = None
    numbers: bool = True
    grown: int | None = None
    peeking: Peeking | None = None
    sums_words: str = ""
    brief: tuple[str, str] | None = None
    """``sums_words`` are for where the rows' sums have no room, ``brief`` a title and a caption for little room."""

    @property
    def crop(self) -> Crop:
        """Which cells of the map are shown."""
        return Crop(self.frame.rows, self.frame.cols, map_shape(self.outline))

    @property
    def is_of_one_text(self) -> bool:
        """Whether rows and columns are the same tokens: either's names are both's."""
        n_rows, n_cols = self.crop.shape
        return n_rows == n_cols and self.frame.rows == self.frame.cols and not self.outline.query_names

    @property
    def window(self) -> Window:
        """All that is shown."""
        (top, bottom), (left, right) = self.frame.rows, self.frame.cols
        return float(top), float(bottom), float(left), float(right)

    @property
    def shows_red(self) -> bool:
        """Whether a cell that is hidden by the mask's shape is seen all the same."""
        if self.peeking is None or self.frame.level > 1:
            return False
        behind = hidden_cells(self.peeking, range(*self.frame.rows), range(*self.frame.cols))
        return bool((behind & (shown_class(self.frame.classes) == CellClass.ORDINARY)).any())


def matrix_of(
    values: Values, classes: npt.NDArray[np.uint8], *, scale: Scale, colours: str = "viridis",
    tokens: Sequence[str] = (), title: str = "", caption: str = "", stage: str = "",
    sums: bool | npt.NDArray[np.float64] = False, crop: Crop | None = None, level: int = 1,
    faded: int = 0, row: int | None = None, numbers: bool = True, grown: int | None = None,
    peeking: Peeking | None = None, most: int = _MOST_PIXELS,
) -> Matrix:  # fmt: skip
    """``values`` float (Q, K) with ``classes`` uint8 (Q, K) of `CellClass` sets on ``scale``.

    They are ``crop`` of a map (None: all of it), each ``level`` × ``level`` of its cells. ``tokens`` name the whole
    map's keys (the queries are the last of them); ``sums`` puts Σ of each row at its right, or the numbers (Q,) given.
    ``stage`` says how numbers are written; by default they are weights, on a diverging scale scores. A matrix of over
    ``most`` cells a side is pooled.
    """
    stage = stage or ("scaled_scores" if scale.diverging or scale.low < 0 else "weights")
    crop = crop or Crop((0, values.shape[0]), (0, values.shape[1]), values.shape)
    n_queries, n_keys = crop.shape
    outline = Outline(
        0, stage, tuple(tokens), n_queries, n_keys, (), "", (StageShape(stage, (1, n_queries, n_keys)),), (),
        ("head:0",), False, True, "cpu",
    )  # fmt: skip
    totals = sums if isinstance(sums, np.ndarray) else None
    if sums is True:
        totals = np.where(np.isneginf(values), 0, values).astype(np.float64).sum(1)
    rgb = colour.paint_values(values, classes, scale, colours)
    frame = Frame(
        0, "head:0", stage, 0, crop.rows, crop.cols, level, values, classes, rgb, scale, Counts(), totals
    )  # fmt: skip
    frame = pooled(frame, level_for(max(values.shape), most), colours)
    return Matrix(frame, outline, colours, title, caption, faded, row, numbers, grown, peeking)


def shape_peeking(shape: AnyShape, n_queries: int, n_keys: int) -> Peeking | None:
    """What a mask's shape frames in red; a file's frames nothing."""
    return None if isinstance(shape, MaskFile) else Peeking(shape, n_keys - n_queries, n_keys)


# ------------------------------------------------------------------------------------------------------------ painting


def place_of(outer: Box, matrix: Matrix, unit: float = 1.0, *, beside_sums: bool = False) -> PanelLayout:
    """Where map, labels and sums lie in ``outer``; labels that cost the map too much are left out.

    A map that stands ``beside_sums`` of others is as large as they are.
    """
    subject = subject_of_matrix(matrix, beside_sums=beside_sums)
    place = _place(outer.width, outer.height, subject, unit, named=bool(matrix.outline.tokens))
    if matrix.frame.row_sums is None:
        place = replace(place, sums=None, sums_header=None)
    return shifted(place, math.floor(outer.x), math.floor(outer.y))


def subject_of_matrix(matrix: Matrix, *, beside_sums: bool = False) -> Subject:
    """What the layout of ``matrix`` depends on."""
    crop = matrix.crop
    n_rows, n_cols = crop.size
    least = 2 / 3 if crop.is_whole else 1 / _SQUARE_UP_TO
    square = least <= n_cols / n_rows <= 1 / least
    subject = Subject(
        n_rows, n_cols, titled=False, sums=matrix.frame.row_sums is not None or beside_sums, square=square
    )
    if not matrix.outline.tokens:
        return subject
    named = _named(matrix.outline, crop)
    return replace(subject, row_ems=named.row_ems, column_ems=named.column_ems, numbered=named.numbered)


@lru_cache(maxsize=64)  # as below; of many labels the widest takes its time
def _named(outline: Outline, crop: Crop) -> Subject:
    return subject_of(outline, (crop.rows, crop.cols))


def names_tell(place: PanelLayout, subject: Subject, *, slanted: bool) -> tuple[bool, bool]:
    """Whether there is room for more than a name or two of the rows' tokens, and of the columns'."""
    least = max(LEAST_LABEL_STEP * place.unit, 1.1 * place.label_px)
    across = max(least, 1.1 * place.label_px / SIN) if slanted else least
    rows, columns = (
        label_step(side / count, apart) <= max(count / 2, 1)
        for side, count, apart in (
            (place.map_rect.height, subject.rows, least), (place.map_rect.width, subject.cols, across)
        )
    )  # fmt: skip
    return rows, columns


def _is_named(plan: PanelLayout, subject: Subject) -> bool:
    """Whether the names are worth their room; rows' alone must not be cut."""
    rows = plan.row_labels
    cut = rows is not None and rows.width + 1 < subject.row_ems * plan.label_px
    return all(names_tell(plan, subject, slanted=plan.slanted)) and not (cut and plan.column_labels is None)


@lru_cache(maxsize=4096)  # the maps of one figure are alike, and many sizes are tried
def _place(width: float, height: float, subject: Subject, unit: float, *, named: bool) -> PanelLayout:
    outer = Box(0.0, 0.0, width, height)
    nameless = replace(subject, row_ems=0.0, column_ems=0.0)
    bare = panel_layout(outer, replace(nameless, sums=False), unit=unit, labelled=False)
    if named:
        plan = panel_layout(outer, subject, unit=unit)
        if _area(plan) >= _LABELS_WORTH * _area(bare) and _is_named(plan, subject):
            return plan
    if subject.sums:
        plan = panel_layout(outer, nameless, unit=unit)
        if _area(plan) >= _LABELS_WORTH * _area(bare):
            return replace(plan, row_labels=None, column_labels=None, overhang=None)
    return bare


def paint_map(
    painter: QPainter, place: PanelLayout, matrix: Matrix, style: Style, unit: float = 1.0, *, numbers: bool = True,
    decimals: int | None = None,
) -> None:  # fmt: skip
    """The cells and what stands around them at their ``place``; not the title and the caption."""
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    rect, window, frame, outline = QRectF(*place.map_rect), matrix.window, matrix.frame, matrix.outline
    n_rows, n_cols = matrix.crop.size
    factor = 1
    while frame.level * factor < max(n_rows / max(rect.height(), 1), n_cols / max(rect.width(), 1)):
        factor *= 2
    frame = pooled(frame, factor, matrix.colours)
    if matrix.faded:
        frame = replace(frame, rgb=_paled(frame, matrix.faded, style))
    painter.save()
    if matrix.grown is not None:  # what is not there yet is bare paper
        painter.fillRect(rect, style.card)
        share = matrix.grown / frame.cols[1]
        painter.setClipRect(
            QRectF(rect.left(), rect.top(), rect.width() * share, rect.height() * share),
            Qt.ClipOperation.IntersectClip,
        )
        outline = replace(
            outline, tokens=tuple(name if n < matrix.grown else "" for n, name in enumerate(outline.tokens))
        )
    paint_cells(
        painter, rect, window, frame, style, numbers=numbers and matrix.numbers, decimals=decimals, unit=unit
    )  # fmt: skip
    if style.grey and frame.scale.diverging and frame.level == 1:
        _hatch_negative(painter, rect, window, frame, unit)
    if matrix.peeking is not None and matrix.shows_red:
        if not matrix.crop.is_whole:  # the line around what is hidden goes on beyond it
            painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
        _paint_peeking(painter, rect, window, frame, matrix.peeking, style, unit)
    painter.restore()
    if matrix.grown is not None:
        painter.setPen(style.hairline)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
    row = None if matrix.row is None else Cell(matrix.row, 0)
    paint_surroundings(
        painter, place, window, frame, outline, style, selected=row, numbers=numbers, answer=False
    )  # fmt: skip
    painter.restore()


def _paint_peeking(
    painter: QPainter, rect: QRectF, window: Window, frame: Frame, peeking: Peeking, style: Style, unit: float
) -> None:
    """Red frames in cells that are large enough, else a red line around all of them."""
    grid = grid_of(rect, window, frame)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if frame.level == 1 and grid.side >= _FRAMED_FROM:
        frame_hidden_cells(painter, grid, shown_class(grid.seen(frame.classes, frame)), peeking, style, unit)
    else:
        outline_hidden(painter, grid, peeking, style, unit * 0.7)


def _hatch_negative(painter: QPainter, rect: QRectF, window: Window, frame: Frame, unit: float) -> None:
    """Hatching over what is below 0: in grey both ends of a diverging scale are dark."""
    grid = grid_of(rect, window, frame)
    if grid.side >= _FRAMED_FROM:
        below = (frame.values < 0) & (shown_class(frame.classes) == CellClass.ORDINARY)
        (top, _), (left, _) = frame.rows, frame.cols
        hatch_below(painter, [grid.cell(top + row, left + col) for row, col in np.argwhere(below).tolist()], unit)


def hatch_below(painter: QPainter, rects: Sequence[QRectF], unit: float) -> None:
    """Thin falling lines over ``rects``, which mean what is below 0."""
    area = QPainterPath()
    for rect in rects:
        area.addRect(rect)
    if area.isEmpty():
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setClipPath(area, Qt.ClipOperation.IntersectClip)
    painter.setPen(QPen(QColor(0, 0, 0, 110), 0.7 * unit))
    whole, step = area.boundingRect(), 5 * unit
    count = math.ceil((whole.width() + whole.height()) / step)
    starts = [whole.left() - whole.height() + n * step for n in range(count + 1)]
    draw_lines(painter, [QLineF(x, whole.top(), x + whole.height(), whole.bottom()) for x in starts])
    painter.restore()


def outer_of(width: float, height: float, matrix: Matrix) -> Box:
    """The room of a map in a widget of its own, between a line of title and a line of caption."""
    top, bottom = TITLE_LINE if matrix.title else 0.0, CAPTION_LINE if matrix.caption else 0.0
    return Box(1.0, top, max(width - 2.0, 1.0), max(height - top - bottom - 2.0, 1.0))


def paint_alone(painter: QPainter, width: float, height: float, matrix: Matrix, style: Style) -> None:
    """A map that has ``width`` × ``height`` pixels to itself, with a line of title and a line of caption."""
    paint_map(painter, place_of(outer_of(width, height, matrix), matrix), matrix, style)
    for words, size, pen, top, line in (
        (matrix.title, TITLE_PX, style.ink, 0.0, TITLE_LINE),
        (matrix.caption, CAPTION_PX, style.muted, height - CAPTION_LINE, CAPTION_LINE),
    ):
        painter.setFont(sized(size))
        painter.setPen(pen)
        draw_text(painter, QRectF(0, top, width, line), _CENTRE, words)


def _area(plan: PanelLayout) -> float:
    return plan.map_rect.width * plan.map_rect.height


def _paled(frame: Frame, rows: int, style: Style) -> colour.Pixels:
    """The frame's pixels with the ordinary ones of its first ``rows`` grey, from near the card's colour on."""
    end = -(-rows // frame.level)
    rgb = frame.rgb.copy()
    part, plain = rgb[:end], shown_class(frame.classes[:end]) == CellClass.ORDINARY
    channels = np.stack([part >> np.uint32(shift) & np.uint32(0xFF) for shift in (16, 8, 0)]).astype(np.float64)
    card, ink = (np.array([one.red(), one.green(), one.blue()]) for one in (style.card, style.ink))
    luma = np.array([0.3, 0.59, 0.11])  # as bright as a colour seems
    share = _PALE[0] + _PALE[1] * np.abs(np.tensordot(luma, channels, 1) - luma @ card) / 255
    mixed = [np.rint(a + (b - a) * share).astype(np.uint32) for a, b in zip(card, ink, strict=True)]
    pale = np.uint32(0xFF000000) | mixed[0] << np.uint32(16) | mixed[1] << np.uint32(8) | mixed[2]
    part[plain] = pale[plain]
    return rgb
