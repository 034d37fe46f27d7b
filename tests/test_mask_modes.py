"""Multiply, add, fills and top-k: by hand, against torch's own attention and against the usual code."""

import math

import numpy as np
import pytest
import reference as ref
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from passes import computed, stage

from attnviz.attention import masks
from attnviz.attention.longmaps import HeadMap, Known
from attnviz.engine import Engine
from attnviz.frames import CellClass, Finished, Frame, Outline, Probe, ProbeAnswer, RowAnswer
from attnviz.spec import (
    CHOICES,
    Causal,
    Drawn,
    Lesson,
    PadLeft,
    RandomQK,
    Request,
    SlidingWindow,
    SpecError,
    TypedScores,
    View,
    Viewport,
    edited,
    fill_words,
    held,
    make_spec,
    masked_at,
    stages_of,
)

CAT = Lesson(name="cat-eats-fish")
JOURNEY = make_spec(num_heads=1, d_out=2, seed=789)
NOTHING = Drawn()
UNIFORM, SOFTMAX_OF_123 = (1 / 3, 1 / 3, 1 / 3), (0.09, 0.2447, 0.6652)


def near(cells, figures, within=5.1e-5):
    np.testing.assert_allclose(cells.double().numpy(), np.array(figures, float), atol=within)


@pytest.fixture
def engines():
    both = [Engine(dense_bytes=dense_bytes) for dense_bytes in (1 << 30, 0)]
    yield both
    for engine in both:
        engine.close()


# ------------------------------------------------------------------------------------------------------------- multiply


def test_multiplied_weights_are_the_books_and_are_never_divided():
    spec = edited(JOURNEY, mask="multiply")
    assert stages_of(spec)[-5:] == ("unmasked_weights", "weights", "context", "joined", "output")
    result = computed(spec)
    near(result.stages["unmasked_weights"][0], ref.WEIGHTS_UNMASKED)
    near(result.stages["weights"][0], ref.WEIGHTS_UNNORMALISED)
    near(result.stages["weights"][0].sum(1)[:2], [0.1921, 0.37])


def test_the_row_of_eats_does_not_sum_to_1_when_the_mask_comes_last():
    near(stage(make_spec(CAT, mask="multiply"), "weights")[1].sum(), 0.7553, within=1e-4)


def test_multiplied_weights_leak_through_their_denominator():
    """No weight lies on the future, and yet a later token changes what an earlier one mixes."""
    rows = ((0.0, 0.0), (0.0, 0.0)), ((0.0, 3.0), (0.0, 0.0))
    first = [stage(make_spec(TypedScores(scores=scores), mask="multiply"), "weights")[0] for scores in rows]
    assert first[0].tolist() == [0.5, 0.0]
    assert first[1][0] == pytest.approx(1 / (1 + math.exp(3)))


def test_a_row_that_sees_nothing_is_0_when_multiplied():
    result = computed(make_spec(TypedScores(scores=((1.0, 2.0, 3.0),)), mask="multiply", mask_shape=NOTHING))
    assert result.stages["weights"].tolist() == [[[0.0, 0.0, 0.0]]]
    assert result.visible.tolist() == [0]


# ----------------------------------------------------------------------------------------------------------------- add


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40), st.sampled_from([-math.inf, 0.0, -1.5, -1e4, -1e9]), st.sampled_from(["float64", "float32"]),
    st.sampled_from([Causal(), SlidingWindow(width=3), PadLeft(count=2)]),
)  # fmt: skip
def test_an_added_mask_is_torchs_own(length, fill, dtype, shape):
    """`scaled_dot_product_attention` with an ``attn_mask`` of numbers, over an identity as values."""
    spec = make_spec(
        RandomQK(length=length), num_heads=1, d_out=8, mask="add", fill=fill, mask_shape=shape, dtype=dtype
    )
    result = computed(spec, keep={"queries", "keys", "weights", "masked_scores"})
    q, k, ours = (result.stages[name] for name in ("queries", "keys", "weights"))
    added = torch.zeros(length, length, dtype=q.dtype).masked_fill_(result.masked, fill)
    eye = torch.eye(length, dtype=q.dtype)[None]
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, eye, attn_mask=added)
    sighted = torch.ones(length, dtype=torch.bool) if math.isfinite(fill) else result.visible > 0
    assert torch.allclose(ours[0, sighted], theirs[0, sighted], rtol=2e-5, atol=1e-7)
    assert torch.isnan(ours[0, ~sighted]).all()


@pytest.mark.parametrize("shape", [Causal(), SlidingWindow(width=2)])
def test_minus_infinity_added_is_minus_infinity_written(shape):
    written = computed(edited(JOURNEY, mask_shape=shape)).stages
    added = computed(edited(JOURNEY, mask="add", mask_shape=shape)).stages
    assert list(written) == list(added)
    assert all(torch.equal(written[name], added[name]) for name in written)


def test_an_added_mask_may_stand_before_the_scale():
    spec = edited(JOURNEY, mask="add", fill=-2.0, scale_after_mask=True)
    every = computed(spec).stages
    names = list(every)
    assert names.index("scores") < names.index("masked_scores") < names.index("scaled_scores")
    hidden = torch.ones(6, 6).triu(1)
    assert torch.equal(every["masked_scores"][0], every["scores"][0] - 2 * hidden)
    assert torch.allclose(every["scaled_scores"], every["masked_scores"] / math.sqrt(2))


def test_a_score_of_infinity_stays_no_number_under_an_added_mask(engines):
    """+∞ − ∞ is NaN, where −∞ written over it is not: half precision's own trap, the same in tiles."""
    for mask, has_nan in ("add", True), ("neg-inf", False):
        spec = make_spec(RandomQK(length=60, qk_scale=250.0), num_heads=1, d_out=8, mask=mask, dtype="float16")
        dense, tiled = (shown(engine, spec, "masked_scores" if mask == "add" else "weights") for engine in engines)
        np.testing.assert_array_equal(dense.classes, tiled.classes)
        if mask == "add":
            weights = [shown(engine, spec, "weights").classes for engine in engines]
            np.testing.assert_array_equal(*weights)
            assert np.isnan(dense.values).any() == has_nan


@pytest.mark.parametrize(
    ("fill", "shape", "dtype", "scale", "route"),
    [
        (-math.inf, Causal(), "float32", 1, "sweep"),
        (-1e4, Causal(), "float32", 1, "sweep"),
        (-1e4, Causal(), "bfloat16", 1, "sweep"),
        (-3.0, Causal(), "float32", 1, "rows"),
        (-1e4, PadLeft(count=2), "float32", 1, "rows"),  # a row that sees nothing
        (-1e4, Causal(), "float32", 1000, "rows"),  # scores as deep as the fill
        (-math.inf, Causal(), "float16", 10_000, "rows"),  # infinite scores
        (-math.inf, Causal(), "float32", 1000, "sweep"),
    ],
)
def test_an_added_mask_is_swept_where_it_is_sure_to_be_one_of_minus_infinity(fill, shape, dtype, scale, route):
    spec = make_spec(RandomQK(length=20), num_heads=1, d_out=8, mask="add", fill=fill, mask_shape=shape, dtype=dtype)
    q, k = (torch.randn(20, 8, generator=torch.Generator().manual_seed(n)).to(getattr(torch, dtype)) for n in range(2))
    known = Known.nothing(20, torch.float32, torch.device("cpu"), softmax_first=False)
    assert HeadMap(spec, "weights", 0, q * scale, k, masks.shaped(shape, 20, 20), known).route == route


# ----------------------------------------------------------------------------------- what a row that sees nothing shows


@pytest.mark.parametrize(
    ("mask", "fill", "dtype", "weights"),
    [
        ("neg-inf", -math.inf, "float32", (math.nan,) * 3),
        ("neg-inf", -1e9, "float64", UNIFORM),
        ("neg-inf", -1e9, "float32", UNIFORM),
        ("neg-inf", -1e9, "float16", (math.nan,) * 3),  # which is −∞ there
        ("add", -1e9, "float64", SOFTMAX_OF_123),
        ("add", -1e9, "float32", UNIFORM),
        ("add", 0.0, "float32", SOFTMAX_OF_123),
        ("multiply", -math.inf, "float32", (0, 0, 0)),
        ("three-step", -math.inf, "float32", (math.nan,) * 3),
        ("none", -math.inf, "float32", SOFTMAX_OF_123),
    ],
)
def test_a_fully_masked_row(mask, fill, dtype, weights):
    spec = make_spec(
        TypedScores(scores=((1.0, 2.0, 3.0),)), mask=mask, fill=fill, dtype=dtype, mask_shape=NOTHING
    )  # fmt: skip
    near(stage(spec, "weights")[0], weights)


@pytest.mark.parametrize(("fill", "weights"), [(0.0, ref.FILLED_WITH_ZERO), (-math.inf, ref.FILLED_WITH_NEG_INF)])
def test_0_is_no_mask_and_minus_infinity_is(fill, weights):
    spec = make_spec(TypedScores(scores=((2.0, 0.0),)), fill=fill, mask_shape=Drawn(runs=((0, 1, 1),)))
    assert stage(spec, "weights")[0].tolist() == list(weights)


@pytest.mark.parametrize("mask", ["neg-inf", "add"])
def test_an_outline_says_what_a_fill_lets_through(mask):
    engine = Engine()
    for fill, hidden in (-math.inf, True), (-1e9, True), (0.0, False):
        spec = make_spec(CAT, mask=mask, fill=fill)
        request = Request(spec=spec, view=View(), viewport=Viewport(), generation=1)
        outline = next(message for message in engine.stream(request) if isinstance(message, Outline))
        assert outline.future_hidden == hidden
    engine.close()


def test_cells_that_a_fill_of_0_lets_weigh_are_not_called_masked(engines):
    for mask in "neg-inf", "add":
        frame = shown(engines[0], make_spec(CAT, mask=mask, fill=0.0), "weights")
        assert (frame.classes == CellClass.ORDINARY).all()


# --------------------------------------------------------------------------------------------------------------- fills

FILLS = [0.0, -0.0, -1.0, -0.1, -12.0, -1e4, -1e6, -1e9, -1e38, -1e39, -65504.0, -65510.0, -65520.0, -1e-9, -2049.0,
         -3.39e38, -1e-46, -math.inf, 3.0, 65504.0]  # fmt: skip


@given(st.sampled_from(FILLS) | st.floats(-1e39, 6e4) | st.floats(-7e4, 1.0), st.sampled_from(CHOICES["dtype"]))
def test_a_fill_is_held_as_torch_holds_it(fill, dtype):
    theirs = float(torch.tensor(fill, dtype=torch.float64).to(getattr(torch, dtype)))
    assert held(fill, dtype) == theirs
    spec = make_spec(fill=fill, dtype=dtype)
    said = fill_words(spec)
    assert (said is None) == (theirs == fill)
    try:
        torch.zeros(1, dtype=getattr(torch, dtype)).masked_fill(torch.tensor([True]), fill)
        refused = False
    except RuntimeError:
        refused = True
    assert ("refuse" in (said or "")) == refused


@pytest.mark.parametrize(
    ("mask", "dtype", "fill", "words"),
    [
        ("neg-inf", "float16", -1e9, "float16 has no −10⁹: it becomes −∞ (torch's masked_fill would refuse it)"),
        ("add", "float16", -1e9, "float16 has no −10⁹: it becomes −∞"),
        ("neg-inf", "bfloat16", -1e4, "bfloat16 makes −10⁴ into −9,984"),
        ("add", "float16", -2049.0, "float16 makes −2,049 into −2,048"),
        ("neg-inf", "float32", -0.1, "float32 makes −0.1 into −0.100000001"),
        ("neg-inf", "float32", -1e9, None),
        ("neg-inf", "float16", -math.inf, None),
        ("three-step", "float16", -1e9, None),
    ],
)
def test_what_a_dtype_makes_of_a_fill_is_said(mask, dtype, fill, words):
    assert fill_words(make_spec(mask=mask, dtype=dtype, fill=fill)) == words


# --------------------------------------------------------------------------------------------------------------- top-k


def usual_top_k(scores, k):
    """What sampling code does to its logits."""
    least = torch.topk(scores, min(k, scores.shape[-1])).values[..., -1:]
    return scores.masked_fill(scores < least, -math.inf)


rows = st.integers(1, 8).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(-3, 3).map(float), min_size=n, max_size=n).map(tuple), min_size=1, max_size=n
    )
)


@given(rows, st.integers(1, 9), st.sampled_from(["none", "neg-inf", "add"]))
def test_top_k_is_what_sampling_code_does(scores, k, mask):
    spec = make_spec(TypedScores(scores=tuple(scores)), mask=mask, top_k=k)
    result = computed(spec)
    given_scores = torch.tensor(scores)
    hidden = torch.zeros_like(given_scores, dtype=torch.bool)
    if mask != "none":
        hidden = torch.ones_like(hidden).triu(1 + given_scores.shape[1] - len(given_scores))
    expected = usual_top_k(given_scores.masked_fill(hidden, -math.inf), k)
    assert torch.equal(result.stages["masked_scores"][0], expected)
    assert torch.allclose(result.stages["weights"][0], torch.softmax(expected, -1))
    cut = expected == -math.inf
    assert torch.equal(cut if result.masked is None else result.masked, cut)
    if result.masked is not None:
        assert result.visible.tolist() == (~cut).sum(1).tolist()


def test_ties_with_the_last_one_stay():
    weights = stage(make_spec(TypedScores(scores=((2.0, 1.0, 1.0, 0.0),)), mask="none", top_k=2), "weights")[0]
    assert (weights > 0).tolist() == [True, True, True, False]


def test_a_finite_fill_keeps_what_is_hidden_and_top_k_takes_what_is_visible():
    spec = make_spec(
        TypedScores(scores=((5.0, 1.0, 9.0),)), fill=0.0, top_k=1, mask_shape=Drawn(runs=((0, 0, 1),))
    )  # fmt: skip
    assert stage(spec, "masked_scores")[0].tolist() == [5.0, -math.inf, 0.0]


def test_top_k_is_a_stage_of_its_own_without_a_mask():
    spec = make_spec(CAT, mask="none", top_k=2)
    assert stages_of(spec) == ("scaled_scores", "masked_scores", "weights", "context")
    assert masked_at(spec, "masked_scores")
    assert not masked_at(spec, "scaled_scores")
    assert stages_of(make_spec(mask="none", top_k=2, scale_after_mask=True))[4:8] == (
        "scores", "masked_scores", "scaled_scores", "weights",
    )  # fmt: skip


@pytest.mark.parametrize("mask", ["three-step", "multiply"])
def test_top_k_is_refused_where_the_mask_acts_after_the_softmax(mask):
    with pytest.raises(SpecError, match="acts after the softmax") as caught:
        make_spec(mask=mask, top_k=2)
    assert caught.value.field == "top_k"


# --------------------------------------------------------------------------------------------- on the screen, both ways


def shown(engine, spec, name):
    request = Request(spec=spec, view=View(stage=name), viewport=Viewport(pixels=(512, 512)), generation=1)
    messages = list(engine.stream(request))
    assert any(isinstance(message, Finished) for message in messages)
    return next(m for m in reversed(messages) if isinstance(m, Frame) and m.panel == f"head:{spec.num_heads - 1}")


@pytest.mark.parametrize(
    "mode",
    [
        {"mask": "multiply"},
        {"mask": "add", "fill": -3.0},
        {"mask": "add", "fill": -3.0, "scale_after_mask": True},
        {"mask": "none", "top_k": 5},
        {"mask": "none", "top_k": 5, "scale_after_mask": True},
        {"mask": "neg-inf", "top_k": 5},
        {"mask": "add", "fill": -3.0, "top_k": 5},
    ],
)
def test_tiles_and_probes_say_what_the_dense_pass_says(mode, engines):
    spec = make_spec(RandomQK(length=130), num_heads=2, d_out=16, mask_shape=SlidingWindow(width=40), **mode)
    for name in stages_of(spec)[2:]:
        dense, tiled = (shown(engine, spec, name) for engine in engines)
        np.testing.assert_array_equal(dense.classes, tiled.classes, err_msg=name)
        ordinary = (dense.classes & CellClass.ORDINARY) > 0
        np.testing.assert_allclose(dense.values[ordinary], tiled.values[ordinary], rtol=1e-5, atol=1e-6, err_msg=name)
        answers = [list(engine.probe(Probe(1, 90, 100, 1, whole_row=True))) for engine in engines]
        whole = [next(a for a in some if isinstance(a, RowAnswer)) for some in answers]
        np.testing.assert_allclose(whole[0].values, whole[1].values, rtol=1e-5, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(whole[0].classes, whole[1].classes)
        cells = [[a for a in some if isinstance(a, ProbeAnswer)][-1] for some in answers]
        np.testing.assert_allclose(cells[0].values, cells[1].values, rtol=1e-5, atol=1e-6, err_msg=name)
        assert cells[0].classes == cells[1].classes
        if -1 not in (tiled.counts.masked, tiled.counts.zero):
            assert dense.counts == tiled.counts, name


def test_heads_take_their_own_cells_away():
    spec = make_spec(RandomQK(length=64), num_heads=3, d_out=24, top_k=4)
    engine = Engine()
    frames = {}
    for message in engine.stream(Request(spec=spec, view=View(), viewport=Viewport(), generation=1)):
        if isinstance(message, Frame):
            frames[message.panel] = message
    engine.close()
    seen = [frame.classes == CellClass.ORDINARY for frame in frames.values()]
    assert all(some.sum() == 1 + 2 + 3 + 61 * 4 for some in seen)
    assert not np.array_equal(seen[0], seen[1])
