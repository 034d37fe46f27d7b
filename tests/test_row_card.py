"""The row card's numbers, words and formulas: both lessons' published figures through the engine's own rows."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import reference
import torch

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.frames import RowQuestion
from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    Lesson,
    PadLeft,
    RandomEmbeddings,
    RandomQK,
    Text,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
)
from attnviz.views.row_card import numbers
from attnviz.views.row_card.formula import mix_lines, plain, softmax_lines, sum_lines
from attnviz.views.row_card.lines import row_lines

CAT = make_spec(Lesson(name="cat-eats-fish"), mask="none")
MASKED = edited(CAT, mask="neg-inf")
THREE = edited(CAT, mask="three-step")
JOURNEY = make_spec(num_heads=1, d_out=2, seed=789)
INF = math.inf


def snapshot_of(spec, row, col=0, before=None, *, head=None, **fields):
    """The snapshot in which the selected row's story has come from an engine."""
    engine, view = Engine(), View(head=head)
    last = None if before is None else rendering.collect(engine, before, view, Viewport(pixels=(8, 8)))
    picture = rendering.collect(engine, spec, view, Viewport(pixels=(8, 8)))
    story = engine.row_story(RowQuestion(1, spec, row, head or 0, before))
    fields = {"selected": Cell(row, col)} | fields
    return Snapshot(spec=spec, view=view, picture=picture, last=last, story=story, **fields)


def lines_of(spec, row, before=None, **fields):
    lines = row_lines(snapshot_of(spec, row, before=before, **fields))
    assert lines is not None
    return lines


def column(lines, name):
    return [lines.line(key).texts[name] for key in range(lines.n_keys)]


def told(lines, key):
    return [plain(line) for line in softmax_lines(lines, key)]


# ------------------------------------------------------------------------------------------------------ cat eats fish


def test_eats_peeks_at_fish_without_a_mask():
    lines = lines_of(CAT, 1, MASKED)
    assert lines.columns == ("score", "exponential", "share", "before")
    assert column(lines, "score") == ["0", "2", "1"]
    assert column(lines, "exponential") == ["1", "7.39", "2.72"]
    assert column(lines, "share") == ["9 %", "67 %", "24 %"]
    assert column(lines, "before") == ["12 %", "88 %", "×"]
    assert [(line.name, line.text, line.before_text) for line in lines.context] == [
        ("猫味", ".16", ".21"),
        ("鱼味", ".31", ".09"),
    ]
    assert [lines.line(key).peeking for key in range(3)] == [False, False, True]
    assert (lines.answer.token, lines.answer.key, lines.answer.open) == ("鱼", 2, True)
    assert lines.sees() == "sees 3 of 3, 1 ahead"
    assert told(lines, 2) == ["24 % = 2.72 / (1 + 7.39 + 2.72)"]
    assert [run.text for run in softmax_lines(lines, 2)[0] if run.leak] == ["2.72"]


def test_eats_masked_has_what_the_lesson_prints():
    lines = lines_of(MASKED, 1, CAT)
    assert column(lines, "score") == ["0", "2", "−∞"]
    assert column(lines, "exponential") == ["1", "7.39", "0"]
    assert column(lines, "share") == ["12 %", "88 %", "×"]
    assert column(lines, "before") == ["9 %", "67 %", "24 %"]
    assert [(line.text, line.before_text) for line in lines.context] == [(".21", ".16"), (".09", ".31")]
    assert not lines.answer.open
    assert not lines.peeking.any()
    assert lines.sees() == "sees 2 of 3"
    assert told(lines, 1) == ["88 % = 7.39 / (1 + 7.39)"]
    assert told(lines, 2) == ["0 % = 0 / (1 + 7.39)   e^(−∞) is 0"]
    assert plain(mix_lines(lines, 0)[0]) == "猫味 .21 = .12 · 1 + .88 · .1"
    assert [plain(line) for line in sum_lines(lines)] == [
        "Σ 1.00 = .12 + .88",
        "猫味 .21 = .12 · 1 + .88 · .1",
        "鱼味 .09 = .12 · 0 + .88 · .1",
    ]


def test_the_first_word_sees_itself_and_the_last_has_no_answer():
    first, last = lines_of(MASKED, 0), lines_of(MASKED, 2, CAT)
    assert column(first, "share") == ["100 %", "×", "×"]
    assert told(first, 0) == ["100 % = 1.65 / 1.65"]
    assert last.answer is None
    assert last.is_last_word
    assert column(last, "share") == column(last, "before") == ["38 %", "38 %", "23 %"]


def test_three_steps_strike_the_future_out():
    lines = lines_of(THREE, 1, CAT)
    assert lines.columns == ("score", "exponential", "first", "share", "before")
    assert column(lines, "first") == ["9 %", "67 %", "24 %"]
    assert column(lines, "share") == ["12 %", "88 %", "×"]
    assert lines.line(2).struck == {"exponential", "first"}
    assert lines.line(1).struck == frozenset()
    assert lines.sum_before_dividing == pytest.approx(0.7553, abs=5e-5)
    assert told(lines, 1) == [
        "softmax 67 % = 7.39 / (1 + 7.39 + 2.72)",
        "× triangle 9 % + 67 % + 24 % = 76 %",
        "÷ sum 88 % = 67 % / 76 % = 7.39 / (1 + 7.39 + 2.72)",
    ]
    struck = [[run.text for run in line if run.struck] for line in softmax_lines(lines, 1)]
    assert struck == [[], [" + ", "24 %"], [" + ", "2.72"]]
    assert told(lines, 2)[2] == "÷ sum 24 % 0 % = 0 / 76 %"


def test_multiplying_names_the_missing_division():
    lines = lines_of(edited(CAT, mask="multiply"), 1)
    assert column(lines, "share") == ["9 %", "67 %", "×"]
    assert lines.line(2).struck == {"first"}  # its e^s stays in everybody's denominator
    assert lines.total == pytest.approx(0.7553, abs=5e-5)
    assert told(lines, 1)[1] == "× triangle 67 % · 1 = 67 %"
    assert told(lines, 2)[1] == "× triangle 24 % · 0 = 0 %"
    assert "the division is missing: nobody divides by 76 %" in told(lines, 1)[2]


def test_an_added_mask_shows_what_is_added():
    lines = lines_of(edited(CAT, mask="add"), 1)
    assert column(lines, "score") == ["0", "2", "1"]
    assert column(lines, "added") == ["0", "0", "−∞"]
    assert column(lines, "exponential") == ["1", "7.39", "0"]
    assert told(lines, 1) == ["88 % = 7.39 / (1 + 7.39)"]
    finite = lines_of(edited(CAT, mask="add", fill=-1e9), 1)
    assert column(finite, "added") == ["0", "0", "−10⁹"]


def test_a_fill_of_0_is_no_mask():
    two = make_spec(TypedScores(scores=((2.0, 0.0), (0.0, 0.0))), mask="neg-inf", fill=0.0)
    lines = lines_of(edited(two, source=TypedScores(scores=((0.0, 2.0), (0.0, 0.0)))), 0)  # the second is hidden
    assert column(lines, "share") == ["50 %", "50 %"]
    assert lines.line(1).peeking
    assert lines.answer.open
    assert told(lines, 1) == ["50 % = 1 / (1 + 1)   filled with 0, it still takes its part"]
    closed = lines_of(edited(two, source=TypedScores(scores=((0.0, 2.0), (0.0, 0.0))), fill=-INF), 0)
    assert column(closed, "share") == ["100 %", "×"]


def test_top_k_cuts_what_is_not_among_the_largest():
    lines = lines_of(edited(MASKED, top_k=1), 1)
    assert column(lines, "share") == ["×", "100 %", "×"]
    assert told(lines, 0) == ["0 % = 0 / 7.39   not among the top 1: e^(−∞) is 0"]
    assert lines.sees() == "sees 1 of 3"
    assert "not among the 1 largest" in lines.exact(0)


def test_a_future_key_that_top_k_cut_is_not_called_hidden_by_a_mask_that_is_off():
    lines = lines_of(edited(CAT, top_k=1), 1)
    assert column(lines, "share") == ["×", "100 %", "×"]
    assert told(lines, 2) == ["0 % = 0 / 7.39   not among the top 1: e^(−∞) is 0"]
    assert lines.exact(2).endswith("not among the 1 largest")
    masked = lines_of(edited(MASKED, top_k=1), 1)
    assert told(masked, 2) == ["0 % = 0 / 7.39   e^(−∞) is 0"]
    assert masked.exact(2).endswith("hidden by the mask")
    added = lines_of(edited(CAT, mask="add", top_k=1), 1)
    assert column(added, "added") == ["−∞", "0", "−∞"]
    assert added.exact(0).endswith("not among the 1 largest")
    assert added.exact(2).endswith("hidden by the mask")


def test_a_row_that_sees_no_key_blames_the_mask():
    lines = lines_of(edited(THREE, mask_shape=PadLeft(count=1)), 0)
    assert told(lines, 1)[1:] == [
        "× triangle 27 % + 27 % + 45 % = 0 %",
        "÷ sum NaN = 0 / 0   the mask hides every key: nothing is left of the row",
    ]  # fmt: skip
    lines = lines_of(edited(CAT, mask="multiply", mask_shape=PadLeft(count=1)), 0)
    assert told(lines, 1)[2] == "the mask hides every key: nothing is left of the row"
    nothing = make_spec(TypedScores(scores=((-INF, -INF), (0.0, 0.0))), mask="three-step")
    assert told(lines_of(nothing, 0), 0) == ["softmax NaN = 0 / 0   every key is at −∞: there is nothing to share out"]


@pytest.mark.parametrize("mask", ["three-step", "multiply"])
def test_a_sum_that_rounding_alone_keeps_from_1_is_100_percent(mask):
    sums = set()
    for seed in range(1, 20):
        lines = lines_of(make_spec(Text(text="a b c d e f g"), mask=mask, seed=seed), 6)
        sums.add(lines.sum_before_dividing if mask == "three-step" else lines.total)
        words = told(lines, 1)
        if mask == "three-step":
            assert words[1].endswith("100 %")
            assert " / 100 % " in words[2]
        else:
            assert words[2] == "nothing was hidden, so there is nothing to divide by"
            assert not softmax_lines(lines, 1)[2][0].leak
    assert sums - {1.0}  # rounding was there


@pytest.mark.parametrize(
    ("value", "text"), [(0.9999999, "100 %"), (1.0000001, "100 %"), (0.9982, "99.8 %"), (0.7553, "76 %"), (0.0, "0 %")]
)
def test_sums_in_formulas(value, text):
    assert numbers.told_sum(value, None) == text


def test_what_is_added_stands_beside_the_score_that_it_is_added_to():
    spec = edited(JOURNEY, mask="add", fill=-5.0)
    assert lines_of(spec, 1).columns[:3] == ("raw", "score", "added")
    lines = lines_of(edited(spec, scale_after_mask=True), 1)
    assert [lines.title(name) for name in lines.columns[:3]] == ["score", "+ M", "scaled"]
    raw, added, scaled = (float(lines.line(2).texts[name].replace("−", "-")) for name in lines.columns[:3])
    assert (raw + added) / math.sqrt(2) == pytest.approx(scaled, abs=0.01)


# ------------------------------------------------------------------------------------------------------------ journey


@pytest.mark.parametrize("mask", ["three-step", "neg-inf"])
def test_journey_prints_the_books_row(mask):
    lines = lines_of(edited(JOURNEY, mask=mask), 1, edited(JOURNEY, mask="none"), decimals=4)
    assert column(lines, "share") == [".5517", ".4483", "×", "×", "×", "×"]
    assert column(lines, "before") == [f"{w:.4f}".removeprefix("0") for w in reference.WEIGHTS_UNMASKED[1]]
    assert (lines.tokens[lines.place], lines.answer.token) == ("journey", "starts")
    assert [line.name for line in lines.context] == ["d0", "d1"]
    assert lines.line(0).texts["raw"] == ".47"
    assert lines.line(0).texts["score"] == ".33"


def test_the_head_is_named_where_there_are_several():
    assert lines_of(JOURNEY, 1).head is None
    assert lines_of(make_spec(), 1, head=1).head == 1


# ---------------------------------------------------------------------------------------------------- dropout and NaN


def test_dropout_writes_its_last_line():
    lines = lines_of(edited(MASKED, dropout=0.5), 1, MASKED)
    kept = [not bool(d) for d in lines.now.dropped[:2]]
    assert kept == [False, True]
    assert column(lines, "share") == ["12 %", "88 %", "×"]
    assert column(lines, "dropped") == ["∅", "176 %", "×"]  # a dropped key is no masked one
    assert [lines.line(key).dropped for key in range(3)] == [True, False, False]  # a masked cell is masked
    assert told(lines, 0)[-1] == "dropped: 12 % → 0"
    assert told(lines, 1)[-1] == "kept: 88 % × 1/(1 − .5) = 176 %"
    assert len(told(lines, 2)) == 1
    assert lines.total == pytest.approx(2 * 0.8808, abs=1e-4)
    assert lines.full == 2


def test_a_leak_that_dropout_hit_is_still_a_leak():
    lines = lines_of(edited(CAT, dropout=0.5, training=True, dropout_seed=5), 1)
    fish = lines.line(2)
    assert (fish.texts["share"], fish.texts["dropped"]) == ("24 %", "∅")
    assert (fish.peeking, fish.dropped) == (True, True)
    assert lines.sees() == "sees 3 of 3, 1 ahead"
    assert [run.text for run in softmax_lines(lines, 2)[0] if run.leak] == ["2.72"]
    assert told(lines, 2)[-1] == "dropped: 24 % → 0"


def test_dropout_on_the_context_tells_so_in_the_mix():
    lines = lines_of(edited(MASKED, dropout=0.5, dropout_site="context"), 1)
    assert [line.text for line in lines.context] == ["∅", "∅"]
    assert plain(mix_lines(lines, 0)[-1]) == "dropped: .21 → 0"
    assert lines.dropped is None


def test_typed_weights_have_no_softmax():
    lines = lines_of(make_spec(TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),)), dropout=0.5), 0)
    assert column(lines, "share") == ["40 %", "30 %", "20 %", "10 %"]
    assert lines.answer is None
    assert told(lines, 0)[0] == "40 % typed by hand"
    assert plain(sum_lines(lines)[0]).startswith("Σ ")


def test_a_row_of_nan_is_0_over_0():
    three = make_spec(TypedScores(scores=((0.0, 20.0), (0.0, 0.0))), mask="three-step", dtype="float16")
    lines = lines_of(three, 0)
    assert column(lines, "share") == ["NaN", "NaN"]
    assert lines.sees() == "sees 1 of 2"
    assert not lines.answer.open
    assert told(lines, 0)[2] == "÷ sum NaN = 0 / 0   nothing is left of the row in float16"
    hidden = lines_of(edited(JOURNEY, mask_shape=PadLeft(count=2)), 0)
    assert hidden.sees() == "sees 0 of 6"
    assert told(hidden, 0) == ["NaN = 0 / 0   every key is at −∞: there is nothing to share out"]
    assert plain(mix_lines(hidden, 0)[0]).endswith("the row is NaN")


@pytest.mark.parametrize(
    ("dtype", "holds", "overflows"),
    [("float16", 11.0, 11.5), ("bfloat16", 88.0, 89.0), ("float32", 88.5, 89.0), ("float64", 709.5, 710.5)],
)
def test_e_to_the_s_is_taken_below_the_largest_where_it_would_overflow(dtype, holds, overflows):
    def lines(largest):
        return lines_of(make_spec(TypedScores(scores=((0.0, largest),)), mask="none", dtype=dtype), 0)

    assert lines(holds).shift is None
    assert lines(holds).title("exponential") == "e^s"
    assert lines(overflows).shift == overflows
    assert lines(overflows).title("exponential") == "e^(s − max)"
    assert column(lines(overflows), "exponential")[1] == "1"
    assert f"max = {numbers.score(overflows)}: e^s would overflow in {dtype}" in told(lines(overflows), 1)[-1]


@pytest.mark.parametrize(
    ("dtype", "holds", "vanishes"),
    [("float16", -17.25, -17.4), ("bfloat16", -92.5, -93.0), ("float32", -103.9, -104.0), ("float64", -745.0, -745.5)],
)
def test_e_to_the_s_is_taken_below_the_largest_where_it_would_vanish(dtype, holds, vanishes):
    assert (torch.tensor([holds, vanishes], dtype=getattr(torch, dtype)).exp() != 0).tolist() == [True, False]

    def lines(largest):
        spec = make_spec(TypedScores(scores=((largest, largest - 1),)), mask="none", dtype=dtype)
        return lines_of(spec, 0)

    assert lines(holds).title("exponential") == "e^s"
    assert "vanish" not in " ".join(told(lines(holds), 0))
    assert lines(vanishes).title("exponential") == "e^(s − max)"
    assert told(lines(vanishes), 0)[-1].endswith(f"e^s would vanish in {dtype}")


# ---------------------------------------------------------------------------------------------------------- long rows


def test_a_row_of_1024_keys_is_told_short_and_stands_in_full():
    lines = lines_of(make_spec(RandomQK(length=1024), num_heads=1, mask="none"), 1000)
    assert len(column(lines, "share")) == 1024
    key = int(np.argmax(lines.final))
    (line,) = told(lines, key)
    assert f"{1024 - 4:,} more)" in line
    assert len(line) < 110
    assert lines.full >= lines.final.max() > lines.full / 3
    three = lines_of(make_spec(RandomQK(length=64), num_heads=1, mask="three-step"), 40)
    assert told(three, 20)[1].startswith("× triangle what is left: ")
    assert f"{41 - 4} more" in told(three, 20)[2]


def test_every_equals_sign_multiplies_out_as_printed():
    """What is printed between = and the next sign is reckoned anew from its own digits."""
    checked = {"=": 0, "≈": 0}
    for seed in range(12):
        spec = make_spec(num_heads=1, seed=seed, mask="none")
        lines = lines_of(spec, 3)
        for key in range(6):
            (text,) = told(lines, key)
            share, sign, above, below = re.fullmatch(r"(\d+) % (=|≈) (\S+) / \((.+)\)", text).groups()
            made = float(above) / sum(map(float, below.split(" + ")))
            assert (f"{100 * made:.0f}" == share) == (sign == "=")
            checked[sign] += 1
    assert min(checked.values()) > 0


def test_padding_and_values_too_many_to_tell():
    lines = lines_of(edited(JOURNEY, mask_shape=PadLeft(count=2)), 3)
    assert column(lines, "share")[:2] == ["–", "–"]
    assert "padding" in lines.exact(0)
    many = lines_of(make_spec(RandomEmbeddings(length=1100), num_heads=1), 2)
    assert many.now.values is None
    assert "not written out" in plain(mix_lines(many, 0)[0])


def test_the_state_before_stands_here_while_it_is_held():
    lines = lines_of(MASKED, 1, CAT, show_before=True)
    assert lines.swapped
    assert column(lines, "share") == ["9 %", "67 %", "24 %"]
    assert column(lines, "before") == ["12 %", "88 %", "×"]
    assert lines.title("before") == "now"
    assert lines_of(MASKED, 1, CAT).title("before") == "before"


def test_a_story_of_another_row_or_source_is_not_told():
    snapshot = snapshot_of(MASKED, 1)
    assert row_lines(snapshot) is not None
    assert row_lines(replace(snapshot, selected=Cell(2, 0))) is None
    assert row_lines(replace(snapshot, story=snapshot_of(JOURNEY, 1).story)) is None
    assert row_lines(replace(snapshot, selected=None)) is None


def test_exact_values_have_nine_digits():
    words = lines_of(edited(MASKED, dropout=0.5), 1, CAT).exact(0)
    assert "猫 (cat)" in words
    assert "0.119202912" in words
    assert "dropped in this draw" in words
    assert "hidden by the mask" in lines_of(MASKED, 1).exact(2)
    assert "yet it weighs" in lines_of(CAT, 1).exact(2)


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (0.5, ".5"), (-0.04, "−.04"), (-INF, "−∞"), (-0.0, "0"), (-1e9, "−10⁹"), (1e-5, "1.0e−5"),
     (math.nan, "NaN"), (-9984.0, "−9984"), (123456.0, "123,456")],
)  # fmt: skip
def test_scores(value, text):
    assert numbers.score(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.119, "12 %"), (0.0, "0 %"), (1.0, "100 %"), (0.0015, "0.15 %"), (0.9982, "99.8 %"), (1.76, "176 %"),
     (2.06e-9, "2.1e−7 %"), (math.nan, "NaN")],
)  # fmt: skip
def test_shares_in_formulas_are_told_from_nothing_and_all(value, text):
    assert numbers.told_share(value, None) == text
    assert math.isnan(value) or numbers.read(text) == pytest.approx(value, rel=0.05)


def test_shares_in_columns():
    assert numbers.share(0.004, None, 3) == "< 1 %"
    assert numbers.share(0.004, None, 500) == "0.40 %"
    assert numbers.share(1e-6, None, 500) == "< .01 %"
    assert numbers.share(0.1192, 4, 3) == ".1192"
    assert math.isnan(numbers.read("< 1 %"))
