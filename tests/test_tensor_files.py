"""Users' files: what is read from them, that they are mapped and never unpickled, and what is said of broken ones."""

import io
import mmap
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnviz import number_files
from attnviz.figures import Figure
from attnviz.files import FileProblem
from attnviz.spec import MaskFile, QKFile, SpecError, Text, TypedScores, edited, make_spec
from attnviz.tensor_files import describe_mask, describe_qk, open_mask, open_qk, opened, sha256_of

HEADS, KV_HEADS, N_QUERIES, N_KEYS, D_HEAD = 4, 2, 5, 7, 3
RNG = np.random.default_rng(1)
Q = RNG.standard_normal((HEADS, N_QUERIES, D_HEAD)).astype(np.float32)
K = RNG.standard_normal((KV_HEADS, N_KEYS, D_HEAD)).astype(np.float32)
SIZES = {"heads": 4, "kv_heads": 2, "queries": 5, "length": 7, "d_head": 3}


def npz(path, compressed=False, **arrays):
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path


def npy(path, array):
    np.save(path, array)
    return path


def is_mapped(array):
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return isinstance(array, mmap.mmap)


def header_of(text, version=1):
    """An .npy header of any text."""
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode("latin-1")


# --------------------------------------------------------------------------------------------------- queries and keys


@pytest.mark.parametrize("names", [("q", "k"), ("queries", "keys"), ("Q", "K"), ("Queries", "k")])
@pytest.mark.parametrize("compressed", [False, True])
def test_an_npz_names_queries_and_keys(tmp_path, names, compressed):
    path = npz(tmp_path / "qk.npz", compressed, other=np.ones(3), **dict(zip(names, (Q, K), strict=True)))
    source = describe_qk(path)
    assert source == QKFile(path=str(path), sha256=sha256_of(path), **SIZES)
    read = open_qk(source)
    np.testing.assert_array_equal(read.queries, Q)
    np.testing.assert_array_equal(read.keys, K)
    assert (read.dtype, read.tokens) == ("float32", ())
    assert is_mapped(read.queries) == is_mapped(read.keys) == (not compressed)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npy_holds_queries_before_keys(tmp_path, dtype, order):
    both = np.asarray(RNG.standard_normal((2, 3, 6, 4)), dtype, order=order)
    source = describe_qk(npy(tmp_path / "qk.npy", both))
    assert (source.heads, source.kv_heads, source.queries, source.length, source.d_head) == (3, 3, 6, 6, 4)
    read = open_qk(source)
    np.testing.assert_array_equal(read.queries, both[0])
    np.testing.assert_array_equal(read.keys, both[1])
    assert read.dtype == read.queries.dtype.name == dtype
    assert is_mapped(read.queries)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_safetensors_are_mapped_in_their_dtype(tmp_path, dtype):
    q, k = torch.tensor(Q).to(dtype), torch.tensor(K).to(dtype)
    path = tmp_path / "qk.safetensors"
    save_file({"q": q, "keys": k, "other": torch.zeros(9)}, path, metadata={"made": "by hand"})
    source = describe_qk(path)
    assert source == QKFile(path=str(path), sha256=sha256_of(path), **SIZES)
    read = open_qk(source)
    assert read.dtype == str(dtype).removeprefix("torch.")
    for array, tensor in ((read.queries, q), (read.keys, k)):
        assert is_mapped(array)
        assert torch.equal(torch.from_numpy(array).view(dtype), tensor)


def test_two_axes_are_one_head(tmp_path):
    source = describe_qk(npz(tmp_path / "a.npz", q=Q[0], k=K[0]))
    assert (source.heads, source.kv_heads) == (1, 1)
    assert open_qk(source).queries.shape == (1, N_QUERIES, D_HEAD)
    source = describe_qk(npy(tmp_path / "b.npy", np.stack([K[0], K[1]])))
    assert (source.heads, source.queries) == (1, N_KEYS)
    np.testing.assert_array_equal(open_qk(source).keys, K[1][None])


def test_numbers_that_are_not_finite_stay(tmp_path):
    q = np.array([[[np.nan, np.inf, -np.inf]]], np.float32)
    read = open_qk(describe_qk(npz(tmp_path / "a.npz", q=q, k=q)))
    np.testing.assert_array_equal(read.queries, q)


@pytest.mark.parametrize("compressed", [False, True])
def test_tokens_name_the_keys(tmp_path, compressed):
    tokens = ["猫", "", "a longer name", "x", "\n", "🍕", "z"]
    path = npz(tmp_path / "a.npz", compressed, q=Q, k=K, tokens=np.array(tokens))
    assert open_qk(describe_qk(path)).tokens == tuple(tokens)
    empty = npz(tmp_path / "b.npz", compressed, q=Q, k=K, tokens=np.array([""] * N_KEYS))
    assert open_qk(describe_qk(empty)).tokens == ("",) * N_KEYS


def test_many_tokens_are_read_block_by_block(tmp_path):
    count = (1 << 18) + 3
    one = np.zeros((1, count, 1), np.float16)
    read = open_qk(describe_qk(npz(tmp_path / "a.npz", q=one, k=one, tokens=np.arange(count).astype(str))))
    assert read.tokens == tuple(map(str, range(count)))


def test_writing_into_what_was_read_does_not_reach_the_file(tmp_path):
    path = npy(tmp_path / "a.npy", np.ones((2, 1, 2, 2), np.float32))
    before = path.read_bytes()
    open_qk(describe_qk(path)).queries[:] = 9
    assert path.read_bytes() == before


def test_a_file_larger_than_memory_is_mapped(tmp_path, monkeypatch):
    shape = (2, 512, 1 << 20, 64)  # 275 GB, of which the disk holds nothing
    path = tmp_path / "big.npy"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    with path.open("wb") as file:
        file.write(header_of(header.ljust(117) + "\n"))
        file.truncate(128 + 4 * 2 * 512 * (1 << 26))
    monkeypatch.setattr(opened.OpenFile, "sha256", lambda self: "0" * 64)
    try:
        read = open_qk(describe_qk(path))
        assert read.keys.shape == shape[1:]
        assert float(read.keys[-1, -1, -1]) == 0
    finally:
        path.unlink()


def test_a_description_goes_into_a_spec(tmp_path):
    spec = make_spec(describe_qk(npz(tmp_path / "a.npz", q=Q, k=K)))
    assert (spec.num_heads, spec.num_kv_heads, spec.d_head, spec.d_out, spec.d_model) == (4, 2, 3, 12, None)


def test_a_path_is_kept_absolute(tmp_path, monkeypatch):
    npz(tmp_path / "a.npz", q=Q, k=K)
    monkeypatch.chdir(tmp_path)
    assert describe_qk("a.npz").path == str(tmp_path / "a.npz")


# ------------------------------------------------------------------------------------------------ missing and changed


def test_a_file_that_is_gone_or_has_changed_is_said(tmp_path):
    path = npz(tmp_path / "a.npz", q=Q, k=K)
    source = describe_qk(path)
    npz(path, q=Q + 1, k=K)
    with pytest.raises(FileProblem, match="has changed since the spec was made"):
        open_qk(source)
    npz(path, q=Q, k=K)
    os.utime(path, ns=(1, 1))
    assert open_qk(source).dtype == "float32"
    with pytest.raises(FileProblem, match="its sizes are not those"):
        open_qk(QKFile(path=source.path, sha256=source.sha256, **{**SIZES, "d_head": 4}))
    path.unlink()
    with pytest.raises(FileProblem, match=r"cannot read .*a\.npz: there is no such file; put it back"):
        open_qk(source)


def test_a_hash_is_computed_once_for_a_path_size_and_time(tmp_path, monkeypatch):
    asked = []
    digest = opened.hashlib.file_digest
    monkeypatch.setattr(opened.hashlib, "file_digest", lambda *given: asked.append(1) or digest(*given))
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    first = [sha256_of(path) for _ in range(3)]
    assert first == ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"] * 3
    assert len(asked) == 1
    path.write_bytes(b"abd")
    os.utime(path, ns=(5, 5))
    assert sha256_of(path) != first[0]
    assert len(asked) == 2


def _replaced(path, array):
    """Another file in the place of ``path``, of the same size and time of writing."""
    npy(path.with_name("other.npy"), array)
    path.with_name("other.npy").replace(path)


@pytest.mark.parametrize("change", [npy, _replaced])
def test_a_file_that_keeps_its_size_and_time_has_changed_all_the_same(tmp_path, change):
    path = npy(tmp_path / "a.npy", np.stack([Q[:2, :, :], Q[:2, :, :]]))
    shape = npy(tmp_path / "m.npy", np.tri(5, dtype=np.uint8))
    source, mask = describe_qk(path), describe_mask(shape)
    for changed, array in (path, np.stack([Q[:2] + 1, Q[:2]])), (shape, np.full((5, 5), 7, np.uint8)):
        times = changed.stat()
        change(changed, array)
        os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert changed.stat().st_size == times.st_size
    with pytest.raises(FileProblem, match="has changed since the spec was made"):
        open_qk(source)
    with pytest.raises(FileProblem, match="has changed since the spec was made"):
        open_mask(mask, 5, 5)
    with pytest.raises(SpecError, match="not all 0 or 1"):
        describe_mask(shape)


def test_what_render_wrote_of_a_batch_or_of_typed_scores_is_said(tmp_path):
    batch = make_spec(Text(text="a b c"), batch=2)
    number_files.write_numbers(tmp_path / "b.npz", Figure(spec=batch))
    with pytest.raises(SpecError, match=r"queries has the shape \(2, 2, 3, \d+\), a batch first; save one item of it"):
        describe_qk(tmp_path / "b.npz")
    typed = make_spec(TypedScores(scores=((0.0, 1.0), (1.0, 0.0))))
    number_files.write_numbers(tmp_path / "t.npz", Figure(spec=typed))
    with pytest.raises(SpecError, match="it lacks arrays named q and k"):
        describe_qk(tmp_path / "t.npz")
    number_files.write_numbers(tmp_path / "one.npz", Figure(spec=edited(batch, batch=1)))
    assert describe_qk(tmp_path / "one.npz").length == 3


def test_a_file_that_grows_while_it_is_read_is_said(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    digest = opened.hashlib.file_digest

    def meanwhile(*given):
        path.write_bytes(b"abcd")
        return digest(*given)

    monkeypatch.setattr(opened.hashlib, "file_digest", meanwhile)
    with pytest.raises(FileProblem, match="being written to"):
        sha256_of(path)


# ------------------------------------------------------------------------------------------------------------- broken


class Trap:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def _bytes(path, content):
    path.write_bytes(content)
    return path


def _encrypted(path):
    npz(path, q=Q, k=K)
    content = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(start)
        while at >= 0:
            content[at + flags] |= 1
            at = content.find(start, at + 4)
    return _bytes(path, bytes(content))


def _bzipped(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        for name in "qk":
            buffer = io.BytesIO()
            np.save(buffer, Q)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return path


def _wrong_checksum(path):
    noise = RNG.standard_normal((2, 500, 8))
    npz(path, compressed=True, q=noise, k=noise)
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x01\x02") + 16] ^= 1
    return _bytes(path, bytes(content))


def _shape(text, descr="'<f4'"):
    return header_of(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {text}, }}\n") + bytes(64)


BROKEN = {
    "missing": (lambda p: p / "no" / "a.npz", "there is no such file"),
    "folder": (lambda p: p, "that is a folder"),
    "nul": (lambda p: p / "a\0b.npz", "cannot be a file's name"),
    "half": (lambda p: p / "a\ud800.npz", "cannot be a file's name"),
    "long": (lambda p: p / ("x" * 300), "too long"),
    "device": (lambda p: Path("/dev/zero"), "a device or a pipe"),
    "empty": (lambda p: _bytes(p / "a.npz", b""), "it is empty"),
    "text": (lambda p: _bytes(p / "a.npz", b"what is this?"), "no .npz, .npy or .safetensors"),
    "short": (lambda p: _bytes(p / "a.npz", b"P"), "no .npz, .npy or .safetensors"),
    "start of a zip": (lambda p: _bytes(p / "a.npz", b"PK\x03\x04" + bytes(99)), "cut short or broken"),
    "no names": (lambda p: npz(p / "a.npz", x=Q, **{"y z": K}), "it lacks arrays named q and k .* it has 'x', 'y z'"),
    "many names": (lambda p: npz(p / "a.npz", **{f"x{n}": Q for n in range(20)}), "and 14 more"),
    "empty zip": (lambda p: npz(p / "a.npz"), "it has none"),
    "only queries": (lambda p: npz(p / "a.npz", q=Q), "it lacks arrays named q and k"),
    "twice": (lambda p: npz(p / "a.npz", q=Q, Q=Q, k=K), "both 'q' and 'Q'"),
    "objects": (lambda p: npz(p / "a.npz", q=np.array([None]), k=K), "Python objects, which are never opened"),
    "object npy": (lambda p: npy(p / "a.npy", np.array([[None]])), "Python objects, which are never opened"),
    "pickle": (lambda p: _bytes(p / "a.npy", pickle.dumps([1, 2])), "Python objects, which are never opened"),
    "integers": (lambda p: npz(p / "a.npz", q=Q.astype(int), k=K), "no floating-point numbers"),
    "bytes": (lambda p: npz(p / "a.npz", q=Q, k=K, tokens=np.array([b"a"] * 7)), "'|S1'"),
    "number tokens": (lambda p: npz(p / "a.npz", q=Q, k=K, tokens=np.arange(7)), "its tokens are no text"),
    "too few tokens": (lambda p: npz(p / "a.npz", q=Q, k=K, tokens=np.array(["a"] * 5)), r"\(5,\).* 7 keys"),
    "big-endian": (lambda p: npz(p / "a.npz", q=Q.astype(">f4"), k=K), r"big-endian; save it after .astype\('<f4'\)"),
    "complex": (lambda p: npz(p / "a.npz", q=Q.astype(complex), k=K), "'<c16'"),
    "structured": (lambda p: npz(p / "a.npz", q=np.zeros(3, "f4,f4"), k=K), "'structured'"),
    "two dtypes": (lambda p: npz(p / "a.npz", q=Q.astype(np.float16), k=K), "queries are float16 but keys float32"),
    "one axis": (lambda p: npz(p / "a.npz", q=Q[0, 0], k=K), r"\(3,\); give \(heads, tokens, d_head\)"),
    "four axes": (lambda p: npz(p / "a.npz", q=Q[None], k=K), r"\(1, 4, 5, 3\), a batch first; save one item"),
    "d_head": (lambda p: npz(p / "a.npz", q=Q[..., :2], k=K), "2 numbers but a key 3"),
    "queries": (lambda p: npz(p / "a.npz", q=Q, k=K[:, :4]), "5 queries but 4 keys"),
    "uneven heads": (lambda p: npz(p / "a.npz", q=Q[:3], k=K), "3 heads of queries cannot share evenly"),
    "more keys": (lambda p: npz(p / "a.npz", q=Q[:1], k=K), "kv_heads is 2"),
    "nothing in it": (lambda p: npz(p / "a.npz", q=Q[:, :0], k=K), "queries is 0"),
    "one matrix": (lambda p: npy(p / "a.npy", Q[0]), r"its shape is \(5, 3\); give \(2, heads, tokens, d_head\)"),
    "three of them": (lambda p: npy(p / "a.npy", np.zeros((3, 2, 2, 2))), r"\(3, 2, 2, 2\)"),
    "cut npy": (lambda p: _bytes(p / "a.npy", _shape("(2, 3, 4, 5)")), "cut short: 5.* are named"),
    "endless npy": (lambda p: _bytes(p / "a.npy", _shape(f"(2, {10**15}, 4, 5)")), "cut short"),
    "endless digits": (lambda p: _bytes(p / "a.npy", _shape("(" + "9" * 250 + ",)")), "header is broken"),
    "long header": (lambda p: _bytes(p / "a.npy", header_of("x" * 20_000)), "header of 20,000 bytes is too long"),
    "longest header": (
        lambda p: _bytes(p / "a.npy", b"\x93NUMPY\2\0" + struct.pack("<I", 0xFFFFFFF0)), "header of 4,294,967,280",
    ),
    "code": (lambda p: _bytes(p / "a.npy", _shape("__import__('os').abort()")), "header is broken"),
    "version": (lambda p: _bytes(p / "a.npy", b"\x93NUMPY\x09\0" + bytes(64)), "header is broken"),
    "only magic": (lambda p: _bytes(p / "a.npy", b"\x93NUMPY"), "header is broken"),
    "cut npz": (lambda p: _bytes(p / "a.npz", npz(p / "a.npz", q=Q, k=K).read_bytes()[:-30]), "cut short or broken"),
    "encrypted": (lambda p: _encrypted(p / "a.npz"), "encrypted"),
    "bzip": (lambda p: _bzipped(p / "a.npz"), "in a way that NumPy does not use"),
    "long safe header": (
        lambda p: _bytes(p / "a.safetensors", struct.pack("<Q", 1 << 40) + b'{"q"' + bytes(99)), "too long for a file",
    ),
    "cut safe": (lambda p: _bytes(p / "a.safetensors", struct.pack("<Q", 2) + b"{}x"), "cut short or broken"),
    "safe of nothing": (lambda p: _bytes(p / "a.safetensors", struct.pack("<Q", 2) + b"{}"), "it has none"),
    "deep safe": (
        lambda p: _bytes(p / "a.safetensors", struct.pack("<Q", 90_001) + b"{" + b"[" * 90_000), "cut short or broken",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path, case):
    make, words = BROKEN[case]
    path = make(tmp_path)
    with pytest.raises(SpecError, match=words) as caught:
        describe_qk(path)
    assert caught.value.field == "qk"
    assert str(caught.value).startswith("cannot read ")
    assert "\n" not in str(caught.value)


def test_safetensors_of_other_dtypes_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"q": torch.zeros(2, 3, dtype=torch.int8), "k": torch.zeros(2, 3, dtype=torch.int8)}, path)
    with pytest.raises(SpecError, match="'I8'"):
        describe_qk(path)


def test_a_file_that_may_not_be_read_is_said(tmp_path, monkeypatch):
    path = npz(tmp_path / "a.npz", q=Q, k=K)

    def refuse(*_given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(opened.os, "open", refuse)  # root may read anything
    with pytest.raises(SpecError, match="you may not read it"):
        describe_qk(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    with pytest.raises(SpecError, match="a device or a pipe"):
        describe_qk(tmp_path / "a.npz")


def test_a_name_that_no_spec_could_keep_is_refused(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.npz"))
    with path.open("wb") as file:
        np.savez(file, q=Q, k=K)
    with pytest.raises(SpecError, match="no Unicode text"):
        describe_qk(path)


def test_no_object_is_ever_unpickled(tmp_path):
    sprung = tmp_path / "sprung"
    traps = np.array([Trap(sprung)] * 8, dtype=object).reshape(2, 2, 2, 1)
    for path in (
        npz(tmp_path / "a.npz", q=traps, k=traps), npz(tmp_path / "b.npz", q=Q, k=K, tokens=traps),
        npy(tmp_path / "c.npy", traps), _bytes(tmp_path / "d.npz", pickle.dumps(Trap(sprung))),
    ):  # fmt: skip
        for describe in (describe_qk, describe_mask):
            with pytest.raises(SpecError):
                describe(path)
    assert not sprung.exists()


def test_what_is_compressed_must_fit_into_memory(tmp_path, monkeypatch):
    source = describe_qk(npz(tmp_path / "a.npz", compressed=True, q=Q, k=K))
    memory = type("Memory", (), {"available": 100})
    monkeypatch.setattr(opened.psutil, "virtual_memory", lambda: memory)
    with pytest.raises(FileProblem, match=r"unpacked, but 0\.0 GB are free; save it with numpy\.savez"):
        open_qk(source)


def test_a_wrong_checksum_is_found_while_unpacking(tmp_path):
    source = describe_qk(_wrong_checksum(tmp_path / "a.npz"))
    with pytest.raises(FileProblem, match="cut short or broken"):
        open_qk(source)


def test_tokens_that_are_no_characters_are_said(tmp_path):
    tokens = np.array(["a"] * N_KEYS)
    tokens.view(np.uint32)[3] = 0xFFFFFFFF
    source = describe_qk(npz(tmp_path / "a.npz", q=Q, k=K, tokens=tokens))
    with pytest.raises(FileProblem, match="hold what is no character"):
        open_qk(source)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound file of each kind, and a path for broken ones."""
    folder = tmp_path_factory.mktemp("sound")
    tokens = np.array(list("abcdefg"))
    paths = [
        npz(folder / "a.npz", q=Q, k=K, tokens=tokens), npz(folder / "b.npz", compressed=True, q=Q, k=K, tokens=tokens),
        npy(folder / "c.npy", np.stack([K, K])), folder / "d.safetensors", npy(folder / "e.npy", np.eye(7, dtype=bool)),
    ]  # fmt: skip
    save_file({"q": torch.tensor(Q), "k": torch.tensor(K)}, paths[3])
    return [path.read_bytes() for path in paths], folder / "broken"


@settings(max_examples=300)
@given(kind=st.integers(0, 4), seed=st.integers(0, 1 << 32), changes=st.integers(1, 6), cut=st.booleans())
def test_whatever_bytes_are_broken_there_is_a_sentence_or_an_array(sound, kind, seed, changes, cut):
    contents, path = sound
    content, draw = bytearray(contents[kind]), random.Random(seed)  # noqa: S311
    for _ in range(changes):
        place = draw.choice([draw.randrange(len(content)), draw.randrange(min(len(content), 400))])
        content[place] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    path.unlink(missing_ok=True)  # a new file has another time of change
    path.write_bytes(content[: draw.randrange(len(content))] if cut else content)
    os.utime(path, ns=(seed, seed * 7 + kind))
    said = []
    try:
        source = describe_qk(path)
        assert open_qk(source).queries.shape == (source.heads, source.queries, source.d_head)
    except (SpecError, FileProblem) as problem:
        said.append(str(problem))
    try:
        assert open_mask(describe_mask(path), 7, 7).shape == (7, 7)
    except (SpecError, FileProblem) as problem:
        said.append(str(problem))
    assert said, "a file is never both a mask and queries with keys"
    assert all(words.startswith("cannot read ") and "\n" not in words for words in said)


# -------------------------------------------------------------------------------------------------------------- masks

SEEN = np.tril(np.ones((4, 6), bool), 2)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_mask_is_mapped(tmp_path, dtype, order):
    path = npy(tmp_path / "mask.npy", np.asarray(SEEN, dtype, order=order))
    shape = describe_mask(path)
    assert shape == MaskFile(path=str(path), sha256=sha256_of(path))
    mask = open_mask(shape, 4, 6)
    assert is_mapped(mask)
    assert mask.dtype == (bool if np.dtype(dtype).itemsize == 1 else dtype)
    np.testing.assert_array_equal(mask, SEEN)
    assert edited(make_spec(), mask_shape=shape).mask_shape == shape


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (SEEN.astype(float), "its dtype is float64; give a mask of bool"),
        (np.array([["a"]]), "give a mask of bool"),
        (SEEN[0], r"its shape is \(6,\); give a mask of the shape \(queries, keys\)"),
        (SEEN[:0], "its shape is"),
        (SEEN * 2, "not all 0 or 1"),
        (SEEN.astype(np.int8) - 1, "not all 0 or 1"),
        (np.full((2, 2), 255, np.uint8).view(bool), "not all 0 or 1"),
        (np.array([[None]]), "never opened"),
    ],
)
def test_a_mask_of_something_else_is_refused(tmp_path, array, words):
    with pytest.raises(SpecError, match=words) as caught:
        describe_mask(npy(tmp_path / "mask.npy", array))
    assert caught.value.field == "mask_shape"


def test_a_mask_in_an_archive_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"no \.npy file"):
        describe_mask(npz(tmp_path / "mask.npz", mask=SEEN))


def test_a_mask_of_another_shape_is_said_with_both_shapes(tmp_path):
    shape = describe_mask(npy(tmp_path / "mask.npy", SEEN))
    with pytest.raises(FileProblem, match="its mask is 4 × 6, but there are 6 queries × 6 keys"):
        open_mask(shape, 6, 6)


def test_a_mask_that_is_gone_or_has_changed_is_said(tmp_path):
    path = npy(tmp_path / "mask.npy", SEEN)
    shape = describe_mask(path)
    npy(path, ~SEEN)
    os.utime(path, ns=(1, 1))
    with pytest.raises(FileProblem, match="has changed"):
        open_mask(shape, 4, 6)
    path.unlink()
    with pytest.raises(FileProblem, match="there is no such file"):
        open_mask(shape, 4, 6)
