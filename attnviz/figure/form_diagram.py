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

_TOP, _MOST_ROWS, _ROW = 36.0, 4, 34.0
_WIDE: Final = 260.0
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
    """Pixels that a drawing needs, the same for both forms."""
    rows = 2 if sizes is None else max(min(sizes.heads, _MOST_ROWS), 2)
    return _TOP + rows * _ROW + 40


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

    def paint(self, form: Implementation) -> None:
        if form == "stacked":
            self._paint_stacked(self.sizes)
        else:
            self._paint_split(self.sizes)

    def _paint_stacked(self, sizes: Sizes) -> None:
        shown = sizes.heads if sizes.heads <= _MOST_ROWS else _MOST_ROWS - 1
        rows = min(sizes.heads, _MOST_ROWS)
        height = rows * _ROW
        self._paint_input(sizes, height)
        out = f"({sizes.length:,}, {sizes.d_head})"
        left, right = self._between(out)
        for head in range(shown):
            y = _TOP + head * _ROW
            own = head % max(sizes.heads // sizes.kv_heads, 1) == 0
            self._paint_arrow(left - 20, left - 6, y + _ROW / 2)
            self._paint_boxes(QRectF(left, y + 4, right - left, _ROW - 8), ("Wq", "Wk", "Wv") if own else (
                "Wq",), f"{sizes.d_model}×{sizes.d_head}")  # fmt: skip
            self._paint_words(QRectF(right + 6, y, self.width - right - 10, _ROW), out)
        if shown < sizes.heads:
            words = QCoreApplication.translate("Forms", "… {n} heads in all").format(n=sizes.heads)
            self._paint_words(QRectF(left, _TOP + shown * _ROW, right - left, _ROW), words)
        joined = QCoreApplication.translate("Forms", "side by side: {shape}").format(
            shape=f"({sizes.length:,}, {sizes.d_out})"
        )
        self._paint_result(joined)

    def _paint_split(self, sizes: Sizes) -> None:
        height = min(sizes.heads, _MOST_ROWS) * _ROW
        height = max(height, 2 * _ROW)
        self._paint_input(sizes, height)
        out = f"({sizes.length:,}, {sizes.d_out})"
        left, right = self._between(out)
        self._paint_arrow(left - 20, left - 6, _TOP + height / 2)
        own = sizes.kv_heads * sizes.d_head
        widths = (sizes.d_out, own, own)
        slices = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
        gap = 6.0
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
        gap = 6.0
        width = (area.width() - 2 * gap) / 3
        for place, name in enumerate(names):
            box = QRectF(area.left() + place * (width + gap), area.top(), width, area.height())
            self._paint_box(box, name, shape)

    def _paint_box(self, box: QRectF, name: str, shape: str) -> None:
        self.painter.setPen(QPen(self.style.accent, 1))
        self.painter.setBrush(self.style.soft)
        self.painter.drawRoundedRect(box, 5, 5)
        self.painter.setPen(self.style.ink)
        tall = box.height() > 40
        both = f"{name} {shape}"
        self.painter.setFont(sized(12))
        if not tall:
            fits = text_width(sized(11), both) <= box.width() - 6
            self.painter.setFont(sized(11))
            draw_text(self.painter, box.adjusted(2, 0, -2, 0), _CENTRE, both if fits else name)
            return
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
