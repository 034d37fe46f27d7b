"""Forms of one attention: do they compute the same function, and which of them is quick and small here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from attnviz.frames import said_bytes
from attnviz.questions.base import Answer, Question
from attnviz.spec import DType, SpecError
from attnviz.spec.checks import check_range

FormName = Literal["stacked", "weight-split", "fused QKV", "einsum", "SDPA", "nn.MultiheadAttention"]
FORM_NAMES: Final[tuple[FormName, ...]] = get_args(FormName)
FormVerdict = Literal["bit for bit", "rounding", "differs"]

MOST_TOKENS: Final = 4096
MOST_WIDTH: Final = 2048
MOST_BYTES: Final = 2 << 30
"""The most that maps and vectors of a textbook's form may take."""

ITEM_BYTES: Final = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


class FormsQuestion(Question, frozen=True, tag="forms"):
    """``batch`` × ``tokens`` random vectors of ``d_model`` through each form, timed ``repeats`` times in turn.

    With ``memory`` *fresh* large tensors are new pages each time, as the system hands them out; *kept* has the
    allocator keep what it once had.
    """

    tokens: int = 1024
    d_model: int = 768
    num_heads: int = 12
    batch: int = 1
    dtype: DType = "float32"
    device: str = "cpu"
    seed: int = 123
    repeats: int = 7
    memory: Literal["fresh", "kept"] = "fresh"

    def __post_init__(self) -> None:
        check_range("tokens", self.tokens, 1, MOST_TOKENS)
        check_range("d_model", self.d_model, 1, MOST_WIDTH)
        check_range("num_heads", self.num_heads, 1, self.d_model)
        check_range("batch", self.batch, 1, 256)
        check_range("seed", self.seed, 0, (1 << 63) - 1)
        check_range("repeats", self.repeats, 1, 1000)
        if not re.fullmatch(r"cpu|cuda:\d+|mps", self.device):
            raise SpecError("device", f"device is {self.device!r}: give cpu, cuda:0 or mps")
        if self.d_model % self.num_heads:
            raise SpecError("num_heads", f"d_model is {self.d_model}, which {self.num_heads} heads cannot share evenly")
        if self.needed_bytes > MOST_BYTES:
            heads = f"{self.num_heads} {'head' if self.num_heads == 1 else 'heads'}"
            of = f" × {self.batch} sequences" if self.batch > 1 else ""
            raise SpecError(
                "tokens", f"{heads} × {self.tokens:,} tokens{of} take {said_bytes(self.needed_bytes)} in {self.dtype} "
                          f"as a textbook computes them: forms are measured up to {said_bytes(MOST_BYTES)}. Take fewer "
                          "tokens or heads"
            )  # fmt: skip

    @property
    def rounding(self) -> float:
        """Eps of the largest output up to which a difference is rounding: sums are in other orders.

        8, or the square root of as many numbers as a product sums: einsum was seen 13 apart at 768 in float64.
        """
        return max(8.0, math.sqrt(self.d_model))

    @property
    def needed_bytes(self) -> int:
        """What a textbook's form holds at once, about: three maps of all heads, and its vectors."""
        maps = 3 * self.batch * self.num_heads * self.tokens**2
        return ITEM_BYTES[self.dtype] * (maps + 8 * self.batch * self.tokens * self.d_model)


@dataclass(frozen=True, slots=True, eq=False)
class FormReading:
    """One form beside the first: the largest ``difference`` of their outputs.

    ``ulps`` is the same in the dtype's steps at the largest output, and ``figure`` in eps × the largest output.

    ``seconds`` is the median time of a pass and ``spread`` half the width of its middle half, both 0 until there are
    any; ``peak_bytes`` is what a pass allocates at most, −1 where nobody has measured it.
    """

    name: FormName
    verdict: FormVerdict
    difference: float
    ulps: float
    figure: float
    seconds: float = 0.0
    spread: float = 0.0
    peak_bytes: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class FormsAnswer(Answer):
    """The forms compared so far, the first beside itself; times come once all are compared.

    ``rounds`` passes of each form have been timed, on ``threads`` threads.
    """

    question: FormsQuestion
    forms: tuple[FormReading, ...]
    threads: int
    rounds: int = 0

    @property
    def same(self) -> bool:
        """Whether no form differs by more than rounding."""
        return all(form.verdict != "differs" for form in self.forms)

    def by_time(self) -> tuple[FormReading, ...]:
        """The forms from the quickest to the slowest; empty until each is timed."""
        return tuple(sorted(self.forms, key=lambda form: form.seconds)) if self.rounds else ()

    def quickest(self) -> tuple[FormReading, ...]:
        """The form that wins here, and those that its spread cannot be told from; empty until each is timed."""
        ordered = self.by_time()
        return tuple(
            form for form in ordered if form.seconds - ordered[0].seconds <= form.spread + ordered[0].spread
        )  # fmt: skip

    def table(self) -> list[tuple[str, ...]]:
        """Lines for a terminal."""
        lines: list[tuple[str, ...]] = [
            ("form", "largest difference", "ULP", "eps of the largest", "verdict", "time", "spread", "memory")
        ]
        quickest = {form.name for form in self.quickest()}
        for form in self.forms:
            told = f"{form.difference:.3g}", f"{form.ulps:,.1f}", f"{form.figure:.2f}", form.verdict
            timed = (
                (said_seconds(form.seconds), f"± {said_seconds(form.spread, form.seconds)}")
                if self.rounds
                else ("", "")
            )
            held = said_bytes(form.peak_bytes) if form.peak_bytes >= 0 else "not measured"
            lines.append((form.name, *told, *timed, held, "quickest here" if form.name in quickest else ""))
        return lines


def said_seconds(seconds: float, like: float | None = None) -> str:
    """A time in words: 1.20 s, 58.3 ms, 12 µs; in the unit that ``like`` is said in."""
    of = seconds if like is None else like
    if of >= 1:
        return f"{seconds:.2f} s"
    if of >= 1e-3:
        return f"{seconds * 1e3:.1f} ms" if of < 0.1 else f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e6:.0f} µs"
