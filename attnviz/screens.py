"""Real screens: which Qt platform to use, what is missing where there is none, in words. Imports no Qt."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

APT_LINE = (
    "apt install libglib2.0-0 libegl1 libgl1 libxkbcommon-x11-0 libdbus-1-3 libfontconfig1 libxcb-cursor0 "
    "libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 "
    "libxcb-xkb1"
)
DNF_LINE = (
    "dnf install glib2 mesa-libEGL mesa-libGL libxkbcommon-x11 dbus-libs fontconfig xcb-util-cursor xcb-util-wm "
    "xcb-util-image xcb-util-keysyms xcb-util-renderutil"
)


def choose_platform(environ: MutableMapping[str, str]) -> bool:
    """Let Qt fall back by itself to a window off screen; returns whether the choice was ours, not the user's."""
    if sys.platform != "linux" or environ.get("QT_QPA_PLATFORM"):
        return False
    known = environ.get("WAYLAND_DISPLAY") or environ.get("XDG_RUNTIME_DIR")  # else libwayland complains on stderr
    environ["QT_QPA_PLATFORM"] = "wayland;xcb;offscreen" if known else "xcb;offscreen"
    return True


def choose_quietly(environ: MutableMapping[str, str]) -> bool:
    """`choose_platform` for pictures in somebody else's process: asks for no display that the environment lacks.

    Its libraries would complain on standard error.
    """
    if not choose_platform(environ):
        return False
    shown = [name for name, said in (("wayland", "WAYLAND_DISPLAY"), ("xcb", "DISPLAY")) if environ.get(said)]
    environ["QT_QPA_PLATFORM"] = ";".join([*shown, "offscreen"])
    return True


def qt_problem(error: ImportError) -> str:
    """One sentence for a Qt that cannot be loaded, with the lines that mend it."""
    named = re.search(r"(lib\S+\.so\S*?):", str(error))
    what = f"the library {named.group(1)} is missing" if named else str(error)
    return f"Qt cannot be loaded: {what}. Install Qt's libraries: `{APT_LINE}` or `{DNF_LINE}`."


def missing_library(plugin: str = "xcb") -> str | None:
    """The library that keeps Qt's platform plugin from loading, such as libxcb-icccm.so.4; None if it loads."""
    if sys.platform != "linux":
        return None
    for folder in _plugin_folders():
        path = folder / f"libq{plugin}.so"
        if path.exists():
            try:
                ctypes.CDLL(str(path))
            except OSError as error:
                return str(error).split(":", 1)[0]
    return None


def use_offscreen() -> None:
    """Pictures need no display, and must not look for one."""
    if sys.platform == "linux":
        os.environ["QT_QPA_PLATFORM"] = "offscreen"


def why_no_window() -> str:
    """Why no window can be shown, in a few words."""
    missing = missing_library()
    return f"{missing} is missing" if missing else "there is no display"


def forced_platform_problem(environ: Mapping[str, str]) -> str | None:
    """Why none of the platforms that the user asked for can work, in a sentence; Qt itself would abort."""
    if sys.platform != "linux":
        return None
    asked = [name.split(":")[0] for name in environ.get("QT_QPA_PLATFORM", "").split(";") if name]
    folders = _plugin_folders()
    there = {path.stem.removeprefix("libq") for folder in folders for path in folder.glob("libq*.so")}
    if not there or any(_may_work(name, environ) for name in asked if name in there):
        return None
    if not set(asked) & there:
        return f"QT_QPA_PLATFORM is {';'.join(asked)}: give one of {', '.join(sorted(there))}, or unset it."
    why = missing_library(next(name for name in asked if name in there)) or "there is no display"
    return f"QT_QPA_PLATFORM is {';'.join(asked)}, but no window can be shown ({why}): unset it, or give offscreen."


def _may_work(name: str, environ: Mapping[str, str]) -> bool:
    if name == "xcb":
        return bool(environ.get("DISPLAY")) and missing_library(name) is None
    return True


def _plugin_folders() -> list[Path]:
    spec = importlib.util.find_spec("PySide6")
    places = spec.submodule_search_locations if spec else None
    return [Path(place, "Qt", "plugins", "platforms") for place in places or ()]
