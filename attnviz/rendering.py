"""A picture, arrays or a spec file from a spec, without a window: what `attnviz render` and the export do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType

from attnviz import files
from attnviz.engine import ComputationError, Engine
from attnviz.frames import Finished, Frame, Outline, Progress
from attnviz.session import Picture
from attnviz.spec import AttentionSpec, Request, View, Viewport, check_size, to_json

_ATTEMPTS = 3
_COMPUTED = 0.7  # of an export's progress; the rest is painting and compressing


class Cancelled(RuntimeError):  # noqa: N818 (nothing went wrong)
    """Somebody called it off: nothing was written."""

    def __init__(self) -> None:
        self.sentence = "it was cancelled"
        super().__init__(self.sentence)


def collect(
    engine: Engine, spec: AttentionSpec, view: View, viewport: Viewport, cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[Progress], object] = lambda _message: None,
) -> Picture:  # fmt: skip
    """The exact picture of ``spec``, every panel of it; not ``complete`` if ``cancelled()`` has ended it.

    ``progress`` is given each `frames.Progress`. The rest of a map behind a window is not waited for, thumbnails are
    if the viewport asks for them. Where a picture comes to its end with a panel missing or not exact, what it lacks is
    computed again. Raises `engine.ComputationError`, also where that was no use.
    """
    for _attempt in range(_ATTEMPTS):
        picture = _collected(engine, spec, view, viewport, cancelled, progress)
        if not picture.complete or _is_whole(picture):
            return picture
    raise ComputationError("The picture did not become exact.", "Try once more while nothing else is computed.")


def _is_whole(picture: Picture) -> bool:
    """Whether every panel is there and exact."""
    panels = picture.outline.panels if picture.outline is not None else ()
    found = [picture.frames.get(panel) for panel in panels]
    return bool(panels) and all(frame is not None and frame.exact for frame in found)


def _collected(
    engine: Engine, spec: AttentionSpec, view: View, viewport: Viewport, cancelled: Callable[[], bool],
    progress: Callable[[Progress], object],
) -> Picture:  # fmt: skip
    """What one stream of the engine gives; not ``complete`` if it ended early."""
    outline: Outline | None = None
    finished: Finished | None = None
    frames: dict[str, Frame] = {}
    request = Request(spec=spec, view=view, viewport=viewport, generation=1)
    with closing(engine.stream(request, cancelled, unfinished=False)) as stream:
        for message in stream:
            match message:
                case Outline():
                    outline = message
                case Frame():
                    frames[message.panel] = message
                case Progress():
                    progress(message)
                case Finished():
                    finished = message
                    if not viewport.thumbnail:
                        break
    return Picture(spec, view, 1, outline, MappingProxyType(frames), finished)


def write_image(
    path: Path, spec: AttentionSpec, view: View, size: tuple[int, int], engine: Engine | None = None, *,
    dark: bool = False, show_numbers: bool = True, decimals: int | None = None,
    cancelled: Callable[[], bool] = lambda: False, progress: Callable[[float], object] = lambda _share: None,
) -> Picture:  # fmt: skip
    """Write ``spec``'s picture as a PNG of ``size`` (width, height) pixels; the spec goes into its metadata.

    The cells of the view's ``rows`` and ``cols`` are shown, all of them where these are None, and no more pixels are
    computed than the sheet has. ``cancelled`` is asked, and ``progress`` told the share done (0 to 1, never falling),
    on this thread, between heads and strips of the file. However it ends, an older file stays as it was unless the
    new one is whole. Raises `Cancelled`, `engine.ComputationError` or `files.FileProblem`, or `spec.SpecError` for
    the size.
    """
    from attnviz.figure import export, paint  # noqa: PLC0415 (Qt: arrays must be had without its libraries)

    reached = 0.0

    def step(share: float) -> None:
        nonlocal reached
        if share > reached:
            reached = share
            progress(share)
        if cancelled():
            raise Cancelled

    check_size(size)
    with _engine_or_own(engine) as working:
        outline = _outline(working, spec, view, cancelled)
        picture = collect(
            working, spec, view, export.lay_out(outline, view, size).viewport, cancelled,
            lambda message: step(_COMPUTED * message.done / max(message.total, 1)),
        )  # fmt: skip
    if not picture.complete:
        raise Cancelled
    export.export_png(
        path, picture, size, to_json(spec, view), paint.DARK if dark else paint.LIGHT, show_numbers=show_numbers,
        decimals=decimals, step=lambda done: step(_COMPUTED + (1 - _COMPUTED) * done),
    )  # fmt: skip
    return picture


def beside(engine: object) -> Engine | None:
    """An engine beside the window's, which keeps what both need; None where the window has another kind of engine."""
    return engine.beside() if isinstance(engine, Engine) else None


@contextmanager
def _engine_or_own(engine: Engine | None) -> Iterator[Engine]:
    """``engine``, or one that is closed behind us."""
    if engine is not None:
        yield engine
        return
    with closing(Engine()) as own:
        yield own


def _outline(engine: Engine, spec: AttentionSpec, view: View, cancelled: Callable[[], bool]) -> Outline:
    """What the picture is about, which the engine says before it computes anything. Raises as `write_image`."""
    with closing(engine.stream(Request(spec=spec, view=view, viewport=Viewport(), generation=1), cancelled)) as stream:
        for message in stream:
            if isinstance(message, Outline):
                return message
    raise Cancelled


def write_arrays(path: Path, spec: AttentionSpec, view: View, engine: Engine | None = None) -> None:
    """Write every stage to an NPZ file that loads with ``allow_pickle=False``."""
    with _engine_or_own(engine) as working:
        arrays = working.arrays(spec)
    files.write_npz(path, arrays, to_json(spec, view))


def write_spec(path: Path, spec: AttentionSpec, view: View) -> None:
    """Write ``spec`` and ``view`` as a file that the window and ``--spec`` read."""
    text = to_json(spec, view) + "\n"
    files.write_whole(path, lambda file: file.write(text.encode()))
