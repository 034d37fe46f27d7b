"""Maps in a grid, and their colour bars: one size, names along the edges, bars where they leave maps most room."""

import numpy as np
import pytest

from attnviz.figure import map_grids
from attnviz.figure.fonts import load_fonts
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.map_grids import best_grid
from attnviz.figure.matrix_map import matrix_of
from attnviz.figure.places import Box
from attnviz.frames import CellClass, Scale

WORDS = ("Your", "journey", "starts", "with", "one", "step")
SIZES = [(width, height) for width in (300, 480, 700, 960, 1280, 1900) for height in (160, 260, 400, 640, 1000)]


@pytest.fixture(autouse=True)
def fonts(qapp):
    load_fonts()


def maps_of(*titles, tokens=WORDS, sums=True, caption="as far from it"):
    values = np.full((len(tokens), len(tokens)), 1 / len(tokens), np.float32)
    classes = np.full(values.shape, int(CellClass.ORDINARY), np.uint8)
    return tuple(
        matrix_of(values, classes, scale=Scale(0.0, 1.0), tokens=tokens, title=title, caption=caption, sums=sums)
        for title in titles
    )


GALLERY = maps_of("no mask", "mask last: multiply", "mask last, then divide: three-step", "−∞ before", "fill 0 before")


@pytest.mark.parametrize("size", SIZES)
def test_maps_of_one_grid_have_one_size_and_the_same_names(size):
    grid = best_grid(GALLERY, Box(0, 0, *size), 1.0)
    places = [cell.place for cell in grid.cells]
    assert len({(place.map_rect.width, place.map_rect.height) for place in places}) == 1
    first_column, first_row = places[:: grid.columns], places[: grid.columns]
    assert len({place.row_labels is None for place in first_column}) == 1
    assert len({place.column_labels is None for place in first_row}) == 1
    if grid.named and size[1] > 200:
        assert all(place.row_labels is not None for place in first_column)


def test_tokens_are_named_once_along_the_edges():
    grid = best_grid(maps_of("A", "B", "B − A"), Box(0, 0, 1000, 600), 1.0)
    assert grid.columns == 3
    assert [cell.place.row_labels is not None for cell in grid.cells] == [True, False, False]
    assert all(cell.place.column_labels is not None for cell in grid.cells)


def test_where_names_above_have_no_room_those_at_the_left_serve_both_sides():
    grid = best_grid(maps_of(*"ABCDE", sums=False), Box(0, 0, 560, 140), 1.0)
    first = grid.cells[0].place
    assert grid.columns == 5
    assert (first.row_labels is not None, first.column_labels) == (True, None)


def test_a_grid_has_no_hole_where_that_costs_little():
    three, given_up = maps_of(*"ABC", tokens=("a", "b"), sums=False), []
    for height in range(760, 820, 4):
        room = Box(0, 0, 1000, height)
        ways = [grid for n in range(1, 4) for grid in map_grids._grids(three, room, 1.0, n, 14.0)]
        largest = max(ways, key=lambda grid: grid.merit)
        chosen = best_grid(three, room, 1.0)
        if largest.columns == 2 != chosen.columns:
            given_up.append(chosen.merit / largest.merit)
    assert min(given_up) < 1
    assert min(given_up) >= 0.85


# ----------------------------------------------------------------------------------------------------------- the bars


def bars_of(maps, size, bars=((0, "weight"),)):
    block = MapsBlock(maps, "the maps", bars=bars)
    return block._plan(Box(0, 0, *size), 1.0, None)


def test_bars_lie_below_where_that_makes_the_maps_larger():
    three = maps_of("A", "B", "C")
    assert bars_of(three, (800, 420)).level
    assert not bars_of(three, (1900, 420)).level  # there is room beside them


def test_a_bar_stands_where_a_map_is_missing():
    plan = bars_of(GALLERY, (1200, 800))
    (bar,) = plan.bars
    last = plan.grid.cells[-1].place.map_rect
    assert (plan.grid.columns, plan.level) == (3, False)
    assert bar.x > last.right
    assert bar.y >= last.y - 1


def test_a_level_bar_does_not_say_what_stands_above_it():
    block = MapsBlock(maps_of("A", "B", "B − A"), "the maps", bars=((0, ""), (2, "B − A")))
    assert block._beside_level(2, "B − A") == ""
    assert block._beside_level(0, "weight") == "weight"
