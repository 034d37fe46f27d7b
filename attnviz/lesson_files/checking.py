"""TOML's tables → a lesson's steps, everything checked; what is wrong is said with the keys at which it stands."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, cast, get_args

from attnviz.lesson_files.script import (
    AGAINST_BEFORE,
    HALF_A_DIGIT,
    KINDS_OF_CELLS,
    MEASURES,
    OF_WEIGHTS,
    PARTS,
    SHARES,
    STUDY,
    Choice,
    Kind,
    LessonQuestion,
    LessonScript,
    LessonStep,
    Look,
    Measure,
    Page,
    Place,
    Words,
)
from attnviz.lesson_files.sizes import complaint, map_size
from attnviz.lesson_files.study_numbers import EXAMPLES, IN_PERCENT, STUDIES
from attnviz.spec import (
    CHOICES,
    LESSONS,
    AnySource,
    AttentionSpec,
    Lesson,
    MaskFile,
    QKFile,
    SpecError,
    View,
    make_spec,
    parse_shape,
    stages_of,
)
from attnviz.spec.checks import convert
from attnviz.toml_files import Keys

MAX_STEPS: Final = 200
MAX_TEXT: Final = 2_000
"""Characters of one text of a step."""

MAX_WHY: Final = 480
"""Characters of a complaint: the longest that names all choices has fewer."""

MAX_NUMBER: Final = 1 << 63
"""No whole number of a lesson is as large: beyond it no reader of numbers is at home."""

_STEP: Final = ("id", "spec", "before", "view", "select", "page", "part", "look", "title", "say", "question")
_QUESTION: Final = ("kind", "ask", "measure", "as", "tolerance", "choices", "right", "wrong", "other_row", "show")


class WrongLesson(Exception):  # noqa: N818 (a problem without its line)
    """What is wrong at ``keys`` of the file."""

    def __init__(self, keys: Keys, why: str) -> None:
        self.keys, self.why = keys, _clipped(why)
        super().__init__(self.why)


def checked_script(top: dict[str, Any]) -> LessonScript:
    """The lesson in a file's tables. Raises `WrongLesson` at the first thing that is wrong."""
    _check_numbers(top, ())
    _check_keys(top, ("title", "source", "base", "view", "step"), (), "this lesson")
    if "source" not in top:
        raise WrongLesson((), "source is missing: give a lesson's name or a source's table")
    base = _table(top.get("base", {}), ("base",))
    source = _source(top["source"], ("source",))
    view = _table(top.get("view", {}), ("view",))
    _view({}, view, _spec(source, base, {}, ("base",)), ("view",), "this lesson")
    listed = top.get("step", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(step, dict) for step in listed):
        raise WrongLesson(("step",), "there are no steps: give each one as [[step]]")
    if len(listed) > MAX_STEPS:
        raise WrongLesson(("step", MAX_STEPS), f"there are {len(listed)} steps: give at most {MAX_STEPS}")
    steps: list[LessonStep] = []
    for index, table in enumerate(listed):
        step = _step(table, ("step", index), source, base, view)
        if any(step.id == other.id for other in steps):
            raise WrongLesson(("step", index, "id"), f"id {step.id!r} is there twice: give each step an id of its own")
        steps.append(step)
    return LessonScript(_words(top, "title", (), "this lesson"), tuple(steps))


def _step(
    table: dict[str, Any], keys: Keys, source: AnySource, base: dict[str, Any], base_view: dict[str, Any]
) -> LessonStep:
    name = table.get("id")
    if not isinstance(name, str) or not re.fullmatch(r"\S{1,40}", name):
        raise WrongLesson((*keys, "id"), 'this step needs an id: a short word in quotes, such as "3.5.1" or "mask"')
    who = f"step {name!r}"
    _check_keys(table, _STEP, keys, who)
    spec = _spec(source, base, _table(table.get("spec", {}), (*keys, "spec")), (*keys, "spec"))
    before = None
    if "before" in table:
        before = _spec(source, base, _table(table["before"], (*keys, "before")), (*keys, "before"))
    view = _view(base_view, _table(table.get("view", {}), (*keys, "view")), spec, (*keys, "view"), who)
    select = _select(table["select"], (*keys, "select"), spec) if "select" in table else None
    page = cast(Page, _one_of(table, "page", "row", get_args(Page), keys, who))
    look = cast(Look, _one_of(table, "look", "map", get_args(Look), keys, who))
    if look == "row" and page != "row":
        raise WrongLesson((*keys, "look"), f"{who}: the row is not in sight beside the page {page}: look at the page")
    if "part" in table and page not in PARTS:
        raise WrongLesson((*keys, "part"), f"{who}: the page {page} has no parts: leave part out")
    part = _one_of(table, "part", "", PARTS[page], keys, who) if "part" in table else ""
    question = None
    if "question" in table:
        inside = (*keys, "question")
        question = _question(_table(table["question"], inside), inside, who, spec, view, select, page)
        measure = question.measure.name
        if before is None and measure in AGAINST_BEFORE:
            why = f"{who}: {measure} compares with the state before: give it as before = {{ ... }}"
            raise WrongLesson((*inside, "measure"), why)
    return LessonStep(
        name, _words(table, "title", keys, who), _words(table, "say", keys, who), spec, view, before, select,
        page, look, question, part,
    )  # fmt: skip


def _view(base: dict[str, Any], changes: dict[str, Any], spec: AttentionSpec, keys: Keys, who: str) -> View:
    try:
        view: View = convert(View, {**base, **changes}, CHOICES)
        view.check(spec)
    except SpecError as error:
        raise WrongLesson((*keys, error.field), f"{who}: {error}") from None
    return view


def _question(
    table: dict[str, Any], keys: Keys, who: str, spec: AttentionSpec, view: View, select: Place | None, page: str
) -> LessonQuestion:
    _check_keys(table, _QUESTION, keys, who)
    kind = cast(Kind, _one_of(table, "kind", None, get_args(Kind), keys, who))
    measure = _measure(table.get("measure"), (*keys, "measure"), spec, view, select, page)
    gives = "number" if measure.path else MEASURES[measure.name][0]
    if (kind == "cell") != (gives == "cell"):
        raise WrongLesson(
            (*keys, "measure"), f"{who}: {measure.name} finds a {gives}, but the question is for a {kind}"
        )
    percent = _one_of(table, "as", "number", ("number", "percent"), keys, who) == "percent"
    tolerance = _number(table.get("tolerance", HALF_A_DIGIT), (*keys, "tolerance"))
    if tolerance < 0:
        raise WrongLesson((*keys, "tolerance"), f"{who}: tolerance is {tolerance:g}: give 0 or more")
    listed = table.get("choices", [])
    if not isinstance(listed, list) or (kind == "choice") != (2 <= len(listed) <= 6):
        raise WrongLesson(
            (*keys, "choices"), f"{who}: give two to six choices, for a question of the kind choice alone"
        )
    choices = []
    for index, item in enumerate(listed):
        inside = (*keys, "choices", index)
        one = _table(item, inside)
        _check_keys(one, ("en", "zh", "value"), inside, who)
        value = _number(one.get("value"), (*inside, "value"))
        choices.append(
            Choice(_words({"choice": {k: one[k] for k in one if k != "value"}}, "choice", inside, who), value)
        )
    ask, right, wrong, show = (_words(table, key, keys, who) for key in ("ask", "right", "wrong", "show"))
    other_row = _words(table, "other_row", keys, who) if "other_row" in table else None
    if other_row is not None and (kind != "cell" or "row" not in MEASURES[measure.name][1]):
        raise WrongLesson((*keys, "other_row"), f"{who}: {measure.name} has no row to miss: leave other_row out")
    share = percent or (measure.name in SHARES and (measure.stage or view.stage) in OF_WEIGHTS)
    share = share or measure.name.removeprefix("study:") in IN_PERCENT
    return LessonQuestion(
        kind, ask, measure, right, wrong, show, percent, tolerance, tuple(choices), share, other_row
    )  # fmt: skip


def _measure(given: Any, keys: Keys, spec: AttentionSpec, view: View, select: Place | None, page: str) -> Measure:
    table = {"name": given} if isinstance(given, str) else dict(_table(given, keys))
    name = table.pop("name", None)
    study = STUDY.fullmatch(name) if isinstance(name, str) else None
    if study:
        if table:
            raise WrongLesson((*keys, next(iter(table))), f"measure {_short(name)} takes nothing beside its name")
        return _study_measure(study.group(1), study.group(2)[1:], keys, page)
    if not isinstance(name, str) or name not in MEASURES:
        raise WrongLesson(keys, f"measure is {_short(name)}: give {', '.join(MEASURES)}, or study:NAME.FIELD")
    takes = MEASURES[name][1]
    row, col = select or (0, 0)
    fields: dict[str, Any] = {"row": row, "col": col, "head": view.head or 0}
    for key, value in table.items():
        if key not in takes:
            raise WrongLesson((*keys, key), f"measure {name} takes {', '.join(sorted(takes)) or 'nothing'}, not {key}")
        if key == "stage" and value not in stages_of(spec):
            raise WrongLesson((*keys, key), f"stage is {_short(value)}: this step has {', '.join(stages_of(spec))}")
        if key == "of" and value not in KINDS_OF_CELLS:
            raise WrongLesson((*keys, key), f"of is {_short(value)}: give {', '.join(KINDS_OF_CELLS)}")
        fields[key] = value if key in ("stage", "of") else _index(value, (*keys, key))
    measure = Measure(name, **fields)
    wrong = complaint(measure, takes, spec, view)
    if wrong is not None:
        field, why = wrong
        raise WrongLesson((*keys, field) if field in given else keys, why)
    return measure


def _study_measure(name: str, path: str, keys: Keys, page: str) -> Measure:
    """What a study's answer says; it must have such a number, and stand on the step's page."""
    if name not in STUDIES:
        raise WrongLesson(keys, f"measure asks the study {_short(name)}: give {', '.join(sorted(STUDIES))}")
    own, numbers = STUDIES[name]
    if not any(re.fullmatch(number, path) for number in numbers):
        words = f"{_short(path)} is no number of the study {name}"
        raise WrongLesson(keys, f"{words}: give a field such as study:{name}.{EXAMPLES[name]}")
    if page != own:
        raise WrongLesson(keys, f"the study {name} stands on the page {own}, but this step shows {page}: give page")
    return Measure(f"study:{name}", path=tuple(path.split(".")))


def _spec(source: AnySource, base: dict[str, Any], changes: dict[str, Any], keys: Keys) -> AttentionSpec:
    """The spec of a step; one with a source of its own leaves the lesson's base."""
    fields = {**base, **changes} if "source" not in changes else dict(changes)
    if "source" in fields:
        source = _source(fields.pop("source"), (*keys, "source"))
    try:
        if isinstance(fields.get("mask_shape"), str):
            fields["mask_shape"] = parse_shape(fields["mask_shape"])
        spec = None if fields.get("mask_shape", "") is None else make_spec(source, **fields)
    except SpecError as error:
        raise WrongLesson((*keys, error.field), str(error)) from None
    if spec is None or isinstance(spec.mask_shape, MaskFile):
        why = "mask_shape would be a file's, but a lesson names no other files: give a shape such as causal or window:3"
        raise WrongLesson((*keys, "mask_shape"), why)
    return spec


def _source(given: Any, keys: Keys) -> AnySource:
    if isinstance(given, str):
        if given not in LESSONS:
            raise WrongLesson(keys, f"source is {_short(given)}: give {', '.join(LESSONS)}, or a source's table")
        return Lesson(name=cast(Any, given))
    try:
        source = cast(AnySource, convert(AnySource, _table(given, keys), CHOICES))
    except SpecError as error:
        raise WrongLesson((*keys, error.field), str(error)) from None
    if isinstance(source, QKFile):
        raise WrongLesson(keys, "a lesson names no other files: give scores, weights, a text or a length")
    return source


def _select(given: Any, keys: Keys, spec: AttentionSpec) -> Place:
    table = _table(given, keys)
    _check_keys(table, ("row", "col"), keys, "select")
    row, col = (_index(table.get(key), (*keys, key)) for key in ("row", "col"))
    size = map_size(spec)
    if size is not None and (row >= size[0] or col >= size[1]):
        raise WrongLesson(
            keys, f"row {row}, column {col} lies outside the map, which is {size[0]} x {size[1]}; 0 comes first"
        )
    return row, col


def _table(given: Any, keys: Keys) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise WrongLesson(keys, f"{keys[-1]} is {_short(given)}: give a table")
    return given


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], keys: Keys, who: str) -> None:
    for key in table:
        if key not in known:
            raise WrongLesson((*keys, key), f"{who} has an unknown key {_short(key)}: it takes {', '.join(known)}")


def _one_of(
    table: Mapping[str, Any], key: str, default: str | None, known: tuple[str, ...], keys: Keys, who: str
) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or value not in known:
        said = "is missing" if value is None else f"is {_short(value)}"
        raise WrongLesson((*keys, key), f"{who}: {key} {said}: give {', '.join(known)}")
    return value


def _words(table: Mapping[str, Any], key: str, keys: Keys, who: str) -> Words:
    """A text in both languages, or one plain text that stands for both."""
    given = table.get(key)
    if isinstance(given, str):
        given = {"en": given, "zh": given}
    if not isinstance(given, dict):
        raise WrongLesson((*keys, key), f"{who} lacks a text, {key}: give it in en and zh, or one text for both")
    _check_keys(given, ("en", "zh"), (*keys, key), f"{who}, {key},")
    texts = []
    for language, joint in ("en", " "), ("zh", ""):
        said = given.get(language)
        if not isinstance(said, str) or not said.strip():
            raise WrongLesson((*keys, key), f"{who}: {key} has no text in {language}: give both en and zh")
        text = joint.join(part.strip() for part in said.splitlines() if part.strip())
        if len(text) > MAX_TEXT:
            raise WrongLesson((*keys, key), f"{who}: {key} has {len(text):,} characters: give at most {MAX_TEXT:,}")
        if not all(char.isprintable() for char in text):
            raise WrongLesson((*keys, key), f"{who}: {key} holds a character that cannot be shown: give plain text")
        texts.append(text)
    return Words(*texts)


def _check_numbers(given: Any, keys: Keys) -> None:
    """Refuse a whole number that no field could hold, wherever it stands."""
    if isinstance(given, dict):
        for key, value in given.items():
            _check_numbers(value, (*keys, key))
    elif isinstance(given, list):
        for place, value in enumerate(given):
            _check_numbers(value, (*keys, place) if keys == ("step",) else keys)
    elif isinstance(given, int) and not -MAX_NUMBER < given < MAX_NUMBER:
        digits = math.floor(given.bit_length() * math.log10(2)) + 1
        raise WrongLesson(keys, f"{keys[-1]} is a number of about {digits:,} digits: give a smaller one")


def _number(given: Any, keys: Keys) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise WrongLesson(keys, f"{keys[-1]} is {_short(given)}: give a number")
    return float(given)


def _index(given: Any, keys: Keys) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 1 << 20:
        raise WrongLesson(keys, f"{keys[-1]} is {_short(given)}: give a whole number; 0 is the first")
    return given


def _short(given: Any) -> str:
    if given is None:
        return "missing"
    words = repr(given)
    return words if len(words) <= 60 else f"{words[:59]}…"


def _clipped(why: str) -> str:
    """A sentence in which no word that was typed runs on without end."""
    why = re.sub(r"\S{81,}", lambda word: f"{word.group()[:60]}…", why)
    if len(why) <= MAX_WHY:
        return why
    return f"{why[: MAX_WHY // 2]} … {why[-MAX_WHY // 2 :]}"
