"""One head on the screen: where it lies, what it holds, and how that is painted."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication, QRect, QRectF
from PySide6.QtGui import QPainter, QRegion

from attnviz.figure import layout, paint
from attnviz.figure.colour_bars import paint_colour_bar
from attnviz.frames import Frame
from attnviz.session import Picture, Snapshot


@dataclass(slots=True)
class Panel:
    """One head: its place, its cells (sharp ones, and the whole map's behind them), and those before the last change.

    ``before`` is None where no number of it can stand below the present one.
    """

    name: str
    place: layout.PanelLayout
    frame: Frame | None = None
    backdrop: Frame | None = None
    before: Frame | None = None

    @property
    def head(self) -> int | None:
        number = self.name.removeprefix("head:")
        return int(number) if number.isdigit() else None

    @property
    def bounds(self) -> QRect:
        """All that is painted of it."""
        return QRectF(*self.place.outer).adjusted(-4, -4, 4, 4).toAlignedRect()

    @property
    def changing(self) -> QRegion:
        """What is painted again when the frame changes: its cells and the rows' sums, not the names of the tokens."""
        cells = QRegion(QRectF(*self.place.map_rect).adjusted(-4, -4, 4, 4).toAlignedRect())
        sums = self.place.sums
        return cells if sums is None else cells.united(QRectF(*sums).adjusted(0, -4, 4, 4).toAlignedRect())

    def touches_names(self, region: QRegion) -> bool:
        """Whether tokens' names or the title lie in ``region``."""
        boxes = (self.place.title, self.place.row_labels, self.place.column_labels, self.place.overhang)
        return any(box is not None and region.intersects(QRectF(*box).toAlignedRect()) for box in boxes)


@dataclass(frozen=True, slots=True)
class Look:
    """How all panels are painted: of ``picture`` the cells in ``window``, with what ``snapshot`` says of them.

    ``drawing`` is what a drag does while it draws the mask, "" where it does not.
    """

    picture: Picture
    snapshot: Snapshot
    window: paint.Window
    style: paint.Style
    unit: float = 1.0
    drawing: str = ""


@dataclass(slots=True)
class Before:
    """The frames of the state before, as long as they can be compared with those on the screen."""

    frames: dict[str, Frame] = field(default_factory=dict)

    def present(self, snapshot: Snapshot) -> None:
        """Take the state before of ``snapshot``; while a new picture has not begun, the old one stays what it was."""
        if snapshot.stale and not snapshot.show_before:
            return
        now, before = snapshot.picture, snapshot.before
        self.frames = {}
        if snapshot.show_before or now is None or before is None or now.outline is None or before.outline is None:
            return
        if now.outline.n_keys <= _MOST_KEYS and now.outline.tokens == before.outline.tokens:
            self.frames = dict(before.frames)


_MOST_KEYS = 64  # on no screen are the cells of more of them large enough for two numbers


def paint_figure(
    painter: QPainter, region: QRegion, plan: layout.FigureLayout, panels: list[Panel], look: Look
) -> None:
    """The panels, colour bar, captions and legend that ``region`` touches."""
    for panel in panels:
        if region.intersects(panel.bounds):
            paint_panel(painter, panel, look, names=panel.touches_names(region))
    frames = [panel.frame for panel in panels if panel.frame is not None]
    if not frames or not plan.legend.height:
        return
    if region.intersects(QRectF(*plan.bar_column).toAlignedRect()):
        paint_colour_bar(painter, plan, frames, look.picture.view, look.style)
    if any(region.intersects(QRectF(*box).toAlignedRect()) for box in (plan.legend, *plan.captions)):
        paint.paint_legend(
            painter, plan, look.picture, look.style, window=look.window, note=look.drawing or None
        )  # fmt: skip


def paint_panel(painter: QPainter, panel: Panel, look: Look, *, names: bool = True) -> None:
    """The panel's cells and what stands around them; a word in the corner where they are not the present, exact ones.

    Without ``names`` the title and the tokens' names stay as they are.
    """
    outline, snapshot = look.picture.outline, look.snapshot
    if outline is None:
        return
    _paint_map(painter, panel, look)
    paint.paint_surroundings(
        painter, panel.place, look.window, panel.frame, outline, look.style, selected=snapshot.selected,
        cross=snapshot.cell, panel=panel.name, names=names, numbers=snapshot.show_numbers,
    )  # fmt: skip
    rect = QRectF(*panel.place.map_rect)
    if look.drawing:
        paint.paint_border(painter, rect, look.style)
    word = corner_word(panel, snapshot)
    if word:
        paint.paint_pill(painter, rect, word, look.style, look.unit, strong=snapshot.show_before)


def corner_word(panel: Panel, snapshot: Snapshot) -> str:
    """What the map's corner says: that the state before is held up, or that a preview stands; else nothing."""
    if snapshot.show_before and snapshot.before is not None:
        return "A" if snapshot.pinned is not None else QCoreApplication.translate("Heatmaps", "before")
    if panel.frame is not None and not panel.frame.exact:
        return QCoreApplication.translate("Heatmaps", "preview")
    return ""


def _paint_map(painter: QPainter, panel: Panel, look: Look) -> None:
    """The whole map's coarse cells where the sharp ones do not reach, then the sharp ones."""
    outline, snapshot, style = look.picture.outline, look.snapshot, look.style
    assert outline is not None  # noqa: S101 (the caller looked)
    rect, frame, backdrop = QRectF(*panel.place.map_rect), panel.frame, panel.backdrop
    peeking = paint.peeking_of(outline)
    if backdrop is not None and backdrop is not frame and not covers(frame, look.window):
        paint.paint_cells(
            painter, rect, look.window, backdrop, style, numbers=False, peeking=None if frame else peeking,
            unit=look.unit,
        )  # fmt: skip
    if frame is not None:
        paint.paint_cells(
            painter, rect, look.window, frame, style, numbers=snapshot.show_numbers, decimals=snapshot.decimals,
            peeking=peeking, before=paint.comparable(frame, panel.before), unit=look.unit,
        )  # fmt: skip


def covers(frame: Frame | None, window: paint.Window) -> bool:
    """Whether ``frame`` holds all cells of ``window``."""
    if frame is None:
        return False
    (first_row, end_row), (first_col, end_col) = frame.rows, frame.cols
    return first_row <= window[0] and window[1] <= end_row and first_col <= window[2] and window[3] <= end_col


def told(frame: Frame | None) -> object:
    """What the colour bar and the legend tell of a frame."""
    return None if frame is None else (frame.panel, frame.level, frame.pooling, frame.scale, frame.counts)


def row_text(snapshot: Snapshot, panels: list[Panel], n_cols: int) -> str:
    """The selected row's numbers between tabs: a line a head where every head's stands whole, else one head's."""
    if snapshot.selected is None:
        return ""
    row = snapshot.selected.row
    frames = [panel.frame for panel in panels if panel.frame is not None and panel.frame.level == 1]
    held = [frame for frame in frames if frame.rows[0] <= row < frame.rows[1]]
    lines = [frame.values[row - frame.rows[0]] for frame in held]
    answer = snapshot.row
    every = len(lines) == len(panels) and all(frame.cols == (0, n_cols) for frame in held)
    if answer is not None and answer.row == row and not every:
        lines = [answer.values]
    return "\n".join("\t".join(map(repr, line.tolist())) for line in lines)
