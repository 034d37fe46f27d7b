"""The Leaks page by mouse and keys, the process that checks a file, and what the two say to each other."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import leaky_modules
import numpy as np
import pytest
from answered_pages import Asked, shown, snapshot_of
from paper_words import WordPainter, outside, overlapping
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from attnviz import cli, opening, subjects
from attnviz.figure.leak_map import LeakPlan, cell_colours, paint_leak_map
from attnviz.figure.styles import DARK, LIGHT
from attnviz.leak_lines import from_line, to_line
from attnviz.module_check import ModuleCheck
from attnviz.module_names import names_in
from attnviz.questions.leak import LeakQuestion, Reading
from attnviz.spec import Lesson, RandomEmbeddings, SpecError, Text, edited, make_spec
from attnviz.studies.leak import Plan, answers
from attnviz.views.pages.leaks import LeaksPage
from attnviz.window.module_testing import ModuleTesting

FILE = Path(leaky_modules.__file__)
SMALL = make_spec(RandomEmbeddings(length=8), d_model=16, d_out=16, num_heads=2)
LEFT = Qt.MouseButton.LeftButton
assert Asked


@pytest.fixture
def page(qtbot):
    page = LeaksPage()
    page.resize(520, 1400)
    page.asked_of_it = shown(qtbot, page)
    return page


def answer_of(name="NotDivided", **plan):
    subject = subjects.build(getattr(leaky_modules, name), name, subjects.Wishes())
    *_, last = answers(subject, Plan(length=8, **plan))
    return last


def test_the_windows_attention_is_tested_as_soon_as_it_is_looked_at(page):
    page.present(snapshot_of(SMALL))
    assert page.verdict.text() == "Clean: no output moves when a later token changes."
    assert page.verdict.property("verdict") == "good"
    assert len(page.table.lines()) == 16
    assert page.map.reading.verdict == "exactly zero"
    assert not page._looks.isVisible()
    page.present(snapshot_of(edited(SMALL, mask="multiply")))
    assert page.verdict.text().startswith("It leaks: output ")
    assert page.verdict.property("verdict") == "leak"
    assert (
        page._looks.text()
        == "It looks like weights masked after the softmax and not divided again: an output is scaled."
    )
    assert {question.spec.mask for question in page.asked_of_it.questions} == {"neg-inf", "multiply"}


def test_what_does_not_change_the_function_asks_nothing_new(page):
    page.present(snapshot_of(SMALL))
    for other in (edited(SMALL, dtype="float16"), edited(SMALL, dropout=0.3), edited(SMALL, training=False)):
        page.present(snapshot_of(other))
    assert len(page.asked_of_it.questions) == 1
    page.scale.setValue(2.0)
    assert [question.scale for question in page.asked_of_it.questions] == [1.0, 2.0]
    assert any(line[2] == "× 20" for line in page.table.lines())


def test_a_source_without_inputs_says_why(page):
    page.present(snapshot_of(make_spec(Lesson(name="cat-eats-fish"))))
    assert page.verdict.text().startswith("Who sees whom is asked of attention with projections")
    assert not page.table.isVisible()
    assert not page.map.isVisible()


def test_the_map_shows_any_reading_and_tells_each_cell(page):
    spec = make_spec(Text(text="a b c d"), d_model=16, d_out=16, num_heads=2, mask="none")
    page.present(snapshot_of(spec))
    assert page.map.words_at(0, 1).endswith("eps, and must not move")
    assert page.map.words_at(0, 1).startswith("output 0 “a” ← token 1 “b”: ")
    assert "must" not in page.map.words_at(1, 0)
    assert page._which.itemText(0) == "cpu · float64 · × 1"
    assert page.verdict.text() == "It leaks: output 0 “a” moves when token 1 “b” changes."
    page._which.setCurrentIndex(2)
    assert page.map.reading.dtype == "bfloat16"


@pytest.mark.parametrize(("mask", "leaks"), [("neg-inf", False), ("multiply", True)])
def test_the_gradients_map_stands_beside_what_moved(page, mask, leaks):
    page.present(snapshot_of(edited(SMALL, mask=mask)))
    said = page._slopes.text()
    assert said.startswith("By gradient in float64: ")
    assert ("depends on token" in said) is leaks
    page._which.setCurrentIndex(page._which.count() - 1)
    assert page._which.currentText() == "by gradient · float64"
    slopes = page.map.reading
    assert slopes is page._answer.gradient
    assert ((slopes.moved > 8) == (page._answer.readings[0].moved > 8)).all()
    assert page.map.words_at(7, 2).startswith("output 7 “7” ← token 2 “2”: its derivative is ")
    if not leaks:
        assert page.map.words_at(2, 7) == "output 2 “2” ← token 7 “7”: its derivative is 0"


@pytest.mark.slow
def test_a_long_text_is_not_asked_by_gradient(page):
    page.present(snapshot_of(make_spec(RandomEmbeddings(length=257), d_model=4, d_out=4, num_heads=1)))
    assert page._answer.gradient is None
    assert not page._slopes.isVisible()


def test_a_module_without_a_gradient_says_so(page):
    subject = subjects.build(leaky_modules.stops, "stops", subjects.Wishes())
    page.show_module()
    page._checking = True
    *_, last = answers(subject, Plan(length=8, dtypes=("float64",), factors=(1.0,), gradient=True))
    page.take_module_answer(last)
    assert page._slopes.text().startswith("By gradient nothing can be said: RuntimeError: ")
    assert page._which.count() == 1


def test_a_reading_that_could_not_be_taken_has_no_map(page):
    class Typed(leaky_modules.FloatOnly):
        pass

    page._own = True
    page._checking = True
    page.take_module_answer(answer_of("FloatOnly", factors=(1.0,)))
    assert page._which.count() == 1
    assert page.map.reading.dtype == "float32"
    assert [line[3] for line in page.table.lines()] == ["untested", "exactly zero", "untested", "untested"]
    page._checking = True
    page.take_module_answer(answer_of("Raises", factors=(1.0,)))
    assert page.verdict.text().startswith("It could not be tested: Raises raised ValueError: not today")


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_question_of_no_scale_is_refused(scale):
    with pytest.raises(SpecError, match="scale is"):
        LeakQuestion(spec=SMALL, scale=scale)


# ------------------------------------------------------------------------------------------------- a person's module


def test_a_file_is_read_and_not_run(tmp_path, page, qtbot):
    path = tmp_path / "mine.py"
    path.write_text(
        "raise SystemExit('ran')\nclass A(Base):\n    pass\nclass _B(Base):\n    pass\ndef f(x):\n    return x\n"
    )
    wanted = []
    page.file_wanted.connect(lambda: wanted.append(True))
    qtbot.mouseClick(page.subject.buttons["module"], LEFT)
    assert page.verdict.text() == "Open a Python file with an attention of your own."
    qtbot.mouseClick(page.open, LEFT)
    assert wanted == [True]
    page.open_file(path)
    assert [page.names.itemText(n) for n in range(page.names.count())] == ["A", "f"]
    assert page.open.text() == "mine.py"
    (tmp_path / "broken.py").write_text("def f(:\n")
    page.open_file(tmp_path / "broken.py")
    assert page.verdict.text().startswith("Broken.py, line 1: ")
    (tmp_path / "empty.py").write_text("x = 1\n")
    page.open_file(tmp_path / "empty.py")
    assert "no class and no function" in page.verdict.text()
    assert not page.test.isEnabled()
    with pytest.raises(ValueError, match="cannot be read"):
        names_in(tmp_path / "gone.py")


def test_a_module_is_checked_in_a_process_of_its_own(page, qtbot):
    testing = ModuleTesting(page, page)
    page.open_file(FILE)
    page.names.setCurrentText("OneTooMany")
    page.tokens.setValue(8)
    page.arguments.setText("qkv_bias=True num_heads=2")
    with qtbot.waitSignal(testing.check.ended, timeout=60_000):
        qtbot.mouseClick(page.test, LEFT)
        assert page.verdict.text() == "Testing …"
        assert not page.test.isEnabled()
    assert page.verdict.text() == "It leaks: output 0 moves when token 1 changes."
    assert "one token too many" in page._looks.text()
    assert len(page.table.lines()) == 16
    assert page.test.isEnabled()
    qtbot.mouseClick(page.subject.buttons["window"], LEFT)
    assert not page.names.isVisible()


@pytest.mark.parametrize(("name", "arguments", "words"), [
    ("FromConfig", "", "wants config: give --arg config=…"), ("Attention", "depth=2", "takes no depth"),
])  # fmt: skip
def test_what_a_module_wants_is_said(page, qtbot, name, arguments, words):
    testing = ModuleTesting(page, page)
    page.open_file(FILE)
    page.names.setCurrentText(name)
    page.arguments.setText(arguments)
    with qtbot.waitSignal(testing.check.ended, timeout=60_000):
        qtbot.mouseClick(page.test, LEFT)
    assert words in page.verdict.text()
    assert page.test.isEnabled()


def test_stop_ends_a_module_that_hangs_and_a_crash_is_told(page, qtbot, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(
        "import os, time\nprint('noise from the file', flush=True)\n"
        "def hangs(x):\n    time.sleep(600)\n    return x\ndef crashes(x):\n    os.abort()\n"
    )
    testing = ModuleTesting(page, page)
    page.open_file(path)
    qtbot.mouseClick(page.test, LEFT)
    process = testing.check._process
    qtbot.waitUntil(lambda: process.state() == process.ProcessState.Running, timeout=20_000)
    qtbot.mouseClick(page._stop, LEFT)
    assert not testing.check.running
    assert page.verdict.text() == "Stopped."
    assert page.test.isEnabled()
    page.names.setCurrentText("crashes")
    with qtbot.waitSignal(testing.check.ended, timeout=60_000):
        qtbot.mouseClick(page.test, LEFT)
    assert page.verdict.text() == "The process that ran it crashed."


def test_a_check_that_ends_half_way_is_not_called_clean(page, qtbot, tmp_path):
    path = tmp_path / "half.py"
    path.write_text(
        "import os, torch\ndef f(x):\n    print('.', end='')\n    if x.dtype == torch.bfloat16:\n        os.abort()\n"
        "    return x.cumsum(1)\n"
    )
    testing = ModuleTesting(page, page)
    page.open_file(path)
    page.scale.setValue(1234.567)
    with qtbot.waitSignal(testing.check.ended, timeout=60_000):
        qtbot.mouseClick(page.test, LEFT)
        page.scale.setValue(1.0)  # what is typed meanwhile is for the next one
    assert len(page.table.lines()) == 2
    assert page.verdict.text() == "It ended half-way: the process that ran it crashed."


def test_a_check_that_says_no_more_or_is_stopped_is_not_called_clean(page, qtbot):
    testing = ModuleTesting(page, page)
    page.open_file(FILE)
    page._checking = True
    first, *_ = answers(subjects.build(leaky_modules.Attention, "Attention", subjects.Wishes()), Plan(length=8))
    page.take_module_answer(first)
    assert page.verdict.text() == "Nothing moved so far that must not: 1 of 16 readings."
    assert page.verdict.property("verdict") == "muted"
    page.call_off()
    assert page.verdict.text().startswith("Nothing moved so far")
    page._checking = True
    page.take_module_end("")  # as a process does that ends itself
    assert page.verdict.text() == "It ended half-way: it said no more."
    assert not testing.check.running


def test_a_test_that_is_stopped_before_it_said_anything_is_begun_again_when_the_page_comes_back(qtbot):
    page, asked = LeaksPage(), []
    qtbot.addWidget(page)
    page.asked.connect(asked.append)
    page.set_active(True)
    page.present(snapshot_of(SMALL))
    assert page.verdict.text() == "Testing …"
    page._stop.click()
    assert page.verdict.text().startswith("Stopped: ")
    page.present(snapshot_of(SMALL))
    assert len(asked) == 1  # what a person has stopped stays so while it is in sight
    page.set_active(False)
    page.set_active(True)
    assert len(asked) == 2


def test_a_long_text_says_how_many_tokens_were_changed(page):
    page.present(snapshot_of(make_spec(RandomEmbeddings(length=8), d_model=16, d_out=16, num_heads=2)))
    whole = page._answer
    few = tuple(replace(reading, positions=3) for reading in whole.readings)
    page._take(replace(whole, readings=few))
    assert page.verdict.text() == (
        "Clean: no output moves when a later token changes, of 3 among 8 tokens that were changed."
    )


def test_a_check_that_is_begun_again_says_nothing_of_the_one_before(qtbot):
    check, said = ModuleCheck(), []
    check.answered.connect(said.append)
    check.start(FILE, "NotDivided", (), 1.0, 8)
    with qtbot.waitSignal(check.ended, timeout=60_000):
        check.start(FILE, "Attention", (), 1.0, 8)
    assert [answer.done for answer in said] == [*range(1, 18)]
    assert said[-1].gradient.at is None
    assert {reading.verdict for reading in said[-1].readings} <= {"exactly zero", "untested"}


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal there")
def test_a_check_that_the_system_ended_says_that_it_did_not_answer(qtbot, tmp_path):
    file = tmp_path / "held.py"
    file.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGALRM)\n")  # as the timer of `check` does
    check = ModuleCheck()
    with qtbot.waitSignal(check.ended, timeout=60_000) as ended:
        check.start(file, "f", (), 1.0, 8)
    assert ended.args == [3, "it did not answer within 60 s"]


# --------------------------------------------------------------------------------------------------- lines and pictures


@pytest.mark.parametrize("name", ["NotDivided", "FlattenedBatch", "Raises", "AlwaysNaN", "FillTenThousand"])
def test_a_line_says_the_whole_reading(name):
    subject = subjects.build(getattr(leaky_modules, name), name, subjects.Wishes())
    told = None
    for answer in answers(subject, Plan(length=8)):
        line = to_line(answer)
        assert "\n" not in line
        told = from_line(line, told)
        assert (told.done, told.total, told.pattern, told.blind) == (
            answer.done,
            answer.total,
            answer.pattern,
            answer.blind,
        )
        for one, other in zip(told.readings, answer.readings, strict=True):
            assert (one.moved is None) == (other.moved is None)
            if other.moved is not None:
                np.testing.assert_allclose(one.moved, other.moved, rtol=1e-6)
                np.testing.assert_array_equal(one.hidden, other.hidden)
            for field in ("device", "dtype", "scale", "verdict", "figure", "pair", "positions", "nan_rows", "remark"):
                assert getattr(one, field) == getattr(other, field)


@pytest.mark.parametrize(
    "line", ["", "hello", "{}", '{"reading": 3}', "[1, 2]", json.dumps({"reading": {"moved": None}})]
)
def test_another_line_is_no_answer(line):
    with pytest.raises(ValueError):  # noqa: PT011 (json's own is one too)
        from_line(line, None)


@pytest.mark.parametrize("style", [LIGHT, DARK])
def test_red_is_what_must_not_move_and_only_that(style):
    moved = np.array([[9.0, 1e12, np.nan], [20.0, 3.0, 8.0], [np.inf, 0.0, 50.0]])
    hidden = np.triu(np.ones((3, 3), bool), 1)
    colours = [[QColor.fromRgb(int(pixel)) for pixel in row] for row in cell_colours(moved, hidden, style)]

    def is_red(colour):
        return colour.red() > colour.blue() + 60

    assert [[is_red(one) for one in row] for row in colours] == [
        [False, True, False], [False, False, False], [False, False, False],
    ]  # fmt: skip
    assert colours[0][2].rgb() == style.masked.rgb()
    assert colours[2][0].blue() > colours[2][0].red() + 40


@pytest.mark.parametrize(("length", "size"), [(2, 200), (6, 240), (33, 500), (128, 420), (300, 360)])
def test_every_cell_of_a_map_is_where_the_plan_says(qapp, length, size):
    moved = np.zeros((length, length))
    moved[1, 0] = 1e9
    moved[0, length - 1] = 1e9
    hidden = np.triu(np.ones((length, length), bool), 1)
    reading = Reading("cpu", "float64", 1.0, "leak in the code", length=length, moved=moved, hidden=hidden)
    image = QImage(size, size, QImage.Format.Format_RGB32)
    image.fill(LIGHT.card)
    painter = QPainter(image)
    rect = QRectF(0, 0, size, size)
    paint_leak_map(painter, rect, reading, LIGHT)
    painter.end()
    plan = LeakPlan.of(rect, reading)
    assert plan.cells.right() <= size
    assert plan.cells.bottom() <= size
    if plan.side >= 4:
        for (row, col), red in (((0, length - 1), True), ((1, 0), False)):
            at = QPointF(plan.cells.left() + (col + 0.5) * plan.side, plan.cells.top() + (row + 0.5) * plan.side)
            assert plan.cell_at(at) == (row, col)
            colour = image.pixelColor(at.toPoint())
            assert (colour.red() > colour.blue() + 60) is red
            assert (colour.blue() > colour.red() + 60) is not red
    assert plan.cell_at(QPointF(QPoint(0, 0))) is None


@pytest.mark.parametrize("size", [300, 420, 640])
def test_every_column_is_named_slanted_where_names_are_wider_than_cells(qapp, size):
    tokens = ("Your", "journey", "starts", "with", "one", "step")
    reading = Reading("cpu", "float64", 1.0, "clean", length=6, moved=np.zeros((6, 6)), hidden=np.eye(6, dtype=bool))
    image = QImage(size, size, QImage.Format.Format_RGB32)
    painter = WordPainter(image)
    paint_leak_map(painter, QRectF(0, 0, size, size), reading, LIGHT, tokens)
    painter.end()
    plan = LeakPlan.of(QRectF(0, 0, size, size), reading, tokens)
    above = [text for text, ink in painter.words if ink.boundingRect().bottom() < plan.cells.top()]
    assert {*tokens} <= {*above}
    assert overlapping(painter.words) == []
    assert outside(painter.words, (size, size), 0) == []
    assert plan.slanted == (size < 420)


def test_check_writes_the_map(tmp_path, capsys):
    path = tmp_path / "leak.png"
    assert cli.run(["check", f"{FILE}:NotDivided", "--length", "8", "--dtype", "float32", "--image", str(path)]) == 1
    picture = QImage(str(path))
    assert (picture.width(), picture.height()) == (1200, 1300)
    reds = sum(picture.pixelColor(x, y).red() > picture.pixelColor(x, y).blue() + 60
               for x in range(0, 1200, 8) for y in range(0, 1300, 8))  # fmt: skip
    assert reds > 1000
    with pytest.raises(SpecError, match="it shows what attnviz check found in a module, which is not in the picture"):
        opening.read(path)
    assert cli.run(["check", f"{FILE}:Raises", "--length", "8", "--image", str(tmp_path / "none.png")]) == 3
    assert "there is no picture" in capsys.readouterr().err
    assert not (tmp_path / "none.png").exists()
