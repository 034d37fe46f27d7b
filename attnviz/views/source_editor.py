"""Where tokens and numbers come from: lessons, a text, typed matrices, random inputs, sizes of real models."""

from __future__ import annotations

import html
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attnviz.matrices import matrix_text, parse_matrix
from attnviz.session import Problem, Snapshot
from attnviz.spec import (
    AnySource,
    AttentionSpec,
    Matrix,
    Pattern,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    was_given,
)
from attnviz.views.fields import being_typed
from attnviz.views.source_kinds import FILE_KIND, KINDS, PRESET_HEADS, Remembered, kind_of

__all__ = ["FILE_KIND", "KINDS", "Remembered", "SourceEditor", "kind_of"]

_TIP = Qt.ItemDataRole.ToolTipRole
_HERE = Qt.ShortcutContext.WidgetShortcut
_PROBLEMS = frozenset(
    {"source", "lesson", "text", "scores", "values", "dims", "tokens", "weights", "length", "qk_scale", "pattern"}
)


class SourceEditor(QFrame):
    """Chooses and edits the source; emits a whole spec. What a source fixes is remembered for the way back."""

    spec_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._spec: AttentionSpec | None = None
        self._said: Problem | None = None
        self._remembered = Remembered()
        heading = QLabel(self.tr("SOURCE"))
        heading.setProperty("role", "heading")
        self.kinds = QComboBox()
        words = (
            self.tr("lesson: cat eats fish"), self.tr("lesson: your journey"),
            self.tr("lesson: one class, two uses"), self.tr("your own text"),
            self.tr("scores by hand"), self.tr("weights by hand"), self.tr("random embeddings"),
            self.tr("random Q and K"), self.tr("made-up patterns"), self.tr("GPT-2 small's size, not its weights"),
            self.tr("GPT-2 XL's size, not its weights"),
        )  # fmt: skip
        for kind, title in zip(KINDS, words, strict=True):
            self.kinds.addItem(title, kind)
            tip = self.tr("{title}: {heads} heads × 64, 1,024 tokens").format(title=title, heads=PRESET_HEADS.get(kind))
            self.kinds.setItemData(self.kinds.count() - 1, tip if kind in PRESET_HEADS else title, _TIP)
        self.kinds.setAccessibleName(self.tr("source"))
        self.kinds.setToolTip(self.tr("where tokens and numbers come from"))
        self.kinds.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.kinds.activated.connect(self._on_kind)
        self._pages = QStackedWidget()
        self._make_pages()
        self._problem = QLabel()
        self._problem.setProperty("role", "problem")
        self._problem.setWordWrap(True)
        self._problem.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(7)
        for widget in (heading, self.kinds, self._pages, self._problem):
            column.addWidget(widget)
        self._pause = QTimer(self, singleShot=True, interval=300)
        self._pause.timeout.connect(self._apply_typed)
        for keys in "Ctrl+Return", "Ctrl+Enter":  # of the text alone: elsewhere the keys are free
            QShortcut(QKeySequence(keys), self.text_edit, self._apply_typed, context=_HERE)

    def _make_pages(self) -> None:
        self.text_edit = QPlainTextEdit()
        self.text_edit.setMaximumHeight(84)
        self.text_edit.setTabChangesFocus(True)
        self.text_edit.setPlaceholderText(self.tr("type a sentence"))
        self.text_edit.setToolTip(self.tr("applied when you pause, or at once with Ctrl+Enter"))
        self.text_edit.textChanged.connect(self._on_typed)
        self.scores_edit, self.values_edit, self.tokens_edit = QLineEdit(), QLineEdit(), QLineEdit()
        self.weights_edit = QLineEdit()
        for edit, name, tip in [
            (self.scores_edit, self.tr("scores"), self.tr("rows by ; numbers by spaces; -inf is allowed")),
            (self.values_edit, self.tr("values"), self.tr("a row for each key: rows by ; numbers by spaces")),
            (self.tokens_edit, self.tr("tokens"), self.tr("names of the keys, by commas")),
            (self.weights_edit, self.tr("weights"), self.tr("rows by ; numbers by spaces; or ones:6")),
        ]:
            edit.setAccessibleName(name)
            edit.setToolTip(tip)
            edit.textEdited.connect(self._on_typed)
            edit.returnPressed.connect(self._apply_typed)
        scores = QWidget()
        form = QFormLayout(scores)
        form.setContentsMargins(0, 0, 0, 0)
        form.addRow(self.tr("scores"), self.scores_edit)
        form.addRow(self.tr("values"), self.values_edit)
        form.addRow(self.tr("tokens"), self.tokens_edit)
        numbers = QWidget()
        form = QFormLayout(numbers)
        form.setContentsMargins(0, 0, 0, 0)
        self.length_spin, self.scale_spin = QSpinBox(), QDoubleSpinBox()
        self.length_spin.setRange(1, 1 << 20)
        self.length_spin.setKeyboardTracking(False)
        self.length_spin.valueChanged.connect(self._apply_typed)
        self.scale_spin.setRange(-1000, 1000)
        self._shown_scale = self.scale_spin.value()
        self.scale_spin.setSingleStep(0.1)
        self.scale_spin.setKeyboardTracking(False)
        self.scale_spin.valueChanged.connect(self._apply_typed)
        form.addRow(self.tr("tokens"), self.length_spin)
        form.addRow(self.tr("Q, K scale"), self.scale_spin)
        self.text_edit.setAccessibleName(self.tr("text"))
        self.length_spin.setAccessibleName(self.tr("number of tokens"))
        self.scale_spin.setAccessibleName(self.tr("Q, K scale"))
        self.length_spin.setToolTip(self.tr("how many tokens there are; each asks, and each can be looked at"))
        self.scale_spin.setToolTip(
            self.tr("what the drawn queries and keys are multiplied by: more makes rows sharper")
        )
        self.pattern_combo = QComboBox()
        for pattern, words in (
            ("mixed", self.tr("each kind in turn")), ("sink", self.tr("sink: the first token")),
            ("local", self.tr("local: the neighbours")), ("previous", self.tr("the token before")),
            ("stripes", self.tr("stripes")), ("topics", self.tr("topics")),
        ):  # fmt: skip
            self.pattern_combo.addItem(words, pattern)
        self.pattern_combo.activated.connect(self._apply_typed)
        self.pattern_combo.setAccessibleName(self.tr("pattern"))
        self.pattern_combo.setToolTip(self.tr("what the made-up maps look like, as trained heads' often do"))
        self.pattern_combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        form.addRow(self.tr("pattern"), self.pattern_combo)
        self._number_form = form
        self.file_label = QLabel()
        self.file_label.setTextFormat(Qt.TextFormat.PlainText)
        self.file_label.setWordWrap(True)
        self.file_label.setMinimumWidth(1)  # a long path must not widen the window
        self.file_label.setProperty("role", "muted")
        self._empty = QWidget()
        for page in (self._empty, self.text_edit, scores, self.weights_edit, numbers, self.file_label):
            self._pages.addWidget(page)
        self._page_of = {"text": self.text_edit, "scores": scores, "weights": self.weights_edit, "random": numbers,
                         "random-qk": numbers, "pattern": numbers, FILE_KIND: self.file_label}  # fmt: skip

    # ------------------------------------------------------------------------------------------------------ present

    def present(self, snapshot: Snapshot) -> None:
        """Show the spec's source; emits nothing and never overwrites what is being typed."""
        if snapshot.spec != self._spec:
            self._present_source(snapshot)
        problem = snapshot.problem if snapshot.problem and snapshot.problem.field in _PROBLEMS else None
        if problem != self._said:
            self._said = problem
            self._say(problem.sentence if problem else "")

    def _present_source(self, snapshot: Snapshot) -> None:
        self._spec = snapshot.spec
        self._remembered.note(snapshot.spec)
        if self._pause.isActive():
            return
        self._say("")
        kind = kind_of(snapshot.spec)
        if isinstance(snapshot.spec.source, QKFile):
            self._name_file(snapshot.spec.source)
        self.kinds.setCurrentIndex(self.kinds.findData(kind))
        page = self._page_of.get(kind, self._empty)
        self._pages.setCurrentWidget(page)
        self._pages.setVisible(page is not self._empty)
        if page is not self._empty:
            self._pages.setMaximumHeight(90 if kind == "text" else page.sizeHint().height())
        self._number_form.setRowVisible(self.scale_spin, kind == "random-qk")
        self._number_form.setRowVisible(self.pattern_combo, kind == "pattern")
        if page is self._page_of["random"]:
            self._pages.setMaximumHeight(page.sizeHint().height())
        self._fill(snapshot.spec.source)

    def _name_file(self, source: QKFile) -> None:
        """The list's entry for the file that was opened, and its page."""
        name = self.tr("given in Python") if was_given(source.path) else Path(source.path).name
        place = self.kinds.findData(FILE_KIND)
        if place < 0:
            place = self.kinds.count()
            self.kinds.addItem(name, FILE_KIND)
        self.kinds.setItemText(place, name)
        self.kinds.setItemData(place, source.path, _TIP)
        words = self.tr("{path}: {heads} heads × {d_head}, {queries} queries of {length} tokens")
        self.file_label.setText(words.format(
            path=name, heads=source.heads, d_head=source.d_head, queries=f"{source.queries:,}",
            length=f"{source.length:,}",
        ))  # fmt: skip
        self.file_label.setToolTip(f"<span>{html.escape(source.path)}</span>")

    def _fill(self, source: AnySource) -> None:
        editors = (self.text_edit, self.scores_edit, self.values_edit, self.tokens_edit, self.weights_edit,
                   self.length_spin, self.scale_spin)  # fmt: skip
        blockers = [QSignalBlocker(editor) for editor in editors]
        match source:
            case Text(text=text):
                if self.text_edit.toPlainText() != text:
                    self.text_edit.setPlainText(text)
            case TypedScores():
                self._set(self.scores_edit, matrix_text(source.scores))
                self._set(self.values_edit, "" if source.values is None else matrix_text(source.values))
                self._set(self.tokens_edit, ",".join(source.tokens))
            case TypedWeights():
                self._set(self.weights_edit, matrix_text(source.weights))
            case Pattern(length=length, pattern=pattern):
                self._set_number(self.length_spin, length)
                self.pattern_combo.setCurrentIndex(self.pattern_combo.findData(pattern))
            case RandomEmbeddings(length=length):
                self._set_number(self.length_spin, length)
            case RandomQK(length=length, qk_scale=scale):
                self._set_number(self.length_spin, length)
                self._set_number(self.scale_spin, scale)
                self._shown_scale = self.scale_spin.value()
        del blockers

    def _say(self, sentence: str) -> None:
        self._problem.setText(sentence)
        self._problem.setVisible(bool(sentence))

    @staticmethod
    def _set(edit: QLineEdit, text: str) -> None:
        if not being_typed(edit) and edit.text() != text:
            edit.setText(text)

    @staticmethod
    def _set_number(spin: QSpinBox | QDoubleSpinBox, number: float) -> None:
        if not being_typed(spin):
            spin.setValue(number)  # type: ignore[arg-type]

    # -------------------------------------------------------------------------------------------------------- edits

    @Slot(int)
    def _on_kind(self, _index: int) -> None:
        self.choose(self.kinds.currentData())

    def choose(self, kind: str) -> None:
        """Go to a source of this kind: the one last used, else an example."""
        self._pause.stop()
        spec = self._remembered.spec_of(kind)
        if spec != self._spec:
            self.spec_edited.emit(spec)

    @Slot()
    def edit_text(self) -> None:
        """Go to a text of one's own and put the cursor into it."""
        self.choose("text")
        self.text_edit.setFocus()
        self.text_edit.selectAll()

    @Slot()
    def _on_typed(self) -> None:
        self._pause.start()

    @Slot()
    def _apply_typed(self) -> None:
        self._pause.stop()
        if self._spec is None:
            return
        try:
            source = self._typed(self.kinds.currentData())
            spec = self._remembered.spec_with(source) if source is not None else self._spec
        except SpecError as error:
            self._say(str(error))
            return
        self._say("")
        for edit in (self.scores_edit, self.values_edit, self.tokens_edit, self.weights_edit):
            edit.setModified(False)
        if spec != self._spec:
            self.spec_edited.emit(spec)

    def _typed(self, kind: str) -> AnySource | None:
        """The source as it stands in the editors; what they do not show whole is taken over from the spec's."""
        now = self._spec.source if self._spec is not None else None
        match kind:
            case "text":
                return Text(text=self.text_edit.toPlainText())
            case "scores":
                return self._typed_scores(now if isinstance(now, TypedScores) else None)
            case "weights":
                weights = parse_matrix(self.weights_edit.text(), "weights")
                names = now.tokens if isinstance(now, TypedWeights) else ()
                return TypedWeights(weights=weights, tokens=names if _width(weights) == len(names) else ())
            case "random":
                return RandomEmbeddings(length=self.length_spin.value())
            case "pattern":
                return Pattern(length=self.length_spin.value(), pattern=self.pattern_combo.currentData())
            case "random-qk":
                scale = self.scale_spin.value()
                if isinstance(now, RandomQK) and scale == self._shown_scale:
                    scale = now.qk_scale
                return RandomQK(length=self.length_spin.value(), qk_scale=scale)
        return None

    def _typed_scores(self, now: TypedScores | None) -> TypedScores:
        typed, names = self.values_edit.text().strip(), self.tokens_edit.text()
        values = parse_matrix(typed, "values") if typed else None
        tokens = tuple(name.strip() for name in names.split(",") if name.strip())
        if now is not None and names == ",".join(now.tokens):
            tokens = now.tokens
        dims = now.dims if now is not None and _width(values or ()) == len(now.dims) else ()
        return TypedScores(
            scores=parse_matrix(self.scores_edit.text(), "scores"), values=values, dims=dims, tokens=tokens
        )


def _width(matrix: Matrix) -> int:
    return len(matrix[0]) if matrix else 0
