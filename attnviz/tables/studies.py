"""What a study has answered as tables: one for each part of its figure, every number as it was computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from attnviz.figures import Figure, Shows
from attnviz.frames import Crop, Values
from attnviz.questions import Answer
from attnviz.questions.compare import CompareAnswer, HeadDifference
from attnviz.questions.dropout import DropoutAnswer
from attnviz.questions.exam import ExamAnswer
from attnviz.questions.forms import FormsAnswer
from attnviz.questions.future_share import FutureShareAnswer
from attnviz.questions.gallery import DTYPES, GalleryAnswer
from attnviz.questions.heads import HeadsAnswer
from attnviz.questions.leak import LeakAnswer
from attnviz.questions.rounds import RoundsAnswer, cells_cached, cells_in_one_pass, cells_recomputed
from attnviz.spec import SpecError
from attnviz.tables.lines import Lines, Maps, Table


def study_tables(figure: Figure, answer: Answer, tokens: Sequence[str] = ()) -> dict[str, Table]:
    """The tables of ``figure``'s parts, or of all that there are, what it is about first.

    ``tokens`` name what an answer does not. Raises `SpecError` where the answer has none of the figure's parts.
    """
    every = _leaks(answer, tokens) if isinstance(answer, LeakAnswer) else _TABLES[figure.shows](answer)
    found = {part: table for part, table in every.items() if part in figure.parts or not figure.parts}
    if not found:
        why = f"parts is {','.join(figure.parts)}, but this {figure.shows} has {', '.join(every)} alone"
        raise SpecError("parts", why)
    return found


def _columns(parts: Sequence[Any], **of: Callable[[Any], Any]) -> Lines:
    """A line for each of ``parts``, and what each column takes of it."""
    return Lines({name: tuple(take(part) for part in parts) for name, take in of.items()})


# ------------------------------------------------------------------------------------------------------------- A and B


def _pair(answer: CompareAnswer) -> dict[str, Table]:
    return {"maps": _part("state", {"A": answer.maps.a, "B": answer.maps.b}, answer.maps.crop, answer.tokens)}


def _part(of: str, maps: Mapping[str, Values], crop: Crop, tokens: Sequence[str]) -> Maps:
    """What is shown of maps; the queries are the last of the tokens."""
    return Maps(of, maps, tokens[len(tokens) - crop.shape[0] :], tokens, first=(crop.rows[0], crop.cols[0]))


def _difference(answer: CompareAnswer) -> dict[str, Table]:
    a, b = (np.asarray(values, np.float64) for values in (answer.maps.a, answer.maps.b))
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, b - a)  # −∞ beside −∞ is no difference
    three = {"A": answer.maps.a, "B": answer.maps.b, "B-A": gap}
    maps = _part("state", three, answer.maps.crop, answer.tokens)
    heads = _columns(
        answer.heads, head=lambda one: one.head, largest=lambda one: one.largest, query=lambda one: one.at[0],
        key=lambda one: one.at[1], ulps=lambda one: one.ulps, mean=lambda one: one.mean,
        identical=lambda one: one.identical,
        **{f"{field}_{side}": _side(field, n) for field in ("sum_error", "future", "nan_rows")
           for n, side in enumerate("AB")},
    )  # fmt: skip
    return {"maps": maps, "heads": heads, "apart": heads, "sides": heads}


def _side(field: str, n: int) -> Callable[[HeadDifference], Any]:
    return lambda one: getattr(one, field)[n]


# --------------------------------------------------------------------------------------------------------- one head


def _gallery(answer: GalleryAnswer) -> dict[str, Table]:
    shown = {exhibit.order: exhibit.values for exhibit in answer.exhibits}
    limits = _columns(
        DTYPES, dtype=str, below=lambda dtype: answer.thresholds[dtype], fill=lambda dtype: answer.limits[dtype]
    )
    cells = [(row, key) for row in answer.masked_row for key in range(len(row.weights))]
    hidden = _columns(
        cells, how=lambda cell: cell[0].how, dtype=lambda cell: cell[0].dtype, refused=lambda cell: cell[0].refused,
        key=lambda cell: cell[1], score=lambda cell: answer.scores[cell[1]],
        weight=lambda cell: cell[0].weights[cell[1]],
    )  # fmt: skip
    return {"maps": _part("mask", shown, answer.crop, answer.tokens), "limits": limits, "hidden-row": hidden}


def _dropout(answer: DropoutAnswer) -> dict[str, Table]:
    n_queries = len(answer.vanished)
    rows = answer.tokens[len(answer.tokens) - n_queries :]
    tables: dict[str, Table] = {
        "sums": Lines({"draw": np.arange(len(answer.sums)), "sum": answer.sums}),
        "errors": Lines(
            {"draws": answer.steps, "largest": answer.largest, "mean": answer.average, "expected": answer.expected}
        ),
        "vanished": Lines(
            {"query": np.arange(n_queries), "token": rows, "cells": answer.n_visible, "seen": answer.vanished,
             "expected": answer.vanishing}
        ),
    }  # fmt: skip
    if answer.whole_map is not None and answer.mean_map is not None:
        columns = answer.tokens if answer.site == "weights" else ()
        tables["maps"] = Maps("map", {"undropped": answer.whole_map, "mean": answer.mean_map}, rows, columns)
    return tables


def _heads(answer: HeadsAnswer) -> dict[str, Table]:
    product = answer.product
    head, row, col = (place.ravel() for place in np.indices(product.at_once.shape))
    tables: dict[str, Table] = {
        "ladder": _columns(
            answer.ladder, step=lambda step: step.name, difference=lambda step: step.difference,
            identical=lambda step: step.identical,
        ),
        "product": Lines(
            {"head": head, "row": row, "column": col, "at_once": product.at_once.ravel(),
             "by_head": product.by_head.ravel()}
        ),
    }  # fmt: skip
    if answer.forms is not None:
        tables["forms"] = _columns(
            [answer.forms], tokens=lambda forms: forms.tokens, drawn=lambda forms: forms.drawn,
            copied=lambda forms: forms.copied, identical=lambda forms: forms.identical,
            stacked_products=lambda forms: forms.stacked_products, split_products=lambda forms: forms.split_products,
        )  # fmt: skip
    return tables


def _rounds(answer: RoundsAnswer) -> dict[str, Table]:
    rounds = np.arange(1, answer.done + 1)
    of, key = (place + 1 for place in np.tril_indices(answer.done))
    tables: dict[str, Table] = {
        "row": Lines(
            {"round": of, "key": key - 1, "token": tuple(answer.tokens[n - 1] for n in key),
             "weight": np.concatenate(answer.last_rows), "one_pass": answer.whole[of - 1, key - 1]}
        ),
        "costs": Lines(
            {"round": rounds, "difference": answer.differences,
             "recomputing": [cells_recomputed(int(n)) for n in rounds], "cache": [cells_cached(int(n)) for n in rounds],
             "one_pass": [cells_in_one_pass(int(n)) for n in rounds]}
        ),
    }  # fmt: skip
    if answer.maps:
        places = [np.indices(shown.shape).reshape(2, -1) for shown in answer.maps]
        query, key = np.concatenate(places, axis=1)
        tables["map"] = Lines(
            {"round": np.repeat(rounds, rounds**2), "query": query, "key": key,
             "weight": np.concatenate([shown.ravel() for shown in answer.maps])}
        )  # fmt: skip
    return tables


# --------------------------------------------------------------------------------------------------- numbers of its own


def _exam(answer: ExamAnswer) -> dict[str, Table]:
    points = [(curve, n) for curve in answer.curves for n in range(len(curve.steps))]
    return {
        "losses": _columns(
            points, mask=lambda point: point[0].mask, step=lambda point: point[0].steps[point[1]],
            training=lambda point: point[0].training[point[1]], exam=lambda point: point[0].exam[point[1]],
            future=lambda point: point[0].future[point[1]],
        ),
        "table": _columns(
            answer.curves, mask=lambda curve: curve.mask, training=lambda curve: curve.training[-1],
            exam=lambda curve: curve.exam[-1], verdict=lambda curve: curve.verdict(answer.floor),
        ),
        "maps": Maps("mask", {one.mask: one.weights[-1] for one in answer.curves}, answer.sample, answer.sample),
    }  # fmt: skip


def _future_share(answer: FutureShareAnswer) -> dict[str, Table]:
    rows = np.arange(len(answer.theory))
    shares = Lines({"row": rows, "unmasked": answer.unmasked, "equal": answer.theory, "masked": answer.masked})
    return {"curve": shares, "table": shares}


def _forms(answer: FormsAnswer) -> dict[str, Table]:
    timed, measured = answer.rounds > 0, [form.peak_bytes >= 0 for form in answer.forms]
    forms = _columns(
        [*zip(answer.forms, measured, strict=True)], form=lambda one: one[0].name, verdict=lambda one: one[0].verdict,
        difference=lambda one: one[0].difference, ulps=lambda one: one[0].ulps, eps=lambda one: one[0].figure,
        seconds=lambda one: one[0].seconds if timed else None, spread=lambda one: one[0].spread if timed else None,
        peak_bytes=lambda one: one[0].peak_bytes if one[1] else None,
    )  # fmt: skip
    return {"same": forms, "times": forms, "costs": forms}


def _leaks(answer: LeakAnswer, tokens: Sequence[str]) -> dict[str, Table]:
    verdicts = _columns(
        answer.readings, device=lambda one: one.device, dtype=lambda one: one.dtype, scale=lambda one: one.scale,
        verdict=lambda one: one.verdict, eps=lambda one: None if one.verdict == "untested" else one.figure,
        output=lambda one: one.pair and one.pair[0], token=lambda one: one.pair and one.pair[1],
        changed=lambda one: one.positions, tokens=lambda one: one.length, nan_rows=lambda one: one.nan_rows,
    )  # fmt: skip
    shown = _who_sees_whom(answer, tokens)
    return {"map": shown, "verdicts": verdicts} if shown.maps else {"verdicts": verdicts}


def _who_sees_whom(answer: LeakAnswer, tokens: Sequence[str]) -> Maps:
    """The readings that have a map, in eps of the largest output; one by gradients is in eps of the largest slope."""
    moved = {
        f"{one.device} {one.dtype} x {one.scale:g}": one.moved for one in answer.readings if one.moved is not None
    }  # fmt: skip
    slopes = answer.gradient
    if slopes is not None and slopes.moved is not None:
        moved[f"gradient {slopes.dtype}"] = slopes.moved
    shapes = {values.shape[0] for values in moved.values()}
    names = tokens if shapes == {len(tokens)} else ()
    return Maps("reading", moved, names, names, rows="output")


_TABLES: Final[Mapping[Shows, Callable[[Any], dict[str, Table]]]] = MappingProxyType(
    {
        "a-b": _pair, "difference": _difference, "gallery": _gallery, "dropout": _dropout, "heads-study": _heads,
        "rounds": _rounds, "exam": _exam, "future-share": _future_share, "forms": _forms,
    }
)  # fmt: skip
