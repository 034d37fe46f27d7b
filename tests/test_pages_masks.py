"""The Masks page, by mouse and keys."""

import math

import pytest
from answered_pages import Asked, shown, snapshot_of
from PySide6.QtCore import Qt

from attnviz.questions.gallery import ORDERS
from attnviz.session import Cell
from attnviz.spec import Lesson, RandomQK, SlidingWindow, SpecError, TypedWeights, edited, make_spec
from attnviz.views.pages.masks import MasksPage, fill_text, read_fill

CAT = make_spec(Lesson(name="cat-eats-fish"))


@pytest.fixture
def page(qtbot):
    page = MasksPage()
    page.asked_of_it = shown(qtbot, page)
    page.present(snapshot_of(CAT, selected=Cell(1, 2)))
    return page


def line_of(table, name):
    return next(line for line in table.as_text().split("\n") if line.split("\t")[0] == name).split("\t")[1:]


def test_all_orders_stand_there_with_their_difference(page):
    cards = page.exhibits.cards
    assert [*cards] == [*ORDERS]
    assert all(card.exhibit is not None for card in cards.values())
    assert cards["multiply"].map.frame.row_sums == pytest.approx([0.2741, 0.7553, 1], abs=6e-5)
    assert cards["neg-inf"].is_present
    assert sum(card.is_present for card in cards.values()) == 1
    assert "0.73" in cards["none"].accessibleDescription()
    assert {card.map.frame.scale for card in cards.values()} == {cards["none"].map.frame.scale}


@pytest.mark.parametrize("order", [*ORDERS])
def test_a_click_makes_an_order_the_windows_mask(qtbot, page, order):
    qtbot.mouseClick(page.exhibits.cards[order], Qt.MouseButton.LeftButton)
    (spec,) = page.asked_of_it.specs
    assert spec == edited(CAT, **ORDERS[order])
    page.present(snapshot_of(spec, selected=Cell(1, 2)))
    assert page.exhibits.cards[order].is_present
    assert len(page.asked_of_it.questions) == 1  # the gallery shows them all anyway


def test_keys_choose_an_order_too(qtbot, page):
    card = page.exhibits.cards["multiply"]
    qtbot.keyClick(card, Qt.Key.Key_Return)
    assert page.asked_of_it.specs[-1].mask == "multiply"


def test_a_mode_and_a_fill_are_chosen_and_said(qtbot, page):
    half = edited(CAT, dtype="float16")
    page.present(snapshot_of(half, selected=Cell(1, 2)))
    qtbot.mouseClick(page.mode.buttons["add"], Qt.MouseButton.LeftButton)
    assert page.asked_of_it.specs[-1].mask == "add"
    page.present(snapshot_of(edited(half, mask="add"), selected=Cell(1, 2)))
    line = page.fill.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, "-10")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert page.asked_of_it.specs[-1].fill == -10
    page.fill.setCurrentText("−10⁹")
    page.fill.textActivated.emit("−10⁹")
    deep = page.asked_of_it.specs[-1]
    assert deep.fill == -1e9
    page.present(snapshot_of(deep))
    assert "becomes −∞" in page._held.text()
    assert not any(card.is_present for card in page.exhibits.cards.values())


def test_a_fill_acts_only_where_something_is_filled(page):
    assert page.fill.isEnabled()
    page.present(snapshot_of(edited(CAT, mask="three-step")))
    assert not page.fill.isEnabled()


def test_a_wrong_fill_is_refused_beside_it(qtbot, page):
    line = page.fill.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, "deep")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert page.asked_of_it.specs == []
    assert "give −∞ or a number" in page._fields.problems["fill"].text()


def test_a_shape_is_typed(qtbot, page):
    line = page._fields.editors["mask_shape"]
    line.selectAll()
    qtbot.keyClicks(line, "window:2")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    spec = page.asked_of_it.specs[-1]
    assert spec.mask_shape == SlidingWindow(width=2)
    page.present(snapshot_of(spec))
    assert page.asked_of_it.questions[-1].spec.mask_shape == spec.mask_shape


def test_the_row_that_sees_nothing_has_its_answers(page):
    assert line_of(page.masked_row, "fill −∞") == ["NaN"] * 3
    assert line_of(page.masked_row, "fill −10⁹") == [".3333"] * 3
    assert line_of(page.masked_row, "add −10⁹ · float64") == [".0900", ".6652", ".2447"]
    assert line_of(page.masked_row, "SDPA, boolean") == ["0"] * 3


def test_how_deep_a_fill_must_lie_is_read_in_the_specs_dtype(page):
    assert line_of(page.depths, "−12") == ["8e−7"] * 4
    assert line_of(page.depths, "−20") == ["0", "3e−10", "3e−10", "3e−10"]
    assert line_of(page.depths, "−104") == ["0", "0", "0", "9e−47"]
    assert "lie 104.0 below" in page._depth_words.text()
    page.present(snapshot_of(edited(CAT, dtype="float16"), selected=Cell(1, 2)))
    assert "In float16 a fill must lie 17.3 below" in page._depth_words.text()


def test_what_cannot_be_shown_says_so_where_it_stands(page):
    page.present(snapshot_of(make_spec(TypedWeights(weights=((1.0,),)))))
    assert "the weights are typed" in page._sentence.text()
    assert all(card.exhibit is None for card in page.exhibits.cards.values())
    page.present(snapshot_of(make_spec(RandomQK(length=1025), num_heads=1)))
    assert "1,024 tokens" in page._sentence.text()


def test_a_page_out_of_sight_asks_nothing_and_asks_again_when_it_is_back(qtbot):
    page = MasksPage()
    qtbot.addWidget(page)
    asked = Asked(page, held=True)
    page.present(snapshot_of(CAT))
    assert asked.questions == []
    page.set_active(True)
    assert len(asked.questions) == 1
    page.set_active(False)
    assert asked.called_off == ["gallery"]
    page.set_active(True)
    assert len(asked.questions) == 2


@pytest.mark.parametrize("fill", [-math.inf, -1e9, -1e6, -1e4, 0.0, -17.3, 2.5])
def test_a_fill_is_read_as_it_is_written(fill):
    assert read_fill(fill_text(fill)) == fill


def test_ways_to_write_a_fill():
    assert read_fill("-inf") == -math.inf
    assert read_fill("-10⁹") == -1e9
    assert read_fill("-1e9") == -1e9
    assert read_fill("−9,984") == -9984
    with pytest.raises(SpecError):
        read_fill("−")
