"""Values and classes to pixels: colour tables, scales, and the fixed looks of cells that hold no ordinary number.

NumPy in, 0xffRRGGBB out; no torch and no Qt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from attnviz.frames import CellClass, Scale, shown_class
from attnviz.spec import QUERY_KEY_STAGES, WEIGHT_STAGES, Norm

Pixels = npt.NDArray[np.uint32]

DIVERGING_TABLE: Final = "balance"
LINEAR_UP_TO_KEYS: Final = 32
"""Maps of more keys take a logarithmic scale by default: a linear one leaves them black."""

UNIFORM: Final = "weight x visible keys"
ROW_SHARE: Final = "share of the row's largest"

GROUNDS: Final[Mapping[CellClass, int]] = MappingProxyType(
    {
        CellClass.NAN: 0xFFFF2FD0,
        CellClass.ZERO: 0xFF86D3DE,
        CellClass.DROPPED: 0xFFCDB0F2,
        CellClass.PADDED: 0xFFC5C9D6,
        CellClass.MASKED: 0xFFEDEDF1,
    }
)
"""The colour of cells that are not ordinary, the same in every theme and table and in none of the tables.

No table comes near them but greys, whose light end is the paper of masked cells. The painter gives masked and padded
cells a ground of its own in the dark style, and draws marks over all of them where cells are large enough.
"""

_NOT_ORDINARY: Final = tuple(GROUNDS)
_TABLE_SIZE: Final = 256
_NOTHING: Final = 1e-300  # a range this short has no room for ticks and colours
_FLOAT32_EXTENTS: Final = 1e-30, 1e37  # over a shorter or a longer range the arithmetic of float32 overflows


def _offsets() -> npt.NDArray[np.uint16]:
    """For each set of classes: 0 where a colour of the table is shown, else the place of its ground behind it."""
    shown = shown_class(np.arange(64, dtype=np.uint8))
    offsets = np.full(64, _TABLE_SIZE + _NOT_ORDINARY.index(CellClass.PADDED), np.uint16)  # no class: nothing there
    offsets[shown == CellClass.ORDINARY] = 0
    for place, kind in enumerate(_NOT_ORDINARY):
        offsets[shown == kind] = _TABLE_SIZE + place
    return offsets


_OFFSETS: Final = _offsets()


@cache
def table(name: str) -> Pixels:
    """The 256 colours of a table, uint32 0xffRRGGBB, read-only; ``name`` is one of `spec.Colours` or "balance"."""
    text = resources.files("attnviz.resources").joinpath("colours", f"{name}.csv").read_text("ascii")
    rows = np.array([line.split(",") for line in text.split()], np.uint32)
    if rows.shape != (_TABLE_SIZE, 3):
        raise ValueError(f"colour table {name} has shape {rows.shape}: {_TABLE_SIZE} lines of r,g,b are wanted")
    pixels = np.uint32(0xFF000000) | rows[:, 0] << np.uint32(16) | rows[:, 1] << np.uint32(8) | rows[:, 2]
    pixels.flags.writeable = False
    return pixels


# ----------------------------------------------------------------------------------------------------------- scales


def choose_scale(
    stage: str, norm: Norm, n_keys: float, low: float, high: float, percentiles: tuple[float, float] | None = None
) -> Scale:
    """The scale for a map whose finite ordinary cells (after the row factor of ``norm``) reach from low to high.

    Weights: *auto* is linear from 0 up to 32 keys and logarithmic from a tenth of 1/n_keys beyond; *per-head* is
    auto over one head's range. Scores: linear from the smaller of 0 and their minimum; *log*, *uniform*, *per-row*
    and *unit* mean nothing for numbers that can be negative, so they are linear too. Other stages: symmetric about
    0. *percentile* takes ``percentiles`` (low, high) in place of the extremes.
    """
    if norm == "percentile" and percentiles is not None:
        low, high = percentiles
    if stage in WEIGHT_STAGES:
        return _weight_scale(norm, n_keys, low, high)
    if stage in QUERY_KEY_STAGES:
        return Scale(*_widened(min(0.0, low), high))
    if stage == "row_sums":
        return Scale(*_widened(0.0, high))
    bound = max(abs(low), abs(high)) or 1.0
    return Scale(-bound, bound, diverging=True)


def _weight_scale(norm: Norm, n_keys: float, low: float, high: float) -> Scale:
    logarithmic = norm == "log" or (norm in ("auto", "per-head", "uniform") and n_keys > LINEAR_UP_TO_KEYS)
    if norm == "unit":
        return Scale(0.0, 1.0)
    if norm == "per-row":
        return Scale(0.0, 1.0, quantity=ROW_SHARE)
    quantity = UNIFORM if norm == "uniform" else "value"
    if logarithmic and high > _NOTHING:
        least = 0.1 if norm == "uniform" else 0.1 / n_keys
        return Scale(min(least, high / 10), high, "log", quantity=quantity)
    start = low if norm == "percentile" else 0.0
    return Scale(*_widened(start, high), quantity=quantity)


def _widened(low: float, high: float) -> tuple[float, float]:
    """A range of some extent: a map of one value only would divide by 0."""
    if high - low > _NOTHING:
        return low, high
    return (low, 0.0) if low < 0 else (low, low + 1.0)


def joint(scales: Iterable[Scale]) -> Scale:
    """One scale for what each of ``scales``, of which there is one at least, has colours for.

    A map of zeros alone has a linear one where others are logarithmic: it adds nothing to theirs.
    """
    known = list(scales)
    known = [scale for scale in known if scale.curve == "log"] or known
    return replace(known[0], low=min(scale.low for scale in known), high=max(scale.high for scale in known))


def positions(values: npt.NDArray[np.floating[Any]], scale: Scale) -> npt.NDArray[np.floating[Any]]:
    """Where ``values`` lie on ``scale``, 0 to 1, same shape; NaN and what is below lie at 0, what is above at 1."""
    low, high = float(scale.low), float(scale.high)
    least, most = _FLOAT32_EXTENTS
    narrow = values.dtype != np.float64 and least <= high - low <= most
    wide = values.astype(np.float32 if narrow else np.float64, copy=False)
    if scale.curve == "linear" and not math.isfinite(high - low):  # longer than any number: a quarter is not
        wide, low, high = np.divide(wide, 4), low / 4, high / 4
    with np.errstate(all="ignore"):
        placed: npt.NDArray[np.floating[Any]]
        if scale.curve == "log":
            placed = np.log(wide)
            low, high = math.log(low), math.log(high)
        else:
            placed = np.array(wide)
        placed -= placed.dtype.type(low)
        placed *= placed.dtype.type(1.0 / (high - low))
        np.fmax(placed, 0, out=placed)
        np.fmin(placed, 1, out=placed)
    return placed


def paint_values(
    values: npt.NDArray[np.floating[Any]],
    classes: npt.NDArray[np.uint8],
    scale: Scale,
    colours: str,
    out: Pixels | None = None,
) -> Pixels:
    """Pixels of ``values`` (r, c) with ``classes`` (r, c) of `CellClass` sets: uint32 (r, c) as 0xffRRGGBB.

    An ordinary value takes the nearest of 256 colours of ``colours`` (of "balance" on a diverging scale), any other
    its ground in `GROUNDS`. Written to ``out`` if given.
    """
    placed = positions(values, scale)
    placed *= _TABLE_SIZE - 1
    placed += 0.5
    places = np.maximum(placed.astype(np.uint16), _OFFSETS[classes])
    return np.take(_palette(_table_name(scale, colours)), places, out=out, mode="clip")


def recoloured(rgb: Pixels, old: Scale, new: Scale, colours: str) -> Pixels:
    """``rgb`` (r, c), coloured by ``old``, as ``new`` colours it, to one of 256 steps; for values that are not kept."""
    ranked, ranks = _ranks(_table_name(old, colours))
    steps = np.linspace(0.0, 1.0, _TABLE_SIZE)[None]
    ends = (math.log(old.low), math.log(old.high)) if old.curve == "log" else (old.low, old.high)
    values = ends[0] * (1 - steps) + ends[1] * steps  # the difference of the ends may be longer than any number
    values = np.exp(values) if old.curve == "log" else values
    changed, first = ranked.copy(), len(_NOT_ORDINARY) - 1
    changed[first : first + _TABLE_SIZE] = paint_values(values, np.ones(values.shape, np.uint8), new, colours)[0]
    found: Pixels = changed[ranks[rgb & np.uint32(0xFFFFFF)]]
    return found


def _table_name(scale: Scale, colours: str) -> str:
    return DIVERGING_TABLE if scale.diverging else colours


@cache
def _palette(name: str) -> Pixels:
    """The table's colours and the grounds behind them."""
    return np.concatenate([table(name), np.array([GROUNDS[kind] for kind in _NOT_ORDINARY], np.uint32)])


def pool_pixels(rgb: Pixels, scale: Scale, colours: str, factor: int) -> Pixels:
    """``rgb`` (r, c) with the brightest of each factor × factor pixels, the last ones partial.

    Brightest in the order in which classes are shown: NaN, then the largest ordinary value, zero, dropped, padded,
    masked. For pictures that have fewer pixels than their frames.
    """
    if factor == 1:
        return rgb
    ranked, ranks = _ranks(_table_name(scale, colours))
    brightest: Pixels = ranked[pooled(ranks[rgb & np.uint32(0xFFFFFF)], factor, np.maximum)]
    return brightest


@cache
def _ranks(name: str) -> tuple[Pixels, npt.NDArray[np.uint16]]:
    """A table's colours and grounds in the order in which they are shown, and the place of each 0xRRGGBB in it.

    The second is large, but the few pages of it that are ever touched are all that it takes of memory.
    """
    order = [_TABLE_SIZE + _NOT_ORDINARY.index(kind) for kind in reversed(_NOT_ORDINARY)]
    ranked = _palette(name)[[*order[:-1], *range(_TABLE_SIZE), order[-1]]]
    ranks = np.zeros(1 << 24, np.uint16)
    ranks[ranked & np.uint32(0xFFFFFF)] = np.arange(len(ranked))
    return ranked, ranks


def pooled(plane: npt.NDArray[Any], factor: int, combine: np.ufunc) -> npt.NDArray[Any]:
    """``combine`` (such as np.maximum) of each factor × factor numbers of ``plane`` (r, c), the last ones partial."""
    for _axis in range(2):
        found = plane[::factor].copy()
        for place in range(1, factor):
            part = plane[place::factor]
            combine(found[: len(part)], part, out=found[: len(part)])
        plane = found.T
    return np.ascontiguousarray(plane)


# -------------------------------------------------------------------------------------------------------- contrasts


def luminance(rgb: int) -> float:
    """Relative luminance of 0xRRGGBB (any alpha), 0 for black to 1 for white, as WCAG 2 defines it."""
    channels = ((int(rgb) >> shift & 0xFF) / 255 for shift in (16, 8, 0))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: int, other: int) -> float:
    """Contrast ratio of two colours, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@lru_cache(maxsize=4096)
def contrast_text(rgb: int) -> Literal["black", "white"]:
    """Which of black and white reads better on ``rgb``."""
    return "black" if contrast(rgb, 0x000000) >= contrast(rgb, 0xFFFFFF) else "white"


# ------------------------------------------------------------------------------------------------------------ ticks


def quantity_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Ticks of a colour bar: places from 0 (lowest colour) to 1, rising, and what stands beside them."""
    if scale.curve == "log":
        return _log_ticks(scale)
    if scale.diverging:
        return [(0.0, number_label(scale.low)), (0.5, "0"), (1.0, number_label(scale.high))]
    unit = 1.0 if math.isfinite(scale.high - scale.low) else 1e10  # of what is longer than any number
    low, high = scale.low / unit, scale.high / unit
    step = _round_step((high - low) / 4)
    first = math.ceil(low / step - 1e-9)
    ticks = [((n * step - low) / (high - low), n * step * unit) for n in range(first, int(high / step + 1e-9) + 1)]
    ticks = [(min(max(place, 0.0), 1.0), value) for place, value in ticks]
    return _with_ends(ticks, scale)


def _log_ticks(scale: Scale) -> list[tuple[float, str]]:
    low, high = math.log10(scale.low), math.log10(scale.high)
    every = max(1, math.ceil((high - low) / 6))
    decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1, every)
    return _with_ends([((decade - low) / (high - low), 10.0**decade) for decade in decades], scale)


def _with_ends(ticks: list[tuple[float, float]], scale: Scale) -> list[tuple[float, str]]:
    """``ticks`` between both ends of the scale; a tick too near to an end gives way to it."""
    inner = [(place, number_label(value)) for place, value in ticks if 0.1 <= place <= 0.9]
    return [(0.0, number_label(scale.low)), *inner, (1.0, number_label(scale.high))]


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((n * power for n in (1, 2, 5) if n * power >= least * (1 - 1e-9)), 10 * power)


def number_label(value: float) -> str:
    """A short number with a true minus sign: "0.25", "−1.5", "1e−5"; two digits, of 100 to 9,999 every whole one."""
    if 99.5 <= abs(value) < 9999.5:
        return tidy_number(f"{value:.0f}")
    return tidy_number(f"{value:.2g}") if value else "0"


def tidy_number(written: str) -> str:
    """A number as `format` writes it, with a short exponent and a true minus sign."""
    return re.sub(r"e(-?)\+?0?", r"e\1", written).replace("-", "−")
