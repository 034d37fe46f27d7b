"""What a picture says in words: stages, masks, counts and the caption. No painting."""

from __future__ import annotations

from functools import reduce
from operator import add

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from attnviz import colour
from attnviz.frames import Counts, Frame, Outline, Scale
from attnviz.session import Picture
from attnviz.spec import QUERY_KEY_STAGES, WEIGHT_STAGES, AttentionSpec

_STAGES = {
    "inputs": QT_TRANSLATE_NOOP("Figure", "inputs"),
    "queries": QT_TRANSLATE_NOOP("Figure", "queries"),
    "keys": QT_TRANSLATE_NOOP("Figure", "keys"),
    "values": QT_TRANSLATE_NOOP("Figure", "values"),
    "scores": QT_TRANSLATE_NOOP("Figure", "scores"),
    "scaled_scores": QT_TRANSLATE_NOOP("Figure", "scaled scores"),
    "masked_scores": QT_TRANSLATE_NOOP("Figure", "masked scores"),
    "weights": QT_TRANSLATE_NOOP("Figure", "weights"),
    "unmasked_weights": QT_TRANSLATE_NOOP("Figure", "weights before the mask"),
    "unnormalised_weights": QT_TRANSLATE_NOOP("Figure", "weights × triangle"),
    "row_sums": QT_TRANSLATE_NOOP("Figure", "row sums"),
    "dropped_weights": QT_TRANSLATE_NOOP("Figure", "weights after dropout"),
    "context": QT_TRANSLATE_NOOP("Figure", "context vectors"),
    "dropped_context": QT_TRANSLATE_NOOP("Figure", "context vectors after dropout"),
    "joined": QT_TRANSLATE_NOOP("Figure", "joined heads"),
    "output": QT_TRANSLATE_NOOP("Figure", "output"),
}
_MASKS = {
    "none": QT_TRANSLATE_NOOP("Figure", "no mask"),
    "three-step": QT_TRANSLATE_NOOP("Figure", "three-step mask"),
    "neg-inf": QT_TRANSLATE_NOOP("Figure", "−∞ mask"),
}


def _tr(text: object) -> str:
    return QCoreApplication.translate("Figure", str(text))


def stage_words(stage: str) -> str:
    return _tr(_STAGES[stage])


def mask_words(spec: AttentionSpec) -> str:
    return _tr(_MASKS[spec.mask])


def head_title(frame_panel: str, stage: str) -> str:
    """ "head 3", or the stage's name where all heads share one panel."""
    if frame_panel.startswith("head:"):
        return QCoreApplication.translate("Figure", "head {number}").format(number=frame_panel.removeprefix("head:"))
    return stage_words(stage)


def counts_of(frames: tuple[Frame, ...]) -> Counts:
    """Counts of all heads together."""
    return reduce(add, (frame.counts for frame in frames), Counts())


def count_items(counts: Counts, stage: str) -> list[tuple[str, str]]:
    """(kind, words) for the legend; zero and NaN are always said, the others when there are any."""
    items = []
    if counts.future:
        items.append(
            ("future", _tr(QT_TRANSLATE_NOOP("Figure", "red frame: peeking {n}")).format(n=f"{counts.future:,}"))
        )
    if counts.masked:
        items.append(("masked", _tr(QT_TRANSLATE_NOOP("Figure", "masked {n}")).format(n=f"{counts.masked:,}")))
    if stage in WEIGHT_STAGES:
        items.append(("zero", _tr(QT_TRANSLATE_NOOP("Figure", "zero {n}")).format(n=f"{counts.zero:,}")))
    items.append(("nan", _tr(QT_TRANSLATE_NOOP("Figure", "NaN {n}")).format(n=f"{counts.nan:,}")))
    if counts.dropped:
        items.append(("dropped", _tr(QT_TRANSLATE_NOOP("Figure", "dropped {n}")).format(n=f"{counts.dropped:,}")))
    if counts.padded:
        items.append(("padded", _tr(QT_TRANSLATE_NOOP("Figure", "padded {n}")).format(n=f"{counts.padded:,}")))
    return items


def axes_words(outline: Outline, frame: Frame) -> str:
    """What rows, columns and pixels are."""
    if outline.stage in QUERY_KEY_STAGES:
        words = _tr(QT_TRANSLATE_NOOP("Figure", "row = who asks, column = who is looked at"))
    else:
        words = _tr(QT_TRANSLATE_NOOP("Figure", "row = token, column = dimension"))
    if frame.level > 1:
        pixel = _tr(QT_TRANSLATE_NOOP("Figure", "a pixel is the brightest of {n} × {n} cells"))
        words += " · " + pixel.format(n=frame.level)
    return words


def scale_words(scale: Scale) -> str:
    """The colour bar's name."""
    quantity = {
        "value": "",
        colour.UNIFORM: _tr(QT_TRANSLATE_NOOP("Figure", "weight × visible keys (1 = uniform)")),
        colour.ROW_SHARE: _tr(QT_TRANSLATE_NOOP("Figure", "share of the row's largest")),
    }.get(scale.quantity, scale.quantity)
    log = _tr(QT_TRANSLATE_NOOP("Figure", "log scale")) if scale.curve == "log" else ""
    return " · ".join(part for part in (log, quantity) if part)


def caption_lines(picture: Picture) -> tuple[str, str]:
    """What the picture shows, and where its numbers come from."""
    spec, outline = picture.spec, picture.outline
    assert outline is not None  # noqa: S101 (a picture on paper is complete)
    heads = QCoreApplication.translate("Figure", "{n} heads").format(n=spec.num_heads)
    if spec.num_heads == 1:
        heads = QCoreApplication.translate("Figure", "1 head")
    parts = [stage_words(picture.view.stage)]
    if spec.num_heads > 1:
        parts.append(spec.implementation)
    parts += [mask_words(spec), f"{heads} × {outline.n_keys:,}"]
    if spec.drops:
        drop = QCoreApplication.translate("Figure", "dropout {p} on {site}, seed {seed} ({generator})")
        parts.append(drop.format(
            p=f"{spec.dropout:g}", site=spec.dropout_site, seed=spec.dropout_seed, generator=spec.dropout_generator
        ))  # fmt: skip
    if spec.batch > 1:
        parts.append(QCoreApplication.translate("Figure", "item 0 of a batch of {n}").format(n=spec.batch))
    parts.append(f"{spec.device} {spec.dtype}")
    return " · ".join(parts), outline.origin
