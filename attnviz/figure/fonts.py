"""The program's own font, and text in which no character is ever an anonymous box.

A character that neither our font nor the system's can draw is shown as a thin box with its code point.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from importlib import resources

from PySide6.QtCore import QByteArray, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontDatabase, QFontMetricsF, QGuiApplication, QPainter, QPen

from attnviz.figure.vectors import write_text

FAMILY = "attnviz Sans"
_LOADED = "attnviz font family"
_ACCENTS = ("Mn", "Me")
_MOST_ACCENTS = 4  # no language writes more on one letter


def load_fonts() -> str:
    """Register the shipped font once per application and return its family's name. Needs a QGuiApplication."""
    application = QGuiApplication.instance()
    if application is None:
        raise RuntimeError("fonts belong to a QGuiApplication: make one first")
    family = application.property(_LOADED)
    if isinstance(family, str):
        return family
    folder = resources.files("attnviz.resources").joinpath("fonts")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith((".otf", ".ttf")):
            QFontDatabase.addApplicationFontFromData(QByteArray(entry.read_bytes()))
    application.setProperty(_LOADED, FAMILY)
    QBrush(QColor("#000000"))  # types that PySide makes when they are first met, and not in two threads at once
    return FAMILY


def sized(pixels: float) -> QFont:
    """Our font at a height of ``pixels``, the same glyph widths on every system."""
    font = QFont(FAMILY)
    font.setPixelSize(max(1, round(pixels)))
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def undrawable(font: QFont, text: str) -> tuple[str, ...]:
    """Characters of ``text`` that neither ``font`` nor the fonts behind it can draw, each once, in order."""
    family = font.family()
    return tuple(dict.fromkeys(char for char in text if not _drawable(family, char)))


def boxed(text: str) -> str:
    """Characters of ``text`` that our font draws as boxes, in order; "" before `load_fonts`."""
    if text.isascii() and text.isprintable():
        return ""
    application = QGuiApplication.instance()
    if application is None or application.property(_LOADED) is None:
        return ""
    return "".join(char for char in text if not _drawable(FAMILY, char))


def text_width(font: QFont, text: str) -> float:
    """Width in pixels of ``text`` as `draw_text` draws it, boxes included."""
    return _line_width(font, font.key(), text)


def elided(font: QFont, text: str, width: float) -> str:
    """``text``, or as much of its beginning as fits into ``width`` pixels with … behind it."""
    if text_width(font, text) <= width:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if text_width(font, text[:middle] + "…") <= width:
            fits = middle
        else:
            too_long = middle
    while fits and unicodedata.combining(text[fits]):
        fits -= 1  # an accent stays with its letter
    return text[:fits] + "…"


def whole_or_none(font: QFont, text: str, width: float) -> str:
    """``text`` where it fits into ``width`` pixels, else "": a name that is cut to a letter names nothing."""
    return text if text_width(font, text) <= width + 0.5 else ""


def draw_text(painter: QPainter, rect: QRectF, flags: Qt.AlignmentFlag, text: str) -> None:
    """Draw one line of ``text`` in ``rect`` with the painter's font and pen, cut with … where it is too long.

    Horizontal flags are Qt's; vertically the capitals are centred unless AlignTop or AlignBottom is given.
    """
    font = painter.font()
    key = font.key()  # asked once: it is a good part of what a line of text costs
    width = _line_width(font, key, text)
    if width > rect.width() + 0.5:
        text = elided(font, text, rect.width() + 0.5)
        width = _line_width(font, key, text)
    metrics = QFontMetricsF(font)
    pieces = _pieces(font, text)
    x = rect.left()
    if flags & Qt.AlignmentFlag.AlignRight:
        x = rect.right() - width
    elif flags & Qt.AlignmentFlag.AlignHCenter:
        x = rect.center().x() - width / 2
    if flags & Qt.AlignmentFlag.AlignTop:
        baseline = rect.top() + metrics.ascent()
    elif flags & Qt.AlignmentFlag.AlignBottom:
        baseline = rect.bottom() - metrics.descent()
    else:
        baseline = rect.center().y() + metrics.capHeight() / 2
    for piece, boxed in pieces:
        if boxed:
            _draw_box(painter, x, baseline, piece)
        else:
            write_text(painter, QPointF(x, baseline), piece)
        if len(pieces) > 1:
            x += _piece_width(font, key, piece, boxed=boxed)


@lru_cache(maxsize=8192)
def _drawable(family: str, char: str) -> bool:
    category = unicodedata.category(char)
    if category in ("Cc", "Cs"):  # a control character would be invisible
        return False
    if category in ("Cf", "Mn", "Zs"):  # joiners, selectors and accents have no shape of their own
        return True
    return QFontMetricsF(QFont(family)).inFontUcs4(ord(char))


@lru_cache(maxsize=8192)
def _cut(family: str, text: str) -> tuple[tuple[str, bool], ...]:
    """``text`` in runs: (characters to draw, False) or (one character for a box, True).

    Of accents on one letter only the first are drawn: a hundred would stand on everything above it.
    """
    pieces: list[tuple[str, bool]] = []
    run, accents = "", 0
    for char in text:
        category = unicodedata.category(char)
        accents = accents + 1 if category in _ACCENTS else accents if category == "Cf" else 0
        if accents > _MOST_ACCENTS:
            continue
        if _drawable(family, char):
            run += char
            continue
        pieces += [(run, False)] if run else []
        pieces.append((char, True))
        run = ""
    return (*pieces, (run, False)) if run else tuple(pieces)


def _pieces(font: QFont, text: str) -> tuple[tuple[str, bool], ...]:
    return _cut(font.family(), text)


def _box_font(font: QFont) -> QFont:
    small = QFont(font)
    small.setPixelSize(round(max(_pixels(font) * 0.5, min(7, _pixels(font) * 0.6))))
    return small


def _pixels(font: QFont) -> float:
    """The font's height in pixels, also where it was given in points."""
    return font.pixelSize() if font.pixelSize() > 0 else QFontMetricsF(font).height() / 1.45


_MOST_WIDTHS = 1 << 14
_widths: dict[tuple[str, str, bool], float] = {}
"""Widths by (font, piece, boxed): measuring is most of what drawing a line of text costs."""
_lines: dict[tuple[str, str], float] = {}
"""Widths of whole lines by (font, text)."""


def _line_width(font: QFont, key: str, text: str) -> float:
    width = _lines.get((key, text))
    if width is None:
        if len(_lines) > _MOST_WIDTHS:
            _lines.clear()
        width = sum(_piece_width(font, key, piece, boxed=boxed) for piece, boxed in _pieces(font, text))
        _lines[key, text] = width
    return width


def _piece_width(font: QFont, key: str, piece: str, *, boxed: bool) -> float:
    width = _widths.get((key, piece, boxed))
    if width is None:
        if len(_widths) > _MOST_WIDTHS:
            _widths.clear()
        width = _widths[key, piece, boxed] = _measured(font, piece, boxed=boxed)
    return width


def _measured(font: QFont, piece: str, *, boxed: bool) -> float:
    if not boxed:
        return QFontMetricsF(font).horizontalAdvance(piece)
    return QFontMetricsF(_box_font(font)).horizontalAdvance(f"{ord(piece):04X}") + _pixels(font) * 0.4


def _draw_box(painter: QPainter, x: float, baseline: float, char: str) -> None:
    """Draw a thin box with the code point in place of ``char``."""
    font, em = painter.font(), _pixels(painter.font())
    height = QFontMetricsF(font).capHeight()
    width = _piece_width(font, font.key(), char, boxed=True)
    frame = QRectF(x + em * 0.08, baseline - height - em * 0.08, width - em * 0.16, height + em * 0.16)
    painter.save()
    painter.setPen(QPen(painter.pen().color(), max(1.0, em / 20)))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(frame)
    painter.setFont(_box_font(font))
    small = QFontMetricsF(painter.font())
    code = f"{ord(char):04X}"
    left = frame.center().x() - small.horizontalAdvance(code) / 2
    write_text(painter, QPointF(left, frame.center().y() + small.capHeight() / 2), code)
    painter.restore()
