"""The sentences of one row of weights: where its weight lies, and what mask, top-k and dropout did to it. Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.session import Snapshot
from attnviz.spec import Causal, Lesson
from attnviz.spec.fills import held, number_words
from attnviz.views.told_row import ToldRow, has_words, row_before

translate = QCoreApplication.translate

_EPS: Final = MappingProxyType({"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52})
_FELT: Final = 0.005
"""A step between neighbouring scores, by rounding, from which on shares change by a percent or so."""


def row_told(snapshot: Snapshot, row: ToldRow) -> tuple[str, str]:
    """A large sentence and a smaller one about a row; the smaller may be empty."""
    acts = row.spec.mask != "none"
    if acts and row.n_hidden == row.n_keys and row.picture.view.stage != "unmasked_weights":
        return _sees_nothing(row)
    if np.isnan(row.weights).any():
        return translate("Story", "This row is NaN: no number came out of it."), ""
    match row.picture.view.stage:
        case "dropped_weights":
            return _dropped(row)
        case "unmasked_weights":
            return _first_step(row)
        case "unnormalised_weights":
            return _second_step(row)
    if row.spec.top_k is not None:
        return _largest(row, row.spec.top_k)
    if not acts:
        return _unmasked(row)
    if row.spec.mask == "multiply":
        return _multiplied(row)
    return _masked(snapshot, row)


def percent(share: float) -> str:
    """A share as whole percent: "24 %", "<1 %"."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


# ------------------------------------------------------------------------------------------------------ one by one


def _sees_nothing(row: ToldRow) -> tuple[str, str]:
    large = translate("Story", "Every key of this row is hidden, so there is nothing to share out.")
    if np.isnan(row.weights).any():
        return large, translate("Story", "0 divided by 0 is no number: NaN.")
    if row.spec.mask in ("multiply", "three-step"):
        return large, translate("Story", "The row is 0 throughout.")
    if row.spec.mask == "add":
        small = _added_alike(row)
    else:
        small = translate("Story", "All keys were filled alike, so the softmax spreads its 100 % over hidden keys.")
    if row.picture.view.stage == "dropped_weights":
        dropped = translate("Story", "After dropout the row sums to {total}.").format(total=f"{row.total:.2f}")
        small = f"{small} {dropped}"
    return large, small


def _added_alike(row: ToldRow) -> str:
    """What comes of a finite number that was added to every score of a row."""
    words = translate(
        "Story", "{fill} was added to every score alike, which moves no share: it is the softmax as it was."
    )
    fill, dtype = held(row.spec.fill, row.spec.dtype), row.spec.dtype
    if fill and abs(fill) * _EPS[dtype] > _FELT:
        words = translate(
            "Story",
            "{fill} was added to every score alike. On paper that moves no share, "
            "but {dtype} rounds sums of this size.",
        )
        some = row.weights[row.weights > 0]  # what dropout left
        if len(some) > 1 and np.ptp(some) <= 2 * _EPS[dtype] * some.max():
            words = translate(
                "Story",
                "{fill} was added to every score alike. On paper that moves no share, "
                "but {dtype} rounds the sums until all are equal.",
            )
    return words.format(fill=number_words(row.spec.fill), dtype=dtype)


def _dropped(row: ToldRow) -> tuple[str, str]:
    small = translate("Story", "What stays is multiplied by 1/(1 − p) = {factor}.")
    small = small.format(factor=f"{1 / (1 - row.spec.dropout):.2f}")
    if not row.total:
        return translate("Story", "Dropout took this whole row: nothing is left to mix."), small
    large = translate("Story", "After dropout this row sums to {total}: on average over many draws it is 1.")
    if row.spec.mask == "multiply":
        large = translate("Story", "After dropout this row sums to {total}.")
    return large.format(total=f"{row.total:.2f}"), small


def _first_step(row: ToldRow) -> tuple[str, str]:
    steps = 2 if row.spec.mask == "multiply" else 3
    if isinstance(row.spec.mask_shape, Causal):
        large = translate("Story", "Step 1 of {n}: one softmax over everything, the future included.")
    else:
        large = translate("Story", "Step 1 of {n}: one softmax over everything, also over what will be hidden.")
    return large.format(n=steps), _on_hidden(row) if row.n_hidden else ""


def _second_step(row: ToldRow) -> tuple[str, str]:
    if not row.n_hidden:
        if isinstance(row.spec.mask_shape, Causal):
            words = translate(
                "Story", "Step 2 of 3: the last {word} has no future, so the triangle takes nothing away."
            )
            return words.format(word=_unit(row)), ""
        return translate("Story", "Step 2 of 3: nothing is hidden from this row, so nothing is taken away."), ""
    if row.hides_the_future:
        large = translate("Story", "Step 2 of 3: the triangle sets the future to 0, so this row sums to {total}.")
    else:
        large = translate("Story", "Step 2 of 3: the mask sets what is hidden to 0, so this row sums to {total}.")
    return large.format(total=f"{row.total:.2f}"), translate("Story", "Step 3 divides the row by that sum.")


def _largest(row: ToldRow, k: int) -> tuple[str, str]:
    """What top-k kept of the keys that the mask shows."""
    seen = row.n_seen if row.spec.mask != "none" else row.n_keys
    unseen = row.hidden if row.spec.mask != "none" and row.hidden is not None else np.zeros(row.n_keys, np.bool_)
    kept = int((~row.masked & ~unseen).sum())
    if kept >= seen:
        large = translate("Story", "All {n} scores that “{asks}” may see were kept: top-{k} takes nothing away.")
    elif kept > k:
        large = translate("Story", "The {k} largest scores were kept, and those as large as the last: {n} in all.")
    elif k == 1:
        large = translate("Story", "In this row only the largest score was kept.")
    else:
        large = translate("Story", "In this row only the {k} largest scores were kept.")
    large = large.format(n=f"{kept:,}", k=f"{k:,}", asks=_asks(row))
    if row.spec.mask != "none":
        return large, _sees(row) if row.n_hidden else ""
    return large, _on_hidden(row) if row.n_hidden and row.on_hidden else ""


def _unmasked(row: ToldRow) -> tuple[str, str]:
    outline = row.picture.outline
    if outline is None or not outline.has_future or row.hidden is None:
        return translate("Story", "This row sums to {total}.").format(total=f"{row.total:.2f}"), ""
    if not row.n_hidden:
        if isinstance(row.spec.mask_shape, Causal):
            words = translate(
                "Story", "The last {word} has nothing ahead of it: its row is the same with and without a mask."
            )
            return words.format(word=_unit(row)), ""
        words = translate("Story", "This mask hides nothing from “{asks}”: its row is the same with and without it.")
        return words.format(asks=_asks(row)), ""
    if _is_cat(row) and row.row == 1 and row.hides_the_future:
        small = translate("Story", "Its vector already tastes more of fish than of cat. Press M.")
    elif not row.hides_the_future:
        small = translate("Story", "The mask is off. Press M.")
    elif row.n_hidden == 1:
        small = translate("Story", "It should be guessing that {word}. Press M.").format(word=_unit(row))
    else:
        small = translate("Story", "It should be guessing them. Press M.")
    return _on_hidden(row), small


def _on_hidden(row: ToldRow) -> str:
    """How much of a row's weight lies on the keys that its mask hides, or would hide."""
    if row.hides_the_future and row.one_hidden is not None:
        words = translate("Story", "“{asks}” gives {share} to “{next}”, a {word} that is not written yet.")
    elif row.hides_the_future:
        words = translate("Story", "“{asks}” gives {share} of its weight to {words} that are not written yet.")
    elif row.one_hidden is not None:
        words = translate("Story", "“{asks}” gives {share} to “{next}”, which the mask is to hide.")
    else:
        words = translate("Story", "“{asks}” gives {share} of its weight to {words} that the mask is to hide.")
    hidden = row.one_hidden
    return words.format(
        asks=_asks(row), share=percent(row.on_hidden), word=_unit(row), words=_units(row),
        next="" if hidden is None else row.name(hidden),
    )  # fmt: skip


def _multiplied(row: ToldRow) -> tuple[str, str]:
    if not row.n_hidden:
        words = translate("Story", "Nothing is hidden from “{asks}”, so the multiplication takes nothing away.")
        return words.format(asks=_asks(row)), ""
    if row.hides_the_future:
        words = translate(
            "Story", "The triangle cut {share} away and nobody shared it out again: the row sums to {total}."
        )
    else:
        words = translate("Story", "The mask cut {share} away and nobody shared it out again: the row sums to {total}.")
    large = words.format(share=percent(max(1 - row.total, 0.0)), total=f"{row.total:.2f}")
    if row.hides_the_future:
        small = translate("Story", "The triangle looks clean, yet what is left still depends on what was cut away.")
    else:
        small = translate("Story", "What is left still depends on what was cut away.")
    return large, small


def _masked(snapshot: Snapshot, row: ToldRow) -> tuple[str, str]:
    if row.hidden is None:
        return translate("Story", "This row sums to {total}.").format(total=f"{row.total:.2f}"), ""
    if not row.n_hidden:
        if isinstance(row.spec.mask_shape, Causal):
            words = translate("Story", "The last {word} has nothing to hide, so its row never changes.")
            return words.format(word=_unit(row)), ""
        words = translate("Story", "“{asks}” sees all {n} {words}: nothing is hidden from it.")
        return words.format(asks=_asks(row), n=f"{row.n_keys:,}", words=_units(row)), ""
    if row.on_hidden > 0:
        return _shows_through(row)
    old = row_before(snapshot, row)
    vanished = float(old[row.hidden].sum(dtype=np.float64)) if old is not None else 0.0
    if old is None or not vanished:
        return _sees(row), ""
    first = translate("Story", "The {share} did not vanish: it was shared out again.").format(share=percent(vanished))
    if row.n_seen > 3:
        words = translate("Story", "Every {word} that it still sees grew by the same factor.")
        return first, words.format(word=_unit(row))
    became = translate("Story", "{old} became {new}")
    changes = [
        became.format(old=percent(o).removesuffix(" %"), new=percent(n).removesuffix(" %"))
        for o, n in zip(old[~row.hidden], row.weights[~row.hidden], strict=True)
    ]
    second = ", ".join(changes) + "."
    if _is_cat(row) and row.row == 1 and row.hides_the_future:
        second += " " + translate("Story", "Now the vector tastes of cat.")
    return first, second


def _shows_through(row: ToldRow) -> tuple[str, str]:
    """A fill that leaves hidden keys a weight."""
    if row.spec.mask == "add":
        words = translate("Story", "With {fill} added, what is hidden still takes {share}.")
        if row.one_hidden is not None:
            words = translate("Story", "With {fill} added, the hidden {word} still takes {share}.")
    else:
        words = translate("Story", "Filled with {fill}, what is hidden still takes {share}.")
        if row.one_hidden is not None:
            words = translate("Story", "Filled with {fill}, the hidden {word} still takes {share}.")
    fill = number_words(row.spec.fill)
    large = words.format(fill=fill, word=_unit(row), share=percent(row.on_hidden))
    if row.spec.fill == 0:
        small = translate("Story", "0 is a score like any other, since e to the 0 is 1. Only −∞ hides for certain.")
        if row.spec.mask == "add":
            small = translate("Story", "Adding 0 changes nothing. Only −∞ hides for certain.")
    else:
        small = translate("Story", "A fill hides only where it lies far below the scores. −∞ always does.")
    return large, small


def _sees(row: ToldRow) -> str:
    """How many keys a row sees, and what is hidden."""
    if row.hides_the_future:
        words = translate("Story", "“{asks}” sees {n} of {all} {words}: the future is hidden.")
    elif row.hides_padding:
        words = translate("Story", "“{asks}” sees {n} of {all} {words}: the padding is hidden.")
    else:
        words = translate("Story", "“{asks}” sees {n} of {all} {words}: the others are hidden.")
    return words.format(asks=_asks(row), n=f"{row.n_seen:,}", all=f"{row.n_keys:,}", words=_units(row))


# ---------------------------------------------------------------------------------------------------------- names


def _asks(row: ToldRow) -> str:
    """The query's name as a sentence begins with it; the case of its other letters stays."""
    name = row.name(row.own)
    return name[:1].upper() + name[1:]


def _unit(row: ToldRow) -> str:
    return translate("Story", "word") if has_words(row.spec) else translate("Story", "token")


def _units(row: ToldRow) -> str:
    return translate("Story", "words") if has_words(row.spec) else translate("Story", "tokens")


def _is_cat(row: ToldRow) -> bool:
    return row.spec.source == Lesson(name="cat-eats-fish")
