"""How far a long computation is: lines now and then where stderr is no terminal, one line in place where it is."""

import os
import subprocess
import sys

import pytest

from attnviz import cli
from attnviz.cli import progress as told
from attnviz.cli.progress import progress


class Clock:
    """Seconds that pass at each look."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def monotonic(self):
        self.now += self.step
        return self.now


@pytest.fixture
def passing(monkeypatch):
    def passes(step):
        monkeypatch.setattr(told, "time", Clock(step))

    return passes


def test_lines_come_after_two_seconds_and_ever_more_seldom(passing, capsys):
    passing(1)
    with progress("forms") as say:
        for second in range(1, 301):
            say(f"{second} of 300")
    out, err = capsys.readouterr()
    assert out == ""
    seconds = [int(line.removeprefix("attnviz: forms: ").split()[0]) for line in err.splitlines()]
    assert seconds == [2, 4, 8, 16, 32, 64, 124, 184, 244]


def test_what_is_quick_says_nothing(passing, capsys):
    passing(0.001)
    with progress("forms") as say:
        for n in range(1900):
            say(f"{n} of 1900")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("name", "shown"), [("a\tb", "a\\tb"), ("猫吃鱼.csv", "猫吃鱼.csv")])
def test_a_terminal_has_one_line_that_goes_to_its_end(name, shown, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    def fails():
        with progress(name) as say:
            say("10 of 10")
            say("9")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    clear = "\x1b[K"  # to the line's end: 猫 takes two columns
    assert capsys.readouterr().err == f"\r{shown}: 10 of 10 {clear}\r{shown}: 9 {clear}\r{clear}"


def test_a_study_and_a_picture_of_one_say_how_far_they_are(passing, capsys, tmp_path, qapp):
    passing(1.5)
    assert cli.run(["study", "future-share", "--draws", "9"]) == 0
    out, err = capsys.readouterr()
    assert "of 9" not in out
    assert err.splitlines()[0] == "attnviz: future-share: 2 of 9"
    picture = tmp_path / "a.png"
    assert cli.run(["render", "--shows", "future-share", "--size", "320x240", "--image", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("attnviz: a.png: ")
    assert err.splitlines()[0].endswith(" %")
    assert picture.exists()


_WORK = """
import sys, attnviz.cli.entry as entry
from attnviz.cli.progress import progress
from attnviz.cli.scene import _progress, _Reached
def run(_arguments, alone):
    progress.__globals__["_AFTER_S"] = 0
    with progress("heads") as say, _progress(2) as told:
        for n in range(200):
            say(f"{n} of 200")
            told(_Reached("1.png", 0.5))
    assert open("/dev/null").fileno() > 2, "to libraries in C it would be stderr"
    entry._fail("a line after the work", 0)
    print("done")
entry.run = run
entry.main([])
"""


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", ""], ids=["closed", "full", "pipe"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])  # around which click makes a stream of its own
def test_no_stderr_ends_the_work(stderr, encoding):
    nobodys, broken = os.pipe()
    os.close(nobodys)
    try:
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" -c "$1" {stderr}', sys.executable, _WORK], stdout=subprocess.PIPE, stderr=broken,
            text=True, check=False, env={**os.environ, "PYTHONIOENCODING": encoding},
        )  # fmt: skip
    finally:
        os.close(broken)
    assert (done.returncode, done.stdout) == (0, "done\n")
