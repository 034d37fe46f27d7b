"""Rounds: growing the input gives the rows of one masked pass, and none of the unmasked one but the last."""

import json

import numpy as np
import pytest
import torch
from made_pictures import picture_of, snapshot_of

from attnviz import cli, rendering
from attnviz.cli.study import SpecOptions, study_command
from attnviz.engine import Engine
from attnviz.questions.rounds import RoundsQuestion, cells_cached, cells_in_one_pass, cells_recomputed
from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    Lesson,
    PadLeft,
    Prefix,
    RandomEmbeddings,
    RandomQK,
    SlidingWindow,
    SpecError,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
)
from attnviz.studies import answers
from attnviz.views.pages.rounds import RoundsPage

BOOK = make_spec(Lesson(name="journey"), num_heads=1, d_out=2, seed=789)
CAT = make_spec(Lesson(name="cat-eats-fish"))

STUDY = study_command(SpecOptions(cli.spec_options, cli.asked_for))


def last_of(spec, head=0):
    return [*answers(RoundsQuestion(spec=spec, head=head))][-1]


def test_without_a_mask_the_first_differs_by_81_hundredths_and_the_last_not_at_all():
    answer = last_of(edited(BOOK, mask="none"))
    assert round(float(answer.differences[0]), 2) == 0.81
    assert answer.differences[-1] == 0
    assert not answer.exact
    assert (np.diff(answer.differences) < 0).all()


@pytest.mark.parametrize("mask", ["neg-inf", "three-step", "add"])
@pytest.mark.parametrize("spec", [BOOK, CAT, make_spec(RandomQK(length=90), num_heads=2)], ids=["book", "cat", "qk"])
def test_with_a_mask_every_round_gives_the_row_of_one_pass(spec, mask):
    answer = last_of(edited(spec, mask=mask), head=spec.num_heads - 1)
    assert answer.worst < 1e-6
    assert len(answer.last_rows) == answer.total


def test_not_dividing_leaks_although_the_triangle_is_clean():
    answer = last_of(edited(BOOK, mask="multiply"))
    assert answer.worst > 0.5
    assert (answer.whole[np.triu_indices(6, 1)] == 0).all()


def test_rounds_are_recomputed_from_the_prefix_alone():
    """Against torch: softmax of the prefix's own scores."""
    scores = torch.tensor([[0.5, 0.5, 1.0], [0.0, 2.0, 1.0], [0.5, 0.5, 0.0]], dtype=torch.float64)
    told = [*answers(RoundsQuestion(spec=edited(CAT, mask="none", dtype="float64")))]
    assert [answer.done for answer in told] == [1, 2, 3]
    for n, answer in enumerate(told, 1):
        expected = torch.softmax(scores[:n, :n], -1)
        assert answer.maps[-1] == pytest.approx(expected.numpy(), abs=1e-12)
        assert answer.last_rows[-1].tolist() == answer.maps[-1][-1].tolist()


@pytest.mark.parametrize("shape", [SlidingWindow(width=2), PadLeft(count=2), Prefix(length=3)])
def test_other_shapes_are_cut_out_of_the_whole_mask(shape):
    answer = last_of(edited(BOOK, mask_shape=shape))
    for n, hidden in enumerate(answer.hidden_maps, 1):
        assert (hidden == answer.hidden[:n, :n]).all()
    if isinstance(shape, Prefix):  # row 0 of the whole pass sees tokens that round 1 has not got
        assert answer.differences[0] > 0.1
    else:
        assert np.nanmax(answer.differences) < 1e-6
    assert answer.differences[-1] == 0


def test_a_row_that_is_nan_in_both_is_the_same():
    answer = last_of(edited(BOOK, mask_shape=PadLeft(count=2)))
    assert np.isnan(answer.whole[0]).all()
    assert answer.differences[0] == 0


@pytest.mark.parametrize("length", [1, 65, 257])
def test_any_length_and_no_maps_for_long_ones(length):
    answer = last_of(make_spec(RandomEmbeddings(length=length), num_heads=2, dropout=0.5))
    assert answer.done == answer.total == length
    assert answer.worst < 1e-6
    assert len(answer.maps) == (1 if length == 1 else 0)


def test_the_counts_are_the_lessons():
    assert (cells_recomputed(6), cells_cached(6), cells_in_one_pass(6)) == (91, 21, 36)
    for n in (1, 7, 1024):
        assert cells_recomputed(n) == sum(k * k for k in range(1, n + 1))
        assert cells_cached(n) == sum(range(1, n + 1))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (RandomQK(length=1025), "1,024"),
        (TypedWeights(weights=((1.0, 0.0), (0.5, 0.5))), "weights are typed"),
        (TypedScores(scores=((1.0, 0.0),)), "a query for each key"),
    ],
)
def test_what_has_no_rounds_says_why(source, words):
    with pytest.raises(SpecError, match=words):
        next(answers(RoundsQuestion(spec=make_spec(source))))


def test_it_stops_when_it_is_called_off():
    called_off = []
    stream = answers(RoundsQuestion(spec=BOOK), lambda: bool(called_off))
    assert next(stream).done == 1
    called_off.append(True)
    assert [*stream] == []


# ------------------------------------------------------------------------------------------------------------ the page


@pytest.fixture
def page(qtbot):
    page = RoundsPage()
    qtbot.addWidget(page)
    page.resize(400, 900)
    page.asked_questions = []
    page.asked.connect(page.asked_questions.append)
    return page


def present(page, spec):
    picture = rendering.collect(Engine(), spec, View(), Viewport())
    page.present(Snapshot(spec=spec, view=View(), picture=picture, selected=Cell(1, 0)))


def run(page):
    for answer in answers(page.asked_questions[-1]):
        page.take_answer(answer)
    page.take_end()


def test_the_page_says_whether_training_practises_what_generation_does(page):
    present(page, edited(BOOK, mask="none"))
    assert page.asked_questions == []
    page.set_active(True)
    run(page)
    assert "last row of round 1 and row 0 · Your of the one pass differ by .81" in page._sentence.text()
    assert "those of the last round by 0" in page._sentence.text()
    assert page.round == 1
    assert page.counts.counts[2].words == "one pass"
    assert page.difference.text().endswith(": .81")
    present(page, BOOK)
    run(page)
    assert "same row of one masked pass" in page._sentence.text()
    assert page.counts.counts[2].words == "one masked pass"
    page.slider.setValue(6)
    assert "91" in page.counts.counts[0].formula
    assert [count.value for count in page.counts.counts] == [91, 21, 36]


def test_the_round_in_sight_stays_when_the_mask_changes(page):
    page.set_active(True)
    present(page, edited(BOOK, mask="none"))
    run(page)
    page.slider.setValue(4)
    present(page, BOOK)
    run(page)
    assert page.round == 4
    assert page.words.text().startswith("round 4 of 6")
    present(page, CAT)
    run(page)
    assert page.round == 3


def test_what_does_not_change_the_weights_asks_nothing_new(page):
    page.set_active(True)
    present(page, BOOK)
    run(page)
    present(page, edited(BOOK, dropout=0.5, dropout_seed=9))
    assert len(page.asked_questions) == 1
    present(page, edited(BOOK, seed=5))
    assert len(page.asked_questions) == 2


def test_play_goes_on_a_round_at_a_time_and_stops_at_the_end(page, qtbot):
    page.set_active(True)
    present(page, BOOK)
    run(page)
    assert page.timer.interval() == 1000
    page.timer.setInterval(1)
    seen = []
    page.slider.valueChanged.connect(seen.append)
    page.slider.setValue(6)
    seen.clear()
    page.play.click()
    qtbot.waitUntil(lambda: not page.timer.isActive())
    assert seen == [1, 2, 3, 4, 5, 6]
    page.play.click()
    page.set_active(False)
    assert not page.timer.isActive()


def test_the_map_grows_and_the_rows_above_the_last_are_thrown_away(page):
    page.set_active(True)
    present(page, BOOK)
    run(page)
    page.slider.setValue(3)
    assert page.map.frame.values[:3, :3] == pytest.approx(page.answer.maps[2])
    assert (page.map.frame.values[3:] == 0).all()
    assert "2 rows are thrown away" in page.map.accessibleName()
    assert "Your journey starts" in page.words.text()
    ours, whole = page.row.plot.bars
    assert ours.heights[::2] == pytest.approx([*page.answer.last_rows[2], 0, 0, 0])
    assert whole.heights[::2] == pytest.approx(page.answer.whole[2])


def test_too_long_a_source_says_so_where_it_stands(page):
    page.set_active(True)
    page.present(snapshot_of(picture_of(3000)))
    with pytest.raises(SpecError) as problem:
        run(page)
    page.take_failure(str(problem.value))
    page.take_end()
    assert "1,024" in page._sentence.text()
    assert not page.play.isEnabled()


def test_the_command_gives_the_differences(monkeypatch, capsys):
    monkeypatch.setitem(cli.commands.commands, "study", STUDY)
    spec = ("--heads", "1", "--d-out", "2", "--seed", "789", "--mask", "none")
    assert cli.run(["study", "rounds", *spec, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert round(told["differences"][0], 2) == 0.81
    assert told["question"]["spec"]["mask"] == "none"
    assert told["question"]["spec"]["fill"] == "-inf"
    assert cli.run(["study", "rounds", *spec]) == 0
    assert "91" in capsys.readouterr().out
    assert cli.run(["study", "rounds", "--length", "3000"]) == 2
