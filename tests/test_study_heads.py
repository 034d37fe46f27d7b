"""Stacked and split: the printed outputs and how their difference goes to nothing."""

import numpy as np
import pytest
from reference import SPLIT_OUTPUT, STACKED_OUTPUT

from attnviz.questions.heads import HeadsQuestion
from attnviz.spec import Lesson, RandomEmbeddings, Text, edited, make_spec
from attnviz.studies import answers

JOURNEY = make_spec(Lesson(name="journey"))
PRODUCT = [
    [[1.3208, 1.1631, 1.2879], [1.1631, 2.2150, 1.8424], [1.2879, 1.8424, 2.0402]],
    [[0.4391, 0.7003, 0.5903], [0.7003, 1.3737, 1.0620], [0.5903, 1.0620, 0.9912]],
]


def last(spec):
    return [*answers(HeadsQuestion(spec=spec))][-1]


def test_the_reasons_are_taken_away_one_by_one():
    printed, same_size, no_projection, same_draws = last(JOURNEY).ladder
    assert printed.stacked == pytest.approx(np.array(STACKED_OUTPUT), abs=6e-5)
    assert printed.split == pytest.approx(np.array(SPLIT_OUTPUT), abs=6e-5)
    assert printed.difference is None
    assert same_size.difference > 0.1
    assert no_projection.difference > 0.1
    assert not no_projection.identical
    assert same_draws.difference < 1e-6
    assert same_draws.identical == np.array_equal(same_draws.stacked, same_draws.split)
    for step in (same_size, no_projection, same_draws):
        assert step.difference == pytest.approx(np.abs(step.stacked - step.split).max())


def test_the_batched_product_is_the_books():
    product = last(JOURNEY).product
    assert product.at_once == pytest.approx(np.array(PRODUCT), abs=2e-4)
    assert product.by_head == pytest.approx(product.tensor @ product.tensor.transpose(0, 2, 1), abs=1e-6)
    assert product.identical == np.array_equal(product.at_once, product.by_head)


@pytest.mark.parametrize(
    ("spec", "products"),
    [
        (JOURNEY, 6),
        (make_spec(Text(text="one two three"), num_heads=4, d_model=16, d_out=32), 12),
        (make_spec(Text(text="one two three"), num_heads=4, num_kv_heads=2, d_model=16, d_out=32), 8),
        (make_spec(RandomEmbeddings(length=300), num_heads=2, d_model=8, d_out=8, qkv_bias=True), 6),
    ],
)
def test_products_are_counted_and_copied_weights_make_the_two_the_same(spec, products):
    forms = last(spec).forms
    assert (forms.stacked_products, forms.split_products) == (products, 3)
    assert forms.stacked_matrix == (spec.d_model, spec.d_out // spec.num_heads)
    assert forms.split_matrix == (spec.d_model, spec.d_out)
    assert forms.drawn > 1e-3
    assert forms.copied < 1e-5
    assert forms.tokens <= 256


def test_without_projections_there_is_a_reason_and_the_ladder_all_the_same():
    answer = last(make_spec(Lesson(name="cat-eats-fish")))
    assert answer.forms is None
    assert "worked by hand" in answer.reason
    assert len(answer.ladder) == 4
    assert "rand" in last(edited(JOURNEY, projection="rand")).reason


def test_the_ladder_stands_before_the_forms_and_a_study_can_be_called_off():
    first, *rest = answers(HeadsQuestion(spec=JOURNEY))
    assert first.forms is None
    assert not first.finished
    assert rest[-1].finished
    assert len([*answers(HeadsQuestion(spec=JOURNEY), lambda: True)]) == 1
