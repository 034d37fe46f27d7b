"""Scripts that print a stage with torch alone: their numbers are those of the program's NPZ, to the bit."""

import ast
import itertools
import json
import math
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from attnviz import cli
from attnviz.inputs.text import split_tokens
from attnviz.scripts import MOST_LINES, WIDTH, script
from attnviz.spec import (
    JOINT_STAGES,
    STAGES,
    Blocks,
    Drawn,
    Full,
    Lesson,
    MaskFile,
    PadLeft,
    PadRight,
    Pattern,
    Prefix,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SlidingWindow,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    View,
    edited,
    is_typed,
    make_spec,
    stages_of,
    to_json,
)

DTYPES = ("float32", "float64", "float16", "bfloat16")
CAT, ONE_CLASS = Lesson(name="cat-eats-fish"), Lesson(name="one-class")
TEXT = Text(text="Don't look ahead: the cat eats the fish, 猫吃鱼!")
SCORES = TypedScores(
    scores=((0.1, -math.inf, 3.0, -0.0), (1e4, 2.0, 1.0, 0.3), (0.7, 1e-7, 2.5, 1.1)),
    values=((1.0,), (2.5,), (0.0,), (-3.1,)),
)
DRAWN = Drawn(runs=((0, 0, 0), (1, 0, 1), (2, 1, 1), (2, 3, 4), (4, 0, 5), (5, 2, 9)))


def covering():
    """(spec, view): every mask mode with each form and site, dtypes, generators and stages in turn; then the rest."""
    turns = itertools.count()
    for mask, form, site in itertools.product(
        ("none", "neg-inf", "three-step", "multiply", "add"), ("stacked", "split"), (None, "weights", "context")
    ):
        turn = next(turns)
        dropped = {} if site is None else {"dropout": (0.5, 0.1)[turn % 2], "dropout_site": site}
        generator = ("portable", "torch", "torch", "portable")[turn % 4]
        spec = make_spec(
            mask=mask, implementation=form, dtype=DTYPES[turn % 4], dropout_generator=generator, **dropped,
        )  # fmt: skip
        yield spec, View(stage=stages_of(spec)[-1])
        text = edited(spec, source=TEXT, dtype=DTYPES[(turn + 1) % 4], d_model=24, d_out=32)
        names = stages_of(text)
        yield text, View(stage=names[turn % len(names)], head=(None, 1)[turn % 2])
    for stage in stages_of(make_spec(mask="three-step", dropout=0.2)):
        yield make_spec(mask="three-step", dropout=0.2), View(stage=stage)
    for dtype in DTYPES:
        yield make_spec(ONE_CLASS, dropout=0.5, dtype=dtype), View(stage="output")
        yield (
            make_spec(CAT, mask="three-step", dropout=0.5, dropout_site="context", dtype=dtype),
            View(stage="dropped_context"),
        )
        yield make_spec(SCORES, mask="add", fill=-12.0, dtype=dtype, dropout=0.3), View(stage="context")
        yield (
            make_spec(RandomQK(length=9, qk_scale=2.5), num_heads=4, num_kv_heads=2, dtype=dtype),
            View(stage="weights"),
        )
    for shape in (Full(), SlidingWindow(width=2), Prefix(length=3), PadLeft(count=2), PadRight(count=2), DRAWN,
                  Blocks(lengths=(2, 1))):  # fmt: skip
        yield make_spec(mask_shape=shape), View(stage="context")
        yield make_spec(SCORES, mask_shape=shape, mask="multiply"), View()
    for fill in (-1e9, -1e4, -12.0, -1e39, -65519.0, 0.0):
        yield make_spec(fill=fill, dtype="float16", scale_after_mask=True), View(stage="scaled_scores")
        yield make_spec(fill=fill, dtype="float32"), View(stage="masked_scores")
    for mask, k in itertools.product(("none", "neg-inf", "add"), (2, 40)):
        yield make_spec(mask=mask, top_k=k, soft_cap=None if k == 2 else 0.7), View(stage="weights")
    yield make_spec(scale=0.3, soft_cap=50.0), View()
    yield make_spec(scale="none", mask="three-step"), View()
    yield (
        make_spec(num_heads=6, num_kv_heads=2, qkv_bias=True, out_proj=True, d_out=24, seed=2**40),
        View(stage="output"),
    )
    yield make_spec(num_heads=6, num_kv_heads=3, qkv_bias=True, implementation="split", d_out=48), View(stage="output")
    yield make_spec(projection="rand", num_heads=2, d_out=8, seed=789), View(stage="output")
    yield make_spec(projection="rand", implementation="split", num_heads=4, num_kv_heads=2), View(stage="joined")
    yield make_spec(projection="none"), View(stage="context")
    yield (
        make_spec(RandomEmbeddings(length=300), dropout=0.1, d_out=16, d_model=8),
        View(rows=(250, 260), cols=(0, 270)),
    )
    yield make_spec(RandomEmbeddings(length=1)), View(stage="output")
    yield make_spec(batch=3, dropout=0.5, out_proj=True), View(stage="output")
    yield make_spec(batch=2, dropout=0.5, dropout_generator="torch"), View(stage="dropped_weights", head=1)
    yield make_spec(RandomQK(length=5), batch=2, dropout=0.5, dropout_seed=2**63 - 1), View(stage="dropped_weights")
    yield (
        make_spec(TypedWeights(weights=((1.0,) * 6,) * 6), dropout=0.5, dropout_generator="torch"),
        View(stage="dropped_weights"),
    )
    yield make_spec(TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),)), dropout=0.5), View(stage="dropped_weights")
    yield make_spec(dropout=0.5, training=False), View(stage="output")
    yield (
        make_spec(Text(text="say \"a\\b\" \u2028 'c' \U0001f469\u200d\U0001f680 \ud800 x"), d_out=4),
        View(stage="context"),
    )
    yield make_spec(Text(text="math. random. hashlib. scores weights"), d_out=4), View(stage="scores")


CASES = list(covering())


def tokens_of(spec):
    return split_tokens(spec.source.text) if isinstance(spec.source, Text) else ()


def written(spec, view):
    return script(spec, view, tokens_of(spec))


def read(printed):
    """Rows of numbers as a script prints them."""
    rows = [eval(line, {"nan": math.nan, "inf": math.inf}) for line in printed.splitlines() if line]  # noqa: S307
    return np.array(rows, float)


RUNNER = """
import contextlib, io, json, sys
for text in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "script", "exec"), {"__name__": "__main__"})
    print(json.dumps(out.getvalue()))
"""


@cache
def printed_by_all():
    """What each case's script prints, all run by one fresh process."""
    texts = json.dumps([written(*case) for case in CASES])
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER], input=texts, capture_output=True, text=True, check=False, timeout=110
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def from_npz(tmp_path, spec, view):
    """The rows that ``attnviz render --data`` writes for a view."""
    path = tmp_path / "spec.json"
    path.write_text(to_json(spec, view), "utf-8", "surrogatepass")
    assert cli.run(["render", "--spec", str(path), "--data", str(tmp_path / "stages.npz")]) == 0
    with np.load(tmp_path / "stages.npz", allow_pickle=False) as npz:
        stage = npz[view.stage]
    if view.head is not None and view.stage not in JOINT_STAGES and not is_typed(spec.source):
        stage = stage[..., view.head, :, :]
    stage = stage[..., slice(*view.rows or (None,)), slice(*view.cols or (None,))]
    return stage.reshape(-1, stage.shape[-1]).astype(float)


def assert_equal(spec, found, expected):
    """The same bits; of a batch, whose products torch rounds by where they lie in memory, 2 eps of the largest."""
    assert found.shape == expected.shape
    if spec.batch == 1:
        np.testing.assert_array_equal(found, expected)
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    eps = torch.finfo(getattr(torch, spec.dtype)).eps
    assert np.abs(found - expected)[finite].max() <= 2 * eps * np.abs(expected[finite]).max()


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_script_prints_the_numbers_of_the_npz(tmp_path, number):
    spec, view = CASES[number]
    assert_equal(spec, read(printed_by_all()[number]), from_npz(tmp_path, spec, view))


def test_the_cases_cover_every_stage():
    assert {view.stage for _, view in CASES} == set(STAGES)


@pytest.mark.parametrize("number", range(0, len(CASES), 29))
def test_a_script_that_is_written_to_a_file_runs_in_a_process_of_its_own(tmp_path, number):
    spec, view = CASES[number]
    (tmp_path / "spec.json").write_text(to_json(spec, view))
    path = tmp_path / "stage.py"
    assert cli.run(["code", "--spec", str(tmp_path / "spec.json"), "--output", str(path)]) == 0
    assert path.read_text("utf-8") == written(spec, view)
    alone = [sys.executable, "-I", "-W", "error", str(path)]  # -I: nothing of this folder can be imported
    ran = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert_equal(spec, read(ran.stdout), from_npz(tmp_path, spec, view))


@pytest.mark.parametrize("case", CASES)
def test_a_script_is_short_and_imports_torch_and_the_standard_library_alone(case):
    text = written(*case)
    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= WIDTH
    tree = ast.parse(text)
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))
    assert set(imported) <= {"hashlib", "math", "random", "torch"}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(imported) <= used


def test_a_script_has_room_where_it_is_short_and_merges_steps_where_it_is_long():
    assert "import torch\n\n" in script(make_spec(), View())
    assert "\nrow_sums = " in script(make_spec(mask="three-step"), View())
    text = make_spec(TEXT, mask="three-step", dropout=0.1, implementation="split")
    long = script(text, View(stage="output"), tokens_of(text))
    assert "\nweights = unnormalised_weights / unnormalised_weights.sum(-1, keepdim=True)\n" in long
    assert "row_sums" in script(text, View(stage="row_sums"), tokens_of(text))


def test_another_device_is_in_the_script():
    text = script(make_spec(device="cuda:1", dtype="float16"), View())
    assert text.count('.to("cuda:1", torch.float16)') == 2  # the inputs and the layers
    assert '.triu(1).to("cuda:1")' in text
    assert 'device="cuda:1"' in script(make_spec(CAT, device="cuda:1"), View())


FILE = QKFile(path="a.npz", sha256="0" * 64, heads=1, kv_heads=1, queries=2, length=2, d_head=4)


@pytest.mark.parametrize(
    ("spec", "view", "field", "words"),
    [
        (make_spec(FILE), View(), "source", "queries and keys are a file's.*attnviz render --data"),
        (make_spec(Pattern(length=8)), View(), "source", "a made-up pattern takes more"),
        (make_spec(mask_shape=MaskFile(path="m.npy", sha256="0" * 64)), View(), "mask_shape", "the mask is a file's"),
        (make_spec(Text(text="a word " * 900)), View(), "source", "at most 30: take fewer tokens"),
        (make_spec(Text(text="x" * 200)), View(), "source", "at most 100: take shorter tokens"),
        (make_spec(TypedScores(scores=((0.1234567,) * 30,) * 30)), View(), "source", "take fewer tokens"),
        (make_spec(mask_shape=Drawn(runs=tuple((row, row, row) for row in range(500)))), View(), None, None),
        (make_spec(RandomEmbeddings(length=900), mask_shape=Drawn(runs=tuple((r, r, r) for r in range(900)))), View(),
         "mask_shape", "take a mask shape with a name"),
        (make_spec(ONE_CLASS, dropout=0.4, mask="three-step"), View(stage="output"), "stage",
         "at most 30: take an earlier stage, torch's dropout generator, or inference"),
        (make_spec(), View(stage="row_sums"), "stage", "which this spec lacks"),
        (make_spec(), View(rows=(6, 8)), "rows", "begins at 6, but the map has 6"),
    ],
)  # fmt: skip
def test_what_no_short_script_can_do_is_refused_in_words(spec, view, field, words):
    if field is None:  # runs beyond the map are cut off
        assert "seen = [(0, 0, 0), (1, 1, 1)" in script(spec, view)
        return
    with pytest.raises(SpecError, match=words) as refused:
        written(spec, view)
    assert refused.value.field == field


def test_the_file_of_a_mask_that_is_off_does_not_matter():
    file = MaskFile(path="m.npy", sha256="0" * 64)
    assert script(make_spec(mask="none", mask_shape=file), View()) == script(make_spec(mask="none"), View())


def test_code_prints_the_script_and_refuses_with_status_2(capsys):
    assert cli.run(["code"]) == 0
    assert capsys.readouterr().out == script(make_spec(), View())
    assert cli.run(["code", "--text", "the cat", "--stage", "scores", "--head", "1"]) == 0
    text = make_spec(Text(text="the cat"))
    assert capsys.readouterr().out == script(text, View(stage="scores", head=1), ("the", "cat"))
    for arguments, words in (
        (["--length", "8", "--pattern", "sink"], "a made-up pattern"),
        (["--stage", "row_sums"], "--stage is 'row_sums'"),
        (["--rows", "9:12"], "--rows begins at 9"),
    ):
        assert cli.run(["code", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert len(err.splitlines()) == 1


def test_a_script_that_cannot_be_written_leaves_the_older_file(tmp_path, capsys):
    older = tmp_path / "stage.py"
    older.write_text("older")
    assert cli.run(["code", "--length", "8", "--pattern", "sink", "--output", str(older)]) == 2
    assert cli.run(["code", "--output", str(tmp_path / "no folder" / "stage.py")]) == 1
    assert "make it, or choose another" in capsys.readouterr().err
    assert older.read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["stage.py"]


def test_the_window_copies_the_present_stage_as_python_and_says_why_where_it_cannot(qtbot, program):
    said, controller = program.window.status_line, program.controller
    spec = make_spec(Text(text="the cat"), mask="three-step")
    controller.open(spec, View(stage="row_sums", head=1))
    qtbot.keyClick(
        program.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    expected = script(spec, View(stage="row_sums", head=1), ("the", "cat"))
    assert QGuiApplication.clipboard().text() == expected
    assert said._said.text() == f"copied: row_sums as {len(expected.splitlines())} lines of Python"
    assert not program.window.banner.isVisible()

    controller.open(make_spec(Pattern(length=8)), View())
    program.window.actions_by_name["copy_code"].trigger()
    assert program.window.banner.isVisible()
    assert "a made-up pattern takes more" in program.session.snapshot().failure.sentence
    assert QGuiApplication.clipboard().text() == expected
    assert said._said.text() == ""
