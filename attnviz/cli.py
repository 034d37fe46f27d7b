"""The command line: arguments → a window or headless work. Heavy imports stand in the branch that needs them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
import msgspec

from attnviz import __version__
from attnviz.matrices import parse_matrix
from attnviz.spec import (
    MAX_TOKENS,
    QUERY_KEY_STAGES,
    SHAPE_FORMS,
    AnyShape,
    AnySource,
    AttentionSpec,
    Colours,
    DropoutGenerator,
    DropoutSite,
    DType,
    Implementation,
    Lesson,
    MaskFile,
    MaskMode,
    Norm,
    Pattern,
    PatternKind,
    Pooling,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    View,
    edited,
    from_json,
    make_spec,
    parse_shape,
)

if TYPE_CHECKING:
    from attnviz.session import Picture

F = TypeVar("F", bound=Callable[..., Any])

SPEC_OPTIONS: dict[str, click.Option] = {}
"""Every option of a spec or view by the field that it sets."""

_ARRAYS = (".npz", ".npy", ".safetensors")

SOURCE_OPTIONS = (
    "lesson", "scores", "values", "dims", "tokens", "weights", "text", "length", "random_qk", "qk_scale", "pattern",
    "qk",
)  # fmt: skip


def _option(field: str, *names: str, **settings: Any) -> None:
    SPEC_OPTIONS[field] = click.Option([*names, field], default=None, **settings)


def _choice(literal: Any) -> click.Choice[str]:
    return click.Choice(get_args(literal))


class _Scale(click.ParamType[Any]):
    name = "auto|none|number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("auto", "none"):
            return value
        try:
            return float(value)
        except (TypeError, ValueError):
            return self.fail(f"{value!r} is neither auto, none nor a number", param, ctx)


class _Head(click.ParamType[Any]):
    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "all" or isinstance(value, int):
            return value
        try:
            return int(value)
        except ValueError:
            return self.fail(f"{value!r} is neither a head's number (from 0) nor all", param, ctx)


class _Number(click.ParamType[Any]):
    """A number, or the one word that stands beside it."""

    def __init__(self, word: str) -> None:
        self.name = f"{word}|number"
        self._word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == self._word:
            return value
        try:
            return float(value)
        except (TypeError, ValueError):
            return self.fail(f"{value!r} is neither {self._word} nor a number", param, ctx)


class _Range(click.ParamType[Any]):
    name = "A:B|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "all" or isinstance(value, tuple):
            return value
        first, colon, end = str(value).partition(":")
        with contextlib.suppress(ValueError):
            if colon:
                return int(first or 0), int(end or MAX_TOKENS)
        return self.fail(f"{value!r} is no range: give first:end such as 0:64, 64: or :64, or all", param, ctx)


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


_option("num_heads", "--heads", type=int, help="Number of heads.")
_option("num_kv_heads", "--kv-heads", "--num-kv-heads", type=int, help="Key/value heads, each shared by several heads.")
_option("d_model", "--d-model", type=int, help="Dimensions of an input.")
_option("d_out", "--d-out", type=int, help="Output dimensions, the total over all heads.")
_option("implementation", "--implementation", type=_choice(Implementation), help="Form of the module.")
_option("out_proj", "--out-proj/--no-out-proj", help="Output projection (default: on for split).")
_option("qkv_bias", "--qkv-bias/--no-qkv-bias", help="Biases of query, key and value.")
_option("scale", "--scale", type=_Scale(), help="Factor on the scores; auto is 1/sqrt(d_head).")
_option("scale_after_mask", "--scale-after-mask/--no-scale-after-mask", help="Mask before scaling, as the book.")
_option("soft_cap", "--soft-cap", type=_Number("none"), help="Bend scaled scores s to c tanh(s/c), such as 50.")
_option("mask", "--mask", type=_choice(MaskMode), help="How cells are hidden.")
_option("mask_shape", "--mask-shape", metavar="SHAPE", help=f"Which cells are visible: {SHAPE_FORMS}.")
_option("fill", "--fill", type=_Number("-inf"), help="What --mask neg-inf writes over hidden scores.")
_option("dropout", "--dropout", type=float, help="Probability that a cell is dropped in training.")
_option("dropout_site", "--dropout-site", type=_choice(DropoutSite), help="Where dropout acts.")
_option("dropout_seed", "--dropout-seed", type=int, help="Seed of dropout (default: the seed).")
_option("dropout_generator", "--dropout-generator", type=_choice(DropoutGenerator), help="Who draws.")
_option("training", "--train/--eval", help="Training or inference.")
_option("batch", "--batch", type=int, help="How many equal items a batch holds.")
_option("seed", "--seed", type=int, help="Seed of weights and embeddings.")
_option("device", "--device", help="cpu, mps or cuda:N.")
_option("dtype", "--dtype", type=_choice(DType), help="Floating-point type.")
_option("stage", "--stage", help="The stage that is shown.")
_option("head", "--head", type=_Head(), help="One head (from 0), or all.")
_option("rows", "--rows", type=_Range(), help="Only these rows, from 0, the end left out; 64: and :64 are open.")
_option("cols", "--cols", type=_Range(), help="Only these columns.")
_option("pooling", "--pooling", type=_choice(Pooling), help="What a pixel of several cells shows.")
_option("norm", "--norm", type=_choice(Norm), help="How values become colours.")
_option("colours", "--colours", type=_choice(Colours), help="The colour table.")

_SOURCES = [
    click.Option(["--lesson"], type=click.Choice(["journey", "cat-eats-fish"]), help="A worked lesson."),
    click.Option(["--scores"], help='Scores worked by hand, such as "0.5 0.5 1; 0 2 1; 0.5 0.5 0".'),
    click.Option(["--values"], help="Values for --scores, a row per key."),
    click.Option(["--dims"], help="Names of the value dimensions, by commas."),
    click.Option(["--tokens"], help="Names of the tokens, by commas, for --scores or --weights."),
    click.Option(["--weights"], help='Weights worked by hand, such as "0.4 0.3 0.2 0.1" or ones:6.'),
    click.Option(["--text"], help="Any text."),
    click.Option(["--length"], type=int, help="This many random embeddings."),
    click.Option(["--random-qk"], is_flag=True, default=None, help="Draw queries and keys directly; with --length."),
    click.Option(["--qk-scale"], type=float, help="Standard deviation of --random-qk."),
    click.Option(["--pattern"], type=_choice(PatternKind), help="Made-up heads of this kind; with --length."),
    click.Option(["--qk"], type=click.Path(), help="Queries and keys of a .npz, .npy or .safetensors file."),
]  # fmt: skip


class _Bytes(click.ParamType[int]):
    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(k|M|G|T)?B?\s*", str(value), re.IGNORECASE)
        size = float(found[1]) * 1000 ** " kMGT".lower().index((found[2] or " ").lower()) if found else 0
        if not 1 <= size < 1e18:
            return self.fail(f"{value!r} is no amount of memory: give a number and a unit, such as 2GB", param, ctx)
        return int(size)


def spec_options(function: F) -> F:
    """Add every option of a spec and view, and ``--spec FILE``."""
    spec_file = click.Option(["--spec", "spec_file"], type=click.Path(), help="A spec file; other options override it.")
    params = [*_SOURCES, *SPEC_OPTIONS.values(), spec_file]
    if not hasattr(function, "__click_params__"):
        function.__click_params__ = []  # type: ignore[attr-defined]
    function.__click_params__.extend(reversed(params))  # type: ignore[attr-defined]
    return function


def read_spec_file(path: str) -> tuple[AttentionSpec, View]:
    """Spec and view of a file. Raises `SpecError` with a sentence that names the file."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SpecError("file", f"cannot read {path}: {error.strerror or error}") from None
    try:
        return from_json(text)
    except SpecError as error:
        raise SpecError(error.field, f"{path}: {error}") from None


def asked_for(options: dict[str, Any]) -> tuple[AttentionSpec, View] | None:
    """Spec and view that the options describe; None where none is given. Raises `SpecError`."""
    given = {name: value for name, value in options.items() if value is not None}
    path = given.pop("spec_file", None)
    if not given and path is None:
        return None
    spec, view = read_spec_file(path) if path is not None else (None, View())
    view_fields = {name: given.pop(name) for name in View.__struct_fields__ if name in given}
    view_fields = {
        name: None if value == "all" and name in ("head", "rows", "cols") else value
        for name, value in view_fields.items()
    }
    source = _source({name: given.pop(name) for name in SOURCE_OPTIONS if name in given}, spec)
    if "mask_shape" in given:
        given["mask_shape"] = _shape(given["mask_shape"])
    given = {name: None if (name, value) == ("soft_cap", "none") else value for name, value in given.items()}
    if "fill" in given:
        given["fill"] = float(given["fill"])
    if spec is None:
        spec = make_spec(source, **given)
    else:  # in two steps, for what follows the number of heads in the source's own spec
        spec = spec if source is None else edited(spec, source=source)
        spec = edited(spec, **given) if given else spec
    if "fill" in given and spec.mask != "neg-inf":
        raise SpecError("fill", f"fill belongs to --mask neg-inf, but the mask is {spec.mask}: leave --fill out")
    view = msgspec.structs.replace(view, **view_fields)
    view.check(spec)
    return spec, view


def _shape(text: str) -> AnyShape:
    """The mask shape of an option: one of the forms, else a file's."""
    shape = parse_shape(text)
    if shape is not None:
        return shape
    if not Path(text).suffix and not os.path.lexists(text):
        raise SpecError("mask_shape", f"mask_shape is {text!r}: give {SHAPE_FORMS}")
    from attnviz import tensor_files

    return tensor_files.describe_mask(text)


def _source(given: dict[str, Any], spec: AttentionSpec | None) -> AnySource | None:
    kinds = [name for name in ("lesson", "scores", "weights", "text", "length", "qk") if name in given]
    if len(kinds) > 1:
        raise SpecError("source", f"--{kinds[0]} and --{kinds[1]} are two sources: give one")
    kind = kinds[0] if kinds else None
    belongs = {"values": "scores", "dims": "scores", "random_qk": "length", "qk_scale": "length", "pattern": "length"}
    for name in given:
        if name in belongs and belongs[name] != kind:
            raise SpecError(name, f"--{name.replace('_', '-')} belongs to --{belongs[name]}: give that too")
    if "tokens" in given and kind not in ("scores", "weights"):
        raise SpecError("tokens", "--tokens belongs to --scores or --weights: give one of them too")
    if "qk_scale" in given and not given.get("random_qk"):
        raise SpecError("qk_scale", "--qk-scale belongs to --random-qk: give that too")
    if "pattern" in given and given.get("random_qk"):
        raise SpecError("pattern", "--pattern and --random-qk are two sources: give one")
    names = {name: tuple(given[name].split(",")) for name in ("dims", "tokens") if name in given}
    match kind:
        case "lesson":
            return Lesson(name=given["lesson"])
        case "scores":
            values = parse_matrix(given["values"], "values") if "values" in given else None
            return TypedScores(scores=parse_matrix(given["scores"], "scores"), values=values, **names)
        case "weights":
            return TypedWeights(weights=parse_matrix(given["weights"], "weights"), **names)
        case "text":
            return Text(text=given["text"])
        case "qk":
            from attnviz import tensor_files

            return tensor_files.describe_qk(given["qk"])
        case "length" if "pattern" in given:
            return Pattern(length=given["length"], pattern=given["pattern"])
        case "length" if given.get("random_qk"):
            return RandomQK(length=given["length"], qk_scale=given.get("qk_scale", 1.0))
        case "length":
            return RandomEmbeddings(length=given["length"])
    return None if spec is not None else Lesson()


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
        options["spec_file"] = file
    asked = asked_for(options)
    from attnviz import screens

    signal.signal(signal.SIGINT, _leave)  # until the window stands and can save its state
    ours = screens.choose_platform(os.environ)
    problem = None if ours else screens.forced_platform_problem(os.environ)
    if problem is not None:
        return _fail(problem, 1)
    from attnviz import app

    return app.run_window(asked, platform_was_ours=ours)


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
    spec, view = asked_for(options) or (make_spec(), View())
    view = _clipped(spec, view)
    if options["mask_shape"] is not None:
        _check_mask_file(spec)
    if image is not None:
        from attnviz.figure.export import check_size

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
        _say_remarks(picture)
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


def _say_remarks(picture: Picture) -> None:
    for remark in picture.finished.remarks if picture.finished else ():
        click.echo(remark)


@commands.command(help="List the devices that torch reports.")
def devices() -> int:
    """Exit status; a line a device on stdout: name, title, memory."""
    from attnviz.engine import Engine
    from attnviz.frames import said_bytes

    for device in Engine().devices():
        memory = f"{said_bytes(device.free_bytes)} of {said_bytes(device.total_bytes)} free"
        click.echo(f"{device.name}\t{device.title}\t{memory}")
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong arguments, 130 Ctrl+C."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Exit status of a command line. One line on stderr says what went wrong."""
    from attnviz.screens import qt_problem

    try:
        done = commands.main(arguments, prog_name="attnviz", standalone_mode=False)
        return done if isinstance(done, int) else 0
    except SpecError as error:
        return _fail(str(error), 2)
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
    os._exit(130)


def _fail(sentence: str, status: int) -> int:
    click.echo(f"attnviz: {' '.join(sentence.split())}", err=True)
    return status
