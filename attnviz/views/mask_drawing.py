"""A mask drawn by hand: a drag over cells hides them, or shows them again where the first one was hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QWidget

from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    MAX_DRAWN,
    QUERY_KEY_STAGES,
    AttentionSpec,
    Drawn,
    Full,
    MaskFile,
    TypedWeights,
    as_drawn,
    toggled,
    visible_runs,
)
from attnviz.views.navigation import Shape

_LEFT: Final = Qt.MouseButton.LeftButton


def why_not(snapshot: Snapshot | None) -> str:
    """Why no mask can be drawn on what is shown, in a sentence; "" where one can."""
    outline = snapshot.picture.outline if snapshot is not None and snapshot.picture is not None else None
    if snapshot is None or outline is None:
        return _tr("There is no map to draw on yet.")
    if isinstance(snapshot.spec.source, TypedWeights):
        return _tr("The weights are typed, so there is no softmax that a mask could act on.")
    if outline.n_keys > MAX_DRAWN:
        words = _tr("A mask can be drawn for up to {most} tokens, but there are {count}: choose a shape instead.")
        return words.format(most=f"{MAX_DRAWN:,}", count=f"{outline.n_keys:,}")
    if outline.stage not in QUERY_KEY_STAGES:
        return _tr("A mask says which query sees which key: choose a stage from scores to weights.")
    if snapshot.spec.mask != "none" and isinstance(snapshot.spec.mask_shape, MaskFile):
        return _tr("This mask is a file's: choose a shape to draw from.")
    return ""


def _tr(text: str) -> str:
    return QCoreApplication.translate("MaskDrawing", text)


def seen(spec: AttentionSpec, n_queries: int, n_keys: int) -> Drawn:
    """What a drawing of ``spec`` goes on from: what its mask shows, or everything where it has none. Not a file's.

    Raises `SpecError` for a map of more than `MAX_DRAWN` tokens.
    """
    return as_drawn(Full() if spec.mask == "none" else spec.mask_shape, n_queries, n_keys)


def between(first: Cell, last: Cell) -> Iterator[Cell]:
    """The cells on a straight line from one cell to another, both included: a fast hand skips none."""
    rows, cols = last.row - first.row, last.col - first.col
    count = max(abs(rows), abs(cols), 1)
    for step in range(count + 1):
        yield Cell(first.row + round(rows * step / count), first.col + round(cols * step / count))


class MaskPen(QObject):
    """Filters ``widget`` while `active`: clicks and drags draw, and a drag never pans.

    ``under`` is given a point and tells the cell under it, None beside the maps, or a sentence where none can be drawn
    there. ``drawn(Drawn)`` carries the whole mask after each stretch of a gesture, ``refused(str)`` a sentence.
    ``words_changed`` says that `words` are others.
    """

    drawn = Signal(object)
    refused = Signal(str)
    words_changed = Signal()
    active = False  # the class's own, for events that come while the pen is taken apart

    def __init__(self, widget: QWidget, under: Callable[[QPointF], Cell | str | None]) -> None:
        super().__init__(widget)
        self._under = under
        self._snapshot: Snapshot | None = None
        self._mask: Drawn | None = None
        self._visible = False
        self._last: Cell | None = None
        widget.installEventFilter(self)

    @property
    def words(self) -> str:
        """What a drag does, in a line; while one goes on, whether it hides or shows. Nothing while the pen is off."""
        if not self.active:
            return ""
        if self._mask is None:
            return _tr("drag: hides cells; on a hidden cell: shows them; Esc leaves")
        return _tr("this drag shows cells") if self._visible else _tr("this drag hides cells")

    def present(self, snapshot: Snapshot) -> None:
        """What the next gesture goes on from: the mask that was asked for last."""
        self._snapshot = snapshot

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Take the left button; everything else goes on to the widget."""
        if not self.active or not isinstance(event, QMouseEvent):
            return False
        match event.type():
            case QEvent.Type.MouseButtonPress | QEvent.Type.MouseButtonDblClick if event.button() == _LEFT:
                return self._begin(event.position())
            case QEvent.Type.MouseMove if event.buttons() & _LEFT:
                return self._go_on(event.position())
            case QEvent.Type.MouseButtonRelease if event.button() == _LEFT:
                taken = self._mask is not None
                self._mask = self._last = None
                if taken:
                    self.words_changed.emit()
                return taken
        return False

    def _begin(self, point: QPointF) -> bool:
        cell = self._under(point)
        if cell is None:
            return False
        words = cell if isinstance(cell, str) else why_not(self._snapshot)
        if words or isinstance(cell, str):
            self.refused.emit(words)
            return True
        snapshot = self._snapshot
        outline = snapshot.picture.outline if snapshot is not None and snapshot.picture is not None else None
        assert snapshot is not None and outline is not None  # noqa: S101, PT018 (`why_not` looked)
        self._mask = seen(snapshot.spec, outline.n_queries, outline.n_keys)
        self._visible = not is_visible(self._mask, cell, (outline.n_queries, outline.n_keys))
        self._last = cell
        self.words_changed.emit()
        self._draw([cell])
        return True

    def _go_on(self, point: QPointF) -> bool:
        if self._mask is None or self._last is None:
            return False
        cell = self._under(point)
        if isinstance(cell, Cell) and cell != self._last:
            cells = [*between(self._last, cell)][1:]
            self._last = cell
            self._draw(cells)
        return True

    def _draw(self, cells: list[Cell]) -> None:
        assert self._mask is not None  # noqa: S101 (a gesture is going on)
        mask = self._mask
        for row in sorted({cell.row for cell in cells}):
            cols = [cell.col for cell in cells if cell.row == row]
            mask = toggled(mask, row, range(min(cols), max(cols) + 1), self._visible)
        if mask != self._mask:
            self._mask = mask
            self.drawn.emit(mask)


def is_visible(mask: Drawn, cell: Cell, shape: Shape) -> bool:
    """Whether the query of ``cell`` sees its key; ``shape`` is (queries, keys)."""
    return any(first <= cell.col < end for first, end in visible_runs(mask, cell.row, *shape))
