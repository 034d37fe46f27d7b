from dataclasses import replace

import numpy as np

from attnviz.frames import Counts, Failure, Finished, Frame, Outline, ProbeAnswer, Progress, Scale, StageShape
from attnviz.session import Cell, Session
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
