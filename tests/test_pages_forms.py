"""The Forms page, by mouse and keys."""

import pytest
from answered_pages import shown, snapshot_of
from PySide6.QtCore import Qt

from attnviz.figure.tables import column_widths
from attnviz.questions.forms import FORM_NAMES, FormReading, FormsAnswer, FormsQuestion
from attnviz.spec import Lesson, make_spec
from attnviz.studies import answers
from attnviz.study_lane import StudyLane
from attnviz.views.pages.forms_page import FormsPage

JOURNEY = make_spec(Lesson(name="journey"))


@pytest.fixture
def page(qtbot):
    page = FormsPage()
    page.asked_of_it = shown(qtbot, page, held=True)
    page.present(snapshot_of(JOURNEY))
    return page


def click(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def choose(page, tokens=33, d_model=48, heads=4, dtype="float32"):
    page.d_model.setValue(d_model)
    page.heads.setValue(heads)
    page.tokens.setValue(tokens)
    page.dtype.setCurrentText(dtype)


def told(question, milliseconds, done=19, rounds=7, spread=1.0):
    """An answer with made-up times, in the forms' order."""
    forms = tuple(
        FormReading(name, "bit for bit", 0.0, 0.0, 0.0, ms / 1e3, spread / 1e3, 1000 * ms)
        for name, ms in zip(FORM_NAMES, milliseconds, strict=True)
    )
    return FormsAnswer(done, 19, question, forms, 1, rounds)


def test_nothing_is_asked_before_run_and_nothing_stands_there(page):
    assert page.asked_of_it.questions == []
    assert not page.same.isVisible()
    assert not page.costs.isVisible()
    assert page.question() == FormsQuestion()


def test_run_compares_times_and_says_who_wins(qtbot, page):
    choose(page, dtype="float64")
    click(qtbot, page.run)
    (question,) = page.asked_of_it.questions
    assert question == FormsQuestion(tokens=33, d_model=48, num_heads=4, dtype="float64")
    page.asked_of_it.answer(question)
    assert not page.running
    assert [line[0] for line in page.same.lines()] == [*FORM_NAMES]
    assert page.same.lines()[0][1:] == ("—", "—", "the measure")
    assert {line[3] for line in page.same.lines()[1:]} <= {"bit for bit", "rounding"}
    assert page.verdict.text().startswith("One function:")
    costs = page.costs.lines()
    assert all(line[1].endswith(("s", "µs")) and line[2].startswith("± ") and line[3].endswith("B") for line in costs)
    assert page.bars.isVisible()
    assert [count.words for count in page.bars.counts] == [*FORM_NAMES]
    assert page.winner.text().endswith("On another machine, or in a book, it may be another form.")
    assert any(name in page.winner.text() for name in FORM_NAMES)
    assert page._sizes.text().startswith("33 tokens of 48, 4 heads · float64 on cpu, ")
    assert page._sizes.text().endswith("fresh memory")


def test_the_winner_is_named_with_how_much_the_others_take(page):
    page.ask()
    page.take_answer(told(FormsQuestion(), (60, 120, 110, 130, 40, 100)))
    assert page.winner.text() == (
        "SDPA wins here: 40.0 ms. The next is stacked, 1.5 times as long; the last einsum, 3.2 times. "
        "On another machine, or in a book, it may be another form."
    )
    assert [count.formula for count in page.bars.counts] == ["1.5 ×", "3.0 ×", "2.8 ×", "3.2 ×", "1.0 ×", "2.5 ×"]
    page.take_answer(told(FormsQuestion(), (41, 120, 110, 130, 40, 100)))
    assert "within the spread others may be as quick: stacked." in page.winner.text()


def test_fresh_beside_kept_says_what_new_pages_of_memory_cost(qtbot, page):
    page.ask()
    page.take_answer(told(FormsQuestion(), (60, 120, 110, 130, 40, 100)))
    page.take_end()
    assert not page._pages.isVisible()
    assert [count.value for count in page.bars.counts] == [count.most for count in page.bars.counts]
    click(qtbot, page.memory.buttons["kept"])
    click(qtbot, page.run)
    kept = page.asked_of_it.questions[-1]
    assert kept == FormsQuestion(memory="kept")
    page.take_answer(told(kept, (60, 55, 56, 90, 40, 100)))
    assert "For weight-split it is 120 ms and 55.0 ms: 54 % of its time" in page._pages.text()
    assert [(count.value, count.most) for count in page.bars.counts][1] == (55_000_000, 120_000_000)
    page.take_answer(told(kept, (60, 119, 56, 129, 40, 100), spread=200.0))
    assert "alike, within the spread" in page._pages.text()
    page.take_end()
    page.tokens.setValue(512)  # other sizes are nothing to compare with
    click(qtbot, page.run)
    page.take_answer(told(page.asked_of_it.questions[-1], (6, 5, 5, 9, 4, 10)))
    assert not page._pages.isVisible()
    assert page.bars.counts[0].most == 6_000_000


def test_a_form_that_differs_is_named(page):
    page.ask()
    good = FormReading("stacked", "bit for bit", 0.0, 0.0, 0.0)
    bad = FormReading("einsum", "differs", 0.25, 2e6, 9e5)
    page.take_answer(FormsAnswer(6, 19, FormsQuestion(), (good, bad), 1))
    assert page.verdict.text() == "Not the same function: einsum."
    assert page.same.lines()[1] == ("einsum", "0.25", "2e6", "differs")


def test_run_becomes_stop_and_what_was_found_stays(qtbot, page):
    choose(page)
    click(qtbot, page.run)
    assert page.run.text() == "Stop"
    stream = answers(page.asked_of_it.questions[-1])
    for _ in range(len(FORM_NAMES)):
        page.take_answer(next(stream))
    late = next(stream)
    stream.close()
    assert page._sizes.text().endswith("round 0 of 7")
    click(qtbot, page.run)
    assert page.asked_of_it.called_off == ["forms"]
    assert page.run.text() == "Run"
    page.take_answer(late)  # one that was under way
    assert len(page.same.lines()) == len(FORM_NAMES)
    assert not page.costs.isVisible()


def test_leaving_the_page_stops_it(qtbot, page):
    click(qtbot, page.run)
    page.set_active(False)
    assert page.asked_of_it.called_off == ["forms"]
    page.set_active(True)
    assert page.run.text() == "Run"
    assert len(page.asked_of_it.questions) == 1


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"heads": 7}, "d_model is 48, which 7 heads cannot share evenly"),
        ({"tokens": 4096, "d_model": 768, "heads": 12}, "12 heads × 4,096 tokens take 2.5 GB in float32"),
    ],
)
def test_sizes_that_cannot_be_run_say_why_and_cannot_be_run(qtbot, page, sizes, words):
    choose(page, **sizes)
    assert page.problem.isVisible()
    assert words in page.problem.text()
    assert not page.run.isEnabled()
    click(qtbot, page.run)
    assert page.asked_of_it.questions == []
    choose(page)
    assert not page.problem.isVisible()
    assert page.run.isEnabled()


def test_heads_step_from_one_divisor_of_the_width_to_the_next(qtbot, page):
    choose(page, d_model=48, heads=4)
    page.heads.stepUp()
    assert page.heads.value() == 6
    assert page.run.isEnabled()


def test_the_studies_lane_runs_it_and_the_window_stays_free(qtbot, page):
    """The real lane on its own thread: the GUI's event loop turns while forms are compared and timed."""
    lane = StudyLane(lambda: False)
    page.asked.connect(lane.ask)
    lane.answered.connect(lambda _name, answer: page.take_answer(answer))
    lane.ended.connect(lambda _name: page.take_end())
    try:
        choose(page)
        click(qtbot, page.run)
        qtbot.waitUntil(lambda: not page.running, timeout=60_000)
        assert page.costs.isVisible()
        assert "1 thread" in page._sizes.text()  # the window's pictures have the others
    finally:
        assert lane.close()


@pytest.mark.parametrize("width", [340, 560])
def test_nothing_is_cut_at_any_width(qtbot, page, width):
    page.resize(width, 1400)
    page.ask()
    page.take_answer(told(FormsQuestion(), (60, 120, 110, 130, 40, 100)))
    qtbot.waitUntil(lambda: page.width() == width)
    for part in (page.memory, page.dtype, page.same, page.costs, page.bars):
        assert page.rect().contains(part.mapTo(page, part.rect().bottomRight()))
    for table in (page.same, page.costs):
        assert sum(column_widths(table.table, table.width())[1]) <= table.width() + 1
