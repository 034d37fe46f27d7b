"""A painter that remembers where every word was written, and what may not be so of a figure's words."""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QPolygonF


class WordPainter(QPainter):
    """Notes each word with the outline of its ink on the device."""

    def __init__(self, device):
        super().__init__(device)
        self.words = []

    def drawText(self, start, text):  # noqa: N802 (Qt's name)
        super().drawText(start, text)
        ink = QFontMetricsF(self.font()).tightBoundingRect(text).translated(start)
        self.words.append((text, self.worldTransform().map(QPolygonF(ink))))


def painted(drawing, margin=60):
    """``drawing`` on an image with a margin all around, and its words; (image, words, margin)."""
    width, height = drawing.size
    image = QImage(width + 2 * margin, height + 2 * margin, QImage.Format.Format_RGB32)
    image.fill(drawing.style.card)
    painter = WordPainter(image)
    painter.translate(margin, margin)
    steps = []
    drawing.paint(painter, steps.append)
    painter.end()
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    return image, painter.words, margin


def overlapping(words, least=1.0):
    """Pairs of words whose ink shares more than ``least`` square pixels."""
    found = []
    outlines = sorted(
        ((polygon.boundingRect(), polygon, text) for text, polygon in words), key=lambda one: one[0].left()
    )
    for n, (one, polygon, text) in enumerate(outlines):
        for other, beside, its in outlines[n + 1 :]:
            if other.left() >= one.right():
                break
            if one.intersects(other) and _area(polygon.intersected(beside)) > least:
                found.append((text, its))
    return found


def outside(words, size, margin):
    """Words that are not wholly on the sheet of ``size``."""
    sheet = QRectF(margin, margin, *size).adjusted(-0.5, -0.5, 0.5, 0.5)
    return [text for text, polygon in words if not sheet.contains(polygon.boundingRect())]


def over_maps(words, places, margin):
    """Words that lie partly on a map and partly beside it."""
    found = []
    for text, polygon in words:
        for place in places:
            shared = _area(polygon.intersected(QPolygonF(QRectF(*place).translated(margin, margin))))
            if 2.0 < shared < 0.98 * _area(polygon):
                found.append(text)
    return found


def _area(polygon):
    points = [polygon.at(n) for n in range(polygon.size())]
    return abs(sum(a.x() * b.y() - b.x() * a.y() for a, b in zip(points, points[1:] + points[:1], strict=True))) / 2
