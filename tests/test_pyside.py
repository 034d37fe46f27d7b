"""Why pyproject.toml leaves some releases of PySide6 out: on Python 3.11 they lose references to None.

Each call loses one; after some thousand calls the interpreter aborts. Python 3.12 made None immortal: nothing to count.
"""

import sys
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QPen

CALLS = 1_000


class Speaker(QObject):
    spoke = Signal(object)


SPEAKER = Speaker()
SPEAKER.spoke.connect(repr)


def pen_width() -> None:
    QPen().setWidth(2)


def no_parent() -> None:
    assert QObject().parent() is None


def stop_timer() -> None:
    QTimer().stop()


def emit_none() -> None:
    SPEAKER.spoke.emit(None)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal from Python 3.12 on")
@pytest.mark.parametrize("call", [pen_width, no_parent, stop_timer, emit_none])
@pytest.mark.parametrize("singleton", [None, True], ids=["None", "True"])
def test_references_to_singletons_do_not_drift(call: Callable[[], None], singleton: object):
    spare = [singleton] * 10 * CALLS  # so that a faulty release fails this test and does not abort the run
    call()
    before = sys.getrefcount(singleton)
    for _ in range(CALLS):
        call()
    drift = sys.getrefcount(singleton) - before
    assert abs(drift) < CALLS // 10, f"{drift} references in {CALLS} calls"
    assert len(spare) == 10 * CALLS
