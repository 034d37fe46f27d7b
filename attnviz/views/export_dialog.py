"""What is exported, how it looks, and into which file, with the picture itself beside the choices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QRect, QSettings, QSize, QStandardPaths, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from attnviz.figures import NUMBERS, PICTURES, Animates, Figure, whole
from attnviz.spec import THEMES, Paper, SpecError, Theme, View
from attnviz.views.paper_size import PaperSize
from attnviz.views.part_choice import PartChoice
from attnviz.views.segments import Segments

_SQUARE: Final = 8
_STILL_FOR: Final = 180  # milliseconds without a change after which the preview is drawn again


class ExportDialog(QDialog):
    """Choices for one export, beginning with ``figures``: what can be shown, each with its words.

    ``preview_asked(figure)`` wants the figure drawn, which comes by `show_preview`, or `show_problem` with a sentence;
    ``export_asked(path, figure)`` wants it written. Everything but the title is remembered for the next time. ``part``
    is the part of the map that is on the screen, None where that is all of it.
    """

    preview_asked = Signal(object)
    export_asked = Signal(object, object)

    def __init__(
        self, settings: QSettings, figures: list[tuple[str, Figure]], parent: QWidget | None = None, *,
        part: View | None = None, dark: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._settings, self._figures, self._part = settings, figures, part
        self.setWindowTitle(self.tr("Export picture"))
        self.what = QComboBox()
        self.what.addItems([words for words, _ in figures])
        self.what.setAccessibleName(self.tr("what is exported"))
        self.path_edit = QLineEdit(str(_usual_path(settings)))
        self.path_edit.setMinimumWidth(260)
        self.path_edit.setAccessibleName(self.tr("file"))
        self.paper_size = PaperSize(settings)
        self.theme = Segments(
            [
                ("light", self.tr("light")), ("dark", self.tr("dark")), ("transparent", self.tr("transparent")),
                ("print", self.tr("print")),
            ]
        )  # fmt: skip
        self.theme.buttons["transparent"].setToolTip(
            self.tr("Dark ink without a ground, for light slides and pages; for dark slides take dark")
        )
        remembered = str(settings.value("export/theme", "dark" if dark else "light", type=str))
        self.theme.set_value(remembered if remembered in self.theme.buttons else "light")
        self.cells = Segments([("screen", self.tr("what is on the screen")), ("whole", self.tr("the whole map"))])
        self.cells.set_value("screen" if part is not None else "whole")
        self.parts = PartChoice()
        self.moves = QComboBox()
        self.moves.setAccessibleName(self.tr("what moves"))
        self.title = QLineEdit()
        self.title.setPlaceholderText(self.tr("what it shows"))
        self.title.setAccessibleName(self.tr("title"))
        self._checks = {
            "heading": QCheckBox(self.tr("title")), "caption": QCheckBox(self.tr("settings")),
            "labels": QCheckBox(self.tr("labels")), "numbers": QCheckBox(self.tr("numbers")),
            "colour_bar": QCheckBox(self.tr("colour bar")), "legend": QCheckBox(self.tr("legend")),
        }  # fmt: skip
        for name, box in self._checks.items():
            box.setChecked(bool(settings.value(f"export/{name}", True, type=bool)))
        if figures and not figures[0][1].paper.numbers:
            self._checks["numbers"].setChecked(False)  # they are hidden in the window
        self.file_words = QLabel()
        self.preview = _Preview()
        self.problem = QLabel()
        self.problem.setWordWrap(True)
        self.problem.setProperty("role", "problem")
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        self._buttons.accepted.connect(self._on_accepted)
        self._buttons.rejected.connect(self.reject)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_STILL_FOR)
        self._timer.timeout.connect(self._ask_preview)
        self._lay_out()
        self._listen()
        self._on_changed()

    def _lay_out(self) -> None:
        browse = QPushButton(self.tr("Choose…"))
        browse.clicked.connect(self._on_browse)
        file_row = QHBoxLayout()
        file_row.addWidget(self.path_edit, 1)
        file_row.addWidget(browse)
        self._shown = shown = QGridLayout()
        for n, box in enumerate(self._checks.values()):
            shown.addWidget(box, n // 3, n % 3)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow(self.tr("Picture of"), self.what)
        form.addRow(self.tr("Cells"), self.cells)
        form.addRow(self.tr("Parts"), self.parts)
        form.addRow(self.tr("Size"), self.paper_size)
        form.addRow(self.tr("Colours"), self.theme)
        form.addRow(self.tr("Show"), shown)
        form.addRow(self.tr("Title"), self.title)
        form.addRow(self.tr("File"), file_row)
        form.addRow(self.tr("Moves"), self.moves)
        self._form = form
        form.addRow("", self.file_words)
        choices = QVBoxLayout()
        choices.addLayout(form)
        choices.addStretch(1)
        choices.addWidget(self.problem)
        choices.addWidget(self._buttons)
        row = QHBoxLayout(self)
        row.setSpacing(18)
        row.addLayout(choices)
        row.addWidget(self.preview, 1)
        self.resize(1080, 520)

    def _listen(self) -> None:
        for signal in (
            self.what.currentIndexChanged, self.paper_size.changed, self.theme.chosen, self.cells.chosen,
            self.parts.changed, self.title.textChanged, self.path_edit.textChanged,
            *(box.toggled for box in self._checks.values()),
        ):  # fmt: skip
            signal.connect(self._on_changed)

    # --------------------------------------------------------------------------------------------------------- figure

    def figure(self) -> Figure:
        """What is chosen. Raises `SpecError` for a size that cannot be, and for no part at all."""
        figure = self._chosen()
        if self._part is not None and self.cells.buttons["whole"].isChecked():
            figure = whole(figure)
        if self._is_numbers():
            return msgspec.structs.replace(figure, parts=self.parts.value())
        width, height, dpi = self.paper_size.value()
        shown = {name: box.isChecked() for name, box in self._checks.items()}
        heading = shown.pop("heading")
        paper = Paper(
            width=width, height=height, dpi=dpi, theme=self._theme(), decimals=figure.paper.decimals,
            title=(self.title.text().strip() or None) if heading else "", **shown,
        )  # fmt: skip
        animates: Animates = self.moves.currentData() or "nothing"
        return msgspec.structs.replace(figure, paper=paper, parts=self.parts.value(), animates=animates)

    def _chosen(self) -> Figure:
        return self._figures[max(self.what.currentIndex(), 0)][1]

    def _is_numbers(self) -> bool:
        """Whether the file that is named takes numbers, not a picture."""
        return self.path is not None and self.path.suffix.lower() in NUMBERS

    def _theme(self) -> Theme:
        return next(theme for theme in THEMES if self.theme.buttons[theme].isChecked())

    @property
    def path(self) -> Path | None:
        """The file that is named, with .png where its ending is no picture's and no table's; None for none."""
        text = self._typed_path()
        if not text or self._names_folder():
            return None
        path = Path(text)
        return path if path.suffix.lower() in (*PICTURES, *NUMBERS) else path.with_name(path.name + ".png")

    def _typed_path(self) -> str:
        """What stands in the field; a ~ of nobody's stays, as in a shell, where `Path.expanduser` raises."""
        return os.path.expanduser(self.path_edit.text().strip())  # noqa: PTH111

    def _names_folder(self) -> bool:
        text = self._typed_path()
        ends = text.endswith((os.sep, os.altsep or os.sep)) or not Path(text).name
        return bool(text) and (ends or os.path.isdir(text))  # noqa: PTH112 (Path's raises for a name that is too long)

    # -------------------------------------------------------------------------------------------------------- preview

    def show_preview(self, image: QImage, remark: str = "") -> None:
        """The figure that was asked for, drawn, and what is to be said of it."""
        self._say_problem("", remark[:1].upper() + remark[1:] + "." if remark else "")
        self.preview.show_image(image)

    def show_problem(self, sentence: str) -> None:
        """Why the figure cannot be drawn."""
        self._say_problem(sentence)
        self.preview.show_image(None)

    def _say_problem(self, problem: str, remark: str = "") -> None:
        """Why nothing can be saved, else a ``remark``."""
        self.problem.setText(problem or remark)
        save = self._buttons.button(QDialogButtonBox.StandardButton.Save)
        save.setEnabled(not problem)
        save.setToolTip(problem)

    @Slot()
    def _on_changed(self) -> None:
        self.title.setEnabled(self._checks["heading"].isChecked())
        view = self._chosen().view  # with the whole map on the screen, or of what has no such cells, there is no choice
        in_part = self._part is not None and (view.rows, view.cols) != (None, None)
        self._form.setRowVisible(self.cells, in_part)
        self._offer_parts()
        self._offer_moves()
        self._tell_file()
        numbers = self._is_numbers()
        for row in (self.paper_size, self.theme, self._shown, self.title):
            self._form.setRowVisible(row, not numbers)
        try:
            figure = self.figure()
        except SpecError as error:
            self._timer.stop()
            self.show_problem(str(error))
            return
        if numbers or not self._buttons.button(QDialogButtonBox.StandardButton.Save).isEnabled():
            self._say_problem("")
        if numbers:
            self._timer.stop()
            self.preview.say(self._numbers_words(figure))
            return
        self.preview.wait()
        self._timer.start()

    def _numbers_words(self, figure: Figure) -> str:
        """What a file of numbers will hold."""
        table = self.path is not None and self.path.suffix.lower() == ".csv"
        if figure.shows == "heads":
            return (
                self.tr("A table of the maps' numbers: a line for each query of each head, with every digit.")
                if table
                else self.tr("The arrays of every stage, with every digit, the tokens and the settings.")
            )
        if figure.shows == "row":
            return (
                self.tr("A table of the row: a line for each key, a column for each stage, with every digit.")
                if table
                else self.tr("The row's stages as arrays, with every digit, the tokens and the settings.")
            )
        return (
            self.tr("One table of what is chosen, with every digit.")
            if table
            else self.tr("Every table of what is chosen as arrays, with every digit, the tokens and the settings.")
        )

    def _offer_parts(self) -> None:
        self._form.setRowVisible(self.parts, self.parts.offer(self._chosen().shows))

    @Slot()
    def _offer_moves(self) -> None:
        """What can move in a GIF of what is chosen."""
        figure, path = self._chosen(), self.path
        offered: list[tuple[str, Animates]] = [(self.tr("nothing"), "nothing")]
        if path is not None and path.suffix.lower() == ".gif":
            if figure.shows == "heads":
                offered.append((self.tr("stage by stage"), "stages"))
                offered += [(self.tr("dropout, drawn again and again"), "re-rolls")] if figure.spec.drops else []
            elif figure.shows in ("rounds", "exam"):
                offered = [(self.tr("from step to step"), figure.shows), *offered]
        known = [self.moves.itemData(n) for n in range(self.moves.count())]
        if known != [value for _, value in offered]:
            self.moves.clear()
            for words, value in offered:
                self.moves.addItem(words, value)
        self._form.setRowVisible(self.moves, len(offered) > 1)

    @Slot()
    def _ask_preview(self) -> None:
        self.preview_asked.emit(self.figure())

    # ----------------------------------------------------------------------------------------------------------- file

    @Slot()
    def _on_browse(self) -> None:
        filters = ";;".join([self.tr("Pictures (*.png *.svg *.pdf *.gif)"), self.tr("Numbers (*.csv *.npz)")])
        path, _ = QFileDialog.getSaveFileName(self, self.tr("Export picture"), self.path_edit.text(), filters)
        if path:
            self.path_edit.setText(path)

    def _tell_file(self) -> None:
        """What endings there are, or why what is typed names no file."""
        folder = self._names_folder()
        words = (
            self.tr("That is a folder: give a file's name in it")
            if folder
            else self.tr("Its ending decides: .png .svg .pdf .gif · numbers: .csv .npz")
        )
        self.file_words.setText(words)
        self.file_words.setProperty("role", "problem" if folder else "muted")
        self.file_words.style().unpolish(self.file_words)
        self.file_words.style().polish(self.file_words)

    @Slot()
    def _on_accepted(self) -> None:
        path = self.path
        if path is None:
            self.path_edit.setFocus()
            return
        try:
            figure = self.figure()
        except SpecError as error:
            self.show_problem(str(error))
            return
        self._settings.setValue("export/path", str(path))
        self._settings.setValue("export/theme", self._theme())
        for name, box in self._checks.items():
            self._settings.setValue(f"export/{name}", box.isChecked())
        self.paper_size.remember()
        self.accept()
        self.export_asked.emit(path, figure)


def _usual_path(settings: QSettings) -> Path:
    """The last file, else one among the pictures, else at home: in a folder that is there."""
    last = str(settings.value("export/path", "", type=str))
    pictures = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.PicturesLocation)
    folders = [*([Path(last).parent] if last else []), *([Path(pictures)] if pictures else [])]
    there = (folder for folder in folders if os.path.isdir(folder))  # noqa: PTH112 (Path's raises for what it may not see)
    return next(there, Path.home()) / (Path(last).name or "attention.png")


class _Preview(QWidget):
    """An image as large as there is room for, on a ground that shows where it is transparent."""

    def __init__(self) -> None:
        super().__init__()
        self.image: QImage | None = None
        self.words = ""
        self.waiting = False
        self.setMinimumSize(320, 200)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("preview"))

    def sizeHint(self) -> QSize:
        return QSize(560, 420)

    def show_image(self, image: QImage | None) -> None:
        self.image, self.words, self.waiting = image, "", False
        self.update()

    def say(self, words: str) -> None:
        """Words in place of an image."""
        self.image, self.words, self.waiting = None, words, False
        self.update()

    def wait(self) -> None:
        """What is shown is no longer what is chosen: it pales until the next one comes."""
        self.words, self.waiting = "", True
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.words:
            painter = QPainter(self)
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            painter.drawText(self.rect().adjusted(24, 24, -24, -24), flags, self.words)
            painter.end()
        if self.image is None:
            return
        ratio = self.devicePixelRatioF()
        size = self.image.size().scaled(self.size() * ratio, Qt.AspectRatioMode.KeepAspectRatio)
        if size.width() > self.image.width():
            size = self.image.size()
        scaled = self.image.scaled(
            size, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
        scaled.setDevicePixelRatio(ratio)
        x, y = (self.width() - size.width() / ratio) / 2, (self.height() - size.height() / ratio) / 2
        place = QRect(int(x), int(y), int(size.width() / ratio), int(size.height() / ratio))
        painter = QPainter(self)
        if self.image.hasAlphaChannel():
            painter.fillRect(place, Qt.GlobalColor.white)
            painter.fillRect(place, QBrush(_checkered()))
        painter.setOpacity(0.25 if self.waiting else 1.0)
        painter.drawImage(int(x), int(y), scaled)
        painter.setOpacity(1.0)
        painter.setPen(self.palette().mid().color())
        painter.drawRect(place.adjusted(-1, -1, 0, 0))
        if self.waiting:
            painter.setPen(self.palette().text().color())
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.tr("drawing …"))
        painter.end()


def _checkered() -> QPixmap:
    """Squares of two light greys, which say that nothing is there."""
    tile = QPixmap(2 * _SQUARE, 2 * _SQUARE)
    tile.fill(QColor("#ffffff"))
    painter = QPainter(tile)
    for x, y in (0, 0), (_SQUARE, _SQUARE):
        painter.fillRect(x, y, _SQUARE, _SQUARE, QColor("#e9eaee"))
    painter.end()
    return tile
