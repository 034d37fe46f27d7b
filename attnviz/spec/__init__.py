"""What goes in: the frozen, checked description of one attention computation and of one look at it.

`AttentionSpec` says what is computed, `View` which part is looked at and how it is coloured, `Viewport` how many
pixels there are, `Request` binds the three to a generation. One schema serves the window, the command line, saved
files and the metadata inside exported pictures. Plain Python: no torch, no NumPy, no Qt.

A spec is *complete*: what follows from other fields (``d_out`` for a text, ``out_proj`` by implementation) is filled
in by `make_spec` and `edited`, so that two equal specs mean the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attnviz.spec import attention, looks
from attnviz.spec.attention import (
    FIELDS,
    MAX_HEADS,
    MAX_SEED,
    AttentionSpec,
    DropoutGenerator,
    DropoutSite,
    DType,
    Implementation,
    MaskMode,
    Projection,
    edited,
    make_spec,
)
from attnviz.spec.checks import MAX_TYPED_DIMS, MAX_TYPED_TOKENS, Matrix, SpecError
from attnviz.spec.fills import fill_words, held
from attnviz.spec.looks import LINES, Colours, Norm, Pooling, Request, View, Viewport, check_span
from attnviz.spec.paper import MAX_PIXELS, MAX_SIDE, MIN_SIDE, THEMES, Paper, Theme, check_size, parse_size
from attnviz.spec.shapes import (
    MAX_DRAWN,
    SHAPE_FORMS,
    AnyShape,
    Blocks,
    Causal,
    Drawn,
    Full,
    MaskFile,
    PadLeft,
    PadRight,
    Prefix,
    SlidingWindow,
    as_drawn,
    check_drawable,
    padded_keys,
    parse_shape,
    shape_text,
    toggled,
    visible_run,
    visible_runs,
)
from attnviz.spec.sources import (
    LESSONS,
    MAX_TOKENS,
    AnySource,
    Fixed,
    Lesson,
    Pattern,
    PatternKind,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    Source,
    Text,
    TypedScores,
    TypedWeights,
    default_fill,
    fixed_by,
    has_bare_qk,
    has_module,
    has_values,
    is_typed,
)
from attnviz.spec.stages import (
    JOINT_STAGES,
    QUERY_KEY_STAGES,
    STAGES,
    UNSIGNED_STAGES,
    WEIGHT_STAGES,
    acts_on_scores,
    lesson_draws,
    masked_at,
    stages_of,
)
from attnviz.spec.text import SPEC_VERSION, from_json, to_json

CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({**attention.CHOICES, **looks.CHOICES})
"""The values of every field that has a fixed list of them."""

__all__ = [
    "CHOICES",
    "FIELDS",
    "JOINT_STAGES",
    "LESSONS",
    "LINES",
    "MAX_DRAWN",
    "MAX_HEADS",
    "MAX_PIXELS",
    "MAX_SEED",
    "MAX_SIDE",
    "MAX_TOKENS",
    "MAX_TYPED_DIMS",
    "MAX_TYPED_TOKENS",
    "MIN_SIDE",
    "QUERY_KEY_STAGES",
    "SHAPE_FORMS",
    "SPEC_VERSION",
    "STAGES",
    "THEMES",
    "UNSIGNED_STAGES",
    "WEIGHT_STAGES",
    "AnyShape",
    "AnySource",
    "AttentionSpec",
    "Blocks",
    "Causal",
    "Colours",
    "DType",
    "Drawn",
    "DropoutGenerator",
    "DropoutSite",
    "Fixed",
    "Full",
    "Implementation",
    "Lesson",
    "MaskFile",
    "MaskMode",
    "Matrix",
    "Norm",
    "PadLeft",
    "PadRight",
    "Paper",
    "Pattern",
    "PatternKind",
    "Pooling",
    "Prefix",
    "Projection",
    "QKFile",
    "RandomEmbeddings",
    "RandomQK",
    "Request",
    "SlidingWindow",
    "Source",
    "SpecError",
    "Text",
    "Theme",
    "TypedScores",
    "TypedWeights",
    "View",
    "Viewport",
    "acts_on_scores",
    "as_drawn",
    "check_drawable",
    "check_size",
    "check_span",
    "default_fill",
    "edited",
    "fill_words",
    "fixed_by",
    "from_json",
    "has_bare_qk",
    "has_module",
    "has_values",
    "held",
    "is_typed",
    "lesson_draws",
    "make_spec",
    "masked_at",
    "padded_keys",
    "parse_shape",
    "parse_size",
    "shape_text",
    "stages_of",
    "to_json",
    "toggled",
    "visible_run",
    "visible_runs",
]
