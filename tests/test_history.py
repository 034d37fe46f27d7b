from attnviz.history import History
from attnviz.spec import View, edited, make_spec

SPEC, VIEW = make_spec(), View()


def test_nothing_to_undo_at_first():
    history = History((SPEC, VIEW))
    assert not history.can_undo
    assert history.undo() is None
    assert history.redo() is None


def test_undo_and_redo_walk_the_same_scenes():
    history = History((SPEC, VIEW))
    scenes = [(edited(SPEC, seed=seed), VIEW) for seed in (1, 2, 3)]
    for number, scene in enumerate(scenes):
        history.record(*scene, at=10.0 * number)
    assert [history.undo() for _ in range(4)] == [scenes[1], scenes[0], (SPEC, VIEW), None]
    assert [history.redo() for _ in range(4)] == [*scenes, None]


def test_a_drag_is_one_step():
    history = History((SPEC, VIEW))
    for step in range(1, 30):
        history.record(edited(SPEC, dropout=step / 100), VIEW, at=step * 0.05)
    assert history.undo() == (SPEC, VIEW)
    assert not history.can_undo


def test_the_same_field_after_a_while_is_another_step():
    history = History((SPEC, VIEW))
    first = edited(SPEC, dropout=0.1)
    history.record(first, VIEW, at=0.0)
    history.record(edited(SPEC, dropout=0.2), VIEW, at=5.0)
    assert history.undo() == (first, VIEW)


def test_an_edit_after_an_undo_starts_a_step_and_forgets_what_was_undone():
    history = History((SPEC, VIEW))
    history.record(edited(SPEC, dropout=0.1), VIEW, at=0.0)
    history.undo()
    history.record(edited(SPEC, dropout=0.3), VIEW, at=0.1)
    assert history.redo() is None
    assert history.undo() == (SPEC, VIEW)


def test_the_view_comes_back_with_its_spec_and_is_no_step_alone():
    history = History((SPEC, VIEW))
    scores = View(stage="scores")
    history.record(SPEC, scores, at=0.0)
    assert not history.can_undo
    history.record(edited(SPEC, mask="none"), VIEW, at=1.0)
    assert history.undo() == (SPEC, scores)


def test_a_switch_pressed_twice_is_two_steps():
    history = History((SPEC, VIEW))
    off = edited(SPEC, mask="none")
    history.record(off, VIEW, at=0.0)
    history.record(SPEC, VIEW, at=0.1)
    assert [history.undo(), history.undo()] == [(off, VIEW), (SPEC, VIEW)]


def test_what_changes_by_itself_is_no_step_and_keeps_what_was_undone():
    history = History((SPEC, VIEW))
    off = edited(SPEC, mask="none")
    history.record(off, VIEW, at=0.0)
    history.undo()
    drawn = edited(SPEC, dropout_seed=7)
    history.replace(drawn, VIEW)
    history.record(drawn, View(stage="scores"), at=1.0)  # another stage alone
    assert history.can_redo
    assert history.redo() == (off, VIEW)
