"""One small matrix with what stands around it: for pages that explain, beside the large maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz import colour
from attnviz.figure import paint
from attnviz.figure.fonts import draw_text, load_fonts, sized
from attnviz.figure.highlights import paint_selected_row
from attnviz.figure.layout import Box, PanelLayout, panel_layout, subject_of
from attnviz.frames import CellClass, Counts, Frame, Outline, Scale, StageShape, Values, level_for, shown_class
from attnviz.views.plot import style_of

_TITLE, _CAPTION = 22, 20
_LABELS_WORTH = 0.3  # labels that leave less than this share of the map's area are left out
_CENTRE = Qt.AlignmentFlag.AlignHCenter
_MOST_PIXELS = 512  # a larger matrix is pooled to so many pixels a side


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    frame: Frame
    outline: Outline
    title: str
    caption: str
    faded: int
    row: int | None
    numbers: bool
    grown: int | None


class SmallMap(QWidget):
    """A matrix (queries, keys) with a title above and a caption below; nothing until there is one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: _Shown | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(120, 120 + _TITLE + _CAPTION)

    def sizeHint(self) -> QSize:
        return QSize(260, 260 + _TITLE + _CAPTION)

    @property
    def frame(self) -> Frame | None:
        """What is painted."""
        return self._shown.frame if self._shown is not None else None

    def show_matrix(
        self, values: Values, classes: npt.NDArray[np.uint8], *, scale: Scale, colours: str = "viridis",
        tokens: Sequence[str] = (), title: str = "", caption: str = "", sums: bool = False, stage: str = "",
        faded: int = 0, row: int | None = None, numbers: bool = True, grown: int | None = None,
    ) -> None:  # fmt: skip
        """Show ``values`` float (Q, K) with ``classes`` uint8 (Q, K) of `CellClass` sets on ``scale``.

        ``tokens`` name the keys (the queries are the last of them); ``sums`` puts Σ of each row at its right. ``stage``
        says how numbers are written; by default they are weights, on a diverging scale scores. The first ``faded`` rows
        are shown pale; ``row`` wears a frame. With ``grown`` n nothing stands yet beyond the first n tokens.
        """
        stage = stage or ("scaled_scores" if scale.diverging or scale.low < 0 else "weights")
        n_queries, n_keys = values.shape
        outline = Outline(
            0, stage, tuple(tokens), n_queries, n_keys, (), "", (StageShape(stage, (1, n_queries, n_keys)),), (),
            ("head:0",), False, True, "cpu",
        )  # fmt: skip
        totals = np.where(np.isneginf(values), 0, values).astype(np.float64).sum(1) if sums else None
        level = level_for(max(n_queries, n_keys), _MOST_PIXELS)
        pooled, kinds = (values, classes) if level == 1 else pooled_max(values, classes, level)
        rgb = colour.paint_values(pooled, kinds, scale, colours)
        frame = Frame(
            0, "head:0", stage, 0, (0, n_queries), (0, n_keys), level, pooled, kinds, rgb, scale, Counts(), totals
        )
        self._shown = _Shown(frame, outline, title, caption, faded, row, numbers, grown)
        self.setAccessibleName(title)
        self.setAccessibleDescription(caption)
        self.update()

    def clear(self) -> None:
        """Show nothing."""
        self._shown = None
        self.update()

    def map_box(self) -> Box | None:
        """Where the cells lie, None where nothing is shown."""
        return None if self._shown is None else self._place(self._shown).map_rect

    def _place(self, shown: _Shown) -> PanelLayout:
        subject = replace(subject_of(shown.outline), titled=False, sums=shown.frame.row_sums is not None)
        top, bottom = _TITLE if shown.title else 0, _CAPTION if shown.caption else 0
        outer = Box(1.0, float(top), max(self.width() - 2.0, 1.0), max(self.height() - top - bottom - 2.0, 1.0))
        labelled = bool(shown.outline.tokens)
        plan = panel_layout(outer, subject, labelled=labelled)
        bare = panel_layout(outer, replace(subject, row_ems=0.0, column_ems=0.0, sums=False), labelled=False)
        if labelled and _area(plan) < _LABELS_WORTH * _area(bare):
            return bare
        return plan

    def paintEvent(self, _event: QPaintEvent) -> None:
        shown = self._shown
        if shown is None:
            return
        load_fonts()
        style, place, frame = style_of(self), self._place(shown), shown.frame
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        window = (0.0, float(frame.rows[1]), 0.0, float(frame.cols[1]))
        if shown.faded:
            frame = replace(frame, rgb=_paled(frame, shown.faded, style.card))
        paint.paint_cells(painter, QRectF(*place.map_rect), window, frame, style, numbers=shown.numbers)
        outline = shown.outline
        if shown.grown is not None:
            self._blank(painter, QRectF(*place.map_rect), shown.grown / frame.cols[1], style)
            names = [name if n < shown.grown else "" for n, name in enumerate(outline.tokens)]
            outline = replace(outline, tokens=tuple(names))
        paint.paint_surroundings(painter, place, window, frame, outline, style)
        if shown.row is not None:
            paint_selected_row(painter, QRectF(*place.map_rect), window, shown.row, style, 1.0)
        for words, size, pen, top in (
            (shown.title, 14, style.ink, 0.0),
            (shown.caption, 12, style.muted, self.height() - float(_CAPTION)),
        ):
            painter.setFont(sized(size))
            painter.setPen(pen)
            draw_text(painter, QRectF(0, top, self.width(), _TITLE if top == 0 else _CAPTION), _CENTRE, words)
        painter.end()

    @staticmethod
    def _blank(painter: QPainter, rect: QRectF, share: float, style: paint.Style) -> None:
        """Paper over what is not there yet, with an edge around where it will be."""
        right, low = rect.left() + rect.width() * share, rect.top() + rect.height() * share
        painter.fillRect(QRectF(right, rect.top(), rect.right() - right, rect.height()), style.card)
        painter.fillRect(QRectF(rect.left(), low, rect.width(), rect.bottom() - low), style.card)
        painter.setPen(style.hairline)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))


def _area(plan: PanelLayout) -> float:
    return plan.map_rect.width * plan.map_rect.height


def _paled(frame: Frame, rows: int, card: QColor) -> colour.Pixels:
    """The frame's pixels with the ordinary ones of its first ``rows`` grey and near the card's own colour."""
    end = -(-rows // frame.level)
    rgb = frame.rgb.copy()
    part, plain = rgb[:end], shown_class(frame.classes[:end]) == CellClass.ORDINARY
    channels = np.stack([part >> np.uint32(shift) & np.uint32(0xFF) for shift in (16, 8, 0)]).astype(np.float64)
    grey = channels.T @ np.array([0.3, 0.59, 0.11])  # as bright as the colour seems
    grey = grey.T
    mixed = [np.rint(0.42 * grey + 0.58 * own).astype(np.uint32) for own in (card.red(), card.green(), card.blue())]
    pale = np.uint32(0xFF000000) | mixed[0] << np.uint32(16) | mixed[1] << np.uint32(8) | mixed[2]
    part[plain] = pale[plain]
    return rgb


def pooled_max(
    values: Values, classes: npt.NDArray[np.uint8], level: int
) -> tuple[Values, npt.NDArray[np.uint8]]:  # fmt: skip
    """The largest ordinary value and the union of classes of each level × level cells, the last ones partial."""
    rows, cols = (np.arange(0, length, level) for length in values.shape)
    ordinary = (classes & int(CellClass.ORDINARY)) != 0
    kept = np.where(ordinary & ~np.isnan(values), values, -np.inf).astype(values.dtype)
    pooled = np.maximum.reduceat(np.maximum.reduceat(kept, rows, axis=0), cols, axis=1)
    kinds = np.bitwise_or.reduceat(np.bitwise_or.reduceat(classes, rows, axis=0), cols, axis=1)
    return np.where(np.isneginf(pooled), values.dtype.type(0), pooled), kinds
