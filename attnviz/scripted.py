"""The real window, off screen, driven by a script and written to PNG: the same bytes each time on one machine."""

from __future__ import annotations

import operator
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QEventLoop,
    QKeyCombination,
    QLocale,
    QObject,
    QSettings,
    Qt,
    QTimer,
    Slot,
)  # fmt: skip
from PySide6.QtGui import QAction, QGuiApplication, QImage, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from attnviz import app, lesson_files
from attnviz.api import make_spec, sides_of
from attnviz.application import make_application
from attnviz.figure.formats.png import write_png
from attnviz.files import write_whole
from attnviz.session import Cell
from attnviz.spec import FIELDS, AttentionSpec, View, check_size, edited, looked
from attnviz.views import theme as themes
from attnviz.views.layouts import LAYOUTS
from attnviz.views.side import PAGES

if TYPE_CHECKING:
    from attnviz.window.program import Program

_LOOK_MS: Final = 5
_CALM_LOOKS: Final = 3
_SOON_MS: Final = 1000
"""A timer of a longer time keeps something for later, such as the state of the window."""

_ASKING: Final = ("open", "save", "lesson_open", "about", "quit")
"""Actions that wait for a person, or end the program."""

_PARTS: Final = ("window", "map", "stages", "tokens", "lesson", *PAGES)
_UNSET: Final = (
    "QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_FONT_DPI", "QT_ENABLE_HIGHDPI_SCALING", "QT_STYLE_OVERRIDE",
)  # fmt: skip


@contextmanager
def open_window(
    spec: AttentionSpec | Mapping[str, Any] | None = None, *, size: tuple[int, int] = (1280, 800), theme: str = "light",
    timeout: float = 60.0, **options: Any,
) -> Iterator[ScriptedWindow]:  # fmt: skip
    """The window off screen with settings of its own, once its last frame is painted; closed behind us.

    ``spec`` is a spec, or a dict of what `api.make_spec` takes, or such ``options``; without any it is the program's
    first picture. A field of a `View` among the options, such as ``stage``, is one of the look. ``theme`` is "light" or
    "dark". ``timeout`` is the seconds that anything may take until the window is at rest. Raises `ValueError`,
    `TypeError` or `RuntimeError` with a sentence, `TimeoutError` that says what still ran.
    """
    if theme not in ("light", "dark"):
        raise ValueError(f"theme is {theme!r}: the window is light or dark")
    if not isinstance(timeout, int | float) or not timeout >= 0:
        raise ValueError(f"timeout is {timeout!r}: give seconds, 0 or more")
    size = sides_of(size)
    check_size(size)
    asked = _asked(spec, options)
    with _own_surroundings() as folder:
        settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
        settings.setValue("dark", theme == "dark")
        settings.setValue("language", "en")
        program = app.build_window(asked, settings)
        window = ScriptedWindow(program, timeout)
        try:
            program.window.status_line.shows_cost = False
            program.window.resize(*size)
            program.window.show()
            program.window.activateWindow()
            window.wait()
            yield window
        finally:
            program.window.close()
            for gone in program.window, program:
                gone.deleteLater()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _asked(
    spec: AttentionSpec | Mapping[str, Any] | None, options: dict[str, Any]
) -> tuple[AttentionSpec, View]:  # fmt: skip
    if spec is None and not options:
        return app.FIRST_SPEC, app.FIRST_VIEW
    look = {name: options.pop(name) for name in View.__struct_fields__ if name in options}
    if isinstance(spec, AttentionSpec):
        spec = edited(spec, **options) if options else spec
    elif spec is None or isinstance(spec, Mapping):
        spec = make_spec(**{**(spec or {}), **options})
    else:
        raise TypeError(f"spec is of type {type(spec).__name__}: give a spec, or a dict of make_spec's")
    return spec, looked(View(), spec, **look)


def _put_back(kept: Mapping[str, str | None]) -> None:
    """The environment as it was."""
    for name, value in kept.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@contextmanager
def _own_surroundings() -> Iterator[Path]:
    """An application off screen in a fixed scale and language, without motion; all as it was afterwards.

    Gives a folder for settings, which goes.
    """
    kept = {name: os.environ.pop(name, None) for name in _UNSET}
    kept |= {name: os.environ.get(name) for name in ("QT_QPA_PLATFORM", "ATTNVIZ_MOTION")}
    os.environ |= {"QT_QPA_PLATFORM": "offscreen", "ATTNVIZ_MOTION": "0"}
    locale, application = QLocale(), make_application()
    if QGuiApplication.platformName() != "offscreen" or application.devicePixelRatio() != 1:
        _put_back(kept)
        raise RuntimeError(
            f"the QApplication of this process is on {QGuiApplication.platformName()} at "
            f"{application.devicePixelRatio():g} pixels a point: set QT_QPA_PLATFORM=offscreen before it is made"
        )
    look = application.styleSheet(), application.palette(), application.font(), application.cursorFlashTime()
    application.setCursorFlashTime(0)
    QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedKingdom))
    try:
        with tempfile.TemporaryDirectory(prefix="attnviz-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    finally:
        QLocale.setDefault(locale)
        application.setStyleSheet(look[0])
        application.setPalette(look[1])
        application.setFont(look[2])
        application.setCursorFlashTime(look[3])
        _put_back(kept)


class ScriptedWindow:
    """One open window. What changes it waits until the window is at rest again; unknown names raise `ValueError`.

    Of several windows the one that is told something comes to the front: the keyboard and the application's colours,
    of which there is one each, are its own then.
    """

    def __init__(self, program: Program, timeout: float) -> None:
        self.program, self._timeout = program, timeout

    @property
    def spec(self) -> AttentionSpec:
        """What is computed."""
        return self.program.controller.wanted()[0]

    @property
    def view(self) -> View:
        """What of it is looked at."""
        return self.program.controller.wanted()[1]

    def _come_forward(self) -> None:
        window, dark = self.program.window, self.program.window.actions_by_name["dark"].isChecked()
        if themes.current() != themes.colours(dark):
            themes.apply_theme(make_application(), dark)
        active: QObject | None = QApplication.activeWindow()
        while active is not None and active is not window:  # a dialog of its own has the keyboard
            active = active.parent()
        if active is None:
            window.activateWindow()
            self.wait()

    # ------------------------------------------------------------------------------------------------------ controls

    def press(self, keys: str) -> None:
        """Press keys as they stand in the menus: "M", "Shift+M", "Ctrl+1", "Right", "3", "Space"."""
        sequence = QKeySequence(keys if isinstance(keys, str) else "")
        pressed = sequence[0] if sequence.count() == 1 else QKeyCombination(Qt.Key.Key_unknown)  # type: ignore[index]
        if pressed.key() == Qt.Key.Key_unknown:
            raise ValueError(f"{keys!r} is no key: give one as menus write it, such as M, Shift+M or Ctrl+1")
        for name, action in self.program.window.actions_by_name.items():
            if sequence in action.shortcuts():
                self.do(name)
                return
        self._come_forward()
        focused = QApplication.focusWidget() or self.program.window.heatmaps
        text = keys if len(keys) == 1 else ""
        for kind in QEvent.Type.KeyPress, QEvent.Type.KeyRelease:
            event = QKeyEvent(kind, pressed.key(), pressed.keyboardModifiers(), text)
            QCoreApplication.sendEvent(focused, event)
        self.wait()

    def do(self, name: str) -> None:
        """Do an action by its name in `views.actions`, such as "mask_toggle" or "head_next"."""
        actions = self.program.window.actions_by_name
        action: QAction = actions[_known("action", name, tuple(actions))]
        if name in _ASKING:
            raise ValueError(f"{name} waits for a person, or ends the program: a script can do what it would do itself")
        if not action.isEnabled():
            raise ValueError(f"{name} is greyed out: it does nothing in this state")
        self._come_forward()
        action.trigger()
        self.wait()

    def click(self, words: str) -> None:
        """Click a button in sight by its words."""
        self._come_forward()
        buttons = self.program.window.findChildren(QAbstractButton)
        there = {button.text(): button for button in buttons if button.isVisible() and button.text()}
        there[_known("button in sight", words, tuple(there))].click()
        self.wait()

    def set(self, field: str, value: Any) -> None:
        """Give one field of the spec or of the view another value."""
        self.edit(**{field: value})

    def edit(self, **fields: Any) -> None:
        """Give fields of the spec or of the view other values, as the controls do; all at once."""
        for name in fields:
            _known("field", name, (*FIELDS, *View.__struct_fields__))
        look = {name: fields.pop(name) for name in View.__struct_fields__ if name in fields}
        spec = edited(self.spec, **fields) if fields else self.spec
        self._come_forward()
        if look:
            view = looked(self.view, spec, **look)
            self.program.controller.open(spec, view)
        else:
            self.program.controller.edit_spec(spec)
        self.wait()

    def page(self, name: str) -> None:
        """Bring a page beside the maps into sight, and wait for the study that it begins."""
        self._come_forward()
        self.program.window.show_page(_known("page", name, PAGES))
        self.wait()

    def layout(self, name: str) -> None:
        """Arrange the window as "learn", "test" or "explore"."""
        self._come_forward()
        self.program.window.use_layout(_known("layout", name, tuple(LAYOUTS)))
        self.wait()

    def lesson(self, name: str | os.PathLike[str], step: str | None = None) -> None:
        """Play a lesson of ours, or of a file, from a step."""
        name = os.fspath(name) if isinstance(name, os.PathLike) else name
        self._come_forward()
        if not (isinstance(name, str) and name.endswith(".toml")):
            script = lesson_files.built_in(_known("lesson", name, tuple(lesson_files.names())))
            if step is not None:
                _known("step", step, tuple(one.id for one in script.steps))
        self.program.teaching.play(name, step)
        self.wait()
        if self.program.teaching.state is None:
            failure = self.program.session.snapshot().failure
            raise ValueError(
                f"lesson {name} cannot be played: {failure.sentence if failure else 'it has no such step'}"
            )

    def select(self, row: int, col: int | None = None) -> None:
        """Make a cell the current one; without ``col`` a row, as a click on its token does."""
        outline = self.program.controller.outline()
        rows, cols = (0, 0) if outline is None else (outline.n_queries, outline.n_keys)
        whole = all(hasattr(place, "__index__") for place in (row, 0 if col is None else col))
        if not whole or not 0 <= row < rows or not 0 <= (col or 0) < cols:
            raise ValueError(
                f"cell ({row!r}, {col!r}) is not there: rows count from 0 to {rows - 1}, columns to {cols - 1}"
            )
        self._come_forward()
        if col is None:
            self.program.controller.select_row(operator.index(row))
        else:
            self.program.controller.select(Cell(operator.index(row), operator.index(col)))
        self.wait()

    # ------------------------------------------------------------------------------------------------------ pictures

    def save(self, path: str | os.PathLike[str], part: str = "window") -> Path:
        """Write the window, or a part of it, as a PNG at one pixel a point. Returns the path.

        A part is "window", "map", "stages", "tokens", "lesson", or a page, which then comes into sight and is written
        whole. What a study has measured in time or memory differs from run to run.
        """
        if not isinstance(path, str | os.PathLike) or Path(path).suffix.lower() != ".png":
            raise ValueError(f"path is {str(path)!r}: a screenshot is a PNG, so give a name that ends in .png")
        image = self.image(part)
        write_whole(Path(path), partial(write_png, image=image, texts={}, large_cells=True))
        return Path(path)

    def image(self, part: str = "window") -> QImage:
        """What `save` writes, Format_RGB32."""
        _known("part", part, _PARTS)
        self._come_forward()
        if part in PAGES:
            self.page(part)
        widget = self._widget(part)
        if not widget.isVisible():
            raise ValueError(f"part {part} is not in sight now: bring it there first")
        image = QImage(widget.size(), QImage.Format.Format_RGB32)
        image.fill(self.program.window.palette().window().color())
        widget.render(image)
        return image

    def _widget(self, part: str) -> QWidget:
        window = self.program.window
        own: dict[str, Callable[[], QWidget]] = {
            "window": lambda: window, "map": lambda: window.heatmaps, "stages": lambda: window.pipeline_strip,
            "tokens": lambda: window.token_strip, "lesson": lambda: window.lesson_card,
        }  # fmt: skip
        return own[part]() if part in own else window.side.card()

    # ---------------------------------------------------------------------------------------------------------- rest

    def wait(self) -> None:
        """Wait until all that was asked for is there and painted. Raises `TimeoutError` that says what still runs."""
        _Rest(self._running, self._timeout).wait()

    def _running(self) -> str:
        """What is under way, "" where nothing is."""
        program = self.program
        now = program.session.snapshot()
        picture, failed = now.picture, now.failure is not None and not now.running
        shown = picture is not None and picture.complete and (picture.spec, picture.view) == program.controller.wanted()
        if not program.worker.is_running():
            return "torch is not loaded yet"
        if now.redraws:
            return "dropout is drawn again and again: stop that first"
        if now.running or not (shown or failed):
            return "the picture is being computed"
        if not program.worker.is_idle():
            return "the worker answers a question, or computes the rest of the map"
        studies = [name for name, page in program.window.side.pages.items() if page.running]
        if studies:
            return f"the study of page {studies[0]} is running"
        if program.teaching.is_under_way:
            return "the lesson's step is not there yet"
        timers = [*program.findChildren(QTimer), *program.window.findChildren(QTimer)]
        if any(timer.isActive() and timer.isSingleShot() and timer.interval() < _SOON_MS for timer in timers):
            return "a view is about to ask for, or to show, something"
        return ""


class _Rest(QObject):
    """Lets events run until nothing is under way in several looks in a row."""

    def __init__(self, running: Callable[[], str], timeout: float) -> None:
        super().__init__()
        self._running, self._until = running, time.monotonic() + timeout
        self._timeout, self._calm, self._said = timeout, 0, ""
        self._loop = QEventLoop()
        self._timer = QTimer(self, interval=_LOOK_MS)
        self._timer.timeout.connect(self._look)

    def wait(self) -> None:
        self._timer.start()
        self._loop.exec()
        self._timer.stop()
        if self._calm < _CALM_LOOKS:
            raise TimeoutError(f"the window did not come to rest in {self._timeout:g} s: {self._said}")

    @Slot()
    def _look(self) -> None:
        self._said = self._running()
        self._calm = 0 if self._said else self._calm + 1
        if self._calm >= _CALM_LOOKS or time.monotonic() > self._until:
            self._loop.quit()


def _known(kind: str, name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise ValueError(f"there is no {kind} {name!r}: there are {', '.join(names)}")
    return name
