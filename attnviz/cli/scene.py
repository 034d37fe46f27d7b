"""Decks without a window: ``attnviz render DECK.toml`` makes their pictures, ``attnviz scene`` writes a first one."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import click

from attnviz.figures import Figure
from attnviz.files import FileProblem
from attnviz.screens import use_offscreen
from attnviz.spec import AttentionSpec, Lesson, SpecError, View, make_spec

if TYPE_CHECKING:
    from attnviz.engine import Engine
    from attnviz.scene_files import DeckFigure

log = logging.getLogger(__name__)

_MOST_JOBS: Final = 4
"""At a time, where nobody says: Python runs one thread at a time of what is not torch, NumPy or Qt."""

_STEPS: Final = 1000
"""Of the bar, for each figure."""

_WAKE_S: Final = 0.5
_OPENING: Final = (
    "A deck for attnviz: attnviz render THIS.toml --out figures/ makes its pictures.\n"
    "Write one [[figure]] for each picture; [all] at the top holds for every one."
)


# --------------------------------------------------------------------------------------------------------------- render


def render_deck(
    deck: Path, out: Path, *, only: str | None = None, jobs: int | None = None, memory: int | None = None
) -> int:  # fmt: skip
    """Make the pictures of ``deck`` in the folder ``out``; a failing one does not stop the others.

    ``only`` chooses by name, * for anything. ``jobs`` pictures are made at a time, each by one thread that computes,
    so that their number changes no picture; ``memory`` in bytes is shared by them. Progress, remarks and failures are
    lines on stderr. Returns the exit status: 0, or 1 where a figure failed. Raises `SpecError` for a wrong deck,
    after a line for each of several mistakes, and `FileProblem` where ``out`` is no folder.
    """
    from attnviz import scene_files

    try:
        found = scene_files.read(deck)
    except scene_files.SceneProblem as problem:
        if not problem.others:
            raise
        for one in (problem, *problem.others):
            _say(str(one))
        count = len(problem.others) + 1
        first = "the first " if count == scene_files.MOST_TOLD else ""
        why = f"{first}{count} mistakes; nothing is drawn before they are mended"
        raise scene_files.SceneProblem(deck.name, None, why) from None
    chosen = [one for one in found.figures if only is None or fnmatchcase(one.file, only)]
    if not chosen:
        some = ", ".join(one.file for one in found.figures[:5])
        raise scene_files.SceneProblem(found.place, None, f"no file is called {only}: there are {some}; * is anything")
    folder = _made(out)
    use_offscreen()
    from PySide6.QtGui import QGuiApplication

    from attnviz.engine.crew import one_torch_thread
    from attnviz.figure.fonts import load_fonts

    application = QGuiApplication.instance() or QGuiApplication(["attnviz"])
    load_fonts()
    jobs = min(jobs or min(_MOST_JOBS, _cores()), len(chosen))
    work = _Work(chosen, folder, _memory(memory, jobs), deck.parent)
    threads = [threading.Thread(target=work.run, name=f"attnviz-deck-{n}", daemon=True) for n in range(jobs)]
    with one_torch_thread(), _progress(len(chosen)) as told:  # threads that begin within have one torch thread too
        for thread in threads:
            thread.start()
        ended = work.follow(told, threads)
    made = {one.of.file for one in ended}
    ended += [_Ended(one, failed="what should make it ended") for one in chosen if one.file not in made]
    for thread in threads:
        thread.join()
    del application
    return _told(ended, [one.file for one in chosen])


def _memory(asked: int | None, jobs: int) -> int | None:
    """Bytes for each of ``jobs``: together they take what one alone might."""
    if asked is None and jobs > 1:
        import psutil

        asked = psutil.virtual_memory().available // 4
    return None if asked is None else asked // jobs


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _made(out: Path) -> Path:
    """The folder ``out``, made where there is none."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = "that is a file; give a folder" if isinstance(error, FileExistsError) else ""
        why = why or f"{getattr(error, 'strerror', None) or error}; choose another folder"
        raise FileProblem(out, why) from None
    return out


@dataclass(frozen=True, slots=True)
class _Ended:
    """What became of a figure: remarks about its numbers, or why it failed."""

    of: DeckFigure
    remarks: tuple[str, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class _Reached:
    """The share of a figure that is done."""

    file: str
    share: float


class _Work:
    """The figures of a deck that are still to be made, taken by several threads."""

    def __init__(self, figures: list[DeckFigure], folder: Path, memory: int | None, beside: Path) -> None:
        self._waiting, self._folder, self._memory, self._beside = list(figures), folder, memory, beside
        self._under_way: set[AttentionSpec | None] = set()
        self._lock = threading.Lock()
        self._said: queue.SimpleQueue[_Ended | _Reached] = queue.SimpleQueue()
        self._left = len(figures)

    def follow(self, told: _Telling, threads: Sequence[threading.Thread]) -> list[_Ended]:
        """Wait until all figures have ended. Thread: the main one, which Ctrl+C reaches."""
        ended: list[_Ended] = []
        while len(ended) < self._left:
            if not any(thread.is_alive() for thread in threads) and self._said.empty():
                break  # they died: what they had not made has failed
            with contextlib.suppress(queue.Empty):
                said = self._said.get(timeout=_WAKE_S)
                if isinstance(said, _Ended):
                    ended.append(said)
                told(said)
        return ended

    def run(self) -> None:
        """Make figures until none waits. Thread: one of several."""
        from attnviz.engine import Engine

        with contextlib.closing(Engine(budget_bytes=self._memory)) as engine:
            last: AttentionSpec | None = None
            while (next_ := self._next(last)) is not None:
                self._said.put(self._ended(next_, engine))
                last = None if next_.figure is None else next_.figure.spec

    def _next(self, last: AttentionSpec | None) -> DeckFigure | None:
        """The next one: of the spec that this thread's engine holds, of one that no other holds, or the first."""
        with self._lock:
            self._under_way.discard(last)
            if not self._waiting:
                return None
            specs = [None if one.figure is None else one.figure.spec for one in self._waiting]
            same = (n for n, spec in enumerate(specs) if spec is not None and spec == last)
            free = (n for n, spec in enumerate(specs) if spec not in self._under_way)
            place = next(same, next(free, 0))
            self._under_way.add(specs[place])
            return self._waiting.pop(place)

    def _ended(self, one: DeckFigure, engine: Engine) -> _Ended:
        if one.figure is None:
            return _Ended(one, failed=one.problem)
        try:
            return _Ended(one, self._write(one.file, one.figure, engine))
        except (SpecError, OSError) as error:
            return _Ended(one, failed=str(error))
        except Exception as error:
            if hasattr(error, "sentence"):
                return _Ended(one, failed=str(error))
            log.exception("unexpected, in %s", one.file)  # a bug in one picture keeps nobody from the others
            return _Ended(one, failed=f"something went wrong inside attnviz: {type(error).__name__}: {error}")

    def _write(self, file: str, figure: Figure, engine: Engine) -> tuple[str, ...]:
        from attnviz import number_files, scene_files
        from attnviz.input_paths import folder_of_deck
        from attnviz.options.figure import clipped, clipping_words

        asked, figure = figure, clipped(figure)
        path = scene_files.place_in(self._folder, file)
        remarks = number_files.write_file(
            path, figure, engine, progress=lambda share: self._said.put(_Reached(file, share)),
            folder=folder_of_deck(self._beside, self._folder / file),
        )  # fmt: skip
        return (*clipping_words(asked, figure), *remarks)


class _Telling(Protocol):
    """Told of what a thread says."""

    def __call__(self, said: _Ended | _Reached) -> None: ...


@contextlib.contextmanager
def _progress(total: int) -> Iterator[_Telling]:
    """A bar on stderr where that is a terminal, else a line for each figure that has ended."""
    if not sys.stderr.isatty():
        count = 0

        def line(said: _Ended | _Reached) -> None:
            nonlocal count
            if isinstance(said, _Ended):
                count += 1
                _say(f"{count} of {total}: {said.of.file}{' failed' if said.failed else ''}")

        yield line
        return
    reached: dict[str, int] = {}
    with click.progressbar(length=total * _STEPS, label="attnviz", show_pos=False, file=sys.stderr) as bar:

        def move(said: _Ended | _Reached) -> None:
            file, share = (said.of.file, 1.0) if isinstance(said, _Ended) else (said.file, said.share)
            now = int(share * _STEPS)
            if now > reached.get(file, 0):
                bar.update(now - reached.get(file, 0))
                reached[file] = now

        yield move


def _told(ended: list[_Ended], order: list[str]) -> int:
    """Remarks and failures in the deck's order, lines on stderr; the exit status."""
    ended = sorted(ended, key=lambda one: order.index(one.of.file))
    for one in ended:
        for remark in one.remarks:
            _say(f"{one.of.file}: {remark}")
    failed = [one for one in ended if one.failed]
    if not failed:
        return 0
    figures = "figure" if len(ended) == 1 else "figures"
    _say(f"{len(failed)} of {len(ended)} {figures} failed: {', '.join(one.of.file for one in failed)}")
    for one in failed:
        _say(f"{one.of.file} (line {one.of.line}): {one.failed}")
    return 1


def _say(sentence: str) -> None:
    """One line on stderr."""
    words = " ".join(sentence.split())
    click.echo(f"attnviz: {words if words.isprintable() else ascii(words)[1:-1]}", err=True)


# ---------------------------------------------------------------------------------------------------------------- scene


def scene_command(state_file: Callable[[], Path]) -> click.Command:
    """The command ``scene``; ``state_file`` says where the window's last session is kept."""

    @click.command(
        "scene", short_help="Print a deck: a list of pictures for render.",
        help="Print a deck for `attnviz render`: the last session as a start, or a lesson's deck.",
    )  # fmt: skip
    @click.option("--lesson", metavar="NAME", help="The deck of this lesson: cat-eats-fish or journey.")
    def scene(lesson: str | None) -> int:
        """Exit status after the deck is on stdout."""
        from attnviz import scene_files

        text = scene_files.built_in(lesson) if lesson is not None else scene_text(state_file())
        sys.stdout.buffer.write(text.encode())  # UTF-8, whatever the terminal's own
        sys.stdout.buffer.flush()
        return 0

    return scene


def scene_text(state: Path) -> str:
    """The session kept in ``state`` as a deck of one figure; where there is none, what the window first shows.

    Raises `SpecError` or `FileProblem` where it cannot be read.
    """
    from attnviz import files, opening, scene_files

    spec, view = make_spec(Lesson(name="cat-eats-fish"), mask="none"), View(norm="unit")
    try:
        saved = opening.read(state)
        spec, view = saved.spec, saved.view
    except FileNotFoundError:
        pass
    except SpecError as error:
        raise scene_files.SceneProblem(str(state), None, f"the last session cannot be read ({error})") from None
    except OSError as error:
        raise files.read_problem(state, error) from None
    return scene_files.deck_text({"01.png": Figure(spec=spec, view=view)}, _OPENING, explained=True)
