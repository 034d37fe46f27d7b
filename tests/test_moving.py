"""Pictures that follow one another: nothing jumps but what moves."""

from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import replace

from attnviz import colour, rendering
from attnviz.engine import Engine
from attnviz.figure import paint, plots, tables
from attnviz.figures import Figure
from attnviz.frames import CellClass, Scale
from attnviz.questions.exam import ExamQuestion
from attnviz.spec import (
    Lesson,
    PadLeft,
    Paper,
    RandomEmbeddings,
    SpecError,
    Text,
    TypedScores,
    View,
    edited,
    make_spec,
)

pytestmark = pytest.mark.usefixtures("qapp")

JOURNEY = make_spec(Lesson(name="journey"))
LONG = make_spec(RandomEmbeddings(length=33), num_heads=1, d_model=4, d_out=4)
DRAWN = edited(LONG, dropout=0.5, training=True)
EXAM = Figure(animates="exam", question=ExamQuestion(steps=15, masks=("none", "neg-inf")), frames=3)
ROUNDS = Figure(spec=JOURNEY, animates="rounds")
SMALL, COLUMN = Paper(width=640, height=400), Paper(width=1000, height=700, dpi=300)


@pytest.fixture(scope="module")
def engine():
    with closing(Engine()) as made:
        yield made


@pytest.fixture
def plotted(monkeypatch):
    """Of each plot that is painted its area, the extents of its axes, and its legend."""
    noted, real = [], plots._Painting._paint_legend

    def legend(painting, entries, places):
        words = [(entries[number].label, x) for line in places.lines for number, x in line]
        noted.append((painting.area.getRect(), painting.x_axis.extent, painting.y_axis.extent, words))
        real(painting, entries, places)

    monkeypatch.setattr(plots._Painting, "_paint_legend", legend)
    return noted


def drawings_of(figure, engine):
    return [drawing for drawing, _ in rendering.moving(figure, engine)]


def painted(figure, engine):
    drawings = drawings_of(figure, engine)
    for drawing in drawings:
        rendering.image_of(drawing, figure.paper)
    return drawings


def steps_apart(one, other):
    """By how many of 256 colours two pictures differ at most; cells without a value may not differ."""
    places = np.vectorize({int(rgb): n for n, rgb in enumerate(colour.table("viridis"))}.get, otypes=[float])
    apart = one != other
    return np.max(np.abs(places(one[apart], np.inf) - places(other[apart], -np.inf)), initial=0)


def only(found):
    """What is the same in all of ``found``."""
    first, *others = found
    assert all(one == first for one in others)
    return first


@pytest.mark.parametrize(("figure", "paper"), [(EXAM, SMALL), (ROUNDS, SMALL), (ROUNDS, COLUMN)])
def test_studies_stay_where_they_are(engine, plotted, figure, paper):
    drawings = painted(replace(figure, paper=paper), engine)
    assert len(drawings) == {EXAM: 3, ROUNDS: 6}[figure]
    assert len(only([place for _, place in drawing.maps] for drawing in drawings))
    only([(line.words, line.box) for line in drawing._plan.foot] for drawing in drawings)
    only([(swatch.words, swatch.box) for swatch in drawing._plan.swatches] for drawing in drawings)
    only(drawing._plan.head[0].box for drawing in drawings)
    if figure == EXAM:  # its axis holds the whole run, and little more
        (left, right), (low, high) = only(plotted)[1:3]
        assert (left, right, low) == (0, 15, 0)
        plot = next(block.plot for block, _ in drawings[-1]._plan.placed if hasattr(block, "plot"))
        largest = max(np.max(curve.y) for curve in plot.curves if len(curve.y))
        assert largest < high < 1.2 * largest
        blocks = [next(block for block, _ in one._plan.placed if block.part == "table") for one in drawings]
        only(tables.column_widths(block.table, 300) for block in blocks)  # though words come with the last
        assert [entry.text for line in blocks[0].table.lines for entry in line[-1:]] == ["is learning"] * 2
        assert [line[-1].text for line in blocks[-1].table.lines][1] != "is learning"
        steps = [block.plot.curves[0].x.tolist() for one in drawings for block, _ in one._plan.placed[:1]]
        assert steps == [[0], [0, 5, 10], [0, 5, 10, 15]]  # from before the first step
    elif paper == SMALL:
        areas, across, up, _ = zip(*plotted, strict=True)
        assert (only(areas), only(across), only(up)) == (areas[0], (-0.6, 5.6), (0, 1))


def test_rounds_of_many_tokens_have_an_axis_for_the_first_and_the_last(engine, plotted):
    painted(Figure(spec=LONG, animates="rounds", frames=3, paper=SMALL), engine)
    low, high = only(plotted)[2]
    assert high == 1
    assert 0 < low < 1 / 33


def test_rounds_end_at_the_figures_row(engine):
    drawings = drawings_of(replace(ROUNDS, row=2, paper=SMALL), engine)
    assert [drawing._plan.head[1].words.split(":")[0] for drawing in drawings] == [f"round {n} of 6" for n in (1, 2, 3)]


def test_what_moves_can_be_some_of_its_parts(engine):
    drawings = drawings_of(replace(ROUNDS, parts=("map",), paper=SMALL), engine)
    assert only([block.part for block, _ in drawing._plan.placed] for drawing in drawings) == ["map"]
    with pytest.raises(SpecError, match="give some of losses, table, maps"):
        replace(EXAM, parts=("map",))


def test_stages_stay_where_they_are(engine):
    spec = make_spec(Lesson(name="journey"), mask="three-step", dropout=0.5, training=True)
    drawings = drawings_of(Figure(spec=spec, animates="stages", paper=SMALL), engine)
    assert {drawing._picture.view.stage for drawing in drawings} > {"scores", "weights"}  # with and without sums
    only(drawing._sheet.plan for drawing in drawings)
    given = replace(SMALL, title="What each step of attention does to the numbers", width=420)
    only(one._sheet.plan for one in drawings_of(Figure(spec=spec, animates="stages", paper=given), engine))


@pytest.mark.parametrize("bound", [None, 2.0])
def test_each_look_of_a_draw_has_its_place_in_the_legend(engine, monkeypatch, bound):
    """A zero that is dropped in one draw leaves its room in the legend empty there."""
    matrix, swatches = ((100.0, 0.0, -5.0), (0.001, 2.0, 1.0), (0.5, 0.5, -np.inf)), []
    monkeypatch.setattr(
        paint.cells, "paint_swatch", lambda _on, box, kind, *_, **__: swatches[-1].update({kind: box.x()})
    )
    spec = make_spec(TypedScores(scores=matrix), dropout=0.5, training=True)
    figure = Figure(spec=spec, animates="re-rolls", frames=4, paper=replace(SMALL, bound=bound))
    for drawing in drawings_of(figure, engine):
        swatches.append({})
        rendering.image_of(drawing, figure.paper)
    assert {CellClass.ZERO in one for one in swatches} == {True, False}
    only(one[CellClass.DROPPED] for one in swatches)


@pytest.mark.parametrize("norm", ["auto", "uniform"])
def test_a_number_keeps_its_colour_from_draw_to_draw(engine, norm):
    """Of 33 tokens the scale is logarithmic and ends at the largest number, which not every draw keeps."""
    view = View(norm=norm, stage="dropped_weights")
    drawn = edited(DRAWN, dropout_seed=129)
    figure = Figure(spec=drawn, animates="re-rolls", frames=3, paper=SMALL, view=view)
    drawings = drawings_of(figure, engine)
    scale = only(drawing.scales for drawing in drawings)["head:0"]
    alone = [rendering.drawing_of(replace(figure, spec=one._picture.spec), engine)[0] for one in drawings]
    assert len({one.scales["head:0"] for one in alone}) > 1
    for drawing in drawings:
        frame = drawing._frames["head:0"]
        shown = frame.values if norm == "auto" else frame.values * np.arange(1, 34, dtype=np.float32)[:, None]
        wanted = colour.paint_values(shown, frame.classes, scale, "viridis")
        assert steps_apart(frame.rgb, wanted) <= (0 if norm == "auto" else 1)


def test_a_draw_that_drops_all_says_nothing_of_the_scale():
    many = Scale(0.002, 0.5, "log"), Scale(0.0, 1.0), Scale(0.004, 2.0, "log")
    assert colour.joint(many) == Scale(0.002, 2.0, "log")
    assert colour.joint([Scale(-2.0, 2.0, diverging=True), Scale(-3.0, 3.0, diverging=True)]).high == 3


@pytest.mark.parametrize("curve", ["linear", "log"])
def test_pixels_without_values_take_another_scale(curve):
    values = np.geomspace(0.01, 1, 50)[None]
    kinds = np.full(values.shape, CellClass.ORDINARY, np.uint8)
    kinds[0, :2] = CellClass.DROPPED, CellClass.MASKED
    old, new = Scale(0.01, 1.0, curve), Scale(0.005, 2.0, curve)
    found = colour.recoloured(colour.paint_values(values, kinds, old, "viridis"), old, new, "viridis")
    wanted = colour.paint_values(values, kinds, new, "viridis")
    assert steps_apart(found, wanted) <= 1


@pytest.mark.parametrize("animates", ["nothing", "stages", "re-rolls"])
def test_remarks_are_told_of_a_gif_too_and_each_once(tmp_path, engine, animates):
    spec = edited(DRAWN, mask="neg-inf", mask_shape=PadLeft(count=1))
    still = Figure(spec=spec, paper=SMALL, view=View(stage="dropped_weights"))
    told = rendering.write_figure(tmp_path / "a.png", still, engine)
    assert [words.partition(":")[0] for words in told] == ["1 row sees no key"]
    assert rendering.write_figure(tmp_path / "a.gif", replace(still, animates=animates, frames=9), engine) == told


@pytest.mark.parametrize(
    ("count", "frames", "shown"),
    [(6, 12, [1, 2, 3, 4, 5, 6]), (40, 4, [10, 20, 30, 40]), (7, 3, [3, 5, 7]), (1, 5, [1])],
)
def test_moments_are_evenly_apart(count, frames, shown):
    assert Figure(spec=make_spec(Text(text="a b")), frames=frames).moments(count) == shown
