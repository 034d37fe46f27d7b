"""What goes in: the frozen, checked description of one attention computation and of one look at it.

`AttentionSpec` says what is computed, `View` which part is looked at and how it is coloured, `Viewport` how many
pixels there are, `Request` binds the three to a generation. One schema serves the window, the command line, saved
files and the metadata inside exported pictures. Plain Python: no torch, no NumPy, no Qt.

A spec is *complete*: what follows from other fields (``d_out`` for a text, ``out_proj`` by implementation) is filled
in by `make_spec` and `edited`, so that two equal specs mean the same picture.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast, get_args

import msgspec

SPEC_VERSION: Final = 1
MAX_TYPED_TOKENS: Final = 32
MAX_TOKENS: Final = 1 << 20
MAX_HEADS: Final = 1024
MAX_SEED: Final = (1 << 63) - 1
DEFAULT_D_HEAD: Final = 64

MaskMode = Literal["none", "three-step", "neg-inf"]
Implementation = Literal["stacked", "split"]
DropoutSite = Literal["weights", "context"]
DropoutGenerator = Literal["portable", "torch"]
DType = Literal["float64", "float32", "float16", "bfloat16"]
Norm = Literal["auto", "linear", "log", "uniform", "per-head", "per-row", "percentile", "unit"]
Colours = Literal["viridis", "cividis", "magma", "inferno", "greys"]
Matrix = tuple[tuple[float, ...], ...]

CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "mask": get_args(MaskMode),
        "implementation": get_args(Implementation),
        "dropout_site": get_args(DropoutSite),
        "dropout_generator": get_args(DropoutGenerator),
        "dtype": get_args(DType),
        "norm": get_args(Norm),
        "colours": get_args(Colours),
    }
)
"""The values of every field that has a fixed list of them."""


class SpecError(ValueError):
    """A request that cannot be computed. The sentence names the field, the value and what would do.

    ``field`` is the name of the spec or view field at fault, so that a window can put the words beside its control.
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


# ---------------------------------------------------------------------------------------------------------- sources


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Where tokens and queries, keys and values come from."""


class Lesson(Source, frozen=True, tag="lesson"):
    """A worked lesson: *journey* (six tokens through the module) or *cat-eats-fish* (a typed matrix)."""

    name: Literal["journey", "cat-eats-fish"] = "journey"

    def __post_init__(self) -> None:
        if self.name not in ("journey", "cat-eats-fish"):
            raise SpecError("lesson", f"lesson is {self.name!r}: give journey or cat-eats-fish")


class TypedScores(Source, frozen=True, tag="scores"):
    """A score matrix (queries, keys) worked by hand; it enters at ``scaled_scores``. −∞ is allowed.

    ``values``, if given, has one row per key; ``dims`` names its columns; ``tokens`` names the keys.
    """

    scores: Matrix
    values: Matrix | None = None
    dims: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = _check_matrix("scores", self.scores, allow_neg_inf=True)
        _check_token_names(self.tokens, keys)
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
        width = _check_matrix("values", self.values)
        if len(self.values) != keys:
            raise SpecError("values", f"values has {len(self.values)} rows, but scores has {keys} keys: one row a key")
        if self.dims and len(self.dims) != width:
            raise SpecError("dims", f"dims has {len(self.dims)} names, but values has {width} columns: one name each")


class TypedWeights(Source, frozen=True, tag="weights"):
    """A weight matrix (queries, keys) worked by hand; it enters at ``weights``, so dropout alone applies."""

    weights: Matrix
    tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = _check_matrix("weights", self.weights)
        _check_token_names(self.tokens, keys)
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
        _check_range("length", self.length, 1, MAX_TOKENS)


class RandomQK(Source, frozen=True, tag="random-qk"):
    """Queries and keys drawn directly: standard normal × ``qk_scale``, per head Q, then K. No values."""

    length: int
    qk_scale: float = 1.0

    def __post_init__(self) -> None:
        _check_range("length", self.length, 1, MAX_TOKENS)
        if not math.isfinite(self.qk_scale):
            raise SpecError("qk_scale", f"qk_scale is {self.qk_scale}: give a finite number, such as 1")


AnySource = Lesson | TypedScores | TypedWeights | Text | RandomEmbeddings | RandomQK


# ------------------------------------------------------------------------------------------------------------- spec


class AttentionSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attention computation, complete and checked. Build it with `make_spec`, change it with `edited`.

    ``d_out`` is the total over all heads for both implementations. ``d_model`` and ``d_out`` are None where the
    source has no projections. Raises `SpecError` for a combination that cannot be computed.
    """

    source: AnySource
    num_heads: int
    d_model: int | None
    d_out: int | None
    implementation: Implementation
    out_proj: bool
    qkv_bias: bool
    scale: Literal["auto", "none"] | float
    scale_after_mask: bool
    mask: MaskMode
    dropout: float
    dropout_site: DropoutSite
    dropout_seed: int
    dropout_generator: DropoutGenerator
    training: bool
    batch: int
    seed: int
    device: str
    dtype: DType

    def __post_init__(self) -> None:
        _check_range("num_heads", self.num_heads, 1, MAX_HEADS)
        _check_range("batch", self.batch, 1, 4096)
        _check_range("seed", self.seed, 0, MAX_SEED)
        _check_range("dropout_seed", self.dropout_seed, 0, MAX_SEED)
        if not 0 <= self.dropout < 1:  # NaN fails this too
            raise SpecError(
                "dropout",
                f"dropout is {self.dropout:g}: give a probability from 0 up to, but not including, 1 "
                "(at 1 nothing would be left)",
            )
        if isinstance(self.scale, float | int) and not math.isfinite(self.scale):
            raise SpecError("scale", f"scale is {self.scale}: give a finite number, auto or none")
        if not re.fullmatch(r"cpu|mps|cuda:\d{1,3}", self.device):
            hint = "write cuda:0" if self.device == "cuda" else "give cpu, mps or cuda:N such as cuda:0"
            raise SpecError("device", f"device is {self.device!r}: {hint}")
        for field, fixed in fixed_by(self.source).items():
            value = getattr(self, field)
            if value != fixed.value:
                instead = "has none" if fixed.value is None else f"fixes it at {fixed.value}"
                raise SpecError(field, f"{field} is {value}, but this source {instead}: {fixed.reason}")
        self._check_sizes()

    def _check_sizes(self) -> None:
        for field in ("d_model", "d_out"):
            value = getattr(self, field)
            if value is not None:
                _check_range(field, value, 1, 1 << 20)
            elif field not in fixed_by(self.source):
                raise SpecError(field, f"{field} is missing: this source needs a number")
        if self.d_out is not None and self.d_out % self.num_heads:
            below = self.d_out // self.num_heads * self.num_heads
            choices = [str(n) for n in (below, below + self.num_heads) if n]
            raise SpecError(
                "d_out",
                f"d_out is {self.d_out}, which {self.num_heads} heads cannot share evenly: "
                f"give d_out {' or '.join(choices)}, or a number of heads that divides {self.d_out}",
            )

    @property
    def d_head(self) -> int | None:
        """Dimensions per head, or None where the source has no projections."""
        return None if self.d_out is None else self.d_out // self.num_heads

    @property
    def drops(self) -> bool:
        """Whether dropout acts: in training, with p > 0."""
        return self.training and self.dropout > 0


class Fixed(NamedTuple):
    """A field that a source fixes: the value it must have, and why in words."""

    value: Any
    reason: str


_BY_HAND: Final = "worked by hand: there are no projections"
_DRAWN: Final = "queries and keys are drawn directly: there are no projections"
_NO_PROJECTIONS: Final = ("implementation", "stacked"), ("out_proj", False), ("qkv_bias", False), ("d_model", None)


def fixed_by(source: Source) -> Mapping[str, Fixed]:
    """Fields that ``source`` fixes, with the value and the reason a greyed control shows."""
    fixed: dict[str, Fixed] = {}
    if is_typed(source):
        one_head = (*_NO_PROJECTIONS, ("num_heads", 1), ("d_out", None), ("batch", 1), ("scale_after_mask", False))
        fixed = {field: Fixed(value, _BY_HAND) for field, value in one_head}
        fixed["scale"] = Fixed("none", "worked by hand: the scores are typed already scaled")
        if isinstance(source, TypedWeights):
            fixed["mask"] = Fixed("none", "the weights are typed: dropout alone applies")
        if not has_values(source):
            fixed["dropout_site"] = Fixed("weights", "there are no values, so there is no context to drop from")
    elif isinstance(source, RandomQK):
        fixed = {field: Fixed(value, _DRAWN) for field, value in _NO_PROJECTIONS}
        fixed["dropout_site"] = Fixed("weights", "there are no values, so there is no context to drop from")
    elif isinstance(source, Lesson):
        fixed["d_model"] = Fixed(3, "the lesson's inputs have 3 dimensions")
    return MappingProxyType(fixed)


def is_typed(source: Source) -> bool:
    """Whether scores or weights were worked by hand, so that there is no module at all."""
    return isinstance(source, TypedScores | TypedWeights) or source == Lesson(name="cat-eats-fish")


def has_values(source: Source) -> bool:
    """Whether a context can be mixed: every source but weights, random Q/K and scores typed without values."""
    if isinstance(source, TypedScores):
        return source.values is not None
    return not isinstance(source, TypedWeights | RandomQK)


def has_module(source: Source) -> bool:
    """Whether inputs pass through a multi-head module with parameters."""
    return not is_typed(source) and not isinstance(source, RandomQK)


FIELDS: Final[tuple[str, ...]] = AttentionSpec.__struct_fields__


def make_spec(source: AnySource | None = None, **given: Any) -> AttentionSpec:
    """A complete spec from what is given; everything else takes the defaults of its source.

    Raises `SpecError` for an unknown field, a wrong type or a combination that cannot be computed.
    """
    source = Lesson() if source is None else source
    for field in given:
        if field not in FIELDS:
            raise SpecError(field, f"{field!r} is not a field of a spec: the fields are {', '.join(FIELDS)}")
    fixed = {field: f.value for field, f in fixed_by(source).items()}
    heads = given.get("num_heads", fixed.get("num_heads", 2))
    implementation = given.get("implementation", "stacked")
    wide = DEFAULT_D_HEAD * heads if isinstance(heads, int) else None
    journey = source == Lesson(name="journey")
    defaults: dict[str, Any] = {
        "num_heads": 2,
        "d_model": wide,
        "d_out": 4 if journey else wide,
        "implementation": "stacked",
        "out_proj": implementation == "split",
        "qkv_bias": False,
        "scale": "auto",
        "scale_after_mask": False,
        "mask": "neg-inf",
        "dropout": 0.0,
        "dropout_site": "weights",
        "dropout_seed": given.get("seed", 123),
        "dropout_generator": "portable",
        "training": True,
        "batch": 1,
        "seed": 123,
        "device": "cpu",
        "dtype": "float32",
    }
    fields = defaults | fixed | given
    if journey and "d_out" not in given and isinstance(heads, int) and heads >= 1:
        fields["d_out"] = 2 * heads  # the book's two dimensions a head
    if isinstance(fields["dropout"], int) and not isinstance(fields["dropout"], bool):
        fields["dropout"] = float(fields["dropout"])
    spec: AttentionSpec = _convert(AttentionSpec, {"source": source, **fields})
    return spec


def edited(spec: AttentionSpec, **changes: Any) -> AttentionSpec:
    """``spec`` with ``changes``; what followed a changed field by default goes on following it.

    Another number of heads keeps the dimensions per head, another seed moves a dropout seed equal to it, another
    implementation takes its own default output projection. Another source is `make_spec`'s job.
    """
    fields = {field: getattr(spec, field) for field in FIELDS} | changes
    if "source" in changes:
        fixed, was_fixed = fixed_by(changes["source"]), fixed_by(spec.source)
        kept = {f: v for f, v in fields.items() if f not in fixed and (f in changes or f not in was_fixed)}
        kept.pop("source")
        return make_spec(changes["source"], **kept)
    if "num_heads" in changes and "d_out" not in changes and spec.d_head is not None:
        fields["d_out"] = spec.d_head * changes["num_heads"]
    if "seed" in changes and "dropout_seed" not in changes and spec.dropout_seed == spec.seed:
        fields["dropout_seed"] = changes["seed"]
    if "implementation" in changes and "out_proj" not in changes and spec.out_proj == (spec.implementation == "split"):
        fields["out_proj"] = changes["implementation"] == "split"
    changed: AttentionSpec = _convert(AttentionSpec, fields)
    return changed


# ----------------------------------------------------------------------------------------------------------- stages

_MASK_STAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "none": ("weights",),
        "neg-inf": ("masked_scores", "weights"),
        "three-step": ("unmasked_weights", "unnormalised_weights", "row_sums", "weights"),
    }
)
QUERY_KEY_STAGES: Final = frozenset({
    "scores", "scaled_scores", "masked_scores", "weights", "unmasked_weights", "unnormalised_weights",
    "dropped_weights",
})  # fmt: skip
WEIGHT_STAGES: Final = frozenset({"weights", "unmasked_weights", "unnormalised_weights", "dropped_weights"})
JOINT_STAGES: Final = frozenset({"inputs", "joined", "output"})


def stages_of(spec: AttentionSpec) -> tuple[str, ...]:
    """The named stages that ``spec`` has, in the order in which they are computed."""
    source = spec.source
    names: list[str] = []
    if has_module(source):
        names += ["inputs", "queries", "keys", "values"]
    elif isinstance(source, RandomQK):
        names += ["queries", "keys"]
    if not is_typed(source):
        names += ["scores"]
    if isinstance(source, TypedWeights):
        names += ["weights"]
    elif spec.scale_after_mask and spec.mask == "neg-inf":
        names += ["masked_scores", "scaled_scores", "weights"]
    else:
        names += ["scaled_scores", *_MASK_STAGES[spec.mask]]
    if spec.drops and spec.dropout_site == "weights":
        names += ["dropped_weights"]
    if has_values(source):
        names += ["context"]
        if spec.drops and spec.dropout_site == "context":
            names += ["dropped_context"]
    if has_module(source):
        names += ["joined", "output"]
    return tuple(names)


def masked_at(spec: AttentionSpec, stage: str) -> bool:
    """Whether the mask has already acted on ``stage`` (a cell is masked only from there on)."""
    if spec.mask == "none" or stage not in QUERY_KEY_STAGES:
        return False
    first = "masked_scores" if spec.mask == "neg-inf" else "unnormalised_weights"
    names = stages_of(spec)
    return stage in names and names.index(stage) >= names.index(first)


# ------------------------------------------------------------------------------------------------- view and request


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of a computation is looked at, and how it is coloured. ``head`` None means all heads."""

    stage: str = "weights"
    head: int | None = None
    norm: Norm = "auto"
    colours: Colours = "viridis"

    def __post_init__(self) -> None:
        if self.head is not None and self.head < 0:
            raise SpecError("head", f"head is {self.head}: heads count from 0; give a head or all")

    def check(self, spec: AttentionSpec) -> None:
        """Raise `SpecError` where ``spec`` lacks this stage or head."""
        names = stages_of(spec)
        if self.stage not in names:
            raise SpecError("stage", f"stage is {self.stage!r}, which this spec lacks: it has {', '.join(names)}")
        if self.head is not None and self.head >= spec.num_heads:
            last = spec.num_heads - 1
            raise SpecError("head", f"head is {self.head}: heads count from 0, so give 0 to {last}, or all")


class Viewport(msgspec.Struct, frozen=True, kw_only=True):
    """What is on the screen: a window of cells, the pixels of one panel, the heads in the order they are wanted.

    ``rows`` and ``cols`` are half-open cell ranges, None for the whole map. ``pixels`` is (height, width) of a
    panel. ``heads`` None means all in order. ``thumbnail`` is the side in pixels of each stage's thumbnail, 0 for none.
    """

    pixels: tuple[int, int] = (512, 512)
    rows: tuple[int, int] | None = None
    cols: tuple[int, int] | None = None
    heads: tuple[int, ...] | None = None
    thumbnail: int = 0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One picture asked for. Frames carry ``generation`` back; another generation's are dropped."""

    spec: AttentionSpec
    view: View
    viewport: Viewport
    generation: int


# ------------------------------------------------------------------------------------------------------------- JSON

_NUMBERS: Final = frozenset({"scores", "values", "weights"})
_INFINITIES: Final = {"-inf": -math.inf}


def to_json(spec: AttentionSpec, view: View | None = None, *, indent: int = 2) -> str:
    """JSON text with every field of ``spec``, and ``view`` beside them; −∞ is the string "-inf"."""
    builtins = {"version": SPEC_VERSION} | cast(dict[str, Any], msgspec.to_builtins(spec))
    if view is not None:
        builtins["view"] = msgspec.to_builtins(view)
    return json.dumps(_outward(builtins), ensure_ascii=False, allow_nan=False, indent=indent)


def from_json(text: str | bytes) -> tuple[AttentionSpec, View]:
    """Spec and view from `to_json`'s text. Raises `SpecError` for anything else, unknown fields by name."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError("file", f"this is not a spec file (no JSON): {error}") from None
    if not isinstance(fields, dict):
        raise SpecError("file", "this is not a spec file: it holds no JSON object")
    version = fields.pop("version", SPEC_VERSION)
    if not isinstance(version, int):
        raise SpecError("version", f"version is {version!r}: give a whole number")
    view_fields = fields.pop("view", {})
    if not isinstance(view_fields, dict):
        raise SpecError("view", "view is not a JSON object")
    known = (fields, FIELDS), (view_fields, View.__struct_fields__)
    unknown = [name for given, names in known for name in given if name not in names]
    if unknown:
        newer = f"; the file was made by a newer version ({version})" if version > SPEC_VERSION else ""
        raise SpecError(unknown[0], f"unknown field {', '.join(map(repr, unknown))}{newer}")
    if version > SPEC_VERSION:
        raise SpecError(
            "version", f"this file was made by a newer version ({version}); this program reads up to {SPEC_VERSION}"
        )
    source = _convert(AnySource, _inward(fields.pop("source", {"kind": "lesson"})))
    spec = make_spec(source, **fields)
    view = _convert(View, view_fields)
    view.check(spec)
    return spec, view


def _outward(value: Any) -> Any:
    if isinstance(value, float) and value == -math.inf:
        return "-inf"
    if isinstance(value, dict):
        return {key: _outward(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_outward(item) for item in value]
    return value


def _inward(source: Any) -> Any:
    """Put −∞ back where a source holds numbers; a token or a text "-inf" stays as it is."""

    def numbers(value: Any) -> Any:
        if isinstance(value, list):
            return [numbers(item) for item in value]
        return _INFINITIES.get(value, value) if isinstance(value, str) else value

    if not isinstance(source, dict):
        return source
    return {key: numbers(item) if key in _NUMBERS else item for key, item in source.items()}


# ----------------------------------------------------------------------------------------------------------- checks


def _convert(kind: Any, fields: Any) -> Any:
    """``fields`` as ``kind``; msgspec's complaints become `SpecError` with the field's name."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SpecError):
            raise error.__cause__ from None
        path = re.search(r"`\$\.?([^`]*)`", str(error))
        field = (path.group(1) if path else "") or "source"
        value = fields.get(field) if isinstance(fields, dict) else None
        said = "" if value is None else f" is {value!r}"
        choices = CHOICES.get(field)
        words = f"give {', '.join(choices)}" if choices else str(error).split(" - at ")[0]
        raise SpecError(field.split(".")[0].split("[")[0], f"{field}{said}: {words}") from None


def _check_range(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise SpecError(field, f"{field} is {value}: give a whole number from {low} to {high:,}")


def _check_matrix(field: str, matrix: Matrix, *, allow_neg_inf: bool = False) -> int:
    """Number of columns of a small finite rectangle of numbers, or `SpecError`."""
    width = len(matrix[0]) if matrix else 0
    if width == 0:
        raise SpecError(field, f"{field} is empty: give rows of numbers, such as 1 0; 0 1")
    for row, numbers in enumerate(matrix):
        if len(numbers) != width:
            raise SpecError(
                field, f"{field} has {len(numbers)} numbers in row {row} but {width} in row 0: give as many in each"
            )
        for number in numbers:
            if not (math.isfinite(number) or (allow_neg_inf and number == -math.inf)):
                also = " or -inf" if allow_neg_inf else ""
                raise SpecError(field, f"{field} has {number} in row {row}: give finite numbers{also}")
    if max(len(matrix), width) > MAX_TYPED_TOKENS:
        raise SpecError(
            field, f"{field} is {len(matrix)} x {width}: a typed matrix has at most {MAX_TYPED_TOKENS} tokens"
        )
    return width


def _check_token_names(tokens: tuple[str, ...], keys: int) -> None:
    if tokens and len(tokens) != keys:
        raise SpecError("tokens", f"tokens has {len(tokens)} names, but there are {keys} keys: one name a key")
