"""A row on paper: what each key is can be told, and what is not asked for is not there."""

import re
from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import replace
from paper_drawings import pixels_of
from paper_words import painted

from attnviz import rendering
from attnviz.colour import GROUNDS
from attnviz.engine import Engine
from attnviz.figure.row_plot import kinds_of, peeking_of, row_plot
from attnviz.figure.row_sheet import _before_words
from attnviz.figures import Figure
from attnviz.frames import CellClass, RowStages, RowStory
from attnviz.spec import Lesson, PadLeft, Paper, RandomEmbeddings, RandomQK, TypedScores, edited, make_spec

pytestmark = pytest.mark.usefixtures("qapp")

ORDINARY, ZERO, NAN, DROPPED, PADDED, MASKED = CellClass
SHARP = make_spec(RandomQK(length=60, qk_scale=9.0), mask="neg-inf", dropout=0.4, training=True)
"""Of 60 keys one has nearly all the weight, others a weight of 0."""

MANY = Figure(shows="row", spec=edited(SHARP, mask_shape=PadLeft(count=5)), row=40, paper=Paper(width=900, height=560))
FEW = Figure(
    shows="row", row=3, spec=make_spec(Lesson(name="journey"), dropout=0.5, training=True),
    paper=Paper(width=900, height=560),
)  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    with closing(Engine()) as made:
        yield made


def row_of(weights, **fields):
    """A row of a spec with dropout, whose keys are all seen."""
    nothing = np.zeros(len(weights), bool)
    stages = {"weights": np.ones(len(weights)), "dropped_weights": np.array(weights)}
    fields = {"hidden": nothing, "masked": nothing, "dropped": nothing} | fields
    return RowStages(spec=SHARP, row=0, head=0, stages=stages, **fields)


def of(n, *keys):
    found = np.zeros(n, bool)
    found[list(keys)] = True
    return found


def test_each_key_is_of_one_kind():
    row = row_of(
        [0.5, 0.0, np.nan, 0.0, 0.0, 0.0, 0.2], dropped=of(7, 3), hidden=of(7, 4, 5, 6), masked=of(7, 4, 5),
        padded=(4, 5),
    )  # fmt: skip
    assert kinds_of(row).tolist() == [ORDINARY, ZERO, NAN, DROPPED, PADDED, MASKED, ORDINARY]
    assert peeking_of(row).tolist() == [False] * 6 + [True]


def test_keys_of_one_pixel_are_told_as_those_of_a_map():
    row = row_of([0.1, 0.0, 0.0, 0.0, 0.0, 0.3], dropped=of(6, 2, 3, 4), hidden=of(6, 5))
    story = RowStory(1, row, row_of([0.2] * 6))
    plot = row_plot(story, 100)
    assert [(one.first, one.last, one.kind) for one in plot.cells] == [(0.5, 1.5, ZERO), (1.5, 4.5, DROPPED)]
    assert [one.heights.tolist() for one in plot.bars] == [[0.1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0.3], [0.2] * 6]
    assert [one.role for one in plot.bars] == ["accent", "leak", "muted"]
    narrow = row_plot(story, 3)
    assert [(one.first, one.last, one.kind) for one in narrow.cells] == [(1.5, 3.5, DROPPED)]
    assert narrow.bars[0].heights.tolist() == [0.1, 0, 0]
    assert narrow.bars[0].edges.tolist() == [-0.5, 1.5, 3.5, 5.5]


def test_a_row_without_numbers_has_an_axis():
    assert row_plot(RowStory(1, row_of([np.nan] * 4)), 100).y_range == (0, 1)


def colours_of(pixels, kinds):
    return {kind for kind in kinds if (pixels == GROUNDS[kind]).any()}


@pytest.mark.parametrize("legend", [True, False])
def test_kinds_of_many_keys_are_below_the_plot_and_in_the_legend(tmp_path, engine, legend):
    figure = replace(MANY, paper=replace(MANY.paper, legend=legend))
    rendering.write_figure(tmp_path / "a.png", figure, engine)
    pixels = pixels_of(tmp_path / "a.png")
    kinds = {ZERO, DROPPED, PADDED, MASKED}
    strips = [y for y in range(len(pixels)) if colours_of(pixels[y], kinds)]
    breaks = np.flatnonzero(np.diff(strips) > 1)
    strip = pixels[strips[0] : strips[breaks[0]] + 1 if legend else None]
    assert colours_of(strip, kinds) == kinds
    assert len(breaks) == legend
    if legend:
        assert colours_of(pixels[strips[breaks[0] + 1] :], kinds) == kinds


def words_of(path, figure, engine):
    rendering.write_figure(path, figure, engine)
    return re.findall(r"<text[^>]*>([^<]*)", path.read_text())


PARTS = {
    "few": {
        "title": ["^query 3"], "sign": ["×", "∅"], "labels": ["^journey$", "^weights after dropout$"],
        "legend": ["^masked$", "^dropped$", "^before: dropout 0$"], "caption": ["seed 123", "Σ", "book"],
        "numbers": ["^0.0", "%"],
    },
    "many": {
        "title": ["^query 40"], "labels": ["^key$", "^weight$"],
        "legend": ["^masked$", "^zero$", "^dropped$", "^padded$"], "caption": ["seed 123", "Σ", "untrained"],
    },
}  # fmt: skip
"""Words on the sheet, by the part that they belong to."""


@pytest.mark.parametrize("off", [None, "labels", "legend", "caption", "numbers"])
@pytest.mark.parametrize("which", ["few", "many"])
def test_what_is_not_asked_for_is_not_there(tmp_path, engine, which, off):
    figure = {"few": replace(FEW, beside=edited(FEW.spec, dropout=0.0)), "many": MANY}[which]
    figure = replace(figure, paper=replace(figure.paper, real_text=True, **({off: False} if off else {})))
    words = words_of(tmp_path / "a.svg", figure, engine)
    for part, wanted in PARTS[which].items():
        found = [one for one in wanted if any(re.search(one, text) for text in words)]
        assert found == ([] if part == off else wanted), part


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mask": "none"}, "before: no mask"),
        ({"mask": "three-step", "dropout": 0.0}, "before: three-step mask"),
        ({"seed": 7, "dropout": 0.0, "top_k": 2}, "before: −∞ mask, top-k 2"),
        ({"seed": 7, "dropout": 0.1, "training": False}, "before: dropout 0.1, dropout seed 7, training no, …"),
    ],
)
def test_a_row_says_what_the_state_before_is(changes, words):
    """It said "the state before", never before what."""
    assert _before_words(FEW.spec, edited(FEW.spec, **changes)) == words
    assert _before_words(FEW.spec, FEW.spec) == "the state before"


def test_a_slides_row_has_heads_near_its_keys_a_track_from_0_to_100_percent_and_a_vector_in_brackets(engine):
    """The heads stood a key's line high above; nothing said where a bar would end; "−.63 · −.06" read as a product."""
    figure = replace(FEW, paper=Paper(), spec=edited(FEW.spec, dropout=0.0))
    _, words, margin = painted(rendering.drawing_of(figure, engine)[0])
    boxes = {text: outline.boundingRect().translated(-margin, -margin) for text, outline in words}
    head, pitch = boxes["weights after softmax"], boxes["one"].center().y() - boxes["with"].center().y()
    assert boxes["Your"].top() - head.bottom() < 0.55 * pitch
    assert head.height() > boxes["0 %"].height() * 1.2
    assert boxes["0 %"].left() == pytest.approx(head.left(), abs=4)
    assert boxes["100 %"].top() > boxes["step"].top() > boxes["one"].bottom()
    assert any(re.search(r"context \(−?\.\d\d, −?\.\d\d\)$", text) for text in boxes)


def test_without_numbers_signs_stay(tmp_path, engine):
    figure = replace(FEW, paper=replace(FEW.paper, real_text=True, numbers=False, legend=False))
    words = words_of(tmp_path / "a.svg", figure, engine)
    assert {"×", "∅"} <= set(words)


def test_scores_near_the_largest_of_float64_are_told_shortly(tmp_path, engine):
    spec = make_spec(TypedScores(scores=((1.7e308, -1.7e308), (0.0, 1.0))), dtype="float64", mask="none")
    figure = replace(FEW, spec=spec, row=0, paper=replace(FEW.paper, real_text=True))
    words = words_of(tmp_path / "a.svg", figure, engine)
    assert {"1.7e308", "−1.7e308"} <= set(words)


def test_a_row_of_nan_is_told(tmp_path, engine):
    spec = make_spec(RandomEmbeddings(length=60), mask="neg-inf", mask_shape=PadLeft(count=4))
    figure = replace(MANY, spec=spec, row=2, paper=replace(MANY.paper, real_text=True))
    words = words_of(tmp_path / "a.svg", figure, engine)
    assert "NaN" in words
    assert not any("peeking" in text for text in words)
    rendering.write_figure(tmp_path / "a.png", figure, engine)
    assert (pixels_of(tmp_path / "a.png") == GROUNDS[NAN]).sum() > 5000
