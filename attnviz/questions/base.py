"""The two types that every study's own are made from."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What a study is asked. Raises `spec.SpecError` for what cannot be answered."""

    @property
    def name(self) -> str:
        """The study's name, as on the command line."""
        return str(self.__struct_config__.tag)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is known after ``done`` of ``total`` steps. Arrays are read-only."""

    done: int
    total: int

    @property
    def finished(self) -> bool:
        return self.done >= self.total
