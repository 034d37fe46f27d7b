"""Every study's figure, from its real answer, at every size and in every theme."""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import msgspec
import numpy as np
import pytest
from paper_words import outside, over_maps, overlapping, painted
from PySide6.QtGui import QImage, QPainter

from attnviz import colour
from attnviz.engine import Engine
from attnviz.figure.cells import with_grounds
from attnviz.figure.matrix_map import matrix_of, paint_map, place_of
from attnviz.figure.places import Box
from attnviz.figure.studies import drawing_of
from attnviz.figure.studies.names import short_number
from attnviz.figure.styles import DARK, LIGHT, PRINT
from attnviz.figure_questions import question_of
from attnviz.figures import PARTS, Figure
from attnviz.frames import CellClass, Outline, Scale, shown_class
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.spec import (
    Lesson,
    Paper,
    RandomEmbeddings,
    Request,
    SpecError,
    Text,
    View,
    Viewport,
    edited,
    make_spec,
)
from attnviz.studies import answers

JOURNEY = make_spec(Lesson(name="journey"))
CAT = make_spec(Lesson(name="cat-eats-fish"))
OPEN = edited(JOURNEY, mask="none")
TEXT = make_spec(Text(text="The cat eats the fish because it is hungry, said the dog quietly."), num_heads=4)
LONG = make_spec(RandomEmbeddings(length=300), num_heads=2)

FIGURES = {
    "a-b": Figure(shows="a-b", spec=OPEN, beside=JOURNEY),
    "difference": Figure(shows="difference", spec=OPEN, beside=JOURNEY),
    "difference of maps alone": Figure(shows="difference", spec=OPEN, beside=JOURNEY, parts=("maps",)),
    "difference of a long map": Figure(shows="difference", spec=edited(LONG, mask="none"), beside=LONG),
    "gallery": Figure(shows="gallery", spec=JOURNEY),
    "gallery of three words": Figure(shows="gallery", spec=CAT),
    "gallery of a long map": Figure(shows="gallery", spec=LONG),
    "dropout": Figure(shows="dropout", spec=edited(JOURNEY, dropout=0.5)),
    "dropout of a long map": Figure(shows="dropout", spec=edited(LONG, dropout=0.3), row=7),
    "heads-study": Figure(shows="heads-study", spec=JOURNEY),
    "rounds": Figure(shows="rounds", spec=CAT),
    "rounds of a text": Figure(shows="rounds", spec=edited(TEXT, mask="none"), row=5),
    "exam": Figure(shows="exam", question=ExamQuestion(steps=60)),
    "future-share": Figure(shows="future-share"),
    "forms": Figure(shows="forms", question=FormsQuestion(tokens=32, d_model=16, num_heads=2, repeats=2)),
    "leaks": Figure(shows="leaks", spec=edited(JOURNEY, mask="multiply")),
}
PAPERS = {
    "slide": {"width": 1920, "height": 1080},
    "laptop": {"width": 1280, "height": 800},
    "small": {"width": 640, "height": 400},
    "column": {"width": 1004, "height": 709, "dpi": 300.0},
}
THEMES = ("light", "dark", "print")


@lru_cache(maxsize=32)
def answered(name):
    *_, last = answers(question_of(FIGURES[name]))
    return last


@lru_cache(maxsize=32)
def outlined(name):
    engine = Engine()
    try:
        request = Request(spec=FIGURES[name].spec, view=View(), viewport=Viewport(), generation=1)
        return next(message for message in engine.stream(request) if isinstance(message, Outline))
    finally:
        engine.close()


def drawn(name, size, theme, **settings):
    paper = Paper(**PAPERS[size], theme=theme, **settings)
    return drawing_of(msgspec.structs.replace(FIGURES[name], paper=paper), answered(name), outlined(name))


@pytest.mark.parametrize("size", PAPERS)
@pytest.mark.parametrize("name", FIGURES)
def test_no_word_is_cut_or_lies_over_another_and_nothing_leaves_the_sheet(qapp, name, size):
    for theme in THEMES if size == "column" else THEMES[:1]:  # words lie alike but for bold ones
        drawing = drawn(name, size, theme)
        boxes = drawing.boxes
        width, height = drawing.size
        assert all(box.x >= 0 and box.y >= 0 and box.right <= width + 0.5 and box.bottom <= height + 0.5
                   for box in boxes)  # fmt: skip
        assert not [pair for n, one in enumerate(boxes) for pair in boxes[:n] if one.overlaps(pair)]
        image, words, margin = painted(drawing)
        assert overlapping(words) == []
        assert outside(words, drawing.size, margin) == []
        assert over_maps(words, [place for _, place in drawing.maps], margin) == []
        assert [text for text, _ in words if text.endswith("…") and text != "…"] == []
        pixels = pixels_of(image)
        pixels[margin - 1 : margin + height + 1, margin - 1 : margin + width + 1] = drawing.style.card.rgb()
        assert (pixels == drawing.style.card.rgb()).all()


def pixels_of(image):
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width()).copy()


@pytest.mark.parametrize(("value", "words"), [(0.8, "0.80"), (0.83, "0.83"), (-0.5, "−0.50"), (0, "0"), (3e-8, "3e−8")])
def test_numbers_below_1_have_two_decimals_alike(value, words):
    assert short_number(value) == words


@pytest.mark.parametrize(("size", "theme"), [("slide", "dark"), ("column", "print")])
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("future-share", "forms", "leaks")])
def test_a_cells_middle_has_the_colour_of_the_answers_number(qapp, name, size, theme):
    drawing = drawn(name, size, theme, numbers=False)
    image, _, margin = painted(drawing)
    pixels = pixels_of(image)
    for matrix, place in drawing.maps:
        assert matrix_cells_agree(matrix, place, pixels, margin, drawing.style) > 0


def matrix_cells_agree(matrix, place, pixels, margin, style):
    """How many cells were looked at: ordinary ones over which nothing is laid, of maps that have large cells."""
    frame = matrix.frame
    assert frame.level == 1
    expected = with_grounds(colour.paint_values(frame.values, frame.classes, frame.scale, matrix.colours), style)
    ordinary = shown_class(frame.classes) == CellClass.ORDINARY
    if style.grey and frame.scale.diverging:
        ordinary &= frame.values >= 0  # what is below 0 is hatched
    high, wide = place.height / frame.rows[1], place.width / frame.cols[1]
    if min(high, wide) < 1:
        ordinary[:] = False
        return 1
    grown = matrix.grown or frame.rows[1]
    count = 0
    cells = np.argwhere(ordinary)
    for row, col in cells[:: 1 + len(cells) // 4096].tolist():
        if not matrix.faded <= row < grown or col >= grown:
            continue
        y, x = int(margin + place.y + (row + 0.5) * high), int(margin + place.x + (col + 0.5) * wide)
        if matrix.shows_red and min(high, wide) < 7:
            continue  # a line around what must not be seen may lie here
        assert pixels[y, x] == expected[row, col], (row, col)
        count += 1
    return count or int(matrix.shows_red)


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 720), (640, 400), (500, 260), (420, 300)])
def test_all_matrices_of_both_forms_say_their_shapes_or_none(qapp, size):
    paper = Paper(width=size[0], height=size[1])
    figure = msgspec.structs.replace(FIGURES["heads-study"], parts=("forms",), paper=paper)
    drawing = drawing_of(figure, answered("heads-study"), outlined("heads-study"))
    said = " ".join(text for text, _ in painted(drawing)[1])
    assert (said.count("3×2"), said.count("3×4")) in ((6, 3), (0, 0))
    if size[0] >= 1280:
        assert "3×2" in said
        ((_, box),) = drawing._plan.placed
        assert box.height > 0.5 * size[1]  # the room is used


@pytest.mark.parametrize("width", [1004, 1280, 2008])
def test_the_rounds_own_row_is_named_on_paper(qapp, width):
    """Where there is no room for all names too: the map's frame tells of this row."""
    figure = Figure(shows="rounds", spec=JOURNEY)
    *_, answer = answers(question_of(figure))
    for n, token in (2, "journey"), (6, "step"):
        paper = Paper(width=width, height=709, dpi=300.0, theme="print")
        drawing = drawing_of(msgspec.structs.replace(figure, row=n - 1, paper=paper), answer)
        ((_, place),) = drawing.maps
        _, words, margin = painted(drawing)
        beside = [text for text, ink in words if ink.boundingRect().right() < margin + place.x]
        assert token in beside
        assert place.width > 0.2 * 1004


@pytest.mark.parametrize("style", [LIGHT, DARK, PRINT])
def test_pale_cells_are_no_masks_ground_in_grey_either(qapp, style):
    values = np.linspace(0, 1, 16).reshape(4, 4)
    plain = np.full((4, 4), int(CellClass.ORDINARY), np.uint8)
    matrix = matrix_of(values, plain, scale=Scale(0.0, 1.0), numbers=False, faded=4)
    image = QImage(200, 200, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    place = place_of(Box(0, 0, 200, 200), matrix)
    paint_map(painter, place, matrix, style)
    painter.end()
    x, y, side, _ = place.map_rect
    for row, col in np.ndindex(4, 4):
        pale = image.pixel(int(x + (col + 0.5) * side / 4), int(y + (row + 0.5) * side / 4))
        assert colour.contrast(pale, style.masked.rgb()) > 1.25
        assert colour.contrast(pale, style.card.rgb()) > 1.25


def test_the_sheet_knows_what_it_has_no_room_for(qapp):
    drawing = drawn("gallery", "column", "print")
    assert drawing.shown == ("the maps",)
    assert drawing.left_out[:2] == ("how deep a fill must lie", "a fully masked row")
    whole = drawn("gallery", "slide", "light")
    assert whole.shown == ("the maps", "how deep a fill must lie", "a fully masked row")
    assert whole.left_out == ()


def test_a_long_table_says_how_many_of_its_rows_are_there(qapp):
    _, words, _ = painted(drawn("dropout of a long map", "slide", "light"))
    assert any(text.endswith("of 300 rows") for text, _ in words)


def test_the_caption_says_what_is_untrained_and_the_settings(qapp):
    for name, said in (("gallery of a long map", "untrained"), ("dropout", "dropout 0.5 on weights"),
                       ("difference", "mask none | −∞")):  # fmt: skip
        _, words, _ = painted(drawn(name, "slide", "light"))
        assert any(said in text for text, _ in words), name
    _, words, _ = painted(drawn("dropout", "slide", "light", caption=False, title=""))
    assert not any("dropout 0.5" in text or "1,000 times" in text for text, _ in words)


def test_a_title_of_ones_own_stands_in_place_of_the_figures(qapp):
    _, words, _ = painted(drawn("exam", "slide", "dark", title="猫吃鱼 in the exam"))
    assert words[0][0] == "猫吃鱼 in the exam"


def test_in_print_red_is_told_from_the_rest_without_colours(qapp):
    """A peeking cell's frame is dark within light; no other cell of that dark map has either."""
    drawing = drawn("a-b", "column", "print", numbers=False)
    image, _, margin = painted(drawing)
    grey = image.convertToFormat(image.Format.Format_Grayscale8)
    matrix, place = drawing.maps[0]
    side = place.width / matrix.frame.cols[1]

    def along(row, col):
        y = int(margin + place.y + (row + 0.5) * side)
        xs = range(int(margin + place.x + (col + 0.04) * side), int(margin + place.x + (col + 0.45) * side))
        return [grey.pixelColor(x, y).red() for x in xs]

    peeking, ordinary = along(0, 3), along(5, 1)
    assert max(peeking[1:]) - min(peeking[1:]) > 100
    assert max(ordinary[3:]) - min(ordinary[3:]) < 12
    style = drawing.style
    assert colour.contrast(style.leak.rgb(), style.accent.rgb()) > 2
    assert colour.contrast(style.hairline.rgb(), style.card.rgb()) > 2


@pytest.mark.parametrize("name", FIGURES)
def test_a_figures_question_is_of_its_study_and_of_its_own_if_it_brings_one(name):
    figure = FIGURES[name]
    if figure.question is not None:
        assert question_of(figure) is figure.question
    else:
        assert answered(name).finished


def test_the_row_is_the_last_one_and_the_head_the_views():
    asked = question_of(Figure(shows="gallery", spec=JOURNEY, view=View(head=1)))
    assert isinstance(asked, GalleryQuestion)
    assert (asked.row, asked.head) == (5, 1)
    assert question_of(Figure(shows="dropout", spec=edited(JOURNEY, dropout=0.5), row=2, heads=(1,))).row == 2
    with pytest.raises(SpecError, match="rows count from 0 to 5"):
        question_of(Figure(shows="gallery", spec=JOURNEY, row=6))
    with pytest.raises(SpecError, match="asks no study"):
        question_of(Figure())


def test_another_studys_answer_is_refused(qapp):
    with pytest.raises(TypeError, match="needs a GalleryAnswer"):
        drawing_of(FIGURES["gallery"], answered("exam"))


# --------------------------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize("name", [name for name in FIGURES if " of " not in name])
def test_a_part_asked_for_stands_there_alone(qapp, name):
    figure, there = FIGURES[name], []
    for part in PARTS[figure.shows]:
        with suppress(SpecError):  # not every answer has all
            there.append(
                drawing_of(msgspec.structs.replace(figure, parts=(part,)), answered(name), outlined(name)).shown
            )
    assert all(len(shown) == 1 for shown in there)
    whole = drawing_of(figure, answered(name), outlined(name))
    assert len(there) == len(set(there)) >= len(whole.shown)  # each part has a name of its own


def test_in_a_column_tables_go_before_maps_become_tiny(qapp):
    assert drawn("difference", "column", "print").shown == ("the maps",)
    assert "heads by difference" in drawn("difference", "slide", "light").shown


def test_a_part_that_this_answer_has_not_is_told(qapp):
    figure = msgspec.structs.replace(FIGURES["difference"], parts=("heads",))
    answer = answered("difference")
    with pytest.raises(SpecError, match="parts is heads, but this difference has maps, "):
        drawing_of(figure, replace(answer, heads=answer.heads[:1]))


def test_a_part_that_is_not_there_is_refused():
    with pytest.raises(SpecError, match="give some of maps, limits, hidden-row"):
        Figure(shows="gallery", parts=("table",))
    with pytest.raises(SpecError, match="heads is one picture"):
        Figure(parts=("maps",))
