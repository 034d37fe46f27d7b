"""What the Leaks page says of readings: the verdict's sentence, the gradient's, a line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication

from attnviz.questions.leak import GradientReading, LeakAnswer, Reading, outcome
from attnviz.views.pages.number_table import Entry

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
    if any(reading.verdict == "rounding" for reading in own):
        return _tr("Clean: no output moves by more than rounding when a later token changes."), "good"
    return _tr("Clean: no output moves when a later token changes."), "good"


def gradient_words(slopes: GradientReading) -> str:
    """What the derivatives say, in a sentence."""
    if slopes.remark:
        return _tr("By gradient nothing can be said: {why}.").format(why=slopes.remark)
    if slopes.at is None:
        return _tr("By gradient in {dtype}: no output depends on what it must not see.").format(dtype=slopes.dtype)
    row, col = slopes.at
    return _tr("By gradient in {dtype}: output {row} depends on token {col}, by up to {most}.").format(
        dtype=slopes.dtype, row=row, col=col, most=f"{slopes.hidden_slope:.2g}"
    )


def line_of(reading: Reading) -> Sequence[Entry | str]:
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
