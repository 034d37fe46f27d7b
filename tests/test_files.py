import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from attnviz.files import FileProblem, write_npz, write_whole
from attnviz.frames import Arrays


def put(path: Path, content: bytes = b"new") -> None:
    write_whole(path, lambda file: file.write(content))


def test_a_new_file_has_the_usual_permissions_and_nothing_is_left_beside_it(tmp_path):
    umask = os.umask(0o022)
    try:
        put(tmp_path / "a.png")
    finally:
        os.umask(umask)
    assert (tmp_path / "a.png").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == 0o644
    assert [found.name for found in tmp_path.iterdir()] == ["a.png"]


def test_an_old_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path):
    old = tmp_path / "old.png"
    old.write_bytes(b"old")
    old.chmod(0o640)
    (tmp_path / "link.png").symlink_to(old)
    put(tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert old.read_bytes() == b"new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize("raised", [OSError(28, "No space left on device"), ValueError("odd"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, raised):
    (tmp_path / "a.png").write_bytes(b"old")

    def fail(file):
        file.write(b"half")
        raise raised

    with pytest.raises((FileProblem, ValueError, KeyboardInterrupt)) as caught:
        write_whole(tmp_path / "a.png", fail)
    if isinstance(raised, OSError):
        assert (
            str(caught.value)
            == f"cannot write {tmp_path / 'a.png'}: the disk is full; make room, or choose another disk"
        )
    assert (tmp_path / "a.png").read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/a.png", "does not exist; make it"),
        ("file/a.png", "is not a folder"),
        ("folder", "that is a folder; give a file's name"),
        ("n" * 300, "name is too long"),
        ("nul\0.png", "cannot be a file's name"),
        ("half\udc80\ud800.png", "cannot be a file's name"),
        ("pipe", "is a device or a pipe"),
        ("loop", "circle|that cannot be a file's name"),
    ],
)
def test_what_cannot_be_written_is_said_with_what_would_do(tmp_path, name, words):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileProblem, match=words):
        put(tmp_path / name)
    assert {found.name for found in tmp_path.iterdir()} == {"file", "folder", "pipe", "loop"}


def test_the_longest_name_can_be_written(tmp_path):
    put(tmp_path / ("n" * 255))
    assert (tmp_path / ("n" * 255)).read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_said(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(FileProblem, match="you may not write in"):
        put(tmp_path / "closed" / "a.png")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_protected_file_is_not_replaced(tmp_path):
    (tmp_path / "a.png").write_bytes(b"old")
    (tmp_path / "a.png").chmod(0o444)
    with pytest.raises(FileProblem, match="write-protected"):
        put(tmp_path / "a.png")


def test_missing_permission_in_words(tmp_path):
    def refuse(file):
        raise PermissionError(13, "Permission denied")

    with pytest.raises(FileProblem) as caught:
        write_whole(tmp_path / "a.png", refuse)
    assert caught.value.sentence.endswith(f"you may not write in {tmp_path}; choose a folder of your own")


def test_a_file_size_limit_leaves_the_old_arrays(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"old")
    script = f"""
import resource, numpy as np
from pathlib import Path
from attnviz.files import FileProblem, write_npz
from attnviz.frames import Arrays
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, {resource.RLIM_INFINITY}))
try:
    write_npz(Path({str(tmp_path / "a.npz")!r}), Arrays(("a",), {{"weights": np.zeros(100_000)}}), "{{}}")
except FileProblem as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert "larger than files may be here" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / "a.npz").read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.npz"]


def test_arrays_load_without_pickle_with_their_dtypes(tmp_path):
    stages = {"weights": np.ones((2, 3, 3), np.float16), "context": np.zeros((2, 3, 4), np.float32)}
    write_npz(tmp_path / "a.npz", Arrays(("猫", "吃", "fish"), MappingProxyType(stages)), '{"seed": 123}')
    with np.load(tmp_path / "a.npz", allow_pickle=False) as loaded:
        assert list(loaded) == ["tokens", "spec", "weights", "context"]
        assert loaded["tokens"].dtype.kind == "U"
        assert loaded["tokens"].tolist() == ["猫", "吃", "fish"]
        assert str(loaded["spec"]) == '{"seed": 123}'
        assert loaded["weights"].dtype == np.float16
        assert loaded["context"].dtype == np.float32
