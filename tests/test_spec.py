import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz import spec as s
from attnviz.spec import (
    FIELDS,
    AttentionSpec,
    Blocks,
    Causal,
    Drawn,
    Full,
    Lesson,
    MaskFile,
    PadLeft,
    PadRight,
    Pattern,
    Prefix,
    QKFile,
    RandomEmbeddings,
    RandomQK,
    SlidingWindow,
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
READ = QKFile(path="/data/qk.npz", sha256="0" * 64, heads=8, kv_heads=2, queries=5, length=9, d_head=16)


def fields_of(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


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
    assert (text.num_kv_heads, text.soft_cap, text.fill, text.mask_shape) == (3, None, -math.inf, Causal())
    assert (View().rows, View().cols, View().pooling) == (None, None, "max")


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
        ({"num_kv_heads": 0}, "num_kv_heads", "1 to 2"),
        ({"num_kv_heads": 3}, "num_kv_heads", "1 to 2"),
        ({"num_heads": 4, "num_kv_heads": 3}, "num_kv_heads", "a number that divides 4"),
        ({"num_kv_heads": "few"}, "num_kv_heads", "few"),
        ({"soft_cap": 0.0}, "soft_cap", "above 0"),
        ({"soft_cap": -1.0}, "soft_cap", "-1"),
        ({"soft_cap": math.inf}, "soft_cap", "inf"),
        ({"soft_cap": math.nan}, "soft_cap", "nan"),
        ({"soft_cap": 5.0, "scale_after_mask": True}, "soft_cap", "scale_after_mask"),
        ({"fill": math.inf}, "fill", "-inf or a finite number"),
        ({"fill": math.nan}, "fill", "nan"),
        ({"fill": "low"}, "fill", "low"),
        ({"mask_shape": "causal"}, "mask_shape", "causal"),
        ({"mask": "subtract"}, "mask", "multiply, add"),
        ({"projection": "square"}, "projection", "linear, rand, none"),
        ({"projection": "rand", "qkv_bias": True}, "qkv_bias", "projection is rand"),
        ({"projection": "none", "num_heads": 2}, "num_heads", "give 1"),
        ({"top_k": 0}, "top_k", "1 to 1,048,576"),
        ({"top_k": 1.5}, "top_k", "1.5"),
        ({"top_k": 3, "mask": "multiply"}, "top_k", "none, neg-inf or add"),
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
        lambda: Pattern(length=0),
        lambda: Pattern(length=(1 << 20) + 1),
        lambda: QKFile(**{**fields_of(READ), "kv_heads": 3}),
        lambda: QKFile(**{**fields_of(READ), "kv_heads": 9}),
        lambda: QKFile(**{**fields_of(READ), "queries": 10}),
        lambda: QKFile(**{**fields_of(READ), "length": 0}),
        lambda: QKFile(**{**fields_of(READ), "d_head": 0}),
        lambda: QKFile(**{**fields_of(READ), "heads": 2000}),
        lambda: SlidingWindow(width=0),
        lambda: Prefix(length=-1),
        lambda: PadLeft(count=-1),
        lambda: PadRight(count=-1),
        lambda: Blocks(lengths=()),
        lambda: Blocks(lengths=(3, 0)),
        lambda: Drawn(runs=((0, 2, 1),)),
        lambda: TypedScores(scores=((0.0,),), values=((0.0,) * 1025,)),
        lambda: View(rows=(-1, 4)),
        lambda: View(cols=(4, 4)),
        lambda: View(rows=(5, 4)),
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


@pytest.mark.parametrize(
    ("heads", "kv_heads", "to", "expected"),
    [(12, 12, 8, 8), (12, 12, 24, 24), (4, 2, 8, 2), (4, 2, 6, 2), (4, 2, 3, 3), (8, 1, 5, 1), (4, 4, 1, 1)],
)
def test_key_value_heads_follow_the_heads_where_each_has_its_own(heads, kv_heads, to, expected):
    spec = edited(make_spec(num_heads=heads, num_kv_heads=kv_heads), num_heads=to)
    assert (spec.num_heads, spec.num_kv_heads, spec.d_out) == (to, expected, 2 * to)
    assert edited(spec, num_kv_heads=1).num_kv_heads == 1


def test_a_file_of_queries_and_keys_fixes_its_sizes():
    fixed = fixed_by(READ)
    assert {name: fixed[name].value for name in ("num_heads", "num_kv_heads", "d_out", "d_model", "out_proj")} == {
        "num_heads": 8, "num_kv_heads": 2, "d_out": 128, "d_model": None, "out_proj": False,
    }  # fmt: skip
    spec = make_spec(READ)
    assert (spec.num_heads, spec.num_kv_heads, spec.d_out, spec.d_head) == (8, 2, 128, 16)
    assert stages_of(spec) == stages_of(make_spec(RandomQK(length=4)))
    for field, value in {"num_heads": 4, "num_kv_heads": 8, "d_out": 64, "qkv_bias": True}.items():
        with pytest.raises(SpecError, match="queries and keys are the file's") as caught:
            make_spec(READ, **{field: value})
        assert caught.value.field == field
    assert edited(make_spec(num_heads=3, dropout=0.5), source=READ).dropout == 0.5
    assert edited(spec, source=Text(text="a b")).num_kv_heads == 2


def test_a_pattern_fixes_what_belongs_to_projections_and_leaves_the_heads():
    assert set(fixed_by(Pattern(length=8))) == set(fixed_by(RandomQK(length=8)))
    spec = make_spec(Pattern(length=8, pattern="sink"), num_heads=6, num_kv_heads=2)
    assert (spec.num_kv_heads, spec.d_head, spec.d_model) == (2, 64, None)
    assert stages_of(spec) == stages_of(make_spec(RandomQK(length=8)))
    with pytest.raises(SpecError, match="no projections"):
        make_spec(Pattern(length=8), out_proj=True)


def test_typed_matrices_have_one_head_and_no_cap_on_weights():
    with pytest.raises(SpecError, match="num_kv_heads is 2"):
        make_spec(CAT, num_kv_heads=2)
    with pytest.raises(SpecError, match="dropout alone applies"):
        make_spec(TypedWeights(weights=((1.0,),)), soft_cap=5.0)
    with pytest.raises(SpecError, match="dropout alone applies"):
        make_spec(TypedWeights(weights=((1.0,),)), top_k=2)
    assert make_spec(CAT, soft_cap=5).soft_cap == 5


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
        (make_spec(CAT, mask="none", top_k=1), "scaled_scores masked_scores weights context"),
        (make_spec(CAT, mask="multiply"), "scaled_scores unmasked_weights weights context"),
        (make_spec(CAT, mask="add"), "scaled_scores masked_scores weights context"),
        (make_spec(RandomQK(length=4), mask="add", scale_after_mask=True),
         "queries keys scores masked_scores scaled_scores weights"),
        (make_spec(RandomQK(length=4), mask="multiply", scale_after_mask=True),
         "queries keys scores scaled_scores unmasked_weights weights"),
        (make_spec(projection="none", dropout=0.5),
         "inputs scores scaled_scores masked_scores weights dropped_weights context"),
        (make_spec(projection="rand"),
         "inputs queries keys values scores scaled_scores masked_scores weights context joined output"),
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
    multiply = make_spec(mask="multiply", dropout=0.5)
    assert [masked_at(multiply, n) for n in ("scaled_scores", "unmasked_weights", "weights", "dropped_weights")] == [
        False, False, True, True,
    ]  # fmt: skip
    assert masked_at(make_spec(mask="add"), "masked_scores")
    assert masked_at(make_spec(mask="none", top_k=1), "weights")
    assert not masked_at(make_spec(mask="none", top_k=1), "scaled_scores")
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
shapes = st.one_of(
    st.sampled_from([Causal(), Full(), MaskFile(path="/data/猫.npy", sha256="a" * 64)]),
    st.builds(SlidingWindow, width=st.integers(1, 1 << 40)),
    st.builds(Prefix, length=st.integers(0, 99)),
    st.builds(PadLeft, count=st.integers(0, 99)),
    st.builds(PadRight, count=st.integers(0, 99)),
    st.builds(
        Drawn,
        runs=st.lists(
            st.tuples(st.integers(0, 99), st.integers(0, 40), st.integers(40, s.MAX_DRAWN - 1)), max_size=5
        ).map(tuple),
    ),
    st.builds(Blocks, lengths=st.lists(st.integers(1, 99), min_size=1, max_size=4).map(tuple)),
)
kinds = st.sampled_from(["sink", "local", "previous", "stripes", "topics", "mixed"])
spans = st.none() | st.tuples(st.integers(0, 1 << 20), st.integers(1, 99)).map(lambda pair: (pair[0], sum(pair)))
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@st.composite
def specs(draw):
    scores = tuple(map(tuple, draw(square)))
    source = draw(
        st.sampled_from(
            [Lesson(), CAT, Lesson(name="one-class"), RandomEmbeddings(length=9), TypedWeights(weights=((0.5, 0.5),))]
        )
        | st.builds(RandomQK, length=st.integers(1, 50), qk_scale=numbers)
        | st.builds(Text, text=names.filter(str.strip))
        | st.builds(Pattern, length=st.integers(1, 1 << 20), pattern=kinds)
        | st.builds(
            QKFile,
            path=names,
            sha256=names,
            heads=st.just(6),
            kv_heads=st.sampled_from([1, 2, 3, 6]),
            queries=st.integers(1, 9),
            length=st.integers(9, 1 << 20),
            d_head=st.integers(1, 1 << 16),
        )
        | st.just(TypedScores(scores=scores, tokens=tuple(draw(names) for _ in scores[0])))
    )
    given = {
        "mask": st.sampled_from(s.CHOICES["mask"]),
        "projection": st.sampled_from(s.CHOICES["projection"]),
        "top_k": st.none() | st.integers(1, s.MAX_TOKENS),
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
        "num_kv_heads": st.integers(1, 5),
        "soft_cap": st.none() | st.floats(0, 1e300, exclude_min=True),
        "fill": st.floats(-60_000, 60_000) | st.just(-math.inf),
        "mask_shape": shapes,
    }
    fields = {f: draw(v) for f, v in given.items() if f not in fixed_by(source) and draw(st.booleans())}
    if "num_kv_heads" in fields:  # as many heads as can share them
        fields["num_heads"] = fields["num_kv_heads"] * draw(st.integers(1, 3))
    if fields.get("mask") in ("three-step", "multiply"):
        fields.pop("top_k", None)
    if fields.get("projection", "linear") != "linear":
        fields.pop("qkv_bias", None)
    if fields.get("projection") == "none":
        fields = {name: value for name, value in fields.items() if name not in ("num_heads", "num_kv_heads")}
    return make_spec(source, **fields)


@given(
    specs(),
    st.builds(
        View, norm=st.sampled_from(["auto", "log", "unit"]), rows=spans, cols=spans,
        pooling=st.sampled_from(["max", "mean", "share"]),
    ),
)  # fmt: skip
def test_every_spec_survives_the_round_trip(spec, view):
    text = to_json(spec, view)
    assert from_json(text) == (spec, view)
    fields = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert set(fields) == {"version", "view", *FIELDS}


@given(specs(), st.data())
def test_any_edit_gives_a_spec_or_says_why_not(spec, data):
    field = data.draw(st.sampled_from(["mask", "projection", "top_k", "implementation", "num_heads", "source"]))
    value = {
        "top_k": st.none() | st.integers(1, 9),
        "num_heads": st.integers(1, 4),
        "source": st.sampled_from([Lesson(), CAT, Lesson(name="one-class"), Text(text="a b"), RandomQK(length=3)]),
    }.get(field, st.sampled_from(s.CHOICES.get(field, ("",))))
    change = {field: data.draw(value)}
    try:
        changed = edited(spec, **change)
    except SpecError as error:
        assert error.field in FIELDS  # noqa: PT017
    else:
        assert getattr(changed, field) == change[field]
        assert from_json(to_json(changed))[0] == changed


@pytest.mark.parametrize(
    ("field", "value", "written"),
    [
        ("fill", -math.inf, "-inf"),
        ("fill", -1e9, -1e9),
        ("soft_cap", 50.0, 50.0),
        ("num_kv_heads", 1, 1),
        ("mask_shape", Full(), {"kind": "full"}),
        ("mask_shape", SlidingWindow(width=8), {"kind": "window", "width": 8}),
        ("mask_shape", Prefix(length=8), {"kind": "prefix", "length": 8}),
        ("mask_shape", PadLeft(count=8), {"kind": "pad-left", "count": 8}),
        ("mask_shape", PadRight(count=8), {"kind": "pad-right", "count": 8}),
        ("mask_shape", Blocks(lengths=(1, 2)), {"kind": "blocks", "lengths": [1, 2]}),
        ("mask_shape", MaskFile(path="/m.npy", sha256="ab"), {"kind": "file", "path": "/m.npy", "sha256": "ab"}),
        ("mask_shape", Drawn(runs=((1, 0, 2),)), {"kind": "drawn", "runs": [[1, 0, 2]]}),
        ("mask", "multiply", "multiply"),
        ("projection", "rand", "rand"),
        ("top_k", 3, 3),
        ("source", Lesson(name="one-class"), {"kind": "lesson", "name": "one-class"}),
        ("source", Pattern(length=9, pattern="sink"), {"kind": "pattern", "length": 9, "pattern": "sink"}),
        ("source", READ, {"kind": "qk", **{name: getattr(READ, name) for name in READ.__struct_fields__}}),
    ],
)
def test_new_fields_are_written_as_they_are_read(field, value, written):
    spec = make_spec(value) if field == "source" else make_spec(**{field: value})
    text = to_json(spec)
    assert json.loads(text)[field] == written
    assert from_json(text)[0] == spec


def test_a_window_of_the_map_is_written_as_it_is_read():
    view = View(rows=(3, 9), cols=(0, 1 << 20), pooling="share")
    fields = json.loads(to_json(make_spec(), view))["view"]
    assert (fields["rows"], fields["cols"], fields["pooling"]) == ([3, 9], [0, 1 << 20], "share")
    assert from_json(to_json(make_spec(), view))[1] == view


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
        ('{"version": 3, "fill": 0}', "made by a newer version"),
        ('{"version": 9}', "newer version"),
        ('{"version": "x"}', "version"),
        ('{"view": 3}', "view"),
        ('{"view": {"zoom": 3}}', "unknown field 'zoom'"),
        ('{"source": 3}', "source"),
        ('{"source": {"kind": "pickle"}}', "pickle"),
        ('{"source": {"kind": "text", "text": ""}}', "text is empty"),
        ('{"source": {"kind": "text", "text": "a", "run": 1}}', "run"),
        ('{"dropout": NaN}', "dropout"),
        ('{"fill": "inf"}', "fill"),
        ('{"fill": NaN}', "fill is nan"),
        ('{"soft_cap": "-inf"}', "soft_cap"),
        ('{"num_kv_heads": 5}', "num_kv_heads is 5"),
        ('{"mask_shape": {"kind": "star"}}', "star"),
        ('{"mask_shape": {"kind": "drawn", "runs": [[0, 1]]}}', "mask_shape"),
        ('{"mask_shape": {"kind": "drawn", "runs": [[0, 2, 1]]}}', "0:2-1"),
        ('{"source": {"kind": "lesson", "name": "two-class"}}', "two-class"),
        ('{"top_k": 0}', "top_k is 0"),
        ('{"projection": "none", "num_heads": 1, "d_out": 2}', "without projections"),
        ('{"mask_shape": {"kind": "window"}}', "width"),
        ('{"mask_shape": {"kind": "window", "width": 0}}', "mask_shape is 0"),
        ('{"source": {"kind": "pattern", "length": 9, "pattern": "zebra"}}', "zebra"),
        ('{"source": {"kind": "qk", "path": "a"}}', "sha256"),
        ('{"view": {"rows": [5, 5]}}', "rows is 5:5"),
        ('{"view": {"cols": [-1, 5]}}', "cols is -1:5"),
        ('{"view": {"pooling": "min"}}', "max, mean, share"),
        ('{"num_heads": "two"}', "num_heads"),
        ("[" * 100_000, "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
    ],
)
def test_a_bad_file_is_refused_in_words(text, words):
    with pytest.raises(SpecError, match=words):
        from_json(text)


@given(shapes)
def test_a_shape_is_parsed_as_it_is_said(shape):
    said = s.shape_text(shape)
    assert s.parse_shape(said) == (None if isinstance(shape, MaskFile) else shape)


@pytest.mark.parametrize(
    "text", ["window:", "window:a", "window:1,2", "prefix:1.5", "blocks", "blocks:", "blocks:1,,2"]
)
def test_a_shape_without_its_number_is_refused(text):
    with pytest.raises(SpecError, match="give causal, full, window:W") as caught:
        s.parse_shape(text)
    assert caught.value.field == "mask_shape"


@pytest.mark.parametrize("text", ["window:0", "prefix:-1", "blocks:1,0", f"window:{1 << 41}"])
def test_a_shape_of_an_impossible_size_is_refused(text):
    with pytest.raises(SpecError, match="mask_shape is"):
        s.parse_shape(text)


# Written by version 1, which had none of projection, top_k, multiply, add, drawn masks or one-class.
WRITTEN_BEFORE = {
    """{"version": 1, "source": {"kind": "lesson", "name": "journey"}, "num_heads": 1, "num_kv_heads": 1, "d_model": 3,
    "d_out": 2, "implementation": "stacked", "out_proj": false, "qkv_bias": false, "scale": "auto",
    "scale_after_mask": true, "soft_cap": null, "mask": "neg-inf", "fill": "-inf", "mask_shape": {"kind": "causal"},
    "dropout": 0.0, "dropout_site": "weights", "dropout_seed": 789, "dropout_generator": "portable", "training": true,
    "batch": 1, "seed": 789, "device": "cpu", "dtype": "float32", "view": {"stage": "masked_scores", "head": 0,
    "rows": null, "cols": null, "pooling": "max", "norm": "auto", "colours": "viridis"}}""": (
        make_spec(num_heads=1, d_out=2, seed=789, scale_after_mask=True), View(stage="masked_scores", head=0),
    ),
    """{"version": 1, "source": {"kind": "lesson", "name": "cat-eats-fish"}, "num_heads": 1, "num_kv_heads": 1,
    "d_model": null, "d_out": null, "implementation": "stacked", "out_proj": false, "qkv_bias": false, "scale": "none",
    "scale_after_mask": false, "soft_cap": null, "mask": "none", "fill": "-inf", "mask_shape": {"kind": "causal"},
    "dropout": 0.5, "dropout_site": "weights", "dropout_seed": 123, "dropout_generator": "portable", "training": true,
    "batch": 1, "seed": 123, "device": "cpu", "dtype": "float32", "view": {"stage": "weights", "head": null,
    "rows": null, "cols": null, "pooling": "max", "norm": "unit", "colours": "viridis"}}""": (
        make_spec(CAT, mask="none", dropout=0.5), View(norm="unit"),
    ),
    """{"version": 1, "source": {"kind": "text", "text": "猫 a"}, "num_heads": 4, "num_kv_heads": 2, "d_model": 256,
    "d_out": 256, "implementation": "split", "out_proj": true, "qkv_bias": false, "scale": "auto",
    "scale_after_mask": false, "soft_cap": 30.0, "mask": "three-step", "fill": "-inf", "mask_shape":
    {"kind": "pad-left", "count": 1}, "dropout": 0.0, "dropout_site": "weights", "dropout_seed": 123,
    "dropout_generator": "portable", "training": true, "batch": 1, "seed": 123, "device": "cpu", "dtype": "float32",
    "view": {"stage": "weights", "head": null, "rows": [0, 2], "cols": null, "pooling": "max", "norm": "auto",
    "colours": "viridis"}}""": (
        make_spec(
            Text(text="猫 a"), implementation="split", num_heads=4, num_kv_heads=2, mask="three-step",
            mask_shape=PadLeft(count=1), soft_cap=30.0,
        ),
        View(rows=(0, 2)),
    ),
    """{"version": 1, "source": {"kind": "scores", "scores": [[0.0, "-inf"], [1.0, 2.0]], "values": [[1.0], [2.0]],
    "dims": ["x"], "tokens": ["a", "-inf"]}, "num_heads": 1, "num_kv_heads": 1, "d_model": null, "d_out": null,
    "implementation": "stacked", "out_proj": false, "qkv_bias": false, "scale": "none", "scale_after_mask": false,
    "soft_cap": null, "mask": "neg-inf", "fill": -1000000000.0, "mask_shape": {"kind": "causal"}, "dropout": 0.0,
    "dropout_site": "weights", "dropout_seed": 123, "dropout_generator": "portable", "training": true, "batch": 1,
    "seed": 123, "device": "cpu", "dtype": "float32"}""": (
        make_spec(
            TypedScores(
                scores=((0.0, -math.inf), (1.0, 2.0)), values=((1.0,), (2.0,)), dims=("x",), tokens=("a", "-inf")
            ),
            fill=-1e9,
        ),
        View(),
    ),
    """{"version": 1, "source": {"kind": "qk", "path": "/data/qk.npz", "sha256": "00", "heads": 8, "kv_heads": 2,
    "queries": 5, "length": 9, "d_head": 16}, "num_heads": 8, "num_kv_heads": 2, "d_model": null, "d_out": 128,
    "implementation": "stacked", "out_proj": false, "qkv_bias": false, "scale": "auto", "scale_after_mask": false,
    "soft_cap": null, "mask": "neg-inf", "fill": "-inf", "mask_shape": {"kind": "blocks", "lengths": [3, 4]},
    "dropout": 0.0, "dropout_site": "weights", "dropout_seed": 123, "dropout_generator": "portable", "training": true,
    "batch": 1, "seed": 123, "device": "cpu", "dtype": "bfloat16", "view": {}}""": (
        make_spec(
            QKFile(path="/data/qk.npz", sha256="00", heads=8, kv_heads=2, queries=5, length=9, d_head=16),
            dtype="bfloat16", mask_shape=Blocks(lengths=(3, 4)),
        ),
        View(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN_BEFORE)
def test_what_an_earlier_version_wrote_is_read(text):
    assert from_json(text) == WRITTEN_BEFORE[text]


def test_every_field_and_no_other_is_read():
    assert set(FIELDS) == set(AttentionSpec.__struct_fields__)
    assert from_json("{}") == (make_spec(), View())
