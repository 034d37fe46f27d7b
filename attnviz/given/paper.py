"""Given weights on paper: laid out, pooled to the sheet's pixels and drawn as every other picture. No engine."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
from PySide6.QtCore import QCoreApplication

from attnviz.application import borrowed_application
from attnviz.figure.formats import write_drawing
from attnviz.figure.formats.png import write_drawn_png
from attnviz.figure.sheet import PictureDrawing, lay_out
from attnviz.frames import Outline
from attnviz.given.arrays import Given
from attnviz.given.frames import GivenEngine, stand_in
from attnviz.remembered import remember_given
from attnviz.spec import Paper, View


def write_given(path: Path, given: Given, layer: int, heads: tuple[int, ...], paper: Paper) -> None:
    """Write a picture of one layer in the format of ``path``'s ending. ``heads`` are some of them, () all.

    Raises `files.FileProblem`, or `SpecError` for the ending.
    """
    borrowed_application()
    write_drawing(path, given_drawing(given, layer, heads, paper), paper, remember_given())


def png_of(drawing: PictureDrawing, paper: Paper) -> bytes:
    """The bytes of a PNG."""
    buffer = io.BytesIO()
    write_drawn_png(buffer, drawing, paper, remember_given(), lambda _done: None)
    return buffer.getvalue()


def given_drawing(given: Given, layer: int, heads: tuple[int, ...], paper: Paper) -> PictureDrawing:
    """One layer's heads on ``paper``, with no more pixels than it has. Makes a QApplication where there is none."""
    borrowed_application()
    engine, view = GivenEngine(given, heads), View()
    outline = engine.outline(layer)
    if paper.title is None:
        paper = msgspec.structs.replace(paper, title=title_of(given, layer, outline.stage))
    about = about_given(given, outline)
    view = msgspec.structs.replace(view, stage=outline.stage)
    sheet = lay_out(outline, stand_in(given, layer), view, paper, about=about)
    picture = engine.picture(layer, view, sheet.viewport)
    sheet = lay_out(outline, stand_in(given, layer), view, paper, about=about, picture=picture)
    return PictureDrawing(picture, sheet)


def title_of(given: Given, layer: int, stage: str) -> str:
    """What the numbers are, and of which layer where there are several."""
    if stage == "weights":
        words = QCoreApplication.translate("Given", "attention weights")
    else:
        words = QCoreApplication.translate("Given", "attention scores")
    if len(given.layers) == 1:
        return words
    return QCoreApplication.translate("Given", "{0}, layer {1}").format(words, layer)


def about_given(given: Given, outline: Outline) -> str:
    """How many there are and are shown, and why they are shown as scores where they are."""
    n_layers, n_heads, (n_queries, n_keys) = len(given.layers), len(given.layers[0]), given.shape
    parts = [] if n_layers == 1 else [QCoreApplication.translate("Given", "{0} layers").format(n_layers)]
    one = QCoreApplication.translate("Given", "1 head")
    some = f"{len(outline.panels)} / {n_heads}" if len(outline.panels) < n_heads else n_heads
    parts.append(one if n_heads == 1 else QCoreApplication.translate("Given", "{0} heads").format(some))
    sizes = QCoreApplication.translate("Given", "{0} queries × {1} keys").format(f"{n_queries:,}", f"{n_keys:,}")
    parts += [sizes, str(given.layers[0].dtype)]
    if outline.stage != "weights":
        parts.append(QCoreApplication.translate("Given", "some lie below 0 or above 1: shown as scores"))
    return " · ".join(parts)
