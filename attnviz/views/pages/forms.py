"""The two forms of a module, drawn as they are, as widgets."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attnviz.figure.form_diagram import Sizes, form_height, form_words, paint_form
from attnviz.spec import Implementation
from attnviz.views.plot import style_of


class FormDiagram(QWidget):
    """One form: X on the left, its matrices, and what comes out."""

    def __init__(self, form: Implementation, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = form
        self._sizes: Sizes | None = None
        self._lit = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(round(form_height(None)))
        self.setMinimumWidth(200)

    def sizeHint(self) -> QSize:
        return QSize(280, self.height())

    def show_sizes(self, sizes: Sizes | None, *, lit: bool) -> None:
        """Draw these sizes; ``lit`` says that this is the window's own form."""
        if (sizes, lit) != (self._sizes, self._lit):
            self._sizes, self._lit = sizes, lit
            self.setFixedHeight(round(form_height(sizes)))
            self.setAccessibleName("" if sizes is None else form_words(self.form, sizes))
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_form(painter, (self.width(), self.height()), self.form, self._sizes, style_of(self), lit=self._lit)
        painter.end()
