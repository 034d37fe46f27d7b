"""A picture, arrays or a spec file from a spec, without a window: what `attnviz render` and the export do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from attnviz import files
from attnviz.engine import Engine
from attnviz.frames import Finished, Frame, Outline
from attnviz.session import Picture
from attnviz.spec import AttentionSpec, Request, View, Viewport, to_json


def collect(
    engine: Engine, spec: AttentionSpec, view: View, viewport: Viewport, cancelled: Callable[[], bool] = lambda: False
) -> Picture:
    """The exact picture of ``spec``, every panel of it. Raises `engine.ComputationError`."""
    outline: Outline | None = None
    finished: Finished | None = None
    frames: dict[str, Frame] = {}
    for message in engine.stream(Request(spec=spec, view=view, viewport=viewport, generation=1), cancelled):
        match message:
            case Outline():
                outline = message
            case Frame():
                frames[message.panel] = message
            case Finished():
                finished = message
    return Picture(spec, view, 1, outline, MappingProxyType(frames), finished)


def write_image(
    path: Path, spec: AttentionSpec, view: View, size: tuple[int, int], engine: Engine | None = None, *,
    viewport: Viewport | None = None, dark: bool = False, show_numbers: bool = True, decimals: int | None = None,
) -> Picture:  # fmt: skip
    """Write ``spec``'s picture as a PNG of ``size`` (width, height) pixels; the spec goes into its metadata.

    A failure leaves an older file as it was. Raises `engine.ComputationError` or `files.FileProblem`.
    """
    from attnviz.figure import export, paint  # noqa: PLC0415 (Qt: arrays must be had without its libraries)

    export.check_size(size)
    panel = max(size)
    pixels = viewport or Viewport(pixels=(panel, panel))
    picture = collect(engine or Engine(), spec, view, pixels)
    style = paint.DARK if dark else paint.LIGHT
    export.export_png(path, picture, size, to_json(spec, view), style, show_numbers=show_numbers, decimals=decimals)
    return picture


def write_arrays(path: Path, spec: AttentionSpec, view: View, engine: Engine | None = None) -> None:
    """Write every stage to an NPZ file that loads with ``allow_pickle=False``."""
    arrays = (engine or Engine()).arrays(spec)
    files.write_npz(path, arrays, to_json(spec, view))


def write_spec(path: Path, spec: AttentionSpec, view: View) -> None:
    """Write ``spec`` and ``view`` as a file that the window and ``--spec`` read."""
    text = to_json(spec, view) + "\n"
    files.write_whole(path, lambda file: file.write(text.encode()))
