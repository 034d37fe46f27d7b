"""Who sees whom: the verdict's sentence, the gradient's, the table of readings, and the map on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Block, LeakBlock, TableBlock
from attnviz.figure.tables import Entry, Line, Table, table_of
from attnviz.figures import Figure
from attnviz.questions.leak import (
    LOOKS,
    GradientReading,
    LeakAnswer,
    LeakQuestion,
    Reading,
    hides_the_future,
    least_changed,
    outcome,
)

_INKS: Final = {
    "exactly zero": "good", "rounding": "good", "leak in the code": "leak", "leak in the arithmetic": "leak",
    "leaks": "leak", "cannot tell": "ink", "untested": "muted",
}  # fmt: skip


def _tr(text: str) -> str:
    return QCoreApplication.translate("LeaksPage", text)


def verdict_words(answer: LeakAnswer, scale: float, tokens: Sequence[str] = ()) -> tuple[str, str]:
    """The verdict so far, in a sentence, and its role: leak, good or muted. ``tokens`` name outputs and tokens."""
    own = [reading for reading in answer.readings if reading.scale == scale]
    came = outcome(answer, scale)
    if came == "leaks":
        worst = next((r for r in own if r.pair is not None), None)
        if worst is None or worst.pair is None:
            return _tr("It leaks: an item of the batch sees another one."), "leak"
        row, col = (f"{n} “{tokens[n]}”" if len(tokens) == worst.length else str(n) for n in worst.pair)
        return _tr("It leaks: output {row} moves when token {col} changes.").format(row=row, col=col), "leak"
    if came == "nan":
        rows = max(reading.nan_rows for reading in own)
        return _tr("{n} outputs are NaN.").format(n=f"{rows:,}"), "leak"
    if came == "unclear":
        return _tr("Cannot tell: it moves, and it does not run in float64."), "leak"
    if came == "untested":
        return _tr("It could not be tested: {why}.").format(why=own[0].remark if own else ""), "muted"
    if came == "arithmetic":
        dtypes = ", ".join(dict.fromkeys(r.dtype for r in own if r.verdict == "leak in the arithmetic"))
        return _tr("The code is clean; the arithmetic of {dtypes} leaks.").format(dtypes=dtypes), "leak"
    if not answer.finished:
        words = _tr("Nothing moved so far that must not: {n} of {m} readings.")
        return words.format(n=answer.done, m=answer.total), "muted"
    if any(reading.hidden is not None and not reading.hidden.any() for reading in own):
        return _tr("Nothing is hidden: every token may move every output."), "muted"
    words = _tr("Clean: no output moves when {change}.")
    if any(reading.verdict == "rounding" for reading in own):
        words = _tr("Clean: no output moves by more than rounding when {change}.")
    future = all(hides_the_future(reading.hidden) for reading in own)
    change = _tr("a later token changes") if future else _tr("a token changes that it must not see")
    least = least_changed(own)
    if least is not None:
        change += _tr(", of {n} among {all} tokens that were changed").format(n=least[0], all=f"{least[1]:,}")
    return words.format(change=change), "good"


def gradient_words(slopes: GradientReading) -> str:
    """What the derivatives say, in a sentence."""
    if slopes.remark:
        return _tr("By gradient nothing can be said: {why}.").format(why=slopes.remark)
    if slopes.at is None:
        words = _tr("By gradient in {dtype}: no output depends on what it must not see.")
        if slopes.hidden_slope:
            words = _tr("By gradient in {dtype}: no output depends by more than rounding on what it must not see.")
        return words.format(dtype=slopes.dtype)
    row, col = slopes.at
    return _tr("By gradient in {dtype}: output {row} depends on token {col}, by up to {most}.").format(
        dtype=slopes.dtype, row=row, col=col, most=f"{slopes.hidden_slope:.2g}"
    )


def looks_words(answer: LeakAnswer) -> str:
    """What the map looks like; "" where that is not known."""
    return _tr("It looks like {pattern}.").format(pattern=LOOKS[answer.pattern]) if answer.pattern else ""


def method_words() -> str:
    """How the readings come about."""
    return _tr(
        "Each token is changed, and every output compared with what it was, on the same device, in the same place of a "
        "batch. Moved: in eps of the largest output; up to 8 is rounding, where float64 shows no more. Larger inputs "
        "only say from which scale on it leaks, loses digits or turns NaN."
    )


def readings_table(answer: LeakAnswer) -> Table:
    """The verdicts by device, dtype and scale."""
    header = [_tr("device"), _tr("dtype"), _tr("inputs"), _tr("verdict"), _tr("moved")]
    return table_of(header, [_line_of(reading) for reading in answer.readings])


def maps_of(answer: LeakAnswer) -> list[Reading | GradientReading]:
    """The readings that have a map, in their order; the gradient's, which comes last, stands last."""
    every = (*answer.readings, *(() if answer.gradient is None else (answer.gradient,)))
    return [reading for reading in every if reading.moved is not None]


def _line_of(reading: Reading) -> Line:
    """A reading as a line of the table of verdicts."""
    role = _INKS[reading.verdict]
    figure = "" if reading.verdict == "untested" else f"{reading.figure:.2g}".replace("e+0", "e").replace("e+", "e")
    tips = [reading.remark] if reading.remark else []
    if reading.pair is not None:
        tips.append(_tr("output {row} ← token {col}").format(row=reading.pair[0], col=reading.pair[1]))
    if reading.nan_rows:
        words = _tr("{n} rows NaN: Q·Kᵀ overflows, no fault of the mask") if reading.overflows else _tr("{n} rows NaN")
        tips.append(words.format(n=reading.nan_rows))
    if reading.lost_rows > 0:
        tips.append(_tr("{n} rows lost most of their digits").format(n=reading.lost_rows))
    if 0 < reading.positions < reading.length:
        tips.append(_tr("{n} of {all} tokens were changed").format(n=reading.positions, all=reading.length))
    verdict = reading.verdict + (" · NaN" if reading.nan_rows else "")
    tip = "\n".join(tips)
    return [
        reading.device, reading.dtype, f"× {reading.scale:g}", Entry(verdict, role if role != "good" else "ink", tip),
        Entry(figure, role if role != "good" else "muted", tip),
    ]  # fmt: skip


def contents_of(figure: Figure, answer: LeakAnswer, tokens: Sequence[str] = ()) -> Contents:
    """The first reading's map and all verdicts. ``tokens`` name outputs and tokens."""
    asked = figure.question
    spec, scale = (asked.spec, asked.scale) if isinstance(asked, LeakQuestion) else (figure.spec, 1.0)
    words, role = verdict_words(answer, scale, tokens)
    shown = maps_of(answer)
    blocks: list[Block] = []
    if shown:
        blocks.append(LeakBlock(shown[0], _tr("who sees whom"), tuple(tokens), part="map"))
    blocks.append(TableBlock(readings_table(answer), _tr("the verdicts"), weight=0.9, part="verdicts"))
    notes = (
        (_tr("what it looks like"), looks_words(answer)),
        (_tr("the gradient's word"), "" if answer.gradient is None else gradient_words(answer.gradient)),
        (_tr("how it is measured"), method_words()),
    )
    settings = _tr("1 head") if spec.num_heads == 1 else _tr("{n} heads").format(n=spec.num_heads)
    return Contents(
        title=_tr("Who sees whom?"),
        blocks=tuple(blocks),
        circumstances=_tr("{mask} · {heads} · inputs × {scale}, seed {seed}").format(
            mask=" · ".join(marks.mask_words(spec)), heads=settings, scale=f"{scale:g}", seed=spec.seed
        ),
        sentence=words,
        role=role,
        notes=tuple((name, note) for name, note in notes if note),
    )
