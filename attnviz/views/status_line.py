"""What the program does, how large and how long; and the exact numbers under the cross-hair."""

from __future__ import annotations

import html
import math

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from attnviz.figure import marks
from attnviz.figure.fonts import draw_text, elided, text_width
from attnviz.frames import CellClass, Outline, said_bytes
from attnviz.session import Picture, Snapshot
from attnviz.spec import QUERY_KEY_STAGES, AttentionSpec, lesson_draws
from attnviz.views import theme
from attnviz.views.token_names import token_name

_BEGINNING = 240  # pixels that no part of the line claims more of


class Parts(QWidget):
    """Words in parts, the most important first: those that have no room go whole, from the last on, with … instead.

    The tooltip holds all of them. One that ``yields`` begins at the left and keeps two parts, another keeps one.
    """

    def __init__(self, *, yields: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[str, ...] = ()
        self._align = Qt.AlignmentFlag.AlignLeft if yields else Qt.AlignmentFlag.AlignRight
        self._kept = 2 if yields else 1
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def set_parts(self, parts: tuple[str, ...]) -> None:
        if parts != self._parts:
            self._parts = parts
            self.setToolTip(f"<span>{html.escape(self.text())}</span>" if parts else "")
            self.updateGeometry()
            self.update()

    def text(self) -> str:
        """All parts, whether they have room or not."""
        return " · ".join(self._parts)

    def shown(self) -> str:
        """What of them is in sight."""
        font, room = self.font(), self.width()
        if text_width(font, self.text()) <= room + 0.5:
            return self.text()
        for count in range(len(self._parts) - 1, 0, -1):
            words = " · ".join((*self._parts[:count], "…"))
            if text_width(font, words) <= room + 0.5:
                return words
        return elided(font, self._parts[0], room)

    def sizeHint(self) -> QSize:
        return QSize(math.ceil(text_width(self.font(), self.text())), 22)

    def minimumSizeHint(self) -> QSize:
        """Room for a beginning: long words must not widen the window."""
        first = " · ".join((*self._parts[: self._kept], "…"))
        return QSize(min(math.ceil(text_width(self.font(), first)), _BEGINNING) if self._parts else 0, 22)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self._parts:
            return
        painter = QPainter(self)
        painter.setPen(self.palette().windowText().color())
        painter.setFont(self.font())
        draw_text(painter, QRectF(self.rect()), self._align, self.shown())
        painter.end()


class StatusLine(QWidget):
    """Progress and Cancel appear when computing takes longer than a blink, Stop while a file is written."""

    cancelled = Signal()
    stop_asked = Signal()
    """What is being written is to be stopped."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dot, self._said = QLabel("●"), Parts(yields=False)
        # where the line is short, what stands on the left gives way to the numbers under the pointer
        self._left, self._right = Parts(yields=True), Parts(yields=False)
        self._dot_role = ""
        self.shows_cost = True
        """Whether time and memory are said, which are others each time."""
        self._progress = QProgressBar()
        self._progress.setFixedWidth(120)
        self._progress.setTextVisible(False)
        self._cancel = QPushButton(self.tr("Cancel"))
        self._cancel.setToolTip(self.tr("stop computing; what has come stays (Ctrl+.)"))
        self._cancel.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._cancel.clicked.connect(self.cancelled)
        self._writing: tuple[str, ...] = ()
        self._report = ""
        self.stop = QPushButton(self.tr("Stop"))
        self.stop.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.stop.clicked.connect(self.stop_asked)
        self.stop.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 2, 16, 2)
        row.addWidget(self._dot)
        row.addWidget(self._left, 1)
        for widget in (self._progress, self._cancel, self._said, self.stop, self._right):
            row.addWidget(widget)
        self._show_slow(False)
        self._slow = QTimer(self, singleShot=True, interval=150)
        self._slow.timeout.connect(lambda: self._show_slow(True))
        self.setFixedHeight(34)

    def say(self, words: str) -> None:
        """A short report beside the state, such as where a file was written."""
        self._report = words
        self._show_said()

    def show_writing(self, *parts: str, stops: str = "") -> None:
        """What is being written and how far it is, before any report; without parts nothing is.

        ``stops`` is the name of the file that Stop would stop, "" where it has been asked already.
        """
        self._writing = parts
        self.stop.setVisible(bool(parts))
        self.stop.setEnabled(bool(stops))
        self.stop.setToolTip(self.tr("stop writing {name}; what had that name stays as it was").format(name=stops))
        self._show_said()

    def _show_said(self) -> None:
        self._said.set_parts((*self._writing, *([self._report] if self._report else [])))

    def present(self, snapshot: Snapshot) -> None:
        if snapshot.running:
            if not self._slow.isActive() and self._progress.isHidden():
                self._slow.start()
        else:
            self._slow.stop()
            self._show_slow(False)
        done, total = (snapshot.progress.done, snapshot.progress.total) if snapshot.progress else (0, 1)
        self._progress.setRange(0, max(total, 1))
        self._progress.setValue(done)
        role = "accent" if snapshot.running else "leak" if _failed(snapshot) else "good"
        if role != self._dot_role:
            self._dot_role = role
            self._colour_dot()
        self._left.set_parts(self._state(snapshot))
        self._right.set_parts(self._under_cross_hair(snapshot))

    def _colour_dot(self) -> None:
        self._dot.setStyleSheet(f"color: {getattr(theme.current(), self._dot_role)};")

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange and self._dot_role:
            self._colour_dot()
        super().changeEvent(event)

    def _show_slow(self, shown: bool) -> None:
        self._progress.setVisible(shown)
        self._cancel.setVisible(shown)

    def _state(self, snapshot: Snapshot) -> tuple[str, ...]:
        """What stands on the screen, the most important first."""
        picture = snapshot.shown
        if picture is None or picture.outline is None:
            return (self.tr("failed") if _failed(snapshot) else self.tr("loading torch …"),)
        spec, outline = picture.spec, picture.outline
        heads = self.tr("1 head") if spec.num_heads == 1 else self.tr("{n} heads").format(n=spec.num_heads)
        tokens = self.tr("1 token") if outline.n_keys == 1 else self.tr("{n} tokens").format(n=f"{outline.n_keys:,}")
        parts = [self._activity(snapshot, picture)]
        progress = snapshot.progress
        if progress is not None and progress.background:
            share = 100 * progress.done // max(progress.total, 1)
            parts.append(self.tr("overview {percent} %").format(percent=share))
        parts.append(f"{heads} × {tokens}")
        if snapshot.pinned is not None:
            parts.append(self.tr("A is pinned: Space, held, shows it"))
        frame = picture.heads[0] if picture.heads else None
        if frame is not None and frame.level > 1:
            parts.append(marks.pixel_words(frame.level, frame.pooling, signed=frame.scale.diverging))
        parts.append(f"{spec.device} {spec.dtype}")
        if spec.drops:
            parts.append(self._drawn_by(spec))
        if picture.finished is not None and self.shows_cost:
            parts.append(_milliseconds(picture.finished.seconds))
            held, budget = picture.finished.held_bytes, picture.finished.budget_bytes
            words = self.tr("memory {held} of {budget}")
            parts.append(words.format(held=said_bytes(held), budget=said_bytes(budget)))
        return tuple(parts)

    def _drawn_by(self, spec: AttentionSpec) -> str:
        """Which generator says what dropout drops."""
        if lesson_draws(spec):
            return self.tr("dropout: the lesson's own draw")
        words = self.tr("dropout drawn by {generator}, seed {seed}")
        return words.format(generator=spec.dropout_generator, seed=spec.dropout_seed)

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
        names = [asks.format(token=token_name(outline.tokens, row + outline.n_keys - outline.n_queries))]
        if square:
            names.append(self.tr("key {token}").format(token=token_name(outline.tokens, col)))
        elif outline.stage != "row_sums":
            names.append(token_name(outline.dims, col) if outline.dims else self.tr("dimension {n}").format(n=col))
        return names

    def _under_cross_hair(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The exact numbers unless N hides them; nothing while another picture than theirs is in sight."""
        probe, picture = snapshot.probe, snapshot.shown
        if probe is None or picture is None or picture.outline is None or snapshot.cell is None:
            return ()
        if probe.generation != picture.generation:
            return ()
        names = self._names(picture.outline, probe.row, probe.col)
        texts = [marks.exact_value(v, k) for v, k in zip(probe.values, probe.classes, strict=True)]
        if not snapshot.show_numbers and CellClass.ORDINARY in probe.classes:
            return tuple(names)
        if len(texts) == 1:
            return *names, texts[0]
        shown = [f"{self.tr('head {n}').format(n=head)} {text}" for head, text in enumerate(texts[:6])]
        if len(texts) > 6:
            head = picture.view.head or 0
            shown = [f"{self.tr('head {n}').format(n=head)} {texts[head]}"]
        return *names, *shown


def _failed(snapshot: Snapshot) -> bool:
    """Whether the picture asked for did not come; a failed export, say, leaves it whole."""
    whole = snapshot.picture is not None and snapshot.picture.complete and not snapshot.stale
    return snapshot.failure is not None and not snapshot.running and not whole


def _milliseconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
