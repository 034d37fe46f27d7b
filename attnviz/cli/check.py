"""``attnviz check``: whether attention leaks, on this machine, in each dtype. Tables on stdout, progress on stderr."""

from __future__ import annotations

import ast
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from attnviz.questions.leak import EqualAnswer, LeakAnswer
    from attnviz.spec import AttentionSpec, View
    from attnviz.studies.leak import Plan, Testable
    from attnviz.subjects import Wishes

_Answer = TypeVar("_Answer")

MOST_TOKENS: Final = 1024
_GRACE_S: Final = 2.0
_OF_TIMEOUT: Final = 0.8  # after which derivatives are given up: what was found before them counts


def check_command(
    add_spec_options: Callable[[Callable[..., Any]], Callable[..., Any]],
    read_spec: Callable[[dict[str, Any]], tuple[AttentionSpec, View] | None],
) -> click.Command:
    """The command ``check``. ``read_spec`` gives (spec, view) for the options of a spec, None where none is given."""

    @click.command(
        "check", short_help="Test whether attention leaks the future.",
        epilog="Exit status: 0 clean, 1 a leak in the code, NaN or not --against, 2 usage, 3 not tested.",
        help="Test attention for leaks, on each device and in each dtype: a spec, an nn.Module class, a function that "
        "returns one, or a function x -> y.",
    )  # fmt: skip
    @click.argument("target", required=False, metavar="[SPEC.json | FILE.py:NAME | package.module:NAME]")
    @click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="An argument of the constructor.")
    @click.option("--call", type=click.Choice(["x", "self"]), help="self: pass the input as q, k and v.")
    @click.option("--against", metavar="FILE.py:NAME", help="Compare with another: outputs and gradients, in eps.")
    @click.option("--gradient", is_flag=True, help="Test the derivatives too, and print their line.")
    @click.option("--scale", "input_scale", type=float, default=1.0, help="Standard deviation of inputs (default: 1).")
    @click.option("--timeout", type=click.FloatRange(0.1, 86_400), default=60.0, help="Seconds a line (default: 60).")
    @click.option("--image", type=click.Path(path_type=Path), help="Write the map of who sees whom as a PNG.")
    @click.option("--strict", is_flag=True, help="A leak in the arithmetic is exit status 1 too.")
    @click.option("--lines", "as_lines", is_flag=True, hidden=True)
    @click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
    @_untested_where_nothing_can_be_written
    def check(
        target: str | None, *, against: str | None, gradient: bool, image: Path | None, as_json: bool, as_lines: bool,
        strict: bool, timeout: float, **options: Any,
    ) -> int:  # fmt: skip
        """Exit status."""
        from attnviz.cli import check_words as words

        if click.get_current_context().obj:  # the process is ours
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # who holds Python's lock hears no handler of Python's
        if image is not None and not image.resolve().parent.is_dir():
            raise click.UsageError(f"--image: there is no folder {str(image.parent)!r}")
        if image is not None and image.is_dir():
            raise click.UsageError(f"--image: {str(image)!r} is a folder: name a file in it")
        own: dict[str, Any] = {name: options.pop(name) for name in ("arguments", "call", "input_scale")} | {
            "gradient": gradient
        }
        if target is not None and target.lower().endswith(".json"):
            options["spec_file"], target = target, None
        try:
            named, subject, plan, wishes = _subject(target, own, options, read_spec, timeout)
            equal = None
            if against is not None:
                equal = _against(against, subject, wishes, plan, timeout, quiet=as_json or as_lines)
            last = _read(named, subject, plan, timeout, quiet=as_json, lines=as_lines)
        except RuntimeError as error:
            if not hasattr(error, "kind"):
                raise
            click.echo(f"attnviz: {error}", err=True)
            return words.ASKED if error.kind == "asked" else words.UNTESTED
        slope = last.gradient
        status = words.status_of(last, plan.scale, strict=strict)
        apart = words.differences(equal)
        incomparable = equal is not None and all(found.same == "untested" for found in equal.found)
        if apart:
            status = words.LEAKS
        elif incomparable and status == words.CLEAN:
            status = words.UNTESTED
        if as_json:
            told = words.as_object(named, plan.length, plan.scale, plan.seed, last, status, equal, slope)
            click.echo(json.dumps(told, allow_nan=False))
        elif not as_lines:
            slopes = [] if slope is None else [words.gradient_line(slope)]
            said = words.summary(last, plan.scale, words.status_of(last, plan.scale, strict=strict))
            unlike = [words.NOT_COMPARED] if incomparable else []
            click.echo("\n".join([*slopes, *said, *apart, *unlike]))
        if image is not None:
            _write_image(image, named, last, plan)
        return status

    def holder() -> None:
        """Only carries options."""

    add_spec_options(holder)
    spec_params: list[click.Parameter] = [*reversed(holder.__click_params__)]  # type: ignore[attr-defined]
    check.params += [param for param in spec_params if param.name != "scale"]  # a spec's own stands in its file
    return check


def _untested_where_nothing_can_be_written(check: Callable[..., int]) -> Callable[..., int]:
    """1 says that something leaks; standard output that is closed or a picture that cannot be written say nothing."""

    @wraps(check)
    def run(*arguments: Any, **options: Any) -> int:
        from attnviz.cli import check_words as words
        from attnviz.files import FileProblem

        try:
            return check(*arguments, **options)
        except (OSError, FileProblem) as error:
            why = error.sentence if isinstance(error, FileProblem) else f"cannot write: {error.strerror or error}"
            with suppress(Exception):
                click.echo(f"attnviz: {why}", err=True)
            return words.UNTESTED

    return run


def _subject(
    target: str | None, own: dict[str, Any], options: dict[str, Any],
    read_spec: Callable[[dict[str, Any]], tuple[AttentionSpec, View] | None], timeout: float,
) -> tuple[str, Testable, Plan, Wishes]:  # fmt: skip
    """What is tested, by name, and how. Raises `SpecError` and `subjects.SubjectError`."""
    from attnviz import subjects
    from attnviz.studies.leak import DTYPES, Plan

    given = {name: value for name, value in options.items() if value is not None}
    length = given.get("length", 32)
    if not 0 <= given.get("seed", 0) < 1 << 63:
        raise click.UsageError(f"--seed is {given['seed']}: give 0 to {(1 << 63) - 1}")
    wishes = subjects.Wishes(
        given.get("d_model", 64), given.get("num_heads", 4), length, given.get("seed", 0),
        _arguments(own["arguments"]), own["call"],
    )  # fmt: skip
    dtypes: tuple[str, ...] = DTYPES
    devices = _devices()
    if target is None:
        asked = read_spec({**options, "dtype": None, "device": None})
        if asked is None:
            raise click.UsageError("nothing to test: give FILE.py:NAME, package.module:NAME, or a spec")
        from attnviz import inputs
        from attnviz.studies.leak.spec_subject import SpecSubject

        subject: Testable = SpecSubject(asked[0])
        length, named = inputs.count_tokens(asked[0].source)[1], subject.name
    else:
        odd = sorted(set(given) - {"d_model", "num_heads", "length", "seed", "dtype", "device"})
        if odd:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in odd)
            raise click.UsageError(f"{flags} belongs to a spec, but {target} is code: use --arg NAME=VALUE")
        named = target
        with _within(timeout, target):
            subject = subjects.build(subjects.find(target), target, wishes)
    if "dtype" in given:
        dtypes = (given["dtype"],) if given["dtype"] == "float64" else ("float64", given["dtype"])
    if "device" in given:
        if given["device"] not in devices:
            raise click.UsageError(f"there is no device {given['device']} here: choose one of {', '.join(devices)}")
        devices = (given["device"],)
    if not 2 <= length <= MOST_TOKENS:
        raise click.UsageError(f"{length} tokens: a test takes 2 to {MOST_TOKENS:,}")
    if not 0 < own["input_scale"] < math.inf:
        raise click.UsageError(f"--scale is {own['input_scale']:g}: give a number above 0")
    plan = Plan(
        devices,
        dtypes,
        length,
        own["input_scale"],
        given.get("seed", 0),
        gradient=own["gradient"],
        gradient_s=_OF_TIMEOUT * timeout,
    )
    return named, subject, plan, wishes


def _read(
    target: str, subject: Testable, plan: Plan, timeout: float, *, quiet: bool, lines: bool
) -> LeakAnswer:  # fmt: skip
    """The last answer; a line for each reading as it comes."""
    from attnviz.cli.check_words import HEADING, line_of
    from attnviz.leak_lines import to_line
    from attnviz.studies.leak import answers

    stream = answers(subject, plan)
    last: LeakAnswer | None = None
    if not (quiet or lines):
        click.echo(f"{target}: {plan.length} tokens, seed {plan.seed}; moved: in eps of the largest output")
        click.echo(HEADING)
    for last in _each(stream, timeout, target):
        if lines:
            click.echo(f"\n{to_line(last)}")  # a line of its own, whatever the module printed before
            sys.stdout.flush()
        elif not quiet and last.gradient is None:
            click.echo(line_of(last.readings[-1]))
    assert last is not None  # noqa: S101 (a plan has readings)
    return last


def _against(
    target: str, subject: Testable, wishes: Wishes, plan: Plan, timeout: float, *, quiet: bool
) -> EqualAnswer:  # fmt: skip
    """How far the module that ``target`` names is from ``subject``; a line a dtype as it comes."""
    from attnviz import subjects
    from attnviz.cli.check_words import EQUAL_HEADING, equality_line
    from attnviz.studies.leak.against import compare, share_weights

    with _within(timeout, target):
        other = subjects.build(subjects.find(target), target, wishes)
        shared = share_weights(getattr(subject, "run", subject), other.run)
    stream = compare(subject, other, plan, shared)
    last: EqualAnswer | None = None
    if not quiet:
        click.echo(f"against {target}, {shared.words}; apart: in eps of the largest")
        click.echo(EQUAL_HEADING)
    for last in _each(stream, timeout, target):
        if not quiet:
            click.echo(equality_line(last.found[-1]))
    assert last is not None  # noqa: S101 (a plan has dtypes)
    return last


def _write_image(path: Path, target: str, answer: LeakAnswer, plan: Plan) -> None:
    """The map of the finest dtype's reading, below the verdict on all. The one thing here that needs Qt."""
    reading = next((r for r in answer.readings if r.moved is not None), None)
    if reading is None:
        click.echo("attnviz: nothing could be read, so there is no picture", err=True)
        return
    if sys.platform == "linux":
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtGui import QGuiApplication

    from attnviz.cli import check_words
    from attnviz.figure.leak_map import write_leak_image
    from attnviz.figure.studies.leaks import looks_words, verdict_words

    application = QGuiApplication.instance() or QGuiApplication(["attnviz"])
    verdict, _ = verdict_words(answer, plan.scale)
    notes = [looks_words(answer), *check_words.scale_notes(answer, plan.scale)]
    map_ = f"The map: {reading.device} {reading.dtype}, {plan.length} tokens."
    write_leak_image(path, reading, (target, verdict), [note for note in (*notes, map_) if note])
    del application


def _arguments(given: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE, where a value that is no Python literal is a word."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--arg {one!r}: give NAME=VALUE, such as --arg n_layers=2")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name] = value
    return found


def _devices() -> tuple[str, ...]:
    from attnviz.attention.devices import TorchBackend

    return tuple(device.name for device in TorchBackend().devices())


def _each(stream: Iterator[_Answer], timeout: float, target: str) -> Iterator[_Answer]:
    """The answers of ``stream``, each within ``timeout`` seconds."""
    while True:
        with _within(timeout, target):
            answer = next(stream, None)
        if answer is None:
            return
        yield answer


@contextmanager
def _within(seconds: float, target: str) -> Iterator[None]:
    """End the process where the block takes longer: what hangs in a kernel hears no exception.

    What a module prints meanwhile goes to stderr: stdout is for what is found.
    """
    done, end = threading.Event(), os._exit

    def watch() -> None:
        if not done.wait(seconds):
            with suppress(Exception):  # either may be closed
                sys.stdout.flush()
                words = f"attnviz: {target} did not answer within {seconds:g} s: --timeout gives it longer"
                click.echo(words, err=True)
                sys.stderr.flush()
            end(3)

    def refuse(status: int) -> NoReturn:
        raise RuntimeError(f"it ends the process, with os._exit({status})")

    watcher = threading.Thread(target=watch, name="attnviz-timeout", daemon=True)
    watcher.start()
    ours = bool(click.get_current_context().obj)
    timed = ours and hasattr(signal, "setitimer")
    if timed:  # where a loop in C holds Python's lock, no thread can watch: the system ends the process
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_S)
    os._exit = refuse
    try:
        with redirect_stdout(sys.stderr), _descriptor_moved(ours):
            yield
    finally:
        os._exit = end
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
        done.set()
        watcher.join()


@contextmanager
def _descriptor_moved(ours: bool) -> Iterator[None]:
    """What C code and child processes print goes to stderr too, where the process is ``ours``."""
    if not ours or sys.__stdout__ is None or sys.__stderr__ is None:  # either is closed
        yield
        return
    sys.__stdout__.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
