"""How much of each row looks ahead: NumPy's own draws, since only these give the published percentages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from attnviz.questions.future_share import FutureShareAnswer, FutureShareQuestion


def answers(question: FutureShareQuestion, cancelled: Callable[[], bool]) -> Iterator[FutureShareAnswer]:
    """The means after each draw."""
    length, d, total = question.length, question.d, question.draws
    random = np.random.RandomState(question.seed)  # whose the published percentages are
    ahead = np.triu(np.ones((length, length), bool), 1)
    theory = _frozen(100 * (length - 1 - np.arange(length)) / length)
    sums, masked_sums = np.zeros(length), np.zeros(length)
    for done in range(1, total + 1):
        if cancelled():
            return
        queries = random.randn(length, d) * question.qk_scale
        keys = random.randn(length, d) * question.qk_scale
        scores = queries @ keys.T / np.sqrt(d)
        share = _on_future(scores, ahead)
        sums += share
        masked_sums += _on_future(np.where(ahead, -np.inf, scores), ahead)
        unmasked, masked = _frozen(100 * sums / done), _frozen(100 * masked_sums / done)
        yield FutureShareAnswer(done, total, unmasked, masked, theory, _frozen(100 * share))


def _on_future(scores: npt.NDArray[np.float64], ahead: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """The share of each row's softmax that lies ``ahead``."""
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    share: npt.NDArray[np.float64] = np.where(ahead, weights, 0).sum(1)
    return share


def _frozen(array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    array.flags.writeable = False
    return array
