"""Gestures on very long maps in the real window: when the picture first changes, when it is exact, and the memory."""

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QNativeGestureEvent, QPointingDevice, QWheelEvent
from PySide6.QtWidgets import QApplication

from attnviz.session import Cell
from attnviz.spec import RandomQK, edited, make_spec
from attnviz.views.heatmaps import Heatmaps
from tests.benchmarks.arms import Peak, in_own_process, resident, short
from tests.benchmarks.window import frames_there, rest, wait_until, window_on

_MAPS = (("131k", 131_072, 12), ("1M", 1_048_576, 2))
_PATIENCE = 30.0
_OPENING = 90.0
_SETTLED = 0.3  # seconds in which a picture that no longer serves would have been asked for
_LEFT, _NONE = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
_PLAIN = Qt.KeyboardModifier.NoModifier


def gestures(_repeats):
    """Gestures on 131,072 tokens × 12 heads and 1,048,576 × 2 (random queries and keys), a process each, window 1080p.

    A line a gesture, in the order given: ms until the first painting of the heads that differs from the one before
    (other cells in sight or other frames), until the first painting of frames asked for by it (null where those that
    stood serve), and until every head is exact and painted, where the gesture is one after which that takes no
    minutes; null where it did not come in half a minute. What still runs is cancelled by the next gesture.
    The last line is memory: the most the process took, itself included, and that less queries and keys.
    """
    lines = []
    for name, length, heads in _MAPS:
        lines += in_own_process(play, name, length, heads)
    return lines


def play(name, length, heads):
    """All gestures on one map; their lines."""
    spec = make_spec(RandomQK(length=length), num_heads=heads, d_out=64 * heads)
    vectors = 2 * heads * length * 64 * 4
    began = time.perf_counter()
    painted = _watch_painting()
    with Peak(), window_on(spec) as program, tempfile.TemporaryDirectory() as folder:
        hand = _Hand(name, program, painted)
        hand.opened(began)
        hand.play_all(Path(folder))
        hand.lines.append({
            "goal": f"gestures-{name}-memory", "most_mb": short(resident("VmHWM") / 1e6),
            "queries_and_keys_mb": short(vectors / 1e6),
            "beyond_them_mb": short((resident("VmHWM") - vectors) / 1e6),
        })  # fmt: skip
        program.controller.cancel()
    return hand.lines


class _Painting(NamedTuple):
    """When it ended, the window and frames that it showed, their generations, and whether all are exact."""

    when: float
    shown: tuple[object, ...]
    newest: int
    oldest: int
    exact: bool


def _ms(start, when):
    return None if when is None else (when - start) * 1000


def _watch_painting():
    """The paintings of the heads from now on: a list that grows."""
    painted, paint = [], Heatmaps.paintEvent

    def watched(self, event):
        paint(self, event)
        panels = self._panels
        frames = tuple((panel.name, id(panel.frame), id(panel.backdrop)) for panel in panels)
        own = [panel.frame.generation if panel.frame else 0 for panel in panels]
        exact = bool(own) and all(panel.frame is not None and panel.frame.exact for panel in panels)
        painted.append(
            _Painting(time.perf_counter(), (self._window(), frames), max(own, default=0), min(own, default=0), exact)
        )

    Heatmaps.paintEvent = watched
    return painted


class _Hand:
    """Makes gestures and notes when what they ask for is painted."""

    def __init__(self, name, program, painted):
        self.lines = []
        self._name, self._program, self._painted = name, program, painted
        self._heads = program.window.heatmaps

    def opened(self, began):
        """The window's first painting, the first frame of any head, and the first whole picture."""
        QApplication.processEvents()
        shown = time.perf_counter() - began
        wait_until(lambda: frames_there(self._program) > 0, self._program, _OPENING)
        first = time.perf_counter() - began
        every = self._program.session.snapshot().spec.num_heads
        whole = wait_until(lambda: frames_there(self._program) == every, self._program, _OPENING)
        self._heads.repaint_now()
        self._say("opens", window_ms=shown * 1000, first_head_ms=first * 1000,
                  whole_picture_ms=(time.perf_counter() - began) * 1000 if whole else None)  # fmt: skip
        rest(3)  # the previews

    def _say(self, gesture, **figures):
        said = {key: None if value is None else short(value) for key, value in figures.items()}
        self.lines.append({"goal": f"gestures-{self._name}-{gesture}", **said})

    def do(self, gesture, act, *, exact=True):
        """One gesture; with ``exact`` it is waited for until the picture is, else only until its frames come."""
        before = self._painted[-1].shown if self._painted else None
        generation = self._program.session.generation
        mark, start = len(self._painted), time.perf_counter()
        act()
        found = dict.fromkeys(("changed", "new", "exact") if exact else ("changed", "new"))

        def look():
            last = self._last_generation()
            for one in self._painted[mark:]:
                new = one.newest > generation
                is_last = one.exact and one.oldest == last and one.shown[0] == self._heads._window()
                for key, true in ("changed", one.shown != before), ("new", new), ("exact", is_last):
                    if true and found.get(key, 0) is None:
                        found[key] = one.when
            changed, now = found["changed"], time.perf_counter()
            serves = changed is not None and now - changed > _SETTLED and self._nothing_asked_since(generation)
            return found["exact" if exact else "new"] is not None or (not exact and serves)

        wait_until(look, self._program, _PATIENCE)
        self._say(gesture, **{f"{key}_ms": _ms(start, when) for key, when in found.items()})
        rest(0.3)

    def _nothing_asked_since(self, generation):
        """Whether nothing newer has been asked for, nor is about to be."""
        program = self._program
        waiting = program.controller._waiting is not None or self._heads._asking._timer.isActive()
        return not waiting and program.session.generation == generation

    def _last_generation(self):
        """The generation that stands complete with nothing newer asked for or about to be; None if there is none."""
        picture = self._program.session.snapshot().picture
        stands = picture is not None and picture.complete and self._nothing_asked_since(picture.generation)
        return picture.generation if stands else None

    # ------------------------------------------------------------------------------------------------------- gestures

    def play_all(self, folder):
        heads, program = self._heads, self._program
        length = program.session.snapshot().picture.outline.n_keys
        act = program.window.actions_by_name
        self.probe("hover over the whole map")
        self.do("wheel, a notch in", partial(self._wheel, 1), exact=False)
        self.do("pinch", self._pinch, exact=False)
        self.do("double-click", self._double_click, exact=False)
        self.do("pan, Ctrl+Right", act["pan_right"].trigger, exact=False)
        self.do("drag", self._drag, exact=False)
        self.do("click in the small map", self._click_minimap, exact=False)
        middle = Cell(length * 3 // 4, length // 2)
        self.do("go to a token", lambda: self._go_to(middle))
        self.do("pan at 1:1", act["pan_left"].trigger)
        self.do("wheel at 1:1, a notch out", partial(self._wheel, -1))
        self.do("zoom step at 1:1", act["zoom_in"].trigger)
        self.do("zoom to single cells", partial(self._zoom_to_cells, middle))
        self._check_cells(*self.probe("hover over a single cell"))
        spec = program.controller.wanted()[0]
        edit = program.controller.edit_spec
        self.do("mask changed, single cells", lambda: edit(edited(spec, mask="none")))
        self.do("dropout changed, single cells", lambda: edit(edited(spec, dropout=0.1)))
        edit(spec)
        rest(1)
        self.select(middle)
        self.export(folder)
        self.do("the whole map again", heads.zoom_all, exact=False)
        self.do("mask changed, whole map", lambda: edit(edited(spec, mask="none")), exact=False)
        self.do("dropout changed, whole map", lambda: edit(edited(spec, dropout=0.1)), exact=False)

    def _middle(self, panel=0, across=0.35, down=0.65):
        rect = self._heads._panels[panel].place.map_rect
        return QPointF(rect.x + rect.width * across, rect.y + rect.height * down)

    def _mouse(self, kind, point, button, buttons, target=None):
        target = target or self._heads
        event = QMouseEvent(kind, point, QPointF(target.mapToGlobal(point)), button, buttons, _PLAIN)
        QApplication.sendEvent(target, event)

    def _wheel(self, notches):
        point = self._middle()
        event = QWheelEvent(
            point, QPointF(self._heads.mapToGlobal(point)), QPoint(), QPoint(0, 120 * notches), _NONE, _PLAIN,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(self._heads, event)

    def _pinch(self):
        point = self._middle()
        everywhere = QPointF(self._heads.mapToGlobal(point))
        event = QNativeGestureEvent(
            Qt.NativeGestureType.ZoomNativeGesture, QPointingDevice.primaryPointingDevice(), 2, point, point,
            everywhere, 0.2, QPointF(),
        )  # fmt: skip
        QApplication.sendEvent(self._heads, event)

    def _double_click(self):
        self._mouse(QEvent.Type.MouseButtonDblClick, self._middle(), _LEFT, _LEFT)
        self._mouse(QEvent.Type.MouseButtonRelease, self._middle(), _LEFT, _NONE)

    def _drag(self):
        start = self._middle()
        self._mouse(QEvent.Type.MouseButtonPress, start, _LEFT, _LEFT)
        for step in range(1, 6):
            self._mouse(QEvent.Type.MouseMove, start + QPointF(12 * step, -8 * step), _NONE, _LEFT)
        self._mouse(QEvent.Type.MouseButtonRelease, start + QPointF(60, -40), _LEFT, _NONE)

    def _click_minimap(self):
        small = self._heads._minimap
        point = QPointF(small.width() * 0.4, small.height() * 0.7)
        self._mouse(QEvent.Type.MouseButtonPress, point, _LEFT, _LEFT, small)
        self._mouse(QEvent.Type.MouseButtonRelease, point, _LEFT, _NONE, small)

    def _go_to(self, cell):
        popup = self._program.window.go_to_popup
        popup.popup()
        popup.line.setText(f"{cell.row},{cell.col}")
        popup.line.returnPressed.emit()
        popup.close()

    def _zoom_to_cells(self, cell):
        """Zoom about a cell until at most twelve rows are in sight: numbers then stand in the cells."""
        self._program.controller.select(cell)
        while self._heads._window().bottom - self._heads._window().top > 12:
            self._heads.zoom_in()

    def _check_cells(self, cell, numbers):
        """Whether single cells stand there, and how far they are from the numbers that a probe gave of one of them."""
        frames = self._program.session.snapshot().picture.heads
        level, exact = max(frame.level for frame in frames), all(frame.exact for frame in frames)
        off = None
        if level == 1 and numbers is not None:
            cells = (frame.values[cell.row - frame.rows[0], cell.col - frame.cols[0]] for frame in frames)
            off = max(abs(float(one) - other) for one, other in zip(cells, numbers, strict=True))
        self._say("single cells", level=level, exact=int(exact), furthest_from_the_probe=off)

    def probe(self, gesture):
        """The pointer moves onto a cell: ms until the first head's and every head's number has come; both returned."""
        point = self._middle(down=0.8)
        asked = self._heads._cell_at(point)
        start = time.perf_counter()
        self._mouse(QEvent.Type.MouseMove, point, _NONE, _NONE)
        found, numbers = {"first_head": None, "all_heads": None}, []

        def look():
            answer, now = self._program.session.snapshot().probe, time.perf_counter()
            if answer is not None and Cell(answer.row, answer.col) == asked:
                if found["first_head"] is None and any(value is not None for value in answer.values):
                    found["first_head"] = now
                if found["all_heads"] is None and None not in answer.values:
                    found["all_heads"] = now
                    numbers.append(answer.values)
            return found["all_heads"] is not None

        wait_until(look, self._program, _PATIENCE)
        self._say(gesture, **{f"{key}_ms": _ms(start, when) for key, when in found.items()})
        self._program.controller.hover(None)
        return asked, numbers[0] if numbers else None

    def select(self, cell):
        """A row is selected: ms until all its numbers have come to the strip."""
        start = time.perf_counter()
        self._program.controller.select(None)
        self._program.controller.select(Cell(cell.row - 5, cell.col))

        def has_come():
            row = self._program.session.snapshot().row
            return row is not None and row.row == cell.row - 5

        came = wait_until(has_come, self._program, _PATIENCE)
        self._say("select a row", row_ms=(time.perf_counter() - start) * 1000 if came else None)

    def export(self, folder):
        """A sheet of what is in sight, 1920 × 1080, and the process's peak before and after."""
        ended, before = [], resident("VmHWM")
        self._program.jobs.ended.connect(lambda path, failed: ended.append(failed))
        start = time.perf_counter()
        self._program.exporting.export(folder / "sheet.png", (1920, 1080))
        came = wait_until(lambda: bool(ended), self._program, 4 * _PATIENCE)
        self._say("export of what is in sight", written_ms=(time.perf_counter() - start) * 1000 if came else None,
                  peak_rose_mb=(resident("VmHWM") - before) / 1e6)  # fmt: skip
        if ended and ended[0] is not None:
            self.lines[-1]["failed"] = ended[0]
