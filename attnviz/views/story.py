"""The sentence of a picture: what a person should notice, with its numbers. Pure; the card only shows it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.frames import CellClass, Frame, Values
from attnviz.session import Picture, Snapshot
from attnviz.spec import WEIGHT_STAGES, Lesson

Weights = Values

translate = QCoreApplication.translate
_LONGEST_NAME = 24


def story(snapshot: Snapshot) -> tuple[str, str]:
    """A large sentence and a smaller one below it; either may be empty."""
    picture = snapshot.shown
    if picture is None or picture.outline is None or not picture.heads:
        if snapshot.failure is not None:
            return "", ""  # the banner says it
        return translate("Story", "One moment: torch is being loaded."), ""
    if picture.finished is not None and picture.finished.remarks:
        return picture.finished.remarks[0], " ".join(picture.finished.remarks[1:])
    frame = _frame(picture)
    if picture.view.stage not in WEIGHT_STAGES:
        return _other_stage(picture.view.stage)
    if snapshot.selected is None:
        return (
            translate("Story", "Click a word, or use the arrows."),
            translate("Story", "A row shows where that word looks."),
        )
    row = snapshot.selected.row
    weights = _row(picture, frame, row)
    if weights is None:
        weights = _answered(snapshot, picture, frame)
    if weights is None and frame.level > 1:
        words = marks.pixel_words(frame.level, frame.pooling)
        large = translate("Story", "A pixel here is the {words}.").format(words=words)
        return large, translate("Story", "Zoom in with + until a pixel is one cell, and a row can be read.")
    if weights is None:
        return (
            translate("Story", "Only a part of this row is in sight."),
            translate("Story", "Press 0 for the whole map."),
        )
    if np.isnan(weights).any():
        return translate("Story", "This row is NaN: no number came out of it."), ""
    large, small = _told(snapshot, picture, row, weights)
    if large and picture.spec.num_heads > 1:
        head = translate("Story", "These are the numbers of head {n}.").format(n=frame.head)
        small = f"{small} {head}".strip()
    return large, small


def _told(snapshot: Snapshot, picture: Picture, row: int, weights: Weights) -> tuple[str, str]:
    """The sentences of one row, by what its stage holds."""
    match picture.view.stage:
        case "dropped_weights":
            return _dropped(picture, _total(weights))
        case "unmasked_weights":
            return _first_step(picture, row, weights)
        case "unnormalised_weights":
            return _second_step(picture, row, _total(weights))
        case _ if picture.spec.mask == "none":
            return _unmasked(picture, row, weights)
        case _:
            return _masked(snapshot, picture, row, weights)


def _other_stage(stage: str) -> tuple[str, str]:
    """What a stage that holds no weights is."""
    large, small = {
        "inputs": (
            translate("Story", "Each word is a row of numbers."),
            translate("Story", "Attention mixes these rows."),
        ),
        "queries": (
            translate("Story", "What each word asks for."),
            translate("Story", "A matrix of weights makes it from the input, unless it was drawn directly."),
        ),
        "keys": (
            translate("Story", "What each word offers to be found by."),
            translate("Story", "A matrix of weights makes it from the input, unless it was drawn directly."),
        ),
        "values": (translate("Story", "What each word hands over when it is looked at."), ""),
        "scores": (
            translate("Story", "How well each question fits each offer."),
            translate("Story", "Query times key, one number a pair."),
        ),
        "scaled_scores": (translate("Story", "The same scores on a scale that the softmax can use."), ""),
        "masked_scores": (
            translate("Story", "The future is set to −∞ before anything is shared out."),
            translate("Story", "e to the −∞ is 0."),
        ),
        "row_sums": (
            translate("Story", "What the triangle left of each row."),
            translate("Story", "Dividing by it makes every row 1 again."),
        ),
        "context": (translate("Story", "Each word's mixture of values, by its weights."), ""),
        "dropped_context": (translate("Story", "The mixtures after dropout."), ""),
        "joined": (translate("Story", "All heads' mixtures side by side."), ""),
        "output": (translate("Story", "What the module hands on."), ""),
    }.get(stage, ("", ""))
    return large, small


def _dropped(picture: Picture, total: float) -> tuple[str, str]:
    large = translate("Story", "After dropout this row sums to {total}: on average over many draws it is 1.")
    factor = 1 / (1 - picture.spec.dropout)
    small = translate("Story", "What stays is multiplied by 1/(1 − p) = {factor}.")
    return large.format(total=f"{total:.2f}"), small.format(factor=f"{factor:.2f}")


def _first_step(picture: Picture, row: int, weights: Weights) -> tuple[str, str]:
    large = translate("Story", "Step 1 of 3: one softmax over everything, the future included.")
    ahead = weights[_own(picture, row) + 1 :]
    return large, _peeking(picture, row, ahead) if len(ahead) else ""


def _second_step(picture: Picture, row: int, total: float) -> tuple[str, str]:
    if _own(picture, row) + 1 >= _n_keys(picture):
        return translate("Story", "Step 2 of 3: the last word has no future, so the triangle takes nothing away."), ""
    large = translate("Story", "Step 2 of 3: the triangle sets the future to 0, so this row sums to {total}.")
    return large.format(total=f"{total:.2f}"), translate("Story", "Step 3 divides the row by that sum.")


def _unmasked(picture: Picture, row: int, weights: Weights) -> tuple[str, str]:
    outline = picture.outline
    if outline is None or not outline.has_future:
        return translate("Story", "This row sums to {total}.").format(total=f"{_total(weights):.2f}"), ""
    ahead = weights[_own(picture, row) + 1 :]
    if not len(ahead):
        return translate(
            "Story", "The last word has nothing ahead of it: its row is the same with and without a mask."
        ), ""
    if _is_cat(picture) and row == 1:
        small = translate("Story", "Its vector already tastes more of fish than of cat. Press M.")
    elif len(ahead) == 1:
        small = translate("Story", "It should be guessing that word. Press M.")
    else:
        small = translate("Story", "It should be guessing them. Press M.")
    return _peeking(picture, row, ahead), small


def _peeking(picture: Picture, row: int, ahead: Weights) -> str:
    """How much of a row's weight lies on the words ahead of it."""
    own = _own(picture, row)
    if len(ahead) == 1:
        words = translate("Story", "“{asks}” gives {share} to “{next}”, a word that is not written yet.")
    else:
        words = translate("Story", "“{asks}” gives {share} of its weight to words that are not written yet.")
    return words.format(
        asks=_begins(_name(picture, own)),
        share=percent(_total(ahead)),
        next=_name(picture, own + 1),
    )


def _masked(snapshot: Snapshot, picture: Picture, row: int, weights: Weights) -> tuple[str, str]:
    own = _own(picture, row)
    if own + 1 >= _n_keys(picture):
        return translate("Story", "The last word has nothing to hide, so its row never changes."), ""
    old = _row_before(snapshot, picture, row)
    vanished = _total(old[own + 1 :]) if old is not None else 0.0
    if old is None or not vanished:
        first = translate("Story", "“{asks}” sees {n} of {all} words: the future is hidden.")
        return first.format(asks=_begins(_name(picture, own)), n=own + 1, all=_n_keys(picture)), ""
    first = translate("Story", "The {share} did not vanish: it was shared out again.").format(share=percent(vanished))
    if own + 1 > 3:
        return first, translate("Story", "Every word that it still sees grew by the same factor.")
    became = translate("Story", "{old} became {new}")
    changes = [
        became.format(old=percent(o).removesuffix(" %"), new=percent(n).removesuffix(" %"))
        for o, n in zip(old[: own + 1], weights[: own + 1], strict=True)
    ]
    second = ", ".join(changes) + "."
    if _is_cat(picture) and row == 1:
        second += " " + translate("Story", "Now the vector tastes of cat.")
    return first, second


def _row_before(snapshot: Snapshot, picture: Picture, row: int) -> Weights | None:
    """The row's weights in the state before, where that differs by the mask alone and had none."""
    before = snapshot.before
    if before is None or before.spec.mask != "none" or before.view.stage != picture.view.stage:
        return None
    if replace(before.spec, mask=picture.spec.mask) != picture.spec:
        return None
    frame = before.frames.get(_frame(picture).panel)
    return None if frame is None else _row(before, frame, row)


def _frame(picture: Picture) -> Frame:
    """The frame that the words are about: that of the large head, else of the first."""
    return picture.frames.get(f"head:{picture.view.head}", picture.heads[0])


def _row(picture: Picture, frame: Frame, row: int) -> Weights | None:
    """A row's weights, masked cells as 0; None where the frame lacks a cell of it."""
    whole = frame.level == 1 and frame.cols == (0, _n_keys(picture))
    if not whole or not frame.rows[0] <= row < frame.rows[1]:
        return None
    return _unmasked_numbers(frame.values[row - frame.rows[0]], frame.classes[row - frame.rows[0]])


def _answered(snapshot: Snapshot, picture: Picture, frame: Frame) -> Weights | None:
    """The selected row's weights as they came by themselves, where the map shows but a part or many cells a pixel."""
    answer, selected = snapshot.row, snapshot.selected
    if answer is None or selected is None or picture is not snapshot.picture or answer.head != frame.head:
        return None
    if (answer.generation, answer.row) != (picture.generation, selected.row):
        return None
    return _unmasked_numbers(answer.values, answer.classes)


def _unmasked_numbers(values: Values, classes: npt.NDArray[np.uint8]) -> Weights:
    """Masked numbers as 0, in the type that they have: a million of them are not converted for a sentence."""
    return np.where((classes & CellClass.MASKED) != 0, values.dtype.type(0), values)


def _total(weights: Weights) -> float:
    return float(weights.sum(dtype=np.float64))


def _n_keys(picture: Picture) -> int:
    return picture.outline.n_keys if picture.outline else 0


def _own(picture: Picture, row: int) -> int:
    """The place of a query's own token among the keys."""
    return row + picture.outline.n_keys - picture.outline.n_queries if picture.outline else row


def _name(picture: Picture, place: int) -> str:
    names = (picture.outline.glosses or picture.outline.tokens) if picture.outline else ()
    name = names[place]
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _begins(name: str) -> str:
    """A name as a sentence begins with it; the case of its other letters stays."""
    return name[:1].upper() + name[1:]


def _is_cat(picture: Picture) -> bool:
    return picture.spec.source == Lesson(name="cat-eats-fish")


def percent(share: float) -> str:
    """A share as whole percent: "24 %", "<1 %"."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
