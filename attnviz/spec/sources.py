"""Where tokens and queries, keys and values come from, and what each source fixes in a spec."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from attnviz.spec.checks import Matrix, SpecError, check_matrix, check_range, check_token_names

MAX_TOKENS: Final = 1 << 20


GIVEN_FOLDER: Final = "attnviz-given-"
"""With this begins the name of a folder for arrays that attnviz was given in Python, which goes with their process."""


def was_given(path: str) -> bool:
    """Whether ``path`` is that of an array that was given in Python: nobody knows its name, or finds it afterwards."""
    return PurePath(path).parent.name.startswith(GIVEN_FOLDER)


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Where tokens and queries, keys and values come from."""


LessonName = Literal["journey", "cat-eats-fish", "one-class"]
LESSONS: Final[tuple[str, ...]] = get_args(LessonName)


class Lesson(Source, frozen=True, tag="lesson"):
    """A worked lesson: *journey* (six tokens through the module), *cat-eats-fish* (a typed matrix) or *one-class*.

    *one-class* is four tokens through one module, in inference and in training.
    """

    name: LessonName = "journey"

    def __post_init__(self) -> None:
        if self.name not in LESSONS:
            raise SpecError("lesson", f"lesson is {self.name!r}: give {', '.join(LESSONS)}")


class TypedScores(Source, frozen=True, tag="scores"):
    """A score matrix (queries, keys) worked by hand; it enters at ``scaled_scores``. −∞ is allowed.

    ``values``, if given, has one row per key; ``dims`` names its columns; ``tokens`` names the keys.
    """

    scores: Matrix
    values: Matrix | None = None
    dims: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = check_matrix("scores", self.scores, allow_neg_inf=True)
        check_token_names(self.tokens, keys)
        if len(self.scores) > keys:
            raise SpecError(
                "scores",
                f"scores has {len(self.scores)} rows (queries) but {keys} columns (keys): "
                "give at most as many rows as columns",
            )
        if self.values is None:
            if self.dims:
                raise SpecError("dims", "dims names the columns of values, but there are no values: give values too")
            return
        width = check_matrix("values", self.values, of_tokens=False)
        if len(self.values) != keys:
            raise SpecError("values", f"values has {len(self.values)} rows, but scores has {keys} keys: one row a key")
        if self.dims and len(self.dims) != width:
            raise SpecError("dims", f"dims has {len(self.dims)} names, but values has {width} columns: one name each")


class TypedWeights(Source, frozen=True, tag="weights"):
    """A weight matrix (queries, keys) worked by hand; it enters at ``weights``, so dropout alone applies."""

    weights: Matrix
    tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = check_matrix("weights", self.weights)
        check_token_names(self.tokens, keys)
        if len(self.weights) > keys:
            raise SpecError(
                "weights",
                f"weights has {len(self.weights)} rows (queries) but {keys} columns (keys): "
                "give at most as many rows as columns",
            )
        if any(w < 0 for row in self.weights for w in row):
            raise SpecError("weights", "weights has a negative number: weights after a softmax are 0 or more")


class Text(Source, frozen=True, tag="text"):
    """Any text; its tokens get random embeddings keyed by (seed, token)."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise SpecError("text", "text is empty: type at least one word")
        if len(self.text) > 8 * MAX_TOKENS:
            raise SpecError("text", f"text has {len(self.text):,} characters: at most {8 * MAX_TOKENS:,}")


class RandomEmbeddings(Source, frozen=True, tag="random"):
    """``length`` random embeddings keyed by (seed, position), through the module."""

    length: int

    def __post_init__(self) -> None:
        check_range("length", self.length, 1, MAX_TOKENS)


class RandomQK(Source, frozen=True, tag="random-qk"):
    """Queries and keys drawn directly: standard normal × ``qk_scale``, per head Q, then K. No values."""

    length: int
    qk_scale: float = 1.0

    def __post_init__(self) -> None:
        check_range("length", self.length, 1, MAX_TOKENS)
        if not math.isfinite(self.qk_scale):
            raise SpecError("qk_scale", f"qk_scale is {self.qk_scale}: give a finite number, such as 1")


PatternKind = Literal["sink", "local", "previous", "stripes", "topics", "mixed"]


class Pattern(Source, frozen=True, tag="pattern"):
    """``length`` made-up queries and keys whose maps look like trained heads'; *mixed* takes each kind in turn."""

    length: int
    pattern: PatternKind = "mixed"

    def __post_init__(self) -> None:
        check_range("length", self.length, 1, MAX_TOKENS)


class QKFile(Source, frozen=True, tag="qk"):
    """Queries (heads, tokens, d_head) and keys (kv_heads, tokens, d_head) of a file, which is only read.

    ``sha256`` is the file's when the spec was made; the sizes are what it said then. ``queries`` may be fewer than
    ``length``: they are the last of the tokens.
    """

    path: str
    sha256: str
    heads: int
    kv_heads: int
    queries: int
    length: int
    d_head: int

    def __post_init__(self) -> None:
        check_range("length", self.length, 1, MAX_TOKENS)
        check_range("queries", self.queries, 1, self.length)
        check_range("heads", self.heads, 1, 1024)
        check_range("kv_heads", self.kv_heads, 1, self.heads)
        if self.heads % self.kv_heads:
            raise SpecError(
                "kv_heads",
                f"kv_heads is {self.kv_heads}, which {self.heads} heads of queries cannot share evenly: "
                f"give keys of a number of heads that divides {self.heads}",
            )
        check_range("d_head", self.d_head, 1, 1 << 16)


AnySource = Lesson | TypedScores | TypedWeights | Text | RandomEmbeddings | RandomQK | Pattern | QKFile


class Fixed(NamedTuple):
    """A field that a source fixes: the value it must have, and why in words."""

    value: Any
    reason: str


_BY_HAND: Final = "worked by hand: there are no projections"
_DRAWN: Final = "queries and keys are drawn directly: there are no projections"
_READ: Final = "queries and keys are the file's: there are no projections"
_NO_PROJECTIONS: Final = (
    ("implementation", "stacked"), ("out_proj", False), ("qkv_bias", False), ("projection", "linear"),
    ("d_model", None),
)  # fmt: skip
_ONE_CLASS: Final = (
    ("num_heads", 1, "the lesson's class has one head"),
    ("num_kv_heads", 1, "the lesson's class has one head"),
    ("implementation", "stacked", "the lesson's class has one head"),
    ("d_model", 8, "the lesson's inputs have 8 dimensions"),
    ("d_out", 8, "the lesson's matrices are 8 x 8"),
    ("projection", "linear", "the lesson's matrices are given"),
    ("out_proj", False, "the lesson's class has no output projection"),
    ("qkv_bias", False, "the lesson's class has no biases"),
    ("seed", 3, "the lesson's numbers are those of NumPy's RandomState(3)"),
)


def fixed_by(source: Source) -> Mapping[str, Fixed]:
    """Fields that ``source`` fixes, with the value and the reason a greyed control shows."""
    fixed: dict[str, Fixed] = {}
    if is_typed(source):
        one_head = (
            *_NO_PROJECTIONS, ("num_heads", 1), ("num_kv_heads", 1), ("d_out", None), ("batch", 1),
            ("scale_after_mask", False),
        )  # fmt: skip
        fixed = {field: Fixed(value, _BY_HAND) for field, value in one_head}
        fixed["scale"] = Fixed("none", "worked by hand: the scores are typed already scaled")
        if isinstance(source, TypedWeights):
            fixed["mask"] = Fixed("none", "the weights are typed: dropout alone applies")
            fixed["soft_cap"] = Fixed(None, "the weights are typed: dropout alone applies")
            fixed["top_k"] = Fixed(None, "the weights are typed: dropout alone applies")
        if not has_values(source):
            fixed["dropout_site"] = Fixed("weights", "there are no values, so there is no context to drop from")
    elif isinstance(source, RandomQK | Pattern | QKFile):
        reason = _READ if isinstance(source, QKFile) else _DRAWN
        fixed = {field: Fixed(value, reason) for field, value in _NO_PROJECTIONS}
        if isinstance(source, QKFile):
            sizes = ("num_heads", source.heads), ("num_kv_heads", source.kv_heads)
            fixed |= {field: Fixed(value, _READ) for field, value in (*sizes, ("d_out", source.heads * source.d_head))}
        fixed["dropout_site"] = Fixed("weights", "there are no values, so there is no context to drop from")
    elif source == Lesson(name="one-class"):
        fixed = {field: Fixed(value, reason) for field, value, reason in _ONE_CLASS}
    elif isinstance(source, Lesson):
        fixed["d_model"] = Fixed(3, "the lesson's inputs have 3 dimensions")
    return MappingProxyType(fixed)


def default_fill(source: Source) -> float:
    """What hidden scores are filled with unless something else is asked for: −10⁹ in *one-class*, else −∞."""
    return -1e9 if source == Lesson(name="one-class") else -math.inf


def is_typed(source: Source) -> bool:
    """Whether scores or weights were worked by hand, so that there is no module at all."""
    return isinstance(source, TypedScores | TypedWeights) or source == Lesson(name="cat-eats-fish")


def has_values(source: Source) -> bool:
    """Whether a context can be mixed: every source but weights, bare queries and keys, and scores without values."""
    if isinstance(source, TypedScores):
        return source.values is not None
    return not isinstance(source, TypedWeights | RandomQK | Pattern | QKFile)


def has_module(source: Source) -> bool:
    """Whether inputs pass through a multi-head module with parameters."""
    return not is_typed(source) and not has_bare_qk(source)


def has_bare_qk(source: Source) -> bool:
    """Whether queries and keys come as they are, without inputs, projections or values."""
    return isinstance(source, RandomQK | Pattern | QKFile)
