"""The export dialog: what it offers, the paper it makes, its preview, and what it remembers."""

from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, QStandardPaths
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QDialogButtonBox

from attnviz.figures import PARTS, SHOWS, Figure
from attnviz.spec import Paper, RandomQK, View, make_spec
from attnviz.views.export_dialog import ExportDialog
from attnviz.views.part_choice import PartChoice

SPEC = make_spec(RandomQK(length=100), num_heads=2)
PART = View(rows=(10, 20), cols=(0, 30))
FIGURES = [("the maps", Figure(spec=SPEC, view=PART)), ("the row", Figure(spec=SPEC, shows="row", row=3))]


@pytest.fixture
def dialog_of(qtbot, tmp_path):
    def make(**options):
        settings = QSettings(str(tmp_path / "a.ini"), QSettings.Format.IniFormat)
        dialog = ExportDialog(settings, FIGURES, **options)
        qtbot.addWidget(dialog)
        return dialog

    return make


def choose_file(dialog, path):
    dialog.path_edit.setText(str(path))


def test_what_is_chosen_is_what_is_asked(dialog_of, qtbot, tmp_path):
    dialog = dialog_of(part=PART)
    dialog.what.setCurrentIndex(1)
    dialog.paper_size.set_value(800, 600)
    dialog.theme.buttons["dark"].click()
    dialog.title.setText("  One row ")
    dialog._checks["legend"].setChecked(False)
    choose_file(dialog, tmp_path / "maps.svg")
    with qtbot.waitSignal(dialog.export_asked) as asked:
        dialog._on_accepted()
    path, figure = asked.args
    assert path == tmp_path / "maps.svg"
    assert (figure.shows, figure.row, figure.view) == ("row", 3, View())
    assert figure.paper == Paper(width=800, height=600, theme="dark", title="One row", legend=False)


def test_the_whole_map_is_offered_where_a_part_is_on_the_screen(dialog_of):
    dialog = dialog_of(part=PART)
    assert dialog.figure().view == PART
    dialog.cells.buttons["whole"].click()
    assert (dialog.figure().view.rows, dialog.figure().view.cols) == (None, None)
    assert not dialog.cells.isHidden()
    dialog.what.setCurrentIndex(1)  # a row is no map
    assert dialog.cells.isHidden()
    assert dialog_of().cells.isHidden()


def test_numbers_keep_their_ending_and_other_names_become_pictures(dialog_of, tmp_path):
    dialog = dialog_of()
    for name, kept in ("a.csv", "a.csv"), ("a.NPZ", "a.NPZ"), ("a.txt", "a.txt.png"):
        choose_file(dialog, tmp_path / name)
        assert dialog.path == tmp_path / kept


def test_the_first_file_is_in_a_folder_that_is_there(qtbot, tmp_path, monkeypatch):
    def path():
        settings = QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat)
        dialog = ExportDialog(settings, [("the maps", Figure(spec=make_spec()))])
        qtbot.addWidget(dialog)
        return dialog.path, settings

    monkeypatch.setenv("HOME", str(tmp_path))
    pictures = tmp_path / "Pictures"
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda _kind: str(pictures))
    assert path()[0] == tmp_path / "attention.png"
    pictures.mkdir()
    found, settings = path()
    assert found == pictures / "attention.png"
    settings.setValue("export/path", str(tmp_path / "gone" / "mine.svg"))
    assert path()[0] == pictures / "mine.svg"
    (tmp_path / "gone").mkdir()
    assert path()[0] == tmp_path / "gone" / "mine.svg"
    settings.setValue("export/path", "here.svg")
    assert path()[0] == Path("here.svg")


def test_no_title_is_no_title(dialog_of):
    dialog = dialog_of()
    assert dialog.figure().paper.title is None
    dialog._checks["heading"].setChecked(False)
    assert dialog.figure().paper.title == ""
    assert not dialog.title.isEnabled()


def test_centimetres_are_pixels_at_so_many_dots_an_inch(dialog_of):
    dialog = dialog_of()
    size = dialog.paper_size
    size.preset.setCurrentIndex(size.preset.findText("8.5 × 6 cm"))
    size._on_preset()
    paper = dialog.figure().paper
    assert (paper.width, paper.height, paper.dpi) == (1004, 709, 300)
    size.dpi.setValue(600)
    assert dialog.figure().paper.size == (2008, 1417)
    size.across.setValue(9.0)
    assert size.preset.currentText() == "other centimetres"
    size.preset.setCurrentIndex(1)
    size._on_preset()
    assert dialog.figure().paper == Paper(width=1920, height=1080)


def test_a_choice_is_remembered_and_the_title_is_not(dialog_of, qtbot, tmp_path):
    dialog = dialog_of()
    dialog.paper_size.set_value(17, 9, "cm")
    dialog.theme.buttons["print"].click()
    dialog.title.setText("Once")
    dialog._checks["numbers"].setChecked(False)
    choose_file(dialog, tmp_path / "here.pdf")
    dialog._on_accepted()
    again = dialog_of()
    assert again.path == tmp_path / "here.pdf"
    assert again.figure().paper == dialog.figure().paper.__class__(
        width=2008, height=1063, dpi=300, theme="print", numbers=False
    )


def test_a_name_without_a_pictures_ending_is_a_png(dialog_of, tmp_path):
    dialog = dialog_of()
    for name, wanted in ("maps", "maps.png"), ("v1.2", "v1.2.png"), ("a.SVG", "a.SVG"), ("a.gif", "a.gif"):
        choose_file(dialog, tmp_path / name)
        assert dialog.path == tmp_path / wanted
    dialog.path_edit.setText("  ")
    assert dialog.path is None
    dialog._on_accepted()
    assert dialog.result() == 0


@pytest.mark.parametrize("typed", ["/", ".", "..", "~", "{}", "{}/", "{}/none/", "{}/there.png"])
def test_a_folder_is_no_file(dialog_of, tmp_path, typed):
    (tmp_path / "there.png").mkdir()
    dialog = dialog_of()
    usual = dialog.file_words.text()
    choose_file(dialog, typed.format(tmp_path))
    assert dialog.path is None
    assert dialog.file_words.text().startswith("That is a folder: give a file's name in it")
    dialog._on_accepted()
    assert dialog.result() == 0
    choose_file(dialog, tmp_path / "a.png")
    assert dialog.file_words.text() == usual


def test_a_name_that_begins_with_a_tilde_is_a_name_where_there_is_no_such_user(dialog_of, tmp_path):
    dialog = dialog_of()
    for name, wanted in ("~nobody-at-all", "~nobody-at-all.png"), ("~/a.svg", Path.home() / "a.svg"):
        choose_file(dialog, name)
        assert dialog.path == Path(wanted)
    choose_file(dialog, tmp_path / ("x" * 300))  # which the system refuses, in a sentence
    assert dialog.path is not None


def test_the_preview_follows_what_is_chosen(dialog_of, qtbot):
    dialog = dialog_of()
    with qtbot.waitSignal(dialog.preview_asked) as asked:
        dialog.theme.buttons["dark"].click()
    assert asked.args[0].paper.theme == "dark"
    image = QImage(64, 36, QImage.Format.Format_ARGB32)
    image.fill(0)
    dialog.show_preview(image)
    assert dialog.preview.grab().toImage().size() == dialog.preview.size()
    dialog.show_problem("there is no such picture")
    assert dialog.preview.image is None
    assert dialog.problem.text() == "there is no such picture"
    dialog.show_preview(image)
    assert dialog.problem.text() == ""


def test_what_cannot_be_written_cannot_be_saved_and_the_reason_stands_there(dialog_of, qtbot):
    """Save stayed enabled beside the red message."""
    dialog = dialog_of()
    save = dialog._buttons.button(QDialogButtonBox.StandardButton.Save)
    dialog.paper_size.set_value(200, 200, "cm")
    dialog.paper_size.dpi.setValue(2400)
    assert not save.isEnabled()
    assert dialog.problem.text().startswith("size is 188976x188976")
    assert save.toolTip() == dialog.problem.text()
    dialog.paper_size.set_value(8.5, 6, "cm")
    assert save.isEnabled()
    dialog.show_problem("there are too many tokens")
    assert not save.isEnabled()
    dialog.title.setText("once more")
    assert save.isEnabled()
    assert dialog.problem.text() == ""


def test_of_numbers_the_dialog_says_what_will_be_written_and_asks_for_no_picture(dialog_of, qtbot, tmp_path):
    """Size, colours and a preview stood there as if a picture came, and a size that cannot be was refused."""
    dialog = dialog_of()
    dialog.paper_size.set_value(200, 200, "cm")
    dialog.paper_size.dpi.setValue(2400)
    choose_file(dialog, tmp_path / "a.csv")
    rows = [dialog.paper_size, dialog.theme, dialog.title, *dialog._checks.values()]
    assert all(row.isHidden() for row in rows)
    assert dialog.preview.words.startswith("A table of the maps' numbers")
    assert not dialog._timer.isActive()
    dialog.what.setCurrentIndex(1)
    assert dialog.preview.words.startswith("A table of the row")
    choose_file(dialog, tmp_path / "a.npz")
    assert "arrays" in dialog.preview.words
    assert not dialog.preview.grab().isNull()
    with qtbot.waitSignal(dialog.export_asked):
        dialog._on_accepted()
    dialog.paper_size.set_value(17, 9, "cm")
    choose_file(dialog, tmp_path / "a.png")
    assert not any(row.isHidden() for row in rows)
    assert dialog.preview.words == ""


# --------------------------------------------------------------------------------------------------------------- parts


def test_a_studys_parts_can_be_chosen(qtbot, tmp_path):
    figures = [*FIGURES, ("every mask", Figure(spec=SPEC, shows="gallery")), ("the exam", Figure(shows="exam"))]
    settings = QSettings(str(tmp_path / "a.ini"), QSettings.Format.IniFormat)
    dialog = ExportDialog(settings, figures)
    qtbot.addWidget(dialog)
    assert dialog.parts.isHidden()  # the maps are one picture
    dialog.what.setCurrentIndex(2)
    assert not dialog.parts.isHidden()
    assert dialog.figure().parts == ()
    dialog.parts.boxes["limits"].click()
    assert dialog.figure().parts == ("maps", "hidden-row")
    dialog.what.setCurrentIndex(3)
    assert dialog.figure().parts == ()
    dialog.what.setCurrentIndex(2)
    assert dialog.figure().parts == ("maps", "hidden-row")
    with qtbot.waitSignal(dialog.preview_asked):
        dialog.parts.boxes["maps"].click()
    dialog.parts.boxes["hidden-row"].click()
    qtbot.waitUntil(lambda: dialog.problem.text() == "No part is chosen: tick one of them.")


def test_each_part_of_each_study_has_words(qtbot):
    choice = PartChoice()
    qtbot.addWidget(choice)
    for shows in SHOWS:
        assert choice.offer(shows) == (len(PARTS.get(shows, ())) > 1)
        assert list(choice.boxes) == list(PARTS.get(shows, ()))
