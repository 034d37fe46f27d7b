"""The two forms of a module, drawn as they are: small matrices head by head, or large ones and a cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.styles import Style
from attnviz.figure.words import wrapped
from attnviz.spec import AttentionSpec, Implementation

LEAST_WIDTH: Final = 204.0
"""Pixels in which the words of a drawing have room."""

_TOP, _MOST_ROWS, _ROW, _FOOT = 36.0, 4, 34.0, 40.0
_TWO_LINES: Final = 34.0
"""A matrix so high has its shape below its name."""

_WIDE: Final = 260.0
_GAP: Final = 6.0  # between matrices
_CENTRE, _LEFT = Qt.AlignmentFlag.AlignCenter, Qt.AlignmentFlag.AlignLeft


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the drawings say: tokens, widths, and heads with their own queries, and with their own keys and values."""

    length: int
    d_model: int
    d_out: int
    heads: int
    kv_heads: int

    @property
    def d_head(self) -> int:
        return self.d_out // self.heads

    @property
    def stacked_products(self) -> int:
        return self.heads + 2 * self.kv_heads


def sizes_of(spec: AttentionSpec, length: int) -> Sizes | None:
    """The sizes of a spec with projections, None for another."""
    if spec.d_model is None or spec.d_out is None or spec.projection == "none":
        return None
    return Sizes(length, spec.d_model, spec.d_out, spec.num_heads, spec.num_kv_heads)


def products_words(form: Implementation, sizes: Sizes) -> str:
    """The matrix products of a form, counted."""
    if form == "split":
        return QCoreApplication.translate("Forms", "3 products and a cut")
    if sizes.kv_heads != sizes.heads:
        words = QCoreApplication.translate("Forms", "{h} + 2 × {kv} = {n} products")
        return words.format(h=sizes.heads, kv=sizes.kv_heads, n=sizes.stacked_products)
    words = QCoreApplication.translate("Forms", "3 × {h} = {n} products")
    return words.format(h=sizes.heads, n=sizes.stacked_products)


def form_words(form: Implementation, sizes: Sizes) -> str:
    """A form's name and its products."""
    names = {
        "stacked": QCoreApplication.translate("Forms", "stacked"), "split": QCoreApplication.translate("Forms", "split")
    }  # fmt: skip
    return f"{names[form]}: {products_words(form, sizes)}"


def form_height(sizes: Sizes | None) -> float:
    """Pixels that a drawing needs, the same for both forms; it has use for more, where rows are higher."""
    return _TOP + _rows(sizes) * _ROW + _FOOT


def _rows(sizes: Sizes | None) -> int:
    return 2 if sizes is None else max(min(sizes.heads, _MOST_ROWS), 2)


def paint_form(
    painter: QPainter, size: tuple[float, float], form: Implementation, sizes: Sizes | None, style: Style, *,
    lit: bool = False,
) -> None:  # fmt: skip
    """One form in ``size`` (width, height) from (0, 0): X on the left, its matrices, and what comes out.

    ``lit`` says that it is the one in use. None draws the frame alone.
    """
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(style.accent if lit else style.hairline, 2.0 if lit else 1.0))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(QRectF(0, 0, *size).adjusted(1, 1, -1, -1), 8, 8)
    if sizes is not None:
        painter.setFont(sized(14))
        painter.setPen(style.ink)
        draw_text(painter, QRectF(12, 6, size[0] - 24, 26), _LEFT, form_words(form, sizes))
        _Drawing(painter, size, sizes, style).paint(form)
    painter.restore()


class _Drawing:
    """One form on its way to the paper."""

    def __init__(self, painter: QPainter, size: tuple[float, float], sizes: Sizes, style: Style) -> None:
        self.painter, self.style, self.sizes = painter, style, sizes
        self.width, self.height = size
        self.row = max((self.height - _TOP - _FOOT) / _rows(sizes), _ROW)
        self.says_shapes = self._has_room_for_shapes()

    def _has_room_for_shapes(self) -> bool:
        """Whether every matrix of both forms can say its shape: all do, or none."""
        sizes = self.sizes
        left, right = self._between(self._out(sizes.d_head))
        box, font = (right - left - 2 * _GAP) / 3, sized(11)
        shape = f"{sizes.d_model}×{sizes.d_head}"
        if self.row - 8 >= _TWO_LINES:
            return text_width(font, shape) <= box - 4
        return text_width(font, f"Wq {shape}") <= box - 6

    def _out(self, width: int) -> str:
        """The shape of what a product gives."""
        return f"({self.sizes.length:,}, {width})"

    def paint(self, form: Implementation) -> None:
        if form == "stacked":
            self._paint_stacked(self.sizes)
        else:
            self._paint_split(self.sizes)

    def _paint_stacked(self, sizes: Sizes) -> None:
        shown = sizes.heads if sizes.heads <= _MOST_ROWS else _MOST_ROWS - 1
        rows = min(sizes.heads, _MOST_ROWS)
        height = rows * self.row
        self._paint_input(sizes, height)
        out = self._out(sizes.d_head)
        left, right = self._between(out)
        for head in range(shown):
            y = _TOP + head * self.row
            own = head % max(sizes.heads // sizes.kv_heads, 1) == 0
            self._paint_arrow(left - 20, left - 6, y + self.row / 2)
            self._paint_boxes(QRectF(left, y + 4, right - left, self.row - 8), ("Wq", "Wk", "Wv") if own else (
                "Wq",), f"{sizes.d_model}×{sizes.d_head}")  # fmt: skip
            self._paint_words(QRectF(right + 6, y, self.width - right - 10, self.row), out)
        if shown < sizes.heads:
            words = QCoreApplication.translate("Forms", "… {n} heads in all").format(n=sizes.heads)
            self._paint_words(QRectF(left, _TOP + shown * self.row, right - left, self.row), words)
        joined = QCoreApplication.translate("Forms", "side by side: {shape}").format(
            shape=f"({sizes.length:,}, {sizes.d_out})"
        )
        self._paint_result(joined)

    def _paint_split(self, sizes: Sizes) -> None:
        height = _rows(sizes) * self.row
        self._paint_input(sizes, height)
        out = self._out(sizes.d_out)
        left, right = self._between(out)
        self._paint_arrow(left - 20, left - 6, _TOP + height / 2)
        own = sizes.kv_heads * sizes.d_head
        widths = (sizes.d_out, own, own)
        slices = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
        gap = _GAP
        width = (right - left - 2 * gap) / 3
        for place, (name, wide, parts) in enumerate(zip(("Wq", "Wk", "Wv"), widths, slices, strict=True)):
            box = QRectF(left + place * (width + gap), _TOP + 2, width, height - 4)
            self._paint_box(box, name, f"{sizes.d_model}×{wide}")
            if parts <= 12:
                pen = QPen(self.style.accent, 1.2)
                pen.setDashPattern([3, 3])
                self.painter.setPen(pen)
                for at in range(1, parts):
                    x = box.left() + box.width() * at / parts
                    self.painter.drawLine(QPointF(x, box.top()), QPointF(x, box.top() + 10))
                    self.painter.drawLine(QPointF(x, box.bottom() - 10), QPointF(x, box.bottom()))
        self._paint_words(QRectF(right + 6, _TOP, self.width - right - 10, height), out)
        cut = QCoreApplication.translate("Forms", "cut into heads: {shape}").format(
            shape=f"({sizes.heads}, {sizes.length:,}, {sizes.d_head})"
        )
        self._paint_result(cut)

    @property
    def _input_width(self) -> float:
        return 52.0 if self.width >= _WIDE else 40.0

    def _between(self, out: str) -> tuple[float, float]:
        """Where the matrices begin and end."""
        return 34.0 + self._input_width, self.width - text_width(sized(12), out) - 20

    def _paint_input(self, sizes: Sizes, height: float) -> None:
        shape = f"({sizes.length:,}, {sizes.d_model})"
        box = QRectF(12, _TOP + 2, self._input_width, height - 4)
        self.painter.setPen(QPen(self.style.hairline, 1))
        self.painter.setBrush(self.style.ground)
        self.painter.drawRoundedRect(box, 5, 5)
        self.painter.setPen(self.style.ink)
        self.painter.setFont(sized(14))
        middle = box.center().y()
        draw_text(self.painter, QRectF(box.left(), middle - 18, box.width(), 18), _CENTRE, "X")
        self.painter.setPen(self.style.muted)
        self.painter.setFont(sized(11))
        for place, line in enumerate(wrapped(self.painter.font(), shape, box.width() - 4)):
            draw_text(self.painter, QRectF(box.left(), middle + 14 * place, box.width(), 16), _CENTRE, line)

    def _paint_boxes(self, area: QRectF, names: tuple[str, ...], shape: str) -> None:
        gap = _GAP
        width = (area.width() - 2 * gap) / 3
        for place, name in enumerate(names):
            box = QRectF(area.left() + place * (width + gap), area.top(), width, area.height())
            self._paint_box(box, name, shape)

    def _paint_box(self, box: QRectF, name: str, shape: str) -> None:
        self.painter.setPen(QPen(self.style.accent, 1))
        self.painter.setBrush(self.style.soft)
        self.painter.drawRoundedRect(box, 5, 5)
        self.painter.setPen(self.style.ink)
        if box.height() < _TWO_LINES or not self.says_shapes:
            self.painter.setFont(sized(11))
            words = f"{name} {shape}" if self.says_shapes else name
            draw_text(self.painter, box.adjusted(2, 0, -2, 0), _CENTRE, words)
            return
        self.painter.setFont(sized(12))
        rows, _, cols = shape.partition("×")
        one_line = text_width(sized(11), shape) <= box.width() - 4
        lines = [shape] if one_line else [rows, f"× {cols}"]
        y = box.center().y() - 8.5 * (1 + len(lines))
        draw_text(self.painter, QRectF(box.left(), y, box.width(), 17), _CENTRE, name)
        self.painter.setFont(sized(11))
        for place, line in enumerate(lines, 1):
            draw_text(self.painter, QRectF(box.left(), y + 17 * place, box.width(), 17), _CENTRE, line)

    def _paint_arrow(self, left: float, right: float, y: float) -> None:
        self.painter.setPen(QPen(self.style.muted, 1.4))
        self.painter.drawLine(QPointF(left, y), QPointF(right, y))
        self.painter.drawPolyline([QPointF(right - 4, y - 4), QPointF(right, y), QPointF(right - 4, y + 4)])

    def _paint_words(self, area: QRectF, words: str) -> None:
        self.painter.setPen(self.style.muted)
        self.painter.setFont(sized(12))
        draw_text(self.painter, area, _LEFT, words)

    def _paint_result(self, words: str) -> None:
        self.painter.setPen(self.style.ink)
        self.painter.setFont(sized(13))
        draw_text(self.painter, QRectF(12, self.height - 32.0, self.width - 24, 24), _LEFT, words)
