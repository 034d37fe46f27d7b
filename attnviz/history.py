"""Undo and redo of a window's specs. Pure: no clock, no Qt; whoever records an edit says when it was made."""

from __future__ import annotations

from attnviz.spec import FIELDS, AttentionSpec, View

_MOST = 200
_ONE_GESTURE_S = 0.8
"""Edits of the same fields that follow one another within so many seconds are one step, such as a drag's."""
_DRAGGED = frozenset({"source", "scale", "soft_cap", "fill", "mask_shape", "dropout", "top_k"})
"""The fields that a hand draws from one value to the next."""

Scene = tuple[AttentionSpec, View]


class History:
    """The scenes before and after the present one. A scene that differs in its view alone is no step of its own."""

    def __init__(self, scene: Scene) -> None:
        self._now = scene
        self._past: list[Scene] = []
        self._future: list[Scene] = []
        self._last: tuple[frozenset[str], float] | None = None

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        return bool(self._future)

    def record(self, spec: AttentionSpec, view: View, at: float) -> bool:
        """Take an edit made ``at`` seconds of a steady clock; returns whether it goes on with the gesture before."""
        if spec == self._now[0]:
            self._now = spec, view
            return False
        changed = frozenset(field for field in FIELDS if getattr(spec, field) != getattr(self._now[0], field))
        drawn = changed <= _DRAGGED and self._last is not None and self._last[0] == changed
        same_gesture = drawn and self._last is not None and at - self._last[1] < _ONE_GESTURE_S
        if not (same_gesture and self._past):
            self._past.append(self._now)
            del self._past[:-_MOST]
        self._now, self._future, self._last = (spec, view), [], (changed, at)
        return same_gesture

    def replace(self, spec: AttentionSpec, view: View) -> None:
        """The present scene is another, by no edit of a person's: no step."""
        self._now = spec, view

    def undo(self) -> Scene | None:
        """The scene before, which is then the present one; None where there is none."""
        return self._step(self._past, self._future)

    def redo(self) -> Scene | None:
        """The scene that was undone last, which is then the present one; None where there is none."""
        return self._step(self._future, self._past)

    def _step(self, out_of: list[Scene], into: list[Scene]) -> Scene | None:
        if not out_of:
            return None
        into.append(self._now)
        self._now, self._last = out_of.pop(), None
        return self._now
