import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from passes import computed, given_to, head_names, stage
from reference import NEG_INF, THREE_STEP_BY_LEAD

from attnviz.attention import masks
from attnviz.attention.stages import head_stages
from attnviz.spec import (
    QUERY_KEY_STAGES,
    Lesson,
    RandomEmbeddings,
    RandomQK,
    TypedScores,
    TypedWeights,
    edited,
    make_spec,
)

CAT = Lesson(name="cat-eats-fish")
DTYPES = ("float64", "float32", "float16", "bfloat16")
MASKS = ("none", "three-step", "neg-inf")


# ------------------------------------------------------------------------------------------------------------- oracles


def random_qkv(seed, batch, length, d_head, dtype):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(batch, length, d_head, generator=generator).to(dtype) for _ in range(3))


SHAPES = {
    "batch": st.integers(1, 3), "length": st.integers(1, 24), "num_heads": st.integers(1, 3),
    "d_head": st.integers(1, 16), "seed": st.integers(0, 1 << 40),
}  # fmt: skip


def bound(q, k, dtype):
    """Largest error of a weight: eps × (1 + the largest scaled score if nothing cancelled)."""
    size = (q.double().abs() @ k.double().abs().transpose(1, 2)).max() / math.sqrt(q.shape[-1])
    return torch.finfo(dtype).eps * (1 + float(size))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", MASKS)
@settings(max_examples=25, deadline=None)
@given(**SHAPES)
def test_weights_are_those_of_a_float64_oracle(dtype, mask, batch, length, num_heads, d_head, seed):
    spec = make_spec(
        RandomEmbeddings(length=length),
        num_heads=num_heads,
        d_out=num_heads * d_head,
        batch=batch,
        mask=mask,
        dtype=dtype,
    )
    for head in range(num_heads):
        q, k, v = random_qkv(seed + head, batch, length, d_head, getattr(torch, dtype))
        weights = head_stages(spec, head=head, keep={"weights"}, q=q, k=k, v=v).stages["weights"]
        scores = q.double() @ k.double().transpose(1, 2) / math.sqrt(d_head)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        exact = torch.softmax(scores if mask == "none" else scores.masked_fill(future, NEG_INF), -1)
        assert weights.dtype == q.dtype
        assert float((weights.double() - exact).abs().max()) <= bound(q, k, q.dtype)
        if mask != "none":
            assert (weights[:, future] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25, deadline=None)
@given(**SHAPES)
def test_weights_and_context_are_those_of_sdpa(dtype, batch, length, num_heads, d_head, seed):
    spec = make_spec(
        RandomEmbeddings(length=length), num_heads=num_heads, d_out=num_heads * d_head, batch=batch, dtype=dtype
    )
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for head in range(num_heads):
        q, k, v = random_qkv(seed + head, batch, length, d_head, getattr(torch, dtype))
        stages = head_stages(spec, head=head, keep={"weights", "context"}, q=q, k=k, v=v).stages
        identity = torch.eye(length, dtype=q.dtype).expand(batch, -1, -1)  # with V = 1 the output is the weights
        weights = sdpa(q, k, identity, is_causal=True)
        assert float((stages["weights"] - weights).abs().max()) <= 2 * bound(q, k, q.dtype)
        context = sdpa(q, k, v, is_causal=True)
        largest = float(v.abs().sum(1).max())
        assert float((stages["context"] - context).abs().max()) <= 2 * bound(q, k, q.dtype) * largest


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 24), st.integers(0, 1 << 40))
def test_three_step_and_neg_inf_agree_on_paper(length, seed):
    spec = make_spec(RandomQK(length=length), num_heads=1, d_out=8, seed=seed, dtype="float64")
    weights = [stage(edited(spec, mask=mask), "weights") for mask in ("three-step", "neg-inf")]
    assert torch.allclose(*weights, rtol=1e-12, atol=0)


# ------------------------------------------------------------------------------------ what rounding does, and does not


def three_step_row(dtype, lead, mask="three-step"):
    behind = math.log(0.5517 / 0.4483)
    scores = ((0.0,) * 3, (0.0, -behind, lead), (0.0,) * 3)
    return stage(make_spec(TypedScores(scores=scores), mask=mask, dtype=dtype), "weights")


@pytest.mark.parametrize(
    ("dtype", "lead", "visible"),
    [(d, lead, seen) for d, rows in THREE_STEP_BY_LEAD.items() for lead, seen in rows.items()],
)
def test_three_step_loses_digits_and_then_the_row(dtype, lead, visible):
    weights = three_step_row(dtype, lead)
    if visible is None:
        assert torch.isnan(weights[1]).all()  # hidden cells too
    else:
        assert weights[1, :2].tolist() == pytest.approx(visible, abs=0.02)
    assert torch.isfinite(weights[[0, 2]]).all()
    exact = three_step_row(dtype, lead, "neg-inf")[1]
    assert exact.tolist() == pytest.approx([0.5517, 0.4483, 0], abs=2 * torch.finfo(exact.dtype).eps + 1e-4)


def test_a_row_of_nan_stays_nan_under_dropout():
    scores = ((0.0, 200.0), (0.0, 0.0))
    spec = make_spec(TypedScores(scores=scores), mask="three-step", dropout=0.5)
    every = computed(spec).stages
    assert torch.isnan(every["weights"][0, 0]).all()
    assert torch.isnan(every["dropped_weights"][0, 0]).all()
    assert torch.isfinite(every["dropped_weights"][0, 1]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(1, 16), st.integers(0, 1 << 40), st.data())
def test_nothing_of_the_future_reaches_the_past_with_neg_inf(dtype, length, d_head, seed, data):
    spec = make_spec(RandomEmbeddings(length=length), num_heads=1, d_out=d_head, dtype=dtype)
    seen = data.draw(st.integers(1, length - 1))
    q, k, v = random_qkv(seed, 1, length, d_head, getattr(torch, dtype))
    other_q, other_k, other_v = (
        torch.cat([t[:, :seen], 2 * o[:, seen:]], 1)
        for t, o in zip((q, k, v), random_qkv(seed + 1, 1, length, d_head, q.dtype), strict=True)
    )
    keep = {"weights", "context"}
    first = head_stages(spec, head=0, keep=keep, q=q, k=k, v=v).stages
    second = head_stages(spec, head=0, keep=keep, q=other_q, k=other_k, v=other_v).stages
    assume(not torch.equal(first["weights"], second["weights"]))  # something did change later on
    for name in keep:
        assert torch.equal(first[name][:, :seen], second[name][:, :seen])


def test_fewer_queries_than_keys_see_what_stands_before_them():
    spec = make_spec(TypedScores(scores=((0.0, 0.0, 5.0), (0.0, 0.0, 0.0))))
    assert stage(spec, "weights").tolist() == [[0.5, 0.5, 0.0], [pytest.approx(1 / 3)] * 3]


# ------------------------------------------------------------------------------------------------------------- scaling


@pytest.mark.parametrize(("scale", "factor"), [("auto", 0.25), ("none", 1.0), (0.5, 0.5), (0.3, 0.3), (-1.0, -1.0)])
def test_scale(scale, factor):
    spec = make_spec(RandomQK(length=5), num_heads=1, d_out=16, scale=scale, mask="none", dtype="float64")
    every = computed(spec).stages
    assert torch.allclose(every["scaled_scores"], every["scores"] * factor, rtol=1e-15)
    q, k = every["queries"], every["keys"]
    sdpa = torch.nn.functional.scaled_dot_product_attention(q, k, torch.eye(5, dtype=q.dtype)[None], scale=factor)
    assert torch.allclose(every["weights"], sdpa, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------- keeping

SPECS = [
    make_spec(source, **({"num_heads": 2, "d_out": 8} if heads else {}), **more)
    for source, heads in ((RandomEmbeddings(length=40), True), (RandomQK(length=9), True), (CAT, False))
    for more in (
        {"mask": "none", "scale": "none"},
        {"mask": "three-step", "dropout": 0.4},
        {"mask": "neg-inf", "dropout": 0.4},
        {"mask": "neg-inf", "dropout": 0.4, "dropout_generator": "torch"},
    )
    if heads or "scale" not in more
] + [
    make_spec(RandomEmbeddings(length=7), num_heads=2, d_out=8, batch=3, dropout=0.4, dropout_site="context"),
    make_spec(RandomEmbeddings(length=7), num_heads=2, d_out=8, scale_after_mask=True, dtype="float16"),
    make_spec(RandomEmbeddings(length=7), num_heads=2, d_out=2, mask="three-step", batch=2, dtype="bfloat16"),
    make_spec(TypedWeights(weights=((1.0, 0.0), (0.5, 0.5))), dropout=0.5),
]


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_stage_has_the_same_bits_whichever_others_are_kept(spec, data):
    names = head_names(spec)
    head = data.draw(st.integers(0, spec.num_heads - 1))
    keep = data.draw(st.sets(st.sampled_from(names), min_size=1))
    every = computed(spec, head).stages
    assert list(every) == names
    result = computed(spec, head, keep)
    assert list(result.stages) == [name for name in names if name in keep]
    for name, cells in result.stages.items():
        assert torch.equal(cells.nan_to_num(7), every[name].nan_to_num(7))


@pytest.mark.parametrize(("spec", "batched"), [(s, b) for s in SPECS for b in (True, False) if b or s.batch == 1])
def test_the_last_wanted_map_is_written_where_it_was_asked_for(spec, batched):
    every = computed(spec).stages
    maps = [name for name in every if name in QUERY_KEY_STAGES]
    for name in maps:
        for keep in ({name}, set(maps[: maps.index(name) + 1]), set(every) - set(maps[maps.index(name) + 1 :])):
            out = torch.full_like(every[name] if batched else every[name][0], 7)
            stages = computed(spec, keep=keep, out=out).stages
            assert stages[name].data_ptr() == out.data_ptr()
            for kept, cells in stages.items():
                assert torch.equal(cells.nan_to_num(7), every[kept].nan_to_num(7))


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_given_is_not_written_to(spec):
    with torch.inference_mode():
        given, _ = given_to(spec)
        before = {name: t.clone() for name, t in given.items()}
        for name in head_names(spec):
            head_stages(spec, head=0, keep={name}, **given)
    assert all(torch.equal(t, before[name]) for name, t in given.items())


def test_masked_is_one_tensor_for_all_heads_and_absent_without_a_mask():
    spec = make_spec(RandomQK(length=9), num_heads=2, d_out=8)
    first, second = (computed(spec, head, {"weights"}).masked for head in range(2))
    assert first is second
    assert torch.equal(first, masks.hidden(9, 9))
    assert computed(edited(spec, mask="none"), 0, {"weights"}).masked is None


def test_a_stage_that_a_head_lacks_is_refused_by_name():
    spec = make_spec(RandomQK(length=3), num_heads=1, d_out=2)
    with pytest.raises(ValueError, match=r"context: a head of this spec has queries, keys, scores"):
        computed(spec, keep={"context"})


@pytest.mark.parametrize("keep", [set(), {"queries"}])
def test_nothing_more_than_wanted_is_computed(keep):
    spec = make_spec(RandomQK(length=3), num_heads=1, d_out=2)
    out = torch.full((3, 3), 7.0)
    assert set(computed(spec, keep=keep, out=out).stages) == keep
    assert (out == 7).all()


# ------------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("site", ["weights", "context"])
def test_survivors_are_scaled_as_nn_dropout_scales_them(dtype, site):
    spec = make_spec(
        RandomEmbeddings(length=12), num_heads=2, d_out=8, batch=2, dropout=0.3, dropout_site=site, dtype=dtype
    )
    for head in range(2):
        result = computed(spec, head)
        before, after = result.stages[site], result.stages[f"dropped_{site}"]
        noise = result.kept.to(before.dtype).div_(1 - 0.3)
        assert result.kept.shape == before.shape
        assert torch.equal(after, before * noise)
        assert (after[~result.kept] == 0).all()
        assert not torch.equal(result.kept[0], result.kept[1])
    assert not torch.equal(result.kept, computed(spec, 0).kept)


def test_torchs_draw_for_a_batch_is_one_a_head_in_head_order():
    spec = make_spec(RandomQK(length=6), num_heads=3, d_out=6, dropout=0.5, dropout_seed=8, dropout_generator="torch")
    generator = torch.Generator().manual_seed(8)
    for head in range(3):
        drawn = torch.empty(1, 6, 6).bernoulli_(0.5, generator=generator).bool()
        assert torch.equal(computed(spec, head).kept, drawn)
        assert torch.equal(computed(spec, 2 - head, drawn_keep=drawn).kept, drawn)


def test_nothing_is_dropped_in_inference():
    spec = make_spec(RandomQK(length=6), num_heads=1, d_out=2, dropout=0.5, training=False)
    assert computed(spec).kept is None
    assert "dropped_weights" not in computed(spec).stages


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 40))
def test_dropout_at_the_context_leaves_the_weights(seed):
    spec = make_spec(RandomEmbeddings(length=6), num_heads=1, d_out=4, dropout=0.5, dropout_site="context", seed=seed)
    every, calm = computed(spec).stages, computed(edited(spec, training=False)).stages
    assert all(torch.equal(every[name], cells) for name, cells in calm.items())
    assert list(every)[-1] == "dropped_context"
