"""The module as a row of boxes: an operation each, its result as a thumbnail, its shape; a click shows the stage."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from attnviz.figure.fonts import draw_text, sized, text_width
from attnviz.frames import Frame
from attnviz.session import Snapshot
from attnviz.spec import View, is_typed, stages_of
from attnviz.views import theme

_OPERATIONS = {
    "inputs": (QT_TRANSLATE_NOOP("Strip", "inputs"), "X"),
    "queries": (QT_TRANSLATE_NOOP("Strip", "ask"), "Q = X·Wq"),
    "keys": (QT_TRANSLATE_NOOP("Strip", "offer"), "K = X·Wk"),
    "values": (QT_TRANSLATE_NOOP("Strip", "carry"), "V = X·Wv"),
    "scores": (QT_TRANSLATE_NOOP("Strip", "compare"), "Q·Kᵀ"),
    "scaled_scores": (QT_TRANSLATE_NOOP("Strip", "scale"), "÷ √d"),
    "masked_scores": (QT_TRANSLATE_NOOP("Strip", "hide the future"), "−∞"),
    "unmasked_weights": (QT_TRANSLATE_NOOP("Strip", "share out"), "softmax"),
    "unnormalised_weights": (QT_TRANSLATE_NOOP("Strip", "hide the future"), "× triangle"),
    "row_sums": (QT_TRANSLATE_NOOP("Strip", "add up"), "Σ"),
    "weights": (QT_TRANSLATE_NOOP("Strip", "share out"), "softmax"),
    "dropped_weights": (QT_TRANSLATE_NOOP("Strip", "drop"), "dropout"),
    "context": (QT_TRANSLATE_NOOP("Strip", "mix"), "·V"),
    "dropped_context": (QT_TRANSLATE_NOOP("Strip", "drop"), "dropout"),
    "joined": (QT_TRANSLATE_NOOP("Strip", "join"), "concat"),
    "output": (QT_TRANSLATE_NOOP("Strip", "project"), "·Wo"),
}
_MASK_STAGES = frozenset({"masked_scores", "unmasked_weights", "unnormalised_weights", "row_sums"})
_THUMBNAIL = 30
_LEVELS = ("all", "shape", "words", "picture")
"""What a box holds beside its thumbnail: words, formula and shape; words and shape; words; nothing."""


def _width(level: str, words: str, formula: str, shape: str) -> float:
    """Pixels of a box that holds this much."""
    title, small = text_width(sized(14), words), sized(11)
    held = {
        "all": max(title, text_width(small, f"{formula}  {shape}")),
        "shape": max(title, text_width(small, shape)),
        "words": title,
    }
    return _THUMBNAIL + 24 + held[level] if level in held else _THUMBNAIL + 16


@dataclass(frozen=True, slots=True)
class _Box:
    stage: str
    words: str
    second: str
    rect: QRectF


class PipelineStrip(QWidget):
    """Words and shapes while they fit, thumbnails alone when they do not."""

    view_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = View()
        self._stages: tuple[tuple[str, str], ...] = ()
        self._mask = "none"
        self._typed_stage = ""
        self._thumbnails: dict[str, Frame] = {}
        self._boxes: list[_Box] = []
        self.setFixedHeight(58)
        self.setAccessibleName(self.tr("stages"))

    def sizeHint(self) -> QSize:
        return QSize(800, 58)

    def present(self, snapshot: Snapshot) -> None:
        picture = snapshot.shown
        before = self._view, self._stages, self._mask, self._thumbnails
        self._view = snapshot.view
        self._mask = snapshot.spec.mask
        self._typed_stage = stages_of(snapshot.spec)[0] if is_typed(snapshot.spec.source) else ""
        shapes = {s.name: s.shape for s in picture.outline.stages} if picture and picture.outline else {}
        self._stages = tuple(
            (name, f"({', '.join(map(str, shapes[name]))})" if name in shapes else "")
            for name in stages_of(snapshot.spec)
        )
        frames = picture.frames if picture else {}
        self._thumbnails = {
            name: frames[f"thumbnail:{name}"] for name, _ in self._stages if f"thumbnail:{name}" in frames
        }
        if before != (self._view, self._stages, self._mask, self._thumbnails):
            self.update()

    def _words(self, stage: str) -> tuple[str, str]:
        words, formula = _OPERATIONS[stage]
        if stage == self._typed_stage:
            return self.tr("scaled scores") if stage == "scaled_scores" else self.tr("weights"), self.tr("by hand")
        if stage == "weights" and self._mask == "three-step":
            return self.tr("share out again"), "÷ Σ"
        return QCoreApplication.translate("Strip", str(words)), formula

    def _place(self) -> None:
        """Lay the boxes out with as much in each as the width allows; see `_LEVELS`."""
        lines = [(*self._words(stage), shape) for stage, shape in self._stages]
        gap = 16.0
        widths: list[float] = []
        for level in _LEVELS:
            widths = [_width(level, *line) for line in lines]
            if sum(widths) + gap * (len(widths) - 1) <= self.width() - 1:
                break
        else:
            widths = [min(width, (self.width() - gap * (len(lines) - 1) - 1) / len(lines)) for width in widths]
        worded = {stage for stage, _ in self._stages} if level != "picture" else set()
        for place, (stage, _) in enumerate(self._stages):
            if stage == self._view.stage and not worded:  # the stage that is shown keeps its words if they have room
                wide = _width("words", *lines[place])
                if sum(widths) - widths[place] + wide + gap * (len(widths) - 1) <= self.width() - 1:
                    widths[place] = wide
                    worded = {stage}
        x = 0.5
        self._boxes = []
        for (stage, _), (words, formula, shape), width in zip(self._stages, lines, widths, strict=True):
            second = {"all": f"{formula}  {shape}", "shape": shape}.get(level, "")
            self._boxes.append(_Box(stage, words if stage in worded else "", second, QRectF(x, 2.5, width, 52)))
            x += width + gap

    def paintEvent(self, _event: QPaintEvent) -> None:
        self._place()
        c = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = Qt.AlignmentFlag.AlignLeft
        for index, box in enumerate(self._boxes):
            here = box.stage == self._view.stage
            tinted = box.stage in _MASK_STAGES or (box.stage == "weights" and self._mask == "three-step")
            painter.setPen(QPen(QColor(c.accent if here or tinted else c.hairline), 1))
            painter.setBrush(QColor(c.accent if here else c.accent_soft if tinted else c.card))
            painter.drawRoundedRect(box.rect, 8, 8)
            ink = QColor(c.on_accent if here else c.ink)
            second = QColor(c.on_accent if here else c.muted)
            painter.setPen(ink)
            self._paint_thumbnail(painter, box, self._thumbnails.get(box.stage))
            text = box.rect.adjusted(_THUMBNAIL + 14, 0, -6, 0)
            painter.setPen(ink)
            painter.setFont(sized(14))
            if box.second:
                draw_text(painter, QRectF(text.left(), text.top() + 5, text.width(), 22), left, box.words)
                painter.setPen(second)
                painter.setFont(sized(11))
                draw_text(painter, QRectF(text.left(), text.top() + 27, text.width(), 18), left, box.second)
            elif box.words:
                draw_text(painter, text, left, box.words)
            if index:
                x, y = box.rect.left() - 8, box.rect.center().y()
                painter.setPen(QPen(QColor(c.muted), 1.4))
                painter.drawPolyline(
                    [QPoint(int(x - 2), int(y - 4)), QPoint(int(x + 2), int(y)), QPoint(int(x - 2), int(y + 4))]
                )
        painter.end()

    def _paint_thumbnail(self, painter: QPainter, box: _Box, frame: Frame | None) -> None:
        side = _THUMBNAIL if box.words else min(box.rect.width() - 8, 40)
        left = box.rect.left() + (8 if box.words else (box.rect.width() - side) / 2)
        place = QRectF(left, box.rect.center().y() - side / 2, side, side)
        if frame is None:
            return
        height, width = frame.rgb.shape
        if width != height:
            short = max(side * min(width, height) / max(width, height), 6)
            wide = width > height
            place = QRectF(
                place.left() if wide else place.center().x() - short / 2,
                place.center().y() - short / 2 if wide else place.top(),
                side if wide else short,
                short if wide else side,
            )  # fmt: skip
        image = QImage(frame.rgb.tobytes(), width, height, width * 4, QImage.Format.Format_RGB32)
        painter.drawImage(place, image)

    def _box_at(self, point: QPoint) -> _Box | None:
        return next((box for box in self._boxes if box.rect.contains(point.toPointF())), None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        box = self._box_at(event.position().toPoint())
        if box is not None:
            self.view_edited.emit(msgspec.structs.replace(self._view, stage=box.stage))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            box = self._box_at(event.pos())
            if box is None:
                QToolTip.hideText()
            else:
                words, formula = self._words(box.stage)
                shape = dict(self._stages)[box.stage]
                number = [name for name, _ in self._stages].index(box.stage) + 1
                key = f" ({number})" if number < 10 else ""
                QToolTip.showText(event.globalPos(), f"{words}: {formula} → {box.stage} {shape}{key}", self)
            return True
        return super().event(event)
