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

from attnviz.frames import DeviceInfo, Failure, Finished, Frame, Message, Outline, ProbeAnswer, Progress, RowAnswer
from attnviz.spec import AttentionSpec, View


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
    sent nothing yet, it is still the last good one, and ``stale`` is True. ``before`` is the last complete picture
    of a *different* spec; the heads show it while ``show_before`` (Space held).
    """

    spec: AttentionSpec
    view: View
    picture: Picture | None = None
    stale: bool = False
    before: Picture | None = None
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
    window: Window | None = None
    show_numbers: bool = True
    decimals: int | None = None

    @property
    def shown(self) -> Picture | None:
        """The picture that stands on the screen: the one before while Space is held."""
        return self.before if self.show_before and self.before is not None else self.picture

    @property
    def looked_at(self) -> View:
        """The view with the window of whole cells in sight, for a file or an export."""
        if self.window is None:
            return msgspec.structs.replace(self.view, rows=None, cols=None)
        rows = math.floor(self.window.top + 0.5), math.floor(self.window.bottom + 0.5)
        cols = math.floor(self.window.left + 0.5), math.floor(self.window.right + 0.5)
        return msgspec.structs.replace(
            self.view, rows=(rows[0], max(rows[1], rows[0] + 1)), cols=(cols[0], max(cols[1], cols[0] + 1))
        )

    @property
    def cell(self) -> Cell | None:
        """The cell under the cross-hair: the hovered one, else the selected one."""
        return self.hovered or self.selected


class Session:
    """The state behind one window. Thread: the GUI's."""

    def __init__(self, spec: AttentionSpec, view: View) -> None:
        self._snapshot = Snapshot(spec=spec, view=view)
        self._generation = 0
        self._incoming = Picture(spec=spec, view=view, generation=0)
        self.last_good_device = "cpu"

    @property
    def generation(self) -> int:
        return self._generation

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def begin(self, spec: AttentionSpec, view: View) -> int:
        """Start a generation; what stands on the screen stays and is marked old. Returns its number."""
        shown = self._snapshot.picture
        before = self._snapshot.before
        if shown is not None and shown.complete and shown.spec != spec:
            before = shown
        same = (spec, view) == (self._snapshot.spec, self._snapshot.view)  # only the screen changed
        failure = self._snapshot.failure if same else None
        self._generation += 1
        self._incoming = Picture(spec=spec, view=view, generation=self._generation)
        self._snapshot = replace(
            self._snapshot, spec=spec, view=view, before=before, stale=shown is not None, running=True, progress=None,
            failure=failure, problem=None, probe=None, row=None,
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
            case Frame():
                frames = MappingProxyType({**self._incoming.frames, message.panel: message})
                self._incoming = replace(self._incoming, frames=frames, backdrops=self._with_backdrop(message))
                self._put_up()
            case Progress():
                self._snapshot = replace(self._snapshot, progress=message)
            case Finished():
                self._incoming = replace(self._incoming, finished=message)
                self.last_good_device = self._incoming.spec.device
                self._put_up()
                self._snapshot = replace(self._snapshot, running=False, progress=None)
            case Failure():
                self._snapshot = replace(self._snapshot, running=False, progress=None, failure=message)
            case RowAnswer():
                if self._snapshot.selected is not None and self._snapshot.selected.row == message.row:
                    self._snapshot = replace(self._snapshot, row=message)
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

    def _with_backdrop(self, frame: Frame) -> Mapping[str, Frame]:
        """Backdrops with ``frame`` among them, if it is of the whole map."""
        outline = self._incoming.outline
        if outline is None or frame.panel not in outline.panels:
            return self._incoming.backdrops
        shape = next((stage.shape for stage in outline.stages if stage.name == frame.stage), ())
        if (frame.rows, frame.cols) != tuple((0, length) for length in shape[-2:]):
            return self._incoming.backdrops
        return MappingProxyType({**self._incoming.backdrops, frame.panel: frame})

    def _put_up(self) -> None:
        self._snapshot = replace(self._snapshot, picture=self._incoming, stale=False)

    def update(self, **changes: object) -> bool:
        """Set fields that need no computing (selection, hover, window …). Returns whether anything changed."""
        changed = replace(self._snapshot, **changes)  # type: ignore[arg-type]
        if changed == self._snapshot:
            return False
        self._snapshot = changed
        return True
