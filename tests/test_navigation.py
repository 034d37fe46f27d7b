"""The arithmetic of the window: it stays in the map, a zoom keeps the place under the pointer, cells are exact."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from attnviz.figure.layout import Box
from attnviz.frames import level_for
from attnviz.session import Window
from attnviz.views import navigation as nav

FAR = 1 << 20
counts = st.integers(1, FAR)
shapes = st.tuples(counts, counts)
panels = st.tuples(st.integers(40, 4000), st.integers(40, 4000))


@st.composite
def placed(draw):
    """A map and a window that lies in it."""
    shape = draw(shapes)
    spans = []
    for count in shape:
        length = draw(st.floats(min(2, count), count))
        first = draw(st.floats(0, 1)) * (count - length)
        spans += [first, first + length]
    return shape, nav.clamped(Window(*spans), shape)


def inside(window, shape):
    for first, last, count in (window.top, window.bottom, shape[0]), (window.left, window.right, shape[1]):
        assert 0 <= first < last <= count
        assert last - first >= min(2, count) * (1 - 1e-9)
    return True


# ------------------------------------------------------------------------------------------------------ in the map


@given(placed(), st.floats(1e-7, 1e7), st.floats(-2, 3), st.floats(-2, 3))
def test_no_zoom_leaves_the_map(given_, factor, row, col):
    shape, window = given_
    assert inside(nav.zoomed(window, shape, factor, (row * shape[0], col * shape[1])), shape)


@given(placed(), st.floats(-2e6, 2e6), st.floats(-2e6, 2e6))
def test_no_pan_leaves_the_map_or_changes_the_zoom(given_, rows, cols):
    shape, window = given_
    moved = nav.panned(window, shape, rows, cols)
    assert inside(moved, shape)
    assert moved.bottom - moved.top == pytest.approx(window.bottom - window.top, abs=1e-6)
    assert moved.right - moved.left == pytest.approx(window.right - window.left, abs=1e-6)


@given(shapes, st.tuples(*[st.floats(-2e6, 3e6)] * 4))
def test_whatever_is_clamped_lies_in_the_map_and_stays_there(shape, edges):
    window = Window(min(edges[:2]), max(edges[:2]), min(edges[2:]), max(edges[2:]))
    once = nav.clamped(window, shape)
    assert inside(once, shape)
    assert nav.clamped(once, shape) == once


@given(placed(), st.floats(0.1, 10), st.floats(0, 1), st.floats(0, 1))
def test_what_a_zoom_or_a_pan_gives_is_not_changed_again(given_, factor, down, across):
    shape, window = given_
    place = down * shape[0], across * shape[1]
    for moved in (nav.zoomed(window, shape, factor, place), nav.panned(window, shape, *place)):
        assert nav.clamped(moved, shape) == moved


@given(placed())
def test_zooming_out_far_shows_the_whole_map(given_):
    shape, window = given_
    out = nav.zoomed(window, shape, 1e7, (window.top, window.left))
    assert nav.is_whole(out, shape)
    assert nav.is_whole(nav.whole(shape), shape)


@given(placed(), st.floats(0.05, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_place_under_the_pointer_stays_while_nothing_stops_it(given_, factor, down, across):
    shape, window = given_
    height, width = window.bottom - window.top, window.right - window.left
    assume(min(height, width) * factor >= 2)
    about = window.top + down * height, window.left + across * width
    rect = Box(13, 7, 640, 480)
    before = nav.point_at(window, rect, *about)
    after = nav.point_at(nav.zoomed(window, shape, factor, about), rect, *about)
    assert after == pytest.approx(before, abs=1e-3)


@given(placed(), st.floats(0.2, 0.9))
def test_in_and_out_again_comes_back(given_, factor):
    shape, window = given_
    assume(min(window.bottom - window.top, window.right - window.left) * factor >= 2)
    about = (window.top + window.bottom) / 2, (window.left + window.right) / 2
    there = nav.zoomed(window, shape, factor, about)
    back = nav.zoomed(there, shape, 1 / factor, about)
    for edge in ("top", "bottom", "left", "right"):
        assert getattr(back, edge) == pytest.approx(getattr(window, edge), abs=1e-6 * max(shape))


@given(placed(), counts, counts, panels)
def test_going_to_a_cell_shows_it_at_one_to_one_or_closer(given_, row, col, pixels):
    shape, window = given_
    row, col = row % shape[0], col % shape[1]
    there = nav.close_to(window, shape, (row + 0.5, col + 0.5), pixels)
    assert inside(there, shape)
    assert there.top <= row + 0.5 <= there.bottom
    assert there.left <= col + 0.5 <= there.right
    assert there.bottom - there.top <= min(pixels[0], window.bottom - window.top) + 1e-6
    assert there.right - there.left <= min(pixels[1], window.right - window.left) + 1e-6


def test_a_range_of_cells_fits_whole():
    assert nav.fitted((10, 20), None, (100, 50)) == Window(10, 20, 0, 50)
    assert nav.fitted(None, (90, 400), (100, 50)) == Window(0, 100, 0, 50)
    assert nav.fitted((7, 8), (0, 50), (100, 50)) == Window(6.5, 8.5, 0, 50)
    assert nav.fitted(None, None, (1, 1)) == nav.whole((1, 1))


# ---------------------------------------------------------------------------------------------------------- pixels


@given(st.integers(FAR - 4000, FAR - 1), st.integers(FAR - 4000, FAR - 1), st.integers(2, 2000), panels)
def test_every_pixel_of_a_cell_is_in_the_cell_a_million_columns_out(row, col, length, pixels):
    rect = Box(31.0, 17.0, float(pixels[1]), float(pixels[0]))
    shape = FAR, FAR
    window = nav.centred(Window(0.0, float(length), 0.0, float(length)), shape, (row + 0.5, col + 0.5))
    left, top = nav.point_at(window, rect, row, col)
    right, bottom = nav.point_at(window, rect, row + 1, col + 1)
    edge = 1e-5  # pixels: a window of four thousand cells a million out is known to 1e-10 cells
    for x, y in [((left + right) / 2, (top + bottom) / 2), (left + edge, top + edge), (right - edge, bottom - edge)]:
        assert nav.cell_under(window, rect, shape, x, y) == (row, col)
    step = rect.width / length
    assert right - left == pytest.approx(step, rel=1e-6, abs=1e-6)


def test_beside_the_map_there_is_no_cell():
    rect = Box(10, 10, 100, 100)
    assert nav.cell_under(nav.whole((4, 4)), rect, (4, 4), 9, 50) is None
    assert nav.cell_under(nav.whole((4, 4)), rect, (4, 4), 110, 50) is None
    assert nav.cell_under(nav.whole((4, 4)), rect, (4, 4), 109.9, 10) == (0, 3)


# ------------------------------------------------------------------------------------------------------- asking for


@given(placed(), panels)
def test_what_is_asked_for_covers_the_window_in_whole_bins_and_is_no_coarser_than_the_panel(given_, pixels):
    shape, window = given_
    rows, cols, wanted = nav.asked(window, shape, pixels)
    level = nav.level_of(window, pixels)
    (first_row, end_row), (first_col, end_col) = rows or (0, shape[0]), cols or (0, shape[1])
    assert first_row <= window.top
    assert window.bottom <= end_row <= shape[0]
    assert first_col <= window.left
    assert window.right <= end_col <= shape[1]
    if rows is not None:
        assert first_row % level == 0
        assert first_col % level == 0
        assert end_row % level == 0 or end_row == shape[0]
        assert level_for(end_row - first_row, wanted[0]) <= level
        assert level_for(end_col - first_col, wanted[1]) <= level
        assert nav.serves(rows, cols, window, shape)


def test_a_whole_map_and_a_map_with_a_pixel_a_cell_are_asked_for_whole():
    assert nav.asked(nav.whole((6, 6)), (6, 6), (600, 600)) == (None, None, (576, 576))
    assert nav.asked(Window(0, 3, 0, 3), (6, 6), (600, 600)) == (None, None, (576, 576))
    rows, cols, pixels = nav.asked(nav.whole((600, 600)), (600, 600), (600, 600))
    assert (rows, cols, pixels) == (None, None, (600, 600))  # in steps alone a pixel would be four cells


def test_a_small_pan_asks_for_nothing_and_a_large_one_does():
    shape, pixels = (4096, 4096), (512, 512)
    window = Window(1000, 1512, 1000, 1512)
    rows, cols, _ = nav.asked(window, shape, pixels)
    assert nav.serves(rows, cols, nav.panned(window, shape, 20, -20), shape)
    assert not nav.serves(rows, cols, nav.panned(window, shape, 0, 60), shape)
    edge = Window(0, 512, 0, 512)
    rows, cols, _ = nav.asked(edge, shape, pixels)
    assert nav.serves(rows, cols, edge, shape)


@given(
    top=st.floats(0, 900), left=st.floats(0, 900), length=st.floats(2, 100), row=st.integers(0, 999),
    col=st.integers(0, 999),
)  # fmt: skip
def test_a_window_follows_a_cell_no_further_than_it_must(top, left, length, row, col):
    window = Window(top, top + length, left, left + length)
    moved = nav.following(window, (1000, 1000), (row, col))
    assert moved.top <= row + 1e-9
    assert row + 1 <= moved.bottom + 1e-9
    assert moved.left <= col + 1e-9
    assert col + 1 <= moved.right + 1e-9
    assert moved.bottom - moved.top == pytest.approx(length)
    if window.top <= row and row + 1 <= window.bottom:
        assert (moved.top, moved.bottom) == (window.top, window.bottom)
    else:
        assert abs(moved.top - window.top) <= abs(row - window.top) + 1 + length
