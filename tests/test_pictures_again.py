"""Pictures made again from pictures: two states, overrides, questions; what moves; the same bytes."""

import io

import numpy as np
import pytest
from msgspec.structs import replace
from paper_drawings import busy_drawing, figure_of
from PySide6.QtGui import QImage

from attnviz import cli, colour, opening, rendering, tables
from attnviz.engine import Engine
from attnviz.figure.formats import png, svg
from attnviz.figure_questions import question_of
from attnviz.figures import Figure
from attnviz.frames import Arrays, CellClass
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.remembered import recall
from attnviz.spec import Paper, SpecError, Text, View, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")

SMALL = ("--size", "320x200")
CAT = ("--lesson", "cat-eats-fish")


def render(*arguments):
    return cli.run(["render", *map(str, arguments)])


def test_a_picture_of_two_states_is_drawn_again_as_it_was(tmp_path):
    for name, *shown in ("d", "difference"), ("r", "row", "--row", 1):
        first, again = tmp_path / f"{name}.png", tmp_path / f"{name}-again.png"
        assert render(*CAT, "--shows", *shown, "--beside", "mask=none", *SMALL, "--image", first) == 0
        assert render("--spec", first, "--image", again) == 0
        assert first.read_bytes() == again.read_bytes()
        other = tmp_path / f"{name}-other.png"
        assert render("--spec", first, "--mask", "three-step", "--image", other) == 0
        assert (recall(other).spec.mask, recall(other).beside.mask) == ("three-step", "none")


def test_a_picture_of_some_heads_is_the_same_again_and_of_another_head_where_that_is_asked(tmp_path):
    first, again, other = (tmp_path / f"{name}.png" for name in "abc")
    assert render("--text", "a b c", "--heads", 3, "--pick", "0,2", *SMALL, "--image", first) == 0
    assert render("--spec", first, "--image", again) == 0
    assert first.read_bytes() == again.read_bytes()
    assert render("--spec", first, "--head", 1, "--image", other) == 0
    assert (recall(other).heads, recall(other).view.head) == ((), 1)


def test_what_a_study_was_asked_stays_asked(tmp_path):
    first, other = tmp_path / "a.png", tmp_path / "b.png"
    spec = ("--text", "a b c d", "--train", "--dropout", 0.5)
    assert render(*spec, "--shows", "dropout", "--row", 2, "--ask", "draws=20", *SMALL, "--image", first) == 0
    assert render("--spec", first, "--seed", 7, "--row", 1, "--image", other) == 0
    question = recall(other).question
    assert (question.draws, question.row, question.spec.seed) == (20, 1, 7)


def test_a_rows_picture_opens_with_its_own_state_in_sight():
    now, before = make_spec(Text(text="a b")), make_spec(Text(text="a b"), mask="none")
    row = opening.of_figure(Figure(spec=now, beside=before, shows="row", row=1))
    assert (row.spec, row.pinned[0], row.selected) == (now, before, (1, 1))
    pair = opening.of_figure(Figure(spec=now, beside=before, shows="a-b"))
    assert (pair.pinned[0], pair.spec) == (now, before)


def test_a_question_of_another_study_is_refused_in_words(tmp_path):
    figure = Figure(shows="gallery", question=FutureShareQuestion())
    with pytest.raises(SpecError, match="gallery asks the study gallery, but here is a question of future-share"):
        question_of(figure)
    figure = Figure(spec=make_spec(Text(text="a b c"), dropout=0.5, training=True), shows="dropout", animates="rounds")
    asked = replace(figure, question=replace(question_of(figure), draws=4), paper=Paper(width=320, height=200))
    rendering.write_figure(tmp_path / "a.gif", asked)  # of rounds, whatever else its picture was asked
    assert recall(tmp_path / "a.gif") == asked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--animate", "stages", "--image", "a.png"], "--animate stages is for a GIF"),
        (["--animate", "stages", "--shows", "row", "--image", "a.gif"], "stages are of heads"),
        (["--beside", "mask=none", "--image", "a.png"], "--beside is for --shows a-b, difference, row"),
        (["--shows", "dropout", "--rows", "0:2", "--image", "a.png"], "--rows is for --shows heads, a-b"),
        (["--row", "99", "--image", "a.png"], "row is 99: rows count from 0 to 5"),
        (["--shows", "gallery", "--parts", "maps,limits", "--data", "a.csv"], "but a .csv is one table"),
        (["--shows", "row", "--beside", "lesson=cat-eats-fish", "--data", "a.csv"], "A has 6 queries and 6 keys, B 3"),
        (
            ["--shows", "gallery", "--animate", "exam", "--parts", "limits", "--image", "a.gif"],
            "but --shows is gallery",
        ),
        (
            ["--shows", "difference", "--stage", "masked_scores", "--beside", "mask=none", "--data", "a.csv"],
            "B has no stage masked_scores: take one that both have",
        ),
        (["--shows", "row", "--stage", "scores", "--image", "a.png"], "--stage is for --shows heads, a-b, difference"),
        (
            ["--train", "--dropout", "0.5", "--animate", "re-rolls", "--stage", "queries", "--image", "a.gif"],
            "queries comes before it: give one of dropped_weights, context",
        ),
        (["--animate", "stages", "--stage", "context", "--image", "a.gif"], "leave --stage out"),
        (
            ["--shows", "row", "--text", "a b", "--heads", "2", "--pick", "0,1", "--image", "a.png"],
            "--pick is 0,1, but row is of one head: give one",
        ),
        (
            ["--text", "a b", "--heads", "2", "--stage", "output", "--pick", "1", "--image", "a.png"],
            "output is of all heads together: leave --pick out",
        ),
        (["--shows", "leaks", "--row", "2", "--image", "a.png"], "--row is for --shows heads, gallery, row, dropout"),
        (["--shows", "gallery", "--bound", "2", "--image", "a.png"], "--bound is for --shows heads, not gallery"),
        (["--seconds", "2", "--image", "a.png"], "--seconds is for pictures that move: give --animate too"),
        (
            ["--shows", "forms", "--heads", "2", "--image", "a.png"],
            "forms has num_heads of its own: give --ask num_heads=2 in place of --heads",
        ),
        (["--shows", "forms", "--ask", "heads=2", "--image", "a.png"], "give one of tokens, d_model, num_heads, batch"),
        (["--shows", "forms", "--ask", "num_heads=5", "--image", "a.png"], ": d_model is 768, which 5 heads"),
        (["--shows", "exam", "--ask", "masks=", "--image", "a.png"], ": masks has '': give none"),
        (
            ["--weights", "0.4 0.6; 0.5 0.5", "--shows", "gallery", "--image", "a.png"],
            "there is nothing to mask here: the weights are typed",
        ),
        (["--size", "8x6cm@0dpi", "--image", "a.png"], "size is '8x6cm@0dpi'"),
        (["--bound", "0", "--image", "a.png"], "bound is 0"),
    ],
)
def test_what_would_do_nothing_is_refused(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert render(*arguments) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_all_rows_are_asked_of_what_has_no_others(tmp_path):
    for shows in "row", "rounds":
        assert render(*CAT, "--shows", shows, "--rows", "all", "--cols", "all", "--data", tmp_path / "a.csv") == 0


def test_numbers_beside_an_animation_are_of_what_moves(tmp_path):
    asked = ("--animate", "exam", "--ask", "steps=1", "--ask", "masks=none", "--frames", 1, *SMALL)
    assert render(*asked, "--image", tmp_path / "a.gif", "--data", tmp_path / "a.csv") == 0
    assert (tmp_path / "a.csv").read_text().lstrip("\ufeff").startswith("mask,step,training,exam")


def test_equal_pictures_that_would_stand_too_long_are_refused(tmp_path, capsys):
    arguments = ("--lesson", "journey", "--animate", "re-rolls", "--train", "--dropout", "0.0000001", "--frames", 3)
    assert render(*arguments, "--no-caption", "--seconds", 600, *SMALL, "--image", tmp_path / "a.gif") == 2
    assert "equal pictures would stand" in capsys.readouterr().err


def test_draws_of_one_animation_have_one_scale():
    spec = make_spec(Text(text="the cat eats"), mask="none", dropout=0.5, training=True)
    figure = Figure(spec=spec, animates="re-rolls", frames=4, paper=Paper(width=320, height=200))
    engine = Engine()
    scales = {scale for drawing, _ in rendering.moving(figure, engine) for scale in drawing.scales.values()}
    engine.close()
    assert len(scales) == 1


def test_a_row_is_of_the_head_that_is_picked():
    spec = make_spec(Text(text="a b c"), num_heads=2)
    engine = Engine()
    images = [
        rendering.image_of(rendering.drawing_of(figure, engine)[0], figure.paper)
        for figure in (
            Figure(spec=spec, shows="row", heads=(1,), paper=Paper(width=320, height=200)),
            Figure(spec=spec, shows="row", view=View(head=1), paper=Paper(width=320, height=200)),
            Figure(spec=spec, shows="row", paper=Paper(width=320, height=200)),
        )
    ]
    engine.close()
    assert images[0] == images[1] != images[2]


def test_a_study_that_is_on_the_shelf_is_not_run_again(monkeypatch):
    figure = Figure(shows="future-share", question=FutureShareQuestion(draws=3), paper=Paper(width=320, height=200))
    engine, shelf = Engine(), {}
    first, _ = rendering.drawing_of(figure, engine, shelf=shelf)
    monkeypatch.setattr("attnviz.studies.answers", lambda *_: pytest.fail("it was run again"))
    second, _ = rendering.drawing_of(figure, engine, shelf=shelf)
    assert rendering.image_of(first, figure.paper) == rendering.image_of(second, figure.paper)
    engine.close()


def test_an_svg_does_not_depend_on_what_was_painted_before():
    paper = Paper(width=400, height=300)
    drawing = busy_drawing(paper)

    def written():
        file = io.BytesIO()
        svg.write_svg(file, drawing, paper, "{}", lambda _done: None)
        return file.getvalue()

    first = written()
    assert png.image_of(drawing, paper).width() == 400
    assert written() == first


def test_colours_end_at_the_bound(tmp_path):
    spec = make_spec(Text(text="a b c"))
    for bound in None, 1.0, 4.0:
        rendering.write_figure(tmp_path / f"{bound}.png", figure_of(spec, size=(320, 200), bound=bound))
    images = [QImage(str(tmp_path / f"{bound}.png")) for bound in (None, 1.0, 4.0)]
    assert images[0] != images[2] != images[1]


@pytest.mark.parametrize(("norm", "bound"), [("uniform", 3.0), ("uniform", 1.0), ("per-row", 0.5), ("auto", 0.7)])
def test_up_to_a_bound_is_coloured_what_the_bar_says(norm, bound):
    spec, shown = make_spec(Text(text="a b c d e f"), num_heads=2), []
    engine = Engine()
    for paper in Paper(width=400, height=300), Paper(width=400, height=300, bound=bound):
        drawing, _ = rendering.drawing_of(Figure(spec=spec, view=View(norm=norm), paper=paper), engine)
        shown.append(drawing._frames["head:1"])
    engine.close()
    plain, bounded = shown
    visible = np.arange(1, 7)[:, None]
    factor = {"uniform": visible, "per-row": 1 / np.nanmax(plain.values, 1, keepdims=True)}.get(norm, 1)
    assert (bounded.scale.quantity, bounded.scale.high) == (plain.scale.quantity, bound)
    table = list(colour.table(View().colours))
    for (row, col), said in np.ndenumerate(plain.values * factor):
        if plain.classes[row, col] == CellClass.ORDINARY:
            wanted = 255 * min(said / bound, 1)
            assert table.index(bounded.rgb[row, col]) == pytest.approx(wanted, abs=0.5 + plain.scale.high / bound)


def test_a_table_has_the_heads_that_are_picked_in_their_order_and_no_formulas():
    arrays = Arrays(("=1+1", "-", "b"), {"weights": np.eye(3, dtype=np.float32)[None].repeat(3, 0)})
    lines = tables.stage_csv(arrays, View(), heads=(2, 1)).text().split("\r\n")
    assert lines[0] == "head,query,token,'=1+1,-,b"
    assert [line[0] for line in lines[1:-1]] == ["2", "2", "2", "1", "1", "1"]


def test_meanings_stand_beside_the_tokens_that_need_them(tmp_path):
    from attnviz.figure.glosses import glossed

    engine = Engine()
    spec = make_spec(mask="none")
    outline = rendering.outline_of(engine, edited(spec), View(), lambda: False)
    assert glossed(outline) is outline
    from attnviz.spec import Lesson

    cat = rendering.outline_of(engine, make_spec(Lesson(name="cat-eats-fish")), View(), lambda: False)
    engine.close()
    assert glossed(cat).tokens == ("猫 cat", "吃 eats", "鱼 fish")
    assert glossed(cat).dims == ("猫味 cat-ness", "鱼味 fish-ness")  # the columns of a context had Chinese alone
