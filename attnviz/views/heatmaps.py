"""The heads: one map each in a grid, or one large beside a strip, with one window and one cross-hair for all.

One widget paints them all, since the heads are always linked; what a map looks like is `figure.paint`'s, as on paper,
where the window goes is `navigation`'s, and what a hand does to it is `map_mouse`'s.
"""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QHelpEvent, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from attnviz.figure import layout, paint
from attnviz.frames import Frame
from attnviz.session import Cell, Picture, Snapshot, Window
from attnviz.views import map_layout, map_words, mask_drawing, navigation
from attnviz.views.asking import Asking, InSight
from attnviz.views.map_layout import Arrangement
from attnviz.views.map_mouse import Chart, Hand
from attnviz.views.map_panel import Before, Look, Panel, paint_figure, row_text, told
from attnviz.views.minimap import Minimap
from attnviz.views.travel import ZOOM_STEP, Sight, Travel
from attnviz.views.typed_cells import TypedCells


class Heatmaps(QWidget):
    """Every head's map. ``present`` sets what is shown; signals say what a hand did.

    ``viewport_changed`` carries a `Viewport` once the pixels or the window of cells change, ``cell_hovered`` and
    ``cell_selected`` a `Cell` or None, ``window_moved`` a `Window` or None for the whole map, ``view_edited`` a
    `View` when a head's title is clicked. ``cell_edited`` carries a `CellEdit` of a typed matrix, ``mask_drawn`` a
    whole `Drawn` after each stretch of a gesture, ``said`` a sentence where a hand asked for what cannot be.
    """

    viewport_changed = Signal(object)
    window_moved = Signal(object)
    cell_hovered = Signal(object)
    cell_selected = Signal(object)
    view_edited = Signal(object)
    cell_edited = Signal(object)
    mask_drawn = Signal(object)
    mask_drawing_ended = Signal()
    said = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled, False)  # a Chinese one would swallow M, T, R
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMinimumSize(240, 150)
        self.setAccessibleName(self.tr("attention maps"))
        self._style = paint.LIGHT
        self._snapshot: Snapshot | None = None
        self._picture: Picture | None = None
        self._arrangement: Arrangement | None = None
        self._panels: list[Panel] = []
        self._plan: layout.FigureLayout | None = None
        self._hovered: Cell | None = None
        self._one_large = self._alone = False
        self._unit = 1.0
        self._before = Before()
        self._shown: object = None
        self._told: object = None
        self._generation = -1
        self.waits_for = self.tr("loading torch …")
        """What stands here until the first picture comes."""
        self._travel = Travel(self, self._sight)
        self._travel.moved.connect(self.window_moved)
        self._minimap = Minimap(self)
        self._minimap.centre_asked.connect(self._travel.centre)
        self._hand = Hand(self, self._chart_at)
        self._hand.moved.connect(self._travel.move)
        self._hand.hovered.connect(self._on_hovered)
        self._hand.clicked.connect(self._on_clicked)
        self._hand.doubled.connect(self._on_doubled)
        self._typed = TypedCells(self, self._cell_at, self._place_of)
        self._typed.edited.connect(self.cell_edited)
        self._typed.selected.connect(self.cell_selected)
        self._pen = mask_drawing.MaskPen(self, self._drawn_at)
        self._pen.drawn.connect(self.mask_drawn)
        self._pen.refused.connect(self.said)
        self._pen.words_changed.connect(self._on_pens_words)
        self._asking = Asking(self)
        self._asking.said.connect(self.viewport_changed)

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        """Show the picture, the window, the cross-hair and the numbers of ``snapshot``."""
        if self._snapshot is not None and snapshot.selected not in (None, self._snapshot.selected):
            self._travel.follow_soon()  # a present emits nothing: the window follows once it is over
        self._snapshot = snapshot
        picture = snapshot.shown
        if picture is None or picture.outline is None:
            self.update()
            return
        self._picture = picture
        self._before.present(snapshot)
        self._pen.present(snapshot)
        arrangement = map_layout.arrangement_of(picture, one_large=self._one_large, alone=self._alone)
        if arrangement != self._arrangement:
            self._arrangement = arrangement
            self._arrange()
        outline, window = picture.outline, self._window()
        shown = (
            self._style, arrangement, outline.has_future, outline.future_hidden, outline.mask_shape, window,
            snapshot.selected, snapshot.cell, snapshot.show_numbers, snapshot.decimals, snapshot.show_before,
            snapshot.pinned is None, self._pen.active,
        )  # fmt: skip
        everything = shown != self._shown
        self._shown = shown
        for panel in self._panels:
            came = picture.frames.get(panel.name), picture.backdrops.get(panel.name), self._before_of(panel)
            if any(new is not old for new, old in zip(came, (panel.frame, panel.backdrop, panel.before), strict=True)):
                panel.frame, panel.backdrop, panel.before = came
                if not everything:
                    self.update(panel.changing)
        tells = picture.view, [told(panel.frame) for panel in self._panels]
        if tells != self._told and not everything and self._plan is not None:
            for box in (self._plan.bar_column, self._plan.legend, *self._plan.captions):
                self.update(QRectF(*box).toAlignedRect())
        self._told = tells
        self._present_minimap(window)
        self._typed.present(snapshot, arrangement.shape, self._unit)
        if everything:
            self.update()
        if everything or picture.generation != self._generation:
            self._generation = picture.generation
            self._look()

    def _before_of(self, panel: Panel) -> Frame | None:
        return self._before.frames.get(panel.name)

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
        if self._snapshot is None or self._arrangement is None:
            return ""
        return row_text(self._snapshot, self._panels, self._arrangement.shape[1])

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

    @property
    def one_large(self) -> bool:
        """Whether one head is always large."""
        return self._one_large

    def show_one_large(self, wanted: bool) -> None:
        """Whether one head is always large with the others beside it, as for a class, or all are alike in a grid."""
        if wanted != self._one_large:
            self._one_large = wanted
            if self._snapshot is not None:
                self.present(self._snapshot)

    def show_alone(self, wanted: bool, unit: float = 1.0) -> None:
        """Whether one head is all there is, with type of ``unit`` times the size: the view for a room."""
        if (wanted, unit) != (self._alone, self._unit):
            self._alone, self._unit = wanted, unit
            self._arrangement = None
            if self._snapshot is not None:
                self.present(self._snapshot)

    # ---------------------------------------------------------------------------------------------------- arrangement

    def _arrange(self) -> None:
        """Place the panels for this size, this many heads and these labels."""
        if self._arrangement is None or self._picture is None or self._picture.outline is None or self.width() < 10:
            return
        names = self._arrangement.names
        size = (self.width(), self.height())
        bare = self._alone and max(self._arrangement.shape) < map_layout.MINIMAP_FROM
        plan = layout.screen_layout(
            self._picture.outline, len(names), size, large_first=self._arrangement.large and len(names) > 1,
            unit=self._unit, bare=bare,
        )  # fmt: skip
        self._plan, corner = map_layout.with_minimap(plan, self._arrangement)
        self._panels = [Panel(name, place) for name, place in zip(names, self._plan.panels, strict=True)]
        for panel in self._panels:
            panel.frame = self._picture.frames.get(panel.name)
            panel.backdrop = self._picture.backdrops.get(panel.name)
            panel.before = self._before_of(panel)
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

    def _sight(self) -> Sight | None:
        if self._arrangement is None or not self._panels:
            return None
        rect, ratio = self._panels[0].place.map_rect, self.devicePixelRatioF()
        selected = self._snapshot.selected if self._snapshot is not None else None
        return Sight(self._window(), self._arrangement.shape, (rect.height * ratio, rect.width * ratio), selected)

    @Slot()
    def zoom_in(self) -> None:
        self._travel.zoom(1 / ZOOM_STEP)

    @Slot()
    def zoom_out(self) -> None:
        self._travel.zoom(ZOOM_STEP)

    @Slot()
    def zoom_all(self) -> None:
        self._travel.show_all()

    def pan(self, right: int, down: int) -> None:
        """Move the window by a quarter of itself."""
        self._travel.pan(right, down)

    def go_to(self, cell: Cell) -> None:
        """Centre the window on ``cell``, a cell a pixel or as near as it is."""
        self._travel.go_to(cell)

    # --------------------------------------------------------------------------------------------------------- mouse

    def _panel_at(self, point: QPointF) -> Panel | None:
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
        if cell is not None and not self._typed.edit(cell):
            self._travel.zoom(1 / ZOOM_STEP**2, cell)

    def _toggle_large(self, panel: Panel) -> None:
        if panel.head is not None and self._snapshot is not None:
            view = self._snapshot.view
            wanted = None if view.head == panel.head else panel.head
            self.view_edited.emit(msgspec.structs.replace(view, head=wanted))

    # ------------------------------------------------------------------------------------------- typing and drawing

    def _place_of(self, cell: Cell) -> QRectF | None:
        """Where a cell of the first panel lies, None where its middle is out of sight."""
        if not self._panels:
            return None
        rect, window = self._panels[0].place.map_rect, self._window()
        low = QPointF(*navigation.point_at(window, rect, cell.row, cell.col))
        place = QRectF(low, QPointF(*navigation.point_at(window, rect, cell.row + 1, cell.col + 1)))
        return place if QRectF(*rect).contains(place.center()) else None

    @Slot()
    def edit_current_cell(self) -> None:
        """Type the number of the current cell where it stands; say so where it cannot be typed."""
        cell = self._snapshot.selected if self._snapshot is not None else None
        if not self._typed.on:
            self.said.emit(self.tr("Only typed scores and weights can be edited: Edit, Freeze scores makes them so."))
        elif cell is None or not self._typed.edit(cell):
            self.said.emit(self.tr("Choose a cell first: click it, or go there with the arrows."))

    @Slot(bool)
    def draw_mask(self, on: bool) -> None:
        """Whether a drag over cells draws the mask. Where none can be drawn, ``said`` tells why and the mode ends."""
        words = mask_drawing.why_not(self._snapshot) if on else ""
        if words:
            self.said.emit(words)
        if on and not words and not self._pen.active:
            self._pen.active = True
            self.setCursor(Qt.CursorShape.CrossCursor)
        elif self._pen.active and not on:
            self._pen.active = False
            self.unsetCursor()
        self.update()
        if not self._pen.active:
            self.mask_drawing_ended.emit()

    @Slot()
    def _on_pens_words(self) -> None:
        for box in self._plan.captions if self._plan is not None else ():
            self.update(QRectF(*box).toAlignedRect())

    @property
    def is_drawing_mask(self) -> bool:
        """Whether a drag over cells draws the mask."""
        return self._pen.active

    def _drawn_at(self, point: QPointF) -> Cell | str | None:
        """The cell under the pen, or why none is: a pixel may be several."""
        panel = self._panel_at(point)
        if panel is not None and (panel.frame is None or panel.frame.level > 1):
            return self.tr("Here a pixel is several cells: zoom in first (+ or the wheel), then draw.")
        return self._cell_at(point)

    @Slot()
    def show_current_large(self) -> None:
        """Make the head under the pointer large, else the first; say so where it is already."""
        if self._picture is None or self._arrangement is None or not self._panels:
            return
        large = self._panels[0].head if self._arrangement.large else None
        under = self._panel_at(QPointF(self.mapFromGlobal(self.cursor().pos())))
        wanted = (under.head if under is not None else large) or 0
        words = map_words.why_not_large(self._picture, wanted, large)
        if words:
            self.said.emit(words)
        else:
            self.view_edited.emit(msgspec.structs.replace(self._picture.view, head=wanted))

    @Slot()
    def tell_about_numbers(self) -> None:
        """Say so where cells are too small for their numbers, so that showing or hiding these changes nothing."""
        words = map_words.why_no_numbers(self._panels[0], self._window()) if self._panels else ""
        if words:
            self.said.emit(words)

    # ----------------------------------------------------------------------------------------------------- painting

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._arrange()
        if self._picture is not None:
            self._present_minimap(self._window())
            self._look()

    def event(self, event: QEvent) -> bool:
        """What a cell or a small map is called; and Esc, which is an action's key elsewhere, ends drawing."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            panel = self._panel_at(QPointF(event.pos()))
            typed = self._typed.on and not self._pen.active
            words = map_words.tip(panel, several=len(self._panels) > 1, typed=typed)
            words = words or map_words.sums_tip(self._panels, QPointF(event.pos()), self._snapshot)
            QToolTip.showText(event.globalPos(), words, self)
            return True
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape and self._pen.active:
            if event.type() == QEvent.Type.KeyPress:
                self.draw_mask(False)
            event.accept()
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._style.card)
        if self._picture is None:
            painter.setPen(self._style.muted)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.waits_for)
        elif self._plan is not None and self._snapshot is not None:
            seen = self._window()
            window = (seen.top, seen.bottom, seen.left, seen.right)
            look = Look(self._picture, self._snapshot, window, self._style, self._unit, self._pen.words)
            paint_figure(painter, event.region(), self._plan, self._panels, look)
        painter.end()
