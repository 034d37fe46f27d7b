"""The frozen, checked description of one attention computation."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import msgspec

from attnviz.spec.checks import SpecError, check_range, convert
from attnviz.spec.shapes import AnyShape, Causal
from attnviz.spec.sources import AnySource, Lesson, fixed_by

MAX_HEADS: Final = 1024
MAX_SEED: Final = (1 << 63) - 1
DEFAULT_D_HEAD: Final = 64

MaskMode = Literal["none", "three-step", "neg-inf"]
Implementation = Literal["stacked", "split"]
DropoutSite = Literal["weights", "context"]
DropoutGenerator = Literal["portable", "torch"]
DType = Literal["float64", "float32", "float16", "bfloat16"]

CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "mask": get_args(MaskMode),
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
    source has no projections. ``num_kv_heads`` key/value heads are shared by as many query heads each. ``soft_cap`` c
    bends scaled scores to c · tanh(s / c). ``fill`` is what *neg-inf* writes over hidden scores; the other mask modes
    leave it aside. Raises `SpecError` for a combination that cannot be computed.
    """

    source: AnySource
    num_heads: int
    num_kv_heads: int
    d_model: int | None
    d_out: int | None
    implementation: Implementation
    out_proj: bool
    qkv_bias: bool
    scale: Literal["auto", "none"] | float
    scale_after_mask: bool
    soft_cap: float | None
    mask: MaskMode
    fill: float
    mask_shape: AnyShape
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
        if math.isnan(self.fill) or self.fill > _MOST[self.dtype]:
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
        self._check_sizes()

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

    @property
    def d_head(self) -> int | None:
        """Dimensions per head, or None where the source has no projections."""
        return None if self.d_out is None else self.d_out // self.num_heads

    @property
    def drops(self) -> bool:
        """Whether dropout acts: in training, with p > 0."""
        return self.training and self.dropout > 0


_MOST: Final = {"float64": 1.79e308, "float32": 3.4e38, "bfloat16": 3.38e38, "float16": 65504.0}
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
        "num_kv_heads": heads,
        "d_model": wide,
        "d_out": 4 if journey else wide,
        "implementation": "stacked",
        "out_proj": implementation == "split",
        "qkv_bias": False,
        "scale": "auto",
        "scale_after_mask": False,
        "soft_cap": None,
        "mask": "neg-inf",
        "fill": -math.inf,
        "mask_shape": Causal(),
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
    for field in ("dropout", "fill"):
        if isinstance(fields[field], int) and not isinstance(fields[field], bool):
            fields[field] = float(fields[field])
    spec: AttentionSpec = convert(AttentionSpec, {"source": source, **fields}, CHOICES)
    return spec


def edited(spec: AttentionSpec, **changes: Any) -> AttentionSpec:
    """``spec`` with ``changes``; what followed a changed field by default goes on following it.

    Another number of heads keeps the dimensions per head, another seed moves a dropout seed equal to it, another
    implementation takes its own default output projection. Another source is `make_spec`'s job.
    """
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
        return make_spec(changes["source"], **kept)
    if "num_heads" in changes and "d_out" not in changes and spec.d_head is not None:
        fields["d_out"] = spec.d_head * changes["num_heads"]
    if "num_heads" in changes and "num_kv_heads" not in changes:
        same = spec.num_kv_heads == spec.num_heads or changes["num_heads"] % spec.num_kv_heads
        fields["num_kv_heads"] = changes["num_heads"] if same else spec.num_kv_heads
    if "seed" in changes and "dropout_seed" not in changes and spec.dropout_seed == spec.seed:
        fields["dropout_seed"] = changes["seed"]
    if "implementation" in changes and "out_proj" not in changes and spec.out_proj == (spec.implementation == "split"):
        fields["out_proj"] = changes["implementation"] == "split"
    changed: AttentionSpec = convert(AttentionSpec, fields, CHOICES)
    return changed
