"""The command line: arguments → a window or headless work. Heavy imports stand in the branch that needs them."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from attnviz import __version__
from attnviz.cli.check import check_command
from attnviz.cli.code import code_command
from attnviz.cli.render import render_command
from attnviz.cli.scene import scene_command
from attnviz.cli.study import SpecOptions, study_command
from attnviz.options.spec import (
    SOURCE_OPTIONS,
    SPEC_OPTIONS,
    FileError,
    asked_for,
    asked_session,
    is_script,
    spec_options,
    with_options,
)
from attnviz.spec import SpecError

__all__ = ["SOURCE_OPTIONS", "SPEC_OPTIONS", "asked_for", "main", "run", "spec_options"]

_ARRAYS = (".npz", ".npy", ".safetensors")


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
    short_help="Open the window; this is the default.",
    help="Open the window, with a FILE or what the options describe (this is the default). FILE is a session, a "
    "spec, a picture that remembers one, or queries and keys as --qk takes them.",
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
            known = ", ".join(commands.commands)
            raise FileError("file", f"{file!r} is neither a command ({known}) nor a file: give one of them")
        options["spec_file"] = file
    asked = asked_session(options)
    lesson = (options["lesson"], options["step"]) if options["step"] or is_script(options["lesson"]) else None
    from attnviz import screens

    signal.signal(signal.SIGINT, _leave)  # until the window stands and can save its state
    ours = screens.choose_platform(os.environ)
    problem = None if ours else screens.forced_platform_problem(os.environ)
    if problem is not None:
        return _fail(problem, 1)
    from attnviz import app

    return app.run_window(asked, platform_was_ours=ours, lesson=lesson)


commands.add_command(render_command(_leave, _say))


@commands.command(help="List the devices that torch reports.")
def devices() -> int:
    """Exit status; a line a device on stdout: name, title, memory."""
    from attnviz.engine import Engine
    from attnviz.frames import said_bytes

    for device in Engine().devices():
        memory = f"{said_bytes(device.free_bytes)} of {said_bytes(device.total_bytes)} free"
        click.echo(f"{device.name}\t{device.title}\t{memory}")
    return 0


def _state_file() -> Path:
    """Where the window keeps its last session."""
    from PySide6.QtCore import QSettings

    from attnviz.window.keeping import state_file

    return state_file(QSettings("attnviz", "attnviz"))


commands.add_command(study_command(SpecOptions(spec_options, asked_for)))
commands.add_command(check_command(spec_options, asked_for))
commands.add_command(code_command(spec_options, asked_for))
commands.add_command(scene_command(_state_file))


class _Lasting(io.FileIO):
    """A file descriptor to which writing never fails: what nobody takes is lost."""

    def write(self, data: Any) -> int:
        try:
            written = super().write(data)
        except OSError:  # its reader has gone, its disk is full
            written = None
        return len(data) if written is None else written


def _make_stderr_last() -> None:
    """Let no line on stderr end the work that it tells of, whether that is closed, a full disk or nobody's pipe."""
    if sys.stderr is None:
        with contextlib.suppress(OSError):
            os.fstat(2)  # nobody's, or some other file's by now
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 (until the process ends)
            return
        # else the first file that is opened would be stderr to libraries in C
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != 2:
            os.dup2(nowhere, 2)
            os.close(nowhere)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (as above)
        return
    binary = getattr(sys.stderr, "buffer", None)
    if type(getattr(binary, "raw", binary)) is io.FileIO:  # and no console of Windows, and none of a test's
        lasting = io.BufferedWriter(_Lasting(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(
            lasting, encoding=sys.stderr.encoding, errors=sys.stderr.errors, line_buffering=True
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong arguments, 130 Ctrl+C."""
    _make_stderr_last()
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
