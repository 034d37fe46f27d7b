"""The heads: one map each in a grid, or one large beside a strip, with one window and one cross-hair for all.

One widget paints them all, since the heads are always linked; what a map looks like is `figure.paint`'s, as on paper,
where the window goes is `navigation`'s, and what a hand does to it is `map_mouse`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QRegion
from PySide6.QtWidgets import QToolTip, QWidget

from attnviz.figure import layout, marks, paint
from attnviz.frames import Frame
from attnviz.session import Cell, Picture, Snapshot, Window
from attnviz.views import map_layout, navigation
from attnviz.views.asking import Asking, InSight
from attnviz.views.map_layout import Arrangement
from attnviz.views.map_mouse import Chart, Hand
from attnviz.views.minimap import Minimap

_ZOOM_STEP = 1.5


@dataclass(slots=True)
class _Panel:
    """One head on the screen: where it lies, and its cells: sharp ones, and the whole map's behind them."""

    name: str
    place: layout.PanelLayout
    frame: Frame | None = None
    backdrop: Frame | None = None

    @property
    def head(self) -> int | None:
        number = self.name.removeprefix("head:")
        return int(number) if number.isdigit() else None

    @property
    def bounds(self) -> QRectF:
        return QRectF(*self.place.outer).adjusted(-2, -2, 2, 2)


class Heatmaps(QWidget):
    """Every head's map. ``present`` sets what is shown; signals say what a hand did.

    ``viewport_changed`` carries a `Viewport` once the pixels or the window of cells change, ``cell_hovered`` and
    ``cell_selected`` a `Cell` or None, ``window_moved`` a `Window` or None for the whole map, ``view_edited`` a
    `View` when a head's title is clicked.
    """

    viewport_changed = Signal(object)
    window_moved = Signal(object)
    cell_hovered = Signal(object)
    cell_selected = Signal(object)
    view_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled, False)  # a Chinese one would swallow M, T, R
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMinimumSize(320, 220)
        self.setAccessibleName(self.tr("attention maps"))
        self._style = paint.LIGHT
        self._snapshot: Snapshot | None = None
        self._picture: Picture | None = None
        self._arrangement: Arrangement | None = None
        self._panels: list[_Panel] = []
        self._plan: layout.FigureLayout | None = None
        self._hovered: Cell | None = None
        self._one_large = False
        self._shown: object = None
        self._told: object = None
        self._generation = -1
        self._minimap = Minimap(self)
        self._minimap.centre_asked.connect(self._on_centre_asked)
        self._hand = Hand(self, self._chart_at)
        self._hand.moved.connect(self._move)
        self._hand.hovered.connect(self._on_hovered)
        self._hand.clicked.connect(self._on_clicked)
        self._hand.doubled.connect(self._on_doubled)
        self._asking = Asking(self)
        self._asking.said.connect(self.viewport_changed)

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        """Show the picture, the window, the cross-hair and the numbers of ``snapshot``."""
        self._snapshot = snapshot
        picture = snapshot.shown
        if picture is None or picture.outline is None:
            self.update()
            return
        self._picture = picture
        arrangement = map_layout.arrangement_of(picture, one_large=self._one_large)
        if arrangement != self._arrangement:
            self._arrangement = arrangement
            self._arrange()
        outline, window = picture.outline, self._window()
        shown = (
            self._style, arrangement, outline.has_future, outline.future_hidden, outline.mask_shape, window,
            snapshot.selected, snapshot.cell, snapshot.show_numbers, snapshot.decimals,
        )  # fmt: skip
        everything = shown != self._shown
        self._shown = shown
        for panel in self._panels:
            frame, backdrop = picture.frames.get(panel.name), picture.backdrops.get(panel.name)
            if frame is not panel.frame or backdrop is not panel.backdrop:
                panel.frame, panel.backdrop = frame, backdrop
                if not everything:
                    self.update(panel.bounds.toAlignedRect())
        told = picture.view, [_told(panel.frame) for panel in self._panels]
        if told != self._told and not everything and self._plan is not None:
            for box in (self._plan.bar_column, self._plan.legend, *self._plan.captions):
                self.update(QRectF(*box).toAlignedRect())
        self._told = told
        self._present_minimap(window)
        if everything:
            self.update()
        if everything or picture.generation != self._generation:
            self._generation = picture.generation
            self._look()

    def _present_minimap(self, window: Window) -> None:
        if self._panels and self._picture is not None and self._arrangement is not None:
            first = self._panels[0]
            shape = self._arrangement.shape
            self._minimap.present(
                first.backdrop or first.frame, window, shape, self._style, self._picture.view.colours
            )  # fmt: skip

    def use_style(self, style: paint.Style) -> None:
        """Light or dark."""
        self._style = style
        self.update()
        if self._snapshot is not None:
            self.present(self._snapshot)

    def current_head(self) -> int:
        """The head that Enter makes large: the one large now, else the one under the pointer, else the first."""
        if self._picture is not None and self._picture.view.head is not None:
            return self._picture.view.head
        panel = self._panel_at(QPointF(self.mapFromGlobal(self.cursor().pos())))
        return panel.head or 0 if panel is not None else 0

    def row_as_text(self) -> str:
        """The selected row as tab-separated numbers: a line a head where every head's stands whole, else one head's.

        Empty where no row is selected.
        """
        if self._snapshot is None or self._snapshot.selected is None or self._arrangement is None:
            return ""
        row, n_cols = self._snapshot.selected.row, self._arrangement.shape[1]
        frames = [panel.frame for panel in self._panels if panel.frame is not None and panel.frame.level == 1]
        held = [frame for frame in frames if frame.rows[0] <= row < frame.rows[1]]
        lines = [frame.values[row - frame.rows[0]] for frame in held]
        answer = self._snapshot.row
        every = len(lines) == len(self._panels) and all(frame.cols == (0, n_cols) for frame in held)
        if answer is not None and answer.row == row and not every:
            lines = [answer.values]
        return "\n".join("\t".join(map(repr, line.tolist())) for line in lines)

    def panel_names(self) -> tuple[str, ...]:
        """The panels in sight, the large one first."""
        return tuple(panel.name for panel in self._panels)

    def canvas(self) -> QWidget:
        """The widget that takes the mouse."""
        return self

    def point_of(self, name: str, cell: Cell) -> QPoint:
        """Where a cell's centre of a panel lies on the canvas, in pixels."""
        panel = next(panel for panel in self._panels if panel.name == name)
        return QPointF(
            *navigation.point_at(self._window(), panel.place.map_rect, cell.row + 0.5, cell.col + 0.5)
        ).toPoint()

    def repaint_now(self) -> None:
        """Paint what has been presented before this returns, for benchmarks and pictures of the window."""
        self.repaint()

    def show_one_large(self, wanted: bool) -> None:
        """Whether one head is always large with the others beside it, as for a class, or all are alike in a grid."""
        if wanted != self._one_large:
            self._one_large = wanted
            if self._snapshot is not None:
                self.present(self._snapshot)

    # ---------------------------------------------------------------------------------------------------- arrangement

    def _arrange(self) -> None:
        """Place the panels for this size, this many heads and these labels."""
        if self._arrangement is None or self._picture is None or self._picture.outline is None or self.width() < 10:
            return
        names = self._arrangement.names
        size = (self.width(), self.height())
        plan = layout.screen_layout(
            self._picture.outline, len(names), size, large_first=self._arrangement.large and len(names) > 1
        )
        self._plan, corner = map_layout.with_minimap(plan, self._arrangement)
        self._panels = [_Panel(name, place) for name, place in zip(names, self._plan.panels, strict=True)]
        for panel in self._panels:
            panel.frame = self._picture.frames.get(panel.name)
            panel.backdrop = self._picture.backdrops.get(panel.name)
        self._minimap.setGeometry(QRectF(*corner or (0, 0, 0, 0)).toRect())
        self.update()

    def _window(self) -> Window:
        """The cells in sight, in all heads alike."""
        shape = self._arrangement.shape if self._arrangement is not None else (1, 1)
        window = self._snapshot.window if self._snapshot else None
        return navigation.whole(shape) if window is None else navigation.clamped(window, shape)

    def _look(self) -> None:
        """Ask for what is in sight: the large head first, then the others there are.

        Not while another map still stands there than is asked for, nor for the state before while it is held up.
        """
        arrangement, snapshot, picture = self._arrangement, self._snapshot, self._picture
        if arrangement is None or snapshot is None or picture is None or not self._panels:
            return
        asked = snapshot.spec.source, snapshot.view.stage
        if picture is not snapshot.picture or (picture.spec.source, picture.view.stage) != asked:
            return
        height, width = (max(p.place.map_rect[side] for p in self._panels) for side in (3, 2))
        ratio = self.devicePixelRatioF()
        heads = tuple(panel.head for panel in self._panels if panel.head is not None) if arrangement.large else ()
        about = *asked, arrangement
        pixels = height * ratio, width * ratio
        self._asking.look(InSight(about, self._window(), arrangement.shape, pixels, heads or None))

    # ------------------------------------------------------------------------------------------------- zoom and pan

    @Slot()
    def zoom_in(self) -> None:
        self._zoom(1 / _ZOOM_STEP)

    @Slot()
    def zoom_out(self) -> None:
        self._zoom(_ZOOM_STEP)

    @Slot()
    def zoom_all(self) -> None:
        if self._arrangement is not None:
            self._move(navigation.whole(self._arrangement.shape))

    def pan(self, right: int, down: int) -> None:
        """Move the window by a quarter of itself."""
        if self._arrangement is not None:
            seen = self._window()
            rows, cols = down * (seen.bottom - seen.top) / 4, right * (seen.right - seen.left) / 4
            self._move(navigation.panned(seen, self._arrangement.shape, rows, cols))

    def go_to(self, cell: Cell) -> None:
        """Centre the window on ``cell``, a cell a pixel or as near as it is."""
        if self._arrangement is not None and self._panels:
            rect, ratio = self._panels[0].place.map_rect, self.devicePixelRatioF()
            place, pixels = (cell.row + 0.5, cell.col + 0.5), (rect.height * ratio, rect.width * ratio)
            self._move(navigation.close_to(self._window(), self._arrangement.shape, place, pixels))

    def _zoom(self, factor: float, about: Cell | None = None) -> None:
        """Zoom about ``about``, else the selected cell where it is in sight, else the middle."""
        if self._arrangement is None:
            return
        seen = self._window()
        cell = about or (self._snapshot.selected if self._snapshot else None)
        place = (seen.top + seen.bottom) / 2, (seen.left + seen.right) / 2
        if cell is not None and seen.top <= cell.row + 0.5 <= seen.bottom and seen.left <= cell.col + 0.5 <= seen.right:
            place = cell.row + 0.5, cell.col + 0.5
        self._move(navigation.zoomed(seen, self._arrangement.shape, factor, place))

    @Slot(object)
    def _move(self, window: Window) -> None:
        if self._arrangement is not None and window != self._window():
            self.window_moved.emit(None if navigation.is_whole(window, self._arrangement.shape) else window)

    @Slot(float, float)
    def _on_centre_asked(self, row: float, col: float) -> None:
        if self._arrangement is not None:
            self._move(navigation.centred(self._window(), self._arrangement.shape, (row, col)))

    # --------------------------------------------------------------------------------------------------------- mouse

    def _panel_at(self, point: QPointF) -> _Panel | None:
        x, y = point.x(), point.y()
        for panel in self._panels:
            rect = panel.place.map_rect
            if rect.x <= x < rect.right and rect.y <= y < rect.bottom:
                return panel
        return None

    def _chart_at(self, point: QPointF) -> Chart | None:
        panel = self._panel_at(point)
        if panel is None or self._arrangement is None:
            return None
        return Chart(panel.place.map_rect, self._window(), self._arrangement.shape)

    def _cell_at(self, point: QPointF) -> Cell | None:
        chart = self._chart_at(point)
        if chart is None:
            return None
        place = navigation.cell_under(chart.window, chart.rect, chart.shape, point.x(), point.y())
        return None if place is None else Cell(*place)

    @Slot(object)
    def _on_hovered(self, point: QPointF | None) -> None:
        cell = None if point is None else self._cell_at(point)
        if cell != self._hovered:
            self._hovered = cell
            self.cell_hovered.emit(cell)

    @Slot(QPointF)
    def _on_clicked(self, point: QPointF) -> None:
        cell, arrangement = self._cell_at(point), self._arrangement
        if arrangement is None:
            return
        thumbnails = arrangement.large and len(self._panels) > 1  # beside a large head they only choose one
        if cell is not None and not (thumbnails and self._panel_at(point) is not self._panels[0]):
            self.cell_selected.emit(cell)
            return
        for panel in self._panels:
            if QRectF(*panel.place.outer).contains(point):
                self._toggle_large(panel)
                return

    @Slot(QPointF)
    def _on_doubled(self, point: QPointF) -> None:
        cell = self._cell_at(point)
        if cell is not None:
            self._zoom(1 / _ZOOM_STEP**2, cell)

    def _toggle_large(self, panel: _Panel) -> None:
        if panel.head is not None and self._snapshot is not None:
            view = self._snapshot.view
            wanted = None if view.head == panel.head else panel.head
            self.view_edited.emit(msgspec.structs.replace(view, head=wanted))

    # ----------------------------------------------------------------------------------------------------- painting

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._arrange()
        if self._picture is not None:
            self._present_minimap(self._window())
            self._look()

    def event(self, event: QEvent) -> bool:
        """Which head this is, where its map is too small for a title."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            panel = self._panel_at(QPointF(event.pos()))
            untitled = panel is not None and panel.place.title is None and len(self._panels) > 1
            name = marks.panel_title(panel.frame, panel.name) if panel is not None and untitled else ""
            QToolTip.showText(event.globalPos(), name, self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._style.card)
        if self._picture is None:
            painter.setPen(self._style.muted)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.tr("loading torch …"))
        else:
            self._paint_figure(painter, event.region())
        painter.end()

    def _paint_figure(self, painter: QPainter, region: QRegion) -> None:
        picture, plan, snapshot = self._picture, self._plan, self._snapshot
        if picture is None or picture.outline is None or plan is None or snapshot is None:
            return
        seen = self._window()
        window = (seen.top, seen.bottom, seen.left, seen.right)
        for panel in self._panels:
            if region.intersects(panel.bounds.toAlignedRect()):
                self._paint_map(painter, panel, picture, window)
                paint.paint_surroundings(
                    painter, panel.place, window, panel.frame, picture.outline, self._style,
                    selected=snapshot.selected, cross=snapshot.cell, panel=panel.name,
                )  # fmt: skip
        first = next((panel.frame for panel in self._panels if panel.frame is not None), None)
        if first is None:
            return
        if region.intersects(QRectF(*plan.bar_column).toAlignedRect()):
            paint.paint_colour_bar(painter, plan, first, picture.view, self._style)
        if any(region.intersects(QRectF(*box).toAlignedRect()) for box in (plan.legend, *plan.captions)):
            paint.paint_legend(painter, plan, picture, self._style)

    def _paint_map(self, painter: QPainter, panel: _Panel, picture: Picture, window: paint.Window) -> None:
        """The whole map's coarse cells where the sharp ones do not reach, then the sharp ones."""
        assert picture.outline is not None and self._snapshot is not None  # noqa: S101, PT018 (the caller looked)
        rect, frame, backdrop = QRectF(*panel.place.map_rect), panel.frame, panel.backdrop
        peeking = paint.peeking_of(picture.outline)
        if backdrop is not None and backdrop is not frame and not _covers(frame, window):
            paint.paint_cells(
                painter, rect, window, backdrop, self._style, numbers=False, peeking=None if frame else peeking
            )  # fmt: skip
        if frame is not None:
            paint.paint_cells(
                painter, rect, window, frame, self._style, numbers=self._snapshot.show_numbers,
                decimals=self._snapshot.decimals, peeking=peeking,
            )  # fmt: skip


def _covers(frame: Frame | None, window: paint.Window) -> bool:
    if frame is None:
        return False
    (first_row, end_row), (first_col, end_col) = frame.rows, frame.cols
    return first_row <= window[0] and window[1] <= end_row and first_col <= window[2] and window[3] <= end_col


def _told(frame: Frame | None) -> object:
    """What the colour bar and the legend tell of a frame."""
    return None if frame is None else (frame.panel, frame.level, frame.pooling, frame.scale, frame.counts)
