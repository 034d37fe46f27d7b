"""The numbers that a figure shows, as a file: a table for a spreadsheet, or arrays for a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from attnviz import files, rendering, tables
from attnviz.engine import Engine
from attnviz.figure_questions import question_of, studied
from attnviz.figures import NUMBERS, Figure
from attnviz.frames import Arrays, Crop
from attnviz.input_paths import own_folder, told_from
from attnviz.questions.compare import MOST_TOKENS, CompareQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.remembered import remember
from attnviz.spec import JOINT_STAGES, SpecError, View
from attnviz.spec.text import as_text, to_fields

_COMPUTED: Final = 0.5  # of the progress; the rest is writing


def write_file(
    path: Path, figure: Figure, engine: Engine | None = None, *, cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[float], object] = lambda _share: None, shelf: rendering.Shelf | None = None,
    folder: Path | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Write ``figure`` as a picture or in numbers, as the suffix of ``path`` says. As `write_figure`."""
    if path.suffix.lower() not in NUMBERS:
        return rendering.write_figure(
            path, figure, engine, cancelled=cancelled, progress=progress, shelf=shelf, folder=folder
        )  # fmt: skip
    write_numbers(path, figure, engine, cancelled=cancelled, progress=progress, shelf=shelf, folder=folder)
    return ()


def write_numbers(
    path: Path, figure: Figure, engine: Engine | None = None, *, cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[float], object] = lambda _share: None, shelf: rendering.Shelf | None = None,
    folder: Path | None = None,
) -> None:  # fmt: skip
    """Write the numbers that ``figure`` shows, with every digit: one table as .csv, or all that there are as .npz.

    Of heads these are the maps, a line for each query of each head, and in an .npz every stage whole, of the figure's
    heads where it names some; of a row its stages, a line for each key; of a study `tables.study_tables`, whose columns
    and maps are PART_NAME in an .npz. ``cancelled`` is asked, and ``progress`` told, between heads, answers of a study
    and blocks of the file. Raises as `write_figure`.
    """
    figure = studied(figure)  # of what moves, not of what stands in its place
    as_csv = path.suffix.lower() == ".csv"
    if as_csv and len(figure.parts) > 1:
        parts = ",".join(figure.parts)
        raise SpecError("parts", f"parts is {parts}, but a .csv is one table: give one of them, or an .npz")
    with rendering.engine_or_own(engine) as working:
        made = _Numbers(figure, working, cancelled, lambda done: progress(_COMPUTED * done), shelf)
        found = made.csv() if as_csv else made.arrays(folder or own_folder(path))

    def written(done: float) -> None:
        progress(_COMPUTED + (1 - _COMPUTED) * done)
        if cancelled():
            raise rendering.Cancelled

    if isinstance(found, tables.Csv):
        _write_csv(path, found, written)
    else:
        files.write_npz(path, found, written)


def _write_csv(path: Path, table: tables.Csv, step: Callable[[float], object]) -> None:
    def write(file: BinaryIO) -> None:
        file.write(tables.BOM.encode())
        for text, done in table.blocks():
            file.write(text.encode())
            step(done)

    files.write_whole(path, write)


class _Numbers:
    """Computes what a figure's file holds; ``progress`` is told the share of it that is done."""

    def __init__(
        self, figure: Figure, engine: Engine, cancelled: Callable[[], bool], progress: Callable[[float], object],
        shelf: rendering.Shelf | None,
    ) -> None:  # fmt: skip
        self._figure, self._engine, self._shelf = figure, engine, shelf
        self._cancelled, self._progress = cancelled, progress

    def csv(self) -> tables.Csv:
        figure = self._figure
        if figure.shows != "heads":
            found, _ = self._tables()
            return next(iter(found.values())).csv()
        arrays = self._stages()
        dims = rendering.outline_of(self._engine, figure.spec, figure.view, self._cancelled).dims
        return tables.stage_csv(arrays, figure.view, dims, figure.heads)

    def arrays(self, folder: Path) -> dict[str, npt.NDArray[Any]]:
        """The arrays of an .npz, in which files have their paths from ``folder``."""
        figure = self._figure
        spec = np.array(as_text(told_from(folder, to_fields(figure.spec, figure.view))))
        if figure.shows != "heads":
            found, tokens = self._tables()
            kept = np.array(remember(figure, folder))
            return {"tokens": np.array(tokens, np.str_), "spec": spec, "figure": kept, **_named(found)}
        whole = self._stages()
        about = {"tokens": np.array(whole.tokens, np.str_), "spec": spec}
        if not figure.heads:
            return {**about, **whole.stages}
        heads = np.array(figure.heads)
        picked = {
            name: values if name in JOINT_STAGES else values.take(heads, axis=-3)
            for name, values in whole.stages.items()
        }  # fmt: skip
        return {**about, "heads": heads, **picked}

    def _stages(self) -> Arrays:
        arrays = self._engine.arrays(self._figure.spec, self._cancelled, self._progress)
        if not arrays.stages:
            raise rendering.Cancelled
        return arrays

    def _tables(self) -> tuple[dict[str, tables.Table], tuple[str, ...]]:
        """The tables of a figure by its parts, "" where it is whole, and the tokens."""
        figure = self._figure
        outline = rendering.outline_of(self._engine, figure.spec, View(), self._cancelled)
        tokens = outline.tokens
        if figure.shows == "row":
            return {"": tables.row_table(rendering.story_of(figure, self._engine, outline), tokens)}, tokens
        question = question_of(figure)
        if isinstance(question, CompareQuestion | GalleryQuestion):
            shown = Crop.of(question.rows, question.cols, (outline.n_queries, len(tokens)))
            if max(shown.size) > question.pixels:
                question = replace(question, pixels=MOST_TOKENS)  # cells, not pixels of several
        *_, answer = rendering.answers_of(question, self._cancelled, self._progress, self._shelf)
        return tables.study_tables(figure, answer, tokens), tokens


def _named(found: Mapping[str, tables.Table]) -> dict[str, npt.NDArray[Any]]:
    """Each table's arrays behind its part; a table that is of several parts once, behind the first."""
    once: dict[int, tuple[str, tables.Table]] = {}
    for part, table in found.items():
        once.setdefault(id(table), (part, table))
    return {
        f"{part}_{name}" if part else name: array
        for part, table in once.values()
        for name, array in table.arrays().items()
    }
