"""Words in lines, and how large type is on a sheet."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.figure.fonts import load_fonts, sized, text_width
from attnviz.figure.units import unit_of
from attnviz.figure.words import SEPARATOR, wrapped
from attnviz.spec import Paper


@pytest.fixture
def font(qapp):
    load_fonts()
    return sized(13)


def test_words_that_fit_are_one_line(font):
    assert wrapped(font, "", 100) == ()
    assert wrapped(font, "a · b", 1000) == ("a · b",)
    assert wrapped(font, "one\ntwo", 1000) == ("one", "two")


def test_a_line_breaks_between_parts_first(font):
    text = "three-step mask · dropout 0.5 on weights · 2 heads · float32"
    width = text_width(font, "three-step mask · dropout 0.5 on") + 1
    lines = wrapped(font, text, width)
    assert lines[:1] == ("three-step mask",)
    assert lines[1].startswith("dropout 0.5 on weights")
    assert SEPARATOR.join(lines) == text


def test_a_part_longer_than_a_line_breaks_at_spaces(font):
    lines = wrapped(font, "x · what is hidden weighs exactly nothing", text_width(font, "hidden weighs exactly"))
    assert " ".join(lines) == "x · what is hidden weighs exactly nothing"
    assert len(lines) >= 2


def test_chinese_breaks_anywhere_but_before_a_closing_mark(font):
    text = "猫吃鱼，鱼不吃猫。"
    lines = wrapped(font, text, text_width(font, "猫吃鱼") + 1)
    assert "".join(lines) == text
    assert len(lines) > 2
    assert all(line[0] not in "，。" for line in lines)


def test_a_word_longer_than_a_line_is_cut_with_its_accents(font):
    word = "e\u0301" * 40
    lines = wrapped(font, word, 50)
    assert "".join(lines) == word
    assert all(line[0] == "e" and text_width(font, line) <= 50.001 for line in lines)


def test_a_long_word_is_cut_after_its_hyphen_first(font):
    assert wrapped(font, "three-step", text_width(font, "three-s") + 1) == ("three-", "step")
    assert wrapped(font, "a three-step", text_width(font, "three-step") + 1) == ("a", "three-step")


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="ab猫。“ ·,0", max_size=60), width=st.integers(20, 300))
def test_no_line_is_too_long_and_nothing_is_lost(qapp, text, width):
    load_fonts()
    font = sized(13)
    lines = wrapped(font, text, width)
    bare = [char for char in text if char not in " ·"]
    assert [char for line in lines for char in line if char not in " ·"] == bare
    for line in lines:
        assert line == line.strip(" ")
        assert text_width(font, line) <= width + 1 or len(line) <= 4  # one character with its marks


def test_type_grows_with_a_screen_and_stays_on_paper():
    assert unit_of(Paper(width=1120, height=700)) == 1.0
    assert unit_of(Paper(width=2240, height=1400)) == 2.0
    assert unit_of(Paper(width=300, height=200)) == 0.5
    small, large = Paper(width=1004, height=709, dpi=300.0), Paper(width=3000, height=2000, dpi=300.0)
    assert unit_of(small) == unit_of(large)
    assert 13 * unit_of(small) * 72 / 300 == pytest.approx(7.0)
    assert unit_of(Paper(width=1004, height=709, dpi=600.0)) == 2 * unit_of(small)
    assert unit_of(Paper(type_scale=1.5)) == 1.5 * unit_of(Paper())
