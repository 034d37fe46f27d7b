"""The sentence of a picture: what a person should notice, with its numbers. Pure; the card only shows it."""

from __future__ import annotations

import math

from PySide6.QtCore import QCoreApplication

from attnviz.frames import CellClass, Frame
from attnviz.session import Picture, Snapshot
from attnviz.spec import Lesson


def _tr(text: str) -> str:
    return QCoreApplication.translate("Story", text)


def story(snapshot: Snapshot) -> tuple[str, str]:
    """A large sentence and a smaller one below it; either may be empty."""
    picture = snapshot.shown
    if picture is None or picture.outline is None or not picture.heads:
        return _tr("One moment: torch is being loaded."), ""
    if picture.finished is not None and picture.finished.remarks:
        return picture.finished.remarks[0], " ".join(picture.finished.remarks[1:])
    frame = picture.heads[0]
    if frame.row_sums is None:
        return _other_stage(picture.view.stage)
    if snapshot.selected is None:
        return _tr("Click a word, or use the arrows."), _tr("A row shows where that word looks.")
    row = snapshot.selected.row
    weights = _row(frame, row)
    if weights is None:
        return _tr("Each row is a word that asks; bright columns are the words it looks at."), ""
    if picture.view.stage == "dropped_weights":
        return _dropped(picture, sum(weights))
    if picture.spec.mask == "none":
        return _unmasked(picture, row, weights)
    return _masked(snapshot, picture, row, weights)


def _other_stage(stage: str) -> tuple[str, str]:
    """What a stage that holds no weights is."""
    large, small = {
        "inputs": (_tr("Each word is a row of numbers."), _tr("Attention mixes these rows.")),
        "queries": (_tr("What each word asks for."), _tr("A learnt matrix makes it from the input.")),
        "keys": (_tr("What each word offers to be found by."), _tr("A learnt matrix makes it from the input.")),
        "values": (_tr("What each word hands over when it is looked at."), ""),
        "scores": (_tr("How well each question fits each offer."), _tr("Query times key, one number a pair.")),
        "scaled_scores": (_tr("The same scores on a scale that the softmax can use."), ""),
        "masked_scores": (_tr("The future is set to −∞ before anything is shared out."), _tr("e to the −∞ is 0.")),
        "row_sums": (_tr("What the triangle left of each row."), _tr("Dividing by it makes every row 1 again.")),
        "context": (_tr("Each word's mixture of values, by its weights."), ""),
        "dropped_context": (_tr("The mixtures after dropout."), ""),
        "joined": (_tr("All heads' mixtures side by side."), ""),
        "output": (_tr("What the module hands on."), ""),
    }.get(stage, ("", ""))
    return large, small


def _dropped(picture: Picture, total: float) -> tuple[str, str]:
    large = _tr("After dropout this row sums to {total}: on average over many draws it is 1.")
    factor = 1 / (1 - picture.spec.dropout)
    small = _tr("What stays is multiplied by 1/(1 − p) = {factor}.")
    return large.format(total=f"{total:.2f}"), small.format(factor=f"{factor:.2f}")


def _unmasked(picture: Picture, row: int, weights: list[float]) -> tuple[str, str]:
    outline = picture.outline
    assert outline is not None  # noqa: S101 (the caller looked)
    own = row + outline.n_keys - outline.n_queries
    ahead = weights[own + 1 :]
    if not outline.has_future or not ahead:
        last = _tr("The last word has nothing ahead of it: its row is the same with and without a mask.")
        return (last, "") if outline.has_future else ("", "")
    share = percent(sum(ahead))
    if len(ahead) == 1:
        words = _tr("“{asks}” gives {share} to “{next}”, a word that is not written yet.")
    else:
        words = _tr("“{asks}” gives {share} of its weight to words that are not written yet.")
    first = words.format(asks=_name(picture, own).capitalize(), share=share, next=_name(picture, own + 1))
    if _is_cat(picture) and row == 1:
        return first, _tr("Its vector already tastes more of fish than of cat. Press M.")
    return first, _tr("It should be guessing them. Press M.")


def _masked(snapshot: Snapshot, picture: Picture, row: int, weights: list[float]) -> tuple[str, str]:
    outline = picture.outline
    assert outline is not None  # noqa: S101
    own = row + outline.n_keys - outline.n_queries
    if own + 1 >= outline.n_keys:
        return _tr("The last word has nothing to hide, so its row never changes."), ""
    before = snapshot.before
    same = (
        before is not None and before.spec.mask == "none" and before.spec.source == picture.spec.source
        and before.outline is not None and before.outline.n_keys == outline.n_keys and before.heads
    )  # fmt: skip
    old = _row(before.heads[0], row) if same and before is not None else None
    if old is None:
        n_seen = own + 1
        first = _tr("“{asks}” sees {n} of {all} words: the future is hidden.")
        return first.format(asks=_name(picture, own).capitalize(), n=n_seen, all=outline.n_keys), ""
    share = percent(sum(old[own + 1 :]))
    first = _tr("The {share} did not vanish: it was shared out again.").format(share=share)
    if own + 1 <= 3:
        changes = [
            _tr("{old} became {new}").format(old=percent(o).rstrip(" %"), new=percent(n).rstrip(" %"))
            for o, n in zip(old[: own + 1], weights[: own + 1], strict=True)
        ]
        second = ", ".join(changes) + "."
        if _is_cat(picture) and row == 1:
            second += " " + _tr("Now the vector tastes of cat.")
        return first, second
    return first, _tr("Every word before it grew by the same factor.")


def _row(frame: Frame, row: int) -> list[float] | None:
    """A row's weights, masked cells as 0; None where the frame does not hold it cell by cell, or it is NaN."""
    if frame.level != 1 or frame.cols[0] != 0 or not frame.rows[0] <= row < frame.rows[1]:
        return None
    values = frame.values[row - frame.rows[0]]
    if any(math.isnan(value) for value in values):
        return None
    kinds = frame.classes[row - frame.rows[0]]
    return [0.0 if kind & CellClass.MASKED else float(value) for value, kind in zip(values, kinds, strict=True)]


def _name(picture: Picture, place: int) -> str:
    outline = picture.outline
    assert outline is not None  # noqa: S101
    names = outline.glosses or outline.tokens
    return names[place]


def _is_cat(picture: Picture) -> bool:
    return picture.spec.source == Lesson(name="cat-eats-fish")


def percent(share: float) -> str:
    """A share as whole percent: "24 %", "<1 %"."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
