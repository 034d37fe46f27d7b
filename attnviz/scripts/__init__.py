"""One stage of a spec as a short script that needs torch and the standard library alone: `script`.

A script names its variables as the stages are named, computes them by the operations that the program uses and draws
what is random from the same seeds, so that its numbers have the program's bits: head by head, on a batch of one where
there is no other. It prints a row of the stage a line.
"""

from __future__ import annotations

from typing import Final

from attnviz.scripts.lines import WIDTH, Step, lines_of, merged
from attnviz.scripts.sheet import Sheet
from attnviz.scripts.sources import begin
from attnviz.scripts.stages import add_stages
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, Drawn, MaskFile, Pattern, QKFile, SpecError, Text, View
from attnviz.spec.worked import typed_form

__all__ = ["MOST_LINES", "WIDTH", "script"]

MOST_LINES: Final = 30

_MERGED: Final = (
    "row_sums", "joined", "scores", "keep", "unnormalised_weights", "masked_scores", "unmasked_weights",
    "scaled_scores", "context",
)  # fmt: skip
"""Steps that go into the next one where a script would be too long, the plainest first."""


def script(spec: AttentionSpec, view: View, tokens: tuple[str, ...] = ()) -> str:
    """The script that prints ``view``'s stage, head, rows and columns: at most `MOST_LINES` lines, each up to `WIDTH`.

    ``tokens`` are a text's, and needed for that source alone. Raises `SpecError` in words where there is no such
    script: queries, keys or masks of a file, patterns, and what does not fit in so many lines.
    """
    view.check(spec)
    _check_writable(spec)
    steps = _written(spec, view, tokens, airy=True)
    lines = lines_of(steps, roomy=True)
    if len(lines) > MOST_LINES and len(lines_of(steps)) > MOST_LINES:
        steps = _written(spec, view, tokens, airy=False)
        for name in _MERGED:
            if len(lines_of(steps)) > MOST_LINES and name != view.stage:
                steps = merged(steps, name)
    lines = lines if len(lines) <= MOST_LINES else lines_of(steps)
    longest = max(map(len, lines))
    if len(lines) > MOST_LINES or longest > WIDTH:
        raise _too_long(spec, len(lines), longest)
    return "\n".join(lines) + "\n"


def _written(spec: AttentionSpec, view: View, tokens: tuple[str, ...], *, airy: bool) -> list[Step]:
    sheet = Sheet(spec, view, tokens, airy=airy)
    for field, size in ("rows", sheet.n_queries), ("cols", sheet.n_keys):
        span = getattr(view, field)
        if view.stage in QUERY_KEY_STAGES and span is not None and span[0] >= size:
            raise SpecError(field, f"{field} begins at {span[0]:,}, but the map has {size:,}: begin below that")
    begin(sheet)
    add_stages(sheet)
    return sheet.steps


def _check_writable(spec: AttentionSpec) -> None:
    match spec.source:
        case QKFile():
            why = "queries and keys are a file's, which no short script reads without NumPy"
        case Pattern():
            why = f"a made-up pattern takes more to draw than the {MOST_LINES} lines of a script"
        case _ if isinstance(spec.mask_shape, MaskFile) and spec.mask != "none":
            raise SpecError(
                "mask_shape",
                "the mask is a file's, which no short script reads without NumPy: "
                "draw it, take another mask shape, or write the numbers with attnviz render --data",
            )
        case _:
            return
    raise SpecError("source", f"{why}: take another source, or write the numbers with attnviz render --data")


def _too_long(spec: AttentionSpec, count: int, longest: int) -> SpecError:
    if count <= MOST_LINES:
        said = f"this takes a line of {longest} characters, and one has at most {WIDTH}: "
        return SpecError("source", said + "take shorter tokens, or an earlier stage")
    said = f"this takes {count} lines, and a script has at most {MOST_LINES}: "
    typed = typed_form(spec.source) is not None
    if isinstance(spec.mask_shape, Drawn) and spec.mask != "none" and len(spec.mask_shape.runs) > 8:
        return SpecError("mask_shape", said + "take a mask shape with a name, or an earlier stage")
    if (typed or isinstance(spec.source, Text)) and not spec.drops:
        return SpecError("source", said + "take fewer tokens, or an earlier stage")
    if spec.drops and spec.dropout_generator == "portable":
        return SpecError("stage", said + "take an earlier stage, torch's dropout generator, or inference")
    return SpecError("stage", said + "take an earlier stage")
