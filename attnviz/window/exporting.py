"""Pictures of one window as files: what can be exported now, its preview, and the job that writes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from PySide6.QtCore import QObject, QSettings, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage

from attnviz.controller import Controller
from attnviz.figure_questions import pixels_of, question_of
from attnviz.figures import CROPPABLE, Figure, Shows, whole
from attnviz.questions import Answer, Question
from attnviz.questions.gallery import GalleryQuestion
from attnviz.session import Session
from attnviz.spec import QUERY_KEY_STAGES, Paper, SpecError, has_module
from attnviz.views.export_dialog import ExportDialog
from attnviz.views.main_window import MainWindow
from attnviz.window.file_jobs import FileJobs, why
from attnviz.worker import EngineLike, Pause

PAGES: Final[Mapping[str, Shows]] = {
    "masks": "gallery", "dropout": "dropout", "heads": "heads-study", "rounds": "rounds", "exam": "exam",
    "ahead": "future-share", "compare": "difference", "leaks": "leaks", "forms": "forms",
}  # fmt: skip
"""What a page of the window is on paper."""

_PREVIEW_WIDTH: Final = 1920


class Exporting(QObject):
    """Exports for one window. Thread: the GUI's; ``previewed`` comes from the worker's, to a slot of this one."""

    previewed = Signal(int, object, object)  # the preview's number; an image or None; why there is none, or a remark
    copied = Signal(object, object)  # an image for the clipboard, or None and a sentence

    def __init__(
        self, window: MainWindow, controller: Controller, session: Session, settings: QSettings, jobs: FileJobs
    ) -> None:
        super().__init__(window)
        self._window, self._controller, self._session = window, controller, session
        self._settings, self._jobs = settings, jobs
        self._dialog: ExportDialog | None = None
        self._numbers = itertools.count(1)
        self._wanted = 0
        self._shelf: dict[str, tuple[Question, Answer]] = {}  # what a preview has answered the file need not ask again
        self.dark = False
        self.previewed.connect(self._on_previewed)
        self.copied.connect(self._on_copied)

    @Slot()
    def ask(self) -> None:
        """Open the dialog."""
        now = self._session.snapshot()
        part = now.looked_at if now.window is not None else None
        dialog = self._dialog = ExportDialog(
            self._settings, self.offered(), self._window, part=part, dark=self.dark
        )  # fmt: skip
        dialog.preview_asked.connect(self._on_preview_asked)
        dialog.export_asked.connect(self.export)
        dialog.finished.connect(self._on_finished)
        dialog.open()

    def offered(self) -> list[tuple[str, Figure]]:
        """What can be exported of the window as it stands, each with its words; the page in sight comes second."""
        now = self._session.snapshot()
        paper = Paper(numbers=now.show_numbers, decimals=now.decimals)
        plain = Figure(spec=now.spec, view=now.looked_at, paper=paper)
        before = now.before
        row = now.selected.row if now.selected is not None else None
        asked: list[tuple[Shows, str, dict[str, Any]]] = [
            ("heads", self.tr("the maps"), {}),
            ("row", self.tr("the current row"), {"beside": None if before is None else before.spec}),
        ]
        if before is not None:
            states = {"spec": before.spec, "beside": now.spec}
            asked += [
                ("a-b", self.tr("A and B"), states), ("difference", self.tr("the difference of A and B"), states),
            ]  # fmt: skip
        asked += [(shows, words, {"question": self._question(shows)}) for shows, words in self._studies()]
        current = PAGES.get(self._window.side.current)
        asked.sort(key=lambda one: (one[0] != "heads", one[0] != current))
        made = []
        for shows, words, fields in asked:
            try:
                if shows != "heads":
                    fields |= {"row": row}
                figure = _changed(plain, shows=shows, **fields)
                if shows not in CROPPABLE or (shows != "heads" and now.view.stage not in QUERY_KEY_STAGES):
                    figure = whole(figure)  # what is in sight is no part of it
                if shows not in ("heads", "row"):
                    question_of(figure)
                made.append((words, figure))
            except SpecError:
                continue  # this state has no such picture
        return made

    def _studies(self) -> list[tuple[Shows, str]]:
        found: list[tuple[Shows, str]] = [
            ("gallery", self.tr("every mask")), ("dropout", self.tr("dropout, drawn many times")),
            ("rounds", self.tr("generating token by token")), ("exam", self.tr("the exam")),
            ("future-share", self.tr("looking ahead without a mask")), ("forms", self.tr("six ways to write it")),
        ]  # fmt: skip
        if has_module(self._session.snapshot().spec.source):
            found += [("heads-study", self.tr("stacked and split heads")), ("leaks", self.tr("who sees whom"))]
        return found

    @Slot()
    def copy(self) -> None:
        """Put the maps as they stand on the clipboard, drawn for a slide in the window's colours."""
        figure = self.offered()[0][1]
        paper = msgspec.structs.replace(figure.paper, theme="dark" if self.dark else "light")
        self._window.status_line.say(self.tr("copying the picture …"))
        self._draw(msgspec.structs.replace(figure, paper=paper), lambda: False, self.copied.emit)

    @Slot(object, object)
    def _on_copied(self, image: QImage | None, problem: str | None) -> None:
        if image is None:
            self._window.status_line.say(self.tr("not copied: {why}").format(why=problem))
            return
        QGuiApplication.clipboard().setImage(image)
        words = self.tr("copied: a picture of {width} × {height} pixels")
        self._window.status_line.say(words.format(width=image.width(), height=image.height()))

    def _question(self, shows: str) -> Question | None:
        """What the page in sight asks as it is set now; another page may still be about an earlier state."""
        page = next((name for name, shown in PAGES.items() if shown == shows), "")
        there = self._window.side.pages.get(page) if page == self._window.side.current else None
        if there is None or there.snapshot is None:
            return None
        question = there.question()
        known = there.latest
        if question is not None and known is not None and known.finished and there.answered == question:
            self._shelf[question.name] = question, known
        if isinstance(question, GalleryQuestion):  # of as many pixels as paper has, not of a page's few
            return msgspec.structs.replace(question, pixels=pixels_of(Paper()))
        return question

    @Slot(object, object)
    def export(self, path: Path, figure: Figure) -> None:
        """Write ``figure`` as the ending of ``path`` says, on the worker's thread."""
        self._jobs.write_figure(path, figure, dict(self._shelf))

    # -------------------------------------------------------------------------------------------------------- preview

    @Slot(object)
    def _on_preview_asked(self, figure: Figure) -> None:
        number = self._wanted = next(self._numbers)
        self._draw(figure, lambda: number != self._wanted, partial(self.previewed.emit, number), _PREVIEW_WIDTH)

    def _draw(
        self, figure: Figure, called_off: Callable[[], bool], tell: Callable[[QImage | None, str | None], object],
        most: int | None = None,
    ) -> None:  # fmt: skip
        """Have the worker draw ``figure``; ``tell``, a signal's emit, gets an image or None, a sentence or None."""

        def job(engine: EngineLike, pause: Pause) -> None:
            from attnviz import rendering  # noqa: PLC0415 (torch)

            try:
                own = rendering.beside(engine)
                if own is None:
                    return
                drawing, remarks = rendering.drawing_of(
                    figure, own, lambda: pause() or called_off(), shelf=self._shelf
                )  # fmt: skip
                image = rendering.image_of(drawing, figure.paper)
                if most is not None and image.width() > most:
                    image = image.scaledToWidth(most, Qt.TransformationMode.SmoothTransformation)
            except rendering.Cancelled:
                return
            except Exception as error:
                tell(None, why(error, figure.shows))
            else:
                tell(image, " · ".join(remarks) or None)

        self._controller.run_job(job)

    @Slot(int, object, object)
    def _on_previewed(self, number: int, image: QImage | None, problem: str | None) -> None:
        if self._dialog is None or number != self._wanted:
            return
        if image is not None:
            self._dialog.show_preview(image, problem or "")
        else:
            self._dialog.show_problem(problem or "")

    @Slot()
    def _on_finished(self) -> None:
        self._wanted = 0  # a preview that is under way ends
        self._dialog = None


def _changed(figure: Figure, **fields: Any) -> Figure:
    """``figure`` with other fields, checked."""
    kept = {name: getattr(figure, name) for name in figure.__struct_fields__}
    return Figure(**{**kept, **fields})
