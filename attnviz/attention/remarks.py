"""What rounding did to the numbers, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from attnviz.spec import AttentionSpec


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
