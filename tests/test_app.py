"""The window as a whole, on the real engine: driven by mouse and keys."""

import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fakes import TwoCudaDevices
from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QImage, QKeySequence
from PySide6.QtWidgets import QFileDialog

from attnviz import app
from attnviz.engine import Engine
from attnviz.figure.fonts import load_fonts
from attnviz.remembered import recall
from attnviz.session import Cell, Window
from attnviz.spec import (
    Lesson,
    Paper,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    Text,
    View,
    edited,
    from_json,
    make_spec,
    stages_of,
    to_json,
)
from attnviz.views.actions import ROWS
from attnviz.window.keeping import last_session


@pytest.fixture
def settings(tmp_path):
    return QSettings(str(tmp_path / "attnviz.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def open_window(qtbot, settings):
    load_fonts()
    opened = []

    def open_(asked=None, engine=Engine):
        program = app.build_window(asked, settings, engine)
        opened.append(program)
        qtbot.addWidget(program.window)
        program.window.show()
        program.window.activateWindow()  # where there is no window manager, as under Xvfb, nobody else does
        qtbot.waitUntil(program.window.isActiveWindow)
        settle(qtbot, program)
        return program

    yield open_
    for program in opened:
        program.window.close()
        assert not program.worker.is_running()


def sheet_of(program, width, height):
    """The maps as they stand, on a sheet."""
    return msgspec.structs.replace(program.exporting.offered()[0][1], paper=Paper(width=width, height=height))


def settle(qtbot, program):
    """Wait until the picture last asked for is exact and on the screen."""

    def exact():
        snapshot = program.session.snapshot()
        assert not snapshot.running
        assert snapshot.picture is not None
        assert snapshot.picture.complete
        assert (snapshot.picture.spec, snapshot.picture.view) == program.controller.wanted()

    qtbot.waitUntil(exact, timeout=20_000)


def press(qtbot, program, key, modifier=Qt.KeyboardModifier.NoModifier):
    program.window.heatmaps.setFocus()
    qtbot.keyClick(program.window.heatmaps, key, modifier)
    settle(qtbot, program)


def cell_of(probe):
    return (-1, -1) if probe is None else (probe.row, probe.col)


def spec_of(program):
    return program.session.snapshot().spec


def test_the_first_start_is_cat_eats_fish_unmasked_on_the_row_of_eats(open_window):
    program = open_window()
    snapshot = program.session.snapshot()
    assert snapshot.spec == make_spec(Lesson(name="cat-eats-fish"), mask="none")
    assert snapshot.selected.row == 1
    assert snapshot.picture.heads[0].counts.future == 3
    sentence = program.window.sentence_card.text()
    assert "24 %" in sentence
    assert "Press M" in sentence


def test_m_shares_the_24_percent_out_and_space_brings_the_state_before_back(qtbot, open_window):
    program = open_window()
    press(qtbot, program, Qt.Key.Key_M)
    assert spec_of(program).mask == "neg-inf"
    assert "24 %" in program.window.sentence_card.text()
    assert "shared out" in program.window.sentence_card.text()
    maps = program.window.heatmaps
    qtbot.keyPress(maps, Qt.Key.Key_Space)
    assert program.session.snapshot().shown.spec.mask == "none"
    qtbot.keyRelease(maps, Qt.Key.Key_Space)
    assert program.session.snapshot().shown.spec.mask == "neg-inf"
    press(qtbot, program, Qt.Key.Key_M)
    assert spec_of(program).mask == "none"


def test_the_last_spec_layout_and_geometry_come_back(qtbot, open_window, settings):
    program = open_window((make_spec(num_heads=3), View(norm="unit")))
    program.window.use_layout("explore")
    program.window.close()
    again = open_window()
    snapshot = again.session.snapshot()
    assert (snapshot.spec, snapshot.view) == (make_spec(num_heads=3), View(norm="unit"))
    assert again.window.actions_by_name["layout_explore"].isChecked()


def test_the_keys_do_what_the_contract_says(qtbot, open_window):
    program = open_window((make_spec(dropout=0.5), View()))
    shift = Qt.KeyboardModifier.ShiftModifier
    press(qtbot, program, Qt.Key.Key_M, shift)
    assert spec_of(program).mask == "none"
    press(qtbot, program, Qt.Key.Key_M, shift)
    assert spec_of(program).mask == "three-step"
    press(qtbot, program, Qt.Key.Key_T)
    assert not spec_of(program).training
    press(qtbot, program, Qt.Key.Key_T)
    seed = spec_of(program).dropout_seed
    press(qtbot, program, Qt.Key.Key_R)
    assert spec_of(program).dropout_seed == seed + 1
    press(qtbot, program, Qt.Key.Key_1)
    assert program.session.snapshot().view.stage == "inputs"
    press(qtbot, program, Qt.Key.Key_Period)
    assert program.session.snapshot().view.stage == "queries"
    press(qtbot, program, Qt.Key.Key_Comma)
    assert program.session.snapshot().view.stage == "inputs"
    press(qtbot, program, Qt.Key.Key_H)
    assert program.session.snapshot().view.head == 0
    press(qtbot, program, Qt.Key.Key_H)
    assert program.session.snapshot().view.head == 1
    press(qtbot, program, Qt.Key.Key_Escape)
    assert program.session.snapshot().view.head is None
    press(qtbot, program, Qt.Key.Key_N)
    assert not program.session.snapshot().show_numbers


def test_arrows_move_the_current_cell_and_stop_at_the_edge(qtbot, open_window):
    program = open_window((make_spec(), View()))
    program.controller.select(Cell(0, 0))
    for key, cell in [
        (Qt.Key.Key_Up, (0, 0)), (Qt.Key.Key_Left, (0, 0)), (Qt.Key.Key_Down, (1, 0)), (Qt.Key.Key_Right, (1, 1)),
        (Qt.Key.Key_End, (5, 1)), (Qt.Key.Key_Down, (5, 1)), (Qt.Key.Key_Home, (0, 1)),
    ]:  # fmt: skip
        press(qtbot, program, key)
        selected = program.session.snapshot().selected
        assert (selected.row, selected.col) == cell


def test_letters_typed_into_the_text_change_only_the_text(qtbot, open_window):
    program = open_window((make_spec(Text(text="a b")), View()))
    before = spec_of(program)
    editor = program.window.source_editor
    editor.edit_text()
    qtbot.keyClicks(editor.text_edit, "mprtn")
    settle(qtbot, program)
    qtbot.waitUntil(lambda: "mprtn" in getattr(spec_of(program).source, "text", ""), timeout=5000)
    assert edited(spec_of(program), source=before.source) == before
    assert program.session.snapshot().show_numbers


def test_no_two_actions_share_a_key():
    keys = [QKeySequence(key).toString() for row in ROWS for key in row.keys]
    assert len(keys) == len(set(keys))


def test_every_action_has_words_and_a_menu(open_window):
    program = open_window()
    in_menus = {a for menu in program.window.menuBar().actions() for a in menu.menu().actions()}
    for name, action in program.window.actions_by_name.items():
        assert action.text(), name
        assert action in in_menus, name


def test_a_click_selects_and_a_hover_gives_the_exact_value_of_every_head(qtbot, open_window):
    program = open_window((make_spec(), View()))
    program.window.use_layout("explore")
    settle(qtbot, program)
    maps = program.window.heatmaps
    point = maps.point_of("head:1", Cell(2, 1))
    qtbot.mouseClick(maps.canvas(), Qt.MouseButton.LeftButton, pos=point)
    qtbot.waitUntil(lambda: program.session.snapshot().selected == Cell(2, 1))
    qtbot.waitUntil(lambda: Cell(*cell_of(program.session.snapshot().probe)) == Cell(2, 1))
    exact = Engine().arrays(make_spec()).stages["weights"][:, 2, 1]
    assert list(program.session.snapshot().probe.values) == [float(v) for v in exact]


def test_zoom_is_linked_and_asks_for_the_window_alone(qtbot, open_window):
    spec = make_spec(RandomEmbeddings(length=700), num_heads=2)
    program = open_window((spec, View()))
    for _ in range(4):
        press(qtbot, program, Qt.Key.Key_Plus)
    settle(qtbot, program)
    snapshot = program.session.snapshot()
    assert snapshot.window is not None
    qtbot.waitUntil(lambda: program.session.snapshot().picture.heads[0].level == 1)
    frames = program.session.snapshot().picture.heads
    assert {f.rows for f in frames} == {frames[0].rows}
    assert frames[0].rows != (0, 700)
    press(qtbot, program, Qt.Key.Key_0)
    qtbot.waitUntil(lambda: program.session.snapshot().picture.heads[0].rows == (0, 700))
    assert program.session.snapshot().window is None


def test_a_zoom_does_not_outlive_its_map(qtbot, open_window):
    program = open_window((make_spec(RandomEmbeddings(length=700), num_heads=1), View()))
    for _ in range(5):
        press(qtbot, program, Qt.Key.Key_Plus)
    assert program.session.snapshot().window is not None
    program.controller.edit_view(View(stage="values"))
    settle(qtbot, program)
    assert program.session.snapshot().picture.heads[0].rows == (0, 700)
    program.controller.edit_view(View())
    settle(qtbot, program)
    for _ in range(5):
        press(qtbot, program, Qt.Key.Key_Plus)
    program.controller.edit_spec(make_spec())
    settle(qtbot, program)
    assert program.session.snapshot().picture.heads[0].rows == (0, 6)
    assert program.session.snapshot().window is None


def test_the_window_outlives_the_mask_and_other_stages_and_is_saved_with_the_scene(qtbot, open_window, settings):
    program = open_window((make_spec(RandomQK(length=700), num_heads=2), View()))
    for _ in range(4):
        press(qtbot, program, Qt.Key.Key_Plus)
    window = program.session.snapshot().window
    press(qtbot, program, Qt.Key.Key_M)
    program.controller.edit_view(View(stage="scores"))
    settle(qtbot, program)
    assert program.session.snapshot().window == window
    looked_at = program.session.snapshot().looked_at
    assert looked_at.rows is not None
    program.window.close()
    assert last_session(settings)[0].view == looked_at
    again = open_window()
    assert again.session.snapshot().looked_at == looked_at


def test_a_spec_file_with_ranges_opens_on_its_window_and_goes_out_with_it(qtbot, open_window, tmp_path, monkeypatch):
    program = open_window()
    spec, view = make_spec(RandomQK(length=300), num_heads=1), View(rows=(40, 80), cols=(10, 50))
    path = tmp_path / "part.json"
    path.write_text(to_json(spec, view))
    program.filing.open_file(path)
    settle(qtbot, program)
    assert program.session.snapshot().window == Window(40, 80, 10, 50)
    out = tmp_path / "again.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(out), ""))
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        program.window.actions_by_name["save"].trigger()
    assert from_json(out.read_bytes()) == (spec, view)
    for whole, ranges in (False, (40, 80)), (True, None):
        with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
            figure = program.exporting.offered()[0][1]
            view = View() if whole else figure.view
            program.exporting.export(tmp_path / "part.png", msgspec.structs.replace(figure, view=view))
        assert recall(tmp_path / "part.png").view.rows == ranges


def test_queries_and_keys_of_a_file_are_opened_and_a_wrong_one_is_said(qtbot, open_window, tmp_path, monkeypatch):
    program = open_window((make_spec(RandomQK(length=8), num_heads=2, mask="none"), View()))
    path = tmp_path / "layer.npz"
    generator = np.random.default_rng(0)
    np.savez(path, q=generator.random((3, 20, 4), np.float32), k=generator.random((3, 20, 4), np.float32))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    with qtbot.waitSignal(program.filing.qk_described, timeout=20_000):
        program.window.actions_by_name["open"].trigger()
    settle(qtbot, program)
    spec = spec_of(program)
    assert isinstance(spec.source, QKFile)
    assert Path(spec.source.path).name == "layer.npz"
    assert (spec.num_heads, spec.source.length, spec.mask) == (3, 20, "none")
    assert program.window.source_editor.kinds.currentText() == "layer.npz"
    (tmp_path / "wrong.npz").write_bytes(b"no")
    with qtbot.waitSignal(program.filing.qk_described, timeout=20_000):
        program.filing.open_file(tmp_path / "wrong.npz")
    assert "wrong.npz" in program.session.snapshot().failure.sentence
    assert spec_of(program) == spec


def test_the_whole_row_of_the_selected_query_comes_under_the_map(qtbot, open_window):
    program = open_window((make_spec(RandomQK(length=200), num_heads=2), View()))
    strip = program.window.row_strip
    assert strip.isVisible()
    program.controller.select(Cell(150, 20))
    qtbot.waitUntil(lambda: program.session.snapshot().row is not None)
    answer = program.session.snapshot().row
    exact = Engine().arrays(make_spec(RandomQK(length=200), num_heads=2)).stages["weights"][0, 150]
    np.testing.assert_allclose(answer.values[:151], exact[:151], rtol=1e-5)
    assert strip.words() == "query 150 · head 0"
    press(qtbot, program, Qt.Key.Key_M)
    qtbot.waitUntil(lambda: program.session.snapshot().row is not None)
    assert program.session.snapshot().row.values[150:].min() > 0
    program.controller.edit_view(View(stage="queries"))
    settle(qtbot, program)
    assert not strip.isVisible()


def test_go_to_selects_a_token_and_brings_it_into_sight(qtbot, open_window):
    program = open_window((make_spec(RandomQK(length=900), num_heads=1), View()))
    for _ in range(6):
        press(qtbot, program, Qt.Key.Key_Plus)
    popup = program.window.go_to_popup
    program.window.actions_by_name["go_to"].trigger()
    assert popup.isVisible()
    qtbot.keyClicks(popup.line, "800,10")
    qtbot.keyClick(popup.line, Qt.Key.Key_Return)
    snapshot = program.session.snapshot()
    assert snapshot.selected == Cell(800, 10)
    assert snapshot.window.top <= 800 <= snapshot.window.bottom
    assert snapshot.window.left <= 10 <= snapshot.window.right
    popup.close()
    settle(qtbot, program)


def test_a_failing_device_gives_a_banner_and_the_program_goes_on_with_the_last_that_worked(qtbot, open_window):
    program = open_window((make_spec(), View()), lambda: Engine(TwoCudaDevices(fails_at=3)))
    names = [device.name for device in program.session.snapshot().devices]
    assert names == ["cpu", "cuda:0", "cuda:1"]
    program.controller.edit_spec(edited(make_spec(), device="cuda:1", mask="none"))
    qtbot.waitUntil(lambda: program.session.snapshot().failure is not None, timeout=10_000)
    settle(qtbot, program)
    snapshot = program.session.snapshot()
    assert snapshot.spec == edited(make_spec(), mask="none")
    assert "cuda:1 ran out of memory" in snapshot.failure.sentence
    assert program.window.banner.isVisible()
    assert snapshot.picture.spec.mask == "none"
    program.controller.edit_spec(edited(snapshot.spec, device="cuda:0"))
    settle(qtbot, program)
    assert spec_of(program).device == "cuda:0"
    assert program.session.snapshot().failure is None


def test_export_writes_the_picture_and_a_failure_is_said(qtbot, open_window, tmp_path):
    program = open_window((make_spec(mask="three-step"), View()))
    path = tmp_path / "picture.png"
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        program.exporting.export(path, sheet_of(program, 800, 600))
    image = QImage(str(path))
    assert (image.width(), image.height()) == (800, 600)
    assert recall(path).spec == make_spec(mask="three-step")
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        program.exporting.export(tmp_path / "nowhere" / "picture.png", sheet_of(program, 800, 600))
    qtbot.waitUntil(lambda: program.session.snapshot().failure is not None)
    assert "does not exist" in program.session.snapshot().failure.sentence


def test_a_broken_spec_file_is_said_in_the_banner(open_window, tmp_path):
    program = open_window()
    path = tmp_path / "broken.json"
    path.write_text("{")
    program.filing.open_state(path)
    assert "broken.json" in program.session.snapshot().failure.sentence
    program.filing.open_state(tmp_path / "missing.json")
    assert "missing.json" in program.session.snapshot().failure.sentence


def test_every_stage_of_every_mask_can_be_shown(qtbot, open_window):
    program = open_window((make_spec(dropout=0.5, mask="three-step", implementation="split"), View()))
    for stage in stages_of(spec_of(program)):
        program.controller.edit_view(View(stage=stage))
        settle(qtbot, program)
        program.window.heatmaps.repaint_now()
        assert {f.stage for f in program.session.snapshot().picture.heads} == {stage}


def test_many_heads_show_one_large_beside_thumbnails(qtbot, open_window):
    program = open_window((make_spec(RandomEmbeddings(length=40), num_heads=12), View()))
    program.window.use_layout("explore")
    settle(qtbot, program)
    press(qtbot, program, Qt.Key.Key_Return)
    assert program.session.snapshot().view.head is not None
    assert len(program.window.heatmaps.panel_names()) == 12
    press(qtbot, program, Qt.Key.Key_Escape)
    assert program.session.snapshot().view.head is None


def test_learn_shows_one_head_large_and_explore_all_alike(qtbot, open_window):
    program = open_window((make_spec(), View()))
    maps = program.window.heatmaps
    sizes = [panel.place.map_rect.width for panel in maps._panels]
    assert maps.panel_names() == ("head:0", "head:1")
    assert sizes[0] > 2 * sizes[1]
    program.controller.edit_view(View(head=1))
    settle(qtbot, program)
    assert maps.panel_names() == ("head:1", "head:0")
    program.window.use_layout("explore")
    program.controller.edit_view(View())
    settle(qtbot, program)
    sizes = [panel.place.map_rect.width for panel in maps._panels]
    assert sizes[0] == sizes[1]


def test_a_hand_switches_the_mask_moves_dropout_changes_heads_and_exports(qtbot, open_window, tmp_path):
    program = open_window((make_spec(), View()))
    controls = program.window.controls
    program.window.show_page("controls")
    qtbot.mouseClick(controls._editors["mask"].buttons["three-step"], Qt.MouseButton.LeftButton)
    settle(qtbot, program)
    assert spec_of(program).mask == "three-step"
    controls._editors["dropout"].set_value(0.5)
    settle(qtbot, program)
    assert spec_of(program).dropout == 0.5
    heads = controls._editors["num_heads"]
    heads.setFocus()
    qtbot.keyClick(heads, Qt.Key.Key_Up)
    qtbot.keyClick(heads, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: spec_of(program).num_heads == 3)
    settle(qtbot, program)
    assert len(program.window.heatmaps.panel_names()) == 3
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        program.exporting.export(tmp_path / "driven.png", sheet_of(program, 640, 400))
    assert (tmp_path / "driven.png").exists()


def test_fewer_heads_than_the_large_one_are_shown(qtbot, open_window):
    program = open_window((make_spec(RandomEmbeddings(length=7), num_heads=12), View(head=11)))
    program.controller.edit_spec(make_spec(RandomEmbeddings(length=7), num_heads=1))
    settle(qtbot, program)
    snapshot = program.session.snapshot()
    assert snapshot.failure is None
    assert len(snapshot.picture.heads) == 1


def test_closing_saves_and_leaves_no_thread(qtbot, open_window, settings):
    program = open_window((make_spec(), View()))
    program.window.close()
    assert last_session(settings)[0].spec == make_spec()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("attnviz")]


def test_the_palette_and_the_keys_page_open(qtbot, open_window):
    program = open_window()
    program.window.actions_by_name["keys"].trigger()
    assert program.window.keys_page.isVisible()
    program.window.keys_page.close()
    program.window.actions_by_name["palette"].trigger()
    assert program.window.palette_popup.isVisible()
    program.window.palette_popup.close()


def test_screenshots_are_made_in_every_layout(open_window):
    program = open_window()
    for name in ("learn", "explore"):
        program.window.use_layout(name)
        assert not program.window.grab().isNull()
