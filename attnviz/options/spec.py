"""What the command line says of a computation and a look at it: the options of a spec and view, a lesson's step."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click
import msgspec

from attnviz import opening
from attnviz.figures import PICTURES
from attnviz.matrices import parse_matrix
from attnviz.options.kinds import Count, Head, LessonWord, Number, Range, Scale
from attnviz.session_files import SavedSession
from attnviz.spec import (
    LESSONS,
    SHAPE_FORMS,
    STAGES,
    AnyShape,
    AnySource,
    AttentionSpec,
    Colours,
    DropoutGenerator,
    DropoutSite,
    DType,
    Implementation,
    Lesson,
    MaskMode,
    Norm,
    Pattern,
    PatternKind,
    Pooling,
    Projection,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    View,
    edited,
    make_spec,
    parse_shape,
)

F = TypeVar("F", bound=Callable[..., Any])

SPEC_OPTIONS: dict[str, click.Option] = {}
"""Every option of a spec or view by the field that it sets."""

SOURCE_OPTIONS = (
    "lesson", "scores", "values", "dims", "tokens", "weights", "text", "length", "random_qk", "qk_scale", "pattern",
    "qk",
)  # fmt: skip


def _option(field: str, *names: str, **settings: Any) -> None:
    SPEC_OPTIONS[field] = click.Option([*names, field], default=None, **settings)


def _choice(literal: Any) -> click.Choice[str]:
    return click.Choice(get_args(literal))


_option("num_heads", "--heads", type=int, help="Number of heads.")
_option("num_kv_heads", "--kv-heads", "--num-kv-heads", type=int, help="Key/value heads, each shared by several heads.")
_option("d_model", "--d-model", type=int, help="Dimensions of an input.")
_option("d_out", "--d-out", type=int, help="Output dimensions, the total over all heads.")
_option("implementation", "--implementation", type=_choice(Implementation), help="Form of the module.")
_option("out_proj", "--out-proj/--no-out-proj", help="Output projection (default: on for split).")
_option("qkv_bias", "--qkv-bias/--no-qkv-bias", help="Biases of query, key and value.")
_option("projection", "--projection", type=_choice(Projection), help="What makes queries, keys and values.")
_option("scale", "--scale", type=Scale(), help="Factor on the scores; auto is 1/sqrt(d_head).")
_option("scale_after_mask", "--scale-after-mask/--no-scale-after-mask", help="Mask before scaling, as the book.")
_option("soft_cap", "--soft-cap", type=Number("none"), help="Bend scaled scores s to c tanh(s/c), such as 50.")
_option("mask", "--mask", type=_choice(MaskMode), help="How cells are hidden.")
_option("mask_shape", "--mask-shape", metavar="SHAPE", help=f"Which cells are visible: {SHAPE_FORMS}.")
_option("fill", "--fill", type=Number("-inf"), help="What --mask neg-inf writes over hidden scores, and add adds.")
_option("top_k", "--top-k", type=Count("none"), help="Keep the K largest scores of each row.")
_option("dropout", "--dropout", type=float, help="Probability that a cell is dropped in training.")
_option("dropout_site", "--dropout-site", type=_choice(DropoutSite), help="Where dropout acts.")
_option("dropout_seed", "--dropout-seed", type=int, help="Seed of dropout (default: the seed).")
_option(
    "dropout_generator",
    "--dropout-generator",
    type=_choice(DropoutGenerator),
    help="What draws: portable is the same on every machine, torch is torch's own.",
)
_option("training", "--train/--eval", help="Training or inference.")
_option("batch", "--batch", type=int, help="How many equal items a batch holds.")
_option("seed", "--seed", type=int, help="Seed of weights and embeddings.")
_option("device", "--device", help="cpu (default), mps or cuda:N.")
_option("dtype", "--dtype", type=_choice(DType), help="Floating-point type (default: float32).")
_option("stage", "--stage", metavar="STAGE", help=f"The stage that is shown (default: weights): {', '.join(STAGES)}.")
_option("head", "--head", type=Head(), help="One head (from 0), or all (default).")
_option("rows", "--rows", type=Range(), help="Only these rows, from 0, the end left out; 64: and :64 are open.")
_option("cols", "--cols", type=Range(), help="Only these columns.")
_option("pooling", "--pooling", type=_choice(Pooling), help="What a pixel of several cells shows (default: max).")
_option("norm", "--norm", type=_choice(Norm), help="How values become colours (default: auto).")
_option("colours", "--colours", type=_choice(Colours), help="The colour table (default: viridis).")

_SOURCES = [
    click.Option(["--lesson"], type=LessonWord(), help="A lesson, or your own: a .toml file (default: journey)."),
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


def spec_options(function: F) -> F:
    """Add every option of a spec and view, ``--step`` and ``--spec FILE``."""
    remembered = "A spec, a session, or a picture or .npz that remembers one; other options override it."
    spec_file = click.Option(["--spec", "spec_file"], type=click.Path(), help=remembered)
    step = click.Option(["--step"], metavar="ID", help="A step of --lesson, such as 3.5.1.2.")
    params = [*_SOURCES, step, *SPEC_OPTIONS.values(), spec_file]
    if not hasattr(function, "__click_params__"):
        function.__click_params__ = []  # type: ignore[attr-defined]
    function.__click_params__.extend(reversed(params))  # type: ignore[attr-defined]
    return function


class FileError(SpecError):
    """What is wrong in a spec file: its sentence has the file's own names, and no options."""


class AskError(SpecError):
    """What is wrong in what a study is asked: its sentence has the question's own names, and no options."""


def read_spec_file(path: str) -> tuple[AttentionSpec, View]:
    """Spec and view of a spec's, session's or picture's file. Raises `SpecError` with a sentence that names it."""
    saved = _read(path)
    return saved.spec, saved.view


def _read(path: str) -> SavedSession:
    try:
        return opening.read(Path(path))
    except SpecError as error:
        raise FileError(error.field, f"{path}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileError("file", _unread(path, error)) from None


def _unread(path: str, error: OSError | ValueError) -> str:
    """Why a spec file cannot be read, and what would do."""
    from attnviz import files

    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        return str(files.read_problem(Path(path), error)) if isinstance(error, OSError) else f"cannot read {path!a}"
    kinds = {".attnviz": "a session that was saved", **dict.fromkeys(PICTURES, "a picture that attnviz wrote")}
    kind = kinds.get(Path(path).suffix.lower(), "a spec that was saved")
    return f"cannot read {path}: there is no such file; give the path of {kind}"


def asked_session(options: dict[str, Any]) -> SavedSession | None:
    """What the options describe and what else their file remembers of a window. Raises `SpecError`."""
    asked = asked_for(options)
    if asked is None:
        return None
    spec, view = asked
    path = options["spec_file"]
    if path is None:
        return SavedSession(spec=spec, view=view)
    return msgspec.structs.replace(_read(path), spec=spec, view=view)


def asked_for(
    options: dict[str, Any], *, idle_fill: bool = False, start: tuple[AttentionSpec, View] | None = None
) -> tuple[AttentionSpec, View] | None:  # fmt: skip
    """Spec and view that the options describe; None where none is given. Raises `SpecError`.

    ``idle_fill`` lets a fill stand that the mask leaves aside, as a window does. ``start`` is what the file of
    ``spec_file`` holds, where somebody has read it.
    """
    given = {name: value for name, value in options.items() if value is not None}
    path = given.pop("spec_file", None)
    if not given and path is None:
        return None
    step = given.pop("step", None)
    spec: AttentionSpec | None = None
    view = View()
    if step is not None or is_script(given.get("lesson")):
        if path is not None:
            raise SpecError("step", "a lesson's step and --spec are two computations: give one")
        _check_one_source(given)
        spec, view = _scene(given.pop("lesson", None), step)
    elif path is not None:
        spec, view = start or read_spec_file(path)
    view_fields = {name: given.pop(name) for name in View.__struct_fields__ if name in given}
    view_fields = {
        name: None if value == "all" and name in ("head", "rows", "cols") else value
        for name, value in view_fields.items()
    }
    source = _source({name: given.pop(name) for name in SOURCE_OPTIONS if name in given}, spec)
    given = _as_fields(given)
    if spec is None:
        spec = make_spec(source, **given)
    else:  # in two steps, for what follows the number of heads in the source's own spec
        spec = spec if source is None else edited(spec, source=source)
        spec = edited(spec, **given) if given else spec
    if "fill" in given and not spec.fills and not idle_fill:
        raise SpecError("fill", f"fill belongs to --mask neg-inf or add, but the mask is {spec.mask}: leave --fill out")
    view = msgspec.structs.replace(view, **view_fields)
    view.check(spec)
    return spec, view


def changed(spec: AttentionSpec, pairs: Mapping[str, Any]) -> AttentionSpec:
    """``spec`` with options of a spec or source, by name, as on the command line or converted: {"mask": "none"}.

    Raises `SpecError`.
    """
    options = {**SPEC_OPTIONS, **{str(option.name): option for option in _SOURCES}}
    given = {}
    for name, text in pairs.items():
        field = next((f for f, o in options.items() if name in (f, *(flag.lstrip("-") for flag in o.opts))), None)
        if field is None or field in View.__struct_fields__:
            known = ", ".join(o.opts[0].lstrip("-") for f, o in options.items() if f not in View.__struct_fields__)
            raise SpecError(name, f"{name} is no option of a spec: give one of {known}")
        option = options[field]
        kind = click.BOOL if option.is_flag else option.type
        try:
            given[field] = kind.convert(text, option, None) if isinstance(text, str) else text
        except click.BadParameter as error:
            raise SpecError(field, f"{name} is {text!r}: {error.message}") from None
    source = _source({field: given.pop(field) for field in SOURCE_OPTIONS if field in given}, spec)
    return edited(spec, **({} if source is None else {"source": source}), **_as_fields(given))


def _as_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of options as a spec's fields have them."""
    absent = {("soft_cap", "none"), ("top_k", "none")}
    fields: dict[str, Any] = {name: None if (name, value) in absent else value for name, value in given.items()}
    if "mask_shape" in fields:
        fields["mask_shape"] = _shape(fields["mask_shape"])
    if "fill" in fields:
        fields["fill"] = float(fields["fill"])
    return fields


def is_script(lesson: str | None) -> bool:
    """Whether ``--lesson`` names a file, which is a script of steps, rather than a source."""
    return lesson is not None and lesson not in LESSONS


def _scene(lesson: str | None, step: str | None) -> tuple[AttentionSpec, View]:
    """Spec and view of a lesson's step, the first where none is named. Raises `SpecError`."""
    from attnviz import lesson_files

    if lesson is None:
        raise SpecError("step", "--step belongs to --lesson: give that too")
    if lesson not in lesson_files.names() and not is_script(lesson):
        raise SpecError("step", f"--step: {lesson} has no steps of its own; give {' or '.join(lesson_files.names())}")
    try:
        script = lesson_files.built_in(lesson) if lesson in lesson_files.names() else lesson_files.read(Path(lesson))
    except lesson_files.LessonProblem as problem:
        raise FileError("lesson", problem.sentence) from problem
    if step is not None and all(step != known.id for known in script.steps):
        near = f"step is {step[:40]!r}, which this lesson lacks: give {script.nearest(step[:40])}"
        shown = f"attnviz --lesson {lesson} --step {script.steps[0].id}"
        raise SpecError("step", f"{near}; {shown} opens it, and a click on 1 / {len(script.steps)} there lists all")
    return (script.steps[0] if step is None else script.step(step)).scene()


def _shape(text: str) -> AnyShape:
    """The mask shape of an option: one of the forms, else a file's."""
    shape = parse_shape(text)
    if shape is not None:
        return shape
    if not Path(text).suffix and not os.path.lexists(text):
        raise SpecError("mask_shape", f"mask_shape is {text!r}: give {SHAPE_FORMS}")
    from attnviz import tensor_files

    return tensor_files.describe_mask(text)


def _check_one_source(given: Mapping[str, Any]) -> list[str]:
    """The options that name a source, of which there may be one. Raises `SpecError` for two."""
    kinds = [name for name in ("lesson", "scores", "weights", "text", "length", "qk") if name in given]
    if len(kinds) > 1:
        raise SpecError("source", f"--{kinds[0]} and --{kinds[1]} are two sources: give one")
    return kinds


def _names(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(given.split(",")) if isinstance(given, str) else given


def _source(given: dict[str, Any], spec: AttentionSpec | None) -> AnySource | None:
    kinds = _check_one_source(given)
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
    names = {name: _names(given[name]) for name in ("dims", "tokens") if name in given}
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


_OTHER_OPTIONS = ("step", "masks", "row")
"""Options that are no fields of a spec or view; a complaint that begins with one as its field means the option."""


OTHER_STATE: Final = "--beside mask=none"
DROPPING: Final = "--train --dropout 0.5"
"""Examples in sentences, which decks write otherwise."""


def with_options(error: SpecError) -> str:
    """The sentence of ``error`` with the options that were typed in place of the names of fields."""
    sentence = str(error)
    if isinstance(error, FileError | AskError):
        return sentence
    first, gap, rest = sentence.partition(" ")
    if first in SOURCE_OPTIONS or first in SPEC_OPTIONS or first == error.field in _OTHER_OPTIONS:
        sentence = flag_of(first) + gap + rest
    fields = "|".join(name for name in SPEC_OPTIONS if "_" in name)  # a word without _ may mean itself
    sentence = re.sub(rf"(?<![^\s(])({fields})(?![^\s,:;)])", lambda found: flag_of(found[1]), sentence)
    if re.search(r", but this source (has none|fixes it)", sentence):
        sentence += f"; leave {flag_of(error.field)} out"
    if error.field == "beside" and sentence.endswith("the other one"):
        sentence += f", such as {OTHER_STATE}"
    if error.field == "stage":
        sentence = sentence.replace("give training and dropout", f"give {DROPPING}")
    return sentence


def flag_of(field: str) -> str:
    """The option that sets a field of a spec, a view or a source."""
    option = SPEC_OPTIONS.get(field)
    return option.opts[0] if option is not None else f"--{field.replace('_', '-')}"
