"""Many draws of dropout: what a row sums to, how the mean map comes back, and how often a row is dropped whole."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.figure.axes import number_words
from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Block, Headed, PlotBlock, TableBlock
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.matrix_map import Matrix, matrix_of
from attnviz.figure.plots import Bars, Curve, Mark, Plot
from attnviz.figure.studies.names import bar_view, head_words, row_name, scale_in
from attnviz.figure.tables import Table, table_of
from attnviz.figures import Figure
from attnviz.frames import CellClass, Scale
from attnviz.questions.dropout import DropoutAnswer, Floats
from attnviz.spec import View
from attnviz.spec.fills import raised

FEW_CELLS: Final = 6
"""Cells of a row whose sum takes too few values for a curve through them."""

_ONE_BAR: Final = 0.005
_WIDE_BAR: Final = 0.03  # of the extent of all sums

_ROWS_TOLD = 8
_LABELLED_MAP = 12


def _tr(text: str) -> str:
    return QCoreApplication.translate("DropoutPage", text)


def two(value: float) -> str:
    """Two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


# --------------------------------------------------------------------------------------------------------------- plots


def sums_plot(answer: DropoutAnswer, now: float | None) -> Plot | None:
    """The row's sums as a histogram with their mean, and where the present draw's sum ``now`` lies.

    The normal curve of their theory stands there for rows of more than `FEW_CELLS` cells; sums of fewer are counted at
    the very numbers that they can be. None where no sum is a number.
    """
    sums = answer.sums[np.isfinite(answer.sums)]
    mean, deviation = answer.mean, answer.deviation
    if not len(sums) or not math.isfinite(mean):
        return None
    few = _n_cells(answer) <= FEW_CELLS
    edges, heights = _counted(sums, _possible(answer)) if few else _binned(answer, sums)
    low, high = edges[0], edges[-1]
    if few:  # the outermost bars are not cut
        low, high = low - 0.02 * (high - low), high + 0.02 * (high - low)
    curves: tuple[Curve, ...] = ()
    if deviation > 0 and not few:
        x = np.linspace(low, high, 160)
        normal = len(sums) * (edges[1] - edges[0]) * np.exp(-(((x - mean) / deviation) ** 2) / 2)
        label = _tr("normal curve with √(p/(1−p)·Σw²) = {sd}").format(sd=f"{deviation:.3f}")
        curves = (Curve(x, normal / (deviation * math.sqrt(2 * math.pi)), label, "ink"),)
    lines = [Mark(mean, _tr("expected {mean}").format(mean=two(mean)), "muted", upright=True)]
    if now is not None:
        lines.append(Mark(now, _tr("this draw {sum}").format(sum=two(now)), "amber", upright=True))
    tallest = max(float(heights.max()), *(float(np.max(curve.y)) for curve in curves), 1.0)
    row = row_name(answer.row, answer.tokens, len(answer.vanished))
    return Plot(
        bars=(Bars(edges, heights),),
        curves=curves,
        marks=tuple(lines),
        x_label=_tr("sum of row {n} after dropout").format(n=row),
        y_label=_tr("draws, of {n}").format(n=f"{answer.done:,}"),
        x_range=(float(low), float(high)),
        y_range=(0.0, 1.25 * tallest),
    )


def _binned(answer: DropoutAnswer, sums: Floats) -> tuple[Floats, Floats]:
    """Edges and heights of a histogram as wide as the theory's."""
    reach = max(3.6 * answer.deviation, 1e-9)
    low, high = min(answer.mean - reach, float(sums.min())), max(answer.mean + reach, float(sums.max()))
    if answer.site == "weights":
        low = min(0.0, float(sums.min()))
    heights, edges = np.histogram(sums, bins=32, range=(low, high))
    return edges, heights


def _possible(answer: DropoutAnswer) -> Floats:
    """Every sum (n,) that the row's cells can have, rising."""
    cells = np.asarray(answer.cells, np.float64)
    cells = cells[np.isfinite(cells) & (cells != 0) & ~answer.masked]
    kept = np.array([*np.ndindex((2,) * len(cells))])
    return np.sort(answer.factor * (kept @ cells))


def _counted(sums: Floats, possible: Floats) -> tuple[Floats, Floats]:
    """Edges and heights of bars around the ``possible`` sums (n,), rising; those that a plot would not part are one."""
    extent = float(possible[-1] - possible[0]) or 1.0
    groups = np.split(possible, np.flatnonzero(np.diff(possible) > _ONE_BAR * extent) + 1)
    places = np.array([group.mean() for group in groups])
    nearest = np.abs(sums[:, None] - places).argmin(axis=1)
    half = min(_WIDE_BAR * extent, 0.8 * float(np.diff(places).min(initial=math.inf))) / 2
    heights = np.zeros(2 * len(places) - 1)
    heights[::2] = np.bincount(nearest, minlength=len(places))
    return (places[:, None] + np.array([-half, half])).ravel(), heights


def no_curve_words(answer: DropoutAnswer) -> str:
    """Why no normal curve stands in the plot; "" where one does."""
    n = _n_cells(answer)
    if n == 0 or n > FEW_CELLS:
        return ""
    if n == 1:
        return _tr("No normal curve here: the sum of one cell takes two values, all or nothing.")
    words = _tr("No normal curve here: the sum of {n} cells takes at most 2{power} = {values} values.")
    return words.format(n=n, power=raised(n), values=2**n)


def _n_cells(answer: DropoutAnswer) -> int:
    return int(answer.n_visible[answer.row])


def errors_plot(answer: DropoutAnswer) -> Plot:
    """How far the mean map is from the undropped one after ever more draws."""
    steps = answer.steps
    return Plot(
        curves=(
            Curve(steps, answer.largest, _tr("largest"), "accent", dots=True),
            Curve(steps, answer.average, _tr("mean"), "teal", dots=True),
            Curve(steps, answer.expected, "∝ 1/√N", "muted", dashed=True),
        ),
        x_label=_tr("draws N"),
        y_label=_tr("how far the mean map is from the undropped one"),
        x_log=True,
        y_log=True,
        x_range=(1.0, float(max(answer.total, 2))),
    )


# ------------------------------------------------------------------------------------------------- table, maps, words


def vanished_table(answer: DropoutAnswer, most: int = _ROWS_TOLD) -> Table:
    """How often a row is dropped whole, the first ``most`` rows."""
    lines = []
    for row in range(min(len(answer.vanished), most)):
        n, seen, closed = int(answer.n_visible[row]), 100 * answer.vanished[row], 100 * answer.vanishing[row]
        name = row_name(row, answer.tokens, len(answer.vanished))
        lines.append((name, str(n), f"{seen:.1f} %", f"p{raised(n)} {_percent(float(closed))}"))
    return table_of([_tr("row"), _tr("cells n"), _tr("seen"), _tr("expected")], lines)


def vanished_words() -> str:
    """What the table tells."""
    return _tr(
        "How often a row is dropped whole: pⁿ for n cells that weigh anything, so a row of one cell vanishes with "
        "probability p."
    )


def _percent(value: float) -> str:
    return "<\u00a00.01\u00a0%" if 0 < value < 0.01 else f"=\u00a0{number_words(value)}\u00a0%"


def maps_of(answer: DropoutAnswer, view: View) -> tuple[Matrix, Matrix] | None:
    """The map without dropout and the mean of all draws, on one scale; None where they are too large to be told."""
    if answer.whole_map is None or answer.mean_map is None or answer.hidden_map is None:
        return None
    hidden, weights = answer.hidden_map, answer.site == "weights"
    kinds = np.where(hidden, int(CellClass.MASKED), int(CellClass.ORDINARY)).astype(np.uint8)
    finite = answer.whole_map[np.isfinite(answer.whole_map) & ~hidden]
    most = (float(np.abs(finite).max()) if finite.size else 1.0) or 1.0
    scale = Scale(-most, most, diverging=True)
    if weights:
        scale = scale_in(view, Scale(0.0, most), len(answer.tokens))
    tokens = answer.tokens if weights and max(hidden.shape) <= _LABELLED_MAP else ()
    whole, mean = (
        matrix_of(
            np.asarray(values, np.float64), np.where(np.isnan(values), int(CellClass.NAN), kinds).astype(np.uint8),
            scale=scale, colours=view.colours, tokens=tokens, title=title, stage="weights" if weights else "context",
        )
        for values, title in (
            (answer.whole_map, _tr("without dropout")),
            (answer.mean_map, _tr("mean of {n} draws").format(n=f"{answer.done:,}")),
        )
    )  # fmt: skip
    return whole, mean


def told(answer: DropoutAnswer) -> str:
    """What the row's sums came to, beside their theory."""
    row, n = answer.row, _n_cells(answer)
    words = _tr("Over {draws} draws row {row} sums to {seen}; theory says {theory}.").format(
        draws=f"{answer.done:,}", row=row_name(row, answer.tokens, len(answer.vanished)),
        seen=_spread(float(np.nanmean(answer.sums)), float(np.nanstd(answer.sums))),
        theory=_spread(answer.mean, answer.deviation),
    )  # fmt: skip
    gone = _tr("It was dropped whole in {share} % of them: {power} {closed}.").format(
        share=f"{100 * answer.vanished[row]:.1f}",
        power=f"p{raised(n)}",
        closed=_percent(100 * float(answer.vanishing[row])),
    )
    return f"{words} {gone}"


def _spread(mean: float, deviation: float) -> str:
    return f"{two(mean)}\u00a0±\u00a0{two(deviation)}"


# --------------------------------------------------------------------------------------------------------------- paper


def contents_of(figure: Figure, answer: DropoutAnswer) -> Contents:
    """The sums and the errors, the table of vanished rows, and the mean map beside the undropped one."""
    now, no_curve = float(np.nansum(answer.dropped_row)), no_curve_words(answer)
    sums = sums_plot(answer, now)
    blocks: list[Block] = []
    if sums is not None:
        blocks.append(PlotBlock(sums, _tr("sums of the row"), weight=1.5, part="sums"))
    blocks.append(PlotBlock(errors_plot(answer), _tr("how the mean map comes back"), weight=1.2, part="errors"))
    table = vanished_table(answer, len(answer.vanished))
    told_rows = Headed(vanished_words())
    blocks.append(TableBlock(table, _tr("rows dropped whole"), told_rows, weight=0.4, part="vanished"))
    maps = maps_of(answer, figure.view)
    if maps is not None:
        blocks.append(MapsBlock(maps, _tr("the maps"), bar_view(figure.view), weight=0.9, part="maps"))
    return Contents(
        title=_tr("Dropout drawn {n} times").format(n=f"{answer.done:,}"),
        blocks=tuple(blocks),
        circumstances=" · ".join(filter(None, (head_words(figure), marks.circumstances(figure.spec)))),
        sentence=told(answer),
        notes=((_tr("why there is no normal curve"), no_curve),) if no_curve else (),
    )
