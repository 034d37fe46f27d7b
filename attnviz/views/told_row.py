"""One query's row as a sentence needs it: its weights, which keys its mask hides, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from attnviz.frames import CellClass, Frame, RowStages, RowStory, Values
from attnviz.session import Picture, Snapshot
from attnviz.spec import AttentionSpec, Lesson, MaskFile, Text, TypedWeights, padded_keys, visible_runs

_LONGEST_NAME = 24


@dataclass(frozen=True, slots=True, eq=False)
class ToldRow:
    """A row of weights of ``picture`` in one head.

    ``weights`` float (n_keys,), masked cells 0. ``hidden`` bool (n_keys,) are the keys that the mask's shape keeps
    from the query, with mask *none* too; None where nobody knows them (a file's mask, before its row is read).
    ``masked`` bool (n_keys,) are those that weigh nothing by mask or top-k. ``own`` is the query's place among the
    keys.
    """

    picture: Picture
    row: int
    head: int | None
    own: int
    weights: Values
    masked: npt.NDArray[np.bool_]
    hidden: npt.NDArray[np.bool_] | None

    @property
    def spec(self) -> AttentionSpec:
        return self.picture.spec

    @property
    def n_keys(self) -> int:
        return len(self.weights)

    @property
    def total(self) -> float:
        return float(self.weights.sum(dtype=np.float64))

    @property
    def n_hidden(self) -> int:
        return 0 if self.hidden is None else int(self.hidden.sum())

    @property
    def n_seen(self) -> int:
        return self.n_keys - self.n_hidden

    @property
    def on_hidden(self) -> float:
        """The weight that lies on hidden keys."""
        return 0.0 if self.hidden is None else float(self.weights[self.hidden].sum(dtype=np.float64))

    @property
    def hides_the_future(self) -> bool:
        """Whether what is hidden is the future, all of it and nothing else."""
        return self.hidden is not None and bool(
            self.hidden[self.own + 1 :].all() and not self.hidden[: self.own + 1].any()
        )

    @property
    def hides_padding(self) -> bool:
        """Whether all that is hidden is padding, and some is."""
        first, end = padded_keys(self.spec.mask_shape, self.n_keys)
        return self.hidden is not None and 0 < self.n_hidden == int(self.hidden[first:end].sum())

    @property
    def one_hidden(self) -> int | None:
        """The one hidden key, None where there are none or several."""
        if self.hidden is None or self.n_hidden != 1:
            return None
        return int(np.flatnonzero(self.hidden)[0])

    def name(self, place: int) -> str:
        """The key's gloss or token, cut where it is long."""
        outline = self.picture.outline
        names = (outline.glosses or outline.tokens) if outline is not None else ()
        name = names[place]
        return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def has_words(spec: AttentionSpec) -> bool:
    """Whether tokens are words: those of a text or of a lesson that has one."""
    return isinstance(spec.source, Text) or (isinstance(spec.source, Lesson) and spec.source.name != "one-class")


def frame_of(picture: Picture) -> Frame:
    """The frame that the words are about: that of the large head, else of the first."""
    return picture.frames.get(f"head:{picture.view.head}", picture.heads[0])


def told_row(snapshot: Snapshot, picture: Picture) -> ToldRow | None:
    """The selected row of ``picture``, from its frame, its own answer or its story; None where none has it whole."""
    selected, outline = snapshot.selected, picture.outline
    if selected is None or outline is None or not picture.heads or selected.row >= outline.n_queries:
        return None
    row, frame = selected.row, frame_of(picture)
    stages = _stages(snapshot.story, picture, row, frame.head)
    found = _of_frame(picture, frame, row) or _of_answer(snapshot, picture, frame)
    if found is None and stages is not None and picture.view.stage in stages.stages:
        values = stages.stages[picture.view.stage]
        found = np.where(stages.masked, values.dtype.type(0), values), stages.masked
    if found is None:
        return None
    weights, masked = found
    own = row + outline.n_keys - outline.n_queries
    return ToldRow(picture, row, frame.head, own, weights, masked, _hidden(picture, row, stages, masked))


def row_before(snapshot: Snapshot, now: ToldRow) -> Values | None:
    """The row's weights in the state before, where that differs by the mask alone and had none."""
    before = snapshot.before
    if before is None or before is now.picture or before.spec.mask != "none" or not before.heads:
        return None
    if before.view.stage != now.picture.view.stage:
        return None
    if before.spec.source != now.spec.source:  # another source may fix what this one leaves open
        return None
    if replace(before.spec, mask=now.spec.mask, fill=now.spec.fill) != now.spec:
        return None
    frame = before.frames.get(frame_of(now.picture).panel)
    found = None if frame is None else _of_frame(before, frame, now.row)
    if found is None:
        stages = _stages(snapshot.story, before, now.row, now.head)
        return None if stages is None else stages.stages.get(now.picture.view.stage)
    return found[0]


def _stages(story: RowStory | None, picture: Picture, row: int, head: int | None) -> RowStages | None:
    """The story's stages that are those of this row of ``picture``."""
    known = (story.now, story.before) if story is not None else ()
    return next((s for s in known if s is not None and (s.row, s.head) == (row, head) and s.spec == picture.spec), None)


def _of_frame(picture: Picture, frame: Frame, row: int) -> tuple[Values, npt.NDArray[np.bool_]] | None:
    """A row's weights, masked cells as 0, and which are masked; None where the frame lacks a cell of it."""
    n_keys = picture.outline.n_keys if picture.outline is not None else 0
    whole = frame.level == 1 and frame.cols == (0, n_keys)
    if not whole or not frame.rows[0] <= row < frame.rows[1]:
        return None
    return _without_masked(frame.values[row - frame.rows[0]], frame.classes[row - frame.rows[0]])


def _of_answer(snapshot: Snapshot, picture: Picture, frame: Frame) -> tuple[Values, npt.NDArray[np.bool_]] | None:
    """The selected row as it came by itself, where the map shows but a part or many cells a pixel."""
    answer, selected = snapshot.row, snapshot.selected
    if answer is None or selected is None or picture is not snapshot.picture or answer.head != frame.head:
        return None
    if (answer.generation, answer.row) != (picture.generation, selected.row):
        return None
    return _without_masked(answer.values, answer.classes)


def _without_masked(values: Values, classes: npt.NDArray[np.uint8]) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Masked numbers as 0, in the type that they have: a million of them are not converted for a sentence."""
    masked = (classes & (CellClass.MASKED | CellClass.PADDED)) != 0
    return np.where(masked, values.dtype.type(0), values), masked


def _hidden(
    picture: Picture, row: int, stages: RowStages | None, masked: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_] | None:
    """The keys that the mask's shape hides, None where only a file knows them and the row's story has not come."""
    outline, spec = picture.outline, picture.spec
    if outline is None or isinstance(spec.source, TypedWeights):
        return np.zeros(len(masked), np.bool_)
    if isinstance(spec.mask_shape, MaskFile):
        return None if stages is None else stages.hidden
    hidden = np.ones(outline.n_keys, np.bool_)
    for first, end in visible_runs(spec.mask_shape, row, outline.n_queries, outline.n_keys):
        hidden[first:end] = False
    return hidden
