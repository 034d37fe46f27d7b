"""The mask gallery: one head under every order of mask and softmax, and how deep a fill must lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from attnviz.figure import marks
from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Headed, TableBlock
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.marks import cell_number, row_sum
from attnviz.figure.matrix_map import Matrix, matrix_of, shape_peeking
from attnviz.figure.studies.names import bar_view, crop_caption, scale_in, short_number
from attnviz.figure.tables import Entry, Line, Table, table_of
from attnviz.figures import Figure
from attnviz.questions.gallery import DTYPES, Exhibit, FillDepth, GalleryAnswer, MaskedRow
from attnviz.spec import AttentionSpec, View, shape_text
from attnviz.spec.fills import fill_text, number_words

NAMES: Final[Mapping[str, object]] = MappingProxyType(
    {
        "none": QT_TRANSLATE_NOOP("Gallery", "no mask"),
        "multiply": QT_TRANSLATE_NOOP("Gallery", "mask last: multiply"),
        "three-step": QT_TRANSLATE_NOOP("Gallery", "mask last, then divide: three-step"),
        "neg-inf": QT_TRANSLATE_NOOP("Gallery", "−∞ before the softmax"),
        "fill-0": QT_TRANSLATE_NOOP("Gallery", "fill 0 before the softmax"),
    }
)
_SUMS_UP_TO: Final = 24  # queries: of more, their sums have no room in any window
_LABELLED_UP_TO: Final = 12
_MOST_PIXELS: Final = 4096


def _tr(text: str) -> str:
    return QCoreApplication.translate("MasksPage", text)


def order_name(order: str) -> str:
    """An order in words."""
    return QCoreApplication.translate("Gallery", str(NAMES[order]))


def brief_name(order: str) -> str:
    """An order in a word or two."""
    return {
        "none": QCoreApplication.translate("Gallery", "no mask"),
        "multiply": QCoreApplication.translate("Gallery", "multiply"),
        "three-step": QCoreApplication.translate("Gallery", "three-step"),
        "neg-inf": "−∞",
        "fill-0": QCoreApplication.translate("Gallery", "fill 0"),
    }[order]


def difference_words(exhibit: Exhibit) -> str:
    """How far an exhibit is from −∞."""
    if exhibit.order == "neg-inf":
        return QCoreApplication.translate("Gallery", "what the others are measured by")
    nan = ""
    if exhibit.nan_rows:
        nan = QCoreApplication.translate("Gallery", "NaN rows: {n}").format(n=f"{exhibit.nan_rows:,}")
    if math.isnan(exhibit.difference):
        return nan
    if exhibit.difference == 0:
        words = QCoreApplication.translate("Gallery", "equal to −∞, bit for bit")
    else:
        number = f"{exhibit.difference:.2g}".replace("e-0", "e−").replace("e-", "e−")
        words = QCoreApplication.translate("Gallery", "differs from the −∞ map by up to {number}")
        words = words.format(number=number)
    return f"{words} · {nan}" if nan else words


def _apart_words(exhibit: Exhibit) -> str:
    """How far an exhibit is from −∞, below its map on paper: in few words, since all have the same."""
    if exhibit.order == "neg-inf" or math.isnan(exhibit.difference) or exhibit.difference == 0 or exhibit.nan_rows:
        return "" if exhibit.order == "neg-inf" else difference_words(exhibit)
    return _tr("up to {number} off the −∞ map").format(number=short_number(exhibit.difference))


def _sound_words(answer: GalleryAnswer) -> str:
    """Which orders give shares of what may be seen, in their whole maps."""
    sound = [
        brief_name(exhibit.order)
        for exhibit in answer.exhibits
        if not exhibit.hidden and all(row_sum(float(total))[1] for total in exhibit.row_sums)
    ]
    orders = ", ".join(sound) or _tr("none of them")
    return _tr("What hides all it must and has rows that add up to 1: {orders}.").format(orders=orders)


def sums_words(exhibit: Exhibit) -> str:
    """What the rows sum to, for maps of more rows than have room for a number each."""
    sums = [float(total) for total in exhibit.row_sums if not math.isnan(total)]
    if not sums:
        return ""
    least, most = row_sum(min(sums))[0], row_sum(max(sums))[0]
    if least == most:
        return QCoreApplication.translate("Gallery", "every row: Σ {sum}").format(sum=least)
    return QCoreApplication.translate("Gallery", "rows: Σ from {least} to {most}").format(least=least, most=most)


def exhibit_map(exhibit: Exhibit, answer: GalleryAnswer, view: View, *, most: int = 512) -> Matrix:
    """An exhibit's map, what its mask should hide and does not in red."""
    n_keys, shape, crop = len(answer.tokens), answer.question.spec.mask_shape, answer.crop
    return matrix_of(
        exhibit.values, exhibit.classes, scale=scale_in(view, answer.scale, n_keys), colours=view.colours, most=most,
        peeking=shape_peeking(shape, *crop.shape) if exhibit.level == 1 else None, crop=crop, level=exhibit.level,
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- tables


def masked_row_table(answer: GalleryAnswer) -> Table:
    """What a row that sees nothing becomes, by how it was masked."""
    lines: list[Line] = [[_named(row, answer), *map(_weight, row.weights.tolist())] for row in answer.masked_row]
    return table_of(["", *_scores(answer)], lines)


def masked_row_words(answer: GalleryAnswer) -> str:
    """Which row it is."""
    words = _tr("Scores {scores}, all of them hidden, in {dtype}:")
    return words.format(scores="  ".join(_scores(answer)), dtype=answer.question.spec.dtype)


def _scores(answer: GalleryAnswer) -> list[str]:
    return [f"{score:.2f}".rstrip("0").rstrip(".").replace("-", "−") for score in answer.scores]


def _named(row: MaskedRow, answer: GalleryAnswer) -> Entry:
    names = {
        "fill -inf": _tr("fill −∞"), "fill -1e9": _tr("fill −10⁹"), "add -1e9": _tr("add −10⁹"),
        "sdpa": _tr("SDPA, boolean"),
    }  # fmt: skip
    dtype = "" if row.dtype == answer.question.spec.dtype else f" · {row.dtype}"
    if row.refused:
        tip = _tr("torch's masked_fill refuses this number in {dtype}; cast, it is −∞").format(dtype=row.dtype)
        return Entry(f"{names[row.how]} = −∞{dtype}", "ink", tip)
    return Entry(names[row.how] + dtype)


def limits_table(answer: GalleryAnswer) -> Table:
    """How deep a fill must lie, by dtype; the spec's own is lit."""
    depths = [_number(answer.thresholds[dtype]) for dtype in DTYPES]
    limits = [_number(answer.limits[dtype]) for dtype in DTYPES]
    lit = 1 + DTYPES.index(answer.question.spec.dtype)
    lines = [[_tr("how far below"), *depths], [_tr("so a fill here below"), *limits]]
    return table_of(["", *DTYPES], lines, lit=lit)


def limits_words(answer: GalleryAnswer) -> str:
    """What the limits are of."""
    return _tr(
        "A hidden cell weighs exactly 0 where its fill lies further below the row's largest visible score (here "
        "{largest}) than this:"
    ).format(largest=_number(answer.largest))


def depths_table(answer: GalleryAnswer) -> Table:
    """What a hidden cell still weighs, fill by fill."""
    firsts = answer.first_zeros
    lines: list[list[Entry | str]] = []
    for depth in answer.depths:
        if depth.dtype == DTYPES[0]:
            lines.append([Entry(fill_text(depth.fill)), Entry(_number(depth.below), "muted")])
        lines[-1].append(_depth(depth, first=firsts.get(depth.dtype) == depth.fill))
    lit = 2 + DTYPES.index(answer.question.spec.dtype)
    return table_of([_tr("fill"), _tr("lies below"), *DTYPES], lines, lit=lit)


def depths_words(answer: GalleryAnswer) -> str:
    """What the weights are beside."""
    words = _tr("Beside a visible score of {largest}. Red still weighs something, blue is each dtype's first 0.")
    return words.format(largest=_number(answer.largest))


def _depth(depth: FillDepth, *, first: bool) -> Entry:
    cast = "" if depth.held == depth.fill else _tr("held as {number}").format(number=fill_text(depth.held))
    if depth.refused:
        cast = _tr("masked_fill refuses it; cast, it is {number}").format(number=fill_text(depth.held))
    if first:
        return Entry(_tr("first 0"), "accent", cast)
    return Entry(short_weight(depth.weight), "leak" if depth.weight > 0 else "muted", cast)


def _weight(weight: float) -> str:
    return "NaN" if np.isnan(weight) else cell_number(weight, 4)


def short_weight(weight: float) -> str:
    """0, .24 or a power of ten."""
    if weight == 0:
        return "0"
    return cell_number(weight, 2) if weight >= 0.005 else f"{weight:.0e}".replace("e-0", "e−").replace("e-", "e−")


def _number(number: float) -> str:
    """A depth or a limit to a hundredth: 17.33, −101.97, 10⁹, ∞."""
    if abs(number) >= 1e4:
        return number_words(float(f"{number:.1g}"))
    return fill_text(round(number, 2) + 0.0)


# --------------------------------------------------------------------------------------------------------------- paper


def contents_of(figure: Figure, answer: GalleryAnswer) -> Contents:
    """Every order's map with its row sums and its difference from −∞; the limits, and a row that sees nothing."""
    maps, crop = [], answer.crop
    for exhibit in answer.exhibits:
        own = exhibit_map(exhibit, answer, figure.view, most=_MOST_PIXELS)
        n_queries = len(exhibit.row_sums)
        if not crop.is_whole or (n_queries <= _SUMS_UP_TO and exhibit.level == 1):
            own = replace(own, frame=replace(own.frame, row_sums=exhibit.row_sums[slice(*crop.rows)]))
        if not crop.is_whole or len(answer.tokens) <= _LABELLED_UP_TO:
            own = replace(own, outline=replace(own.outline, tokens=answer.tokens))
        sums = [total for total in exhibit.row_sums.tolist() if not math.isnan(total)] or [math.nan]
        least, largest = (cell_number(round(total, 2), 2) for total in (min(sums), max(sums)))
        span = least if least == largest else f"{least}–{largest}"
        brief = f"Σ {span}"
        own = replace(own, brief=(brief_name(exhibit.order), brief))
        own = replace(own, title=order_name(exhibit.order), caption=_apart_words(exhibit))
        maps.append(replace(own, sums_words=sums_words(exhibit)))
    blocks = (
        MapsBlock(tuple(maps), _tr("the maps"), bar_view(figure.view), weight=3.0, part="maps"),
        TableBlock(
            limits_table(answer), _tr("how deep a fill must lie"), Headed(limits_words(answer)), 0.5, part="limits"
        ),
        TableBlock(
            masked_row_table(answer),
            _tr("a fully masked row"),
            Headed(masked_row_words(answer)),
            0.4,
            part="hidden-row",
        ),
    )
    level = max(exhibit.level for exhibit in answer.exhibits)
    captions = [crop_caption(crop, "weights"), marks.pixel_words(level, "max") if level > 1 else ""]
    return Contents(
        title=_tr("Every order of mask and softmax, head {n}").format(n=answer.question.head),
        blocks=blocks,
        circumstances=" · ".join(settings_parts(answer.question.spec)),
        sentence=_sound_words(answer),
        captions=tuple(filter(None, captions)),
    )


def settings_parts(spec: AttentionSpec) -> list[str]:
    """What every order has in common: the mask's shape, and what the circumstances tell of other figures."""
    plain = [part for part in marks.circumstances(spec).split(" · ") if part not in marks.mask_words(spec)]
    return [_tr("mask shape {shape}").format(shape=shape_text(spec.mask_shape)[:40]), *plain]
