"""The heads: one map each in a grid, or one large beside a strip, with one zoom and one cross-hair for all.

pyqtgraph's ViewBox zooms, pans and links; what a map looks like is `figure.paint`'s, as on paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyqtgraph as pg
from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from attnviz.figure import layout, paint
from attnviz.frames import Frame, Outline
from attnviz.session import Cell, Picture, Snapshot, Window
from attnviz.spec import View, Viewport

GRID_MAX = 6
_PIXEL_STEP = 64  # a panel's pixels are asked for in these steps, so that resizing recomputes little
_ZOOM_STEP = 1.5


@dataclass(frozen=True, slots=True)
class _Look:
    """How every map is drawn at present."""

    style: paint.Style
    outline: Outline
    numbers: bool
    decimals: int | None


class _MapItem(pg.GraphicsObject):  # type: ignore[misc]
    """One head's cells inside its ViewBox, one unit a cell."""

    def __init__(self) -> None:
        super().__init__()
        self._frame: Frame | None = None
        self._look: _Look | None = None
        self._bounds = QRectF(0, 0, 1, 1)

    def show_frame(self, frame: Frame | None, look: _Look) -> None:
        bounds = QRectF(0, 0, look.outline.n_keys, look.outline.n_queries)
        if frame is not None and look.outline.stage == frame.stage:
            bounds = QRectF(0, 0, *reversed(layout.map_shape(look.outline)))
        if bounds != self._bounds:
            self.prepareGeometryChange()
            self._bounds = bounds
        if frame is not self._frame or look != self._look:
            self._frame, self._look = frame, look
            self.update()

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(self, painter: QPainter, *_: object) -> None:
        if self._frame is None or self._look is None:
            return
        seen = self.getViewBox().viewRect().intersected(self._bounds)
        target = painter.worldTransform().mapRect(seen)
        look = self._look
        painter.save()
        painter.resetTransform()
        paint.paint_cells(
            painter, target, (seen.top(), seen.bottom(), seen.left(), seen.right()), self._frame, look.style,
            numbers=look.numbers, decimals=look.decimals,
            future=look.outline.has_future and not look.outline.future_hidden,
            shift=look.outline.n_keys - look.outline.n_queries,
        )  # fmt: skip
        painter.restore()


class _Panel:
    """One head on the screen: its ViewBox, its cells, and where it lies."""

    def __init__(self, name: str, parent: pg.GraphicsWidget) -> None:
        self.name = name
        self.box = pg.ViewBox(enableMenu=False, invertY=True, defaultPadding=0)
        self.box.setParentItem(parent)  # not in the constructor: the box must notice that it enters the scene
        self.box.setAspectLocked(False)
        self.box.setMouseMode(pg.ViewBox.PanMode)
        self.cells = _MapItem()
        self.box.addItem(self.cells, ignoreBounds=True)
        self.frame: Frame | None = None
        self.place: layout.PanelLayout | None = None


class _Surroundings(pg.GraphicsObject):  # type: ignore[misc]
    """Titles, token labels, row sums and cross-hairs around the maps, in the widget's pixels."""

    def __init__(self, owner: Heatmaps) -> None:
        super().__init__()
        self._owner = owner
        self._bounds = QRectF()

    def resize(self, size: QSize) -> None:
        self.prepareGeometryChange()
        self._bounds = QRectF(0, 0, size.width(), size.height())

    def boundingRect(self) -> QRectF:
        return self._bounds

    def shape(self) -> QPainterPath:
        return QPainterPath()  # a hand reaches through to the maps

    def paint(self, painter: QPainter, *_: object) -> None:
        self._owner.paint_surroundings(painter)


class Heatmaps(QWidget):
    """Every head's map. ``present`` emits nothing; signals say what a hand did.

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
        self.setMinimumSize(320, 260)
        self.setAccessibleName(self.tr("attention maps"))
        self._style = paint.LIGHT
        self._snapshot: Snapshot | None = None
        self._picture: Picture | None = None
        self._look: _Look | None = None
        self._panels: list[_Panel] = []
        self._plan: layout.FigureLayout | None = None
        self._hovered: Cell | None = None
        self._linking = False
        self._one_large = False
        self._around_shows: object = None
        self._graphics = pg.GraphicsView(self, background=None)
        self._graphics.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._graphics.setFrameShape(pg.QtWidgets.QFrame.Shape.NoFrame)
        self._graphics.viewport().setAutoFillBackground(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._graphics)
        self._root = pg.GraphicsWidget()
        self._graphics.setCentralItem(self._root)
        self._around = _Surroundings(self)
        self._around.setZValue(1)
        self._graphics.scene().addItem(self._around)
        self._graphics.scene().sigMouseMoved.connect(self._on_mouse_moved)
        self._graphics.scene().sigMouseClicked.connect(self._on_mouse_clicked)

    # ------------------------------------------------------------------------------------------------------- present

    def present(self, snapshot: Snapshot) -> None:
        """Show the picture, the cross-hair and the numbers of ``snapshot``."""
        self._snapshot = snapshot
        picture = snapshot.shown
        if picture is None or picture.outline is None:
            self.update()
            return
        old = self._picture
        self._picture = picture
        self._look = _Look(
            self._style, replace(picture.outline, generation=0), snapshot.show_numbers, snapshot.decimals
        )
        rearranged = old is None or old.outline is None or self._arrangement(old) != self._arrangement(picture)
        if rearranged or len(self._panels) != len(self._shown_names(picture)):
            self._arrange()
        for panel in self._panels:
            panel.frame = picture.frames.get(panel.name)
            panel.cells.show_frame(panel.frame, self._look)
        around = (
            self._look,
            snapshot.selected,
            snapshot.cell,
            [_told(panel.frame) for panel in self._panels],
            picture.view,
        )
        if rearranged or around != self._around_shows:
            self._around_shows = around
            self._around.update()

    def use_style(self, style: paint.Style) -> None:
        """Light or dark."""
        self._style = style
        self._graphics.setBackground(style.card)
        if self._snapshot is not None:
            self.present(self._snapshot)

    def current_head(self) -> int:
        """The head that Enter makes large: the one large now, else the one under the pointer, else the first."""
        if self._picture is not None and self._picture.view.head is not None:
            return self._picture.view.head
        position = self._graphics.mapFromGlobal(self.cursor().pos())
        panel = self._panel_at(QPointF(position))
        return panel.frame.head or 0 if panel is not None and panel.frame is not None else 0

    def row_as_text(self) -> str:
        """The selected row of every head as tab-separated numbers, a line a head; empty where none is selected."""
        if self._snapshot is None or self._snapshot.selected is None:
            return ""
        row = self._snapshot.selected.row
        lines = []
        for panel in self._panels:
            frame = panel.frame
            if frame is not None and frame.level == 1 and frame.rows[0] <= row < frame.rows[1]:
                lines.append("\t".join(repr(float(value)) for value in frame.values[row - frame.rows[0]]))
        return "\n".join(lines)

    def panel_names(self) -> tuple[str, ...]:
        """The panels in sight, the large one first."""
        return tuple(panel.name for panel in self._panels)

    def canvas(self) -> QWidget:
        """The widget that takes the mouse."""
        viewport: QWidget = self._graphics.viewport()
        return viewport

    def point_of(self, name: str, cell: Cell) -> QPoint:
        """Where a cell's centre of a panel lies on the canvas, in pixels."""
        panel = next(panel for panel in self._panels if panel.name == name)
        centre: QPointF = panel.box.mapViewToScene(QPointF(cell.col + 0.5, cell.row + 0.5))
        return centre.toPoint()

    def repaint_now(self) -> None:
        """Paint what has been presented before this returns, for benchmarks and pictures of the window."""
        self._graphics.viewport().repaint()

    def show_one_large(self, wanted: bool) -> None:
        """Whether one head is always large with the others beside it, as for a class, or all are alike in a grid."""
        if wanted != self._one_large:
            self._one_large = wanted
            if self._snapshot is not None:
                self._picture = None  # arrange afresh
                self.present(self._snapshot)

    def _large_head(self, picture: Picture) -> int | None:
        """The head that is large: the one chosen, else the first where one always is."""
        assert picture.outline is not None  # noqa: S101 (only pictures with an outline are shown)
        if picture.view.head is not None or not self._one_large or len(picture.outline.panels) == 1:
            return picture.view.head
        return 0

    def _arrangement(self, picture: Picture) -> object:
        """What the places of the panels depend on."""
        outline = picture.outline
        assert outline is not None  # noqa: S101
        return outline.panels, outline.tokens, layout.map_shape(outline), outline.stage, self._large_head(picture)

    def _shown_names(self, picture: Picture) -> tuple[str, ...]:
        """Panels in sight: all of them, the large head first where there is one and the others have a place."""
        assert picture.outline is not None  # noqa: S101
        names, large = picture.outline.panels, f"head:{self._large_head(picture)}"
        if large not in names:
            return names
        beside = len(names) > GRID_MAX or self._one_large
        return (large, *(name for name in names if name != large)) if beside else (large,)

    # ---------------------------------------------------------------------------------------------------- arrangement

    def _arrange(self) -> None:
        """Place the panels for this size, this many heads and these labels."""
        picture = self._picture
        if picture is None or picture.outline is None or self.width() < 10:
            return
        names = self._shown_names(picture)
        while len(self._panels) > len(names):
            panel = self._panels.pop()
            self._graphics.scene().removeItem(panel.box)
        while len(self._panels) < len(names):
            panel = _Panel("", self._root)
            panel.box.sigRangeChangedManually.connect(self._on_moved_by_hand)
            self._panels.append(panel)
        size = (self._graphics.width(), self._graphics.height())
        large = self._large_head(picture) is not None and len(names) > 1
        self._plan = layout.screen_layout(picture.outline, len(names), size, large_first=large)
        for panel, name, place in zip(self._panels, names, self._plan.panels, strict=True):
            panel.name, panel.place = name, place
            panel.box.setGeometry(QRectF(*place.map_rect))
            rows, cols = layout.map_shape(picture.outline)
            panel.box.setLimits(
                xMin=0, xMax=cols, yMin=0, yMax=rows, minXRange=min(2, cols), minYRange=min(2, rows),
                maxXRange=cols, maxYRange=rows,
            )  # fmt: skip
        self._around.resize(QSize(*size))
        self._set_range(self._window(), tell=False)
        self._tell_viewport()

    def _whole(self) -> QRectF:
        assert self._picture is not None and self._picture.outline is not None  # noqa: S101, PT018
        rows, cols = layout.map_shape(self._picture.outline)
        return QRectF(0, 0, cols, rows)

    def _window(self) -> QRectF:
        """The cells in sight, in all heads alike."""
        whole = self._whole()
        window = self._snapshot.window if self._snapshot else None
        if window is None:
            return whole
        seen = QRectF(QPointF(window.left, window.top), QPointF(window.right, window.bottom)).intersected(whole)
        return seen if seen.width() >= 1 and seen.height() >= 1 else whole

    def _set_range(self, cells: QRectF, *, tell: bool = True) -> None:
        """Show these cells in every head."""
        self._linking = True
        for panel in self._panels:
            panel.box.setRange(cells, padding=0, disableAutoRange=True)
        self._linking = False
        self._around.update()
        if tell:
            whole = self._whole()
            window = Window(cells.top(), cells.bottom(), cells.left(), cells.right())
            self.window_moved.emit(None if cells == whole else window)
            self._tell_viewport(cells)

    @Slot(object)
    def _on_moved_by_hand(self, *_: object) -> None:
        box = self.sender()
        if self._linking or not isinstance(box, pg.ViewBox):
            return
        self._set_range(box.viewRect().intersected(self._whole()))

    def _tell_viewport(self, cells: QRectF | None = None) -> None:
        """Ask for the pixels of what is in sight, a little more than the window where it is a part."""
        if self._plan is None or self._picture is None or not self._panels:
            return
        whole, seen = self._whole(), cells or self._window()
        ratio = self.devicePixelRatioF()
        width, height = (max(p.place.map_rect[i] for p in self._panels if p.place) * ratio for i in (2, 3))
        pixels = (_stepped(height), _stepped(width))
        rows = cols = None
        if seen != whole and max(whole.width() / pixels[1], whole.height() / pixels[0]) > 1:
            rows, cols = _span(seen.top(), seen.bottom()), _span(seen.left(), seen.right())
        head = self._large_head(self._picture)
        viewport = Viewport(
            pixels=pixels, rows=rows, cols=cols, heads=None if head is None else (head,), thumbnail=_PIXEL_STEP
        )
        self.viewport_changed.emit(viewport)

    # ------------------------------------------------------------------------------------------------- zoom and pan

    @Slot()
    def zoom_in(self) -> None:
        self._zoom(1 / _ZOOM_STEP)

    @Slot()
    def zoom_out(self) -> None:
        self._zoom(_ZOOM_STEP)

    @Slot()
    def zoom_all(self) -> None:
        if self._picture is not None:
            self._set_range(self._whole())

    def pan(self, right: int, down: int) -> None:
        """Move the window by a quarter of itself."""
        if self._picture is not None:
            seen = self._window()
            self._set_range(self._inside(seen.translated(right * seen.width() / 4, down * seen.height() / 4)))

    def _zoom(self, factor: float, about: QPointF | None = None) -> None:
        if self._picture is None:
            return
        seen, whole = self._window(), self._whole()
        if about is None:
            cell = self._snapshot.selected if self._snapshot else None
            about = QPointF(cell.col + 0.5, cell.row + 0.5) if cell is not None else seen.center()
            if not seen.contains(about):
                about = seen.center()
        width = min(max(seen.width() * factor, min(2, whole.width())), whole.width())
        height = min(max(seen.height() * factor, min(2, whole.height())), whole.height())
        left = about.x() - (about.x() - seen.left()) * width / seen.width()
        top = about.y() - (about.y() - seen.top()) * height / seen.height()
        self._set_range(self._inside(QRectF(left, top, width, height)))

    def _inside(self, cells: QRectF) -> QRectF:
        whole = self._whole()
        left = min(max(cells.left(), 0.0), whole.width() - cells.width())
        top = min(max(cells.top(), 0.0), whole.height() - cells.height())
        return QRectF(left, top, cells.width(), cells.height())

    # --------------------------------------------------------------------------------------------------------- mouse

    def _panel_at(self, position: QPointF) -> _Panel | None:
        for panel in self._panels:
            if panel.place is not None and QRectF(*panel.place.map_rect).contains(position):
                return panel
        return None

    def _cell_at(self, position: QPointF) -> Cell | None:
        panel = self._panel_at(position)
        if panel is None:
            return None
        point = panel.box.mapSceneToView(position)
        rows, cols = layout.map_shape(self._picture.outline)  # type: ignore[union-attr, arg-type]
        row, col = int(point.y()), int(point.x())
        return Cell(row, col) if 0 <= row < rows and 0 <= col < cols else None

    @Slot(object)
    def _on_mouse_moved(self, position: QPointF) -> None:
        cell = self._cell_at(position)
        if cell != self._hovered:
            self._hovered = cell
            self.cell_hovered.emit(cell)

    @Slot(object)
    def _on_mouse_clicked(self, event: object) -> None:
        if event.button() != Qt.MouseButton.LeftButton:  # type: ignore[attr-defined]
            return
        position = event.scenePos()  # type: ignore[attr-defined]
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        cell = self._cell_at(position)
        if event.double() and cell is not None:  # type: ignore[attr-defined]
            self._zoom(1 / _ZOOM_STEP**2, QPointF(cell.col + 0.5, cell.row + 0.5))
            return
        if cell is not None and self._is_large_or_grid(position):
            self.cell_selected.emit(cell)
            return
        for panel in self._panels:
            if panel.place is not None and QRectF(*panel.place.outer).contains(position):
                self._toggle_large(panel)
                return

    def _is_large_or_grid(self, position: QPointF) -> bool:
        """Whether a click at ``position`` means a cell: thumbnails beside a large head only choose a head."""
        large_layout = self._picture is not None and self._large_head(self._picture) is not None
        large_layout = large_layout and len(self._panels) > 1
        return not large_layout or self._panel_at(position) is self._panels[0]

    def _toggle_large(self, panel: _Panel) -> None:
        if self._picture is None or not panel.name.startswith("head:") or self._snapshot is None:
            return
        head = int(panel.name.removeprefix("head:"))
        view = self._snapshot.view
        wanted = None if view.head == head else head
        self.view_edited.emit(View(stage=view.stage, head=wanted, norm=view.norm, colours=view.colours))

    def leaveEvent(self, event: object) -> None:
        if self._hovered is not None:
            self._hovered = None
            self.cell_hovered.emit(None)
        super().leaveEvent(event)  # type: ignore[arg-type]

    # ----------------------------------------------------------------------------------------------------- painting

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture is None:
            painter = QPainter(self)
            painter.setPen(self._style.muted)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.tr("loading torch …"))
            painter.end()
        super().paintEvent(event)

    def paint_surroundings(self, painter: QPainter) -> None:
        """What lies around the maps; called by the scene."""
        picture, look, plan, snapshot = self._picture, self._look, self._plan, self._snapshot
        if picture is None or picture.outline is None or look is None or plan is None or snapshot is None:
            return
        seen = self._window()
        window = (seen.top(), seen.bottom(), seen.left(), seen.right())
        for panel in self._panels:
            if panel.place is not None:
                paint.paint_surroundings(
                    painter, panel.place, window, panel.frame, picture.outline, look.style,
                    selected=snapshot.selected, cross=snapshot.cell, panel=panel.name,
                )  # fmt: skip
        first = next((panel.frame for panel in self._panels if panel.frame is not None), None)
        if first is not None:
            paint.paint_colour_bar(painter, plan, first, picture.view, look.style)
            paint.paint_legend(painter, plan, picture, look.style)


def _told(frame: Frame | None) -> object:
    """What the surroundings tell of a frame."""
    if frame is None:
        return None
    sums = frame.row_sums.tobytes() if frame.row_sums is not None and len(frame.row_sums) <= 256 else frame.generation
    return frame.panel, frame.level, frame.scale, frame.counts, frame.rows, frame.cols, sums


def _stepped(pixels: float) -> int:
    return max(_PIXEL_STEP, int(pixels) // _PIXEL_STEP * _PIXEL_STEP)


def _span(first: float, last: float) -> tuple[int, int]:
    """Whole cells that cover a window, with an eighth more on each side for the next pan."""
    margin = (last - first) / 8
    return max(0, int(first - margin)), int(last + margin) + 1
