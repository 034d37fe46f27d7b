"""The laboratory in the whole window, driven by mouse and keys as a person drives it."""

import math

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QSettings, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from attnviz import app
from attnviz.frames import CellClass, shown_class
from attnviz.session import Cell
from attnviz.spec import Drawn, Lesson, TypedScores, View, edited, make_spec
from attnviz.views import theme
from attnviz.views.story import story

CAT = make_spec(Lesson(name="cat-eats-fish"), mask="none")


@pytest.fixture
def opened(qtbot, tmp_path):
    made = []

    def open_(spec=None, view=None):
        asked = None if spec is None else (spec, view or View())
        program = app.build_window(asked, QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
        qtbot.addWidget(program.window)
        program.window.resize(1280, 800)
        program.window.show()
        made.append(program)
        settle(qtbot, program)
        program.window.heatmaps.setFocus()
        return program

    yield open_
    for program in made:
        program.window.close()


def settle(qtbot, program):
    def calm():
        now = program.session.snapshot()
        there = now.picture is not None and now.picture.complete and not now.running
        return there and (now.picture.spec, now.picture.view) == program.controller.wanted()

    qtbot.waitUntil(calm, timeout=20_000)


def told(qtbot, program):
    """The row's story of the picture that stands."""
    now = program.session.snapshot

    def come():
        story = now().story
        return story is not None and story.now.spec == now().picture.spec and story.now.row == now().selected.row

    qtbot.waitUntil(come, timeout=20_000)
    return now().story


def press(qtbot, program, key, modifier=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(program.window.heatmaps, key, modifier)
    settle(qtbot, program)


def place_of(program, row, col, shape=(3, 3)):
    box = program.window.heatmaps._panels[0].place.map_rect
    return QPoint(round(box.x + (col + 0.5) * box.width / shape[1]), round(box.y + (row + 0.5) * box.height / shape[0]))


def turn(program, at, notches, modifiers):
    heads = program.window.heatmaps
    QApplication.sendEvent(heads, QWheelEvent(
        QPointF(at), QPointF(heads.mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        modifiers, Qt.ScrollPhase.NoScrollPhase, False,
    ))  # fmt: skip


def test_m_shares_the_24_percent_out_and_what_was_before_stays_in_sight(qtbot, opened):
    program = opened()
    assert told(qtbot, program).now.stages["weights"].round(2).tolist() == pytest.approx([0.09, 0.67, 0.24], abs=1e-6)
    press(qtbot, program, Qt.Key.Key_M)
    qtbot.waitUntil(lambda: told(qtbot, program).before is not None)
    lines = program.window.row_card.lines
    story = told(qtbot, program)
    assert story.now.stages["weights"].round(2).tolist() == pytest.approx([0.12, 0.88, 0.0], abs=1e-6)
    assert story.before.stages["weights"].round(2).tolist() == pytest.approx([0.09, 0.67, 0.24], abs=1e-6)
    assert story.now.stages["context"].round(2).tolist() == pytest.approx([0.21, 0.09], abs=1e-6)
    assert story.before.stages["context"].round(2).tolist() == pytest.approx([0.16, 0.31], abs=1e-6)
    shares, before = ([lines.line(key).texts[name] for key in range(3)] for name in ("share", "before"))
    assert (before, shares) == (["9 %", "67 %", "24 %"], ["12 %", "88 %", "×"])
    assert [(one.name, one.before_text, one.text) for one in lines.context] == [
        ("猫味", ".16", ".21"), ("鱼味", ".31", ".09"),
    ]  # fmt: skip
    bars = program.window.row_card.bars
    assert bars.lines is lines
    qtbot.waitUntil(lambda: not bars.is_moving())
    assert bars.lengths() == pytest.approx([0.1192, 0.8808, 0.0], abs=5e-5)
    image, columns = bars.grab().toImage(), bars.columns()
    bare = theme.current().card
    for key, was in enumerate((0.09, 0.6652, 0.2447)):  # the dashed outline ends where the bar was
        end = columns.bar_left + was * (columns.bar_right - columns.bar_left)
        y = int(bars.line_rect(key).center().y())
        found = {QColor(image.pixel(x, y + dy)).name() for x in (int(end) - 1, int(end)) for dy in range(-4, 5)}
        assert found - {bare, theme.current().accent}, (key, found)
    assert "shared out" in program.window.sentence_card.text()


def test_a_score_is_turned_up_until_three_step_is_nan_and_minus_infinity_is_not(qtbot, opened):
    program = opened(edited(CAT, mask="three-step"))
    program.controller.select(Cell(1, 2))
    at = place_of(program, 1, 2)
    large = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier
    for _ in range(11):
        turn(program, at, 10, large)  # ten notches of 1
        settle(qtbot, program)
    assert program.session.snapshot().spec.source.scores[1][2] == pytest.approx(111.0)
    frame = program.session.snapshot().picture.heads[0]
    assert np.isnan(frame.values[1]).all()
    assert (shown_class(frame.classes[1]) == CellClass.NAN).all()
    press(qtbot, program, Qt.Key.Key_M, Qt.KeyboardModifier.ShiftModifier)
    assert program.session.snapshot().spec.mask == "neg-inf"
    assert program.session.snapshot().picture.heads[0].values[1] == pytest.approx([0.1192, 0.8808, 0.0], abs=5e-5)


def test_a_number_typed_behind_the_mask_is_said_to_change_nothing(qtbot, opened):
    program = opened(make_spec(TypedScores(scores=((2.0, 0.0), (1.0, 1.0))), mask="neg-inf"), View())
    status = program.window.status_line
    for cell, words in ((Cell(0, 1), "the mask hides this cell"), (Cell(1, 0), "")):
        program.controller.select(cell)
        press(qtbot, program, Qt.Key.Key_E)
        qtbot.keyClicks(program.window.focusWidget(), "3")
        qtbot.keyClick(program.window.focusWidget(), Qt.Key.Key_Return)
        settle(qtbot, program)
        assert program.session.snapshot().spec.source.scores[cell.row][cell.col] == 3
        assert status._said.text().startswith(words)
        assert bool(status._said.text()) == bool(words)


def test_draws_by_itself_only_where_something_is_dropped(qtbot, opened):
    program = opened()
    assert not program.window.actions_by_name["redraws"].isEnabled()
    program.controller.edit_spec(edited(CAT, dropout=0.5))
    settle(qtbot, program)
    assert program.window.actions_by_name["redraws"].isEnabled()


def test_a_drag_with_alt_changes_the_current_cell_alone_and_is_one_step_of_undo(qtbot, opened):
    program = opened()
    program.controller.select(Cell(1, 2))
    heads, at = program.window.heatmaps, place_of(program, 1, 2)
    qtbot.mousePress(heads, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier, at)
    for dy in range(3, 31, 3):
        qtbot.mouseMove(heads, at - QPoint(0, dy))
        QApplication.processEvents()
    qtbot.mouseRelease(heads, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier, at - QPoint(0, 30))
    settle(qtbot, program)
    changed = program.session.snapshot().spec.source.scores
    assert changed[1][2] > 1.0
    assert (changed[0], changed[2]) == ((0.5, 0.5, 1.0), (0.5, 0.5, 0.0))
    program.window.actions_by_name["undo"].trigger()
    settle(qtbot, program)
    assert program.session.snapshot().spec == CAT


def test_a_mask_is_drawn_with_the_pointer(qtbot, opened):
    program = opened(edited(CAT, mask="neg-inf"))
    heads = program.window.heatmaps
    qtbot.keyClick(heads, Qt.Key.Key_D)
    assert program.window.actions_by_name["draw_mask"].isChecked()
    qtbot.mouseClick(heads, Qt.MouseButton.LeftButton, pos=place_of(program, 2, 0))
    settle(qtbot, program)
    now = program.session.snapshot()
    assert now.spec.mask_shape == Drawn(runs=((0, 0, 0), (1, 0, 1), (2, 1, 2)))
    assert now.picture.heads[0].values[2][0] == 0
    assert now.picture.heads[0].values[2].sum() == pytest.approx(1)
    qtbot.keyClick(heads, Qt.Key.Key_Escape)
    assert not program.window.actions_by_name["draw_mask"].isChecked()


def test_r_draws_other_cells_and_keeps_everything_else(qtbot, opened):
    program = opened(make_spec(num_heads=1, dropout=0.5), View(stage="dropped_weights"))
    first = program.session.snapshot().picture.heads[0].values
    press(qtbot, program, Qt.Key.Key_R)
    second = program.session.snapshot().picture.heads[0].values
    assert ((first == 0) != (second == 0)).any()
    both = (first != 0) & (second != 0)
    assert both.any()
    assert second[both].tolist() == first[both].tolist()


def test_dropout_draws_by_itself_until_it_is_frozen(qtbot, opened):
    program = opened(make_spec(num_heads=1, dropout=0.5), View(stage="dropped_weights"))
    program.controller._redraw.setInterval(5)
    seed = program.session.snapshot().spec.dropout_seed
    qtbot.keyClick(program.window.heatmaps, Qt.Key.Key_R, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: program.session.snapshot().spec.dropout_seed >= seed + 3, timeout=20_000)
    qtbot.keyClick(program.window.heatmaps, Qt.Key.Key_R, Qt.KeyboardModifier.ShiftModifier)
    settle(qtbot, program)
    assert not program.session.snapshot().redraws
    assert not program.session.snapshot().can_undo  # draws by itself are no steps of a person's


def test_p_pins_a_and_space_shows_it(qtbot, opened):
    program = opened()
    press(qtbot, program, Qt.Key.Key_P)
    press(qtbot, program, Qt.Key.Key_M)
    press(qtbot, program, Qt.Key.Key_M, Qt.KeyboardModifier.ShiftModifier)
    now = program.session.snapshot()
    assert now.before is now.pinned
    assert now.before.spec == CAT
    assert "A is pinned" in program.window.status_line._left.text()
    qtbot.keyPress(program.window.heatmaps, Qt.Key.Key_Space)
    assert program.session.snapshot().shown.spec == CAT
    qtbot.keyRelease(program.window.heatmaps, Qt.Key.Key_Space)
    assert program.session.snapshot().shown.spec == now.spec
    press(qtbot, program, Qt.Key.Key_P)
    assert program.session.snapshot().pinned is None


def test_n_hides_what_is_to_be_predicted(qtbot, opened):
    program = opened()
    told(qtbot, program)
    seen = program.window.row_card.grab().toImage()
    press(qtbot, program, Qt.Key.Key_N)
    assert not program.session.snapshot().show_numbers
    assert program.window.row_card.grab().toImage() != seen
    assert program.window.sentence_card.isVisible()
    assert not any(letter.isdigit() for words in story(program.session.snapshot()) for letter in words)
    assert "numbers are hidden" in program.window.sentence_card.text()
    before = program.window.heatmaps.grab().toImage()
    press(qtbot, program, Qt.Key.Key_N)
    assert program.window.heatmaps.grab().toImage() != before
    assert any(letter.isdigit() for letter in story(program.session.snapshot())[0])


def test_after_the_first_mask_a_link_leads_to_a_test_of_ones_own_code(qtbot, opened):
    program = opened()
    card = program.window.sentence_card
    assert not card._code.isVisible()
    press(qtbot, program, Qt.Key.Key_M)
    qtbot.waitUntil(card._code.isVisible, timeout=5000)
    qtbot.mouseClick(card._code, Qt.MouseButton.LeftButton)
    assert program.window.side.current == "leaks"
    assert program.window.side.pages["leaks"].open.isVisible()


def study_of(program, page):
    program.window.show_page(page)
    return program.window.side.pages[page]


def test_rounds_differ_without_a_mask_and_agree_with_one(qtbot, opened):
    program = opened(make_spec(num_heads=1, d_out=2, seed=789, mask="none"))
    page = study_of(program, "rounds")
    qtbot.waitUntil(lambda: page.latest is not None and page.latest.finished, timeout=30_000)
    assert np.max(page.latest.differences) == pytest.approx(0.81, abs=0.005)
    press(qtbot, program, Qt.Key.Key_M)
    qtbot.waitUntil(lambda: page.latest.finished and np.max(page.latest.differences) < 1e-6, timeout=30_000)


def test_the_exam_unmasks_who_copied(qtbot, opened):
    program = opened()
    page = study_of(program, "exam")
    if page.study is None:
        page.run.click()
    qtbot.waitUntil(lambda: page.latest is not None and page.latest.finished, timeout=110_000)
    curve = next(curve for curve in page.latest.curves if curve.mask == "none")
    assert curve.training[-1] < 0.1
    assert curve.exam[-1] > math.log(6) + 1


def test_a_study_does_not_hold_the_window_up_and_stops_when_its_page_goes(qtbot, opened):
    program = opened(make_spec(num_heads=1, dropout=0.5))
    page = study_of(program, "dropout")
    qtbot.waitUntil(lambda: page.study is not None or page.latest is not None, timeout=20_000)
    program.window.show_page("row")
    assert page.study is None
    assert not program.studies.is_running("dropout")
    press(qtbot, program, Qt.Key.Key_M)
    assert program.session.snapshot().spec.mask == "none"


def test_typing_into_the_text_source_changes_nothing_but_the_text(qtbot, opened):
    program = opened(make_spec(num_heads=1, dropout=0.5))
    before = program.controller.wanted()[0]
    program.window.show_page("controls")
    program.window.source_editor.edit_text()
    field = QApplication.focusWidget()
    qtbot.keyClicks(field, "mprtnde")
    assert program.window.actions_by_name["draw_mask"].isChecked() is False
    now = program.controller.wanted()[0]
    assert (now.mask, now.dropout_seed, now.training) == (before.mask, before.dropout_seed, before.training)
    assert program.session.snapshot().pinned is None
