"""Go to a token: numbers, cells and texts, and words where there is none."""

import pytest
from made_pictures import outline_of, picture_of, snapshot_of
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from attnviz.figure.fonts import load_fonts
from attnviz.frames import StageShape
from attnviz.session import Cell
from attnviz.views.go_to import GoTo, NoSuchToken, target

WORDS = ("the", "cat", "saw", "the", "dog", "7", "The")


@pytest.mark.parametrize(
    ("text", "now", "cell"),
    [
        ("3", None, (3, 3)), (" 5 ", Cell(2, 1), (5, 5)), ("2,4", None, (2, 4)), ("2 ; 4", None, (2, 4)),
        ("0,0", Cell(3, 3), (0, 0)), ("the", None, (0, 0)), ("the", Cell(0, 0), (3, 3)), ("the", Cell(3, 3), (0, 0)),
        ("the", Cell(4, 1), (3, 3)), ("DOG", None, (4, 4)), ('"7"', None, (5, 5)), ("The", Cell(6, 6), (6, 6)),
    ],
)  # fmt: skip
def test_what_is_typed_names_a_cell(text, now, cell):
    assert target(text, outline_of(7, tokens=WORDS), now) == Cell(*cell)


@pytest.mark.parametrize(
    ("text", "said"),
    [("7", "0 to 6"), ("7,0", "rows are 0 to 6"), ("0,9", "columns 0 to 6"), ("bird", "no token is “bird”"),
     ("", "give a number"), ("-1", "no token is “-1”")],
)  # fmt: skip
def test_what_is_not_there_is_said(text, said):
    with pytest.raises(NoSuchToken, match=said):
        target(text, outline_of(7, tokens=WORDS), None)


def test_a_key_without_a_query_stays_in_the_present_row():
    outline = outline_of(7, tokens=WORDS, n_queries=2)
    assert target("6", outline, None) == Cell(1, 6)
    assert target("1", outline, Cell(1, 5)) == Cell(1, 1)
    assert target("the", outline, Cell(1, 1)) == Cell(1, 3)
    assert target("the", outline, Cell(1, 3)) == Cell(1, 0)


def test_a_stage_of_dimensions_keeps_its_column():
    outline = outline_of(7, tokens=WORDS)
    object.__setattr__(outline, "stage", "values")
    object.__setattr__(outline, "stages", (StageShape("values", (1, 7, 3)),))
    assert target("dog", outline, Cell(0, 2)) == Cell(4, 2)
    assert target("6,2", outline, None) == Cell(6, 2)


def test_a_number_of_a_million_may_be_grouped():
    assert target("1,048,575", outline_of(1 << 20), None) == Cell(1_048_575, 1_048_575)
    assert target("1000000", outline_of(1 << 20), None) == Cell(1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("131,071", (131_071, 131_071)), ("1,000", (1000, 1000)), ("100,200", (100_200, 100_200)),
        ("100, 200", (100, 200)), ("100;200", (100, 200)), ("131 , 071", (131, 71)), ("1,00", (1, 0)),
        ("0,071", (0, 71)), ("1000,200", (1000, 200)), ("131,07", (131, 7)), ("2,0", (2, 0)),
    ],
)  # fmt: skip
def test_where_tokens_are_counted_in_thousands_a_group_of_them_is_one_number(text, cell):
    assert target(text, outline_of(1 << 17), None) == Cell(*cell)


def test_a_grouped_number_past_the_last_token_is_no_row_and_column():
    with pytest.raises(NoSuchToken, match="tokens are 0 to 131,071"):
        target("131,072", outline_of(1 << 17), None)
    assert target("5,100", outline_of(1000), None) == Cell(5, 100)


def test_enter_goes_and_enter_again_goes_on(qtbot):
    load_fonts()
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(600, 400)
    window.show()
    popup, cells = GoTo(window), []
    snapshot = snapshot_of(picture_of(7, tokens=WORDS))
    popup.present(snapshot)

    def go(cell):
        cells.append(cell)
        popup.present(snapshot_of(snapshot.picture, selected=cell))

    popup.asked.connect(go)
    popup.popup()
    qtbot.keyClicks(popup.line, "the")
    for _ in range(3):
        qtbot.keyClick(popup.line, Qt.Key.Key_Return)
    assert cells == [Cell(0, 0), Cell(3, 3), Cell(0, 0)]
    assert popup.isVisible()
    popup.line.clear()
    qtbot.keyClicks(popup.line, "99")
    qtbot.keyClick(popup.line, Qt.Key.Key_Return)
    assert popup.said.text() == "tokens are 0 to 6"
    assert len(cells) == 3
    qtbot.keyClicks(popup.line, "9")
    assert "Enter goes there" in popup.said.text()
    qtbot.keyClick(popup.line, Qt.Key.Key_Escape)
    assert not popup.isVisible()
