"""Pictures of maps of any size, made without an engine."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from attnviz import colour
from attnviz.frames import CellClass, Counts, Finished, Frame, Outline, RowAnswer, Scale, StageShape, level_for
from attnviz.session import Picture, Snapshot
from attnviz.spec import RandomQK, View, make_spec

ORDINARY, MASKED = int(CellClass.ORDINARY), int(CellClass.MASKED)


def frame_of(panel, rows, cols, level=1, *, seed=0, generation=1, exact=True):
    """A frame of random numbers."""
    shape = -(-(rows[1] - rows[0]) // level), -(-(cols[1] - cols[0]) // level)
    values = np.random.default_rng(seed).random(shape).astype(np.float32)
    classes = np.full(shape, ORDINARY, np.uint8)
    scale = Scale(0.0, 1.0)
    rgb = colour.paint_values(values, classes, scale, "viridis")
    head = int(panel.removeprefix("head:"))
    return Frame(
        generation, panel, "weights", head, rows, cols, level, values, classes, rgb, scale, Counts(), exact=exact
    )  # fmt: skip


def outline_of(n, heads=1, *, generation=1, tokens=None, n_queries=None, **fields):
    queries = n if n_queries is None else n_queries
    return Outline(
        generation, "weights", tokens or tuple(map(str, range(n))), queries, n, (), "made up",
        (StageShape("weights", (heads, queries, n)),), (), tuple(f"head:{head}" for head in range(heads)),
        fields.pop("has_future", True), fields.pop("future_hidden", True), "cpu", **fields,
    )  # fmt: skip


def picture_of(n, heads=1, *, pixels=256, seed=0, view=None, **fields):
    """A finished picture of ``heads`` whole maps of ``n`` tokens, in about ``pixels`` pixels a side."""
    outline = outline_of(n, heads, **fields)
    level, shape = level_for(n, pixels), (outline.n_queries, n)
    frames = {
        name: frame_of(name, (0, shape[0]), (0, n), level, seed=seed + place)
        for place, name in enumerate(outline.panels)
    }
    spec = make_spec(RandomQK(length=n), num_heads=heads)
    whole = MappingProxyType(frames)
    return Picture(spec, view or View(), 1, outline, whole, Finished(1, 0.0, 0, 0), whole)


def with_window(picture, rows, cols, level=1, *, seed=100):
    """The picture with sharp frames of a part in front of its whole maps."""
    frames = {
        name: frame_of(name, rows, cols, level, seed=seed + place) for place, name in enumerate(picture.outline.panels)
    }
    return replace(picture, frames=MappingProxyType(frames))


def snapshot_of(picture, **fields):
    return Snapshot(spec=picture.spec, view=picture.view, picture=picture, **fields)


def row_of(row, n, *, seed=0, generation=1, head=0):
    """A causal row of random weights."""
    values = np.random.default_rng(seed).random(n).astype(np.float32) / n
    classes = np.where(np.arange(n) <= row, ORDINARY, MASKED).astype(np.uint8)
    return RowAnswer(generation, row, head, values, classes)
