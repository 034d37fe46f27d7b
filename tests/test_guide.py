import math
from dataclasses import replace

import numpy as np
import pytest

from attnviz.frames import CellClass, Counts, Frame, Outline, Scale, StageShape
from attnviz.guide import Guide, Verdict, answer_words, is_right, number_of
from attnviz.lesson_files import Choice, LessonQuestion, LessonScript, LessonStep, Measure, Sum, Words
from attnviz.measures import Screen, found, screen_of
from attnviz.questions import Answer
from attnviz.questions.exam import ExamQuestion
from attnviz.session import Cell, Picture, Snapshot
from attnviz.spec import Lesson, SpecError, View, edited, make_spec

CAT = make_spec(Lesson(name="cat-eats-fish"))
SAID = Words("yes", "对")


def asking(kind="number", **more):
    more = {"measure": Measure("cell")} | more
    return LessonQuestion(
        kind, Words("?", "？"), right=SAID, wrong=Words("no", "错"), show=Words("it is {value}", "是 {value}"), **more
    )


def script_of(*questions):
    steps = (
        LessonStep(str(n), Words("t", "题"), Words("s", "话"), CAT, View(), question=asked)
        for n, asked in enumerate(questions)
    )
    return LessonScript(Words("l", "课"), tuple(steps))


def test_steps_are_walked_and_jumped_to_and_never_left():
    guide = Guide(script_of(None, asking(), None))
    assert not guide.back()
    assert [guide.next(), guide.next(), guide.next()] == [True, True, False]
    assert (guide.state.index, guide.state.is_last, guide.state.total) == (2, True, 3)
    assert guide.back()
    assert guide.jump("0")
    assert guide.step.id == "0"
    with pytest.raises(SpecError):
        guide.jump("nine")
    assert Guide(script_of(None, None), 1).state.index == 1
    assert guide.state.index == 0


def test_a_miss_offers_the_answer_and_a_right_answer_ends_the_question():
    guide = Guide(script_of(asking(percent=True)))
    assert (guide.state.verdict, guide.state.feedback, guide.state.can_show) == (Verdict.NONE, "", False)
    guide.show_me(0.8808)
    assert guide.state.verdict is Verdict.NONE, "before a miss nothing is given away"
    assert guide.answer(67, 0.8808) is Verdict.WRONG
    assert (guide.state.feedback, guide.state.can_show, guide.state.misses) == ("no", True, 1)
    guide.set_language("zh")
    assert (guide.state.feedback, guide.state.given) == ("错", 67)
    assert guide.answer(88, 0.8808) is Verdict.RIGHT
    assert (guide.state.feedback, guide.state.can_show) == ("对", False)
    assert guide.answer(67, 0.8808) is Verdict.RIGHT, "what is answered stays"


def test_shown_answers_end_the_question_and_point_at_cells():
    guide = Guide(script_of(asking("cell", measure=Measure("future_of_row"))))
    assert guide.state.awaits_cell
    guide.answer((1, 0), frozenset({(1, 2)}))
    guide.show_me(None)
    assert guide.state.verdict is Verdict.UNKNOWN
    assert guide.state.can_show
    guide.show_me(frozenset({(1, 2)}))
    assert (guide.state.feedback, guide.state.pointed) == ("it is row 1, column 2", (1, 2))
    assert not guide.state.awaits_cell
    assert guide.answer((1, 2), frozenset({(1, 2)})) is Verdict.SHOWN
    guide.jump(0)
    assert (guide.state.verdict, guide.state.misses, guide.state.pointed) == (Verdict.NONE, 0, None)


def test_a_screen_that_shows_something_else_is_no_miss():
    guide = Guide(script_of(asking()))
    assert guide.answer(1, None) is Verdict.UNKNOWN
    assert (guide.state.misses, guide.state.feedback) == (0, "")


def test_an_answer_that_comes_too_early_waits_for_what_is_still_running():
    guide = Guide(script_of(asking()))
    assert guide.answer(1, None, running=True) is Verdict.RUNNING
    assert (guide.state.misses, guide.state.feedback, guide.state.given) == (0, "", 1)
    assert guide.answer(2, 1.0) is Verdict.WRONG
    guide.show_me(None, running=True)
    assert (guide.state.verdict, guide.state.can_show) == (Verdict.RUNNING, True)
    assert guide.answer(1, 1.0, running=True) is Verdict.RIGHT, "what is known already is judged"


def test_a_step_without_a_question_takes_no_answer():
    guide = Guide(script_of(None))
    assert guide.answer(1, 1.0) is Verdict.NONE
    guide.show_me(1.0)
    assert guide.state.feedback == ""


@pytest.mark.parametrize(
    ("given", "value", "more", "right"),
    [
        (88, 0.8808, {"percent": True}, True),
        (0.88, 0.8808, {"percent": True}, True),
        (89, 0.8808, {"percent": True}, False),
        (88, 0.8808, {}, False),
        (100, 1.0, {"percent": True}, True),
        (0.5, 0.5, {"percent": True}, True),
        (37, 0.37, {}, False),
        (91, 91.0, {"percent": False}, True),
        (0, 0.2447, {"percent": True}, False),
        (0.31, 0.3113, {}, True),
        (0.3, 0.3113, {}, False),
        (15, 15.0, {"tolerance": 0.0}, True),
        (14, 15.0, {"tolerance": 0.0}, False),
        (1, math.nan, {}, False),
        ((0, 1), 1.0, {}, False),
        (-0.45, -0.4519, {}, True),
    ],
)
def test_numbers_are_judged(given, value, more, right):
    assert is_right(asking(**more), given, value) is right


@pytest.mark.parametrize(
    ("text", "value", "kind", "right"),
    [
        # beside the field's own % a whole number counts percents
        ("1", 1.0, "percent", False), ("1 %", 1.0, "percent", False), ("1.00", 1.0, "percent", True),
        ("100", 1.0, "percent", True), ("100 %", 1.0, "percent", True), ("1", 0.01, "percent", True),
        ("88", 0.8808, "percent", True), ("88 %", 0.8808, "percent", True), (".88", 0.8808, "percent", True),
        ("0,8808", 0.8808, "percent", True), ("8/9", 0.8889, "percent", True), ("0.5", 0.005, "percent", True),
        ("0.5 %", 0.5, "percent", False), ("50 %", 0.5, "percent", True), ("84.8 %", 0.848, "percent", True),
        # a share without it may be told in percents too
        ("37", 0.37, "share", True), ("37 %", 0.37, "share", True), (".37", 0.37, "share", True),
        ("0.37 %", 0.37, "share", False), ("1", 1.0, "share", True), ("100 %", 1.0, "share", True),
        ("36", 0.37, "share", False),
        # no share is
        ("31 %", 0.31, "number", True), ("31", 0.31, "number", False), ("100 %", 100.0, "number", False),
    ],
)  # fmt: skip
def test_shares_are_taken_as_the_screen_prints_them(text, value, kind, right):
    asked = asking(percent=kind == "percent", share=kind != "number")
    assert is_right(asked, number_of(text), value) is right


def test_what_the_printed_numbers_add_up_to_is_right_too():
    shares = np.array([0.164, 0.1737, 0.154, 0.1743, 0.1465])
    exact = Sum(float(shares.sum()), float(shares.round(2).sum()))
    asked = asking(percent=True, share=True)
    assert [is_right(asked, number_of(text), exact) for text in ("81", "80", "79", "80.5", "82")] == [
        True, shares.round(2).sum() == pytest.approx(0.80), False, False, False,
    ]  # fmt: skip


def test_a_click_in_another_row_has_a_hint_of_its_own():
    elsewhere = Words("another row", "别的行")
    measure = Measure("largest_of_row", row=1)
    guide = Guide(script_of(asking("cell", measure=measure, other_row=elsewhere), asking("cell", measure=measure)))
    right = frozenset({(1, 2)})
    for given, said in ((Cell(0, 2), "another row"), ((2, 2), "another row"), (Cell(1, 0), "no"), ((1, 1), "no")):
        guide.answer(given, right)
        assert guide.state.feedback == said
    guide.jump(1)
    guide.answer(Cell(0, 2), right)
    assert guide.state.feedback == "no"


def test_choices_and_cells_are_judged():
    choice = asking("choice", choices=(Choice(SAID, 0.0), Choice(SAID, 1.0)))
    assert [is_right(choice, n, 0.004) for n in (0, 1, 2, -1)] == [True, False, False, False]
    cell = asking("cell")
    assert is_right(cell, (1, 2), frozenset({(1, 2), (1, 1)}))
    assert is_right(cell, Cell(1, 2), frozenset({(1, 2)}))
    assert not is_right(asking(), Cell(1, 2), 1.0)
    assert not is_right(cell, (2, 1), frozenset({(1, 2)}))
    assert not is_right(cell, (2, 1), frozenset())


@pytest.mark.parametrize(
    ("text", "number"),
    [("88", 88), (" 88 % ", 88), ("0,88", 0.88), (".88", 0.88), ("−0.07", -0.07), ("8/9", 8 / 9), ("91.", 91),
     ("+2", 2), ("０.5", 0.5), ("", None), ("abc", None), ("1/0", None), ("1e9", 1e9), ("nan", None),
     ("6e-8", 6e-8), ("6e−8", 6e-8), ("6·10⁻⁸", 6e-8), ("4.5 × 10^-8", 4.5e-8), ("6*10^−8", 6e-8), ("10⁻⁸", 1e-8),
     ("−10⁶", -1e6), ("6E-8", 6e-8), ("1e999", None), ("e-8", None), ("6⁸", None),
     ("1.2.3", None), ("%", None), ("9" * 500, None)],
)  # fmt: skip
def test_typed_numbers_are_read(text, number):
    read = number_of(text)
    assert read == (number if number is None else pytest.approx(number))
    assert read is None or read.percent == ("%" in text)


def test_answers_in_words():
    assert answer_words(asking(percent=True), 0.8808) == "88 %"
    assert answer_words(asking(), -0.4519) == "−0.45"
    assert answer_words(asking(), 91.0) == "91"
    assert answer_words(asking(tolerance=1e-5), 0.0) == "0"
    assert answer_words(asking(tolerance=1e-5), 5.96e-8) == "6e−8", "as the page has it"
    assert answer_words(asking(percent=True, measure=Measure("study:told", path=("x",))), 0.848) == "84.8 %"
    assert answer_words(asking(), frozenset()) == "–"


# ------------------------------------------------------------------------------------------------------------ measures

VALUES = np.array([[1.0, 0, 0], [0.25, 0.75, 0], [0.0, 0.0, 0.0]])
KINDS = np.array([[1, 32, 32], [1, 1, 32], [8, 8, 2]], np.uint8)
assert {*KINDS.flat} == {CellClass.ORDINARY, CellClass.ZERO, CellClass.DROPPED, CellClass.MASKED}


def frame(values=VALUES, **more):
    fields = {"level": 1, "exact": True, "stage": "weights"} | more
    return Frame(
        1, "head:0", fields["stage"], 0, (0, 3), (0, 3), fields["level"], values, KINDS, np.zeros((3, 3), np.uint32),
        Scale(0, 1), Counts(cells=9, masked=3, dropped=2), values.sum(1), fields["exact"],
    )  # fmt: skip


OUTLINE = Outline(
    1, "weights", tuple("abc"), 3, 3, (), "", (StageShape("weights", (1, 3, 3)), StageShape("context", (1, 3, 2))), (),
    ("head:0",), True, True, "cpu",
)  # fmt: skip
PICTURE = Picture(CAT, View(), 1, OUTLINE, {"head:0": frame()})
UNMASKED = edited(CAT, mask="none")
BEFORE = Picture(UNMASKED, View(), 1, OUTLINE, {"head:0": frame(np.full((3, 3), 1 / 3))})


def measured(name, screen=None, kind="number", **where):
    path = where.pop("path", ())
    step = script_of(asking(kind, measure=Measure(name, path=path, **where))).steps[0]
    return found(replace(step, before=UNMASKED), screen or Screen(PICTURE, BEFORE))


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [
        ("cell", {"row": 1, "col": 1}, 0.75),
        ("row_sum", {"row": 1}, 1.0),
        ("row_sum", {"row": 2}, 0.0),
        ("visible_keys", {"row": 1}, 2),
        ("visible_keys", {"row": 2}, 3),
        ("weight_on_future", {"row": 1}, 0.0),
        ("change", {"row": 1, "col": 0}, 0.25 - 1 / 3),
        ("largest_change", {"row": 0}, 2 / 3),
        ("count", {"of": "masked"}, 3),
        ("empty_rows", {}, 1),
        ("nan_rows", {}, 0),
        ("columns", {"stage": "context"}, 2),
        ("columns", {}, 3),
        ("projections", {}, 0),
        ("parameters", {}, 0),
        ("largest_of_row", {"row": 1}, {(1, 1)}),
        ("smallest_of_row", {"row": 1}, {(1, 0)}),
        ("hidden_of_row", {"row": 0}, {(0, 1), (0, 2)}),
        ("future_of_row", {"row": 0}, set()),
        ("dropped", {}, {(2, 0), (2, 1)}),
        ("grew_most", {"row": 1}, {(1, 1)}),
        ("empty", {}, {(2, 0), (2, 1), (2, 2)}),
    ],
)
def test_measures_read_the_screen(name, where, value):
    assert measured(name, **where) == (pytest.approx(value) if isinstance(value, float) else value)


def test_a_sum_knows_what_its_printed_numbers_add_up_to():
    thirds = Screen(replace(PICTURE, frames={"head:0": frame(np.full((3, 3), 1 / 3))}))
    for name, exact, printed in (("row_sum", 1, 0.99), ("weight_on_future", 2 / 3, 0.66)):
        made = measured(name, thirds, row=0)
        assert (float(made), made.printed) == (pytest.approx(exact), pytest.approx(printed))


def test_a_windows_snapshot_is_a_screen():
    answers = {"rounds": Answer(1, 1)}
    snapshot = Snapshot(spec=CAT, view=View(), picture=PICTURE, last=BEFORE)
    assert screen_of(snapshot, answers) == Screen(PICTURE, BEFORE, None, answers, {})
    asked = {"exam": ExamQuestion()}
    assert screen_of(snapshot, answers, asked) == Screen(PICTURE, BEFORE, None, answers, asked)


def test_equal_weights_are_equally_largest():
    assert measured("largest_of_row", Screen(replace(BEFORE, spec=CAT)), row=2) == {(2, 0), (2, 1), (2, 2)}


def test_a_row_that_sees_nothing_has_no_largest_cell():
    kinds = np.full((3, 3), 32, np.uint8)
    blind = Screen(replace(PICTURE, frames={"head:0": replace(frame(), classes=kinds)}))
    for name in "largest_of_row", "smallest_of_row", "future_of_row":
        assert measured(name, blind) == frozenset()
    assert len(measured("hidden_of_row", blind)) == 3


def test_what_is_not_on_the_screen_is_not_measured():
    assert measured("change", Screen(PICTURE)) is None
    assert measured("cell", row=9) is None
    assert measured("cell", col=9) is None
    assert measured("context") is None, "no story has come"
    assert measured("cell", stage="scores") is None
    for other in frame(level=2), frame(exact=False), frame(stage="scores"):
        assert measured("cell", Screen(replace(PICTURE, frames={"head:0": other}))) is None
    assert measured("cell", Screen(replace(PICTURE, outline=None))) is None


@pytest.mark.parametrize("name", ["change", "largest_change", "grew_most"])
def test_changes_count_against_the_steps_own_state_before_alone(name):
    assert measured(name) is not None
    other = replace(BEFORE, spec=edited(CAT, mask="three-step"))
    assert measured(name, Screen(PICTURE, other)) is None
    step = script_of(asking(measure=Measure(name))).steps[0]
    assert found(step, Screen(PICTURE, BEFORE)) is None, "the step has no state before"


@pytest.mark.parametrize("name", ["largest_change", "grew_most"])
def test_a_row_of_another_length_is_no_state_before(name):
    longer = np.full((6, 6), 1 / 6)
    assert measured(name, Screen(PICTURE, replace(BEFORE, frames={"head:0": frame(longer)}))) is None


def test_the_exams_line_is_known_from_its_question():
    def line(asked):
        return measured("study:exam", Screen(PICTURE, asked=asked), path=("floor",))

    assert line({"exam": ExamQuestion()}) == pytest.approx(math.log(6))
    assert line({"exam": ExamQuestion(vocabulary=10)}) == pytest.approx(math.log(10))
    assert line({}) is None


def test_studies_count_once_they_have_finished():
    class Told(Answer):
        shares = np.array([84.8, 75.3])
        worst = 0.5
        name = "words"

    def asked(path, done=2):
        return measured("study:told", Screen(PICTURE, answers={"told": Told(done, 2)}), path=path)

    assert asked(("worst",)) == 0.5
    assert asked(("shares", "1")) == 75.3
    assert asked(("worst",), done=1) is None
    for path in ("shares", "7"), ("name",), ("nothing",), ("shares",), ("worst", "0"):
        assert asked(path) is None
    assert measured("study:other", path=("worst",)) is None


def test_a_measure_without_a_stage_means_the_steps_own():
    step = script_of(asking(measure=Measure("cell", row=1, col=1))).steps[0]
    assert found(step, Screen(PICTURE)) == 0.75
    elsewhere = replace(PICTURE, view=View(stage="scaled_scores"), frames={"head:0": frame(stage="scaled_scores")})
    assert found(step, Screen(elsewhere)) is None
    columns = script_of(asking(measure=Measure("columns"))).steps[0]
    assert found(columns, Screen(elsewhere)) == 3
    for name in "visible_keys", "row_sum", "count", "largest_of_row", "empty_rows":
        asked = script_of(asking(measure=Measure(name, row=1))).steps[0]
        assert found(asked, Screen(PICTURE)) is not None
        assert found(asked, Screen(elsewhere)) is None, name


def test_a_part_of_a_map_is_no_whole_one():
    step = script_of(asking("cell", measure=Measure("largest_of_row", row=1))).steps[0]
    part = replace(frame(np.array([[1.0, 0], [0.75, 0.25], [0, 0]])), cols=(0, 2), classes=KINDS[:, :2])
    assert found(step, Screen(replace(PICTURE, frames={"head:0": part}))) is None


def test_a_shown_cell_is_said_in_the_language_that_is_chosen():
    guide = Guide(script_of(asking("cell", measure=Measure("future_of_row"))))
    guide.answer((1, 0), frozenset({(1, 2)}))
    guide.show_me(frozenset({(1, 2)}))
    assert guide.state.feedback == "it is row 1, column 2"
    guide.set_language("zh")
    assert guide.state.feedback == "是 行 1，列 2"
