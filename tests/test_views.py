"""Views on snapshots: presenting emits nothing, a person's edit emits one whole spec, words follow the numbers."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from attnviz import rendering
from attnviz.engine import Engine
from attnviz.figure.fonts import load_fonts
from attnviz.session import Cell, Problem, Snapshot
from attnviz.spec import (
    Lesson,
    RandomQK,
    Text,
    TypedScores,
    TypedWeights,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
)
from attnviz.views.controls import Controls
from attnviz.views.mask_switch import MaskSwitch
from attnviz.views.module_page import ModulePage
from attnviz.views.palette import Palette
from attnviz.views.pipeline_strip import PipelineStrip
from attnviz.views.source_editor import KINDS, Remembered, SourceEditor, kind_of
from attnviz.views.status_line import StatusLine
from attnviz.views.story import story
from attnviz.views.token_strip import TokenStrip

CAT = make_spec(Lesson(name="cat-eats-fish"), mask="none")


def picture_of(spec, view=None, thumbnail=0):
    return rendering.collect(Engine(), spec, view or View(), Viewport(thumbnail=thumbnail))


def snapshot_of(spec, *, row=None, before=None, view=None, thumbnail=0):
    picture = picture_of(spec, view, thumbnail)
    selected = None if row is None else Cell(row, 0)
    return Snapshot(spec=spec, view=view or View(), picture=picture, last=before, selected=selected)


@pytest.fixture
def seen(qtbot):
    """Adds a widget and collects what its signals emit."""
    load_fonts()

    def watch(widget, *signals):
        qtbot.addWidget(widget)
        widget.resize(400, 300)
        widget.show()
        emitted = []
        for signal in signals:
            signal.connect(emitted.append)
        return emitted

    return watch


# --------------------------------------------------------------------------------------------------------- sentences


def test_the_first_sentence_has_the_published_numbers():
    large, small = story(snapshot_of(CAT, row=1))
    assert large == "“Eats” gives 24 % to “fish”, a word that is not written yet."
    assert small.endswith("Press M.")


def test_after_m_the_sentence_says_where_the_24_percent_went():
    masked = edited(CAT, mask="neg-inf")
    large, small = story(snapshot_of(masked, row=1, before=picture_of(CAT)))
    assert large == "The 24 % did not vanish: it was shared out again."
    assert small == "9 became 12, 67 became 88. Now the vector tastes of cat."


def test_the_last_row_has_nothing_to_hide():
    assert "nothing to hide" in story(snapshot_of(edited(CAT, mask="neg-inf"), row=2))[0]
    assert "nothing ahead" in story(snapshot_of(CAT, row=2))[0]


def test_any_source_has_its_own_numbers():
    large, _ = story(snapshot_of(make_spec(mask="none", num_heads=1, seed=789), row=1))
    assert large == "“Journey” gives 63 % of its weight to words that are not written yet."


def test_nan_rows_and_dropout_are_said():
    nan = make_spec(TypedScores(scores=((0.0, 200.0), (0.0, 0.0))), mask="three-step")
    assert "1 row is NaN" in story(snapshot_of(nan, row=0))[0]
    ones = make_spec(TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),)), dropout=0.5, dropout_seed=14)
    large, small = story(snapshot_of(ones, row=0, view=View(stage="dropped_weights")))
    assert "sums to 1.40" in large
    assert "2.00" in small


# ---------------------------------------------------------------------------------------------------------- controls


@pytest.mark.parametrize("spec", [make_spec(dropout=0.3), CAT, make_spec(RandomQK(length=9)), make_spec(seed=9)])
def test_presenting_emits_nothing(seen, spec):
    controls, switch, editor, strip = Controls(), MaskSwitch(), SourceEditor(), PipelineStrip()
    emitted = [
        seen(controls, controls.spec_edited, controls.view_edited), seen(switch, switch.spec_edited),
        seen(editor, editor.spec_edited), seen(strip, strip.view_edited),
    ]  # fmt: skip
    for shown in (spec, make_spec(), spec):
        snapshot = snapshot_of(shown, row=0, thumbnail=32)
        for view in (controls, switch, editor, strip):
            view.present(snapshot)
            view.grab()
    assert emitted == [[], [], [], []]


def test_an_edit_emits_one_whole_spec(qtbot, seen):
    controls = Controls()
    emitted = seen(controls, controls.spec_edited)
    controls.present(snapshot_of(make_spec()))
    qtbot.mouseClick(controls._editors["mask"].buttons["three-step"], Qt.MouseButton.LeftButton)
    controls._editors["num_heads"].setValue(3)
    controls._editors["dropout"].set_value(0.5)
    assert emitted == [
        make_spec(mask="three-step"), edited(make_spec(), num_heads=3), edited(make_spec(), dropout=0.5),
    ]  # fmt: skip


def test_a_refused_edit_says_why_beside_its_control_and_emits_nothing(seen):
    controls = Controls()
    emitted = seen(controls, controls.spec_edited)
    controls.present(snapshot_of(make_spec()))
    controls._editors["d_out"].setValue(5)
    assert emitted == []
    assert "d_out is 5" in controls._problems["d_out"].text()
    assert not controls._problems["d_out"].isHidden()
    assert controls._editors["d_out"].value() == 5
    controls.present(Snapshot(spec=make_spec(), view=View(), problem=Problem("seed", "seed is odd")))
    assert controls._problems["seed"].text() == "seed is odd"


def test_both_ways_of_counting_d_out_follow_each_other(seen):
    controls = Controls()
    emitted = seen(controls, controls.spec_edited)
    controls.present(snapshot_of(make_spec()))
    assert "stacked: 2 each × 2 heads = 4 · the book's wrapper calls this d_out = 2" in controls._heads_line.text()
    controls._book_d_out.setValue(3)
    assert emitted == [edited(make_spec(), d_out=6)]


def test_what_a_source_fixes_is_grey_with_its_reason(seen):
    controls = Controls()
    seen(controls)
    controls.present(snapshot_of(CAT))
    assert not controls._editors["num_heads"].isEnabled()
    assert "no projections" in controls._editors["num_heads"].toolTip()
    assert "no projections" in controls._reason.text()
    controls.present(snapshot_of(make_spec()))
    assert controls._editors["num_heads"].isEnabled()


def test_the_switch_goes_back_to_the_mask_last_used(qtbot, seen):
    switch = MaskSwitch()
    emitted = seen(switch, switch.spec_edited)
    switch.present(snapshot_of(make_spec(mask="three-step")))
    qtbot.mouseClick(switch._segments.buttons["unmasked"], Qt.MouseButton.LeftButton)
    switch.present(snapshot_of(make_spec(mask="none")))
    qtbot.mouseClick(switch._segments.buttons["masked"], Qt.MouseButton.LeftButton)
    assert [spec.mask for spec in emitted] == ["none", "three-step"]


# ------------------------------------------------------------------------------------------------------------ source


def test_what_a_source_fixed_is_remembered_for_the_way_back():
    memory = Remembered()
    text = make_spec(Text(text="a b c"), num_heads=12, implementation="split", dropout=0.25)
    memory.note(text)
    cat = memory.spec_with(Lesson(name="cat-eats-fish"))
    assert (cat.num_heads, cat.dropout) == (1, 0.25)
    memory.note(cat)
    assert memory.spec_with(memory.source("text")) == text


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_of_the_source_list_gives_a_spec_of_its_kind(seen, kind):
    editor = SourceEditor()
    emitted = seen(editor, editor.spec_edited)
    editor.present(snapshot_of(make_spec(Text(text="x y"))))
    editor.choose(kind)
    if kind != "text":
        assert kind_of(emitted[-1]) == kind
        stages_of(emitted[-1])


def test_typing_applies_after_a_pause_and_an_empty_text_is_refused_in_words(qtbot, seen):
    editor = SourceEditor()
    emitted = seen(editor, editor.spec_edited)
    editor.present(snapshot_of(make_spec(Text(text="a b"))))
    editor.text_edit.setPlainText("c d e")
    qtbot.waitUntil(lambda: len(emitted) == 1)
    assert emitted[0].source == Text(text="c d e")
    editor.text_edit.setPlainText("")
    qtbot.waitUntil(lambda: not editor._problem.isHidden())
    assert "text is empty" in editor._problem.text()
    assert len(emitted) == 1


# ------------------------------------------------------------------------------------------------------ other views


def test_a_click_on_a_box_shows_its_stage(qtbot, seen):
    strip = PipelineStrip()
    emitted = seen(strip, strip.view_edited)
    strip.resize(1200, 58)
    strip.present(snapshot_of(make_spec(), thumbnail=32))
    strip.grab()
    box = next(box for box in strip._boxes if box.stage == "context")
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=box.rect.center().toPoint())
    assert emitted == [View(stage="context")]


@pytest.mark.parametrize("width", [300, 700, 1200, 2400])
@pytest.mark.parametrize("mask", ["none", "three-step", "neg-inf"])
def test_the_strip_never_overflows(seen, width, mask):
    strip = PipelineStrip()
    seen(strip)
    strip.resize(width, 58)
    strip.present(snapshot_of(make_spec(mask=mask, dropout=0.5), thumbnail=32))
    strip.grab()
    assert [box.stage for box in strip._boxes] == list(stages_of(make_spec(mask=mask, dropout=0.5)))
    assert strip._boxes[-1].rect.right() <= width
    assert all(a.rect.right() < b.rect.left() for a, b in zip(strip._boxes, strip._boxes[1:], strict=False))


def test_a_click_on_a_pill_selects_its_row(qtbot, seen):
    strip = TokenStrip()
    emitted = seen(strip, strip.row_selected)
    strip.resize(900, 44)
    strip.present(snapshot_of(make_spec(), row=0))
    strip.grab()
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip._pills[3][1].center().toPoint())
    assert emitted == [3]


def test_the_mask_stands_among_the_buffers(seen):
    page = ModulePage()
    seen(page)
    page.present(snapshot_of(make_spec(implementation="split")))
    kinds = {page.table.item(row, 0).text(): page.table.item(row, 1).text() for row in range(page.table.rowCount())}
    assert [kind for name, kind in kinds.items() if "mask" in name] == ["buffer"]
    assert "nothing learns it" in page._note.text()
    page.present(snapshot_of(CAT))
    assert "no module" in page._note.text()


def test_the_status_line_says_size_device_and_pixels(seen):
    line = StatusLine()
    seen(line)
    spec = make_spec(RandomQK(length=300), num_heads=2)
    picture = rendering.collect(Engine(), spec, View(), Viewport(pixels=(100, 100)))
    line.present(Snapshot(spec=spec, view=View(), picture=picture))
    assert "2 heads × 300 tokens" in line._left.text()
    assert "cpu float32" in line._left.text()
    assert "brightest of 4 × 4 cells" in line._left.text()


def test_the_palette_finds_and_does(qtbot, seen):
    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QWidget

    window = QWidget()
    seen(window)
    palette = Palette(window)
    done = []
    for name in ("Zoom in", "Zoom out", "Export picture"):
        action = QAction(name, window)
        action.triggered.connect(lambda _checked=False, name=name: done.append(name))
        palette.set_actions([*palette._actions, action])
    palette.popup()
    palette.search.setText("zoom out")
    qtbot.keyClick(palette.search, Qt.Key.Key_Return)
    assert done == ["Zoom out"]
    assert not palette.isVisible()
    QApplication.processEvents()


# ------------------------------------------------------------------------------------------------------------ pixels


def test_patterns_of_a_long_map_can_be_seen():
    spec = make_spec(RandomQK(length=1024), num_heads=12)
    picture = rendering.collect(Engine(), spec, View(), Viewport(pixels=(256, 256)))
    lowest = np.array([0x44, 0x01, 0x54])
    for frame in picture.heads:
        visible = np.tril(np.ones(frame.rgb.shape, bool))
        channels = np.stack([(frame.rgb >> shift) & 0xFF for shift in (16, 8, 0)], -1).astype(int)
        differs = (np.abs(channels - lowest) >= 16).any(-1)
        assert differs[visible].mean() >= 0.5
