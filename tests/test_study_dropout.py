"""Many draws of dropout: what theory says of a row's sums, of the mean map and of rows that vanish, and its page."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_pictures import picture_of, snapshot_of

from attnviz import cli, rendering
from attnviz.cli.study import SpecOptions, study_command
from attnviz.engine import Engine
from attnviz.figure.studies.dropout import contents_of, no_curve_words, sums_plot
from attnviz.figures import Figure
from attnviz.frames import CellClass, RowQuestion, Scale
from attnviz.questions.dropout import DropoutQuestion, sums_deviation
from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    Lesson,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
)
from attnviz.studies import answers
from attnviz.views.pages.dropout import DropoutPage

BOOK = make_spec(Lesson(name="journey"), num_heads=1, d_out=2, seed=789, dropout=0.5)

STUDY = study_command(SpecOptions(cli.spec_options, cli.asked_for))


def last_of(spec, **given):
    return [*answers(DropoutQuestion(spec=spec, **given))][-1]


# --------------------------------------------------------------------------------------------------------- the answers


def test_a_row_of_one_cell_vanishes_in_half_of_all_draws():
    answer = last_of(BOOK, draws=4000)
    assert answer.vanishing == pytest.approx([0.5**n for n in range(1, 7)])
    assert answer.n_visible.tolist() == [1, 2, 3, 4, 5, 6]
    spread = np.sqrt(answer.vanishing * (1 - answer.vanishing) / answer.done)
    assert (np.abs(answer.vanished - answer.vanishing) < 5 * spread).all()
    assert answer.factor == 2


@pytest.mark.parametrize("generator", ["portable", "torch"])
@pytest.mark.parametrize(("p", "row"), [(0.5, 3), (0.2, 5), (0.8, 1)])
def test_sums_have_the_mean_and_the_deviation_of_the_theory(generator, p, row):
    draws = 3000
    answer = last_of(edited(BOOK, dropout=p, dropout_generator=generator), row=row, draws=draws)
    assert answer.mean == pytest.approx(1, abs=1e-6)
    assert answer.deviation == pytest.approx(np.sqrt(p / (1 - p) * (answer.cells**2).sum()))
    assert abs(answer.sums.mean() - 1) < 5 * answer.deviation / np.sqrt(draws)
    assert 0.9 < answer.sums.std() / answer.deviation < 1.1


def test_the_lessons_row():
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    spec = make_spec(TypedWeights(weights=(tuple(weights),)), dropout=0.5)
    told = [*answers(DropoutQuestion(spec=spec, draws=200))]
    possible = {round(float((weights * kept).sum() * 2), 6) for kept in np.ndindex(2, 2, 2, 2)}
    assert {round(float(total), 6) for total in told[-1].sums} <= possible
    assert told[-1].deviation == pytest.approx(np.sqrt((weights**2).sum()))
    assert sums_deviation(weights, 0.5) == pytest.approx(told[-1].deviation)


@pytest.mark.parametrize(
    ("row", "site", "places"),
    [(0, "weights", [0, 2]), (2, "weights", [0, 0.62, 0.76, 1.24, 1.38, 2]),
     (1, "context", [-0.198, -0.098, 0, 0.1]), (5, "weights", None)],
)  # fmt: skip
def test_sums_of_a_few_cells_are_counted_where_they_are(row, site, places):
    """Of row 2 two cells weigh nearly the same: their bars are one."""
    answer = last_of(edited(BOOK, dropout_site=site), row=row, draws=300)
    plot = sums_plot(answer, None)
    edges, heights = plot.bars[0].edges, plot.bars[0].heights
    middles, counts = (edges[::2] + edges[1::2]) / 2, heights[::2]
    if places is not None:
        assert middles == pytest.approx(places, abs=1e-3)
    assert counts.tolist() == [(np.abs(answer.sums - place) < 0.01).sum() for place in middles]
    assert counts.sum() == 300
    assert (heights[1::2] == 0).all()
    assert (np.diff(edges) > 0).all()
    assert plot.x_range[0] < edges[0] < edges[-1] < plot.x_range[1]  # no bar is cut
    assert not plot.curves


def test_the_plot_names_theorys_mean_as_expected_and_the_draws_once():
    answer = last_of(BOOK, row=2, draws=300)
    plot = sums_plot(answer, 1.33)
    assert [mark.label for mark in plot.marks] == ["expected 1.00", "this draw 1.33"]
    assert plot.y_label == "draws, of 300"
    assert [bars.label for bars in plot.bars] == [""]
    assert no_curve_words(answer).endswith("at most 2³ = 8 values.")


def test_a_figure_names_its_head_where_there_are_several():
    one = Figure(shows="dropout", spec=BOOK, row=2)
    assert not contents_of(one, last_of(BOOK, row=2, draws=30)).circumstances.startswith("head")
    spec = edited(make_spec(Lesson(name="journey")), dropout=0.5)
    for several in (
        Figure(shows="dropout", spec=spec, heads=(1,)),
        Figure(shows="dropout", spec=spec, question=DropoutQuestion.of(spec, 1, 0)),
    ):
        assert contents_of(several, last_of(spec, head=1, draws=30)).circumstances.startswith("head 1 · −∞ mask")


def test_a_row_without_cells_has_one_bar():
    answer = last_of(BOOK, draws=9)
    nothing = np.zeros_like(answer.n_visible)
    answer = replace(answer, cells=0 * answer.cells, n_visible=nothing, sums=0 * answer.sums, mean=0.0, deviation=0.0)
    assert sums_plot(answer, None).bars[0].heights.tolist() == [9]


def test_the_first_draw_is_the_specs_own_and_the_next_the_re_rolled_ones():
    engine = Engine()
    sums = last_of(BOOK, row=4, draws=5).sums
    for draw in range(5):
        arrays = engine.arrays(edited(BOOK, dropout_seed=BOOK.dropout_seed + draw)).stages
        assert sums[draw] == pytest.approx(float(arrays["dropped_weights"][0, 4].sum()), abs=1e-6)
    own = engine.arrays(BOOK).stages["dropped_weights"][0, 4]
    assert last_of(BOOK, row=4, draws=1).dropped_row == pytest.approx(own)


def test_torchs_own_draws_come_in_head_order():
    spec = edited(make_spec(dropout=0.5, dropout_generator="torch"), dropout_seed=5)
    answer = last_of(spec, head=1, row=5, draws=3)
    for draw in range(3):
        arrays = Engine().arrays(edited(spec, dropout_seed=5 + draw)).stages["dropped_weights"]
        assert answer.sums[draw] == pytest.approx(float(arrays[1, 5].sum()), abs=1e-6)


def test_the_mean_map_converges_as_one_over_the_root():
    answer = last_of(BOOK, draws=4000)
    assert answer.steps[[0, -1]].tolist() == [1, 4000]
    assert {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000} <= {*answer.steps.tolist()}
    assert answer.largest[-1] < 5 * answer.expected[-1]
    assert answer.largest[-1] < answer.largest[0] / 10
    assert answer.expected == pytest.approx(answer.expected[0] / np.sqrt(answer.steps))
    apart = np.abs(answer.mean_map - answer.whole_map)
    assert answer.largest[-1] == pytest.approx(apart.max())
    assert answer.average[-1] == pytest.approx(apart[~answer.hidden_map].mean())


def test_a_dropped_context_keeps_or_loses_each_component():
    spec = edited(BOOK, dropout_site="context", dropout=0.3)
    answer = last_of(spec, row=2, draws=3000)
    context = Engine().arrays(spec).stages["context"][0]
    assert answer.cells == pytest.approx(context[2])
    assert answer.vanishing == pytest.approx([0.3**2] * 6)
    assert answer.mean == pytest.approx(context[2].sum())
    possible = {round(float((context[2] * kept).sum() / 0.7), 5) for kept in np.ndindex(2, 2)}
    assert {round(float(total), 5) for total in answer.sums} == possible
    assert abs(answer.sums.mean() - answer.mean) < 5 * answer.deviation / np.sqrt(3000)
    assert not answer.masked.any()


def test_it_streams_often_and_stops_when_it_is_called_off():
    called_off = []
    stream = answers(DropoutQuestion(spec=BOOK, draws=100_000), lambda: bool(called_off))
    done = [next(stream).done for _ in range(5)]
    assert done[0] == 1
    assert done == sorted({*done})
    called_off.append(True)
    assert [*stream] == []


def test_inference_is_asked_what_training_would_do():
    quiet = last_of(edited(BOOK, training=False), draws=50)
    assert quiet.sums.tolist() == last_of(BOOK, draws=50).sums.tolist()


def test_long_rows_tell_no_map():
    answer = last_of(make_spec(RandomEmbeddings(length=100), num_heads=2, dropout=0.2), row=99, draws=20)
    assert answer.mean_map is None
    assert len(answer.vanished) == len(answer.cells) == 100


@pytest.mark.parametrize(
    ("spec", "given", "words"),
    [
        (edited(BOOK, dropout=0.0), {}, "dropout is 0"),
        (BOOK, {"draws": 0}, "draws is 0"),
        (BOOK, {"head": 1}, "head is 1"),
        (BOOK, {"row": 6}, "row is 6"),
        (BOOK, {"row": -1}, "row is -1"),
        (make_spec(RandomQK(length=1025), dropout=0.1), {}, "too large"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_words(spec, given, words):
    with pytest.raises(SpecError, match=words):
        next(answers(DropoutQuestion(spec=spec, **given)))


# ------------------------------------------------------------------------------------------------------------ the page


@pytest.fixture
def page(qtbot):
    page = DropoutPage()
    qtbot.addWidget(page)
    page.resize(400, 1400)
    page.asked_questions, page.specs, page.redraws = [], [], []
    page.asked.connect(page.asked_questions.append)
    page.spec_edited.connect(page.specs.append)
    page.redraw_toggled.connect(page.redraws.append)
    return page


def snapshot(spec, row=0, **fields):
    engine = Engine()
    picture = rendering.collect(engine, spec, View(), Viewport())
    story = engine.row_story(RowQuestion(picture.generation, spec, row, 0))
    return Snapshot(spec=spec, view=View(), picture=picture, selected=Cell(row, 0), story=story, **fields)


def run(page):
    for answer in answers(page.asked_questions[-1]):
        page.take_answer(answer)
    page.take_end()


def test_it_starts_when_it_comes_into_sight_and_tells_the_half(page):
    page.present(snapshot(BOOK))
    assert page.asked_questions == []
    page.set_active(True)
    assert [question.draws for question in page.asked_questions] == [1000]
    run(page)
    name, cells, seen, expected = page.table.lines()[0]
    assert (name, cells) == ("0 · Your", "1")
    assert "a row of one cell vanishes with probability p" in page.table_words.text()
    assert page.body.indexOf(page.table) < page.body.indexOf(page.sums)
    assert "row 0 · Your sums to" in page.verdict.text()
    assert 40 < float(seen.removesuffix(" %")) < 60
    assert expected.replace("\u00a0", " ") == "p¹ = 50 %"
    assert "dropped whole" in page.verdict.text()
    assert "p¹ = 50 %" in page.verdict.text().replace("\u00a0", " ")
    assert page.factor.text() == "survivors × 2.00 = 1/(1 − 0.50)"
    (bars,) = page.sums.plot.bars
    assert bars.heights.sum() == 1000
    assert page.errors.plot.x_log
    assert page.errors.plot.y_log


def test_a_curve_stands_only_where_the_sum_takes_many_values(page):
    page.set_active(True)
    page.present(snapshot(BOOK))
    run(page)
    assert page.sums.plot.curves == ()
    assert "the sum of one cell takes two values" in page.no_curve.text()
    page.present(snapshot(BOOK, row=5))
    run(page)
    assert page.sums.plot.curves == ()
    assert "the sum of 6 cells takes at most 2⁶ = 64 values" in page.no_curve.text()
    page.present(snapshot(make_spec(RandomQK(length=9), num_heads=1, dropout=0.5), row=6))
    run(page)
    (normal,) = page.sums.plot.curves
    assert "normal curve" in normal.label
    assert page.no_curve.text() == ""


def test_a_re_roll_keeps_the_draws_and_moves_the_present_one(page):
    page.set_active(True)
    page.present(snapshot(BOOK, row=3))
    run(page)
    page.reroll.click()
    (rolled,) = page.specs
    assert rolled == edited(BOOK, dropout_seed=BOOK.dropout_seed + 1)
    page.present(snapshot(rolled, row=3))
    assert len(page.asked_questions) == 1
    dropped = Engine().arrays(rolled).stages["dropped_weights"][0, 3]
    marks = page.sums.plot.marks
    assert marks[-1].at == pytest.approx(float(dropped.sum()))
    page.again.click()
    assert len(page.asked_questions) == 2


def test_mask_and_dropout_are_told_apart_in_the_row(page):
    page.set_active(True)
    page.present(snapshot(BOOK, row=4))
    kinds = page.row.frame.classes[0]
    own = Engine().arrays(BOOK).stages["dropped_weights"][0, 4]
    assert (kinds[5:] == int(CellClass.MASKED)).all()
    expected = np.where(own[:5] == 0, int(CellClass.DROPPED), int(CellClass.ORDINARY))
    assert kinds[:5].tolist() == expected.tolist()
    page.present(snapshot(edited(BOOK, training=False), row=4))
    assert (page.row.frame.classes[0, :5] == int(CellClass.ORDINARY)).all()


def test_controls_emit_whole_specs_and_present_emits_nothing(page):
    page.set_active(True)
    page.present(snapshot(BOOK))
    assert page.specs == []
    page.p.slider.setValue(20)
    page.mode.buttons["inference"].click()
    page.site.buttons["context"].click()
    assert page.specs == [
        edited(BOOK, dropout=0.2), edited(BOOK, training=False), edited(BOOK, dropout_site="context"),
    ]  # fmt: skip
    page.redraw.click()
    assert page.redraws == [True]
    page.present(snapshot(BOOK, redraws=True))
    assert page.redraw.text() == "freeze"
    page.redraw.click()
    assert page.redraws == [True, False]


def test_what_cannot_be_chosen_says_why(page):
    page.set_active(True)
    page.present(snapshot(make_spec(TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),)), dropout=0.5)))
    assert not page.site.isEnabled()
    assert "no values" in page.site_reason.text()
    page.present(snapshot(edited(BOOK, dropout=0.0)))
    assert page.site.isEnabled()
    assert not page.reroll.isEnabled()
    assert "p is 0" in page._sentence.text()
    assert not page.sums.isVisibleTo(page)


def test_a_context_is_drawn_too(page):
    page.set_active(True)
    page.present(snapshot(edited(BOOK, dropout_site="context"), row=2))
    run(page)
    assert page.row.frame.stage == "dropped_context"
    assert [line[1] for line in page.table.lines()] == ["2"] * 6
    assert page.mean_map.frame.scale.diverging


def test_what_was_found_stays_until_its_successor_comes(page):
    page.set_active(True)
    page.present(snapshot(BOOK))
    run(page)
    before = page.sums.plot
    page.present(snapshot(edited(BOOK, dropout=0.2)))
    assert page.sums.isVisibleTo(page)
    assert page.sums.plot is before
    run(page)
    assert page.sums.plot is not before
    assert page.table.lines()[0][3].replace("\u00a0", " ") == "p¹ = 20 %"


def test_a_page_that_went_out_of_sight_while_it_drew_begins_again(page):
    page.set_active(True)
    page.present(snapshot(BOOK))
    page.set_active(False)
    page.set_active(True)
    assert len(page.asked_questions) == 2
    run(page)
    page.set_active(False)
    page.set_active(True)
    assert len(page.asked_questions) == 2


def test_too_large_a_head_says_so_where_it_stands(page):
    page.set_active(True)
    large = snapshot_of(picture_of(3000))
    page.present(Snapshot(spec=edited(large.spec, dropout=0.1), view=large.view, picture=large.picture))
    with pytest.raises(SpecError) as problem:
        run(page)
    page.take_failure(str(problem.value))
    page.take_end()
    assert "too large" in page._sentence.text()
    page.present(page.snapshot)
    assert len(page.asked_questions) == 1  # it is not asked again and again


# ---------------------------------------------------------------------------------------------------- the command line


def test_the_command_takes_the_specs_options(monkeypatch, capsys):
    monkeypatch.setitem(cli.commands.commands, "study", STUDY)
    spec = ("--heads", "1", "--d-out", "2", "--seed", "789", "--dropout", "0.5", "--row", "2", "--draws", "40")
    assert cli.run(["study", "dropout", *spec, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["done"] == 40
    assert told["sums"] == last_of(BOOK, row=2, draws=40).sums.tolist()
    assert told["vanishing"][0] == 0.5
    assert cli.run(["study", "dropout", *spec]) == 0
    assert "p^1 = 50 %" in capsys.readouterr().out
    for wrong in (("dropout",), ("dropout", *spec, "--head", "all"), ("dropout", *spec, "--head", "3")):
        assert cli.run(["study", *wrong]) == 2


def test_a_number_has_the_colour_that_it_has_in_the_window(page):
    drawn = make_spec(Lesson(name="cat-eats-fish"), dropout=0.5, mask="none")
    page.present(snapshot(drawn, row=1))
    page.set_active(True)
    run(page)
    shown = [page.row, page.whole_map, page.mean_map]
    assert [one.frame.scale.high == 1 for one in shown] == [False] * 3
    own = [one.frame.rgb for one in shown]
    looked = snapshot(drawn, row=1)
    page.present(replace(looked, view=View(norm="unit", colours="cividis")))
    assert [one.frame.scale for one in shown] == [Scale(0.0, 1.0)] * 3
    assert all((one.frame.rgb != was).any() for one, was in zip(shown, own, strict=True))
