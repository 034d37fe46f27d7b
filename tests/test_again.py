"""A remembered figure and later options: one option changes one thing, and what nobody gave is in nobody's way."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from test_remembered import png_of

from attnviz import cli
from attnviz.figures import Figure
from attnviz.options.figure import figure_for
from attnviz.questions.dropout import DropoutQuestion
from attnviz.remembered import recall, remember
from attnviz.scene_files import deck_text, parse
from attnviz.spec import Lesson, Paper, SpecError, Text, View, edited, make_spec

JOURNEY = make_spec(Lesson(name="journey"))
DROPS = edited(JOURNEY, dropout=0.5, training=True)


@pytest.fixture
def later(tmp_path):
    """The figure that ``options`` make of a picture of a figure."""

    def made(figure, **options):
        (tmp_path / "a.png").write_bytes(png_of(remember(figure)))
        return figure_for({"spec_file": str(tmp_path / "a.png"), **options})

    return made


def asked(ask, **options):
    return figure_for({"question": tuple(ask.items()), **options})


STUDIES = [
    asked({"steps": "20"}, animates="exam", frames=3),
    asked({"head": "1"}, animates="rounds", row=2),
    asked({"steps": "20", "masks": "none,neg-inf"}, shows="exam", animates="exam", parts=("losses",)),
]


@pytest.mark.parametrize("figure", STUDIES, ids=lambda figure: f"{figure.shows}-{figure.animates}")
def test_a_study_that_moves_is_given_back_by_a_picture_and_by_a_deck(later, figure):
    assert later(figure) == figure
    deck = parse(deck_text({"a.gif": figure}), "deck", Path())
    assert [one.figure for one in deck.figures] == [figure]
    wide = later(figure, size=(640, 400, None))
    assert (wide.question, wide.paper.size) == (figure.question, (640, 400))


def test_a_gif_is_drawn_again(tmp_path, qapp):
    first, again = tmp_path / "a.gif", tmp_path / "b.gif"
    asks = ["--animate", "rounds", "--ask", "head=1", "--frames", "2", "--size", "320x200"]
    assert cli.run(["render", *asks, "--image", str(first)]) == 0
    assert cli.run(["render", "--spec", str(first), "--image", str(again)]) == 0
    assert first.read_bytes() == again.read_bytes()
    assert recall(again).question.head == 1


SUMS = Figure(spec=DROPS, shows="dropout", parts=("sums", "maps"), question=DropoutQuestion(spec=DROPS, row=5, draws=9))
PART = Figure(
    spec=JOURNEY, beside=edited(JOURNEY, mask="none"), shows="difference", view=View(rows=(1, 3), cols=(0, 2)), row=1
)
STAGES = Figure(spec=JOURNEY, animates="stages", frames=5)
EXAM = replace(STUDIES[0], parts=("losses",))


@pytest.mark.parametrize(
    ("figure", "options", "wanted"),
    [
        (SUMS, {"shows": "heads"}, {"shows": "heads", "parts": (), "question": None}),
        (SUMS, {"shows": "gallery"}, {"shows": "gallery", "parts": ("maps",), "question": None}),
        (SUMS, {"shows": "dropout"}, {}),
        (SUMS, {"parts": ()}, {"parts": ()}),
        (PART, {"shows": "heads"}, {"shows": "heads", "beside": None}),
        (PART, {"shows": "a-b"}, {"shows": "a-b"}),
        (PART, {"shows": "row"}, {"shows": "row", "view": View()}),
        (PART, {"shows": "leaks"}, {"shows": "leaks", "beside": None, "view": View()}),
        (PART, {"shows": "row", "rows": (1, 2)}, {"shows": "row", "view": View(rows=(1, 2))}),
        (STAGES, {"shows": "row"}, {"shows": "row", "animates": "nothing"}),
        (STAGES, {"shows": "exam", "animates": "exam"}, {"shows": "exam", "animates": "exam"}),
        (EXAM, {"animates": "stages"}, {"animates": "stages", "parts": (), "question": None}),
        (EXAM, {"shows": "exam"}, {"shows": "exam"}),
        (EXAM, {"shows": "forms"}, {"shows": "forms", "parts": (), "animates": "nothing", "question": None}),
    ],
)
def test_what_cannot_be_of_what_is_now_shown_is_left_behind(later, figure, options, wanted):
    assert later(figure, **options) == replace(figure, **wanted)


def test_what_is_given_is_refused_where_it_cannot_be(later):
    with pytest.raises(SpecError, match="parts has 'sums': heads is one picture"):
        later(SUMS, shows="heads", parts=("sums",))
    other = later(PART, shows="heads", text="a b c d")  # B was of the lesson's width
    assert (other.spec.source, other.beside) == (Text(text="a b c d"), None)


def test_parts_can_be_taken_back(tmp_path, qapp):
    first, other = tmp_path / "a.png", tmp_path / "b.png"
    shown = ["--shows", "dropout", "--train", "--dropout", ".5", "--ask", "draws=9", "--size", "640x400"]
    assert cli.run(["render", *shown, "--parts", "sums", "--image", str(first)]) == 0
    assert recall(first).parts == ("sums",)
    assert cli.run(["render", "--spec", str(first), "--parts", "", "--image", str(other)]) == 0
    assert recall(other) == replace(recall(first), parts=())
    deck = parse(f'[[figure]]\nfile = "c.png"\nspec = "{first.name}"\nparts = []', "deck", tmp_path)
    assert deck.figures[0].figure == recall(other)


def test_a_question_follows_the_options_that_say_what_it_asks(later):
    rounds = STUDIES[1]
    assert (later(rounds, head=0).question.head, later(rounds, heads=(0,)).question.head) == (0, 0)
    assert later(rounds, mask="three-step").question.head == 1
    forms = asked({"tokens": "64", "device": "cuda:0"}, shows="forms")
    assert (later(forms, device="cpu").question.device, later(forms, theme="dark").question.device) == ("cpu", "cuda:0")
    pair = asked({"pixels": "64"}, shows="a-b", beside=(("mask", "none"),))
    other = later(pair, shows="difference", mask="three-step").question
    assert (other.pixels, other.a.mask, other.b.mask) == (64, "three-step", "none")


def test_a_question_about_another_computation_stays_until_that_is_changed(later):
    figure = replace(SUMS, question=replace(SUMS.question, spec=edited(DROPS, dropout=0.25)))
    assert later(figure, theme="dark") == replace(figure, paper=Paper(theme="dark"))
    assert later(figure, seed=7).question.spec == edited(DROPS, seed=7)
