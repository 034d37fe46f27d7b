"""The colours of a picture, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtGui import QColor

from attnviz.colour import GROUNDS
from attnviz.frames import CellClass


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of a theme. ``masked`` and ``padded`` are grounds; what lies on the fixed grounds is ``on_ground``."""

    ground: QColor
    card: QColor
    hairline: QColor
    ink: QColor
    muted: QColor
    accent: QColor
    leak: QColor
    masked: QColor
    padded: QColor
    hatch: QColor
    on_ground: QColor


LIGHT: Final = Style(
    ground=QColor("#f6f6f4"), card=QColor("#ffffff"), hairline=QColor("#dcdde0"), ink=QColor("#1c1d22"),
    muted=QColor("#6b6e7b"), accent=QColor("#3556d8"), leak=QColor("#d6302b"),
    masked=QColor.fromRgb(GROUNDS[CellClass.MASKED]), padded=QColor.fromRgb(GROUNDS[CellClass.PADDED]),
    hatch=QColor("#7d7f89"), on_ground=QColor("#1c1d22"),
)  # fmt: skip
DARK: Final = Style(
    ground=QColor("#16171b"), card=QColor("#1f2128"), hairline=QColor("#33363f"), ink=QColor("#ececf1"),
    muted=QColor("#9a9daa"), accent=QColor("#6c8aff"), leak=QColor("#ff6a62"),
    masked=QColor("#313541"), padded=QColor("#4a4e5b"), hatch=QColor("#9094a2"), on_ground=QColor("#1c1d22"),
)  # fmt: skip
