"""A typed matrix under a hand: what an edit makes of it, the field over a cell, Alt with the wheel and with a drag."""

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from made_pictures import ORDINARY, outline_of, snapshot_of
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QToolTip

from attnviz import colour
from attnviz.figure.fonts import load_fonts
from attnviz.frames import Counts, Finished, Frame, RowStages, RowStory, Scale
from attnviz.session import Cell, Picture, Window
from attnviz.spec import Lesson, SpecError, TypedScores, TypedWeights, View, make_spec
from attnviz.views.cell_editor import CellEdit, number_text, read_number, with_cell
from attnviz.views.heatmaps import Heatmaps

SCORES = TypedScores(scores=((0.5, 0.5, 1.0), (0.0, 2.0, 1.0), (0.5, 0.5, -math.inf)), tokens=("猫", "吃", "鱼"))
ALT, SHIFT, NONE = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.NoModifier


# ------------------------------------------------------------------------------------------------------- pure parts


def test_a_typed_number_takes_the_cells_place_and_nothing_else_changes():
    changed = with_cell(SCORES, CellEdit(1, 2, -3.5))
    assert changed.scores == ((0.5, 0.5, 1.0), (0.0, 2.0, -3.5), (0.5, 0.5, -math.inf))
    assert changed.tokens == SCORES.tokens
    assert SCORES.scores[1][2] == 1.0
    assert with_cell(SCORES, CellEdit(0, 0, -math.inf)).scores[0][0] == -math.inf


def test_steps_add_up_to_what_one_would_write():
    source = with_cell(SCORES, CellEdit(1, 0, 0.1))
    source = with_cell(source, CellEdit(1, 0, None, 0.2))
    assert source.scores[1][0] == 0.3
    for _ in range(3):
        source = with_cell(source, CellEdit(1, 0, None, -0.1))
    assert str(source.scores[1][0]) == "0.0"
    for _ in range(104):
        source = with_cell(source, CellEdit(1, 0, None, 1.0))
    assert source.scores[1][0] == 104
    assert with_cell(SCORES, CellEdit(2, 2, None, 5.0)).scores[2][2] == -math.inf


def test_weights_do_not_fall_below_zero_by_steps_and_are_refused_when_typed():
    source = TypedWeights(weights=((0.4, 0.05),))
    assert with_cell(source, CellEdit(0, 1, None, -0.1)).weights == ((0.4, 0.0),)
    with pytest.raises(SpecError, match="negative"):
        with_cell(source, CellEdit(0, 1, -1.0))
    with pytest.raises(SpecError, match="finite"):
        with_cell(source, CellEdit(0, 1, -math.inf))
    with pytest.raises(SpecError, match="no cell"):
        with_cell(source, CellEdit(1, 0, 1.0))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        (" -2 ", -2),
        ("−2,5", -2.5),
        ("-inf", -math.inf),
        ("−∞", -math.inf),
        ("−Inf", -math.inf),
        ("1e2", 100),
    ],
)
def test_what_is_typed_is_read(text, number):
    assert read_number(text, weights=False) == number


@pytest.mark.parametrize("text", ["abc", "", "1.2.3", "nan", "inf", "∞"])
def test_what_is_no_number_is_told_in_words(text):
    assert "type a number" in read_number(text, weights=False)


def test_a_weight_is_no_negative_number():
    assert read_number("-1", weights=True) == read_number("-inf", weights=True) == "a weight is 0 or more"
    assert read_number("0.3", weights=True) == 0.3


def test_numbers_stand_in_the_field_as_one_would_type_them():
    assert [number_text(n) for n in (0.5, 2.0, -1.25, -math.inf, None, 0.30000001192092896)] == [
        "0.5", "2", "−1.25", "−∞", "", "0.3",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------- on the maps


def typed_picture(source=SCORES, stage="weights", n=3):
    values = np.random.default_rng(0).random((n, n)).astype(np.float32)
    classes = np.full((n, n), ORDINARY, np.uint8)
    scale = Scale(0.0, 1.0)
    rgb = colour.paint_values(values, classes, scale, "viridis")
    frame = Frame(1, "head:0", stage, 0, (0, n), (0, n), 1, values, classes, rgb, scale, Counts(), np.ones(n))
    frames = MappingProxyType({"head:0": frame})
    outline = replace(outline_of(n, tokens=tuple("猫吃鱼鸟狗马"[:n])), stage=stage)
    spec = make_spec(source)
    return Picture(spec, View(stage=stage), 1, outline, frames, Finished(1, 0.0, 0, 0), frames)


class Typed:
    """Heatmaps of a typed matrix whose edits and selections come back to them, as the controller does."""

    def __init__(self, qtbot, picture, **fields):
        load_fonts()
        self.maps = Heatmaps()
        self.snapshot = snapshot_of(picture, **fields)
        self.edits, self.windows, self.said = [], [], []
        self.maps.cell_edited.connect(self.on_edited)
        self.maps.cell_selected.connect(lambda cell: self.present(selected=cell))
        self.maps.window_moved.connect(self.windows.append)
        self.maps.said.connect(self.said.append)
        self.maps.resize(640, 560)
        qtbot.addWidget(self.maps)
        self.maps.show()
        qtbot.waitExposed(self.maps)
        self.maps.activateWindow()
        self.maps.present(self.snapshot)

    def present(self, **fields):
        self.snapshot = replace(self.snapshot, **fields)
        self.maps.present(self.snapshot)

    def on_edited(self, edit):
        self.edits.append(edit)
        source = self.snapshot.spec.source
        if isinstance(source, TypedScores | TypedWeights):
            self.present(spec=make_spec(with_cell(source, edit)))

    def point(self, row, col):
        return self.maps.point_of("head:0", Cell(row, col))

    @property
    def editor(self):
        return self.maps._typed.editor

    def double_click(self, qtbot, row, col):
        qtbot.mouseClick(self.maps, Qt.MouseButton.LeftButton, pos=self.point(row, col))
        qtbot.mouseDClick(self.maps, Qt.MouseButton.LeftButton, pos=self.point(row, col))

    def wheel(self, point, angle, modifiers):
        event = QWheelEvent(
            QPointF(point), QPointF(self.maps.mapToGlobal(point)), QPoint(), angle, Qt.MouseButton.NoButton, modifiers,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(self.maps, event)

    def mouse(self, kind, point, modifiers):
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else Qt.MouseButton.LeftButton
        button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
        event = QMouseEvent(kind, QPointF(point), QPointF(self.maps.mapToGlobal(point)), button, held, modifiers)
        QApplication.sendEvent(self.maps, event)


@pytest.mark.parametrize("stage", ["scaled_scores", "masked_scores", "weights"])
def test_a_double_click_opens_a_field_with_the_score_over_the_cell(qtbot, stage):
    shown = Typed(qtbot, typed_picture(stage=stage))
    shown.double_click(qtbot, 1, 1)
    assert shown.editor.isVisible()
    assert shown.editor.text() == "2"  # the score, whatever the stage shows
    assert shown.editor.geometry().contains(shown.point(1, 1))
    assert shown.windows == []
    qtbot.keyClicks(shown.editor, "-1.5")
    assert shown.edits == []
    qtbot.keyClick(shown.editor, Qt.Key.Key_Return)
    assert shown.edits == [CellEdit(1, 1, -1.5)]
    assert not shown.editor.isVisible()


def test_esc_leaves_the_number_as_it_was_and_gives_the_focus_back(qtbot):
    shown = Typed(qtbot, typed_picture())
    shown.double_click(qtbot, 0, 2)
    qtbot.keyClicks(shown.editor, "7")
    qtbot.keyClick(shown.editor, Qt.Key.Key_Escape)
    assert not shown.editor.isVisible()
    assert shown.edits == []
    assert shown.maps.focusWidget() is shown.maps


def test_wrong_input_is_told_beside_the_field_which_stays_open(qtbot):
    shown = Typed(qtbot, typed_picture())
    shown.double_click(qtbot, 0, 2)
    qtbot.keyClicks(shown.editor, "1x")
    assert "type a number" in shown.editor.problem()
    qtbot.keyClick(shown.editor, Qt.Key.Key_Return)
    assert shown.editor.isVisible()
    assert shown.edits == []
    shown.editor.clear()
    qtbot.keyClicks(shown.editor, "-in")
    assert shown.editor.problem() == ""  # the beginning of -inf
    qtbot.keyClicks(shown.editor, "f")
    qtbot.keyClick(shown.editor, Qt.Key.Key_Return)
    assert shown.edits == [CellEdit(0, 2, -math.inf)]


def test_tab_takes_the_number_and_goes_to_the_next_cell_and_row(qtbot):
    shown = Typed(qtbot, typed_picture())
    shown.double_click(qtbot, 0, 1)
    qtbot.keyClicks(shown.editor, "3")
    qtbot.keyClick(shown.editor, Qt.Key.Key_Tab)
    assert shown.editor.cell == shown.snapshot.selected == Cell(0, 2)
    assert shown.editor.text() == "1"
    qtbot.keyClick(shown.editor, Qt.Key.Key_Tab)
    assert shown.editor.cell == Cell(1, 0)
    qtbot.keyClick(shown.editor, Qt.Key.Key_Backtab)
    assert shown.editor.cell == Cell(0, 2)
    assert shown.edits == [CellEdit(0, 1, 3.0)]  # what was not changed is not an edit
    shown.editor.close_field()
    shown.double_click(qtbot, 2, 2)
    qtbot.keyClick(shown.editor, Qt.Key.Key_Tab)
    assert not shown.editor.isVisible()


def test_a_lessons_number_comes_from_the_story_of_its_row(qtbot):
    lesson = Lesson(name="cat-eats-fish")
    shown = Typed(qtbot, typed_picture(lesson), selected=Cell(1, 0))
    spec = shown.snapshot.spec
    scores = np.array([0.0, 2.0, 1.0], np.float32)
    seen = np.zeros(3, bool)
    now = RowStages(spec, 1, 0, MappingProxyType({"scaled_scores": scores}), seen, seen)
    shown.present(story=RowStory(1, now))
    shown.double_click(qtbot, 1, 1)
    assert shown.editor.text() == "2"
    shown.double_click(qtbot, 0, 0)  # another row's, which has not come yet
    assert shown.editor.text() == ""
    qtbot.keyClick(shown.editor, Qt.Key.Key_Tab)
    assert shown.editor.cell == Cell(0, 1)
    assert shown.edits == []


def test_elsewhere_a_double_click_zooms(qtbot):
    for picture in (typed_picture(Lesson(name="journey"), n=6), replace_stage(typed_picture(n=6), "context")):
        shown = Typed(qtbot, picture)
        shown.double_click(qtbot, 1, 1)
        assert not shown.editor.isVisible()
        assert len(shown.windows) == 1


def replace_stage(picture, stage):
    return replace(picture, view=View(stage=stage))


def test_e_types_the_current_cell_or_says_why_not(qtbot):
    shown = Typed(qtbot, typed_picture())
    shown.maps.edit_current_cell()
    assert "Choose a cell" in shown.said[-1]
    shown.present(selected=Cell(2, 0))
    shown.maps.edit_current_cell()
    assert shown.editor.isVisible()
    assert shown.editor.cell == Cell(2, 0)
    other = Typed(qtbot, typed_picture(Lesson(name="journey"), n=6), selected=Cell(0, 0))
    other.maps.edit_current_cell()
    assert "Freeze scores" in other.said[-1]


@pytest.mark.parametrize("angle", [QPoint(0, 120), QPoint(120, 0)])  # Alt turns a wheel sideways on some systems
def test_alt_and_the_wheel_change_the_current_cell_alone(qtbot, angle):
    shown = Typed(qtbot, typed_picture(), selected=Cell(1, 0))
    shown.wheel(shown.point(1, 0), angle, ALT)
    shown.wheel(shown.point(1, 0), -angle, ALT | SHIFT)
    assert shown.edits == [CellEdit(1, 0, None, 0.1), CellEdit(1, 0, None, -1.0)]
    for _ in range(4):
        shown.wheel(shown.point(1, 0), angle / 4, ALT)
    assert len(shown.edits) == 3  # a notch in parts is a notch
    assert shown.windows == []
    shown.wheel(shown.point(0, 0), QPoint(0, 120), ALT)  # not the current one
    shown.wheel(shown.point(1, 0), QPoint(0, 120), NONE)
    assert len(shown.edits) == 3
    assert len(shown.windows) >= 1


def test_alt_and_a_drag_change_a_tenth_for_three_pixels(qtbot):
    shown = Typed(qtbot, typed_picture(), selected=Cell(1, 1))
    point = shown.point(1, 1)
    shown.mouse(QEvent.Type.MouseButtonPress, point, ALT)
    for dy in (-2, -3, -6, -30, 9):
        shown.mouse(QEvent.Type.MouseMove, point + QPoint(0, dy), ALT)
    shown.mouse(QEvent.Type.MouseButtonRelease, point, ALT)
    assert [edit.step for edit in shown.edits] == [0.1, 0.1, 0.8, -1.3]
    assert shown.snapshot.spec.source.scores[1][1] == 1.7
    shown.mouse(QEvent.Type.MouseMove, point + QPoint(0, -30), NONE)
    assert len(shown.edits) == 4
    assert shown.windows == []


def test_a_lead_of_104_is_reached_by_one_drag_with_shift(qtbot):
    shown = Typed(qtbot, typed_picture(), selected=Cell(1, 2))
    point = shown.point(1, 2)
    shown.mouse(QEvent.Type.MouseButtonPress, point, ALT | SHIFT)
    shown.mouse(QEvent.Type.MouseMove, point - QPoint(0, 312), ALT | SHIFT)
    shown.mouse(QEvent.Type.MouseButtonRelease, point, ALT | SHIFT)
    assert shown.snapshot.spec.source.scores[1][2] == 105


def test_the_field_goes_along_with_its_cell_and_closes_when_that_is_gone(qtbot):
    shown = Typed(qtbot, typed_picture())
    shown.double_click(qtbot, 1, 1)
    shown.present(window=Window(0.5, 2.5, 0.5, 2.5))
    assert shown.editor.geometry().contains(shown.point(1, 1))
    shown.present(view=View(stage="context"))
    assert not shown.editor.isVisible()


def test_the_tip_of_a_typed_cell_tells_both_ways(qtbot, monkeypatch):
    shown = Typed(qtbot, typed_picture())
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, *_: told.append(text))
    point = shown.point(0, 0)
    QApplication.sendEvent(shown.maps, QHelpEvent(QEvent.Type.ToolTip, point, shown.maps.mapToGlobal(point)))
    assert told == ["double-click to type, Alt + wheel to change"]


def test_the_state_before_cannot_be_typed(qtbot):
    picture = typed_picture()
    shown = Typed(qtbot, picture, last=picture, show_before=True)
    shown.double_click(qtbot, 1, 1)
    assert not shown.editor.isVisible()
