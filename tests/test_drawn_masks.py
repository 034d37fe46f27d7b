import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz.attention import masks
from attnviz.engine import ComputationError, Engine
from attnviz.frames import Finished
from attnviz.spec import (
    MAX_DRAWN,
    Blocks,
    Causal,
    Drawn,
    Full,
    MaskFile,
    PadLeft,
    PadRight,
    Prefix,
    RandomQK,
    Request,
    SlidingWindow,
    SpecError,
    View,
    Viewport,
    as_drawn,
    edited,
    from_json,
    make_spec,
    parse_shape,
    shape_text,
    to_json,
    toggled,
    visible_run,
    visible_runs,
)

SIDE = 12
runs = st.lists(
    st.tuples(st.integers(0, SIDE - 1), st.integers(0, SIDE - 1), st.integers(0, SIDE - 1)).map(
        lambda run: (run[0], min(run[1:]), max(run[1:]))
    ),
    max_size=20,
)
drawn_masks = runs.map(lambda some: Drawn(runs=tuple(some)))
SHAPES = [
    Causal(), Full(), SlidingWindow(width=3), Prefix(length=4), PadLeft(count=2), PadRight(count=2),
    Blocks(lengths=(3, 4)),
]  # fmt: skip


def plane_of(some, n_queries=SIDE, n_keys=SIDE):
    plane = np.zeros((n_queries, n_keys), bool)
    for row, first, last in some:
        if row < n_queries:
            plane[row, first : last + 1] = True
    return plane


@given(runs)
def test_equal_masks_are_equal_however_they_were_drawn(some):
    drawn = Drawn(runs=tuple(some))
    cell_by_cell = Drawn(runs=tuple((row, col, col) for row, col in zip(*np.nonzero(plane_of(some)), strict=True)))
    assert drawn == cell_by_cell
    assert hash(drawn) == hash(cell_by_cell)
    assert list(drawn.runs) == sorted(drawn.runs)
    assert np.array_equal(plane_of(drawn.runs), plane_of(some))


@given(drawn_masks, st.integers(1, 14), st.integers(0, 4))
def test_the_mask_is_what_was_drawn_cut_at_the_map(drawn, n_queries, more):
    n_keys = n_queries + more
    mask = masks.shaped(drawn, n_queries, n_keys)
    plane = torch.from_numpy(plane_of(drawn.runs, n_queries, n_keys))
    assert torch.equal(mask.hidden(), ~plane)
    assert torch.equal(mask.n_visible(), plane.sum(1))
    cells = torch.arange(1.0 * n_queries * n_keys).view(n_queries, n_keys)
    assert torch.equal(mask.fill(cells.clone(), -9.0), cells.masked_fill(~plane, -9.0))
    assert torch.equal(mask.add(cells.clone(), -9.0), cells - 9.0 * ~plane)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [(7, 7), (3, 9), (1, 1)])
def test_any_shape_can_be_gone_on_drawing_from(shape, size):
    drawn = as_drawn(shape, *size)
    assert torch.equal(masks.shaped(drawn, *size).hidden(), masks.shaped(shape, *size).hidden())
    assert as_drawn(drawn, *size) == drawn
    for row in range(size[0]):
        first, end = visible_run(shape, row + size[1] - size[0], size[1])
        assert visible_runs(drawn, row, *size) == visible_runs(shape, row, *size) == (((first, end),) * (first < end))


@given(drawn_masks, st.integers(0, SIDE - 1), st.integers(0, SIDE - 1), st.integers(0, SIDE), st.booleans())
def test_drawing_over_some_keys_of_a_row_changes_those_alone(drawn, row, first, end, visible):
    plane = plane_of(drawn.runs)
    plane[row, first:end] = visible
    after = toggled(drawn, row, range(first, end), visible)
    assert np.array_equal(plane_of(after.runs), plane)
    assert toggled(after, row, range(first, end), visible) == after


@given(drawn_masks)
def test_a_drawn_mask_is_said_as_it_is_read(drawn):
    assert parse_shape(shape_text(drawn)) == drawn
    spec = make_spec(mask_shape=drawn)
    assert json.loads(to_json(spec))["mask_shape"] == {"kind": "drawn", "runs": [list(run) for run in drawn.runs]}
    assert from_json(to_json(spec))[0] == spec


def test_the_form_of_the_command_line():
    assert parse_shape("drawn:0:0-0,1:0-1,2:1-2") == Drawn(runs=((0, 0, 0), (1, 0, 1), (2, 1, 2)))
    assert parse_shape("drawn:") == Drawn()
    assert parse_shape(" drawn:1:3-5, 1:0-2 ") == Drawn(runs=((1, 0, 5),))


@pytest.mark.parametrize(
    "text", ["drawn", "drawn:0", "drawn:0:0", "drawn:0:0-", "drawn:0:-1-2", "drawn:a:0-1", "drawn:0:0-1;1:0-1"]
)
def test_what_is_no_run_is_refused(text):
    with pytest.raises(SpecError, match="drawn:ROW:FIRST-LAST") as caught:
        parse_shape(text)
    assert caught.value.field == "mask_shape"


@pytest.mark.parametrize("run", [(0, 3, 2), (-1, 0, 0), (0, -1, 0), (MAX_DRAWN, 0, 0), (0, 0, MAX_DRAWN)])
def test_an_impossible_run_is_refused(run):
    with pytest.raises(SpecError, match="give row:first-last"):
        Drawn(runs=(run,))


def test_a_single_run_for_several_rows_is_not_asked_of_what_was_drawn():
    for shape in Drawn(), MaskFile(path="m.npy", sha256="0"):
        with pytest.raises(TypeError, match="several runs"):
            visible_run(shape, 0, 3)


def test_a_map_that_is_too_long_is_refused_in_words():
    with pytest.raises(SpecError, match=r"at most 4,096 tokens, but there are 4,097"):
        as_drawn(Causal(), 4097, 4097)
    spec = make_spec(RandomQK(length=5000), num_heads=1, d_out=8, mask_shape=Drawn(runs=((0, 0, 0),)))
    engine = Engine()

    def drawn(spec):
        request = Request(spec=spec, view=View(), viewport=Viewport(pixels=(32, 32)), generation=1)
        return any(isinstance(message, Finished) for message in engine.stream(request))

    with pytest.raises(ComputationError, match=r"drawn for at most 4,096 tokens, but there are 5,000"):
        drawn(spec)
    assert drawn(edited(spec, mask="none"))  # which ignores the shape
    engine.close()
