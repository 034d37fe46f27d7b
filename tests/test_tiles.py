"""Tiles and the dense pass against a plain reference: every mode, shape, dtype, dropout, pooling and level."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes import TwoCudaDevices
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention.dropout import keep_portable
from attnviz.attention.stages import fill_value, head_stages
from attnviz.attention.tiles import Workspace
from attnviz.engine import Engine
from attnviz.frames import CellClass, Finished, Frame, Probe, RowAnswer
from attnviz.inputs import open_source
from attnviz.spec import (
    Blocks,
    Causal,
    Drawn,
    Full,
    PadLeft,
    PadRight,
    Pattern,
    Prefix,
    RandomQK,
    Request,
    SlidingWindow,
    View,
    Viewport,
    edited,
    make_spec,
    padded_keys,
    stages_of,
    visible_runs,
)
from attnviz.tensor_files import describe_mask

LENGTH = 257
MODES = {
    "none": {"mask": "none"},
    "three-step": {"mask": "three-step"},
    "neg-inf": {"mask": "neg-inf"},
    "fill 0": {"mask": "neg-inf", "fill": 0.0},
    "fill -1e9": {"mask": "neg-inf", "fill": -1e9},
    "multiply": {"mask": "multiply"},
    "add": {"mask": "add"},
    "add -3": {"mask": "add", "fill": -3.0},
    "add -1e9": {"mask": "add", "fill": -1e9},
    "top-k": {"mask": "none", "top_k": 20},
    "top-k, fill -3": {"mask": "neg-inf", "top_k": 20, "fill": -3.0},
}
SHAPES = {
    "causal": Causal(),
    "full": Full(),
    "window": SlidingWindow(width=37),
    "prefix": Prefix(length=40),
    "pad-left": PadLeft(count=9),
    "pad-right": PadRight(count=9),
    "blocks": Blocks(lengths=(100, 57)),
    "drawn": Drawn(
        runs=tuple((row, a, b) for row in range(20, 240) for a, b in ((row // 3, row // 2), (row, row + 9)))
    ),
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
        for first, end in visible_runs(spec.mask_shape, row, LENGTH, LENGTH):
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
        keep={stage, "weights", "scaled_scores"},
        q=given.queries[0].to(dtype)[None],
        k=given.keys[0].to(dtype)[None],
        mask=mask,
    )
    cells = result.stages[stage][0].double().numpy()
    kinds = np.full(cells.shape, int(CellClass.ORDINARY), np.uint8)
    kinds[cells == 0] = CellClass.ZERO
    hidden = ~visible
    if spec.fills and math.isfinite(fill_value(spec)):
        hidden &= (result.stages["weights"][0] == 0).numpy()  # a finite fill lets hidden cells weigh something
    if spec.top_k is not None:
        scores = np.where(visible, result.stages["scaled_scores"][0].double().numpy(), -np.inf)
        hidden |= visible & (scores < np.sort(scores, 1)[:, -spec.top_k, None])
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
    edges = np.arange(0, len(cells), level)

    def reduced(plane, by):
        return by.reduceat(by.reduceat(plane, edges, axis=0), edges, axis=1)

    ordinary = kinds == CellClass.ORDINARY
    sets = reduced(kinds, np.bitwise_or)
    if pooling == "max" or level == 1:
        values = reduced(np.where(ordinary, cells, -np.inf), np.maximum)
    else:
        sizes = np.minimum(level, len(cells) - edges)
        values = reduced(np.where(ordinary, cells, 0), np.add)
        values = values / (sizes[:, None] * (1 if pooling == "share" else sizes))
    values = np.where(sets & CellClass.ORDINARY, values, 0)
    return np.where(sets & CellClass.NAN, np.nan, values), sets


def picture(*asked, **window):
    return pictures(*asked, **window)["head:0"]


def pictures(engine, spec, stage, pooling, pixels, norm="auto", **window):
    view = View(stage=stage, pooling=pooling, norm=norm)
    viewport = Viewport(pixels=(pixels, pixels), **window)
    frames, finished = {}, False
    request = Request(spec=spec, view=view, viewport=viewport, generation=1)
    for message in engine.stream(request):
        if isinstance(message, Frame):
            frames[message.panel] = message
        finished |= isinstance(message, Finished)
    assert finished
    return frames


CASES = [*itertools.product(MODES, SHAPES, EPS, (0.0, 0.3))]


PARAMS = [
    pytest.param(*case, marks=pytest.mark.slow if case[2] in ("float64", "bfloat16") else ()) for case in CASES
]  # half of the product; the other half runs with -m slow


@pytest.mark.parametrize(("mode", "shape", "dtype", "dropout"), PARAMS)
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


# --------------------------------------------------------------------------------------------------- windows and levels


def dense_cells(spec, head):
    """The head's weights in float64 and the classes that the causal mask gives."""
    given = open_source(spec)
    shared = head * spec.num_kv_heads // spec.num_heads
    cells = head_stages(spec, head=head, keep={"weights"}, q=given.queries[head][None], k=given.keys[shared][None])
    kinds = np.where(cells.masked.numpy(), int(CellClass.MASKED), int(CellClass.ORDINARY)).astype(np.uint8)
    return cells.stages["weights"][0].double().numpy(), kinds


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_window_at_any_zoom_is_the_dense_matrix_pooled(data):
    length, heads = data.draw(st.integers(33, 700), "length"), data.draw(st.integers(1, 3), "heads")
    spec = make_spec(RandomQK(length=length), num_heads=heads, d_out=8 * heads, num_kv_heads=1)
    rows, cols = (sorted(data.draw(st.tuples(st.integers(0, length), st.integers(0, length)))) for _ in range(2))
    window = {"rows": (rows[0], max(rows[1], rows[0] + 1)), "cols": (cols[0], max(cols[1], cols[0] + 1))}
    pixels = data.draw(st.integers(1, 300), "pixels")
    pooling = data.draw(st.sampled_from(["max", "mean", "share"]))
    tile = data.draw(st.sampled_from([(512, 1024), (64, 96), (32, 32)]), "tile")
    engine = Engine(dense_bytes=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnviz.attention.tiles.CPU_TILE", tile)
        patch.setattr("attnviz.engine.tiling.CPU_TILE", tile)
        frames = pictures(engine, spec, "weights", pooling, pixels, **window)
    engine.close()
    assert len(frames) == heads
    for frame in frames.values():
        cells, kinds = dense_cells(spec, frame.head)
        values, sets = pooled(cells, kinds, frame.level, pooling)
        part = tuple(slice(a // frame.level, -(-b // frame.level)) for a, b in (frame.rows, frame.cols))
        assert frame.exact
        np.testing.assert_array_equal(frame.classes, sets[part])
        np.testing.assert_allclose(frame.values, values[part], rtol=2e-5, atol=1e-9)
        for span, wanted in (frame.rows, window["rows"]), (frame.cols, window["cols"]):
            assert span[0] <= min(wanted[0], length - 1)
            assert span[1] >= min(wanted[1], length)


def test_rows_of_the_mean_picture_sum_to_what_they_must():
    spec = make_spec(RandomQK(length=1000), num_heads=1, d_out=64)
    engine = Engine(dense_bytes=0)
    mean = picture(engine, spec, "weights", "mean", 125)
    share = picture(engine, spec, "weights", "share", 125)
    engine.close()
    assert mean.level == 8
    np.testing.assert_allclose(mean.values.sum(1), 1 / 8, rtol=1e-5)
    np.testing.assert_allclose(share.values.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_every_pixel_is_written(dropout, monkeypatch):
    """Buffers that begin full of NaN, and tiles that begin with an impossible class."""
    empty, get = torch.empty, Workspace.get

    def poisoned(*size, **settings):
        tensor = empty(*size, **settings)
        return tensor.fill_(math.nan) if tensor.is_floating_point() else tensor

    def poisoned_get(self, *asked):
        return get(self, *asked).fill_(math.nan)

    monkeypatch.setattr(torch, "empty", poisoned)
    monkeypatch.setattr(Workspace, "get", poisoned_get)
    spec = make_spec(RandomQK(length=1009), num_heads=2, d_out=16, dropout=dropout)
    stage = "dropped_weights" if dropout else "weights"
    for dense_bytes in (1 << 30, 0):
        engine = Engine(dense_bytes=dense_bytes)
        for pixels, window in (1009, {}), (250, {}), (90, {"rows": (100, 801), "cols": (3, 999)}):
            for frame in pictures(engine, spec, stage, "mean", pixels, **window).values():
                assert not np.isnan(frame.values).any()
                assert (frame.classes > 0).all()
                assert (frame.rgb >> 24 == 0xFF).all()
        engine.close()


@pytest.mark.parametrize("factor", ["uniform", "per-row"])
@pytest.mark.parametrize("stage", ["weights", "dropped_weights", "unmasked_weights", "unnormalised_weights"])
@pytest.mark.parametrize("mode", [{}, {"mask": "multiply"}, {"mask": "add", "fill": -2.0}, {"top_k": 7}])
def test_row_norms_are_those_of_the_dense_pass(factor, stage, mode):
    dropout = 0.3 if stage == "dropped_weights" else 0.0
    mode = mode or {"mask": "three-step" if stage.startswith("un") else "neg-inf"}
    spec = make_spec(RandomQK(length=300), num_heads=1, d_out=16, dropout=dropout, **mode)
    if stage not in stages_of(spec):
        return
    shades = []
    for dense_bytes in (1 << 30, 0):
        engine = Engine(dense_bytes=dense_bytes)
        for window in {}, {"rows": (130, 260), "cols": (40, 300)}:
            shades.append(picture(engine, spec, stage, "max", 64, norm=factor, **window).rgb)
        engine.close()
    for dense, tiled in zip(shades[:2], shades[2:], strict=True):
        channels = [(plane[..., None] >> np.array([0, 8, 16]) & 0xFF).astype(int) for plane in (dense, tiled)]
        assert np.abs(channels[0] - channels[1]).max() <= 4  # one step of the colour table


BEFORE_THE_LAST = {
    "neg-inf": ({}, "scores scaled_scores masked_scores"),
    "three-step": ({"mask": "three-step"}, "scores unmasked_weights unnormalised_weights"),
    "multiply": ({"mask": "multiply"}, "scaled_scores unmasked_weights weights"),
    "add": ({"mask": "add"}, "scores masked_scores weights"),
    "add after mask": ({"mask": "add", "scale_after_mask": True}, "masked_scores scaled_scores weights"),
    "none after mask": ({"mask": "none", "scale_after_mask": True}, "scaled_scores weights"),
}


@pytest.mark.parametrize(
    ("mode", "stage"), [(m, n) for m, (_, names) in BEFORE_THE_LAST.items() for n in names.split()]
)
@pytest.mark.parametrize("shape", [Causal(), PadRight(count=40), Drawn(runs=((5, 0, 3), (5, 9, 20), (280, 0, 299)))])
def test_stages_before_the_last_are_the_dense_ones(mode, stage, shape):
    spec = make_spec(
        RandomQK(length=300), num_heads=2, d_out=32, num_kv_heads=1, mask_shape=shape, **BEFORE_THE_LAST[mode][0]
    )
    frames = []
    for dense_bytes in (1 << 30, 0):
        engine = Engine(dense_bytes=dense_bytes)
        for pooling, pixels in ("max", 300), ("max", 90), ("mean", 90):
            frames.append(pictures(engine, spec, stage, pooling, pixels))
        engine.close()
    for dense, tiled in zip(frames[:3], frames[3:], strict=True):
        for panel, frame in dense.items():
            np.testing.assert_array_equal(frame.classes, tiled[panel].classes)
            np.testing.assert_allclose(frame.values, tiled[panel].values, rtol=1e-5, atol=2e-6)
            assert frame.counts == tiled[panel].counts


def test_an_attention_sink_is_in_the_first_preview(monkeypatch):
    monkeypatch.setattr("attnviz.engine.tiling._PREVIEW_FROM", 0)
    spec = make_spec(Pattern(length=4096, pattern="sink"), num_heads=1)
    engine = Engine(dense_bytes=0)
    request = Request(spec=spec, view=View(), viewport=Viewport(pixels=(64, 64)), generation=1)
    stream = engine.stream(request)
    frames = [message for message in stream if isinstance(message, Frame)]
    engine.close()
    assert not frames[0].exact
    assert frames[-1].exact
    assert np.corrcoef(frames[0].values.ravel(), frames[-1].values.ravel())[0, 1] > 0.98


def test_exact_numbers_come_from_tiles_as_from_the_dense_pass():
    spec = make_spec(RandomQK(length=300), num_heads=3, d_out=48, mask="three-step")
    answers = []
    for dense_bytes in (1 << 30, 0):
        engine = Engine(dense_bytes=dense_bytes)
        pictures(engine, spec, "weights", "max", 64, rows=(0, 64), cols=(0, 64))
        answers.append(list(engine.probe(Probe(1, 250, 17, 1, True))))
        answers.append(list(engine.probe(Probe(1, 10, 200))))
        engine.close()
    dense, dense_hidden, tiled, tiled_hidden = answers
    assert dense[0].values == pytest.approx(tiled[-1].values, rel=1e-5)
    assert dense[0].classes == tiled[-1].classes == (CellClass.ORDINARY,) * 3
    assert tiled[0].values[1] is not None  # the head asked for comes first
    assert tiled[0].values[0] is None
    assert dense_hidden[0].classes == tiled_hidden[-1].classes == (CellClass.MASKED,) * 3
    rows = [next(answer for answer in some if isinstance(answer, RowAnswer)) for some in (dense, tiled)]
    np.testing.assert_allclose(rows[0].values, rows[1].values, rtol=1e-5)
    np.testing.assert_array_equal(rows[0].classes, rows[1].classes)


@pytest.mark.parametrize("fails_at", [2, 3, 6])
def test_out_of_memory_halves_the_tile_and_goes_on(fails_at):
    backend = TwoCudaDevices(fails_at)
    spec = make_spec(RandomQK(length=1400), num_heads=2, d_out=32, device="cuda:1")
    engine = Engine(backend, dense_bytes=0)
    frame = picture(engine, spec, "weights", "max", 350)
    engine.close()
    cells, kinds = dense_cells(edited(spec, device="cpu"), 0)
    np.testing.assert_allclose(frame.values, pooled(cells, kinds, 4, "max")[0], rtol=2e-5, atol=1e-9)
    assert backend.blocks > fails_at


def test_tiles_past_the_budget_go_and_come_back():
    spec = make_spec(RandomQK(length=2048), num_heads=2, d_out=32)
    engine = Engine(dense_bytes=0, budget_bytes=80_000_000)
    tiling = None
    for top in range(0, 2000, 100):
        pictures(engine, spec, "weights", "max", 256, rows=(top, top + 48), cols=(top, top + 48))
        tiling = engine._shown.tiling
        tiling._budget = 2_000_000
    assert tiling.nbytes < 2_000_000 + 2 * 2 * (256 * 256 * 5 + 10_000)  # and those that are looked at
    first = picture(engine, spec, "weights", "max", 256, rows=(0, 48), cols=(0, 48))
    cells, _ = dense_cells(spec, 0)
    np.testing.assert_allclose(first.values[:48, :48], cells[:48, :48], rtol=2e-5, atol=1e-9)
    engine.close()


def test_rows_that_three_step_turned_to_nan_are_said_of_long_maps_too():
    spec = make_spec(RandomQK(length=300, qk_scale=6.0), num_heads=1, d_out=16, mask="three-step")
    remarks = []
    for dense_bytes in (1 << 30, 0):
        engine = Engine(dense_bytes=dense_bytes)
        request = Request(spec=spec, view=View(), viewport=Viewport(pixels=(64, 64)), generation=1)
        remarks.append([m.remarks for m in engine.stream(request) if isinstance(m, Finished)])
        engine.close()
    assert "NaN" in remarks[0][0][0]
    assert remarks[0] == remarks[1]


def test_the_overview_comes_behind_a_window():
    spec = make_spec(RandomQK(length=2100), num_heads=2, d_out=32)
    engine = Engine(dense_bytes=0)
    viewport = Viewport(pixels=(128, 128), rows=(900, 1000), cols=(0, 100))
    request = Request(spec=spec, view=View(), viewport=viewport, generation=1)
    messages = [message for message in engine.stream(request) if message is not None]
    engine.close()
    finished = next(place for place, message in enumerate(messages) if isinstance(message, Finished))
    sharp = [m for m in messages[:finished] if isinstance(m, Frame)]
    behind = [m for m in messages[finished:] if isinstance(m, Frame)]
    assert {frame.level for frame in sharp} == {1}
    whole = [frame for frame in behind if frame.rows == (0, 2100)]
    assert {frame.panel for frame in whole if frame.exact} == {"head:0", "head:1"}
    last = {frame.panel: frame for frame in behind if frame.rows != (0, 2100)}
    assert {frame.scale.high for frame in last.values()} == {whole[-1].scale.high}  # the window's range is the map's
