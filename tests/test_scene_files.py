"""Decks as text: whatever is written comes back, and what is wrong is told in a sentence with its line."""

import math
import os
import re
import string
import tomllib
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest
from fuzz import scenes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_remembered import papers
from test_spec import spans, specs

from attnviz.figure_questions import question_of
from attnviz.figures import ANIMATES, PARTS, SHOWS, Figure
from attnviz.files import FileProblem
from attnviz.lesson_files import scene
from attnviz.options.used import TAKES
from attnviz.questions.dropout import DropoutQuestion
from attnviz.scene_files import MAX_BYTES, MOST_TOLD, SceneProblem, built_in, deck_text, names, parse, place_in, read
from attnviz.scene_files.keys import KEY_OF
from attnviz.spec import (
    JOINT_STAGES,
    QUERY_KEY_STAGES,
    MaskFile,
    Paper,
    QKFile,
    SpecError,
    Text,
    TypedScores,
    View,
    edited,
    make_spec,
    stages_of,
    to_json,
)

CASES = int(os.environ.get("ATTNVIZ_CASES", "1500"))  # of damaged decks; python -m tests.fuzz scenes has a million
DECK = """\
# two pictures
[all]
size = "1920x1080"
theme = "light"

[[figure]]
file = "01-no-mask.png"
lesson = "cat-eats-fish"
mask = "none"
title = "Without a mask"

[[figure]]
file = "02-difference.svg"
shows = "difference"
beside = { mask = "none" }
rows = [0, 2]
"""


def figures_of(text, folder=Path()):
    return [one.figure for one in parse(text, "deck.toml", folder).figures]


def one(keys, folder=Path()):
    return figures_of(f'[[figure]]\nfile = "a.png"\n{keys}', folder)[0]


# -------------------------------------------------------------------------------------------------------------- reading


def test_a_deck_becomes_figures_with_what_holds_for_all():
    first, second = parse(DECK, "deck.toml", Path()).figures
    assert (first.file, first.line, second.file, second.line) == ("01-no-mask.png", 6, "02-difference.svg", 12)
    assert first.figure.spec.mask == "none"
    assert first.figure.paper == Paper(title="Without a mask")
    assert second.figure.beside == make_spec(mask="none")
    assert (second.figure.shows, second.figure.view.rows) == ("difference", (0, 2))


@pytest.mark.parametrize(
    ("keys", "same"),
    [
        ("no_caption = true", "caption = false"),
        ("eval = true", "train = false"),
        ('rows = "1:3"', "rows = [1, 3]"),
        ('pick = "0,1"', "pick = [0, 1]"),
        ('scores = "0.5 -inf; 0 2"', "scores = [[0.5, -inf], [0, 2.0]]"),
        ('weights = "0.4 0.6"', "weights = [0.4, 0.6]"),
        ('weights = "0.4 0.6"\ntokens = "A,B"', 'weights = [0.4, 0.6]\ntokens = ["A", "B"]'),
        ("fill = -1e4", 'fill = "-10000"'),
        ("heads = 4.0", "heads = 4"),
        ('size = "8.5x6cm"', 'size = "85x60mm@300dpi"'),
        ("d-out = 8\nmask-shape = 'window:2'", 'd_out = 8\nmask_shape = "window:2"'),
        (
            'shows = "a-b"\nbeside = { train = true, dropout = 0.5 }',
            'shows = "a-b"\n[figure.beside]\ndropout = 0.5\ntrain = true',
        ),
        ('shows = "row"\nbeside = { num-kv-heads = 1 }', 'shows = "row"\nbeside = { kv-heads = 1 }'),
    ],
)  # fmt: skip
def test_a_value_may_be_said_in_several_ways(keys, same):
    assert one(keys) == one(same)
    assert one(keys) != one("")


def test_a_step_is_its_lessons_and_all_may_name_the_lesson():
    figures = figures_of(
        '[all]\nlesson = "journey"\n[[figure]]\nfile = "a.png"\nstep = "3.5.1.4"\n'
        '[[figure]]\nfile = "b.png"\ntext = "a b"\n[[figure]]\nfile = "c.png"'
    )
    assert (figures[0].spec, figures[0].view) == scene("journey", "3.5.1.4")
    assert [figure.spec.source for figure in figures[1:]] == [Text(text="a b"), make_spec().source]


def test_what_asks_a_study_has_numbers_of_its_own():
    asked = one('shows = "dropout"\nrow = 1\ndropout = 0.5\nask = { draws = 7 }').question
    assert asked == DropoutQuestion(spec=make_spec(dropout=0.5), row=1, draws=7)


def test_files_are_those_beside_the_deck(tmp_path):
    spec = make_spec(mask="none", seed=5)
    (tmp_path / "s.json").write_text(to_json(spec, View(norm="log")))
    np.save(tmp_path / "m.npy", np.tri(6, dtype=bool))
    figure = one('spec = "s.json"\nmask-shape = "m.npy"\nmask = "neg-inf"\nnorm = "unit"', tmp_path)
    assert (figure.spec.seed, figure.view.norm, figure.spec.mask_shape.path) == (5, "unit", str(tmp_path / "m.npy"))
    found = parse('[[figure]]\nfile = "a.png"\nqk = "no.npz"\n[[figure]]\nfile = "b.png"', "d.toml", tmp_path).figures
    assert found[0].figure is None
    assert found[0].problem.startswith(f"cannot read {tmp_path / 'no.npz'}: there is no such file")
    assert found[1].figure == Figure()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('mask = "none"\nt', 'mask = "nine"\nt', 9, "mask is 'nine', which is not one of 'none', 'three-step'"),
        ("title", "titel", 10, "unknown key 'titel': did you mean title?"),
        ("title =", "qqqqq =", 10, "its keys are the options of attnviz render, without dashes"),
        ('"02-', '"../02-', 13, "give a name in the folder that --out names"),
        ('size = "1920x1080"', "size = 12", 3, 'size is 12: put it in quotes: "12"'),
        ('size = "1920x1080"', 'size = "big"', 3, "give WIDTHxHEIGHT"),
        ('size = "1920x1080"', 'size = "1x1"', 3, "at least 16 pixels"),
        ('{ mask = "none" }', '{ mask = "nano" }', 15, "mask is 'nano'"),
        ('{ mask = "none" }', '{ maks = "none" }', 15, "beside has an unknown key 'maks': did you mean mask?"),
        ('{ mask = "none" }', '{ heads = 0 }', 15, "heads is 0: give a whole number"),
        ('{ mask = "none" }', '"none"', 15, 'give a table, such as beside = { mask = "none" }'),
        ('beside = { mask = "none" }\n', "", 12, 'the other one, such as beside = { mask = "none" }'),
        ("rows = [0, 2]", "rows = [2, 2]", 16, "rows is 2:2: the end must lie beyond the start"),
        ("rows = [0, 2]", "rows = [0]", 16, "give the first one and the end, such as [0, 64]"),
        ("rows = [0, 2]", f'size = "{"9" * 400}x9"', 16, "a side has at most 32,767 pixels"),
        ("rows = [0, 2]", f'size = "0x9cm@{"9" * 400}dpi"', 16, "a side has at most 32,767 pixels"),
        ("rows = [0, 2]", f"size = '{'9' * 5000}x'", 16, ": give WIDTHxHEIGHT in pixels"),
        ("rows = [0, 2]", "heads = true", 16, "it is no switch"),
        ("rows = [0, 2]", "heads = 2.5", 16, "give a whole number"),
        ("rows = [0, 2]", "caption = 1", 16, "give true or false"),
        ("rows = [0, 2]", "seed = 99999999999999999999", 16, "a number of 20 digits"),
        ("rows = [0, 2]", "when = 1979-05-27", 16, "unknown key 'when'"),
        ("rows = [0, 2]", "seed = 1979-05-27", 16, "give a number or words in quotes"),
        ("rows = [0, 2]", "out-proj = true\nno-out-proj = true", 17, "says again what another key"),
        ("rows = [0, 2]", "scores = [[1, 2], [3]]", 16, "scores has 1 numbers in row 1"),
        ("rows = [0, 2]", 'step = "9.9"', 16, "step belongs to lesson: give that too"),
        ("rows = [0, 2]", 'head = 7', 16, "heads count from 0"),
        ("rows = [0, 2]", 'ask = { draws = 3 }', 16, "compare is not asked for draws"),
        ("rows = [0, 2]", "row = 1", 16, "row is for shows heads, gallery, row, dropout, rounds, not difference"),
        ("rows = [0, 2]", 'animate = "stages"', 16, "animate is for a GIF, but file is '02-difference.svg'"),
        ("rows = [0, 2]", 'stage = "masked_scores"', 16, "B has no stage masked_scores"),
        ('beside = { mask = "none" }', 'beside = { file = "a.png" }', 15, "unknown key 'file': did you mean fill?"),
        ('theme = "light"', 'file = "a.png"', 4, "file is of one figure: write it below [[figure]]"),
        ('"light"', '"lite"', 4, "theme is 'lite'"),
        ("02-difference.svg", "01-NO-mask.png", 13, "but the figure of line 6 has this name too"),
        ("[[figure]]\nfile = \"02", "[[figur]]\nfile = \"02", 12, "unknown key 'figur'"),
        ('file = "02-difference.svg"\n', "", 12, "the figure has no file"),
        ("[all]", "[[all]]", 2, "all is no table"),
        ("[all]", "[all", 2, "this is not TOML"),
        ("rows = [0, 2]", "rows" + ".a" * 99_999 + "=1", 16, "a key has more than 32 dots"),
        ("rows = [0, 2]", "[figure" + ' . "a.b"' * 33 + "]", 16, "a key has more than 32 dots"),
        (DECK, "", 1, "there is no [[figure]]"),
        (DECK, "figure = 3", 1, "figure is no list of tables"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(old, new, line, words):
    assert old in DECK
    with pytest.raises(SceneProblem) as problem:
        parse(DECK.replace(old, new), "deck.toml", Path())
    assert str(problem.value).startswith(f"deck.toml, line {line}: ")
    assert words in str(problem.value)
    assert "\n" not in str(problem.value)


def test_all_mistakes_of_a_deck_are_told_at_once():
    """One run names what one would otherwise find in as many."""
    figures = (
        'titel = "A"\nheads = 2.5', 'stage = "nope"', 'shows = "difference"', 'mask = "none"', 'norm = "unit"',
    )  # fmt: skip
    deck = "[all]\nseed = 3\n" + "".join(f'[[figure]]\nfile = "{n}.png"\n{keys}\n' for n, keys in enumerate(figures))
    with pytest.raises(SceneProblem) as problem:
        parse(deck.replace("4.png", "3.png"), "deck.toml", Path())
    told = [problem.value, *problem.value.others]
    words = ("unknown key 'titel'", "whole number", "stage is 'nope'", "say what differs", "has this name too")
    assert [one.line for one in told] == [5, 6, 9, 10, 17]
    assert all(word in str(one) for one, word in zip(told, words, strict=True))
    with pytest.raises(SceneProblem) as problem:  # what holds for all is wrong once
        parse(deck.replace("seed = 3", 'stage = "nope"'), "deck.toml", Path())
    assert [one.line for one in problem.value.others].count(2) == 0
    many = "".join(f'[[figure]]\nfile = "{n}.png"\nx = 1\n' for n in range(MOST_TOLD + 5))
    with pytest.raises(SceneProblem) as problem:
        parse(many, "deck.toml", Path())
    assert len(problem.value.others) == MOST_TOLD - 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("none", 'write "none"'), ("{ mask = none }", 'write "none"'), ("8.5x6cm", 'write "8.5x6cm"'),
        ("Without a mask # x", 'write "Without a mask"'), ('["a", b]', 'write "b"'), ("1:3", 'write "1:3"'),
        ("True", "write true for True"), ("-", "Invalid value"), ('"a" b', "Expected newline"),
    ],
)  # fmt: skip
def test_a_word_without_quotes_is_told(value, words):
    with pytest.raises(SceneProblem, match=f"line 3: this is not TOML: .*{re.escape(words)}"):
        one(f"mask = {value}")


def test_files_that_are_no_deck_are_told(tmp_path):
    (tmp_path / "a b.toml").write_bytes(b"# \xff")
    for path, words in (
        (tmp_path, "this is no file"), (tmp_path / "x.toml", "cannot be read: No such file"),
        (tmp_path / "a b.toml", "a b.toml, line 1: this is not UTF-8 text"), (Path("a\0.toml"), "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(SceneProblem, match=words):
            read(path)
    (tmp_path / "big.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(SceneProblem, match="larger than 2 MB"):
        read(tmp_path / "big.toml")
    many = "".join(f'[[figure]]\nfile = "{n}.png"\n' for n in range(10_001))
    with pytest.raises(SceneProblem, match=r"line 20001: there are 10,001 figures: a deck has at most 10,000"):
        parse(many, "deck.toml", Path())


# ---------------------------------------------------------------------------------------------------------- file names

BAD_NAMES = [
    "", " ", "..", "../a.png", "a/../b.png", "/a.png", "a//b.png", "./a.png", "C:/a.png", "c:a.png", "a\\b.png",
    "\\\\server\\a.png", "nul.png", "CON.png", "com1.svg", "a/aux/b.png", "lpt¹.png", "a.png.", "a.png ", "a /b.png",
    "a\0.png", "a\n.png", "a.jpg", "a", ".png", "x" * 1001 + ".png", 3, ["a.png"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_could_lead_out_is_refused(tmp_path, name):
    with pytest.raises(SpecError):
        place_in(tmp_path, name)
    if isinstance(name, str):
        with pytest.raises(SceneProblem, match="file is"):
            parse(f"[[figure]]\nfile = {scenes.toml(name)}", "deck.toml", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["a.png", "A b.PNG", "猫 吃 鱼.svg", "🐟.pdf", "in/side/a.gif", "n.npz", "x..y.csv", "~/a.png"]
)
def test_a_plain_name_is_a_place_in_the_folder(tmp_path, name):
    assert place_in(tmp_path, name) == tmp_path.resolve() / name
    assert place_in(tmp_path, name).parent.is_dir()


def test_a_link_that_leads_out_is_refused(tmp_path):
    out, inside = tmp_path / "out", tmp_path / "out" / "in"
    inside.mkdir(parents=True)
    (out / "away").symlink_to(tmp_path)
    (out / "a.png").symlink_to(tmp_path / "b.png")
    (out / "here").symlink_to(inside)
    (out / "ring").symlink_to(out / "ring")
    for name in ("away/x.png", "away/new/x.png", "a.png", "ring/a.png"):
        with pytest.raises(FileProblem):
            place_in(out, name)
    assert place_in(out, "here/x.png").resolve() == inside / "x.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


# -------------------------------------------------------------------------------------------------------------- writing


@st.composite
def figures(draw):
    """Figures that have what their kind can show, and no more: the rest is refused."""
    shows = draw(st.sampled_from(SHOWS))
    animates = draw(st.sampled_from(ANIMATES if shows == "heads" else ["nothing"]))
    kind = animates if animates in SHOWS else shows
    has = {field for field, kinds in TAKES.items() if kind in kinds}
    own = kind in ("exam", "future-share", "forms")  # numbers of their own
    spec = make_spec() if own else draw(specs())
    stages = [stage for stage in stages_of(spec) if stage in QUERY_KEY_STAGES or shows == "heads"]
    still = "stage" in has and animates == "nothing"
    stage = draw(st.sampled_from(stages)) if still else "weights"
    one = has & {"head", "heads"} and stage not in JOINT_STAGES
    heads = tuple(draw(st.lists(st.integers(0, spec.num_heads - 1), unique=True, max_size=9 if kind == "heads" else 1)))
    heads = heads if one else ()
    head = draw(st.none() | st.integers(0, spec.num_heads - 1)) if one and not heads else None
    view = View(
        stage=stage, head=head, **{name: draw(spans) for name in ("rows", "cols") if name in has},
        norm=draw(st.sampled_from(["auto", "unit"])) if "norm" in has else "auto",
        pooling=draw(st.sampled_from(["max", "share"])) if "pooling" in has else "max",
    )  # fmt: skip
    other = st.just(edited(spec, dtype="float64")) | (specs() if shows != "row" else st.none())
    other = other.filter(lambda other: other is None or stage in ("weights", *stages_of(other)))
    beside = draw(other) if "beside" in has else None
    parts = draw(st.lists(st.sampled_from(PARTS[kind]), unique=True)) if kind in PARTS else []
    paper = draw(papers)
    if "bound" not in has:
        paper = msgspec.structs.replace(paper, bound=None)
    moving = (
        {"frames": draw(st.integers(1, 500)), "seconds": draw(st.floats(0.02, 600))} if animates != "nothing" else {}
    )
    return Figure(
        parts=tuple(parts), spec=spec, view=view, paper=paper, shows=shows, heads=heads,
        row=draw(st.none() | st.integers(0, 99)) if "row" in has else None, beside=beside, animates=animates, **moving,
    )  # fmt: skip


def is_all_in_it(figure):
    """Whether nothing of ``figure`` lies in another file."""
    whole = [spec for spec in (figure.spec, figure.beside) if spec is not None]
    return not any(isinstance(s.source, QKFile) or isinstance(s.mask_shape, MaskFile) for s in whole)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], max_examples=100)
@given(st.lists(figures().filter(is_all_in_it), min_size=1, max_size=3), st.booleans())
def test_every_figure_survives_a_deck(figures, explained):
    text = deck_text({f"{n}.gif": figure for n, figure in enumerate(figures)}, "A deck", explained=explained)
    assert figures_of(text) == figures


def test_questions_and_files_survive_a_deck(tmp_path):
    np.savez(tmp_path / "a.npz", queries=np.ones((2, 3, 4), np.float32), keys=np.ones((2, 3, 4), np.float32))
    np.save(tmp_path / "m.npy", np.tri(3, dtype=bool))
    named = TypedScores(scores=((1.0, -math.inf), (0.1, 2.0)), tokens=("a,b", 'c"\\\n\0\t猫'))
    said = {"beside": 'beside = { mask = "none" }', "row": "row = 1"}
    asked = [
        one(
            "\n".join(
                [
                    f'shows = "{shows}"',
                    "dropout = 0.5",
                    *(keys for field, keys in said.items() if shows in TAKES[field]),
                ]
            )
        )
        for shows in SHOWS[1:]
        if shows != "row"
    ]
    written = [msgspec.structs.replace(figure, question=question_of(figure)) for figure in asked]
    written += [
        one(f'qk = "{tmp_path / "a.npz"}"\nmask-shape = "{tmp_path / "m.npy"}"'),
        Figure(spec=make_spec(named, mask="none", fill=-5.0)),
        one('shows = "exam"\nask = { steps = 5, masks = ["none", "neg-inf"] }'),
        one('shows = "forms"\nask = { tokens = 64, dtype = "float64" }'),
    ]
    text = deck_text({f"{n}.png": figure for n, figure in enumerate(written)})
    assert figures_of(text) == written


def test_a_deck_says_what_differs_and_what_else_can_be_set():
    text = deck_text({"1.png": Figure(spec=make_spec(mask="none"))}, "Hello\n\nthere", explained=True)
    top, rest = text.split("[[figure]]", 1)
    assert top == "# Hello\n#\n# there\n\n"
    assert rest.split("\n\n")[0] == '\nfile = "1.png"\nlesson = "journey"\nmask = "none"'
    keys = {line.split()[1] for line in rest.splitlines() if line.startswith("# ") and line[2] in string.ascii_letters}
    assert {"theme", "size", "stage", "dropout", "step", "beside", "ask"} <= keys
    assert "mask" not in keys
    assert "--" not in rest


def test_what_else_can_be_set_is_whole_and_can_be_copied():
    text = deck_text({"1.png": Figure()}, explained=True)
    told = {line[2:].split()[0] for line in text.splitlines() if re.match(r"# \S+ {2,}\S", line)}
    assert told | {"lesson"} == set(KEY_OF.values())
    examples = re.findall(r"{ (\S+ = \S+) }", text)
    assert [tomllib.loads(example) for example in examples] == [{"mask": "none"}, {"draws": 100}]
    assert "heads-study" in text  # not parted at its hyphen


def test_half_a_character_cannot_be_in_a_deck():
    with pytest.raises(SpecError, match="half a character"):
        deck_text({"1.png": Figure(spec=make_spec(Text(text="a\ud800")))})


# -------------------------------------------------------------------------------------------------------------- damaged


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_deck_is_read_or_refused_in_a_sentence(tmp_path, seed):
    for number in range(CASES // 4):
        scenes.case(Random(f"{seed}/{number}"), tmp_path)  # noqa: S311
    assert [path.name for path in tmp_path.iterdir()] == ["deck.toml"]


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_refused_in_a_sentence(tmp_path_factory, data):
    deck = tmp_path_factory.getbasetemp() / "any.toml"
    deck.write_bytes(data)
    with pytest.raises(SceneProblem, match=r"^any\.toml"):
        read(deck)


# -------------------------------------------------------------------------------------------------------------- shipped


def test_each_lesson_has_a_deck_that_can_be_read():
    assert names() == ("cat-eats-fish", "journey")
    for name in names():
        found = parse(built_in(name), f"{name}.toml", Path())
        assert len(found.figures) >= 10
        assert all(one.figure is not None and one.figure.paper.title for one in found.figures)
        assert {Path(one.file).suffix for one in found.figures} == {".png", ".svg", ".pdf", ".gif"}
    with pytest.raises(SpecError, match="cat-eats-fish or journey"):
        built_in("one-class")
