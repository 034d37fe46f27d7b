"""Forms of one attention over the same weights: what their outputs differ by, then what each costs here.

Outputs are compared in this process, at once; time and memory are measured in another (`form_bench`), so that the
window's own memory does not enter and memory can be kept or fresh.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.attention.devices import TorchBackend
from attnviz.attention.forms import FORMS, drawn
from attnviz.frames import said_bytes
from attnviz.questions.forms import FORM_NAMES, FormName, FormReading, FormsAnswer, FormsQuestion
from attnviz.spec import SpecError
from attnviz.studies.form_bench import FormBench, can_keep_memory
from attnviz.studies.ulps import step_at

_ALWAYS_BYTES: Final = 64 << 20
"""So much may always be taken, however full the machine is."""


def answers(question: FormsQuestion, cancelled: Callable[[], bool] = lambda: False) -> Iterator[FormsAnswer]:
    """An answer a form until all are compared, one a form for its memory, and one a round of times."""
    _check(question)
    total = 2 * len(FORM_NAMES) + question.repeats
    threads = torch.get_num_threads()
    found: list[FormReading] = []

    def answer(done: int, rounds: int = 0) -> FormsAnswer:
        return FormsAnswer(done, total, question, tuple(found), threads, rounds)

    makers, x = made_forms(question)
    first: Tensor | None = None
    for name, make in makers.items():
        if cancelled():
            return
        output = run(make, x)
        first = output if first is None else first
        found.append(beside(first, output, name, question))
        del output
        yield answer(len(found))
    del makers, x, first
    with FormBench(question, threads, cancelled) as bench:
        for place, name in enumerate(FORM_NAMES):
            peak = bench.measure("memory", name)
            if peak is None:
                return
            found[place] = replace(found[place], peak_bytes=round(peak))
            yield answer(len(found) + place + 1)
        times: dict[FormName, list[float]] = {name: [] for name in FORM_NAMES}
        for done in range(1, question.repeats + 1):
            for name in _turned(done):
                seconds = bench.measure("time", name)
                if seconds is None:
                    return
                times[name].append(seconds)
            found[:] = [_timed(form, times[form.name]) for form in found]
            yield answer(2 * len(found) + done, done)


def made_forms(question: FormsQuestion) -> tuple[Mapping[FormName, Callable[[], nn.Module]], Tensor]:
    """What makes each form with the question's weights, on its device, and the inputs (B, L, d_model)."""
    device, dtype = TorchBackend().torch_device(question.device), getattr(torch, question.dtype)
    with torch.inference_mode(mode=False):  # parameters are made outside of it
        given = drawn(question.d_model, question.num_heads, question.tokens, question.seed)
        generator = torch.Generator().manual_seed(question.seed)
        x = torch.randn(question.batch, question.tokens, question.d_model, generator=generator)

    def maker(name: FormName) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            with torch.inference_mode(mode=False):
                return FORMS[name](given).to(device, dtype).eval()

        return make

    return {name: maker(name) for name in FORM_NAMES}, x.to(device, dtype)


def run(make: Callable[[], nn.Module], x: Tensor) -> Tensor:
    """The output of a form that is made for this and forgotten."""
    with torch.inference_mode():
        output: Tensor = make()(x)
        return output


def beside(first: Tensor, output: Tensor, name: FormName, question: FormsQuestion) -> FormReading:
    """What ``output`` differs by from the ``first`` form's, both (B, L, d_model)."""
    with torch.inference_mode():
        one, other = first.to("cpu", torch.float64), output.to("cpu", torch.float64)
        difference = float((one - other).abs().max())
        largest = torch.maximum(one.abs(), other.abs()).max()
        if torch.equal(first, output):
            return FormReading(name, "bit for bit", 0.0, 0.0, 0.0)
        ulps = difference / float(step_at(largest, question.dtype))
        figure = difference / max(torch.finfo(first.dtype).eps * float(largest), sys.float_info.min)
        return FormReading(name, "rounding" if figure <= question.rounding else "differs", difference, ulps, figure)


def _timed(form: FormReading, seconds: list[float]) -> FormReading:
    low, high = np.percentile(seconds, (25, 75)).tolist()
    return replace(form, seconds=median(seconds), spread=(high - low) / 2)


def _turned(done: int) -> tuple[FormName, ...]:
    """The forms of a round: each round begins with another one, so that none always follows the same."""
    first = done % len(FORM_NAMES)
    return FORM_NAMES[first:] + FORM_NAMES[:first]


def _check(question: FormsQuestion) -> None:
    """Raise `SpecError` for what this machine has no room for, or no way to."""
    if question.memory == "kept" and question.device == "cpu" and not can_keep_memory():
        raise SpecError("memory", "memory is kept by glibc's allocator, which this system has not got: take fresh")
    backend = TorchBackend()
    backend.torch_device(question.device)
    free = backend.free_bytes(question.device)
    if question.needed_bytes > max(free // 2, _ALWAYS_BYTES):
        raise SpecError(
            "tokens", f"the forms need {said_bytes(question.needed_bytes)}, and half of the free memory on "
                      f"{question.device} is {said_bytes(free // 2)}: take fewer tokens or heads"
        )  # fmt: skip
