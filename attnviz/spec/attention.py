"""The frozen, checked description of one attention computation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import msgspec

from attnviz.spec.checks import SpecError, check_range, convert
from attnviz.spec.fills import LARGEST
from attnviz.spec.shapes import AnyShape, Causal
from attnviz.spec.sources import MAX_TOKENS, AnySource, Lesson, default_fill, fixed_by, has_module

MAX_HEADS: Final = 1024
MAX_SEED: Final = (1 << 63) - 1
DEFAULT_D_HEAD: Final = 64

MaskMode = Literal["none", "three-step", "neg-inf", "multiply", "add"]
_BEFORE_SOFTMAX: Final[tuple[MaskMode, ...]] = ("none", "neg-inf", "add")  # those that go with top_k
Projection = Literal["linear", "rand", "none"]
Implementation = Literal["stacked", "split"]
DropoutSite = Literal["weights", "context"]
DropoutGenerator = Literal["portable", "torch"]
DType = Literal["float64", "float32", "float16", "bfloat16"]

CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "mask": get_args(MaskMode),
        "projection": get_args(Projection),
        "implementation": get_args(Implementation),
        "dropout_site": get_args(DropoutSite),
        "dropout_generator": get_args(DropoutGenerator),
        "dtype": get_args(DType),
    }
)
"""The values of every field of a spec that has a fixed list of them."""


class AttentionSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attention computation, complete and checked. Build it with `make_spec`, change it with `edited`.

    ``d_out`` is the total over all heads for both implementations. ``d_model`` and ``d_out`` are None where the
    source has no projections. ``num_kv_heads`` key/value heads are shared by as many query heads each. ``projection``
    says what makes queries, keys and values of the inputs: ``nn.Linear``, a right-multiplied ``torch.rand(d_in,
    d_out)``, or nothing (they are the inputs). ``soft_cap`` c bends scaled scores to c · tanh(s / c).

    ``mask`` *multiply* takes the future away after the softmax and never divides: a mistake, to be looked at. ``fill``
    is what *neg-inf* writes over hidden scores and *add* adds to them; the other mask modes leave it aside. It is kept
    as it was given, and the dtype makes of it what it can hold: in float16 −10⁹ is −∞ (`fill_words` says so).
    ``top_k`` k keeps the k largest of each row's visible scores, and those that equal the k-th; the rest of the
    visible ones are filled with −∞ and count as masked. Raises `SpecError` for a combination that cannot be computed.
    """

    source: AnySource
    num_heads: int
    num_kv_heads: int
    d_model: int | None
    d_out: int | None
    implementation: Implementation
    out_proj: bool
    qkv_bias: bool
    projection: Projection = "linear"
    scale: Literal["auto", "none"] | float
    scale_after_mask: bool
    soft_cap: float | None
    mask: MaskMode
    fill: float
    mask_shape: AnyShape
    top_k: int | None = None
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
        check_range("num_heads", self.num_heads, 1, MAX_HEADS)
        check_range("num_kv_heads", self.num_kv_heads, 1, self.num_heads)
        if self.num_heads % self.num_kv_heads:
            raise SpecError(
                "num_kv_heads",
                f"num_kv_heads is {self.num_kv_heads}, which {self.num_heads} heads cannot share evenly: "
                f"give a number that divides {self.num_heads}",
            )
        check_range("batch", self.batch, 1, 4096)
        check_range("seed", self.seed, 0, MAX_SEED)
        check_range("dropout_seed", self.dropout_seed, 0, MAX_SEED)
        if not 0 <= self.dropout < 1:  # NaN fails this too
            raise SpecError(
                "dropout",
                f"dropout is {self.dropout:g}: give a probability from 0 up to, but not including, 1 "
                "(at 1 nothing would be left)",
            )
        if isinstance(self.scale, float | int) and not math.isfinite(self.scale):
            raise SpecError("scale", f"scale is {self.scale}: give a finite number, auto or none")
        if math.isnan(self.fill) or self.fill > LARGEST[self.dtype]:
            raise SpecError(
                "fill", f"fill is {self.fill:g}: give -inf or a finite number that {self.dtype} holds, such as -1e4"
            )
        if self.soft_cap is not None:
            if not (math.isfinite(self.soft_cap) and self.soft_cap > 0):
                raise SpecError("soft_cap", f"soft_cap is {self.soft_cap:g}: give a number above 0, such as 50")
            if self.scale_after_mask:
                raise SpecError(
                    "soft_cap", "soft_cap bends scaled scores before the mask: it cannot be used with scale_after_mask"
                )
        if not re.fullmatch(r"cpu|mps|cuda:\d{1,3}", self.device):
            hint = "write cuda:0" if self.device == "cuda" else "give cpu, mps or cuda:N such as cuda:0"
            raise SpecError("device", f"device is {self.device!r}: {hint}")
        for field, fixed in fixed_by(self.source).items():
            value = getattr(self, field)
            if value != fixed.value:
                instead = "has none" if fixed.value is None else f"fixes it at {fixed.value}"
                raise SpecError(field, f"{field} is {value}, but this source {instead}: {fixed.reason}")
        self._check_projection()
        self._check_sizes()
        self._check_top_k()

    def _check_sizes(self) -> None:
        for field in ("d_model", "d_out"):
            value = getattr(self, field)
            if value is not None:
                check_range(field, value, 1, 1 << 20)
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

    def _check_projection(self) -> None:
        if self.projection == "linear":
            return
        for field in ("out_proj", "qkv_bias"):
            if getattr(self, field):
                raise SpecError(
                    field,
                    f"{field} belongs to projections of nn.Linear, but projection is {self.projection}: leave it off",
                )
        if self.projection == "none":
            if self.num_heads > 1:
                raise SpecError(
                    "num_heads", f"num_heads is {self.num_heads}, but without projections there is one head: give 1"
                )
            if self.d_out != self.d_model:
                raise SpecError(
                    "d_out",
                    f"d_out is {self.d_out}, but without projections the values are the inputs: give {self.d_model}",
                )

    def _check_top_k(self) -> None:
        if self.top_k is None:
            return
        check_range("top_k", self.top_k, 1, MAX_TOKENS)
        if self.mask not in _BEFORE_SOFTMAX:
            raise SpecError(
                "top_k",
                f"top_k is {self.top_k}, but the {self.mask} mask acts after the softmax: "
                "take the mask none, neg-inf or add, or leave top_k out",
            )

    @property
    def d_head(self) -> int | None:
        """Dimensions per head, or None where the source has no projections."""
        return None if self.d_out is None else self.d_out // self.num_heads

    @property
    def drops(self) -> bool:
        """Whether dropout acts: in training, with p > 0."""
        return self.training and self.dropout > 0

    @property
    def fills(self) -> bool:
        """Whether ``fill`` acts: written over hidden scores, or added to them."""
        return self.mask in ("neg-inf", "add")


FIELDS: Final[tuple[str, ...]] = AttentionSpec.__struct_fields__


def make_spec(source: AnySource | None = None, **given: Any) -> AttentionSpec:
    """A complete spec from what is given; everything else takes the defaults of its source.

    Raises `SpecError` for an unknown field, a wrong type or a combination that cannot be computed.
    """
    source = Lesson() if source is None else source
    _check_fields(given)
    fixed = {field: f.value for field, f in fixed_by(source).items()}
    bare = given.get("projection") == "none" and has_module(source)
    heads = given.get("num_heads", fixed.get("num_heads", 1 if bare else 2))
    implementation = given.get("implementation", "stacked")
    wide = DEFAULT_D_HEAD * heads if isinstance(heads, int) else None
    journey = source == Lesson(name="journey")
    defaults: dict[str, Any] = {
        "num_heads": heads,
        "num_kv_heads": heads,
        "d_model": wide,
        "d_out": 4 if journey else wide,
        "implementation": "stacked",
        "out_proj": implementation == "split" and given.get("projection", "linear") == "linear",
        "qkv_bias": False,
        "projection": "linear",
        "scale": "auto",
        "scale_after_mask": False,
        "soft_cap": None,
        "mask": "neg-inf",
        "fill": default_fill(source),
        "mask_shape": Causal(),
        "top_k": None,
        "dropout": 0.0,
        "dropout_site": "weights",
        "dropout_seed": given.get("seed", fixed.get("seed", 123)),
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
    if bare and "d_out" not in given:
        fields["d_out"] = fields["d_model"]
    for field in ("dropout", "fill"):
        if isinstance(fields[field], int) and not isinstance(fields[field], bool):
            try:
                fields[field] = float(fields[field])
            except OverflowError:
                raise SpecError(field, f"{field} is a number of too many digits: give a smaller one") from None
    spec: AttentionSpec = convert(AttentionSpec, {"source": source, **fields}, CHOICES)
    return spec


def _check_fields(given: Iterable[str]) -> None:
    for field in given:
        if field not in FIELDS:
            raise SpecError(field, f"{field!r} is not a field of a spec: the fields are {', '.join(FIELDS)}")


def edited(spec: AttentionSpec, **changes: Any) -> AttentionSpec:
    """``spec`` with ``changes``; what followed a changed field by default goes on following it.

    Another number of heads keeps the dimensions per head, another seed moves a dropout seed equal to it, another
    implementation takes its own default output projection, and without projections there is one head as wide as the
    inputs. Another ``mask``, given without a ``top_k``, drops one that it cannot have: a mask is never refused for it.
    Another source is `make_spec`'s job.
    """
    _check_fields(changes)
    if "mask" in changes and "top_k" not in changes and changes["mask"] not in _BEFORE_SOFTMAX:
        changes = {**changes, "top_k": None}
    fields = {field: getattr(spec, field) for field in FIELDS} | changes
    if "source" in changes:
        fixed, was_fixed = fixed_by(changes["source"]), fixed_by(spec.source)
        follow = {"num_kv_heads", "d_out"} if "num_heads" in changes else set()  # what follows the number of heads
        kept = {
            f: v
            for f, v in fields.items()
            if f not in fixed and (f in changes or (f not in was_fixed and f not in follow))
        }
        kept.pop("source")
        if kept.get("projection") == "none" and has_module(changes["source"]):
            kept = {f: v for f, v in kept.items() if f in changes or f not in ("num_heads", "num_kv_heads", "d_out")}
        if "fill" not in changes and spec.fill == default_fill(spec.source):
            kept.pop("fill", None)
        if "dropout_seed" not in changes and spec.dropout_seed == spec.seed:
            kept.pop("dropout_seed", None)
        return make_spec(changes["source"], **kept)
    changes = {**_following_projection(spec, changes), **changes}
    fields |= changes
    heads = changes.get("num_heads")
    if isinstance(heads, int) and "d_out" not in changes and spec.d_head is not None:  # else it is refused below
        fields["d_out"] = spec.d_head * heads
    if isinstance(heads, int) and "num_kv_heads" not in changes:
        same = spec.num_kv_heads == spec.num_heads or heads % spec.num_kv_heads
        fields["num_kv_heads"] = heads if same else spec.num_kv_heads
    if "seed" in changes and "dropout_seed" not in changes and spec.dropout_seed == spec.seed:
        fields["dropout_seed"] = changes["seed"]
    by_default = spec.out_proj == (spec.implementation == "split" and spec.projection == "linear")
    if {"implementation", "projection"} & set(changes) and "out_proj" not in changes and by_default:
        fields["out_proj"] = fields["implementation"] == "split" and fields["projection"] == "linear"
    changed: AttentionSpec = convert(AttentionSpec, fields, CHOICES)
    return changed


def _following_projection(spec: AttentionSpec, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What no projections ask for, where ``changes`` take them away or make the inputs wider."""
    if changes.get("projection", spec.projection) != "none" or not has_module(spec.source):
        return {}
    if "projection" in changes:
        return {"num_heads": 1, "num_kv_heads": 1, "d_out": changes.get("d_model", spec.d_model), "qkv_bias": False}
    return {"d_out": changes["d_model"]} if "d_model" in changes else {}
