"""A picture or a spec file from a spec, without a window: what `attnviz render` and the export do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attnviz import files
from attnviz.colour import joint
from attnviz.engine import ComputationError, Engine
from attnviz.figure_questions import question_of, studied
from attnviz.figures import PICTURES, Figure, check_suffix, rerolled_view
from attnviz.frames import Finished, Frame, Outline, Progress, RowQuestion, RowStory, Scale
from attnviz.input_paths import own_folder
from attnviz.questions import Answer, Question
from attnviz.remembered import remember
from attnviz.session import Cell, Picture
from attnviz.spec import (
    MAX_SEED,
    QUERY_KEY_STAGES,
    AttentionSpec,
    Paper,
    Request,
    SpecError,
    View,
    Viewport,
    edited,
    stages_of,
    to_json,
)  # fmt: skip

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from attnviz.figure.block_sheet import BlocksDrawing
    from attnviz.figure.drawing import Drawing
    from attnviz.figure.marks import LegendEntry
    from attnviz.figure.sheet import PictureDrawing

Shelf = MutableMapping[str, tuple[Question, Answer]]
"""What studies answered last, by their names, each with what it was asked."""

_ATTEMPTS = 3
_COMPUTED = 0.7  # of an export's progress; the rest is painting and compressing
_BEFORE = 0.4  # of an animation's: a study's answer, or all draws for the colours of each


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


def write_figure(
    path: Path, figure: Figure, engine: Engine | None = None, *, cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[float], object] = lambda _share: None, shelf: Shelf | None = None, folder: Path | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Compute ``figure`` and write it as the suffix of ``path`` says; what it is made of goes into its metadata.

    There, files have their paths from ``folder``, None for that of ``path``.
    Gives remarks about its numbers, in sentences. The cells of the view's ``rows`` and ``cols`` are shown, all of them
    where these are None, and no more pixels are computed than the sheet has. ``cancelled`` is asked, and ``progress``
    told the share done (0 to 1, never falling), on this thread, between heads, answers of a study and strips of the
    file. However it ends, an older file stays as it was unless the new one is whole. Raises `Cancelled`,
    `engine.ComputationError`, `files.FileProblem`, or `spec.SpecError` for what cannot be.
    """
    from attnviz.figure import formats  # noqa: PLC0415 (Qt: arrays must be had without its libraries)
    from attnviz.figure.drawing import PAINTING  # noqa: PLC0415

    moves, kept = path.suffix.lower() == ".gif", remember(figure, folder or own_folder(path))
    check_suffix(path, PICTURES)
    reached = 0.0

    def step(share: float) -> None:
        nonlocal reached
        if share > reached:
            reached = share
            progress(share)
        if cancelled():
            raise Cancelled

    with engine_or_own(engine) as working:
        if moves:
            return _write_animation(path, figure, working, cancelled, step, kept)
        drawing, remarks = drawing_of(figure, working, cancelled, lambda done: step(_COMPUTED * done), shelf)
    with PAINTING:
        formats.write_drawing(
            path, drawing, figure.paper, kept, lambda done: step(_COMPUTED + (1 - _COMPUTED) * done)
        )  # fmt: skip
    return remarks


def _write_animation(
    path: Path, figure: Figure, engine: Engine, cancelled: Callable[[], bool], step: Callable[[float], object],
    kept: str,
) -> tuple[str, ...]:  # fmt: skip
    from attnviz.figure.formats.gif import check_animation, write_animation  # noqa: PLC0415 (as above)

    count = len(_states(figure)) if figure.animates not in ("rounds", "exam") else figure.frames
    check_animation(count, figure.paper.size)
    before = _BEFORE if figure.animates in ("re-rolls", "rounds", "exam") else 0.0
    said: dict[str, None] = {}

    def images() -> Iterator[QImage]:
        for drawing, remarks in moving(figure, engine, cancelled, lambda done: step(before * done)):
            said.update(dict.fromkeys(remarks))
            yield image_of(drawing, figure.paper)

    write_animation(
        path, images(), figure.seconds, kept, lambda done: step(before + (1 - before) * done), count=count
    )  # fmt: skip
    return tuple(said)


def image_of(drawing: Drawing, paper: Paper) -> QImage:
    """``drawing`` as an image, one at a time in this process."""
    from attnviz.figure.drawing import PAINTING  # noqa: PLC0415
    from attnviz.figure.formats import png  # noqa: PLC0415

    with PAINTING:
        return png.image_of(drawing, paper)


def moving(
    figure: Figure, engine: Engine, cancelled: Callable[[], bool] = lambda: False,
    step: Callable[[float], object] = lambda _share: None,
) -> Iterator[tuple[Drawing, tuple[str, ...]]]:  # fmt: skip
    """What `drawing_of` gives of each picture of an animation, one after the other; a single one where nothing moves.

    What does not move stands still: words, maps, axes, and the colours of a number from draw to draw. ``step`` is told
    the share that is done of what is computed before the first one. Raises as `write_figure`.
    """
    from attnviz.figure import marks  # noqa: PLC0415 (Qt)
    from attnviz.figure.drawing import PAINTING  # noqa: PLC0415
    from attnviz.figure.studies import moving_drawings  # noqa: PLC0415

    if figure.animates in ("rounds", "exam"):
        moved = studied(figure)
        answer, outline = _answer(moved, engine, cancelled, step)
        with PAINTING:
            drawings = moving_drawings(moved, answer, outline)
        yield from ((drawing, _left_out(drawing)) for drawing in drawings)
        return
    states = _states(figure)
    if len(states) == 1:
        yield drawing_of(states[0], engine, cancelled)
        return
    among = [(outline_of(engine, state.spec, state.view, cancelled), state.spec) for state in states]
    scales: dict[str, Scale] = {}
    legends = []
    for done, state in enumerate(states if figure.animates == "re-rolls" else (), 1):
        drawing = _heads_drawing(state, engine, cancelled, among=among)[0]
        legends.append(drawing.legend)
        for panel, scale in drawing.scales.items() if figure.paper.bound is None else ():
            scales[panel] = joint([scale, scales.get(panel, scale)])
        step(done / len(states))
    looks = marks.room_for(legends)
    for state in states:
        yield _heads_drawing(state, engine, cancelled, among=among, scales=scales, looks=looks)


def _states(figure: Figure) -> list[Figure]:
    """One figure for each picture of an animation of stages or draws. Raises `SpecError` where nothing would move."""
    spec, view = figure.spec, figure.view
    if figure.animates in ("stages", "re-rolls") and figure.shows != "heads":
        raise SpecError("animates", f"{figure.animates} are of heads, but shows is {figure.shows}: leave animates out")
    if figure.animates == "stages":
        names = [name for name in stages_of(spec) if name in QUERY_KEY_STAGES]
        return [replace(figure, view=replace(view, stage=name)) for name in names[: figure.frames]]
    if figure.animates == "re-rolls":
        if not spec.drops:
            raise SpecError("animates", "re-rolls draw dropout again: give --train and --dropout too")
        view = rerolled_view(figure)
        seeds = range(spec.dropout_seed, min(spec.dropout_seed + figure.frames, MAX_SEED + 1))
        return [replace(figure, spec=edited(spec, dropout_seed=seed), view=view) for seed in seeds]
    return [figure]


def drawing_of(
    figure: Figure, engine: Engine, cancelled: Callable[[], bool] = lambda: False,
    step: Callable[[float], object] = lambda _share: None, shelf: Shelf | None = None,
) -> tuple[Drawing, tuple[str, ...]]:  # fmt: skip
    """``figure`` computed and laid out, and remarks about its numbers in sentences. Raises as `write_figure`.

    A study whose question is on the ``shelf`` is not run again; what it answered last lies there afterwards.
    """
    from attnviz.figure.drawing import PAINTING  # noqa: PLC0415 (as above)
    from attnviz.figure.row_sheet import RowDrawing  # noqa: PLC0415
    from attnviz.figure.studies import drawing_of as drawn  # noqa: PLC0415

    if figure.shows == "heads":
        return _heads_drawing(figure, engine, cancelled, step)
    if figure.shows != "row":
        answer, outline = _answer(figure, engine, cancelled, step, shelf)
        with PAINTING:
            laid_out = drawn(figure, answer, outline)
        return laid_out, _left_out(laid_out)
    outline = outline_of(engine, figure.spec, figure.view, cancelled)
    return RowDrawing(story_of(figure, engine, outline), outline, figure.paper), ()


def story_of(figure: Figure, engine: Engine, outline: Outline) -> RowStory:
    """The figure's row, the last one by default, stage by stage."""
    row = outline.n_queries - 1 if figure.row is None else figure.row
    head = figure.heads[0] if figure.heads else figure.view.head or 0
    story = engine.row_story(RowQuestion(1, figure.spec, row, head, figure.beside))
    if story is None:
        raise SpecError("row", f"row is {row}: rows count from 0 to {outline.n_queries - 1}")
    return story


def _left_out(drawing: BlocksDrawing) -> tuple[str, ...]:
    return (f"this size has no room for {', '.join(drawing.left_out)}",) if drawing.left_out else ()


def _heads_drawing(
    figure: Figure, engine: Engine, cancelled: Callable[[], bool],
    step: Callable[[float], object] = lambda _share: None, *,
    among: Sequence[tuple[Outline, AttentionSpec]] = (), scales: Mapping[str, Scale] | None = None,
    looks: Sequence[LegendEntry] = (),
) -> tuple[PictureDrawing, tuple[str, ...]]:  # fmt: skip
    """As `drawing_of`; ``among`` are all the pictures of an animation, ``scales`` and ``looks`` what they share."""
    from attnviz.figure import sheet  # noqa: PLC0415 (as above)
    from attnviz.figure.drawing import PAINTING  # noqa: PLC0415

    outline = outline_of(engine, figure.spec, figure.view, cancelled)
    if figure.row is not None and figure.row >= outline.n_queries:
        raise SpecError("row", f"row is {figure.row}: rows count from 0 to {outline.n_queries - 1}")
    with PAINTING:
        laid_out = sheet.lay_out(outline, figure.spec, figure.view, figure.paper, figure.heads, among=among)
    picture = collect(
        engine, figure.spec, figure.view, laid_out.viewport, cancelled,
        lambda message: step(message.done / max(message.total, 1)),
    )  # fmt: skip
    if not picture.complete:
        raise Cancelled
    if not among:
        with PAINTING:
            laid_out = sheet.lay_out(
                outline, figure.spec, figure.view, figure.paper, figure.heads, picture=picture
            )  # fmt: skip
    selected = None if figure.row is None else Cell(figure.row, 0)
    finished = picture.finished
    remarks = (*finished.notes, *finished.remarks) if finished is not None else ()
    panels = laid_out.plan.panels
    unnamed = [] if any(panel.row_labels for panel in panels) else ["tokens"]
    unnamed += ["heads"] if len(panels) > 1 and any(panel.title is None for panel in panels) else []
    if figure.paper.labels and unnamed:
        names = " and ".join(unnamed)
        remarks = (*remarks, f"this size has no room for the names of {names}: give more, or --no-caption")
    axes = sheet.axes_left_out(laid_out.plan, outline.stage)
    if axes:
        remarks = (*remarks, f"this size has no room for the names of axes ({', '.join(axes)}): give more")
    return sheet.PictureDrawing(picture, laid_out, selected=selected, scales=scales, looks=looks), remarks


def _answer(
    figure: Figure, engine: Engine, cancelled: Callable[[], bool], step: Callable[[float], object],
    shelf: Shelf | None = None,
) -> tuple[Any, Outline]:  # fmt: skip
    """The study's whole answer, and what its spec is about."""
    outline = outline_of(engine, figure.spec, View(), cancelled)
    *_, answer = answers_of(question_of(figure), cancelled, step, shelf)
    return answer, outline


def answers_of(
    question: Question, cancelled: Callable[[], bool], step: Callable[[float], object], shelf: Shelf | None = None
) -> Iterator[Answer]:
    """A study's answers; the whole one alone where it lies on the ``shelf``, where it lies afterwards."""
    from attnviz import studies  # noqa: PLC0415 (torch)

    there = (shelf or {}).get(question.name)
    known = there[1] if there is not None and there[0] == question else None
    answer: Answer | None = None
    for answer in studies.answers(question, cancelled) if known is None else (known,):
        step(answer.done / max(answer.total, 1))
        yield answer
    if answer is None or cancelled():
        raise Cancelled
    if shelf is not None:
        shelf[question.name] = question, answer


def beside(engine: object) -> Engine | None:
    """An engine beside the window's, which keeps what both need; None where the window has another kind of engine."""
    return engine.beside() if isinstance(engine, Engine) else None


@contextmanager
def engine_or_own(engine: Engine | None) -> Iterator[Engine]:
    """``engine``, or one that is closed behind us."""
    if engine is not None:
        yield engine
        return
    with closing(Engine()) as own:
        yield own


def outline_of(engine: Engine, spec: AttentionSpec, view: View, cancelled: Callable[[], bool]) -> Outline:
    """What the picture is about, which the engine says before it computes anything. Raises as `write_figure`."""
    with closing(engine.stream(Request(spec=spec, view=view, viewport=Viewport(), generation=1), cancelled)) as stream:
        for message in stream:
            if isinstance(message, Outline):
                return message
    raise Cancelled


def write_spec(path: Path, spec: AttentionSpec, view: View) -> None:
    """Write ``spec`` and ``view`` as a file that the window and ``--spec`` read."""
    text = to_json(spec, view) + "\n"
    files.write_whole(path, lambda file: file.write(text.encode()))
