"""The row card as a widget: what it shows, what a click does, how bars move, and that showing emits nothing."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage
from PySide6.QtWidgets import QApplication, QToolTip
from test_row_card import CAT, MASKED, THREE, snapshot_of

from attnviz.colour import GROUNDS
from attnviz.figure.fonts import load_fonts
from attnviz.frames import CellClass
from attnviz.session import Cell
from attnviz.spec import Lesson, RandomEmbeddings, TypedWeights, edited, make_spec
from attnviz.views import theme
from attnviz.views.row_card import metrics
from attnviz.views.row_card.card import RowCard
from attnviz.views.row_card.formula import plain


class Shown:
    def __init__(self, qtbot, snapshot, *, width=560, height=440):
        self.card = RowCard()
        qtbot.addWidget(self.card)
        self.cells, self.specs = [], []
        self.card.cell_selected.connect(self.cells.append)
        self.card.spec_edited.connect(self.specs.append)
        self.card.resize(width, height)
        self.card.show()
        self.present(snapshot)

    def present(self, snapshot, **fields):
        self.snapshot = replace(snapshot, **fields)
        self.card.present(self.snapshot)

    def formula(self):
        return [plain(line) for line in self.card.formula.lines]

    def click_key(self, qtbot, key):
        middle = self.card.bars.line_rect(key).center().toPoint()
        qtbot.mouseClick(self.card.bars, Qt.MouseButton.LeftButton, pos=middle)

    def pixels(self, key):
        """The colours in the line of a key, where its bar is."""
        bars = self.card.bars
        image = bars.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        columns, y = bars.columns(), int(bars.line_rect(key).center().y())
        return {QColor(image.pixel(x, y)).name() for x in range(int(columns.bar_left), int(columns.bar_right))}


@pytest.fixture
def show(qtbot, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MOTION", "0")
    load_fonts()
    theme.apply_theme(QApplication.instance(), False)
    yield lambda snapshot, **size: Shown(qtbot, snapshot, **size)
    QApplication.instance().setStyleSheet("")


def test_without_a_selection_it_says_what_to_do(show):
    shown = show(snapshot_of(CAT, 1, selected=None))
    assert shown.card._words.text() == "Click a word, or use the arrows."
    assert shown.card._words.isVisible()
    assert shown.card.lines is None
    shown.present(snapshot_of(CAT, 1))
    assert not shown.card._words.isVisible()
    assert shown.card.lines.tokens == ("猫", "吃", "鱼")


def test_presenting_emits_nothing_and_a_click_selects_the_key(qtbot, show):
    shown = show(snapshot_of(CAT, 1, 2))
    shown.present(snapshot_of(edited(MASKED, top_k=1), 1, 1, CAT))
    assert (shown.cells, shown.specs) == ([], [])
    shown.click_key(qtbot, 0)
    assert shown.cells == [Cell(1, 0)]
    assert shown.specs == []


def test_the_formula_follows_the_selected_key_the_sum_and_the_context(qtbot, show):
    shown = show(snapshot_of(MASKED, 1, 1, CAT))
    assert shown.formula() == ["88 % = 7.39 / (1 + 7.39)"]
    shown.present(shown.snapshot, selected=Cell(1, 0))
    assert shown.formula() == ["12 % = 1 / (1 + 7.39)"]
    middle = shown.card.context.line_rect(1).center().toPoint()
    qtbot.mouseClick(shown.card.context, Qt.MouseButton.LeftButton, pos=middle)
    assert shown.formula() == ["鱼味 .09 = .12 · 0 + .88 · .1"]
    qtbot.mouseClick(shown.card.foot, Qt.MouseButton.LeftButton)
    assert shown.formula()[0] == "Σ 1.00 = .12 + .88"
    shown.click_key(qtbot, 0)
    assert shown.formula() == ["12 % = 1 / (1 + 7.39)"]


def test_peeking_masked_and_ordinary_bars_have_their_colours(show):
    c = theme.colours(False)
    shown = show(snapshot_of(CAT, 1, 0))
    assert c.leak in shown.pixels(2)
    assert c.accent in shown.pixels(1)
    assert c.leak not in shown.pixels(1)
    shown.present(snapshot_of(MASKED, 1, 0))
    assert not {c.leak, c.accent} & shown.pixels(2)


def test_a_leak_that_dropout_hit_keeps_its_red_frame_and_its_bar_is_gone(show):
    c = theme.colours(False)
    shown = show(snapshot_of(edited(CAT, dropout=0.5, training=True, dropout_seed=5), 1, 0))
    assert shown.pixels(2) & {QColor.fromRgb(GROUNDS[CellClass.DROPPED]).name()}
    assert not {c.leak, c.accent} & shown.pixels(2)
    bars = shown.card.bars
    image = bars.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    y = int(bars.line_rect(2).center().y())
    assert c.leak in {QColor(image.pixel(x, y)).name() for x in range(int(bars.columns().names))}
    assert [text for text, _ in shown.card.foot.words()][-1] == "· sees 3 of 3, 1 ahead"


def test_n_hides_weights_and_keeps_tokens_and_scores(show):
    c = theme.colours(False)
    shown = show(snapshot_of(MASKED, 1, 1, CAT))
    before = shown.card.grab().toImage()
    shown.present(shown.snapshot, show_numbers=False)
    assert shown.formula() == ["the numbers are hidden: N shows them"]
    assert c.accent not in shown.pixels(0) | shown.pixels(1)
    assert [text for text, _ in shown.card.foot.words()] == ["Σ", "·", "· sees 2 of 3"]
    shown.present(shown.snapshot, show_numbers=True)
    assert shown.formula() == ["88 % = 7.39 / (1 + 7.39)"]
    assert shown.card.grab().toImage() == before


def test_bars_move_to_their_new_lengths_and_arrive(qtbot, show, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MOTION", "1")
    shown = show(snapshot_of(CAT, 1, 1))
    bars = shown.card.bars
    assert bars.lengths() == pytest.approx([0.09, 0.6652, 0.2447], abs=1e-4)
    shown.present(snapshot_of(MASKED, 1, 1, CAT))
    assert bars.is_moving()
    bars._moving.pause()
    bars._moving.setCurrentTime(100)
    part = bars.lengths()
    assert 0.6652 < part[1] < 0.8808
    assert 0 < part[2] < 0.2447
    bars._moving.resume()
    qtbot.waitUntil(lambda: not bars.is_moving())
    assert bars.lengths() == pytest.approx([0.1192, 0.8808, 0], abs=1e-4)
    shown.present(snapshot_of(MASKED, 2, 1, CAT))  # another row is no change of this one
    assert not bars.is_moving()


def test_nothing_moves_where_less_motion_is_asked_for(show):
    shown = show(snapshot_of(CAT, 1, 1))
    shown.present(snapshot_of(MASKED, 1, 1, CAT))
    assert not shown.card.bars.is_moving()
    assert shown.card.bars.lengths() == pytest.approx([0.1192, 0.8808, 0], abs=1e-4)


def test_the_state_before_stays_as_a_dashed_outline(show):
    c = theme.colours(False)
    plain_row = show(snapshot_of(MASKED, 1, 0)).card
    shown = show(snapshot_of(MASKED, 1, 0, CAT))
    assert plain_row.lines.before is None
    assert shown.card.lines.before == pytest.approx([0.09, 0.6652, 0.2447], abs=1e-4)
    bars, columns = shown.card.bars, shown.card.bars.columns()
    assert columns.spans["before"] == pytest.approx(plain_row.bars.columns().spans["before"])  # its room is kept
    image = bars.grab().toImage()
    end = columns.bar_left + 0.2447 * (columns.bar_right - columns.bar_left)
    rect = bars.line_rect(2)
    area = [
        QColor(image.pixel(x, y))
        for x in range(int(columns.bar_left), int(end))
        for y in range(int(rect.top()), int(rect.bottom()))
    ]
    assert any(abs(colour.lightness() - QColor(c.muted).lightness()) < 30 for colour in area)


def test_the_last_story_stays_until_the_next_row_has_come(show):
    shown = show(snapshot_of(MASKED, 1, 1))
    lines = shown.card.lines
    shown.present(shown.snapshot, selected=Cell(2, 0))
    assert shown.card.lines is lines
    assert shown.card.bars._selected is None
    shown.present(snapshot_of(MASKED, 2, 0))
    assert shown.card.lines.now.row == 2
    assert shown.formula() == ["38 % = 1.65 / (1.65 + 1.65 + 1)"]


def test_the_head_names_the_answer_and_whether_it_lies_open(show):
    shown = show(snapshot_of(CAT, 1, 1))
    assert shown.card.head.words() == ("asks: what comes next?", "the answer:")
    assert "lies open" in shown.card.head.toolTip()
    shown.present(snapshot_of(MASKED, 1, 1))
    assert "covered" in shown.card.head.toolTip()
    shown.present(snapshot_of(MASKED, 2, 1))
    assert shown.card.head.words()[1] == "the last word: nothing is written behind it"
    shown.present(snapshot_of(make_spec(), 1, 1, head=1))
    assert shown.card.head.words()[0] == "asks: what comes next? · head 1"
    shown.present(snapshot_of(make_spec(TypedWeights(weights=((0.5, 0.5),))), 0))
    assert shown.card.head.words() == ("", "")


def test_the_foot_colours_a_sum_that_is_not_1(show):
    shown = show(snapshot_of(edited(CAT, mask="multiply"), 1, 1))
    assert ("0.76", "leak") in shown.card.foot.words()
    shown.present(snapshot_of(THREE, 1, 1))
    assert shown.card.foot.words()[1:3] == (("1.00", "ink"), ("(.7553 before ÷)", "muted"))
    shown.present(snapshot_of(edited(MASKED, dropout=0.5), 1, 1))
    assert ("1.76", "accent") in shown.card.foot.words()


def test_a_long_row_scrolls_to_the_selected_key(show):
    spec = make_spec(RandomEmbeddings(length=1024), num_heads=1)
    shown = show(snapshot_of(spec, 1000, 700))
    bars, area = shown.card.bars, shown.card._key_scroll
    QApplication.processEvents()

    def in_sight(key):
        top, height = area.verticalScrollBar().value(), area.viewport().height()
        rect = bars.line_rect(key)
        return top <= rect.top() and rect.bottom() <= top + height

    assert in_sight(700)
    shown.present(shown.snapshot, selected=Cell(1000, 3))
    assert in_sight(3)
    assert not shown.card.grab().isNull()


def test_more_keys_than_can_be_told_are_sent_to_the_strip(show):
    shown = show(snapshot_of(CAT, 1, 1))
    picture = shown.snapshot.picture
    outline = replace(picture.outline, n_keys=5000)
    shown.present(shown.snapshot, picture=replace(picture, outline=outline))
    assert shown.card._words.text() == "A row of 5,000 keys is told by the strip below the map."
    assert shown.card._words.isVisible()


def test_hovering_tells_nine_digits_unless_numbers_are_hidden(show, monkeypatch):
    said = []
    monkeypatch.setattr(QToolTip, "showText", lambda _point, words, *_rest: said.append(words))
    shown = show(snapshot_of(MASKED, 1, 1))

    def hover():
        point = shown.card.bars.line_rect(0).center().toPoint()
        QApplication.sendEvent(shown.card.bars, QHelpEvent(QEvent.Type.ToolTip, point, QPoint(0, 0)))

    hover()
    assert "0.119202912" in said[-1]
    shown.present(shown.snapshot, show_numbers=False)
    hover()
    assert said[-1] == ""


@pytest.mark.parametrize("width", [320, 360, 560, 900])
def test_share_and_before_stand_at_any_width_and_columns_never_overlap(show, width):
    shown = show(snapshot_of(edited(make_spec(dropout=0.5), mask="three-step"), 2, 1, make_spec()), width=width)
    QApplication.processEvents()
    columns = shown.card.bars.columns()
    assert {"share", "before"} <= set(columns.spans)
    edges = [columns.bar_left, columns.bar_right, *(edge for span in columns.spans.values() for edge in span)]
    assert edges == sorted(edges)
    assert columns.bar_right - columns.bar_left > 40
    box = shown.card.formula
    assert max(placed.x for placed in box._placed) < box.width()


def test_what_is_added_stands_right_of_the_score_that_it_is_added_to(show):
    spec = make_spec(num_heads=1, mask="add", fill=-5.0, scale_after_mask=True)
    shown = show(snapshot_of(spec, 1, 2), width=900)
    lines = shown.card.lines
    spans = metrics.columns_of(lines, 900, 1).spans
    assert [*spans][:3] == ["raw", "added", "score"]
    assert [left for left, _ in spans.values()] == sorted(left for left, _ in spans.values())
    for width in range(320, 900, 20):  # never added to nothing
        spans = metrics.columns_of(lines, width, 1).spans
        assert "raw" in spans or "added" not in spans


def test_the_type_grows_for_a_classroom(show):
    shown = show(snapshot_of(MASKED, 1, 1, CAT), width=900, height=700)
    small = shown.card.bars.line, shown.card.head.height(), shown.card.foot.height()
    shown.card.resize(900, 1400)
    shown.card.scale = 2.0
    large = shown.card.bars.line, shown.card.head.height(), shown.card.foot.height()
    assert large == tuple(2 * height for height in small)
    assert shown.card.scale == 2.0


def test_dark_and_light_use_their_own_colours(show):
    shown = show(snapshot_of(CAT, 1, 0))
    light = shown.pixels(2)
    theme.apply_theme(QApplication.instance(), True)
    assert theme.DARK.leak in shown.pixels(2)
    assert theme.LIGHT.leak in light


def test_values_of_bars_are_those_of_the_story(show):
    shown = show(snapshot_of(make_spec(num_heads=1), 3, 1))
    assert np.array_equal(shown.card.bars.lengths(), shown.snapshot.story.now.stages["weights"].astype(np.float64))


# -------------------------------------------------------------------------------------------------------------- top-k


def test_top_k_is_switched_on_changed_and_off(qtbot, show):
    shown = show(snapshot_of(MASKED, 1, 1))
    switch = shown.card.top_k
    assert switch.spin.maximum() == 3
    assert not switch.spin.isEnabled()
    qtbot.mouseClick(switch.box, Qt.MouseButton.LeftButton, pos=QPoint(8, switch.box.height() // 2))
    assert shown.specs == [edited(MASKED, top_k=2)]
    shown.present(snapshot_of(shown.specs[-1], 1, 1))
    assert switch.box.isChecked()
    switch.spin.setValue(1)
    assert shown.specs[-1] == edited(MASKED, top_k=1)
    shown.present(snapshot_of(shown.specs[-1], 1, 1))
    qtbot.mouseClick(switch.box, Qt.MouseButton.LeftButton, pos=QPoint(8, switch.box.height() // 2))
    assert shown.specs[-1] == MASKED
    assert len(shown.specs) == 3


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (THREE, "acts after the softmax"),
        (edited(CAT, mask="multiply"), "acts after the softmax"),
        (make_spec(TypedWeights(weights=((0.5, 0.5),))), "dropout alone applies"),
    ],
)
def test_top_k_is_greyed_with_its_reason(show, spec, reason):
    shown = show(snapshot_of(spec, 0))
    switch = shown.card.top_k
    assert not switch.box.isEnabled()
    assert reason in switch.toolTip()
    assert switch.isEnabled()  # the tooltip is to be seen
    shown.present(snapshot_of(make_spec(Lesson()), 0))
    assert switch.box.isEnabled()
