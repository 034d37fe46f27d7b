"""The row card: one query's row key by key, its softmax written out, and what it mixes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from attnviz.figure.fonts import sized
from attnviz.frames import STORY_KEYS
from attnviz.session import Cell, Snapshot
from attnviz.views.row_card import metrics
from attnviz.views.row_card.bars import ColumnHeads, KeyBars
from attnviz.views.row_card.context_bars import ContextBars
from attnviz.views.row_card.foot import Foot
from attnviz.views.row_card.formula import Line, Run, mix_lines, softmax_lines, sum_lines
from attnviz.views.row_card.formula_box import FormulaBox
from attnviz.views.row_card.head import HeadLine
from attnviz.views.row_card.lines import RowLines, row_lines
from attnviz.views.row_card.top_k import TopKSwitch
from attnviz.views.scrolled import scrolled

_MOST_DIMS = 8
_LEAST_KEYS = 2  # lines of keys that are in sight in the smallest card
_LEAST_FORMULA = 92.0
_SUM = -1


class RowCard(QFrame):
    """Shows the selected row's story. A story that is awaited leaves the one before in sight.

    ``cell_selected`` carries a `Cell` of the row, ``spec_edited`` a whole spec with another top-k.
    """

    cell_selected = Signal(object)
    spec_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self.setAccessibleName(self.tr("the selected row and its story"))
        self.lines: RowLines | None = None
        self._scale = 1.0
        self._selected: int | None = None
        self._show_numbers = True
        self._made_of: tuple[object, ...] = ()
        self._written: int | None = None  # a dimension or the sum that is written out instead of the key's softmax
        self.head, self.bars, self.formula = HeadLine(), KeyBars(), FormulaBox()
        self.heads = ColumnHeads(self.bars)
        self.context, self.foot, self.top_k = ContextBars(), Foot(), TopKSwitch()
        self._more = QLabel()
        self._more.setProperty("role", "muted")
        self._words = QLabel()
        self._words.setWordWrap(True)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._key_scroll, self._context_scroll = scrolled(self.bars), scrolled(self.context)
        self._formula_scroll = scrolled(self.formula)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._words)
        self._page = self._story_page()
        self._pages.addWidget(self._page)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 12, 18, 10)
        column.addWidget(self._pages)
        self.bars.key_chosen.connect(self._on_key_chosen)
        self.bars.resized.connect(self._on_resized)
        self.formula.fitted.connect(self._on_fitted)
        self.context.dim_chosen.connect(self._on_dim_chosen)
        self.foot.sum_chosen.connect(self._on_sum_chosen)
        self.top_k.spec_edited.connect(self.spec_edited)
        self._say(self.tr("Click a word, or use the arrows."))
        self.scale = 1.0
        self._on_fitted()

    def _story_page(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.head)
        column.addWidget(self.heads)
        column.addWidget(self._key_scroll, 100)
        column.addWidget(self._formula_scroll)
        column.addWidget(self._context_scroll, 30)
        column.addWidget(self._more)
        column.addStretch(1)
        foot = QHBoxLayout()
        foot.addWidget(self.foot, 1)
        foot.addWidget(self.top_k)
        column.addLayout(foot)
        return page

    # -------------------------------------------------------------------------------------------------------- showing

    @property
    def scale(self) -> float:
        """How large the type is: 1 at a desk (tokens of 20 pixels), 2 from the back of a classroom."""
        return self._scale

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scale = scale
        self.head.set_scale(scale)
        self.bars.set_scale(scale)
        self.formula.set_scale(scale)
        self.foot.set_scale(scale)
        self.context.scale = scale
        for small in (self._more, self._words, *self.top_k.findChildren(QWidget)):
            small.setFont(sized(metrics.SMALL * scale))
        self.heads.setFixedHeight(round(22 * scale))
        self._key_scroll.setMinimumHeight(round(_LEAST_KEYS * metrics.LOWEST * scale))
        if self.lines is not None:
            self._show()

    def present(self, snapshot: Snapshot) -> None:
        """Show the row that is selected, once its story has come."""
        self.top_k.present(snapshot)
        outline = snapshot.picture.outline if snapshot.picture is not None else None
        if snapshot.selected is None or outline is None:
            self._forget(self.tr("Click a word, or use the arrows."))
            return
        if outline.n_keys > STORY_KEYS:
            words = self.tr("A row of {n} keys is told by the strip below the map.")
            self._forget(words.format(n=f"{outline.n_keys:,}"))
            return
        made_of = (
            snapshot.story, outline.tokens, snapshot.show_before, snapshot.decimals, snapshot.selected.row,
            snapshot.picture.spec.source if snapshot.picture is not None else None,
        )  # fmt: skip
        lines = self.lines
        if made_of != self._made_of:  # a story is but itself
            lines = row_lines(snapshot) or self.lines
            self._made_of = made_of
        if lines is None:
            self._say(self.tr("The row is being computed …"))
            return
        selected = snapshot.selected.col if lines.now.row == snapshot.selected.row else None
        selected = selected if selected is not None and selected < lines.n_keys else None
        if selected != self._selected or self.lines is None or lines.now.row != self.lines.now.row:
            self._written = None
        elif lines is self.lines and snapshot.show_numbers == self._show_numbers:
            return
        moved = selected != self._selected or self.lines is None or lines.about != self.lines.about
        self.lines, self._selected, self._show_numbers = lines, selected, snapshot.show_numbers
        self._show()
        if moved:
            self._scroll_to_selected()

    def _show(self) -> None:
        lines = self.lines
        if lines is None:
            return
        show = self._show_numbers
        if self._written is not None and self._written >= len(lines.context):
            self._written = None
        self.head.show_lines(lines)
        self.bars.show_lines(lines, self._selected, show_numbers=show)
        self._key_scroll.setMaximumHeight(self.bars.maximumHeight())
        self.heads.update()
        self.formula.show_lines(self._formula(lines))
        self.foot.show_lines(lines, show_numbers=show)
        dims = len(lines.context)
        self.context.show_lines(lines.context, self._written, show_numbers=show)
        height = round(metrics.CONTEXT * self._scale)
        self._context_scroll.setVisible(dims > 0)
        self._context_scroll.setMinimumHeight(min(dims, 2) * height)
        self._context_scroll.setMaximumHeight(min(dims, _MOST_DIMS) * height)
        self._more.setVisible(dims > _MOST_DIMS)
        self._more.setText(self.tr("… {n} more").format(n=f"{dims - _MOST_DIMS:,}"))
        self._on_fitted()
        self._pages.setCurrentIndex(1)

    def _formula(self, lines: RowLines) -> tuple[Line, ...]:
        """What is written out: the selected key's softmax, or what was clicked since."""
        if not self._show_numbers:
            return ((Run(self.tr("the numbers are hidden: N shows them"), muted=True),),)
        if self._written == _SUM:
            return sum_lines(lines)
        if self._written is not None:
            return mix_lines(lines, self._written)
        if self._selected is None:
            return self.formula.lines
        return softmax_lines(lines, self._selected)

    def _say(self, words: str) -> None:
        self._words.setText(words)
        self._pages.setCurrentIndex(0)

    def _forget(self, words: str) -> None:
        self.lines, self._made_of, self._written, self._selected = None, (), None, None
        self._say(words)

    def _scroll_to_selected(self) -> None:
        if self._selected is None or self.lines is None:
            return
        rect = self.bars.line_rect(self._selected)
        bar = self._key_scroll.verticalScrollBar()
        height = self._key_scroll.viewport().height()
        if rect.top() < bar.value() or rect.bottom() > bar.value() + height:
            bar.setValue(round(rect.center().y() - height / 2))

    @Slot()
    def _on_fitted(self) -> None:
        """The formula or the card got another height: it stands whole where there is room, else some lines of it."""
        height = self.formula.height()
        others = self._page.minimumSizeHint().height() - self._formula_scroll.minimumHeight()
        room = self._pages.height() - others - round(metrics.LOWEST * self._scale)  # a third key comes first
        self._formula_scroll.setMaximumHeight(height)
        self._formula_scroll.setMinimumHeight(min(height, max(room, round(_LEAST_FORMULA * self._scale))))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._on_fitted()

    @Slot()
    def _on_resized(self) -> None:
        """The lines got another height: the selected one stays in sight, and the heads above their columns."""
        self._scroll_to_selected()
        self.heads.update()

    # ---------------------------------------------------------------------------------------------------------- clicks

    @Slot(int)
    def _on_key_chosen(self, key: int) -> None:
        if self.lines is None:
            return
        if self._written is not None:
            self._written = None
            self._show()
        self.cell_selected.emit(Cell(self.lines.now.row, key))

    @Slot(int)
    def _on_dim_chosen(self, dim: int) -> None:
        self._written = None if self._written == dim else dim
        self._show()

    @Slot()
    def _on_sum_chosen(self) -> None:
        self._written = None if self._written == _SUM else _SUM
        self._show()
