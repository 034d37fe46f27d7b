"""Pictures made of files: equal wherever they are made, and the files are found again where they can be."""

import json
import shutil

import numpy as np
import pytest
from msgspec.structs import replace

from attnviz import cli, number_files, rendering, tensor_files
from attnviz.cli import scene as cli_scene
from attnviz.figures import Figure
from attnviz.files import FileProblem
from attnviz.input_paths import found_from, told_from
from attnviz.opening import read
from attnviz.remembered import recall, remember
from attnviz.session_files import SavedSession, to_text
from attnviz.spec import Paper, View, edited, make_spec, to_json

pytestmark = pytest.mark.usefixtures("qapp")

DECK = """\
[all]
size = "240x160"
qk = "w.npz"
mask-shape = "masks/m.npy"
[[figure]]
file = "1.png"
[[figure]]
file = "2.svg"
shows = "difference"
beside = { mask = "none" }
[[figure]]
file = "3.pdf"
[[figure]]
file = "4.gif"
animate = "stages"
frames = 2
[[figure]]
file = "5.npz"
[[figure]]
file = "6.npz"
shows = "row"
"""


def folder_with_files(folder):
    """``folder`` with queries and keys of 5 tokens, a mask of them, and a deck."""
    (folder / "masks").mkdir(parents=True)
    numbers = np.random.default_rng(0).normal(size=(2, 1, 5, 4)).astype(np.float32)
    with (folder / "w.npz").open("wb") as file:
        np.savez(file, q=numbers[0], k=numbers[1])
    np.save(folder / "masks" / "m.npy", np.tri(5, dtype=bool))
    (folder / "deck.toml").write_text(DECK)
    return folder


def spec_of(folder):
    spec = make_spec(tensor_files.describe_qk(folder / "w.npz"))
    return edited(spec, mask_shape=tensor_files.describe_mask(folder / "masks" / "m.npy"))


def paths_of(spec):
    return [spec.source.path, spec.mask_shape.path]


def test_a_deck_in_another_folder_gives_the_same_bytes(tmp_path):
    bytes_of = []
    for name, out in ("one", "one"), ("a/folder/two", "a/folder/two/pictures"):
        folder = folder_with_files(tmp_path / name)
        assert cli_scene.render_deck(folder / "deck.toml", tmp_path / out) == 0
        bytes_of.append({path.name: path.read_bytes() for path in sorted((tmp_path / out).glob("[1-6].*"))})
    one, two = bytes_of
    assert sorted(one) == ["1.png", "2.svg", "3.pdf", "4.gif", "5.npz", "6.npz"]
    assert [name for name in one if one[name] != two[name]] == []
    figure = recall(tmp_path / "a/folder/two/pictures/2.svg")
    assert paths_of(figure.spec) == paths_of(figure.beside) == paths_of(spec_of(tmp_path / "a/folder/two"))


def test_a_picture_finds_its_files_beside_it_above_it_and_by_name(tmp_path, monkeypatch):
    folder = folder_with_files(tmp_path / "a")
    picture, spec = folder / "out" / "of" / "1.png", spec_of(folder)
    picture.parent.mkdir(parents=True)
    rendering.write_figure(picture, Figure(spec=spec, paper=Paper(width=240, height=160)))
    assert recall(picture).spec == read(picture).spec == spec
    moved = tmp_path / "b"
    (moved / "pictures").mkdir(parents=True)
    shutil.copy(picture, moved / "pictures" / "1.png")
    shutil.copy(folder / "w.npz", moved)
    (moved / "pictures" / "m.npy").write_bytes((folder / "masks" / "m.npy").read_bytes())
    shutil.rmtree(folder)
    (moved / "pictures" / "w.npz").write_bytes(b"another of the same name")
    found = [str(moved / "w.npz"), str(moved / "pictures" / "m.npy")]
    assert paths_of(recall(moved / "pictures" / "1.png").spec) == found
    monkeypatch.chdir(moved)
    assert paths_of(recall((moved / "pictures" / "1.png").read_bytes(), tmp_path / "1.png").spec)[0] == found[0]


@pytest.mark.parametrize(("change", "said"), [("gone", "there is no such file"), ("written", "it has changed since")])
def test_a_file_that_is_not_there_any_more_is_named(tmp_path, capsys, change, said):
    folder = folder_with_files(tmp_path / "a")
    size = Paper(width=240, height=160)
    rendering.write_figure(folder / "1.png", Figure(spec=spec_of(folder), paper=size))
    if change == "gone":
        (folder / "w.npz").unlink()
    else:
        with (folder / "w.npz").open("wb") as file:
            np.savez(file, q=np.ones((1, 5, 4), np.float32), k=np.ones((1, 5, 4), np.float32))
    figure = recall(folder / "1.png")  # it opens, so that another file can be given
    with pytest.raises(FileProblem, match=said):
        tensor_files.open_qk(figure.spec.source)
    assert cli.run(["render", "--spec", str(folder / "1.png"), "--image", str(tmp_path / "2.png")]) == 1
    assert f"{folder / 'w.npz'}: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("tokens", [5, 6])
def test_a_file_that_has_changed_is_named_where_it_lies(tmp_path, capsys, tokens):
    folder = folder_with_files(tmp_path / "a")
    assert cli_scene.render_deck(folder / "deck.toml", folder / "figs", only="1.png") == 0
    other = np.ones((1, tokens, 4), np.float32)
    np.savez(folder / "w.npz", q=other, k=other)
    assert cli.run(["render", "--spec", str(folder / "figs" / "1.png"), "--image", str(tmp_path / "2.png")]) == 1
    assert f"{folder / 'w.npz'}: it has changed since" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["png", "npz"])
def test_pictures_of_a_deck_find_its_files_from_wherever_they_are_put(tmp_path, suffix):
    bytes_of = []
    for home in "one", "two/three":
        folder = folder_with_files(tmp_path / home / "deck")
        deck = (folder / "deck.toml").read_text().replace('file = "1.png"', f'file = "sub/1.{suffix}"')
        (folder / "deck.toml").write_text(deck)
        out = tmp_path / home / "pictures"
        assert cli_scene.render_deck(folder / "deck.toml", out, only="sub/*") == 0
        made = out / "sub" / f"1.{suffix}"
        assert paths_of(recall(made).spec) == paths_of(read(made).spec) == paths_of(spec_of(folder))
        bytes_of.append(made.read_bytes())
    assert bytes_of[0] == bytes_of[1]


@pytest.mark.parametrize("suffix", ["png", "npz"])
def test_a_picture_behind_a_link_finds_its_files(tmp_path, suffix):
    folder, link = folder_with_files(tmp_path / "a"), tmp_path / "b" / "c" / f"link.{suffix}"
    picture, paths = folder / "out" / f"1.{suffix}", paths_of(spec_of(folder))
    picture.parent.mkdir()
    link.parent.mkdir(parents=True)
    number_files.write_file(picture, Figure(spec=spec_of(folder), paper=Paper(width=240, height=160)))
    link.symlink_to(picture)
    assert paths_of(recall(link).spec) == paths_of(read(link).spec) == paths
    number_files.write_file(link, Figure(spec=spec_of(folder), paper=Paper(width=240, height=160)))
    assert link.is_symlink()
    assert paths_of(recall(picture).spec) == paths_of(recall(link).spec) == paths


def test_a_spec_out_of_an_npz_finds_its_files_wherever_the_program_runs(tmp_path, monkeypatch):
    folder = folder_with_files(tmp_path / "a")
    spec, out = spec_of(folder), folder / "out"
    assert cli_scene.render_deck(folder / "deck.toml", out, only="[56].npz") == 0
    beside = folder / "x.npz"
    with_files = ("--qk", str(folder / "w.npz"), "--mask-shape", str(folder / "masks" / "m.npy"))
    assert cli.run(["render", *with_files, "--data", str(beside)]) == 0
    monkeypatch.chdir("/")
    for path in beside, out / "5.npz", out / "6.npz":
        text = str(np.load(path)["spec"])
        assert str(tmp_path) not in text
        path.with_suffix(".json").write_text(text)
        assert read(path.with_suffix(".json")).spec == read(path).spec == spec
    again = tmp_path / "again.npz"
    assert cli.run(["render", "--spec", str(out / "6.npz"), "--data", str(again)]) == 0
    assert recall(again).shows == "row"
    assert cli.run(["render", "--spec", str(beside.with_suffix(".json")), "--data", str(again)]) == 0
    np.testing.assert_array_equal(np.load(again)["weights"], np.load(beside)["weights"])
    assert recall(again).spec == spec


def test_a_session_finds_them_too_and_whole_paths_stay(tmp_path):
    folder = folder_with_files(tmp_path / "a")
    spec = spec_of(folder)
    saved = SavedSession(spec=spec, view=View(), pinned=(edited(spec, mask="none"), View()))
    (folder / "s.attnviz").write_text(to_text(saved).replace(f"{folder}/", ""))
    found = read(folder / "s.attnviz")
    assert paths_of(found.spec) == paths_of(found.pinned[0]) == paths_of(spec)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.attnviz").symlink_to(folder / "s.attnviz")
    assert read(tmp_path / "elsewhere" / "link.attnviz").spec == spec
    (folder / "w.npz").rename(tmp_path / "w.npz")
    (folder / "whole.json").write_text(to_json(spec))
    assert read(folder / "whole.json").spec == spec


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"q": np.zeros(3)}, "x.npz has no attention in it"),
        ({"spec": np.zeros(3)}, "its spec is no text of attnviz"),
        ({"spec": np.array("{}"), "figure": np.array("[")}, "x.npz is damaged: what it remembers is no JSON"),
        ({"spec": np.array('{"mask": 3}')}, "x.npz cannot be opened: mask is 3"),
    ],
)
def test_an_npz_that_remembers_nothing_says_so(tmp_path, capsys, arrays, said):
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    assert cli.run(["render", "--spec", str(path), "--data", str(tmp_path / "y.npz")]) != 0
    assert said in capsys.readouterr().err


def test_a_file_that_by_its_header_is_another_is_not_read(tmp_path, monkeypatch):
    folder = folder_with_files(tmp_path / "a")
    picture = folder / "out" / "1.png"
    picture.parent.mkdir()
    spec = spec_of(folder)
    rendering.write_figure(picture, Figure(spec=spec, paper=Paper(width=240, height=160)))
    summed, sha256_of = [], tensor_files.sha256_of
    monkeypatch.setattr(tensor_files, "sha256_of", lambda place: summed.append(place) or sha256_of(place))
    assert recall(picture).spec == spec
    assert summed == []  # no other can be meant: whoever opens it compares
    np.savez(picture.parent / "w.npz", q=np.zeros((1, 6, 4)), k=np.zeros((1, 6, 4)))
    np.save(picture.parent / "m.npy", np.zeros((5, 5)))
    shutil.copy(folder / "w.npz", tmp_path)
    (folder / "w.npz").unlink()
    assert paths_of(recall(picture).spec) == [str(tmp_path / "w.npz"), spec.mask_shape.path]
    assert summed == [str(tmp_path / "w.npz")]
    np.savez(folder / "w.npz", q=np.zeros((1, 5, 4), np.float32), k=np.zeros((1, 5, 4), np.float32))
    assert paths_of(recall(picture).spec)[0] == str(tmp_path / "w.npz")
    assert summed[1:] == [str(folder / "w.npz"), str(tmp_path / "w.npz")]


def test_paths_are_told_from_a_folder(tmp_path):
    def file(path):
        return {"source": {"path": path, "sha256": "0" * 64}, "tokens": [{"path": "no file"}]}

    def told(path):
        fields = told_from(tmp_path / "a", file(path))
        assert fields["tokens"] == [{"path": "no file"}]
        return fields["source"]["path"]

    assert told(str(tmp_path / "a" / "b" / "猫.npz")) == "b/猫.npz"
    assert told(str(tmp_path / "w.npz")) == "../w.npz"
    assert told("/elsewhere/w.npz") == "/elsewhere/w.npz"  # of the whole machine
    assert told("w.npz") == "w.npz"


@pytest.mark.parametrize("path", ["", "/", "a\0b", "\ud800", "x" * 9999, "../" * 99, "/dev/zero", "\\\\host\\w", "."])
def test_what_is_no_files_path_is_not_found(tmp_path, path):
    fields = {"path": path, "sha256": "0" * 64}
    assert isinstance(found_from([tmp_path], fields)["path"], str)


def test_a_picture_tells_nothing_of_the_machine(tmp_path):
    figure = Figure(spec=spec_of(folder_with_files(tmp_path / "a")))
    figure = replace(figure, shows="a-b", beside=figure.spec)
    assert str(tmp_path) in remember(figure)
    told = remember(figure, tmp_path)
    assert str(tmp_path) not in told
    assert json.loads(told)["beside"]["mask_shape"]["path"] == "a/masks/m.npy"
