"""What the maps say in words: tips under the pointer, and why a hand gets nothing."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication, QPointF, QRectF

from attnviz.figure import marks
from attnviz.session import Picture, Snapshot, Window
from attnviz.views import navigation
from attnviz.views.map_panel import Panel

_NUMBERS_FROM: Final = 13.0  # pixels of a cell


def _tr(text: str) -> str:
    return QCoreApplication.translate("Heatmaps", text)


def tip(panel: Panel | None, *, several: bool, typed: bool) -> str:
    """What lies under the pointer: how a ``typed`` cell is changed, or which head a map without a title is."""
    if panel is None:
        return ""
    if typed:
        return _tr("double-click to type, Alt + wheel to change")
    return marks.panel_title(panel.frame, panel.name) if several and panel.place.title is None else ""


def sums_tip(panels: list[Panel], point: QPointF, snapshot: Snapshot | None) -> str:
    """What Σ is, where ``point`` lies on the sums of a panel or their heading; "" elsewhere."""
    for panel in panels:
        boxes, frame = (panel.place.sums, panel.place.sums_header), panel.frame
        if frame is None or frame.row_sums is None or snapshot is None:
            continue
        if any(box is not None and QRectF(*box).contains(point) for box in boxes):
            few = frame.cols[1] - frame.cols[0] <= marks.PERCENT_UP_TO_KEYS
            if few and snapshot.show_numbers and snapshot.decimals is None:
                return _tr("Σ is the sum of the row itself. The percents are rounded: they may add up to 99 or 101.")
            return _tr("Σ is the sum of the row itself.")
    return ""


def why_not_large(picture: Picture, wanted: int, large: int | None) -> str:
    """Why head ``wanted`` cannot be made large where head ``large`` is, None for none; "" where it can."""
    if picture.outline is not None and len(picture.outline.panels) < 2:
        return _tr("There is one map only, and it is as large as it fits.")
    if wanted == large:
        return _tr("Head {0} is large already: H takes the next one.").format(wanted)
    return ""


def why_no_numbers(panel: Panel, window: Window) -> str:
    """Why no numbers stand in the cells in sight; "" where they are large enough for them."""
    low = navigation.point_at(window, panel.place.map_rect, 0.0, 0.0)
    high = navigation.point_at(window, panel.place.map_rect, 1.0, 1.0)
    if min(high[0] - low[0], high[1] - low[1]) >= _NUMBERS_FROM:
        return ""
    return _tr("These cells are too small for numbers: zoom in (+ or the wheel) to read them.")
