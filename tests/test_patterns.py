"""Made-up heads look like what their names say, at any length; queries and keys lie where they are asked to lie."""

import errno
import math
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz import inputs
from attnviz.files import FileProblem
from attnviz.inputs import drawn, patterns, storage
from attnviz.spec import Pattern, RandomQK, make_spec

KINDS = ["sink", "local", "previous", "stripes", "topics"]


def weights_of(queries, keys):
    """Causal weights (L, L)."""
    scores = queries @ keys.T / math.sqrt(queries.shape[-1])
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf).softmax(-1)


def share_on_pattern(kind, weights, seed=123, kv_head=0):
    """Mean over the rows that can have it of the weight on the cells that ``kind`` means."""
    length = len(weights)
    place = torch.arange(length)
    behind = place[:, None] - place
    if kind == "sink":
        cells, rows = (place == 0).expand(length, -1), place > 0
    elif kind == "local":
        cells, rows = behind <= 3 * patterns.band_width(length), place >= 0
    elif kind == "previous":
        cells, rows = behind == 1, place > 0
    elif kind == "stripes":
        period = patterns.stripe_period(length, seed, kv_head)
        cells, rows = behind % period == period - 1, place >= period
    else:
        topics = patterns.topics_of(length, seed, kv_head)
        cells, rows = topics[:, None] == topics, place >= 0
    return float((weights * cells).sum(-1)[rows].mean())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [64, 2000])
@pytest.mark.parametrize("seed", [1, 123])
def test_a_pattern_dominates_its_maps(kind, length, seed):
    queries, keys = patterns.pattern_heads(kind, 2, 2, length, 64, seed)
    for head in range(2):
        share = share_on_pattern(kind, weights_of(queries[head], keys[head]), seed, head)
        assert share > {"sink": 0.8, "local": 0.9, "previous": 0.8, "stripes": 0.6, "topics": 0.8}[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [8, 9, 31])
def test_a_pattern_is_there_in_short_texts(kind, length):
    queries, keys = patterns.pattern_heads(kind, 1, 1, length, 64, 123)
    assert share_on_pattern(kind, weights_of(queries[0], keys[0])) > 0.5


@pytest.mark.parametrize("kind", ["sink", "previous"])
def test_a_pattern_dominates_among_a_quarter_of_a_million_keys(kind):
    length = 1 << 18
    queries, keys = patterns.pattern_heads(kind, 1, 1, length, 64, 123)
    rows = torch.arange(length // 2, length, 9973)
    scores = (queries[0, rows] @ keys[0].T / 8).masked_fill(torch.arange(length) > rows[:, None], -math.inf)
    wanted = torch.zeros_like(rows) if kind == "sink" else rows - 1
    assert float(scores.softmax(-1).gather(1, wanted[:, None]).mean()) > 0.6


def test_a_local_band_is_no_single_cell_and_topics_come_back():
    queries, keys = patterns.pattern_heads("local", 1, 1, 2000, 64, 1)
    assert float(weights_of(queries[0], keys[0])[1000:].amax(-1).median()) < 0.3
    topics = patterns.topics_of(2000, 1, 0)
    changes = int((topics.diff() != 0).sum()) + 1
    assert len(topics.unique()) < changes <= 40


def test_mixed_takes_each_kind_in_turn_and_one_at_random():
    queries, keys = patterns.pattern_heads("mixed", 12, 12, 300, 64, 5)
    for head in range(12):
        kind = patterns.kind_of("mixed", head)
        weights = weights_of(queries[head], keys[head])
        if kind == "random":
            assert float(weights[200:].max()) < 0.5
        else:
            assert kind == KINDS[head % 6]
            assert share_on_pattern(kind, weights, 5, head) > 0.5
    one, other = patterns.pattern_heads("mixed", 1, 1, 300, 64, 5), patterns.pattern_heads("sink", 1, 1, 300, 64, 5)
    assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_heads_that_share_keys_may_be_of_several_kinds():
    queries, keys = patterns.pattern_heads("mixed", 6, 1, 257, 64, 7)
    assert keys.shape == (1, 257, 64)
    for head, kind in enumerate(KINDS):
        assert share_on_pattern(kind, weights_of(queries[head], keys[0]), 7, 0) > 0.5
    queries, keys = patterns.pattern_heads("previous", 8, 2, 257, 64, 7)
    for head in range(8):
        assert share_on_pattern("previous", weights_of(queries[head], keys[head // 4]), 7) > 0.5
    assert len(torch.unique(queries, dim=0)) == 8


@pytest.mark.parametrize("kind", [*KINDS, "mixed"])
def test_a_head_depends_on_its_seed_and_number_alone(kind):
    before = torch.get_rng_state()
    few, many = patterns.pattern_heads(kind, 3, 3, 50, 16, 9), patterns.pattern_heads(kind, 8, 8, 50, 16, 9)
    other = patterns.pattern_heads(kind, 3, 3, 50, 16, 10)
    assert torch.equal(torch.get_rng_state(), before)
    for one, more, differs in zip(few, many, other, strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, more[:3])
        assert not any(torch.equal(*pair) for pair in zip(one, differs, strict=True))
    assert not torch.equal(many[0][0], many[0][6])


@settings(max_examples=60)
@given(
    st.sampled_from([*KINDS, "mixed"]), st.integers(1, 4), st.integers(1, 3), st.integers(1, 70), st.integers(1, 9),
    st.integers(0, (1 << 63) - 1),
)  # fmt: skip
def test_every_size_gives_finite_numbers(kind, shared_by, kv_heads, length, d_head, seed):
    queries, keys = patterns.pattern_heads(kind, shared_by * kv_heads, kv_heads, length, d_head, seed)
    assert queries.shape == (shared_by * kv_heads, length, d_head)
    assert keys.shape == (kv_heads, length, d_head)
    assert queries.isfinite().all()
    assert keys.isfinite().all()


def test_the_source_says_that_nothing_was_learnt():
    spec = make_spec(Pattern(length=20, pattern="sink"), num_heads=4, num_kv_heads=2, d_out=32)
    found = inputs.open_source(spec)
    assert found.origin == "made up: a pattern that looks like a trained head's (sink), seed 123; nothing was learnt"
    assert (found.queries.shape, found.keys.shape) == ((4, 20, 8), (2, 20, 8))
    assert found.tokens == tuple(map(str, range(20)))
    assert inputs.count_tokens(spec.source) == (20, 20)


# ------------------------------------------------------------------------------------------------------------- storage

SOURCES = [Pattern(length=33), RandomQK(length=33)]


@pytest.mark.parametrize("source", SOURCES)
def test_a_file_holds_the_same_numbers(source, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    spec = make_spec(source, num_heads=6, num_kv_heads=3)
    one, other = inputs.open_source(spec), inputs.open_source(spec, in_memory=False)
    assert torch.equal(one.queries, other.queries)
    assert torch.equal(one.keys, other.keys)
    assert list(tmp_path.iterdir()) == []  # the files have no names


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bool, torch.uint16])
def test_what_lies_in_a_file_can_be_filled(dtype):
    tensor = storage.empty((3, 5), in_memory=False, dtype=dtype)
    assert (tensor.shape, tensor.dtype) == ((3, 5), dtype)
    tensor.fill_(1)
    assert int(tensor.to(torch.int64).sum()) == 15
    assert storage.empty((3, 0), in_memory=False).shape == (3, 0)


def test_a_full_disk_is_said_before_anything_is_written(monkeypatch):
    def full(*_given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FileProblem, match="no room for a temporary file; make some, or set TMPDIR"):
        storage.empty((10,), in_memory=False)


def peak_over(script):
    """MB of memory that a script's second half needs at most beyond its first."""
    lines = (
        "import sys, torch",
        "from attnviz.inputs import drawn, patterns",
        "from attnviz.spec import make_spec",
        "def peak(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1]) / 1024",
        "patterns.pattern_heads('mixed', 6, 6, 64, 64, 1), drawn.queries_and_keys(1, 64, 64, 1.0, 1)",
        "before = peak()",
        script,
        "print(peak() - before)",
    )
    code = "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "call",
    ["patterns.pattern_heads('mixed', 4, 4, 1 << 17, 64, 1)", "drawn.queries_and_keys(4, 1 << 17, 64, 0.5, 1)"],
)
def test_memory_is_the_result_and_little_more(call):
    result = 2 * 4 * (1 << 17) * 64 * 4 / (1 << 20)
    assert result - 20 < peak_over(f"kept = {call}") < result + 50


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_tokens_need_the_result_and_little_more(kind):
    assert peak_over(f"kept = patterns.pattern_heads({kind!r}, 2, 2, 1 << 20, 64, 1)") < 1024 + 100


# --------------------------------------------------------------------------------------------------------------- drawn


@pytest.mark.parametrize("shape", [(1, 5, 3), (3, 7, 1), (2, 100, 64), (4, 33, 5)])
def test_what_was_drawn_before_is_drawn_still(shape):
    """Bit for bit what one stack of (heads × 2) draws gave."""
    heads, length, d_head = shape
    generator = torch.Generator().manual_seed(42)
    old = torch.stack([torch.randn(length, d_head, generator=generator) for _ in range(2 * heads)])
    old = old.mul_(0.3).view(heads, 2, length, d_head)
    queries, keys = drawn.queries_and_keys(heads, length, d_head, 0.3, 42)
    assert torch.equal(queries, old[:, 0])
    assert torch.equal(keys, old[:, 1])


def test_keys_are_drawn_with_the_first_of_the_heads_that_share_them():
    spec = make_spec(RandomQK(length=5), num_heads=4, num_kv_heads=2, d_out=12, seed=9)
    found = inputs.open_source(spec)
    generator = torch.Generator().manual_seed(9)
    for head in range(4):
        assert torch.equal(found.queries[head], torch.randn(5, 3, generator=generator))
        if head % 2 == 0:
            assert torch.equal(found.keys[head // 2], torch.randn(5, 3, generator=generator))
