"""The A | B page, by mouse and keys."""

import pytest
from answered_pages import shown, snapshot_of
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from attnviz.colour import DIVERGING_TABLE, table
from attnviz.frames import Scale
from attnviz.session import Cell
from attnviz.spec import Lesson, PadLeft, RandomQK, View, edited, make_spec
from attnviz.views.pages.compare import ComparePage
from attnviz.views.pages.dropout import DropoutPage
from attnviz.views.pages.looks_ahead import LooksAheadPage
from attnviz.views.pages.number_table import NumberTable

CAT = make_spec(Lesson(name="cat-eats-fish"))
OPEN = edited(CAT, mask="none")


@pytest.fixture
def page(qtbot):
    page = ComparePage()
    page.asked_of_it = shown(qtbot, page)
    return page


def click(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def cell(page, name):
    lines = page.numbers.as_text().split("\n")
    return next(line for line in lines if line.startswith(name)).split("\t")[1:]


def test_without_a_it_says_what_to_press(qtbot, page):
    page.present(snapshot_of(CAT))
    assert "Press P to pin" in page._sentence.text()
    assert page.asked_of_it.questions == []
    assert not page.a.isVisible()
    with qtbot.waitSignal(page.pin_toggled):
        click(qtbot, page.pin)


def test_a_stands_beside_b_with_the_numbers(page):
    page.present(snapshot_of(CAT, pinned=snapshot_of(OPEN)))
    assert page.a.isVisible()
    assert page.b.isVisible()
    assert page.a.frame.values[1] == pytest.approx([0.09, 0.6652, 0.2447], abs=6e-5)
    assert page.b.frame.values[1] == pytest.approx([0.1192, 0.8808, 0], abs=6e-5)
    assert page.a.frame.scale == page.b.frame.scale
    assert cell(page, "most weight on the future") == ["0.73", "0"]
    assert cell(page, "rows with NaN") == ["0", "0"]
    apart = dict(page.apart.lines())
    assert apart["largest"] == "0.73"
    assert apart["where it is largest"] == "row 0 · 猫, key 0 · 猫"
    assert apart["equal bit for bit"] == "no"
    assert "largest, in steps (ULP) of float32" in apart
    assert "mask none | −∞" in page._sentence.text()


def test_short_weights_have_the_windows_colours(page):
    causal = edited(CAT, mask="multiply")  # 0.76 at most, so a scale of its own would end there
    page.present(snapshot_of(causal, pinned=snapshot_of(OPEN), view=View(norm="unit")))
    assert page.a.frame.scale == page.b.frame.scale == Scale(0.0, 1.0)
    assert page.a.accessibleDescription() == ""
    page.present(snapshot_of(causal, pinned=snapshot_of(OPEN)))
    assert page.a.frame.scale.high == pytest.approx(0.6652, abs=6e-5)
    assert page.a.accessibleDescription() == "colours 0 to 0.67"
    assert len(page.asked_of_it.questions) == 1  # only the colours are others


def test_the_difference_has_numbers_and_the_colours_that_it_names(page):
    page.present(snapshot_of(CAT, pinned=snapshot_of(OPEN)))
    assert page.difference.accessibleDescription() == "blue −0.73 · pale 0 · brown 0.73"
    low, middle, high = (table(DIVERGING_TABLE)[place] for place in (0, 128, 255))
    red, green, blue = ([int(colour) >> shift & 255 for colour in (low, middle, high)] for shift in (16, 8, 0))
    assert blue[0] > green[0] > red[0]
    assert min(red[1], green[1], blue[1]) > 220
    assert red[2] > green[2] > blue[2]
    assert green[2] > 0.4 * red[2]  # brown, not red
    assert page.difference.matrix.numbers


def test_the_difference_map_and_back(qtbot, page):
    page.present(snapshot_of(CAT, pinned=snapshot_of(OPEN)))
    click(qtbot, page.way.buttons["difference"])
    assert page.difference.isVisible()
    assert not page.a.isVisible()
    assert page.difference.frame.scale.diverging
    assert page.difference.frame.values[1, 2] == pytest.approx(-0.2447, abs=6e-5)
    click(qtbot, page.way.buttons["side"])
    assert page.a.isVisible()


def test_swapping_turns_the_difference_round(qtbot, page):
    page.present(snapshot_of(CAT, pinned=snapshot_of(OPEN)))
    click(qtbot, page.swap)
    assert (page.asked_of_it.questions[-1].a, page.asked_of_it.questions[-1].b) == (CAT, OPEN)
    assert page.difference.frame.values[1, 2] == pytest.approx(0.2447, abs=6e-5)
    with qtbot.waitSignal(page.pin_toggled):
        click(qtbot, page.pin)


def test_it_asks_when_a_b_stage_or_head_changes_and_not_otherwise(qtbot, page):
    spec = make_spec(RandomQK(length=9), num_heads=3)
    a = snapshot_of(spec)
    now = snapshot_of(edited(spec, mask="three-step"), pinned=a)
    page.present(now)
    page.present(snapshot_of(edited(spec, mask="three-step"), pinned=a, selected=Cell(2, 1)))
    assert len(page.asked_of_it.questions) == 1
    page.head.setFocus()
    qtbot.keyClick(page.head, Qt.Key.Key_Down)
    assert page.asked_of_it.questions[-1].head == 1
    assert page.numbers.as_text().startswith("head 1")
    scores = snapshot_of(edited(spec, mask="three-step"), pinned=a, view=View(stage="scaled_scores"))
    page.present(scores)
    assert page.asked_of_it.questions[-1].stage == "scaled_scores"
    assert page.heads.isVisible()
    page.present(snapshot_of(spec, pinned=a))
    assert "equal, bit for bit" in page._sentence.text()


def test_another_length_is_refused_in_words(page):
    page.present(snapshot_of(make_spec(Lesson(name="journey")), pinned=snapshot_of(CAT)))
    assert "same length" in page._sentence.text()
    assert not page.a.isVisible()


def test_rounding_is_called_rounding(page):
    journey = make_spec(Lesson(name="journey"))
    page.present(snapshot_of(edited(journey, mask="three-step"), pinned=snapshot_of(journey)))
    words = page._sentence.text()
    assert "rounding" in words or "bit for bit" in words
    page.present(snapshot_of(edited(journey, dtype="float16"), pinned=snapshot_of(journey)))
    assert "steps of float16" in page._sentence.text()


def test_rows_of_nan_are_told_for_a_and_for_b(page):
    blind = edited(CAT, mask_shape=PadLeft(count=1))
    page.present(snapshot_of(edited(blind, dtype="float16"), pinned=snapshot_of(blind)))
    assert "Rows that hold NaN: 1 of A, 1 of B." in page._sentence.text()
    page.present(snapshot_of(edited(blind, fill=-1e9), pinned=snapshot_of(blind)))
    assert "Rows that hold NaN: 1 of A, 0 of B." in page._sentence.text()
    two = make_spec(RandomQK(length=9), num_heads=2, mask_shape=PadLeft(count=2))
    page.present(snapshot_of(edited(two, fill=-1e9), pinned=snapshot_of(two)))
    assert "Rows of head 0 that hold NaN: 2 of A, 0 of B." in page._sentence.text()
    assert [line[3] for line in page.heads.lines()] == ["2 | 0", "2 | 0"]


@pytest.mark.parametrize("made", [ComparePage, DropoutPage, LooksAheadPage])
def test_every_page_has_the_one_kind_of_table_and_ctrl_c_copies_it(qtbot, made):
    page = made()
    qtbot.addWidget(page)
    table = page.numbers if made is ComparePage else page.table
    assert type(table) is NumberTable
    assert table.accessibleName()
    table.show_lines(["row", "seen"], [("0 猫", "50 %"), ("1 吃", "24 %")])
    assert table.lines() == [("0 猫", "50 %"), ("1 吃", "24 %")]
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "row\tseen\n0 猫\t50 %\n1 吃\t24 %"
    QApplication.clipboard().clear()


def test_heads_that_one_lacks_are_left_out(page):
    spec = make_spec(RandomQK(length=9), num_heads=3)
    page.present(snapshot_of(edited(spec, num_heads=2), pinned=snapshot_of(spec)))
    assert page.head.count() == 2
    assert page._left_out.text().startswith("1 head")
