"""One row as mask and dropout leave it, in two looks: × hidden always, ○ dropped by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz import colour
from attnviz.figure import cells, marks, paint
from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.frames import CellClass, Counts, Frame, Scale, Values, level_for
from attnviz.pixels import pooled_furthest, pooled_max
from attnviz.spec import Colours
from attnviz.views.plot import style_of

_NAMES, _CELLS, _BEFORE, _LEGEND = 22, 48, 20, 20
_WORDS_FROM = 34.0  # pixels a cell from which names and numbers stand at each
_LEFT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter


class DroppedRow(QWidget):
    """Cells of one row after dropout, what they were before below, and the two looks in words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._frame: Frame | None = None
        self._before: Values = np.zeros(0)
        self._names: Sequence[str] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(_NAMES + _CELLS + _BEFORE + 2 * _LEGEND + 4)
        self.setMinimumWidth(200)
        self.setAccessibleName(self.tr("one row: masked and dropped cells"))

    def sizeHint(self) -> QSize:
        return QSize(360, self.height())

    @property
    def frame(self) -> Frame | None:
        """The cells that are painted, one row of them."""
        return self._frame

    def show_row(
        self, before: Values, after: Values, masked: npt.NDArray[np.bool_], dropped: npt.NDArray[np.bool_],
        names: Sequence[str], *, scale: Scale | None = None, colours: Colours = "viridis",
    ) -> None:  # fmt: skip
        """Show ``after`` (C,), with ``before`` (C,) below it; ``masked`` and ``dropped`` are bool (C,).

        ``names`` are of the keys, and ``scale`` is that of weights; None where ``after`` is a context vector, whose
        dimensions ``names`` are then.
        """
        kinds = np.full(len(after), int(CellClass.ORDINARY), np.uint8)
        if scale is not None:
            kinds[after == 0] = int(CellClass.ZERO)
        kinds[dropped] = int(CellClass.DROPPED)
        kinds[masked] = int(CellClass.MASKED)
        kinds[np.isnan(after)] = int(CellClass.NAN)
        stage = "dropped_context" if scale is None else "dropped_weights"
        if scale is None:
            finite = after[np.isfinite(after)]
            most = float(np.abs(finite).max()) if finite.size else 0.0
            scale = Scale(-(most or 1.0), most or 1.0, diverging=True)
        level = level_for(len(after), 1024)
        values, classes = after[None], kinds[None]
        if level > 1:
            values, classes = (pooled_furthest if scale.diverging else pooled_max)(values, classes, level)
        self._frame = Frame(
            0, "head:0", stage, 0, (0, 1), (0, len(after)), level, values, classes,
            colour.paint_values(values, classes, scale, colours), scale, Counts(),
        )  # fmt: skip
        self._before, self._names = before, names
        self.update()

    def clear(self) -> None:
        """Show nothing."""
        self._frame = None
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        frame = self._frame
        if frame is None:
            return
        load_fonts()
        style, n = style_of(self), frame.cols[1]
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cell = min(self.width() / n, 72.0)
        rect = QRectF(0, _NAMES, cell * n, _CELLS)
        paint.paint_cells(painter, rect, (0.0, 1.0, 0.0, float(n)), frame, style)
        if cell >= _WORDS_FROM:
            painter.setFont(sized(12))
            for key in range(n):
                painter.setPen(style.ink)
                name = self._names[key] if key < len(self._names) else str(key)
                draw_text(painter, QRectF(key * cell + 1, 0, cell - 2, _NAMES), _CENTRE, name)
                if int(frame.classes[0, key]) & int(CellClass.MASKED):
                    continue
                painter.setPen(style.muted)
                words = marks.cell_number(float(self._before[key]), 2)
                draw_text(painter, QRectF(key * cell, rect.bottom(), cell, _BEFORE), _CENTRE, words)
        self._paint_legend(painter, style, rect.bottom() + _BEFORE)
        painter.end()

    def _paint_legend(self, painter: QPainter, style: paint.Style, top: float) -> None:
        painter.setFont(sized(12))
        x, y = 0.0, top
        for kind, words in (
            (CellClass.MASKED, self.tr("hidden by the mask, always")),
            (CellClass.DROPPED, self.tr("dropped by chance, in training only")),
        ):
            width = 20 + text_width(painter.font(), words)
            if x and x + width > self.width():
                x, y = 0.0, y + _LEGEND
            cells.paint_swatch(painter, QRectF(x, y + 3, 14, 14), kind, style)
            painter.setPen(style.muted)
            draw_text(painter, QRectF(x + 20, y, self.width() - x - 20, _LEGEND), _LEFT, words)
            x += width + 18
