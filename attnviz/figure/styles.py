"""The colours of a picture: light, dark, for print, and on nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from PySide6.QtGui import QColor

from attnviz.colour import GROUNDS
from attnviz.frames import CellClass
from attnviz.spec import Theme


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of a theme. ``masked`` and ``padded`` are grounds; what lies on the fixed grounds is ``on_ground``.

    With ``grey`` all is told apart without colours too: a leak is cased or hatched, curves have shapes.
    """

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
    grey: bool = False

    @property
    def clear(self) -> bool:
        """Whether there is no ground: nothing may be painted in its colour, and gaps are left out instead."""
        return self.card.alpha() == 0

    @property
    def unmarked(self) -> QColor:
        """The ground of masked cells that are too small for hatching: a light one is in grey as a weight of 1."""
        return QColor("#a9aab2") if self.grey else self.masked

    @property
    def soft(self) -> QColor:
        """A tint of the accent, a ground for what is pointed out."""
        if self.clear:
            return _faint(self.accent, 0.13)
        return mixed(self.card, self.accent, 0.13)


def _faint(colour: QColor, share: float) -> QColor:
    return QColor(colour.red(), colour.green(), colour.blue(), round(255 * share))


def mixed(one: QColor, other: QColor, share: float) -> QColor:
    """``one`` with a ``share`` of ``other``, 0 to 1, in it; opaque."""
    pairs = zip((one.red(), one.green(), one.blue()), (other.red(), other.green(), other.blue()), strict=True)
    return QColor(*(round(a + (b - a) * share) for a, b in pairs))


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
PRINT: Final = replace(
    LIGHT, ground=QColor("#ffffff"), hairline=QColor("#a9abb3"), ink=QColor("#000000"), muted=QColor("#3d3f47"),
    accent=QColor("#5f7be6"), leak=QColor("#8f0d0a"), hatch=QColor("#5a5c66"), on_ground=QColor("#000000"), grey=True,
)  # fmt: skip
"""White paper, black ink. A leak is darker than the accent, so that the two differ in grey too."""

TRANSPARENT: Final = replace(
    LIGHT, card=QColor(255, 255, 255, 0), ground=QColor(255, 255, 255, 0), hairline=_faint(LIGHT.ink, 0.2),
    muted=QColor("#484a56"), accent=QColor("#2c4ac4"), leak=QColor("#c22722"),
)  # fmt: skip
"""Dark ink on whatever light or middling ground lies behind: there is none of its own, and lines are a shade of it."""

_THEMES: Final[Mapping[Theme, Style]] = MappingProxyType(
    {"light": LIGHT, "dark": DARK, "print": PRINT, "transparent": TRANSPARENT}
)


def style_of_theme(theme: Theme) -> Style:
    """The colours of a paper's theme."""
    return _THEMES[theme]
