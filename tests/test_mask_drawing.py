"""A mask drawn by hand: what a click, a drag and a fast hand make of it, and where none can be drawn."""

from dataclasses import replace

import numpy as np
import pytest
from made_pictures import picture_of, snapshot_of
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from attnviz.figure import paint
from attnviz.figure.fonts import load_fonts
from attnviz.session import Cell
from attnviz.spec import (
    Causal,
    Drawn,
    Full,
    MaskFile,
    RandomQK,
    TypedWeights,
    View,
    as_drawn,
    edited,
    make_spec,
    visible_runs,
)
from attnviz.views.heatmaps import Heatmaps
from attnviz.views.mask_drawing import between, why_not

N = 8


class Board:
    """Heatmaps of a map of ``n`` tokens whose drawn masks come back to them, as the controller does."""

    def __init__(self, qtbot, n=N, *, shape=None, **fields):
        load_fonts()
        picture = picture_of(n, pixels=512)
        spec = edited(picture.spec, mask_shape=shape or Causal())
        self.maps = Heatmaps()
        self.snapshot = replace(snapshot_of(replace(picture, spec=spec), **fields), spec=spec)
        self.drawn, self.said, self.ended, self.windows, self.selected = [], [], [], [], []
        self.maps.mask_drawn.connect(self.on_drawn)
        self.maps.said.connect(self.said.append)
        self.maps.mask_drawing_ended.connect(lambda: self.ended.append(True))
        self.maps.window_moved.connect(self.windows.append)
        self.maps.cell_selected.connect(self.selected.append)
        self.maps.resize(700, 560)
        qtbot.addWidget(self.maps)
        self.maps.show()
        self.maps.present(self.snapshot)

    def on_drawn(self, mask):
        self.drawn.append(mask)
        self.present(spec=edited(self.snapshot.spec, mask_shape=mask))

    def present(self, **fields):
        self.snapshot = replace(self.snapshot, **fields)
        self.maps.present(self.snapshot)

    def stroke(self, *cells, release=True):
        kinds = [QEvent.Type.MouseButtonPress, *[QEvent.Type.MouseMove] * (len(cells) - 1)]
        for kind, cell in zip(kinds, cells, strict=True):
            self._send(kind, cell)
        if release:
            self._send(QEvent.Type.MouseButtonRelease, cells[-1])

    def _send(self, kind, cell):
        point = self.maps.point_of("head:0", Cell(*cell))
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else Qt.MouseButton.LeftButton
        button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
        event = QMouseEvent(
            kind, QPointF(point), QPointF(self.maps.mapToGlobal(point)), button, held, Qt.KeyboardModifier.NoModifier
        )
        QApplication.sendEvent(self.maps, event)

    def plane(self, n=N):
        mask = as_drawn(self.snapshot.spec.mask_shape, n, n)
        plane = np.zeros((n, n), bool)
        for row in range(n):
            for first, end in visible_runs(mask, row, n, n):
                plane[row, first:end] = True
        return plane

    def pixels(self):
        return self.maps.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


@pytest.fixture
def board(qtbot):
    def made(*args, **fields):
        made_board = Board(qtbot, *args, **fields)
        made_board.maps.draw_mask(True)
        return made_board

    return made


def test_a_click_takes_one_key_away_and_a_second_gives_it_back(board):
    drawing = board()
    drawing.stroke((5, 2))
    wanted = np.tri(N, dtype=bool)
    wanted[5, 2] = False
    np.testing.assert_array_equal(drawing.plane(), wanted)
    drawing.stroke((5, 2))
    np.testing.assert_array_equal(drawing.plane(), np.tri(N, dtype=bool))
    assert [type(mask) for mask in drawing.drawn] == [Drawn, Drawn]
    assert drawing.selected == drawing.windows == []


def test_where_nothing_is_masked_only_what_was_clicked_is_hidden(board):
    drawing = board()
    drawing.present(spec=edited(drawing.snapshot.spec, mask="none"))
    drawing.stroke((2, 4))
    wanted = np.ones((N, N), bool)
    wanted[2, 4] = False
    np.testing.assert_array_equal(drawing.plane(), wanted)
    drawing.present(spec=edited(drawing.snapshot.spec, mask="none"))  # off again: what was drawn is not in force
    drawing.stroke((6, 7), (7, 7))
    wanted = np.ones((N, N), bool)
    wanted[6:, 7] = False
    np.testing.assert_array_equal(drawing.plane(), wanted)


def test_the_words_say_whether_a_drag_hides_or_shows(board, monkeypatch):
    notes = []
    paint_legend = paint.paint_legend

    def recorded(*args, note=None, **fields):
        notes.append(note)
        paint_legend(*args, note=note, **fields)

    monkeypatch.setattr(paint, "paint_legend", recorded)
    drawing = board()

    def said():
        QApplication.processEvents()
        return notes[-1]

    assert said() == "drag: hides cells; on a hidden cell: shows them; Esc leaves"
    drawing.stroke((5, 2), release=False)
    assert said() == "this drag hides cells"
    drawing.stroke((2, 5), release=False)
    assert said() == "this drag shows cells"
    drawing.stroke((5, 3))
    assert said().startswith("drag: hides")
    drawing.maps.draw_mask(False)
    assert said() is None


def test_the_first_cell_decides_for_the_whole_gesture(board):
    drawing = board()
    drawing.stroke((2, 4), (2, 6), (4, 6))  # hidden ones come into sight, the others stay
    wanted = np.tri(N, dtype=bool)
    wanted[2, 4:7] = wanted[3, 6] = wanted[4, 6] = True
    np.testing.assert_array_equal(drawing.plane(), wanted)
    drawing.stroke((2, 3), (2, 7))
    drawing.stroke((7, 0), (7, 7))
    wanted[2, 3:] = True
    wanted[7] = False
    np.testing.assert_array_equal(drawing.plane(), wanted)


def test_a_fast_hand_skips_no_cell(board):
    drawing = board(shape=Full())
    drawing.stroke((0, 0), (7, 7))
    np.testing.assert_array_equal(drawing.plane(), ~np.eye(N, dtype=bool))
    assert [*between(Cell(0, 0), Cell(0, 0))] == [Cell(0, 0), Cell(0, 0)]
    assert [*between(Cell(3, 1), Cell(1, 1))] == [Cell(3, 1), Cell(2, 1), Cell(1, 1)]


def test_the_mask_comes_live_during_the_gesture(board):
    drawing = board()
    drawing.stroke((6, 0), (6, 1), (6, 1), (6, 3), release=False)
    assert len(drawing.drawn) == 3
    assert all(earlier != later for earlier, later in zip(drawing.drawn, drawing.drawn[1:], strict=False))
    assert not drawing.plane()[6, :4].any()


def test_a_drag_that_began_beside_the_maps_draws_nothing(board):
    drawing = board()
    outside = QPointF(2, 2)
    for kind, point in (
        (QEvent.Type.MouseButtonPress, outside),
        (QEvent.Type.MouseMove, QPointF(drawing.maps.point_of("head:0", Cell(3, 1)))),
    ):
        button = Qt.MouseButton.LeftButton
        event = QMouseEvent(kind, point, point, button, button, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(drawing.maps, event)
    assert drawing.drawn == []


def test_esc_leaves_and_then_a_drag_pans_again(board):
    drawing = board()
    override = QKeyEvent(QEvent.Type.ShortcutOverride, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    override.ignore()
    QApplication.sendEvent(drawing.maps, override)
    assert override.isAccepted()  # else the action whose key Esc is would take it
    assert drawing.ended == []
    press = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(drawing.maps, press)
    assert drawing.ended == [True]
    assert not drawing.maps.is_drawing_mask
    override.ignore()
    QApplication.sendEvent(drawing.maps, override)
    assert not override.isAccepted()
    drawing.stroke((3, 1))
    assert drawing.drawn == []
    assert drawing.selected == [Cell(3, 1)]


def test_the_mode_is_seen_and_moves_nothing(qtbot):
    quiet = Board(qtbot)
    before, places = quiet.pixels(), [panel.place for panel in quiet.maps._panels]
    quiet.maps.draw_mask(True)
    assert quiet.pixels() != before
    assert [panel.place for panel in quiet.maps._panels] == places
    assert quiet.maps.cursor().shape() == Qt.CursorShape.CrossCursor
    quiet.maps.draw_mask(False)
    assert quiet.pixels() == before


def test_pixels_of_several_cells_are_not_drawn_on(board):
    drawing = board(n=2048)
    drawing.stroke((1000, 500), (1010, 510))
    assert drawing.drawn == []
    assert "zoom in first" in drawing.said[0]
    assert drawing.maps.is_drawing_mask


@pytest.mark.parametrize(
    ("n", "fields", "words"),
    [
        (8192, {}, "up to 4,096 tokens, but there are 8,192"),
        (8, {"stage": "context"}, "which query sees which key"),
        (8, {"shape": MaskFile(path="a.npy", sha256="0" * 64)}, "a file's"),
        (8, {"source": TypedWeights(weights=((1.0,),))}, "The weights are typed"),
    ],
)
def test_where_none_can_be_drawn_it_says_so_and_the_mode_ends(qtbot, n, fields, words):
    drawing = Board(qtbot, n)
    outline, spec = drawing.snapshot.picture.outline, drawing.snapshot.spec
    if "stage" in fields:
        outline = replace(outline, stage=fields["stage"])
        drawing.present(view=View(stage="context"))
    if "shape" in fields:
        spec = edited(spec, mask_shape=fields["shape"])
    if "source" in fields:
        spec = make_spec(fields["source"])
    drawing.present(picture=replace(drawing.snapshot.picture, outline=outline), spec=spec)
    drawing.maps.draw_mask(True)
    assert words in drawing.said[0]
    assert drawing.ended == [True]
    assert not drawing.maps.is_drawing_mask
    assert why_not(drawing.snapshot) == drawing.said[0]


def test_the_longest_map_can_be_drawn_on(board):
    drawing = board(n=4096, shape=Causal())
    pen = drawing.maps._pen
    pen._mask = as_drawn(Causal(), 4096, 4096)
    pen._draw([Cell(4000, col) for col in range(100)])
    assert visible_runs(drawing.drawn[-1], 4000, 4096, 4096) == ((100, 4001),)


def test_nothing_is_drawn_before_there_is_a_map(qtbot):
    maps = Heatmaps()
    qtbot.addWidget(maps)
    said = []
    maps.said.connect(said.append)
    maps.draw_mask(True)
    assert "no map" in said[0]
    assert why_not(replace(snapshot_of(picture_of(4)), picture=None, spec=make_spec(RandomQK(length=4))))
