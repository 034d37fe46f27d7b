"""Sections 3.3 and 3.4 of the book: no projections, and ``torch.rand``."""

import numpy as np
import pytest
import torch

from attnviz import cli
from attnviz.attention.multihead import RightProduct, SplitHeads, StackedHeads, Unprojected, copy_weights
from attnviz.engine import Engine
from attnviz.frames import Outline
from attnviz.spec import (
    Pattern,
    RandomEmbeddings,
    RandomQK,
    Request,
    SpecError,
    Text,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
)
from attnviz.spec.worked import JOURNEY_INPUTS

SCORES_33 = (
    (0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.631),
    (0.9544, 1.495, 1.4754, 0.8434, 0.707, 1.0865),
    (0.9422, 1.4754, 1.457, 0.8296, 0.7154, 1.0605),
    (0.4753, 0.8434, 0.8296, 0.4937, 0.3474, 0.6565),
    (0.4576, 0.707, 0.7154, 0.3474, 0.6654, 0.2935),
    (0.631, 1.0865, 1.0605, 0.6565, 0.2935, 0.945),
)
WEIGHTS_33 = (
    (0.2098, 0.2006, 0.1981, 0.1242, 0.122, 0.1452),
    (0.1385, 0.2379, 0.2333, 0.124, 0.1082, 0.1581),
    (0.139, 0.2369, 0.2326, 0.1242, 0.1108, 0.1565),
    (0.1435, 0.2074, 0.2046, 0.1462, 0.1263, 0.172),
    (0.1526, 0.1958, 0.1975, 0.1367, 0.1879, 0.1295),
    (0.1385, 0.2184, 0.2128, 0.142, 0.0988, 0.1896),
)
CONTEXT_33 = (
    (0.4421, 0.5931, 0.579), (0.4419, 0.6515, 0.5683), (0.4431, 0.6496, 0.5671), (0.4304, 0.6298, 0.551),
    (0.4671, 0.591, 0.5266), (0.4177, 0.6503, 0.5645),
)  # fmt: skip
SUM_NORMALISED_ROW_1 = (0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656)
QUERY_1 = (0.4306, 1.4551)
SCORES_34_ROW_1 = (1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.544)
WEIGHTS_34_ROW_1 = (0.15, 0.2264, 0.2199, 0.1311, 0.0906, 0.182)
CONTEXT_34 = (
    (0.2996, 0.8053), (0.3061, 0.821), (0.3058, 0.8203), (0.2948, 0.7939), (0.2927, 0.7891), (0.299, 0.804),
)  # fmt: skip


def near(cells, figures):
    np.testing.assert_allclose(cells, np.array(figures), atol=5.1e-5)


def data_of(tmp_path, *arguments):
    path = tmp_path / "stages.npz"
    assert cli.run(["render", "--data", str(path), *arguments]) == 0
    with np.load(path, allow_pickle=False) as npz:
        return {name: npz[name] for name in npz.files}


@pytest.fixture
def engine():
    one = Engine()
    yield one
    one.close()


# --------------------------------------------------------------------------------------------------------- the figures


def test_section_3_3_has_no_projections(tmp_path):
    arrays = data_of(tmp_path, "--projection", "none", "--scale", "none", "--mask", "none")
    assert [name for name in arrays if name not in ("tokens", "spec")] == [
        "inputs", "scores", "scaled_scores", "weights", "context",
    ]  # fmt: skip
    near(arrays["scores"][0], SCORES_33)
    near(arrays["weights"][0], WEIGHTS_33)
    near(arrays["context"][0], CONTEXT_33)
    scores = arrays["scores"][0, 1]
    near(scores / scores.sum(), SUM_NORMALISED_ROW_1)


@pytest.mark.parametrize("form", ["stacked", "split"])
def test_section_3_4_draws_from_torch_rand(tmp_path, form):
    arrays = data_of(
        tmp_path, "--projection", "rand", "--heads", "1", "--d-out", "2", "--mask", "none", "--implementation", form
    )  # fmt: skip
    near(arrays["queries"][0, 1], QUERY_1)
    near(arrays["scores"][0, 1], SCORES_34_ROW_1)
    near(arrays["weights"][0, 1], WEIGHTS_34_ROW_1)
    near(arrays["context"][0], CONTEXT_34)
    near(arrays["output"], CONTEXT_34)


# ----------------------------------------------------------------------------------------------------------- the draws


def test_rand_draws_query_key_value_head_by_head_and_leaves_the_global_generator_alone(engine):
    before = torch.get_rng_state()
    spec = make_spec(projection="rand", seed=11, num_heads=2, d_out=6)
    arrays = engine.arrays(spec).stages
    assert torch.equal(torch.get_rng_state(), before)
    generator, inputs = torch.Generator().manual_seed(11), torch.tensor(JOURNEY_INPUTS)
    for head in range(2):
        for name in ("queries", "keys", "values"):
            np.testing.assert_array_equal(arrays[name][head], (inputs @ torch.rand(3, 3, generator=generator)).numpy())


def test_the_parameters_are_matrices_on_the_right(engine):
    def rows(spec):
        request = Request(spec=spec, view=View(stage="scores"), viewport=Viewport(), generation=1)
        outline = next(message for message in engine.stream(request) if isinstance(message, Outline))
        return {row.name: row.shape for row in outline.parameters}

    drawn = rows(make_spec(projection="rand", num_heads=1, d_out=2))
    assert drawn["heads.0.query.weight"] == (3, 2)
    assert rows(make_spec(num_heads=1, d_out=2))["heads.0.query.weight"] == (2, 3)
    assert rows(make_spec(projection="none")) == {}


def test_both_forms_can_have_the_same_right_hand_matrices():
    sizes = {"context_length": 6, "qkv_bias": False, "out_proj": False, "projection": "rand"}
    stacked, split = (
        StackedHeads(3, 8, 4, num_kv_heads=2, seed=1, **sizes),
        SplitHeads(3, 8, 4, num_kv_heads=2, seed=2, **sizes),
    )
    linear = SplitHeads(3, 8, 4, num_kv_heads=2, context_length=6, qkv_bias=False, out_proj=False, seed=3)
    copy_weights(stacked, split)
    copy_weights(split, linear)
    x = torch.tensor(JOURNEY_INPUTS)[None]
    for module in split, linear:
        assert torch.allclose(stacked(x), module(x), atol=1e-6)
    assert isinstance(split.query, RightProduct)


def test_without_projections_the_module_is_plain_attention_over_its_inputs():
    x = torch.tensor(JOURNEY_INPUTS)[None]
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    module = Unprojected(3, 6)
    assert torch.allclose(module(x), expected, atol=1e-6)
    assert not [*module.parameters()]


# ---------------------------------------------------------------------------------------------------- what goes with it


def test_what_follows_no_projections():
    spec = make_spec(projection="none")
    assert (spec.num_heads, spec.num_kv_heads, spec.d_model, spec.d_out) == (1, 1, 3, 3)
    text = make_spec(Text(text="a b"), projection="none", d_model=10)
    assert (text.num_heads, text.d_out) == (1, 10)
    assert edited(text, d_model=12).d_out == 12
    assert edited(make_spec(num_heads=4), projection="none") == spec
    assert edited(make_spec(implementation="split", qkv_bias=True), projection="none") == edited(
        spec, implementation="split"
    )
    assert edited(spec, source=RandomEmbeddings(length=5)).d_out == 64
    assert edited(make_spec(num_heads=3), source=Text(text="a"), projection="none").num_heads == 1
    assert edited(spec, source=RandomQK(length=5)).projection == "linear"
    assert stages_of(edited(spec, projection="linear")) == stages_of(make_spec())


def test_the_output_projection_follows_the_projection():
    split = make_spec(implementation="split")
    assert not make_spec(implementation="split", projection="rand").out_proj
    assert not edited(split, projection="rand").out_proj
    assert edited(edited(split, projection="rand"), projection="linear") == split
    assert not edited(make_spec(projection="rand"), implementation="split").out_proj


@pytest.mark.parametrize("projection", ["rand", "none"])
@pytest.mark.parametrize("field", ["out_proj", "qkv_bias"])
def test_what_belongs_to_linear_layers_is_refused(projection, field):
    with pytest.raises(SpecError, match=f"but projection is {projection}") as caught:
        make_spec(projection=projection, **{field: True})
    assert caught.value.field == field


@pytest.mark.parametrize(("fields", "field"), [({"num_heads": 2}, "num_heads"), ({"d_out": 4}, "d_out")])
def test_without_projections_there_is_one_head_as_wide_as_the_inputs(fields, field):
    with pytest.raises(SpecError, match="without projections") as caught:
        make_spec(projection="none", **fields)
    assert caught.value.field == field


@pytest.mark.parametrize("source", [RandomQK(length=4), Pattern(length=4)])
def test_a_source_without_projections_has_none_to_choose(source):
    with pytest.raises(SpecError, match="there are no projections") as caught:
        make_spec(source, projection="rand")
    assert caught.value.field == "projection"


@pytest.mark.parametrize("projection", ["rand", "none"])
def test_a_long_map_of_them_is_the_dense_one(projection):
    spec = make_spec(RandomEmbeddings(length=90), projection=projection, d_model=16, d_out=16, num_heads=1)
    dense, tiled = Engine(), Engine(dense_bytes=0)
    frames = []
    for one in dense, tiled:
        request = Request(spec=spec, view=View(), viewport=Viewport(pixels=(128, 128)), generation=1)
        frames.append([m for m in one.stream(request) if hasattr(m, "panel")][-1])
        one.close()
    np.testing.assert_allclose(frames[0].values, frames[1].values, rtol=2e-5, atol=1e-6)
