"""Decks: TOML files that describe pictures, one [[figure]] each, in the words of `attnviz render`.

A file that is no deck is refused in one sentence with its line, `SceneProblem`. No name in a deck leads out of the
folder that is chosen for its pictures.
"""

from attnviz.figures import NUMBERS, PICTURES
from attnviz.scene_files.names import place_in
from attnviz.scene_files.reading import MAX_BYTES, MAX_FIGURES, MOST_TOLD, Deck, DeckFigure, SceneProblem, parse, read
from attnviz.scene_files.shipped import built_in, names
from attnviz.scene_files.writing import deck_text

__all__ = [
    "MAX_BYTES",
    "MAX_FIGURES",
    "MOST_TOLD",
    "NUMBERS",
    "PICTURES",
    "Deck",
    "DeckFigure",
    "SceneProblem",
    "built_in",
    "deck_text",
    "names",
    "parse",
    "place_in",
    "read",
]
