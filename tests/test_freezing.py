import numpy as np
import pytest

from attnviz.engine import Engine
from attnviz.engine.freezing import freeze
from attnviz.spec import (
    CHOICES,
    Lesson,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    edited,
    from_json,
    make_spec,
    to_json,
)

SPECS = {
    "journey": make_spec(seed=5, batch=2),
    "split": make_spec(implementation="split", d_out=4, qkv_bias=True),
    "text": make_spec(Text(text="猫 吃 鱼 and a dog"), num_heads=4, num_kv_heads=2, dtype="bfloat16"),
    "random-qk": make_spec(RandomQK(length=32), soft_cap=2.0, dtype="float16"),
    "no projections": make_spec(projection="none"),
    "one-class": make_spec(Lesson(name="one-class")),
    "cat-eats-fish": make_spec(Lesson(name="cat-eats-fish")),
    "float64": make_spec(scale=0.3, dtype="float64"),
}


@pytest.fixture
def engine():
    one = Engine()
    yield one
    one.close()


@pytest.mark.parametrize("mask", CHOICES["mask"])
@pytest.mark.parametrize("name", SPECS)
def test_frozen_scores_give_the_same_weights_and_context(name, mask, engine):
    spec = edited(SPECS[name], mask=mask, batch=1)
    head = spec.num_heads - 1
    frozen = make_spec(freeze(spec, head), mask=mask, fill=spec.fill, dtype=spec.dtype)
    before, after = engine.arrays(spec), engine.arrays(frozen)
    assert before.tokens == after.tokens
    np.testing.assert_allclose(after.stages["weights"][0], before.stages["weights"][head], rtol=1e-6)
    assert ("context" in after.stages) == ("context" in before.stages)
    if "context" in after.stages:
        np.testing.assert_allclose(after.stages["context"][0], before.stages["context"][head], rtol=1e-6, atol=1e-7)
    assert from_json(to_json(frozen))[0] == frozen


def test_what_stands_before_the_scores_is_frozen_whatever_comes_after(engine):
    plain = freeze(make_spec(), 1)
    for changes in {"batch": 3}, {"scale_after_mask": True}, {"top_k": 2}, {"dropout": 0.5}, {"mask": "multiply"}:
        assert freeze(make_spec(**changes), 1) == plain
    scaled = make_spec(scale_after_mask=True)
    frozen = make_spec(plain)
    np.testing.assert_allclose(
        engine.arrays(frozen).stages["weights"][0], engine.arrays(scaled).stages["weights"][1], rtol=1e-6
    )


def test_names_of_tokens_and_dimensions_go_along():
    frozen = freeze(make_spec(Lesson(name="cat-eats-fish")), 0)
    assert (frozen.tokens, frozen.dims) == (("猫", "吃", "鱼"), ("猫味", "鱼味"))
    assert freeze(make_spec(RandomQK(length=3)), 0).values is None
    typed = TypedScores(scores=((1.0,),))
    assert freeze(make_spec(typed), 0) == typed


def test_values_of_very_many_dimensions_are_left_out():
    wide = make_spec(Text(text="a b"), num_heads=1, d_model=8, d_out=1100)
    assert freeze(wide, 0).values is None
    assert freeze(edited(wide, d_out=1000), 0).values is not None


@pytest.mark.parametrize(
    ("spec", "head", "words"),
    [
        (make_spec(RandomQK(length=33)), 0, "at most 32 tokens can be typed"),
        (make_spec(Text(text="a " * 40)), 0, "at most 32 tokens can be typed"),
        (make_spec(TypedWeights(weights=((1.0,),))), 0, "no scores to freeze"),
        (make_spec(), 2, "heads count from 0"),
        (make_spec(RandomQK(length=4, qk_scale=300.0), dtype="float16", d_out=64), 0, "finite numbers"),
    ],
)
def test_what_cannot_be_frozen_is_said(spec, head, words):
    with pytest.raises(SpecError, match=words):
        freeze(spec, head)
