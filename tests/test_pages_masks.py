"""The Masks page, by mouse and keys."""

import math
from dataclasses import replace

import pytest
from answered_pages import Asked, shown, snapshot_of
from PySide6.QtCore import Qt

from attnviz.engine import Engine
from attnviz.frames import RowQuestion
from attnviz.questions.gallery import ORDERS
from attnviz.session import Cell
from attnviz.spec import (
    Lesson,
    PadLeft,
    RandomQK,
    SlidingWindow,
    SpecError,
    TypedScores,
    TypedWeights,
    edited,
    make_spec,
)
from attnviz.spec.fills import fill_text
from attnviz.views.pages.masks import MasksPage, in_use_words
from attnviz.views.typed_values import read_fill

CAT = make_spec(Lesson(name="cat-eats-fish"))


@pytest.fixture
def page(qtbot):
    page = MasksPage()
    page.asked_of_it = shown(qtbot, page)
    page.present(snapshot_of(CAT, selected=Cell(1, 2)))
    return page


def line_of(table, name):
    return next(line for line in table.as_text().split("\n") if line.split("\t")[0] == name).split("\t")[1:]


def test_all_orders_stand_there_with_their_difference(qtbot, page):
    cards = page.exhibits.cards
    assert [*cards] == [*ORDERS]
    assert all(card.exhibit is not None for card in cards.values())
    assert cards["multiply"].sums.values == pytest.approx([0.2741, 0.7553, 1], abs=6e-5)
    assert all(card.sums.fits for card in cards.values())
    qtbot.waitUntil(lambda: "Σ" in cards["multiply"].accessibleDescription())
    assert cards["multiply"].accessibleDescription().endswith("Σ 0.27, 0.76, 1.00")
    assert cards["neg-inf"].is_present
    assert sum(card.is_present for card in cards.values()) == 1
    assert "differs from the −∞ map by up to 0.73" in cards["none"].accessibleDescription()
    assert "row 0, key 0" in cards["none"].toolTip()
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
    qtbot.mouseClick(page.controls.modes.buttons["add"], Qt.MouseButton.LeftButton)
    assert page.asked_of_it.specs[-1].mask == "add"
    page.present(snapshot_of(edited(half, mask="add"), selected=Cell(1, 2)))
    line = page._fields.editors["fill"].lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, "-10")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert page.asked_of_it.specs[-1].fill == -10
    page._fields.editors["fill"].setCurrentText("−10⁹")
    page._fields.editors["fill"].textActivated.emit("−10⁹")
    deep = page.asked_of_it.specs[-1]
    assert deep.fill == -1e9
    page.present(snapshot_of(deep))
    assert "becomes −∞" in page.controls._fill_line.text()
    assert not any(card.is_present for card in page.exhibits.cards.values())


def test_a_fill_acts_only_where_something_is_filled(page):
    assert page._fields.editors["fill"].isEnabled()
    page.present(snapshot_of(edited(CAT, mask="three-step")))
    assert not page._fields.editors["fill"].isEnabled()


def test_a_wrong_fill_is_refused_beside_it(qtbot, page):
    line = page._fields.editors["fill"].lineEdit()
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


def has_red(widget):
    """Whether any pixel of what the widget shows is as red as a sum that is not 1."""
    picture = widget.grab().toImage()
    colours = (picture.pixelColor(x, y) for x in range(picture.width()) for y in range(picture.height()))
    return any(colour.red() > 180 and colour.green() < 100 and colour.blue() < 100 for colour in colours)


def test_a_sum_that_is_not_1_is_red(page):
    cards = page.exhibits.cards
    assert [order for order, card in cards.items() if has_red(card.sums)] == ["multiply"]


def test_of_a_long_map_the_range_of_the_sums_is_said(page):
    page.present(snapshot_of(make_spec(RandomQK(length=60), num_heads=1)))
    card = page.exhibits.cards["multiply"]
    assert not card.sums.fits
    assert "rows: Σ from 0.0" in card.accessibleDescription()
    assert "every row: Σ 1.00" in page.exhibits.cards["none"].accessibleDescription()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_how_deep_a_fill_must_lie_stands_there_for_all_dtypes_at_once(page, dtype):
    page.present(snapshot_of(edited(CAT, dtype=dtype), selected=Cell(1, 2)))
    assert page.limits.as_text().split("\n")[0] == "\tfloat16\tbfloat16\tfloat32\tfloat64"
    assert line_of(page.limits, "how far below") == ["17.33", "92.88", "103.97", "745.13"]
    assert line_of(page.limits, "so a fill here below") == ["−15.33", "−90.88", "−101.97", "−743.13"]
    assert "(here 2)" in page._depth_words.text()


def test_a_fill_is_told_with_how_far_it_lies_below_and_where_it_first_weighs_nothing(page):
    assert line_of(page.depths, "−12") == ["14", *["8e−7"] * 4]
    assert line_of(page.depths, "−15.4") == ["17.4", "first 0", "3e−8", "3e−8", "3e−8"]
    assert line_of(page.depths, "−90.9")[2] == "first 0"
    assert line_of(page.depths, "−102")[3] == "first 0"
    assert line_of(page.depths, "−743.2")[4] == "first 0"
    assert line_of(page.depths, "−∞") == ["∞", "0", "0", "0", "0"]
    assert page.depths.as_text().count("first 0") == 4


def told(spec, row=1):
    """What is said below the gallery of ``spec`` with a row of its story."""
    engine = Engine()
    snapshot = snapshot_of(spec, selected=Cell(row, 0))
    story = engine.row_story(RowQuestion(snapshot.picture.generation, spec, row, 0))
    engine.close()
    return in_use_words(replace(snapshot, story=story))


def test_what_the_mask_in_use_leaves_the_hidden_is_said():
    assert told(edited(CAT, fill=0.0)) == "Filled with 0, the hidden 鱼 still takes 11 % of row 1 · 吃."
    assert told(edited(CAT, fill=0.0), 0) == "Filled with 0, the 2 hidden keys still take 55 % of row 0 · 猫."
    assert told(edited(CAT, fill=-12.0)) == "Filled with −12, the hidden 鱼 still takes 7e−7 of row 1 · 吃."
    assert told(edited(CAT, mask="none")) == "Without a mask row 1 · 吃 gives 24 % to 鱼, which it must not see."
    assert told(edited(CAT, mask="add", fill=0.0)).startswith("With 0 added, the hidden 鱼 still takes 24 %")
    assert told(CAT).endswith("weighs exactly 0 in row 1 · 吃, whose Σ is 1.00.")
    assert told(edited(CAT, mask="multiply")).endswith("but Σ is 0.76: it is not divided.")
    assert told(CAT, 2) == "In use now: row 2 · 鱼 sees every key, so no mask can change it."
    assert told(edited(CAT, mask_shape=PadLeft(count=1)), 0) == "In use now: row 0 · 猫 is NaN."
    unnamed = make_spec(TypedScores(scores=((0.0, 2.0), (2.0, 0.0))), fill=0.0)
    assert told(unnamed, 0) == "Filled with 0, the hidden key 1 still takes 50 % of row 0."
    assert in_use_words(snapshot_of(CAT)) == ""  # its row has not come


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
