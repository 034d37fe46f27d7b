"""What a computation will take, and whether that fits: asked before anything large is allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from attnviz import inputs
from attnviz.engine.errors import ComputationError
from attnviz.frames import said_bytes
from attnviz.spec import JOINT_STAGES, QUERY_KEY_STAGES, AttentionSpec, has_bare_qk, stages_of

DENSE_BYTES: Final = 256 << 20
"""A stage of more bytes over all heads is computed in tiles: it would take longer than a blink anyway."""
TILE_BYTES: Final = 160 << 20
"""Tiles of pixels that are kept, beside the screen's: some hundred windows."""
_ONE_MAP_BYTES: Final = 16 << 20
"""A head's map of more bytes is computed in tiles, between which an edit or a probe can have its turn."""
_ALWAYS_BYTES: Final = 32 << 20
"""So much may always be taken: a lesson is not refused on a machine that is full."""
_WORKING_BYTES: Final = 64 << 20
"""What tiles take while they are computed."""
_ITEM_BYTES: Final = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Budget:
    """``budget`` bytes for one picture of ``spec``; ``was_set`` says by a person. Dense up to ``dense_bytes``."""

    spec: AttentionSpec
    budget: int
    was_set: bool
    dense_bytes: int = DENSE_BYTES

    @property
    def fits(self) -> bool:
        """Whether a query × key stage of all heads is kept whole."""
        spec = self.spec
        n_queries, n_keys = inputs.count_tokens(spec.source)
        one_map = spec.batch * n_queries * n_keys * _ITEM_BYTES[spec.dtype]
        if one_map > _ONE_MAP_BYTES and not (spec.drops and spec.dropout_generator == "torch"):
            return False
        return spec.num_heads * one_map <= min(self.dense_bytes, self.budget // 2) or n_keys <= 32

    @property
    def maps_queries(self) -> bool:
        """Whether drawn queries and keys are to lie in a file: they take more than the budget."""
        return has_bare_qk(self.spec.source) and self._vector_bytes() > self.budget

    @property
    def tile_bytes(self) -> int:
        """Bytes of the tiles of pixels that may be kept."""
        return min(self.budget // 4, TILE_BYTES)

    def beside(self, held: int) -> int:
        """Bytes that may stay of the source before, where this picture holds ``held``, and of a long map its tiles."""
        return max(self.budget - held - (0 if self.fits else self.tile_bytes + _WORKING_BYTES), 0)

    def _vector_bytes(self) -> int:
        """Queries, keys and what they come from: drawn ones as drawn, and cast where the dtype is another."""
        spec = self.spec
        n_keys, item = inputs.count_tokens(spec.source)[1], _ITEM_BYTES[spec.dtype]
        if has_bare_qk(spec.source):
            numbers = n_keys * (spec.d_head or 0) * (spec.num_heads + spec.num_kv_heads)
            return numbers * (4 if spec.dtype == "float32" else 4 + item)
        d_model, d_out = spec.d_model or 0, spec.d_out or 0
        return item * (4 * spec.batch * n_keys * (d_model + d_out) + 3 * d_model * d_out + d_out * d_out)

    def check(self, names: tuple[str, ...], *, long: bool) -> int:
        """Bytes that the stages ``names`` will hold; raises `ComputationError` if they cannot fit."""
        spec, budget = self.spec, self.budget
        n_queries, n_keys = inputs.count_tokens(spec.source)
        item = _ITEM_BYTES[spec.dtype]
        vectors = self._vector_bytes()
        if long:
            if "dropped_weights" in names and spec.dropout_generator == "torch":
                raise ComputationError(
                    f"torch's generator draws whole maps, and {n_keys:,} tokens are computed in tiles.",
                    "Take the portable generator, or fewer tokens.",
                )
            if self.maps_queries:  # what is cast stays in memory
                vectors = 0 if spec.dtype == "float32" else vectors * item // (4 + item)
            need = vectors + spec.num_heads * 8 * n_queries + _WORKING_BYTES
        else:
            one_map = spec.batch * n_queries * n_keys
            kept = len([name for name in names if name in QUERY_KEY_STAGES]) * spec.num_heads * one_map * item
            working = 3 * one_map * item + one_map + (3 * n_queries * n_keys * 8 if spec.drops else 0)
            by_rows = not (spec.drops and spec.dropout_generator == "torch")  # which draws whole maps
            if by_rows and not any(name in QUERY_KEY_STAGES for name in names):
                working = min(working, 256 << 20)  # a block of rows at a time
            need = kept + working + vectors
        if need > max(budget, _ALWAYS_BYTES):
            raise ComputationError(
                f"{spec.num_heads} {'head' if spec.num_heads == 1 else 'heads'} × {n_keys:,} tokens need "
                f"{said_bytes(need)}, but the memory limit is {said_bytes(budget)}, "
                f"{'as it was set' if self.was_set else f'a quarter of the free memory on {spec.device}'}.",
                "Take fewer tokens or heads, a smaller dtype, or more memory (--memory, or Set up → More → Memory).",
            )
        return vectors + (0 if long else kept)


def names_by_rows(spec: AttentionSpec) -> list[str]:
    """A head's stages that cost no more than the rows that are asked for, in order.

    torch's generator draws a whole map of weights for one row of them: they are left out, and what is mixed from them.
    """
    names = [name for name in stages_of(spec) if name not in JOINT_STAGES]
    if spec.dropout_generator == "torch" and "dropped_weights" in names:
        names = names[: names.index("dropped_weights")]
    return names
