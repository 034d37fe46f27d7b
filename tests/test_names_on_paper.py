"""Names and numbers along the sides of maps on paper: all of them where there is any way, and none cut."""

from collections import Counter

import pytest
from made_pictures import outline_of, picture_of
from paper_words import WordPainter, outside, overlapping, painted
from PySide6.QtGui import QImage

from attnviz.figure.fonts import load_fonts, sized
from attnviz.figure.labels import axis_labels
from attnviz.figure.places import Box, PanelLayout
from attnviz.figure.sheet import PictureDrawing, lay_out
from attnviz.figure.sides import paint_column_labels
from attnviz.figure.styles import style_of_theme
from attnviz.spec import Paper

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.mark.parametrize(
    ("heads", "size", "tokens"),
    [
        (2, (1004, 709), ("Your", "journey", "starts", "with", "one", "step")),
        (4, (1004, 709), ("the", "cat", "eats", "the", "fish")),
        (12, (2008, 709), ("the", "cat", "eats", "the", "fish")),
    ],
)
def test_on_small_paper_every_column_of_a_few_tokens_has_its_name(heads, size, tokens):
    """Every second one had, or "…" stood where "fish" would have fitted, though there was room above the maps."""
    picture = picture_of(len(tokens), heads, tokens=tokens)
    paper = Paper(width=size[0], height=size[1], dpi=300.0, theme="print")
    sheet = lay_out(picture.outline, picture.spec, picture.view, paper, picture=picture)
    drawing = PictureDrawing(picture, sheet)
    _, words, margin = painted(drawing)
    first = sheet.plan.panels[0].map_rect
    above = [text for text, ink in words if first.y - 100 < ink.boundingRect().bottom() - margin <= first.y
             and first.x - 9 < ink.boundingRect().center().x() - margin < first.right + 9]  # fmt: skip
    assert [text for text in above if text in tokens] == list(tokens)
    assert "…" not in above
    assert not overlapping(words)
    assert not outside(words, size, margin)


def test_a_last_name_reaches_into_the_gap_and_dots_stand_between_names_alone():
    load_fonts()
    place = PanelLayout(
        Box(0, 0, 400, 300), Box(50, 50, 160, 160), column_labels=Box(50, 30, 160, 20), label_px=12.0
    )  # fmt: skip
    longest = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nineteen")
    for tokens, said in [(longest, "one five"), (("a", "", "bb", "", "cc", "", "dd", "", "nine"), "a bb cc dd nine")]:
        labels = axis_labels(outline_of(9, tokens=tokens))[1]
        image = QImage(400, 300, QImage.Format.Format_RGB32)
        painter = WordPainter(image)
        painter.setFont(sized(12))
        paint_column_labels(painter, place, (0.0, 9.0, 0.0, 9.0), labels, style_of_theme("light"), None)
        painter.end()
        written = sorted((ink.boundingRect().left(), text) for text, ink in painter.words)
        assert [text for _, text in written if text != "…"] == said.split(), written
        assert written[-1][1] != "…"


def test_numbered_rows_and_columns_have_the_same_steps_and_the_axis_stands_apart():
    """Keys were ticked 0, 500, queries 0, 200, 400; "key" stood right under a map's "1000"."""
    picture = picture_of(1024, 4)
    paper = Paper(width=2008, height=709, dpi=300.0)
    sheet = lay_out(picture.outline, picture.spec, picture.view, paper, picture=picture)
    _, words, _ = painted(PictureDrawing(picture, sheet))
    counts = Counter(text for text, _ in words if text.isdigit())
    assert counts - Counter({"0": 1, "1": 1}) == {"0": 8, "500": 8, "1000": 8}  # those of the colour bar stand apart
    boxes = [(text, ink.boundingRect()) for text, ink in words]
    key = next(box for text, box in boxes if text == "key")
    lowest = max(box.bottom() for text, box in boxes if text == "1000")
    assert key.top() - lowest > 0.2 * key.height()
