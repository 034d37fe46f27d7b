import io
import itertools
import subprocess
import sys
import threading
from contextlib import closing

import msgspec
import numpy as np
import pytest
from paper_drawings import figure_of, rendered, sheet_of
from PySide6.QtGui import QImage

from attnviz import number_files, remembered, rendering
from attnviz.engine import Engine
from attnviz.figure import layout, paint, sheet, sides
from attnviz.figure.fitting import fitted
from attnviz.figure.formats import png
from attnviz.figures import Figure
from attnviz.files import FileProblem
from attnviz.frames import Finished, Outline, Progress, StageShape
from attnviz.spec import Lesson, RandomEmbeddings, SpecError, Text, View, Viewport, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")

SIZES = [(17, 16), (1001, 333), (3840, 2160)]
FAR_AWAY = "queries 1,024–2,047 × keys 0–1,023 of 131,072 · brightest of 64 × 64 cells · counts are of the whole map"
LONG = make_spec(RandomEmbeddings(length=300), num_heads=3, d_model=12, d_out=12)
WORDS = make_spec(Text(text=" ".join(f"w{n}" for n in range(40))), num_heads=2, d_model=8, d_out=8)


@pytest.fixture
def engine():
    with closing(Engine()) as engine:
        yield engine


def written(image, *, large_cells, **told):
    file = io.BytesIO()
    png.write_png(file, image, told, large_cells=large_cells)
    return file.getvalue()


def test_a_map_takes_less_room_than_its_colours(engine):
    """Both ways of compressing suit the pictures they are for."""
    for spec, size in (LONG, (640, 480)), (make_spec(Lesson(name="cat-eats-fish")), (1280, 800)):
        outline = rendering.outline_of(engine, spec, View(), lambda: False)
        laid_out = sheet_of(outline, View(), size)
        picture = rendering.collect(engine, spec, View(), laid_out.viewport)
        image = rendered(picture, size)
        right, wrong = (len(written(image, large_cells=large)) for large in (laid_out.has_large_cells, not
                                                                             laid_out.has_large_cells))  # fmt: skip
        assert right < wrong


# ------------------------------------------------------------------------------------------------------------ sheets


def outline_of(n_rows, n_cols, stage="weights", n_heads=1):
    tokens = tuple(map(str, range(n_cols)))
    return Outline(
        1, stage, tokens, n_rows, n_cols, (), "worked by hand", (StageShape(stage, (n_heads, n_rows, n_cols)),), (),
        tuple(f"head:{head}" for head in range(n_heads)), has_future=True, future_hidden=True, device="cpu",
    )  # fmt: skip


def test_a_sheet_asks_for_its_own_pixels_and_its_window():
    laid_out = sheet_of(outline_of(131_072, 131_072, n_heads=12), View(), (1920, 1080))
    assert not laid_out.is_part
    assert (laid_out.viewport.rows, laid_out.viewport.cols) == (None, None)
    assert laid_out.viewport.pixels == tuple(int(side) for side in laid_out.plan.panels[0].map_rect[:1:-1])
    assert max(laid_out.viewport.pixels) < 300
    view = View(rows=(1000, 2000), cols=(50, 1050), head=3)
    part = sheet_of(outline_of(131_072, 131_072, n_heads=12), view, (1920, 1080))
    assert part.is_part
    assert part.panels == ("head:3",)
    assert (part.viewport.rows, part.viewport.cols) == ((1000, 2000), (50, 1050))


@pytest.mark.parametrize(
    ("rows", "cols", "clipped"),
    [
        ((0, 100), (0, 100), ((0, 40), (0, 60))),
        ((30, 50), None, ((30, 40), (0, 60))),
        ((90, 95), (70, 80), ((39, 40), (59, 60))),
        (None, (5, 6), ((0, 40), (5, 6))),
    ],
)
def test_a_window_is_clipped_to_the_map(rows, cols, clipped):
    laid_out = sheet_of(outline_of(40, 60), View(rows=rows, cols=cols), (800, 600))
    assert (laid_out.rows, laid_out.cols) == clipped
    assert laid_out.is_part == (clipped != ((0, 40), (0, 60)))


@pytest.mark.parametrize("shape", [(40, 60), (8, 60), (60, 9), (1000, 1000), (300, 1024), (1024, 300)])
@pytest.mark.parametrize("size", [(800, 600), (3840, 2160), (600, 1600)])
def test_a_window_has_its_own_aspect(shape, size):
    laid_out = sheet_of(outline_of(2048, 2048), View(rows=(100, 100 + shape[0]), cols=(7, 7 + shape[1])), size)
    place = laid_out.plan.panels[0].map_rect
    assert place.width / shape[1] == pytest.approx(place.height / shape[0], abs=1.5 / min(shape))


def frame_with(level, pooling="max"):
    values = np.ones((2, 2))
    from attnviz.frames import Counts, Frame, Scale

    return Frame(
        1, "head:0", "weights", 0, (0, 2 * level), (0, 2 * level), level, values, np.ones((2, 2), np.uint8),
        np.full((2, 2), 0xFF000000, np.uint32), Scale(0.0, 1.0), Counts(), pooling=pooling,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "stage", "rows", "cols", "frame", "words"),
    [
        ((9, 9), "weights", None, None, frame_with(1), ""),
        (
            (131_072, 131_072), "weights", (1024, 2048), (0, 1024), frame_with(64),
            FAR_AWAY,
        ),
        ((9, 20), "scores", (4, 5), (0, 3), frame_with(2, "mean"), "queries 4 of 9 × keys 0–2 of 20 · mean of 2 × 2"),
        ((90, 90), "weights", (4, 8), None, frame_with(64, "share"), "share of the row's mass, 64 keys wide"),
        ((90, 90), "weights", (4, 8), None, frame_with(8, "mean"), "mean of 8 × 8 cells"),
        ((90, 64), "values", (4, 8), (0, 64), frame_with(1), "tokens 4–7 of 90 × dimensions 0–63 of 64 · counts"),
    ],
)  # fmt: skip
def test_the_caption_says_which_cells_and_what_a_pixel_is(shape, stage, rows, cols, frame, words):
    outline = outline_of(*shape, stage=stage)
    laid_out = sheet_of(outline, View(stage=stage, rows=rows, cols=cols), (1920, 1080))
    caption = sheet.sheet_caption(laid_out, outline, frame.level, frame.pooling, signed=frame.scale.diverging)
    assert words in caption if words else caption == ""


def test_a_frame_of_means_is_not_pooled_again():
    frame = frame_with(1, "mean")
    assert fitted(frame, "viridis", frame_box(1, 1)) is frame
    assert fitted(frame_with(1), "viridis", frame_box(1, 1)).level == 2


def test_a_frame_that_reaches_beyond_the_window_keeps_its_pixels():
    frame = frame_with(4)  # cells 0 to 8, of which 1 to 7 fill one pixel and a half
    assert fitted(frame, "viridis", frame_box(2, 2), (1.0, 7.0, 1.0, 7.0)) is frame


def frame_box(width, height):
    return layout.Box(0, 0, width, height)


# ----------------------------------------------------------------------------------------------------------- exports


@pytest.fixture
def said(monkeypatch):
    """Every text that is drawn."""
    words = []

    def drawn(draw):
        def recorded(painter, rect, flags, text):
            words.append(text)
            draw(painter, rect, flags, text)

        return recorded

    for module in sheet, paint, sides:
        monkeypatch.setattr(module, "draw_text", drawn(module.draw_text))
    return words


def collected(engine, spec, view, size):
    """The picture that a sheet of ``size`` shows."""
    outline = rendering.outline_of(engine, spec, view, lambda: False)
    return rendering.collect(engine, spec, view, sheet_of(outline, view, size, spec).viewport)


def test_a_window_is_exported_with_its_own_labels_and_says_so(tmp_path, engine, said):
    view = View(rows=(10, 16), cols=(8, 16))
    rendering.write_figure(tmp_path / "a.png", figure_of(WORDS, view, (1280, 800)), engine)
    picture = collected(engine, WORDS, view, (1280, 800))
    image = QImage(str(tmp_path / "a.png"))
    labels = {word for word in said if word.startswith("w") and word[1:].isdigit()}
    assert labels == {f"w{n}" for n in range(8, 16)}
    assert {"head 0", "head 1"} <= set(said)
    assert "queries 10–15 × keys 8–15 of 40 · counts are of the whole map" in said
    assert {"query", "key"} <= set(said)
    assert remembered.recall(tmp_path / "a.png") == figure_of(WORDS, view, (1280, 800))
    frame = picture.heads[0]
    laid_out = sheet_of(picture.outline, view, (1280, 800))
    x, y, width, height = laid_out.plan.panels[0].map_rect
    cell_w, cell_h = width / 8, height / 6
    assert cell_w == cell_h == int(cell_w)
    for row, col in (0, 0), (3, 2), (5, 7):
        corner = image.pixel(int(x + col * cell_w + 3), int(y + row * cell_h + 3))
        assert corner == frame.rgb[10 + row - frame.rows[0], 8 + col - frame.cols[0]]


def test_a_window_of_a_long_map_shows_exactly_its_cells(tmp_path, engine):
    view = View(rows=(37, 293), cols=(21, 277))
    rendering.write_figure(tmp_path / "a.png", figure_of(LONG, view, (640, 480)), engine)
    picture = collected(engine, LONG, view, (640, 480))
    frame = picture.heads[0]
    laid_out = sheet_of(picture.outline, view, (640, 480))
    assert (frame.level, frame.rows) == (2, (36, 294))
    image = QImage(str(tmp_path / "a.png"))
    x, y, width, height = (int(edge) for edge in laid_out.plan.panels[0].map_rect)
    assert laid_out.viewport.pixels == (height, width)
    part = image.copy(x, y, width, height)
    pixels = np.frombuffer(part.constBits(), np.uint32).reshape(height, width)
    middles = (np.arange(width) + 0.5) * 256 / width  # in cells from the window's edge
    rows, cols = (((middles + first - start) // 2).astype(int) for first, start in ((37, 36), (21, frame.cols[0])))
    np.testing.assert_array_equal(pixels, frame.rgb[np.ix_(rows, cols)])


@pytest.mark.parametrize("size", [(17, 16), (1001, 333), (1920, 1080)])
@pytest.mark.parametrize("spec", [LONG, make_spec(Lesson(name="cat-eats-fish"))], ids=["long", "cat"])
def test_the_file_is_the_picture_bit_for_bit(tmp_path, engine, size, spec):
    rendering.write_figure(tmp_path / "a.png", figure_of(spec, View(), size), engine)
    picture = collected(engine, spec, View(), size)
    assert QImage(str(tmp_path / "a.png")) == rendered(picture, size)


def test_letters_as_large_as_a_hand_are_the_same_each_time(tmp_path):
    """Qt's own outlines were not: in a deck the second figure had other bytes than alone."""
    code = (
        "from attnviz import cli; import sys;"
        "args = ['render', '--lesson', 'cat-eats-fish', '--image'];"
        "cli.run([*args, 'a.png']); cli.run([*args, 'b.png'])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=100)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_an_engine_of_its_own_is_closed(tmp_path):
    rendering.write_figure(tmp_path / "a.png", figure_of(LONG, View(), (320, 200)))
    number_files.write_numbers(tmp_path / "a.npz", Figure(spec=WORDS))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("attnviz")]


def test_a_size_that_cannot_be_is_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(SpecError, match="size is 8x8"):
        rendering.write_figure(tmp_path / "a.png", figure_of(LONG, View(), (8, 8)), object())


# ------------------------------------------------------------------------------------------------ progress and cancel


def test_progress_rises_to_one(tmp_path, engine):
    shares = []
    rendering.write_figure(tmp_path / "a.png", figure_of(LONG, View(), (1280, 800)), engine, progress=shares.append)
    assert shares == sorted(set(shares))
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1
    assert len(shares) > 6


def test_progress_of_draws_rises_from_the_first_to_the_last(tmp_path, engine):
    shares = []
    spec = edited(WORDS, dropout=0.5, training=True)
    figure = msgspec.structs.replace(figure_of(spec, View(), (320, 200)), animates="re-rolls", frames=5)
    rendering.write_figure(tmp_path / "a.gif", figure, engine, progress=shares.append)
    assert shares == sorted(set(shares))
    assert shares[0] < 0.15
    assert max(after - before for before, after in itertools.pairwise(shares)) < 0.15
    assert shares[-1] == 1


@pytest.mark.parametrize("share", [0, 0.1, 0.6, 0.75, 0.9, 1])
def test_after_a_cancel_no_file_is_left_or_changed(tmp_path, engine, share):
    reached = [0.0]
    for name, content in ("old.png", b"old"), ("new.png", None):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        reached[0] = 0.0
        with pytest.raises(rendering.Cancelled, match="cancelled"):
            rendering.write_figure(tmp_path / name, figure_of(LONG, View(), (1280, 800)), engine,
                cancelled=lambda: reached[0] >= share, progress=lambda done: reached.__setitem__(0, done),
            )  # fmt: skip
    assert [found.name for found in tmp_path.iterdir()] == ["old.png"]
    assert (tmp_path / "old.png").read_bytes() == b"old"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "gif", "csv", "npz"])
def test_a_file_that_has_its_name_is_not_called_off_any_more(tmp_path, engine, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"old")
    number_files.write_file(
        path, figure_of(WORDS, View(), (320, 200)), engine, cancelled=lambda: path.read_bytes() != b"old"
    )  # fmt: skip
    assert path.read_bytes() != b"old"


def test_a_failure_leaves_an_older_picture(tmp_path, engine, monkeypatch):
    (tmp_path / "a.png").write_bytes(b"old")

    def fail(pixels, last, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(png, "_deflated", fail)
    with pytest.raises(FileProblem, match="the disk is full"):
        rendering.write_figure(tmp_path / "a.png", figure_of(LONG, View(), (320, 200)), engine)
    assert [found.name for found in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"


class Ticking:
    """An engine whose stream has ticks in it, and goes on after its picture stands."""

    def __init__(self):
        self.closed = 0
        self.asked = []

    def stream(self, request, cancelled, *, unfinished=True):
        self.asked.append(request.viewport)
        try:
            yield None
            yield outline_of(2, 2)
            yield None
            yield Progress(1, 1, 2)
            yield frame_with(1)
            yield Progress(1, 2, 2)
            yield Finished(1, 0.0, 0, 0)
            while not cancelled():
                yield Progress(1, 1, 9, background=True)
            raise AssertionError("nobody waits for the rest of the map")
        finally:
            self.closed += 1


def test_ticks_are_passed_over_and_the_rest_of_the_map_is_not_waited_for(tmp_path):
    engine, told = Ticking(), []
    picture = rendering.collect(engine, WORDS, View(), Viewport(), progress=told.append)
    assert picture.complete
    assert [(message.done, message.total) for message in told] == [(1, 2), (2, 2)]
    assert engine.closed == 1
    rendering.write_figure(tmp_path / "a.png", figure_of(WORDS, View(), (320, 200)), engine)
    assert engine.closed == 3
    laid_out = sheet_of(outline_of(2, 2), View(), (320, 200))
    assert engine.asked[-1] == laid_out.viewport
