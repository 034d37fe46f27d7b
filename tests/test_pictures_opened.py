"""Pictures of studies opened in the window: the page's controls say what was asked, and it is answered again."""

import pytest
from msgspec.structs import replace
from paper_drawings import drawing_of
from PySide6.QtCore import QSettings
from taught import settle

from attnviz import app, cli, opening
from attnviz.figure import formats
from attnviz.figure_questions import question_of
from attnviz.figures import Figure
from attnviz.questions.compare import CompareQuestion
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.exam import EXAM_MASKS, ExamQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.questions.leak import LeakQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.remembered import remember
from attnviz.session import Cell
from attnviz.spec import Paper, Text, View, edited, make_spec

WORDS = make_spec(Text(text="a b c d e"), num_heads=3, seed=7)
DROPPED = edited(WORDS, dropout=0.5, training=True)
OPEN = edited(WORDS, mask="none")
PAPER = Paper(width=200, height=150)


def picture_of(figure, path):
    """A small file that remembers ``figure``, whose study nobody has asked."""
    formats.write_drawing(path, drawing_of(4, paper=PAPER)[0], PAPER, remember(figure))
    return path


def opened(qtbot, program, path):
    """The page in sight, once what a picture asks is being answered."""
    with qtbot.waitSignal(program.filing.recalled, timeout=20_000):
        program.filing.open_file(path)
    settle(qtbot, program)
    page = program.window.side.pages[program.window.side.current]
    if page.question() is None:  # A is being computed
        qtbot.waitUntil(lambda: page.question() is not None, timeout=20_000)
    qtbot.waitUntil(lambda: page.answered == page.question(), timeout=20_000)
    return page


def said(program):
    return program.window.status_line._said.text()


def test_every_studys_picture_brings_its_question_back(program, qtbot, tmp_path):
    def asked(shows, question, spec=WORDS, suffix=".png", **fields):
        path = picture_of(Figure(shows=shows, spec=spec, question=question, **fields), tmp_path / f"a{suffix}")
        page = opened(qtbot, program, path)
        assert said(program) == ""
        assert program.session.snapshot().failure is None
        return page

    page = asked("gallery", GalleryQuestion.of(WORDS, 2, 3, pixels=99), row=3, heads=(2,))
    assert (page.answered.head, page.answered.row, program.session.snapshot().spec) == (2, 3, WORDS)
    question = DropoutQuestion.of(DROPPED, 1, 4)
    page = asked("dropout", question, DROPPED, view=View(head=1), row=4)
    assert page.answered == question
    assert page.p.number.value() == 0.5
    pair = CompareQuestion.of(OPEN, WORDS, "scores", 2, 99)
    page = asked("difference", pair, OPEN, beside=WORDS)  # the figure's view shows another stage
    assert (page.answered.a, page.answered.b, page.answered.stage) == (OPEN, WORDS, "scores")
    assert (page.answered.head, page.head.currentIndex()) == (2, 2)
    assert (page.way.buttons["difference"].isChecked(), page.difference.isVisibleTo(page._maps)) == (True, True)
    page.swap.click()
    swapped = CompareQuestion.of(WORDS, OPEN, "weights", 0, 99)
    page = asked("a-b", swapped, OPEN, beside=WORDS)  # drawn while A and B were swapped
    assert (page.answered.a, page.answered.b, page.answered.head) == (WORDS, OPEN, 0)
    assert (page.way.buttons["side"].isChecked(), page.a.isVisibleTo(page._maps)) == (True, True)
    page = asked("heads-study", None)
    assert page.answered == question_of(Figure(shows="heads-study", spec=WORDS))
    page = asked("rounds", RoundsQuestion.of(WORDS, 2), suffix=".svg")
    assert (page.answered.head, program.session.snapshot().view.head) == (2, 2)
    page.slider.setValue(2)
    page = asked("exam", ExamQuestion(masks=("fill:-3", "none"), seed=9))
    assert [name for name, box in page.boxes.items() if box.isChecked()] == ["none", "fill:-3"]
    assert (page.seed.value(), page.answered) == (9, ExamQuestion(masks=("none", "fill:-3"), seed=9))
    question = FutureShareQuestion(seed=11)
    page = asked("future-share", question)
    assert (page.seed.value(), page.answered) == (11, question)
    question = FormsQuestion(tokens=6, d_model=10, num_heads=5, dtype="float64", memory="kept")
    page = asked("forms", question)
    assert page.answered == question
    assert (page.tokens.value(), page.heads.value(), page.d_model.value()) == (6, 5, 10)
    assert page.memory.buttons["kept"].isChecked()
    question = LeakQuestion.of(WORDS, 2.5)
    page = asked("leaks", question)
    assert (page.scale.value(), page.answered) == (2.5, question)
    page.show_module()
    assert asked("leaks", question).answered == question


def test_what_a_page_has_no_control_for_is_said(program, qtbot, tmp_path):
    for figure, words in (
        (Figure(shows="dropout", spec=DROPPED, question=DropoutQuestion(spec=DROPPED, head=0, row=1, draws=20)),
         "draws 20 (here 1000)"),
        (Figure(shows="future-share", question=FutureShareQuestion(length=4, draws=3, qk_scale=0.5)),
         "length 4 (here 8) · draws 3 (here 30) · qk scale 0.5 (here 0.8)"),
        (Figure(shows="exam", question=ExamQuestion(masks=("none",), vocabulary=3, seed=1 << 40)),
         "vocabulary 3 (here 6) · seed 1099511627776 (here 999999)"),
        (Figure(shows="leaks", question=LeakQuestion.of(make_spec(), 1.0 / 3)), "scale 0.333333 (here 0.33)"),
    ):  # fmt: skip
        page = opened(qtbot, program, picture_of(figure, tmp_path / "a.png"))
        assert said(program) == f"left out of what the picture asked: {words}"
        assert page.answered == page.question()
    program.filing.open_file(picture_of(Figure(shows="exam"), tmp_path / "b.png"))
    qtbot.waitUntil(lambda: said(program) == "")


def test_without_a_question_it_is_the_last_row_of_the_first_head_that_is_picked(program, qtbot, tmp_path):
    figure = Figure(shows="gallery", spec=WORDS, heads=(2, 0))
    page = opened(qtbot, program, picture_of(figure, tmp_path / "a.png"))
    qtbot.waitUntil(lambda: page.answered.row == 4)
    assert (page.answered.head, program.session.snapshot().selected) == (2, Cell(4, 4))
    assert opening.of_figure(Figure(shows="row", spec=WORDS, row=1)).selected == (1, 1)


def test_the_window_begins_with_a_pictures_question(qtbot, tmp_path, monkeypatch):
    path = picture_of(Figure(shows="exam", question=ExamQuestion(masks=("none",), seed=3, steps=2)), tmp_path / "a.png")
    began = []
    monkeypatch.setattr(app, "run_window", lambda asked, **_: began.append(asked) or 0)
    assert cli.run([str(path)]) == 0
    program = app.build_window(began[0], QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
    qtbot.addWidget(program.window)
    program.window.show()
    settle(qtbot, program)
    page = program.window.side.pages["exam"]
    qtbot.waitUntil(lambda: page.latest is not None, timeout=20_000)
    assert page.answered == ExamQuestion(masks=("none",), seed=3)
    assert said(program).endswith("steps 2 (here 200)")
    program.window.close()


def test_what_moves_in_an_animation_is_the_page_that_opens():
    moved = opening.of_figure(Figure(spec=WORDS, view=View(head=1), animates="rounds"))
    assert (moved.page, moved.question) == ("rounds", RoundsQuestion.of(WORDS, 1))
    drawn = Figure(spec=DROPPED, animates="re-rolls")
    assert opening.of_figure(drawn).view.stage == "dropped_weights"  # the one in which something moves
    late = replace(drawn, view=View(stage="context"))
    assert opening.of_figure(late).view.stage == "context"
    other = Figure(spec=DROPPED, shows="dropout", question=DropoutQuestion(spec=DROPPED, draws=3), animates="exam")
    assert opening.of_figure(other).question == ExamQuestion(masks=EXAM_MASKS)
    assert opening.of_figure(other).page == "exam"


@pytest.mark.parametrize("shows", ["gallery", "rounds", "heads-study", "leaks"])
def test_a_question_about_another_spec_opens_that_one(shows):
    asked = question_of(Figure(shows=shows, spec=WORDS, row=1))
    assert opening.of_figure(Figure(shows=shows, spec=DROPPED, question=asked)).spec == DROPPED  # asks the same
    other = make_spec(Text(text="x y"), num_heads=3)
    assert opening.of_figure(Figure(shows=shows, spec=other, question=asked)).spec == asked.spec


def test_a_part_of_a_and_b_is_the_windows_and_not_the_questions():
    part = View(rows=(1, 3), cols=(0, 2))
    saved = opening.of_figure(Figure(spec=OPEN, beside=WORDS, shows="a-b", view=part))
    assert (saved.view, saved.pinned) == (part, (OPEN, View()))
    assert (saved.question.rows, saved.question.cols) == (None, None)


def test_a_stage_that_a_has_not_still_opens():
    saved = opening.of_figure(
        Figure(spec=OPEN, beside=WORDS, shows="a-b", view=View(stage="masked_scores", norm="unit"))
    )
    assert (saved.spec, saved.view.stage) == (WORDS, "masked_scores")
    assert saved.pinned == (OPEN, View(norm="unit"))
