"""The maps under a hand: what is painted where, what is asked for, and where a wheel, a drag and a click lead."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from made_pictures import frame_of, outline_of, picture_of, row_of, snapshot_of, with_window
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QImage, QNativeGestureEvent, QPointingDevice, QWheelEvent
from PySide6.QtWidgets import QApplication, QGestureEvent, QPinchGesture, QToolTip

from attnviz.figure import layout, paint
from attnviz.figure.fonts import load_fonts
from attnviz.session import Cell, Window
from attnviz.spec import View
from attnviz.views import map_layout, map_mouse, map_panel, navigation
from attnviz.views.heatmaps import Heatmaps

FAR = 1 << 20
NONE = QPoint()


class Shown:
    """Heatmaps on the screen whose windows come back to them, as the controller does."""

    def __init__(self, qtbot, picture, size=(700, 560), **fields):
        self.maps = Heatmaps()
        self.snapshot = snapshot_of(picture, **fields)
        self.windows, self.viewports, self.selected, self.hovered, self.views = [], [], [], [], []
        for signal, taken in (
            (self.maps.viewport_changed, self.viewports), (self.maps.cell_selected, self.selected),
            (self.maps.cell_hovered, self.hovered), (self.maps.view_edited, self.views),
        ):  # fmt: skip
            signal.connect(taken.append)
        self.maps.window_moved.connect(self.move)
        self.maps.resize(*size)
        qtbot.addWidget(self.maps)
        self.maps.show()
        self.maps.present(self.snapshot)

    def move(self, window):
        self.windows.append(window)
        self.present(window=window)

    def present(self, **fields):
        self.snapshot = replace(self.snapshot, **fields)
        self.maps.present(self.snapshot)

    @property
    def window(self):
        shape = self.snapshot.picture.outline.n_queries, self.snapshot.picture.outline.n_keys
        return self.snapshot.window or navigation.whole(shape)

    def rect(self, name="head:0"):
        return next(panel.place.map_rect for panel in self.maps._panels if panel.name == name)

    def place_under(self, point):
        return navigation.cell_at(self.window, self.rect(), point.x(), point.y())

    def wheel(self, point, angle=NONE, pixels=NONE, modifiers=Qt.KeyboardModifier.NoModifier):
        event = QWheelEvent(
            QPointF(point), QPointF(self.maps.mapToGlobal(point)), pixels, angle, Qt.MouseButton.NoButton, modifiers,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(self.maps, event)
        return event

    def pixels(self):
        image = self.maps.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        rows = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4)
        return rows[:, : image.width()].copy()


@pytest.fixture
def show(qtbot):
    load_fonts()
    return lambda picture, **fields: Shown(qtbot, picture, **fields)


# ---------------------------------------------------------------------------------------------------------- painting


@pytest.mark.parametrize("length", [3.3, 40.0, 333.0])
def test_each_pixel_is_the_cell_under_it_a_million_columns_out(show, length):
    end = float(FAR)
    window = Window(end - length - 0.37, end - 0.37, end - length, end)
    picture = with_window(picture_of(FAR), (FAR - 500, FAR), (FAR - 500, FAR))
    shown = show(picture, window=window, show_numbers=False)
    frame, rect, pixels = picture.frames["head:0"], shown.rect(), shown.pixels()
    seen = set()
    for y in range(int(rect.y) + 3, int(rect.bottom) - 3, 11):
        for x in (*range(int(rect.x) + 3, int(rect.right) - 1, 7), int(rect.right) - 1, int(rect.right) - 6):
            row, col = navigation.cell_under(window, rect, (FAR, FAR), x + 0.5, y + 0.5)
            cell_w, cell_h = rect.width / length, rect.height / length
            corner = navigation.point_at(window, rect, row, col)
            inside = 3 < x - corner[0] < cell_w - 3 and 3 < y - corner[1] < cell_h - 3
            if cell_w < 20 or inside:  # between large cells there is a gap
                assert pixels[y, x] == frame.rgb[row - frame.rows[0], col - frame.cols[0]]
                seen.add(col)
    assert FAR - 1 in seen


def test_what_is_sharp_stands_before_the_whole_map_and_leaves_none_of_it_in_sight(show):
    picture = with_window(picture_of(4096), (1000, 1200), (1000, 1200))
    shown = show(picture, window=Window(1000, 1400, 1000, 1400))
    rect, pixels = shown.rect(), shown.pixels()

    def at(row, col):
        x, y = navigation.point_at(shown.window, rect, row + 0.5, col + 0.5)
        return pixels[int(y), int(x)]

    sharp, coarse = picture.frames["head:0"], picture.backdrops["head:0"]
    assert at(1100, 1150) == sharp.rgb[100, 150]
    assert at(1300, 1350) == coarse.rgb[1300 // coarse.level, 1350 // coarse.level]
    assert at(1100, 1350) == coarse.rgb[1100 // coarse.level, 1350 // coarse.level]


def test_only_the_heads_that_came_are_painted_again(qtbot, show):
    picture = picture_of(512, 4)
    shown = show(picture)
    qtbot.waitExposed(shown.maps)
    QApplication.processEvents()

    class Painted(QObject):
        def __init__(self):
            super().__init__()
            self.regions = []

        def eventFilter(self, _watched, event):  # noqa: N802 (Qt's name)
            if event.type() == QEvent.Type.Paint:
                self.regions.append(event.region())
            return False

    painted = Painted()
    shown.maps.installEventFilter(painted)
    shown.maps.present(shown.snapshot)
    QApplication.processEvents()
    assert painted.regions == []
    frames = {**picture.frames, "head:2": frame_of("head:2", (0, 512), (0, 512), 2, seed=9)}
    shown.present(picture=replace(picture, frames=frames, backdrops=frames))
    QApplication.processEvents()
    assert len(painted.regions) == 1
    middles = {
        name: QPointF(shown.rect(name).x + 5, shown.rect(name).y + 5).toPoint() for name in picture.outline.panels
    }
    assert [name for name, point in middles.items() if painted.regions[0].contains(point)] == ["head:2"]


def test_144_heads_have_no_titles_and_each_tells_its_name(show, monkeypatch):
    shown = show(picture_of(256, 144, pixels=64), size=(900, 600))
    assert len(shown.maps.panel_names()) == 144
    assert all(panel.place.title is None for panel in shown.maps._panels)
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, *_: told.append(text))
    point = shown.maps.point_of("head:97", Cell(100, 100))
    QApplication.sendEvent(shown.maps, QHelpEvent(QEvent.Type.ToolTip, point, shown.maps.mapToGlobal(point)))
    assert told == ["head 97"]
    assert not shown.maps.grab().isNull()


# ------------------------------------------------------------------------------------------------------- wheel, pinch


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier])
@pytest.mark.parametrize(("angle", "pixels"), [(120, 0), (30, 0), (0, 40)])
def test_the_wheel_zooms_about_the_pointer(show, modifier, angle, pixels):
    shown = show(picture_of(FAR))
    rect = shown.rect()
    point = QPoint(int(rect.x + rect.width * 0.7), int(rect.y + rect.height * 0.2))
    for _ in range(8):
        before, width = shown.place_under(point), shown.window.right - shown.window.left
        assert shown.wheel(point, QPoint(0, angle), QPoint(0, pixels), modifier).isAccepted()
        assert shown.window.right - shown.window.left < width
        assert shown.place_under(point) == pytest.approx(before, abs=1e-4)
    for _ in range(40):
        shown.wheel(point, QPoint(0, -angle), QPoint(0, -pixels), modifier)
    assert shown.windows[-1] is None  # zooming out ends at the whole map


def test_a_notch_in_parts_is_a_notch(show):
    shown = show(picture_of(4096))
    point = QPoint(int(shown.rect().x + 50), int(shown.rect().y + 50))
    shown.wheel(point, QPoint(0, 120))
    once = shown.window
    shown.move(None)
    for _ in range(8):
        shown.wheel(point, QPoint(0, 15))
    for edge in ("top", "bottom", "left", "right"):
        assert getattr(shown.window, edge) == pytest.approx(getattr(once, edge), abs=1e-6)


def test_the_wheel_goes_down_to_two_cells_and_no_further(show):
    shown = show(picture_of(FAR), window=Window(FAR - 300, FAR, FAR - 300, FAR))
    rect = shown.rect()
    point = QPoint(int(rect.right - 1), int(rect.bottom - 1))
    for _ in range(100):
        shown.wheel(point, QPoint(0, 120))
    assert shown.window.right - shown.window.left == pytest.approx(2)
    assert navigation.cell_under(shown.window, rect, (FAR, FAR), point.x() + 0.5, point.y() + 0.5)[1] == FAR - 1


def test_shift_and_a_wheel_across_pan_sideways(show):
    start = Window(1000, 2000, 1000, 2000)
    shown = show(picture_of(4096), window=start)
    point = QPoint(int(shown.rect().x + 50), int(shown.rect().y + 50))
    shown.wheel(point, QPoint(0, -120), modifiers=Qt.KeyboardModifier.ShiftModifier)
    assert shown.window == Window(1000, 2000, 1125, 2125)
    shown.wheel(point, QPoint(120, 10))
    assert shown.window == start
    shown.wheel(point, pixels=QPoint(-int(shown.rect().width / 10), 0))
    assert shown.window.left == pytest.approx(1100, abs=2)


def test_a_wheel_beside_the_maps_is_left_to_others(show):
    shown = show(picture_of(4096))
    assert not shown.wheel(QPoint(2, 2), QPoint(0, 120)).isAccepted()
    assert shown.windows == []


def test_pinches_zoom_about_their_middle(show):
    shown = show(picture_of(4096))
    rect = shown.rect()
    point = QPoint(int(rect.x + 100), int(rect.y + 200))
    before = shown.place_under(point)
    where = QPointF(point)
    native = QNativeGestureEvent(
        Qt.NativeGestureType.ZoomNativeGesture, QPointingDevice.primaryPointingDevice(), 2, where, where,
        QPointF(shown.maps.mapToGlobal(point)), 0.25, QPointF(),
    )  # fmt: skip
    QApplication.sendEvent(shown.maps, native)
    assert shown.window.right - shown.window.left == pytest.approx(4096 / 1.25)
    assert shown.place_under(point) == pytest.approx(before, abs=1e-6)
    pinch = QPinchGesture()
    pinch.setScaleFactor(2.0)
    pinch.setCenterPoint(QPointF(shown.maps.mapToGlobal(point)))
    event = QGestureEvent([pinch])
    hand = shown.maps.findChild(map_mouse.Hand)
    monkey = {Qt.GestureType.PinchGesture: pinch}
    event.gesture = monkey.get  # the synthetic gesture has no type of its own
    hand._on_gesture(event)
    assert shown.window.right - shown.window.left == pytest.approx(4096 / 2.5)
    assert shown.place_under(point) == pytest.approx(before, abs=1e-6)


# ----------------------------------------------------------------------------------------------------- drag and click


def test_a_drag_pans_with_the_cell_under_the_pointer_and_selects_nothing(qtbot, show):
    shown = show(picture_of(FAR), window=Window(500_000, 500_700, 600_000, 600_700))
    rect = shown.rect()
    start = QPoint(int(rect.x + 200), int(rect.y + 150))
    held = shown.place_under(start)
    qtbot.mousePress(shown.maps, Qt.MouseButton.LeftButton, pos=start)
    for step in (QPoint(4, 2), QPoint(60, -30), QPoint(-80, 90), QPoint(33, 44)):
        qtbot.mouseMove(shown.maps, start + step)
        event_pos = start + step
        if step.manhattanLength() >= QApplication.startDragDistance():
            assert shown.place_under(event_pos) == pytest.approx(held, abs=1e-6)
    qtbot.mouseRelease(shown.maps, Qt.MouseButton.LeftButton, pos=start + QPoint(33, 44))
    assert shown.selected == []
    assert shown.windows


def test_a_drag_stops_at_the_edge_of_the_map(qtbot, show):
    shown = show(picture_of(4096), window=Window(0, 500, 3596, 4096))
    start = QPoint(int(shown.rect().x + 50), int(shown.rect().y + 50))
    qtbot.mousePress(shown.maps, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(shown.maps, start + QPoint(-40, 120))
    qtbot.mouseRelease(shown.maps, Qt.MouseButton.LeftButton, pos=start + QPoint(-40, 120))
    assert shown.window == Window(0, 500, 3596, 4096)


def test_a_click_selects_and_a_double_click_zooms_about_the_cell(qtbot, show):
    shown = show(picture_of(64))
    point = shown.maps.point_of("head:0", Cell(20, 40))
    qtbot.mouseClick(shown.maps, Qt.MouseButton.LeftButton, pos=point)
    assert shown.selected == [Cell(20, 40)]
    before = shown.place_under(point)
    qtbot.mouseDClick(shown.maps, Qt.MouseButton.LeftButton, pos=point)
    assert shown.window.right - shown.window.left == pytest.approx(64 / 2.25)
    assert shown.place_under(point) == pytest.approx(before, abs=0.3)
    assert shown.selected == [Cell(20, 40)]


def test_a_click_on_a_thumbnail_chooses_its_head_and_keeps_the_looks(qtbot, show):
    view = View(head=1, pooling="mean", norm="log")
    shown = show(picture_of(128, 8, view=view))
    assert shown.maps.panel_names()[0] == "head:1"
    qtbot.mouseClick(shown.maps, Qt.MouseButton.LeftButton, pos=shown.maps.point_of("head:5", Cell(60, 60)))
    assert shown.views == [View(head=5, pooling="mean", norm="log")]
    assert shown.selected == []


def test_hovering_says_each_cell_once_and_the_end(qtbot, show):
    shown = show(picture_of(16))
    for cell in (Cell(3, 4), Cell(3, 4), Cell(4, 4)):
        qtbot.mouseMove(shown.maps, shown.maps.point_of("head:0", cell))
    QApplication.sendEvent(shown.maps, QEvent(QEvent.Type.Leave))
    assert shown.hovered == [Cell(3, 4), Cell(4, 4), None]


# ----------------------------------------------------------------------------------------------------------- keyboard


def test_keys_zoom_about_the_selected_cell_and_pan_by_quarters(show):
    shown = show(picture_of(1000), selected=Cell(100, 900))
    point = shown.maps.point_of("head:0", Cell(100, 900))
    shown.maps.zoom_in()
    assert (shown.maps.point_of("head:0", Cell(100, 900)) - point).manhattanLength() <= 2
    width = shown.window.right - shown.window.left
    shown.maps.pan(-1, 1)
    left = shown.window.left
    shown.maps.pan(1, 0)
    assert shown.window.left - left == pytest.approx(width / 4)
    shown.maps.zoom_all()
    assert shown.windows[-1] is None


def test_going_to_a_cell_shows_it_at_a_cell_a_pixel_or_nearer(show):
    shown = show(picture_of(FAR))
    shown.maps.go_to(Cell(FAR - 1, FAR - 3))
    rect = shown.rect()
    assert shown.window.right - shown.window.left == pytest.approx(rect.width * shown.maps.devicePixelRatioF())
    near = Window(10, 30, 10, 30)
    shown.move(near)
    shown.maps.go_to(Cell(500, 700))
    assert shown.window == Window(490.5, 510.5, 690.5, 710.5)


# ---------------------------------------------------------------------------------------------------- what is asked for


def test_the_whole_map_is_asked_for_once_and_a_part_with_a_margin(qtbot, show):
    shown = show(picture_of(4096, 2))
    qtbot.waitUntil(lambda: len(shown.viewports) == 1)
    assert (shown.viewports[0].rows, shown.viewports[0].cols, shown.viewports[0].heads) == (None, None, None)
    shown.move(Window(1000, 1200, 2000, 2200))
    qtbot.waitUntil(lambda: len(shown.viewports) == 2)
    asked = shown.viewports[1]
    assert 900 < asked.rows[0] < 1000
    assert 1200 < asked.rows[1] < 1300
    assert 1900 < asked.cols[0] < 2000
    assert 2200 < asked.cols[1] < 2300


def test_while_a_hand_moves_the_last_window_is_asked_for_in_the_end(qtbot, show):
    shown = show(picture_of(FAR))
    rect = shown.rect()
    point = QPoint(int(rect.x + 300), int(rect.y + 100))
    for _ in range(60):
        shown.wheel(point, QPoint(0, 60))
    window = shown.window

    def covered():
        asked = shown.viewports[-1]
        assert asked.rows is not None
        assert asked.rows[0] <= window.top
        assert window.bottom <= asked.rows[1] <= window.bottom + (window.bottom - window.top)
        assert asked.cols[0] <= window.left
        assert window.right <= asked.cols[1] <= window.right + (window.right - window.left)

    qtbot.waitUntil(covered)
    assert len(shown.viewports) < 60


def test_the_large_head_is_asked_for_first(qtbot, show):
    shown = show(picture_of(512, 8, view=View(head=3)))
    qtbot.waitUntil(lambda: bool(shown.viewports))
    assert shown.viewports[-1].heads == (3, 0, 1, 2, 4, 5, 6, 7)


# ------------------------------------------------------------------------------------------------------------ minimap


def test_the_small_map_is_there_while_a_part_is_shown_and_moves_nothing(qtbot, show):
    shown = show(picture_of(4096))
    minimap = shown.maps._minimap
    assert not minimap.isVisible()
    before = shown.rect()
    shown.move(Window(1000, 1200, 2000, 2200))
    assert minimap.isVisible()
    assert shown.rect() == before
    taken = [panel.place.map_rect for panel in shown.maps._panels] + [shown.maps._plan.bar_column]
    corner = paint.QRectF(minimap.geometry())
    assert not any(paint.QRectF(*box).intersects(corner) for box in taken)
    assert paint.QRectF(shown.maps.rect()).contains(corner)
    assert min(minimap.mark().width(), minimap.mark().height()) >= 7
    qtbot.mouseClick(
        minimap, Qt.MouseButton.LeftButton, pos=QPoint(minimap.width() * 3 // 4, minimap.height() // 4)
    )  # fmt: skip
    middle = (shown.window.top + shown.window.bottom) / 2, (shown.window.left + shown.window.right) / 2
    assert middle == pytest.approx((1024, 3072), abs=60)
    assert shown.window.right - shown.window.left == pytest.approx(200)
    minimap.grab()
    shown.maps.zoom_all()
    assert not minimap.isVisible()


def test_a_small_map_needs_no_smaller_one(show):
    shown = show(picture_of(8), window=Window(0, 4, 0, 4))
    assert not shown.maps._minimap.isVisible()


# --------------------------------------------------------------------------------------------------------------- text


def test_the_copied_row_is_a_line_a_head_where_all_stand_whole_else_the_whole_row_of_one(show):
    whole = show(picture_of(40, 2), selected=Cell(7, 3))
    lines = whole.maps.row_as_text().split("\n")
    assert [len(line.split("\t")) for line in lines] == [40, 40]
    frame = whole.snapshot.picture.frames["head:1"]
    assert [float(number) for number in lines[1].split("\t")] == frame.values[7].tolist()
    row = row_of(900, 4096)
    part = with_window(picture_of(4096, 2), (890, 910), (0, 64))
    shown = show(part, selected=Cell(900, 3), window=Window(890, 910, 0, 64), row=row)
    assert [float(number) for number in shown.maps.row_as_text().split("\t")] == row.values.tolist()
    shown.present(row=None)
    assert [len(line.split("\t")) for line in shown.maps.row_as_text().split("\n")] == [64, 64]
    shown.present(selected=None)
    assert shown.maps.row_as_text() == ""


def test_before_there_is_a_picture_nothing_can_be_moved(qtbot):
    maps = Heatmaps()
    qtbot.addWidget(maps)
    moved = []
    maps.window_moved.connect(moved.append)
    maps.zoom_in()
    maps.zoom_all()
    maps.pan(1, 1)
    maps.go_to(Cell(3, 3))
    assert moved == []
    assert not maps.grab().isNull()
    assert maps.current_head() == 0
    assert maps.row_as_text() == ""
    assert outline_of(3).n_keys == 3


@pytest.mark.parametrize("n_heads", [1, 2, 6, 12, 25, 144])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("size", [(470, 380), (628, 377), (758, 477), (908, 560), (1550, 900)])
def test_the_corner_for_the_small_map_lies_over_nothing(n_heads, large, size):
    picture = picture_of(300, n_heads, pixels=64)
    arrangement = map_layout.arrangement_of(picture, one_large=large)
    plan = layout.screen_layout(picture.outline, n_heads, size, large_first=arrangement.large and n_heads > 1)
    plan, corner = map_layout.with_minimap(plan, arrangement)
    boxes = plan.boxes if corner is None else (*plan.boxes, corner)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    assert all(layout.Box(0, 0, *size).holds(box) for box in boxes)
    assert plan.bar_column.holds(plan.bar)
    assert corner is not None or size[1] < 400


def test_nothing_is_asked_for_a_picture_that_is_not_the_one_wanted(qtbot, show):
    picture, other = picture_of(600, 2), picture_of(500, 2)
    shown = show(picture)
    qtbot.waitUntil(lambda: len(shown.viewports) == 1)
    shown.present(spec=other.spec, stale=True, window=None)  # another source was asked for and has sent nothing yet
    shown.present(spec=picture.spec, stale=False, last=other, show_before=True)
    shown.present(show_before=False)
    shown.present(window=Window(10, 60, 10, 60), show_numbers=False)
    qtbot.waitUntil(lambda: len(shown.viewports) > 1)
    assert len(shown.viewports) == 2
    assert shown.viewports[1].rows is not None


# ------------------------------------------------------------------------------------------- the state before, words


def test_a_number_that_changed_keeps_the_one_before_below_it(show):
    now, old = picture_of(3, tokens=tuple("abc")), picture_of(3, tokens=tuple("abc"), seed=5)
    shown = show(now)
    alone = shown.pixels()
    shown.present(last=old)
    both = shown.pixels()
    rect = shown.rect()
    changed = np.argwhere(alone != both)
    assert len(changed)
    top, left, bottom, right = (*changed.min(0), *changed.max(0))
    assert rect.y < top < bottom < rect.bottom
    assert rect.x < left < right < rect.right
    shown.present(show_numbers=False)
    hidden = shown.pixels()
    shown.present(last=None)
    np.testing.assert_array_equal(hidden, shown.pixels())


def test_while_a_new_picture_is_awaited_the_numbers_before_stay(show):
    now, old = picture_of(3, tokens=tuple("abc")), picture_of(3, tokens=tuple("abc"), seed=5)
    shown = show(now, last=old)
    before = shown.pixels()
    shown.present(stale=True, last=now)  # as a session does when it begins
    np.testing.assert_array_equal(before, shown.pixels())


def test_numbers_of_another_sentence_are_no_numbers_before(show):
    now, other = picture_of(3, tokens=tuple("abc")), picture_of(3, tokens=tuple("abd"), seed=5)
    shown = show(now)
    alone = shown.pixels()
    shown.present(last=other)
    np.testing.assert_array_equal(alone, shown.pixels())


def test_the_mask_moves_no_map(show):
    now, old = picture_of(6, 3), picture_of(6, 3, seed=5, future_hidden=False)
    shown = show(now)
    places = [panel.place for panel in shown.maps._panels]
    shown.present(last=old, selected=Cell(1, 2))
    shown.present(show_before=True)
    assert [panel.place for panel in shown.maps._panels] == places


@pytest.mark.parametrize(("fields", "word"), [({}, "before"), ({"pinned": True}, "A")])
def test_the_state_before_says_so_in_the_maps_corner(show, fields, word):
    now, old = picture_of(3), picture_of(3, seed=5)
    shown = show(now, last=old, pinned=old if fields else None)
    assert map_panel.corner_word(shown.maps._panels[0], shown.snapshot) == ""
    shown.present(show_before=True)
    assert map_panel.corner_word(shown.maps._panels[0], shown.snapshot) == word
    rect, pixels = shown.rect(), shown.pixels()
    assert pixels[int(rect.y) + 8, int(rect.right) - 18] == paint.LIGHT.accent.rgb()


def test_a_preview_says_so_in_the_maps_corner(show):
    picture = picture_of(512)
    frames = {"head:0": replace(picture.frames["head:0"], exact=False)}
    shown = show(replace(picture, frames=frames))
    assert map_panel.corner_word(shown.maps._panels[0], shown.snapshot) == "preview"
    shown.present(picture=picture)
    assert map_panel.corner_word(shown.maps._panels[0], shown.snapshot) == ""


def test_the_window_follows_the_current_cell(qtbot, show):
    shown = show(picture_of(1000), selected=Cell(500, 500), window=Window(490, 510, 490, 510))
    shown.present(selected=Cell(509, 500))
    QApplication.processEvents()
    assert shown.windows == []  # it is in sight
    shown.present(selected=Cell(510, 500))
    qtbot.waitUntil(lambda: len(shown.windows) == 1)
    assert shown.window.top <= 510
    assert shown.window.bottom >= 511
    assert (shown.window.left, shown.window.right) == (490, 510)
    shown.present(selected=Cell(999, 999))
    qtbot.waitUntil(lambda: len(shown.windows) == 2)
    assert shown.window == Window(980, 1000, 980, 1000)


def test_a_window_that_a_hand_moves_does_not_run_back_to_the_current_cell(show):
    shown = show(picture_of(1000), selected=Cell(500, 500), window=Window(490, 510, 490, 510))
    shown.move(Window(0, 20, 0, 20))
    shown.present(hovered=Cell(3, 3))
    QApplication.processEvents()
    assert shown.window == Window(0, 20, 0, 20)


def test_enter_makes_a_head_large_and_says_so_where_it_is(show):
    shown = show(picture_of(16, 4))
    said = []
    shown.maps.said.connect(said.append)
    shown.maps.show_current_large()
    assert shown.views == [View(head=0)]
    shown.present(picture=picture_of(16, 4, view=View(head=2)), view=View(head=2))
    shown.maps.show_current_large()
    assert said == ["Head 2 is large already: H takes the next one."]
    shown.present(picture=picture_of(16, 4), view=View())
    shown.maps.show_one_large(True)  # as in Learn
    shown.maps.show_current_large()
    assert said[1:] == ["Head 0 is large already: H takes the next one."]
    shown.present(picture=picture_of(16), view=View())
    shown.maps.show_current_large()
    assert "one map only" in said[-1]
    assert len(shown.views) == 1


def test_cells_too_small_for_numbers_say_so(show):
    shown = show(picture_of(512))
    said = []
    shown.maps.said.connect(said.append)
    shown.maps.tell_about_numbers()
    assert "zoom in" in said[0]
    shown.present(window=Window(0, 8, 0, 8))
    shown.maps.tell_about_numbers()
    assert len(said) == 1


def test_one_head_alone_with_larger_type(show):
    shown = show(picture_of(6, 12))
    shown.maps.show_alone(True, 2.0)
    assert shown.maps.panel_names() == ("head:0",)
    assert shown.maps._panels[0].place.label_px >= 24
    shown.maps.show_alone(False)
    assert len(shown.maps.panel_names()) == 12


def test_the_sums_say_that_percents_are_rounded(qtbot, monkeypatch):
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, *_: told.append(text))
    picture = picture_of(6)
    frame = picture.frames["head:0"]
    summed = replace(frame, row_sums=frame.values.sum(1, dtype=np.float64))
    shown = Shown(qtbot, replace(picture, frames={"head:0": summed}))
    place = shown.maps._panels[0].place

    def tip(box):
        point = QPoint(round(box.x + box.width / 2), round(box.y + box.height / 2))
        QApplication.sendEvent(shown.maps, QHelpEvent(QEvent.Type.ToolTip, point, shown.maps.mapToGlobal(point)))
        return told[-1]

    for box in (place.sums, place.sums_header):
        assert tip(box) == "Σ is the sum of the row itself. The percents are rounded: they may add up to 99 or 101."
    shown.present(decimals=4)
    assert tip(place.sums) == "Σ is the sum of the row itself."
    assert tip(place.map_rect) == ""


def test_the_maps_let_a_small_window_be_small(qtbot):
    shown = Shown(qtbot, picture_of(6, heads=2), size=(10, 10))
    assert (shown.maps.width(), shown.maps.height()) == (240, 150)
    assert all(panel.place.map_rect.width > 0 for panel in shown.maps._panels)
    shown.maps.grab()
