"""The two lines for other people's tests, and `check --against`."""

import json
from pathlib import Path

import leaky_modules
import pytest
import torch
from torch import nn

from attnviz import cli
from attnviz.testing import assert_causal, assert_equivalent

FILE = Path(__file__).with_name("leaky_modules.py")


def made(kind, **more):
    torch.manual_seed(0)
    return kind(d_in=16, d_out=16, context_length=16, dropout=0.2, num_heads=2, **more)


def test_what_is_causal_passes_and_is_left_as_it_was():
    module = made(leaky_modules.Attention).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    assert_causal(module)
    assert_causal(leaky_modules.Attention, d_model=64)  # a class is built
    assert_causal(leaky_modules.running_mean, d_model=5)
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("kind", ["NoMask", "NotDivided", "OneTooMany", "InvertedForSDPA", "OverQueries", "FillTwelve"])
def test_what_leaks_fails_with_the_map(kind):
    with pytest.raises(AssertionError) as failure:
        assert_causal(made(getattr(leaky_modules, kind)), length=6)
    words = str(failure.value)
    assert words.startswith(f"{kind} leaks in float64 on cpu: leak in the code")
    assert "moves when token" in words
    assert "it looks like: " in words
    rows = words.splitlines()[-6:]
    assert [len(row) for row in rows] == [6] * 6
    assert "X" in "".join(rows)


def test_the_map_shows_which_output_sees_which_token():
    with pytest.raises(AssertionError) as failure:
        assert_causal(made(leaky_modules.OneTooMany), length=4)
    assert str(failure.value).splitlines()[-4:] == ["oX..", "ooX.", "oooX", "oooo"]


def test_a_flattened_batch_and_a_nan_fail_too():
    with pytest.raises(AssertionError, match="an item of the batch moves another"):
        assert_causal(made(leaky_modules.FlattenedBatch))
    with pytest.raises(AssertionError, match="gives NaN in float64 on cpu: 16 outputs"):
        assert_causal(leaky_modules.AlwaysNaN(16, 16, 16, 0.0))


def test_a_leak_of_the_arithmetic_fails_where_it_is_asked_for():
    given = {"d_model": 4, "length": 16, "scale": 2.0, "seed": 4, "dtypes": ("float64", "float16")}
    assert_causal(leaky_modules.three_step, **given)
    with pytest.raises(AssertionError, match="leak in the arithmetic"):
        assert_causal(leaky_modules.three_step, strict=True, **given)


def test_what_cannot_be_tested_fails_with_its_reason():
    with pytest.raises(AssertionError, match="could not be tested: Raises raised ValueError: not today"):
        assert_causal(leaky_modules.Raises(16, 16, 16, 0.0))
    with pytest.raises(AssertionError, match="wants config"):
        assert_causal(leaky_modules.FromConfig)
    with pytest.raises(ValueError, match="dtypes are float32"):
        assert_causal(leaky_modules.running_mean, dtypes=("float8",))


def test_two_ways_to_write_the_same_pass():
    for other in (leaky_modules.RightForSDPA, leaky_modules.AddInfinity, leaky_modules.ThreeStep):
        assert_equivalent(made(leaky_modules.Attention), made(other), dtypes=("float64", "float32"))
    same = made(leaky_modules.Attention)
    assert_equivalent(same, same, share=False)


@pytest.mark.parametrize("kind", ["NoMask", "FillTwelve", "OneTooMany"])
def test_two_that_differ_fail_with_how_far(kind):
    with pytest.raises(AssertionError, match=r"Attention and .* differ in float64 \(with the same weights\): outputs"):
        assert_equivalent(made(leaky_modules.Attention), made(getattr(leaky_modules, kind)))


def test_the_same_outputs_with_other_gradients_differ():
    class Stops(nn.Module):
        def forward(self, x):
            return x * 2 - x.detach()

    with pytest.raises(AssertionError, match="outputs 0 eps, gradients"):
        assert_equivalent(nn.Identity(), Stops(), d_model=4)


def test_what_has_other_weights_or_another_shape_is_said():
    with pytest.raises(AssertionError, match=r"not be compared: outputs of shapes .*; their weights are not the same"):
        assert_equivalent(made(leaky_modules.Attention), made(leaky_modules.SideBySide))
    with pytest.raises(AssertionError, match=r"outputs of shapes \(16, 4\) and \(16, 5\)"):
        assert_equivalent(nn.Linear(4, 4), nn.Linear(4, 5), share=False)


@pytest.mark.parametrize(("other", "status", "verdict"), [("RightForSDPA", 0, "rounding"), ("NoMask", 1, "differ")])
def test_check_against_another(capsys, other, status, verdict):
    arguments = ["check", f"{FILE}:Attention", "--against", f"{FILE}:{other}", "--length", "8", "--dtype", "float32"]
    assert cli.run(arguments) == status
    lines = capsys.readouterr().out.splitlines()
    assert "with the same weights" in lines[0]
    assert sum(verdict in line for line in lines[2:4]) == 2
    assert ("They differ in float64, float32." in lines) == (status == 1)
    assert cli.run([*arguments, "--json"]) == status
    found = json.loads(capsys.readouterr().out)["against"]
    assert found["weights"] == "with the same weights"
    assert [one["verdict"] for one in found["found"]] == [verdict] * 2


def test_a_buffer_is_a_modules_own_and_a_mask_that_differs_is_said():
    right, wrong = (make(16, 16, 16, 0.0, 2) for make in (leaky_modules.right_triangle, leaky_modules.wrong_triangle))
    with pytest.raises(AssertionError, match="with the same weights; buffers that differ: later"):
        assert_equivalent(right, wrong)


@pytest.mark.parametrize("other", [lambda x: -x, lambda x: x * 1.2])
def test_short_dtypes_are_not_a_licence(other):
    with pytest.raises(AssertionError, match="differ in"):
        assert_equivalent(lambda x: x, other, 8, dtypes=("bfloat16",))
    with pytest.raises(AssertionError, match="differ in"):
        assert_equivalent(lambda x: x, other, 8, dtypes=("float16",))


def test_what_is_nan_in_both_is_not_the_same():
    with pytest.raises(AssertionError, match="no output is a number"):
        assert_equivalent(lambda x: x * float("nan"), lambda x: x * float("nan"), 4)


def test_a_leak_in_the_only_dtype_that_runs_fails():
    with pytest.raises(AssertionError, match="moves in float32 on cpu: cannot tell"):
        assert_causal(lambda x: x.float() + x.float().mean(1, keepdim=True), 8, dtypes=("float32",))


@pytest.mark.parametrize("given", [{"length": 1}, {"scale": 0.0}])
def test_a_test_of_nothing_is_refused(given):
    with pytest.raises(ValueError, match="two tokens"):
        assert_causal(leaky_modules.mean, 8, **given)


@pytest.mark.parametrize("wrong", [{"length": 1}, {"scale": 0.0}, {"scale": float("nan")}, {"dtypes": ()}])
def test_what_cannot_be_tested_is_refused_by_both(wrong):
    with pytest.raises(ValueError, match=r"a test needs|none of them"):
        assert_causal(nn.Linear(4, 4), **wrong)
    with pytest.raises(ValueError, match=r"a test needs|none of them"):
        assert_equivalent(nn.Linear(4, 4), nn.Linear(4, 4), **wrong)


def test_a_modules_own_width_is_found_in_its_first_layer():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.GRU(10, 12, batch_first=True)

        def forward(self, x):
            return self.inside(x)[0]

    class Convolved(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Conv1d(6, 5, 3)

        def forward(self, x):
            return self.inside(nn.functional.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2)

    assert_causal(Recurrent(), dtypes=("float64", "float32"))
    assert_causal(Convolved(), dtypes=("float64", "float32"))


def test_two_are_compared_in_a_test_that_runs_without_gradients():
    with torch.inference_mode():
        assert_equivalent(nn.Linear(4, 4), nn.Linear(4, 4))
