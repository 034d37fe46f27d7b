"""What a file that a person gives holds, as a window's state: a session, a spec, or a picture that remembers one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from attnviz.figure_questions import STUDY_OF, question_of, studied
from attnviz.figures import PICTURES, Figure, Shows, rerolled_view, whole
from attnviz.input_paths import placed
from attnviz.questions import Question
from attnviz.questions.compare import CompareQuestion
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.forms import FormsQuestion
from attnviz.questions.gallery import GalleryQuestion
from attnviz.questions.heads import HeadsQuestion
from attnviz.questions.leak import LeakQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.session_files import MAX_BYTES, SUFFIX, Page, SavedSession, from_text, is_session
from attnviz.spec import MAX_TOKENS, AttentionSpec, SpecError, View, edited, from_json

ARRAYS: Final = frozenset({".npz", ".npy", ".safetensors"})
"""Queries and keys, which are a spec's source and no state of a window."""
REMEMBERING: Final = (*PICTURES, ".npz")
"""Endings of the files that remember a figure, of which ``.npz`` may also be no more than arrays."""
OPENABLE: Final = frozenset({SUFFIX, ".json"}) | ARRAYS | set(PICTURES)

_FORGETFUL: Final = f"a picture of this kind remembers nothing: give one that attnviz wrote ({', '.join(PICTURES)})"
_NEVER: Final = {
    **dict.fromkeys((".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"), _FORGETFUL),
    ".toml": "this is a deck or a lesson: attnviz render {0} --out FOLDER makes a deck's pictures, "
    "attnviz --lesson {0} opens a lesson",
}
"""What to say of files that hold no state, by their ending."""

_PAGE_OF: Final[dict[Shows, Page]] = {
    "a-b": "compare", "difference": "compare", "gallery": "masks", "row": "row", "dropout": "dropout",
    "heads-study": "heads", "rounds": "rounds", "exam": "exam", "future-share": "ahead", "forms": "forms",
    "leaks": "leaks",
}  # fmt: skip
_OF_LAST_ROW: Final = frozenset({"row", "gallery", "dropout"})
"""What is of a map's last row where no other is said."""


def read(path: Path) -> SavedSession:
    """What ``path`` remembers, an .npz that attnviz wrote too; paths in it that are not whole are told from its folder.

    Raises `SpecError` for what it holds, `OSError` or ValueError if it cannot be read, `files.FileProblem` for an .npz.
    """
    suffix = path.suffix.lower()
    if suffix in REMEMBERING:
        from attnviz.remembered import MOST_OF_A_FILE, recall  # noqa: PLC0415 (few files are pictures)

        return of_figure(recall(path if suffix == ".npz" else _content(path, MOST_OF_A_FILE), path))
    text = _content(path, MAX_BYTES)
    if suffix in _NEVER:
        raise SpecError("file", _NEVER[suffix].format(path))
    if is_session(text) or suffix == SUFFIX:
        saved = from_text(text)
    else:
        spec, view = from_json(text)
        saved = SavedSession(spec=spec, view=view)
    spec, pinned = placed(path, saved.spec), saved.pinned
    if isinstance(pinned, tuple):
        pinned = placed(path, pinned[0]), pinned[1]
    return replace(saved, spec=spec, pinned=pinned)


def of_figure(figure: Figure) -> SavedSession:
    """The window that shows what a picture shows; one of two states has A pinned, and a study's page asks as it did.

    Raises `SpecError` where the figure's study cannot be asked.
    """
    figure = studied(figure)
    question = _asked(figure)
    spec, view, row = _in_sight(figure, question)
    all_cells = replace(view, rows=None, cols=None)
    said: dict[str, Any] = {} if question is None else {"question": question}
    if isinstance(question, CompareQuestion):
        spec, said["pinned"] = question.b, (question.a, _fitting(all_cells, question.a))
        said["comparing"] = "difference" if figure.shows == "difference" else "side"
    elif figure.beside is not None and figure.shows == "row":  # the state before
        said["pinned"] = figure.beside, _fitting(all_cells, figure.beside)
    if row is not None:
        said["selected"] = row, row
    if figure.shows in _PAGE_OF:
        said["page"] = _PAGE_OF[figure.shows]
    return SavedSession(spec=spec, view=_fitting(view, spec), **said)


def _asked(figure: Figure) -> Question | None:
    """What the study of ``figure`` was asked; None where spec, head and row are all that it asks."""
    if figure.shows not in STUDY_OF or (figure.question is None and figure.shows in _OF_LAST_ROW):
        return None
    return question_of(whole(figure))  # a part of its maps is what the window shows


def _in_sight(figure: Figure, question: Question | None) -> tuple[AttentionSpec, View, int | None]:
    """The spec, view and row with which a window asks ``question``: pages have no controls of their own for these."""
    spec, row = figure.spec, figure.row
    view = rerolled_view(figure) if figure.animates == "re-rolls" else figure.view
    if len(figure.heads) == 1 or (figure.heads and figure.shows != "heads"):
        view = replace(view, head=figure.heads[0])
    if row is None and figure.shows in _OF_LAST_ROW:
        row = MAX_TOKENS - 1  # as far down as the map goes
    match question:
        case CompareQuestion():
            usual = CompareQuestion.of(question.a, question.b, view.stage, question.head, question.pixels)
            view = view if usual == question else replace(view, stage=question.stage)
        case FormsQuestion():
            spec = edited(spec, device=question.device)
        case GalleryQuestion() | DropoutQuestion():
            view, row = _of_head(view, question.head), question.row
            spec = spec if type(question).of(spec, question.head, 0).spec == question.spec else question.spec
        case RoundsQuestion():
            view = _of_head(view, question.head)
            spec = spec if RoundsQuestion.of(spec, question.head).spec == question.spec else question.spec
        case HeadsQuestion() | LeakQuestion():
            spec = spec if type(question).of(spec).spec == question.spec else question.spec
    return spec, view, row


def _of_head(view: View, head: int) -> View:
    """``view`` with the head that a page takes from it; of all heads that is the first."""
    return view if (view.head or 0) == head else replace(view, head=head)


def _fitting(view: View, spec: AttentionSpec) -> View:
    """``view`` where ``spec`` has its stage and head, else the weights of all heads in its colours."""
    try:
        view.check(spec)
    except SpecError:
        return View(norm=view.norm, colours=view.colours)
    return view


def _content(path: Path, most: int) -> bytes:
    """The bytes of ``path``, an ordinary file of not more than ``most``."""
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise SpecError("file", "that is a device or a pipe; give a file")
    if found.st_size > most:
        raise SpecError("file", f"{found.st_size / 1e6:,.0f} MB are more than attnviz writes into one; choose another")
    return path.read_bytes()
