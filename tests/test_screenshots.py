"""Scripted screenshots: the real window off screen, driven by names, and the same bytes in every process."""

import os
import subprocess
import sys
import threading

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from attnviz.scripted import ScriptedWindow, open_window
from attnviz.session import Cell
from attnviz.spec import Text, View, make_spec
from attnviz.testing import attnviz_window  # noqa: F401 (a fixture)

SCRIPT = """
from attnviz.scripted import open_window
with open_window(text="the cat eats a small fish", heads=2, size=(1100, 700), theme="dark") as w:
    w.save("first.png")
    w.press("M")
    w.layout("explore")
    w.save("explore.png")
    w.save("dropout.png", part="dropout")
    w.save("leaks.png", part="leaks")
    w.lesson("journey", "3.5.1.4")
    w.save("lesson.png")
    w.save("map.png", part="map")
"""
NAMES = ("first", "explore", "dropout", "leaks", "lesson", "map")


def in_a_new_process(folder, *command, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=kept | environment, capture_output=True, text=True, check=False
    )


def test_two_processes_give_the_same_bytes(tmp_path):
    folders = tmp_path / "one", tmp_path / "other"
    scaled = {"QT_SCALE_FACTOR": "2", "LANG": "zh_CN.UTF-8", "ATTNVIZ_MOTION": "1"}  # which a picture must not see
    for folder, environment in zip(folders, ({}, scaled), strict=True):
        folder.mkdir()
        done = in_a_new_process(folder, "-c", SCRIPT, **environment)
        assert done.returncode == 0, done.stderr
    for name in NAMES:
        one, other = ((folder / f"{name}.png").read_bytes() for folder in folders)
        assert one == other, name
    first = QImage(str(folders[0] / "first.png"))
    assert (first.width(), first.height()) == (1100, 700)
    assert len({(folders[0] / f"{name}.png").read_bytes() for name in NAMES}) == len(NAMES)


def test_controls_by_name(attnviz_window, tmp_path):  # noqa: F811
    w = attnviz_window(text="the cat eats", heads=2, stage="scaled_scores", norm="linear")
    assert (w.spec.source, w.spec.num_heads) == (Text(text="the cat eats"), 2)
    assert w.view == View(stage="scaled_scores", norm="linear")
    w.press("M")
    assert w.spec.mask == "none"
    w.do("mask_toggle")
    assert w.spec.mask == "neg-inf"
    w.set("num_heads", 4)
    assert (w.spec.num_heads, w.spec.d_out) == (4, 256)  # what follows it has followed
    w.edit(mask="three-step", stage="weights", head=3)
    assert (w.spec.mask, w.view.stage, w.view.head) == ("three-step", "weights", 3)
    w.press("1")  # a stage by its number
    assert w.view.stage == "inputs"
    w.press("Ctrl+Z")
    w.select(2, 1)
    assert w.program.session.snapshot().selected == Cell(2, 1)
    w.press("Left")
    assert w.program.session.snapshot().selected == Cell(2, 0)
    w.layout("test")
    assert w.program.window.side.current == "leaks"
    assert w.program.window.side.pages["leaks"].latest.finished
    w.page("masks")
    assert not w.program.window.side.pages["masks"].running
    w.lesson("cat-eats-fish")
    w.click("next ▸")
    assert w.program.teaching.state.index == 1
    assert w.save(tmp_path / "a.png", part="lesson") == tmp_path / "a.png"


def test_what_is_saved_is_what_was_computed(attnviz_window):  # noqa: F811
    w = attnviz_window()
    before = w.image("map")
    assert w.image("map") == before  # nothing moves by itself
    w.press("M")
    heads, place = w.program.window.heatmaps, Cell(0, 2)
    frame = w.program.session.snapshot().picture.heads[0]
    kept = heads.point_of("head:0", Cell(2, 0))
    assert w.image("map").pixel(kept.x() - 40, kept.y() - 30) == frame.rgb[2, 0]
    hidden = heads.point_of("head:0", place)
    assert w.image("map").pixel(hidden.x() - 40, hidden.y() - 30) != before.pixel(hidden.x() - 40, hidden.y() - 30)


def test_unknown_names_are_answered_with_those_there_are(attnviz_window):  # noqa: F811
    w = attnviz_window(lesson="cat-eats-fish")
    for method, given, sentence in (
        ("press", ("Mouse",), "'Mouse' is no key"),
        ("do", ("jump",), "there is no action 'jump': there are open, save"),
        ("do", ("save",), "save waits for a person"),
        ("do", ("redo",), "redo is greyed out"),
        ("set", ("heads", 2), "there is no field 'heads': there are source, num_heads"),
        ("set", ("num_heads", 2), "num_heads is 2, but this source fixes it at 1"),
        ("set", ("stage", "x"), "stage is 'x', which this spec lacks"),
        ("page", ("tests",), "there is no page 'tests': there are row, masks"),
        ("layout", ("wide",), "there is no layout 'wide': there are learn, test, explore"),
        ("lesson", ("cat",), "there is no lesson 'cat': there are"),
        ("lesson", ("journey", "9.9"), "there is no step '9.9': there are"),
        ("press", (3,), "3 is no key"),
        ("click", (["x"],), r"there is no button in sight \['x'\]"),
        ("set", ("head", "a"), "head is 'a'"),
        ("set", ("rows", 3), "rows is 3"),
        ("set", ("source", "a"), "source is 'a'"),
        ("set", ("num_heads", None), "num_heads"),
        ("lesson", (3,), "there is no lesson 3: there are"),
        ("lesson", ("journey", 3), "there is no step 3: there are"),
        ("select", (1.5,), r"cell \(1.5, None\) is not there"),
        ("select", (0, 1.0), r"cell \(0, 1.0\) is not there"),
        ("select", ("a",), r"cell \('a', None\) is not there"),
        ("save", (3,), "path is '3': a screenshot is a PNG"),
        ("image", (["map"],), "there is no part"),
        ("select", (7, 0), r"cell \(7, 0\) is not there: rows count from 0 to 2"),
        ("click", ("Buy",), "there is no button in sight 'Buy'"),
        ("image", ("cellar",), "there is no part 'cellar': there are window, map"),
        ("image", ("lesson",), "part lesson is not in sight now"),
    ):
        with pytest.raises(ValueError, match=sentence):
            getattr(w, method)(*given)


def test_the_status_line_tells_neither_time_nor_memory(attnviz_window):  # noqa: F811
    words = attnviz_window().program.window.status_line._left.text()
    assert words.startswith("exact")
    assert "memory" not in words
    assert " ms" not in words


def test_a_window_that_does_not_come_to_rest_says_what_still_ran(qapp):
    with pytest.raises(TimeoutError, match=r"did not come to rest in 0 s: torch is not loaded yet"):
        open_window(timeout=0).__enter__()
    with open_window(make_spec(Text(text="a b"), dropout=0.5)) as w:
        w._timeout = 0.2
        with pytest.raises(TimeoutError, match="dropout is drawn again and again"):
            w.do("redraws")


def threads_of_ours():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("attnviz")]


def test_everything_is_as_it_was_afterwards(qapp, monkeypatch):
    monkeypatch.setenv("QT_SCALE_FACTOR", "3")
    monkeypatch.delenv("ATTNVIZ_MOTION", raising=False)
    qapp.setStyleSheet("QLabel { color: red }")
    before = dict(os.environ), QLocale(), qapp.cursorFlashTime(), threads_of_ours()
    with open_window() as w:
        assert isinstance(w, ScriptedWindow)
        assert qapp.styleSheet() != "QLabel { color: red }"
    assert (dict(os.environ), QLocale(), qapp.cursorFlashTime(), threads_of_ours()) == before
    assert qapp.styleSheet() == "QLabel { color: red }"
    qapp.setStyleSheet("")
    assert not [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]


def test_windows_of_two_themes_do_not_spoil_each_other(attnviz_window):  # noqa: F811
    light = attnviz_window(text="a b", heads=2)
    light.select(1, 1)
    before = light.image()
    dark = attnviz_window(text="a b", heads=2, theme="dark")
    dark.select(1, 1)
    also = dark.image()
    assert light.image() == before != also
    assert dark.image() == also
    light.press("Left")  # which is the key of the one that is told, not of the last that was opened
    assert light.program.session.snapshot().selected == Cell(1, 0)
    assert dark.program.session.snapshot().selected == Cell(1, 1)
    dark.press("Ctrl+D")
    assert dark.image() == before


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"spec": 3}, TypeError, "spec is of type int: give a spec, or a dict"),
        ({"size": (1280.5, 800)}, ValueError, r"size is \(1280.5, 800\): give \(width, height\) in whole pixels"),
        ({"size": (-5, 10)}, ValueError, "size is -5x10: give a width and a height of at least"),
        ({"size": "wide"}, ValueError, "size is 'wide': give"),
        ({"timeout": float("nan")}, ValueError, "timeout is nan: give seconds, 0 or more"),
        ({"timeout": "5"}, ValueError, "timeout is '5'"),
        ({"text": "a", "head": "x"}, ValueError, "head is 'x'"),
        ({"text": 3}, ValueError, "text is 3"),
    ],
)
def test_what_no_window_can_be_opened_with(given, error, sentence):
    with pytest.raises(error, match=sentence):
        open_window(**given).__enter__()


def test_a_theme_or_an_option_that_is_not_there():
    with pytest.raises(ValueError, match="theme is 'print': the window is light or dark"):
        open_window(theme="print").__enter__()
    with pytest.raises(ValueError, match="'color' is not a field of a spec"):
        open_window(color=1).__enter__()


USERS_TEST = """
import sys
import attnviz.testing

def test_nothing_is_loaded_yet():
    assert not {"PySide6", "torch"} & set(sys.modules)
    attnviz.testing.assert_causal(lambda x: x, 4)
    assert "PySide6" not in sys.modules

def test_the_window(attnviz_window, tmp_path):
    w = attnviz_window(text="the cat eats", heads=4, size=(1000, 700), theme="dark")
    w.press("M")
    assert w.spec.mask == "none"
    assert w.save(tmp_path / "window.png").stat().st_size > 1000

def test_two_windows(attnviz_window):
    one, other = attnviz_window(length=8), attnviz_window()
    assert one.spec != other.spec
    one.set("num_heads", 1)
    other.press("M")
"""


@pytest.mark.slow
def test_a_plugin_in_somebody_elses_tests_without_pytest_qt(tmp_path):
    (tmp_path / "test_mine.py").write_text(USERS_TEST, "utf-8")
    plugins = ("-p", "attnviz.testing", "-p", "no:pytest-qt", "-p", "no:cacheprovider")
    done = in_a_new_process(tmp_path, "-m", "pytest", "-q", "-W", "error", *plugins, "test_mine.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_a_screen_that_is_there_already_is_refused(tmp_path):
    code = (
        "from PySide6.QtWidgets import QApplication; application = QApplication([]);"
        "from attnviz.scripted import open_window; open_window().__enter__()"
    )
    done = in_a_new_process(tmp_path, "-c", code, QT_QPA_PLATFORM="minimal")
    assert "RuntimeError: the QApplication of this process is on minimal" in done.stderr
    assert "set QT_QPA_PLATFORM=offscreen before it is made" in done.stderr
