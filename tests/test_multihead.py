import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import CAUSAL_CONTEXT, SPLIT_OUTPUT, STACKED_OUTPUT
from torch import nn

from attnviz.attention.multihead import MAX_MASK_LENGTH, SplitHeads, StackedHeads, copy_weights
from attnviz.spec.worked import JOURNEY_INPUTS

FORMS = [StackedHeads, SplitHeads]
BATCH = torch.tensor(JOURNEY_INPUTS).expand(2, -1, -1)  # (2, 6, 3)


def build(form, d_in=3, d_out=4, num_heads=2, *, context_length=6, qkv_bias=False, out_proj=False, seed=123):
    return form(d_in, d_out, num_heads, context_length=context_length, qkv_bias=qkv_bias, out_proj=out_proj, seed=seed)


def assert_published(output, figures):
    expected = torch.tensor(figures).expand(len(output), -1, -1)
    assert torch.allclose(output, expected, rtol=0, atol=6e-5)


# --------------------------------------------------------------------------------------------------------- the figures


@pytest.mark.parametrize("form", FORMS)
def test_one_head_is_the_books_causal_attention(form):
    assert_published(build(form, d_out=2, num_heads=1)(BATCH), CAUSAL_CONTEXT)


def test_stacked_heads_give_the_books_wrapper():
    output = build(StackedHeads)(BATCH)
    assert output.shape == (2, 6, 4)
    assert_published(output, STACKED_OUTPUT)


def test_split_heads_give_the_books_class():
    output = build(SplitHeads, d_out=2, out_proj=True)(BATCH)
    assert output.shape == (2, 6, 2)
    assert_published(output, SPLIT_OUTPUT)


# --------------------------------------------------------------------------------------------------- the parameters


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_initial_values_are_those_that_nn_linear_draws_in_order(qkv_bias):
    torch.manual_seed(7)
    layers = [nn.Linear(5, 3, bias=qkv_bias) for _ in range(6)] + [nn.Linear(6, 6)]
    module = build(StackedHeads, 5, 6, 2, qkv_bias=qkv_bias, out_proj=True, seed=7)
    drawn = [*module.drawing_order(), module.out_proj]
    for expected, layer in zip(layers, drawn, strict=True):
        assert torch.allclose(layer.weight, expected.weight, rtol=1e-6, atol=0)
        assert (layer.bias is None) == (expected.bias is None)
        if expected.bias is not None:
            assert torch.allclose(layer.bias, expected.bias, rtol=1e-6, atol=0)


@pytest.mark.parametrize("form", FORMS)
def test_building_leaves_the_global_generator_alone(form):
    before = torch.get_rng_state()
    first, again = (build(form, out_proj=True, qkv_bias=True) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    other = build(form, out_proj=True, qkv_bias=True, seed=124)
    assert not any(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_parameters_are_drawn_in_float32_whatever_the_default_dtype(form):
    expected = build(form)
    torch.set_default_dtype(torch.float64)
    try:
        module = build(form)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), expected.parameters(), strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_the_mask_is_a_buffer_and_no_parameter(form):
    module = build(form)
    assert [name for name, _ in module.named_buffers()] == ["mask"]
    assert "mask" in module.state_dict()
    assert "mask" not in dict(module.named_parameters())
    assert module.half().mask.dtype == torch.bool
    assert module.to("meta").mask.device.type == "meta"  # it moves with the module


@pytest.mark.parametrize("form", FORMS)
def test_a_long_context_has_no_buffer_and_the_same_mask(form):
    module = build(form, context_length=MAX_MASK_LENGTH + 1)
    assert list(module.named_buffers()) == []
    assert torch.equal(module.hidden(6), build(form).hidden(6))
    assert torch.equal(module(BATCH), build(form)(BATCH))


@pytest.mark.parametrize("form", FORMS)
def test_heads_that_cannot_share_are_refused(form):
    with pytest.raises(ValueError, match="3 heads"):
        build(form, num_heads=3)


@pytest.mark.parametrize("form", FORMS)
def test_it_can_be_trained(form):
    module = build(form, out_proj=True)
    module(BATCH).square().sum().backward()
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in module.parameters())


# ----------------------------------------------------------------------------------------------------- the function


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 12), st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.booleans(),
    st.booleans(), st.booleans(), st.integers(0, 1 << 40),
)  # fmt: skip
def test_both_forms_agree_once_weights_are_copied(
    batch, length, d_in, num_heads, d_head, qkv_bias, out_proj, stacked_first, seed
):
    sizes = {"d_in": d_in, "d_out": num_heads * d_head, "num_heads": num_heads, "context_length": length}
    options = {"qkv_bias": qkv_bias, "out_proj": out_proj}
    forms = FORMS if stacked_first else FORMS[::-1]
    source = build(forms[0], **sizes, **options, seed=seed).double()
    target = build(forms[1], **sizes, **options, seed=seed + 1).double()
    copy_weights(source, target)
    x = torch.randn(batch, length, d_in, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for one, other in zip(source.project(x), target.project(x), strict=True):
        assert one.shape == (batch, num_heads, length, d_head)
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-14)
    assert torch.allclose(source(x), target(x), rtol=1e-12, atol=1e-14)


def test_copying_leaves_a_lone_output_projection():
    source, target = build(StackedHeads), build(SplitHeads, out_proj=True)
    projection = target.out_proj.weight.clone()
    copy_weights(source, target)
    assert torch.equal(target.out_proj.weight, projection)
    joined = target.join(target.project(BATCH)[2])[0]
    assert torch.allclose(joined, source.join(source.project(BATCH)[2])[0], atol=1e-6)


@pytest.mark.parametrize("other", [{"d_out": 6}, {"num_heads": 4}, {"qkv_bias": True}, {"d_in": 2}])
def test_copying_between_different_sizes_is_refused(other):
    with pytest.raises(ValueError, match="in the target"):
        copy_weights(build(StackedHeads), build(SplitHeads, **other))


@pytest.mark.parametrize("form", FORMS)
def test_joining_puts_heads_side_by_side(form):
    module = build(form)
    context = torch.arange(48.0).view(2, 2, 6, 2)  # (B, H, L, D)
    joined, output = module.join(context)
    assert torch.equal(joined, torch.cat([context[:, 0], context[:, 1]], -1))
    assert torch.equal(output, joined)


@pytest.mark.parametrize("form", FORMS)
def test_the_whole_module_is_scaled_dot_product_attention(form):
    module = build(form, 8, 12, 3, context_length=16).double()
    x = torch.randn(2, 10, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    q, k, v = module.project(x)
    expected = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    assert torch.allclose(module(x), expected, rtol=1e-12, atol=1e-14)


def test_split_heads_are_nn_multihead_attention():
    module = build(SplitHeads, 12, 12, 3, context_length=7, qkv_bias=True, out_proj=True).double()
    oracle = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    layers = [module.query, module.key, module.value]
    with torch.no_grad():
        oracle.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        oracle.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        oracle.out_proj.load_state_dict(module.out_proj.state_dict())
    x = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    expected, _ = oracle(x, x, x, attn_mask=module.hidden(7))
    assert torch.allclose(module(x), expected, rtol=1e-12, atol=1e-14)


def test_the_bound_is_one_over_root_fan_in():
    parameters = build(SplitHeads, 400, 400, 4, out_proj=True).parameters()
    largest = max(float(p.detach().abs().max()) for p in parameters)
    assert 0.999 / math.sqrt(400) < largest < 1.000001 / math.sqrt(400)  # float32 rounds the bound
