import itertools
import threading
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from paper_drawings import rendered, sheet_of
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter

from attnviz import colour
from attnviz.figure import cells, colour_bars, layout, marks, paint, peeking
from attnviz.figure.fitting import fitted
from attnviz.figure.fonts import draw_text, elided, load_fonts, sized, text_width, undrawable
from attnviz.figure.labels import text_ems
from attnviz.frames import CellClass, Counts, Finished, Frame, Outline, Scale, StageShape
from attnviz.session import Cell, Picture
from attnviz.spec import (
    MIN_SIDE,
    Blocks,
    Causal,
    Drawn,
    Full,
    Lesson,
    MaskFile,
    PadLeft,
    PadRight,
    Prefix,
    SlidingWindow,
    SpecError,
    View,
    make_spec,
    shape_text,
    visible_run,
)

pytestmark = pytest.mark.usefixtures("qapp")

ORDINARY, MASKED = int(CellClass.ORDINARY), int(CellClass.MASKED)
LOOKS = (CellClass.MASKED, CellClass.ZERO, CellClass.DROPPED, CellClass.NAN, CellClass.PADDED)
MARKED = (CellClass.MASKED, CellClass.ZERO, CellClass.DROPPED, CellClass.NAN)
STYLES = {"light": paint.LIGHT, "dark": paint.DARK}
CAT = np.array([[0.27, 0.27, 0.45], [0.09, 0.67, 0.24], [0.38, 0.38, 0.23]])
CAUSAL = cells.Peeking(Causal(), 0, 3)
TRIANGLE = np.where(np.tri(3, dtype=bool), ORDINARY, MASKED)


def frame_of(values, classes=None, *, level=1, rows=None, cols=None, scale=None, head=0, stage="weights"):
    values = np.asarray(values, np.float64)
    classes = np.full(values.shape, ORDINARY) if classes is None else np.asarray(classes)
    classes = classes.astype(np.uint8)
    scale = scale or Scale(0.0, 1.0)
    rows = rows or (0, values.shape[0] * level)
    cols = cols or (0, values.shape[1] * level)
    counts = Counts(
        cells=values.size, masked=int((classes == MASKED).sum()), zero=int((classes == CellClass.ZERO).sum()),
        nan=int((classes == CellClass.NAN).sum()), future=int(np.triu(classes == ORDINARY, 1).sum()),
    )  # fmt: skip
    rgb = colour.paint_values(values, classes, scale, "viridis")
    sums = np.array([row.sum() for row in np.repeat(values, level, 0)])
    return Frame(
        1, f"head:{head}", stage, head, rows, cols, level, values, classes, rgb, scale, counts, row_sums=sums
    )  # fmt: skip


def picture_of(*frames, hidden=True, tokens=("猫", "吃", "鱼")):
    size = frames[0].rows[1]
    tokens = tokens if len(tokens) == size else tuple(map(str, range(size)))
    outline = Outline(
        1, "weights", tokens, size, size, (), "worked by hand", (StageShape("weights", (len(frames), size, size)),), (),
        tuple(frame.panel for frame in frames), has_future=True, future_hidden=hidden, device="cpu",
    )  # fmt: skip
    spec = make_spec(Lesson(name="cat-eats-fish"), mask="neg-inf" if hidden else "none")
    kept = MappingProxyType({frame.panel: frame for frame in frames})
    return Picture(spec, View(), 1, outline, kept, Finished(1, 0.0, 0, 0))


def painted(frame, size, style=paint.LIGHT, window=None, **options):
    """Colours (height, width) of a frame painted alone."""
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    window = window or (frame.rows[0], frame.rows[1], frame.cols[0], frame.cols[1])
    cells.paint_cells(painter, QRectF(0, 0, *size), window, frame, style, **options)
    painter.end()
    return pixels_of(image)


def pixels_of(image):
    rows = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4)
    return rows[:, : image.width()].copy()


# ----------------------------------------------------------------------------------------------------------- pixels


@pytest.mark.parametrize("side", [4, 11, 20, 60, 137])
def test_the_colour_at_a_cells_centre_is_the_tables(side):
    values = np.linspace(0, 1, 20).reshape(4, 5)
    pixels = painted(frame_of(values), (5 * side, 4 * side), numbers=False)
    centres = pixels[side // 2 :: side, side // 2 :: side]
    np.testing.assert_array_equal(centres, colour.table("viridis")[np.round(values * 255).astype(int)])


def test_pixels_of_a_long_map_are_the_frames_own():
    frame = frame_of(np.random.default_rng(0).random((250, 250)), level=4)
    np.testing.assert_array_equal(painted(frame, (250, 250)), frame.rgb)


def test_a_partial_last_bin_is_no_wider_than_its_cells():
    frame = frame_of(np.eye(3), level=4, rows=(0, 9), cols=(0, 9))
    pixels = painted(frame, (90, 90))
    first, last = int(frame.rgb[0, 0]), int(frame.rgb[2, 2])
    assert (pixels[:40, :40] == first).all()
    assert (pixels[80:, 80:] == last).all()
    assert (pixels[80:, 40:80] == int(frame.rgb[2, 1])).all()


def test_a_window_shows_its_part_of_a_frame_that_covers_more():
    frame = frame_of(np.linspace(0, 1, 100).reshape(10, 10), rows=(20, 30), cols=(40, 50))
    pixels = painted(frame, (40, 40), window=(22.0, 26.0, 45.0, 49.0))
    np.testing.assert_array_equal(pixels[5::10, 5::10], frame.rgb[2:6, 5:9])
    shifted = painted(frame, (40, 40), window=(22.5, 26.5, 45.0, 49.0))
    np.testing.assert_array_equal(shifted[:35], pixels[5:])


def test_a_window_beside_the_frame_paints_nothing():
    frame = frame_of(np.ones((4, 4)))
    assert (painted(frame, (40, 40), window=(10, 14, 0, 4)) == paint.LIGHT.card.rgb()).all()


# ------------------------------------------------------------------------------------------------------------ looks


@pytest.mark.parametrize("side", [16, 40, 120])
@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_looks_of_cells_are_distinct_and_none_is_that_of_a_number(side, style):
    pictures = [painted(frame_of([[0.0]], [[kind]]), (side, side), style) for kind in LOOKS]
    pictures += [painted(frame_of([[value]]), (side, side), style) for value in (1e-6, 1.0)]
    for one, other in itertools.combinations(pictures, 2):
        assert (one != other).mean() > 0.25


@pytest.mark.parametrize("side", [16, 40, 120])
@pytest.mark.parametrize("kind", MARKED)
@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_marks_have_three_times_the_contrast_of_their_ground(kind, side, style):
    pixels = painted(frame_of([[0.0]], [[kind]]), (side, side), style)
    ground = style.masked.rgb() if kind == CellClass.MASKED else colour.GROUNDS[kind]
    assert max(colour.contrast(int(rgb), ground) for rgb in np.unique(pixels)) >= 3
    own = style.hatch if kind == CellClass.MASKED else style.on_ground
    assert colour.contrast(own.rgb(), ground) >= 3


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_the_masks_paper_suits_the_theme(style):
    pixels = painted(frame_of(np.zeros((9, 9)), np.full((9, 9), MASKED)), (45, 45), style)
    assert (pixels == style.masked.rgb()).all()
    assert colour.contrast(style.masked.rgb(), style.card.rgb()) < 1.5  # calm
    for kind in (CellClass.NAN, CellClass.ZERO, CellClass.DROPPED):
        assert colour.contrast(style.masked.rgb(), colour.GROUNDS[kind]) > 1.4


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_words_are_legible_on_their_ground(style):
    assert colour.contrast(style.ink.rgb(), style.card.rgb()) >= 7
    for other in (style.muted, style.accent, style.leak):
        assert colour.contrast(other.rgb(), style.card.rgb()) >= 4.5


def test_numbers_come_with_cells_that_hold_them():
    frame = frame_of(CAT)
    for side, shown in (10, False), (40, True), (140, True):
        with_numbers, without = (painted(frame, (3 * side, 3 * side), numbers=n) for n in (True, False))
        assert (with_numbers != without).any() == shown


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.4833, 2, ".48"), (0.4833, 4, ".4833"), (1.0, 2, "1"), (0.0, 4, "0"), (-0.5, 2, "−.50"),
        (12.3456, 2, "12.35"),
        (-1.25, 6, "−1.250000"), (-np.inf, 2, "−∞"), (np.inf, 2, "∞"), (0.001, 2, ".00"), (0.9999, 2, "1.00"),
        (-1.7e308, 2, "−1.7e308"), (3e38, 4, "3e38"), (1e14, 1, "100000000000000.0"),
    ],
)  # fmt: skip
def test_numbers_are_written_without_a_leading_zero(value, decimals, text):
    assert marks.cell_number(value, decimals) == text


def test_the_numbers_of_one_map_have_the_same_decimals(monkeypatch):
    written = []
    draw = QPainter.drawText

    def recorded(painter, *args):
        written.append(args[-1])
        return draw(painter, *args)

    monkeypatch.setattr(QPainter, "drawText", recorded)
    scores = frame_of([[0.5, 0.5, 1], [0, 2, 1], [0.5, 0.5, 0]], scale=Scale(0, 2), stage="scaled_scores")
    painted(scores, (300, 300))
    assert written == [".50", ".50", "1.00", ".00", "2.00", "1.00", ".50", ".50", ".00"]
    written.clear()
    weights = frame_of([[1, 0.25], [0.25, 0.75]], cols=(0, 2))
    painted(weights, (300, 300), decimals=4)
    assert written == ["1.0000", ".2500", ".2500", ".7500"]
    written.clear()
    painted(weights, (60, 60), decimals=5)  # here "1.00000" has no room, but "1" has
    assert written == ["1", ".25000", ".25000", ".75000"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.27, "27 %"), (1.0, "100 %"), (0.0, "0 %"), (0.001, "< 1 %"), (0.999, "> 99 %"), (2, "200 %")]
)
def test_percentages_do_not_claim_0_or_1(value, text):
    assert marks.percentage(value) == text


def test_chosen_decimals_replace_percentages():
    frame = frame_of(CAT)
    assert [*marks.formats(frame, None, 3)] == ["%", "2"]
    assert [*marks.formats(frame, None, 13)] == ["2"]
    assert [*marks.formats(frame, 6, 3)] == ["6"]
    assert [*marks.formats(replace(frame, stage="scores"), None, 3)] == ["2"]
    assert [*marks.formats(replace(frame, stage="dropped_weights"), None, 3)] == ["2"]  # not 200 % beside 62 %


# ----------------------------------------------------------------------------------------------------------- future


def is_red(pixels):
    red, green, blue = ((pixels >> shift & 255).astype(int) for shift in (16, 8, 0))
    return (red > 190) & (green < 90) & (blue < 90)


@pytest.mark.parametrize("side", [15, 60, 140])
def test_visible_future_cells_have_a_red_frame_and_no_others(side):
    pixels = painted(frame_of(np.full((3, 3), 0.3)), (3 * side, 3 * side), numbers=False, peeking=CAUSAL)
    red = np.array([
        [is_red(pixels[r * side + 1 : (r + 1) * side - 1, c * side + 1 : (c + 1) * side - 1]).any() for c in range(3)]
        for r in range(3)
    ])  # fmt: skip
    np.testing.assert_array_equal(red, np.triu(np.ones((3, 3), bool), 1))


def test_with_fewer_queries_than_keys_the_future_begins_later():
    pixels = painted(frame_of(np.full((2, 4), 0.3)), (160, 80), numbers=False, peeking=cells.Peeking(Causal(), 2, 4))
    red = [[is_red(pixels[r * 40 : r * 40 + 40, c * 40 : c * 40 + 40]).any() for c in range(4)] for r in range(2)]
    assert red == [[False, False, False, True], [False, False, False, False]]


def test_masked_cells_have_no_red_frame():
    assert not is_red(painted(frame_of(CAT, TRIANGLE), (180, 180), peeking=CAUSAL)).any()


@pytest.mark.parametrize("side", [1, 4, 8])
def test_small_future_cells_share_one_outline(side):
    n = 60
    pixels = painted(frame_of(np.full((n, n), 0.3)), (n * side, n * side), peeking=cells.Peeking(Causal(), 0, n))
    red = is_red(pixels)
    assert red[: n * side // 2, -2:].any()
    assert not red[n * side // 2 + 2 * side + 2 :, : n * side // 2].any()
    assert red.sum() < 12 * n * side


def hidden_by(shape, n_queries, n_keys):
    """What a shape hides, cell by cell."""
    shift = n_keys - n_queries
    runs = [visible_run(shape, row + shift, n_keys) for row in range(n_queries)]
    return np.array([[not first <= key < end for key in range(n_keys)] for first, end in runs])


SHAPES_OF_MASKS = [
    Causal(), Full(), SlidingWindow(width=2), Prefix(length=3), PadLeft(count=2), PadRight(count=2),
    Blocks(lengths=(2, 3)), Blocks(lengths=(1, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES_OF_MASKS, ids=shape_text)
@pytest.mark.parametrize("n_queries", [8, 5])
def test_red_frames_are_around_what_the_shape_hides(shape, n_queries):
    side, n_keys = 30, 8
    peeking = cells.Peeking(shape, n_keys - n_queries, n_keys)
    frame = frame_of(np.full((n_queries, n_keys), 0.3))
    pixels = painted(frame, (n_keys * side, n_queries * side), numbers=False, peeking=peeking)
    red = is_red(pixels).reshape(n_queries, side, n_keys, side)[:, 3:-3, :, 3:-3].any((1, 3))
    inner = is_red(pixels).reshape(n_queries, side, n_keys, side).any((1, 3))
    np.testing.assert_array_equal(inner, hidden_by(shape, n_queries, n_keys))
    assert not red.any() or red.sum() <= inner.sum()


@pytest.mark.parametrize("shape", [
    Causal(), Full(), SlidingWindow(width=40), Prefix(length=50), PadLeft(count=30), PadRight(count=30),
    Blocks(lengths=(50, 60)),
], ids=shape_text)  # fmt: skip
@pytest.mark.parametrize("side", [1, 4])
def test_small_hidden_cells_share_a_line_on_the_edge_of_what_is_shown(shape, side):
    n = 160
    peeking = cells.Peeking(shape, 0, n)
    red = is_red(painted(frame_of(np.full((n, n), 0.3)), (n * side, n * side), peeking=peeking))
    hidden = hidden_by(shape, n, n)
    edge = np.zeros((n, n), bool)
    edge[:, 1:] |= hidden[:, 1:] != hidden[:, :-1]
    edge[1:] |= hidden[1:] != hidden[:-1]
    edge[[0, -1]] |= hidden[[0, -1]]
    edge[:, [0, -1]] |= hidden[:, [0, -1]]
    near = np.zeros((n + 4, n + 4), bool)
    for down, across in itertools.product(range(5), repeat=2):
        near[down : down + n, across : across + n] |= edge
    near = near[2:-2, 2:-2].repeat(side, 0).repeat(side, 1)
    assert not (red & ~near).any()
    if hidden.any():
        ys, xs = np.nonzero(edge[2:-2, 2:-2])
        reached = [red[max(0, y * side - 3) :, max(0, x * side - 3) :][: 4 * side + 8, : 4 * side + 8].any()
                   for y, x in zip(ys + 2, xs + 2, strict=True)]  # fmt: skip
        assert np.mean(reached) > 0.95
    else:
        assert not red.any()


@pytest.mark.parametrize("shape", SHAPES_OF_MASKS, ids=shape_text)
def test_runs_of_many_rows_are_those_of_each(shape):
    firsts, ends = peeking._visible_runs(cells.Peeking(shape, 3, 20), range(0, 17, 2))
    each = [visible_run(shape, row + 3, 20) for row in range(0, 17, 2)]
    for (first, end), one, other in zip(each, firsts.tolist(), ends.tolist(), strict=True):
        assert (one, other) == (first, end) or (first >= end and one >= other)


def test_a_mask_of_a_file_and_a_hidden_future_have_no_frames():
    outline = picture_of(frame_of(CAT), hidden=False).outline
    assert cells.peeking_of(outline) == cells.Peeking(Causal(), 0, 3)
    assert cells.peeking_of(replace(outline, future_hidden=True)) is None
    assert cells.peeking_of(replace(outline, has_future=False)) is None
    assert cells.peeking_of(replace(outline, mask_shape=MaskFile(path="m.npy", sha256="0" * 64))) is None


def test_frames_a_million_columns_out_stay_on_the_sheet():
    n = 1 << 20
    frame = frame_of(np.full((300, 300), 0.3), rows=(n - 300, n), cols=(n - 300, n))
    for window in (n - 300, n, n - 300, n), (n - 20, n - 10, n - 20, n - 10):
        pixels = painted(frame, (300, 300), window=window, peeking=cells.Peeking(Causal(), 0, n))
        red = is_red(pixels)
        assert red.any()
        assert not red[200:, :90].any()


# ---------------------------------------------------------------------------------------------------------- figures


def test_a_figure_shows_every_head_in_its_place():
    frames = [frame_of(np.full((3, 3), value), TRIANGLE, head=head) for head, value in enumerate((0.2, 0.8))]
    picture = picture_of(*frames)
    pixels = pixels_of(rendered(picture, (1280, 800), numbers=False))
    plan = sheet_of(picture.outline, picture.view, (1280, 800), numbers=False).plan
    for place, frame in zip(plan.panels, frames, strict=True):
        x, y, width, height = place.map_rect
        assert pixels[int(y + height / 2), int(x + width / 6)] == frame.rgb[0, 0]


def test_the_pictures_own_head_is_shown_alone():
    frames = [frame_of(np.full((3, 3), value), head=head) for head, value in enumerate((0.2, 0.8))]
    picture = replace(picture_of(*frames), view=View(head=1))
    pixels = pixels_of(rendered(picture, (800, 600), numbers=False))
    assert (pixels == frames[1].rgb[0, 0]).sum() > 50_000
    assert (pixels == frames[0].rgb[0, 0]).sum() < 100  # it may still stand in the colour bar


def test_a_selected_row_is_framed():
    frame = frame_of(CAT, TRIANGLE)
    plain = pixels_of(rendered(picture_of(frame), (800, 600)))
    framed = pixels_of(rendered(picture_of(frame), (800, 600), selected=Cell(1, 1)))
    accent = paint.LIGHT.accent.rgb()
    assert (plain == accent).sum() == 0
    assert (framed == accent).sum() > 500


def test_a_sum_that_is_not_one_stands_out():
    def reds(values, *, numbers=True):
        picture = picture_of(frame_of(values, TRIANGLE))
        return is_red(pixels_of(rendered(picture, (800, 600), numbers=numbers))).sum()

    assert reds(np.tri(3) / np.arange(1, 4)[:, None]) == 0
    assert reds(np.tri(3) / np.arange(1, 4)[:, None] * 0.75) > 0
    assert reds(np.tri(3) / np.arange(1, 4)[:, None] * 0.75, numbers=False) == 0  # nor does a colour tell it


@pytest.mark.parametrize(("value", "text", "is_one"), [(1.004, "1.00", True), (0.332, "0.33", False)])
def test_row_sums_in_words(value, text, is_one):
    assert marks.row_sum(value) == (text, is_one)
    assert marks.row_sum(float("nan")) == ("NaN", False)


def test_the_legend_counts_each_look():
    classes = TRIANGLE.copy()
    classes[1, 0], classes[2, 0] = CellClass.NAN, CellClass.ZERO
    entries = marks.legend_entries(picture_of(frame_of(CAT, classes)))
    assert [entry.text for entry in entries] == ["masked 3", "zero 1", "NaN 1"]
    twice = picture_of(frame_of(CAT, TRIANGLE), frame_of(CAT, TRIANGLE, head=1))
    assert marks.legend_entries(twice)[0].text == "masked 3 a head"


def test_what_nobody_counted_has_no_number():
    frame = replace(frame_of(CAT, TRIANGLE), counts=Counts(cells=9, masked=3, zero=-1))
    assert [entry.text for entry in marks.legend_entries(picture_of(frame))] == ["masked 3", "zero", "NaN 0"]


def test_visible_future_cells_are_counted_as_peeking():
    entries = marks.legend_entries(picture_of(frame_of(CAT), hidden=False))
    assert [(entry.kind, entry.text) for entry in entries] == [
        (None, "peeking 3"), (CellClass.ZERO, "zero 0"), (CellClass.NAN, "NaN 0"),
    ]  # fmt: skip


def test_what_a_drawn_mask_hides_is_not_called_peeking_while_it_is_off():
    picture = picture_of(frame_of(CAT), hidden=False)
    picture = replace(picture, outline=replace(picture.outline, mask_shape=Drawn(runs=((0, 0, 2),))))
    assert marks.legend_entries(picture)[0] == marks.LegendEntry(None, "drawn as hidden, yet seen 3")


@pytest.mark.parametrize("bound", [0.89, 0.0123, 0.000456, 1.0, 128.0])
def test_the_colour_bars_numbers_are_never_cut(bound, monkeypatch):
    texts = []
    draw = colour_bars.draw_text

    def recorded(painter, rect, flags, text):
        texts.append((text, text_width(painter.font(), text), rect.width()))
        draw(painter, rect, flags, text)

    monkeypatch.setattr(colour_bars, "draw_text", recorded)
    load_fonts()
    plan = layout.figure_layout(layout.Subject(6, 3, 4.0, 0.6), 1, (700, 360))
    frame = frame_of(np.full((6, 3), bound), scale=Scale(-bound, bound, diverging=True), stage="inputs")
    image = QImage(700, 360, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    colour_bars.paint_colour_bar(painter, plan, [frame], View(), paint.LIGHT)
    painter.end()
    numbers = texts[:-1]  # the last is the caption
    assert all(width <= room + 0.5 for _, width, room in numbers), numbers
    assert len({text.lstrip("−") for text, _, _ in numbers}) == 2  # as many digits above as below, and 0
    assert float(numbers[0][0].replace("−", "-")) == pytest.approx(bound, rel=0.5)


@pytest.mark.parametrize(
    ("values", "scale", "ends"),
    [
        ([[0.2, 1.0]], Scale(-0.5, 0.5, diverging=True), ("−0.5", "≥ 0.5")),  # the bar ended at 0.5 all the same
        ([[-0.6, 0.5]], Scale(-0.5, 0.5, diverging=True), ("≤ −0.5", "0.5")),
        ([[-9.0, 9.0]], Scale(0.0, 1.0), ("≤ 0", "≥ 1")),
        ([[0.0, 1.0 + 1e-7]], Scale(0.0, 1.0), ("0", "1")),
        ([[0.01, 0.5]], Scale(0.01, 0.5, "log"), ("0.01", "0.5")),
        ([[0.001, 0.5]], Scale(0.01, 0.5, "log"), ("≤ 0.01", "0.5")),
    ],
)
def test_the_ends_of_a_colour_bar_say_whether_a_number_lies_beyond(values, scale, ends):
    frame = frame_of(np.array(values), scale=scale, stage="context")
    ticks = colour_bars.bar_ticks([frame], View())
    assert (ticks[0][1], ticks[-1][1]) == ends
    within = replace(frame, values=np.full((1, 2), scale.high))
    assert colour_bars.bar_ticks([within, frame], View()) == ticks  # of the other maps too


def test_after_dropout_a_bar_says_at_least_only_where_something_is_larger():
    """All of it ended at "≥ 1", whatever was shown."""
    frame = frame_of(np.array([[0.2, 0.8]]), scale=Scale(0.0, 1.0), stage="dropped_weights")
    assert colour_bars.bar_ticks([frame], View(norm="unit"))[-1][1] == "1"
    masked = replace(frame, values=np.array([[0.2, 5.0]]), classes=np.array([[1, 2]], np.uint8))
    assert colour_bars.bar_ticks([masked], View(norm="unit"))[-1][1] == "1"


def test_a_stage_before_dropout_says_that_dropout_is_still_to_come():
    """ "dropout 0.5 on weights, seed 123" stood over weights whose rows added up to 1."""
    spec = make_spec(dropout=0.5, training=True)
    for stage, there in [("weights", True), ("scaled_scores", True), ("dropped_weights", False), ("context", False)]:
        said = marks.circumstances(spec, stage)
        assert ("dropout 0.5 on weights acts after this stage" in said) == there, stage
        assert ("dropout 0.5 on weights, seed 123" in said) != there, stage
    late = make_spec(dropout=0.5, training=True, dropout_site="context")
    assert "dropout 0.5 on context acts after this stage" in marks.circumstances(late, "context")
    assert "seed 123" in marks.circumstances(spec)


def test_the_caption_says_what_a_pixel_is():
    assert marks.axes_caption("weights", 1) == "row = who asks, column = who is looked at"
    assert marks.axes_caption("weights", 64).endswith("brightest of 64 × 64 cells")
    assert marks.axes_caption("weights", 64, "mean").endswith("mean of 64 × 64 cells")
    assert marks.axes_caption("weights", 64, "share").endswith("share of the row's mass, 64 keys wide")
    assert marks.axes_caption("values", 1) == "row = token, column = dimension"


def test_one_nan_in_a_million_cells_is_seen_on_paper():
    classes = np.full((1000, 1000), ORDINARY)
    classes[700, 300] = CellClass.NAN
    picture = picture_of(frame_of(np.full((1000, 1000), 0.5), classes))
    pixels = pixels_of(rendered(picture, (640, 480)))
    plan = sheet_of(picture.outline, picture.view, (640, 480)).plan
    x, y, width, height = (int(edge) for edge in plan.panels[0].map_rect)
    found = np.argwhere(pixels[y : y + height, x : x + width] == colour.GROUNDS[CellClass.NAN])
    assert len(found)
    np.testing.assert_allclose(found.mean(0) / (height, width), (0.7, 0.3), atol=0.01)


def test_a_frame_with_more_pixels_than_the_sheet_keeps_its_brightest():
    values = np.random.default_rng(0).random((10, 7))
    frame = frame_of(values, level=2)
    less = fitted(frame, "viridis", layout.Box(0, 0, 4, 5))
    assert less.level == 4
    assert less.values[0, 0] == values[:2, :2].max()
    np.testing.assert_array_equal(less.rgb, colour.paint_values(less.values, less.classes, frame.scale, "viridis"))
    assert fitted(frame, "viridis", layout.Box(0, 0, 7, 10)) is frame


def test_on_a_diverging_scale_the_largest_by_size_is_kept_with_its_sign():
    values = np.random.default_rng(1).uniform(-0.2, 0.2, (8, 8))
    values[1, 1], values[2, 5], values[6, 2] = -0.9, 0.8, -np.inf
    classes = np.full(values.shape, ORDINARY)
    classes[5, 5] = CellClass.NAN
    values[5, 5] = np.nan
    frame = frame_of(values, classes, scale=Scale(-1.0, 1.0, diverging=True))
    less = fitted(frame, "viridis", layout.Box(0, 0, 2, 2))
    assert less.level == 4
    assert less.values[0].tolist() == [-0.9, 0.8]
    assert 0 < np.abs(less.values[1, 0]) < 0.2  # of what −∞ hides nothing is seen
    assert (less.classes[1] & CellClass.NAN > 0).tolist() == [False, True]
    np.testing.assert_array_equal(less.rgb, colour.paint_values(less.values, less.classes, frame.scale, "viridis"))


# ----------------------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize("size", [(0, 0), (0, 1080), (1920, -1), (40_000, 100), (30_000, 30_000)])
def test_sizes_that_cannot_be_are_refused_in_words(size):
    with pytest.raises(SpecError, match=f"size is {size[0]}x{size[1]}.*, such as") as caught:
        rendered(picture_of(frame_of(CAT)), size)
    assert caught.value.field == "size"


def test_the_smallest_picture_is_one():
    image = rendered(picture_of(frame_of(CAT, TRIANGLE)), (MIN_SIDE, MIN_SIDE))
    assert (image.width(), image.height()) == (MIN_SIDE, MIN_SIDE)


def test_another_thread_draws_the_same_picture():
    picture = picture_of(frame_of(CAT, TRIANGLE))
    here, there = rendered(picture, (640, 480)), []
    thread = threading.Thread(target=lambda: there.append(rendered(picture, (640, 480))), name="painter")
    thread.start()
    thread.join()
    np.testing.assert_array_equal(pixels_of(here), pixels_of(there[0]))


# ------------------------------------------------------------------------------------------------------------ fonts


def written(text, width=120):
    image = QImage(width, 60, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    load_fonts()
    painter.setFont(sized(30))
    painter.setPen(QColor("black"))
    draw_text(painter, QRectF(0, 0, width, 60), Qt.AlignmentFlag.AlignHCenter, text)
    painter.end()
    return pixels_of(image)


def test_chinese_and_signs_are_legible_with_the_shipped_font_alone():
    load_fonts()
    signs = "猫吃鱼Aé0123456789−∞×÷√·Σ…"
    assert undrawable(sized(20), signs) == ()
    shapes = {written(char).tobytes() for char in signs}
    assert len(shapes) == len(signs)  # boxes would all be alike


def test_a_character_of_no_font_is_a_box_with_its_code_point():
    load_fonts()
    for char, code in ("\U0010fffd", "10FFFD"), ("\n", "000A"):
        assert undrawable(sized(30), f"a{char}b") == (char,)
        assert (written(char) != 0xFFFFFFFF).sum() > 100
        assert text_width(sized(30), char) > QFontMetricsF(sized(15)).horizontalAdvance(code)
    assert written("\U0010fffd").tobytes() != written("\U0010fffc").tobytes()
    assert undrawable(sized(30), "e\u0301\u200d\ufe0f") == ()


@pytest.mark.parametrize("text", ["b", "NOHQ", "æ&ß", "\U00020000", "\ue000", "\x80a", "猫\ue000"])
@pytest.mark.parametrize("pixels", [6, 9, 12, 22])
def test_names_have_the_room_that_they_take_boxes_too(qapp, text, pixels):
    load_fonts()
    assert text_width(sized(pixels), text) <= text_ems(text) * pixels


def test_a_letter_with_hundreds_of_accents_stands_on_nothing_above_it(qapp):
    load_fonts()
    image = QImage(100, 200, QImage.Format.Format_RGB32)
    image.fill(0)
    painter = QPainter(image)
    painter.setFont(sized(20))
    painter.setPen(QColor("white"))
    draw_text(painter, QRectF(0, 160, 100, 40), Qt.AlignmentFlag.AlignHCenter, "a" + "\u0301\u200d" * 200)
    painter.end()
    rows = np.frombuffer(image.constBits(), np.uint32).reshape(200, 100)
    assert rows[140:].max() > rows[:100].max()
    assert rows[:100].min() == rows[:100].max()


def test_long_text_ends_in_an_ellipsis_within_its_room():
    load_fonts()
    font = sized(20)
    short = elided(font, "antidisestablishmentarianism", 100)
    assert short.startswith("anti")
    assert short.endswith("…")
    assert text_width(font, short) <= 100
    assert elided(font, "cat", 100) == "cat"
    assert (written("antidisestablishmentarianism", 60)[:, -1] == 0xFFFFFFFF).all()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mask": "neg-inf"}, ["−∞ mask"]),
        ({"mask": "neg-inf", "fill": 0.0}, ["fill 0"]),
        ({"mask": "add", "fill": -5.0}, ["added mask of −5"]),
        ({"mask": "multiply"}, ["× triangle, never divided"]),
        ({"mask": "neg-inf", "mask_shape": PadLeft(count=1)}, ["−∞ mask", "shape pad-left:1"]),
        ({"mask": "none", "mask_shape": PadLeft(count=1)}, ["no mask"]),
        ({"mask": "none", "top_k": 2}, ["no mask", "top-k 2"]),
    ],
)
def test_a_caption_names_what_decides_what_is_hidden(fields, words):
    assert marks.mask_words(make_spec(**fields)) == words
