"""Decks made: the same bytes however many at a time, nothing half written, failures told and gone past."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from rights import UNWRITABLE

from attnviz import cli, rendering, scene_files
from attnviz.cli import scene as cli_scene
from attnviz.files import FileProblem
from attnviz.remembered import recall
from attnviz.session_files import SavedSession, to_text
from attnviz.spec import SpecError, View, make_spec

DECK = """\
[all]
size = "320x240"
lesson = "cat-eats-fish"
[[figure]]
file = "01 猫 吃 鱼.png"
[[figure]]
file = "in a folder/02 🐟.svg"
mask = "none"
[[figure]]
file = "03.pdf"
stage = "context"
[[figure]]
file = "04.gif"
mask = "three-step"
animate = "stages"
[[figure]]
file = "05.png"
shows = "row"
row = 1
beside = { mask = "none" }
[[figure]]
file = "06.png"
length = 700
heads = 3
[[figure]]
file = "n.npz"
[[figure]]
file = "n.csv"
lesson = "journey"
rows = [2, 99]
"""


@pytest.fixture
def deck(tmp_path):
    path = tmp_path / "a deck.toml"
    path.write_text(DECK, encoding="utf-8")
    return path


def made(folder):
    """What lies in ``folder``: bytes by name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_deck_gives_the_same_bytes_however_it_is_made(qapp, deck, tmp_path, capfd):
    for name, jobs in ("one", 1), ("two", 2), ("again", 3), ("usual", None):
        assert cli_scene.render_deck(deck, tmp_path / name, jobs=jobs) == 0
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 4 * 9
    assert told[8] == "attnviz: n.csv: rows is 2:99, but the map ends at 6: drawn as 2:6"
    assert told[0] == "attnviz: 1 of 8: 01 猫 吃 鱼.png"
    assert not any(thread.name.startswith("attnviz-deck") for thread in threading.enumerate())
    one = made(tmp_path / "one")
    assert sorted(one) == sorted(figure.file for figure in scene_files.read(deck).figures)
    for name in ("two", "again", "usual"):
        assert made(tmp_path / name) == one
    assert QImage(str(tmp_path / "one" / "01 猫 吃 鱼.png")).size().toTuple() == (320, 240)
    assert recall(tmp_path / "one" / "03.pdf").view.stage == "context"
    assert b"starts" in one["n.csv"]
    assert b"journey" not in one["n.csv"].split(b"\r\n", 1)[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", scene_files.names())
def test_a_lessons_deck_gives_the_same_bytes_from_two_processes(tmp_path, name):
    (tmp_path / "d.toml").write_text(scene_files.built_in(name), encoding="utf-8")
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        done = attnviz("render", "d.toml", "--out", str(out), "--jobs", jobs, folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
    first, second = made(tmp_path / "1"), made(tmp_path / "2")
    assert len(first) >= 10
    assert [name for name in first if first[name] != second[name]] == []


def attnviz(*arguments, folder, **settings):
    return subprocess.run(
        [sys.executable, "-m", "attnviz", *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}, **settings,
    )  # fmt: skip


def test_mistakes_are_lines_before_anything_is_drawn(tmp_path, capfd):
    deck = tmp_path / "d.toml"
    deck.write_text('[[figure]]\nfile = "1.png"\nstage = "nope"\n[[figure]]\nfile = "2.png"\nmask = "nine"\n')
    with pytest.raises(scene_files.SceneProblem, match="2 mistakes; nothing is drawn"):
        cli_scene.render_deck(deck, tmp_path / "out")
    one, other = capfd.readouterr().err.splitlines()
    assert one.startswith("attnviz: d.toml, line 3: stage is 'nope'")
    assert other.startswith("attnviz: d.toml, line 6: mask is 'nine'")
    assert not (tmp_path / "out").exists()


def test_what_fails_is_told_at_the_end_and_the_others_are_made(qapp, tmp_path, capfd):
    long = "x" * 250 + ".png"
    too_long = "猫" * 100 + ".png"
    deck = tmp_path / "d.toml"
    deck.write_text(
        f'[all]\nsize = "64x64"\n[[figure]]\nfile = "1.png"\nqk = "none.npz"\n[[figure]]\nfile = "{long}"\n'
        f'[[figure]]\nfile = "{too_long}"\n[[figure]]\nfile = "taken/4.png"\n[[figure]]\nfile = "5.png"\n'
        'rows = [50, 60]\n[[figure]]\nfile = "6.png"\ndevice = "cuda:97"\n'
        '[[figure]]\nfile = "7.png"\nshows = "row"\nrow = 60\n',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    out.mkdir()
    (out / "taken").write_text("a file")
    (out / "5.png").write_bytes(b"old")
    assert cli_scene.render_deck(deck, out) == 1
    told = [line for line in capfd.readouterr().err.splitlines() if "has no room" not in line]
    assert len(told) == 7 + 1 + 6
    assert told[7] == f"attnviz: 6 of 7 figures failed: 1.png, {too_long}, taken/4.png, 5.png, 6.png, 7.png"
    for line, start in zip(
        told[8:],
        ("1.png (line 3): cannot read ", f"{too_long} (line 8): cannot write ", "taken/4.png (line 10): cannot write ",
         "5.png (line 12): rows begins at 50", "6.png (line 15): ", "7.png (line 18): row is 60"),
        strict=True,
    ):  # fmt: skip
        assert line.startswith(f"attnviz: {start}")
    assert sorted(path.name for path in out.iterdir()) == sorted([long, "taken", "5.png"])
    assert (out / "5.png").read_bytes() == b"old"


def test_a_bug_in_one_picture_keeps_nobody_from_the_others(qapp, deck, tmp_path, capfd, monkeypatch):
    real = rendering.write_figure

    def broken(path, figure, *arguments, **settings):
        if path.name == "05.png":
            raise KeyError("a bug")
        return real(path, figure, *arguments, **settings)

    monkeypatch.setattr(rendering, "write_figure", broken)
    assert cli_scene.render_deck(deck, tmp_path / "out") == 1
    assert "05.png (line 16): something went wrong inside attnviz: KeyError: 'a bug'" in capfd.readouterr().err
    assert len(made(tmp_path / "out")) == 7


def test_a_full_disk_leaves_no_half_file(qapp, deck, tmp_path, capfd, monkeypatch):
    def full(_file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert cli_scene.render_deck(deck, tmp_path / "out") == 1
    told = capfd.readouterr().err
    assert told.count("the disk is full; make room, or choose another disk") == 8
    assert made(tmp_path / "out") == {}


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="not Linux")
def test_a_folder_that_may_not_be_written_in_is_told(qapp, tmp_path, capfd):
    deck = tmp_path / "d.toml"
    names = "1.png", "2.svg", "3.csv", "in/4.png"
    deck.write_text('[all]\nsize = "64x64"\n' + "".join(f'[[figure]]\nfile = "{name}"\n' for name in names))
    assert cli_scene.render_deck(deck, UNWRITABLE) == 1
    told = [line for line in capfd.readouterr().err.splitlines() if "): cannot write" in line]
    assert [line.split()[1] for line in told] == list(names)
    for line in told[:3]:  # a container's may be on a disk that nobody writes
        assert "you may not write in /sys; choose" in line or "/sys is on a read-only disk" in line
    assert told[3].endswith("; give another name, or another folder with --out")


def test_a_folder_that_cannot_be_is_told(deck, tmp_path):
    for out in (deck, deck / "in", tmp_path / "a\0b"):
        with pytest.raises(FileProblem, match="cannot write"):
            cli_scene.render_deck(deck, out)


def test_some_figures_are_chosen_by_name(qapp, deck, tmp_path, capfd):
    assert cli_scene.render_deck(deck, tmp_path / "out", only="n.*") == 0
    assert sorted(made(tmp_path / "out")) == ["n.csv", "n.npz"]
    with pytest.raises(
        SpecError, match=r"a deck.toml: no file is called x: there are 01 猫 吃 鱼.png, .*; \* is anything"
    ):
        cli_scene.render_deck(deck, tmp_path / "out", only="x")


def test_no_path_outside_the_folder_is_written(qapp, deck, tmp_path, capfd):
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    (out / "in a folder").symlink_to(other)
    (out / "03.pdf").symlink_to(other / "03.pdf")
    assert cli_scene.render_deck(deck, out) == 1
    assert capfd.readouterr().err.count("a link that leads out of") == 2
    assert list(other.iterdir()) == []


# ---------------------------------------------------------------------------------------------------- as a program


def test_a_wrong_deck_ends_with_2_and_one_line(tmp_path):
    (tmp_path / "d.toml").write_text('[[figure]]\nfile = "a.png"\nmask = "nine"')
    done = attnviz("render", "d.toml", "--out", "out", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("attnviz: d.toml, line 3: mask is 'nine', which is not one of")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
@pytest.mark.parametrize("after", [pytest.param(1, marks=pytest.mark.slow), 4, pytest.param(7, marks=pytest.mark.slow)])
def test_a_killed_deck_leaves_whole_files_alone(deck, tmp_path, after):
    out = tmp_path / "out"
    ended = started(deck, out, after, signal.SIGKILL)
    assert ended == -signal.SIGKILL
    whole = {name: data for name, data in made(out).items() if not Path(name).name.startswith(".attnviz-")}
    assert len(whole) >= after
    for name, data in whole.items():
        assert is_whole(name, data), name
    assert attnviz("render", str(deck), "--out", str(out), folder=tmp_path).returncode == 0
    again = made(out)
    assert len(again) == 8  # what was left over is swept
    assert {name: again[name] for name in whole} == whole


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
def test_ctrl_c_ends_at_once(deck, tmp_path):
    out = tmp_path / "out"
    assert started(deck, out, 2, signal.SIGINT) == 130
    assert all(is_whole(name, data) for name, data in made(out).items())


def started(deck, out, after, number):
    """The exit status of a program that gets a signal once it has told of ``after`` figures."""
    command = [sys.executable, "-m", "attnviz", "render", str(deck), "--out", str(out), "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        for _ in range(after):
            program.stderr.readline()
        program.send_signal(number)
        return program.wait(30)


def is_whole(name, data):
    """Whether a file has its end."""
    end = {
        "png": b"IEND\xaeB`\x82",
        "svg": b"</svg>",
        "pdf": b"%%EOF",
        "gif": b";",
        "csv": b"\r\n",
        "npz": b"PK\x05\x06",
    }
    return end[name[-3:]] in data[-40:]


# --------------------------------------------------------------------------------------------------------------- scene


def test_the_last_session_becomes_a_deck(tmp_path):
    spec, view = make_spec(mask="three-step", seed=5, num_heads=4, d_out=8), View(stage="row_sums", rows=(1, 3))
    (tmp_path / "s.attnviz").write_text(to_text(SavedSession(spec=spec, view=view)))
    text = cli_scene.scene_text(tmp_path / "s.attnviz")
    (found,) = scene_files.parse(text, "deck.toml", tmp_path).figures
    assert (found.figure.spec, found.figure.view) == (spec, view)
    (found,) = scene_files.parse(cli_scene.scene_text(tmp_path / "none"), "deck.toml", tmp_path).figures
    assert found.figure.spec.mask == "none"
    (tmp_path / "s.attnviz").write_text('{\n"attnviz": "session",\n"version": x')
    with pytest.raises(SpecError, match="the last session cannot be read"):
        cli_scene.scene_text(tmp_path / "s.attnviz")


def test_scene_prints_the_windows_session_and_lessons_decks(tmp_path):
    done = attnviz("scene", folder=tmp_path)
    assert done.returncode == 0
    assert 'lesson = "cat-eats-fish"\nmask = "none"' in done.stdout
    for name in scene_files.names():
        done = attnviz("scene", "--lesson", name, folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, scene_files.built_in(name))
    wrong = attnviz("scene", "--lesson", "one-class", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "give cat-eats-fish or journey" in wrong.stderr
    assert json.dumps(wrong.stderr).count("\\n") == 1
