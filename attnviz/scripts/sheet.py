"""The sheet that a script is written on: what it is about, and the steps so far."""

from __future__ import annotations

import math

from attnviz.scripts.lines import WIDTH, Step, packed, wrapped
from attnviz.spec import (
    AttentionSpec,
    Lesson,
    Matrix,
    RandomEmbeddings,
    RandomQK,
    Text,
    TypedScores,
    View,
    has_module,
    is_typed,
    stages_of,
)
from attnviz.spec.worked import JOURNEY_INPUTS, typed_form


class Sheet:
    """The steps of a script for ``view``'s stage, added one by one, and what all who add them ask for.

    ``names`` are the stages up to that one; ``airy`` gives each row of a typed matrix a line of its own.
    """

    def __init__(self, spec: AttentionSpec, view: View, tokens: tuple[str, ...], *, airy: bool) -> None:
        self.spec, self.view, self.tokens, self.airy = spec, view, tokens, airy
        self.typed = is_typed(spec.source)
        self.through_module = has_module(spec.source)
        self.n_queries, self.n_keys = self._sizes()
        names = stages_of(spec)
        self.names = names[: names.index(view.stage) + 1]
        self.group = spec.num_heads // spec.num_kv_heads
        self.steps: list[Step] = []

    def add(self, name: str, value: str, comment: str = "") -> None:
        """A step ``name = value``, or lines as they are where ``name`` is empty."""
        self.steps.append(Step(name, value, comment))

    def _sizes(self) -> tuple[int, int]:
        source, typed = self.spec.source, typed_form(self.spec.source)
        if typed is not None:
            matrix = typed.scores if isinstance(typed, TypedScores) else typed.weights
            return len(matrix), len(matrix[0])
        match source:
            case RandomEmbeddings(length=length) | RandomQK(length=length):
                pass
            case Text():
                length = len(self.tokens)
            case Lesson(name="one-class"):
                length = 4
            case _:
                length = len(JOURNEY_INPUTS)
        return length, length

    def typed_tensor(self, rows: Matrix) -> str:
        """The tensor of what was typed, of the spec's dtype, on its device."""
        like = "" if self.spec.dtype == "float32" else f", dtype=torch.{self.spec.dtype}"
        like += "" if self.spec.device == "cpu" else f', device="{self.spec.device}"'
        if all(number == 1 for row in rows for number in row):
            return f"torch.ones({len(rows)}, {len(rows[0])}{like})"
        return self.matrix(rows, "torch.tensor([", f"]{like})")

    def matrix(self, rows: Matrix, opening: str, closing: str) -> str:
        """``rows`` as lists between ``opening`` and ``closing``, on one line if it is short."""
        said = [f"[{', '.join('-torch.inf' if n == -math.inf else repr(n) for n in row)}]," for row in rows]
        if not self.airy:
            return wrapped(said, opening, closing)
        flat = f"{opening}{' '.join(said)[:-1]}{closing}"
        if len(flat) <= WIDTH - 20:
            return flat
        return "\n".join([opening, *(part for row in said for part in packed([row])), closing])

    def to(self, *, always: bool = False) -> str:
        """``.to(…)`` what the spec asks for, empty for float32 on the CPU unless ``always``."""
        spec = self.spec
        parts = [] if spec.device == "cpu" else [f'"{spec.device}"']
        parts += [f"torch.{spec.dtype}"] if spec.dtype != "float32" or always else []
        return f".to({', '.join(parts)})" if parts else ""

    def on_device(self) -> str:
        """``.to(…)`` the spec's device, empty for the CPU."""
        return "" if self.spec.device == "cpu" else f'.to("{self.spec.device}")'
