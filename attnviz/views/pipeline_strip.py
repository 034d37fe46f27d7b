"""The module as a row of boxes: an operation each, its result as a thumbnail, its shape; a click shows the stage."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from attnviz.figure.cells import Style, with_grounds
from attnviz.figure.fonts import draw_text, sized, text_width
from attnviz.frames import Frame
from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, View, stages_of
from attnviz.views import theme
from attnviz.views.operations import is_of_mask, operation
from attnviz.views.plot import style_of
from attnviz.views.story import is_last_good

_HEIGHT, _LOW = 58, 42
_LEFT, _CENTRE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter


@dataclass(frozen=True, slots=True)
class _Level:
    """What a box holds: the side of its thumbnail, the height of its words (0: none), what stands below them.

    ``wraps`` lets words take two lines; ``above`` puts the thumbnail over them instead of beside them.
    """

    thumbnail: float
    words: int
    second: str = ""
    wraps: bool = False
    above: bool = False
    gap: float = 16.0
    margin: float = 8.0


_LEVELS = (
    _Level(30, 14, "formula and shape"),
    _Level(30, 14, "shape"),
    _Level(24, 14, gap=14),
    _Level(22, 13, wraps=True, gap=14, margin=7),
    _Level(17, 12, wraps=True, above=True, gap=12, margin=6),
    _Level(17, 11, wraps=True, above=True, gap=9, margin=3),
)
"""From the roomiest on: formulas go first, then shapes; thumbnails shrink, and the words stay to the last."""
_BARE = _Level(24, 0, above=True, gap=8, margin=3)
_LOW_LEVELS = (
    _Level(24, 14, "formula and shape"),
    _Level(24, 14, "shape"),
    _Level(22, 14, gap=14),
    _Level(20, 13, wraps=True, gap=14, margin=6),
    _Level(0, 13, wraps=True, above=True, gap=12, margin=6),
    _Level(0, 12, wraps=True, above=True, gap=9, margin=3),
)
"""The same where the strip is low: words that stand on two lines leave no room for a thumbnail above them."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The words of one box: what is done, by which formula, to give which shape."""

    stage: str
    words: str
    formula: str
    shape: str

    def below(self, level: _Level) -> str:
        if level.second == "shape":
            return self.shape
        return f"{self.formula}  {self.shape}".strip() if level.second else ""


@dataclass(frozen=True, slots=True)
class _Box:
    stage: str
    lines: tuple[str, ...]
    second: str
    rect: QRectF


class PipelineStrip(QWidget):
    """Words and shapes while they fit; where they do not, words on two lines and small thumbnails, and tips at last.

    Where a box lies depends on the spec and the width alone, never on which stage is shown.
    """

    view_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = View()
        self._stage = ""
        self._spec: AttentionSpec | None = None
        self._held = False
        self._shapes: dict[str, str] = {}
        self._thumbnails: dict[str, Frame] = {}
        self._boxes: list[_Box] = []
        self._level = _LEVELS[0]
        self.set_low(False)
        self.setAccessibleName(self.tr("stages"))

    def sizeHint(self) -> QSize:
        return QSize(800, self.height())

    def present(self, snapshot: Snapshot) -> None:
        """The stages of what was asked for; those of the state before, greyed, while that is shown.

        What was asked for and did not come has no thumbnails and no shapes.
        """
        picture = None if is_last_good(snapshot) and not snapshot.show_before else snapshot.shown
        before = self._view, self._stage, self._spec, self._held, self._shapes, self._thumbnails
        self._view = snapshot.view
        self._held = snapshot.show_before and picture is not None and picture is snapshot.before
        self._spec = picture.spec if self._held and picture is not None else snapshot.spec
        self._stage = picture.view.stage if self._held and picture is not None else snapshot.view.stage
        outline = picture.outline if picture is not None else None
        names = stages_of(self._spec)
        known = {s.name: s.shape for s in outline.stages} if outline is not None else {}
        self._shapes = {name: f"({', '.join(map(str, known[name]))})" for name in names if name in known}
        frames = picture.frames if picture is not None else {}
        self._thumbnails = {name: frames[f"thumbnail:{name}"] for name in names if f"thumbnail:{name}" in frames}
        if before != (self._view, self._stage, self._spec, self._held, self._shapes, self._thumbnails):
            self.update()

    # ------------------------------------------------------------------------------------------------------ layout

    def set_low(self, low: bool) -> None:
        """Whether the window is low, and the strip with it."""
        self._levels = _LOW_LEVELS if low else _LEVELS
        self.setFixedHeight(_LOW if low else _HEIGHT)

    def _lines(self) -> list[_Line]:
        spec = self._spec
        if spec is None:
            return []
        return [_Line(stage, *operation(spec, stage), self._shapes.get(stage, "")) for stage in stages_of(spec)]

    def _place(self) -> None:
        """Lay the boxes out with as much in each as the width allows; see `_LEVELS`."""
        lines, room = self._lines(), self.width() - 1.0
        self._boxes = []
        if not lines:
            return
        for level in self._levels:
            widths = [_width(level, line) for line in lines]
            if sum(widths) + level.gap * (len(lines) - 1) <= room:
                break
        else:
            level = _BARE
            widths = [max((room - level.gap * (len(lines) - 1)) / len(lines), 1.0)] * len(lines)
        self._level = level
        x = 0.5
        for line, width in zip(lines, widths, strict=True):
            words = _wrapped(line.words, level)
            self._boxes.append(_Box(line.stage, words, line.below(level), QRectF(x, 2.5, width, self.height() - 6)))
            x += width + level.gap

    # ---------------------------------------------------------------------------------------------------- painting

    def set_looked_at(self, looked_at: bool) -> None:
        """Light the strip's edge, as the step of a lesson asks."""
        if looked_at != self._looked_at:
            self._looked_at = looked_at
            self.update()

    _looked_at = False

    def paintEvent(self, _event: QPaintEvent) -> None:
        self._place()
        c, style = theme.current(), style_of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._held:
            painter.setOpacity(0.6)
        for index, box in enumerate(self._boxes):
            here = box.stage == self._stage
            tinted = self._spec is not None and is_of_mask(self._spec, box.stage)
            painter.setPen(QPen(QColor(c.accent if here or tinted else c.hairline), 1))
            painter.setBrush(QColor(c.accent if here else c.accent_soft if tinted else c.card))
            painter.drawRoundedRect(box.rect, 8, 8)
            self._paint_words(painter, box, QColor(c.on_accent if here else c.ink),
                              QColor(c.on_accent if here else c.muted))  # fmt: skip
            frame = self._thumbnails.get(box.stage)
            if frame is not None and self._level.thumbnail:
                _paint_thumbnail(painter, self._thumbnail_rect(box), frame, style)
            if index:
                x, y, tip = box.rect.left() - self._level.gap / 2, box.rect.center().y(), min(self._level.gap / 4, 4.0)
                painter.setPen(QPen(QColor(c.muted), 1.4))
                painter.drawPolyline(
                    [QPointF(x - tip / 2, y - tip), QPointF(x + tip / 2, y), QPointF(x - tip / 2, y + tip)]
                )
        if self._looked_at:
            painter.setOpacity(1.0)
            painter.setPen(QPen(QColor(c.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 10, 10)
        painter.end()

    def _paint_words(self, painter: QPainter, box: _Box, ink: QColor, quiet: QColor) -> None:
        level, rect = self._level, box.rect
        if not level.words:
            return
        painter.setPen(ink)
        painter.setFont(sized(level.words))
        height = level.words + 2.0
        if level.above:
            high = 2 * height if level.thumbnail else rect.height() - 4
            text = QRectF(rect.left() + 1, rect.bottom() - 2 - high, rect.width() - 2, high)
        else:
            text = rect.adjusted(level.margin + level.thumbnail + 6, 0, -2, 0)
        if box.second:
            top = text.center().y() - 21  # of two lines, 22 and 18 pixels high
            draw_text(painter, QRectF(text.left(), top, text.width(), 22), _LEFT, box.lines[0])
            painter.setPen(quiet)
            painter.setFont(sized(11))
            draw_text(painter, QRectF(text.left(), top + 22, text.width(), 18), _LEFT, box.second)
            return
        top = text.center().y() - height * len(box.lines) / 2
        for place, words in enumerate(box.lines):
            line = QRectF(text.left(), top + place * height, text.width(), height)
            draw_text(painter, line, _CENTRE if level.above else _LEFT, words)

    def _thumbnail_rect(self, box: _Box) -> QRectF:
        level, rect = self._level, box.rect
        if not level.above:
            side = level.thumbnail
            return QRectF(rect.left() + level.margin, rect.center().y() - side / 2, side, side)
        side = min(level.thumbnail, rect.width() - 4)
        top = rect.top() + 4 if level.words else rect.center().y() - side / 2
        return QRectF(rect.center().x() - side / 2, top, side, side)

    # ------------------------------------------------------------------------------------------------------- mouse

    def _box_at(self, point: QPoint) -> _Box | None:
        return next((box for box in self._boxes if box.rect.contains(point.toPointF())), None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        box = self._box_at(event.position().toPoint())
        if box is not None and not self._held:
            self.view_edited.emit(msgspec.structs.replace(self._view, stage=box.stage))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            box = self._box_at(event.pos())
            if box is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self._tip(box.stage), self)
            return True
        return super().event(event)

    def _tip(self, stage: str) -> str:
        lines = self._lines()
        number = [line.stage for line in lines].index(stage)
        line = lines[number]
        formula = f": {line.formula}" if line.formula else ""
        parts = [f"{line.words}{formula} → {stage}"]
        if line.shape:
            parts.append(self.tr("shape {0}").format(line.shape))
        if number < 9:
            parts.append(self.tr("key {0}").format(number + 1))
        return " · ".join(parts)


def _wrapped(words: str, level: _Level) -> tuple[str, ...]:
    """Words on one line, or on two of about the same length."""
    if not level.words:
        return ()
    parts = words.split(" ")
    if not level.wraps or len(parts) == 1:
        return (words,)
    font = sized(level.words)
    cuts = [(" ".join(parts[:n]), " ".join(parts[n:])) for n in range(1, len(parts))]
    return min(cuts, key=lambda cut: max(text_width(font, line) for line in cut))


def _width(level: _Level, line: _Line) -> float:
    """Pixels of a box that holds this much."""
    words = max(text_width(sized(level.words), part) for part in _wrapped(line.words, level))
    if level.above:
        return max(words, level.thumbnail) + 2 * level.margin
    below = line.below(level)
    held = max(words, text_width(sized(11), below) if below else 0.0)
    return level.margin + level.thumbnail + 6 + held + level.margin


def _paint_thumbnail(painter: QPainter, place: QRectF, frame: Frame, style: Style) -> None:
    side = place.width()
    height, width = frame.rgb.shape
    if width != height:
        short = max(side * min(width, height) / max(width, height), 6)
        size = QSize(round(side), round(short)) if width > height else QSize(round(short), round(side))
        centre = place.center()
        place = QRectF(centre.x() - size.width() / 2, centre.y() - size.height() / 2, size.width(), size.height())
    image = QImage(with_grounds(frame.rgb, style).tobytes(), width, height, width * 4, QImage.Format.Format_RGB32)
    painter.drawImage(place, image)
