"""Python in two lines: figures of specs, weights that one already has, and what is loaded for them."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from test_given import weights_of

import attnviz
from attnviz import api, cli, colour, number_files, remembered
from attnviz.engine import Engine
from attnviz.figure.marks import mask_words
from attnviz.figures import Figure
from attnviz.given import arrays as given
from attnviz.given import paper as showing
from attnviz.given.window import GivenWindow
from attnviz.inputs import open_source
from attnviz.session import Cell
from attnviz.spec import (
    Lesson,
    MaskFile,
    Paper,
    Pattern,
    RandomQK,
    Text,
    TypedScores,
    TypedWeights,
    View,
    edited,
    parse_shape,
)

NAMES = ["the", "cat", "eats", "a", "small", "fish"]


def fresh(code, folder, **environment):
    """What a new process says that runs ``code``."""
    kept = {name: value for name, value in os.environ.items() if name not in ("QT_QPA_PLATFORM", "DISPLAY")}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=kept | environment, capture_output=True, text=True, check=True
    )


# ------------------------------------------------------------------------------------------------- what is loaded


def test_importing_loads_neither_qt_nor_torch_nor_numpy(tmp_path):
    code = (
        "import sys, attnviz; assert attnviz.__version__; assert {'show', 'render'} <= set(dir(attnviz));"
        "print([m for m in ('PySide6', 'torch', 'numpy', 'msgspec') if m in sys.modules]);"
        "attnviz.show, attnviz.render, attnviz.make_spec;"
        "print([m for m in ('PySide6', 'torch', 'numpy') if m in sys.modules])"
    )
    assert fresh(code, tmp_path).stdout.splitlines() == ["[]", "[]"]


def test_given_arrays_load_no_torch(tmp_path):
    code = (
        "import sys, numpy, attnviz; path = attnviz.show(numpy.eye(4) / 2, list('abcd'), path='a.png');"
        "print(path, [m for m in sys.modules if m.split('.')[0] == 'torch' or m == 'attnviz.engine'])"
    )
    assert fresh(code, tmp_path).stdout.strip() == "a.png []"
    assert QImage(str(tmp_path / "a.png")).width() == 1920


def test_with_no_display_the_picture_is_written_and_a_line_says_where(tmp_path):
    code = "import os, numpy, attnviz; print(attnviz.show(numpy.eye(4))); print('QT_QPA_PLATFORM' in os.environ)"
    done = fresh(code, tmp_path)
    assert done.stdout.splitlines() == ["None", "False"]
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("attnviz: no window can be shown (")
    assert done.stderr.strip().endswith(f"it was written to {tmp_path / 'attnviz.png'}")
    assert not QImage(str(tmp_path / "attnviz.png")).isNull()


# ------------------------------------------------------------------------------------------------ given weights


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_the_picture_has_the_colours_of_the_numbers(qapp, tmp_path, theme):
    weights = weights_of(2, 6, 6)
    path = attnviz.show(weights, NAMES, path=tmp_path / "a.png", size="1000x600", theme=theme)
    image = QImage(str(path))
    assert (image.width(), image.height()) == (1000, 600)
    found = given.read(weights, NAMES)
    drawing = showing.given_drawing(found, 0, (), Paper(width=1000, height=600, theme=theme))
    scale = colour.choose_scale("weights", "auto", 6, 0.0, float(weights.max()))
    for head, place in enumerate(drawing._sheet.plan.panels):
        rect = place.map_rect
        ones = np.ones((6, 6), np.uint8)
        wanted = colour.paint_values(weights[head], ones, scale, "viridis")
        for row, col in np.ndindex(6, 6):
            x = rect.x + (col + 0.12) * rect.width / 6  # beside the number
            y = rect.y + (row + 0.12) * rect.height / 6
            assert image.pixel(int(x), int(y)) == wanted[row, col]


def test_a_layer_and_heads_are_chosen(qapp, tmp_path):
    weights = weights_of(3, 4, 5, 5)
    last = attnviz.show(weights, path=tmp_path / "last.png").read_bytes()
    assert last == attnviz.show(weights, layer=2, path=tmp_path / "two.png").read_bytes()
    assert last == attnviz.show(weights, layer=-1, path=tmp_path / "minus.png").read_bytes()
    assert last != attnviz.show(weights, layer=0, path=tmp_path / "first.png").read_bytes()
    one = attnviz.show(weights, heads=1, title="one", path=tmp_path / "head.png").read_bytes()
    assert one == attnviz.show(weights, heads=[1], title="one", path=tmp_path / "list.png").read_bytes() != last
    tensors = tuple(torch.from_numpy(layer)[None] for layer in weights)
    assert attnviz.show(tensors, path=tmp_path / "torch.png").read_bytes() == last


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files_of_every_format(qapp, tmp_path, suffix):
    first = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    path = attnviz.show(weights_of(4, 4), path=tmp_path / f"a.{suffix}", size="8.5x6cm", theme="print")
    assert path.read_bytes().startswith(first)
    with pytest.raises(ValueError, match=rf"a.{suffix} cannot be opened: it shows weights that were given"):
        remembered.recall(path)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({}, TypeError, "there is nothing to show"),
        ({"q": np.ones((4, 2))}, TypeError, "q is given without k: give both"),
        ({"weights": np.eye(2), "q": np.eye(2), "k": np.eye(2)}, TypeError, "two things to show"),
        ({"q": np.eye(2), "k": np.eye(2), "heads": 1}, TypeError, "heads chooses among given weights"),
        ({"q": np.eye(2), "k": np.eye(2), "scale": "a"}, ValueError, "scale is 'a': give a number"),
        ({"q": np.eye(2), "k": np.eye(2), "tokens": 3}, ValueError, "tokens is 3: give a list of names"),
        ({"weights": np.eye(2), "size": (float("inf"), 9)}, ValueError, r"size is \(inf, 9\): give \(width, height\)"),
        ({"weights": np.eye(2), "scale": 1.0}, ValueError, "scale is 1.0, but weights are computed already"),
        ({"weights": np.eye(2), "layer": 1}, ValueError, "layer is 1, but there is 1: give 0"),
        ({"weights": np.eye(2), "heads": 1}, ValueError, "heads count from 0 to 0"),
        ({"weights": np.eye(2), "heads": []}, ValueError, "give some heads, each once"),
        ({"weights": np.eye(2), "size": "wide"}, ValueError, "give WIDTHxHEIGHT"),
        ({"weights": np.eye(2), "size": 7}, ValueError, r"size is 7: give \(width, height\)"),
        ({"weights": np.eye(2), "theme": "blue"}, ValueError, "theme is 'blue': give light, dark, transparent, print"),
        ({"weights": np.ones((2, 2, 2, 2, 2))}, ValueError, "a batch of 2"),
        ({"q": np.ones((2, 3, 4, 5)), "k": np.ones((4, 5))}, ValueError, r"a batch of 2: give one item, q\[0\]"),
        ({"q": np.ones((4, 2)), "k": np.ones((4, 3))}, ValueError, "a query has 2 numbers but a key 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(tmp_path, options, error, sentence):
    with pytest.raises(error, match=sentence):
        attnviz.show(path=tmp_path / "a.png", **options)
    assert not list(tmp_path.iterdir())


def test_a_notebook_gets_an_object_that_shows_itself(qapp, monkeypatch):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    shown = attnviz.show(weights_of(4, 4), size=(600, 400))
    image = QImage.fromData(shown._repr_png_())
    assert (image.width(), image.height()) == (600, 400)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # a terminal
    assert not api._in_notebook()


class Visitor(QObject):
    """Waits for a window of given weights, does something in it step by step, and closes it."""

    def __init__(self, *steps):
        super().__init__()
        self.steps, self.window, self.failed = list(steps), None, None
        self.timer = QTimer(self, interval=10)
        self.timer.timeout.connect(self.look)
        self.timer.start()

    def look(self):
        windows = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, GivenWindow)]
        self.window = next((window for window in windows if window.isVisible()), None)
        if self.window is None:
            return
        snapshot = self.window._session.snapshot()
        if snapshot.running or snapshot.picture is None or not self.window.worker.is_idle():
            return
        try:
            if self.steps:
                self.steps.pop(0)(self.window)
                return
        except Exception as error:
            self.failed = error
        self.timer.stop()
        self.window.close()


def test_the_window_tells_query_key_and_each_heads_number(qtbot):
    weights = weights_of(2, 3, 6, 6)
    told = []

    def hover(window):
        heads = window.heatmaps
        qtbot.mouseMove(heads, QPoint(2, 2))
        qtbot.mouseMove(heads, heads.point_of("head:1", Cell(2, 4)))

    visitor = Visitor(
        hover, lambda window: told.append(window.numbers.text()), lambda window: window.layers.setCurrentIndex(0),
        hover, lambda window: told.append(window.numbers.text()), lambda window: told.append(window.windowTitle()),
    )  # fmt: skip
    assert attnviz.show(weights, NAMES) is None  # blocks until the visitor has closed it
    assert visitor.failed is None
    for layer, words in zip((1, 0), told, strict=False):
        lines = words.replace("\N{NO-BREAK SPACE}", " ").splitlines()
        assert lines[0] == "query eats · key small"
        assert lines[1] == " · ".join(f"head {head}: {weights[layer, head, 2, 4]:.4g}" for head in range(3))
    assert told[2] == "attention weights, layer 0"


def test_the_window_of_a_million_cells_takes_no_more_pixels_than_it_has(qtbot):
    seen = []
    visitor = Visitor(lambda window: seen.extend(window._session.snapshot().picture.heads))
    attnviz.show(weights_of(2, 1500, 1500, causal=True), mask="causal", size=(900, 700), theme="dark")
    assert visitor.failed is None
    assert {frame.level for frame in seen} <= {4, 8}
    assert {frame.counts.masked for frame in seen} == {1500 * 1499 // 2}


# ------------------------------------------------------------------------------------------------ queries and keys


@pytest.mark.parametrize("masked", [None, "causal", "own"])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
def test_queries_and_keys_go_through_the_engine(masked, kind):
    q, k = (torch.randn(2, length, 8, generator=torch.Generator().manual_seed(length)) for length in (5, 9))
    q, k = q.to(getattr(torch, kind)), k.to(getattr(torch, kind))
    visible = torch.ones(5, 9, dtype=torch.bool).tril(4)
    visible = {"causal": visible, "own": visible & (torch.arange(9) % 3 > 0)}.get(masked, torch.ones_like(visible))
    spec = api._spec_of(q, k, list("abcdefghi"), masked if masked != "own" else visible, 0.25)
    arrays = Engine().arrays(spec)
    scores = 0.25 * q.double() @ k.double().transpose(-1, -2)
    wanted = torch.softmax(scores.masked_fill(~visible, float("-inf")), -1).nan_to_num()
    tolerance = 1e-12 if kind == "float64" else 1e-5
    assert np.allclose(np.nan_to_num(arrays.stages["weights"]), wanted.numpy(), atol=tolerance)
    assert arrays.tokens == tuple("abcdefghi")
    assert api._spec_of(q, k, None, masked if masked != "own" else visible, None).scale == "auto"


def test_their_files_go_with_the_process(tmp_path):
    code = (
        "import numpy, attnviz; q = numpy.random.default_rng(0).normal(size=(2, 40, 8));"
        "print(attnviz.show(q=q, k=q, mask='causal', path='a.png', size=(800, 500)))"
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    assert fresh(code, tmp_path, TMPDIR=str(folder)).stdout.strip() == "a.png"
    assert QImage(str(tmp_path / "a.png")).width() == 800
    assert [path.name for path in folder.iterdir() if path.name.startswith("attnviz")] == []


@pytest.mark.parametrize("mask", [None, "causal", np.tri(5, dtype=bool)])
def test_a_picture_of_q_and_k_says_that_they_are_not_in_it(tmp_path, qapp, mask):
    q = np.random.default_rng(0).normal(size=(5, 4))
    path = attnviz.show(q=q, k=q, mask=mask, path=tmp_path / "qk.png", size=(300, 200))
    with pytest.raises(ValueError, match=r"it shows q and k that were given to attnviz\.show, which are not in the"):
        remembered.recall(path)
    spec = api._spec_of(q, q, None, mask, None)
    assert open_source(spec).origin == "given in Python"
    assert "npy" not in " ".join(mask_words(spec))
    assert attnviz.show(q=q, k=q, mask=mask, path=tmp_path / "a.png", size=(300, 200)).read_bytes() == path.read_bytes()
    number_files.write_numbers(tmp_path / "a.npz", Figure(spec=spec))
    assert remembered.recall(tmp_path / "a.npz").spec == spec  # while the program runs
    shutil.rmtree(Path(spec.source.path).parent)  # as at its end
    with pytest.raises(ValueError, match=r"it shows q and k that were given to attnviz\.show"):
        remembered.recall(tmp_path / "a.npz")


def test_q_and_k_that_do_not_fit_are_told_without_a_file():
    with pytest.raises(ValueError, match=r"^q and k do not fit: a query has 4 numbers but a key 3"):
        attnviz.show(q=np.zeros((5, 4)), k=np.zeros((5, 3)), path="a.png")


# ------------------------------------------------------------------------------------------------------------ render


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({"text": "the cat"}, Text(text="the cat")),
        ({"lesson": "journey"}, Lesson(name="journey")),
        ({"length": 8, "pattern": "sink"}, Pattern(length=8, pattern="sink")),
        ({"length": 8, "qk_scale": 2.0}, RandomQK(length=8, qk_scale=2.0)),
        ({"weights": np.eye(2), "tokens": ["a", "b"]},
         TypedWeights(weights=((1.0, 0.0), (0.0, 1.0)), tokens=("a", "b"))),
        ({"scores": [[1, 2]], "values": [[1], [2]], "dims": ["d"]},
         TypedScores(scores=((1.0, 2.0),), values=((1.0,), (2.0,)), dims=("d",))),
        ({"source": Text(text="a")}, Text(text="a")),
        ({}, Lesson()),
    ],
)  # fmt: skip
def test_what_a_spec_is_made_of(options, source):
    assert attnviz.make_spec(**options).source == source


def test_heads_and_masks_of_a_spec(tmp_path):
    spec = attnviz.make_spec(text="the cat eats", heads=4, kv_heads=2, mask="three-step", mask_shape="window:2")
    assert (spec.num_heads, spec.num_kv_heads, spec.d_out, spec.mask_shape.width) == (4, 2, 256, 2)
    np.save(tmp_path / "m.npy", np.tri(2, dtype=bool))
    shape = attnviz.make_spec(length=2, mask_shape=str(tmp_path / "m.npy")).mask_shape
    assert isinstance(shape, MaskFile)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": "a", "length": 2}, "text and length are sources: give one"),
        ({"pattern": "sink"}, "pattern belongs to length: give that too"),
        ({"text": "a", "tokens": ["a"]}, "tokens belongs to scores or weights"),
        ({"heads": 2, "num_heads": 2}, "heads and num_heads are one thing"),
        ({"text": "a", "haeds": 2}, "'haeds' is not a field of a spec"),
        ({"scores": [1, 2]}, "scores has 1 axes: give rows of numbers"),
        ({"text": 3}, "text is 3"),
        ({"lesson": 3}, "lesson is 3: give journey"),
        ({"length": 1.5}, "length is 1.5"),
        ({"length": 4, "pattern": "x"}, "pattern is 'x': give sink, local"),
        ({"scores": [[1]], "tokens": 3}, "tokens is 3: give a list of names"),
        ({"qk": 3}, "qk is 3: give the name of a"),
        ({"source": "the cat"}, "source is 'the cat': give text, length, .* by name"),
    ],
)
def test_specs_that_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        attnviz.make_spec(**options)


def test_render_writes_what_it_is_given(qapp, tmp_path):
    spec = attnviz.make_spec(text="the cat eats", heads=2)
    path = attnviz.render(spec, tmp_path / "a.png", size="900x600", theme="dark", stage="scores", heads=[1], title="x")
    assert (QImage(str(path)).width(), QImage(str(path)).height()) == (900, 600)
    figure = Figure(
        spec=spec, view=View(stage="scores"), heads=(1,), paper=Paper(width=900, height=600, theme="dark", title="x")
    )
    assert attnviz.render(figure, tmp_path / "b.png").read_bytes() == path.read_bytes()
    options = {"text": "the cat eats", "heads": 2}
    again = attnviz.render(
        options, tmp_path / "c.png", size=(900, 600), theme="dark", stage="scores", heads=[1], title="x"
    )
    assert again.read_bytes() == path.read_bytes()
    assert attnviz.render(spec, tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("figure", "look", "error", "sentence"),
    [
        ("spec", {}, TypeError, "figure is of type str: give a spec"),
        ({}, {"colour": "red"}, TypeError, "'colour' is nothing that a figure has: give any of animates"),
        ({}, {"stage": "nothing"}, ValueError, "stage is 'nothing', which this spec lacks"),
        ({}, {"decimals": "many"}, ValueError, "decimals is 'many'"),
        ({}, {"heads": [5]}, ValueError, "heads has 5"),
        ({}, {"shows": "a-b"}, ValueError, "a-b compares two states"),
        ({}, {"shows": "b-a"}, ValueError, "shows is 'b-a': give heads, a-b"),
        ({}, {"heads": "01"}, ValueError, "heads"),
        ({}, {"beside": {"mask": "none"}}, ValueError, "^beside is for shows a-b, difference, row, not heads: leave"),
        ({}, {"rows": (0, 2), "shows": "row"}, ValueError, "^rows is for shows heads, a-b, .*, not row: leave it out"),
        ({"length": 4, "heads": 2}, {"heads": [0, 1], "shows": "row"}, ValueError, "^heads is 0,1, but row is of one"),
        ({}, {"rows": (50, 60)}, ValueError, "rows begins at 50, but the map has"),
        ({}, {"animates": "stages"}, ValueError, "animates stages is for a GIF: give a name that ends in .gif"),
        ({}, {"frames": 3}, ValueError, "^frames is for pictures that move: give animates too"),
        ({}, {"row": "a"}, ValueError, "row is 'a'"),
        ({}, {"row": 1.5}, ValueError, "row is 1.5"),
        ({}, {"beside": 3}, TypeError, "beside is of type int: give a spec, or a dict of what differs in B"),
        ({}, {"beside": {"haeds": 3}}, ValueError, "'haeds' is not a field of a spec"),
        ({}, {"beside": {"text": "a", "length": 3}}, ValueError, "text and length are sources"),
        ({"text": 3}, {}, ValueError, "text is 3"),
    ],
)
def test_figures_that_are_refused(tmp_path, figure, look, error, sentence):
    with pytest.raises(error, match=sentence):
        attnviz.render(figure, tmp_path / "a.png", **look)


def test_one_head_and_numbers_of_numpy_will_do(qapp, tmp_path):
    look = {"shows": "row", "size": (900, 600)}
    one = attnviz.render({"length": 3}, tmp_path / "a.png", heads=1, row=2, **look).read_bytes()
    assert (
        one
        == attnviz.render({"length": 3}, tmp_path / "b.png", heads=np.array([1]), row=np.int64(2), **look).read_bytes()
    )


def test_b_is_said_in_the_forms_of_a_spec(qapp, tmp_path):
    spec = attnviz.make_spec(text="a b c", heads=2)
    look = {"shows": "a-b", "size": (900, 600)}
    for short, whole in (
        ({"text": "x y z"}, {"source": Text(text="x y z")}),
        ({"heads": 1}, {"num_heads": 1}),
        ({"mask_shape": "window:2"}, {"mask_shape": parse_shape("window:2")}),
    ):
        drawn = attnviz.render(spec, tmp_path / "a.png", beside=short, **look).read_bytes()
        assert drawn == attnviz.render(spec, tmp_path / "b.png", beside=edited(spec, **whole), **look).read_bytes()


def test_numbers_are_written_as_the_command_line_writes_them(tmp_path):
    code = (
        "import sys, attnviz; spec = {'text': 'a b c', 'heads': 2}; attnviz.render(spec, 'a.csv', stage='scores');"
        "attnviz.render(spec, 'a.npz'); print('PySide6' in sys.modules)"
    )
    assert fresh(code, tmp_path).stdout.strip() == "False"
    spec = ["--text", "a b c", "--heads", "2"]
    assert cli.run(["render", *spec, "--stage", "scores", "--data", str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["weights"].shape == (2, 3, 3)


def test_a_name_without_an_ending_is_said(qapp, tmp_path):
    for name in "a", "a.bmp", "a.gif", "a.csv":
        with pytest.raises(ValueError, match=r"give a name that ends in \.png, \.svg, \.pdf$"):
            attnviz.show(np.eye(2), path=Path(tmp_path, name))
    for name in "a", "a.bmp":
        with pytest.raises(ValueError, match=r"give a name that ends in .*\.gif, \.npz, \.csv$"):
            attnviz.render({}, Path(tmp_path, name))
    for write in partial(attnviz.render, {}), partial(attnviz.show, np.eye(2)):
        with pytest.raises(TypeError, match="path is 3: give a file's name"):
            write(path=3)
