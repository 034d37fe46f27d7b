"""What the program does, how large and how long; and the exact numbers under the cross-hair."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from attnviz.figure import marks
from attnviz.frames import Outline, said_bytes
from attnviz.session import Picture, Snapshot
from attnviz.spec import QUERY_KEY_STAGES
from attnviz.views import theme


class StatusLine(QWidget):
    """Progress and Cancel appear when computing takes longer than a blink."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dot, self._left, self._said, self._right = QLabel("●"), QLabel(), QLabel(), QLabel()
        for label in (self._left, self._said, self._right):
            label.setTextFormat(Qt.TextFormat.PlainText)  # a token may look like markup
            label.setMinimumWidth(1)  # long words are cut; they must not widen the window
        self._dot_colour = ""
        self._progress = QProgressBar()
        self._progress.setFixedWidth(120)
        self._progress.setTextVisible(False)
        self._cancel = QPushButton(self.tr("Cancel"))
        self._cancel.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 2, 16, 2)
        # where the line is short, what stands on the left gives way to the numbers under the pointer
        self._left.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row.addWidget(self._dot)
        row.addWidget(self._left, 1)
        for widget in (self._progress, self._cancel, self._said, self._right):
            row.addWidget(widget)
        self._show_slow(False)
        self._slow = QTimer(self, singleShot=True, interval=150)
        self._slow.timeout.connect(lambda: self._show_slow(True))
        self.setFixedHeight(34)

    def say(self, words: str) -> None:
        """A short report beside the state, such as where a file was written."""
        self._said.setText(words)

    def present(self, snapshot: Snapshot) -> None:
        c = theme.current()
        if snapshot.running:
            if not self._slow.isActive() and self._progress.isHidden():
                self._slow.start()
        else:
            self._slow.stop()
            self._show_slow(False)
        done, total = (snapshot.progress.done, snapshot.progress.total) if snapshot.progress else (0, 1)
        self._progress.setRange(0, max(total, 1))
        self._progress.setValue(done)
        colour = c.accent if snapshot.running else c.leak if _failed(snapshot) else c.good
        if colour != self._dot_colour:
            self._dot_colour = colour
            self._dot.setStyleSheet(f"color: {colour};")
        self._left.setText(self._state(snapshot))
        self._right.setText(self._under_cross_hair(snapshot))

    def _show_slow(self, shown: bool) -> None:
        self._progress.setVisible(shown)
        self._cancel.setVisible(shown)

    def _state(self, snapshot: Snapshot) -> str:
        picture = snapshot.shown
        if picture is None or picture.outline is None:
            return self.tr("failed") if _failed(snapshot) else self.tr("loading torch …")
        spec, outline = picture.spec, picture.outline
        heads = self.tr("1 head") if spec.num_heads == 1 else self.tr("{n} heads").format(n=spec.num_heads)
        tokens = self.tr("1 token") if outline.n_keys == 1 else self.tr("{n} tokens").format(n=f"{outline.n_keys:,}")
        parts = [self._activity(snapshot, picture)]
        progress = snapshot.progress
        if progress is not None and progress.background:
            share = 100 * progress.done // max(progress.total, 1)
            parts.append(self.tr("overview {percent} %").format(percent=share))
        parts.append(f"{heads} × {tokens}")
        if picture.finished is not None:
            parts.append(_milliseconds(picture.finished.seconds))
        parts.append(f"{spec.device} {spec.dtype}")
        if picture.finished is not None:
            held, budget = picture.finished.held_bytes, picture.finished.budget_bytes
            parts.append(self.tr("{held} of {budget}").format(held=said_bytes(held), budget=said_bytes(budget)))
        if spec.drops:
            parts.append(self.tr("dropout: {generator} generator").format(generator=spec.dropout_generator))
        frame = picture.heads[0] if picture.heads else None
        if frame is not None and frame.level > 1:
            parts.append(marks.pixel_words(frame.level, frame.pooling))
        return " · ".join(parts)

    def _activity(self, snapshot: Snapshot, picture: Picture) -> str:
        if snapshot.show_before and picture is snapshot.before:
            return self.tr("the state before")
        if snapshot.running:
            progress = snapshot.progress
            if progress is not None and progress.preview:
                return self.tr("preview {k}/{n}").format(k=progress.preview, n=progress.previews)
            return self.tr("computing")
        if _failed(snapshot):
            return self.tr("the last good picture") if picture.complete else self.tr("failed")
        return self.tr("stopped") if snapshot.stale or not picture.complete else self.tr("exact")

    def _names(self, outline: Outline, row: int, col: int) -> list[str]:
        """The row's and the column's name in words."""
        square = outline.stage in QUERY_KEY_STAGES
        asks = self.tr("query {token}") if square else self.tr("token {token}")
        names = [asks.format(token=_short(outline.tokens[row + outline.n_keys - outline.n_queries]))]
        if square:
            names.append(self.tr("key {token}").format(token=_short(outline.tokens[col])))
        elif outline.stage != "row_sums":
            names.append(_short(outline.dims[col]) if outline.dims else self.tr("dimension {n}").format(n=col))
        return names

    def _under_cross_hair(self, snapshot: Snapshot) -> str:
        """The exact numbers; nothing while the picture in sight is not the one they belong to."""
        probe, picture = snapshot.probe, snapshot.shown
        if probe is None or picture is None or picture.outline is None or snapshot.cell is None:
            return ""
        if probe.generation != picture.generation:
            return ""
        names = self._names(picture.outline, probe.row, probe.col)
        texts = [marks.exact_value(v, k) for v, k in zip(probe.values, probe.classes, strict=True)]
        if len(texts) == 1:
            return " · ".join([*names, texts[0]])
        shown = [f"{self.tr('head {n}').format(n=head)} {text}" for head, text in enumerate(texts[:6])]
        if len(texts) > 6:
            head = picture.view.head or 0
            shown = [f"{self.tr('head {n}').format(n=head)} {texts[head]}"]
        return " · ".join([*names, *shown])


def _failed(snapshot: Snapshot) -> bool:
    """Whether the picture asked for did not come; a failed export, say, leaves it whole."""
    whole = snapshot.picture is not None and snapshot.picture.complete and not snapshot.stale
    return snapshot.failure is not None and not snapshot.running and not whole


def _short(token: str) -> str:
    return token if len(token) <= 24 else token[:23] + "…"


def _milliseconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
