"""`attnviz check` as it is typed: what it finds, builds, calls and prints, and with which status it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from attnviz import cli, subjects
from attnviz.figure import leak_map
from attnviz.subjects import SubjectError, Wishes

FILE = Path(__file__).with_name("leaky_modules.py")


def check(capsys, *arguments):
    """Status, lines of stdout, and stderr."""
    status = cli.run(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def named(name):
    return f"{FILE}:{name}"


def test_a_leak_is_said_with_its_figure_its_pair_and_its_name(capsys):
    status, lines, err = check(capsys, named("OneTooMany"), "--length", "8")
    assert (status, err) == (1, "")
    assert "8 tokens" in lines[0]
    first = next(line for line in lines if line.startswith("cpu"))
    assert "float64" in first
    assert "leak in the code" in first
    assert "output 0 ← token 1" in first
    assert "It looks like one token too many: each output sees the next token" in "\n".join(lines)
    assert lines[-1] == "It fails."


def test_a_clean_module_is_cleared_in_one_sentence(capsys):
    status, lines, _ = check(capsys, named("Attention"), "--length", "8")
    assert status == 0
    assert lines[-1] == "Clean: no output moves when a later token changes."
    assert sum("exactly zero" in line for line in lines) >= 12
    assert not any("looks like" in line for line in lines)


def test_json_is_one_object_and_nothing_else(capsys):
    status, lines, err = check(capsys, named("NotDivided"), "--length", "6", "--json")
    (line,) = lines
    found = json.loads(line)
    assert (status, found["status"], err) == (1, 1, "")
    assert found["looks_like"] == "not divided again"
    assert [r["dtype"] for r in found["readings"][:4]] == ["float64", "float32", "bfloat16", "float16"]
    assert found["readings"][0]["moved_eps"] > 1e10
    assert found["readings"][0]["pair"] == [0, 1]
    assert {r["scale"] for r in found["readings"]} == {1, 10, 100, 1000}


def test_the_derivatives_say_the_same(capsys):
    status, lines, _ = check(capsys, named("OneTooMany"), "--length", "6", "--gradient", "--dtype", "float32")
    assert status == 1
    assert any(line.startswith("By gradient in float64: output ") for line in lines)
    status, lines, _ = check(capsys, named("Attention"), "--length", "6", "--gradient", "--json")
    assert (status, json.loads(lines[0])["gradient"]["largest"]) == (0, 0)
    _, lines, _ = check(capsys, named("stops"), "--length", "6", "--gradient")
    assert any(line.startswith("By gradient: RuntimeError: ") for line in lines)


def test_the_scale_moves_the_verdict(capsys):
    at_one, lines, _ = check(capsys, named("FillTenThousand"), "--dtype", "float32")
    assert at_one == 0
    assert any(line.startswith("With inputs × 1000, scores × 1,000,000, it leaks in float64") for line in lines)
    at_thousand, lines, _ = check(
        capsys, named("FillTenThousand"), "--dtype", "float32", "--scale", "1000", "--seed", "0"
    )
    assert at_thousand == 1
    assert any("× 1000  leak in the code" in line for line in lines)


def test_strict_makes_a_leak_of_the_arithmetic_a_failure(capsys):
    arguments = [named("three_step"), "--d-model", "4", "--length", "16", "--scale", "2", "--seed", "4"]
    lenient, lines, _ = check(capsys, *arguments)
    assert any("leak in the arithmetic" in line for line in lines)
    assert "The arithmetic of float16 lets later tokens through; the code does not." in lines
    strict, _, _ = check(capsys, *arguments, "--strict")
    assert (lenient, strict) == (0, 1)


def test_a_spec_by_its_options_or_its_file(capsys, tmp_path):
    status, lines, _ = check(
        capsys, "--length", "8", "--heads", "2", "--d-model", "16", "--d-out", "16", "--mask", "multiply"
    )
    assert status == 1
    assert "It looks like weights masked after the softmax and not divided again: an output is scaled." in lines
    path = tmp_path / "spec.json"
    assert cli.run(["render", "--length", "8", "--mask", "neg-inf", "--save-spec", str(path)]) == 0
    capsys.readouterr()
    status, lines, _ = check(capsys, path)
    assert status == 0
    status, _, err = check(capsys, "--lesson", "cat-eats-fish")
    assert status == 2
    assert "projections" in err


@pytest.mark.parametrize(("arguments", "status", "words"), [
    ([], 2, "nothing to test"),
    (["nowhere.py:Class"], 2, "there is no file 'nowhere.py'"),
    (["no.such.module:Class"], 2, "there is no module 'no.such.module'"),
    (["Attention"], 2, "names no module: give FILE.py:NAME"),
    ([named("Atention")], 2, "has no 'Atention': did you mean Attention"),
    ([named("FromConfig")], 2, "wants config: give --arg config=…, or name a function that builds it"),
    ([named("Config")], 2, "is a class, but no nn.Module"),
    ([named("Attention"), "--arg", "depth=2"], 2, "takes no depth: its arguments are d_in, d_out, context_length"),
    ([named("Attention"), "--arg", "depth"], 2, "give NAME=VALUE"),
    ([named("Attention"), "--mask", "none"], 2, "--mask belongs to a spec"),
    ([named("Attention"), "--length", "1"], 2, "1 tokens: a test takes 2"),
    ([named("Attention"), "--scale", "0"], 2, "--scale is 0"),
    ([named("Attention"), "--device", "cuda:7"], 2, "there is no device cuda:7 here: choose one of cpu"),
    ([named("Attention"), "--arg", "num_heads=0"], 3, "raised ZeroDivisionError"),
    ([named("Raises")], 3, "untested"), ([named("WrongShape")], 3, "untested"), ([named("Restless")], 3, "untested"),
    (["math:pi"], 2, "is float: name an nn.Module class or a function"),
])  # fmt: skip
def test_what_cannot_be_tested_says_what_would_help(capsys, monkeypatch, tmp_path, arguments, status, words):
    monkeypatch.chdir(tmp_path)
    found, lines, err = check(capsys, *arguments)
    assert found == status
    assert words in "\n".join([*lines, err])
    assert "Traceback" not in err


def test_a_file_that_cannot_be_run_is_told_with_its_line(capsys, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("import math\n\nraise OSError('no such disk')\n")
    status, _, err = check(capsys, f"{bad}:Class")
    assert status == 3
    assert f"bad.py could not be run: OSError: no such disk ({bad}:3)" in err
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert check(capsys, f"{tmp_path / 'broken.py'}:f")[0] == 3
    exits = tmp_path / "exits.py"
    exits.write_text("import sys\nsys.exit(7)\n")
    assert check(capsys, f"{exits}:f")[0] == 3


def test_a_file_may_import_its_neighbours(capsys, tmp_path):
    (tmp_path / "neighbour_of_it.py").write_text("WIDTH = 24\n")
    (tmp_path / "it.py").write_text(
        "from dataclasses import dataclass\nfrom neighbour_of_it import WIDTH\nfrom torch import nn\n"
        "@dataclass\nclass Sizes:\n    width: int = WIDTH\n"
        "class Same(nn.Module):\n    def forward(self, x):\n        return x * Sizes().width\n"
    )
    assert check(capsys, f"{tmp_path / 'it.py'}:Same")[0] == 0


def test_a_module_of_the_library_by_its_name(capsys):
    status, lines, _ = check(capsys, "torch.nn:MultiheadAttention", "--d-model", "16", "--heads", "2", "--length", "8")
    assert status == 1
    assert any("no mask" in line for line in lines)
    assert check(capsys, "torch.nn:Identity")[0] == 0


# -------------------------------------------------------------------------------------------------------- arguments


def test_arguments_are_filled_in_by_their_names():
    class Asks(nn.Module):
        def __init__(self, n_embd, n_head, block_size, dropout, batch_first, bias, extra=3):
            super().__init__()
            self.given = (n_embd, n_head, block_size, dropout, batch_first, bias, extra)
            self.layer = nn.Linear(n_embd, n_embd)

        def forward(self, x):
            return self.layer(x)

    subject = subjects.build(Asks, "Asks", Wishes(d_model=10, num_heads=5, length=7))
    assert subject.run.given == (10, 5, 7, 0.0, True, True, 3)
    assert subject.d == 10
    other = subjects.build(Asks, "Asks", Wishes(arguments={"n_embd": 6, "extra": 9}))
    assert other.run.given[0] == 6
    assert other.run.given[-1] == 9
    assert other.d == 6


def test_what_has_a_default_keeps_it_but_for_dropout_and_the_batch_axis():
    class Asks(nn.Module):
        def __init__(self, d_model=48, dropout=0.3, batch_first=False):
            super().__init__()
            self.given = (d_model, dropout, batch_first)
            self.layer = nn.Linear(d_model, 8)

    subject = subjects.build(Asks, "Asks", Wishes(d_model=10))
    assert subject.run.given == (48, 0.0, True)
    assert subject.d == 48


@pytest.mark.parametrize(("made", "calls"), [
    (lambda x: x * 2, 1), (lambda q, k, v: q + k + v, 3), (lambda hidden_states: hidden_states, 1),
])  # fmt: skip
def test_functions_of_inputs_are_called_as_they_ask(made, calls):
    seen = []

    subject = subjects.build(made, "it", Wishes())
    assert subject.run is made
    x = torch.ones(2, 3, subject.d)
    out = subject.on(torch.device("cpu"), torch.float32)(x)
    seen.append(float(out[0, 0, 0]))
    assert seen[0] == {1: float(made(torch.ones(()))) if calls == 1 else 0, 3: 3.0}[calls]


def test_forward_that_wants_more_says_how_it_can_be_called():
    class Wants(nn.Module):
        def forward(self, x, memory):
            return x

    with pytest.raises(SubjectError, match="wants x, memory: --call self") as error:
        subjects.build(Wants, "Wants", Wishes()).on(torch.device("cpu"), torch.float32)
    assert error.value.kind == "asked"

    class Three(nn.Module):
        def forward(self, a, b, c):
            return a + b + c

    call = subjects.build(Three, "Three", Wishes(call="self")).on(torch.device("cpu"), torch.float32)
    assert float(call(torch.ones(1, 1, 1))[0, 0, 0]) == 3


def test_the_module_itself_is_left_as_it_is():
    module = nn.Linear(8, 8).train()
    subject = subjects.build(module, "it", Wishes())
    assert subject.d == 8
    subject.on(torch.device("cpu"), torch.float64)(torch.ones(1, 2, 8, dtype=torch.float64))
    assert module.weight.dtype == torch.float32
    assert module.training


def test_of_a_mapping_the_first_tensor_of_the_right_shape_counts():
    def gives(x):
        return {"loss": x.sum(), "last_hidden_state": x + 1, "other": x}

    call = subjects.build(gives, "it", Wishes()).on(torch.device("cpu"), torch.float32)
    assert float(call(torch.ones(1, 2, 64))[0, 0, 0]) == 2


# ----------------------------------------------------------------------------------------------------- as a program


def run(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "attnviz", "check", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )  # fmt: skip


def test_what_c_code_and_children_print_does_not_stand_among_what_is_found(tmp_path):
    noisy = tmp_path / "noisy.py"
    noisy.write_text(
        "import os\nos.system('echo as it is read')\ndef f(x):\n    os.system('echo from a child')\n"
        "    os.write(1, b'raw')\n    return x.cumsum(1)\n"
    )
    out, err = run(f"{noisy}:f", "--length", "4", "--json").communicate(timeout=100)
    assert json.loads(out)["status"] == 0
    assert err.startswith("as it is read\n")
    assert "from a child" in err


@pytest.mark.skipif(sys.platform == "win32", reason="preexec_fn")
@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_descriptor_is_no_failure(closed, tmp_path):
    done = run(named("Attention"), "--length", "4", "--dtype", "float32", preexec_fn=lambda: os.close(closed))
    done.communicate(timeout=100)
    assert done.returncode == 0


def test_a_module_that_hangs_ends_with_3_and_a_sentence(tmp_path):
    hangs = tmp_path / "hangs.py"
    hangs.write_text("import time\ndef f(x):\n    time.sleep(600)\n    return x\n")
    out, err = (process := run(f"{hangs}:f", "--timeout", "1")).communicate(timeout=60)
    assert process.returncode == 3
    assert "did not answer within 1 s: --timeout gives it longer" in err
    assert "Traceback" not in out + err


def test_ctrl_c_ends_it_at_once(tmp_path):
    hangs = tmp_path / "hangs.py"
    hangs.write_text("import time\nprint('here', flush=True)\ndef f(x):\n    time.sleep(600)\n    return x\n")
    process = run(f"{hangs}:f")
    assert process.stderr.readline().strip() == "here"  # stdout is for what is found
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT  # which a shell calls 130
    assert err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no such timer there")
@pytest.mark.slow
def test_a_loop_that_holds_pythons_lock_ends_too(tmp_path):
    """Neither a thread of Python's nor a handler of its signals runs then: the system ends the process."""
    busy = tmp_path / "busy.py"
    busy.write_text("print('here', flush=True)\ndef f(x):\n    sum(range(10**12))\n    return x\n")
    process = run(f"{busy}:f", "--timeout", "1")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGALRM
    process = run(f"{busy}:f")
    assert process.stderr.readline().strip() == "here"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT


def test_it_needs_no_qt(tmp_path):
    (tmp_path / "PySide6").mkdir()
    (tmp_path / "PySide6" / "__init__.py").write_text("raise ImportError('no Qt here')\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from attnviz import cli; sys.exit(cli.run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", named("Attention"), "--length", "4", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == 0


def test_what_a_module_prints_stands_beside_what_is_found(capsys):
    status = cli.run(["check", named("prints"), "--length", "6", "--json"])
    out, err = capsys.readouterr()
    assert (status, json.loads(out)["status"]) == (0, 0)
    assert "noise" in err


def test_a_folder_that_is_not_there_is_said_before_anything_runs(capsys, tmp_path):
    status, lines, err = check(capsys, named("Attention"), "--image", str(tmp_path / "no" / "leak.png"))
    assert (status, lines) == (2, [])
    assert "there is no folder" in err


def test_the_picture_begins_with_the_verdict(capsys, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(leak_map, "write_leak_image", lambda _path, _reading, *said: told.append(said))
    for name in ("Attention", "NoMask"):
        check(capsys, named(name), "--length", "6", "--image", str(tmp_path / "a.png"))
    (clean, notes), (leaks, looks) = told
    assert clean == (named("Attention"), "Clean: no output moves when a later token changes.")
    assert notes[-1] == "The map: cpu float64, 6 tokens."
    assert leaks[1] == "It leaks: output 0 moves when token 1 changes."
    assert looks[0].startswith("It looks like no mask")


def test_a_test_of_some_tokens_says_of_how_many(capsys):
    status, lines, _ = check(capsys, named("LateAndSparse"), "--length", "600", "--dtype", "float64")
    assert status in (0, 1)
    assert any("tokens changed" in line for line in lines) or "It fails." in lines


def test_nothing_is_left_beside_a_file_and_its_neighbours_stand_in_for_nothing(capsys, tmp_path):
    (tmp_path / "mine.py").write_text("import json\ndef f(x):\n    assert json.dumps\n    return x.cumsum(1)\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('a neighbour ran')\n")
    assert check(capsys, f"{tmp_path / 'mine.py'}:f", "--length", "4")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["json.py", "mine.py"]


def test_other_weights_are_not_called_another_function(capsys):
    status, lines, _ = check(capsys, named("Attention"), "--against", named("SideBySide"), "--length", "6")
    assert status == 3
    assert any("their weights are not the same" in line for line in lines)
    assert not any(line.startswith("They differ") for line in lines)
    assert lines[-2:] == [
        "Clean: no output moves when a later token changes.", "Whether the two are the same could not be tested.",
    ]  # fmt: skip


def test_another_function_is_told_apart_from_a_leak(capsys):
    status, lines, _ = check(capsys, named("Attention"), "--against", named("NotDivided"), "--length", "6")
    assert status == 1
    assert lines[-2] == "Clean: no output moves when a later token changes."
    assert lines[-1].startswith("They differ in ")


def test_a_specs_own_derivatives_are_told(capsys):
    _, lines, _ = check(capsys, "--length", "6", "--gradient", "--dtype", "float32")
    assert "By gradient in float64: no output depends on a later token." in lines


def test_rounding_is_not_called_not_moving(capsys):
    _, lines, _ = check(capsys, named("ThreeStep"), "--length", "8", "--dtype", "float32")
    assert lines[-1] == "Clean: no output moves by more than rounding when a later token changes."


def written(folder, text):
    file = folder / "theirs.py"
    file.write_text(f"import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n{text}\n")
    return file


@pytest.mark.parametrize(
    ("inside", "init"),
    [
        ("self.dim = d_model // num_heads", "d_model, num_heads"),
        ("self.hidden_size = 4 * embed_dim", "embed_dim"),
        ("self.pos = nn.Linear(1, 4)", "d_model"),
    ],
)
def test_an_inputs_width_is_the_one_that_the_module_was_built_with(capsys, tmp_path, inside, init):
    width = init.split(",")[0]
    file = written(
        tmp_path,
        f"class Own(nn.Module):\n    def __init__(self, {init}):\n        super().__init__()\n        {inside}\n"
        f"        self.out = nn.Linear({width}, {width})\n    def forward(self, x):\n        return self.out(x)",
    )
    assert check(capsys, f"{file}:Own", "--length", "4")[0] == 0


def test_inputs_too_large_for_a_dtype_are_no_fault_of_the_module(capsys, tmp_path):
    file = written(tmp_path, "def same(x):\n    return x")
    status, lines, _ = check(capsys, f"{file}:same", "--length", "4", "--scale", "1e6")
    assert status == 0
    assert any("float16" in line and "themselves too large for float16" in line for line in lines)


def test_outputs_that_nothing_moves_clear_nobody(capsys, tmp_path):
    file = written(tmp_path, "def still(x):\n    return torch.ones_like(x)")
    status, lines, _ = check(capsys, f"{file}:still", "--length", "4")
    assert (status, lines[-1]) == (3, "It could not be tested.")
    assert any("no output depends on the input" in line for line in lines)


def test_a_sum_that_is_constant_hides_no_derivative(capsys, tmp_path):
    file = written(tmp_path, "def leaks(x):\n    return F.layer_norm(x + x.mean(1, keepdim=True), (x.shape[-1],))")
    _, lines, _ = check(capsys, f"{file}:leaks", "--length", "6", "--gradient", "--json")
    assert json.loads(lines[0])["gradient"]["largest"] > 1e-3


def test_derivatives_that_are_no_numbers_say_so(capsys, tmp_path):
    file = written(
        tmp_path,
        "def empty(x):\n    above = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(0)\n"
        "    return (x @ x.mT).masked_fill(above, -torch.inf).softmax(-1) @ x",
    )
    _, lines, _ = check(capsys, f"{file}:empty", "--length", "6", "--gradient")
    assert "By gradient: some derivatives are NaN" in lines


@pytest.mark.parametrize(
    ("name", "more", "status", "words"),
    [
        ("same", ("--seed", str(1 << 70)), 2, "--seed is"),
        ("same", ("--image", "."), 2, "is a folder"),
        ("absent", (), 3, "could not be looked up: RuntimeError: not here"),
        ("Fails", (), 3, "raised ValueError: no"),
        ("same", ("--arg", "causal={[]: 1}"), 2, "causal"),
    ],
)
def test_what_fails_on_the_way_is_no_leak(capsys, tmp_path, name, more, status, words):
    file = written(
        tmp_path,
        "def same(x):\n    return x\ndef __getattr__(name):\n    raise RuntimeError('not here')\n"
        "class Fails(nn.Module):\n    def __init__(self):\n        raise ValueError('no')\n"
        "Fails.__module__ = 'nowhere'",
    )
    ended, _, err = check(capsys, f"{file}:{name}", *more)
    assert ended == status
    assert words in err


def test_a_class_typed_where_there_is_no_file_is_tested():
    text = (
        "from torch import nn\nfrom attnviz.testing import assert_causal\n"
        "class Own(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.p = nn.Linear(8, 8)\n"
        "    def forward(self, x):\n        return self.p(x)\n"
        "assert_causal(Own(), length=4)\nprint('clean')"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "clean\n"), done.stderr
