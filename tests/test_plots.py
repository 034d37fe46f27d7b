"""Plots and small maps: every number at its place, no word over another or outside, readable in both themes."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from attnviz import colour
from attnviz.figure import plots
from attnviz.figure.axes import Axis, number_words, tick_places
from attnviz.figure.cells import DARK, LIGHT
from attnviz.figure.fonts import load_fonts, text_width
from attnviz.figure.plots import Bars, Curve, Mark, Plot, apart, paint_plot, role_colour
from attnviz.frames import CellClass, Scale
from attnviz.pixels import pooled_furthest, pooled_max
from attnviz.views.dropped_row import DroppedRow
from attnviz.views.plot import PlotView
from attnviz.views.small_map import SmallMap

ROLES = ("accent", "leak", "ink", "muted", "teal", "amber", "violet", "green")
ORDINARY, MASKED = int(CellClass.ORDINARY), int(CellClass.MASKED)


# --------------------------------------------------------------------------------------------------------------- axes


@given(
    st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 30), st.booleans()
)  # fmt: skip
def test_ticks_lie_on_the_axis_rise_and_tell_their_own_number(low, extent, most, log):
    low = abs(low) + 1e-6 if log else low
    axis = Axis((low, low + extent), log=log)
    ticks = tick_places(axis, most)
    assert len(ticks) <= most + 1
    for value, words in ticks:
        assert -1e-5 <= axis.place(value) <= 1 + 1e-5
        told = float(words.replace("−", "-").replace(",", ""))
        assert told == pytest.approx(value, rel=1e-2, abs=extent * 1e-3)
    assert all(a < b for (a, _), (b, _) in itertools.pairwise(ticks))


def test_three_decades_are_ticked_by_decades_and_a_place_is_a_logarithm():
    axis = Axis((1.0, 1000.0), log=True)
    assert [words for _, words in tick_places(axis, 4)] == ["1", "10", "100", "1,000"]
    assert axis.place(10) == pytest.approx(1 / 3)
    assert math.isnan(axis.place(0))


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (0.25, "0.25"), (-1.5, "−1.5"), (1234, "1,234"), (3e-8, "3e−8"), (float("nan"), "NaN"), (50.0, "50")],
)
def test_numbers_in_words(value, words):
    assert number_words(value) == words


@pytest.mark.parametrize("style", [LIGHT, DARK])
@pytest.mark.parametrize("role", ROLES)
def test_every_colour_stands_out_from_the_card(role, style):
    assert colour.contrast(role_colour(role, style).rgb(), style.card.rgb()) >= 3


# ----------------------------------------------------------------------------------------------------------- painting


def painted(plot, size=(420, 230), style=LIGHT, unit=1.0):
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(style.card)
    painter = QPainter(image)
    paint_plot(painter, QRectF(0, 0, *size), plot, style, unit)
    painter.end()
    rows = np.frombuffer(image.constBits(), np.uint32).reshape(size[1], image.bytesPerLine() // 4)
    return rows[:, : size[0]].copy()


def words_of(monkeypatch, plot, size=(420, 230), unit=1.0):
    """Every word that is drawn with the rectangle that its letters take."""
    said = []
    real = plots.draw_text

    def listening(painter, rect, flags, text):
        width = text_width(painter.font(), text)
        left = rect.right() - width if flags & plots._RIGHT else rect.left()
        high = 0.8 * painter.font().pixelSize()
        said.append((text, QRectF(left, rect.center().y() - high / 2, width, high), rect))
        real(painter, rect, flags, text)

    monkeypatch.setattr(plots, "draw_text", listening)
    painted(plot, size, unit=unit)
    return [entry for entry in said if entry[0]]


X = np.arange(1, 201)
MANY = Plot(
    curves=tuple(
        Curve(X, 1.79 + n * X / 90, f"{name}, {what}", role, dashed=what == "exam")
        for n, (name, role) in enumerate((("none", "leak"), ("multiply, not divided", "amber"), ("neg-inf", "accent")))
        for what in ("training", "exam")
    ),
    marks=(Mark(1.79, "ln V = 1.79"), Mark(2.1, "another line near it"), Mark(100, "half", upright=True)),
    x_label="training step",
    y_label="loss",
)
NAMED = Plot(
    curves=(Curve(range(40), range(40), "rising"),),
    x_names=tuple((float(n), f"token{n}") for n in range(40)),
    y_label="weight",
)
LOGS = Plot(curves=(Curve([1, 1000], [1e-4, 1], "error", dots=True),), x_log=True, y_log=True, x_label="N")


@pytest.mark.parametrize("plot", [MANY, NAMED, LOGS, Plot()], ids=["many", "named", "logs", "empty"])
@pytest.mark.parametrize(("size", "unit"), [((420, 230), 1), ((320, 190), 1), ((1280, 700), 2.4), ((240, 180), 1)])
def test_no_word_is_cut_or_lies_over_another(qapp, monkeypatch, plot, size, unit):
    load_fonts()
    said = words_of(monkeypatch, plot, size, unit)
    whole = QRectF(-1, -3, size[0] + 2, size[1] + 6)
    for text, letters, room in said:
        assert letters.width() <= room.width() + 1, text
        assert whole.contains(letters), text
    for (one, here, _), (other, there, _) in itertools.combinations(said, 2):
        assert not here.intersects(there), (one, other)


def test_a_line_without_room_for_its_words_is_told_in_the_legend(qapp, monkeypatch):
    lines = tuple(Mark(1 + n / 100, f"line {n}", upright=True) for n in range(12))
    said = [text for text, _, _ in words_of(monkeypatch, Plot(marks=lines, x_range=(0.0, 2.0), y_range=(0.0, 1.0)))]
    assert {f"line {n}" for n in range(12)} <= set(said)


FLOOR = Mark(2.0, "nobody honest gets below 2", brief="guessing: 2")


@pytest.mark.parametrize(
    ("curves", "words", "above"),
    [
        ([Curve([0, 9], [2.0, 2.0])], FLOOR.label, True),
        ([Curve([0, 9], [2.0, 2.0]), Curve([0, 9], [2.6, 2.6])], FLOOR.label, False),
        ([Curve([0, 9], [2.6, 2.6]), Curve([0, 4, 9], [1.8, 1.4, 1.8], dots=True)], FLOOR.brief, None),
    ],
)
def test_words_of_a_line_stand_where_no_curve_runs(qapp, monkeypatch, curves, words, above):
    """Above it or below, else in the legend; the same in a picture where the curves are still to come."""
    load_fonts()
    for plot in (Plot(curves=tuple(curves)), Plot(to_come=tuple(curves))):
        plot = dataclasses.replace(plot, marks=(FLOOR,), x_range=(0.0, 9.0), y_range=(0.0, 8.0))  # noqa: PLW2901
        own, _ = middle_of(monkeypatch, plot, (420, 230))
        ((said, letters, _),) = [one for one in words_of(monkeypatch, plot) if one[0] in (FLOOR.label, FLOOR.brief)]
        assert said == words
        if above is None:
            assert letters.bottom() < own.area.top()
        else:
            assert (letters.center().y() < own._y(2.0)) == above
            for curve in plot.curves:
                assert not letters.top() <= own._y(curve.y[0]) <= letters.bottom()


@pytest.mark.parametrize("apart_by", [0.0, 0.1, 0.33, 1.0])
def test_words_of_upright_lines_are_crossed_by_none_and_lie_over_no_bar(qapp, monkeypatch, apart_by):
    load_fonts()
    marks = Mark(1.0, "expected 1.00", upright=True), Mark(1 + apart_by, "this draw 1.33", upright=True)
    plot = Plot(bars=(Bars([0, 0.8, 1.4, 2], [0.9, 0.0, 0.9]),), marks=marks, x_range=(0.0, 2.0), y_range=(0.0, 1.0))
    own, _ = middle_of(monkeypatch, plot, (420, 230))
    said = [(text, letters) for text, letters, _ in words_of(monkeypatch, plot) if " " in text]
    assert len(said) == 2
    (_, one), (_, other) = said
    assert not one.intersects(other)
    bars = [box for bars in plot.bars for box in own._bar_boxes(bars)]
    for _, letters in said:
        if letters.top() > own.area.top():
            assert not any(letters.left() <= own._x(mark.at) <= letters.right() for mark in marks)
            assert not any(bar.intersects(letters) for bar in bars)


def middle_of(monkeypatch, plot, size):
    """The plot's own area."""
    found = []
    real = plots._Painting._paint_axes

    def listening(self):
        found.append(self)
        real(self)

    monkeypatch.setattr(plots._Painting, "_paint_axes", listening)
    pixels = painted(plot, size)
    return found[0], pixels


def test_bars_and_curves_stand_at_their_numbers(qapp, monkeypatch):
    load_fonts()
    plot = Plot(
        bars=(Bars([0, 1, 2], [1.0, 0.5], role="teal"),),
        curves=(Curve([0, 2], [0.75, 0.75], role="leak"),),
        x_range=(0.0, 2.0),
        y_range=(0.0, 1.0),
    )
    own, pixels = middle_of(monkeypatch, plot, (400, 300))
    line = role_colour("leak", LIGHT).rgb()
    assert pixels[round(own._y(0.75)), round(own._x(1.5))] == line
    filled = pixels[round(own._y(0.33)), round(own._x(0.5))]
    assert filled == pixels[round(own._y(0.88)), round(own._x(0.5))] != LIGHT.card.rgb()
    assert filled == pixels[round(own._y(0.36)), round(own._x(1.5))]
    assert pixels[round(own._y(0.88)), round(own._x(1.5))] == LIGHT.card.rgb()


@pytest.mark.parametrize("unit", [1.0, 3.0])
def test_a_dot_on_an_edge_is_whole(qapp, unit):
    plot = Plot(curves=(Curve((0.0, np.nan, 1.0), (1.0, np.nan, 0.0), dots=True),), x_range=(0, 1), y_range=(0, 1))
    pixels = painted(plot, size=(int(300 * unit), int(200 * unit)), unit=unit)
    down, across = np.nonzero(pixels == role_colour("accent", LIGHT).rgb())
    middle = pixels.shape[1] / 2
    for dot in (down[across < middle], across[across < middle]), (down[across > middle], across[across > middle]):
        assert [int(np.ptp(side)) + 1 for side in dot] == pytest.approx([6 * unit] * 2, abs=2)


def test_bars_apart_leave_room_between_them():
    bars = apart([0.2, 0.8, 0.4])
    assert bars.heights.tolist() == [0.2, 0.0, 0.8, 0.0, 0.4]
    assert bars.edges.tolist() == pytest.approx([-0.4, 0.4, 0.6, 1.4, 1.6, 2.4])
    assert len(apart([]).heights) == 0


def test_nan_breaks_a_curve_and_what_has_no_logarithm_is_left_out(qapp, monkeypatch):
    load_fonts()
    broken = Plot(curves=(Curve([0, 1, 2, 3, 4], [1, 1, np.nan, 1, 1], role="leak"),), y_range=(0.0, 2.0))
    own, pixels = middle_of(monkeypatch, broken, (400, 300))
    line = role_colour("leak", LIGHT).rgb()
    assert pixels[round(own._y(1)), round(own._x(0.5))] == line
    assert pixels[round(own._y(1)), round(own._x(1.5))] != line
    stretches = own._stretches(Curve([1, 2, 3], [1, np.inf, 1]))
    assert [len(stretch) for stretch in stretches] == [1, 1]
    painted(Plot(curves=(Curve([1, 10], [0, 0.5]),), x_log=True, y_log=True))


def test_a_view_shows_its_plot_in_light_and_dark(qtbot):
    view = PlotView()
    qtbot.addWidget(view)
    view.resize(300, 200)
    empty = view.grab().toImage()
    view.show_plot(MANY)
    assert view.grab().toImage() != empty


# --------------------------------------------------------------------------------------------------------- small maps


def shown_map(qtbot, values, classes=None, **settings):
    view = SmallMap()
    qtbot.addWidget(view)
    view.resize(300, 320)
    values = np.asarray(values, np.float64)
    classes = np.full(values.shape, ORDINARY, np.uint8) if classes is None else classes
    view.show_matrix(values, classes, scale=settings.pop("scale", Scale(0.0, 1.0)), **settings)
    return view


def colour_at(view, row, col):
    """The colour near a cell's corner, where no number stands."""
    box, frame = view.map_box(), view.frame
    cell_w, cell_h = box.width / frame.cols[1], box.height / frame.rows[1]
    image = view.grab().toImage()
    return image.pixel(int(box.x + (col + 0.2) * cell_w), int(box.y + (row + 0.2) * cell_h))


@pytest.mark.parametrize("scale", [Scale(0.0, 1.0), Scale(-1.0, 1.0, diverging=True)])
def test_each_cell_of_a_small_map_has_the_tables_colour(qtbot, scale):
    values = np.array([[0.1, 0.9], [0.5, 0.3]])
    view = shown_map(qtbot, values, scale=scale, tokens=("猫", "吃"), title="a map", caption="below", sums=True)
    expected = colour.paint_values(values, np.full((2, 2), ORDINARY, np.uint8), scale, "viridis")
    for row, col in np.ndindex(2, 2):
        assert colour_at(view, row, col) == expected[row, col]
    assert view.frame.row_sums.tolist() == pytest.approx([1.0, 0.8])


def test_faded_rows_are_grey_and_what_has_not_grown_is_paper(qtbot):
    view = shown_map(qtbot, np.full((4, 4), 0.4), faded=2, row=2, grown=3)
    plain = colour.paint_values(np.array([[0.4]]), np.array([[ORDINARY]], np.uint8), Scale(0, 1), "viridis")[0, 0]
    assert colour_at(view, 2, 1) == plain
    pale = colour_at(view, 0, 1)
    red, green, blue = (pale >> shift & 0xFF for shift in (16, 8, 0))
    assert max(red, green, blue) - min(red, green, blue) <= 2
    assert colour_at(view, 1, 3) == colour_at(view, 3, 1) == LIGHT.card.rgb()


def test_a_larger_matrix_is_pooled_and_its_peak_stays(qtbot):
    values = np.zeros((1024, 1024))
    values[700, 333] = 1.0
    view = shown_map(qtbot, values)
    assert view.frame.level == 2
    assert view.frame.values[350, 166] == 1.0
    assert view.frame.values.sum() == 1.0


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3))
def test_pooling_takes_the_largest_ordinary_cell_and_all_classes(rows, cols, seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, cols))
    classes = random.choice([ORDINARY, MASKED], size=(rows, cols)).astype(np.uint8)
    pooled, kinds = pooled_max(values, classes, 2)
    for row, col in np.ndindex(pooled.shape):
        part = np.s_[2 * row : 2 * row + 2, 2 * col : 2 * col + 2]
        plain = values[part][classes[part] == ORDINARY]
        assert pooled[row, col] == (plain.max() if plain.size else 0)
        assert kinds[row, col] == np.bitwise_or.reduce(classes[part].ravel())


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3))
def test_of_numbers_on_either_side_of_0_the_one_furthest_from_it_stays(rows, cols, seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, cols))
    values[random.random((rows, cols)) < 0.1] = -np.inf
    classes = random.choice([ORDINARY, MASKED], size=(rows, cols)).astype(np.uint8)
    pooled, _ = pooled_furthest(values, classes, 2)
    for row, col in np.ndindex(pooled.shape):
        part = np.s_[2 * row : 2 * row + 2, 2 * col : 2 * col + 2]
        plain = values[part][classes[part] == ORDINARY]
        finite = plain[np.isfinite(plain)]
        expected = finite[np.abs(finite).argmax()] if finite.size else (-np.inf if plain.size else 0)
        assert pooled[row, col] == expected


def test_a_long_context_keeps_what_is_far_below_0(qtbot):
    row = DroppedRow()
    qtbot.addWidget(row)
    after = np.zeros(4096)
    after[::8], after[77] = 0.5, -3.0
    nothing = np.zeros(4096, bool)
    row.show_row(after, after, nothing, nothing, (), scale=None)
    assert row.frame.values.min() == -3.0


def test_a_row_tells_masked_and_dropped_cells_apart(qtbot):
    row = DroppedRow()
    qtbot.addWidget(row)
    row.resize(320, row.height())
    before = np.array([0.5, 0.3, 0.2, 0.0])
    masked, dropped = np.array([False, False, False, True]), np.array([False, True, False, True])
    row.show_row(before, np.array([1.0, 0.0, 0.4, 0.0]), masked, dropped, ("a", "b", "c", "d"))
    kinds = row.frame.classes[0].tolist()
    assert kinds == [ORDINARY, int(CellClass.DROPPED), ORDINARY, MASKED]  # a masked cell cannot be dropped as well
    image = row.grab().toImage()
    grounds = {image.pixel(72 * n + 6, 30) for n in (1, 3)}
    assert len(grounds) == 2
