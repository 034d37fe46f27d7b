"""A | B: differences against NumPy's own, in steps of the coarser dtype, with maps on one scale."""

import math

import numpy as np
import pytest

from attnviz.engine import Engine
from attnviz.frames import CellClass
from attnviz.questions.compare import CompareQuestion
from attnviz.spec import Lesson, RandomQK, SpecError, TypedScores, edited, make_spec
from attnviz.studies import answers

CAT = make_spec(Lesson(name="cat-eats-fish"))
JOURNEY = make_spec(Lesson(name="journey"))


def compared(a, b, **fields):
    return [*answers(CompareQuestion(a=a, b=b, **fields))][-1]


def weights_of(spec):
    engine = Engine()
    found = engine.arrays(spec).stages["weights"]
    engine.close()
    return found.astype(np.float64)


def test_a_state_beside_itself_is_equal_bit_for_bit():
    answer = compared(JOURNEY, JOURNEY)
    assert len(answer.heads) == 2
    for head in answer.heads:
        assert head.identical
        assert (head.largest, head.ulps, head.mean) == (0, 0, 0)
    assert (answer.maps.difference == 0).all()


@pytest.mark.parametrize("changes", [{"mask": "none"}, {"mask": "multiply"}, {"dtype": "float16"}, {"seed": 5},
                                     {"implementation": "split"}])  # fmt: skip
def test_differences_are_those_of_the_arrays(changes):
    other = edited(JOURNEY, **changes)
    a, b = weights_of(JOURNEY), weights_of(other)
    answer = compared(JOURNEY, other)
    for head in answer.heads:
        gap = np.abs(b[head.head] - a[head.head])
        assert head.largest == gap.max()
        assert gap[head.at] == gap.max()
        assert head.mean == pytest.approx(gap.mean())
        assert head.sum_error == pytest.approx([np.abs(w[head.head].sum(1) - 1).max() for w in (a, b)])
        ahead = [np.triu(w[head.head], 1).sum(1).max() for w in (a, b)]
        assert head.future == pytest.approx(ahead)
        assert head.identical == (gap.max() == 0)
    assert answer.maps.difference == pytest.approx(b[0] - a[0])


def test_ulps_are_steps_of_the_coarser_dtype():
    scores = ((0.0, 0.0), (0.0, 0.0))
    a = make_spec(TypedScores(scores=scores))
    b = edited(a, dtype="bfloat16")
    answer = compared(a, b)
    assert answer.dtype == "bfloat16"
    assert answer.heads[0].ulps == 0  # halves are halves in both
    c = make_spec(TypedScores(scores=((0.0, 0.0), (1.0, 0.0))))
    first, second = weights_of(c), weights_of(edited(c, dtype="bfloat16"))
    pair = np.maximum(np.abs(first), np.abs(second))
    steps = np.abs(second - first) / 2.0 ** (np.floor(np.log2(np.where(pair, pair, 1))) - 7)
    assert compared(c, edited(c, dtype="bfloat16")).heads[0].ulps == pytest.approx(steps.max())


def test_nan_rows_are_counted_and_shown_as_such():
    a = make_spec(TypedScores(scores=((0.0, 104.5), (0.0, 0.0))))
    b = edited(a, mask="three-step")
    answer = compared(a, b)
    assert answer.heads[0].nan_rows == (0, 1)
    assert answer.heads[0].largest == 0
    assert not answer.heads[0].identical
    assert answer.worst is answer.heads[0]
    assert answer.maps.difference_classes[0, 0] == int(CellClass.NAN)
    both = compared(b, b)
    assert both.heads[0].identical
    assert math.isnan(both.heads[0].sum_error[0]) is False


def test_masked_in_both_is_masked_and_in_one_is_a_difference():
    answer = compared(edited(CAT, mask="none"), CAT)
    assert answer.maps.difference[1, 2] == pytest.approx(-0.2447, abs=6e-5)
    assert answer.maps.difference_classes[1, 2] == int(CellClass.ORDINARY)
    assert answer.maps.scale.low == 0
    assert answer.maps.difference_scale.low == -answer.maps.difference_scale.high
    masked = compared(edited(CAT, mask="multiply"), CAT).maps.difference_classes
    assert masked[0, 1] == int(CellClass.MASKED)


def test_pooling_keeps_the_largest_difference_of_either_sign():
    a = make_spec(RandomQK(length=70), num_heads=1)
    b = edited(a, mask="none")
    full, pooled = compared(a, b).maps.difference, compared(a, b, pixels=40).maps
    assert pooled.level == 2
    for row, col in [(0, 0), (3, 20), (34, 34)]:
        block = full[2 * row : 2 * row + 2, 2 * col : 2 * col + 2]
        assert pooled.difference[row, col] == block.flat[np.abs(block).argmax()]
    assert pooled.difference.min() < 0 < pooled.difference.max()


def test_the_wanted_head_comes_first_and_heads_of_one_alone_are_left_out():
    a = make_spec(RandomQK(length=9), num_heads=4)
    b = edited(a, num_heads=2)
    stream = answers(CompareQuestion(a=a, b=b, head=1))
    first = next(stream)
    assert [head.head for head in first.heads] == [1]
    assert first.maps.head == 1
    last = [*stream][-1]
    assert (last.done, last.total, last.left_out) == (2, 2, 2)
    assert [*answers(CompareQuestion(a=a, b=a), lambda: True)] == []


def test_scores_have_no_sums_and_infinite_ones_are_equal_to_themselves():
    answer = compared(CAT, edited(CAT, fill=-1e9), stage="masked_scores")
    head = answer.heads[0]
    assert math.isinf(head.largest)
    assert math.isnan(head.future[0])
    assert compared(CAT, CAT, stage="masked_scores").heads[0].identical


def test_what_cannot_be_compared_is_said():
    with pytest.raises(SpecError, match="A has no stage masked_scores"):
        CompareQuestion(a=edited(CAT, mask="none"), b=CAT, stage="masked_scores")
    with pytest.raises(SpecError, match="compared where rows are queries"):
        CompareQuestion(a=CAT, b=CAT, stage="context")
    with pytest.raises(SpecError, match="heads 0 to 0"):
        CompareQuestion(a=CAT, b=CAT, head=1)
    with pytest.raises(SpecError, match="same length"):
        next(answers(CompareQuestion(a=CAT, b=JOURNEY)))
    long = make_spec(RandomQK(length=1025))
    with pytest.raises(SpecError, match="1,024 tokens"):
        next(answers(CompareQuestion(a=long, b=long)))
