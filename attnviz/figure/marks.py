"""What is written into and around a picture: numbers in cells, stage names, captions and the legend's counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from attnviz import colour
from attnviz.figure import labels
from attnviz.frames import CellClass, Crop, Frame, Scale
from attnviz.session import Picture
from attnviz.spec import (
    QUERY_KEY_STAGES,
    UNSIGNED_STAGES,
    WEIGHT_STAGES,
    AttentionSpec,
    Causal,
    Drawn,
    MaskFile,
    View,
    shape_text,
    stages_of,
    was_given,
)
from attnviz.spec.fills import number_words

PERCENT_UP_TO_KEYS: Final = labels.PERCENT_UP_TO_KEYS
BARE: Final = "bare "
DIGITS_UP_TO: Final = 1e15
"""Where the digits of float64 reach the point: what is larger is told as 1.7e308."""
_SUM_TOLERANCE = 0.005

_STAGE_TITLES: Final = {
    "inputs": QT_TRANSLATE_NOOP("Figure", "inputs"),
    "queries": QT_TRANSLATE_NOOP("Figure", "queries"),
    "keys": QT_TRANSLATE_NOOP("Figure", "keys"),
    "values": QT_TRANSLATE_NOOP("Figure", "values"),
    "scores": QT_TRANSLATE_NOOP("Figure", "scores: each query times each key"),
    "scaled_scores": QT_TRANSLATE_NOOP("Figure", "scaled scores"),
    "masked_scores": QT_TRANSLATE_NOOP("Figure", "scores with the future hidden"),
    "weights": QT_TRANSLATE_NOOP("Figure", "weights after softmax"),
    "unmasked_weights": QT_TRANSLATE_NOOP("Figure", "softmax over everything"),
    "unnormalised_weights": QT_TRANSLATE_NOOP("Figure", "weights times the triangle, not yet divided"),
    "row_sums": QT_TRANSLATE_NOOP("Figure", "row sums"),
    "dropped_weights": QT_TRANSLATE_NOOP("Figure", "weights after dropout"),
    "context": QT_TRANSLATE_NOOP("Figure", "context: weights times values"),
    "dropped_context": QT_TRANSLATE_NOOP("Figure", "context after dropout"),
    "joined": QT_TRANSLATE_NOOP("Figure", "heads joined"),
    "output": QT_TRANSLATE_NOOP("Figure", "output"),
}
_AFTER_SOFTMAX: Final = {
    "three-step": QT_TRANSLATE_NOOP("Figure", "weights, each row divided again"),
    "multiply": QT_TRANSLATE_NOOP("Figure", "weights times the triangle"),
}
_MASK_WORDS: Final = {
    "none": QT_TRANSLATE_NOOP("Figure", "no mask"),
    "three-step": QT_TRANSLATE_NOOP("Figure", "three-step mask"),
    "neg-inf": QT_TRANSLATE_NOOP("Figure", "−∞ mask"),
    "multiply": QT_TRANSLATE_NOOP("Figure", "× triangle, never divided"),
    "add": QT_TRANSLATE_NOOP("Figure", "added mask of −∞"),
}


def tr(text: object) -> str:
    """``text`` in the window's language; each text stands in a QT_TRANSLATE_NOOP or a call of translate."""
    return QCoreApplication.translate("Figure", str(text))


# ---------------------------------------------------------------------------------------------------------- numbers


def cell_number(value: float, decimals: int, *, bare: bool = True) -> str:
    """``value`` with ``decimals`` digits and no leading zero: ".48", "−1.25", "−∞"; 0 and 1 without any if ``bare``."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) >= DIGITS_UP_TO:
        return colour.number_label(value)
    if value in (0, 1) and bare:
        return f"{value:.0f}"
    text = f"{abs(value):.{decimals}f}"
    return ("−" if value < 0 else "") + text.removeprefix("0" if "." in text else "")


def percentage(value: float) -> str:
    """A weight as a whole percentage; one that is not quite 0 or 1 is not shown as if it were."""
    if 0 < value < 0.005:
        return "< 1 %"
    if 0.995 <= value < 1:
        return "> 99 %"
    return f"{100 * value:.0f} %"


def formats(frame: Frame, decimals: int | None, n_shown: int) -> Iterator[str]:
    """Ways to write this frame's numbers, the first to try first: "%", "short" (2e−5) or a number of decimals."""
    if decimals is not None:
        yield str(decimals)
        return
    share = frame.stage in WEIGHT_STAGES and frame.stage != "dropped_weights"  # what dropout enlarges may be no share
    if share and n_shown <= PERCENT_UP_TO_KEYS:
        yield "%"
    if frame.scale.curve == "log":
        yield "short"  # on a scale of decades most numbers are 0 to two decimals
    yield "2"


def formatted(value: float, way: str) -> str:
    """``value`` in one of the ways of `formats`, or with `BARE` and the decimals, where 0 and 1 have none."""
    if way == "%":
        return percentage(value)
    if way == "short":
        return cell_number(value, 2) if abs(value) >= 0.005 or value == 0 else _power(value)
    if way.startswith(BARE):
        return cell_number(value, int(way.removeprefix(BARE)))
    return cell_number(value, int(way), bare=False)


def _power(value: float) -> str:
    """One digit and a power of ten: "3e−5"."""
    return f"{value:.0e}".replace("e-0", "e-").replace("-", "−")


def row_sum(value: float) -> tuple[str, bool]:
    """A row's sum in two decimals, and whether it is 1 as far as these show it."""
    return ("NaN", False) if math.isnan(value) else (f"{value:.2f}", abs(value - 1) <= _SUM_TOLERANCE)


def exact_value(value: float | None, kind: CellClass | None) -> str:
    """A cell's number in four digits, or what it is in words where it is no number; "…" while it is computed."""
    if value is None or kind is None:
        return "…"
    words = {
        CellClass.MASKED: QCoreApplication.translate("Figure", "masked"),
        CellClass.DROPPED: QCoreApplication.translate("Figure", "dropped"),
        CellClass.PADDED: QCoreApplication.translate("Figure", "padded"),
        CellClass.ZERO: QCoreApplication.translate("Figure", "exactly 0"),
        CellClass.NAN: "NaN",
    }.get(kind)
    return words or f"{value:.4g}".replace("-inf", "−∞").replace("-", "−")


# ------------------------------------------------------------------------------------------------------------ words


def stage_title(stage: str, mask: str = "") -> str:
    """A stage's name in words; of weights that a mask after the softmax makes, that ``mask``'s."""
    if stage == "weights" and mask in _AFTER_SOFTMAX:
        return tr(_AFTER_SOFTMAX[mask])
    return tr(_STAGE_TITLES.get(stage, stage))


def panel_title(frame: Frame | None, panel: str) -> str:
    """A head by its number, or the stage's name where all heads share one panel."""
    if panel.startswith("head:"):
        return QCoreApplication.translate("Figure", "head {0}").format(panel.removeprefix("head:"))
    return stage_title(frame.stage) if frame is not None else ""


def mask_words(spec: AttentionSpec) -> list[str]:
    """What is hidden and how, in words: the mode with its fill, a shape other than the triangle, top-k."""
    words = [tr(_MASK_WORDS[spec.mask])]
    if spec.fills and spec.fill != -math.inf:
        plain = QCoreApplication.translate("Figure", "added mask of {0}")
        filled = QCoreApplication.translate("Figure", "fill {0}")
        words = [(plain if spec.mask == "add" else filled).format(number_words(spec.fill))]
    if spec.mask != "none":
        match spec.mask_shape:
            case Causal():
                pass
            case Drawn():
                words.append(QCoreApplication.translate("Figure", "drawn by hand"))
            case MaskFile(path=path) if was_given(path):
                words.append(QCoreApplication.translate("Figure", "shape given in Python"))
            case MaskFile(path=path):
                words.append(QCoreApplication.translate("Figure", "shape of {0}").format(PurePath(path).name))
            case shape:
                words.append(QCoreApplication.translate("Figure", "shape {0}").format(shape_text(shape)))
    if spec.top_k is not None:
        words.append(f"top-k {spec.top_k}")
    return words


def circumstances(spec: AttentionSpec, stage: str = "") -> str:
    """Mask, dropout and sizes in one line: the settings that decide what a picture shows, which is of ``stage``."""
    parts = mask_words(spec)
    if spec.soft_cap is not None:
        parts.append(QCoreApplication.translate("Figure", "soft cap {0}").format(f"{spec.soft_cap:g}"))
    names, drops = stages_of(spec), f"dropped_{spec.dropout_site}"
    if spec.drops and stage in names and drops in names[names.index(stage) + 1 :]:
        words = QCoreApplication.translate("Figure", "dropout {0} on {1} acts after this stage")
        parts.append(words.format(f"{spec.dropout:g}", spec.dropout_site))
    elif spec.drops:
        words = QCoreApplication.translate("Figure", "dropout {0} on {1}, seed {2} ({3})")
        parts.append(words.format(f"{spec.dropout:g}", spec.dropout_site, spec.dropout_seed, spec.dropout_generator))
    elif spec.dropout > 0:
        parts.append(QCoreApplication.translate("Figure", "inference: dropout off"))
    heads = QCoreApplication.translate("Figure", "1 head") if spec.num_heads == 1 else ""
    parts.append(heads or QCoreApplication.translate("Figure", "{0} heads").format(spec.num_heads))
    if spec.num_kv_heads != spec.num_heads:
        parts.append(QCoreApplication.translate("Figure", "{0} of keys and values").format(spec.num_kv_heads))
    if spec.d_head is not None:
        parts.append(f"d_head {spec.d_head}")
    parts.append(spec.dtype)
    return " · ".join(parts)


def pixel_words(level: int, pooling: str, *, signed: bool = False) -> str:
    """What a pixel shows that covers level × level cells, whose numbers may be ``signed``."""
    if pooling == "mean":
        return QCoreApplication.translate("Figure", "mean of {0} × {0} cells").format(level)
    if pooling == "share":
        return QCoreApplication.translate("Figure", "share of the row's mass, {0} keys wide").format(level)
    if signed:
        return QCoreApplication.translate("Figure", "furthest from 0 of {0} × {0} cells").format(level)
    return QCoreApplication.translate("Figure", "brightest of {0} × {0} cells").format(level)


def crop_words(crop: Crop, stage: str) -> str:
    """Such as "queries 1,024–2,047 × keys 0–1,023 of 131,072"; both lengths where they differ."""
    n_rows, n_cols = crop.shape
    if stage not in QUERY_KEY_STAGES:
        words = QCoreApplication.translate("Figure", "tokens {0} of {1} × dimensions {2} of {3}")
    elif n_rows == n_cols:
        words = QCoreApplication.translate("Figure", "queries {0} × keys {2} of {3}")
    else:
        words = QCoreApplication.translate("Figure", "queries {0} of {1} × keys {2} of {3}")
    return words.format(_span_words(crop.rows), f"{n_rows:,}", _span_words(crop.cols), f"{n_cols:,}")


def _span_words(span: tuple[int, int]) -> str:
    first, last = f"{span[0]:,}", f"{span[1] - 1:,}"
    return first if first == last else f"{first}–{last}"


def axes_caption(stage: str, level: int, pooling: str = "max") -> str:
    """What rows and columns are, and what a pixel is where it covers several cells."""
    if stage in QUERY_KEY_STAGES:
        caption = QCoreApplication.translate("Figure", "row = who asks, column = who is looked at")
    else:
        caption = QCoreApplication.translate("Figure", "row = token, column = dimension")
    return f"{caption} · {pixel_words(level, pooling, signed=stage not in UNSIGNED_STAGES)}" if level > 1 else caption


def scale_caption(stage: str, scale: Scale, view: View) -> str:
    """What the colour bar measures, and how."""
    if scale.quantity == colour.UNIFORM:
        caption = QCoreApplication.translate("Figure", "weight × visible keys, 1 = uniform")
    elif scale.quantity == colour.ROW_SHARE:
        caption = QCoreApplication.translate("Figure", "share of the row's largest")
    elif stage in WEIGHT_STAGES:
        caption = QCoreApplication.translate("Figure", "weight")
    elif stage in QUERY_KEY_STAGES:
        caption = QCoreApplication.translate("Figure", "score")
    elif stage == "row_sums":
        caption = QCoreApplication.translate("Figure", "sum")
    else:
        caption = QCoreApplication.translate("Figure", "component")
    if scale.curve == "log":
        caption += " · " + QCoreApplication.translate("Figure", "log scale")
    if view.norm == "per-head":
        caption += " · " + QCoreApplication.translate("Figure", "each head its own")
    elif view.norm == "percentile":
        caption += " · " + QCoreApplication.translate("Figure", "1 % to 99 %")
    return caption


# ----------------------------------------------------------------------------------------------------------- legend


_LOOKS: Final = (
    CellClass.MASKED, None, CellClass.ZERO, CellClass.DROPPED, CellClass.PADDED, CellClass.NAN,
)  # fmt: skip
"""The kinds of a legend's entries from left to right."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One look and its count in words; ``kind`` None is the red frame of visible future cells."""

    kind: CellClass | None
    text: str


def legend_entries(picture: Picture, *, present_only: bool = False) -> tuple[LegendEntry, ...]:
    """The looks that this stage can have, with how many cells of all its heads have them.

    With ``present_only`` those alone that the frames' own cells have.
    """
    outline, frames = picture.outline, picture.heads
    if outline is None or not frames:
        return ()
    counts = [frame.counts for frame in frames]

    entries: list[LegendEntry] = []
    there = 0
    for frame in frames if present_only else ():
        there |= int(np.bitwise_or.reduce(frame.classes, axis=None, initial=0))

    def add(kind: CellClass | None, word: str, numbers: list[int]) -> None:
        if not present_only or (any(numbers) if kind is None else bool(there & kind)):
            entries.append(entry(kind, word, numbers))

    def entry(kind: CellClass | None, word: str, numbers: list[int]) -> LegendEntry:
        if min(numbers) < 0:  # nobody counted them
            return LegendEntry(kind, word)
        if len(numbers) == 1 or not any(numbers):
            return LegendEntry(kind, f"{word} {sum(numbers):,}")
        if len(set(numbers)) == 1 and kind != CellClass.DROPPED:  # of draws it would be by chance
            words, number = QCoreApplication.translate("Figure", "{0} {1} a head"), numbers[0]
        else:
            words, number = QCoreApplication.translate("Figure", "{0} {1} in all heads"), sum(numbers)
        return LegendEntry(kind, words.format(word, f"{number:,}"))

    peeking = outline.has_future and not outline.future_hidden
    masked = [count.masked for count in counts]
    if outline.stage in QUERY_KEY_STAGES and (any(masked) or not peeking):
        add(CellClass.MASKED, QCoreApplication.translate("Figure", "masked"), masked)
    if peeking:
        words = QCoreApplication.translate("Figure", "peeking")
        if isinstance(outline.mask_shape, Drawn):  # what was drawn over need not be the future
            words = QCoreApplication.translate("Figure", "drawn as hidden, yet seen")
        add(None, words, [count.future for count in counts])
    if outline.stage in WEIGHT_STAGES:
        zero = [count.zero for count in counts]
        add(CellClass.ZERO, QCoreApplication.translate("Figure", "zero"), zero)
    dropped = [count.dropped for count in counts]
    if any(dropped) or outline.stage.startswith("dropped_"):
        add(CellClass.DROPPED, QCoreApplication.translate("Figure", "dropped"), dropped)
    padded = [count.padded for count in counts]
    if any(padded):
        add(CellClass.PADDED, QCoreApplication.translate("Figure", "padded"), padded)
    nan = [count.nan for count in counts]
    add(CellClass.NAN, QCoreApplication.translate("Figure", "NaN"), nan)
    return tuple(entries)


def room_for(legends: Iterable[Sequence[LegendEntry]]) -> tuple[LegendEntry, ...]:
    """Every look that one of ``legends`` has, in its place among the others and with its longest words."""
    longest: dict[CellClass | None, LegendEntry] = {}
    for entry in (entry for legend in legends for entry in legend):
        known = longest.get(entry.kind)
        longest[entry.kind] = entry if known is None or len(known.text) < len(entry.text) else known
    return tuple(longest[kind] for kind in _LOOKS if kind in longest)


def look_words(kind: CellClass | None) -> str:
    """What cells of one look are, in a word or two; None is the red frame."""
    words = {
        CellClass.MASKED: QCoreApplication.translate("Figure", "masked"),
        CellClass.ZERO: QCoreApplication.translate("Figure", "zero"),
        CellClass.DROPPED: QCoreApplication.translate("Figure", "dropped"),
        CellClass.PADDED: QCoreApplication.translate("Figure", "padded"),
    }
    if kind is None:
        return QCoreApplication.translate("Figure", "peeking: must not be seen, and is")
    return words.get(kind, "NaN")
