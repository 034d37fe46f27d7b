import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz import spec as s
from attnviz.spec import (
    FIELDS,
    AttentionSpec,
    Lesson,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    View,
    edited,
    fixed_by,
    from_json,
    make_spec,
    masked_at,
    stages_of,
    to_json,
)

CAT = Lesson(name="cat-eats-fish")


def test_defaults_are_the_contracts():
    spec = make_spec()
    assert spec.source == Lesson(name="journey")
    assert (spec.mask, spec.num_heads, spec.d_out, spec.implementation, spec.seed) == ("neg-inf", 2, 4, "stacked", 123)
    assert spec.training
    assert (spec.dropout, spec.device, spec.dtype, spec.dropout_seed) == (0.0, "cpu", "float32", 123)
    assert not spec.out_proj
    assert make_spec(implementation="split", d_out=2).out_proj
    text = make_spec(Text(text="a b"), num_heads=3)
    assert (text.d_model, text.d_out) == (192, 192)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"num_heads": 0}, "num_heads", "1 to 1,024"),
        ({"num_heads": -3}, "num_heads", "-3"),
        ({"d_out": 5}, "d_out", "4 or 6"),
        ({"d_out": 1}, "d_out", "give d_out 2"),
        ({"dropout": 1.0}, "dropout", "not including, 1"),
        ({"dropout": math.nan}, "dropout", "nan"),
        ({"dropout": -0.1}, "dropout", "-0.1"),
        ({"dropout": "half"}, "dropout", "half"),
        ({"mask": "triangle"}, "mask", "three-step"),
        ({"dtype": "int8"}, "dtype", "bfloat16"),
        ({"device": "cuda"}, "device", "cuda:0"),
        ({"device": "tpu"}, "device", "cpu"),
        ({"seed": -1}, "seed", "-1"),
        ({"seed": 1 << 64}, "seed", "0 to"),
        ({"batch": 0}, "batch", "1 to"),
        ({"scale": math.inf}, "scale", "finite"),
        ({"scale": "half"}, "scale", "half"),
        ({"d_model": 4}, "d_model", "3 dimensions"),
        ({"num_heads": True}, "num_heads", "int"),
        ({"heads": 2}, "heads", "num_heads"),
    ],
)
def test_invalid_fields_are_refused_in_a_sentence_that_names_field_value_and_remedy(fields, field, words):
    with pytest.raises(SpecError) as caught:
        make_spec(**fields)
    assert caught.value.field == field
    assert words in str(caught.value)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TypedScores(scores=()),
        lambda: TypedScores(scores=((1.0, 2.0), (1.0,))),
        lambda: TypedScores(scores=((math.nan,),)),
        lambda: TypedScores(scores=((math.inf,),)),
        lambda: TypedScores(scores=((1.0,), (2.0,))),
        lambda: TypedScores(scores=((0.0,) * 33,)),
        lambda: TypedScores(scores=((0.0, 1.0),), values=((1.0,),)),
        lambda: TypedScores(scores=((0.0,),), dims=("a",)),
        lambda: TypedScores(scores=((0.0,),), values=((1.0, 2.0),), dims=("a",)),
        lambda: TypedScores(scores=((0.0,),), tokens=("a", "b")),
        lambda: TypedWeights(weights=((-0.5,),)),
        lambda: TypedWeights(weights=((-math.inf,),)),
        lambda: Text(text="  \n"),
        lambda: RandomEmbeddings(length=0),
        lambda: RandomEmbeddings(length=(1 << 20) + 1),
        lambda: RandomQK(length=3, qk_scale=math.inf),
    ],
)
def test_invalid_sources_are_refused(make):
    with pytest.raises(SpecError):
        make()


@pytest.mark.parametrize("field", ["num_heads", "implementation", "out_proj", "qkv_bias", "d_out"])
def test_a_source_worked_by_hand_refuses_what_belongs_to_projections(field):
    value = {"num_heads": 2, "implementation": "split", "out_proj": True, "qkv_bias": True, "d_out": 4}[field]
    with pytest.raises(SpecError, match="no projections"):
        make_spec(CAT, **{field: value})


def test_edits_keep_what_follows_by_default():
    spec = make_spec()
    assert edited(spec, num_heads=3).d_out == 6
    assert edited(spec, seed=7).dropout_seed == 7
    assert edited(edited(spec, dropout_seed=9), seed=7).dropout_seed == 9
    assert edited(spec, implementation="split").out_proj
    assert not edited(edited(spec, implementation="split", out_proj=False), implementation="stacked").out_proj
    with pytest.raises(SpecError, match="heads cannot share"):
        edited(spec, d_out=5)


def test_another_source_takes_over_what_both_can_have():
    spec = edited(make_spec(dropout=0.25, mask="three-step"), source=CAT)
    assert (spec.dropout, spec.mask, spec.num_heads, spec.d_out) == (0.25, "three-step", 1, None)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (make_spec(), "inputs queries keys values scores scaled_scores masked_scores weights context joined output"),
        (
            make_spec(mask="three-step", dropout=0.5),
            (
                "inputs queries keys values scores scaled_scores unmasked_weights unnormalised_weights row_sums "
                "weights dropped_weights context joined output"
            ),
        ),
        (
            make_spec(mask="none", dropout=0.5, dropout_site="context"),
            "inputs queries keys values scores scaled_scores weights context dropped_context joined output",
        ),
        (
            make_spec(scale_after_mask=True),
            "inputs queries keys values scores masked_scores scaled_scores weights context joined output",
        ),
        (
            make_spec(dropout=0.5, training=False, mask="none"),
            "inputs queries keys values scores scaled_scores weights context joined output",
        ),
        (make_spec(CAT, mask="none"), "scaled_scores weights context"),
        (make_spec(TypedScores(scores=((0.0,),))), "scaled_scores masked_scores weights"),
        (make_spec(TypedWeights(weights=((1.0,),)), dropout=0.5), "weights dropped_weights"),
        (make_spec(RandomQK(length=4)), "queries keys scores scaled_scores masked_scores weights"),
    ],
)  # fmt: skip
def test_stages_are_the_contracts(spec, names):
    assert stages_of(spec) == tuple(names.split())


def test_a_cell_is_masked_only_from_the_stage_on_which_the_mask_acts():
    three = make_spec(mask="three-step")
    assert [masked_at(three, n) for n in ("scores", "unmasked_weights", "unnormalised_weights", "weights")] == [
        False, False, True, True,
    ]  # fmt: skip
    book = make_spec(scale_after_mask=True)
    assert masked_at(book, "scaled_scores")
    assert not masked_at(make_spec(), "scaled_scores")
    assert not masked_at(make_spec(mask="none"), "weights")


def test_a_view_of_what_a_spec_lacks_is_refused_with_the_list():
    with pytest.raises(SpecError, match="masked_scores, weights"):
        View(stage="row_sums").check(make_spec())
    with pytest.raises(SpecError, match="0 to 1"):
        View(head=2).check(make_spec())


# -------------------------------------------------------------------------------------------------------------- JSON

numbers = st.floats(allow_nan=False, allow_infinity=False)
square = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(numbers | st.just(-math.inf), min_size=n, max_size=n), min_size=1, max_size=n)
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@st.composite
def specs(draw):
    scores = tuple(map(tuple, draw(square)))
    source = draw(
        st.sampled_from([Lesson(), CAT, RandomEmbeddings(length=9), TypedWeights(weights=((0.5, 0.5),))])
        | st.builds(RandomQK, length=st.integers(1, 50), qk_scale=numbers)
        | st.builds(Text, text=names.filter(str.strip))
        | st.just(TypedScores(scores=scores, tokens=tuple(draw(names) for _ in scores[0])))
    )
    given = {
        "mask": st.sampled_from(["none", "three-step", "neg-inf"]),
        "dropout": st.floats(0, 1, exclude_max=True),
        "dropout_seed": st.integers(0, s.MAX_SEED),
        "dropout_generator": st.sampled_from(["portable", "torch"]),
        "training": st.booleans(),
        "batch": st.integers(1, 3),
        "seed": st.integers(0, s.MAX_SEED),
        "device": st.sampled_from(["cpu", "mps", "cuda:0", "cuda:11"]),
        "dtype": st.sampled_from(["float64", "float32", "float16", "bfloat16"]),
        "scale": st.sampled_from(["auto", "none"]) | numbers,
        "num_heads": st.integers(1, 5),
        "implementation": st.sampled_from(["stacked", "split"]),
        "qkv_bias": st.booleans(),
    }
    return make_spec(
        source, **{f: draw(v) for f, v in given.items() if f not in fixed_by(source) and draw(st.booleans())}
    )


@given(specs(), st.sampled_from(["auto", "log", "unit"]))
def test_every_spec_survives_the_round_trip(spec, norm):
    view = View(norm=norm)
    text = to_json(spec, view)
    assert from_json(text) == (spec, view)
    fields = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert set(fields) == {"version", "view", *FIELDS}


def test_minus_infinity_is_a_string_and_a_token_of_that_name_stays_a_token():
    spec = make_spec(TypedScores(scores=((-math.inf, 0.0),), tokens=("-inf", "b")))
    source = json.loads(to_json(spec))["source"]
    assert source["scores"] == [["-inf", 0.0]]
    assert from_json(to_json(spec))[0] == spec


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("[]", "no JSON object"),
        ('{"colour": 1}', "unknown field 'colour'"),
        ('{"version": 2, "fill": 0}', "made by a newer version"),
        ('{"version": 9}', "newer version"),
        ('{"version": "x"}', "version"),
        ('{"view": 3}', "view"),
        ('{"view": {"zoom": 3}}', "unknown field 'zoom'"),
        ('{"source": 3}', "source"),
        ('{"source": {"kind": "pickle"}}', "pickle"),
        ('{"source": {"kind": "text", "text": ""}}', "text is empty"),
        ('{"source": {"kind": "text", "text": "a", "run": 1}}', "run"),
        ('{"dropout": NaN}', "dropout"),
        ('{"num_heads": "two"}', "num_heads"),
        ("[" * 100_000, "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
    ],
)
def test_a_bad_file_is_refused_in_words(text, words):
    with pytest.raises(SpecError, match=words):
        from_json(text)


def test_every_field_and_no_other_is_read():
    assert set(FIELDS) == set(AttentionSpec.__struct_fields__)
    assert from_json("{}") == (make_spec(), View())
