"""What each stage of a spec is in words for a class, and its formula. Pure."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from attnviz.spec import AttentionSpec, Causal, acts_on_scores, has_bare_qk, is_typed, stages_of
from attnviz.spec.fills import number_words

_WORDS: Final = {
    "inputs": QT_TRANSLATE_NOOP("Strip", "inputs"),
    "queries": QT_TRANSLATE_NOOP("Strip", "ask"),
    "keys": QT_TRANSLATE_NOOP("Strip", "offer"),
    "values": QT_TRANSLATE_NOOP("Strip", "carry"),
    "scores": QT_TRANSLATE_NOOP("Strip", "compare"),
    "scaled_scores": QT_TRANSLATE_NOOP("Strip", "scale"),
    "unmasked_weights": QT_TRANSLATE_NOOP("Strip", "share out"),
    "row_sums": QT_TRANSLATE_NOOP("Strip", "add up"),
    "dropped_weights": QT_TRANSLATE_NOOP("Strip", "drop"),
    "context": QT_TRANSLATE_NOOP("Strip", "mix"),
    "dropped_context": QT_TRANSLATE_NOOP("Strip", "drop"),
    "joined": QT_TRANSLATE_NOOP("Strip", "join"),
    "output": QT_TRANSLATE_NOOP("Strip", "project"),
}
_FORMULAS: Final = {
    "inputs": "X",
    "queries": "Q = X·Wq",
    "keys": "K = X·Wk",
    "values": "V = X·Wv",
    "unmasked_weights": "softmax",
    "unnormalised_weights": "× triangle",
    "row_sums": "Σ",
    "dropped_weights": "dropout",
    "dropped_context": "dropout",
    "joined": "concat",
    "output": "·Wo",
}
_MASK_STAGES: Final = frozenset({"masked_scores", "unmasked_weights", "unnormalised_weights", "row_sums"})


def operation(spec: AttentionSpec, stage: str) -> tuple[str, str]:
    """What ``stage`` of ``spec`` does, in words, and its formula, which may be empty."""
    if is_typed(spec.source) and stage == stages_of(spec)[0]:
        words = _said("scaled scores") if stage == "scaled_scores" else _said("weights")
        return words, _said("by hand")
    if has_bare_qk(spec.source) and stage in ("queries", "keys"):
        return _said(_WORDS[stage]), {"queries": "Q", "keys": "K"}[stage]
    match stage:
        case "scores":
            return _said(_WORDS[stage]), "X·Xᵀ" if spec.projection == "none" else "Q·Kᵀ"
        case "scaled_scores":
            return _said(_WORDS[stage]), _scaled(spec)
        case "masked_scores":
            return _masked_scores(spec)
        case "unnormalised_weights":
            return _hides(spec), _product(spec)
        case "weights" if spec.mask == "three-step":
            return _said(QT_TRANSLATE_NOOP("Strip", "share out again")), "÷ Σ"
        case "weights" if spec.mask == "multiply":
            return _hides(spec), _product(spec)
        case "weights":
            return _said(QT_TRANSLATE_NOOP("Strip", "share out")), "softmax"
        case "context":
            return _said(_WORDS[stage]), "·X" if spec.projection == "none" else "·V"
        case "output" if not spec.out_proj:
            return _said(QT_TRANSLATE_NOOP("Strip", "hand on")), _said(QT_TRANSLATE_NOOP("Strip", "as joined"))
    return _said(_WORDS[stage]), _FORMULAS[stage]


def is_of_mask(spec: AttentionSpec, stage: str) -> bool:
    """Whether a stage is there for the mask or top-k alone, or does their work."""
    return stage in _MASK_STAGES or (stage == "weights" and spec.mask in ("three-step", "multiply"))


def _masked_scores(spec: AttentionSpec) -> tuple[str, str]:
    top = "" if spec.top_k is None else f"top {spec.top_k:,}"
    if not acts_on_scores(spec) or not spec.fills:
        return _said(QT_TRANSLATE_NOOP("Strip", "keep the largest")), top
    fill = number_words(spec.fill)
    if spec.mask == "add":
        words, formula = _said(QT_TRANSLATE_NOOP("Strip", "add the mask")), f"S + M ({fill})"
    else:
        words, formula = _hides(spec), fill
    return words, f"{formula}, {top}" if top else formula


def _hides(spec: AttentionSpec) -> str:
    if isinstance(spec.mask_shape, Causal):
        return _said(QT_TRANSLATE_NOOP("Strip", "hide the future"))
    return _said(QT_TRANSLATE_NOOP("Strip", "hide"))


def _product(spec: AttentionSpec) -> str:
    causal = isinstance(spec.mask_shape, Causal)
    return _said(QT_TRANSLATE_NOOP("Strip", "× triangle") if causal else QT_TRANSLATE_NOOP("Strip", "× mask"))


def _scaled(spec: AttentionSpec) -> str:
    scale = {"auto": "÷ √d_head", "none": "× 1"}.get(str(spec.scale)) or f"× {spec.scale:g}"
    return scale if spec.soft_cap is None else f"{scale}, cap {spec.soft_cap:g}"


def _said(words: object) -> str:
    return QCoreApplication.translate("Strip", str(words))
