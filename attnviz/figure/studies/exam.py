"""The exam: losses in training and in the exam by mask, what they betray, and the weights on one exam sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt
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
"""How high the plot reaches while more is to come: a loss of a layer that copied may be large, and the axis must not
move at each step."""

_SEEN: Final = 0.005
"""Less of a row is no look at a letter, and weights so near each other are alike."""

_MOST_OF_IT: Final = 0.5  # of a row

_HEADROOM: Final = 1.06
"""How high it reaches where the whole run is known, in largest losses."""


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
    to_come: list[Curve] = []
    for curve in answer.curves:
        words, role = mask_name(curve.mask), _ROLES.get(curve.mask, "ink")
        seen = slice(0, at + 1)
        trained = words if brief else _tr("{mask}: training").format(mask=words)
        curves.append(Curve(curve.steps[seen], curve.training[seen], trained, role))
        asked = "" if brief else _tr("{mask}: exam").format(mask=words)
        curves.append(Curve(curve.steps[seen], curve.exam[seen], asked, role, dashed=True))
        to_come += [Curve(curve.steps, losses) for losses in (curve.training, curve.exam)]
    highest = max(float(curve.exam.max()) for curve in answer.curves)
    floor = {"v": answer.question.vocabulary, "floor": f"{answer.floor:.2f}"}
    mark = Mark(
        answer.floor, _tr("nobody honest gets below ln {v} = {floor}").format(**floor), "ink",
        brief=_tr("guessing: ln {v} = {floor}").format(**floor),
    )  # fmt: skip
    return Plot(
        curves=tuple(curves), marks=(mark,), x_label=_tr("training steps"),
        y_label=_tr("loss (nats a letter); dashed: in the exam") if brief else _tr("loss (nats a letter)"),
        x_range=(0.0, float(answer.question.steps)),
        y_range=(0.0, next((top for top in _CEILINGS if top > highest), _HEADROOM * highest)),
        to_come=tuple(to_come),
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


def maps_words(answer: ExamAnswer, at: int) -> str:
    """What the maps show at point ``at``: how each mask's rows look at the letters after them."""
    ways: dict[str, list[str]] = {}
    for curve in answer.curves:
        ways.setdefault(_way_ahead(curve.weights[at]), []).append(mask_name(curve.mask))
    sheet = _tr("Weights on one exam sheet of {n} letters; red: letters that come later.")
    if set(ways) == {"none"}:
        sheet = _tr("Weights on one exam sheet of {n} letters.")
    said = [sheet.format(n=len(answer.sample))]
    for way, words in (
        ("next", _tr("Looks at the next letter: {masks}.")),
        ("alike", _tr("At all later letters alike: {masks}.")),
        ("some", _tr("At later letters: {masks}.")),
        ("none", _tr("At no later letter: {masks}.")),
    ):
        if way in ways:
            said.append(words.format(masks=", ".join(ways[way])))
    return " ".join(said)


def _way_ahead(weights: npt.NDArray[np.float32]) -> str:
    """How the rows of ``weights`` (L, L) look at later letters: at the *next*, at all *alike*, at *some*, at *none*."""
    rows = [weights[row, row + 1 :] for row in range(len(weights) - 1)]
    if max(float(row.max()) for row in rows) < _SEEN:
        return "none"
    if min(float(row[0]) for row in rows) > _MOST_OF_IT:
        return "next"
    alike = all(float(row.sum()) > _MOST_OF_IT and float(np.ptp(row)) < _SEEN for row in rows)
    return "alike" if alike else "some"


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
        ([mask for mask in masks["copied"] if mask not in by_sums], _tr("Copied the answer: {masks}.")),
        (by_sums, _tr("Copied it by row sums alone: {masks}.")),
        (masks["honest"], _tr("Guesses, as it must: {masks}.")),
    ):
        if found:
            said.append(words.format(masks=", ".join(map(mask_name, found))))
    return " ".join(said)


# --------------------------------------------------------------------------------------------------------------- paper


def contents_of(figure: Figure, answer: ExamAnswer) -> Contents:
    """The losses, the table and the maps at the last step."""
    return _contents_at(figure, answer, len(answer.curves[0].steps) - 1)


def moments_of(figure: Figure, answer: ExamAnswer) -> list[Contents]:
    """The same from before the first step on, after ever more of them, on the axes of the whole run."""
    last, frames = len(answer.curves[0].steps) - 1, figure.frames
    shown = sorted({round(last * n / (frames - 1)) for n in range(frames)}) if frames > 1 else [last]
    return [_contents_at(figure, answer, at) for at in shown]


def _contents_at(figure: Figure, answer: ExamAnswer, at: int) -> Contents:
    asked = answer.question
    maps = tuple(
        replace(paper_map(curve, answer, at, figure.view.colours), title=mask_name(curve.mask))
        for curve in answer.curves
    )
    highest = max(float(np.concatenate([curve.training, curve.exam]).max()) for curve in answer.curves)
    losses = replace(loss_plot(answer, at, brief=True), y_range=(0.0, _HEADROOM * highest))
    words = Headed(note=maps_words(answer, at))
    ended = answer.finished and at == len(answer.curves[0].steps) - 1
    settings = _tr("alphabet of {v} letters · exam sheets of {n} letters · {steps} steps · seed {seed}")
    return Contents(
        title=_tr("The exam: who copied in training?"),
        blocks=(
            PlotBlock(losses, _tr("the losses"), weight=2.0, part="losses"),
            TableBlock(losses_table(answer, at), _tr("the losses in numbers"), weight=0.7, part="table"),
            MapsBlock(maps, _tr("the maps"), bar_view(figure.view), words=words, weight=1.6, part="maps"),
        ),
        circumstances=settings.format(v=asked.vocabulary, n=asked.length, steps=asked.steps, seed=asked.seed),
        sentence=told(answer) if ended else "",
    )
