"""Matrices typed by hand: what is read, what is refused in a sentence, and that nothing is lost on the way back."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.matrices import matrix_text, parse_matrix
from attnviz.spec import MAX_TYPED_TOKENS, SpecError, TypedScores

CAT_EATS_FISH = ((0.5, 0.5, 1.0), (0.0, 2.0, 1.0), (0.5, 0.5, 0.0))


@pytest.mark.parametrize("text", [
    "0.5 0.5 1; 0 2 1; 0.5 0.5 0",
    ".5,.5,1;0,2,1;.5,.5,0",
    "0.5, 0.5, 1\n0, 2, 1\n0.5, 0.5, 0\n",
    "  0.5\t0.5 , 1 ;0 2 1; 5e-1 0.5 0; ",
])  # fmt: skip
def test_rows_are_parted_by_semicolons_or_lines_and_numbers_by_spaces_or_commas(text):
    assert parse_matrix(text) == CAT_EATS_FISH


@pytest.mark.parametrize("word", ["-inf", "-INF", "−inf", "-∞", "−∞"])
def test_minus_infinity_is_read_however_it_is_written(word):
    assert parse_matrix(f"{word} 0") == ((-math.inf, 0.0),)


def test_the_typographic_minus_is_a_minus():
    assert parse_matrix("−1.5 2") == ((-1.5, 2.0),)


@pytest.mark.parametrize("side", [1, 6, MAX_TYPED_TOKENS])
def test_ones_of_a_size(side):
    assert parse_matrix(f" ones:{side} ") == ((1.0,) * side,) * side


@pytest.mark.parametrize(("text", "word"), [
    ("0.5 x; 0 2", "'x'"),
    ("1,,2", "comma"),
    ("1 2,", "comma"),
    (", 1 2", "comma"),
    ("ones:0", "ones:0"),
    ("ones:33", f"ones:{MAX_TYPED_TOKENS}"),
    ("ones:-1", "'ones:-1'"),
    ("ones:" + "9" * 5000, "ones:6"),
])  # fmt: skip
def test_what_is_no_matrix_is_refused_with_the_field_and_the_word(text, word):
    with pytest.raises(SpecError) as refused:
        parse_matrix(text, "values")
    assert refused.value.field == "values"
    assert str(refused.value).startswith("values ")
    assert word in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_comma_is_never_a_decimal_sign():
    assert parse_matrix("3 0,5") == ((3.0, 0.0, 5.0),)


@pytest.mark.parametrize("text", ["", " \n ", ";;", "nan 1", "inf 1", "1e999 1"])
def test_what_parses_but_cannot_be_computed_is_refused_by_the_spec(text):
    with pytest.raises(SpecError) as refused:
        TypedScores(scores=parse_matrix(text))
    assert refused.value.field == "scores"


numbers = st.one_of(st.floats(allow_nan=False), st.just(-math.inf), st.integers(-9, 9).map(float))
matrices = st.integers(1, 5).flatmap(lambda width: st.lists(st.tuples(*[numbers] * width), min_size=1, max_size=5))


@given(matrices.map(tuple))
def test_every_matrix_survives_its_text(matrix):
    assert parse_matrix(matrix_text(matrix)) == matrix


def test_the_text_is_as_short_as_a_person_would_type_it():
    assert matrix_text(CAT_EATS_FISH) == "0.5 0.5 1; 0 2 1; 0.5 0.5 0"
    assert matrix_text(((-math.inf, 0.1),)) == "-inf 0.1"
