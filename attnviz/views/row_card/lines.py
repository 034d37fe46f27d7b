"""All that the row card says of one query's row, key by key: numbers, words and looks. Pure, without widgets.

A row may have thousands of keys: numbers stand in arrays, and the texts of a line are made when it is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.frames import RowStages
from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, TypedWeights, held
from attnviz.views.row_card import numbers

_LARGEST_EXPONENT: Final = MappingProxyType({"float16": 11.09, "bfloat16": 88.7, "float32": 88.7, "float64": 709.7})
"""From which score on e^s overflows, by dtype."""

_LEAST_EXPONENT: Final = MappingProxyType(
    {"float16": -17.33, "bfloat16": -92.88, "float32": -103.97, "float64": -745.13}
)
"""Below which score e^s is rounded to 0, by dtype: half of its smallest number, subnormal ones included."""

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MASKED: Final = "×"
DROPPED: Final = "∅"
SIGNS: Final = frozenset({MASKED, DROPPED})
"""What stands in place of a number, as on the map."""

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Answer:
    """The token that the row is to guess. *open* says that its key is visible to the row: nothing is left to guess."""

    key: int
    token: str
    open: bool


@dataclass(frozen=True, slots=True)
class ContextLine:
    """One dimension of the context vector, now and before (None where there was none), and their texts."""

    name: str
    value: float
    before: float | None
    text: str
    before_text: str
    dropped: bool


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One key in words: ``texts`` by column; ``struck`` columns are those whose number the triangle takes away."""

    key: int
    token: str
    texts: Mapping[str, str]
    struck: frozenset[str]
    hidden: bool
    masked: bool
    padded: bool
    nan: bool
    dropped: bool
    peeking: bool
    answer: bool


@dataclass(frozen=True, slots=True, eq=False)
class RowLines:
    """A row's story, ready to be shown. Arrays are float64 (n_keys,), None where the spec has no such stage.

    ``raw`` are scores before scaling, where scaling changes them. ``entering`` enter the softmax; ``shown_scores`` are
    those of the column, without what the mask added, which is ``added``. ``exponentials`` are e^s, or e^(s − shift).
    ``first`` is the softmax over everything of *three-step* and *multiply*. ``weights`` are the mask mode's final
    ones, ``dropped`` those after dropout, and ``final`` the ones that are mixed. ``before`` is the state before's
    ``final``. ``peeking`` bool are the keys that the mask's shape hides and that weigh something, whether or not
    dropout then took it. ``full`` is the weight that a bar of full length stands for. ``swapped`` says that the state
    before stands here as if it were the present one, and the present one as what it is compared with.
    """

    now: RowStages
    then: RowStages | None
    tokens: tuple[str, ...]
    glosses: tuple[str, ...]
    place: int
    decimals: int | None
    swapped: bool
    answer: Answer | None
    is_last_word: bool
    raw: Numbers | None
    shown_scores: Numbers | None
    added: Numbers | None
    entering: Numbers | None
    exponentials: Numbers | None
    shift: float | None
    first: Numbers | None
    weights: Numbers
    dropped: Numbers | None
    final: Numbers
    before: Numbers | None
    peeking: Flags
    nan: Flags
    full: float
    total: float
    n_seen: int
    sum_before_dividing: float | None
    context: tuple[ContextLine, ...]
    context_name: str

    @property
    def spec(self) -> AttentionSpec:
        return self.now.spec

    @property
    def n_keys(self) -> int:
        return len(self.weights)

    @property
    def head(self) -> int | None:
        """The head that is told of, None where there is but one."""
        return self.now.head if self.spec.num_heads > 1 else None

    @property
    def about(self) -> tuple[object, ...]:
        """What the lines are about: two of the same can be compared key by key."""
        return self.spec.source, self.now.row, self.now.head, self.n_keys

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns there are, from left to right: what was added stands beside what it was added to."""
        there = {
            "raw": self.raw, "score": self.shown_scores, "added": self.added, "exponential": self.exponentials,
            "first": self.first, "share": self.weights, "dropped": self.dropped, "before": self.before,
        }  # fmt: skip
        if self.spec.scale_after_mask and self.raw is not None:
            there = {name: there[name] for name in ("raw", "added", *there)}
        return tuple(name for name, numbers_there in there.items() if numbers_there is not None)

    def title(self, column: str) -> str:
        """What stands above a column."""
        match column:
            case "raw":
                return translate("RowCard", "score")
            case "score":
                return translate("RowCard", "scaled") if self.raw is not None else translate("RowCard", "score")
            case "added":
                return translate("RowCard", "+ M")
            case "exponential":
                return "e^s" if self.shift is None else translate("RowCard", "e^(s − max)")
            case "first":
                return translate("RowCard", "softmax")
            case "share":
                return translate("RowCard", "share")
            case "dropped":
                return translate("RowCard", "dropout")
        return translate("RowCard", "now") if self.swapped else translate("RowCard", "before")

    def line(self, key: int) -> KeyLine:
        """The texts and looks of one key."""
        now = self.now
        dropped = now.dropped is not None and bool(now.dropped[key]) and not now.masked[key]
        padded = now.padded[0] <= key < now.padded[1]
        texts = {column: self._text(column, key) for column in self.columns}
        struck: frozenset[str] = frozenset()
        if self.first is not None and now.hidden[key]:
            struck = frozenset({"exponential", "first"} if self.spec.mask == "three-step" else {"first"})
        return KeyLine(
            key, self.tokens[key], MappingProxyType(texts), struck, bool(now.hidden[key]), bool(now.masked[key]),
            padded, bool(self.nan[key]), dropped, bool(self.peeking[key]),
            self.answer is not None and self.answer.key == key,
        )  # fmt: skip

    def _text(self, column: str, key: int) -> str:
        decimals, n_keys = self.decimals, self.n_keys
        match column:
            case "raw" if self.raw is not None:
                return numbers.score(self.raw[key])
            case "score" if self.shown_scores is not None:
                return numbers.score(self.shown_scores[key])
            case "added" if self.added is not None:
                return numbers.score(self.added[key])
            case "exponential" if self.exponentials is not None:
                return numbers.exponential(self.exponentials[key], decimals)
            case "first" if self.first is not None:
                return numbers.share(self.first[key], decimals, n_keys)
            case "before" if self.then is not None and self.before is not None:
                return _sign(self.then, key) or numbers.share(self.before[key], decimals, n_keys)
            case "dropped" if self.dropped is not None:
                return _sign(self.now, key) or numbers.share(self.dropped[key], decimals, n_keys)
        if self.nan[key]:
            return numbers.NAN
        sign = _sign(self.now, key) if self.now.masked[key] else ""
        return sign or numbers.share(self.weights[key], decimals, n_keys)

    def exact(self, key: int) -> str:
        """A key's numbers in nine digits, one a line."""
        name = self.tokens[key] + (f" ({self.glosses[key]})" if key < len(self.glosses) else "")
        said = [translate("RowCard", "key {n}: {token}").format(n=f"{key:,}", token=name)]
        said += [
            f"{marks.stage_title(stage)}: {_exact(float(array[key]))}"
            for stage, array in self.now.stages.items()
            if len(array) == self.n_keys and stage not in ("queries", "context", "dropped_context", "row_sums")
        ]
        if self.exponentials is not None:
            said.insert(-1, f"{self.title('exponential')}: {_exact(float(self.exponentials[key]))}")
        if self.before is not None:
            said.append(f"{self.title('before')}: {_exact(float(self.before[key]))}")
        now = self.now
        if self.is_cut(key):
            said.append(translate("RowCard", "not among the {k} largest").format(k=self.spec.top_k))
        elif now.padded[0] <= key < now.padded[1]:
            said.append(translate("RowCard", "padding"))
        elif now.masked[key]:
            said.append(translate("RowCard", "hidden by the mask"))
        elif self.peeking[key]:
            said.append(translate("RowCard", "hidden by the mask's shape, and yet it weighs something"))
        if now.dropped is not None and now.dropped[key] and not now.masked[key]:
            said.append(translate("RowCard", "dropped in this draw"))
        return "\n".join(said)

    def is_cut(self, key: int) -> bool:
        """Whether it is top-k, not the mask, that gave this key a score of −∞."""
        by_mask = self.spec.mask != "none" and self.now.hidden[key]
        return bool(self.now.masked[key] and not by_mask)

    def sees(self) -> str:
        """How many keys the row sees, and how many of them it should not."""
        words = translate("RowCard", "sees {n} of {all}").format(n=f"{self.n_seen:,}", all=f"{self.n_keys:,}")
        ahead = int(self.peeking[self.place + 1 :].sum())
        if ahead:
            words += ", " + translate("RowCard", "{n} ahead").format(n=f"{ahead:,}")
        return words


def _sign(row: RowStages, key: int) -> str:
    """What stands in place of a number: × for a masked cell, ∅ for a dropped one, – for padding."""
    if row.masked[key]:
        return "–" if row.padded[0] <= key < row.padded[1] else MASKED
    return DROPPED if row.dropped is not None and row.dropped[key] else ""


def _exact(value: float) -> str:
    return f"{value + 0.0:.9g}".replace("nan", numbers.NAN).replace("-inf", "−∞").replace("inf", "∞").replace("-", "−")


# ------------------------------------------------------------------------------------------------------------- making


def row_lines(snapshot: Snapshot) -> RowLines | None:
    """What the card says of the selected row; None where its story has not come, or is of another row or source."""
    story, selected, picture = snapshot.story, snapshot.selected, snapshot.picture
    if story is None or selected is None or picture is None or picture.outline is None:
        return None
    now, then, outline = story.now, story.before, picture.outline
    if now.row != selected.row or now.spec.source != picture.spec.source or len(now.hidden) != outline.n_keys:
        return None
    swapped = snapshot.show_before and then is not None
    if swapped and then is not None:
        now, then = then, now
        old = snapshot.before.outline if snapshot.before is not None else None
        outline = old if old is not None and old.n_keys == outline.n_keys else outline
    place = now.row + outline.n_keys - outline.n_queries
    return _made(now, then, outline.tokens, outline.glosses, outline.dims, place, snapshot.decimals, swapped=swapped)


def _made(
    now: RowStages, then: RowStages | None, tokens: tuple[str, ...], glosses: tuple[str, ...], dims: tuple[str, ...],
    place: int, decimals: int | None, *, swapped: bool,
) -> RowLines:  # fmt: skip
    stages = {name: np.asarray(array, np.float64) for name, array in now.stages.items()}
    weights, final = stages["weights"], stages[now.last]
    entering = _entering(stages)
    exponentials, shift = _exponentials(entering, now.spec.dtype)
    raw, scaled = stages.get("scores"), stages.get("scaled_scores")
    if raw is not None and scaled is not None and np.array_equal(raw, scaled, equal_nan=True):
        raw = None  # a scale of 1
    shown, added = entering, None
    if now.spec.mask == "add" and entering is not None:
        unmasked = stages["scores"] if now.spec.scale_after_mask else stages["scaled_scores"]
        added = np.where(now.hidden, held(now.spec.fill, now.spec.dtype), 0.0)
        added[now.masked & ~now.hidden] = -math.inf  # top-k
        shown = entering if now.spec.scale_after_mask else unmasked
    nan = np.isnan(final)
    before = None if then is None else np.asarray(then.stages[then.last], np.float64)
    sums = stages.get("row_sums")
    context_name = "dropped_context" if "dropped_context" in stages else "context"
    return RowLines(
        now, then, tokens, glosses, place, decimals, swapped, _answer(now, tokens, place, nan),
        place + 1 >= len(tokens), raw, shown, added, entering, exponentials, shift, stages.get("unmasked_weights"),
        weights, stages.get("dropped_weights"), final, before, now.hidden & (weights != 0) & ~nan, nan,
        _full(final, before, weights), float(final.sum()), _seen(now, nan), None if sums is None else float(sums[0]),
        _context(stages, then, dims, context_name, decimals), context_name,
    )  # fmt: skip


def _entering(stages: Mapping[str, Numbers]) -> Numbers | None:
    """What enters the softmax: the last stage of scores, in the order in which they were computed."""
    scores = [array for name, array in stages.items() if name in ("scores", "scaled_scores", "masked_scores")]
    return scores[-1] if scores else None


def _exponentials(entering: Numbers | None, dtype: str) -> tuple[Numbers | None, float | None]:
    """e^s, or e^(s − max) and the maximum where the dtype could not hold e^s, or nothing but 0 would come out."""
    if entering is None:
        return None, None
    largest = float(np.max(entering))
    held_by_dtype = _LEAST_EXPONENT[dtype] <= largest <= _LARGEST_EXPONENT[dtype]
    shift = largest if math.isfinite(largest) and not held_by_dtype else None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.exp(entering - (shift or 0.0)), shift


def _answer(now: RowStages, tokens: tuple[str, ...], place: int, nan: Flags) -> Answer | None:
    key = place + 1
    if key >= len(tokens) or isinstance(now.spec.source, TypedWeights):
        return None
    closed = bool(now.masked[key]) or (bool(nan[key]) and bool(now.hidden[key]) and now.spec.mask != "none")
    return Answer(key, tokens[key], not closed)


def _seen(now: RowStages, nan: Flags) -> int:
    if nan.any():  # masked cells of a row of NaN are NaN too
        return len(nan) - (int(now.hidden.sum()) if now.spec.mask != "none" else 0)
    return len(nan) - int(now.masked.sum())


def _full(final: Numbers, before: Numbers | None, weights: Numbers) -> float:
    """The weight of a bar of full length: 1, or of a long row what its largest weight rounds up to; 1, 2 or 5 · 10ⁿ."""
    arrays = [final, weights] if before is None else [final, weights, before]
    largest = max(float(np.max(array, initial=0.0, where=np.isfinite(array))) for array in arrays)
    if largest <= 1 and len(final) <= marks.PERCENT_UP_TO_KEYS:
        return 1.0
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= largest * (1 - 1e-6))


def _context(
    stages: Mapping[str, Numbers], then: RowStages | None, dims: tuple[str, ...], name: str, decimals: int | None
) -> tuple[ContextLine, ...]:
    values = stages.get(name)
    if values is None:
        return ()
    old = None
    if then is not None:
        old = then.stages.get("dropped_context", then.stages.get("context"))
        old = old if old is not None and len(old) == len(values) else None
    whole = stages["context"]
    names = dims if len(dims) == len(values) else tuple(f"d{n}" for n in range(len(values)))
    lines = []
    for n, value in enumerate(values.tolist()):
        dropped = name == "dropped_context" and value == 0 and whole[n] != 0
        before = None if old is None else float(old[n])
        text = DROPPED if dropped else numbers.component(value, decimals)
        before_text = "" if before is None else numbers.component(before, decimals)
        lines.append(ContextLine(names[n], value, before, text, before_text, dropped))
    return tuple(lines)
