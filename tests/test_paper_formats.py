"""Every format of every figure: the file is opened again, and its cells have the colours of the numbers."""

import re
from contextlib import closing

import numpy as np
import paper_cells
import pytest
from msgspec.structs import replace
from paper_drawings import apart, by_poppler, by_rsvg, largest_error, pixels_of, run, tool

from attnviz import remembered, rendering, studies
from attnviz.engine import Engine
from attnviz.figure.formats.png import image_of
from attnviz.figure.styles import style_of_theme
from attnviz.figure_questions import question_of
from attnviz.figures import SHOWS, Figure
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.spec import Lesson, Paper, RandomEmbeddings, SpecError, Text, View, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")

JOURNEY = make_spec(Lesson(name="journey"))
OPEN = edited(JOURNEY, mask="none")
CAT = make_spec(Lesson(name="cat-eats-fish"), mask="neg-inf")
WORDS = make_spec(Text(text="猫吃鱼"), num_heads=2, dropout=0.5, training=True)
DROPPED = edited(JOURNEY, dropout=0.5, training=True)
TWENTY_FIVE = make_spec(RandomEmbeddings(length=24), num_heads=25, d_model=25, d_out=50)

FIGURES = {
    "one head": Figure(spec=WORDS, view=View(stage="dropped_weights", head=1)),
    "25 heads": Figure(spec=TWENTY_FIVE),
    "a-b": Figure(shows="a-b", spec=OPEN, beside=JOURNEY),
    "difference": Figure(shows="difference", spec=OPEN, beside=JOURNEY),
    "gallery": Figure(shows="gallery", spec=CAT),
    "row": Figure(shows="row", spec=JOURNEY, row=3),
    "dropout": Figure(shows="dropout", spec=DROPPED, question=DropoutQuestion(spec=DROPPED, row=2, draws=60)),
    "heads-study": Figure(shows="heads-study", spec=JOURNEY),
    "rounds": Figure(shows="rounds", spec=JOURNEY),
    "exam": Figure(shows="exam", question=ExamQuestion(steps=20)),
    "future-share": Figure(shows="future-share", question=FutureShareQuestion(draws=5)),
    "forms": Figure(shows="forms", question=FormsQuestion(tokens=16, d_model=8, num_heads=2, repeats=1)),
    "leaks": Figure(shows="leaks", spec=edited(JOURNEY, mask="multiply")),
}
FORMATS = {"png": "dark", "svg": "light", "pdf": "dark", "gif": "light"}
"""Each with the theme that it is drawn in."""

SIZE = (1280, 800)
ZOOM = 2
PALETTE = 4
"""Of 255: no colour of a cell is further from that of its number in a GIF, which has 256 of them."""


@pytest.fixture(scope="module")
def answered():
    """Every study's answers, which are computed once; question → all of them."""
    kept, real = {}, studies.answers

    def answers(question, cancelled=lambda: False):
        if question not in kept:
            kept[question] = list(real(question, cancelled))
        yield from kept[question]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "answers", answers)
        yield kept


@pytest.fixture(scope="module")
def engine(answered):
    with closing(Engine()) as made:
        yield made


@pytest.fixture
def write(monkeypatch, engine):
    """`rendering.write_figure` to a path; it gives the last drawing that was written."""
    drawn, real = [], rendering.drawing_of

    def noted(*given):
        made = real(*given)
        drawn.append(made[0])
        return made

    def written(path, figure):
        rendering.write_figure(path, figure, engine)
        assert remembered.recall(path) == figure
        return drawn[-1] if drawn else None

    monkeypatch.setattr(rendering, "drawing_of", noted)
    return written


def on_paper(name, theme, **paper):
    return replace(FIGURES[name], paper=Paper(width=SIZE[0], height=SIZE[1], theme=theme, numbers=False, **paper))


def opened(path):
    """The picture in a file on a sheet `ZOOM` times as large where it has no pixels of its own, and how much larger."""
    drawn = path.with_suffix(".drawn.png")
    if path.suffix == ".svg":
        return by_rsvg(path, drawn, ZOOM), ZOOM
    if path.suffix == ".pdf":
        return by_poppler(path, drawn, 96 * ZOOM), ZOOM
    return (paper_cells.gif_pictures(path)[0][0] if path.suffix == ".gif" else pixels_of(path)), 1


def test_every_figure_is_here():
    assert {figure.shows for figure in FIGURES.values()} == set(SHOWS)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_opened_again_has_the_colours_of_the_numbers(
    tmp_path, monkeypatch, write, engine, answered, suffix, name
):  # fmt: skip
    figure, path = on_paper(name, FORMATS[suffix]), tmp_path / f"a.{suffix}"
    noted = paper_cells.noted_places(monkeypatch)
    drawing, style = write(path, figure), style_of_theme(FORMATS[suffix])
    if suffix == "pdf":
        assert words_of(drawing) <= set(said_in(path).split())
    if figure.shows in ("future-share", "forms"):
        looks_like_the_png(path, drawing, figure)
        return
    shown, zoom = opened(path)
    assert shown.shape == (SIZE[1] * zoom, SIZE[0] * zoom)
    if figure.shows == "row":
        weights = engine.arrays(figure.spec).stages["weights"][0, figure.row]
        looked = [paper_cells.bars(weights, noted["bars"][: len(weights)], style, zoom)]
    else:
        if figure.shows == "heads":
            maps = paper_cells.heads(figure, engine, drawing, style)
        else:
            answer, of_study = answered[question_of(figure)][-1], paper_cells.STUDIES[figure.shows]
            maps = of_study(figure, answer, noted["leaks"] if figure.shows == "leaks" else drawing, style)
        assert all(one.side >= 3 for one in maps)
        looked = [one.points(zoom) for one in maps]
    assert all(len(xs) for xs, _, _ in looked)
    found = np.concatenate([shown[ys, xs] for xs, ys, _ in looked])
    wanted = np.concatenate([rgb for _, _, rgb in looked]).astype(np.uint32)
    if suffix == "gif":
        error = paper_cells.palette_error(found, wanted, paper_cells.gif_pictures(path)[2])
        assert error <= (PALETTE if n_colours(drawing, figure) > 256 else 0)
    else:
        assert largest_error(found, wanted) <= (0 if suffix == "png" else 1)


def n_colours(drawing, figure):
    return len(np.unique(image_pixels(drawing, figure.paper)))


def looks_like_the_png(path, drawing, figure):
    """What has no cells is compared with the image that the drawing makes, pixel by pixel."""
    wanted = image_pixels(drawing, figure.paper)
    if path.suffix == ".gif":
        shown, _, palette = paper_cells.gif_pictures(path)
        paper_cells.palette_error(shown[0], wanted, palette)
        return
    if path.suffix == ".png":
        np.testing.assert_array_equal(pixels_of(path), wanted)
        return
    drawn = path.with_suffix(".drawn.png")
    mean, wrong = apart(by_rsvg(path, drawn, 1) if path.suffix == ".svg" else by_poppler(path, drawn, 96), wanted)
    assert mean < 3.4
    assert wrong < 0.01


def said_in(path):
    return run(tool("pdftotext", "poppler"), "-layout", str(path), "-").decode()


def words_of(drawing):
    """The words of a figure's title and of what stands above and below its blocks."""
    plan = getattr(drawing, "_plan", None)
    lines = [drawing._sheet.title] if hasattr(drawing, "_sheet") else [drawing.title] if plan is None else [
        line.words for line in plan.lines
    ]  # fmt: skip
    return {word for line in lines for word in line.split()}


def test_a_pdf_says_its_tokens(tmp_path, write):
    write(tmp_path / "a.pdf", on_paper("one head", "light", title="猫吃鱼"))
    said = said_in(tmp_path / "a.pdf")
    assert "猫吃鱼" in said
    assert re.search(r"猫\s+吃\s+鱼", said)  # below the map's columns
    assert {"query", "key"} <= set(said.split())


def test_every_pixel_has_the_brightest_of_its_cells_and_nothing_is_smoothed(tmp_path, write, engine):
    """12 heads of 400 tokens: several cells a pixel of the map, which again lie on more pixels of the sheet."""
    spec = make_spec(RandomEmbeddings(length=400), num_heads=12, d_model=12, d_out=24)
    figure = Figure(spec=spec, paper=Paper(width=900, height=600, theme="dark"))
    pictures = {}
    for suffix in "png", "gif":
        drawing = write(tmp_path / f"a.{suffix}", figure)
        pictures[suffix], _ = opened(tmp_path / f"a.{suffix}")
    palette = paper_cells.gif_pictures(tmp_path / "a.gif")[2]
    maps = paper_cells.heads(figure, engine, drawing, style_of_theme("dark"))
    assert {len(one.rgb) for one in maps} == {100}
    for one in maps:
        x, y, wanted = one.nearest()
        there = slice(y, y + wanted.shape[0]), slice(x, x + wanted.shape[1])
        np.testing.assert_array_equal(pictures["png"][there], wanted)
        assert paper_cells.palette_error(pictures["gif"][there], wanted, palette) <= PALETTE


# ---------------------------------------------------------------------------------------------------------- animations

SMALL = Paper(width=640, height=400, numbers=False)


def animated(path, figure, write):
    write(path, figure)
    return paper_cells.gif_pictures(path)


def image_pixels(drawing, paper):
    image = image_of(drawing, paper)
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width()).copy()


def is_still(shown, palette, drawing, paper):
    """That a picture of an animation is what ``drawing`` is painted as."""
    wanted = image_pixels(drawing, paper)
    paper_cells.palette_error(shown, wanted, palette)
    off = np.abs(paper_cells.parts(shown.ravel()) - paper_cells.parts(wanted.ravel())).max(axis=1)
    assert off.max() <= 16  # edges of letters, which have most of the colours
    assert (off > 4).mean() < 0.005


def drawings_of(figure, engine):
    return [drawing for drawing, _ in rendering.moving(figure, engine)]


def all_differ(pictures):
    return all((one != other).any() for n, one in enumerate(pictures) for other in pictures[:n])


def test_stages_move(tmp_path, write, engine):
    figure = Figure(spec=JOURNEY, paper=SMALL, animates="stages", seconds=0.5)
    shown, times, palette = animated(tmp_path / "a.gif", figure, write)
    stages = ["scores", "scaled_scores", "masked_scores", "weights"]
    assert times == [500] * len(stages)
    for picture, stage, drawing in zip(shown, stages, drawings_of(figure, engine), strict=True):
        assert drawing._picture.view.stage == stage
        is_still(picture, palette, drawing, SMALL)
    assert all_differ(shown)
    shown, _, _ = animated(tmp_path / "b.gif", replace(figure, frames=2), write)
    assert len(shown) == 2


def test_re_rolls_draw_dropout_again(tmp_path, write, engine):
    figure = Figure(spec=DROPPED, paper=SMALL, animates="re-rolls", frames=4, seconds=0.12)
    shown, times, palette = animated(tmp_path / "a.gif", figure, write)
    assert times == [120] * 4
    for n, (picture, drawing) in enumerate(zip(shown, drawings_of(figure, engine), strict=True)):
        assert drawing._picture.spec == edited(DROPPED, dropout_seed=DROPPED.dropout_seed + n)
        assert drawing._picture.view.stage == "dropped_weights"
        is_still(picture, palette, drawing, SMALL)
    assert all_differ(shown)


@pytest.mark.parametrize(
    ("figure", "frames", "count"),
    [
        (FIGURES["rounds"], 12, 6),
        (FIGURES["rounds"], 3, 3),
        (FIGURES["exam"], 4, 4),
        (FIGURES["exam"], 1, 1),
    ],
)  # fmt: skip
def test_studies_move_from_answer_to_answer(tmp_path, write, engine, figure, frames, count):
    figure = replace(figure, paper=SMALL, shows="heads", animates=figure.shows, frames=frames, seconds=1.5)
    shown, times, palette = animated(tmp_path / "a.gif", figure, write)
    assert times == [1500] * count
    for picture, drawing in zip(shown, drawings_of(figure, engine), strict=True):
        paper_cells.palette_error(picture, image_pixels(drawing, SMALL), palette)
    assert all_differ(shown)
    whole = rendering.drawing_of(replace(figure, shows=figure.animates), engine)[0]
    assert [line.words for line in drawing._plan.head] == [line.words for line in whole._plan.head]


def test_where_nothing_moves_there_is_one_picture(tmp_path, write, engine):
    figure = Figure(spec=JOURNEY, paper=SMALL, frames=9)
    shown, _, palette = animated(tmp_path / "a.gif", figure, write)
    assert len(shown) == 1
    is_still(shown[0], palette, rendering.drawing_of(figure, engine)[0], SMALL)


def test_re_rolls_without_dropout_are_refused_in_a_sentence(tmp_path, engine):
    figure = Figure(spec=edited(JOURNEY, training=True), paper=SMALL, animates="re-rolls")
    with pytest.raises(SpecError, match=r"^re-rolls draw dropout again: give --train and --dropout too$"):
        rendering.write_figure(tmp_path / "a.gif", figure, engine)
    assert list(tmp_path.iterdir()) == []
