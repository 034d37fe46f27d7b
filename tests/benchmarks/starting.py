"""How soon the window stands and shows its first picture, beside a program that imports torch first."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.arms import compared

_PROGRAM = """
import sys, time
start = time.perf_counter()
if sys.argv[1] == "eager":
    import torch
from PySide6.QtCore import QEventLoop, QSettings
from PySide6.QtWidgets import QApplication
from attnviz import app
from attnviz.figure.fonts import load_fonts
application = QApplication([])
load_fonts()
program = app.build_window(None, QSettings(sys.argv[2], QSettings.Format.IniFormat))
program.window.show()
application.processEvents()
shown = time.perf_counter() - start
loop = QEventLoop()
program.controller.settled.connect(loop.quit)
loop.exec()
print(shown, time.perf_counter() - start)
program.window.close()
"""


def start(repeats):
    """The window painted, and its first exact picture, beside importing torch before anything else.

    Each start is a process of its own, timed from its first line; the file cache is warm. Ours and the eager start
    run the same program, one after the other.
    """
    arms = {"ours": [], "eager": []}
    for number in range(-1, repeats):  # the first pair fills the file cache
        for arm, taken in arms.items():
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-c", _PROGRAM, arm, str(Path(folder, "start.ini"))],
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
            if number >= 0:
                taken.append([float(word) for word in done.stdout.split()])
    medians = {arm: [statistics.median(column) for column in zip(*taken, strict=True)] for arm, taken in arms.items()}
    (shown, first), (eager_shown, eager_first) = medians["ours"], medians["eager"]
    return [
        compared("start-window", shown, eager_shown, 0.3, "eager imports"),
        compared("start-first-picture", first, eager_first, 1.2, "eager imports"),
    ]
