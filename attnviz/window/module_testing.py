"""A person's own module, from the file dialog to the Leaks page: chosen, checked in a process of its own, told."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFileDialog, QWidget

from attnviz.module_check import ModuleCheck
from attnviz.questions.leak import LeakAnswer
from attnviz.views.pages.leaks import LeaksPage, ModuleWish


class ModuleTesting(QObject):
    """Joins the page and the process. Thread: the GUI's."""

    def __init__(self, page: LeaksPage, window: QWidget) -> None:
        super().__init__(page)
        self._page, self._window = page, window
        self.check = ModuleCheck(self)
        page.file_wanted.connect(self._on_file_wanted)
        page.module_asked.connect(self._on_asked)
        page.module_stopped.connect(self.check.stop)
        self.check.answered.connect(self._on_answered)
        self.check.ended.connect(self._on_ended)

    @Slot()
    def _on_file_wanted(self) -> None:
        filters = self.tr("Python files (*.py);;All files (*)")
        path, _ = QFileDialog.getOpenFileName(self._window, self.tr("Open module"), "", filters)
        if path:
            self._page.open_file(Path(path))

    @Slot(object)
    def _on_asked(self, wish: ModuleWish) -> None:
        self.check.start(wish.file, wish.name, wish.arguments, wish.scale, wish.tokens)

    @Slot(object)
    def _on_answered(self, answer: LeakAnswer) -> None:
        self._page.take_module_answer(answer)

    @Slot(int, str)
    def _on_ended(self, _status: int, sentence: str) -> None:
        self._page.take_module_end(sentence)
