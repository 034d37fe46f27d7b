"""Queries and keys that nobody trained, made so that their maps look like those of trained heads.

Queries and keys of a head share a code. For *previous*, *local* and *stripes* it is the position, as cosines and sines
of many frequencies, whose products are a bump at the wanted distances; for *topics* the topic of the place; for *sink*
a direction in which the first key alone is long. How high the wanted scores stand above the others follows the length,
so that a row's weights stay with them among a million keys. Normal noise lies over everything.

Query heads that share a key/value head may be of several kinds. Then the keys carry a code for each kind, in dimensions
of its own, and each query speaks one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch
from torch import Generator, Tensor

from attnviz.inputs import storage
from attnviz.inputs.drawn import keyed_generator
from attnviz.spec import PatternKind

_IN_TURN: Final = ("sink", "local", "previous", "stripes", "topics", "random")
_NOISE: Final = 0.35  # standard deviation of the noise; of random heads it is 1
_MARGIN: Final = 2.4  # by how much, as a logarithm, the wanted weights outweigh all the others together
_HIGHEST: Final = 90.0  # scores above the others that heads of few dimensions would need are cut here
_BLOCK: Final = 4096

Code = Callable[[int, int], Tensor]
"""From a first position and a count to what these positions add to queries or keys (count, dimensions), float32."""


def pattern_heads(
    kind: PatternKind, num_heads: int, num_kv_heads: int, length: int, d_head: int, seed: int, *, in_memory: bool = True
) -> tuple[Tensor, Tensor]:
    """Queries (H, L, d_head) and keys (KV, L, d_head), float32, of heads of ``kind``; *mixed* takes each in turn.

    The kinds stand out if scores are scaled by 1/√d_head, and best where d_head is at least 16. With as many keys as
    queries, a head depends on (kind, length, d_head, seed, head) alone. Memory: the result and some MB, the result in a
    temporary file unless ``in_memory`` (see `storage.empty`).
    """
    queries, keys = (storage.empty((heads, length, d_head), in_memory=in_memory) for heads in (num_heads, num_kv_heads))
    shared_by = num_heads // num_kv_heads
    for kv_head in range(num_kv_heads):
        heads = range(kv_head * shared_by, (kv_head + 1) * shared_by)
        kinds = tuple(dict.fromkeys(kind_of(kind, head) for head in heads))
        coded = [name for name in kinds if name != "random"]
        _fill_with_noise(keys[kv_head], _NOISE if coded else 1.0, keyed_generator(seed, "pattern keys", kv_head))
        for head in heads:
            noise = _NOISE if kind_of(kind, head) in coded else 1.0
            _fill_with_noise(queries[head], noise, keyed_generator(seed, "pattern queries", head))
        for place, name in enumerate(coded):
            first, end = (n * d_head // len(coded) for n in (place, place + 1))
            if first == end:  # more kinds than dimensions
                continue
            generator = keyed_generator(seed, "pattern", name, kv_head)
            of_queries, of_keys = _CODES[name](length, end - first, math.sqrt(d_head), generator)
            _add(keys[kv_head, :, first:end], of_keys)
            for head in heads:
                if kind_of(kind, head) == name:
                    _add(queries[head, :, first:end], of_queries)
    return queries, keys


def kind_of(kind: PatternKind, head: int) -> str:
    """The kind of one query head: a `PatternKind` other than mixed, or random."""
    return _IN_TURN[head % len(_IN_TURN)] if kind == "mixed" else kind


def band_width(length: int) -> float:
    """Standard deviation, in tokens, of a *local* head's weights about the diagonal."""
    return max(1.0, math.sqrt(length) / 4)


def stripe_period(length: int, seed: int, kv_head: int) -> int:
    """Tokens between two stripes of a *stripes* head: it looks at distances of a multiple of it less 1."""
    return _period(length, keyed_generator(seed, "pattern", "stripes", kv_head))


def topics_of(length: int, seed: int, kv_head: int) -> Tensor:
    """The topic of each token (L,), int64, of a *topics* head."""
    starts, topics, _ = _segments(length, keyed_generator(seed, "pattern", "topics", kv_head))
    return topics[torch.bucketize(torch.arange(length), starts, right=True) - 1]


# ---------------------------------------------------------------------------------------------------------------- codes


def _sink(length: int, width: int, root: float, generator: Generator) -> tuple[Code, Code]:
    """Every query is long in one direction, in which only key 0 is long."""
    score = math.log(length) + _MARGIN
    direction = _signs(1, width, generator) * math.sqrt(score * root / width)

    def of_queries(_first: int, count: int) -> Tensor:
        return direction.expand(count, -1)

    def of_keys(first: int, count: int) -> Tensor:
        return direction * (torch.arange(first, first + count) == 0)[:, None]

    return of_queries, of_keys


def _local(length: int, width: int, root: float, generator: Generator) -> tuple[Code, Code]:
    """Normally distributed frequencies give a score that falls off as a bell about the query's own position."""
    tokens = band_width(length)
    pairs = width // 2
    peak = _peak(pairs, math.log(1 + length / tokens) + _MARGIN)
    quantiles = _spread(pairs, generator)
    frequencies = math.sqrt(2) * torch.special.erfinv(quantiles) / (tokens * math.sqrt(peak))
    return _waves(frequencies, peak, root, 0, width)


def _previous(length: int, width: int, root: float, generator: Generator) -> tuple[Code, Code]:
    """Evenly spread frequencies agree at no distance but the wanted one, 1."""
    pairs = width // 2
    peak = _peak(pairs, math.log(length) + _MARGIN)
    return _waves(math.pi * _spread(pairs, generator), peak, root, 1, width)


def _stripes(length: int, width: int, root: float, generator: Generator) -> tuple[Code, Code]:
    """Frequencies that all have one period agree at its multiples; where there is no stripe yet, key 0 is a weak sink.

    So looks a head that seeks what followed the same token before, in a text that repeats itself.
    """
    period = _period(length, generator)
    pairs, several = (width - 1) // 2, period // 2
    peak = _peak(min(pairs, several), math.log(period) + _MARGIN)
    harmonics = 1 + (_spread(pairs, generator) * several).floor().clamp(max=several - 1)
    waves_of_queries, waves_of_keys = _waves(2 * math.pi / period * harmonics, peak, root, -1, width)
    sink = math.sqrt(max(peak - 1.2, 0) * root)

    def of_queries(first: int, count: int) -> Tensor:
        code = waves_of_queries(first, count)
        code[:, -1:] = sink
        return code

    def of_keys(first: int, count: int) -> Tensor:
        code = waves_of_keys(first, count)
        if first == 0:
            code[0] = 0
            code[0, -1:] = sink
        return code

    return of_queries, of_keys


def _topics(length: int, width: int, root: float, generator: Generator) -> tuple[Code, Code]:
    """Queries and keys of one topic have one vector of random signs."""
    starts, topics, several = _segments(length, generator)
    gain = math.sqrt((math.log(several) + _MARGIN) * root / width)
    vectors = _signs(several, width, generator) * gain

    def of_both(first: int, count: int) -> Tensor:
        return vectors[topics[torch.bucketize(torch.arange(first, first + count), starts, right=True) - 1]]

    return of_both, of_both


_CODES: Final = {"sink": _sink, "local": _local, "previous": _previous, "stripes": _stripes, "topics": _topics}


def _waves(frequencies: Tensor, peak: float, root: float, distance: int, width: int) -> tuple[Code, Code]:
    """Cosines and sines of the positions, such that the score is ``peak`` at ``distance`` tokens behind the query."""
    pairs = len(frequencies)
    gain = torch.tensor(math.sqrt(peak * root / max(pairs, 1)), dtype=torch.float64)
    turns = torch.polar(gain, torch.arange(_BLOCK)[:, None] * frequencies).to(torch.complex64)  # of a block from 0

    def of_keys(first: int, count: int) -> Tensor:
        code = torch.zeros(count, width)
        start = torch.polar(torch.ones_like(frequencies), first * frequencies).to(torch.complex64)
        code[:, : 2 * pairs] = torch.view_as_real(turns[:count] * start).flatten(1)
        return code

    def of_queries(first: int, count: int) -> Tensor:
        return of_keys(first - distance, count)

    return of_queries, of_keys


def _peak(pairs: int, margin: float) -> float:
    """The score at the wanted distance that e^margin keys of unrelated phases come short of in sum.

    The mean of e^(score) over unrelated phases is I₀(peak / pairs)^pairs.
    """
    if pairs == 0:
        return 0.0
    low, high = 0.0, _HIGHEST
    for _ in range(40):
        peak = (low + high) / 2
        stands_out_by = -pairs * math.log(float(torch.special.i0e(torch.tensor(peak / pairs, dtype=torch.float64))))
        low, high = (low, peak) if stands_out_by >= margin else (peak, high)
    return high


def _period(length: int, generator: Generator) -> int:
    return max(4, round(length / float(torch.empty(1).uniform_(6, 10, generator=generator))))


def _segments(length: int, generator: Generator) -> tuple[Tensor, Tensor, int]:
    """First positions of the segments, the topic of each, and how many topics there are."""
    segments = min(40, max(2, length // 4))
    several = min(8, segments // 2)
    sizes = torch.empty(segments, dtype=torch.float64).uniform_(0.5, 1.5, generator=generator)
    starts = ((sizes.cumsum(0) - sizes) / sizes.sum() * length).long()
    steps = torch.randint(1, max(several, 2), (segments,), generator=generator)  # never the same topic twice running
    return starts, steps.cumsum(0) % several, several


def _spread(count: int, generator: Generator) -> Tensor:
    """``count`` numbers between 0 and 1, one in each equal part, float64."""
    return (torch.arange(count) + torch.rand(count, generator=generator, dtype=torch.float64)) / max(count, 1)


def _signs(rows: int, width: int, generator: Generator) -> Tensor:
    return torch.randint(0, 2, (rows, width), generator=generator).mul_(2).sub_(1).float()


def _fill_with_noise(part: Tensor, deviation: float, generator: Generator) -> None:
    for first in range(0, len(part), _BLOCK):
        part[first : first + _BLOCK].normal_(0, deviation, generator=generator)


def _add(part: Tensor, code: Code) -> None:
    """Add ``code`` to ``part`` (L, dimensions), block by block."""
    for first in range(0, len(part), _BLOCK):
        rows = part[first : first + _BLOCK]
        rows += code(first, len(rows))
