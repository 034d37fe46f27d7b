"""The shipped font, and text that stays legible where a character is in no font at all."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QGuiApplication, QPainter

FAMILY = "attnviz Sans"


def load_fonts() -> str:
    """Register the shipped font with Qt, once; returns its family. A QGuiApplication must stand."""
    if FAMILY not in QFontDatabase.families():
        folder = resources.files("attnviz.resources").joinpath("fonts")
        for entry in folder.iterdir():
            if entry.name.endswith((".otf", ".ttf")):
                QFontDatabase.addApplicationFontFromData(QByteArray(entry.read_bytes()))
    application = QGuiApplication.instance()
    if isinstance(application, QGuiApplication):
        font = QFont(FAMILY)
        font.setPointSizeF(10.5)
        application.setFont(font)
    return FAMILY


@lru_cache(maxsize=256)
def font(pixels: int, *, bold: bool = False) -> QFont:
    """The shipped font at ``pixels``; characters it lacks come from the system's."""
    made = QFont(FAMILY)
    made.setPixelSize(max(pixels, 1))
    made.setBold(bold)
    return made


@lru_cache(maxsize=4096)
def _pieces(text: str, pixels: int) -> tuple[tuple[str, bool], ...]:
    """``text`` cut into runs: (characters, True) if a font can draw them, (code points, False) for a box."""
    metrics = QFontMetricsF(font(pixels))
    runs: list[tuple[str, bool]] = []
    for character in text:
        if ord(character) in (0x200D, 0xFE0E, 0xFE0F) or character.isspace():
            drawable, shown = True, " " if character.isspace() else ""
        else:
            drawable = metrics.inFontUcs4(ord(character))
            shown = character if drawable else f"{ord(character):X}"
        if drawable and runs and runs[-1][1]:
            runs[-1] = (runs[-1][0] + shown, True)
        elif shown:
            runs.append((shown, drawable))
    return tuple(runs)


def legible(text: str) -> bool:
    """Whether some font can draw every character of ``text``."""
    return all(drawable for _, drawable in _pieces(text, 12))


def text_width(text: str, pixels: int) -> float:
    """Width of `draw_text`'s text in pixels."""
    metrics, small = QFontMetricsF(font(pixels)), QFontMetricsF(font(_box_pixels(pixels)))
    return sum(
        metrics.horizontalAdvance(run) if drawable else small.horizontalAdvance(run) + 6
        for run, drawable in _pieces(text, pixels)
    )


def elided(text: str, pixels: int, width: float) -> str:
    """``text``, shortened with … so that it is at most ``width`` pixels wide."""
    if text_width(text, pixels) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle] + "…", pixels) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low] + "…" if low else "…"


def draw_text(painter: QPainter, rect: QRectF, flags: Qt.AlignmentFlag, text: str, pixels: int) -> None:
    """Draw one line in ``rect`` with the painter's pen; a character in no font is a box with its code point."""
    text = elided(text, pixels, rect.width() + 0.5)
    runs = _pieces(text, pixels)
    if all(drawable for _, drawable in runs):
        painter.setFont(font(pixels))
        painter.drawText(
            rect, flags | Qt.TextFlag.TextSingleLine | Qt.TextFlag.TextDontClip, "".join(r for r, _ in runs)
        )
        return
    width, height = text_width(text, pixels), pixels * 1.25
    left = rect.left()
    if flags & Qt.AlignmentFlag.AlignRight:
        left = rect.right() - width
    elif flags & Qt.AlignmentFlag.AlignHCenter:
        left = rect.center().x() - width / 2
    line = QRectF(left, rect.center().y() - height / 2, width, height)
    small = _box_pixels(pixels)
    for run, drawable in runs:
        size = pixels if drawable else small
        advance = QFontMetricsF(font(size)).horizontalAdvance(run) + (0 if drawable else 6)
        place = QRectF(line.left(), line.top(), advance, line.height())
        painter.setFont(font(size))
        if not drawable:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(place.adjusted(1, 1, -1, -1))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip, run)
        line.setLeft(line.left() + advance)


def _box_pixels(pixels: int) -> int:
    return max(pixels * 6 // 10, 7)
