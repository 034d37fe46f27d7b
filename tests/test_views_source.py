"""The source editor: every source can be reached, typed and left again without losing anything."""

import math

import pytest
from PySide6.QtCore import Qt

from attnviz.session import Problem, Snapshot
from attnviz.spec import (
    Lesson,
    Pattern,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    Text,
    TypedScores,
    TypedWeights,
    View,
    edited,
    make_spec,
)
from attnviz.views.source_editor import KINDS, Remembered, SourceEditor, kind_of

NAMED = TypedScores(
    scores=((0.123456789, -math.inf), (2.0, 1.0)), values=((1.0, 0.0), (0.1, 0.25)), dims=("cat", "fish"),
    tokens=("a", "b"),
)  # fmt: skip


def snapshot(spec, **fields):
    return Snapshot(spec=spec, view=View(), **fields)


class Asked:
    """An editor on the screen whose edits are presented back to it, as the window does."""

    def __init__(self, editor, spec):
        self.editor, self.specs = editor, []
        editor.spec_edited.connect(self.take)
        editor.present(snapshot(spec))

    def take(self, spec):
        self.specs.append(spec)
        self.editor.present(snapshot(spec, running=True))


@pytest.fixture
def ask(qtbot):
    def start(spec):
        editor = SourceEditor()
        qtbot.addWidget(editor)
        editor.show()
        editor.activateWindow()
        qtbot.waitUntil(editor.isActiveWindow)
        return Asked(editor, spec)

    return start


def retyped(qtbot, edit, text):
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)


# ------------------------------------------------------------------------------------------------------------ typing


def test_control_and_enter_apply_a_text_at_once(qtbot, ask):
    asked = ask(make_spec(Text(text="a b")))
    retyped(qtbot, asked.editor.text_edit, "c d e")
    assert asked.specs == []
    qtbot.keyClick(asked.editor.text_edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert [spec.source for spec in asked.specs] == [Text(text="c d e")]
    assert asked.editor.text_edit.toPlainText() == "c d e"
    assert not asked.editor._pause.isActive()


def test_letters_typed_change_only_the_text_and_are_applied_once(qtbot, ask):
    spec = make_spec(Text(text="a b"), mask="none", dropout=0.25)
    asked = ask(spec)
    retyped(qtbot, asked.editor.text_edit, "mprtn")
    qtbot.waitUntil(lambda: bool(asked.specs))
    assert asked.specs == [edited(spec, source=Text(text="mprtn"))]


def test_what_is_being_typed_outlives_another_snapshot(qtbot, ask):
    asked = ask(make_spec(Text(text="a b")))
    retyped(qtbot, asked.editor.text_edit, "c d")
    asked.editor.present(snapshot(make_spec(Text(text="a b"), mask="none")))
    assert asked.editor.text_edit.toPlainText() == "c d"
    qtbot.waitUntil(lambda: bool(asked.specs))
    assert asked.specs == [make_spec(Text(text="c d"), mask="none")]


def test_the_text_keeps_its_cursor_when_it_comes_back(qtbot, ask):
    asked = ask(make_spec(Text(text="one two")))
    edit = asked.editor.text_edit
    edit.setFocus()
    qtbot.keyClick(edit, Qt.Key.Key_Home)
    qtbot.keyClicks(edit, "x")
    qtbot.waitUntil(lambda: bool(asked.specs))
    assert edit.toPlainText() == "xone two"
    assert edit.textCursor().position() == 1


@pytest.mark.parametrize(("text", "said"), [
    ("0.5 x; 0 2", "'x'"), ("1 2; 3", "row"), ("", "scores is empty"), ("1; 2", "as many rows"),
])  # fmt: skip
def test_a_matrix_that_cannot_be_is_refused_beside_it(qtbot, ask, text, said):
    asked = ask(make_spec(TypedScores(scores=((0.0, 1.0),))))
    retyped(qtbot, asked.editor.scores_edit, text or " ")
    qtbot.keyClick(asked.editor.scores_edit, Qt.Key.Key_Return)
    assert said in asked.editor._problem.text()
    assert asked.editor._problem.isVisible()
    assert asked.specs == []
    asked.editor.present(snapshot(make_spec(TypedScores(scores=((0.0, 1.0),))), running=True))
    assert asked.editor._problem.isVisible()
    assert asked.editor.scores_edit.text() == (text or " ")


def test_enter_applies_a_matrix_at_once(qtbot, ask):
    asked = ask(make_spec(TypedWeights(weights=((0.5, 0.5),))))
    retyped(qtbot, asked.editor.weights_edit, "ones:2")
    qtbot.keyClick(asked.editor.weights_edit, Qt.Key.Key_Return)
    assert [spec.source for spec in asked.specs] == [TypedWeights(weights=((1.0, 1.0), (1.0, 1.0)))]


# ---------------------------------------------------------------------------------------- nothing is lost on the way


def test_editing_one_matrix_leaves_the_others_and_their_names_as_they_were(qtbot, ask):
    asked = ask(make_spec(NAMED))
    retyped(qtbot, asked.editor.values_edit, "1 0; .1 .5")
    qtbot.keyClick(asked.editor.values_edit, Qt.Key.Key_Return)
    (spec,) = asked.specs
    assert spec.source == TypedScores(
        scores=NAMED.scores, values=((1.0, 0.0), (0.1, 0.5)), dims=NAMED.dims, tokens=NAMED.tokens
    )


def test_names_of_dimensions_go_when_there_are_others(qtbot, ask):
    asked = ask(make_spec(NAMED))
    retyped(qtbot, asked.editor.values_edit, "1; 2")
    qtbot.keyClick(asked.editor.values_edit, Qt.Key.Key_Return)
    assert asked.specs[-1].source == TypedScores(scores=NAMED.scores, values=((1.0,), (2.0,)), tokens=NAMED.tokens)


def test_tokens_of_typed_weights_stay_while_there_are_as_many(qtbot, ask):
    asked = ask(make_spec(TypedWeights(weights=((0.5, 0.5),), tokens=("a,b", "c"))))
    retyped(qtbot, asked.editor.weights_edit, "0.25 0.75")
    qtbot.keyClick(asked.editor.weights_edit, Qt.Key.Key_Return)
    assert asked.specs[-1].source == TypedWeights(weights=((0.25, 0.75),), tokens=("a,b", "c"))
    retyped(qtbot, asked.editor.weights_edit, "1 0 0")
    qtbot.keyClick(asked.editor.weights_edit, Qt.Key.Key_Return)
    assert asked.specs[-1].source == TypedWeights(weights=((1.0, 0.0, 0.0),))


def test_typed_tokens_name_the_keys(qtbot, ask):
    asked = ask(make_spec(TypedScores(scores=((0.0, 1.0),))))
    retyped(qtbot, asked.editor.tokens_edit, "cat, fish")
    qtbot.keyClick(asked.editor.tokens_edit, Qt.Key.Key_Return)
    assert asked.specs[-1].source.tokens == ("cat", "fish")


def test_a_scale_with_more_digits_than_shown_is_kept(ask):
    asked = ask(make_spec(RandomQK(length=8, qk_scale=0.123456)))
    asked.editor.length_spin.setValue(9)
    assert [spec.source for spec in asked.specs] == [RandomQK(length=9, qk_scale=0.123456)]
    asked.editor.scale_spin.setValue(2)
    assert asked.specs[-1].source == RandomQK(length=9, qk_scale=2.0)


def test_a_length_that_is_being_typed_is_not_overwritten(qtbot, ask):
    asked = ask(make_spec(RandomEmbeddings(length=8)))
    asked.editor.length_spin.setFocus()
    asked.editor.length_spin.selectAll()
    qtbot.keyClicks(asked.editor.length_spin, "12")
    asked.editor.present(snapshot(make_spec(RandomEmbeddings(length=8), mask="none")))
    assert asked.editor.length_spin.text() == "12"
    qtbot.keyClick(asked.editor.length_spin, Qt.Key.Key_Return)
    assert asked.specs == [make_spec(RandomEmbeddings(length=12), mask="none")]


# ---------------------------------------------------------------------------------------------------- the way back


def test_from_text_with_12_heads_to_cat_eats_fish_and_back(ask):
    text = make_spec(Text(text="a b c"), num_heads=12, implementation="split", dropout=0.25, mask="none")
    asked = ask(text)
    asked.editor.choose("cat-eats-fish")
    assert asked.specs[-1] == make_spec(Lesson(name="cat-eats-fish"), dropout=0.25, mask="none")
    asked.editor.choose("text")
    assert asked.specs[-1] == text


def test_a_real_models_size_keeps_what_it_does_not_set_and_leaves_no_trace(ask):
    text = make_spec(Text(text="a b"), num_heads=3, d_out=6, mask="none", dropout=0.1, dtype="float64", seed=7)
    asked = ask(text)
    asked.editor.choose("gpt2-small")
    small = asked.specs[-1]
    assert small == make_spec(
        Pattern(length=1024, pattern="mixed"), num_heads=12, mask="none", dropout=0.1, dtype="float64", seed=7
    )
    assert (small.d_out, small.d_head, small.num_kv_heads) == (768, 64, 12)
    asked.editor.choose("gpt2-xl")
    assert (asked.specs[-1].num_heads, asked.specs[-1].d_out, asked.specs[-1].mask) == (25, 1600, "none")
    asked.editor.choose("text")
    assert asked.specs[-1] == text


def test_the_pattern_of_before_is_not_the_models(ask):
    pattern = make_spec(Pattern(length=20, pattern="sink"))
    asked = ask(pattern)
    asked.editor.choose("gpt2-small")
    assert asked.editor.kinds.currentData() == "gpt2-small"
    asked.editor.choose("pattern")
    assert asked.specs[-1] == pattern


def test_a_pattern_is_chosen_and_its_length_typed(qtbot, ask):
    asked = ask(make_spec(Pattern(length=64)))
    combo = asked.editor.pattern_combo
    assert combo.currentData() == "mixed"
    combo.setFocus()
    qtbot.keyClick(combo, Qt.Key.Key_Down)
    asked.editor.length_spin.setValue(100)
    assert [spec.source for spec in asked.specs] == [
        Pattern(length=64, pattern="sink"), Pattern(length=100, pattern="sink"),
    ]  # fmt: skip


def test_a_file_of_queries_and_keys_is_shown_by_its_name_and_can_be_come_back_to(ask):
    source = QKFile(
        path="/data/run/layer3.npz", sha256="0" * 64, heads=4, kv_heads=2, queries=8, length=1000, d_head=16
    )  # fmt: skip
    spec = make_spec(source)
    asked = ask(make_spec(Text(text="a b")))
    asked.editor.present(snapshot(spec))
    assert asked.editor.kinds.currentText() == "layer3.npz"
    assert asked.editor.file_label.text() == "layer3.npz: 4 heads × 16, 8 queries of 1,000 tokens"
    asked.editor.choose("text")
    assert asked.specs[-1].num_kv_heads == asked.specs[-1].num_heads == 2
    asked.editor.choose("qk")
    assert asked.specs[-1] == spec


@pytest.mark.parametrize("kind", KINDS)
def test_from_every_source_to_every_other_and_back(kind):
    memory = Remembered()
    start = memory.spec_of(kind)
    memory.note(start)
    for then in KINDS:
        away = memory.spec_of(then)
        assert kind_of(away) == then
        memory.note(away)
        assert memory.spec_of(kind) == start


# ---------------------------------------------------------------------------------------------------- what is shown


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_shows_the_source_and_its_page(ask, kind):
    asked = ask(make_spec(Text(text="x y"), d_out=2))
    asked.editor.choose(kind)
    assert asked.editor.kinds.currentData() == kind
    assert asked.editor._problem.text() == ""
    pages = {"text": asked.editor.text_edit, "scores": asked.editor.scores_edit, "weights": asked.editor.weights_edit,
             "random": asked.editor.length_spin, "random-qk": asked.editor.scale_spin,
             "pattern": asked.editor.pattern_combo}  # fmt: skip
    assert {k for k, page in pages.items() if page.isVisible()} >= ({kind} & set(pages))
    assert asked.editor.text_edit.isVisible() == (kind == "text")
    assert asked.editor.scale_spin.isVisible() == (kind == "random-qk")
    assert asked.editor.pattern_combo.isVisible() == (kind == "pattern")


def test_the_models_sizes_are_told_in_full(ask):
    editor = ask(make_spec()).editor
    kinds = editor.kinds
    tips = [kinds.itemData(kinds.findData(kind), Qt.ItemDataRole.ToolTipRole) for kind in ("gpt2-small", "gpt2-xl")]
    assert tips == ["GPT-2 small's size, not its weights: 12 heads × 64, 1,024 tokens",
                    "GPT-2 XL's size, not its weights: 25 heads × 64, 1,024 tokens"]  # fmt: skip


@pytest.mark.parametrize("field", ["text", "length", "scores", "qk_scale", "lesson"])
def test_a_problem_of_the_source_stands_in_its_card(ask, field):
    asked = ask(make_spec(Text(text="x y")))
    asked.editor.present(snapshot(make_spec(Text(text="x y")), problem=Problem(field, f"{field} is odd")))
    assert asked.editor._problem.text() == f"{field} is odd"
    assert asked.editor._problem.isVisible()


def test_a_problem_of_a_control_is_not_the_sources(ask):
    asked = ask(make_spec(Text(text="x y")))
    asked.editor.present(snapshot(make_spec(Text(text="x y")), problem=Problem("d_out", "d_out is odd")))
    assert not asked.editor._problem.isVisible()


def test_every_editor_has_a_name_for_who_cannot_see_it(ask):
    editor = ask(make_spec()).editor
    fields = (editor.kinds, editor.text_edit, editor.scores_edit, editor.values_edit, editor.tokens_edit,
              editor.weights_edit, editor.length_spin, editor.scale_spin)  # fmt: skip
    names = [field.accessibleName() for field in fields]
    assert all(names)
    assert len(set(names)) == len(names)


def test_another_number_of_heads_is_no_models_size():
    memory = Remembered()
    memory.note(make_spec(Text(text="a"), num_heads=2))
    small = memory.spec_of("gpt2-small")
    assert kind_of(edited(small, mask="none", seed=5)) == "gpt2-small"
    assert kind_of(edited(small, num_heads=13)) == kind_of(edited(small, num_kv_heads=4)) == "pattern"
    memory.note(small)
    assert memory.spec_of("text") == make_spec(Text(text="a"), num_heads=2)


def test_the_lessons_own_fill_and_draw_neither_stay_behind_nor_are_lost():
    memory = Remembered()
    memory.note(make_spec(Text(text="a b"), seed=7, dropout=0.5))
    one = memory.spec_of("one-class")
    assert one == make_spec(Lesson(name="one-class"), dropout=0.5)
    assert (one.fill, one.dropout_seed) == (-1e9, one.seed)
    memory.note(one)
    assert memory.spec_of("text") == make_spec(Text(text="a b"), seed=7, dropout=0.5)
    memory.note(make_spec(Text(text="a b"), fill=-5.0, dropout_seed=9))
    assert (memory.spec_of("journey").fill, memory.spec_of("journey").dropout_seed) == (-5.0, 9)


def test_every_editor_says_what_it_is_for(ask):
    editor = ask(make_spec()).editor
    fields = (editor.kinds, editor.text_edit, editor.scores_edit, editor.values_edit, editor.tokens_edit,
              editor.weights_edit, editor.length_spin, editor.scale_spin, editor.pattern_combo)  # fmt: skip
    assert all(field.toolTip() for field in fields)
