"""Sessions in the window: saved and opened, kept by themselves, recent and dropped."""

import json
import signal
import subprocess
import sys
import time

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import QApplication, QFileDialog
from taught import settle

from attnviz import app, remembered, rendering
from attnviz.figures import Figure
from attnviz.session import Cell, Window
from attnviz.session_files import SavedSession, from_text, to_text
from attnviz.spec import RandomQK, Text, View, edited, from_json, make_spec, to_json
from attnviz.window import keeping
from attnviz.window.keeping import last_session, state_file


@pytest.fixture
def settings(tmp_path):
    return QSettings(str(tmp_path / "attnviz.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def open_window(qtbot, settings):
    opened = []

    def open_(asked=None, own=settings):
        program = app.build_window(asked, own)
        opened.append(program)
        qtbot.addWidget(program.window)
        program.window.resize(1280, 800)
        program.window.show()
        settle(qtbot, program)
        return program

    yield open_
    for program in opened:
        program.window.close()


BUSY = SavedSession(
    spec=make_spec(RandomQK(length=60), num_heads=3, mask="none"),
    view=View(stage="scaled_scores", head=1, rows=(4, 20), cols=(8, 24)),
    pinned=(make_spec(RandomQK(length=60), num_heads=3, mask="three-step"), View(norm="unit")),
    selected=(9, 11),
    show_numbers=False,
    decimals=4,
    layout="explore",
    page="compare",
    dark=False,
)


def has_a(program):
    return program.session.snapshot().pinned is not None


def test_everything_of_a_session_comes_back_from_its_file(qtbot, open_window, tmp_path):
    path = tmp_path / "猫 🐈.attnviz"
    path.write_text(to_text(BUSY), encoding="utf-8")
    program = open_window()
    program.filing.open_file(path)
    qtbot.waitUntil(lambda: has_a(program), timeout=20_000)
    settle(qtbot, program)
    shown = program.session.snapshot()
    assert (shown.selected, shown.window) == (Cell(9, 11), Window(4, 20, 8, 24))
    assert (shown.show_numbers, shown.decimals, shown.view.head) == (False, 4, 1)
    assert shown.pinned.complete
    assert len(shown.pinned.heads) == 3
    assert program.window.side.pages["compare"].isVisible()
    assert program.sessions.now() == BUSY
    program.window.before_held.emit(True)
    assert program.session.snapshot().shown.spec.mask == "three-step"
    program.window.before_held.emit(False)


def test_save_writes_what_the_name_asks_for_and_both_open_again(qtbot, open_window, tmp_path, monkeypatch):
    program = open_window(BUSY)
    qtbot.waitUntil(lambda: has_a(program), timeout=20_000)
    asked = []

    def save(name, kind="Session (*.attnviz)"):
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *said: asked.append(said) or (name, kind))
        with qtbot.waitSignal(program.jobs.ended, timeout=20_000) as ended:
            program.window.actions_by_name["save"].trigger()
        assert ended.args[1] is None
        return ended.args[0]

    whole = save(str(tmp_path / "mine"))
    assert whole == tmp_path / "mine.attnviz"
    assert from_text(whole.read_bytes()) == BUSY
    alone = save(str(tmp_path / "mine"), "Spec and view alone (*.json)")
    assert alone == tmp_path / "mine.json"
    assert from_json(alone.read_bytes()) == (BUSY.spec, BUSY.view)
    assert program.filing.recent.paths() == (alone, whole)
    program.window.actions_by_name["save"].trigger()  # the name is whole now, but was not when it was asked about
    assert "mine.json is there already" in program.session.snapshot().failure.sentence
    assert asked[-1][2] == str(tmp_path / "attention.attnviz")
    long = str(tmp_path / ("x" * 250))  # a name that the dialog takes and that is too long with its ending
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_said: (long, "Session (*.attnviz)"))
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000) as ended:
        program.window.actions_by_name["save"].trigger()
    assert "the name is too long" in ended.args[1]


def test_a_spec_leaves_a_pinned_and_a_session_without_one_lets_it_go(qtbot, open_window, tmp_path):
    program = open_window(BUSY)
    qtbot.waitUntil(lambda: has_a(program), timeout=20_000)
    (tmp_path / "b.json").write_text(to_json(make_spec()))
    (tmp_path / "c.attnviz").write_text(to_text(SavedSession(spec=make_spec(), view=View(), pinned=None)))
    program.filing.open_file(tmp_path / "b.json")
    settle(qtbot, program)
    assert has_a(program)
    program.filing.open_file(tmp_path / "c.attnviz")
    settle(qtbot, program)
    assert not has_a(program)


def test_a_refused_file_says_why_and_changes_nothing(qtbot, open_window, tmp_path):
    program = open_window((make_spec(num_heads=3), View()))
    before = program.sessions.now()
    path = tmp_path / "bad.attnviz"
    path.write_text(to_text(BUSY).replace('"explore"', '"explode"'))
    content = path.read_bytes()
    program.filing.open_file(path)
    sentence = program.session.snapshot().failure.sentence
    assert sentence.startswith("bad.attnviz: line ")
    assert "layout is 'explode': give learn, test, explore" in sentence
    assert program.sessions.now() == before
    assert path.read_bytes() == content
    assert program.filing.recent.paths() == ()


def test_undo_goes_back_to_what_stood_before_a_file_was_opened(qtbot, open_window, tmp_path):
    program = open_window((make_spec(num_heads=3), View()))
    (tmp_path / "b.attnviz").write_text(to_text(BUSY))
    program.filing.open_file(tmp_path / "b.attnviz")
    settle(qtbot, program)
    program.window.actions_by_name["undo"].trigger()
    settle(qtbot, program)
    assert program.session.snapshot().spec == make_spec(num_heads=3)


def test_a_picture_of_two_states_opens_with_a_pinned(qtbot, open_window, tmp_path, monkeypatch):
    a, b = make_spec(mask="none"), make_spec()
    monkeypatch.setattr(remembered, "recall", lambda *_: Figure(spec=a, beside=b, shows="difference"), raising=False)
    path = tmp_path / "pair.png"
    path.write_bytes(b"")
    program = open_window((make_spec(num_heads=3), View()))
    with qtbot.waitSignal(program.filing.recalled, timeout=20_000):
        program.filing.open_file(path)
    qtbot.waitUntil(lambda: has_a(program), timeout=20_000)
    settle(qtbot, program)
    shown = program.session.snapshot()
    assert (shown.spec, shown.pinned.spec) == (b, a)
    assert program.window.side.current == "compare"
    assert program.filing.recent.paths() == (path,)


def test_a_picture_brings_its_window_back_and_one_that_remembers_nothing_says_so(qtbot, open_window, tmp_path):
    figure = Figure(spec=make_spec(mask="three-step"), view=View(rows=(1, 4), cols=(0, 3), norm="unit"))
    program = open_window((make_spec(num_heads=3), View()))
    for suffix in ".png", ".svg", ".pdf":
        rendering.write_figure(tmp_path / f"a{suffix}", figure)
        program.controller.edit_spec(make_spec(num_heads=3))
        with qtbot.waitSignal(program.filing.recalled, timeout=20_000):
            program.filing.open_file(tmp_path / f"a{suffix}")
        settle(qtbot, program)
        assert program.session.snapshot().spec == figure.spec
        assert program.session.snapshot().looked_at == figure.view
    QImage(8, 8, QImage.Format.Format_RGB32).save(str(tmp_path / "b.png"))
    with qtbot.waitSignal(program.filing.recalled, timeout=20_000):
        program.filing.open_file(tmp_path / "b.png")
    assert program.session.snapshot().failure.sentence.startswith("b.png: this picture ")
    assert program.session.snapshot().spec == figure.spec


# ------------------------------------------------------------------------------------------------------ kept by itself


@pytest.mark.slow
def test_a_change_is_kept_soon_and_nothing_is_written_while_nothing_changes(qtbot, open_window, settings):
    program = open_window((make_spec(), View()))
    with qtbot.waitSignal(program.keeping.written, timeout=10_000):
        pass  # the window as it opened
    began = time.monotonic()
    program.controller.edit_spec(make_spec(mask="none"))
    with qtbot.waitSignal(program.keeping.written, timeout=10_000) as written:
        pass
    assert time.monotonic() - began < 5
    assert written.args == [None]
    assert last_session(settings)[0].spec.mask == "none"
    settle(qtbot, program)
    assert not program.keeping._timer.isActive()
    program.controller.hover(Cell(0, 0))
    assert not program.keeping._timer.isActive()


def test_each_kind_of_change_starts_the_clock(qtbot, open_window, monkeypatch):
    monkeypatch.setattr(keeping, "_SOON_MS", 3_600_000)
    program = open_window((make_spec(), View()))
    controller, act = program.controller, program.window.actions_by_name
    for change in (
        lambda: controller.select(Cell(2, 1)),
        lambda: controller.edit_view(View(norm="log")),
        controller.toggle_pin,
        lambda: controller.set_decimals(2),
        controller.toggle_numbers,
        lambda: controller.set_window(Window(0, 3, 0, 3)),
        act["dark"].trigger,
        act["dark"].trigger,
        act["layout_explore"].trigger,
        act["page_row"].trigger,
        lambda: program.window.side.page_chosen.emit("controls"),
    ):
        settle(qtbot, program)
        program.keeping._timer.stop()
        assert not program.keeping._timer.isActive()
        change()
        assert program.keeping._timer.isActive()
    settle(qtbot, program)


def test_a_damaged_state_is_kept_aside_and_said_and_the_program_starts_fresh(open_window, settings, tmp_path):
    path = state_file(settings)
    aside = [path.with_name("attnviz-last-damaged.attnviz"), path.with_name("attnviz-last-damaged-2.attnviz")]
    for found, content in zip(aside, (b"{", b"\xff"), strict=True):
        path.write_bytes(content)
        program = open_window()
        snapshot = program.session.snapshot()
        assert snapshot.spec == app.FIRST_SPEC
        assert f"It lies in {found} now" in snapshot.failure.sentence
        assert "line 1: " in snapshot.failure.sentence
        assert program.window.banner.isVisible()
        assert found.read_bytes() == content
        program.window.close()
    assert aside[0].read_bytes() == b"{"
    assert from_text(path.read_bytes()).spec == app.FIRST_SPEC


@pytest.mark.slow
def test_a_state_that_cannot_be_kept_is_said_once_in_the_status_line(qtbot, open_window, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    own = QSettings(str(tmp_path / "file" / "s.ini"), QSettings.Format.IniFormat)  # in a folder that cannot be
    program = open_window((make_spec(), View()), own)
    with qtbot.waitSignal(program.keeping.written, timeout=10_000) as written:
        pass
    assert f"{tmp_path / 'file'} is not a folder" in written.args[0]
    assert f"the state is not kept: {written.args[0]}" in program.window.status_line._said.text()
    assert program.session.snapshot().failure is None


def test_a_window_that_closes_before_it_has_computed_anything_keeps_what_it_was_given(qtbot, settings):
    program = app.build_window(BUSY, settings, lambda: pytest.fail("it is closed before"))
    program.window.close()
    assert last_session(settings)[0] == BUSY


def test_two_windows_leave_the_state_of_the_last_that_closed(qtbot, open_window, settings):
    one, two = open_window((make_spec(), View())), open_window((make_spec(num_heads=3), View()))
    two.window.close()
    one.window.close()
    assert last_session(settings)[0].spec == make_spec()


_KILLED = """
import os, signal, sys
from pathlib import Path
from PySide6.QtCore import QFileSystemWatcher, QSettings, QTimer
from PySide6.QtWidgets import QApplication
from attnviz import app
from attnviz.window.keeping import last_session, state_file
from attnviz.session import Cell
from attnviz.spec import edited
application = QApplication([])
settings = QSettings(sys.argv[1], QSettings.Format.IniFormat)
program = app.build_window(None, settings)
program.window.show()
def edit():
    spec, _ = program.controller.wanted()
    program.controller.edit_spec(edited(spec, mask="three-step"))
    program.controller.select(Cell(2, 1))
    program.window.actions_by_name["layout_explore"].trigger()
program.controller.settled.connect(edit)
def look():
    found = last_session(settings)[0] if state_file(settings).exists() else None
    if found is not None and found.spec.mask == "three-step" and found.layout == "explore":
        os.kill(os.getpid(), signal.SIGKILL)
watcher = QFileSystemWatcher([str(state_file(settings).parent)])
watcher.directoryChanged.connect(look)
QTimer.singleShot(60_000, application.quit)
application.exec()
"""


def test_a_killed_program_comes_back_as_it_was(open_window, settings, tmp_path):
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, settings.fileName()], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    program = open_window()
    shown = program.session.snapshot()
    assert (shown.spec, shown.selected) == (edited(app.FIRST_SPEC, mask="three-step"), Cell(2, 1))
    assert program.window.layout_name == "explore"


# ---------------------------------------------------------------------------------------------------- recent, dropped


def test_recent_files_are_ten_newest_first_and_a_missing_one_is_said_and_dropped(
    qtbot, open_window, tmp_path, settings
):
    program = open_window()
    menu = program.filing.recent
    assert menu.menuAction() in program.window.menuBar().actions()[0].menu().actions()
    assert not menu.menuAction().isEnabled()
    paths = [tmp_path / f"a&b {number}.json" for number in range(12)]
    for path in paths:
        path.write_text(to_json(make_spec(seed=int(path.stem.split()[-1]))))
        program.filing.open_file(path)
    assert menu.paths() == tuple(reversed(paths[2:]))
    assert isinstance(json.loads(settings.value("recent")), list)
    menu.actions()[3].trigger()
    assert program.controller.wanted()[0].seed == 8
    assert menu.paths()[0] == paths[8]
    assert menu.actions()[0].text().startswith("a&&b 8.json\t")
    assert menu.actions()[0].toolTip() == str(paths[8])
    paths[11].unlink()
    menu.actions()[1].trigger()
    assert f"{paths[11]} is no longer there" in program.session.snapshot().failure.sentence
    assert paths[11] not in menu.paths()
    menu.actions()[-1].trigger()
    assert menu.paths() == ()
    settings.setValue("recent", "no list")
    menu.refresh()
    assert menu.paths() == ()
    settle(qtbot, program)


def dragged(*names):
    mime = QMimeData()
    mime.setUrls([QUrl(name) if "://" in name else QUrl.fromLocalFile(name) for name in names])
    return mime


def is_taken(window, mime):
    event = QDragEnterEvent(
        QPoint(300, 300), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    event.ignore()
    QApplication.sendEvent(window, event)
    return event.isAccepted()


def test_only_what_can_be_opened_may_be_dropped(program):
    for suffix in (".attnviz", ".json", ".npz", ".npy", ".safetensors", ".png", ".SVG", ".pdf", ".gif"):
        assert is_taken(program.window, dragged("/a/猫 1" + suffix)), suffix
    for names in ("/a/b.txt",), ("/a/b",), ("https://a.example/b.json",), (), ("/a/b.json", "/a/c.json"):
        assert not is_taken(program.window, dragged(*names)), names


@pytest.mark.parametrize("on", ["window", "field"])
def test_a_dropped_session_opens_wherever_it_falls(qtbot, open_window, tmp_path, on):
    program = open_window((make_spec(Text(text="my own words")), View()))
    window, field = program.window, program.window.source_editor.text_edit
    window.show_page("controls")
    place = {"window": window, "field": field.viewport()}[on]
    words = QMimeData()
    words.setText("words")
    assert is_taken(place, words) == (on == "field")
    path = tmp_path / "dropped 猫.attnviz"
    path.write_text(to_text(SavedSession(spec=make_spec(Text(text="a b c")), view=View(), page="masks")))
    mime = dragged(str(path))
    assert is_taken(place, mime)
    event = QDropEvent(
        QPointF(300, 300), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(place, event)
    assert field.toPlainText() == "my own words"
    qtbot.waitUntil(lambda: program.controller.wanted()[0].source == Text(text="a b c"))
    settle(qtbot, program)
    assert program.window.side.current == "masks"
    assert program.filing.recent.paths() == (path,)


def test_the_longest_names_and_paths_can_be_saved_and_opened(qtbot, open_window, tmp_path):
    program = open_window((make_spec(num_heads=3), View()))
    folder = tmp_path / "f o l d e r 猫🐈"
    folder.mkdir()
    for path in folder / ("n" * (255 - len(".attnviz")) + ".attnviz"), folder / (("猫" * 82) + ".attnviz"):
        with qtbot.waitSignal(program.jobs.ended, timeout=20_000) as ended:
            program.filing.save(path)
        assert ended.args == [path, None]
        program.filing.open_file(path)
        assert program.session.snapshot().failure is None
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000) as ended:
        program.filing.save(folder / "none" / "a.attnviz")
    assert "does not exist" in program.session.snapshot().failure.sentence
    assert len(list(folder.iterdir())) == 2  # nothing unfinished beside them
