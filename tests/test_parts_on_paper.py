"""A part of A and B, of their difference and of every mask on paper: its cells, its words, and what is refused."""

from contextlib import closing

import msgspec
import numpy as np
import paper_cells
import pytest
from paper_drawings import largest_error, pixels_of
from paper_words import outside, over_maps, overlapping, painted

import attnviz
from attnviz import cli, rendering, scene_files
from attnviz.engine import Engine
from attnviz.figure.formats import write_drawing
from attnviz.figure.studies.gallery import order_name
from attnviz.figures import Figure
from attnviz.frames import CellClass, Crop, Scale
from attnviz.options.figure import clipped
from attnviz.questions.gallery import ORDERS, GalleryQuestion
from attnviz.remembered import recall, remember
from attnviz.spec import Paper, RandomEmbeddings, RandomQK, SpecError, Text, View, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")

SENTENCE = "a cat eats the fish because it was hungry and so they went over one hill to sea"
WORDS = SENTENCE.split()
TEXT = make_spec(Text(text=SENTENCE), num_heads=2)
OPEN = edited(TEXT, mask="none")
ROWS, COLS = (3, 9), (2, 12)
CELLS = slice(*ROWS), slice(*COLS)
DARK = Paper(width=1280, height=800, theme="dark", numbers=False)
CAPTION = "queries 3–8 × keys 2–11 of 18 · row sums are of all keys, colours and words of the whole map"


@pytest.fixture(scope="module")
def engine():
    with closing(Engine()) as made:
        yield made


def part_of(shows, **fields):
    view = View(rows=ROWS, cols=COLS)
    return Figure(**{"spec": TEXT, "beside": OPEN, "shows": shows, "view": view, "paper": DARK, **fields})


def weights(engine, spec):
    return np.asarray(engine.arrays(spec).stages["weights"])[0]


def wanted(engine, shows):
    """Every map whole: its weights or differences, its kinds of cells, its scale."""
    hidden = paper_cells.future(18, 18)
    if shows == "gallery":
        maps = {name: weights(engine, edited(TEXT, **order)) for name, order in ORDERS.items()}
        high = max(float(one.max()) for one in maps.values())
        closed = {name: hidden if name not in ("none", "fill-0") else np.zeros_like(hidden) for name in maps}
        return [(one, paper_cells.kinds_of(one, closed[name]), Scale(0.0, high)) for name, one in maps.items()]
    a, b = weights(engine, TEXT), weights(engine, OPEN)
    both = Scale(0.0, float(max(a.max(), b.max())))
    found = [(a, paper_cells.kinds_of(a, hidden), both), (b, paper_cells.kinds_of(b, np.zeros_like(hidden)), both)]
    if shows == "difference":
        gap = b.astype(np.float64) - a
        bound = float(np.abs(gap).max())
        found.append((gap, np.full(gap.shape, CellClass.ORDINARY), Scale(-bound, bound, diverging=True)))
    return found


@pytest.mark.parametrize("shows", ["a-b", "difference", "gallery"])
def test_the_cells_of_a_part_have_the_colours_of_their_numbers_and_it_is_remembered(tmp_path, engine, shows):
    figure, path = part_of(shows), tmp_path / "part.png"
    drawing, _ = rendering.drawing_of(figure, engine)
    write_drawing(path, drawing, figure.paper, remember(figure), lambda _share: None)
    assert recall(path) == figure
    shown, maps = pixels_of(path), wanted(engine, shows)
    assert len(drawing.maps) == len(maps)
    for (matrix, place), (values, kinds, scale) in zip(drawing.maps, maps, strict=True):
        assert matrix.crop == Crop(ROWS, COLS, (18, 18))
        assert (matrix.frame.level, matrix.frame.scale) == (1, scale)
        xs, ys, colours = paper_cells.cells(place, values[CELLS], kinds[CELLS], scale, drawing.style).points(1)
        assert len(xs) >= 27  # all that are not hatched
        assert largest_error(shown[ys, xs], colours) == 0
        if matrix.frame.row_sums is not None:
            np.testing.assert_allclose(matrix.frame.row_sums, values.sum(1)[CELLS[0]], atol=1e-6)
    told = [matrix.frame.row_sums is not None for matrix, _ in drawing.maps]
    assert told == [True, True, False][: len(maps)] if shows != "gallery" else all(told)


@pytest.mark.parametrize("theme", ["light", "print"])
@pytest.mark.parametrize("shows", ["difference", "gallery"])
def test_a_part_says_which_it_is_and_names_its_own_tokens(engine, shows, theme):
    drawing, _ = rendering.drawing_of(part_of(shows, paper=Paper(theme=theme)), engine)
    _, words, margin = painted(drawing)
    assert overlapping(words) == []
    assert outside(words, drawing.size, margin) == []
    assert over_maps(words, [place for _, place in drawing.maps], margin) == []
    said = [text for text, _ in words]
    assert CAPTION in " ".join(said)
    assert not {*WORDS[12:], WORDS[0]} & {*said}
    assert "Σ all" in said or shows == "gallery"
    every = 2 if shows == "gallery" else 1  # its columns are too narrow for each to be named
    left, top = min(place.x for _, place in drawing.maps), min(place.y for _, place in drawing.maps)
    for _, place in drawing.maps:  # the names of all stand beside and above the outer ones
        rows, cols = {}, {}
        for text, outline in words:
            box = outline.boundingRect().translated(-margin - place.x, -margin - place.y)
            if -20 < box.right() <= 0 < box.center().y() < place.height:
                rows[text] = int(box.center().y() / place.height * 6)
            elif -20 < box.bottom() <= 0 < box.left() < place.width and text in WORDS:
                cols[text] = int(box.left() / place.width * 10)
        assert rows == {text: row for row, text in enumerate(WORDS[3:9]) if place.x == left}
        assert cols == {WORDS[2 + col]: col for col in range(0, 10, every) if place.y == top}


@pytest.mark.parametrize(
    ("rows", "paper", "names"),
    [((3, 5), Paper(), {*WORDS}), (ROWS, Paper(width=1004, height=709, dpi=300.0, theme="print"), set())],
)
def test_of_a_thin_part_every_name_is_read_and_of_a_tiny_one_none(engine, rows, paper, names):
    """There stood "e…" and "…" above the one, and beside the other one name of six, which made it smaller still."""
    view = View(rows=rows, cols=None if names else COLS)
    drawing, _ = rendering.drawing_of(part_of("difference", view=view, paper=paper), engine)
    said = [text for text, _ in painted(drawing)[1]]
    assert {text for text in said if text.rstrip("…") in WORDS or text.endswith("…")} == names


def test_colour_bars_do_not_stand_where_their_words_are_cut(engine):
    spec = make_spec(RandomEmbeddings(length=600))
    view = View(rows=(300, 306))
    drawing, _ = rendering.drawing_of(
        part_of("difference", spec=spec, beside=edited(spec, mask="none"), view=view, paper=Paper()), engine
    )  # fmt: skip
    assert "weight · log scale" in [text for text, _ in painted(drawing)[1]]


def test_red_frames_stand_in_the_cells_of_the_part_that_peek(engine):
    drawing, _ = rendering.drawing_of(part_of("a-b"), engine)
    image, _, margin = painted(drawing)
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width())
    for (matrix, place), peeks in zip(drawing.maps, (False, True), strict=True):
        assert matrix.shows_red == peeks
        side = place.width / 10
        for row, col in np.ndindex(6, 10):
            y, x = int(margin + place.y + row * side), int(margin + place.x + col * side)
            cell = pixels[y + 1 : y + int(side), x + 1 : x + int(side)]
            assert (cell == drawing.style.leak.rgb()).any() == (peeks and col + COLS[0] > row + ROWS[0])


def test_what_is_hidden_is_outlined_within_the_part_and_no_label_is_cut(engine):
    """The line around what is hidden ran along the part's edge and beyond it, and a column's number was cut to "4…"."""
    spec = make_spec(RandomEmbeddings(length=450))
    paper = Paper(width=1004, height=709, dpi=300.0, theme="print")
    view = View(rows=(300, 428), cols=(300, 428))
    drawing, _ = rendering.drawing_of(part_of("difference", spec=spec, beside=edited(spec, mask="none"), view=view,
                                              paper=paper), engine)  # fmt: skip
    image, words, margin = painted(drawing)
    assert [text for text, _ in words if text.endswith("…")] == []
    assert "420" in [text for text, _ in words]
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width())
    for _, place in drawing.maps[:2]:
        assert place.height >= 128  # a cell has a pixel at least
        beyond = pixels[int(margin + place.y) : int(margin + place.bottom), int(margin + place.right) :][:, 1:14]
        assert (beyond == drawing.style.card.rgb()).all()
    place = drawing.maps[1][1]  # what is hidden goes on above: there is no edge, but where the diagonal begins
    above = pixels[int(margin + place.y) :, int(margin + place.x) + 30 : int(margin + place.right)][:4]
    assert not (above == drawing.style.leak.rgb()).any()


def test_the_sentence_is_of_the_whole_map_where_nothing_hidden_is_in_sight(engine):
    """It named the open map among those that hide what is to be hidden."""
    drawing, _ = rendering.drawing_of(part_of("gallery", view=View(rows=(8, 12), cols=(0, 4))), engine)
    assert not any(matrix.shows_red for matrix, _ in drawing.maps)
    said = [text for text, _ in painted(drawing)[1]]
    assert "What hides all it must and has rows that add up to 1: three-step, −∞." in said


def test_a_part_of_a_long_map_is_exact_and_said_where_it_is_not(engine):
    spec = make_spec(RandomQK(length=600))
    figure = part_of("gallery", spec=spec, view=View(rows=(100, 400), cols=(100, 400)))
    drawing, _ = rendering.drawing_of(figure, engine)
    own = weights(engine, spec)[100:400, 100:400]
    matrix = next(one for one, _ in drawing.maps if one.title in (order_name("neg-inf"), "−∞"))
    assert matrix.frame.level == 1
    np.testing.assert_array_equal(matrix.frame.values, own)
    coarse = part_of("gallery", spec=spec, view=figure.view, question=GalleryQuestion(spec=spec, pixels=100))
    drawing, _ = rendering.drawing_of(coarse, engine)
    _, words, _ = painted(drawing)
    assert "brightest of 4 × 4 cells" in " ".join(text for text, _ in words)


# -------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shows", "gallery", "--rows", "6:9"], "--rows begins at 6, but the map has 6: begin below that"),
        (["--shows", "gallery", "--cols", "7:"], "--cols begins at 7, but the map has 6"),
        (["--shows", "a-b", "--beside", "mask=none", "--cols", "6:"], "--cols begins at 6, but the map has 6"),
        (["--shows", "difference", "--beside", "text=a b c", "--rows", "4:9"], "A has 6 queries and 6 keys, B 3 qu"),
        (["--shows", "difference", "--beside", "text=a b c", "--rows", "7:9"], "A has 6 queries and 6 keys, B 3 qu"),
        (["--shows", "gallery", "--ask", "rows=1,2"], "gallery is not asked for rows: give one of head, row, pixels"),
    ],
)
def test_a_part_beyond_the_map_is_refused(tmp_path, capsys, arguments, words):
    assert cli.run(["render", *arguments, "--image", str(tmp_path / "a.png")]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_python_is_told_what_the_command_line_is(tmp_path):
    path = tmp_path / "a.png"
    with pytest.raises(SpecError, match=r"^rows begins at 9, but the map has 6: begin below that$"):
        attnviz.render(make_spec(), path, shows="gallery", rows=(9, 10))
    look = {"shows": "difference", "beside": {"mask": "none"}, "rows": (1, 3), "size": (320, 200)}
    attnviz.render(make_spec(), path, **look)
    assert recall(path).view.rows == (1, 3)


def test_a_question_leaves_its_part_to_the_view():
    with pytest.raises(SpecError, match="the question has columns of its own: give them to the figure's view"):
        part_of("gallery", question=GalleryQuestion(spec=TEXT, cols=(0, 2)))
    with pytest.raises(SpecError, match=r"^rows is 4:2: the end must lie beyond the start"):
        GalleryQuestion(spec=TEXT, rows=(4, 2))


# ---------------------------------------------------------------------------------------------------- decks, and again


def test_a_deck_and_the_command_line_draw_the_same_part(tmp_path, engine):
    deck, picture = tmp_path / "deck.toml", tmp_path / "a.png"
    deck.write_text('[[figure]]\nfile = "a.png"\nshows = "difference"\nsize = "320x200"\nrows = "1:3"\ncols = ":99"\n'
                    'beside = { mask = "none" }\n', "utf-8")  # fmt: skip
    [one] = scene_files.read(deck).figures
    figure = clipped(one.figure)
    assert (figure.view.rows, figure.view.cols) == ((1, 3), (0, 6))
    rendering.write_figure(tmp_path / "deck.png", figure, engine)
    arguments = ("--shows", "difference", "--size", "320x200", "--beside", "mask=none", "--rows", "1:3", "--cols", ":9")
    assert cli.run(["render", *arguments, "--image", str(picture)]) == 0
    assert (tmp_path / "deck.png").read_bytes() == picture.read_bytes()
    [again] = scene_files.parse(scene_files.deck_text({"a.png": figure}), "deck", tmp_path).figures
    assert again.figure == figure


def test_another_part_leaves_what_was_asked(tmp_path):
    first, other = tmp_path / "a.png", tmp_path / "b.png"
    asked = ("--shows", "gallery", "--ask", "pixels=64", "--rows", "1:", "--size", "320x200")
    assert cli.run(["render", *asked, "--image", str(first)]) == 0
    figure = recall(first)
    assert (figure.view.rows, figure.question.pixels, figure.question.rows) == ((1, 6), 64, None)
    assert cli.run(["render", "--spec", str(first), "--rows", "2:4", "--image", str(other)]) == 0
    assert recall(other) == msgspec.structs.replace(figure, view=View(rows=(2, 4)))
