"""What a person bent on breaking it found in long maps: each of these was wrong once."""

import math

import numpy as np
import pytest
from test_tiles import pictures

from attnviz.engine import ComputationError, Engine
from attnviz.frames import CellClass, Finished, Frame
from attnviz.spec import PadLeft, PadRight, Prefix, RandomQK, Request, SlidingWindow, View, Viewport, make_spec
from attnviz.tensor_files import describe_mask, describe_qk


def both(spec, stage="weights", pooling="max", pixels=500, **window):
    """The first head's frame of the dense pass and of tiles."""
    frames = []
    for dense_bytes in (1 << 40, 0):
        engine = Engine(dense_bytes=dense_bytes)
        frames.append(pictures(engine, spec, stage, pooling, pixels, **window)["head:0"])
        engine.close()
    return frames


def same(dense, tiled, rtol=1e-4):
    np.testing.assert_array_equal(dense.classes, tiled.classes)
    np.testing.assert_allclose(dense.values, tiled.values, rtol=rtol, atol=1e-7)


def small(length, qk_scale=1.0, **fields):
    return make_spec(RandomQK(length=length, qk_scale=qk_scale), **{"num_heads": 1, "d_out": 16} | fields)


def test_an_exact_picture_is_not_replaced_by_half_of_one():
    engine = Engine(dense_bytes=0)
    spec = small(2000)
    for rows in (0, 500), (0, 2000):
        viewport = Viewport(pixels=(125, 125), rows=rows, cols=(0, 2000))
        request = Request(spec=spec, view=View(), viewport=viewport, generation=1)
        frames = [message for message in engine.stream(request) if isinstance(message, Frame)]
    engine.close()
    assert frames[-1].exact
    assert (frames[-1].classes > 0).all()


@pytest.mark.parametrize(
    "spec",
    [
        small(400, 5.0, mask="three-step", mask_shape=PadLeft(count=200)),
        small(400, 5.0, mask="three-step", mask_shape=PadRight(count=400)),
        small(300, 12.0, mask="three-step"),
        small(300, 12.0, mask="three-step", dropout=0.5),
        small(129, mask_shape=PadLeft(count=5)),
        small(40, fill=-1e36, mask_shape=PadLeft(count=3)),
        small(40, fill=-3.4e38, mask_shape=PadLeft(count=3)),
        small(40, 1e15),
        small(40, soft_cap=3e38),
        small(300, dropout=0.5, mask_shape=Prefix(length=299)),
        small(6, scale_after_mask=True, scale=-1.0),
        small(6, scale_after_mask=True, scale=0.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pixels", [500, 64])
def test_rows_without_sense_are_the_dense_ones(spec, pixels):
    stage = "dropped_weights" if spec.drops else "weights"
    dense, tiled = both(spec, stage, pixels=pixels)
    if not spec.source.qk_scale > 100:  # where eps · |s| is anything
        same(dense, tiled)
    np.testing.assert_array_equal(np.isnan(dense.values), np.isnan(tiled.values))
    for field in ("masked", "padded", "nan", "zero", "dropped"):
        told = getattr(tiled.counts, field)
        assert told in (-1, getattr(dense.counts, field)), field


@pytest.mark.parametrize("mask", ["neg-inf", "none"])
@pytest.mark.parametrize("spoil", ["q", "k"])
def test_a_row_that_meets_nan_is_nan_throughout(tmp_path, spoil, mask):
    arrays = {name: np.random.default_rng(0).standard_normal((1, 400, 8)).astype("f4") for name in "qk"}
    arrays[spoil][0, 200, 3] = np.nan
    np.savez(tmp_path / "a.npz", **arrays)
    dense, tiled = both(make_spec(describe_qk(tmp_path / "a.npz"), mask=mask))
    assert (dense.classes[200 if spoil == "q" else 300] == CellClass.NAN).all()
    same(dense, tiled)


def test_counts_are_right_or_not_told():
    dense, tiled = both(small(300, mask_shape=PadLeft(count=5)))
    assert tiled.counts == dense.counts
    dense, tiled = both(small(300, fill=0.0))
    assert dense.counts.masked == 0
    assert tiled.counts.masked == -1


def test_dropped_cells_are_counted_once(monkeypatch):
    spec = small(2048, dropout=0.5)
    engine = Engine(dense_bytes=0)
    for cols in (0, 512), (512, 1024):
        frame = pictures(engine, spec, "dropped_weights", "max", 512, norm="per-row", rows=(0, 1024), cols=cols)
    engine.close()
    dense, _ = both(spec, "dropped_weights")
    assert frame["head:0"].counts.dropped == dense.counts.dropped  # the whole map behind it is complete by now


def test_padding_beside_the_last_visible_key_is_padding(tmp_path):
    same(*both(small(3000, mask_shape=PadRight(count=5), dropout=0.5), "dropped_weights", pixels=512))
    visible = np.tri(300, dtype=bool)
    visible[:, 280:] = False
    np.save(tmp_path / "mask.npy", visible)
    same(*both(small(300, 5.0, mask_shape=describe_mask(tmp_path / "mask.npy")), pixels=40))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("pooling", ["mean", "share"])
def test_means_of_large_half_precision_scores_do_not_overflow(dtype, pooling):
    dense, tiled = both(small(300, 40.0, dtype=dtype), "scores", pooling, 64, rows=(0, 200))
    assert np.isfinite(tiled.values[np.isfinite(dense.values)]).all()
    np.testing.assert_allclose(dense.values, tiled.values, rtol=0.02, atol=60)


@pytest.mark.parametrize("norm", ["auto", "uniform", "per-row"])
def test_scores_keep_their_range_whatever_the_norm(norm):
    dense, tiled = both(small(400), "scores", pixels=100, norm=norm)
    assert tiled.scale.low == pytest.approx(dense.scale.low, rel=1e-5)
    assert tiled.scale.low < 0


@pytest.mark.parametrize("dense_bytes", [1 << 40, 0])
def test_a_row_that_sees_nothing_is_not_blamed_on_rounding(dense_bytes):
    engine = Engine(dense_bytes=dense_bytes)
    spec = small(40, mask="three-step", mask_shape=PadLeft(count=40))
    request = Request(spec=spec, view=View(), viewport=Viewport(), generation=1)
    (said,) = [message.remarks for message in engine.stream(request) if isinstance(message, Finished)]
    assert not any("a future score leads" in remark for remark in said)
    engine.close()


def test_a_refusal_is_said_once_and_blames_no_device():
    engine = Engine(budget_bytes=40_000_000)
    with pytest.raises(ComputationError, match=r"^1 head × 20,000 tokens need") as caught:
        list(engine.stream(Request(spec=small(20_000), view=View(), viewport=Viewport(), generation=1)))
    engine.close()
    assert not caught.value.device_failed


def test_torchs_generator_is_refused_only_where_it_draws():
    spec = small(4500, dropout=0.1, dropout_generator="torch")
    engine = Engine(dense_bytes=1 << 20)
    viewport = Viewport(rows=(0, 50), cols=(0, 50), pixels=(64, 64))
    request = Request(spec=spec, view=View(), viewport=viewport, generation=1)
    assert any(isinstance(message, Finished) for message in engine.stream(request))
    with pytest.raises(ComputationError, match="portable"):
        list(engine.stream(Request(spec=spec, view=View(stage="dropped_weights"), viewport=viewport, generation=2)))
    engine.close()


def test_a_masks_file_is_summed_once(tmp_path):
    np.save(tmp_path / "mask.npy", np.tri(700, dtype=bool))
    mask_file = describe_mask(tmp_path / "mask.npy")
    file, causal = (both(small(700, mask_shape=shape), pixels=100)[1] for shape in (mask_file, make_spec().mask_shape))
    same(causal, file)
    assert file.counts == causal.counts


def test_what_the_budget_holds_is_what_is_cast_too():
    spec = make_spec(RandomQK(length=50_000), num_heads=32, num_kv_heads=1, d_out=32 * 64, dtype="float16")
    engine = Engine(budget_bytes=250_000_000)
    with pytest.raises(ComputationError, match=r"need .* MB, but the memory limit is 250 MB"):
        list(engine.stream(Request(spec=spec, view=View(), viewport=Viewport(), generation=1)))
    engine.close()


def test_a_narrow_window_over_a_long_map_is_the_dense_one():
    same(*both(small(2000, mask_shape=SlidingWindow(width=7)), pixels=250))
    assert math.isinf(small(5).fill)
