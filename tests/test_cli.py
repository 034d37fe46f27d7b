"""Whole command lines: figures, exit codes, one line on stderr, never a traceback."""

import json
import math
import os
import resource
import subprocess
import sys

import click
import numpy as np
import pytest
import reference as ref

from attnviz import cli
from attnviz.cli import render as cli_render
from attnviz.figures import Figure
from attnviz.options.spec import changed
from attnviz.remembered import recall
from attnviz.spec import (
    FIELDS,
    MAX_TOKENS,
    STAGES,
    Blocks,
    Causal,
    Drawn,
    Full,
    Lesson,
    MaskFile,
    PadLeft,
    PadRight,
    Paper,
    Pattern,
    Prefix,
    QKFile,
    SlidingWindow,
    Text,
    View,
    from_json,
    make_spec,
    to_json,
)

pytestmark = pytest.mark.usefixtures("qapp")  # `render` makes a lesser application where there is none


def data_of(tmp_path, *arguments):
    path = tmp_path / "stages.npz"
    assert cli.run(["render", "--data", str(path), *arguments]) == 0
    with np.load(path, allow_pickle=False) as npz:
        return {name: npz[name] for name in npz.files}


def near(actual, expected):
    np.testing.assert_allclose(actual, np.array(expected, float), atol=5.1e-5)


@pytest.mark.parametrize(
    ("mask", "stage", "figure"),
    [
        ("none", "weights", ref.WEIGHTS_UNMASKED),
        ("none", "scores", ref.SCORES),
        ("none", "scaled_scores", ref.SCALED_SCORES),
        ("none", "context", ref.CONTEXT_UNMASKED),
        ("three-step", "unnormalised_weights", ref.WEIGHTS_UNNORMALISED),
        ("three-step", "weights", ref.WEIGHTS_THREE_STEP),
        ("neg-inf", "weights", ref.WEIGHTS_NEG_INF),
    ],
)
def test_the_books_single_head(tmp_path, mask, stage, figure):
    arrays = data_of(
        tmp_path, "--lesson", "journey", "--heads", "1", "--d-out", "2", "--seed", "789", "--mask", mask
    )  # fmt: skip
    near(arrays[stage][0], figure)


def test_the_books_masked_scores_before_scaling(tmp_path):
    arrays = data_of(tmp_path, "--heads", "1", "--d-out", "2", "--seed", "789", "--scale-after-mask")
    near(arrays["masked_scores"][0], ref.MASKED_SCORES_BEFORE_SCALING)
    near(arrays["weights"][0], ref.WEIGHTS_NEG_INF)


@pytest.mark.parametrize(
    ("arguments", "output", "weights"),
    [
        (("--d-out", "4", "--implementation", "stacked"), ref.STACKED_OUTPUT, ref.STACKED_WEIGHTS),
        (("--d-out", "2", "--implementation", "split"), ref.SPLIT_OUTPUT, ref.SPLIT_WEIGHTS),
    ],
)
def test_the_books_two_heads(tmp_path, arguments, output, weights):
    arguments = ("--heads", "2", "--seed", "123", *arguments)
    arrays = data_of(tmp_path, "--lesson", "journey", *arguments)
    near(arrays["output"], output)
    near(arrays["weights"], weights)
    batch = data_of(tmp_path, "--lesson", "journey", *arguments, "--batch", "2")
    near(batch["output"], [output, output])


def torch_draws_as_published():
    import torch

    draw = torch.empty(6).bernoulli_(0.5, generator=torch.Generator().manual_seed(123))
    return draw.tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 0.0]


torch_stream = pytest.mark.skipif(
    not torch_draws_as_published(), reason="torch's generator draws another stream on this system"
)


@torch_stream
def test_the_books_dropout(tmp_path):
    drop = ("--train", "--dropout", "0.5", "--dropout-seed", "123", "--dropout-generator", "torch")
    arrays = data_of(
        tmp_path, "--lesson", "journey", "--heads", "1", "--d-out", "2", "--seed", "789", "--mask", "neg-inf", *drop
    )  # fmt: skip
    near(arrays["dropped_weights"][0], ref.DROPPED_WEIGHTS_NEG_INF)
    ones = data_of(tmp_path, "--weights", "ones:6", *drop)
    near(ones["dropped_weights"][0], ref.DROPPED_ONES_6X6)


@pytest.mark.parametrize(("mask", "figure"), [("none", "UNMASKED"), ("neg-inf", "MASKED"), ("three-step", "MASKED")])
def test_cat_eats_fish(tmp_path, mask, figure):
    arrays = data_of(tmp_path, "--lesson", "cat-eats-fish", "--mask", mask)
    near(arrays["weights"][0], getattr(ref, f"CAT_WEIGHTS_{figure}"))
    near(arrays["context"][0], getattr(ref, f"CAT_CONTEXT_{figure}"))
    assert arrays["tokens"].tolist() == ["猫", "吃", "鱼"]


def test_zero_hides_nothing_and_minus_infinity_does(tmp_path):
    near(data_of(tmp_path, "--scores", "0 0", "--mask", "none")["weights"][0], [ref.FILLED_WITH_ZERO])
    near(data_of(tmp_path, "--scores", "-inf 0", "--mask", "none")["weights"][0], [ref.FILLED_WITH_NEG_INF])


def test_dropout_on_one_row(tmp_path):
    arrays = data_of(tmp_path, "--weights", "0.4 0.3 0.2 0.1", "--dropout", "0.5", "--dropout-seed",
                     "14")  # fmt: skip
    near(arrays["dropped_weights"][0], [ref.DROPOUT_ROW_AFTER])


def test_an_npz_says_all_it_needs(tmp_path):
    arrays = data_of(tmp_path, "--text", "a b a", "--heads", "3", "--dtype", "float16")
    assert arrays["tokens"].dtype.kind == "U"
    assert arrays["weights"].shape == (3, 3, 3)
    assert arrays["weights"].dtype == np.float16
    spec, _ = from_json(str(arrays["spec"]))
    assert spec == make_spec(Text(text="a b a"), num_heads=3, dtype="float16")
    assert set(FIELDS) <= set(json.loads(str(arrays["spec"])))


def test_every_field_has_an_option_and_every_option_a_field():
    assert set(cli.SPEC_OPTIONS) == {*FIELDS, *View.__struct_fields__} - {"source"}
    window, render = (cli.commands.commands[name] for name in ("window", "render"))
    for command in (window, render):
        names = {param.name for param in command.params}
        assert set(cli.SPEC_OPTIONS) | set(cli.SOURCE_OPTIONS) <= names


def test_a_spec_file_is_read_and_options_override_it(tmp_path):
    path = tmp_path / "a.json"
    assert cli.run(["render", "--save-spec", str(path), "--heads", "3", "--norm", "log", "--mask", "none"]) == 0
    spec, view = from_json(path.read_text())
    assert (spec.num_heads, spec.d_out, spec.mask, view.norm) == (3, 6, "none", "log")
    other = tmp_path / "b.json"
    assert cli.run(["render", "--save-spec", str(other), "--spec", str(path), "--mask", "neg-inf"]) == 0
    assert from_json(other.read_text())[0].mask == "neg-inf"
    assert from_json(other.read_text())[0].num_heads == 3


# -------------------------------------------------------------------------------------- options that describe a picture


def described(tmp_path, *arguments):
    """Spec and view of a command line."""
    path = tmp_path / "described.json"
    assert cli.run(["render", "--save-spec", str(path), *map(str, arguments)]) == 0
    return from_json(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--mask-shape", "full"), {"mask_shape": Full()}),
        (("--mask-shape", "causal"), {"mask_shape": Causal()}),
        (("--mask-shape", "window:3"), {"mask_shape": SlidingWindow(width=3)}),
        (("--mask-shape", "prefix:2"), {"mask_shape": Prefix(length=2)}),
        (("--mask-shape", "pad-left:1"), {"mask_shape": PadLeft(count=1)}),
        (("--mask-shape", "pad-right:1"), {"mask_shape": PadRight(count=1)}),
        (("--mask-shape", "blocks:2,3"), {"mask_shape": Blocks(lengths=(2, 3))}),
        (("--fill", "-1e9"), {"fill": -1e9}),
        (("--fill", "0", "--mask", "neg-inf"), {"fill": 0.0}),
        (("--fill", "-inf"), {"fill": -math.inf}),
        (("--mask", "multiply"), {"mask": "multiply"}),
        (("--mask", "add", "--fill", "-1e4"), {"mask": "add", "fill": -1e4}),
        (("--top-k", "3"), {"top_k": 3}),
        (("--projection", "rand"), {"projection": "rand"}),
        (("--projection", "none"), {"projection": "none", "num_heads": 1, "d_out": 3}),
        (("--mask-shape", "drawn:0:0-0,1:0-1,2:1-2"), {"mask_shape": Drawn(runs=((0, 0, 0), (1, 0, 1), (2, 1, 2)))}),
        (("--lesson", "one-class"), {"source": Lesson(name="one-class"), "seed": 3, "fill": -1e9}),
        (("--heads", "6", "--num-kv-heads", "2"), {"num_heads": 6, "num_kv_heads": 2}),
        (("--heads", "6", "--kv-heads", "3"), {"num_heads": 6, "num_kv_heads": 3}),
        (("--heads", "6"), {"num_heads": 6, "num_kv_heads": 6}),
        (("--soft-cap", "50"), {"soft_cap": 50.0}),
        (("--soft-cap", "none"), {"soft_cap": None}),
        (("--length", "8", "--pattern", "sink"), {"source": Pattern(length=8, pattern="sink")}),
    ],
)
def test_an_option_sets_its_field(tmp_path, arguments, expected):
    spec, view = described(tmp_path, *arguments)
    assert {name: getattr(spec, name) for name in expected} == expected
    assert view == View()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--rows", "1:4"), {"rows": (1, 4)}),
        (("--rows", "2:", "--cols", ":3"), {"rows": (2, 6), "cols": (0, 3)}),
        (("--cols", ":"), {"cols": (0, 6)}),
        (("--cols", "4:99"), {"cols": (4, 6)}),
        (("--rows", "all"), {"rows": None}),
        (("--rows", "1:2", "--stage", "queries", "--cols", "1:"), {"rows": (1, 2), "cols": (1, MAX_TOKENS)}),
        (("--pooling", "mean"), {"pooling": "mean"}),
        (("--pooling", "share"), {"pooling": "share"}),
    ],
)
def test_an_option_sets_its_field_of_the_view(tmp_path, arguments, expected):
    _, view = described(tmp_path, *arguments)
    assert {name: getattr(view, name) for name in expected} == expected


def test_what_a_spec_file_has_can_be_taken_back(tmp_path):
    path = tmp_path / "a.json"
    spec, view = (
        make_spec(soft_cap=5.0, fill=-9.0, num_kv_heads=1, top_k=2, projection="rand"),
        View(rows=(1, 2), cols=(0, 3), pooling="mean"),
    )
    path.write_text(to_json(spec, view))
    taken = ("--soft-cap", "none", "--top-k", "none", "--projection", "linear", "--fill", "-inf", "--kv-heads", "2",
             "--mask-shape", "causal", "--rows", "all", "--cols", "all", "--pooling", "max")  # fmt: skip
    assert described(tmp_path, "--spec", path, *taken) == (make_spec(), View())
    assert described(tmp_path, "--spec", path) == (spec, view)


def test_another_source_with_another_number_of_heads_over_a_spec_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(to_json(make_spec(Text(text="a b"), num_heads=12)))
    spec, _ = described(tmp_path, "--spec", path, "--length", "9", "--heads", "5")
    assert (spec.num_heads, spec.num_kv_heads, spec.d_out) == (5, 5, 320)


def test_a_mask_is_read_from_a_file(tmp_path):
    path = tmp_path / "mask.npy"
    np.save(path, np.eye(6, dtype=bool))
    spec, _ = described(tmp_path, "--mask-shape", path)
    assert isinstance(spec.mask_shape, MaskFile)
    assert spec.mask_shape.path == str(path)


def qk_file(path):
    draw = np.random.default_rng(1)
    np.savez(path, q=draw.standard_normal((4, 5, 8)), k=draw.standard_normal((2, 7, 8)))
    return path


def test_queries_and_keys_are_read_from_a_file(tmp_path, monkeypatch):
    path = qk_file(tmp_path / "my.npz")
    spec, _ = described(tmp_path, "--qk", path, "--mask", "none")
    assert isinstance(spec.source, QKFile)
    assert (spec.num_heads, spec.num_kv_heads, spec.d_out, spec.mask) == (4, 2, 32, "none")
    opened = []
    from attnviz import app

    monkeypatch.setattr(app, "run_window", lambda asked, **_: opened.append(asked) or 0)
    upper = path.rename(tmp_path / "my.NPZ")
    assert cli.run([str(upper)]) == 0
    assert cli.run([str(upper), "--rows", "2:"]) == 0
    assert opened[0].spec.source.path == str(upper)
    assert opened[1].view.rows == (2, MAX_TOKENS)


def test_arrays_that_the_program_wrote_open_as_queries_and_keys(tmp_path):
    path = tmp_path / "stages.npz"
    arrays = data_of(tmp_path, "--text", "to be or not to be", "--heads", "2")
    assert path.exists()
    again = tmp_path / "again"
    again.mkdir()
    read = data_of(again, "--qk", str(path))
    np.testing.assert_allclose(read["weights"], arrays["weights"], atol=1e-6)
    assert read["tokens"].tolist() == arrays["tokens"].tolist()


def test_what_is_wrong_in_a_file_is_said_by_the_files_own_names(tmp_path, capsys):
    path = tmp_path / "soft_cap.json"
    path.write_text('{"num_heads": 0}')
    assert cli.run(["render", "--image", str(tmp_path / "x.png"), "--spec", str(path)]) == 2
    assert capsys.readouterr().err == f"attnviz: {path}: num_heads is 0: give a whole number from 1 to 1,024\n"


def test_a_picture_before_dropout_says_where_it_acts_and_remarks_go_to_stderr(tmp_path, capsys):
    out = ("render", "--size", "300x300", "--image", str(tmp_path / "x.png"))

    def said(*arguments):
        assert cli.run([*out, *arguments]) == 0
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err.splitlines()

    assert said("--dropout", "0.5") == ["attnviz: dropout acts after this stage: see --stage dropped_weights"]
    assert said("--dropout", "0.5", "--dropout-site", "context")[0].endswith("--stage dropped_context")
    assert said("--dropout", "0.5", "--stage", "weights") == []
    assert said("--dropout", "0.5", "--stage", "dropped_weights") == []
    assert said("--dropout", "0.5", "--eval") == []
    (nan,) = said("--mask", "three-step", "--scores", "0 0 200; 0 0 1; 0 0 1")
    assert nan.startswith("attnviz: 1 row is NaN")


def test_help_lists_the_stages(capsys):
    assert cli.run(["render", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(stage in told for stage in STAGES)


def test_files_that_a_saved_spec_names_and_that_are_gone_end_with_1(tmp_path, capsys):
    saved, qk, mask = tmp_path / "a.json", qk_file(tmp_path / "my.npz"), tmp_path / "mask.npy"
    np.save(mask, np.ones((5, 7), bool))
    assert cli.run(["render", "--save-spec", str(saved), "--qk", str(qk), "--mask-shape", str(mask)]) == 0
    for path in (mask, qk):
        path.unlink()
        capsys.readouterr()
        assert cli.run(["render", "--data", str(tmp_path / "x.npz"), "--spec", str(saved)]) == 1
        err = capsys.readouterr().err
        assert path.name in err
        assert "there is no such file" in err
        assert err.count("\n") == 1


WRONG_FILES = [
    (["--qk", "no.npz"], "cannot read no.npz: there is no such file"),
    (["--qk", "spec.json"], "no .npz, .npy or .safetensors"),
    (["--qk", "qk.npz", "--heads", "2"], "--heads is 2, but this source fixes it at 4"),
    (["--qk", "qk.npz", "--heads", "2"], "leave --heads out"),
    (["--qk", "qk.npz", "--length", "4"], "two sources"),
    (["--mask-shape", "no.npy"], "cannot read no.npy: there is no such file"),
    (["--mask-shape", "triangle"], "give causal, full, window:W"),
    (["--mask-shape", "window:0"], "--mask-shape is 0: give 1 or more for window:W"),
    (["--mask-shape", "pad-left:-1"], "give 0 or more for pad-left:N"),
    (["--mask-shape", "blocks:3,0"], "give 1 or more for blocks:A,B,…"),
    (["--mask-shape", "window:x"], "give causal, full, window:W"),
    (["--mask-shape", "mask.npy"], "its mask is 3 × 3, but there are 6 queries × 6 keys"),
    (["--mask-shape", "qk.npz"], "no .npy file"),
    (["--fill", "0", "--mask", "none"], "fill belongs to --mask neg-inf or add"),
    (["--fill", "0", "--mask", "three-step"], "fill belongs to --mask neg-inf or add"),
    (["--fill", "0", "--mask", "multiply"], "fill belongs to --mask neg-inf or add"),
    (["--top-k", "0"], "--top-k is 0"),
    (["--top-k", "few"], "neither none nor a whole number"),
    (["--top-k", "2", "--mask", "three-step"], "acts after the softmax"),
    (["--projection", "rand", "--out-proj"], "--out-proj belongs to projections of nn.Linear"),
    (["--length", "9", "--random-qk", "--projection", "none"], "there are no projections"),
    (["--mask-shape", "drawn:0:2-1"], "the run 0:2-1"),
    (["--mask-shape", "drawn:0"], "drawn:ROW:FIRST-LAST"),
    (["--fill", "nan"], "fill is nan"),
    (["--fill", "low"], "neither -inf nor a number"),
    (["--heads", "4", "--kv-heads", "3"], "--kv-heads is 3, which 4 heads cannot share evenly"),
    (["--soft-cap", "0"], "--soft-cap is 0"),
    (["--soft-cap", "5", "--scale-after-mask"], "it cannot be used with --scale-after-mask"),
    (["--soft-cap", "much"], "neither none nor a number"),
    (["--rows", "3"], "no range"),
    (["--rows", "a:b"], "no range"),
    (["--rows", "3:3"], "--rows is 3:3: the end must lie beyond the start"),
    (["--rows", "4:2"], "--rows is 4:2: the end must lie beyond the start"),
    (["--rows", "-2:3"], "'-2:3': rows count from 0"),
    (["--rows", "-2:"], "'-2:': rows count from 0"),
    (["--cols", ":-1"], "':-1': columns count from 0"),
    (["--cols", "6:9"], "--cols begins at 6, but the map has 6"),
    (["--pooling", "median"], "median"),
    (["--pattern", "sink"], "--pattern belongs to --length"),
    (["--pattern", "zebra", "--length", "9"], "zebra"),
    (["--pattern", "sink", "--length", "9", "--random-qk"], "two sources"),
    (["--pattern", "sink", "--length", "2000000"], "1,048,576"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), WRONG_FILES, ids=[" ".join(a) for a, _ in WRONG_FILES])
def test_wrong_files_shapes_and_ranges_end_with_2_and_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qk_file(tmp_path / "qk.npz")
    np.save(tmp_path / "mask.npy", np.eye(3, dtype=bool))
    (tmp_path / "spec.json").write_text("{}")
    assert cli.run(["render", "--image", "x.png", *arguments]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.startswith("attnviz: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "x.png").exists()


def test_two_files_of_queries_and_keys_are_refused(tmp_path, capsys):
    assert cli.run(["a.npz", "--qk", "b.npz"]) == 2
    assert "give one" in capsys.readouterr().err


WRONG = [
    (["render"], "no output asked for"),
    (["render", "--image", "x.png", "--heads", "0"], "--heads is 0"),
    (["render", "--image", "x.png", "--d-out", "5"], "--d-out is 5, which 2 heads cannot share evenly: give --d-out 4"),
    (["render", "--image", "x.png", "--dropout", "1"], "--dropout is 1"),
    (["render", "--image", "x.png", "--mask", "maybe"], "maybe"),
    (["render", "--image", "x.png", "--stage", "row_sums"], "masked_scores"),
    (["render", "--image", "x.png", "--head", "2"], "0 to 1"),
    (["render", "--image", "x.png", "--head", "first"], "first"),
    (["render", "--image", "x.png", "--size", "0x0"], "0x0"),
    (["render", "--image", "x.png", "--size", "big"], "big"),
    (["render", "--image", "x.png", "--size", "100000x100000"], "100000x100000"),
    (["render", "--image", "x.png", "--text", ""], "--text is empty"),
    (["render", "--image", "x.png", "--scores", "1 x"], "x"),
    (["render", "--image", "x.png", "--scores", "1 2; 3"], "scores"),
    (["render", "--image", "x.png", "--lesson", "journey", "--text", "a"], "two sources"),
    (["render", "--image", "x.png", "--values", "1"], "belongs to --scores"),
    (["render", "--image", "x.png", "--random-qk"], "belongs to --length"),
    (["render", "--image", "x.png", "--lesson", "cat-eats-fish", "--heads", "2"], "no projections"),
    (["render", "--image", "x.png", "--spec", "nowhere.json"], "nowhere.json"),
    (["render", "--image", "x.png", "--no-such-option"], "no-such-option"),
    (["render", "--image", "x.png", "--scores", "0 0", "--d-out", "2"], "this source has none"),
    (["render", "--image", "same", "--data", "same"], "one path"),
    (["render", "--image", "x.jpg"], "write .png"),
    (["render", "--image", "a/x.TIFF"], "write .png, .svg, .pdf, .gif"),
    (["render", "--image", "picture"], "give a name that ends in .png"),
    (["render", "--data", "d.txt"], "write .npz"),
    (["render", "--image", "x.png", "--spec", "."], "that is a folder"),
    (["nowhere.png"], "cannot read nowhere.png: there is no such file; give the path of a picture that attnviz wrote"),
    (["render", "a.png", "--image", "b.png"], "'a.png' is no deck, which ends in .toml: give --spec a.png"),
    (["render", "--shows", "difference", "--image", "a.png"], "the other one, such as --beside mask=none"),
    (["render", "--stage", "dropped_weights", "--image", "a.png"], "; give --train --dropout 0.5 for dropped_weights"),
    (["nowhere.json"], "cannot read nowhere.json: there is no such file; give the path"),
    (["nowhere"], "'nowhere' is neither a command (window, render, devices, study, check, code, scene) nor a file"),
    (["no\0where"], "neither a command"),
    (["--heads", "0"], "--heads is 0"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(a)[:60] for a, _ in WRONG])
def test_wrong_arguments_end_with_2_and_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.startswith("attnviz: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help_says_values_as_they_are_typed_and_what_studies_take(capsys):
    assert cli.run(["--help"]) == 0
    assert "...\n" not in capsys.readouterr().out.split("Commands:")[1]
    assert cli.run(["render", "--help"]) == 0
    told = capsys.readouterr().out
    for words in ("journey|cat-eats-fish|one-class|FILE.toml", "N|all", "sums, errors, vanished, maps\n", "draws=1000"):
        assert words in told
    assert changed(make_spec(), {"lesson": "CAT-EATS-FISH"}).source == Lesson(name="cat-eats-fish")


def test_what_is_taken_otherwise_than_it_was_meant_is_said(capsys, tmp_path):
    assert (
        cli.run(["render", "--rows", "2:9", "--cols", "1:", "--size", "300x300", "--image", f"{tmp_path}/a.gif"]) == 0
    )
    err = capsys.readouterr().err
    assert "--rows is 2:9, but the map ends at 6: drawn as 2:6\n" in err
    assert "cols" not in err
    assert "this GIF is one picture, which does not move: give --animate stages," in err


def test_an_axis_that_has_no_room_for_its_name_has_none_and_that_is_said(capsys, tmp_path):
    arguments = ["render", "--text", "the cat eats the fish", "--heads", "4", "--image", str(tmp_path / "a.svg")]
    assert cli.run([*arguments, "--size", "8.5x3cm", "--real-text"]) == 0
    assert "this size has no room for the names of axes (query): give more" in capsys.readouterr().err
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">key<" in drawn
    assert "…" not in drawn


@pytest.mark.parametrize(
    ("name", "words"),
    [("x.jpg", "a picture of this kind remembers nothing: give one that attnviz wrote (.png,"),
     ("x.toml", "attnviz render x.toml --out FOLDER makes a deck's pictures")],
)  # fmt: skip
def test_a_file_that_holds_no_state_is_told_what_it_is(name, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(b"\xff\xd8")
    assert cli.run([name]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "codec" not in err


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"heads": 2}', b'{"version": 99}', b"[]", b"null"])
def test_an_unreadable_spec_file_ends_with_2_and_names_the_file(content, capsys, tmp_path):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    assert cli.run(["render", "--image", str(tmp_path / "x.png"), "--spec", str(path)]) == 2
    assert "broken.json" in capsys.readouterr().err


def test_failures_end_with_1_and_one_line(capsys, tmp_path):
    folder = tmp_path / "folder.png"
    folder.mkdir()
    lines = [
        (["--image", str(tmp_path / "no" / "x.png")], "does not exist"),
        (["--data", str(tmp_path / "no" / "x.npz")], "does not exist"),
        (["--image", str(folder)], "folder"),
        (["--image", str(tmp_path / ("x" * 300 + ".png"))], "name is too long"),
        (["--image", str(tmp_path / "x.png"), "--device", "cuda:7"], "cuda:7 is not here"),
    ]
    for arguments, words in lines:
        assert cli.run(["render", *arguments]) == 1
        err = capsys.readouterr().err
        assert words in err
        assert err.count("\n") == 1


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(b"old")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [sys.executable, "-m", "attnviz", "render", "--image", str(path)],
        preexec_fn=limit, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_picture_has_its_size_and_carries_its_spec(tmp_path):
    from PySide6.QtGui import QImage

    path = tmp_path / "x.png"
    assert cli.run(["render", "--image", str(path), "--size", "640x400", "--text", "eat 🍕 now"]) == 0
    image = QImage(str(path))
    assert (image.width(), image.height()) == (640, 400)
    assert recall(path) == Figure(spec=make_spec(Text(text="eat 🍕 now")), paper=Paper(width=640, height=400))


def test_data_and_devices_need_no_qt(tmp_path):
    script = (
        "import sys; from attnviz import cli\n"
        f"assert cli.run(['render', '--data', {str(tmp_path / 'x.npz')!r}]) == 0\n"
        "assert cli.run(['devices']) == 0\n"
        "assert not [m for m in sys.modules if m.startswith('PySide6')]\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cpu\t")


def test_importing_the_application_loads_no_torch():
    script = "import sys, attnviz.app; assert 'torch' not in sys.modules, 'torch'"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_first_word_is_a_command_or_a_file(tmp_path, monkeypatch):
    opened = []
    from attnviz import app

    monkeypatch.setattr(app, "run_window", lambda asked, **_: opened.append(asked) or 0)
    path = tmp_path / "mine.json"
    path.write_text(to_json(make_spec(num_heads=3)))
    assert cli.run([]) == 0
    assert cli.run([str(path)]) == 0
    assert cli.run([str(path), "--mask", "none"]) == 0
    assert cli.run(["--lesson", "cat-eats-fish"]) == 0
    assert opened[0] is None
    assert opened[1].spec.num_heads == 3
    assert opened[2].spec.mask == "none"
    assert opened[3].spec.source == Lesson(name="cat-eats-fish")


def test_help_and_version(capsys):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("attnviz ")
    assert cli.run(["--help"]) == 0
    assert "render" in capsys.readouterr().out
    assert cli.run(["render", "--help"]) == 0
    assert "--dropout-generator" in capsys.readouterr().out


def test_ctrl_c_ends_with_130(monkeypatch):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "main", interrupted)
    assert cli.run(["devices"]) == 130


@pytest.mark.parametrize("arguments", [["devices"], ["--help"]])
def test_a_full_standard_output_is_one_line(arguments):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "attnviz", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "cannot write" in done.stderr


@pytest.mark.parametrize("platform", ["nope", "xcb"])
def test_a_platform_that_cannot_be_is_said_in_one_line(platform):
    environ = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-m", "attnviz"], env=environ | {"QT_QPA_PLATFORM": platform}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"attnviz: QT_QPA_PLATFORM is {platform}")
    assert done.stderr.count("\n") == 1


def test_without_a_display_the_window_is_written_in_one_line(tmp_path):
    environ = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    done = subprocess.run(
        [sys.executable, "-m", "attnviz"], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "attnviz.png").exists()
    assert done.stderr.count("\n") == 1
    assert "attnviz.png" in done.stderr
    assert recall(tmp_path / "attnviz.png").spec.source == Lesson(name="cat-eats-fish")


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2_000_000_000), ("500 M", 500_000_000), ("1.5g", 1_500_000_000), ("1MB", 1_000_000)]
)
def test_an_amount_of_memory(text, size):
    assert cli_render.Bytes().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "much", "1e9", "2 PB", "nan", "2", "999 kB"])
def test_what_is_no_amount_of_memory(text, tmp_path, capfd):
    assert cli.run(["render", "--image", str(tmp_path / "a.png"), "--memory", text]) == 2
    assert "such as 2GB" in capfd.readouterr().err


def test_memory_bounds_what_is_computed(tmp_path, capfd):
    out = str(tmp_path / "a.png")
    assert cli.run(["render", "--length", "2000", "--image", out, "--memory", "1MB"]) == 1
    line = capfd.readouterr().err
    assert line.count("\n") == 1
    assert "the memory limit is 1.0 MB, as it was set" in line


@pytest.mark.parametrize("mask", ["multiply", "add"])
def test_every_mask_mode_has_a_picture(tmp_path, mask):
    assert cli.run(["render", "--lesson", "cat-eats-fish", "--mask", mask, "--image", str(tmp_path / "o.png")]) == 0
