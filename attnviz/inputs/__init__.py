"""Where tokens and embeddings, queries and keys, or typed matrices come from: `open_source` and `count_tokens`.

`open_mask_plane` opens a mask's file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz import tensor_files
from attnviz.inputs import drawn, lessons, patterns, storage
from attnviz.inputs.text import embed_tokens, split_tokens
from attnviz.spec import (
    AnySource,
    AttentionSpec,
    Lesson,
    MaskFile,
    Matrix,
    Pattern,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    was_given,
    worked,
)

__all__ = ["Inputs", "count_tokens", "open_mask_plane", "open_source"]

_BY_HAND = "worked by hand"
_BOOKS_SEEDS = (123, 789)


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What a source gives, on the CPU: tokens that name the keys, and the tensors at which it enters.

    ``embeddings`` (L, d_model) where there is a module, float32 if they are drawn or embedded, float64 if they are a
    lesson's with ``matrices`` of its own, (d_model, d_out) for query, key and value; its ``keep`` bool (Q, K) are then
    the cells that its dropout keeps. ``queries`` (H, Q, d_head) and ``keys`` (KV, K, d_head)
    where they come as they are, float32 if they are drawn, of a file's own dtype if they are read;
    ``scaled_scores`` or ``weights`` float64 (Q, K) where they are typed, then with ``values`` float64 (K, D) if there
    are any and ``dims`` naming their columns. ``glosses`` and ``dim_glosses`` say what tokens and dims mean.
    ``origin`` says in words where the numbers come from. ``n_queries`` may be less than the number of tokens: the
    queries are the last of them. Nothing here may be written to.
    """

    tokens: tuple[str, ...]
    n_queries: int
    origin: str
    glosses: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    dim_glosses: tuple[str, ...] = ()
    embeddings: Tensor | None = None
    queries: Tensor | None = None
    keys: Tensor | None = None
    scaled_scores: Tensor | None = None
    weights: Tensor | None = None
    values: Tensor | None = None
    matrices: tuple[Tensor, Tensor, Tensor] | None = None
    keep: Tensor | None = None


def open_source(spec: AttentionSpec, *, in_memory: bool = True) -> Inputs:
    """Tokens and tensors of the spec's source. The same spec always gives the same bits.

    With ``in_memory`` False, queries and keys that are made or copied here lie in temporary files that are mapped.
    Those of a file share its mapping, unless it holds them unaligned, as ``numpy.savez`` does: then they are copied.
    Raises `files.FileProblem` where a file is gone or has changed, or a disk has no room.
    """
    match spec.source:
        case Lesson(name="journey"):
            embeddings = torch.tensor(worked.JOURNEY_INPUTS, dtype=torch.float32)
            origin = "the book's seeds" if spec.seed in _BOOKS_SEEDS else f"the book's inputs, seed {spec.seed}"
            return Inputs(worked.JOURNEY_TOKENS, len(embeddings), origin, embeddings=embeddings)
        case Lesson(name="one-class"):
            drawn_once = lessons.one_class()
            return Inputs(
                lessons.ONE_CLASS_TOKENS,
                len(lessons.ONE_CLASS_TOKENS),
                "the lesson's numbers: NumPy's RandomState(3)",
                embeddings=drawn_once.inputs,
                matrices=drawn_once.matrices,
                keep=drawn_once.keep,
            )
        case Lesson():
            return Inputs(
                worked.CAT_TOKENS,
                len(worked.CAT_SCORES),
                _BY_HAND,
                glosses=worked.CAT_GLOSSES,
                dims=worked.CAT_DIMS,
                dim_glosses=worked.CAT_DIM_GLOSSES,
                scaled_scores=_matrix(worked.CAT_SCORES),
                values=_matrix(worked.CAT_VALUES),
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
            queries, keys = drawn.queries_and_keys(
                spec.num_heads, length, spec.d_head or 1, qk_scale, spec.seed, num_kv_heads=spec.num_kv_heads,
                in_memory=in_memory,
            )  # fmt: skip
            origin = _untrained("queries and keys", spec)
            return Inputs(_numbered(length), length, origin, queries=queries, keys=keys)
        case Pattern(length=length, pattern=kind):
            queries, keys = patterns.pattern_heads(
                kind, spec.num_heads, spec.num_kv_heads, length, spec.d_head or 1, spec.seed, in_memory=in_memory
            )
            origin = (
                f"made up: a pattern that looks like a trained head's ({kind}), seed {spec.seed}; nothing was learnt"
            )
            return Inputs(_numbered(length), length, origin, queries=queries, keys=keys)
        case QKFile(path=path, length=length, queries=n_queries):
            read = tensor_files.open_qk(spec.source)
            queries, keys = (_tensor(array, read.dtype, in_memory) for array in (read.queries, read.keys))
            names = read.tokens or _numbered(length)
            origin = "given in Python" if was_given(path) else f"read from {Path(path).name}"
            return Inputs(names, n_queries, origin, queries=queries, keys=keys)


def count_tokens(source: AnySource) -> tuple[int, int]:
    """Numbers of queries and keys that `open_source` will give, without making a tensor."""
    match source:
        case Lesson(name="journey"):
            return len(worked.JOURNEY_TOKENS), len(worked.JOURNEY_TOKENS)
        case Lesson(name="one-class"):
            return len(lessons.ONE_CLASS_TOKENS), len(lessons.ONE_CLASS_TOKENS)
        case Lesson():
            return len(worked.CAT_TOKENS), len(worked.CAT_TOKENS)
        case TypedScores(scores=matrix) | TypedWeights(weights=matrix):
            return len(matrix), len(matrix[0])
        case Text(text=text):
            length = len(split_tokens(text))
        case QKFile(queries=n_queries, length=length):
            return n_queries, length
        case RandomEmbeddings(length=length) | RandomQK(length=length) | Pattern(length=length):
            pass
    return length, length


def check_same_length(a: AnySource, b: AnySource) -> None:
    """Raise `SpecError` unless A and B have as many queries, and as many keys."""
    sizes = [count_tokens(source) for source in (a, b)]
    if sizes[0] != sizes[1]:
        of_a, of_b = (f"{queries:,} queries and {keys:,} keys" for queries, keys in sizes)
        raise SpecError("source", f"A has {of_a}, B {of_b}: give two of the same length")


def open_mask_plane(shape: MaskFile, n_queries: int, n_keys: int) -> Tensor:
    """A mask file's cells, bool (n_queries, n_keys), True where a query may look.

    They share the file's mapping, which may not be written to; integers of over a byte are copied. Raises
    `files.FileProblem` where the file is gone, has changed or is of another shape.
    """
    cells = tensor_files.open_mask(shape, n_queries, n_keys)
    return torch.from_numpy(cells if cells.dtype == np.bool_ else cells != 0)


def _untrained(what: str, spec: AttentionSpec) -> str:
    return f"untrained: random {what}, seed {spec.seed}; the mechanism is real, the pattern is not"


@lru_cache(maxsize=1)  # a million of them take 63 MB: those that show the same length share them
def _numbered(length: int) -> tuple[str, ...]:
    return tuple(map(str, range(length)))


def _tensor(array: npt.NDArray[Any], dtype: str, in_memory: bool) -> Tensor:
    """A file's array as a tensor of ``dtype`` on the same memory; a copy where its numbers stand unaligned.

    Torch's kernels are compiled for aligned numbers.
    """
    if array.flags.aligned:
        tensor = torch.from_numpy(array)
    else:
        tensor = storage.empty(array.shape, in_memory=in_memory, dtype=torch.from_numpy(array[:0]).dtype)
        np.copyto(tensor.numpy(), array)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _matrix(numbers: Matrix) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)
