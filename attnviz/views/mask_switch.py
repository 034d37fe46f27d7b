"""The large masked | unmasked switch."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from attnviz.session import Snapshot
from attnviz.spec import AttentionSpec, MaskMode, edited, fixed_by
from attnviz.views.segments import Segments


class MaskSwitch(QWidget):
    """Masked is the mask mode last used. Emits a whole spec."""

    spec_edited = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec: AttentionSpec | None = None
        self._last: MaskMode = "neg-inf"
        self._segments = Segments([("masked", self.tr("masked")), ("unmasked", self.tr("unmasked"))], large=True)
        self._segments.chosen.connect(self._on_chosen)
        self._segments.setAccessibleName(self.tr("mask"))
        key = QLabel("M")
        key.setProperty("role", "muted")
        key.setToolTip(self.tr("press M while the map has the focus"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._segments)
        row.addWidget(key)

    def set_low(self, low: bool) -> None:
        """Whether the window is low, and the switch with it."""
        for button in self._segments.buttons.values():
            button.setMinimumHeight(28 if low else 36)
            button.setMaximumHeight(28 if low else 36)

    def present(self, snapshot: Snapshot) -> None:
        """Show what was asked for; the state before, greyed, while that is held."""
        spec = self._spec = snapshot.spec
        if spec.mask != "none":
            self._last = spec.mask
        held = snapshot.shown if snapshot.show_before and snapshot.before is not None else None
        mask = spec.mask if held is None else held.spec.mask
        self._segments.set_value("unmasked" if mask == "none" else "masked")
        fixed = fixed_by(spec.source).get("mask")
        self._segments.setEnabled(fixed is None and held is None)
        self._segments.setToolTip(fixed.reason if fixed else self.tr("Hide the future, or let every word see it (M)"))

    @Slot(str)
    def _on_chosen(self, value: str) -> None:
        if self._spec is not None:
            self.spec_edited.emit(edited(self._spec, mask=self._last if value == "masked" else "none"))
