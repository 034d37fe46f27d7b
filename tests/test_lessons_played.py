"""Both lessons played whole in the real window, as a person does: PageDown, typing, clicks, and PageUp now and then."""

import pytest
from lesson_answers import ANSWERS, TORCH_DRAWS, wrong_for
from PySide6.QtCore import QPoint, Qt
from taught import settle

from attnviz import lesson_files, measures
from attnviz.guide import Verdict, answer_words
from attnviz.questions import Answer
from attnviz.questions.exam import EXAM_MASKS, ExamQuestion
from attnviz.session import Cell
from attnviz.spec import Lesson, View, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")
LEFT = Qt.MouseButton.LeftButton
BACK_EVERY = 6
"""After so many steps a person goes back one, and answers it once more."""


def press(qtbot, program, key):
    qtbot.keyClick(program.window.heatmaps, key)
    settle(qtbot, program)


def give(qtbot, program, given):
    """Answer as a hand does: type a number, click a choice, or click a cell on the map."""
    card, heads = program.window.lesson_card, program.window.heatmaps
    kind = program.teaching.state.step.question.kind
    if kind == "number":
        card.field.setFocus()
        card.field.clear()
        qtbot.keyClicks(card.field, given)
        qtbot.keyClick(card.field, Qt.Key.Key_Return)
    elif kind == "choice":
        qtbot.mouseClick(card.choices[given], LEFT)
    else:
        frame = program.session.snapshot().picture.heads[0]
        rows, cols = frame.values.shape
        box = heads._panels[0].place.map_rect
        x, y = box.x + (given[1] + 0.5) * box.width / cols, box.y + (given[0] + 0.5) * box.height / rows
        qtbot.mouseClick(heads, LEFT, pos=QPoint(round(x), round(y)))
    return program.teaching.state.verdict


def typed(asked, given):
    """What is typed for the number ``given``; choices and cells are themselves."""
    if asked.kind != "number":
        return given
    return f"{given:.4f}".rstrip("0").rstrip(".") + (" %" if asked.percent else "")


def measured(qtbot, program):
    """What stands on the screen, as the window itself measures it once it is there."""
    qtbot.waitUntil(lambda: program.teaching._found() is not None, timeout=30_000)
    return program.teaching._found()


def as_measured(asked, found):
    """The hand's answer for what was measured."""
    if asked.kind == "cell":
        return min(found)
    if asked.kind == "choice":
        return min(range(len(asked.choices)), key=lambda place: abs(asked.choices[place].value - found))
    return answer_words(asked, found).replace("−", "-")


def answer_wrong_then_right(qtbot, program):
    step = program.teaching.state.step
    asked, card = step.question, program.window.lesson_card
    found = measured(qtbot, program)
    right = as_measured(asked, found)
    wrong = typed(asked, wrong_for(asked, ANSWERS[step.id]))
    if asked.kind == "cell" and step.id in TORCH_DRAWS:
        wrong = next(cell for cell in ((0, 0), (5, 0)) if cell not in found)
    assert give(qtbot, program, wrong) is Verdict.WRONG, step.id
    assert card.show_me.isVisibleTo(card)
    assert give(qtbot, program, right) is Verdict.RIGHT, (step.id, right, found)
    assert asked.right.en in card.text().replace("\u200b", "")


def answer_as_published(qtbot, program):
    step = program.teaching.state.step
    found = measured(qtbot, program)
    right = as_measured(step.question, found) if step.id in TORCH_DRAWS else ANSWERS[step.id]
    given = right if isinstance(right, str) else typed(step.question, right)
    assert give(qtbot, program, given) is Verdict.RIGHT, (step.id, given, found)


@pytest.mark.parametrize("lesson", lesson_files.names())
def test_a_whole_lesson_is_played_and_every_answer_stands_on_the_screen(qtbot, program, lesson):
    teaching = program.teaching
    teaching.start(lesson)
    settle(qtbot, program)
    played = []
    while True:
        step = teaching.state.step
        now = program.session.snapshot()
        assert (now.spec, now.view.stage, program.window.side.current) == (step.spec, step.view.stage, step.page)
        assert (now.failure, now.problem) == (None, None)
        assert (now.before and now.before.spec) == step.before, "outlines show what the step speaks of, or nothing"
        if step.question is not None:
            answer_wrong_then_right(qtbot, program)
        played.append(step.id)
        if teaching.state.is_last:
            break
        if len(played) % BACK_EVERY == 0:
            press(qtbot, program, Qt.Key.Key_PageUp)
            assert teaching.state.step.id == played[-2]
            answer_as_published(qtbot, program)
            press(qtbot, program, Qt.Key.Key_PageDown)
            answer_as_published(qtbot, program)
        press(qtbot, program, Qt.Key.Key_PageDown)
    assert played == [step.id for step in lesson_files.built_in(lesson).steps]


# ------------------------------------------------------------------------------------------------ studies and questions


def start(qtbot, program, step, lesson="cat-eats-fish"):
    program.teaching.start(lesson, step)
    settle(qtbot, program)


def finished(qtbot, program, page):
    shown = program.window.side.pages[page]
    qtbot.waitUntil(lambda: shown.latest is not None and shown.latest.finished and not shown.running, timeout=30_000)


@pytest.mark.parametrize(
    ("lesson", "step", "answer"), [("cat-eats-fish", "rounds", "91"), ("cat-eats-fish", "ahead", "84.8"),
                                   ("journey", "3.6.2.3", "0")],
)  # fmt: skip
def test_a_step_put_up_again_still_has_its_studys_answer(qtbot, program, lesson, step, answer):
    start(qtbot, program, step, lesson)
    for _ in range(3):
        finished(qtbot, program, program.teaching.state.step.page)
        assert give(qtbot, program, answer) is Verdict.RIGHT
        program.teaching.go_to(program.teaching.state.index)
        settle(qtbot, program)


def test_a_page_that_was_looked_at_before_the_lesson_answers_in_it(qtbot, program):
    program.window.show_page("ahead")
    finished(qtbot, program, "ahead")
    program.window.show_page("row")
    start(qtbot, program, "mask-and-dropout")
    press(qtbot, program, Qt.Key.Key_PageDown)
    assert give(qtbot, program, "84.8") is Verdict.RIGHT


def test_a_studys_answer_on_another_spec_does_not_count(qtbot, program):
    start(qtbot, program, "3.6.2.3", "journey")
    finished(qtbot, program, "heads")
    held = program.teaching._studies["heads"]
    assert held.is_about(program.teaching.state.step.spec)
    program.controller.edit_spec(edited(program.session.snapshot().spec, seed=5))
    settle(qtbot, program)
    finished(qtbot, program, "heads")
    program.window.show_page("row")  # so that the page cannot ask again
    program.controller.edit_spec(program.teaching.state.step.spec)
    settle(qtbot, program)
    assert give(qtbot, program, "0") is Verdict.UNKNOWN
    qtbot.mouseClick(program.window.lesson_card.head.again, LEFT)
    settle(qtbot, program)
    finished(qtbot, program, "heads")
    assert give(qtbot, program, "0") is Verdict.RIGHT


def held_study(program):
    """A study that answers in part, and its whole answer once it is let go."""
    import threading

    from attnviz.studies import answers

    gate = threading.Event()

    def study(question, called_off):
        for answer in answers(question, called_off):
            if answer.finished:
                while not (gate.wait(0.01) or called_off()):
                    pass
            yield answer

    program.studies._make_study = lambda: study
    return gate


def test_an_answer_given_while_the_study_runs_is_judged_when_it_ends(qtbot, program):
    gate = held_study(program)
    start(qtbot, program, "ahead")
    assert give(qtbot, program, "84.8") is Verdict.RUNNING
    assert "still running" in program.window.lesson_card.text()
    gate.set()
    qtbot.waitUntil(lambda: program.teaching.state.verdict is Verdict.RIGHT, timeout=20_000)


def test_a_study_that_was_stopped_is_said_and_begun_again(qtbot, program):
    gate = held_study(program)
    start(qtbot, program, "ahead")
    assert give(qtbot, program, "84.8") is Verdict.RUNNING
    page, card = program.window.side.pages["ahead"], program.window.lesson_card
    qtbot.mouseClick(page._stop, LEFT)
    assert program.teaching.state.verdict is Verdict.UNKNOWN
    program.controller.select(Cell(3, 3))
    settle(qtbot, program)
    assert not page.running, "what a person stops stays stopped"
    gate.set()
    qtbot.mouseClick(card.head.again, LEFT)
    settle(qtbot, program)
    finished(qtbot, program, "ahead")
    assert give(qtbot, program, "84.8") is Verdict.RIGHT


def test_the_exam_sits_every_mask_by_itself_and_its_line_is_known_at_once(qtbot, program):
    program.window.show_page("exam")
    program.window.side.pages["exam"].boxes["none"].click()
    start(qtbot, program, "exam")
    page = program.window.side.pages["exam"]
    assert [name for name, box in page.boxes.items() if box.isChecked()] == list(EXAM_MASKS)
    assert page.running
    assert give(qtbot, program, "1.79") is Verdict.RIGHT
    finished(qtbot, program, "exam")
    assert isinstance(page.latest, Answer)
    assert page.latest.question == ExamQuestion()
    program.teaching.go_to(program.teaching.state.index)
    settle(qtbot, program)
    assert not page.running, "what has been answered is not asked again"


# ------------------------------------------------------------------------------------------------ a step's own state


def test_the_right_choice_is_not_judged_against_another_state_before(qtbot, program):
    start(qtbot, program, "two-orders")
    spec = program.session.snapshot().spec
    for other in edited(spec, mask="none"), spec:
        program.controller.edit_spec(other)
        settle(qtbot, program)
    assert program.session.snapshot().before.spec.mask == "none"
    assert give(qtbot, program, 0) is Verdict.UNKNOWN
    qtbot.mouseClick(program.window.lesson_card.head.again, LEFT)
    settle(qtbot, program)
    assert program.session.snapshot().before.spec.mask == "neg-inf"
    assert give(qtbot, program, 0) is Verdict.RIGHT


def test_a_hint_is_true_wherever_the_click_fell(qtbot, program):
    for lesson, step, in_row, other in (
        ("cat-eats-fish", "unmask", (1, 0), (0, 2)),
        ("journey", "3.3.1", (1, 0), (0, 0)),
    ):
        start(qtbot, program, step, lesson)
        asked = program.teaching.state.step.question
        for cell, hint in ((other, asked.other_row), (in_row, asked.wrong), (other, asked.other_row)):
            assert give(qtbot, program, cell) is Verdict.WRONG
            assert hint.en in program.window.lesson_card.text().replace("\u200b", "")


def test_a_class_flips_the_mask_and_answers_when_it_is_off_again(qtbot, program):
    start(qtbot, program, "unmask")
    press(qtbot, program, Qt.Key.Key_M)
    assert program.session.snapshot().spec.mask == "neg-inf"
    press(qtbot, program, Qt.Key.Key_M)
    assert give(qtbot, program, (1, 2)) is Verdict.RIGHT


def test_a_pin_of_another_source_is_let_go_when_a_step_comes(qtbot, program):
    program.controller.open(make_spec(Lesson(name="journey")), View())
    settle(qtbot, program)
    program.controller.toggle_pin()
    start(qtbot, program, "fish")
    assert program.session.snapshot().pinned is None
    assert give(qtbot, program, 0) is Verdict.RIGHT
    program.teaching.go_to(program.teaching.state.index)
    settle(qtbot, program)
    program.controller.toggle_pin()  # A is now the step's own picture
    assert give(qtbot, program, 0) is Verdict.UNKNOWN


def test_dropout_that_draws_by_itself_is_frozen_when_the_next_step_comes(qtbot, program):
    start(qtbot, program, "dropout")
    action = program.window.actions_by_name["redraws"]
    action.trigger()
    first = program.session.snapshot().spec.dropout_seed
    qtbot.waitUntil(lambda: program.session.snapshot().spec.dropout_seed > first, timeout=10_000)
    press(qtbot, program, Qt.Key.Key_PageDown)
    assert (program.session.snapshot().redraws, action.isChecked()) == (False, False)
    assert not program.controller._redraw.isActive()
    assert give(qtbot, program, ANSWERS["mask-and-dropout"]) is Verdict.RIGHT


def test_a_step_is_one_step_of_undo(qtbot, program):
    start(qtbot, program, "order")
    earlier = program.session.snapshot().spec
    press(qtbot, program, Qt.Key.Key_PageDown)
    press(qtbot, program, Qt.Key.Key_PageDown)
    assert program.teaching.state.step.id == "stand-in"
    assert program.session.snapshot().before.spec.mask == "neg-inf"
    for _ in range(2):
        program.window.actions_by_name["undo"].trigger()
        settle(qtbot, program)
    assert program.session.snapshot().spec == earlier


def test_a_person_who_goes_another_way_meanwhile_is_not_overruled(qtbot, program):
    start(qtbot, program, "eats")
    program.teaching.go_to(program.teaching.state.script.index("order"))
    assert program.teaching._coming is not None
    program.controller.cancel()
    mine = edited(program.session.snapshot().spec, mask="three-step")
    program.controller.edit_spec(mine)
    settle(qtbot, program)
    assert program.session.snapshot().spec == mine


def test_measures_see_the_screen_that_a_person_sees(qtbot, program):
    """The measured number is the picture's own, not one that was computed aside."""
    start(qtbot, program, "mask")
    snapshot = program.session.snapshot()
    found = measures.found(program.teaching.state.step, measures.screen_of(snapshot))
    assert found == snapshot.picture.heads[0].values[1, 1]
