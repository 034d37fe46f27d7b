"""What is laid into and over cells: numbers, those before, the answer, what a drawn mask hides, the legend."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter
from test_paint import CAT, ORDINARY, STYLES, TRIANGLE, frame_of, painted, picture_of, pixels_of

from attnviz import colour
from attnviz.figure import cells, highlights, marks, paint
from attnviz.figure.fonts import sized, text_width
from attnviz.figure.styles import PRINT
from attnviz.frames import CellClass
from attnviz.spec import Drawn

pytestmark = pytest.mark.usefixtures("qapp")

# ------------------------------------------------------------------------------------------------- the number before


@pytest.fixture
def written():
    """(text, x, baseline) of every number that is drawn."""
    texts = []

    class Recording(QPainter):
        def drawText(self, place, text):  # noqa: N802 (Qt's name)
            texts.append((text, place.x(), place.y()))
            super().drawText(place, text)

    def paint_one(frame, size, window=None, **options):
        texts.clear()
        image = QImage(*size, QImage.Format.Format_RGB32)
        image.fill(paint.LIGHT.card)
        painter = Recording(image)
        window = window or (frame.rows[0], frame.rows[1], frame.cols[0], frame.cols[1])
        cells.paint_cells(painter, QRectF(0, 0, *size), window, frame, paint.LIGHT, **options)
        painter.end()
        return list(texts)

    return paint_one


MASKED_CAT = np.array([[1.0, 0, 0], [0.12, 0.88, 0], [0.38, 0.38, 0.23]])


def test_what_was_there_before_stands_below_what_is(written):
    now, old = frame_of(MASKED_CAT, TRIANGLE), frame_of(CAT)
    texts = [text for text, _, _ in written(now, (480, 480), before=old)]
    assert [text for text in texts if text.startswith("was")] == [
        "was 27 %", "was 27 %", "was 45 %", "was 9 %", "was 67 %", "was 24 %",
    ]  # fmt: skip
    back = [text for text, _, _ in written(old, (480, 480), before=now)]
    assert [text for text in back if text.startswith("was")] == [
        "was 100 %", "was ×", "was ×", "was 12 %", "was 88 %", "was ×",
    ]  # fmt: skip


def test_the_number_before_lies_in_its_cell_below_the_number(written):
    now, old = frame_of(MASKED_CAT, TRIANGLE), frame_of(CAT)
    drawn = written(now, (300, 300), before=old)
    large = next(place for place in drawn if place[0] == "12 %")
    small = next(place for place in drawn if place[0] == "was 9 %")
    assert large[2] + 8 < small[2] < 200
    assert 0 < small[1] < 100


def test_small_cells_and_hidden_numbers_have_none_before(written):
    now, old = frame_of(MASKED_CAT, TRIANGLE), frame_of(CAT)
    assert not any(text.startswith("was") for text, _, _ in written(now, (150, 150), before=old))
    assert written(now, (480, 480), before=old, numbers=False) == []


def test_dropped_zero_and_nan_cells_say_what_they_were(written):
    values = np.array([[0.5, 0.0, 0.0, np.nan]])
    classes = np.array([[ORDINARY, CellClass.DROPPED, CellClass.ZERO, CellClass.NAN]])
    old = frame_of(values, classes)
    texts = [text for text, _, _ in written(frame_of(np.full((1, 4), 0.25)), (480, 120), before=old)]
    assert [text for text in texts if text.startswith("was")] == ["was 50 %", "was dropped", "was 0", "was NaN"]


def test_only_frames_of_the_same_cells_are_compared():
    now = frame_of(CAT)
    assert paint.comparable(now, now) is None
    assert paint.comparable(now, None) is None
    assert paint.comparable(now, frame_of(CAT, stage="scaled_scores")) is None
    assert paint.comparable(now, frame_of(np.eye(2))) is None
    assert paint.comparable(now, frame_of(CAT, level=2)) is None
    old = frame_of(MASKED_CAT)
    assert paint.comparable(now, old) is old


def test_numbers_of_cells_at_the_edge_are_moved_into_sight_or_left_out(written):
    frame = frame_of(np.full((8, 8), 0.25))
    drawn = written(frame, (400, 400), window=(0.4, 4.4, 0.9, 4.9))
    assert drawn
    for text, x, baseline in drawn:
        assert x >= 0
        assert x + text_width(sized(19), text) <= 401
        assert 8 < baseline < 400
    assert len(drawn) == 5 * 4  # of the first column a sliver is in sight


def test_where_every_cell_would_say_less_than_a_percent_short_numbers_stand(written):
    tiny = [text for text, _, _ in written(frame_of(np.full((2, 2), 3e-5)), (200, 200))]
    assert tiny == ["3e−5"] * 4
    mixed = [text for text, _, _ in written(frame_of(np.array([[3e-5, 0.5]])), (200, 100))]
    assert mixed == ["< 1 %", "50 %"]


@pytest.mark.parametrize("style", STYLES)
def test_what_hides_a_score_is_written_on_its_patch_not_under_it(style):
    """Its sign was painted over once: the masked cells of a slide on −∞ were blank."""
    style, values = STYLES[style], np.where(TRIANGLE == ORDINARY, 0.5, -np.inf)
    frame = frame_of(values, TRIANGLE, stage="masked_scores")
    image = QImage(300, 300, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    cells.paint_cells(painter, QRectF(0, 0, 300, 300), (0, 3, 0, 3), frame, style, on_paper=True)
    painter.end()
    patch = pixels_of(image)[40:60, 140:160]  # in the middle of the first row's second cell
    assert (patch != style.masked.rgb()).sum() > 40


# ------------------------------------------------------------------------------------------------------- the answer


def answer_pixels(values, classes, *, hidden, row, style=paint.LIGHT, size=300):
    picture = picture_of(frame_of(values, classes), hidden=hidden)
    frame, outline = picture.frames["head:0"], picture.outline
    image = QImage(size, size, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    highlights.paint_answer(painter, QRectF(0, 0, size, size), (0, 3, 0, 3), frame, outline, row, style)
    painter.end()
    return pixels_of(image)


@pytest.mark.parametrize("row", [0, 1])
def test_the_answer_lies_open_in_red_and_closed_under_a_tick(row):
    opened = answer_pixels(CAT, None, hidden=False, row=row)
    closed = answer_pixels(MASKED_CAT, TRIANGLE, hidden=True, row=row)
    for pixels, colour_of in ((opened, paint.LIGHT.leak), (closed, paint.LIGHT.accent)):
        ys, xs = np.nonzero(pixels != paint.LIGHT.card.rgb())
        assert row * 100 <= ys.min() < ys.max() < (row + 1) * 100
        assert (row + 1) * 100 <= xs.min() < xs.max() < (row + 2) * 100
        assert pixels[row * 100 + 7, (row + 2) * 100 - 8] == colour_of.rgb()
    assert not (closed == paint.LIGHT.leak.rgb()).any()


def test_the_last_row_has_no_answer_and_scores_that_will_be_hidden_are_closed():
    last = answer_pixels(CAT, None, hidden=False, row=2)
    assert (last == paint.LIGHT.card.rgb()).all()
    scores = answer_pixels(CAT, None, hidden=True, row=1)  # masked from a later stage on
    assert not (scores == paint.LIGHT.leak.rgb()).any()
    assert (scores == paint.LIGHT.accent.rgb()).any()


# ------------------------------------------------------------------------------------------------------ drawn masks


def test_what_a_drawn_mask_hides_is_framed_cell_by_cell():
    shape = Drawn(runs=((0, 0, 0), (1, 0, 2), (2, 1, 1)))
    pixels = painted(frame_of(CAT), (300, 300), peeking=cells.Peeking(shape, 0, 3), numbers=False)
    red = pixels == paint.LIGHT.leak.rgb()
    framed = red.reshape(3, 100, 3, 100).any(axis=(1, 3))
    np.testing.assert_array_equal(framed, [[False, True, True], [False, False, False], [True, False, True]])


def test_small_cells_of_a_drawn_mask_are_outlined():
    shape = Drawn(runs=tuple((row, 0, 9) for row in range(20)))
    pixels = painted(frame_of(np.full((20, 20), 0.5)), (160, 160), peeking=cells.Peeking(shape, 0, 20), numbers=False)
    ys, xs = np.nonzero(pixels == paint.LIGHT.leak.rgb())
    assert set(xs.tolist()) <= {78, 79, 80, 81}
    assert ys.min() == 0
    assert ys.max() == 159


# ---------------------------------------------------------------------------------------------------------- legend


def test_counts_of_several_heads_say_of_which():
    whole = TRIANGLE
    one = picture_of(frame_of(CAT, whole))
    assert "masked 3" in [entry.text for entry in marks.legend_entries(one)]
    two = picture_of(frame_of(CAT, whole), frame_of(CAT, whole, head=1))
    assert "masked 3 a head" in [entry.text for entry in marks.legend_entries(two)]
    counts = replace(two.frames["head:1"].counts, masked=2, dropped=3)
    mixed = replace(
        two, frames=MappingProxyType({**two.frames, "head:1": replace(two.frames["head:1"], counts=counts)})
    )  # fmt: skip
    texts = [entry.text for entry in marks.legend_entries(mixed)]
    assert "masked 5 in all heads" in texts
    assert "dropped 3 in all heads" in texts


@pytest.mark.parametrize("colours", ["viridis", "cividis", "magma", "inferno"])
def test_in_grey_a_weight_of_1_is_told_from_masked_cells_too_small_for_hatching(colours):
    """The diagonal of a head that looks one back was 20 of 255 from the ground beside it."""
    values, classes = np.eye(40, k=-1), np.where(np.tri(40, dtype=bool), 1, 32).astype(np.uint8)
    frame = frame_of(values, classes)
    frame = replace(frame, rgb=colour.paint_values(values, classes, frame.scale, colours))
    image = QImage(80, 80, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    cells.paint_cells(painter, QRectF(0, 0, 80, 80), (0.0, 40.0, 0.0, 40.0), frame, PRINT)
    painter.end()
    grey = image.convertToFormat(QImage.Format.Format_Grayscale8)
    assert abs(grey.pixelColor(40, 42).red() - grey.pixelColor(60, 20).red()) >= 40


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_masked_swatch_looks_like_the_map(style):
    def swatch(marked):
        image = QImage(13, 13, QImage.Format.Format_RGB32)
        image.fill(style.card)
        painter = QPainter(image)
        cells.paint_swatch(painter, QRectF(0, 0, 13, 13), CellClass.MASKED, style, marked=marked)
        painter.end()
        return pixels_of(image)

    assert (swatch(False)[2:-2, 2:-2] == style.unmarked.rgb()).all()
    assert len(np.unique(swatch(True)[2:-2, 2:-2])) > 1
    assert abs(style.masked.lightness() - style.card.lightness()) >= 15


@pytest.mark.parametrize(("cell", "colours"), [(10.0, 2), (60.0, 1)])
def test_nans_swatch_has_a_slash_only_where_cells_have_one(cell, colours):
    """Large cells say "NaN", for which a swatch has no room."""
    image = QImage(13, 13, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    cells.paint_swatch(painter, QRectF(0, 0, 13, 13), CellClass.NAN, paint.LIGHT, cell=cell)
    painter.end()
    assert len(np.unique(pixels_of(image))) == colours


@pytest.mark.parametrize(
    ("kind", "framed"),
    [(CellClass.ORDINARY, True), (CellClass.MASKED, False), (CellClass.PADDED, False), (CellClass.NAN, False),
     (CellClass.ZERO, False), (CellClass.DROPPED, False)],
)  # fmt: skip
def test_only_a_hidden_cell_that_holds_a_number_wears_the_red_frame(kind, framed):
    from attnviz.figure.grid import grid_of
    from attnviz.figure.peeking import Peeking, frame_hidden_cells
    from attnviz.spec import Causal

    image = QImage(300, 300, QImage.Format.Format_RGB32)
    image.fill(paint.LIGHT.card)
    painter = QPainter(image)
    grid = grid_of(QRectF(0, 0, 300, 300), (0.0, 3.0, 0.0, 3.0), frame_of(CAT))
    frame_hidden_cells(painter, grid, np.full((3, 3), int(kind), np.uint8), Peeking(Causal(), 0, 3), paint.LIGHT)
    painter.end()
    assert (image.pixelColor(202, 50) == paint.LIGHT.leak or image.pixelColor(205, 50) == paint.LIGHT.leak) is framed
    assert image.pixelColor(5, 50) == paint.LIGHT.card
