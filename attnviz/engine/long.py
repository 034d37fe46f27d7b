"""Pictures and exact numbers of maps that do not fit: heads in tiles, and what is known of them between requests."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import torch

from attnviz.attention.devices import Backend
from attnviz.attention.longmaps import HeadMap, Known
from attnviz.attention.pooling import Region
from attnviz.attention.tiles import Workspace
from attnviz.engine.opened import Opened, Opener, storages_of
from attnviz.engine.tiling import Tiling
from attnviz.frames import CellClass
from attnviz.spec import AttentionSpec

_AFTER_SOFTMAX: Final = frozenset({"dropout", "dropout_site", "dropout_seed", "dropout_generator", "training"})
_KEPT: Final = 3  # stages or drop-outs whose tiles are kept


class LongMaps:
    """Long maps of the present spec. Log-sum-exps outlive changes of dropout and of the stage. Thread: the engine's."""

    def __init__(self, backend: Backend, opener: Opener) -> None:
        self._backend, self._opener = backend, opener
        self._key: tuple[object, ...] | None = None
        self._bare: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._known: list[Known] = []
        self._tilings: OrderedDict[tuple[AttentionSpec, str, bool, bool], Tiling] = OrderedDict()
        self._space = Workspace()  # of the probes, which are answered while the crew is busy

    def forget(self) -> None:
        """Let go of everything kept."""
        self._key, self._bare, self._known = None, [], []
        self._tilings.clear()

    @property
    def nbytes(self) -> int:
        """Bytes kept beyond queries and keys."""
        return sum(one.nbytes for one in self._known) + sum(tiling.nbytes for tiling in self._tilings.values())

    @property
    def storages(self) -> dict[int, int]:
        """Bytes of queries and keys by address: most are those of what is open."""
        return storages_of(tensor for pair in self._bare for tensor in pair)

    def forget_but(self, spec: AttentionSpec) -> None:
        """Let go of everything that is not of ``spec``'s own scores, before others are asked for."""
        if self._key != _scores_key(spec):
            self.forget()

    def heads(self, spec: AttentionSpec, stage: str, opened: Opened) -> list[HeadMap]:
        """Every head's map of ``stage``."""
        key = _scores_key(spec)
        mask = self._opener.mask(spec, opened)
        if key != self._key:
            self.forget()
            self._bare = self._queries_keys(spec, opened)
            self._known = [
                Known.nothing(
                    len(q), torch.promote_types(q.dtype, torch.float32), q.device,
                    softmax_first=spec.mask in ("three-step", "multiply"),
                )
                for q, _ in self._bare
            ]  # fmt: skip
            self._key = key
        return [
            HeadMap(spec, stage, head, q, k, mask, known)
            for head, ((q, k), known) in enumerate(zip(self._bare, self._known, strict=True))
        ]

    def _queries_keys(self, spec: AttentionSpec, opened: Opened) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Queries (Q, D) and keys (K, D) of each head; heads of a group share one tensor of keys."""
        bare: list[tuple[torch.Tensor, torch.Tensor]] = []
        for head in range(spec.num_heads):
            given = self._opener.head_inputs(spec, head, opened, values=False)
            q, k = given["q"], given["k"]
            assert q is not None and k is not None  # noqa: S101, PT018 (typed maps are never long)
            shared = head % (spec.num_heads // spec.num_kv_heads)
            bare.append((q[0].contiguous(), bare[-1][1] if shared else k[0].contiguous()))
        return bare

    def tiling(
        self, spec: AttentionSpec, stage: str, opened: Opened, *, per_row: bool, means: bool, budget_bytes: int
    ) -> Tiling:
        """The tiles of a stage, those that stood before if it was shown lately."""
        heads = self.heads(spec, stage, opened)
        key = spec, stage, per_row and stage == "dropped_weights", means
        if key not in self._tilings:
            kept = self._tilings
            while len(kept) >= _KEPT or (kept and sum(tiling.nbytes for tiling in kept.values()) > budget_bytes):
                kept.popitem(last=False)
            self._tilings[key] = Tiling(
                heads, per_row=per_row, budget_bytes=budget_bytes, backend=self._backend, means=means
            )
        self._tilings.move_to_end(key)
        return self._tilings[key]

    # ------------------------------------------------------------------------------------------------- exact numbers

    def cell(self, one: HeadMap, row: int, col: int) -> tuple[float, CellClass]:
        """One cell's value and class. A row that no pass has reached yet is normalised first."""
        values, classes = self.row(one, row, (col, col + 1))
        return float(values[0]), CellClass(int(classes[0]))

    def row(self, one: HeadMap, row: int, cols: tuple[int, int] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Values (columns,) and classes uint8 (columns,) of one row, or of some of its columns."""
        rows, cols = range(row, row + 1), cols or (0, len(one.keys))
        if not one.holds_weights:
            return self._backend.run(one.spec.device, lambda: one.exact_scores(row, cols))
        found = self._backend.run(one.spec.device, lambda: one.bins(rows, cols, 1, self._space, lambda: False))
        assert found is not None  # noqa: S101 (nobody cancels)
        bins = found[0]
        region = Region((row, row + 1), cols, 1)
        outside = one.outside(region)
        classes = torch.full((cols[1] - cols[0],), int(CellClass.MASKED), dtype=torch.uint8)
        if outside is not None:
            classes = outside.clone()
        values = torch.full((cols[1] - cols[0],), one.blank, dtype=bins.top.dtype)
        first, end = max(bins.left, cols[0]), min(bins.left + len(bins.top), cols[1])
        if first < end:
            part, place = slice(first - bins.left, end - bins.left), slice(first - cols[0], end - cols[0])
            top = bins.top[part, 0].cpu()
            sets = bins.sets[part, 0].cpu()
            values[place] = torch.where(sets & int(CellClass.ORDINARY | CellClass.NAN) != 0, top, one.blank)
            classes[place] = sets
        if bins.sound is not None and not bool(bins.sound[0]):
            values[:], classes[:] = torch.nan, int(CellClass.NAN)
        return values, classes


def _scores_key(spec: AttentionSpec) -> tuple[object, ...]:
    """What two specs share that have the same scores under the same mask."""
    return tuple(getattr(spec, name) for name in spec.__struct_fields__ if name not in _AFTER_SOFTMAX)
