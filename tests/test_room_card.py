"""The row card for a room: all keys of a short row are in sight, whatever has to go for them."""

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from test_row_card import THREE, snapshot_of

from attnviz.figure.fonts import load_fonts
from attnviz.spec import Text, edited, make_spec
from attnviz.views import theme
from attnviz.views.row_card import metrics
from attnviz.views.row_card.room_card import RoomCard

SIX = make_spec(Text(text="Your journey starts with one step"), mask="none")


@pytest.fixture
def card(qtbot, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MOTION", "0")
    load_fonts()
    theme.apply_theme(QApplication.instance(), False)
    room = QWidget()  # as in the presenter view no least size of the card widens the window
    qtbot.addWidget(room)
    room.resize(700, 1300)
    made = RoomCard(room)
    made.top_k.hide()
    made.scale = 28 / 15
    room.show()
    yield made
    QApplication.instance().setStyleSheet("")


def present(card, spec, size):
    card.resize(*size)
    card.present(snapshot_of(spec, 1, 1))
    QApplication.processEvents()


def in_sight(card):
    height = card._key_scroll.viewport().height()
    return [key for key in range(card.lines.n_keys) if card.bars.line_rect(key).bottom() <= height + 1]


def test_six_words_are_all_there_and_the_rest_gives_way(card):
    present(card, SIX, (607, 420))
    assert in_sight(card) == [0, 1, 2, 3, 4, 5]
    assert card.bars.line >= metrics.NUMBER * card.scale
    assert not card._formula_scroll.isVisible()
    assert not card._context_scroll.isVisible()
    assert not card._more.isVisible()
    card.resize(607, 1200)  # a larger card has room for all of it again
    QApplication.processEvents()
    assert card._formula_scroll.isVisible()
    assert card._context_scroll.isVisible()
    assert in_sight(card) == [0, 1, 2, 3, 4, 5]


def test_three_words_leave_room_for_the_formula(card):
    present(card, edited(THREE, mask="none"), (607, 594))
    assert in_sight(card) == [0, 1, 2]
    assert card._formula_scroll.isVisible()
    assert card._context_scroll.isVisible()


def test_a_row_that_has_no_room_at_all_scrolls(card):
    present(card, SIX, (607, 320))
    assert 2 <= len(in_sight(card)) < 6
    assert card._page.minimumSizeHint().height() <= card._pages.height()
