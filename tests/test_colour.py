import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz import colour
from attnviz.frames import CellClass, Scale
from attnviz.spec import WEIGHT_STAGES

ORDINARY = int(CellClass.ORDINARY)
TABLES = ("viridis", "cividis", "magma", "inferno", "greys", "balance")
LOOKS = (CellClass.NAN, CellClass.ZERO, CellClass.DROPPED, CellClass.MASKED)


def oklab(rgb):
    """Where colours lie in OKLab, in which equal distances look about equally different."""
    channels = np.array([[c >> 16 & 255, c >> 8 & 255, c & 255] for c in np.atleast_1d(rgb).tolist()]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    cones = linear @ np.array(
        [
            [0.4122214708, 0.2119034982, 0.0883024619],
            [0.5363325363, 0.6806995451, 0.2817188376],
            [0.0514459929, 0.1073969566, 0.6299787005],
        ]
    )
    return np.cbrt(cones) @ np.array(
        [
            [0.2104542553, 1.9779984951, 0.0259040371],
            [0.7936177850, -2.4285922050, 0.7827717662],
            [-0.0040720468, 0.4505937099, -0.8086757660],
        ]
    )


def painted(values, classes=None, scale=None, colours="viridis", dtype=np.float32):
    values = np.asarray(values, dtype)
    classes = np.full(values.shape, ORDINARY, np.uint8) if classes is None else np.asarray(classes, np.uint8)
    return colour.paint_values(values, classes, scale or Scale(0.0, 1.0), colours)


# ----------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", TABLES)
def test_tables_hold_256_opaque_colours_that_nobody_can_change(name):
    table = colour.table(name)
    assert table.shape == (256,)
    assert table.dtype == np.uint32
    assert (table >> 24 == 0xFF).all()
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 0


def test_viridis_is_viridis():
    assert colour.table("viridis")[[0, 255]].tolist() == [0xFF440154, 0xFFFDE725]


# ----------------------------------------------------------------------------------------------------------- scales


@pytest.mark.parametrize("stage", sorted(WEIGHT_STAGES))
def test_weights_are_linear_up_to_32_keys_and_logarithmic_beyond(stage):
    assert colour.choose_scale(stage, "auto", 32, 0.01, 0.8) == Scale(0.0, 0.8)
    beyond = colour.choose_scale(stage, "auto", 1000, 0.0, 1.0)
    assert (beyond.curve, beyond.high) == ("log", 1.0)
    assert beyond.low == pytest.approx(1e-4)


def test_each_norm_has_its_range():
    def choose(norm, n_keys=6, low=0.1, high=0.5, percentiles=None):
        return colour.choose_scale("weights", norm, n_keys, low, high, percentiles)

    assert choose("linear", n_keys=1000) == Scale(0.0, 0.5)
    assert choose("unit", n_keys=1000) == Scale(0.0, 1.0)
    assert choose("log").curve == "log"
    assert choose("per-head", n_keys=1000) == choose("auto", n_keys=1000)
    assert choose("per-row") == Scale(0.0, 1.0, quantity=colour.ROW_SHARE)
    assert choose("percentile", percentiles=(0.2, 0.4)) == Scale(0.2, 0.4)
    uniform = choose("uniform", n_keys=1000, high=30.0)
    assert (uniform.low, uniform.curve, uniform.quantity) == (0.1, "log", colour.UNIFORM)


@pytest.mark.parametrize("stage", ["scores", "scaled_scores", "masked_scores"])
@pytest.mark.parametrize("norm", ["auto", "log", "uniform", "unit"])
def test_scores_are_linear_and_reach_down_to_their_minimum(stage, norm):
    assert colour.choose_scale(stage, norm, 1000, -3.0, 5.0) == Scale(-3.0, 5.0)
    assert colour.choose_scale(stage, norm, 1000, 2.0, 5.0) == Scale(0.0, 5.0)


@pytest.mark.parametrize("stage", ["inputs", "queries", "keys", "values", "context", "joined", "output"])
def test_vectors_diverge_about_zero(stage):
    assert colour.choose_scale(stage, "auto", 6, -3.0, 1.0) == Scale(-3.0, 3.0, diverging=True)


@given(
    stage=st.sampled_from(["weights", "scores", "values", "row_sums"]),
    norm=st.sampled_from(["auto", "linear", "log", "uniform", "per-head", "per-row", "percentile", "unit"]),
    n_keys=st.sampled_from([1, 2, 32, 33, 131_072]),
    ends=st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)),
)
def test_every_scale_has_an_extent_and_ticks_that_rise_on_it(stage, norm, n_keys, ends):
    low, high = sorted(ends)
    scale = colour.choose_scale(stage, norm, n_keys, low, high, (low, high))
    assert scale.low < scale.high
    assert scale.curve == "linear" or scale.low > 0
    ticks = colour.quantity_ticks(scale)
    places = [place for place, _ in ticks]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, 1.0)
    assert all(label for _, label in ticks)


def test_ticks_of_a_log_scale_are_decades():
    scale = colour.choose_scale("weights", "auto", 1000, 0.0, 1.0)
    assert [label for _, label in colour.quantity_ticks(scale)] == ["0.0001", "0.001", "0.01", "0.1", "1"]


def test_ticks_are_written_as_cells_write_their_numbers():
    said = {100.0: "100", -125.0: "−125", 9999.0: "9999", 10_000.0: "1e4", 0.25: "0.25", 1e-5: "1e−5", 0.0: "0"}
    assert {value: colour.number_label(value) for value in said} == said


# ----------------------------------------------------------------------------------------------------------- pixels


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20))
def test_an_ordinary_value_takes_the_nearest_colour(values):
    expected = colour.table("viridis")[(np.array(values, np.float32) * np.float32(255) + np.float32(0.5)).astype(int)]
    np.testing.assert_array_equal(painted([values])[0], expected)


def test_logarithmic_values_lie_at_their_decade():
    pixels = painted([[1e-5, 1e-4, 1e-2, 1.0, 3.0]], scale=Scale(1e-4, 1.0, "log"))
    np.testing.assert_array_equal(pixels[0], colour.table("viridis")[[0, 0, 128, 255, 255]])


def test_a_diverging_scale_has_its_own_table():
    pixels = painted([[-2.0, 0.0, 2.0]], scale=Scale(-2.0, 2.0, diverging=True))
    np.testing.assert_array_equal(pixels[0], colour.table("balance")[[0, 128, 255]])


@pytest.mark.parametrize("curve", ["linear", "log"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_that_are_not_finite_are_painted_without_a_warning(curve, dtype):
    values = np.array([[np.nan, np.inf, -np.inf, 0.0, -1.0]], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels = colour.paint_values(values, np.full(values.shape, ORDINARY, np.uint8), Scale(0.1, 1, curve), "viridis")
    np.testing.assert_array_equal(pixels[0], colour.table("viridis")[[0, 255, 0, 0, 0]])


@pytest.mark.parametrize(("dtype", "most"), [(np.float64, 1.7e308), (np.float64, 8e307), (np.float32, 3e38)])
@pytest.mark.parametrize("diverging", [True, False])
def test_a_range_longer_than_any_number_has_its_true_colours_and_ticks(dtype, most, diverging):
    values = np.array([[-most, -most / 2, 0, most / 2, most]], dtype)
    scale = Scale(-most, most, diverging=diverging)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels = painted(values, scale=scale, dtype=dtype)
        ticks = colour.quantity_ticks(scale)
    table = colour.table("balance" if diverging else "viridis")
    np.testing.assert_array_equal(pixels[0, [0, 1, 3, 4]], table[[0, 64, 191, 255]])
    assert pixels[0, 2] in table[127:129]  # between two steps
    assert (0.5, "0") in ticks
    assert ticks[-1] == (1.0, colour.number_label(most))
    np.testing.assert_array_equal(colour.recoloured(pixels, scale, scale, "viridis"), pixels)


def test_numbers_beside_a_bar_are_short():
    told = {1e308: "1e308", -1e-5: "−1e−5", -1e-310: "−1e−310", 1e10: "1e10", 0.25: "0.25", 0.0: "0"}
    assert {number: colour.number_label(number) for number in told} == told


def test_every_other_class_takes_its_ground_in_the_order_in_which_classes_are_shown():
    classes = [[int(kind) for kind in CellClass] + [ORDINARY | 2 | 32, 4 | 1, 2 | 8, 8 | 32]]
    pixels = painted(np.ones((1, 10)), classes)[0]
    first = colour.table("viridis")[255]
    grounds = [first if kind == ORDINARY else colour.GROUNDS[kind] for kind in CellClass]
    shown = [first, colour.GROUNDS[CellClass.NAN], colour.GROUNDS[CellClass.ZERO], colour.GROUNDS[CellClass.DROPPED]]
    np.testing.assert_array_equal(pixels, [*grounds, *shown])


def test_painting_writes_into_the_array_it_is_given():
    out = np.zeros((2, 2), np.uint32)
    assert colour.paint_values(np.eye(2), np.full((2, 2), ORDINARY, np.uint8), Scale(0, 1), "greys", out) is out
    assert out[0, 0] == colour.table("greys")[255]


def test_half_of_a_random_long_map_stands_out_from_the_lowest_colour():
    random = np.random.default_rng(0)
    scores = random.normal(size=(1024, 1024)) + np.where(np.tri(1024, dtype=bool), 0.0, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    scale = colour.choose_scale("weights", "auto", 1024, 0.0, float(weights.max()))
    visible = painted(weights, scale=scale)[np.tri(1024, dtype=bool)]
    lowest = int(colour.table("viridis")[0])
    apart = np.max([np.abs((visible >> s & 255).astype(int) - (lowest >> s & 255)) for s in (0, 8, 16)], axis=0)
    assert (apart >= 16).mean() > 0.5


@pytest.mark.parametrize("length", [1, 2, 257, 1000, 1009])
def test_one_nan_among_many_cells_is_seen_at_any_zoom(length):
    classes = np.full((length, length), int(CellClass.MASKED), np.uint8)
    classes[np.tri(length, dtype=bool)] = ORDINARY
    classes[length // 2, length // 3] = CellClass.NAN
    pixels = painted(np.full((length, length), 0.5), classes)
    pooled = colour.pool_pixels(pixels, Scale(0, 1), "viridis", 64)
    assert pooled.shape == (-(-length // 64),) * 2
    assert (pooled == colour.GROUNDS[CellClass.NAN]).sum() == 1
    assert pooled[length // 2 // 64, length // 3 // 64] == colour.GROUNDS[CellClass.NAN]


@pytest.mark.parametrize("colours", TABLES)
def test_pooled_pixels_are_the_brightest(colours):
    scale = Scale(-1, 1, diverging=True) if colours == "balance" else Scale(-1, 1)
    values = np.random.default_rng(1).uniform(-1, 1, (9, 7)).astype(np.float32)
    largest = np.array([[values[r : r + 2, c : c + 2].max() for c in range(0, 7, 2)] for r in range(0, 9, 2)])
    np.testing.assert_array_equal(
        colour.pool_pixels(painted(values, scale=scale, colours=colours), scale, colours, 2),
        painted(largest, scale=scale, colours=colours),
    )


# ------------------------------------------------------------------------------------------------------------ looks


def test_the_four_looks_are_told_apart_without_their_marks():
    for one, other in itertools.combinations(LOOKS, 2):
        apart = np.linalg.norm(oklab(colour.GROUNDS[one]) - oklab(colour.GROUNDS[other]))
        assert apart > 0.12, (one, other)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("greys", "balance")])
@pytest.mark.parametrize("kind", LOOKS)
def test_no_weight_looks_like_a_cell_without_one(name, kind):
    assert np.linalg.norm(oklab(colour.table(name)) - oklab(colour.GROUNDS[kind]), axis=1).min() > 0.07


@pytest.mark.parametrize("name", TABLES)
def test_no_ground_is_a_colour_of_a_table(name):
    assert not set(colour.GROUNDS.values()) & set(colour.table(name).tolist())


@pytest.mark.parametrize("name", TABLES)
def test_text_is_legible_on_every_colour(name):
    ink = {"black": 0x000000, "white": 0xFFFFFF}
    for rgb in [*colour.table(name).tolist(), *colour.GROUNDS.values()]:
        assert colour.contrast(rgb, ink[colour.contrast_text(rgb)]) >= 4.5


def test_contrast_is_that_of_wcag():
    assert colour.contrast(0x000000, 0xFFFFFF) == pytest.approx(21)
    assert colour.contrast(0x767676, 0xFFFFFF) == pytest.approx(4.54, abs=0.01)
