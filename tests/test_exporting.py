"""Exporting from the window: what is offered, the preview through the worker, and the picture on the clipboard."""

import threading

import msgspec
import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QGuiApplication, QImage

from attnviz import app, rendering
from attnviz.engine import Engine
from attnviz.remembered import recall
from attnviz.session import Window
from attnviz.spec import Paper, RandomQK, Text, View, edited, make_spec
from attnviz.window.file_jobs import STOPPED

TEXT = make_spec(Text(text="the cat eats the fish"), num_heads=2, dropout=0.2, training=True)


@pytest.fixture
def program(qtbot, tmp_path):
    made = app.build_window((TEXT, View()), QSettings(str(tmp_path / "a.ini"), QSettings.Format.IniFormat), Engine)
    qtbot.addWidget(made.window)
    made.window.show()
    settle(qtbot, made)
    yield made
    made.window.close()
    assert not made.worker.is_running()


def settle(qtbot, program):
    def done():
        now = program.session.snapshot()
        begun = (now.spec, now.view) == program.controller.wanted()  # an edit may wait behind the throttle
        return begun and now.picture is not None and now.picture.complete and not now.running and not now.stale

    qtbot.waitUntil(done, timeout=20_000)


def shows(program):
    return [figure.shows for _, figure in program.exporting.offered()]


def test_all_that_the_state_has_is_offered_and_the_page_in_sight_first_after_the_maps(program, qtbot):
    assert shows(program)[0] == "heads"
    assert {"row", "gallery", "dropout", "rounds", "exam", "future-share", "forms", "heads-study", "leaks"} <= {
        *shows(program)
    }
    assert "difference" not in shows(program)
    program.window.show_page("leaks")
    assert shows(program)[1] == "leaks"
    program.controller.edit_spec(edited(TEXT, mask="none"))
    settle(qtbot, program)
    figure = next(figure for _, figure in program.exporting.offered() if figure.shows == "difference")
    assert (figure.spec.mask, figure.beside.mask) == ("neg-inf", "none")
    program.controller.edit_spec(make_spec(RandomQK(length=8)))
    settle(qtbot, program)
    assert not {"heads-study", "leaks", "dropout"} & {*shows(program)}


def test_the_part_in_sight_is_that_of_two_states_and_of_every_mask_too(program, qtbot):
    program.controller.edit_spec(edited(TEXT, mask="none"))
    settle(qtbot, program)
    qtbot.waitUntil(lambda: program.session.snapshot().before is not None)
    program.controller.set_window(Window(1, 3, 0, 4))
    offered = {figure.shows: figure for _, figure in program.exporting.offered()}
    in_part = {name for name, figure in offered.items() if (figure.view.rows, figure.view.cols) == ((1, 3), (0, 4))}
    assert in_part == {"heads", "a-b", "difference", "gallery"}
    assert all(offered[name].view.rows is None for name in {*offered} - in_part)
    program.controller.edit_view(View(stage="queries"))
    qtbot.waitUntil(lambda: program.session.snapshot().picture.view.stage == "queries", timeout=20_000)
    settle(qtbot, program)
    program.controller.set_window(Window(0, 2, 0, 8))  # tokens × dimensions: no part of a map of weights
    offered = {figure.shows: figure for _, figure in program.exporting.offered()}
    assert {name for name, figure in offered.items() if figure.view.rows is not None} == {"heads"}


def test_every_mask_is_as_sharp_as_paper_is_not_as_its_page(program):
    program.window.show_page("masks")
    gallery = next(figure for _, figure in program.exporting.offered() if figure.shows == "gallery")
    assert gallery.question.pixels == 960


def test_every_offer_can_be_drawn_and_says_why_not(program, qtbot):
    """But the exam and the forms, which take their time."""
    program.controller.select_row(2)
    for _, figure in program.exporting.offered():
        if figure.shows in ("exam", "forms"):
            continue
        small = msgspec.structs.replace(figure, paper=Paper(width=640, height=400))
        with qtbot.waitSignal(program.exporting.previewed, timeout=60_000) as previewed:
            program.exporting._on_preview_asked(small)
        _, image, problem = previewed.args
        assert problem is None, (figure.shows, problem)
        assert (image.width(), image.height()) == (640, 400)


def test_the_dialog_has_its_preview_and_writes_what_it_showed(program, qtbot, tmp_path):
    program.exporting.ask()
    dialog = program.exporting._dialog
    qtbot.waitUntil(lambda: dialog.preview.image is not None, timeout=20_000)
    shown = dialog.preview.image
    dialog.path_edit.setText(str(tmp_path / "shown.png"))
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000) as ended:
        dialog._on_accepted()
    assert ended.args == [tmp_path / "shown.png", None]
    assert QImage(str(tmp_path / "shown.png")) == shown.convertToFormat(QImage.Format.Format_RGB32)
    assert recall(tmp_path / "shown.png").spec == TEXT
    assert program.exporting._dialog is None


def test_what_cannot_be_drawn_is_said_in_the_dialog(program, qtbot):
    program.exporting.ask()
    dialog = program.exporting._dialog
    dialog.paper_size.set_value(32_000, 32_000)
    qtbot.waitUntil(lambda: bool(dialog.problem.text()), timeout=20_000)
    assert dialog.problem.text().startswith("size is 32000x32000")
    dialog.reject()


def test_the_picture_is_copied_as_it_is_exported(program, qtbot, tmp_path):
    with qtbot.waitSignal(program.exporting.copied, timeout=20_000):
        program.window.actions_by_name["copy_picture"].trigger()
    image = QGuiApplication.clipboard().image()
    assert (image.width(), image.height()) == (1920, 1080)
    figure = program.exporting.offered()[0][1]
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        program.exporting.export(tmp_path / "same.png", figure)
    assert QImage(str(tmp_path / "same.png")) == image.convertToFormat(QImage.Format.Format_RGB32)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory for it"),
        (TypeError("oh"), "something went wrong inside attnviz: TypeError: oh"),
    ],
)
def test_a_picture_that_fails_is_waited_for_by_nobody(program, qtbot, monkeypatch, error, sentence):
    def fails(*_arguments, **_settings):
        raise error

    monkeypatch.setattr(rendering, "drawing_of", fails)
    with qtbot.waitSignal(program.exporting.copied, timeout=20_000):
        program.exporting.copy()
    assert program.window.status_line._said.text() == f"not copied: {sentence}"
    program.exporting.ask()
    dialog = program.exporting._dialog
    qtbot.waitUntil(lambda: bool(dialog.problem.text()), timeout=20_000)
    assert dialog.problem.text().startswith(sentence)
    dialog.reject()


# ---------------------------------------------------------------------------------------------------------- stopping


def small(program, **fields):
    """The maps as they stand, on a small sheet."""
    return msgspec.structs.replace(program.exporting.offered()[0][1], paper=Paper(width=320, height=240), **fields)


def ended_of(program):
    ended = []
    program.jobs.ended.connect(lambda path, failed: ended.append((path.name, failed)))
    return ended


def test_what_is_being_written_is_stopped_alone_and_leaves_no_half_file(program, qtbot, tmp_path):
    line, ended = program.window.status_line, ended_of(program)
    (tmp_path / "a.gif").write_bytes(b"old")
    assert line.stop.isHidden()
    height = program.window.heatmaps.height()
    program.exporting.export(tmp_path / "a.gif", small(program, animates="re-rolls", frames=60))
    for name in "b.png", "c.png":
        program.exporting.export(tmp_path / name, small(program))
    with qtbot.waitSignal(program.jobs._progressed, timeout=20_000):
        pass
    qtbot.waitUntil(lambda: "%" in line._said.text())
    assert line._said.text().startswith("writing a.gif")
    assert line._said.text().endswith("2 more to write")
    assert line.stop.isVisible()
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        line.stop.click()
        assert line._said.text().startswith("stopping a.gif")
        assert not line.stop.isEnabled()
    assert ended == [("a.gif", STOPPED)]
    assert "stopped: a.gif was not written" in line._said.text()
    assert line._said.text().startswith("writing b.png")
    assert line.stop.isEnabled()
    qtbot.waitUntil(lambda: len(ended) == 3, timeout=20_000)
    assert ended[1:] == [("b.png", None), ("c.png", None)]
    assert line.stop.isHidden()
    assert line._said.text() == f"written: {tmp_path / 'c.png'}"
    assert program.window.heatmaps.height() == height
    assert (tmp_path / "a.gif").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".ini"} == {"a.gif", "b.png", "c.png"}
    assert program.session.snapshot().failure is None


def test_what_waits_is_stopped_at_once(program, qtbot, tmp_path):
    ended, gate = ended_of(program), threading.Event()
    program.controller.run_job(lambda _engine, _pause: gate.wait(20))
    for name in "a.png", "b.png":
        program.exporting.export(tmp_path / name, small(program))
    program.window.status_line.stop.click()
    assert ended == [("a.png", STOPPED)]
    gate.set()
    qtbot.waitUntil(lambda: len(ended) == 2, timeout=20_000)
    assert ended[1:] == [("b.png", None)]
    assert not (tmp_path / "a.png").exists()


def test_a_bug_ends_what_is_being_written_and_is_said(program, qtbot, tmp_path, monkeypatch):
    def fails(*_arguments, **_settings):
        raise TypeError("oh")

    monkeypatch.setattr(rendering, "write_figure", fails)
    with qtbot.waitSignal(program.jobs.ended, timeout=20_000):
        program.exporting.export(tmp_path / "a.png", small(program))
    assert program.window.status_line.stop.isHidden()
    assert program.session.snapshot().failure.sentence == (
        "a.png was not written: something went wrong inside attnviz: TypeError: oh"
    )


def test_a_window_that_closes_says_what_it_leaves_unwritten(program, qtbot, tmp_path, caplog):
    ended = ended_of(program)
    program.exporting.export(tmp_path / "a.gif", small(program, animates="re-rolls", frames=60))
    program.exporting.export(tmp_path / "b.png", small(program))
    with qtbot.waitSignal(program.jobs._progressed, timeout=20_000):
        pass
    program.window.close()
    assert ended == []
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "the window was closed before", "the window was closed before",
    ]  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} & {"a.gif", "b.png"} == set()
