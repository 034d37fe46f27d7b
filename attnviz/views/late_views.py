"""The views that are not in sight when the window comes up: they are made behind its first painting."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QVBoxLayout, QWidget

from attnviz.session import Snapshot
from attnviz.views.actions import key_table
from attnviz.views.controls import Controls
from attnviz.views.go_to import GoTo
from attnviz.views.keys_page import KeysPage
from attnviz.views.lesson_card import LessonCard
from attnviz.views.module_page import ModulePage
from attnviz.views.palette import Palette
from attnviz.views.scrolled import scrolled
from attnviz.views.source_editor import SourceEditor


class LateViews:
    """Controls, pages and popups of one window. Thread: the GUI's."""

    def __init__(self, window: QWidget, actions: Mapping[str, QAction]) -> None:
        self.controls = Controls()
        self.source_editor = SourceEditor()
        self.module_page = ModulePage()
        self.lesson_card = LessonCard()
        self.keys_page = KeysPage(window)
        self.keys_page.set_rows(key_table())
        self.palette_popup = Palette(window)
        self.palette_popup.set_actions(list(actions.values()))
        self.go_to_popup = GoTo(window)

    def pages(self) -> Mapping[str, QWidget]:
        """The pages beside the maps that are the window's own, by name."""
        inside = QWidget()
        stack = QVBoxLayout(inside)
        stack.setContentsMargins(0, 0, 0, 0)
        stack.setSpacing(12)
        stack.addWidget(self.source_editor)
        stack.addWidget(self.controls)
        stack.addStretch(1)
        area = scrolled(inside)
        area.setObjectName("controlPanel")
        area.setMinimumWidth(300)
        return {"module": self.module_page, "controls": area}

    def present(self, snapshot: Snapshot) -> None:
        """Show ``snapshot`` in each of them; emits nothing."""
        for view in (self.controls, self.source_editor, self.module_page, self.go_to_popup):
            view.present(snapshot)
