"""The window during a lesson: what a step speaks of is in sight and lit, and the map keeps its keys and its size."""

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QScrollArea
from taught import settle

from attnviz import lesson_files
from attnviz.guide import Verdict
from attnviz.lesson_files import PARTS
from attnviz.spec import edited
from attnviz.views.side import TABS

LOW = 1024, 640
SIZES = [(1280, 800), LOW]


@pytest.fixture(autouse=True)
def still(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MOTION", "0")


def press(qtbot, program, key):
    """A key as a person presses it: it goes to whatever has the focus."""
    qtbot.keyClick(QApplication.focusWidget() or program.window, key)


def begin(qtbot, program, lesson, step=None, size=(1280, 800)):
    program.window.resize(*size)
    program.teaching.start(lesson, step)
    rest(qtbot, program)


def rest(qtbot, program):
    """Wait for the picture, and for what the step's page finds out."""
    settle(qtbot, program)
    page = program.window.side.pages.get(program.window.side.current)

    def known():
        question = None if page is None or page.asks_by_hand else page.question()
        return page is None or (not page.running and question in (None, page.answered))

    qtbot.waitUntil(known, timeout=30_000)
    QApplication.processEvents()


def lit(program):
    """The names of what is lit, as a step's ``look`` has them."""
    window = program.window
    cards = {"map": window._heads_card, "row": window.row_card}
    found = {name for name, card in cards.items() if card.property("looked")}
    found |= {"page" for card in window.side.cards() if card is not window.row_card and card.property("looked")}
    return found | ({"strip"} if window.pipeline_strip._looked_at else set())


def in_window(widget):
    return QRect(widget.mapTo(widget.window(), QPoint(0, 0)), widget.size())


def seen_of(widget, area):
    """The rectangle of ``widget`` that its area's viewport shows."""
    return in_window(widget) & in_window(area.viewport())


def is_in_sight(part, area):
    """Whether the first widget of ``part`` is to be seen, and most of all of them as far as there is room."""
    first, port = part[0], in_window(area.viewport())
    whole = in_window(first) | in_window(part[-1])
    return seen_of(first, area).height() >= min(first.height(), 0.9 * port.height()) and (
        (whole & port).height() >= min(whole.height(), 0.6 * port.height())
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lesson", lesson_files.names())
def test_what_a_step_says_to_look_at_is_in_sight_and_lit(qtbot, program, lesson, size):
    begin(qtbot, program, lesson, size=size)
    window, side = program.window, program.window.side
    while True:
        step = program.teaching.state.step
        assert lit(program) == {step.look}, step.id
        target = {"map": window.heatmaps, "row": window.row_card, "strip": window.pipeline_strip}.get(step.look)
        target = target or side.card()
        assert target.isVisible(), step.id
        if step.part:
            area = side._places[step.page]
            assert isinstance(area, QScrollArea)
            part = [widget for widget in side.pages[step.page].parts[step.part] if widget.isVisible()]
            qtbot.waitUntil(lambda part=part, area=area: is_in_sight(part, area), timeout=10_000)
        if program.teaching.state.is_last:
            break
        program.teaching.next()
        rest(qtbot, program)


def test_every_part_that_a_lesson_may_name_is_there(qtbot, program):
    side = program.window.side
    for tab in TABS:
        side.show_page(tab.name)
        page = side.pages.get(tab.name)
        assert set(page.parts if page is not None else ()) == set(PARTS.get(tab.name, ())), tab.name


def test_the_page_follows_its_part_until_a_person_scrolls(qtbot, program):
    begin(qtbot, program, "cat-eats-fish", "stand-in")
    area = program.window.side._places["masks"]
    bar = area.verticalScrollBar()
    page = program.window.side.pages["masks"]
    first = next(widget for widget in page.parts[program.teaching.state.step.part] if widget.isVisible())

    def above():
        """Pixels of the page that are in sight above the part."""
        return first.mapTo(area.viewport(), QPoint(0, 0)).y()

    qtbot.waitUntil(lambda: bar.value() > 0 and 0 <= above() <= 10)
    at, shift = bar.value(), above()
    page.body.insertSpacing(0, 70)  # what comes above pushes it down, and the page after it
    qtbot.waitUntil(lambda: bar.value() >= at + 70 and above() == shift)
    middle = QPointF(area.viewport().rect().center())
    QApplication.sendEvent(
        area.viewport(),
        QWheelEvent(
            middle, area.viewport().mapToGlobal(middle), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        ),
    )  # fmt: skip
    there = bar.value()
    assert there < at + 70 or above() > shift
    most = bar.maximum()
    page.body.insertSpacing(0, 50)
    qtbot.waitUntil(lambda: bar.maximum() == most + 50)
    QApplication.processEvents()
    assert bar.value() == there
    program.teaching.go_to(program.teaching.state.index)  # the step's own picture, and its part, come back
    qtbot.waitUntil(lambda: bar.value() >= at + 120 and above() == shift)


def test_a_step_without_a_part_begins_its_page_at_its_beginning(qtbot, program):
    begin(qtbot, program, "cat-eats-fish", "two-orders")
    bar = program.window.side._places["masks"].verticalScrollBar()
    assert bar.value() > 0
    program.teaching.back()
    rest(qtbot, program)
    assert program.teaching.state.step.page == "masks"
    assert bar.value() == 0


# --------------------------------------------------------------------------------------------------------------- keys


def test_after_an_answer_and_after_next_the_map_has_its_keys(qtbot, program):
    begin(qtbot, program, "cat-eats-fish", "mask")
    window, card = program.window, program.window.lesson_card
    window.activateWindow()
    for typed, verdict in ("67", Verdict.WRONG), ("88", Verdict.RIGHT):
        card.field.setFocus()
        card.field.setText(typed)
        qtbot.keyClick(card.field, Qt.Key.Key_Return)
        assert program.teaching.state.verdict is verdict
        assert card.field.hasFocus() == (verdict is Verdict.WRONG)  # one more try is typed where the first was
    assert window.heatmaps.hasFocus()
    press(qtbot, program, Qt.Key.Key_M)
    settle(qtbot, program)
    assert program.session.snapshot().spec.mask == "none"
    card.head.next.setFocus()
    qtbot.keyClick(card.head.next, Qt.Key.Key_Space)
    assert window.heatmaps.hasFocus()


def test_typing_beside_the_card_is_not_interrupted_by_the_next_step(qtbot, program):
    begin(qtbot, program, "cat-eats-fish", "mask")
    window = program.window
    window.show_page("controls")
    window.activateWindow()
    spin = window.row_card.top_k.spin
    window.show_page("row")
    spin.setEnabled(True)
    spin.setFocus()
    assert QApplication.focusWidget() is spin
    program.teaching._give_keys_back()
    assert QApplication.focusWidget() is spin


# ---------------------------------------------------------------------------------------------------------- elsewhere


@pytest.mark.parametrize("size", SIZES)
def test_another_picture_has_a_way_back_to_the_steps_own(qtbot, program, size):
    begin(qtbot, program, "cat-eats-fish", "dropout", size)
    card, again = program.window.lesson_card, program.window.lesson_card.head.again
    step = program.teaching.state.step
    assert not again.isVisible()
    high = card.height()
    for change in "reroll", "stage", "fill":
        if change == "reroll":
            qtbot.keyClick(program.window.heatmaps, Qt.Key.Key_R)
        elif change == "stage":
            qtbot.keyClick(program.window.heatmaps, Qt.Key.Key_1)
        else:
            program.controller.edit_spec(edited(step.spec, dropout=0.25))
        settle(qtbot, program)
        assert again.isVisible(), change
        program.teaching.take_cell(program.session.snapshot().selected)  # an answer about another picture
        assert program.teaching.state.verdict is Verdict.UNKNOWN
        QApplication.processEvents()
        assert card._scroll.verticalScrollBar().maximum() == 0  # no line of the step is scrolled away
        assert card.height() == high
        qtbot.mouseClick(again, Qt.MouseButton.LeftButton)
        settle(qtbot, program)
        assert program.session.snapshot().spec == step.spec
        assert not again.isVisible()
        assert program.teaching.state.verdict is Verdict.NONE


def test_colours_and_hidden_numbers_are_no_other_picture(qtbot, program):
    begin(qtbot, program, "cat-eats-fish", "mask")
    qtbot.keyClick(program.window.heatmaps, Qt.Key.Key_N)
    qtbot.keyClick(program.window.heatmaps, Qt.Key.Key_Up)
    settle(qtbot, program)
    assert not program.window.lesson_card.head.again.isVisible()


# --------------------------------------------------------------------------------------------------------------- room


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lesson", lesson_files.names())
def test_all_keys_of_the_row_stand_whole_and_nothing_scrolls_twice(qtbot, program, lesson, size):
    begin(qtbot, program, lesson, size=size)
    card = program.window.row_card
    while True:
        if program.window.side.current == "row":
            assert not isinstance(program.window.side._places["row"], QScrollArea)
            step, port = program.teaching.state.step, card._key_scroll.viewport()
            assert in_window(port).contains(in_window(card.bars)), step.id
            for area, line in (card._formula_scroll, card.formula.line), (card._context_scroll, card.context.line):
                if area.isVisible():
                    around = card.formula.around if area is card._formula_scroll else 0
                    assert (area.height() - around) % line == 0, step.id
            assert in_window(card).contains(in_window(card.foot)), step.id
        if program.teaching.state.is_last:
            break
        program.teaching.next()
        settle(qtbot, program)


@pytest.mark.parametrize("lesson", lesson_files.names())
def test_in_a_low_window_the_map_keeps_a_size_at_which_its_cells_have_numbers(qtbot, program, lesson):
    begin(qtbot, program, lesson, size=LOW)
    cells, heights = [], []
    while True:
        step, panel = program.teaching.state.step, program.window.heatmaps._panels[0]
        place = panel.place.map_rect
        rows, cols = panel.frame.values.shape
        if step.spec.num_heads <= 2 and rows <= 6:
            assert place.height >= 144, step.id
            cells.append(min(place.width / cols, place.height / rows))
        heights.append(program.window.lesson_card.height())
        if program.teaching.state.is_last:
            break
        program.teaching.next()
        settle(qtbot, program)
    assert min(cells) >= 24
    assert sum(cell >= 28 for cell in cells) >= 0.9 * len(cells)  # numbers of two digits are legible
    usual = max(set(heights), key=heights.count)
    assert heights.count(usual) >= 0.7 * len(heights)  # the map does not jump from step to step


@pytest.mark.parametrize("asked", ["none", "neg-inf"])
def test_without_a_lesson_a_low_window_shows_the_row_whole(qtbot, program, asked):
    window = program.window
    window.resize(*LOW)
    program.controller.edit_spec(edited(program.session.snapshot().spec, mask=asked))
    settle(qtbot, program)
    card = window.row_card
    assert in_window(card._key_scroll.viewport()).contains(in_window(card.bars))
    assert card._formula_scroll.isVisible()
    assert card._context_scroll.isVisible()
    assert in_window(window.side).contains(in_window(card))
    assert window.heatmaps._panels[0].place.map_rect.height >= 200
    assert window.sentence_card.height() < 154
    window.resize(1280, 800)
    QApplication.processEvents()
    assert window.sentence_card.height() == 154
