"""Leak tests at their edges: overflow, nothing hidden, derivatives beside rounding, names, what is cut short."""

import math
import os
import sys

import leaky_modules
import pytest
import torch
from test_check import check, named, run
from torch import nn

from attnviz import subjects
from attnviz.cli import check_words
from attnviz.leak_lines import from_line, to_line
from attnviz.spec import Full, Prefix, RandomEmbeddings, edited, make_spec
from attnviz.studies.leak import Plan, answers
from attnviz.studies.leak.against import share_weights
from attnviz.studies.leak.spec_subject import SpecSubject
from attnviz.subjects import Wishes

SMALL = make_spec(RandomEmbeddings(length=8), d_model=16, d_out=16, num_heads=2)
ONCE = {"length": 8, "factors": (1.0,)}


def answer_of(subject, **plan):
    *_, last = answers(subject, Plan(**{**ONCE, **plan}))
    return last


def function(run, d=16):
    return subjects.build(run, "it", Wishes(d_model=d, length=8))


@pytest.mark.parametrize("mask", ["neg-inf", "add", "three-step"])
def test_a_specs_own_overflow_is_no_fault_of_its_mask(mask):
    answer = answer_of(SpecSubject(edited(SMALL, mask=mask)), scale=1000.0, dtypes=("float64", "float16"))
    short = answer.readings[1]
    assert (short.dtype, short.overflows) == ("float16", True)
    assert short.nan_rows > 0
    assert check_words.status_of(answer, 1000.0, strict=False) == (1 if answer.readings[0].nan_rows else 0)


def test_a_mask_that_is_added_in_the_product_is_no_overflow():
    def added(x):
        mask = torch.full((x.shape[1], x.shape[1]), -math.inf, dtype=x.dtype).triu(1).expand(len(x), -1, -1)
        return torch.baddbmm(mask, x, x.transpose(1, 2)).softmax(-1) @ x

    answer = answer_of(function(added), dtypes=("float32",))
    assert not answer.readings[0].overflows
    assert answer.readings[0].verdict == "exactly zero"


@pytest.mark.parametrize("shape", [Full(), Prefix(length=8)], ids=["full", "prefix of all"])
def test_where_nothing_is_hidden_that_is_said(shape):
    answer = answer_of(SpecSubject(edited(SMALL, mask_shape=shape)), dtypes=("float64",))
    reading = answer.readings[0]
    assert (reading.verdict, reading.figure, reading.remark) == ("exactly zero", 0, "nothing is hidden")
    assert check_words.summary(answer, 1.0, 0) == ["Nothing is hidden: every token may move every output."]


def test_another_mask_than_the_futures_is_not_told_as_that():
    answer = answer_of(SpecSubject(edited(SMALL, mask_shape=Prefix(length=3))), dtypes=("float64",), gradient=True)
    assert check_words.summary(answer, 1.0, 0)[-1] == (
        "Clean: no output moves when a token changes that it must not see."
    )
    assert "a token that it must not see" in check_words.gradient_line(answer.gradient)


# ------------------------------------------------------------------------------------------------------------ gradient


def test_rounding_is_no_dependence():
    answer = answer_of(SpecSubject(edited(SMALL, mask="three-step")), gradient=True)
    assert answer.gradient.hidden_slope > 0
    assert answer.gradient.at is None
    assert check_words.gradient_line(answer.gradient).endswith(
        "no output depends on a later token by more than rounding."
    )


def test_derivatives_are_judged_in_what_a_module_computes_in():
    def single(x):
        return torch.fft.irfft(torch.fft.rfft(x.float().cumsum(1), dim=1), n=x.shape[1], dim=1).to(x.dtype)

    answer = answer_of(function(single), dtypes=("float64", "float32"), gradient=True)
    assert {reading.verdict for reading in answer.readings} == {"rounding"}
    assert answer.gradient.at is None
    assert (answer.gradient.moved[answer.gradient.hidden] <= 8).all()


def test_derivatives_that_take_too_long_are_given_up_and_the_verdict_stands(monkeypatch):
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr("attnviz.studies.leak.derivatives.time.monotonic", lambda: float(next(clock)))
    answer = answer_of(SpecSubject(edited(SMALL, mask="multiply")), gradient=True, gradient_s=12.0)
    assert answer.gradient.remark == "it takes longer than 12 s"
    assert answer.readings[0].verdict == "leak in the code"
    assert answer.finished


def test_infinite_derivatives_can_be_told_in_a_line():
    def steep(x):
        return x.cumsum(1) + (x[:, -1:] - x[:, -1:].detach()).sqrt()

    answer = answer_of(function(steep), dtypes=("float64",), gradient=True)
    assert answer.gradient.hidden_slope == math.inf
    told = None
    for line in (to_line(answer_of(function(steep), dtypes=("float64",))), to_line(answer)):
        told = from_line(line, told)
    assert told.gradient.hidden_slope == math.inf


# --------------------------------------------------------------------------------------------------------------- names


def test_one_head_without_a_mask_is_not_called_undivided():
    class OneHead(nn.Module):
        def __init__(self, d_model):
            super().__init__()
            self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

        def forward(self, x):
            b, n, d = x.shape
            q, k, v = (t.reshape(b, n, 4, d // 4).transpose(1, 2) for t in self.qkv(x).split(d, -1))
            mask = torch.ones(n, n, dtype=torch.bool).tril().expand(4, n, n).clone()
            mask[2] = True
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return self.out(mixed.transpose(1, 2).reshape(b, n, d))

    answer = answer_of(subjects.build(OneHead, "OneHead", Wishes(length=16)), length=16, dtypes=("float64",))
    assert answer.readings[0].verdict == "leak in the code"
    assert answer.pattern == ""


@pytest.mark.parametrize("seed", range(6))
def test_what_looks_at_a_sign_alone_is_found_with_every_seed(seed):
    def parity(x):
        return x * (1 + (x[:, -1:, :1] > 0).to(x.dtype))

    answer = answer_of(function(parity), dtypes=("float64",), seed=seed)
    assert answer.readings[0].verdict == "leak in the code"
    assert answer.pattern == ""


# ------------------------------------------------------------------------------------------------------------- against


def test_a_specs_weights_are_its_own(capsys):
    spec = SpecSubject(SMALL)
    assert not share_weights(spec, nn.Linear(16, 16)).same
    assert share_weights(leaky_modules.mean, leaky_modules.mean).same
    sizes = ("--length", "6", "--d-model", "64", "--d-out", "64", "--heads", "4", "--dtype", "float64")
    status, lines, _ = check(capsys, *sizes, "--against", named("Attention"))
    assert status == 3
    assert lines[-1] == check_words.NOT_COMPARED


def test_without_gradients_outputs_are_compared_all_the_same(capsys, tmp_path):
    file = tmp_path / "pair.py"
    file.write_text(
        "import torch\ndef mean(x):\n    return x.cumsum(1)\ndef cut(x):\n    return x.detach().cumsum(1)\n"
        "def twice(x):\n    return 2 * x.detach().cumsum(1)\n"
    )
    status, lines, _ = check(capsys, f"{file}:mean", "--against", f"{file}:cut", "--length", "4", "--dtype", "float64")
    assert status == 0
    assert any("bit for bit" in line and "outputs alone" in line for line in lines)
    assert check(capsys, f"{file}:mean", "--against", f"{file}:twice", "--length", "4", "--dtype", "float64")[0] == 1


# ---------------------------------------------------------------------------------------------------------- the process


def test_a_module_that_ends_the_process_does_not_pass_for_clean(tmp_path):
    file = tmp_path / "quits.py"
    file.write_text("import os\ndef f(x):\n    os._exit(0)\n")
    check = run(f"{file}:f", "--length", "4")
    out, _ = check.communicate(timeout=100)
    assert check.returncode == 3
    assert "it ends the process, with os._exit(0)" in out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_what_cannot_be_written_is_no_leak():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        import subprocess

        done = subprocess.run(
            [sys.executable, "-m", "attnviz", "check", named("Attention"), "--length", "4", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("attnviz: cannot write")
