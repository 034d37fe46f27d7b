"""Rows of pixels: bins of keys, pooled over the rows of each pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnviz.attention.bins import Bins
from attnviz.frames import CellClass

FACTORS: Final = ("plain", "uniform", "per-row")
"""What a row may be multiplied by before its pixels are pooled: nothing, its visible keys, or one over its largest."""


@dataclass(frozen=True, slots=True, eq=False)
class PixelRows:
    """What a block of bins makes of the pixels (P, bins) that it touches, on the CPU.

    ``left`` is their first column of pixels. ``top`` (factors, P, bins) is the largest cell, ``total`` the sum, after
    each row factor; ``sets`` uint8 (P, bins) the classes, ``heights`` (P,) how many rows came together. ``sound`` bool
    (P, rows of each) where some row is NaN throughout; None: all are numbers. ``highs`` are the largest finite pixel
    after each factor.
    """

    rows: range
    left: int
    top: Tensor
    total: Tensor
    sets: Tensor
    heights: npt.NDArray[np.intp]
    sound: Tensor | None
    highs: list[float]

    @property
    def n_bins(self) -> int:
        return self.top.shape[2]

    @classmethod
    def of(cls, bins: Bins, factors: Sequence[Tensor], *, means: bool) -> PixelRows:
        """Pool ``bins``, whose rows are those of whole rows of pixels, part of one, or (a preview) one of each.

        ``factors`` are (rows,) for all of `FACTORS` but the first. Without ``means`` there are sums for no factor but
        the first.
        """
        n_rows = len(bins.rows)
        group = 1 if bins.rows.step > 1 else min(n_rows, bins.level)
        n_pixels = -(-n_rows // group)
        short = n_pixels * group - n_rows
        sound = None if bins.sound is None else _grouped(bins.sound[None], group, short, True)[0]
        one, sums = _grouped(bins.top, group, short, -math.inf), _grouped(bins.total, group, short, 0.0)
        if sound is not None:
            one, sums = (torch.where(sound, plane, math.nan) for plane in (one, sums))
        tops, totals = [one.amax(2).t()], [sums.sum(2).t()]
        for factor in factors:
            times = _grouped(factor[None], group, short, 1.0)
            tops.append((one * times).amax(2).t())
            if means:
                totals.append((sums * times).sum(2).t())
        top, total = torch.stack(tops).cpu(), torch.stack(totals).cpu()
        sets = bins.sets
        if sets.shape[1] == n_rows:
            sets = _any_bits(_grouped(sets, group, short, 0), sound)
        heights = np.full(n_pixels, group)
        heights[-1] -= short
        finite = top if sound is None else torch.where(torch.isfinite(top), top, -math.inf)
        highs = finite.flatten(1).amax(1).tolist() if finite.numel() else []
        known = None if sound is None else sound.cpu()
        return cls(bins.rows, bins.left // bins.level, top, total, sets.t().cpu(), heights, known, highs)


def _grouped(plane: Tensor, group: int, short: int, value: float) -> Tensor:
    """(bins, rows) as (bins, pixel rows, group), the last group filled up with ``value``."""
    if short:
        filler = torch.full((plane.shape[0], short), value, dtype=plane.dtype, device=plane.device)
        plane = torch.cat((plane, filler), 1)
    return plane.reshape(plane.shape[0], plane.shape[1] // group, group)


def _any_bits(sets: Tensor, sound: Tensor | None) -> Tensor:
    """Union (bins, pixel rows) of the classes of each group; rows that are not sound are NaN alone."""
    if sound is not None:
        sets = torch.where(sound, sets, int(CellClass.NAN)).to(torch.uint8)
    if sets.shape[2] == 1:
        return sets[..., 0]
    union = torch.zeros(sets.shape[:2], dtype=torch.uint8, device=sets.device)
    for kind in CellClass:
        union |= (sets & int(kind)).amax(2)
    return union
