"""What a review found in the engine: streams that take turns, numbers before they are exact, counts and ranges."""

import gc
import math
import threading
from contextlib import closing

import numpy as np
import pytest
import torch
from test_tiles import dense_cells, pooled

from attnviz import rendering
from attnviz.attention import dropout, planes
from attnviz.attention.pooling import Region
from attnviz.engine import ComputationError, Engine, probes, tiling
from attnviz.engine.crew import Crew
from attnviz.frames import CellClass, Finished, Frame, Outline, Probe, ProbeAnswer, Progress, RowAnswer, RowQuestion
from attnviz.session import Session
from attnviz.spec import PadLeft, RandomEmbeddings, RandomQK, Request, View, Viewport, edited, make_spec
from attnviz.tensor_files import describe_qk

LONG = make_spec(RandomQK(length=2100), num_heads=2, d_out=32, mask="neg-inf")
SMALL = 72_000_000
"""A budget of bytes of which a quarter, that of the tiles, holds no whole sheet of `SHEET`."""
SHEET = Viewport(pixels=(1100, 1100))
CORNER = Viewport(pixels=(64, 64), rows=(0, 60), cols=(0, 60))


@pytest.fixture
def engine():
    with closing(Engine(dense_bytes=0)) as engine:
        yield engine


def stream(engine, spec, view=None, viewport=None, generation=1, **how):
    request = Request(spec=spec, view=view or View(), viewport=viewport or Viewport(), generation=generation)
    return engine.stream(request, **how)


def frames_of(messages, *, thumbnails=False):
    return {m.panel: m for m in messages if isinstance(m, Frame) and m.panel.startswith("thumbnail:") == thumbnails}


def finished(engine, spec, view=None, viewport=None):
    """Frames up to the end of the picture, what goes on behind it left alone."""
    seen = {}
    with closing(stream(engine, spec, view, viewport)) as messages:
        for message in messages:
            if isinstance(message, Frame):
                seen[message.panel] = message
            elif isinstance(message, Finished):
                break
    return seen


class Interrupted:
    """A question whether to stop at which something else has its turn, once, after so many steps were told of."""

    def __init__(self, at, other):
        self.at, self.other, self.told = at, other, 0

    def __call__(self, progress):
        self.told += 1
        if self.told == self.at:
            self.other()


# ---------------------------------------------------------------------------------------------------- taking turns


@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_a_picture_is_whole_whatever_the_window_asks_for_meanwhile(monkeypatch, at):
    monkeypatch.setattr(tiling, "_EVERY", 0.0)
    spec = LONG
    with closing(Engine(budget_bytes=SMALL, dense_bytes=0)) as window:
        export = window.beside()
        meanwhile = Interrupted(at, lambda: list(stream(window, spec, viewport=CORNER)))
        picture = rendering.collect(export, spec, View(), SHEET, progress=meanwhile)
        assert meanwhile.told >= at
    cells, kinds = dense_cells(spec, 0)
    frame = picture.frames["head:0"]
    assert picture.complete
    assert frame.exact
    values, classes = pooled(cells, kinds, frame.level, "max")
    np.testing.assert_allclose(frame.values, values, rtol=2e-5, atol=1e-9)
    np.testing.assert_array_equal(frame.classes, classes)


def test_two_streams_step_by_step_give_what_each_gives_alone(monkeypatch):
    monkeypatch.setattr(tiling, "_EVERY", 0.0)
    with closing(Engine(budget_bytes=SMALL, dense_bytes=0)) as alone:
        expected = [finished(alone, LONG, viewport=viewport) for viewport in (SHEET, CORNER)]
    with closing(Engine(budget_bytes=SMALL, dense_bytes=0)) as engine:
        beside = engine.beside()
        streams = [stream(beside, LONG, viewport=SHEET), stream(engine, LONG, viewport=CORNER)]
        seen = [{}, {}]
        under_way = [0, 1]
        while under_way:
            for place in tuple(under_way):
                message = next(streams[place], Finished(1, 0, 0, 0))
                if isinstance(message, Finished):
                    under_way.remove(place)
                elif isinstance(message, Frame) and (place == 0 or message.rows != (0, 2100)):
                    seen[place][message.panel] = message
        for one in streams:
            one.close()
    for found, wanted in zip(seen, expected, strict=True):
        assert found.keys() == wanted.keys()
        for panel, frame in found.items():
            assert frame.exact
            np.testing.assert_allclose(frame.values, wanted[panel].values, rtol=2e-5, atol=1e-9)
            np.testing.assert_array_equal(frame.classes, wanted[panel].classes)


def test_what_is_held_stays_past_the_budget_and_goes_afterwards():
    with closing(Engine(dense_bytes=0)) as engine:
        finished(engine, LONG, viewport=SHEET)
        maps = engine._shown.tiling
        whole, corner = Region((0, 2100), (0, 2100), 2), Region((0, 256), (0, 256), 1)
        size, maps._budget = maps.nbytes, 0
        with maps.held(whole):
            list(maps.compute(corner, [0], engine._crew, lambda: False))
            assert maps.nbytes == size
        list(maps.compute(corner, [0], engine._crew, lambda: False))
        assert maps.nbytes == 0


class Halting:
    """An engine whose first streams end without all that they were asked for."""

    def __init__(self, engine, short):
        self.engine, self.short, self.asked = engine, short, []

    def stream(self, request, cancelled, *, unfinished):
        self.asked.append(unfinished)
        for message in self.engine.stream(request, cancelled, unfinished=unfinished):
            if isinstance(message, Frame) and len(self.asked) <= self.short and message.head == 1:
                continue
            yield message


@pytest.mark.parametrize("short", [0, 1, 2])
def test_a_picture_that_lacks_a_panel_is_computed_again(engine, short):
    halting = Halting(engine, short)
    assert rendering.collect(halting, LONG, View(), CORNER).frames.keys() == {"head:0", "head:1"}
    assert halting.asked == [False] * (short + 1)


def test_a_picture_that_never_becomes_whole_is_refused(engine):
    with pytest.raises(ComputationError, match="did not become exact"):
        rendering.collect(Halting(engine, 99), LONG, View(), CORNER)


def test_an_export_asks_for_no_picture_before_the_exact_ones(monkeypatch, engine):
    monkeypatch.setattr(tiling, "_EVERY", 0.0)
    monkeypatch.setattr(tiling, "_PREVIEW_FROM", 0)
    spec = edited(LONG, num_heads=1, d_out=16)
    messages = list(stream(engine, spec, View(norm="per-head"), Viewport(pixels=(64, 64)), unfinished=False))
    assert [m.exact for m in messages if isinstance(m, Frame)] == [True]
    assert len({m.done for m in messages if isinstance(m, Progress)}) > 2


def test_sending_a_picture_takes_no_time_from_the_next_one(monkeypatch, engine):
    now = [0.0]
    monkeypatch.setattr(tiling.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(tiling, "_PREVIEW_FROM", 1 << 60)
    spec = edited(LONG, num_heads=1, d_out=16)
    list(stream(engine, spec, viewport=Viewport(pixels=(8, 8))))
    maps = engine._shown.tiling
    advances = []
    now[0] += 1.0  # the one step that takes long
    for place, advance in enumerate(maps.compute(Region((0, 2100), (0, 2100), 2), [0], engine._crew, lambda: False)):
        now[0] += place == 0
        if advance is not None:
            advances.append(advance.done)
            now[0] += 1.0  # as long as eight intervals are
    assert len(advances) == 2
    assert advances[0] < advances[1]


# ------------------------------------------------------------------------------------------------ exact is exact


def test_what_says_that_it_is_exact_is_exact_in_the_moment_of_the_copy(monkeypatch, engine):
    """A block comes in as soon as the planes have been copied, or while they are."""
    spec = edited(LONG, num_heads=1, d_out=16)
    finished(engine, spec, viewport=Viewport(pixels=(2100, 2100)))
    maps, region = engine._shown.tiling, Region((0, 2100), (0, 2100), 1)
    tile = maps._tiles[0, planes.Place(1, 8, 0)]
    kept, tile.exact[:] = tile.exact.copy(), 0
    began, going = threading.Event(), threading.Event()

    def arrive():  # as `fold` does: the planes first, under the lock
        began.wait(20)
        with tile._lock:
            tile.exact[:] = kept
        going.set()

    writer = threading.Thread(target=arrive)
    writer.start()
    whole = planes.torch.from_numpy

    def meanwhile(array):
        if array.base is tile.folded or array is tile.folded:
            began.set()
            going.wait(0.3)
        return whole(array)

    monkeypatch.setattr(planes.torch, "from_numpy", meanwhile)
    with torch.inference_mode():
        picture = maps.picture(0, region, region, "max", "plain")
    began.set()
    writer.join()
    assert not picture.exact
    with torch.inference_mode():
        assert maps.picture(0, region, region, "max", "plain").exact


# --------------------------------------------------------------------------------------------------------- counts


def test_cells_are_counted_once_when_two_want_the_same_blocks():
    spec = make_spec(RandomQK(length=1500), num_heads=1, d_out=16, mask="three-step", dropout=0.2)
    view, viewport = View(stage="dropped_weights"), Viewport(pixels=(128, 128))
    with closing(Engine(dense_bytes=0)) as window:
        alone = finished(window, spec, view, viewport)["head:0"].counts
    with closing(Engine(dense_bytes=0)) as window:
        one, other = stream(window, spec, view, viewport), stream(window.beside(), spec, view, viewport)
        next(one), next(other)
        for _ in range(3):
            next(one), next(other)
        assert frames_of(one)["head:0"].counts == alone
        assert frames_of(other)["head:0"].counts == alone
    assert alone.dropped > 100_000
    assert alone.masked == 1500 * 1499 // 2


def test_counts_stay_when_their_tiles_are_forgotten():
    spec = make_spec(RandomQK(length=1500), num_heads=1, d_out=16, mask="neg-inf", dropout=0.2)
    view, viewport = View(stage="dropped_weights"), Viewport(pixels=(128, 128))
    with closing(Engine(dense_bytes=0)) as engine:
        counts = finished(engine, spec, view, viewport)["head:0"].counts
        maps = engine._shown.tiling
        maps._budget = 0
        corner = finished(engine, spec, view, CORNER)["head:0"]
        assert not [key for key in maps._tiles if key[1].level > 1]
        assert corner.counts == counts
        assert finished(engine, spec, view, viewport)["head:0"].counts == counts
    assert counts.dropped > 0
    assert counts.zero >= 0


@pytest.mark.parametrize("pixels", [100, 700])
@pytest.mark.parametrize(
    ("mask", "after", "stages"),
    [
        ("none", False, ("scores", "scaled_scores")),
        ("neg-inf", False, ("scores", "scaled_scores", "masked_scores")),
        ("neg-inf", True, ("masked_scores", "scaled_scores")),
        ("add", False, ("masked_scores",)),
    ],
)
def test_nan_among_scores_are_counted_as_in_a_small_map(tmp_path, mask, after, stages, pixels):
    q = np.random.default_rng(0).standard_normal((1, 600, 8)).astype(np.float32)
    k = q.copy()
    k[0, 5, 0] = k[0, 400, 0] = np.nan
    q[0, 77, 3] = np.inf
    np.savez(tmp_path / "nan.npz", q=q, k=k)
    shape = PadLeft(count=3)
    spec = make_spec(
        describe_qk(tmp_path / "nan.npz"), mask=mask, scale_after_mask=after, training=False,
        **({} if mask == "none" else {"mask_shape": shape}),
    )  # fmt: skip
    viewport = Viewport(pixels=(pixels, pixels))
    for stage in stages:
        with closing(Engine()) as small, closing(Engine(dense_bytes=0)) as long:
            dense, tiles = (finished(e, spec, View(stage=stage), viewport)["head:0"] for e in (small, long))
        assert dense.counts.nan >= 600
        assert tiles.counts == dense.counts, stage


def test_finite_scores_are_known_to_hold_no_nan_before_they_are_computed(engine):
    corner = finished(engine, LONG, View(stage="scaled_scores"), CORNER)["head:0"]
    assert corner.counts.nan == 0


# ------------------------------------------------------------------------------------------ remarks, kept numbers


def test_an_export_keeps_its_remarks_and_the_window_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(tiling, "_EVERY", 0.0)
    rng = np.random.default_rng(0)
    q = rng.standard_normal((1, 1200, 8)).astype(np.float32)
    np.savez(tmp_path / "r.npz", q=q, k=rng.standard_normal((1, 1200, 8)).astype(np.float32) * 60)
    spec = make_spec(describe_qk(tmp_path / "r.npz"), mask="three-step", training=False)
    viewport = Viewport(pixels=(100, 100))
    with closing(Engine(dense_bytes=0)) as window:
        expected = rendering.collect(window.beside(), spec, View(), viewport).finished.remarks
        assert expected
    with closing(Engine(dense_bytes=0)) as window:
        meanwhile = Interrupted(2, lambda: finished(window, LONG, viewport=viewport))
        picture = rendering.collect(window.beside(), spec, View(), viewport, progress=meanwhile)
        assert picture.finished.remarks == expected
        maps = window._shown.tiling
        finished(window, LONG, viewport=viewport)
        assert window._shown.tiling is maps  # nothing that stood was dropped
        answers = list(window.probe(Probe(1, 40, 7, 1)))
        assert answers[-1].values[1] is not None


def test_a_question_about_the_window_drops_nothing_of_an_export(monkeypatch):
    monkeypatch.setattr(tiling, "_EVERY", 0.0)
    other = edited(LONG, seed=5)
    with closing(Engine(dense_bytes=0)) as window:
        finished(window, LONG, viewport=CORNER)
        values = []

        def ask():
            values.extend(a.values for a in window.probe(Probe(1, 40, 7, 0)) if isinstance(a, ProbeAnswer))

        export = window.beside()
        rendering.collect(export, other, View(), Viewport(pixels=(300, 300)), progress=Interrupted(2, ask))
        kept = export._long._tilings.keys()
        assert [key[0] for key in kept] == [other]
    cells, _ = dense_cells(LONG, 0)
    assert values[-1][0] == pytest.approx(cells[40, 7], rel=2e-5)


# ------------------------------------------------------------------------------------------------- the colour range


def test_a_window_without_ordinary_pixels_keeps_the_known_range(engine):
    view = View(norm="auto")
    whole = finished(engine, LONG, view, Viewport(pixels=(200, 200)))["head:0"].scale
    hidden = finished(engine, LONG, view, Viewport(pixels=(64, 64), rows=(0, 50), cols=(2000, 2050)))["head:0"]
    assert not (hidden.classes & CellClass.ORDINARY).any()
    assert (hidden.scale.low, hidden.scale.high, hidden.scale.curve) == (whole.low, whole.high, "log")


@pytest.mark.parametrize("stage", ["weights", "scaled_scores"])
def test_a_range_is_of_plain_numbers(engine, stage):
    for viewport in (Viewport(pixels=(200, 200)), CORNER):
        for frame in finished(engine, LONG, View(stage=stage), viewport).values():
            assert type(frame.scale.low) is float
            assert type(frame.scale.high) is float


@pytest.mark.parametrize("pooling", ["max", "mean", "share"])
def test_where_a_pixel_is_a_cell_the_range_is_the_whole_maps(engine, pooling):
    spec = make_spec(RandomQK(length=1500), num_heads=1, d_out=16, mask="neg-inf")
    view = View(pooling=pooling, norm="per-head")
    finished(engine, spec, view, Viewport(pixels=(200, 200)))
    window = Viewport(pixels=(64, 64), rows=(1400, 1460), cols=(0, 60))
    with closing(Engine()) as small:
        dense = finished(small, spec, view, window)["head:0"].scale
    tiles = finished(engine, spec, view, window)["head:0"].scale
    assert (tiles.low, tiles.high) == pytest.approx((dense.low, dense.high), rel=2e-5)


# ------------------------------------------------------------------------------------------------------- a closed one


def test_a_closed_engine_says_so_and_hangs_nobody():
    engine = Engine(dense_bytes=0)
    beside = engine.beside()
    engine.close()
    for one in (engine, beside):
        with pytest.raises(ComputationError, match="was closed"):
            list(stream(one, LONG))


def test_an_engine_that_is_closed_under_a_stream_ends_it():
    engine = Engine(dense_bytes=0)
    messages = stream(engine, edited(LONG, seed=8))
    assert isinstance(next(messages), Outline)
    next(messages)
    engine.close()
    with pytest.raises(ComputationError, match="was closed"):
        list(messages)


def test_the_crew_stays_while_an_engine_beside_the_first_does():
    engine = Engine(dense_bytes=0)
    crew, beside = engine._crew, engine.beside()
    del engine
    gc.collect()
    assert finished(beside, LONG, viewport=CORNER)["head:0"].exact
    del beside
    gc.collect()
    assert crew._closing
    assert not crew._threads


@pytest.mark.parametrize("jobs", [1, 50])
def test_a_crew_that_is_closed_under_a_map_raises_in_its_driver(jobs):
    crew, gate = Crew(2), threading.Event()
    results = crew.map([lambda _space, stopped: gate.wait(20) and not stopped()] * jobs)
    assert next(results) is None
    closer = threading.Thread(target=crew.close)
    closer.start()
    while not crew._closing:
        pass
    gate.set()
    with pytest.raises(RuntimeError):
        list(results)
    closer.join(20)
    assert not closer.is_alive()
    with pytest.raises(RuntimeError):
        next(crew.map([lambda *_: 1]))


# ---------------------------------------------------------------------------------------------------- a row's cells


@pytest.mark.parametrize("stage", ["masked_scores", "weights", "dropped_weights"])
def test_a_rows_classes_are_those_of_its_cells(stage):
    spec = make_spec(
        RandomQK(length=90, qk_scale=9.0), num_heads=1, d_out=16, mask="neg-inf", mask_shape=PadLeft(count=7),
        dropout=0.3, dtype="float16",
    )  # fmt: skip
    view = View(stage=stage)
    with closing(Engine()) as engine:
        finished(engine, spec, view)
        panel = engine._shown.panels["head:0"]
        kinds = set()
        for row in (0, 6, 7, 8, 45, 89):
            answer = next(a for a in engine.probe(Probe(1, row, 0, whole_row=True)) if isinstance(a, RowAnswer))
            expected = [int(probes.cell_class(panel, row, col, stage != "masked_scores")) for col in range(90)]
            assert answer.classes.tolist() == expected
            np.testing.assert_array_equal(answer.values, panel.cells[row].float().numpy())
            kinds.update(expected)
    assert kinds == {
        "masked_scores": {CellClass.ORDINARY, CellClass.PADDED, CellClass.MASKED},
        "weights": {CellClass.ORDINARY, CellClass.PADDED, CellClass.MASKED, CellClass.ZERO, CellClass.NAN},
        "dropped_weights": {
            CellClass.ORDINARY, CellClass.PADDED, CellClass.MASKED, CellClass.ZERO, CellClass.NAN, CellClass.DROPPED,
        },
    }[stage]  # fmt: skip


# ------------------------------------------------------------------------------------------------------- thumbnails


def thumbnails_of(engine, spec, side=64):
    viewport = Viewport(pixels=(32, 32), thumbnail=side)
    return frames_of(stream(engine, spec, viewport=viewport), thumbnails=True)


@pytest.mark.parametrize("length", [2048, 2100, 1999])
def test_thumbnails_of_a_long_map_are_square_with_their_triangle(engine, length):
    spec = make_spec(RandomQK(length=length), num_heads=1, d_out=16, mask="neg-inf", dropout=0.2)
    found = thumbnails_of(engine, spec)
    cells, _ = dense_cells(edited(spec, dropout=0.0), 0)
    step = -(-length // 64)
    for stage in ("scores", "scaled_scores", "masked_scores", "weights", "dropped_weights"):
        frame = found[f"thumbnail:{stage}"]
        rows, cols = frame.classes.shape
        assert rows == length // step
        assert cols == -(-length // step)
        assert not frame.exact
        sees = np.tri(rows, cols, dtype=bool)
        if stage in ("masked_scores", "weights"):
            np.testing.assert_array_equal(frame.classes & CellClass.ORDINARY != 0, sees)
        np.testing.assert_array_equal(
            frame.classes & CellClass.MASKED != 0, ~sees if "scores" not in stage or stage == "masked_scores" else False
        )
        if stage == "weights":
            best = np.array([[cells[r * step + step - 1, c * step : (c + 1) * step].max() for c in range(cols)]
                             for r in range(rows)])  # fmt: skip
            np.testing.assert_allclose(frame.values, best, rtol=2e-5, atol=1e-9)


def test_thumbnails_of_long_vectors_take_the_same_rows(engine):
    spec = make_spec(RandomEmbeddings(length=2048), num_heads=2, d_model=40, d_out=16, mask="three-step")
    found = thumbnails_of(engine, spec)
    arrays = Engine().arrays(spec).stages
    for stage in ("queries", "keys", "values", "context"):
        frame = found[f"thumbnail:{stage}"]
        np.testing.assert_allclose(frame.values, arrays[stage][0, 31::32], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["thumbnail:inputs"].values, arrays["inputs"][31::32, ::3], rtol=1e-6)
    assert found["thumbnail:row_sums"].values.shape == (64, 1)
    assert "thumbnail:output" not in found


def test_thumbnails_of_fewer_queries_than_keys_end_where_their_triangle_does(engine, tmp_path):
    rng = np.random.default_rng(1)
    for n_queries in (1, 5, 700, 1990):
        path = tmp_path / f"{n_queries}.npz"
        np.savez(path, q=rng.standard_normal((1, n_queries, 8)), k=rng.standard_normal((1, 2000, 8)))
        kinds = thumbnails_of(engine, make_spec(describe_qk(path), training=False))["thumbnail:weights"].classes
        rows, cols = kinds.shape
        assert cols == 63
        assert rows == max(1, round(n_queries / 32))
        if n_queries > 32:  # the last row that ends a bin sees all of the 62 whole ones
            np.testing.assert_array_equal(kinds & CellClass.ORDINARY != 0, np.tri(rows, cols, 62 - rows, dtype=bool))


def test_long_thumbnails_draw_no_whole_map(monkeypatch, engine):
    """torch's generator would take a number for each of the map's cells."""
    spec = make_spec(RandomQK(length=2100), num_heads=1, d_out=16, dropout=0.3, dropout_generator="torch")
    largest = []
    real = torch.empty

    def noted(*size, **how):
        largest.append(math.prod(size[0]) if isinstance(size[0], tuple | list) else math.prod(size))
        return real(*size, **how)

    monkeypatch.setattr(torch, "empty", noted)
    found = thumbnails_of(engine, spec)
    assert max(largest, default=0) < 2100 * 2100
    assert found.keys() == {
        f"thumbnail:{stage}" for stage in ("queries", "keys", "scores", "scaled_scores", "masked_scores", "weights")
    }


def test_the_story_of_a_long_row_draws_no_whole_map(monkeypatch, engine):
    spec = make_spec(
        RandomEmbeddings(length=1800), num_heads=1, d_model=8, d_out=8, dropout=0.3, dropout_generator="torch"
    )
    drawn = []
    real = dropout.keep_torch
    monkeypatch.setattr(dropout, "keep_torch", lambda shape, **how: drawn.append(shape) or real(shape, **how))
    now = engine.row_story(RowQuestion(1, spec, 1700, 0)).now
    assert not drawn
    assert now.last == "weights"
    assert "context" not in now.stages
    assert now.values is None
    with closing(Engine(dense_bytes=1 << 30)) as whole:
        fits = whole.row_story(RowQuestion(1, spec, 1700, 0)).now
    assert drawn == [(1, 1800, 1800)]
    np.testing.assert_array_equal(fits.stages["weights"], now.stages["weights"])
    assert fits.last == "dropped_weights"
    portable = engine.row_story(RowQuestion(1, edited(spec, dropout_generator="portable"), 1700, 0)).now
    assert {"dropped_weights", "context"} <= portable.stages.keys()


# ------------------------------------------------------------------------------------------------- behind a window


@pytest.mark.parametrize("pixels", [64, 600, 1100])
def test_a_known_overview_comes_before_anything_is_computed(monkeypatch, pixels):
    with closing(Engine(dense_bytes=0)) as engine:
        finished(engine, LONG, viewport=Viewport(pixels=(pixels, pixels)))
        ran = []
        real = tiling.Tiling._run

        def noted(self, step, *how):
            ran.append(step.level)
            return real(self, step, *how)

        monkeypatch.setattr(tiling.Tiling, "_run", noted)
        viewport = Viewport(pixels=(64, 64), rows=(900, 960), cols=(0, 60), heads=(1, 0))
        first = {}
        for message in stream(engine, LONG, viewport=viewport):
            if isinstance(message, Progress):
                break
            if isinstance(message, Frame) and message.rows == (0, 2100):
                first[message.panel] = message, len(ran)
        assert first.keys() == {"head:0", "head:1"}
        assert all(frame.exact and frame.cols == (0, 2100) and n == 0 for frame, n in first.values())
        list(stream(engine, LONG, viewport=viewport))
        assert set(ran) == {1}  # the whole map, which stood, was not computed again


def test_a_map_that_is_not_known_sends_no_overview_first(engine):
    viewport = Viewport(pixels=(64, 64), rows=(900, 960), cols=(0, 60))
    assert all(frame.rows != (0, 2100) for frame in finished(engine, LONG, viewport=viewport).values())


def test_another_head_of_a_zoomed_map_keeps_its_surroundings(engine):
    """What the window makes of it: backdrops stand before anything is computed for the new head."""
    viewport = Viewport(pixels=(64, 64), rows=(900, 960), cols=(0, 60))
    session = Session(LONG, View())
    for view, part in (View(), Viewport(pixels=(600, 600))), (View(), viewport), (View(head=1), viewport):
        generation = session.begin(LONG, view, windowed=part.rows is not None)
        with closing(stream(engine, LONG, view, part, generation)) as messages:
            for message in messages:
                if isinstance(message, Progress) and view.head is not None:
                    break
                if message is not None:
                    session.accept(message)
                if isinstance(message, Finished):
                    break
    picture = session.snapshot().picture
    assert picture.view.head == 1
    assert picture.backdrops["head:1"].rows == (0, 2100)
    assert picture.backdrops["head:1"].exact
