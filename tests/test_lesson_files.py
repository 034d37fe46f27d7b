import math
import os
import re
import tomllib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QFont, QRawFont

from attnviz import lesson_files
from attnviz.lesson_files import LessonProblem, Measure, Words, built_in, names, parse, read, scene
from attnviz.lesson_files.checking import WrongLesson, checked_script
from attnviz.lesson_files.sizes import stage_size
from attnviz.lesson_files.study_numbers import EXAMPLES, STUDIES
from attnviz.options.spec import asked_for, with_options
from attnviz.spec import (
    Drawn,
    Lesson,
    SlidingWindow,
    SpecError,
    Text,
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
    with pytest.raises(SpecError, match="lacks: give one or two") as caught:
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
        ('look = "page"', 'look = "row"', 'look = "row"', "not in sight beside the page masks"),
        ('look = "page"', 'part = "depth"', 'part = "depth"', "depths"),
        ('look = "page"', "part = 3", "part = 3", "exhibits"),
        ('page = "masks"', 'page = "row"\npart = "top"', "part =", "page row has no parts"),
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


def test_a_step_may_name_a_part_of_its_page():
    assert parse(GOOD, "x").step("two").part == ""
    assert parse(GOOD.replace('look = "page"', 'part = "depths"'), "x").step("two").part == "depths"


def test_choices_are_checked():
    choice = GOOD.replace('kind = "number"', 'kind = "choice"')
    with pytest.raises(LessonProblem, match="two to six choices"):
        parse(choice, "x")
    two = choice.replace("tolerance = 0.01", 'choices = [{ en = "a", zh = "b", value = 1 }, { en = "c", value = "2" }]')
    with pytest.raises(LessonProblem, match="value is '2'"):
        parse(two, "x")


@pytest.mark.parametrize(
    ("text", "line"),
    [("source = \n", 1), ("a = 1\na = 2\n", 2), ("[x\n", 1), ("x = '''\n\n", 3), ("\nx = 1" + "0" * 5000, 2)],
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
    key=st.sampled_from(["spec", "before", "view", "select", "page", "part", "look", "title", "say", "question", "id"]),
    value=TABLES,
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


@pytest.mark.parametrize("name", names())
def test_what_is_said_is_short_enough_to_be_read_out(name):
    for step in built_in(name).steps:
        english = len(re.findall(r"[.!?][”)]*(?=\s|$)", step.say.en))
        chinese = len(re.findall(r"[。！？]", step.say.zh))
        assert 1 <= english == chinese <= 3, step.id
        assert len(step.say.en) <= 360, step.id


@pytest.mark.parametrize("name", names())
def test_where_one_row_is_asked_for_a_click_elsewhere_has_its_own_hint(name):
    for step in built_in(name).steps:
        asked = step.question
        if asked is not None and asked.kind == "cell":
            assert (asked.other_row is not None) == asked.measure.name.endswith("_of_row"), step.id


def test_a_hint_for_another_row_needs_a_row():
    cell = GOOD.replace('kind = "number"', 'kind = "cell"').replace("tolerance = 0.01", 'other_row = "Another row."')
    of_row = cell.replace('{ name = "cell", stage = "weights", col = 1 }', '"hidden_of_row"')
    assert parse(of_row, "x").step("two").question.other_row == Words("Another row.", "Another row.")
    with pytest.raises(LessonProblem, match="dropped has no row to miss: leave other_row out") as caught:
        parse(of_row.replace("hidden_of_row", "dropped"), "x")
    assert caught.value.line == lines_of(of_row, "other_row")


def test_a_share_is_known_by_its_measure_and_stage():
    def share(measure, stage="masked_scores"):
        text = GOOD.replace('as = "percent"\n', "").replace('stage = "masked_scores"', f'stage = "{stage}"')
        return (
            parse(text.replace('{ name = "cell", stage = "weights", col = 1 }', measure), "x")
            .step("two")
            .question.share
        )

    assert share('{ name = "cell", stage = "weights" }')
    assert share('"row_sum"', "weights")
    assert not share('"row_sum"')
    assert not share('"visible_keys"', "weights")
    assert not share('{ name = "context", dim = 1 }')


def test_a_lessons_spec_goes_into_a_file_and_back():
    for name in names():
        for step in built_in(name).steps:
            assert from_json(to_json(*step.scene())) == step.scene()


# ------------------------------------------------------------------------------------- what a teacher's file may hold

HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(('fill = -inf', f"{field} = {HUGE}") for field in
          ("fill", "dropout", "scale", "soft_cap", "seed", "dropout_seed", "batch", "num_heads", "top_k", "mask")),
        ("tolerance = 0.01", f"tolerance = {HUGE}"),
        ("tolerance = 0.01", f"tolerance = -{HUGE}"),
        ("tolerance = 0.01", f"tolerance = 0x{'f' * 4000}"),
        ("col = 1 }", f"col = {HUGE} }}"),
        ("tolerance = 0.01", f'choices = [{{ en = "a", zh = "b", value = {HUGE} }}]'),
        ('source = "cat-eats-fish"', f'source = "{"x" * 900}"'),
        ('mask = "neg-inf", fill', f'mask = "{"x" * 900}", fill'),
        ('page = "masks"', f'page = "{"word " * 200}"'),
    ],
)  # fmt: skip
def test_what_is_too_large_is_refused_in_one_short_sentence_with_its_line(old, new):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(LessonProblem) as caught:
        parse(text, "mine.toml")
    sentence = caught.value.sentence
    assert sentence.startswith(f"mine.toml, line {text[: text.index(new)].count(chr(10)) + 1}: ")
    assert len(sentence) < 400
    assert "0" * 60 not in sentence


def test_a_huge_number_is_refused_by_a_spec_too():
    for field in "fill", "dropout":
        with pytest.raises(SpecError, match=f"{field} is a number of too many digits"):
            make_spec(**{field: 10**400})


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ('"study:nope.x"', "asks the study 'nope': give compare"),
        ('"study:compare.floor"', "'floor' is no number of the study compare"),
        ('"study:gallery.exhibits"', "is no number of the study gallery"),
        ('"study:gallery.exhibits.0.values"', "is no number of the study gallery"),
        ('"study:rounds.cells_cached"', "stands on the page rounds, but this step shows masks"),
        ('{ name = "cell", row = 99, col = 99 }', "row is 99, but the masked_scores of this step have 3 rows"),
        ('{ name = "cell", row = 1, col = 99 }', "col is 99, but the masked_scores of this step have 3 columns"),
        ('{ name = "cell", row = 1, head = 7 }', "head is 7, but this step has 1 head"),
        ('{ name = "context", row = 1, dim = 99 }', "dim is 99, but the context of this step have 2 columns"),
        ('{ name = "visible_keys", row = 3 }', "row is 3"),
        ('{ name = "weight_on_future", stage = "context", row = 1 }', "reads keys, but the stage is context"),
    ],
)
def test_a_measure_that_could_find_nothing_is_refused_with_its_line(measure, words):
    text = GOOD.replace('{ name = "cell", stage = "weights", col = 1 }', measure)
    with pytest.raises(LessonProblem) as caught:
        parse(text, "mine.toml")
    assert words in caught.value.sentence
    assert caught.value.line == lines_of(text, "measure =")


def test_a_measure_inside_the_step_is_taken():
    for measure in '"study:gallery.exhibits.0.nan_rows"', '{ name = "context", row = 2, dim = 1 }', '"parameters"':
        text = GOOD.replace('{ name = "cell", stage = "weights", col = 1 }', measure)
        assert parse(text, "x").step("two").question.measure.name.split(":")[-1] in measure


def test_sizes_of_sources_are_known_before_they_are_computed():
    journey = make_spec(Lesson(name="journey"))
    assert stage_size(journey, "weights") == (6, 6)
    assert stage_size(journey, "context") == (6, journey.d_head)
    assert stage_size(journey, "output") == (6, journey.d_out)
    assert stage_size(journey, "inputs") == (6, journey.d_model)
    assert stage_size(make_spec(Text(text="some words")), "weights") == (None, None)
    wide = TypedScores(scores=((1.0, 2.0, 3.0), (1.0, 2.0, 3.0)), values=((1.0,), (2.0,), (3.0,)))
    sizes = {"weights": (2, 3), "values": (3, 1), "context": (2, 1)}
    assert {stage: stage_size(make_spec(wide), stage) for stage in sizes} == sizes


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_what_a_lesson_may_ask_of_a_study_is_there(study):
    """Every name in the patterns is a field of the study's answer, or of what stands in it."""
    from importlib import import_module

    from attnviz.questions import rounds

    module = import_module(f"attnviz.questions.{study.replace('-', '_')}")
    known = {name for kind in vars(module).values() if isinstance(kind, type) for name in dir(kind)}
    known |= {name for kind in vars(module).values() for name in getattr(kind, "__dataclass_fields__", ())}
    known |= set(vars(rounds)) if study == "rounds" else set()
    for pattern in STUDIES[study][1]:
        names = re.sub(r"\\d\{1,6\}|\\.|\?:", " ", pattern)
        for group, end in re.findall(r"\(([a-z |]+)\)(_map|_matrix)", names):
            names = names.replace(f"({group}){end}", " ".join(f"{name.strip()}{end}" for name in group.split("|")))
        assert set(re.findall(r"[a-z_]{2,}", names)) <= known, pattern
    assert any(re.fullmatch(pattern, EXAMPLES[study]) for pattern in STUDIES[study][1])


# --------------------------------------------------------------------------------------------------- the command line


def test_a_step_and_another_source_are_refused():
    for lesson in ("journey", "mine.toml"):
        with pytest.raises(SpecError, match="--lesson and --length are two sources"):
            asked_for({"lesson": lesson, "step": "3.5.1", "length": 5})
    spec, _ = asked_for({"lesson": "journey", "step": "3.5.1", "seed": 5})
    assert spec == edited(scene("journey", "3.5.1")[0], seed=5)


def test_an_unknown_step_is_told_the_nearest_ones():
    with pytest.raises(SpecError) as caught:
        asked_for({"lesson": "journey", "step": "3.5.1.9"})
    sentence = with_options(caught.value)
    assert sentence.startswith("--step is '3.5.1.9', which this lesson lacks: give 3.5.1.")
    assert "or another of 32" in sentence
    assert "attnviz --lesson journey --step 3.3 opens it" in sentence
    assert len(sentence) < 250
