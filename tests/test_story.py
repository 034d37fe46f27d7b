"""The sentences hold on every stage, head, zoom and source: no number in them that the row does not have."""

import math
from dataclasses import replace

import pytest

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.frames import Failure
from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    Lesson,
    RandomEmbeddings,
    Text,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
)
from attnviz.views.story import percent, story

CAT = make_spec(Lesson(name="cat-eats-fish"), mask="none")


def picture_of(spec, view=None, **viewport):
    return rendering.collect(Engine(), spec, view or View(), Viewport(**viewport))


def told(spec, row, *, stage="weights", head=None, before=None, **viewport):
    view = View(stage=stage, head=head)
    picture = picture_of(spec, view, **viewport)
    selected = None if row is None else Cell(row, 0)
    return story(Snapshot(spec=spec, view=view, picture=picture, last=before, selected=selected))


def test_the_steps_of_three_step_each_say_what_they_hold():
    three = edited(CAT, mask="three-step")
    before = picture_of(CAT)
    large, small = told(three, 1, stage="unmasked_weights", before=before)
    assert large.startswith("Step 1 of 3")
    assert small == "“Eats” gives 24 % to “fish”, a word that is not written yet."
    large, small = told(three, 1, stage="unnormalised_weights", before=before)
    assert large.startswith("Step 2 of 3")
    assert "sums to 0.76" in large
    assert "divides" in small
    assert told(three, 1, before=before)[0] == "The 24 % did not vanish: it was shared out again."
    assert "takes nothing away" in told(three, 2, stage="unnormalised_weights")[0]
    assert told(three, 2, stage="unmasked_weights")[1] == ""


@pytest.mark.parametrize("head", [None, 0, 1])
def test_several_heads_are_told_apart(head):
    spec = make_spec(mask="none")
    weights = Engine().arrays(spec).stages["weights"][head or 0]
    large, small = told(spec, 1, head=head)
    assert percent(float(weights[1, 2:].sum())) in large
    assert f"head {head or 0}" in small


def test_a_window_that_cuts_the_row_is_given_no_share():
    spec = make_spec(RandomEmbeddings(length=30), mask="none", num_heads=1)
    assert "weight" in told(spec, 1)[0]
    assert "part of this row" in told(spec, 1, rows=(0, 10), cols=(0, 10))[0]
    assert told(spec, 1, pixels=(10, 10))[0] == "A pixel here is the brightest of 4 × 4 cells."


@pytest.mark.parametrize("changed", [{"seed": 5}, {"num_heads": 3}, {"mask": "three-step"}])
def test_another_state_before_is_not_compared(changed):
    spec = make_spec()
    before = picture_of(edited(spec, **({"mask": "none"} | changed)))
    large, small = told(spec, 1, before=before)
    assert large == "“Journey” sees 2 of 6 words: the future is hidden."
    assert "became" not in small


def test_a_state_before_on_another_stage_is_not_compared():
    before = picture_of(CAT, View(stage="context"))
    assert "sees 2 of 3" in told(edited(CAT, mask="neg-inf"), 1, before=before)[0]


def test_a_long_row_says_that_all_grew_alike():
    spec = make_spec(num_heads=1)
    large, small = told(spec, 4, before=picture_of(edited(spec, mask="none")))
    assert "did not vanish" in large
    assert small == "Every word that it still sees grew by the same factor."


def test_names_keep_their_case_and_long_ones_are_cut():
    assert told(make_spec(Text(text="GPT writes well"), mask="none", num_heads=1), 0)[0].startswith("“GPT”")
    large = told(make_spec(Text(text="x" * 400 + " b c"), mask="none", num_heads=1), 0)[0]
    assert len(large) < 120


def test_without_a_selection_without_a_picture_and_with_no_weights():
    assert told(CAT, None)[0] == "Click a word, or use the arrows."
    assert told(CAT, 1, stage="context")[0] == "Each word's mixture of values, by its weights."
    nothing = Snapshot(spec=CAT, view=View())
    assert "torch" in story(nothing)[0]
    assert story(replace(nothing, failure=Failure(1, "It failed.", ""))) == ("", "")


@pytest.mark.parametrize("mask", ["none", "three-step", "neg-inf"])
def test_every_stage_has_a_sentence(mask):
    spec = make_spec(mask=mask, dropout=0.5)
    assert [stage for stage in stages_of(spec) if not told(spec, 1, stage=stage)[0]] == []
    assert "−∞" in told(make_spec(), 1, stage="masked_scores")[0]
    assert "triangle left" in told(make_spec(mask="three-step"), 1, stage="row_sums")[0]


def test_a_row_of_nan_and_rows_without_a_future():
    hidden = make_spec(TypedScores(scores=((-math.inf, -math.inf), (0.0, 0.0))), mask="none")
    assert told(hidden, 0)[0].startswith("This row is NaN")
    assert told(make_spec(TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),))), 0)[0] == "This row sums to 1.00."


def test_dropout_comes_first_whatever_the_mask():
    spec = edited(CAT, dropout=0.5, dropout_seed=14)
    large, _ = told(spec, 1, stage="dropped_weights")
    assert large.startswith("After dropout this row sums to")


@pytest.mark.parametrize(("share", "words"), [(0.0, "0 %"), (0.004, "<1 %"), (0.2447, "24 %"), (1.0, "100 %")])
def test_percent(share, words):
    assert percent(share) == words
