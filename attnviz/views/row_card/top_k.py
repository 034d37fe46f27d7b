"""The switch that keeps a row's k largest scores and fills the rest with −∞."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QSpinBox, QWidget

from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, SpecError, edited, fixed_by

_AT_FIRST = 2


class TopKSwitch(QWidget):
    """On or off, and how many. ``spec_edited`` carries a whole spec, for a person's edit alone."""

    spec_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec: AttentionSpec | None = None
        self.box = QCheckBox(self.tr("top-k"))
        self.box.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus, and its keys, on the map
        self.box.clicked.connect(self._on_edited)
        self.spin = QSpinBox()
        self.spin.setRange(1, _AT_FIRST)
        self.spin.setValue(_AT_FIRST)
        self.spin.setKeyboardTracking(False)
        self.spin.setAccessibleName(self.tr("how many scores are kept"))
        self.spin.valueChanged.connect(self._on_edited)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self.box)
        row.addWidget(self.spin)

    def present(self, snapshot: Snapshot) -> None:
        """Show the spec's k, and grey with the reason where it cannot be."""
        spec = self._spec = snapshot.spec
        outline = snapshot.picture.outline if snapshot.picture is not None else None
        most = max(outline.n_keys if outline is not None else 1, spec.top_k or 1)
        with QSignalBlocker(self.spin), QSignalBlocker(self.box):
            was = self.spin.value()
            self.spin.setRange(1, most)
            if not self.spin.hasFocus() or spec.top_k is not None:
                self.spin.setValue(spec.top_k or min(was, most))
            self.box.setChecked(spec.top_k is not None)
        reason = self._reason(spec)
        self.box.setEnabled(not reason or spec.top_k is not None)
        self.spin.setEnabled(spec.top_k is not None and not reason)
        self.setToolTip(reason or self.tr("keep the k largest scores of each row and fill the rest with −∞"))

    @staticmethod
    def _reason(spec: AttentionSpec) -> str:
        """Why the spec refuses a k; empty where it does not."""
        fixed = fixed_by(spec.source).get("top_k")
        if fixed is not None:
            return fixed.reason
        try:
            edited(spec, top_k=1)
        except SpecError as error:
            return str(error)
        return ""

    @Slot()
    def _on_edited(self) -> None:
        if self._spec is None:
            return
        k = self.spin.value() if self.box.isChecked() else None
        if k != self._spec.top_k:
            self.spec_edited.emit(edited(self._spec, top_k=k))
