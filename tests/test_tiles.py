"""Tiles and the dense pass against a plain reference: every mode, shape, dtype, dropout, pooling and level."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.attention.dropout import keep_portable
from attnviz.attention.stages import fill_value, head_stages
from attnviz.engine import Engine
from attnviz.frames import CellClass, Finished, Frame
from attnviz.inputs import open_source
from attnviz.spec import (
    Blocks,
    Causal,
    Full,
    PadLeft,
    PadRight,
    Prefix,
    RandomQK,
    Request,
    SlidingWindow,
    View,
    Viewport,
    make_spec,
    padded_keys,
    visible_run,
)
from attnviz.tensor_files import describe_mask

LENGTH = 257
MODES = {
    "none": {"mask": "none"},
    "three-step": {"mask": "three-step"},
    "neg-inf": {"mask": "neg-inf"},
    "fill 0": {"mask": "neg-inf", "fill": 0.0},
    "fill -1e9": {"mask": "neg-inf", "fill": -1e9},
}
SHAPES = {
    "causal": Causal(),
    "full": Full(),
    "window": SlidingWindow(width=37),
    "prefix": Prefix(length=40),
    "pad-left": PadLeft(count=9),
    "pad-right": PadRight(count=9),
    "blocks": Blocks(lengths=(100, 57)),
    "file": None,
}
LEVELS = {1: 257, 2: 150, 8: 40}
EPS = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}


@pytest.fixture(scope="module")
def mask_file(tmp_path_factory):
    """A mask with holes, a row that sees nothing and one that sees all."""
    visible = np.random.default_rng(0).random((LENGTH, LENGTH)) < 0.4
    visible[3] = False
    visible[200] = True
    path = Path(tmp_path_factory.mktemp("masks")) / "mask.npy"
    np.save(path, visible)
    return describe_mask(path), visible


@pytest.fixture
def engines():
    """One that keeps whole maps, and one that computes all of them in tiles."""
    torch.set_num_threads(1)  # several wait for each other where a core is busy, hundreds of times here
    both = {dense_bytes: Engine(dense_bytes=dense_bytes) for dense_bytes in (1 << 30, 0)}
    yield both
    for engine in both.values():
        engine.close()


def visible_cells(spec, file_cells):
    if spec.mask == "none":
        return np.ones((LENGTH, LENGTH), bool)
    if file_cells is not None:
        return file_cells
    visible = np.zeros((LENGTH, LENGTH), bool)
    for row in range(LENGTH):
        first, end = visible_run(spec.mask_shape, row, LENGTH)
        visible[row, first:end] = True
    return visible


def reference(spec, stage, visible):
    """Cells in float64 as the dense pass has them, and one class for each."""
    given = open_source(spec)
    dtype = getattr(torch, spec.dtype)
    plane = torch.from_numpy(visible)
    mask = None
    if spec.mask != "none":
        from attnviz.attention.masks import from_plane

        mask = from_plane(plane)  # cell by cell, which the runs of the shapes are not
    result = head_stages(
        spec,
        head=0,
        keep={stage, "weights"},
        q=given.queries[0].to(dtype)[None],
        k=given.keys[0].to(dtype)[None],
        mask=mask,
    )
    cells = result.stages[stage][0].double().numpy()
    kinds = np.full(cells.shape, int(CellClass.ORDINARY), np.uint8)
    kinds[cells == 0] = CellClass.ZERO
    hidden = ~visible
    if spec.mask == "neg-inf" and math.isfinite(fill_value(spec)):
        hidden &= (result.stages["weights"][0] == 0).numpy()  # a finite fill lets hidden cells weigh something
    if stage == "dropped_weights":
        kept = keep_portable(
            seed=spec.dropout_seed, site="weights", batch_item=0, head=0, n_queries=LENGTH, n_columns=LENGTH,
            p=spec.dropout,
        ).numpy()  # fmt: skip
        kinds[~kept] = CellClass.DROPPED
    kinds[hidden] = CellClass.MASKED
    first, end = padded_keys(spec.mask_shape, LENGTH) if spec.mask != "none" else (0, 0)
    kinds[:, first:end][hidden[:, first:end]] = CellClass.PADDED
    kinds[np.isnan(cells)] = CellClass.NAN
    return cells, kinds


def head_scores(spec):
    """The largest score in absolute value: s · log₂e is rounded once more than s."""
    given = open_source(spec)
    return float((given.queries[0] @ given.keys[0].T).abs().max()) / math.sqrt(given.queries.shape[-1])


def pooled(cells, kinds, level, pooling):
    """Values and sets of classes of each bin."""
    edges = np.arange(0, LENGTH, level)

    def reduced(plane, by):
        return by.reduceat(by.reduceat(plane, edges, axis=0), edges, axis=1)

    ordinary = kinds == CellClass.ORDINARY
    sets = reduced(kinds, np.bitwise_or)
    if pooling == "max" or level == 1:
        values = reduced(np.where(ordinary, cells, -np.inf), np.maximum)
    else:
        sizes = np.minimum(level, LENGTH - edges)
        values = reduced(np.where(ordinary, cells, 0), np.add)
        values = values / (sizes[:, None] * (1 if pooling == "share" else sizes))
    values = np.where(sets & CellClass.ORDINARY, values, 0)
    return np.where(sets & CellClass.NAN, np.nan, values), sets


def picture(engine, spec, stage, pooling, pixels, generation=1, **window):
    view = View(stage=stage, pooling=pooling)
    viewport = Viewport(pixels=(pixels, pixels), **window)
    frames, finished = {}, False
    request = Request(spec=spec, view=view, viewport=viewport, generation=generation)
    for message in engine.stream(request):
        if isinstance(message, Frame):
            frames[message.panel] = message
        finished |= isinstance(message, Finished)
    assert finished
    return frames["head:0"]


CASES = [*itertools.product(MODES, SHAPES, EPS, (0.0, 0.3))]


@pytest.mark.parametrize(("mode", "shape", "dtype", "dropout"), CASES)
def test_tiles_and_dense_are_the_matrix_pooled(mode, shape, dtype, dropout, mask_file, engines):
    place = CASES.index((mode, shape, dtype, dropout))
    file_cells = mask_file[1] if shape == "file" else None
    spec = make_spec(
        RandomQK(length=LENGTH, qk_scale=(0.7, 2.5)[place % 2]), num_heads=1, d_out=16, dtype=dtype, dropout=dropout,
        mask_shape=SHAPES[shape] or mask_file[0], soft_cap=30.0 if place % 3 == 0 else None, **MODES[mode],
    )  # fmt: skip
    stage = "dropped_weights" if dropout else "weights"
    cells, kinds = reference(spec, stage, visible_cells(spec, file_cells))
    scores = head_scores(spec)
    bound = EPS[dtype] * 8 if dtype in ("float16", "bfloat16") else EPS[dtype] * (8 + 4 * scores)
    for dense_bytes, engine in engines.items():
        for (level, pixels), pooling in itertools.product(LEVELS.items(), ("max", "mean", "share")):
            frame = picture(engine, spec, stage, pooling, pixels)
            values, sets = pooled(cells, kinds, level, pooling)
            assert (frame.level, frame.exact) == (level, True)
            where = f"{dense_bytes=} {level=} {pooling=}"
            # rounding may turn a subnormal weight into 0 or back
            differ = frame.classes != sets
            assert not (differ & (np.abs(values) > 4 * np.finfo(np.float16).smallest_subnormal)).any(), where
            assert differ.mean() < 0.02, where
            np.testing.assert_allclose(frame.values, values, rtol=bound, atol=bound, equal_nan=True, err_msg=where)
