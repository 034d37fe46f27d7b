"""The application: QApplication, fonts, theme, and `build_window`, the one place that connects the parts."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from types import TracebackType

import click
import msgspec
from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    QSettings,
    QSocketNotifier,
    QTimer,
    QtMsgType,
    Signal,
    Slot,
    qInstallMessageHandler,
)
from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox

from attnviz import __version__, screens
from attnviz.controller import Controller
from attnviz.figure.fonts import load_fonts
from attnviz.frames import Failure
from attnviz.gestures import Gestures
from attnviz.session import Session, Snapshot
from attnviz.spec import AttentionSpec, Lesson, QKFile, SpecError, View, edited, from_json, make_spec, to_json
from attnviz.views.export_dialog import ExportDialog
from attnviz.views.main_window import MainWindow
from attnviz.views.theme import apply_theme
from attnviz.worker import EngineLike, Pause, Worker

log = logging.getLogger(__name__)

_QK_SUFFIXES = frozenset({".npz", ".npy", ".safetensors"})
_FIRST_PAINT_MS = 15
FIRST_SPEC = make_spec(Lesson(name="cat-eats-fish"), mask="none")


def make_engine() -> EngineLike:
    """The torch engine. Called on the worker's thread, where torch is then imported."""
    from attnviz.engine import Engine  # noqa: PLC0415

    return Engine(spare_cores=1)


class Program(QObject):
    """One window with what drives it: connects views and actions to the controller, and saves state on closing."""

    job_ended = Signal(object, object)  # what was written: a path; a sentence if it failed, else None
    job_progressed = Signal(object, float)  # what is being written: a path; the share that is done
    qk_described = Signal(object, object)  # a `QKFile`, or None and a sentence

    def __init__(
        self, spec: AttentionSpec, view: View, settings: QSettings, engine_factory: Callable[[], EngineLike]
    ) -> None:
        super().__init__()
        self.settings = settings
        self.worker = Worker(engine_factory, self)
        self.session = Session(spec, view)
        self.controller = Controller(self.session, self.worker, self)
        self._closing = False
        self._dark = bool(settings.value("dark", False, type=bool))
        apply_theme(_application(), self._dark)  # before there is a widget: style sheets resolve fonts when they polish
        self.window = MainWindow(settings)
        self._connect_views()
        self._connect_actions()
        self.use_dark(self._dark)
        self.window.restore()
        self.window.present(self.session.snapshot())
        gigabytes = float(str(settings.value("memory_gb", 0.0, type=float)))
        self.window.controls.show_budget(gigabytes)
        self.worker.set_budget(_budget_bytes(gigabytes))
        self.controller.start()
        self.window.shown.connect(self._start_soon)
        QTimer.singleShot(200, self._start_worker)  # for a window that is never shown

    @Slot()
    def _start_soon(self) -> None:
        QTimer.singleShot(_FIRST_PAINT_MS, self._start_worker)

    @Slot()
    def _start_worker(self) -> None:
        """Begin to import torch: once the window is painted, which would otherwise wait for it again and again."""
        if not self._closing and not self.worker.is_running():
            self.worker.start()

    def _connect_views(self) -> None:
        window, controller = self.window, self.controller
        controller.snapshot_changed.connect(self._present)
        for editor in (window.controls, window.mask_switch, window.source_editor):
            editor.spec_edited.connect(controller.edit_spec)
        for chooser in (window.controls, window.pipeline_strip, window.heatmaps):
            chooser.view_edited.connect(controller.edit_view)
        window.controls.budget_edited.connect(self._on_budget_edited)
        window.token_strip.row_selected.connect(controller.select_row)
        window.status_line.cancelled.connect(controller.cancel)
        window.sentence_card.own_text_asked.connect(self._on_own_text_asked)
        window.banner.dismissed.connect(controller.dismiss_failure)
        window.before_held.connect(controller.show_before)
        heads = window.heatmaps
        heads.viewport_changed.connect(controller.set_viewport)
        heads.window_moved.connect(controller.set_window)
        for cells in (heads, window.row_strip):
            cells.cell_hovered.connect(controller.hover)
            cells.cell_selected.connect(controller.select)
        window.go_to_popup.asked.connect(controller.select)
        window.go_to_popup.asked.connect(heads.go_to)
        window.closing.connect(self.close)
        self.job_ended.connect(self._on_job_ended)
        self.job_progressed.connect(self._on_job_progressed)
        self.qk_described.connect(self._on_qk_described)

    def _connect_actions(self) -> None:
        act, heads = self.window.actions_by_name, self.window.heatmaps
        gestures = Gestures(self.controller, self.controller.refuse)
        self.window.stage_number_pressed.connect(gestures.go_to_stage)
        slots: dict[str, Callable[..., object]] = {
            **gestures.by_name(),
            "head_large": lambda: gestures.show_large(heads.current_head()),
            "zoom_in": heads.zoom_in, "zoom_out": heads.zoom_out, "zoom_all": heads.zoom_all,
            "pan_up": partial(heads.pan, 0, -1), "pan_down": partial(heads.pan, 0, 1),
            "pan_left": partial(heads.pan, -1, 0), "pan_right": partial(heads.pan, 1, 0),
            "open": self._on_open, "save": self._on_save, "export": self._on_export, "about": self._on_about,
            "decimals_auto": partial(self.controller.set_decimals, None),
            **{f"decimals_{n}": partial(self.controller.set_decimals, n) for n in (2, 4, 6)},
            "copy_picture": self._on_copy_picture, "copy_numbers": self._on_copy_numbers,
        }  # fmt: skip
        for name, slot in slots.items():
            act[name].triggered.connect(partial(_without_checked, slot))
        act["dark"].triggered.connect(self.use_dark)

    @Slot(object)
    def _present(self, snapshot: Snapshot) -> None:
        picture = snapshot.picture
        outline = picture.outline if picture is not None and picture.complete else None
        if snapshot.selected is None and outline is not None and 1 < outline.n_queries <= 32:
            self.controller.select_row(1)  # a small map always has a row whose story is told
            return
        self.window.present(snapshot)

    @Slot(float)
    def _on_budget_edited(self, gigabytes: float) -> None:
        self.settings.setValue("memory_gb", gigabytes)
        self.controller.set_budget(_budget_bytes(gigabytes))

    @Slot()
    def _on_own_text_asked(self) -> None:
        self.window.show_panel("controls", True)
        self.window.source_editor.edit_text()

    @Slot(bool)
    def use_dark(self, dark: bool) -> None:
        """Dark or light colours, remembered."""
        if dark != self._dark:
            self._dark = dark
            self.settings.setValue("dark", dark)
            apply_theme(_application(), dark)
        self.window.use_dark(dark)
        self.window.actions_by_name["dark"].setChecked(dark)

    # ------------------------------------------------------------------------------------------------------- files

    @Slot()
    def _on_open(self) -> None:
        filters = self.tr("Specs, or queries and keys (*.json *.npz *.npy *.safetensors)")
        path, _ = QFileDialog.getOpenFileName(self.window, self.tr("Open"), "", filters)
        if path:
            self.open_file(Path(path))

    def open_file(self, path: Path) -> None:
        """Show what a file holds: a spec, or queries and keys, told by its name's end."""
        if path.suffix.lower() in _QK_SUFFIXES:
            self.open_qk(path)
        else:
            self.open_spec(path)

    def open_qk(self, path: Path) -> None:
        """Show the queries and keys of a file, once the worker's thread has looked at it and summed it up."""

        def job(_engine: EngineLike, _pause: Pause) -> None:
            from attnviz.tensor_files import describe_qk  # noqa: PLC0415 (not before it is needed)

            try:
                self.qk_described.emit(describe_qk(path), None)
            except SpecError as error:
                self.qk_described.emit(None, str(error))

        self.window.status_line.say(self.tr("reading {name} …").format(name=path.name))
        self.controller.run_job(job)

    @Slot(object, object)
    def _on_qk_described(self, source: QKFile | None, failed: str | None) -> None:
        self.window.status_line.say("")
        spec, view = self.controller.wanted()
        try:
            if source is not None:
                view = msgspec.structs.replace(view, stage="weights", head=None)
                self.controller.open(edited(spec, source=source), view)
        except SpecError as error:
            failed = str(error)
        if failed is not None:
            self._say(failed)

    def open_spec(self, path: Path) -> None:
        """Show the spec of a file, or say in the banner why it cannot be read."""
        try:
            spec, view = from_json(path.read_bytes())
        except OSError as error:
            self._say(self.tr("Cannot read {path}: {why}.").format(path=path, why=error.strerror or error))
        except SpecError as error:
            self._say(f"{path.name}: {error}.")
        else:
            self.controller.open(spec, view)

    @Slot()
    def _on_save(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self.window, self.tr("Save spec"), "attention.json", self.tr("Spec files (*.json)")
        )
        if path:
            snapshot = self.session.snapshot()
            self._run("write_spec", Path(path), snapshot.spec, snapshot.looked_at)

    @Slot()
    def _on_export(self) -> None:
        part = self.session.snapshot().window is not None
        dialog = ExportDialog(self.settings, self.window, part=part)
        dialog.export_asked.connect(
            lambda path, size: self.export(path, size, whole_map=dialog.whole_map)  # the GUI's thread emits it
        )
        dialog.open()

    def export(self, path: Path, size: tuple[int, int], *, whole_map: bool = False) -> None:
        """Write the picture as a PNG of ``size`` (width, height) pixels, on the worker's thread.

        The cells that are on the screen, or the ``whole_map``.
        """
        now = self.session.snapshot()
        view = now.looked_at
        if whole_map:
            view = msgspec.structs.replace(view, rows=None, cols=None)
        self._run(
            "write_image", path, now.spec, view, size, dark=self._dark, show_numbers=now.show_numbers,
            decimals=now.decimals, progress=lambda share: self.job_progressed.emit(path, share),
        )  # fmt: skip

    def _run(self, function: str, path: Path, *arguments: object, **settings: object) -> None:
        """Run a function of `attnviz.rendering` as a job; it imports torch, so it is imported in the job."""

        def job(engine: EngineLike, pause: Pause) -> None:
            from attnviz import rendering  # noqa: PLC0415

            sentence = None
            if function == "write_image":
                settings.update(cancelled=pause, engine=rendering.beside(engine))
            try:
                getattr(rendering, function)(path, *arguments, **settings)
            except (RuntimeError, OSError, SpecError) as error:
                sentence = str(error)
            self.job_ended.emit(path, sentence)

        self.window.status_line.say(self.tr("writing {name} …").format(name=path.name))
        self.controller.run_job(job)

    @Slot(object, float)
    def _on_job_progressed(self, path: Path, share: float) -> None:
        words = self.tr("writing {name} … {percent} %").format(name=path.name, percent=int(100 * share))
        self.window.status_line.say(words)

    @Slot(object, object)
    def _on_job_ended(self, path: Path, failed: str | None) -> None:
        if failed is None:
            self.window.status_line.say(self.tr("written: {path}").format(path=path))
        else:
            self.window.status_line.say("")
            self._say(self.tr("{name} was not written: {why}").format(name=path.name, why=failed))

    def _say(self, sentence: str) -> None:
        self.controller.say(Failure(self.session.generation, sentence, ""))

    @Slot()
    def _on_copy_picture(self) -> None:
        QGuiApplication.clipboard().setImage(self.window.heatmaps.grab().toImage())

    @Slot()
    def _on_copy_numbers(self) -> None:
        text = self.window.heatmaps.row_as_text()
        if text:
            QGuiApplication.clipboard().setText(text)

    @Slot()
    def _on_about(self) -> None:
        QMessageBox.about(
            self.window, self.tr("About attnviz"),
            self.tr("attnviz {version}\nWhat happens inside attention, computed live.").format(version=__version__),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------- ending

    @Slot()
    def close(self) -> None:
        """Save the spec and join the worker. Called once, when the window closes."""
        self._closing = True  # an export that is under way is called off
        snapshot = self.session.snapshot()
        self.settings.setValue("scene", to_json(snapshot.spec, snapshot.looked_at))
        self.settings.sync()
        QGuiApplication.clipboard().clear()  # a picture left there crashes Qt's offscreen platform at exit
        if not self.worker.close():
            log.error("the worker did not end in time")


def _application() -> QApplication:
    application = QApplication.instance()
    assert isinstance(application, QApplication)  # noqa: S101 (a window is being built)
    return application


def _budget_bytes(gigabytes: float) -> int | None:
    return int(gigabytes * 1e9) or None


def _without_checked(slot: Callable[..., object], _checked: bool = False) -> None:
    slot()


def build_window(
    asked: tuple[AttentionSpec, View] | None, settings: QSettings,
    engine_factory: Callable[[], EngineLike] = make_engine,
) -> Program:  # fmt: skip
    """The program's window, connected and computing, not shown yet. ``asked`` None is the last spec, or the first."""
    spec, view = asked or _last_scene(settings) or (FIRST_SPEC, View())
    return Program(spec, view, settings, engine_factory)


def _last_scene(settings: QSettings) -> tuple[AttentionSpec, View] | None:
    text = str(settings.value("scene", "", type=str))
    if not text:
        return None
    try:
        return from_json(text)
    except SpecError:
        log.warning("the last spec could not be read; starting afresh")
        return None


# ------------------------------------------------------------------------------------------------------- running


class _Interrupts(QObject):
    """Lets Ctrl+C reach Python while Qt's event loop runs: a byte on a socket wakes it."""

    interrupted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._old_fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._old = signal.signal(signal.SIGINT, lambda *_: None)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_byte)

    @Slot()
    def _on_byte(self) -> None:
        self._read.recv(64)
        self.interrupted.emit()

    def stop(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._old_fd)
        signal.signal(signal.SIGINT, self._old)
        self._read.close()
        self._write.close()


def _icon() -> QIcon:
    picture = QPixmap()
    picture.loadFromData(resources.files("attnviz.resources").joinpath("icons", "attnviz.png").read_bytes())
    return QIcon(picture)


def run_window(asked: tuple[AttentionSpec, View] | None, *, platform_was_ours: bool) -> int:
    """Open the window and run until it closes. Returns the exit status.

    Off screen without being asked for, it writes the window to attnviz.png after the first exact picture and ends.
    """
    qInstallMessageHandler(_on_qt_message)
    application = QApplication(["attnviz"])
    application.setApplicationName("attnviz")
    application.setOrganizationName("attnviz")
    load_fonts()
    application.setWindowIcon(_icon())
    program = build_window(asked, QSettings("attnviz", "attnviz"))
    sys.excepthook = partial(_on_bug, program)
    interrupts = _Interrupts(program)
    status = [0]

    def interrupted() -> None:
        status[0] = 130
        program.window.close()

    interrupts.interrupted.connect(interrupted)
    if platform_was_ours and QGuiApplication.platformName() == "offscreen":
        program.window.resize(1280, 800)  # a picture for a person, whatever the screen that is not there measures
        program.controller.settled.connect(partial(_write_window_once, program, status, []))
    program.window.show()
    application.exec()
    interrupts.stop()
    sys.excepthook = sys.__excepthook__
    return status[0]


def _write_window_once(program: Program, status: list[int], written: list[bool]) -> None:
    if not written:  # painting may settle again
        written.append(True)
        _write_window(program, status)


def _write_window(program: Program, status: list[int]) -> None:
    """Off screen: the window as a picture in the current folder (or a temporary one), one line that says so."""
    QApplication.processEvents()
    picture = program.window.grab()
    missing = screens.missing_library()
    why = f"{missing} is missing" if missing else "there is no display"
    for folder in (Path.cwd(), Path(tempfile.mkdtemp(prefix="attnviz-"))):
        path = folder / "attnviz.png"
        if picture.save(str(path)):
            click.echo(f"attnviz: no window can be shown ({why}); it was written to {path}", err=True)
            break
    else:
        click.echo("attnviz: no window can be shown, and attnviz.png could not be written", err=True)
        status[0] = 1
    program.window.close()


def _on_qt_message(kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    """Qt's own complaints go to the log: a missing display is told in our words."""
    fatal = kind in (QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
    if "platform plugin" in text and fatal:
        click.echo(f"attnviz: {' '.join(text.split())}", err=True)
    log.log(logging.ERROR if fatal else logging.INFO, "Qt: %s", text)


def _on_bug(program: Program, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A bug: into the log and the banner, and the program goes on."""
    log.error("unexpected", exc_info=(kind, error, trace))
    sentence = f"Something went wrong inside attnviz: {kind.__name__}: {error}"
    program.controller.say(Failure(program.session.generation, sentence, "The program goes on.", sentence))
