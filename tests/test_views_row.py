"""The row strip: a row of any length in a strip's pixels, every key to be found, and its own zoom."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pictures import MASKED, ORDINARY, outline_of, picture_of, row_of, snapshot_of
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtWidgets import QApplication

from attnviz import colour
from attnviz.figure import paint
from attnviz.figure.fonts import load_fonts
from attnviz.frames import CellClass, RowAnswer
from attnviz.session import Cell, Window
from attnviz.views.row_pool import RowPool
from attnviz.views.row_strip import RowStrip

FAR = 1 << 20
NONE = QPoint()


def answer_of(values, classes=None):
    values = np.asarray(values, np.float32)
    classes = np.full(len(values), ORDINARY) if classes is None else np.asarray(classes)
    return RowAnswer(1, 0, 0, values, classes.astype(np.uint8))


# ----------------------------------------------------------------------------------------------------------- pooling


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(list(CellClass))), min_size=1, max_size=60),
    st.integers(1, 40), st.floats(0, 1), st.floats(0, 1),
)  # fmt: skip
def test_each_column_shows_the_extremes_and_the_classes_of_its_keys(cells, columns, one, other):
    n = len(cells)
    answer = answer_of([value for value, _ in cells], [int(kind) for _, kind in cells])
    first, last = sorted((one * n, other * n))
    if last - first < 1e-3:
        first, last = 0.0, float(n)
    pooled = RowPool(answer, "weights").pooled(first, last, columns)
    assert len(pooled.high) == columns
    middle = 0.5 if last - first <= columns else 0.0
    edges = [int(np.floor(first + (last - first) * (column + middle) / columns)) for column in range(columns)]
    for column, start in enumerate(min(edge, n - 1) for edge in edges):
        end = edges[column + 1] if column + 1 < columns else start + 1 if middle else int(np.ceil(last))
        keys = range(start, max(min(end, n), start + 1))
        ordinary = [float(answer.values[key]) for key in keys if answer.classes[key] == ORDINARY]
        assert pooled.high[column] == max(ordinary, default=-np.inf)
        assert pooled.low[column] == min(ordinary, default=np.inf)
        assert pooled.classes[column] == np.bitwise_or.reduce([answer.classes[key] for key in keys])


def test_a_peak_among_a_million_keys_is_not_lost():
    answer = row_of(FAR - 1, FAR)
    answer.values[777_777] = 0.5
    pooled = RowPool(answer, "weights").pooled(0, FAR, 700)
    assert pooled.high.max() == 0.5
    assert abs(int(np.argmax(pooled.high)) - 777_777 * 700 // FAR) <= 1
    near = RowPool(answer, "weights").pooled(777_770, 777_790, 1000)
    assert near.high[int(7.5 * 50)] == 0.5
    assert (near.high == 0.5).sum() == 50


def test_the_scale_is_of_what_can_be_read_alone():
    classes = np.full(64, ORDINARY)
    values = np.linspace(-2, 3, 64)
    values[5], classes[5] = np.nan, int(CellClass.NAN)
    values[60:], classes[60:] = -np.inf, MASKED
    pool = RowPool(answer_of(values, classes), "scaled_scores")
    assert pool.scale.low == pytest.approx(-2)
    assert 2.6 < pool.scale.high < 3
    empty = RowPool(answer_of(np.full(40, np.nan), np.full(40, int(CellClass.NAN))), "weights")
    assert empty.pooled(0, 40, 10).classes.tolist() == [int(CellClass.NAN)] * 10


# ------------------------------------------------------------------------------------------------------------- widget


class Shown:
    def __init__(self, qtbot, n, row, *, size=800, heads=1, answer=None):
        self.strip = RowStrip()
        qtbot.addWidget(self.strip)
        self.strip.resize(size, self.strip.height())
        self.selected, self.hovered = [], []
        self.strip.cell_selected.connect(self.selected.append)
        self.strip.cell_hovered.connect(self.hovered.append)
        self.answer = answer or row_of(row, n)
        self.snapshot = snapshot_of(picture_of(n, heads, pixels=64), selected=Cell(row, 0), row=self.answer)
        self.strip.present(self.snapshot)

    def present(self, **fields):
        self.snapshot = replace(self.snapshot, **fields)
        self.strip.present(self.snapshot)

    def point_of(self, key):
        rect, window = self.strip.rect_of_keys(), self.strip.seen()
        x = rect.x + (key + 0.5 - window.left) * rect.width / (window.right - window.left)
        return QPoint(int(x), int(rect.y + rect.height / 2))

    def wheel(self, point, angle):
        event = QWheelEvent(
            QPointF(point), QPointF(self.strip.mapToGlobal(point)), NONE, QPoint(0, angle), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(self.strip, event)

    def pixels(self):
        image = self.strip.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        rows = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4)
        rect = self.strip.rect_of_keys()
        return rows[int(rect.y) : int(rect.bottom), int(rect.x) : int(rect.right)].copy()


@pytest.fixture
def show(qtbot):
    load_fonts()
    return lambda n, row, **fields: Shown(qtbot, n, row, **fields)


def test_it_is_there_for_long_rows_of_queries_and_keys_alone(show):
    assert not show(32, 3).strip.isVisibleTo(None)
    shown = show(33, 3)
    assert shown.strip.isVisibleTo(None)
    height = shown.strip.height()
    shown.present(selected=None, row=None)
    assert shown.strip.isVisibleTo(None)  # its place stays, so that a first click moves nothing
    assert shown.strip.height() == height
    assert "click a row" in shown.strip.words()
    other = replace(outline_of(600), stage="values")
    shown.present(picture=replace(shown.snapshot.picture, outline=other))
    assert not shown.strip.isVisibleTo(None)


@pytest.mark.parametrize("style", [paint.LIGHT, paint.DARK])
def test_masked_nan_and_dropped_keys_have_their_own_looks(show, style):
    answer = row_of(299, 600)
    classes = answer.classes.copy()
    classes[100], classes[200:220] = int(CellClass.NAN), int(CellClass.DROPPED)
    shown = show(600, 299, answer=replace(answer, classes=classes))
    shown.strip.use_style(style)
    pixels = shown.pixels()
    width = pixels.shape[1]

    def column(key):
        return pixels[:, int((key + 0.5) / 600 * width)]

    assert (column(100) == colour.GROUNDS[CellClass.NAN]).all()
    assert (column(210) == colour.GROUNDS[CellClass.DROPPED]).all()
    assert (column(50) == style.accent.rgb()).any()
    assert (column(450) == style.masked.rgb()).any()
    assert not (column(450) == style.accent.rgb()).any()


def test_a_hand_finds_any_key_of_a_million(qtbot, show):
    shown = show(FAR, FAR - 1)
    target = FAR - 2
    shown.strip._on_moved(Window(0, 1, FAR - 600, FAR))
    rect = shown.strip.rect_of_keys()
    for _ in range(80):
        shown.wheel(QPoint(int(rect.right) - 1, int(rect.y) + 5), 120)
    assert shown.strip.seen().right - shown.strip.seen().left == pytest.approx(2)
    qtbot.mouseMove(shown.strip, shown.point_of(target))
    assert shown.hovered[-1] == Cell(FAR - 1, target)
    value = f"{float(shown.answer.values[target]):.4g}".replace("-", "−")
    assert shown.strip.readout() == f"key {target:,} · {value}"
    qtbot.mouseClick(shown.strip, Qt.MouseButton.LeftButton, pos=shown.point_of(target))
    assert shown.selected == [Cell(FAR - 1, target)]
    assert not shown.strip.grab().isNull()
    QApplication.sendEvent(shown.strip, QEvent(QEvent.Type.Leave))
    assert shown.hovered[-1] is None
    assert shown.strip.readout() == ""
    qtbot.mouseDClick(shown.strip, Qt.MouseButton.LeftButton, pos=shown.point_of(target))
    assert shown.strip.seen() == Window(0, 1, 0, FAR)


def test_a_drag_pans_the_strip_and_selects_nothing(qtbot, show):
    shown = show(600, 500)
    for _ in range(8):
        shown.wheel(shown.point_of(300), 120)
    before = shown.strip.seen()
    start = shown.point_of(300)
    qtbot.mousePress(shown.strip, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(shown.strip, start + QPoint(100, 0))
    qtbot.mouseRelease(shown.strip, Qt.MouseButton.LeftButton, pos=start + QPoint(100, 0))
    moved = 100 * (before.right - before.left) / shown.strip.rect_of_keys().width
    assert shown.strip.seen().left == pytest.approx(before.left - moved)
    assert shown.selected == []


def test_the_row_before_stays_until_the_next_has_come(show):
    shown = show(600, 500, heads=3)
    assert shown.strip.words() == "query 500 · head 0"
    shown.present(selected=Cell(501, 3), row=None)
    assert shown.strip.words() == "query 500 · head 0"
    shown.present(row=row_of(501, 600, head=2))
    assert shown.strip.words() == "query 501 · head 2"
    shown.strip._on_moved(Window(0, 1, 100, 200))
    shown.present(row=row_of(501, 600, seed=3))
    assert shown.strip.seen() == Window(0, 1, 100, 200)  # the zoom outlives an edit of the mask


def test_the_maps_window_is_a_bracket(show):
    shown = show(600, 500)
    plain = shown.strip.grab().toImage()
    shown.present(window=Window(0, 100, 200, 300))
    assert shown.strip.grab().toImage() != plain


def test_an_answer_of_another_row_or_length_is_not_shown(show):
    shown = show(600, 500)
    shown.present(row=row_of(3, 600))
    assert shown.strip.words().startswith("query 500")
    shown.present(row=row_of(500, 40))
    assert shown.strip.words().startswith("query 500")


def test_a_name_that_says_more_than_its_place_is_written(show):
    tokens = tuple(f"t{n}" for n in range(600))
    shown = show(600, 500)
    outline = replace(shown.snapshot.picture.outline, tokens=tokens)
    shown.present(picture=replace(shown.snapshot.picture, outline=outline))
    assert shown.strip.words() == "query 500 “t500”"


def test_the_pointers_line_is_not_red_and_the_legend_gives_way_to_the_key_under_it(qtbot, show):
    shown = show(600, 500)
    shown.present(window=Window(0, 100, 200, 300))
    before = shown.pixels()
    shown.present(hovered=Cell(500, 300))
    pixels = shown.pixels()
    changed = np.flatnonzero((pixels != before).any(0))
    assert changed.min() <= int(300.5 / 600 * pixels.shape[1]) <= changed.max()
    assert changed.max() - changed.min() <= 2
    red, green, blue = ((pixels >> shift & 0xFF).astype(int) for shift in (16, 8, 0))
    assert not ((red > green + 40) & (red > blue + 40)).any()
    assert [mark for mark, _ in shown.strip._legend()] == ["selected", "pointer", "bracket"]
    qtbot.mouseMove(shown.strip, shown.point_of(400))
    assert shown.strip.readout()
    assert shown.strip._legend() == []


def test_a_row_that_is_awaited_is_not_said_to_be_computed(show):
    shown = show(600, 500)
    shown.present(selected=None, row=None)
    shown.present(selected=Cell(3, 3), row=None)
    assert shown.strip.words() == "this row is on its way …"
