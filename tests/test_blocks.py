"""How blocks share a sheet: arithmetic of parts, arrangements, tables that end early."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_words import outside, overlapping, painted

from attnviz.figure.arranging import arranged, shared
from attnviz.figure.block_sheet import BlocksDrawing, Contents
from attnviz.figure.blocks import CountsBlock, Headed, PlotBlock, TableBlock
from attnviz.figure.counts import Count
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.matrix_map import matrix_of
from attnviz.figure.places import Box
from attnviz.figure.plots import Curve, Plot
from attnviz.figure.tables import Entry, table_of
from attnviz.figure.units import unit_of
from attnviz.frames import CellClass, Scale
from attnviz.spec import Paper


@dataclass
class Plain:
    """A block of given needs."""

    width: tuple[float, float]
    height: tuple[float, float]
    weight: float = 1.0

    def widths(self, unit):
        return self.width[0] * unit, self.width[1] * unit

    def heights(self, width, unit):
        return self.height[0] * unit, self.height[1] * unit

    def worth(self, size, unit):
        return max(size[0] * size[1], 1.0)


ends = st.tuples(st.floats(1, 100), st.floats(0, 300)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.floats(0, 900), st.lists(st.tuples(ends, st.floats(0.1, 5)), min_size=1, max_size=5))
def test_parts_keep_within_their_ends_and_take_all_there_is(total, parts):
    ranges, weights = [part for part, _ in parts], [weight for _, weight in parts]
    found = shared(total, ranges, weights)
    if found is None:
        assert total < sum(least for least, _ in ranges)
        return
    assert all(least - 1e-6 <= one <= most + 1e-6 for one, (least, most) in zip(found, ranges, strict=True))
    assert sum(found) == pytest.approx(min(total, sum(most for _, most in ranges)), abs=1e-3) or sum(found) <= total


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(Plain, ends, ends, st.floats(0.2, 3)), min_size=1, max_size=5), st.floats(50, 900),
       st.floats(50, 900))  # fmt: skip
def test_arranged_blocks_are_disjoint_and_inside(blocks, width, height):
    area = Box(10, 20, width, height)
    boxes = arranged(blocks, area, 1.0, 8.0)
    if boxes is None:
        return
    assert all(area.holds(Box(box.x + 1e-3, box.y + 1e-3, box.width - 2e-3, box.height - 2e-3)) for box in boxes)
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    for block, box in zip(blocks, boxes, strict=True):
        assert block.width[0] - 1e-3 <= box.width <= block.width[1] + 1e-3
        assert box.height <= block.height[1] + 1e-3


def test_wide_blocks_stand_below_each_other_and_narrow_ones_side_by_side():
    wide = [Plain((300, math.inf), (50, math.inf))] * 2
    boxes = arranged(wide, Box(0, 0, 400, 400), 1.0, 10.0)
    assert boxes[0].bottom < boxes[1].y
    narrow = [Plain((50, math.inf), (250, math.inf))] * 2
    boxes = arranged(narrow, Box(0, 0, 400, 400), 1.0, 10.0)
    assert boxes[0].right < boxes[1].x


# ------------------------------------------------------------------------------------------------------- on a sheet


def long_table(rows):
    lines = [[f"row {n}", Entry("1.00", "leak" if n % 2 else "ink"), "12 %"] for n in range(rows)]
    return TableBlock(
        table_of(["row", "sum", "share"], lines, lit=1), "the table", Headed("A table", "and a note"), 0.5
    )


def curve(n_curves=3):
    xs = np.linspace(0, 1, 50)
    roles = ("accent", "leak", "teal", "amber")
    curves = tuple(Curve(xs, xs**n, f"the power {n} of x", roles[n % 4]) for n in range(n_curves))
    return PlotBlock(Plot(curves=curves, x_label="x", y_label="what it comes to"), "the plot", Headed(note="a note"))


def maps(count=2, side=5, *, diverging=False):
    values = np.linspace(-1 if diverging else 0, 1, side * side).reshape(side, side)
    kinds = np.full(values.shape, int(CellClass.ORDINARY), np.uint8)
    kinds[0, -1] = int(CellClass.MASKED)
    scale = Scale(-1.0, 1.0, diverging=True) if diverging else Scale(0.0, 1.0)
    tokens = tuple("猫吃鱼ab"[:side]) if side <= 5 else ()
    made = tuple(
        matrix_of(values, kinds, scale=scale, tokens=tokens, title=f"map {n}", caption="a caption", sums=not diverging)
        for n in range(count)
    )
    return MapsBlock(made, "the maps")


def counts():
    return CountsBlock(tuple(Count(f"way {n}", f"{n}² = {n * n}", n * n, 100) for n in (3, 7, 10)), "the counts")


@settings(max_examples=12, deadline=None)
@given(
    width=st.integers(320, 3840), height=st.integers(240, 2160), dpi=st.sampled_from([None, 150.0, 300.0]),
    theme=st.sampled_from(["light", "dark", "print", "transparent"]), rows=st.integers(1, 60),
    n_maps=st.integers(1, 5), blocks=st.integers(1, 15),
)  # fmt: skip
def test_any_blocks_on_any_sheet_stay_apart(qapp, width, height, dpi, theme, rows, n_maps, blocks):
    every = (maps(n_maps), curve(), long_table(rows), counts())
    chosen = tuple(block for n, block in enumerate(every) if blocks >> n & 1)
    contents = Contents(
        "A title of some words", chosen, "these · are · settings", "What came out.", "leak", ("a note",)
    )
    paper = Paper(width=width, height=height, dpi=dpi, theme=theme)
    drawing = BlocksDrawing(contents, paper)
    if min(width, height) < 300 * unit_of(paper):  # less than a column has: no more is asked
        painted(drawing)
        return
    boxes = drawing.boxes
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    _, words, margin = painted(drawing)
    assert overlapping(words) == []
    assert outside(words, drawing.size, margin) == []


def test_a_table_that_has_no_room_says_how_many_rows_are_there(qapp):
    drawing = BlocksDrawing(Contents("t", (long_table(40),)), Paper(width=1280, height=400))
    _, words, _ = painted(drawing)
    texts = [text for text, _ in words]
    (said,) = (text for text in texts if text.endswith("of 40 rows"))
    assert f"row {int(said.split()[0]) - 1}" in texts
    assert f"row {int(said.split()[0])}" not in texts


def test_what_explains_goes_before_a_block_does(qapp):
    notes = (("how it came about", "long words " * 40),)
    contents = Contents("t", (curve(), long_table(3)), sentence="What came out.", notes=notes)
    large = BlocksDrawing(contents, Paper(width=1920, height=1080))
    small = BlocksDrawing(contents, Paper(width=1004, height=709, dpi=300.0))
    assert large.shown == ("the plot", "the table")
    told = [" ".join(text for text, _ in painted(drawing)[1]) for drawing in (large, small)]
    assert "long words long words" in told[0]
    assert "long words" not in told[1]
    assert small.left_out == ("how it came about",)


def test_on_a_transparent_sheet_nothing_is_painted_where_nothing_stands(qapp):
    drawing = BlocksDrawing(Contents("", (maps(1, diverging=True),)), Paper(width=640, height=400, theme="transparent"))
    assert drawing.style.card.alpha() == 0
    assert drawing.has_large_cells
    assert not BlocksDrawing(Contents("", (maps(1, side=400),)), Paper(width=640, height=400)).has_large_cells
