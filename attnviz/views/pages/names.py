"""What a row is called on a page: its number and its word, as the map has them."""

from __future__ import annotations

from collections.abc import Sequence


def row_name(row: int, tokens: Sequence[str], n_queries: int) -> str:
    """The number of query ``row`` and its token: "1 · 吃"; the number alone where the token says no more.

    ``tokens`` name the keys, whose last ``n_queries`` ask.
    """
    place = row + len(tokens) - n_queries
    token = tokens[place] if 0 <= place < len(tokens) else ""
    return f"{row:,} · {token}" if token and token != str(row) else f"{row:,}"
