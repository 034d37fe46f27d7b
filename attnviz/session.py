"""Pure state of one window: what was asked for, what has come, what stands on the screen. No Qt, no torch.

The controller calls `begin`, `accept` and the small setters on the GUI thread, then hands `snapshot()` to the views.
`accept` is the only gate: a message of another generation is dropped there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import msgspec

from attnviz.frames import (
    DeviceInfo,
    Failure,
    Finished,
    Frame,
    Message,
    Outline,
    ProbeAnswer,
    Progress,
    RowAnswer,
    RowStory,
)
from attnviz.spec import MAX_TOKENS, AttentionSpec, View


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of every head's map: the query's row and the key's column."""

    row: int
    col: int


@dataclass(frozen=True, slots=True)
class Window:
    """The cells in sight, as half-open ranges that may be fractional while a hand is panning."""

    top: float
    bottom: float
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Problem:
    """An edit that was refused: the field's name and the sentence to show beside its control."""

    field: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One computation as far as it has come: its frames by panel, and the numbers about it."""

    spec: AttentionSpec
    view: View
    generation: int
    outline: Outline | None = None
    frames: Mapping[str, Frame] = field(default_factory=lambda: MappingProxyType({}))
    finished: Finished | None = None
    backdrops: Mapping[str, Frame] = field(default_factory=lambda: MappingProxyType({}))
    """Frames of the whole map at a coarse level, by panel, for what a frame of a window does not cover."""

    @property
    def heads(self) -> tuple[Frame, ...]:
        """Frames of the large panels in panel order, those that have come."""
        panels = self.outline.panels if self.outline else ()
        return tuple(self.frames[panel] for panel in panels if panel in self.frames)

    @property
    def complete(self) -> bool:
        return self.finished is not None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the views may show, frozen.

    ``spec`` and ``view`` are what was last asked for; ``picture`` is what can be shown: while a new generation has
    sent nothing yet, it is still the last good one, and ``stale`` is True. ``last`` is the last complete picture of a
    *different* spec, ``pinned`` the one that was pinned as A; the heads show `before` while ``show_before`` (Space
    held). ``story`` is the selected row stage by stage, now and before. ``redraws`` says that dropout draws again and
    again.
    """

    spec: AttentionSpec
    view: View
    picture: Picture | None = None
    stale: bool = False
    last: Picture | None = None
    show_before: bool = False
    running: bool = False
    progress: Progress | None = None
    failure: Failure | None = None
    problem: Problem | None = None
    devices: tuple[DeviceInfo, ...] = ()
    selected: Cell | None = None
    hovered: Cell | None = None
    probe: ProbeAnswer | None = None
    row: RowAnswer | None = None
    story: RowStory | None = None
    pinned: Picture | None = None
    redraws: bool = False
    can_undo: bool = False
    can_redo: bool = False
    window: Window | None = None
    show_numbers: bool = True
    decimals: int | None = None

    @property
    def before(self) -> Picture | None:
        """What the present picture is compared with: A if it is pinned, else the state before the last change."""
        return self.pinned or self.last

    @property
    def shown(self) -> Picture | None:
        """The picture that stands on the screen: the one before while Space is held."""
        return self.before if self.show_before and self.before is not None else self.picture

    @property
    def looked_at(self) -> View:
        """The view with the window of whole cells in sight, for a file or an export."""
        if self.window is None:
            return msgspec.structs.replace(self.view, rows=None, cols=None)
        rows, cols = (
            _whole_cells(self.window.top, self.window.bottom),
            _whole_cells(self.window.left, self.window.right),
        )
        return msgspec.structs.replace(self.view, rows=rows, cols=cols)

    @property
    def cell(self) -> Cell | None:
        """The cell under the cross-hair: the hovered one, else the selected one."""
        return self.hovered or self.selected


def _whole_cells(first: float, last: float) -> tuple[int, int] | None:
    """The nearest half-open range of at least one whole cell; None for an axis that is whole without a known end."""
    if math.isinf(last):
        return None if first == 0 else (math.floor(first + 0.5), MAX_TOKENS)
    start = math.floor(first + 0.5)
    return start, max(math.floor(last + 0.5), start + 1)


def window_of(view: View) -> Window | None:
    """The window that a view's ranges ask for, None for the whole map; an axis without a range has no end yet."""
    if view.rows is None and view.cols is None:
        return None
    (top, bottom), (left, right) = view.rows or (0, math.inf), view.cols or (0, math.inf)
    return Window(float(top), float(bottom), float(left), float(right))


def _inside(window: Window | None, shape: tuple[int, ...]) -> Window | None:
    """What of a window lies in a map of ``shape`` (…, rows, columns); None where it is the whole map or nothing."""
    if window is None or len(shape) < 2:
        return window
    rows, cols = float(shape[-2]), float(shape[-1])
    part = Window(window.top, min(window.bottom, rows), window.left, min(window.right, cols))
    if part == Window(0.0, rows, 0.0, cols) or part.top >= part.bottom or part.left >= part.right:
        return None
    return part


class Session:
    """The state behind one window. Thread: the GUI's."""

    def __init__(self, spec: AttentionSpec, view: View) -> None:
        window = window_of(view)
        view = msgspec.structs.replace(view, rows=None, cols=None)  # the window alone says what is in sight
        self._snapshot = Snapshot(spec=spec, view=view, window=window)
        self._generation = 0
        self._windowed = False
        self._incoming = Picture(spec=spec, view=view, generation=0)
        self.last_good_device = "cpu"
        self._changed_at = 0  # the generation since which spec and view are what they are

    @property
    def generation(self) -> int:
        return self._generation

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def begin(self, spec: AttentionSpec, view: View, *, windowed: bool = False, same_gesture: bool = False) -> int:
        """Start a generation; what stands on the screen stays and is marked old. Returns its number.

        ``windowed`` says that a part of the map is asked for, so that frames of the whole map only stand behind it. In
        the ``same_gesture``, such as a drag, the state before stays that from before its beginning.
        """
        shown = self._snapshot.picture
        last = self._snapshot.last
        if shown is not None and shown.complete and shown.spec != spec and not (same_gesture and last is not None):
            last = shown
        same = (spec, view) == (self._snapshot.spec, self._snapshot.view)  # only the screen changed
        failure = self._snapshot.failure if same else None
        kept = same and shown is not None and (shown.spec, shown.view) == (spec, view)
        probe, row = (self._snapshot.probe, self._snapshot.row) if kept else (None, None)
        self._generation += 1
        if not same:
            self._changed_at = self._generation
        self._windowed = windowed
        self._incoming = Picture(spec=spec, view=view, generation=self._generation)
        self._snapshot = replace(
            self._snapshot, spec=spec, view=view, last=last, stale=shown is not None, running=True, progress=None,
            failure=failure, problem=None, probe=probe, row=row,
        )  # fmt: skip
        return self._generation

    def accept(self, message: Message) -> bool:
        """Take a message of the current generation; drop any other. Returns whether it was taken."""
        if message.generation != self._generation:
            return False
        match message:
            case Outline():
                frames, backdrops = self._kept_frames(message)
                self._incoming = replace(self._incoming, outline=message, frames=frames, backdrops=backdrops)
                window = _inside(self._snapshot.window, _map_shape(message))
                self._snapshot = replace(self._snapshot, window=window)
            case Frame():
                self._take_frame(message)
                self._put_up()
            case Progress():
                over = message.done >= message.total if message.background else not self._snapshot.running
                self._snapshot = replace(self._snapshot, progress=None if over else message)
            case Finished():
                self._incoming = replace(self._incoming, finished=message)
                self.last_good_device = self._incoming.spec.device
                self._put_up()
                self._snapshot = replace(self._snapshot, running=False, progress=None)
            case Failure():
                self._snapshot = replace(self._snapshot, failure=message)
                if message.ends_picture:
                    self._snapshot = replace(self._snapshot, running=False, progress=None)
            case RowAnswer():
                if self._snapshot.selected is not None and self._snapshot.selected.row == message.row:
                    self._snapshot = replace(self._snapshot, row=message)
            case RowStory():
                if self._snapshot.selected is not None and self._snapshot.selected.row == message.now.row:
                    self._snapshot = replace(self._snapshot, story=message)
            case ProbeAnswer():
                if self._snapshot.cell == Cell(message.row, message.col):
                    self._snapshot = replace(self._snapshot, probe=message)
        return True

    def _kept_frames(self, outline: Outline) -> tuple[Mapping[str, Frame], Mapping[str, Frame]]:
        """Frames and backdrops that stay in sight until their successors come: of the same panels of the same size.

        Each frame carries its own generation, so a view can tell the old ones.
        """
        shown = self._snapshot.picture
        nothing: Mapping[str, Frame] = MappingProxyType({})
        if shown is None or shown.outline is None:
            return nothing, nothing
        same = shown.outline.panels == outline.panels and shown.outline.stage == outline.stage
        if not same or (shown.outline.n_queries, shown.outline.n_keys) != (outline.n_queries, outline.n_keys):
            return nothing, nothing
        names = {stage.name for stage in outline.stages}
        frames = {
            panel: frame
            for panel, frame in shown.frames.items()
            if not panel.startswith("thumbnail:") or frame.stage in names
        }
        return MappingProxyType(frames), shown.backdrops

    def _take_frame(self, frame: Frame) -> None:
        """Put ``frame`` in its place: of the whole map where a part is asked for, behind the part that stands there."""
        frames, backdrops = self._incoming.frames, self._incoming.backdrops
        outline = self._incoming.outline
        whole = False
        if outline is not None and frame.panel in outline.panels:
            whole = (frame.rows, frame.cols) == tuple((0, length) for length in _map_shape(outline)[-2:])
        if whole:
            backdrops = MappingProxyType({**backdrops, frame.panel: frame})
        elif frame.panel in backdrops and backdrops[frame.panel].generation < self._changed_at:
            # what lies behind is of another spec or view: beside the new frame it would be taken for its surroundings
            backdrops = MappingProxyType({panel: kept for panel, kept in backdrops.items() if panel != frame.panel})
        there = frames.get(frame.panel)
        if not (whole and self._windowed and there is not None and self._is_sharper(there, frame)):
            frames = MappingProxyType({**frames, frame.panel: frame})
        self._incoming = replace(self._incoming, frames=frames, backdrops=backdrops)

    def _is_sharper(self, there: Frame, whole: Frame) -> bool:
        """Whether ``there`` shows the same numbers as ``whole`` with fewer cells a pixel.

        Its own generation tells: the picture in sight may hold one head's frame of this spec, another's of the last.
        """
        return there.level < whole.level and there.generation >= self._changed_at

    def _put_up(self) -> None:
        shown, now = self._snapshot.picture, self._incoming
        probe, row = self._snapshot.probe, self._snapshot.row
        if shown is not None and shown.generation != now.generation:  # the same numbers: `begin` kept them if they are
            probe = None if probe is None else replace(probe, generation=now.generation)
            row = None if row is None else replace(row, generation=now.generation)
        self._snapshot = replace(self._snapshot, picture=now, stale=False, probe=probe, row=row)

    def update(self, **changes: object) -> bool:
        """Set fields that need no computing (selection, hover, window …). Returns whether anything changed."""
        changed = replace(self._snapshot, **changes)  # type: ignore[arg-type]
        if changed == self._snapshot:
            return False
        self._snapshot = changed
        return True


def _map_shape(outline: Outline) -> tuple[int, ...]:
    """The shape of the shown stage's array, its rows and columns last."""
    return next((stage.shape for stage in outline.stages if stage.name == outline.stage), ())
