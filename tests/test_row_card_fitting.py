"""What a row card shows of what it holds: lines that stand whole, keys before all else."""

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.views.row_card.fitting import HIGHEST_KEY, KEYS_FIRST, ROOMY, TIGHT, Held, fitting

SIX = Held(keys=6, formula=4, context=2)


def used(fit, held):
    h = fit.heights
    written = fit.formula * h.formula + h.around_formula if fit.formula else 0
    around = h.head + h.titles + held.foot * h.foot + 6 * h.gap + 2 * h.edge
    return fit.keys * h.key + written + fit.context * h.context + fit.more * h.more + around


@given(
    st.integers(150, 2000), st.builds(Held, st.integers(1, 4096), st.integers(1, 9), st.integers(0, 8), st.booleans()),
    st.sampled_from([1.0, 28 / 15, 2.0]),
)  # fmt: skip
def test_what_is_in_sight_fits_and_more_room_shows_no_less(room, held, scale):
    room = round(room * scale)
    fit, larger = fitting(room, held, scale), fitting(room + 40, held, scale)
    assert used(fit, held) <= room
    assert TIGHT.key * scale - 1 <= fit.heights.key <= HIGHEST_KEY * scale + 1
    assert 1 <= fit.keys <= held.keys
    assert (fit.keys, fit.formula, fit.context) <= (larger.keys, larger.formula, larger.context)


def test_lines_get_lower_before_any_is_left_out():
    room = used(fitting(10_000, SIX), SIX)
    roomy = fitting(6 * ROOMY.key + room - 6 * HIGHEST_KEY, SIX)
    assert roomy.heights == ROOMY
    fits = (fitting(least, SIX) for least in range(room, 0, -1))
    *_, last = takewhile(lambda fit: (fit.keys, fit.formula, fit.context) == (6, 4, 2), fits)
    assert last.heights == TIGHT  # all of them are there until the lines are as low as they go
    assert used(last, SIX) < 340  # the card in a window of 1280 x 800, below which a lesson stands


def test_first_the_mix_gives_way_then_the_formula_then_the_keys():
    shown = [(fit.keys, fit.formula, fit.context) for fit in (fitting(room, SIX) for room in range(400, 120, -1))]
    assert shown == sorted(shown, reverse=True)
    assert [*dict.fromkeys(shown)][:8] == [
        (6, 4, 2), (6, 4, 1), (6, 4, 0), (6, 3, 0), (6, 2, 0), (6, 1, 0), (6, 0, 0), (5, 0, 0)
    ]  # fmt: skip


@pytest.mark.parametrize("room", [339, 420, 600])
def test_a_long_row_shows_as_many_keys_as_there_is_room_for(room):
    fit = fitting(room, Held(keys=500, formula=1, context=2))
    assert fit.keys >= KEYS_FIRST
    assert fit.formula == 1
