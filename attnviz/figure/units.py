"""How large type and gaps are on a sheet."""

from __future__ import annotations

from typing import Final

from attnviz.spec import Paper

CAPTION_PX: Final = 13.0
"""A caption's type at a unit of 1, in pixels."""

_CAPTION_POINTS: Final = 7.0
_POINTS_PER_INCH: Final = 72.0


def unit_of(paper: Paper) -> float:
    """The factor of all type and gaps: 1 as on a usual screen.

    On a screen type grows with the sheet, small sheets' type shrinks less. On paper of so many pixels an inch a
    caption is 7 points high, whatever the sheet's size. Both times the paper's ``type_scale``.
    """
    if paper.dpi is not None:
        return _CAPTION_POINTS * paper.dpi / _POINTS_PER_INCH / CAPTION_PX * paper.type_scale
    width, height = paper.size
    return max(min(width / 1120, height / 700), min(min(width, height) / 960, 0.75), 0.5) * paper.type_scale
