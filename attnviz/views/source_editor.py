"""Where tokens and numbers come from: lessons, a text, typed matrices, random inputs, sizes of real models."""

from __future__ import annotations

from typing import Any

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
    FIELDS,
    AnySource,
    AttentionSpec,
    Lesson,
    Matrix,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    fixed_by,
    make_spec,
)
from attnviz.views.fields import being_typed

KINDS = ("cat-eats-fish", "journey", "text", "scores", "weights", "random", "random-qk", "gpt2-small", "gpt2-xl")
_TIP = Qt.ItemDataRole.ToolTipRole
_HERE = Qt.ShortcutContext.WidgetShortcut
_PRESET_HEADS = {"gpt2-small": 12, "gpt2-xl": 25}
_PRESET_FIELDS = frozenset({"num_heads", "d_model", "d_out", "implementation", "out_proj"})
_PROBLEMS = frozenset(
    {"source", "lesson", "text", "scores", "values", "dims", "tokens", "weights", "length", "qk_scale"}
)


class Remembered:
    """What a person had chosen before a source fixed it, for the way back. Pure.

    A real model's size sets heads and dimensions as a source does, so those are not remembered from it either.
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._sources: dict[str, AnySource] = {}

    def note(self, spec: AttentionSpec) -> None:
        """Keep the fields of ``spec`` that its source leaves free, and the source itself by its kind."""
        kind = kind_of(spec)
        fixed = set(fixed_by(spec.source)) | (_PRESET_FIELDS if kind in _PRESET_HEADS else set())
        self._fields |= {f: getattr(spec, f) for f in FIELDS if f != "source" and f not in fixed}
        self._sources[kind] = spec.source

    def source(self, kind: str) -> AnySource | None:
        return self._sources.get(kind)

    def spec_of(self, kind: str) -> AttentionSpec:
        """A spec with a source of ``kind``: the one last used, else an example; with everything remembered."""
        if kind in _PRESET_HEADS:
            kept = {f: v for f, v in self._fields.items() if f not in _PRESET_FIELDS}
            heads = _PRESET_HEADS[kind]
            return make_spec(RandomEmbeddings(length=1024), **kept, num_heads=heads, implementation="split")
        return self.spec_with(self.source(kind) or _example(kind))

    def spec_with(self, source: AnySource) -> AttentionSpec:
        """``source`` with everything remembered that it leaves free; sizes that cannot be take their defaults."""
        fixed = fixed_by(source)
        kept = {f: v for f, v in self._fields.items() if f not in fixed and v is not None}
        try:
            return make_spec(source, **kept)
        except SpecError:
            for field in ("d_out", "d_model"):
                kept.pop(field, None)
            return make_spec(source, **kept)


def kind_of(spec: AttentionSpec) -> str:
    """The entry of the list that ``spec``'s source belongs to."""
    match spec.source:
        case Lesson(name=name):
            return name
        case TypedScores():
            return "scores"
        case TypedWeights():
            return "weights"
        case Text():
            return "text"
        case RandomQK():
            return "random-qk"
        case RandomEmbeddings(length=1024) if spec.d_head == 64 and spec.d_model == spec.d_out:
            for kind, heads in _PRESET_HEADS.items():
                if spec.num_heads == heads:
                    return kind
    return "random"


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
            self.tr("lesson: cat eats fish"), self.tr("lesson: your journey"), self.tr("your own text"),
            self.tr("scores by hand"), self.tr("weights by hand"), self.tr("random embeddings"),
            self.tr("random Q and K"), self.tr("GPT-2 small's size, not its weights"),
            self.tr("GPT-2 XL's size, not its weights"),
        )  # fmt: skip
        for kind, title in zip(KINDS, words, strict=True):
            self.kinds.addItem(title, kind)
            tip = self.tr("{title}: {heads} heads × 64, 1,024 tokens").format(
                title=title, heads=_PRESET_HEADS.get(kind)
            )
            self.kinds.setItemData(self.kinds.count() - 1, tip if kind in _PRESET_HEADS else title, _TIP)
        self.kinds.setAccessibleName(self.tr("source"))
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
        self._number_form = form
        self._empty = QWidget()
        for page in (self._empty, self.text_edit, scores, self.weights_edit, numbers):
            self._pages.addWidget(page)
        self._page_of = {"text": self.text_edit, "scores": scores, "weights": self.weights_edit, "random": numbers,
                         "random-qk": numbers}  # fmt: skip

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
        self.kinds.setCurrentIndex(self.kinds.findData(kind))
        page = self._page_of.get(kind, self._empty)
        self._pages.setCurrentWidget(page)
        self._pages.setVisible(page is not self._empty)
        if page is not self._empty:
            self._pages.setMaximumHeight(90 if kind == "text" else page.sizeHint().height())
        self._number_form.setRowVisible(self.scale_spin, kind == "random-qk")
        self._fill(snapshot.spec.source)

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


def _example(kind: str) -> AnySource:
    match kind:
        case "cat-eats-fish" | "journey":
            return Lesson(name=kind)
        case "scores":
            return TypedScores(
                scores=parse_matrix("0.5 0.5 1; 0 2 1; 0.5 0.5 0"), values=parse_matrix("1 0; .1 .1; 0 1"),
                dims=("猫味", "鱼味"), tokens=("猫", "吃", "鱼"),
            )  # fmt: skip
        case "weights":
            return TypedWeights(weights=parse_matrix("0.4 0.3 0.2 0.1"))
        case "random":
            return RandomEmbeddings(length=64)
        case "random-qk":
            return RandomQK(length=256)
    return Text(text="The cat sat on the mat because it was warm")
