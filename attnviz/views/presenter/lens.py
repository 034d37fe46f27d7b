"""A page of the window, enlarged: the page itself, so that its study and its buttons go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRectF, Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QPainter, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView, QHBoxLayout, QScrollArea, QWidget

from attnviz.lesson_files import LessonStep
from attnviz.views.pages.page import Page
from attnviz.views.plot import PlotView

_ROOM_TYPE: Final = 28.0
"""Pixels of the type in a view of 1280 × 800."""
_TYPE, _CHART_TYPE = 15.0, 12.0
"""Pixels of a page's words and of its charts' at a scale of 1."""
_SCALES: Final = (1.0, 0.92, 0.85, 0.78, 0.72, 0.66)
"""What is too high for the view is made smaller, so many times its scale; if that does not help it scrolls."""
_MARGIN: Final = 6
_PASSES: Final = 3

_GALLERY: Final = ("", "exhibits", "neg-inf")
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"rounds": ("map", "counts"), "ahead": ("plot", "table"), "compare": ("maps", "numbers")}
)
"""Parts of a page that are to be seen together: each begins a column, where the page has all of the view."""
_FIRST: Final[Mapping[str, str]] = MappingProxyType(
    {
        "masks": "exhibits", "dropout": "row", "heads": "forms", "rounds": "map", "exam": "plot", "ahead": "plot",
        "compare": "maps",
    }
)  # fmt: skip
"""The part that a step sees which names none."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is to be in sight of a page: the first of its parts in each column, and how much enlarged."""

    parts: tuple[str, ...] = ()
    scale: float = _ROOM_TYPE / _TYPE


def leaves_the_map(step: LessonStep) -> bool:
    """Whether a step's page has all of the view: not where it tells of the window's own map, which is asked about."""
    own = step.page == "dropout" or (step.page == "masks" and step.part not in _GALLERY)
    return step.look == "page" and not own


def sight_of(step: LessonStep) -> Sight:
    """What a step lets a class see of its page."""
    page, part = step.page, step.part
    if page == "masks" and part in _GALLERY:
        return Sight(("exhibits",), 1.6)  # five maps in a row
    if page in _COLUMNS and leaves_the_map(step):
        return Sight(_COLUMNS[page])
    return Sight((part or _FIRST.get(page, ""),))


class Lens(QWidget):
    """Shows a `Page` that it takes out of the column beside the maps, until `give_back`. The wheel goes through it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.page: Page | None = None
        self._home: QScrollArea | None = None
        self._sight, self._factor = Sight(), 1.0
        self._spans: tuple[tuple[int, int], ...] = ()
        self._fitting = False
        self._soon = QTimer(self, singleShot=True, interval=0)  # once what has come has its place
        self._soon.timeout.connect(self._on_moved)
        self._scene = QGraphicsScene(self)
        self._frame = QWidget()  # around the page, which would have a window's sizes were it one itself
        self._scene.addWidget(self._frame)
        self._frame.hide()
        self.views = (_view(self._scene), _view(self._scene))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        for view in self.views:
            row.addWidget(view, 1)

    def show_page(self, page: Page, sight: Sight, factor: float) -> None:
        """Show ``page`` from what is to be in ``sight`` on, ``factor`` times as large as in a view of 1280 × 800."""
        if page is not self.page:
            self.give_back()
            self._take(page)
        self._sight, self._factor = sight, factor
        for view, there in zip(self.views, (True, len(sight.parts) > 1), strict=True):
            view.setVisible(there)
        self._begin()

    def give_back(self) -> None:
        """Put the page back where it was."""
        page, home = self.page, self._home
        self.page = self._home = None
        if page is None or home is None:
            return
        page.removeEventFilter(self)
        for plot in page.findChildren(PlotView):
            plot.unit = 1.0
        home.setWidget(page)
        page.show()

    def _take(self, page: Page) -> None:
        viewport = page.parentWidget()
        home = viewport.parentWidget() if viewport is not None else None
        if isinstance(home, QScrollArea):
            self.page, self._home = page, home
            home.takeWidget().setParent(self._frame)
            page.show()
            page.installEventFilter(self)

    # --------------------------------------------------------------------------------------------------------- layout

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._begin()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._frame.show()
        self._begin()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._frame.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A study's answer may have given the page's parts other places."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self.page and not self._fitting:
            self._soon.start()
        return super().eventFilter(watched, event)

    def _begin(self) -> None:
        """Lay the page out anew, once all around it has its place."""
        self._spans = ()
        self._soon.start()

    @Slot()
    def _on_moved(self) -> None:
        if self.page is not None and self._spans != self._spans_of(self.page):
            self._fit()

    def _fit(self) -> None:
        """Lay the page out as large as its parts have room, and bring them into sight where they have moved."""
        page, box = self.page, self.layout()
        if page is None or box is None or not self.isVisible():
            return
        box.activate()
        room, scale, spans = self.views[0].viewport().size(), 1.0, self._spans
        self._fitting = True  # what follows asks for layouts itself
        for less in (*_SCALES, 1.0):
            scale = self._laid_out(page, room.width(), less)
            spans = self._spans_of(page)
            if (max((bottom - top for top, bottom in spans), default=0) + 2 * _MARGIN) * scale <= room.height():
                break
        self._fitting = False
        for plot in page.findChildren(PlotView):
            plot.unit = max(_ROOM_TYPE * self._factor / (_CHART_TYPE * scale), 1.0)
        self._scene.setSceneRect(QRectF(0, 0, page.width(), page.height()))
        for view in self.views:
            view.resetTransform()
            view.scale(scale, scale)
        if spans != self._spans:
            self._spans = spans
            for view, (top, _) in zip(self.views, spans, strict=False):
                view.verticalScrollBar().setValue(round((top - _MARGIN) * scale))

    def _laid_out(self, page: Page, pixels: int, less: float) -> float:
        """Give the page the width that fills ``pixels`` at ``less`` than its scale, and all its height.

        Returns the scale.
        """
        wanted = round(pixels / (self._sight.scale * self._factor * less))
        width, layout = max(wanted, page.minimumSizeHint().width(), 1), page.layout()
        inside = [page, *page.findChildren(QWidget)]
        for _ in range(_PASSES):  # what stands in as many columns as fit has its height once it has its width
            for widget in inside:
                own = widget.layout()
                if own is not None:
                    own.invalidate()
            height = page.minimumSizeHint().height()
            if layout is not None:
                height = max(layout.totalHeightForWidth(width), height)
            self._frame.resize(width, height)
            page.setGeometry(0, 0, width, height)
            for widget in inside:
                QCoreApplication.sendPostedEvents(widget, QEvent.Type.LayoutRequest.value)
        return pixels / width

    def _spans_of(self, page: Page) -> tuple[tuple[int, int], ...]:
        """Where each part of the page that is to be in sight begins and ends; 0 where it is not there."""
        return tuple(_span(page, name) for name in self._sight.parts)


def _span(page: Page, name: str) -> tuple[int, int]:
    shown = [widget for widget in page.parts.get(name, ()) if widget.isVisibleTo(page)]
    if not shown:
        return 0, 0
    ends = [(widget.mapTo(page, QPoint(0, 0)).y(), widget.height()) for widget in shown]
    return ends[0][0], max(top + height for top, height in ends)


def _view(scene: QGraphicsScene) -> QGraphicsView:
    view = QGraphicsView(scene)
    view.setFrameShape(QFrame.Shape.NoFrame)
    view.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keys stay the map's
    view.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
    view.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
    view.setStyleSheet("QGraphicsView { background: transparent; }")
    return view
