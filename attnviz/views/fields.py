"""Editors of single fields of a spec, each with its words, and with the reason where it is grey or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from attnviz.session import Problem, Snapshot
from attnviz.spec import AttentionSpec, SpecError, edited, fixed_by
from attnviz.views.probability import Probability


def being_typed(editor: QWidget) -> bool:
    """Whether a person has something in hand there that is not applied yet: half a number, a slider held down."""
    if isinstance(editor, QSpinBox | QDoubleSpinBox):
        return editor.text() not in (editor.specialValueText(), editor.textFromValue(editor.value()))  # type: ignore[arg-type]
    line = editor.lineEdit() if isinstance(editor, QComboBox) else editor
    if isinstance(line, QLineEdit):
        return line.hasFocus() and line.isModified()
    return isinstance(editor, Probability) and editor.is_held()


def muted_label() -> QLabel:
    """An empty line of quiet words."""
    return _Line("muted")


class Fields(QObject):
    """Editors by the name of their field. A person's edit emits one whole spec; a refused one says why beside it.

    What was refused stays with its words until the spec changes; what is being typed stays until it is applied.
    ``greyed`` gives the reason for each field that acts on nothing in a spec, though its source leaves it free.
    """

    spec_edited = Signal(object)
    problem_said = Signal(str)
    """A field's name: words have come up beside its editor."""

    def __init__(
        self, parent: QObject | None = None, greyed: Callable[[AttentionSpec], Mapping[str, str]] = lambda _spec: {}
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._greyed = greyed
        self.editors: dict[str, QWidget] = {}
        self.problems: dict[str, QLabel] = {}
        self.tips: dict[str, str] = {}
        self._show: dict[str, Callable[[Any], None]] = {}
        self._spec: AttentionSpec | None = None
        self._emitted: AttentionSpec | None = None
        self._problem: Problem | None = None

    # ------------------------------------------------------------------------------------------------------- making

    def register(self, field: str, editor: QWidget, show: Callable[[Any], None], words: str) -> QLabel:
        """Take ``editor`` in; ``show`` sets it to a value. Returns the line for its problems, to be laid out."""
        self.editors[field], self._show[field], self.tips[field] = editor, show, editor.toolTip()
        editor.setAccessibleName(words.replace("&", ""))
        problem = self.problems[field] = _Line("problem")
        problem.hide()
        return problem

    def add(
        self, field: str, editor: QWidget, edited_signal: Any, show: Callable[[Any], None],
        read: Callable[[Any], Any] = lambda value: value, *, words: str, into: QVBoxLayout,
        beside: QHBoxLayout | None = None,
    ) -> None:  # fmt: skip
        """An editor in a row of its own, or in the row ``beside``; its problem stands below."""
        problem = self.register(field, editor, show, words)
        edited_signal.connect(lambda value: self.edit(field, read(value)))
        if beside is None:
            into.addWidget(editor)
        else:
            beside.addWidget(editor)
            into.addLayout(beside)
        into.addWidget(problem)

    def add_row(self, field: str, words: str, form: QFormLayout, editor: QWidget, show: Callable[[Any], None]) -> None:
        """An editor beside its words; its problem takes the row below."""
        problem = self.register(field, editor, show, words)
        form.addRow(words, editor)
        form.addRow(problem)

    def add_spin(
        self, field: str, words: str, form: QFormLayout, low: int, high: int, tip: str = "",
        spin: QSpinBox | None = None,
    ) -> None:  # fmt: skip
        """A whole number; below 1 stands for none, as where a source has no projections."""
        spin = spin or QSpinBox()
        spin.setToolTip(tip)
        spin.setRange(low, high)
        if low == 0:
            spin.setSpecialValueText("—")
        spin.setKeyboardTracking(False)
        spin.valueChanged.connect(lambda value: self.edit(field, value))
        self.add_row(field, words, form, spin, lambda value: spin.setValue(low if value is None else value))

    def add_optional_spin(self, field: str, words: str, form: QFormLayout, high: int, tip: str) -> QSpinBox:
        """A whole number from 1 to ``high``, or none, which is shown as —."""
        spin = QSpinBox()
        spin.setRange(0, high)
        spin.setSpecialValueText("—")
        spin.setKeyboardTracking(False)
        spin.setToolTip(tip)
        spin.valueChanged.connect(lambda value: self.edit(field, value or None))
        self.add_row(field, words, form, spin, lambda value: spin.setValue(value or 0))
        return spin

    def add_combo(
        self, field: str, words: str, form: QFormLayout, values: tuple[str, ...], tip: str = "",
        about: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """One of ``values``; ``about`` tells what each of them is."""
        combo = QComboBox()
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.addItems(values)
        for place, value in enumerate(values):
            combo.setItemData(place, (about or {}).get(value, value), Qt.ItemDataRole.ToolTipRole)
        combo.setToolTip(tip)
        combo.textActivated.connect(lambda value: self.edit(field, value))
        self.add_row(field, words, form, combo, combo.setCurrentText)

    def add_line(
        self, field: str, words: str, form: QFormLayout, read: Callable[[str], Any], tip: str = "", *,
        write: Callable[[Any], str] = str, longest: int = 40,
    ) -> None:  # fmt: skip
        """A line that ``read`` turns into a value; it may raise `SpecError`. Applied on Enter or on leaving it."""
        line, problem = self.line(field, words, read, tip, write=write, longest=longest)
        form.addRow(words, line)
        form.addRow(problem)

    def line(
        self, field: str, words: str, read: Callable[[str], Any], tip: str = "", *,
        write: Callable[[Any], str] = str, longest: int = 40,
    ) -> tuple[QLineEdit, QLabel]:  # fmt: skip
        """The line of `add_line` and the line for its problems, to be laid out."""
        line = QLineEdit()
        line.setMaxLength(longest)
        line.setToolTip(tip)
        line.editingFinished.connect(lambda: self._on_line_finished(field, line, read))
        return line, self.register(field, line, lambda value: self._set_line(line, write(value)), words)

    def add_choice_line(
        self, field: str, words: str, form: QFormLayout, read: Callable[[str], Any], choices: tuple[str, ...], *,
        write: Callable[[Any], str], tip: str = "",
    ) -> None:  # fmt: skip
        """A line as `add_line` has it, with ``choices`` in a list."""
        combo = QComboBox()
        combo.setEditable(True)
        combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.addItems(choices)
        combo.setToolTip(tip)
        line = combo.lineEdit()
        if line is None:
            raise TypeError("a combo that can be edited has a line")
        line.setCompleter(None)  # type: ignore[arg-type]  # what is typed is not to be finished by it
        line.setMaxLength(40)
        line.editingFinished.connect(lambda: self._on_line_finished(field, line, read))
        combo.textActivated.connect(lambda text: self.edit(field, read(text)))
        self.add_row(field, words, form, combo, lambda value: self._set_line(line, write(value)))

    @staticmethod
    def _set_line(line: QLineEdit, text: str) -> None:
        """Put ``text`` into ``line``, its beginning in sight."""
        if line.text() != text:
            line.setText(text)
            line.setCursorPosition(0)

    # ------------------------------------------------------------------------------------------------------ present

    def present(self, snapshot: Snapshot) -> None:
        """Set the editors where the spec or its problem is another than before; emits nothing."""
        if snapshot.spec != self._spec:
            self._spec = self._emitted = snapshot.spec
            self._present_values(snapshot.spec)
        if snapshot.problem != self._problem:
            if self._problem is not None and self._problem.field in self.problems:
                self.problems[self._problem.field].hide()
            self._problem = snapshot.problem
            if snapshot.problem is not None:
                self.say(snapshot.problem.field, snapshot.problem.sentence)

    def _present_values(self, spec: AttentionSpec) -> None:
        reasons = {**self._greyed(spec), **{field: fixed.reason for field, fixed in fixed_by(spec.source).items()}}
        for field, editor in self.editors.items():
            if field in reasons or not being_typed(editor):
                self.problems[field].hide()
                blocker = QSignalBlocker(editor)
                self._show[field](getattr(spec, field))
                del blocker
            editor.setEnabled(field not in reasons)
            editor.setToolTip(reasons.get(field, self.tips[field]))

    def say(self, field: str, sentence: str) -> None:
        """Put ``sentence`` beside the editor of ``field``, if there is one here."""
        problem = self.problems.get(field)
        if problem is not None:
            problem.setText(sentence)
            problem.show()
            self.problem_said.emit(field)

    # -------------------------------------------------------------------------------------------------------- edits

    def edit(self, field: str, value: Any) -> bool:
        """Emit the spec with ``value`` in ``field``, or say why it cannot be. Returns whether it can."""
        if self._spec is None:
            return False
        self._hide_problems()
        try:
            spec = edited(self._spec, **{field: value})
        except SpecError as error:
            self.say(error.field if error.field in self.problems else field, str(error))
            return False
        if spec != self._emitted:  # not what stands on the screen: an edit may still be waiting there
            self._emitted = spec
            self.spec_edited.emit(spec)
        return True

    def _on_line_finished(self, field: str, line: QLineEdit, read: Callable[[str], Any]) -> None:
        if not line.isModified():
            return
        try:
            value = read(line.text().strip())
        except SpecError as error:
            self._hide_problems()
            self.say(field, str(error))
            return
        line.setModified(False)
        if not self.edit(field, value):
            line.setModified(True)

    def _hide_problems(self) -> None:
        for problem in self.problems.values():
            problem.hide()


class _Line(QLabel):
    """Wrapped words that claim their height: a form layout was seen to keep that of another width."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.setProperty("role", role)
        self.setWordWrap(True)

    def setText(self, text: str) -> None:
        super().setText(text)
        self._claim_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._claim_height()

    def _claim_height(self) -> None:
        self.setMinimumHeight(max(self.heightForWidth(self.width()), 0))


class DivisorSpin(QSpinBox):
    """A whole number whose steps are the numbers that divide ``of`` evenly; any other can be typed, and refused."""

    of = 1

    def stepBy(self, steps: int) -> None:
        """Go to the next divisor, up or down."""
        dividing = [n for n in range(1, self.of + 1) if self.of % n == 0]
        beyond = [n for n in dividing if n > self.value()] if steps > 0 else [n for n in dividing if n < self.value()]
        if beyond:
            self.setValue(beyond[0] if steps > 0 else beyond[-1])

    def stepEnabled(self) -> QSpinBox.StepEnabledFlag:
        """Up below ``of``, down above 1."""
        flags = QSpinBox.StepEnabledFlag.StepNone
        if self.value() < self.of:
            flags |= QSpinBox.StepEnabledFlag.StepUpEnabled
        if self.value() > 1:
            flags |= QSpinBox.StepEnabledFlag.StepDownEnabled
        return flags
