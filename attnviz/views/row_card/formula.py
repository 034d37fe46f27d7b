"""A key's softmax, a row's sum and a context's mix, written out with their numbers. Pure, without widgets.

"=" stands only where the printed digits multiply out as printed; else "≈".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QCoreApplication

from attnviz.views.row_card import numbers
from attnviz.views.row_card.lines import RowLines

MOST_TERMS: Final = 8
"""A sum of more terms is shortened."""

_FIRST_TERMS: Final = 3
_MOST_DIMS: Final = 4

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a formula. ``struck`` is cancelled, ``leak`` comes from a key that should be hidden."""

    text: str
    struck: bool = False
    leak: bool = False
    muted: bool = False


Line = tuple[Run, ...]


def plain(line: Line) -> str:
    """A line's text without its looks."""
    return "".join(run.text for run in line)


def softmax_lines(lines: RowLines, key: int) -> tuple[Line, ...]:
    """The weight of ``key`` written out, one line a step of the mask mode, then what dropout does to it."""
    if lines.entering is None:
        share = numbers.told_share(float(lines.weights[key]), lines.decimals)
        return (Run(share), Run(" " + translate("RowCard", "typed by hand"), muted=True)), *_dropout(lines, key)
    match lines.spec.mask:
        case "three-step":
            told = _three_steps(lines, key)
        case "multiply":
            told = _multiplied(lines, key)
        case _:
            told = (_masked_softmax(lines, key),)
    return *told, *_dropout(lines, key), *_shifted(lines)


def mix_lines(lines: RowLines, dim: int) -> tuple[Line, ...]:
    """One dimension of the context: weights times values, summed."""
    values = lines.now.values
    if values is None:
        return ((Run(translate("RowCard", "The values of so many keys are not written out here."), muted=True),),)
    context = float(lines.now.stages["context"][dim])
    left = numbers.component(context, lines.decimals)
    name = Run(lines.context[dim].name + " ", muted=True)
    if math.isnan(context):
        return ((name, Run(numbers.NAN + " "), Run(translate("RowCard", "the row is NaN"), muted=True)),)
    keys = np.flatnonzero(lines.final)
    weights = [numbers.component(float(lines.final[key]), lines.decimals) for key in keys[:MOST_TERMS]]
    column = [numbers.score(float(values[key, dim]), lines.decimals or 2) for key in keys[:MOST_TERMS]]
    products = [f"{w} · {f'({v})' if v.startswith('−') else v}" for w, v in zip(weights, column, strict=True)]
    whole = len(keys) <= MOST_TERMS
    made = sum(numbers.read(w) * numbers.read(v) for w, v in zip(weights, column, strict=True)) if whole else math.nan
    sign = _sign(left, made, lambda value: numbers.component(value, lines.decimals))
    terms = _joined([Run(text, leak=bool(lines.peeking[key])) for key, text in zip(keys, products, strict=False)])
    if not whole:
        shown = terms[: 2 * _FIRST_TERMS - 1]
        terms = (*shown, Run(" + … "), _more(len(keys) - _FIRST_TERMS))
    line: Line = (name, Run(f"{left} {sign} "), *(terms or (Run("0"),)))
    return line, *_context_dropout(lines, dim, left)


def sum_lines(lines: RowLines) -> tuple[Line, ...]:
    """Σ of the row's weights, then the context's first dimensions, each as a mix."""
    keys = np.flatnonzero(lines.final)
    left = numbers.NAN if math.isnan(lines.total) else f"{lines.total:.2f}"
    texts = [numbers.component(float(lines.final[key]), lines.decimals) for key in keys[:MOST_TERMS]]
    whole = len(keys) <= MOST_TERMS
    sign = _sign(left, sum(map(numbers.read, texts)) if whole else math.nan, lambda value: f"{value:.2f}")
    terms = _joined([Run(text, leak=bool(lines.peeking[key])) for key, text in zip(keys, texts, strict=False)])
    if not whole:
        terms = (*terms[: 2 * _FIRST_TERMS - 1], Run(" + … "), _more(len(keys) - _FIRST_TERMS))
    mixed = [line for dim in range(min(len(lines.context), _MOST_DIMS)) for line in mix_lines(lines, dim)]
    if mixed and lines.now.values is None:
        mixed = mixed[:1]
    return (Run("Σ ", muted=True), Run(f"{left} {sign} "), *(terms or (Run("0"),))), *mixed


# -------------------------------------------------------------------------------------------------------------- steps


def _masked_softmax(lines: RowLines, key: int) -> Line:
    """One softmax over what the mask leaves: hidden keys contribute nothing, or what their fill makes of them."""
    assert lines.entering is not None and lines.exponentials is not None  # noqa: S101, PT018
    weight = float(lines.weights[key])
    if math.isnan(weight):
        return _no_number(lines)
    keys = np.flatnonzero(~lines.now.masked & (lines.entering != -math.inf))
    line = _quotient(lines, key, weight, keys, lines.peeking)
    if lines.now.masked[key]:
        entering = numbers.score(float(lines.entering[key]))
        words = translate("RowCard", "e^({s}) is 0").format(s=entering)
        if lines.is_cut(key):
            words = translate("RowCard", "not among the top {k}: e^(−∞) is 0").format(k=lines.spec.top_k)
        return *line, Run("   " + words, muted=True)
    if lines.now.hidden[key] and lines.spec.mask == "neg-inf":
        words = translate("RowCard", "filled with {fill}, it still takes its part")
        return *line, Run("   " + words.format(fill=numbers.score(float(lines.entering[key]))), leak=True)
    return line


def _three_steps(lines: RowLines, key: int) -> tuple[Line, ...]:
    """Softmax over everything, times the triangle, divided by what is left; the future is struck out."""
    assert lines.first is not None and lines.sum_before_dividing is not None  # noqa: S101, PT018
    hidden = lines.now.hidden
    nothing = np.zeros_like(hidden)
    everything = np.arange(lines.n_keys)
    first = float(lines.first[key])
    if math.isnan(first):
        return ((Run(translate("RowCard", "softmax") + " ", muted=True), *_no_number(lines)),)
    line = Run(translate("RowCard", "softmax") + " ", muted=True), *_quotient(lines, key, first, everything, nothing)
    told = [line, _triangle(lines)]
    left = numbers.told_sum(lines.sum_before_dividing, lines.decimals)
    label = Run(translate("RowCard", "÷ sum") + " ", muted=True)
    if math.isnan(float(lines.weights[key])):
        words = translate("RowCard", "nothing is left of the row in {dtype}").format(dtype=lines.spec.dtype)
        if hidden.all():
            words = translate("RowCard", "the mask hides every key: nothing is left of the row")
        return *told, (label, Run(f"{numbers.NAN} = 0 / 0"), Run("   " + words, muted=True))
    share = numbers.told_share(float(lines.weights[key]), lines.decimals)
    if hidden[key]:
        taken = numbers.told_share(first, lines.decimals)
        return *told, (label, Run(taken, struck=True), Run(f" {share} = 0 / {left}"))
    above = numbers.told_share(first, lines.decimals)
    again = _quotient(lines, key, float(lines.weights[key]), everything, nothing, struck=hidden)
    sign = _sign(share, _divided(above, left), lambda value: numbers.told_share(value, lines.decimals))
    return *told, (label, Run(f"{share} {sign} {above} / {left} "), Run(again[0].text.removeprefix(share + " ")),
                   *again[1:])  # fmt: skip


def _no_number(lines: RowLines) -> Line:
    """Why no number came out of a softmax."""
    assert lines.entering is not None  # noqa: S101
    quotient, words = "0 / 0", translate("RowCard", "a score of this row is not a number")
    if bool((lines.entering == -math.inf).all()):
        words = translate("RowCard", "every key is at −∞: there is nothing to share out")
    elif bool((lines.entering == math.inf).any()):
        quotient, words = "∞ / ∞", translate("RowCard", "a score of this row is infinite")
    return Run(f"{numbers.NAN} = {quotient}"), Run("   " + words, muted=True)


def _triangle(lines: RowLines) -> Line:
    """What the triangle leaves of the first softmax, and what it takes."""
    assert lines.first is not None and lines.sum_before_dividing is not None  # noqa: S101, PT018
    hidden, first = lines.now.hidden, lines.first

    def share(value: float) -> str:
        return numbers.told_share(value, lines.decimals)

    def told_sum(value: float) -> str:
        return numbers.told_sum(value, lines.decimals)

    left = told_sum(lines.sum_before_dividing)
    label = Run(translate("RowCard", "× triangle") + " ", muted=True)
    if lines.n_keys <= MOST_TERMS:
        texts = [share(float(value)) for value in first]
        made = sum(numbers.read(text) for text, gone in zip(texts, hidden, strict=True) if not gone)
        sign = _sign(left, made, told_sum)
        terms = [Run(text, struck=bool(gone)) for text, gone in zip(texts, hidden, strict=True)]
        return label, *_joined(terms), Run(f" {sign} {left}")
    taken = told_sum(float(first[hidden].sum())) if hidden.any() else ""
    gone = (Run("  "), Run(translate("RowCard", "future {share}").format(share=taken), struck=True)) if taken else ()
    return label, Run(translate("RowCard", "what is left: {share}").format(share=left)), *gone


def _multiplied(lines: RowLines, key: int) -> tuple[Line, ...]:
    """Softmax over everything, times the triangle, and the division that is missing where something was hidden."""
    assert lines.first is not None  # noqa: S101
    first = float(lines.first[key])
    if math.isnan(first):
        return ((Run(translate("RowCard", "softmax") + " ", muted=True), *_no_number(lines)),)
    nothing = np.zeros_like(lines.now.hidden)
    quotient = _quotient(lines, key, first, np.arange(lines.n_keys), nothing)
    above = numbers.told_share(first, lines.decimals)
    weight = numbers.told_share(float(lines.weights[key]), lines.decimals)
    gone = bool(lines.now.hidden[key])
    last = Run(translate("RowCard", "nothing was hidden, so there is nothing to divide by"), muted=True)
    if lines.now.hidden.all():
        last = Run(translate("RowCard", "the mask hides every key: nothing is left of the row"), muted=True)
    elif lines.now.hidden.any():
        words = translate("RowCard", "the division is missing: nobody divides by {sum}, what is left of the row")
        words = words.format(sum=numbers.told_sum(float(lines.weights.sum()), lines.decimals))
        last = Run(words, leak=True)
    return (
        (Run(translate("RowCard", "softmax") + " ", muted=True), *quotient),
        (Run(translate("RowCard", "× triangle") + " ", muted=True), Run(above, struck=gone),
         Run(f" · {0 if gone else 1} = {weight}")),
        (last,),
    )  # fmt: skip


def _dropout(lines: RowLines, key: int) -> tuple[Line, ...]:
    """What dropout makes of the weight; nothing where the weight was 0 before."""
    dropped = lines.now.dropped
    weight = float(lines.weights[key])
    if dropped is None or lines.dropped is None or weight == 0 or math.isnan(weight):
        return ()
    share = numbers.told_share(weight, lines.decimals)
    if dropped[key]:
        return ((Run(translate("RowCard", "dropped:") + " ", muted=True), Run(share, struck=True), Run(" → 0")),)
    p = numbers.score(lines.spec.dropout, 4)
    after = numbers.told_share(float(lines.dropped[key]), lines.decimals)
    made = numbers.read(share) / (1 - numbers.read(p))
    sign = _sign(after, made, lambda value: numbers.told_share(value, lines.decimals))
    return ((Run(translate("RowCard", "kept:") + " ", muted=True), Run(f"{share} × 1/(1 − {p}) {sign} {after}")),)


def _context_dropout(lines: RowLines, dim: int, before: str) -> tuple[Line, ...]:
    if lines.context_name != "dropped_context" or before == "0":
        return ()
    line = lines.context[dim]
    if line.dropped:
        return ((Run(translate("RowCard", "dropped:") + " ", muted=True), Run(before, struck=True), Run(" → 0")),)
    p = numbers.score(lines.spec.dropout, 4)
    made = numbers.read(before) / (1 - numbers.read(p))
    sign = _sign(line.text, made, lambda value: numbers.component(value, lines.decimals))
    return ((Run(translate("RowCard", "kept:") + " ", muted=True), Run(f"{before} × 1/(1 − {p}) {sign} {line.text}")),)


def _shifted(lines: RowLines) -> tuple[Line, ...]:
    """Why e^(s − max) stands for e^s."""
    if lines.shift is None:
        return ()
    words = translate("RowCard", "with e^(s − max), max = {max}: e^s would overflow in {dtype}")
    if lines.shift < 0:
        words = translate("RowCard", "with e^(s − max), max = {max}: e^s would vanish in {dtype}")
    return ((Run(words.format(max=numbers.score(lines.shift), dtype=lines.spec.dtype), muted=True),),)


# -------------------------------------------------------------------------------------------------------------- pieces


def _quotient(
    lines: RowLines, key: int, value: float, keys: npt.NDArray[np.intp], leak: npt.NDArray[np.bool_],
    struck: npt.NDArray[np.bool_] | None = None,
) -> Line:  # fmt: skip
    """``value`` as e^s over a sum of them over ``keys``: all of it, or its first terms and its own."""
    assert lines.exponentials is not None  # noqa: S101
    exponentials = lines.exponentials

    def text(place: int) -> str:
        return numbers.exponential(float(exponentials[place]), lines.decimals)

    def told(number: float) -> str:
        return numbers.told_share(number, lines.decimals)

    def run(place: int) -> Run:
        gone = struck is not None and bool(struck[place])
        return Run(text(place), struck=gone, leak=bool(leak[place]) and not gone)

    left, own = told(value), "0" if lines.now.masked[key] and lines.first is None else text(key)
    counted = keys if struck is None else keys[~struck[keys]]
    if len(keys) <= MOST_TERMS:
        total = sum(numbers.read(text(place)) for place in counted)
        sign = _sign(left, numbers.read(own) / total if total else math.nan, told)
        terms = _joined([run(place) for place in keys])
        inside: Line = terms if len(keys) == 1 else (Run("("), *terms, Run(")"))
        return Run(f"{left} {sign} {own} / "), *inside
    whole = numbers.exponential(float(exponentials[counted].sum()), lines.decimals)
    sign = _sign(left, _divided(own, whole), told)
    shown = [run(place) for place in counted[:_FIRST_TERMS]]
    apart = key in counted and key not in counted[:_FIRST_TERMS]
    more = len(counted) - len(shown) - apart
    terms = (*_joined(shown), *((Run(" + … + "), run(key)) if apart else ()))
    rest = (Run(" + "), _more(more)) if more else ()
    return Run(f"{left} {sign} {own} / {whole} = {own} / ("), *terms, *rest, Run(")")


def _more(count: int) -> Run:
    return Run(translate("RowCard", "{n} more").format(n=f"{count:,}"))


def _joined(terms: Sequence[Run]) -> Line:
    """Terms with + between them; beside a struck one it is struck too."""
    joined: list[Run] = []
    for place, term in enumerate(terms):
        if place:
            joined.append(Run(" + ", struck=term.struck))
        joined.append(term)
    return tuple(joined)


def _divided(above: str, below: str) -> float:
    divisor = numbers.read(below)
    return numbers.read(above) / divisor if divisor else math.nan


def _sign(printed: str, made: float, text: Callable[[float], str]) -> str:
    """= where ``made``, reckoned with the printed digits, prints the same."""
    return "=" if math.isfinite(made) and text(made) == printed else "≈"
