"""A small table of words and numbers, painted whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from attnviz.figure.fonts import draw_text, load_fonts, sized, text_width
from attnviz.figure.styles import Style

TYPE: Final = 13
LEAST_TYPE: Final = 10
GAP: Final = 12.0
_MOST_SPARE: Final = 26.0
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in a cell: its words, the role of its ink (ink, muted, leak, accent), and what is said on hover."""

    text: str
    role: str = "ink"
    tip: str = ""


Line = Sequence[Entry | str]


@dataclass(frozen=True, slots=True)
class Table:
    """A header above lines; the first column is words, the others numbers, set right.

    Column ``lit`` stands on a tinted ground. Columns are as wide as in ``others``, the same table in other pictures
    of an animation.
    """

    header: tuple[str, ...] = ()
    lines: tuple[tuple[Entry, ...], ...] = ()
    lit: int | None = None
    others: tuple[Table, ...] = ()

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words below the header."""
        return [tuple(cell.text for cell in line) for line in self.lines]


def table_of(header: Sequence[str], lines: Sequence[Line], *, lit: int | None = None) -> Table:
    """A table of ``lines``, each as long as ``header``."""
    made = tuple(tuple(Entry(cell) if isinstance(cell, str) else cell for cell in line) for line in lines)
    return Table(tuple(header), made, lit)


def rows_words(shown: int, total: int) -> str:
    """How many lines of a long table are there."""
    return QCoreApplication.translate("Table", "{n} of {total} rows").format(n=f"{shown:,}", total=f"{total:,}")


def natural_widths(table: Table, px: float) -> list[float]:
    """What each column needs at a type of ``px`` pixels, the gap to the next included."""
    gap, tables = GAP * px / TYPE, (table, *table.others)
    widths = []
    for n in range(len(table.header)):
        cells = [line[n] for one in tables for line in one.lines]
        font = _font(px, bold=any(cell.role == "leak" for cell in cells))  # wide enough in every style
        words = [*(one.header[n] for one in tables), *(cell.text for cell in cells)]
        widths.append(max(text_width(font, text) for text in words) + gap)
    return widths


def column_widths(table: Table, width: float, unit: float = 1.0) -> tuple[float, list[float]]:
    """The height of the type and each column's width in ``width`` pixels.

    The words of the first column give way where even small type has no room.
    """
    for size in range(TYPE, LEAST_TYPE - 1, -1):
        widths = natural_widths(table, size * unit)
        if sum(widths) <= width:
            break
    spare = width - sum(widths)
    if spare < 0:
        widths[0] = max(widths[0] + spare, 40.0 * unit)
    else:  # numbers stay near their words
        each = min(spare / max(len(widths), 1), _MOST_SPARE * unit)
        widths = [one + each for one in widths]
    return size * unit, widths


def paint_table(
    painter: QPainter, corner: QPointF, table: Table, style: Style, px: float, widths: Sequence[float], line: float
) -> None:  # fmt: skip
    """``table`` from its upper left ``corner``, in columns of ``widths`` and lines ``line`` high."""
    load_fonts()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    unit = px / TYPE
    left, top = corner.x(), corner.y()
    if table.lit is not None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(style.soft)
        x = left + sum(widths[: table.lit])
        painter.drawRoundedRect(
            QRectF(x + 2, top, widths[table.lit] + 2, line * (len(table.lines) + 1)), 6 * unit, 6 * unit
        )
    header = [Entry(text, "muted") for text in table.header]
    for place, entries in enumerate([header, *table.lines]):
        x, y = left, top + place * line
        for column, (cell, width) in enumerate(zip(entries, widths, strict=True)):
            painter.setFont(_font(px, bold=style.grey and cell.role == "leak"))
            painter.setPen(ink_of(cell.role, style))
            draw_text(painter, QRectF(x + 2, y, width - 4, line), _RIGHT if column else _LEFT, cell.text)
            x += width
    painter.setPen(QPen(style.hairline, max(1.0, unit)))
    painter.drawLine(QPointF(left, top + line), QPointF(left + sum(widths), top + line))
    painter.restore()


def ink_of(role: str, style: Style) -> QColor:
    """The ink of a role: what is good is as any other."""
    colour: QColor = getattr(style, role) if role in ("muted", "leak", "accent") else style.ink
    return colour


def _font(px: float, *, bold: bool) -> QFont:
    font = sized(px)
    font.setBold(bold)
    return font
