"""The legend of a sheet: every look that is there is told, in no more lines than that takes."""

from contextlib import closing

import pytest
from paper_words import overlapping, painted

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.figure import marks
from attnviz.figures import Figure
from attnviz.spec import Lesson, Paper, Text, View, make_spec

pytestmark = pytest.mark.usefixtures("qapp")

DROPPED = make_spec(Text(text="The cat eats 猫 吃 鱼 today"), num_heads=2, dropout=0.4, training=True)


def drawn(spec, paper, **view):
    with closing(Engine()) as engine:
        return rendering.drawing_of(Figure(spec=spec, view=View(**view), paper=paper), engine)[0]


@pytest.mark.parametrize("width", [400, 640, 1004])
def test_each_look_is_told_in_a_narrow_column(width):
    paper = Paper(width=width, height=900, dpi=300)
    drawing = drawn(DROPPED, paper, stage="dropped_weights")
    _, words, _ = painted(drawing)
    said = [text for text, _ in words]
    entries = [entry.text for entry in marks.legend_entries(drawing._picture, present_only=True)]
    assert len(entries) == 2
    assert [entry for entry in entries if entry not in said] == []
    assert overlapping(words) == []


def test_a_short_origin_stands_beside_the_legend():
    paper = Paper(width=1004, height=709, dpi=300, theme="print")
    spec = make_spec(Lesson("journey"))
    drawing = drawn(spec, paper)
    plan = drawing._sheet.plan
    (caption,) = plan.captions
    assert caption.y == plan.legend.y
    assert caption.right == pytest.approx(paper.width - plan.legend.x)
    long = drawn(make_spec(Text(text="a b c d e f")), paper)._sheet.plan  # "untrained …" takes lines of its own
    assert long.captions[-1].bottom <= long.legend.y + 1e-6


def test_without_a_look_to_tell_maps_have_the_legends_room():
    paper = Paper(width=1004, height=709, dpi=300)
    legend = drawn(make_spec(Text(text="a b c"), mask="none"), paper, stage="scores")._sheet.plan.legend
    assert legend.height == 0
