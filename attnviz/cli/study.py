"""``attnviz study NAME``: a study without a window. Its progress goes to stderr, its answer to stdout.

A study's own options are the fields of its question; where that holds a spec, the options of a spec come with it, and
one that both have serves both.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import click
import msgspec

from attnviz.cli.progress import progress
from attnviz.questions import Answer, Question
from attnviz.spec import AttentionSpec, SpecError, View, make_spec

QUESTIONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "future-share": ("FutureShareQuestion", "How much of each row's weight looks ahead without a mask."),
        "dropout": ("DropoutQuestion", "Dropout drawn again and again: a row's sums, and the mean map."),
        "rounds": ("RoundsQuestion", "Generating token by token, against one pass over everything."),
        "exam": ("ExamQuestion", "Train with a mask on random tokens, then ask with the prefix alone."),
        "forms": ("FormsQuestion", "One attention in six forms: the same numbers? Which is quick here?"),
    }
)
"""The class of each study's question, in the file of `attnviz.questions` with its name, and what it is for."""

_HELP: Final[Mapping[str, str]] = MappingProxyType(
    {
        "draws": "How many draws.",
        "row": "The row that is looked at, from 0.",
        "head": "The head that is looked at, from 0.",
        "length": "How many tokens.",
        "d": "Dimensions of queries and keys.",
        "seed": "Seed of the draws.",
        "qk_scale": "Standard deviation of queries and keys.",
        "steps": "Steps of training.",
        "tokens": "How many tokens.",
        "d_model": "Dimensions of each token.",
        "num_heads": "How many heads share them.",
        "batch": "How many sequences.",
        "repeats": "How many passes of each form are timed.",
        "memory": "Large tensors are new pages each time, or the allocator keeps them.",
    }
)


_FLAGS: Final[Mapping[str, str]] = MappingProxyType({"num_heads": "--heads"})
"""Options that are not spelt as their field is: those of a spec have the same."""

_HEADINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "future-share": "{length} random tokens, {d} dimensions, {draws} draws, seed {seed}: % of each row's weight on "
                        "the future",
        "dropout": "{draws} draws of dropout in head {head}",
        "rounds": "the last row of each round beside the same row of one pass, in head {head}",
        "forms": "{batch} x {tokens} tokens of {d_model}, {num_heads} heads, {dtype} on {device}, memory {memory}",
    }
)  # fmt: skip
"""What a table is of, before its first line; fields of the question in braces."""


def _question_class(name: str) -> type[Question]:
    room = import_module(f"attnviz.questions.{name.replace('-', '_')}")
    kind: type[Question] = getattr(room, QUESTIONS[name][0])
    return kind


@dataclasses.dataclass(frozen=True)
class SpecOptions:
    """The options of a spec and what they ask for, which `attnviz.cli` has.

    ``add`` puts them on a function as click's own decorators do; ``read`` gives the spec that their values describe,
    None where none is given. Raises `SpecError`.
    """

    add: Callable[[Callable[..., Any]], Callable[..., Any]]
    read: Callable[[dict[str, Any]], tuple[AttentionSpec, View] | None]


def study_command(spec_options: SpecOptions) -> click.Command:
    """The command ``study``, one subcommand a study."""
    words = "Answer a question about attention without a window: a table, or with --json one JSON object."
    return _Studies(spec_options, "study", help=words, short_help="Answer a question about attention in a table.")


class _Studies(click.Group):
    """The studies by name; one's question is imported when its command is asked for."""

    def __init__(self, spec_options: SpecOptions, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        self._spec_options = spec_options

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*QUESTIONS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(cmd_name, self._spec_options) if cmd_name in QUESTIONS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in QUESTIONS:
            raise click.UsageError(f"there is no study {args[0]!r}: choose one of {', '.join(QUESTIONS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Studies"):
            formatter.write_dl([(name, words) for name, (_, words) in QUESTIONS.items()])


def _command(name: str, spec_options: SpecOptions) -> click.Command:
    kind = _question_class(name)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    params: list[click.Parameter] = []
    if "spec" in fields:

        def holder() -> None:
            """Only carries options."""

        spec_options.add(holder)
        params += reversed(holder.__click_params__)  # type: ignore[attr-defined]
    there = {param.name for param in params}
    own = [field for field_name, field in fields.items() if field_name not in there | {"spec"}]
    params = [*(_option(field) for field in own), *params]
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="One JSON object on standard output."))

    def run(as_json: bool, **options: Any) -> int:
        return _run(name, _asked(kind, fields, options, spec_options), as_json=as_json)

    return click.Command(name, params=params, callback=run, help=QUESTIONS[name][1])


def _option(field: Any) -> click.Option:
    """An option for a question's field, of its type; None stands for the field's own default."""
    flag = _FLAGS.get(field.name, f"--{field.name.replace('_', '-')}")
    settings: dict[str, Any] = {"default": None, "help": _HELP.get(field.name)}
    default = field.default
    if settings["help"] and default is not msgspec.NODEFAULT and default is not None:
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
        settings["help"] = f"{settings['help'].rstrip('.')} (default: {shown})."
    kind = _plain(field.type)
    if kind is bool:
        return click.Option([f"{flag}/--no-{flag.removeprefix('--')}", field.name], **settings)
    if get_origin(kind) is Literal:
        return click.Option([flag, field.name], type=click.Choice([str(value) for value in get_args(kind)]), **settings)
    if get_origin(kind) is tuple:
        return click.Option([flag, field.name], metavar="A,B,…", **settings)
    return click.Option([flag, field.name], type={int: int, float: float}.get(kind, str), **settings)


def _plain(kind: Any) -> Any:
    """The type without its None."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not type(None))
    return kind


def _asked(
    kind: type[Question], fields: Mapping[str, Any], options: dict[str, Any], spec_options: SpecOptions
) -> Question:
    """The question that the options describe. Raises `SpecError`."""
    given: dict[str, Any] = {}
    for name, field in fields.items():
        if name == "spec" or options.get(name) is None:
            continue
        value = options[name]
        if get_origin(_plain(field.type)) is tuple and isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        if name == "head" and value == "all":
            raise SpecError("head", "head is all, but a study looks at one: give its number, from 0")
        try:
            given[name] = msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError as error:
            raise SpecError(name, f"{name} is {options[name]!r}: {error}") from None
    if "spec" in fields:
        of_spec = spec_options.read({name: value for name, value in options.items() if name not in _own(fields)})
        given["spec"] = make_spec() if of_spec is None else of_spec[0]
    return kind(**given)


def _own(fields: Mapping[str, Any]) -> set[str]:
    """The question's fields that no spec or view has."""
    known = {*AttentionSpec.__struct_fields__, *View.__struct_fields__}
    return {name for name in fields if name not in known}


def _run(name: str, question: Question, *, as_json: bool) -> int:
    """Exit status after the last answer is printed."""
    from attnviz.studies import answers

    answer: Answer | None = None
    with progress(name) as say:
        for answer in answers(question):
            say(f"{answer.done:,} of {answer.total:,}")
    if answer is None:
        return 0
    if as_json:
        click.echo(as_json_text(question, answer))
    else:
        heading = _heading(question)
        click.echo("\n".join((*([heading] if heading else []), _table(answer))))
    return 0


def as_json_text(question: Question, answer: Answer) -> str:
    """Question and answer as one JSON object: arrays as lists, NaN as null, −∞ as "-inf"."""
    told = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
    whole = {"study": question.name, "question": msgspec.to_builtins(question), **told}
    return json.dumps(_plain_json(whole), ensure_ascii=False, allow_nan=False)


def _plain_json(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return _plain_json(msgspec.to_builtins(value))
    return value


def _heading(question: Question) -> str:
    """What the table below is of; "" for one that says so itself."""
    told = {field: getattr(question, field) for field in question.__struct_fields__}
    return _HEADINGS.get(question.name, "").format_map(told)


def _table(answer: Answer) -> str:
    """The answer's own lines in columns; of one that has none, its numbers by name."""
    told = getattr(answer, "table", None)
    lines: list[tuple[str, ...]] = told() if told is not None else _lines_of(answer)
    columns = max(map(len, lines), default=0)
    widths = [max((len(line[n]) for line in lines if n < len(line)), default=0) for n in range(columns)]
    joined = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)) for line in lines)
    return "\n".join(line.rstrip() for line in joined)


def _lines_of(answer: Answer) -> list[tuple[str, ...]]:
    """Numbers and words by name; a field of several parts as one line a part, a course by its last number."""
    lines: list[tuple[str, ...]] = []
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if isinstance(value, str | int | float):
            lines.append((field.name, _told(value)))
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            names = [part.name for part in dataclasses.fields(value[0]) if _told(getattr(value[0], part.name))]
            lines.append(tuple(names))
            lines += [tuple(_told(getattr(part, name)) for name in names) for part in value]
    return lines


def _told(value: Any) -> str:
    """A word or number, or the last of a course of numbers; nothing for what is more than that."""
    if getattr(value, "ndim", None) == 1 and len(value):
        value = value[-1].item()
    return f"{value:.4g}" if isinstance(value, float) else str(value) if isinstance(value, str | int) else ""
