"""Growing the input one token a round, against one masked pass over everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from attnviz import inputs
from attnviz.attention import masks
from attnviz.attention.stages import head_stages
from attnviz.engine.probes import file_array, frozen
from attnviz.questions.rounds import MOST_TOKENS, SHOWN_TOKENS, Floats, RoundsAnswer, RoundsQuestion
from attnviz.spec import AttentionSpec, Causal, SpecError, TypedWeights, edited
from attnviz.studies.opened_spec import OpenedSpec


def answers(question: RoundsQuestion, cancelled: Callable[[], bool]) -> Iterator[RoundsAnswer]:
    """An answer a round."""
    spec = edited(question.spec, training=False) if question.spec.drops else question.spec
    _check(spec)
    one = OpenedSpec(spec)
    length = len(one.tokens)
    with torch.inference_mode():
        stages = one.stages(question.head, {"weights"})
        whole = frozen(file_array(stages.stages["weights"][0]))
        mask = one.mask()
    hidden = frozen(np.zeros((length, length), bool) if stages.masked is None else stages.masked.cpu().numpy())
    last_rows: list[Floats] = []
    maps: list[Floats] = []
    hidden_maps = []
    differences: list[float] = []
    for n in range(1, length + 1):
        if cancelled():
            return
        grown = _pass_over(spec, one, question.head, n, mask)
        last_rows.append(frozen(grown[-1]))
        if length <= SHOWN_TOKENS:
            maps.append(grown)
            hidden_maps.append(frozen(hidden[:n, :n]))
        differences.append(_difference(grown[-1], whole[n - 1]))
        yield RoundsAnswer(
            n, length, one.tokens, tuple(last_rows), tuple(maps), tuple(hidden_maps), whole, hidden,
            frozen(np.array(differences)),
        )  # fmt: skip


def _check(spec: AttentionSpec) -> None:
    """Raise `SpecError` where rounds mean nothing or would take too long."""
    if isinstance(spec.source, TypedWeights):
        raise SpecError("source", "the weights are typed, so there is nothing to compute again: type scores instead")
    n_queries, n_keys = inputs.count_tokens(spec.source)
    if n_queries != n_keys:
        raise SpecError(
            "source", f"rounds need a query for each key, but there are {n_queries:,} queries and {n_keys:,} keys"
        )
    if n_keys > MOST_TOKENS:
        raise SpecError(
            "source", f"{n_keys:,} tokens would be computed again {n_keys:,} times: take up to {MOST_TOKENS:,}"
        )


def _pass_over(spec: AttentionSpec, one: OpenedSpec, head: int, n: int, mask: masks.Mask | None) -> Floats:
    """Weights (n, n) of one pass over the first ``n`` tokens, each computed again."""
    given = one.given(head)
    part: dict[str, Tensor] = {}
    for name in "qk":
        vectors = given.get(name)
        if vectors is not None:
            part[name] = vectors[:1, :n]
    typed = given.get("scaled_scores")
    if typed is not None:
        part["scaled_scores"] = typed[:, :n, :n]
    cut = None
    if mask is not None:
        plain = isinstance(spec.mask_shape, Causal)
        cut = masks.shaped(spec.mask_shape, n, n) if plain else masks.from_plane(~mask.hidden(range(n), (0, n)))
    with torch.inference_mode():
        result = one.backend.run(
            spec.device,
            lambda: head_stages(
                spec, head=head, keep={"weights"}, mask=cut, q=part.get("q"), k=part.get("k"),
                scaled_scores=part.get("scaled_scores"),
            ),
        )  # fmt: skip
    return frozen(file_array(result.stages["weights"][0]))


def _difference(row: Floats, whole: Floats) -> float:
    """The largest absolute difference of ``row`` (n,) from ``whole`` (L,); tokens that it has not got count as 0."""
    grown = np.zeros(len(whole))
    grown[: len(row)] = row
    lost, missing = np.isnan(grown), np.isnan(whole)
    if missing.all() and lost[: len(row)].all():
        return 0.0
    if lost.any() or missing.any():
        return float("nan")
    return float(np.abs(grown - whole).max())
