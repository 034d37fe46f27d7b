"""Maps in tiles, without a window: the exact pass, its memory, the first picture, and a tile at full size."""

import random
import statistics
import time

import torch
import torch.nn.functional as F  # noqa: N812 (the name everyone reads it by)

from attnviz.attention import masks
from attnviz.attention.longmaps import HeadMap, Known
from attnviz.attention.pooling import Region
from attnviz.attention.tiles import LOG2E, Workspace
from attnviz.engine import Engine, tiling
from attnviz.engine.crew import Crew
from attnviz.frames import Finished, Frame, Outline
from attnviz.inputs import open_source
from attnviz.spec import Causal, RandomQK, Request, View, Viewport, edited, make_spec
from tests.benchmarks.arms import CORES, Peak, compared, in_own_process, interleaved, ratio_line

HEADS, PIXELS = 12, 512
NEVER = 1 << 62
_TILES = 40


def spec_of(length, heads=HEADS):
    return make_spec(RandomQK(length=length), num_heads=heads, d_out=64 * heads)


class Maps:
    """Heads of one length and their queries and keys, of which nothing is known before `exact_pass`."""

    def __init__(self, length, heads=HEADS):
        self.spec, self.length = spec_of(length, heads), length
        self.given = open_source(self.spec)
        self.mask = masks.shaped(Causal(), length, length)

    def fresh(self):
        cpu = torch.device("cpu")
        return [
            HeadMap(
                self.spec, "weights", head, self.given.queries[head], self.given.keys[head], self.mask,
                Known.nothing(self.length, torch.float32, cpu, softmax_first=False),
            )
            for head in range(self.spec.num_heads)
        ]  # fmt: skip

    def exact_pass(self, crew):
        """Every row's denominator and both overviews of 512 pixels, as the engine has them; no previews before."""
        torch.set_num_threads(1)  # of this thread, as `LongMaps` does: the crew computes
        level, shape = max(self.length // PIXELS, 1), (self.length, self.length)
        previews, tiling._PREVIEW_FROM = tiling._PREVIEW_FROM, NEVER
        try:
            maps = tiling.Tiling(self.fresh(), per_row=False, budget_bytes=1 << 30)
            region = Region((0, shape[0]), (0, shape[1]), level)
            for _ in maps.compute(region, range(self.spec.num_heads), crew, lambda: False):
                pass
        finally:
            tiling._PREVIEW_FROM = previews
        return maps


def _exact(goal, length, repeats, limit):
    with torch.inference_mode():
        maps, crew = Maps(length), Crew(CORES)
        q, k = maps.given.queries[None], maps.given.keys[None]

        def sdpa():
            torch.set_num_threads(CORES)
            F.scaled_dot_product_attention(q, k, q, is_causal=True)

        Maps(2048).exact_pass(crew)  # warms up: a round of these lengths would take as long as it is measured
        taken = interleaved({"ours": lambda: maps.exact_pass(crew) and None, "sdpa": sdpa}, repeats, warm=False)
        crew.close()
    return [compared(goal, taken["ours"], taken["sdpa"], limit, "scaled_dot_product_attention", repeats=repeats)]


def exact_16k(repeats):
    """The exact pass over 12 heads of 16,384 tokens, causal, d_head 64, beside attention on the same queries and keys.

    Ours: `Tiling.compute` of the whole map on a crew of all cores, from nothing known to log-sum-exps, max and mean.
    Peer: `scaled_dot_product_attention` with ``is_causal``, values the queries, all cores, which gives no picture.
    """
    return _exact("exact-16k", 16_384, repeats, 0.85)


def exact_32k(repeats):
    """The same at 32,768 tokens, where a pass takes ten seconds: at most three of each."""
    return _exact("exact-32k", 32_768, min(repeats, 3), 0.75)


def exact_memory(_repeats):
    """The most that the exact pass over 12 × 16,384 takes beyond queries and keys, beside the full matrices' bytes.

    A pass over a small map has loaded the kernels. Tiles, denominators and every thread's buffers count. One process.
    """
    length = 16_384
    extra = in_own_process(pass_peak, length, HEADS)
    whole = HEADS * length**2 * 4
    return [ratio_line("exact-memory", (extra / 1e6, whole / 1e6), 0.01, "the full matrices", unit="MB")]


def pass_peak(length, heads):
    with torch.inference_mode():
        crew = Crew(CORES)
        Maps(1024, heads).exact_pass(crew)
        maps = Maps(length, heads)
        with Peak() as peak:
            maps.exact_pass(crew)
        crew.close()
    return peak.extra


# ------------------------------------------------------------------------------------------------------ first picture


def first_and_last(engine, spec, *, to_the_end):
    """Seconds from `Engine.stream` to a frame of every head, and to the exact picture (None unless ``to_the_end``)."""
    request = Request(spec=spec, view=View(), viewport=Viewport(pixels=(PIXELS, PIXELS)), generation=1)
    came, first, last = set(), None, None
    start = time.perf_counter()
    stream = engine.stream(request)
    for message in stream:
        if isinstance(message, Frame):
            came.add(message.panel)
            if first is None and len(came) == spec.num_heads:
                first = time.perf_counter() - start
                if not to_the_end:
                    break
        elif isinstance(message, Finished):
            last = time.perf_counter() - start
            break
    stream.close()
    return first, last


def open_vectors(engine, spec):
    """Let the engine draw the spec's queries and keys, and no more."""
    request = Request(spec=spec, view=View(), viewport=Viewport(), generation=1)
    stream = engine.stream(request)
    for message in stream:
        if isinstance(message, Outline):
            break
    stream.close()


def first_picture(repeats):
    """The first whole picture of 12 × 32,768, beside the exact picture of the same engine.

    From `Engine.stream` to the first frame (a preview of 512 pixels a side) of the last head; the scale is another
    each time, so that nothing is known but queries and keys. Ours: as many streams as repeats, abandoned there.
    Peer: streams to the end, three at most, previews included, from which the first picture is taken too.
    """
    engine, spec = Engine(), spec_of(32_768)
    scales = iter(range(1000))

    def another():
        return edited(spec, scale=0.125 + next(scales) / 1000)

    open_vectors(engine, spec)
    whole = [first_and_last(engine, another(), to_the_end=True) for _ in range(min(repeats, 3))]
    firsts = [first for first, _ in whole]
    while len(firsts) < repeats:
        time.sleep(0.3)
        firsts.append(first_and_last(engine, another(), to_the_end=False)[0])
    engine.close()
    return [compared("first-picture", firsts, [last for _, last in whole], 0.05, "the exact picture")]


# --------------------------------------------------------------------------------------------------------------- a tile


def tile(repeats):
    """A tile of 512 × 512 cells at 1:1 of 32,768 tokens, rows known, beside its bare product and exponential.

    Ours: `HeadMap.bins` of two blocks of 256 rows at level 1, which gives weights and classes. Peer: one product into
    a kept buffer, minus the log-sum-exps, exp2 in place. Forty tiles at random places below the diagonal in a row,
    the same for both, one torch thread.
    """
    torch.set_num_threads(1)
    with torch.inference_mode():
        maps = Maps(32_768, 1)
        one, space = maps.fresh()[0], Workspace()
        top, side = 24_576, 512
        rows = [range(first, first + 256) for first in (top, top + 256)]
        for block in rows:
            one.know(block, 64, space, lambda: False)
        chosen = random.Random(0)  # noqa: S311 (places, not secrets)
        lefts = [chosen.randrange(0, top - side) for _ in range(_TILES)]
        q, k, buffer = one.queries, one.keys, torch.empty(side, side)
        lse, scale = one.known.visible.lse[top : top + side], LOG2E / 8

        def ours():
            for left in lefts:
                for block in rows:
                    one.bins(block, (left, left + side), 1, space, lambda: False)

        def bare():
            for left in lefts:
                product = torch.mm(k[left : left + side], (q[top : top + side] * scale).t(), out=buffer)
                torch.exp2_(product.sub_(lse))

        taken = interleaved({"ours": ours, "bare": bare}, repeats)
    each = {arm: statistics.median(seconds) / _TILES for arm, seconds in taken.items()}
    return [compared("tile", each["ours"], each["bare"], 1.3, "mm and exp2")]
