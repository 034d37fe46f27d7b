"""Sessions damaged by chance, as bytes and as JSON: each opens, or is refused in a sentence with its line."""

import re
from functools import cache
from pathlib import Path
from random import Random

from attnviz.session_files import SavedSession, from_text, is_session, to_text
from attnviz.spec import Lesson, SpecError, Text, TypedScores, View, make_spec, parse_shape

from .damage import JSON_TOKENS, damaged_bytes, damaged_json, is_sentence


@cache
def bases() -> tuple[str, ...]:
    typed = TypedScores(scores=((0.5, float("-inf")), (1.0, 2.5)), values=((1.0,), (0.5,)), tokens=("a", "猫"))
    sessions = (
        SavedSession(spec=make_spec(), view=View()),
        SavedSession(
            spec=make_spec(Text(text="猫 eats"), num_heads=3, dropout=0.5, training=True),
            view=View(rows=(1, 2), head=2, stage="scaled_scores"),
            pinned=(make_spec(mask="three-step"), View(norm="log")), selected=(1, 0),
            show_numbers=True, decimals=3, layout="test", page="leaks", dark=False,
        ),
        SavedSession(spec=make_spec(typed), view=View(stage="context"), pinned=None, decimals=None),
        SavedSession(spec=make_spec(Lesson(name="cat-eats-fish"), mask_shape=parse_shape("drawn:0:0-1")), view=View()),
    )  # fmt: skip
    return tuple(map(to_text, sessions))


def case(random: Random, _folder: Path) -> None:
    """One damaged session. Raises AssertionError, or whatever a reader must not."""
    text = random.choice(bases())
    data = damaged_bytes(random, text.encode(), JSON_TOKENS) if random.random() < 0.5 else damaged_json(random, text)
    is_session(data)
    try:
        found = from_text(data)
    except SpecError as error:
        said = str(error)
        line = re.match(r"line (\d+): .", said)
        assert line, said
        assert 1 <= int(line[1]) <= data.count(b"\n") + 1, said
        assert is_sentence(said, 800), said
        return
    assert from_text(to_text(found).encode()) == found
