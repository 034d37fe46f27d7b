"""The window on a real X server: started, driven and closed without a warning."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DRIVEN = "first_start or shares_the_24 or hand_switches or closing_saves"


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="xvfb is not installed: see README's apt line")
def test_a_window_on_a_real_x_server():
    here = Path(__file__).parent
    done = subprocess.run(
        ["xvfb-run", "-a", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", DRIVEN,
         str(here / "test_app.py")],
        env={**os.environ, "QT_QPA_PLATFORM": "xcb", "PYTEST_ADDOPTS": ""}, cwd=here.parent, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
