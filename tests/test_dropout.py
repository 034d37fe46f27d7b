import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import dropout

# (dropout seed, site, batch item, head, query, column) → the 32 bits that are compared with round(p · 2³²)
PUBLISHED = {
    (0, "weights", 0, 0, 0, 0): 0x27849CBD,
    (123, "weights", 0, 0, 0, 0): 0xDF742DCA,
    (123, "weights", 0, 0, 0, 1): 0x40D802D5,
    (123, "weights", 0, 0, 1, 0): 0x267E9AC7,
    (123, "weights", 0, 1, 0, 0): 0x689AA624,
    (123, "weights", 1, 0, 0, 0): 0xCC924E19,
    (123, "context", 0, 0, 0, 0): 0x0D891141,
    ((1 << 63) - 1, "context", 7, 1023, 1048575, 1048575): 0x42C68A9A,
    (14, "weights", 0, 0, 0, 1): 0x49DDCC1C,
}
ALL_64 = (1 << 64) - 1


def mix(x):
    x &= ALL_64
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & ALL_64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & ALL_64
    return x ^ (x >> 31)


def bits(seed, site, item, head, query, column):
    key = 0
    for part in (seed, {"weights": 0, "context": 1}[site], item, head, query, column):
        key = mix(key ^ mix(part + 0x9E3779B97F4A7C15))
    return key >> 32


def keep(seed=1, site="weights", item=0, head=0, size=(64, 64), p=0.5, rows=None, cols=None):
    return dropout.keep_portable(
        seed=seed, site=site, batch_item=item, head=head, n_queries=size[0], n_columns=size[1], p=p, rows=rows,
        cols=cols, device="cpu",
    )  # fmt: skip


def correlation(first, second):
    both = torch.stack([first.flatten(), second.flatten()]).double()
    return float(torch.corrcoef(both)[0, 1])


def assert_uncorrelated(first, second):
    assert abs(correlation(first, second)) < 5 / first.numel() ** 0.5  # five standard deviations


# ------------------------------------------------------------------------------------------------------ test vectors


def test_the_finaliser_is_splitmix64s():
    assert mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # its first output for seed 0, as published elsewhere


@pytest.mark.parametrize(("cell", "expected"), PUBLISHED.items())
def test_published_vectors(cell, expected):
    assert bits(*cell) == expected
    seed, site, item, head, query, column = cell
    one = {"rows": (query, query + 1), "cols": (column, column + 1), "size": (query + 1, column + 1)}
    assert keep(seed, site, item, head, p=expected / 2**32, **one).item() is True
    assert keep(seed, site, item, head, p=(expected + 1) / 2**32, **one).item() is False


@given(
    st.integers(0, (1 << 63) - 1), st.sampled_from(["weights", "context"]), st.integers(0, 4095), st.integers(0, 1023),
    st.integers(0, 1 << 20), st.integers(0, 1 << 20), st.floats(0, 1, exclude_max=True),
)  # fmt: skip
def test_torch_and_plain_integers_agree(seed, site, item, head, query, column, p):
    tile = keep(seed, site, item, head, (query + 2, column + 3), p, (query, query + 2), (column, column + 3))
    expected = [
        [bits(seed, site, item, head, q, c) >= round(p * 2**32) for c in range(column, column + 3)]
        for q in range(query, query + 2)
    ]
    assert tile.tolist() == expected


@settings(max_examples=20)
@given(st.data())
def test_any_tile_has_the_bits_of_the_whole(data):
    size = (301, 257)
    top, bottom = sorted(data.draw(st.tuples(st.integers(0, 301), st.integers(0, 301))))
    left, right = sorted(data.draw(st.tuples(st.integers(0, 257), st.integers(0, 257))))
    tile = keep(size=size, rows=(top, bottom), cols=(left, right))
    assert torch.equal(tile, keep(size=size)[top:bottom, left:right])


def test_a_tile_outside_the_map_is_refused():
    with pytest.raises(ValueError, match="64 × 64"):
        keep(rows=(60, 65))


# -------------------------------------------------------------------------------------------------------- statistics


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_keep_rate_of_the_whole_of_rows_and_of_columns(p):
    kept = keep(size=(512, 512), p=p).double()
    spread = (p * (1 - p)) ** 0.5
    assert abs(float(kept.mean()) - (1 - p)) < 5 * spread / 512
    for dim in (0, 1):
        means = kept.mean(dim)
        assert float((means - (1 - p)).abs().max()) < 5 * spread / 512**0.5
        assert 0.8 < float(means.std()) / (spread / 512**0.5) < 1.2


@pytest.mark.parametrize("shift", [(0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0), (0, 64), (64, 0)])
def test_neighbours_are_uncorrelated(shift):
    kept = keep(size=(600, 600))
    down, right = shift
    here = kept[: 600 - down, max(-right, 0) : 600 - max(right, 0)]
    there = kept[down:, max(right, 0) : 600 + min(right, 0)]
    assert_uncorrelated(here, there)


def test_a_shift_that_repeats_a_hash_of_a_linear_combination_repeats_nothing_here():
    size = (131_072, 131_072)
    for top, left in ((0, 0), (5_000, 77_000), (101_000, 31_000)):
        here = keep(size=size, rows=(top, top + 256), cols=(left, left + 256))
        down, right = top + 29_758, left + 19_566
        there = keep(size=size, rows=(down, down + 256), cols=(right, right + 256))
        assert_uncorrelated(here, there)


def test_no_four_corners_of_a_rectangle_determine_each_other():
    kept = keep(size=(512, 512)).long()
    parity = kept[::2, ::2] ^ kept[1::2, ::2] ^ kept[::2, 1::2] ^ kept[1::2, 1::2]
    assert abs(float(parity.double().mean()) - 0.5) < 5 * 0.5 / 256


@pytest.mark.parametrize(
    "change", [{"head": 1}, {"head": 5}, {"seed": 2}, {"seed": 1 << 62}, {"item": 1}, {"site": "context"}]
)
def test_heads_seeds_items_and_sites_are_uncorrelated(change):
    assert_uncorrelated(keep(size=(512, 512)), keep(size=(512, 512), **change))


def test_a_head_and_a_batch_item_are_not_the_same_thing():
    assert not torch.equal(keep(item=1, head=0), keep(item=0, head=1))
    assert not torch.equal(keep(item=1, head=2), keep(item=2, head=1))


def test_transposing_is_another_map():
    assert_uncorrelated(keep(size=(512, 512)), keep(size=(512, 512)).T)


@pytest.mark.parametrize(("p", "rate"), [(0.0, 1.0), (1 - 2**-40, 0.0)])
def test_the_ends_of_the_range(p, rate):
    assert float(keep(p=p).double().mean()) == rate


# --------------------------------------------------------------------------------------------------- torch's generator


def test_torchs_draw_is_what_nn_dropout_drops():
    torch.manual_seed(5)
    dropped = torch.nn.Dropout(0.3)(torch.ones(2, 7, 9))
    kept = dropout.keep_torch((2, 7, 9), p=0.3, generator=torch.Generator().manual_seed(5))
    assert torch.equal(kept, dropped != 0)


def test_a_head_alone_has_the_bits_it_has_in_the_sequence():
    generator = torch.Generator().manual_seed(9)
    sequence = [dropout.keep_torch((2, 5, 5), p=0.5, generator=generator) for _ in range(4)]
    for order in ([0, 1, 2, 3], [3], [2, 0, 3, 3, 1]):
        draws = dropout.TorchDraws(9, (2, 5, 5), 0.5)
        for head in order:
            assert torch.equal(draws.keep(head), sequence[head])
    assert not torch.equal(sequence[0], sequence[1])


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    keep()
    dropout.torch_draws(3, (4, 4), 0.5).keep(2)
    assert torch.equal(torch.get_rng_state(), before)
