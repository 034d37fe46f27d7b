"""Cells of a typed matrix under a hand: double-click and type, or Alt and the wheel or a drag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from attnviz.frames import CellClass
from attnviz.session import Cell, Snapshot
from attnviz.spec import QUERY_KEY_STAGES, TypedScores, TypedWeights, is_typed
from attnviz.views.cell_editor import DIGITS, CellEdit, CellEditor
from attnviz.views.navigation import Shape

_STEP: Final = 0.1
_LARGE_STEP: Final = 1.0
_PIXELS: Final = 3.0  # of a drag, for a step
_NOTCH: Final = 120  # eighths of a degree, for a step
_ALT, _SHIFT = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ShiftModifier


def is_editable(snapshot: Snapshot | None) -> bool:
    """Whether the cells on the screen are those of a typed matrix, so that a number behind them can be typed."""
    if snapshot is None or snapshot.show_before or snapshot.picture is None:
        return False
    return is_typed(snapshot.spec.source) and snapshot.view.stage in QUERY_KEY_STAGES


def is_masked(snapshot: Snapshot, cell: Cell) -> bool:
    """Whether ``cell`` of the map on the screen is hidden by the mask, so that no number behind it shows."""
    frame = snapshot.picture.heads[0] if snapshot.picture is not None and snapshot.picture.heads else None
    if frame is None or frame.level > 1 or cell.row >= frame.classes.shape[0] or cell.col >= frame.classes.shape[1]:
        return False
    return bool(int(frame.classes[cell.row, cell.col]) & CellClass.MASKED)


def typed_number(snapshot: Snapshot, cell: Cell) -> float | None:
    """The number that was typed for ``cell``; a lesson's from the story of its row, None while that is not at hand."""
    source = snapshot.spec.source
    if isinstance(source, TypedScores | TypedWeights):
        matrix = source.scores if isinstance(source, TypedScores) else source.weights
        inside = cell.row < len(matrix) and cell.col < len(matrix[0])
        return matrix[cell.row][cell.col] if inside else None
    now = snapshot.story.now if snapshot.story is not None else None
    if now is None or now.row != cell.row or now.spec.source != source:
        return None
    scores = now.stages.get("scaled_scores")
    return None if scores is None or cell.col >= len(scores) else float(scores[cell.col])


class CellNudge(QObject):
    """Filters ``widget``: Alt and the wheel, or Alt and a drag up and down, change the cell that ``current`` tells.

    ``current`` is given a point and tells the current typed cell under it, None for none. ``nudged(CellEdit)`` carries
    steps of 0.1, with Shift of 1.
    """

    nudged = Signal(object)

    def __init__(self, widget: QWidget, current: Callable[[QPointF], Cell | None]) -> None:
        super().__init__(widget)
        self._current = current
        self._held: tuple[Cell, float, int] | None = None  # the cell, where it was taken, steps said so far
        self._wheel = 0
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Take what changes a number; everything else goes on to the widget."""
        if isinstance(event, QWheelEvent) and event.modifiers() & _ALT:
            return self._on_wheel(event)
        if isinstance(event, QMouseEvent):
            return self._on_mouse(event)
        return False

    def _on_wheel(self, event: QWheelEvent) -> bool:
        cell = self._current(event.position())
        if cell is None:
            return False
        delta = event.angleDelta()
        self._wheel += delta.y() or delta.x()  # Alt turns a wheel sideways on some systems
        steps = int(self._wheel / _NOTCH)
        self._wheel -= steps * _NOTCH
        self._say(cell, steps, event.modifiers())
        event.accept()
        return True

    def _on_mouse(self, event: QMouseEvent) -> bool:
        kind, left = event.type(), event.button() == Qt.MouseButton.LeftButton
        if kind == QEvent.Type.MouseButtonPress and left and event.modifiers() & _ALT:
            cell = self._current(event.position())
            self._held = None if cell is None else (cell, event.position().y(), 0)
            return self._held is not None
        if self._held is None:
            return False
        if kind == QEvent.Type.MouseMove:
            cell, start, said = self._held
            steps = int((start - event.position().y()) / _PIXELS)
            self._held = cell, start, steps
            self._say(cell, steps - said, event.modifiers())
            return True
        if kind == QEvent.Type.MouseButtonRelease and left:
            self._held = None
            return True
        return False

    def _say(self, cell: Cell, steps: int, modifiers: Qt.KeyboardModifier) -> None:
        if steps:
            size = _LARGE_STEP if modifiers & _SHIFT else _STEP
            self.nudged.emit(CellEdit(cell.row, cell.col, None, round(steps * size, DIGITS)))


class TypedCells(QObject):
    """The typed cells of ``widget``: their field, and the hand that changes the current one.

    ``cell_at`` tells the cell under a point, ``place_of`` where a cell lies (None: out of sight). ``edited(CellEdit)``
    and ``selected(Cell)`` say what a person did.
    """

    edited = Signal(object)
    selected = Signal(object)

    def __init__(
        self, widget: QWidget, cell_at: Callable[[QPointF], Cell | None], place_of: Callable[[Cell], QRectF | None]
    ) -> None:
        super().__init__(widget)
        self._cell_at, self._place_of = cell_at, place_of
        self._snapshot: Snapshot | None = None
        self._shape: Shape = (0, 0)
        self._unit = 1.0
        self.editor = CellEditor(widget)
        self.editor.taken.connect(self.edited)
        self.editor.moved.connect(self._on_moved)
        self._nudge = CellNudge(widget, self._current_under)
        self._nudge.nudged.connect(self.edited)

    def present(self, snapshot: Snapshot, shape: Shape, unit: float) -> None:
        """The matrix on the screen, (rows, columns), and the scale of its type; the open field goes along with it."""
        self._snapshot, self._shape, self._unit = snapshot, shape, unit
        if self.editor.isHidden():
            return
        cell = self.editor.cell
        place = self._place_of(cell) if is_editable(snapshot) and cell.row < shape[0] and cell.col < shape[1] else None
        if place is None:
            self.editor.close_field()
        else:
            self.editor.put_over(place)

    @property
    def on(self) -> bool:
        """Whether the cells on the screen can be typed."""
        return is_editable(self._snapshot)

    def edit(self, cell: Cell) -> bool:
        """Open the field over ``cell``. False where it cannot be typed or is out of sight."""
        place = self._place_of(cell) if self.on else None
        if place is None or self._snapshot is None:
            return False
        weights = isinstance(self._snapshot.spec.source, TypedWeights)
        self.editor.open(cell, typed_number(self._snapshot, cell), place, self._unit, weights=weights)
        return True

    def _current_under(self, point: QPointF) -> Cell | None:
        cell = self._cell_at(point) if self.on else None
        return cell if self._snapshot is not None and cell == self._snapshot.selected else None

    @Slot(int)
    def _on_moved(self, step: int) -> None:
        """On to the cell beside this one, at a row's end to the next row."""
        rows, cols = self._shape
        place = self.editor.cell.row * cols + self.editor.cell.col + step
        if not 0 <= place < rows * cols:
            self.editor.close_field()
            return
        cell = Cell(*divmod(place, cols))
        self.selected.emit(cell)
        if not self.edit(cell):
            self.editor.close_field()
