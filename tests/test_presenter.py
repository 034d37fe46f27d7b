"""The presenter view: how large its type is, that the maps' keys work in it, and that everything goes back."""

from dataclasses import replace

import pytest
from made_pictures import picture_of, snapshot_of
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QMainWindow, QPushButton, QVBoxLayout, QWidget

from attnviz.figure import cells, sides
from attnviz.figure.fonts import load_fonts
from attnviz.session import Cell
from attnviz.views.heatmaps import Heatmaps
from attnviz.views.mask_switch import MaskSwitch
from attnviz.views.presenter import Presenter


class View(QLabel):
    """A view with a scale, which counts what it was shown."""

    def __init__(self):
        super().__init__()
        self.scale = 1.0
        self.shown = []
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def present(self, snapshot):
        self.shown.append(snapshot)


class Window(QMainWindow):
    """A window whose maps stand between two others in a box, with an action of theirs."""

    def __init__(self, n=3, heads=2):
        super().__init__()
        load_fonts()
        self.maps = Heatmaps()
        self.presses = []
        self.action = QAction("mask", self)
        self.action.setShortcut("M")
        self.action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.action.triggered.connect(lambda: self.presses.append("M"))
        self.maps.addAction(self.action)
        self.beneath = QPushButton("beneath")
        inside = QWidget()
        self.box = QVBoxLayout(inside)
        row = QHBoxLayout()
        row.addWidget(self.beneath)
        self.box.addLayout(row)
        self.box.addWidget(self.maps, 3)
        self.box.addWidget(QLabel("below"))
        self.setCentralWidget(inside)
        self.snapshot = snapshot_of(picture_of(n, heads), selected=Cell(1, 1))
        self.maps.present(self.snapshot)
        self.presenter = Presenter(self.maps, View, View, MaskSwitch)
        self.presenter.show_sentence("What one should notice.", "And why.")


@pytest.fixture
def window(qtbot):
    made = Window()
    made.resize(1280, 800)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    return made


def test_it_covers_the_window_with_one_head_and_goes_back(window, qtbot):
    presenter = window.presenter
    assert window.maps.panel_names() == ("head:0", "head:1")
    presenter.enter()
    assert presenter.is_on
    assert presenter.parentWidget() is window
    assert presenter.geometry() == window.rect()
    assert presenter.isAncestorOf(window.maps)
    assert window.maps.panel_names() == ("head:0",)
    window.resize(1400, 900)
    qtbot.waitUntil(lambda: presenter.geometry() == window.rect())
    with qtbot.waitSignal(presenter.left):
        presenter.leave()
    assert not presenter.isVisible()
    assert window.box.indexOf(window.maps) == 1
    assert window.box.stretch(1) == 3
    assert window.maps.isVisible()
    assert window.maps.panel_names() == ("head:0", "head:1")
    presenter.leave()  # once is enough
    presenter.enter()
    assert window.maps.panel_names() == ("head:0",)
    presenter.leave()
    assert window.maps.panel_names() == ("head:0", "head:1")


def test_the_maps_keys_work_in_it_and_esc_leaves(window, qtbot):
    window.presenter.enter()
    assert window.focusWidget() is window.maps
    qtbot.keyClick(window.maps, Qt.Key.Key_M)
    assert window.presses == ["M"]
    override = QKeyEvent(QEvent.Type.ShortcutOverride, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    override.ignore()
    QApplication.sendEvent(window.maps, override)
    assert override.isAccepted()
    with qtbot.waitSignal(window.presenter.left):
        qtbot.keyClick(window.maps, Qt.Key.Key_Escape)
    qtbot.keyClick(window.maps, Qt.Key.Key_M)
    assert window.presses == ["M", "M"]


def test_esc_first_ends_drawing(window, qtbot):
    window.presenter.enter()
    window.maps.draw_mask(True)
    qtbot.keyClick(window.maps, Qt.Key.Key_Escape)
    assert not window.maps.is_drawing_mask
    assert window.presenter.is_on
    qtbot.keyClick(window.maps, Qt.Key.Key_Escape)
    assert not window.presenter.is_on


def test_no_type_is_smaller_than_28_pixels_at_1280_by_800(window, monkeypatch):
    fonts = []

    def recorded(draw):
        def drawn(painter, *args):
            fonts.append(painter.font().pixelSize())
            return draw(painter, *args)

        return drawn

    for module in (sides, cells):
        monkeypatch.setattr(module, "draw_text", recorded(module.draw_text))
    window.presenter.enter()
    window.maps.grab()
    assert fonts
    assert min(fonts) >= 28
    assert all(panel.place.label_px >= 28 for panel in window.maps._panels)
    assert window.presenter.token_strip.scale * 18 >= 28  # the tokens
    assert window.presenter.row_card.scale * 15 >= 28  # the numbers
    for label in (window.presenter._large, window.presenter._small):
        label.ensurePolished()
        assert label.fontInfo().pixelSize() >= 28
    for button in window.presenter.mask_switch.findChildren(QPushButton):
        button.ensurePolished()
        assert button.fontInfo().pixelSize() >= 28
        assert button.width() >= button.fontMetrics().horizontalAdvance(button.text())


def test_type_grows_with_the_window_and_is_small_again_afterwards(window, qtbot):
    window.presenter.enter()
    before = window.maps._panels[0].place.label_px
    window.resize(1920, 1200)
    qtbot.waitUntil(lambda: window.maps._panels[0].place.label_px > 1.3 * before)
    window.presenter.leave()
    assert all(panel.place.label_px <= 22 for panel in window.maps._panels)


def test_it_presents_only_while_it_is_on(window):
    presenter = window.presenter
    presenter.present(window.snapshot)
    assert presenter.token_strip.shown == []
    presenter.enter()
    presenter.present(window.snapshot)
    assert presenter.token_strip.shown == presenter.row_card.shown == [window.snapshot]


def test_the_sentence_is_shown(window):
    window.presenter.enter()
    assert window.presenter.sentence() == "What one should notice. And why."
    window.presenter.show_sentence("Only this.")
    assert window.presenter.sentence() == "Only this."
    assert not window.presenter._small.isVisible()


def test_a_ring_follows_the_pointer_and_lets_the_mouse_through(window, qtbot):
    presenter = window.presenter
    presenter.enter()
    place = window.maps.point_of("head:0", Cell(1, 1))
    there = QPointF(window.maps.mapToGlobal(place))
    buttons = Qt.MouseButton.NoButton
    moved = QMouseEvent(
        QEvent.Type.MouseMove, QPointF(place), there, buttons, buttons, Qt.KeyboardModifier.NoModifier
    )  # fmt: skip
    QApplication.sendEvent(window.maps, moved)
    ring = presenter._ring
    assert ring.isVisible()
    middle = ring.mapToGlobal(ring.rect().center())
    assert (middle - there.toPoint()).manhattanLength() <= 2
    selected = []
    window.maps.cell_selected.connect(selected.append)
    qtbot.mouseClick(window.maps, Qt.MouseButton.LeftButton, pos=place)
    assert selected == [Cell(1, 1)]
    presenter.leave()
    assert not ring.isVisible()
    QApplication.sendEvent(window.maps, moved)
    assert not ring.isVisible()


def test_tab_does_not_reach_what_is_covered(window, qtbot):
    window.presenter.enter()
    seen = set()
    for _ in range(8):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        seen.add(window.focusWidget())
    assert window.beneath not in seen
    assert {window.presenter.token_strip, window.presenter.row_card} <= seen


def test_long_maps_keep_their_colour_bar(qtbot):
    long = Window(n=200, heads=1)
    qtbot.addWidget(long)
    long.resize(1280, 800)
    long.show()
    long.presenter.enter()
    assert long.maps._plan.bar.width > 0
    long.snapshot = replace(long.snapshot, picture=picture_of(3))
    long.maps.present(long.snapshot)
    assert long.maps._plan.bar.width == 0  # each cell says its number
    assert QPoint(0, 0) == long.presenter.pos()
    long.presenter.leave()


def test_what_changes_the_covered_window_does_nothing_meanwhile(window):
    made = {}
    for name, enabled in (
        ("page_masks", True), ("page_exam", False), ("panel_side", True), ("layout_learn", True), ("undo", True)
    ):  # fmt: skip
        made[name] = QAction(name, window)
        made[name].setObjectName(name)
        made[name].setEnabled(enabled)
    window.presenter.enter()
    assert [name for name, action in made.items() if action.isEnabled()] == ["undo"]
    window.presenter.leave()
    assert [name for name, action in made.items() if not action.isEnabled()] == ["page_exam"]


def test_its_foot_says_the_way_out_and_a_lessons_step(window):
    presenter = window.presenter
    presenter.enter()
    presenter.show_sentence("One.", "Two.", "4 / 22")
    texts = {label.text(): label for label in presenter.findChildren(QLabel) if label.isVisible() and label.text()}
    assert {"F5 or Esc leaves", "4 / 22"} <= set(texts)
    QApplication.processEvents()
    for words in ("F5 or Esc leaves", "4 / 22"):
        label = texts[words]
        label.ensurePolished()
        assert label.fontInfo().pixelSize() < 20
        assert presenter.rect().contains(label.geometry())
        assert label.width() >= label.fontMetrics().horizontalAdvance(words)
    presenter.show_sentence("Only this.")
    assert presenter._step.text() == ""
