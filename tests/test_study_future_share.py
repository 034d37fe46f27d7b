"""How much looks ahead: the published percentages, streamed draw by draw, on the page and on the command line."""

import json

import numpy as np
import pytest

from attnviz import cli
from attnviz.cli.study import SpecOptions, study_command
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.spec import SpecError
from attnviz.studies import answers
from attnviz.views.pages.looks_ahead import LooksAheadPage

UNMASKED = (84.8, 75.3, 62.3, 51.2, 39.4, 25.2, 13.9, 0.0)
THEORY = (87.5, 75.0, 62.5, 50.0, 37.5, 25.0, 12.5, 0.0)

STUDY = study_command(SpecOptions(cli.spec_options, cli.asked_for))


@pytest.fixture
def commanded(monkeypatch):
    """``attnviz study …`` as a person types it."""
    monkeypatch.setitem(cli.commands.commands, "study", STUDY)
    return lambda *arguments: cli.run(["study", *arguments])


def test_thirty_draws_give_the_published_percentages():
    last = [*answers(FutureShareQuestion())][-1]
    assert last.unmasked.round(1).tolist() == list(UNMASKED)
    assert last.theory.tolist() == list(THEORY)
    assert last.masked.tolist() == [0.0] * 8


def test_each_draw_answers_and_the_mean_is_of_the_draws_so_far():
    told = [*answers(FutureShareQuestion(draws=5))]
    assert [answer.done for answer in told] == [1, 2, 3, 4, 5]
    newest = np.array([answer.newest for answer in told])
    for answer in told:
        assert answer.unmasked == pytest.approx(newest[: answer.done].mean(0))
    assert told[0].unmasked.tolist() == told[0].newest.tolist()
    with pytest.raises(ValueError, match="read-only"):
        told[0].unmasked[0] = 1


def test_many_draws_of_small_scores_approach_the_theory():
    last = [*answers(FutureShareQuestion(draws=400, qk_scale=0.2))][-1]
    assert np.abs(last.unmasked - last.theory).max() < 1


def test_it_stops_when_it_is_called_off():
    called_off = []
    stream = answers(FutureShareQuestion(), lambda: bool(called_off))
    assert next(stream).done == 1
    called_off.append(True)
    assert [*stream] == []


@pytest.mark.parametrize(
    "given", [{"length": 0}, {"draws": 0}, {"d": 0}, {"seed": -1}, {"qk_scale": float("nan")}, {"length": 2000}]
)
def test_what_cannot_be_asked_is_said_in_words(given):
    with pytest.raises(SpecError, match=next(iter(given))):
        FutureShareQuestion(**given)


# ------------------------------------------------------------------------------------------------------------ the page


def test_the_page_asks_once_in_sight_and_shows_the_table(qtbot):
    from made_pictures import picture_of, snapshot_of

    page = LooksAheadPage()
    qtbot.addWidget(page)
    asked = []
    page.asked.connect(asked.append)
    snapshot = snapshot_of(picture_of(4))
    page.present(snapshot)
    assert asked == []
    page.set_active(True)
    assert asked == [FutureShareQuestion()]
    for answer in answers(asked[0]):
        page.take_answer(answer)
    page.take_end()
    lines = page.table.lines()
    assert [line[1] for line in lines] == [f"{percent:.1f} %" for percent in UNMASKED]
    assert [line[2] for line in lines] == [f"{percent:.1f} %" for percent in THEORY]
    assert {line[3] for line in lines} == {"0.0 %"}
    curves = page.plot.plot.curves
    assert curves[0].y.round(1).tolist() == list(UNMASKED)
    assert curves[1].y.tolist() == list(THEORY)
    assert page._sentence.text().startswith("Over 30 random draws of 8 tokens row 0 gives 84.8 %")
    page.present(snapshot)
    assert len(asked) == 1  # nothing new to ask
    page.again.click()
    assert asked[-1] == FutureShareQuestion(seed=8)
    page.seed.setValue(7)
    assert asked[-1] == FutureShareQuestion()


def test_what_a_person_stops_stays_until_it_is_asked_again(qtbot):
    from made_pictures import picture_of, snapshot_of

    page = LooksAheadPage()
    qtbot.addWidget(page)
    asked, off = [], []
    page.asked.connect(asked.append)
    page.called_off.connect(off.append)
    snapshot = snapshot_of(picture_of(4))
    page.present(snapshot)
    page.set_active(True)
    page.take_answer(next(iter(answers(asked[0]))))
    page._stop.click()
    assert off == ["future-share"]
    page.present(snapshot)
    page.set_active(False)
    page.set_active(True)
    assert (len(asked), page.running) == (1, False)
    page.seed.setValue(9)
    assert asked[1:] == [FutureShareQuestion(seed=9)]
    page.set_active(False)  # called off for the page went out of sight, not by a person
    page.set_active(True)
    assert asked[2:] == [FutureShareQuestion(seed=9)]
    page.take_end()
    page.set_up()
    assert len(asked) == 3
    page.present(snapshot)
    assert asked[3:] == [FutureShareQuestion()]


# ---------------------------------------------------------------------------------------------------- the command line


def test_the_command_prints_one_json_object_or_a_table(commanded, capsys):
    assert commanded("future-share", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["study"] == "future-share"
    assert told["question"]["seed"] == 7
    assert [round(percent, 1) for percent in told["unmasked"]] == list(UNMASKED)
    assert told["masked"] == [0.0] * 8
    assert commanded("future-share", "--draws", "3", "--length", "4") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == (
        "4 random tokens, 16 dimensions, 3 draws, seed 7: % of each row's weight on the future"
    )
    assert len(out.splitlines()) == 6
    assert "75.0" in out
    assert err == ""  # progress is for terminals


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("future-share", "--draws", "0"), "draws is 0"),
        (("future-share", "--draws", "many"), "many"),
        (("future-share", "--heads", "2"), "--heads"),
        (("nothing",), "no study 'nothing': choose one of future-share, dropout, rounds, exam"),
    ],
)
def test_wrong_questions_end_with_2_and_one_line(commanded, capsys, arguments, said):
    assert commanded(*arguments) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert len(err.splitlines()) == 1
    assert out == ""


def test_ctrl_c_ends_with_130(commanded, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("attnviz.studies.answers", interrupted)
    assert commanded("future-share") == 130
    assert capsys.readouterr().out == ""
