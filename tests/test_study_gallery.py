"""The gallery: every order of mask and softmax, a row that sees nothing, and how deep a fill must lie."""

import math

import numpy as np
import pytest
import torch
from reference import CAT_WEIGHTS_MASKED, CAT_WEIGHTS_UNMASKED

from attnviz.frames import CellClass
from attnviz.questions.gallery import DTYPES, FILLS, ORDERS, GalleryQuestion
from attnviz.spec import Lesson, RandomQK, SpecError, TypedScores, TypedWeights, edited, make_spec
from attnviz.studies import answers
from attnviz.studies.gallery import fill_depth, fills_for, masked_row, threshold

CAT = make_spec(Lesson(name="cat-eats-fish"))


def exhibits(spec, **fields):
    answer = [*answers(GalleryQuestion(spec=spec, **fields))][-1]
    return answer, {exhibit.order: exhibit for exhibit in answer.exhibits}


def test_the_lessons_figures_in_all_orders():
    answer, found = exhibits(CAT)
    assert [exhibit.order for exhibit in answer.exhibits] == [*ORDERS]
    assert found["none"].values == pytest.approx(np.array(CAT_WEIGHTS_UNMASKED), abs=6e-5)
    for order in ("three-step", "neg-inf"):
        assert found[order].values == pytest.approx(np.array(CAT_WEIGHTS_MASKED), abs=6e-5)
        assert found[order].row_sums == pytest.approx([1, 1, 1])
    assert found["multiply"].row_sums == pytest.approx([0.2741, 0.7553, 1], abs=6e-5)
    assert found["multiply"].hidden == 0
    assert found["fill-0"].hidden == pytest.approx(0.2741, abs=6e-5)
    assert found["neg-inf"].difference == 0
    assert 0 < found["three-step"].difference < 1e-6
    assert found["none"].difference == pytest.approx(1 - 0.2741, abs=6e-5)
    assert found["none"].at == (0, 0)
    assert answer.scale.high == pytest.approx(1)


def test_what_0_leaves_of_the_forbidden_half():
    spec = make_spec(TypedScores(scores=((0.0, 2.0), (2.0, 0.0))))
    _, found = exhibits(spec)
    assert found["fill-0"].values[0] == pytest.approx([0.5, 0.5])
    assert found["neg-inf"].values[0] == pytest.approx([1, 0])


def test_the_first_answer_is_what_the_others_are_measured_by():
    stream = answers(GalleryQuestion(spec=CAT))
    first = next(stream)
    assert [exhibit.order for exhibit in first.exhibits] == ["neg-inf"]
    assert (first.done, first.total) == (1, 5)
    assert len([*answers(GalleryQuestion(spec=CAT), lambda: True)]) == 0


def test_three_step_of_a_long_lead_is_nan_and_counted():
    spec = make_spec(TypedScores(scores=((0.0, 104.5), (0.0, 0.0))))
    _, found = exhibits(spec)
    assert found["three-step"].nan_rows == 1
    assert found["three-step"].classes[0].tolist() == [int(CellClass.NAN)] * 2
    assert found["three-step"].difference == 0  # of the row that is still a number


def test_a_long_map_is_pooled_and_a_longer_one_refused():
    spec = make_spec(RandomQK(length=600), num_heads=2)
    _, found = exhibits(spec, head=1, pixels=256)
    exhibit = found["none"]
    assert (exhibit.level, exhibit.values.shape, exhibit.row_sums.shape) == (4, (150, 150), (600,))
    assert exhibit.row_sums == pytest.approx(np.ones(600), abs=1e-5)
    with pytest.raises(SpecError, match=r"1,024 tokens, here are 1,025"):
        next(answers(GalleryQuestion(spec=make_spec(RandomQK(length=1025)))))
    with pytest.raises(SpecError, match="nothing to mask"):
        next(answers(GalleryQuestion(spec=make_spec(TypedWeights(weights=((1.0,),))))))


# --------------------------------------------------------------------------------------------- a row that sees nothing


def by_how(rows):
    return {(row.how, row.dtype): row.weights for row in rows}


def test_the_four_answers_of_a_row_that_sees_nothing():
    rows = by_how(masked_row((1.0, 2.0, 3.0), "float32"))
    third = [1 / 3] * 3
    assert np.isnan(rows["fill -inf", "float32"]).all()
    assert rows["fill -1e9", "float32"] == pytest.approx(third)
    assert rows["add -1e9", "float32"] == pytest.approx(third)
    assert rows["add -1e9", "float64"] == pytest.approx([0.0900, 0.2447, 0.6652], abs=6e-5)
    assert rows["sdpa", "float32"].tolist() == [0, 0, 0]


def test_in_float16_the_stand_in_is_no_number_of_the_dtype():
    rows = masked_row((1.0, 2.0, 3.0), "float16")
    assert [row.how for row in rows if row.refused] == ["fill -1e9"]
    assert np.isnan(by_how(rows)["fill -1e9", "float16"]).all()
    assert len([row for row in masked_row((1.0, 2.0), "float64") if row.how == "add -1e9"]) == 1


def test_the_selected_rows_own_scores_are_taken():
    answer, _ = exhibits(CAT, row=1)
    assert answer.scores == (0, 2, 1)
    assert answer.largest == 2  # 吃 on itself; the fish it must not see has 1
    plain, _ = exhibits(CAT)
    assert (plain.scores, plain.largest) == ((1, 2, 3), 0)


# ------------------------------------------------------------------------------------------------------ depth of a fill


def test_thresholds_are_the_published_ones():
    assert [round(threshold(dtype), 2) for dtype in ("float16", "bfloat16", "float32")] == [17.33, 92.88, 103.97]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fill_leaks_down_to_the_threshold_and_not_below(dtype):
    deep = threshold(dtype)
    step = {"float16": 0.02, "bfloat16": 0.6, "float32": 0.01, "float64": 0.01}[dtype]
    assert fill_depth(0.0, -deep + step, dtype).weight > 0
    assert fill_depth(0.0, -deep - step, dtype).weight == 0


def test_depths_count_from_the_largest_score():
    answer, _ = exhibits(edited(CAT, dtype="float16"), row=1)
    weights = {(depth.fill, depth.dtype): depth.weight for depth in answer.depths}
    assert len(weights) == (len(FILLS) + len(DTYPES)) * len(DTYPES)
    assert all(depth.below == 2 - depth.fill for depth in answer.depths)
    assert weights[-12.0, "float16"] > 0
    assert weights[-15.4, "float16"] == 0  # 17.4 below
    assert weights[-15.4, "float32"] == pytest.approx(math.exp(-17.4), rel=1e-3)
    assert [depth.fill for depth in answer.depths] == sorted((depth.fill for depth in answer.depths), reverse=True)


@pytest.mark.parametrize("largest", [0.0, 2.0, 0.3712, -4.06, 37.5])
def test_the_first_fill_without_weight_lies_just_below_the_limit(largest):
    for dtype in DTYPES:
        weights = {fill: fill_depth(largest, fill, dtype).weight for fill in fills_for(largest)}
        first = next(fill for fill, weight in weights.items() if weight == 0)
        assert all(weight == 0 for fill, weight in weights.items() if fill <= first)
        own = math.floor(10 * (largest - threshold(dtype))) / 10
        assert first <= largest - threshold(dtype) + 0.6  # a step of bfloat16 at this size
        if dtype in ("float32", "float64"):
            assert first == own


def test_the_answer_says_limits_and_first_zeros():
    answer, _ = exhibits(CAT, row=1)
    assert {dtype: round(limit, 1) for dtype, limit in answer.limits.items()} == {
        "float16": -15.3, "bfloat16": -90.9, "float32": -102.0, "float64": -743.1,
    }  # fmt: skip
    assert answer.first_zeros == {"float16": -15.4, "bfloat16": -90.9, "float32": -102.0, "float64": -743.2}


def test_a_row_without_a_finite_score_has_the_usual_fills():
    assert fills_for(-math.inf) == FILLS
    assert fills_for(1.7e308) == FILLS  # of which no tenth is a number


def test_what_the_dtype_makes_of_a_fill():
    assert fill_depth(0.0, -1e4, "bfloat16").held == -9984
    half = fill_depth(0.0, -1e9, "float16")
    assert (half.held, half.refused) == (-math.inf, True)
    assert not fill_depth(0.0, -1e4, "float16").refused
    assert not torch.is_inference_mode_enabled()


def test_a_head_that_is_not_there_is_said():
    with pytest.raises(SpecError, match="0 to 0"):
        GalleryQuestion(spec=CAT, head=1)
