import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz.attention import masks
from attnviz.spec import Causal

SIZES = st.integers(1, 300).flatmap(lambda n_keys: st.tuples(st.integers(1, n_keys), st.just(n_keys)))


def test_a_square_mask_hides_the_strict_upper_triangle():
    assert torch.equal(masks.hidden(4, 4), torch.ones(4, 4, dtype=torch.bool).triu(1))


def test_fewer_queries_than_keys_are_the_last_ones():
    hidden = masks.hidden(2, 5)
    assert hidden.tolist() == [[False, False, False, False, True], [False] * 5]


@given(SIZES)
def test_query_i_sees_keys_up_to_i_plus_the_difference(size):
    n_queries, n_keys = size
    seen = (~masks.hidden(n_queries, n_keys)).sum(1)
    assert seen.tolist() == [i + n_keys - n_queries + 1 for i in range(n_queries)]


@given(SIZES, st.sampled_from([-math.inf, 0.0, -1e9]))
def test_filling_by_blocks_is_masked_fill(size, value):
    n_queries, n_keys = size
    hidden = masks.hidden(n_queries, n_keys)
    cells = torch.arange(2.0 * n_queries * n_keys).view(2, n_queries, n_keys)
    expected = cells.masked_fill(hidden, value)
    assert torch.equal(masks.shaped(Causal(), n_queries, n_keys).fill(cells, value), expected)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_hidden_cell_takes_the_fill_whatever_it_held(value):
    cells = torch.full((200, 200), value)
    filled = masks.shaped(Causal(), 200, 200).fill(cells, -math.inf)
    assert (filled[masks.hidden(200, 200)] == -math.inf).all()
