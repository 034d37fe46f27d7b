"""Which parts of a study's figure stand on the sheet."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QWidget

from attnviz.figures import PARTS, Shows
from attnviz.spec import SpecError

_COLUMNS: Final = 3
_WORDS: Final = MappingProxyType(
    {
        "maps": QT_TRANSLATE_NOOP("PartChoice", "maps"),
        "map": QT_TRANSLATE_NOOP("PartChoice", "map"),
        "apart": QT_TRANSLATE_NOOP("PartChoice", "how far apart"),
        "sides": QT_TRANSLATE_NOOP("PartChoice", "numbers"),
        "heads": QT_TRANSLATE_NOOP("PartChoice", "each head"),
        "limits": QT_TRANSLATE_NOOP("PartChoice", "fill depth"),
        "hidden-row": QT_TRANSLATE_NOOP("PartChoice", "hidden row"),
        "sums": QT_TRANSLATE_NOOP("PartChoice", "sums of the row"),
        "errors": QT_TRANSLATE_NOOP("PartChoice", "error of the mean"),
        "vanished": QT_TRANSLATE_NOOP("PartChoice", "rows dropped whole"),
        "forms": QT_TRANSLATE_NOOP("PartChoice", "both forms"),
        "ladder": QT_TRANSLATE_NOOP("PartChoice", "why they differ"),
        "product": QT_TRANSLATE_NOOP("PartChoice", "the product"),
        "row": QT_TRANSLATE_NOOP("PartChoice", "the row"),
        "costs": QT_TRANSLATE_NOOP("PartChoice", "what it costs"),
        "losses": QT_TRANSLATE_NOOP("PartChoice", "losses"),
        "table": QT_TRANSLATE_NOOP("PartChoice", "numbers"),
        "curve": QT_TRANSLATE_NOOP("PartChoice", "the curve"),
        "same": QT_TRANSLATE_NOOP("PartChoice", "differences"),
        "times": QT_TRANSLATE_NOOP("PartChoice", "times"),
        "verdicts": QT_TRANSLATE_NOOP("PartChoice", "verdicts"),
    }
)


class PartChoice(QWidget):
    """A box for each part of what is shown; what was chosen of one figure is kept while another is."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.boxes: dict[str, QCheckBox] = {}
        self._left_out: dict[Shows, set[str]] = {}
        self._shows: Shows | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)

    def offer(self, shows: Shows) -> bool:
        """Show the parts of such a figure; whether there is a choice."""
        parts = PARTS.get(shows, ())
        if shows != self._shows:
            for box in self.boxes.values():
                self._grid.removeWidget(box)
                box.deleteLater()
            self._shows, self.boxes = shows, {}
            for n, part in enumerate(parts):
                box = QCheckBox(QCoreApplication.translate("PartChoice", str(_WORDS[part])))
                box.setChecked(part not in self._left_out.get(shows, ()))
                box.toggled.connect(self._on_toggled)
                self._grid.addWidget(box, n // _COLUMNS, n % _COLUMNS)
                self.boxes[part] = box
        return len(parts) > 1

    def _on_toggled(self) -> None:
        if self._shows is not None:
            self._left_out[self._shows] = {part for part, box in self.boxes.items() if not box.isChecked()}
        self.changed.emit()

    def value(self) -> tuple[str, ...]:
        """What `Figure.parts` is to be: () for all of them. Raises `SpecError` for none."""
        chosen = tuple(part for part, box in self.boxes.items() if box.isChecked())
        if self.boxes and not chosen:
            raise SpecError("parts", self.tr("No part is chosen: tick one of them."))
        return () if len(chosen) == len(self.boxes) else chosen
