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
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from attnviz.leak_lines import to_line
from attnviz.questions.leak import LOOKS, EqualAnswer, GradientReading, LeakAnswer, Reading, outcome

if TYPE_CHECKING:
    from attnviz.spec import AttentionSpec, View
    from attnviz.studies.leak import Plan, Testable
    from attnviz.subjects import Wishes

CLEAN, LEAKS, ASKED, UNTESTED = 0, 1, 2, 3
"""Exit statuses."""

MOST_TOKENS: Final = 1024
_GRACE_S: Final = 2.0


def check_command(
    add_spec_options: Callable[[Callable[..., Any]], Callable[..., Any]],
    read_spec: Callable[[dict[str, Any]], tuple[AttentionSpec, View] | None],
) -> click.Command:
    """The command ``check``. ``read_spec`` gives (spec, view) for the options of a spec, None where none is given."""

    @click.command(
        "check", epilog="Exit status: 0 clean, 1 a leak in the code or NaN, 2 wrong arguments, 3 not tested.",
        help="Test attention for leaks, on each device and in each dtype: a spec, an nn.Module class, a function that "
        "returns one, or a function x -> y.",
    )  # fmt: skip
    @click.argument("target", required=False, metavar="[SPEC.json | FILE.py:NAME | package.module:NAME]")
    @click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="An argument of the constructor.")
    @click.option("--call", type=click.Choice(["x", "self"]), help="self: pass the input as q, k and v.")
    @click.option("--against", metavar="FILE.py:NAME", help="Compare with another: outputs and gradients, in eps.")
    @click.option("--gradient", is_flag=True, help="Ask the derivatives too: one line more.")
    @click.option("--scale", "input_scale", type=float, default=1.0, help="Standard deviation of the inputs (1).")
    @click.option("--timeout", type=click.FloatRange(0.1, 86_400), default=60.0, help="Seconds for one line (60).")
    @click.option("--image", type=click.Path(path_type=Path), help="Write the map of who sees whom as a PNG.")
    @click.option("--strict", is_flag=True, help="A leak in the arithmetic is exit status 1 too.")
    @click.option("--lines", "as_lines", is_flag=True, hidden=True)
    @click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
    def check(
        target: str | None, *, against: str | None, gradient: bool, image: Path | None, as_json: bool, as_lines: bool,
        strict: bool, timeout: float, **options: Any,
    ) -> int:  # fmt: skip
        """Exit status."""
        if click.get_current_context().obj:  # the process is ours
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # who holds Python's lock hears no handler of Python's
        if image is not None and not image.resolve().parent.is_dir():
            raise click.UsageError(f"--image: there is no folder {str(image.parent)!r}")
        own = {name: options.pop(name) for name in ("arguments", "call", "input_scale")}
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
            return ASKED if error.kind == "asked" else UNTESTED
        slope = _gradient(named, subject, plan, timeout) if gradient else None
        status = status_of(last, plan, strict=strict)
        if image is not None:
            _write_image(image, named, last, plan)
        if equal is not None and any(found.same == "differ" for found in equal.found):
            status = LEAKS
        if as_lines:
            return status
        if as_json:
            click.echo(json.dumps(as_object(named, plan, last, status, equal, slope), allow_nan=False))
        else:
            differ = [] if equal is None else [found.dtype for found in equal.found if found.same == "differ"]
            if differ:
                click.echo(f"They differ in {', '.join(dict.fromkeys(differ))}.")
            if slope is not None:
                click.echo(gradient_line(slope))
            click.echo("\n".join(summary(last, plan, status)))
        return status

    def holder() -> None:
        """Only carries options."""

    add_spec_options(holder)
    spec_params: list[click.Parameter] = [*reversed(holder.__click_params__)]  # type: ignore[attr-defined]
    check.params += [param for param in spec_params if param.name != "scale"]  # a spec's own stands in its file
    return check


def _subject(
    target: str | None, own: dict[str, Any], options: dict[str, Any],
    read_spec: Callable[[dict[str, Any]], tuple[AttentionSpec, View] | None], timeout: float,
) -> tuple[str, Testable, Plan, Wishes]:  # fmt: skip
    """What is tested, by name, and how. Raises `SpecError` and `subjects.SubjectError`."""
    from attnviz import subjects
    from attnviz.studies.leak import DTYPES, Plan

    given = {name: value for name, value in options.items() if value is not None}
    length = given.get("length", 32)
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
    return named, subject, Plan(devices, dtypes, length, own["input_scale"], given.get("seed", 0)), wishes


def _read(
    target: str, subject: Testable, plan: Plan, timeout: float, *, quiet: bool, lines: bool
) -> LeakAnswer:  # fmt: skip
    """The last answer; a line for each reading as it comes."""
    from attnviz.studies.leak import answers

    stream, last = answers(subject, plan), None
    if not (quiet or lines):
        click.echo(f"{target}: {plan.length} tokens, seed {plan.seed}; moved: in eps of the largest output")
        click.echo(f"{'device':8}{'dtype':10}{'inputs':>8}  {'verdict':24}{'moved':>10}  where")
    while True:
        with _within(timeout, target):
            answer = next(stream, None)
        if answer is None:
            break
        last = answer
        if lines:
            click.echo(f"\n{to_line(answer)}")  # a line of its own, whatever the module printed before
            sys.stdout.flush()
        elif not quiet:
            click.echo(line_of(answer.readings[-1]))
    assert last is not None  # noqa: S101 (a plan has readings)
    return last


def _against(
    target: str, subject: Testable, wishes: Wishes, plan: Plan, timeout: float, *, quiet: bool
) -> EqualAnswer:  # fmt: skip
    """How far the module that ``target`` names is from ``subject``; a line a dtype as it comes."""
    from attnviz import subjects
    from attnviz.studies.leak.against import compare, share_weights

    with _within(timeout, target):
        other = subjects.build(subjects.find(target), target, wishes)
        shared = share_weights(getattr(subject, "run", None), other.run)
    stream = compare(subject, other, plan, shared)
    last: EqualAnswer | None = None
    if not quiet:
        click.echo(f"against {target}, {shared}; apart: in eps of the largest")
        click.echo(f"{'device':8}{'dtype':10}{'':>8}  {'verdict':24}{'outputs':>10}{'gradients':>12}")
    while True:
        with _within(timeout, target):
            answer = next(stream, None)
        if answer is None:
            break
        last, found = answer, answer.found[-1]
        if not quiet:
            figures = "" if found.same == "untested" else f"{found.outputs:>10.3g}{found.gradients:>12.3g}"
            click.echo(f"{found.device:8}{found.dtype:10}{'':>8}  {found.same:24}{figures}  {found.remark}".rstrip())
    assert last is not None  # noqa: S101 (a plan has dtypes)
    return last


def _gradient(target: str, subject: Testable, plan: Plan, timeout: float) -> GradientReading:
    from attnviz.studies.leak import by_gradient

    with _within(timeout, target):
        return by_gradient(subject, plan)


def gradient_line(slope: GradientReading) -> str:
    """What the derivatives say, in a line."""
    if slope.remark:
        return f"By gradient: {slope.remark}"
    if slope.at is None:
        return f"By gradient in {slope.dtype}: no output depends on a later token."
    row, col = slope.at
    return f"By gradient in {slope.dtype}: output {row} depends on token {col}, by up to {slope.hidden:.3g}."


def _write_image(path: Path, target: str, answer: LeakAnswer, plan: Plan) -> None:
    """The map of the finest dtype's reading, with what it says above. The one thing here that needs Qt."""
    reading = next((r for r in answer.readings if r.moved is not None), None)
    if reading is None:
        click.echo("attnviz: nothing could be read, so there is no picture", err=True)
        return
    if sys.platform == "linux":
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtGui import QGuiApplication

    from attnviz.figure.leak_map import write_leak_image

    application = QGuiApplication.instance() or QGuiApplication(["attnviz"])
    lines = [f"{target} · {reading.device} {reading.dtype} · {plan.length} tokens", summary(answer, plan, CLEAN)[0]]
    if outcome(answer, plan.scale) == "clean":
        lines[1] = "Clean: no output moves when a later token changes."
    write_leak_image(path, reading, lines)
    del application


def line_of(reading: Reading) -> str:
    """A reading in a line of a terminal."""
    figure = "" if reading.verdict == "untested" else f"{reading.figure:.3g}"
    scale = f"× {reading.scale:g}"
    where = [] if reading.pair is None else [f"output {reading.pair[0]} ← token {reading.pair[1]}"]
    if reading.mixes_batch:
        where.append("mixes the batch")
    if reading.nan_rows:
        where.append(
            f"{reading.nan_rows} rows NaN" + (": Q·Kᵀ overflows, no fault of the mask" if reading.overflows else "")
        )
    if reading.lost_rows > 0:
        where.append(f"{reading.lost_rows} rows lost most of their digits")
    if 0 < reading.positions < reading.length:
        where.append(f"{reading.positions} of {reading.length} tokens changed")
    if reading.remark:
        where.append(reading.remark)
    told = f"{reading.device:8}{reading.dtype:10}{scale:>8}  {reading.verdict:24}{figure:>10}  "
    return (told + " · ".join(where)).rstrip()


def status_of(answer: LeakAnswer, plan: Plan, *, strict: bool) -> int:
    """Exit status, by the readings at the plan's own scale."""
    came = outcome(answer, plan.scale)
    if came in ("untested", "unclear"):
        return UNTESTED
    return LEAKS if came in ("leaks", "nan") or (strict and came == "arithmetic") else CLEAN


def summary(answer: LeakAnswer, plan: Plan, status: int) -> list[str]:
    """What it comes to, in sentences."""
    said: list[str] = []
    if answer.pattern:
        said.append(f"It looks like {LOOKS[answer.pattern]}.")
    own = [reading for reading in answer.readings if reading.scale == plan.scale]
    for overflows, words in (False, "Some outputs are NaN in {names}."), (True, "Q·Kᵀ is too large for {names}."):
        names = [reading.dtype for reading in own if reading.nan_rows and reading.overflows is overflows]
        if names:
            said.append(words.format(names=", ".join(dict.fromkeys(names))))
    arithmetic = [reading.dtype for reading in own if reading.verdict == "leak in the arithmetic"]
    if arithmetic:
        said.append(
            f"The arithmetic of {', '.join(dict.fromkeys(arithmetic))} lets later tokens through; the code does not."
        )
    tests: tuple[tuple[str, Callable[[Reading], bool]], ...] = (
        ("leaks", lambda reading: reading.leaks), ("loses most of its digits", lambda reading: reading.lost_rows > 0),
        ("turns NaN", lambda reading: reading.nan_rows > 0),
    )  # fmt: skip
    for words, test in tests:
        first: dict[float, list[str]] = {}
        for dtype in dict.fromkeys(reading.dtype for reading in answer.readings):
            found = next((r for r in answer.readings if r.dtype == dtype and test(r)), None)
            if found is not None and found.scale > plan.scale:
                first.setdefault(found.scale, []).append(dtype)
        for scale, dtypes in sorted(first.items()):
            factor = (scale / plan.scale) ** 2
            said.append(f"With inputs × {scale:g}, scores × {factor:,.10g}, it {words} in {', '.join(dtypes)}.")
    said.append({
        CLEAN: f"Clean: no output moves when a later token changes{_partly(own)}.", LEAKS: "It fails.",
        UNTESTED: "It could not be tested.",
    }[status])  # fmt: skip
    if outcome(answer, plan.scale) == "unclear":
        said[-1] = "Cannot tell: it moves, and it does not run in float64, which would say whether it is the code."
    return said


def _partly(own: Sequence[Reading]) -> str:
    """How many tokens were changed, where those were not all."""
    least = min((reading for reading in own if reading.positions), key=lambda r: r.positions, default=None)
    if least is None or least.positions == least.length:
        return ""
    return f", of {least.positions} among {least.length} tokens that were changed"


def as_object(
    target: str, plan: Plan, answer: LeakAnswer, status: int, equal: EqualAnswer | None = None,
    slope: GradientReading | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The whole answer as JSON has it; what is no number there is null or "inf"."""
    return {
        "target": target, "tokens": plan.length, "scale": plan.scale, "seed": plan.seed, "status": status,
        "looks_like": answer.pattern, "blind_to_itself": answer.blind,
        "readings": [
            {
                "device": r.device, "dtype": r.dtype, "scale": r.scale, "verdict": r.verdict,
                "moved_eps": _plain(r.figure), "pair": r.pair, "positions": r.positions, "nan_rows": r.nan_rows,
                "lost_rows": r.lost_rows, "overflows": r.overflows, "mixes_batch": r.mixes_batch, "remark": r.remark,
                "seconds": round(r.seconds, 3),
            }
            for r in answer.readings
        ],
        "gradient": None if slope is None else {
            "device": slope.device, "dtype": slope.dtype, "largest": _plain(slope.hidden), "pair": slope.at,
            "remark": slope.remark,
        },
        "against": None if equal is None else {
            "weights": equal.shared,
            "found": [
                {
                    "device": e.device, "dtype": e.dtype, "verdict": e.same, "outputs_eps": _plain(e.outputs),
                    "gradients_eps": _plain(e.gradients), "token": e.token, "remark": e.remark,
                }
                for e in equal.found
            ],
        },
    }  # fmt: skip


def _plain(number: float) -> float | str:
    return number if math.isfinite(number) else "inf"


def _arguments(given: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE, where a value that is no Python literal is a word."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--arg {one!r}: give NAME=VALUE, such as --arg n_layers=2")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found


def _devices() -> tuple[str, ...]:
    from attnviz.attention.devices import TorchBackend

    return tuple(device.name for device in TorchBackend().devices())


@contextmanager
def _within(seconds: float, target: str) -> Iterator[None]:
    """End the process where the block takes longer: what hangs in a kernel hears no exception.

    What a module prints meanwhile goes to stderr: stdout is for what is found.
    """
    done = threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            sys.stdout.flush()
            click.echo(f"attnviz: {target} did not answer within {seconds:g} s: --timeout gives it longer", err=True)
            sys.stderr.flush()
            os._exit(UNTESTED)

    watcher = threading.Thread(target=watch, name="attnviz-timeout", daemon=True)
    watcher.start()
    ours = bool(click.get_current_context().obj) and hasattr(signal, "setitimer")
    if (
        ours
    ):  # and where a loop in C holds Python's lock, so that no thread of it can watch, the system ends the process
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_S)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if ours:
            signal.setitimer(signal.ITIMER_REAL, 0)
        done.set()
        watcher.join()
