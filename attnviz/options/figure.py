"""What the command line says of a figure: what it shows, its paper, what moves. A scene's file has the same words."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from attnviz.figure_questions import STUDY_OF, usual_question
from attnviz.figures import ANIMATES, CROPPABLE, PARTS, SHOWS, Figure
from attnviz.frames import Crop
from attnviz.opening import REMEMBERING
from attnviz.options.again import again, replaced
from attnviz.options.kinds import Spoken
from attnviz.options.spec import AskError, asked_for, changed, spec_options
from attnviz.questions import Question
from attnviz.spec import LINES, MAX_TOKENS, QUERY_KEY_STAGES, THEMES, SpecError, make_spec, parse_size

F = TypeVar("F", bound=Callable[..., Any])


class _Size(Spoken[tuple[int, int, float | None]]):
    name = "WxH"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int, float | None]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_size(str(value))
        except SpecError as error:
            return self.fail(str(error), param, ctx)


class _Heads(Spoken[tuple[int, ...]]):
    name = "N,M,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            return self.fail(f"{value!r} are no heads: give their numbers from 0, by commas, such as 0,3", param, ctx)


class _Names(click.ParamType[tuple[str, ...]]):
    name = "NAME,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        del param, ctx
        if isinstance(value, tuple):
            return value
        return tuple(part.strip() for part in str(value).split(",")) if value else ()


class _Pairs(click.ParamType[tuple[str, str]]):
    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            return self.fail(f"{value!r}: give NAME=VALUE, such as mask=none", param, ctx)
        return name.strip(), text


PAPER_OPTIONS: Final[dict[str, click.Option]] = {}
"""Options of a sheet by the field that they set; its size is ``--size``."""

FIGURE_OPTIONS: Final[dict[str, click.Option]] = {}
"""Options of a figure by the field that they set, and ``size``."""


def _option(options: dict[str, click.Option], field: str, *names: str, **settings: Any) -> None:
    options[field] = click.Option([*names, field], **{"default": None, **settings})


_option(
    PAPER_OPTIONS, "theme", "--theme", type=click.Choice(THEMES),
    help="Colours of the sheet (default: light). transparent: dark ink for light grounds; on dark slides take dark.",
)  # fmt: skip
_option(PAPER_OPTIONS, "title", "--title", help='Words above (default: what it shows); "" for none.')
_option(PAPER_OPTIONS, "caption", "--caption/--no-caption", help="The settings that matter.")
_option(PAPER_OPTIONS, "legend", "--legend/--no-legend", help="What masked, zero, dropped and NaN cells look like.")
_option(PAPER_OPTIONS, "colour_bar", "--colour-bar/--no-colour-bar", help="The colours and their numbers.")
_option(PAPER_OPTIONS, "labels", "--labels/--no-labels", help="Names of tokens and axes.")
_option(PAPER_OPTIONS, "numbers", "--numbers/--no-numbers", help="Numbers in cells that have room for them.")
_option(PAPER_OPTIONS, "bound", "--bound", type=float, help="The number at which the colours of maps end.")
_option(PAPER_OPTIONS, "decimals", "--decimals", type=int, help="Digits of numbers in cells (default: as many as fit).")
_option(PAPER_OPTIONS, "type_scale", "--type-scale", type=float, help="Factor on the size of all type (default: 1).")
_option(PAPER_OPTIONS, "real_text", "--real-text/--outlines", help="Text of an SVG as text, which needs a font.")

_option(
    FIGURE_OPTIONS, "size", "--size", type=_Size(),
    help="Pixels, or paper such as 8.5x6cm, 17x8cm@600dpi (default: 1920x1080).",
)  # fmt: skip
_option(FIGURE_OPTIONS, "shows", "--shows", type=click.Choice(SHOWS), help="What is on the sheet (default: heads).")
_option(FIGURE_OPTIONS, "heads", "--pick", type=_Heads(), help="Only these heads, from 0, by commas, such as 0,3.")
_option(FIGURE_OPTIONS, "row", "--row", type=int, help="The query of a row, a gallery or a study (default: the last).")
_option(
    FIGURE_OPTIONS, "beside", "--beside", type=_Pairs(), multiple=True, default=(),
    help="What differs in B, for --shows a-b, difference or row, such as mask=none.",
)  # fmt: skip
_option(
    FIGURE_OPTIONS, "question", "--ask", type=_Pairs(), multiple=True, default=(),
    help="A study's own option, such as draws=100.",
)  # fmt: skip
_option(
    FIGURE_OPTIONS, "parts", "--parts", type=_Names(),
    help='Only these parts of a study\'s figure, such as maps; "" for all.',
)  # fmt: skip
_option(FIGURE_OPTIONS, "animates", "--animate", type=click.Choice(ANIMATES[1:]), help="What moves, for a GIF.")
_option(FIGURE_OPTIONS, "frames", "--frames", type=int, help="Pictures of a GIF, at most (default: 12).")
_option(FIGURE_OPTIONS, "seconds", "--seconds", type=float, help="Time of each of them (default: 0.8).")


def figure_options(function: F) -> F:
    """Add every option of a figure, of its paper, and of a spec and view."""
    spec_options(function)
    params = [*FIGURE_OPTIONS.values(), *PAPER_OPTIONS.values()]
    function.__click_params__.extend(reversed(params))  # type: ignore[attr-defined]
    return function


def studies_words() -> str:
    """A line for each study: its parts, and what it can be asked with the usual answers, as click shows them."""
    kinds = {str(kind.__struct_config__.tag): kind for kind in Question.__subclasses__()}
    names: dict[str, str] = {str(shows): name for shows, name in STUDY_OF.items()}
    lines = ["\b", "--shows       --parts, and what --ask takes (with what is asked without it)"]
    for shows, parts in PARTS.items():
        fields = (f for f in msgspec.structs.fields(kinds[names[shows]]) if f.name not in _ELSEWHERE)
        asked = (f"{f.name}={','.join(f.default) if isinstance(f.default, tuple) else f.default}" for f in fields)
        lines.append(f"{shows:<13} {', '.join(parts)}")
        lines += textwrap.wrap(" ".join(asked), 64, initial_indent=" " * 14, subsequent_indent=" " * 14)
    return "\n".join(lines)


def figure_for(options: Mapping[str, Any], *, idle_fill: bool = False) -> Figure:
    """The figure that the options describe, beginning with that of ``--spec`` where it is a picture.

    ``idle_fill`` lets a fill stand that the mask leaves aside. Raises `SpecError`.
    """
    given = said(options)
    own = {name: given.pop(name) for name in (*FIGURE_OPTIONS, *PAPER_OPTIONS) if name in given}
    remembered = _remembered(given.get("spec_file"))
    base = remembered or Figure()
    start = None if remembered is None else (base.spec, base.view)
    spec, view = asked_for(given, idle_fill=idle_fill, start=start) or (make_spec(), base.view)
    fields: dict[str, Any] = {name: own[name] for name in _OWN if name in own}
    if "heads" in fields:
        view = msgspec.structs.replace(view, head=None)
    elif "head" in given:
        fields["heads"] = ()
    if "beside" in own:
        fields["beside"] = changed(spec, dict(own["beside"]))
    fields |= {"spec": spec, "view": view, "paper": replaced(base.paper, _sheet(own))}
    figure = again(base, fields, {*given, *own})
    if "question" in own:
        question = figure.question or usual_question(figure)
        figure = replaced(figure, {"question": _asked(question, dict(own["question"]))})
    return figure


def said(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: neither None nor, of one that can be given several times, ()."""
    many = [name for name, option in FIGURE_OPTIONS.items() if option.multiple]
    return {name: value for name, value in options.items() if value is not None and not (value == () and name in many)}


_OWN: Final = ("shows", "heads", "row", "parts", "animates", "frames", "seconds")
"""Options that are a figure's fields as they stand."""


def _sheet(own: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a paper that options have set."""
    sheet = {name: own[name] for name in PAPER_OPTIONS if name in own}
    if "size" in own:
        sheet |= dict(zip(("width", "height", "dpi"), own["size"], strict=True))
    return sheet


def _remembered(path: str | None) -> Figure | None:
    """The figure of a picture or of its numbers; None where ``path`` is another file, or none."""
    if path is None or Path(path).suffix.lower() not in REMEMBERING:
        return None
    from attnviz.remembered import recall

    return recall(Path(path))


_SAID_ELSEWHERE: Final = frozenset({"spec", "rows", "cols"})
"""Fields of a question that options of their own set."""


_ELSEWHERE: Final = _SAID_ELSEWHERE | {"a", "b", "head", "row", "stage", "device", "pixels"}
"""And those for which hardly anybody needs ``--ask``."""


def _asked(question: Question, pairs: Mapping[str, Any]) -> Question:
    """``question`` with its own fields as they are written on the command line. Raises `SpecError`."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(type(question))}
    given: dict[str, Any] = {}
    for name, text in pairs.items():
        field = name.replace("-", "_")
        if field not in kinds or field in _SAID_ELSEWHERE:
            known = ", ".join(one for one in kinds if one not in _SAID_ELSEWHERE)
            raise AskError("ask", f"{question.name} is not asked for {name}: give one of {known}")
        value: Any = text.split(",") if isinstance(text, str) and "tuple" in str(kinds[field]) else text
        try:
            given[field] = msgspec.convert(value, kinds[field], strict=False)
        except msgspec.ValidationError as error:
            raise AskError("ask", f"{name} is {text!r}: {error}") from None
    try:
        made: Question = replaced(question, given)
    except SpecError as error:
        raise AskError(error.field, str(error)) from None
    return made


def clipping_words(asked: Figure, drawn: Figure) -> tuple[str, ...]:
    """What to say where ``drawn``, `clipped` from ``asked``, ends before the rows or columns that were named."""
    spans = ((field, getattr(asked.view, field), getattr(drawn.view, field)) for field in LINES)
    return tuple(
        f"{field} is {span[0]}:{span[1]}, but the map ends at {cut[1]}: drawn as {cut[0]}:{cut[1]}"
        for field, span, cut in spans
        if span and cut and cut[1] < span[1] < MAX_TOKENS  # an open end is as large as any map
    )


def clipped(figure: Figure) -> Figure:
    """``figure`` with its rows and columns cut at the map's edges. Raises `SpecError` where they begin beyond them."""
    spec, view, pair = figure.spec, figure.view, figure.shows in ("a-b", "difference")
    of_tokens = view.stage in QUERY_KEY_STAGES or (figure.shows in CROPPABLE and figure.shows != "heads")
    if not of_tokens or (view.rows is None and view.cols is None):
        return figure
    from attnviz import inputs

    shape = inputs.count_tokens(spec.source)
    if pair and figure.beside is not None and inputs.count_tokens(figure.beside.source) != shape:
        return figure  # A and B cannot be compared, which is what is wrong: their study says so
    crop = Crop.of(view.rows, view.cols, shape)
    spans = {"rows": view.rows and crop.rows, "cols": view.cols and crop.cols}
    return msgspec.structs.replace(figure, view=msgspec.structs.replace(view, **spans))
