"""Weights that one already has: shapes and kinds that are taken, sentences for others, and frames as the engine's."""

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st

from attnviz import colour
from attnviz.attention.pooling import Panel, PanelPooler, Region
from attnviz.figure.labels import axis_labels
from attnviz.frames import CellClass, Finished, Frame, Outline, Probe, ProbeAnswer, RowAnswer, level_for
from attnviz.given.arrays import read
from attnviz.given.frames import GivenEngine, stand_in
from attnviz.spec import Causal, Drawn, Request, View, Viewport


def weights_of(*shape, causal=False, seed=0):
    scores = np.random.default_rng(seed).normal(size=shape) * 2
    if causal:
        scores[..., ~np.tri(*shape[-2:], shape[-1] - shape[-2], dtype=bool)] = -np.inf
    parts = np.exp(scores)
    return (parts / parts.sum(-1, keepdims=True)).astype(np.float32)


# ------------------------------------------------------------------------------------------------------------ shapes


@pytest.mark.parametrize(
    ("weights", "layers", "shape"),
    [
        (weights_of(4, 6), 1, (1, 4, 6)),
        (weights_of(3, 4, 6), 1, (3, 4, 6)),
        (weights_of(2, 3, 4, 6), 2, (3, 4, 6)),  # layers, never a batch
        (weights_of(1, 3, 4, 6), 1, (3, 4, 6)),
        (weights_of(5, 1, 3, 4, 6), 5, (3, 4, 6)),  # attentions stacked
        (tuple(torch.from_numpy(weights_of(1, 3, 4, 6)) for _ in range(5)), 5, (3, 4, 6)),  # as transformers has them
        ([weights_of(3, 4, 6)] * 2, 2, (3, 4, 6)),
        ([weights_of(4, 6)] * 2, 1, (2, 4, 6)),  # heads
        ([[weights_of(4, 6)] * 3] * 2, 2, (3, 4, 6)),
        ([[torch.from_numpy(weights_of(4, 6)).bfloat16()] * 3] * 2, 2, (3, 4, 6)),
        ([[0.25, 0.75], [1, 0]], 1, (1, 2, 2)),
        ([[[0.25, 0.75], [1, 0]]] * 3, 1, (3, 2, 2)),
        (weights_of(10, 3), 1, (1, 10, 3)),  # more queries than keys
        (weights_of(6, 4).T, 1, (1, 4, 6)),
        (weights_of(3, 8, 8)[:, ::2, 1:7], 1, (3, 4, 6)),
    ],
)  # fmt: skip
def test_shapes_that_are_taken(weights, layers, shape):
    found = read(weights)
    assert len(found.layers) == layers
    assert all(layer.shape == shape for layer in found.layers)


def test_what_is_taken_is_where_it_was():
    whole = weights_of(2, 3, 8, 8)
    found = read(torch.from_numpy(whole)[:, :, ::2, 1:7])
    for layer in range(2):
        for head in range(3):
            assert np.array_equal(found.cells(layer, head, (1, 4)), whole[layer, head, ::2, 1:7][1:4])


@pytest.mark.parametrize(
    ("weights", "error", "sentence"),
    [
        (np.ones(5), ValueError, r"weights has shape \(5,\): give \(queries, keys\), \(heads, queries, keys\)"),
        (np.ones((2, 3, 4, 5, 6, 7)), ValueError, r"has shape \(2, 3, 4, 5, 6, 7\)"),
        (np.ones((3, 2, 4, 5, 5)), ValueError, r"a batch of 2: give one item, such as weights\[:, 0\]"),
        ([np.ones((2, 3, 4, 4))] * 2, ValueError, r"weights\[0\] has shape \(2, 3, 4, 4\), a batch of 2: give"),
        ([np.ones((3, 4, 4)), np.ones((3, 4, 5))], ValueError, r"weights\[1\] has shape \(3, 4, 5\), but weights\[0\]"),
        ([[np.ones((4, 4)), np.ones((4, 5))]], ValueError, r"heads of the shapes \(4, 4\), \(4, 5\)"),
        ([[0.5, 0.5], [1.0]], ValueError, "its rows differ in length"),
        ((), ValueError, 'output_attentions=True and attn_implementation="eager"'),
        ((None, None), ValueError, "holds None"),
        (np.ones((0, 3)), ValueError, "which holds no numbers"),
        (np.ones((3, 3), complex), TypeError, "complex numbers: give real numbers"),
        (np.array([["a"]]), TypeError, "give real numbers"),
        ({"weights": 1}, TypeError, "of type dict"),
        ("weights", TypeError, "of type str"),
        (torch.ones(3, 3, device="meta"), ValueError, "the device meta"),
        (np.broadcast_to(np.float32(0.5), (1025, 2, 2)), ValueError, "at most 1,024 heads"),
    ],
)  # fmt: skip
def test_what_is_refused_says_what_would_fit(weights, error, sentence):
    with pytest.raises(error, match=sentence):
        read(weights)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "bool", "uint8", "int64"]
)
def test_tensors_of_every_dtype(dtype):
    numbers = torch.tensor([[1.0, 0.0], [0.5, 0.25]]).to(getattr(torch, dtype))
    found = read(numbers)
    assert np.array_equal(found.cells(0, 0, (0, 2)), numbers.double().numpy())


def test_tensors_with_gradients_sparse_and_conjugate_ones():
    leaf = torch.eye(3, requires_grad=True)
    assert np.array_equal(read(leaf * 0.5).cells(0, 0, (0, 3)), np.eye(3) / 2)
    assert np.array_equal(read(torch.eye(3).to_sparse()).cells(0, 0, (0, 3)), np.eye(3))
    assert np.array_equal(read(torch.eye(3)._neg_view()).cells(0, 0, (0, 3)), -np.eye(3))


def test_doubles_and_large_integers_keep_their_digits():
    assert read(np.full((1, 1), 1 / 3)).cells(0, 0, (0, 1))[0, 0] == 1 / 3
    assert read(np.full((1, 1), 2**40 + 1)).cells(0, 0, (0, 1))[0, 0] == 2**40 + 1


# ------------------------------------------------------------------------------------------------------ names and mask


@pytest.mark.parametrize(
    ("shape", "tokens", "rows", "cols"),
    [
        ((2, 2), ["a", "b"], ["a", "b"], ["a", "b"]),
        ((2, 4), list("abcd"), ["c", "d"], list("abcd")),  # the last of the tokens
        ((2, 4), None, ["2", "3"], ["0", "1", "2", "3"]),
        ((4, 2), None, ["0", "1", "2", "3"], ["0", "1"]),
        ((4, 2), (list("abcd"), ["x", "y"]), list("abcd"), ["x", "y"]),
        ((2, 2), np.array([7, 8]), ["7", "8"], ["7", "8"]),
    ],
)
def test_names_of_rows_and_columns(shape, tokens, rows, cols):
    outline = GivenEngine(read(weights_of(*shape), tokens)).outline(0)
    found = axis_labels(outline)
    assert (list(found[0]), list(found[1])) == (rows, cols)


@pytest.mark.parametrize(
    ("shape", "tokens", "sentence"),
    [
        ((2, 3), ["a", "b"], "tokens has 2 names, but there are 3 keys: give one name a key"),
        ((4, 2), ["a", "b"], "there are 4 queries, which are more: give two lists"),
        ((4, 2), (["a"], ["x", "y"]), "tokens has 1 names of queries, but there are 4"),
    ],
)
def test_names_that_do_not_fit(shape, tokens, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(weights_of(*shape), tokens)
    with pytest.raises(TypeError, match="give a list of names"):
        read(weights_of(2, 2), "ab")


@pytest.mark.parametrize(
    ("mask", "error", "sentence"),
    [
        ("triangle", ValueError, 'give "causal"'),
        (np.ones((3, 3)), TypeError, 'dtype float64: give "causal", or a bool array'),
        (np.ones((2, 3), bool), ValueError, r"mask has shape \(2, 3\): give \(3, 3\)"),
    ],
)
def test_masks_that_are_refused(mask, error, sentence):
    with pytest.raises(error, match=sentence):
        read(weights_of(3, 3), mask=mask)


# ------------------------------------------------------------------------------------------------------------- frames


def frames_of(weights, viewport=None, mask=None, view=None, heads=(), tokens=None):
    given = read(weights, tokens, mask)
    return GivenEngine(given, heads).picture(len(given.layers) - 1, view or View(), viewport or Viewport())


def pooled_by_the_engine(cells, masked, rows, cols, pixels):
    shape = cells.shape
    level = max(level_for(rows[1] - rows[0], pixels[0]), level_for(cols[1] - cols[0], pixels[1]))
    region = Region.aligned(rows, cols, shape, level)
    panel = Panel("head:0", 0, torch.from_numpy(cells), None if masked is None else torch.from_numpy(masked))
    return PanelPooler(region, nonnegative=True).pool(panel)


@drawn(
    st.tuples(st.integers(1, 40), st.integers(1, 40)), st.sampled_from([(5, 5), (16, 16), (64, 64), (3, 50)]),
    st.sets(st.sampled_from(["nan", "zeros", "mask", "part"])), st.integers(0, 5),
)  # fmt: skip
def test_frames_are_the_engines(shape, pixels, with_, seed):
    random = np.random.default_rng(seed)
    cells = weights_of(*shape, seed=seed)
    visible = random.random(shape) < 0.6 if "mask" in with_ else None
    if visible is not None:
        cells[~visible] = 0
    if "zeros" in with_:
        cells[random.random(shape) < 0.2] = 0
    if "nan" in with_:
        cells[random.random(shape) < 0.1] = np.nan
    whole = (0, shape[0]), (0, shape[1])
    rows, cols = ((shape[0] // 3, shape[0]), (0, 1 + shape[1] // 2)) if "part" in with_ else whole
    frame = frames_of(cells, Viewport(pixels=pixels, rows=rows, cols=cols), visible).heads[0]
    wanted = pooled_by_the_engine(cells, None if visible is None else ~visible, rows, cols, pixels)
    assert (frame.rows, frame.cols, frame.level) == (wanted.region.rows, wanted.region.cols, wanted.region.level)
    assert np.array_equal(frame.classes, wanted.classes)
    ordinary = frame.classes & CellClass.ORDINARY != 0
    assert np.array_equal(frame.values[ordinary], wanted.values[ordinary], equal_nan=True)
    assert frame.counts == wanted.counts
    assert np.allclose(frame.row_sums, wanted.row_sums, rtol=1e-6, equal_nan=True)


def test_one_scale_for_all_heads_and_only_those_asked_for():
    weights = weights_of(3, 6, 6)
    weights[1] *= 0.1
    picture = frames_of(weights)
    assert len({frame.scale for frame in picture.heads}) == 1
    assert picture.heads[0].scale.high == weights.max()
    some = frames_of(weights, heads=(2, 1))
    assert [frame.panel for frame in some.heads] == ["head:2", "head:1"]
    assert np.array_equal(some.heads[0].values, weights[2])


def test_long_maps_take_the_logarithmic_scale_of_the_engine():
    scale = frames_of(weights_of(40, 40)).heads[0].scale
    assert (scale.curve, scale.low) == ("log", 0.1 / 40)


def test_what_no_weight_can_be_is_shown_as_scores():
    numbers = np.array([[-1.0, 2.0], [np.inf, -np.inf]])
    picture = frames_of(numbers)
    frame = picture.heads[0]
    assert (picture.outline.stage, frame.stage, frame.row_sums) == ("scores", "scores", None)
    assert (frame.scale.low, frame.scale.high, frame.scale.diverging) == (-2.0, 2.0, True)
    assert (frame.classes == CellClass.ORDINARY).all()
    assert frames_of(np.full((2, 2), 1.004)).outline.stage == "weights"  # rounded in bfloat16
    assert frames_of(np.full((2, 2), np.nan)).outline.stage == "weights"


def test_a_pixel_of_scores_has_the_one_furthest_from_0():
    scores = np.zeros((8, 8))
    scores[0, :2], scores[7, 7] = (1.0, -4.0), 2.0
    frame = frames_of(scores, Viewport(pixels=(2, 2))).heads[0]
    assert frame.values.tolist() == [[-4.0, 0.0], [0.0, 2.0]]


def test_scores_near_the_largest_of_float64_have_colours_of_their_own():
    found = read(np.array([[1e308, -1e308], [0, 1]]))
    rgb = GivenEngine(found).picture(0, View(), Viewport(pixels=(2, 2))).frames["head:0"].rgb
    table = colour.table("balance")
    assert (rgb[0, 0], rgb[0, 1]) == (table[-1], table[0])
    assert rgb[1, 0] == rgb[1, 1] in table[127:129]


def test_zeros_are_masked_only_where_somebody_says_so():
    weights = weights_of(2, 5, 5, causal=True)
    plain, masked = frames_of(weights), frames_of(weights, mask="causal")
    assert [(frame.counts.zero, frame.counts.masked) for frame in plain.heads] == [(10, 0)] * 2
    assert [(frame.counts.zero, frame.counts.masked) for frame in masked.heads] == [(0, 10)] * 2
    assert not masked.outline.has_future


def test_what_a_mask_hides_and_is_not_zero_is_framed():
    weights = weights_of(2, 5, 5, causal=True)
    weights[1, 1, 3] = 0.25
    picture = frames_of(weights, mask="causal")
    assert (picture.outline.has_future, picture.outline.future_hidden) == (True, False)
    assert picture.outline.mask_shape == Causal()
    assert [frame.counts.future for frame in picture.heads] == [0, 1]
    own = np.ones((5, 5), bool)
    own[2, 1:3] = False
    shape = frames_of(weights, mask=own).outline.mask_shape
    assert isinstance(shape, Drawn)
    assert [run for run in shape.runs if run[0] == 2] == [(2, 0, 0), (2, 3, 4)]


# ------------------------------------------------------------------------------------------------------- as an engine


def test_the_stream_and_exact_numbers():
    weights = weights_of(2, 3, 4, 6)
    engine = GivenEngine(read(weights))
    spec = stand_in(read(weights), 1)
    assert spec != stand_in(read(weights), 0)
    request = Request(spec=spec, view=View(), viewport=Viewport(heads=(2,)), generation=7)
    messages = [message for message in engine.stream(request, lambda: False) if message is not None]
    assert [type(message) for message in messages] == [Outline, Frame, Frame, Frame, Finished]
    assert {message.generation for message in messages} == {7}
    assert messages[1].panel == "head:2"
    row, cell = engine.probe(Probe(7, 1, 3, 2, whole_row=True))
    assert isinstance(row, RowAnswer)
    assert np.array_equal(row.values, weights[1, 2, 1])
    assert isinstance(cell, ProbeAnswer)
    assert cell.values == tuple(weights[1, :, 1, 3].tolist())
    assert set(cell.classes) == {CellClass.ORDINARY}


def test_a_stream_that_is_called_off_ends():
    engine = GivenEngine(read(weights_of(3, 4, 4)))
    request = Request(spec=stand_in(read(weights_of(3, 4, 4)), 0), view=View(), viewport=Viewport(), generation=1)
    assert [type(message) for message in engine.stream(request, lambda: True)] == [Outline]
