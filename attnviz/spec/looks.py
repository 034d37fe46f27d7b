"""What is looked at: the view of a spec, the pixels there are, and the request that binds them to a generation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import msgspec

from attnviz.spec.attention import AttentionSpec, DropoutSite
from attnviz.spec.checks import SpecError, convert
from attnviz.spec.stages import stages_of

Norm = Literal["auto", "linear", "log", "uniform", "per-head", "per-row", "percentile", "unit"]
Pooling = Literal["max", "mean", "share"]
Colours = Literal["viridis", "cividis", "magma", "inferno", "greys"]

CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "norm": get_args(Norm),
        "pooling": get_args(Pooling),
        "colours": get_args(Colours),
    }
)
"""The values of every field of a view that has a fixed list of them."""

LINES: Final[Mapping[str, str]] = MappingProxyType({"rows": "rows", "cols": "columns"})
"""What a view's ranges are of, in words."""


def check_span(field: str, span: tuple[int, int] | None) -> None:
    """Raise `SpecError` unless ``span`` of ``field``, a key of `LINES`, is a range of cells, or None for all."""
    if span is None:
        return
    said = f"{field} is {span[0]}:{span[1]}"
    if min(span) < 0:
        raise SpecError(field, f"{said}: {LINES[field]} count from 0, so give first:end such as 0:64")
    if span[0] >= span[1]:
        beyond = f"{span[0]}:{span[0] + 1}"
        raise SpecError(field, f"{said}: the end must lie beyond the start, such as {beyond}")


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of a computation is looked at, and how it is coloured.

    ``head`` None means all heads. ``rows`` and ``cols`` are half-open ranges of cells, None for the whole map.
    ``pooling`` says what a pixel of several cells shows: their maximum, their mean, or the *share* of its row's mass
    that falls on its columns (the mean × its number of columns).
    """

    stage: str = "weights"
    head: int | None = None
    rows: tuple[int, int] | None = None
    cols: tuple[int, int] | None = None
    pooling: Pooling = "max"
    norm: Norm = "auto"
    colours: Colours = "viridis"

    def __post_init__(self) -> None:
        if self.head is not None and self.head < 0:
            raise SpecError("head", f"head is {self.head}: heads count from 0; give a head or all")
        check_span("rows", self.rows)
        check_span("cols", self.cols)

    def check(self, spec: AttentionSpec) -> None:
        """Raise `SpecError` where ``spec`` lacks this stage or head."""
        names = stages_of(spec)
        if self.stage not in names:
            lacks = f"stage is {self.stage!r}, which this spec lacks: it has {', '.join(names)}"
            raise SpecError("stage", lacks + _what_makes(self.stage, spec))
        if self.head is not None and self.head >= spec.num_heads:
            last = spec.num_heads - 1
            raise SpecError("head", f"head is {self.head}: heads count from 0, so give 0 to {last}, or all")


def looked(view: View, spec: AttentionSpec, **changes: Any) -> View:
    """``view`` with ``changes``. Raises `SpecError` for what no view has, and where ``spec`` lacks stage or head."""
    fields = {name: getattr(view, name) for name in View.__struct_fields__} | changes
    changed: View = convert(View, fields, CHOICES)
    changed.check(spec)
    return changed


def _what_makes(stage: str, spec: AttentionSpec) -> str:
    """What to say of a stage that dropout would make."""
    site = stage.removeprefix("dropped_")
    if site == stage or site not in get_args(DropoutSite):
        return ""
    return f"; give dropout_site {site}" if spec.drops else f"; give training and dropout for {stage}"


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
