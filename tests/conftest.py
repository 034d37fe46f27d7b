"""What every test has: no screen, settings of its own, and nothing left over when it ends."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import gc
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from taught import settle

from attnviz import app
from attnviz.window.program import Program

# A deadline would make a test of the mathematics a test of the machine.
settings.register_profile("attnviz", deadline=None)
settings.load_profile("attnviz")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Collect garbage between tests alone.

    When a test has ended, nothing but the widget itself holds on to its Python side. Were that collected while Qt
    paints the widget, as may happen in the last round of events, the widget would go under the painter.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True)
def fresh_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder where QSettings of this test, and of programs it starts, are kept."""
    folder = tmp_path_factory.mktemp("settings")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    for layout in (QSettings.Format.NativeFormat, QSettings.Format.IniFormat):
        QSettings.setPath(layout, QSettings.Scope.UserScope, str(folder))
    return folder


@pytest.fixture
def program(qtbot: QtBot, tmp_path: Path) -> Iterator[Program]:
    """The program as it opens, in a window of 1280 × 800 that has come to rest."""
    made = app.build_window(None, QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))
    qtbot.addWidget(made.window)
    made.window.resize(1280, 800)
    made.window.show()
    settle(qtbot, made)
    yield made
    made.window.close()


@pytest.fixture(autouse=True)
def as_many_threads_as_before() -> Iterator[None]:
    """What a test, or an engine in it, makes of torch's threads is its own: last bits depend on their number."""
    torch = sys.modules.get("torch")
    threads = None if torch is None else torch.get_num_threads()
    yield
    if threads is not None:
        sys.modules["torch"].set_num_threads(threads)


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Fail a test that leaves a thread of ours or an open window behind."""
    yield
    if left_threads():
        gc.collect()  # an engine ends its threads when it is collected, and an exception's traceback may have held it
    assert left_threads() == []
    assert left_windows() == []


def left_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("attnviz")]


def left_windows() -> list[str]:
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        return []
    return [repr(widget) for widget in application.topLevelWidgets() if widget.isVisible()]
