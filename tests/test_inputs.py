import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnviz import inputs, tensor_files
from attnviz.files import FileProblem
from attnviz.inputs import drawn
from attnviz.inputs.text import embed_tokens, split_tokens
from attnviz.spec import (
    Lesson,
    Pattern,
    RandomEmbeddings,
    RandomQK,
    SpecError,
    Text,
    TypedScores,
    TypedWeights,
    edited,
    make_spec,
)

CAT = Lesson(name="cat-eats-fish")
NEG_INF = float("-inf")
TENSORS = ("embeddings", "queries", "keys", "scaled_scores", "weights", "values")
SOURCES = [
    Lesson(),
    CAT,
    TypedScores(scores=((0.0, NEG_INF), (1.0, 2.0))),
    TypedScores(scores=((0.0, 1.0, 2.0),), values=((1.0,), (2.0,), (3.0,)), dims=("x",), tokens=("a", "b", "c")),
    TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),)),
    Text(text="the cat and the dog"),
    RandomEmbeddings(length=300),
    RandomQK(length=5),
    Pattern(length=9),
]


def opened(source, **more):
    return inputs.open_source(make_spec(source, **more))


# -------------------------------------------------------------------------------------------------------------- sources


@pytest.mark.parametrize(
    ("source", "given", "origin"),
    [
        (SOURCES[0], {"embeddings": (6, 3)}, "the book's seeds"),
        (SOURCES[1], {"scaled_scores": (3, 3), "values": (3, 2)}, "worked by hand"),
        (SOURCES[2], {"scaled_scores": (2, 2)}, "worked by hand"),
        (SOURCES[3], {"scaled_scores": (1, 3), "values": (3, 1)}, "worked by hand"),
        (SOURCES[4], {"weights": (1, 4)}, "worked by hand"),
        (
            SOURCES[5],
            {"embeddings": (5, 128)},
            "untrained: random embeddings and weights, seed 123; the mechanism is real, the pattern is not",
        ),
        (
            SOURCES[6],
            {"embeddings": (300, 128)},
            "untrained: random embeddings and weights, seed 123; the mechanism is real, the pattern is not",
        ),
        (
            SOURCES[7],
            {"queries": (2, 5, 64), "keys": (2, 5, 64)},
            "untrained: random queries and keys, seed 123; the mechanism is real, the pattern is not",
        ),
        (
            SOURCES[8],
            {"queries": (2, 9, 64), "keys": (2, 9, 64)},
            "made up: a pattern that looks like a trained head's (mixed), seed 123; nothing was learnt",
        ),
    ],
)
def test_what_a_source_gives(source, given, origin):
    found = opened(source)
    tensors = {name: getattr(found, name) for name in TENSORS}
    assert {name: tuple(t.shape) for name, t in tensors.items() if t is not None} == given
    typed = {"scaled_scores", "weights", "values"}
    assert all(
        t.dtype == (torch.float64 if name in typed else torch.float32) for name, t in tensors.items() if t is not None
    )
    assert found.origin == origin


@pytest.mark.parametrize("source", SOURCES)
def test_counts_are_those_of_the_tensors(source):
    found = opened(source)
    assert inputs.count_tokens(source) == (found.n_queries, len(found.tokens))


def test_counting_a_million_tokens_makes_none():
    assert inputs.count_tokens(RandomEmbeddings(length=1 << 20)) == (1 << 20, 1 << 20)


@pytest.mark.parametrize("source", SOURCES)
def test_opening_leaves_the_global_generator_alone_and_repeats_itself(source):
    before = torch.get_rng_state()
    first, second = opened(source), opened(source)
    assert torch.equal(torch.get_rng_state(), before)
    for name in TENSORS:
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other)


def test_lessons():
    assert opened(Lesson()).tokens == ("Your", "journey", "starts", "with", "one", "step")
    cat = opened(CAT)
    assert (cat.tokens, cat.glosses, cat.dims) == (("猫", "吃", "鱼"), ("cat", "eats", "fish"), ("猫味", "鱼味"))
    assert cat.scaled_scores.tolist() == [[0.5, 0.5, 1], [0, 2, 1], [0.5, 0.5, 0]]
    assert cat.values.tolist() == [[1, 0], [0.1, 0.1], [0, 1]]


def test_typed_matrices_name_their_tokens_or_number_them():
    assert opened(SOURCES[2]).tokens == ("0", "1")
    assert opened(SOURCES[2]).scaled_scores.tolist() == [[0, NEG_INF], [1, 2]]
    named = opened(SOURCES[3])
    assert (named.tokens, named.dims, named.n_queries) == (("a", "b", "c"), ("x",), 1)


# --------------------------------------------------------------------------------------------------------------- random


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 800), st.integers(1, 800), st.integers(1, 70), st.integers(0, (1 << 63) - 1))
def test_a_position_does_not_depend_on_the_length(shorter, longer, d_model, seed):
    shorter, longer = sorted((shorter, longer))
    embeddings = drawn.embed_positions(longer, d_model, seed)
    assert torch.equal(drawn.embed_positions(shorter, d_model, seed), embeddings[:shorter])


def test_random_embeddings_are_standard_normal_and_change_with_the_seed():
    first, second = (drawn.embed_positions(1024, 64, seed) for seed in (1, 2))
    for embeddings in (first, second):
        assert abs(float(embeddings.mean())) < 5 / 256
        assert abs(float(embeddings.std()) - 1) < 5 / 256
    assert abs(float((first * second).mean())) < 5 / 256
    assert len(torch.unique(first, dim=0)) == 1024


def test_queries_and_keys_come_per_head_from_one_generator():
    spec = make_spec(RandomQK(length=5, qk_scale=0.5), num_heads=2, d_out=6, seed=9)
    found = inputs.open_source(spec)
    generator = torch.Generator().manual_seed(9)
    for head in range(2):
        for part in (found.queries, found.keys):
            assert torch.equal(part[head], torch.randn(5, 3, generator=generator) * 0.5)
    assert not torch.equal(found.queries, inputs.open_source(edited(spec, seed=10)).queries)


# --------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_queries_and_keys_of_a_file_share_its_mapping(tmp_path, dtype, monkeypatch):
    q, k = torch.randn(4, 5, 8).to(dtype), torch.randn(2, 7, 8).to(dtype)
    save_file({"q": q, "k": k}, tmp_path / "qk.safetensors")
    source, read = tensor_files.describe_qk(tmp_path / "qk.safetensors"), []
    monkeypatch.setattr(
        tensor_files, "open_qk", lambda s, read_now=tensor_files.open_qk: read.append(read_now(s)) or read[0]
    )
    found = opened(source)
    assert (found.n_queries, found.tokens) == (5, ("0", "1", "2", "3", "4", "5", "6"))
    assert inputs.count_tokens(source) == (5, 7)
    assert found.origin == "read from qk.safetensors"
    for tensor, written, array in ((found.queries, q, read[0].queries), (found.keys, k, read[0].keys)):
        assert tensor.dtype == dtype
        assert torch.equal(tensor, written)
        assert tensor.data_ptr() == array.ctypes.data


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_a_file_holds_unaligned_is_copied(tmp_path, in_memory):
    q, k = (np.random.default_rng(1).standard_normal((2, 6, 4)).astype(np.float32) for _ in "qk")
    np.savez(tmp_path / "qk.npz", q=q, k=k, tokens=np.array(list("abcdef")))
    spec = make_spec(tensor_files.describe_qk(tmp_path / "qk.npz"))
    assert not tensor_files.open_qk(spec.source).queries.flags.aligned
    found = inputs.open_source(spec, in_memory=in_memory)
    assert found.tokens == ("a", "b", "c", "d", "e", "f")
    assert found.queries.data_ptr() % 4 == found.keys.data_ptr() % 4 == 0
    assert torch.equal(found.queries, torch.tensor(q))
    assert torch.equal(found.keys, torch.tensor(k))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_masks_plane_is_bool(tmp_path, dtype, order):
    seen = np.tril(np.ones((3, 5), bool), 1)
    np.save(tmp_path / "mask.npy", np.asarray(seen, dtype, order=order))
    shape = tensor_files.describe_mask(tmp_path / "mask.npy")
    plane = inputs.open_mask_plane(shape, 3, 5)
    assert plane.dtype == torch.bool
    assert plane.tolist() == seen.tolist()
    with pytest.raises(FileProblem, match="its mask is 3 × 5, but there are 5 queries × 5 keys"):
        inputs.open_mask_plane(shape, 5, 5)


def test_a_file_that_is_gone_is_said_when_it_is_opened(tmp_path):
    np.save(tmp_path / "qk.npy", np.ones((2, 1, 2, 2)))
    spec = make_spec(tensor_files.describe_qk(tmp_path / "qk.npy"))
    (tmp_path / "qk.npy").unlink()
    with pytest.raises(FileProblem, match="there is no such file"):
        inputs.open_source(spec)


def test_a_million_numbered_tokens_are_made_once():
    assert inputs._numbered(1 << 20) is inputs._numbered(1 << 20)
    inputs._numbered.cache_clear()


# ----------------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Your journey starts with one step", ["Your", "journey", "starts", "with", "one", "step"]),
        ("The cat, the CAT!", ["The", "cat", ",", "the", "CAT", "!"]),
        ("  I don't\tknow.\r\n", ["I", "don't", "know", "."]),
        ("I don’t", ["I", "don’t"]),
        ("3.14 and 10,000.5", ["3.14", "and", "10,000.5"]),
        ("wait... what?!", ["wait", ".", ".", ".", "what", "?", "!"]),
        ("well-known (so)", ["well", "-", "known", "(", "so", ")"]),
        ("猫吃鱼。", ["猫", "吃", "鱼", "。"]),
        ("我有2只cat", ["我", "有", "2", "只", "cat"]),
        ("猫がテストを食べる", ["猫", "が", "テスト", "を", "食", "べ", "る"]),
        ("가나다 라", ["가나다", "라"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ('שלום צה"ל', ["שלום", 'צה"ל']),
        ("hi👋", ["hi", "👋"]),
        ("👨‍👩‍👧 👍🏽👍 ❤️", ["👨‍👩‍👧", "👍🏽", "👍", "❤️"]),
        ("🇩🇪🇫🇷x🇨🇳", ["🇩🇪", "🇫🇷", "x", "🇨🇳"]),
        ("1️⃣ #️⃣", ["1️⃣", "#️⃣"]),
        ("\u200b", ["\u200b"]),
    ],
)
def test_tokens_of_text(text, tokens):
    assert list(split_tokens(text)) == tokens
    assert inputs.count_tokens(Text(text=text)) == (len(tokens), len(tokens))


@given(st.text(min_size=1, max_size=60))
def test_nothing_but_white_space_is_lost(text):
    tokens = split_tokens(text)
    assert "".join("".join(tokens).split()) == "".join(text.split())
    assert all(token == token.strip() != "" for token in tokens)
    try:
        Text(text=text)
    except SpecError:
        assert not tokens
    else:
        assert tokens


@pytest.mark.parametrize(
    "unit", ["the cat, don't 3.14 猫吃鱼。 ", "🇩🇪", "🇩", "e\u0301", "\u0301", "👨‍👩‍👧", "'", "1.", "\u200d", 'א"']
)
def test_long_runs_of_anything_are_split_in_linear_time(unit):
    text = unit * (250_000 // len(unit))  # a quarter of a million characters: what is quadratic takes minutes
    assert "".join(split_tokens(text)) == "".join(text.split())


def test_equal_tokens_get_equal_embeddings_whatever_stands_around_them():
    the, cat, _, again, dog = embed_tokens(("the", "cat", "and", "the", "dog"), 128, 123)
    assert torch.equal(the, again)
    assert len(torch.unique(torch.stack([the, cat, dog]), dim=0)) == 3
    assert torch.equal(embed_tokens(("dog",), 128, 123)[0], dog)
    assert not torch.equal(embed_tokens(("dog",), 128, 124)[0], dog)
    assert not torch.equal(embed_tokens(("Dog",), 128, 123)[0], dog)


def test_a_lone_surrogate_is_a_token_too():
    assert embed_tokens(split_tokens("a \ud800"), 4, 1).shape == (2, 4)


def test_a_seed_and_a_token_do_not_run_together():
    assert not torch.equal(embed_tokens(("23",), 8, 1), embed_tokens(("3",), 8, 12))
