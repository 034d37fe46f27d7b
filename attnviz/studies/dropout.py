"""Dropout drawn again and again over one head's weights, or over its context."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention import dropout
from attnviz.engine.probes import file_array, frozen
from attnviz.questions.dropout import (
    MOST_CELLS,
    SHOWN_CELLS,
    DropoutAnswer,
    DropoutQuestion,
    sums_deviation,
)
from attnviz.spec import SpecError, edited
from attnviz.studies.opened_spec import OpenedSpec

_LIVE_S = 0.04
_A_DECADE = 8


def answers(question: DropoutQuestion, cancelled: Callable[[], bool]) -> Iterator[DropoutAnswer]:
    """Answers after 1, 2, 5, 10 … draws, and often enough in between to look live."""
    tally = _Tally(question)
    stops, since = _stops(question.draws), 0.0
    for done in range(1, question.draws + 1):
        if cancelled():
            return
        tally.take(tally.own if done == 1 else tally.draw(done - 1))
        if done in stops:
            tally.compare()
        now = time.monotonic()
        if done in stops or now - since > _LIVE_S:
            since = now
            yield tally.answer()


def _stops(draws: int) -> frozenset[int]:
    """Numbers of draws after which the mean map is compared: 1, 2, 5, 10 …, some in between, and the last."""
    decades = len(str(draws))
    round_ones = {n * 10**decade for decade in range(decades) for n in (1, 2, 5)}
    between = {round(10 ** (k / _A_DECADE)) for k in range(_A_DECADE * decades)}
    return frozenset(n for n in {*round_ones, *between, draws} if n <= draws)


class _Tally:
    """What the draws so far add up to."""

    def __init__(self, question: DropoutQuestion) -> None:
        self.question = question
        spec = question.spec if question.spec.training else edited(question.spec, training=True)
        n_queries, n_keys = inputs.count_tokens(spec.source)
        if question.row >= n_queries:
            raise SpecError("row", f"row is {question.row}, but there are {n_queries}: they count from 0")
        if n_queries * n_keys > MOST_CELLS:
            side = f"{n_queries:,} × {n_keys:,}"
            raise SpecError(
                "source", f"a head of {side} cells is too large to draw again and again: take up to 1,024 tokens"
            )
        one = OpenedSpec(spec)
        site = spec.dropout_site
        before, after = ("weights", "dropped_weights") if site == "weights" else ("context", "dropped_context")
        stages = one.stages(question.head, {before, after})
        self.spec, self.site, self.tokens = spec, site, one.tokens
        kept = stages.kept
        assert kept is not None  # noqa: S101 (dropout acts)
        self.shape = tuple(kept.shape)  # (B, Q, C)
        self.own = kept[0].cpu()
        self.map = stages.stages[before][0].cpu().double()  # (Q, C)
        hidden = stages.masked if site == "weights" and stages.masked is not None else None
        self.hidden = torch.zeros_like(self.own) if hidden is None else hidden.cpu() & (self.map == 0)
        self.row = question.row
        self.kept_row, self.dropped_row = self.own[self.row], stages.stages[after][0, self.row]
        self.sees = torch.isfinite(self.map) & (self.map != 0)
        self.done = 0
        self.times = torch.zeros(self.map.shape, dtype=torch.int32)
        self.vanished = torch.zeros(len(self.map), dtype=torch.int64)
        self.sums = np.zeros(question.draws)
        self.steps: list[int] = []
        self.largest: list[float] = []
        self.average: list[float] = []
        self.factor = 1 / (1 - spec.dropout)

    def draw(self, later: int) -> Tensor:
        """Cells (Q, C) that the draw ``later`` after the spec's own keeps."""
        spec, head = self.spec, self.question.head
        _, n_queries, n_columns = self.shape
        seed = (spec.dropout_seed + later) % (1 << 63)
        if spec.dropout_generator == "torch":
            return dropout.TorchDraws(seed, self.shape, spec.dropout).keep(head)[0]
        return dropout.keep_portable(
            seed=seed, site=self.site, batch_item=0, head=head, n_queries=n_queries, n_columns=n_columns,
            p=spec.dropout,
        )  # fmt: skip

    def take(self, kept: Tensor) -> None:
        row = self.map[self.row]
        self.sums[self.done] = float(torch.where(kept[self.row], row, 0).sum()) * self.factor
        self.times += kept
        self.vanished += ~(kept & self.sees).any(1)
        self.done += 1

    def mean_map(self) -> Tensor:
        """The mean of the maps after dropout."""
        return self.map * self.times * (self.factor / self.done)

    def compare(self) -> None:
        apart = (self.mean_map() - self.map).abs()[self.sees]
        self.steps.append(self.done)
        self.largest.append(float(apart.max()) if len(apart) else 0.0)
        self.average.append(float(apart.mean()) if len(apart) else 0.0)

    def answer(self) -> DropoutAnswer:
        p, n_visible = self.spec.dropout, self.sees.sum(1)
        cells = frozen(file_array(self.map[self.row]))
        tallest = float(self.map[self.sees].abs().max()) if bool(self.sees.any()) else 0.0
        steps = np.array(self.steps, np.int64)
        small = self.map.numel() <= SHOWN_CELLS
        return DropoutAnswer(
            self.done, self.question.draws, self.site, p, self.row, cells,
            frozen(self.hidden[self.row].numpy()), frozen(self.kept_row.numpy()), frozen(file_array(self.dropped_row)),
            frozen(self.sums[: self.done]), float(cells.sum()), sums_deviation(cells, p),
            frozen(steps), frozen(np.array(self.largest)), frozen(np.array(self.average)),
            frozen(np.sqrt(p / (1 - p)) * tallest / np.sqrt(np.maximum(steps, 1))),
            frozen(self.vanished.numpy() / self.done), frozen(np.power(p, n_visible.numpy().astype(np.float64))),
            frozen(n_visible.numpy().astype(np.int64)), self.tokens,
            frozen(self.mean_map().numpy()) if small else None,
            frozen(file_array(self.map)) if small else None,
            frozen(self.hidden.numpy()) if small else None,
        )  # fmt: skip
