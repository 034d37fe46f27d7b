"""What rounding did to the numbers, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from attnviz.attention.masks import Mask
from attnviz.attention.stages import acting_fill
from attnviz.spec import AttentionSpec, stages_of


def blind_remarks(spec: AttentionSpec, stage: str, mask: Mask | None) -> tuple[str, ...]:
    """How many rows see no key, and what that makes of them, in words; nothing before the weights of ``spec``.

    ``mask`` is the spec's over all queries and keys, None where it has none.
    """
    names = stages_of(spec)
    blind = 0 if mask is None else int((mask.n_visible() == 0).sum())
    if not blind or names.index(stage) < names.index("weights"):
        return ()
    finite = spec.fills and math.isfinite(acting_fill(spec))
    if spec.mask == "multiply":
        made = "and every weight is 0"
    elif spec.mask == "add" and finite:
        made = "and a finite fill added to every score hides nothing"
    elif finite:
        made = "and a finite fill gives uniform weights, over the future too"
    else:
        made = "and 0/0 gives NaN" if spec.mask == "three-step" else "and −∞ gives NaN"
    return (f"{'1 row sees' if blind == 1 else f'{blind:,} rows see'} no key: there is nothing to share out, {made}.",)


def rounding_remarks(spec: AttentionSpec, sums: Sequence[Tensor]) -> tuple[str, ...]:
    """What three-step's own arithmetic did to the numbers, in words: NaN rows, and rows that lost digits.

    ``sums`` holds each head's row sums before the division; there are none for other masks.
    """
    limits = torch.finfo(getattr(torch, spec.dtype))
    empty = sum(int((s == 0).sum()) for s in sums)
    faint = sum(int(((s > 0) & (s < limits.tiny)).sum()) for s in sums)
    lead = -(math.log(limits.smallest_normal) + math.log(limits.eps / 2))  # their product is 0 in float64
    remarks = []
    if empty:
        first = min(int((row_sums[:, 0] == 0).nonzero()[0]) for row_sums in sums if (row_sums == 0).any())
        remarks.append(
            f"{_rows(empty)} NaN (row {first} first): a future score leads the visible ones by more than {lead:.1f}, "
            f"so in {spec.dtype} every visible weight became 0 before the division, and 0/0 is no number. "
            "The −∞ mask has no such limit."
        )
    if faint:
        remarks.append(
            f"{_rows(faint)} short of digits: a future score leads so far that the visible weights fell below "
            f"{limits.tiny:.2g} before the division, where {spec.dtype} keeps only a few digits. "
            "The −∞ mask keeps them all."
        )
    return tuple(remarks)


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"
