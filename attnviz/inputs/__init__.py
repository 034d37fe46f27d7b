"""Where tokens and embeddings, queries and keys, or typed matrices come from: `open_source` and `count_tokens`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.inputs import drawn, lessons
from attnviz.inputs.text import embed_tokens, split_tokens
from attnviz.spec import (
    AnySource,
    AttentionSpec,
    Lesson,
    Matrix,
    RandomEmbeddings,
    RandomQK,
    Text,
    TypedScores,
    TypedWeights,
)

__all__ = ["Inputs", "count_tokens", "open_source"]

_BY_HAND = "worked by hand"


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What a source gives, on the CPU: tokens that name the keys, and the tensors at which it enters.

    ``embeddings`` float32 (L, d_model) where there is a module; ``queries`` and ``keys`` float32 (H, L, d_head) where
    they are drawn; ``scaled_scores`` or ``weights`` float64 (Q, K) where they are typed, then with ``values`` float64
    (K, D) if there are any and ``dims`` naming their columns. ``origin`` says in words where the numbers come from.
    ``n_queries`` may be less than the number of tokens: the queries are the last of them.
    """

    tokens: tuple[str, ...]
    n_queries: int
    origin: str
    glosses: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    embeddings: Tensor | None = None
    queries: Tensor | None = None
    keys: Tensor | None = None
    scaled_scores: Tensor | None = None
    weights: Tensor | None = None
    values: Tensor | None = None


def open_source(spec: AttentionSpec) -> Inputs:
    """Tokens and tensors of the spec's source. The same spec always gives the same bits."""
    match spec.source:
        case Lesson(name="journey"):
            embeddings = torch.tensor(lessons.JOURNEY_INPUTS, dtype=torch.float32)
            return Inputs(lessons.JOURNEY_TOKENS, len(embeddings), "the book's seeds", embeddings=embeddings)
        case Lesson():
            return Inputs(
                lessons.CAT_TOKENS,
                len(lessons.CAT_SCORES),
                _BY_HAND,
                glosses=lessons.CAT_GLOSSES,
                dims=lessons.CAT_DIMS,
                scaled_scores=_matrix(lessons.CAT_SCORES),
                values=_matrix(lessons.CAT_VALUES),
            )
        case TypedScores(scores=scores, values=values, dims=dims, tokens=tokens):
            return Inputs(
                tokens or _numbered(len(scores[0])),
                len(scores),
                _BY_HAND,
                dims=dims,
                scaled_scores=_matrix(scores),
                values=None if values is None else _matrix(values),
            )
        case TypedWeights(weights=weights, tokens=tokens):
            names = tokens or _numbered(len(weights[0]))
            return Inputs(names, len(weights), _BY_HAND, weights=_matrix(weights))
        case Text(text=text):
            tokens = split_tokens(text)
            embeddings = embed_tokens(tokens, spec.d_model or 1, spec.seed)
            return Inputs(tokens, len(tokens), _untrained("embeddings and weights", spec), embeddings=embeddings)
        case RandomEmbeddings(length=length):
            embeddings = drawn.embed_positions(length, spec.d_model or 1, spec.seed)
            return Inputs(_numbered(length), length, _untrained("embeddings and weights", spec), embeddings=embeddings)
        case RandomQK(length=length, qk_scale=qk_scale):
            queries, keys = drawn.queries_and_keys(spec.num_heads, length, spec.d_head or 1, qk_scale, spec.seed)
            origin = _untrained("queries and keys", spec)
            return Inputs(_numbered(length), length, origin, queries=queries, keys=keys)


def count_tokens(source: AnySource) -> tuple[int, int]:
    """Numbers of queries and keys that `open_source` will give, without making a tensor."""
    match source:
        case Lesson(name="journey"):
            return len(lessons.JOURNEY_TOKENS), len(lessons.JOURNEY_TOKENS)
        case Lesson():
            return len(lessons.CAT_TOKENS), len(lessons.CAT_TOKENS)
        case TypedScores(scores=matrix) | TypedWeights(weights=matrix):
            return len(matrix), len(matrix[0])
        case Text(text=text):
            length = len(split_tokens(text))
        case RandomEmbeddings(length=length) | RandomQK(length=length):
            pass
    return length, length


def _untrained(what: str, spec: AttentionSpec) -> str:
    return f"untrained: random {what}, seed {spec.seed}; the mechanism is real, the pattern is not"


def _numbered(length: int) -> tuple[str, ...]:
    return tuple(map(str, range(length)))


def _matrix(numbers: Matrix) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)
