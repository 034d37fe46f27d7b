"""Text to tokens, and tokens to embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import regex
import torch
from torch import Tensor

from attnviz.inputs.drawn import keyed_generator

# Flags are taken out first: at each of them the library's word breaks look back over the whole run, which is quadratic.
_FLAGS: Final = regex.compile(r"(\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+)", regex.V1)
_WORD_BREAK: Final = regex.compile(r"\b", regex.V1 | regex.WORD)


@lru_cache(maxsize=2)
def split_tokens(text: str) -> tuple[str, ...]:
    """The words of ``text`` by Unicode's word breaks (UAX 29), without white space; in linear time.

    Punctuation marks are tokens of their own; "don't" and "3.14" are one. Han characters and hiragana stand one by
    one, as do the letters of Thai and other scripts that put no space between words, each with its marks; katakana
    stays together. Emoji sequences (joined, flags, skin tones, keycaps) stay whole, and case is kept. A text that is
    not blank has at least one token.
    """
    pieces = (
        piece for part in _FLAGS.split(text) for piece in ((part,) if _FLAGS.match(part) else _WORD_BREAK.split(part))
    )
    return tuple(token for piece in pieces if (token := piece.strip()))


def embed_tokens(tokens: Sequence[str], d_model: int, seed: int) -> Tensor:
    """Standard normal embeddings (L, d_model), float32, by (seed, token text): equal tokens get equal rows."""
    kinds = {token: row for row, token in enumerate(dict.fromkeys(tokens))}
    table = torch.empty(len(kinds), d_model)
    for token, row in kinds.items():
        torch.randn(d_model, generator=keyed_generator(seed, "token", token), out=table[row])
    return table[torch.tensor([kinds[token] for token in tokens])]
