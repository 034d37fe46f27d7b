"""The presenter view: how large its type is, that the maps' keys work in it, and that everything goes back.

In a lesson: all of a step and its question, and what its page shows.
"""

from dataclasses import replace

import pytest
from made_pictures import picture_of, snapshot_of
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QMainWindow, QPushButton, QVBoxLayout, QWidget
from taught import settle

from attnviz import lesson_files
from attnviz.figure import cells, sides
from attnviz.figure.fonts import load_fonts
from attnviz.guide import GuideState, Verdict
from attnviz.session import Cell
from attnviz.views import theme
from attnviz.views.heatmaps import Heatmaps
from attnviz.views.mask_switch import MaskSwitch
from attnviz.views.presenter.room_step import RoomStep
from attnviz.views.presenter.view import Presenter


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


CAT = lesson_files.built_in("cat-eats-fish")


def test_its_foot_says_the_way_out_and_a_lessons_step(window):
    presenter = window.presenter
    presenter.enter()
    presenter.show_step(GuideState(CAT, index=3), None)
    QApplication.processEvents()
    head = presenter.step.head
    for widget, words in (presenter._way_out, "F5 or Esc leaves"), (head.place, "4 / 22"):
        assert widget.text() == words
        widget.ensurePolished()
        assert widget.fontInfo().pixelSize() < 20
        assert widget.width() >= widget.fontMetrics().horizontalAdvance(words)
        assert presenter.rect().contains(widget.mapTo(presenter, QPoint(0, 0)))
    assert not head.leave.isVisible()
    presenter.show_sentence("Only this.")
    assert not head.isVisible()
    assert not presenter.step.isVisible()
    assert presenter._large.isVisible()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", lesson_files.names())
def test_all_of_every_step_stands_there_in_the_rooms_type(qtbot, name, language):
    load_fonts()
    theme.apply_theme(QApplication.instance(), False)
    script = lesson_files.built_in(name)
    room = QWidget()
    qtbot.addWidget(room)
    room.resize(1280, 800)
    card = RoomStep(room)
    room.show()
    for index, step in enumerate(script.steps):
        card.present(GuideState(script, index=index, language=language))
        card.fit_room(1232, 800)
        card.resize(1232, card.height())
        QApplication.processEvents()
        assert card._scroll.verticalScrollBar().maximum() == 0, step.id
        assert card.height() <= 320, step.id
        assert step.say.said(language) == card._say.text()
        for label in (card._say, card._ask, card._feedback, card.field, card._submit, *card.choices):
            assert label.font().pixelSize() >= 28 or label in card.choices
        assert all(choice._label.font().pixelSize() >= 28 for choice in card.choices)
    QApplication.instance().setStyleSheet("")


# ------------------------------------------------------------------------------------------- in the program's window


@pytest.fixture
def taught(qtbot, program):
    """Plays a step in presenter view at 1280 × 800."""
    program.window.resize(1280, 800)

    def play(lesson, step):
        program.teaching.start(lesson, step)
        settle(qtbot, program)
        program.window.actions_by_name["presenter"].setChecked(True)
        presenter = program._presenter
        qtbot.waitUntil(lambda: presenter.size() == program.window.size())
        QApplication.processEvents()
        return presenter

    yield play
    program.window.actions_by_name["presenter"].setChecked(False)


def press_next(qtbot, program):
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_PageDown)
    settle(qtbot, program)
    QApplication.processEvents()


def test_a_number_is_typed_wrong_then_right(qtbot, program, taught):
    presenter = taught("cat-eats-fish", "eats")
    card, teaching = presenter.step, program.teaching
    qtbot.mouseClick(card.field, Qt.MouseButton.LeftButton)
    card.field.setFocus()
    qtbot.keyClicks(card.field, "67")
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    assert teaching.state.verdict is Verdict.WRONG
    assert card._feedback.text() == teaching.state.step.question.wrong.en
    assert card.show_me.isVisible()
    card.field.clear()
    qtbot.keyClicks(card.field, "24")
    qtbot.mouseClick(card._submit, Qt.MouseButton.LeftButton)
    assert teaching.state.verdict is Verdict.RIGHT
    assert card._mark.text() == "✓"
    assert program.window.focusWidget() is program.window.heatmaps  # M is the map's again, what was typed is done
    press_next(qtbot, program)
    assert teaching.state.step.id == "unmask"
    assert teaching.state.step.say.en == card._say.text()


def test_a_choice_and_show_me_are_clicked(qtbot, program, taught):
    card = taught("cat-eats-fish", "fish").step
    qtbot.mouseClick(card.choices[1], Qt.MouseButton.LeftButton)
    assert program.teaching.state.verdict is Verdict.WRONG
    qtbot.mouseClick(card.show_me, Qt.MouseButton.LeftButton)
    assert program.teaching.state.verdict is Verdict.SHOWN
    assert card._feedback.text() == program.teaching.state.feedback


def test_a_cell_is_clicked_on_the_map(qtbot, program, taught):
    taught("cat-eats-fish", "unmask")
    heads = program.window.heatmaps
    for cell, verdict in (Cell(1, 0), Verdict.WRONG), (Cell(1, 2), Verdict.RIGHT):
        qtbot.mouseClick(heads, Qt.MouseButton.LeftButton, pos=heads.point_of("head:0", cell))
        assert program.teaching.state.verdict is verdict


def in_sight(presenter, part):
    """Whether a part of the page stands whole in one of the lens's views."""
    page, tops = presenter.lens.page, []
    for view in presenter.lens.views:
        shown = view.mapToScene(view.viewport().rect()).boundingRect().adjusted(-1, -1, 1, 1)
        rects = [widget.rect().translated(widget.mapTo(page, QPoint(0, 0))) for widget in page.parts[part]]
        tops.append(view.isVisible() and all(shown.contains(rect) for rect in rects))
    return any(tops)


@pytest.mark.parametrize(
    ("lesson", "step", "page", "parts"),
    [
        ("cat-eats-fish", "exam", "exam", ["plot"]),
        ("cat-eats-fish", "rounds", "rounds", ["map", "counts"]),
        ("cat-eats-fish", "ahead", "ahead", ["plot", "table"]),
        ("cat-eats-fish", "two-orders", "masks", ["exhibits"]),
        ("cat-eats-fish", "nothing-left", "masks", ["row"]),
        ("cat-eats-fish", "dropout", "dropout", ["row"]),
        ("journey", "3.6.2.3", "heads", ["ladder"]),
    ],
)
def test_a_steps_page_shows_what_the_step_speaks_of(qtbot, program, taught, lesson, step, page, parts):
    presenter, side = taught(lesson, step), program.window.side
    assert presenter.lens.page is side.pages[page]
    assert presenter.lens.isVisible()
    assert not presenter.row_card.isVisible()
    qtbot.waitUntil(lambda: not side.pages[page].running, timeout=60_000)  # the same study goes on
    assert side.pages[page].latest.finished
    for part in parts:
        qtbot.waitUntil(lambda part=part: in_sight(presenter, part))
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert not presenter.is_on
    assert side.card() is side.pages[page]
    assert side.pages[page].isVisible()
    assert side.isAncestorOf(side.pages[page])


def test_a_page_is_left_for_a_row_and_comes_again(qtbot, program, taught):
    presenter = taught("cat-eats-fish", "rounds")
    page = program.window.side.pages["rounds"]
    program.teaching.go_to(0)
    settle(qtbot, program)
    assert presenter.row_card.isVisible()
    assert presenter._map_card.isVisible()
    assert not presenter.lens.isVisible()
    assert program.window.side.isAncestorOf(page)
    program.teaching.go_to(14)
    settle(qtbot, program)
    assert presenter.lens.page is page
    program.teaching.leave()
    settle(qtbot, program)
    assert program.window.side.isAncestorOf(page)
    assert presenter.row_card.isVisible()
    assert presenter._large.text()


def test_a_click_works_through_the_lens(qtbot, program, taught):
    presenter = taught("cat-eats-fish", "rounds")
    page = program.window.side.pages["rounds"]
    qtbot.waitUntil(lambda: not page.running and page.play.isEnabled(), timeout=20_000)
    view = presenter.lens.views[0]
    view.verticalScrollBar().setValue(0)
    middle = page.play.mapTo(page, page.play.rect().center())
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.mapFromScene(middle))
    assert page.timer.isActive()
    page._halt()


def test_a_step_about_heads_shows_them_all_with_their_scale(qtbot, program, taught):
    presenter = taught("journey", "3.6.1.2")
    heads = program.window.heatmaps
    assert heads.panel_names() == ("head:0", "head:1")
    assert not presenter.row_card.isVisible()
    assert heads._plan.bar.width > 0
    assert heads._plan.legend.height > 0
    presenter.leave()
    assert heads.one_large
    assert heads._arrangement.large


@pytest.mark.parametrize("step", ["3.3.1.3", "3.5.1.4", "3.5.3", "top-k", "limits"])
def test_six_keys_stand_there_without_a_scroll_bar(qtbot, program, taught, step):
    card = taught("journey", step).row_card
    qtbot.waitUntil(lambda: card.lines is not None and card.lines.n_keys == 6)
    height = card._key_scroll.viewport().height()
    assert card.bars.line_rect(5).bottom() <= height
    assert card._key_scroll.verticalScrollBar().maximum() == 0


@pytest.mark.parametrize(("step", "there"), [("3.5.1.4", True), ("3.5.1.3", False), ("3.5.3", False)])
def test_the_state_before_stands_beside_where_the_step_speaks_of_it(qtbot, program, taught, step, there):
    taught("journey", "3.5.1.2")  # another step, whose picture was before
    card = taught("journey", step).row_card
    spec = program.teaching.state.step.spec
    qtbot.waitUntil(lambda: card.lines is not None and card.lines.spec == spec)
    assert ("before" in card.lines.columns) is there
    assert ("before" in card.bars.columns().spans) is there


def test_the_row_has_its_scores_and_the_fraction(qtbot, program, taught):
    card = taught("cat-eats-fish", "mask").row_card
    qtbot.waitUntil(lambda: card.lines is not None and card.lines.before is not None)
    assert {"score", "exponential", "share", "before"} <= set(card.bars.columns().spans)
    assert card._formula_scroll.isVisible()
    assert "7.39 / (1 + 7.39)" in card.formula.accessibleName()


def test_a_question_about_the_vector_has_the_vector(qtbot, program, taught):
    presenter = taught("cat-eats-fish", "eats")
    assert presenter.row_card._formula_scroll.isVisible()
    press_next(qtbot, program)
    press_next(qtbot, program)
    assert program.teaching.state.step.id == "taste"
    card = presenter.row_card
    assert card._context_scroll.isVisible()
    assert card._context_scroll.verticalScrollBar().maximum() == 0
    assert not card._formula_scroll.isVisible()
