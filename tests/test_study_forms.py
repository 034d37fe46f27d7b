"""One attention in six forms: the same numbers, each broken on purpose found out, times and memory, and the end."""

import json
import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from statistics import median

import psutil
import pytest
import torch
from click.testing import CliRunner

from attnviz.attention.forms import FORMS
from attnviz.attention.multihead import SplitHeads
from attnviz.cli import commands
from attnviz.questions.forms import FORM_NAMES, FormReading, FormsAnswer, FormsQuestion, said_seconds
from attnviz.spec import SpecError
from attnviz.studies import answers
from attnviz.studies.form_bench import FormBench, can_keep_memory
from attnviz.studies.forms import beside, made_forms, run

SMALL = {"tokens": 33, "d_model": 48, "num_heads": 4, "repeats": 2}
LARGER = {"tokens": 256, "d_model": 64, "num_heads": 4, "repeats": 1}
OTHERS = FORM_NAMES[1:]


def outputs(question):
    makers, x = made_forms(question)
    return {name: run(make, x) for name, make in makers.items()}


def compared(question):
    """The answers until each form is compared: nothing is timed."""
    stream = answers(question)
    *_, last = (next(stream) for _ in FORM_NAMES)
    stream.close()
    return last


@pytest.fixture(scope="module")
def whole():
    return [*answers(FormsQuestion(**LARGER))]


# ------------------------------------------------------------------------------------------------------------ equality


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("tokens", "heads", "d_model", "batch"), [(1, 1, 1, 1), (33, 4, 48, 2), (130, 12, 768, 1)])
def test_all_forms_are_one_function(dtype, tokens, heads, d_model, batch):
    question = FormsQuestion(tokens=tokens, num_heads=heads, d_model=d_model, batch=batch, dtype=dtype)
    answer = compared(question)
    assert [form.name for form in answer.forms] == [*FORM_NAMES]
    assert answer.same
    for form in answer.forms:
        assert form.figure <= question.rounding
        assert (form.verdict == "bit for bit") == (form.difference == 0)


def test_a_difference_is_said_in_steps_of_the_dtype_and_in_eps():
    question = FormsQuestion(tokens=1, num_heads=1, d_model=3)
    first = torch.tensor([[[1.0, -6.0, 0.0]]])
    other = first + torch.tensor([[[0.0, 2.0**-20, 0.0]]])
    read = beside(first, other, "einsum", question)
    assert read.difference == 2.0**-20
    assert read.ulps == 2  # a step at 6 is 2^-21
    assert read.figure == pytest.approx(8 / 6)
    assert read.verdict == "rounding"
    assert beside(first, first + 1, "einsum", question).verdict == "differs"
    nan = first.clone()
    nan[0, 0, 0] = float("nan")
    assert beside(first, nan, "einsum", question).verdict == "differs"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_forms_are_causal_attention_as_torch_computes_it(dtype):
    question = FormsQuestion(**SMALL, dtype=dtype)
    _, x = made_forms(question)
    given = SplitHeads(48, 48, 4, context_length=33, qkv_bias=True, out_proj=True, seed=question.seed).to(x.dtype)
    q, k, v = given.project(x)
    context = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = given.join(context)[1].detach()
    for name, output in outputs(question).items():
        assert beside(expected, output, name, question).verdict != "differs"


def swapped(given):
    """Heads 0 and 1 of the values swapped, and of the values alone."""
    d = given.d_head
    with torch.no_grad():
        for part in given.value.weight, given.value.bias:
            part.copy_(torch.cat([part[d : 2 * d], part[:d], part[2 * d :]]))


def unscaled(given):
    """As if the scores were not divided by √d_head."""
    with torch.no_grad():
        for part in given.query.parameters():
            part.mul_(given.d_head**0.5)


def biased(given):
    with torch.no_grad():
        given.out_proj.bias.add_(1e-3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("break_it", [swapped, unscaled, biased])
@pytest.mark.parametrize("name", FORM_NAMES)
def test_a_form_that_is_broken_on_purpose_turns_the_verdict(name, break_it, dtype):
    question = FormsQuestion(**SMALL, dtype=dtype)
    made, x = made_forms(question)
    reference = OTHERS[0] if name == FORM_NAMES[0] else FORM_NAMES[0]
    first = run(made[reference], x)
    assert beside(first, run(made[name], x), name, question).verdict != "differs"
    given = SplitHeads(48, 48, 4, context_length=33, qkv_bias=True, out_proj=True, seed=question.seed)
    break_it(given)
    broken = run(lambda: FORMS[name](given).to(x.dtype).eval(), x)
    assert beside(first, broken, name, question).verdict == "differs"


def test_making_forms_leaves_torchs_own_generator_alone():
    before = torch.get_rng_state()
    outputs(FormsQuestion(**SMALL))
    assert torch.equal(torch.get_rng_state(), before)


# ------------------------------------------------------------------------------------------------------ time and memory


def test_answers_stream_equality_first_then_memory_then_rounds_of_times(whole):
    n = len(FORM_NAMES)
    assert [answer.done for answer in whole] == [*range(1, 2 * n + 2)]
    assert whole[-1].finished
    assert [len(answer.forms) for answer in whole[:n]] == [*range(1, n + 1)]
    assert all(form.peak_bytes < 0 for form in whole[n - 1].forms)
    assert all(form.peak_bytes > 0 for form in whole[2 * n - 1].forms)
    assert whole[2 * n - 1].quickest() == ()
    assert all(form.seconds > 0 for form in whole[-1].forms)
    assert whole[-1].threads == torch.get_num_threads()


def test_a_textbooks_form_holds_its_maps_and_sdpa_does_not(whole):
    held = {form.name: form.peak_bytes for form in whole[-1].forms}
    one_map = 4 * 256 * 256 * 4
    for name in ("weight-split", "fused QKV", "einsum"):
        assert 2 * one_map <= held[name] <= FormsQuestion(**LARGER).needed_bytes
        assert held[name] > 2 * held["SDPA"]
    assert held["nn.MultiheadAttention"] >= one_map  # also within what torch computes as one operation
    assert one_map / 4 < held["stacked"] < one_map  # one head after the other
    assert held["SDPA"] >= 3 * 256 * 64 * 4  # its queries, keys and values


@pytest.mark.skipif(not can_keep_memory(), reason="glibc alone can be asked to keep memory")
@pytest.mark.slow
def test_kept_memory_takes_no_new_pages():
    """Page faults in the process that measures, in most passes: kept maps grow the heap now and then, never each."""
    faults = {}
    for memory in ("fresh", "kept"):
        question = FormsQuestion(tokens=1536, d_model=64, num_heads=4, memory=memory)
        with FormBench(question, 1, lambda: False) as bench:
            bench.measure("memory", "weight-split")
            counts = [page_faults(bench._process.pid)]
            for _ in range(7):
                bench.measure("time", "weight-split")
                counts.append(page_faults(bench._process.pid))
            faults[memory] = median(b - a for a, b in pairwise(counts))
    one_map = 4 * 1536**2 * 4 // os.sysconf("SC_PAGE_SIZE")
    assert faults["fresh"] > one_map
    assert faults["kept"] < one_map / 10


def page_faults(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def reading(name, seconds, spread=0.0):
    return FormReading(name, "rounding", 0.0, 0.0, 0.0, seconds, spread)


def test_who_wins_is_told_from_its_spread():
    def quickest(*forms):
        answer = FormsAnswer(1, 1, FormsQuestion(), forms, 1, rounds=1)
        return [form.name for form in answer.quickest()]

    assert quickest(reading("stacked", 3.0, 0.1), reading("SDPA", 1.0, 0.1)) == ["SDPA"]
    assert quickest(reading("stacked", 3.0), reading("einsum", 1.2, 0.1), reading("SDPA", 1.0, 0.1)) == [
        "SDPA", "einsum",
    ]  # fmt: skip
    assert [said_seconds(seconds) for seconds in (1.2, 0.1183, 0.0583, 12e-6)] == [
        "1.20 s",
        "118 ms",
        "58.3 ms",
        "12 µs",
    ]
    assert said_seconds(0.0007, 0.0583) == "0.7 ms"


# ------------------------------------------------------------------------------------------------------------- the end


def children():
    return psutil.Process().children(recursive=True)


def test_a_study_that_is_called_off_while_it_compares_stops_between_two_forms():
    asked = iter([False, False, True])
    assert [answer.done for answer in answers(FormsQuestion(**SMALL), lambda: next(asked))] == [1, 2]


def test_a_study_that_is_called_off_while_it_measures_ends_its_process():
    off = threading.Event()
    got = []
    for answer in answers(FormsQuestion(**SMALL), off.is_set):
        got.append(answer.done)
        if answer.done == len(FORM_NAMES) + 1:
            assert children()
            off.set()
    assert got == [*range(1, len(FORM_NAMES) + 2)]
    assert not children()


def test_a_study_that_is_left_alone_ends_its_process():
    stream = answers(FormsQuestion(**SMALL))
    for _ in range(len(FORM_NAMES) + 1):
        next(stream)
    assert children()
    stream.close()
    assert not children()


def test_a_process_that_dies_is_said():
    with FormBench(FormsQuestion(**SMALL), 1, lambda: False) as bench:
        bench.measure("memory", "SDPA")
        bench._process.kill()
        with pytest.raises(RuntimeError, match="the form SDPA ended"):
            bench.measure("time", "SDPA")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tokens": 0}, "tokens is 0"),
        ({"tokens": 4096, "num_heads": 12}, "take fewer|Take fewer"),
        ({"tokens": 2048, "batch": 16}, "× 16 sequences"),
        ({"num_heads": 7}, "cannot share evenly"),
        ({"d_model": 4096}, "d_model is 4096"),
        ({"device": "tpu"}, "device is 'tpu'"),
    ],
)
def test_sizes_that_are_too_large_or_wrong_are_refused_in_words(fields, words):
    with pytest.raises(SpecError, match=words):
        FormsQuestion(**fields)


def test_a_device_that_is_not_there_is_said():
    with pytest.raises(RuntimeError, match="cuda:7 is not here"):
        next(answers(FormsQuestion(**SMALL, device="cuda:7")))


# -------------------------------------------------------------------------------------------------------- command line

ARGUMENTS = ["study", "forms", "--tokens", "33", "--d-model", "48", "--heads", "4", "--repeats", "2"]


@pytest.mark.slow
def test_the_command_line_prints_json():
    done = subprocess.run(
        [sys.executable, "-m", "attnviz", *ARGUMENTS, "--json"], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert told["study"] == "forms"
    assert (told["question"]["tokens"], told["question"]["num_heads"]) == (33, 4)
    assert [form["name"] for form in told["forms"]] == [*FORM_NAMES]
    assert {form["verdict"] for form in told["forms"]} <= {"bit for bit", "rounding"}
    assert all(form["seconds"] > 0 and form["peak_bytes"] > 0 for form in told["forms"])
    assert all(line.startswith("attnviz: forms: ") for line in done.stderr.splitlines())  # on a slow machine


def test_the_command_lines_table_marks_who_wins_and_refuses_in_words():
    done = CliRunner().invoke(commands, ARGUMENTS)
    heading, header, *lines = done.stdout.splitlines()
    assert "33 tokens of 48, 4 heads" in heading
    assert header.split()[:3] == ["form", "largest", "difference"]
    assert len(lines) == len(FORM_NAMES)
    assert any(line.endswith("quickest here") for line in lines)
    refused = CliRunner().invoke(commands, [*ARGUMENTS, "--heads", "5"], standalone_mode=False)
    assert isinstance(refused.exception, SpecError)
