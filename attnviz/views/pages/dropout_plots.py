"""The plots of many draws of dropout: what a row sums to, and how the mean map comes back."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.figure.plots import Bars, Curve, Mark, Plot
from attnviz.questions.dropout import DropoutAnswer
from attnviz.views.pages.names import row_name

FEW_CELLS: Final = 6
"""Cells of a row whose sum takes too few values for a curve through them."""


def tr(text: str) -> str:
    """``text`` in the window's language."""
    return QCoreApplication.translate("DropoutPage", text)


def two(value: float) -> str:
    """Two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def sums_plot(answer: DropoutAnswer, now: float | None) -> Plot | None:
    """The row's sums as a histogram with their mean, and where the present draw's sum ``now`` lies.

    The normal curve of their theory stands there for rows of more than `FEW_CELLS` cells. None where no sum is a
    number.
    """
    sums = answer.sums[np.isfinite(answer.sums)]
    mean, deviation = answer.mean, answer.deviation
    if not len(sums) or not math.isfinite(mean):
        return None
    reach = max(3.6 * deviation, 1e-9)
    low, high = min(mean - reach, float(sums.min())), max(mean + reach, float(sums.max()))
    if answer.site == "weights":
        low = min(0.0, float(sums.min()))
    heights, edges = np.histogram(sums, bins=32, range=(low, high))
    curves: tuple[Curve, ...] = ()
    if deviation > 0 and _n_cells(answer) > FEW_CELLS:
        x = np.linspace(low, high, 160)
        normal = len(sums) * (edges[1] - edges[0]) * np.exp(-(((x - mean) / deviation) ** 2) / 2)
        label = tr("normal curve with √(p/(1−p)·Σw²) = {sd}").format(sd=f"{deviation:.3f}")
        curves = (Curve(x, normal / (deviation * math.sqrt(2 * math.pi)), label, "ink"),)
    marks = [Mark(mean, tr("mean {mean}").format(mean=two(mean)), "muted", upright=True)]
    if now is not None:
        marks.append(Mark(now, tr("this draw {sum}").format(sum=two(now)), "amber", upright=True))
    tallest = max(float(heights.max()), *(float(np.max(curve.y)) for curve in curves), 1.0)
    row = row_name(answer.row, answer.tokens, len(answer.vanished))
    return Plot(
        bars=(Bars(edges, heights, tr("{n} draws").format(n=f"{answer.done:,}")),),
        curves=curves,
        marks=tuple(marks),
        x_label=tr("sum of row {n} after dropout").format(n=row),
        y_label=tr("draws"),
        x_range=(float(low), float(high)),
        y_range=(0.0, 1.25 * tallest),
    )


def no_curve_words(answer: DropoutAnswer) -> str:
    """Why no normal curve stands in the plot; "" where one does."""
    n = _n_cells(answer)
    if n == 0 or n > FEW_CELLS:
        return ""
    if n == 1:
        return tr("No normal curve here: the sum of one cell takes two values, all or nothing.")
    words = tr("No normal curve here: the sum of {n} cells takes at most 2^{n} = {values} values.")
    return words.format(n=n, values=2**n)


def _n_cells(answer: DropoutAnswer) -> int:
    return int(answer.n_visible[answer.row])


def errors_plot(answer: DropoutAnswer) -> Plot:
    """How far the mean map is from the undropped one after ever more draws."""
    steps = answer.steps
    return Plot(
        curves=(
            Curve(steps, answer.largest, tr("largest"), "accent", dots=True),
            Curve(steps, answer.average, tr("mean"), "teal", dots=True),
            Curve(steps, answer.expected, "∝ 1/√N", "muted", dashed=True),
        ),
        x_label=tr("draws N"),
        y_label=tr("how far the mean map is from the undropped one"),
        x_log=True,
        y_log=True,
        x_range=(1.0, float(max(answer.total, 2))),
    )
