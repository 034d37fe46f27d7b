"""The engine against its own dense arrays, and what it says when something cannot be computed."""

import threading

import numpy as np
import pytest
import torch
from fakes import TwoCudaDevices
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.engine import ComputationError, Engine
from attnviz.frames import CellClass, Finished, Frame, Outline, Probe, Progress, level_for
from attnviz.spec import (
    Lesson,
    PadLeft,
    RandomEmbeddings,
    RandomQK,
    Request,
    SlidingWindow,
    Text,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
)

JOURNEY = make_spec()


def request(spec, view=None, viewport=None, generation=1):
    return Request(spec=spec, view=view or View(), viewport=viewport or Viewport(), generation=generation)


def last_frames(messages):
    return {m.panel: m for m in messages if isinstance(m, Frame)}


def test_a_stream_is_an_outline_then_frames_head_by_head_then_the_end():
    messages = list(Engine().stream(request(JOURNEY)))
    assert isinstance(messages[0], Outline)
    assert isinstance(messages[-1], Finished)
    assert [m.done for m in messages if isinstance(m, Progress)] == [1, 2]
    assert messages[0].panels == ("head:0", "head:1")
    assert messages[0].tokens == ("Your", "journey", "starts", "with", "one", "step")
    assert all(m.generation == 1 for m in messages)


def test_frames_hold_the_numbers_that_were_computed():
    engine = Engine()
    arrays = engine.arrays(JOURNEY)
    for stage in stages_of(JOURNEY):
        frames = last_frames(engine.stream(request(JOURNEY, View(stage=stage))))
        for panel, frame in frames.items():
            whole = arrays.stages[stage]
            expected = whole if panel == "all" else whole[int(panel.removeprefix("head:"))]
            np.testing.assert_array_equal(frame.values, expected, err_msg=stage)
            assert frame.level == 1
            assert not frame.values.flags.writeable


@pytest.mark.parametrize("length", [127, 128, 129, 130, 135, 136, 257, 258, 385])
def test_what_is_shown_has_the_bits_of_what_is_written_whatever_is_left_for_the_last_block(length):
    spec = make_spec(RandomQK(length=length, qk_scale=2.0), num_heads=2, d_out=8, mask="neg-inf")
    engine = Engine()
    dense = engine.arrays(spec).stages["weights"]
    viewport = Viewport(pixels=(length, length), rows=(0, length), cols=(0, length))
    for frame in last_frames(engine.stream(request(spec, View(), viewport))).values():
        np.testing.assert_array_equal(frame.values, dense[frame.head])


@settings(deadline=None, max_examples=40)
@given(
    length=st.sampled_from([1, 2, 17, 63, 64, 65, 257]),
    pixels=st.integers(1, 80),
    mask=st.sampled_from(["none", "three-step", "neg-inf"]),
    dropout=st.sampled_from([0.0, 0.3]),
    window=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    stage=st.sampled_from(["weights", "scaled_scores", "dropped_weights"]),
)
def test_any_window_at_any_level_pools_the_dense_matrix(length, pixels, mask, dropout, window, stage):
    spec = make_spec(RandomQK(length=length, qk_scale=2.0), num_heads=2, d_out=8, mask=mask, dropout=dropout)
    if stage not in stages_of(spec):
        stage = "weights"
    spans = [sorted((int(a * (length - 1)), int(b * length))) for a, b in (window[:2], window[2:])]
    rows, cols = ((min(a, length - 1), max(b, min(a, length - 1) + 1)) for a, b in spans)
    engine = Engine()
    viewport = Viewport(pixels=(pixels, pixels), rows=rows, cols=cols)
    dense = engine.arrays(spec).stages[stage]
    for frame in last_frames(engine.stream(request(spec, View(stage=stage), viewport))).values():
        level = frame.level
        assert level == max(level_for(rows[1] - rows[0], pixels), level_for(cols[1] - cols[0], pixels))
        assert frame.rows[0] % level == 0
        assert frame.rows[0] <= rows[0] < frame.rows[1]
        assert frame.cols[0] % level == 0
        for r, c in np.ndindex(frame.values.shape):
            top, left = frame.rows[0] + r * level, frame.cols[0] + c * level
            cells = dense[frame.head, top : top + level, left : left + level]
            classes = CellClass(int(frame.classes[r, c]))
            if CellClass.ORDINARY in classes and CellClass.NAN not in classes:
                keys = np.arange(left, left + cells.shape[1])
                queries = np.arange(top, top + cells.shape[0])[:, None]
                seen = np.ones(cells.shape, bool) if mask == "none" or stage == "scaled_scores" else keys <= queries
                assert frame.values[r, c] == cells[seen & ~np.isnan(cells)].max()
        assert frame.counts.cells == length * length


@pytest.mark.parametrize("stage", ["queries", "values", "output"])
def test_a_pixel_of_numbers_on_either_side_of_0_has_the_one_furthest_from_it(stage):
    spec = make_spec(Text(text=" ".join(map(str, range(130)))), num_heads=2, d_out=32)
    engine = Engine()
    dense = engine.arrays(spec).stages[stage]
    frames = last_frames(engine.stream(request(spec, View(stage=stage), Viewport(pixels=(20, 20)))))
    for frame in frames.values():
        cells = dense if frame.head is None else dense[frame.head]
        level = frame.level
        assert level == 8
        for r, c in np.ndindex(frame.values.shape):
            part = cells[r * level : (r + 1) * level, c * level : (c + 1) * level].ravel()
            assert frame.values[r, c] == part[np.abs(part).argmax()]
        assert (frame.values < 0).any()


def test_classes_tell_masked_zero_nan_and_dropped_apart():
    scores = ((0.0, 0.0, 200.0), (-200.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    spec = make_spec(TypedScores(scores=scores), mask="three-step", dropout=0.5, dropout_seed=3)
    frame = last_frames(Engine().stream(request(spec, View(stage="dropped_weights"))))["head:0"]
    counts = frame.counts
    assert counts.nan == 3  # 0/0 makes the whole row NaN, its masked cells too
    assert counts.masked == 1
    assert counts.dropped > 0
    shown = frame.classes.ravel().tolist()
    assert shown.count(CellClass.DROPPED) == counts.dropped
    assert shown.count(CellClass.ORDINARY) + shown.count(CellClass.ZERO) + counts.dropped == 9 - 3 - 1
    undropped = last_frames(Engine().stream(request(edited(spec, dropout=0.0))))["head:0"]
    assert undropped.classes.tolist() == [[4, 4, 4], [2, 1, 32], [1, 1, 1]]
    assert (undropped.counts.zero, undropped.counts.dropped) == (1, 0)


def test_one_nan_in_a_million_cells_is_seen_and_counted():
    spec = make_spec(RandomQK(length=1000), num_heads=1, mask="three-step")
    engine = Engine()
    messages = list(engine.stream(request(spec, viewport=Viewport(pixels=(100, 100)))))
    cells = engine._shown.panels["head:0"].cells
    with torch.inference_mode():
        cells[500, 3] = float("nan")
    engine._shown.pooled.clear()
    frame = last_frames(engine.stream(request(spec, viewport=Viewport(pixels=(100, 100)))))["head:0"]
    assert frame.counts.nan == 1
    assert np.isnan(frame.values).sum() == 1
    assert CellClass.NAN in CellClass(int(frame.classes[500 // frame.level, 0]))
    assert isinstance(messages[-1], Finished)


def test_one_strong_cell_never_vanishes():
    spec = make_spec(RandomQK(length=1024), num_heads=1)
    engine = Engine()
    list(engine.stream(request(spec)))
    with torch.inference_mode():
        engine._shown.panels["head:0"].cells[777, 333] = 1.0
    engine._shown.pooled.clear()
    frame = last_frames(engine.stream(request(spec, viewport=Viewport(pixels=(350, 350)))))["head:0"]
    assert frame.values[777 // 4, 333 // 4] == 1.0


def test_the_range_is_one_for_all_heads_and_earlier_heads_are_coloured_again():
    spec = make_spec(RandomQK(length=40, qk_scale=2.0), num_heads=8, mask="none")
    messages = list(Engine().stream(request(spec)))
    frames = last_frames(messages)
    assert len({f.scale for f in frames.values()}) == 1
    assert len([m for m in messages if isinstance(m, Frame)]) > 8
    per_head = last_frames(Engine().stream(request(spec, View(norm="per-head"))))
    assert len({f.scale for f in per_head.values()}) == 8


@pytest.mark.parametrize("norm", ["linear", "log", "uniform", "per-row", "percentile", "unit"])
def test_every_norm_colours_and_leaves_the_values_alone(norm):
    spec = make_spec(RandomEmbeddings(length=50))
    engine = Engine()
    plain = last_frames(engine.stream(request(spec)))
    other = last_frames(engine.stream(request(spec, View(norm=norm))))
    for panel, frame in other.items():
        np.testing.assert_array_equal(frame.values, plain[panel].values)
    assert any(not np.array_equal(other[p].rgb, plain[p].rgb) for p in plain) or norm == "log"


def test_other_colours_recompute_nothing():
    spec = make_spec(RandomEmbeddings(length=64))
    backend = TwoCudaDevices()
    spec = edited(spec, device="cuda:0")
    engine = Engine(backend)
    first = last_frames(engine.stream(request(spec)))
    blocks = backend.blocks
    again = last_frames(engine.stream(request(spec, View(colours="magma"), generation=2)))
    assert backend.blocks == blocks
    assert again["head:0"].values is first["head:0"].values
    assert not np.array_equal(again["head:0"].rgb, first["head:0"].rgb)


def test_the_wanted_head_comes_first():
    spec = make_spec(num_heads=4)
    messages = Engine().stream(request(spec, viewport=Viewport(heads=(2, 0))))
    order = [m.panel for m in messages if isinstance(m, Frame)]
    assert list(dict.fromkeys(order))[:2] == ["head:2", "head:0"]


def test_cancelling_ends_the_stream_between_two_heads():
    stop = threading.Event()
    seen = []
    for message in Engine().stream(request(make_spec(num_heads=6)), stop.is_set):
        seen.append(message)
        if isinstance(message, Progress) and message.done == 2:
            stop.set()
    assert [m.done for m in seen if isinstance(m, Progress)] == [1, 2]
    assert not any(isinstance(m, Finished) for m in seen)


def test_an_abandoned_request_can_be_taken_up_by_the_next():
    engine = Engine()
    spec = make_spec(num_heads=6)
    stop = threading.Event()
    for message in engine.stream(request(spec), stop.is_set):
        if isinstance(message, Progress):
            stop.set()
    frames = last_frames(engine.stream(request(spec, generation=2)))
    fresh = last_frames(Engine().stream(request(spec)))
    for panel, frame in fresh.items():
        np.testing.assert_array_equal(frames[panel].values, frame.values)


def test_edits_back_and_forth_never_show_another_edits_numbers():
    engine = Engine()
    specs = [edited(JOURNEY, mask=m, dropout=p, seed=seed) for m in ("none", "three-step", "neg-inf")
             for p in (0.0, 0.5) for seed in (123, 789)]  # fmt: skip
    for spec in [*specs, *reversed(specs)]:
        frames = last_frames(engine.stream(request(spec)))
        whole = Engine().arrays(spec).stages["weights"]
        for frame in frames.values():
            np.testing.assert_array_equal(frame.values, whole[frame.head])


def test_thumbnails_show_every_stage_last_of_all():
    spec = make_spec(mask="three-step", dropout=0.5)
    messages = list(Engine().stream(request(spec, viewport=Viewport(thumbnail=32))))
    end = next(i for i, m in enumerate(messages) if isinstance(m, Finished))
    names = [m.panel for m in messages[end + 1 :]]
    assert list(dict.fromkeys(names)) == [f"thumbnail:{stage}" for stage in stages_of(spec)]


@pytest.mark.parametrize("stage", ["weights", "values", "output", "row_sums"])
def test_probes_give_the_exact_number_of_every_panel(stage):
    spec = make_spec(mask="three-step")
    engine = Engine()
    list(engine.stream(request(spec, View(stage=stage), generation=5)))
    whole = engine.arrays(spec).stages[stage]
    list(engine.stream(request(spec, View(stage=stage), generation=6)))
    (answer,) = engine.probe(Probe(6, 1, 0))
    expected = [whole[1, 0]] if stage == "output" else [head[1, 0] for head in whole]
    assert list(answer.values) == [float(v) for v in expected]
    assert (answer.row_sums is not None) == (stage == "weights")
    assert not list(engine.probe(Probe(5, 1, 0)))
    assert not list(engine.probe(Probe(6, 99, 0)))


def test_what_cannot_fit_is_refused_before_allocating_with_bytes_and_budget():
    spec = make_spec(Text(text="word " * 10_000), num_heads=12)
    engine = Engine(budget_bytes=200_000_000)
    with pytest.raises(ComputationError, match=r"12 heads × 10,000 tokens need .* MB, but the memory limit is 200 MB"):
        list(engine.stream(request(spec)))
    with pytest.raises(ComputationError, match=r"12 heads × 10,000 tokens need .* GB, but the memory limit is 200 MB"):
        engine.arrays(spec)
    assert not engine._opener._kept


def test_a_device_that_is_not_here_is_said_with_those_that_are():
    with pytest.raises(ComputationError, match=r"cuda:7 is not here.*cpu, cuda:0, cuda:1") as caught:
        list(Engine(TwoCudaDevices()).stream(request(edited(JOURNEY, device="cuda:7"))))
    assert caught.value.device_failed


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
def test_out_of_memory_at_any_block_is_said_and_the_engine_goes_on(fails_at):
    engine = Engine(TwoCudaDevices(fails_at))
    spec = edited(JOURNEY, device="cuda:1")
    with pytest.raises(ComputationError, match=r"cuda:1 ran out of memory at 2 heads × 6 tokens") as caught:
        list(engine.stream(request(spec)))
    assert caught.value.device_failed
    assert "2.00 GiB" in caught.value.details
    assert isinstance(list(engine.stream(request(JOURNEY)))[-1], Finished)


def test_three_steps_nan_rows_and_lost_digits_are_said_in_words():
    def remarks(lead, dtype="float32"):
        scores = ((0.0, -0.2, lead), (0.0, -0.2, lead), (0.0, 0.0, 0.0))
        spec = make_spec(TypedScores(scores=scores), mask="three-step", dtype=dtype)
        return list(Engine().stream(request(spec)))[-1].remarks

    assert remarks(0.0) == ()
    nan = remarks(105.0)
    assert "2 rows are NaN" in nan[0]
    assert "104.0" in nan[0]
    assert "0/0" in nan[0]
    faint = remarks(95.0)
    assert "2 rows are short of digits" in faint[0]
    assert "17.3" in remarks(18.0, "float16")[0]
    assert "short of digits" in remarks(14.0, "float16")[0]
    assert "92.9" in remarks(94.0, "bfloat16")[0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_arrays_keep_their_dtype_but_bfloat16(dtype):
    arrays = Engine().arrays(make_spec(dtype=dtype))
    expected = "float32" if dtype == "bfloat16" else dtype
    assert {str(a.dtype) for a in arrays.stages.values()} == {expected}
    assert arrays.stages["weights"].shape == (2, 6, 6)
    assert arrays.stages["output"].shape == (6, 4)


def test_a_batch_keeps_its_axis_in_arrays_and_shows_its_first_item():
    spec = make_spec(batch=3, dropout=0.5)
    engine = Engine()
    arrays = engine.arrays(spec)
    assert arrays.stages["weights"].shape == (3, 2, 6, 6)
    assert arrays.stages["inputs"].shape == (3, 6, 3)
    frames = last_frames(engine.stream(request(spec, View(stage="dropped_weights"))))
    np.testing.assert_array_equal(frames["head:1"].values, arrays.stages["dropped_weights"][0, 1])


def test_the_outline_names_stages_shapes_and_parameters():
    outline = next(iter(Engine().stream(request(make_spec(implementation="split")))))
    shapes = {stage.name: stage.shape for stage in outline.stages}
    assert shapes["inputs"] == (6, 3)
    assert shapes["queries"] == (2, 6, 2)
    assert shapes["weights"] == (2, 6, 6)
    assert shapes["output"] == (6, 4)
    kinds = {row.name: row.kind for row in outline.parameters}
    assert "buffer" in kinds.values()
    assert any("out_proj" in name for name in kinds)
    typed = next(iter(Engine().stream(request(make_spec(TypedWeights(weights=((1.0,),)))))))
    assert typed.parameters == ()


def test_future_cells_are_counted_only_where_they_stay_visible():
    cat = make_spec(Lesson(name="cat-eats-fish"), mask="none")
    assert last_frames(Engine().stream(request(cat)))["head:0"].counts.future == 3
    assert last_frames(Engine().stream(request(edited(cat, mask="neg-inf"))))["head:0"].counts.future == 0
    ones = make_spec(TypedWeights(weights=((1.0, 1.0), (1.0, 1.0))))
    assert last_frames(Engine().stream(request(ones)))["head:0"].counts.future == 0


def test_devices_have_names_and_memory():
    (cpu, *_) = Engine().devices()
    assert cpu.name == "cpu"
    assert cpu.total_bytes > cpu.free_bytes > 0


def test_a_kept_buffer_never_shows_what_another_picture_left_in_it():
    """Hidden weights are not written again while a mask stays: every way of getting something else in between."""
    spec = make_spec(RandomQK(length=300), num_heads=4, d_out=64)
    views = [
        (spec, "weights"), (edited(spec, mask="none"), "weights"), (spec, "weights"), (spec, "scores"),
        (spec, "weights"), (edited(spec, mask_shape=SlidingWindow(width=9)), "weights"), (spec, "weights"),
        (edited(spec, dropout=0.5), "dropped_weights"), (edited(spec, seed=1), "weights"),
        (edited(spec, mask="three-step"), "weights"), (edited(spec, fill=0.0), "weights"), (spec, "weights"),
        (edited(spec, num_heads=2, d_out=64), "weights"), (edited(spec, mask_shape=PadLeft(count=5)), "weights"),
        (spec, "weights"),
    ]  # fmt: skip
    engine = Engine()
    for generation, (wanted, stage) in enumerate(views, 1):
        for message in engine.stream(request(wanted, View(stage=stage), generation=generation)):
            if isinstance(message, Frame) and message.panel == "head:1":
                frame = message
        whole = engine.arrays(wanted).stages[stage][1]
        np.testing.assert_allclose(frame.values, whole, rtol=1e-5, atol=1e-9)
