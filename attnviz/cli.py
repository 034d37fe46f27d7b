"""The command line: arguments → a window or headless work. Heavy imports stand in the branch that needs them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click
import msgspec

from attnviz import __version__
from attnviz.cli_check import check_command
from attnviz.cli_code import code_command
from attnviz.cli_options import (
    SOURCE_OPTIONS,
    SPEC_OPTIONS,
    FileError,
    asked_for,
    is_script,
    spec_options,
    with_options,
)
from attnviz.cli_study import SpecOptions, study_command
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, MaskFile, SpecError, View, check_size, make_spec, stages_of

__all__ = ["SOURCE_OPTIONS", "SPEC_OPTIONS", "asked_for", "main", "run", "spec_options"]

_LEAST_MEMORY = 1_000_000
_ARRAYS = (".npz", ".npy", ".safetensors")


class _Size(click.ParamType[tuple[int, int]]):
    name = "WxH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        with contextlib.suppress(ValueError):
            width, height = (int(side) for side in str(value).lower().split("x"))
            if width > 0 and height > 0:
                return width, height
        return self.fail(f"{value!r} is no size: give WIDTHxHEIGHT in pixels, such as 1920x1080", param, ctx)


class _Bytes(click.ParamType[int]):
    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(k|M|G|T)?B?\s*", str(value), re.IGNORECASE)
        size = float(found[1]) * 1000 ** " kMGT".lower().index((found[2] or " ").lower()) if found else 0
        if not _LEAST_MEMORY <= size < 1e18:
            words = "give a number and a unit, such as 2GB, and at least 1MB"
            return self.fail(f"{value!r} is no amount of memory: {words}", param, ctx)
        return int(size)


class _Commands(click.Group):
    """The first word is a command when it names one, else a file for the window."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--help", "--version"}
        if not args or (args[0] not in self.commands and args[0] not in own):
            args = ["window", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Commands, help="See what happens inside attention. Without a command: the window.")
@click.version_option(__version__, message="attnviz %(version)s")
def commands() -> None:
    """The program; `window` is its default command."""


@commands.command(
    help="Open the window, with a FILE or what the options describe (this is the default). FILE is a spec, or queries "
    "and keys as --qk takes them."
)
@click.argument("file", required=False)
@spec_options
def window(file: str | None, **options: Any) -> int:
    """Exit status after the window has closed."""
    if file is not None and file.lower().endswith(_ARRAYS):
        if options["qk"] is not None:
            raise SpecError("qk", "FILE and --qk are two files of queries and keys: give one")
        options["qk"] = file
    elif file is not None:
        if options["spec_file"] is not None:
            raise SpecError("file", "FILE and --spec are two spec files: give one")
        if not Path(file).suffix and not os.path.lexists(file):
            known = ", ".join(name for name in commands.commands if name != "window")
            raise FileError("file", f"{file!r} is neither a command ({known}) nor a file: give one of them")
        options["spec_file"] = file
    asked = asked_for(options)
    lesson = (options["lesson"], options["step"]) if options["step"] or is_script(options["lesson"]) else None
    from attnviz import screens

    signal.signal(signal.SIGINT, _leave)  # until the window stands and can save its state
    ours = screens.choose_platform(os.environ)
    problem = None if ours else screens.forced_platform_problem(os.environ)
    if problem is not None:
        return _fail(problem, 1)
    from attnviz import app

    return app.run_window(asked, platform_was_ours=ours, lesson=lesson)


@commands.command(help="Compute without a window and write a picture, arrays or a spec file.")
@click.option("--image", type=click.Path(path_type=Path), help="Write a PNG.")
@click.option("--data", type=click.Path(path_type=Path), help="Write every stage to an NPZ file.")
@click.option("--save-spec", type=click.Path(path_type=Path), help="Write the spec as JSON.")
@click.option("--size", type=_Size(), default="1920x1080", show_default=True, help="Pixels of the picture.")
@click.option("--memory", type=_Bytes(), help="Memory to take, such as 2GB (default: a quarter of what is free).")
@spec_options
def render(
    image: Path | None, data: Path | None, save_spec: Path | None, size: tuple[int, int], memory: int | None,
    **options: Any,
) -> int:  # fmt: skip
    """Exit status after every file asked for is written."""
    if image is None and data is None and save_spec is None:
        raise click.UsageError("no output asked for: give --image FILE.png, --data FILE.npz or --save-spec FILE.json")
    outputs = [path.resolve() for path in (image, data, save_spec) if path is not None]
    if len(set(outputs)) < len(outputs):
        raise click.UsageError("two outputs have one path: give each a file of its own")
    for name, path, suffix in ("image", image, ".png"), ("data", data, ".npz"):
        if path is not None and path.suffix.lower() not in ("", suffix):
            raise click.UsageError(f"--{name} is {str(path)!r}: write {suffix}")
    signal.signal(signal.SIGINT, _leave)  # libraries swallow a KeyboardInterrupt now and then
    spec, view = asked_for(options) or (make_spec(), View())
    view = _clipped(spec, view)
    if options["mask_shape"] is not None:
        _check_mask_file(spec)
    if image is not None:
        check_size(size)
    from attnviz import rendering

    if save_spec is not None:
        rendering.write_spec(save_spec, spec, view)
    if data is None and image is None:
        return 0
    from attnviz.engine import Engine

    engine = Engine(budget_bytes=memory)
    if data is not None:
        rendering.write_arrays(data, spec, view, engine)
    if image is not None:
        if sys.platform == "linux":
            os.environ["QT_QPA_PLATFORM"] = "offscreen"
        from PySide6.QtGui import QGuiApplication

        application = QGuiApplication.instance() or QGuiApplication(["attnviz"])
        picture = rendering.write_image(image, spec, view, size, engine)
        for remark in (*picture.finished.notes, *picture.finished.remarks) if picture.finished else ():
            _say(remark)
        dropped = f"dropped_{spec.dropout_site}"
        if spec.drops and options["stage"] is None and view.stage == "weights" and dropped in stages_of(spec):
            _say(f"dropout acts after this stage: see --stage {dropped}")
        del application
    return 0


def _clipped(spec: AttentionSpec, view: View) -> View:
    """``view`` with its rows and columns cut at the map's edges. Raises `SpecError` where they begin beyond them."""
    if view.stage not in QUERY_KEY_STAGES or (view.rows is None and view.cols is None):
        return view
    from attnviz import inputs

    spans = {}
    for field, size in zip(("rows", "cols"), inputs.count_tokens(spec.source), strict=True):
        span = getattr(view, field)
        if span is not None and span[0] >= size:
            raise SpecError(field, f"{field} begins at {span[0]:,}, but the map has {size:,}: begin below that")
        spans[field] = None if span is None else (span[0], min(span[1], size))
    return msgspec.structs.replace(view, **spans)


def _check_mask_file(spec: AttentionSpec) -> None:
    """Raise `SpecError` unless the mask's file, if it is one, has the map's shape."""
    if not isinstance(spec.mask_shape, MaskFile):
        return
    from attnviz import inputs, tensor_files
    from attnviz.files import FileProblem

    try:
        tensor_files.open_mask(spec.mask_shape, *inputs.count_tokens(spec.source))
    except FileProblem as problem:
        raise SpecError("mask_shape", problem.sentence) from problem


@commands.command(help="List the devices that torch reports.")
def devices() -> int:
    """Exit status; a line a device on stdout: name, title, memory."""
    from attnviz.engine import Engine
    from attnviz.frames import said_bytes

    for device in Engine().devices():
        memory = f"{said_bytes(device.free_bytes)} of {said_bytes(device.total_bytes)} free"
        click.echo(f"{device.name}\t{device.title}\t{memory}")
    return 0


commands.add_command(study_command(SpecOptions(spec_options, asked_for)))
commands.add_command(check_command(spec_options, asked_for))
commands.add_command(code_command(spec_options, asked_for))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong arguments, 130 Ctrl+C."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments), alone=True))


def run(arguments: list[str], *, alone: bool = False) -> int:
    """Exit status of a command line. One line on stderr says what went wrong.

    ``alone`` says that the process is the program's own, with its signals.
    """
    from attnviz.screens import qt_problem

    try:
        done = commands.main(arguments, prog_name="attnviz", standalone_mode=False, obj=alone)
        return done if isinstance(done, int) else 0
    except SpecError as error:
        return _fail(with_options(error), 2)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except ImportError as error:
        if "PySide6" not in str(error) and "lib" not in str(error):
            raise
        return _fail(qt_problem(error), 1)
    except OSError as error:  # standard output is full or closed
        return _fail(f"cannot write: {error.strerror or error}", 1)
    except RuntimeError as error:
        if not hasattr(error, "sentence"):
            raise
        return _fail(str(error), 1)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End at once. Imports nothing: it may come in the middle of an import."""
    files = sys.modules.get("attnviz.files")
    with contextlib.suppress(Exception):  # a module that is half there has written nothing
        files.abandon()  # type: ignore[union-attr]
    os._exit(130)


def _say(sentence: str) -> None:
    """One line on stderr."""
    click.echo(f"attnviz: {' '.join(sentence.split())}", err=True)


def _fail(sentence: str, status: int) -> int:
    _say(sentence)
    return status
