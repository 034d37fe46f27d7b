"""Who sees whom: every known mistake is found and named, its correct twin is cleared, and nothing clean is accused."""

import math
from itertools import pairwise

import leaky_modules
import numpy as np
import pytest
import torch
from torch import nn

from attnviz import subjects
from attnviz.cli.check_words import status_of
from attnviz.spec import (
    Drawn,
    Full,
    Lesson,
    PadLeft,
    PadRight,
    RandomEmbeddings,
    SlidingWindow,
    SpecError,
    edited,
    make_spec,
)
from attnviz.studies.leak import DTYPES, Plan, answers, readings
from attnviz.studies.leak.derivatives import gradients
from attnviz.studies.leak.movement import inputs_of, measure
from attnviz.studies.leak.spec_subject import SpecSubject
from attnviz.studies.leak.verdicts import verdict_of
from attnviz.subjects import Subject, Wishes

ONCE = (1.0,)
CLEAN = ("Attention", "RightForSDPA", "ThreeStep", "AddInfinity", "CausalMultihead", "SideBySide")


def answer_to(made, **plan):
    subject = made if not isinstance(made, str) else subjects.build(getattr(leaky_modules, made), made, Wishes())
    *_, last = answers(subject, Plan(factors=plan.pop("factors", ONCE), **plan))
    return last


def by_dtype(answer, scale=1.0):
    return {reading.dtype: reading for reading in answer.readings if reading.scale == scale}


@pytest.mark.parametrize(("made", "pattern"), [
    ("NoMask", "no mask"), ("InvertedForSDPA", "mask inverted"), ("OverQueries", "softmax over the wrong axis"),
    ("NotDivided", "not divided again"), ("OneTooMany", "one token too many"),
    ("OneTooManyByTril", "one token too many"), ("FillZero", "fill too shallow"), ("FillTwelve", "fill too shallow"),
    ("FlattenedBatch", "other item of the batch"), ("mean", "no mask"),
])  # fmt: skip
def test_each_mistake_is_found_in_every_dtype_and_named(made, pattern):
    answer = answer_to(made)
    assert answer.pattern == pattern
    assert {reading.verdict for reading in answer.readings} == {"leak in the code"}
    assert [reading.dtype for reading in answer.readings] == ["float64", "float32", "bfloat16", "float16"]
    pair = by_dtype(answer)["float64"].pair
    assert pair is None if made == "FlattenedBatch" else pair[1] > pair[0]
    assert status_of(answer, 1.0, strict=False) == 1
    assert all(reading.mixes_batch for reading in answer.readings) is (made == "FlattenedBatch")


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize(("made", "pattern"), [
    (leaky_modules.NoMask, "no mask"), (leaky_modules.OverQueries, "softmax over the wrong axis"),
    (leaky_modules.NotDivided, "not divided again"), (leaky_modules.FillZero, "fill too shallow"),
])  # fmt: skip
def test_the_name_does_not_depend_on_heads_or_on_what_is_added(made, pattern, heads):
    class Residual(made):
        def forward(self, x):
            return x + super().forward(x)

    for kind in (made, Residual):
        answer = answer_to(subjects.build(kind, "it", Wishes(num_heads=heads)), dtypes=("float64",))
        assert answer.pattern == pattern


@pytest.mark.parametrize(("made", "names"), [
    (leaky_modules.NotDivided, ("not divided again", "")),
    (leaky_modules.OverQueries, ("softmax over the wrong axis", "")),
    (leaky_modules.FillZero, ("fill too shallow", "no mask", "")), (leaky_modules.NoMask, ("no mask", "")),
])  # fmt: skip
def test_no_other_name_is_given_where_what_follows_is_not_linear(made, names):
    class Block(made):
        def forward(self, x):
            return torch.tanh(super().forward(x) * 3)

    answer = answer_to(subjects.build(Block, "Block", Wishes()), dtypes=("float64",))
    assert answer.readings[0].verdict == "leak in the code"
    assert answer.pattern in names


@pytest.mark.parametrize("made", [
    "Attention", "RightForSDPA", "AddInfinity", "OneHead", "SideBySide", "CausalMultihead", "ReturnsTuple",
    "WantsThree", "running_mean", "from_config", "FillTenThousand",
])  # fmt: skip
def test_what_is_correct_moves_by_not_one_bit(made):
    answer = answer_to(made)
    assert [(reading.verdict, reading.figure) for reading in answer.readings] == [("exactly zero", 0.0)] * 4
    assert answer.pattern == ""
    assert status_of(answer, 1.0, strict=True) == 0


def test_three_step_rounds_at_unit_scale_and_leaks_in_float16_at_twice_that():
    own = subjects.build(leaky_modules.three_step, "three_step", Wishes(d_model=4))
    module = subjects.build(leaky_modules.ThreeStep, "ThreeStep", Wishes())
    for subject, length, most in (own, 16, 3), (module, 32, 4):  # a layer behind it adds to what was rounded
        at_unit = [by_dtype(answer_to(subject, seed=seed, length=length)) for seed in range(8)]
        assert {reading.verdict for one in at_unit for reading in one.values()} == {"rounding"}
        assert max(reading.figure for one in at_unit for reading in one.values()) <= most
    for seed in (4, 7):
        at_two = by_dtype(answer_to(own, seed=seed, length=16, scale=2.0), 2.0)
        assert at_two["float16"].verdict == "leak in the arithmetic"
        assert at_two["float16"].figure > 6 * at_two["float64"].figure
        assert {at_two[name].verdict for name in ("float64", "float32", "bfloat16")} == {"rounding"}
        exact = by_dtype(
            answer_to(subjects.build(leaky_modules.neg_inf, "it", Wishes(d_model=4)), seed=seed, scale=2.0), 2.0
        )
        assert {reading.figure for reading in exact.values()} == {0.0}


@pytest.mark.parametrize(("figure", "in_float64", "verdict"), [
    (0, 0, "exactly zero"), (0, 7e11, "exactly zero"), (0.95, 0.95, "rounding"), (8, 0, "rounding"),
    (8.1, 8, "leak in the arithmetic"),
    (28, 1.7, "leak in the arithmetic"), (0.48, 7e11, "leak in the code"), (33, 1.2e15, "leak in the code"),
    (3, None, "rounding"), (9, None, "cannot tell"),
])  # fmt: skip
def test_what_a_figure_says(figure, in_float64, verdict):
    assert verdict_of(figure, in_float64) == verdict


def test_a_token_that_is_blind_to_itself_is_told_and_is_no_leak():
    answer = answer_to("BlindToItself")
    assert answer.pattern == "a token blind to itself"
    assert answer.blind
    assert {reading.verdict for reading in answer.readings} == {"exactly zero"}
    assert status_of(answer, 1.0, strict=False) == 0
    assert not answer_to("Attention").blind


@pytest.mark.parametrize(("made", "scale"), [("FillTenThousand", 1000.0), ("AddTenThousand", 100.0)])
def test_a_fill_that_is_deep_enough_at_unit_scale_is_cleared_there_with_the_scale_at_which_it_leaks(made, scale):
    answer = answer_to(made, factors=(1.0, 10.0, 100.0, 1000.0))
    assert status_of(answer, 1.0, strict=True) == 0
    assert {reading.verdict for reading in by_dtype(answer).values()} == {"exactly zero"}
    leaking = [reading.scale for reading in answer.readings if reading.dtype == "float64" and reading.leaks]
    assert min(leaking) == scale
    there = answer_to(made, scale=scale)
    assert by_dtype(there, scale)["float64"].verdict == "leak in the code"
    assert status_of(there, scale, strict=False) == 1


def test_scores_that_overflow_are_no_fault_of_the_mask():
    answer = answer_to("Attention", scale=1000.0)
    half = by_dtype(answer, 1000.0)["float16"]
    assert half.overflows
    assert half.nan_rows == 32
    assert half.verdict == "untested"
    assert status_of(answer, 1000.0, strict=True) == 0
    fused = by_dtype(answer_to("CausalMultihead", scale=1000.0), 1000.0)["float16"]
    assert fused.overflows


def test_rows_that_lose_their_digits_are_counted_beside_float64():
    answer = answer_to("ThreeStep", scale=6.0, seed=3)
    readings = by_dtype(answer, 6.0)
    assert readings["float64"].lost_rows == -1
    assert readings["float32"].lost_rows == 0
    assert readings["float16"].nan_rows + readings["float16"].lost_rows > 0


@pytest.mark.parametrize(("made", "words"), [
    ("Raises", "raised ValueError: not today (" + leaky_modules.__file__),
    ("WrongShape", "returns (32, 2, 64) for inputs (2, 32, 64)"),
    ("Restless", "differs from itself"),
])  # fmt: skip
def test_what_cannot_be_run_is_said(made, words):
    answer = answer_to(made, factors=(1.0, 10.0))
    assert len(answer.readings) == 4  # and no larger scale is tried
    assert all(words in reading.remark for reading in answer.readings)
    assert status_of(answer, 1.0, strict=False) == 3


def test_outputs_that_are_nan_fail_although_nothing_moves():
    answer = answer_to("AlwaysNaN")
    assert {(reading.verdict, reading.nan_rows) for reading in answer.readings} == {("untested", 32)}
    assert status_of(answer, 1.0, strict=False) == 1


def test_a_module_of_one_dtype_is_judged_in_that():
    readings = by_dtype(answer_to("FloatOnly"))
    assert readings["float32"].verdict == "exactly zero"
    assert readings["bfloat16"].verdict == "untested"
    assert "dtype" in readings["bfloat16"].remark

    class Leaks(leaky_modules.OneHead):
        def forward(self, x):
            return self.inside(x.float()) + x.float().mean(1, keepdim=True)

    answer = answer_to(subjects.build(Leaks, "Leaks", Wishes()))
    assert by_dtype(answer)["float32"].verdict == "cannot tell"
    assert answer.pattern == "fill too shallow"  # by the finest dtype that it runs in


def test_a_caller_is_left_as_it_was_between_two_answers():
    subject = subjects.build(leaky_modules.Attention, "it", Wishes())
    threads = torch.get_num_threads()
    for _ in answers(subject, Plan(length=8, factors=ONCE)):
        assert not torch.is_inference_mode_enabled()
        assert torch.get_num_threads() == threads


def test_a_nan_elsewhere_does_not_hide_a_leak():
    class Half(leaky_modules.NoMask):
        def forward(self, x):
            out = super().forward(x).clone()
            out[:, 5] = math.nan
            return out

    answer = answer_to(subjects.build(Half, "Half", Wishes()), dtypes=("float64",))
    assert answer.readings[0].verdict == "leak in the code"
    assert answer.readings[0].nan_rows == 1


def test_the_map_is_the_gradients_map():
    torch.manual_seed(0)
    for made, hidden in ((leaky_modules.Attention, True), (leaky_modules.OverQueries, False)):
        subject = subjects.build(made, "it", Wishes(length=8))
        call = subject.on(torch.device("cpu"), torch.float64)
        start, other = inputs_of(8, subject.d, 1.0, 0)
        with torch.inference_mode():
            moved = measure(call, start, [other], range(8)).moved
        by_gradient = gradients(call, start)
        assert ((moved > 0) == (by_gradient > 1e-12)).all()
        assert bool((moved.triu(1) == 0).all()) is hidden


@pytest.mark.parametrize("changes", [
    {"mask": "none"}, {"mask": "neg-inf"}, {"mask": "three-step"}, {"mask": "multiply"}, {"mask": "add"},
    {"fill": -12.0}, {"soft_cap": 0.5}, {"top_k": 3}, {"scale": 0.3}, {"scale": "none"}, {"scale_after_mask": True},
    {"implementation": "split"}, {"mask": "three-step", "soft_cap": 0.5, "dropout": 0.5},
], ids=str)  # fmt: skip
def test_a_specs_derivatives_are_those_of_what_it_shows(changes):
    spec = edited(make_spec(RandomEmbeddings(length=6), d_model=8, d_out=8, num_heads=2), **changes)
    subject = SpecSubject(spec)
    with torch.inference_mode():  # as a reading leaves what is kept
        subject.on(torch.device("cpu"), torch.float64)(torch.zeros(1, 6, 8, dtype=torch.float64))
    call = subject.on(torch.device("cpu"), torch.float64)
    start = inputs_of(6, subject.d, 1.0, 0)[0][None].requires_grad_()
    with torch.no_grad():
        shown = call(start)
    assert torch.allclose(call(start), shown, rtol=1e-14, atol=1e-15)
    assert torch.autograd.gradcheck(call, start)
    *_, last = answers(subject, Plan(length=6, dtypes=("float64", "float32"), factors=ONCE, gradient=True))
    assert last.gradient.remark == ""
    assert (last.gradient.hidden_slope > 1e-7) is (last.readings[0].verdict == "leak in the code" or "fill" in changes)


def test_gradients_end_when_they_are_called_off():
    subject = SpecSubject(make_spec(RandomEmbeddings(length=8), d_model=8, d_out=8, num_heads=2))
    seen = []

    def cancelled():
        return len(seen) > 0

    for answer in answers(subject, Plan(length=8, dtypes=("float64",), factors=ONCE, gradient=True), cancelled):
        seen.append(answer)
    assert [answer.gradient for answer in seen] == [None]


def test_a_batch_that_does_not_fit_is_cut_and_gives_the_same(monkeypatch):
    subject = subjects.build(leaky_modules.NotDivided, "it", Wishes(length=24))
    call = subject.on(torch.device("cpu"), torch.float64)
    start, other = inputs_of(24, subject.d, 1.0, 0)
    with torch.inference_mode():
        whole = measure(call, start, [other], range(24)).moved
        monkeypatch.setattr("attnviz.studies.leak.movement._MOST_NUMBERS", (24 * 64 + 16 * 24**2) * 7)
        cut = measure(call, start, [other], range(24)).moved
    torch.testing.assert_close(whole, cut, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("mask", ["none", "three-step", "neg-inf", "multiply", "add"])
@pytest.mark.parametrize("implementation", ["stacked", "split"])
def test_a_spec_is_tested_as_it_is_computed(mask, implementation):
    spec = make_spec(
        RandomEmbeddings(length=12), d_model=16, d_out=16, num_heads=2, mask=mask, implementation=implementation
    )
    answer = answer_to(SpecSubject(spec), length=12)
    verdicts = {reading.dtype: reading.verdict for reading in answer.readings}
    expected = {"none": "leak in the code", "multiply": "leak in the code", "three-step": "rounding"}.get(
        mask, "exactly zero"
    )
    assert verdicts == dict.fromkeys(verdicts, expected)
    if expected == "rounding":
        assert max(reading.figure for reading in answer.readings) <= 2
    assert answer.pattern == {"none": "no mask", "multiply": "not divided again"}.get(mask, "")


def test_a_specs_own_shape_says_what_must_not_move():
    windowed = edited(make_spec(RandomEmbeddings(length=12), d_model=16, d_out=16, num_heads=2), mask="neg-inf")
    for shape, hidden in ((SlidingWindow(width=3), 66 + 45), (Full(), 0)):
        answer = answer_to(SpecSubject(edited(windowed, mask_shape=shape)), length=12)
        assert int(answer.readings[0].hidden.sum()) == hidden
        assert {reading.figure for reading in answer.readings} == {0.0}
    with pytest.raises(SpecError, match="projections"):
        SpecSubject(make_spec(Lesson(name="cat-eats-fish")))


def test_cancel_ends_it():
    subject = subjects.build(leaky_modules.Attention, "it", Wishes())
    seen = []
    for answer in answers(subject, Plan(), lambda: len(seen) >= 2):
        seen.append(answer)
    assert len(seen) == 2


def test_fewer_positions_where_each_is_dear():
    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(4096, 4096))  # counted, not used

        def forward(self, x):
            return x

    reading = answer_to(Subject("Wide", Wide(), 8), length=200, dtypes=("float64",)).readings[0]
    assert reading.positions == 6
    assert reading.length == 200
    assert answer_to("Attention", length=32).readings[0].positions == 32


@pytest.mark.parametrize("seed", range(40))
def test_no_false_alarm(seed):
    """Five clean modules a seed in every dtype, 200 in all, dropout left in training mode among them."""
    generator = torch.Generator().manual_seed(seed)

    def pick(*choices):
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    for _ in range(5):
        heads = pick(1, 2, 3, 4, 8)
        width = heads * pick(1, 2, 5, 8, 16)
        kind = getattr(leaky_modules, pick(*CLEAN))
        length = pick(2, 3, 7, 16, 33)
        wishes = Wishes(d_model=width, num_heads=heads, length=max(length, 2), seed=seed)
        subject = subjects.build(kind, kind.__name__, wishes)
        if pick(True, False):
            subject.run.train()
            for module in subject.run.modules():
                if isinstance(module, nn.Dropout):
                    module.p = 0.5
        plan = Plan(length=length, seed=seed, factors=ONCE, scale=pick(0.1, 0.5, 1.0))
        *_, answer = answers(subject, plan)
        assert {reading.dtype for reading in answer.readings} == set(DTYPES)
        for reading in answer.readings:
            assert reading.verdict in ("exactly zero", "rounding"), (kind, heads, width, length, reading)
        assert answer.pattern == ""


# ------------------------------------------------------------------------------------------------- what a breaker found


@pytest.mark.parametrize("made", ["ReusesItsOutput", "ConstantBeside", "NoMoreThanTwo"])
def test_a_leak_is_found_whatever_else_the_module_does(made):
    answer = answer_to(made)
    assert {reading.verdict for reading in answer.readings} == {"leak in the code"}
    assert status_of(answer, 1.0, strict=False) == 1


def test_a_float32_inside_a_float64_module_is_rounding():
    for seed in range(4):
        readings = by_dtype(answer_to("InFloat32", seed=seed))
        assert {reading.verdict for reading in readings.values()} <= {"rounding", "exactly zero"}
    told = [by_dtype(answer_to("InFloat32", seed=seed))["float64"] for seed in range(4)]
    assert any(reading.remark == "computes in float32 inside" for reading in told)
    shallow = by_dtype(answer_to("FillTwelve"))["float64"]
    assert (shallow.verdict, shallow.remark) == ("leak in the code", "")


def test_what_runs_in_one_dtype_alone_and_moves_is_not_called_clean():
    class Leaks(leaky_modules.OneHead):
        def forward(self, x):
            return self.inside(x.float()) + x.float().mean(1, keepdim=True)

    answer = answer_to(subjects.build(Leaks, "Leaks", Wishes()))
    assert status_of(answer, 1.0, strict=False) == 3


def test_every_dtype_changes_the_same_tokens_or_some_of_them():
    answer = answer_to(subjects.build(leaky_modules.LateAndSparse, "it", Wishes()), length=512)
    changed = [~np.isnan(reading.moved).all(0) for reading in answer.readings]
    for some in changed[1:]:
        assert not (some & ~changed[0]).any()
    verdicts = {reading.dtype: reading.verdict for reading in answer.readings}
    assert verdicts["float32"] in ("leak in the code", "exactly zero")
    assert verdicts["float32"] == verdicts["float64"]


@pytest.mark.parametrize("length", [7, 16, 100, 129])
def test_fewer_positions_are_some_of_more_and_hold_the_first_two_and_the_last(length):
    subject = subjects.build(leaky_modules.Attention, "it", Wishes(length=length))
    several = [readings._positions(subject, length, budget) for budget in (1, 1e7, 1e8, 1e9, 1e12)]
    for fewer, more in pairwise(several):
        assert {*fewer} <= {*more}
    assert several[-1] == [*range(length)]
    assert {0, 1, length - 1} <= {*several[0]}


@pytest.mark.parametrize("shape", [PadRight(count=3), PadLeft(count=3), Drawn(runs=((0, 0, 0), (5, 0, 3), (6, 2, 2)))])
def test_a_specs_shape_may_hide_a_token_from_itself_and_rows_may_see_nothing(shape):
    spec = make_spec(RandomEmbeddings(length=12), d_model=16, d_out=16, num_heads=2, mask="neg-inf", mask_shape=shape)
    answer = answer_to(SpecSubject(spec), length=12)
    assert {reading.verdict for reading in answer.readings} == {"exactly zero"}
    assert {reading.nan_rows for reading in answer.readings} == {0}
    assert status_of(answer, 1.0, strict=True) == 0


def test_complex_buffers_stay_complex():
    answer = answer_to("RotatesByComplexNumbers")
    assert {reading.verdict for reading in answer.readings} == {"exactly zero"}


def test_a_strict_triangle_is_blind_and_its_first_output_nan():
    answer = answer_to("strict_triangle")
    assert answer.pattern == "a token blind to itself"
    assert {(reading.verdict, reading.nan_rows) for reading in answer.readings} == {("exactly zero", 1)}


@pytest.mark.parametrize("made", [
    nn.TransformerEncoderLayer(64, 4, 64, batch_first=True), nn.MultiheadAttention(64, 4, batch_first=True),
])  # fmt: skip
def test_stock_layers_without_a_mask_are_named_for_that(made):
    call = None if isinstance(made, nn.TransformerEncoderLayer) else "self"
    assert answer_to(subjects.build(made, "it", Wishes(call=call)), dtypes=("float64",)).pattern == "no mask"


@pytest.mark.parametrize("made", ["NoMask", "FillZero", "NotDivided", "OverQueries", "InvertedForSDPA"])
def test_of_two_tokens_no_name_is_given_but_for_the_next_one(made):
    answer = answer_to(made, length=3)
    assert answer.readings[0].verdict == "leak in the code"
    assert answer.pattern in ("", "mask inverted")


def test_a_module_that_exits_is_told():
    answer = answer_to("Exits")
    assert all("Exits raised SystemExit: 0" in reading.remark for reading in answer.readings)
    assert status_of(answer, 1.0, strict=False) == 3
