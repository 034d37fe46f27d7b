"""The sentence of a picture: what a person should notice, with its numbers. Pure; the card only shows it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.frames import Frame
from attnviz.session import Picture, Snapshot
from attnviz.spec import (
    WEIGHT_STAGES,
    AttentionSpec,
    Causal,
    Pattern,
    QKFile,
    acts_on_scores,
    has_bare_qk,
)
from attnviz.spec.fills import number_words
from attnviz.views.row_words import percent, row_told
from attnviz.views.told_row import frame_of, has_words, told_row

__all__ = ["awaits_row", "is_last_good", "percent", "story"]

translate = QCoreApplication.translate


def story(snapshot: Snapshot) -> tuple[str, str]:
    """A large sentence and a smaller one below it; either may be empty."""
    picture = snapshot.shown
    if picture is None or picture.outline is None or not picture.heads:
        if snapshot.failure is not None:
            return "", ""  # the banner says it
        return translate("Story", "One moment: torch is being loaded."), ""
    large, small = _of_picture(snapshot, picture)
    if not snapshot.show_numbers and any(letter.isdigit() for letter in large + small):
        large, small = translate("Story", "The numbers are hidden: predict them, then press N."), ""
    if is_last_good(snapshot) and picture is snapshot.picture:
        return translate("Story", "This is still the last good picture: what was asked for did not come."), large
    if snapshot.show_before and picture is snapshot.before:
        if picture is snapshot.pinned:
            return translate("Story", "This is A."), large
        return translate("Story", "This is the state before the change."), large
    return large, small


def is_last_good(snapshot: Snapshot) -> bool:
    """Whether a computation failed and the picture of another spec stays in sight."""
    picture = snapshot.picture
    return snapshot.failure is not None and not snapshot.running and picture is not None and snapshot.stale


def awaits_row(snapshot: Snapshot) -> bool:
    """Whether a sentence about the selected row cannot be said yet, and will be when its numbers come."""
    picture = snapshot.shown
    if picture is None or picture is not snapshot.picture or picture.outline is None or not picture.heads:
        return False
    told = picture.finished is not None and bool(picture.finished.remarks)
    selected = snapshot.selected is not None and snapshot.selected.row < picture.outline.n_queries
    return selected and not told and picture.view.stage in WEIGHT_STAGES and told_row(snapshot, picture) is None


def _of_picture(snapshot: Snapshot, picture: Picture) -> tuple[str, str]:
    """The sentences of ``picture`` as if nothing else were to be said."""
    if picture.finished is not None and picture.finished.remarks:
        return picture.finished.remarks[0], " ".join(picture.finished.remarks[1:])
    if picture.view.stage not in WEIGHT_STAGES:
        return _other_stage(picture.spec, picture.view.stage)
    if snapshot.selected is None:
        words = has_words(picture.spec)
        return (
            translate("Story", "Click a word, or use the arrows.")
            if words else translate("Story", "Click a row, or use the arrows."),
            translate("Story", "A row shows where that word looks.")
            if words else translate("Story", "A row shows where that token looks."),
        )  # fmt: skip
    row = told_row(snapshot, picture)
    frame = frame_of(picture)
    if row is None:
        return _without_row(frame)
    large, small = row_told(snapshot, row)
    if large and picture.spec.num_heads > 1:
        head = translate("Story", "These are the numbers of head {n}.").format(n=frame.head)
        small = f"{small} {head}".strip()
    return large, small


def _without_row(frame: Frame) -> tuple[str, str]:
    """What can be said of a map before the selected row's numbers have come."""
    if frame.level > 1:
        words = marks.pixel_words(frame.level, frame.pooling, signed=frame.scale.diverging)
        large = translate("Story", "A pixel here is the {words}.").format(words=words)
    else:
        large = translate("Story", "A part of the map is in sight.")
    return large, translate("Story", "Press 0 for the whole map.") if frame.level == 1 else ""


def _other_stage(spec: AttentionSpec, stage: str) -> tuple[str, str]:
    """What a stage that holds no weights is."""
    if stage == "masked_scores":
        return _masked_scores(spec)
    words = has_words(spec)
    if stage in ("queries", "keys"):
        asks = {
            ("queries", True): translate("Story", "What each word asks for."),
            ("queries", False): translate("Story", "What each token asks for."),
            ("keys", True): translate("Story", "What each word offers to be found by."),
            ("keys", False): translate("Story", "What each token offers to be found by."),
        }
        return asks[stage, words], _made_of(spec, "Wq" if stage == "queries" else "Wk")
    large, small = {
        "inputs": (
            translate("Story", "Each word is a row of numbers.")
            if words else translate("Story", "Each token is a row of numbers."),
            translate("Story", "Without projections, the same rows ask, offer and carry.")
            if spec.projection == "none" else translate("Story", "Attention mixes these rows."),
        ),
        "values": (
            translate("Story", "What each word hands over when it is looked at.")
            if words else translate("Story", "What each token hands over when it is looked at."),
            _made_of(spec, "Wv"),
        ),
        "scores": (
            translate("Story", "How well each question fits each offer."),
            translate("Story", "Query times key, one number a pair."),
        ),
        "scaled_scores": (translate("Story", "The same scores on a scale that the softmax can use."), ""),
        "row_sums": (
            translate("Story", "What the triangle left of each row.")
            if isinstance(spec.mask_shape, Causal) else translate("Story", "What the mask left of each row."),
            translate("Story", "Dividing by it makes every row 1 again."),
        ),
        "context": (
            translate("Story", "Each word's mixture of values, by its weights.")
            if words else translate("Story", "Each token's mixture of values, by its weights."),
            "",
        ),
        "dropped_context": (translate("Story", "The mixtures after dropout."), ""),
        "joined": (translate("Story", "All heads' mixtures side by side."), ""),
        "output": (
            translate("Story", "What the module hands on."),
            "" if spec.out_proj else translate("Story", "Without an output projection it is what was joined."),
        ),
    }.get(stage, ("", ""))  # fmt: skip
    return large, small


def _made_of(spec: AttentionSpec, matrix: str) -> str:
    """Where queries, keys or values come from."""
    if isinstance(spec.source, QKFile):
        return translate("Story", "It was read from the file as it is: there is no input and no matrix.")
    if isinstance(spec.source, Pattern):
        return translate("Story", "It was made up: there is no input and no matrix.")
    if has_bare_qk(spec.source):
        return translate("Story", "It was drawn at random: there is no input and no matrix.")
    if spec.projection == "rand":
        return translate("Story", "The input times {matrix}, a matrix of random numbers.").format(matrix=matrix)
    return translate("Story", "The input times {matrix}, a matrix of weights.").format(matrix=matrix)


def _masked_scores(spec: AttentionSpec) -> tuple[str, str]:
    """What stands in place of hidden scores."""
    kept = translate("Story", "Only the largest score of each row is kept; the others become −∞.")
    if spec.top_k is not None and spec.top_k > 1:
        kept = translate("Story", "Only the {k} largest scores of each row are kept; the others become −∞.")
        kept = kept.format(k=f"{spec.top_k:,}")
    small = translate("Story", "e to the −∞ is 0.")
    if not spec.fills or not acts_on_scores(spec):
        return kept, small
    future = isinstance(spec.mask_shape, Causal)
    if spec.mask == "add":
        large = translate("Story", "The mask is added: 0 where a word may look, {fill} where not.")
        if not has_words(spec):
            large = translate("Story", "The mask is added: 0 where a token may look, {fill} where not.")
    elif future:
        large = translate("Story", "The future is set to {fill} before anything is shared out.")
    else:
        large = translate("Story", "What is hidden is set to {fill} before anything is shared out.")
    if spec.fill != -float("inf"):
        small = translate("Story", "It weighs nothing only where {fill} lies far below the other scores.")
        small = small.format(fill=number_words(spec.fill))
    if spec.top_k is not None:
        small = kept
    return large.format(fill=number_words(spec.fill)), small
