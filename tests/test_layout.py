import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.figure.labels import Labels, are_numbers, axis_labels, label_step, text_ems, widest_ems
from attnviz.figure.layout import (
    Box,
    Subject,
    clipped,
    figure_layout,
    map_shape,
    map_size,
    panel_layout,
    screen_layout,
    subject_of,
)
from attnviz.figure.panels import COS, SIN
from attnviz.figure.paper_layout import SheetWords, paper_layout
from attnviz.frames import Outline, StageShape

SIZES = [(1280, 800), (1920, 1080), (3840, 2160), (800, 1200), (560, 480)]
SHAPES = {
    "cat-eats-fish": Subject(3, 3, 1.0, 1.0, sums=True, titled=False),
    "journey": Subject(6, 6, 4.0, 4.0, sums=True),
    "long": Subject(1024, 1024, 2.4, 2.4, sums=True),
    "values": Subject(6, 2, 4.0, 0.6),
    "wide values": Subject(1024, 64, 2.4, 1.2),
    "one row": Subject(1, 4, 0.6, 0.6, sums=True),
    "row sums": Subject(6, 1, 4.0, 0.6),
    "fewer queries": Subject(2, 9, 5.0, 5.0, sums=True),
    "window": Subject(40, 1000, 4.0, 4.0, sums=True, square=True),
    "high window": Subject(1000, 7, 4.0, 4.0, sums=True, square=True),
}


def check(plan, size):
    sheet = Box(0, 0, *size)
    for box in plan.boxes:
        assert sheet.holds(box), box
        assert box.width >= 0
        assert box.height >= 0
    for one, other in itertools.combinations(plan.boxes, 2):
        assert not one.overlaps(other), (one, other)


@pytest.mark.parametrize("subject", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("n_panels", [1, 2, 6, 12, 25])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_nothing_overlaps_and_nothing_is_cut(subject, n_panels, size):
    unit = max(min(size[0] / 1600, size[1] / 1000), 0.5)
    check(figure_layout(subject, n_panels, size), size)
    check(figure_layout(subject, n_panels, size, unit=unit, margin=32 * unit, captions=2), size)
    for printed in (False, True):
        check(paper_layout(subject, n_panels, size, unit, SheetWords(captions=2), printed=printed), size)
    if n_panels > 1:
        check(figure_layout(subject, n_panels, size, large_first=True), size)


@given(
    rows=st.integers(1, 3000),
    cols=st.integers(1, 3000),
    row_ems=st.floats(0.5, 9),
    column_ems=st.floats(0.5, 9),
    sums=st.booleans(),
    titled=st.booleans(),
    square=st.booleans(),
    numbered=st.booleans(),
    n_panels=st.integers(1, 30),
    size=st.tuples(st.integers(420, 4000), st.integers(340, 3000)),
    large_first=st.booleans(),
)
def test_nothing_overlaps_whatever_is_drawn(
    rows, cols, row_ems, column_ems, sums, titled, square, numbered, n_panels, size, large_first
):
    subject = Subject(
        rows, cols, row_ems, column_ems, sums=sums, titled=titled, square=square, numbered=numbered
    )  # fmt: skip
    check(figure_layout(subject, n_panels, size, large_first=large_first), size)


@given(
    subject=st.builds(
        Subject, st.integers(1, 3000), st.integers(1, 3000), st.floats(0.5, 9), st.floats(0.5, 9), sums=st.booleans(),
        titled=st.booleans(), square=st.booleans(), numbered=st.booleans(),
    ),
    words=st.builds(
        SheetWords, st.booleans(), st.integers(0, 2), st.integers(0, 4), st.booleans(), st.booleans(), st.booleans(),
        st.booleans(),
    ),
    n_panels=st.integers(1, 30), size=st.tuples(st.integers(640, 4000), st.integers(480, 3000)), printed=st.booleans(),
)  # fmt: skip
def test_nothing_overlaps_on_paper_whatever_is_drawn(subject, words, n_panels, size, printed):
    unit = max(min(size[0] / 1120, size[1] / 700), 0.5)
    check(paper_layout(subject, n_panels, size, unit, words, printed=printed), size)


@given(
    room=st.tuples(st.floats(1, 3000), st.floats(1, 3000)),
    shape=st.tuples(st.integers(1, 2000), st.integers(1, 2000)),
)
def test_maps_fit_and_their_cells_are_not_stretched(room, shape):
    width, height = map_size(room, shape)
    assert 1 <= width <= max(room[0], 1) + 1e-5
    assert 1 <= height <= max(room[1], 1) + 1e-5
    cell_w, cell_h = width / shape[1], height / shape[0]
    if min(cell_w, cell_h) >= 4:
        assert cell_w == int(cell_w)
        assert cell_h == int(cell_h)
        assert 1 / 3.8 <= cell_w / cell_h <= 3.8  # three to one before cells become whole pixels


@given(
    room=st.tuples(st.floats(20, 3000), st.floats(20, 3000)),
    shape=st.tuples(st.integers(1, 2000), st.integers(1, 2000)),
)
def test_cells_that_are_to_be_square_are(room, shape):
    width, height = map_size(room, shape, square=True)
    rounding = 2 / shape[1] + 2 / shape[0]  # whole pixels, and last bins that are not full
    assert abs(width / shape[1] - height / shape[0]) <= rounding


def test_square_maps_have_square_cells():
    for side, n in itertools.product((100, 333, 1000), (1, 3, 6, 12, 64)):
        width, height = map_size((side, side * 1.7), (n, n))
        assert width == height


def test_pixels_of_a_long_map_are_whole_pixels():
    assert map_size((600, 600), (1024, 1024)) == (512, 512)
    assert map_size((290, 420), (1024, 1024)) == (256, 256)
    assert map_size((1009, 1009), (1009, 1009)) == (1009, 1009)


def test_the_first_lesson_has_large_cells():
    plan = figure_layout(SHAPES["cat-eats-fish"], 1, (590, 560))
    assert plan.panels[0].map_rect.width / 3 >= 96


def test_the_grid_that_makes_maps_largest_is_taken():
    plan = figure_layout(SHAPES["long"], 12, (1920, 1080))
    assert len({panel.map_rect.y for panel in plan.panels}) == 3
    assert len({panel.map_rect.x for panel in plan.panels}) == 4


def test_a_large_grid_is_labelled_along_its_edges():
    panels = figure_layout(SHAPES["journey"], 12, (900, 560)).panels
    left, top = min(panel.map_rect.x for panel in panels), min(panel.map_rect.y for panel in panels)
    assert {panel.map_rect.x for panel in panels if panel.row_labels} == {left}
    assert {panel.map_rect.y for panel in panels if panel.column_labels} == {top}
    assert all((panel.row_labels is not None) == (panel.map_rect.x == left) for panel in panels)
    assert all((panel.column_labels is not None) == (panel.map_rect.y == top) for panel in panels)
    for panel in panels:
        if panel.column_labels:
            assert panel.title.bottom <= panel.column_labels.y  # the names stand at the map


def test_three_heads_are_not_much_smaller_than_two():
    two, three = (figure_layout(SHAPES["journey"], n, (920, 580)).panels[0].map_rect.width for n in (2, 3))
    assert three >= 0.6 * two
    assert all(panel.sums for panel in figure_layout(SHAPES["journey"], 3, (920, 580)).panels)


def test_many_tiny_maps_have_no_labels():
    assert not any(panel.row_labels for panel in figure_layout(SHAPES["journey"], 144, (900, 560)).panels)


def test_the_others_stand_below_a_large_map_in_a_high_card():
    high = figure_layout(SHAPES["journey"], 3, (450, 590), large_first=True).panels
    wide = figure_layout(SHAPES["journey"], 3, (900, 590), large_first=True).panels
    assert high[1].map_rect.y > high[0].map_rect.bottom
    assert wide[1].map_rect.x > wide[0].map_rect.right
    assert high[0].map_rect.width >= 200


def test_a_thin_map_of_many_rows_is_wide_enough_to_be_seen():
    assert map_size((600, 460), (32_768, 64))[0] == 96
    assert map_size((40, 460), (32_768, 64))[0] <= 40


def test_a_bare_map_fills_the_room():
    plan = screen_layout(outline("weights", (1, 3, 3)), 1, (600, 560), unit=2.3, bare=True)
    assert plan.captions == ()
    assert plan.bar.width == plan.legend.width == 0
    assert plan.panels[0].label_px >= 12 * 2.3
    assert plan.panels[0].map_rect.height >= 390
    assert Box(0, 0, 600, 560).holds(plan.panels[0].outer)


def test_labels_give_way_where_they_would_take_the_maps_place():
    panels = figure_layout(Subject(14, 14, 7.0, 7.0, sums=True), 2, (420, 340)).panels
    assert panels[0].row_labels is None
    assert panels[0].map_rect.width >= 98


def test_words_wider_than_their_column_are_slanted_and_numbers_are_thinned_out():
    outer = Box(0, 0, 500, 500)
    assert panel_layout(outer, Subject(12, 12, 7.0, 7.0)).slanted
    assert not panel_layout(outer, Subject(6, 6, 1.0, 1.0)).slanted
    assert not panel_layout(outer, Subject(1024, 1024, 2.4, 2.4)).slanted
    assert not panel_layout(outer, Subject(131_072, 131_072, 3.6, 3.6, numbered=True)).slanted


def test_slanted_words_keep_their_feet_off_the_map():
    panel = panel_layout(Box(0, 0, 500, 500), Subject(12, 12, 7.0, 7.0))
    assert panel.column_labels.bottom <= panel.map_rect.y - 0.19 * panel.label_px
    level = panel_layout(Box(0, 0, 500, 500), Subject(6, 6, 1.0, 1.0))
    assert level.column_labels.bottom == level.map_rect.y


def _leaning(sizes, counts):
    """Sizes and numbers of cells at which slanted words stand beside sums."""
    for size in sizes:
        for n in counts:
            panel = panel_layout(Box(0, 0, size, size), Subject(n, n, 4.0, 4.0, sums=True))
            if panel.slanted and panel.sums is not None:
                yield size, n


@pytest.mark.parametrize(("size", "n"), [*_leaning((300, 500, 900), (6, 10, 20))])
@pytest.mark.parametrize("unit", [1.0, 2.3])
def test_below_slanted_words_the_sums_keep_their_heading_over_them(size, unit, n):
    panel = panel_layout(Box(0, 0, size * unit, size * unit), Subject(n, n, 4.0, 4.0, sums=True), unit=unit)
    assert panel.slanted
    header = panel.sums_header
    assert header.bottom == panel.map_rect.y
    assert panel.sums.x <= header.x < panel.sums.right - 8 * unit
    assert header.height >= 12 * unit
    # the last label's line rises from the middle of its cell, above the heading's upper left corner
    away = header.x - (panel.map_rect.right - panel.map_rect.width / n / 2)
    assert away * SIN / COS >= header.height - 0.2 * panel.label_px


def test_many_low_wide_maps_still_say_which_head_they_are():
    plan = figure_layout(Subject(40, 1024, 3.0, 3.0, square=True), 12, (1280, 800))
    assert all(panel.title is not None for panel in plan.panels)


def test_low_rows_have_no_sums():
    assert panel_layout(Box(0, 0, 600, 600), SHAPES["journey"]).sums is not None
    assert panel_layout(Box(0, 0, 600, 600), SHAPES["long"]).sums is None


@given(st.floats(0.01, 200), st.floats(1, 200))
def test_a_step_is_wide_enough_and_the_one_before_is_not(cell, least):
    step = label_step(cell, least)
    assert step * cell >= least
    if step > 1:
        before = step // 2 if str(step)[0] in "12" else step * 2 // 5
        assert before * cell < least


def outline(stage, shape, tokens=("猫", "吃", "鱼"), n_queries=3, dims=()):
    return Outline(
        1, stage, tokens, n_queries, len(tokens), dims, "worked by hand", (StageShape(stage, shape),), (), ("head:0",),
        has_future=True, future_hidden=False, device="cpu",
    )  # fmt: skip


def test_rows_are_the_last_tokens_and_columns_all_of_them():
    rows, columns = axis_labels(outline("weights", (1, 2, 3), n_queries=2))
    assert list(rows) == ["吃", "鱼"]
    assert list(columns) == ["猫", "吃", "鱼"]
    assert columns[-1] == "鱼"
    with pytest.raises(IndexError):
        columns[3]


def test_dimensions_are_named_where_they_have_names():
    assert list(axis_labels(outline("values", (1, 3, 2), dims=("猫味", "鱼味")))[1]) == ["猫味", "鱼味"]
    assert list(axis_labels(outline("queries", (1, 3, 2)))[1]) == ["0", "1"]
    assert list(axis_labels(outline("row_sums", (1, 3, 1)))[1]) == ["Σ"]


def test_a_subject_says_what_the_stage_needs():
    weights = subject_of(outline("weights", (1, 3, 3)))
    assert (weights.rows, weights.cols, weights.sums, weights.titled) == (3, 3, True, False)
    assert map_shape(outline("values", (1, 3, 2))) == (3, 2)
    assert not subject_of(outline("values", (1, 3, 2))).sums


def test_a_window_has_a_layout_of_its_own():
    tokens = (*(["antidisestablishmentarianism"] * 10), *"abcdefghij")
    whole = outline("weights", (1, 20, 20), tokens=tokens, n_queries=20)
    assert subject_of(whole, ((0, 20), (0, 20))) == subject_of(whole)
    part = subject_of(whole, ((10, 14), (8, 20)))
    assert (part.rows, part.cols, part.square) == (4, 12, True)
    assert not part.sums  # they are of whole rows
    assert subject_of(whole, ((10, 14), (0, 20))).sums
    assert part.row_ems < 1 < part.column_ems == subject_of(whole).column_ems
    first, second = (
        paper_layout(subject_of(whole, window), 1, (800, 600), 0.6, SheetWords())
        for window in (None, ((10, 14), (8, 20)))
    )
    assert first.panels[0].map_rect.width == first.panels[0].map_rect.height
    assert second.panels[0].map_rect.width == 3 * second.panels[0].map_rect.height


def test_a_window_is_clipped_to_its_map():
    whole = outline("weights", (1, 3, 3))
    assert clipped(whole, None, None) == ((0, 3), (0, 3))
    assert clipped(whole, (1, 9), (7, 9)) == ((1, 3), (2, 3))


def test_the_widest_of_a_span_is_measured():
    labels = Labels(("a", "abc", "ab"), 0, 3)
    assert widest_ems(labels) == widest_ems(labels, (0, 2)) == text_ems("abc")
    assert widest_ems(labels, (2, 3)) == text_ems("ab")
    assert are_numbers(Labels((), 0, 1000))
    assert not are_numbers(labels)
    assert are_numbers(Labels(("a", "1", "22"), 0, 3), (1, 3))


def test_text_is_measured_without_a_font():
    assert text_ems("猫") == 1
    assert text_ems("e\u0301") == text_ems("e")
    assert text_ems("\U0001f600") > 1.5
    assert len(Labels((), 0, 5)) == 5
