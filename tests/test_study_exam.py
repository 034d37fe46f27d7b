"""The exam: training loss betrays nothing, the exam does; and the study leaves torch as it found it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnviz.figure.studies.exam import maps_words
from attnviz.questions.exam import EXAM_MASKS, ExamQuestion, exam_mask, exam_mask_of
from attnviz.spec import Lesson, SpecError, make_spec
from attnviz.studies import answers

FLOOR = math.log(6)


@pytest.fixture(scope="module")
def by_seed():
    return {seed: [*answers(ExamQuestion(seed=seed))][-1] for seed in range(5)}


@pytest.mark.parametrize("seed", range(5))
def test_who_copies_and_who_cannot(by_seed, seed):
    answer = by_seed[seed]
    assert answer.finished
    assert answer.floor == pytest.approx(FLOOR)
    none, fill, multiply, three_step, neg_inf = answer.curves
    assert [curve.mask for curve in answer.curves] == [*EXAM_MASKS]
    assert none.training[-1] < 0.1
    assert none.exam[-1] > FLOOR + 1
    assert fill.training[-1] < FLOOR - 0.3
    assert fill.exam[-1] > FLOOR + 1
    assert multiply.training[-1] < FLOOR - 0.3
    assert multiply.exam[-1] > FLOOR + 1
    assert multiply.weights[:, np.triu(np.ones((6, 6), bool), 1)].max() == 0
    assert (multiply.future == 0).all()
    for honest in (three_step, neg_inf):
        assert abs(honest.training[-1] - FLOOR) < 0.02
        assert abs(honest.exam[-1] - FLOOR) < 0.02
        assert honest.future.max() == 0
    verdicts = [curve.verdict(answer.floor) for curve in answer.curves]
    assert verdicts == ["copied", "copied", "copied", "honest", "honest"]


def test_within_20_steps_the_stripe_lights_up(by_seed):
    for answer in by_seed.values():
        none = answer.curves[0]
        stripe = none.weights[none.steps.tolist().index(20)].diagonal(1)
        assert stripe.min() > 0.5
        assert none.weights[0].diagonal(1).max() < 0.9


def test_the_maps_words_are_of_what_is_drawn(by_seed):
    """Of those who copy one alone looks one letter ahead."""
    for answer in by_seed.values():
        words = maps_words(answer, len(answer.curves[0].steps) - 1)
        assert words.endswith(
            "Looks at the next letter: no mask. At all later letters alike: fill 0. "
            "At no later letter: multiply, three-step, −∞."
        )
        for curve in answer.curves:
            later = [curve.weights[-1][row, row + 1 :] for row in range(5)]
            if curve.mask == "none":
                assert all(row[0] > 0.5 for row in later)
            elif curve.mask == "fill-0":
                assert all(np.ptp(row) == 0 and row.sum() > 0.5 for row in later)
            else:
                assert not any(row.any() for row in later)
        assert "At later letters: no mask, fill 0." in maps_words(answer, 0)
        assert "red" not in maps_words(replace(answer, curves=answer.curves[2:]), 0)


def test_losses_are_what_a_row_alone_gives(by_seed):
    curve = by_seed[0].curves[4]
    assert curve.training == pytest.approx(curve.exam, abs=1e-4)  # with −∞ a prefix gives the rows of the whole


def test_each_mask_learns_alike_whoever_else_sits_the_exam():
    alone = [*answers(ExamQuestion(masks=("multiply",), steps=30, seed=7))][-1].curves[0]
    among = [*answers(ExamQuestion(masks=("none", "multiply"), steps=30, seed=7))][-1].curves[1]
    assert np.array_equal(alone.training, among.training)
    assert np.array_equal(alone.weights, among.weights)


def test_answers_stream_and_stop_between_two_steps():
    asked = 0

    def cancelled():
        nonlocal asked
        asked += 1
        return asked > 12

    got = [*answers(ExamQuestion(masks=("none",)), cancelled)]
    assert [answer.done for answer in got] == [0, 5, 10]
    assert [answer.curves[0].steps.tolist() for answer in got] == [[0], [0, 5], [0, 5, 10]]
    assert not got[-1].finished


def test_torch_is_left_as_it_was_even_within_inference_mode():
    before = torch.get_rng_state()
    with torch.inference_mode():
        stream = answers(ExamQuestion(masks=("none",), steps=5))
        next(stream)
        assert torch.is_inference_mode_enabled()
        last = [*stream][-1]
    assert torch.is_grad_enabled()
    assert last.curves[0].training[-1] < last.curves[0].training[0]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"mask": "none"}, "none"),
        ({"mask": "multiply"}, "multiply"),
        ({"mask": "neg-inf", "fill": 0.0}, "fill-0"),
        ({"mask": "neg-inf", "fill": -1e4}, "fill:-10000"),
        ({"mask": "add", "fill": -1e9}, "add:-1e+09"),
        ({"mask": "add"}, "add"),
    ],
)
def test_a_specs_mask_has_a_name_and_the_name_means_it(fields, name):
    spec = make_spec(Lesson(name="journey"), **fields)
    assert exam_mask_of(spec) == name
    mode, fill = exam_mask(name)
    assert mode == spec.mask
    assert not spec.fills or fill == spec.fill


@pytest.mark.parametrize("fields", [{"masks": ()}, {"masks": ("none", "none")}, {"masks": ("future",)},
                                    {"masks": ("fill:x",)}, {"steps": 0}, {"length": 1}])  # fmt: skip
def test_what_cannot_be_asked_is_said(fields):
    with pytest.raises(SpecError):
        ExamQuestion(**fields)


def test_an_added_mask_learns_as_the_filled_one():
    both = [*answers(ExamQuestion(masks=("neg-inf", "add", "fill:-1e9"), steps=10))][-1].curves
    for other in both[1:]:
        assert np.array_equal(both[0].training, other.training)
