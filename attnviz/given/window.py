"""A small window for given weights: the maps, the exact numbers under the pointer, and which layer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import msgspec
from PySide6.QtCore import QEventLoop, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QComboBox, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from attnviz.application import Interrupts
from attnviz.controller import Controller
from attnviz.figure import marks
from attnviz.figure.cells import DARK, LIGHT
from attnviz.frames import Outline
from attnviz.given.arrays import Given
from attnviz.given.frames import GivenEngine, stand_in
from attnviz.given.paper import about_given, title_of
from attnviz.session import Session, Snapshot
from attnviz.spec import Paper, SpecError, View
from attnviz.views.heatmaps import Heatmaps
from attnviz.views.theme import apply_theme
from attnviz.views.token_names import token_name
from attnviz.window.gestures import Gestures
from attnviz.worker import Worker

_MOST_SAID: Final = 40
"""Heads whose numbers stand in the line; the large one is the first."""

_A_LINE: Final = 8
_LARGEST: Final = (1280, 800)


class GivenWindow(QWidget):
    """Maps of one layer at a time. ``heads`` are those that are shown, () all; of ``paper`` its theme and title."""

    closed = Signal()

    def __init__(
        self, application: QApplication, given: Given, layer: int, heads: tuple[int, ...], paper: Paper
    ) -> None:  # fmt: skip
        super().__init__()
        dark = paper.theme == "dark"
        if application.applicationName() == "attnviz":  # another program's windows keep their looks
            apply_theme(application, dark)
        self._given, self._title = given, paper.title
        self._heads = heads or tuple(range(len(given.layers[0])))
        engine = GivenEngine(given, heads)
        self.worker = Worker(lambda: engine, self)
        self._session = Session(stand_in(given, layer), View())
        self.controller = Controller(self._session, self.worker, self)
        self.heatmaps = Heatmaps()
        self.heatmaps.waits_for = ""
        self.heatmaps.use_style(DARK if dark else LIGHT)
        self._heading, self._about, self.numbers = QLabel(), QLabel(), QLabel()
        self.layers = QComboBox()
        self._interrupted = False
        self._compose()
        self._connect(layer)
        self.resize(min(paper.width, _LARGEST[0]), min(paper.height, _LARGEST[1]))
        self.controller.start()
        self.worker.start()

    def _compose(self) -> None:
        self._heading.setProperty("role", "sentence")
        self._about.setProperty("role", "muted")
        self.numbers.setWordWrap(True)
        self.numbers.setTextFormat(Qt.TextFormat.PlainText)
        self.numbers.setAlignment(Qt.AlignmentFlag.AlignTop)
        lines = 1 + -(-min(len(self._heads), _MOST_SAID) // _A_LINE)
        self.numbers.setFixedHeight(lines * self.numbers.fontMetrics().lineSpacing())
        self.numbers.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        for layer in range(len(self._given.layers)):
            self.layers.addItem(self.tr("layer {n}").format(n=layer))
        self.layers.setVisible(self.layers.count() > 1)
        self.layers.setToolTip(self.tr("the layer that is shown (PageUp, PageDown)"))
        top = QHBoxLayout()
        top.addWidget(self._heading)
        top.addWidget(self._about, 1)
        top.addWidget(self.layers)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 10)
        column.addLayout(top)
        column.addWidget(self.heatmaps, 1)
        column.addWidget(self.numbers)
        self.heatmaps.setFocus()

    def _connect(self, layer: int) -> None:
        controller, heads = self.controller, self.heatmaps
        self.layers.setCurrentIndex(layer)
        self.layers.currentIndexChanged.connect(self._on_layer)
        controller.snapshot_changed.connect(self._present)
        heads.viewport_changed.connect(controller.set_viewport)
        heads.window_moved.connect(controller.set_window)
        heads.cell_hovered.connect(controller.hover)
        heads.cell_selected.connect(controller.select)
        heads.view_edited.connect(controller.edit_view)
        by_name = Gestures(controller, _refused).by_name()
        slots = {
            "+": heads.zoom_in, "=": heads.zoom_in, "-": heads.zoom_out, "0": heads.zoom_all,
            "Return": heads.show_current_large, "Enter": heads.show_current_large, "Esc": by_name["head_grid"],
            "N": by_name["numbers"], "PgUp": partial(self._step_layer, -1), "PgDown": partial(self._step_layer, 1),
            **{f"Ctrl+{key}": partial(heads.pan, *step) for key, step in _PANS.items()},
            **{key: by_name[f"cell_{key.lower()}"] for key in _PANS},
        }  # fmt: skip
        for key, slot in slots.items():
            QShortcut(QKeySequence(key), self).activated.connect(slot)

    def run(self) -> None:
        """Show the window and wait until it is closed. Raises `KeyboardInterrupt` after Ctrl+C."""
        loop = QEventLoop()
        self.closed.connect(loop.quit)
        interrupts = Interrupts(self)
        interrupts.interrupted.connect(self._on_interrupted)
        self.show()
        loop.exec()
        interrupts.stop()
        if self._interrupted:
            raise KeyboardInterrupt

    @Slot()
    def _on_interrupted(self) -> None:
        self._interrupted = True
        self.close()

    @Slot(int)
    def _on_layer(self, layer: int) -> None:
        self.controller.edit_spec(msgspec.structs.replace(self._session.snapshot().spec, seed=layer))

    def _step_layer(self, step: int) -> None:
        self.layers.setCurrentIndex(min(max(self.layers.currentIndex() + step, 0), self.layers.count() - 1))

    # ------------------------------------------------------------------------------------------------------- present

    @Slot(object)
    def _present(self, snapshot: Snapshot) -> None:
        """Show the maps, and what lies under the pointer; another layer is no state before."""
        self.heatmaps.present(replace(snapshot, last=None))
        picture = snapshot.picture
        if snapshot.failure is not None:
            self.numbers.setText(snapshot.failure.sentence)
        if picture is None or picture.outline is None or snapshot.failure is not None:
            return
        title = title_of(self._given, picture.spec.seed, picture.outline.stage)
        self._heading.setText(self._title or title)
        self._about.setText(about_given(self._given, picture.outline))
        self.setWindowTitle(self._title or title)
        self.numbers.setText(self._told(snapshot, picture.outline))

    def _told(self, snapshot: Snapshot, outline: Outline) -> str:
        """Query, key, and the exact number in each head."""
        cell, probe, picture = snapshot.cell, snapshot.probe, snapshot.picture
        if cell is None or probe is None or picture is None or (probe.row, probe.col) != (cell.row, cell.col):
            return self.tr("move the pointer over a map") if cell is None else ""
        if outline.query_names:
            query = token_name(outline.query_names, cell.row)
        else:
            query = token_name(outline.tokens, cell.row + outline.n_keys - outline.n_queries)
        first = picture.view.head
        heads = sorted(self._heads, key=lambda head: head != first)
        words = self.tr("head {n}: {number}").replace(" ", "\N{NO-BREAK SPACE}")
        numbers = [words.format(n=h, number=marks.exact_value(probe.values[h], probe.classes[h])) for h in heads]
        if len(numbers) > _MOST_SAID:
            numbers = [*numbers[:_MOST_SAID], "…"]
        names = self.tr("query {query} · key {key}").format(query=query, key=token_name(outline.tokens, cell.col))
        return f"{names}\n{' · '.join(numbers)}"

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 (Qt's)
        self.controller.close()
        self.worker.close()
        super().closeEvent(event)
        self.closed.emit()


_PANS: Final = {"Left": (-1, 0), "Right": (1, 0), "Up": (0, -1), "Down": (0, 1)}


def _refused(_error: SpecError) -> None:
    """No gesture of this window changes what is computed."""
