"""Two forms of a table, lines and maps, as CSV for spreadsheets and as arrays; CSV is told a block at a time."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from attnviz.frames import Values

BOM: Final = "\ufeff"
"""Without it some spreadsheets take Chinese for something else."""
_BLOCK: Final = 1 << 16
"""Characters: some milliseconds of work."""


@dataclass(frozen=True, slots=True, eq=False)
class Csv:
    """A table as CSV: a header, and ``count`` lines, which are asked for once.

    Every digit of each number is told; text that a spreadsheet would compute begins with '.
    """

    header: Sequence[object]
    lines: Iterable[Iterable[object]]
    count: int

    def blocks(self) -> Iterator[tuple[str, float]]:
        """The text, some lines at a time, each time with the share of them that has been told by then."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(map(_told, self.header))
        for done, line in enumerate(self.lines, 1):
            writer.writerow(map(_told, line))
            if file.tell() >= _BLOCK:
                yield file.getvalue(), done / self.count
                file.seek(0)
                file.truncate()
        yield file.getvalue(), 1.0

    def text(self) -> str:
        """All of it."""
        return "".join(text for text, _ in self.blocks())


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A line for each entry of ``columns``, equally long sequences by their names; None is nothing."""

    columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]]

    def csv(self) -> Csv:
        columns = self.columns.values()
        return Csv([*self.columns], zip(*columns, strict=True), len(next(iter(columns), ())))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Each column as an array (lines,); nothing among numbers is NaN."""
        return {name: _array(column) for name, column in self.columns.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """Maps (rows, columns) of one size by their names, one below the other: a line for each row.

    ``of`` heads the names, ``rows`` the numbers of the rows. ``row_names`` and ``column_names`` are tokens of all that
    there are, or () for none; what is told of them begins with the row and the column ``first``.
    """

    of: str
    maps: Mapping[str, Values]
    row_names: Sequence[str] = ()
    column_names: Sequence[str] = ()
    rows: str = "query"
    first: tuple[int, int] = (0, 0)

    def csv(self) -> Csv:
        _, left = self.first
        columns = range(left, left + next(iter(self.maps.values())).shape[1])
        token = ["token"] if self.row_names else []
        named = (self.column_names[n] for n in columns) if self.column_names else columns
        return Csv([self.of, self.rows, *token, *named], self._lines(), sum(map(len, self.maps.values())))

    def _lines(self) -> Iterator[list[object]]:
        top, _ = self.first
        for name, values in self.maps.items():
            for row, cells in enumerate(values, top):
                yield [name, row, *([self.row_names[row]] if self.row_names else []), *cells]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Each map as an array (rows, columns)."""
        return dict(self.maps)


Table = Lines | Maps


def _told(value: object) -> str:
    """A cell's words; of a number the shortest that read back as it."""
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode()  # half a character, of what was no UTF-8
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") and len(value) > 1 else value
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return str(value.item() if isinstance(value, np.float64) else value)


def _array(column: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    if isinstance(column, np.ndarray):
        return column
    return np.array([math.nan if value is None else value for value in column])
