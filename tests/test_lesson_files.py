import math
import os
import tomllib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QFont, QRawFont

from attnviz import lesson_files
from attnviz.lesson_files import LessonProblem, Measure, Words, built_in, names, parse, read, scene
from attnviz.lesson_files.checking import WrongLesson, checked_script
from attnviz.spec import (
    Drawn,
    Lesson,
    SlidingWindow,
    SpecError,
    TypedScores,
    View,
    edited,
    from_json,
    make_spec,
    to_json,
)

GOOD = """\
source = "cat-eats-fish"
title = { en = "A lesson", zh = "一课" }
[base]
mask = "none"
[view]
norm = "unit"

[[step]]
id = "one"
title = "Both"
say = { en = '''
First line,
second line.''', zh = '''
第一行，
第二行。''' }
select = { row = 1, col = 2 }

[[step]]
id = "two"
spec = { mask = "neg-inf", fill = -inf, mask_shape = "window:2" }
before = { mask = "neg-inf" }
view = { stage = "masked_scores" }
page = "masks"
look = "page"
title.en = "Two"
title.zh = "二"
say.en = "See [[step]] and id = \\"three\\"." # [[step]]
say.zh = "看。"
[step.question]
kind = "number"
as = "percent"
measure = { name = "cell", stage = "weights", col = 1 }
tolerance = 0.01
ask = { en = "How much?", zh = "多少？" }
right = "Yes."
wrong = "No."
[step.question.show]
en = "It is {value}."
zh = "是 {value}。"
"""


def lines_of(text, part):
    """The first line, from 1, that holds ``part``; STEP is the second step's head."""
    found = [n for n, line in enumerate(text.split("\n"), 1) if part in line or (part == "STEP" and line == "[[step]]")]
    return found[1] if part == "STEP" else found[0]


def test_a_file_becomes_complete_steps():
    script = parse(GOOD, "good.toml")
    one, two = script.steps
    assert script.title == Words("A lesson", "一课")
    assert one.say == Words("First line, second line.", "第一行，第二行。")
    assert one.title.said("zh") == one.title.said("en") == "Both"
    cat = make_spec(Lesson(name="cat-eats-fish"), mask="none")
    assert one.scene() == (cat, View(norm="unit"))
    assert (one.select, one.page, one.look, one.question, one.scene_before()) == ((1, 2), "row", "map", None, None)
    assert two.spec == edited(cat, mask="neg-inf", mask_shape=SlidingWindow(width=2))
    assert two.view == View(stage="masked_scores", norm="unit")
    assert two.scene_before() == (edited(cat, mask="neg-inf"), two.view)
    asked = two.question
    assert asked.measure == Measure("cell", stage="weights", row=0, col=1)
    assert (asked.kind, asked.percent, asked.tolerance) == ("number", True, 0.01)
    assert asked.show.en == "It is {value}."


def test_a_step_with_a_source_of_its_own_leaves_the_lessons_base():
    text = GOOD.replace(
        'id = "one"', 'id = "one"\nspec = { source = { kind = "scores", scores = [[2, 0], [-inf, 1]] } }'
    )
    step = parse(text.replace("col = 2", "col = 1"), "x").steps[0]
    assert step.spec == make_spec(TypedScores(scores=((2.0, 0.0), (-math.inf, 1.0))))
    drawn = GOOD.replace('"window:2"', '{ kind = "drawn", runs = [[0, 1, 1]] }')
    assert parse(drawn, "x").step("two").spec.mask_shape == Drawn(runs=((0, 1, 1),))


def test_steps_are_found_by_id():
    script = parse(GOOD, "good.toml")
    assert script.index("two") == 1
    assert script.step("one") is script.steps[0]
    with pytest.raises(SpecError, match="this lesson has one, two") as caught:
        script.step("three")
    assert caught.value.field == "step"


@pytest.mark.parametrize(
    ("old", "new", "at", "words"),
    [
        ('title = { en = "A lesson"', 'titel = { en = "A lesson"', "titel", "unknown key 'titel'"),
        ('source = "cat-eats-fish"', 'source = "cat"', "source", "'cat'"),
        ('source = "cat-eats-fish"\n', "", "title", "source is missing"),
        ('mask = "none"', 'mask = "nothing"', "nothing", "three-step"),
        ('norm = "unit"', 'norm = "unity"', "unity", "per-head"),
        ('id = "two"', 'id = "one" # again', "# again", "is there twice"),
        ('id = "two"', "id = 2", "id = 2", "needs an id"),
        ('id = "two"\n', "", "STEP", "needs an id"),
        ('fill = -inf', "fill = nan", "fill = nan", "fill is nan"),
        ('fill = -inf', "fil = 0", "fil = 0", "'fil' is not a field"),
        ('"window:2"', '"mask.npy"', "mask.npy", "names no other files"),
        ('"window:2"', '{ kind = "file", path = "/etc/passwd", sha256 = "0" }', "/etc/passwd", "file"),
        ('page = "masks"', 'page = "mask"', 'page = "mask"', "ahead"),
        ('look = "page"', "look = 3", "look = 3", "strip"),
        ('stage = "masked_scores"', 'stage = "scores"', 'stage = "scores"', "which this spec lacks"),
        ("col = 2", "col = 3", "col = 3", "3 x 3"),
        ("col = 2", "cell = 3", "cell = 3", "unknown key 'cell'"),
        ("col = 2 }", "col = true }", "col = true", "whole number"),
        ('title.zh = "二"\n', "", 'title.en = "Two"', "no text in zh"),
        ('say.en = "See', 'say.fr = "Oui"\nsay.en = "See', "say.fr", "unknown key 'fr'"),
        ('say.zh = "看。"', 'say.zh = "  "', 'say.', "no text in zh"),
        ('title.en = "Two"', 'title.en = "T\\u0007wo"', "T\\u0007wo", "cannot be shown"),
        ('title.en = "Two"', f'title.en = "{"x" * 2001}"', "xxx", "at most 2,000"),
        ('right = "Yes."\n', "", "[step.question]", "lacks a text, right"),
        ('kind = "number"\n', "", "[step.question]", "kind is missing"),
        ('kind = "number"', 'kind = "cell"', "measure =", "finds a number"),
        ('name = "cell", stage', 'name = "cells", stage', "cells", "largest_of_row"),
        ('stage = "weights", col = 1', 'dim = 1', "dim = 1", "takes col, head, row, stage"),
        ('stage = "weights"', 'stage = "context_"', "context_", "this step has"),
        ('col = 1 }', "col = -1 }", "col = -1", "0 is the first"),
        ("tolerance = 0.01", "tolerance = inf", "tolerance", "give a number"),
        ("tolerance = 0.01", "tolerance = -1", "tolerance", "0 or more"),
        ("tolerance = 0.01", 'tolerance = 1\nchoices = []\nhint = "x"', "hint", "unknown key 'hint'"),
        ("tolerance = 0.01", 'choices = [{ en = "a", zh = "b", value = 1 }, { en = "c", zh = "d", value = 2 }]',
         "choices", "kind choice alone"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_with_its_line(old, new, at, words):
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1) if old != "col = 1 }" else GOOD.replace(old, new)
    with pytest.raises(LessonProblem) as caught:
        parse(text, "mine.toml")
    sentence = caught.value.sentence
    assert words in sentence
    assert "\n" not in sentence
    assert sentence.startswith(f"mine.toml, line {caught.value.line}: ")
    assert caught.value.line == lines_of(text, at)


def test_what_changed_is_asked_only_where_there_is_a_state_before():
    text = GOOD.replace('{ name = "cell", stage = "weights", col = 1 }', '"largest_change"')
    assert parse(text, "mine.toml").step("two").question.measure.name == "largest_change"
    with pytest.raises(LessonProblem, match="step 'two': largest_change compares with the state before") as caught:
        parse(text.replace('before = { mask = "neg-inf" }\n', ""), "mine.toml")
    assert caught.value.line == lines_of(text, "measure =") - 1


def test_choices_are_checked():
    choice = GOOD.replace('kind = "number"', 'kind = "choice"')
    with pytest.raises(LessonProblem, match="two to six choices"):
        parse(choice, "x")
    two = choice.replace("tolerance = 0.01", 'choices = [{ en = "a", zh = "b", value = 1 }, { en = "c", value = "2" }]')
    with pytest.raises(LessonProblem, match="value is '2'"):
        parse(two, "x")


@pytest.mark.parametrize(
    ("text", "line"),
    [("source = \n", 1), ("a = 1\na = 2\n", 2), ("[x\n", 1), ("x = '''\n\n", 3), ("x = 1" + "0" * 5000, None)],
)
def test_what_is_no_toml_is_told_with_its_line(text, line):
    with pytest.raises(LessonProblem, match="not TOML") as caught:
        parse(text, "x.toml")
    assert caught.value.line == line


def test_nesting_without_end_is_refused():
    with pytest.raises(LessonProblem):
        parse("x = " + "[" * 100_000, "x")


def test_lessons_without_steps_or_with_too_many_are_refused():
    head = GOOD[: GOOD.index("[[step]]")]
    for text in head, head.replace("[base]", "step = []\n[base]"), head.replace("[base]", "step = 3\n[base]"):
        with pytest.raises(LessonProblem, match="no steps"):
            parse(text, "x")
    many = head + "".join(f'[[step]]\nid = "{n}"\ntitle = "t"\nsay = "s"\n' for n in range(201))
    with pytest.raises(LessonProblem, match="at most 200"):
        parse(many, "x")


def test_files_are_read_and_those_that_are_no_lesson_refused(tmp_path):
    good = tmp_path / "good.toml"
    good.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read(good) == parse(GOOD, "good.toml")
    with pytest.raises(LessonProblem, match=r"missing\.toml: cannot be read: No such file"):
        read(tmp_path / "missing.toml")
    with pytest.raises(LessonProblem, match="this is no file"):
        read(tmp_path)
    large = tmp_path / "large.toml"
    large.write_text(GOOD + "#" * lesson_files.MAX_BYTES)
    with pytest.raises(LessonProblem, match="larger than 1 MB"):
        read(large)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(GOOD.replace("# [[step]]", "# café").encode("latin-1", "replace"))
    with pytest.raises(LessonProblem, match="not UTF-8") as caught:
        read(latin)
    assert caught.value.line == lines_of(GOOD, "# [[step]]")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(LessonProblem, match="this is no file"):
        read(pipe)


TABLES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["source", "kind", "scores", "spec", "view", "id", "title", "say", "question", "measure", "name", "row", "mask"]
    ), inner, max_size=4), max_leaves=8,
)  # fmt: skip


@given(
    key=st.sampled_from(["spec", "before", "view", "select", "page", "title", "say", "question", "id"]), value=TABLES
)
def test_whatever_stands_in_a_step_it_is_refused_or_read(key, value):
    top = tomllib.loads(GOOD)
    top["step"][1][key] = value
    try:
        script = checked_script(top)
    except WrongLesson:
        return
    assert len(script.steps) == 2


@given(key=st.sampled_from(["source", "base", "view", "step", "title"]), value=TABLES)
def test_whatever_stands_at_the_top_it_is_refused_or_read(key, value):
    top = tomllib.loads(GOOD)
    top[key] = value
    try:
        script = checked_script(top)
    except WrongLesson:
        return
    assert script.steps


# ----------------------------------------------------------------------------------------------- the shipped lessons


def test_the_shipped_lessons_are_there_by_name():
    assert names() == ("cat-eats-fish", "journey")
    with pytest.raises(SpecError, match="give cat-eats-fish, journey"):
        built_in("../journey")


def test_a_scene_is_had_by_lesson_and_step(tmp_path):
    spec, view = scene("journey", "3.5.1")
    assert (spec.mask, spec.seed, view.stage) == ("none", 789, "weights")
    mine = tmp_path / "mine.toml"
    mine.write_text(GOOD, encoding="utf-8")
    assert scene(str(mine), "two") == parse(GOOD, "x").step("two").scene()


def every_text(value):
    """All `Words` of a lesson, at any depth."""
    if isinstance(value, Words):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from every_text(item)
    elif hasattr(value, "__dataclass_fields__"):
        for field in value.__dataclass_fields__:
            yield from every_text(getattr(value, field))


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("name", names())
def test_every_text_is_there_in_both_languages_and_the_font_has_its_characters(name):
    held = resources.files("attnviz.resources").joinpath("fonts/attnviz-sans.otf").read_bytes()
    raw = QRawFont()
    raw.loadFromData(held, 16, QFont.HintingPreference.PreferNoHinting)
    assert raw.supportsCharacter(ord("猫"))
    assert not raw.supportsCharacter(0x10FFFD)
    for words in every_text(built_in(name)):
        assert words.en != words.zh
        assert any("一" <= char <= "龥" for char in words.zh)
        assert {char for char in words.en + words.zh if not raw.supportsCharacter(ord(char))} == set(), words


def test_a_lessons_spec_goes_into_a_file_and_back():
    for name in names():
        for step in built_in(name).steps:
            assert from_json(to_json(*step.scene())) == step.scene()
