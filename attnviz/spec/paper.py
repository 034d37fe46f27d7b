"""How a figure is put on paper: its size, its colours, and the words that stand around it."""

from __future__ import annotations

import math
import re
from typing import Final, Literal, get_args

import msgspec

from attnviz.spec.checks import SpecError

Theme = Literal["light", "dark", "transparent", "print"]

THEMES: Final = get_args(Theme)
MIN_SIDE: Final = 16
MAX_SIDE: Final = 32_767  # QPainter's coordinates on an image
MAX_PIXELS: Final = 400_000_000
CM_PER_INCH: Final = 2.54
_SIZE: Final = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*x\s*(\d+(?:\.\d+)?)\s*(cm|mm|in|px)?\s*(?:@\s*(\d+(?:\.\d+)?)\s*(?:dpi)?)?\s*"
)
_INCHES: Final = {"cm": 1 / CM_PER_INCH, "mm": 0.1 / CM_PER_INCH, "in": 1.0}
_USUAL_DPI: Final = 300.0
_NO_SIZE: Final = "give WIDTHxHEIGHT in pixels, such as 1920x1080, or on paper, such as 8.5x6cm@300dpi"


class Paper(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sheet of a figure.

    ``width`` and ``height`` in pixels. ``dpi`` is None for a screen, where type grows with the sheet; on paper so many
    pixels are an inch, and type is as large as in a book. ``title`` None is what the figure shows, "" none.
    ``caption`` is the settings that matter, ``legend`` the looks of cells that are no numbers. ``numbers`` in cells
    that are large enough, with ``decimals`` (None: as many as fit).
    ``bound`` is the number at which the colours of maps end (None: what the window's norm says), so that pictures that
    are shown one after the other can be compared. ``type_scale`` makes all type larger or smaller.
    ``real_text`` keeps text in an SVG as text, which then needs a font; else it is outlines.
    """

    width: int = 1920
    height: int = 1080
    dpi: float | None = None
    theme: Theme = "light"
    title: str | None = None
    caption: bool = True
    legend: bool = True
    colour_bar: bool = True
    labels: bool = True
    numbers: bool = True
    decimals: int | None = None
    bound: float | None = None
    type_scale: float = 1.0
    real_text: bool = False

    def __post_init__(self) -> None:
        check_size(self.size)
        if self.dpi is not None and not 1 <= self.dpi <= 10_000:
            raise SpecError("dpi", f"dpi is {self.dpi:g}: give pixels an inch, such as 300")
        if self.decimals is not None and not 0 <= self.decimals <= 9:
            raise SpecError("decimals", f"decimals is {self.decimals}: give 0 to 9")
        if self.bound is not None and not (math.isfinite(self.bound) and self.bound > 0):
            raise SpecError("bound", f"bound is {self.bound:g}: give a number above 0, such as 1")
        if not (math.isfinite(self.type_scale) and 0.1 <= self.type_scale <= 10):
            raise SpecError("type_scale", f"type_scale is {self.type_scale:g}: give 0.1 to 10, where 1 is as usual")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.width, self.height


def check_size(size: tuple[int, int]) -> None:
    """Raise `SpecError` where no picture of ``size`` (width, height) can be made."""
    width, height = size
    said = f"size is {width}x{height}"
    if min(size) < MIN_SIDE:
        raise SpecError("size", f"{said}: give a width and a height of at least {MIN_SIDE} pixels, such as 1920x1080")
    if max(size) > MAX_SIDE:
        raise SpecError("size", f"{said}: a side has at most {MAX_SIDE:,} pixels, so give less, such as 3840x2160")
    if width * height > MAX_PIXELS:
        millions = f"{width * height / 1e6:,.0f} million pixels"
        raise SpecError(
            "size", f"{said}, {millions}: give at most {MAX_PIXELS // 1_000_000} million, such as 3840x2160"
        )


def parse_size(text: str) -> tuple[int, int, float | None]:
    """Width and height in pixels, and dots an inch where the size is one of paper.

    ``1920x1080``; ``8.5x6cm`` (at 300 dpi), ``8.5x6cm@600dpi``, in cm, mm or in; ``1920x1080@200dpi``. Raises
    `SpecError` for anything else; the size itself is checked by `Paper`.
    """
    found = _SIZE.fullmatch(text.lower())
    if found is None:
        raise SpecError("size", f"size is {text[:40]!r}: {_NO_SIZE}")
    width, height, unit = float(found[1]), float(found[2]), found[3] or "px"
    dpi = float(found[4]) if found[4] else None
    too_large = SpecError("size", f"size is {text[:40]!r}: a side has at most {MAX_SIDE:,} pixels, so give less")
    if unit == "px":
        if max(width, height) > 10 * MAX_SIDE:  # thousands of digits are infinity
            raise too_large
        if width != int(width) or height != int(height):
            raise SpecError("size", f"size is {text!r}: pixels are whole numbers; {_NO_SIZE}")
        return int(width), int(height), dpi
    dpi = _USUAL_DPI if dpi is None else dpi
    if dpi <= 0:
        raise SpecError("size", f"size is {text!r}: {_NO_SIZE}")
    across, down = (side * _INCHES[unit] * dpi for side in (width, height))
    if not all(side <= 10 * MAX_SIDE for side in (across, down)):  # 0 cm of infinitely many dots are not a number
        raise too_large
    return round(across), round(down), dpi
