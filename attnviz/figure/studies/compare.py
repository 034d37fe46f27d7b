"""A | B: two states of one head in maps, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Block, TableBlock
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.matrix_map import Matrix, matrix_of, shape_peeking
from attnviz.figure.studies.names import bar_view, crop_caption, row_name, scale_in, short_number
from attnviz.figure.tables import Entry, Line, Table, table_of
from attnviz.figures import Figure
from attnviz.frames import Scale
from attnviz.questions.compare import CompareAnswer, HeadDifference
from attnviz.spec import WEIGHT_STAGES, AttentionSpec, View, shape_text
from attnviz.spec.fills import fill_text

_LABELLED_UP_TO = 24  # keys
_MOST_LINES = 12  # heads in the table
_MOST_PIXELS = 4096


def _tr(text: str) -> str:
    return QCoreApplication.translate("ComparePage", text)


# ---------------------------------------------------------------------------------------------------------------- maps


def maps_of(
    answer: CompareAnswer, view: View, names: tuple[str, str], *, most: int = _MOST_PIXELS
) -> tuple[Matrix, Matrix, Matrix]:
    """A and B on one scale under their ``names``, and B − A, at most ``most`` pixels a side."""
    maps, tokens, crop = answer.maps, answer.tokens, answer.maps.crop
    told = not crop.is_whole or (maps.level == 1 and len(tokens) <= _LABELLED_UP_TO)
    named = tokens if told else ()
    sums = maps.sums if told and maps.sums is not None else (False, False)
    scale = scale_of(answer, view)
    colours = "" if scale == Scale(0.0, 1.0) else _scale_words(scale)
    sides = []
    for spec, name, values, classes, totals in (
        (answer.question.a, names[0], maps.a, maps.a_classes, sums[0]),
        (answer.question.b, names[1], maps.b, maps.b_classes, sums[1]),
    ):
        peeking = shape_peeking(spec.mask_shape, *crop.shape) if maps.level == 1 and totals is not False else None
        sides.append(
            matrix_of(
                values, classes, scale=scale, colours=view.colours, tokens=named, title=name, caption=colours,
                sums=totals, peeking=peeking, stage=answer.question.stage, crop=crop, level=maps.level, most=most,
            )
        )  # fmt: skip
    bound = short_number(maps.difference_scale.high)
    largest = float(np.abs(maps.difference).max()) if maps.difference.size else 0.0
    caption = _tr("blue −{n} · pale 0 · brown {n}").format(n=bound) if largest else _tr("0 everywhere")
    difference = matrix_of(
        maps.difference, maps.difference_classes, scale=maps.difference_scale, colours=view.colours, tokens=named,
        title=_tr("B − A"), caption=caption, crop=crop, level=maps.level, most=most,
    )  # fmt: skip
    return sides[0], sides[1], difference


def scale_of(answer: CompareAnswer, view: View) -> Scale:
    """The scale that A and B share."""
    own = answer.maps.scale
    return scale_in(view, own, len(answer.tokens)) if answer.question.stage in WEIGHT_STAGES else own


def _scale_words(scale: Scale) -> str:
    words = _tr("colours {low} to {high}, log") if scale.curve == "log" else _tr("colours {low} to {high}")
    return words.format(low=short_number(scale.low), high=short_number(scale.high))


# -------------------------------------------------------------------------------------------------------------- tables


def numbers_table(answer: CompareAnswer) -> Table:
    """What holds of A, and of B."""
    head = _head(answer)
    lines: list[Line] = []
    if not math.isnan(head.sum_error[0]) or not math.isnan(head.future[0]):
        lines.append([_tr("row sums off 1 by"), *map(short_number, head.sum_error)])
        ahead = [Entry(short_number(share), "leak" if share > 0 else "ink") for share in head.future]
        lines.append([_tr("most weight on the future"), *ahead])
    lines.append([_tr("rows with NaN"), *(Entry(f"{n:,}", "leak" if n else "ink") for n in head.nan_rows)])
    lines.append([_tr("dtype"), answer.question.a.dtype, answer.question.b.dtype])
    return table_of([_tr("head {n}").format(n=head.head), "A", "B"], lines)


def apart_table(answer: CompareAnswer) -> Table:
    """How far A and B are apart in the head of the maps."""
    head = _head(answer)
    steps = _tr("largest, in steps (ULP) of {dtype}").format(dtype=answer.dtype)
    lines: list[Line] = [
        [_tr("largest"), short_number(head.largest)],
        [_tr("mean"), short_number(head.mean)],
        [steps, f"{head.ulps:,.1f}" if head.ulps < 1e4 else short_number(head.ulps)],
        [_tr("equal bit for bit"), _tr("yes") if head.identical else _tr("no")],
    ]
    place = _place(answer, head)
    if place:
        lines.insert(1, [_tr("where it is largest"), place])
    return table_of([_tr("A and B together"), "|B − A|"], lines)


def heads_table(answer: CompareAnswer, most: int = _MOST_LINES) -> Table:
    """The heads, those that differ most first, at most ``most`` of them."""
    ordered = sorted(answer.heads, key=lambda one: (-sum(one.nan_rows), -np.nan_to_num(one.largest)))
    return table_of(
        [_tr("heads by difference"), _tr("largest"), "ULP", _tr("NaN rows A | B")],
        [
            [
                _tr("head {n}").format(n=one.head), short_number(one.largest), short_number(one.ulps),
                " | ".join(f"{rows:,}" for rows in one.nan_rows),
            ]
            for one in ordered[:most]
        ],
    )  # fmt: skip


def _head(answer: CompareAnswer) -> HeadDifference:
    return next(one for one in answer.heads if one.head == answer.maps.head)


def _place(answer: CompareAnswer, head: HeadDifference) -> str:
    if not head.largest:
        return ""
    row, col = head.at
    tokens, whole = answer.tokens, answer.maps.level == 1
    row_words = row_name(row, tokens, answer.maps.crop.shape[0]) if whole else f"{row:,}"
    return _tr("row {row}, key {col}").format(row=row_words, col=row_name(col, tokens, len(tokens)))


# --------------------------------------------------------------------------------------------------------------- words


def verdict_words(answer: CompareAnswer) -> str:
    """How far the two are apart, in a sentence."""
    worst = answer.worst
    a, b = worst.nan_rows
    if all(one.identical for one in answer.heads):
        return _tr("Every number is equal, bit for bit.")
    if a or b:
        words = _tr("Rows that hold NaN: {a} of A, {b} of B. There no number can be compared.")
        if len(answer.heads) > 1:
            words = _tr("Rows of head {n} that hold NaN: {a} of A, {b} of B. There no number can be compared.")
        return words.format(a=f"{a:,}", b=f"{b:,}", n=worst.head)
    if worst.largest <= 0:
        return _tr("Every number is equal.")
    shown = next((one for one in answer.heads if one.head == answer.maps.head), worst)
    if len(answer.heads) == 1:
        words = _tr("They differ by at most {n}.")
    elif shown.head == worst.head:
        words = _tr("They differ by at most {n}, in head {head}.")
    else:
        words = _tr("Head {own} differs by at most {least}; most of all head {head}, by {n}.")
    words = words.format(
        n=short_number(worst.largest), head=worst.head, least=short_number(shown.largest), own=shown.head
    )  # fmt: skip
    if worst.ulps <= 16:
        steps = _tr("That is rounding: {n} steps of {dtype}.")
        words += " " + steps.format(n=f"{worst.ulps:.1f}", dtype=answer.dtype)
    return words


def differing_words(a: AttentionSpec, b: AttentionSpec) -> str:
    """Which fields of the two are not the same, and what they are."""
    parts = []
    for field in a.__struct_fields__:
        one, other = getattr(a, field), getattr(b, field)
        if one != other:
            words = [field.replace("_", " ")]
            if field == "mask_shape":
                words.append(f"{shape_text(one)[:20]} | {shape_text(other)[:20]}")
            elif not isinstance(one, msgspec.Struct):
                words.append(f"{value_words(one)} | {value_words(other)}")
            parts.append(" ".join(words))
    if not parts:
        return _tr("A and B are the same")
    return _tr("A | B: {parts}").format(parts=" · ".join(parts[:4]) + (" …" if len(parts) > 4 else ""))


def value_words(value: object) -> str:
    """A field's value by the name that the window gives it."""
    if isinstance(value, bool):
        return _tr("yes") if value else _tr("no")
    if isinstance(value, float):
        return fill_text(value)
    return {"neg-inf": "−∞"}.get(str(value), str(value))


def left_out_words(heads: int) -> str:
    """How many heads stand in one of the two alone; "" for none."""
    if heads == 1:
        return _tr("1 head stands in one of the two alone and is left out.")
    return _tr("{n} heads stand in one of the two alone and are left out.").format(n=heads) if heads else ""


# --------------------------------------------------------------------------------------------------------------- paper


def contents_of(figure: Figure, answer: CompareAnswer) -> Contents:
    """*a-b*: both maps. *difference*: beside them B − A, and the numbers."""
    question, view = answer.question, figure.view
    sides = tuple(f"{name} · {' · '.join(marks.mask_words(spec))}" for name, spec in (("A", question.a),
                                                                                     ("B", question.b)))  # fmt: skip
    a, b, difference = maps_of(answer, view, (sides[0], sides[1]))
    pair = tuple(replace(one, caption="") for one in (a, b))
    blocks: list[Block] = [MapsBlock(pair, _tr("A and B"), bar_view(view), weight=2.0, part="maps")]
    if figure.shows == "difference":
        three, bars = (*pair, replace(difference, caption="")), ((0, ""), (2, _tr("B − A")))
        blocks = [
            MapsBlock(three, _tr("the maps"), bar_view(view), bars, weight=3.0, part="maps"),
            TableBlock(apart_table(answer), _tr("how far A and B are apart"), weight=0.5, part="apart"),
            TableBlock(numbers_table(answer), _tr("A and B in numbers"), weight=0.4, part="sides"),
        ]
        if len(answer.heads) > 1:
            every = heads_table(answer, len(answer.heads))
            blocks.append(TableBlock(every, _tr("heads by difference"), weight=0.3, part="heads"))
    captions = [crop_caption(answer.maps.crop, question.stage), left_out_words(answer.left_out)]
    if answer.maps.level > 1:
        captions.append(marks.pixel_words(answer.maps.level, "max"))
    return Contents(
        title=_tr("A and B, head {n}: {stage}").format(n=answer.maps.head, stage=marks.stage_title(question.stage)),
        blocks=tuple(blocks),
        circumstances=differing_words(question.a, question.b),
        sentence=verdict_words(answer),
        captions=tuple(filter(None, captions)),
    )
