"""The column of pages beside the maps, and what all pages share."""

from dataclasses import dataclass

import pytest
from PySide6.QtWidgets import QLabel, QTabBar

from attnviz.questions import Answer, Question
from attnviz.session import Snapshot
from attnviz.spec import View, make_spec
from attnviz.views import side
from attnviz.views.layouts import LAYOUTS
from attnviz.views.pages.page import Page

SNAPSHOT = Snapshot(spec=make_spec(), view=View())


class Ask(Question, frozen=True, tag="ask"):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Told(Answer):
    pass


class Asking(Page):
    def __init__(self):
        super().__init__()
        self.presented, self.told = [], []

    def present(self, snapshot):
        super().present(snapshot)
        self.presented.append(snapshot)
        if self.active and not self.running:
            self.ask()

    def question(self):
        return Ask()

    def show_answer(self, answer):
        self.told.append(answer)


@pytest.fixture
def page(qtbot):
    one = Asking()
    qtbot.addWidget(one)
    return one


def heard(signal):
    said = []
    signal.connect(said.append)
    return said


def test_a_page_out_of_sight_asks_nothing(page):
    asked = heard(page.asked)
    page.present(SNAPSHOT)
    assert asked == []
    page.set_active(True)
    assert [question.name for question in asked] == ["ask"]


def test_leaving_a_page_calls_its_study_off_and_late_answers_are_not_shown(page):
    off = heard(page.called_off)
    page.present(SNAPSHOT)
    page.set_active(True)
    page.take_answer(Told(1, 3))
    page.set_active(False)
    page.take_answer(Told(2, 3))
    assert off == ["ask"]
    assert [answer.done for answer in page.told] == [1]


def test_the_stop_button_is_there_while_a_study_runs_and_its_room_always(qtbot, page):
    page.present(SNAPSHOT)
    page.show()
    page.set_active(True)
    line = page._line
    assert line.isVisible()
    page.take_answer(Told(1, 4))
    assert (page._progress.value(), page._progress.maximum()) == (1, 4)
    page.take_end()
    assert not line.isVisible()
    assert line.sizePolicy().retainSizeWhenHidden()
    assert not page.running


@pytest.fixture
def column(qtbot):
    own = {name: QLabel(name) for name in ("row", "module", "controls")}
    one = side.Side(own)
    qtbot.addWidget(one)
    one.show()
    one.present(SNAPSHOT)
    return one


def test_every_page_can_be_shown_and_is_made_once(column):
    made = heard(column.page_made)
    for _ in range(2):
        for name in side.PAGES:
            column.show_page(name)
            assert column.current == name
    assert len(made) == len(side.PAGES) - 3
    assert set(column.pages) == set(side.PAGES) - {"row", "module", "controls"}


def test_only_the_page_in_sight_is_active(column):
    for name in column.pages or side.PAGES:
        column.show_page(name)
    active = [name for name, page in column.pages.items() if page.active]
    assert active == [column.current] or column.current not in column.pages
    column.show_page("row")
    assert not any(page.active for page in column.pages.values())


def test_a_tab_says_which_page_was_chosen_and_a_call_does_not(column):
    chosen = heard(column.page_chosen)
    column.show_page("masks")
    assert chosen == []
    column.findChild(QTabBar).setCurrentIndex(side.PAGES.index("heads"))
    assert chosen == ["heads"]
    assert column.current == "heads"


def test_every_page_has_an_action_and_every_action_of_a_page_a_page():
    from attnviz.views.actions import ROWS

    assert {row.name.removeprefix("page_") for row in ROWS if row.group == "Pages"} == set(side.PAGES)


def test_a_page_that_is_not_offered_has_a_tab_while_it_is_in_sight(column):
    tabs = column.findChild(QTabBar)

    def offered():
        return [side.PAGES[place] for place in range(tabs.count()) if tabs.isTabVisible(place)]

    column.offer(("row", "leaks"))
    assert offered() == ["row", "leaks"]
    column.show_page("exam")
    assert offered() == ["row", "exam", "leaks"]
    assert side.PAGES[tabs.currentIndex()] == "exam"
    column.show_page("row")
    assert offered() == ["row", "leaks"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_tabs_of_a_layout_stand_whole(program, layout):
    program.window.use_layout(layout)
    tabs = program.window.side.findChild(QTabBar)
    shown = [place for place in range(tabs.count()) if tabs.isTabVisible(place)]
    assert shown
    assert all(tabs.rect().contains(tabs.tabRect(place)) for place in shown)
    assert {*LAYOUTS[layout].pages} <= {*side.PAGES}
