"""The exam: one attention layer trained on random tokens, where no honest model gets below ln V.

The layer is a token and a position embedding, one attention head and a linear map to logits; row t is asked for token
t + 1. In training it gets the whole paper, with the answers on it, and only the mask stands between. In the exam it
gets the words up to t and nothing else, as when it writes. Training loss falls by copying; the exam tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from attnviz.attention import masks
from attnviz.questions.exam import ExamAnswer, ExamQuestion, curve_of, exam_mask
from attnviz.spec import held

_WIDTH: Final = 32
_BATCH: Final = 128
_RATE: Final = 1e-2
_EVERY: Final = 5
"""Steps between two points of a curve."""
_PAPERS: Final = 512
"""Sequences on which both losses are measured; fresh ones, the same for every mask and step."""
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def answers(question: ExamQuestion, cancelled: Callable[[], bool] = lambda: False) -> Iterator[ExamAnswer]:
    """Curves that grow by `_EVERY` steps of every mask in turn; ends early once ``cancelled()``, between two steps."""
    with _differentiating():
        papers, sample = _papers(question)
        layers = [_Candidate(question, name) for name in question.masks]
        points = [[layer.point(0, papers, sample)] for layer in layers]
    total = question.steps * len(layers)
    names = tuple(_named(int(token), question.vocabulary) for token in sample[0])

    def answer(done: int) -> ExamAnswer:
        curves = tuple(curve_of(name, course) for name, course in zip(question.masks, points, strict=True))
        return ExamAnswer(done, total, question, math.log(question.vocabulary), names, curves)

    yield answer(0)
    done = 0
    for first in range(0, question.steps, _EVERY):
        last = min(first + _EVERY, question.steps)
        with _differentiating():
            for layer, course in zip(layers, points, strict=True):
                for step in range(first, last):
                    if cancelled():
                        return
                    layer.learn(step)
                done += last - first
                course.append(layer.point(last, papers, sample))
        yield answer(done)


@contextmanager
def _differentiating() -> Iterator[None]:
    """Gradients, on one of torch's threads: of such small numbers several make a slower sum, and another one.

    All three are the thread's that calls, not the generator's, so nothing is yielded within.
    """
    threads = torch.get_num_threads()
    with torch.inference_mode(mode=False), torch.enable_grad():
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


class _Candidate:
    """One layer under one mask, with a generator of its own."""

    def __init__(self, question: ExamQuestion, name: str) -> None:
        self._question = question
        self._mode, fill = exam_mask(name)
        self._fill = held(fill, "float32")  # what the layer's dtype makes of it
        self._draw = torch.Generator().manual_seed(question.seed)
        vocabulary, d = question.vocabulary, _WIDTH
        self._tokens, self._places = (self._normal(rows, d) for rows in (vocabulary, question.length))
        self._query, self._key, self._value = (self._uniform(d, d) for _ in "qkv")
        self._head, self._bias = self._uniform(d, vocabulary), torch.zeros(vocabulary)
        self._parameters = [
            self._tokens, self._places, self._query, self._key, self._value, self._head, self._bias,
        ]  # fmt: skip
        for parameter in self._parameters:
            parameter.requires_grad_()
        self._optimiser = torch.optim.Adam(self._parameters, lr=_RATE)

    def learn(self, step: int) -> None:
        """One step on fresh sequences, at a rate that falls to 0 over the whole course."""
        question = self._question
        for group in self._optimiser.param_groups:
            group["lr"] = _RATE * (1 - step / question.steps)
        x = torch.randint(question.vocabulary, (_BATCH, question.length), generator=self._draw)
        loss = _loss(self._logits(x)[0], x)
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()

    def point(self, step: int, papers: Tensor, sample: Tensor) -> tuple[int, float, float, npt.NDArray[np.float32]]:
        """The step, the loss on ``papers`` as in training and with prefixes alone, and the sample's weights."""
        with torch.no_grad():
            training = _loss(self._logits(papers)[0], papers)
            written = [self._logits(papers[:, : t + 1])[0][:, -1:] for t in range(papers.shape[1])]
            exam = _loss(torch.cat(written, 1), papers)
            weights = self._logits(sample)[1][0]
            return step, float(training), float(exam), weights.numpy()

    def _logits(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, L, V) and weights (B, L, L) of tokens ``x`` (B, L)."""
        inside = self._tokens[x] + self._places[: x.shape[1]]  # (B, L, D)
        q, k, v = inside @ self._query, inside @ self._key, inside @ self._value
        weights = _weights(q @ k.transpose(1, 2) / math.sqrt(_WIDTH), self._mode, self._fill)
        return weights @ v @ self._head + self._bias, weights

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._draw)

    def _uniform(self, d_in: int, d_out: int) -> Tensor:
        return (2 * torch.rand(d_in, d_out, generator=self._draw) - 1) / math.sqrt(d_in)


def _weights(scores: Tensor, mode: str, fill: float) -> Tensor:
    """Weights (B, L, L) of scaled scores under a causal mask, out of place, so that they can be differentiated."""
    if mode == "none":
        return torch.softmax(scores, -1)
    hidden = masks.hidden(*scores.shape[-2:])
    if mode == "neg-inf":
        return torch.softmax(scores.masked_fill(hidden, fill), -1)
    if mode == "add":
        return torch.softmax(scores + torch.zeros_like(hidden, dtype=scores.dtype).masked_fill(hidden, fill), -1)
    kept = torch.softmax(scores, -1) * ~hidden
    return kept if mode == "multiply" else kept / kept.sum(-1, keepdim=True)


def _loss(logits: Tensor, x: Tensor) -> Tensor:
    """Mean cross entropy, in nats, of the token after each; the last row's answer is nowhere on the paper."""
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), x[:, 1:].flatten())


def _papers(question: ExamQuestion) -> tuple[Tensor, Tensor]:
    """Sequences (`_PAPERS`, L) that nobody trains on, and the first of them as a sample (1, L)."""
    generator = torch.Generator().manual_seed((question.seed + 1) % (1 << 63))
    papers = torch.randint(question.vocabulary, (_PAPERS, question.length), generator=generator)
    return papers, papers[:1]


def _named(token: int, vocabulary: int) -> str:
    return _LETTERS[token] if vocabulary <= len(_LETTERS) else str(token)
