"""Make the pictures of README.md in .github/pictures: ``python .github/pictures.py`` in the repository root.

The window is the real one, off screen; the same machine gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import attnviz
from attnviz.scripted import open_window

FOLDER = Path(".github/pictures")
WIDE = (1180, 740)


def window() -> None:
    """Make the first picture with its mask on, in both themes, and one lesson's step."""
    for theme in ("light", "dark"):
        with open_window(size=WIDE, theme=theme) as w:
            w.press("M")
            w.save(FOLDER / f"window-{theme}.png")
    with open_window(size=WIDE) as w:
        w.lesson("cat-eats-fish")
        w.press("PgDown")
        w.save(FOLDER / "lesson.png")
    with open_window(text="The cat eats a small fish.", heads=12, size=WIDE) as w:
        w.layout("explore")
        w.save(FOLDER / "heads.png")
        w.save(FOLDER / "leaks.png", part="leaks")


def weights() -> None:
    """Make a figure of weights that somebody had: twelve heads of 64 tokens."""
    scores = np.random.default_rng(0).normal(size=(12, 64, 64)) * 2
    scores -= np.abs(np.arange(64)[:, None] - np.arange(64)) * np.linspace(0, 0.5, 12)[:, None, None]
    scores[:, ~np.tri(64, dtype=bool)] = -np.inf
    parts = np.exp(scores)
    attnviz.show(
        parts / parts.sum(-1, keepdims=True), mask="causal", path=FOLDER / "show.png", size="1180x600",
        title="twelve heads, from even to near-sighted",
    )  # fmt: skip


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    window()
    weights()
