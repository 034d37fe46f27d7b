from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel

from attnviz import lesson_files
from attnviz.guide import Guide, Verdict
from attnviz.lesson_files import Words
from attnviz.views.lesson_card import LEAST_HEIGHT, LessonCard

CAT = lesson_files.built_in("cat-eats-fish")
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def card(qtbot):
    card = LessonCard()
    qtbot.addWidget(card)
    card.resize(360, 560)
    card.show()
    qtbot.waitExposed(card)
    return card


@pytest.fixture
def lettered(qapp):
    """The program's own letters and style sheet, for what depends on their size."""
    from attnviz.figure.fonts import load_fonts
    from attnviz.views.theme import apply_theme

    before = qapp.font(), qapp.styleSheet(), qapp.palette()
    load_fonts()
    apply_theme(qapp, False)
    yield
    qapp.setFont(before[0])
    qapp.setStyleSheet(before[1])
    qapp.setPalette(before[2])


def told(signal):
    got = []
    signal.connect(got.append)
    return got


def at(step, language="en"):
    guide = Guide(CAT, language=language)
    guide.jump(step)
    return guide


def test_a_step_is_said_with_its_question_and_its_place(card):
    guide = at("mask")
    card.present(guide.state)
    step = guide.step
    assert card.text().split("\n") == [step.title.en, step.say.en, step.question.ask.en]
    assert card.head.place.text() == f"4 / {len(CAT.steps)}"
    assert card.field.isVisible()
    assert card._unit.isVisible()
    assert not card.show_me.isVisible()
    assert not card.next_lesson.isVisible()
    guide.set_language("zh")
    card.present(guide.state)
    assert card.text().split("\n") == [step.title.zh, step.say.zh, step.question.ask.zh]
    card.resize(640, 260)
    assert card.head.next.text() == "下一步 ▸"
    sections = Guide(lesson_files.built_in("journey"))
    sections.jump("3.5.1.2")
    card.present(sections.state)
    assert card.text().startswith(f"3.5.1.2  {sections.step.title.en}")  # a section's number; another id is no word


def test_a_number_is_typed_answered_wrong_shown_and_answered_right(card, qtbot):
    guide = at("mask")
    given, shown = told(card.answered), []
    card.shown_asked.connect(lambda: shown.append(True))
    card.present(guide.state)
    qtbot.keyClicks(card.field, "67 %")
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    assert given == [67.0]
    guide.answer(given[-1], 0.8808)
    card.present(guide.state)
    assert card.field.text() == "67 %"
    assert guide.step.question.wrong.en in card.text()
    assert card._mark.text() == "×"
    qtbot.mouseClick(card.show_me, LEFT)
    assert shown == [True]
    card.field.setText("88")
    qtbot.mouseClick(card._submit, LEFT)
    assert given == [67.0, 88.0]
    guide.answer(given[-1], 0.8808)
    card.present(guide.state)
    assert guide.step.question.right.en in card.text()
    assert card._mark.text() == "✓"
    assert not card.show_me.isVisible()
    assert not card.field.isEnabled()


def test_the_shown_answer_is_said_in_words(card):
    guide = at("mask")
    guide.answer(67, 0.8808)
    guide.show_me(0.8808)
    card.present(guide.state)
    assert "It is 88 % = 7.39" in card.text()
    assert not card.show_me.isVisible()
    assert not card._mark.isVisible()


def test_what_is_no_number_is_said_and_not_sent(card, qtbot):
    given = told(card.answered)
    guide = at("mask")
    card.present(guide.state)
    qtbot.keyClicks(card.field, "many")
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    assert given == []
    assert "Type a number" in card.text()
    card.field.setText("88")
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    assert given == [88.0]
    assert "Type a number" not in card.text()
    card.present(at("eats").state)
    assert card.field.text() == ""


def test_choices_are_buttons(card, qtbot):
    guide = at("two-orders")
    given = told(card.answered)
    card.present(guide.state)
    assert [choice.accessibleName() for choice in card.choices] == [c.words.en for c in guide.step.question.choices]
    assert not card.field.isVisible()
    qtbot.mouseClick(card.choices[1], LEFT)
    assert given == [1]
    guide.answer(given[-1], 0.0)
    card.present(guide.state)
    assert [choice.isChecked() for choice in card.choices] == [False, True]
    qtbot.mouseClick(card.choices[0], LEFT)
    guide.answer(given[-1], 0.0)
    card.present(guide.state)
    assert guide.state.verdict is Verdict.RIGHT
    assert [choice.isChecked() for choice in card.choices] == [True, False]
    assert not any(choice.isEnabled() for choice in card.choices)
    card.present(at("mask").state)
    assert card.choices == []


def test_a_choice_that_is_not_judged_is_not_left_pressed(card, qtbot):
    guide = at("two-orders")
    card.present(guide.state)
    qtbot.mouseClick(card.choices[0], LEFT)
    card.present(guide.state)
    assert not card.choices[0].isChecked()


def test_a_cell_is_asked_for_in_the_map_until_it_was_found(card):
    guide = at("unmask")
    card.present(guide.state)
    assert card._prompt.isVisible()
    assert not card.field.isVisible()
    guide.answer((1, 2), frozenset({(1, 2)}))
    card.present(guide.state)
    assert not card._prompt.isVisible()


def test_another_picture_offers_the_way_back(card, qtbot):
    steps = told(card.step_asked)
    guide = at("mask")
    guide.answer(88, None)
    card.present(guide.state)
    assert "shows something else" in card.text()
    qtbot.mouseClick(card.head.again, LEFT)
    assert steps == [3]
    assert at("mask").state.index == 3


def test_what_still_runs_is_said_and_the_question_stays_open(card):
    for step, words in ("mask", "The picture is still being computed"), ("rounds", "The study is still running"):
        guide = at(step)
        guide.answer(88, None, running=True)
        card.present(guide.state)
        assert words in card.text()
        assert not card.head.again.isVisible()
        assert card.field.isEnabled()
    guide.answer(88, None)
    card.present(guide.state)
    assert "the study was stopped" in card.text()
    assert card.head.again.isVisible()


def test_back_and_next_say_where_to_go(card, qtbot):
    steps = told(card.step_asked)
    card.present(at("eats").state)
    assert not card.head.back.isEnabled()
    card.present(at("mask").state)
    qtbot.mouseClick(card.head.back, LEFT)
    qtbot.mouseClick(card.head.next, LEFT)
    assert steps == [2, 4]


def test_the_last_step_has_links_onwards(card, qtbot):
    asked = []
    for name in ("next_lesson", "own_text", "check_code"):
        getattr(card, f"{name}_asked").connect(lambda name=name: asked.append(name))
    guide = at("questions")
    card.present(guide.state)
    assert not card.head.next.isEnabled()
    for link in (card.next_lesson, card.own_text, card.check_code):
        qtbot.mouseClick(link, LEFT)
    assert asked == ["next_lesson", "own_text", "check_code"]
    card.present(guide.state, has_next_lesson=False)
    assert not card.next_lesson.isVisible()


def test_a_step_without_a_question_has_no_empty_card(card):
    journey = lesson_files.built_in("journey")
    state = Guide(journey, len(journey.steps) - 1).state
    card.present(state)
    assert not card._ask.isVisible()
    steps = (replace(journey.steps[-1], id="x"), journey.steps[-1])
    card.present(Guide(replace(journey, steps=steps)).state)
    assert not card._question.isVisible()


def test_the_language_is_chosen_by_a_person_alone(card, qtbot):
    chosen = told(card.language_chosen)
    card.present(at("mask", "zh").state)
    assert chosen == []
    assert card.head.languages.buttons["zh"].isChecked()
    qtbot.mouseClick(card.head.languages.buttons["en"], LEFT)
    assert chosen == ["en"]


def test_presenting_emits_nothing(card):
    emitted = []
    for signal in (card.step_asked, card.answered, card.language_chosen):
        signal.connect(emitted.append)
    for step in CAT.steps:
        guide = at(step.id)
        card.present(guide.state)
        guide.answer(-99.0, 1.0)
        card.present(guide.state)
    assert emitted == []


@pytest.mark.parametrize(("width", "height"), [(360, 420), (360, 240), (640, 260), (1000, 300)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_card_keeps_its_size_and_cuts_nothing(lettered, card, qtbot, width, height, language):
    card.resize(width, height)
    for step in CAT.steps:
        guide = at(step.id, language)
        card.present(guide.state)
        guide.answer((9, 9) if step.question.kind == "cell" else -99.0, 1.0)
        card.present(guide.state)
        QApplication.processEvents()
        assert (card.width(), card.height()) == (width, height)
        assert card._body.width() <= card._scroll.viewport().width()
        texts = [one for one in card.findChildren(QLabel) if one.isVisible() and one.wordWrap() and one.text()]
        qtbot.waitUntil(lambda texts=texts: all(one.height() >= one.heightForWidth(one.width()) for one in texts))
        assert all(label.mapTo(card, label.rect().topRight()).x() < width for label in texts), step.id


def test_what_was_said_to_an_answer_comes_into_sight(card, qtbot):
    card.resize(360, 300)
    guide = at("taste")
    card.present(guide.state)
    guide.answer(9, 0.31)
    card.present(guide.state)

    def in_sight():
        top = card.show_me.mapTo(card._scroll.viewport(), card.show_me.rect().topLeft()).y()
        assert top >= 0
        assert top + card.show_me.height() <= card._scroll.viewport().height()

    qtbot.waitUntil(lambda: in_sight() is None)
    guide.next()
    card.present(guide.state)
    assert card._scroll.verticalScrollBar().value() == 0


def test_a_teachers_texts_are_plain_and_may_be_endless(card):
    state = at("mask").state
    rude = "<img src=x><b>&bold</b> " + "x" * 1000
    script = replace(CAT, steps=(replace(CAT.steps[3], say=Words(rude, rude), title=Words(rude, rude)),))
    card.present(Guide(script).state)
    QApplication.processEvents()
    assert rude in card.text()
    assert card._say.textFormat() == Qt.TextFormat.PlainText
    assert card._body.width() <= card._scroll.viewport().width()
    assert card.width() == 360
    assert state.index == 3


# ------------------------------------------------------------------------------------------------ steps and heights


def test_all_steps_stand_in_a_menu_and_the_cross_leaves(card, qtbot):
    steps, left = told(card.step_asked), []
    card.left.connect(lambda: left.append(True))
    card.present(at("mask", "zh").state)
    card.head.fill_steps()
    actions = card.head.steps.actions()
    assert [action.text() for action in actions] == [step.title.zh for step in CAT.steps]
    assert [action.data() for action in actions if action.isChecked()] == [3]
    actions[7].trigger()
    assert steps == [7]
    qtbot.mouseClick(card.head.place, LEFT)
    qtbot.waitUntil(card.head.steps.isVisible)
    card.head.steps.hide()
    assert left == []
    qtbot.mouseClick(card.head.leave, LEFT)
    assert left == [True]


def test_what_was_shown_is_said_in_the_other_language_too(card):
    guide = at("unmask")
    guide.answer((1, 0), frozenset({(1, 2)}))
    guide.show_me(frozenset({(1, 2)}))
    card.present(guide.state)
    assert guide.step.question.show.en in card.text()
    guide.set_language("zh")
    card.present(guide.state)
    assert guide.step.question.show.zh in card.text()
    assert guide.step.question.show.en not in card.text()


@pytest.mark.parametrize(("width", "most"), [(1244, 272), (988, 218)])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", lesson_files.names())
def test_every_step_fits_with_whatever_is_said_to_an_answer(lettered, card, width, most, language, name):
    script = lesson_files.built_in(name)
    for index, step in enumerate(script.steps):
        guide = Guide(script, index, language)
        card.present(guide.state)
        card.fit(width, most)
        height = card.sizeHint().height()
        assert LEAST_HEIGHT <= height <= most
        card.resize(width, height)
        if step.question is not None:
            cell = frozenset({(1, 2)}) if step.question.kind == "cell" else 0.25
            guide.answer((9, 9) if step.question.kind == "cell" else -99.0, cell)
            card.present(guide.state)
            QApplication.processEvents()
            assert card._scroll.verticalScrollBar().maximum() == 0, (step.id, "wrong")
            guide.show_me(cell)
            card.present(guide.state)
        QApplication.processEvents()
        assert card._scroll.verticalScrollBar().maximum() == 0, (step.id, "shown")
        assert card.sizeHint().height() == height


def test_a_step_that_does_not_fit_scrolls_and_a_short_one_is_low(card):
    long = replace(CAT.steps[3], say=Words("many words " * 150, "很多字" * 300))
    card.present(Guide(replace(CAT, steps=(long,))).state)
    card.fit(1244, 272)
    assert card.sizeHint().height() == 272
    card.present(at("fish").state)
    card.fit(1244, 272)
    assert card.sizeHint().height() < 200
    card.fit(1244, 80)
    assert card.sizeHint().height() == LEAST_HEIGHT
