"""The Heads page, by mouse and keys."""

import pytest
from answered_pages import shown, snapshot_of
from PySide6.QtCore import Qt

from attnviz.figure.form_diagram import products_words, sizes_of
from attnviz.spec import Lesson, Text, edited, make_spec
from attnviz.views.pages.heads import HeadsPage

JOURNEY = make_spec(Lesson(name="journey"))


@pytest.fixture
def page(qtbot):
    page = HeadsPage()
    page.asked_of_it = shown(qtbot, page)
    page.present(snapshot_of(JOURNEY))
    return page


def test_products_are_counted_and_shapes_are_live(page):
    assert page.stacked.accessibleName() == "stacked: 3 × 2 = 6 products"
    assert page.split.accessibleName() == "split: 3 products and a cut"
    assert page._shapes.text() == "(6, 3) → (6, 4) → split (2, 6, 2)"
    assert page._book.text() == "stacked: 2 each × 2 heads = 4 · the book's wrapper calls this d_out = 2"
    shared = make_spec(Text(text="a b"), num_heads=4, num_kv_heads=2, d_model=8, d_out=8)
    assert products_words("stacked", sizes_of(shared, 2)) == "4 + 2 × 2 = 8 products"


def test_the_other_form_is_a_click_away(qtbot, page):
    assert page.use.text() == "use split"
    before = page.stacked.grab().toImage()
    qtbot.mouseClick(page.use, Qt.MouseButton.LeftButton)
    (spec,) = page.asked_of_it.specs
    assert spec == edited(JOURNEY, implementation="split")
    page.present(snapshot_of(spec))
    assert page.use.text() == "use stacked"
    assert page.stacked.grab().toImage() != before
    assert len(page.asked_of_it.questions) == 1  # both forms were compared before


def test_the_difference_goes_to_zero(page):
    lines = [line.split("\t") for line in page.ladder.as_text().split("\n")[1:]]
    assert [line[1:3] for line in lines] == [["(6, 4)", "(6, 2)"], *[["(6, 4)", "(6, 4)"]] * 3]
    assert lines[0][3] == "shapes differ"
    assert [float(line[3]) for line in lines[1:3]] == pytest.approx([0.76, 0.45])
    assert lines[3][3].startswith("0") or float(lines[3][3].replace("−", "-")) < 1e-6


def test_copied_weights_make_the_two_the_same(qtbot, page):
    assert "up to 0.45 apart" in page._compared.text()
    qtbot.mouseClick(page.copy, Qt.MouseButton.LeftButton)
    words = page._compared.text()
    assert "not one bit" in words or "rounding" in words
    qtbot.mouseClick(page.copy, Qt.MouseButton.LeftButton)
    assert "other draws" in page._compared.text()


def test_the_batched_product_is_shown_head_by_head(page):
    assert page.products[0].frame.values[1, 1] == pytest.approx(2.2150, abs=2e-4)
    assert page.products[1].frame.values[2, 0] == pytest.approx(0.5903, abs=2e-4)
    assert "head by head" in page._product_words.text()


def test_without_projections_the_reason_stands_there(page):
    page.present(snapshot_of(make_spec(Lesson(name="cat-eats-fish"))))
    assert not page.stacked.isVisible()
    assert page._reason.text() == (
        "Worked by hand: there are no projections. Choose a lesson with projections or a text under Set up."
    )
    assert page.journey.isVisible()
    assert not page.use.isVisible()
    assert not page.copy.isVisible()
    assert page.ladder.isVisible()


@pytest.mark.parametrize(
    "spec", [make_spec(Lesson(name="cat-eats-fish")), edited(JOURNEY, projection="none", num_heads=1)]
)
def test_a_button_takes_a_lesson_that_has_projections(qtbot, page, spec):
    assert not page.journey.isVisible()
    page.present(snapshot_of(spec))
    qtbot.mouseClick(page.journey, Qt.MouseButton.LeftButton)
    (taken,) = page.asked_of_it.specs
    assert taken == JOURNEY
    page.present(snapshot_of(taken))
    assert page.stacked.isVisible()
    assert not page.journey.isVisible()


@pytest.mark.parametrize("width", [320, 600])
def test_both_forms_are_in_sight_at_any_width(qtbot, page, width):
    page.resize(width, 1400)
    qtbot.waitUntil(lambda: (page.stacked.y() == page.split.y()) == (width > 520))
    assert page.rect().contains(page.split.mapTo(page, page.split.rect().bottomRight()))
