"""The two forms of a module, drawn as they are: small matrices head by head, or large ones and a cut."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.spec import AttentionSpec, Implementation
from attnviz.views import theme

_TOP, _MOST_ROWS, _ROW = 36.0, 4, 34.0
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


class FormDiagram(QWidget):
    """One form: X on the left, its matrices, and what comes out."""

    def __init__(self, form: Implementation, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = form
        self._sizes: Sizes | None = None
        self._lit = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(round(_TOP + 2 * _ROW + 40))
        self.setMinimumWidth(200)

    def sizeHint(self) -> QSize:
        return QSize(280, self.height())

    def show_sizes(self, sizes: Sizes | None, *, lit: bool) -> None:
        """Draw these sizes; ``lit`` says that this is the window's own form."""
        if (sizes, lit) != (self._sizes, self._lit):
            self._sizes, self._lit = sizes, lit
            rows = 2 if sizes is None else max(min(sizes.heads, _MOST_ROWS), 2)
            self.setFixedHeight(round(_TOP + rows * _ROW + 40))
            self.setAccessibleName("" if sizes is None else f"{self._name()}: {products_words(self.form, sizes)}")
            self.update()

    def _name(self) -> str:
        if self.form == "stacked":
            return QCoreApplication.translate("Forms", "stacked")
        return QCoreApplication.translate("Forms", "split")

    def paintEvent(self, _event: QPaintEvent) -> None:
        load_fonts()
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours.accent if self._lit else colours.hairline), 2.0 if self._lit else 1.0))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        sizes = self._sizes
        if sizes is not None:
            painter.setFont(sized(14))
            painter.setPen(QColor(colours.ink))
            title = f"{self._name()}: {products_words(self.form, sizes)}"
            draw_text(painter, QRectF(12, 6, self.width() - 24, 26), _LEFT, title)
            if self.form == "stacked":
                self._paint_stacked(painter, sizes, colours)
            else:
                self._paint_split(painter, sizes, colours)
        painter.end()

    # ---------------------------------------------------------------------------------------------------------- parts

    def _paint_stacked(self, painter: QPainter, sizes: Sizes, colours: theme.Colours) -> None:
        shown = sizes.heads if sizes.heads <= _MOST_ROWS else _MOST_ROWS - 1
        rows = min(sizes.heads, _MOST_ROWS)
        height = rows * _ROW
        self._paint_input(painter, sizes, height, colours)
        out = f"({sizes.length:,}, {sizes.d_head})"
        left, right = self._between(out)
        for head in range(shown):
            y = _TOP + head * _ROW
            own = head % max(sizes.heads // sizes.kv_heads, 1) == 0
            self._paint_arrow(painter, left - 20, left - 6, y + _ROW / 2, colours)
            self._paint_boxes(painter, QRectF(left, y + 4, right - left, _ROW - 8), ("Wq", "Wk", "Wv") if own else (
                "Wq",), f"{sizes.d_model}×{sizes.d_head}", colours)  # fmt: skip
            self._paint_words(painter, QRectF(right + 6, y, self.width() - right - 10, _ROW), out, colours)
        if shown < sizes.heads:
            words = QCoreApplication.translate("Forms", "… {n} heads in all").format(n=sizes.heads)
            self._paint_words(painter, QRectF(left, _TOP + shown * _ROW, right - left, _ROW), words, colours)
        joined = QCoreApplication.translate("Forms", "side by side: {shape}").format(
            shape=f"({sizes.length:,}, {sizes.d_out})"
        )
        self._paint_result(painter, joined, colours)

    def _paint_split(self, painter: QPainter, sizes: Sizes, colours: theme.Colours) -> None:
        height = min(sizes.heads, _MOST_ROWS) * _ROW
        height = max(height, 2 * _ROW)
        self._paint_input(painter, sizes, height, colours)
        out = f"({sizes.length:,}, {sizes.d_out})"
        left, right = self._between(out)
        self._paint_arrow(painter, left - 20, left - 6, _TOP + height / 2, colours)
        own = sizes.kv_heads * sizes.d_head
        widths = (sizes.d_out, own, own)
        slices = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
        gap = 6.0
        width = (right - left - 2 * gap) / 3
        for place, (name, wide, parts) in enumerate(zip(("Wq", "Wk", "Wv"), widths, slices, strict=True)):
            box = QRectF(left + place * (width + gap), _TOP + 2, width, height - 4)
            self._paint_box(painter, box, name, f"{sizes.d_model}×{wide}", colours)
            if parts <= 12:
                pen = QPen(QColor(colours.accent), 1.2)
                pen.setDashPattern([3, 3])
                painter.setPen(pen)
                for at in range(1, parts):
                    x = box.left() + box.width() * at / parts
                    painter.drawLine(QPointF(x, box.top()), QPointF(x, box.top() + 10))
                    painter.drawLine(QPointF(x, box.bottom() - 10), QPointF(x, box.bottom()))
        self._paint_words(painter, QRectF(right + 6, _TOP, self.width() - right - 10, height), out, colours)
        cut = QCoreApplication.translate("Forms", "cut into heads: {shape}").format(
            shape=f"({sizes.heads}, {sizes.length:,}, {sizes.d_head})"
        )
        self._paint_result(painter, cut, colours)

    def _between(self, out: str) -> tuple[float, float]:
        """Where the matrices begin and end."""
        return 86.0, self.width() - text_width(sized(12), out) - 20

    def _paint_input(self, painter: QPainter, sizes: Sizes, height: float, colours: theme.Colours) -> None:
        shape = f"({sizes.length:,}, {sizes.d_model})"
        box = QRectF(12, _TOP + 2, 52, height - 4)
        painter.setPen(QPen(QColor(colours.hairline), 1))
        painter.setBrush(QColor(colours.field))
        painter.drawRoundedRect(box, 5, 5)
        painter.setPen(QColor(colours.ink))
        painter.setFont(sized(14))
        middle = box.center().y()
        draw_text(painter, QRectF(box.left(), middle - 18, box.width(), 18), _CENTRE, "X")
        painter.setPen(QColor(colours.muted))
        painter.setFont(sized(11))
        draw_text(painter, QRectF(box.left(), middle, box.width(), 16), _CENTRE, shape)

    def _paint_boxes(
        self, painter: QPainter, area: QRectF, names: tuple[str, ...], shape: str, colours: theme.Colours
    ) -> None:
        gap = 6.0
        width = (area.width() - 2 * gap) / 3
        for place, name in enumerate(names):
            box = QRectF(area.left() + place * (width + gap), area.top(), width, area.height())
            self._paint_box(painter, box, name, shape, colours)

    @staticmethod
    def _paint_box(painter: QPainter, box: QRectF, name: str, shape: str, colours: theme.Colours) -> None:
        painter.setPen(QPen(QColor(colours.accent), 1))
        painter.setBrush(QColor(colours.accent_soft))
        painter.drawRoundedRect(box, 5, 5)
        painter.setPen(QColor(colours.ink))
        tall = box.height() > 40
        both = f"{name} {shape}"
        painter.setFont(sized(12))
        if not tall:
            fits = text_width(sized(11), both) <= box.width() - 6
            painter.setFont(sized(11))
            draw_text(painter, box.adjusted(2, 0, -2, 0), _CENTRE, both if fits else name)
            return
        rows, _, cols = shape.partition("×")
        one_line = text_width(sized(11), shape) <= box.width() - 4
        lines = [shape] if one_line else [rows, f"× {cols}"]
        y = box.center().y() - 8.5 * (1 + len(lines))
        draw_text(painter, QRectF(box.left(), y, box.width(), 17), _CENTRE, name)
        painter.setFont(sized(11))
        for place, line in enumerate(lines, 1):
            draw_text(painter, QRectF(box.left(), y + 17 * place, box.width(), 17), _CENTRE, line)

    @staticmethod
    def _paint_arrow(painter: QPainter, left: float, right: float, y: float, colours: theme.Colours) -> None:
        painter.setPen(QPen(QColor(colours.muted), 1.4))
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        painter.drawPolyline([QPointF(right - 4, y - 4), QPointF(right, y), QPointF(right - 4, y + 4)])

    @staticmethod
    def _paint_words(painter: QPainter, area: QRectF, words: str, colours: theme.Colours) -> None:
        painter.setPen(QColor(colours.muted))
        painter.setFont(sized(12))
        draw_text(painter, area, _LEFT, words)

    def _paint_result(self, painter: QPainter, words: str, colours: theme.Colours) -> None:
        painter.setPen(QColor(colours.ink))
        painter.setFont(sized(13))
        draw_text(painter, QRectF(12, self.height() - 32.0, self.width() - 24, 24), _LEFT, words)
