"""Tokens and dimensions with their meanings: who looks at a picture may not read Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attnviz.frames import Outline


def glossed(outline: Outline) -> Outline:
    """``outline`` whose tokens and dimensions bring their meanings, where the source gives them."""
    tokens, dims = with_glosses(outline.tokens, outline), _joined(outline.dims, outline.dim_glosses)
    if tokens is outline.tokens and dims is outline.dims:
        return outline
    return replace(outline, tokens=tuple(tokens), glosses=(), dims=tuple(dims), dim_glosses=())


def with_glosses(tokens: Sequence[str], outline: Outline) -> Sequence[str]:
    """``tokens`` with the meanings that ``outline`` has for as many; themselves where it has none."""
    return _joined(tokens, outline.glosses)


def _joined(names: Sequence[str], glosses: Sequence[str]) -> Sequence[str]:
    if not glosses or len(glosses) != len(names):
        return names
    return tuple(f"{name} {gloss}" for name, gloss in zip(names, glosses, strict=True))
