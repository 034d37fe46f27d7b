"""The sentences hold on every stage, head, zoom and source: no number in them that the row does not have."""

import math
from dataclasses import replace

import numpy as np
import pytest

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.frames import Failure, RowAnswer, RowQuestion
from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    Blocks,
    Causal,
    Drawn,
    Full,
    Lesson,
    PadLeft,
    PadRight,
    Pattern,
    Prefix,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SlidingWindow,
    Text,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
    visible_runs,
)
from attnviz.views.story import awaits_row, percent, story

CAT = make_spec(Lesson(name="cat-eats-fish"), mask="none")


def picture_of(spec, view=None, **viewport):
    return rendering.collect(Engine(), spec, view or View(), Viewport(**viewport))


def snapshot_of(spec, row, *, stage="weights", head=None, before=None, **viewport):
    view = View(stage=stage, head=head)
    picture = picture_of(spec, view, **viewport)
    selected = None if row is None else Cell(row, 0)
    return Snapshot(spec=spec, view=view, picture=picture, last=before, selected=selected)


def told(spec, row, **fields):
    return story(snapshot_of(spec, row, **fields))


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
    assert told(spec, 1, rows=(0, 10), cols=(0, 10))[0] == "A part of the map is in sight."
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


# ------------------------------------------------------------------------------------- whatever the mask's shape is

SHAPES = [
    Causal(), Full(), Prefix(length=3), SlidingWindow(width=2), Blocks(lengths=(2, 4)), PadLeft(count=2),
    PadRight(count=2), Drawn(runs=((1, 0, 0), (1, 4, 5), (5, 0, 5))),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_the_words_seen_are_those_that_the_mask_shows(shape):
    spec = make_spec(mask_shape=shape, num_heads=1, seed=789)
    weights = Engine().arrays(spec).stages["weights"][0]
    for row in range(6):
        large, small = told(spec, row)
        seen = {key for first, end in visible_runs(shape, row, 6, 6) for key in range(first, end)}
        if not seen:
            assert large == "Every key of this row is hidden, so there is nothing to share out."
            assert "NaN" in small
        elif len(seen) == 6:
            assert "nothing to hide" in large or "sees all 6 words" in large
        else:
            assert f"sees {len(seen)} of 6 words" in large
            assert ("the future is hidden" in large) == (seen == set(range(row + 1)))
            assert float(weights[row, sorted(seen)].sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_without_a_mask_the_share_is_what_the_shape_would_hide(shape):
    spec = make_spec(mask="none", mask_shape=shape, num_heads=1, seed=789)
    weights = Engine().arrays(spec).stages["weights"][0]
    for row in range(6):
        large, _ = told(spec, row)
        seen = [key for first, end in visible_runs(shape, row, 6, 6) for key in range(first, end)]
        share = 1 - float(weights[row, seen].sum())
        if len(seen) == 6:
            assert "the same with and without" in large
        else:
            assert percent(share) in large
            assert ("not written yet" in large) == (seen == list(range(row + 1)))


def test_the_second_step_takes_away_what_is_hidden_and_nothing_else():
    window = make_spec(mask="three-step", mask_shape=SlidingWindow(width=2), num_heads=1)
    total = float(Engine().arrays(window).stages["unnormalised_weights"][0][5].sum())
    large, _ = told(window, 5, stage="unnormalised_weights")
    assert f"sums to {total:.2f}" in large
    assert "future" not in large
    full = make_spec(mask="three-step", mask_shape=Full(), num_heads=1)
    assert "nothing is taken away" in told(full, 1, stage="unnormalised_weights")[0]


def test_padding_that_is_all_that_is_hidden_is_called_so():
    spec = make_spec(mask_shape=PadRight(count=2))
    assert "sees 4 of 6 words: the padding is hidden" in told(spec, 5)[0]


@pytest.mark.parametrize(("changes", "words"), [
    ({"mask": "neg-inf", "fill": -1e9}, "filled alike"), ({"mask": "multiply"}, "0 throughout"),
    ({"mask": "three-step"}, "0 divided by 0"), ({"mask": "neg-inf"}, "0 divided by 0"),
])  # fmt: skip
def test_a_row_that_sees_nothing_says_so_and_what_came_of_it(changes, words):
    large, small = told(make_spec(mask_shape=PadLeft(count=2), num_heads=1, **changes), 0)
    assert large.startswith("Every key of this row is hidden")
    assert words in small


@pytest.mark.parametrize(("fill", "dtype", "words"), [
    (-5.0, "float32", "−5 was added to every score alike, which moves no share: it is the softmax as it was."),
    (-5.0, "bfloat16", "On paper that moves no share, but bfloat16 rounds sums of this size."),
    (-1e9, "float32", "On paper that moves no share, but float32 rounds the sums until all are equal."),
    (-1e9, "float64", "which moves no share: it is the softmax as it was."),
])  # fmt: skip
@pytest.mark.parametrize("stage", ["weights", "dropped_weights"])
def test_what_is_added_to_every_score_of_a_row_is_not_called_filled(fill, dtype, words, stage):
    shape = PadLeft(count=1)
    spec = make_spec(mask="add", fill=fill, dtype=dtype, mask_shape=shape, num_heads=1, dropout=0.5, dropout_seed=1)
    stages, plain = Engine().arrays(spec).stages, Engine().arrays(edited(spec, mask="none")).stages
    moved = np.abs(stages["weights"][0][0] - plain["weights"][0][0]).max()
    assert (moved < 1e-6) == ("as it was" in words)
    assert (np.ptp(stages["weights"][0][0]) < 1e-6) == ("until all are equal" in words)
    large, small = told(spec, 0, stage=stage)
    assert large.startswith("Every key of this row is hidden")
    assert words in small
    total = float(stages["dropped_weights"][0][0].sum())
    assert small.endswith(f"After dropout the row sums to {total:.2f}.") == (stage == "dropped_weights")


def test_multiplying_is_told_as_what_nobody_shared_out():
    large, small = told(edited(CAT, mask="multiply"), 1, before=picture_of(CAT))
    assert large == "The triangle cut 24 % away and nobody shared it out again: the row sums to 0.76."
    assert "depends on what was cut away" in small
    assert "takes nothing away" in told(edited(CAT, mask="multiply"), 2)[0]
    assert told(edited(CAT, mask="multiply"), 1, stage="unmasked_weights")[0].startswith("Step 1 of 2")


@pytest.mark.parametrize(("mask", "fill", "words"), [
    ("neg-inf", 0.0, "Filled with 0, the hidden word still takes"),
    ("add", 0.0, "With 0 added, the hidden word still takes 24 %."),
    ("add", -2.0, "With −2 added, the hidden word still takes"),
])  # fmt: skip
def test_a_fill_that_hides_nothing_says_what_the_hidden_word_takes(mask, fill, words):
    spec = edited(CAT, mask=mask, fill=fill)
    share = float(Engine().arrays(spec).stages["weights"][0][1, 2])
    large, _ = told(spec, 1, before=picture_of(CAT))
    assert words in large
    assert percent(share) in large


def test_a_deep_fill_is_compared_as_infinity_is():
    large, small = told(edited(CAT, mask="add", fill=-1e9), 1, before=picture_of(CAT))
    assert large == "The 24 % did not vanish: it was shared out again."
    assert small.startswith("9 became 12")


@pytest.mark.parametrize(("k", "row", "words"), [
    (1, 1, "In this row only the largest score was kept."), (2, 1, "In this row only the 2 largest scores were kept."),
    (3, 1, "All 3 scores"), (1, 2, "those as large as the last: 2 in all"),
])  # fmt: skip
def test_top_k_says_how_many_scores_were_kept(k, row, words):
    assert words in told(edited(CAT, top_k=k), row)[0]


def test_top_k_counts_only_what_the_mask_shows():
    large, small = told(edited(CAT, mask="neg-inf", top_k=2), 1)
    assert "All 2 scores" in large
    assert "sees 2 of 3" in small


# ---------------------------------------------------------------------------------------------- where Q and K come from


@pytest.mark.parametrize(("spec", "words"), [
    (make_spec(), "The input times Wq, a matrix of weights."),
    (make_spec(projection="rand"), "a matrix of random numbers"),
    (make_spec(RandomQK(length=5)), "drawn at random: there is no input"),
    (make_spec(Pattern(length=5)), "made up: there is no input"),
])  # fmt: skip
def test_where_queries_come_from_is_said(spec, words):
    large, small = told(spec, 1, stage="queries")
    assert words in small
    assert ("word" in large) == (spec.source == Lesson())


def test_a_files_queries_are_the_files():
    source = QKFile(path="a.npz", sha256="0" * 64, heads=1, kv_heads=1, queries=3, length=3, d_head=2)
    picture = replace(picture_of(make_spec(RandomQK(length=3)), View(stage="queries")), spec=make_spec(source))
    snapshot = Snapshot(spec=picture.spec, view=View(stage="queries"), picture=picture)
    assert "read from the file" in story(snapshot)[1]


@pytest.mark.parametrize(("changes", "large", "small"), [
    ({}, "The future is set to −∞", "e to the −∞ is 0"),
    ({"mask_shape": Full()}, "What is hidden is set to −∞", "e to the −∞ is 0"),
    ({"fill": -1e9}, "The future is set to −10⁹", "far below"),
    ({"mask": "add"}, "0 where a word may look, −∞ where not", "e to the −∞"),
    ({"mask": "none", "top_k": 2}, "Only the 2 largest scores of each row", "e to the −∞"),
])  # fmt: skip
def test_what_stands_in_place_of_hidden_scores(changes, large, small):
    said = told(make_spec(**changes), 1, stage="masked_scores")
    assert large in said[0]
    assert small in said[1]


# --------------------------------------------------------------------------------------- before, after a failure, late


def test_the_state_before_and_a_are_called_so_while_they_are_held():
    held = replace(snapshot_of(edited(CAT, mask="neg-inf"), 1, before=picture_of(CAT)), show_before=True)
    assert story(held) == (
        "This is the state before the change.", "“Eats” gives 24 % to “fish”, a word that is not written yet.",
    )  # fmt: skip
    assert story(replace(held, pinned=held.last))[0] == "This is A."
    assert story(replace(held, show_before=False))[0].startswith("The 24 % did not vanish")


def test_after_a_failure_the_sentence_is_about_the_last_good_picture():
    good = snapshot_of(CAT, 1)
    asked = replace(good, spec=make_spec(), stale=True, failure=Failure(2, "It failed.", ""))
    large, small = story(asked)
    assert "still the last good picture" in large
    assert small == "“Eats” gives 24 % to “fish”, a word that is not written yet."
    assert story(replace(asked, stale=False, spec=CAT))[0].startswith("“Eats”")  # an export that failed


def test_a_row_is_told_from_its_own_answer_and_from_its_story_where_the_map_lacks_it():
    spec = make_spec(RandomEmbeddings(length=64), num_heads=1)
    snapshot = snapshot_of(spec, 40, pixels=(16, 16))
    assert awaits_row(snapshot)
    weights = Engine().arrays(spec).stages["weights"][0][40]
    classes = (weights == 0).astype("uint8") * 31 + 1
    answer = RowAnswer(snapshot.picture.generation, 40, 0, weights, classes)
    engine = Engine()
    list_of_stages = engine.row_story(RowQuestion(snapshot.picture.generation, spec, 40, 0, None))
    for known in {"row": answer}, {"story": list_of_stages}:
        told_now = replace(snapshot, **known)
        assert not awaits_row(told_now)
        assert story(told_now)[0] == "“40” sees 41 of 64 tokens: the future is hidden."
    assert awaits_row(replace(snapshot, selected=Cell(41, 0), row=answer, story=list_of_stages))


def test_a_state_before_of_another_source_is_no_state_to_compare_with():
    from attnviz.spec import TypedWeights

    weights = picture_of(make_spec(TypedWeights(weights=((1.0, 1.0, 1.0),) * 3)))
    assert told(edited(CAT, mask="neg-inf"), 1, before=weights)[0]
