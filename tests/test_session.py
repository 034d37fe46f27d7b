from dataclasses import replace

import numpy as np
import pytest

from attnviz.frames import (
    Counts,
    Failure,
    Finished,
    Frame,
    Outline,
    ProbeAnswer,
    Progress,
    RowAnswer,
    Scale,
    StageShape,
)
from attnviz.session import Cell, Session, Window, window_of
from attnviz.spec import View, edited, make_spec

SPEC = make_spec()


def outline(generation, panels=("head:0", "head:1"), n=2, stage="weights"):
    return Outline(
        generation, stage, tuple(map(str, range(n))), n, n, (), "", (StageShape("weights", (2, n, n)),), (), panels,
        True, True, "cpu",
    )  # fmt: skip


def frame(generation, panel="head:0", n=2):
    plane = np.zeros((n, n), np.float32)
    return Frame(
        generation, panel, "weights", 0, (0, n), (0, n), 1, plane, plane.astype(np.uint8), plane.astype(np.uint32),
        Scale(0, 1), Counts(),
    )  # fmt: skip


def finish(session, generation):
    session.accept(outline(generation))
    session.accept(frame(generation))
    session.accept(frame(generation, "head:1"))
    session.accept(Finished(generation, 0.1, 1, 2))


def test_another_generations_messages_are_dropped():
    session = Session(SPEC, View())
    first = session.begin(SPEC, View())
    second = session.begin(edited(SPEC, mask="none"), View())
    for message in (outline(first), frame(first), Finished(first, 0, 0, 0), Failure(first, "x", "y")):
        assert not session.accept(message)
    assert session.snapshot().picture is None
    assert session.snapshot().failure is None
    assert session.accept(outline(second))


def test_the_last_good_picture_stays_and_is_marked_old_until_the_first_frame_comes():
    session = Session(SPEC, View())
    finish(session, session.begin(SPEC, View()))
    assert not session.snapshot().stale
    second = session.begin(edited(SPEC, mask="none"), View())
    assert session.snapshot().stale
    assert session.snapshot().picture.generation == second - 1
    session.accept(outline(second))
    session.accept(frame(second))
    snapshot = session.snapshot()
    assert not snapshot.stale
    assert [f.generation for f in snapshot.picture.heads] == [second, second - 1]


def test_frames_of_another_shape_do_not_stay():
    session = Session(SPEC, View())
    finish(session, session.begin(SPEC, View()))
    second = session.begin(edited(SPEC, mask="none"), View())
    session.accept(outline(second, n=3))
    session.accept(frame(second, n=3))
    assert [f.generation for f in session.snapshot().picture.heads] == [second]


def test_space_shows_the_last_complete_picture_of_another_spec():
    session = Session(SPEC, View())
    finish(session, session.begin(SPEC, View()))
    changed = edited(SPEC, mask="none")
    finish(session, session.begin(changed, View()))
    finish(session, session.begin(changed, View(colours="magma")))  # another look is no other state
    session.update(show_before=True)
    assert session.snapshot().shown.spec == SPEC
    session.update(show_before=False)
    assert session.snapshot().shown.spec == changed


def test_after_a_failure_nothing_says_running_and_the_last_good_device_stays():
    session = Session(SPEC, View())
    finish(session, session.begin(SPEC, View()))
    failing = session.begin(edited(SPEC, device="cuda:0"), View())
    session.accept(Progress(failing, 1, 2))
    session.accept(Failure(failing, "cuda:0 ran out of memory.", "Take fewer heads.", device_failed=True))
    snapshot = session.snapshot()
    assert not snapshot.running
    assert snapshot.progress is None
    assert session.last_good_device == "cpu"
    assert snapshot.picture.spec == SPEC


def test_a_probe_answer_for_another_cell_is_not_shown():
    session = Session(SPEC, View())
    generation = session.begin(SPEC, View())
    finish(session, generation)
    session.update(hovered=Cell(1, 0))
    answer = ProbeAnswer(generation, 0, 0, (0.5,), ())
    session.accept(answer)
    assert session.snapshot().probe is None
    session.accept(replace(answer, row=1))
    assert session.snapshot().probe.values == (0.5,)


def test_update_says_whether_anything_changed():
    session = Session(SPEC, View())
    assert session.update(selected=Cell(0, 0))
    assert not session.update(selected=Cell(0, 0))


def test_another_viewport_leaves_the_banner_and_another_spec_takes_it_away():
    session = Session(SPEC, View())
    session.begin(SPEC, View())
    session.update(failure=Failure(1, "x", "y"))
    session.begin(SPEC, View())
    assert session.snapshot().failure is not None
    session.begin(edited(SPEC, mask="none"), View())
    assert session.snapshot().failure is None


# ------------------------------------------------------------------------------------------------------------- window


def part(generation, rows, cols, level=1, panel="head:0"):
    shape = -(-(rows[1] - rows[0]) // level), -(-(cols[1] - cols[0]) // level)
    plane = np.zeros(shape, np.float32)
    return Frame(
        generation, panel, "weights", 0, rows, cols, level, plane, plane.astype(np.uint8), plane.astype(np.uint32),
        Scale(0, 1), Counts(),
    )  # fmt: skip


@pytest.mark.parametrize("view", [
    View(rows=(10, 20), cols=(30, 60)), View(rows=(10, 20)), View(cols=(1, 5)), View(), View(rows=(0, 70)),
])  # fmt: skip
def test_a_views_ranges_are_the_window_and_come_back_from_it(view):
    session = Session(SPEC, view)
    assert session.snapshot().view == View()
    assert session.snapshot().looked_at == view
    session.accept(outline(session.begin(SPEC, View()), n=100))
    known = session.snapshot().looked_at
    assert (known.rows or (0, 100)) == (view.rows or (0, 100))
    assert (known.cols or (0, 100)) == (view.cols or (0, 100))


def test_a_window_beyond_the_map_is_cut_and_one_of_all_of_it_is_none():
    for view, window in (
        (View(rows=(50, 900), cols=(0, 10)), Window(50, 100, 0, 10)), (View(rows=(0, 900)), None),
        (View(rows=(400, 900)), None),
    ):  # fmt: skip
        session = Session(SPEC, view)
        session.accept(outline(session.begin(SPEC, View()), n=100))
        assert session.snapshot().window == window
    assert window_of(View()) is None


def test_the_whole_map_stands_behind_what_is_sharp_however_late_it_comes():
    session = Session(SPEC, View())
    generation = session.begin(SPEC, View(), windowed=True)
    session.accept(outline(generation, panels=("head:0",), n=100))
    coarse, sharp, better = (
        part(generation, (0, 100), (0, 100), 8), part(generation, (20, 40), (20, 40)),
        part(generation, (0, 100), (0, 100), 4),
    )  # fmt: skip
    session.accept(coarse)
    assert session.snapshot().picture.frames["head:0"] is coarse  # at once
    session.accept(sharp)
    session.accept(Finished(generation, 0, 0, 0))
    session.accept(better)
    picture = session.snapshot().picture
    assert (picture.frames["head:0"], picture.backdrops["head:0"]) == (sharp, better)


def test_while_the_window_moves_the_sharp_cells_of_before_stay_and_another_spec_covers_them():
    session = Session(SPEC, View())
    first = session.begin(SPEC, View(), windowed=True)
    session.accept(outline(first, panels=("head:0",), n=100))
    sharp = part(first, (20, 40), (20, 40))
    session.accept(sharp)
    session.accept(Finished(first, 0, 0, 0))
    moved = session.begin(SPEC, View(), windowed=True)
    session.accept(outline(moved, panels=("head:0",), n=100))
    session.accept(part(moved, (0, 100), (0, 100), 8))
    assert session.snapshot().picture.frames["head:0"] is sharp
    other = session.begin(edited(SPEC, mask="none"), View(), windowed=True)
    session.accept(outline(other, panels=("head:0",), n=100))
    coarse = part(other, (0, 100), (0, 100), 8)
    session.accept(coarse)
    assert session.snapshot().picture.frames["head:0"] is coarse
    whole = session.begin(edited(SPEC, mask="none"), View())
    session.accept(outline(whole, panels=("head:0",), n=100))
    last = part(whole, (0, 100), (0, 100), 16)
    session.accept(last)
    assert session.snapshot().picture.frames["head:0"] is last


def test_a_head_whose_whole_map_comes_after_anothers_does_not_keep_the_part_of_the_spec_before():
    session = Session(SPEC, View())
    first = session.begin(SPEC, View(), windowed=True)
    session.accept(outline(first, panels=("head:0", "head:1"), n=100))
    for head in (0, 1):
        session.accept(part(first, (20, 40), (20, 40), panel=f"head:{head}"))
    session.accept(Finished(first, 0, 0, 0))
    other = session.begin(edited(SPEC, mask="none"), View(), windowed=True)
    session.accept(outline(other, panels=("head:0", "head:1"), n=100))
    for head in (0, 1):  # after the first of them, the picture in sight is the new spec's
        whole = part(other, (0, 100), (0, 100), 8, panel=f"head:{head}")
        session.accept(whole)
        picture = session.snapshot().picture
        assert (picture.frames[f"head:{head}"], picture.backdrops[f"head:{head}"]) == (whole, whole)
    sharp = part(other, (20, 40), (20, 40), panel="head:1")
    session.accept(sharp)
    session.accept(part(other, (0, 100), (0, 100), 8, panel="head:1"))
    assert session.snapshot().picture.frames["head:1"] is sharp


def test_work_behind_the_scenes_does_not_say_running():
    session = Session(SPEC, View())
    generation = session.begin(SPEC, View())
    session.accept(Progress(generation, 1, 2, preview=1, previews=3))
    assert session.snapshot().progress.preview == 1
    finish(session, generation)
    assert not session.snapshot().running
    session.accept(Progress(generation, 3, 10, background=True))
    session.accept(frame(generation))
    snapshot = session.snapshot()
    assert (snapshot.running, snapshot.stale, snapshot.picture.complete) == (False, False, True)
    assert snapshot.progress.background
    session.accept(Progress(generation, 10, 10, background=True))
    assert session.snapshot().progress is None
    session.accept(Progress(generation, 1, 2))
    assert session.snapshot().progress is None


def test_row_and_numbers_outlive_a_move_of_the_window_and_no_other_edit():
    session = Session(SPEC, View())
    first = session.begin(SPEC, View())
    finish(session, first)
    session.update(selected=Cell(1, 0))
    row = RowAnswer(first, 1, 0, np.zeros(2), np.ones(2, np.uint8))
    session.accept(row)
    session.accept(ProbeAnswer(first, 1, 0, (0.5,), ()))
    second = session.begin(SPEC, View())
    assert session.snapshot().row.generation == first == session.snapshot().picture.generation
    finish(session, second)
    snapshot = session.snapshot()
    assert snapshot.row.generation == snapshot.probe.generation == second
    assert snapshot.row.values is row.values
    session.begin(edited(SPEC, mask="none"), View())
    assert session.snapshot().row is None
    assert session.snapshot().probe is None


def test_a_row_that_is_no_longer_selected_is_not_kept():
    session = Session(SPEC, View())
    generation = session.begin(SPEC, View())
    finish(session, generation)
    session.update(selected=Cell(0, 0))
    session.accept(RowAnswer(generation, 1, 0, np.zeros(2), np.ones(2, np.uint8)))
    assert session.snapshot().row is None


def test_within_a_gesture_the_state_before_is_that_from_before_its_beginning():
    session = Session(SPEC, View())
    finish(session, session.begin(SPEC, View()))
    for step, same in ((1, False), (2, True), (3, True)):
        finish(session, session.begin(edited(SPEC, dropout=step / 10), View(), same_gesture=same))
    assert session.snapshot().before.spec == SPEC
    finish(session, session.begin(edited(SPEC, dropout=0.9), View()))
    assert session.snapshot().before.spec == edited(SPEC, dropout=0.3)
