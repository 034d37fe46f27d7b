"""The numbers that a figure shows, as a file: a table for a spreadsheet, or arrays for a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from attnviz import files, rendering, tables
from attnviz.engine import Engine
from attnviz.figure_questions import question_of, studied
from attnviz.figures import NUMBERS, Figure
from attnviz.input_paths import told_from
from attnviz.questions.compare import MOST_TOKENS, CompareQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.remembered import remember
from attnviz.spec import SpecError, View
from attnviz.spec.text import as_text, to_fields


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

    Of heads these are the maps, a line for each query of each head, and in an .npz every stage; of a row its stages,
    a line for each key; of a study `tables.study_tables`, whose columns and maps are PART_NAME in an .npz. Raises as
    `write_figure`.
    """

    def step(share: float) -> None:
        progress(share)
        if cancelled():
            raise rendering.Cancelled

    figure = studied(figure)  # of what moves, not of what stands in its place
    as_csv = path.suffix.lower() == ".csv"
    if as_csv and len(figure.parts) > 1:
        parts = ",".join(figure.parts)
        raise SpecError("parts", f"parts is {parts}, but a .csv is one table: give one of them, or an .npz")
    with rendering.engine_or_own(engine) as working:
        if figure.shows == "heads" and not as_csv:
            rendering.write_arrays(path, figure.spec, figure.view, working, folder=folder)
            return
        if figure.shows == "heads":
            arrays = working.arrays(figure.spec, cancelled)
            step(1.0)
            dims = rendering.outline_of(working, figure.spec, figure.view, cancelled).dims
            text = tables.csv_text(arrays, figure.view, dims, figure.heads)
        else:
            found, tokens = _tables(figure, working, cancelled, step, shelf)
            if not as_csv:
                start = folder or path.parent
                spec = as_text(told_from(start, to_fields(figure.spec, figure.view)))
                about = {"tokens": np.array(tokens, np.str_), "spec": np.array(spec)}
                files.write_arrays(path, {**about, "figure": np.array(remember(figure, start)), **_named(found)})
                return
            text = next(iter(found.values())).csv()
    files.write_whole(path, lambda file: file.write((tables.BOM + text).encode()))


def _tables(
    figure: Figure,
    engine: Engine,
    cancelled: Callable[[], bool],
    step: Callable[[float], object],
    shelf: rendering.Shelf | None,
) -> tuple[dict[str, tables.Table], tuple[str, ...]]:
    """The tables of a figure by its parts, "" where it is whole, and the tokens."""
    outline = rendering.outline_of(engine, figure.spec, View(), cancelled)
    if figure.shows == "row":
        return {"": tables.row_table(rendering.story_of(figure, engine, outline), outline.tokens)}, outline.tokens
    question = question_of(figure)
    if isinstance(question, CompareQuestion | GalleryQuestion):
        question = replace(question, pixels=MOST_TOKENS)  # cells, not pixels of several
    *_, answer = rendering.answers_of(question, cancelled, step, shelf)
    return tables.study_tables(figure, answer, outline.tokens), outline.tokens


def _named(found: Mapping[str, tables.Table]) -> dict[str, npt.NDArray[Any]]:
    """Each table's arrays behind its part; a table that is of several parts once."""
    once = {id(table): (part, table) for part, table in reversed(list(found.items()))}
    return {
        f"{part}_{name}" if part else name: array
        for part, table in once.values()
        for name, array in table.arrays().items()
    }
