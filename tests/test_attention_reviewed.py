"""What a review found in the mathematics and in what the engine keeps: each of these was wrong once."""

import math
from contextlib import closing

import numpy as np
import pytest
import torch
from test_tiles import pictures
from test_tiles_odd import both, same

from attnviz.attention import masks, stages
from attnviz.attention.devices import TorchBackend
from attnviz.attention.remarks import blind_remarks
from attnviz.attention.tiles import Scores, Sweep, Workspace
from attnviz.engine import Engine
from attnviz.engine.dense import Dense
from attnviz.engine.long import LongMaps
from attnviz.engine.memory import Budget
from attnviz.engine.opened import Opener
from attnviz.frames import CellClass, Frame, Outline
from attnviz.spec import (
    CHOICES,
    LESSONS,
    STAGES,
    Lesson,
    PadLeft,
    PadRight,
    RandomEmbeddings,
    RandomQK,
    Request,
    SpecError,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
)
from attnviz.tensor_files import describe_qk
from attnviz.window.gestures import Gestures


def one_head(length, **fields):
    return make_spec(RandomQK(length=length), **{"num_heads": 1, "d_out": 16} | fields)


# ----------------------------------------------------------------------------------------------------- the kept buffer


def last_values(engine, spec, stage, stop_after=None):
    """Values of the last frame; with ``stop_after`` the stream is cancelled behind so many frames."""
    frames = []
    request = Request(spec=spec, view=View(stage=stage), viewport=Viewport(pixels=(64, 64)), generation=1)
    for message in engine.stream(request, lambda: stop_after is not None and len(frames) >= stop_after):
        if isinstance(message, Frame):
            frames.append(message.values)
    return frames[-1]


@pytest.mark.parametrize("batch", [1, 2])  # several heads in one product, or one by one
def test_a_pass_that_was_cancelled_leaves_no_weights_for_the_contexts_of_another(batch):
    masked = make_spec(RandomEmbeddings(length=24), num_heads=4, d_model=16, d_out=32, batch=batch)
    with closing(Engine()) as engine:
        expected = last_values(engine, masked, "output")
    with closing(Engine()) as engine:
        last_values(engine, masked, "weights")
        last_values(engine, edited(masked, mask="none"), "weights", stop_after=1)
        np.testing.assert_allclose(last_values(engine, masked, "output"), expected, rtol=1e-5, atol=1e-7)


def test_weights_that_stand_whole_are_mixed_from_where_they_stand():
    spec = make_spec(RandomEmbeddings(length=24), num_heads=4, d_model=16, d_out=32)
    with closing(Engine()) as engine, pytest.MonkeyPatch.context() as patch:
        last_values(engine, spec, "weights")
        patch.setattr(Dense, "vectors", lambda *_args, **_more: pytest.fail("they were computed again"))
        assert np.isfinite(last_values(engine, spec, "output")).all()


# ----------------------------------------------------------------------------------------------- rows that see nothing


def test_a_block_that_sees_nothing_keeps_its_first_softmax_however_low_its_scores_lie(tmp_path):
    length, blind = 600, 400
    draw = np.random.default_rng(0)
    q = np.full((1, length, 8), 10, np.float32)
    k = -2 * q + draw.standard_normal(q.shape).astype(np.float32)
    np.savez(tmp_path / "low.npz", q=q, k=k)
    spec = make_spec(describe_qk(tmp_path / "low.npz"), mask="three-step", mask_shape=PadLeft(count=blind))
    assert (q @ k.transpose(0, 2, 1)).max() / math.sqrt(8) < -300
    dense, tiled = both(spec, "unmasked_weights", pixels=1000)
    assert np.isfinite(dense.values).all()
    same(dense, tiled, rtol=1e-3)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "2 rows see no key: there is nothing to share out, and −∞ gives NaN."),
        ({"mask": "add"}, "−∞ gives NaN"),
        ({"fill": -1e9, "dtype": "float16"}, "−∞ gives NaN"),
        ({"fill": -1e9}, "a finite fill gives uniform weights"),
        ({"mask": "add", "fill": -1e9}, "hides nothing"),
        ({"mask": "three-step"}, "0/0 gives NaN"),
        ({"mask": "multiply"}, "every weight is 0"),
        ({"mask": "none"}, None),
        ({"mask_shape": PadLeft(count=1)}, "1 row sees no key"),
        ({"mask_shape": PadRight(count=2)}, None),
    ],
)
def test_rows_that_see_no_key_are_told_with_what_becomes_of_them(fields, words):
    spec = make_spec(RandomQK(length=5), **{"num_heads": 1, "d_out": 4, "mask_shape": PadLeft(count=2)} | fields)
    mask = None if spec.mask == "none" else masks.shaped(spec.mask_shape, 5, 5)
    said = blind_remarks(spec, "weights", mask)
    assert blind_remarks(spec, "scores", mask) == ()
    assert len(said) == (words is not None)
    assert all(words in sentence for sentence in said)
    if said:
        q, k = torch.ones(1, 5, 4), torch.ones(1, 5, 4)
        dtype = getattr(torch, spec.dtype)
        row = stages.head_stages(spec, head=0, keep={"weights"}, q=q.to(dtype), k=k.to(dtype)).stages["weights"][0, 0]
        assert bool(torch.isnan(row).all()) == ("NaN" in words or "1 row" in words)
        assert bool((row == 0).all()) == ("is 0" in words)


# ------------------------------------------------------------------------------------------- a scale after the mask


def leaking(**fields):
    return one_head(40, scale_after_mask=True, **{"fill": -500.0, "d_out": 64} | fields)


@pytest.mark.parametrize(
    ("spec", "leaks"),
    [
        (leaking(), True),  # −500 ÷ 8 is −62.5
        (leaking(d_out=16), False),  # −125
        (leaking(scale=-1.0), True),
        (leaking(scale=0.0), True),
        (leaking(scale="none"), False),
        (edited(leaking(), scale_after_mask=False), False),
        (leaking(dtype="float16"), False),  # −62.5 is too deep there
        (leaking(dtype="float16", scale=0.01), True),
        (leaking(mask="add"), True),
        (leaking(mask="three-step"), False),
        (leaking(fill=-math.inf), False),
        (leaking(fill=-60000.0, dtype="float16", scale=2.0), False),  # −∞ once scaled
    ],
)
def test_the_outline_says_what_a_fill_lets_through_once_it_is_scaled(spec, leaks):
    with closing(Engine()) as engine:
        request = Request(spec=spec, view=View(), viewport=Viewport(), generation=1)
        outline, *others = engine.stream(request)
    assert isinstance(outline, Outline)
    assert outline.future_hidden is not leaks
    values = next(message.values for message in others if isinstance(message, Frame))
    future = values[np.triu_indices(len(values), 1)]
    assert bool((future > 0).any()) is leaks


@pytest.mark.parametrize("stage", ["masked_scores", "scaled_scores", "weights"])
@pytest.mark.parametrize(
    "fields",
    [
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": 0.0, "fill": -5.0},
        {"fill": -60000.0, "scale": 2.0, "dtype": "float16"},
        {"fill": -3e38, "scale": 8.0},
        {"fill": -1000.0, "scale": 0.3, "dtype": "bfloat16"},
        {"fill": -333.0, "scale": 0.007, "dtype": "float16"},
        {"fill": -60000.0, "scale": 2.0, "dtype": "float16", "mask": "add"},
        {"top_k": 3, "scale": -1.0},
        {"top_k": 3, "scale": 0.0, "mask": "none"},
    ],
    ids=str,
)
def test_tiles_fill_what_the_dense_pass_fills_where_the_scale_comes_last(fields, stage):
    spec = one_head(150, scale_after_mask=True, mask_shape=PadLeft(count=3), **fields)
    dense, tiled = both(spec, stage)
    half = spec.dtype in ("float16", "bfloat16")
    same(dense, tiled, rtol=2e-2 if half else 1e-4)


@pytest.mark.parametrize("dtype", CHOICES["dtype"])
@pytest.mark.parametrize("scale", ["auto", "none", 0.3, -2.0])
def test_the_fill_that_the_softmax_meets_is_the_one_in_the_scaled_scores(dtype, scale):
    spec = make_spec(
        RandomQK(length=7), num_heads=1, d_out=6, fill=-12345.0, scale=scale, scale_after_mask=True, dtype=dtype
    )
    q = torch.ones(1, 7, 6, dtype=getattr(torch, dtype))
    cells = stages.head_stages(spec, head=0, keep={"scaled_scores"}, q=q, k=q).stages["scaled_scores"]
    assert stages.acting_fill(spec) == float(cells[0, 0, 6])


def test_nan_scores_of_a_scale_of_0_are_counted_as_no_masked_cells():
    dense, tiled = both(one_head(150, scale_after_mask=True, scale=0.0), "scaled_scores")
    assert dense.counts.nan == 150 * 149 // 2
    assert tiled.counts.nan in (dense.counts.nan, -1)
    assert tiled.counts.masked in (0, -1)


# ------------------------------------------------------------------------------------------------------------- recall


def test_a_workspace_tells_the_classes_of_two_levels_apart():
    length = 2048
    vectors = torch.randn(length, 8, generator=torch.Generator().manual_seed(0))
    mask = masks.shaped(PadRight(count=length - 300), length, length)
    scores = Scores(vectors, vectors, 0.1, mask=mask)

    def sets(level, space):
        bins = Sweep(scores, plain=True, workspace=space, group_sets=True).normalise(range(256), level)
        return bins.sets.tolist()

    space = Workspace()
    assert sets(256, space) == sets(256, Workspace())
    assert sets(512, space) == sets(512, Workspace())  # whose bins begin at 0 alone, as those of 256 do


# -------------------------------------------------------------------------------------------------------- what is kept

BARE = make_spec(RandomQK(length=4096), num_heads=2, d_out=64, training=False)
BARE_BYTES = 2 * 2 * 4096 * 32 * 4


def memory(*kept):
    return sum({address: size for one in kept for address, size in one.storages.items()}.values())


def test_the_source_before_stays_only_where_there_is_room_for_it():
    opener = Opener(TorchBackend())
    first = opener.open(BARE, room=BARE_BYTES)
    opener.open(edited(BARE, seed=5))
    assert memory(opener) == 2 * BARE_BYTES
    assert opener.open(BARE) is first
    opener.open(edited(BARE, seed=6), room=BARE_BYTES - 1)
    assert memory(opener) == BARE_BYTES
    again = opener.open(BARE)  # the room was said last time
    assert again is not first
    assert memory(opener) == BARE_BYTES


def test_what_lies_in_a_file_takes_no_memory_and_what_is_shared_counts_once():
    opener = Opener(TorchBackend())
    opener.open(BARE, in_memory=False)
    assert memory(opener) == 0
    opener.forget()
    spec = make_spec(RandomEmbeddings(length=50), num_heads=2, d_model=8, d_out=16)
    opened = opener.open(spec)
    assert opened.embedded is not None
    module = sum(t.nbytes for t in (*opened.module.parameters(), *opened.module.buffers()))
    assert memory(opener) == 50 * 8 * 4 + module  # the embeddings, which the module takes as they are
    opener.head_inputs(spec, 0, opened)
    assert memory(opener) == 50 * 8 * 4 + module + 3 * 50 * 16 * 4


def test_both_kinds_of_maps_say_what_they_keep():
    backend = TorchBackend()
    opener = Opener(backend)
    dense = Dense(backend, opener)
    small_one = edited(BARE, source=RandomQK(length=64))
    dense.panel(small_one, "weights", 0, opener.open(small_one))
    assert memory(dense) == 2 * 64 * 64 * 4
    dense.forget()
    assert memory(dense) == 0
    long = LongMaps(backend, opener)
    long.heads(BARE, "weights", opener.open(BARE))
    assert memory(long) == BARE_BYTES
    assert memory(long, opener) == memory(opener)  # the same tensors
    long.forget_but(edited(BARE, dropout=0.5, training=True))
    assert memory(long) == BARE_BYTES
    long.forget_but(edited(BARE, mask="none"))
    assert memory(long) == 0


def test_a_budget_says_what_may_stay_of_the_source_before():
    long = edited(BARE, source=RandomQK(length=131072), num_heads=4)
    held = Budget(long, 600_000_000, was_set=True).check(("weights",), long=True)
    assert held == 4 * 2 * 131072 * 64 * 4
    room = Budget(long, 600_000_000, was_set=True).beside(held)
    assert room < 600_000_000 - held - 150_000_000  # tiles take a quarter
    assert Budget(long, 300_000_000, was_set=True).beside(held) == 0
    assert Budget(long, 2_000_000_000, was_set=True).beside(held) > held
    dense = edited(BARE, source=RandomQK(length=64))
    assert Budget(dense, 10_000_000, was_set=True).beside(1_000_000) == 9_000_000


# ------------------------------------------------------------------------------------------------------ mask and top-k


@pytest.mark.parametrize("mask", CHOICES["mask"])
@pytest.mark.parametrize("top_k", [None, 2])
def test_another_mask_is_never_refused_for_top_k(mask, top_k):
    changed = edited(make_spec(mask="neg-inf", top_k=top_k), mask=mask)
    assert changed.mask == mask
    assert changed.top_k == (None if mask in ("three-step", "multiply") else top_k)
    from_typed = edited(make_spec(top_k=top_k), mask=mask, source=TypedScores(scores=((1.0, 2.0),)))
    assert from_typed.mask == mask


def test_top_k_that_is_asked_for_beside_a_mask_that_cannot_have_it_is_refused():
    with pytest.raises(SpecError, match="acts after the softmax"):
        edited(make_spec(), mask="three-step", top_k=2)
    with pytest.raises(SpecError, match="acts after the softmax"):
        edited(make_spec(mask="three-step"), top_k=2)


class Asked:
    """The part of a controller that the mask's keys talk to."""

    def __init__(self, spec):
        self.specs = [spec]

    def wanted(self):
        return self.specs[-1], View()

    def edit_spec(self, spec):
        self.specs.append(spec)


def masks_after(spec, *names):
    asked = Asked(spec)
    gestures = Gestures(asked, lambda error: pytest.fail(str(error)))
    for name in names:
        getattr(gestures, name)()
    return [one.mask for one in asked.specs[1:]], asked.specs


def test_shift_m_goes_through_the_two_lessons_modes():
    assert masks_after(make_spec(mask="none"), *["next_mask"] * 4)[0] == ["three-step", "neg-inf", "none", "three-step"]
    for mask in "multiply", "add":
        assert masks_after(make_spec(mask=mask), "next_mask", "next_mask")[0] == ["none", "three-step"]


def test_the_masks_keys_never_fail_for_top_k():
    for mask in CHOICES["mask"]:
        modes, specs = masks_after(make_spec(mask="none", top_k=2), *["next_mask"] * 3)
        assert modes == ["three-step", "neg-inf", "none"]
        assert [one.top_k for one in specs] == [2, None, None, None]
        modes, specs = masks_after(make_spec(mask=mask), "toggle_mask", "toggle_mask")
        assert specs[-1].mask == (mask if mask != "none" else "none")


# -------------------------------------------------------------------------------------------------------------- stages


def test_every_stage_of_every_spec_has_a_name_in_the_list():
    sources = (*(Lesson(name=name) for name in LESSONS), TypedWeights(weights=((1.0,),)), RandomQK(length=2))
    found = set()
    for source in sources:
        for mask in CHOICES["mask"]:
            for site in CHOICES["dropout_site"]:
                try:
                    found.update(stages_of(make_spec(source, mask=mask, dropout=0.5, dropout_site=site)))
                except SpecError:  # what the source fixes
                    continue
    assert found == set(STAGES)
    assert len(STAGES) == len(set(STAGES))


def test_pictures_of_a_filled_map_keep_their_classes_at_every_level():
    spec = one_head(300, fill=-60000.0, scale=2.0, scale_after_mask=True, dtype="float16", mask_shape=PadLeft(count=3))
    for pixels in 30, 75:
        frames = []
        for dense_bytes in 1 << 40, 0:
            engine = Engine(dense_bytes=dense_bytes)
            frames.append(pictures(engine, spec, "weights", "max", pixels)["head:0"])
            engine.close()
        np.testing.assert_array_equal(frames[0].classes, frames[1].classes)
        assert frames[1].classes[0, 0] & CellClass.NAN
