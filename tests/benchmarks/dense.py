"""Maps that fit, without a window: twelve heads of 1,024 tokens into a kept buffer, its memory, and dropout's mask."""

import statistics

import torch
import torch.nn.functional as F  # noqa: N812 (the name everyone reads it by)

from attnviz.attention.dropout import keep_portable
from attnviz.attention.stages import head_stages
from attnviz.inputs import open_source
from attnviz.spec import RandomQK, make_spec
from tests.benchmarks.arms import CORES, Peak, compared, in_own_process, interleaved, ratio_line

HEADS, LENGTH = 12, 1024
_TOGETHER = 2


def _spec(length=LENGTH):
    return make_spec(RandomQK(length=length), num_heads=HEADS, d_out=64 * HEADS)


def _compute(spec, given, kept, clean=False):
    """Every head's causal weights into its part of the kept buffer, two heads in one go, as the engine does.

    The buffer is kept, so hidden weights are ``clean`` from the second time on.
    """
    torch.set_num_threads(CORES)
    for first in range(0, HEADS, _TOGETHER):
        heads = slice(first, first + _TOGETHER)
        q, k = given.queries[heads], given.keys[heads]
        head_stages(spec, head=first, keep={"weights"}, q=q, k=k, out=kept[heads], clean=clean)


def dense(repeats):
    """The causal weights of 12 × 1,024 × 1,024, all kept, beside the attention that keeps none.

    Ours: `head_stages` of two heads at a time into one buffer made beforehand, with as many torch threads.
    Peer: `scaled_dot_product_attention` with ``is_causal`` on the same queries and keys, all heads at once, as many
    torch threads, which also mixes values.
    """
    spec = _spec()
    given = open_source(spec)
    kept = torch.empty(HEADS, LENGTH, LENGTH)
    q, k = given.queries[None], given.keys[None]
    v = torch.randn(q.shape, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        _compute(spec, given, kept)
        arms = {"ours": lambda: _compute(spec, given, kept, clean=True), "sdpa": lambda: _attend(q, k, v)}
        taken = interleaved(arms, repeats)
    return [compared("dense", taken["ours"], taken["sdpa"], 1.0, "scaled_dot_product_attention")]


def _attend(q, k, v):
    torch.set_num_threads(CORES)
    F.scaled_dot_product_attention(q, k, v, is_causal=True)


def dense_memory(_repeats):
    """The most that `dense` takes, its kept buffer included, beside the bytes of that buffer.

    Queries and keys stand before, and a small map has loaded the kernels. Three processes, the median of them.
    """
    extra = statistics.median(in_own_process(dense_peak) for _ in range(3))
    return [ratio_line("dense-memory", (extra / 1e6, HEADS * LENGTH**2 * 4 / 1e6), 1.1, "the result", unit="MB")]


def dense_peak():
    with torch.inference_mode():
        small, spec = _spec(256), _spec()
        _compute(small, open_source(small), torch.empty(HEADS, 256, 256))
        given = open_source(spec)
        with Peak() as peak:
            kept = torch.empty(HEADS, LENGTH, LENGTH)
            _compute(spec, given, kept)
    return peak.extra


def dropout(repeats):
    """Which of 12 × 1,024 × 1,024 weights are kept, beside dropping them.

    Ours: `keep_portable` for each head, the generator that gives any tile the bits of the whole. Peer: `F.dropout` of
    a tensor of all of them. p is 0.1, all cores in both.
    """
    torch.set_num_threads(CORES)
    cells = torch.ones(HEADS, LENGTH, LENGTH)

    def ours():
        for head in range(HEADS):
            keep_portable(
                seed=123, site="weights", batch_item=0, head=head, n_queries=LENGTH, n_columns=LENGTH, p=0.1
            )  # fmt: skip

    def peer():
        F.dropout(cells, 0.1)

    with torch.inference_mode():
        taken = interleaved({"ours": ours, "peer": peer}, repeats)
    return [compared("dropout", taken["ours"], taken["peer"], 0.4, "F.dropout")]
