"""Tokens with their meanings: who looks at a picture may not read Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attnviz.frames import Outline


def glossed(outline: Outline) -> Outline:
    """``outline`` whose tokens bring their meanings, where the source gives them."""
    tokens = with_glosses(outline.tokens, outline)
    return outline if tokens is outline.tokens else replace(outline, tokens=tuple(tokens), glosses=())


def with_glosses(tokens: Sequence[str], outline: Outline) -> Sequence[str]:
    """``tokens`` with the meanings that ``outline`` has for as many; themselves where it has none."""
    if not outline.glosses or len(outline.glosses) != len(tokens):
        return tokens
    return tuple(f"{token} {gloss}" for token, gloss in zip(tokens, outline.glosses, strict=True))
