"""The exam: losses in training and in the exam by mask, what they betray, and the weights on one paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Headed, PlotBlock, TableBlock
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.matrix_map import Matrix, matrix_of, shape_peeking
from attnviz.figure.plots import Curve, Mark, Plot, Role
from attnviz.figure.studies.names import bar_view
from attnviz.figure.tables import Entry, Line, Table, table_of
from attnviz.figures import Figure
from attnviz.frames import CellClass, Scale
from attnviz.questions.exam import ExamAnswer, ExamCurve, exam_mask
from attnviz.spec import Causal, Colours

_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {"none": "amber", "fill-0": "violet", "multiply": "teal", "three-step": "green", "neg-inf": "accent"}
)
_CEILINGS: Final = (14.0, 24.0, 40.0)
"""How high the plot reaches: a loss of a layer that copied may be large, and the axis must not move at each step."""


def _tr(text: str) -> str:
    return QCoreApplication.translate("ExamPage", text)


def mask_name(name: str) -> str:
    """A mask of the exam in words."""
    mode, fill = exam_mask(name)
    words = {
        "none": _tr("no mask"), "multiply": _tr("multiply"), "three-step": _tr("three-step"), "neg-inf": "−∞",
        "add": _tr("add −∞"), "fill-0": _tr("fill 0"),
    }  # fmt: skip
    number = f"{fill:g}".replace("-", "−")
    return words.get(name) or (_tr("add {n}") if mode == "add" else _tr("fill {n}")).format(n=number)


def loss_plot(answer: ExamAnswer, at: int, *, brief: bool = False) -> Plot:
    """The losses up to point ``at``; ``brief`` names each mask once in the legend."""
    curves: list[Curve] = []
    for curve in answer.curves:
        words, role = mask_name(curve.mask), _ROLES.get(curve.mask, "ink")
        seen = slice(0, at + 1)
        trained = words if brief else _tr("{mask}: training").format(mask=words)
        curves.append(Curve(curve.steps[seen], curve.training[seen], trained, role))
        asked = "" if brief else _tr("{mask}: exam").format(mask=words)
        curves.append(Curve(curve.steps[seen], curve.exam[seen], asked, role, dashed=True))
    if brief:
        curves += [Curve((), (), _tr("in training"), "muted"), Curve((), (), _tr("in the exam"), "muted", dashed=True)]
    highest = max(float(curve.exam.max()) for curve in answer.curves)
    floor = _tr("nobody honest gets below ln {v} = {floor}").format(
        v=answer.question.vocabulary, floor=f"{answer.floor:.2f}"
    )
    return Plot(
        curves=tuple(curves), marks=(Mark(answer.floor, floor, "ink"),), x_label=_tr("training steps"),
        y_label=_tr("loss (nats a letter)"), x_range=(0.0, float(answer.question.steps)),
        y_range=(0.0, next((top for top in _CEILINGS if top > highest), highest)),
    )  # fmt: skip


def paper_map(curve: ExamCurve, answer: ExamAnswer, at: int, colours: Colours) -> Matrix:
    """One mask's weights on the sample at point ``at``."""
    weights = curve.weights[at]
    length = len(answer.sample)
    masked = np.triu(np.ones(weights.shape, bool), 1) & ((weights == 0) & (curve.mask != "none"))
    kinds = np.where(masked, int(CellClass.MASKED), int(CellClass.ORDINARY)).astype(np.uint8)
    return matrix_of(
        weights, kinds, scale=Scale(0.0, 1.0), colours=colours, tokens=answer.sample, numbers=False, sums=True,
        peeking=shape_peeking(Causal(), length, length),
    )  # fmt: skip


def maps_words() -> str:
    """What the maps show."""
    return _tr("Weights on one paper. Red: keys after the query; who copies lights up one step right of the diagonal.")


def losses_table(answer: ExamAnswer, at: int) -> Table:
    """Each mask's losses at point ``at``, and, once its training has ended, what they betray."""
    ended = int(answer.curves[0].steps[at]) == answer.question.steps
    lines = [_line_of(curve, answer.floor, at, ended=ended) for curve in answer.curves]
    return table_of(["", _tr("training"), _tr("exam"), ""], lines)


def _line_of(curve: ExamCurve, floor: float, at: int, *, ended: bool) -> Line:
    training, exam = float(curve.training[at]), float(curve.exam[at])
    verdict = curve.verdict(floor, at) if ended else None
    words = {
        None: Entry(_tr("is learning"), "muted"), "copied": Entry(_tr("copied"), "leak"),
        "honest": Entry(_tr("guesses"), "accent"), "between": Entry(_tr("neither"), "muted"),
    }[verdict]  # fmt: skip
    return [mask_name(curve.mask), f"{training:.2f}", f"{exam:.2f}", words]


def told(answer: ExamAnswer) -> str:
    """What came out, in words."""
    masks: dict[str, list[str]] = {"copied": [], "honest": [], "between": []}
    for curve in answer.curves:
        masks[curve.verdict(answer.floor)].append(curve.mask)
    by_sums = [mask for mask in masks["copied"] if exam_mask(mask)[0] == "multiply"]
    said = []
    for found, words in (
        ([mask for mask in masks["copied"] if mask not in by_sums],
         _tr("Copied the answer that stood in its input: {masks}.")),
        (by_sums, _tr("{masks}: no weight above the diagonal, and yet it copied: the answer hid in Σ.")),
        (masks["honest"], _tr("Guesses, as it must: {masks}.")),
    ):  # fmt: skip
        if found:
            said.append(words.format(masks=", ".join(map(mask_name, found))))
    return " ".join(said)


# --------------------------------------------------------------------------------------------------------------- paper


def contents_of(figure: Figure, answer: ExamAnswer) -> Contents:
    """The losses, the table and the maps at the last step."""
    asked, last = answer.question, len(answer.curves[0].steps) - 1
    maps = tuple(
        replace(paper_map(curve, answer, last, figure.view.colours), title=mask_name(curve.mask))
        for curve in answer.curves
    )
    settings = _tr("{v} letters · papers of {n} · {steps} steps · seed {seed}")
    return Contents(
        title=_tr("The exam: who copied in training?"),
        blocks=(
            PlotBlock(loss_plot(answer, last, brief=True), _tr("the losses"), weight=2.0, part="losses"),
            TableBlock(losses_table(answer, last), _tr("the losses in numbers"), weight=0.7, part="table"),
            MapsBlock(
                maps, _tr("the maps"), bar_view(figure.view), words=Headed(note=maps_words()), weight=1.6, part="maps"
            ),
        ),
        circumstances=settings.format(v=asked.vocabulary, n=asked.length, steps=asked.steps, seed=asked.seed),
        sentence=told(answer) if answer.finished else "",
    )
