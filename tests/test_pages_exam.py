"""The Exam page, by mouse and keys."""

import math

import pytest
from answered_pages import shown, snapshot_of
from PySide6.QtCore import Qt

from attnviz.questions.exam import ExamQuestion
from attnviz.spec import Lesson, edited, make_spec
from attnviz.studies import answers
from attnviz.views.pages.exam import ExamPage

CAT = make_spec(Lesson(name="cat-eats-fish"))


@pytest.fixture
def page(qtbot):
    page = ExamPage()
    page.asked_of_it = shown(qtbot, page, held=True)
    page.present(snapshot_of(CAT))
    return page


def checked(page):
    return [name for name, box in page.boxes.items() if box.isChecked()]


def click(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_the_windows_mask_and_none_are_chosen_until_a_person_chooses(qtbot, page):
    assert checked(page) == ["none", "neg-inf"]
    page.present(snapshot_of(edited(CAT, mask="multiply")))
    assert checked(page) == ["none", "multiply"]
    page.present(snapshot_of(edited(CAT, fill=-5.0)))
    assert checked(page) == ["none", "fill:-5"]
    assert page.boxes["fill:-5"].text() == "fill −5"
    page.boxes["three-step"].click()
    page.present(snapshot_of(CAT))
    assert checked(page) == ["none", "three-step", "fill:-5"]
    assert page.asked_of_it.questions == []  # only Run asks


def test_a_lessons_step_chooses_every_mask_until_the_windows_mask_is_another(page):
    page.boxes["multiply"].click()
    page.seed.setValue(9)
    page.set_up()
    assert checked(page) == ["none", "fill-0", "multiply", "three-step", "neg-inf"]
    page.present(snapshot_of(CAT))
    assert page.question() == ExamQuestion()
    assert page.asked_of_it.questions == []
    page.present(snapshot_of(edited(CAT, mask="three-step")))
    assert checked(page) == ["none", "three-step"]


def test_run_asks_and_shows_training_beside_the_exam(qtbot, page):
    click(qtbot, page.run)
    (question,) = page.asked_of_it.questions
    assert question == ExamQuestion(masks=("none", "neg-inf"), seed=123)
    page.asked_of_it.answer(question)
    plot = page.plot.plot
    assert [curve.dashed for curve in plot.curves] == [False, True, False, True]
    assert [curve.label for curve in plot.curves] == [
        "no mask: training", "no mask: exam", "−∞: training", "−∞: exam",
    ]  # fmt: skip
    assert plot.marks[0].at == pytest.approx(math.log(6))
    assert "ln 6 = 1.79" in plot.marks[0].label
    none, neg_inf = page.table.lines()
    assert (none[:2], none[3]) == (("no mask", "0.00"), "copied")
    assert float(none[2]) > 8
    assert neg_inf == ("−∞", "1.79", "1.79", "guesses")
    words = page._verdict.text()
    assert words == "Copied the answer: no mask. Guesses, as it must: −∞."
    assert max(curve.y.max() for curve in plot.curves) < plot.y_range[1]
    maps = {name: shown for name, (_, shown, _) in page.maps.items()}
    assert maps["none"].frame.values.diagonal(1).min() > 0.9
    assert not page.running


def test_before_a_run_there_is_no_slider_and_after_it_the_conclusion_stands_under_the_buttons(qtbot, page):
    assert not page.slider.isVisible()
    assert not page._verdict.isVisible()
    assert not page.table.isVisible()
    click(qtbot, page.run)
    page.asked_of_it.answer(page.asked_of_it.questions[-1])
    assert page.slider.isVisible()
    places = [page.body.indexOf(widget) for widget in (page.table, page._verdict, page.plot, page._steps)]
    assert places == sorted(places)
    assert places[0] == 2  # after the masks and the buttons


def test_multiply_copies_with_a_clean_triangle(qtbot, page):
    page.boxes["neg-inf"].click()
    page.boxes["none"].click()
    page.boxes["multiply"].click()
    click(qtbot, page.run)
    page.asked_of_it.answer(page.asked_of_it.questions[-1])
    assert "Copied it by row sums alone: multiply." in page._verdict.text()
    frame = page.maps["multiply"][1].frame
    assert frame.row_sums.min() < 0.9


def test_the_slider_and_replay_go_through_what_was_streamed(qtbot, page):
    click(qtbot, page.run)
    page.asked_of_it.answer(page.asked_of_it.questions[-1])
    assert page.slider.value() == page.slider.maximum() == 40
    page.slider.setValue(4)
    assert page._step.text() == "step 20 of 200"
    assert len(page.plot.plot.curves[0].x) == 5
    assert [line[3] for line in page.table.lines()] == ["is learning"] * 2
    early = page.maps["none"][1].frame.values
    page.slider.setValue(0)
    assert (page.maps["none"][1].frame.values != early).any()
    page.slider.setValue(page.slider.maximum())
    click(qtbot, page.replay)
    assert page.slider.value() == 0
    qtbot.waitUntil(lambda: page.slider.value() > 2, timeout=5000)
    click(qtbot, page.run)  # a new run ends the replay
    assert not page._timer_id


def test_stop_keeps_what_was_found(qtbot, page):
    click(qtbot, page.run)
    page.asked_of_it.held = False
    stream = answers(page.asked_of_it.questions[-1])
    for _ in range(3):
        page.take_answer(next(stream))
    assert page._progress.value() == 20
    assert [line[3] for line in page.table.lines()] == ["is learning"] * 2  # a verdict waits for the end
    assert not page._verdict.isVisible()
    assert not page.replay.isEnabled()
    click(qtbot, page._stop)
    assert page.asked_of_it.called_off == ["exam"]
    page.take_answer(next(stream))  # one that was under way
    assert len(page.plot.plot.curves[0].x) == 3
    assert page.replay.isEnabled()


def test_another_seed_is_another_question(qtbot, page):
    page.seed.setValue(7)
    click(qtbot, page.run)
    assert page.asked_of_it.questions[-1].seed == 7
    for name in checked(page):
        page.boxes[name].click()
    assert not page.run.isEnabled()
