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
from attnviz.views.row_card.fitting import AT_A_DESK, Held, Part, fitting
from attnviz.views.row_card.foot import Foot
from attnviz.views.row_card.formula import Line, Run, mix_lines, softmax_lines, sum_lines
from attnviz.views.row_card.formula_box import FormulaBox
from attnviz.views.row_card.head import HeadLine
from attnviz.views.row_card.lines import RowLines, row_lines
from attnviz.views.row_card.top_k import TopKSwitch
from attnviz.views.scrolled import scrolled

_MOST_DIMS = 8
_LEAST = 120  # pixels at a scale of 1
_NO_BAR = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
_SUM = -1


class RowCard(QFrame):
    """Shows the selected row's story, as much of it as its height has room for; see `fitting`.

    A story that is awaited leaves the one before in sight.

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
        self.gives_way: tuple[Part, ...] = AT_A_DESK
        self._made_of: tuple[object, ...] = ()
        self._written: int | None = None  # a dimension or the sum that is written out instead of the key's softmax
        self.head, self.bars, self.formula = HeadLine(), self._make_bars(), FormulaBox()
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
        self._outer = QVBoxLayout(self)
        self._outer.addWidget(self._pages)
        self.bars.key_chosen.connect(self._on_key_chosen)
        self.bars.resized.connect(self._on_resized)
        self.formula.fitted.connect(self._fit)
        self.foot.fitted.connect(self._fit)
        self.context.dim_chosen.connect(self._on_dim_chosen)
        self.foot.sum_chosen.connect(self._on_sum_chosen)
        self.top_k.spec_edited.connect(self.spec_edited)
        self._say(self.tr("Click a word, or use the arrows."))
        self.scale = 1.0

    def _make_bars(self) -> KeyBars:
        return KeyBars()

    def _story_page(self) -> QWidget:
        page = QWidget()
        column = self._column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        for part in (
            self.head, self.heads, self._key_scroll, self._formula_scroll, self._context_scroll, self._more
        ):  # fmt: skip
            column.addWidget(part)
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
        self.setMinimumHeight(round(_LEAST * scale))
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
        self.heads.update()
        self.formula.show_lines(self._formula(lines))
        self.foot.show_lines(lines, show_numbers=show)
        dims = len(lines.context)
        self.context.show_lines(lines.context, self._written, show_numbers=show)
        self._more.setText(self.tr("… {n} more").format(n=f"{dims - _MOST_DIMS:,}"))
        self._fit()
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
            above = height // self.bars.line // 2  # whole lines stand above and below it
            bar.setValue((self._selected - above) * self.bars.line)

    @Slot()
    def _fit(self) -> None:
        """Give every part its lines, whole ones: another row, formula or height of the card."""
        lines = self.lines
        if lines is None:
            return
        dims = len(lines.context)
        held = Held(lines.n_keys, self.formula.n_lines, min(dims, _MOST_DIMS), dims > _MOST_DIMS, self.foot.n_lines)
        fit = fitting(self.height() - 2 * self.frameWidth(), held, self._scale, self.gives_way)
        high = fit.heights
        self._outer.setContentsMargins(18, high.edge, 18, high.edge)
        self._column.setSpacing(high.gap)
        self.head.setFixedHeight(high.head)
        self.heads.setFixedHeight(high.titles)
        self.bars.set_line(high.key)
        self.formula.set_line(high.formula, high.around_formula)
        self.context.set_line(high.context)
        for area, n_lines, all_lines, line, around in (
            (self._key_scroll, fit.keys, held.keys, high.key, 0),
            (self._formula_scroll, fit.formula, held.formula, high.formula, high.around_formula),
            (self._context_scroll, fit.context, dims, high.context, 0),
        ):
            whole = n_lines == all_lines
            area.setVerticalScrollBarPolicy(_NO_BAR if whole else Qt.ScrollBarPolicy.ScrollBarAsNeeded)
            area.setFixedHeight(n_lines * line + around)
            area.verticalScrollBar().setSingleStep(line)
            area.setVisible(n_lines > 0)
        self._more.setFixedHeight(high.more)
        self._more.setVisible(fit.more)
        self.foot.setFixedHeight(self.foot.n_lines * high.foot)
        self.foot.setVisible(fit.foot > 0)
        self.top_k.setFixedHeight(high.foot)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

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
